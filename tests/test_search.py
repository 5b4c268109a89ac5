"""Searches of a space: their trials, their findings, and pruning after a short run."""

from __future__ import annotations

import json
import re
import statistics

import flashatlas
import pytest
from flashatlas import InputError
from flashatlas.sweep import execution, results, search
from flashatlas.sweep.execution import Where
from flashatlas.sweep.objectives import search_of
from flashatlas.sweep.plan import planned
from flashatlas.sweep.store import Store
from flashatlas.sweep.study import defined

AXES = {
    "ftl.victim": ["greedy", "fifo", "random"],
    "map.store": ["dram", "dftl"],
    "map.cache_bytes": {"from": "4KiB", "to": "16KiB", "factor": 2, "when": 'map.store == "dftl"'},
    "seed": [1, 2],
}
RUN = {
    "drive": "tiny",
    "workload": "hotcold:requests=6000,size=2KiB",
    "precondition": "fill",
    "mode": "untimed",
}
TWO = {"minimise": ["waf", "map.flash_reads"], "trials": 40}


def study(tmp_path, **search_keys):
    return defined(AXES, store=tmp_path / "store", search={**TWO, **search_keys}, **RUN)


def carried_out(definition, jobs=2):
    store = Store.open(definition.store, create=True)
    return search.carry_out(definition, store, where=Where(jobs=jobs), keep="record"), store


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a search of 12 configurations that has time for all of them."""
    return carried_out(study(tmp_path_factory.mktemp("whole"), trials=120, sampler="random"))


@pytest.mark.long
def test_the_front_is_that_of_the_whole_space(whole, tmp_path):
    found, _ = whole
    swept = defined(AXES, store=tmp_path / "swept", **RUN)
    plan, store = planned(swept), Store.open(swept.store, create=True)
    assert len(plan.runs) == 24
    execution.carry_out(plan.runs, store, execution.Done(), keep="record")
    rows = results.frame_of(store, results.note(plan, store)).rows()
    points: dict[tuple, list] = {}
    for row in rows:
        key = (row["ftl.victim"], row["map.store"], row["map.cache_bytes"])
        points.setdefault(key, []).append((row["waf"], row["map.flash_reads"]))
    means = {key: tuple(map(statistics.fmean, zip(*v, strict=True))) for key, v in points.items()}
    best = {
        value
        for value in means.values()
        if not any(
            other != value and all(a <= b for a, b in zip(other, value, strict=True))
            for other in means.values()
        )
    }
    assert {trial.values for trial in found.front()} == best and len(best) >= 1
    assert len({trial.runs[0].key for trial in found.trials}) == 12


def test_a_trial_is_the_mean_of_its_seeds(whole):
    found, store = whole
    trial = found.trials[0]
    assert [run.axes["seed"] for run in trial.runs] == [1, 2]
    assert trial.values[0] == statistics.fmean(store.load(run.key).waf for run in trial.runs)


@pytest.mark.long
def test_a_seed_decides_what_is_tried_whatever_the_workers_are(tmp_path):
    tried = []
    for jobs in (1, 2):
        found, _ = carried_out(study(tmp_path / str(jobs), trials=10, batch=4), jobs)
        tried.append([trial.runs[0].label for trial in found.trials])
    assert tried[0] == tried[1]
    other, _ = carried_out(study(tmp_path / "1", trials=10, batch=4, seed=2))
    assert [trial.runs[0].label for trial in other.trials] != tried[0]


def test_to_begin_again_is_to_go_on(whole):
    found, _ = whole
    again, _ = carried_out(found.study)
    assert again.done.carried_out == 0
    assert [trial.values for trial in again.trials] == [trial.values for trial in found.trials]


@pytest.mark.long
def test_what_short_runs_leave_behind_has_no_whole_run(tmp_path):
    found, store = carried_out(study(tmp_path, short=1500))
    pruned = [trial for trial in found.trials if trial.pruned]
    assert pruned and len(pruned) < len(found.trials)
    shorts = []
    for trial in found.trials:
        runs = [search.Planner(found.study).run(run.axes, 1500) for run in trial.runs]
        numbers = [store.load(run.key).record for run in runs]
        assert all(record["trace"]["requests"] == 1500 for record in numbers)
        shorts.append(
            (
                statistics.fmean(record["waf"] for record in numbers),
                statistics.fmean(record["map"]["flash_reads"] for record in numbers),
            )
        )
    for trial, own in zip(found.trials, shorts, strict=True):
        better = sum(
            other != own and all(a <= b for a, b in zip(other, own, strict=True))
            for other in shorts
        )
        if trial.pruned:
            assert better >= search.BETTERED_BY and trial.values is None
    # a configuration that is pruned at each of its trials was never played to its end
    kept = {trial.runs[0].key for trial in found.trials if not trial.pruned}
    for trial in pruned:
        assert trial.runs[0].key in kept or not store.has(trial.runs[0].key)
    told = results.noted(store, found.study.name)
    assert told["search"]["pruned"] == len(pruned)
    assert {run["key"] for run in told["runs"]} == {
        run.key for trial in found.trials if not trial.pruned for run in trial.runs
    }


@pytest.mark.long
def test_most_is_sought_as_well_as_least(tmp_path):
    one = {"maximise": ["waf"], "minimise": [], "trials": 16}
    found, _ = carried_out(study(tmp_path, **one))
    values = [trial.values[0] for trial in found.trials]
    assert [trial.values[0] for trial in found.front()] == [max(values)] and max(values) > min(
        values
    )


@pytest.mark.long
def test_in_python_the_result_is_a_table_of_what_was_tried(tmp_path):
    made = flashatlas.Study(AXES, store=tmp_path, search={**TWO, "trials": 6}, **RUN)
    runs = made.run(jobs=2)
    assert set(runs.factors) == set(AXES) and 2 <= len(runs) <= 12


FILE = """
[run]
drive = "tiny"
workload = "hotcold:requests=2000,size=2KiB"
precondition = "fill"
[axes]
ftl.victim = ["greedy", "fifo"]
{axes}
[search]
{search}
"""


@pytest.mark.long
def test_the_command_shows_the_front_and_how_to_repeat_it(cli, tmp_path):
    (tmp_path / "s.toml").write_text(FILE.format(axes="", search='minimise = ["waf"]\ntrials = 6'))
    planned_only = cli("sweep", "s.toml", "--dry-run")
    assert "2 combinations; 6 are tried" in planned_only.stdout
    assert not (tmp_path / "flashatlas-results").exists()
    done = cli("sweep", "s.toml", "--report", "s.html")
    assert done.returncode == 0, done.stderr
    assert "The front: 1 configurations" in done.stdout
    command = done.stdout.split("Again: flashatlas ")[1].splitlines()[0]
    assert cli(*command.split()).returncode == 0
    noted = json.loads((tmp_path / "flashatlas-results/studies/s.json").read_text())
    assert noted["search"]["front"][0] in command
    assert "<h1>s</h1>" in (tmp_path / "s.html").read_text()
    refused = cli("sweep", "s.toml", "--shard", "0/2")
    assert refused.returncode == 2 and "a search chooses its runs" in refused.stderr


@pytest.mark.parametrize(
    ("axes", "keys", "message"),
    [
        (
            "",
            'minimize = ["waf"]',
            "s.toml:10: search.minimize: there is no such key.*did you mean `minimise`",
        ),
        ("", 'minimise = ["wav"]', "s.toml:9: search: `wav` is not a number.*did you mean `waf`"),
        ("", "trials = 3", "s.toml:9: search: there is no objective"),
        ("", 'minimise = ["waf"]\ntrials = 0', "s.toml:11: search.trials: 0 is not a count"),
        ("", 'minimise = ["waf"]\nsampler = "tp"', "s.toml:11: .*did you mean `tpe`"),
        ("nand.endurance = [0]", 'minimise = ["waf"]', "nand.endurance"),
    ],
)
def test_bad_searches_are_said(cli, tmp_path, axes, keys, message):
    (tmp_path / "s.toml").write_text(FILE.format(axes=axes, search=keys))
    done = cli("sweep", "s.toml")
    assert done.returncode == 2
    assert re.search(message, " ".join(done.stderr.split())), done.stderr


def test_a_search_looks_for_each_number_once():
    with pytest.raises(InputError, match="`waf` is given twice as an objective"):
        search_of({"minimise": ["waf"], "maximise": ["waf"]})
