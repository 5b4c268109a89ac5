"""Tables in the terminal, and the rows that tables and reports share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.markup import escape
from rich.table import Table

from flashatlas.fio_json import percentile
from flashatlas.inputs.drive import FLASH
from flashatlas.results.result import Result


@dataclass(frozen=True)
class Row:
    """One line of a comparison.

    It has a name, a source, a way to print, and the direction that is better.
    """

    name: str
    value: Callable[[dict[str, Any]], float | None]
    text: Callable[[float], str]
    better: str = ""
    """The better direction: ``low``, ``high`` or empty."""
    group: str = ""
    """The heading above the row."""


def path(*keys: str) -> Callable[[dict[str, Any]], float | None]:
    """Return a function that finds the number under these keys of a record, or ``None``."""

    def find(record: dict[str, Any]) -> float | None:
        node: Any = record
        for key in keys:
            if not isinstance(node, dict) or key not in node:
                return None
            node = node[key]
        return node

    return find


def duration(ns: float) -> str:
    """Return nanoseconds in the unit that reads best."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:,.3g} {unit}" if ns < 1000 * size else f"{ns / size:,.0f} {unit}"
    return f"{ns:.0f} ns"


def size(count: float) -> str:
    """Return bytes in binary units."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count:.0f} B"


def word(value: Any, unit: str) -> str:
    """Return a value of a factor with its unit; a file by its name."""
    if value is None:
        return "–"
    if unit in ("bytes", "ns"):
        return in_unit(value, unit)
    return str(value).rsplit("/", 1)[-1]


def in_unit(value: float, unit: str) -> str:
    """Return a number of a record in a unit (``units.py``), with about four digits."""
    text = {"ns": duration, "bytes": size}.get(unit)
    return text(value) if text else f"{value:,.4g}"


def speed(bytes_per_s: float) -> str:
    """Return bytes per second in decimal units."""
    return f"{bytes_per_s / 1e6:,.1f} MB/s"


def number(count: float) -> str:
    """Return a count with separators."""
    return f"{count:,.0f}"


def percent(share: float) -> str:
    """Return a share of one in percent."""
    return f"{100 * share:.1f} %"


def fine_percent(share: float) -> str:
    """Return a share of one in percent, with two digits however small it is."""
    return f"{100 * share:.1f} %" if share >= 0.1 or share == 0 else f"{100 * share:.2g} %"


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

    By Little's law (Operations Research 9 (3), 1961), it is the number of completions a second,
    multiplied by the mean time from submission to completion.
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
"""The share of the queue depth from which a run that ignores the times of a trace is crowded."""


def crowded(record: Mapping[str, Any]) -> bool:
    """Return ``True`` if a run that ignores the times of its trace fills half of the queue.

    Without ``--mode open`` requests come as fast as the queue takes them. With half the queue in
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
    """Return a counter of a map whose pages are read or written; ``None`` for other maps."""
    find = path("map", key)

    def value(record: dict[str, Any]) -> float | None:
        pages = record.get("map", {})
        moved = pages.get("flash_reads", 0) + pages.get("flash_writes", 0)
        return find(record) if moved else None

    return value


STEADY = "numbers are steady"
"""The name of the row that shows if a run's numbers would stay in a longer run.

The steady state of a drive is another thing: the state of its flash when a run begins.
"""

RECLAIMED = ("switch", "partial", "full", "dead", "moved")
"""The ways in which a log block is reclaimed."""


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


def best(row: Row, values: Sequence[float | None]) -> set[int]:
    """Return the columns that are best in a row; none if all print alike."""
    known = [value for value in values if value is not None]
    if not row.better or len(known) < 2 or row.text(min(known)) == row.text(max(known)):
        return set()
    target = row.text(min(known) if row.better == "low" else max(known))
    return {i for i, value in enumerate(values) if value is not None and row.text(value) == target}


def unlike(results: Sequence[Result]) -> str:
    """Return what the runs do not share, in words; empty if one of them may be the best.

    Numbers of different traces, drives or preconditions have no winner.
    """
    differing = []
    for name, read in (
        ("trace or workload", lambda r: r.get("trace", {}).get("path")),
        ("drive", lambda r: r.get("config", {}).get("drive")),
        ("capacity (generated requests depend on it)", _capacity),
        ("precondition", lambda r: r.get("config", {}).get("precondition")),
        ("mode", lambda r: r.get("config", {}).get("mode")),
    ):
        if len({str(read(result.record)) for result in results}) > 1:
            differing.append(name)
    return ", ".join(differing)


