"""Dies that work at the same time, channels, and the order in which data is spread over them.

Two reads of one die cannot overlap, and two reads of different dies can. So each pair of reads is
sent alone and then together: the time that the second read adds says whether the two share a die, a
channel, or nothing. Chen, Lee and Zhang (*Essential Roles of Exploiting Internal Parallelism of
Flash Memory based Solid State Drives in High-Speed Data Processing*, HPCA 2011) send concurrent
reads to find how a drive spreads its data; the classes of conflicting pages are counted here.
"""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flashatlas.probing.curves import densest, two_levels
from flashatlas.probing.found import Finding, cannot_tell
from flashatlas.probing.host import PAGE, Host, reads

PAIRS = 600
"""Random pairs whose scores show the levels."""
LEAST_GAP = 0.2
"""Smallest gap between the scores of different dies and of the same die.

A slow channel makes a gap of its own below: two reads of its dies share the channel.
"""
SAME_DIE = 0.5
"""Least score of two reads of the same die, if no other level is seen."""
DIES_MAX = 4096
"""Largest number of dies that are counted."""
MISSED = 8
"""A die that was not met stays unseen with the probability ``exp(-MISSED)``."""
ALIKE = 0.2
"""Share of the pages that the most usual latency is taken from."""
NEAR = 0.02
"""Share by which the latencies of pages of the same kind differ."""
TRIES = 64
"""Pages that are tried for one with the usual latency."""

STRIPE = 512
"""Largest number of neighbouring pages whose dies are looked up."""

Score = Callable[[int, int], float]


@dataclass(frozen=True)
class Parallelism:
    """The findings, and what later measurements need."""

    findings: list[Finding]
    read_s: float
    """Seconds of a lone read of one page."""
    occupied_s: float
    """Seconds for which a read occupies its die."""
    transfer_s: float
    """Seconds for which a page of 4 KiB occupies its channel."""
    chunk_bytes: int | None
    """Neighbouring bytes on the same die."""

    @property
    def dies(self) -> int | None:
        """Return the number of dies, or ``None`` if it is unknown."""
        return self._count(0)

    @property
    def channels(self) -> int | None:
        """Return the number of channels, or ``None`` if it is unknown."""
        return self._count(1)

    def _count(self, finding: int) -> int | None:
        value = self.findings[finding].value
        return None if value is None else int(value)


class Pairs:
    """Scores of pairs of sectors: 0 if their reads overlap, 1 if one waits for the whole other."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.alone: list[float] = []

    def lone(self, at: int) -> float:
        """Return the latency of a read of a sector whose map entry is in memory."""
        sector = self._host.sector
        return self._host.play(reads((at * sector,) * 2, sector))[1].latency

    def score(self, a: int, b: int) -> float:
        """Read two sectors one after the other, and together."""
        both = reads((a * self._host.sector, b * self._host.sector), self._host.sector)
        self._host.play(both)  # now entries of the map are in memory, if they were not
        first, second = (times.latency for times in self._host.play(both))
        together = self._host.play(both, 2)
        whole = max(times.end for times in together) - together[0].begin
        self.alone.append(first)
        return (whole - max(first, second)) / min(first, second)


def classes(score: Score, apart: float, draw: Callable[[], int], limit: int) -> list[int] | None:
    """Return a sector of each class of conflicting sectors; ``None`` beyond ``limit`` classes.

    Two sectors are in the same class if their score exceeds ``apart``.
    """
    known = [draw()]
    fruitless = 0
    while fruitless < MISSED * (len(known) + 1):
        page = draw()
        if any(score(page, other) > apart for other in known):
            fruitless += 1
            continue
        known.append(page)
        fruitless = 0
        if len(known) > limit:
            return None
    return known


def chunk(same: Sequence[bool]) -> int | None:
    """Return the number of neighbours on the first page's die; ``None`` if the die never changes.

    ``same[n]`` is ``True`` if page ``n`` is on the die of page 0.
    """
    return next((n for n, equal in enumerate(same) if not equal), None)


def period(same: Sequence[bool], run: int) -> int | None:
    """Return the distance after which a run of ``run`` pages comes back to the first page's die."""
    for n in range(run, len(same) - run + 1):
        if all(same[n : n + run]) and not any(same[run:n]):
            return n
    return None


