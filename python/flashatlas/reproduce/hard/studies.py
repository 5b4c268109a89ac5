"""The runs of the HARD experiment, and what they measured."""

from __future__ import annotations

from dataclasses import dataclass

from flashatlas.reproduce.layered import NONE, Studies
from flashatlas.reproduce.workloads import Application

HARD = "hard"
STAGES = ("SW", "SR", "RR", "RW", "SR after RW", "RR after RW")
"""IOzone's order, and both reads of what random writes left."""


@dataclass(frozen=True)
class HardStudies(Studies):
    """Every run, and what is recorded."""

    applications: list[Application]

    def random_write(self, size: int, stack: str) -> float:
        """Fig. 14.4: bytes a second of random writes of one size."""
        return float(self.of("figure 14.4", size, stack).record["bandwidth_bytes_per_s"])

    def iozone(self, record: int, depth: int, stack: str, stage: str) -> float:
        """Fig. 14.5: bytes a second of one of :data:`STAGES`."""
        return self.stage("figure 14.5", (record, depth), stack, STAGES.index(stage))

    def gain(self, record: int, depth: int, stage: str) -> float:
        """Speed of a stage with the layer over that without it."""
        return self.iozone(record, depth, HARD, stage) / self.iozone(record, depth, NONE, stage)
