"""Horizontal bars: one for each run, in pieces."""

from __future__ import annotations

import math
from typing import Any

from flashatlas.report.chart import Columns, axis, number_field, text_field
from flashatlas.report.palette import Runs

BAR = 22
"""Height of a bar, in pixels."""


def stacked(
    runs: Runs, parts: Columns, colours: dict[str, str], kind: str, top: float
) -> dict[str, Any]:
    """Return a bar for each run, in pieces; the sum stands at its end."""
    domain, order = list(colours), {name: i for i, name in enumerate(colours)}
    parts["order"] = [order[name] for name in parts["part"]]
    y = {
        "field": "run",
        "type": "nominal",
        "sort": None,
        "scale": {"domain": runs.names},
        "axis": names_axis(runs),
    }
    x = {
        "field": "value",
        "type": "quantitative",
        "stack": "zero",
        "scale": {"domain": [0, top * 1.14], "nice": False},
    }
    fill = {
        "field": "part",
        "type": "nominal",
        "scale": {"domain": domain, "range": list(colours.values())},
        "legend": None,
    }
    tooltip = [*run_field(runs), text_field("part", "part"), number_field("value", "value", kind)]
    return {
        "height": {"step": BAR + 8},
        "layer": [
            {
                "mark": {"type": "bar", "height": BAR, "stroke": "var(--paper)", "strokeWidth": 1},
                "encoding": {
                    "y": y,
                    "x": {
                        **x,
                        "axis": axis(
                            kind,
                            title={
                                "ratio": "units programmed per unit written",
                                "bytes": "bytes",
                            }.get(kind),
                            **({"values": binary(top)} if kind == "bytes" else {}),
                        ),
                    },
                    "color": fill,
                    "order": {"field": "order", "type": "quantitative"},
                    "tooltip": tooltip,
                },
            },
            {
                "transform": [
                    {
                        "aggregate": [{"op": "sum", "field": "value", "as": "total"}],
                        "groupby": ["run"],
                    }
                ],
                "mark": {
                    "type": "text",
                    "align": "left",
                    "dx": 6,
                    "fontWeight": 600,
                    "fontSize": 12,
                },
                "encoding": {
                    "y": y,
                    "x": {"field": "total", "type": "quantitative"},
                    "text": {
                        "field": "total",
                        "type": "quantitative",
                        "formatType": "memory" if kind == "bytes" else kind,
                    },
                },
            },
        ],
        "data": {"name": "parts"},
    }


def binary(top: float) -> list[float]:
    """Return round numbers of bytes from 0 to ``top``, at most six."""
    step = 2.0 ** max(math.ceil(math.log2(max(top, 1) / 5)), 0)
    return [k * step for k in range(6) if k * step <= top * 1.14]


def names_axis(runs: Runs) -> dict[str, Any] | None:
    """Return the axis with the names of the runs; ``None`` for a single run."""
    return (
        None if runs.single else {"title": None, "ticks": False, "domain": False, "labelPadding": 8}
    )


def run_field(runs: Runs) -> list[dict[str, Any]]:
    """Return the tooltip's field with the run; empty for a single run."""
    return [] if runs.single else [text_field("run", "run")]


def left(runs: Runs) -> str:
    """Return the kind of labels to the left of bars."""
    return "none" if runs.single else "names"
