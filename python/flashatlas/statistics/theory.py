"""Models of write amplification for uniform random writes of single pages without trims.

``rho`` is the share of the physical pages that the drive exports, and ``b`` is the number of pages
in a block. All values are computed from the models; no value is copied from a paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def bisect(f: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of an increasing function, to the precision of a double."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if f(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def lambert_w0(x: float) -> float:
    """Return the principal branch of Lambert's W for ``-1/e <= x <= 0``.

    The result is the number ``w >= -1`` for which ``w * exp(w) = x``.
    """
    return bisect(lambda w: w * math.exp(w) - x, -1.0, 0.0)


def fifo(rho: float, b: int) -> float:
    """Return the write amplification of first in, first out; it does not depend on ``b``.

    ``A = a / (a + W0(-a exp(-a)))`` with ``a = 1 / rho`` (Desnoyers 2012).
    """
    del b
    a = 1 / rho
    return a / (a + lambert_w0(-a * math.exp(-a)))


def random_victim(rho: float, b: int) -> float:
    """Return the write amplification of uniformly random victims: ``A = 1 / (1 - rho)``."""
    del b
    return 1 / (1 - rho)


def greedy(rho: float, b: int) -> float:
    """Return the write amplification of greedy, ``A = b / (b - (X0 - 1))``, for any ``b``."""
    a = 1 / rho
    c = (1 + 1 / (2 * b)) * a
    x0 = 0.5 - (b / a) * lambert_w0(-c * math.exp(-c))
    return b / (b - (x0 - 1))


def d_choices(rho: float, b: int, d: int) -> float:
    """Return the write amplification of d-choices by the mean field (Van Houdt, SIGMETRICS 2013).

    ``s_i`` is the share of blocks with at most ``i`` valid pages, and ``c_i = 1 - (1 - s_i)^d`` is
    the chance that the victim has at most ``i`` valid pages. The balance across level ``i`` is ``(E
    / (rho b)) (i + 1) (s_{i+1} - s_i) = c_i``. ``E`` is the mean number of invalid pages of a
    victim. It is chosen so that the mean number of valid pages in a block is ``rho b``.
    """

    def shares(e: float) -> list[float]:
        s = [0.0] * (b + 1)
        s[b] = 1.0
        for i in range(b - 1, -1, -1):
            rate = e / (rho * b) * (i + 1)

            def imbalance(x: float, rate: float = rate, upper: float = s[i + 1]) -> float:
                return (1 - (1 - x) ** d) - rate * (upper - x)

            s[i] = bisect(imbalance, 0.0, s[i + 1])
        return s

    def shortfall(e: float) -> float:
        # the mean number of valid pages is the sum of P(more than i) = 1 - s_i; it falls as e grows
        return rho * b - sum(1 - x for x in shares(e)[:b])

    return b / bisect(shortfall, 1e-9, float(b))


MODELS: dict[str, tuple[Callable[[float, int], float], list[str]]] = {
    "greedy": (greedy, ["ftl.victim=greedy"]),
    "fifo": (fifo, ["ftl.victim=fifo"]),
    "random": (random_victim, ["ftl.victim=random"]),
    "d = 2": (lambda rho, b: d_choices(rho, b, 2), ["ftl.victim=d-choices", "ftl.d=2"]),
    "d = 5": (lambda rho, b: d_choices(rho, b, 5), ["ftl.victim=d-choices", "ftl.d=5"]),
    "d = 10": (lambda rho, b: d_choices(rho, b, 10), ["ftl.victim=d-choices", "ftl.d=10"]),
}
"""The model of each victim policy, and the settings that simulate it."""


def utilisation(rho: float, trim: float) -> float:
    """Return the utilisation of a drive if a share ``trim`` of its requests are trims.

    Every page is equally likely to get a request, whether it has data or not. A page has data if
    its last request was a write, with the probability 1 - trim. The models are valid with this
    smaller utilisation.
    """
    return rho * (1 - trim)


def simulation(
    rho: float,
    b: int,
    settings: list[str],
    *,
    trim: float = 0.0,
    blocks: int = 2000,
    drive_writes: int = 20,
    spare: int = 1,
    gc_mode: str = "single",
) -> dict[str, Any]:
    """Return the arguments of :func:`flashatlas.run` that simulate the drive of the models.

    A share ``trim`` of the requests are trims.

    The second half of the requests is measured.

    The drive has one frontier, one lane, no cache, no times, and one reserved block in addition to
    the ``blocks`` of the model. With ``gc_mode="dual"`` it has more frontiers, and needs more
    ``spare`` blocks.
    """
    pages = int(rho * blocks * b)
    shape = [
        f"drive.{key}"
        for key in (
            f"blocks={blocks + spare}",
            f"pages={b}",
            "channels=1",
            "ways=1",
            f"logical_pages={pages}",
        )
    ]
    return {
        "drive": "tiny",
        "set": [*shape, f"ftl.gc_mode={gc_mode}", "cache.mode=write-through", *settings],
        "workload": f"uniform:requests={drive_writes * pages},size=2KiB,read=0,trim={trim:g}",
        "mode": "untimed",
        "precondition": "fill",
        "warmup": drive_writes * pages // 2,
    }
