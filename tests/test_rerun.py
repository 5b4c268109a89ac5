"""A run is repeated from its record, packed, and cited."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args, get_origin

import flashatlas
import jsonschema
import pytest
from conftest import ONE_IN
from fingerprints import examples
from flashatlas.inputs.trace import Progress
from flashatlas.record import Record
from flashatlas.results import citations
from flashatlas.results.result import Result
from flashatlas.running.api import Workers
from flashatlas.running.bundle import bundle
from flashatlas.running.rerun import differences, rerun
from flashatlas.running.unpacking import unpack
from typing_extensions import get_type_hints, is_typeddict

ROOT = Path(__file__).parent.parent
SCHEMA = json.loads((ROOT / "python/flashatlas/record.schema.json").read_text(encoding="utf-8"))
FLASHATLAS = [sys.executable, "-c", "from flashatlas.cli import main; main()"]
EXAMPLES = dict(examples())


def command(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*FLASHATLAS, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False
    )


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    lines = [f"0,{8 * (i * 7 % 400)},4096,{'rw'[i % 3 > 0]},{i / 1000}\n" for i in range(900)]
    path = tmp_path / "some.spc"
    path.write_text("".join(lines))
    return path


@pytest.mark.long
def test_every_example_is_run_again_from_its_record(tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    some = list(EXAMPLES.items())[:: 1 if ONE_IN == 1 else 2]
    for name, arguments in some:
        result = flashatlas.run(**arguments)
        wrong = [f"{list(e.path)}: {e.message[:200]}" for e in validator.iter_errors(result.record)]
        assert not wrong, f"{name}: {wrong}"
        result.save(tmp_path)
        again = rerun(Result.load(tmp_path))
        assert differences(result, again) == [], name
        assert again.record["config_hash"] == result.record["config_hash"], name


def test_options_of_a_run_are_in_its_record(trace: Path) -> None:
    """A rerun that dropped an option would give another result, or another record."""
    result = flashatlas.run(
        drive="tlc-small",
        trace=trace,
        precondition=f"trace:{trace}",
        fit="compact",
        extent="4KiB",
        mode="open",
        speed=2.0,
        warmup=20,
        limit=800,
        flush_every=7,
        interval="1ms",
        fingerprint=True,
        seed=5,
        drop_duplicates="5ms",
        time_gap_max="1s",
        shift=8,
        skip_bad=1,
    )
    again = rerun(result)
    own = {key: value for key, value in again.record.items() if key != "build"}
    assert own == {key: value for key, value in result.record.items() if key != "build"}
    # each of the options changes the result, so that the comparison above has a meaning
    for option, value in {"flush_every": 9, "speed": 3.0, "limit": 700, "warmup": 30}.items():
        other = flashatlas.run(**{**result.options, option: value})
        assert differences(result, other), option


def test_equal_runs_are_equal_files(tmp_path: Path, trace: Path) -> None:
    for folder in ("a", "b"):
        command("run", "-t", trace, "-d", "tlc-small", "--out", tmp_path / folder, "-q")
    for file in ("run.json", "series.parquet", "blocks.parquet"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file
    assert json.loads((tmp_path / "a/made.json").read_text())["command"].endswith("a -q")


@pytest.mark.long
def test_a_difference_is_found_and_named(tmp_path: Path) -> None:
    command("run", "-w", "uniform:requests=500,size=2KiB", "--out", tmp_path / "x", "-q")
    assert (found := command("rerun", tmp_path / "x", "--check")).returncode == 0, found.stderr
    assert "the same results (the same build)" in found.stdout
    record = json.loads((tmp_path / "x/run.json").read_text())
    record["host"]["writes"] += 1
    record["results_digest"] = "sha256:" + "0" * 64
    (tmp_path / "x/run.json").write_text(json.dumps(record))
    found = command("rerun", tmp_path / "x", "--check")
    assert found.returncode == 1 and "host.writes: 501 before, 500 now" in found.stdout


@pytest.mark.long
def test_another_trace_is_refused(tmp_path: Path, trace: Path) -> None:
    command("run", "-t", trace, "-d", "tlc-small", "--out", tmp_path / "x", "-q")
    trace.write_text(trace.read_text() + "0,0,4096,r,9\n")
    found = command("rerun", tmp_path / "x")
    assert found.returncode == 2 and "this is not the file that the run read" in found.stderr
    trace.unlink()
    assert "no such file" in command("rerun", tmp_path / "x").stderr


@pytest.mark.long
def test_a_bundle_runs_elsewhere(tmp_path: Path, trace: Path) -> None:
    out = command(
        *("compare", "-t", trace, "-d", "tlc-small", "--precondition", f"trace:{trace}"),
        *("--vary", "ftl.victim=greedy,fifo", "--out", tmp_path / "x", "-q"),
    )
    assert out.returncode == 0, out.stderr
    for target in ("one.zip", "two.zip"):
        assert command("bundle", tmp_path / "x", "-o", tmp_path / target).returncode == 0
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        assert [n for n in archive.namelist() if n.startswith("inputs/")] == ["inputs/some.spc"]
    trace.unlink()
    found = command("rerun", tmp_path / "one.zip", "--check", cwd=tmp_path)
    assert found.returncode == 0 and found.stdout.count("the same results") == 2, found.stderr
    with pytest.raises(flashatlas.InputError, match="not a bundle"):
        unpack(tmp_path / "x/01/run.json", tmp_path / "y")


def test_a_record_alone_finds_its_inputs(tmp_path: Path, trace: Path) -> None:
    """The record has the digest of each file, so its folder and its name do not matter."""
    other = tmp_path / "b.spc"
    other.write_text("0,0,4096,w,0.5\n0,8,4096,r,0.6\n")
    begin = tmp_path / "begin.spc"
    begin.write_text("0,0,8192,w,0\n")
    source = f"merge:{trace};{other}"
    result = flashatlas.run("tlc-small", trace=source, precondition=f"trace:{begin}")
    result.save(tmp_path / "out")
    alone = tmp_path / "mail/run.json"
    alone.parent.mkdir()
    shutil.copy(tmp_path / "out/run.json", alone)
    elsewhere = tmp_path / "there/deep"
    elsewhere.mkdir(parents=True)
    trace.rename(elsewhere / "renamed.csv")
    other.rename(elsewhere / other.name)
    (tmp_path / "apart").mkdir()
    begin = begin.rename(tmp_path / "apart" / begin.name)
    (elsewhere / "decoy.spc").write_text("0,0,4096,w,0\n")
    lonely = Result.load(alone)
    with pytest.raises(
        flashatlas.InputError, match=r"some\.spc: there is no such file.*for " r"a bundle"
    ):
        rerun(lonely)
    with pytest.raises(flashatlas.InputError, match=r"read 2 files .*`inputs=DIR` finds each"):
        rerun(lonely, trace=elsewhere / "renamed.csv")
    with pytest.raises(
        flashatlas.InputError, match=r"begin\.spc: there is no such " r"file.*precondition"
    ):
        rerun(lonely, inputs=elsewhere.parent)
    begin.rename(elsewhere / begin.name)
    assert differences(result, rerun(lonely, inputs=elsewhere.parent)) == []
    with pytest.raises(
        flashatlas.InputError, match=r"no file below .* has this digest; if you do not"
    ):
        rerun(lonely, inputs=tmp_path / "mail")
    with pytest.raises(flashatlas.InputError, match="nowhere: there is no such folder"):
        rerun(lonely, inputs=tmp_path / "nowhere")
    # the record has no digest of the precondition's file, so files of the same name are ambiguous
    (tmp_path / "there" / begin.name).write_text("0,0,4096,w,0\n")
    with pytest.raises(flashatlas.InputError, match="several files have the name"):
        rerun(lonely, inputs=elsewhere.parent)


def test_what_came_through_a_pipe_is_named_for_a_rerun(
    tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trace.open("rb") as pipe:
        piped = subprocess.run(
            [*FLASHATLAS, "run", "-t", "-", "-d", "tlc-small", "--out", str(tmp_path / "x"), "-q"],
            stdin=pipe, capture_output=True, check=True,
        )  # fmt: skip
    assert piped.returncode == 0
    before = Result.load(tmp_path / "x")
    with pytest.raises(flashatlas.InputError, match=r"standard input .* which was not kept; give"):
        rerun(before)
    assert differences(before, rerun(before, trace=trace)) == []
    trace.write_text(trace.read_text() + "0,0,4096,r,9\n")
    with pytest.raises(
        flashatlas.InputError, match="this is not the file that the run read: its digest is"
    ):
        rerun(before, trace=trace)


def test_a_generator_has_no_trace_to_be_named(trace: Path) -> None:
    result = flashatlas.run(workload="sequential:requests=20,size=2KiB")
    with pytest.raises(
        flashatlas.InputError, match="the run read no file: its requests came from a"
    ):
        rerun(result, trace=trace)


def test_a_study_is_packed_and_run_elsewhere(tmp_path: Path, trace: Path, cli: Any) -> None:
    (tmp_path / "s.toml").write_text(
        f'name = "s"\nstore = "kept"\n[run]\ndrive = "tlc-small"\ntrace = "{trace}"\n'
        '[axes]\nftl.victim = ["greedy", "fifo"]\n'
    )
    cli("sweep", "s.toml", "--shard", "1/2", "-q")
    halfway = cli("bundle", "kept:s")
    assert halfway.returncode == 2
    assert "1 of the 2 runs of `s` are done: carry out the others first" in halfway.stderr
    assert not (tmp_path / "s.zip").exists()
    cli("sweep", "s.toml", "-q")
    packed = cli("bundle", "kept:s")
    assert packed.returncode == 0 and "2 runs, 1 input file" in packed.stdout, packed.stderr
    again = cli("rerun", "kept:s", "--check")
    assert [line.split(":")[0] for line in again.stdout.splitlines()] == ["greedy", "fifo"]
    shutil.rmtree(tmp_path / "kept")
    trace.unlink()
    again = cli("rerun", "s.zip", "--check")
    assert again.returncode == 0 and again.stdout.count("the same results") == 2, again.stderr


def test_a_job_file_that_names_others_is_not_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "part.fio").write_text("size=16k\n")
    job = tmp_path / "job.fio"
    job.write_text("[job]\nrw=write\ninclude part.fio\n")
    monkeypatch.chdir(tmp_path)
    result = flashatlas.run(job="job.fio")
    with pytest.raises(flashatlas.InputError, match=r"job\.fio:3: `include part.fio`"):
        bundle([result], tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


@pytest.mark.long
def test_what_runs_used_is_cited(tmp_path: Path) -> None:
    command(
        *("compare", "--schemes", "fast,page", "-d", "mast-4gb", "--out", tmp_path, "-q"),
        *("-w", "uniform:requests=50"),
    )
    cited = command("cite", tmp_path).stdout
    assert all(name in cited for name in ("@software{flashatlas", "Lee, Sang-Won", "Desnoyers"))
    assert "MAST" not in cited


def test_every_paper_of_the_registries_is_cited() -> None:
    known = flashatlas.registries()
    parts = {
        f"{registry}/{entry['name']}": entry["paper"]
        for registry in ("schemes", "maps", "caching", "victims", "classifiers", "layers")
        for entry in known[registry]
    }
    with_paper = {part for part, paper in parts.items() if any(c.isdigit() for c in paper)}
    assert set(citations.references()) == with_paper
    for part, entry in citations.references().items():
        years = [word for word in entry.split() if word.strip("{},").isdigit()]
        named = [y.strip("{},") for y in years if len(y.strip("{},")) == 4]
        assert not named or any(year in parts[part] for year in named), part


def test_the_type_and_the_schema_are_one() -> None:
    def of(kind: Any) -> Any:
        if is_typeddict(kind):
            inner = {key: of(value) for key, value in get_type_hints(kind).items()}
            return inner, sorted(kind.__required_keys__)
        if get_origin(kind) is dict:
            return "object"
        if get_origin(kind) is list:
            return "array"
        if get_args(kind):
            return sorted(of(part) for part in get_args(kind))
        names = {str: "string", int: "integer", float: "number", bool: "boolean"}
        return names.get(kind, "null")

    def schema_of(part: dict[str, Any]) -> Any:
        if "properties" in part:
            inner = {key: schema_of(value) for key, value in part["properties"].items()}
            return inner, sorted(part["required"])
        if "const" in part:
            return "string"
        if "anyOf" in part:
            return sorted(schema_of(one) for one in part["anyOf"])
        return part["type"] if isinstance(part["type"], str) else sorted(part["type"])

    assert of(Record) == schema_of(SCHEMA)


def test_streams_that_were_drawn_from_are_named() -> None:
    def drawn(**options: Any) -> list[str]:
        return flashatlas.run(**options).record["random_streams"]

    assert drawn(workload="sequential:requests=50,size=2KiB") == []
    uniform = "uniform:requests=2000,size=2KiB"
    assert drawn(workload=uniform) == ["workload.addresses"]
    by_chance = drawn(workload=uniform, set={"ftl.victim": "random"}, precondition="fill")
    assert by_chance == ["ftl.victim", "workload.addresses"]
    result = flashatlas.run(workload="sequential:requests=50,size=2KiB")
    assert "nothing-drawn" in [note["code"] for note in result.record["approximations"]]


def test_a_run_of_a_comparison_names_the_streams_of_its_own_precondition() -> None:
    cases = [{"set": {"host.queue_depth": depth}} for depth in (4, 8)]
    options = {"workload": "sequential:requests=50,size=2KiB", "precondition": "steady"}
    (shared, _), alone = flashatlas.compare(cases, **options), flashatlas.run(**options)
    assert shared.record["random_streams"] == alone.record["random_streams"]
    assert shared.record["random_streams"] == ["precondition.steady"]


def test_signals_between_two_submissions_stop_the_runs_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    submit = ThreadPoolExecutor.submit

    def interrupted(pool: ThreadPoolExecutor, task: Callable[[Progress], Any], /, *of: Any) -> Any:
        if begun.is_set():
            raise KeyboardInterrupt
        future = submit(pool, task, *of)
        begun.wait(60)
        return future

    def endless(report: Progress) -> None:
        begun.set()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            report("measured", 0, None)

    begun = threading.Event()
    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    workers = Workers(2, None)
    workers.add(0, endless)
    workers.add(1, endless)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        workers.wait()
    assert time.monotonic() - started < 30


def test_terminated_runs_leave_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    arguments = ["compare", "-d", "tlc-small", "-w", "uniform:requests=50000000", "-q"]
    arguments += ["--precondition", "steady", "--vary", "ftl.victim=greedy,fifo"]
    process = subprocess.Popen(
        [*FLASHATLAS, *arguments], env=environment, stderr=subprocess.PIPE, text=True
    )
    folder = Path(tempfile.gettempdir())
    for _ in range(300):
        if any(tmp_path.glob("flashatlas-*")):
            break
        time.sleep(0.1)
    assert any(tmp_path.glob("flashatlas-*")), folder
    process.send_signal(signal.SIGTERM)
    try:
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 143 and "terminated" in said
    assert not any(tmp_path.glob("flashatlas-*"))


def test_a_log_that_a_job_replays_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log lies beside the job file; its digest is recorded, checked and packed."""
    (tmp_path / "jobs/logs").mkdir(parents=True)
    log, job = tmp_path / "jobs/logs/three.log", tmp_path / "jobs/replay.fio"
    log.write_text(
        "fio version 2 iolog\n/dev/x add\n/dev/x open\n/dev/x write 0 4096\n"
        "/dev/x read 0 4096\n/dev/x trim 0 4096\n/dev/x close\n"
    )
    job.write_text("[replay]\ndirect=1\nread_iolog=logs/three.log\n")
    monkeypatch.chdir(tmp_path)
    result = flashatlas.run(job="jobs/replay.fio")
    host = result.record["host"]
    assert (host["writes"], host["reads"], host["trims"]) == (1, 1, 1)
    (named,) = result.record["trace"]["named"]
    assert named == {
        "path": "jobs/logs/three.log",
        "digest": f"sha256:{hashlib.sha256(log.read_bytes()).hexdigest()}",
    }
    result.save(tmp_path / "out")
    assert rerun(Result.load(tmp_path / "out")).record["trace"]["named"][0]["digest"]
    bundle([result], tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        inputs = [name for name in archive.namelist() if name.startswith("inputs/")]
    assert inputs == ["inputs/logs/three.log", "inputs/replay.fio"]
    log.write_text(log.read_text().replace("4096\n/dev/x read", "8192\n/dev/x read"))
    with pytest.raises(
        flashatlas.InputError, match=r"three\.log: this is not the file that " r"the run read"
    ):
        rerun(Result.load(tmp_path / "out"))
    with pytest.raises(
        flashatlas.InputError, match=r"three\.log: this is not the file that " r"the run read"
    ):
        bundle([result], tmp_path / "y.zip")
    (folder,) = unpack(tmp_path / "x.zip", tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "jobs")
    # the job file is found by its digest; its logs lie beside it
    found = rerun(Result.load(tmp_path / "out"), inputs=tmp_path / "elsewhere")
    assert found.record["results_digest"] == result.record["results_digest"]
    lone = tmp_path / "lone"
    lone.mkdir()
    shutil.copy(folder / "inputs/replay.fio", lone)
    with pytest.raises(flashatlas.InputError, match="and lies beside the logs that it replays"):
        rerun(Result.load(tmp_path / "out"), inputs=lone)
    again = rerun(Result.load(folder))
    assert again.record["results_digest"] == result.record["results_digest"]


def test_a_log_that_lies_elsewhere_is_not_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "a.log").write_text("fio version 2 iolog\nf read 0 4096\n")
    (tmp_path / "jobs/j.fio").write_text("[j]\nread_iolog=a.log\n")
    monkeypatch.chdir(tmp_path)
    # as in fio, the path begins at the current folder
    result = flashatlas.run(job="jobs/j.fio")
    assert result.record["trace"]["named"][0]["path"] == "a.log"
    with pytest.raises(flashatlas.InputError, match=r"`read_iolog=a.log` does not lie beside"):
        bundle([result], tmp_path / "x.zip")
    (tmp_path / "a.log").unlink()
    with pytest.raises(flashatlas.InputError, match="no such file beside the job file or in the"):
        flashatlas.run(job="jobs/j.fio")
