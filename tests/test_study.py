"""The study of the examples: a figure, a table and a sentence, as a script and in a notebook."""

from __future__ import annotations

import csv
import subprocess
import sys

import flashatlas
import nbformat
import pytest
from conftest import ROOT
from flashatlas.significance import significance
from nbclient import NotebookClient


def test_the_script_writes_figure_table_and_sentences(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples/study.py"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (tmp_path / "study.pdf").read_bytes().startswith(b"%PDF")
    rows = list(csv.DictReader((tmp_path / "study.csv").open()))
    assert len(rows) == 54 and all(float(row["waf"]) > 1 for row in rows)
    found = done.stdout.splitlines()
    assert len(found) == 4, "two victims against greedy, on two traces"
    assert all("pairs" in line and "p = " in line for line in found)


def test_the_notebook_runs_in_a_kernel_and_shows_a_bar(tmp_path):
    notebook = nbformat.read(ROOT / "examples/study.ipynb", as_version=4)
    # the kernel's cells as they are, with fewer runs
    for cell in notebook.cells:
        cell.source = cell.source.replace("(1, 2, 3)", "(1,)").replace('"8KiB", ', "")
    client = NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}, timeout=300)
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    texts = [str(output.get("data", output.get("text", ""))) for output in outputs]
    assert any("ftl.victim" in text and "<table>" in text for text in texts), "the frame as a table"
    assert any("svg" in text for text in texts), "the figure"
    assert any("pairs" in text for text in texts), "the sentences"
    # the bar took its place in the output of the cell that ran, and was emptied
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
    assert "random over greedy" in found and "6 pairs" in found
    assert "p = 0.031: more than chance" in found


def test_few_pairs_and_copies_prove_nothing():
    few = [run_of(v, s) for v in ("greedy", "random") for s in (1, 2)]
    (found,) = significance(few, "waf", "ftl.victim")
    assert "2 pairs: too few to tell from chance" in found
    # no seed changes the erases of a trace's writes: six seeds are one pair
    same = "sequential:requests=3000,size=2KiB"
    start = {"workload": same, "precondition": "fill", "mode": "untimed"}
    copies = [
        flashatlas.run("tiny", set={"ftl.victim": victim}, seed=seed, **start)
        for victim in ("greedy", "fifo")
        for seed in range(1, 7)
    ]
    (found,) = significance(copies, "waf", "ftl.victim")
    assert "of 1 pair," in found and "too few" in found


def test_what_cannot_be_compared_is_said():
    results = [run_of(v, 1) for v in ("greedy", "random")]
    with pytest.raises(flashatlas.InputError, match=r"differ in `seed` \(factors: ftl\.victim"):
        significance(results, "waf", "seed")
    with pytest.raises(flashatlas.InputError, match="is no column of these runs"):
        significance(results, "wafs", "ftl.victim")
    apart = [run_of("greedy", 1), run_of("random", 2)]
    with pytest.raises(flashatlas.InputError, match="no two runs differ in nothing else"):
        significance(apart, "waf", "ftl.victim")
