"""The command line: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import flashatlas
import pytest
from conftest import ROOT
from flashatlas import InputError
from flashatlas.cli.report import report
from flashatlas.fetch import RECORDED, SOURCES, WITH_PACKAGE

WORKLOAD = ("--workload", "uniform:requests=500,size=2KiB,read=0.5", "--precondition", "fill")


def test_json_to_standard_output_is_the_record_and_nothing_else(cli):
    done = cli("run", *WORKLOAD, "--json", "-")
    record = json.loads(done.stdout)
    assert done.returncode == 0 and done.stderr == ""
    assert record["schema"] == "flashatlas.run/2"
    assert record["oracle"]["violations"] == 0 and record["oracle"]["units_checked"] > 0
    assert record["host"]["reads"] + record["host"]["writes"] == 500


def test_two_equal_runs_print_the_same_bytes(cli):
    records = [cli("run", *WORKLOAD, "--seed", "5", "--json", "-").stdout for _ in range(2)]
    assert records[0] == records[1] and "wall_s" not in records[0]


def test_out_holds_the_record(cli, tmp_path):
    done = cli("run", *WORKLOAD, "--out", "results")
    assert done.returncode == 0
    assert json.loads((tmp_path / "results/run.json").read_text())["trace"]["requests"] == 500
    tables = {f"{name}.parquet" for name in ("series", "latency", "wear", "resources", "blocks")}
    assert {p.name for p in (tmp_path / "results").iterdir()} == {
        "run.json",
        "made.json",
        "report.html",
    } | tables


def test_compare_writes_a_report_that_names_every_run(cli, tmp_path):
    done = cli(
        "compare",
        "--vary",
        "ftl.victim=greedy,fifo",
        "--vary",
        "drive.ways=1,2",
        *WORKLOAD,
        "--out",
        "r",
    )
    assert done.returncode == 0, done.stderr
    labels = ["greedy 1", "greedy 2", "fifo 1", "fifo 2"]
    report = (tmp_path / "r/report.html").read_text()
    runs = json.loads((tmp_path / "r/compare.json").read_text())["runs"]
    assert [run["label"] for run in runs] == labels
    assert [run["config"]["params"]["drive.ways"] for run in runs] == [1, 2, 1, 2]
    assert all(label in report and label in done.stdout for label in labels)
    assert f"{runs[0]['waf']:.3f}" in report


def test_a_checkpoint_stands_for_its_preconditioning(cli, tmp_path):
    steady = ("--workload", "uniform:requests=500,size=2KiB", "--json", "-")
    saved = cli("checkpoint", "aged.ckpt", "--precondition", "steady")
    assert saved.returncode == 0 and "aged.ckpt" in saved.stdout, saved.stderr
    direct = json.loads(cli("run", *steady, "--precondition", "steady").stdout)
    loaded = json.loads(cli("run", *steady, "--precondition", "checkpoint:aged.ckpt").stdout)
    assert all(direct[key] == loaded[key] for key in ("waf", "nand", "latency_ns", "oracle"))
    assert loaded["checkpoint"]["precondition"] == "steady"
    other = cli("run", *steady, "--precondition", "checkpoint:aged.ckpt", "--set", "drive.pages=16")
    assert other.returncode == 2 and "its drive.pages is 8, but here it is 16" in other.stderr
    (tmp_path / "aged.ckpt").write_bytes((tmp_path / "aged.ckpt").read_bytes()[:-1])
    assert "truncated" in cli("run", *steady, "--precondition", "checkpoint:aged.ckpt").stderr
    nothing = cli("checkpoint", "none.ckpt")
    assert nothing.returncode == 2 and not (tmp_path / "none.ckpt").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["aged.ckpt"], "nothing is left behind"


def test_compare_preconditions_once_what_begins_alike(cli):
    common = (
        "--workload",
        "uniform:requests=500,size=2KiB",
        "--precondition",
        "steady",
        "--json",
        "-",
    )
    vary = ("--vary", "timing.t_program=200us,400us", "--vary", "ftl.victim=greedy,fifo")
    runs = json.loads(cli("compare", *common, *vary).stdout)["runs"]
    assert len(runs) == 4
    for run in runs:
        setting = [f"--set={key}={run['config']['params'][key]}" for key in ("ftl.victim",)]
        setting.append(f"--set=timing.t_program={run['config']['params']['timing.t_program']}")
        alone = json.loads(cli("run", *common, *setting).stdout)
        assert all(
            alone[key] == run[key] for key in ("config", "config_hash", "waf", "nand", "latency_ns")
        )
        assert any(note["code"] == "precondition-shared" for note in run["approximations"])


def test_reports_of_saved_runs(cli, tmp_path):
    assert cli("run", *WORKLOAD, "--out", "one").returncode == 0
    assert (
        cli("compare", "--vary", "ftl.victim=greedy,fifo", *WORKLOAD, "--out", "two").returncode
        == 0
    )
    done = cli("report", "one", "two", "--out", "all.html")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "all.html").read_text()
    assert all(label in text for label in ("greedy", "fifo", "tiny"))
    (tmp_path / "one/run.json").write_text("{")
    bad = cli("report", "one", "--out", "bad.html")
    assert (
        bad.returncode == 2
        and "run.json:1:2: damaged: " in bad.stderr
        and not (tmp_path / "bad.html").exists()
    )


@pytest.mark.long
def test_damaged_run_records_are_reported_or_refused(cli, tmp_path):
    """Any change of a record ends in a report or in one error."""
    assert cli("run", *WORKLOAD, "--out", "one").returncode == 0
    record = tmp_path / "one/run.json"
    whole = json.loads(record.read_text())

    def places(value, path=()):
        inner = (
            value.items()
            if isinstance(value, dict)
            else enumerate(value[:2])
            if isinstance(value, list)
            else ()
        )
        for key, child in inner:
            yield (*path, key)
            yield from places(child, (*path, key))

    rng = random.Random(5)
    known = list(places(whole))
    outcomes = {"made": 0, "refused": 0}
    for _ in range(150):
        damaged = copy.deepcopy(whole)
        *path, key = rng.choice(known)
        inner = damaged
        for step in path:
            inner = inner[step]
        inner[key] = rng.choice([None, "x", -3, [1], {"a": 1}, 1e308])
        if rng.random() < 0.2:
            del inner[key]
        record.write_text(json.dumps(damaged))
        try:
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                report([tmp_path / "one"], out_=tmp_path / "one.html", title=None)
            outcomes["made"] += 1
        except InputError as error:
            assert str(tmp_path / "one") in str(error) and "\n" not in str(error)
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 10, outcomes


def test_compare_takes_several_drives_and_cases(cli):
    done = cli(
        "compare",
        "-d",
        "tiny",
        "-d",
        "tlc-small",
        "--case",
        "plain:",
        "--case",
        "fifo:ftl.victim=fifo",
        *WORKLOAD,
        "--json",
        "-",
    )
    runs = json.loads(done.stdout)["runs"]
    assert [run["label"] for run in runs] == [
        "tiny plain",
        "tiny fifo",
        "tlc-small plain",
        "tlc-small fifo",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--drive", "tniy"], "drive `tniy` is not known; did you mean `tiny`?"),
        (["--set", "ftl.scheme=pgae"], "did you mean `page`?"),
        (["--set", "ftl.victm=greedy"], "ftl.victm: no such key; did you mean `ftl.victim`?"),
        (["--set", "ftl.victim"], "expected key=value"),
        (["--set", "drive.over_provisioning=0.00001"], "do not fit"),
        (["--set", "drive.planes=0"], "drive.planes: 0 is out of range"),
        (["--set", "drive.spare_bytes=16"], "its OOB record needs"),
        (["--set", "drive.frame_planes=3"], "does not divide"),
        (["--set", "timing.t_read=25"], "has no unit"),
        (["--set", "timing.priority=gc"], "does not name every class exactly once"),
        (
            ["--set", "ftl.scheme=block", "--set", "map.unit=512"],
            "the unit must be the whole frame",
        ),
        (["--workload", "unifrom:requests=10"], "did you mean `uniform`?"),
        (["--workload", "uniform:size=3"], "size"),
        (["--fit", "squeeze"], "--fit: `squeeze` is not known (allowed: error, wrap, compact)"),
        (["--mode", "close"], "--mode: `close` is not known"),
        (["--precondition", "full"], "allowed: none, fill, steady, trace:FILE, checkpoint:FILE"),
        (["--precondition", "trace:none.csv"], "none.csv: No such file"),
        (["--drive", "missing.toml"], "missing.toml: No such file"),
        (["--precondition", "checkpoint:"], "--precondition: `checkpoint:` is not known"),
        (["--mode", "untimed", "--interval", "1ms"], "no time passes in the untimed mode"),
        (["--seed", "99999999999999999999"], "--seed: `99999999999999999999` is too large"),
        (["--mode", "open", "--speed", "nan"], "--speed: nan is not a number above 0"),
    ],
)
def test_bad_input_is_one_message(cli, tmp_path, arguments, expected):
    base = [] if "--workload" in arguments else ["--workload", "uniform:requests=10,size=2KiB"]
    done = cli("run", *base, *arguments, "--out", "results")
    assert done.returncode == 2
    assert expected in " ".join(done.stderr.split())
    assert (
        done.stderr.startswith("error: ")
        and "Traceback" not in done.stderr
        and "panicked" not in done.stderr
    )
    assert len(done.stderr) < 2000 and done.stdout == ""
    assert not (tmp_path / "results").exists(), "no half-written output"


GOOD = b"1,host,0,Write,4096,4096,0\n" * 3


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (GOOD + b"1,host,0,Wriet,4096,4096,0\n", "bad:4:10: "),
        (GOOD + b"2,host,0,Write,-4096,4096,0\n", "bad:4:16: "),
        (GOOD + b"2,host,0,Write,99999999999999999999,4096,0\n", "bad:4:16: "),
        (GOOD + b"2,host,0,Write,4096,0,0\n", "bad:4:21: "),
        (GOOD + b"0.5 0 W 4096 8\n", "bad:4:"),
        (b"", "empty"),
        (b"what is this\n", "no trace format recognises"),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x01", "bad:"),
    ],
)
def test_a_bad_trace_names_the_place(cli, tmp_path, content, expected):
    (tmp_path / "bad").write_bytes(content)
    done = cli("run", "--trace", "bad", "--set", "drive.blocks=64", "--out", "results")
    assert done.returncode == 2 and expected in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "results").exists()


def test_bad_records_can_be_skipped_and_are_counted(cli, tmp_path, trace):
    lines = trace.read_text().splitlines(keepends=True)
    trace.write_text("".join([*lines[:2], "garbage\n", *lines[2:], "more garbage\n"]))
    assert cli("run", "--trace", str(trace), "--skip-bad", "1").returncode == 2
    record = json.loads(cli("run", "--trace", str(trace), "--skip-bad", "2", "--json", "-").stdout)
    assert (record["trace"]["requests"], record["trace"]["skipped_bad"]) == (4, 2)


def test_a_trace_without_writes_has_no_write_amplification(cli, tmp_path):
    (tmp_path / "reads.csv").write_text("1,host,0,Read,4096,4096,0\n" * 3)
    record = json.loads(cli("run", "--trace", "reads.csv", "--json", "-").stdout)
    assert "waf" not in record and "write" not in record["latency_ns"]
    assert record["host"]["unmapped_reads"] == 6
    assert cli("run", "--trace", "reads.csv").returncode == 0


def test_a_worn_out_drive_ends_with_its_own_exit_code(cli):
    done = cli(
        "run",
        "--set",
        "nand.endurance=2",
        "--workload",
        "uniform:requests=100000,size=2KiB",
        "--precondition",
        "fill",
    )
    assert done.returncode == 3 and "worn out" in done.stdout


def test_an_output_folder_that_cannot_be_written(cli, tmp_path):
    (tmp_path / "file").write_text("")
    done = cli("run", *WORKLOAD, "--out", "file/below")
    assert done.returncode == 2 and "cannot write" in done.stderr


def test_a_link_stays_a_link_and_a_pipe_a_pipe(cli, tmp_path):
    (tmp_path / "kept.json").write_text("old")
    (tmp_path / "link.json").symlink_to("kept.json")
    assert cli("run", *WORKLOAD, "--json", "link.json").returncode == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "kept.json").read_text())["schema"] == "flashatlas.run/2"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
    try:
        assert cli("run", *WORKLOAD, "--json", "pipe").returncode == 0
        assert pipe.is_fifo()
        assert json.loads(reader.communicate(timeout=10)[0])["schema"] == "flashatlas.run/2"
    finally:
        reader.kill()


def test_outputs_have_the_permissions_that_the_user_chose(cli, tmp_path):
    before = os.umask(0o027)
    try:
        assert cli("run", *WORKLOAD, "--json", "run.json").returncode == 0
    finally:
        os.umask(before)
    assert (tmp_path / "run.json").stat().st_mode & 0o777 == 0o640


def test_names_that_are_not_utf8_are_refused_before_anything_is_written(cli, tmp_path):
    name = os.fsdecode(b"bad\xff")
    for arguments in (
        ("run", *WORKLOAD, "--out", name),
        ("trace", "info", name),
        ("checkpoint", name),
    ):
        done = cli(*arguments)
        assert done.returncode == 2 and done.stderr.startswith(
            "error: 'bad\\udcff': the argument is not UTF-8"
        ), done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("arguments", [["schemes"], ["run", *WORKLOAD, "--json", "-"]])
def test_a_reader_that_has_seen_enough_is_no_error(tmp_path, arguments):
    command = [sys.executable, "-c", "from flashatlas.cli import main; main()", *arguments]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.close()
    assert process.stderr.read() == "" and process.wait(timeout=20) == 0


def test_a_checkpoint_refuses_what_plays_no_part_and_reads_the_format_that_it_is_told(
    cli, tmp_path, trace
):
    done = cli("checkpoint", "a.ckpt", "--precondition", "fill", "--job", "any.fio")
    assert (
        done.returncode == 2
        and "--job: a job file has no effect" in done.stderr
        and not (tmp_path / "a.ckpt").exists()
    )
    done = cli("checkpoint", "a.ckpt", "--precondition", f"trace:{trace}", "--format", "vscsi")
    assert (
        done.returncode == 2
        and "not a vscsi record" in done.stderr
        and not (tmp_path / "a.ckpt").exists()
    )


def test_interrupt_stops_a_long_run_and_leaves_nothing(tmp_path):
    # programs that a shell starts in the background ignore the signal: this one must not
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [
        sys.executable,
        "-c",
        f"{heed}; from flashatlas.cli import main; main()",
        "run",
        "--out",
        "results",
    ]
    command += ["--workload", "uniform:requests=500000000,size=2KiB", "--precondition", "fill"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        time.sleep(6)  # by then the run has begun, even if other tests keep the cores busy
        assert process.poll() is None, process.communicate()
        os.kill(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130 and "interrupted" in errors and "Traceback" not in errors
    assert output == "" and not (tmp_path / "results").exists()


def test_trace_info(cli, trace):
    done = cli("trace", "info", str(trace), "--json", "-")
    info = json.loads(done.stdout)
    assert (info["format"], info["requests"], info["writes"], info["written_bytes"]) == (
        "msr",
        4,
        4,
        16384,
    )
    assert (info["footprint_bytes"], info["overwrite_ratio"], info["sequential_share"]) == (
        16384,
        1.0,
        0.75,
    )
    assert "4 in" in cli("trace", "info", str(trace)).stdout


def test_fetch_knows_what_it_has(cli):
    done = cli("trace", "fetch", "cloudphysic")
    assert done.returncode == 2 and "allowed: demo, postgres, sqlite" in done.stderr
    listed = cli("trace", "fetch").stdout
    assert all(name in listed for name in (*WITH_PACKAGE, *SOURCES))


def test_recordings_of_real_programs_come_with_the_package(cli, tmp_path):
    """Each recording begins with mkfs on a blank drive; all recordings together are small."""
    total = 0
    for name in RECORDED:
        done = cli("trace", "fetch", name, "--to", ".")
        assert done.returncode == 0, done.stderr
        total += (tmp_path / f"{name}.fatr").stat().st_size
        info = flashatlas.Trace(tmp_path / f"{name}.fatr").info()
        assert info["writes"] > 1000 and info["flushes"] > 20
        assert info["reads"] > 100, "the page cache was dropped"
        assert info["highest_bytes"] <= 720_896 * 4096, "the drive on which it was recorded"
    assert total < 6 << 20
    result = flashatlas.run("tlc-small", trace=tmp_path / "mail.fatr", mode="open")
    assert result.violations == 0 and result.record["host"]["flushes"] > 8000


def test_listings_show_every_registered_name(cli):
    registries = json.loads(__import__("flashatlas")._core.registries())
    drives, schemes, formats, workloads = (
        cli(name).stdout for name in ("drives", "schemes", "formats", "workloads")
    )
    assert all(entry["name"] in drives for entry in registries["drives"])
    for kind in ("schemes", "maps", "caching", "victims", "classifiers"):
        assert all(entry["name"] in schemes for entry in registries[kind])
    assert all(entry["name"] in formats for entry in registries["formats"])
    assert all(entry["name"] in workloads for entry in registries["generators"])
    assert "source =" in cli("drives", "mast-4gb").stdout
    one = " ".join(cli("formats", "pixel6a").stdout.split())
    assert "MobileBlockIOTraces" in one and "Cite the paper" in one and "uptime" in one


def test_every_format_is_documented_with_its_source_and_licence():
    text = " ".join((ROOT / "docs/FORMATS.md").read_text(encoding="utf-8").split())
    for entry in json.loads(__import__("flashatlas")._core.registries())["formats"]:
        for part in ("source", "licence"):
            assert " ".join(entry[part].split()) in text, (
                f"{entry['name']}: {part} is not in docs/FORMATS.md"
            )


def test_a_drive_file_of_ones_own_is_shown(cli, tmp_path):
    (tmp_path / "mine.toml").write_text('[drive]\nbase = "tiny"\nplanes = 2\n')
    said = cli("drives", "mine.toml").stdout
    shape = dict(
        re.split(r"  +", line.strip(), maxsplit=1) for line in said.strip().splitlines()[1:]
    )
    assert shape["blocks"] == "256", "2 channels, 2 ways, 2 planes, 32 blocks each"
    # 256 blocks of 8 pages of one unit of 2 KiB; the spare is 0.6 of the exported units: 2048 / 1.6
    assert (shape["physical units"], shape["logical units"]) == ("2,048", "1,280")
    assert (shape["spare"], shape["capacity"]) == ("60.0 %", "2.5 MiB")
    assert "checkpoint" not in said and "steady" not in said


def test_compare_gives_each_scheme_the_settings_that_it_knows(cli):
    common = (
        "--drive",
        "mast-4gb",
        "--set",
        "drive.logical_pages=6400",
        "--set",
        "drive.blocks=160",
        *WORKLOAD,
    )
    done = cli(
        "compare",
        "--schemes",
        "fast,mast,page",
        "--set",
        "ftl.log_blocks=20",
        *common,
        "--json",
        "-",
    )
    assert done.returncode == 0, done.stderr
    runs = {run["label"]: run["config"]["params"] for run in json.loads(done.stdout)["runs"]}
    assert list(runs) == ["fast", "mast", "page"]
    assert all(runs[name]["ftl.scheme"] == name for name in runs)
    assert (runs["fast"]["ftl.log_blocks"], runs["mast"]["ftl.log_blocks"]) == (20, 20)
    assert "ftl.log_blocks" not in runs["page"]
    assert "ftl.log_blocks belongs to fast, mast only, and not to page" in done.stderr
    window = ("--schemes", "page,fast", "--set", "ftl.victim=windowed", "--set", "ftl.window=3")
    assert cli("compare", *window, *common).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--schemes", "fast,lost"], "--schemes: `lost` is not a scheme; did you mean `last`?"),
        (["--schemes", "fast,fast"], "--schemes: `fast` is named twice"),
        (["--schemes", ""], "--schemes: `` is not a scheme"),
        (
            ["--schemes", "fast", "--set", "ftl.scheme=page"],
            "--set ftl.scheme=page: the option --schemes already names the schemes",
        ),
        (
            ["--schemes", "fast", "--vary", "ftl.scheme=page,block"],
            "--schemes already names the schemes",
        ),
        (
            ["--schemes", "fast,page", "--vary", "ftl.log_blocks=9,20"],
            "page of --schemes has no key ftl.log_blocks",
        ),
        (
            ["--schemes", "fast", "--case", "a:"],
            "--case cannot be mixed with --vary, --schemes and --stacks",
        ),
    ],
)
def test_schemes_that_cannot_be_compared_are_named(cli, arguments, message):
    done = cli("compare", *arguments, *WORKLOAD)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_a_folder_that_cannot_be_written_is_said_before_the_run(cli, tmp_path):
    (tmp_path / "file").write_text("")
    for out in ("file", "file/below"):
        # a run of a million requests would take seconds
        done = cli("run", "-d", "tiny", "-w", "uniform:requests=1e6,size=2KiB", "--out", out)
        assert done.returncode == 2 and "is a file, not a folder" in done.stderr
        assert not done.stdout


def test_more_flash_beside_what_a_preset_exports_is_said(cli):
    work = ("-w", "uniform:requests=100", "--mode", "untimed")
    said = cli("run", "-d", "tlc-small", "--set", "drive.blocks=110", *work).stderr
    # 8 lanes of 110 blocks of 1,024 units over 720,896 that are exported
    assert "drive.blocks: 25.0 % spare" in said
    for more in ("drive.logical_pages=720896", "drive.over_provisioning=0.25"):
        quiet = cli("run", "-d", "tlc-small", "--set", "drive.blocks=110", "--set", more, *work)
        assert "spare" not in quiet.stderr, more
