"""Help of the command line for its users: explanations, spellings of numbers, completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


def test_names_and_keys_are_explained_wherever_they_are_declared(cli):
    shown = cli("explain", "timing.t_read").stdout
    assert "sensing a (lower) page" in shown and "mast-4gb" in shown and "data sheet" in shown
    assert "--set map.store=dftl" in cli("explain", "dftl").stdout
    wrong = cli("explain", "ftl.scheme=dftl")
    assert wrong.returncode == 2 and "dftl is a map store: `map.store=dftl`" in wrong.stderr
    assert "did you mean `greedy`" in cli("explain", "GREEDI").stderr
    assert cli("schemes", "dftl").stdout == cli("explain", "dftl").stdout
    assert "did you mean `zipf`" in cli("workloads", "Zipff").stderr


def test_counts_and_ratios_are_read_as_people_write_them(cli):
    record = json.loads(
        cli(
            *("run", "-w", "uniform:requests=2k,size=2KiB", "--limit", "1e3", "--json", "-"),
            *("-s", "drive.over_provisioning=60%"),
        ).stdout
    )
    assert record["trace"]["requests"] == 1000
    assert record["config"]["params"]["drive.over_provisioning"] == 0.6
    assert "too small; give at least 1" in cli("run", "--limit", "0").stderr


@pytest.mark.long
def test_a_shell_completes_names_keys_and_values():
    def offered(words):
        words = f"flashatlas {words}"
        environment = {
            **os.environ,
            "_FLASHATLAS_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - (not words.endswith(" "))),
        }
        command = [
            sys.executable,
            "-c",
            "from flashatlas.cli import app; app(prog_name='flashatlas')",
        ]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.stdout.split()

    assert offered("run -d tl") == ["tlc-small", "tlc-slc-small", "tlc-nvme-1tb"]
    assert offered("run -s map.sto") == ["map.store="]
    assert "map.store=dftl" in offered("run -s map.store=d")
    assert "uniform:requests=" in offered("run -w uniform:re")
    assert "steady" in offered("run --precondition s")