def parallelism(host: Host, seed: int = 1) -> Parallelism:
    """Count the dies and channels of a filled drive, and find how it spreads data in order."""
    random_ = random.Random(seed)
    pairs = Pairs(host)

    def draw() -> int:
        return random_.randrange(host.capacity // host.sector)

    scores = []
    for _ in range(PAIRS):
        a, b = draw(), draw()
        if a != b:
            scores.append(pairs.score(a, b))
    levels = two_levels(scores, LEAST_GAP, uppermost=True)
    read_s = sorted(pairs.alone)[len(pairs.alone) // 2]
    points = [(n / len(scores), score) for n, score in enumerate(sorted(scores))]
    curve = points[:: max(1, len(points) // 60)]
    axes = ("share of pairs", "added time")
    if levels is None:
        if min(scores) > SAME_DIE:
            evidence = (
                f"each of {len(scores)} pairs of random reads takes at least {1 + min(scores):.2f} "
                "times as long as one read: no two reads overlap"
            )
            one = Finding("dies", 1, "", evidence, 0.95, curve, axes)
            busy = read_s * sorted(scores)[len(scores) // 2]
            spread, run, transfer_s = _on_one_die(host)
            return Parallelism([one, *spread], read_s, busy, transfer_s, run)
        why = f"pairs of reads add {min(scores):.2f} to {max(scores):.2f}, without two levels"
        dies = cannot_tell("dies", "", why, curve=curve, axes=axes)
        return Parallelism([dies, *_unspread(why)], read_s, read_s, 0.0, None)
    usual, _ = densest(pairs.alone, ALIKE)

    def draw_alike() -> int:
        # reads of unlike pages may miss each other on their channel
        for _ in range(TRIES):
            page = draw()
            if abs(pairs.lone(page) - usual) < NEAR * usual:
                return page
        return draw()

    known = classes(pairs.score, levels.between, draw_alike, DIES_MAX)
    if known is None:
        why = f"more than {DIES_MAX} sectors do not conflict with one another"
        dies = cannot_tell("dies", "", why, curve=curve, axes=axes)
        return Parallelism([dies, *_unspread(why)], read_s, levels.high * read_s, 0.0, None)
    evidence = (
        f"{len(known)} sectors can be read at the same time: a read of another die adds at most "
        f"{max(s for s in scores if s < levels.between):.2f}, of the same die at least "
        f"{min(s for s in scores if s > levels.between):.2f} of its time"
    )
    confidence = min(0.99, 0.5 + levels.gap)
    found = [Finding("dies", len(known), "", evidence, confidence, curve, axes)]
    channels, added = _channels(pairs.score, known, levels.between)
    found.append(channels)
    stripe, run = _stripe(pairs.score, levels.between, PAGE, host)
    if run == PAGE and host.sector < PAGE:
        # a page of the flash may be smaller
        stripe, run = _stripe(pairs.score, levels.between, host.sector, host)
    found += stripe
    return Parallelism(found, read_s, levels.high * read_s, added * read_s, run)


def _unspread(why: str) -> list[Finding]:
    return [cannot_tell(name, unit, why) for name, unit in QUANTITIES[1:]]


QUANTITIES = (("dies", ""), ("channels", ""), ("chunk", "bytes"), ("stripe", "bytes"))
"""Names and units of the findings."""


LONGEST = 64
"""Pages of the longest read of a drive with one die."""
BOUNDARY = 3.0
"""A page of another program adds at least this number of usual transfers to a read."""


def boundary(latencies: Sequence[float]) -> tuple[int, float] | None:
    """Return the pages of the first program, and the seconds of a page's transfer.

    ``latencies[n]`` is the latency of a read of ``n + 1`` pages.
    """
    added = [b - a for a, b in itertools.pairwise(latencies)]
    if not added:
        return None
    usual = statistics.median(added)
    at = next((n for n, more in enumerate(added, 1) if more > BOUNDARY * usual), None)
    return None if at is None or usual <= 0 else (at, usual)


def _on_one_die(host: Host) -> tuple[list[Finding], int | None, float]:
    """Find the pages that one program writes, on a drive with one die, by longer and longer reads.

    Returns the findings, the bytes of a program, and the seconds of a page's transfer.
    """
    channels = Finding("channels", 1, "", "a drive with one die uses one channel", 0.95)
    latencies = []
    for count in range(1, min(LONGEST, host.capacity // PAGE) + 1):
        whole = reads([0], count * PAGE)
        host.play(whole)
        latencies += [each.latency for each in host.play(whole)]
    curve = [(float(n * PAGE), latency) for n, latency in enumerate(latencies, 1)]
    axes = ("bytes read", "latency in s")
    found = boundary(latencies)
    if found is None:
        why = f"reads of up to {len(latencies)} pages grow by the same time with each page"
        nothing = cannot_tell("chunk", "bytes", why, curve=curve, axes=axes)
        return [channels, nothing, cannot_tell("stripe", "bytes", why)], None, 0.0
    run, transfer_s = found
    evidence = f"a read from the start takes a step when it is longer than {run} pages"
    chunk_ = Finding("chunk", run * PAGE, "bytes", evidence, 0.8, curve, axes)
    stripe = Finding("stripe", run * PAGE, "bytes", "a drive with one die has no other", 0.8)
    return [channels, chunk_, stripe], run * PAGE, transfer_s


LEAST_TRANSFER = 0.005
"""Smallest share of a read that counts as the time of a transfer."""
CHANNEL_PAIRS = 400
"""Pairs of dies whose scores show the levels of channels."""


def _channels(score: Score, known: Sequence[int], die: float) -> tuple[Finding, float]:
    """Count the channels, and return the share of a read that a transfer takes.

    Reads of two dies on one channel add the time of a transfer.
    """
    name, unit = QUANTITIES[1]
    pairs = [(a, b) for n, a in enumerate(known) for b in known[:n]]
    apart = [score(a, b) for a, b in pairs[:: max(1, len(pairs) // CHANNEL_PAIRS)]]
    levels = two_levels(apart, LEAST_TRANSFER)
    if levels is None or levels.gap < 2 * (max(apart) - min(apart) - levels.gap):
        told = f"pairs of dies add {min(apart):.3f} to {max(apart):.3f} of a read to each other"
        if min(apart) > 2 * LEAST_TRANSFER:
            return Finding(name, 1, unit, f"all {told}", 0.7), statistics.median(apart)
        return cannot_tell(name, unit, f"{told}, without two levels"), 0.0
    groups: list[int] = []
    for page in known:
        if all(not levels.between < score(page, other) < die for other in groups):
            groups.append(page)
    evidence = (
        f"dies on the same channel add {levels.high:.3f} of a read to each other, other dies "
        f"{levels.low:.3f}"
    )
    return Finding(name, len(groups), unit, evidence, 0.9), levels.high


def _stripe(score: Score, die: float, grain: int, host: Host) -> tuple[list[Finding], int | None]:
    """Find how data that was written in order is spread over the dies, in steps of ``grain``.

    Returns the findings, and the bytes on one die before the next die follows.
    """
    sectors = grain // host.sector
    count = min(STRIPE, host.capacity // grain)
    same = [True] + [score(0, n * sectors) > die for n in range(1, count)]
    run = chunk(same)
    if run is None:
        why = f"the first {count * grain} bytes are on one die"
        return [cannot_tell("chunk", "bytes", why), cannot_tell("stripe", "bytes", why)], None
    curve = [(float(n * grain), float(s)) for n, s in enumerate(same)]
    evidence = f"byte {run * grain} is the first one that is not on the die of byte 0"
    axes = ("offset", "same die")
    found = [Finding("chunk", run * grain, "bytes", evidence, 0.9, curve, axes)]
    back = period(same, run)
    if back is None or back % run:
        why = f"no other {run * grain} of the first {count * grain} bytes are on the die of byte 0"
        return [*found, cannot_tell("stripe", "bytes", why)], run * grain
    evidence = f"the bytes from {back * grain} on are the next ones on the die of byte 0"
    return [*found, Finding("stripe", back * grain, "bytes", evidence, 0.9)], run * grain
