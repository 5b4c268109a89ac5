"""The report of an experiment: its runs, its pictures and tables, its approximations."""

from __future__ import annotations

from collections.abc import Sequence

from flashatlas.report import sections
from flashatlas.report.chart import Section
from flashatlas.report.html import facts, section, table, table_rows, text
from flashatlas.report.page import document_of
from flashatlas.report.palette import Runs
from flashatlas.reproduce.table import Listing
from flashatlas.results.result import Result
from flashatlas.running import mechanisms

Part = Section | tuple[str, str, str]
"""A section of charts, or the id, title and HTML of another section."""


def _coverage(results: list[Result]) -> list[tuple[str, str, str]]:
    """Return the section with the mechanisms that fired, and their counts."""
    rows = mechanisms.rows(mechanisms.fired(results))
    if not rows:
        return []
    head = list(mechanisms.HEAD[:-1])
    body = table("Mechanisms", head, [("", table_rows([row[:-1] for row in rows]))], "summary")
    return [("mechanisms", "Mechanisms", section("mechanisms", "Mechanisms", body))]


def listed(number: int, listing: Listing) -> tuple[str, str, str]:
    """Return a table of the terminal for a report: the id, title and HTML of its section."""
    id_ = f"table-{number}"
    said = " ".join(words for words in (listing.aside, listing.note) if words)
    lead = f'<p class="lead">{text(said)}</p>'
    cells = table(listing.title, [text(h) for h in listing.head], [("", table_rows(listing.rows))])
    return id_, listing.title, section(id_, listing.title, lead, cells)


def report(
    title: str,
    aside: str,
    results: list[Result],
    known: Sequence[tuple[str, str]],
    parts: Sequence[Part],
    command: str,
) -> str:
    """Return the report as HTML text.

    Args:
        title: Title of the experiment.
        aside: Text after the title.
        results: Every run.
        known: Facts about the runs: names, with values as HTML.
        parts: Parts of the experiment's results, in order.
        command: The command that runs everything again.

    """
    runs = Runs(results)
    introduction = section(
        "run",
        "What was run",
        facts(list(known)),
        sections.command(command),
        sections.verdict(runs),
        sections.steady(runs),
    )
    shown = [(p.id, p.title, p.html()) if isinstance(p, Section) else p for p in parts]
    shown = [
        ("run", "What was run", introduction),
        *shown,
        *_coverage(results),
        ("approximations", "Approximations", sections.approximations(runs)),
    ]
    entries = [(id_, name) for id_, name, _ in shown]
    figures = [part for part in parts if isinstance(part, Section)]
    return document_of(title, aside, runs, entries, [html for *_, html in shown], figures)
