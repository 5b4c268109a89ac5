"""The picture of `papers/6-today`: the gains of the papers' maps then and today.

python docs/site/gains.py DIR      after `flashatlas reproduce today --out DIR`
"""

from __future__ import annotations

from typing import Any

from figures import ROOT, found, save

PICTURE = ROOT / "papers/6-today/gains.svg"
COLOURS = {"then": "#2563c9", "between": "#0f8a72", "today": "#c2571a"}
WIDTH, ROW = 460, 17
LABELS = 250
"""Width of the names of the drives."""


def panel(gains: list[dict[str, Any]], domain: list[float]) -> dict[str, Any]:
    """Return the panel of a comparison: a row for each drive, with the number that decides."""
    (decides,) = gains[0]["decides"]
    drives = [gain["drive"] for gain in gains]
    values = [
        {**gain, "decides": gain["decides"][decides], "one": 1, "end": max(gain["gain"], 1)}
        for gain in gains
    ]
    across = {"type": "quantitative", "scale": {"type": "log", "domain": domain, "nice": False}}
    axis = {"values": [0.3, 0.5, 1, 2, 3, 5, 10, 20], "format": "~g", "title": None}
    colour = {
        "field": "era",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(COLOURS), "range": list(COLOURS.values())},
        "legend": {"orient": "bottom", "symbolType": "circle", "labelFontSize": 12},
    }
    return {
        "title": {
            "text": f"{gains[0]['paper']}: {gains[0]['maps']}",
            "subtitle": f"beside each gain: {decides}",
            "anchor": "start",
            "fontSize": 12,
        },
        "width": WIDTH,
        "height": ROW * len(gains),
        "data": {"values": values},
        "encoding": {
            "y": {
                "field": "drive",
                "type": "nominal",
                "sort": drives,
                "title": None,
                "axis": {"minExtent": LABELS, "maxExtent": LABELS, "labelLimit": LABELS},
            },
            "color": colour,
        },
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": {"field": "one", **across, "axis": axis},
                    "x2": {"field": "gain"},
                },
            },
            {
                "mark": {"type": "circle", "size": 60, "opacity": 1},
                "encoding": {"x": {"field": "gain", **across}},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 7, "fontSize": 10},
                "encoding": {
                    "x": {"field": "end", **across},
                    "text": {"field": "decides"},
                    "color": {"value": "#4a5263"},
                },
            },
        ],
    }


def picture(gains: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the picture as a specification of Vega-Lite, with a panel for each comparison."""
    compared = dict.fromkeys((gain["paper"], gain["maps"]) for gain in gains)
    every = [gain["gain"] for gain in gains]
    domain = [min(every) * 0.9, max(every) * 1.6]
    panels = [
        panel([gain for gain in gains if (gain["paper"], gain["maps"]) == one], domain)
        for one in compared
    ]
    return {"vconcat": panels, "spacing": 14}


def main() -> None:
    """Draw the picture."""
    save(PICTURE, picture(found(__doc__, "today")["gains"]))


if __name__ == "__main__":
    main()
