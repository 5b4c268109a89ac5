"""Traces: how to read one, what it is like, and copies of it in other formats."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flashatlas import _core

Progress = Callable[[str, int, float | None], None]
"""Called with the phase, the requests so far, and the share done (0 to 1) where it is known."""


@dataclass(frozen=True)
class Trace:
    """A trace file and how to read it.

    Args:
        path: The file, plain or compressed (gz, bz2, xz, zst).
        format: Its format, when its content does not tell.
        device_map: Address spaces: ``separate``, ``collapse`` or ``select:N``.
        drop_duplicates: Drop a record that repeats the one before within this time, such as ``"5ms"``.
        time_gap_max: Cut pauses to this time, such as ``"1s"``.
        assume_op: ``read`` or ``write``, for traces that do not say.
        skip_bad: Bad records to skip before one is an error.
        shift: Sectors added to every address.

    """

    path: str | os.PathLike[str]
    format: str | None = None
    device_map: str | None = None
    drop_duplicates: str | None = None
    time_gap_max: str | None = None
    assume_op: str | None = None
    skip_bad: int = 0
    shift: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """How it is read, as the core takes it."""
        return {key: value for key, value in vars(self).items() if key != "path"}

    def info(self, progress: Progress | None = None) -> dict[str, Any]:
        """Read the whole trace and sum it up: requests, bytes, footprint, overwrites, sequentiality, duration."""
        return json.loads(_core.trace_info(os.fspath(self.path), self.format, self.skip_bad, self.shift, progress))
