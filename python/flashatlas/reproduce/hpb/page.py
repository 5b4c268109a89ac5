"""The report of the HPB experiment."""

from __future__ import annotations

from typing import Any

from flashatlas.report import chart
from flashatlas.report.html import text
from flashatlas.report.palette import colour_key
from flashatlas.reproduce.hpb.plan import Hpb
from flashatlas.reproduce.hpb.studies import read_mean_ns
from flashatlas.reproduce.page import report
from flashatlas.reproduce.table import html
from flashatlas.results.units import size

TITLE = "HPB: the map cached in host memory"


def page(hpb: Hpb, command: str) -> str:
    """Return the report as HTML text; ``command`` runs everything again."""
    known = [("Drive", text(f"{hpb.experiment['drive']}, every page written once before"))]
    known += [(phone.name, text(phone.source)) for phone in hpb.phones]
    pictures = chart.Section("figures", "Pictures", "", [mixed(hpb), memory(hpb)])
    aside = f"{len(hpb.runs)} runs"
    return report(TITLE, aside, hpb.results, known, [pictures, *html(hpb.tables())], command)


def _lines(
    data: str, title: str, fields: tuple[str, str, str], colours: dict[str, str], sizes: list[int]
) -> dict[str, Any]:
    """Return lines over bytes, which double along the axis.

    ``fields`` are the fields of both axes and of the colours.
    """
    x, y, series = fields
    return {
        "title": title,
        "height": 180,
        "data": {"name": data},
        "mark": chart.LINE,
        "encoding": {
            "x": chart.over_bytes(x, sizes),
            "y": {**chart.quantity(y, "short", tickCount=5), "scale": {"zero": False}},
            "color": chart.coloured(series, colours),
            "tooltip": [
                chart.text_field(series, series),
                chart.number_field(x, x, "memory"),
                chart.number_field(y, y, "short"),
            ],
        },
    }


def mixed(hpb: Hpb) -> chart.Chart:
    """Return the chart of the gain of mixed work over the size of chunks."""
    chunks, reads = hpb.experiment["mixed"]["chunks"], hpb.experiment["mixed"]["reads"]
    colours = {f"{r // 10}:{10 - r // 10}": f"var(--run-{i})" for i, r in enumerate(reads)}
    rows = [
        (mix, chunk, hpb.mixed_gain(share, chunk))
        for share, mix in zip(reads, colours, strict=True)
        for chunk in chunks
    ]
    data = chart.columns_of(("mix", "chunk", "gain"), rows)
    title = "speed with HPB over speed without it, over the size of chunks"
    said = "; ".join(
        f"R:W {m}, chunks of {size(c)}: {g:.2f}" for m, c, g in zip(*data.values(), strict=True)
    )
    columns = [("mix", "R:W", "text"), ("chunk", "Chunks of", "memory"), ("gain", "Gain", "short")]
    return chart.Chart(
        "mixed",
        "Mixed reads and writes",
        said,
        chart.stack([_lines("mixed", title, ("chunk", "gain", "mix"), colours, chunks)]),
        {"mixed": data},
        {"mixed": ("Gain of mixed work", columns)},
        key=colour_key("R:W", list(colours.items())),
    )


def memory(hpb: Hpb) -> chart.Chart:
    """Return the chart of the mean latency of phones' reads over host memory."""
    sizes = hpb.experiment["phone"]["host_bytes"]
    colours = {phone.name: f"var(--run-{i})" for i, phone in enumerate(hpb.phones)}
    rows = []
    for phone in hpb.phones:
        without = read_mean_ns(hpb.phone(phone.name, None))
        for bytes_ in sizes:
            saved = 1 - read_mean_ns(hpb.phone(phone.name, bytes_)) / without
            rows.append((phone.name, bytes_, 100 * saved))
    data = chart.columns_of(("phone", "memory", "saved"), rows)
    title = "mean read latency saved, percent, over host memory"
    said = "; ".join(f"{p}, {size(m)}: {s:.2f} %" for p, m, s in zip(*data.values(), strict=True))
    columns = [
        ("phone", "Trace", "text"),
        ("memory", "Host memory", "memory"),
        ("saved", "Saved, %", "short"),
    ]
    return chart.Chart(
        "memory",
        "Phones: host memory",
        said,
        chart.stack([_lines("memory", title, ("memory", "saved", "phone"), colours, sizes)]),
        {"memory": data},
        {"memory": ("Read latency saved", columns)},
        key=colour_key("Trace", list(colours.items())),
    )
