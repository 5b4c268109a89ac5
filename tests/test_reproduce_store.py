"""Experiments whose runs a store keeps: the same numbers, each run once."""

from __future__ import annotations

import re
import shutil

import pytest
from conftest import ONE_IN
from drawn import LEFT
from flashatlas import InputError, reproduce
from flashatlas.sweep import execution, lookups, results, rows
from flashatlas.sweep.identity import Digests
from flashatlas.sweep.store import Store


@pytest.mark.skipif(ONE_IN > 1, reason=LEFT)
@pytest.mark.parametrize("name", ["mast", "hard"])
def test_an_experiment_is_a_study_in_a_store(tmp_path, monkeypatch, name):
    """``hard`` has job files in a folder of its own, and stacks of layers."""
    short = {"stand_ins": True, "limit": 256}
    in_memory = reproduce.carry_out(name, **short)
    seen: list[str] = []
    kept = reproduce.carry_out(
        name, **short, store=tmp_path, jobs=2, progress=lambda _, phase, *__: seen.append(phase)
    )
    assert kept.to_json() == in_memory.to_json()
    assert [r.label for r in kept.results] == [r.label for r in in_memory.results]
    store = Store.open(tmp_path)
    runs = results.frame_of(store, results.noted(store, name))
    assert set(runs.table["run"].to_pylist()) <= {r.label for r in in_memory.results}
    assert seen.count("check") >= len(runs)

    begun: list[int] = []
    monkeypatch.setattr(execution, "crew", lambda *_, **__: begun.append(1))
    again = reproduce.carry_out(name, **short, store=tmp_path)
    assert again.to_json() == in_memory.to_json() and not begun, "all runs are in the store"


@pytest.mark.long
def test_lookups_are_studies_too(tmp_path, monkeypatch, cli, dask_cluster):
    short = {"stand_ins": True, "limit": 100, "sweep": False}
    in_memory = reproduce.carry_out("lpmt", **short)
    seen: list[tuple[int, int]] = []
    kept = reproduce.carry_out(
        "lpmt", **short, store=tmp_path / "store", cluster=dask_cluster,
        progress=lambda step, _, done, __: seen.append((step, done)),
    )  # fmt: skip
    assert kept.to_json() == in_memory.to_json()
    assert (0, len(kept.studies)) in seen
    store = Store.open(tmp_path / "store")
    assert store.studies() == ["lpmt-drive", "lpmt-engine"]
    shown = cli("results", "show", "store:lpmt-engine", "--of", "ns_per_lookup").stdout
    checked = kept.studies["check/set mod 4/none"]["ns_per_lookup"]
    assert re.search(rf"check, set mod 4, none +1 +{checked:.4g}\b", shown), shown
    # rows are made from records of lookups in the same way as from runs
    before = rows.read(store).drop_columns(["made"]).sort_by("key")
    shutil.rmtree(tmp_path / "store/rows")
    assert rows.read(store).sort_by("key").select(before.column_names).equals(before)

    monkeypatch.setattr(execution, "crew", None)  # all runs are in the store
    again = reproduce.carry_out("lpmt", **short, store=tmp_path / "store")
    assert again.to_json() == in_memory.to_json()


def test_a_study_of_lookups_is_checked_before_anything_runs(tmp_path):
    digests = Digests()
    with pytest.raises(InputError, match=r"lookup\.spread"):
        lookups.run_of(
            {"run": "x"},
            {"sets": {"lookups": 9}, "set": ["lookup.banks=16", "lookup.ways=4"]},
            digests,
        )
    with pytest.raises(InputError, match=r"no-such\.csv"):
        lookups.run_of({"run": "x"}, {"trace": "no-such.csv"}, digests)
    keys = {
        lookups.run_of(
            {"run": "x"}, {"sets": {"lookups": 9}, "set": own, "seed": seed}, digests
        ).key
        for own, seed in ((["lookup.banks=4"], 1), (["lookup.banks = 4"], 1), ([], 2), ([], 1))
    }
    assert len(keys) == 2, "only the seed changes the key: four banks are the default"


def test_a_cluster_needs_a_store(cli):
    done = cli("reproduce", "mast", "--cluster", "slurm")
    assert done.returncode == 2 and "--cluster needs --store" in done.stderr
