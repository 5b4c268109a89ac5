"""Presets beside the data sheets of products: small runs, and rules worked out by hand."""

from __future__ import annotations

import json
from typing import NamedTuple

import claims
import pyarrow as pa
import pytest
from conftest import ROOT
from flashatlas import InputError, reproduce, run
from flashatlas.cli import main
from flashatlas.reproduce.drives.fills import cells, of_run
from flashatlas.reproduce.drives.plan import drives_of, plan
from flashatlas.reproduce.drives.published import Drive, Measured, compared, short, verdict
from flashatlas.reproduce.drives.tables import HEAD, listings, number
from flashatlas.reproduce.workloads import load

SMALL = ["ssd-470-256gb", "samsung-980-pro-1tb"]
PAPER = ROOT / "papers/5-drives"
WORST_FIRST = "contradicted", "direction only", "not reproducible", "by construction", "reproduced"
PUBLISHED = sorted((ROOT / "devices/published").glob("*.toml"))


@pytest.fixture(scope="module")
def made():
    return reproduce.carry_out("drives", preset=SMALL, limit=500)


def test_a_verdict_has_the_limits_of_the_experiment():
    limits = {"within": 0.15, "order": 2.0}
    for used, ours, said in (
        ("predicted", 114.9, "reproduced"),
        ("predicted", 85.1, "reproduced"),
        ("predicted", 116.0, "direction only"),
        ("predicted", 50.0, "direction only"),
        ("predicted", 200.0, "direction only"),
        ("predicted", 49.0, "contradicted"),
        ("predicted", 201.0, "contradicted"),
        ("predicted", None, "contradicted"),
        ("held back", 114.9, "reproduced"),
        ("held back", 116.0, "direction only"),
        ("tuned", 100.0, "by construction"),
        ("tuned", 116.0, "direction only"),
        ("another size", 100.0, "not reproducible"),
    ):
        assert verdict(limits, used, 100.0, ours) == said, (used, ours)
        assert said in claims.VERDICTS


def test_every_drive_with_published_numbers_is_tested():
    assert sorted(load("5-drives")["presets"]) == [path.stem for path in PUBLISHED]


def test_every_published_number_has_a_row(made):
    for name in SMALL:
        published = claims.tomllib.loads((ROOT / f"devices/published/{name}.toml").read_text())
        curve = 3 if "curve" in published else 0
        assert len(made.of(name)) == len(published["number"]) + curve
        assert [row.published for row in made.of(name)][: len(published["number"])] == [
            number["value"] for number in published["number"]
        ]


class Faked(NamedTuple):
    """A run with the numbers that a test gives it."""

    iops: float
    latency: dict[str, dict[str, float]]
    record: dict[str, float]


def test_a_number_is_compared_with_its_own_test():
    """Each run of the plan has numbers of its own: a row shows which run it was compared with."""
    planned = plan(preset=["d5-p5316-15360gb", "z-ssd-800gb"])
    tested, numbers = [], {}
    for n, (preset, test, depth, _) in enumerate(planned.runs(), 1):
        result = Faked(n, {"any": {"mean": 1000 * n}}, {"bandwidth_bytes_per_s": n * 10**6})
        tested.append(Measured(preset, test, depth, result))
        size = [test["size"]] if "size" in test else []
        numbers[(preset, test["what"], *size, test["state"], depth)] = n
    rows = compared(planned.experiment, planned.drives, tested)
    d5, z = "d5-p5316-15360gb", "z-ssd-800gb"
    # sustained random writes at the published sizes, latencies at depth 1, all else at its best
    assert [row.ours for row in rows] == [
        numbers[z, "sequential-read", "fresh", 32],
        numbers[z, "sequential-write", "fresh", 32],
        numbers[z, "random-read", "fresh", 256],
        numbers[z, "random-write", "steady", 256],
        numbers[z, "random-read", "fresh", 1],
        numbers[z, "random-write", "fresh", 1],
        numbers[d5, "sequential-read", "fresh", 32],
        numbers[d5, "sequential-write", "fresh", 32],
        numbers[d5, "random-read", "fresh", 256],
        numbers[d5, "random-write", "steady", 256],
        numbers[d5, "random-write", "64KiB", "steady", 256],
    ]
    assert [row.unit for row in rows[4:6]] == ["us", "us"]


