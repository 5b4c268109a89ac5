"""Many connections at the same time, and bytes that mean nothing to a server."""

from __future__ import annotations

import itertools
import random
import shutil
import socket
import struct
import threading
import time

import pytest
from conftest import ONE_IN
from flashatlas.serving.serve import serve
from history import Operation, wrong
from nbd import FLUSH, READ, WRITE, Client

UNIT = 2048
"""Bytes of a mapping unit, and of a page, of the drive `tiny`."""

needs_nbdkit = pytest.mark.skipif(
    shutil.which("nbdkit") is None, reason="nbdkit is not installed (make system-tests)"
)


def serial(history: list[Operation]) -> bool:
    """Return `True` if any order explains a history; every order is tried."""
    for order in itertools.permutations(history):
        now, held = -1, 0
        for each in order:
            now = max(now, each.begin)
            if now > each.end or (not each.write and each.value != held):
                break
            held = each.value if each.write else held
        else:
            return True
    return False


def test_the_checker_agrees_with_every_order_there_is():
    """The two agree on small histories, linearizable or not."""
    draw, right = random.Random(5), 0
    for _ in range(3000):
        times = draw.sample(range(100), 10)
        spans = [tuple(sorted(times[i : i + 2])) for i in range(0, 10, 2)]
        writes = draw.randrange(1, 4)
        history = [
            Operation(i < writes, i + 1 if i < writes else draw.randrange(writes + 1), *span)
            for i, span in enumerate(spans)
        ]
        right += (found := serial(history))
        assert (wrong(history) == "") == found, history
    assert 300 < right < 2700, right


def test_the_checker_says_what_is_wrong():
    old, new = Operation(True, 1, 0, 1), Operation(True, 2, 2, 3)
    assert wrong([old, new, Operation(False, 2, 4, 5)]) == ""
    assert "1 was read after 2" in wrong([old, new, Operation(False, 1, 4, 5)])
    assert "before it was written" in wrong([old, new, Operation(False, 2, 0, 1)])
    assert "written 0 times" in wrong([Operation(False, 9, 0, 1)])


def uses(uri: str, number: int, units: int, count: int, seen: dict[int, list[Operation]]) -> None:
    """Send requests of one client on overlapping ranges; no value is written twice."""
    draw, client = random.Random(number), Client(uri)
    for i in range(count):
        first = draw.randrange(units)
        length = min(draw.randrange(1, 4), units - first)
        write = draw.random() < 0.5
        value = 1 + number * count + i
        begin = time.perf_counter_ns()
        if write:
            content = struct.pack("<Q", value) * (UNIT // 8)
            error, _ = client.ask(WRITE, first * UNIT, data=content * length)
            held = [value] * length
        else:
            error, found = client.ask(READ, first * UNIT, length * UNIT)
            held = []
            for at in range(0, length * UNIT, UNIT):
                words = set(struct.unpack("<256Q", found[at : at + UNIT]))
                assert len(words) == 1, "one write filled the unit"
                held += words
        end = time.perf_counter_ns()
        assert error == 0
        for unit, each in enumerate(held, first):
            seen[unit].append(Operation(write, each, begin, end))
        if draw.random() < 0.05:
            assert client.ask(FLUSH)[0] == 0
    client.close()


@needs_nbdkit
@pytest.mark.parametrize("slower", ["none", "real"])
def test_what_64_clients_see_of_a_unit_happened_in_one_order(slower):
    """Overlapping reads and writes of 16 units; the history of each unit is linearizable."""
    units, clients, count = 16, 64, 200 // min(ONE_IN, 5)
    seen: list[dict[int, list[Operation]]] = [
        {unit: [] for unit in range(units)} for _ in range(clients)
    ]
    with serve("tiny", time=slower) as drive:
        threads = [
            threading.Thread(target=uses, args=(drive.uri, n, units, count, seen[n]))
            for n in range(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert drive.result.violations == 0
    history = {unit: [each for of in seen for each in of[unit]] for unit in range(units)}
    assert sum(map(len, history.values())) > clients * count
    assert {unit: wrong(operations) for unit, operations in history.items()} == dict.fromkeys(
        range(units), ""
    )
    # clients were at work at the same time, and a read of a replaced value is found
    assert max(deepest(operations) for operations in history.values()) > 3
    for operations in history.values():
        writes = sorted((each for each in operations if each.write), key=lambda each: each.end)
        reads = [each for each in operations if not each.write]
        late = max(reads, key=lambda each: each.begin)
        assert writes[0].end < writes[len(writes) // 2].begin < late.begin
        stale = [
            each if each is not late else each._replace(value=writes[0].value)
            for each in operations
        ]
        assert wrong(stale) != ""


def deepest(operations: list[Operation]) -> int:
    """Return the largest number of operations that were under way at the same time."""
    steps = sorted(
        [(each.begin, 1) for each in operations] + [(each.end, -1) for each in operations]
    )
    return max(itertools.accumulate(step for _, step in steps))


def raw(uri: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(5)
    made.connect(uri.partition("socket=")[2])
    return made


@needs_nbdkit
def test_what_means_nothing_does_no_harm():
    """Noise instead of a handshake, and requests in which some field has no meaning."""
    draw, count = random.Random(3), 10_000 // min(ONE_IN, 10)
    with serve("tiny") as drive:
        client = Client(drive.uri)
        kept = b"\x5a" * UNIT
        assert client.ask(WRITE, 0, data=kept)[0] == 0
        answered = closed = 0
        other = Client(drive.uri)
        for number in range(count):
            if number % 50 == 0:
                noise = raw(drive.uri)
                noise.sendall(draw.randbytes(draw.randrange(1, 400)))
                noise.close()
            magic = 0x25609513 if draw.random() < 0.9 else draw.getrandbits(32)
            kind = draw.choice([READ, 3, 5, 7, 8, 9, draw.randrange(9, 1 << 16)])
            offset = draw.choice([draw.getrandbits(64), draw.randrange(640 * UNIT), 640 * UNIT])
            length = draw.choice([0, 1, 513, UNIT, draw.getrandbits(32), 1 << 26])
            head = struct.pack(">IHHQQI", magic, draw.getrandbits(16), kind, number, offset, length)
            try:
                other.socket.sendall(head)
                reply, error, handle = struct.unpack(">IIQ", other.take(16))
                assert (reply, handle) == (0x67446698, number)
                if kind == READ and not error:
                    other.take(length)
                answered += 1
            except OSError:  # the server hangs up on clients that do not speak NBD
                closed += 1
                other.close()
                other = Client(drive.uri)
        assert client.ask(READ, 0, UNIT) == (0, kept)
        client.close()
    assert answered > count // 2 and closed > 0
    assert drive.result.violations == 0
