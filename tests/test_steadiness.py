"""The marks of unsteady runs in tables, records and reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import flashatlas
import pytest
from flashatlas.results import steadiness

SHORT = {"label": "short", "precondition": "fill", "workload": "uniform:requests=60,size=2KiB"}
LONG = {
    "label": "long",
    "precondition": "steady",
    "workload": "uniform:requests=60000,size=2KiB",
    "warmup": 10000,
}


def test_a_run_that_lives_on_free_blocks_is_named_with_its_reason() -> None:
    results = flashatlas.compare([SHORT, LONG], drive="tiny", depth=1, mode="closed")
    ((result, reasons),) = steadiness.unsteady(results)
    assert result.label == "short"
    assert any("pages were programmed and 0 erased" in reason for reason in reasons)
    assert steadiness.compares_unlike(results), "one erases, the other does not"
    assert not steadiness.compares_unlike(results[1:])
    assert not steadiness.unsteady(results[1:])
    assert [result.steady for result in results] == [False, True]


def test_terminal_and_report_say_it(cli: Any, tmp_path: Path) -> None:
    common = ["run", "--drive", "tiny", "--mode", "closed", "--depth", "1", "--quiet"]
    workload = ["--workload", "uniform:requests=60,size=2KiB", "--precondition", "fill"]
    said = cli(*[*common, *workload, "--out", str(tmp_path)]).stdout
    assert "not steady" in said
    assert "pages were programmed and 0 erased" in said
    assert "To make it steady: " in said and "--precondition steady" in said
    page = (tmp_path / "report.html").read_text()
    assert "The run was not steady" in page
    workload = ["--workload", LONG["workload"], "--precondition", "steady", "--warmup", "10000"]
    said = cli(*[*common, *workload, "--out", str(tmp_path), "--force"]).stdout
    assert "not steady" not in said
    assert "not steady" not in (tmp_path / "report.html").read_text()


def test_jobs_in_stages_are_not_judged(tmp_path: Path) -> None:
    job = tmp_path / "stages.fio"
    job.write_text(
        "[global]\nsize=64k\nbs=2k\n[first]\nrw=write\n[second]\nstonewall\nrw=randread\n"
    )
    assert "steady" not in flashatlas.run(drive="tiny", job=job).record
    job.write_text("[only]\nsize=64k\nbs=2k\nrw=write\n")
    assert "steady" in flashatlas.run(drive="tiny", job=job).record


LANES = 4
PLANES = 2
PAGES = 32
MARKED = {
    "drive.channels": 2,
    "drive.ways": 1,
    "drive.blocks": 256,
    "drive.pages": PAGES,
    "drive.logical_pages": 90_000,  # of 131,072 units
}


@pytest.mark.parametrize("low_water", [2, 8, 40])
@pytest.mark.parametrize("pace", ["burst", "paced"])
@pytest.mark.parametrize("store", ["dram", "dftl"])
def test_the_steady_state_is_above_the_mark_of_collection(store, pace, low_water) -> None:
    """A lane below its mark would empty blocks at the first writes, until it reaches the mark.

    It would erase more than it programs. Above the mark, a lane is ahead by at most one block.
    """
    settings = {"map.store": store, "ftl.gc_pace": pace, "ftl.low_water": low_water}
    nand = flashatlas.run(
        "tlc-small",
        workload="uniform:requests=4000,size=4KiB,read=0",
        set=MARKED | settings,
        precondition="steady",
        depth=1,
    ).record["nand"]
    erased = sum(nand["erases"].values()) / PLANES
    programmed = sum(nand["programs"].values()) / (PLANES * PAGES)
    assert erased >= 20, "collection is at work"
    assert erased - programmed <= LANES
