"""Writes of whole drives, and the places where their speed changes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashatlas.calibration import logs
from flashatlas.reproduce.drives.published import GB, Drive, Measured, short
from flashatlas.reproduce.table import Listing

TITLE = "Whole fills"

HEAD = (
    "preset", "curve", "end of the cache", "in the cache", "behind it", "folding from", "folding",
    "whole fill",
)  # fmt: skip

NONE = "–"

POINTS = 100
"""Number of points of our curve of each drive."""


@dataclass(frozen=True)
class Levels:
    """The levels of a write curve, each with its end in GB and its MB/s."""

    parts: Sequence[tuple[float, float]]
    mean: float | None
    """MB/s over the whole drive; ``None`` if nobody published it."""


def of_run(run: Measured) -> Levels:
    """Return the levels of a run that writes a whole drive."""
    curve, breaks = run.curve, run.breaks
    stretch = curve.end / logs.POINTS  # the distance at which breaks are looked for
    borders = [0.0, *breaks, curve.end]
    rates = []
    for first, last in itertools.pairwise(borders):
        # a break lies anywhere in its stretches, which are therefore left out of the means
        inner = first + stretch * (first > 0), last - stretch * (last < curve.end)
        rates.append(run.rate(*inner))
    ends = [
        _crossing(run, place, stretch, before, after)
        for place, before, after in zip(breaks, rates, rates[1:], strict=False)
    ]
    parts = [(end / GB, rate) for end, rate in zip([*ends, curve.end], rates, strict=True)]
    return Levels(parts, run.rate(0, curve.end))


def _crossing(run: Measured, place: float, stretch: float, before: float, after: float) -> float:
    """Return where a rate changes, if the time around a break is that of two constant rates."""
    first, last = place - stretch, place + stretch
    seconds = (last - first) * run.curve.mean(first, last)
    slow, fast = 1 / (before * 1e6), 1 / (after * 1e6)
    at = (seconds + first * slow - last * fast) / (slow - fast)
    return min(max(at, first), last)


def published(drive: Drive) -> Levels:
    """Return the levels that are published of a drive."""
    parts = [(part["until_gb"], part["mb_per_s"]) for part in drive.published["curve"]]
    means = [n["value"] for n in drive.published["number"] if n["what"] == "fill-rate"]
    return Levels(parts, means[0] if means else None)


def cells(preset: str, name: str, levels: Levels) -> tuple[str, ...]:
    """Return the cells of a curve; all after the second level is folding."""
    first, *rest = levels.parts
    made = [f"{first[0]:,.0f} GB", f"{first[1]:,.0f} MB/s"]
    made.append(f"{rest[0][1]:,.0f} MB/s" if rest else NONE)
    if len(rest) > 1:
        size = rest[-1][0] - rest[0][0]
        parts = itertools.pairwise(rest)
        seconds = sum((end - begin) / rate for (begin, _), (end, rate) in parts)
        made += [f"{rest[0][0]:,.0f} GB", f"{size / seconds:,.0f} MB/s"]
    else:
        made += [NONE, NONE]
    made.append(NONE if levels.mean is None else f"{levels.mean:,.0f} MB/s")
    return (preset, name, *made)


def listing(fills: Sequence[tuple[Drive, Measured]], experiment: Mapping[str, Any]) -> Listing:
    """Return the table of whole fills, with the published curve of each drive above ours."""
    rows = []
    for drive, run in fills:
        source = short(drive.published["curve"][0]["source"])
        rows.append(cells(drive.preset, source, published(drive)))
        rows.append(cells(drive.preset, "ours", of_run(run)))
    size, depth = experiment["curve"]["size"], experiment["curve"]["depth"]
    note = (
        f"Sequential writes of {size}, {depth} in flight, over the whole of a blank drive. "
        "Folding: no block is free, so the cache is folded while the host writes."
    )
    return Listing(TITLE, "", HEAD, rows, note)


def points(
    drives: Sequence[Drive], runs: Mapping[str, Measured]
) -> list[tuple[str, str, float, float]]:
    """Return the points of write curves: preset, ``published`` or ``ours``, GB written, MB/s."""
    made: list[tuple[str, str, float, float]] = []
    for drive in drives:
        if drive.preset not in runs:
            continue
        run = runs[drive.preset]
        end, first = run.curve.end, 0.0
        for part in drive.published["curve"]:
            last = min(part["until_gb"], end / GB)
            if last > first:
                made += [
                    (drive.preset, "published", place, part["mb_per_s"]) for place in (first, last)
                ]
            first = part["until_gb"]
        for n in range(POINTS):
            a, b = end * n / POINTS, end * (n + 1) / POINTS
            made.append((drive.preset, "ours", (a + b) / 2 / GB, run.rate(a, b)))
    return made
