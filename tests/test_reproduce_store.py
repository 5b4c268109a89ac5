"""Experiments whose runs a store keeps: the same numbers, each run once."""

from __future__ import annotations

import pytest
from conftest import ONE_IN
from flashatlas import InputError, reproduce
from flashatlas.sweep import execution, results
from flashatlas.sweep.store import Store

NAME = "hard" if ONE_IN == 1 else "mast"
"""``hard`` has job files in a folder of its own, and stacks of layers, and takes a minute."""


def test_an_experiment_is_a_study_in_a_store(tmp_path, monkeypatch):
    short = {"stand_ins": True, "limit": 256}
    in_memory = reproduce.carry_out(NAME, **short)
    seen: list[str] = []
    kept = reproduce.carry_out(
        NAME, **short, store=tmp_path, jobs=2, progress=lambda _, phase, *__: seen.append(phase)
    )
    assert kept.to_json() == in_memory.to_json()
    assert [r.label for r in kept.results] == [r.label for r in in_memory.results]
    store = Store.open(tmp_path)
    runs = results.frame_of(store, results.noted(store, NAME))
    assert set(runs.table["run"].to_pylist()) <= {r.label for r in in_memory.results}
    assert seen.count("check") >= len(runs)

    begun: list[int] = []
    monkeypatch.setattr(execution, "crew", lambda *_, **__: begun.append(1))
    again = reproduce.carry_out(NAME, **short, store=tmp_path)
    assert again.to_json() == in_memory.to_json() and not begun, "all of it is there"


def test_what_no_store_keeps_says_so(tmp_path, cli):
    with pytest.raises(InputError, match="lookups, which are no runs of a drive"):
        reproduce.carry_out("lpmt", stand_ins=True, limit=100, store=tmp_path / "store")
    assert not (tmp_path / "store").exists()
    done = cli("reproduce", "mast", "--cluster", "slurm")
    assert done.returncode == 2 and "--cluster: it needs --store" in done.stderr
