"""The experiments about maps, on few requests of generated workloads."""

from __future__ import annotations

import itertools
import json

import flashatlas
import pytest
from conftest import ONE_IN
from drawn import LEFT, drawn
from flashatlas import InputError, reproduce
from flashatlas.cli import main
from flashatlas.reproduce.demand_map import page as demand_map_page
from flashatlas.reproduce.demand_map import plan as demand_map_plan
from flashatlas.reproduce.nvm_map import page as nvm_map_page
from flashatlas.reproduce.nvm_map import plan as nvm_map_plan
from flashatlas.reproduce.workloads import load

pytestmark = pytest.mark.skipif("experiments-1" not in drawn(), reason=LEFT)


@pytest.fixture(scope="module")
def nvm():
    return reproduce.carry_out("nvm-map", stand_ins=True, operations=60)


SMALL_PHONE = ["drive.blocks=96", "drive.logical_pages=1048576"]
"""The phone of the experiment has 128 GB, and takes minutes to fill under each store."""


@pytest.fixture(scope="module", autouse=True)
def small_phone():
    def small(name):
        experiment = load(name)
        for application in experiment.get("application", []):
            if application["name"] == "phone" and ONE_IN > 1:
                application["set"] = SMALL_PHONE
        return experiment

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demand_map_plan, "load", small)
        yield


@pytest.fixture(scope="module")
def demand(small_phone):
    return reproduce.carry_out(
        "demand-map", stand_ins=True, limit=800, cache_bytes=[65536, 1 << 20]
    )


@pytest.fixture
def command(monkeypatch, tmp_path, capsys):
    """Run an experiment from the command line; return its numbers and its output."""

    def run(name, *arguments):
        folder = tmp_path / name
        monkeypatch.setattr(
            "sys.argv",
            [
                "flashatlas",
                "reproduce",
                name,
                "--stand-ins",
                "--no-store",
                "-q",
                "--out",
                str(folder),
                *arguments,
            ],
        )
        with pytest.raises(SystemExit) as done:
            main()
        assert done.value.code == 0
        assert (folder / "report.html").is_file() and (folder / "01" / "run.json").is_file()
        return json.loads((folder / f"{name}.json").read_text()), capsys.readouterr().out

    return run


def test_every_map_runs_on_every_workload_without_a_wrong_page(nvm):
    experiment = load("0-hybrid-nvm")
    maps = len(experiment["baseline"]) + len(experiment["nvm"]["slots"])
    of_traces = sum(len(e["baselines"]) + len(e["slots"]) for e in experiment["trace"])
    assert len(nvm.rows) == len(experiment["workload"]) * maps + of_traces
    assert not any(row.result.violations for row in nvm.rows)
    assert all(row.result.record["host"]["flushes"] > 0 for row in nvm.rows)
    recorded = {trace.name: trace.source for trace in nvm.traces if trace.recorded}
    assert recorded == {
        "PostgreSQL": "postgres.fatr",
        "SQLite": "sqlite.fatr",
        "RocksDB": "rocksdb.fatr",
        "browser": "browser.fatr",
    }


def test_what_a_flush_costs(nvm):
    calls = 60
    for workload in ("sequential, fsync", "sequential, fdatasync"):
        ideal = nvm.row(workload, "no map written")
        # data and journal, FLUSH, commit block, FLUSH: each FLUSH programs 32 KB
        assert ideal.result.record["host"]["flushes"] == 2 * calls
        assert (ideal.per_flush["data"], ideal.per_flush["map"]) == (1, 0)
        # at the first FLUSH, the map pages of the file and of the journal have changed; at the
        # second, only the journal's map page
        assert nvm.row(workload, "map pages").per_flush["map"] == 1.5
        assert nvm.row(workload, "map pages, directory").per_flush["directory"] == 1.5
        enough = nvm.row(workload, "NVM, 1,600 slots")
        assert (enough.per_flush["map"], enough.per_flush["nvm_bytes"]) == (0, 1.5 * (32768 + 64))
        assert (
            nvm.row(workload, "NVM, none").per_flush
            == nvm.row(workload, "32 KB segments").per_flush
        )
    overwrite = nvm.row("overwrite, fdatasync", "map pages")
    assert overwrite.result.record["host"]["flushes"] == calls
    assert overwrite.per_flush["map"] == 1
    # 13,000,000 entries of 4 bytes in segments of 32 KB
    assert nvm.row("overwrite, fdatasync", "whole map").per_flush["map"] == 1587


