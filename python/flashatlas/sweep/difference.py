"""Differences between two sets of runs: two stores, two studies, or two versions of FlashAtlas.

Runs of both sides that have the same settings are paired, seed by seed. The same seed gives the
same requests, so the noise of seeds is no part of a difference.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from flashatlas._core import InputError, about
from flashatlas.names import hint
from flashatlas.results.frame import FAILURE, Frame
from flashatlas.results.units import word
from flashatlas.statistics.intervals import PERCENTILE, REPLICATES, Estimate, estimates
from flashatlas.sweep.numbers import FIRST

APART = ("key", "made", "wall_s", FAILURE, "label", "trace.path")
"""Columns that are neither settings nor compared numbers."""

PARTS = (
    (re.compile("waf"), "waf_parts."),
    (re.compile(r"latency_ns\.(\w+)\.p([\d_]+)"), r"explain.ops.\1.parts_ns."),
    (re.compile(r"explain\.ops\.(\w+)\.mean_ns"), r"explain.ops.\1.parts_ns."),
)
"""Patterns of numbers that have parts, each with the prefix of the parts' names.

A write amplification has its causes, and a latency has its reasons.
"""

EXPLAINED = "explain."
"""The prefix of numbers that only a run with the option ``explain`` has."""

PERCENT = f"{EXPLAINED}percent"
"""The percentile from which on a run splits its latencies by reason."""

EVERY = "*"
"""The word in place of names that selects all numbers."""

FILES = ("trace", "job", "drive", "precondition")
"""Settings that may be paths."""

LONGEST_TAIL = 4
"""The largest number of last path parts by which files of one setting are told apart."""

PAIRS = 2
"""Least number of pairs for an interval of the mean change. The interval decides if a number moved.

The interval of few pairs is wide.
"""

Key = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Change:
    """A number of one configuration, before and after."""

    settings: Mapping[str, Any]
    """The settings that distinguish the configuration from the others."""
    number: str
    """The name of the number."""
    before: float
    """The mean of the first side, over pairs."""
    after: float
    """The mean of the second side, over pairs."""
    pairs: int
    """Number of pairs that have the number on both sides: one for each seed."""
    share: Estimate | None
    """The mean over pairs of the difference as a share of the value before.

    ``None`` if the value before is zero in any pair.
    """
    parts: Mapping[str, float] = field(default_factory=dict)
    """The mean amount by which each part of the number moved.

    Empty if the number has no parts; parts that did not move are left out.
    """

    @property
    def size(self) -> float:
        """The difference as a share of the value before.

        If a value before is zero, 0.0 for equal means and infinity for different ones.
        """
        if self.share is not None:
            return self.share.mean
        return 0.0 if self.before == self.after else math.inf

    def moved(self, tolerance: float) -> bool:
        """Return ``True`` if the change is larger than the tolerance.

        If the pairs differ in their changes, the whole 95 % interval of the mean change must lie
        beyond the tolerance, on one side. If a value before is zero, every change of the mean
        counts.

        Args:
            tolerance: A share of the value before, at least 0.

        """
        share = self.share
        if share is None:
            return self.before != self.after
        if share.low is None or share.high is None:
            return abs(share.mean) > tolerance
        return share.low > tolerance or share.high < -tolerance


@dataclass(frozen=True)
class Difference:
    """The result of a comparison of two sets of runs."""

    changes: tuple[Change, ...]
    """All compared numbers of the configurations that both sides have, unchanged ones as well."""
    only_before: tuple[Mapping[str, Any], ...]
    """Settings of the runs of the first side that have no partner.

    Only settings in which any two runs differ are named.
    """
    only_after: tuple[Mapping[str, Any], ...]
    """Settings of the runs of the second side that have no partner."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Unit of each setting and number, by name; times are in nanoseconds."""

    def moved(self, tolerance: float) -> list[Change]:
        """Return the numbers that moved, the largest change first."""
        found = [change for change in self.changes if change.moved(tolerance)]
        return sorted(found, key=lambda change: -abs(change.size))


