"""HARD against a superpage-mapped drive alone.

The experiment has figures 14.4 and 14.5, and runs for questions beyond them (``papers/4-hard``).
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashatlas.reproduce import layered
from flashatlas.reproduce.hard import tables
from flashatlas.reproduce.hard.studies import HARD, STAGES, HardStudies
from flashatlas.reproduce.layered import NONE, Cases, add
from flashatlas.reproduce.protocol import Kept, Progress
from flashatlas.reproduce.table import Table
from flashatlas.reproduce.workloads import Application, applications, load, traces_folder

PAPER = "4-hard"


@dataclass(frozen=True)
class Hard(HardStudies):
    """The experiment, carried out."""

    def tables(self) -> list[Table]:
        """Return every table, in the order of the paper."""
        return tables.tables(self)

    def to_json(self) -> dict[str, Any]:
        """Return all numbers."""
        return {
            "schema": "flashatlas.reproduce.hard/2",
            "traces": [application.to_json() for application in self.applications],
            "tables": [table.to_json() for table in self.tables()],
            "runs": self.runs_json(),
        }


@dataclass(frozen=True)
class Plan(layered.Plan):
    """The runs of the experiment."""

    applications: list[Application]

    @property
    def workloads(self) -> list[Application]:
        """Workloads that may be recorded traces."""
        return self.applications

    def cases(self, jobs_folder: Path) -> Cases:
        """Return the options of each run; job files are written to a folder."""
        e = self.experiment
        cases: Cases = {}
        short = 1024 * self.requests if self.requests else None
        four, five, both = e["figure_4"], e["figure_5"], e["stacks"]
        for size in four["sizes"]:
            count = max((short or four["bytes"]) // size, 64)
            workload = f"uniform:requests={count},size={size}"
            how = {"workload": workload, "depth": four["depth"], "set": self._shape()}
            add(cases, "figure 14.4", size, both, **how)
        for record in five["records"]:
            for depth in five["depths"]["write"]:
                job = jobs_folder / f"iozone-{record}-{depth}.fio"
                job.write_text(
                    iozone(
                        record, five["merged"], short or five["file"], five["depths"]["read"], depth
                    )
                )
                add(cases, "figure 14.5", (record, depth), both, set=self._shape(), job=job)
        self._promises(cases)
        self._full(cases)
        limit = {"limit": 4 * self.requests} if self.requests else {}
        for application in self.applications:
            how = {"depth": four["depth"], **application.options, **limit}
            add(cases, "trace", application.name, both, **how)
        return cases

    def _shape(self) -> list[str]:
        """Return the settings of the drive; for short runs it has 2 GB, and is filled sooner."""
        return ["drive.blocks=512"] if self.requests else []

    def _random(self, kind: str, more: str = "") -> dict[str, Any]:
        """Return a workload of 4 KiB writes in the steady state; its warm-up is not measured."""
        full = self.experiment["full"]
        warmup, count = (
            min(self.requests or full[key], full[key]) for key in ("warmup", "requests")
        )
        return {"workload": f"{kind}:requests={warmup + count},size=4KiB{more}", "warmup": warmup}

    def _promises(self, cases: Cases) -> None:
        """Add every promise of the layer over every promise of the drive, fresh and steady."""
        e = self.experiment
        promises, full = e["promises"], e["full"]
        count = min(self.requests or promises["fresh"], promises["fresh"])
        fresh = {"workload": f"uniform:requests={count},size=4KiB"}
        for cache, depth in itertools.product(promises["cache"], promises["depths"]):
            for state, shape, writes in (
                ("fresh", self._shape(), fresh),
                ("steady", full["set"], self._random("uniform")),
            ):
                own = [*shape, f"cache.mode={cache}"]
                key = (state, cache, depth)
                add(cases, "promise", (*key, ""), [NONE], set=own, depth=depth, **writes)
                for complete in promises["complete"]:
                    how = [*own, f"hard.complete={complete}"]
                    add(cases, "promise", (*key, complete), [HARD], set=how, depth=depth, **writes)

    def _full(self, cases: Cases) -> None:
        """Add runs on a full drive: the reserve, victim policies, FLUSHes."""
        full, both = self.experiment["full"], self.experiment["stacks"]
        random = {"depth": self.experiment["figure_4"]["depth"], **self._random("uniform")}
        add(cases, "full", "random", [NONE], set=full["set"], **random)
        for reserve in full["reserves"]:
            own = [*full["set"], f"hard.reserve={reserve}"]
            add(cases, "reserve", reserve, [HARD], set=own, **random)
        hot = {**random, **self._random("hotcold", f",{full['hot_cold']}")}
        add(cases, "hot-cold", "greedy", [NONE], set=full["set"], **hot)
        for victim in full["victims"]:
            own = [*full["set"], f"hard.victim={victim}"]
            add(cases, "hot-cold", victim, [HARD], set=own, **hot)
        for every in full["flush_every"]:
            flushed = {**self._random("uniform", f",flush_every={every}"), "depth": 1}
            add(cases, "flush", every, both, set=full["set"], **flushed)

    def carry_out(
        self,
        *,
        jobs: int | None = None,
        progress: Progress | None = None,
        kept: Kept | None = None,
    ) -> Hard:
        """Carry out all runs; arguments as for :func:`flashatlas.reproduce.runs.carried_out`."""
        return Hard(self.experiment, self.results(jobs, progress, kept), self.applications)


def iozone(record: int, merged: int, size: int, read_depth: int, write_depth: int) -> str:
    """Return a job file in IOzone's order (HARD, section 14.3: SW, SR, RR, RW, SR, RR).

    Args:
        record: Bytes of a random request.
        merged: Bytes of a sequential request, if it is larger: the page cache merges such requests.
        size: Bytes of the file.
        read_depth: Reads in flight.
        write_depth: Writes in flight.

    """
    lines = [
        "[global]",
        "direct=1",
        "ioengine=libaio",
        f"size={max(size, 64 * max(record, merged))}",
    ]
    lines += ["filename=iozone", ""]
    kinds = {"SW": "write", "SR": "read", "RR": "randread", "RW": "randwrite"}
    for stage in STAGES:
        kind = kinds[stage.split()[0]]
        depth = write_depth if kind.endswith("write") else read_depth
        block = record if kind.startswith("rand") else max(record, merged)
        lines += [
            f"[{stage.replace(' ', '-')}]",
            "stonewall",
            f"rw={kind}",
            f"bs={block}",
            f"iodepth={depth}",
            "",
        ]
    return "\n".join(lines)


def plan(
    traces: str | os.PathLike[str] | None = None,
    *,
    stand_ins: bool = False,
    limit: int | None = None,
) -> Plan:
    """Return the plan; arguments as for :func:`flashatlas.reproduce.carry_out`."""
    experiment = load(PAPER)
    folder = None if stand_ins else traces_folder(traces)
    return Plan(experiment, limit, applications(experiment["trace"], folder))
