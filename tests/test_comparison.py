"""The table of a comparison: nothing is cut, and among unlike runs nothing is marked as best."""

from __future__ import annotations

import re

import flashatlas
import pytest
from flashatlas.names import registries
from flashatlas.report.palette import CAUSES
from flashatlas.results.rows import GROUPS, ROWS

WORKLOAD = ("-w", "uniform:requests=2000,size=2KiB", "--precondition", "fill", "-q")
NINE = (
    *("--vary", "ftl.victim=greedy,fifo,random"),
    *("--vary", "timing.t_program=200us,300us,400us"),
)


def test_a_wide_comparison_is_split_and_not_cut(cli, monkeypatch):
    whole = cli("compare", *WORKLOAD, *NINE).stdout
    assert "…" not in whole
    for name in ("greedy 200us", "random 400us", "fifo 300us"):
        assert whole.count(name) >= 1
    values = [
        value
        for line in whole.splitlines()
        if line.startswith("write amplification ")
        for value in re.findall(r"\d+\.\d+", line)
    ]
    assert len(values) == 9


def test_the_best_is_that_of_all_tables(cli):
    lines = [
        line
        for line in cli("compare", *WORKLOAD, *NINE).stdout.splitlines()
        if line.startswith("erases ")
    ]
    numbers = [re.findall(r"(\d+)( \*)?", line) for line in lines]
    flat = [(int(n), bool(star)) for row in numbers for n, star in row]
    assert len(lines) > 1
    assert {n for n, star in flat if star} == {min(n for n, _ in flat)}


def test_many_runs_have_a_row_each_and_none_is_cut(cli, monkeypatch):
    narrow = ("--vary", "seed=1,2")
    for columns in ("110", "40"):
        monkeypatch.setenv("COLUMNS", columns)
        whole = cli("compare", *WORKLOAD, *NINE, *narrow).stdout
        rows = [line for line in whole.splitlines() if re.search(r" 200us [12] ", line)]
        assert len(rows) == 6 and "…" not in whole
        assert all(re.search(r"\d\.\d{3}", row) for row in rows), "the write amplification"
    assert "violations" in whole


def test_unlike_runs_have_no_winner(cli, tmp_path):
    apart = "drive, capacity (generated requests depend on it)"
    for other, what in ((("--drive", "tlc-small"), apart), ((), "")):
        done = cli(
            "compare",
            *WORKLOAD,
            "--drive",
            "tiny",
            *other,
            "--case",
            "a:",
            "--case",
            "b:ftl.victim=random",
            "--force",
            "--out",
            str(tmp_path / "out"),
        )
        assert done.returncode == 0
        page = (tmp_path / "out" / "report.html").read_text()
        if what:
            assert " *" not in done.stdout
            assert f"the runs differ in {what}" in done.stdout and f"differ in {what}." in page
            assert "★</span>" not in page
        else:
            assert " *" in done.stdout and "differ in" not in done.stdout
            assert "★</span>" in page


def test_generated_requests_of_other_capacities_have_no_winner(cli):
    spare = ("--vary", "drive.over_provisioning=0.6,1.0")
    shown = cli("compare", *WORKLOAD, *spare).stdout
    assert " *" not in shown
    assert "the runs differ in capacity (generated requests depend on it)" in shown
    units = ("--vary", "ftl.low_water=2,3")
    assert " *" in cli("compare", *WORKLOAD, *units).stdout


def test_the_parts_of_write_amplification_add_up():
    """The parts add up in the table, the record and the report, for every scheme and map store."""
    stores = [store["name"] for store in registries()["maps"]]
    schemes = [scheme["name"] for scheme in registries()["schemes"]]
    cases = [["ftl.scheme=" + name] for name in schemes]
    cases += [[f"map.store={name}"] for name in stores]
    work = {"workload": "mixed:requests=3000,sizes=2KiB,read=0.2", "precondition": "fill"}
    seen = set()
    for settings in cases:
        result = flashatlas.run("tiny", set=settings, **work)
        parts = result.record["waf_parts"]
        assert sum(parts.values()) == pytest.approx(result.waf), settings
        rows = {row.name: row.value(result.record) for row in ROWS}
        inner = [v for name, v in rows.items() if name.startswith("  ") and name in OF_WAF and v]
        assert sum(inner) == pytest.approx(result.waf), settings
        assert set(parts) <= set(CAUSES), "the report's chart has them all"
        seen |= set(parts)
        if parts.get("map"):
            assert rows["map hit ratio"] is not None and rows["map pages written"] > 0
    assert {"cache_evict", "gc", "merge", "map"} <= seen


OF_WAF = {row.name for group, rows in GROUPS if group == "Write amplification" for row in rows}
