"""Data of a study's page: for each run its level on each axis, its numbers, and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flashatlas._core import InputError
from flashatlas.drawing.labels import of_levels
from flashatlas.report.chart import rounded
from flashatlas.report.palette import COLOURS, DASHES
from flashatlas.results.frame import FAILURE, Frame
from flashatlas.statistics.intervals import PERCENTILE, REPLICATES, estimates
from flashatlas.sweep.numbers import FIRST, SHOWN, higher_is_better, title_of

NUMBERS = 40
"""Largest number of results on a page: the most wanted, then others in which the runs differ."""

PANELS = 12
"""The largest number of levels for which a page has panels by default."""

DIGITS = 6
"""Number of significant digits of a result on a page."""

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
"""Pairs of numbers for the trade-offs: the first pair in which the runs differ is shown."""


@dataclass(frozen=True)
class Factor:
    """An axis of the study: its levels in order, and the level of each run (-1: none)."""

    name: str
    words: tuple[str, ...]
    levels: tuple[int, ...]
    numeric: bool


@dataclass(frozen=True)
class Space:
    """The runs of a study in the form that the page needs."""

    runs: Frame
    """The runs that are done."""
    factors: tuple[Factor, ...]
    numbers: tuple[str, ...]
    left_out: int
    """Number of results for which the page has no room."""
    group_of: tuple[int, ...]
    """The group of each run; runs of one group differ in their seed alone."""
    sought: Mapping[str, str] = field(default_factory=dict)
    """Objectives of a search, with the direction that is better."""

    def shown(self) -> dict[str, Any]:
        """Return the initial choices of the page."""
        varied = [
            one
            for one in self.factors
            if len(one.words) > 1 and one.name != REPLICATES and not self._follows(one)
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
            # a heat map has room for many levels down, not across
            "heat": (x.name, down.name) if x.numeric else (down.name, x.name),
            "parallel": [name for name in SHOWN if self._moves(name)] or [first],
            "front": {
                "pair": pair,
                "by": signs.name if signs else "",
                "panel": load.name if load and len(load.words) <= PANELS else "",
            },
        }

    def _follows(self, factor: Factor) -> bool:
        """Return ``True`` if a factor with more levels already determines each run's level."""
        return any(
            len(set(zip(other.levels, factor.levels, strict=True))) == len(set(other.levels))
            for other in self.factors
            if len(other.words) > len(factor.words)
        )

    def _is_load(self, factor: Factor) -> bool:
        """Return ``True`` if a factor chooses the workload: two workloads have no winner."""
        if "trace" not in self.runs.table.column_names:
            return False
        played: dict[int, set[Any]] = {}
        for level, trace in zip(factor.levels, self.runs.column("trace"), strict=True):
            played.setdefault(level, set()).add(trace)
        one_each = all(len(found) == 1 for found in played.values())
        return one_each and len(set().union(*played.values())) == len(played) > 1

    def _moves(self, name: str) -> bool:
        return name in self.numbers and _differs(self.runs, name)

    def payload(self, store: str, reports: str) -> dict[str, Any]:
        """Return the data that the script needs."""
        return {
            "store": store,
            "reports": reports,
            "keys": self.runs.column("key"),
            "factors": [vars(one) for one in self.factors],
            "numbers": [self._number(name) for name in self.numbers],
            "groupOf": self.group_of,
            "unsteady": [run for run, steady in enumerate(self.runs.steady()) if not steady],
            "signs": {"colours": COLOURS, "dashes": DASHES},
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
        """Return both ends of the intervals, for the groups that have one."""
        replicates: dict[int, list[float]] = {}
        for group, value in zip(self.group_of, values, strict=True):
            if value is not None:
                replicates.setdefault(group, []).append(value)
        made = estimates(list(replicates.values()), percentile=bool(PERCENTILE.search(name)))
        ends = [(g, e.ends) for g, e in zip(replicates, made, strict=True) if e.low is not None]
        return (
            {group: _short(low) for group, (low, _) in ends},
            {group: _short(high) for group, (_, high) in ends},
        )


def _short(value: float | None) -> float | int | None:
    return rounded(float(value), DIGITS) if value is not None else None


def space(runs: Frame, sought: Mapping[str, str] | None = None) -> Space:
    """Return the runs of a study without those that failed.

    Args:
        runs: The runs.
        sought: Objectives of a search, with the direction that is better.

    Raises:
        InputError: No run is done.

    """
    if FAILURE in runs.table.column_names:
        failed = runs.table[FAILURE].is_valid()
        runs = replace(runs, table=runs.table.filter([not one for one in failed.to_pylist()]))
    if not len(runs):
        raise InputError("no run of this study is done, so there is nothing to show")
    factors = tuple(_factor(runs, name) for name in runs.factors)
    useful = [name for name in runs.numbers if _is_useful(runs, name)]
    known = [name for name in sought or () if name in useful]
    ordered = list(dict.fromkeys([*known, *(name for name in FIRST if name in useful)]))
    ordered += [name for name in useful if name not in ordered and _differs(runs, name)]
    apart = [one for one in factors if one.name != REPLICATES]
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
    words = list(of_levels(known, unit).values())
    at = {value: level for level, value in enumerate(known)}
    return Factor(name, tuple(words), tuple(at.get(value, -1) for value in values), numeric)


def _is_useful(runs: Frame, name: str) -> bool:
    return not any(isinstance(value, bool) for value in runs.column(name)[:1]) and any(
        value is not None for value in runs.column(name)
    )


def _differs(runs: Frame, name: str) -> bool:
    return len(set(runs.column(name)) - {None}) > 1
