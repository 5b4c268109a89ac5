"""Records of an earlier version, whose notes are sentences alone, are treated as before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from flashatlas.results.result import Result, digest_of, results_of
from flashatlas.results.runs import load_all

RECORDS = Path(__file__).parent / "data/records"
"""Records written by commit 7c717f3: of an untimed, unsteady run, of a run played until it was
steady, of two runs that share a preconditioned drive, and of a run whose requests come faster than
the drive serves them."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDS, tmp_path / "records"))


def test_a_run_is_carried_out_again_and_is_the_same(cli: Any, old: Path) -> None:
    """Only the untimed run is repeated, because corrections of the timing may change times."""
    assert "the same results" in cli("rerun", f"{old}/untimed", "--check").stdout
    record = json.loads((old / "untimed/run.json").read_text())
    record["host"]["writes"] += 1
    (old / "untimed/run.json").write_text(json.dumps(record))
    found = cli("rerun", f"{old}/untimed", "--check")
    assert found.returncode == 1 and "host.writes: 61 before, 60 now" in found.stdout


def test_sentences_are_no_part_of_results() -> None:
    for result in load_all([RECORDS / name for name in ("untimed", "until", "compare", "open")]):
        reworded = json.loads(json.dumps(result.record))
        reworded["approximations"] = ["said in other words"]
        reworded["steadiness"]["reasons"] = ["other words"] * 3
        assert results_of(reworded) == results_of(result.record)
        assert digest_of(reworded, result.tables, {"warnings": ["x"]}) == digest_of(
            result.record, result.tables, {"warnings": ["other words"]}
        )
        reworded["steadiness"]["rounds"] = {}
        assert results_of(reworded) != results_of(result.record), "numbers are"


def test_reports_and_differences_have_what_they_had(cli: Any, old: Path, tmp_path: Path) -> None:
    cli("report", f"{old}/open", "--out", "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "requests arrive faster than the drive completes them" in page
    assert "no random number was drawn" in page
    apart = cli("diff", f"{old}/compare/01", f"{old}/compare/02")
    assert (
        apart.returncode == 2
        and "ftl.victim is greedy in the first runs and fifo in the second" in apart.stderr
    )
    shutil.copytree(old / "compare/01", old / "same")
    same = cli("diff", f"{old}/compare/01", f"{old}/same")
    assert same.returncode == 0 and same.stdout == "0 of 13 numbers moved\n"


def test_the_fixtures_are_old() -> None:
    result = json.loads((RECORDS / "open/run.json").read_text())
    assert all(isinstance(note, str) for note in result["approximations"])
    assert Result.load(RECORDS / "open").violations == 0
