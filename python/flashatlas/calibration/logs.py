"""Bandwidth and latency logs of fio, and the same curves of simulated runs.

A bandwidth log is a curve of bytes over time, and its levels are means over stretches of bytes. So
a cliff that comes too late changes the stretch behind it by as much as it is late. A latency log is
a curve of latencies over time, with means over stretches of time.
"""

from __future__ import annotations

import bisect
import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashatlas._core import InputError
from flashatlas.calibration.quantities import DIRECTIONS, Quantity
from flashatlas.results import units
from flashatlas.untrusted import text_of

POINTS = 200
"""Number of stretches of a curve among which steps are looked for."""

PARTS = 4
"""Number of stretches into which each level of a curve is cut."""

LEVELS_MAX = 4
LEAST_RATIO = 1.25
"""The least ratio of two levels."""

LEAST_SHARE = 0.02
"""The least length of a level, as a share of the curve."""

NEAR = 2.0
"""The largest ratio of two places at which the same break can be."""

EXPLAINED = 0.5
"""The least share of the squared deviations that a step explains."""

JITTER = 1.5
"""The largest distance of two entries of neighbouring windows, in windows."""

KIB = 1024


@dataclass(frozen=True)
class Curve:
    """A sum that grows with its place: bytes over seconds, or latencies over requests."""

    places: tuple[float, ...]
    """Ascending: bytes so far for bandwidth, seconds for latencies."""
    sums: tuple[float, ...]
    """At each place: seconds so far for bandwidth, latency times its weight for latencies."""
    weights: tuple[float, ...]
    """At each place: the sum of weights; for bandwidth, the bytes again."""

    @property
    def end(self) -> float:
        """The last place."""
        return self.places[-1]

    def mean(self, first: float, last: float) -> float:
        """Return the mean of the sum over the weight between two places.

        Beyond its end, the curve has the mean of its last stretch.
        """
        if last > self.end:
            first = min(first, self.end * (1 - 1 / POINTS))
            last = self.end
        weight = self._at(self.weights, last) - self._at(self.weights, first)
        total = self._at(self.sums, last) - self._at(self.sums, first)
        return total / weight if weight > 0 else math.nan

    def _at(self, values: Sequence[float], place: float) -> float:
        """Return the value at a place, interpolated."""
        n = bisect.bisect_left(self.places, place)
        if n == 0:
            return values[0] * place / self.places[0] if self.places[0] > 0 else values[0]
        if n == len(self.places):
            return values[-1]
        a, b = self.places[n - 1], self.places[n]
        return values[n - 1] + (values[n] - values[n - 1]) * (place - a) / (b - a)


@dataclass(frozen=True)
class Log:
    """A log of fio, one curve for each direction in it."""

    kind: str
    """``bandwidth`` or ``latency``."""
    curves: dict[str, Curve]


def kind_of(path: Path) -> str | None:
    """Return the kind of a log by fio's names of logs; ``None`` for other files."""
    if path.suffix != ".log":
        return None
    for sign, kind in (("_bw", "bandwidth"), ("_clat", "latency"), ("_lat", "latency")):
        if path.name.endswith(f"{sign}.log") or f"{sign}." in path.name:
            return kind
    return None


