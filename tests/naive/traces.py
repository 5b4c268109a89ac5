"""Traces of whole units in the format `csv`, for runs beside the models."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

US = 1_000_000
"""Picoseconds of a microsecond."""
SECTORS = 4
"""Sectors of a unit of the drive `tiny`."""


class Request(NamedTuple):
    """A request for one unit: its time in picoseconds, operation and logical page."""

    at: int
    operation: str
    page: int


def written(path: Path, requests: Iterable[Request]) -> Path:
    """Write the requests as a trace."""
    rows = (f"{at},{op},{page * SECTORS},{SECTORS},0,0" for at, op, page in requests)
    path.write_text("\n".join(["time_ps,op,sector,sectors,fua,device", *rows, ""]))
    return path
