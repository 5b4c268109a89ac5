"""Charts of latency: the distribution of each operation, and its percentiles."""

from __future__ import annotations

import math
from typing import Any

from flashatlas.report.chart import (
    NEAR,
    RUN,
    Absent,
    Chart,
    Columns,
    Section,
    axis,
    hover,
    number_field,
    rounded,
    text_field,
)
from flashatlas.report.palette import Runs
from flashatlas.results.units import duration

OPS = ("read", "write", "trim", "flush")

BEGIN = 0.01
"""The share of requests at which the axis of a distribution begins."""

PERCENTILES = {
    "p50": "50",
    "p90": "90",
    "p99": "99",
    "p99_9": "99.9",
    "p99_99": "99.99",
    "max": "max",
}


def section(runs: Runs) -> Section:
    """Return each operation's distribution and percentiles, side by side."""
    made = Section(
        "latency",
        "Latency",
        "From arrival to completion. Time is logarithmic: steps to the right are multiples.",
    )
    if not any(result.latency for result in runs.results):
        made.parts = [Absent("Latency", "the runs were untimed: nothing in them took time.")]
        return made
    made.parts = [runs.key()] if not runs.single else []
    for op in OPS:
        if any(op in result.latency for result in runs.results):
            made.parts += [distribution(runs, op), percentiles(runs, op)]
    return made


def _said(runs: Runs, op: str) -> str:
    parts = []
    for name, result in zip(runs.names, runs.results, strict=True):
        values = result.latency.get(op, {})
        if values:
            words = [
                f"{label} {duration(values[key])}"
                for key, label in (("p50", "median"), ("p99", "99 %"))
                if key in values
            ]
            parts.append(f"{name}: " + ", ".join(words))
    return "; ".join(parts)


def _line(runs: Runs, **more: Any) -> dict[str, Any]:
    return {"type": "line", "strokeWidth": 1.8, "clip": True, **more}


def cumulate(latencies: list[int], counts: list[int], most: int) -> tuple[list[int], list[float]]:
    """Return the cumulative distribution of a histogram, with at most about ``most`` points.

    A bin is kept if it is a visible step away from the last kept bin. The step is measured in the
    logarithm of the latency plus the logarithm of the share that is not done yet. Kept bins are
    exact. The first point is zero at the least latency, so that even a single bin is a line.
    """
    order = sorted(range(len(latencies)), key=latencies.__getitem__)
    total = sum(counts)
    span = math.log(max(latencies[order[-1]], 1) / max(latencies[order[0]], 1)) or 1.0
    tail = math.log(max(total, 2))
    xs, ys = [latencies[order[0]]], [0.0]
    seen, at, left = 0, -math.inf, math.inf
    for k, place in enumerate(order):
        seen += counts[place]
        x, rest = math.log(max(latencies[place], 1)), math.log(max(total - seen, 0.5))
        if k in (0, len(order) - 1) or (x - at) / span + (left - rest) / tail >= 2 / most:
            xs.append(latencies[place])
            ys.append(seen / total)
            at, left = x, rest
    return xs, ys


