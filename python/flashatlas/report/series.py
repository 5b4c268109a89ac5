"""Lines over time on one axis, with a strip of collection below them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flashatlas.report.chart import (
    NEAR,
    POINTS,
    RUN,
    Absent,
    Chart,
    Columns,
    axis,
    hover,
    number_field,
    rounded,
    stack,
    text_field,
    thin,
)
from flashatlas.report.latency import decades
from flashatlas.report.palette import DASHES, Runs, colour_key, line_key
from flashatlas.results.units import duration, speed

STRETCHES = 128
"""The largest number of stretches of time in the strip of collection."""

PEAKS = 12
"""Value of a ratio above which its scale is logarithmic."""

GAP = 0.04
"""Share of the time axis that a line crosses without a value; a longer gap breaks the line."""

COLLECTED = {
    "collected_foreground": ("collection", "gc"),
    "merges_full": ("merges", "merge"),
    "collected_idle": ("in idle time", "idle"),
    "collected_wear": ("wear levelling", "wear"),
}


@dataclass(frozen=True)
class Axis:
    """The horizontal axis of the charts: simulated time, or numbers of requests."""

    timed: bool
    end: float

    @property
    def kind(self) -> str:
        """The format of its values."""
        return "duration" if self.timed else "short"

    @property
    def name(self) -> str:
        """The name of a place on it in a tooltip."""
        return "interval from" if self.timed else "from request"

    def x(self, labels: bool) -> dict[str, Any]:
        """Return the encoding of the axis."""
        return {
            "field": "x",
            "type": "quantitative",
            "scale": {"domain": [0, self.end], "nice": False},
            "axis": axis(
                self.kind,
                labels=labels,
                ticks=labels,
                grid=False,
                title=("simulated time" if self.timed else "request") if labels else None,
            ),
        }


@dataclass(frozen=True)
class Track:
    """The intervals of one run."""

    run: int
    x: list[float]
    width: list[float]
    table: pa.Table

    def column(self, name: str) -> list[Any]:
        """Return a column; if it does not exist, ``None`` for every interval."""
        return (
            self.table[name].to_pylist()
            if name in self.table.column_names
            else [None] * self.table.num_rows
        )

    def has(self, name: str) -> bool:
        """Return ``True`` if the column exists and has a value."""
        return name in self.table.column_names and self.table[name].null_count < self.table.num_rows


@dataclass(frozen=True)
class Panel:
    """One of several plots above each other."""

    name: str
    title: str
    kind: str
    values: dict[tuple[int, str], list[float | None]]
    """Values by run and by name of the line (empty if each run has one line)."""
    log: bool = False
    peaks: bool = False
    """``True`` if values beyond :data:`PEAKS` make the scale logarithmic."""
    height: int = 120
    optional: bool = False
    """``True`` if the panel is left out when all values are zero."""

    @property
    def shown(self) -> bool:
        """``True`` if the panel has anything to show."""
        lines = self.values.values()
        return any(any(line) for line in lines) if self.optional else bool(lines)


def tracks_of(runs: Runs) -> tuple[list[Track], Axis]:
    """Return the series of the runs on one axis: time if any run was timed, else requests."""
    timed = any(
        "start_ns" in r.tables["series"].column_names for r in runs.results if "series" in r.tables
    )
    tracks = []
    for i, result in enumerate(runs.results):
        table = result.tables.get("series")
        start = "start_ns" if timed else "requests_from"
        if table is None or table.num_rows == 0 or start not in table.column_names:
            continue
        x = table[start].to_pylist()
        if timed:
            width = table["width_ns"].to_pylist()
        else:
            last = result.record.get("trace", {}).get("requests", x[-1]) - result.record[
                "config"
            ].get("warmup", 0)
            width = [b - a for a, b in zip(x, [*x[1:], max(last + 1, x[-1] + 1)], strict=True)]
        tracks.append(Track(i, x, width, table))
    return tracks, Axis(timed, max((t.x[-1] + t.width[-1] for t in tracks), default=1))


def _gaps(
    x: list[float], values: list[float | None], end: float
) -> tuple[list[float], list[float | None]]:
    """Return the places with a value, and an empty place wherever values are missing for long.

    The line breaks at an empty place.
    """
    xs: list[float] = []
    ys: list[float | None] = []
    for place, value in zip(x, values, strict=True):
        if value is None:
            continue
        if xs and place - xs[-1] > max(GAP * end, 2.5 * (x[1] - x[0])):
            xs.append(xs[-1])
            ys.append(None)
        xs.append(place)
        ys.append(value)
    return xs, ys


def _panel(
    runs: Runs, tracks: dict[int, Track], at: Axis, panel: Panel, last: bool
) -> tuple[dict[str, Any], Columns]:
    """Return the specification and the data of one panel."""
    lines = list(dict.fromkeys(line for _, line in panel.values))
    data: Columns = {"run": [], "x": [], "y": [], "near": []} | (
        {"line": []} if len(lines) > 1 else {}
    )
    for (i, line), values in panel.values.items():
        xs, ys = _gaps(
            tracks[i].x,
            [v if v is None or v > 0 or not panel.log else None for v in values],
            at.end,
        )
        keep = thin(ys, POINTS // len(panel.values))
        near = set(thin([ys[k] for k in keep], NEAR // len(panel.values)))
        data["run"] += [i] * len(keep)
        data["x"] += [xs[k] for k in keep]
        data["y"] += [rounded(ys[k]) for k in keep]
        data["near"] += [int(place in near) for place in range(len(keep))]
        if len(lines) > 1:
            data["line"] += [line] * len(keep)
    known = [y for y in data["y"] if y is not None]
    y: dict[str, Any] = {"field": "y", "type": "quantitative"}
    if panel.log:
        low, high = min(known, default=1), max(known, default=10)
        y |= {
            "scale": {"type": "log", "domain": [low / 1.3, high * 1.3], "nice": False},
            "axis": axis(panel.kind, values=decades(low, high)),
        }
    else:
        y |= {
            "scale": {"domain": [0, max(max(known, default=0) * 1.05, 1e-9)], "nice": False},
            "axis": axis(panel.kind, tickCount=3),
        }
    if panel.peaks and max(known, default=0) > PEAKS:
        # the peaks of intervals with hardly any host write would flatten all other intervals
        marks = [0, *(m for m in decades(1, max(known)) if m <= max(known))]
        y["scale"] |= {"type": "symlog", "constant": 1}
        y["axis"]["values"] = marks
    tooltip = [
        *([] if runs.single else [text_field("run", "run")]),
        *([text_field("line", "which")] if len(lines) > 1 else []),
        number_field("x", at.name, "duration" if at.timed else "count"),
        number_field("y", panel.title, panel.kind),
    ]
    looks = runs.encoding("color", "strokeDash") if len(lines) == 1 else _line_looks(lines)
    colour = {key: value for key, value in looks.items() if key == "color"}
    x = at.x(labels=last)
    spec = {
        "height": panel.height,
        "title": panel.title,
        "data": {"name": panel.name},
        "layer": [
            {
                "mark": {
                    "type": "line",
                    "interpolate": "step-after",
                    "strokeWidth": 1.5,
                    "strokeCap": "round",
                },
                "encoding": {"x": x, "y": y, **looks},
            },
            hover(f"near_{panel.name}", {"x": x, "y": y, "tooltip": tooltip, **colour}),
        ],
    }
    return spec, data


def _line_looks(lines: list[str]) -> dict[str, Any]:
    """Return the encodings of a single run's lines: a colour and a dash for each line."""
    colours = [f"var(--run-{i})" for i in range(len(lines))]
    dashes = DASHES[: len(lines)]
    field = {"field": "line", "type": "nominal", "legend": None}
    return {
        "color": {**field, "scale": {"domain": lines, "range": colours}},
        "strokeDash": {**field, "scale": {"domain": lines, "range": dashes}},
    }


