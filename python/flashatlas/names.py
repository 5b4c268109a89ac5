"""What has a name: the registries of the core, and what to say of a name that is in none."""

from __future__ import annotations

import difflib
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
    """Which of the names that there are may have been meant; empty if none is near.

    Upper and lower case are alike.
    """
    folded = {known.lower(): known for known in names}
    near = difflib.get_close_matches(name.lower(), folded, 1)
    return f"; did you mean `{folded[near[0]]}`?" if near else ""


def unknown(what: str, name: str, names: Iterable[str]) -> _core.InputError:
    """That nothing of this kind has a name, with the nearest and all that there are."""
    known = list(names)
    return _core.InputError(
        f"{what} `{name}` is not known{hint(name, known)} (allowed: {', '.join(known)})"
    )
