"""Reports of `flashatlas image` on images that `serve` made: sound, damaged, and in use."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from errno import EIO
from pathlib import Path

import flashatlas
import pytest
from flashatlas import DriveError, InputError, PowerLost
from flashatlas.serving.serve import serve
from nbd import FLUSH, READ, WRITE, Client

pytestmark = pytest.mark.skipif(
    shutil.which("nbdkit") is None, reason="nbdkit is not installed (make system-tests)"
)

UNIT = 2048
"""Bytes of a mapping unit, and of a page, of the drive `tiny`."""


def written(image, units: int, **options) -> None:
    """Serve an image, and fill each of its first units with the unit's number."""
    with serve("tiny", image=image, **options) as drive:
        client = Client(drive.uri)
        for unit in range(units):
            assert client.ask(WRITE, unit * UNIT, data=bytes([unit + 1]) * UNIT)[0] == 0
        assert client.ask(FLUSH)[0] == 0
        client.close()


def digest(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_an_image_says_what_it_is_of_and_stays_as_it_is(tmp_path):
    image = tmp_path / "drive.img"
    written(image, 100)
    before = digest(image)
    said = flashatlas.image_info(image)
    assert said["drive"] == "tiny" and said["bytes"] == image.stat().st_size
    assert said["capacity_bytes"] == 640 * UNIT
    assert {"drive.pages=8", "map.store=dram", "drive.logical_pages=640"} <= set(said["set"])
    # the settings in the image make the same drive
    flashatlas.Drive(said["drive"], set=said["set"])
    found = flashatlas.image_check(image)
    assert found["sound"] and found["units"] == {"all": 640, "written": 100}
    # one unit a frame, each written once: no frame is programmed twice, and no block was erased
    assert found["frames"] == {"all": 1024, "programmed": 100, "unreadable": 0}
    assert found["blocks"]["erases"] == {"least": 0, "mean": 0.0, "most": 0}
    assert found["mount"]["rolled_forward"] == 100 and found["mount"]["lost"] == 0
    assert digest(image) == before


def test_a_damaged_frame_is_named_and_its_unit_is_gone(cli, tmp_path):
    image = tmp_path / "drive.img"
    written(image, 100)
    content = bytearray(image.read_bytes())
    # the image has the content of unit 41 once; change one of its bytes
    content[content.index(bytes([42]) * UNIT) + 7] ^= 1
    image.write_bytes(content)
    found = flashatlas.image_check(image)
    assert not found["sound"] and found["damaged"]["frames"] == 1
    assert len(found["damaged"]["named_frames"]) == 1
    assert found["frames"]["programmed"] == 99 and found["units"]["written"] == 99
    done = cli("image", "check", "drive.img", "--json", "found.json")
    assert done.returncode == 4
    (frame,) = found["damaged"]["named_frames"]
    assert f"1: {frame}" in done.stdout and "damaged" in done.stdout
    assert json.loads((tmp_path / "found.json").read_text())["damaged"] == found["damaged"]
    shown = cli("image", "info", "drive.img")
    assert shown.returncode == 0 and "tiny, 1.2 MiB" in shown.stdout


@pytest.mark.parametrize(("mode", "unreadable"), [("prefix", 0), ("torn", 1)])
def test_what_a_power_failure_left_is_sound(tmp_path, mode, unreadable):
    image = tmp_path / "drive.img"
    with (
        pytest.raises((PowerLost, ConnectionError)),
        serve("tiny", image=image, cut_after=60, cut_mode=mode) as drive,
    ):
        client = Client(drive.uri)
        for unit in range(200):
            client.ask(WRITE, unit * UNIT, data=b"x" * UNIT)
            client.ask(FLUSH)
    found = flashatlas.image_check(image)
    # the 61st operation was a program; a power failure leaves no damage, only unreadable frames
    assert found["sound"] and found["units"]["written"] == 60
    assert found["frames"] == {"all": 1024, "programmed": 60, "unreadable": unreadable}


def test_a_mount_is_cut_at_each_of_its_operations_and_the_next_one_copes(cli, tmp_path):
    image, copy = tmp_path / "drive.img", tmp_path / "copy.img"
    small = ["map.store=demand", "map.cache_bytes=4KiB"]
    with (
        pytest.raises((PowerLost, ConnectionError)),
        serve("tiny", set=small, image=image, cut_after=700) as drive,
    ):
        client = Client(drive.uri)
        for number in range(2000):
            client.ask(WRITE, number * 37 % 640 * UNIT, data=bytes([number % 251]) * UNIT)
        client.ask(FLUSH)
    held = flashatlas.image_check(image)["units"]["written"]
    shutil.copy(image, copy)
    operations = flashatlas.image_cut(copy, 1_000_000)
    assert operations > 1, "this mount writes, so that it can be cut"
    for after in range(operations):
        shutil.copy(image, copy)
        assert flashatlas.image_cut(copy, after, cut_mode=("prefix", "torn")[after % 2]) is None
        found = flashatlas.image_check(copy)
        assert found["sound"] and found["units"]["written"] == held
    shutil.copy(image, copy)
    done = cli("image", "cut", "copy.img", "--after", "1")
    assert done.returncode == 0 and "in flash operation 2" in done.stdout
    done = cli("image", "cut", "copy.img", "--after", "1000000")
    assert done.returncode == 0 and "the power did not fail: the mount takes" in done.stdout


def resident(pid: int) -> int:
    """Return the number of bytes of a process that are in memory."""
    (line,) = re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(line) * 1024


@pytest.mark.parametrize("kept", ["image", "memory"])
def test_with_an_image_bytes_are_in_memory_only_until_they_are_written(tmp_path, kept):
    image = tmp_path / "drive.img" if kept == "image" else None
    data = bytes(range(256)) * 4096  # a megabyte
    with serve("tlc-small", image=image) as drive:
        before, client = resident(drive.pid), Client(drive.uri)
        for megabyte in range(256):
            assert client.ask(WRITE, megabyte << 20, data=data)[0] == 0
            if megabyte % 16 == 15:
                assert client.ask(FLUSH)[0] == 0
        grown = resident(drive.pid) - before
        assert client.ask(READ, 77 << 20, length=1 << 20)[1] == data
        client.close()
    # the write cache and the data of a FLUSH are small compared with a quarter of a gigabyte
    assert grown < 96 << 20 if image else grown > 256 << 20


def test_content_that_is_damaged_stops_the_drive_and_is_named_by_the_next_start(tmp_path):
    image = tmp_path / "drive.img"
    written(image, 100)
    content = bytearray(image.read_bytes())
    content[content.index(bytes([42]) * UNIT) + 7] ^= 1
    image.write_bytes(content)

    def answers(drive) -> list[int]:
        client = Client(drive.uri)
        said = [client.ask(READ, unit * UNIT, length=UNIT) for unit in range(42)]
        client.close()
        assert all(data == bytes([unit + 1]) * UNIT for unit, (_, data) in enumerate(said[:41]))
        return [error for error, _ in said]

    with (
        pytest.raises(DriveError, match="does not match its checksum"),
        serve("tiny", image=image) as drive,
    ):
        assert drive.damage == [] and answers(drive) == [0] * 41 + [EIO]
    with serve("tiny", image=image) as drive:
        assert len(drive.damage) == 1 and "no readable page" in drive.damage[0]
        assert answers(drive) == [0] * 42  # for the drive, these units have no content


def test_what_cannot_be_looked_at_is_said(cli, tmp_path):
    image = tmp_path / "drive.img"
    with (
        serve("tiny", image=image),
        pytest.raises(InputError, match="another process has the image open"),
    ):
        flashatlas.image_check(image)
    (tmp_path / "text").write_text("not an image, and longer than the head of one")
    for name, why in [("text", "byte 0: the file is not an image"), ("none", "No such file")]:
        for command in ("info", "check"):
            done = cli("image", command, name)
            assert done.returncode == 2 and why in done.stderr, done.stderr
            assert name in done.stderr
    assert not (tmp_path / "none").exists()
    with pytest.raises(InputError, match=r"drive\.blocks is 32 there, but 48 here"):
        flashatlas.image_check(image, set=["drive.blocks=48"])


def test_an_image_under_a_layer_is_checked_with_its_capacity(tmp_path):
    image = tmp_path / "drive.img"
    layered = ["layers=hard", "hard.superpage=8KiB", "hard.page=2KiB", "hard.segment=16"]
    with serve("tiny", set=layered, image=image):
        pass
    found = flashatlas.image_check(image)
    assert found["sound"] and "hard.superpage=8192" in flashatlas.image_info(image)["set"]


def test_a_year_on_the_shelf_is_found_by_the_next_mount(cli, tmp_path):
    # 8192 x 1e-4 t bits of a codeword are wrong after t days: 300 after a year. The BCH code
    # corrects 40; a retry changes nothing, and there is no soft decoding
    numbers = ["e=0", "a=0", "b=1e-4", "m=0", "n=1", "g=0"]
    ages = ["errors.model=tlc-72l", "ecc.code=bch", "ecc.retry_gain=1"]
    ages += [f"errors.{number}" for number in numbers]
    image = tmp_path / "drive.img"
    written(image, 50, set=ages)
    assert flashatlas.image_check(image, set=ages)["sound"]
    assert "10.0 days" in cli("image", "age", str(image), "10d").stdout
    assert flashatlas.image_check(image, set=ages)["units"]["written"] == 50
    assert "375.0 days" in cli("image", "age", str(image), "1y").stdout
    found = flashatlas.image_check(image, set=ages)
    assert found["units"]["written"] == 0
    assert flashatlas.image_check(image)["units"]["written"] == 50, "without errors nothing ages"
    refused = cli("image", "age", str(image), "tomorrow")
    assert refused.returncode == 2 and "give a number of hours" in refused.stderr
