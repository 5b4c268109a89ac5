"""Colours, marks and names of a report's runs, causes and tables.

The colours themselves stand in ``assets/report.css``, once for light and once for dark; this module
has their names. Every run has a colour, a dash and a shape, so that no run depends on colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from flashatlas.report.html import text
from flashatlas.report.looks import COLOURS, looks
from flashatlas.results.result import Result

TABLE_COLOURS = 8
DASHES = ([1, 0], [7, 3], [2, 2.5], [9, 3, 2, 3], [12, 4, 4, 4])
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")

OUTLINES = {
    "circle": "M17 7a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
    "square": "M17.5 3.5h7v7h-7z",
    "triangle-up": "M21 2.5l4.5 8h-9z",
    "triangle-down": "M21 11.5l4.5 -8h-9z",
    "triangle-right": "M25.5 7l-8 4.5v-9z",
    "diamond": "M21 2l4 5l-4 5l-4 -5z",
    "cross": "M19.5 3h3v2.5h2.5v3h-2.5v2.5h-3v-2.5h-2.5v-3h2.5z",
}
"""The outlines of the shapes in a legend of 42 by 14 pixels."""

CAUSES = {
    "host": "host writes",
    "cache_evict": "write cache",
    "rmw": "partial units",
    "gc": "collection",
    "map": "map pages",
    "merge": "merges",
    "idle": "collection in idle time",
    "wear": "wear levelling",
    "recovery": "recovery",
    "replace": "replaced blocks",
    "fold": "folds of the SLC cache",
    "refresh": "refresh",
    "parity": "parity over dies",
}
"""Causes of flash operations in the order in which they are stacked, with the report's names."""


class Runs:
    """The runs of a report: different names, and the encodings that distinguish them."""

    def __init__(self, results: Sequence[Result]) -> None:
        """Take labels as names; a label that occurs again gets a number."""
        self.results = list(results)
        self.names: list[str] = []
        for result in self.results:
            name, n = result.name, 1
            while name in self.names:
                n += 1
                name = f"{result.name} ({n})"
            self.names.append(name)
        self.looks = looks(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @property
    def single(self) -> bool:
        """``True`` if there is only one run, which needs no sign of its own."""
        return len(self) == 1

    def encoding(self, *channels: str) -> dict[str, Any]:
        """Return Vega-Lite encodings of the run: ``color``, ``fill``, ``strokeDash``, ``shape``."""
        ranges: dict[str, list[Any]] = {
            "color": [self.colour(i) for i in range(len(self))],
            "strokeDash": [DASHES[mark % len(DASHES)] for mark in self.looks.marks],
            "shape": [SHAPES[mark % len(SHAPES)] for mark in self.looks.marks],
        }
        ranges["fill"] = ranges["color"]
        return {
            channel: {
                "field": "run",
                "type": "nominal",
                "scale": {"domain": self.names, "range": ranges[channel]},
                "legend": None,
            }
            for channel in channels
        }

    def colour(self, i: int) -> str:
        """Return the colour of a run (CSS)."""
        return f"var(--run-{self.looks.colours[i] % COLOURS})"

    def swatch(self, i: int) -> str:
        """Return the sign of a run: a piece of its line with its shape."""
        return _sign(self.colour(i), self.looks.marks[i])

    def key(self) -> str:
        """Return the legend of the runs, or of their factors; empty for a single run."""
        if self.single:
            return ""
        items = "".join(self._by_factors() if self.looks.factors else self._one_by_one())
        return f'<ul class="key" aria-label="Runs">{items}</ul>'

    def _one_by_one(self) -> Iterator[str]:
        for i, name in enumerate(self.names):
            yield _button(self.swatch(i), name, (i,), self.looks.colours[i])

    def _by_factors(self) -> Iterator[str]:
        coloured, marked = self.looks.factors
        yield f'<li class="factor">{text(coloured[0])}</li>'
        for i, level in enumerate(coloured[1]):
            yield _button(f'<i style="background:var(--run-{i})"></i>', level.name, level.runs, i)
        yield f'<li class="factor">{text(marked[0])}</li>'
        for i, level in enumerate(marked[1]):
            yield _button(_sign("inherit", i), level.name, level.runs, None)


def _button(sign: str, name: str, runs: Sequence[int], colour: int | None) -> str:
    """Return an entry of the legend of runs; a click hides its runs or shows them again."""
    numbers = ",".join(map(str, runs))
    of_colour = "" if colour is None else f' data-colour="{colour % COLOURS}"'
    return (
        f'<li><button type="button" class="run" data-run="{numbers}"{of_colour} '
        f'aria-pressed="true" title="show or hide">{sign}{text(name)}</button></li>'
    )


def _sign(colour: str, mark: int) -> str:
    return swatch(colour, mark, OUTLINES[SHAPES[mark % len(SHAPES)]])


def swatch(colour: str, mark: int, outline: str = "") -> str:
    """Return a piece of a line in a colour (CSS) and a dash, with a shape on it if one is given."""
    dash = " ".join(str(x) for x in DASHES[mark % len(DASHES)])
    shape = f'<path d="{outline}" fill="currentColor"/>' if outline else ""
    return (
        f'<svg class="swatch" viewBox="0 0 42 14" width="42" height="14" aria-hidden="true" '
        f'style="color:{colour}"><path d="M0 7h42" stroke="currentColor" '
        f'stroke-width="2" '
        f'stroke-dasharray="{dash}"/>{shape}</svg>'
    )


def line_key(label: str, names: Sequence[str]) -> str:
    """Return a list of lines of a single run."""
    items = "".join(
        f"<li>{swatch(f'var(--run-{i % COLOURS})', i)}{text(name)}</li>"
        for i, name in enumerate(names)
    )
    return f'<ul class="key" aria-label="{text(label)}">{items}</ul>'


def colour_key(label: str, entries: Sequence[tuple[str, str]]) -> str:
    """Return a list of names with a patch of colour each; colours are CSS."""
    items = "".join(
        f'<li><i style="background:{colour}"></i>{text(name)}</li>' for name, colour in entries
    )
    return f'<ul class="key" aria-label="{text(label)}">{items}</ul>'
