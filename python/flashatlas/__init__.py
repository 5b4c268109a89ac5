"""FlashAtlas: the atlas of a flash drive's address maps.

Simulate a drive that serves a workload, and check the data of every read:

>>> import flashatlas
>>> writes = "uniform:requests=2000,size=2KiB"
>>> result = flashatlas.run(drive="tiny", workload=writes, precondition="fill")
>>> result.violations
0
"""

import sys
from importlib import import_module

from flashatlas import extensions

extensions.use()  # before anything imports the core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flashatlas import parts
    from flashatlas._core import (
        DriveError,
        FlashAtlasError,
        InputError,
        InternalError,
        PartError,
        PowerLost,
        __version__,
    )
    from flashatlas.drawing.figure import figure
    from flashatlas.inputs.drive import Drive
    from flashatlas.inputs.job import Job
    from flashatlas.inputs.trace import Trace
    from flashatlas.names import registries
    from flashatlas.results.frame import Frame
    from flashatlas.results.result import Result
    from flashatlas.results.runs import frame
    from flashatlas.running.api import compare, run, save_checkpoint, specification
    from flashatlas.running.bundle import bundle
    from flashatlas.running.lookups import lookup
    from flashatlas.running.rerun import rerun
    from flashatlas.serving.device import Device
    from flashatlas.serving.image import image_age, image_check, image_cut, image_info
    from flashatlas.serving.serve import serve
    from flashatlas.statistics.significance import significance
    from flashatlas.sweep import Study

__all__ = [
    "Device",
    "Drive",
    "DriveError",
    "FlashAtlasError",
    "Frame",
    "InputError",
    "InternalError",
    "Job",
    "PartError",
    "PowerLost",
    "Result",
    "Study",
    "Trace",
    "__version__",
    "bundle",
    "compare",
    "figure",
    "frame",
    "image_age",
    "image_check",
    "image_cut",
    "image_info",
    "lookup",
    "parts",
    "registries",
    "rerun",
    "run",
    "save_checkpoint",
    "serve",
    "significance",
    "specification",
]

_HOMES = {
    "_core": (
        "DriveError",
        "FlashAtlasError",
        "InputError",
        "InternalError",
        "PartError",
        "PowerLost",
        "__version__",
    ),
    "drawing.figure": ("figure",),
    "inputs.drive": ("Drive",),
    "inputs.job": ("Job",),
    "inputs.trace": ("Trace",),
    "names": ("registries",),
    "results.frame": ("Frame",),
    "results.result": ("Result",),
    "results.runs": ("frame",),
    "running.api": ("compare", "run", "save_checkpoint", "specification"),
    "running.bundle": ("bundle",),
    "running.lookups": ("lookup",),
    "running.rerun": ("rerun",),
    "serving.device": ("Device",),
    "serving.image": ("image_age", "image_check", "image_cut", "image_info"),
    "serving.serve": ("serve",),
    "statistics.significance": ("significance",),
    "sweep": ("Study",),
}
"""The public names of each module. A module is imported when one of its names is first used."""

_HOME = {name: module for module, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # for type checkers, names that are not listed above are wrong

    def __getattr__(name: str) -> object:
        """Return the object with a public name, or a submodule; import its module first."""
        private = name.startswith("_") and name not in ("_core", "__version__")
        try:
            if private:
                raise ModuleNotFoundError(name=f"{__name__}.{name}")
            module = import_module(f"{__name__}.{_HOME.get(name, name)}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
            said = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(said, name=name, obj=sys.modules[__name__]) from None
        value = getattr(module, name) if name in _HOME else module
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
