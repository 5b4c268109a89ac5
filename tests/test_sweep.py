"""Studies carried out: the store, runs that are repeated or not, workers that die."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import flashatlas
import pandas as pd
import polars as pl
import psutil
import pytest
from flashatlas import InputError, parts
from flashatlas.statistics.intervals import estimate, summary
from flashatlas.sweep import clusters, execution, results, rows, shards
from flashatlas.sweep.identity import Digests
from flashatlas.sweep.plan import planned
from flashatlas.sweep.store import MARK, Store
from flashatlas.sweep.study import load
from study_fakes import POLICY

STUDY = """
title = "Victims"
[run]
drive = "tiny"
workload = "uniform:requests=3000,size=2KiB"
precondition = "fill"
[axes]
ftl.victim = ["greedy", "fifo"]
seed = { from = 1, to = 3 }
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "victims.toml"
    path.write_text(STUDY)
    return path


def carried_out(done):
    """Return the number of runs that a call carried out, from its output."""
    return int(done.stdout.split(" runs carried out")[0].split()[-1])


def test_a_study_runs_once_and_its_numbers_are_those_of_run(cli, study):
    first = cli("sweep", "victims.toml", "--jobs", "2")
    assert first.returncode == 0, first.stderr
    assert carried_out(first) == 6
    assert "the range; an interval needs 5 seeds" in first.stdout
    again = cli("sweep", "victims.toml")
    assert carried_out(again) == 0 and "6 there before" in again.stdout
    kept = Store.open(study.parent / "flashatlas-results")
    frame = results.frame_of(kept, results.noted(kept, "victims"))
    assert frame.factors == ["ftl.victim", "seed"] and len(frame) == 6
    alone = flashatlas.run("tiny", workload="uniform:requests=3000,size=2KiB",
                           precondition="fill", seed=2, set={"ftl.victim": "fifo"})  # fmt: skip
    row = next(r for r in frame.rows() if (r["ftl.victim"], r["seed"]) == ("fifo", 2))
    assert row["waf"] == alone.waf and row["iops"] == alone.iops
    stored = kept.load(row["key"])
    assert stored.record["results_digest"] == alone.record["results_digest"]
    assert stored.tables["series"].equals(alone.tables["series"])


def test_two_studies_share_runs_and_one_name_is_one_study(cli, dask_cluster, study, tmp_path):
    assert cli("sweep", "victims.toml", "--cluster", dask_cluster).returncode == 0
    more = STUDY.replace("to = 3", "to = 4").replace('"greedy", "fifo"', '"fifo"')
    (tmp_path / "more.toml").write_text(more)
    second = cli("sweep", "more.toml", "--cluster", dask_cluster)
    assert carried_out(second) == 1 and "3 there before" in second.stdout
    (tmp_path / "sub").mkdir()
    shutil.copy(study, tmp_path / "sub" / "victims.toml")
    clash = cli("sweep", "sub/victims.toml")
    assert clash.returncode == 2
    assert "name `victims`" in clash.stderr and str(study) in clash.stderr.replace("\n", "")


def test_what_decides_the_results_decides_the_key(tmp_path, monkeypatch):
    def keys(path="a.csv", **more):
        study = flashatlas.Study({"seed": [1]}, drive="tiny", trace=str(tmp_path / path), **more)
        return [run.key for run in planned(study.definition, Digests()).runs]

    (tmp_path / "a.csv").write_text("0,h,0,Write,0,4096,0\n")
    first = keys()
    assert keys() == first
    shutil.copy(tmp_path / "a.csv", tmp_path / "b.csv")
    assert keys("b.csv") == first, "the place of a file does not matter"
    assert keys(set={"cache.bytes": "8KiB"}) != first
    assert keys(set={"ftl.victim": "greedy"}) == first, "the default, given explicitly"
    (tmp_path / "a.csv").write_text("0,h,0,Write,4096,4096,0\n")
    assert keys() != first, "another content"
    (tmp_path / "a.csv").write_text("0,h,0,Write,0,4096,0\n")
    assert keys() == first
    monkeypatch.setattr("flashatlas.sweep.identity.build", lambda: {"sources": "sha256:other"})
    assert keys() != first, "another build"


