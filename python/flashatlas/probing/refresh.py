"""Refresh of data that rests for a long time.

The cells of resting data lose charge, so reads need more steps of correction and take longer. A
drive that writes old data again makes them fast again.
"""

from __future__ import annotations

import random
import statistics

from flashatlas._core import DriveError
from flashatlas.probing.found import Finding, cannot_tell
from flashatlas.probing.host import PAGE, Host, reads

DAY = 86400.0
"""Seconds."""
RESTS = (1, 2, 4, 8, 16, 32, 32)
"""Days between two measurements."""
READS = 200
"""Pages that are read each time."""
AXES = ("days of rest", "latency in s")
"""Names of the coordinates of the curve."""
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
        days += rest
        try:
            host.pause(rest * DAY)
            curve.append((float(days), latency()))
        except DriveError as error:
            why = f"after {days} days of rest, a page cannot be read: {error}"
            return cannot_tell("refresh", "", why, curve=curve, axes=AXES)
    return told(curve)


def told(curve: list[tuple[float, float]]) -> Finding:
    """Read the curve of latencies over days of rest."""
    name, axes = "refresh", AXES
    fresh, highest = curve[0][1], max(curve, key=lambda point: point[1])
    days = curve[-1][0]
    later = min(
        (point for point in curve if point[0] > highest[0]),
        key=lambda point: point[1],
        default=highest,
    )
    if highest[1] > SLOWER * later[1]:
        evidence = (
            f"reads take {highest[1] * 1e6:.1f} µs after {highest[0]:.0f} days of rest, but only "
            f"{later[1] * 1e6:.1f} µs after {later[0]:.0f} days"
        )
        return Finding(name, "yes", "", evidence, 0.8, curve, axes)
    if highest[1] < SLOWER * fresh:
        why = f"in {days:.0f} days of rest, reads get no slower than {fresh * 1e6:.1f} µs"
        return cannot_tell(name, "", why, curve=curve, axes=axes)
    evidence = (
        f"reads take {fresh * 1e6:.1f} µs at first and {highest[1] * 1e6:.1f} µs after "
        f"{highest[0]:.0f} days, and are not faster later"
    )
    return Finding(name, "no", "", evidence, 0.6, curve, axes)