def distribution(runs: Runs, op: str) -> Chart | Absent:
    """Return the chart of the share of requests done within a time."""
    title = f"{op.capitalize()}: distribution"
    data: Columns = {"run": [], "x": [], "y": [], "left": [], "near": []}
    starts: list[int] = []
    for i, result in enumerate(runs.results):
        table = result.tables.get("latency")
        if table is None:
            continue
        rows = table.to_pydict()
        mine = [k for k, name in enumerate(rows["op"]) if name == op and rows["count"][k] > 0]
        if not mine:
            continue
        xs, ys = cumulate(
            [rows["latency_ns"][k] for k in mine],
            [rows["count"][k] for k in mine],
            NEAR // len(runs),
        )
        data["run"] += [i] * len(xs)
        data["x"] += [max(x, 1) for x in xs]
        data["y"] += [rounded(y, 12) for y in ys]
        starts.append(next(x for x, y in zip(xs, ys, strict=True) if y >= BEGIN))
    if not data["run"]:
        return Absent(title, "no run has a latency histogram.")
    # a logarithmic axis has no place for 0, the share that is left at the end, so it ends just
    # before
    end = min((1 - y for y in data["y"] if y < 1), default=1.0) / 2
    data["left"] = [rounded(max(1 - y, end), 12) for y in data["y"]]
    # the axis begins at the share BEGIN: a few very short requests would take half of it
    low, high = max(min(starts), 1), max(data["x"])
    data["near"] = [int(x >= low) for x in data["x"]]
    x = {
        "field": "x",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [low / 1.1, high * 1.1], "nice": False},
        "axis": axis(
            "duration",
            values=decades(low, high),
            labelOverlap="greedy",
            labelSeparation=4,
            title=f"latency of a {op}",
        ),
    }
    y = {
        "field": "left",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [1, end], "nice": False},
        "axis": axis("nines", values=nines(end), title=f"share of all {op}s done"),
    }
    tooltip = [
        *([] if runs.single else [text_field("run", "run")]),
        number_field("x", "within", "duration"),
        number_field("y", f"of all {op}s", "share"),
    ]
    channels = ("color", "strokeDash")
    return Chart(
        f"cdf-{op}",
        title,
        f"Share of {op}s done within a time. {_said(runs, op)}",
        {
            "height": 220,
            "data": {"name": "cdf"},
            "layer": [
                {
                    "mark": _line(runs, interpolate="step-after"),
                    "encoding": {"x": x, "y": y, **runs.encoding(*channels)},
                },
                hover("near", {"x": x, "y": y, "tooltip": tooltip, **runs.encoding("color")}),
            ],
        },
        {"cdf": data},
        {"cdf": (title, [RUN, ("x", "Within", "duration"), ("y", "Share done", "share")])},
        lead="Share of requests done within a time. The vertical axis is "
        "logarithmic in the share that is left, so that the slowest requests are visible.",
        wide=False,
    )


def nines(end: float) -> list[float]:
    """Return the ticks of a distribution as shares that are not done yet: a half, then tenths.

    >>> nines(0.004)
    [1.0, 0.5, 0.1, 0.01]
    """
    steps = [float(f"1e-{digits}") for digits in range(1, 13)]
    return [1.0, 0.5, *(left for left in steps if left >= end)]


def percentiles(runs: Runs, op: str) -> Chart:
    """Return the chart of the latency's percentiles."""
    title = f"{op.capitalize()}: percentiles"
    data: Columns = {"run": [], "p": [], "y": []}
    for i, result in enumerate(runs.results):
        for key, label in PERCENTILES.items():
            value = result.latency.get(op, {}).get(key)
            if value is not None:
                data["run"].append(i)
                data["p"].append(label)
                data["y"].append(rounded(max(value, 1), 12))
    labels = [label for label in PERCENTILES.values() if label in data["p"]]
    low, high = min(data["y"], default=1), max(data["y"], default=10)
    x = {
        "field": "p",
        "type": "nominal",
        "sort": None,
        "scale": {"domain": labels, "type": "point", "padding": 0.25},
        "axis": {"title": f"percentile of all {op}s", "grid": True, "labelAngle": 0},
    }
    y = {
        "field": "y",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [low / 1.3, high * 1.3], "nice": False},
        "axis": axis("duration", values=decades(low, high), title="latency"),
    }
    tooltip = [
        *([] if runs.single else [text_field("run", "run")]),
        text_field("p", "percentile"),
        number_field("y", "latency", "duration"),
    ]
    return Chart(
        f"percentiles-{op}",
        title,
        f"Percentiles of {op} latency. {_said(runs, op)}",
        {
            "height": 220,
            "data": {"name": "percentiles"},
            "layer": [
                {
                    "mark": _line(runs),
                    "encoding": {"x": x, "y": y, **runs.encoding("color", "strokeDash")},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
                    "encoding": {
                        "x": x,
                        "y": y,
                        "tooltip": tooltip,
                        **runs.encoding("color", "shape"),
                    },
                },
            ],
        },
        {"percentiles": data},
        {"percentiles": (title, [RUN, ("p", "Percentile", "text"), ("y", "Latency", "duration")])},
        lead="The time within which this percentage of the requests is done.",
        wide=False,
    )


def decades(low: float, high: float) -> list[float]:
    """Return round values for a logarithmic axis: 1, 2 and 5 times each power of ten in reach.

    A wide axis has only the powers of ten, so there are never too many values.
    """
    first, last = math.floor(math.log10(max(low, 1))), math.ceil(math.log10(max(high, 1)))
    steps = (1,) if last - first > 3 else (1, 2, 5)
    return [
        s * 10.0**e
        for e in range(first, last + 1)
        for s in steps
        if low / 1.3 <= s * 10.0**e <= high * 1.3
    ]
