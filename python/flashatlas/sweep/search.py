"""Search of a space: the next configurations follow from the results so far (Optuna).

A search goes through a study's combinations in another order: its runs are runs of a sweep, in the
same store. It asks for trials in batches of a fixed size, so that the seed alone decides which
configurations are tried, for any number of workers. An interrupted search goes on if it is started
again: the runs that were carried out are in the store.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from flashatlas._core import InputError
from flashatlas.names import hint
from flashatlas.results.frame import columns_of
from flashatlas.statistics.intervals import REPLICATES
from flashatlas.sweep import execution, results
from flashatlas.sweep.axes import Axis
from flashatlas.sweep.execution import Done, Watcher, Where
from flashatlas.sweep.objectives import Objective, Search
from flashatlas.sweep.plan import Plan, Planner, Run, planned
from flashatlas.sweep.store import Store
from flashatlas.sweep.study import Study, StudyError

MISSING = "searches need Optuna: pip install 'flashatlas[study]'"

CHECKED = 5000
"""The largest number of combinations that are all checked before the first run."""

BETTERED_BY = 3
"""Number of other short runs that must dominate a trial's short run to prune the trial."""


@dataclass(frozen=True)
class Trial:
    """A configuration that was tried."""

    axes: Mapping[str, Any]
    runs: tuple[Run, ...]
    """The whole runs, one for each seed."""
    values: tuple[float, ...] | None
    """Means of the objectives over seeds; ``None`` if a run failed or there is no whole run."""
    pruned: bool = False


@dataclass
class Found:
    """The trials of a search, and its other results."""

    study: Study
    trials: list[Trial] = field(default_factory=list)
    done: Done = field(default_factory=Done)
    infeasible: list[str] = field(default_factory=list)
    """Reasons why combinations cannot be carried out."""

    def front(self) -> list[Trial]:
        """Return the trials that no other trial dominates, sorted by the first objective."""
        assert self.study.search is not None
        objectives = self.study.search.objectives
        known = {trial.runs[0].key: trial for trial in self.trials if trial.values is not None}
        costs = {key: _costs(objectives, trial.values or ()) for key, trial in known.items()}
        best = [
            known[key]
            for key, own in costs.items()
            if not any(_betters(other, own) for other in costs.values())
        ]
        return sorted(best, key=lambda trial: _costs(objectives, trial.values or ()))

    def plan(self) -> Plan:
        """Return the whole runs of the trials as a sweep's plan."""
        runs = {run.key: run for trial in self.trials if not trial.pruned for run in trial.runs}
        return Plan(self.study, tuple(runs.values()), 0, 0)

    def told(self) -> dict[str, Any]:
        """Return the store's note of the search."""
        assert self.study.search is not None
        return {
            "search": {
                "objectives": [
                    {"number": one.number, "better": "high" if one.higher else "low"}
                    for one in self.study.search.objectives
                ],
                "trials": len(self.trials),
                "pruned": sum(trial.pruned for trial in self.trials),
                "infeasible": len(self.infeasible),
                "front": [run.key for trial in self.front() for run in trial.runs],
            }
        }


def _costs(objectives: Sequence[Objective], values: Sequence[float]) -> tuple[float, ...]:
    return tuple(one.cost(value) for one, value in zip(objectives, values, strict=True))


