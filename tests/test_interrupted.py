"""A command answers Ctrl-C, whatever it is doing.

The drive here is MQSim's own default, with an eighth of its dies: it keeps 101 blocks of a lane
free, and its map is on flash. One write may cause hundreds of thousands of operations there.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

DRIVE = """
[drive]
channels = 4
ways = 1
dies = 1
planes = 2
blocks = 2048
pages = 256
page_bytes = 8192
spare_bytes = 448
cell = "mlc"
over_provisioning = 0.075268817

[map]
unit = 8192
store = "dftl"
cache_bytes = 2097152

[timing]
t_read = "75us"
t_program = "750us"
t_erase = "3800us"
channel_rate = "333MB"

[ftl]
low_water = 101

[cache]
bytes = 268435456
"""
WRITES = "uniform:requests=10000000,size=8KiB,read=0"
# seconds from the first look at signals to the end of the process, its memory given back
ANSWER = 0.5


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    path = tmp_path / "drive.toml"
    path.write_text(DRIVE)
    return path


def interrupted(arguments: list[str], after: float) -> tuple[float, str]:
    """Return how long the command went on after an interrupt, in seconds, and its last words."""
    command = [sys.executable, "-m", "flashatlas", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        time.sleep(after)
        assert process.poll() is None, "it ended by itself"
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    return time.monotonic() - begin, said.decode()


@pytest.mark.parametrize("after", [2.0, 3.0, 4.5, 7.0])
def test_a_run_ends_soon_after_an_interrupt(drive, tmp_path, after):
    out = tmp_path / "out"
    run = ["run", "-d", str(drive), "-w", WRITES, "--depth", "16", "--out", str(out)]
    took, said = interrupted([*run, "--precondition", "steady"], after)
    assert "interrupted" in said
    assert not (out / "run.json").exists()
    assert took <= ANSWER
