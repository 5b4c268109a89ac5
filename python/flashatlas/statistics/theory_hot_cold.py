"""Models of write amplification for workloads with hot and cold pages.

The hot pages are a share ``space`` of the exported pages, and get a share ``share`` of the writes.
Writes are uniform among hot pages, and uniform among cold pages. ``rho``, ``b`` and ``d`` have the
same meaning as in :mod:`flashatlas.statistics.theory`. The unit of time is one host write for each
block, so a hot page is written at the rate ``share / (rho b space)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from flashatlas.statistics import theory
from flashatlas.statistics.theory import bisect, random_victim

NEVER = 1e-30
"""The rate that replaces a rate of zero, because zero has no logarithm."""
STEP = 0.2
"""The share of the distance to the next estimate by which a round moves."""
ROUNDS = 5000
PRECISION = 1e-8
"""The iteration ends when write amplification changes by less than this share in a round."""


@dataclass(frozen=True)
class Skew:
    """The imbalance of writes between hot and cold pages."""

    space: float
    """Share of the pages that are hot."""
    share: float
    """Share of the writes that go to hot pages."""

    def rates(self, rho: float, b: int) -> tuple[float, float]:
        """Return the write rates of a hot page and of a cold page."""
        exported = rho * b
        return (
            self.share / (exported * self.space),
            (1 - self.share) / (exported * (1 - self.space)),
        )


def fifo(rho: float, b: int, skew: Skew) -> float:
    """Return the write amplification of first in, first out, with mixed blocks and large ``b``.

    Hot and cold pages are in the same blocks. While collection passes over the drive once, the host
    writes ``t`` pages for each block. Among pages that are written at rate ``r``, the share
    ``exp(-r t)`` of the copies is still valid when their block is collected. These copies are
    moved, and collection reaches them again. Therefore ``b = sum over hot and cold pages of (share
    of the writes) t / (1 - exp(-r t))``, and ``A = b / t`` (Desnoyers, ACM ToS 2014, for LRU with
    hot and cold data).
    """
    rates = skew.rates(rho, b)
    shares = (skew.share, 1 - skew.share)

    def copies(t: float) -> float:
        return sum(s * t / -math.expm1(-r * t) for s, r in zip(shares, rates, strict=True))

    return b / bisect(lambda t: copies(t) - b, 1e-9, float(b))


def random(rho: float, b: int, skew: Skew) -> float:
    """Return the write amplification of random victims, ``A = 1 / (1 - rho)``.

    The result is the same as without hot pages (Van Houdt, 2013). When its block is chosen, a copy
    of a page that is written at rate ``r`` is valid with the chance ``m / (m + r)``, where ``m`` is
    the rate at which a block is erased. The rates of copies to hot and to cold pages add up to ``1
    + m rho b`` for all rates ``r``.
    """
    del skew
    return random_victim(rho, b)


def d_choices(rho: float, b: int, skew: Skew, d: int) -> float:
    """Return the write amplification of d-choices by the mean field, with mixed blocks.

    Hot and cold pages are in the same blocks. The model is the model of Van Houdt (*Performance of
    garbage collection algorithms for flash-based solid state drives with hot/cold data*,
    Performance Evaluation 70, 2013) with one frontier. A block with ``i`` hot and ``j`` cold valid
    pages loses pages at the rates of these pages, and is chosen at a rate that depends only on ``i
    + j``. Its valid pages are moved to the next block, which the host then fills.

    Raises:
        ArithmeticError: The iteration does not converge, for example if ``d`` is far above 10.

    """
    hot, cold = skew.rates(rho, b)
    binomial = [_binomial(n, skew.share) for n in range(b + 1)]
    # first guess: the host alone fills the new blocks
    new = list(binomial[b])
    shares: list[list[float]] = []

    def blocks(chosen: list[float]) -> list[float]:
        shares[:] = _shares(b, new, chosen, (hot, cold))
        return [sum(shares[i][m - i] for i in range(m + 1)) for m in range(b + 1)]

    def chose(victims: list[float], levels: list[float]) -> None:
        following = [0.0] * (b + 1)
        for m, (victim, level) in enumerate(zip(victims, levels, strict=True)):
            if level == 0:
                continue
            for i in range(m + 1):
                weight = victim * shares[i][m - i] / level
                for more, chance in enumerate(binomial[b - m]):
                    following[i + more] += weight * chance
        new[:] = [old + STEP * (now - old) for old, now in zip(new, following, strict=True)]

    return _settled(rho, b, d, blocks, chose)


def d_choices_apart(rho: float, b: int, skew: Skew, d: int) -> float:
    """Return the write amplification if hot and cold pages are in different blocks (two streams).

    A block loses pages at the write rate of its pages, hot or cold. The victim may be a block of
    hot or of cold pages. The number of blocks of each kind follows from the number of pages that
    they must hold.

    Raises:
        ArithmeticError: The iteration does not converge.

    """
    parts = list(zip(skew.rates(rho, b), (skew.space, 1 - skew.space), strict=True))

    def blocks(chosen: list[float]) -> list[float]:
        levels = [0.0] * (b + 1)
        for rate, space in parts:
            own = [0.0] * b + [1 / (rate * b + chosen[b])]
            for i in range(b - 1, -1, -1):
                own[i] = rate * (i + 1) * own[i + 1] / (rate * i + chosen[i])
            scale = rho * b * space / sum(i * share for i, share in enumerate(own))
            levels = [all_ + scale * share for all_, share in zip(levels, own, strict=True)]
        total = sum(levels)
        return [level / total for level in levels]

    return _settled(rho, b, d, blocks, lambda victims, levels: None)


def _settled(
    rho: float,
    b: int,
    d: int,
    blocks: Callable[[list[float]], list[float]],
    chose: Callable[[list[float], list[float]], None],
) -> float:
    """Return the write amplification at which the shares of blocks and the choice rates agree.

    Args:
        rho: Utilisation.
        b: Number of pages in a block.
        d: Number of blocks that are drawn; the victim is the best of them.
        blocks: Function of the rate at which a block is chosen, for each number of valid pages. It
            returns the share of the blocks that have each number of valid pages.
        chose: Function that is called in each round with the chance that a victim has each number
            of valid pages, and with the shares from ``blocks``.

    """
    # first guess: victims are random
    chosen = [1 / (b * (1 - rho))] * (b + 1)
    before = 0.0
    for _ in range(ROUNDS):
        levels = blocks(chosen)
        victims = _victims(levels, d)
        erases = 1 / sum(v * (b - m) for m, v in enumerate(victims))
        chose(victims, levels)
        rates = [
            max(erases * v / level, NEVER) if level > 0 else c
            for v, level, c in zip(victims, levels, chosen, strict=True)
        ]
        chosen = [old * (now / old) ** STEP for old, now in zip(chosen, rates, strict=True)]
        amplification = b * erases
        if abs(amplification - before) < PRECISION * amplification:
            return amplification
        before = amplification
    raise ArithmeticError(f"d = {d}: the mean field does not settle in {ROUNDS} rounds")


def _binomial(n: int, p: float) -> list[float]:
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


def _victims(levels: list[float], d: int) -> list[float]:
    """Return the chance of each number of valid pages in the best of ``d`` blocks."""
    at_most, chances, before = 0.0, [], 0.0
    for level in levels:
        at_most = min(at_most + level, 1.0)
        best = -math.expm1(d * math.log1p(-at_most)) if at_most < 1 else 1.0
        chances.append(best - before)
        before = best
    return chances


def _shares(
    b: int, new: list[float], chosen: list[float], rates: tuple[float, float]
) -> list[list[float]]:
    """Return the share of the blocks with ``i`` hot and ``j`` cold valid pages."""
    hot, cold = rates
    shares = [[0.0] * (b + 1) for _ in range(b + 1)]
    for m in range(b, -1, -1):
        for i in range(m + 1):
            j = m - i
            if m == b:
                inflow = new[i]
            else:
                inflow = hot * (i + 1) * shares[i + 1][j] + cold * (j + 1) * shares[i][j + 1]
            shares[i][j] = inflow / (hot * i + cold * j + chosen[m])
    total = sum(map(sum, shares))
    return [[share / total for share in row] for row in shares]


def _models() -> dict[str, tuple[Callable[[float, int, Skew], float], list[str], bool]]:
    made: dict[str, tuple[Callable[[float, int, Skew], float], list[str], bool]] = {
        "fifo": (fifo, ["ftl.victim=fifo"], False),
        "random": (random, ["ftl.victim=random"], False),
    }
    for d in (2, 5, 10):
        settings = ["ftl.victim=d-choices", f"ftl.d={d}"]
        made[f"d = {d}"] = (partial(d_choices, d=d), settings, False)
        made[f"d = {d}, apart"] = (partial(d_choices_apart, d=d), settings, True)
    return made


MODELS = _models()
"""The model of each victim policy, the settings that simulate it, and a flag.

