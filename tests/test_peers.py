"""`make bench-peers`, with a program in place of MQSim that prints made-up numbers."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from conftest import ROOT

FAKE = """#!{python}
import sys, xml.etree.ElementTree as ET
drive, load = ET.parse(sys.argv[2]).getroot(), ET.parse(sys.argv[4]).getroot()
n = int(load.findtext(".//Total_Requests_To_Generate"))
reads = int(load.findtext(".//Read_Percentage"))
if reads == 70:
    sys.exit("an LPA was lost")
assert drive.findtext(".//Page_No_Per_Block") == "256"
writes = n * (100 - reads) // 100
open("load_scenario_1.xml", "w").write(
    f'<R><Request_Count>{{n}}</Request_Count><IOPS>1234.0</IOPS>'
    f'<F Issued_Flash_Read_CMD="{{n}}" Issued_Flash_Multiplane_Read_CMD="0" '
    f'Issued_Flash_Program_CMD="{{writes}}" Issued_Flash_Multiplane_Program_CMD="{{writes}}" '
    'Issued_Flash_Erase_CMD="0" Issued_Flash_Multiplane_Erase_CMD="0"/></R>'
)
"""


def bench(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "benches/peers.py", "--rounds", "1", *options],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_says_that_there_is_nothing_to_compare_with():
    done = bench(FLASHATLAS_MQSIM="")
    assert done.returncode == 0 and "nothing was compared" in done.stdout
    done = bench(FLASHATLAS_MQSIM="/nowhere/MQSim")
    assert done.returncode == 1 and "/nowhere/MQSim: not a program that can be run" in done.stderr


def test_what_took_no_longer_has_no_speed():
    spec = importlib.util.spec_from_file_location("peers", ROOT / "benches/peers.py")
    peers = importlib.util.module_from_spec(spec)
    sys.modules["peers"] = peers  # where its dataclasses look for their names
    spec.loader.exec_module(peers)
    load = peers.Load("reads", 1 << 20, 100, 1000)
    once, twice = peers.Run(2.0, 1, 1000, 0, 5.0, 1000), peers.Run(3.0, 1, 2000, 0, 5.0, 2000)
    each, cells = peers.rows(load, "MQSim", once, twice)
    assert each == 1000 and cells[2:6] == ("1000.00", "1,000", "1,000", "1.0 s")
    ours = [replace(run, requests=10 * run.requests) for run in (once, twice)]
    each, cells = peers.rows(load, "FlashAtlas", *ours)
    assert each == 100 and cells[2:4] == ("100.00", "10,000"), "with ten times the requests"
    each, cells = peers.rows(load, "MQSim", twice, once)
    assert each is None and cells[2:6] == ("–",) * 4


@pytest.mark.long
def test_both_stand_beside_each_other_and_a_run_that_fails_is_named(tmp_path):
    fake = tmp_path / "MQSim"
    fake.write_text(FAKE.format(python=sys.executable))
    fake.chmod(0o755)
    done = bench("--scale", "0.002", "--only", "16 MiB", FLASHATLAS_MQSIM=str(fake))
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    theirs = next(line for line in lines if "MQSim" in line and "writes," in line)
    # each multi-plane command programs two pages, so the WAF is 3. IOPS are as printed. By hand, a
    # request keeps one of 8 dies busy for 3 programs, 2 reads of copied pages and 3/256 of an erase
    assert theirs[-3:-1] == ["3.00", "1,234"]
    busy = 3 * (750 + 4096 / 333) + 2 * (75 + 4096 / 333) + 3 / 256 * 3800
    assert int(theirs[-1].replace(",", "")) == round(8 / busy * 1e6)
    ours = next(line for line in lines if "FlashAtlas" in line)
    assert float(ours[-2].replace(",", "")) > 0
    done = bench("--scale", "0.002", "--only", "70 %", FLASHATLAS_MQSIM=str(fake))
    assert "not compared: 70 % reads, not collecting" in done.stdout
    assert "an LPA was lost" in done.stdout
