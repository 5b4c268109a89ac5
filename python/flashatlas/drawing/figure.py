"""Figures for papers: one result of many runs against a factor, as PDF, SVG or PNG."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flashatlas._core import InputError, about
from flashatlas.drawing import charts
from flashatlas.drawing.labels import broken
from flashatlas.drawing.points import PERCENTILE_AXIS, Asked, Column, Points, points
from flashatlas.files import write_whole
from flashatlas.results.frame import Frame
from flashatlas.results.result import Result
from flashatlas.results.runs import frame

WIDTHS = {1: 241, 2: 505}
"""Widths in points of one column and of two columns on a two-column page (3.35 and 7 inches)."""

HEIGHTS = (20, 2000)
"""Least and largest height of a panel, in points."""

SUFFIXES = (".pdf", ".svg", ".png")

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Colours that can be distinguished in print and by colour-blind readers (Okabe and Ito, 2008)."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")

DASHES = ([1, 0], [4, 2], [1, 1.5], [6, 2, 1, 2])

SIGNS: dict[str, tuple[Any, ...]] = {"color": COLOURS, "shape": SHAPES, "strokeDash": DASHES}

BARS = ("range", "interval")
"""Meanings of the bar at a point: the range of its runs, or the interval of their mean."""

LOGS = ("x", "y", "xy", "none")
"""Choices of logarithmic axes."""

WIDE_X, WIDE_Y = 8, 50
"""The least ratios of the largest to the least value at which axes are logarithmic by default."""

CHANNELS = {
    "line": ("color", "shape", "strokeDash"),
    "point": ("color", "shape"),
    "bar": ("color",),
}
"""The channels that distinguish the values of ``by`` in each kind of figure."""

SHORT, WHOLE = ",.6~g", ",.12~g"
"""Formats of numbers at axes: short, and with all digits.

