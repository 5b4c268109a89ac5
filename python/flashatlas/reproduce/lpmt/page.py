"""The report of the lookup engine's experiment."""

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
from flashatlas.report.palette import COLOURS, Runs, colour_key
from flashatlas.reproduce.lpmt.plan import Lpmt
from flashatlas.reproduce.lpmt.studies import POLICIES
from flashatlas.reproduce.lpmt.tables import files
from flashatlas.reproduce.table import html

TITLE = "Hardware lookup: LPMT in a multi-bank DRAM"


def page(lpmt: Lpmt, command: str) -> str:
    """The report as HTML text; ``command`` runs all of it again."""
    runs = Runs(lpmt.results)
    figures = Section("figures", "Pictures", "", [progress(lpmt)])
    if lpmt.points:
        figures.parts.append(sweep(lpmt))
    body = [_introduction(lpmt, runs, command), figures.html()]
    of_tables, parts = html(lpmt.tables())
    entries = [("run", "What was run"), ("figures", figures.title), *of_tables]
    body += parts
    body.append(sections.approximations(runs))
    entries.append(("approximations", "Approximations"))
    return document(
        TITLE,
        f"Reproduction in {len(lpmt.studies) + len(lpmt.points)} studies",
        runs,
        entries,
        body,
        [figures],
    )


def _introduction(lpmt: Lpmt, runs: Runs, command: str) -> str:
    known = [(a.name, text(a.source)) for a in lpmt.applications]
    known.append(("Lookups", "back to back, all known beforehand, unless a table says otherwise"))
    return section(
        "run", "What was run", facts(known), sections.command(command), sections.verdict(runs)
    )


def _colours(names: list[str]) -> dict[str, str]:
    return {name: f"var(--run-{i % COLOURS})" for i, name in enumerate(names)}


def _colour(field: str, colours: dict[str, str]) -> dict[str, Any]:
    scale = {"domain": list(colours), "range": list(colours.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": None}


def progress(lpmt: Lpmt) -> Chart:
    """Figure 8: latency over the progress of a workload."""
    colours = _colours(list(POLICIES))
    data: Columns = {name: [] for name in ("workload", "policy", "tenth", "ns")}
    sources = {f"{files(lpmt):,} files, half of the lookups again": "figure 8, stream"}
    sources |= {f"{a.name}, every constraint": f"trace, real/{a.name}" for a in lpmt.applications}
    for workload, key in sources.items():
        for policy in POLICIES:
            for tenth, found in enumerate(lpmt.studies[f"{key}/{policy}"]["tenths"], 1):
                values = (workload, policy, tenth, rounded(found["ns_per_lookup"]))
                for column, value in zip(data.values(), values, strict=True):
                    column.append(value)

    def panel(workload: str) -> dict[str, Any]:
        return {
            "title": f"{workload}: ns a lookup, over tenths of the requests",
            "height": 130,
            "data": {"name": "progress"},
            "transform": [{"filter": {"field": "workload", "equal": workload}}],
            "mark": {"type": "line", "point": {"filled": True, "size": 40}, "strokeWidth": 2},
            "encoding": {
                "x": {
                    "field": "tenth",
                    "type": "quantitative",
                    "axis": axis("short", tickCount=10),
                },
                "y": {
                    "field": "ns",
                    "type": "quantitative",
                    "scale": {"zero": False},
                    "axis": axis("short", tickCount=4),
                },
                "color": _colour("policy", colours),
                "tooltip": [
                    text_field("policy", "policy"),
                    number_field("ns", "ns a lookup", "short"),
                ],
            },
        }

    said = "; ".join(
        f"{workload}, {policy}: {lpmt.studies[f'{key}/{policy}']['ns_per_lookup']:.1f} ns"
        for workload, key in sources.items()
        for policy in POLICIES
    )
    columns = [
        ("workload", "Workload", "text"),
        ("policy", "Policy", "text"),
        ("tenth", "Tenth", "short"),
        ("ns", "Ns a lookup", "short"),
    ]
    return Chart(
        "progress",
        "Figure 8: latency over progress",
        f"Means. {said}",
        stack([panel(workload) for workload in sources]),
        {"progress": data},
        {"progress": ("Latency over progress", columns)},
        key=colour_key("Policies", list(colours.items())),
    )


def sweep(lpmt: Lpmt) -> Chart:
    """Nanoseconds against bytes, every configuration of the sweep.

    Those that no other beats joined by a line.
    """
    orders = list(dict.fromkeys(p.order for p in lpmt.points))
    colours = _colours(orders)
    names = ("application", "order", "configuration", "bytes", "ns", "best")
    data: Columns = {name: [] for name in names}
    for application in lpmt.applications:
        front = {id(p) for p in lpmt.pareto(application.name)}
        for p in lpmt.of(application.name):
            values = (p.application, p.order, p.name, p.bytes, rounded(p.ns), int(id(p) in front))
            for column, value in zip(data.values(), values, strict=True):
                column.append(value)
    sizes = sorted(set(data["bytes"]))

    def panel(application: str) -> dict[str, Any]:
        x = {
            "field": "bytes",
            "type": "quantitative",
            "scale": {
                "type": "log",
                "base": 2,
                "domain": [sizes[0] / 1.2, sizes[-1] * 1.2],
                "nice": False,
            },
            "axis": axis("memory", tickCount=6),
        }
        y = {"field": "ns", "type": "quantitative", "axis": axis("short", tickCount=5)}
        tooltip = [
            text_field("configuration", "configuration"),
            number_field("ns", "ns a lookup", "short"),
            number_field("bytes", "DRAM", "memory"),
        ]
        points = {
            "mark": {"type": "point", "filled": True, "size": 26, "opacity": 0.7},
            "encoding": {"x": x, "y": y, "color": _colour("order", colours), "tooltip": tooltip},
        }
        line = {
            "transform": [{"filter": {"field": "best", "equal": 1}}],
            "mark": {"type": "line", "strokeWidth": 1.5, "interpolate": "step-after"},
            "encoding": {"x": x, "y": y},
        }
        return {
            "title": f"{application}: ns a lookup, over bytes of DRAM",
            "height": 220,
            "data": {"name": "sweep"},
            "transform": [{"filter": {"field": "application", "equal": application}}],
            "layer": [line, points],
        }

    said = "; ".join(
        f"{a.name}: {', '.join(f'{p.name} {p.ns:.1f} ns' for p in lpmt.pareto(a.name))}"
        for a in lpmt.applications
    )
    columns = [
        ("application", "Trace", "text"),
        ("configuration", "Configuration", "text"),
        ("bytes", "DRAM", "memory"),
        ("ns", "Ns a lookup", "short"),
    ]
    return Chart(
        "sweep",
        "Nanoseconds against bytes",
        f"Configurations that no other one beats. {said}",
        stack([panel(a.name) for a in lpmt.applications]),
        {"sweep": data},
        {"sweep": ("Every configuration", columns)},
        key=colour_key("Orders", list(colours.items())),
    )
