"""The search for the best drive: Optuna looks around, least squares go on from its best trial.

The sum of squares has slopes that differences of a few runs show, so the second part needs far
fewer trials than a sampler. Every trial is a trial of one Optuna study.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flashatlas._core import InputError
from flashatlas.calibration.quantities import Quantity
from flashatlas.calibration.space import Point, clipped
from flashatlas.calibration.trials import Numbers, Trial, Trials
from flashatlas.sweep.search import library, suggested

BATCH = 8
"""Number of trials that Optuna proposes together; it does not depend on the number of workers."""

EXPLORED = 0.25
"""Share of the trials with which Optuna looks around."""

NOISE_SEEDS = 4
"""Number of further seeds that show how much a quantity depends on the random addresses."""

OWN = 0.01
"""Deviation that the simulator itself may have: classes of latencies are 1 % wide."""

DIFFERENCE = 3
"""Distance of the trials that show a slope, in values of a range."""

DAMPING = (1e-3, 1e-1, 1.0, 10.0)
"""Dampings of a step, of which the best is taken (Levenberg and Marquardt)."""

REACH = 0.25
"""The longest step, as a share of a range."""

BETTER = 0.99
"""A round whose sum of squares is above this share of the one before is the last one."""

ROUNDS = 8
ALTERNATIVES = 8
"""The largest number of values of a parameter with few values that are tried one by one."""


@dataclass
class Fit:
    """A search in progress, and its best trial."""

    trials: Trials
    most: int
    """The largest number of trials."""
    seed: int
    noise: Numbers
    """Standard deviation of each residual over seeds."""
    best: Trial
    slopes: Numbers | None = None
    """Change of each weighted residual for a step of each parameter, at the best trial."""
    cut: bool = False
    """``True`` if the number of trials or the time did not suffice."""
    _optuna: Any = None
    asked: int = 0
    infeasible: list[str] = field(default_factory=list)

    @property
    def weights(self) -> Numbers:
        """The weight of each residual: less for noise, and less in a group of many quantities."""
        deviation = np.hypot(OWN, np.sqrt(2) * self.noise)
        return 1 / (deviation * np.sqrt(group_sizes(self.trials.quantities)))

    @property
    def groups(self) -> int:
        """Number of independent pieces of evidence."""
        return len({one.group for one in self.trials.quantities})

    def weighted(self, trial: Trial) -> Numbers:
        """Return the weighted residuals of a trial that was carried out."""
        assert trial.residuals is not None
        return trial.residuals * self.weights

    def cost(self, trial: Trial) -> float:
        """Return the sum of the weighted squares; infinite if a run could not be carried out."""
        return np.inf if trial.residuals is None else float(np.sum(self.weighted(trial) ** 2))

    def left(self) -> int:
        """Return the number of trials that are left."""
        return self.most - self.asked

    def carry_out(self, points: Sequence[Point]) -> list[Trial]:
        """Carry out trials of chosen configurations, as trials of the Optuna study."""
        new = [p for p in dict.fromkeys(points) if p not in self.trials.tried]
        for point in new:
            self._optuna.enqueue_trial(self._told(point))
        asked = [self._ask() for _ in new]
        found = self.trials.carry_out([point for _, point in asked])
        for (trial, _), result in zip(asked, found, strict=True):
            self._tell(trial, result)
        done = self.trials.carry_out(points)
        self._take_best(done)
        return done

    def explore(self, count: int) -> None:
        """Let Optuna propose trials, in batches."""
        while count > 0:
            size = min(BATCH, count)
            asked = [self._ask() for _ in range(size)]
            found = self.trials.carry_out([point for _, point in asked])
            for (trial, _), result in zip(asked, found, strict=True):
                self._tell(trial, result)
            self._take_best(found)
            count -= size

    def _take_best(self, found: Sequence[Trial]) -> None:
        best = min([self.best, *found], key=self.cost)
        if best is not self.best:
            self.best, self.slopes = best, None

    def _told(self, point: Point) -> dict[str, int]:
        return {one.key: at for one, at in zip(self.trials.space, point, strict=True)}

    def _ask(self) -> tuple[Any, Point]:
        trial = self._optuna.ask()
        self.asked += 1
        return trial, tuple(suggested(trial, one.axis) for one in self.trials.space)

    def _tell(self, trial: Any, result: Trial) -> None:
        deviation = result.deviation
        if deviation is None:
            self.infeasible.append(result.why)
            self._optuna.tell(trial, state=library().trial.TrialState.FAIL)
        else:
            self._optuna.tell(trial, deviation)

    def measure_noise(self, seeds: Sequence[int]) -> None:
        """Run the best drive with other seeds, and compute the weights from the spread."""
        others = [self.trials.carry_out([self.best.point], seed)[0] for seed in seeds]
        rows = [one.residuals for one in [self.best, *others] if one.residuals is not None]
        self.noise = np.std(rows, axis=0, ddof=1) if len(rows) > 1 else self.noise
        self.slopes = None
        self._take_best(list(self.trials.tried.values()))

    def fine(self) -> list[int]:
        """Return the numbers of the parameters with slopes."""
        return [n for n, one in enumerate(self.trials.space) if one.is_fine]

    def measure_slopes(self) -> Numbers:
        """Return the slopes at the best trial, from trials on both sides of it."""
        if self.slopes is not None:
            return self.slopes
        space, centre = self.trials.space, self.best
        beside: dict[int, tuple[Point, Point]] = {}
        for n in self.fine():
            low, high = (moved(centre.point, n, by) for by in (-DIFFERENCE, DIFFERENCE))
            beside[n] = clipped(space, low), clipped(space, high)
        found = self.carry_out([point for pair in beside.values() for point in pair])
        known = {trial.point: trial for trial in found} | {centre.point: centre}
        columns = np.zeros((len(self.trials.quantities), len(space)))
        for n, (low, high) in beside.items():
            ends = [p if known[p].residuals is not None else centre.point for p in (low, high)]
            width = ends[1][n] - ends[0][n]
            if width:
                a, b = (self.weighted(known[p]) for p in ends)
                columns[:, n] = (b - a) / width
        # if a trial beside the best one was better, the slopes hold there, too
        self.slopes = columns
        return self.slopes

    def _for_slopes(self) -> int:
        """Return the number of trials that the slopes at the best trial need."""
        return 2 * len(self.fine()) if self.slopes is None else 0

    def descend(self) -> None:
        """Go down from the best trial until a round gains almost nothing."""
        for _ in range(ROUNDS):
            if not self.fine():
                break
            if self.left() < self._for_slopes() + len(DAMPING):
                self.cut = True
                break
            before = self.cost(self.best)
            slopes = self.measure_slopes()
            self.carry_out([
                step(self, self.best, slopes, self.fine(), damping) for damping in DAMPING
            ])  # fmt: skip
            if self.cost(self.best) > BETTER * before:
                break

    def try_alternatives(self) -> dict[Point, float]:
        """Try other values of parameters with few values, the others adjusted to each.

        Returns the cost of the best trial for each such value, by the configuration tried.
        """
        space, centre = self.trials.space, self.best
        starts = [
            (n, (*centre.point[:n], other, *centre.point[n + 1 :]))
            for n, one in enumerate(space) if not one.is_fine
            for other in _alternatives(len(one.values), centre.point[n], one.is_ordered)
        ]  # fmt: skip
        if not starts or self.left() < self._for_slopes() + 3 * len(starts):
            self.cut = self.cut or bool(starts)
            return {}
        slopes = self.measure_slopes()
        tried = self.carry_out([point for _, point in starts])
        for _ in range(2):
            adjusted = [
                trial.point if trial.residuals is None
                else step(self, trial, slopes, self.fine(), DAMPING[0])
                for trial in tried
            ]  # fmt: skip
            tried = [
                min(pair, key=self.cost)
                for pair in zip(tried, self.carry_out(adjusted), strict=True)
            ]
        return {trial.point: self.cost(trial) for trial in tried}


def _alternatives(count: int, own: int, is_ordered: bool) -> list[int]:
    """Return other indices of values: the nearest ones of numbers, the first ones of names."""
    others = [n for n in range(count) if n != own]
    return sorted(others, key=lambda n: abs(n - own) if is_ordered else n)[:ALTERNATIVES]


def moved(point: Sequence[float], at: int, by: float) -> tuple[float, ...]:
    """Return a point with one parameter moved."""
    return (*point[:at], point[at] + by, *point[at + 1 :])


def step(fit: Fit, start: Trial, slopes: Numbers, numbers: Sequence[int], damping: float) -> Point:
    """Return the configuration that the slopes promise to be best, near a trial.

    Args:
        fit: The search.
        start: The trial from which the step goes.
        slopes: See :attr:`Fit.slopes`.
        numbers: The parameters that may change.
        damping: Share of the squares of the slopes that is added to them.

    """
    if not numbers:
        return start.point
    columns = slopes[:, numbers]
    square = columns.T @ columns
    scale = np.diag(square).copy()
    scale[scale <= 0] = 1.0
    wanted = np.linalg.lstsq(
        square + np.diag((damping + 1e-9) * scale), -columns.T @ fit.weighted(start), rcond=None
    )[0]
    point = list(map(float, start.point))
    for n, by in zip(numbers, wanted, strict=True):
        longest = REACH * len(fit.trials.space[n].values)
        point[n] += float(np.clip(by, -longest, longest))
    return clipped(fit.trials.space, point)


def group_sizes(quantities: Sequence[Quantity]) -> Numbers:
    """Return for each quantity the number of quantities in its group."""
    groups = [one.group for one in quantities]
    return np.array([groups.count(group) for group in groups], dtype=np.float64)


def begun(trials: Trials, start: Point, most: int, seed: int) -> Fit:
    """Return a search that has tried its first configuration, the drive as it was given.

    Raises:
        InputError: Optuna is not installed, or the first drive cannot run the job files.

    """
    optuna = library()
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True), direction="minimize"
    )
    first = Trial(start, None)
    fit = Fit(trials, most, seed, np.zeros(len(trials.quantities)), first, _optuna=study)
    (found,) = fit.carry_out([start])
    if found.residuals is None:
        raise InputError(f"the drive to begin with cannot run the measured jobs: {found.why}")
    return fit


def search(fit: Fit, seeds: Sequence[int]) -> None:
    """Carry out the whole search, up to the ranges."""
    fit.explore(int(EXPLORED * fit.most) - fit.asked)
    fit.measure_noise(seeds)
    for _ in range(3):
        fit.descend()
        before = fit.best
        fit.try_alternatives()
        if fit.best is before:
            break