@pytest.mark.long
def test_a_changed_line_of_a_policy_is_another_run(cli, tmp_path):
    text = STUDY.replace('"greedy", "fifo"', '"mine"')
    (tmp_path / "mine.toml").write_text(text)

    def sweep(factor):
        (tmp_path / "mine.py").write_text(POLICY.format(factor=factor))
        with parts.temporary():
            return cli("sweep", "mine.toml", "--plugin", "mine.py")

    first = sweep(1)
    if first.returncode:
        pytest.fail(first.stderr)
    assert carried_out(first) == 3
    assert carried_out(sweep(1)) == 0, "unchanged: all runs are in the store"
    assert carried_out(sweep(2)) == 3, "one number changed: all runs again"
    assert carried_out(sweep(1)) == 0, "and back"


def test_a_run_that_is_not_whole_does_not_count(cli, dask_cluster, study):
    assert cli("sweep", "victims.toml", "--cluster", dask_cluster).returncode == 0
    kept = Store.open(study.parent / "flashatlas-results")
    keys = list(kept.all_keys())
    file = kept.folder(keys[0]) / "series.parquet"
    file.write_bytes(file.read_bytes()[:-10])
    (kept.folder(keys[1]) / "entry.json").unlink()
    assert not kept.has(keys[0]) and not kept.has(keys[1]) and kept.has(keys[2])
    assert carried_out(cli("sweep", "victims.toml", "--cluster", dask_cluster)) == 2
    assert all(map(kept.has, keys))


def test_rows_follow_from_runs(cli, dask_cluster, study):
    assert cli("sweep", "victims.toml", "--cluster", dask_cluster).returncode == 0
    kept = Store.open(study.parent / "flashatlas-results")
    before = rows.read(kept)
    for file in (kept.root / "rows").iterdir():
        file.unlink()
    again = rows.read(kept)
    assert again.num_rows == 6
    numbers = before.drop_columns(["made"]).sort_by("key")
    assert again.drop_columns(["made"]).sort_by("key").select(numbers.column_names).equals(numbers)


def test_many_files_of_rows_become_one_and_a_row_counts_once(cli, dask_cluster, study):
    assert cli("sweep", "victims.toml", "--cluster", dask_cluster).returncode == 0
    kept = Store.open(study.parent / "flashatlas-results")
    for file in list((kept.root / "rows").iterdir()):
        for number in range(rows.FILES_MAX):
            shutil.copy(file, file.with_name(f"{file.stem}-{number}.parquet"))
    assert rows.read(kept).num_rows == 6
    assert len(list((kept.root / "rows").iterdir())) == 1
    assert rows.read(kept).num_rows == 6


def test_the_page_of_a_study_leads_to_the_report_of_each_run(cli, dask_cluster, study):
    assert (
        cli("sweep", "victims.toml", "--cluster", dask_cluster, "--report", "first.html").returncode
        == 0
    )
    first = (study.parent / "first.html").read_text()
    assert "<h1>Victims</h1>" in first and '"reports":""' in first
    made = cli("report", "flashatlas-results:victims", "--each", "--title", "Mine", "-o", "p.html")
    assert made.returncode == 0, made.stderr
    page = (study.parent / "p.html").read_text()
    assert "<h1>Mine</h1>" in page and '"reports":"p-runs"' in page
    kept = Store.open(study.parent / "flashatlas-results")
    reports = {file.stem for file in (study.parent / "p-runs").iterdir()}
    assert reports == set(kept.all_keys()) and len(reports) == 6
    refused = cli("report", "somewhere", "--each")
    assert refused.returncode == 2 and "only the page of a study" in refused.stderr


