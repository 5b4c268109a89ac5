"""Estimates of the memory of a run, and of the time to precondition its drive."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashatlas import _core
from flashatlas._core import InputError
from flashatlas.results.units import size

LONG_S, LARGE_BYTES = 10.0, 1 << 30
"""The least time and the least memory that are announced before a run."""


@dataclass(frozen=True)
class Span:
    """A lower and an upper bound of a time, or of a factor."""

    least: float
    most: float

    def __add__(self, other: Span) -> Span:
        """Return the sum of two times."""
        return Span(self.least + other.least, self.most + other.most)

    def times(self, least: float, most: float | None = None) -> Span:
        """Return the span multiplied by ``least``, or by a factor from ``least`` to ``most``."""
        return Span(self.least * least, self.most * (least if most is None else most))

    def by(self, factor: Span) -> Span:
        """Return the span multiplied by a factor that is itself a span."""
        return self.times(factor.least, factor.most)

    @property
    def middle(self) -> float:
        """The geometric mean of the bounds."""
        return math.sqrt(self.least * self.most)

    def __str__(self) -> str:
        """Return both bounds in the unit of the upper one: ``1 to 2 min``."""
        unit, size = next(
            (each for each in (("h", 3600.0), ("min", 60.0)) if self.most >= 1.5 * each[1]),
            ("s", 1.0),
        )
        low, high = (_two_digits(bound / size) for bound in (self.least, self.most))
        return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def _two_digits(number: float) -> str:
    """Return a number rounded to two significant digits."""
    digits = 1 - math.floor(math.log10(number)) if number > 0 else 0
    return f"{round(number, min(digits, 2)):,.10g}"


FACTOR_OF_MAP = {"dram": Span(1, 1), "leaftl": Span(2, 40), "learnedftl": Span(2, 40)}
"""Time that a map store takes, as a multiple of the time with the map in DRAM.

Measurements with LeaFTL: preconditioning took 7 to 18 times as long, playing requests 40 to 130
times as long.
"""

FACTOR_OF_FLASH = Span(1.2, 6)
"""The factor of :data:`FACTOR_OF_MAP` for any other map store.

Measurements with DFTL, S-FTL and TPFTL: preconditioning took 1.2 to 14 times as long, playing
requests 3 to 6 times as long.
"""


def factor_of_map(store: str) -> Span:
    """Return the factor by which a map store is slower than DRAM; ``store`` is ``map.store``."""
    return FACTOR_OF_MAP.get(store, FACTOR_OF_FLASH)


@dataclass(frozen=True)
class Cost:
    """Memory and time that a run takes."""

    units: int
    """Mapping units of the flash."""
    bytes: int
    time: Span | None
    """Core seconds to precondition; ``None`` if the time depends on a trace or a checkpoint."""
    logical_units: int = 0
    unit_bytes: int = 1
    why: str = ""
    """The reason why the drive is written to tables before the run; empty if it is not."""

    @property
    def seconds(self) -> float | None:
        """The least time that preconditioning takes, in seconds."""
        return None if self.time is None else self.time.least

    @property
    def is_worth_saying(self) -> bool:
        """``True`` if the cost is large enough to be announced before the run."""
        return self.bytes >= LARGE_BYTES or self.is_long

    @property
    def is_long(self) -> bool:
        """``True`` if preconditioning may take long."""
        return self.time is not None and self.time.most >= LONG_S


def cost(
    layout: Mapping[str, Any], precondition: str, store: str = "dram", base: str = "dense"
) -> Cost:
    """Return an estimate of the memory and time that a run takes.

    Args:
        layout: Layout of the drive (:attr:`flashatlas.Drive.layout`).
        precondition: The run's option ``precondition``.
        store: ``map.store`` of the drive.
        base: The run's option ``base``. Memory and time of a computed drive depend on the
            workload, so none are counted.

    """
    physical, units, unit_bytes = (
        layout[key] for key in ("physical_units", "logical_units", "unit_bytes")
    )
    if precondition not in ("fill", "steady"):
        time = Span(0, 0) if precondition == "none" else None
        return Cost(physical, layout["memory_bytes"], time, units, unit_bytes)
    if is_computed(layout, precondition, base):
        return Cost(physical, 0, Span(0, 0), units, unit_bytes)
    time = Span(*layout[f"{precondition}_seconds"]).by(factor_of_map(store))
    why = layout["why_tables"] or "--base dense asks for it"
    return Cost(physical, layout["memory_bytes"], time, units, unit_bytes, why)


def is_computed(layout: Mapping[str, Any], precondition: Any, base: str) -> bool:
    """Return whether what the drive holds before a run is computed, so that it takes no memory."""
    return (
        precondition in ("fill", "steady") and base == "computed" and layout["why_tables"] is None
    )


def certain_bytes(layout: Mapping[str, Any], spec: Mapping[str, Any]) -> int:
    """Return the least memory that a run with this specification takes, in bytes."""
    precondition = spec["precondition"]
    if is_computed(layout, precondition, spec["base"]):
        return 0
    return int(layout.get(f"{precondition}_memory_bytes", 0))


def free_memory() -> int | None:
    """Return the bytes of memory that this process may take; ``None`` if the system is not Linux.

    The number is the smaller of two: the memory that the system reports as available, and the
    memory that the limits of the process's control groups still allow.
    """
    return _core.free_memory()


def must_fit_together(certain: Sequence[int], at_once: int) -> None:
    """Refuse runs at the same time that certainly need more memory than is available.

    A run that is too large by itself is not refused here. The run itself raises the error later,
    and names the largest size that fits.

    Args:
        certain: The least memory that each run takes, in bytes.
        at_once: Number of runs at the same time.

    Raises:
        InputError: The runs need too much memory; the error names the number of runs that fit.

    """
    free, largest = free_memory(), sorted(certain, reverse=True)[:at_once]
    if free is None or sum(largest) <= free or largest[0] > free:
        return
    raise InputError(
        f"jobs: {at_once} runs together take at least {size(sum(largest))}, but {size(free)} "
        f"of memory are available: give at most {free // largest[0]}"
    )
