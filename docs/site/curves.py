"""The picture of `papers/5-drives`: the write curves of consumer drives, ours beside published.

python docs/site/curves.py DIR      after `flashatlas reproduce drives --fill --out DIR`
"""

from __future__ import annotations

import sys
from typing import Any

from figures import ROOT, found, save

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
    return {"concat": panels, "columns": 2}


def main() -> None:
    """Draw the picture.

    Raises:
        SystemExit: No folder is given, or it has no results of whole drives.

    """
    made = found(__doc__, "drives")
    if not any(test["test"] == "whole-fill" for test in made["tests"]):
        raise SystemExit(f"{sys.argv[1]}: no whole drive was written; give --fill")
    save(PICTURE, picture([dict(zip(FIELDS, point, strict=True)) for point in made["points"]]))


if __name__ == "__main__":
    main()
