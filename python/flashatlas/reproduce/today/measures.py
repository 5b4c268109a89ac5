"""The numbers by which two maps are compared, and the numbers that decide a gain.

A measurement takes the record of one run. More is better in each number of :data:`BY`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flashatlas.reproduce.workloads import flash_seconds
from flashatlas.results.units import duration, number, percent

Record = Mapping[str, Any]

FLUSHES_OF_A_CALL = 2
"""FLUSHes of one fdatasync of the workload ``ext4-sync`` that extends a file."""


def calls(record: Record) -> float:
    """Return the calls of fdatasync in a second of simulated time."""
    flushes: int = record["host"]["flushes"]
    return flushes / FLUSHES_OF_A_CALL / (record["simulated_ns"] / 1e9)


def requests(record: Record) -> float:
    """Return the requests per second."""
    return float(record["iops"])


def efficiency(record: Record) -> float:
    """Return the megabytes that the host writes in a second of flash work (MAST, section 4)."""
    return float(record["host"]["write_bytes"]) / flash_seconds(record) / 1e6


def lookups(record: Record) -> float:
    """Return the lookups per second of a lookup engine that never rests."""
    return 1e9 / float(record["ns_per_lookup"])


def _flush_time(record: Record) -> str:
    return duration(record["latency_ns"]["flush"]["mean"])


def _block_pages(record: Record) -> str:
    return number(record["config"]["params"]["drive.pages"])


def _hit_ratio(record: Record) -> str:
    return percent(record["map"]["hit_ratio"])


def _activations(record: Record) -> str:
    timings, reads = record["timings"], record["reads_per_lookup"]
    return f"{timings['faw'] / (timings['dl'] * reads):.2f}"


def _at_work(record: Record) -> str:
    return percent(record["lookup"]["lookup_ns"]["mean"] * record["iops"] / 1e9)


def _merged(record: Record) -> str:
    return f"{record['controller'].get('rmw_units', 0) / record['host']['writes']:.2f}"


BY: dict[str, tuple[str, Callable[[Record], float]]] = {
    "calls": ("calls/s", calls),
    "requests": ("requests/s", requests),
    "efficiency": ("MB/s of flash work", efficiency),
    "lookups": ("lookups/s", lookups),
}
"""For each number that maps are compared by: its unit and its measurement."""

DECIDES: dict[str, Callable[[Record], str]] = {
    "time of a FLUSH": _flush_time,
    "pages of a block": _block_pages,
    "map hit ratio": _hit_ratio,
    "four activations over a set's reads": _activations,
    "time at work of the lookup engine": _at_work,
    "read-modify-writes of a request": _merged,
}
"""The measurement of each number that decides a gain, in the run of the map that is compared."""
