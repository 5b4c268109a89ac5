"""Charts as Vega-Lite specifications, each with the words that say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from flashatlas.report import data
from flashatlas.report.words import CAUSES, OPERATIONS, RUN_COLOURS, RUN_DASHES
from flashatlas.result import Result
from flashatlas.tables import duration, fine_percent, size


@dataclass
class Chart:
    """A chart: where it stands, what it draws, and what it says to those who do not see it."""

    id: str
    title: str
    spec: dict[str, Any]
    said: str
    """Its key figures in a sentence."""
    head: list[str] = field(default_factory=list)
    """Column names of the table behind it."""
    rows: list[list[str]] = field(default_factory=list)
    note: str = ""


def _runs(names: Sequence[str], *, dashes: bool) -> dict[str, Any]:
    """Runs told apart by colour, and by dashes where they are lines. A single run needs no legend."""
    legend = None if len(names) == 1 else {"title": None, "orient": "top", "columns": 4, "symbolType": "stroke"}
    count = len(names)
    colours = [RUN_COLOURS[i % len(RUN_COLOURS)] for i in range(count)]
    channels = {
        "color": {
            "field": "run",
            "type": "nominal",
            "scale": {"domain": list(names), "range": colours},
            "legend": legend,
        }
    }
    if dashes:
        pattern = [RUN_DASHES[i % len(RUN_DASHES)] for i in range(count)]
        channels["strokeDash"] = {
            "field": "run",
            "type": "nominal",
            "scale": {"domain": list(names), "range": pattern},
            "legend": legend,
        }
    return channels


def _base(rows: list[dict[str, Any]], height: int) -> dict[str, Any]:
    return {
        "data": {"values": rows},
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
    }


def amplification(results: Sequence[Result]) -> Chart | None:
    """Write amplification by cause, a bar for each run."""
    names = data.labels(results)
    rows, table = [], []
    for name, result in zip(names, results, strict=True):
        parts = result.record.get("waf_parts", {})
        rows += [
            {"run": name, "cause": CAUSES[c][0], "order": i, "value": parts[c]}
            for i, c in enumerate(CAUSES)
            if c in parts
        ]
        if parts:
            table.append([name, f"{result.waf:.4f}", *(f"{parts[c]:.4f}" if c in parts else "–" for c in CAUSES)])
    if not rows:
        return None
    used = [c for c in CAUSES if any(row["cause"] == CAUSES[c][0] for row in rows)]
    spec = {
        **_base(rows, max(26 * len(names), 40)),
        "mark": {"type": "bar"},
        "encoding": {
            "y": {"field": "run", "type": "nominal", "sort": names, "title": None, "axis": {"labelLimit": 130}},
            "x": {
                "field": "value",
                "type": "quantitative",
                "title": "bytes programmed for each byte written",
                "axis": {"tickCount": 8},
            },
            "order": {"field": "order"},
            "color": {
                "field": "cause",
                "type": "nominal",
                "legend": {"title": None, "orient": "top", "columns": 3},
                "scale": {"domain": [CAUSES[c][0] for c in used], "range": [CAUSES[c][1] for c in used]},
            },
            "tooltip": [
                {"field": "run"},
                {"field": "cause"},
                {"field": "value", "title": "amplification", "format": ".4f"},
            ],
        },
    }
    said = "; ".join(
        f"{name} {result.waf:.3f}" for name, result in zip(names, results, strict=True) if result.waf is not None
    )
    keep = [0, 1, *(2 + i for i, c in enumerate(CAUSES) if c in used)]
    head = ["run", "all", *(CAUSES[c][0] for c in CAUSES)]
    return Chart(
        "waf",
        "Write amplification by cause",
        spec,
        said,
        [head[i] for i in keep],
        [[r[i] for i in keep] for r in table],
    )


NINES = {
    "field": "nines",
    "type": "quantitative",
    "title": "requests within that time",
    "axis": {
        "values": [0, 0.30103, 1, 2, 3, 4, 5, 6],
        "labelExpr": "datum.value < 0.2 ? '0 %' : datum.value < 0.9 ? '50 %' : datum.value < 1.5 ? '90 %' : "
        "format(100 - pow(10, 2 - datum.value), '.' + (datum.value - 2) + 'f') + ' %'",
    },
}
"""The share of requests, each further nine as high as the one before: the tail is what one looks for."""


def distributions(results: Sequence[Result]) -> list[Chart]:
    """The latency distribution of each operation."""
    names = data.labels(results)
    charts = []
    for op, points in sorted(data.distributions(results).items(), key=lambda item: OPERATIONS.index(item[0])):
        spec = {
            **_base(points, 240),
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
            "encoding": {
                "x": {
                    "field": "latency",
                    "type": "quantitative",
                    "scale": {"type": "log"},
                    "title": "latency, µs",
                    "axis": {"format": "~s", "tickCount": 8},
                },
                "y": NINES,
                **_runs(names, dashes=True),
                "tooltip": [
                    {"field": "run"},
                    {"field": "latency", "title": "latency, µs", "format": ",.3f"},
                    {"field": "share", "title": "not slower", "format": ".4%"},
                    {"field": "slower", "title": "requests slower", "format": ","},
                ],
            },
        }
        said = "; ".join(
            f"{name}: half within {duration(r.latency[op]['p50'])}, 99 % within {duration(r.latency[op]['p99'])}"
            for name, r in zip(names, results, strict=True)
            if op in r.latency
        )
        charts.append(Chart(f"cdf-{op}", f"{op.capitalize()} latency", spec, said))
    return charts


TIME = (
    ("rate", "Requests a second", "requests a second", ",.1f"),
    ("latency_read", "Read latency, 99 %", "µs", ",.1f"),
    ("latency_write", "Write latency, 99 %", "µs", ",.1f"),
    ("latency_flush", "Flush latency, 99 %", "µs", ",.1f"),
    ("background", "Pages programmed by collection, merges and wear levelling, a second", "pages a second", ",.1f"),
)


def over_time(results: Sequence[Result]) -> list[Chart]:
    """What happened when: rate, latencies, and the drive's own writes. For a single run collection is shaded."""
    names, found = data.labels(results), data.time_series(results)
    single = len(results) == 1
    busy = [row for row in found.get("background", []) if row["value"] > 0] if single else []
    longest = max((row["end"] for rows in found.values() for row in rows), default=0.0)
    charts = []
    for key, title, unit, form in TIME:
        rows = found.get(key)
        if not rows or (key == "background" and all(row["value"] == 0 for row in rows)):
            continue
        logarithmic = key.startswith("latency")
        x = {
            "axis": {"labelOverlap": True, "tickCount": 10},
            "field": "start",
            "type": "quantitative",
            "title": "simulated time, s",
            "scale": {"domain": [0, longest], "nice": False},
        }
        scale = {"type": "log"} if logarithmic else {}
        y = {
            "field": "value",
            "type": "quantitative",
            "title": unit,
            "scale": scale,
            "axis": {"format": "~s", "tickCount": 5},
        }
        tips = [
            {"field": "run"},
            {"field": "start", "title": "from, s", "format": ",.6f"},
            {"field": "end", "title": "to, s", "format": ",.6f"},
            {"field": "value", "title": title, "format": form},
        ]
        if logarithmic:
            tips.append({"field": "max", "title": "slowest, µs", "format": form})
        area = key == "background" and single
        mark = (
            {"type": "area", "opacity": 0.6}
            if area
            else {"type": "line", "strokeWidth": 1.5, "interpolate": "step-after"}
        )
        line = {
            "mark": {**mark, "tooltip": True},
            "encoding": {"x": x, "y": y, **_runs(names, dashes=not area), "tooltip": tips},
        }
        layers = [line]
        if busy and key != "background":
            shade = {
                "data": {"values": [{"start": row["start"], "end": row["end"]} for row in busy]},
                "mark": {"type": "rect", "opacity": 0.16, "color": CAUSES["gc"][1]},
                "encoding": {"x": x, "x2": {"field": "end"}},
            }
            layers.insert(0, shade)
        spec = {**_base(rows, 150), "layer": layers}
        said = "; ".join(_range(name, [row["value"] for row in rows if row["run"] == name], unit) for name in names)
        note = (
            "Shaded: times in which the drive began to collect; what it copied kept dies busy for longer."
            if busy and key != "background"
            else ""
        )
        charts.append(Chart(f"time-{key}", title, spec, said, note=note))
    return charts


