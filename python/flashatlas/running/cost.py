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


UNIT_S = {"fill": Span(30e-9, 150e-9), "steady": Span(50e-9, 370e-9), "none": Span(0, 0)}
"""Core seconds to precondition one mapping unit, with the map in DRAM.

The time is shorter if the tables fit into the processor's caches. On two cores that were also busy
with other work, drives of 0.7 to 2 million units took 30 to 112 ns a unit for ``fill`` and 50 to
273 ns a unit for ``steady``. The upper bounds are larger than these measurements.
"""

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
        base: The run's option ``base``, or ``dense`` if a checkpoint is made of the drive. Memory
            and time of a computed drive depend on the workload, so none are counted.

    """
    has_base = precondition in ("fill", "steady") and base == "computed"
    if has_base and layout.get("takes_up_a_base"):
        return Cost(
            layout["physical_units"], 0, Span(0, 0), layout["logical_units"], layout["unit_bytes"]
        )
    a_unit, units = UNIT_S.get(precondition), layout["logical_units"]
    time = None if a_unit is None else a_unit.times(units).by(factor_of_map(store))
    return Cost(layout["physical_units"], layout["memory_bytes"], time, units, layout["unit_bytes"])


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
        f"jobs: {at_once} runs at once take at least {size(sum(largest))}, but {size(free)} "
        f"of memory are available: give at most {free // largest[0]}"
    )
