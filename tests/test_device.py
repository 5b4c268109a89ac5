"""A drive in this process: bytes, power failures at chosen operations, and SQLite on it."""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys

import flashatlas
import pytest
from conftest import ONE_IN, ROOT
from flashatlas import Device, DriveError, InputError, PowerLost
from flashatlas.serving.served import CUT_MODES

UNIT = 2048
"""Bytes of a mapping unit, and of a page, of the drive `tiny`."""


def unit(number: int) -> bytes:
    return bytes([number % 255 + 1]) * UNIT


def overwritten(drive: Device, rounds: int) -> int:
    """Write 48 units again and again, each durably; return the last round that was begun."""
    number = 0
    try:
        for number in range(1, rounds + 1):
            for at in range(48):
                drive.write(at * UNIT, unit(number), fua=True)
    except PowerLost:
        pass
    return number


def test_what_was_flushed_outlives_a_power_failure_and_the_rest_does_not():
    with Device("tiny") as drive:
        assert (drive.capacity_bytes, drive.unit_bytes) == (640 * UNIT, UNIT)
        drive.write(0, unit(1))
        drive.flush()
        drive.write(0, unit(2))
        drive.write(UNIT, unit(3))
        drive.cut()
        with pytest.raises(PowerLost, match="the power has failed"):
            drive.flush()
        with pytest.raises(PowerLost):
            drive.read(0, UNIT)
        drive.power_on()
        assert drive.damage == []
        assert drive.read(0, 2 * UNIT) == unit(1) + bytes(UNIT)
        drive.write(512, b"\x07" * 512)
        assert drive.read(0, UNIT) == unit(1)[:512] + b"\x07" * 512 + unit(1)[:1024]
        drive.zero(0, 512)
        assert drive.read(0, 1024) == bytes(512) + b"\x07" * 512
        drive.trim(0, UNIT)
        assert drive.read(0, UNIT) == bytes(UNIT)
        result = drive.power_off()
        assert result.violations == 0 and result.record["host"]["trims"] == 1
        drive.power_on()


def test_leaving_the_block_switches_off_a_drive_that_is_on():
    with Device("tiny") as drive:
        drive.write(0, unit(1))
        assert drive.power_off().record["host"]["writes"] == 1
    with Device("tiny") as drive:
        drive.power_off()
        drive.power_on()
    with pytest.raises(DriveError, match="the power of the drive is off"):
        drive.read(0, UNIT)
    with pytest.raises(PowerLost), Device("tiny") as drive:
        drive.cut()
        with pytest.raises(PowerLost):
            drive.write(0, unit(1), fua=True)


def test_the_power_fails_in_the_operation_that_is_named():
    drive = Device("tiny")
    # each durable write of a unit is a program, and the drive is never full enough to collect
    drive.cut(after=100)
    for number in range(100):
        drive.write(number * UNIT, unit(number), fua=True)
    assert drive.operations == 100
    with pytest.raises(PowerLost):
        drive.write(100 * UNIT, unit(100), fua=True)
    drive.power_on()
    assert [drive.read(n * UNIT, UNIT) for n in range(101)] == [
        *(unit(n) for n in range(100)),
        bytes(UNIT),
    ]


@pytest.mark.long
@pytest.mark.parametrize("mode", ["prefix", "torn"])
def test_the_power_may_fail_in_the_mount_too(mode):
    """The power fails at each operation of a mount that writes; afterwards the drive mounts."""
    settings = ["ftl.scheme=fast"]

    def failed(operation: int) -> Device:
        drive = Device("tiny", set=settings, cut_mode=mode)
        drive.cut(after=operation)
        assert overwritten(drive, 60) > 1
        return drive

    tried = 0
    for operation in range(2000, 2060):
        drive = failed(operation)
        drive.power_on()
        rounds = [drive.read(at * UNIT, 512) for at in range(48)]
        for again in range(drive.operations):
            drive = failed(operation)
            with pytest.raises(PowerLost, match="while the drive was mounted"):
                drive.power_on(cut_after=again)
            with pytest.raises(DriveError, match="off"):
                drive.flush()
            drive.power_on()
            assert [drive.read(at * UNIT, 512) for at in range(48)] == rounds
            tried += 1
    assert tried > 5, tried


def test_an_image_in_a_file_outlives_the_process(tmp_path):
    image = tmp_path / "drive.img"
    with Device("tiny", image=image) as drive:
        drive.write(5 * UNIT, unit(5))
        with pytest.raises(InputError, match="another process has the image open"):
            Device("tiny", image=image)
    assert flashatlas.image_check(image)["units"]["written"] == 1
    with Device("tiny", image=image) as drive:
        assert drive.read(5 * UNIT, UNIT) == unit(5)
    with pytest.raises(InputError, match=r"image is of another drive: drive\.pages"):
        Device("tiny", set={"drive.pages": 16}, image=image)