def test_the_link_of_a_drive_bounds_its_sequential_reads(made):
    # 260 MB/s are the link of the preset; a command takes time besides
    rows = [r for r in made.of("ssd-470-256gb") if r.test.startswith("sequential-read")]
    assert [row.published for row in rows] == [250, 260]
    assert all(240 < row.ours <= 260 for row in rows)


def test_a_cache_is_off_for_reads_and_blank_for_writes(made):
    own = [t for t in made.tested if t.preset == "samsung-980-pro-1tb"]
    assert {t.test["state"] for t in own} == {"fresh"}
    for one in own:
        slc = one.result.record["config"]["params"].get("ftl.slc", "none")
        assert slc == ("none" if one.test["what"].endswith("read") else "dynamic"), one.test
    assert not any(t.result.violations for t in made.tested)


def test_a_curve_that_ends_in_the_cache_has_no_end_of_it(made):
    rows = {row.test: row for row in made.of("samsung-980-pro-1tb")}
    end = rows["curve: end of the cache"]
    # 500 requests of 128 KiB are 66 MB: the cache of 113 GB is not full
    assert (end.published, end.ours, end.verdict) == (113, None, "not run")
    assert rows["mean of a whole fill"].verdict == "not run"
    assert rows["curve: behind the cache"].ours is None
    # 32 KiB in 75 + 27.3 + 0.2 us on 16 dies
    assert rows["curve: in the cache"].ours == pytest.approx(5115, rel=0.05)


def test_a_cliff_is_found_and_continued_over_the_whole_drive():
    """A drive of 64 GB with a small cache takes the place of a whole one."""
    (drive,) = drives_of(["samsung-980-pro-1tb"])
    few = ["drive.capacity=64GB", "ftl.slc_dynamic=8"]  # of 16 MiB on 16 dies: 2.15 GB
    result = run(
        "samsung-980-pro-1tb", workload="sequential:requests=24000,size=128KiB", depth=32, set=few
    )
    test = {"what": "write-curve", "state": "fresh"}
    cut = {
        "number": [n for n in drive.published["number"] if n["what"] == "fill-rate"],
        "curve": [{**drive.published["curve"][0], "until_gb": 2.15}, drive.published["curve"][1]],
    }
    small = Drive(drive.preset, 64 * 10**9, True, 1024, cut)
    fill, end, fast, slow = compared(
        load("5-drives"), [small], [Measured(drive.preset, test, 32, result)]
    )
    assert end.ours == pytest.approx(2.15, rel=0.03)
    # in the cache 32 KiB in 102.5 us, behind it 96 KiB in 1,199 + 82 us, on 16 dies
    assert fast.ours == pytest.approx(5115, rel=0.05)
    assert slow.ours == pytest.approx(1228, rel=0.1)
    seconds = end.ours / (fast.ours / 1e3) + (64 - end.ours) / (slow.ours / 1e3)
    assert fill.ours == pytest.approx(64e3 / seconds)


def test_what_cannot_be_run_is_refused():
    with pytest.raises(InputError, match="did you mean `samsung-980-pro-1tb`"):
        plan(preset=["samsung-980-pro"])
    with pytest.raises(InputError, match="plays no recorded trace"):
        plan(traces="somewhere")


def test_a_whole_fill_has_the_capacity_of_the_drive():
    def lengths(fill):
        made = plan(preset=["p1-1tb"], fill=fill).runs()
        loads = {t["what"]: o["workload"] for _, t, _, o in made if t["precondition"] == "none"}
        return {
            what: int(load.split("requests=")[1].split(",")[0]) * 131072
            for what, load in loads.items()
            if "size=128KiB" in load and what in ("write-curve", "whole-fill")
        }

    assert 0 <= 185e9 - lengths(False)["write-curve"] < 131072
    assert "whole-fill" not in lengths(False)
    # 1,000 GB by the count of the IDEMA, in whole requests
    assert 0 <= 1_000_204_886_016 - lengths(True)["whole-fill"] < 131072
    assert lengths(True)["write-curve"] == lengths(False)["write-curve"]


