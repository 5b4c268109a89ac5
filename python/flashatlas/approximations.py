"""What runs leave out or simplify: each thing once, with the runs that it concerns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from flashatlas.result import Result

FIRST = (
    "it stood still:",
    "had never been written",
    "untimed:",
    "volatile",
    "times of the trace are ignored",
    "it starts unaged",
    "no random number was drawn",
    "extents that the trace touches were packed",
)
"""Words of what changes numbers most, or what they may be compared with: it is said first."""

LAST = (
    "spare area's transfer",
    "changes of the map in memory take no time",
    "still in the write cache at the end",
)
"""Words of what nearly every run leaves out, or what is small: it is said last."""

_NUMBER = re.compile(r"^(\d+)(?= )")


def by_note(results: Sequence[Result]) -> dict[str, list[int]]:
    """Notes of the run records, and for each the places of the runs that have it.

    Notes that differ only in the number with which they begin are one, with the smallest and the
    largest: ``60 to 189 units were still in the write cache …``. What matters most comes first.
    """
    runs: dict[str, list[int]] = {}
    numbers: dict[str, list[int]] = {}
    for i, result in enumerate(results):
        for note in map(str, result.record.get("approximations", [])):
            begins = _NUMBER.match(note)
            key = _NUMBER.sub("#", note)
            runs.setdefault(key, []).append(i)
            if begins:
                numbers.setdefault(key, []).append(int(begins[1]))
    ranked = sorted(runs.items(), key=lambda entry: _rank(entry[0]))
    return {_said(key, numbers.get(key)): concerned for key, concerned in ranked}


def _rank(note: str) -> int:
    """The place of a note; between those that come first and last they keep their order."""
    for at, words in enumerate(FIRST):
        if words in note:
            return at
    later = (at for at, words in enumerate(LAST, len(FIRST) + 1) if words in note)
    return next(later, len(FIRST))


def _said(key: str, numbers: list[int] | None) -> str:
    if numbers is None:
        return key
    least, most = min(numbers), max(numbers)
    return key.replace("#", str(least) if least == most else f"{least} to {most}", 1)
