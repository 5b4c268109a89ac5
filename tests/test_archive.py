"""The artifact of a study has all its files, and its runs give the same numbers again."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT
from flashatlas import parts
from flashatlas.sweep.study import load
from study_fakes import POLICY

FLASHATLAS = Path(sys.executable).parent / "flashatlas"

STUDY = """
title = "Files of every kind"

[run]
drive = "own.toml"
precondition = "fill"

[axes]
ftl.victim = ["greedy", "mine"]
load.variants.trace = { trace = "traces/writes.csv", format = "msr" }
load.variants.again = { trace = "traces/b/writes.csv", format = "msr" }
load.variants.job = { job = 'writes.fio' }
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "there"
    (folder / "traces/b").mkdir(parents=True)
    rows = [f"{i * 1000},h,0,Write,{i * 7919 % 400 * 2048},2048,0\n" for i in range(4000)]
    (folder / "traces/writes.csv").write_text("".join(rows))
    (folder / "traces/b/writes.csv").write_text("".join(rows[1:]))
    (folder / "writes.fio").write_text("[a]\nrw=randwrite\nbs=2k\nsize=512k\nnumber_ios=3000\n")
    shutil.copyfile(ROOT / "devices/tiny.toml", folder / "own.toml")
    (folder / "mine.py").write_text(POLICY.format(factor=1))
    (folder / "s.toml").write_text(STUDY)
    return folder


def swept(cli, folder: Path, *more: str):
    with parts.temporary():
        return cli(
            "sweep", str(folder / "s.toml"), "--store", str(folder / "store"), "--quiet",
            "--plugin", str(folder / "mine.py"), "--archive", str(folder / "out.zip"), *more,
        )  # fmt: skip


def archived(cli, folder: Path, *more: str) -> Path:
    done = swept(cli, folder, *more)
    assert done.returncode == 0, done.stderr
    return folder / "out.zip"


def unpacked(path: Path, folder: Path) -> Path:
    subprocess.run(["unzip", "-q", str(path), "-d", str(folder)], check=True)
    return folder


def repeated(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [folder / "repeat.sh", "1"],
        env={**os.environ, "FLASHATLAS": str(FLASHATLAS)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.long
def test_an_artifact_is_whole_and_gives_the_same_numbers(cli, study, tmp_path):
    (study / "figure.svg").write_text("<svg/>")
    path = archived(cli, study, "--with", str(study / "figure.svg"))
    found = unpacked(path, tmp_path / "elsewhere")
    for file in ("traces/writes.csv", "traces/b/writes.csv", "writes.fio", "own.toml", "mine.py"):
        (study / file).unlink()  # the artifact needs none of these files
    manifest = json.loads((found / "MANIFEST.json").read_text())
    with zipfile.ZipFile(path) as packed:
        assert set(manifest["files"]) == set(packed.namelist()) - {"MANIFEST.json"}
        for name, digest in manifest["files"].items():
            content = hashlib.sha256(packed.read(name)).hexdigest()
            assert digest == f"sha256:{content}", name
    assert sorted(one["name"] for one in manifest["inputs"]) == [
        "inputs/2/writes.csv", "inputs/own.toml", "inputs/writes.csv", "inputs/writes.fio",
    ]  # fmt: skip
    assert len(manifest["runs"]) == 6 and manifest["study"] == "s"
    pinned = (found / "environment/requirements.txt").read_text().splitlines()
    assert pinned[0].startswith("flashatlas==")
    assert any(line.startswith("pyarrow==") for line in pinned)
    assert any(line.startswith("distributed==") for line in pinned)
    assert "bookworm" in (found / "environment/Containerfile").read_text()
    assert (found / "more/figure.svg").is_file() and (found / "page.html").is_file()
    assert len((found / "results.csv").read_text().splitlines()) == 7
    assert str(study) not in (found / "results/studies/s.json").read_text()

    same = repeated(found)
    assert same.returncode == 0, same.stdout + same.stderr
    assert "0 of " in same.stdout and "only" not in same.stdout
    (found / "plugins/mine.py").write_text(POLICY.format(factor=-1.0))
    other = repeated(found)
    assert other.returncode == 1 and "waf" in other.stdout, other.stdout


@pytest.mark.long
def test_traces_may_stay_out_and_are_asked_for(cli, study, tmp_path):
    trace = (study / "traces/writes.csv").read_bytes()
    found = unpacked(archived(cli, study, "--no-traces"), tmp_path / "elsewhere")
    assert not (found / "inputs/writes.csv").exists()
    assert hashlib.sha256(trace).hexdigest() in (found / "README.md").read_text()
    lacking = repeated(found)
    assert lacking.returncode == 2 and "inputs/writes.csv" in lacking.stderr
    (found / "inputs/writes.csv").write_bytes(trace)
    (found / "inputs/2").mkdir(exist_ok=True)
    (found / "inputs/2/writes.csv").write_bytes((study / "traces/b/writes.csv").read_bytes())
    assert repeated(found).returncode == 0


def test_what_cannot_be_packed_is_said_before_anything_runs(cli, study):
    file = str(study / "s.toml")
    for arguments, says in (
        (["--archive", "out.tar"], "its name must end in .zip"),
        (["--archive", "out.zip", "--shard", "0/2"], "an archive contains all runs"),
        (["--archive", "out.zip", "--with", "nothing.svg"], "--with: there is no file nothing.svg"),
        (["--with", file], "--with and --no-traces need --archive"),
        (["--no-traces"], "--with and --no-traces need --archive"),
    ):
        done = cli("sweep", file, *arguments)
        assert done.returncode == 2 and says in done.stderr, (arguments, done.stderr)
    assert not (study / "store").exists()


@pytest.mark.long
def test_a_path_that_cannot_be_followed_is_said(cli, study):
    """The text spells the path with an escape, so a search of the text does not find the path."""
    text = STUDY.replace('"traces/writes.csv"', '"traces\\u002fwrites.csv"')
    (study / "s.toml").write_text(text)
    assert load(study / "s.toml")
    done = swept(cli, study)
    assert done.returncode == 2 and "s.toml, with its paths" in done.stderr, done.stderr
    assert not (study / "out.zip").exists()


def test_a_job_file_that_needs_more_than_itself_is_refused(cli, study):
    (study / "writes.fio").write_text("[a]\nrw=randwrite\nbs=${BLOCK:-2k}\nsize=512k\n")
    done = swept(cli, study)
    assert done.returncode == 2, done.stdout
    (study / "writes.fio").write_text(
        f"include {study}/rest.fio\n[a]\nrw=randwrite\nbs=2k\nsize=512k\n"
    )
    (study / "rest.fio").write_text("[global]\nnumber_ios=300\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(study)
        done = swept(cli, study)
    assert done.returncode == 2 and "names another file" in done.stderr, done.stderr
    assert not (study / "out.zip").exists()
