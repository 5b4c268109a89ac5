"""Drives that are served, under real clients: nbdinfo, nbdcopy, fio, and clients of our own."""

from __future__ import annotations

import csv
import hashlib
import json
import os
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

import flashatlas
import pytest
from conftest import ONE_IN
from flashatlas import Device, DriveError, InputError, PowerLost, parts
from flashatlas.serving.serve import serve
from nbd import FLUSH, FUA, READ, TRIM, WRITE, ZEROES, Client
from test_parts import PAGE, compiled

pytestmark = pytest.mark.skipif(
    shutil.which("nbdkit") is None, reason="nbdkit is not installed (make system-tests)"
)

SMALL = ["drive.blocks=96", "drive.logical_pages=2000", "map.unit=2KiB", "map.store=demand"]
SMALL += ["map.cache_bytes=4KiB"]
GIVEN = [word for setting in SMALL for word in ("--set", setting)]


def needs(program: str) -> pytest.MarkDecorator:
    there = shutil.which(program) is not None
    return pytest.mark.skipif(not there, reason=f"{program} is not installed (make system-tests)")


@needs("fio")
def test_fio_verifies_what_it_wrote_and_the_record_is_a_runs(cli, tmp_path):
    fio = (
        'fio --name=a --ioengine=nbd --uri="$uri" --rw=randrw --bs=4k --iodepth=8 --size=3M '
        "--io_size=12M --verify=crc32c --verify_fatal=1 --fsync=32 --output=fio.txt"
    )
    done = cli("serve", "-d", "tiny", *GIVEN, "--run", fio, "--out", "o")
    assert done.returncode == 0, done.stderr + (tmp_path / "fio.txt").read_text()
    record = json.loads((tmp_path / "o/run.json").read_text())
    assert record["oracle"]["violations"] == 0 and record["oracle"]["units_checked"] > 1000
    assert record["host"]["flushes"] > 10 and record["waf"] > 1
    assert record["trace"]["format"] == "served" and "sha256:" in record["build"]["sources"]
    loaded = flashatlas.Result.load(tmp_path / "o")
    assert loaded.to_arrow("latency").num_rows > 0 and (tmp_path / "o/report.html").is_file()


@needs("nbdcopy")
def test_a_file_is_copied_in_and_out_and_survives_the_server(tmp_path):
    content = random.Random(1).randbytes(3 << 20)
    (tmp_path / "in").write_bytes(content)
    with serve("tiny", set=SMALL, image=tmp_path / "drive.img") as drive:
        info = json.loads(subprocess.check_output(["nbdinfo", "--json", drive.uri]))["exports"][0]
        assert info["export-size"] == 2000 * 2048 and info["can_fua"] and info["can_multi_conn"]
        assert info["block_size_preferred"] == 2048 and info["block_size_minimum"] == 512
        subprocess.run(["nbdcopy", "--flush", tmp_path / "in", drive.uri], check=True)
    assert drive.result.violations == 0
    with serve("tiny", set=SMALL, image=tmp_path / "drive.img") as drive:
        subprocess.run(["nbdcopy", drive.uri, tmp_path / "out"], check=True)
        extents = json.loads(subprocess.check_output(["nbdinfo", "--map", "--json", drive.uri]))
    out = (tmp_path / "out").read_bytes()
    assert hashlib.sha256(out[: len(content)]).digest() == hashlib.sha256(content).digest()
    assert not any(out[len(content) :])
    assert [(e["length"], e["type"]) for e in extents] == [
        (3 << 20, 0),
        (2000 * 2048 - (3 << 20), 3),
    ]


@needs("qemu-img")
def test_the_benchmark_of_qemu_sends_what_the_record_counts():
    bench = ["qemu-img", "bench", "-f", "raw", "-c", "1000", "-d", "16", "-s", "2048"]
    with serve("tiny", set=SMALL) as drive:
        write = ["-w", "--pattern=90", "--flush-interval=100"]
        subprocess.run([*bench, *write, drive.uri], check=True, stdout=subprocess.PIPE)
        said = subprocess.check_output([*bench, drive.uri], text=True)
        assert Client(drive.uri).ask(READ, 999 * 2048, 2048) == (0, bytes([90]) * 2048)
    assert "Run completed" in said
    host = drive.result.record["host"]
    assert (host["writes"], host["reads"]) == (1000, 1001) and host["flushes"] >= 10
    assert host["write_bytes"] == 1000 * 2048 and drive.result.violations == 0


