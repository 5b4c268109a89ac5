"""Quantities that a drive is calibrated to: numbers of fio's JSON output, measured or simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from flashatlas._core import InputError
from flashatlas.untrusted import json_file, must_be

DIRECTIONS = ("read", "write", "trim")

PERCENTILES = {"50.000000": "p50 latency", "99.000000": "p99 latency"}
"""Names of the percentiles that are compared, by their key in fio's output."""


class _Percentiles(TypedDict, total=False):
    percentile: dict[str, float]


class _Times(_Percentiles):
    mean: float


class _Direction(TypedDict):
    total_ios: int
    bw_bytes: float
    iops: float
    clat_ns: _Times


class _Sync(TypedDict):
    total_ios: int
    lat_ns: _Times


class _Optional(TypedDict, total=False):
    error: int
    trim: _Direction
    sync: _Sync


class _Job(_Optional):
    jobname: str
    read: _Direction
    write: _Direction


class _Output(TypedDict):
    jobs: list[_Job]


@dataclass(frozen=True)
class Quantity:
    """A positive number that is measured on the real drive and on each simulated one."""

    group: str
    """Job and direction. The numbers of a group are one piece of evidence."""
    what: str
    unit: str
    value: float

    @property
    def name(self) -> str:
        """The name of the quantity, the same for both drives."""
        return f"{self.group}: {self.what}"


def read_output(path: Path) -> Mapping[str, Any]:
    """Return fio's JSON output from a file.

    Raises:
        InputError: The file cannot be read, is not the output of fio 3 or later with
            ``--output-format=json`` or ``json+``, or has a job that failed.

    """
    what = "the output of fio with --output-format=json (fio 3 or later)"
    try:
        content: Mapping[str, Any] = json_file(path, what)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; give {what}") from error
    if not isinstance(content, dict) or "jobs" not in content:
        raise InputError(f"{path}: there is no list `jobs`; the content must be {what}")
    must_be(content, _Output, path)
    for number, job in enumerate(content["jobs"]):
        if job.get("error"):
            raise InputError(
                f"{path}: jobs.{number}.error is {job['error']}: the job `{job['jobname']}` "
                "failed, so its numbers measure nothing; run it again"
            )
    return content


def job_names(output: Mapping[str, Any]) -> list[str]:
    """Return the names of the jobs in fio's output, in their order."""
    return [job["jobname"] for job in output["jobs"]]


def of_output(output: Mapping[str, Any], label: str) -> list[Quantity]:
    """Return the quantities of fio's output: those above 0, by job and direction.

    Args:
        output: Checked output of fio, or the same of a simulated run.
        label: The name of the job file.

    """
    names = job_names(output)
    found: list[Quantity] = []
    for number, job in enumerate(output["jobs"], 1):
        twice = names.count(job["jobname"]) > 1
        own = f"{label}, {job['jobname']}" + (f" ({number})" if twice else "")
        for direction in DIRECTIONS:
            if (part := job.get(direction)) and part["total_ios"]:
                group = f"{own}, {direction}"
                found.append(Quantity(group, "bandwidth", "bytes/s", part["bw_bytes"]))
                found.append(Quantity(group, "requests a second", "1/s", part["iops"]))
                found += _latencies(group, part["clat_ns"])
        if (sync := job.get("sync")) and sync["total_ios"]:
            found += _latencies(f"{own}, fsync", sync["lat_ns"])
    return [one for one in found if one.value > 0]


def _latencies(group: str, times: Mapping[str, Any]) -> Sequence[Quantity]:
    known = times.get("percentile", {})
    return [
        Quantity(group, "mean latency", "ns", times["mean"]),
        *(
            Quantity(group, what, "ns", known[key])
            for key, what in PERCENTILES.items()
            if key in known
        ),
    ]