def test_the_store_is_a_dataset_as_it_lies_there(cli, dask_cluster, study):
    assert cli("sweep", "victims.toml", "--cluster", dask_cluster).returncode == 0
    glob = str(study.parent / "flashatlas-results/rows/*.parquet")
    query = f"select count(*), max(waf) from read_parquet('{glob}', union_by_name=true)"
    count, most = duckdb.sql(query).fetchall()[0]
    assert count == 6 and pl.scan_parquet(glob).select(pl.col("waf").max()).collect().item() == most
    assert pd.read_parquet(study.parent / "flashatlas-results/rows")["waf"].max() == most


WEARING = STUDY.replace('ftl.victim = ["greedy", "fifo"]', "nand.endurance = [5, 100000]")


@pytest.mark.long
def test_a_drive_that_wears_out_has_a_row_and_is_said_wherever_runs_are_summed_up(cli, tmp_path):
    (tmp_path / "worn.toml").write_text(WEARING.replace("requests=3000", "requests=30000"))
    done = cli("sweep", "worn.toml")
    assert done.returncode == 0, done.stderr
    assert "6 runs carried out" in done.stdout and "failed" not in done.stdout
    assert "worn out: runs whose drive wore out: their numbers end there" in done.stdout
    kept = Store.open(tmp_path / "flashatlas-results")
    frame = results.frame_of(kept, results.noted(kept, "worn"))
    ended = {row["nand.endurance"]: row["worn_out.request"] for row in frame.rows()}
    assert ended[5] < 30_000 and ended[100_000] is None and frame.worn_out == 3
    counts = {one.factors["nand.endurance"]: one.worn_out for one in summary(frame, ["waf"])}
    assert counts == {5: 3, 100_000: 0}
    shown = "Worn out: the drive of 3 of 6 runs wore out; their numbers end there."
    table = cli("results", "show", "flashatlas-results:worn", "-o", "worn.tex", "--of", "waf")
    assert table.returncode == 0, table.stderr
    assert shown in (tmp_path / "worn.tex").read_text()
    figure = cli("figure", "flashatlas-results:worn", "--x", "nand.endurance", "-o", "worn.svg")
    assert shown in figure.stdout + figure.stderr


FAILING = """
[run]
drive = "tiny"
mode = "untimed"
format = "spc"
fit = "wrap"
[axes]
trace = ["broken.spc", "good.spc"]
seed = { from = 1, to = 3 }
"""


@pytest.mark.long
def test_a_run_that_fails_is_a_row_and_the_others_go_on(cli, tmp_path):
    lines = [f"0,{i * 37 % 500 * 4},2048,w,{i / 1000:.3f}\n" for i in range(3000)]
    (tmp_path / "good.spc").write_text("".join(lines))
    lines[1500] = "0,4,x,w,1.500\n"
    (tmp_path / "broken.spc").write_text("".join(lines))
    (tmp_path / "worn.toml").write_text(FAILING)
    first = cli("sweep", "worn.toml")
    assert first.returncode == 1, first.stdout + first.stderr
    assert "3 runs carried out" in first.stdout and "3 failed" in first.stdout
    kept = Store.open(tmp_path / "flashatlas-results")
    frame = results.frame_of(kept, results.noted(kept, "worn"))
    failed = [row for row in frame.rows() if row["failure"]]
    assert [row["trace"] for row in failed] == ["broken.spc"] * 3
    assert all("broken.spc:1501:5: not a number `x`" in row["failure"] for row in failed)
    assert all(row["waf"] is None for row in failed)
    second = cli("sweep", "worn.toml")
    assert "0 runs carried out" in second.stdout and "3 failed" in second.stdout
    third = cli("sweep", "worn.toml", "--retry-failed", "--quiet")
    assert third.returncode == 1 and "3 there before" in third.stdout


SLOW = STUDY.replace("requests=3000", "requests=150000").replace("to = 3", "to = 6")


def workers_of(process):
    """Return the worker processes that carry out a study."""
    return [
        child
        for child in process.children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE and "spawn_main" in " ".join(child.cmdline())
    ]


