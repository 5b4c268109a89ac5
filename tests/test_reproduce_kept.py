"""An experiment keeps its runs by default: an interruption loses no finished run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from flashatlas.reproduce import runs
from flashatlas.reproduce.protocol import HERE, Experiment, Kept
from flashatlas.running import api
from flashatlas.sweep import identity
from flashatlas.sweep.store import Store

COMMON = {"drive": "tiny", "precondition": "fill", "workload": "uniform:requests=500,size=2KiB"}
CASES = [
    *({"label": f"read {us}", "set": [f"timing.t_read={us}us"]} for us in (40, 50, 60)),
    {"label": "fifo", "set": ["ftl.victim=fifo"]},
    {"label": "fifo again", "set": ["ftl.victim=fifo"]},
]
"""The first three share a preconditioned drive, because timing does not change the drive. The last
two are the same."""


@pytest.fixture
def kept(tmp_path):
    return Kept(tmp_path / "store", "some", "Some runs", HERE)


@pytest.fixture
def carried(monkeypatch):
    """Return the list of the last settings of all runs that are carried out."""
    made: list[str] = []
    whole = api.carried_out_from

    def counted(spec, checkpoint, progress):
        made.append(spec["set"][-1])
        return whole(spec, checkpoint, progress)

    monkeypatch.setattr(api, "carried_out_from", counted)
    return made


def texts(results):
    return [json.dumps(result.record) for result in results]


def test_results_are_those_of_memory_whatever_was_there(kept, carried):
    in_memory = runs.carried_out(CASES, **COMMON)
    carried.clear()
    told = []
    first = runs.carried_out(CASES, kept=kept, progress=lambda *at: told.append(at), **COMMON)
    assert len(carried) == 4, "of five runs two are the same"
    assert texts(first) == texts(in_memory)
    assert [each.label for each in first] == [case["label"] for case in CASES]
    assert {run for run, phase, *_ in told if phase == "check"} == set(range(5))
    told.clear()
    again = runs.carried_out(CASES, kept=kept, progress=lambda *at: told.append(at), **COMMON)
    assert len(carried) == 4 and texts(again) == texts(in_memory)
    assert told == [(run, "there", 0, 1.0) for run in range(5)]
    # one of the runs that share a drive is removed: its new record still says that it was shared
    store = Store.open(kept.root)
    store.remove([kept.keys[1]])
    assert texts(runs.carried_out(CASES, kept=kept, **COMMON)) == texts(in_memory)
    assert carried[4:] == ["timing.t_read=50us"]
    assert "precondition-shared" in texts(again)[1]


def test_an_interruption_keeps_what_is_done(kept, carried):
    def stop(run, phase, *_):
        if run == 3 and phase != "precondition":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runs.carried_out(CASES, kept=kept, jobs=1, progress=stop, **COMMON)
    assert kept.done() == 3
    before = len(carried)
    runs.carried_out(CASES, kept=kept, jobs=1, **COMMON)
    assert carried[before:] == ["ftl.victim=fifo"] and kept.done() == 4


def test_nothing_stale_is_taken(kept, carried, monkeypatch, trace):
    cases = [{"label": "one"}]
    common = {"drive": "tiny", "trace": str(trace)}
    runs.carried_out(cases, kept=kept, set=["ftl.victim=fifo"], **common)
    runs.carried_out(cases, kept=kept, set=["ftl.victim=fifo"], **common)
    assert len(carried) == 1
    runs.carried_out(cases, kept=kept, set=["ftl.victim=greedy"], **common)
    assert len(carried) == 2, "another setting"
    trace.write_text(trace.read_text().replace("8192", "4096", 1) + trace.read_text())
    runs.carried_out(cases, kept=kept, set=["ftl.victim=greedy"], **common)
    assert len(carried) == 3, "another content under the same name"
    monkeypatch.setattr(identity, "build", lambda: {"sources": "of another build"})
    runs.carried_out(cases, kept=kept, set=["ftl.victim=greedy"], **common)
    assert len(carried) == 4, "another build"


def test_lookups_are_kept_too(kept, monkeypatch):
    asked = {f"a/{seed}": {"sets": {"lookups": 50}, "seed": seed} for seed in (1, 2)}
    in_memory = runs.looked_up(asked)
    told = []
    assert runs.looked_up(asked, kept=kept, told=told.append) == in_memory
    assert max(told) == 2 and kept.done() == 2
    monkeypatch.setattr("flashatlas.sweep.lookups.carried_out", None)
    assert runs.looked_up(asked, kept=kept) == in_memory


@dataclass
class Fake:
    """An experiment of a few runs, as :class:`flashatlas.reproduce.protocol.Planned`."""

    stop: bool = True
    workloads: list = field(default_factory=list)
    results: list = field(default_factory=list)

    @property
    def labels(self):
        return [case["label"] for case in CASES]

    def carry_out(self, *, jobs, progress, kept):
        def told(run, phase, *more):
            if self.stop and run == 3 and phase != "precondition":
                raise KeyboardInterrupt
            progress(run, phase, *more)

        self.results = runs.carried_out(CASES, jobs=1, progress=told, kept=kept, **COMMON)
        return self

    def to_json(self):
        return {"waf": [result.waf for result in self.results]}


@pytest.fixture
def fake(monkeypatch):
    made = Fake()
    monkeypatch.setattr(Experiment, "plan", lambda *_, **__: made)
    monkeypatch.setattr(Experiment, "listings", lambda *_: [])
    return made


def test_the_command_goes_on_where_it_was_stopped(cli, tmp_path, fake, carried):
    stopped = cli("reproduce", "mast")
    assert stopped.returncode == 130
    said = (
        "error: interrupted; 3 runs are done and in flashatlas-results; the same command continues"
    )
    assert stopped.stderr.strip().splitlines()[-1] == said
    fake.stop, before = False, len(carried)
    done = cli("reproduce", "mast", "--json", "kept.json")
    assert done.returncode == 0, done.stderr
    assert len(carried) == before + 1
    assert cli("reproduce", "mast", "--json", "none.json", "--no-store").returncode == 0
    assert (tmp_path / "kept.json").read_bytes() == (tmp_path / "none.json").read_bytes()
    assert "mast" in cli("results", "ls", "flashatlas-results").stdout


def test_nothing_is_kept_where_nothing_is_wanted_or_can_be(cli, tmp_path, fake):
    stopped = cli("reproduce", "mast", "--no-store")
    assert "interrupted; nothing was written" in stopped.stderr
    assert not (tmp_path / "flashatlas-results").exists()
    both = cli("reproduce", "mast", "--no-store", "--store", "x")
    assert both.returncode == 2 and "--no-store and --store: give one" in both.stderr
    (tmp_path / "flashatlas-results").mkdir()
    (tmp_path / "flashatlas-results/mine.txt").write_text("mine")
    fake.stop = False
    done = cli("reproduce", "mast")
    assert done.returncode == 0
    assert "not a store of results" in done.stderr and "are not saved (--store DIR)" in done.stderr
    assert [path.name for path in (tmp_path / "flashatlas-results").iterdir()] == ["mine.txt"]
