"""The maps of the five papers on the drives of their time and of today (``papers/6-today``)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flashatlas.names import unknown
from flashatlas.reproduce.protocol import Kept, Progress
from flashatlas.reproduce.runs import carried_out, looked_up
from flashatlas.reproduce.today.measures import BY, DECIDES
from flashatlas.reproduce.workloads import Application, load, refuse_traces
from flashatlas.results.result import Result

PAPER = "6-today"
THEN, BETWEEN, TODAY = "then", "between", "today"
"""The drive of a paper; the same drive with another value of what decides; a drive of today."""

MAPS = ("before", "after")
"""The two maps of a comparison: the one that a paper compares with, and its own."""


@dataclass(frozen=True)
class Case:
    """Two maps on one drive."""

    comparison: Mapping[str, Any] = field(repr=False)
    """The comparison in ``experiment.toml``."""
    case: Mapping[str, Any] = field(repr=False)
    """The case in ``experiment.toml``."""

    def option(self, name: str, default: Any = None) -> Any:
        """Return an entry of the case, or of its comparison if the case lacks it."""
        return self.case.get(name, self.comparison.get(name, default))

    @property
    def paper(self) -> str:
        """The number and name of the paper."""
        return str(self.comparison["paper"])

    @property
    def era(self) -> str:
        """One of :data:`THEN`, :data:`BETWEEN` and :data:`TODAY`."""
        return str(self.case["era"])

    @property
    def maps(self) -> str:
        """The two maps in words."""
        return f"{self.comparison['before']} → {self.comparison['after']}"

    @property
    def name(self) -> str:
        """The name of the drive, with the state or the depth if the comparison has several."""
        name = str(self.case.get("name") or self.case["drive"])
        return f"{name}, {self.at}" if self.at else name

    @property
    def at(self) -> str:
        """The state or the depth if the comparison has several, else empty."""
        return str(self.case.get("at", ""))

    @property
    def is_lookup(self) -> bool:
        """``True`` if the lookup engine runs alone, without a drive."""
        return self.comparison["by"] == "lookups"

    def label(self, which: str) -> str:
        """Return a label for the run of one of the two :data:`MAPS`."""
        return f"{self.paper.partition(':')[0]}, {self.name}: {self.comparison[which]}"

    def requests(self, times: int, limit: int | None) -> tuple[int, int]:
        """Return the number of all requests, and the number of those before the measurement."""
        warmup, measured = self.option("warmup", 0), self.option("requests") * times
        if limit is None:
            return warmup + measured, warmup
        total = min(limit, warmup + measured)
        return total, warmup * total // (warmup + measured)

    def arguments(self, which: str, times: int, limit: int | None) -> dict[str, Any]:
        """Return the arguments of :func:`flashatlas.run` or :func:`flashatlas.lookup`."""
        settings = [*self.option("set", []), *self.option(f"{which}_set")]
        total, warmup = self.requests(times, limit)
        if self.is_lookup:
            return {"sets": {"lookups": total}, "set": settings}
        share = self.option("share", 1)
        workload = self.option("workload").replace("{n}", str(total))
        return {
            "drive": self.case["drive"],
            "set": settings,
            "workload": workload.replace("{share}", str(share)),
            "warmup": warmup,
            "depth": self.option("depth", 1),
            "precondition": self.option("precondition", "none"),
        }


@dataclass(frozen=True)
class Gain:
    """Two maps on one drive, measured."""

    case: Case
    values: tuple[float, float]
    """What the maps are compared by; more is better."""
    decides: str
    """The number that decides the gain, with its unit, in the run of the first map."""
    steady: bool | None
    """``True`` if both runs were in their steady states; ``None`` for the lookup engine."""

    @property
    def gain(self) -> float:
        """The number of the paper's own map, divided by the number of the other map."""
        return self.values[1] / self.values[0]

    @property
    def unit(self) -> str:
        """The unit of the values."""
        return BY[self.case.comparison["by"]][0]

    def to_json(self) -> dict[str, Any]:
        """Return all numbers."""
        return {
            "paper": self.case.paper,
            "maps": self.case.maps,
            "drive": self.case.name,
            "era": self.case.era,
            "by": self.unit,
            "before": self.values[0],
            "after": self.values[1],
            "gain": self.gain,
            "decides": {self.case.comparison["decides"]: self.decides},
            "steady": self.steady,
        }


