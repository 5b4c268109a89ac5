"""What is said of a run before it begins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import flashatlas
import pytest
from flashatlas import cost

MEASURED = """
import re, sys, flashatlas
# not ru_maxrss, which a process has from the one that started it
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
before = peak()
flashatlas.run("ufs-128gb", workload="uniform:requests=10,read=1", precondition=sys.argv[1])
print(peak() - before)
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells peaks of memory")
def test_memory_is_as_estimated():
    """A process of its own: memory that others left would hide what is taken."""
    command = [sys.executable, "-c", MEASURED, "fill"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    estimated = cost.cost(flashatlas.Drive("ufs-128gb").layout, "fill").bytes
    assert int(done.stdout) == pytest.approx(estimated, rel=0.25)


def test_a_run_does_not_wait_for_pandas():
    """Arrow imports it, a quarter of a second, to find out that a value is not of it."""
    run = "flashatlas.run('tiny', workload='uniform:requests=10,size=2KiB')"
    said = f"import flashatlas, sys; {run}; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_long_run_is_announced(cli, monkeypatch):
    few = ("run", "-w", "uniform:requests=10,size=2KiB", "-q")
    assert "of memory" not in cli(*few).stderr
    layout = flashatlas.Drive("tlc-nvme-1tb").layout
    estimate = cost.cost(layout, "steady")
    assert estimate.is_worth_saying
    # by hand: 24 bytes a physical unit, 50 ns a logical one
    assert estimate.bytes == 24 * layout["physical_units"]
    assert estimate.seconds == pytest.approx(50e-9 * layout["logical_units"])
    assert cost.cost(layout, "trace:x").seconds is None
    monkeypatch.setattr(cost, "LARGE_BYTES", 1)
    assert "tiny: 1,024 units, about 24.0 KiB of memory" in cli(*few).stderr
    monkeypatch.setattr("flashatlas.cli.before.free_memory", lambda: 1000)
    said = cli("compare", *few[1:], "--vary", "seed=1,2", "--jobs", "2").stderr
    assert "2 runs at once take more than the 1000 B of memory that are free (--jobs)" in said


def test_a_share_of_spare_that_was_meant_in_percent(cli):
    few = ("run", "-w", "uniform:requests=10,size=2KiB", "-q")
    said = cli(*few, "--set", "drive.over_provisioning=7").stderr
    assert "drive.over_provisioning = 7 is 700% spare: 7 % is written 7%" in said
    assert "spare" not in cli(*few, "--set", "drive.over_provisioning=60%").stderr
