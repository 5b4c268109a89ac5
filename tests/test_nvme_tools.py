"""Other people's tools on a drive that is served over NVMe, in a guest: nvme-cli, fio, btrfs."""

from __future__ import annotations

import json
import re

import pytest
from conftest import ONE_IN
from drawn import drawn
from flashatlas.plug.guest import Machine, root
from flashatlas.serving.serve import serve
from pulled_plugs import cells

pytestmark = pytest.mark.skipif(
    "guest" not in drawn() or root.missing() is not None,
    reason=f"{root.missing() or 'another proof is drawn (drawn.py)'} (make system-tests)",
)

HERE = "tcp://127.0.0.1:0"
DRIVE, SETTINGS = next((drive, settings) for name, drive, settings in cells() if "demand" in name)
BYTES = 65_536 * 4096
FSYNCS = 20
MANY = 4 << 20
"""Bytes that a job of fio writes and verifies."""

QUESTIONS = {
    "controller": "nvme id-ctrl /dev/nvme0 -o json",
    "namespace": "nvme id-ns $DRIVE -o json",
    "descriptors": "nvme ns-descs $DRIVE",
    "list": "nvme list",
    # without `-c 0`, version 2.3 first reads CAP, and reads a wrong value
    "effects": "nvme effects-log /dev/nvme0 -c 0",
    "flush": "nvme flush $DRIVE -n 1",
    "compare": """
        dd if=/dev/urandom of=/tmp/two bs=4k count=2
        dd if=/tmp/two of=/tmp/first bs=4k count=1
        nvme write $DRIVE -s 16 -c 15 -z 8192 -d /tmp/two --force-unit-access
        nvme compare $DRIVE -s 16 -c 15 -z 8192 -d /tmp/two
        nvme compare $DRIVE -s 24 -c 7 -z 4096 -d /tmp/first || echo refused
        nvme verify $DRIVE -s 16 -c 15""",
    "zeroes": """
        nvme write-zeroes $DRIVE -s 16 -c 7
        nvme read $DRIVE -s 16 -c 15 -z 8192 -d /tmp/got
        cmp -n 4096 /tmp/got /dev/zero && tail -c 4096 /tmp/got >/tmp/tail
        tail -c 4096 /tmp/two | cmp - /tmp/tail && echo as expected""",
    "dsm": """
        nvme dsm $DRIVE -n 1 -d -s 16 -b 16
        nvme read $DRIVE -s 16 -c 15 -z 8192 -d /tmp/got
        cmp -n 8192 /tmp/got /dev/zero && echo as expected""",
    "beyond": f"nvme read $DRIVE -s {BYTES // 512} -c 7 -z 4096 -d /tmp/got || echo refused",
    "errors": "nvme error-log /dev/nvme0 -e 4 -o json",
    "cache": """
        nvme set-feature /dev/nvme0 -f 6 -v 0; nvme get-feature /dev/nvme0 -f 6 -H
        nvme set-feature /dev/nvme0 -f 6 -v 1; nvme get-feature /dev/nvme0 -f 6 -H""",
    "smart": "nvme smart-log /dev/nvme0 -o json",
    "passthrough": f"""
        fio --name=a --ioengine=io_uring_cmd --cmd_type=nvme --filename=/dev/ng0n1 --bs=4k \
            --rw=randwrite --iodepth=8 --size={MANY} --verify=crc32c --output-format=json""",
    "aio": f"""
        fio --name=a --ioengine=libaio --direct=1 --filename=$DRIVE --bs=4k --fsync=16 \
            --rw=randwrite --iodepth=8 --size={MANY} --verify=crc32c --output-format=json""",
    "damage": f"""
        dd if=/dev/zero of=$DRIVE bs=4k seek=9 count=1 oflag=direct
        fio --name=a --ioengine=libaio --direct=1 --filename=$DRIVE --bs=4k --rw=randwrite \
            --size={MANY} --verify=crc32c --verify_only --output=/dev/null || echo found out""",
    "blkdiscard": """
        blkdiscard $DRIVE
        dd if=$DRIVE bs=64k count=64 iflag=direct 2>/dev/null | tr -d '\\0' | wc -c""",
    "btrfs": f"""
        mkfs.btrfs -q -f $DRIVE
        mount -t btrfs $DRIVE /at
        for i in $(seq {FSYNCS}); do
            dd if=/dev/urandom of=/at/$i bs=20k count=1 conv=fsync 2>/dev/null
        done
        sha256sum /at/* >/tmp/sums
        fstrim -v /at
        umount /at
        btrfs check $DRIVE
        mount -t btrfs $DRIVE /at
        sha256sum -c /tmp/sums
        umount /at""",
}


@pytest.fixture(scope="module")
def of():
    """Return the tools' answers, by question, and the record of the drive."""
    with serve(DRIVE, set=SETTINGS, nvme=HERE) as drive, Machine(drive, "nvme", kind="tools") as at:
        said = {name: at.ask("run", commands=asked)["said"] for name, asked in QUESTIONS.items()}
    assert drive.result is not None and drive.result.violations == 0
    return said, drive.result.record, drive.variables["nqn"]


def test_nvme_cli_identifies_the_drive(of):
    said, _, nqn = of
    controller, namespace = json.loads(said["controller"]), json.loads(said["namespace"])
    assert controller["mn"].strip() == f"FlashAtlas {DRIVE}" and controller["subnqn"] == nqn
    compare, deallocate, zeroes, verify = 1 << 0, 1 << 2, 1 << 3, 1 << 7
    wanted = compare | deallocate | zeroes | verify
    assert controller["oncs"] & wanted == wanted and controller["vwc"] & 1 == 1
    assert namespace["nsze"] << namespace["lbafs"][0]["ds"] == BYTES
    assert namespace["nguid"].endswith(namespace["eui64"])
    assert namespace["eui64"] in said["descriptors"] and f"FlashAtlas {DRIVE}" in said["list"]


