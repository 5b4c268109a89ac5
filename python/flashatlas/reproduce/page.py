"""The report of an experiment: what was run, its pictures and tables, what it approximates."""

from __future__ import annotations

from collections.abc import Sequence

from flashatlas import mechanisms
from flashatlas.report import sections
from flashatlas.report.chart import Section
from flashatlas.report.html import facts, section, table, table_rows
from flashatlas.report.page import document_of
from flashatlas.report.palette import Runs
from flashatlas.result import Result

Part = Section | tuple[str, str, str]
"""A section of charts, or the id, title and HTML of another one."""


def _coverage(results: list[Result]) -> list[tuple[str, str, str]]:
    """Which mechanisms fired, and how often."""
    rows = mechanisms.rows(mechanisms.fired(results))
    if not rows:
        return []
    head = list(mechanisms.HEAD[:-1])
    body = table("Mechanisms", head, [("", table_rows([row[:-1] for row in rows]))], "summary")
    return [("mechanisms", "Mechanisms", section("mechanisms", "Mechanisms", body))]


def report(
    title: str,
    aside: str,
    results: list[Result],
    known: Sequence[tuple[str, str]],
    parts: Sequence[Part],
    command: str,
) -> str:
    """The report as HTML text.

    Args:
        title: What the experiment is.
        aside: What follows the title.
        results: Every run.
        known: What was run: names, and what is said of them as HTML.
        parts: What the experiment shows, in order.
        command: What runs all of it again.

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
