"""What a run takes before it gives anything: memory, and time to precondition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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


def cost(layout: Mapping[str, int], precondition: str) -> Cost:
    """An estimate from the drive's layout (:attr:`flashatlas.Drive.layout`) and precondition."""
    units = layout["physical_units"]
    a_unit = SECONDS_A_UNIT.get(precondition, 0.0 if precondition == "none" else None)
    seconds = None if a_unit is None else a_unit * layout["logical_units"]
    return Cost(units, layout["memory_bytes"], seconds)


def free_memory() -> int | None:
    """Bytes of memory that programs may take; ``None`` where the system is not Linux."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else None