def _range(name: str, values: list[float], unit: str) -> str:
    if not values:
        return f"{name}: nothing"
    return f"{name}: {min(values):,.0f} to {max(values):,.0f} {unit}, mean {sum(values) / len(values):,.0f}"


def wear(results: Sequence[Result]) -> Chart | None:
    """Blocks by erases."""
    if not any("wear" in result.tables for result in results):
        return None
    names, rows = data.labels(results), data.wear(results)
    spec = {
        **_base(rows, 170),
        "mark": {"type": "bar", "opacity": 1 if len(names) == 1 else 0.75, "binSpacing": 0},
        "encoding": {
            "x": {
                "field": "from",
                "type": "quantitative",
                "bin": {"binned": True},
                "title": "erases of a block",
                "axis": {"tickMinStep": 1, "format": "d"},
            },
            "x2": {"field": "to"},
            "y": {"field": "blocks", "type": "quantitative", "stack": None, "title": "blocks"},
            **_runs(names, dashes=False),
            "tooltip": [
                {"field": "run"},
                {"field": "from", "title": "erases, from"},
                {"field": "to", "title": "to below"},
                {"field": "blocks", "format": ","},
            ],
        },
    }
    if len(names) > 1:
        spec["mark"] = {"type": "line", "interpolate": "step", "strokeWidth": 2, "point": {"size": 18}}
        spec["encoding"] |= {
            "x": {
                "field": "from",
                "type": "quantitative",
                "title": "erases of a block",
                "axis": {"tickMinStep": 1, "format": "d"},
            },
            **_runs(names, dashes=True),
        }
        del spec["encoding"]["x2"]
    table = []
    for name, result in zip(names, results, strict=True):
        w = result.record.get("wear")
        if w:
            table.append(
                [name, f"{w['min']:,}", f"{w['mean']:.2f}", f"{w['max']:,}", f"{w['stddev']:.2f}", f"{w['blocks']:,}"]
            )
    said = "; ".join(f"{row[0]}: {row[1]} to {row[3]} erases, mean {row[2]}" for row in table)
    return Chart(
        "wear", "Blocks by erases", spec, said, ["run", "fewest", "mean", "most", "deviation", "blocks"], table
    )