def numbered(number: int) -> bytes:
    return struct.pack("<QQ", number, ~number & (1 << 64) - 1) * 128


def load(drive, rng: random.Random, slots: int, versions: dict[int, list[int]], first: int) -> int:
    """Write until the server is gone; ``versions`` gets the versions that slots may hold.

    Return the number of FLUSHes and FUA writes that were acknowledged.
    """
    number, durable = first, 0
    try:
        client = Client(drive.uri)  # the server may be gone already
        while True:
            number += 1
            if rng.random() < 0.15:
                assert client.ask(FLUSH)[0] == 0
                durable += 1
                for held in versions.values():
                    del held[:-1]
                continue
            slot, fua = rng.randrange(slots), rng.random() < 0.1
            held = versions.setdefault(slot, [0])
            held.append(number)
            error, _ = client.ask(
                WRITE, slot * 2048, data=numbered(number), flags=FUA if fua else 0
            )
            assert error == 0
            if fua:
                durable += 1
                del held[:-1]
    except OSError:
        pass
    return durable


def lost(drive, versions: dict[int, list[int]]) -> list[str]:
    """Return the slots with wrong content; ``versions`` then has the content that was found."""
    client, wrong = Client(drive.uri), []
    for slot, held in versions.items():
        error, data = client.ask(READ, slot * 2048, 2048)
        assert error == 0
        found = next(
            (n for n in reversed(held) if data == (numbered(n) if n else bytes(2048))), None
        )
        if found is None:
            number = int.from_bytes(data[:8], "little")
            wrong.append(f"slot {slot} holds {number}, not one of {held}")
        held[:] = [held[-1] if found is None else found]
    client.close()
    return wrong


@pytest.mark.parametrize("layers", ["none", "hard"])
def test_a_killed_server_loses_nothing_that_was_flushed(tmp_path, layers):
    rng, versions, durable = random.Random(7), {}, 0
    settings = list(SMALL)
    if layers == "hard":
        settings += ["layers=hard", "hard.superpage=8KiB", "hard.page=2KiB", "hard.segment=16"]
        settings += ["drive.logical_pages=3000", "drive.blocks=144", "hard.reserve=0.3"]
    rounds = 100 // min(ONE_IN, 10)
    for number in range(rounds):
        drive = serve("tiny", set=settings, image=tmp_path / "drive.img")
        assert lost(drive, versions) == []
        killer = threading.Timer(0.02 + rng.random() * 0.15, drive.kill)
        killer.start()
        durable += load(drive, rng, 900, versions, number * 1_000_000)
        killer.join()
    # a slow machine acknowledges less before the kill, but never next to nothing
    assert durable > 2 * rounds, durable
    with serve("tiny", set=settings, image=tmp_path / "drive.img") as drive:
        assert lost(drive, versions) == []
    assert drive.result.violations == 0


def cut(tmp_path, **options) -> tuple[int, list[str]]:
    """Pull the plug a few times; return the count that ``load`` gives, and the lost slots."""
    rng, versions, durable, wrong = random.Random(3), {}, 0, []
    for number in range(6):
        drive = serve(
            "tiny",
            set=SMALL,
            image=tmp_path / "cut.img",
            cut_after=rng.randrange(40, 400),
            **options,
        )
        wrong += lost(drive, versions)
        durable += load(drive, rng, 900, versions, number * 1_000_000)
        with pytest.raises(PowerLost, match=r"cut\.img is in the state that the failure left"):
            drive.stop()
    with serve("tiny", set=SMALL, image=tmp_path / "cut.img") as drive:
        wrong += lost(drive, versions)
    return durable, wrong


