"""FlashAtlas: the atlas of a flash drive's address maps.

Simulate a drive on a trace, with every read checked:

>>> import flashatlas
>>> result = flashatlas.run(drive="tiny", workload="uniform:requests=2000,size=2KiB", precondition="fill")
>>> result.violations
0
"""

from flashatlas._core import DriveError, FlashAtlasError, InputError, InternalError, __version__
from flashatlas.api import compare, registries, run, trace_info
from flashatlas.result import Result

__all__ = [
    "DriveError",
    "FlashAtlasError",
    "InputError",
    "InternalError",
    "Result",
    "__version__",
    "compare",
    "registries",
    "run",
    "trace_info",
]
