"""The page: what it consists of, and what it may do.

Its Content-Security-Policy lets no connection out, and runs only the three scripts whose digests it
names: neither a label nor a path in a record can become code.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from flashatlas._core import InputError
from flashatlas.report import explorer, flash, latency, load, over_time, sections, study, vega
from flashatlas.report.chart import Section
from flashatlas.report.glossary import glossary
from flashatlas.report.html import script_json, text
from flashatlas.report.palette import Runs
from flashatlas.result import Result

SCRIPTS = (
    "format.js",
    "charts.js",
    "tables.js",
    "downloads.js",
    "keys.js",
    "sorting.js",
    "explorer.js",
    "start.js",
)
"""The page's own script, in the order in which its parts stand."""


def page(title: str, results: Sequence[Result], command: str) -> str:
    """The report as HTML text."""
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
    return document(title, kind, runs, entries, body, charted, block_data)


def _of_many(title: str, runs: Runs, command: str) -> str:
    """The report of a study: what happened within each run is in the report of that run."""
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
    return document(title, f"Report of {len(runs)} runs", runs, entries, body, [over])


def document(
    title: str,
    kind: str,
    runs: Runs,
    entries: Sequence[tuple[str, str]],
    body: Sequence[str],
    charted: Sequence[Section],
    explorer_data: Any = None,
) -> str:
    """A page as HTML text.

    Args:
        title: Its heading.
        kind: What stands above the heading.
        runs: The runs that its charts refer to by number.
        entries: Identifiers and titles of its parts.
        body: The parts, as HTML.
        charted: Those of the parts that have charts.
        explorer_data: What the block explorer needs, where there is one.

    """
    charts = {chart.id: chart.payload() for part in charted for chart in part.charts()}
    data = {"runs": runs.names, "charts": charts, "explorer": explorer_data}
    theme, libraries, own = asset("theme.js"), vega.bundle(), own_script()
    return (
        "\n".join(
            [
                f'<!doctype html>\n<html lang="en"><head><meta '
                f'charset="utf-8">\n{_policy(theme, libraries, own)}',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                '<link rel="icon" href="data:,">',
                '<meta name="color-scheme" content="light dark"><meta name="generator" '
                'content="FlashAtlas">',
                f"<title>{text(title)}</title><style>{asset('report.css')}</style>"
                f"<script>{theme}</script></head><body>",
                f'<a class="skip" href="#main">Skip to the '
                f"content</a>{_header(title, kind)}{_contents(entries)}",
                f'<main id="main" tabindex="-1"><noscript>{_NO_SCRIPT}</noscript>',
                *body,
                f"</main>{_footer(runs)}",
                f'<script type="application/json" id="report-data">{script_json(data)}</script>',
                f"<script>{libraries}</script><script>{own}</script></body></html>\n",
            ]
        )
        .encode("utf-8", "replace")
        .decode("utf-8")
    )


_NO_SCRIPT = (
    '<p class="absent">Charts and the block explorer are drawn by scripts, which are switched '
    "off here. The numbers "
    "below are all there.</p>"
)


@cache
def asset(name: str) -> str:
    """A file of the page."""
    return (
        resources.files("flashatlas.report")
        .joinpath("assets", name)
        .read_text(encoding="utf-8")
        .strip()
    )


@cache
def own_script() -> str:
    """The page's own script."""
    parts = "\n".join(asset(name) for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}\n}})();'


def _policy(*scripts: str) -> str:
    digests = (
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts
    )
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    # Vega puts style attributes on what it draws; styles cannot reach the network, as nothing may
    # be loaded
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; base-uri 'none'; "
        "img-src data:; form-action 'none'"
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{policy}">'


def _header(title: str, kind: str) -> str:
    themes = "".join(
        f'<button type="button" data-theme-choice="{choice}" aria-pressed="false">{choice}</button>'
        for choice in ("auto", "light", "dark")
    )
    return (
        f'<header><div><p class="kind"><span class="mark" '
        f'aria-hidden="true"></span>FlashAtlas · {kind}</p>'
        f'<h1>{text(title)}</h1></div><div class="themes" role="group" '
        f'aria-label="Colours">{themes}</div></header>'
    )


def _contents(entries: Sequence[tuple[str, str]]) -> str:
    links = "".join(f'<li><a href="#{id}">{text(title)}</a></li>' for id, title in entries)
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def _footer(runs: Runs) -> str:
    versions = ", ".join(
        sorted({str(result.record.get("version", "?")) for result in runs.results})
    )
    return (
        f"<footer><p>Made by FlashAtlas {text(versions)}. This file is whole: it loads nothing. "
        "Charts are drawn by Vega-Lite (BSD-3-Clause).</p></footer>"
    )
