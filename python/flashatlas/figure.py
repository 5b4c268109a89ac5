"""Figures for papers: a number of many runs over a factor, as PDF, SVG or PNG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from flashatlas import charts
from flashatlas._core import InputError
from flashatlas.files import write_whole
from flashatlas.frame import Frame, frame
from flashatlas.intervals import PERCENTILE, REPLICATES, estimates
from flashatlas.result import Result

WIDTHS = {1: 241, 2: 505}
"""Points across one column and two of the usual two-column page (3.35 and 7 inches)."""

HEIGHTS = (20, 2000)
"""Points of the lowest panel and the highest."""

SUFFIXES = (".pdf", ".svg", ".png")

SCALES = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")),
    "bytes": ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "bytes")),
    "bytes/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "bytes/s")),
}
"""Units that a long number is written in: the largest that leaves the smallest value above 1."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Told apart in print and by the colour-blind (Okabe and Ito, 2008)."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")

DASHES = ([1, 0], [4, 2], [1, 1.5], [6, 2, 1, 2])

SIGNS: dict[str, tuple[Any, ...]] = {"color": COLOURS, "shape": SHAPES, "strokeDash": DASHES}

BARS = ("range", "interval")
"""What the bar of a point is: from the least run to the largest, or the interval of the mean."""

CHANNELS = {
    "line": ("color", "shape", "strokeDash"),
    "point": ("color", "shape"),
    "bar": ("color",),
}
"""What tells the values of ``by`` apart in each kind of figure."""


def figure(
    results: Iterable[Result] | Frame,
    path: str | Path,
    *,
    x: str,
    y: str,
    by: str | None = None,
    panel: str | None = None,
    columns: int = 1,
    kind: str = "line",
    height: int | None = None,
    bars: str = BARS[0],
) -> Path:
    """Draw a number over a factor, and write it to a file.

    Runs that share ``x``, ``by`` and ``panel`` (seeds, say) are one point: their mean, with a bar
    from the least to the largest, or over the interval of the mean.

    Args:
        results: The runs, or their :func:`flashatlas.frame`.
        path: ``.pdf``, ``.svg`` or ``.png``.
        x: The column across (``map.cache_bytes``).
        y: The column upward (``waf``, ``latency_ns.read.p99``).
        by: The column told apart by colour, dash and shape.
        panel: The column with a panel a value.
        columns: 1 or 2: as wide as a column or two of a printed page.
        kind: ``line``, ``point`` or ``bar``.
        height: Points; of one panel.
        bars: ``range``: from the least run to the largest; ``interval``: of 95 % of the mean over
            seeds (Student's t; the bootstrap for percentiles).

    Raises:
        InputError: A column that is not there, a number that is none, another kind of file.

    """
    target = Path(path)
    if target.suffix not in SUFFIXES:
        raise InputError(f"{target}: a figure ends in {', '.join(SUFFIXES)}")
    if columns not in WIDTHS:
        raise InputError(f"columns `{columns}`: 1 or 2")
    if kind not in CHANNELS:
        raise InputError(f"kind `{kind}` is not known (allowed: {', '.join(CHANNELS)})")
    if height is not None and not HEIGHTS[0] <= height <= HEIGHTS[1]:
        raise InputError(f"height: {height} points; expected {HEIGHTS[0]} to {HEIGHTS[1]}")
    if bars not in BARS:
        raise InputError(f"bars `{bars}` is not known (allowed: {', '.join(BARS)})")
    runs = results if isinstance(results, Frame) else frame(results)
    specification = vega_lite(runs, x, y, by, panel, WIDTHS[columns], kind, height, bars)
    write_whole(target, _drawn(specification, target.suffix))
    return target


def averaged(runs: Frame, x: str, by: str | None, panel: str | None) -> list[str]:
    """The factors that a figure does not tell apart: its points are means over them."""
    return [name for name in runs.factors if name not in (x, by, panel)]


def _drawn(specification: dict[str, Any], suffix: str) -> str | bytes:
    draw = charts.library()
    if suffix == ".svg":
        return draw.vegalite_to_svg(specification)
    if suffix == ".pdf":
        return draw.vegalite_to_pdf(specification)
    return draw.vegalite_to_png(specification, ppi=300)


