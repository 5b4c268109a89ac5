"""NVMe drives that are served over TCP, under hosts of our own."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import flashatlas
import pytest
from conftest import ONE_IN
from flashatlas import DriveError, InputError, PowerLost
from flashatlas.serving.serve import serve
from nvme import BLOCK, Gone, Host, Status, initiator

HERE = "tcp://127.0.0.1:0"
SMALL = ["drive.blocks=96", "drive.logical_pages=2000", "map.unit=2KiB"]
UNIT = 2048
BLOCKS = UNIT // BLOCK
"""Logical blocks of a mapping unit."""


def numbered(number: int) -> bytes:
    """Return the content of a unit: zeros for 0."""
    if number == 0:
        return bytes(UNIT)
    return struct.pack("<QQ", number, ~number & (1 << 64) - 1) * (UNIT // 16)


def text(page: bytes, at: int, length: int) -> str:
    return page[at : at + length].decode().rstrip(" \0")


def test_a_host_identifies_writes_reads_and_compares():
    with serve("tiny", set=SMALL, nvme=HERE) as drive, Host(drive) as host:
        controller, namespace = host.ask("identify", 1, 0), host.ask("identify", 0, 1)
        assert text(controller, 24, 40) == "FlashAtlas tiny"
        assert text(controller, 768, 256) == drive.variables["nqn"]
        assert controller[525] & 1 == 1, "it has a volatile write cache"
        assert int.from_bytes(namespace[:8], "little") == 2000 * BLOCKS
        one, two = numbered(1), numbered(2)
        host.write(8, one)
        host.write(16, two, fua=True)
        host.flush()
        assert host.read(8, 4) == one and host.read(16, 4) == two
        assert host.read(9, 1) == one[BLOCK : 2 * BLOCK]
        host.ask("compare", 8, one.hex())
        with pytest.raises(Status, match="0285"):  # Compare Failure
            host.ask("compare", 8, two.hex())
        host.ask("trim", 8, 4)
        assert host.read(8, 4) == bytes(UNIT)
        host.ask("zeroes", 17, 2)
        assert host.read(16, 4) == two[:BLOCK] + bytes(2 * BLOCK) + two[3 * BLOCK :]
        with pytest.raises(Status, match="0080"):  # LBA Out of Range
            host.read(2000 * BLOCKS, 1)
        with pytest.raises(Status, match="0080"):
            host.read(2**64 - 1, 2)
    record = drive.result.record
    assert drive.result.violations == 0 and record["served"]["fua_writes"] == 1
    assert record["served"]["nvme"]["hosts"] == ["nqn.2026-11.example:host-1"]
    assert record["served"]["nvme"]["associations"] == 1
    assert record["served"]["nvme"]["commands"]["io"] == {
        "Flush": 1,
        "Write": 2,
        "Read": 7,
        "Compare": 2,
        "Write Zeroes": 1,
        "Dataset Management": 1,
    }
    assert record["served"]["nvme"]["commands"]["admin"] == {"Identify": 2}


def test_two_hosts_share_a_drive_and_one_comes_back():
    with serve("tiny", set=SMALL, nvme=HERE) as drive:
        with Host(drive, 1) as one, Host(drive, 2) as two:
            one.write(0, numbered(1))
            two.write(4, numbered(2))
            assert one.read(4, 4) == numbered(2) and two.read(0, 4) == numbered(1)
        with Host(drive, 1) as again:
            assert again.read(0, 8) == numbered(1) + numbered(2)
    found = drive.result.record["served"]["nvme"]
    assert found["hosts"] == ["nqn.2026-11.example:host-1", "nqn.2026-11.example:host-2"]
    assert found["associations"] == 3


def test_logs_say_what_the_record_says():
    rng = random.Random(1)
    with serve("tiny", set=[*SMALL, "nand.endurance=100"], nvme=HERE) as drive, Host(drive) as host:
        for number in range(1, 6001):
            host.write(BLOCKS * rng.randrange(2000), numbered(number))
        host.read(0, 8)
        host.flush()
        smart, amplification = host.smart(), host.ask("log", 0xC0, 512)
        health = host.ask("log", 2, 512)
    record = drive.result.record
    written, programmed, thousandths, erases = struct.unpack_from("<4Q", amplification, 8)
    assert written == record["host"]["write_bytes"] == 6000 * UNIT
    page = programmed // sum(record["nand"]["programs"].values())
    assert page == UNIT and thousandths == int(record["waf"] * 1000)
    assert erases == sum(record["nand"]["erases"].values()) > 0
    assert smart["writes"] == 6000 and smart["units_written"] == 6000 * BLOCKS // 1000
    assert (smart["reads"], smart["units_read"]) == (1, 1)
    # with an endurance of 100 erases, each is a percent
    assert smart["used"] == int(record["wear"]["mean"]) > 0 and smart["spare"] == 100
    assert (smart["power_cycles"], smart["unsafe_shutdowns"], smart["hours"]) == (1, 0, 0)
    assert record["smart"] == {
        "critical_warning": health[0],
        "available_spare": health[3],
        "available_spare_threshold": health[4],
        "percentage_used": health[5],
        "data_units_read": smart["units_read"],
        "data_units_written": smart["units_written"],
        "host_read_commands": smart["reads"],
        "host_write_commands": smart["writes"],
        "media_errors": smart["media_errors"],
        "power_on_hours": smart["hours"],
    }


def test_totals_and_names_outlive_the_server_and_unclean_ends_are_counted(tmp_path):
    options = {"set": SMALL, "image": tmp_path / "drive.img", "nvme": HERE}
    ends = ["stop", "kill", "kill", "shutdown", "cut", "stop"]
    names, seen = set(), []
    for end in ends:
        drive = serve("tiny", **options)
        names.add(drive.variables["nqn"])
        with Host(drive) as host:
            names.add(host.ask("identify", 0, 1)[120:128])
            seen.append(host.smart())
            host.write(0, numbered(1), fua=True)
            if end == "shutdown":
                host.ask("shutdown")
                drive.kill()
            elif end == "cut":
                drive.cut()
                with pytest.raises(Gone):
                    for _ in range(1000):
                        host.write(0, numbered(1), fua=True)
                with pytest.raises(PowerLost):
                    drive.stop()
            else:
                getattr(drive, end)()
    assert len(names) == 2, "one name of the subsystem and one of the namespace"
    assert [smart["power_cycles"] for smart in seen] == [1, 2, 3, 4, 5, 6]
    assert [smart["unsafe_shutdowns"] for smart in seen] == [0, 0, 1, 2, 2, 3]
    assert seen[1]["writes"] == 1, "an end in order keeps all totals"
    with serve("tiny", **options, nqn="nqn.2026-11.example:named") as drive:
        assert drive.variables["nqn"] == "nqn.2026-11.example:named"
    with serve("tiny", **options) as drive:
        assert drive.variables["nqn"] == "nqn.2026-11.example:named"


def test_a_start_that_finds_its_port_in_use_is_no_power_cycle(tmp_path):
    image = tmp_path / "drive.img"
    options = {"set": SMALL, "image": image}
    with serve("tiny", **options, nvme=HERE):
        pass
    before = image.read_bytes()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InputError, match=f"nvme: cannot listen on {place}: "):
            serve("tiny", **options, nvme=f"tcp://{place}")
    assert image.read_bytes() == before
    with serve("tiny", **options, nvme=HERE) as drive, Host(drive) as host:
        assert host.smart()["power_cycles"] == 2


def test_without_an_image_each_drive_has_names_of_its_own():
    with serve("tiny", nvme=HERE) as one, serve("tiny", nvme=HERE) as two:
        assert one.variables["nqn"] != two.variables["nqn"]
        assert re.fullmatch(r"nvme\+tcp://127\.0\.0\.1:\d+/nqn\.2014-08\..*", one.uri)


def test_only_hosts_that_are_named_connect():
    with serve("tiny", nvme=HERE, allow=["nqn.2026-11.example:host-1"]) as drive:
        with Host(drive, 1) as host:
            host.flush()
        with pytest.raises(Status, match="0184"):  # Connect Invalid Host
            Host(drive, 2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"nvme": HERE, "port": 4420}, "port: this option is for NBD"),
        ({"nvme": HERE, "socket": "s"}, "socket: this option is for NBD"),
        ({"nvme": HERE, "tls": "."}, "tls: this option is for NBD"),
        ({"nqn": "nqn.a"}, "nqn: this option is for an NVMe drive"),
        ({"allow": ["nqn.a"]}, "allow: this option is for an NVMe drive"),
        ({"poll": "1ms"}, "poll: this option is for an NVMe drive"),
        ({"nvme": HERE, "poll": "soon"}, "poll: `soon` is not a time such as 500ms or 2s"),
        ({"nvme": HERE, "poll": "2s"}, "poll: `2s` is too long; the longest time is 1 s"),
        ({"nvme": "somewhere"}, r"nvme: `somewhere` is not an address; give tcp://ADDRESS:PORT"),
        ({"nvme": "tcp://127.0.0.1:70000"}, "give tcp://ADDRESS:PORT"),
        ({"nvme": HERE, "nqn": "drive"}, "nqn: `drive` is not a name that begins with `nqn.`"),
        ({"nvme": HERE, "allow": ["me"]}, "allow: `me` is not a name that begins with `nqn.`"),
        ({"nvme": "tcp://192.0.2.1:4420"}, "cannot listen on 192.0.2.1:4420"),
    ],
)
@pytest.mark.filterwarnings("ignore:nvme")
def test_what_cannot_be_served_is_refused_by_name(tmp_path, options, said):
    image = tmp_path / "new.img"
    with pytest.raises(InputError, match=said):
        serve("tiny", image=image, **options)
    assert not image.exists(), "nothing is left"


def test_an_address_that_others_reach_is_said_in_a_warning():
    with (
        pytest.warns(UserWarning, match=r"0\.0\.0\.0 answers every host .* without TLS"),
        serve("tiny", nvme="tcp://0.0.0.0:0"),
    ):
        pass


def test_run_has_what_nvme_connect_asks_for(cli, tmp_path):
    told = 'echo "$traddr $trsvcid $nqn $uri" > said.txt'
    done = cli("serve", "-d", "tiny", "--nvme", HERE, "--nqn", "nqn.a:b", "--run", told)
    assert done.returncode == 0, done.stderr
    said = (tmp_path / "said.txt").read_text()
    assert re.fullmatch(r"127\.0\.0\.1 (\d+) nqn\.a:b nvme\+tcp://127\.0\.0\.1:\1/nqn\.a:b\n", said)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(tmp_path, number):
    command = [sys.executable, "-m", "flashatlas", "serve", "-d", "tiny", "--nvme", HERE]
    command += ["--image", "d.img", "-o", "o"]
    server = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    found = re.search(r"tcp://(\S+):(\d+)/(\S+)", server.stdout.readline())
    place = dict(zip(("traddr", "trsvcid", "nqn"), found.groups(), strict=True))
    with Host(Elsewhere(place)) as host:
        host.write(0, numbered(number))
        begin = time.monotonic()
        server.send_signal(number)  # the host stays
        printed, _ = server.communicate(timeout=60)
        assert time.monotonic() - begin < 10
    assert server.returncode == 0, printed
    record = json.loads((tmp_path / "o/run.json").read_text())
    assert record["host"]["write_bytes"] == UNIT and record["oracle"]["violations"] == 0
    with serve("tiny", image=tmp_path / "d.img", nvme=HERE) as drive, Host(drive) as host:
        assert host.read(0, 4) == numbered(number)
        assert host.smart()["unsafe_shutdowns"] == 0


class Elsewhere:
    """The place of a drive that another process serves."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.variables = variables


