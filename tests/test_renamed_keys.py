"""Old run records are read under the names of today."""

from __future__ import annotations

import json

import flashatlas
import pytest
from flashatlas.results.renamed_keys import LAYER_COUNTERS, MAP_COUNTERS, upgraded


@pytest.mark.parametrize("names", [LAYER_COUNTERS, MAP_COUNTERS])
def test_the_names_are_one_to_one(names):
    new = list(names.values())
    assert len(set(new)) == len(new), "two old keys would become one"
    assert not set(new) & set(names), "a new key was an old one"


@pytest.fixture(scope="module")
def run():
    layers = ["layers=hard,hpb-host", "map.store=demand", "hpb.max_read=64KiB"]
    workload = "uniform:requests=50,size=16KiB"
    return flashatlas.run(drive="superpage-sata", workload=workload, set=layers)


def with_old_keys(record):
    """Return the record as an earlier version would have written it."""
    old_of = {new: old for old, new in (LAYER_COUNTERS | MAP_COUNTERS).items()}

    def back(value):
        if not isinstance(value, dict):
            return value
        return {old_of.get(key, key): back(inner) for key, inner in value.items()}

    return back(record)


def test_an_old_record_is_read_and_loses_nothing(run, tmp_path):
    old = with_old_keys(run.record)
    assert "believed" in old["layers"]["hpb-host"] and "beneath_writes" in old["layers"]["hard"]
    (tmp_path / "run.json").write_text(json.dumps(old))
    assert flashatlas.Result.load(tmp_path).record == run.record
    assert upgraded(run.record) == run.record, "a record of today is left as it is"


def test_no_run_writes_an_old_key(run):
    assert "valid_entries" in run.record["layers"]["hpb-host"]
    for counters in run.record["layers"].values():
        assert not set(counters) & set(LAYER_COUNTERS)
