"""Tests whether differences between configurations are more than chance, in one sentence each."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flashatlas._core import InputError, about
from flashatlas.results.frame import Frame
from flashatlas.results.result import Result
from flashatlas.results.runs import frame
from flashatlas.results.units import word

EXACT = 16
"""The largest number of repetitions for which every assignment of signs is tried."""

DRAWN = 100_000
"""Number of assignments of signs that are drawn if there are more repetitions."""


DRAWS = ("seed", "trace", "workload", "job")
"""Columns that determine a run's requests; runs with equal values are one repetition."""


def significance(
    results: Frame | Sequence[Result],
    of: str,
    between: str,
    each: str | Sequence[str] | None = None,
    *,
    allow_incomplete: bool = False,
) -> list[str]:
    """Return a sentence for each value of a factor, compared with the first value.

    Two runs are a pair if they differ only in this factor. Pairs with the same trace and the same
    seed have the same requests, so they are one repetition, even if other settings differ. The
    value of a repetition is the mean of the log ratios of its pairs. The test is a permutation
    test, which assumes no distribution: it flips the signs of these values. It tries all
    combinations of signs for up to 16 repetitions, else 100,000 random combinations. Repetitions
    that differ only in their seeds, and have the same numbers, count once.

    Args:
        results: The runs, or a :func:`flashatlas.frame` of them.
        of: The number that is compared, such as ``waf``.
        between: The factor, such as ``ftl.victim``.
        each: A further factor, or several factors; there is a sentence for each of their values.
        allow_incomplete: Accept a study even if runs are missing.

    Raises:
        InputError: A column does not exist, the runs do not differ in the factor, there are no
            pairs, or a study is not complete.

    """
    runs = results if isinstance(results, Frame) else frame(results)
    runs.must_be_whole(allowed=allow_incomplete)
    apart = [] if each is None else [each] if isinstance(each, str) else list(each)
    _check(runs, of, between, apart)
    rows = [row for row in runs.rows() if row[of] is not None]
    groups = list(dict.fromkeys(tuple(row[name] for name in apart) for row in rows))
    sentences = []
    for group in groups:
        own = [row for row in rows if tuple(row[name] for name in apart) == group]
        levels = list(dict.fromkeys(row[between] for row in own))
        named = (f"{name} {_called(value)}" for name, value in zip(apart, group, strict=True))
        where = ", ".join(named) + ": " if apart else ""
        for level in levels[1:]:
            found = _repetitions(runs, own, of, between, (levels[0], level))
            why = "" if found else _apart(runs, own, between, (levels[0], level))
            sentences.append(where + _sentence(of, levels[0], level, found, why))
    return sentences


def _check(runs: Frame, of: str, between: str, each: Sequence[str]) -> None:
    """Refuse a column that is not the factor or the number that its option needs."""
    if len(runs) < 2:
        raise InputError("there is one run: a difference needs at least two")
    for option, name in (("between", between), *(("each", name) for name in each)):
        runs.column(name)
        if name in runs.numbers:
            raise about(option, f"`{name}` is a result of runs, not a factor (see ‹of›)")
        if name not in runs.factors:
            factors = ", ".join(runs.factors) or "none"
            raise about(option, f"the runs do not differ in `{name}` (factors: {factors})")
        if option == "each" and name == between:
            raise about(
                "each",
                f"`{name}` is already the factor of ‹between›: give another factor, "
                "or leave the option out",
            )
    runs.column(of)
    if of not in runs.numbers:
        raise about("of", f"`{of}` is a setting of the runs, not a number that they found")


Pair = tuple[float, float]


