"""MAST against FAST, LAST and others: figures 2, 3 and 4 of the paper (``papers/1-mast``)."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from flashatlas.reproduce.protocol import Kept, Progress
from flashatlas.reproduce.runs import carried_out
from flashatlas.reproduce.workloads import (
    Application,
    applications,
    flash_seconds,
    load,
    traces_folder,
)
from flashatlas.results.result import Result
from flashatlas.results.rows import RECLAIMED, log_areas

MERGED = tuple(name for name in RECLAIMED if name != "moved")
"""Classes of figure 3; a log block whose pages moved to another block was not merged."""

PAPER = "1-mast"


@dataclass(frozen=True)
class Row:
    """One scheme, or a variant of it, on one application."""

    application: str
    scheme: str
    variant: str
    """The switch that differs from the defaults; empty for the scheme itself."""
    reference: bool
    """``True`` if it is not one of the paper's schemes."""
    result: Result = field(repr=False)

    @property
    def efficiency(self) -> float:
        """Pages that the host writes per second of flash work."""
        record = self.result.record
        return record["nand"]["programs"].get("host", 0) / flash_seconds(record)

    @property
    def shares(self) -> dict[str, float]:
        """Shares of log blocks that were merged or dead, by class.

        Empty for schemes that merge no data blocks.
        """
        merges = self.result.record.get("merges", {})
        if not sum(merges.get("data_blocks", {}).values()):
            return {}
        counts = merges.get("log_blocks", {})
        merged = sum(counts.get(name, 0) for name in MERGED)
        return {name: counts.get(name, 0) / merged for name in MERGED} if merged else {}

    @property
    def moved(self) -> int:
        """Number of log blocks whose valid pages moved to others."""
        return self.result.record.get("merges", {}).get("log_blocks", {}).get("moved", 0)

    @property
    def table_bytes(self) -> int:
        """Memory of all tables in bytes."""
        return sum(self.result.record["memory_bytes"]["tables"].values())

    def utilisation(self) -> dict[str, float]:
        """Return the mean share of valid pages of each area of the log over the run (figure 2)."""
        series = self.result.tables["series"]
        means = {
            area: pc.mean(series[f"area_{area}_utilisation"]).as_py()
            for area in log_areas(series.column_names)
        }
        return {area: mean for area, mean in means.items() if mean is not None}


@dataclass(frozen=True)
class Claim:
    """A number that the paper published, and the simulated number."""

    application: str
    over: str
    published: float
    ours: float

    @property
    def deviation(self) -> float:
        """Our value less the published one, in percentage points."""
        return self.ours - self.published


@dataclass(frozen=True)
class Order:
    """The order of schemes by their share of a class of merges."""

    application: str
    kind: str
    names: list[str]
    """Schemes in the published order, the largest share first."""
    shares: dict[str, float | None]
    """Our shares; ``None`` for a scheme that merged nothing."""

    @property
    def published(self) -> str:
        """The published order in words."""
        return " > ".join(self.names)

    @property
    def ours(self) -> str:
        """Our order in words: the largest first, equal shares joined by ``=``.

        Empty if a scheme merged nothing.
        """
        known = {name: share for name, share in self.shares.items() if share is not None}
        if len(known) < len(self.shares):
            return ""
        ranked = sorted(known, key=lambda name: -known[name])
        signs = [" > " if known[a] > known[b] else " = " for a, b in itertools.pairwise(ranked)]
        return "".join(itertools.chain.from_iterable(zip(ranked, [*signs, ""], strict=True)))

    @property
    def same(self) -> bool:
        """``True`` if our order is the published order."""
        return self.ours == self.published


