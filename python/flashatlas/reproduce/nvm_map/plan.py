"""The map in DRAM and NVM against maps in DRAM.

The experiment has figure 1 of the paper and more (``papers/0-hybrid-nvm``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from flashatlas.reproduce.nvm_map import policy
from flashatlas.reproduce.nvm_map.policy import PolicyRow
from flashatlas.reproduce.protocol import Kept, Progress
from flashatlas.reproduce.runs import carried_out
from flashatlas.reproduce.workloads import Application, applications, load, traces_folder
from flashatlas.results.result import Result

PAPER = "0-hybrid-nvm"

SLOT_HEADER_BYTES = 64


@dataclass(frozen=True)
class Row:
    """One map on one workload."""

    workload: str
    map: str
    """The baseline, or the number of slots of NVM in words."""
    slots: int | None
    """Slots of NVM; ``None`` for a map in DRAM alone."""
    figure: bool
    """``True`` if the paper has the workload, too."""
    operations: int | None
    """Calls of fsync or fdatasync; ``None`` for a trace."""
    result: Result = field(repr=False)

    @property
    def calls_per_s(self) -> float | None:
        """Calls per second; ``None`` for a trace."""
        return (
            None
            if self.operations is None
            else self.operations / (self.result.record["simulated_ns"] / 1e9)
        )

    @property
    def flush_ns(self) -> dict[str, float]:
        """Latency of FLUSH: mean, p50, p99 and others, in nanoseconds."""
        return self.result.latency["flush"]

    @property
    def per_flush(self) -> dict[str, float]:
        """The cost of a FLUSH on average.

        The parts are programs of data, map pages and directory pages to flash, and bytes to NVM.
        """
        record = self.result.record
        flushes = record["host"]["flushes"]
        params, programs = record["config"]["params"], record["nand"]["programs"]
        planes = params["drive.frame_planes"]
        writes = record["map"]["writes"]
        return {
            "data": sum(n for cause, n in programs.items() if cause in ("host", "cache_evict"))
            / planes
            / flushes,
            "map": writes["flush"] / flushes,
            "directory": writes["directory"] / flushes,
            "nvm_bytes": record["map"].get("nvm", {}).get("stored_bytes", 0) / flushes,
        }


@dataclass(frozen=True)
class NvmMap:
    """The experiment, carried out."""

    experiment: dict[str, Any] = field(repr=False)
    traces: list[Application]
    rows: list[Row]
    policies: list[PolicyRow]

    @property
    def results(self) -> list[Result]:
        """Every run."""
        return [*(row.result for row in self.rows), *(row.result for row in self.policies)]

    @property
    def workloads(self) -> list[str]:
        """All workloads, in order."""
        return list(dict.fromkeys(row.workload for row in self.rows))

    @property
    def baselines(self) -> list[str]:
        """Maps in DRAM that write something at a FLUSH."""
        return [b["name"] for b in self.experiment["baseline"] if not b.get("ideal")]

    def of(self, workload: str) -> list[Row]:
        """Return all maps on one workload."""
        return [row for row in self.rows if row.workload == workload]

    def row(self, workload: str, map: str) -> Row | None:
        """Return one map on one workload."""
        return next((row for row in self.of(workload) if row.map == map), None)

    def gain(self, row: Row, over: str) -> float | None:
        """Return the calls per second, divided by the calls of a baseline.

        For a trace it is the factor by which the mean FLUSH is shorter.
        """
        base = self.row(row.workload, over)
        if base is None:
            return None
        if row.calls_per_s is None or base.calls_per_s is None:
            return base.flush_ns["mean"] / row.flush_ns["mean"]
        return row.calls_per_s / base.calls_per_s

    def best(self, workload: str, over: str) -> float | None:
        """Return the largest gain of any size of NVM."""
        gains = [self.gain(row, over) for row in self.of(workload) if row.slots is not None]
        known = [gain for gain in gains if gain is not None]
        return max(known) if known else None

    def headline(self) -> dict[str, float]:
        """Return the largest gain on the paper's workloads over each baseline."""
        figure = list(dict.fromkeys(row.workload for row in self.rows if row.figure))
        return {
            over: max(gain for name in figure if (gain := self.best(name, over)) is not None)
            for over in self.baselines
        }

    def to_json(self) -> dict[str, Any]:
        """Return all numbers."""
        return {
            "schema": "flashatlas.reproduce.nvm-map/2",
            "traces": [trace.to_json() for trace in self.traces],
            "published_gain_max": self.experiment["published"]["gain_max"],
            "headline": self.headline(),
            "rows": [
                {
                    "workload": row.workload,
                    "map": row.map,
                    "nvm_slots": row.slots,
                    "calls_per_s": row.calls_per_s,
                    "gains": {over: self.gain(row, over) for over in self.baselines},
                    "flush_ns": row.flush_ns,
                    "per_flush": row.per_flush,
                    "waf": row.result.waf,
                    "map_counters": row.result.record["map"],
                    "violations": row.result.violations,
                    "config_hash": row.result.record["config_hash"],
                }
                for row in self.rows
            ],
            "policies": [row.to_json() for row in self.policies],
        }


