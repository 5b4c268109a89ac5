"""The runs of a study: axes, ranges, zips, conditions, and errors in them."""

from __future__ import annotations

import re

import flashatlas
import pytest
from flashatlas import InputError
from flashatlas.sweep.axes import axis
from flashatlas.sweep.condition import Condition
from flashatlas.sweep.lines import line_of

RUN = {"drive": "tiny", "workload": "uniform:requests=100,size=2KiB", "precondition": "fill"}


def runs(axes, **more):
    return flashatlas.Study(axes, **RUN, **more).plan().runs


def test_every_combination_is_a_run_in_the_order_of_the_axes():
    found = runs({"ftl.victim": ["greedy", "fifo"], "seed": [1, 2, 3]})
    assert [run.label for run in found] == [
        f"{v} {s}" for v in ("greedy", "fifo") for s in (1, 2, 3)
    ]
    assert len({run.key for run in found}) == 6
    assert found[4].spec["seed"] == 2 and "ftl.victim=fifo" in found[4].spec["set"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"from": 1, "to": 4}, [1, 2, 3, 4]),
        ({"from": 0, "to": 10, "step": 4}, [0, 4, 8]),
        ({"from": 0.1, "to": 0.3, "step": 0.1}, [0.1, 0.2, 0.3]),
        ({"from": 0, "to": 1.0, "steps": 5}, [0, 0.25, 0.5, 0.75, 1]),
        ({"from": 1, "to": 1000, "steps": 4, "scale": "log"}, [1, 10, 100, 1000]),
        ({"from": 1, "to": 100, "factor": 3}, [1, 3, 9, 27, 81]),
        ({"from": "8KiB", "to": "64KiB", "factor": 2}, [8192, 16384, 32768, 65536]),
        (
            {"from": "10us", "to": "30us", "step": "10us"},
            ["10000000ps", "20000000ps", "30000000ps"],
        ),
    ],
)
def test_a_range_has_both_ends_and_what_lies_between(given, expected):
    assert list(axis("x.y", given).values) == expected


def test_zipped_axes_go_together():
    found = runs({}, zip=[{"ftl.victim": ["greedy", "fifo"], "seed": [7, 8]}])
    assert [(dict(run.axes)) for run in found] == [
        {"ftl.victim": "greedy", "seed": 7},
        {"ftl.victim": "fifo", "seed": 8},
    ]


def test_an_axis_applies_where_its_condition_holds_and_elsewhere_the_run_is_there_once():
    found = runs(
        {
            "map.store": ["dram", "dftl"],
            "map.cache_bytes": {"values": ["4KiB", "8KiB"], "when": 'map.store in ["dftl"]'},
        }
    )
    assert [run.label for run in found] == ["dram", "dftl 4KiB", "dftl 8KiB"]


def test_a_condition_sees_what_nothing_sets():
    """The preset's victim policy is greedy, although no axis and no setting names it."""
    found = runs({"seed": [1, 2]}, exclude=['ftl.victim == "greedy" and seed > 1'])
    assert [run.label for run in found] == ["1"]


def test_variants_are_settings_with_a_name():
    found = runs(
        {
            "mapping": {
                "variants": {
                    "paged": {"map.store": "dftl", "map.cache_bytes": "4KiB"},
                    "blocks": {"ftl.scheme": "fast", "ftl": {"log_blocks": 8}},
                }
            }
        }
    )
    assert [run.axes["mapping"] for run in found] == ["paged", "blocks"]
    assert "ftl.log_blocks=8" in found[1].spec["set"]


def test_runs_that_are_the_same_are_one():
    """Two spellings of a size are the same size."""
    plan = flashatlas.Study({"cache.bytes": ["16KiB", 16384]}, **RUN).plan()
    assert len(plan.runs) == 1 and plan.same == 1


def test_layers_are_an_axis():
    study = flashatlas.Study(
        {"layers": ["none", "hard"]}, drive="superpage-sata", workload=RUN["workload"]
    )
    assert [run.identity["config"]["params"]["layers"] for run in study.plan().runs] == ["", "hard"]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ('a.b == "x"', True),
        ('a.b in ["y", "x"] and not n > 3', True),
        ('size < "16KiB" or n == 7', True),
        ("n == 3 and flag == true", None),
        ("1 < n <= 3", True),
        ('time >= "1ms"', False),
        ("flag", True),
    ],
)
def test_conditions(text, holds):
    names = {"a.b": "x", "n": 3, "size": "8KiB", "time": "20us", "flag": True}

    def lookup(name):
        if name not in names:
            raise InputError(f"`{name}` is no axis")
        return names[name]

    if holds is None:
        with pytest.raises(InputError, match="`true` is no axis"):
            Condition(text).holds(lookup)
    else:
        assert Condition(text).holds(lookup) is holds


@pytest.mark.parametrize(
    "text", ["a = 1", "f(1)", "a + 1", "__import__('os')", "a if b else c", ""]
)
def test_a_condition_is_no_program(text):
    with pytest.raises(InputError, match="write names"):
        Condition(text)