def vega_lite(
    runs: Frame,
    x: str,
    y: str,
    by: str | None,
    panel: str | None,
    width: int,
    kind: str,
    height: int | None,
    bars: str = BARS[0],
) -> dict[str, Any]:
    """The figure as a Vega-Lite specification, its data in it."""
    ys = _numbers(runs, y)
    factor, unit = _scale(ys, runs.unit(y))
    xs = runs.column(x)
    across = _axis(runs, x, xs, kind)
    told_apart = {name: in_words(runs, of) for name, of in (("by", by), ("panel", panel)) if of}
    values = [
        {"x": across["values"][row], "y": ys[row] / factor}
        | {name: words[row] for name, words in told_apart.items()}
        for row in range(len(runs))
        if ys[row] is not None and xs[row] is not None
    ]
    if bars == "interval":
        values = _intervals(
            values, y, [name for name in averaged(runs, x, by, panel) if name != REPLICATES]
        )
    panels = len({value["panel"] for value in values}) if panel else 1
    a_row = min(panels, 4 if width > WIDTHS[1] else 2)
    inner = (width - 37 * a_row - 8) / a_row
    encoding: dict[str, Any] = {
        "x": across["encoding"],
        "y": {
            "field": "y",
            "type": "quantitative",
            "title": _title(y, unit),
            "scale": {"zero": kind == "bar"},
        },
    }
    if by:
        words = list(dict.fromkeys(value["by"] for value in values))
        legend = {
            "title": by,
            "orient": "top",
            "columns": 3 if width <= WIDTHS[1] else 6,
            # the dash of the line would be that of the sign's outline
            "symbolStrokeWidth": 0,
        }
        # legends of one field and one domain are drawn as one
        for channel in CHANNELS[kind]:
            signs = SIGNS[channel]
            signs_of = [signs[i % len(signs)] for i in range(len(words))]
            scale = {"domain": words, "range": signs_of}
            shown = None if channel == "strokeDash" else legend
            encoding[channel] = {
                "field": "by",
                "type": "nominal",
                "scale": scale,
                "legend": shown,
            }
        if kind == "bar":
            encoding["xOffset"] = {"field": "by", "type": "nominal", "sort": words}
    mean = {**encoding, "y": {**encoding["y"], "aggregate": "mean"}}
    line = {key: value for key, value in mean.items() if key != "shape"}
    point = {key: value for key, value in mean.items() if key != "strokeDash"}
    # on bars, a rule of a bar's own colour would not be seen
    apart, colour = ("xOffset", {"color": "black"}) if kind == "bar" else ("color", {})
    spread = {key: encoding[key] for key in ("x", apart) if key in encoding}
    marks: list[dict[str, Any]] = []
    if kind == "line":
        marks.append({"mark": {"type": "line", "strokeWidth": 1}, "encoding": line})
    if kind == "bar":
        marks.append({"mark": {"type": "bar"}, "encoding": mean})
    else:
        marks.append({"mark": {"type": "point", "size": 14, "filled": True}, "encoding": point})
    ends: tuple[dict[str, Any], dict[str, Any]] = (
        {"field": "y", "aggregate": "min"},
        {"field": "y", "aggregate": "max"},
    )
    if bars == "interval":
        ends = {"field": "low"}, {"field": "high"}
    marks.append(
        {
            "mark": {"type": "rule", "strokeWidth": 0.75, **colour},
            "encoding": {**spread, "y": {**ends[0], "type": "quantitative"}, "y2": ends[1]},
        }
    )
    drawn: dict[str, Any] = {
        "width": inner,
        "height": height or round(inner * (0.62 if a_row == 1 else 0.8)),
        "layer": marks,
    }
    if panel:
        drawn = {
            "facet": {
                "field": "panel",
                "type": "nominal",
                "title": None,
                "sort": list(dict.fromkeys(value["panel"] for value in values)),
            },
            "columns": a_row,
            "spec": drawn,
        }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "data": {"values": values},
        "config": STYLE,
        **drawn,
    }


