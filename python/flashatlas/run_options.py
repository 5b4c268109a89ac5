"""The options of a run, as the core declares them (``crates/sim/src/options.rs``)."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flashatlas import _core


@dataclass(frozen=True)
class RunOption:
    """One option of a run."""

    name: str
    """The keyword argument; ``device_map`` is ``--device-map`` on the command line."""
    letter: str | None
    """Its letter on the command line."""
    group: str
    """``reading``, ``workload`` or ``playing``."""
    title: str
    """The heading of its group."""
    kind: str
    """``file``, ``text``, ``count``, ``number``, ``factor``, ``choice`` or ``flag``."""
    default: Any
    """``None`` where the option is not given."""
    metavar: str
    """What stands for its value in help texts."""
    doc: str
    """What it means."""
    least: int | None = None
    """The smallest count."""
    choices: tuple[str, ...] = ()
    """The words; those that end in ``:FILE`` are followed by a path."""


@functools.cache
def run_options() -> dict[str, RunOption]:
    """Every option, by name."""
    declared = json.loads(_core.run_options())
    for entry in declared:
        entry["choices"] = tuple(entry.get("choices", ()))
    return {entry["name"]: RunOption(**entry) for entry in declared}


def of_groups(*groups: str) -> list[RunOption]:
    """The options of these groups, in the order of help texts."""
    return [option for option in run_options().values() if option.group in groups]


def chosen(option: RunOption, text: str) -> str | dict[str, str]:
    """A word of an option with choices, as the core takes it.

    Raises:
        InputError: It is none of the words.

    """
    kind, colon, path = text.partition(":")
    if colon and path and f"{kind}:FILE" in option.choices:
        return {kind: path}
    if text in option.choices and ":" not in text:
        return text
    allowed = ", ".join(option.choices)
    raise _core.InputError(f"{option.name} `{text}` is not known (allowed: {allowed})")


def documentation(groups: Mapping[str, str]) -> str:
    """The options of ``groups`` (name and heading) as a list for a docstring."""
    lines = []
    for group, heading in groups.items():
        lines += ["", f"{heading}:", ""]
        lines += [f"- ``{o.name}``: {o.doc.replace('`', '``')}" for o in of_groups(group)]
    return "\n".join(lines)
