"""The parts of the report of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flashatlas._core import InputError
from flashatlas.report import (
    explorer,
    flash,
    latency,
    load,
    over_time,
    reasons,
    sections,
    study,
)
from flashatlas.report.chart import Section
from flashatlas.report.document import BASE, document
from flashatlas.report.glossary import glossary
from flashatlas.report.palette import Runs
from flashatlas.results.result import Result

SCRIPTS = (*BASE, "tables.js", "sorting.js", "explorer.js", "start.js")
"""The parts of the page's own script, in order."""


def page(title: str, results: Sequence[Result], command: str) -> str:
    """Return the report as HTML text."""
    if not results:
        raise InputError("a report needs at least one run")
    runs = Runs(results)
    if len(runs) >= study.LEAST:
        return _of_many(title, runs, command)
    blocks, block_data = explorer.section(runs)
    amplification, wear, maps = flash.sections(runs)
    charted = [
        amplification,
        latency.section(runs),
        *filter(None, [reasons.section(runs)]),
        over_time.section(runs),
        blocks,
        wear,
        load.section(runs),
        maps,
    ]
    of_jobs, of_parts = sections.jobs(runs), sections.added_parts(runs)
    entries = [("run", "Run"), ("summary", "Numbers")]
    entries += [("jobs", "Jobs")] if of_jobs else []
    entries += [(part.id, part.title) for part in charted]
    entries += [("parts", "Added parts")] if of_parts else []
    entries += [
        ("approximations", "Approximations"),
        ("parameters", "Parameters"),
        ("glossary", "Glossary"),
    ]
    body = [
        sections.introduction(runs, command),
        sections.summary(runs),
        of_jobs,
        *(part.html() for part in charted),
        of_parts,
        sections.approximations(runs),
        sections.parameters(runs),
        glossary(),
    ]
    kind = "Report of a run" if runs.single else f"Report of {len(runs)} runs"
    return document_of(title, kind, runs, entries, body, charted, block_data)


def _of_many(title: str, runs: Runs, command: str) -> str:
    """Return the report of many runs; it does not show what happened within each run."""
    over, of_parts = study.factors(runs), sections.added_parts(runs)
    entries = [
        ("run", "Runs"),
        (over.id, over.title),
        ("summary", "All runs"),
        *([("parts", "Added parts")] if of_parts else []),
        ("approximations", "Approximations"),
        ("parameters", "Parameters"),
        ("glossary", "Glossary"),
    ]
    body = [
        sections.introduction(runs, command),
        over.html(),
        study.numbers(runs),
        of_parts,
        sections.approximations(runs),
        sections.parameters(runs, side_by_side=False),
        glossary(),
    ]
    return document_of(title, f"Report of {len(runs)} runs", runs, entries, body, [over])


def document_of(
    title: str,
    kind: str,
    runs: Runs,
    entries: Sequence[tuple[str, str]],
    body: Sequence[str],
    charted: Sequence[Section],
    explorer_data: Any = None,
) -> str:
    """Return a page about some runs as HTML text.

    Args:
        title: Its heading.
        kind: The line above the heading.
        runs: The runs that its charts refer to by number.
        entries: Identifiers and titles of its parts.
        body: The parts, as HTML.
        charted: The parts that have charts.
        explorer_data: The block explorer's data, if there is an explorer.

    """
    charts = {chart.id: chart.payload() for part in charted for chart in part.charts()}
    data = {"runs": runs.names, "charts": charts, "explorer": explorer_data}
    versions = (str(result.record.get("version", "?")) for result in runs.results)
    return document(title, kind, entries, body, data, SCRIPTS, versions)