@pytest.mark.parametrize("precondition", ["fill", "steady", "trace"])
@pytest.mark.parametrize("on_file", [False, True])
def test_an_aged_drive_holds_what_was_written_without_flush(tmp_path, precondition, on_file):
    """2,000 writes to 640 units of a drive of 1,024 slots collect blocks with aged pages in them.

    Changes are written to the image 4,096 at a time. Before that, the image has an older page at
    the place of a page that was copied without bytes.
    """
    if precondition == "trace":
        trace = tmp_path / "aged.spc"
        # writes to every second unit of four sectors: ASU, sector, bytes, operation, seconds
        trace.write_text("".join(f"0,{n * 8},{UNIT},w,{n}.0\n" for n in range(320)))
        precondition = f"trace:{trace}"
    image = tmp_path / "drive.img" if on_file else None
    held = [bytes(UNIT)] * 640
    chosen = random.Random(1)
    drive = Device("tiny", image=image, precondition=precondition)
    for number in range(2000):
        at = chosen.randrange(640)
        held[at] = number.to_bytes(4, "little") * (UNIT // 4)
        drive.write(at * UNIT, held[at])
    assert [drive.read(at * UNIT, UNIT) for at in range(640)] == held
    drive.power_off()
    drive.power_on()
    assert drive.damage == []
    assert [drive.read(at * UNIT, UNIT) for at in range(640)] == held


def test_bad_input_is_refused_by_name():
    drive = Device("tiny")
    with pytest.raises(InputError, match="7 bytes from byte 0 on are not whole sectors"):
        drive.write(0, b"seven b")
    with pytest.raises(InputError, match=r"beyond the end of the drive \(1310720 bytes\)"):
        drive.read(640 * UNIT, 512)
    drive.power_off()
    with pytest.raises(DriveError, match=r"off \(power_on\)"):
        drive.read(0, 512)
    with pytest.raises(
        InputError, match="cut_mode: `half` is not known: give prefix, torn or subset"
    ):
        Device("tiny", cut_mode="half")
    with pytest.raises(InputError, match=r"ftl\.scheme"):
        Device("tiny", set=["ftl.scheme=fastest"])


def example(name: str, package: str):
    """Return the module of an example; the test is skipped if its package is not installed."""
    pytest.importorskip(package)
    if str(ROOT / "examples") not in sys.path:
        sys.path.append(str(ROOT / "examples"))
    return importlib.import_module(name)


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [("sqlite_cuts", "apsw", "apsw"), ("littlefs_cuts", "littlefs", "littlefs-python")],
)
def test_an_example_says_what_it_needs(name, module, package, tmp_path):
    (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError(name={module!r})")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / f"{name}.py"],
        check=False,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == f"this example needs {package}: pip install {package}\n"


DRIVES = {
    "page": "drive.over_provisioning=0.25",
    "nvm-hybrid": "drive.over_provisioning=0.3 map.store=nvm-hybrid nvm.bytes=64KiB",
    "map pages": "drive.over_provisioning=0.3 map.flush=pages",
    "dftl": "drive.over_provisioning=0.35 map.store=dftl",
    "leaftl": "drive.over_provisioning=0.35 map.store=leaftl",
    "lpmt": "drive.over_provisioning=0.25 map.store=lpmt",
    "block": "ftl.scheme=block",
    "bast": "ftl.scheme=bast",
    "fast": "ftl.scheme=fast",
    "last": "ftl.scheme=last",
    "mast": "ftl.scheme=mast",
    "superblock": "ftl.scheme=superblock drive.over_provisioning=0.25",
    "hard": "drive.logical_pages=760 layers=hard hard.superpage=8KiB hard.page=2KiB",
}


def cut_mode(name: str, shift: int = 0) -> str:
    """Return the cut mode of a drive: neighbours in the list have different modes."""
    return CUT_MODES[(list(DRIVES).index(name) + shift) % len(CUT_MODES)]


@pytest.mark.parametrize("journal", ["delete", "truncate", "persist", "wal"])
@pytest.mark.parametrize("name", DRIVES)
def test_sqlite_loses_nothing_wherever_the_power_fails(name, journal):
    module = example("sqlite_cuts", "apsw")
    mode = cut_mode(name, module.JOURNALS.index(journal))
    options = {"drive": "tiny", "set": DRIVES[name].split(), "cut_mode": mode}
    one_in = 7 * ONE_IN if ONE_IN > 1 else 1
    cuts = module.Cuts(one_in=one_in, recoveries=3, options=options, journal=journal).run()
    assert not cuts.wrong, "\n".join(cuts.wrong)
    assert cuts.erases > 0 and cuts.cuts >= cuts.operations // one_in > 0
    assert cuts.acknowledged > 0


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_drive_that_ignores_flush_loses_transactions(journal):
    module = example("sqlite_cuts", "apsw")
    options = {"drive": "tiny", "set": DRIVES["page"].split(), "ignore_flush": True}
    cuts = module.Cuts(one_in=3, options=options, journal=journal).run()
    assert any("were acknowledged" in said for said in cuts.wrong)


CALLS = 100
"""Calls of littlefs: enough for the drive to collect."""


@pytest.mark.parametrize("name", DRIVES)
def test_littlefs_loses_nothing_wherever_the_power_fails(name):
    module = example("littlefs_cuts", "littlefs")
    mode = cut_mode(name)
    options = {"drive": "tiny", "set": DRIVES[name].split(), "cut_mode": mode}
    one_in = 7 * ONE_IN if ONE_IN > 1 else 1
    cuts = module.Cuts(CALLS, one_in, 3, options).run()
    assert not cuts.wrong, "\n".join(cuts.wrong)
    assert cuts.erases > 0 and cuts.cuts >= cuts.operations // one_in > 0
    assert cuts.acknowledged > 0 and cuts.in_recovery >= cuts.cuts


def test_a_drive_that_ignores_flush_loses_files():
    module = example("littlefs_cuts", "littlefs")
    options = {"drive": "tiny", "set": DRIVES["page"].split(), "ignore_flush": True}
    cuts = module.Cuts(CALLS, 20, options=options).run()
    assert any("were acknowledged" in said for said in cuts.wrong)
