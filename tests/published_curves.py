"""Published write curves of consumer drives as bandwidth logs, for ``flashatlas calibrate``.

Run as a program with names of curves, this file calibrates drives to them and prints tables.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from conftest import ROOT
from flashatlas.calibration.calibrate import Calibration, calibrate
from flashatlas.calibration.measured import measurements
from flashatlas.calibration.space import parameters

PRESET = ROOT / "devices/tlc-slc-small.toml"
CAPACITY = 983_040 * 4096
"""Bytes of the preset, to which the curves are cut down."""

WINDOW_MS = 5

JOB = "[fill]\nioengine=libaio\ndirect=1\nfilename=/dev/sdx\nrw=write\nbs=128k\niodepth=32\n"

FLASH = ("timing.t_program_slc=40us..400us", "timing.t_program=400us..2000us")


class Curve(NamedTuple):
    """Levels of a write curve from the first to the last byte of a blank drive."""

    gigabytes: int
    """Capacity of the drive."""
    cache: int
    """Gigabytes after which the speed falls."""
    fast: float
    """GB/s before."""
    slow: float
    """GB/s afterwards."""
    slc: str
    """The kind of SLC cache of the simulated drive."""
    blocks: str
    """Range of its blocks."""


CURVES = {
    # TechPowerUp, Samsung 980 Pro 1 TB: 4 GB/s to 113 GB, then 1.5 GB/s, and rather more at the end
    # (https://techpowerup.com/review/samsung-980-pro-1-tb-ssd/6.html)
    "980-pro-dynamic": Curve(1000, 113, 4.0, 1.5, "dynamic", "10..60"),
    "980-pro-static": Curve(1000, 113, 4.0, 1.5, "static", "10..32"),
    # TechPowerUp, WD Blue SN580 1 TB: 4 GB/s to 341 GB, then 450 MB/s
    # (https://techpowerup.com/review/wd-blue-sn580-1-tb/6.html)
    "sn580-dynamic": Curve(1000, 341, 4.0, 0.45, "dynamic", "50..86"),
}


def log_text(curve: Curve) -> str:
    """Return a curve as fio's bandwidth log, cut down to the capacity of the preset."""
    share = CAPACITY / (curve.gigabytes * 1e9)
    lines, done, now = [], 0.0, 0
    while done < CAPACITY:
        speed = (curve.fast if done < curve.cache * 1e9 * share else curve.slow) * 1e9
        now += WINDOW_MS
        done += speed * WINDOW_MS / 1000
        lines.append(f"{now}, {round(speed / 1024)}, 1, 0, 0")
    return "\n".join(lines) + "\n"


def drive_text(kind: str) -> str:
    """Return the preset, with static blocks beside its own ones if the cache is static."""
    text = PRESET.read_text(encoding="utf-8")
    if kind == "dynamic":
        return text
    lines = []
    for line in text.splitlines():
        key = line.partition(" = ")[0]
        own = {"slc": 'slc = "static"', "slc_dynamic": "slc_static = 27", "blocks": "blocks = 115"}
        lines.append(own.get(key, line))
    return "\n".join(lines) + "\n"


def calibrated(folder: Path, name: str, trials: int = 150) -> Calibration:
    """Calibrate the drive to a published curve."""
    curve = CURVES[name]
    drive, job, log = folder / "drive.toml", folder / "fill.fio", folder / "fill_bw.1.log"
    drive.write_text(drive_text(curve.slc), encoding="utf-8")
    job.write_text(JOB, encoding="utf-8")
    log.write_text(log_text(curve), encoding="utf-8")
    return calibrate(
        measurements([f"{job}={log}"], []),
        parameters([*FLASH, f"ftl.slc_{curve.slc}={curve.blocks}"]),
        drive=str(drive),
        count=trials,
        store=folder / "store",
    )


def table(names: list[str]) -> str:
    """Return tables of the parameters and residuals of calibrations."""
    lines = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            found = calibrated(Path(folder), name)
        lines += [f"{name}: {found.deviation:.1%}, {found.trials} trials {found.cut}"]
        for one in found.found:
            lines.append(
                f"  {one.parameter.key}: {one.parameter.word(one.at)} ({one.range_text()})"
            )
        lines += [f"  {text}" for text in found.sentences()]
        for one in found.residuals:
            lines.append(f"  {one.quantity.group}: {one.ratio - 1:+.1%}")
        lines += [f"  {one}" for one in found.breaks]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(sys.argv[1:] or list(CURVES)))