def test_a_power_failure_loses_nothing_that_was_flushed_and_the_check_can_fail(tmp_path):
    durable, wrong = cut(tmp_path)
    assert durable > 50 and wrong == []
    (tmp_path / "cut.img").unlink()
    durable, wrong = cut(tmp_path, ignore_flush=True)
    assert durable > 50 and len(wrong) > 5, "a drive that ignores FLUSH must be found out"


def test_a_plug_in_is_served_and_a_part_in_python_is_refused_by_name(tmp_path):
    """A scheme in C is served, and its data survives a power failure."""
    library = compiled(tmp_path, PAGE)
    parts.load(library)
    image, rng, versions = tmp_path / "c.img", random.Random(11), {}
    settings = ["drive.blocks=96", "drive.logical_pages=2000", "ftl.scheme=page-c"]
    drive = serve("tiny", set=settings, image=image, cut_after=300)
    assert load(drive, rng, 300, versions, 0) > 0
    with pytest.raises(PowerLost):
        drive.stop()
    with serve("tiny", set=settings, image=image) as drive:
        assert lost(drive, versions) == []
    assert drive.result.violations == 0
    (part,) = drive.result.record["parts"]
    assert (part["kind"], part["name"], part["version"]) == ("scheme", "page-c", "1.0")
    # a drive that uses no added part is not refused
    with serve("tiny") as drive:
        assert "parts" not in drive.stop().record or not drive.result.record["parts"]

    class Served(parts.Victim):
        name = "served-first"

        def pick(self, lane):
            return 0

    parts.add(Served)
    with pytest.raises(InputError, match=r"victim policy `served-first` .* flashatlas\.Device"):
        serve("tiny", set=["ftl.victim=served-first"])
    with Device("tiny", set=["ftl.victim=served-first"]) as own:
        own.write(0, bytes(2048))


def test_the_power_may_fail_while_the_drive_is_mounted(cli, tmp_path):
    """After a power failure FAST repeats the interrupted merge: its mount programs and erases."""
    image, settings = tmp_path / "cut.img", ["ftl.scheme=fast"]
    for operation in range(2000, 2100):
        image.unlink(missing_ok=True)
        drive = Device("tiny", set=settings, image=image)
        drive.cut(after=operation)
        with pytest.raises(PowerLost):
            for i in range(3000):
                drive.write(2048 * (i % 48), bytes([i % 48 + 1]) * 2048, fua=True)
        del drive  # close the image
        before = image.read_bytes()
        drive = Device("tiny", set=settings, image=image)
        took = drive.operations
        drive.power_off()
        if took > 0:
            break
    image.write_bytes(before)
    with pytest.raises(PowerLost, match="while the drive was mounted"):
        serve("tiny", set=settings, image=image, cut_after=0)
    image.write_bytes(before)
    on = ("-d", "tiny", "--set", settings[0], "--image", str(image))
    done = cli("serve", *on, "--cut-after", "0")
    assert done.returncode == 6 and "while the drive was mounted" in done.stderr
    with Device("tiny", set=settings, image=image) as drive:
        assert all(drive.read(2048 * unit, 512) == bytes([unit + 1]) * 512 for unit in range(48))


def test_the_plug_is_pulled_by_time_and_by_signal(cli, tmp_path):
    rng, versions, durable = random.Random(5), {}, 0
    for number, options in enumerate([{"cut_at": 0.3}, {"cut_at": "300ms"}, {}, {}]):
        drive = serve("tiny", set=SMALL, image=tmp_path / "cut.img", **options)
        assert lost(drive, versions) == []
        if not options:
            threading.Timer(0.2, drive.cut).start()
        durable += load(drive, rng, 900, versions, number * 1_000_000)
        with pytest.raises(PowerLost):
            drive.stop()
    with serve("tiny", set=SMALL, image=tmp_path / "cut.img") as drive:
        assert lost(drive, versions) == []
    assert durable > 20  # by real time: a busy machine serves fewer
    for text in ("2", "2k", "soon", "-1s"):
        done = cli("serve", *GIVEN, "--cut-at", text)
        assert done.returncode == 2 and "cut_at: " in done.stderr, done.stderr


