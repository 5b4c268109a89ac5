"""The report of demand-paged maps over the size of their memory."""

from __future__ import annotations

from typing import Any

from flashatlas.report import chart
from flashatlas.report.html import section, table, table_rows, text
from flashatlas.report.palette import COLOURS, colour_key
from flashatlas.reproduce.demand_map.plan import DemandMap
from flashatlas.reproduce.demand_map.tables import NUMBERS, name_of, numbers_of
from flashatlas.reproduce.page import Part, report

TITLE = "Demand-paged maps"

METRICS = (
    ("hit_ratio", "hit ratio", "share"),
    ("reads", "map pages read, for 1,000 accesses", "short"),
    ("writes", "map pages written, for 1,000 accesses", "short"),
    ("latency", "mean latency of reads, µs", "short"),
)


def page(demand: DemandMap, command: str) -> str:
    """Return the report as HTML text; ``command`` runs everything again."""
    depth = demand.experiment["depth"]
    known = [(a.name, text(f"{a.source}, on {a.options['drive']}")) for a in demand.applications]
    known.append(("Played", text(f"closed loop of {depth}: service times, without queueing")))
    figure = chart.Section("figure", "Over the size of memory", "", [over_memory(demand)])
    parts: list[Part] = [figure, ("numbers", "All numbers", _numbers(demand))]
    results = [row.result for row in demand.rows]
    return report(TITLE, f"{len(demand.rows)} runs", results, known, parts, command)


def _numbers(demand: DemandMap) -> str:
    bodies = [
        (text(a.name), table_rows([(name_of(row), *numbers_of(row)) for row in demand.of(a.name)]))
        for a in demand.applications
    ]
    lead = (
        "Map pages are counted for each thousand lookups and changes of the host; dram has the "
        "whole map in memory."
    )
    return section(
        "numbers",
        "All numbers",
        f'<p class="lead">{text(lead)}</p>',
        table("All numbers", ["Store", *(name[0].upper() + name[1:] for name in NUMBERS)], bodies),
    )


def over_memory(demand: DemandMap) -> chart.Chart:
    """Return the chart of hit ratio, map reads and writes, and latency over the memory in bytes."""
    stores = list(dict.fromkeys(row.store for row in demand.rows if row.cache_bytes))
    colours = {store: f"var(--run-{i % COLOURS})" for i, store in enumerate(stores)}
    names = ("application", "store", "bytes", *(metric[0] for metric in METRICS))
    rows = []
    for row in (row for row in demand.rows if row.cache_bytes is not None):
        latency = row.latency_ns("read")
        values = (row.hit_ratio, row.reads, row.writes, None if latency is None else latency / 1e3)
        rows.append((row.application, row.store, row.cache_bytes, *map(chart.rounded, values)))
    data = chart.columns_of(names, rows)
    sizes = sorted(set(data["bytes"]))

    def panel(application: str, field: str, title: str, kind: str) -> dict[str, Any]:
        encoding = {
            "x": chart.over_bytes("bytes", sizes),
            "y": chart.quantity(field, kind, tickCount=4),
            "color": chart.coloured("store", colours),
            "tooltip": [
                chart.text_field("store", "store"),
                chart.number_field("bytes", "memory", "memory"),
                chart.number_field(field, title, kind),
            ],
        }
        return {
            "title": f"{application}: {title}",
            "height": 130,
            "data": {"name": "memory"},
            "transform": [{"filter": {"field": "application", "equal": application}}],
            "mark": chart.LINE,
            "encoding": encoding,
        }

    panels = [panel(a.name, *metric) for a in demand.applications for metric in METRICS]
    said = "; ".join(
        f"{row.application}, {name_of(row)}: {100 * row.hit_ratio:.0f} %"
        for row in demand.rows
        if row.cache_bytes
    )
    columns = [
        ("application", "Application", "text"),
        ("store", "Store", "text"),
        ("bytes", "Memory", "memory"),
        *((field, title[0].upper() + title[1:], kind) for field, title, kind in METRICS),
    ]
    return chart.Chart(
        "memory",
        "Hit ratio, map traffic and latency",
        f"Hit ratios. {said}",
        chart.stack(panels),
        {"memory": data},
        {"memory": ("Over the size of memory", columns)},
        key=colour_key("Stores", list(colours.items())),
    )
