"""Charts of how busy dies, channels and the host link were."""

from __future__ import annotations

from typing import Any

from flashatlas.report.chart import (
    RUN,
    Absent,
    Chart,
    Columns,
    Section,
    a_row_each,
    axis,
    number_field,
    rounded,
    stack,
    text_field,
)
from flashatlas.report.palette import Runs

KINDS = {"die": "Dies", "channel": "Channels"}
LINKS = {"link_in": "to the drive", "link_out": "from the drive"}


def section(runs: Runs) -> Section:
    """Return the section with the busy shares of the resources."""
    made = Section(
        "utilisation",
        "Utilisation",
        "Share of the time until the drive was idle. Dies are busy while they sense, "
        "program or erase.",
    )
    if not any("utilisation" in r.record or "resources" in r.tables for r in runs.results):
        made.parts = [Absent("Utilisation", "the runs were untimed: nothing in them was busy.")]
        return made
    made.parts = [one(runs) if runs.single else side_by_side(runs)]
    return made


def _busy(runs: Runs) -> Columns:
    """Return the busy share of each die and channel, and of the two directions of the host link."""
    data: Columns = {"run": [], "kind": [], "index": [], "busy": []}
    for i, result in enumerate(runs.results):
        rows = result.tables["resources"].to_pylist() if "resources" in result.tables else []
        found = [
            (KINDS.get(row["kind"], row["kind"]), str(row["index"]), row["busy"]) for row in rows
        ]
        utilisation = result.record.get("utilisation", {})
        found += [
            ("Host link", name, utilisation[key])
            for key, name in LINKS.items()
            if key in utilisation
        ]
        for kind, index, busy in found:
            data["run"].append(i)
            data["kind"].append(kind)
            data["index"].append(index)
            data["busy"].append(rounded(busy))
    return data


def _means(runs: Runs) -> Columns:
    """Return the mean, least and greatest share of each run's dies and channels."""
    data: Columns = {"run": [], "kind": [], "mean": [], "min": [], "max": [], "count": []}
    for i, result in enumerate(runs.results):
        for key, kind in (("dies", "Dies"), ("channels", "Channels")):
            values = result.record.get("utilisation", {}).get(key, {})
            if {"mean", "min", "max", "count"} <= values.keys():
                data["run"].append(i)
                data["kind"].append(kind)
                for name in ("mean", "min", "max", "count"):
                    data[name].append(rounded(values[name]))
    return data


def _scale(data: Columns, means: Columns) -> dict[str, Any]:
    """Return the scale of busy shares, from none to all of the time.

    If all shares are small, the scale ends a little above the largest.
    """
    top = max([*data["busy"], *means["max"]], default=1) or 1
    return {"domain": [0, 1 if top > 0.4 else top * 1.15], "nice": False}


def _said(runs: Runs, means: Columns) -> str:
    parts = [
        f"{runs.names[i]}: {kind.lower()} {100 * mean:.0f} % busy in the mean"
        for i, kind, mean in zip(means["run"], means["kind"], means["mean"], strict=True)
    ]
    return f"Utilisation. {'; '.join(parts)}"


TABLES = {
    "busy": (
        "Each resource",
        [RUN, ("kind", "Kind", "text"), ("index", "Number", "text"), ("busy", "Busy", "share")],
    ),
    "means": (
        "By kind",
        [
            RUN,
            ("kind", "Kind", "text"),
            ("count", "Count", "count"),
            ("mean", "Mean", "share"),
            ("min", "Least", "share"),
            ("max", "Most", "share"),
        ],
    ),
}


def _chart(
    runs: Runs, panels: list[dict[str, Any]], data: Columns, means: Columns, **more: Any
) -> Chart:
    sets = {"busy": data, "means": means}
    return Chart(
        "utilisation",
        "Dies, channels, host link",
        _said(runs, means),
        stack(panels),
        sets,
        TABLES,
        **more,
    )


def one(runs: Runs) -> Chart | Absent:
    """Return a bar for each resource of a single run."""
    data, means = _busy(runs), _means(runs)
    kinds = list(dict.fromkeys(data["kind"]))
    if not kinds:
        return Absent("Dies, channels, host link", "the run has no table of resources.")
    scale = _scale(data, means)
    panels = [
        {
            "height": 110 if kind == "Dies" else 70,
            "title": f"{kind}, by number" if kind != "Host link" else kind,
            "data": {"name": "busy"},
            "transform": [{"filter": {"field": "kind", "equal": kind}}],
            "mark": {"type": "bar", "color": f"var(--run-{k})"},
            "encoding": {
                "x": {
                    "field": "index",
                    "type": "ordinal",
                    "sort": None,
                    "axis": {"title": None, "labelAngle": 0, "labelOverlap": True, "grid": False},
                    "scale": {"paddingInner": 0.25, "paddingOuter": 0.1},
                },
                "y": {
                    "field": "busy",
                    "type": "quantitative",
                    "scale": scale,
                    "axis": axis("share", tickCount=3, title="share of the time"),
                },
                "tooltip": [
                    text_field("kind", "kind"),
                    text_field("index", "number"),
                    number_field("busy", "busy", "share"),
                ],
            },
        }
        for k, kind in enumerate(kinds)
    ]
    return _chart(runs, panels, data, means)


def side_by_side(runs: Runs) -> Chart:
    """Return a row for each run: a tick for each resource, a line from least to most, the mean."""
    data, means = _busy(runs), _means(runs)
    y = a_row_each("run", runs.names)
    kinds = [
        kind for kind in ("Dies", "Channels", "Host link") if kind in data["kind"] + means["kind"]
    ]
    scale = _scale(data, means)

    def x_axis(labels: bool) -> dict[str, Any]:
        return {
            "type": "quantitative",
            "scale": scale,
            "axis": axis(
                "share", labels=labels, ticks=labels, title="share of the time" if labels else None
            ),
        }

    panels = [
        {
            "height": {"step": 20},
            "title": kind,
            "layer": _layers(runs, kind, y, x_axis(kind == kinds[-1])),
        }
        for kind in kinds
    ]
    lead = "Thin ticks are single dies, channels and ways of the link; the mark is their mean."
    return _chart(runs, panels, data, means, lead=lead, left="names")


def _layers(runs: Runs, kind: str, y: dict[str, Any], x: dict[str, Any]) -> list[dict[str, Any]]:
    own = [{"filter": {"field": "kind", "equal": kind}}]
    colour = runs.encoding("color")
    ticks = {
        "data": {"name": "busy"},
        "transform": own,
        "mark": {
            "type": "tick",
            "thickness": 1.5,
            "height": 13,
            "opacity": 0.55 if kind != "Host link" else 1,
        },
        "encoding": {
            "y": y,
            "x": {**x, "field": "busy"},
            **colour,
            "tooltip": [
                text_field("run", "run"),
                text_field("index", f"{kind.lower()}, number" if kind != "Host link" else "way"),
                number_field("busy", "busy", "share"),
            ],
        },
    }
    if kind == "Host link":
        return [ticks]
    tooltip = [
        text_field("run", "run"),
        number_field("count", kind.lower(), "count"),
        number_field("mean", "mean", "share"),
        number_field("min", "least", "share"),
        number_field("max", "most", "share"),
    ]
    shared = {"data": {"name": "means"}, "transform": own}
    return [
        {
            **shared,
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"y": y, "x": {**x, "field": "min"}, "x2": {"field": "max"}, **colour},
        },
        ticks,
        {
            **shared,
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {
                "y": y,
                "x": {**x, "field": "mean"},
                "tooltip": tooltip,
                **runs.encoding("color", "shape"),
            },
        },
    ]
