"""Charts of the parts of latencies (``--explain``)."""

from __future__ import annotations

from typing import Any

from flashatlas.report.bars import BAR
from flashatlas.report.chart import (
    RUN,
    Chart,
    Columns,
    Section,
    a_row_each,
    axis,
    coloured,
    columns_of,
    number_field,
    text_field,
)
from flashatlas.report.palette import Runs, colour_key
from flashatlas.results.reasons import REASONS, in_words, shares
from flashatlas.results.units import duration

TOGETHER = {
    "host_queue": ("before the drive", "host"),
    "layer": ("before the drive", "host"),
    "controller": ("controller and its tables", "controller"),
    "throttle": ("before the drive", "host"),
    "tables": ("controller and its tables", "controller"),
    "link_queue": ("host link", "link"),
    "cache": (REASONS["die_queue"], "die"),
    "die_queue": (REASONS["die_queue"], "die"),
    "channel_queue": ("channel", "channel"),
}
"""Reasons that are drawn together with others, or whose colour has another name."""

PAINTED = {reason: TOGETHER.get(reason, (words, reason)) for reason, words in REASONS.items()}
"""The part in which each reason is drawn, and the part's colour (``assets/report.css``)."""

BANDS = {
    "p0": "up to p50",
    "p50": "p50 to p90",
    "p90": "p90 to p99",
    "p99": "p99 to p99.9",
    "p99.9": "from p99.9 on",
}


def section(runs: Runs) -> Section | None:
    """Return each operation's parts by latency or by run, and a single run's longest requests."""
    explained = [result.record.get("explain") for result in runs.results]
    if not any(explained):
        return None
    made = Section(
        "reasons",
        "Parts of latencies",
        "The critical path of each request, by cause. Collection, merges and map "
        "pages count wherever they stand on a path, and wherever they hold a die that a request "
        "waits for.",
    )
    for op in dict.fromkeys(op for found in explained if found for op in found["ops"]):
        made.parts.append(_by_latency(runs, op) if runs.single else _by_run(runs, op))
    if runs.single and (chart := _longest(runs)):
        made.parts.append(chart)
    return made


def _colours(names: list[str]) -> dict[str, str]:
    painted = dict(PAINTED.values())
    return {name: f"var(--reason-{colour})" for name, colour in painted.items() if name in names}


def _add(data: Columns, place: dict[str, Any], group: dict[str, Any]) -> None:
    """Add the parts of some requests; reasons with one colour are one part."""
    parts: dict[str, float] = {}
    for reason, share in shares(group).items():
        name = PAINTED[reason][0]
        parts[name] = parts.get(name, 0.0) + share
    for name, share in parts.items():
        row = {**place, "part": name, "share": share, "time": share * group["mean_ns"]}
        for column, value in row.items():
            data.setdefault(column, []).append(value)


def _by_latency(runs: Runs, op: str) -> Chart:
    slow = runs.results[0].record["explain"]["ops"][op]
    data: Columns = {}
    for band in slow["bands"]:
        _add(data, {"run": 0, "band": BANDS[band["from"]]}, band)
    rows = [BANDS[band["from"]] for band in slow["bands"]]
    said = "; ".join(f"{BANDS[band['from']]}: {in_words(band)}" for band in slow["bands"])
    x = {
        "field": "share",
        "type": "quantitative",
        "stack": "zero",
        "scale": {"domain": [0, 1]},
        "axis": axis("share", title=f"share of the time of {op}s"),
    }
    lead = "Requests by their latency, the fastest at the top."
    return _bars(runs, op, data, ("band", rows), x, said, lead)


def _by_run(runs: Runs, op: str) -> Chart:
    data: Columns = {}
    said = []
    percentile = ""
    for i, (name, result) in enumerate(zip(runs.names, runs.results, strict=True)):
        found = result.record.get("explain")
        if found and op in found["ops"]:
            _add(data, {"run": i}, found["ops"][op])
            said.append(f"{name}: {in_words(found['ops'][op])}")
            percentile = found["percentile"]
    x = {
        "field": "time",
        "type": "quantitative",
        "stack": "zero",
        "axis": axis("duration", title=f"mean time of {op}s from {percentile} on"),
    }
    lead = f"Mean time of the requests from {percentile} on."
    return _bars(runs, op, data, ("run", runs.names), x, "; ".join(said), lead)


