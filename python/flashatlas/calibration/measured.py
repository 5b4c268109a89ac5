"""Measurements of a real drive: job files, each with what fio wrote about it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flashatlas._core import InputError
from flashatlas.calibration import logs
from flashatlas.calibration.logs import Curve, Log
from flashatlas.calibration.quantities import Quantity, job_names, of_output, read_output
from flashatlas.fio_json import to_fio_json
from flashatlas.results.result import Result

FORM = "JOB.fio=RESULT"

RESULTS = "fio's JSON output (*.json), or a log that fio wrote (*_bw.*.log, *_lat.*.log, *_clat.*)"


@dataclass
class Measurement:
    """A job file, and what fio measured with it on the real drive."""

    job: Path
    label: str
    precondition: str
    output: Mapping[str, Any] | None = None
    logs: list[tuple[str, Log]] = field(default_factory=list)
    """Logs with the names of their files."""

    def quantities(self) -> list[Quantity]:
        """Return the quantities of the real drive."""
        found = [] if self.output is None else of_output(self.output, self.label)
        for _, log in self.logs:
            for direction, curve in log.curves.items():
                found += self._of_curve(log.kind, direction, curve, curve)
        return found

    def simulated(self, result: Result) -> list[Quantity]:
        """Return the quantities of a run of the job file.

        Raises:
            InputError: fio ran other jobs than the job file has, or a log is not of a single job.

        """
        output = to_fio_json(result.record, result.jobs)
        self._same_jobs(job_names(output), result.jobs["jobs"])
        found = of_output(output, self.label)
        for _, log in self.logs:
            for direction, measured in log.curves.items():
                curve = logs.simulated(log.kind, direction, result.to_arrow("series"))
                if curve is not None:
                    found += self._of_curve(log.kind, direction, curve, measured)
        return found

    def breaks(self, result: Result) -> list[tuple[str, float, float | None]]:
        """Return where the measured levels of bandwidth end, and where the simulated ones do.

        The simulated place is ``None`` if the simulated curve has no break near the measured one.
        """
        found: list[tuple[str, float, float | None]] = []
        for _, log in self.logs:
            if log.kind != "bandwidth":
                continue
            for direction, measured in log.curves.items():
                real = logs.breaks(log.kind, measured)
                curve = logs.simulated(log.kind, direction, result.to_arrow("series"))
                ours = [] if curve is None else logs.breaks(log.kind, curve)
                for number, place in enumerate(real, 1):
                    own = logs.nearest_break(place, ours)
                    name = f"{self.label}, {direction}: level {number} ends"
                    found.append((name, place, own))
        return found

    def _of_curve(self, kind: str, direction: str, curve: Curve, measured: Curve) -> list[Quantity]:
        group = f"{self.label}, {direction} log"
        return logs.quantities(kind, group, curve, logs.breaks(kind, measured), measured.end)

    def _same_jobs(self, ours: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
        if self.output is not None and job_names(self.output) != list(ours):
            raise InputError(
                f"{self.job}: its jobs are {', '.join(ours)}, but fio measured "
                f"{', '.join(job_names(self.output))}: give the job file that fio ran"
            )
        if self.logs and sum(row["jobs"] for row in rows) != 1:
            raise InputError(
                f"{self.logs[0][0]}: a log belongs to a job file with a single job, and "
                f"{self.job} has several: measure each job with a file of its own"
            )


def measurements(given: Sequence[str], preconditions: Sequence[str]) -> list[Measurement]:
    """Return measurements from their texts.

    Args:
        given: ``JOB.fio=RESULT``; a job file may have several results.
        preconditions: ``KIND`` for all job files, or ``JOB.fio=KIND`` for one.

    Raises:
        InputError: A file cannot be read, or a text has another form.

    """
    found: dict[str, Measurement] = {}
    for text in given:
        job, equals, result = text.partition("=")
        if not equals or not job or not result:
            raise InputError(f"--measured `{text}`: write {FORM}: a job file and {RESULTS}")
        if not Path(job).is_file():
            raise InputError(f"--measured `{text}`: there is no job file {job}")
        one = found.get(job)
        if one is None:
            label = Path(job).name
            if any(other.label == label for other in found.values()):
                raise InputError(f"--measured `{text}`: two job files have the name {label}")
            one = found[job] = Measurement(Path(job), label, "none")
        _add(one, Path(result), text)
    if not found:
        raise InputError(f"there is no measurement: give --measured {FORM} with {RESULTS}")
    _begin(found, preconditions)
    return list(found.values())


def _begin(found: Mapping[str, Measurement], preconditions: Sequence[str]) -> None:
    """Set the preconditions of the measurements."""
    own: dict[str, str] = {}
    for text in preconditions:
        job, equals, kind = text.partition("=")
        if equals and job in found:
            key, value = job, kind
        elif equals and job.endswith(".fio"):
            raise InputError(
                f"--precondition `{text}`: {job} is not a job file of --measured (these are: "
                f"{', '.join(found)})"
            )
        else:
            key, value = "", text
        if key in own:
            raise InputError(f"--precondition `{text}`: {key or 'all jobs'} have one already")
        own[key] = value
    for name, one in found.items():
        one.precondition = own.get(name, own.get("", "none"))


def _add(one: Measurement, path: Path, text: str) -> None:
    kind = logs.kind_of(path)
    if kind is not None:
        if any(kind == log.kind for _, log in one.logs):
            raise InputError(f"--measured `{text}`: {one.job} has a {kind} log already")
        one.logs.append((str(path), logs.read_log(path)))
    elif path.suffix == ".json":
        if one.output is not None:
            raise InputError(f"--measured `{text}`: {one.job} has an output of fio already")
        one.output = read_output(path)
    else:
        raise InputError(f"--measured `{text}`: the name of {path} must be one of {RESULTS}")


def ratios(measured: Sequence[Quantity], simulated: Sequence[Quantity]) -> list[float]:
    """Return the logarithm of simulated over measured, for each measured quantity.

    Raises:
        InputError: A quantity is missing in the simulation.

    """
    ours = {one.name: one.value for one in simulated}
    for one in measured:
        if one.name not in ours:
            raise InputError(
                f"{one.name}: fio measured this, and the simulated job has no such number: give "
                "the job file that fio ran"
            )
    return [math.log(ours[one.name] / one.value) for one in measured]
