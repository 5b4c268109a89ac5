"""The options of a run are declared in one place; all other lists are compared with it here."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import typing

import flashatlas
import pytest
from conftest import ROOT
from flashatlas import InputError
from flashatlas.inputs.trace import Trace
from flashatlas.running import api
from flashatlas.running.run_options import of_groups, run_options

KINDS = {
    "text": str,
    "choice": str,
    "count": int,
    "count-or": int,
    "number": int,
    "factor": float,
    "flag": bool,
}
"""The types of values in Python; paths have several."""


def test_the_typed_arguments_are_the_declared_options():
    typed = typing.get_type_hints(api.RunOptions, vars(flashatlas.inputs.drive) | vars(api))
    assert set(typed) - {"set"} == set(run_options())
    for option in run_options().values():
        if option.kind == "file":
            assert str in typing.get_args(typed[option.name])
            continue
        if option.choices and not any(word.endswith(":FILE") for word in option.choices):
            optional = type(None) in typing.get_args(typed[option.name])
            assert optional == (option.name == "mode"), option
            literal = typing.get_args(typed[option.name])[0] if optional else typed[option.name]
            assert typing.get_args(literal) == option.choices
            continue
        words = {str} if option.kind == "count-or" else set()
        plain = ({KINDS[option.kind], type(None)} | words) - (
            set() if option.default is None or option.name == "mode" else {type(None)}
        )
        assert set(typing.get_args(typed[option.name]) or (typed[option.name],)) == plain, option


MISTAKES = """
import flashatlas
flashatlas.run(fit="comapct")
flashatlas.run(depht=4)
flashatlas.compare([{"drive": "tiny", "set": ["ftl.victim=fifo"], "label": "fifo"}], depth=2)
flashatlas.compare([{"warmup": "1000"}])
flashatlas.compare([{"wramup": 1000}])
flashatlas.compare([], until="stedy")
"""


@pytest.mark.long
def test_a_type_checker_sees_mistakes_in_runs_and_cases(tmp_path):
    script = tmp_path / "mistakes.py"
    script.write_text(MISTAKES)
    # use the lint's cache of the libraries
    cache = f"--cache-dir={ROOT / '.mypy_cache'}"
    command = [sys.executable, "-m", "mypy", cache, script.name]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    wrong = [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line]
    assert wrong == [3, 4, 6, 7, 8], done.stdout + done.stderr


def test_a_trace_takes_the_options_of_reading():
    fields = {f.name: f.default for f in dataclasses.fields(Trace) if f.name != "path"}
    assert fields == {o.name: o.default for o in of_groups("reading")}


def test_every_option_is_documented_for_python_and_the_command_line(cli):
    shown = " ".join(cli("run", "--help").stdout.split())
    for option in run_options().values():
        assert f"--{option.name.replace('_', '-')} " in shown
        assert f"- ``{option.name}``: " in flashatlas.run.__doc__


def test_what_is_not_given_is_the_default():
    spec = api.specification("tiny", workload="uniform:requests=1")
    for option in run_options().values():
        value = spec["reading"] if option.group == "reading" else spec
        if option.name != "workload":
            assert value[option.name] == option.default
    assert api.specification(depth=4)["mode"] == "closed"
    with pytest.raises(
        TypeError, match=r"`dept` is not an option of a run; did you mean " r"`depth`\?"
    ):
        api.specification(dept=4)


def test_errors_name_the_field_and_the_command_line_its_flag(cli):
    with pytest.raises(InputError, match=r"^speed: only open mode .*`mode=open`"):
        flashatlas.run("tiny", workload="uniform:requests=1", speed=2.0)
    done = cli("run", "--workload", "uniform:requests=1", "--speed", "2")
    assert done.stderr.startswith("error: --speed: only open mode ")
    assert "`--mode open`" in done.stderr