def _strip(runs: Runs, tracks: list[Track], at: Axis) -> tuple[dict[str, Any], Columns] | None:
    """Return the strip of collected blocks over time; a darker part stands for more blocks.

    The strip has a row for each run; for a single run it has a row for each reason.
    """
    reasons = [
        name for name in COLLECTED if any(t.has(name) and any(t.column(name)) for t in tracks)
    ]
    if not reasons:
        return None
    data: Columns = {"run": [], "row": [], "from": [], "to": [], "blocks": [], "strength": []}
    step = at.end / STRETCHES
    for t in tracks:
        for reason in reasons:
            sums: dict[int, int] = {}
            for x, width, count in zip(t.x, t.width, t.column(reason), strict=True):
                if count:
                    place = min(int((x + width / 2) / step), STRETCHES - 1)
                    sums[place] = sums.get(place, 0) + count
            for place, count in sums.items():
                data["run"].append(t.run)
                data["row"].append(COLLECTED[reason][0])
                data["from"].append(rounded(place * step))
                data["to"].append(rounded((place + 1) * step))
                data["blocks"].append(count)
    most = max(data["blocks"])
    data["strength"] = [round(0.25 + 0.75 * count / most, 3) for count in data["blocks"]]
    rows = [COLLECTED[reason][0] for reason in reasons]
    if runs.single:
        y: dict[str, Any] = {
            "field": "row",
            "type": "nominal",
            "scale": {"domain": rows, "padding": 0.1},
            "axis": None,
        }
        colours = [f"var(--cause-{COLLECTED[reason][1]})" for reason in reasons]
        colour = {
            "field": "row",
            "type": "nominal",
            "scale": {"domain": rows, "range": colours},
            "legend": None,
        }
    else:
        names = [runs.names[t.run] for t in tracks]
        y = {
            "field": "run",
            "type": "nominal",
            "scale": {"domain": names, "padding": 0.1},
            "axis": None,
        }
        colour = runs.encoding("color")["color"]
    spec: dict[str, Any] = {
        "height": {"step": 14 if runs.single or len(tracks) < 4 else 9},
        "title": "Blocks collected" if runs.single else "Blocks collected, by run",
        "data": {"name": "strip"},
        "mark": {"type": "rect", "strokeWidth": 0},
        "encoding": {
            "x": {**at.x(labels=True), "field": "from"},
            "x2": {"field": "to"},
            "y": y,
            "color": colour,
            "opacity": {"field": "strength", "type": "quantitative", "scale": None},
            "tooltip": [
                *([] if runs.single else [text_field("run", "run")]),
                text_field("row", "why"),
                number_field("from", "from", "duration" if at.timed else "count"),
                number_field("to", "to", "duration" if at.timed else "count"),
                number_field("blocks", "blocks collected", "count"),
            ],
        },
    }
    return spec, data


