"""Made-up results of runs.

They test reports without a simulation, and with content that a small run never has.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
from flashatlas import Result

PAGE_MAPPED, LOG_BLOCKS = ("closed", "closed", "open"), ("data", "data", "log")
"""Roles of written blocks; most blocks have the first role."""

NOTES = ["changes of the map take no time", "the drive was filled in address order"]


def fake(
    label: str = "",
    *,
    seed: int = 1,
    timed: bool = True,
    rows: int = 60,
    frames: int = 8,
    cells: int = 200,
    dies: int = 8,
    waf_parts: dict[str, float] | None = None,
    tables: bool = True,
    notes: list[str] | None = None,
    params: dict[str, Any] | None = None,
    violations: int = 0,
    areas: tuple[str, ...] = (),
    **more: Any,
) -> Result:
    """Return one result, different for each seed.

    With ``areas``, the result is of a scheme whose log has these areas.
    """
    rng = random.Random(seed)
    parts = (
        {"cache_evict": 1.0, "gc": 0.5 + seed / 10, "idle": 0.05}
        if waf_parts is None
        else waf_parts
    )
    record: dict[str, Any] = {
        "schema": "flashatlas.run/2",
        "version": "0.1.0",
        "config_hash": "ab" * 32,
        "config": {
            "drive": "tlc-small",
            "mode": "closed" if timed else "untimed",
            "precondition": "steady",
            "fit": "error",
            "warmup": 100,
            "depth": 8,
            "params": {
                "ftl.victim": "greedy",
                "timing.t_read": "60us",
                "map.unit": 4096,
                **(params or {}),
            },
        },
        "seed": seed,
        "trace": {"path": "uniform:requests=100000", "format": "generator", "requests": 100_000},
        "approximations": [
            {"code": "of-a-part", "text": text, "values": {}}
            for text in (NOTES if notes is None else notes)
        ],
        "host": {
            "reads": 50_000,
            "writes": 50_000,
            "read_bytes": 204_800_000,
            "write_bytes": 204_800_000,
        },
        "nand": {"programs": {"cache_evict": 50_000, "gc": 30_000}, "erases": {"gc": 1_234 + seed}},
        "waf": sum(parts.values()),
        "waf_parts": parts,
        "memory_bytes": {
            "map_dram": 2**20,
            "tables": {"L2P map": 2**20, "valid counts": 2**17 * seed},
        },
        "wear": {"min": 3, "mean": 7.5, "max": 12 + seed, "stddev": 1.5, "blocks": cells},
        "oracle": {
            "units_checked": 4_000,
            "units_swept": 6_000,
            "violations": violations,
            "examples": ["page 7 held <b>old</b> data"][:violations],
        },
        **more,
    }
    if areas:
        record["merges"] = merges(seed)
    if timed:
        record |= {
            "simulated_ns": 2_000_000_000,
            "iops": 50_000.0 + seed,
            "bandwidth_bytes_per_s": 204_800_000.0,
            "latency_ns": {op: _percentiles(rng) for op in ("read", "write")},
            "utilisation": {
                "dies": {"count": dies, "mean": 0.6, "min": 0.5, "max": 0.7},
                "channels": {"count": 4, "mean": 0.2, "min": 0.1, "max": 0.3},
                "link_in": 0.1,
                "link_out": 0.2,
                "dies_at_work_mean": 5.5,
            },
        }
    made = {}
    if tables:
        roles = LOG_BLOCKS if areas else PAGE_MAPPED
        made = {
            "series": series(rng, rows, timed, areas),
            "wear": wear(rng),
            "blocks": blocks(rng, frames, cells, timed, roles),
        }
        if timed:
            made |= {"latency": latency(rng), "resources": resources(rng, dies)}
    return Result(record, label, made)


def _percentiles(rng: random.Random) -> dict[str, float]:
    base = rng.uniform(50_000, 90_000)
    steps = {"p50": 1, "p90": 2, "p99": 10, "p99_9": 60, "p99_99": 200, "max": 400}
    return {"count": 50_000, "mean": base * 1.4} | {
        name: base * factor for name, factor in steps.items()
    }


def merges(seed: int) -> dict[str, Any]:
    """Return merges as a log-block scheme counts them.

    One class has a count of zero, and some log blocks merged nothing.
    """
    return {
        "data_blocks": {"switch": 0, "partial": 40 * seed, "full": 300},
        "log_blocks": {"switch": 0, "partial": 40 * seed, "full": 100, "dead": 7, "moved": 20},
        "sequential_full": 3,
        "moved_pages": 900,
        "migrated_blocks": 5,
        "association": {"mean": 3.0, "max": 8},
        "in_place": 0,
        "order_detours": 0,
        "copies": 19_000,
    }


def series(rng: random.Random, rows: int, timed: bool, areas: tuple[str, ...]) -> pa.Table:
    """Return intervals with bursts of collection, and stretches in which nothing was read."""
    width = 2_000_000_000 // rows
    columns: dict[str, list[Any]] = {
        "requests_from": [1 + 100_000 * k // rows for k in range(rows)]
    }
    busy = [0.5 + 0.4 * math.sin(k / 9) + rng.uniform(-0.1, 0.1) for k in range(rows)]
    if timed:
        columns |= {"start_ns": [k * width for k in range(rows)], "width_ns": [width] * rows}
        for op in ("read", "write"):
            silent = [op == "read" and 20 <= k * 60 // rows < 30 for k in range(rows)]
            columns[f"{op}_requests"] = [
                0 if quiet else int(1000 * b) for quiet, b in zip(silent, busy, strict=True)
            ]
            columns[f"{op}_bytes"] = [4096 * n for n in columns[f"{op}_requests"]]
            for name, factor in (("mean", 1.3), ("p50", 1.0), ("p99", 9.0), ("max", 40.0)):
                columns[f"{op}_{name}_ns"] = [
                    None if quiet else 60_000 * factor * b
                    for quiet, b in zip(silent, busy, strict=True)
                ]
        for name in ("die_busy", "channel_busy", "link_in_busy", "link_out_busy"):
            columns[name] = busy
        columns["in_flight_mean"] = [8 * b for b in busy]
    columns |= {
        "waf": [None if k == 3 else 1 + b for k, b in enumerate(busy)],
        "cache_dirty_units": [int(500 * b) for b in busy],
        "free_blocks": [int(40 * b) for b in busy],
        "collected_foreground": [int(5 * b) if k % 11 < 4 else 0 for k, b in enumerate(busy)],
        "collected_idle": [2 if k % 17 == 0 else 0 for k in range(rows)],
        "map_hits": [900] * rows,
        "map_misses": [int(100 * b) for b in busy],
    }
    for area in areas:
        # an area without blocks has no share of valid pages
        columns[f"area_{area}_utilisation"] = [None if k < 3 else b for k, b in enumerate(busy)]
        columns[f"area_{area}_blocks"] = [0 if k < 3 else 4 + k % 5 for k in range(rows)]
        columns[f"area_{area}_budget"] = [8] * rows
    return pa.table(columns)


def latency(rng: random.Random, bins: int = 2_000) -> pa.Table:
    """Return a histogram with a long tail."""
    edges = sorted({int(5_000 * 1.004**k) + k for k in range(bins)})
    return pa.table(
        {
            "op": pa.array([op for op in ("read", "write") for _ in edges]).dictionary_encode(),
            "latency_ns": edges * 2,
            "count": [
                1 + int(rng.random() * 500 / (1 + abs(k - 700) / 40)) for k in range(len(edges))
            ]
            * 2,
        }
    )


def wear(rng: random.Random) -> pa.Table:
    """Return a histogram of blocks by erases."""
    return pa.table(
        {"erases": list(range(3, 15)), "blocks": [rng.randrange(1, 60) for _ in range(12)]}
    )


def resources(rng: random.Random, dies: int) -> pa.Table:
    """Return the busy shares of dies and four channels."""
    kinds = ["die"] * dies + ["channel"] * 4
    return pa.table(
        {
            "kind": pa.array(kinds).dictionary_encode(),
            "index": [*range(dies), *range(4)],
            "busy": [rng.uniform(0.5, 0.7) for _ in range(dies)]
            + [rng.uniform(0.1, 0.3) for _ in range(4)],
        }
    )


def blocks(
    rng: random.Random, frames: int, cells: int, timed: bool, roles: tuple[str, ...] = PAGE_MAPPED
) -> pa.Table:
    """Return frames of blocks; in each frame some blocks are written and some are erased."""
    valid, erases, role = [1.0] * cells, [3.0] * cells, [roles[0]] * cells
    rows: dict[str, list[Any]] = {
        name: [] for name in ("frame", "at", "cell", "blocks", "valid", "erases", "role")
    }
    for f in range(frames):
        for _ in range(cells // 4):
            c = rng.randrange(cells)
            if rng.random() < 0.3:
                valid[c], erases[c], role[c] = 0.0, erases[c] + 0.5, "free"
            else:
                valid[c], role[c] = max(valid[c] - rng.random() / 3, 0.1), rng.choice(roles)
        rows["frame"] += [f] * cells
        rows["at"] += [(f + 1) * 31_250_000] * cells
        rows["cell"] += range(cells)
        rows["blocks"] += [4] * (cells - 1) + [2]
        rows["valid"] += valid
        rows["erases"] += erases
        rows["role"] += role
    rows["time_ns" if timed else "request"] = rows.pop("at")
    table = pa.table(rows)
    return table.set_column(
        table.column_names.index("role"), "role", table["role"].dictionary_encode()
    )