def read_log(path: Path) -> Log:
    """Return a log from its file. The name of the file tells the kind of the log.

    Raises:
        InputError: The file cannot be read, or a line is not an entry of a log.

    """
    kind = kind_of(path)
    assert kind is not None
    try:
        text = text_of(path, f"a {kind} log of fio")
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; give a {kind} log of fio") from error
    entries: dict[str, list[tuple[float, float, int]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        at, value, direction, size = _entry(path, number, line)
        own = entries.setdefault(direction, [])
        if own and at < own[-1][0]:
            raise InputError(
                f"{path}:{number}: the time {at:g} ms is before the previous entry of this "
                "direction; give the log of a single job, as fio wrote it"
            )
        own.append((at, value, size))
    made = {"bandwidth": _bandwidth, "latency": _latency}[kind]
    curves = {name: curve for name, own in entries.items() if (curve := made(own)) is not None}
    if not curves:
        raise InputError(f"{path}: the log has no entry above 0; give a {kind} log of fio")
    return Log(kind, curves)


def _entry(path: Path, number: int, line: str) -> tuple[float, float, str, int]:
    fields = [field.strip() for field in line.split(",")]
    try:
        at, value, direction, size = (int(field) for field in fields[:4])
        if min(at, value, size) < 0 or direction not in range(len(DIRECTIONS)):
            raise ValueError
    except ValueError as error:
        raise InputError(
            f"{path}:{number}: `{line[:60]}` is not an entry of a log of fio; an entry begins "
            "with four whole numbers: milliseconds, value, direction (0 read, 1 write, 2 trim), "
            "bytes of the request"
        ) from error
    return at, value, DIRECTIONS[direction], size


def _curve(rows: Sequence[tuple[float, float, float]]) -> Curve | None:
    """Return a curve from its steps of place, sum and weight; steps of no length are joined."""
    places: list[float] = []
    sums: list[float] = []
    weights: list[float] = []
    place = total = weight = 0.0
    for step, more, own in rows:
        place, total, weight = place + step, total + more, weight + own
        if places and place <= places[-1]:
            sums[-1], weights[-1] = total, weight
        elif place > 0:
            places.append(place)
            sums.append(total)
            weights.append(weight)
    if not places or total <= 0 or weight <= 0:
        return None
    return Curve(tuple(places), tuple(sums), tuple(weights))


def _bandwidth(entries: Sequence[tuple[float, float, int]]) -> Curve | None:
    """Return the curve of a bandwidth log.

    An averaged entry has no size of a request, and its value is the KiB per second of a window
    that ends there. Nothing is logged for a window without a request. An entry of a single request
    has its size.
    """
    times = [0.0, *(at for at, _, _ in entries)]
    window = statistics.median(b - a for a, b in itertools.pairwise(times)) / 1000
    rows, before = [], 0.0
    for at, value, size in entries:
        seconds = (at - before) / 1000
        busy = seconds if seconds <= JITTER * window else window
        done = float(size) if size else value * KIB * busy
        rows.append((done, seconds, done))
        before = at
    return _curve(rows)


def _latency(entries: Sequence[tuple[float, float, int]]) -> Curve | None:
    rows, before = [], 0.0
    for at, value, _ in entries:
        rows.append(((at - before) / 1000, value, 1.0))
        before = at
    return _curve(rows)


def simulated(kind: str, direction: str, series: Any) -> Curve | None:
    """Return the curve of a run from its table ``series``; ``None`` if nothing was completed."""
    columns = series.column_names
    needed = [f"{direction}_bytes", f"{direction}_requests", f"{direction}_mean_ns"]
    if any(name not in columns for name in needed):
        return None
    done, count, mean = (series[name].to_pylist() for name in needed)
    widths = [width / 1e9 for width in series["width_ns"].to_pylist()]
    if kind == "bandwidth":
        rows = [(float(n), s, float(n)) for n, s in zip(done, widths, strict=True)]
    else:
        rows = [(s, (m or 0.0) * n, float(n)) for s, n, m in zip(widths, count, mean, strict=True)]
    return _curve(rows)


def breaks(kind: str, curve: Curve) -> list[float]:
    """Return the places where the level of a curve changes."""
    ends = [curve.end * n / POINTS for n in range(POINTS + 1)]
    means = [curve.mean(a, b) for a, b in itertools.pairwise(ends)]
    known = [math.log(mean) if mean > 0 else math.nan for mean in means]
    filled = [value for value in known if not math.isnan(value)]
    if kind == "latency" and len(filled) < POINTS:  # windows of the log are longer than stretches
        known = [filled[min(n * len(filled) // POINTS, len(filled) - 1)] for n in range(POINTS)]
    found: list[int] = []
    parts = [(0, POINTS)]
    while parts and len(found) < LEVELS_MAX - 1:
        first, last = parts.pop(0)
        at = _step(known[first:last])
        if at is not None:
            found.append(first + at)
            parts += [(first, first + at), (first + at, last)]
    return [ends[n] for n in sorted(found)]


def _step(values: Sequence[float]) -> int | None:
    """Return the index that splits values into two levels; ``None`` if there is one level."""
    least = max(2, int(LEAST_SHARE * POINTS))
    if len(values) < 2 * least:
        return None
    whole = _deviations(values)

    def rest(at: int) -> float:
        return _deviations(values[:at]) + _deviations(values[at:])

    at = min(range(least, len(values) - least + 1), key=rest)
    low, high = sorted((statistics.median(values[:at]), statistics.median(values[at:])))
    is_step = high - low >= math.log(LEAST_RATIO) and rest(at) <= (1 - EXPLAINED) * whole
    return at if is_step else None


def _deviations(values: Sequence[float]) -> float:
    mean = statistics.fmean(values)
    return sum((value - mean) ** 2 for value in values)


def nearest_break(place: float, found: Sequence[float]) -> float | None:
    """Return the break that is the nearest by ratio; ``None`` if none is within :data:`NEAR`."""
    near = min(found, key=lambda own: abs(math.log(own / place)), default=None)
    return near if near is not None and abs(math.log(near / place)) <= math.log(NEAR) else None


def _place(kind: str, place: float) -> str:
    return units.size(place) if kind == "bandwidth" else f"{place:.3g} s"


def quantities(
    kind: str, group: str, curve: Curve, levels: Sequence[float], length: float
) -> list[Quantity]:
    """Return the means of a curve over the parts of each level.

    Args:
        kind: The kind of the log.
        group: The first part of the names of the groups; each part is a group.
        curve: The curve, measured or simulated.
        levels: The places where the measured level changes.
        length: The last place of the measured curve.

    """
    found = []
    for first, last in itertools.pairwise([0.0, *levels, length]):
        for part in range(PARTS):
            a = first + (last - first) * part / PARTS
            b = first + (last - first) * (part + 1) / PARTS
            mean = curve.mean(a, b)
            where = f"{_place(kind, a)} to {_place(kind, b)}"
            if kind == "bandwidth":
                value, unit = (1 / mean if mean > 0 else math.nan), "bytes/s"
            else:
                value, unit = mean, "ns"
            if value > 0:
                found.append(Quantity(f"{group}, {where}", kind, unit, value))
    return found
