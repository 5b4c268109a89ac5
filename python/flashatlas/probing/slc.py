"""Size of an SLC cache, and whether it folds in idle time.

A blank drive is written once in order. While the SLC cache has room, flash takes data at the speed
of SLC programs, and at the speed of native programs afterwards. The write buffer makes a step of
its own, so the curve counts only from the point at which the buffer is full.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from flashatlas.probing.curves import step
from flashatlas.probing.found import Finding, cannot_tell
from flashatlas.probing.host import FLUSH, PAGE, Command, Host, Times, in_order, writes

SIZE = 64 << 10
"""Bytes of each write."""
DEPTH = 32
"""Writes in flight."""
WRITES = 16384
"""Writes of a fill, if they are not too large."""
WINDOWS = 400
"""Parts of the curve."""
LEAST_CACHE = 0.7
"""Share of the write buffer below which the step of a cache is lost in its own."""
HIDDEN = 0.1
"""Share of the write buffer above which more was taken at first than it holds."""
LEAST_RATIO = 1.15
"""Smallest ratio of the speeds before and after the end of a cache."""
PART = 16
"""Share of the drive that is written again, as a divisor."""
FASTER = 1.2
"""Smallest ratio of the speeds after idle time and without a pause."""
FOLD_S = 30.0
"""Seconds of idle time in which a cache may fold."""


def fill(host: Host) -> list[Times]:
    """Write the whole drive once in order, and make it durable."""
    size = write_size(host.capacity)
    whole = host.capacity // size * size
    times = host.play(in_order(0, whole, size), DEPTH)
    rest = writes([whole], host.capacity - whole) if whole < host.capacity else []
    host.play([*rest, Command(FLUSH)])
    return times


def write_size(capacity: int) -> int:
    """Return the bytes of each write of a fill: whole pages, in enough writes for a curve."""
    return max(PAGE, min(SIZE, capacity // WRITES // PAGE * PAGE))


def peak_speed(times: Sequence[Times], capacity: int) -> float:
    """Return the bytes per second of the second half of the first fill.

    A full drive writes no faster than this, because its SLC cache is in use.
    """
    half = sorted(each.end for each in times)[len(times) // 2 :]
    return (len(half) - 1) * write_size(capacity) / max(half[-1] - half[0], 1e-12)


def speeds(times: Sequence[Times], size: int, skip: int) -> tuple[list[float], int]:
    """Return bytes per second in equal windows after the first ``skip`` bytes, and their size."""
    ends = sorted(each.end for each in times)[skip // size :]
    width = max(1, (len(ends) - 1) // WINDOWS)
    points = ends[::width]
    gaps = itertools.pairwise(points)
    return [width * size / max(b - a, 1e-12) for a, b in gaps], width * size


def end_of_cache(
    times: Sequence[Times], size: int, buffer: float
) -> tuple[float, float, float, list[tuple[float, float]]] | None:
    """Return the bytes before the speed falls, both speeds, and the curve; or ``None``.

    ``buffer`` are the bytes of the write buffer, which are not on flash when they are complete.
    """
    skip = int(1.25 * buffer) // size * size + size
    values, width = speeds(times, size, skip)
    found = step(values, LEAST_RATIO)
    if found is None or found.before < found.after:
        return None
    # a small cache is in the first windows: look at them again
    near = skip // size + 4 * found.at * (width // size) + 8
    closer, narrow = speeds(sorted(times, key=lambda each: each.end)[:near], size, skip)
    again = step(closer, LEAST_RATIO)
    if again is not None and again.before > again.after:
        values, width, found = closer, narrow, again
    # the buffer fills up after the step, so the slower speed counts only later
    middle = (found.at + len(values)) // 2
    fast, slow = _seconds(values[: max(1, found.at - 1)]), _seconds(values[middle:])
    if slow < LEAST_RATIO * fast:
        return None
    seconds = sum(1 / value for value in values[:middle])
    position = width * (middle * slow - seconds) / (slow - fast)
    position = min(max(position, (found.at - 2) * width), skip + (found.at + 2) * width)
    curve = [(float(skip + n * width), value) for n, value in enumerate(values)]
    return skip + position - buffer, 1 / fast, 1 / slow, curve


def _seconds(values: Sequence[float]) -> float:
    """Return the seconds of a byte, over all windows."""
    return sum(1 / value for value in values) / len(values)


def _beyond_buffer(ends: Sequence[float], size: int, buffer: float) -> float:
    """Return the bytes that are accepted at first beyond the write buffer.

    The line of the later speed meets the start of the fill at the bytes that were taken
    immediately.
    """
    first = min(int(2 * buffer) // size + 1, len(ends) // 2)
    last = (first + len(ends) - 1) // 2
    speed = (last - first) * size / max(ends[last] - ends[first], 1e-12)
    return (first + 1) * size - speed * (ends[first] - ends[0]) - buffer


def slc_cache(times: Sequence[Times], capacity: int, buffer: float | None) -> Finding:
    """Read the size of the SLC cache from the first fill of a blank drive."""
    size = write_size(capacity)
    name, unit, axes = "SLC cache", "bytes", ("bytes written", "bytes/s")
    if buffer is None:
        return cannot_tell(name, unit, "the write buffer is unknown, and hides a small cache")
    found = end_of_cache(times, size, buffer)
    ends = sorted(each.end for each in times)
    burst = max(8, min(len(ends) // 50, int(buffer) // (2 * size)))
    link = (burst - 1) * size / max(ends[burst - 1] - ends[0], 1e-12)
    if found is None:
        values, width = speeds(times, size, int(1.25 * buffer) // size * size + size)
        mean = len(values) * width / sum(width / value for value in values)
        curve = [(float(n * width), value) for n, value in enumerate(values)]
        if mean > 0.9 * link:
            why = (
                f"the first fill runs at {mean / 1e6:.0f} MB/s, the speed of the link: a cache "
                "would not be faster"
            )
            return cannot_tell(name, unit, why, curve=curve, axes=axes)
        hidden = _beyond_buffer(ends, size, buffer)
        if hidden > HIDDEN * buffer:
            why = (
                f"the first fill takes {hidden:.0f} bytes more at first than the write buffer "
                f"holds ({buffer:.0f}): a cache may be hidden behind it"
            )
            return cannot_tell(name, unit, why, curve=curve, axes=axes)
        evidence = (
            f"the speed of the first fill stays at {mean / 1e6:.1f} MB/s behind the write buffer"
        )
        return Finding(name, 0, unit, evidence, 0.9, curve, axes)
    value, fast, slow, curve = found
    evidence = (
        f"after {value:.0f} bytes on flash, the speed of the first fill falls from "
        f"{fast / 1e6:.1f} to {slow / 1e6:.1f} MB/s"
    )
    if value < LEAST_CACHE * buffer:
        why = f"{evidence}: this is too little beside a write buffer of {buffer:.0f} bytes"
        return cannot_tell(name, unit, why, curve=curve, axes=axes)
    return Finding(name, max(0.0, value), unit, evidence, 0.9, curve, axes)


def twice(host: Host) -> tuple[list[Times], list[Times]]:
    """Write a part of a full drive again, without a pause and after idle time."""
    size = write_size(host.capacity)
    batches = []
    for pause in (0.0, FOLD_S):
        if pause:
            host.pause(pause)
        batches.append(host.play(in_order(0, host.capacity // PART, size), DEPTH))
        host.play([Command(FLUSH)])
    return batches[0], batches[1]


def folding(
    batches: tuple[Sequence[Times], Sequence[Times]],
    cache: Finding,
    buffer: float | None,
    capacity: int,
) -> Finding:
    """Compare writes without a pause with later ones: only a folded cache is fast again."""
    name, size = "idle fold", write_size(capacity)
    if not cache.value or not isinstance(cache.value, (int, float)) or buffer is None:
        why = "there is no SLC cache to fold" if cache.value == 0 else "no SLC cache was measured"
        return cannot_tell(name, "", why)
    rates = []
    for times in batches:
        ends = sorted(each.end for each in times)
        first = min(int(buffer * 1.25) // size + 1, len(ends) // 2)
        last = min(len(ends) - 1, first + max(4, int(cache.value / 8) // size))
        rates.append((last - first) * size / max(ends[last] - ends[first], 1e-12))
    at_once, later = rates
    evidence = (
        f"writes behind the write buffer run at {at_once / 1e6:.1f} MB/s without a pause, and at "
        f"{later / 1e6:.1f} MB/s after {FOLD_S:.0f} s without commands"
    )
    if later > FASTER * at_once:
        return Finding(name, "yes", "", evidence, 0.9)
    why = f"{evidence}: the cache is not folded, or has no room on a full drive"
    return cannot_tell(name, "", why)
