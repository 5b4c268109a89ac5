"""What replicates tell: means with intervals."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flashatlas._core import InputError
from flashatlas.frame import Frame
from flashatlas.names import hint

CONFIDENCE = 0.95

PERCENTILE = re.compile(r"(^|\.)(p\d+(_\d+)?|max|min)$")
"""Numbers that are order statistics: their means are far from normal."""

RESAMPLES = 2000
"""Of the bootstrap."""

MISSING = "intervals need SciPy: pip install 'flashatlas[study]'"


@dataclass(frozen=True)
class Estimate:
    """A number over replicates."""

    mean: float
    low: float | None
    """The lower end of the interval; ``None`` with fewer than two different replicates."""
    high: float | None
    count: int

    @property
    def half(self) -> float | None:
        """Half of the interval's width."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seed alone."""

    factors: dict[str, Any]
    estimates: dict[str, Estimate]
    unsteady: int
    """How many of them were no steady state: their numbers would move in longer runs."""
    runs: int


def estimate(values: Sequence[float], *, percentile: bool = False) -> Estimate:
    """The mean of replicates with its interval of 95 %.

    Student's t; for percentiles the bootstrap (bias-corrected and accelerated), because their
    distribution is skewed. It needs more replicates than t to be right: with fewer than about ten
    its intervals are too short.
    """
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2 or all(value == values[0] for value in values):
        return Estimate(mean, None, None, count)
    stats, numpy = _scipy()
    if percentile:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # degenerate samples: the interval is not a number
            found = stats.bootstrap(
                (numpy.array(values),),
                numpy.mean,
                confidence_level=CONFIDENCE,
                n_resamples=RESAMPLES,
                rng=numpy.random.default_rng(1),
            ).confidence_interval
        low, high = float(found.low), float(found.high)
        if math.isfinite(low) and math.isfinite(high):
            return Estimate(mean, low, high, count)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, count - 1)) * spread / math.sqrt(count)
    return Estimate(mean, mean - half, mean + half, count)


def summary(runs: Frame, of: Sequence[str], over: str = "seed") -> list[Group]:
    """A row for each combination of factors, over replicates.

    Args:
        runs: The runs.
        of: Numbers that are estimated.
        over: The factor that tells replicates apart.

    Raises:
        InputError: No such number.

    """
    for name in of:
        runs.column(name)
        if name not in runs.numbers:
            near = hint(name, runs.numbers)
            raise InputError(f"of: `{name}` is what runs were given, not a number they found{near}")
    factors = [name for name in runs.factors if name != over]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    steady = "steady" in runs.table.column_names
    wanted = [*factors, *of, *(["steady"] if steady else [])]
    for row in runs.table.select(list(dict.fromkeys(wanted))).to_pylist():
        groups.setdefault(tuple(row[name] for name in factors), []).append(row)
    found = []
    for key, rows in groups.items():
        estimates = {}
        for name in of:
            values = [row[name] for row in rows if row[name] is not None]
            if values:
                estimates[name] = estimate(values, percentile=bool(PERCENTILE.search(name)))
        unsteady = sum(1 for row in rows if steady and row["steady"] is False)
        found.append(Group(dict(zip(factors, key, strict=True)), estimates, unsteady, len(rows)))
    return found


def _scipy() -> tuple[Any, Any]:
    try:
        import numpy  # noqa: PLC0415
        from scipy import stats  # noqa: PLC0415
    except ImportError as error:
        raise InputError(MISSING) from error
    return stats, numpy