def _repetitions(
    runs: Frame,
    rows: list[dict[str, Any]],
    of: str,
    between: str,
    levels: tuple[Any, Any],
) -> list[list[Pair]]:
    """Return the pairs of each repetition: the numbers of two runs that differ in the factor."""
    others = [name for name in runs.factors if name != between]
    numbers = runs.numbers
    sides: list[dict[tuple[Any, ...], float]] = [{}, {}]
    everything: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        if row[between] in levels:
            key = tuple(row[name] for name in others)
            sides[levels.index(row[between])][key] = row[of]
            everything.setdefault(key, []).append(tuple(row[name] for name in numbers))
    drawn = [at for at, name in enumerate(others) if name in DRAWS]
    found: dict[tuple[Any, ...], list[Pair]] = {}
    results: dict[tuple[Any, ...], list[Any]] = {}
    for key in sorted(sides[0].keys() & sides[1].keys(), key=str):
        pair = (sides[0][key], sides[1][key])
        repetition = tuple(key[at] for at in drawn)
        found.setdefault(repetition, []).append(pair)
        results.setdefault(repetition, []).append(tuple(everything[key]))
    # repetitions with different seeds and equal numbers count once
    seedless = [i for i, at in enumerate(drawn) if others[at] != "seed"]
    apart = {
        (tuple(key[i] for i in seedless), tuple(results[key])): pairs
        for key, pairs in found.items()
    }
    return list(apart.values())


def _apart(runs: Frame, rows: list[dict[str, Any]], between: str, levels: tuple[Any, Any]) -> str:
    """Return the reason why two values of ``between`` have no pairs, for a message."""
    others = [name for name in runs.factors if name != between]
    said = []
    for name in others:
        sides = [
            list(dict.fromkeys(row[name] for row in rows if row[between] == level))
            for level in levels
        ]
        if not set(sides[0]) & set(sides[1]):
            shown = [
                ", ".join(
                    "not given" if one is None else word(one, runs.unit(name)) for one in side
                )
                for side in sides
            ]
            said.append(f"{name} is {shown[0]} with {levels[0]} and {shown[1]} with {levels[1]}")
    if said:
        return f": {'; '.join(said)}"
    return f": both share values of each of {', '.join(others)}, but never all together"


def _sentence(of: str, first: Any, second: Any, repetitions: list[list[Pair]], apart: str) -> str:
    name = f"{of}, {second} over {first}"
    pairs = [pair for own in repetitions for pair in own]
    if not pairs:
        raise InputError(f"{name}: no two runs differ in this factor alone{apart}")
    if any(a <= 0 or b <= 0 for a, b in pairs):
        raise InputError(f"{name}: ratios need numbers above 0")
    means = [sum(math.log(b / a) for a, b in own) / len(own) for own in repetitions]
    ratios = [b / a for a, b in pairs]
    count = f"{len(means)} repetition{'s' if len(means) > 1 else ''}"
    of_pairs = f" of {len(pairs)} pairs" if len(pairs) > len(means) else ""
    found = (
        f"{name}: {_change(math.exp(sum(means) / len(means)))} (geometric mean of {count}"
        f"{of_pairs}, {_change(min(ratios))} to {_change(max(ratios))})"
    )
    chance = _chance(means)
    verdict = "more than chance" if chance < 0.05 else "may be chance"
    if 2 ** (1 - len(means)) >= 0.05:
        verdict = f"{count}: too few to tell from chance (six at least)"
    return f"{found}; p = {chance:.2g}: {verdict}"


def _change(ratio: float) -> str:
    """Return a ratio as a change in percent, or as a multiple if the change is large."""
    return f"{100 * (ratio - 1):+.2g} %" if 0.5 < ratio < 2 else f"{ratio:.3g} times"


def _called(value: Any) -> str:
    """Return the name of a trace's file."""
    return Path(value).name if isinstance(value, str) else str(value)


def _chance(logs: list[float]) -> float:
    """Return the share of sign assignments whose sum is at least as far from 0 as ``sum(logs)``."""
    found = abs(sum(logs)) - 1e-12
    if len(logs) <= EXACT:
        signs = itertools.product((1, -1), repeat=len(logs))
        sums = [abs(sum(map(float.__mul__, logs, map(float, flips)))) for flips in signs]
        return sum(total >= found for total in sums) / len(sums)
    draw = random.Random(1)
    flips = (draw.getrandbits(len(logs)) for _ in range(DRAWN))
    drawn = (
        abs(sum(value if bits >> at & 1 else -value for at, value in enumerate(logs)))
        for bits in flips
    )
    return (1 + sum(total >= found for total in drawn)) / (1 + DRAWN)
