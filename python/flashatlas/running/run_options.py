"""The options of a run, as the core declares them (``crates/sim/src/options``)."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flashatlas import _core
from flashatlas.names import unknown_choice


@dataclass(frozen=True)
class RunOption:
    """One option of a run."""

    name: str
    """The keyword argument; ``device_map`` is ``--device-map`` on the command line."""
    letter: str | None
    """The letter of its short form on the command line."""
    group: str
    """``reading``, ``workload`` or ``playing``."""
    title: str
    """The heading of its group."""
    kind: str
    """``file``, ``text``, ``count``, ``count-or``, ``number``, ``factor``, ``choice`` or
    ``flag``."""
    default: Any
    """The value if the option is not given; ``None`` if there is none."""
    metavar: str
    """The placeholder of its value in help texts."""
    doc: str
    """The help text."""
    least: int | None = None
    """The smallest count."""
    most: int | None = None
    """The largest count, if it is less than 64 bits allow."""
    choices: tuple[str, ...] = ()
    """The allowed words; a path follows those that end in ``:FILE``."""
    words: tuple[str, ...] = ()
    """The words that may stand in place of a count."""


@functools.cache
def run_options() -> dict[str, RunOption]:
    """Return every option, by name."""
    declared = json.loads(_core.run_options())
    for entry in declared:
        entry["choices"] = tuple(entry.get("choices", ()))
        entry["words"] = tuple(entry.get("words", ()))
    return {entry["name"]: RunOption(**entry) for entry in declared}


def of_groups(*groups: str) -> list[RunOption]:
    """Return the options of these groups, in the order of help texts."""
    return [option for option in run_options().values() if option.group in groups]


def chosen(option: RunOption, text: str) -> str | dict[str, str]:
    """Return a word of an option with choices, as the core takes it.

    Raises:
        InputError: The text is not among the words.

    """
    kind, colon, path = text.partition(":")
    if colon and path and f"{kind}:FILE" in option.choices:
        return {kind: path}
    if text in option.choices and ":" not in text:
        return text
    raise unknown_choice(option.name, text, option.choices)


def documentation(groups: Mapping[str, str]) -> str:
    """Return the options of ``groups`` (name and heading) as a list for a docstring."""
    lines = []
    for group, heading in groups.items():
        lines += ["", f"{heading}:", ""]
        lines += [f"- ``{o.name}``: {o.doc.replace('`', '``')}" for o in of_groups(group)]
    return "\n".join(lines)


KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "text": ((str,), "a text"),
    "choice": ((str,), "one of its words"),
    "count": ((int,), "a whole number"),
    "count-or": ((int, str), "a whole number or a text"),
    "number": ((int,), "a whole number"),
    "factor": ((int, float), "a number"),
    "flag": ((bool,), "True or False"),
}
"""Types that an option of each kind takes, and their names in messages."""


def checked(option: RunOption, given: Any) -> Any:
    """Return the value of an option that is not a file, as the core takes it.

    Raises:
        InputError: The value has another type, or is out of range.

    """
    name = option.name
    if given is None:
        if option.default is not None and name != "mode":
            raise _core.about(name, f"None; leave it out for its default {option.default!r}")
        return None
    types, expected = KINDS[option.kind]
    if not isinstance(given, types) or (isinstance(given, bool) and option.kind != "flag"):
        raise of_wrong_type(name, given, expected)
    if isinstance(given, int) and option.kind in ("count", "count-or", "number"):
        counts = option.kind != "number"
        lowest = (option.least or 0) if counts else -(2**63)
        most = (option.most or 2**64 - 1) if counts else 2**63 - 1
        if not lowest <= given <= most:
            raise _core.about(name, f"{given}, expected {lowest} to {most}")
    if option.kind == "factor" and not (math.isfinite(given) and given > 0):
        raise _core.about(name, f"{given}, expected a number above 0")
    return chosen(option, str(given)) if option.kind == "choice" else given


def of_wrong_type(name: str, given: Any, expected: str) -> _core.InputError:
    """Return the error about a value of the wrong type."""
    return _core.about(name, f"{given!r} is of type {type(given).__name__}, expected {expected}")
