"""Runs and checkpoints of drives with parity over the dies of a frame.

A frame of these drives lies on four dies, so three of four programs are data, and a rebuild reads
three pages. Hand-worked times are in `crates/device/tests/suite/parity.rs`.
"""

from __future__ import annotations

import random
from pathlib import Path

import flashatlas
import pytest
from naive.traces import Request, written

PARITY = ["ecc.parity=die", "drive.frame_channels=2", "drive.frame_ways=2"]
LOSSY = "errors.unreadable=5000"
LINES = ["drive.cell=mlc", "drive.program_unit=word-line", "drive.spare_bytes=128"]
RUNS = {
    "pages": [LOSSY],
    "lines": [LOSSY, *LINES, "cache.bytes=64KiB"],
    "single": [LOSSY, "ftl.gc_mode=single"],
    "fast": [LOSSY, "ftl.scheme=fast", "map.unit=6KiB"],
    "block": ["errors.unreadable=1000", "ftl.scheme=block", "map.unit=6KiB"],
    "dftl": [LOSSY, "map.store=dftl", "map.page_bytes=512"],
}


@pytest.mark.parametrize("name", RUNS)
def test_counts_add_up(name: str) -> None:
    run = flashatlas.run(
        drive="tiny",
        set=[*PARITY, *RUNS[name]],
        workload="mixed:requests=3000,read=0.5,sizes=2KiB/4KiB",
        precondition="fill",
        depth=4,
    )
    record = run.record
    faults, programs = record["faults"], dict(record["nand"]["programs"])
    assert faults["uncorrectable"] == faults["rebuilt"] + faults["lost"]
    assert faults["rebuilt"] > 5
    assert faults["rebuild_reads"] == record["nand"]["reads"]["parity"]
    # one page of a die fails at a time
    assert faults["rebuild_reads"] == 3 * faults["rebuilt"]
    parity = programs.pop("parity")
    assert 3 * parity == sum(programs.values())
    assert record["waf_parts"]["parity"] == pytest.approx(record["waf"] / 4)
    assert run.violations == 0


def test_a_drive_without_parity_has_no_counts_of_it() -> None:
    record = flashatlas.run(drive="tiny", set=[LOSSY], workload="uniform:requests=100").record
    assert "rebuilt" not in record["faults"] and "parity" not in record["nand"]["programs"]


def test_a_checkpoint_keeps_the_parts_that_are_lost(tmp_path: Path) -> None:
    """A write of a third of a unit reads the rest, which loses parts of frames now and then."""
    draw, paths = random.Random(1), [tmp_path / "first.ckpt", tmp_path / "second.ckpt"]
    pages = [*range(200), *(draw.randrange(200) for _ in range(400))]
    trace = written(tmp_path / "writes.csv", [Request(0, "write", page) for page in pages])
    own = ["errors.unreadable=5000", "ftl.gc_mode=single", "map.unit=6KiB"]
    for path, source in zip(paths, [f"trace:{trace}", f"checkpoint:{paths[0]}"], strict=True):
        flashatlas.save_checkpoint(path, drive="tiny", set=[*PARITY, *own], precondition=source)
    first, second = (path.read_bytes().partition(b"LPRT") for path in paths)
    assert first[1] == second[1] == b"LPRT"
    assert first[2] == second[2], "the section and the end of the file"
