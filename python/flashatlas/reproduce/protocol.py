"""What every experiment has: a name, options of its own, a plan, tables and a page.

An experiment is a folder with ``plan.py`` (what is run, and what came out), ``tables.py`` (what the
terminal shows) and ``page.py`` (the report), described in its ``__init__.py`` and listed in
``registry.py``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from flashatlas.reproduce.table import Listing
from flashatlas.reproduce.workloads import Application
from flashatlas.result import Result

if TYPE_CHECKING:
    from flashatlas.sweep.store import Store

Progress = Callable[[int, str, int, float | None], None]
"""As for :func:`flashatlas.compare`: number of the run, phase, requests, share done."""


HERE = "here"
"""Runs are carried out by this process, without workers of their own; a store keeps them."""


@dataclass(frozen=True)
class Kept:
    """A store that keeps the runs of an experiment."""

    root: Path
    """The folder of the store."""
    name: str
    """What the study is called in it."""
    title: str
    cluster: str = "local"
    """As for :meth:`flashatlas.Study.run`, or :data:`HERE`."""
    keys: list[str] = field(default_factory=list, compare=False, repr=False)
    """Runs that were asked for so far, also by :meth:`step`."""

    def step(self, name: str) -> Kept:
        """The same store, for one of several studies that an experiment has."""
        return replace(self, name=f"{self.name}-{name}", title=f"{self.title}: {name}")

    def done(self) -> int:
        """Return how many of the runs that were asked for are in the store."""
        if not self.keys:
            return 0
        store = self.opened()
        return sum(map(store.has, dict.fromkeys(self.keys)))

    def opened(self) -> Store:
        """The store; it is made where there is none."""
        from flashatlas.sweep.store import Store  # noqa: PLC0415  (the extra [study] has it all)

        return Store.open(self.root, create=True)


class Made(Protocol):
    """An experiment, carried out."""

    @property
    def results(self) -> list[Result]:
        """Every run."""

    def to_json(self) -> dict[str, Any]:
        """All numbers."""


class Planned(Protocol):
    """What an experiment is going to run."""

    @property
    def labels(self) -> list[str]:
        """A name for each run, or for each step that is shown."""

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
        """Run all of it; arguments as for :func:`flashatlas.reproduce.runs.carried_out`."""


@dataclass(frozen=True)
class ExperimentOption:
    """An option that one experiment has beside those of all."""

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
    """The folder of what was published, under ``papers/``."""
    help: str
    """What it repeats, and what it shows beyond that."""
    options: tuple[ExperimentOption, ...] = ()

    def _module(self, part: str) -> Any:
        folder = self.name.replace("-", "_")
        return importlib.import_module(f"flashatlas.reproduce.{folder}.{part}")

    def plan(self, **options: Any) -> Planned:
        """What is run: ``traces``, ``stand_ins`` and the experiment's own options."""
        planned: Planned = self._module("plan").plan(**options)
        return planned

    def kept(self, root: Path, cluster: str) -> Kept:
        """A store that keeps its runs as a study of its name."""
        return Kept(root, self.name, self.help.partition("\n")[0].rstrip("."), cluster)

    def listings(self, made: Made) -> list[Listing]:
        """What the terminal shows."""
        found: list[Listing] = self._module("tables").listings(made)
        return found

    def page(self, made: Made, command: str) -> str:
        """The report as HTML; ``command`` runs all of it again."""
        html: str = self._module("page").page(made, command)
        return html
