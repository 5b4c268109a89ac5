"""Rows of a comparison; a row finds one number in the record of a run, and prints it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from flashatlas.results.units import duration, fine_percent, number, percent, size, speed

FLASH = tuple(f"drive.{part}" for part in ("channels", "ways", "dies", "planes", "blocks", "pages"))
"""Keys that determine how many pages of flash a drive has."""


@dataclass(frozen=True)
class Row:
    """One line of a comparison.

    A row consists of a name, a function that finds a number, and a function that prints it.
    """

    name: str
    value: Callable[[dict[str, Any]], float | None]
    text: Callable[[float], str]
    better: str = ""
    """``low`` if smaller numbers are better, ``high`` if larger numbers are; else empty."""
    group: str = ""
    """The heading above the row."""


def path(*keys: str) -> Callable[[dict[str, Any]], float | None]:
    """Return a function that finds the number under these keys of a record, if it exists."""

    def find(record: dict[str, Any]) -> float | None:
        node: Any = record
        for key in keys:
            if not isinstance(node, dict) or key not in node:
                return None
            node = node[key]
        return node

    return find


def _positive(*keys: str) -> Callable[[dict[str, Any]], float | None]:
    find = path(*keys)
    return lambda record: find(record) or None


def _sum(*keys: str) -> Callable[[dict[str, Any]], float | None]:
    find = path(*keys)

    def total(record: dict[str, Any]) -> float | None:
        table = find(record)
        return sum(table.values()) if isinstance(table, dict) else None

    return total


def _map_memory(record: dict[str, Any]) -> float | None:
    memory = record.get("memory_bytes", {})
    return sum(value for key, value in memory.items() if key.startswith("map_")) or None


def _spare_share(record: dict[str, Any]) -> float | None:
    """Return the flash beyond the exported size, as a share of the exported size."""
    given = record["config"]["params"].get
    if (share := given("drive.over_provisioning")) is not None:
        return float(share)
    parts = ("channels", "ways", "dies", "planes", "blocks", "pages", "page_bytes")
    sizes = [given(f"drive.{name}") for name in parts]
    unit, exported = given("map.unit"), given("drive.logical_pages")
    if None in sizes or not unit or not exported:
        return None
    return float(math.prod(sizes)) / (exported * unit) - 1


def in_flight(record: Mapping[str, Any]) -> float | None:
    """Return the mean number of commands in flight; ``None`` for untimed runs.

    By Little's law (Operations Research 9 (3), 1961), this mean is the number of completions a
    second, multiplied by the mean time from submission to completion.
    """
    latencies, passed = record.get("latency_ns", {}).values(), record.get("simulated_ns")
    if not passed or any("service_mean" not in one for one in latencies):
        return None
    return float(sum(one["count"] * one["service_mean"] for one in latencies) / passed)


def _depth(record: Mapping[str, Any]) -> int | None:
    """Return the largest number of commands in flight; ``None`` for untimed runs."""
    config = record["config"]
    if "latency_ns" not in record:
        return None
    depth: int | None = config.get("depth", config.get("params", {}).get("host.queue_depth"))
    return depth


CROWDED = 0.5
"""The least mean number of commands in flight, as a share of the queue depth, of a crowded run."""


def crowded(record: Mapping[str, Any]) -> bool:
    """Return ``True`` if a run ignores the times of its trace and fills at least half the queue.

    Without ``--mode open``, a request is sent whenever the queue has room. If half the queue is in
    use, a request waits for many others.
    """
    without = record["config"]["mode"] == "asap"
    of_a_trace = record["trace"].get("format") not in ("generator", "fio")
    mean, depth = in_flight(record), _depth(record)
    if mean is None or not depth or depth == 1:
        return False
    return without and of_a_trace and mean >= CROWDED * depth


def _host_part(record: dict[str, Any]) -> float | None:
    parts = record.get("waf_parts", {})
    return sum(parts.get(cause, 0.0) for cause in ("host", "cache_evict", "rmw")) if parts else None


def _of_paged_maps(key: str) -> Callable[[dict[str, Any]], float | None]:
    """Return a function that finds a counter of a map if flash pages of the map were accessed."""
    find = path("map", key)

    def value(record: dict[str, Any]) -> float | None:
        pages = record.get("map", {})
        moved = pages.get("flash_reads", 0) + pages.get("flash_writes", 0)
        return find(record) if moved else None

    return value


STEADY = "numbers are steady"
"""The name of the row that shows whether a longer run would have the same numbers.

