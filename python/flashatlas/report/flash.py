"""Charts about the flash: write amplification, wear, memory of the map."""

from __future__ import annotations

from flashatlas.report import merges
from flashatlas.report.bars import left, run_field, stacked
from flashatlas.report.chart import (
    RUN,
    Absent,
    Chart,
    Columns,
    Section,
    axis,
    lacking,
    number_field,
    rounded,
    stack,
    text_field,
)
from flashatlas.report.palette import CAUSES, TABLE_COLOURS, Runs, colour_key
from flashatlas.results.units import size

BINS = 48
"""The largest number of bars in a wear histogram."""


def sections(runs: Runs) -> list[Section]:
    """Return the sections write amplification, wear, and map and merges."""
    return [
        Section(
            "amplification",
            "Write amplification",
            "Bytes programmed for each byte that the host wrote, by what caused the program. Below "
            "1, the write cache absorbed more writes than it passed on.",
            [amplification(runs)],
        ),
        Section(
            "wear",
            "Wear",
            "Erases of each good block over the life of the drive, preconditioning included.",
            [wear(runs)],
        ),
        Section("map", "Map and merges", "", [memory(runs), *merges.charts(runs)]),
    ]


def amplification(runs: Runs) -> Chart | Absent:
    """Return the chart of write amplification by cause, with a bar for each run."""
    title = "Write amplification by cause"
    parts: Columns = {"run": [], "part": [], "value": []}
    for i, result in enumerate(runs.results):
        for cause, name in CAUSES.items():
            value = result.record.get("waf_parts", {}).get(cause)
            if value:
                parts["run"].append(i)
                parts["part"].append(name)
                parts["value"].append(rounded(value))
    if not parts["run"]:
        return Absent(title, "the host wrote nothing, so there is no ratio.")
    wafs = {
        name: result.waf
        for name, result in zip(runs.names, runs.results, strict=True)
        if result.waf is not None
    }
    colours = {
        name: f"var(--cause-{cause})" for cause, name in CAUSES.items() if name in parts["part"]
    }
    says = "Write amplification by cause. " + "; ".join(
        f"{name}: {waf:.3f}" for name, waf in wafs.items()
    )
    spec = stacked(runs, parts, colours, "ratio", max([*wafs.values(), 1.0]))
    spec["layer"].append(
        {
            "data": {"values": [{}]},
            "mark": {"type": "rule", "strokeDash": [3, 3], "stroke": "var(--ink)", "opacity": 0.7},
            "encoding": {"x": {"datum": 1, "type": "quantitative"}},
        }
    )
    return Chart(
        "waf",
        title,
        says,
        spec,
        {"parts": parts},
        {
            "parts": (
                title,
                [RUN, ("part", "Cause", "text"), ("value", "Programmed / written", "ratio")],
            )
        },
        lead="The dashed line is 1: every byte programmed once.",
        key=colour_key("Causes", list(colours.items())),
        left=left(runs),
    )


