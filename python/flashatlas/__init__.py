"""FlashAtlas: the atlas of a flash drive's address maps.

Simulate a drive on a trace, with every read checked:

>>> import flashatlas
>>> writes = "uniform:requests=2000,size=2KiB"
>>> result = flashatlas.run(drive="tiny", workload=writes, precondition="fill")
>>> result.violations
0
"""

from flashatlas import extensions

extensions.use()  # before anything imports the core

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
from flashatlas.api import compare, run, save_checkpoint, specification
from flashatlas.bundle import bundle
from flashatlas.device import Device
from flashatlas.drive import Drive
from flashatlas.figure import figure
from flashatlas.frame import Frame, frame
from flashatlas.image import image_check, image_cut, image_info
from flashatlas.job import Job
from flashatlas.lookups import lookup
from flashatlas.names import registries
from flashatlas.rerun import rerun
from flashatlas.result import Result
from flashatlas.serve import serve
from flashatlas.significance import significance
from flashatlas.sweep import Study
from flashatlas.trace import Trace

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