def figure(
    runs: Runs,
    tracks: list[Track],
    at: Axis,
    id: str,
    title: str,
    panels: list[Panel],
    lead: str = "",
) -> Chart | Absent:
    """Return panels above each other with one axis, and the strip of collection below them."""
    panels = [panel for panel in panels if panel.shown]
    if not panels:
        return Absent(title, "no run has these columns in its series.")
    strip = _strip(runs, tracks, at)
    specs, data, tables = [], {}, {}
    place = (("x", "Interval from", "duration"),) if at.timed else (("x", "From request", "count"),)
    for k, panel in enumerate(panels):
        by_run = {t.run: t for t in tracks}
        spec, columns = _panel(runs, by_run, at, panel, strip is None and k == len(panels) - 1)
        specs.append(spec)
        data[panel.name] = columns
        line = (("line", "Which", "text"),) if "line" in columns else ()
        tables[panel.name] = (panel.title, [RUN, *line, *place, ("y", panel.title, panel.kind)])
    if strip:
        specs.append(strip[0])
        data["strip"] = strip[1]
        kind = "duration" if at.timed else "count"
        spans = [
            ("from", "From", kind),
            ("to", "To", kind),
            ("blocks", "Blocks collected", "count"),
        ]
        tables["strip"] = ("Blocks collected", [RUN, ("row", "Why", "text"), *spans])
    lines = list(dict.fromkeys(line for _, line in panels[0].values))
    key = line_key("Lines", lines) if len(lines) > 1 else ""
    if strip and runs.single:
        rows = dict.fromkeys(strip[1]["row"])
        key += colour_key(
            "Collection",
            [(name, f"var(--cause-{cause})") for name, cause in COLLECTED.values() if name in rows],
        )
    return Chart(
        id,
        title,
        f"{title}. " + " ".join(_said(runs, panel) for panel in panels),
        stack(specs),
        data,
        tables,
        lead=lead,
        key=key,
    )


def _said(runs: Runs, panel: Panel) -> str:
    """Return the least and the greatest value of each line, in words."""
    parts = []
    for (i, line), values in panel.values.items():
        known = [v for v in values if v is not None]
        if known:
            name = " ".join(filter(None, ["" if runs.single else runs.names[i], line]))
            parts.append(
                f"{name or 'between'} {spoken(min(known), panel.kind)} and "
                f"{spoken(max(known), panel.kind)}"
            )
    return f"{panel.title}: {'; '.join(parts)}."


def spoken(value: float, kind: str) -> str:
    """Return a value in words, in the format of the charts."""
    if kind == "duration":
        return duration(value)
    if kind == "share":
        return f"{100 * value:.1f} %"
    if kind == "rate":
        return speed(value)
    return f"{value:.3f}" if kind == "ratio" else f"{value:,.0f}"


def column_of(tracks: list[Track], name: str) -> dict[tuple[int, str], list[float | None]]:
    """Return a column of each run that has it."""
    return {(t.run, ""): t.column(name) for t in tracks if t.has(name)}


def rates_of(
    tracks: list[Track], suffix: str, ops: tuple[str, ...]
) -> dict[tuple[int, str], list[float | None]]:
    """Return sums of a column over operations, per second of each interval."""
    rates: dict[tuple[int, str], list[float | None]] = {}
    for t in tracks:
        columns = [t.column(f"{op}_{suffix}") for op in ops if t.has(f"{op}_{suffix}")]
        if columns:
            sums = (sum(v or 0 for v in row) for row in zip(*columns, strict=True))
            rates[t.run, ""] = [
                s * 1e9 / w if w else None for s, w in zip(sums, t.width, strict=True)
            ]
    return rates
