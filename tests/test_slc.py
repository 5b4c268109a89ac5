"""The write curve of a drive with an SLC cache: the drops of the rate, worked out by hand."""

from __future__ import annotations

from itertools import accumulate

import flashatlas

SLC = [
    "ftl.gc_pace=burst",
    "timing.t_read_slc=20us",
    "timing.t_program_slc=75us",
    "ftl.slc=hybrid",
    "ftl.slc_static=4",
    "ftl.slc_dynamic=40",
]

FRAME = 2 * 16384
"""Bytes that a program of `tlc-small` writes on the two planes of a die."""
DIES = 8
SENT = 0.2 + FRAME / 1600
"""Microseconds in which a command and the data of a frame reach a die."""
CACHE = 44 * DIES * (128 // 3) * FRAME
"""Bytes of 44 blocks in each lane, with a page of each of 42 word lines."""


def curve(requests: int) -> list[tuple[int, int]]:
    """Return the bytes written so far and the nanoseconds so far, for each row of the series."""
    run = flashatlas.run(
        drive="tlc-small",
        set=SLC,
        workload=f"sequential:requests={requests},size=128KiB",
        mode="closed",
        depth=32,
    )
    series = run.tables["series"]
    written = accumulate(series.column("write_bytes").to_pylist())
    passed = accumulate(series.column("width_ns").to_pylist())
    return list(zip(written, passed, strict=True))


def mean(found: list[tuple[int, int]], start: float, end: float) -> float:
    """Return the mean bytes a nanosecond from one number of bytes to another, in whole rows."""
    rows = [row for row in found if start < row[0] <= end]
    return (rows[-1][0] - rows[0][0]) / (rows[-1][1] - rows[0][1])


def test_the_cliff_stands_where_the_cache_ends_and_is_as_deep_as_tprog_says() -> None:
    fast, slow = (DIES * FRAME / (t * 1e3 + SENT * 1e3) for t in (75, 500))
    for requests in (8_000, 16_000):
        found = curve(requests)
        assert abs(mean(found, 0, CACHE * 0.98) / fast - 1) < 0.01
        after = mean(found, CACHE * 1.06, requests * 131072 * 0.98)
        assert abs(after / slow - 1) < 0.01, "a run of twice the length has the same direct rate"


def test_folds_under_pressure_are_a_second_cliff() -> None:
    found = curve(21_000)
    # 832 blocks of 4 MiB: 44 in SLC mode and 3 free ones in each lane leave the rest for direct
    # writes
    full = CACHE + (104 - 44 - 3) * DIES * 128 * FRAME
    slow = DIES * FRAME / ((500 + SENT) * 1e3)
    assert abs(mean(found, full * 0.8, full * 0.97) / slow - 1) < 0.01
    assert mean(found, full * 1.06, 21_000 * 131072) < 0.8 * slow
