"""Statistics of jobs in fio's layout, compared with the real fio and read by a public reader."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from pathlib import Path

import flashatlas
import pytest
from flashatlas.fio_json import percentile, to_fio_json

RECORD = {"version": "0.0.0"}
JOB = """[global]
rw=write
direct=1
[job]
size=16k
bs=4k
iodepth=1
numjobs=1
fsync=2
fdatasync=3
"""
DYNAMIC = {"bins", "percentile"}


@pytest.fixture
def jobs():
    """Return the statistics that ``crates/sim/tests/suite/jobs.rs`` gets for ``JOB``."""
    return json.loads((Path(__file__).parent / "data" / "jobs.json").read_text())


@pytest.fixture
def ours(jobs):
    return to_fio_json(RECORD, jobs)


@pytest.fixture
def theirs(tmp_path):
    """Return the output of fio for ``JOB`` on a target that does nothing."""
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    (tmp_path / "job.fio").write_text(JOB.replace("direct=1", "direct=1\nioengine=null"))
    command = ["fio", "--output-format=json+", "--output=out.json", "job.fio"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    return json.loads((tmp_path / "out.json").read_text())


def keys(value, path=""):
    """Yield every key with its path, except keys inside of dynamic keys."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}/{key}"
            if key not in DYNAMIC:
                yield from keys(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, f"{path}[]")


def kinds(value, path=""):
    """Yield the type of every value with its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in DYNAMIC:
                yield from kinds(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from kinds(inner, f"{path}[]")
    else:
        yield path, type(value)


def test_keys_and_types_are_those_of_fio(ours, theirs):
    theirs["global options"].pop("ioengine")
    assert sorted(keys(ours)) == sorted(keys(theirs))
    assert dict(kinds(ours)) == dict(kinds(theirs))
    # the keys are also in fio's order
    assert list(ours) == list(theirs)
    assert list(ours["jobs"][0]) == list(theirs["jobs"][0])
    assert list(ours["jobs"][0]["write"]) == list(theirs["jobs"][0]["write"])


def test_a_job_that_settles_is_shown_as_fio_shows_it(tmp_path):
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    job = (
        "[job]\nioengine=null\nrw=randread\ndirect=1\nsize=16k\nbs=4k\nrate_iops=100\n"
        "time_based\nruntime=20\nsteadystate=bw_slope:40%\nss_dur=2\n"
    )
    (tmp_path / "job.fio").write_text(job)
    command = ["fio", "--output-format=json+", "--output=out.json", "job.fio"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    theirs = json.loads((tmp_path / "out.json").read_text())["jobs"][0]["steadystate"]
    result = flashatlas.run(job=tmp_path / "job.fio", precondition="fill")
    ours = to_fio_json(RECORD, result.jobs)["jobs"][0]["steadystate"]
    assert sorted(keys(ours)) == sorted(keys(theirs))
    assert dict(kinds(ours)) == dict(kinds(theirs))
    for key in ("ss", "duration", "attained"):
        assert ours[key] == theirs[key]
    # both complete a hundred requests of 4 KiB in each second
    for found in (ours["data"], theirs["data"]):
        assert found["iops"] == pytest.approx([100, 100], rel=0.1)
        assert found["bw"] == pytest.approx([409_600, 409_600], rel=0.1)
    assert (ours["data"]["iops"], ours["slope"]) == ([100, 100], 0.0)


def test_options_counts_and_classes_are_those_of_fio(ours, theirs):
    mine, fio = ours["jobs"][0], theirs["jobs"][0]
    assert mine["job options"] == fio["job options"]
    assert ours["global options"] == {"rw": "write", "direct": "1"}
    for key in ("io_bytes", "io_kbytes", "total_ios"):
        assert mine["write"][key] == fio["write"][key]
    # fio counts only fsyncs as requests, but the latencies of both fsyncs and fdatasyncs
    assert mine["sync"]["total_ios"] == fio["sync"]["total_ios"] == 1
    assert mine["sync"]["lat_ns"]["N"] == fio["sync"]["lat_ns"]["N"] == 2
    assert (
        mine["write"]["clat_ns"]["percentile"].keys()
        == fio["write"]["clat_ns"]["percentile"].keys()
    )
    assert mine["latency_depth"] == fio["latency_depth"]


def test_values_worked_out_by_hand(ours):
    job = ours["jobs"][0]
    write = job["write"]
    # 16 KiB in 1004.8 us
    assert write["bw_bytes"] == 16_305_732
    assert write["bw"] == 15_923
    assert write["iops"] == pytest.approx(3980.891720)
    assert write["runtime"] == 1
    assert write["clat_ns"]["percentile"]["99.000000"] == 251_200
    assert write["clat_ns"]["bins"] == {"251200": 4}
    assert "percentile" not in write["lat_ns"]
    assert job["iodepth_level"]["1"] == 100.0
    assert job["latency_us"]["500"] == 100.0
    assert job["elapsed"] == 1
    assert job["read"]["runtime"] == 0


def test_percentiles_are_the_smallest_value_that_enough_lie_below():
    bins = [[10, 1], [20, 98], [30, 1]]
    assert [percentile(bins, 100, p) for p in (1, 1.5, 50, 99, 99.5)] == [10, 20, 20, 20, 30]
    assert percentile([], 0, 50) == 0


def test_shares_of_a_group_add_up(jobs):
    jobs = copy.deepcopy(jobs)
    jobs["jobs"].append(copy.deepcopy(jobs["jobs"][0]))
    for row, mean in zip(jobs["jobs"], (10.0, 30.0), strict=True):
        row["runtime_ns"] = 1_000_000_000
        row["write"]["bytes"] = int(mean * 1024)
        row["write"]["bandwidth_kib"].update(samples=2, min=mean, max=mean, mean=mean)
    written = to_fio_json(RECORD, jobs)
    assert [job["write"]["bw_agg"] for job in written["jobs"]] == [25.0, 75.0]


def test_fio_plot_reads_both(tmp_path, ours, theirs):
    """fio-plot (PyPI) finds both files, and reads rows of the same kind from them."""
    reason = "fio-plot is not installed"
    importing = pytest.importorskip("fio_plot.fiolib.jsonimport", reason=reason)
    parsing = pytest.importorskip("fio_plot.fiolib.jsonparsing", reason=reason)
    settings = {"rw": "write", "iodepth": [1], "numjobs": [1], "filter": ["write"]}
    rows = {}
    for name, content in (("ours", ours), ("theirs", theirs)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(json.dumps(content))
        settings["input_directory"] = [str(tmp_path / name)]
        dataset = importing.import_json_dataset(settings, importing.list_json_files(settings))
        (rows[name],) = parsing.parse_json_data(settings, dataset)[0]["data"]
    assert rows["ours"].keys() == rows["theirs"].keys()
    for key in ("type", "iodepth", "numjobs", "bs", "rw"):
        assert rows["ours"][key] == rows["theirs"][key], key
    assert rows["ours"]["lat"] == 251_200.0
    assert rows["ours"]["bw"] == 15_923
