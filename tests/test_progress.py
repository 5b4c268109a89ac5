"""The progress of runs, and the time to go."""

from __future__ import annotations

import time

import pytest
from flashatlas import progress
from flashatlas.progress import THERE, Bars


@pytest.fixture
def now(monkeypatch):
    """Return the clock, in seconds; a test sets it."""
    at = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: at[0])
    return at


def state(count):
    return progress._State([str(number) for number in range(count)])


def test_many_runs_have_the_time_to_go(now):
    """By hand: 5 of 20 runs take 30 s, so 15 take 90 s; runs in the store do not count."""
    found = state(20)
    assert found.line() == "0 s: 0.0 of 20 runs"
    now[0] = 30.0
    for run in range(4):
        found.update(run, "check", 10, 0.0, "requests")
    found.update(4, "run", 5, 0.5, "requests")
    found.update(5, "run", 5, 0.5, "requests")
    assert found.line() == "30 s: 5.0 of 20 runs, about 1:30 to go"
    # one run was in the store: 5 of 19 took 30 s, so 14 take 30 * 14 / 5 = 84 s
    found.update(19, THERE, 0, 1.0, "requests")
    assert found.line() == "30 s: 6.0 of 20 runs, 1 there before, about 1:24 to go"
    for run in range(20):
        found.update(run, "check", 10, 0.0, "requests")
    assert found.line() == "30 s: 20.0 of 20 runs, 1 there before"


def test_preconditioning_is_no_part_of_a_run_and_other_phases_are(now):
    """`reproduce --served` has its own phases; after 1.5 % there is no estimate yet."""
    found = state(2)
    now[0] = 10.0
    found.update(0, "precondition", 10, 0.9, "requests")
    assert found.line() == "10 s: 0: precondition, 10 requests (90%)"
    found.update(0, "run", 10, 0.03, "requests")
    assert "to go" not in found.line(), "3 of 200 %"
    found.update(0, "simulated", 10, 0.1, "requests")
    assert found.line().endswith(", about 3:10 to go")  # 10 s for 0.1 of a run; 1.9 runs to go
    # the check is the last phase: otherwise its line would stay until all runs are done
    found.update(1, "check", 10, 0.0, "requests")
    assert "; 1: done" in found.line()


def test_a_terminal_has_it_too(now, monkeypatch):
    for count in (2, 20):
        bars = Bars([str(number) for number in range(count)])
        monkeypatch.setattr(bars._progress, "disable", False)
        now[0] = 100.0
        bars.update(0, "run", 10, 1.0)
        assert "to go" in bars._progress.tasks[-1].fields["note"]
        now[0] = 0.0


def test_times_as_people_read_them():
    assert [progress.clock(s) for s in (34.4, 125, 3725)] == ["34 s", "2:05", "1:02:05"]
