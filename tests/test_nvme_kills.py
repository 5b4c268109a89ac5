"""The server of an NVMe drive is killed under a guest that stays mounted, again and again.

Linux connects again within `ctrl_loss_tmo`: for the drive that is a controller reset after a power
failure, and for the file system it is a long command. Data that the drive had acknowledged but not
made durable is gone, and Linux does not write it again. So with the volatile write cache the test
tries only writes that are durable when they return. With the cache off it tries everything that
ext4 does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import ONE_IN
from drawn import drawn
from flashatlas import DriveError
from flashatlas.plug.guest import Machine, root
from flashatlas.serving.serve import Serving, serve

pytestmark = pytest.mark.skipif(
    "guest" not in drawn() or root.missing() is not None,
    reason=f"{root.missing() or 'another proof is drawn (drawn.py)'} (make system-tests)",
)

DRIVE = "tlc-small"
# the cache is smaller than the data that the guest writes between two kills
PAGE = ["drive.blocks=24", "drive.logical_pages=65536", "map.store=demand", "cache.bytes=64KiB"]
KILLS = 20 // min(ONE_IN, 10)

AGAIN = """
import os, re, time
def connected_again():
    return os.popen("dmesg").read().count("Successfully reconnected")
def kept(begin):
    # the kernel waits a second before it tries to connect again
    return time.monotonic() - begin < 0.9
