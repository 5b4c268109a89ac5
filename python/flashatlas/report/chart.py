"""A chart: a Vega-Lite specification, its data by columns, and its key figures in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flashatlas.report.html import text

Columns = dict[str, list[Any]]
"""Data by columns. The column ``run`` holds numbers of runs; the browser inserts the names."""

RUN = ("run", "Run", "text")
"""The column of the run in a data table."""

POINTS = 2560
"""The largest number of points in the lines of one panel, for all runs together.

An eye cannot distinguish more, and the file stays small.
"""

NEAR = 1000
"""The largest number of points in a panel that answer to the pointer, for all runs together.

Each point is an element that the browser keeps.
"""


@dataclass(frozen=True)
class Chart:
    """One figure of the report."""

    id: str
    title: str
    says: str
    """The key figures in words, which a screen reader reads in place of the picture."""
    spec: dict[str, Any]
    data: dict[str, Columns]
    """Data sets by name; the specification refers to them."""
    tables: Mapping[str, tuple[str, Sequence[tuple[str, str, str]]]]
    """The tables behind the chart, by data set.

    Each has a caption, and columns (field, heading, format of ``format.js``).
    """
    lead: str = ""
    """A sentence under the title (HTML)."""
    key: str = ""
    """The legend of colours (HTML)."""
    left: str = "numbers"
    """The labels left of the panels: ``numbers``, ``names`` of runs, or the wider ``sentences``."""
    wide: bool = True

    def figure(self) -> str:
        """Return the figure as HTML; the script draws into it."""
        lead = f"<p>{self.lead}</p>" if self.lead else ""
        return (
            f'<figure class="{"wide" if self.wide else "half"}" id="figure-{self.id}">'
            f"<figcaption><h3>{text(self.title)}</h3>{lead}</figcaption>{self.key}"
            f'<div class="plot" role="img" aria-label="{text(self.says)}" '
            f'data-chart="{self.id}"></div>'
            f'<details class="data" data-chart="{self.id}"><summary>Data of '
            f"“{text(self.title)}”</summary></details>"
            f'<p class="get" data-chart="{self.id}">Download: {downloads(self.title)}</p>'
            "</figure>"
        )

    def payload(self) -> dict[str, Any]:
        """Return the data that the script needs."""
        return {"spec": self.spec, "data": self.data, "tables": self.tables, "left": self.left}


def downloads(title: str) -> str:
    """Return buttons that save a chart as a picture, and its data as text (HTML)."""
    return " ".join(
        f'<button type="button" data-get="{kind}" aria-label="Download “{text(title)}” as '
        f'{kind.upper()}">{kind.upper()}</button>'
        for kind in ("svg", "png", "csv")
    )


@dataclass(frozen=True)
class Absent:
    """A chart that cannot be drawn, and the reason."""

    title: str
    why: str

    def figure(self) -> str:
        """Return the chart's place with the reason, as HTML."""
        return f'<p class="absent"><b>{text(self.title)}:</b> {text(self.why)}</p>'


@dataclass
class Section:
    """A part of the report with a heading."""

    id: str
    title: str
    lead: str = ""
    """An introduction (HTML)."""
    parts: list[Chart | Absent | str] = field(default_factory=list)
    """Charts, and pieces of HTML."""

    def html(self) -> str:
        """Return the section, with its charts in a grid."""
        parts = [part if isinstance(part, str) else part.figure() for part in self.parts]
        lead = f'<p class="lead">{self.lead}</p>' if self.lead else ""
        return (
            f'<section id="{self.id}" aria-labelledby="{self.id}-title"><h2 '
            f'id="{self.id}-title">{text(self.title)}'
            f'</h2>{lead}<div class="grid">{"".join(parts)}</div></section>'
        )

    def charts(self) -> list[Chart]:
        """Return the charts of the section."""
        return [part for part in self.parts if isinstance(part, Chart)]


def number_field(name: str, title: str, kind: str) -> dict[str, Any]:
    """Return a numeric field of a tooltip, in one of the formats of ``assets/format.js``."""
    return {"field": name, "title": title, "type": "quantitative", "formatType": kind}


def text_field(name: str, title: str) -> dict[str, Any]:
    """Return a field of a tooltip that is text."""
    return {"field": name, "title": title, "type": "nominal"}


