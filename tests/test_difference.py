"""Changes between two sets of runs: pairs, noise, tolerance, causes."""

from __future__ import annotations

import json
import math

import pytest
from flashatlas import InputError
from flashatlas.cli.diff import _amount
from flashatlas.results.frame import Frame, table_of
from flashatlas.statistics.intervals import estimate
from flashatlas.sweep.difference import difference

SEEDS = (1, 2, 3, 4, 5)


def runs(waf, *, victims=("greedy", "fifo"), more=None, gc=None, trace="a") -> Frame:
    """Return runs of two victims and five seeds; ``waf`` is a function of victim and seed."""
    rows = []
    for victim in victims:
        for seed in SEEDS:
            settings = {"ftl.victim": victim, "seed": seed, "trace": trace, **(more or {})}
            value = waf(victim, seed)
            numbers = {"waf": value, "waf_parts.host": 1.0}
            numbers["waf_parts.gc"] = value - 1 if gc is None else gc(victim, seed)
            rows.append((settings, numbers))
    return Frame(table_of(rows))


def noisy(victim: str, seed: int) -> float:
    """Return numbers from 1.6 to 2.4: seeds differ by far more than the change to be found."""
    return 1.4 + 0.2 * seed + (0.5 if victim == "fifo" else 0.0)


def test_the_same_runs_do_not_differ():
    found = difference(runs(noisy), runs(noisy))
    assert len(found.changes) == 2 and not found.moved(0)
    assert not found.only_before and not found.only_after


def test_a_small_change_shows_through_the_noise_of_seeds():
    after = runs(lambda victim, seed: noisy(victim, seed) * (1.01 if victim == "fifo" else 1.0))
    (change,) = difference(runs(noisy), after).moved(0)
    assert dict(change.settings) == {"ftl.victim": "fifo"} and change.pairs == 5
    assert change.size == pytest.approx(0.01)
    assert not difference(runs(noisy), after).moved(0.02)


def test_what_moves_to_and_fro_is_noise_until_it_is_more():
    by = {1: 0.05, 2: -0.04, 3: 0.03, 4: -0.05, 5: 0.02}
    shaken = runs(lambda victim, seed: noisy(victim, seed) * (1 + by[seed]))
    assert not difference(runs(noisy), shaken).moved(0)
    pushed = {seed: part + 0.2 for seed, part in by.items()}
    moved = difference(
        runs(noisy), runs(lambda v, seed: noisy(v, seed) * (1 + pushed[seed]))
    ).moved(0)
    expected = estimate(list(pushed.values()))
    assert len(moved) == 2
    assert moved[0].share.low == pytest.approx(expected.low)
    # the whole interval must lie beyond the tolerance
    assert expected.low < 0.19 < expected.mean
    assert not difference(
        runs(noisy), runs(lambda v, seed: noisy(v, seed) * (1 + pushed[seed]))
    ).moved(0.19)


def test_less_is_a_move_as_well_as_more():
    (first, _) = difference(runs(noisy), runs(lambda v, s: noisy(v, s) * 0.9)).moved(0.05)
    assert first.size == pytest.approx(-0.1)


def test_the_causes_of_a_write_amplification_are_named():
    after = runs(lambda v, s: noisy(v, s) + 0.3, gc=lambda v, s: noisy(v, s) - 1 + 0.3)
    assert difference(runs(noisy), after).moved(0)[0].parts == {"gc": pytest.approx(0.3)}


def test_what_was_nothing_and_is_something_has_moved():
    before, after = runs(lambda v, s: 0.0), runs(lambda v, s: 1.0)
    found = difference(before, after).moved(0.5)
    assert len(found) == 2 and found[0].size == math.inf and found[0].share is None


def test_runs_without_a_partner_are_named():
    found = difference(runs(noisy), runs(noisy, victims=("greedy",)))
    assert len(found.only_before) == 5 and not found.only_after
    assert found.only_before[0] == {"ftl.victim": "fifo", "seed": 1}


def test_a_parameter_that_a_version_does_not_know_tells_no_runs_apart():
    found = difference(runs(noisy), runs(noisy, more={"ftl.new": 3}))
    assert len(found.changes) == 2 and not found.moved(0)


def test_settings_may_be_excepted():
    before, after = runs(noisy, victims=("fifo",)), runs(noisy, victims=("greedy",))
    with pytest.raises(
        InputError, match=r"ftl\.victim is fifo in the first runs and greedy in the second"
    ):
        difference(before, after)
    moved = difference(before, after, ignored=["ftl.victim"]).moved(0)
    assert [change.number for change in moved] == ["waf"] and moved[0].size < 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"of": ["wav"]}, "`wav` is not a number of both sides; did you mean `waf`"),
        ({"ignored": ["ftl.victims"]}, "`ftl.victims` is not a setting.*mean `ftl.victim`"),
    ],
)
def test_a_name_that_is_none(arguments, message):
    with pytest.raises(InputError, match=message):
        difference(runs(noisy), runs(noisy), **arguments)