@dataclass(frozen=True)
class Today:
    """The experiment, carried out."""

    experiment: dict[str, Any] = field(repr=False)
    gains: list[Gain]
    results: list[Result] = field(repr=False)
    """Every run of a drive."""

    def then(self, gain: Gain) -> Gain:
        """Return the gain on the paper's drive that a gain is judged by."""
        of_paper = [
            other
            for other in self.gains
            if other.case.comparison is gain.case.comparison and other.case.era == THEN
        ]
        return next(other for other in of_paper if other.case.at == gain.case.at)

    def verdict(self, gain: Gain) -> str:
        """Return what became of a gain: a word of the experiment's ``verdicts``.

        The paper's own drive has no verdict.
        """
        if gain.case.era == THEN:
            return ""
        limits = self.experiment["verdicts"]
        then, now = self.then(gain).gain - 1, gain.gain - 1
        if abs(then) < limits["none"]:
            if abs(now) < limits["none"]:
                return "none, as then"
            return "new" if now > 0 else "a loss"
        words = (word for word, least in limits["shares"].items() if now / then >= least)
        return next(words, "a loss")

    def to_json(self) -> dict[str, Any]:
        """Return all numbers."""
        return {
            "schema": "flashatlas.reproduce.today/1",
            "verdicts": self.experiment["verdicts"],
            "gains": [{**gain.to_json(), "verdict": self.verdict(gain)} for gain in self.gains],
        }


@dataclass(frozen=True)
class Plan:
    """The runs of the experiment."""

    experiment: dict[str, Any] = field(repr=False)
    papers: Sequence[int]
    """Numbers of the papers; empty for all."""
    times: int
    limit: int | None

    @property
    def workloads(self) -> list[Application]:
        """No workload may be a recorded trace."""
        return []

    @property
    def cases(self) -> list[Case]:
        """Every case, in the order of the papers."""
        return [
            Case(comparison, case)
            for comparison in self.experiment["comparison"]
            if not self.papers or number(comparison) in self.papers
            for case in comparison["case"]
        ]

    def runs(self, *, of_lookups: bool) -> dict[str, dict[str, Any]]:
        """Return the arguments of each run by its label, of the lookup engine or of drives.

        A map that two comparisons share is run once.
        """
        return {
            case.label(which): case.arguments(which, self.times, self.limit)
            for case in self.cases
            for which in MAPS
            if case.is_lookup == of_lookups
        }

    @property
    def labels(self) -> list[str]:
        """A label for each run of a drive, then one for all runs of the lookup engine."""
        shown = [*self.runs(of_lookups=False)]
        return [*shown, "lookups"] if self.runs(of_lookups=True) else shown

    def carry_out(
        self,
        *,
        jobs: int | None = None,
        progress: Progress | None = None,
        kept: Kept | None = None,
    ) -> Today:
        """Carry out all runs; arguments as for :func:`flashatlas.reproduce.runs.carried_out`."""
        drives, studies = self.runs(of_lookups=False), self.runs(of_lookups=True)

        def told(done: int) -> None:
            if progress:
                progress(len(drives), "study", done, done / len(studies))

        results: list[Result] = []
        if drives:
            cases: list[Any] = [{"label": label, **given} for label, given in drives.items()]
            store = kept and kept.step("drives")
            results = carried_out(cases, jobs=jobs, progress=progress, kept=store)
        found: list[dict[str, Any]] = []
        if studies:
            store = kept and kept.step("lookups")
            found = looked_up(studies, jobs=jobs, told=told, kept=store)
        records: dict[str, Mapping[str, Any]] = {
            **dict(zip(drives, (result.record for result in results), strict=True)),
            **dict(zip(studies, found, strict=True)),
        }
        gains = [
            measured(case, [records[case.label(which)] for which in MAPS]) for case in self.cases
        ]
        return Today(self.experiment, gains, results)


def measured(case: Case, records: Sequence[Mapping[str, Any]]) -> Gain:
    """Return the gain that the records of the two :data:`MAPS` show."""
    measure = BY[case.comparison["by"]][1]
    before, after = (measure(record) for record in records)
    steady = None if case.is_lookup else all(record["steady"] for record in records)
    return Gain(case, (before, after), DECIDES[case.comparison["decides"]](records[0]), steady)


def number(comparison: Mapping[str, Any]) -> int:
    """Return the number of a comparison's paper."""
    return int(comparison["paper"].partition(":")[0])


def plan(
    traces: str | os.PathLike[str] | None = None,
    *,
    stand_ins: bool = False,
    paper: list[int] | None = None,
    times: int = 1,
    limit: int | None = None,
) -> Plan:
    """Return the plan; arguments as for :func:`flashatlas.reproduce.carry_out`.

    Raises:
        InputError: A paper is not one of the five, or a folder of traces is given.

    """
    experiment = load(PAPER)
    refuse_traces("today", traces, "generated workloads")
    known = sorted({number(comparison) for comparison in experiment["comparison"]})
    for one in paper or []:
        if one not in known:
            raise unknown("--paper", str(one), [str(n) for n in known])
    return Plan(experiment, paper or [], times, limit)
