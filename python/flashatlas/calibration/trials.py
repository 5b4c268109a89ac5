"""Trials of a calibration: runs of all measured job files on a drive, kept in a store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from flashatlas._core import InputError
from flashatlas.calibration.measured import Measurement, ratios
from flashatlas.calibration.quantities import Quantity
from flashatlas.calibration.space import Parameter, Point
from flashatlas.results.result import Result
from flashatlas.statistics.intervals import REPLICATES
from flashatlas.sweep import execution, results
from flashatlas.sweep.execution import Done, Watcher, Where
from flashatlas.sweep.plan import Plan, Planner, Run
from flashatlas.sweep.store import Store
from flashatlas.sweep.study import Study, defined

Numbers = npt.NDArray[np.float64]

MEASURED = "measured"
"""The axis of the job files."""

CREW = 64
"""The largest number of runs at the same time, however many cores there are."""


class TimeIsUp(Exception):
    """The time limit of a calibration has passed."""


@dataclass(frozen=True)
class Trial:
    """A configuration that was tried."""

    point: Point
    residuals: Numbers | None
    """Logarithms of simulated over measured; ``None`` if a run could not be carried out."""
    why: str = ""

    @property
    def deviation(self) -> float | None:
        """The root of the mean square of the residuals."""
        if self.residuals is None:
            return None
        return float(np.sqrt(np.mean(self.residuals**2)))


def study_of(
    measured: Sequence[Measurement],
    space: Sequence[Parameter],
    *,
    seeds: Sequence[int],
    settings: Sequence[str],
    name: str,
    store: str,
    **options: Any,
) -> Study:
    """Return the study whose runs a calibration carries out: parameters, job files, seeds."""
    axes: dict[str, Any] = {one.key: {"values": list(one.values)} for one in space}
    axes[MEASURED] = {
        "variants": {
            one.label: {"job": str(one.job), "precondition": one.precondition} for one in measured
        }
    }
    axes[REPLICATES] = list(seeds)
    return defined(axes, set=settings, name=name, title=name, store=store, **options)


@dataclass
class Trials:
    """The runs of a calibration, each carried out once."""

    study: Study
    measured: Sequence[Measurement]
    space: Sequence[Parameter]
    store: Store
    crew: execution.Crew
    ends_at: float | None = None
    """Time of :func:`time.monotonic` after which nothing more is run."""
    done: Done = field(default_factory=Done)
    tried: dict[Point, Trial] = field(default_factory=dict)
    """Trials with the first seed."""
    quantities: list[Quantity] = field(default_factory=list)
    """The measured quantities, in the order of the residuals."""
    told: Callable[[], Mapping[str, Any]] = dict
    """A function that returns further facts for the note of the study."""
    _runs: dict[str, Run] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._planner = Planner(self.study)
        self.quantities = [q for one in self.measured for q in one.quantities()]
        if not self.quantities:
            raise InputError("fio measured nothing above 0, so there is nothing to compare")

    def carry_out(self, points: Sequence[Point], seed: int | None = None) -> list[Trial]:
        """Carry out the trials of some points, and return them in the same order.

        Args:
            points: The configurations.
            seed: The seed of the runs; the first seed of the study by default.

        Raises:
            TimeIsUp: The time limit has passed.

        """
        seeds = next(one for one in self.study.axis_list if one.name == REPLICATES).values
        own = seeds[0] if seed is None else seed
        known = self.tried if own == seeds[0] else {}
        new = [point for point in dict.fromkeys(points) if point not in known]
        if new and self.ends_at is not None and time.monotonic() > self.ends_at:
            raise TimeIsUp
        planned = {point: self._planned(point, own) for point in new}
        runs = {
            run.key: run for found in planned.values() if not isinstance(found, str)
            for run in found
        }  # fmt: skip
        due, before = execution.due(runs.values(), self.store)
        self.done.there += before.there
        self.done.failed |= before.failed
        if due:
            self.crew.carry_out(due, self.done)
        self._runs |= runs
        fresh = {point: self._trial(point, planned[point]) for point in new}
        known |= fresh
        if new:
            self.note()
        return [known[point] for point in points]

    def note(self) -> None:
        """Write the runs so far into the note of the study."""
        plan = Plan(self.study, tuple(self._runs.values()), 0, 0)
        results.note(plan, self.store, self.told())

    def results(self, point: Point) -> list[Result]:
        """Return the runs of a trial that was carried out, one for each job file."""
        seeds = next(one for one in self.study.axis_list if one.name == REPLICATES).values
        planned = self._planned(point, seeds[0])
        assert not isinstance(planned, str)
        return [self.store.load(run.key) for run in planned]

    def drive(self, point: Point) -> Mapping[str, Any]:
        """Return the values of a configuration by key."""
        return {
            one.key: one.values[at] for one, at in zip(self.space, point, strict=True)
        }  # fmt: skip

    def _planned(self, point: Point, seed: int) -> list[Run] | str:
        """Return the runs of a trial, or the reason why it cannot be carried out."""
        found = []
        for one in self.measured:
            axes = {**self.drive(point), MEASURED: one.label, REPLICATES: seed}
            try:
                run = self._planner.run(axes)
            except InputError as error:
                return str(error)
            assert run is not None, "the study excludes nothing"
            found.append(run)
        return found

    def _trial(self, point: Point, planned: list[Run] | str) -> Trial:
        if isinstance(planned, str):
            return Trial(point, None, planned)
        for run in planned:
            if not self.store.has(run.key):
                failure = self.store.failure(run.key) or {}
                return Trial(point, None, str(failure.get("error", "the run failed")))
        ours = [
            quantity
            for one, run in zip(self.measured, planned, strict=True)
            for quantity in one.simulated(self.store.load(run.key))
        ]
        return Trial(point, np.array(ratios(self.quantities, ours)))


@contextmanager
def trials(
    study: Study,
    measured: Sequence[Measurement],
    space: Sequence[Parameter],
    *,
    where: Where = Where(),
    seconds: float | None = None,
    watcher: Watcher | None = None,
) -> Iterator[Trials]:
    """Yield the trials of a calibration, with workers that carry them out."""
    store = Store.open(study.store, create=True)
    keep = "tables" if any(one.logs for one in measured) else "record"
    with execution.crew(store, CREW, where=where, keep=keep, watcher=watcher) as crew:
        ends_at = None if seconds is None else time.monotonic() + seconds
        yield Trials(study, measured, space, store, crew, ends_at)
