"""The work that an instrumented build does for profile-guided optimisation.

``python packaging/train.py FOLDER`` runs the package in FOLDER, which ``packaging/profile.sh`` has
built with ``-Cprofile-generate``. It runs every part of the registries for a short time, because
code that never runs is optimised for size instead of speed. Drives that write, collect and read run
for a longer time.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import flashatlas
from fingerprints import examples

EIGHT_DIES = [
    "drive.channels=8",
    "drive.ways=1",
    "drive.planes=2",
    "drive.frame_planes=1",
    "drive.page_bytes=4KiB",
    "drive.pages=256",
    "drive.blocks=64",
    "drive.over_provisioning=0.1455",
    "map.unit=4KiB",
]
"""A drive with a GiB of pages, in which a frame is one page; presets have larger frames."""

LOADS = (
    "uniform:requests=300000,size=4KiB",
    "uniform:requests=300000,size=4KiB,read=0.7",
    "uniform:requests=600000,size=4KiB,read=1.0",
    "mixed:requests=60000,read=0.5,sizes=4KiB/16KiB/128KiB,flush_every=500,trim=0.01",
)
DRIVES = (("tlc-nvme-1tb", EIGHT_DIES), ("tlc-small", []))
FORMATS = ("csv", "msr", "spc", "mqsim", "iolog", "blkreplay")

COMMANDS = (
    "crash --one-in 400 --quiet",
    "check --swarm 200 --quiet",
    "lookup --files 40000 --policy dynamic --quiet",
    "lookup --sets 4000 --policy set-mod --quiet",
    "compare --drive tlc-small --job examples/mixed.fio --out {out}/report",
    "trace fetch postgres --to {out}",
)


def command(*words: str) -> None:
    """Run a command in a separate process."""
    subprocess.run(
        [sys.executable, "-m", "flashatlas", *words], check=True, stdout=subprocess.DEVNULL
    )


def main(folder: Path) -> None:
    """Run all parts, loads and commands."""
    built = Path(flashatlas.__file__).resolve()
    if not built.is_relative_to(folder.resolve()):
        sys.exit(f"flashatlas is {built}, not the build in {folder}")
    for _, run in examples():
        flashatlas.run(**run)
    for drive, settings in DRIVES:
        for load in LOADS:
            flashatlas.run(drive, workload=load, set=settings, precondition="steady", depth=16)
    with tempfile.TemporaryDirectory() as out:
        for words in COMMANDS:
            command(*words.format(out=out).split())
        trace = f"{out}/postgres.fatr"
        for name in FORMATS:
            other = f"{out}/other.{name}"
            command("trace", "convert", trace, other, "--to-format", name, "--lossy", "--quiet")
            flashatlas.run("tlc-small", trace=other, format=name, fit="wrap", limit=50_000)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
