"""Blocks that are refreshed in runs, and when, beside the model in `naive/refresh.py`."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import flashatlas
import pytest
from drawn import sample
from naive.errors import DAY, UNIT, Code, Formula, drive, factors
from naive.refresh import Drive
from naive.traces import US, Request, written

ROW = 600_000_000_000
"""Nanoseconds of a row."""
SECOND = 1_000_000 * US


@pytest.mark.parametrize("seed", sample(range(100), 20))
def test_blocks_are_refreshed_when_the_formula_says(seed: int, tmp_path: Path) -> None:
    """A few weeks of writes and reads, with pauses of seconds to days: each look of each lane."""
    chosen = random.Random(seed)
    lanes, pages = chosen.choice([1, 2, 4]), 3 * chosen.randint(1, 4)
    blocks = 30
    # a block that is due has few more wrong bits than its share, so nothing is lost
    correctable, share = 4000, chosen.choice([0.25, 0.5, 0.8])
    kinds, lines = chosen.choice([1, 2]), chosen.choice([1, 1.5])
    n, lasts = chosen.choice([0.5, 1, 2]), chosen.uniform(1, 12)
    worst = max(factors(pages, 3, kinds, lines))
    # the share of the bits that new data has in the worst page: none, some, or more than `share`
    new = chosen.choice([0.0, 0.3, 0.6])
    e = new * correctable / (8 * UNIT) / worst
    # at this rate, a block whose factor is 1 is due after `lasts` days
    room = share * (1 - new) * correctable
    formula = Formula(e=e, a=0, b=room / (8 * UNIT) / lasts**n, m=0, n=n, g=0)
    check = chosen.choice([1, 60, 600])

    def due(age: float) -> bool:
        rate = formula.rate(1, age / DAY, 0, factor=worst)
        return rate * 8 * UNIT - new * correctable > room

    model = Drive(lanes, pages, due, check, idle=0.1)
    requests, at, page = [], 0.0, 0
    while at < 30 * DAY and len(requests) < 400:
        at += round(10 ** chosen.uniform(-1, 5.5), 3)
        write = chosen.random() < 0.5 and page < (blocks - 1) * lanes * pages
        requests.append(
            Request(int(at * SECOND), "write" if write else "read", page if write else 0)
        )
        page += write
        model.command(at, write=write)
    run = flashatlas.run(
        drive="tiny",
        set=[
            *drive(blocks, lanes, pages, 1),
            "drive.blocks=120",
            *formula.settings(),
            *Code(2048, correctable, 0, 1.0, 1000).settings(),
            f"errors.page_spread={kinds}",
            f"errors.layer_spread={lines}",
            f"ftl.refresh={share}",
            f"ftl.refresh_check={check}s",
            "ftl.idle_free=0",
        ],
        trace=written(tmp_path / "weeks.csv", requests),
        mode="open",
        interval="10min",
        precondition="none",
    )
    series, found = run.tables["series"], Counter[int]()
    if "erases_refresh" in series.column_names:
        starts, erases = (
            series.column(name).to_pylist() for name in ("start_ns", "erases_refresh")
        )
        found.update({start // ROW: n for start, n in zip(starts, erases, strict=True) if n})
    expected = Counter[int]()
    for when, count in model.refreshed.items():
        expected[int((when - requests[0].at / SECOND) * 1e9) // ROW] += count
    assert found == expected


@pytest.mark.parametrize("seed", sample(range(60), 20))
def test_a_filled_drive_is_refreshed_at_the_first_hour_after_its_age(
    seed: int, tmp_path: Path
) -> None:
    """All blocks are alike and full, so all are copied in one look of idle time, again and again.

    The share is of the bits that hard decoding corrects, also if the code has soft decoding.
    """
    chosen = random.Random(seed)
    lanes, pages, blocks, rest = chosen.choice([1, 2]), 6, 10, chosen.choice([0, 1, 5])
    soft = chosen.choice([True, False])
    lasts = chosen.uniform(1.5, 8)
    formula = Formula(e=0, a=0, b=0.5 * 4000 / (8 * UNIT) / lasts, m=0, n=1, g=0)
    code = Code(2048, 4000, 0, 1.0, 1000, 6000 if soft else 0, 1, 1000)
    run = flashatlas.run(
        drive="tiny",
        set=[
            *drive(blocks, lanes, pages, 1),
            "drive.blocks=40",
            *formula.settings(),
            *code.settings(),
            f"errors.rest_days={rest}",
            "ftl.refresh=0.5",
        ],
        trace=written(
            tmp_path / "idle.csv", [Request(0, "read", 0), Request(20 * DAY * SECOND, "read", 0)]
        ),
        mode="open",
        precondition="fill",
    )
    model = Drive(lanes, pages, lambda age: age / DAY > lasts, check=60, idle=0.1)
    model.fill(blocks * lanes * pages)
    model.rest(rest * DAY)
    for at in (0, 20 * DAY):
        model.command(at, write=False)
    assert run.record["faults"]["refreshed_blocks"] == sum(model.refreshed.values())


@pytest.mark.parametrize("seed", sample(range(40), 20))
def test_a_spread_over_blocks_makes_a_share_of_them_due(seed: int, tmp_path: Path) -> None:
    """The factor of a block is uniform from 1 - spread to 1 + spread: blocks above the limit go.

    The run ends after the first hour of idle time, when all of them have been copied once. A copy
    is young, so it is not due.
    """
    chosen = random.Random(seed)
    blocks, rest, spread = 200, 10, chosen.choice([0.2, 0.5, 0.9])
    # a block of this factor is due at the end of the rest
    factor = 1 + spread * chosen.uniform(-0.9, 0.9)
    formula = Formula(e=0, a=0, b=0.5 * 4000 / (8 * UNIT) / rest / factor, m=0, n=1, g=0)
    run = flashatlas.run(
        drive="tiny",
        set=[
            *drive(blocks, 2, 6, 1),
            "drive.blocks=500",
            *formula.settings(),
            *Code(2048, 16_000, 0, 1.0, 1000).settings(),
            f"errors.block_spread={spread}",
            f"errors.rest_days={rest}",
            "ftl.refresh=0.125",
        ],
        trace=written(
            tmp_path / "hour.csv", [Request(0, "read", 0), Request(5000 * SECOND, "read", 0)]
        ),
        mode="open",
        precondition="fill",
        seed=seed,
    )
    share = (1 + spread - factor) / (2 * spread)
    # an hour is 1/240 of the rest, and may add blocks
    later = 2 * blocks * factor / (2 * spread) / 200
    expected, variance = 2 * blocks * share, 2 * blocks * share * (1 - share)
    assert abs(run.record["faults"]["refreshed_blocks"] - expected) <= 4 * variance**0.5 + later
