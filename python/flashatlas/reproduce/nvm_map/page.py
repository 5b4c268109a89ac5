"""The report of the DRAM+NVM map experiment."""

from __future__ import annotations

from typing import Any

from flashatlas.report import chart
from flashatlas.report.bars import BAR
from flashatlas.report.html import section, table, table_rows, text
from flashatlas.reproduce.nvm_map.plan import NvmMap
from flashatlas.reproduce.nvm_map.policy import HEAD as POLICY_HEAD
from flashatlas.reproduce.nvm_map.tables import (
    HEADLINE,
    NUMBERS,
    headline_rows,
    numbers_of,
    policy_rows,
)
from flashatlas.reproduce.page import Part, report

TITLE = "The map in DRAM and NVM"


def page(nvm: NvmMap, command: str) -> str:
    """Return the report as HTML text; ``command`` runs everything again."""
    experiment = nvm.experiment
    known = [
        ("Drive", text(f"{experiment['drive']}, {', '.join(experiment['set'])}")),
        ("Workloads", text("; ".join(f"{w['name']}: {w['spec']}" for w in experiment["workload"]))),
        ("Traces", text("; ".join(f"{trace.name}: {trace.source}" for trace in nvm.traces))),
        ("NVM", "PCM-like: 32 KB in 13 µs, a hundredth of a program"),
    ]
    lead = "The gain of each size of NVM; the paper's axis is this ratio."
    parts: list[Part] = [
        ("headline", "Published and ours", _headline(nvm)),
        chart.Section("figure", "Figure 1", lead, [gains(nvm)]),
        ("numbers", "What each FLUSH costs", _numbers(nvm)),
        ("policy", "What the policy does", _policy(nvm)),
    ]
    aside = f"Reproduction in {len(nvm.results)} runs"
    return report(TITLE, aside, nvm.results, known, parts, command)


def _headline(nvm: NvmMap) -> str:
    lead = (
        "The largest gain of DRAM+NVM on the paper's workloads. The paper says that its baseline "
        "writes 4 KB map pages; it does not say how the directory survives, and whether map pages "
        "are programmed side by side."
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
        "on average. From one DRAM map to the next, a FLUSH waits for one more write: this causes "
        "the factor."
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


def _policy(nvm: NvmMap) -> str:
    lead = (
        "Segments of the map by the way in which a FLUSH, a lack of room or idle time moved them. "
        "The paper names the states sparse, dense and full, and empties NVM in idle time; eviction "
        "under load (map.nvm_evict) is beyond it."
    )
    bodies = [(text(name), table_rows(rows)) for name, rows in policy_rows(nvm).items()]
    head = [name[0].upper() + name[1:] for name in POLICY_HEAD]
    return section(
        "policy",
        "What the policy does",
        f'<p class="lead">{text(lead)}</p>',
        table("What the policy does", head, bodies),
    )


def gains(nvm: NvmMap) -> chart.Chart:
    """Return figure 1: calls per second, with the paper's baseline as 1."""
    over = nvm.baselines[0]
    rows = [
        (
            row.workload,
            row.map,
            chart.rounded(nvm.gain(row, over)),
            "DRAM" if row.slots is None else "DRAM+NVM",
        )
        for row in nvm.rows
    ]
    data = chart.columns_of(("workload", "map", "value", "kind"), rows)
    top = max(value for value in data["value"] if value is not None)
    panels: list[dict[str, Any]] = []
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
                    "y": chart.a_row_each("map", maps),
                    "x": {
                        **chart.quantity("value", "short", tickCount=6),
                        "scale": {"domain": [0, top * 1.05], "nice": False},
                    },
                    "color": chart.coloured(
                        "kind", {"DRAM": "var(--run-5)", "DRAM+NVM": "var(--run-0)"}
                    ),
                    "tooltip": [
                        chart.text_field("map", "map"),
                        chart.number_field("value", f"over “{over}”", "ratio"),
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
    spec: dict[str, Any] = chart.stack(panels)
    return chart.Chart(
        "gains",
        f"Calls a second, with “{over}” as 1",
        f"Gains over {over}. {said}",
        spec,
        {"gains": data},
        {"gains": ("Gains", columns)},
        lead="For a trace: the factor by which the mean FLUSH is shorter.",
        left="names",
    )
