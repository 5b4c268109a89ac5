"""Estimates of the time of a study: a range, and its origin."""

from __future__ import annotations

import os
from dataclasses import replace

import flashatlas
import pytest
from flashatlas.cli import before
from flashatlas.running.cost import Span
from flashatlas.sweep import estimate
from flashatlas.sweep.plan import planned
from flashatlas.sweep.store import Store
from rich.console import Console

RUN = {"drive": "tiny", "precondition": "none", "mode": "untimed"}


def runs(workload="uniform:requests=1000000,size=2KiB", axes=None, **more):
    study = flashatlas.Study(axes or {"seed": [1, 2, 3]}, workload=workload, **(RUN | more))
    return planned(study.definition).runs


def close(span: Span, least: float, most: float) -> None:
    assert (span.least, span.most) == pytest.approx((least, most))


def test_a_span_in_words():
    assert str(Span(61, 122)) == "1 to 2 min"
    assert str(Span(0.034, 8.04)) == "0.03 to 8 s"
    assert str(Span(5000, 20000)) == "1.4 to 5.6 h"
    assert str(Span(30, 30.2)) == "30 s"
    close(Span(1, 2) + Span(3, 5).times(2).by(Span(1, 3)), 1 + 6, 2 + 30)


def test_a_run_by_hand():
    """A million untimed requests of one unit: 0.5 to 8 s, and 0.03 to 0.2 s for the run."""
    (one,) = {(span.least, span.most) for span in map(estimate.of_run, runs())}
    assert one == pytest.approx((0.53, 8.2))
    # a request of 16 units takes at least as long as one of one unit, and at most four times as
    # long
    (first, *_) = runs("uniform:requests=1000000,size=32KiB")
    close(estimate.of_run(first), 0.53, 32.2)
    # the first run is timed; the second is played 6 to 26 times
    (first, *_) = runs(mode="asap")
    close(estimate.of_run(first), 1.03, 12.2)
    (first, *_) = runs(until="steady")
    close(estimate.of_run(first), 0.03 + 6 * 0.5, 0.2 + 26 * 8)


def test_a_map_on_flash_takes_longer():
    settings = {"map.store": "dftl", "map.cache_bytes": "4KiB"}
    (first, *_) = runs(set=settings)
    close(estimate.of_run(first), 0.03 + 1.2 * 0.5, 0.2 + 6 * 8)
    (first, *_) = runs(set=settings, precondition="fill", base="dense")
    units = flashatlas.Drive("tiny").layout["logical_units"]
    assert first.cost.time.most == pytest.approx(units * 150e-9 * 6)


def test_the_measured_runs_lie_within():
    """Core seconds (``time.process_time``) of 40,000 requests of 4 KiB on ``tlc-small``, steady.

    Begin, precondition, run, check: with the map in DRAM, and on flash with 128 KiB of it cached.
    """
    dram = 0.001 + 0.164 + 0.099 + 0.019
    dftl = 0.001 + 0.193 + 0.320 + 0.027
    for took, settings in ((dram, {}), (dftl, {"map.store": "dftl", "map.cache_bytes": "128KiB"})):
        (first, *_) = runs("uniform:requests=40000,size=4KiB,read=0.5", drive="tlc-small",
                           precondition="steady", mode="asap", set=settings)  # fmt: skip
        span = estimate.of_run(first)
        assert span.least < took < span.most


