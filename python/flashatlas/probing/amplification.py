"""Write amplification in the steady state, from outside.

Throughput alone is a bad measure: while one die collects, others wait for it, so random writes slow
down by more than their write amplification. What a host can see is how busy the dies are: reads at
random times find a die busy as often as it is busy (Wolff, *Poisson Arrivals See Time Averages*,
Operations Research 30(2), 1982). The busy time of a byte is that share over the throughput. A drive
that is overwritten in order copies nothing, so the busy time of a byte in random writes is larger
by the write amplification, once the reads of collection are taken out.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from flashatlas.probing.curves import densest
from flashatlas.probing.found import Finding, cannot_tell
from flashatlas.probing.host import FLUSH, PAGE, READ, Command, Host, in_order, reads, writes

DEPTH = 32
"""Writes in flight."""
SIZE = 64 << 10
"""Bytes of the writes in order."""
DRIVE_WRITES = 3
"""Random writes of the whole drive before the drive counts as steady."""
AREA = 1 << 20
"""Bytes that only reads use."""
LOAD = 0.02
"""Share of a die's time that reads take."""
LEAST_READS = 3000
"""Reads of each phase, if the writes do not end before."""
ORDERED_MAX = 24
"""Largest number of passes in order."""
LATER = (0.3, 0.9)
"""Time from the read that loads a map entry to the measured read, in programs."""
LOADS = 0.003
"""Reads that load a map entry, as a share of the writes in order: a load evicts other entries."""
SPLITS = (0.3, 0.4, 0.5, 0.6)
"""Shares of a program whose ratios must agree."""
APART_MAX = 1.08
"""Largest ratio of two such ratios."""
SPLIT = 0.3
"""Waits longer than this share of a program are no waits for a read."""
LEAST_VALUE = 0.95
"""A smaller write amplification is a fault of the measurement."""
FRAME = 16
"""Pages of a program for the rate of reads, if they are unknown."""
MEASURED = (2, 4)
"""Least and largest number of random writes of the whole drive that are measured."""
LEAST_BUSY = 0.3
"""Least share of reads that must find their die busy beside writes in order."""
ALIKE = 0.2
"""Share of the reads whose waits are compared: those that are most alike."""
ATOM = 0.06
"""Waits are alike if they lie in a range of this share of the wait."""
EVEN = 0.15
"""Waits are spread evenly if they lie in a range of more than this share of the wait."""
TAIL = 0.01
"""Share of reads above which long waits are waits for erases."""


class Phase(NamedTuple):
    """Writes with reads beside them."""

    speed: float
    """Bytes per second."""
    waits: list[float]
    """Seconds that each read waited."""

    def busy_per_byte(self, least: float) -> float:
        """Return the share of reads that wait longer than ``least``, for each byte per second."""
        return sum(wait > least for wait in self.waits) / len(self.waits) / self.speed


class Flash(NamedTuple):
    """Facts about the flash that were measured before."""

    dies: int
    frame_pages: float
    """Pages of 4 KiB that one program writes, or 0 if this is unknown."""
    read_s: float
    """Seconds of a lone read."""
    occupied_s: float
    """Seconds for which a read occupies its die."""
    channels: int
    transfer_s: float
    """Seconds of the transfer of 4 KiB over a channel."""
    misses: float
    """Share of random writes whose map entry is not in memory."""


def work(a: float, frame_s: float, sense_s: float, flash: Flash) -> float:
    """Return the busy time of a host's frame at a write amplification, over the time at 1.

    ``frame_s`` is the busy time of a frame at 1. A victim has ``1 - 1 / a`` valid slots of its
    frames on average, and a frame is read if any of its slots is valid. A write whose map entry is
    not in memory reads a map page, and writes one later.
    """
    slots, misses = flash.frame_pages, flash.frame_pages * flash.misses
    data = max(1.0, a - misses)
    read = data * (1 - data**-slots) * sense_s + (data - 1) * slots * flash.transfer_s
    read += misses * (sense_s + flash.transfer_s)
    return a + read / frame_s


def channel_wait(a: float, phase: Phase, least: float, flash: Flash) -> float:
    """Return the probability that a read waits longer than ``least`` for its channel alone.

    Every program moves its data to the die, and every copy moves it from a die as well.
    """
    copies = max(0.0, a - 1 - flash.frame_pages * flash.misses)
    busy = phase.speed / PAGE * (a + copies) * flash.transfer_s / flash.channels
    frame_s = flash.frame_pages * flash.transfer_s
    return min(0.9, busy) * max(0.0, 1 - least / frame_s) if frame_s else 0.0


