"""Notes of runs: simplifications and doubts, each listed once with the runs that have it.

A note is ``{code, text, values}``. The core declares each code with a rank and advice. Notes with a
code are compared by the code, never by their texts.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from flashatlas import _core
from flashatlas.record import Note
from flashatlas.results.result import Result

ALARM = 9
"""The highest rank of the notes that are shown before the numbers of a run."""

MIDDLE = 50
"""The rank of notes that parts outside the project declare."""

NO_CODE = 255
"""The rank of notes without a code. Records of an earlier version have such notes."""


@functools.cache
def declared() -> dict[str, dict[str, Any]]:
    """Return the rank, text and advice of each note that the project declares, by code."""
    return {note["code"]: note for note in json.loads(_core.notes())}


def note(code: str, **values: str | float) -> Note:
    """Return a note of this code with its values.

    Raises:
        KeyError: The note is not declared.
        InputError: A value that the text names is missing.

    """
    text = _core.note_text(declared()[code]["text"], json.dumps(values))
    text = code if os.environ.get("FLASHATLAS_NOTES") == "codes" else text
    return {"code": code, "text": text, "values": dict(values)}


def rank(code: str | None) -> int:
    """Return the rank of a code; notes with lower ranks are shown earlier."""
    return NO_CODE if code is None else declared().get(code, {"rank": MIDDLE})["rank"]


def by_note(results: Sequence[Result]) -> dict[str, list[int]]:
    """Return, for each note of some runs, the indices of the runs that have the note.

    The keys are the texts of the notes that :func:`gathered` returns.
    """
    given = [result.record.get("approximations", []) for result in results]
    return {text: runs for _, text, runs in gathered(given)}


def gathered(given: Sequence[Sequence[Note]]) -> list[tuple[str | None, str, list[int]]]:
    """Return the notes of runs: code, text, and the indices of the runs that have the note.

    Notes that differ only in their numbers become one note with the smallest and the largest
    number: ``60 to 189 units were still in the write cache …``. The most important note comes
    first.

    Args:
        given: The notes of each run.

    """
    found: dict[tuple[Any, ...], list[Note]] = {}
    runs: dict[tuple[Any, ...], list[int]] = {}
    for i, notes in enumerate(given):
        for each in notes:
            key = _kind(each)
            found.setdefault(key, []).append(each)
            runs.setdefault(key, []).append(i)
    ranked = sorted(found, key=lambda key: rank(found[key][0]["code"]))
    return [(found[key][0]["code"], _said(found[key]), runs[key]) for key in ranked]


def alarms(results: Sequence[Result]) -> list[str]:
    """Return the notes that make numbers doubtful; they are shown before the numbers."""
    found = []
    for result in results:
        for each in result.record.get("approximations", []):
            if rank(each["code"]) <= ALARM:
                whose = f"{result.name}: " if len(results) > 1 else ""
                found.append(f"{whose}{each['text']} ({declared()[each['code']]['advice']})")
    return found


def _kind(note: Note) -> tuple[Any, ...]:
    """Return a key that is equal for notes that differ only in their numbers."""
    if note["code"] not in declared() or note["text"] == note["code"]:
        return (note["code"], note["text"])
    words = [(k, v) for k, v in note["values"].items() if isinstance(v, str)]
    return (note["code"], *note["values"], *words)


def _said(notes: Sequence[Note]) -> str:
    """Return one text for notes that differ only in their numbers."""
    first = notes[0]
    if all(each["text"] == first["text"] for each in notes):
        return first["text"]
    values: dict[str, str | float] = {}
    for name, value in first["values"].items():
        found = [each["values"][name] for each in notes]
        least, most = min(found), max(found)
        values[name] = value if least == most else f"{least} to {most}"
    return _core.note_text(declared()[str(first["code"])]["text"], json.dumps(values))


def texts(notes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the texts of notes."""
    return [note["text"] for note in notes]
