"""Write amplification: models of garbage collection, compared with simulation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flashatlas.running.api import compare
from flashatlas.statistics import theory_hot_cold
from flashatlas.statistics.theory import MODELS, simulation, utilisation
from flashatlas.statistics.theory_hot_cold import Skew


@dataclass(frozen=True)
class Point:
    """A row of the table that compares theory with simulation."""

    policy: str
    rho: float
    b: int
    trim: float
    """Share of trims among the requests."""
    theory: float
    simulated: float

    @property
    def error(self) -> float:
        """Relative deviation of the simulation from the theory."""
        return self.simulated / self.theory - 1


def theory(
    rhos: Sequence[float] = (0.7, 0.8, 0.9),
    bs: Sequence[int] = (32, 64, 128),
    policies: Sequence[str] = tuple(MODELS),
    *,
    trims: Sequence[float] = (0.0,),
    blocks: int = 2000,
    drive_writes: int = 20,
    jobs: int | None = None,
    progress: Callable[[int, str, int, float | None], None] | None = None,
) -> list[Point]:
    """Compare each policy's simulation with its model, at each utilisation and block size."""
    grid = list(itertools.product(policies, rhos, bs, trims))
    cases: list[Any] = [
        simulation(rho, b, MODELS[policy][1], trim=trim, blocks=blocks, drive_writes=drive_writes)
        for policy, rho, b, trim in grid
    ]
    results = compare(cases, jobs=jobs, progress=progress)
    return [
        Point(policy, rho, b, trim, MODELS[policy][0](utilisation(rho, trim), b), result.waf or 0.0)
        for (policy, rho, b, trim), result in zip(grid, results, strict=True)
    ]


def hot_cold(
    skew: Skew,
    rhos: Sequence[float] = (0.7, 0.8, 0.9),
    bs: Sequence[int] = (32,),
    policies: Sequence[str] = tuple(theory_hot_cold.MODELS),
    *,
    blocks: int = 2000,
    drive_writes: int = 60,
    jobs: int | None = None,
    progress: Callable[[int, str, int, float | None], None] | None = None,
) -> list[Point]:
    """Compare each policy's simulation with its model if some pages get most of the writes."""
    grid = list(itertools.product(policies, rhos, bs))
    cases: list[Any] = [
        theory_hot_cold.simulation(rho, b, skew, policy, blocks=blocks, drive_writes=drive_writes)
        for policy, rho, b in grid
    ]
    results = compare(cases, jobs=jobs, progress=progress)
    return [
        Point(
            policy, rho, b, 0.0, theory_hot_cold.MODELS[policy][0](rho, b, skew), result.waf or 0.0
        )
        for (policy, rho, b), result in zip(grid, results, strict=True)
    ]
