"""Objectives of a search: numbers to minimise or maximise, and the limits of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashatlas._core import InputError
from flashatlas.names import hint

SAMPLERS = ("tpe", "nsga2", "random")

KEYS = ("minimise", "maximise", "trials", "sampler", "seed", "batch", "short")
"""Keys of ``[search]``."""

TRIALS, BATCH = 100, 8


@dataclass(frozen=True)
class Objective:
    """A number of a run, and the direction that is better."""

    number: str
    higher: bool = False

    def cost(self, value: float) -> float:
        """Return a value with a sign such that less is better."""
        return -value if self.higher else value


@dataclass(frozen=True)
class Search:
    """The objectives of a search, and its method."""

    objectives: tuple[Objective, ...]
    trials: int = TRIALS
    """The largest number of configurations that are tried."""
    sampler: str = SAMPLERS[0]
    seed: int = 1
    batch: int = BATCH
    """Number of trials in a batch; the sampler gets the results when the whole batch is done.

    The number does not depend on the workers, so that a search with one seed tries the same
    configurations everywhere.
    """
    short: int = 0
    """Requests of the short run that decides if a trial gets a whole run; with 0, all get one."""


def search_of(table: Mapping[str, Any]) -> Search:
    """Return a search from its definition in a study.

    Raises:
        InputError: A key is unknown, or a value is impossible; the message begins with the key.

    """
    for key in table:
        if key not in KEYS:
            raise InputError(
                f"search.{key}: there is no such key of a search{hint(key, KEYS)} (allowed: "
                f"{', '.join(KEYS)})"
            )
    objectives = [
        Objective(name, higher)
        for key, higher in (("minimise", False), ("maximise", True))
        for name in _names(key, table.get(key, ()))
    ]
    if not objectives:
        raise InputError(
            'search: there is no objective; give one such as minimise = ["waf"], maximise = '
            '["iops"]'
        )
    numbers = [one.number for one in objectives]
    for name in numbers:
        if numbers.count(name) > 1:
            raise InputError(f"search: `{name}` is given twice as an objective")
    sampler = table.get("sampler", SAMPLERS[0])
    if sampler not in SAMPLERS:
        near = hint(str(sampler), SAMPLERS)
        raise InputError(
            f"search.sampler: `{sampler}` is not known{near} (allowed: {', '.join(SAMPLERS)})"
        )
    return Search(
        objectives=tuple(objectives),
        trials=_count("trials", table.get("trials", TRIALS), 1),
        sampler=sampler,
        seed=_count("seed", table.get("seed", 1), 0),
        batch=_count("batch", table.get("batch", BATCH), 1),
        short=_count("short", table.get("short", 0), 0),
    )


def _names(key: str, given: Any) -> Sequence[str]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputError(f"search.{key}: {given!r} is not a list of names of numbers of a run")
    for name in given:
        if not isinstance(name, str):
            raise InputError(f"search.{key}: {name!r} is not the name of a number of a run")
    return given


def _count(key: str, given: Any, least: int) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise InputError(f"search.{key}: {given!r} is not a count of at least {least}")
    return given
