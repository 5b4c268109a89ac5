"""A guest with a kernel of its own on a served drive, and the plug, pulled under it."""

from __future__ import annotations

import re
import shutil

import flashatlas
import pytest
import torn_scheme
from conftest import ONE_IN
from drawn import drawn
from flashatlas import InputError, plug
from flashatlas.plug.guest import ATTACHED, Machine, root
from pulled_plugs import cells

pytestmark = pytest.mark.skipif(
    "guest" not in drawn() or root.missing() is not None or shutil.which("nbdkit") is None,
    reason=f"{root.missing() or 'another proof is drawn (drawn.py)'} (make system-tests)",
)

DRIVE, SETTINGS = next((drive, settings) for name, drive, settings in cells() if "demand" in name)
TIMES = 10 // min(ONE_IN, 10)
FSYNCS = 20


@pytest.fixture(scope="module")
def of():
    """Return output and counts of the same shell commands for each attachment of the drive."""
    found = {}
    for attach in ATTACHED:
        nvme = "tcp://127.0.0.1:0" if attach == "nvme" else None
        with (
            flashatlas.serve(DRIVE, set=SETTINGS, nvme=nvme) as drive,
            Machine(drive, attach) as guest,
        ):
            commands = f"""
                mkfs.ext4 -q -F $DRIVE
                mount -t ext4 $DRIVE /at
                for i in $(seq {FSYNCS}); do
                    dd if=/dev/urandom of=/at/$i bs=20k count=1 conv=fsync
                done 2>/dev/null
                sha256sum /at/[0-9]* >/tmp/sums
                rm /at/1
                fstrim -v /at
                umount /at
                e2fsck -f -n $DRIVE
                mount -t ext4 $DRIVE /at
                sha256sum -c /tmp/sums 2>/dev/null || true
                umount /at"""
            said = guest.ask("run", commands=commands)["said"]
            if attach == "virtio-blk":
                with pytest.raises(flashatlas.DriveError, match=r"guest: .*no_such_program"):
                    guest.ask("run", commands="no_such_program")
        assert drive.result is not None and drive.result.violations == 0
        found[attach] = said, drive.result.record["host"], drive.result.record["served"]
    return found


@pytest.mark.parametrize("attach", ATTACHED)
def test_a_file_system_is_made_trimmed_checked_and_read_again(of, attach):
    said, host, _ = of[attach]
    assert said.count(": OK\n") == FSYNCS - 1 and "/at/1: FAILED" in said
    (trimmed,) = re.findall(r"(\d+) bytes trimmed", said)
    # mkfs trims the whole drive, fstrim the free blocks
    assert host["trim_bytes"] >= int(trimmed) + 65_536 * 4096 > 0
    assert "Pass 5" in said and "Fix?" not in said


@pytest.mark.parametrize("attach", ["nbd", "nvme"])
def test_a_virtual_disk_is_flushed_twice_for_each_fsync_and_a_driver_with_fua_once(of, attach):
    # ext4 commits its journal by a FLUSH and a last block with FUA; without FUA, by a second FLUSH
    _, virtual, of_virtual = of["virtio-blk"]
    _, own, of_own = of[attach]
    assert of_virtual["fua_writes"] == 0 and virtual["flushes"] >= 2 * FSYNCS
    assert of_own["fua_writes"] >= FSYNCS and own["flushes"] >= FSYNCS
    # the journal also commits after some time: at most a few commits more
    assert abs(own["flushes"] + of_own["fua_writes"] - virtual["flushes"]) <= 6


@pytest.mark.parametrize("kernel", ["guest", "guest-nbd", "guest-nvme"])
def test_a_guest_finds_everything_that_fsync_promised(kernel):
    client = "sqlite" if kernel == "guest-nbd" else "records"
    pulls, result = plug.pull(
        DRIVE, set=SETTINGS, kernel=kernel, client=client, times=TIMES, within=1500, seed=TIMES
    )
    assert len(pulls) == TIMES and [(p.lost, p.check) for p in pulls] == [(0, "")] * TIMES
    assert pulls[-1].acknowledged > 10 * TIMES and result.violations == 0
    fua_writes = sum(pull.fua_writes for pull in pulls)
    # an appended record changes the size of its file, so each fsync commits the journal
    least = pulls[-1].acknowledged if kernel == "guest-nvme" else 1
    assert fua_writes >= least if kernel != "guest" else fua_writes == 0


@pytest.mark.parametrize("ignored", ["ignore_flush", "ignore_fua"])
def test_a_drive_that_ignores_it_is_found_out(ignored):
    # only the last FUA writes since a FLUSH are lost, so not every cut loses something
    kernel = "guest" if ignored == "ignore_flush" else "guest-nbd"
    pulls, _ = plug.pull(
        DRIVE, set=SETTINGS, kernel=kernel, times=4, within=300, seed=7, **{ignored: True}
    )
    assert pulls[-1].lost > 0 or pulls[-1].check


def test_a_mount_that_drops_blocks_with_a_torn_page_is_found_out():
    torn_scheme.load()
    pulls, _ = plug.pull(
        torn_scheme.DRIVE, set=torn_scheme.SETTINGS, kernel="guest", times=4, within=1500, seed=7
    )
    assert pulls[-1].lost > 0 or pulls[-1].check


def test_a_client_that_is_not_in_the_guest_is_named():
    pytest.importorskip("rocksdict")
    with pytest.raises(
        InputError, match=r"`rocksdb` cannot run in a guest \(allowed: records, sqlite"
    ):
        plug.pull(DRIVE, set=SETTINGS, kernel="guest", client="rocksdb")
