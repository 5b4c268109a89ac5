"""What runs leave out or simplify: each thing once, with the runs that it concerns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from flashatlas.result import Result

_NUMBER = re.compile(r"^(\d+)(?= )")


def by_note(results: Sequence[Result]) -> dict[str, list[int]]:
    """Notes of the run records, and for each the places of the runs that have it.

    Notes that differ only in the number with which they begin are one, with the smallest and the
    largest: ``60 to 189 units were still in the write cache …``.

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
    return {_said(key, numbers.get(key)): concerned for key, concerned in runs.items()}


def _said(key: str, numbers: list[int] | None) -> str:
    if numbers is None:
        return key
    least, most = min(numbers), max(numbers)
    return key.replace("#", str(least) if least == most else f"{least} to {most}", 1)