def test_it_ends_with_its_last_host(tmp_path):
    drive = serve("tiny", nvme=HERE, once=True)
    with Host(drive) as host:
        host.write(0, numbered(1))
    threading.Timer(30, drive.kill).start()
    drive.wait()
    assert drive.stop().record["host"]["writes"] == 1


def test_metrics_and_a_trace_are_those_of_every_served_drive(tmp_path):
    trace = tmp_path / "life.fatr"
    with serve("tiny", nvme=HERE, metrics="127.0.0.1:0", record=trace) as drive:
        with Host(drive) as host:
            host.write(0, numbered(1))
            host.flush()
            time.sleep(0.7)  # the state is renewed every half second
            with urllib.request.urlopen(f"{drive.metrics_url}/live.json") as answer:
                seen = json.load(answer)
        assert seen["record"]["host"]["writes"] == 1
    assert drive.result.record["served"]["recorded"]["requests"] == 2
    assert flashatlas.run("tiny", trace=trace).record["host"]["flushes"] == 1


@pytest.mark.parametrize("poll", [None, "0s", 0.5])
def test_replies_wait_for_the_drive_if_they_are_to(poll):
    with serve("tiny", set=SMALL, nvme=HERE, time=200, poll=poll) as drive, Host(drive) as host:
        begin = time.monotonic()
        host.write(0, numbered(1), fua=True)
        host.write(4, numbered(2), fua=True)
        took = time.monotonic() - begin
    simulated = 2 * drive.result.record["latency_ns"]["write"]["mean"] * 200 / 1e9
    assert 0.01 < simulated <= took, "no reply comes before the drive answers"
    assert drive.result.record["served"]["late_ns"]["count"] >= 2


