"""The report as text: what it holds, how large it is, how long it takes, and that no name breaks it."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import flashatlas
import pytest
from flashatlas.report import render, write_report


@pytest.fixture(scope="module")
def results():
    cases = [{"label": policy, "set": {"ftl.victim": policy}} for policy in ("greedy", "fifo")]
    return flashatlas.compare(cases, workload="uniform:requests=4000,size=2KiB,read=0.3", precondition="fill")


def test_every_section_is_there_and_reachable(results):
    page = render("Two policies", results)
    sections = re.findall(r"<section id='(\w+)'", page)
    wanted = ["summary", "amplification", "latency", "time", "work", "wear", "memory", "runs", "explorer", "glossary"]
    assert sections == wanted
    assert all(f"<a href='#{name}'>" in page for name in wanted)
    assert f"{results[0].waf:.3f}" in page and "ftl.victim" in page


def test_it_loads_nothing(results):
    page = render("Two policies", results)
    head, rest = page.split("<style>", 1)
    assert "default-src 'none'" in head and "unsafe-eval" not in head
    markup = re.sub(r"(<script[^>]*>).*?</script>", r"\1", page, flags=re.DOTALL)
    assert not re.search(r"<(link|img|iframe|script)[^>]*(src|href)=['\"](?!data:)", markup)
    assert "url(" not in rest.split("</style>", 1)[0]


def test_approximations_stand_once_with_those_whom_they_concern(results):
    record = {**results[1].record, "approximations": [*results[1].record["approximations"], "only here"]}
    page = render("x", [results[0], replace(results[1], record=record)])
    assert page.count("ECC decoding") == 1
    assert "only here <em>(fifo)</em>" in page


def test_names_cannot_break_out(results):
    evil = "</script><script>alert(1)</script>'\"<b>"
    page = render(evil, [replace(results[0], label=evil, command=evil)])
    assert "<script>alert" not in page and "</script><script>alert" not in page
    assert "&lt;/script&gt;" in page


def test_runs_of_one_name_are_told_apart(results):
    page = render("x", [results[0], results[0]])
    assert "greedy (2)" in page


def test_results_without_tables_or_times_are_shown_all_the_same(results):
    bare = render("x", [replace(results[0], tables={})])
    assert "No time series was kept" in bare and "id='explorer'" not in bare
    untimed = flashatlas.run(workload="uniform:requests=500,size=2KiB", mode="untimed")
    page = render("x", [untimed])
    assert "the runs were untimed" in page and "id='explorer'" in page
    reads = flashatlas.run(workload="uniform:requests=500,size=2KiB,read=1", precondition="fill")
    assert "Nothing was written" in render("x", [reads])


def test_ten_runs_are_small_and_fast(results, tmp_path):
    many = [
        flashatlas.run("tlc-small", workload="uniform:requests=30000,read=0.5", precondition="steady", seed=seed)
        for seed in (1, 2)
    ] * 5
    begin = time.monotonic()
    path = write_report(tmp_path / "ten.html", "Ten runs", many)
    elapsed, size = time.monotonic() - begin, path.stat().st_size
    print(f"ten runs: {size / 1e6:.2f} MB in {elapsed:.1f} s")
    assert size < 3e6 and elapsed < 5
