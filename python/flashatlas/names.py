"""What has a name: the registries of the core, and what to say of a name that is in none."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from flashatlas import _core


def registries() -> dict[str, Any]:
    """Drives, schemes, victims, formats and whatever else has a name.

    Each with its summary and parameters.
    """
    return json.loads(_core.registries())


def hint(name: str, names: Iterable[str]) -> str:
    """Return which of the names that there are may have been meant; empty if none is near.

    Upper and lower case are alike.
    """
    near = _core.nearest(name, list(names))
    return f"; did you mean `{near}`?" if near else ""


def _unknown(name: str, names: Iterable[str]) -> str:
    known = list(names)
    return f"`{name}` is not known{hint(name, known)} (allowed: {', '.join(known)})"


def unknown(what: str, name: str, names: Iterable[str]) -> _core.InputError:
    """Return the error that nothing of this kind has a name; it lists the nearest and all."""
    return _core.InputError(f"{what} {_unknown(name, names)}")


def unknown_choice(option: str, name: str, names: Iterable[str]) -> _core.InputError:
    """Return the error that an option of a run has no such choice."""
    return _core.about(option, _unknown(name, names))


def in_case(error: _core.InputError, label: str) -> _core.InputError:
    """Return an error as one of the case that is called so."""
    said = _core.InputError(f"{error} (in `{label}`)")
    for name, value in vars(error).items():
        setattr(said, name, value)
    if hasattr(error, "on_command_line"):
        said.on_command_line = f"{error.on_command_line} (in `{label}`)"
    return said
