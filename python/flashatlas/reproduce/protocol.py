"""The interface of every experiment: a name, its own options, a plan, tables and a page.

An experiment is a folder with ``plan.py`` (its runs and its outcome), ``tables.py`` (for the
terminal) and ``page.py`` (the report). Its ``__init__.py`` describes it, and ``registry.py`` lists
it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from flashatlas.reproduce.table import Listing
from flashatlas.reproduce.workloads import Application
from flashatlas.results.result import Result

if TYPE_CHECKING:
    from flashatlas.sweep.store import Store

Progress = Callable[[int, str, int, float | None], None]
"""A function as for :func:`flashatlas.compare`: number, phase, requests, share done."""


HERE = "here"
"""Place of runs that this process carries out without workers; a store keeps them."""


@dataclass(frozen=True)
class Kept:
    """A store that keeps the runs of an experiment."""

    root: Path
    """The folder of the store."""
    name: str
    """The name of the study in it."""
    title: str
    cluster: str = "local"
    """The cluster, as for :meth:`flashatlas.Study.run`, or :data:`HERE`."""
    keys: list[str] = field(default_factory=list, compare=False, repr=False)
    """Keys of the runs requested so far; the stores of :meth:`step` share the list."""

    def step(self, name: str) -> Kept:
        """Return the same store for one of an experiment's several studies."""
        return replace(self, name=f"{self.name}-{name}", title=f"{self.title}: {name}")

    def done(self) -> int:
        """Return the number of different requested runs that are in the store."""
        if not self.keys:
            return 0
        store = self.opened()
        return sum(map(store.has, dict.fromkeys(self.keys)))

    def opened(self) -> Store:
        """Return the store; it is made if it does not exist."""
        from flashatlas.sweep.store import Store  # noqa: PLC0415  (the extra [study] has it all)

        return Store.open(self.root, create=True)


class Made(Protocol):
    """An experiment, carried out."""

    @property
    def results(self) -> list[Result]:
        """Every run."""

    def to_json(self) -> dict[str, Any]:
        """Return all numbers."""


class Planned(Protocol):
    """The planned runs of an experiment."""

    @property
    def labels(self) -> list[str]:
        """A label for each run, or for each step that is shown."""

    @property
    def workloads(self) -> Sequence[Application]:
        """The workloads that may be recorded traces."""

    def carry_out(
        self,
        *,
        jobs: int | None = None,
        progress: Progress | None = None,
        kept: Kept | None = None,
    ) -> Made:
        """Carry out all runs; arguments as for :func:`flashatlas.reproduce.runs.carried_out`."""


@dataclass(frozen=True)
class ExperimentOption:
    """An option of one experiment, in addition to the common options."""

    name: str
    type: Any
    default: Any
    help: str
    least: int | None = None


@dataclass(frozen=True)
class Experiment:
    """An experiment, as the command line finds it."""

    name: str
    """``reproduce NAME``; its folder has underscores."""
    paper: str
    """The folder under ``papers/`` with the published results."""
    help: str
    """The help text; it names the repeated results, and the results beyond the paper."""
    options: tuple[ExperimentOption, ...] = ()

    def _module(self, part: str) -> Any:
        folder = self.name.replace("-", "_")
        return importlib.import_module(f"flashatlas.reproduce.{folder}.{part}")

    def plan(self, **options: Any) -> Planned:
        """Return the plan; options are ``traces``, ``stand_ins`` and the experiment's own."""
        planned: Planned = self._module("plan").plan(**options)
        return planned

    def kept(self, root: Path, cluster: str) -> Kept:
        """Return a store that keeps the experiment's runs, as a study with its name."""
        return Kept(root, self.name, self.help.partition("\n")[0].rstrip("."), cluster)

    def listings(self, made: Made) -> list[Listing]:
        """Return the tables for the terminal."""
        found: list[Listing] = self._module("tables").listings(made)
        return found

    def page(self, made: Made, command: str) -> str:
        """Return the report as HTML; ``command`` runs everything again."""
        html: str = self._module("page").page(made, command)
        return html