Without a format, Vega rounds labels to its own step between ticks. If the ticks are the values of
the runs, this rounding is wrong: 0.125 becomes 0.1, and a single 1.5 becomes 2.
"""

LETTER = 3.9
"""Average width of a letter in the labels, in points."""


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
    log: str | None = None,
    names: Mapping[str, str] | None = None,
    allow_incomplete: bool = False,
) -> Path:
    """Draw a number over a factor, and write the figure to a file.

    Runs with the same ``x``, ``by`` and ``panel`` (for example, with different seeds) become one
    point, which shows their mean. A bar at the point shows their range, or the interval of their
    mean. A point is hollow if one of its runs was not steady. Notes under the figure explain its
    marks and bars.

    Args:
        results: The runs, or their :func:`flashatlas.frame`.
        path: The file to write, which ends in ``.pdf``, ``.svg`` or ``.png``.
        x: The column on the horizontal axis (``map.cache_bytes``); ``percentile`` draws the
            distribution of latencies.
        y: The column on the vertical axis (``waf``, ``latency_ns.read.p99``). If ``x`` is
            ``percentile``, a latency with all its percentiles (``latency_ns.read``).
        by: The column whose values are distinguished by colour, dash and shape.
        panel: The column that has a panel for each of its values.
        columns: Width of the figure in columns of a printed page, 1 or 2.
        kind: ``line``, ``point`` or ``bar``. Lines are drawn only between numbers: between two
            names, such as traces, there is no value.
        height: Height of one panel, in points.
        bars: Meaning of the bar at a point. ``range``: the range of its runs. ``interval``: the
            95 % interval of their mean over seeds, for five runs or more (Student's t; the
            bootstrap for percentiles).
        log: The logarithmic axes: ``x``, ``y``, ``xy`` or ``none``. By default the horizontal axis
            is logarithmic if the largest value is at least eight times the least, and the vertical
            axis if it is at least fifty times the least.
        names: Titles for columns and values, by their names.
        allow_incomplete: Draw a study even if runs are missing; a note under the figure counts the
            missing runs.

    Raises:
        InputError: A column does not exist or is not a number, the kind of file is unknown, or a
            study is not complete.

    """
    asked = Asked(x, y, by, panel, columns, kind, height, bars, log, names or {})
    draw(results, path, asked, allow_incomplete=allow_incomplete)
    return Path(path)


def draw(
    results: Iterable[Result] | Frame, path: str | Path, asked: Asked, *, allow_incomplete: bool
) -> Points:
    """Write a figure, and return its points."""
    target = Path(path)
    _check(target, asked)
    runs = results if isinstance(results, Frame) else frame(results)
    runs.must_be_whole(allowed=allow_incomplete)
    found = points(runs, asked)
    write_whole(target, _drawn(vega_lite(found, asked), target.suffix))
    return found


def _check(target: Path, asked: Asked) -> None:
    """Refuse options that are not allowed for any figure."""
    if target.suffix not in SUFFIXES:
        raise InputError(f"{target}: the name of a figure ends in {', '.join(SUFFIXES)}")
    if asked.columns not in WIDTHS:
        raise InputError(f"columns: `{asked.columns}` is not 1 or 2")
    for option, value, allowed in (
        ("kind", asked.kind, CHANNELS),
        ("bars", asked.bars, BARS),
        ("log", asked.log, (None, *LOGS)),
    ):
        if value not in allowed:
            known = ", ".join(one for one in allowed if one)
            raise InputError(f"{option} `{value}` is not known (allowed: {known})")
    if asked.height is not None and not HEIGHTS[0] <= asked.height <= HEIGHTS[1]:
        raise InputError(
            f"height: {asked.height} points are out of range; give {HEIGHTS[0]} to {HEIGHTS[1]}"
        )


def _drawn(specification: dict[str, Any], suffix: str) -> str | bytes:
    library = charts.library()
    if suffix == ".svg":
        return library.vegalite_to_svg(specification)
    if suffix == ".pdf":
        return library.vegalite_to_pdf(specification)
    return library.vegalite_to_png(specification, ppi=300)


def vega_lite(found: Points, asked: Asked) -> dict[str, Any]:
    """Return the figure as a Vega-Lite specification that includes its data."""
    width = WIDTHS[asked.columns]
    panels = found.panel.order if found.panel else [""]
    a_row = min(len(panels), 2 * asked.columns)
    inner = (width - 37 * a_row - 8) / a_row
    height = asked.height or round(inner * (0.62 if a_row == 1 else 0.8))
    encoding = {"x": _across(found, asked, inner), "y": _upward(found, asked)}
    if found.by:
        encoding |= _told_apart(found.by, asked, width)
    empty = [panel for panel in panels if not any(r.get("panel") == panel for r in found.rows)]
    drawn: dict[str, Any] = {
        "width": inner,
        "height": height,
        "layer": _marks(asked.kind, encoding, joined=found.x.numeric or asked.x == PERCENTILE_AXIS)
        + ([_no_data(inner, height)] if found.panel else []),
    }
    values = list(found.rows)
    if found.panel:
        values += [{"panel": panel, "empty": "no run here has this number"} for panel in empty]
        drawn = {
            "facet": {
                "field": "panel",
                "type": "nominal",
                "title": found.panel.title,
                "sort": panels,
                "header": _lines(panels, inner),
            },
            "columns": a_row,
            "spec": drawn,
        }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "data": {"values": values},
        "config": STYLE,
        **({"title": _under(found.notes, width)} if found.notes else {}),
        **drawn,
    }


def _under(notes: Sequence[str], width: float) -> dict[str, Any]:
    """Return the notes under a figure, which explain its marks."""
    lines = [line for note in notes for line in textwrap.wrap(note, int(width / 3.3))]
    return {
        "text": lines,
        "orient": "bottom",
        "anchor": "start",
        "fontSize": 7,
        "fontWeight": "normal",
        "offset": 6,
    }


def _across(found: Points, asked: Asked, inner: float) -> dict[str, Any]:
    """Return the horizontal axis, with numbers on a scale, or with words in their order."""
    x = found.x
    if not x.numeric:
        return {
            "field": "x",
            "type": "ordinal",
            "sort": x.order,
            "scale": {"domain": x.order},
            "title": x.title,
            "axis": _lines(x.order, inner / max(len(x.order), 1)),
        }
    log = _is_log("x", asked, x.order, WIDE_X)
    base = 2 if log and "iB" in x.title else 10
    values = {"values": x.order} if len(x.order) <= 8 else {}
    return {
        "field": "x",
        "type": "quantitative",
        "title": x.title,
        # keep the first and the last points away from the edges
        "scale": {"padding": 6, **({"type": "log", "base": base} if log else {"zero": False})},
        "axis": {
            **values,
            "format": _format(x.order),
            "labelOverlap": "greedy",
            "labelSeparation": 2,
        },
    }


def _upward(found: Points, asked: Asked) -> dict[str, Any]:
    """Return the vertical axis."""
    ends = [row[end] for row in found.rows for end in ("low", "high")]
    if asked.kind == "bar":
        if asked.log and "y" in asked.log:
            raise about("log", "`y`: a bar begins at zero, but a logarithmic axis has no zero")
        return _number(found.y, {"zero": True})
    if not _is_log("y", asked, ends, WIDE_Y):
        return _number(found.y, {"zero": False})
    return _number(found.y, {"type": "log"}, tickCount=4)


def _number(title: str, scale: dict[str, Any], **axis: Any) -> dict[str, Any]:
    return {
        "field": "y",
        "type": "quantitative",
        "title": title,
        "scale": scale,
        "axis": {"format": WHOLE, **axis},
    }


def _format(values: Sequence[float]) -> str:
    """Return :data:`SHORT`; or :data:`WHOLE` if labels would be equal or have powers of ten."""
    large = any(abs(value) >= 1e6 for value in values)
    alike = len({f"{value:.6g}" for value in values}) < len(set(values))
    return WHOLE if large or alike else SHORT


def _is_log(axis: str, asked: Asked, values: Sequence[float], wide: float) -> bool:
    """Return ``True`` if an axis is logarithmic, by request or because of its range of values."""
    least, most = min(values), max(values)
    if asked.log is not None:
        if axis in asked.log.removesuffix("none") and least <= 0:
            raise about(
                "log",
                f"`{axis}`: a value is {least:g}, but a logarithmic axis has only values above 0",
            )
        return axis in asked.log.removesuffix("none")
    return least > 0 and most / least >= wide


def _told_apart(by: Column, asked: Asked, width: float) -> dict[str, Any]:
    """Return the channels that distinguish the values of ``by``, with one legend for all."""
    words = by.order
    room = LETTER * max(map(len, words)) + 25
    legend = {
        "title": by.title,
        "orient": "top",
        "columns": max(1, min(3 * asked.columns, int(width / room))),
        "labelLimit": width - 30,
        # without this, the outline of the sign would be dashed like the line
        "symbolStrokeWidth": 0,
    }
    found: dict[str, Any] = {}
    # Vega merges legends of the same field and domain
    for channel in CHANNELS[asked.kind]:
        signs = SIGNS[channel]
        scale = {"domain": words, "range": [signs[i % len(signs)] for i in range(len(words))]}
        shown = None if channel == "strokeDash" else legend
        found[channel] = {"field": "by", "type": "nominal", "scale": scale, "legend": shown}
    if asked.kind == "bar":
        found["xOffset"] = {"field": "by", "type": "nominal", "scale": {"domain": words}}
    return found


def _marks(kind: str, encoding: dict[str, Any], *, joined: bool) -> list[dict[str, Any]]:
    """Return the layers of a panel, with hollow points for unsteady runs; join points if asked."""
    without = {"line": "shape", "point": "strokeDash", "bar": "strokeDash", "rule": "shape"}
    of = {
        mark: {key: value for key, value in encoding.items() if key != left_out}
        for mark, left_out in without.items()
    }
    # a rule in the colour of its bar would be invisible
    apart, colour = ("xOffset", {"color": "black"}) if kind == "bar" else ("color", {})
    spread = {key: encoding[key] for key in ("x", apart) if key in encoding}
    ends = {"y": {**encoding["y"], "field": "low"}, "y2": {"field": "high"}}
    rule = {
        "transform": [{"filter": "datum.low < datum.high"}],
        "mark": {"type": "rule", "strokeWidth": 0.75, **colour},
        "encoding": {**spread, **ends},
    }
    there = {"filter": "!isValid(datum.empty)"}
    line = {
        "transform": [there],
        "mark": {"type": "line", "strokeWidth": 1},
        "encoding": of["line"],
    }
    mark = (
        {"type": "bar"}
        if kind == "bar"
        else {"type": "point", "size": 14, "filled": True, "opacity": 1}
    )
    own = of["bar" if kind == "bar" else "point"]
    full = {"transform": [there, {"filter": "datum.unsteady === 0"}], "mark": mark, "encoding": own}
    outlined = {"stroke" if key == "color" else key: value for key, value in own.items()}
    hollow = {
        "transform": [{"filter": "datum.unsteady > 0"}],
        "mark": {**mark, "filled": False, "fill": "white", "strokeWidth": 1,
                 **({} if "color" in own else {"stroke": COLOURS[0]})},
        "encoding": outlined,
    }  # fmt: skip
    first = [*([line] if kind == "line" and joined else []), *([] if kind == "bar" else [rule])]
    return [*first, full, hollow, *([rule] if kind == "bar" else [])]


def _no_data(inner: float, height: float) -> dict[str, Any]:
    """Return the layer that marks a panel as empty."""
    return {
        "transform": [{"filter": "isValid(datum.empty)"}],
        "mark": {"type": "text", "fontSize": 7, "limit": inner},
        "encoding": {
            "text": {"field": "empty"},
            "x": {"value": inner / 2},
            "y": {"value": height / 2},
        },
    }


def _lines(words: Sequence[str], room: float) -> dict[str, Any]:
    """Return axis options that make labels fit: on one line, on several lines, or slanted."""
    letters = max(1, int(room / LETTER))
    lines = [broken(word, letters) for word in words]
    longest = max((len(line) for label in lines for line in label.split("\n")), default=0)
    if longest > letters:
        return {"labelAngle": -40, "labelAlign": "right", "labelLimit": 130}
    if all("\n" not in label for label in lines):
        return {"labelLimit": 0}
    # Vega has lists but no maps: the index of a word selects its lines
    texts, places = json.dumps([label.split("\n") for label in lines]), json.dumps(list(words))
    return {"labelLimit": 0, "labelExpr": f"{texts}[indexof({places}, datum.label)]"}


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
    "header": {"labelFontSize": 7, "titleFontSize": 7, "titleFontWeight": "normal"},
    "facet": {"spacing": 14},
}
"""Style for a two-column page: type of seven and eight points, and thin lines."""