"""
"""Functions of both programs of the guest: the state of the connection to the server."""

SLOTS = 64
IN_PLACE = f"""{AGAIN}
import mmap, sys
page = mmap.mmap(-1, 4096)
at = os.open("/at/slots", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
durable = os.open("/at/slots", os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
def put(file, n):
    page[:] = n.to_bytes(8, "little") * 512
    os.pwrite(file, page, n % {SLOTS} * 4096)
def found():
    there = []
    for slot in range({SLOTS}):
        os.preadv(at, [page], slot * 4096)
        n = int.from_bytes(page[:8], "little")
        there.append(n if page[:] == n.to_bytes(8, "little") * 512 else -1)
    print("found", connected_again(), *there, flush=True)
if sys.argv[1] == "0":
    found()
    sys.exit()
for n in range({SLOTS}):
    put(at, n)
os.fsync(at)
os.sync()
while connected_again() < int(sys.argv[1]):
    n += 1
    begin = time.monotonic()
    put(durable if n % 2 else at, n)
    if n % 2 == 0:
        os.fdatasync(at)
    # a write with FUA is repeated whole; a write before a FLUSH was perhaps lost between the two
    print("acknowledged" if n % 2 or kept(begin) else "perhaps", n, flush=True)
    if not kept(begin):
        found()
"""
"""Program that writes numbers over old ones, the odd ones with FUA and the even ones with a FLUSH.

It ends after the given number of connections. With 0 it only prints the numbers on the drive."""

APPENDED = f"""{AGAIN}
import fcntl, pathlib, random, struct, sys
from flashatlas.plug.records import Records
at, acknowledged, begin = pathlib.Path("/at"), set(), time.monotonic()
class Enough(Exception):
    pass
def found():
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
    print("found", connected_again(), len(acknowledged - Records().found(at)[0]), flush=True)
def acknowledge(n):
    global begin
    acknowledged.add(n)
    print("acknowledged", n, flush=True)
    if not kept(begin):
        found()
        if connected_again() >= int(sys.argv[1]):
            raise Enough
    begin = time.monotonic()
if sys.argv[1] == "0":
    acknowledged = set(map(int, sys.stdin.read().split()))
    found()
    sys.exit()
SET_FEATURES, SAVE, VOLATILE_WRITE_CACHE, OFF = 9, 1 << 31, 6, 0
with open("/dev/nvme0") as drive:
    asked = (SET_FEATURES, *(0,) * 9, SAVE | VOLATILE_WRITE_CACHE, OFF, *(0,) * 6)
    command = bytearray(struct.pack("=BBHIIIQQIIIIIIIIII", *asked))
    assert fcntl.ioctl(drive, 0xC0484E41, command) == 0  # NVME_IOCTL_ADMIN_CMD
Records().prepare(at)
try:
    Records().write(at, 1, random.Random(1), acknowledge)
except Enough:
    print(*acknowledged, file=open("/tmp/acknowledged", "w"))
"""
"""Program that switches the drive's cache off for good, and appends records with fsync.

It says how many of the acknowledged records are missing."""


class Killed:
    """A drive whose server is killed at random acknowledgements, and begun anew at its port."""

    def __init__(self, image: Path, **options: bool) -> None:
        self.options = {"set": PAGE, "image": image, **options}
        self.drive = self.serve("tcp://127.0.0.1:0")
        self.port, self.rng, self.kills = self.drive.variables["trsvcid"], random.Random(7), 0

    def serve(self, nvme: str) -> Serving:
        return serve(DRIVE, nvme=nvme, **self.options)

    def lines(self, program: str, kills: int) -> Iterator[list[str]]:
        """Yield the words of the guest's lines; kill the server between them."""
        commands = f"""
            mkfs.ext4 -q -F $DRIVE
            mount -t ext4 -o noatime $DRIVE /at
            cat >/tmp/program <<'END'\n{program}\nEND
            cd / && export PYTHONPATH=/
            python3 /tmp/program {kills}
            umount /at
            e2fsck -f -n $DRIVE
            mount -t ext4 $DRIVE /at
            touch /tmp/acknowledged
            python3 /tmp/program 0 </tmp/acknowledged
            umount /at"""
        with Machine(self.drive, "nvme") as guest:
            left = self.rng.randrange(20, 100)
            for answer in guest.answers("run", commands=commands):
                words = answer.get("line", "").split()
                yield words
                if words[:1] == ["acknowledged"] and self.kills < kills:
                    left -= 1
                if left == 0:
                    left = -1  # no other kill before the guest is back
                    self.kills += 1
                    self.drive.kill()
                    self.drive = self.serve(f"tcp://127.0.0.1:{self.port}")
                if words[:1] == ["found"] and int(words[1]) == self.kills and left < 0:
                    left = self.rng.randrange(20, 100)


def in_place(killed: Killed, kills: int, wrong: list[str]) -> None:
    """Add to `wrong` the faults of the numbers that the guest writes in place."""
    held = {slot: {slot} for slot in range(SLOTS)}
    looks = 0
    for words in killed.lines(IN_PLACE, kills):
        if words[:1] == ["acknowledged"]:
            held[int(words[1]) % SLOTS] = {int(words[1])}
        elif words[:1] == ["perhaps"]:
            held[int(words[1]) % SLOTS].add(int(words[1]))
        elif words[:1] == ["found"]:
            looks += 1
            for slot, n in enumerate(map(int, words[2:])):
                if n not in held[slot]:
                    wrong.append(f"slot {slot} holds {n}, not one of {held[slot]}")
                held[slot] = {n}
    assert looks > kills, "it looked after each kill, and when it had mounted again"


def appended(killed: Killed, kills: int, wrong: list[str]) -> None:
    """Add the number of missing records among those that the guest appends."""
    looks = [words[2] for words in killed.lines(APPENDED, kills) if words[:1] == ["found"]]
    assert len(looks) > kills
    wrong += [f"{missing} are missing" for missing in looks if missing != "0"]


@pytest.mark.parametrize("work", [in_place, appended])
def test_a_guest_that_stays_mounted_finds_all_that_was_durable_after_each_kill(tmp_path, work):
    killed, wrong = Killed(tmp_path / "drive.img"), []
    work(killed, KILLS, wrong)
    assert wrong == []
    result = killed.drive.stop()
    assert killed.kills == KILLS and result.violations == 0
    assert result.record["served"]["fua_writes"] > 0


def test_a_drive_that_ignores_flush_is_found_out_by_a_guest_that_stays_mounted(tmp_path):
    killed, wrong = Killed(tmp_path / "drive.img", ignore_flush=True), []
    with suppress(DriveError):  # e2fsck may find the file system lost, too
        in_place(killed, 2, wrong)
    killed.drive.kill()
    assert len(wrong) > 5
