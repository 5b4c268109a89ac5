"""The options of a run, which the core declares (``crates/sim/src/options``)."""

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
    """The name of the keyword argument; ``device_map`` is ``--device-map`` on the command line."""
    letter: str | None
    """The letter of the short form on the command line."""
    group: str
    """``reading``, ``workload`` or ``playing``."""
    title: str
    """The heading of its group."""
    kind: str
    """``file``, ``text``, ``count``, ``count-or``, ``number``, ``factor``, ``choice`` or
    ``flag``."""
    default: Any
    """The value of an option that is not given; ``None`` if it has no default."""
    metavar: str
    """The placeholder of the value in help texts."""
    doc: str
    """The help text."""
    least: int | None = None
    """The smallest count."""
    most: int | None = None
    """The largest count; ``None`` for the largest count of 64 bits."""
    choices: tuple[str, ...] = ()
    """The allowed words; in a word that ends in ``:FILE``, a path replaces ``FILE``."""
    words: tuple[str, ...] = ()
    """The words that are allowed instead of a count."""


@functools.cache
def run_options() -> dict[str, RunOption]:
    """Return every option, by name."""
    declared = json.loads(_core.run_options())
    for entry in declared:
        entry["choices"] = tuple(entry.get("choices", ()))
        entry["words"] = tuple(entry.get("words", ()))
    return {entry["name"]: RunOption(**entry) for entry in declared}


def of_groups(*groups: str) -> list[RunOption]:
    """Return the options of these groups, in the order of the help texts."""
    return [option for option in run_options().values() if option.group in groups]


def chosen(option: RunOption, text: str) -> str | dict[str, str]:
    """Return the choice that a text names, in the form that the core expects.

    Raises:
        InputError: The text is not among the choices of the option.

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
    "choice": ((str,), "one of the words of the option"),
    "count": ((int,), "a whole number"),
    "count-or": ((int, str), "a whole number or a text"),
    "number": ((int,), "a whole number"),
    "factor": ((int, float), "a number"),
    "flag": ((bool,), "True or False"),
}
"""For each kind of option, the types of its values and their name in messages."""


def checked(option: RunOption, given: Any) -> Any:
    """Return the value of an option that is not a file, in the form that the core expects.

    Raises:
        InputError: The value has another type, or is out of range.

    """
    name = option.name
    if given is None:
        if option.default is not None and name != "mode":
            raise _core.about(
                name,
                f"the value is None; leave the option out to use its default {option.default!r}",
            )
        return None
    types, expected = KINDS[option.kind]
    if not isinstance(given, types) or (isinstance(given, bool) and option.kind != "flag"):
        raise of_wrong_type(name, given, expected)
    if isinstance(given, int) and option.kind in ("count", "count-or", "number"):
        counts = option.kind != "number"
        lowest = (option.least or 0) if counts else -(2**63)
        most = (option.most or 2**64 - 1) if counts else 2**63 - 1
        if not lowest <= given <= most:
            raise _core.about(name, f"{given} is out of range: give {lowest} to {most}")
    if option.kind == "factor" and not (math.isfinite(given) and given > 0):
        raise _core.about(name, f"{given} is not a number above 0")
    return chosen(option, str(given)) if option.kind == "choice" else given


def of_wrong_type(name: str, given: Any, expected: str) -> _core.InputError:
    """Return the error about a value of the wrong type."""
    return _core.about(name, f"{given!r} is of type {type(given).__name__}, but must be {expected}")
