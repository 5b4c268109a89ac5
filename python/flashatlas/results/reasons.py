"""Texts about the parts of latencies, from ``explain`` in a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flashatlas.results.result import Result
from flashatlas.results.units import duration, percent

REASONS = {
    "host_queue": "waiting at the host",
    "layer": "layers above the drive",
    "controller": "controller",
    "throttle": "throttling of writes",
    "tables": "tables in memory",
    "link_queue": "waiting for the link",
    "link": "host link",
    "cache": "waiting for the write cache",
    "die_queue": "waiting for a die",
    "channel_queue": "waiting for the channel",
    "channel": "channel",
    "read": "cells sensed",
    "program": "cells programmed",
    "suspension": "suspended for reads",
    "collection": "collection",
    "merge": "merges",
    "map": "map pages",
    "erase": "erases",
    "wear": "wear levelling",
    "idle": "work begun in idle time",
    "repair": "spare blocks and mounts",
}
"""Titles of the reasons, in the order of a record."""

SHOWN = 0.01
"""The smallest share of a latency that is printed."""

COLUMNS = ("run", "op", "latencies", "requests", "mean", "made of")


def shares(group: Mapping[str, Any]) -> dict[str, float]:
    """Return each reason's share of the mean latency of a group; empty if that mean is zero."""
    total = group["mean_ns"]
    return {reason: part / total for reason, part in group["parts_ns"].items()} if total else {}


def in_words(group: Mapping[str, Any]) -> str:
    """Return a text with the reasons of a group's latency, the largest share first."""
    found = sorted(shares(group).items(), key=lambda part: -part[1])
    named = [f"{REASONS[reason]} {percent(share)}" for reason, share in found if share >= SHOWN]
    return ", ".join(named) or "no time"


def rows(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Return two rows for each run and operation: up to p50, and from the percentile on."""
    return [row for result in results for row in _rows(result)]


def _rows(result: Result) -> Iterator[tuple[str, ...]]:
    explained = result.record.get("explain")
    if explained is None:
        return
    for op, slow in explained["ops"].items():
        half = [("up to p50", band) for band in slow["bands"] if band["from"] == "p0"]
        for which, group in (*half, (f"from {explained['percentile']} on", slow)):
            mean = duration(group["mean_ns"])
            yield result.name, op, which, f"{group['requests']:,}", mean, in_words(group)


def longest(result: Result) -> str:
    """Return a line about the request that took longest; empty if nothing was explained."""
    found = result.record.get("explain", {}).get("longest", ())
    if not found:
        return ""
    request = found[0]
    parts: dict[str, float] = {}
    for step in request["steps"]:
        spent = step["to_ns"] - step["from_ns"]
        parts[step["reason"]] = parts.get(step["reason"], 0.0) + spent
    made = in_words({"mean_ns": request["latency_ns"], "parts_ns": parts})
    return (
        f"The longest, a {request['op']} at {duration(request['arrived_ns'])}, took "
        f"{duration(request['latency_ns'])}: {made}"
    )
