"""Which runs were no steady state, and why: what a table of results must say beside its numbers.

The criterion of one run is in ``crates/sim/src/steadiness.rs``; the record has its result
(``steady``, ``steadiness.reasons``). Here is what only shows in several runs side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flashatlas.notes import declared, texts
from flashatlas.result import Result

if TYPE_CHECKING:
    from flashatlas.frame import Frame


def unsteady(results: Sequence[Result]) -> list[tuple[Result, list[str]]]:
    """The runs whose numbers would move if they were longer, each with its reasons."""
    return [
        (result, texts(result.record["steadiness"]["reasons"]))
        for result in results
        if result.record.get("steady") is False
    ]


def of_frame(runs: Frame) -> str:
    """Return how many of the runs with results were not steady, as a sentence; empty if none."""
    count = runs.steady().count(False)
    total = len(runs) - runs.failures
    said = []
    if count:
        were = "was" if count == 1 else "were"
        said.append(f"Unsteady: {count} of {total} runs {were} not steady: {MOVES.format('their')}")
    if runs.worn_out:
        from flashatlas.frame import of_the_worn_out  # noqa: PLC0415  (Arrow)

        said.append(of_the_worn_out(runs.worn_out, total))
    return "\n".join(said)


def compares_unlike(results: Sequence[Result]) -> bool:
    """Whether some runs erase what they program and others erase nothing.

    The others still live on free blocks: the comparison is between a drive that collects and one
    that does not have to yet.
    """
    found = [result.record.get("steadiness", {}) for result in results]
    erased = [each["erased_pages"] > 0 for each in found if each.get("programmed_pages")]
    return any(erased) and not all(erased)


UNLIKE = (
    "some of the runs erase blocks and others only use up free ones: their numbers cannot be "
    "compared"
)
"""What is said then."""

MOVES = "{} numbers would move with a longer run"
"""What an unsteady run means, with its pronoun."""


def advice(results: Sequence[Result]) -> str:
    """Return what would make these unsteady runs steady: the advice of each reason, once."""
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
"""What is advised instead where ``--precondition steady`` was given already, by code."""


OF_OLD_RECORDS = "Play more requests, or begin with `--precondition steady`."
"""What is advised where a record names no reason by code."""