def test_a_study_by_hand(monkeypatch):
    """Three runs of 0.53 to 8.2 s, on one worker and on two of two cores."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    _, found = estimate.estimated(runs(), None, 1)
    close(found.core, 1.59, 24.6)
    close(found.elapsed, 2 + 1.59, 7 + 24.6)
    _, found = estimate.estimated(runs(), None, 2)
    close(found.elapsed, 2 + 1.59 / 2, 7 + 24.6 / 2 * 2.0)
    # four other processes and two workers on two cores: (4 + 2) / 2 for each core
    _, found = estimate.estimated(runs(), None, 2, load=4.0)
    close(found.elapsed, 2 + 1.59 / 2, 7 * 3 + 24.6 / 2 * 2.0 * 3)
    assert found.measured == 0 and found.unknown == 0


def done(store: Store, key: str, seconds: float) -> None:
    """Put a run that took ``seconds`` into a store."""
    result = flashatlas.run("tiny", workload="uniform:requests=10,size=2KiB")
    store.put(key, replace(result, wall_s=seconds), {"sources": ""})


def test_what_is_done_replaces_what_is_not_known(tmp_path):
    """By hand: sqrt(0.53 * 8.2) is the middle; runs took 0.97 s and 1.97 s, plus 0.03 s each."""
    store = Store.open(tmp_path, create=True)
    first, second, third = runs()
    done(store, first.key, 0.97)
    done(store, second.key, 1.97)
    times, found = estimate.estimated((first, second, third), store, 1)
    assert list(times) == [third.key] and found.measured == 2
    close(found.core, 1 / 1.25, 2 * 1.25)
    close(found.elapsed, 2 + 0.8, 7 + 2.5)
    # for a run four times as long, the middle of 2.03 and 32.2 s replaces the middle above
    (longer, *_) = runs("uniform:requests=4000000,size=2KiB")
    _, found = estimate.estimated((first, second, longer), store, 1)
    ratio = (2.03 * 32.2 / (0.53 * 8.2)) ** 0.5
    close(found.core, 0.8 * ratio, 2.5 * ratio)


def test_runs_of_unknown_length_are_counted_until_one_is_done(tmp_path, trace):
    every = runs(None, trace=str(trace))
    times, found = estimate.estimated(every, None, 1)
    assert not times and found.core is None and found.unknown == 3
    store = Store.open(tmp_path / "store", create=True)
    done(store, every[0].key, 10.0)
    _, found = estimate.estimated(every, store, 1)
    close(found.core, 2 * 8.0, 2 * 12.5)
    assert found.unknown == 0 and found.measured == 1


def test_what_runs_share_is_counted_once_at_the_least():
    """The steady state of 34 million units takes 50 to 370 ns each, 1.2 times with a map on flash.

    This is longer than a second, so the runs share the preconditioned drive.
    """
    axes = {"timing.t_read": ["40us", "50us", "60us"]}
    first, second, third = every = runs(
        axes=axes, drive="ufs-128gb", precondition="steady", base="dense"
    )
    once = 1.2 * 50e-9 * flashatlas.Drive("ufs-128gb").layout["logical_units"]
    assert once > 1
    _, found = estimate.estimated(every, None)
    alone = [estimate.of_run(run) for run in (first, second, third)]
    assert found.elapsed is None, "the number of workers is unknown"
    assert found.core.most == pytest.approx(sum(span.most for span in alone))
    assert found.core.least == pytest.approx(sum(span.least for span in alone) - 2 * once)


STUDY = """
[run]
drive = "tiny"
workload = "uniform:requests=1000000,size=2KiB"
mode = "untimed"
[axes]
seed = [1, 2, 3]
"""


def test_a_dry_run_says_the_range_and_its_ground(cli, tmp_path, monkeypatch):
    (tmp_path / "s.toml").write_text(STUDY)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    said = cli("sweep", "s.toml", "--dry-run", "--jobs", "1").stdout
    assert "3.6 to 32 s on this machine with --jobs 1 (1.6 to 25 s of one core)" in said
    assert "from counts of requests and units, not measured" in said and "load" not in said
    monkeypatch.setattr(os, "getloadavg", lambda: (4.0, 0.0, 0.0))
    assert "other work now (load 4.0)" in cli("sweep", "s.toml", "--dry-run").stdout
    elsewhere = cli("sweep", "s.toml", "--dry-run", "--cluster", "tcp://node:1").stdout
    assert "\n1.6 to 25 s of one core; " in elsewhere
    store = Store.open(tmp_path / "flashatlas-results", create=True)
    done(store, runs()[0].key, 0.97)
    said = cli("sweep", "s.toml", "--dry-run", "--jobs", "1").stdout
    assert "from the times of 1 of its runs in the store" in said
    # each of two takes 0.8 to 1.25 s; five processes on two cores
    assert f"3.6 to {7 * 2.5 + 2 * 1.25:.0f} s on this machine" in said


def test_a_long_precondition_is_announced_with_both_bounds(capsys, monkeypatch):
    """By hand: 33,554,432 units of a map on flash, at 1.2 x 30 ns to 6 x 150 ns."""
    monkeypatch.setattr(before, "err", Console(stderr=True))
    before.say_cost([("ufs-128gb", (), "fill")], 1, "dense")
    said = " ".join(capsys.readouterr().err.split())
    assert "1.2 to 30 s of a core to precondition (fill)" in said
    assert "held in tables, because --base dense asks for it" in said