SUBJECTS = {
    "page map in DRAM": [],
    "demand-loaded map": ["map.store=demand", "map.cache_bytes=4KiB"],
    "DFTL": ["map.store=dftl", "map.cache_bytes=4KiB"],
    "FAST": ["ftl.scheme=fast"],
    "write-back cache": ["cache.mode=write-back", "cache.bytes=64KiB"],
}
"""Schemes and stores under the kills: 20 of them, 200 with FLASHATLAS_PROOFS=1."""


class Client:
    """A host that knows what each of its units may hold."""

    def __init__(self, slots: range, seed: int) -> None:
        self.slots, self.rng = slots, random.Random(seed)
        self.versions = {slot: [0] for slot in slots}
        self.number, self.durable, self.wrong = 0, 0, []

    def load(self, drive, identity: int) -> None:
        """Write until the server is gone."""
        with contextlib.suppress(Gone), Host(drive, identity) as host:
            while True:
                self.one(host)

    def one(self, host: Host) -> None:
        if self.rng.random() < 0.15:
            host.flush()
            for held in self.versions.values():
                del held[:-1]
            self.durable += 1
            return
        slot, fua = self.rng.choice(self.slots), self.rng.random() < 0.1
        self.number += 1
        zero = self.rng.random() < 0.1
        held = self.versions[slot]
        held.append(0 if zero else self.number * 1000 + self.slots.start)
        if zero:
            host.ask("zeroes", slot * BLOCKS, BLOCKS)
        else:
            host.write(slot * BLOCKS, numbered(held[-1]), fua)
            if fua:
                del held[:-1]
                self.durable += 1

    def check(self, drive, identity: int) -> None:
        """Compare the content; from then on, expect in each unit the content that was found."""
        with Host(drive, identity) as host:
            for slot, held in self.versions.items():
                data = host.read(slot * BLOCKS, BLOCKS)
                found = next((n for n in reversed(held) if data == numbered(n)), None)
                if found is None:
                    self.wrong.append(f"unit {slot} holds {data[:8].hex()}, not one of {held}")
                held[:] = [held[-1] if found is None else found]