def started(tmp_path, *more):
    (tmp_path / "slow.toml").write_text(SLOW)
    command = [sys.executable, "-m", "flashatlas", "sweep", "slow.toml", "--jobs", "2", *more]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(600):
        if any((tmp_path / "flashatlas-results/runs").glob("*/*/entry.json")):
            return process
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("no run was done in half a minute")


@pytest.mark.long
def test_workers_that_are_killed_cost_nothing_but_time(tmp_path):
    process = started(tmp_path)
    killed = 0
    for worker in workers_of(psutil.Process(process.pid)):
        worker.send_signal(signal.SIGKILL)
        killed += 1
    out, err = process.communicate(timeout=120)
    assert killed >= 1, "nothing was killed: nothing was tested"
    assert process.returncode == 0, out + err
    assert "12 runs carried out" in out
    kept = Store.open(tmp_path / "flashatlas-results")
    assert len(results.frame_of(kept, results.noted(kept, "slow"))) == 12


@pytest.mark.long
def test_a_study_ends_with_the_program_that_starts_its_workers(tmp_path, cli):
    process = started(tmp_path)
    (program,) = (
        child for child in psutil.Process(process.pid).children() if "spec" in child.cmdline()
    )
    program.kill()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, out + err
    assert "the cluster is gone; the finished runs are in the store" in err
    done = len(list((tmp_path / "flashatlas-results/runs").glob("*/*/entry.json")))
    assert 1 <= done < 12
    assert carried_out(cli("sweep", "slow.toml")) == 12 - done


@pytest.mark.long
def test_an_interrupted_study_goes_on(tmp_path, cli):
    process = started(tmp_path)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    done = len(list((tmp_path / "flashatlas-results/runs").glob("*/*/entry.json")))
    assert 1 <= done < 12
    # the last line is about the finished runs, and no line says "nothing was written"
    last = err.strip().splitlines()[-1]
    kept = f"{done} of 12 runs are done and in flashatlas-results; the same command continues"
    assert last == f"error: interrupted; {kept}"
    assert "nothing was written" not in err
    # the signal may have ended a worker that was writing a run
    left = set((tmp_path / "flashatlas-results/unfinished").glob("*/run.json"))
    again = cli("sweep", "slow.toml")
    assert again.returncode == 0, again.stderr
    assert carried_out(again) == 12 - done
    assert set((tmp_path / "flashatlas-results/unfinished").glob("*/run.json")) <= left