def wear(runs: Runs) -> Chart | Absent:
    """Return the chart of blocks by erases; several runs have one histogram below the other."""
    title = "Blocks by erases"
    found = [
        (i, r.tables["wear"].to_pydict()) for i, r in enumerate(runs.results) if "wear" in r.tables
    ]
    found = [(i, t) for i, t in found if t["erases"]]
    if not found:
        return Absent(
            title, "no run has a wear table; the summary above has mean, deviation and maximum."
        )
    low = min(min(t["erases"]) for _, t in found)
    high = max(max(t["erases"]) for _, t in found)
    width = -(-(high - low + 1) // BINS)
    data: Columns = {"run": [], "erases": [], "from": [], "to": [], "blocks": [], "share": []}
    for i, histogram in found:
        bins: dict[int, int] = {}
        for erases, blocks in zip(histogram["erases"], histogram["blocks"], strict=True):
            bins[(erases - low) // width] = bins.get((erases - low) // width, 0) + blocks
        total = sum(bins.values()) or 1
        for place, blocks in sorted(bins.items()):
            data["run"].append(i)
            first = low + place * width
            data["erases"].append(
                f"{first:,}" if width == 1 else f"{first:,} to {first + width - 1:,}"
            )
            data["from"].append(first - 0.5)
            data["to"].append(first + width - 0.5)
            data["blocks"].append(blocks)
            data["share"].append(rounded(blocks / total))
    x_scale = {"domain": [low - 0.5, max(low + width * 8, high + 1) - 0.5], "nice": False}
    panels = [
        {
            "height": 180 if runs.single else 44,
            "title": None if runs.single else runs.names[i],
            "transform": [{"filter": {"field": "run", "equal": runs.names[i]}}],
            "data": {"name": "bins"},
            "mark": {"type": "bar", "color": runs.colour(i), "binSpacing": 1},
            "encoding": {
                "x": {
                    "field": "from",
                    "type": "quantitative",
                    "bin": "binned",
                    "scale": x_scale,
                    "axis": axis(
                        "short",
                        tickMinStep=1,
                        labels=(last := i == found[-1][0]),
                        grid=False,
                        title="erases of a block" if last else None,
                    ),
                },
                "x2": {"field": "to"},
                "y": {
                    "field": "blocks",
                    "type": "quantitative",
                    "axis": axis("short", tickCount=5 if runs.single else 2, title="blocks"),
                },
                "tooltip": [
                    *run_field(runs),
                    text_field("erases", "erases"),
                    number_field("blocks", "blocks", "count"),
                    number_field("share", "share of the good blocks", "share"),
                ],
            },
        }
        for i, _ in found
    ]
    said = "; ".join(
        f"{runs.names[i]}: {min(t['erases'])} to {max(t['erases'])} erases per block, "
        f"{sum(t['blocks']):,} good blocks"
        for i, t in found
    )
    missing = [name for i, name in enumerate(runs.names) if i not in {j for j, _ in found}]
    return Chart(
        "wear",
        title,
        f"Histogram of erases. {said}",
        stack(panels),
        {"bins": data},
        {
            "bins": (
                title,
                [
                    RUN,
                    ("erases", "Erases", "text"),
                    ("blocks", "Blocks", "count"),
                    ("share", "Share", "share"),
                ],
            )
        },
        lead=(
            f"Bars are {width} erases wide. "
            if width > 1
            else "A bar is the number of blocks with this number of erases. "
        )
        + lacking(missing, "wear table"),
    )


def memory(runs: Runs) -> Chart | Absent:
    """Return the chart of the memory of the FTL's tables, with a bar for each run."""
    title = "Memory of the tables"
    parts: Columns = {"run": [], "part": [], "value": []}
    totals = []
    for i, result in enumerate(runs.results):
        tables = result.record.get("memory_bytes", {}).get("tables", {})
        for name, count in tables.items():
            parts["run"].append(i)
            parts["part"].append(name)
            parts["value"].append(count)
        totals.append(sum(tables.values()))
    if not any(totals):
        return Absent(title, "no run has the memory of its tables.")
    names = list(dict.fromkeys(parts["part"]))
    colours = {name: f"var(--table-{i % TABLE_COLOURS})" for i, name in enumerate(names)}
    said = "; ".join(
        f"{name}: {size(total)}" for name, total in zip(runs.names, totals, strict=True)
    )
    return Chart(
        "memory",
        title,
        f"Memory of the tables of the translation layer. {said}",
        stacked(runs, parts, colours, "bytes", max(totals)),
        {"parts": parts},
        {"parts": (title, [RUN, ("part", "Table", "text"), ("value", "Memory", "bytes")])},
        lead="Tables that the translation layer keeps in memory; the write cache is not included.",
        key=colour_key("Tables", list(colours.items())),
        left=left(runs),
    )