def killed(image, settings: list[str], rounds: int, **options) -> tuple[int, list[str]]:
    """Kill the server under two hosts; return how much was durable, and the faults."""
    rng = random.Random(7)
    clients = [Client(range(300), 1), Client(range(300, 600), 2)]
    for number in range(rounds):
        drive = serve("tiny", set=[*SMALL, *settings], image=image, nvme=HERE, **options)
        # hosts that the drive knows, and fresh hosts in every second round
        first = 1 if number % 2 == 0 else 3 + 2 * number
        for at, client in enumerate(clients):
            client.check(drive, first + at)
        threads = [
            threading.Thread(target=client.load, args=(drive, first + at))
            for at, client in enumerate(clients)
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.1 + rng.random() * 0.2)
        drive.kill()
        for thread in threads:
            thread.join()
    with serve("tiny", set=[*SMALL, *settings], image=image, nvme=HERE) as drive:
        for client in clients:
            client.check(drive, 1)
        with Host(drive) as host:
            assert host.smart()["unsafe_shutdowns"] == rounds
    assert drive.result.violations == 0
    wrong = [line for client in clients for line in client.wrong]
    return sum(client.durable for client in clients), wrong


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_killed_server_loses_nothing_that_was_acknowledged_and_flushed(tmp_path, subject):
    initiator()
    rounds = 40 // min(ONE_IN, 10)
    durable, wrong = killed(tmp_path / "drive.img", SUBJECTS[subject], rounds)
    assert wrong == []
    # a slow machine acknowledges less before the kill, but never next to nothing
    assert durable > 2 * rounds, durable


