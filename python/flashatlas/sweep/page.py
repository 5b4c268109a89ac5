"""The page of a study: one HTML file in which the reader chooses the numbers and the axes.

The page holds every run, so that the store is not needed again: the run's level on each axis, and
its numbers. Intervals over seeds come from :mod:`flashatlas.statistics.intervals`; the script only
takes means.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flashatlas.files import write_whole
from flashatlas.report.chart import downloads
from flashatlas.report.document import BASE, document
from flashatlas.report.html import facts, section, table, table_rows, text
from flashatlas.report.sections import command, verdict_of
from flashatlas.results.frame import FAILURE, Frame
from flashatlas.results.steadiness import MOVES
from flashatlas.results.units import word
from flashatlas.running.api import build
from flashatlas.statistics.intervals import LEAST, Group, summary
from flashatlas.sweep.numbers import asked_of, title_of
from flashatlas.sweep.space import Factor, Space, space
from flashatlas.sweep.store import Store

SCRIPTS = (
    *BASE,
    "tables.js",
    "space.js",
    "over.js",
    "parallel.js",
    "front.js",
    "runs.js",
    "start_space.js",
)

LISTED = 200
"""Number of configurations that the page lists without its script."""

NAMED = 8
"""Number of an axis's values that the introduction names."""


def write_page(
    path: Path, runs: Frame, study: Mapping[str, Any], store: Store, reports: str = ""
) -> Path:
    """Write the page of a study.

    Args:
        path: The file; it appears whole or not at all.
        runs: The runs of the study (:func:`flashatlas.sweep.results.frame_of`).
        study: The store's note of the study.
        store: The store.
        reports: The folder beside the page that has each run's report (``KEY.html``); empty if the
            reports were not written. The page then says how to make one.

    Raises:
        InputError: No run is done, or the file cannot be written.

    """
    write_whole(path, page(runs, study, store.root, _again(study, store.root), reports))
    return path


def _again(study: Mapping[str, Any], root: Path) -> str:
    """Return the command that carries out a study again."""
    source = study["source"]
    if source is None:
        return shlex.join(["flashatlas", "results", "show", f"{root}:{study['name']}"])
    return shlex.join(["flashatlas", "sweep", str(source), "--store", str(root)])


def page(
    runs: Frame,
    study: Mapping[str, Any],
    store: str | os.PathLike[str],
    again: str,
    reports: str = "",
) -> str:
    """Return the page as HTML text; ``again`` is the command that carries the study out again."""
    asked = study.get("search", {}).get("objectives", ())
    found = space(runs, {one["number"]: one["better"] for one in asked})
    failures = _failures(runs)
    plane = sum(1 for one in found.factors if len(one.words) > 1) > 1
    entries = [
        ("run", "Study"),
        ("over-part", "Over the axes"),
        *([("heat-part", "Two axes")] if plane else []),
        ("front-part", "Trade-offs"),
        ("parallel-part", "All together"),
        ("runs-part", "Runs"),
        ("configurations", "Configurations"),
        *([("failures", "Failures")] if failures else []),
    ]
    body = [
        _introduction(found, runs, study, again),
        _choice(len(found.runs)),
        _over(),
        _heat() if plane else "",
        _front(),
        _parallel(),
        _runs(found),
        _configurations(found.runs),
        failures,
    ]
    names = found.runs.column("label")
    data = {"runs": names, "charts": {}, "space": found.payload(os.fspath(store), reports)}
    kind = f"Study of {len(study['runs'])} runs"
    return document(study["title"], kind, entries, body, data, SCRIPTS, [build()["version"]])


def _introduction(found: Space, runs: Frame, study: Mapping[str, Any], again: str) -> str:
    done, failed = len(found.runs), len(runs) - len(found.runs)
    pairs = [
        ("Runs", f"{done:,} of {len(study['runs']):,}" + (f", {failed} failed" if failed else ""))
    ]
    for one in found.factors:
        words = _in_full(found.runs, one)
        shown = ", ".join(words[:NAMED])
        if len(words) > NAMED:
            shown = f"{', '.join(words[: NAMED - 1])} … {words[-1]} ({len(words)} values)"
        pairs.append((one.name, text(shown)))
    columns = found.runs.table.column_names
    checked, swept, wrong = (
        sum(filter(None, found.runs.column(f"oracle.{name}"))) if f"oracle.{name}" in columns else 0
        for name in ("units_checked", "units_swept", "violations")
    )
    return section(
        "run",
        "What was run",
        facts(pairs),
        command(again),
        verdict_of(checked, swept, wrong, (), single=False),
        _incomplete(runs),
        _unsteady(found.runs),
        _worn_out(found.runs),
    )


