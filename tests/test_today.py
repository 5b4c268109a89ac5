"""The maps of the five papers then and today: verdicts and measurements by hand, and short runs."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import flashatlas
import pytest
from flashatlas import reproduce
from flashatlas.names import registries
from flashatlas.reproduce.today import measures, plan, tables

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
EXPERIMENT: dict[str, Any] = tomllib.loads((ROOT / "papers/6-today/experiment.toml").read_text())


def made(then: float, now: float) -> tuple[plan.Today, plan.Gain]:
    """Return an experiment with a gain on a paper's drive and one on a drive of today."""
    cases = [{"era": "then", "drive": "x"}, {"era": "today", "drive": "y"}]
    comparison: dict[str, Any] = {"paper": "1: a map", "before": "a", "after": "b"}
    comparison |= {"by": "requests", "case": cases}
    gains = [
        plan.Gain(plan.Case(comparison, case), (1.0, gain), "", True)
        for case, gain in zip(cases, (then, now), strict=True)
    ]
    return plan.Today(EXPERIMENT, gains, []), gains[1]


@pytest.mark.parametrize(
    ("then", "now", "verdict"),
    [
        (3.0, 4.5, "grows"),  # 3.5 of 2: 1.75 of it
        (3.0, 3.9, "survives"),  # 1.45 of it
        (3.0, 2.1, "survives"),  # 0.55
        (3.0, 1.9, "shrinks"),  # 0.45
        (3.0, 1.3, "shrinks"),  # 0.15
        (3.0, 1.1, "gone"),  # 0.05
        (3.0, 0.9, "gone"),  # -0.05: as near to none on the other side
        (3.0, 0.7, "a loss"),  # -0.15
        (1.0, 1.01, "none, as then"),
        (1.0, 1.5, "new"),
        (1.0, 0.9, "a loss"),
    ],
)
def test_a_gain_is_judged_by_its_share_of_the_gain_then(
    then: float, now: float, verdict: str
) -> None:
    """The limits of the experiment are 1.5, 0.5 and 0.1 of the gain then, and 2 % for none."""
    today, gain = made(then, now)
    assert today.verdict(gain) == verdict


def test_the_drive_of_a_paper_has_no_verdict() -> None:
    """It is what the others are judged by."""
    today, _ = made(2.0, 2.0)
    assert today.verdict(today.gains[0]) == ""
    assert len(tables.summary(today).rows) == 1


def test_a_gain_is_judged_by_the_case_with_the_same_state() -> None:
    """Fresh drives are judged by fresh ones, steady drives by steady ones."""
    comparison: dict[str, Any] = {"paper": "4: a map", "before": "a", "after": "b"}
    comparison |= {"by": "requests", "case": []}
    gains = [
        plan.Gain(plan.Case(comparison, {"era": e, "drive": "x", "at": at}), (1.0, g), "", True)
        for e, at, g in [
            ("then", "fresh", 4.0),
            ("then", "steady", 2.0),
            ("today", "steady", 2.0),
            ("today", "fresh", 2.0),
        ]
    ]
    today = plan.Today(EXPERIMENT, gains, [])
    assert [today.verdict(gain) for gain in gains] == ["", "", "survives", "shrinks"]


def test_the_experiment_is_whole() -> None:
    """All names are known, and each case of a comparison has the one case that it is judged by."""
    drives = {one["name"] for one in registries()["drives"]}
    papers = set()
    for comparison in EXPERIMENT["comparison"]:
        papers.add(plan.number(comparison))
        assert comparison["by"] in measures.BY
        assert comparison["decides"] in measures.DECIDES
        then = Counter(c.get("at") for c in comparison["case"] if c["era"] == plan.THEN)
        assert set(then.values()) == {1}, comparison["paper"]
        for case in comparison["case"]:
            assert case["era"] in (plan.THEN, plan.BETWEEN, plan.TODAY)
            assert case.get("at") in then, case
            assert comparison["by"] == "lookups" or case["drive"] in drives
    assert papers == {0, 1, 2, 3, 4}


