"""Whether a difference between configurations is more than chance, in one sentence."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flashatlas._core import InputError
from flashatlas.frame import Frame, frame
from flashatlas.result import Result

EXACT = 16
"""Pairs up to which every assignment of signs is tried."""

DRAWN = 100_000
"""Assignments of signs that are drawn for more pairs."""


def significance(
    results: Frame | Sequence[Result], of: str, between: str, each: str | None = None
) -> list[str]:
    """One sentence for each value of a factor, against the first one.

    Runs are paired that differ in this factor and in nothing else. The test flips the signs of the
    pairs' log ratios (a permutation test, which assumes no distribution): all ways for up to 16
    pairs, else 100,000 drawn ones. Pairs that only their seeds tell apart, and whose numbers are
    the same, count once.

    Args:
        results: The runs, or a :func:`flashatlas.frame` of them.
        of: The number that is compared, such as ``waf``.
        between: The factor, such as ``ftl.victim``.
        each: A further factor: a sentence for each of its values.

    Raises:
        InputError: No such column, a factor that the runs do not differ in, or no pairs.

    """
    runs = results if isinstance(results, Frame) else frame(results)
    if len(runs) < 2:
        raise InputError("one run: a difference needs two at least")
    for option, name in (("between", between), ("each", each)):
        if name is None:
            continue
        runs.column(name)
        if name in runs.numbers:
            raise InputError(f"{option}: `{name}` is a result of runs, not a factor (see `of`)")
        if name not in runs.factors:
            factors = ", ".join(runs.factors) or "none"
            raise InputError(f"{option}: the runs do not differ in `{name}` (factors: {factors})")
    if each == between:
        raise InputError(
            f"each: `{each}` is the factor of `between`; expected another one, or none"
        )
    runs.column(of)
    if of not in runs.numbers:
        raise InputError(f"of: `{of}` is what runs were given, not a number that they found")
    rows = [row for row in runs.rows() if row[of] is not None]
    groups = list(dict.fromkeys(row[each] for row in rows)) if each else [None]
    sentences = []
    for group in groups:
        own = [row for row in rows if each is None or row[each] == group]
        levels = list(dict.fromkeys(row[between] for row in own))
        for level in levels[1:]:
            pairs = _pairs(own, of, between, (levels[0], level), runs.factors)
            where = f"{each} {_called(group)}: " if each else ""
            sentences.append(where + _sentence(of, levels[0], level, pairs))
    return sentences


def _pairs(
    rows: list[dict[str, Any]],
    of: str,
    between: str,
    levels: tuple[Any, Any],
    factors: list[str],
) -> list[tuple[float, float]]:
    """The numbers of runs that differ in nothing but the factor."""
    others = [name for name in factors if name != between]
    sides: list[dict[tuple[Any, ...], float]] = [{}, {}]
    for row in rows:
        if row[between] in levels:
            sides[levels.index(row[between])][tuple(row[name] for name in others)] = row[of]
    seedless = [at for at, name in enumerate(others) if name != "seed"]
    told_apart = {
        (tuple(key[at] for at in seedless), first, sides[1][key])
        for key, first in sides[0].items()
        if key in sides[1]
    }
    return [(first, second) for _, first, second in sorted(told_apart, key=str)]


def _sentence(of: str, first: Any, second: Any, pairs: list[tuple[float, float]]) -> str:
    name = f"{of}, {second} over {first}"
    if not pairs:
        raise InputError(f"{name}: no two runs differ in nothing else")
    if any(a <= 0 or b <= 0 for a, b in pairs):
        raise InputError(f"{name}: ratios need numbers above 0")
    logs = [math.log(b / a) for a, b in pairs]
    ratios = [math.exp(value) for value in (sum(logs) / len(logs), min(logs), max(logs))]
    count = f"{len(pairs)} pair{'s' if len(pairs) > 1 else ''}"
    found = (
        f"{name}: {ratios[0]:.3g} times (geometric mean of {count}, "
        f"{ratios[1]:.3g} to {ratios[2]:.3g})"
    )
    chance = _chance(logs)
    verdict = "more than chance" if chance < 0.05 else "may be chance"
    if 2 ** (1 - len(pairs)) >= 0.05:
        verdict = f"{count}: too few to tell from chance"
    return f"{found}; p = {chance:.2g}: {verdict}"


def _called(value: Any) -> str:
    """A trace by the name of its file."""
    return Path(value).name if isinstance(value, str) else str(value)


def _chance(logs: list[float]) -> float:
    """The share of assignments of signs whose sum is at least as far from 0."""
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