def difference(
    before: Frame, after: Frame, of: Sequence[str] = (), ignored: Sequence[str] = ()
) -> Difference:
    """Compare the numbers of runs that have the same settings.

    Settings that only one side has, for example of another version, do not distinguish runs.

    Args:
        before: Runs of the first side.
        after: Runs of the second side.
        of: Names of numbers to compare; :data:`EVERY` alone means all numbers. By default
            :data:`~flashatlas.sweep.numbers.FIRST`.
        ignored: Settings in which pairs may differ, or patterns of settings such as ``map.*``.

    Raises:
        InputError: A number or setting does not exist, no runs of the two sides have the same
            settings, or one side has several runs that differ only in ignored settings.

    """
    numbers = _numbers(before, after, of)
    settings, without = _settings(before, after, ignored)
    tails = _tails(before, after)
    sides = [_by_settings(runs, settings, without, tails) for runs in (before, after)]
    both = [key for key in sides[0] if key in sides[1]]
    if not both:
        raise _nothing_alike(sides[0], sides[1], before)
    varied = _varied([key for side in sides for key in side])
    groups: dict[Key, list[tuple[Any, Any]]] = {}
    for key in both:
        shown = tuple((name, value) for name, value in key if name in varied and name != REPLICATES)
        groups.setdefault(shown, []).append((sides[0][key], sides[1][key]))
    changes = [change for name in numbers for change in _changes(name, groups)]
    only = [
        tuple(_shown(key, varied) for key in side if key not in other)
        for side, other in (sides, sides[::-1])
    ]
    units = {name: before.unit(name) for name in (*settings, *numbers)}
    return Difference(tuple(changes), only[0], only[1], units)


def _numbers(before: Frame, after: Frame, of: Sequence[str]) -> list[str]:
    common = [name for name in before.numbers if name in after.numbers]
    if list(of) == [EVERY]:
        return common
    for name in of:
        if name not in common:
            raise about("of", f"`{name}` is not a number of both sides{hint(name, common)}")
    return list(of) or [name for name in FIRST if name in common]


