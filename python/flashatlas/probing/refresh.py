"""Refresh of data that rests for a long time.

The cells of resting data lose charge, so reads need more steps of correction and take longer. A
drive that writes old data again makes them fast again.
"""

from __future__ import annotations

import random
import statistics

from flashatlas.probing.found import Finding, cannot_tell
from flashatlas.probing.host import PAGE, Host, reads

DAY = 86400.0
RESTS = (1, 2, 4, 8, 16, 32, 32)
"""Days between two measurements."""
READS = 200
SLOWER = 1.05
"""Smallest ratio of latencies that counts as slower."""


def refresh(host: Host, seed: int = 1) -> Finding:
    """Let a drive rest, and read the same pages from time to time."""
    random_ = random.Random(seed)
    places = [random_.randrange(host.capacity // PAGE) * PAGE for _ in range(READS)]

    def latency() -> float:
        twice = [place for place in places for _ in range(2)]
        return statistics.fmean(each.latency for each in host.play(reads(twice, PAGE))[1::2])

    days, curve = 0, [(0.0, latency())]
    for rest in RESTS:
        host.pause(rest * DAY)
        days += rest
        curve.append((float(days), latency()))
    return told(curve)


def told(curve: list[tuple[float, float]]) -> Finding:
    """Read the curve of latencies over days of rest."""
    name, axes = "refresh", ("days of rest", "latency in s")
    fresh, highest = curve[0][1], max(curve, key=lambda point: point[1])
    days = curve[-1][0]
    if highest[1] < SLOWER * fresh:
        why = f"in {days:.0f} days of rest, reads get no slower than {fresh * 1e6:.1f} µs"
        return cannot_tell(name, "", why, curve=curve, axes=axes)
    later = min(
        (point for point in curve if point[0] > highest[0]),
        key=lambda point: point[1],
        default=highest,
    )
    grown = (
        f"reads take {fresh * 1e6:.1f} µs at first and {highest[1] * 1e6:.1f} µs after "
        f"{highest[0]:.0f} days"
    )
    if highest[1] > SLOWER * later[1]:
        evidence = f"{grown}, but {later[1] * 1e6:.1f} µs after {later[0]:.0f} days"
        return Finding(name, "yes", "", evidence, 0.8, curve, axes)
    return Finding(name, "no", "", f"{grown}, and are not faster later", 0.6, curve, axes)
