"""Classes of the keys in another program's description: one table for each kind.

The error for an unknown key names the nearest key, and the error for a refused key an alternative.
A note before the run names the keys that are left out. The page ``docs/IMPORTERS.md`` prints the
tables.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from flashatlas._core import InputError
from flashatlas.foreign.description import number
from flashatlas.names import hint

Choice = TypeVar("Choice")
Found = Mapping[str, str]


class Does(enum.Enum):
    """The class of a key."""

    USED = "used"
    REFUSED = "refused"
    LEFT_OUT = "left out, with a note"
    NOTHING = "without influence"


@dataclass(frozen=True)
class Key:
    """A key and its class.

    Args:
        name: The key, as the other program spells it.
        does: The class.
        says: The keys of ours that a used key sets; the alternative to a refused key; or the reason
            why a key changes nothing.
        unless: Values that are accepted although the class is `REFUSED` or `LEFT_OUT`; or a
            function of the whole description that returns ``True`` if the value is accepted.

    """

    name: str
    does: Does
    says: str
    unless: tuple[str, ...] | Callable[[Found], bool] = ()

    def passes(self, found: Found) -> bool:
        """Return ``True`` if the given value is accepted without a note."""
        if callable(self.unless):
            return self.unless(found)
        return found[self.name].lower() in [value.lower() for value in self.unless]


def used(name: str, says: str) -> Key:
    """Declare a key that sets keys of ours."""
    return Key(name, Does.USED, says)


def refused(name: str, unless: str, says: str) -> Key:
    """Declare a key that is an error, except for the values in ``unless`` (``|`` between them)."""
    return Key(name, Does.REFUSED, says, tuple(unless.split("|")) if unless else ())


def left_out(name: str, says: str, unless: str | Callable[[Found], bool] = "") -> Key:
    """Declare a key with an effect there and no counterpart here; a note reports it."""
    taken = unless if callable(unless) else tuple(unless.split("|")) if unless else ()
    return Key(name, Does.LEFT_OUT, says, taken)


def nothing(names: str, says: str) -> list[Key]:
    """Declare keys that change nothing; blanks separate them."""
    return [Key(name, Does.NOTHING, says) for name in names.split()]


def table(*keys: Key | list[Key]) -> dict[str, Key]:
    """Return a table by name.

    Raises:
        ValueError: A name is given twice.

    """
    flat = [key for one in keys for key in (one if isinstance(one, list) else [one])]
    by_name = {key.name: key for key in flat}
    if len(by_name) != len(flat):
        raise ValueError("a key is declared twice")
    return by_name


class Given:
    """The keys of one description, checked against their table.

    Args:
        place: The file, flow or option that errors name.
        keys: The table.
        found: Each key with its text.

    Raises:
        InputError: A key is not known, or is refused.

    """

    def __init__(self, place: str, keys: Mapping[str, Key], found: Found) -> None:
        """Check every key."""
        self.place, self.keys, self.found = place, keys, found
        self.left: list[str] = []
        for name, text in found.items():
            if name not in keys:
                near = hint(name, keys)
                raise InputError(f"{place}: `{name}` is not known{near}")
            key = keys[name]
            if key.passes(found):
                continue
            if key.does is Does.REFUSED:
                taken = "" if callable(key.unless) else " or ".join(key.unless)
                expected = f" is not possible; give {taken}" if taken else " is not possible"
                raise InputError(f"{place}: {name} = {text!r}{expected}: {key.says}")
            if key.does is Does.LEFT_OUT:
                self.left.append(name)

    def text(self, name: str, default: str | None = None) -> str:
        """Return the text that was given for a key that is used.

        Raises:
            InputError: The key was not given, and there is no default.

        """
        assert self.keys[name].does is not Does.NOTHING, name
        if name in self.found:
            return self.found[name]
        if default is None:
            raise InputError(f"{self.place}: <{name}> is missing")
        return default

    def whole(self, name: str, least: int = 1, default: str | None = None) -> int:
        """Return a whole number from ``least``."""
        return number(self.place, name, self.text(name, default), least=least, read=int)

    def real(self, name: str, default: str | None = None) -> float:
        """Return a number from 0."""
        return number(self.place, name, self.text(name, default), read=float)

    def percent(self, name: str, least: int = 0) -> int:
        """Return a whole percentage."""
        value = self.whole(name, least)
        if value > 100:
            raise InputError(f"{self.place}: {name} = {value} is not a percentage")
        return value

    def one_of(self, name: str, of: Mapping[str, Choice], default: str | None = None) -> Choice:
        """Return the value that a name of a list stands for."""
        text = self.text(name, default)
        if text not in of:
            near = hint(text, of)
            raise InputError(
                f"{self.place}: {name} = {text!r} is not known{near} (allowed: {', '.join(of)})"
            )
        return of[text]

    def flag(self, name: str, default: str | None = None) -> bool:
        """Return the value of a flag."""
        return self.one_of(name, {"true": True, "false": False}, default)


def rows(keys: Iterable[Key]) -> str:
    """Return a table in Markdown, in the order of declaration, with equal rows joined."""
    groups: dict[tuple[str, str], list[str]] = {}
    for key in keys:
        does = key.does.value
        if isinstance(key.unless, tuple) and key.unless:
            does += " unless " + " or ".join(f"`{value}`" for value in key.unless)
        groups.setdefault((does, key.says), []).append(f"`{key.name}`")
    lines = [f"| {', '.join(names)} | {does} | {says} |" for (does, says), names in groups.items()]
    return "\n".join(["| Key | Class | |", "|---|---|---|", *lines])