def axis(kind: str, **more: Any) -> dict[str, Any]:
    """Return an axis with labels in one of the formats of ``assets/format.js``, with their units.

    Without a ``title``, the heading of its panel names the axis. Ratios have as many digits as they
    need: with the three digits of a table, close ticks would all be the same.
    """
    return {"formatType": "count" if kind == "ratio" else kind, "title": None, **more}


def quantity(name: str, kind: str, **more: Any) -> dict[str, Any]:
    """Return a channel of numbers, with an axis whose labels have a format."""
    return {"field": name, "type": "quantitative", "axis": axis(kind, **more)}


def over_bytes(name: str, sizes: list[int], **more: Any) -> dict[str, Any]:
    """Return a channel of bytes on a logarithmic axis; by default ``sizes`` are its ticks."""
    domain = [sizes[0] / 1.2, sizes[-1] * 1.2]
    return {
        **quantity(name, "memory", **(more or {"values": sizes})),
        "scale": {"type": "log", "base": 2, "domain": domain, "nice": False},
    }


def coloured(name: str, colours: Mapping[Any, str]) -> dict[str, Any]:
    """Return a channel of names, each in its colour."""
    scale = {"domain": list(colours), "range": list(colours.values())}
    return {"field": name, "type": "nominal", "scale": scale, "legend": None}


def a_row_each(name: str, names: Sequence[str]) -> dict[str, Any]:
    """Return a channel with a row for each name, in the order of the names."""
    return {
        "field": name,
        "type": "nominal",
        "sort": None,
        "scale": {"domain": list(names)},
        "axis": {"title": None, "ticks": False, "domain": False, "labelPadding": 8},
    }


def columns_of(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Columns:
    """Return rows as columns of data; numbers are rounded as :func:`rounded` does."""
    data: Columns = {name: [] for name in names}
    for row in rows:
        for column, value in zip(data.values(), row, strict=True):
            column.append(rounded(value) if isinstance(value, float) else value)
    return data


LINE = {"type": "line", "point": {"filled": True, "size": 40}, "strokeWidth": 2}
"""A line with a mark at each value."""


def stack(panels: list[dict[str, Any]]) -> dict[str, Any]:
    """Return panels above each other; each has its own scales of colours and dashes."""
    own = {channel: "independent" for channel in ("color", "strokeDash", "opacity")}
    return {"vconcat": panels, "spacing": 12, "resolve": {"scale": own}}


def hover(name: str, marks: dict[str, Any], size: int = 50) -> dict[str, Any]:
    """Return a layer of points that shows only the point nearest to the pointer.

    The point has the tooltip of ``marks``. Rows whose ``near`` is 0 are left out.
    """
    near = {
        "name": name,
        "select": {"type": "point", "nearest": True, "on": "pointerover", "clear": "pointerout"},
    }
    visible = {"condition": {"param": name, "empty": False, "value": 1}, "value": 0}
    return {
        "params": [near],
        "transform": [{"filter": "datum.near !== 0"}],
        "mark": {"type": "point", "filled": True, "size": size, "strokeWidth": 0},
        "encoding": {"opacity": visible, **marks},
    }


def thin(values: Sequence[float | None], most: int) -> list[int]:
    """Return the places of the values to draw: all, or the least and the greatest of each stretch.

    Drawn values are exact, and no peak is lost. A stretch without any value keeps its first place,
    so that gaps stay gaps.
    """
    n = len(values)
    if n <= max(most, 2):
        return list(range(n))
    stretches = max(most // 2, 1)
    keep = {0, n - 1}
    for s in range(stretches):
        places = range(s * n // stretches, (s + 1) * n // stretches)
        known = [(values[i], i) for i in places if values[i] is not None]
        keep.update((min(known)[1], max(known)[1]) if known else places[:1])
    return sorted(keep)


def rounded(value: float | None, digits: int = 7) -> float | int | None:
    """Return a number with at most ``digits`` significant digits, whole where possible.

    Fewer digits make a smaller file.
    """
    if value is None or isinstance(value, int):
        return value
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short


def lacking(names: Sequence[str], what: str) -> str:
    """Return a sentence about runs that a chart leaves out, as HTML; empty if there are none."""
    return f"Not shown, because they have no {what}: {text(', '.join(names))}." if names else ""