def _betters(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return ``True`` if ``one`` dominates: no cost is higher, and at least one cost is lower."""
    return all(a <= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)


def check(study: Study) -> int | None:
    """Check a space before anything runs, and count its runs; ``None`` if there are too many.

    Raises:
        InputError: A combination could not be carried out.

    """
    combinations = math.prod(len(group[0].values) for group in study.axes)
    return None if combinations > CHECKED else len(planned(study).runs)


def most(study: Study) -> int:
    """Return the largest number of runs that a search carries out."""
    search = study.search
    assert search is not None
    return search.trials * max(len(_seeds(study)), 1) * (2 if search.short else 1)


def _seeds(study: Study) -> Sequence[Any]:
    """Return the values of the axis of replicates; a trial has a run for each of them."""
    return next((one.values for one in study.axis_list if one.name == REPLICATES), ())


def carry_out(
    study: Study,
    store: Store,
    *,
    where: Where = Where(),
    keep: str = "tables",
    watcher: Watcher | None = None,
    retry_failed: bool = False,
) -> Found:
    """Search a space, and keep every run.

    Raises:
        InputError: Optuna is not installed, an objective is not a number of the runs, or no
            combination can be carried out.

    """
    search = study.search
    assert search is not None
    sampler = _Sampler(study, search)
    found = Found(study)
    begun = time.monotonic()
    with execution.crew(store, search.batch * 2, where=where, keep=keep, watcher=watcher) as crew:
        batches = _Batches(found, store, crew, sampler.planner, retry_failed)
        while len(found.trials) + len(found.infeasible) < search.trials:
            left = search.trials - len(found.trials) - len(found.infeasible)
            asked = [sampler.ask() for _ in range(min(search.batch, left))]
            trials = batches.carry_out([axes for _, axes in asked])
            if not found.trials and found.infeasible:
                raise StudyError(found.infeasible[0])
            for (number, _), trial in zip(asked, trials, strict=True):
                sampler.tell(number, trial)
            results.note(found.plan(), store, found.told())
            found.done.seconds = time.monotonic() - begun
    return found


class _Batches:
    """Batches of trials: each trial's short run comes first, if the search has short runs."""

    def __init__(
        self, found: Found, store: Store, crew: execution.Crew, planner: Planner, retry: bool
    ) -> None:
        assert found.study.search is not None
        self._found, self._store, self._crew, self._planner = found, store, crew, planner
        self._search = found.study.search
        self._retry = retry
        self._seeds = _seeds(found.study)
        self._short: list[tuple[float, ...]] = []
        """Results of the short runs, as costs."""

    def carry_out(self, asked: Sequence[Mapping[str, Any]]) -> list[Trial | None]:
        """Carry out a batch, and return its trials; ``None`` for impossible ones."""
        whole = [self._runs(axes, None) for axes in asked]
        going = [at for at, runs in enumerate(whole) if runs]
        pruned: set[int] = set()
        if self._search.short:
            short = {at: self._runs(asked[at], self._search.short) for at in going}
            self._run([run for runs in short.values() for run in runs])
            pruned = self._bettered({at: self._values(runs) for at, runs in short.items()})
        self._run([run for at in going if at not in pruned for run in whole[at]])
        trials: list[Trial | None] = []
        for at, runs in enumerate(whole):
            if not runs:
                trials.append(None)
                continue
            values = None if at in pruned else self._values(runs)
            trial = Trial(asked[at], runs, values, at in pruned)
            self._found.trials.append(trial)
            trials.append(trial)
        return trials

    def _bettered(self, values: Mapping[int, Sequence[float] | None]) -> set[int]:
        """Return the trials that the results of the short runs exclude from a whole run."""
        objectives = self._search.objectives
        costs = {at: _costs(objectives, found) for at, found in values.items() if found is not None}
        self._short.extend(costs.values())
        return {
            at
            for at, own in costs.items()
            if sum(_betters(other, own) for other in self._short) >= BETTERED_BY
        }

    def _runs(self, axes: Mapping[str, Any], limit: int | None) -> tuple[Run, ...]:
        """Return a configuration's runs, one for each seed; none if it cannot be carried out."""
        seeds = [{REPLICATES: seed} for seed in self._seeds] or [{}]
        try:
            runs = [self._planner.run({**axes, **seed}, limit) for seed in seeds]
        except InputError as error:
            if limit is None:
                self._found.infeasible.append(str(error))
            return ()
        if any(run is None for run in runs):
            label = " ".join(map(str, axes.values()))
            self._found.infeasible.append(f"excluded: {label}")
            return ()
        return tuple(run for run in runs if run is not None)

    def _run(self, runs: Sequence[Run]) -> None:
        """Carry out the runs that the store lacks."""
        unique = {run.key: run for run in runs}
        due, known = execution.due(unique.values(), self._store, retry_failed=self._retry)
        done = self._found.done
        done.there += known.there
        done.failed |= known.failed
        if due:
            self._crew.carry_out(due, done)

    def _values(self, runs: Sequence[Run]) -> tuple[float, ...] | None:
        """Return the means of the objectives over runs; ``None`` if one has failed."""
        if not all(self._store.has(run.key) for run in runs):
            return None
        numbers = [columns_of(self._store.load(run.key).record)[1] for run in runs]
        for objective in self._search.objectives:
            for one in numbers:
                if objective.number not in one:
                    near = hint(objective.number, one)
                    raise StudyError(
                        f"{self._found.study.at('search')}search: `{objective.number}` is not a "
                        f"number of the run `{runs[0].label}`{near}"
                    )
        return tuple(
            fmean(one[objective.number] for one in numbers) for objective in self._search.objectives
        )


class _Sampler:
    """Sampler that asks Optuna for configurations, and tells it their results."""

    def __init__(self, study: Study, search: Search) -> None:
        optuna = library()
        self._states = optuna.trial.TrialState
        self.planner = Planner(study)
        self._groups = [group for group in study.axes if group[0].name != REPLICATES]
        made = {
            "tpe": lambda: optuna.samplers.TPESampler(seed=search.seed, multivariate=True),
            "nsga2": lambda: optuna.samplers.NSGAIISampler(
                seed=search.seed, population_size=max(search.batch, 2)
            ),
            "random": lambda: optuna.samplers.RandomSampler(seed=search.seed),
        }
        self._optuna = optuna.create_study(
            sampler=made[search.sampler](),
            directions=["maximize" if one.higher else "minimize" for one in search.objectives],
        )

    def ask(self) -> tuple[Any, dict[str, Any]]:
        """Return a trial, and a value for each axis that applies."""
        trial = self._optuna.ask()
        steps: dict[str, Any] = {}
        # conditions refer to unconditional axes, which come first
        for group in sorted(self._groups, key=lambda group: group[0].when is not None):
            if self.planner.applies(group[0], steps):
                at = suggested(trial, group[0])
                steps |= {one.name: one.values[at] for one in group}
        names = [one.name for group in self._groups for one in group if one.name in steps]
        return trial, {name: steps[name] for name in names}

    def tell(self, trial: Any, found: Trial | None) -> None:
        """Tell Optuna the result of a trial."""
        if found is not None and found.values is not None:
            self._optuna.tell(trial, found.values)
        elif found is not None and found.pruned:
            self._optuna.tell(trial, state=self._states.PRUNED)
        else:
            self._optuna.tell(trial, state=self._states.FAIL)


def suggested(trial: Any, axis: Axis) -> int:
    """Return the index of a trial's value on an axis: numbers have an order, names have none."""
    numeric = all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in axis.values
    )
    if numeric and list(axis.values) == sorted(axis.values):
        return int(trial.suggest_int(axis.name, 0, len(axis.values) - 1))
    return int(trial.suggest_categorical(axis.name, list(range(len(axis.values)))))


def library() -> Any:
    """Return the module ``optuna``.

    Raises:
        InputError: The module is not installed.

    """
    try:
        import optuna  # noqa: PLC0415
    except ImportError as error:
        raise InputError(MISSING) from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    return optuna
