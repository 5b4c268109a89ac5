"""Demand-paged maps over the size of their memory, on three traces (``papers/2-demand-map``)."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from flashatlas.reproduce.protocol import Kept, Progress
from flashatlas.reproduce.runs import carried_out
from flashatlas.reproduce.workloads import (
    Application,
    applications,
    load,
    precondition,
    traces_folder,
)
from flashatlas.results.result import Result

PAPER = "2-demand-map"
REFERENCE = "dram"


@dataclass(frozen=True)
class Row:
    """One store with one size of memory on one application."""

    application: str
    store: str
    cache_bytes: int | None
    """Memory for the map in bytes; ``None`` if the whole map is in DRAM."""
    result: Result = field(repr=False)

    @property
    def hit_ratio(self) -> float:
        """Share of lookups and changes for the host that found their entry in memory."""
        return self.result.record["map"]["hit_ratio"]

    @property
    def accesses(self) -> int:
        """Number of lookups and changes for the host."""
        counts = self.result.record["map"]
        return counts["lookups"] + counts["update_hits"] + counts["update_misses"]

    @property
    def reads(self) -> float:
        """Map pages read per thousand accesses."""
        counts = self.result.record["map"]
        return 1000 * (counts["loads"] + counts["merges"]) / self.accesses

    @property
    def writes(self) -> float:
        """Map pages written per thousand accesses, with copies by collection."""
        counts = self.result.record["map"]
        return 1000 * (sum(counts["writes"].values()) + counts["copies"]) / self.accesses

    @property
    def ram_bytes(self) -> int:
        """Memory of all tables of the map in bytes."""
        tables = self.result.record["memory_bytes"]["tables"]
        return sum(size for name, size in tables.items() if "map" in name.lower())

    def latency_ns(self, op: str) -> float | None:
        """Return the mean latency of an operation; ``None`` if the workload has none of it."""
        return self.result.latency.get(op, {}).get("mean")


@dataclass(frozen=True)
class DemandMap:
    """The experiment, carried out."""

    experiment: dict[str, Any] = field(repr=False)
    applications: list[Application]
    rows: list[Row]

    @property
    def results(self) -> list[Result]:
        """Every run."""
        return [row.result for row in self.rows]

    def of(self, application: str) -> list[Row]:
        """Return all stores on one application."""
        return [row for row in self.rows if row.application == application]

    def to_json(self) -> dict[str, Any]:
        """Return all numbers."""
        return {
            "schema": "flashatlas.reproduce.demand-map/1",
            "applications": [a.to_json() for a in self.applications],
            "rows": [
                {
                    "application": row.application,
                    "store": row.store,
                    "cache_bytes": row.cache_bytes,
                    "hit_ratio": row.hit_ratio,
                    "map_reads_per_1000": row.reads,
                    "map_writes_per_1000": row.writes,
                    "read_mean_ns": row.latency_ns("read"),
                    "write_mean_ns": row.latency_ns("write"),
                    "ram_bytes": row.ram_bytes,
                    "waf": row.result.waf,
                    "map_counters": row.result.record["map"],
                    "mount": row.result.record.get("mount"),
                    "violations": row.result.violations,
                    "config_hash": row.result.record["config_hash"],
                }
                for row in self.rows
            ],
        }


@dataclass(frozen=True)
class Plan:
    """The runs of the experiment."""

    experiment: dict[str, Any] = field(repr=False)
    applications: list[Application]
    cache_bytes: list[int]
    limit: int | None
    """Number of requests after which each run ends."""

    @property
    def workloads(self) -> list[Application]:
        """The applications."""
        return self.applications

    def runs(self) -> list[tuple[str, str, int | None, dict[str, Any]]]:
        """Return the application, store, memory and options of each run.

        A store has no run with less memory than it can work with.
        """
        made: list[tuple[str, str, int | None, dict[str, Any]]] = []
        for application in self.applications:
            options = dict(application.options)
            common = options.pop("set", [])
            reference = {**options, "set": [*common, f"map.store={REFERENCE}"]}
            made.append((application.name, REFERENCE, None, reference))
            for store in self.experiment["stores"]:
                least = self.experiment["least_bytes"].get(store, 0)
                for size in (size for size in self.cache_bytes if size >= least):
                    settings = [*common, f"map.store={store}", f"map.cache_bytes={size}"]
                    made.append((application.name, store, size, {**options, "set": settings}))
        return made

    @property
    def labels(self) -> list[str]:
        """A label for each run."""
        return [
            f"{name}: {store}, {size}" if size else f"{name}: {store}"
            for name, store, size, _ in self.runs()
        ]

    def carry_out(
        self,
        *,
        jobs: int | None = None,
        progress: Progress | None = None,
        kept: Kept | None = None,
    ) -> DemandMap:
        """Carry out all runs; arguments as for :func:`flashatlas.reproduce.runs.carried_out`."""
        planned = self.runs()
        cases: list[Any] = [
            {"label": label, **options}
            for label, (*_, options) in zip(self.labels, planned, strict=True)
        ]
        results = carried_out(
            cases,
            depth=self.experiment["depth"],
            limit=self.limit,
            jobs=jobs,
            progress=progress,
            kept=kept,
        )
        rows = [
            Row(name, store, size, result)
            for (name, store, size, _), result in zip(planned, results, strict=True)
        ]
        return DemandMap(self.experiment, self.applications, rows)


def plan(
    traces: str | os.PathLike[str] | None = None,
    *,
    stand_ins: bool = False,
    cache_bytes: list[int] | None = None,
    limit: int | None = None,
) -> Plan:
    """Return the plan; arguments as for :func:`flashatlas.reproduce.carry_out`."""
    experiment = load(PAPER)
    folder = None if stand_ins else traces_folder(traces)
    made = applications(experiment["application"], folder)
    for application, entry in zip(made, experiment["application"], strict=True):
        application.options.update({key: entry[key] for key in ("drive", "set") if key in entry})
        application.options["precondition"] = precondition(
            application, entry["precondition"], folder
        )
    return Plan(experiment, made, cache_bytes or experiment["cache_bytes"], limit)
