"""The report of the HARD experiment."""

from __future__ import annotations

from typing import Any

from flashatlas.report import chart
from flashatlas.report.html import text
from flashatlas.report.palette import colour_key
from flashatlas.reproduce.hard.plan import Hard
from flashatlas.reproduce.hard.studies import HARD, STAGES
from flashatlas.reproduce.layered import NONE
from flashatlas.reproduce.page import report
from flashatlas.reproduce.table import html

TITLE = "HARD: small random writes become superpage writes"
COLOURS = {NONE: "var(--run-0)", HARD: "var(--run-1)"}


def page(hard: Hard, command: str) -> str:
    """Return the report as HTML text; ``command`` runs everything again."""
    known = [
        ("Drive", text(f"{hard.experiment['drive']}, every page written once before")),
        *((application.name, text(application.source)) for application in hard.applications),
    ]
    pictures = chart.Section("figures", "Pictures", "", [sizes(hard), stages(hard)])
    aside = f"{len(hard.runs)} runs"
    return report(TITLE, aside, hard.results, known, [pictures, *html(hard.tables())], command)


def sizes(hard: Hard) -> chart.Chart:
    """Return figure 14.4."""
    known = hard.experiment["figure_4"]["sizes"]
    rows = [(n, size, hard.random_write(size, n) / 1e6) for n in COLOURS for size in known]
    data = chart.columns_of(("stack", "bytes", "speed"), rows)
    spec = {
        "title": "random writes, MB/s over their size",
        "height": 180,
        "data": {"name": "sizes"},
        "mark": chart.LINE,
        "encoding": {
            "x": chart.over_bytes("bytes", known),
            "y": chart.quantity("speed", "short", tickCount=5),
            "color": chart.coloured("stack", COLOURS),
            "tooltip": [
                chart.text_field("stack", "layers"),
                chart.number_field("bytes", "writes of", "memory"),
                chart.number_field("speed", "MB/s", "short"),
            ],
        },
    }
    said = "; ".join(
        f"{s}, {b} bytes: {v:.1f} MB/s" for s, b, v in zip(*data.values(), strict=True)
    )
    columns = [
        ("stack", "Layers", "text"),
        ("bytes", "Writes of", "memory"),
        ("speed", "MB/s", "short"),
    ]
    return chart.Chart(
        "sizes",
        "Figure 14.4: random writes against their size",
        said,
        chart.stack([spec]),
        {"sizes": data},
        {"sizes": ("Random writes", columns)},
        key=colour_key("Layers", list(COLOURS.items())),
    )


def stages(hard: Hard) -> chart.Chart:
    """Return figure 14.5: the gain of each stage, over the record size."""
    five = hard.experiment["figure_5"]
    rows = [
        (stage, depth, record, hard.gain(record, depth, stage))
        for stage in STAGES
        for depth in five["depths"]["write"]
        for record in five["records"]
    ]
    data = chart.columns_of(("stage", "depth", "bytes", "gain"), rows)
    depths = {depth: f"var(--run-{i})" for i, depth in enumerate(five["depths"]["write"])}
    known = five["records"]

    def panel(stage: str) -> dict[str, Any]:
        return {
            "title": f"{stage}: speed with HARD over speed without it, over the record size",
            "height": 90,
            "data": {"name": "stages"},
            "transform": [{"filter": {"field": "stage", "equal": stage}}],
            "mark": chart.LINE,
            "encoding": {
                "x": chart.over_bytes("bytes", known),
                "y": chart.quantity("gain", "short", tickCount=4),
                "color": chart.coloured("depth", depths),
                "tooltip": [
                    chart.number_field("depth", "writes in flight", "short"),
                    chart.number_field("bytes", "record", "memory"),
                    chart.number_field("gain", "gain", "short"),
                ],
            },
        }

    columns = [
        ("stage", "Stage", "text"),
        ("depth", "Writes in flight", "short"),
        ("bytes", "Record", "memory"),
        ("gain", "Gain", "short"),
    ]
    said = "; ".join(
        f"{s}, {d} in flight, {b} bytes: {g:.2f}" for s, d, b, g in zip(*data.values(), strict=True)
    )
    return chart.Chart(
        "stages",
        "Figure 14.5: IOzone",
        said,
        chart.stack([panel(stage) for stage in STAGES]),
        {"stages": data},
        {"stages": ("Gain of each stage", columns)},
        key=colour_key(
            "Writes in flight", [(str(depth), colour) for depth, colour in depths.items()]
        ),
    )
