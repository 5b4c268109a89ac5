"""A drive that is served over NVMe, under the NVMe driver of Linux in a guest."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from drawn import drawn
from flashatlas import DriveError, InputError, PowerLost, Result
from flashatlas.plug.guest import Machine, root
from flashatlas.serving.serve import serve

pytestmark = pytest.mark.skipif(
    "guest" not in drawn() or root.missing() is not None,
    reason=f"{root.missing() or 'another proof is drawn (drawn.py)'} (make system-tests)",
)

HERE = "tcp://127.0.0.1:0"
DRIVE = "tlc-small"

AGAIN = """
    reconnect() {
        for each in /sys/class/nvme/*; do echo 1 >$each/delete_controller; done
        printf "transport=tcp,traddr=10.0.2.2,trsvcid=$PORT,$1" >/dev/nvme-fabrics
        until [ "$(cat /sys/class/nvme/nvme0/state)" = live ] && ls $2; do sleep 0.1; done
    } 2>/dev/null >/dev/null
"""
"""Shell function that disconnects everything, and connects with the options `$1` until `$2` is
there."""

WRITES = 400
NUMBERED = f"""
import mmap, os
drive = os.open(os.environ["DRIVE"], os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
page = mmap.mmap(-1, 4096)
def numbered(n):
    return (n + 1).to_bytes(8, "little") * 512
for n in range({WRITES}):
    page[:] = numbered(n)
    os.pwrite(drive, page, n * 4096)
for n in range({WRITES}):
    os.preadv(drive, [page], n * 4096)
    assert page[:] == numbered(n), n
print("all there")
"""
"""Program that writes numbered pages with FUA, and reads them when all are written."""


@pytest.fixture(scope="module")
def of():
    """Return the guest's answers about a drive, by question, and the part `nvme` of the record."""
    with serve(DRIVE, nvme=HERE) as drive, Machine(drive, "nvme") as guest:
        port, nqn = drive.variables["trsvcid"], drive.variables["nqn"]

        def ask(commands: str) -> str:
            return guest.ask("run", commands=f"PORT={port}\n{AGAIN}\n{commands}")["said"]

        copied = """
            dd if=/dev/urandom of=/tmp/sent bs=64k count=32
            dd if=/tmp/sent of=$DRIVE bs=64k seek=7 oflag=direct
            dd if=$DRIVE of=/tmp/got bs=64k skip=7 count=32 iflag=direct
            cmp /tmp/sent /tmp/got"""
        said = {
            "queue": ask("cd /sys/block/nvme0n1/queue && cat fua write_cache zoned"),
            "model": ask("cat /sys/class/nvme/nvme0/model"),
            "reset": ask(f"echo 1 >/sys/class/nvme/nvme0/reset_controller {copied}"),
            "digests": ask(f"reconnect nqn={nqn},hdr_digest,data_digest $DRIVE {copied}"),
            "small": ask(f"reconnect nqn={nqn},queue_size=16,keep_alive_tmo=1 $DRIVE {copied}"),
            "discovery": ask(
                """reconnect nqn=nqn.2014-08.org.nvmexpress.discovery
                cat /sys/class/nvme/nvme0/cntrltype"""
            ),
        }
        with pytest.raises(InputError, match="guest: `virtio-blk` does not attach nvme"):
            Machine(drive, "virtio-blk")
    assert drive.result.violations == 0
    return said, drive.result.record["served"]["nvme"]


def test_linux_sees_a_drive_with_a_write_cache_and_fua(of):
    said, nvme = of
    assert said["model"].strip() == f"FlashAtlas {DRIVE}"
    assert said["queue"] == "1\nwrite back\nnone\n"
    assert nvme["commands"]["admin"]["Asynchronous Event Request"] >= 1


@pytest.mark.parametrize("how", ["reset", "digests", "small"])
def test_data_are_the_same_after_a_reset_with_digests_and_in_small_queues(of, how):
    said, _ = of
    assert "32+0 records in" in said[how] and "differ" not in said[how]


def test_linux_discovers_the_drive(of):
    said, nvme = of
    assert said["discovery"].strip() == "discovery"
    # connections: the first, after the reset, with digests, and with small queues
    assert nvme["associations"] == 4, "the discovery controller is not one of the drive's"


def cut(image: Path, after: int, **options: bool) -> Result:
    """Let the power fail under the guest's writes, serve again, and return the second result.

    Raises:
        DriveError: A page is not there; the guest wrote the message.

    """
    settings = ["cache.bytes=64KiB"]  # less than the guest writes
    drive = serve(DRIVE, set=settings, nvme=HERE, image=image, cut_after=after, **options)
    again = f"tcp://127.0.0.1:{drive.variables['trsvcid']}"
    with ThreadPoolExecutor() as pool, Machine(drive, "nvme") as guest:
        said = pool.submit(guest.ask, "run", commands=f"python3 -c '{NUMBERED}'")
        said.add_done_callback(lambda _: drive.kill())  # no power failure: it does not wait forever
        drive.wait()
        with pytest.raises(PowerLost):
            drive.stop()
        with serve(DRIVE, set=settings, nvme=again, image=image) as on:
            assert said.result()["said"] == "all there\n"
    return on.result


def test_linux_comes_back_after_a_power_failure_and_finds_what_fua_promised(tmp_path):
    result = cut(tmp_path / "drive.img", WRITES // 2)
    assert 0 < result.record["served"]["fua_writes"] < WRITES, "the power failed in the middle"


def test_linux_finds_out_a_drive_that_ignores_flush_and_fua(tmp_path):
    with pytest.raises(DriveError, match=r"AssertionError: \d+$"):
        cut(tmp_path / "drive.img", WRITES // 10, ignore_flush=True)


BY_HAND = """
    loop() { python3 -c "
import sqlite3
n = 0
try:
    with sqlite3.connect('/at/log.db', isolation_level=None) as log:
        for mode in ('locking_mode = exclusive', 'journal_mode = wal', 'synchronous = full'):
            log.execute(f'PRAGMA {mode}').fetchall()
        log.execute('CREATE TABLE log(n INTEGER PRIMARY KEY)')
        while True:
            log.execute('INSERT INTO log VALUES(?)', (n + 1,))
            n += 1
except sqlite3.OperationalError as error:
    print(n, error)
    "; }
    found() { python3 -c "
import sqlite3
log = sqlite3.connect('/at/log.db')
print(*log.execute('PRAGMA integrity_check').fetchone())
print(*log.execute('SELECT count(*), max(n) FROM log').fetchone())
    "; }
    reconnect nqn=$NQN,ctrl_loss_tmo=0 $DRIVE
    mkfs.ext4 -q -F -J size=4 $DRIVE >/dev/null 2>&1
    mount -t ext4 $DRIVE /at
    loop
    umount /at
    connect() { printf "transport=tcp,traddr=10.0.2.2,trsvcid=$PORT,nqn=$NQN" >/dev/nvme-fabrics; }
    until connect 2>/dev/null; do sleep 0.2; done
    until ls $DRIVE >/dev/null 2>&1; do sleep 0.1; done
    mount -t ext4 $DRIVE /at
    found
    umount /at && e2fsck -f -n $DRIVE >/dev/null 2>&1 && echo clean
"""
"""The walk of docs/howto/pull-the-plug-of-an-nvme-drive.md, in a kernel that does not wait."""


def test_a_kernel_that_does_not_wait_gets_errors_and_sqlite_recovers(tmp_path):
    image = tmp_path / "drive.img"
    drive = serve(DRIVE, nvme=HERE, image=image, cut_after=600)
    at = drive.variables
    walk = f"PORT={at['trsvcid']}\nNQN={at['nqn']}\n{AGAIN}{BY_HAND}"
    with ThreadPoolExecutor() as pool, Machine(drive, "nvme") as guest:
        said = pool.submit(guest.ask, "run", commands=walk)
        said.add_done_callback(lambda _: drive.kill())  # no power failure: it does not wait forever
        drive.wait()
        with pytest.raises(PowerLost):
            drive.stop()
        with serve(DRIVE, nvme=f"tcp://127.0.0.1:{at['trsvcid']}", image=image):
            acknowledged, integrity, found, clean = said.result()["said"].splitlines()
    last, _, error = acknowledged.partition(" ")
    assert int(last) > 0 and error in ("disk I/O error", "unable to open database file")
    assert (integrity, clean) == ("ok", "clean")
    count, newest = map(int, found.split())
    assert count == newest and newest - int(last) in (0, 1), "the last one may have been under way"