def dies_busy(a: float, phase: Phase, least: float, flash: Flash) -> float:
    """Return the share of time in which a die is busy: reads of idle dies may wait, too."""
    waited = phase.busy_per_byte(least) * phase.speed
    alone = channel_wait(a, phase, least, flash)
    return max(0.0, (waited - alone) / (1 - alone))


def solve(first: Phase, second: Phase, least: float, flash: Flash) -> tuple[float, float]:
    """Return the write amplification of the second phase, if it is 1 in the first; and the ratio.

    The ratio is the busy time of a byte in the second phase over that in the first.
    """
    share = dies_busy(1.0, first, least, flash)
    frame_s = share * flash.dies * flash.frame_pages * PAGE / first.speed
    sense_s = max(0.0, flash.occupied_s - flash.transfer_s)

    def ratio(a: float) -> float:
        return dies_busy(a, second, least, flash) / second.speed / (share / first.speed)

    low, high = 1.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        short = work(middle, frame_s, sense_s, flash) < ratio(middle)
        low, high = (middle, high) if short else (low, middle)
    return low, ratio(low)


class Sampling(NamedTuple):
    """The rate and the spacing of the reads beside writes."""

    rate: float
    """Measured reads in a second."""
    apart: float
    """Seconds of a program, about."""
    loads: bool
    """``True`` if a read before each measured one must load its map entry."""


