"""Experiments by real clients: fio on the served drive, and a simulation of the same load.

The section ``[served]`` of an experiment has stacks, and loads as text of an fio job file. Each
load runs twice on each stack: in a simulation of the job file (or of the workload that stands for a
file system), and by the real fio, over NBD or on ext4, on a drive that answers at the simulated
time.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flashatlas import plug
from flashatlas._core import InputError
from flashatlas.plug import Mounted
from flashatlas.report.html import text
from flashatlas.reproduce.page import report
from flashatlas.reproduce.protocol import Experiment, Kept, Made, Progress
from flashatlas.reproduce.table import BEYOND, REPRODUCED, Listing, Table, html, listings
from flashatlas.reproduce.workloads import Application, load
from flashatlas.results.result import Result
from flashatlas.results.units import duration
from flashatlas.running.api import run
from flashatlas.serving.serve import serve

MEASURED = "measured"
"""The name of the measured job in a job file."""


@dataclass(frozen=True)
class Pair:
    """One load on one stack, simulated and served."""

    load: str
    stack: str
    simulated: float
    """Requests of the measured job per second of the drive's time; with a file system, calls."""
    served: float
    results: tuple[Result, Result] = field(repr=False)

    @property
    def late(self) -> dict[str, int]:
        """Nanoseconds by which the replies of the server were late."""
        found: dict[str, int] = self.results[1].record["served"]["late_ns"]
        return found


