"""Reach of the map that a drive keeps in memory.

A read whose map entry is not in memory first reads the entry from flash. A growing range is read in
order, and then at random: once the range exceeds the reach, a part of the reads takes longer. For
uniformly random reads the share of fast reads is the reach over the range. uFLIP (Bouganim, Jónsson
and Bonnet, *uFLIP: Understanding Flash IO Patterns*, CIDR 2009) has growing ranges as its pattern
of locality. Each page is read twice: the difference does not depend on the kind of the page.
"""

from __future__ import annotations

import random
import statistics

from flashatlas.probing.curves import two_levels
from flashatlas.probing.found import Finding, cannot_tell
from flashatlas.probing.host import PAGE, Host, reads

WARM = 128 << 10
"""Bytes of each read in order."""
READS = 1500
"""Random reads in each range."""
HALVINGS = 8
"""The smallest range is the capacity over 2 to this power."""
SLOWER = 0.25
"""Smallest gap between fast and slow reads, as a share of a usual read."""
SEEN = 0.05
"""Smallest share of slow reads that is used."""
FEW = 0.01
"""Smallest share of the reads that is a level."""
AGREED = 0.25
"""Largest deviation of a range's estimate from the median of all."""


def map_reach(host: Host, seed: int = 1) -> Finding:
    """Measure how many bytes the map entries in memory cover."""
    random_ = random.Random(seed)
    ranges: list[tuple[int, list[float]]] = []
    lone: list[float] = []
    for halving in range(HALVINGS, -1, -1):
        span = host.capacity >> halving
        if span < 16 * PAGE:
            continue
        host.play(reads(range(0, span - WARM + 1, WARM) or [0], min(WARM, span)))
        places = [random_.randrange(span // PAGE) * PAGE for _ in range(READS)]
        # the second read of a page finds the map entry in memory, and is alike otherwise
        played = host.play(reads([place for place in places for _ in range(2)], host.sector))
        pairs = list(zip(played[::2], played[1::2], strict=True))
        ranges.append((span, [first.latency - again.latency for first, again in pairs]))
        lone += [again.latency for _, again in pairs]
    return told(ranges, statistics.median(lone), host.capacity)


def told(ranges: list[tuple[int, list[float]]], usual: float, capacity: int) -> Finding:
    """Read the reach from the time that first reads take longer than second ones in each range."""
    name, unit, axes = "map reach", "bytes", ("bytes of the range", "share of slow reads")
    levels = two_levels([more for _, all_ in ranges for more in all_], SLOWER * usual, FEW)
    between = levels.between if levels else SLOWER * usual
    shares = [
        (float(span), sum(more > between for more in all_) / len(all_)) for span, all_ in ranges
    ]
    if all(share < SEEN for _, share in shares):
        evidence = (
            f"random reads take {usual * 1e6:.1f} µs in every range up to the whole drive: the "
            "reach is the drive, or a read of the map is too short to see"
        )
        return Finding(name, capacity, unit, evidence, 0.8, shares, axes)
    used = [(span, share) for span, share in shares if SEEN < share < 1 - SEEN / 2]
    if not used:
        why = "no range has both fast and slow reads"
        return cannot_tell(name, unit, why, curve=shares, axes=axes)
    estimates = [span * (1 - share) for span, share in used]
    value = statistics.median(estimates)
    apart = max(abs(estimate / value - 1) for estimate in estimates)
    if apart > AGREED:
        listed = ", ".join(f"{estimate / 2**20:.1f}" for estimate in estimates)
        why = f"the ranges do not agree on a reach: {listed} MiB"
        return cannot_tell(name, unit, why, curve=shares, axes=axes)
    span, share = used[-1]
    added = statistics.median(more for _, all_ in ranges for more in all_ if more > between)
    evidence = (
        f"in a range of {span / 2**20:.0f} MiB {share:.0%} of the random reads take "
        f"{added * 1e6:.0f} µs longer than when they are repeated; {len(used)} ranges agree within "
        f"{apart:.0%}"
    )
    return Finding(name, value, unit, evidence, 0.95 - apart, shares, axes)
