"""Every declared mechanism is reached, and can be turned off where its declaration says so."""

from __future__ import annotations

import flashatlas
import mechanism_runs
import pytest
from flashatlas.running import mechanisms
from flashatlas.running.mechanisms import Fired


@pytest.fixture(scope="module")
def results() -> list[flashatlas.Result]:
    return flashatlas.compare(mechanism_runs.runs())


def test_every_mechanism_fires_in_some_run(results: list[flashatlas.Result]) -> None:
    found = mechanisms.fired(results)
    named = {(each.part, each.name) for each in found}
    declared = {
        (name, one["name"]) for name, part in mechanisms.declared() for one in part["mechanisms"]
    }
    assert named == declared, "every part has runs"
    assert not [f"{each.part}: {each.name}" for each in found if not each.count]


def test_every_scheme_store_and_layer_declares_what_its_paper_describes() -> None:
    without = [name for name, part in mechanisms.declared() if not part["mechanisms"]]
    assert not without


def test_a_mechanism_that_is_turned_off_does_not_fire_and_the_result_differs(
    results: list[flashatlas.Result],
) -> None:
    tried = mechanisms.ablations(results)
    assert len(tried) > 15
    for one in tried:
        said = f"{one.of.part}: {one.of.name}"
        assert mechanisms.counted(one.before.record, one.of.counter) > 0, said
        assert mechanisms.counted(one.after.record, one.of.counter) == 0, said
        before, after = one.before.record, one.after.record
        parts = ("nand", "latency_ns", "map", "layers")
        assert any(before.get(key) != after.get(key) for key in parts), f"{said} has no effect"


def test_the_table_marks_what_did_not_fire_and_says_what_an_absence_changes() -> None:
    of = Fired("fast", "switch merge", "merges.log_blocks.switch", (), 0, 0, 3)
    other = Fired("page", "collection in idle time", "gc.idle", ("ftl.idle_free=0",), 12, 1, 1)
    before = flashatlas.Result({"waf": 2.0, "iops": 100.0, "latency_ns": {}})
    after = flashatlas.Result({"waf": 2.1, "iops": 60.0, "latency_ns": {}})
    ablation = mechanisms.Ablation(other, before, after)
    assert mechanisms.rows([of, other], [ablation]) == [
        ("fast", "switch merge", "0 (not tested here)", "0 of 3", "–"),
        ("page", "collection in idle time", "12", "1 of 1", "requests a second -40.0 %"),
    ]
    assert str(mechanisms.Ablation(other, before, before)) == "no change"
