"""Presets under fio's standard tests, beside what is published (``papers/5-drives``)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flashatlas._core import quantity
from flashatlas.names import registries, unknown
from flashatlas.reproduce.drives import fills
from flashatlas.reproduce.drives.published import CURVE, FILL, Drive, Measured, Row, compared
from flashatlas.reproduce.protocol import Kept, Progress
from flashatlas.reproduce.runs import carried_out
from flashatlas.reproduce.workloads import Application, load, refuse_traces
from flashatlas.results.result import Result

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAPER = "5-drives"
WITHOUT_SLC = "without SLC"


@dataclass(frozen=True)
class Drives:
    """The experiment, carried out."""

    experiment: dict[str, Any] = field(repr=False)
    drives: list[Drive]
    tested: list[Measured] = field(repr=False)
    rows: list[Row]
    """Every published number beside the simulated number."""

    @property
    def results(self) -> list[Result]:
        """Every run."""
        return [one.result for one in self.tested]

    def of(self, preset: str) -> list[Row]:
        """Return the published numbers of one preset."""
        return [row for row in self.rows if row.preset == preset]

    def curve(self, preset: str) -> Measured | None:
        """Return the run with the write curve of a preset; ``None`` if it has none."""
        return next((t for t in self.tested if t.preset == preset and t.is_curve), None)

    def fill(self, preset: str) -> Measured | None:
        """Return the run that writes a whole drive; ``None`` if there is none."""
        return next((t for t in self.tested if t.preset == preset and t.is_fill), None)

    @property
    def points(self) -> list[tuple[str, str, float, float]]:
        """The points of the longest write curve of each drive, as :func:`fills.points`."""
        runs = {
            drive.preset: run
            for drive in self.drives
            if (run := self.fill(drive.preset) or self.curve(drive.preset))
        }
        return fills.points(self.drives, runs)

    def to_json(self) -> dict[str, Any]:
        """Return all numbers."""
        return {
            "schema": "flashatlas.reproduce.drives/1",
            "within": self.experiment["within"],
            "order": self.experiment["order"],
            "rows": [row.to_json() for row in self.rows],
            "tests": [one.to_json() for one in self.tested],
            "points": self.points,
        }


@dataclass(frozen=True)
class Plan:
    """The runs of the experiment."""

    experiment: dict[str, Any] = field(repr=False)
    drives: list[Drive]
    limit: int | None
    """Number of requests after which each run ends."""
    fill: bool
    """``True`` if drives with a published curve are also written as a whole."""

    @property
    def workloads(self) -> list[Application]:
        """No workload may be a recorded trace."""
        return []

    def runs(self) -> list[tuple[str, Mapping[str, Any], int, dict[str, Any]]]:
        """Return the preset, the test, the depth and the options of each run."""
        made = []
        for drive in self.drives:
            for test in self.experiment["test"]:
                only = test.get("drives")
                if only not in (None, drive.preset) and (only != WITHOUT_SLC or drive.slc):
                    continue
                depths = [depth for depth in test["depths"] if depth <= drive.queue_depth]
                made += [(drive.preset, test, n, self._options(drive, test, n)) for n in depths]
            gigabytes = self.experiment["curve"]["gigabytes"].get(drive.preset)
            if gigabytes is not None:
                tests = [self._writes(CURVE, gigabytes * 1e9)]
                if self.fill:
                    tests.append(self._writes(FILL, drive.bytes))
                depth = self.experiment["curve"]["depth"]
                made += [(drive.preset, t, depth, self._options(drive, t, depth)) for t in tests]
        return made

    def _writes(self, what: str, length: float) -> dict[str, Any]:
        curve = self.experiment["curve"]
        requests = int(length // quantity(curve["size"]))
        test = {
            "what": what,
            "state": "fresh",
            "workload": f"sequential:requests={requests},size={curve['size']}",
            "precondition": "none",
        }
        return test if what == CURVE else {**test, "interval": curve["fill_interval"]}

    def _options(self, drive: Drive, test: Mapping[str, Any], depth: int) -> dict[str, Any]:
        options: dict[str, Any] = {
            "drive": drive.preset,
            "workload": test.get("longer", {}).get(drive.preset, test["workload"]),
            "precondition": test["precondition"],
            "depth": depth,
        }
        if drive.slc and test.get("without_slc"):
            options["set"] = ["ftl.slc=none"]
        if warmup := test.get("warmup"):
            options["warmup"] = warmup if self.limit is None else min(warmup, self.limit // 2)
        for key in ("until", "interval"):
            if key in test:
                options[key] = test[key]
        return options

    @property
    def labels(self) -> list[str]:
        """A label for each run."""
        return [
            ", ".join(
                [
                    preset,
                    test["what"],
                    *([test["size"]] if "size" in test else []),
                    test["state"],
                    f"depth {depth}",
                ]
            )
            for preset, test, depth, _ in self.runs()
        ]

    def carry_out(
        self,
        *,
        jobs: int | None = None,
        progress: Progress | None = None,
        kept: Kept | None = None,
    ) -> Drives:
        """Carry out all runs; arguments as for :func:`flashatlas.reproduce.runs.carried_out`."""
        planned = self.runs()
        cases: list[Any] = [
            {"label": label, **options}
            for label, (*_, options) in zip(self.labels, planned, strict=True)
        ]
        results = carried_out(cases, limit=self.limit, jobs=jobs, progress=progress, kept=kept)
        tested = [
            Measured(preset, test, depth, result)
            for (preset, test, depth, _), result in zip(planned, results, strict=True)
        ]
        rows = compared(self.experiment, self.drives, tested)
        return Drives(self.experiment, self.drives, tested, rows)


def drives_of(names: Sequence[str]) -> list[Drive]:
    """Return presets with what is published of them."""
    every = registries()
    published = {one["name"]: tomllib.loads(one["toml"]) for one in every["published"]}
    presets = {one["name"]: one for one in every["drives"]}
    made = []
    for name in names:
        capacity, preset = presets[name]["capacity_bytes"], tomllib.loads(presets[name]["toml"])
        slc, depth = "slc" in preset["ftl"], preset["host"]["queue_depth"]["value"]
        made.append(Drive(name, capacity, slc, depth, published[name]))
    return made


def plan(
    traces: str | os.PathLike[str] | None = None,
    *,
    stand_ins: bool = False,
    preset: list[str] | None = None,
    limit: int | None = None,
    fill: bool = False,
) -> Plan:
    """Return the plan; arguments as for :func:`flashatlas.reproduce.carry_out`.

    Raises:
        InputError: A preset is not one of the experiment, or a folder of traces is given.

    """
    experiment = load(PAPER)
    refuse_traces("drives", traces, "fio's standard tests")
    for name in preset or []:
        if name not in experiment["presets"]:
            raise unknown("--preset", name, experiment["presets"])
    names = [name for name in experiment["presets"] if not preset or name in preset]
    return Plan(experiment, drives_of(names), limit, fill)
