"""The colours and marks that distinguish the runs of a report."""

from __future__ import annotations

import itertools

from flashatlas.report.looks import looks
from flashatlas.report.palette import Runs
from report_fakes import fake


def of(*values: dict[str, object], **more: object) -> list:
    return [fake(str(number), params=params, **more) for number, params in enumerate(values)]


def test_two_factors_have_a_colour_and_a_mark_each():
    victims, caches = ("greedy", "fifo", "random"), (8192, 32768)
    grid = [
        {"map.cache_bytes": cache, "ftl.victim": victim}
        for cache, victim in itertools.product(caches, victims)
    ]
    found = looks(of(*grid))
    # three victims with each of two caches: the victim has more values, so it gets the colours
    assert found.colours == (0, 1, 2, 0, 1, 2)
    assert found.marks == (0, 0, 0, 1, 1, 1)
    (colour, coloured), (mark, marked) = found.factors
    assert (colour, [(level.name, level.runs) for level in coloured]) == (
        "ftl.victim",
        [("greedy", (0, 3)), ("fifo", (1, 4)), ("random", (2, 5))],
    )
    assert (mark, [(level.name, level.runs) for level in marked]) == (
        "map.cache_bytes",
        [("8 KiB", (0, 1, 2)), ("32 KiB", (3, 4, 5))],
    )
    key = Runs(of(*grid)).key()
    assert 'data-run="0,3" data-colour="0"' in key and 'data-run="3,4,5" aria' in key


def test_other_runs_have_looks_of_their_own():
    own = (0, 1, 2, 3)
    one_factor = [{"ftl.victim": victim} for victim in ("greedy", "fifo", "random", "windowed")]
    not_apart = [{"ftl.victim": v, "map.cache_bytes": c} for v, c in ("ab", "ab", "cd", "cb")]
    three = [{"a.x": x, "a.y": y, "a.z": z} for x, y, z in ("aab", "aba", "baa", "bbb")]
    for params in (one_factor, not_apart, three):
        found = looks(of(*params))
        assert (found.colours, found.marks, found.factors) == (own, own, ())
    assert looks(of(*one_factor[:1])).colours == (0,)
