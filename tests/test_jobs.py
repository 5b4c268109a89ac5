"""fio job files from the command line."""

from __future__ import annotations

import json

import flashatlas
from conftest import ROOT
from flashatlas import Result
from flashatlas.report import write_report

JOB = (
    "[one]\nioengine=libaio\ndirect=1\nrw=randwrite\nbs=4k\nsize=64k\n"
    "io_size=128k\niodepth=4\nbuffer_pattern=0xff\n"
)


def test_a_job_file_is_a_workload(cli, tmp_path):
    (tmp_path / "job.fio").write_text(JOB)
    done = cli(
        "run", "--job", "job.fio", "--json", "run.json", "--fio-json", "fio.json", "--out", "out"
    )
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "run.json").read_text())
    assert (record["host"]["writes"], record["host"]["write_bytes"], record["trace"]["format"]) == (
        32,
        131072,
        "fio",
    )
    assert any(
        note["values"].get("option") == "buffer_pattern" for note in record["approximations"]
    ), "the record names the option that is not modelled"
    fio = json.loads((tmp_path / "fio.json").read_text())
    assert fio["jobs"][0]["write"]["total_ios"] == 32 and fio["jobs"][0]["jobname"] == "one"
    assert json.loads((tmp_path / "out/jobs.json").read_text())["jobs"][0]["write"]["ios"] == 32
    assert "job.fio" in (tmp_path / "out/report.html").read_text()


def test_each_job_is_shown(cli, tmp_path):
    (tmp_path / "job.fio").write_text(
        JOB + "[two]\nioengine=libaio\nrw=read\nbs=8k\nsize=64k\ndirect=1\n"
    )
    lines = [line.split() for line in cli("run", "--job", "job.fio").stdout.splitlines()]
    assert ["one", "write", "32"] in [line[:3] for line in lines]
    assert ["two", "read", "8"] in [line[:3] for line in lines]


def test_mistakes_in_a_job_file_are_placed(cli, tmp_path):
    (tmp_path / "bad.fio").write_text(JOB + "iodpeth=8\n")
    done = cli("run", "--job", "bad.fio", "--out", "out")
    assert done.returncode == 2 and "bad.fio:10:1: " in done.stderr and "iodepth" in done.stderr
    assert not (tmp_path / "out").exists()
    assert "needs --job" in cli("run", "-w", "uniform", "--fio-json", "-").stderr


def test_environment_variables_are_those_of_the_process(cli, tmp_path, monkeypatch):
    (tmp_path / "env.fio").write_text(JOB.replace("io_size=128k", "io_size=${AMOUNT}"))
    monkeypatch.setenv("AMOUNT", "16k")
    assert json.loads(cli("run", "--job", "env.fio", "--json", "-").stdout)["host"]["writes"] == 4
    monkeypatch.delenv("AMOUNT")
    assert cli("run", "--job", "env.fio").returncode == 2


def test_the_example_runs_and_compares(cli):
    example = str(ROOT / "examples/mixed.fio")
    vary = ("--vary", "ftl.victim=greedy,fifo", "--precondition", "steady")
    done = cli("compare", "--drive", "tlc-small", "--job", example, *vary, "--json", "-")
    runs = json.loads(done.stdout)["runs"]
    assert len(runs) == 2 and all(
        run["oracle"]["violations"] == 0 and run["host"]["flushes"] > 0 for run in runs
    )


def test_the_report_has_the_jobs_of_a_job_file(tmp_path):
    job = tmp_path / "two.fio"
    job.write_text(
        "[global]\nsize=64k\nbs=4k\n[<reader>]\nrw=randread\n[writer]\nstonewall\nrw=randwrite\n"
    )
    result = flashatlas.run("tiny", job=job, precondition="fill")
    page = write_report(tmp_path / "r.html", "jobs", [result], "").read_text()
    assert 'id="jobs"' in page and "&lt;reader&gt;" in page and ">writer<" in page
    without = flashatlas.run("tiny", workload="uniform:requests=10,size=2KiB")
    page = write_report(tmp_path / "w.html", "none", [without], "").read_text()
    assert 'id="jobs"' not in page
    # the report of both runs has the jobs, and a loaded run still has them
    result.save(tmp_path / "saved")
    both = [Result.load(tmp_path / "saved"), without]
    assert ">writer<" in write_report(tmp_path / "b.html", "both", both, "").read_text()


STARVED = """
[global]
direct=1
ioengine=libaio
[reads]
rw=randread
bs=4k
iodepth=8
size=12M
number_ios=20000
[write]
rw=write
bs=4k
sync=dsync
number_ios=1
size=4k
startdelay=1ms
"""
"""Reads that keep one die busy for half a second, and a write that has to be durable."""

ONE_DIE = """
[drive]
summary = "one die"
channels = 1
ways = 1
dies = 1
planes = 1
blocks = 256
pages = 64
page_bytes = 4096
spare_bytes = 128
cell = "slc"
over_provisioning = 0.25
[map]
unit = "4KiB"
[timing]
t_read = "50us"
t_program = "500us"
t_erase = "2ms"
channel_rate = "400mb"
[cache]
mode = "write-through"
[host]
command_time = 0
"""


def test_a_write_is_passed_by_reads_for_a_bounded_time(tmp_path):
    """The write's latency: the bound, a begun read, the transfer of 10.24 us and the program.

    The bound holds at the die and at the channel, so a transfer may wait for the bound once more.
    """
    job, drive = tmp_path / "starved.fio", tmp_path / "one-die.toml"
    job.write_text(STARVED)
    drive.write_text(ONE_DIE)

    def took_ms(*settings: str) -> float:
        found = flashatlas.run(drive, set=list(settings), job=job, precondition="fill")
        assert found.latency["write"]["count"] == 1
        return found.latency["write"]["max"] / 1e6

    assert took_ms("timing.passed_max=0") > 100, "without a bound the write waits for all reads"
    for bound in (1, 3, 10):
        least = bound + 0.5
        most = least + bound + 2 * (0.05 + 0.01024)
        assert least <= took_ms(f"timing.passed_max={bound}ms") <= most, bound
    assert took_ms() == took_ms("timing.passed_max=10ms"), "ten milliseconds are the default"