def test_the_exit_code_says_that_the_power_failed(cli, tmp_path):
    (tmp_path / "data").write_bytes(random.Random(2).randbytes(1 << 20))
    done = cli("serve", *GIVEN, "--cut-after", "100", "--run", 'nbdcopy data "$uri" 2> /dev/null')
    if shutil.which("nbdcopy"):
        assert done.returncode == 6 and "the power failed" in done.stderr


def test_a_signal_ends_it_in_order(tmp_path):
    command = [
        sys.executable,
        "-m",
        "flashatlas",
        "serve",
        *GIVEN,
        "--image",
        "d.img",
        "--force",
        "-o",
        "o",
    ]
    # otherwise background jobs of a shell, and their children, ignore the signal
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGINT):
        server = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        uri = re.search(r"nbd\+unix:\S+", server.stdout.readline())[0]
        client = Client(uri)
        assert client.ask(WRITE, 0, data=numbered(number))[0] == 0
        client.close()
        server.send_signal(number)
        printed, _ = server.communicate(timeout=60)
        assert server.returncode == 0, printed
        record = json.loads((tmp_path / "o/run.json").read_text())
        assert record["host"]["write_bytes"] == 2048 and record["oracle"]["violations"] == 0
        with serve("tiny", set=SMALL, image=tmp_path / "d.img") as drive:
            client = Client(drive.uri)
            assert client.ask(READ, 0, 2048) == (0, numbered(number))
            client.close()


def test_a_client_that_stays_does_not_keep_it_from_ending(tmp_path):
    with serve("tiny", image=tmp_path / "i") as drive:
        idle, busy = Client(drive.uri), Client(drive.uri)
        assert busy.ask(WRITE, 2048, data=b"x" * 2048)[0] == 0
        begin = time.monotonic()
        drive.stop()
        assert time.monotonic() - begin < 10
        for client in (idle, busy):
            with pytest.raises(OSError):
                client.ask(READ, 2048, 512)
    assert drive.result.record["host"]["writes"] == 1
    with serve("tiny", image=tmp_path / "i") as drive:
        assert Client(drive.uri).ask(READ, 2048, 512) == (0, b"x" * 512)


def test_an_end_that_takes_long_is_not_cut_short():
    drive = serve("tiny")
    record, server = drive._folder / "record.json", drive._process
    os.mkfifo(record)  # the server waits for a reader when it writes the pipe
    server.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    server.send_signal(signal.SIGUSR2)  # `stop` does the same after two seconds
    with pytest.raises(subprocess.TimeoutExpired):
        server.wait(timeout=1)
    found = json.loads(record.read_text(encoding="utf-8"))
    assert server.wait() == 0 and found["record"]["host"]["writes"] == 0
    drive.kill()


def test_requests_that_mean_nothing_are_refused_and_change_nothing():
    rng = random.Random(5)
    with serve("tiny", set=SMALL) as drive:
        client = Client(drive.uri)
        assert client.ask(WRITE, 4096, data=numbered(1))[0] == 0
        for kind, offset, length in [(READ, client.size, 512), (READ, 1, 512), (WRITE, 0, 0)]:
            error, _ = client.ask(kind, offset, length, b"x" * 100 if kind == WRITE else b"")
            assert error == 22, (kind, offset, length)
        for _ in range(10_000 // min(ONE_IN, 10)):
            kind = rng.choice([READ, TRIM, ZEROES, FLUSH, 5, 7, 99])
            if rng.random() < 0.1:
                other = Client(drive.uri)
                other.socket.sendall(rng.randbytes(rng.randrange(1, 60)))
                other.close()
                continue
            offset = rng.choice([0, 8192, client.size - 512, client.size, 1 << 60]) + rng.choice(
                [0, 1]
            )
            client.ask(
                kind, offset, rng.choice([0, 1, 512, 2048]), flags=rng.choice([0, 0, FUA, 64])
            )
        assert client.ask(WRITE, 4096, data=numbered(2))[0] == 0
        assert client.ask(READ, 4096, 2048) == (0, numbered(2))
        client.close()
    assert drive.result.violations == 0


def test_what_cannot_be_served_is_said(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"drive\.blocks: 0 is out of range"):
        serve("tiny", set=["drive.blocks=0"])
    with pytest.raises(InputError, match="give none, real, or N"):
        serve("tiny", time="soon")
    with pytest.raises(InputError, match="socket and port: give one of the two"):
        serve("tiny", socket=tmp_path / "s", port=9999)
    with (
        serve("tiny", set=SMALL, image=tmp_path / "drive.img"),
        pytest.raises(InputError, match="another process has the image open"),
    ):
        serve("tiny", set=SMALL, image=tmp_path / "drive.img")
    with pytest.raises(InputError, match=r"another drive: drive\.blocks is 96 there, but 98 here"):
        serve("tiny", set=[*SMALL, "drive.blocks=98"], image=tmp_path / "drive.img")
    drive = serve("tiny", set=SMALL)
    drive.kill()
    with pytest.raises(DriveError, match="the server was killed"):
        drive.stop()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="apt install nbdkit"):
        serve("tiny")


