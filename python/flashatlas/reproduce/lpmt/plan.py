"""The hardware lookup engine.

The experiment has tables III to VI and figures 6 and 8 of the paper, and more (``papers/3-lpmt``).
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from typing import Any

from flashatlas.inputs.trace import Trace
from flashatlas.reproduce.lpmt import tables
from flashatlas.reproduce.lpmt.studies import POLICIES, Point, Studies, chosen, said_of
from flashatlas.reproduce.lpmt.whole import character, whole_traces
from flashatlas.reproduce.protocol import Kept, Progress
from flashatlas.reproduce.runs import carried_out, looked_up
from flashatlas.reproduce.table import Table
from flashatlas.reproduce.workloads import Application, applications, load, traces_folder

PAPER = "3-lpmt"
LOOKUPS = 200_000
"""Number of lookups with which the engine is checked against closed forms.

The lookups read sets at random. The mean of the policy ``set-mod`` then has a standard error of
0.02 clocks.
"""

HASHES = {
    "shifting": ["lookup.hash=shifting"],
    "folding": ["lookup.hash=folding"],
    "radix": ["lookup.hash=radix"],
    "division": ["lookup.hash=division"],
    "boundary": ["lookup.hash=folding", "lookup.fold=boundary"],
    "mixer": ["lookup.hash=mixer"],
}
"""The paper's functions in its order, then folding at the boundary, and a mixer.

Folding divides an address into parts and adds them. Folding at the boundary also reverses the bits
of every second part.
"""

CONSTRAINTS = ("none", "ras,rrd,faw,ccd_l", "ras,rrd,faw,ccd_l,command_bus", "all")


Asked = tuple[tuple[str, int, int, str, str, str, float], dict[str, Any]]
"""A point of the sweep (the leading fields of a :class:`Point`), and its study's arguments."""


@dataclass(frozen=True)
class Lpmt(Studies):
    """The experiment, carried out."""

    def tables(self) -> list[Table]:
        """Return every table, in the order of the paper."""
        return tables.tables(self)

    def to_json(self) -> dict[str, Any]:
        """Return all numbers."""
        return {
            "schema": "flashatlas.reproduce.lpmt/1",
            "applications": [a.to_json() for a in self.traces],
            "tables": [table.to_json() for table in self.tables()],
            "studies": self.studies,
            "sweep": [
                {
                    "application": p.application,
                    "configuration": p.name,
                    "ns_per_lookup": p.ns,
                    "bytes": p.bytes,
                    "settings": {
                        k: v for k, v in p.record["config"].items() if k.startswith("lookup.")
                    },
                }
                for p in self.points
            ],
            "runs": [
                {"label": r.label, "lookup": r.record.get("lookup"), "map": r.record["map"]}
                for r in self.results
            ],
        }


