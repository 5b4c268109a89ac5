"""The commands of HACKING.md for one scheme test it, and print the tests that they ran."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT
from drawn import LEFT, drawn
from test_readme import run

COMMANDS = re.findall(
    r"^(cargo [^\n]*flashatlas-ftl[^\n]*)$",
    (ROOT / "HACKING.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_the_commands_check_and_test_the_scheme():
    assert len(COMMANDS) == 2
    if "hacking" not in drawn():
        pytest.skip(LEFT)
    check, test = COMMANDS
    assert run(check, ROOT).returncode == 0
    done = run(test, ROOT)
    assert done.returncode == 0, done.stderr
    (by_name,) = re.findall(r"-ftl (\w+)$", test)
    passed = re.findall(rf"^test \S*{by_name}\S* \.\.\. ok$", done.stdout, re.MULTILINE)
    assert len(passed) >= 5
