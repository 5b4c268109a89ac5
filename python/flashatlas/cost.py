"""What a run takes before it gives anything: memory, and time to precondition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashatlas import _core
from flashatlas._core import InputError
from flashatlas.tables import size

SECONDS_A_UNIT = {"fill": 30e-9, "steady": 50e-9}
"""Time to precondition one mapping unit, with the map in DRAM, on two cores of a shared machine. A
map with pages on flash is filled page by page, in some four times as long."""

LONG_S, LARGE_BYTES = 10.0, 1 << 30
"""From here on a run is announced."""


@dataclass(frozen=True)
class Cost:
    """What a run takes."""

    units: int
    """Mapping units of the flash."""
    bytes: int
    seconds: float | None
    """To precondition; ``None`` where that depends on a trace or a checkpoint."""

    @property
    def is_worth_saying(self) -> bool:
        """Whether someone who waits should know before."""
        return self.bytes >= LARGE_BYTES or (self.seconds or 0.0) >= LONG_S


def cost(layout: Mapping[str, Any], precondition: str) -> Cost:
    """An estimate from the drive's layout (:attr:`flashatlas.Drive.layout`) and precondition."""
    units = layout["physical_units"]
    a_unit = SECONDS_A_UNIT.get(precondition, 0.0 if precondition == "none" else None)
    seconds = None if a_unit is None else a_unit * layout["logical_units"]
    return Cost(units, layout["memory_bytes"], seconds)


def free_memory() -> int | None:
    """Return the bytes of memory that this process may take.

    They are what the system says is available, or what the limits of its control groups leave,
    whichever is less; ``None`` where the system is not Linux.
    """
    return _core.free_memory()


def must_fit_together(certain: Sequence[int], at_once: int) -> None:
    """Refuse runs that certainly take more memory together than is available.

    One that is too large alone is not refused here: the run does, with the largest that fits.

    Args:
        certain: What each run takes at the least, in bytes.
        at_once: Runs side by side.

    Raises:
        InputError: They do; the error says how many fit.

    """
    free, largest = free_memory(), sorted(certain, reverse=True)[:at_once]
    if free is None or sum(largest) <= free or largest[0] > free:
        return
    raise InputError(
        f"jobs: {at_once} runs at once take at least {size(sum(largest))}, {size(free)} of memory "
        f"are available: expected at most {free // largest[0]}"
    )
