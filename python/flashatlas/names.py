"""Names in the registries of the core, and messages about unknown names."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from flashatlas import _core


def registries() -> dict[str, Any]:
    """Return everything that has a name: drives, schemes, victims, formats and so on.

    Each entry has its summary and parameters.
    """
    return json.loads(_core.registries())


def hint(name: str, names: Iterable[str]) -> str:
    """Return a hint to the nearest name that exists; empty if no name is near.

    Upper and lower case are not distinguished.
    """
    near = _core.nearest(name, list(names))
    return f"; did you mean `{near}`?" if near else ""


def _unknown(name: str, names: Iterable[str]) -> str:
    known = list(names)
    return f"`{name}` is not known{hint(name, known)} (allowed: {', '.join(known)})"


def unknown(what: str, name: str, names: Iterable[str]) -> _core.InputError:
    """Return the error about an unknown name of a kind; it lists the nearest name and all names."""
    return _core.InputError(f"{what} {_unknown(name, names)}")


def unknown_choice(option: str, name: str, names: Iterable[str]) -> _core.InputError:
    """Return the error about a choice that an option of a run does not have."""
    return _core.about(option, _unknown(name, names))


def in_case(error: _core.InputError, label: str) -> _core.InputError:
    """Return an error with the label of the case in which it happened."""
    said = _core.InputError(f"{error} (in `{label}`)")
    for name, value in vars(error).items():
        setattr(said, name, value)
    if hasattr(error, "on_command_line"):
        said.on_command_line = f"{error.on_command_line} (in `{label}`)"
    return said
