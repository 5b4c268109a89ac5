"""Tables in the terminal; the best number of a row is marked if the runs can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from flashatlas.fio_json import percentile
from flashatlas.results.result import Result
from flashatlas.results.rows import FLASH, ROWS, STEADY, Row
from flashatlas.results.units import duration, number, speed


def best(row: Row, values: Sequence[float | None]) -> set[int]:
    """Return the columns with the best number of a row; none if all numbers print alike."""
    known = [value for value in values if value is not None]
    if not row.better or len(known) < 2 or row.text(min(known)) == row.text(max(known)):
        return set()
    target = row.text(min(known) if row.better == "low" else max(known))
    return {i for i, value in enumerate(values) if value is not None and row.text(value) == target}


def unlike(results: Sequence[Result]) -> str:
    """Return the properties in which runs differ, in words; empty if a best run may be marked.

    Among numbers of different traces, drives or preconditions, none is the best.
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
    """Return the settings of the exported size; ``None`` if requests do not depend on it."""
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
    """Return the filled rows with their best columns; no column is best if the runs are unlike."""
    apart = unlike(results)
    return [
        (row, values, set() if apart else best(row, values)) for row, values in filled_rows(results)
    ]


GAP = 2
"""Spaces between two columns of a table in the terminal."""


def comparison(results: Sequence[Result], width: int) -> list[Table]:
    """Return tables with a column for each result; the best number of a row is green and starred.

    If ``width`` is too small for all columns, they are split over several tables.
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
"""The least number of runs for which a table has a row for each run."""

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
"""The columns of a table with a row for each run; ``flashatlas table`` shows other numbers."""


def turned(results: Sequence[Result]) -> Table:
    """Return a table with a row for each result; the best number of a column is starred."""
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
        # headings may be broken over lines, values never
        wide = max(len(word) for word in (*row.name.split(), *cells))
        table.add_column(row.name, justify="right", min_width=wide, max_width=wide)
    for at, name in enumerate(names):
        table.add_row(escape(name), *(cells[at] for cells in columns))
    return table


def _groups(needed: Sequence[int], room: int) -> list[list[int]]:
    """Return groups of consecutive columns that fit into ``room``; a group has at least one."""
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
    """Return a row for each job of a fio job file and each operation."""
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

    Print it with ``soft_wrap``; a narrow terminal then breaks the lines itself.
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
