"""Signs of the runs in a report: each run has a colour and a mark (a dash and a shape).

Runs that differ in exactly two factors have a colour for each value of the first and a mark for
each value of the second; other runs have their own colour and mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flashatlas.drawing.points import WITHOUT, words
from flashatlas.results.frame import Frame
from flashatlas.results.result import Result
from flashatlas.results.runs import frame

COLOURS = 8
MARKS = 5


@dataclass(frozen=True)
class Level:
    """A value of a factor, and the runs that have it."""

    name: str
    runs: tuple[int, ...]


@dataclass(frozen=True)
class Looks:
    """Colour and mark of each run, by number."""

    colours: tuple[int, ...]
    marks: tuple[int, ...]
    factors: tuple[tuple[str, tuple[Level, ...]], ...] = ()
    """The factor of the colours and the factor of the marks, with their values in order.

    It is empty if runs have their own colours and marks.
    """


def looks(results: Sequence[Result]) -> Looks:
    """Return the looks of these runs."""
    own = Looks(tuple(range(len(results))), tuple(range(len(results))))
    if len(results) < 4:
        return own
    runs = frame(results)
    if len(runs.factors) != 2:
        return own
    levels = [_levels(runs, name) for name in runs.factors]
    # the factor with more values gets the colours, because there are more colours than marks
    (colour, coloured), (mark, marked) = sorted(
        zip(runs.factors, levels, strict=True), key=lambda of: len(of[1]), reverse=True
    )
    place = [_places(found, len(results)) for found in (coloured, marked)]
    apart = len(set(zip(*place, strict=True))) == len(results)
    if not apart or len(coloured) > COLOURS or len(marked) > MARKS:
        return own
    return Looks(tuple(place[0]), tuple(place[1]), ((colour, coloured), (mark, marked)))


def _levels(runs: Frame, name: str) -> tuple[Level, ...]:
    """Return the values of a factor in order; a missing value comes last."""
    values, called = runs.column(name), words(runs, name)
    named = [*called.items(), *([(None, WITHOUT)] if None in values else [])]
    return tuple(
        Level(word, tuple(i for i, own in enumerate(values) if own == value))
        for value, word in named
    )


def _places(levels: Sequence[Level], runs: int) -> list[int]:
    """Return the number of each run's level."""
    return [next(i for i, level in enumerate(levels) if run in level.runs) for run in range(runs)]