def _bars(
    runs: Runs,
    op: str,
    data: Columns,
    rows: tuple[str, list[str]],
    x: dict[str, Any],
    said: str,
    lead: str,
) -> Chart:
    colours = _colours(data.get("part", []))
    order = {name: place for place, name in enumerate(colours)}
    data["order"] = [order[name] for name in data.get("part", [])]
    field, names = rows
    title = f"{op.capitalize()}: parts of the time"
    tooltip = [
        text_field(field, "latencies" if field == "band" else "run"),
        text_field("part", "due to"),
        number_field("share", "share", "share"),
        number_field("time", "mean", "duration"),
    ]
    spec = {
        "height": {"step": BAR + 8},
        "data": {"name": "parts"},
        "mark": {"type": "bar", "height": BAR, "stroke": "var(--paper)", "strokeWidth": 1},
        "encoding": {
            "y": a_row_each(field, names),
            "x": x,
            "color": coloured("part", colours),
            "order": {"field": "order", "type": "quantitative"},
            "tooltip": tooltip,
        },
    }
    columns = [
        RUN,
        *([("band", "Latencies", "text")] if field == "band" else []),
        ("part", "Due to", "text"),
        ("share", "Share", "share"),
        ("time", "Mean", "duration"),
    ]
    return Chart(
        f"reasons-{op}",
        title,
        f"Parts of the time of {op}s. {said}",
        spec,
        {"parts": data},
        {"parts": (title, columns)},
        lead=lead,
        key=colour_key("Due to", list(colours.items())),
        left="names",
    )


def _longest(runs: Runs) -> Chart | None:
    """Return the longest requests as time lines."""
    found = runs.results[0].record["explain"]["longest"]
    if not any(request["latency_ns"] for request in found):
        return None
    names = [f"{i}. {request['op']}" for i, request in enumerate(found, 1)]
    rows = [
        (0, name, step["from_ns"], step["to_ns"], PAINTED[step["reason"]][0],
         REASONS[step["reason"]], step["what"] or "–", step["to_ns"] - step["from_ns"])
        for name, request in zip(names, found, strict=True)
        for step in request["steps"]
    ]  # fmt: skip
    fields = ("run", "request", "from", "to", "part", "reason", "what", "time")
    data = columns_of(fields, rows)
    colours = _colours(data["part"])
    title = "The longest requests, at most one from each burst"
    x = {
        "field": "from",
        "type": "quantitative",
        "axis": axis("duration", title="since its arrival"),
    }
    spec = {
        "height": {"step": BAR + 8},
        "data": {"name": "steps"},
        "mark": {"type": "bar", "height": BAR},
        "encoding": {
            "y": a_row_each("request", names),
            "x": x,
            "x2": {"field": "to"},
            "color": coloured("part", colours),
            "tooltip": [
                text_field("reason", "due to"),
                text_field("what", "what"),
                number_field("from", "from", "duration"),
                number_field("time", "for", "duration"),
            ],
        },
    }
    said = "; ".join(
        f"a {request['op']} of {duration(request['latency_ns'])}, from "
        f"{duration(request['arrived_ns'])} on"
        for request in found
    )
    columns = [
        ("request", "Request", "text"),
        ("from", "From", "duration"),
        ("to", "To", "duration"),
        ("reason", "Due to", "text"),
        ("what", "What", "text"),
    ]
    return Chart(
        "longest",
        title,
        f"The longest requests: {said}",
        spec,
        {"steps": data},
        {"steps": (title, columns)},
        lead=f"{said[:1].upper()}{said[1:]}.",
        key=colour_key("Due to", list(colours.items())),
        left="names",
    )
