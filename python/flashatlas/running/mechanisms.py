"""Counts of the use of each mechanism of a scheme, store or layer in a set of runs.

A part declares its mechanisms in Rust, each with a counter of the run record
(``crates/types/src/mechanism.rs``). Runs in which the counter is 0 do not test the mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flashatlas.inputs.drive import setting_list
from flashatlas.names import registries
from flashatlas.results.result import Result
from flashatlas.results.rows import path
from flashatlas.running.api import compare


@dataclass(frozen=True)
class Fired:
    """A mechanism of a part, with a count of its use."""

    part: str
    """Scheme, store or layer."""
    name: str
    counter: str
    """Path of the counter in the run record."""
    without: tuple[str, ...]
    """Settings that turn the mechanism off; empty if no setting does."""
    count: int
    """Number of times that it fired, over all runs that have the part."""
    runs: int
    """Number of those runs in which it fired."""
    of: int
    """Number of runs that have the part."""


def counted(record: dict[str, Any], counter: str) -> int:
    """Return the counter of a record; 0 if the record does not have it."""
    return int(path(*counter.split("."))(record) or 0)


def declared() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every part with mechanisms: its name, and its entry in the registries."""
    known = registries()
    for kind in ("schemes", "maps", "layers"):
        for part in known[kind]:
            yield part["name"], part


def parts_of(record: dict[str, Any]) -> set[str]:
    """Return the names of the scheme, store and layers of a run."""
    params = record["config"]["params"]
    scheme = params["ftl.scheme"]
    store = [params["map.store"]] if scheme == "page" else []
    return {scheme, *store, *record.get("layers", {})}


def fired(results: Iterable[Result]) -> list[Fired]:
    """Return every mechanism of every part that is used by at least one of the runs."""
    records = [result.record for result in results]
    found = []
    for name, part in declared():
        own = [record for record in records if name in parts_of(record)]
        if not own:
            continue
        for mechanism in part["mechanisms"]:
            counts = [counted(record, mechanism["counter"]) for record in own]
            found.append(
                Fired(
                    name,
                    mechanism["name"],
                    mechanism["counter"],
                    tuple(mechanism["without"]),
                    sum(counts),
                    sum(count > 0 for count in counts),
                    len(own),
                )
            )
    return found


@dataclass(frozen=True)
class Ablation:
    """The run in which a mechanism fired most often, and its repetition without the mechanism."""

    of: Fired
    before: Result
    after: Result

    def __str__(self) -> str:
        """Return the number that changes most, with its relative change."""
        changes = []
        for name, value in HEADLINES:
            was, now = (value(result.record) for result in (self.before, self.after))
            if was and now is not None:
                changes.append((abs(now / was - 1), f"{name} {100 * (now / was - 1):+.1f} %"))
        largest = max(changes, default=(0.0, ""))
        return largest[1] if largest[0] >= LEAST_CHANGE else "no change"


HEADLINES = (
    ("write amplification", path("waf")),
    ("requests a second", path("iops")),
    ("mean read", path("latency_ns", "read", "mean")),
    ("mean write", path("latency_ns", "write", "mean")),
    ("mean FLUSH", path("latency_ns", "flush", "mean")),
    ("erases", path("wear", "mean")),
)
"""The numbers of a record that an ablation compares, each with its name."""

LEAST_CHANGE = 0.0005
"""The relative change below which a number prints as unchanged."""


def without(options: dict[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of a run; ``settings`` replace its settings with the same keys."""
    keys = {setting.partition("=")[0] for setting in settings}
    given = setting_list(options.get("set", ()))
    kept = [setting for setting in given if setting.partition("=")[0].strip() not in keys]
    return {**options, "set": [*kept, *settings]}


def ablations(results: Sequence[Result], *, jobs: int | None = None) -> list[Ablation]:
    """Repeat runs with one mechanism turned off.

    For each mechanism that fired and can be turned off, the run in which it fired most often is
    repeated. Runs of job files are skipped.
    """
    cases: list[Any] = []
    of: list[tuple[Fired, Result]] = []
    for each in fired(results):
        own = [
            result
            for result in results
            if each.part in parts_of(result.record) and not result.options.get("job")
        ]
        most = max(own, key=lambda result: counted(result.record, each.counter), default=None)
        if most is None or not each.without or not counted(most.record, each.counter):
            continue
        cases.append(without(most.options, each.without))
        of.append((each, most))
    after = compare(cases, jobs=jobs)
    return [Ablation(each, before, now) for (each, before), now in zip(of, after, strict=True)]


def rows(found: Sequence[Fired], tried: Sequence[Ablation] = ()) -> list[tuple[str, ...]]:
    """Return a row for each mechanism: part, name, count, runs, and the result without it."""
    effects = {(one.of.part, one.of.name): str(one) for one in tried}
    return [
        (
            each.part,
            each.name,
            f"{each.count:,}" if each.count else "0 (not tested here)",
            f"{each.runs} of {each.of}",
            effects.get((each.part, each.name), "–"),
        )
        for each in found
    ]


HEAD = ("part", "mechanism", "fired", "in runs", "without it")
"""The head of the table of :func:`rows`."""
