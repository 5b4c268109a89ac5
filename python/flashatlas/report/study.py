"""The report of many runs: numbers over their factors, and a table with a row for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flashatlas.drawing.labels import of_levels
from flashatlas.drawing.tables import TURNED, ranked_rows
from flashatlas.report.chart import Chart, Section, axis, columns_of, number_field
from flashatlas.report.html import section, table, text
from flashatlas.report.palette import COLOURS, DASHES, Runs, line_key
from flashatlas.results.frame import Frame
from flashatlas.results.rows import ROWS
from flashatlas.results.runs import frame
from flashatlas.results.units import word

LEAST = 13
"""The least number of runs whose report is about factors rather than about each run."""

DRAWN = {
    "write amplification": "short",
    "map hit ratio": "share",
    "read p99": "duration",
    "write p99": "duration",
    "requests a second": "short",
    "erases": "short",
    "map memory": "memory",
}
"""Rows of the comparison that are drawn, and the formats of their axes."""

PANELS_A_ROW = 3


class Factors:
    """The factors of the axis, colours and panels; a mark is a mean over all other factors."""

    def __init__(self, runs: Frame) -> None:
        """Choose the factors with most values; the horizontal axis prefers a factor of numbers.

        The seed is chosen only if nothing else varies.
        """
        levels = {name: _levels(runs, name) for name in runs.factors if name != "seed"}
        levels = {name: found for name, found in levels.items() if len(found) > 1}
        ordered = sorted(levels, key=lambda name: -len(levels[name]))
        numeric = [name for name in ordered if _is_number(levels[name])]
        self.x = (numeric or ordered or ["seed"])[0]
        rest = [name for name in ordered if name != self.x]
        # a factor with more values than colours cannot be coloured
        self.by = next((name for name in rest if len(levels[name]) <= COLOURS), None)
        self.panel = next((name for name in rest if name != self.by), None)
        self.spread = [name for name in runs.factors if name not in (self.x, self.by, self.panel)]

    def lead(self, count: int, unsteady: int) -> str:
        """Return a sentence about the content of the charts (HTML)."""
        said = f"{count} runs. Across: <code>{text(self.x)}</code>."
        if self.by:
            said += f" Colours: <code>{text(self.by)}</code>."
        if self.panel:
            said += f" Panels: <code>{text(self.panel)}</code>."
        if self.spread:
            names = ", ".join(f"<code>{text(name)}</code>" for name in self.spread)
            said += f" A mark is the mean over {names}, its bar reaches from least to most."
        if unsteady:
            said += f" Hollow: with a run that was not steady ({unsteady} of {count})."
        return said


def _levels(runs: Frame, name: str) -> list[Any]:
    found = list(dict.fromkeys(value for value in runs.column(name) if value is not None))
    return sorted(found) if _is_number(found) else found


def _is_number(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def factors(runs: Runs) -> Section:
    """Return small charts of each number over the factors."""
    table_of_runs = frame(runs.results)
    chosen = Factors(table_of_runs)
    called = {
        name: of_levels(_levels(table_of_runs, name), table_of_runs.unit(name))
        for name in (chosen.x, chosen.by, chosen.panel)
        if name
    }
    words = {
        name: [own.get(value, "–") for value in table_of_runs.column(name)]
        for name, own in called.items()
    }
    order = list(called[chosen.x].values())
    steady = table_of_runs.steady()
    part = Section("factors", "Over the factors", chosen.lead(len(runs), steady.count(False)))
    known = {row.name: row for row in ROWS}
    for name, kind in DRAWN.items():
        values = [known[name].value(result.record) for result in runs.results]
        if any(value is not None for value in values):
            part.parts.append(_chart(name, kind, values, chosen, words, order, steady))
    return part


def _chart(
    name: str,
    kind: str,
    values: Sequence[float | None],
    chosen: Factors,
    words: Mapping[str, Sequence[str]],
    order: Sequence[str],
    steady: Sequence[bool],
) -> Chart:
    groups: dict[tuple[str, str, str], list[float]] = {}
    unsteady: dict[tuple[str, str, str], int] = {}
    for at, value in enumerate(values):
        if value is not None:
            key = (
                words[chosen.x][at],
                words[chosen.by][at] if chosen.by else "",
                words[chosen.panel][at] if chosen.panel else "",
            )
            groups.setdefault(key, []).append(value)
            unsteady[key] = unsteady.get(key, 0) + (not steady[at])
    rows = [
        (*key, sum(found) / len(found), min(found), max(found), len(found), unsteady[key])
        for key, found in groups.items()
    ]
    colours = list(dict.fromkeys(row[1] for row in rows))
    panels = list(dict.fromkeys(row[2] for row in rows))
    id_ = "factor-" + name.replace(" ", "-")
    least, most = min(rows, key=lambda row: row[3]), max(rows, key=lambda row: row[3])
    named = {row.name: row for row in ROWS}[name].text
    says = (
        f"{name} over {chosen.x}: least {named(least[3])} ({' '.join(filter(None, least[:3]))}), "
        f"most {named(most[3])} ({' '.join(filter(None, most[:3]))})."
    )
    columns = ("x", "by", "panel", "mean", "least", "most", "runs", "unsteady")
    headings = (chosen.x, chosen.by or "", chosen.panel or "", "Mean", "Least", "Most", "Runs",
                "Not steady")  # fmt: skip
    kinds = ("text", "text", "text", kind, kind, kind, "count", "count")
    listed = [
        (column, heading, of)
        for column, heading, of in zip(columns, headings, kinds, strict=True)
        if heading
    ]
    return Chart(
        id=id_,
        title=name[0].upper() + name[1:],
        says=says,
        spec={"concat": [_panel(chosen, kind, panel, order, colours, id_) for panel in panels],
              "columns": min(len(panels), PANELS_A_ROW)},
        data={id_: columns_of(columns, rows)},
        tables={id_: (f"{name} over the factors", listed)},
        key=line_key(chosen.by, colours) if chosen.by and len(colours) > 1 else "",
    )  # fmt: skip


def _panel(
    chosen: Factors,
    kind: str,
    panel: str,
    order: Sequence[str],
    colours: Sequence[str],
    data: str,
) -> dict[str, Any]:
    """Return one panel: means as lines and marks, spread as rules."""

    def told(signs: Sequence[Any]) -> dict[str, Any]:
        signs_of = [signs[i % len(signs)] for i in range(len(colours))]
        scale = {"domain": list(colours), "range": signs_of}
        return {"field": "by", "type": "nominal", "legend": None, "scale": scale}

    colour, dash = told([f"var(--run-{i})" for i in range(COLOURS)]), told(DASHES)
    x = {
        "field": "x",
        "type": "ordinal",
        "sort": list(order),
        "axis": {"title": chosen.x, "labelAngle": 0, "grid": False},
    }
    y = {
        "field": "mean",
        "type": "quantitative",
        "scale": {"zero": False, "nice": True},
        "axis": axis(kind, tickCount=4),
    }
    tooltip = [
        {"field": field, "title": title, "type": "nominal"}
        for field, title in (("by", chosen.by), ("x", chosen.x))
        if title
    ]
    tooltip += [
        {"field": field, "title": field, "type": "quantitative", "formatType": kind}
        for field in ("mean", "least", "most")
    ]
    tooltip.append(number_field("unsteady", "not steady", "count"))
    hollow = {**colour, "condition": {"test": "datum.unsteady > 0", "value": "var(--paper)"}}
    spread = {**y, "field": "least"}
    return {
        "title": f"{chosen.panel}: {panel}" if panel else "",
        "height": 150,
        "data": {"name": data},
        "transform": [{"filter": {"field": "panel", "equal": panel}}],
        "layer": [
            {
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 1.5},
                "encoding": {"x": x, "y": spread, "y2": {"field": "most"}, "color": colour},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 45},
                "encoding": {
                    "x": x,
                    "y": y,
                    "fill": hollow,
                    "stroke": colour,
                    "strokeWidth": {"value": 1.5},
                    "tooltip": tooltip,
                },
            },
        ],
    }


def numbers(runs: Runs) -> str:
    """Return a table with a row for each run: its factors, and the most wanted numbers."""
    table_of_runs = frame(runs.results)
    names = [name for name in table_of_runs.factors if len(_levels(table_of_runs, name)) > 1]
    rows = [found for found in ranked_rows(runs.results) if found[0].name in (*TURNED, *DRAWN)]
    factors_of = [(table_of_runs.column(name), table_of_runs.unit(name)) for name in names]
    lines = []
    for at in range(len(runs)):
        cells = [_cell(word(values[at], unit), values[at]) for values, unit in factors_of]
        for row, values, first in rows:
            value = values[at]
            shown = "–" if value is None else row.text(value)
            best = ' <span aria-label="best">★</span>' if at in first else ""
            cells.append(_cell(shown, value, best))
        head = f'<th scope="row">{text(runs.names[at])}</th>'
        lines.append(f"<tr>{head}{''.join(cells)}</tr>")
    heads = ["Run", *(f"<code>{text(name)}</code>" for name in names)]
    heads += [text(row.name.strip()) for row, _, _ in rows]
    lead = (
        '<p class="lead">Each row is a run. Choose a heading to sort. Every setting and number is '
        "in <code>flashatlas table DIR</code>.</p>"
    )
    return section("summary", "All runs", lead, table("All runs", heads, [("", lines)], "sortable"))


def _cell(shown: str, value: Any, more: str = "") -> str:
    order = value if isinstance(value, (int, float)) else shown
    return f'<td data-order="{text(order)}">{text(shown)}{more}</td>'
