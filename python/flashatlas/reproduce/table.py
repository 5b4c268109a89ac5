"""A table of an experiment with its kind of evidence: the same in terminal, report and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flashatlas.report.html import section, table, table_rows, text

DERIVED = "derived"
"""Kind of a table: computed from the paper's own formulas and tables."""
REPRODUCED = "reproduced"
"""Kind of a table: simulated, with a workload that is as good as the one in the paper."""
CALIBRATED = "calibrated"
"""Kind of a table: parameters were fitted to the paper's numbers; this is no evidence for them."""
NOT = "not reproducible without the original trace"
"""Kind of a table: our runs have other traces than the paper, or synthetic addresses."""
BEYOND = "beyond the paper"
"""Kind of a table: the paper does not show it."""


@dataclass(frozen=True)
class Listing:
    """A table as the terminal shows it."""

    title: str
    aside: str
    """Text after the title, less prominent; may be empty."""
    head: Sequence[str]
    rows: Sequence[tuple[str, ...]]
    note: str = ""
    """Text under the table; may be empty."""


@dataclass(frozen=True)
class Table:
    """A table: its title, its kind of evidence, and its cells as text."""

    title: str
    kind: str
    note: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def to_json(self) -> dict[str, Any]:
        """Return the table as JSON values."""
        return {
            "title": self.title,
            "kind": self.kind,
            "note": self.note,
            "rows": [dict(zip(self.head, row, strict=True)) for row in self.rows],
        }


def listings(tables: Sequence[Table]) -> list[Listing]:
    """Return the tables for the terminal."""
    return [Listing(t.title, f"({t.kind})", t.head, t.rows, t.note) for t in tables]


def html(tables: Sequence[Table]) -> list[tuple[str, str, str]]:
    """Return the tables for a report: id, title and HTML of a section for each table."""
    found = []
    for number, each in enumerate(tables):
        id_ = f"table-{number}"
        lead = f'<p class="lead"><b>{text(each.kind)}.</b> {text(each.note)}</p>'
        cells = table(each.title, [text(h) for h in each.head], [("", table_rows(each.rows))])
        found.append((id_, each.title, section(id_, each.title, lead, cells)))
    return found