def utilisation(results: Sequence[Result]) -> Chart | None:
    """Busy share of every die and channel."""
    rows, names = data.resources(results), data.labels(results)
    if not rows:
        return None
    spec = {
        **_base(rows, max(40 * len(names), 60)),
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.75},
        "encoding": {
            "x": {
                "field": "busy",
                "type": "quantitative",
                "title": "busy share of the time",
                "axis": {"format": "%"},
                "scale": {"domainMin": 0},
            },
            "y": {"field": "run", "type": "nominal", "sort": names, "title": None, "axis": {"labelLimit": 130}},
            "yOffset": {"field": "kind", "type": "nominal"},
            "color": {
                "field": "kind",
                "type": "nominal",
                "scale": {"domain": ["dies", "channels"], "range": ["#4477aa", "#ee6677"]},
                "legend": {"title": None, "orient": "top"},
            },
            "shape": {
                "field": "kind",
                "type": "nominal",
                "scale": {"domain": ["dies", "channels"], "range": ["circle", "diamond"]},
                "legend": {"title": None, "orient": "top"},
            },
            "tooltip": [
                {"field": "run"},
                {"field": "kind"},
                {"field": "index", "title": "number"},
                {"field": "busy", "format": ".3%"},
            ],
        },
    }
    table = []
    for name, result in zip(names, results, strict=True):
        u = result.record.get("utilisation")
        if u:
            cells = [fine_percent(u[kind][key]) for kind in ("dies", "channels") for key in ("min", "mean", "max")]
            table.append([name, *cells, fine_percent(u["link_in"]), fine_percent(u["link_out"])])
    said = "; ".join(f"{row[0]}: dies {row[2]} of the time, channels {row[5]}" for row in table)
    head = ["run", "dies: least", "mean", "most", "channels: least", "mean", "most", "link in", "link out"]
    return Chart("utilisation", "How busy dies and channels were", spec, said, head, table)