def _in_full(runs: Frame, factor: Factor) -> Sequence[str]:
    """Return the values of a factor as they were given, if the page has short names."""
    values = [value for value in dict.fromkeys(runs.column(factor.name)) if value is not None]
    return values if all(isinstance(value, str) for value in values) else factor.words


def _incomplete(runs: Frame) -> str:
    missing = runs.incomplete()
    if not missing:
        return ""
    return (
        f'<div class="verdict warn" role="note"><p><b>{text(missing)}:</b> means are over the runs '
        "that are done, and the best of these may not be the best of all.</p></div>"
    )


def _unsteady(runs: Frame) -> str:
    count = runs.steady().count(False)
    if not count:
        return ""
    return (
        f'<div class="verdict warn" role="note"><p><b>{count:,} of {len(runs):,} runs were not '
        f"steady:</b> {text(MOVES.format('Their'))}. Marks with such a run are hollow, cells of "
        "two axes have a dashed frame, lines are dashed. Each run's report has the reasons."
        "</p></div>"
    )


def _worn_out(runs: Frame) -> str:
    said = text(runs.said_of_worn_out())
    return f'<div class="verdict warn" role="note"><p>{said}</p></div>' if said else ""


def _choice(count: int) -> str:
    return (
        '<details class="choice"><summary>Choose runs: <output id="chosen" aria-live="polite">'
        f"{count:,} of {count:,} runs</output></summary>"
        '<div id="choose-levels" class="levels"></div></details>'
        '<p class="note">Everything below shows the runs that are chosen here or along an axis of '
        '“All together”. <button type="button" id="choose-all" disabled>All runs</button></p>'
    )


def _select(id: str, label: str) -> str:
    return f'<label class="field"><span>{text(label)}</span><select id="{id}"></select></label>'


def _plot(id: str, title: str, kind: str = "") -> str:
    """Return a chart that the script draws, with its legend of colours and its downloads."""
    key = (
        f'<ul class="key" id="{id}-key" aria-label="Colours" hidden></ul>' if kind == "key" else ""
    )
    return (
        f'<figure class="wide" id="figure-{id}">{key}<div class="plot" role="img" '
        f'aria-label="" data-chart="{id}"></div>'
        f'<p class="get" data-chart="{id}">Download: {downloads(title)}</p></figure>'
    )


def _over() -> str:
    controls = "".join(
        _select(f"over-{id}", label)
        for id, label in (("y", "Number"), ("x", "Across"), ("by", "Colours"), ("panel", "Panels"))
    )
    return section(
        "over-part",
        "Over the axes",
        '<p class="lead">A mark is a mean over every axis that is not chosen here. '
        '<span id="over-bars"></span></p>',
        f'<div class="controls">{controls}</div>{_plot("over", "Over the axes", "key")}',
    )


def _heat() -> str:
    controls = "".join(
        _select(f"heat-{id}", label)
        for id, label in (("number", "Number"), ("x", "Across"), ("y", "Down"))
    )
    lead = (
        '<p class="lead">Means over all other axes; a stronger colour is a larger value, on a '
        "logarithmic scale if values differ more than tenfold.</p>"
    )
    drawn = f'<div class="controls">{controls}</div>{_plot("heat", "Two axes")}'
    return section("heat-part", "Two axes", lead, drawn)