def _capacity(record: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the settings that decide the exported size, if requests are generated over it."""
    if record.get("trace", {}).get("format") not in ("generator", "fio"):
        return None
    params = record.get("config", {}).get("params", {})
    if pages := params.get("drive.logical_pages"):
        return pages, params.get("map.unit")
    return tuple(params.get(key) for key in (*FLASH, "drive.page_bytes", "drive.over_provisioning"))


def filled_rows(results: Sequence[Result]) -> list[tuple[Row, list[float | None]]]:
    """Return the rows for which at least one result has a value."""
    rows = [(row, [row.value(result.record) for result in results]) for row in ROWS]
    return [(row, values) for row, values in rows if any(value is not None for value in values)]


def ranked_rows(results: Sequence[Result]) -> list[tuple[Row, list[float | None], set[int]]]:
    """Return the filled rows with the best columns of each; among unlike runs none is best."""
    apart = unlike(results)
    return [
        (row, values, set() if apart else best(row, values)) for row, values in filled_rows(results)
    ]


GAP = 2
"""Spaces between two columns of a table in the terminal."""


def comparison(results: Sequence[Result], width: int) -> list[Table]:
    """Return tables with a column for each result; the best of each row is bold green and starred.

    If ``width`` has no room for all columns, they are split over several tables.
    """
    rows = ranked_rows(results)

    def cell(row: Row, value: float | None, wins: bool) -> str:
        return "–" if value is None else f"{row.text(value)}{' *' if wins else ''}"

    columns = [
        [cell(row, values[i], i in first) for row, values, first in rows]
        for i in range(len(results))
    ]
    names = [result.label or result.record["config"]["drive"] for result in results]
    needed = [
        GAP + max(map(len, (name, *cells))) for name, cells in zip(names, columns, strict=True)
    ]
    room = width - max((len(row.name) for row, _, _ in rows), default=0)
    tables = []
    for group in _groups(needed, room):
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("", no_wrap=True)
        for i in group:
            table.add_column(escape(names[i]), justify="right", no_wrap=needed[i] <= room)
        for at, (row, _, first) in enumerate(rows):
            cells = [
                f"[bold green]{columns[i][at]}[/]" if i in first else columns[i][at] for i in group
            ]
            table.add_row(row.name, *cells)
        tables.append(table)
    return tables


MANY = 12
"""Number of runs from which a table has a row for each run."""

TURNED = (
    "write amplification",
    "map hit ratio",
    "erases",
    "read p99",
    "write p99",
    "requests a second",
    STEADY,
    "violations",
)
"""Rows that become columns if every run has a row; ``flashatlas table`` has the others."""


def turned(results: Sequence[Result]) -> Table:
    """Return a table with a row for each result, and the best of each column starred."""
    rows = [found for found in ranked_rows(results) if found[0].name in TURNED]
    names = [result.label or result.record["config"]["drive"] for result in results]
    columns = [
        [
            ("–" if value is None else row.text(value)) + (" *" if at in first else "")
            for at, value in enumerate(values)
        ]
        for row, values, first in rows
    ]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    for (row, _, _), cells in zip(rows, columns, strict=True):
        # a heading may be broken, a value never
        wide = max(len(word) for word in (*row.name.split(), *cells))
        table.add_column(row.name, justify="right", min_width=wide, max_width=wide)
    for at, name in enumerate(names):
        table.add_row(escape(name), *(cells[at] for cells in columns))
    return table


def _groups(needed: Sequence[int], room: int) -> list[list[int]]:
    """Return groups of columns, in order, with as many as fit into the room; at least one each."""
    groups: list[list[int]] = []
    left = 0
    for i, width in enumerate(needed):
        if not groups or width > left:
            groups.append([])
            left = room
        groups[-1].append(i)
        left -= width
    return groups


JOBS = ("job", "", "requests", "a second", "bandwidth", "mean", "p99", "max")
"""Columns of :func:`job_rows`."""


def job_rows(statistics: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of a fio job file's jobs: one for each job and operation."""
    rows: list[tuple[str, ...]] = []
    for job in statistics["jobs"]:
        seconds = job["runtime_ns"] / 1e9
        for op in ("read", "write", "trim"):
            done = job[op]
            if not done["ios"]:
                continue
            latency = done["latency_ns"]
            rate = done["ios"] / seconds if seconds else 0.0
            bandwidth = speed(done["bytes"] / seconds if seconds else 0.0)
            p99 = duration(percentile(latency["bins"], sum(n for _, n in latency["bins"]), 99))
            name = job["name"] if job["jobs"] == 1 else f"{job['name']} ({job['jobs']})"
            mean, most = duration(latency["mean"]), duration(latency["max"])
            rows.append((name, op, number(done["ios"]), number(rate), bandwidth, mean, p99, most))
    return rows


def jobs(statistics: dict[str, Any]) -> Table:
    """Return the rows of :func:`job_rows` as a listing."""
    return listing(JOBS, job_rows(statistics))


def whole(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a plain listing whose headings and values are never broken.

    A terminal that is too narrow breaks its lines (print it with ``soft_wrap``).
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for at, column in enumerate(columns):
        wide = max(len(str(text)) for text in (column, *(row[at] for row in rows)))
        table.add_column(escape(column), min_width=wide, max_width=wide)
    for row in rows:
        table.add_row(*(escape(str(text)) for text in row))
    return table


def listing(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a plain listing."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        table.add_column(escape(column), no_wrap=i == 0, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    return table
