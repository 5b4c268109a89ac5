"""The Python interface."""

from __future__ import annotations

import json
import threading
import time

import flashatlas
import pytest

WORKLOAD = "hotcold:requests=3000,size=2KiB,read=0.3"


def test_a_result_has_its_most_wanted_parts():
    result = flashatlas.run(
        "tiny",
        workload=WORKLOAD,
        precondition="fill",
        set={"ftl.victim": "cost-benefit"},
        label="x",
    )
    assert result.violations == 0
    assert result.waf == result.record["waf"] > 0
    assert result.waf == pytest.approx(sum(result.record["waf_parts"].values()))
    assert (
        result.latency["read"]["p50"]
        <= result.latency["read"]["p99"]
        <= result.latency["read"]["max"]
    )
    assert result.iops == result.record["iops"]
    assert json.loads(result.to_json()) == result.record
    assert repr(result).startswith("<Result x: WAF ")


def test_settings_may_be_a_mapping_or_a_list():
    as_list = flashatlas.run(workload=WORKLOAD, set=["ftl.wear_static=true", "ftl.low_water=3"])
    as_mapping = flashatlas.run(
        workload=WORKLOAD, set={"ftl.wear_static": True, "ftl.low_water": 3}
    )
    assert as_list.record["config_hash"] == as_mapping.record["config_hash"]


def test_compare_keeps_the_order_and_checks_every_case_first():
    cases = [{"label": v, "set": {"ftl.victim": v}} for v in ("random", "greedy", "fifo")]
    results = flashatlas.compare(cases, workload=WORKLOAD, precondition="fill", jobs=3)
    assert [r.record["config"]["params"]["ftl.victim"] for r in results] == [
        "random",
        "greedy",
        "fifo",
    ]
    begin = time.monotonic()
    with pytest.raises(flashatlas.InputError, match="gredy"):
        flashatlas.compare(
            [*cases, {"set": {"ftl.victim": "gredy"}}], workload="uniform:requests=100000000"
        )
    assert time.monotonic() - begin < 5, "the mistake was found before the long runs began"


def test_compare_takes_drives_that_keep_bytes():
    cases = [{"set": {"timing.t_read": read}} for read in ("25us", "30us")]
    options = {"workload": WORKLOAD, "precondition": "fill", "set": {"nand.data": "ram"}}
    assert [r.violations for r in flashatlas.compare(cases, **options)] == [0, 0]


def test_errors_are_of_their_kind():
    with pytest.raises(flashatlas.InputError):
        flashatlas.run("nodrive", workload=WORKLOAD)
    with pytest.raises(flashatlas.DriveError):
        flashatlas.run(  # it wears out in the warm-up
            workload="uniform:requests=100000,size=2KiB",
            warmup=90000,
            precondition="fill",
            set={"nand.endurance": 1},
        )
    assert issubclass(flashatlas.InputError, flashatlas.FlashAtlasError)


def test_progress_is_reported_and_can_stop_a_run():
    seen = []

    def progress(phase, requests, share):
        seen.append((phase, requests, share))
        if phase == "run" and requests > 10_000:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        flashatlas.run(workload="uniform:requests=1000000000,size=2KiB", progress=progress)
    assert any(share is not None and 0 < share < 1 for phase, _, share in seen if phase == "run")


def test_other_threads_run_meanwhile():
    ticks = 0
    running = threading.Event()

    def tick():
        nonlocal ticks
        while not running.is_set():
            ticks += 1
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    flashatlas.run(workload="uniform:requests=300000,size=2KiB", precondition="fill")
    elapsed = time.monotonic() - begin
    running.set()
    thread.join()
    assert ticks > elapsed / 0.005 / 10, f"{ticks} ticks in {elapsed:.2f} s"


def test_a_misspelt_option_names_the_nearest():
    with pytest.raises(TypeError, match="did you mean `precondition`"):
        flashatlas.run(workload="uniform:requests=10", precondtion="fill")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean `workload`"):
        flashatlas.compare([{"worklaod": "uniform"}])


def test_a_drive_with_few_blocks_says_that_streams_cost_some():
    def notes(*settings: str) -> str:
        options = {"workload": "hotcold:requests=100,size=4KiB", "mode": "untimed"}
        record = flashatlas.run("tlc-small", set=list(settings), **options).record
        return " ".join(note["text"] for note in record["approximations"])

    two = ("ftl.streams=2", "ftl.classifier=dac")
    assert "more than a quarter of a lane's spare blocks" in notes(*two)
    assert "spare blocks" not in notes()
    assert "spare blocks" not in notes(*two, "drive.logical_pages=300000")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"precondition": True},
            "precondition: True is of type bool, but must be one of the words",
        ),
        ({"depth": "4"}, "depth: '4' is of type str, but must be a whole number"),
        ({"depth": True}, "depth: True is of type bool, but must be a whole number"),
        ({"seed": 1.5}, "seed: 1.5 is of type float, but must be a whole number"),
        ({"fingerprint": 1}, "fingerprint: 1 is of type int, but must be True or False"),
        ({"set": {"ftl.victm": "x"}}, "set: ftl.victm: no such key; did you mean `ftl.victim`?"),
    ],
)
def test_python_is_told_in_python(options, words):
    with pytest.raises(flashatlas.InputError) as caught:
        flashatlas.run("tiny", workload="uniform:requests=100", **options)
    assert str(caught.value).startswith(words)


def test_a_folder_that_is_written_anew_has_no_record_meanwhile(tmp_path, monkeypatch):
    """If the process is killed in between, no old record lies beside new tables."""
    options = {"workload": "uniform:requests=100,size=2KiB"}
    flashatlas.run("tiny", **options).save(tmp_path)
    written = []

    def watched(temporary, path):
        written.append((path.name, (tmp_path / "run.json").exists()))

    monkeypatch.setattr("flashatlas.files.os.replace", watched)
    flashatlas.run("tiny", seed=2, **options).save(tmp_path)
    assert written[-1][0] == "run.json" and len(written) > 2
    assert not any(there for _, there in written)