def test_numbers_that_maps_are_compared_by() -> None:
    """Each is computed by hand from a record of few numbers."""
    record = {
        "host": {"flushes": 6, "writes": 8, "write_bytes": 12_000_000},
        "simulated_ns": 1_500_000_000,
        "iops": 42,
        "ns_per_lookup": 50,
        "config": {
            "params": {
                "timing.t_read": "50us",
                "timing.t_program": "500us",
                "timing.t_erase": "2ms",
                "drive.pages": 2112,
            }
        },
        "nand": {
            "reads": {"host": 999, "gc": 20},
            "programs": {"host": 100, "gc": 18},
            "erases": {"gc": 20},
        },
        "timings": {"faw": 34, "dl": 4},
        "reads_per_lookup": 8.0,
        "controller": {"rmw_units": 6},
        "lookup": {"lookup_ns": {"mean": 1e6}},
        "map": {"hit_ratio": 0.125},
        "latency_ns": {"flush": {"mean": 1_234_567}},
    }
    assert measures.calls(record) == pytest.approx(2.0)  # 6 FLUSHes, two a call, in 1.5 s
    assert measures.requests(record) == 42
    # 20 x 50 us + 118 x 500 us + 20 x 2 ms = 100 ms for 12 MB; reads of the host do not count
    assert measures.efficiency(record) == pytest.approx(120)
    assert measures.lookups(record) == 20_000_000
    decided = {name: measure(record) for name, measure in measures.DECIDES.items()}
    assert decided == {
        "time of a FLUSH": "1.23 ms",
        "pages of a block": "2,112",
        "map hit ratio": "12.5 %",
        "four activations over a set's reads": "1.06",  # 34 / (8 x 4)
        "time at work of the lookup engine": "4.2 %",  # 42 of 1 ms in a second
        "read-modify-writes of a request": "0.75",
    }


def test_warm_up_and_requests_are_cut_together() -> None:
    """`--times` makes the measured part longer, `--limit` all of a run shorter."""
    case = plan.Case({"warmup": 300, "requests": 100, "case": []}, {})
    assert case.requests(1, None) == (400, 300)
    assert case.requests(2, None) == (500, 300)
    assert case.requests(1, 40) == (40, 30)
    assert case.requests(1, 4000) == (400, 300)


def test_maps_that_comparisons_share_are_run_once() -> None:
    """Two comparisons of paper 0 end with the same map, two of paper 3 as well."""
    planned = plan.plan(paper=[0, 3])
    twice = [case.label(which) for case in planned.cases for which in plan.MAPS]
    runs = {**planned.runs(of_lookups=False), **planned.runs(of_lookups=True)}
    assert len(runs) == len(set(twice)) < len(twice)
    for case in planned.cases:
        for which in plan.MAPS:
            assert runs[case.label(which)] == case.arguments(which, 1, None)


def test_short_runs() -> None:
    """Each table has the numbers of its runs, and the block size of each drive."""
    today = reproduce.carry_out("today", paper=[1], limit=400)
    decided = [gain.decides for gain in today.gains]
    assert decided == ["64", "512", "2,048", "2,112"]
    fast, mast = (result.record for result in today.results[:2])
    schemes = [record["config"]["params"]["ftl.scheme"] for record in (fast, mast)]
    assert schemes == ["fast", "mast"]
    first = today.gains[0]
    assert first.values == (measures.efficiency(fast), measures.efficiency(mast))
    assert [row[1] for row in tables.listings(today)[1].rows] == [
        "then",
        "between",
        "between",
        "today",
    ]


def test_lookups_alone() -> None:
    """Random sets of the paper's DRAM take 58 and 36 clocks, and refreshes on top.

    58 and 36 are the closed forms under all constraints (papers/3-lpmt): the engine's most frequent
    times. Refreshes cost 3 to 4 %.
    """
    today = reproduce.carry_out("today", paper=[3], limit=3000)
    gain = next(g for g in today.gains if g.case.is_lookup)
    assert gain.case.era == plan.THEN
    assert gain.gain == pytest.approx(58 / 36, rel=0.02)
    assert gain.steady is None


def test_what_the_experiment_refuses() -> None:
    """Errors name the option and what is allowed."""
    with pytest.raises(flashatlas.InputError, match=r"--paper .*7.*0, 1, 2, 3, 4"):
        reproduce.carry_out("today", paper=[7])
    with pytest.raises(flashatlas.InputError, match="--traces: `today` plays no recorded trace"):
        reproduce.carry_out("today", traces=ROOT)
