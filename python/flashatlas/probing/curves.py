"""Detectors of steps and levels in measured numbers.

Every detector returns ``None`` if the numbers show no step. Noise of a few percent is no step.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Levels(NamedTuple):
    """Two levels of numbers, and the number between them."""

    low: float
    high: float
    between: float
    gap: float
    """Width of the empty range between the levels."""


def two_levels(
    values: Sequence[float], least: float, few: float = 0.0, *, uppermost: bool = False
) -> Levels | None:
    """Split numbers at their widest gap; ``None`` if no gap is at least ``least`` wide.

    A level has at least the share ``few`` of the numbers. With ``uppermost``, the split is at the
    uppermost gap that is at least ``least`` wide.
    """
    ordered = sorted(values)
    ends = int(few * len(ordered))
    inner = range(ends, len(ordered) - 1 - ends)
    gaps = [(ordered[n + 1] - ordered[n], n) for n in inner]
    wide = [(gap, n) for gap, n in gaps if gap >= least]
    if not wide:
        return None
    gap, at = wide[-1] if uppermost else max(wide)
    low, high = ordered[: at + 1], ordered[at + 1 :]
    between = (low[-1] + high[0]) / 2
    return Levels(statistics.median(low), statistics.median(high), between, gap)


class Step(NamedTuple):
    """A step of a sequence."""

    at: int
    """Index of the first number after the step."""
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """Return the larger level over the smaller one."""
        small, large = sorted((self.before, self.after))
        return math.inf if small <= 0 else large / small


NOISE = 4.0
"""A step must be this number of times as large as the spread of the numbers on each side."""


def step(values: Sequence[float], least_ratio: float) -> Step | None:
    """Return the step that splits a sequence into two levels with the least squared error.

    ``None`` if the levels differ by less than ``least_ratio``, or by less than :data:`NOISE` times
    the standard deviation of the numbers around the levels.
    """
    count = len(values)
    if count < 4:
        return None
    sums, squares = [0.0], [0.0]
    for value in values:
        sums.append(sums[-1] + value)
        squares.append(squares[-1] + value * value)

    def error(a: int, b: int) -> float:
        part = sums[b] - sums[a]
        return squares[b] - squares[a] - part * part / (b - a)

    at = min(range(1, count), key=lambda n: error(0, n) + error(n, count))
    before, after = statistics.median(values[:at]), statistics.median(values[at:])
    found = Step(at, before, after)
    # one number between the levels may belong to either side
    rest = [v - before for v in values[: at - 1]] + [v - after for v in values[at + 1 :]]
    spread = statistics.pstdev(rest) if len(rest) > 1 else 0.0
    if found.ratio < least_ratio or abs(before - after) < NOISE * spread:
        return None
    return found


def lowest_agreed(values: Sequence[float], within: float, least: int) -> float | None:
    """Return the smallest number that ``least`` numbers agree on within a share; or ``None``."""
    ordered = sorted(values)
    for n in range(len(ordered) - least + 1):
        group = ordered[n : n + least]
        if group[-1] <= group[0] * (1 + within):
            return statistics.median(group)
    return None


def densest(values: Sequence[float], share: float) -> tuple[float, float]:
    """Return the middle and the width of the shortest range that holds a share of the numbers."""
    ordered = sorted(values)
    count = max(2, round(share * len(ordered)))
    starts = range(len(ordered) - count + 1)
    first = min(starts, key=lambda n: ordered[n + count - 1] - ordered[n])
    low, high = ordered[first], ordered[first + count - 1]
    return (low + high) / 2, high - low
