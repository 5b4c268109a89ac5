"""The picture of `papers/5-drives`: the write curves of consumer drives, ours beside published.

python docs/site/curves.py DIR      after `flashatlas reproduce drives --fill --out DIR`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from flashatlas.drawing import charts

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "papers/5-drives/curves.svg"
FIELDS = ("preset", "curve", "written", "rate")
COLOURS = {"published": "#c2571a", "ours": "#2563c9"}
WIDTH, HEIGHT = 400, 150
RATES = (50, 6000)
"""MB/s of the axis, whose scale is logarithmic."""


def panel(preset: str, values: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the panel of a drive."""
    return {
        "title": {"text": preset, "fontSize": 12, "anchor": "start"},
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 1.8},
        "encoding": {
            "x": {"field": "written", "type": "quantitative", "title": "GB written"},
            "y": {
                "field": "rate",
                "type": "quantitative",
                "title": "MB/s",
                "scale": {"type": "log", "domain": list(RATES)},
                "axis": {"values": [50, 100, 200, 500, 1000, 2000, 5000], "format": ",d"},
            },
            "color": {
                "field": "curve",
                "type": "nominal",
                "title": None,
                "scale": {"domain": list(COLOURS), "range": list(COLOURS.values())},
                "legend": {"orient": "bottom", "symbolStrokeWidth": 3, "labelFontSize": 12},
            },
        },
    }


def picture(points: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the picture as a specification of Vega-Lite, with two panels in a row."""
    presets = list(dict.fromkeys(point["preset"] for point in points))
    panels = [panel(name, [p for p in points if p["preset"] == name]) for name in presets]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "#ffffff",
        "padding": 8,
        "concat": panels,
        "columns": 2,
        "config": {"font": "sans-serif", "axis": {"gridColor": "#e8ebf0"}},
    }


def main() -> None:
    """Draw the picture.

    Raises:
        SystemExit: No folder is given, or it has no results of whole drives.

    """
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    found = json.loads((Path(sys.argv[1]) / "drives.json").read_text(encoding="utf-8"))
    if not any(test["test"] == "whole-fill" for test in found["tests"]):
        raise SystemExit(f"{sys.argv[1]}: no whole drive was written; give --fill")
    points = [dict(zip(FIELDS, point, strict=True)) for point in found["points"]]
    svg = charts.library().vegalite_to_svg(picture(points))
    PICTURE.write_text(svg + "\n", encoding="utf-8")
    print(PICTURE)


if __name__ == "__main__":
    main()
