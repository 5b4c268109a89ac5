"""The reasons of latencies: in the terminal, in the report, in a difference, in a study."""

from __future__ import annotations

import json

import flashatlas
import pytest
from flashatlas.report import write_report
from flashatlas.report.reasons import PAINTED
from flashatlas.results import reasons
from flashatlas.results.frame import Frame, table_of
from flashatlas.results.result import Result
from flashatlas.results.units import unit_of
from flashatlas.running.rerun import differences, rerun
from flashatlas.sweep.difference import difference

RUN = {
    "drive": "tiny",
    "workload": "uniform:requests=4000,size=2KiB,read=0.4",
    "precondition": "fill",
    "depth": 4,
    "explain": "p99",
}


@pytest.fixture(scope="module")
def explained() -> Result:
    return flashatlas.run(**RUN)


def test_every_reason_has_words_and_a_colour(explained):
    assert list(reasons.REASONS) == list(PAINTED)
    slow = explained.record["explain"]["ops"]["write"]
    assert set(slow["parts_ns"]) <= set(reasons.REASONS)
    shares = reasons.shares(slow)
    assert sum(shares.values()) == pytest.approx(1)
    # a full drive under random writes: the slowest wait for collection
    assert shares["collection"] + shares["erase"] > 0.8
    largest = max(shares, key=shares.__getitem__)
    assert reasons.in_words(slow).startswith(f"{reasons.REASONS[largest]} ")
    assert reasons.in_words({"mean_ns": 0, "parts_ns": {}}) == "no time"


def test_the_terminal_says_what_latencies_are_made_of(cli):
    shared = ["--precondition", "fill", "--depth", "4", "--quiet"]
    workload = ["--workload", RUN["workload"]]
    done = cli("run", "--drive", "tiny", *workload, *shared, "--explain", "p99")
    assert "from p99 on" in done.stdout and "The longest, a " in done.stdout
    done = cli(
        "compare", "--drive", "tiny", *workload, *shared,
        "--vary", "ftl.victim=greedy,fifo", "--explain", "p99",
    )  # fmt: skip
    assert done.stdout.count("from p99 on") == 4, "two runs, reads and writes"
    done = cli("run", "--drive", "tiny", *workload, *shared, "--explain", "99")
    assert done.returncode == 2 and "--explain: `99` is not a percentile" in done.stderr


def test_a_record_says_what_was_asked_and_is_run_again(explained, tmp_path):
    explained.save(tmp_path)
    again = rerun(Result.load(tmp_path))
    assert differences(explained, again) == []
    plain = flashatlas.run(**{**RUN, "explain": None})
    assert plain.record["config_hash"] == explained.record["config_hash"]
    assert differences(plain, explained) and "explain" not in plain.record


def test_a_difference_names_the_reasons_that_moved():
    def runs(collection: float, percent: float | None = 99.0) -> Frame:
        rows = []
        for seed in (1, 2, 3):
            parts = {"explain.ops.write.parts_ns.collection": collection + seed,
                     "explain.ops.write.parts_ns.program": 200.0}  # fmt: skip
            if percent is not None:
                parts["explain.percent"] = percent
            else:
                parts = {}
            numbers = {"latency_ns.write.p99": collection, "latency_ns.write.p50": collection}
            rows.append(({"seed": seed}, numbers | parts))
        return Frame(table_of(rows))

    def named(before: Frame, after: Frame, number: str) -> dict[str, float]:
        (change,) = difference(before, after, of=[number]).moved(0.01)
        return dict(change.parts)

    p99 = "latency_ns.write.p99"
    assert named(runs(1000.0), runs(1500.0), p99) == {"collection": pytest.approx(500.0)}
    # the parts explain the slowest hundredth of the requests, not the median
    assert named(runs(1000.0), runs(1500.0), "latency_ns.write.p50") == {}
    assert named(runs(1000.0), runs(1500.0, 99.9), p99) == {}
    assert named(runs(1000.0, None), runs(1500.0), p99) == {}
    for reason in reasons.REASONS:
        assert unit_of(f"explain.ops.write.parts_ns.{reason}") == "ns", reason
    assert unit_of("explain.ops.read.mean_ns") == "ns"


@pytest.mark.long
def test_a_study_keeps_the_reasons(tmp_path):
    options = {key: value for key, value in RUN.items() if key != "drive"}
    study = flashatlas.Study(
        {"ftl.victim": ["greedy", "fifo"]}, drive="tiny", store=tmp_path, **options
    )
    rows = study.run(jobs=1).rows()
    assert len(rows) == 2
    assert all(row["explain.ops.write.parts_ns.erase"] > 0 for row in rows)


@pytest.mark.long
def test_reports_draw_the_parts(explained, opened, tmp_path):
    other = flashatlas.run(**RUN, set=["ftl.victim=fifo"], label="fifo")
    for name, results in (("one", [explained]), ("two", [explained, other])):
        path = tmp_path / f"{name}.html"
        write_report(path, name, results, "test")
        page = opened(path)
        page.wait_for_selector("#figure-reasons-write svg")
        bars = page.locator("#figure-reasons-write svg .mark-rect path").count()
        groups = [result.record["explain"]["ops"]["write"] for result in results]
        if name == "one":
            groups = groups[0]["bands"]
            assert page.locator("#figure-longest svg .mark-rect path").count() >= 5
        expected = sum(len({PAINTED[reason][0] for reason in g["parts_ns"]}) for g in groups)
        assert bars == expected
    plain = flashatlas.run(**{**RUN, "explain": None})
    write_report(tmp_path / "plain.html", "plain", [plain], "test")
    assert "Parts of latencies" not in (tmp_path / "plain.html").read_text()


def test_a_record_with_reasons_is_valid_json(explained):
    found = json.loads(explained.to_json())["explain"]
    assert found["percentile"] == "p99" and len(found["longest"]) == 5
