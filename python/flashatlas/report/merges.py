"""Charts of merges.

They show how data blocks were brought up to date, and how log blocks were reclaimed.
"""

from __future__ import annotations

from flashatlas.report.bars import left, stacked
from flashatlas.report.chart import RUN, Absent, Chart, Columns
from flashatlas.report.palette import TABLE_COLOURS, Runs, colour_key

KINDS = (
    (
        "log_blocks",
        "Log blocks reclaimed",
        "How each log block was reclaimed; a <i>moved</i> one gave its valid pages to others.",
    ),
    (
        "data_blocks",
        "Data blocks merged",
        "How each data block was brought up to date; a dead or moved log block needs no merge.",
    ),
)


def charts(runs: Runs) -> list[Chart | Absent]:
    """Return a chart of log blocks and one of data blocks; a class keeps its colour in both."""
    found: dict[str, Columns] = {}
    for i, result in enumerate(runs.results):
        for blocks, kinds in result.record.get("merges", {}).items():
            if blocks not in (kind for kind, *_ in KINDS) or not isinstance(kinds, dict):
                continue
            parts = found.setdefault(blocks, {"run": [], "part": [], "value": []})
            for kind, count in kinds.items():
                parts["run"].append(i)
                parts["part"].append(kind)
                parts["value"].append(count)
    if not found:
        return [Absent("Merges by class", "no scheme of these runs merges blocks.")]
    classes = list(
        dict.fromkeys(part for kind, *_ in KINDS if kind in found for part in found[kind]["part"])
    )
    colours = {name: f"var(--table-{i % TABLE_COLOURS})" for i, name in enumerate(classes)}
    return [
        _chart(runs, kind, title, lead, found[kind], colours)
        for kind, title, lead in KINDS
        if kind in found
    ]


def _chart(
    runs: Runs, id: str, title: str, lead: str, parts: Columns, colours: dict[str, str]
) -> Chart:
    own = {name: colour for name, colour in colours.items() if name in parts["part"]}
    totals: dict[int, int] = {}
    for i, count in zip(parts["run"], parts["value"], strict=True):
        totals[i] = totals.get(i, 0) + count
    said = "; ".join(f"{runs.names[i]}: {total:,}" for i, total in totals.items())
    spec = stacked(runs, parts, own, "count", max(*totals.values(), 1))
    spec["data"] = {"name": id}
    return Chart(
        id.replace("_", "-"),
        title,
        f"{title}. {said}",
        spec,
        {id: parts},
        {id: (title, [RUN, ("part", "Class", "text"), ("value", "Blocks", "count")])},
        lead=lead,
        key=colour_key("Classes", list(own.items())),
        left=left(runs),
    )
