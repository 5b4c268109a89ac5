"""Published numbers of drives beside those of runs, each with a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from flashatlas.calibration import logs
from flashatlas.results.result import Result

GB = 1e9

TUNED, PREDICTED, HELD_BACK = "tuned", "predicted", "held back"
"""Uses of a published number: a value of the preset was chosen by it, or not, or nobody had looked
at it when the preset was made."""

CURVE, FILL = "write-curve", "whole-fill"
"""Tests of sequential writes: beyond the end of the cache, and over the whole drive."""

NOT_RUN = "not run"
"""In place of a verdict, if the curve was cut off before the place of the published number."""


@dataclass(frozen=True)
class Drive:
    """A preset, and what is published of the product that it is made after."""

    preset: str
    bytes: int
    """The capacity of the preset."""
    slc: bool
    """``True`` if the preset has an SLC cache."""
    queue_depth: int
    """The largest number of commands that the preset accepts at the same time."""
    published: Mapping[str, Any] = field(repr=False)
    """The file of ``devices/published``."""


@dataclass(frozen=True)
class Measured:
    """A test of a preset with one depth, and its run."""

    preset: str
    test: Mapping[str, Any] = field(repr=False)
    depth: int
    result: Result = field(repr=False)

    @property
    def is_curve(self) -> bool:
        """``True`` if the run is a write curve."""
        return self.test["what"] == CURVE

    @property
    def is_fill(self) -> bool:
        """``True`` if the run writes a whole drive."""
        return self.test["what"] == FILL

    @cached_property
    def curve(self) -> logs.Curve:
        """The seconds over the bytes written."""
        curve = logs.simulated("bandwidth", "write", self.result.to_arrow("series"))
        assert curve is not None
        return curve

    @cached_property
    def breaks(self) -> list[float]:
        """The bytes after which the level of the curve changes."""
        return logs.breaks("bandwidth", self.curve)

    def rate(self, first: float, last: float) -> float:
        """Return the mean MB/s of the curve between two places in bytes."""
        return 1 / self.curve.mean(first, last) / 1e6

    def number(self, unit: str) -> float:
        """Return the result of the test in a unit of published numbers."""
        if unit == "us":
            (latency,) = self.result.latency.values()
            return latency["mean"] / 1e3
        if unit == "MB/s":
            return self.result.record["bandwidth_bytes_per_s"] / 1e6
        assert unit == "IOPS" and self.result.iops is not None
        return self.result.iops

    def to_json(self) -> dict[str, Any]:
        """Return the numbers of the test."""
        return {
            "preset": self.preset,
            "test": self.test["what"],
            "state": self.test["state"],
            "depth": self.depth,
            "workload": self.result.options["workload"],
            "iops": self.result.iops,
            "mb_per_s": self.number("MB/s"),
            "latency_ns": self.result.latency,
            "waf": self.result.waf,
            "steady": self.result.steady,
            "breaks": self.breaks if self.is_curve or self.is_fill else None,
            "violations": self.result.violations,
            "config_hash": self.result.record["config_hash"],
        }


@dataclass(frozen=True)
class Row:
    """A published number beside the simulated number."""

    preset: str
    test: str
    published: float
    ours: float | None
    unit: str
    used: str
    """How the number was used: ``tuned``, ``predicted``, ``held back``, or ``another size``."""
    verdict: str
    source: str

    @property
    def ratio(self) -> float | None:
        """Ours over the published number."""
        return None if self.ours is None else self.ours / self.published

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {**vars(self), "ratio": self.ratio}


def short(source: str) -> str:
    """Return the first words of a source, which stands whole in ``devices/published``."""
    for end in (",", " (", ":", " on the "):
        source = source.partition(end)[0]
    return source


def verdict(experiment: Mapping[str, Any], used: str, published: float, ours: float | None) -> str:
    """Return the verdict on a published number, in the words of ``docs/CLAIMS.md``."""
    if used == "another size":
        return "not reproducible"
    if ours is None:  # the curve has no such level
        return "contradicted"
    if abs(ours / published - 1) <= experiment["within"]:
        return "by construction" if used == TUNED else "reproduced"
    apart = max(ours / published, published / ours)
    return "direction only" if apart <= experiment["order"] else "contradicted"


def compared(
    experiment: Mapping[str, Any], drives: Sequence[Drive], tested: Sequence[Measured]
) -> list[Row]:
    """Return every published number of the drives beside the simulated number."""
    rows = []
    for drive in drives:
        own = [one for one in tested if one.preset == drive.preset]
        curve = next((one for one in own if one.is_curve), None)
        cut = curve is not None and curve.curve.end < _published_end(drive)
        for number in drive.published["number"]:
            name, ours = _of_number(experiment, drive, number, own, curve)
            rows.append(_row(experiment, drive, name, number, number["value"], ours, cut))
        if curve is not None:
            rows += _of_curve(experiment, drive, curve, cut)
    return rows


def _row(
    experiment: Mapping[str, Any],
    drive: Drive,
    test: str,
    number: Mapping[str, Any],
    value: float,
    ours: float | None,
    cut: bool = False,
) -> Row:
    """Return a row; ``cut`` if the curve ends before the published end of the cache."""
    used = number.get("of", number["used"])
    said = NOT_RUN if cut and ours is None else verdict(experiment, used, value, ours)
    return Row(drive.preset, test, value, ours, number["unit"], used, said, number["source"])


def _of_number(
    experiment: Mapping[str, Any],
    drive: Drive,
    number: Mapping[str, Any],
    own: Sequence[Measured],
    curve: Measured | None,
) -> tuple[str, float | None]:
    """Return the name of the test that a number is compared with, and our number."""
    what, state = number["what"].removesuffix("-latency"), number["state"]
    if what == "fill-rate" or state == "behind-cache":
        assert curve is not None
        if what == "fill-rate":
            fill = next((one for one in own if one.is_fill), None)
            return "mean of a whole fill", _fill_rate(drive, curve, fill)
        return f"{what}, behind the cache", _levels(drive, curve)[2]
    states = experiment["compared"]
    state = states.get(f"{state}-{number['what']}", states[state])
    found = [
        one
        for one in own
        if (one.test["what"], one.test["state"]) == (what, state)
        and one.test.get("size") in (number.get("size"), None)
    ]
    # a test with the size of the number is nearer than one of the usual size
    found.sort(key=lambda one: one.test.get("size") == number.get("size"), reverse=True)
    depth = number.get("depth", experiment["unsaid_depth"])
    nearest = min(found, key=lambda one: (found[0].test != one.test, abs(one.depth - depth)))
    size = f", {number['size']}" if "size" in number else ""
    return f"{number['what']}{size}, {state}, depth {nearest.depth}", nearest.number(number["unit"])


def _published_end(drive: Drive) -> float:
    """Return the published end of the SLC cache in bytes."""
    end: float = drive.published["curve"][0]["until_gb"] * GB
    return end


def _levels(drive: Drive, curve: Measured) -> tuple[float | None, float, float | None]:
    """Return the end of the cache in bytes, and the MB/s before and after it.

    The end is the break that is next to the published one; without any break, the whole curve is
    one level.
    """
    end = logs.nearest_break(_published_end(drive), curve.breaks)
    if end is None:
        return None, curve.rate(0, curve.curve.end), None
    return end, curve.rate(0, end), curve.rate(end, curve.curve.end)


def _fill_rate(drive: Drive, curve: Measured, fill: Measured | None) -> float | None:
    """Return the mean MB/s of a whole fill, continued from the curve if there is no such run."""
    if fill is not None:
        return fill.rate(0, fill.curve.end)
    end, before, after = _levels(drive, curve)
    if end is None or after is None:
        return None
    return drive.bytes / (end / before + (drive.bytes - end) / after)


def _of_curve(experiment: Mapping[str, Any], drive: Drive, curve: Measured, cut: bool) -> list[Row]:
    """Return the end of the cache and the rates before and after it, beside the published ones."""
    first, second = drive.published["curve"][:2]
    end, before, after = _levels(drive, curve)
    rows = [
        ("curve: end of the cache", first, "until_gb", "GB", "used_until", end and end / GB),
        ("curve: in the cache", first, "mb_per_s", "MB/s", "used_rate", before),
        ("curve: behind the cache", second, "mb_per_s", "MB/s", "used_rate", after),
    ]
    made = []
    for name, part, key, unit, used, ours in rows:
        number = {"unit": unit, "used": part[used], "source": part["source"]}
        made.append(_row(experiment, drive, name, number, part[key], ours, cut))
    return made