@pytest.mark.long
def test_a_script_needs_no_guard(tmp_path):
    """Workers are programs of their own: they do not import the script that started them.

    The script does not import pandas either, which takes half a second.
    """
    (tmp_path / "script.py").write_text(
        "import flashatlas, sys\n"
        "study = flashatlas.Study({'seed': [1, 2]}, drive='tiny', precondition='fill',\n"
        "                         workload='uniform:requests=500,size=2KiB')\n"
        "print(len(study.run(jobs=2)), len(study.results()), 'pandas' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "2 2 False\n"


@pytest.mark.long
def test_preconditioned_drives_are_made_once(tmp_path, monkeypatch):
    """Timing does not change the preconditioned drive: two runs, one checkpoint, same results."""
    monkeypatch.setattr(execution, "SHARED_FROM_S", 0.0)
    study = flashatlas.Study(
        {"timing.t_read": ["20us", "40us"]}, drive="tiny", precondition="steady",
        workload="uniform:requests=2000,size=2KiB,read=0.5", store=tmp_path / "store",
    )  # fmt: skip
    frame = study.run(jobs=1)
    kept = Store.open(tmp_path / "store")
    assert len(list((kept.root / "checkpoints").iterdir())) == 1
    for run in study.plan().runs:
        time_ns = float(str(run.axes["timing.t_read"]).removesuffix("us")) * 1000
        (row,) = (row for row in frame.rows() if row["timing.t_read"] == time_ns)
        alone = flashatlas.run(
            "tiny", precondition="steady", workload="uniform:requests=2000,size=2KiB,read=0.5",
            set={"timing.t_read": run.axes["timing.t_read"]},
        )  # fmt: skip
        assert row["latency_ns.read.mean"] == alone.latency["read"]["mean"]
        assert kept.load(run.key).record["results_digest"] == alone.record["results_digest"]


def test_memory_is_counted_before_runs_start(tmp_path):
    """A run that does not fit beside the others waits; a run that never fits runs alone."""

    class Client:
        status = "running"

        def __init__(self):
            self.at_once = self.most = 0

        def subscribe_topic(self, *_):
            pass

        def nthreads(self):
            return {"a": 8}

        def submit(self, work, *arguments, **_):
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            return Future(self, arguments[0])

    class Future:
        def __init__(self, client, task):
            self._client, self._task = client, task

        def add_done_callback(self, call):
            def later():
                self._client.at_once -= 1
                call(self)

            threading.Timer(0.4, later).start()  # long after the last run is submitted

        def result(self, timeout=None):
            raise RuntimeError(f"disk full at {self._task.label}")

    study = flashatlas.Study({"seed": [1, 2, 3, 4]}, drive="tiny", store=tmp_path / "s",
                             workload="uniform:requests=10,size=2KiB")  # fmt: skip
    plan = study.plan()
    bytes_of_one = plan.runs[0].cost.bytes
    for memory, most in ((bytes_of_one * 2, 2), (bytes_of_one // 2, 1), (None, 4)):
        client = Client()
        kept = Store.open(tmp_path / f"{memory}", create=True)
        done = execution.Done()
        crew = execution.Crew(clusters.Reached(client, memory), kept, "record", None)
        crew.carry_out(plan.runs, done)
        assert client.most == most
        assert len(done.failed) == 4 and "disk full at 1" in str(done.failed[plan.runs[0].key])


@pytest.mark.long
def test_shards_are_the_whole_and_the_script_is_one_that_slurm_takes(cli, study, tmp_path):
    plan = planned(load(study))
    found = [run.key for i in range(4) for run in shards.shard(plan, i, 4).runs]
    assert sorted(found) == sorted(run.key for run in plan.runs)
    for text in ("4/4", "1", "a/b", "-1/3"):
        with pytest.raises(InputError, match="write I/N"):
            shards.shard_of(text)
    done = cli("sweep", "victims.toml", "--emit", "slurm", "--shards", "2", "--jobs", "2")
    assert done.returncode == 0
    assert "#SBATCH --array=0-1\n#SBATCH --cpus-per-task=2\n" in done.stdout
    # the command of a task of the array, without Slurm
    script = done.stdout.replace("exec flashatlas", f"exec {sys.executable} -m flashatlas")
    for task in range(2):
        env = {**os.environ, "SLURM_ARRAY_TASK_ID": str(task), "SLURM_CPUS_PER_TASK": "1"}
        subprocess.run(["sh", "-s"], input=script, text=True, env=env, cwd=tmp_path, check=True,
                       capture_output=True)  # fmt: skip
    assert "0 runs carried out, 6 there before" in cli("sweep", "victims.toml").stdout


def test_stores_that_are_none_or_of_another_time_are_refused(tmp_path, cli, study):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/precious.txt").write_text("mine")
    done = cli("sweep", "victims.toml", "--store", "full")
    assert done.returncode == 2 and "not a store of results" in done.stderr
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / MARK).write_text(json.dumps({"schema": "flashatlas.store/2"}))
    done = cli("sweep", "victims.toml", "--store", "newer")
    assert done.returncode == 2 and "flashatlas.store/2" in done.stderr
    assert sorted(p.name for p in (tmp_path / "full").iterdir()) == ["precious.txt"]


def test_a_store_may_be_made_by_many_at_once(tmp_path):
    for attempt in range(50):
        together = threading.Barrier(8)

        def opened(_, root=tmp_path / str(attempt), together=together):
            together.wait()
            return Store.open(root, create=True)

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(opened, range(8)))) == 1