class Written(NamedTuple):
    """A run whose time series has constant rates in MB/s, each up to a place in GB."""

    levels: list[tuple[float, float]]

    def to_arrow(self, _):
        rows, first = [], 0.0
        for last, rate in self.levels:
            seconds = (last - first) * 1000 / rate
            rows += [(rate * 1e6 * seconds / 400, seconds / 400 * 1e9)] * 400
            first = last
        done, widths = zip(*rows, strict=True)
        ones = [1] * len(rows)
        columns = {"write_bytes": done, "write_requests": ones, "write_mean_ns": ones}
        return pa.table({**columns, "width_ns": widths})


def test_the_levels_of_a_whole_fill_are_those_that_were_written():
    """113 GB lie inside of a stretch of 5 GB, so the end of the cache is interpolated."""
    levels = [(113.0, 4000.0), (802.0, 1500.0), (1000.0, 700.0)]
    found = of_run(Measured("any", {"what": "whole-fill"}, 32, Written(levels)))
    for (end, rate), (its_end, its_rate) in zip(found.parts, levels, strict=True):
        assert end == pytest.approx(its_end, rel=0.002)
        assert rate == pytest.approx(its_rate, rel=0.002)
    seconds = 113 / 4 + 689 / 1.5 + 198 / 0.7
    assert found.mean == pytest.approx(1e6 / seconds, rel=0.001)
    row = cells("any", "ours", found)[2:]
    assert row == ("113 GB", "4,000 MB/s", "1,500 MB/s", "802 GB", "700 MB/s", "1,298 MB/s")


def test_a_whole_fill_without_folding_has_two_levels():
    found = of_run(Measured("any", {}, 32, Written([(42.0, 3360.0), (1000.0, 2000.0)])))
    row = cells("any", "ours", found)[2:]
    assert row[:5] == ("42 GB", "3,360 MB/s", "2,000 MB/s", "–", "–")


def test_the_command_and_the_report(made, monkeypatch, tmp_path, capsys):
    argv = ["flashatlas", "reproduce", "drives", "--preset", "ssd-470-256gb", "--limit", "200"]
    monkeypatch.setattr("sys.argv", [*argv, "--no-store", "-q", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == 0
    found = json.loads((tmp_path / "out/drives.json").read_text())
    assert [row["published"] for row in found["rows"]] == [250, 220, 260, 260]
    assert "TechRadar" in capsys.readouterr().out
    assert (tmp_path / "out/report.html").is_file()
    titles = [table.title for table in listings(made)]
    assert titles[1:3] == [name for name in load("5-drives")["presets"] if name in SMALL]


def test_a_source_is_short_in_a_table():
    assert short("Digit, review of the 970 EVO Plus") == "Digit"
    assert short("Neowin (excerpt)") == "Neowin"


def test_the_kept_tables_have_every_published_number():
    """A number that changes in ``devices/published`` needs a new run of the experiment."""
    tables = {table["title"]: table for table in claims.results(PAPER)["listings"]}
    for drive in drives_of(load("5-drives")["presets"]):
        numbers = [(n["value"], n["unit"]) for n in drive.published["number"]]
        if parts := drive.published.get("curve", [])[:2]:
            numbers += [(parts[0]["until_gb"], "GB")]
            numbers += [(part["mb_per_s"], "MB/s") for part in parts]
        kept = [cells[1] for cells in tables[drive.preset]["rows"]]
        assert kept == [number(*one) for one in numbers]


def test_each_published_number_has_a_claim_with_the_worst_verdict():
    tables = {table["title"]: table for table in claims.results(PAPER)["listings"]}
    found = claims.tomllib.loads((PAPER / "claims.toml").read_text())["claim"]
    claimed = []
    for claim in found:
        verdicts = []
        for title, test, published, _ in claim["ours"]:
            rows = [row for row in tables[title]["rows"] if row[:2] == [test, published]]
            verdicts += [row[HEAD.index("verdict")] for row in rows]
            claimed.append((title, test, published))
        assert claim["verdict"] == min(verdicts, key=WORST_FIRST.index), claim["says"]
    every = [
        (title, *row[:2])
        for title, table in tables.items()
        if tuple(table["head"]) == HEAD
        for row in table["rows"]
    ]
    assert sorted(claimed) == sorted(every)