@dataclass(frozen=True)
class Served:
    """The experiment, carried out."""

    experiment: dict[str, Any] = field(repr=False)
    pairs: list[Pair]

    @property
    def results(self) -> list[Result]:
        """Every run, and every drive that was served."""
        return [result for pair in self.pairs for result in pair.results]

    def of(self, load: str, stack: str) -> Pair:
        """Return one load on one stack."""
        return next(pair for pair in self.pairs if (pair.load, pair.stack) == (load, stack))

    def tables(self) -> list[Table]:
        """Return the requests per second, and the gains of the stacks."""
        said = self.experiment["served"]
        flushed = ("FLUSHes simulated", "served") if said.get("file_system") else ()
        rows = [
            (
                pair.load,
                pair.stack,
                f"{pair.simulated:,.1f}",
                f"{pair.served:,.1f}",
                f"{100 * (pair.served / pair.simulated - 1):+.1f} %",
                *(duration(pair.late[key]) for key in ("p50", "p99")),
                *(
                    f"{result.record['host']['flushes']:,}"
                    for _, result in zip(flushed, pair.results, strict=False)
                ),
            )
            for pair in self.pairs
        ]
        head = ("", "", "simulated", "served", "difference", "late, p50", "late, p99")
        unit = "Calls of a sync" if said.get("file_system") else "Requests"
        slower = f" Replies {said['slower']} times later." if said["slower"] != 1 else ""
        note = (
            f"{unit} per second of the drive's time, and by fio in reality.{slower} The time that "
            "NBD, the kernel and fio add is not in the simulation."
        )
        gains = [
            (
                each,
                f"{gain['of']} over {gain['over']}",
                gain["published"],
                *(
                    f"{getattr(self.of(each, gain['of']), how) / base:.2f}"
                    for how in ("simulated", "served")
                    if (base := getattr(self.of(each, gain["over"]), how))
                ),
            )
            for gain in said["gain"]
            for each in dict.fromkeys(pair.load for pair in self.pairs)
        ]
        return [
            Table("Simulated and served", BEYOND, note, (*head, *flushed), rows),
            Table(
                "Gains, in times",
                REPRODUCED,
                said["note"].strip(),
                ("", "", "published", "simulated", "served"),
                gains,
            ),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return all numbers."""
        return {
            "schema": "flashatlas.reproduce.served/1",
            "tables": [table.to_json() for table in self.tables()],
            "pairs": [
                {
                    "load": pair.load,
                    "stack": pair.stack,
                    "simulated_per_s": pair.simulated,
                    "served_per_s": pair.served,
                    "late_ns": pair.late,
                }
                for pair in self.pairs
            ],
        }


@dataclass(frozen=True)
class Plan:
    """The runs of the experiment."""

    experiment: dict[str, Any] = field(repr=False)

    @property
    def said(self) -> dict[str, Any]:
        """The section ``[served]`` of the experiment."""
        found: dict[str, Any] = self.experiment["served"]
        return found

    @property
    def labels(self) -> list[str]:
        """A label for each pair."""
        return [
            f"{each['name']}: {stack['name']}"
            for each in self.said["load"]
            for stack in self.said["stack"]
        ]

    @property
    def workloads(self) -> list[Application]:
        """Empty: there are no recorded traces."""
        return []

    def carry_out(
        self,
        *,
        jobs: int | None = None,
        progress: Progress | None = None,
        kept: Kept | None = None,
    ) -> Served:
        """Carry out all loads one after the other: real clients need the machine for themselves.

        Raises:
            InputError: A program is not installed, root is missing where a file system is mounted,
                or a store was given: real clients do not repeat exactly.

        """
        if kept is not None:
            raise InputError("--store: results of real clients do not repeat exactly; use --out")
        if shutil.which("fio") is None:
            raise InputError("fio is not installed (Debian and Ubuntu: apt install fio)")
        if self.said.get("file_system") and (why := plug.missing()) is not None:
            raise InputError(f"--served: {why}")
        pairs = []
        for number, (each, stack) in enumerate(
            (each, stack) for each in self.said["load"] for stack in self.said["stack"]
        ):
            settings = [*self.experiment.get("set", []), *self.said["set"], *stack["set"]]
            with tempfile.TemporaryDirectory(prefix="flashatlas-") as folder:
                simulated = self._simulated(each, settings, Path(folder))
                if progress:
                    progress(number, "simulated", simulated[1].record["trace"]["requests"], 0.1)
                served = self._served(each, settings, Path(folder))
            named = f"{each['name']}, {stack['name']}"
            results = (
                replace(simulated[1], label=f"{named}, simulated"),
                replace(served[1], label=f"{named}, served"),
            )
            pairs.append(Pair(each["name"], stack["name"], simulated[0], served[0], results))
            if progress:
                progress(number, "served", served[1].record["trace"]["requests"], 1.0)
        return Served(self.experiment, pairs)

    def _job(self, each: dict[str, Any], engine: str, folder: Path) -> Path:
        job = folder / "load.fio"
        job.write_text(f"[global]\n{engine}\n{self.said['fio'].format(**each)}", encoding="utf-8")
        return job

    def _simulated(
        self, each: dict[str, Any], settings: list[str], folder: Path
    ) -> tuple[float, Result]:
        drive = self.experiment["drive"]
        if "workload" in self.said:
            made = self.said["workload"].format(**each)
            result = run(drive, set=settings, workload=made, depth=1)
            return each["operations"] / (result.record["simulated_ns"] / 1e9), result
        job = self._job(each, "ioengine=libaio\ndirect=1\nfilename=drive", folder)
        result = run(drive, set=settings, job=job)
        (measured,) = (job for job in result.jobs["jobs"] if job["name"] == MEASURED)
        done = measured["read"]["ios"] + measured["write"]["ios"]
        return done / (measured["runtime_ns"] / 1e9), result

    def _served(
        self, each: dict[str, Any], settings: list[str], folder: Path
    ) -> tuple[float, Result]:
        slower = self.said["slower"]
        with serve(self.experiment["drive"], set=settings, time=slower) as drive:
            if self.said.get("file_system"):
                mounted = folder / "mounted"
                mounted.mkdir()
                with Mounted(drive, mounted, make=True):
                    engine = f"ioengine=sync\ndirectory={mounted}"
                    measured = _fio(self._job(each, engine, folder))
            else:
                measured = _fio(self._job(each, f"ioengine=nbd\nuri={drive.uri}", folder))
        done = measured["read"]["total_ios"] + measured["write"]["total_ios"]
        assert drive.result is not None
        return done / (measured["job_runtime"] / 1e3) * slower, drive.result


def _fio(job: Path) -> dict[str, Any]:
    """Return fio's statistics of the measured job."""
    out = job.with_suffix(".json")
    done = subprocess.run(
        ["fio", str(job), "--output-format=json", f"--output={out}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise InputError(f"fio: {(done.stderr or done.stdout).strip()}")
    found = json.loads(out.read_text(encoding="utf-8"))
    measured: dict[str, Any]
    (measured,) = (job for job in found["jobs"] if job["jobname"] == MEASURED)
    return measured


class ByClients(Experiment):
    """An experiment by real clients."""

    def plan(self, **options: Any) -> Plan:
        """Return the plan.

        Raises:
            InputError: The experiment has nothing to serve.

        """
        experiment = load(self.paper)
        if "served" not in experiment:
            raise InputError(f"--served: {self.name} has nothing to serve")
        return Plan(experiment)

    def listings(self, made: Made) -> list[Listing]:
        """Return the tables for the terminal."""
        assert isinstance(made, Served)
        return listings(made.tables())

    def page(self, made: Made, command: str) -> str:
        """Return the report as HTML; ``command`` runs everything again."""
        assert isinstance(made, Served)
        drive = made.experiment["drive"]
        title, known = f"{drive}, simulated and served", [("Drive", text(drive))]
        return report(title, "by a real fio", made.results, known, html(made.tables()), command)
