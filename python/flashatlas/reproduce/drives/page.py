"""The report of presets under fio's standard tests."""

from __future__ import annotations

from typing import Any

from flashatlas.report import chart
from flashatlas.report.html import text
from flashatlas.report.palette import colour_key
from flashatlas.reproduce.drives.plan import Drives
from flashatlas.reproduce.drives.tables import listings
from flashatlas.reproduce.page import Part, listed, report

TITLE = "Presets beside data sheets"

COLOURS = {"published": "var(--run-1)", "ours": "var(--run-0)"}


def page(made: Drives, command: str) -> str:
    """Return the report as HTML text; ``command`` runs everything again."""
    known = [(drive.preset, text(drive.published["product"])) for drive in made.drives]
    parts: list[Part] = []
    if any(made.curve(drive.preset) for drive in made.drives):
        lead = "Sequential writes to blank drives: published levels beside simulated ones."
        parts.append(chart.Section("curves", "Write curves", lead, [curves(made)]))
    parts += [listed(n, listing) for n, listing in enumerate(listings(made)) if listing.rows]
    aside = f"{len(made.results)} runs"
    return report(TITLE, aside, made.results, known, parts, command)


def curves(made: Drives) -> chart.Chart:
    """Return the chart of the write curves, a panel for each drive."""
    points = made.points
    shown = list(dict.fromkeys(preset for preset, *_ in points))
    data = chart.columns_of(("preset", "curve", "written", "rate"), points)

    def panel(preset: str) -> dict[str, Any]:
        return {
            "title": f"{preset}: MB/s over GB written",
            "height": 130,
            "data": {"name": "curves"},
            "transform": [{"filter": {"field": "preset", "equal": preset}}],
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {
                "x": chart.quantity("written", "short", tickCount=6),
                "y": chart.quantity("rate", "short", tickCount=4),
                "color": chart.coloured("curve", COLOURS),
                "tooltip": [
                    chart.text_field("curve", "curve"),
                    chart.number_field("written", "GB written", "short"),
                    chart.number_field("rate", "MB/s", "short"),
                ],
            },
        }

    said = "; ".join(
        f"{row.preset}, {row.test}: {row.published:g} {row.unit}, ours "
        + ("none" if row.ours is None else f"{row.ours:.4g}")
        for row in made.rows
        if row.test.startswith("curve")
    )
    columns = [
        ("preset", "Preset", "text"),
        ("curve", "Curve", "text"),
        ("written", "GB written", "short"),
        ("rate", "MB/s", "short"),
    ]
    return chart.Chart(
        "curves",
        "Write curves",
        said,
        chart.stack([panel(preset) for preset in shown]),
        {"curves": data},
        {"curves": ("Write curves", columns)},
        key=colour_key("Curves", list(COLOURS.items())),
    )
