"""The report of the papers' maps on the drives of their time and of today."""

from __future__ import annotations

from typing import Any

from flashatlas.report import chart
from flashatlas.report.html import text
from flashatlas.report.palette import colour_key
from flashatlas.reproduce.page import Part, listed, report
from flashatlas.reproduce.today.plan import BETWEEN, THEN, TODAY, Today
from flashatlas.reproduce.today.tables import comparisons, listings, of

TITLE = "The papers' maps then and today"

COLOURS = {THEN: "var(--run-0)", BETWEEN: "var(--run-2)", TODAY: "var(--run-1)"}

WORDS = {
    THEN: "the paper's drive",
    BETWEEN: "the paper's drive, with another value of what decides",
    TODAY: "a drive of today",
}


def page(made: Today, command: str) -> str:
    """Return the report as HTML text; ``command`` runs everything again."""
    known = [
        (f"{c['paper']}, by {c['by']}", text(f"{c['before']} → {c['after']}"))
        for c in comparisons(made)
    ]
    lead = (
        "1 is no gain. Left of it the paper's map is worse than the map that it is compared with."
    )
    parts: list[Part] = [
        chart.Section("gains", "Gains then and now", lead, [gains(made)]),
        *(listed(n, listing) for n, listing in enumerate(listings(made))),
    ]
    return report(TITLE, f"{len(made.results)} runs", made.results, known, parts, command)


def gains(made: Today) -> chart.Chart:
    """Return the chart of all gains: a panel for each comparison, a row for each drive."""
    shown = comparisons(made)
    rows = [
        (number, gain.case.name, gain.case.era, gain.gain, gain.decides)
        for number, comparison in enumerate(shown)
        for gain in of(made, comparison)
    ]
    data = chart.columns_of(("comparison", "drive", "era", "gain", "decides"), rows)
    smallest, largest = min(data["gain"]), max(data["gain"])

    def panel(number: int) -> dict[str, Any]:
        comparison = shown[number]
        drives = [gain.case.name for gain in of(made, comparison)]
        point = {
            "mark": {"type": "point", "filled": True, "size": 90},
            "encoding": {
                "color": chart.coloured("era", COLOURS),
                "tooltip": [
                    chart.text_field("drive", "drive"),
                    chart.text_field("era", "era"),
                    chart.number_field("gain", "gain", "short"),
                    chart.text_field("decides", str(comparison["decides"])),
                ],
            },
        }
        rule = {
            "mark": {"type": "rule"},
            "encoding": {"x2": {"datum": 1}, "color": chart.coloured("era", COLOURS)},
        }
        return {
            "title": f"{comparison['paper']}: {comparison['before']} → {comparison['after']}",
            "height": 24 * len(drives),
            "data": {"name": "gains"},
            "transform": [{"filter": {"field": "comparison", "equal": number}}],
            "layer": [rule, point],
            "encoding": {
                "x": {
                    **chart.quantity("gain", "short", tickCount=6),
                    "scale": {"type": "log", "domain": [smallest * 0.9, largest * 1.1]},
                },
                "y": chart.a_row_each("drive", drives),
            },
        }

    said = "; ".join(
        f"{gain.case.paper}, {gain.case.maps}, {gain.case.name} ({gain.case.era}): {gain.gain:.2f}"
        for gain in made.gains
    )
    columns = [
        ("comparison", "Comparison", "short"),
        ("drive", "Drive", "text"),
        ("era", "Era", "text"),
        ("gain", "Gain", "short"),
        ("decides", "What decides", "text"),
    ]
    return chart.Chart(
        "gains",
        "Gains then and now",
        said,
        chart.stack([panel(number) for number in range(len(shown))]),
        {"gains": data},
        {"gains": ("Gains", columns)},
        left="sentences",
        key=colour_key("Drives", [(WORDS[era], colour) for era, colour in COLOURS.items()]),
    )
