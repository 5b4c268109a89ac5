"""The runs of the HPB experiment, and their measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flashatlas.reproduce.layered import NONE, Studies
from flashatlas.reproduce.workloads import Application
from flashatlas.results.result import Result

HPB = "hpb-host"
STAGES = ("warm", "RR", "SR", "SW", "RW", "RR after RW")
"""Stages; the first warms the host's cache, the last reads after the random writes."""


@dataclass(frozen=True)
class HpbStudies(Studies):
    """Every run, and the phones' traces."""

    phones: list[Application]

    def tiobench(self, threads: int, stack: str, stage: str) -> float:
        """Return the bytes per second of one of :data:`STAGES`."""
        return self.stage("tiobench", threads, stack, STAGES.index(stage))

    def gain(self, threads: int, stage: str) -> float:
        """Return the speed of a stage with the layer, divided by its speed without."""
        return self.tiobench(threads, HPB, stage) / self.tiobench(threads, NONE, stage)

    def gain_with_host_time(self, host_us: int, stage: str) -> float:
        """Return the gain of a stage with one request at a time, and host time between requests."""
        at = STAGES.index(stage)
        return self.stage("host time", host_us, HPB, at) / self.stage(
            "host time", host_us, NONE, at
        )

    def mixed(self, reads: int, chunk: int, stack: str) -> float:
        """Return the bytes per second of mixed work: ``reads`` percent reads of 4 KB in chunks."""
        return float(self.of("mixed", (reads, chunk), stack).record["bandwidth_bytes_per_s"])

    def mixed_gain(self, reads: int, chunk: int) -> float:
        """Return the speed of mixed work with the layer, divided by its speed without."""
        return self.mixed(reads, chunk, HPB) / self.mixed(reads, chunk, NONE)

    def service_ns(self, stack: str) -> float:
        """Return the nanoseconds of a random read of 4 KB, one at a time."""
        return float(self.experiment["tiobench"]["record"]) / self.tiobench(1, stack, "RR") * 1e9

    def implied_overhead_ns(self, gain: float) -> float:
        """Return the host time per read for which the drive's own times result in ``gain``."""
        miss, hit = self.service_ns(NONE), self.service_ns(HPB)
        return (miss - (1 + gain) * hit) / gain

    def phone(self, name: str, host_bytes: int | None) -> Result:
        """Return a phone's run with ``host_bytes`` of host memory; ``None``: without the layer."""
        if host_bytes is None:
            return self.of("phone", name, NONE)
        return self.of("phone", (name, host_bytes), HPB)


def layer(result: Result) -> dict[str, Any]:
    """Return the counters of the map in host and drive."""
    found: dict[str, Any] = result.record["layers"][HPB]
    return found


def read_mean_ns(result: Result) -> float:
    """Return the mean latency of reads."""
    return float(result.latency["read"]["mean"])