@dataclass(frozen=True)
class Mast:
    """The experiment, carried out."""

    experiment: dict[str, Any] = field(repr=False)
    applications: list[Application]
    rows: list[Row]

    @property
    def results(self) -> list[Result]:
        """Every run."""
        return [row.result for row in self.rows]

    def of(self, application: str) -> list[Row]:
        """Return the schemes on one application."""
        return [row for row in self.rows if row.application == application and not row.variant]

    def row(self, application: str, scheme: str) -> Row:
        """Return one scheme on one application."""
        return next(row for row in self.of(application) if row.scheme == scheme)

    def relative(self, row: Row) -> float:
        """Return the efficiency of a row relative to the experiment's first scheme."""
        return (
            row.efficiency
            / self.row(row.application, self.experiment["scheme"][0]["name"]).efficiency
        )

    def claims(self) -> list[Claim]:
        """Return the published and the simulated gains of MAST over other schemes, in per cent."""
        published = self.experiment["published"]
        published_of = [each for each in self.applications if each.published]
        made = []
        for over, values in published["over"].items():
            gains = []
            for application, value in zip(published_of, values, strict=True):
                name = application.name
                ours = self.row(name, "MAST").efficiency / self.row(name, over).efficiency
                gains.append(100 * (ours - 1))
                made.append(Claim(name, over, value, gains[-1]))
            made.append(Claim("mean", over, published["mean_over"][over], sum(gains) / len(gains)))
        return made

    def orders(self) -> list[Order]:
        """Return the order of the schemes by share, for each application and class.

        Each has the published order, and our shares.
        """
        return [
            Order(
                application.name,
                kind,
                published,
                {name: self.row(application.name, name).shares.get(kind) for name in published},
            )
            for application in self.applications
            for kind, published in self.experiment["published"]["order"].items()
        ]

    def to_json(self) -> dict[str, Any]:
        """Return all numbers."""
        return {
            "schema": "flashatlas.reproduce.mast/1",
            "applications": [a.to_json() for a in self.applications],
            "rows": [
                {
                    "application": row.application,
                    "scheme": row.scheme,
                    "variant": row.variant,
                    "efficiency_pages_per_s": row.efficiency,
                    "efficiency_over_first": self.relative(row),
                    "waf": row.result.waf,
                    "merges": row.result.record.get("merges"),
                    "utilisation": row.utilisation(),
                    "table_bytes": row.table_bytes,
                    "violations": row.result.violations,
                    "config_hash": row.result.record["config_hash"],
                }
                for row in self.rows
            ],
            "claims": [{**vars(claim), "deviation": claim.deviation} for claim in self.claims()],
            "orders": [
                {
                    "application": o.application,
                    "class": o.kind,
                    "published": o.published,
                    "ours": o.ours,
                }
                for o in self.orders()
            ],
        }


@dataclass(frozen=True)
class Plan:
    """The runs of the experiment."""

    experiment: dict[str, Any] = field(repr=False)
    applications: list[Application]
    sensitivity: bool
    """``True`` if every reading of the paper's open points is run, too."""
    limit: int | None
    """Number of requests after which each run ends."""

    @property
    def workloads(self) -> list[Application]:
        """The applications."""
        return self.applications

    def kinds(self) -> list[tuple[str, str, list[str], bool]]:
        """Return schemes and variants with their settings, and ``True`` for the paper's own."""
        known = {s["name"]: s for s in self.experiment["scheme"]}
        common = self.experiment["set"]
        made = [
            (
                name,
                "",
                s["set"] if s.get("no_log") else common + s["set"],
                not s.get("reference", False),
            )
            for name, s in known.items()
        ]
        if self.sensitivity:
            made += [
                (v["of"], v["name"], common + known[v["of"]]["set"] + v["set"], True)
                for v in self.experiment["variant"]
            ]
        return made

    @property
    def labels(self) -> list[str]:
        """A label for each run."""
        return [
            ": ".join(filter(None, (application.name, scheme, variant)))
            for application, scheme, variant, *_ in self._planned()
        ]

    def _planned(self) -> list[tuple[Application, str, str, list[str], bool]]:
        return [
            (application, *kind)
            for application in self.applications
            for kind in self.kinds()
            if application.variants or not kind[1]
        ]

    def carry_out(
        self,
        *,
        jobs: int | None = None,
        progress: Progress | None = None,
        kept: Kept | None = None,
    ) -> Mast:
        """Carry out all runs; arguments as for :func:`flashatlas.reproduce.runs.carried_out`."""
        planned = self._planned()
        # a run that ends early measures from its beginning
        short = {"warmup": 0} if self.limit else {}
        cases: list[Any] = [
            {"label": label, "set": settings, "mode": "untimed", **application.options, **short}
            for label, (application, _, _, settings, _) in zip(self.labels, planned, strict=True)
        ]
        results = carried_out(
            cases,
            drive=self.experiment["drive"],
            precondition=self.experiment["precondition"],
            limit=self.limit,
            jobs=jobs,
            progress=progress,
            kept=kept,
        )
        rows = [
            Row(application.name, scheme, variant, not own, result)
            for (application, scheme, variant, _, own), result in zip(planned, results, strict=True)
        ]
        return Mast(self.experiment, self.applications, rows)


def plan(
    traces: str | os.PathLike[str] | None = None,
    *,
    stand_ins: bool = False,
    sensitivity: bool = False,
    limit: int | None = None,
) -> Plan:
    """Return the plan; arguments as for :func:`flashatlas.reproduce.carry_out`."""
    experiment = load(PAPER)
    workloads = applications(
        experiment["application"], None if stand_ins else traces_folder(traces)
    )
    return Plan(experiment, workloads, sensitivity, limit)