The flag is ``True`` if hot and cold pages are written to different blocks.
"""

APART_SPARE = 5
"""Number of blocks in addition to the blocks of the model, for hot and cold pages in two streams.

Four frontiers are half empty on average, and collection keeps three blocks free.
"""


def simulation(
    rho: float,
    b: int,
    skew: Skew,
    policy: str,
    *,
    blocks: int = 2000,
    drive_writes: int = 60,
) -> dict[str, Any]:
    """Return the arguments of :func:`flashatlas.run` that simulate the drive of a model.

    See :func:`flashatlas.statistics.theory.simulation`; here, the workload has hot pages at the
    lowest addresses. The run is longer, because a cold page must be written several times. If hot
    and cold pages are written to two streams, the classifier distinguishes them by their addresses.
    """
    _, settings, apart = MODELS[policy]
    if apart:
        known = ["ftl.streams=2", "ftl.classifier=address", f"ftl.hot_space={skew.space:g}"]
        settings = [*settings, *known, "ftl.idle_free=0"]
    options = theory.simulation(
        rho,
        b,
        settings,
        blocks=blocks,
        drive_writes=drive_writes,
        spare=APART_SPARE if apart else 1,
        gc_mode="dual" if apart else "single",
    )
    pages = int(rho * blocks * b)
    options["workload"] = (
        f"hotcold:requests={drive_writes * pages},size=2KiB,read=0,"
        f"hot_space={skew.space:g},hot_share={skew.share:g}"
    )
    return options
