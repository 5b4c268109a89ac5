"""An option with one value refuses two; a folder has only the runs that were written last."""

from __future__ import annotations

import flashatlas
import pytest
from flashatlas import Result

WORKLOAD = ("--workload", "uniform:requests=500,size=2KiB,read=0.5", "--precondition", "fill")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run", "--drive", "tiny", "--drive", "tiny"],
            "--drive: the option is given 2 times; give it once",
        ),
        (["run", "-w", "uniform", "--workload", "zipf"], "--workload: the option is given 2 times"),
        (["compare", "--seed", "1", "--seed", "2"], "--seed: the option is given 2 times"),
        (
            ["trace", "info", "--format", "spc", "--format", "msr", "x"],
            "--format: the option is given 2 times",
        ),
        (["compare", "--vary", "ftl.victim=greedy,fifo,greedy"], "--vary: `greedy` is named twice"),
        (["compare", "--drive", "tiny", "--drive", "tiny"], "--drive: `tiny` is named twice"),
        (["compare", "--case", "a:", "--case", "a:ftl.victim=fifo"], "--case: `a` is named twice"),
    ],
)
def test_one_value_means_one(cli, arguments, message):
    done = cli(*arguments, *([] if "-w" in arguments or "trace" in arguments else WORKLOAD))
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_a_folder_holds_the_runs_of_the_last_comparison(cli, tmp_path):
    folder = tmp_path / "out"
    compare = ("compare", *WORKLOAD, "--out", str(folder), "--force", "-q", "--vary")
    first = cli(*compare, "ftl.victim=greedy,fifo,random")
    assert first.returncode == 0 and "removed" not in first.stderr
    (folder / "notes.txt").write_text("mine")
    second = cli(*compare, "ftl.victim=greedy")
    assert "2 runs of an earlier comparison were removed" in second.stderr
    assert sorted(p.name for p in folder.glob("*/")) == ["01"]
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_run_is_loaded_with_its_jobs_and_leaves_nothing_of_another(tmp_path):
    job = tmp_path / "one.fio"
    job.write_text("[a]\nrw=randwrite\nbs=4k\nsize=64k\n")
    result = flashatlas.run("tiny", job=job)
    result.save(tmp_path / "run")
    assert Result.load(tmp_path / "run").jobs == result.jobs is not None
    flashatlas.run("tiny", workload="uniform:requests=10,size=2KiB").save(tmp_path / "run")
    assert Result.load(tmp_path / "run").jobs is None
    (tmp_path / "run" / "jobs.json").write_text("{")
    with pytest.raises(flashatlas.InputError, match=r"jobs.json:1:2: damaged"):
        Result.load(tmp_path / "run")
