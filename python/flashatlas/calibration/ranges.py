"""Ranges: the values of each parameter that explain the measurements as well as the best drive.

A value is in the range if a drive with it has a sum of squares near the smallest one, while the
other parameters are adjusted. So a range is wide both if a parameter changes nothing and if another
one makes up for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flashatlas.calibration.fit import DAMPING, Fit, step
from flashatlas.calibration.space import Point
from flashatlas.calibration.trials import Numbers, Trial

CHANCE = 4.0
"""Increase of the sum of squares that is chance: 3.84 is the 95 % point of chi square, one degree
of freedom."""

ROUNDS = 7
PRECISE = 0.1
"""The end of a range is known if its distance from the best value is known within this share."""

FIRST = 4.0
"""The least first distance from the best value, in values of the range."""

TRADED = 0.8
"""The least correlation of two parameters that trade off."""

WIDER = 2.0
"""Ratio to the range with all others fixed, above which a parameter trades off with another."""


@dataclass(frozen=True)
class Range:
    """The values of a parameter that the measurements allow, as indices; fine ones between two."""

    number: int
    """Number of the parameter."""
    low: float
    high: float
    values: tuple[int, ...] = ()
    """The values that are allowed, if the parameter has few values."""
    is_open_below: bool = False
    """``True`` if smaller values than those that were given may be allowed, too."""
    is_open_above: bool = False

    @property
    def is_told(self) -> bool:
        """``True`` if the measurements exclude values on both sides, or some of a few values."""
        return not (self.is_open_below or self.is_open_above)

    @property
    def is_limited(self) -> bool:
        """``True`` if the measurements exclude any values."""
        return not (self.is_open_below and self.is_open_above)


@dataclass(frozen=True)
class Pair:
    """Two parameters that trade off: the measurements tell only a combination of them."""

    first: int
    second: int
    correlation: float
    """Positive if both grow together without a trace in the measurements."""


def threshold(fit: Fit) -> float:
    """Return the largest sum of squares that is as good as the best one."""
    best = fit.cost(fit.best)
    spare = max(1, fit.groups - len(fit.trials.space))
    return best + CHANCE * max(1.0, best / spare)


@dataclass
class _Side:
    """The search for one end of a range."""

    number: int
    """Number of the parameter."""
    sign: int
    start: int
    """Index of the best value, from which distances count."""
    bound: int
    """The largest distance that the values allow."""
    wanted: float
    base: Trial
    """The allowed trial that is the farthest."""
    inside: float = 0.0
    outside: float | None = None
    is_done: bool = False

    def take(self, trial: Trial | None, distance: float) -> None:
        """Take note of a trial at a distance; ``None`` if it is not allowed."""
        if trial is not None:
            self.inside, self.base = distance, trial
            self.is_done = distance >= self.bound
        else:
            self.outside = distance
        if self.outside is None:
            self.wanted = min(2 * self.inside, self.bound)
        else:
            self.wanted = (self.inside + self.outside) / 2
            self.is_done |= self.outside - self.inside <= max(1.0, PRECISE * self.outside)

    @property
    def end(self) -> float:
        """The index of the end of the range; if trials did not suffice, rather too far."""
        if not self.is_done:
            distance = self.wanted if self.outside is None else self.outside
        elif self.outside is None:
            distance = self.inside
        else:
            distance = (self.inside + self.outside) / 2
        return self.start + self.sign * distance


def found(fit: Fit) -> list[Range] | None:
    """Return the range of each parameter; a better drive found on the way becomes the best one.

    ``None`` if the trials do not suffice for ranges.
    """
    sides: list[_Side] = []
    for again in range(3):
        centre = fit.best
        ends = _fine_ends(fit)
        if ends is None and not again:
            return None
        sides = sides if ends is None else ends
        others = fit.try_alternatives()
        if fit.best is centre or fit.left() <= 0:
            break
        fit.descend()
    limit = threshold(fit)
    allowed = [trial for trial in fit.trials.tried.values() if fit.cost(trial) <= limit]
    ranges = []
    for n, one in enumerate(fit.trials.space):
        indices = [trial.point[n] for trial in allowed]
        if one.is_fine:
            own = [side.end for side in sides if side.number == n]
            low, high = min([*indices, *own]), max([*indices, *own])
            last = len(one.values) - 1
            ranges.append(
                Range(n, max(low, 0), min(high, last), (), low <= 0, high >= last)
            )  # fmt: skip
        else:
            values = {*indices, *(p[n] for p, cost in others.items() if cost <= limit)}
            every = len(values) == len(one.values)
            ranges.append(Range(n, min(values), max(values), tuple(sorted(values)), every, every))
    return ranges


def _fine_ends(fit: Fit) -> list[_Side] | None:
    """Find the ends of the ranges of all parameters with many values, side by side.

    ``None`` if there are not enough trials.
    """
    numbers, space = fit.fine(), fit.trials.space
    if not numbers:
        return []
    if fit.left() < 4 * len(numbers):
        fit.cut = True
        return None
    slopes = fit.measure_slopes()
    centre = fit.best
    spread = uncertainty(slopes, numbers)
    room = np.sqrt(threshold(fit) - fit.cost(centre))
    sides = []
    for at, n in enumerate(numbers):
        for sign in (-1, 1):
            start = centre.point[n]
            bound = start if sign < 0 else len(space[n].values) - 1 - start
            first = min(max(room * spread[at], FIRST), bound)
            sides.append(_Side(n, sign, start, bound, first, centre, is_done=not bound))
    for _ in range(ROUNDS):
        going = [side for side in sides if not side.is_done]
        if not going:
            break
        if fit.left() < 2 * len(going):
            fit.cut = True
            break
        limit = threshold(fit)
        tried = fit.carry_out([_at(fit, slopes, side, side.base) for side in going])
        # a second try, adjusted to what the first one showed
        again = [
            trial.point if fit.cost(trial) <= limit
            else _at(fit, slopes, side, trial)
            for side, trial in zip(going, tried, strict=True)
        ]  # fmt: skip
        for side, one, two in zip(going, tried, fit.carry_out(again), strict=True):
            best = min((one, two), key=fit.cost)
            distance = abs(best.point[side.number] - side.start)
            side.take(best if fit.cost(best) <= limit else None, float(distance))
    return sides


def _at(fit: Fit, slopes: Numbers, side: _Side, near: Trial) -> Point:
    """Return the configuration at a side's distance, the others adjusted from a trial near it."""
    base = side.base if near.residuals is None else near
    assert base.residuals is not None
    n = side.number
    target = side.start + side.sign * max(round(side.wanted), 1)
    change = slopes[:, n] * (target - base.point[n]) / fit.weights
    predicted = Trial(base.point, base.residuals + change)
    others = [m for m in fit.fine() if m != n]
    point = step(fit, predicted, slopes, others, DAMPING[0])
    return (*point[:n], target, *point[n + 1 :])