@dataclass(frozen=True)
class Plan:
    """The runs of the experiment."""

    experiment: dict[str, Any] = field(repr=False)
    applications: list[Application]
    whole: list[Application]
    """Whole traces of the paper; they are too long for the thousand studies of the sweep."""
    sweep: bool
    limit: int | None

    @staticmethod
    def _options(application: Application) -> dict[str, Any]:
        return {
            key: value for key, value in application.options.items() if key not in ("sets", "like")
        }

    @property
    def workloads(self) -> list[Application]:
        """The applications and the whole traces."""
        return [*self.applications, *self.whole]

    def _source(self, application: Application) -> dict[str, Any]:
        options = self._options(application)
        if "workload" in options:
            return {"workload": options["workload"], "unit_sectors": 1}
        trace = options.pop("trace")
        return {"trace": Trace(trace, **options)}

    def studies(self) -> dict[str, dict[str, Any]]:
        """Return each study's name with its arguments for :func:`flashatlas.lookup`."""
        made: dict[str, dict[str, Any]] = {}
        lookups = min(self.limit or LOOKUPS, LOOKUPS)
        for check, constraints in itertools.product(self.experiment["check"], CONSTRAINTS):
            settings = [*check["set"], f"dram.constraints={constraints}"]
            made[f"check/{check['name']}/{constraints}"] = {
                "sets": {"lookups": lookups},
                "set": settings,
            }
        calibrated = self.experiment["calibrated"]
        for policy in POLICIES:
            made[f"calibrated/{policy}"] = {
                "sets": {
                    "lookups": lookups,
                    "repeat": calibrated["repeat"],
                    "skew": calibrated["skew"],
                },
                "set": [*calibrated["settings"], f"lookup.policy={policy}"],
            }
            figure = self.experiment["figure_8"]
            settings = [*figure["set"], f"lookup.policy={policy}"]
            for chain in ("stream", "wait"):
                made[f"figure 8, {chain}/{policy}"] = {
                    "files": figure["files"],
                    "set": [*settings, f"lookup.chain={chain}"],
                    "limit": self.limit,
                }
            settings = [
                *figure["set"],
                f"lookup.policy={policy}",
                "lookup.chain=stream",
                "lookup.probe=abcd",
            ]
            made[f"fill/{policy}"] = {
                "files": {**figure["files"], "again": 0},
                "set": settings,
                "limit": self.limit,
            }
        for synthetic, (name, function) in itertools.product(
            self.experiment["synthetic"], HASHES.items()
        ):
            settings = [*synthetic["set"], *function]
            made[f"table 4/{synthetic['name']}/{name}"] = {
                "files": synthetic["files"],
                "set": settings,
                "limit": self.limit,
            }
        made |= self._queues()
        for application in self.workloads:
            source = {**self._source(application), "limit": self.limit}
            sets = self._sets(application)
            for name, function in HASHES.items():
                settings = [*sets, *function]
                made[f"table 4/{application.name}/{name}"] = {**source, "set": settings}
            for policy in POLICIES:
                settings = [*sets, f"lookup.policy={policy}"]
                made[f"trace/{application.name}/{policy}"] = {
                    **source,
                    "set": [*settings, "dram.constraints=none", "lookup.probe=abcd"],
                }
                made[f"trace, real/{application.name}/{policy}"] = {**source, "set": settings}
        return made

    def _sets(self, application: Application) -> list[str]:
        """Return the number of sets as a setting.

        A whole trace has no such setting, so that its tables are as large as in the paper.
        """
        sets = said_of(self.experiment, application, "sets")
        return [f"lookup.sets={sets}"] if sets else []

    def _queues(self) -> dict[str, dict[str, Any]]:
        """Return studies in which a queue reorders reads: of random sets, and of every trace."""
        chosen = self.experiment["queue"]
        made: dict[str, dict[str, Any]] = {}
        lookups = min(self.limit or chosen["lookups"], chosen["lookups"])
        for policy, length in itertools.product(chosen["policies"], [0, *chosen["lengths"]]):
            own = [f"lookup.policy={policy}", f"lookup.queue={length}"]
            made[f"queue/{length}/{policy}"] = {"sets": {"lookups": lookups}, "set": own}
            if length not in (0, chosen["traces"]):
                continue
            for application in self.workloads:
                made[f"queue/{application.name}/{length}/{policy}"] = {
                    **self._source(application),
                    "limit": self.limit,
                    "set": [*self._sets(application), *own],
                }
        return made

    def points(self, files: dict[str, int]) -> list[Asked]:
        """Return the configurations of the sweep with their arguments.

        Args:
            files: Entries in the table at the end of each application's trace, by the
                application's name.

        """
        sweep = self.experiment["sweep"]
        made: list[Asked] = []
        for application in self.applications if self.sweep else []:
            source = {**self._source(application), "limit": self.limit}
            for banks in sweep["banks"]:
                settings = [
                    *sweep["set"],
                    "lookup.table=flat",
                    "lookup.policy=set-mod",
                    f"lookup.banks={banks}",
                ]
                made.append(
                    ((application.name, banks, 0, "", "flat", "", 0), {**source, "set": settings})
                )
            for banks, ways, name, order, scan, per in itertools.product(
                sweep["banks"],
                sweep["ways"],
                sweep["hashes"],
                sweep["orders"],
                sweep["scans"],
                sweep["load"],
            ):
                policy, probe = order.split()
                if policy != "set-mod" and banks == 1:
                    continue
                sets = 1 << max(4, (per * files[application.name] // ways - 1).bit_length())
                settings = [
                    *sweep["set"],
                    f"lookup.banks={banks}",
                    f"lookup.ways={ways}",
                    f"lookup.hash={name}",
                    f"lookup.policy={policy}",
                    f"lookup.probe={probe}",
                    f"lookup.scan={scan}",
                    f"lookup.sets={sets}",
                    f"lookup.spread={min(banks, ways)}",
                ]
                made.append(
                    (
                        (application.name, banks, ways, name, order, scan, per),
                        {**source, "set": settings},
                    )
                )
        return made

    def _drives(self) -> list[dict[str, Any]]:
        stack = self.experiment["stack"]
        application = self.applications[-1]
        options = self._options(application)
        return [
            {
                "drive": stack["drive"],
                "label": label,
                "set": [f"map.store={label.split(',')[0]}", *settings],
                "limit": self.limit,
                **stack["options"],
                **options,
            }
            for label, settings in stack["stores"]
        ]

    @property
    def labels(self) -> list[str]:
        """A label for each step that is shown."""
        return ["engine", "sweep", "drive"] if self.sweep else ["engine", "drive"]

    def carry_out(
        self,
        *,
        jobs: int | None = None,
        progress: Progress | None = None,
        kept: Kept | None = None,
    ) -> Lpmt:
        """Carry out all steps; arguments as for :func:`flashatlas.reproduce.runs.carried_out`.

        A store keeps each step as a study of its own: the runs of a later step are not known until
        the earlier steps have results.
        """

        def studied(step: str, asked: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
            """Return records of the lookup engine by name."""
            if not asked:
                return {}
            shown = self.labels.index("sweep" if step == "alone" else step)

            def told(n: int) -> None:
                if progress:
                    progress(shown, "study", n, n / len(asked))

            found = looked_up(asked, kept=kept and kept.step(step), jobs=jobs, told=told)
            return dict(zip(asked, found, strict=True))

        studies = studied("engine", self.studies())
        files = {a.name: studies[f"trace/{a.name}/single"]["entries"] for a in self.applications}
        asked = self.points(files)
        sweep = {" ".join(map(str, where)): (where, own) for where, own in asked}
        assert len(sweep) == len(asked), "two points of the sweep have one name"
        swept = studied("sweep", {name: own for name, (_, own) in sweep.items()})
        points = [Point(*where, own, swept[name]) for name, (where, own) in sweep.items()]
        fastest = {
            f"alone/{p.application}/{p.name}/{p.bytes}": p
            for a in self.applications
            if points
            for p in chosen(points, a.name).values()
        }
        alone = {
            name: {**p.arguments, "set": [*p.arguments["set"], "lookup.look_ahead=1"]}
            for name, p in fastest.items()
        }
        studies |= studied("alone", alone)
        last = len(self.labels) - 1
        results = carried_out(
            self._drives(),
            kept=kept and kept.step("drive"),
            jobs=jobs,
            progress=progress and (lambda _, *how_far: progress(last, *how_far)),
        )
        characters = {
            a.name: character(self._source(a)["trace"]) for a in self.workloads if a.recorded
        }
        return Lpmt(
            self.experiment, self.applications, self.whole, studies, points, results, characters
        )


def plan(
    traces: str | os.PathLike[str] | None = None,
    *,
    stand_ins: bool = False,
    sweep: bool = True,
    limit: int | None = None,
    whole: str | os.PathLike[str] | None = None,
) -> Plan:
    """Return the plan; arguments as for :func:`flashatlas.reproduce.carry_out`."""
    experiment = load(PAPER)
    folder = None if stand_ins else traces_folder(traces)
    return Plan(
        experiment,
        applications(experiment["application"], folder),
        whole_traces(whole, experiment["whole"]) if whole else [],
        sweep,
        limit,
    )
