"""Wrong bits, retries and their times in runs, beside `naive/errors.py`.

A count may be four standard deviations from its expectation, and four more reads where few are
expected. Runs are the same on every machine, so these tests do not fail by chance.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import flashatlas
import pytest
from drawn import sample
from naive.errors import UNIT, Code, Formula, drive, factors
from naive.traces import Request, written


def near(found: float, expected: float, variance: float, few: float = 4) -> bool:
    return abs(found - expected) <= 4 * math.sqrt(variance) + few


def drawn_formula(chosen: random.Random, cycles: int, days: float, reads: float) -> Formula:
    """Return a formula whose parts are about equal, and together between 0.001 and 0.01."""
    k, m, n, p, q = (chosen.uniform(0, 2) for _ in range(5))
    whole = 10 ** chosen.uniform(-3, -2)
    c = cycles + 1

    def part(of_one: float) -> float:
        return float(f"{chosen.choice([0, chosen.random()]) * whole / of_one / 4:.6g}")

    return Formula(
        e=part(1),
        a=part(c**k),
        k=k,
        b=part(c**m * max(days, 1) ** n),
        m=m,
        n=n,
        g=part(c**p * max(reads, 1) ** q),
        p=p,
        q=q,
    )


@pytest.mark.parametrize("seed", sample(range(200), 20))
def test_wrong_bits_follow_the_formula(seed: int) -> None:
    """Each page is read once in each round, and a code corrects all: their bits are counted.

    The cycle in which a page was programmed counts, so c is one more than the cycles before it. Of
    a block, r is the reads of all its pages before this one over its pages.
    """
    chosen = random.Random(seed)
    pages, lanes, blocks = 3 * chosen.randint(1, 6), chosen.choice([1, 2, 4]), 20
    cycles, rounds = chosen.choice([0, 10, 3000]), chosen.choice([1, 3, 10])
    days, unit = chosen.choice([0, 1, 30, 400]), chosen.choice(["day", "hour"])
    formula = drawn_formula(chosen, cycles, days, rounds)
    kinds, lines = chosen.choice([1, 1.5, 4]), chosen.choice([1, 2])
    run = flashatlas.run(
        drive="tiny",
        set=[
            *drive(blocks, lanes, pages, 1),
            *formula.settings(),
            "ecc.codeword=2048",
            "ecc.correctable=16000",
            "ecc.soft_correctable=16001",
            f"errors.cycles={cycles}",
            f"errors.rest_days={days}",
            f"errors.time_unit={unit}",
            f"errors.page_spread={kinds}",
            f"errors.layer_spread={lines}",
        ],
        workload=f"sequential:requests={blocks * lanes * pages * rounds},size=2KiB,read=1",
        precondition="fill",
        depth=1,
        seed=seed,
    )
    time = days if unit == "day" else 24 * days
    bits, expected, spread = 8 * UNIT, 0.0, 0.0
    for page, factor in enumerate(factors(pages, 3, kinds, lines)):
        rates = [
            formula.rate(cycles + 1, time, done + page / pages, factor=factor)
            for done in range(rounds)
        ]
        expected += blocks * lanes * bits * sum(rates)
        # the draw of a codeword is the same in all rounds, so their deviations add up
        spread += blocks * lanes * bits * sum(math.sqrt(rate) for rate in rates) ** 2
    faults = run.record["faults"]
    assert faults["by_retries"] == [blocks * lanes * pages * rounds]
    # the run itself takes milliseconds, in which b t^n with a small n counts
    least = formula.b * (cycles + 1) ** formula.m * (1 / 86_400) ** formula.n if days == 0 else 0
    slack = least * bits * blocks * lanes * pages * rounds * kinds * lines * 24
    assert near(faults["corrected_bits"], expected, spread, few=4 + slack), (formula, expected)


@pytest.mark.parametrize("code", ["bch", "ldpc", "ldpc-soft"])
def test_the_numbers_of_the_model_and_of_the_codes_are_the_documented_ones(code: str) -> None:
    """All numbers of docs/MODELLED.md spelled out give the same run as their names."""
    cycles = {"bch": 1000, "ldpc": 2000, "ldpc-soft": 3000}[code]
    own = [*drive(20, 1, 12, 2), f"errors.cycles={cycles}", "errors.rest_days=300"]
    spelled = {
        "bch": Code(1024, 40, 8, 0.7, 5_000),
        "ldpc": Code(1024, 72, 8, 0.7, 20_000),
        "ldpc-soft": Code(1024, 72, 8, 0.7, 20_000, 120, 4, 80_000),
    }[code]
    results = [
        flashatlas.run(
            drive="tiny",
            set=[*own, *more],
            workload="uniform:requests=2000,size=2KiB,read=0.9",
            precondition="fill",
            depth=1,
        ).record
        for more in ([f"ecc.code={code}"], [*Formula().settings(), *spelled.settings()])
    ]
    faults = results[0]["faults"]
    assert faults["further_reads"] > 0 and (faults["soft"] > 0) == (code == "ldpc-soft")
    for key in ("faults", "latency_ns", "nand"):
        assert results[0][key] == results[1][key], key


@pytest.mark.parametrize("seed", sample(range(200), 20))
def test_retries_are_as_frequent_and_as_long_as_by_hand(seed: int) -> None:
    """Each page is read once, after a rest: the endings of all reads, and the latency of each."""
    chosen = random.Random(seed)
    pages, lanes, units = 3 * chosen.randint(1, 4), chosen.choice([1, 2]), chosen.choice([1, 2, 4])
    blocks = 1500 // (pages * lanes)
    codeword = chosen.choice([512, 1024, 2048])
    # the first read fails now and then, and the last step corrects all: it has few bits, or e = 0
    soft = chosen.choice([True, False])
    mean = chosen.uniform(0.7, 1.1)
    correctable = chosen.choice([8, 20, 40])
    rate = mean * correctable / (8 * codeword)
    formula = Formula(e=rate / 8 * soft, a=0, b=rate, m=0, n=0, g=0)
    code = Code(
        codeword,
        correctable,
        retry_steps=chosen.randint(1, 4) if soft else 15,
        retry_gain=chosen.choice([0.5, 0.7, 0.9]) if soft else 0.5,
        decode=chosen.choice([1_000, 3_000, 30_000]),
        soft_correctable=8 * correctable if soft else 0,
        soft_reads=chosen.randint(1, 5) if soft else 0,
        soft_decode=50_000 if soft else 0,
        retry_overlap=chosen.choice([True, False]),
    )
    kinds = [chosen.choice([25, 40, 300]) * 1000 for _ in range(3)]
    command, per_byte, own = chosen.choice([0, 200]), chosen.choice([1, 25]), chosen.choice([0, 5])
    of_kinds, of_lines = chosen.choice([1, 1.2]), chosen.choice([1, 1.3])
    run = flashatlas.run(
        drive="tiny",
        set=[
            *drive(blocks, lanes, pages, units),
            *formula.settings(),
            *code.settings(),
            "errors.rest_days=1",
            f"errors.page_spread={of_kinds}",
            f"errors.layer_spread={of_lines}",
            f"timing.t_read={kinds[0]}ns",
            f"timing.t_read_middle={kinds[1]}ns",
            f"timing.t_read_upper={kinds[2]}ns",
            f"timing.t_command={command}ns",
            f"timing.channel_rate={1_000_000_000 // per_byte}",
            f"host.command_time={own}us",
        ],
        workload=f"sequential:requests={blocks * lanes * pages},size={2 * units}KiB,read=1",
        precondition="fill",
        depth=1,
        seed=seed,
    )
    faults, each = run.record["faults"], blocks * lanes
    chances = [
        code.endings(formula, factor, (1, 1, 0), units * UNIT // codeword)
        for factor in factors(pages, 3, of_kinds, of_lines)
    ]
    found = [*faults["by_retries"], *[0] * (code.retry_steps + 1 - len(faults["by_retries"]))]
    found += [faults["soft"], faults["uncorrectable"]]
    assert faults["reads"] == sum(found) == each * pages
    for step, count in enumerate(found):
        expected = each * sum(ending[step] for ending in chances)
        variance = each * sum(ending[step] * (1 - ending[step]) for ending in chances)
        assert near(count, expected, variance), (step, count, expected, code)
    retries = sum(step * count for step, count in enumerate(found[:-2]))
    soft_reads = faults["soft"] * (code.retry_steps + code.soft_reads)
    assert faults["further_reads"] == retries + soft_reads
    send, known = units * UNIT * per_byte, Counter[int]()
    for row in run.tables["latency"].to_pylist():
        # a bin ends at most 0.1 % above what is in it
        fits = {
            step
            for step in range(code.retry_steps + 2)
            for sense in kinds
            if 0
            <= row["latency_ns"] / (own * 1000 + code.time(step, sense, send, command)) - 1
            < 1e-3
        }
        assert fits, (row, code, kinds, send, command)
        if len(fits) == 1:
            known[fits.pop()] += row["count"]
        else:
            known["several"] += row["count"]
    for step, count in enumerate(found[:-1]):
        assert count - known["several"] <= known[step] <= count, (step, known, found)


@pytest.mark.parametrize("seed", sample(range(60), 20))
def test_frames_beyond_every_step_are_lost_while_the_drive_rests(seed: int) -> None:
    """A page whose worst codeword no step corrects is lost with all its units."""
    chosen = random.Random(seed)
    pages, units, codeword = 6, chosen.choice([1, 2, 4]), chosen.choice([512, 1024, 2048])
    blocks, correctable = 200, chosen.choice([10, 30])
    rate = chosen.uniform(0.8, 1.3) * correctable / (8 * codeword)
    formula = Formula(e=0, a=0, b=rate, m=0, n=0, g=0)
    code = Code(codeword, correctable, chosen.choice([0, 1, 3]), 0.95, 1000)
    run = flashatlas.run(
        drive="tiny",
        set=[
            *drive(blocks, 1, pages, units),
            *formula.settings(),
            *code.settings(),
            "errors.rest_days=1",
        ],
        workload=f"sequential:requests={blocks * pages},size={2 * units}KiB,read=1",
        precondition="fill",
        depth=1,
        seed=seed,
    )
    lost = code.endings(formula, 1, (1, 1, 0), units * UNIT // codeword)[-1]
    frames, rest = divmod(run.record["faults"]["units_lost_at_rest"], units)
    assert rest == 0
    assert near(frames, blocks * pages * lost, blocks * pages * lost * (1 - lost))
    # each request reads one frame; the frame still names its pages, so no read is unmapped
    assert run.record["conservation"]["failed"] == frames
    assert run.record["host"].get("unmapped_reads", 0) == 0
    assert run.violations == 0


@pytest.mark.parametrize("rest", [0, 1])
def test_what_no_step_corrects_from_the_start_is_lost_and_not_zeros(rest: int) -> None:
    """Of 8,192 bits 82 are wrong on average, and the code corrects 40, whatever the drive did.

    Every frame is beyond correction once it is programmed, so nothing of the filled drive can be
    read. It may be lost, but it must not be other data.
    """
    run = flashatlas.run(
        drive="tiny",
        set=[
            *drive(2, 1, 6, 1),
            *Formula(e=0.01, a=0, b=0, g=0).settings(),
            *Code(1024, 40, 0, 1.0, 1000).settings(),
            f"errors.rest_days={rest}",
        ],
        workload="sequential:requests=12,size=2KiB,read=1",
        precondition="fill",
        depth=1,
    )
    assert run.violations == 0


@pytest.mark.parametrize("passes", [1, 2, 5, 9])
def test_the_erases_of_a_run_are_cycles(passes: int, tmp_path: Path) -> None:
    """The range is written again and again in order, so blocks without valid pages are collected.

    The free block with the fewest erases is opened, so the n-th block that is opened was opened n
    divided by the number of blocks times before. The blocks of the last pass are read.
    """
    blocks, pages, data = 12, 24, 8
    whole, formula = data * pages, Formula(e=0, a=0.001, k=1, b=0, g=0)
    writes = [Request(0, "write", page) for _ in range(passes) for page in range(whole)]
    reads = [Request(0, "read", page) for page in range(whole)]
    run = flashatlas.run(
        drive="tiny",
        set=[
            *drive(data, 1, pages, 1),
            f"drive.blocks={blocks}",
            *formula.settings(),
            *Code(2048, 16_000, 0, 1.0, 1000).settings(),
            "errors.cycles=5",
            "ftl.idle_free=0",
        ],
        trace=written(tmp_path / "passes.csv", [*writes, *reads]),
        depth=1,
    )
    opened = range(data * (passes - 1), data * passes)
    bits = sum(8 * UNIT * pages * formula.rate(5 + 1 + n // blocks, 0, 0) for n in opened)
    assert near(run.record["faults"]["corrected_bits"], bits, bits)


@pytest.mark.parametrize("soft", [False, True])
def test_each_retry_counts_as_a_read_of_its_block(soft: bool) -> None:
    """Nothing but reads makes errors, and the code corrects one bit.

    The first page of a block is read without errors. Each other page has more than a bit, and a
    retry gains nothing: it is read once, then five times, and three times for soft decoding.
    """
    pages, blocks, formula = 12, 40, Formula(e=0, a=0, b=0, g=0.01, p=0, q=1)
    steps = 1 + 5 + (3 if soft else 1)
    code = Code(2048, 1, 5, 1.0, 1000, 16_000, steps - 6, 1000)
    run = flashatlas.run(
        drive="tiny",
        set=[*drive(blocks, 1, pages, 1), *formula.settings(), *code.settings()],
        workload=f"sequential:requests={blocks * pages},size=2KiB,read=1",
        precondition="fill",
        depth=1,
    )
    assert run.record["faults"]["further_reads"] == (steps - 1) * blocks * (pages - 1)
    before = [0, *(1 + steps * page for page in range(pages - 1))]
    bits = sum(8 * UNIT * blocks * formula.rate(1, 0, reads / pages) for reads in before)
    assert near(run.record["faults"]["corrected_bits"], bits, bits)