def test_a_server_that_ignores_flush_is_found_out(tmp_path):
    _, wrong = killed(tmp_path / "drive.img", [], 4, ignore_flush=True)
    assert len(wrong) > 5


@pytest.mark.parametrize("pace", ["none", "real"])
def test_a_power_failure_is_silent_and_the_image_is_as_it_left_it(tmp_path, pace):
    """With the time of the drive, a read or write meets the failure when it is submitted."""
    image, client = tmp_path / "cut.img", Client(range(300), 5)
    for operations in (40, 200, 333):
        drive = serve("tiny", set=SMALL, image=image, nvme=HERE, cut_after=operations, time=pace)
        client.check(drive, 1)
        client.load(drive, 1)
        with pytest.raises(PowerLost, match=r"cut\.img is in the state that the failure left"):
            drive.stop()
    with serve("tiny", set=SMALL, image=image, nvme=HERE) as drive:
        client.check(drive, 2)
    assert client.wrong == [] and client.durable > 5


def test_a_drive_without_room_says_so_and_the_server_ends(tmp_path):
    worn = ["drive.blocks=32", "drive.logical_pages=500", "map.unit=2KiB", "nand.endurance=3"]
    drive = serve("tiny", set=worn, nvme=HERE)
    with Host(drive) as host, pytest.raises((Status, Gone)) as failed:
        for number in range(1, 100_000):
            host.write(BLOCKS * (number % 500), numbered(number))
    assert str(failed.value) in ("0081", "0280") or failed.type is Gone
    drive.wait()
    with pytest.raises(DriveError):
        drive.stop()


without_nbdkit = pytest.mark.skipif(
    shutil.which("nbdkit") is None, reason="nbdkit is not installed (make system-tests)"
)
DOORS = [HERE, pytest.param(None, marks=without_nbdkit)]
"""Addresses over NVMe; `None` is NBD."""


def runs(pid: int) -> bool:
    """Return `True` while a thread of the process runs; a zombie does not count."""
    for thread in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if ") Z " not in thread.read_text():
                return True
    return False


@pytest.mark.parametrize("nvme", DOORS)
def test_a_server_ends_with_the_process_that_began_it(tmp_path, nvme):
    image = tmp_path / "drive.img"
    program = (
        "import os, flashatlas\n"
        f"drive = flashatlas.serve('tiny', image={str(image)!r}, nvme={nvme!r}).__enter__()\n"
        "print(drive.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    # a server that goes on keeps the pipes open, so this call times out
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    for _ in range(100):
        if not runs(int(done.stdout)):
            break
        time.sleep(0.1)
    else:
        pytest.fail("the server goes on without the process that began it")
    assert flashatlas.image_check(image)["sound"], "it has closed the image"


@pytest.mark.parametrize("nvme", DOORS)
def test_a_server_outlives_the_thread_that_began_it(nvme):
    with ThreadPoolExecutor() as pool:
        drive = pool.submit(serve, "tiny", nvme=nvme).result()
    time.sleep(0.3)  # a server sees the end of its parent sooner than this
    with drive:
        assert runs(drive.pid)
