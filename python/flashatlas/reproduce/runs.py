"""Execution of an experiment's runs: in this process, or as a study in a store of results.

As a study, an experiment has one axis, ``run``: its runs by name. Runs in the store are not run
again, so an experiment goes on where it was stopped. ``STORE:NAME`` names the study in ``results``,
``report`` and ``diff``.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashatlas._core import InputError
from flashatlas.progress import THERE
from flashatlas.reproduce.protocol import HERE, Kept, Progress
from flashatlas.results.result import Result
from flashatlas.running.api import Workers, compare, layout_of, side_by_side, together
from flashatlas.running.cost import certain_bytes
from flashatlas.running.lookups import lookup

if TYPE_CHECKING:
    from flashatlas.sweep.execution import Watcher
    from flashatlas.sweep.plan import Plan, Run
    from flashatlas.sweep.store import Store
    from flashatlas.sweep.study import Study

RUN = "run"
"""The axis of an experiment's runs."""


def carried_out(
    cases: Sequence[Mapping[str, Any]],
    *,
    kept: Kept | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    **common: Any,
) -> list[Result]:
    """Carry out runs, and return the results in their order.

    Args:
        cases: For each run its ``label``, and arguments of :func:`flashatlas.run`.
        kept: The store that keeps the runs; without one they stay in memory.
        jobs: Number of runs at the same time.
        progress: As for :func:`flashatlas.compare`.
        common: Arguments that all runs share.

    Raises:
        InputError: The input is bad, or a run failed; finished runs are in the store.

    """
    if kept is None:
        given: list[Any] = list(cases)
        return compare(given, jobs=jobs, progress=progress, **common)
    return _in_store(cases, kept, jobs, progress, common)


def _in_store(
    cases: Sequence[Mapping[str, Any]],
    kept: Kept,
    jobs: int | None,
    progress: Progress | None,
    common: Mapping[str, Any],
) -> list[Result]:
    # Dask is installed only with the extra for studies
    from flashatlas.sweep.plan import Planner  # noqa: PLC0415
    from flashatlas.sweep.study import defined  # noqa: PLC0415

    labels = [case["label"] for case in cases]
    variants = {case["label"]: _as_variant(case, common) for case in cases}
    axes = {RUN: {"variants": variants}}
    study = defined(axes, name=kept.name, title=kept.title, store=kept.root)
    planner = Planner(study)
    made = (planner.run(at) for at in planner.combinations())
    runs = [replace(run, label=run.axes[RUN]) for run in made if run is not None]
    if kept.cluster == HERE:
        store = _here(study, runs, kept, jobs, progress or (lambda *_: None))
    else:
        watcher = None if progress is None else _Told(progress, labels)
        store = _kept(study, runs, kept, jobs, watcher)
    options = {case["label"]: _without_label(case, common) for case in cases}
    return [
        replace(store.load(run.key), label=run.label, options=options[run.label]) for run in runs
    ]


def looked_up(
    studies: Mapping[str, Mapping[str, Any]],
    *,
    kept: Kept | None = None,
    jobs: int | None = None,
    told: Callable[[int], None] | None = None,
) -> list[dict[str, Any]]:
    """Carry out studies of the lookup engine, and return the records in their order.

    Args:
        studies: Arguments of :func:`flashatlas.lookup` by name.
        kept: The store that keeps the studies; without one they stay in memory.
        jobs: Number of studies at the same time.
        told: Called with the number of finished studies.

    Raises:
        InputError: The input is bad, or a study failed; finished studies are in the store.

    """
    if kept is not None:
        return _looked_up_in_store(studies, kept, jobs, told)
    done = itertools.count(1)
    workers = Workers(jobs or os.cpu_count() or 1, None)

    def counted(arguments: Mapping[str, Any], _: Any) -> dict[str, Any]:
        found = lookup(**arguments)
        if told:
            told(next(done))
        return found

    for number, arguments in enumerate(studies.values()):
        workers.add(number, partial(counted, arguments))
    return workers.wait()


def _looked_up_in_store(
    studies: Mapping[str, Mapping[str, Any]],
    kept: Kept,
    jobs: int | None,
    told: Callable[[int], None] | None,
) -> list[dict[str, Any]]:
    # Dask is installed only with the extra for studies
    from flashatlas.sweep import lookups  # noqa: PLC0415
    from flashatlas.sweep.axes import Axis  # noqa: PLC0415
    from flashatlas.sweep.identity import Digests  # noqa: PLC0415
    from flashatlas.sweep.study import Study  # noqa: PLC0415

    digests = Digests()
    # a value with slashes would be shown as the name of a file
    named = {name.replace("/", ", "): given for name, given in studies.items()}
    runs = [lookups.run_of({RUN: name}, given, digests) for name, given in named.items()]
    axes = ((Axis(RUN, tuple(named)),),)
    study = Study(axes=axes, name=kept.name, title=kept.title, store=kept.root)
    if kept.cluster == HERE:
        store = _looked_up_here(study, runs, kept, jobs, told or (lambda _: None))
    else:
        store = _kept(study, runs, kept, jobs, None if told is None else _Counted(told, runs))
    if told:
        told(len(runs))
    return [lookups.load(store, run.key).record for run in runs]