def memory(results: Sequence[Result]) -> Chart | None:
    """Memory of the drive's tables."""
    names, rows, table = data.labels(results), [], []
    for name, result in zip(names, results, strict=True):
        for part, count in result.record.get("memory_bytes", {}).get("tables", {}).items():
            rows.append({"run": name, "table": part, "bytes": count, "said": size(count)})
            table.append([name, part, f"{count:,}", size(count)])
    if not rows:
        return None
    spec = {
        **_base(rows, max(26 * len(names), 40)),
        "mark": {"type": "bar"},
        "encoding": {
            "y": {"field": "run", "type": "nominal", "sort": names, "title": None, "axis": {"labelLimit": 130}},
            "x": {"field": "bytes", "type": "quantitative", "title": "bytes", "axis": {"format": "~s", "tickCount": 5}},
            "color": {
                "field": "table",
                "type": "nominal",
                "legend": {"title": None, "orient": "top", "columns": 2, "labelLimit": 240},
                "scale": {"range": list(RUN_COLOURS)},
            },
            "tooltip": [
                {"field": "run"},
                {"field": "table"},
                {"field": "bytes", "format": ","},
                {"field": "said", "title": "that is"},
            ],
        },
    }
    sums = {name: sum(row["bytes"] for row in rows if row["run"] == name) for name in names}
    said = "; ".join(f"{name}: {size(count)}" for name, count in sums.items())
    return Chart("memory", "Memory of the drive's tables", spec, said, ["run", "table", "bytes", ""], table)


def merges(results: Sequence[Result]) -> Chart | None:
    """Merges by class, for schemes that have them."""
    names, rows = data.labels(results), []
    for name, result in zip(names, results, strict=True):
        for of, classes in result.record.get("merges", {}).items():
            for kind, count in classes.items() if isinstance(classes, dict) else []:
                rows.append({"run": name, "kind": f"{kind}, by {of.replace('_', ' ')}", "count": count})
    if not rows:
        return None
    spec = {
        **_base(rows, max(26 * len(names), 40)),
        "mark": {"type": "bar"},
        "encoding": {
            "y": {"field": "run", "type": "nominal", "sort": names, "title": None, "axis": {"labelLimit": 130}},
            "x": {"field": "count", "type": "quantitative", "title": "merges"},
            "color": {
                "field": "kind",
                "type": "nominal",
                "legend": {"title": None, "orient": "top", "columns": 2},
                "scale": {"range": list(RUN_COLOURS)},
            },
            "tooltip": [{"field": "run"}, {"field": "kind"}, {"field": "count", "format": ","}],
        },
    }
    table = [[row["run"], row["kind"], f"{row['count']:,}"] for row in rows]
    said = "; ".join(f"{row[0]}: {row[2]} {row[1]}" for row in table)
    return Chart("merges", "Merges", spec, said, ["run", "class", "merges"], table)
