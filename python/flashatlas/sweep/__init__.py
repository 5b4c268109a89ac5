"""Studies: many runs over axes, on one machine or a cluster, in a store that resumes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from flashatlas.inputs.drive import Settings
from flashatlas.results.frame import Frame
from flashatlas.sweep import execution, results, search
from flashatlas.sweep.execution import Done, Watcher, Where
from flashatlas.sweep.plan import Plan, planned
from flashatlas.sweep.store import Store
from flashatlas.sweep.study import STORE, defined, load

__all__ = ["Done", "Plan", "Store", "Study", "Where"]


class Study:
    """A study of many runs: every combination of some axes, each carried out once and kept.

    >>> import flashatlas
    >>> study = flashatlas.Study(
    ...     {"ftl.victim": ["greedy", "fifo"], "seed": {"from": 1, "to": 3}},
    ...     drive="tiny", workload="uniform:requests=2000,size=2KiB", precondition="fill",
    ... )
    >>> len(study.plan().runs)
    6

    Args:
        axes: Values by name: a key of the drive, an option of :func:`flashatlas.run`, ``drive``,
            ``layers``, or a name of your own with ``variants``. An axis is a list; a range
            (``{"from": "8KiB", "to": "128KiB", "factor": 2}``, or with ``steps``, ``step``,
            ``scale``: ``lin`` or ``log``); or ``{"variants": {name: settings}}``. ``when`` is a
            condition on other axes.
        zip: Tables of axes that advance together, value by value.
        exclude: Conditions on runs that are left out, such as ``ftl.victim == "fifo" and seed >
            3``.
        set: Parameters that all runs share.
        name: Name of the study in its store.
        title: The heading of its report.
        store: The folder of results.
        search: Search for the best combinations, instead of carrying out all of them: ``minimise``
            and ``maximise`` (numbers), ``trials``, ``sampler`` (``tpe``, ``nsga2``, ``random``),
            ``seed``, ``batch``, ``short`` (``docs/FORMATS.md``).
        options: Options of :func:`flashatlas.run` that all runs share, with ``drive`` and
            ``layers``.

    Raises:
        InputError: An axis has no values, an axis is given twice, or a name is unknown.

    """

    def __init__(
        self,
        axes: Mapping[str, Any],
        *,
        zip: Iterable[Mapping[str, Any]] = (),
        exclude: Iterable[str] = (),
        set: Settings = (),
        name: str = "study",
        title: str = "",
        store: str | os.PathLike[str] = STORE,
        search: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.definition = defined(
            axes, zip=zip, exclude=exclude, set=set, name=name, title=title, store=store,
            search=search, **options,
        )  # fmt: skip

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Study:
        """Return a study from its file (``docs/FORMATS.md``).

        Raises:
            InputError: The file cannot be read; the message has file and line.

        """
        made = cls.__new__(cls)
        made.definition = load(path)
        return made

    @property
    def store(self) -> Path:
        """The folder of its results."""
        return self.definition.store

    def plan(self) -> Plan:
        """Return the study's runs, each checked; nothing is carried out.

        Raises:
            InputError: A run could not be carried out.

        """
        return planned(self.definition)

    def run(
        self,
        *,
        jobs: int | None = None,
        cluster: str = "local",
        retry_failed: bool = False,
        keep: str = "tables",
        watcher: Watcher | None = None,
    ) -> Frame:
        """Carry out the runs that the store lacks, and return all results.

        A run that fails becomes a row whose ``failure`` has the reason; the others go on.

        Args:
            jobs: Number of workers; one for each core by default.
            cluster: ``local``, ``slurm``, or the address of a Dask scheduler.
            retry_failed: Try again the runs that failed before.
            keep: ``tables``, or ``record``: numbers without tables over time.
            watcher: Object that is told about the progress.

        """
        where = Where(cluster, jobs)
        if self.definition.search is not None:
            search.check(self.definition)
            store = Store.open(self.store, create=True)
            search.carry_out(
                self.definition, store, where=where, keep=keep, watcher=watcher,
                retry_failed=retry_failed,
            )  # fmt: skip
            return self.results()
        plan = self.plan()
        store = Store.open(self.store, create=True)
        noted = results.note(plan, store)
        due, done = execution.due(plan.runs, store, retry_failed=retry_failed)
        execution.carry_out(due, store, done, where=where, keep=keep, watcher=watcher)
        return results.frame_of(store, noted)

    def results(self) -> Frame:
        """Return the results so far: a row for each run, axes as factors."""
        store = Store.open(self.store)
        return results.frame_of(store, results.noted(store, self.definition.name))