def test_lines_of_keys():
    text = '[run]\ndrive = "tiny"\n\n[axes]\nftl.victim = ["a"]\n"map.unit" = [1]\n'
    text += "[axes.mapping]\nwhen = 1"
    assert [line_of(text, key) for key in ("run.drive", "axes.ftl.victim", "axes.map.unit")] == [
        2,
        5,
        6,
    ]
    assert line_of(text, "axes.mapping.when.x") == 8 and line_of(text, "set.a") is None


HEAD = """[run]
drive = "tiny"
workload = "uniform:requests=100,size=2KiB"
[axes]
"""

BAD = {
    "misspelt key": (HEAD + 'ftl.victm = ["greedy"]', r":5: .*ftl\.victm.*victim"),
    "misspelt option": (
        HEAD + "sed = [1]",
        r":5: sed: this is neither an option of a " r"run.*did you mean `seed`",
    ),
    "misspelt value": (
        HEAD + 'ftl.victim = ["greedy", "fifoo"]',
        r":5: .*fifoo.*fifo.*run `fifoo`",
    ),
    "value out of range": (
        HEAD + "seed = { from = 1, to = 500 }\ncache.high = [0.75, 7.5]",
        r":6: cache\.high.*7\.5.*\(run `1 7\.5`\)",
    ),
    "empty list": (HEAD + "seed = []", r":5: seed: the axis has no values"),
    "empty range": (
        HEAD + "seed = { from = 5, to = 1 }",
        r":5: seed: the range from 5 to 1 " r"is empty",
    ),
    "twice": (HEAD + "seed = [1, 1]", r":5: seed: 1 is given twice"),
    "unlike ends": (
        HEAD + 'timing.t_read = { from = "1us", to = "8KiB", steps = 3 }',
        r":5: .*size",
    ),
    "no such key of an axis": (HEAD + "seed = { from = 1, too = 5 }", r":5: seed: `too`.*`to`"),
    "no trace": (
        HEAD.replace("workload", "#") + 'trace = ["gone.csv"]',
        r":5: .*gone\.csv.*No such",
    ),
    "all excluded": (
        'exclude = ["seed > 0"]\n' + HEAD + "seed = [1]",
        r":1: .*all 1 runs " r"are excluded",
    ),
    "no such part": (
        "[axis]\nseed = [1]",
        r":1: axis: there is no such part of a study; " r"did you mean `axes`",
    ),
    "no such table": ("title = 3", r":1: title: 3 must be a text"),
    "not TOML": ("[axes\n", r":1:6: "),
    "zipped unlike": (
        '[[zip]]\nseed = [1, 2]\nftl.victim = ["greedy"]',
        r":1: zip 1: .*seed has 2",
    ),
    "shared and an axis": (
        HEAD + 'ftl.victim = ["greedy"]\n[set]\nftl.victim = "fifo"',
        r":5: ftl\.victim: the key is both an axis and a setting",
    ),
    "condition on nothing": (
        HEAD + 'map.unit = { values = ["2KiB"], when = "sed > 1" }',
        r":5: .*`sed` is not an axis.*did you mean `seed`",
    ),
    "another part's key": (
        HEAD + 'map.store = ["dram", "dftl"]\nmap.cache_bytes = ["4KiB"]',
        r":6: map\.cache_bytes: belongs to .*\(run `dram 4KiB`\)",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_said_with_its_line_before_anything_runs(what, cli, tmp_path):
    text, message = BAD[what]
    (tmp_path / "s.toml").write_text(text)
    done = cli("sweep", "s.toml")
    assert done.returncode == 2, done.stdout
    assert re.search(r"s\.toml" + message, " ".join(done.stderr.split())), done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.toml"]


def test_paths_are_relative_to_the_study(cli, tmp_path, trace):
    (tmp_path / "deep").mkdir()
    trace.rename(tmp_path / "deep" / "four.csv")
    (tmp_path / "deep" / "s.toml").write_text('[axes]\ntrace = ["four.csv"]\n[run]\ndrive = "tiny"')
    done = cli("sweep", "deep/s.toml", "--dry-run")
    assert done.returncode == 0 and "1 runs; 0 are there, 1 to be carried out" in done.stdout


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"ftl.victim": ["greedy", "cost-benefit"]}, "ftl.victim: the steady state of `cost-b"),
        ({"ftl.scheme": ["page", "fast"]}, "ftl.scheme: the steady state of `fast` has no model"),
        ({"layers": ["none", "hard"]}, "precondition: the model of the steady state supports"),
    ],
)
def test_a_steady_state_without_a_model_is_said_before_anything_runs(setting, message):
    study = flashatlas.Study(setting, drive="mast-4gb", workload="uniform", precondition="steady")
    with pytest.raises(InputError, match=re.escape(message)):
        study.plan()