def _settings(before: Frame, after: Frame, ignored: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the settings in which the runs of a pair must agree, and the ignored settings."""
    found = [
        name
        for name in before.table.column_names
        if name in after.table.column_names and name not in before.numbers and name not in APART
    ]
    without: list[str] = []
    for pattern in ignored:
        matched = fnmatch.filter(found, pattern)
        if not matched:
            near = hint(pattern, found) or _differing(before, after, found)
            raise about("except", f"`{pattern}` is not a setting of both sides{near}")
        without += matched
    return [name for name in found if name not in without], without


def _differing(before: Frame, after: Frame, settings: Sequence[str]) -> str:
    """Return the settings in which any two runs differ, in words for a message."""
    names = [n for n in settings if len({*before.column(n), *after.column(n)}) > 1]
    return f" (settings in which runs differ: {', '.join(names) or 'none'})"


def _nothing_alike(before: Mapping[Key, Any], after: Mapping[Key, Any], runs: Frame) -> InputError:
    """Return the error for two sides without a pair; it names the settings that keep them apart."""
    apart: list[str] = []
    said: list[str] = []
    for at, (name, _) in enumerate(next(iter(before), ())):
        values = [list(dict.fromkeys(key[at][1] for key in side)) for side in (before, after)]
        if not set(values[0]) & set(values[1]):
            shown = [", ".join(word(one, runs.unit(name)) for one in side) for side in values]
            apart.append(name)
            said.append(f"{name} is {shown[0]} in the first runs and {shown[1]} in the second")
    why = "; ".join(said) or (
        "every setting has a value that both sides share, but no run of one side agrees with a "
        "run of the other in all settings"
    )
    options = " ".join(f"‹except={name}›" for name in apart)
    how = f"; {options} compares the runs nevertheless" if apart else ""
    return about(
        "except",
        "no run of one side has the settings of a run of the other, so there is nothing to "
        f"compare: {why}{how}",
    )


def _by_settings(
    runs: Frame, settings: Sequence[str], without: Sequence[str], tails: Mapping[str, int]
) -> dict[Key, dict[str, Any]]:
    """Return the runs that did not fail, by their settings.

    Raises:
        InputError: Two runs of this side have the same settings, and differ in an ignored one.

    """
    found: dict[Key, dict[str, Any]] = {}
    for row in runs.rows():
        if row.get(FAILURE) is not None:
            continue
        key = tuple((name, _tail(row.get(name), tails.get(name))) for name in settings)
        for name in without:
            values = [one.get(name) for one in (found.get(key, row), row)]
            if values[0] != values[1]:
                shown = " and ".join(word(value, runs.unit(name)) for value in values)
                raise about(
                    "except",
                    f"{name}: one side has runs with {shown} that differ in nothing else, so "
                    "a run of the other side has no single partner; give sides with one value each",
                )
        found[key] = row
    return found


def _tail(value: Any, parts: int | None) -> Any:
    """Return the last ``parts`` parts of a path, after its prefix such as ``trace:``.

    Returns ``value`` itself if it is no text, or if ``parts`` is ``None``.
    """
    if parts is None or not isinstance(value, str):
        return value
    kind, colon, path = value.rpartition(":")
    return kind + colon + "/".join(path.split("/")[-parts:])


def _tails(*sides: Frame) -> dict[str, int]:
    """Return the number of last path parts by which files are told apart, for each setting.

    A file may lie in another folder on the other side. Files with the same name are told apart by
    their folders, with at most :data:`LONGEST_TAIL` parts in all. A setting that needs more parts
    is absent: its whole paths are compared.
    """
    found = {}
    for name in FILES:
        columns = [runs.table for runs in sides if name in runs.table.column_names]
        paths = [set(table[name].to_pylist()) for table in columns]
        for parts in range(1, LONGEST_TAIL + 1):
            if all(len({_tail(path, parts) for path in side}) == len(side) for side in paths):
                found[name] = parts
                break
    return found


def _varied(keys: Sequence[Key]) -> set[str]:
    """Return the settings in which any two runs differ."""
    values: dict[str, set[Any]] = {}
    for key in keys:
        for name, value in key:
            values.setdefault(name, set()).add(value)
    return {name for name, found in values.items() if len(found) > 1}


def _shown(key: Key, varied: set[str]) -> dict[str, Any]:
    return {name: value for name, value in key if name in varied}


def _changes(name: str, groups: Mapping[Key, Sequence[tuple[Any, Any]]]) -> list[Change]:
    """Return the changes of one number, one for each configuration that has it on both sides."""
    known = {
        key: [(a, b) for a, b in pairs if a.get(name) is not None and b.get(name) is not None]
        for key, pairs in groups.items()
    }
    rows = [(key, pairs) for key, pairs in known.items() if pairs]
    shares = [
        [(b[name] - a[name]) / abs(a[name]) for a, b in pairs]
        for _, pairs in rows
        if all(a[name] for a, _ in pairs)
    ]
    made = iter(estimates(shares, percentile=bool(PERCENTILE.search(name)), least=PAIRS))
    found = []
    for key, pairs in rows:
        whole = all(a[name] for a, _ in pairs)
        found.append(
            Change(
                settings=dict(key),
                number=name,
                before=fmean([a[name] for a, _ in pairs]),
                after=fmean([b[name] for _, b in pairs]),
                pairs=len(pairs),
                share=next(made) if whole else None,
                parts=_parts(name, pairs),
            )
        )
    return found


def _alike_explained(match: re.Match[str], rows: Sequence[tuple[Any, Any]]) -> bool:
    """Return ``True`` if all runs split their latencies by reason from the same percentile on.

    If the number is itself a percentile, it must be this one.
    """
    percents = {row.get(PERCENT) for pair in rows for row in pair}
    own = {float(match[2].replace("_", "."))} if match.re.groups > 1 else percents
    return None not in percents and len(percents) == 1 and percents == own


def _parts(name: str, rows: Sequence[tuple[Any, Any]]) -> dict[str, float]:
    """Return the mean amount by which each part of a number moved, the largest amount first.

    Parts that did not move are left out. Empty if the number has no parts (:data:`PARTS`).
    """
    found = ((pattern.fullmatch(name), parts) for pattern, parts in PARTS)
    match, parts = next(((m, parts) for m, parts in found if m), (None, ""))
    if match is None or (parts.startswith(EXPLAINED) and not _alike_explained(match, rows)):
        return {}
    prefix = match.expand(parts)
    names = dict.fromkeys(key for a, b in rows for key in (*a, *b) if key.startswith(prefix))
    moved = {
        part.removeprefix(prefix): fmean([(b.get(part) or 0) - (a.get(part) or 0) for a, b in rows])
        for part in names
    }
    return dict(sorted(((k, v) for k, v in moved.items() if v), key=lambda kv: -abs(kv[1])))
