"""Estimates of the cost of a run before it begins."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import flashatlas
import pytest
from flashatlas.running import cost

MEASURED = """
import re, sys, flashatlas
# not ru_maxrss, which a process inherits from its parent
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
before = peak()
run = {"workload": "uniform:requests=10,read=1", "precondition": "fill", "base": "dense"}
flashatlas.run("ufs-128gb", **run)
print(peak() - before)
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's peak of memory")
def test_memory_is_as_estimated():
    """The drive is held in tables. The run has a process of its own.

    Memory that other tests freed would hide its needs.
    """
    command = [sys.executable, "-c", MEASURED]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    estimated = cost.cost(flashatlas.Drive("ufs-128gb").layout, "fill").bytes
    assert int(done.stdout) == pytest.approx(estimated, rel=0.25)


def test_a_run_does_not_wait_for_pandas():
    """Arrow imports pandas to see if a value is of pandas, which takes a quarter of a second."""
    run = "flashatlas.run('tiny', workload='uniform:requests=10,size=2KiB')"
    said = f"import flashatlas, sys; {run}; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_long_run_is_announced(cli, monkeypatch):
    few = ("run", "-w", "uniform:requests=10,size=2KiB", "-q")
    assert "of memory" not in cli(*few).stderr
    layout = flashatlas.Drive("tlc-nvme-1tb").layout
    # what the drive holds is computed, so only the run itself takes memory and time
    assert not cost.cost(layout, "steady", base="computed").is_worth_saying
    estimate = cost.cost(layout, "steady")
    assert estimate.is_worth_saying
    # by hand: 24 bytes a physical unit, 50 ns a logical one
    assert estimate.bytes == 24 * layout["physical_units"]
    assert estimate.seconds == pytest.approx(50e-9 * layout["logical_units"])
    assert cost.cost(layout, "trace:x").seconds is None
    assert estimate.why == "--base dense asks for it"
    on_flash = flashatlas.Drive("tlc-nvme-1tb", set={"map.store": "dftl"}).layout
    assert not cost.cost(on_flash, "steady", "dftl", base="computed").is_worth_saying
    failing = flashatlas.Drive("tlc-nvme-1tb", set={"errors.program_failures": 1}).layout
    assert "may fail" in cost.cost(failing, "steady", base="computed").why
    monkeypatch.setattr(cost, "LARGE_BYTES", 1)
    assert "tiny: 1,024 units, about 24.0 KiB of memory" in cli(*few).stderr
    monkeypatch.setattr("flashatlas.cli.before.free_memory", lambda: 1000)
    said = cli("compare", *few[1:], "--vary", "seed=1,2", "--jobs", "2").stderr
    assert "2 runs together take more than the 1000 B of free memory (--jobs)" in said


LARGE = {"drive.blocks": 3400, "drive.logical_pages": 3_700_000_000}
"""tlc-nvme-1tb with 64 lanes of 3,400 blocks of 1,152 frames of 16 units: 4,010,803,200 units."""

FEW = "uniform:requests=10,size=16KiB"


def test_what_is_certain_by_hand():
    layout = flashatlas.Drive("tlc-nvme-1tb", set=LARGE).layout
    assert layout["physical_units"] == 64 * 3400 * 1152 * 16 == 4_010_803_200
    # at least 16 bytes a unit (measured for 1 TB: 17.3 and 17.9); steady writes all units, fill
    # only the exported ones
    assert layout["steady_memory_bytes"] == 16 * 4_010_803_200
    assert layout["fill_memory_bytes"] == 16 * 3_700_000_000


@pytest.mark.skipif(cost.free_memory() is None, reason="Linux alone says how much memory is free")
@pytest.mark.parametrize("precondition", ["fill", "steady"])
def test_a_drive_that_no_memory_holds_is_refused(cli, precondition):
    """66 TB: on a machine with more than 55 GiB of memory free this would run for minutes."""
    if (cost.free_memory() or 0) > 50 << 30:
        pytest.skip("this machine has room for it")
    settings = [f"--set={key}={value}" for key, value in LARGE.items()]
    options = ("-w", FEW, "--precondition", precondition, "--base=dense")
    done = cli("run", "-d", "tlc-nvme-1tb", *settings, *options)
    said = f"--precondition: {precondition} writes the whole drive, whose tables then take at least"
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert f"{layout_gib(precondition)} GiB, but " in done.stderr
    found = re.search(r"drive\.blocks=(\d+) and drive\.logical_pages=(\d+)", done.stderr)
    assert found is not None
    fits = {"drive.blocks": int(found[1]), "drive.logical_pages": int(found[2])}
    layout = flashatlas.Drive("tlc-nvme-1tb", set=fits).layout
    free = cost.free_memory() or 0
    # the named drive is the largest that fits; other programs change the free memory meanwhile
    assert 0.8 * free < layout[f"{precondition}_memory_bytes"] < 1.2 * free
    with pytest.raises(flashatlas.InputError, match="writes the whole drive") as refused:
        flashatlas.run(
            "tlc-nvme-1tb", set=LARGE, workload=FEW, precondition=precondition, base="dense"
        )
    assert refused.value.field == "precondition"


