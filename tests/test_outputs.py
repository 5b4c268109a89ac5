"""Outputs are tried before the run, and written whole or not at all; no number is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import flashatlas
import pytest
from flashatlas import InputError
from flashatlas.files import must_be_writable
from flashatlas.results.result import Result, save_one
from flashatlas.results.runs import save_all

WORKLOAD = ["-w", "uniform:requests=2000,size=2KiB", "--quiet"]
LONG = ["-w", "uniform:requests=1e6,size=2KiB", "--quiet"]
"""A run of seconds: bad outputs are refused before it."""


@pytest.mark.parametrize(
    "outputs",
    [
        ["--out", "/proc/results"],
        ["--out", "file/results"],
        ["--json", "/proc/record.json"],
        ["--json", "folder"],
    ],
)
def test_outputs_are_tried_before_the_run(cli: Any, tmp_path: Path, outputs: list[str]) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for command in ("run", "compare"):
        done = cli(command, *LONG, *outputs)
        assert done.returncode == 2
        assert "cannot write" in done.stderr
        assert outputs[1].split("/")[-1] in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_what_is_tried_leaves_nothing(tmp_path: Path) -> None:
    must_be_writable(tmp_path / "a" / "b")
    assert not any(tmp_path.iterdir())


def test_results_are_replaced_with_force_alone(cli: Any, tmp_path: Path) -> None:
    assert cli("run", *WORKLOAD, "--out", "r").returncode == 0
    before = (tmp_path / "r" / "run.json").read_bytes()
    for command in ("run", "compare"):
        refused = cli(command, *LONG, "--out", "r")
        assert refused.returncode == 2
        assert "--force" in refused.stderr
    assert (tmp_path / "r" / "run.json").read_bytes() == before
    done = cli("run", *WORKLOAD, "--seed", "2", "--out", "r", "--force")
    assert done.returncode == 0
    assert Result.load(tmp_path / "r").record["seed"] == 2


def test_numbers_are_printed_where_they_cannot_be_written(tmp_path: Path) -> None:
    """Files are limited to 4 KiB, enough for the trial but not for a record."""
    flashatlas = f"{sys.executable} -m flashatlas run {' '.join(WORKLOAD)}"
    command = f"ulimit -f 4; {flashatlas} --out results"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "write amplification" in done.stdout
    assert "cannot write" in done.stderr
    assert not any(tmp_path.iterdir()), "no half-written file is left"


@pytest.mark.parametrize("several", [False, True])
def test_what_cannot_be_written_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, several: bool
) -> None:
    first, second = (
        flashatlas.run("tiny", workload="uniform:requests=500,size=2KiB", seed=n) for n in (1, 2)
    )
    save_all([first, first], tmp_path) if several else save_one(first, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    class Unwritable(Result):
        def files(self, folder: Any) -> dict[str, bytes]:
            return {**super().files(folder), "x" * 300: b""}  # no file system takes the name

    bad = Unwritable(second.record, tables=second.tables)
    with pytest.raises(InputError, match="cannot write"):
        save_all([second, bad], tmp_path) if several else save_one(bad, tmp_path)
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


WORN = {"nand.endurance": 20}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"map.store": "dftl"},
        {"ftl.scheme": "fast"},
        {"ftl.scheme": "block"},
        {"cache.mode": "write-through"},
    ],
)
def test_a_drive_that_wears_out_has_a_record(settings: dict[str, Any]) -> None:
    """Every page is checked at the end: all acknowledged data is there."""
    result = flashatlas.run(
        "tiny",
        set=WORN | settings,
        workload="uniform:requests=2000000,size=4KiB,read=0.2",
        precondition="fill",
        depth=4,
    )
    assert result.worn_out is not None
    assert result.worn_out["request"] == result.record["trace"]["requests"] + 1
    assert result.worn_out["retired_blocks"] == result.record["wear"]["retired_blocks"] > 0
    assert result.violations == 0
    assert result.record["conservation"]["completed"] == result.record["trace"]["requests"]
    # no block may be erased more often than its endurance
    assert result.record["wear"]["max"] <= WORN["nand.endurance"]
    assert [n["code"] for n in result.record["approximations"]].count("worn-out") == 1


def test_the_command_line_says_worn_out(cli: Any, tmp_path: Path) -> None:
    done = cli(
        *("run", "-d", "tiny", "-s", "nand.endurance=20", "--precondition", "fill", "--out", "r"),
        *("-w", "uniform:requests=2e6,size=2KiB", "--quiet"),
    )
    assert done.returncode == 3
    assert done.stdout.startswith("the drive is worn out")
    assert "no space" not in done.stdout + done.stderr
    assert Result.load(tmp_path / "r").worn_out
    warming = cli(
        *("run", "-d", "tiny", "-s", "nand.endurance=20", "--warmup", "1000000"),
        *("-w", "uniform:requests=2e6,size=2KiB", "--quiet"),
    )
    assert warming.returncode == 3
    assert "worn out" in warming.stderr


def test_names_are_printed_as_they_are(cli: Any, tmp_path: Path) -> None:
    """Names are not read as markup or as codes of pictures."""
    name = "a:smile:b[red].csv"
    (tmp_path / name).write_text("0,host,0,Write,0,4096,0\n1000,host,0,Write,4096,4096,0\n")
    for command in (("trace", "info", name), ("run", "-d", "tlc-small", "-t", name, "-q")):
        done = cli(*command)
        assert name in done.stdout + done.stderr
        assert "\N{SMILING FACE WITH OPEN MOUTH AND SMILING EYES}" not in done.stdout + done.stderr
    assert f"{name}.toml: No such file" in cli("run", "-d", f"{name}.toml").stderr
    done = cli("run", "-d", "tlc-small", "-t", name, "-q", "--json", "/proc/[red]x:smile:")
    assert "/proc/[red]x:smile:: cannot write" in done.stderr


def test_a_worn_out_drive_is_run_again(cli: Any) -> None:
    worn = ("run", "-d", "tiny", "-s", "nand.endurance=20", "-w", "uniform:requests=2e6,size=2KiB")
    assert cli(*worn, "-q", "--out", "r").returncode == 3
    again = cli("rerun", "r", "--check", "-q")
    assert again.returncode == 0, "it wears out at the same request"
    assert "the same results" in again.stdout
