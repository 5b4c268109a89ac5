"""The report of the DRAM+NVM map experiment."""

from __future__ import annotations

from typing import Any

from flashatlas.report import sections
from flashatlas.report.bars import BAR
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
from flashatlas.report.palette import Runs
from flashatlas.reproduce.nvm_map.plan import NvmMap
from flashatlas.reproduce.nvm_map.tables import HEADLINE, NUMBERS, headline_rows, numbers_of

TITLE = "The map in DRAM and NVM"


def page(nvm: NvmMap, command: str) -> str:
    """The report as HTML text; ``command`` runs all of it again."""
    runs = Runs([row.result for row in nvm.rows])
    figure = Section(
        "figure",
        "Figure 1",
        "Improvement over each size of NVM; the paper's axis is this ratio.",
        [gains(nvm)],
    )
    entries = [
        ("run", "What was run"),
        ("headline", "Published and ours"),
        ("figure", figure.title),
        ("numbers", "What each FLUSH costs"),
        ("approximations", "Approximations"),
    ]
    body = [_introduction(nvm, runs, command), _headline(nvm), figure.html(), _numbers(nvm)]
    body.append(sections.approximations(runs))
    return document(TITLE, f"Reproduction in {len(nvm.rows)} runs", runs, entries, body, [figure])


def _introduction(nvm: NvmMap, runs: Runs, command: str) -> str:
    experiment = nvm.experiment
    known = [
        ("Drive", text(f"{experiment['drive']}, {', '.join(experiment['set'])}")),
        ("Workloads", text("; ".join(f"{w['name']}: {w['spec']}" for w in experiment["workload"]))),
        ("Trace", text(f"{nvm.trace.name}: {nvm.trace.source}")),
        ("NVM", "PCM-like: 32 KB in 13 µs, a hundredth of a program"),
    ]
    return section(
        "run", "What was run", facts(known), sections.command(command), sections.verdict(runs)
    )


def _headline(nvm: NvmMap) -> str:
    lead = (
        "The largest gain of DRAM+NVM on the paper's workloads. The paper says of its baseline "
        "that it writes 4 KB map pages; how its directory survives, and whether map pages are "
        "programmed side by side, it does not say."
    )
    return section(
        "headline",
        "Published and ours",
        f'<p class="lead">{text(lead)}</p>',
        table(
            "Gains",
            [name.capitalize() for name in HEADLINE],
            [("", table_rows(headline_rows(nvm)))],
        ),
    )


def _numbers(nvm: NvmMap) -> str:
    bodies = [
        (text(name), table_rows([(row.map, *numbers_of(row)) for row in nvm.of(name)]))
        for name in nvm.workloads
    ]
    lead = (
        "Programs of data, map pages and directory pages to flash, and bytes to NVM, of one FLUSH "
        "on average. From one DRAM map to the next, one more thing has to be complete before a "
        "FLUSH is: there the factor comes from."
    )
    return section(
        "numbers",
        "What each FLUSH costs",
        f'<p class="lead">{text(lead)}</p>',
        table(
            "What each FLUSH costs",
            ["Map", *(name[0].upper() + name[1:] for name in NUMBERS)],
            bodies,
        ),
    )


def gains(nvm: NvmMap) -> Chart:
    """Figure 1: calls a second, with the paper's baseline as 1."""
    over = nvm.baselines[0]
    data: Columns = {"workload": [], "map": [], "value": [], "kind": []}
    for row in nvm.rows:
        data["workload"].append(row.workload)
        data["map"].append(row.map)
        data["value"].append(rounded(nvm.gain(row, over)))
        data["kind"].append("DRAM" if row.slots is None else "DRAM+NVM")
    top = max(value for value in data["value"] if value is not None)
    panels = []
    for name in nvm.workloads:
        maps = [row.map for row in nvm.of(name)]
        panels.append(
            {
                "title": name,
                "height": {"step": BAR},
                "data": {"name": "gains"},
                "transform": [{"filter": {"field": "workload", "equal": name}}],
                "mark": {"type": "bar", "height": BAR - 6},
                "encoding": {
                    "y": {
                        "field": "map",
                        "type": "nominal",
                        "sort": None,
                        "scale": {"domain": maps},
                        "axis": {"title": None, "ticks": False, "domain": False, "labelPadding": 8},
                    },
                    "x": {
                        "field": "value",
                        "type": "quantitative",
                        "scale": {"domain": [0, top * 1.05], "nice": False},
                        "axis": axis("short", tickCount=6),
                    },
                    "color": {
                        "field": "kind",
                        "type": "nominal",
                        "scale": {
                            "domain": ["DRAM", "DRAM+NVM"],
                            "range": ["var(--run-5)", "var(--run-0)"],
                        },
                        "legend": None,
                    },
                    "tooltip": [
                        text_field("map", "map"),
                        number_field("value", f"over “{over}”", "ratio"),
                    ],
                },
            }
        )
    said = "; ".join(
        f"{row.workload}, {row.map}: {gain:.2f}"
        for row in nvm.rows
        if row.figure and (gain := nvm.gain(row, over)) is not None
    )
    columns = [
        ("workload", "Workload", "text"),
        ("map", "Map", "text"),
        ("value", f"Over “{over}”", "ratio"),
    ]
    spec: dict[str, Any] = stack(panels)
    return Chart(
        "gains",
        f"Calls a second, with “{over}” as 1",
        f"Gains over {over}. {said}",
        spec,
        {"gains": data},
        {"gains": ("Gains", columns)},
        lead="Of the trace: how many times shorter the mean FLUSH is.",
        left="names",
    )