@dataclass(frozen=True)
class Plan:
    """The runs of the experiment."""

    experiment: dict[str, Any] = field(repr=False)
    traces: list[Application]
    operations: int
    """Calls of fsync or fdatasync in each run."""
    short: int | None
    """The largest number of requests in a run of the policy."""

    @property
    def workloads(self) -> list[Application]:
        """Workloads that may be recorded traces."""
        return self.traces

    def _maps(
        self, names: list[str] | None, slots: list[int]
    ) -> list[tuple[str, int | None, list[str], int]]:
        """Return the baselines and the sizes of NVM.

        Each has a name, slots, settings, and the calls of a synchronous workload.
        """
        made: list[tuple[str, int | None, list[str], int]] = [
            (b["name"], None, b["set"], min(b.get("operations", self.operations), self.operations))
            for b in self.experiment["baseline"]
            if names is None or b["name"] in names
        ]
        slot = self.experiment["segment_bytes"] + SLOT_HEADER_BYTES
        made += [
            (
                slots_name(n),
                n,
                [*self.experiment["nvm"]["set"], f"nvm.bytes={n * slot}"],
                self.operations,
            )
            for n in slots
        ]
        return made

    def runs(self) -> list[tuple[Row, dict[str, Any]]]:
        """Return a row without its result, and the options of its run, for each run."""
        common: list[str] = self.experiment["set"]
        made: list[tuple[Row, dict[str, Any]]] = []
        for workload in self.experiment["workload"]:
            for name, slots, settings, operations in self._maps(
                None, self.experiment["nvm"]["slots"]
            ):
                count = min(operations, workload.get("operations", operations))
                row = Row(
                    workload["name"], name, slots, workload.get("figure", False), count, _NONE
                )
                spec = f"ext4-sync:operations={count},{workload['spec']}"
                made.append((row, {"set": common + settings, "workload": spec, "depth": 1}))
        short = {"limit": 10 * self.short} if self.short else {}
        for entry, trace in zip(self.experiment["trace"], self.traces, strict=True):
            for name, slots, settings, _ in self._maps(entry["baselines"], entry["slots"]):
                row = Row(trace.name, name, slots, False, None, _NONE)
                made.append((row, {"set": common + settings, **trace.options, **short}))
        return made

    @property
    def labels(self) -> list[str]:
        """A label for each run."""
        policies = [
            " ".join((f"{workload}: {slots} slots", *settings))
            for (workload, slots, settings), _ in self._policies()
        ]
        return [*(f"{row.workload}: {row.map}" for row, _ in self.runs()), *policies]

    def _policies(self) -> list[tuple[tuple[str, int, tuple[str, ...]], dict[str, Any]]]:
        slot = self.experiment["segment_bytes"] + SLOT_HEADER_BYTES
        return policy.runs(self.experiment, slot, self.short)

    def carry_out(
        self,
        *,
        jobs: int | None = None,
        progress: Progress | None = None,
        kept: Kept | None = None,
    ) -> NvmMap:
        """Carry out all runs; arguments as for :func:`flashatlas.reproduce.runs.carried_out`."""
        planned, policies = self.runs(), self._policies()
        cases: list[Any] = [
            {"label": label, **options}
            for label, (_, options) in zip(self.labels, [*planned, *policies], strict=True)
        ]
        results = carried_out(
            cases,
            drive=self.experiment["drive"],
            jobs=jobs,
            progress=progress,
            kept=kept,
        )
        rows = [
            Row(row.workload, row.map, row.slots, row.figure, row.operations, result)
            for (row, _), result in zip(planned, results[: len(planned)], strict=True)
        ]
        of_policies = [
            PolicyRow(*of, result)
            for (of, _), result in zip(policies, results[len(planned) :], strict=True)
        ]
        return NvmMap(self.experiment, self.traces, rows, of_policies)


_NONE = Result({})


def slots_name(slots: int) -> str:
    """Return the name of the map with this number of slots of NVM."""
    return f"NVM, {slots:,} slots" if slots else "NVM, none"


def plan(
    traces: str | os.PathLike[str] | None = None,
    *,
    stand_ins: bool = False,
    operations: int | None = None,
) -> Plan:
    """Return the plan; arguments as for :func:`flashatlas.reproduce.carry_out`."""
    experiment = load(PAPER)
    entries = [
        {k: v for k, v in entry.items() if k not in ("slots", "baselines")}
        for entry in experiment["trace"]
    ]
    found = applications(entries, None if stand_ins else traces_folder(traces))
    for entry, trace in zip(entries, found, strict=True):
        if not trace.recorded:
            trace.options["flush_every"] = entry["flush_every"]
    short = max(10 * operations, 200) if operations else None
    return Plan(experiment, found, operations or experiment["operations"], short)
