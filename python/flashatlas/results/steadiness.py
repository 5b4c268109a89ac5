"""Runs that were not steady, and the reasons, for the notes beside tables of results.

The criterion for one run is in ``crates/sim/src/steadiness.rs``; the record has its result
(``steady``, ``steadiness.reasons``). This module adds the facts that only several runs show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flashatlas.results.notes import declared, texts
from flashatlas.results.result import Result

if TYPE_CHECKING:
    from flashatlas.results.frame import Frame


def unsteady(results: Sequence[Result]) -> list[tuple[Result, list[str]]]:
    """Return the runs whose numbers would move if they were longer, each with its reasons."""
    return [
        (result, texts(result.record["steadiness"]["reasons"]))
        for result in results
        if result.record.get("steady") is False
    ]


def of_frame(runs: Frame) -> str:
    """Return a sentence that counts the runs that were not steady; empty if there are none."""
    count = runs.steady().count(False)
    total = len(runs) - runs.failures
    said = []
    if count:
        were = "was" if count == 1 else "were"
        said.append(f"Unsteady: {count} of {total} runs {were} not steady: {MOVES.format('their')}")
    said.append(runs.said_of_worn_out())
    return "\n".join(filter(None, said))


def compares_unlike(results: Sequence[Result]) -> bool:
    """Return ``True`` if some runs erase what they program and others erase nothing.

    The others still use up free blocks: the comparison is between a drive that collects and one
    that does not yet have to.
    """
    found = [result.record.get("steadiness", {}) for result in results]
    erased = [each["erased_pages"] > 0 for each in found if each.get("programmed_pages")]
    return any(erased) and not all(erased)


UNLIKE = (
    "some of the runs erase blocks and others only use up free ones: their numbers cannot be "
    "compared"
)
"""The message about such runs."""

MOVES = "{} numbers would move with a longer run"
"""The meaning of an unsteady run, with a place for its pronoun."""


def advice(results: Sequence[Result]) -> str:
    """Return advice that would make these unsteady runs steady, each reason's advice once."""
    known = []
    for result in results:
        begun = result.record["config"].get("precondition") == "steady"
        for reason in result.record["steadiness"]["reasons"]:
            if (code := reason["code"]) in declared():
                advised = declared()[code]["advice"]
                known.append(ONCE_PRECONDITIONED.get(code, advised) if begun else advised)
    return " ".join(dict.fromkeys(known)) or OF_OLD_RECORDS


ONCE_PRECONDITIONED = {
    "free-blocks-change": "Play more requests, until the drive erases as much as it programs."
}
"""Advice for runs that began with ``--precondition steady`` already, by code."""


OF_OLD_RECORDS = "Play more requests, or begin with `--precondition steady`."
"""The advice if a record names no reason by code."""
