"""Other people's tests of NVMe drives, from copies that variables name, on a served drive.

CONTRIBUTING.md says which versions, and how to get them.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from flashatlas.plug.guest import Machine, root
from flashatlas.serving.serve import serve
from pulled_plugs import cells

HERE = "tcp://127.0.0.1:0"
DRIVE, SETTINGS = next((drive, settings) for name, drive, settings in cells() if "demand" in name)


@pytest.fixture(autouse=True)
def later_programs(monkeypatch):
    """Take Debian 13, whose programs are new enough, unless a variable names another suite."""
    if not os.environ.get(root.SUITE):
        monkeypatch.setenv(root.SUITE, "trixie")


def copy(variable: str, part: str) -> Path:
    """Return a part of the copy that a variable names; skip the test if it is not there."""
    named = os.environ.get(variable)
    if not named:
        pytest.skip(f"{variable} names no copy (CONTRIBUTING.md)")
    there = Path(named).resolve() / part
    assert there.exists(), f"{variable}: {there} is not there"
    return there


def in_guest(suite: Path, commands: str) -> str:
    """Return the output of commands in the guest's `/tmp`, next to a copy of a folder."""
    if (why := root.missing()) is not None:
        pytest.skip(f"{why} (make system-tests)")
    with (
        serve(DRIVE, set=SETTINGS, nvme=HERE) as drive,
        Machine(drive, "nvme", kind="tools", folder=suite) as guest,
    ):
        begin = "tar -x -f /dev/vda -C /tmp; cd /tmp; "
        said = guest.ask("run", commands=begin + commands)["said"]
    assert drive.result is not None and drive.result.violations == 0
    return said


NOT_THERE = {
    # interrupt coalescing and vectors (08h, 09h) are of PCI Express; 0Ah is refused (NVME.md)
    "test_get_mandatory_features",
}
"""Tests of nvme-cli that ask for features that the drive refuses."""

EARLIER = """\
#!/bin/sh
case "$1 $2" in
    "ns get-id") shift 2; exec nvme get-ns-id "$@" ;;
    "id "*|"log "*) echo Invalid sub-command >&2; exit 1 ;;
esac
exec nvme "$@"
"""
"""Debian's nvme-cli with commands of a later version; the suite knows most of the earlier names."""


def test_the_suite_of_nvme_cli():
    suite = copy("FLASHATLAS_NVME_CLI", "tests")
    copy("FLASHATLAS_NVME_CLI", "tests/nvme-cli-e2e")
    said = in_guest(
        suite,
        f"""
        cat >/tmp/earlier <<'END'\n{EARLIER}\nEND
        chmod 755 /tmp/earlier
        mkdir /tmp/logs
        echo '{{"log_dir": "/tmp/logs", "nvme_bin": "/tmp/earlier",
            "do_validate_pci_device": false}}' >/tmp/config
        python3 tests/nvme-cli-e2e --config /tmp/config --plugins=none \
            --controller /dev/nvme0 --ns1 /dev/nvme0n1 || true""",
    )
    found = re.findall(r"^(ok|not ok) \d+ - (\w+) .*?(# SKIP.*)?$", said, re.M)
    assert len(found) > 20, said
    assert {name for ok, name, _ in found if ok != "ok"} <= NOT_THERE, said
    assert len([name for ok, name, skipped in found if ok == "ok" and not skipped]) >= 10


@pytest.mark.parametrize("suite", ["io_uring_cmd", "nvmept_trim"])
def test_a_suite_of_fio(suite):
    program = copy("FLASHATLAS_FIO", f"t/{suite}.py")
    said = in_guest(
        program.parent,
        f"python3 t/{suite}.py --dut /dev/ng0n1 --fio $(which fio) -a /tmp/made || true",
    )
    passed, failed = re.search(r"(\d+) test\(s\) passed, (\d+) failed", said).groups()
    assert int(failed) == 0 and int(passed) >= 20, said


@pytest.mark.parametrize("load", ["read", "write", "randrw"])
def test_the_benchmark_of_spdk(load):
    program = copy("FLASHATLAS_SPDK", "build/bin/spdk_nvme_perf")
    with serve(DRIVE, set=SETTINGS, nvme=HERE) as drive:
        where = "trtype:TCP adrfam:IPv4 traddr:{traddr} trsvcid:{trsvcid} subnqn:{nqn}"
        command = [program, "-r", where.format(**drive.variables), "-q", "16", "-o", "4096"]
        command += ["-w", load, "-t", "3", "--no-huge", "-s", "256"]
        command += ["-M", "50"] if load == "randrw" else []
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
    host = drive.result.record["host"]
    assert drive.result.violations == 0 and host["reads"] + host["writes"] > 100
