"""Names of columns and values, short enough for an axis, a legend or a table's head."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flashatlas._core import about
from flashatlas.results.units import word

SETTINGS = {
    "ftl.classifier": "classifier",
    "ftl.gc_pace": "pace of collection",
    "ftl.scheme": "scheme",
    "ftl.victim": "victim policy",
    "host.queue_depth": "queue depth",
    "map.cache_bytes": "map cache",
    "map.store": "map store",
    "map.unit": "map unit",
    "drive.allocation": "allocation",
    "drive.blocks": "blocks a plane",
    "drive.channels": "channels",
    "drive.over_provisioning": "over-provisioning",
    "drive.page_bytes": "page",
    "cache.bytes": "write buffer",
}
"""Titles of settings in a figure; the title of any other setting is its key."""

_GENERATOR = re.compile(r"([A-Za-z][\w.-]*):([^;:/]+=[^;:]*)")


def title_of(name: str, names: Mapping[str, str]) -> str:
    """Return the title of a setting, from ``names`` or from :data:`SETTINGS`."""
    return names.get(name) or SETTINGS.get(name, name)


def check_names(names: Mapping[str, str], known: Iterable[str]) -> None:
    """Refuse names for columns or values that do not exist.

    Args:
        names: Titles for columns and values.
        known: The names of the columns and values that are drawn.

    Raises:
        InputError: A title was given for a name that is not drawn.

    """
    there = list(dict.fromkeys(known))
    for given in names:
        if given not in there:
            shown = ", ".join(f"`{one}`" for one in there)
            raise about(
                "names",
                f"`{given}` is neither a column nor a value of the figure (there are {shown})",
            )


def distinct(values: Sequence[Any], words: Sequence[str]) -> dict[Any, str]:
    """Return the word of each value; if two words are equal, return full texts instead."""
    found = dict(zip(values, words, strict=True))
    if len(set(found.values())) == len(found):
        return found
    return {value: str(value) for value in found}


def of_levels(values: Sequence[Any], unit: str) -> dict[Any, str]:
    """Return a different word for each value of a factor; numbers may have different units."""
    if all(isinstance(value, str) for value in values):
        return dict(short(values))
    return distinct(values, [word(value, unit) for value in values])


def short(texts: Iterable[str]) -> dict[str, str]:
    """Return a short and different word for each text.

    The word of a generator (``zipf:requests=3000,theta=0.9``) is its name, with the settings that
    distinguish it from other generators of that name. The word of a path is its last part, with the
    folders that distinguish it from other paths.

    >>> short(["zipf:requests=3000,theta=0.9", "zipf:requests=3000,theta=1.2", "uniform:read=0"])
    ... # doctest: +NORMALIZE_WHITESPACE
    {'zipf:requests=3000,theta=0.9': 'zipf theta=0.9',
     'zipf:requests=3000,theta=1.2': 'zipf theta=1.2', 'uniform:read=0': 'uniform'}
    >>> short(["a/one.csv", "b/one.csv", "b/two.csv"])
    {'a/one.csv': 'a/one.csv', 'b/one.csv': 'b/one.csv', 'b/two.csv': 'two.csv'}
    """
    known = list(dict.fromkeys(texts))
    parsed = {text: made for text in known if (made := _generator(text)) is not None}
    paths = [text for text in known if text not in parsed and "/" in text]
    words = {}
    for text in known:
        if text in parsed:
            words[text] = _of_generator(*parsed[text], list(parsed.values()))
        elif text in paths:
            words[text] = _tail(text, paths)
        else:
            words[text] = text
    return distinct(known, [words[text] for text in known])


def _generator(text: str) -> tuple[str, dict[str, str]] | None:
    """Return the name of a generator and its settings; ``None`` for another text."""
    match = _GENERATOR.fullmatch(text)
    if match is None:
        return None
    pairs = [part.partition("=") for part in match[2].split(",")]
    if not all(equals for _, equals, _ in pairs):
        return None
    return match[1], {key.strip(): value.strip() for key, _, value in pairs}


def _of_generator(
    name: str, settings: Mapping[str, str], every: Sequence[tuple[str, Mapping[str, str]]]
) -> str:
    """Return the name of a generator with the settings in which generators of this name differ."""
    alike = [other for named, other in every if named == name]
    own = [
        f"{key}={value}"
        for key, value in settings.items()
        if any(other.get(key) != value for other in alike)
    ]
    return " ".join([name, *own])


def _tail(path: str, paths: Sequence[str]) -> str:
    """Return the shortest end of a path with which no other path ends."""
    parts = path.split("/")
    for count in range(1, len(parts)):
        tail = "/".join(parts[-count:])
        if not any(other != path and f"/{other}".endswith(f"/{tail}") for other in paths):
            return tail
    return path


def broken(word: str, letters: int) -> str:
    """Return a word broken into lines of at most ``letters`` letters; longer pieces stay whole."""
    lines: list[str] = []
    for piece in re.findall(r"[^\s,;/_-]+[,;/_-]*\s?|\S\s?", word):
        if lines and len((lines[-1] + piece).rstrip()) <= letters:
            lines[-1] += piece
        else:
            lines.append(piece)
    return "\n".join(line.rstrip() for line in lines)