def uncertainty(slopes: Numbers, numbers: Sequence[int]) -> Numbers:
    """Return how far each parameter can go for a unit of cost, the others adjusted; in values."""
    return np.sqrt(np.diag(_inverse(slopes, numbers)))


def _inverse(slopes: Numbers, numbers: Sequence[int]) -> Numbers:
    columns = slopes[:, numbers]
    square = columns.T @ columns
    return np.linalg.inv(square + np.eye(len(numbers)) * (1e-9 + 1e-6 * np.trace(square)))


def pairs(fit: Fit) -> list[Pair]:
    """Return the pairs of parameters that trade off, by the slopes at the best drive."""
    numbers = fit.fine()
    if len(numbers) < 2 or fit.slopes is None:
        return []
    slopes = fit.slopes
    inverse = _inverse(slopes, numbers)
    alone = 1 / np.maximum(np.linalg.norm(slopes[:, numbers], axis=0), 1e-9)
    together = np.sqrt(np.diag(inverse))
    found = []
    for a in range(len(numbers)):
        for b in range(a + 1, len(numbers)):
            correlation = float(inverse[a, b] / (together[a] * together[b]))
            wider = min(together[a] / alone[a], together[b] / alone[b])
            if abs(correlation) >= TRADED and wider >= WIDER:
                found.append(Pair(numbers[a], numbers[b], correlation))
    return sorted(found, key=lambda pair: -abs(pair.correlation))
