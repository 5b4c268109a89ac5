"""Size of the write buffer.

A burst of writes is fast until the buffer is full, and then has the speed of the flash. SSDcheck
(Kim and others, MICRO 2018) tells the write buffers of unknown drives from latencies, too. During a
burst, the flash already takes data out of the buffer. So the burst
is repeated while collection and reads keep the flash busy, and the shortest burst counts.
"""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from flashatlas.probing.curves import lowest_agreed
from flashatlas.probing.found import Finding, cannot_tell
from flashatlas.probing.host import FLUSH, PAGE, Command, Host, Times, in_order, reads, writes

DEPTH = 32
"""Writes in flight during a burst."""
FIRST = 1 << 20
"""Bytes of the first burst. The bursts grow until one does not fit the buffer."""
LARGEST = 1 << 30
"""Bytes of the largest burst."""
STALL = 4.0
"""A write stalls if it completes this number of usual gaps after the last write."""
REPEATS = 6
"""Bursts that are compared, for each number of reads beside them."""
READS = 3000
"""Reads beside a burst."""
SMALL = 0.1
"""Share of the buffer that the flash may take during a burst."""
AGREED = 0.03
"""Share by which bursts that agree may differ."""


class Burst(NamedTuple):
    """The fast part of a burst."""

    accepted: int
    """Bytes that were complete before the first write that waited."""
    seconds: float
    """Seconds that this took."""
    sustained: float
    """Bytes per second after that."""


def fast_part(times: Sequence[Times], size: int) -> Burst | None:
    """Return the fast part of a burst of writes of ``size`` bytes; ``None`` if no write waits."""
    ends = sorted(each.end for each in times)
    gaps = [b - a for a, b in itertools.pairwise(ends)]
    if len(gaps) < 16:
        return None
    usual = statistics.median(gaps[:8])
    least = max(STALL * usual, 10e-6)
    at = next((n for n, gap in enumerate(gaps) if gap > least), None)
    if at is None:
        return None
    rest = ends[-1] - ends[at]
    sustained = (len(ends) - 1 - at) * size / rest if rest > 0 else 0.0
    return Burst((at + 1) * size, ends[at] - times[0].begin, sustained)


def write_buffer(host: Host, peak: float, seed: int = 1) -> Finding:
    """Measure the write buffer of a drive in its steady state.

    ``peak`` are the bytes that the flash takes in a second at most.
    """
    random_ = random.Random(seed)
    host.play([Command(FLUSH)])
    largest = min(LARGEST, host.capacity // 2)
    total, found = min(FIRST, largest), None
    while True:
        size = max(PAGE, min(64 << 10, total // 256 // PAGE * PAGE))
        times = host.play(in_order(0, total, size), DEPTH)
        host.play([Command(FLUSH)])
        found = fast_part(times, size)
        # the burst must be long enough to show the speed behind the buffer
        if (found and total >= 2 * found.accepted) or total >= largest:
            break
        total = min(2 * total, largest)
    if found is None:
        speed = total / (times[-1].end - times[0].begin)
        why = (
            f"a burst of {total} bytes never waits: the flash takes data as fast as the link "
            f"({speed / 1e6:.0f} MB/s)"
        )
        return cannot_tell("write buffer", "bytes", why)
    if found.accepted <= DEPTH * size // 2:
        return _none(host, found)
    return _repeated(host, random_, found, peak)


def _none(host: Host, found: Burst) -> Finding:
    """Tell a drive without a buffer from a small buffer, by the time of one write and FLUSH."""
    host.pause(1.0)
    write, flush = host.play([*writes([0], PAGE), Command(FLUSH)])
    if write.latency > 4 * max(flush.latency, 1e-9):
        evidence = (
            f"one write takes {write.latency * 1e6:.0f} µs, and the FLUSH after it only "
            f"{flush.latency * 1e6:.0f} µs: the write is on flash when it completes"
        )
        return Finding("write buffer", 0, "bytes", evidence, 0.9)
    why = f"writes wait after {found.accepted} bytes, too early for {DEPTH} writes in flight"
    return cannot_tell("write buffer", "bytes", why)


def _burst(host: Host, begin: int, total: int, size: int, depth: int, beside: int) -> Burst | None:
    """Write a burst beside reads; ``None`` if no write waits."""
    random_ = random.Random(begin)
    pages = host.capacity // PAGE
    places = [random_.randrange(pages) * PAGE for _ in range(READS if beside else 0)]
    written, _ = host.play_beside(
        in_order(begin, begin + total, size), depth, reads(places, PAGE), beside or 1
    )
    host.play([Command(FLUSH)])
    return fast_part(written, size)


def _repeated(host: Host, random_: random.Random, found: Burst, peak: float) -> Finding:
    """Repeat the burst, with and without reads that keep the dies busy."""
    total = min(2 * found.accepted + (1 << 20), host.capacity // 2)
    size = max(PAGE, found.accepted // 128 // PAGE * PAGE)
    depth = max(1, min(DEPTH, host.depth // 2))
    levels: list[float] = []
    curve: list[tuple[float, float]] = []
    axes = ("seconds", "bytes accepted")
    fastest = found
    for beside in (0, host.depth // 4, host.depth // 2):
        bursts: list[Burst] = []
        for _ in range(REPEATS):
            begin = random_.randrange((host.capacity - total) // total + 1) * total
            if (burst := _burst(host, begin, total, size, depth, beside)) is not None:
                bursts.append(burst)
        curve += [(burst.seconds, float(burst.accepted)) for burst in bursts]
        level = lowest_agreed([burst.accepted for burst in bursts], AGREED, 3)
        if level is not None:
            levels.append(level)
            fastest = min([*bursts, fastest], key=lambda burst: abs(burst.accepted - level))
    name, unit = "write buffer", "bytes"
    if not levels:
        why = f"the bursts do not agree: they wait after {sorted(a for _, a in curve)} bytes"
        return cannot_tell(name, unit, why, curve=curve, axes=axes)
    value = min(levels)
    drained = peak * fastest.seconds
    told = f"bursts are fast for {value:.0f} bytes ({fastest.seconds * 1e3:.2f} ms)"
    if drained < SMALL * value:
        evidence = f"{told}, in which the flash takes at most {drained:.0f} bytes"
        return Finding(name, value, unit, evidence, 0.95 - drained / value, curve, axes)
    alike = len(levels) > 2 and max(levels[1:]) < min(levels[1:]) * (1 + 2 * AGREED)
    if alike:
        evidence = f"{told}, and more reads beside them do not make them shorter"
        return Finding(name, value, unit, evidence, 0.7, curve, axes)
    why = f"{told}, in which the flash may take {drained:.0f} of the bytes"
    return cannot_tell(name, unit, why, curve=curve, axes=axes)
