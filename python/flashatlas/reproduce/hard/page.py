"""The report of the HARD experiment."""

from __future__ import annotations

from typing import Any

from flashatlas.report import sections
from flashatlas.report.chart import (
    Chart,
    Columns,
    Section,
    axis,
    number_field,
    rounded,
    stack,
    text_field,
)
from flashatlas.report.html import facts, section, text
from flashatlas.report.page import document
from flashatlas.report.palette import Runs, colour_key
from flashatlas.reproduce.hard.plan import Hard
from flashatlas.reproduce.hard.studies import HARD, STAGES
from flashatlas.reproduce.layered import NONE
from flashatlas.reproduce.table import html

TITLE = "HARD: small random writes become superpage writes"
COLOURS = {NONE: "var(--run-0)", HARD: "var(--run-1)"}


def page(hard: Hard, command: str) -> str:
    """The report as HTML text; ``command`` runs all of it again."""
    runs = Runs(hard.results)
    figures = Section("figures", "Pictures", "", [sizes(hard), stages(hard)])
    of_tables, parts = html(hard.tables())
    entries = [
        ("run", "What was run"),
        ("figures", figures.title),
        *of_tables,
        ("approximations", "Approximations"),
    ]
    body = [
        _introduction(hard, runs, command),
        figures.html(),
        *parts,
        sections.approximations(runs),
    ]
    return document(TITLE, f"{len(hard.runs)} runs", runs, entries, body, [figures])


def _introduction(hard: Hard, runs: Runs, command: str) -> str:
    known = [
        ("Drive", text(f"{hard.experiment['drive']}, every page written once before")),
        (hard.application.name, text(hard.application.source)),
    ]
    return section(
        "run", "What was run", facts(known), sections.command(command), sections.verdict(runs)
    )


def _colour() -> dict[str, Any]:
    return {
        "field": "stack",
        "type": "nominal",
        "scale": {"domain": list(COLOURS), "range": list(COLOURS.values())},
        "legend": None,
    }


def _over(sizes: list[int]) -> dict[str, Any]:
    return {
        "field": "bytes",
        "type": "quantitative",
        "scale": {
            "type": "log",
            "base": 2,
            "domain": [sizes[0] / 1.2, sizes[-1] * 1.2],
            "nice": False,
        },
        "axis": axis("memory", values=sizes),
    }


def sizes(hard: Hard) -> Chart:
    """Figure 14.4."""
    data: Columns = {name: [] for name in ("stack", "bytes", "speed")}
    known = hard.experiment["figure_4"]["sizes"]
    for name in COLOURS:
        for size in known:
            values = (name, size, rounded(hard.random_write(size, name) / 1e6))
            for column, value in zip(data.values(), values, strict=True):
                column.append(value)
    spec = {
        "title": "random writes, MB/s over their size",
        "height": 180,
        "data": {"name": "sizes"},
        "mark": {"type": "line", "point": {"filled": True, "size": 40}, "strokeWidth": 2},
        "encoding": {
            "x": _over(known),
            "y": {"field": "speed", "type": "quantitative", "axis": axis("short", tickCount=5)},
            "color": _colour(),
            "tooltip": [
                text_field("stack", "layers"),
                number_field("bytes", "writes of", "memory"),
                number_field("speed", "MB/s", "short"),
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
    return Chart(
        "sizes",
        "Figure 14.4: random writes against their size",
        said,
        stack([spec]),
        {"sizes": data},
        {"sizes": ("Random writes", columns)},
        key=colour_key("Layers", list(COLOURS.items())),
    )


def stages(hard: Hard) -> Chart:
    """Figure 14.5: the gain of each stage, over the record size."""
    data: Columns = {name: [] for name in ("stage", "depth", "bytes", "gain")}
    five = hard.experiment["figure_5"]
    for stage in STAGES:
        for depth in five["depths"]["write"]:
            for record in five["records"]:
                values = (stage, depth, record, rounded(hard.gain(record, depth, stage)))
                for column, value in zip(data.values(), values, strict=True):
                    column.append(value)
    depths = {depth: f"var(--run-{i})" for i, depth in enumerate(five["depths"]["write"])}
    known = five["records"]

    def panel(stage: str) -> dict[str, Any]:
        return {
            "title": f"{stage}: speed with HARD over that without, over the record size",
            "height": 90,
            "data": {"name": "stages"},
            "transform": [{"filter": {"field": "stage", "equal": stage}}],
            "mark": {"type": "line", "point": {"filled": True, "size": 40}, "strokeWidth": 2},
            "encoding": {
                "x": _over(known),
                "y": {"field": "gain", "type": "quantitative", "axis": axis("short", tickCount=4)},
                "color": {
                    "field": "depth",
                    "type": "nominal",
                    "scale": {"domain": list(depths), "range": list(depths.values())},
                    "legend": None,
                },
                "tooltip": [
                    number_field("depth", "writes in flight", "short"),
                    number_field("bytes", "record", "memory"),
                    number_field("gain", "gain", "short"),
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
    return Chart(
        "stages",
        "Figure 14.5: IOzone",
        said,
        stack([panel(stage) for stage in STAGES]),
        {"stages": data},
        {"stages": ("Gain of each stage", columns)},
        key=colour_key(
            "Writes in flight", [(str(depth), colour) for depth, colour in depths.items()]
        ),
    )
