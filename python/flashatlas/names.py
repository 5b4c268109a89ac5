"""Names in the registries of the core, and messages about unknown names."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from flashatlas import _core


def registries() -> dict[str, Any]:
    """Return all drives, schemes, victim policies, trace formats and so on, by kind.

    Each entry has a name, a summary and its parameters.
    """
    return json.loads(_core.registries())


def hint(name: str, names: Iterable[str]) -> str:
    """Return a hint that names the most similar of ``names``; empty if none is similar.

    Upper and lower case are not distinguished.
    """
    near = _core.nearest(name, list(names))
    return f"; did you mean `{near}`?" if near else ""


def _unknown(name: str, names: Iterable[str]) -> str:
    known = list(names)
    return f"`{name}` is not known{hint(name, known)} (allowed: {', '.join(known)})"


def unknown(what: str, name: str, names: Iterable[str]) -> _core.InputError:
    """Return the error about an unknown name; it shows the most similar name and all names."""
    return _core.InputError(f"{what} {_unknown(name, names)}")


def unknown_choice(option: str, name: str, names: Iterable[str]) -> _core.InputError:
    """Return the error about a value that is not among the choices of an option of a run."""
    return _core.about(option, _unknown(name, names))


def in_case(error: _core.InputError, label: str) -> _core.InputError:
    """Return ``error`` with the label of its case added to its text."""
    said = _core.InputError(f"{error} (in `{label}`)")
    for name, value in vars(error).items():
        setattr(said, name, value)
    if hasattr(error, "on_command_line"):
        said.on_command_line = f"{error.on_command_line} (in `{label}`)"
    return said
