"""Results of the lookup engine's studies: records by name, the sweep, runs of a drive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from flashatlas.reproduce.workloads import Application
from flashatlas.results.result import Result

POLICIES = ("single", "set-mod", "dynamic")
"""The paper's configurations, in its order."""


def said_of(experiment: dict[str, Any], application: Application, key: str) -> Any:
    """Return the experiment's value of a key for a workload or its stand-in; ``None`` if absent."""
    entries = {entry["name"]: entry for entry in experiment["application"]}
    return application.options.get(key, entries.get(application.name, {}).get(key))


@dataclass(frozen=True)
class Point:
    """One configuration of the sweep on one trace."""

    application: str
    banks: int
    ways: int
    hash: str
    order: str
    scan: str
    load: float
    """Entries of the table per file, from the experiment; 0: a flat array."""
    arguments: dict[str, Any] = field(repr=False)
    record: dict[str, Any] = field(repr=False)

    @property
    def ns(self) -> float:
        """Mean time of a lookup in nanoseconds."""
        return self.record["ns_per_lookup"]

    @property
    def bytes(self) -> int:
        """Bytes of DRAM that the LPMT or the flat array occupies."""
        return self.record["bytes"]["lpmt"]

    @property
    def name(self) -> str:
        """The configuration in words."""
        if self.order == "flat":
            return f"flat x{self.banks}"
        return f"{self.order} x{self.banks}, {self.ways} ways, {self.hash}, {self.scan}"


@dataclass(frozen=True)
class Studies:
    """All runs of the experiment."""

    experiment: dict[str, Any] = field(repr=False)
    applications: list[Application]
    whole: list[Application]
    """Whole traces of the paper."""
    studies: dict[str, dict[str, Any]] = field(repr=False)
    """Records of the engine alone, by name."""
    points: list[Point] = field(repr=False)
    results: list[Result]
    """Runs of a drive."""
    characters: dict[str, tuple[float, float, float, float]]
    """The numbers of table III, for each recorded trace."""

    @property
    def traces(self) -> list[Application]:
        """The traces of tables III to VI and figure 8."""
        return [*self.applications, *self.whole]

    def published_as(self, application: Application) -> str | None:
        """Return the paper's workload that a trace records, whole or its opening, or ``None``."""
        found: str | None = said_of(self.experiment, application, "like")
        return found

    def pareto(self, application: str) -> list[Point]:
        """Return the points of a trace that no other point beats in both time and bytes, by bytes.

        A time counts as better only if it is shorter by more than half a per cent.
        """
        points = sorted(self.of(application), key=lambda p: (p.bytes, p.ns))
        best: list[Point] = []
        for point in points:
            if not best or point.ns < 0.995 * best[-1].ns:
                best.append(point)
        return best

    def of(self, application: str) -> list[Point]:
        """Return the sweep on one trace."""
        return [point for point in self.points if point.application == application]


PAPER_POINT = (4, 8, "folding", "dynamic aabb", "full")


def _of_paper(points: Sequence[Point]) -> Point:
    """Return the paper's own configuration, with the largest tables."""
    own = [p for p in points if (p.banks, p.ways, p.hash, p.order, p.scan) == PAPER_POINT]
    return max(own, key=lambda p: p.bytes)


def chosen(points: Sequence[Point], application: str) -> dict[str, Point]:
    """Return the configurations of a trace for the table of the best."""
    own = [p for p in points if p.application == application]
    hashed = [p for p in own if p.order != "flat"]
    flat = [p for p in own if p.order == "flat"]
    eight = [p for p in hashed if p.ways == PAPER_POINT[1]]

    def fastest(some: Sequence[Point]) -> Point:
        return min(some, key=lambda p: (p.ns, p.bytes))

    return {
        "the paper's": _of_paper(own),
        "fastest of four banks and eight ways": fastest(
            [p for p in eight if p.banks == PAPER_POINT[0]]
        ),
        "fastest of four banks": fastest([p for p in hashed if p.banks == PAPER_POINT[0]]),
        "fastest": fastest(hashed),
        "flat, four banks": fastest([p for p in flat if p.banks == PAPER_POINT[0]]),
        "flat, fastest": fastest(flat),
    }
