"""Experiments with layers.

Each of their many runs belongs to a study, and has a value on the study's axis and a stack of
layers.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from flashatlas.reproduce.protocol import Kept, Progress
from flashatlas.reproduce.runs import carried_out
from flashatlas.results.result import Result

NONE = "none"
"""The name for no layers."""


class Key(NamedTuple):
    """The identity of a run: its study, its value on the study's axis, and its layers."""

    study: str
    value: str | int | float | tuple[int, ...] | tuple[str, int] | tuple[str, str, int, str]
    stack: str

    @property
    def label(self) -> str:
        """A label for the run."""
        value = self.value
        shown = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        return f"{self.study} {shown}, {self.stack}"


Cases = dict[Key, dict[str, Any]]
"""The options of each run."""


def add(cases: Cases, study: str, value: Any, stacks: list[str], **options: Any) -> None:
    """Add a run for each stack; the option ``set`` has settings besides the layers."""
    settings = options.pop("set", [])
    for stack in stacks:
        layers = [] if stack == NONE else [f"layers={stack.replace('+', ',')}"]
        cases[Key(study, value, stack)] = {**options, "set": [*settings, *layers]}


@contextmanager
def _jobs_folder(kept: Kept | None) -> Iterator[Path]:
    """Yield the folder of the job files; a store keeps them, so that runs can be repeated."""
    if kept is None:
        with tempfile.TemporaryDirectory(prefix="flashatlas-") as folder:
            yield Path(folder)
        return
    # open the store first: it refuses a folder that is not a store
    jobs = kept.opened().root / "jobs" / kept.name
    jobs.mkdir(parents=True, exist_ok=True)
    yield jobs.resolve()


@dataclass(frozen=True)
class Plan(ABC):
    """The runs of an experiment."""

    experiment: dict[str, Any] = field(repr=False)
    requests: int | None
    """Length of short runs in requests; ``None`` for whole runs."""

    @abstractmethod
    def cases(self, jobs_folder: Path) -> Cases:
        """Return the options of each run; job files are written to a folder."""

    @property
    def labels(self) -> list[str]:
        """A label for each run."""
        with tempfile.TemporaryDirectory(prefix="flashatlas-") as folder:
            return [key.label for key in self.cases(Path(folder))]

    def results(
        self, jobs: int | None, progress: Progress | None, kept: Kept | None
    ) -> dict[Key, Result]:
        """Carry out all runs, by default on the experiment's drive and precondition."""
        precondition = self.experiment["precondition"]
        with _jobs_folder(kept) as folder:
            cases = self.cases(folder)
            labelled: list[Any] = [
                {"label": key.label, "precondition": precondition, **options}
                for key, options in cases.items()
            ]
            results = carried_out(
                labelled,
                drive=self.experiment["drive"],
                jobs=jobs,
                progress=progress,
                kept=kept,
            )
        return dict(zip(cases, results, strict=True))


@dataclass(frozen=True)
class Studies:
    """Every run, by its identity."""

    experiment: dict[str, Any] = field(repr=False)
    runs: dict[Key, Result] = field(repr=False)

    @property
    def results(self) -> list[Result]:
        """Every run."""
        return list(self.runs.values())

    def of(self, study: str, value: Any, stack: str) -> Result:
        """Return one run."""
        return self.runs[Key(study, value, stack)]

    def stage(self, study: str, value: Any, stack: str, index: int) -> float:
        """Return the bytes per second of one job of a job file."""
        job = self.of(study, value, stack).jobs["jobs"][index]
        return (job["read"]["bytes"] + job["write"]["bytes"]) / job["runtime_ns"] * 1e9

    def runs_json(self) -> list[dict[str, Any]]:
        """Return the outcome of each run."""
        return [
            {
                "study": key.study,
                "value": key.value,
                "stack": key.stack,
                "bandwidth_bytes_per_s": result.record["bandwidth_bytes_per_s"],
                "waf": result.record.get("waf"),
                "layers": result.record.get("layers"),
                "violations": result.violations,
                "config_hash": result.record["config_hash"],
            }
            for key, result in self.runs.items()
        ]