@pytest.mark.skipif(cost.free_memory() is None, reason="Linux alone says how much memory is free")
def test_the_largest_blank_drive_that_fits_counts_all_tables(cli):
    """One table has 8 x 4,010,803,200 bytes (29.9 GiB); all tables have 24 a unit (89.6 GiB)."""
    settings = [f"--set={key}={value}" for key, value in LARGE.items()]
    done = cli("run", "-d", "tlc-nvme-1tb", *settings, "-w", FEW)
    if done.returncode == 0:
        pytest.skip("this system allocates tables of any size")
    assert done.returncode == 2 and "30 GiB in one piece" in done.stderr, done.stderr
    found = re.search(r"fits has drive\.blocks=(\d+)", done.stderr)
    assert found is not None
    units = 64 * int(found[1]) * 1152 * 16
    # other programs change the free memory meanwhile, so the bounds are wide
    assert 0.5 * (cost.free_memory() or 0) < 24 * units < 1.2 * (cost.free_memory() or 0)


def test_more_pages_than_addresses_name_the_unit_that_fits():
    """64 x 13,600 x 1,152 x 16 = 16,043,212,800 units of 4 KiB, or a quarter as many of 16 KiB."""
    drive = {"drive.blocks": 13600, "map.unit": "4KiB", "drive.logical_pages": 14_800_000_000}
    with pytest.raises(flashatlas.InputError, match="the smallest unit that fits has 16384 bytes"):
        flashatlas.Drive("tlc-nvme-1tb", set=drive)


def layout_gib(precondition: str) -> float:
    """59.8 GiB (16 x 4,010,803,200 bytes) or 55.1 GiB (16 x 3,700,000,000)."""
    return {"steady": 59.8, "fill": 55.1}[precondition]


HELD = """
import flashatlas, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
settings = {"drive.blocks": 444, "drive.logical_pages": 488_381_292}
drive = flashatlas.Drive("tlc-nvme-1tb", set=settings)
for begin in (lambda: flashatlas.run(drive, workload="uniform:requests=5"),
              lambda: flashatlas.Device(drive).power_on()):
    try:
        begin()
    except flashatlas.InputError as error:
        print(error)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux limits address spaces")
def test_tables_that_the_system_does_not_hand_out_are_refused():
    """2 TB take 24 bytes for each of 523,763,712 units, 12 GB, but 6 GiB are allowed.

    The drive has a process of its own: an earlier version ended by SIGABRT.
    """
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert "drive.blocks: the system has no memory for a drive with 444 blocks" in line
        blocks = int(re.search(r"has drive\.blocks=(\d+)", line)[1])
        assert 0 < 24 * blocks * (523_763_712 // 444) < 6 << 30


def test_a_large_drive_of_which_little_is_written_goes_on(monkeypatch):
    """Without a precondition the memory needed is uncertain: one free byte is enough to begin."""
    monkeypatch.setattr(cost, "free_memory", lambda: 1)
    assert flashatlas.compare([{}], workload=FEW, precondition="none")[0].violations == 0


def test_runs_that_do_not_fit_together_are_fewer(monkeypatch):
    """By hand: tiny has 1,024 units, and steady takes 16 bytes for each in tables: 16,384."""
    monkeypatch.setattr(cost, "free_memory", lambda: 40_000)
    cases = [{"seed": seed} for seed in (1, 2, 3)]
    dense = {"workload": FEW, "precondition": "steady", "base": "dense"}
    with pytest.raises(flashatlas.InputError, match=r"3 runs together take at least 48\.0 KiB"):
        flashatlas.compare(cases, jobs=3, **dense)
    with pytest.raises(flashatlas.InputError, match="give at most 2"):
        flashatlas.compare(cases, jobs=3, **dense)
    assert len(flashatlas.compare(cases, jobs=2, **dense)) == 3
    # a drive that is computed takes no certain memory
    assert len(flashatlas.compare(cases, jobs=3, **{**dense, "base": "computed"})) == 3


REAL = """
import re, flashatlas
settings = {"map.unit": "16KiB", "drive.capacity": "61.44TB"}
drive = flashatlas.Drive("tlc-nvme-1tb", set=settings)
load = {"workload": "uniform:requests=3000,size=16KiB,read=0.5", "precondition": "steady"}
cases = [{"set": {"timing.t_read": time}} for time in ("50us", "60us")]
for result in [flashatlas.run(drive, **load), *flashatlas.compare(cases, drive=drive, **load)]:
    ways = result.record["sweep"]
    print(result.violations, ways["one_by_one"], ways["summed"], ways["by_base"], result.iops)
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's peak of memory")
def test_a_drive_of_61_tb_runs_in_the_memory_of_a_laptop():
    """Its tables would take 89.6 GiB. Two runs share its checkpoint, and give other times."""
    done = subprocess.run([sys.executable, "-c", REAL], capture_output=True, text=True, check=True)
    *runs, peak = done.stdout.splitlines()
    rates = set()
    for run in runs:
        violations, one_by_one, summed, by_base, rate = run.split()
        assert (violations, one_by_one) == ("0", "0")
        # at most 3,000 units were written by the host, and as many collected ones with each
        assert 1_000 < int(summed) < 100_000
        assert int(summed) + int(by_base) == 3_750_000_000
        rates.add(rate)
    assert len(runs) == 3 and len(rates) == 2, "the first and the second are the same run"
    # the goal is 0.5 GiB for a run, and two runs go on at the same time
    assert int(peak) < 2 * 512


def test_a_share_of_spare_that_was_meant_in_percent(cli):
    few = ("run", "-w", "uniform:requests=10,size=2KiB", "-q")
    said = cli(*few, "--set", "drive.over_provisioning=7").stderr
    assert "drive.over_provisioning = 7 is 700% spare: write 7% for 7 %" in said
    assert "spare" not in cli(*few, "--set", "drive.over_provisioning=60%").stderr