def _intervals(values: list[dict[str, Any]], y: str, others: Sequence[str]) -> list[dict[str, Any]]:
    """The mean of each point's runs, with its interval; without one where all seeds agree."""
    if others:
        raise InputError(
            "bars: an interval is over seeds, and the runs of a point differ in "
            f"{', '.join(others)} as well: name them for x, by or panel, or draw the range"
        )
    points: dict[tuple[Any, ...], list[float]] = {}
    for value in values:
        points.setdefault(tuple((k, v) for k, v in value.items() if k != "y"), []).append(
            value["y"]
        )
    made = estimates(list(points.values()), percentile=bool(PERCENTILE.search(y)))
    return [
        dict(key) | {"y": e.mean, "low": e.mean if e.low is None else e.low,
                     "high": e.mean if e.high is None else e.high}
        for key, e in zip(points, made, strict=True)
    ]  # fmt: skip


FONT = "Helvetica, Arial, sans-serif"

STYLE: dict[str, Any] = {
    "font": FONT,
    "background": "white",
    "view": {"stroke": None},
    "axis": {"labelFontSize": 7, "titleFontSize": 8, "titleFontWeight": "normal", "tickSize": 3},
    "axisY": {"gridColor": "#dddddd", "gridWidth": 0.5},
    "axisX": {"grid": False, "labelAngle": 0, "labelFlush": False},
    "legend": {
        "labelFontSize": 7,
        "titleFontSize": 7,
        "titleFontWeight": "normal",
        "symbolSize": 30,
        "offset": 4,
    },
    "header": {"labelFontSize": 7},
    "facet": {"spacing": 14},
}
"""Eight-point type, thin lines: what a two-column page takes."""


def _numbers(runs: Frame, name: str) -> list[Any]:
    values = runs.column(name)
    if any(not isinstance(value, (int, float)) for value in values if value is not None):
        raise InputError(f"`{name}` is no number; a figure's height needs one")
    if all(value is None for value in values):
        raise InputError(f"`{name}`: no run has it")
    return values


def _scale(values: list[Any], unit: str) -> tuple[float, str]:
    """A factor and the unit that it leads to, so that numbers are short."""
    sizes = [abs(value) for value in values if value]
    for factor, name in SCALES.get(unit, ()):
        if sizes and min(sizes) >= factor:
            return factor, name
    return 1, unit


def _axis(runs: Frame, name: str, values: list[Any], kind: str) -> dict[str, Any]:
    """What is drawn across: numbers to scale (a wide range by powers of two), words in order."""
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    if not numbers or kind == "bar":
        ordered = sorted(set(values)) if numbers else list(dict.fromkeys(values))
        factor, unit = _scale(ordered, runs.unit(name)) if numbers else (1, "")
        words = {v: f"{v / factor:g}" if numbers else _word(v) for v in ordered}
        return {
            "values": [words[v] for v in values],
            "encoding": {
                "field": "x",
                "type": "ordinal",
                "sort": [words[v] for v in ordered],
                "title": _title(name, unit),
            },
        }
    factor, unit = _scale(values, runs.unit(name))
    scaled = [value / factor for value in values]
    ticks = sorted(set(scaled))
    wide = ticks[0] > 0 and ticks[-1] / ticks[0] >= 8
    return {
        "values": scaled,
        "encoding": {
            "field": "x",
            "type": "quantitative",
            "title": _title(name, unit),
            # the first and the last points stand off the edges
            "scale": {"padding": 6, **({"type": "log", "base": 2} if wide else {"zero": False})},
            "axis": {"values": ticks} if len(ticks) <= 8 else {},
        },
    }


TITLES = {
    "waf": "write amplification",
    "iops": "requests a second",
    "bandwidth_bytes_per_s": "throughput",
    "map.hit_ratio": "hits of the map cache",
    "map.cache_bytes": "map cache",
}
"""Columns whose name a reader should not have to decode."""


def _title(name: str, unit: str) -> str:
    if name.startswith("latency_ns."):
        _, op, what = name.split(".")
        name = f"{op} latency, {what.replace('_', '.')}"
    title = TITLES.get(name, name)
    return f"{title} ({unit})" if unit and unit not in ("ratio", "1/s") else title


def in_words(runs: Frame, name: str) -> list[str]:
    """The values of a column in words; numbers in the unit that keeps them short."""
    values = runs.column(name)
    if any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in values):
        return [_word(value) for value in values]
    factor, unit = _scale(values, runs.unit(name))
    return [f"{value / factor:g} {unit}".strip() for value in values]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"{value:g}"
    # of a path, the name is enough
    return str(value).rsplit("/", 1)[-1] if "/" in str(value) else str(value)
