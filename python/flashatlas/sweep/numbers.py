"""Numbers of a run that are asked first: what they are called, and which way is better."""

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
"""Numbers that are asked first, and what they are called."""

SHOWN = ("waf", "latency_ns.read.p99", "latency_ns.write.p99", "iops", "memory_bytes.map",
         "ns_per_lookup", "bytes.lpmt")  # fmt: skip
"""Those that a table has where nobody asks for others."""

_HIGHER = re.compile(r"^iops|bandwidth|hit_ratio|hits$")


def asked_of(numbers: Sequence[str], of: Sequence[str] = ()) -> list[str]:
    """The numbers that are wanted: ``of``, or those of :data:`SHOWN` that there are."""
    return list(of) or [name for name in SHOWN if name in numbers]


def title_of(name: str) -> str:
    """What a number is called."""
    return FIRST.get(name, name)


def higher_is_better(name: str) -> bool:
    """Whether more of a number is better."""
    return bool(_HIGHER.search(name))
