"""Benchmarks are run in rounds, and each number is shown as its least and median."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
from conftest import ROOT

ROUNDS = ROOT / "benches/rounds.py"


def summary(rounds):
    spec = importlib.util.spec_from_file_location("rounds", ROUNDS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.summary(rounds)


def test_numbers_that_differ_are_least_and_median():
    rounds = [
        "1 TB, filled   9.0 s (goal 3), -8 x2\n\nWAF 4.09",
        "1 TB, filled  12.25 s (goal 3), -8 x2\n\nWAF 4.11",
        "1 TB, filled  10.0 s (goal 3), -9 x2\n\nWAF 4.10",
    ]
    assert summary(rounds) == "1 TB, filled 9.00/10.00 s (goal 3), -9/-8 x2\n\nWAF 4.09/4.10"


@pytest.mark.parametrize("other", ["WAF four", "WAF 4\nmore", "waf 4"])
def test_other_words_are_an_error(other):
    with pytest.raises(ValueError, match="round 2 printed other words"):
        summary(["WAF 4", other])


def test_a_command_that_fails_ends_the_rounds():
    command = [sys.executable, ROUNDS, "--rounds", "2", "--", sys.executable, "-c", "1/0"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "round 1" in ended.stderr
    assert ended.stdout == ""
