"""Carrying out the runs of an experiment: in this process, or as a study in a store of results.

As a study, an experiment has one axis, ``run``: its runs by name. What is in the store is not run
again, so that an experiment goes on where it was stopped, and ``results``, ``report`` and ``diff``
know it as ``STORE:NAME``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from flashatlas._core import InputError
from flashatlas.api import compare, together
from flashatlas.reproduce.protocol import Kept, Progress
from flashatlas.result import Result

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
    """Carry out runs; results come in their order.

    Args:
        cases: For each run its ``label``, and arguments of :func:`flashatlas.run`.
        kept: The store that keeps them; without one they stay in memory.
        jobs: Runs at once.
        progress: As for :func:`flashatlas.compare`.
        common: Arguments that all share.

    Raises:
        InputError: Bad input, or a run that failed; the others are in the store.

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
    # Dask is there only where studies are
    from flashatlas.sweep import execution, results  # noqa: PLC0415
    from flashatlas.sweep.plan import Plan, Planner  # noqa: PLC0415
    from flashatlas.sweep.study import defined  # noqa: PLC0415

    labels = [case["label"] for case in cases]
    variants = {case["label"]: _as_variant(case, common) for case in cases}
    axes = {RUN: {"variants": variants}}
    study = defined(axes, name=kept.name, title=kept.title, store=kept.root)
    planner = Planner(study)
    made = (planner.run(at) for at in planner.combinations())
    runs = [replace(run, label=run.axes[RUN]) for run in made if run is not None]
    unique = {run.key: run for run in runs}
    plan = Plan(study, tuple(unique.values()), 0, len(runs) - len(unique))
    store = kept.opened()
    results.note(plan, store)
    due, done = execution.due(plan.runs, store, retry_failed=True)
    watcher = None if progress is None else _Told(progress, labels)
    where = execution.Where(kept.cluster, jobs)
    execution.carry_out(due, store, done, where=where, watcher=watcher)
    for run in runs:
        if run.key in done.failed:
            raise InputError(f"{run.label}: {done.failed[run.key].get('error', 'it failed')}")
    options = {case["label"]: _without_label(case, common) for case in cases}
    return [
        replace(store.load(run.key), label=run.label, options=options[run.label]) for run in runs
    ]


def _without_label(case: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of :func:`flashatlas.run` that a case stands for."""
    options = together(common, case)
    del options["label"]
    return options


def _as_variant(case: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
    """Options and settings of a run as a value of an axis."""
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
    """Tells how far the runs are, by their numbers: a watcher of :mod:`flashatlas.sweep`."""

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
        """Nothing is due at no news."""