This is not the steady state of a drive, which is a state of the flash when a run begins.
"""

RECLAIMED = ("switch", "partial", "full", "dead", "moved")
"""The classes of reclaimed log blocks."""


def log_areas(columns: Iterable[str]) -> list[str]:
    """Return the areas of the log for which a series has columns."""
    suffix = "_utilisation"
    shares = [name for name in columns if name.startswith("area_") and name.endswith(suffix)]
    return [name.removeprefix("area_").removesuffix(suffix) for name in shares]


GROUPS = (
    (
        "Write amplification",
        (
            Row("write amplification", path("waf"), lambda x: f"{x:.3f}", "low"),
            Row("  host and cache", _host_part, lambda x: f"{x:.3f}"),
            Row("  collection", path("waf_parts", "gc"), lambda x: f"{x:.3f}", "low"),
            Row("  map pages", path("waf_parts", "map"), lambda x: f"{x:.3f}", "low"),
            Row("  merges", path("waf_parts", "merge"), lambda x: f"{x:.3f}", "low"),
            Row("  idle time", path("waf_parts", "idle"), lambda x: f"{x:.3f}"),
            Row("  wear levelling", path("waf_parts", "wear"), lambda x: f"{x:.3f}"),
            Row("  recovery", path("waf_parts", "recovery"), lambda x: f"{x:.3f}"),
            Row("  replaced blocks", path("waf_parts", "replace"), lambda x: f"{x:.3f}"),
            Row("  folds", path("waf_parts", "fold"), lambda x: f"{x:.3f}"),
            Row("  refresh", path("waf_parts", "refresh"), lambda x: f"{x:.3f}"),
            Row("  parity", path("waf_parts", "parity"), lambda x: f"{x:.3f}"),
            Row("padded units", _positive("nand", "padded_units"), number, "low"),
            Row("erases", _sum("nand", "erases"), number, "low"),
            Row("spare share", _spare_share, percent),
        ),
    ),
    (
        "Map",
        (
            Row("map hit ratio", _of_paged_maps("hit_ratio"), fine_percent, "high"),
            Row("map pages read", _of_paged_maps("flash_reads"), number, "low"),
            Row("map pages written", _of_paged_maps("flash_writes"), number, "low"),
        ),
    ),
    (
        "Merges",
        (
            Row("log blocks reclaimed", _sum("merges", "log_blocks"), number, "low"),
            *(Row(f"  {name}", path("merges", "log_blocks", name), number) for name in RECLAIMED),
            Row("data blocks merged", _sum("merges", "data_blocks"), number, "low"),
            Row("pages copied by merges", path("merges", "copies"), number, "low"),
            Row("pages moved in the log", path("merges", "moved_pages"), number, "low"),
            Row(
                "associated data blocks",
                path("merges", "association", "mean"),
                lambda x: f"{x:.2f}",
                "low",
            ),
        ),
    ),
    (
        "Latency",
        (
            Row("read mean", path("latency_ns", "read", "mean"), duration, "low"),
            Row("read p99", path("latency_ns", "read", "p99"), duration, "low"),
            Row("read p99.9", path("latency_ns", "read", "p99_9"), duration, "low"),
            Row("write mean", path("latency_ns", "write", "mean"), duration, "low"),
            Row("write p99", path("latency_ns", "write", "p99"), duration, "low"),
            Row("write p99.9", path("latency_ns", "write", "p99_9"), duration, "low"),
            Row("flush p99", path("latency_ns", "flush", "p99"), duration, "low"),
            Row("map lookup p50", path("lookup", "lookup_ns", "p50"), duration, "low"),
            Row("map lookup p99", path("lookup", "lookup_ns", "p99"), duration, "low"),
            Row("map change p99", path("lookup", "update_ns", "p99"), duration, "low"),
        ),
    ),
    (
        "Throughput",
        (
            Row("requests a second", path("iops"), number, "high"),
            Row("bandwidth", path("bandwidth_bytes_per_s"), speed, "high"),
            Row("commands in flight, mean", in_flight, lambda x: f"{x:,.1f}"),
            Row("  at most (queue depth)", _depth, number),
            Row(
                "dies at work, when any",
                path("utilisation", "dies_at_work_mean"),
                lambda x: f"{x:.2f}",
            ),
            Row("die utilisation", path("utilisation", "dies", "mean"), fine_percent),
        ),
    ),
    (
        "Wear and memory",
        (
            Row("wear: mean erases", path("wear", "mean"), lambda x: f"{x:.2f}", "low"),
            Row("wear: deviation", path("wear", "stddev"), lambda x: f"{x:.2f}", "low"),
            Row("wear: most erases", path("wear", "max"), number, "low"),
            Row(
                "SMART: percentage used",
                _positive("smart", "percentage_used"),
                lambda x: f"{x:.0f} %",
                "low",
            ),
            Row("SMART: media errors", _positive("smart", "media_errors"), number, "low"),
            Row("map memory", _map_memory, size, "low"),
        ),
    ),
    (
        "Checks",
        (
            Row("passes before the measured one", path("settling", "passes"), number),
            Row(STEADY, path("steady"), lambda x: "yes" if x else "no"),
            Row("units read, never written", _positive("host", "unmapped_reads"), number),
            Row("units checked by reads", path("oracle", "units_checked"), number),
            Row("units checked at the end", path("oracle", "units_swept"), number),
            Row("violations", path("oracle", "violations"), number, "low"),
        ),
    ),
)
"""Rows under their headings."""

ROWS = tuple(replace(row, group=group) for group, rows in GROUPS for row in rows)
