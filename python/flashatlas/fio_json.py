"""Statistics of jobs in the format of ``fio --output-format=json+``, for tools that read it.

The layout is the layout of fio 3.33. The values that a simulation cannot measure are zero:
processor times, context switches, page faults, submission latencies, errors and dates. A simulated
drive is not a disk of the machine, so the output has no ``disk_util``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FIO_VERSION = "fio-3.33"
"""The version of fio whose layout is written."""

PERCENTILES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
"""fio's default ``percentile_list``."""

DEPTHS = ("1", "2", "4", "8", "16", "32", ">=64")
BATCHES = ("0", "4", "8", "16", "32", "64", ">=64")
LATENCIES = ("2", "4", "10", "20", "50", "100", "250", "500", "750", "1000")
LATENCIES_MS = (*LATENCIES, "2000", ">=2000")

_Json = dict[str, Any]


def to_fio_json(record: Mapping[str, Any], jobs: Mapping[str, Any]) -> _Json:
    """Return the statistics of a run's jobs as fio would print them.

    Args:
        record: The run record; only its version is used.
        jobs: The statistics of the jobs (schema ``flashatlas.jobs/1``).

    """
    rows = jobs["jobs"]
    end_ns = max((row["start_ns"] + row["runtime_ns"] for row in rows), default=0)
    return {
        "fio version": f"{FIO_VERSION} (FlashAtlas {record['version']})",
        "timestamp": 0,
        "timestamp_ms": 0,
        "time": "Thu Jan  1 00:00:00 1970",
        "global options": dict(jobs["options"]),
        "jobs": [_job(row, _group_rates(rows, row["group"]), end_ns) for row in rows],
    }


