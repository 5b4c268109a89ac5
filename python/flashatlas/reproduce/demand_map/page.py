"""The report of demand-paged maps over the size of their memory."""

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
from flashatlas.report.html import facts, section, table, table_rows, text
from flashatlas.report.page import document
from flashatlas.report.palette import COLOURS, Runs, colour_key
from flashatlas.reproduce.demand_map.plan import DemandMap
from flashatlas.reproduce.demand_map.tables import NUMBERS, name_of, numbers_of

TITLE = "Demand-paged maps"

METRICS = (
    ("hit_ratio", "hit ratio", "share"),
    ("reads", "map pages read, for 1,000 accesses", "short"),
    ("writes", "map pages written, for 1,000 accesses", "short"),
    ("latency", "mean latency of reads, µs", "short"),
)


def page(demand: DemandMap, command: str) -> str:
    """The report as HTML text; ``command`` runs all of it again."""
    runs = Runs([row.result for row in demand.rows])
    figure = Section("figure", "Over the size of memory", "", [over_memory(demand)])
    entries = [
        ("run", "What was run"),
        ("figure", figure.title),
        ("numbers", "All numbers"),
        ("approximations", "Approximations"),
    ]
    body = [
        _introduction(demand, runs, command),
        figure.html(),
        _numbers(demand),
        sections.approximations(runs),
    ]
    return document(TITLE, f"{len(demand.rows)} runs", runs, entries, body, [figure])


def _introduction(demand: DemandMap, runs: Runs, command: str) -> str:
    known = [(a.name, text(f"{a.source}, on {a.options['drive']}")) for a in demand.applications]
    known.append(
        (
            "Played",
            text(f"closed loop of {demand.experiment['depth']}: service times, without queueing"),
        )
    )
    return section(
        "run", "What was run", facts(known), sections.command(command), sections.verdict(runs)
    )


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


def over_memory(demand: DemandMap) -> Chart:
    """The picture: hit ratio, map reads and writes, and latency over the bytes of memory."""
    stores = list(dict.fromkeys(row.store for row in demand.rows if row.cache_bytes))
    colours = {store: f"var(--run-{i % COLOURS})" for i, store in enumerate(stores)}
    data: Columns = {
        name: [] for name in ("application", "store", "bytes", *(m[0] for m in METRICS))
    }
    for row in demand.rows:
        if row.cache_bytes is None:
            continue
        latency = row.latency_ns("read")
        values = (row.hit_ratio, row.reads, row.writes, None if latency is None else latency / 1e3)
        for column, value in zip(
            data.values(),
            (row.application, row.store, row.cache_bytes, *map(rounded, values)),
            strict=True,
        ):
            column.append(value)
    sizes = sorted(set(data["bytes"]))

    def panel(application: str, field: str, title: str, kind: str) -> dict[str, Any]:
        encoding = {
            "x": {
                "field": "bytes",
                "type": "quantitative",
                "scale": {
                    "type": "log",
                    "base": 2,
                    "domain": [sizes[0] / 1.2, sizes[-1] * 1.2],
                    "nice": False,
                },
                "axis": axis("memory", values=sizes),
            },
            "y": {"field": field, "type": "quantitative", "axis": axis(kind, tickCount=4)},
            "color": {
                "field": "store",
                "type": "nominal",
                "scale": {"domain": list(colours), "range": list(colours.values())},
                "legend": None,
            },
            "tooltip": [
                text_field("store", "store"),
                number_field("bytes", "memory", "memory"),
                number_field(field, title, kind),
            ],
        }
        return {
            "title": f"{application}: {title}",
            "height": 130,
            "data": {"name": "memory"},
            "transform": [{"filter": {"field": "application", "equal": application}}],
            "mark": {"type": "line", "point": {"filled": True, "size": 40}, "strokeWidth": 2},
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
    return Chart(
        "memory",
        "Hit ratio, map traffic and latency",
        f"Hit ratios. {said}",
        stack(panels),
        {"memory": data},
        {"memory": ("Over the size of memory", columns)},
        key=colour_key("Stores", list(colours.items())),
    )