def _kept(
    study: Study, runs: Sequence[Run], kept: Kept, jobs: int | None, watcher: Watcher | None
) -> Store:
    """Carry out the runs that the store lacks, and return the store, which then has all runs.

    Raises:
        InputError: A run failed.

    """
    from flashatlas.sweep import execution  # noqa: PLC0415

    store, plan = _noted(study, runs, kept)
    due, done = execution.due(plan.runs, store, retry_failed=True)
    where = execution.Where(kept.cluster, jobs)
    execution.carry_out(due, store, done, where=where, watcher=watcher)
    for run in runs:
        if run.key in done.failed:
            raise InputError(f"{run.label}: {done.failed[run.key].get('error', 'it failed')}")
    return store


def _noted(study: Study, runs: Sequence[Run], kept: Kept) -> tuple[Store, Plan]:
    """Write the runs of a study into the store's note; equal runs are written once."""
    from flashatlas.sweep import results  # noqa: PLC0415
    from flashatlas.sweep.plan import Plan  # noqa: PLC0415

    unique = {run.key: run for run in runs}
    plan = Plan(study, tuple(unique.values()), 0, len(runs) - len(unique))
    store = kept.opened()
    results.note(plan, store)
    kept.keys.extend(unique)
    return store, plan


def _here(
    study: Study, runs: Sequence[Run], kept: Kept, jobs: int | None, progress: Progress
) -> Store:
    """Carry out in this process the runs that the store lacks, and keep each as soon as it is done.

    The records equal the records of :func:`flashatlas.compare`, even if some runs were there
    before.
    """
    store, _ = _noted(study, runs, kept)
    same: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        same.setdefault(run.key, []).append(number)
    due = []
    for key, numbers in same.items():
        if store.has(key):
            for number in numbers:
                progress(number, THERE, 0, 1.0)
        else:
            due.append(numbers[0])

    def done(number: int, result: Result) -> None:
        run = runs[number]
        store.put(run.key, result, run.identity)
        for twin in same[run.key]:
            progress(twin, "check", 0, 1.0)

    specs = [run.spec for run in runs]
    alone = {number for number, run in enumerate(runs) if not run.keeps_checkpoints}
    certain = [certain_bytes(layout_of(specs[number]), specs[number]) for number in due]
    if due:
        side_by_side(specs, alone, due, certain, jobs=jobs, progress=progress, done=done)
    return store


def _looked_up_here(
    study: Study,
    runs: Sequence[Run],
    kept: Kept,
    jobs: int | None,
    told: Callable[[int], None],
) -> Store:
    """Carry out lookups in this process as :func:`_here` carries out runs of drives."""
    from flashatlas.sweep import lookups  # noqa: PLC0415

    store, plan = _noted(study, runs, kept)
    due = [run for run in plan.runs if not store.has(run.key)]
    done = itertools.count(len(plan.runs) - len(due) + 1)
    workers = Workers(jobs or os.cpu_count() or 1, None)

    def carry_out(run: Run, report: Any) -> None:
        store.put(run.key, lookups.carried_out(run.spec, report), run.identity)
        told(next(done))

    for number, run in enumerate(due):
        workers.add(number, partial(carry_out, run))
    workers.wait()
    return store


def _without_label(case: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of :func:`flashatlas.run` for a case."""
    options = together(common, case)
    del options["label"]
    return options


def _as_variant(case: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options and settings of a run as a value of an axis."""
    options = _without_label(case, common)
    settings = options.pop("set")
    made = {key: value for key, value in options.items() if value is not None}
    for setting in settings:
        key, _, value = setting.partition("=")
        made[key.strip()] = value.strip()
    if "layers" in made:
        made["layers"] = made["layers"].replace(",", "+")
    return {key: str(value) if isinstance(value, Path) else value for key, value in made.items()}


class _Told:
    """A watcher of :mod:`flashatlas.sweep` that reports the progress of runs by their numbers."""

    def __init__(self, progress: Progress, labels: Sequence[str]) -> None:
        self._progress = progress
        self._numbers = {label: number for number, label in enumerate(labels)}

    def told(self, _: str, label: str, phase: str, requests: int, share: float | None) -> None:
        if label in self._numbers:
            self._progress(self._numbers[label], phase, requests, share)

    def ended(self, run: Any, failure: Mapping[str, Any] | None) -> None:
        if failure is None:
            self.told("", run.label, "check", 0, 1.0)

    def tick(self) -> None:
        """Do nothing without news."""


class _Counted:
    """A watcher of a study that counts finished runs; equal runs finish together."""

    def __init__(self, told: Callable[[int], None], runs: Sequence[Run]) -> None:
        self._told, self._done = told, 0
        self._same = Counter(run.key for run in runs)

    def told(self, *_: Any) -> None:
        """Ignore the progress within a run."""

    def ended(self, run: Any, failure: Mapping[str, Any] | None) -> None:
        if failure is None:
            self._done += self._same[run.key]
            self._told(self._done)

    def tick(self) -> None:
        """Do nothing without news."""