def test_slots_fill_up_under_load_unless_something_leaves():
    """A file that grows passes through 27 segments of 512 KiB; eight slots hold the last of them.

    The other slots keep segments that do not change any more, and the newest go to flash.
    """
    own = ["map.store=nvm-hybrid", "map.segment_bytes=512", "map.unit=4KiB"]
    own += ["drive.logical_pages=1300000", "map.over_provisioning=0.2"]

    def rate(slots: int, *settings: str) -> float:
        result = flashatlas.run(
            "jasmine-64gb",
            workload="ext4-sync:operations=3400,write=append,sync=fsync,journal_size=4MiB",
            depth=1,
            set=[*own, f"nvm.bytes={slots * 576}", *settings],
        )
        return 3400 / (result.record["simulated_ns"] / 1e9)

    enough, full = rate(400), rate(8)
    assert full < 0.9 * enough
    assert rate(8, "map.nvm_evict=oldest") > 0.99 * enough
    assert rate(8, "map.nvm_evict=emptiest") > full


def test_each_state_of_a_segment_is_reached(nvm):
    reached = {name for row in nvm.policies for name, count in row.segments.items() if count}
    assert {"sparse", "dense", "full", "full, flash", "no room", "idle"} <= reached
    assert len(nvm.policies) == sum(len(e["cases"]) for e in load("0-hybrid-nvm")["policy"])


def test_more_nvm_is_never_slower_and_gains_are_ratios(nvm):
    for workload in nvm.workloads:
        sizes = [row for row in nvm.of(workload) if row.slots is not None]
        means = [row.flush_ns["mean"] for row in sizes]
        assert all(later <= before * 1.02 for before, later in itertools.pairwise(means)), (
            workload,
            means,
        )
    row = nvm.row("sequential, fsync", "NVM, 1,600 slots")
    base = nvm.row("sequential, fsync", "map pages")
    assert nvm.gain(row, "map pages") == pytest.approx(row.calls_per_s / base.calls_per_s)
    assert nvm.headline()["map pages"] >= nvm.gain(row, "map pages")
    gains = list(nvm.headline().values())
    assert gains[0] < gains[1] < gains[2], (
        "each further step that a FLUSH waits for adds to the factor"
    )


def test_the_report_and_the_command_of_nvm_map(nvm, command, monkeypatch):
    html = nvm_map_page.page(nvm, "flashatlas reproduce nvm-map")
    assert "Calls a second, with “map pages” as 1" in html
    # reuse the runs, which take a minute
    made = [row.result for row in [*nvm.rows, *nvm.policies]]
    monkeypatch.setattr(nvm_map_plan, "carried_out", lambda cases, **_: made[: len(cases)])
    numbers, printed = command("nvm-map", "--operations", "60")
    assert numbers["published_gain_max"] == 3.7
    assert {row["violations"] for row in numbers["rows"]} == {0}
    assert "Largest gain of DRAM+NVM" in printed


def test_every_store_runs_on_every_application(demand):
    stores = load("2-demand-map")["stores"]
    assert len(demand.rows) == 3 * (1 + 2 * len(stores))
    assert not any(row.result.violations for row in demand.rows)
    for row in demand.rows:
        counts = row.result.record["map"]
        if row.cache_bytes is None:
            assert (row.hit_ratio, row.reads, row.writes) == (1, 0, 0)
            continue
        assert counts["hits"] + counts["misses"] == counts["lookups"]
        assert (
            row.result.record["memory_bytes"]["tables"]["part of the map in memory"]
            == row.cache_bytes
        )
        assert counts["loads"] <= counts["misses"] + counts["update_misses"]


def test_more_memory_finds_more_entries_in_it(demand):
    # a longer LRU list of pages or entries holds everything that a shorter list holds
    for row in demand.rows:
        if row.store in ("demand", "sftl") and row.cache_bytes == 65536:
            more = next(
                r
                for r in demand.of(row.application)
                if r.store == row.store and r.cache_bytes == 1 << 20
            )
            assert more.hit_ratio >= row.hit_ratio


def test_the_report_and_the_command_of_demand_map(demand, command):
    html = demand_map_page.page(demand, "flashatlas reproduce demand-map")
    assert "Hit ratio, map traffic and latency" in html
    numbers, printed = command("demand-map", "--limit", "50", "--cache-bytes", "65536")
    assert len(numbers["rows"]) == 3 * 7
    assert "virtual machine" in printed


def test_folders_of_traces_are_named_in_errors(tmp_path):
    for name in ("nvm-map", "demand-map"):
        with pytest.raises(InputError, match="there is no such folder of traces"):
            reproduce.carry_out(name, traces=tmp_path / "missing")
