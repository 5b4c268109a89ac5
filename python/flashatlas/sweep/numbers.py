"""The most wanted numbers of a run: their titles, and the direction that is better."""

from __future__ import annotations

import re
from collections.abc import Sequence

FIRST = {
    "waf": "Write amplification",
    "latency_ns.read.p50": "Read p50",
    "latency_ns.read.p99": "Read p99",
    "latency_ns.read.p99_9": "Read p99.9",
    "latency_ns.write.p50": "Write p50",
    "latency_ns.write.p99": "Write p99",
    "latency_ns.write.p99_9": "Write p99.9",
    "iops": "Requests a second",
    "bandwidth_bytes_per_s": "Bandwidth",
    "memory_bytes.map": "Map memory",
    "map.hit_ratio": "Map hit ratio",
    "nand.erases": "Erases",
    "wear.max": "Most erases of a block",
    "merges.log_blocks": "Log blocks reclaimed",
    "merges.data_blocks": "Data blocks merged",
    "ns_per_lookup": "Time of a lookup",
    "bytes.lpmt": "DRAM of the LPMT",
}
"""The most wanted numbers, with their titles."""

SHOWN = ("waf", "latency_ns.read.p99", "latency_ns.write.p99", "iops", "memory_bytes.map",
         "ns_per_lookup", "bytes.lpmt")  # fmt: skip
"""Numbers that a table has by default."""

_HIGHER = re.compile(r"^iops|bandwidth|hit_ratio|hits$")


def asked_of(numbers: Sequence[str], of: Sequence[str] = ()) -> list[str]:
    """Return ``of``, or by default the numbers of :data:`SHOWN` that exist."""
    return list(of) or [name for name in SHOWN if name in numbers]


def title_of(name: str) -> str:
    """Return the title of a number."""
    return FIRST.get(name, name)


def higher_is_better(name: str) -> bool:
    """Return ``True`` if a higher value of a number is better."""
    return bool(_HIGHER.search(name))