def test_nvme_cli_reads_the_effects_of_commands(of):
    said, _, _ = of
    there = set(re.findall(r"IOCS\d+ +\[(.*?) *\]", said["effects"]))
    compulsory = {"Flush", "Write", "Read"}
    assert there == compulsory | {"Compare", "Write Zeroes", "Dataset Management", "Verify"}
    changes = dict(re.findall(r"\[(.*?) *\] [0-9a-f]{7}([0-9a-f])", said["effects"]))
    # bit 0: supported; bit 1: the content of a namespace changes
    assert changes["Write"] == changes["Dataset Management"] == "3" and changes["Read"] == "1"


def test_nvme_cli_flushes_compares_zeroes_and_deallocates(of):
    said, _, _ = of
    assert "success" in said["flush"]
    assert "compare: Success" in said["compare"] and "Verify Success" in said["compare"]
    assert "Compare Failure" in said["compare"] and "refused" in said["compare"]
    assert "as expected" in said["zeroes"] and "as expected" in said["dsm"]
    assert "LBA Out of Range" in said["beyond"] and "refused" in said["beyond"]
    assert [*re.findall(r"\(WCE\): (\w+)", said["cache"])] == ["Disabled", "Enabled"]


def test_nvme_cli_reads_the_errors_and_the_health_of_the_drive(of):
    said, _, _ = of
    beyond, different, none, _ = json.loads(said["errors"])["errors"]
    # status code type and code, without More and Do Not Retry
    assert [each["status_field"] & 0x7FF for each in (beyond, different)] == [0x080, 0x285]
    assert [beyond["lba"], different["lba"]] == [BYTES // 512, 24] and none["error_count"] == 0
    smart = json.loads(said["smart"])
    assert smart["num_err_log_entries"] == "2" and smart["host_write_commands"] == "1"
    assert [smart[name] for name in ("power_cycles", "unsafe_shutdowns", "avail_spare")] == [
        "1",
        "0",
        100,
    ]


@pytest.mark.parametrize("how", ["passthrough", "aio"])
def test_fio_verifies_what_it_wrote(of, how):
    said, record, _ = of
    (job,) = json.loads(said[how])["jobs"]
    assert job["error"] == 0
    assert job["write"]["io_bytes"] == job["read"]["io_bytes"] == MANY
    assert record["served"]["nvme"]["commands"]["io"]["Write"] >= 2 * MANY // 4096


def test_fio_finds_out_a_block_that_is_not_what_it_wrote(of):
    said, _, _ = of
    assert "found out" in said["damage"]


def test_a_discarded_drive_reads_as_zeros(of):
    said, record, _ = of
    assert said["blkdiscard"].strip() == "0" and record["host"]["trim_bytes"] >= BYTES


def test_btrfs_finds_everything_and_flushes_for_each_fsync(of):
    said, record, _ = of
    assert said["btrfs"].count(": OK\n") == FSYNCS and "no error found" in said["btrfs"]
    # a sync of btrfs's log ends in a FLUSH and a superblock with FUA
    assert record["served"]["fua_writes"] >= FSYNCS and record["host"]["flushes"] >= FSYNCS


@pytest.mark.skipif(ONE_IN > 1, reason="two minutes: FLASHATLAS_PROOFS=1 runs it")
def test_a_minute_of_pgbench_keeps_its_sums():
    begin = """
        echo postgres:x:70:70::/tmp:/bin/sh >/etc/passwd; echo postgres:x:70: >/etc/group
        chmod 1777 /tmp; mkdir -p /dev/shm; mount -t tmpfs -o mode=1777 tmpfs /dev/shm
        mkfs.ext4 -q -F $DRIVE; mount -t ext4 $DRIVE /at; chown 70:70 /at
        export PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
        su postgres -c "initdb -D /at/data -A trust"
        echo "listen_addresses = ''" >>/at/data/postgresql.conf
        su postgres -c "pg_ctl -D /at/data -o '-k /tmp' -l /tmp/log -w start" </dev/null"""
    sums = "SELECT sum({}balance) FROM pgbench_{}"
    asked = [sums.format(kind[0], kind) for kind in ("accounts", "tellers", "branches")]
    asked += ["SELECT sum(delta) FROM pgbench_history", "SELECT count(*) FROM pgbench_history"]
    work = f"""
        pgbench -U postgres -h /tmp -i -q -s 1 postgres
        pgbench -U postgres -h /tmp -T 60 -c 4 postgres
        psql -U postgres -h /tmp -A -t -c "{"; ".join(asked)}" >/tmp/sums
        su postgres -c "pg_ctl -D /at/data -m fast stop"
        umount /at; e2fsck -f -n $DRIVE
        echo sums: $(cat /tmp/sums)"""
    with (
        serve(DRIVE, set=SETTINGS, nvme=HERE) as drive,
        Machine(drive, "nvme", kind="postgres") as guest,
    ):
        said = guest.ask("run", commands=begin + work)["said"]
    processed = int(re.search(r"actually processed: (\d+)", said)[1])
    found = [int(word) for word in said.rpartition("sums: ")[2].split()]
    assert len(set(found[:4])) == 1, "accounts, tellers, branches and history agree"
    # a transaction may also be there if its client ended before the reply
    assert processed <= found[4] <= processed + 4 and processed > 60
    assert drive.result.violations == 0
    assert drive.result.record["host"]["flushes"] >= processed // 4