def test_replies_are_held_until_the_drive_would_answer():
    slow = ["timing.t_read=20ms", "timing.t_read_upper=20ms"]
    with serve("tiny", set=[*SMALL[:3], *slow], time="real") as drive:
        client = Client(drive.uri)
        assert client.ask(WRITE, 0, data=numbered(1))[0] == 0 and client.ask(FLUSH)[0] == 0
        for _ in range(5):
            assert client.ask(READ, 0, 2048) == (0, numbered(1))
        client.close()
    served = drive.result.record["served"]
    assert drive.result.latency["read"]["mean"] > 20e6, "in simulated time"
    assert drive.result.wall_s > 0.1, "five reads of 20 ms, on the wall clock"
    assert served["time"] == 1 and served["late_ns"]["count"] == 7


def overwritten(drive) -> float:
    """Write 300 units at random, and return the write amplification of these writes."""
    drawn = random.Random(3)
    for number in range(300):
        drive.write(2048 * drawn.randrange(2000), numbered(number))
    drive.flush()
    return drive.power_off().waf


def test_a_drive_begins_aged_and_its_writes_cost_what_an_aged_drives_do(tmp_path):
    """A blank drive takes 300 units without a copy; a drive in its steady state copies pages."""
    blank, aged = Device("tiny", set=SMALL[:3]), {}
    for kind in ("fill", "steady", f"checkpoint:{tmp_path / 'aged.ckpt'}"):
        if kind.startswith("checkpoint"):
            flashatlas.save_checkpoint(
                tmp_path / "aged.ckpt", "tiny", set=SMALL[:3], precondition="steady"
            )
        image = tmp_path / f"{kind[:5]}.img"
        drive = Device("tiny", set=SMALL[:3], image=image, precondition=kind)
        # every unit is allocated, but no unit has bytes
        assert drive.read(0, 2048 * 2000) == bytes(2048 * 2000)
        aged[kind[:5]] = overwritten(drive)
        found = flashatlas.image_check(image)
        assert found["sound"] and found["units"]["written"] == 2000
    assert 0.9 < overwritten(blank) <= 1.01
    assert aged["steady"[:5]] > 1.05
    # the checkpoint is the same steady state, and the requests are the same
    assert aged["check"] == aged["stead"]


def test_a_served_drive_begins_aged_and_the_record_says_so(cli, tmp_path):
    (tmp_path / "before.spc").write_text("0,0,4096,w,0\n0,100,2048,w,0.1\n")
    done = cli(
        "serve", "-d", "tiny", *GIVEN[:6], "--precondition", "trace:before.spc", "--image", "a.img",
        "--run", "true", "--out", "o", "-q",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "o/run.json").read_text())
    assert record["config"]["precondition"] == {"trace": "../before.spc"}
    codes = [note["code"] for note in record["approximations"]]
    assert {"precondition-trace", "power-cycled"} <= {*codes}
    # sectors 0 to 7 and 100 to 103 are three units of 2 KiB
    said = flashatlas.image_check(tmp_path / "a.img")
    assert said["sound"] and said["units"]["written"] == 3
    again = ("serve", "-d", "tiny", *GIVEN[:6], "--image", "a.img", "--run", "true", "-q")
    refused = cli(*again, "--precondition", "fill")
    assert refused.returncode == 2
    said = "--precondition: a.img already holds a drive, whose state is kept"
    assert said in refused.stderr and "(`--image FILE`)" in refused.stderr
    assert cli(*again).returncode == 0
    wrong = cli(*again, "--precondition", "filled")
    assert wrong.returncode == 2 and "did you mean `fill`" in wrong.stderr
    layered = cli("serve", "-d", "tlc-small", "--layers", "hard", "--precondition", "fill", "-q",
                  "--image", "b.img", "--run", "true")  # fmt: skip
    assert layered.returncode == 2 and "cannot hold layers" in layered.stderr
    assert not (tmp_path / "b.img").exists()


