"""HPB against a drive that loads its map on demand.

The experiment has Tiobench, mixed work and phones (``papers/2-hpb``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashatlas.reproduce import layered
from flashatlas.reproduce.hpb import tables
from flashatlas.reproduce.hpb.studies import HPB, STAGES, HpbStudies
from flashatlas.reproduce.layered import NONE, Cases, add
from flashatlas.reproduce.protocol import Kept, Progress
from flashatlas.reproduce.table import Table
from flashatlas.reproduce.workloads import (
    Application,
    applications,
    load,
    precondition,
    traces_folder,
)

PAPER = "2-hpb"


@dataclass(frozen=True)
class Hpb(HpbStudies):
    """The experiment, carried out."""

    def tables(self) -> list[Table]:
        """Return every table, in the order of the slides."""
        return tables.tables(self)

    def to_json(self) -> dict[str, Any]:
        """Return all numbers."""
        return {
            "schema": "flashatlas.reproduce.hpb/1",
            "traces": [p.to_json() for p in self.phones],
            "tables": [table.to_json() for table in self.tables()],
            "runs": self.runs_json(),
        }


@dataclass(frozen=True)
class Plan(layered.Plan):
    """The runs of the experiment."""

    phones: list[Application]

    @property
    def workloads(self) -> list[Application]:
        """Workloads that may be recorded traces."""
        return self.phones

    def cases(self, jobs_folder: Path) -> Cases:
        """Return the options of each run; job files are written to a folder."""
        e = self.experiment
        cases: Cases = {}
        short = min(1.0, self.requests / e["tiobench"]["random"]) if self.requests else 1.0
        # short runs of generated work need no large drive
        small = e["small"] if short < 1 and not any(phone.recorded for phone in self.phones) else {}
        file, drive = small.get("file", e["file"]), small.get("set", [])
        threads = small.get("threads", e["mixed"]["threads"])
        memory = [f"hpb.host_bytes={e['host_bytes']}", *drive]

        def job(name: str, text: str) -> Path:
            path = jobs_folder / f"{name}.fio"
            path.write_text(text)
            return path

        def both(study: str, value: Any, path: Path) -> None:
            add(cases, study, value, [NONE], job=path, set=drive)
            add(cases, study, value, [HPB], job=path, set=memory)

        for depth in e["tiobench"]["threads"]:
            text = tiobench(e["tiobench"], file, depth, short)
            both("tiobench", depth, job(f"tiobench-{depth}", text))
        for host_us in e["host_time"]["us"]:
            text = tiobench(e["tiobench"], file, 1, short, host_us)
            both("host time", host_us, job(f"host-time-{host_us}", text))
        issue = int(e["mixed"]["issue"] * short)
        for reads in e["mixed"]["reads"]:
            for chunk in e["mixed"]["chunks"]:
                text = mixed(file, issue, threads, reads, chunk)
                both("mixed", (reads, chunk), job(f"mixed-{reads}-{chunk}", text))
        c = e["cache"]
        text = mixed(c["file"], c["issue"], e["mixed"]["threads"], c["reads"], c["chunk"])
        path = job("cache", text)
        for pages in c["pages"]:
            settings = [*e["small"]["set"], f"map.cache_bytes={pages * 16}KiB"]
            add(cases, "cache", pages, [NONE], job=path, set=settings)
            own = [*settings, f"hpb.host_bytes={e['host_bytes']}"]
            add(cases, "cache", pages, [HPB], job=path, set=own)
        s = e["settings"]
        of_settings = {
            "settings, reads": job("settings-reads", tiobench(e["tiobench"], file, 1, short)),
            "settings, mixed": job(
                "settings-mixed",
                mixed(file, int(s["issue"] * short), threads, s["reads"], s["chunk"]),
            ),
        }
        for study, path in of_settings.items():
            add(cases, study, NONE, [NONE], job=path, set=drive)
            for name, settings in s["cases"]:
                add(cases, study, name, [HPB], job=path, set=[*memory, *settings])
        for phone in self.phones:
            options = {
                **phone.options,
                "limit": self.requests or e["phone"]["requests"],
                "depth": 1,
            }
            add(cases, "phone", phone.name, [NONE], set=drive, **options)
            for size in e["phone"]["host_bytes"]:
                add(
                    cases,
                    "phone",
                    (phone.name, size),
                    [HPB],
                    set=[f"hpb.host_bytes={size}", *drive],
                    **options,
                )
            longer = [
                f"hpb.host_bytes={e['phone']['host_bytes'][-1]}",
                f"hpb.max_read={e['phone']['long_reads']}",
            ]
            add(cases, "phone, long reads", phone.name, [HPB], set=[*longer, *drive], **options)
        # both layers on one trace, as fast as the drive accepts requests
        first = {
            **self.phones[0].options,
            "limit": self.requests or e["phone"]["requests"],
            "fit": e["together"]["fit"],
        }
        for stack in e["together"]["stacks"]:
            add(
                cases,
                "together",
                self.phones[0].name,
                [stack],
                set=drive,
                depth=e["together"]["depth"],
                **first,
            )
        return cases

    def carry_out(
        self,
        *,
        jobs: int | None = None,
        progress: Progress | None = None,
        kept: Kept | None = None,
    ) -> Hpb:
        """Carry out all runs; arguments as for :func:`flashatlas.reproduce.runs.carried_out`."""
        return Hpb(self.experiment, self.results(jobs, progress, kept), self.phones)


def _job(options: list[str], **sections: list[str]) -> str:
    lines = ["[global]", "direct=1", *options, ""]
    for name, body in sections.items():
        lines += [f"[{name}]", "stonewall", *body, ""]
    return "\n".join(lines)


def tiobench(sizes: dict[str, int], file: int, threads: int, short: float, host_us: int = 0) -> str:
    """Return a job file with a stage for each kind of work.

    Random reads come first, to warm the host's cache, and random reads come again at the end.

    Args:
        sizes: Bytes of a random request (``record``) and of a sequential request (``merged``), and
            numbers of requests (``warm``, ``random``, ``sequential``).
        file: Bytes of the file.
        threads: Requests in flight.
        short: Share of the requests that are carried out.
        host_us: Time at the host between the end of a request and the next, in microseconds.

    """
    kinds = {"warm": "randread", "RR": "randread", "SR": "read", "SW": "write", "RW": "randwrite"}
    counts = {"warm": "warm", "SR": "sequential", "SW": "sequential"}
    sections = {}
    for stage in STAGES:
        kind = kinds[stage.split()[0]]
        block = sizes["record"] if kind.startswith("rand") else sizes["merged"]
        count = max(int(sizes[counts.get(stage, "random")] * short), 256)
        sections[stage.replace(" ", "-")] = [f"rw={kind}", f"bs={block}", f"number_ios={count}"]
    head = ["ioengine=libaio", f"iodepth={threads}", f"size={file}", "filename=tiobench"]
    head += [f"thinktime={host_us}us"] if host_us else []
    return _job(head, **sections)


def mixed(file: int, issue: int, threads: int, reads: int, chunk: int) -> str:
    """Return a job file: chunks at random places, each read or written in records of 4 KB.

    Args:
        file: Bytes of the file.
        issue: Bytes that all threads read and write together.
        threads: Threads, each with one request at a time.
        reads: Percent of the chunks that are read.
        chunk: Bytes of a chunk.

    """
    records = chunk // 4096
    kind = {100: "randread", 0: "randwrite"}.get(reads, "randrw") + (
        f":{records}" if records > 1 else ""
    )
    head = [
        "ioengine=sync",
        f"size={file}",
        "filename=mixed",
        "bs=4k",
        "norandommap=1",
        f"numjobs={threads}",
    ]
    each = max(issue // threads, 1 << 16)
    return _job(
        head, mixed=[f"rw={kind}", f"rwmixread={reads}", f"io_size={each}", "group_reporting"]
    )


def plan(
    traces: str | os.PathLike[str] | None = None,
    *,
    stand_ins: bool = False,
    limit: int | None = None,
) -> Plan:
    """Return the plan; arguments as for :func:`flashatlas.reproduce.carry_out`."""
    experiment = load(PAPER)
    folder = None if stand_ins else traces_folder(traces)
    entries = experiment["phone"]["traces"]
    bare = [
        {key: value for key, value in entry.items() if key != "precondition"} for entry in entries
    ]
    phones = applications(bare, folder)
    for phone, entry in zip(phones, entries, strict=True):
        phone.options["precondition"] = precondition(phone, entry["precondition"], folder)
    return Plan(experiment, limit, phones)
