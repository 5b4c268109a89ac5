"""The report of the HPB experiment."""

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
from flashatlas.reproduce.hpb.plan import Hpb
from flashatlas.reproduce.hpb.studies import read_mean_ns
from flashatlas.reproduce.table import html
from flashatlas.tables import size

TITLE = "HPB: the map cached in host memory"


def page(hpb: Hpb, command: str) -> str:
    """The report as HTML text; ``command`` runs all of it again."""
    runs = Runs(hpb.results)
    figures = Section("figures", "Pictures", "", [mixed(hpb), memory(hpb)])
    of_tables, parts = html(hpb.tables())
    entries = [
        ("run", "What was run"),
        ("figures", figures.title),
        *of_tables,
        ("approximations", "Approximations"),
    ]
    body = [
        _introduction(hpb, runs, command),
        figures.html(),
        *parts,
        sections.approximations(runs),
    ]
    return document(TITLE, f"{len(hpb.runs)} runs", runs, entries, body, [figures])


def _introduction(hpb: Hpb, runs: Runs, command: str) -> str:
    known = [("Drive", text(f"{hpb.experiment['drive']}, every page written once before"))]
    known += [(phone.name, text(phone.source)) for phone in hpb.phones]
    return section(
        "run", "What was run", facts(known), sections.command(command), sections.verdict(runs)
    )


def _lines(
    data: str, title: str, fields: tuple[str, str, str], colours: dict[str, str], sizes: list[int]
) -> dict[str, Any]:
    """Lines over bytes, which double along the axis.

    ``fields`` are those of both axes and of the colours.
    """
    x, y, series = fields
    return {
        "title": title,
        "height": 180,
        "data": {"name": data},
        "mark": {"type": "line", "point": {"filled": True, "size": 40}, "strokeWidth": 2},
        "encoding": {
            "x": {
                "field": x,
                "type": "quantitative",
                "scale": {
                    "type": "log",
                    "base": 2,
                    "domain": [sizes[0] / 1.2, sizes[-1] * 1.2],
                    "nice": False,
                },
                "axis": axis("memory", values=sizes),
            },
            "y": {
                "field": y,
                "type": "quantitative",
                "axis": axis("short", tickCount=5),
                "scale": {"zero": False},
            },
            "color": {
                "field": series,
                "type": "nominal",
                "scale": {"domain": list(colours), "range": list(colours.values())},
                "legend": None,
            },
            "tooltip": [
                text_field(series, series),
                number_field(x, x, "memory"),
                number_field(y, y, "short"),
            ],
        },
    }


def mixed(hpb: Hpb) -> Chart:
    """The gain of mixed work over the size of chunks."""
    data: Columns = {name: [] for name in ("mix", "chunk", "gain")}
    chunks, reads = hpb.experiment["mixed"]["chunks"], hpb.experiment["mixed"]["reads"]
    colours = {f"{r // 10}:{10 - r // 10}": f"var(--run-{i})" for i, r in enumerate(reads)}
    for share, mix in zip(reads, colours, strict=True):
        for chunk in chunks:
            for column, value in zip(
                data.values(), (mix, chunk, rounded(hpb.mixed_gain(share, chunk))), strict=True
            ):
                column.append(value)
    title = "speed with HPB over that without, over the size of chunks"
    said = "; ".join(
        f"R:W {m}, chunks of {size(c)}: {g:.2f}" for m, c, g in zip(*data.values(), strict=True)
    )
    columns = [("mix", "R:W", "text"), ("chunk", "Chunks of", "memory"), ("gain", "Gain", "short")]
    return Chart(
        "mixed",
        "Mixed reads and writes",
        said,
        stack([_lines("mixed", title, ("chunk", "gain", "mix"), colours, chunks)]),
        {"mixed": data},
        {"mixed": ("Gain of mixed work", columns)},
        key=colour_key("R:W", list(colours.items())),
    )


def memory(hpb: Hpb) -> Chart:
    """Mean latency of phones' reads over host memory."""
    data: Columns = {name: [] for name in ("phone", "memory", "saved")}
    sizes = hpb.experiment["phone"]["host_bytes"]
    colours = {phone.name: f"var(--run-{i})" for i, phone in enumerate(hpb.phones)}
    for phone in hpb.phones:
        without = read_mean_ns(hpb.phone(phone.name, None))
        for bytes_ in sizes:
            saved = 1 - read_mean_ns(hpb.phone(phone.name, bytes_)) / without
            for column, value in zip(
                data.values(), (phone.name, bytes_, rounded(100 * saved)), strict=True
            ):
                column.append(value)
    title = "mean read latency saved, percent, over host memory"
    said = "; ".join(f"{p}, {size(m)}: {s:.2f} %" for p, m, s in zip(*data.values(), strict=True))
    columns = [
        ("phone", "Trace", "text"),
        ("memory", "Host memory", "memory"),
        ("saved", "Saved, %", "short"),
    ]
    return Chart(
        "memory",
        "Phones: host memory",
        said,
        stack([_lines("memory", title, ("memory", "saved", "phone"), colours, sizes)]),
        {"memory": data},
        {"memory": ("Read latency saved", columns)},
        key=colour_key("Trace", list(colours.items())),
    )