def _phase(
    host: Host, commands: Sequence[Command], speed: float, sampling: Sampling, seed: int
) -> Phase:
    """Send writes, at about this speed, with reads at random times beside them."""
    random_ = random.Random(seed)
    seconds = 0.97 * sum(each.size for each in commands) / speed
    starts = sorted(random_.random() * seconds for _ in range(round(sampling.rate * seconds)))
    beside: list[Command] = []
    for start in starts:
        if beside and start < beside[-1].after_s + sampling.apart:
            continue
        page, at = random_.randrange(AREA // PAGE) * PAGE, start
        if sampling.loads:
            beside.append(Command(READ, page, host.sector, at))
            at += random_.uniform(*LATER) * sampling.apart
        beside.append(Command(READ, page, host.sector, at))
    done, read = host.play_beside(commands, DEPTH, beside, max(1, host.depth // 2))
    span = max(each.end for each in done) - done[0].begin
    measured = read[1::2] if sampling.loads else read
    return Phase(sum(each.size for each in commands) / span, [each.latency for each in measured])


def _speed(host: Host, commands: Sequence[Command]) -> float:
    done = host.play(commands, DEPTH)
    span = max(each.end for each in done) - done[0].begin
    return sum(each.size for each in commands) / span


def suspension(first: Phase, flash: Flash) -> tuple[float | None, list[Finding]]:
    """Tell from waits beside writes in order whether reads suspend programs and erases.

    A read that suspends its die waits for the same short time, whatever the die does. Without
    suspension the wait is anything from nothing to a whole program, or to a longer erase. The first
    value is the time of a suspension, 0 without suspension, or ``None``.
    """
    names = ("suspended programs", "suspended erases")
    curve = [(n / 20, wait) for n, wait in enumerate(statistics.quantiles(first.waits, n=20), 1)]
    axes = ("share of reads", "wait in s")
    usual, width = densest([wait for wait in first.waits if wait > 0.05 * flash.read_s], ALIKE)
    told = (
        f"beside writes in order, {ALIKE:.0%} of the reads wait {usual * 1e6:.0f} µs, give or take "
        f"{width / 2 * 1e6:.1f} µs"
    )
    if ATOM < width / usual < EVEN:
        none = [cannot_tell(name, "", told, curve=curve, axes=axes) for name in names]
        return None, none
    suspends = width / usual <= ATOM
    # a read may wait for transfers of other dies as well
    transfers = 3 * flash.frame_pages * flash.transfer_s
    longer = transfers + (5 * usual if suspends else 3 * statistics.median(first.waits))
    tail = sum(wait > longer for wait in first.waits) / len(first.waits)
    found = [Finding(names[0], "yes" if suspends else "no", "", told, 0.9, curve, axes)]
    told = f"{tail:.1%} of the reads wait longer than {longer * 1e6:.0f} µs"
    if tail > TAIL:
        found.append(Finding(names[1], "no", "", told, 0.85))
    elif suspends and tail < TAIL / 4:
        found.append(Finding(names[1], "yes", "", told, 0.85))
    else:
        found.append(cannot_tell(names[1], "", f"{told}: an erase may be as short as a program"))
    return (usual if suspends else 0.0), found


def steady(host: Host, flash: Flash | None, seed: int = 1) -> list[Finding]:
    """Bring a full drive to its steady state, and measure its waits and write amplification.

    The drive is steady afterwards in any case: later measurements need it.
    """
    random_ = random.Random(seed)
    pages = host.capacity // PAGE
    begin = min(AREA, host.capacity // 8) // SIZE * SIZE + SIZE

    def ordered() -> list[Command]:
        return in_order(begin, host.capacity, SIZE)

    def anywhere(count: int) -> list[Command]:
        return writes([random_.randrange(begin // PAGE, pages) * PAGE for _ in range(count)], PAGE)

    _speed(host, ordered())
    if flash is None:
        for _ in range(4 * DRIVE_WRITES):
            _speed(host, anywhere(pages // 4))
        why = "the dies, or the reach of the map, are unknown"
        return [cannot_tell(name, unit, why) for name, unit in QUANTITIES]
    fresh = _speed(host, ordered())
    apart = max(flash.dies * (flash.frame_pages or FRAME) * PAGE / fresh, 5 * flash.read_s)
    rate = LOAD * flash.dies / (2 * flash.read_s)
    if flash.misses:
        rate = min(rate / 2, LOADS * fresh / PAGE)
    sampling = Sampling(rate, apart, flash.misses > 0)

    def passes(speed: float, least: int, most: int) -> int:
        return min(most, max(least, math.ceil(LEAST_READS * speed / (rate * host.capacity))))

    host.play([Command(FLUSH)])
    area = [page * PAGE for page in range(AREA // PAGE)]
    host.play(reads(area, host.sector))
    lone = statistics.median(each.latency for each in host.play(reads(area, host.sector)))
    first = _phase(host, ordered() * passes(fresh, 1, ORDERED_MAX), fresh, sampling, seed)
    for _ in range(4 * DRIVE_WRITES - 1):
        _speed(host, anywhere(pages // 4))
    slow = _speed(host, anywhere(pages // 4))
    last = anywhere(pages * passes(slow, *MEASURED))
    second = _phase(host, last, slow, sampling, seed + 1)
    host.play([Command(FLUSH)])
    first, second = (p._replace(waits=[wait - lone for wait in p.waits]) for p in (first, second))
    suspends_s, found = suspension(first, flash)
    return [_amplification(first, second, flash, suspends_s), *found]


def _amplification(first: Phase, second: Phase, flash: Flash, suspends_s: float | None) -> Finding:
    name, unit = QUANTITIES[0]
    told = (
        f"random writes run at {second.speed / 1e6:.1f} MB/s, writes in order at "
        f"{first.speed / 1e6:.1f} MB/s: {first.speed / second.speed:.2f} times as fast"
    )
    if suspends_s is None:
        return cannot_tell(name, unit, f"{told}; the waits of reads do not tell busy dies")
    if suspends_s and not flash.frame_pages:
        return cannot_tell(name, unit, f"{told}; the pages of a program are unknown")
    usual = statistics.median(first.waits)
    least = suspends_s / 2 if suspends_s else 2 * SPLIT * usual
    share = first.busy_per_byte(least) * first.speed
    if share < LEAST_BUSY:
        why = f"{told}; only {share:.0%} of the reads beside writes in order wait for a die"
        return cannot_tell(name, unit, why)
    if suspends_s:
        value, ratio = solve(first, second, least, flash)
    else:
        value = ratio = second.busy_per_byte(least) / first.busy_per_byte(least)
    if value < LEAST_VALUE:
        why = f"{told}, but a byte takes only {ratio:.2f} times as much time of a die"
        return cannot_tell(name, unit, why)
    curve = []
    if not suspends_s:
        for part in SPLITS:
            longer = 2 * part * usual
            rest = second.busy_per_byte(longer) / max(first.busy_per_byte(longer), 1e-99)
            curve.append((longer, rest))
        ratios = [rest for _, rest in curve]
        if max(ratios) > APART_MAX * min(ratios):
            why = (
                f"{told}; depending on the wait that counts, a byte takes {min(ratios):.2f} to "
                f"{max(ratios):.2f} times as much time of a die, so reads wait for more than "
                "programs"
            )
            return cannot_tell(name, unit, why, curve=curve, axes=("wait in s", "ratio"))
    evidence = (
        f"{told}; {share:.0%} and {second.busy_per_byte(least) * second.speed:.0%} of the reads "
        f"beside them wait for a die for more than {least * 1e6:.0f} µs, so a byte takes "
        f"{ratio:.2f} times as much time of a die"
    )
    confidence = 0.75 if suspends_s else 0.85
    return Finding(name, value, unit, evidence, confidence, curve, ("wait in s", "ratio"))


QUANTITIES = (
    ("write amplification", "ratio"),
    ("suspended programs", ""),
    ("suspended erases", ""),
)
"""Names and units of the findings."""
