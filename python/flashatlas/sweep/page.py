"""The page of a study: one HTML file in which the reader chooses what stands over what.

Every run is in it, so that nothing need be asked of the store again: the level that it has of each
axis, and its numbers. Intervals over seeds are those of :mod:`flashatlas.intervals`; the
script only takes means.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flashatlas._core import InputError
from flashatlas.api import build
from flashatlas.files import write_whole
from flashatlas.frame import Frame
from flashatlas.intervals import PERCENTILE, Group, estimates, summary
from flashatlas.report.chart import downloads, rounded
from flashatlas.report.document import BASE, document
from flashatlas.report.html import facts, section, table, table_rows, text
from flashatlas.report.palette import COLOURS
from flashatlas.report.sections import command, verdict_of
from flashatlas.steadiness import ADVICE
from flashatlas.sweep import results
from flashatlas.sweep.numbers import FIRST, SHOWN, higher_is_better, title_of
from flashatlas.sweep.store import Store
from flashatlas.tables import word

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

NUMBERS = 40
"""Numbers that a page has; those that are asked first, then others in which the runs differ."""

LISTED = 200
"""Configurations that stand in the page without a script."""

PANELS = 12
"""Levels that a page has panels for unasked."""

NAMED = 8
"""Values of an axis that the introduction names."""

DIGITS = 6
"""Digits that a page has of a number."""

FORMATS = {
    "ns": "duration",
    "bytes": "memory",
    "bytes/s": "rate",
    "share": "share",
    "ratio": "ratio",
}
"""Formats of ``assets/format.js`` by unit; others are ``short``."""

FRONTS = (
    ("memory_bytes.map", "waf"),
    ("waf", "latency_ns.read.p99"),
    ("waf", "latency_ns.write.p99"),
    ("waf", "iops"),
)
"""What is held against each other first: the first pair in which the runs differ."""


@dataclass(frozen=True)
class Factor:
    """An axis of the study: its levels in order, and the one that each run has (-1: none)."""

    name: str
    words: tuple[str, ...]
    levels: tuple[int, ...]
    numeric: bool


@dataclass(frozen=True)
class Space:
    """The runs of a study as the page has them."""

    runs: Frame
    """Those that are done."""
    factors: tuple[Factor, ...]
    numbers: tuple[str, ...]
    left_out: int
    """Numbers that the page has no room for."""
    group_of: tuple[int, ...]
    """Runs of one group differ in their seed alone."""
    sought: Mapping[str, str] = field(default_factory=dict)
    """Numbers that a search looked for, and which way is better."""

    def shown(self) -> dict[str, Any]:
        """What the page shows at first."""
        varied = [
            one
            for one in self.factors
            if len(one.words) > 1 and one.name != "seed" and not self._follows(one)
        ]
        ordered = sorted(varied, key=lambda one: -len(one.words)) or list(self.factors)
        x = next((one for one in ordered if one.numeric and len(one.words) > 2), ordered[0])
        rest = [one for one in ordered if one is not x]
        by = next((one for one in rest if len(one.words) <= COLOURS), None)
        panel = next((one for one in rest if one is not by and len(one.words) <= PANELS), None)
        down = ordered[0] if ordered[0] is not x else next(iter(rest), x)
        load = next((one for one in varied if self._is_load(one)), None)
        signs = next(
            (one for one in ordered if one is not load and len(one.words) <= COLOURS), None
        )
        moved = [pair for pair in FRONTS if all(self._moves(name) for name in pair)]
        first = self.numbers[0]
        pair = moved[0] if moved else (first, self.numbers[1] if self.numbers[1:] else first)
        if len(self.sought) > 1:
            names = tuple(self.sought)
            pair = (names[0], names[1])
        return {
            "x": x.name,
            "by": by.name if by else "",
            "panel": panel.name if panel else "",
            # a heat map has room for many levels below each other, not beside
            "heat": (x.name, down.name) if x.numeric else (down.name, x.name),
            "parallel": [name for name in SHOWN if self._moves(name)] or [first],
            "front": {
                "pair": pair,
                "by": signs.name if signs else "",
                "panel": load.name if load and len(load.words) <= PANELS else "",
            },
        }

    def _follows(self, factor: Factor) -> bool:
        """Whether another factor, with more levels, already says which level a run has."""
        return any(
            len(set(zip(other.levels, factor.levels, strict=True))) == len(set(other.levels))
            for other in self.factors
            if len(other.words) > len(factor.words)
        )

    def _is_load(self, factor: Factor) -> bool:
        """Whether a factor says which workload is played: numbers of two of them have no winner."""
        if "trace" not in self.runs.table.column_names:
            return False
        played: dict[int, set[Any]] = {}
        for level, trace in zip(factor.levels, self.runs.column("trace"), strict=True):
            played.setdefault(level, set()).add(trace)
        one_each = all(len(found) == 1 for found in played.values())
        return one_each and len(set().union(*played.values())) == len(played) > 1

    def _moves(self, name: str) -> bool:
        return name in self.numbers and len(set(self.runs.column(name)) - {None}) > 1

    def payload(self, store: str, reports: str) -> dict[str, Any]:
        """What the script needs."""
        return {
            "store": store,
            "reports": reports,
            "keys": self.runs.column("key"),
            "factors": [vars(one) for one in self.factors],
            "numbers": [self._number(name) for name in self.numbers],
            "groupOf": self.group_of,
            "shown": self.shown(),
        }

    def _number(self, name: str) -> dict[str, Any]:
        values = self.runs.column(name)
        low, high = self._ends(name, values)
        return {
            "name": name,
            "title": title_of(name),
            "format": FORMATS.get(self.runs.unit(name), "short"),
            "better": self.sought.get(name) or ("high" if higher_is_better(name) else "low"),
            "values": [_short(value) for value in values],
            "low": low,
            "high": high,
        }

    def _ends(self, name: str, values: Sequence[Any]) -> tuple[dict[int, Any], dict[int, Any]]:
        """Both ends of the intervals of the groups that have one."""
        replicates: dict[int, list[float]] = {}
        for group, value in zip(self.group_of, values, strict=True):
            if value is not None:
                replicates.setdefault(group, []).append(value)
        several = {group: found for group, found in replicates.items() if len(found) > 1}
        made = estimates(list(several.values()), percentile=bool(PERCENTILE.search(name)))
        ends = [(group, e) for group, e in zip(several, made, strict=True) if e.low is not None]
        return (
            {group: _short(e.low) for group, e in ends},
            {group: _short(e.high) for group, e in ends},
        )


def _short(value: float | None) -> float | int | None:
    return rounded(float(value), DIGITS) if value is not None else None


def space(runs: Frame, sought: Mapping[str, str] | None = None) -> Space:
    """The runs of a study, those that failed left out.

    Args:
        runs: The runs.
        sought: Numbers that a search looked for, and which way is better.

    Raises:
        InputError: No run is done.

    """
    if results.FAILURE in runs.table.column_names:
        failed = runs.table[results.FAILURE].is_valid()
        runs = Frame(runs.table.filter([not one for one in failed.to_pylist()]))
    if not len(runs):
        raise InputError("no run of this study is done: nothing to show")
    factors = tuple(_factor(runs, name) for name in runs.factors)
    useful = [name for name in runs.numbers if _is_useful(runs, name)]
    known = [name for name in sought or () if name in useful]
    ordered = list(dict.fromkeys([*known, *(name for name in FIRST if name in useful)]))
    ordered += [name for name in useful if name not in ordered and _differs(runs, name)]
    apart = [one for one in factors if one.name != "seed"]
    groups: dict[tuple[int, ...], int] = {}
    keys = zip(*(one.levels for one in apart), strict=True) if apart else [()] * len(runs)
    group_of = tuple(groups.setdefault(tuple(key), len(groups)) for key in keys)
    numbers, left_out = tuple(ordered[:NUMBERS]), len(ordered[NUMBERS:])
    better = {name: (sought or {})[name] for name in known}
    return Space(runs, factors, numbers, left_out, group_of, better)


def _factor(runs: Frame, name: str) -> Factor:
    values, unit = runs.column(name), runs.unit(name)
    known = [value for value in dict.fromkeys(values) if value is not None]
    numeric = all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in known
    )
    known = sorted(known) if numeric else known
    words = [word(value, unit) for value in known]
    if len(set(words)) < len(words):  # rounded alike
        words = [f"{value:,}" if numeric else str(value) for value in known]
    at = {value: level for level, value in enumerate(known)}
    return Factor(name, tuple(words), tuple(at.get(value, -1) for value in values), numeric)


def _is_useful(runs: Frame, name: str) -> bool:
    return not any(isinstance(value, bool) for value in runs.column(name)[:1]) and any(
        value is not None for value in runs.column(name)
    )


def _differs(runs: Frame, name: str) -> bool:
    return len(set(runs.column(name)) - {None}) > 1


def write_page(
    path: Path, store: Store, study: Mapping[str, Any], again: str, reports: str = ""
) -> Path:
    """Write the page of a study.

    Args:
        path: The file; it appears whole or not at all.
        store: The store.
        study: What is noted of the study there.
        again: The command that carries it out again.
        reports: The folder beside the page in which each run has its report (``KEY.html``); empty
            where they were not written: then the page says how to make one.

    Raises:
        InputError: No run is done, or the file cannot be written.

    """
    write_whole(path, page(results.frame_of(store, study), study, store.root, again, reports))
    return path


def page(
    runs: Frame,
    study: Mapping[str, Any],
    store: str | os.PathLike[str],
    again: str,
    reports: str = "",
) -> str:
    """The page as HTML text; arguments as for :func:`write_page`."""
    asked = study.get("search", {}).get("objectives", ())
    found = space(runs, {one["number"]: one["better"] for one in asked})
    failures = _failures(runs)
    plane = sum(1 for one in found.factors if len(one.words) > 1) > 1
    entries = [
        ("run", "Study"),
        ("over-part", "Over the axes"),
        *([("heat-part", "Two axes")] if plane else []),
        ("front-part", "Trade-offs"),
        ("parallel-part", "All at once"),
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
        shown = ", ".join(one.words[:NAMED])
        if len(one.words) > NAMED:
            shown = (
                f"{', '.join(one.words[: NAMED - 1])} … {one.words[-1]} ({len(one.words)} values)"
            )
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
        _unsteady(found.runs),
    )


def _unsteady(runs: Frame) -> str:
    if "steady" not in runs.table.column_names:
        return ""
    count = sum(1 for value in runs.column("steady") if value is False)
    if not count:
        return ""
    return (
        f'<div class="verdict warn" role="note"><p><b>{count:,} of {len(runs):,} runs were not '
        f"steady:</b> {text(ADVICE.format('Their'))}. Each run's report has the reasons.</p></div>"
    )


def _choice(count: int) -> str:
    return (
        '<details class="choice"><summary>Choose runs: <output id="chosen" aria-live="polite">'
        f"{count:,} of {count:,} runs</output></summary>"
        '<div id="choose-levels" class="levels"></div></details>'
        '<p class="note">Everything below shows the runs that are chosen, here or along an axis of '
        '“All at once”. <button type="button" id="choose-all" disabled>All runs</button></p>'
    )


def _select(id: str, label: str) -> str:
    return f'<label class="field"><span>{text(label)}</span><select id="{id}"></select></label>'


def _plot(id: str, title: str, kind: str = "") -> str:
    """A chart that the script makes, with its key of colours and its downloads."""
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
        '<p class="lead">Means over all other axes; a stronger colour is more, by its logarithm '
        "where values differ more than tenfold.</p>"
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
        "Pareto front: no other is at least as good in both numbers, and better in one. Choose a "
        'mark for its runs. <span id="front-says" aria-live="polite"></span></p>',
        f'<div class="controls">{controls}</div>{_plot("front", "Trade-offs", "key")}',
        '<details><summary>The front as a table</summary><div class="scroll" role="group" '
        'tabindex="0" aria-label="The front"><table id="front-table"><thead></thead>'
        "<tbody></tbody></table></div></details>",
    )


def _parallel() -> str:
    return section(
        "parallel-part",
        "All at once",
        '<p class="lead">A line is a run. Drag along an axis to choose a range of it; a click '
        "takes that back. With the keyboard: left and right choose an axis, up and down move the "
        "lower end, with Shift the upper one, Escape takes it back.</p>",
        f'<div class="controls">{_select("parallel-by", "Colours")}'
        '<details><summary>Numbers</summary><div class="levels"><fieldset id="parallel-axes">'
        "<legend>Axes</legend></fieldset></div></details></div>"
        '<div class="wide"><canvas id="parallel" tabindex="0" role="application" '
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
        f'<p class="lead">Choose a heading to sort by it, a run for all about it.{left}</p>',
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
    """Means and intervals over seeds, without a script."""
    wanted = [name for name in SHOWN if name in runs.numbers]
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
        f"bootstrap for percentiles){more}.</p>"
    )
    made = table("Configurations", heads, [("", table_rows(rows))])
    folded = f"<details><summary>All of them, as a table</summary>{made}</details>"
    return section("configurations", "Configurations", lead, folded)


def _configuration(
    runs: Frame, group: Group, names: Sequence[str], wanted: Sequence[str]
) -> list[str]:
    cells = [word(group.factors[name], runs.unit(name)) for name in names]
    cells.append(str(group.runs) + (f", {group.unsteady} unsteady" if group.unsteady else ""))
    return [*cells, *(group.said(name, runs.unit(name)) for name in wanted)]


def _failures(runs: Frame) -> str:
    if results.FAILURE not in runs.table.column_names:
        return ""
    rows = [
        (label, why.splitlines()[0] if why else "unknown")
        for label, why in zip(runs.column("label"), runs.column(results.FAILURE), strict=True)
        if why is not None
    ]
    lead = '<p class="lead"><code>flashatlas sweep … --retry-failed</code> tries them again.</p>'
    head = ["Run", "Why it has no results"]
    return section("failures", "Failures", lead, table("Failures", head, [("", table_rows(rows))]))
