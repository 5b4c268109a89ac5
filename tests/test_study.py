"""The study of the examples: a figure, a table and a sentence, as a script and in a notebook."""

from __future__ import annotations

import csv
import itertools
import subprocess
import sys

import flashatlas
import nbformat
import pyarrow as pa
import pytest
from conftest import ONE_IN, ROOT
from drawn import LEFT
from flashatlas.results.frame import Frame
from flashatlas.statistics.significance import significance
from nbclient import NotebookClient


@pytest.mark.skipif(ONE_IN > 1, reason=LEFT)
def test_the_script_writes_figure_table_and_sentences(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples/study.py"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (tmp_path / "study.pdf").read_bytes().startswith(b"%PDF")
    rows = list(csv.DictReader((tmp_path / "study.csv").open()))
    assert len(rows) == 54 and all(0.5 < float(row["waf"]) < 2 for row in rows)
    # the guide shows this study: most of its runs must be steady
    assert sum(row["steady"] == "True" for row in rows) > 40
    found = done.stdout.splitlines()
    assert len(found) == 2, "two victims, each against greedy"
    assert all("of 6 repetitions of 18 pairs" in line and "p = " in line for line in found)


@pytest.mark.long
def test_the_notebook_runs_in_a_kernel_and_shows_a_bar(tmp_path):
    notebook = nbformat.read(ROOT / "examples/study.ipynb", as_version=4)
    # the notebook's cells, with fewer runs
    for cell in notebook.cells:
        cell.source = cell.source.replace("(1, 2, 3)", "(1,)").replace('"8KiB", ', "")
    client = NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}, timeout=300)
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    texts = [str(output.get("data", output.get("text", ""))) for output in outputs]
    assert any("ftl.victim" in text and "<table>" in text for text in texts), "the frame as a table"
    assert any("svg" in text for text in texts), "the figure"
    assert any("repetitions" in text for text in texts), "the sentences"
    # the progress bar appeared in the output of the running cell, and was cleared at the end
    assert any(output.output_type == "display_data" for output in outputs)


def run_of(victim, seed, **more):
    return flashatlas.run(
        "tiny",
        set={"ftl.victim": victim},
        workload="uniform:requests=20000,size=2KiB",
        precondition="fill",
        mode="untimed",
        seed=seed,
        **more,
    )


def test_a_difference_in_every_pair_is_more_than_chance():
    results = [run_of(v, s) for v in ("greedy", "random") for s in range(1, 7)]
    (found,) = significance(results, "waf", "ftl.victim")
    # all six pairs go the same way: 2 of 2^6 assignments of signs are as far from 0
    assert "random over greedy" in found and "of 6 repetitions," in found
    assert "p = 0.031: more than chance" in found


def test_few_pairs_and_copies_prove_nothing():
    few = [run_of(v, s) for v in ("greedy", "random") for s in (1, 2)]
    (found,) = significance(few, "waf", "ftl.victim")
    assert "2 repetitions: too few to tell from chance" in found
    # no seed changes the erases of a trace's writes: six seeds are one pair
    same = "sequential:requests=3000,size=2KiB"
    start = {"workload": same, "precondition": "fill", "mode": "untimed"}
    copies = [
        flashatlas.run("tiny", set={"ftl.victim": victim}, seed=seed, **start)
        for victim in ("greedy", "fifo")
        for seed in range(1, 7)
    ]
    (found,) = significance(copies, "waf", "ftl.victim")
    assert "of 1 repetition," in found and "too few" in found


def rows(**columns) -> Frame:
    """Return a frame with a row for each combination of the factors; `waf` makes the numbers."""
    waf = columns.pop("waf")
    names = list(columns)
    made = [dict(zip(names, row, strict=True)) for row in itertools.product(*columns.values())]
    fields = [
        pa.field(name, pa.array(columns[name]).type, metadata={"role": "factor"}) for name in names
    ]
    fields.append(pa.field("waf", pa.float64(), metadata={"role": "number"}))
    table = [{**row, "waf": waf(**row)} for row in made]
    return Frame(pa.Table.from_pylist(table, schema=pa.schema(fields)))


def test_caches_of_one_seed_are_one_repetition():
    """Four caches of three seeds: only the seed makes a difference between pairs."""

    def waf(victim, cache, seed):
        return 1.0 if victim == "a" else 1.0 + 0.01 * seed + 0.0001 * cache

    grid = {"victim": ["a", "b"], "cache": [1, 2, 3, 4], "waf": waf}
    (found,) = significance(rows(seed=[1, 2, 3], **grid), "waf", "victim")
    # twelve pairs would give 2 / 2^12; three repetitions give 2 / 2^3
    assert "geometric mean of 3 repetitions of 12 pairs, +1 % to +3 %" in found, found
    assert "p = 0.25: 3 repetitions: too few" in found
    (found,) = significance(rows(seed=[1, 2, 3, 4, 5, 6], **grid), "waf", "victim")
    assert "p = 0.031: more than chance" in found
    # two traces with three seeds each are six repetitions
    traced = rows(trace=["x", "y"], seed=[1, 2, 3], **{**grid, "waf": lambda trace, **k: waf(**k)})
    (found,) = significance(traced, "waf", "victim")
    assert "of 6 repetitions of 24 pairs" in found
    found = significance(traced, "waf", "victim", each=["trace", "cache"])
    assert len(found) == 8 and found[0].startswith("trace x, cache 1: waf, b over a: +2 % ")


def test_large_changes_are_said_in_times():
    (found,) = significance(
        rows(
            victim=["a", "b"], seed=[1, 2], waf=lambda victim, seed: 1.0 if victim == "a" else 3.0
        ),
        "waf",
        "victim",
    )
    assert "b over a: 3 times (geometric mean of 1 repetition, 3 times to 3 times)" in found


def test_what_cannot_be_compared_is_said():
    results = [run_of(v, 1) for v in ("greedy", "random")]
    with pytest.raises(flashatlas.InputError, match=r"differ in `seed` \(factors: ftl\.victim"):
        significance(results, "waf", "seed")
    with pytest.raises(flashatlas.InputError, match="is not a column of these runs"):
        significance(results, "wafs", "ftl.victim")
    apart = [run_of("greedy", 1), run_of("random", 2)]
    with pytest.raises(flashatlas.InputError, match="no two runs differ in this factor alone"):
        significance(apart, "waf", "ftl.victim")
