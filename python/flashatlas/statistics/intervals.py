"""Means over replicates, with intervals."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean
from typing import Any

from flashatlas._core import InputError, about
from flashatlas.names import hint
from flashatlas.results.frame import WORN_OUT, Frame
from flashatlas.results.units import in_unit

CONFIDENCE = 0.95

REPLICATES = "seed"
"""The factor of replicates: runs that differ only in it have the same configuration."""

PERCENTILE = re.compile(r"(^|\.)(p\d+(_\d+)?|max|min)$")
"""Pattern of the numbers that are order statistics. Their means are far from normal."""

RESAMPLES = 2000
"""Number of resamples of the bootstrap."""

LEAST = 5
"""The least number of replicates with an interval in a figure or table; fewer show their range.

With three values, the interval of Student's t extends 2.48 standard deviations to each side. Its
width therefore depends more on the number of values than on the drive. The interval of the
bootstrap of three values never extends beyond their range.
"""

MISSING = "intervals need SciPy: pip install 'flashatlas[study]'"


@dataclass(frozen=True)
class Estimate:
    """The mean of a number over replicates, with its range and its interval."""

    mean: float
    low: float | None
    """The lower end of the interval; ``None`` if there is none, or all values are equal."""
    high: float | None
    count: int
    least: float
    most: float

    @property
    def half(self) -> float | None:
        """Half of the interval's width."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the bar in a figure: the ends of the interval, or else of the range.

        If no value is below zero, the lower end is not below zero either.
        """
        if self.low is None or self.high is None:
            return self.least, self.most
        return max(self.low, 0.0) if self.least >= 0 else self.low, self.high


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seeds."""

    factors: dict[str, Any]
    estimates: dict[str, Estimate]
    unsteady: int
    """Number of runs that were not steady: longer runs would have other numbers."""
    runs: int
    worn_out: int = 0
    """Number of runs whose drive wore out before the workload ended: their numbers end there."""

    @property
    def count(self) -> str:
        """The numbers of runs, of unsteady runs, and of runs whose drive wore out, as a text."""
        unsteady = f", {self.unsteady} unsteady" if self.unsteady else ""
        return f"{self.runs}{unsteady}{f', {self.worn_out} worn out' if self.worn_out else ''}"

    def said(self, name: str, unit: str, *, count: bool = True) -> str:
        """Return an estimate in words.

        The text is ``1.431 ± 0.02`` with an interval, ``1.431 (1.41–1.45, n = 3)`` with fewer than
        :data:`LEAST` replicates, and only the mean if all replicates are equal. If ``count`` is
        false, ``n`` is left out.
        """
        found = self.estimates.get(name)
        if found is None:
            return "–"
        mean = in_unit(found.mean, unit)
        if found.half is not None:
            return f"{mean} ± {in_unit(found.half, unit)}"
        if found.least == found.most:
            return mean
        least, most = in_unit(found.least, unit), in_unit(found.most, unit)
        (low, _, same), (_, _, own) = least.partition(" "), most.partition(" ")
        ends = f"{low if same == own else least}–{most}"
        return f"{mean} ({ends}, n = {found.count})" if count else f"{mean} ({ends})"


def estimate(values: Sequence[float], *, percentile: bool = False, least: int = LEAST) -> Estimate:
    """Return the mean of replicates with its 95 % interval, or without one for few replicates.

    The interval is the interval of Student's t. For percentiles it is the interval of the bootstrap
    (bias-corrected and accelerated), because their distribution is skewed. The bootstrap needs more
    replicates than Student's t: with fewer than about ten replicates, its intervals are too short.

    Args:
        values: The replicates.
        percentile: ``True`` if the values are order statistics (:data:`PERCENTILE`).
        least: The least number of replicates with an interval; not below 2.

    """
    return estimates([values], percentile=percentile, least=least)[0]


def estimates(
    groups: Sequence[Sequence[float]], *, percentile: bool = False, least: int = LEAST
) -> list[Estimate]:
    """Return the estimate of each group; groups of equal size share a call of the bootstrap."""
    found = [
        Estimate(fmean(values), None, None, len(values), min(values), max(values))
        for values in groups
    ]
    of_size: dict[int, list[int]] = {}
    for at, values in enumerate(groups):
        if len(values) >= least and any(value != values[0] for value in values):
            of_size.setdefault(len(values), []).append(at)
    for places in of_size.values():
        samples = [groups[at] for at in places]
        ends = _bootstrap(samples) if percentile else [None] * len(places)
        for at, values, end in zip(places, samples, ends, strict=True):
            mean = found[at].mean
            low, high = end or _student(values, mean)
            found[at] = replace(found[at], low=low, high=high)
    return found


def _student(values: Sequence[float], mean: float) -> tuple[float, float]:
    """Return the interval of Student's t."""
    count = len(values)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = _quantile(count - 1) * spread / math.sqrt(count)
    return mean - half, mean + half


@cache
def _quantile(freedom: int) -> float:
    """Return the quantile of Student's t at the upper end of the interval."""
    stats, _ = _scipy()
    return float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom))


def _bootstrap(samples: Sequence[Sequence[float]]) -> list[tuple[float, float] | None]:
    """Return the intervals of samples of one size; ``None`` for a degenerate sample."""
    stats, numpy = _scipy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about degenerate samples, whose interval is NaN
        found = stats.bootstrap(
            (numpy.array(samples, dtype=float),),
            numpy.mean,
            axis=-1,
            confidence_level=CONFIDENCE,
            n_resamples=RESAMPLES,
            batch=100,
            rng=numpy.random.default_rng(1),
        ).confidence_interval
    ends = zip(map(float, found.low), map(float, found.high), strict=True)
    return [end if all(map(math.isfinite, end)) else None for end in ends]


def summary(runs: Frame, of: Sequence[str]) -> list[Group]:
    """Return the estimates over replicates for each combination of the other factors.

    Args:
        runs: The runs.
        of: Names of the numbers to estimate.

    Raises:
        InputError: A number does not exist.

    """
    for name in of:
        runs.column(name)
        if name not in runs.numbers:
            near = hint(name, runs.numbers)
            raise about(
                "of", f"`{name}` is a setting of the runs, not a number that they found{near}"
            )
    factors = [name for name in runs.factors if name != REPLICATES]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    steady = "steady" in runs.table.column_names
    worn = WORN_OUT in runs.table.column_names
    wanted = [*factors, *of, *(["steady"] if steady else []), *([WORN_OUT] if worn else [])]
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
        worn_out = sum(1 for row in rows if worn and row[WORN_OUT] is not None)
        group = dict(zip(factors, key, strict=True))
        found.append(Group(group, estimates, unsteady, len(rows), worn_out))
    return found


def _scipy() -> tuple[Any, Any]:
    try:
        import numpy  # noqa: PLC0415
        from scipy import stats  # noqa: PLC0415
    except ImportError as error:
        raise InputError(MISSING) from error
    return stats, numpy
