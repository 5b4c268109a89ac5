"""The runs of the HARD experiment, and their measurements."""

from __future__ import annotations

from dataclasses import dataclass

from flashatlas.reproduce.layered import NONE, Studies
from flashatlas.reproduce.workloads import Application

HARD = "hard"
STAGES = ("SW", "SR", "RR", "RW", "SR after RW", "RR after RW")
"""Stages in IOzone's order, then both reads again after the random writes."""


@dataclass(frozen=True)
class HardStudies(Studies):
    """Every run, with its measurements."""

    applications: list[Application]

    def random_write(self, size: int, stack: str) -> float:
        """Return the bytes per second of random writes of one size (Fig. 14.4)."""
        return float(self.of("figure 14.4", size, stack).record["bandwidth_bytes_per_s"])

    def iozone(self, record: int, depth: int, stack: str, stage: str) -> float:
        """Return the bytes per second of one of :data:`STAGES` (Fig. 14.5)."""
        return self.stage("figure 14.5", (record, depth), stack, STAGES.index(stage))

    def gain(self, record: int, depth: int, stage: str) -> float:
        """Return the speed of a stage with the layer, divided by its speed without."""
        return self.iozone(record, depth, HARD, stage) / self.iozone(record, depth, NONE, stage)
