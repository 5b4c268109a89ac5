"""A command answers Ctrl-C, whatever it is doing.

The drive here is MQSim's own default, with an eighth of its dies: it keeps 101 blocks of a lane
free, and its map is on flash. One write may cause hundreds of thousands of operations there.
"""

from __future__ import annotations

import os
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
# seconds of work from the signal to the end of the process; two cores generate the steady state
ANSWER = 0.5


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    path = tmp_path / "drive.toml"
    path.write_text(DRIVE)
    return path


TICKS = os.sysconf("SC_CLK_TCK")


def work(process: subprocess.Popen[bytes]) -> float:
    """Return the time that all cores have spent on a process, in seconds."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS  # utime and stime: proc(5)


def interrupted(arguments: list[str], after: float) -> tuple[float, str]:
    """Interrupt a command after some seconds of work.

    Return the seconds of work that it did after the interrupt, and its messages. The seconds do not
    depend on the load of the machine.
    """
    command = [sys.executable, "-m", "flashatlas", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        while work(process) < after:
            assert process.poll() is None, "it ended by itself"
            time.sleep(0.01)
        before = work(process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read().decode()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 130, said
    return used.ru_utime + used.ru_stime - before, said


@pytest.mark.parametrize("after", [2.0, 3.0, 4.5, 7.0])
def test_a_run_ends_soon_after_an_interrupt(drive, tmp_path, after):
    out = tmp_path / "out"
    run = ["run", "-d", str(drive), "-w", WRITES, "--depth", "16", "--out", str(out)]
    took, said = interrupted([*run, "--precondition", "steady"], after)
    assert "interrupted" in said
    assert not (out / "run.json").exists()
    assert took <= ANSWER