def test_results_are_listed_shown_exported_and_cleared_away(cli, dask_cluster, study, tmp_path):
    assert cli("sweep", "victims.toml", "--cluster", dask_cluster).returncode == 0
    listed = cli("results", "ls", "flashatlas-results")
    assert "victims  6     6     0       Victims" in listed.stdout and "6 runs" in listed.stdout
    shown = cli("results", "show", "flashatlas-results:victims", "--of", "waf")
    assert "all 6 runs" in shown.stdout
    wrong = cli("results", "show", "flashatlas-results:victim")
    assert wrong.returncode == 2 and "did you mean `victims`" in wrong.stderr
    wrong = cli("results", "show", "flashatlas-results", "--of", "wafer")
    assert wrong.returncode == 2 and "waf" in wrong.stderr
    assert cli("results", "export", "flashatlas-results", "-o", "all.csv").returncode == 0
    assert len(pd.read_csv(tmp_path / "all.csv")) == 6
    kept = Store.open(tmp_path / "flashatlas-results")
    key = next(iter(kept.all_keys()))
    one = cli("results", "show", "flashatlas-results", "--run", key[:10])
    again = next(line for line in one.stdout.splitlines() if line.startswith("Again:"))
    assert cli(*again.split()[2:]).returncode == 0, "the command that it shows repeats the run"
    (study).write_text(STUDY.replace("to = 3", "to = 2"))
    assert cli("sweep", "victims.toml", "--cluster", dask_cluster).returncode == 0
    assert "2 runs and" in cli("results", "gc", "flashatlas-results", "--dry-run").stdout
    assert len(list(kept.all_keys())) == 6
    cli("results", "gc", "flashatlas-results")
    assert len(list(kept.all_keys())) == 4
    assert "0 runs carried out" in cli("sweep", "victims.toml").stdout


def test_figures_and_tables_take_a_study(cli, dask_cluster, study, tmp_path):
    assert cli("sweep", "victims.toml", "--cluster", dask_cluster).returncode == 0
    done = cli("figure", "flashatlas-results:victims", "--x", "ftl.victim", "--y", "waf",
               "--kind", "bar", "-o", "f.svg")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "averaged over seed" in done.stdout and Path(tmp_path / "f.svg").stat().st_size > 1000
    said = cli("significance", "flashatlas-results", "--of", "waf", "--between", "ftl.victim")
    assert "3 repetitions" in said.stdout


def test_an_interval_is_that_of_students_table():
    """Three values with mean 2 and deviation 1; t for two degrees of freedom at 97.5 % is 4.303."""
    found = estimate([1.0, 2.0, 3.0], least=2)
    assert found.mean == 2 and found.half == pytest.approx(4.303 / 3**0.5, rel=1e-3)
    few = estimate([1.0, 2.0, 3.0])
    assert few.half is None and (few.least, few.most, few.count) == (1, 3, 3)
    assert estimate([5.0]).half is None and estimate([5.0, 5.0]).half is None
    skewed = estimate([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0], percentile=True)
    assert skewed.low is not None and skewed.low >= 1, "a mean is not below the least value"
    assert estimate([1.0] * 7 + [9.0]).low < 1, "as Student's t would have it"


def test_a_part_of_the_program_itself_cannot_be_sent(tmp_path):
    class Mine(parts.Victim):
        """The first block."""

        name = "of-this-program"

        def pick(self, lane):
            return int(lane.valid.argmin())

    with parts.temporary():
        parts.add(Mine)
        study = flashatlas.Study(
            {"ftl.victim": ["of-this-program", "greedy"]},
            drive="tiny", workload="uniform:requests=300,size=2KiB", store=tmp_path,
        )  # fmt: skip
        with pytest.raises(InputError, match=r"the program added it .*load the file"):
            study.run(jobs=1)
    assert not list(Store.open(tmp_path).all_keys()), "nothing was run"
