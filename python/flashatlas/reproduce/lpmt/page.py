"""The report of the lookup engine's experiment."""

from __future__ import annotations

from typing import Any

from flashatlas.report import chart
from flashatlas.report.html import text
from flashatlas.report.palette import COLOURS, colour_key
from flashatlas.reproduce.lpmt.plan import Lpmt
from flashatlas.reproduce.lpmt.studies import POLICIES
from flashatlas.reproduce.lpmt.tables import files
from flashatlas.reproduce.page import report
from flashatlas.reproduce.table import html

TITLE = "Hardware lookup: LPMT in a multi-bank DRAM"


def page(lpmt: Lpmt, command: str) -> str:
    """Return the report as HTML text; ``command`` runs everything again."""
    known = [(a.name, text(a.source)) for a in lpmt.traces]
    known.append(("Lookups", "back to back, all known beforehand, unless a table says otherwise"))
    pictures = chart.Section("figures", "Pictures", "", [progress(lpmt)])
    if lpmt.points:
        pictures.parts.append(sweep(lpmt))
    aside = f"Reproduction in {len(lpmt.studies) + len(lpmt.points)} studies"
    return report(TITLE, aside, lpmt.results, known, [pictures, *html(lpmt.tables())], command)


def _colours(names: list[str]) -> dict[str, str]:
    return {name: f"var(--run-{i % COLOURS})" for i, name in enumerate(names)}


def progress(lpmt: Lpmt) -> chart.Chart:
    """Return figure 8: latency over the progress of a workload."""
    colours = _colours(list(POLICIES))
    sources = {f"{files(lpmt):,} files, half of the lookups again": "figure 8, stream"}
    sources |= {f"{a.name}, every constraint": f"trace, real/{a.name}" for a in lpmt.traces}
    rows = [
        (workload, policy, tenth, found["ns_per_lookup"])
        for workload, key in sources.items()
        for policy in POLICIES
        for tenth, found in enumerate(lpmt.studies[f"{key}/{policy}"]["tenths"], 1)
    ]
    data = chart.columns_of(("workload", "policy", "tenth", "ns"), rows)

    def panel(workload: str) -> dict[str, Any]:
        return {
            "title": f"{workload}: ns a lookup, over tenths of the requests",
            "height": 130,
            "data": {"name": "progress"},
            "transform": [{"filter": {"field": "workload", "equal": workload}}],
            "mark": chart.LINE,
            "encoding": {
                "x": chart.quantity("tenth", "short", tickCount=10),
                "y": {**chart.quantity("ns", "short", tickCount=4), "scale": {"zero": False}},
                "color": chart.coloured("policy", colours),
                "tooltip": [
                    chart.text_field("policy", "policy"),
                    chart.number_field("ns", "ns a lookup", "short"),
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
    return chart.Chart(
        "progress",
        "Figure 8: latency over progress",
        f"Means. {said}",
        chart.stack([panel(workload) for workload in sources]),
        {"progress": data},
        {"progress": ("Latency over progress", columns)},
        key=colour_key("Policies", list(colours.items())),
    )


def sweep(lpmt: Lpmt) -> chart.Chart:
    """Return the chart of nanoseconds against bytes, for every configuration of the sweep.

    A line joins the configurations that no other one beats.
    """
    orders = list(dict.fromkeys(p.order for p in lpmt.points))
    colours = _colours(orders)
    names = ("application", "order", "configuration", "bytes", "ns", "best")
    rows = []
    for application in lpmt.applications:
        front = {id(p) for p in lpmt.pareto(application.name)}
        for p in lpmt.of(application.name):
            rows.append((p.application, p.order, p.name, p.bytes, p.ns, int(id(p) in front)))
    data = chart.columns_of(names, rows)
    sizes = sorted(set(data["bytes"]))

    def panel(application: str) -> dict[str, Any]:
        x = chart.over_bytes("bytes", sizes, tickCount=6)
        y = chart.quantity("ns", "short", tickCount=5)
        tooltip = [
            chart.text_field("configuration", "configuration"),
            chart.number_field("ns", "ns a lookup", "short"),
            chart.number_field("bytes", "DRAM", "memory"),
        ]
        points = {
            "mark": {"type": "point", "filled": True, "size": 26, "opacity": 0.7},
            "encoding": {
                "x": x,
                "y": y,
                "color": chart.coloured("order", colours),
                "tooltip": tooltip,
            },
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
    return chart.Chart(
        "sweep",
        "Nanoseconds against bytes",
        f"Configurations that no other one beats. {said}",
        chart.stack([panel(a.name) for a in lpmt.applications]),
        {"sweep": data},
        {"sweep": ("Every configuration", columns)},
        key=colour_key("Orders", list(colours.items())),
    )
