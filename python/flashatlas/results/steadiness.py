"""Texts about runs that were not steady, for the notes beside tables of results.

``crates/sim/src/steadiness.rs`` judges a single run, and writes the verdict into its record
(``steady``, ``steadiness.reasons``). This module adds texts that need a comparison of several runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flashatlas.results.notes import declared, texts
from flashatlas.results.result import Result

if TYPE_CHECKING:
    from flashatlas.results.frame import Frame


def unsteady(results: Sequence[Result]) -> list[tuple[Result, list[str]]]:
    """Return the runs that were not steady, each with its reasons."""
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
    """Return ``True`` if some of the runs that program pages erase blocks, and others erase none.

    A run without erases only uses up free blocks. Its drive does not have to collect yet, so its
    numbers cannot be compared with the numbers of a drive that collects.
    """
    found = [result.record.get("steadiness", {}) for result in results]
    erased = [each["erased_pages"] > 0 for each in found if each.get("programmed_pages")]
    return any(erased) and not all(erased)


UNLIKE = (
    "some of the runs erase blocks and others only use up free ones: their numbers cannot be "
    "compared"
)
"""The message about runs for which :func:`compares_unlike` is true."""

MOVES = "{} numbers would move with a longer run"
"""Meaning of a run that is not steady; ``{}`` is a possessive such as ``Their``."""


def advice(results: Sequence[Result]) -> str:
    """Return advice that would make unsteady runs steady; each piece of advice occurs once."""
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
"""Advice by code for runs that already began with ``--precondition steady``."""


OF_OLD_RECORDS = "Play more requests, or begin with `--precondition steady`."
"""The advice for records of an earlier version. Reasons in such records have no code."""