def _job(row: Mapping[str, Any], group_kib: Mapping[str, float], end_ns: int) -> _Json:
    ios = sum(row[name]["ios"] for name in ("read", "write", "trim"))
    depths = row["depth_classes"]
    batches = [0, ios, 0, 0, 0, 0, 0]  # requests are submitted and completed one by one
    return {
        "jobname": row["name"],
        "groupid": row["group"],
        "error": 0,
        "eta": 0,
        "elapsed": -(-end_ns // 1_000_000_000),
        "job options": dict(row["options"]),
        **{
            name: _direction(row[name], row["runtime_ns"], group_kib[name])
            for name in ("read", "write", "trim")
        },
        "sync": {"total_ios": row["fsyncs"], "lat_ns": _times(row["sync"], percentiles=True)},
        "job_runtime": row["runtime_ns"] // 1_000_000 * row["jobs"],
        "usr_cpu": 0.0,
        "sys_cpu": 0.0,
        "ctx": 0,
        "majf": 0,
        "minf": 0,
        "iodepth_level": _shares(DEPTHS, depths, sum(depths)),
        "iodepth_submit": _shares(BATCHES, batches, ios),
        "iodepth_complete": _shares(BATCHES, batches, ios),
        "latency_ns": _shares(LATENCIES, row["latency_ns_classes"], ios),
        "latency_us": _shares(LATENCIES, row["latency_us_classes"], ios),
        "latency_ms": _shares(LATENCIES_MS, row["latency_ms_classes"], ios),
        "latency_depth": int(row["options"].get("iodepth", 1)),
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
        **({"steadystate": _steadystate(row["steadystate"])} if "steadystate" in row else {}),
    }


def _steadystate(settled: Mapping[str, Any]) -> _Json:
    name, unit = settled["criterion"], "%" if settled["percent"] else ""
    found = settled["found"] or 0.0
    share = settled["found_percent"] or 0.0
    means = {f"{of}_mean": int(sum(v) / max(len(v), 1)) for of, v in _measured(settled).items()}
    return {
        "ss": f"{name}:{settled['limit']:f}{unit}",
        "duration": settled["duration_ns"] // 1_000_000_000,
        "attained": int(settled["attained"]),
        "criterion": f"{share if unit else found:f}{unit}",
        "max_deviation": 0.0 if name.endswith("_slope") else found,
        "slope": found if name.endswith("_slope") else 0.0,
        "data": {**means, **{of: [int(x) for x in v] for of, v in _measured(settled).items()}},
    }


def _measured(settled: Mapping[str, Any]) -> dict[str, Sequence[float]]:
    # fio 3.33 prints no latencies here; later versions do, if the criterion is a latency
    latencies = {"lat": settled["latency_ns"]} if settled["criterion"].startswith("lat") else {}
    return {"bw": settled["bandwidth"], "iops": settled["iops"], **latencies}


def _direction(stats: Mapping[str, Any], runtime_ns: int, group_kib: float) -> _Json:
    # fio prints a runtime of zero for a direction without requests
    seconds = runtime_ns / 1e9 if stats["issued"] else 0.0
    rate = stats["bytes"] / seconds if seconds else 0.0
    bandwidth, iops = stats["bandwidth_kib"], stats["iops"]
    return {
        "io_bytes": stats["bytes"],
        "io_kbytes": stats["bytes"] // 1024,
        "bw_bytes": int(rate),
        "bw": int(rate) // 1024,
        "iops": round(stats["ios"] / seconds, 6) if seconds else 0.0,
        "runtime": round(seconds * 1000),
        "total_ios": stats["ios"],
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0},
        "clat_ns": _times(stats["latency_ns"], percentiles=True),
        "lat_ns": _times(stats["latency_ns"], percentiles=False),
        "bw_min": int(bandwidth["min"]),
        "bw_max": int(bandwidth["max"]),
        "bw_agg": round(min(100.0, 100 * bandwidth["mean"] / group_kib), 6) if group_kib else 0.0,
        "bw_mean": round(bandwidth["mean"], 6),
        "bw_dev": round(bandwidth["stddev"], 6),
        "bw_samples": bandwidth["samples"],
        "iops_min": int(iops["min"]),
        "iops_max": int(iops["max"]),
        "iops_mean": round(iops["mean"], 6),
        "iops_stddev": round(iops["stddev"], 6),
        "iops_samples": iops["samples"],
    }


def _times(times: Mapping[str, Any], *, percentiles: bool) -> _Json:
    table = {
        "min": times["min"],
        "max": times["max"],
        "mean": round(times["mean"], 6),
        "stddev": round(times["stddev"], 6),
        "N": times["count"],
    }
    if percentiles and times["count"]:
        table["percentile"] = {
            f"{p:.6f}": percentile(times["bins"], times["count"], p) for p in PERCENTILES
        }
        table["bins"] = {str(value): count for value, count in times["bins"]}
    return table


def percentile(bins: Sequence[Sequence[int]], count: int, percent: float) -> int:
    """Return the smallest value such that ``percent`` of the values are at or below it.

    ``bins`` are values with their counts, in ascending order; ``count`` is the sum of the counts.
    """
    wanted = count * percent / 100
    seen = 0
    for value, number in bins:
        seen += number
        if seen >= wanted:
            return value
    return bins[-1][0] if bins else 0


def _shares(names: Sequence[str], counts: Sequence[int], total: int) -> dict[str, float]:
    """Return each count as a percentage of ``total``, by class."""
    return {
        name: round(100 * n / total, 6) if total else 0.0
        for name, n in zip(names, counts, strict=True)
    }


def _group_rates(rows: Sequence[Mapping[str, Any]], group: int) -> dict[str, float]:
    """Return the KiB per second that a group of jobs transferred, by direction."""
    members = [row for row in rows if row["group"] == group]
    seconds = max(row["runtime_ns"] for row in members) / 1e9
    return {
        name: sum(row[name]["bytes"] for row in members) / 1024 / seconds if seconds else 0.0
        for name in ("read", "write", "trim")
    }
