"""Random drives for ``flashatlas calibrate``, whose parameters are hidden behind fio's output.

Run as a program, this file calibrates drives and prints the table of the how-to. The first argument
is the number of the first drive, the second one the number of drives.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flashatlas
from flashatlas.calibration.calibrate import Calibration, calibrate
from flashatlas.calibration.measured import measurements
from flashatlas.calibration.space import number_of, parameters
from flashatlas.fio_json import to_fio_json

BASE = "tlc-small"
COUNT = 10
"""Number of drives."""

SETTINGS = ["timing.t_read_upper=0", "drive.blocks=40", "drive.over_provisioning=0.2"]
"""Settings of all drives, known to the calibration."""

RANGES = {
    "timing.t_read": (20, 200, "us"),
    "timing.t_program": (200, 2000, "us"),
    "timing.t_erase": (1000, 10000, "us"),
    "timing.channel_rate": (200, 2400, "mb"),
    "host.command_time": (1, 20, "us"),
    "host.link_rate": (500, 8000, "mb"),
    "cache.bytes": (512, 16384, "kib"),
}
"""Ends of the ranges in which values are hidden, and which the calibration gets."""

WAYS = (1, 2, 4)

READS = """\
[global]
ioengine=libaio
direct=1
filename=/dev/sdx
bs=4k
[one]
rw=randread
iodepth=1
number_ios=400
[many]
stonewall
rw=randread
iodepth=32
number_ios=6000
[long]
stonewall
rw=read
bs=128k
iodepth=8
number_ios=400
"""

WRITES = """\
[global]
ioengine=libaio
direct=1
filename=/dev/sdx
[one]
rw=write
bs=4k
iodepth=1
number_ios=300
[long]
stonewall
rw=write
bs=128k
iodepth=16
number_ios=800
"""

MIXED = """\
[mixed]
ioengine=libaio
direct=1
filename=/dev/sdx
rw=randrw
rwmixread=60
bs=4k
iodepth=16
number_ios=16000
"""

JOBS = {"reads": (READS, "fill"), "writes": (WRITES, "fill"), "mixed": (MIXED, "steady")}
"""Job files, each with the state of the drive before it."""


@dataclass(frozen=True)
class Row:
    """A parameter that was calibrated, beside its hidden value."""

    key: str
    error: float | None
    """Deviation from the hidden value; ``None`` if the range has no end on one side."""
    is_limited: bool
    """``True`` if the range excludes values."""
    is_right: bool
    """``True`` if the hidden value is in the range."""


@dataclass
class Outcome:
    """A calibration beside the hidden values."""

    hidden: dict[str, Any]
    found: Calibration

    def rows(self) -> list[Row]:
        """Return a row for each parameter."""
        rows = []
        for one in self.found.found:
            truth, at = number_of(self.hidden[one.parameter.key]), one.range
            assert at is not None, self.found.cut
            values = [number_of(value) for value in one.parameter.values]
            low, high = values[int(at.low)], values[min(int(at.high) + 1, len(values) - 1)]
            low = 0.0 if at.is_open_below else low
            high = float("inf") if at.is_open_above else high
            inside = truth in [values[n] for n in at.values] if at.values else low <= truth <= high
            error = number_of(one.value) / truth - 1 if at.is_told else None
            rows.append(Row(one.parameter.key, error, at.is_limited, inside))
        return rows


def hidden(seed: int, count: int = 5) -> dict[str, Any]:
    """Return the hidden values of a random drive: some fine parameters, and for some the ways."""
    draw = random.Random(f"calibrated drive {seed}")
    keys = draw.sample(list(RANGES), count)
    values: dict[str, Any] = {}
    for key in keys:
        low, high, unit = RANGES[key]
        # away from the ends of the range
        value = round(low * (high / low) ** draw.uniform(0.1, 0.9))
        values[key] = f"{value}us" if unit == "us" else value * {"mb": 10**6, "kib": 1024}[unit]
    if draw.random() < 0.5:
        values["drive.ways"] = draw.choice(WAYS)
    return values


def varied(values: dict[str, Any]) -> list[str]:
    """Return the parameters that the calibration has to find, with their ranges."""
    found = []
    for key in values:
        if key == "drive.ways":
            found.append(f"{key}={','.join(map(str, WAYS))}")
        else:
            low, high, unit = RANGES[key]
            found.append(f"{key}={low}{unit}..{high}{unit}")
    return found


def measure(folder: Path, values: dict[str, Any], names: list[str]) -> list[str]:
    """Write job files and the output of fio about a drive with hidden values."""
    given = []
    for name in names:
        text, precondition = JOBS[name]
        job, output = folder / f"{name}.fio", folder / f"{name}.json"
        job.write_text(text)
        result = flashatlas.run(
            BASE, set=SETTINGS + [f"{key}={value}" for key, value in values.items()],
            job=job, precondition=precondition, seed=4711,
        )  # fmt: skip
        output.write_text(json.dumps(to_fio_json(result.record, result.jobs)))
        given.append(f"{job}={output}")
    return given


def calibrated(
    folder: Path, seed: int, *, names: list[str], count: int = 5, trials: int = 400
) -> Outcome:
    """Hide a drive behind its measurements, and calibrate another one to them."""
    values = hidden(seed, count)
    given = measure(folder, values, names)
    begin = [f"{folder / name}.fio={JOBS[name][1]}" for name in names]
    found = calibrate(
        measurements(given, begin), parameters(varied(values)), drive=BASE, settings=SETTINGS,
        count=trials, store=folder / "store",
    )  # fmt: skip
    return Outcome(values, found)


def table(first: int = 0, count: int = COUNT) -> str:
    """Return a Markdown table with a row for each drive."""
    lines = [
        "| Drive | deviation | told | error, mean and largest | one limit | nothing | right |",
        "|---|---|---|---|---|---|---|",
    ]
    every: list[Row] = []
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            made = calibrated(Path(folder), seed, names=list(JOBS))
        rows = made.rows()
        every += rows
        lines.append(_line(str(seed), f"{made.found.deviation:.1%}", rows))
        print(lines[-1], made.found.trials, made.found.cut, file=sys.stderr, flush=True)
        for one, row in zip(made.found.found, rows, strict=True):
            truth = one.parameter.word(one.parameter.nearest(made.hidden[row.key]))
            text = f"{truth}, found {one.parameter.word(one.at)} ({one.range_text()})"
            print(f"    {row.key}: {text}", "" if row.is_right else "WRONG", file=sys.stderr)
    return "\n".join([*lines, _line("all", "", every)])


def _line(name: str, deviation: str, rows: list[Row]) -> str:
    told = [row for row in rows if row.error is not None]
    limited = [row for row in rows if row.error is None and row.is_limited]
    errors = [abs(row.error or 0.0) for row in told]
    worst = max(told, key=lambda row: abs(row.error or 0.0), default=None)
    said = "–" if worst is None else f"{sum(errors) / len(told):.1%}, {worst.error:+.1%}"
    said += f" (`{worst.key}`)" if worst else ""
    right = sum(row.is_right for row in [*told, *limited])
    counts = f"{len(limited)} | {len(rows) - len(told) - len(limited)}"
    return (
        f"| {name} | {deviation} | {len(told)} of {len(rows)} | {said} | {counts} "
        f"| {right} of {len(told) + len(limited)} |"
    )


if __name__ == "__main__":
    print(table(*map(int, sys.argv[1:])))