def _front() -> str:
    controls = "".join(
        _select(f"front-{id}", label)
        for id, label in (
            ("x", "Across"),
            ("y", "Up"),
            ("by", "Colours"),
            ("panel", "A front for each"),
        )
    )
    return section(
        "front-part",
        "Trade-offs",
        '<p class="lead">A mark is a configuration, the mean over its seeds. Large ones are on the '
        "Pareto front: no other mark is at least as good in both numbers, and better in one. "
        'Choose a mark to see its runs. <span id="front-says" aria-live="polite"></span></p>',
        f'<div class="controls">{controls}</div>{_plot("front", "Trade-offs", "key")}',
        '<details><summary>The front as a table</summary><div class="scroll" role="group" '
        'tabindex="0" aria-label="The front"><table id="front-table"><thead></thead>'
        "<tbody></tbody></table></div></details>",
    )


def _parallel() -> str:
    return section(
        "parallel-part",
        "All together",
        '<p class="lead">A line is a run. Drag along an axis to choose a range; a click '
        "removes the range. With the keyboard: left and right choose an axis, up and down move the "
        "lower end, or with Shift the upper end; Escape removes the range.</p>",
        f'<div class="controls">{_select("parallel-by", "Colours")}'
        '<details><summary>Numbers</summary><div class="levels"><fieldset id="parallel-axes">'
        "<legend>Axes</legend></fieldset></div></details></div>"
        '<div class="scroll wide"><canvas id="parallel" tabindex="0" role="application" '
        'aria-roledescription="parallel coordinates" aria-label="Parallel coordinates of all runs" '
        'aria-describedby="parallel-live"></canvas></div>'
        '<p class="live" id="parallel-live" aria-live="polite"></p>',
    )


def _runs(found: Space) -> str:
    left = (
        f" {found.left_out} further numbers are in <code>flashatlas results export</code>."
        if found.left_out
        else ""
    )
    return section(
        "runs-part",
        "Runs",
        f'<p class="lead">Choose a heading to sort by it, or a run for its details.{left}</p>',
        '<div class="controls"><label class="field grow"><span>Filter</span><input '
        'type="search" id="runs-filter" placeholder="ftl.victim=greedy seed=1"></label>'
        '<button type="button" id="runs-back">Back</button><output id="runs-page" '
        'aria-live="polite"></output><button type="button" id="runs-on">On</button></div>',
        '<div class="scroll tall" role="group" tabindex="0" aria-label="Runs">'
        '<table id="runs-table"><thead></thead><tbody></tbody></table></div>',
        '<dialog id="picked-box" aria-label="Runs"><button type="button" id="picked-close">Close'
        '</button><div id="picked"></div></dialog>',
    )


def _configurations(runs: Frame) -> str:
    """Return the means and intervals over seeds, without a script."""
    wanted = asked_of(runs.numbers)
    groups = summary(runs, wanted)
    names = list(groups[0].factors)
    heads = [
        *(f"<code>{text(name)}</code>" for name in names),
        "Runs",
        *map(text, map(title_of, wanted)),
    ]
    rows = [_configuration(runs, group, names, wanted) for group in groups[:LISTED]]
    more = f"; the first {LISTED} of {len(groups):,}" if len(groups) > LISTED else ""
    lead = (
        '<p class="lead">Means over seeds, and half of the interval of 95 % (Student’s t; the '
        f"bootstrap for percentiles), or the range of fewer than {LEAST} seeds{more}.</p>"
    )
    made = table("Configurations", heads, [("", table_rows(rows))])
    folded = f"<details><summary>All configurations, as a table</summary>{made}</details>"
    return section("configurations", "Configurations", lead, folded)


def _configuration(
    runs: Frame, group: Group, names: Sequence[str], wanted: Sequence[str]
) -> list[str]:
    cells = [word(group.factors[name], runs.unit(name)) for name in names]
    cells.append(group.count)
    return [*cells, *(group.said(name, runs.unit(name)) for name in wanted)]


def _failures(runs: Frame) -> str:
    if FAILURE not in runs.table.column_names:
        return ""
    rows = [
        (label, why.splitlines()[0] if why else "unknown")
        for label, why in zip(runs.column("label"), runs.column(FAILURE), strict=True)
        if why is not None
    ]
    lead = '<p class="lead"><code>flashatlas sweep … --retry-failed</code> tries them again.</p>'
    head = ["Run", "Why it has no results"]
    return section("failures", "Failures", lead, table("Failures", head, [("", table_rows(rows))]))