def test_serving_that_does_not_begin_leaves_no_image(tmp_path):
    """An image left behind belongs to another drive, so the next start would be refused."""
    image = tmp_path / "drive.img"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        failing = [
            ({"metrics": f"127.0.0.1:{port}"}, "in use"),
            ({"port": port}, "in use"),
            ({"record": tmp_path / "no/such.fatr"}, "No such file"),
            ({"cut_after": 1, "precondition": "checkpoint:missing"}, "No such file"),
        ]
        for options, why in failing:
            with pytest.raises(InputError, match=why):
                serve("tiny", set=SMALL, image=image, **options)
            assert not image.exists(), options
    with serve("tiny", set=[*SMALL, "drive.blocks=98"], image=image):
        # another server that fails does not remove the image
        with pytest.raises(InputError, match="another process has the image open"):
            serve("tiny", set=SMALL, image=image)
        assert image.exists()


def test_what_clients_send_is_a_trace(cli, tmp_path):
    where = tmp_path / "life.fatr"
    with serve("tiny", set=SMALL, record=where) as drive:
        client = Client(drive.uri)
        asked = [
            client.ask(WRITE, 4096, data=b"a" * 2048),
            client.ask(WRITE, 8192, data=b"b" * 1024, flags=FUA),
            client.ask(READ, 4096, length=512),
            client.ask(TRIM, 0, length=4096),
            client.ask(FLUSH),
        ]
        assert not any(error for error, _ in asked) and not where.exists()
        client.close()
    assert drive.result.record["served"]["recorded"] == {"path": str(where), "requests": 5}
    done = cli("trace", "convert", str(where), "life.csv")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((tmp_path / "life.csv").open()))
    kept = [(row["op"], int(row["sector"]), int(row["sectors"]), row["fua"]) for row in rows]
    assert kept == [
        ("write", 8, 4, "0"),
        ("write", 16, 2, "1"),
        ("read", 8, 1, "0"),
        ("trim", 0, 8, "0"),
        ("flush", 0, 0, "0"),
    ]
    times = [int(row["time_ps"]) for row in rows]
    assert times[0] == 0 and times == sorted(times) and times[-1] > 0
    # a run replays the trace
    again = flashatlas.run("tiny", set=SMALL, trace=where, precondition="none")
    assert again.record["trace"]["requests"] == 5 and again.record["host"]["flushes"] == 1


def test_a_trace_ends_with_the_power(tmp_path):
    where = tmp_path / "cut.fatr"
    serving = serve("tiny", set=SMALL, image=tmp_path / "i", cut_after=20, record=where)
    client = Client(serving.uri)
    with pytest.raises(OSError):
        for i in range(100):
            client.ask(WRITE, 2048 * i, data=b"x" * 2048, flags=FUA)
    with pytest.raises(PowerLost):
        serving.stop()
    assert 15 < flashatlas.Trace(where).info()["requests"] < 40


def test_a_trace_that_cannot_be_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"life\.csv: the name of a recording ends in \.fatr"):
        serve("tiny", record=tmp_path / "life.csv")
    with pytest.raises(InputError, match=r"gone/life\.fatr: No such file"):
        serve("tiny", record=tmp_path / "gone" / "life.fatr")
    # without any request there is no trace, and the record of the run says so
    with serve("tiny", set=SMALL, record=tmp_path / "none.fatr") as drive:
        pass
    said = drive.result.record["served"]["recorded"]
    assert "holds no request" in said["error"] and list(tmp_path.iterdir()) == []