def test_the_command_ends_with_1_where_something_moved(cli, tmp_path):
    run = ("run", "--workload", "uniform:requests=2000,size=2KiB", "--precondition", "fill")
    for folder, victim in (("one", "greedy"), ("same", "greedy"), ("other", "fifo")):
        assert cli(*run, "--set", f"ftl.victim={victim}", "--out", folder).returncode == 0
    same = cli("diff", "one", "same")
    assert same.returncode == 0 and "0 of" in same.stdout
    refused = cli("diff", "one", "other")
    assert (
        refused.returncode == 2
        and "ftl.victim is greedy in the first runs and fifo in the second" in refused.stderr
    )
    moved = cli("diff", "one", "other", "--except", "ftl.victim", "--json", "moved.json")
    assert moved.returncode == 1 and "gc +" in moved.stdout
    told = json.loads((tmp_path / "moved.json").read_text())
    waf = next(change for change in told["moved"] if change["number"] == "waf")
    assert waf["after"] > waf["before"] and waf["parts"]["gc"] > 0


def test_files_are_told_by_their_names_unless_these_are_the_same():
    def of(first: str, second: str, moved: float = 0.0) -> Frame:
        rows = [({"trace": path, "seed": 1}, {"waf": waf})
                for path, waf in ((first, 1.0 + moved), (second, 2.0))]  # fmt: skip
        return Frame(table_of(rows))

    elsewhere = difference(of("/a/1.csv", "/a/2.csv"), of("/b/1.csv", "/b/2.csv"))
    assert len(elsewhere.changes) == 2 and not elsewhere.only_after
    # neither of two files with the same name may stand for the other
    found = difference(of("/a/1.csv", "/b/1.csv"), of("/a/1.csv", "/b/1.csv", 0.5))
    assert [change.before for change in found.changes] == [1.0, 2.0]
    assert len(found.moved(0)) == 1


def test_runs_that_differ_in_one_setting_are_told_how_to_be_compared():
    sides = [runs(noisy, more={"map.cache_bytes": size}) for size in (65536, 32768)]
    with pytest.raises(InputError) as refused:
        difference(*sides)
    # 65,536 and 32,768 bytes
    assert str(refused.value).endswith(
        "map.cache_bytes is 64.0 KiB in the first runs and 32.0 KiB in the second; "
        "`except=map.cache_bytes` compares the runs nevertheless"
    )
    assert "`--except map.cache_bytes`" in refused.value.on_command_line
    for ignored in ("map.cache_bytes", "map.*"):
        assert len(difference(*sides, ignored=[ignored]).changes) == 2


def test_runs_of_one_side_that_only_differ_in_what_is_ignored_have_no_one_partner():
    """A run has two partners, greedy and FIFO of its seed; an old version took the last one."""
    with pytest.raises(InputError, match="runs with greedy and fifo that differ in nothing else"):
        difference(runs(noisy), runs(noisy), ignored=["ftl.victim"])
    sides = [runs(noisy, victims=(victim,)) for victim in ("greedy", "fifo")]
    (waf,) = difference(*sides, ignored=["ftl.victim"]).changes
    assert waf.pairs == 5 and waf.after - waf.before == pytest.approx(0.5)


def test_a_setting_that_is_none_is_answered_with_those_that_differ():
    sides = [runs(noisy, more={"map.cache_bytes": size}) for size in (65536, 32768)]
    with pytest.raises(InputError, match=r"runs differ: ftl.victim, seed, map.cache_bytes\)"):
        difference(*sides, ignored=["xyzzy"])


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (482_000, "ns", "482 µs"),
        (700_416, "bytes", "684.0 KiB"),
        (441_700_000, "bytes/s", "441.7 MB/s"),
        (512, "blocks", "512 blocks"),
        (1.5, "ratio", "1.5"),
    ],
)
def test_a_number_is_said_with_its_unit(value, unit, said):
    assert _amount(value, unit) == said


def test_settings_and_numbers_of_the_command_have_units(cli, tmp_path):
    options = ["-w", "uniform:requests=400,size=2KiB,read=0.5", "-q"]
    for folder, depth in (("a", "4"), ("b", "16")):
        done = cli("compare", *options, "--out", folder, "--depth", depth, "--vary",
                   "timing.t_read=20us,40us")  # fmt: skip
        assert done.returncode == 0, done.stderr
    found = cli("diff", "a", "b", "--except", "depth", "--of", "iops", "--json", "d.json")
    assert found.returncode == 1
    assert found.stdout.splitlines()[1].split()[:2] in (["20", "µs"], ["40", "µs"])
    assert " 1/s " in found.stdout
    cli("diff", "a", "b", "--except", "depth", "--json", "d.json")
    moved = json.loads((tmp_path / "d.json").read_text())["moved"]
    units = {one["number"]: one["unit"] for one in moved}
    assert units["latency_ns.read.p99"] == "ns"
