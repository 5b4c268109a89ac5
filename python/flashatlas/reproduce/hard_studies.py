"""The runs of the HARD experiment, and what they measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flashatlas.reproduce.experiment import Application
from flashatlas.result import Result

NONE, HARD = "none", "hard"
STAGES = ("SW", "SR", "RR", "RW", "SR after RW", "RR after RW")
"""IOzone's order, and both reads of what random writes left."""


class Key(NamedTuple):
    """Which run: its study, what is varied there, and the layers."""

    study: str
    value: str | int | float | tuple[int, int]
    stack: str


@dataclass(frozen=True)
class Studies:
    """Every run, by what it is of."""

    experiment: dict[str, Any] = field(repr=False)
    application: Application
    runs: dict[Key, Result] = field(repr=False)

    @property
    def results(self) -> list[Result]:
        """Every run."""
        return list(self.runs.values())

    def of(self, study: str, value: str | int | float | tuple[int, int], stack: str = HARD) -> Result:
        """One run."""
        return self.runs[Key(study, value, stack)]

    def random_write(self, size: int, stack: str) -> float:
        """Fig. 14.4: bytes a second of random writes of one size."""
        return self.of("figure 14.4", size, stack).record["bandwidth_bytes_per_s"]

    def stage(self, record: int, depth: int, stack: str, stage: str) -> float:
        """Fig. 14.5: bytes a second of one of :data:`STAGES`."""
        job = self.of("figure 14.5", (record, depth), stack).jobs["jobs"][STAGES.index(stage)]
        moved = job["read"]["bytes"] + job["write"]["bytes"]
        return moved / job["runtime_ns"] * 1e9

    def gain(self, record: int, depth: int, stage: str) -> float:
        """Speed of a stage with the layer over that without it."""
        return self.stage(record, depth, HARD, stage) / self.stage(record, depth, NONE, stage)
