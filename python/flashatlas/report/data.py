"""What the charts show, out of the tables of a result: small enough for a page, exact where it is shown."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flashatlas.report.words import BACKGROUND, OPERATIONS, RUN_COLOURS
from flashatlas.result import Result

Rows = list[dict[str, Any]]

ROWS_MAX = 400
"""Rows of a time series in the page for a single run; for several they share four times as many."""


def labels(results: Sequence[Result]) -> list[str]:
    """A name for each run, no two alike."""
    names: list[str] = []
    for result in results:
        name, number = result.name, 2
        while name in names:
            name, number = f"{result.name} ({number})", number + 1
        names.append(name)
    return names


def _columns(table: pa.Table) -> dict[str, list[Any]]:
    return {name: table.column(name).to_pylist() for name in table.column_names}


def _groups(rows: int, most: int) -> list[range]:
    step = -(-rows // most)
    return [range(start, min(start + step, rows)) for start in range(0, rows, step)]


def time_series(results: Sequence[Result]) -> dict[str, Rows]:
    """Rows for the charts over time, by chart: ``rate``, ``latency_OP``, ``background``."""
    most = ROWS_MAX if len(results) == 1 else max(4 * ROWS_MAX // len(results), 40)
    rows: dict[str, Rows] = {"rate": [], "background": []}
    for name, result in zip(labels(results), results, strict=True):
        table = result.tables.get("series")
        if table is None or "start_ns" not in table.column_names:
            continue
        columns = _columns(table)
        zeros = [0] * table.num_rows
        copies = [
            sum(values)
            for values in zip(*(columns.get(f"programs_{cause}", zeros) for cause in BACKGROUND), strict=True)
        ]
        for group in _groups(table.num_rows, most):
            start = columns["start_ns"][group[0]] / 1e9
            width = sum(columns["width_ns"][i] for i in group) / 1e9
            at = {"run": name, "start": start, "end": start + width}
            done = sum(columns.get(f"{op}_requests", zeros)[i] or 0 for op in OPERATIONS for i in group)
            rows["rate"].append({**at, "value": done / width})
            rows["background"].append({**at, "value": sum(copies[i] for i in group) / width})
            for op in OPERATIONS:
                known = [v for i in group if (v := columns.get(f"{op}_p99_ns", [None] * table.num_rows)[i]) is not None]
                if known:
                    longest = max(v for i in group if (v := columns[f"{op}_max_ns"][i]) is not None)
                    point = {**at, "value": max(known) / 1e3, "max": longest / 1e3}
                    rows.setdefault(f"latency_{op}", []).append(point)
    return {chart: found for chart, found in rows.items() if found}


def distributions(results: Sequence[Result]) -> dict[str, Rows]:
    """Points of the latency distribution by operation: share of requests that took no longer."""
    most = max(1200 // len(results), 60)
    points: dict[str, Rows] = {}
    for name, result in zip(labels(results), results, strict=True):
        table = result.tables.get("latency")
        if table is None:
            continue
        columns = _columns(table)
        for op in OPERATIONS:
            bins = [
                (edge, count)
                for kind, edge, count in zip(columns["op"], columns["latency_ns"], columns["count"], strict=True)
                if kind == op
            ]
            total, below = sum(count for _, count in bins), 0
            last = -1.0
            for number, (edge, count) in enumerate(bins):
                below += count
                # the slowest request of all stands half a request from the end
                nines = -math.log10(max(total - below, 0.5) / total)
                if number in (0, len(bins) - 1) or nines - last >= 8 / most:
                    last = nines
                    point = {"run": name, "latency": max(edge, 1) / 1e3, "nines": nines}
                    point |= {"share": below / total, "slower": total - below}
                    points.setdefault(op, []).append(point)
    return points


def wear(results: Sequence[Result]) -> Rows:
    """Share of blocks by erases; neighbouring counts are taken together where there are many."""
    rows: Rows = []
    most = max((t.column("erases").to_pylist() or [0])[-1] for r in results if (t := r.tables.get("wear")) is not None)
    step = max(-(-(most + 1) // 60), 1)
    for name, result in zip(labels(results), results, strict=True):
        table = result.tables.get("wear")
        if table is None:
            continue
        bins: dict[int, int] = {}
        for erases, blocks in zip(table.column("erases").to_pylist(), table.column("blocks").to_pylist(), strict=True):
            bins[erases // step * step] = bins.get(erases // step * step, 0) + blocks
        rows += [{"run": name, "from": low, "to": low + step, "blocks": blocks} for low, blocks in sorted(bins.items())]
    return rows


def resources(results: Sequence[Result]) -> Rows:
    """Busy share of every die and channel; of a large drive, of the least, the mean and the most busy."""
    rows: Rows = []
    for name, result in zip(labels(results), results, strict=True):
        table = result.tables.get("resources")
        for row in table.to_pylist() if table is not None else []:
            rows.append({"run": name, "kind": row["kind"] + "s", "index": row["index"], "busy": row["busy"]})
    return rows if len(rows) <= 1200 else rows[:: -(-len(rows) // 1200)]


EXPLORER_BYTES_MAX = 1_300_000
"""Of all explorer data in a page, as text."""


def explorer(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Frames of each run for the block explorer: quantised, as differences from frame to frame, deflated."""
    found = []
    with_blocks = [pair for pair in zip(labels(results), results, strict=True) if "blocks" in pair[1].tables]
    for name, result in with_blocks:
        keep = 1
        packed = _pack(name, result.tables["blocks"], keep)
        while len(packed["data"]) > EXPLORER_BYTES_MAX / len(with_blocks) and packed["frames"] > 4:
            keep *= 2
            packed = _pack(name, result.tables["blocks"], keep)
        found.append(packed)
    return found


def _pack(name: str, table: pa.Table, keep: int) -> dict[str, Any]:
    cells = max(table.column("cell").to_pylist()) + 1
    frames = table.num_rows // cells
    # every keep-th frame, and always the last
    chosen = sorted({*range(0, frames, keep), frames - 1})
    timed = "time_ns" in table.column_names
    times = table.column("time_ns" if timed else "request").to_pylist()
    roles = table.column("role").combine_chunks()
    roles = roles.dictionary_encode() if not isinstance(roles.type, pa.DictionaryType) else roles
    erases = table.column("erases").to_pylist()
    most = max([*erases, 1])
    valid = table.column("valid").to_pylist()
    planes = [
        bytes(min(round(v * 250), 250) for v in valid),
        bytes(min(round(e / most * 250), 250) for e in erases),
        bytes(roles.indices.to_pylist()),
    ]
    stream = bytearray()
    for plane in planes:
        before = bytes(cells)
        for frame in chosen:
            now = plane[frame * cells : (frame + 1) * cells]
            stream += bytes((a - b) & 255 for a, b in zip(now, before, strict=True))
            before = now
    return {
        "run": name,
        "cells": cells,
        "frames": len(chosen),
        "timed": timed,
        "times": [times[frame * cells] for frame in chosen],
        "blocks": table.column("blocks").to_pylist()[:cells],
        "erases": most,
        "roles": roles.dictionary.to_pylist(),
        "data": base64.b64encode(zlib.compress(bytes(stream), 9)).decode(),
    }


def colours(results: Sequence[Result]) -> dict[str, str]:
    """The colour of each run."""
    names = labels(results)
    return {name: RUN_COLOURS[i % len(RUN_COLOURS)] for i, name in enumerate(names)}
