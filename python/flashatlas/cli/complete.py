"""Completions that a shell offers when the tab key is pressed: names, keys and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from flashatlas.names import registries
from flashatlas.running.run_options import RunOption

Completion = Callable[[str], list[tuple[str, str]]]
"""A function from the typed text to its completions, each with a short description."""


def _beginning(typed: str, offered: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(word, about) for word, about in offered if word.startswith(typed)]


def _entries(kind: str) -> Iterator[tuple[str, str]]:
    for entry in registries()[kind]:
        yield entry["name"], entry["summary"]


def drives(incomplete: str) -> list[tuple[str, str]]:
    """Return presets, and the drive files in the current folder."""
    files = ((str(path), "drive file") for path in sorted(Path().glob("*.toml")))
    return _beginning(incomplete, iter([*_entries("drives"), *files]))


def _after_comma(incomplete: str, offered: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return completions of the last word in a comma-separated list."""
    before, comma, typed = incomplete.rpartition(",")
    return [(f"{before}{comma}{word}", about) for word, about in _beginning(typed, offered)]


def layers(incomplete: str) -> list[tuple[str, str]]:
    """Return layers for the last word in a comma-separated list."""
    return _after_comma(incomplete, _entries("layers"))


def schemes(incomplete: str) -> list[tuple[str, str]]:
    """Return schemes for the last word in a comma-separated list."""
    return _after_comma(incomplete, _entries("schemes"))


def settings(incomplete: str) -> list[tuple[str, str]]:
    """Return keys; after the equals sign, the values that have names."""
    from flashatlas.cli.explain import keys  # noqa: PLC0415

    declared = keys()
    key, equals, typed = incomplete.partition("=")
    if not equals:
        offered = ((f"{name}=", d.about["doc"]) for name, d in declared.items() if ":" not in name)
        return _beginning(incomplete, offered)
    if key not in declared:
        return []
    about = declared[key].about
    words = about["range"].split(", ") if ", " in about["range"] else [about["default"] or ""]
    before, comma, last = typed.rpartition(",")
    return [
        (f"{key}={before}{comma}{word}", about["doc"])
        for word in words
        if word and " " not in word and word.startswith(last)
    ]


def workloads(incomplete: str) -> list[tuple[str, str]]:
    """Return generators; after the colon, their parameters."""
    name, colon, given = incomplete.partition(":")
    if not colon:
        return _beginning(incomplete, ((f"{n}:", about) for n, about in _entries("generators")))
    params: list[dict[str, Any]] = next(
        (g["params"] for g in registries()["generators"] if g["name"] == name), []
    )
    before, comma, typed = given.rpartition(",")
    return [
        (f"{name}:{before}{comma}{p['key']}=", p["doc"])
        for p in params
        if p["key"].startswith(typed)
    ]


def formats(incomplete: str) -> list[tuple[str, str]]:
    """Return trace formats."""
    return _beginning(incomplete, _entries("formats"))


def _words(words: tuple[str, ...]) -> Completion:
    return lambda incomplete: _beginning(
        incomplete, ((word.removesuffix("FILE"), "") for word in words)
    )


def of_option(option: RunOption) -> dict[str, Any]:
    """Return the completion of a run's option as keyword arguments of ``typer.Option``."""
    own = {"workload": workloads, "format": formats}
    if option.name in own:
        return {"autocompletion": own[option.name]}
    if option.choices:
        return {"autocompletion": _words(option.choices)}
    return {}
