"""``flashatlas explain``: the meaning of a key or a name."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.markup import escape

from flashatlas import InputError, _core
from flashatlas.cli import field_words
from flashatlas.cli.console import out, say
from flashatlas.drawing import tables
from flashatlas.names import hint, registries
from flashatlas.results import notes as notes_of
from flashatlas.running.run_options import run_options

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KINDS = {
    "schemes": ("mapping scheme", "ftl.scheme"),
    "maps": ("map store", "map.store"),
    "victims": ("victim policy", "ftl.victim"),
    "classifiers": ("classifier", "ftl.classifier"),
    "caching": ("map cache policy", "map.policy"),
    "layers": ("layer", "layers"),
    "drives": ("drive", "--drive"),
    "formats": ("trace format", "--format"),
    "generators": ("workload generator", "--workload"),
    "hashes": ("hash function", "lookup.hash"),
    "policies": ("order of banks", "lookup.policy"),
    "metrics": ("metric", ""),
}
"""For each registry, the kind of its entries, and the key or option that chooses an entry."""


@dataclass(frozen=True)
class Entry:
    """An entry of a registry, or an option of a run."""

    name: str
    what: str
    key: str
    about: dict[str, Any]


@dataclass(frozen=True)
class Declared:
    """A key, and the parts to which it belongs; no parts if every drive has the key."""

    about: dict[str, Any]
    parts: tuple[str, ...]


def entries() -> list[Entry]:
    """Return the entries of all registries, and the options of a run."""
    known = registries()
    found = [
        Entry(one["name"], what, key, one)
        for kind, (what, key) in KINDS.items()
        for one in known[kind]
    ]
    options = [
        Entry(f"--{o['name'].replace('_', '-')}", "option of a run", "", {**o, "summary": o["doc"]})
        for o in known["options"]
    ]
    return found + options


def keys() -> dict[str, Declared]:
    """Return every key of ``--set``, and the keys of generators as ``GENERATOR:KEY``."""
    known = registries()
    found = {p["key"]: Declared(p, ()) for p in (*known["params"], *known["lookup_params"])}
    for kind, (what, key) in KINDS.items():
        for one in known[kind]:
            for param in one.get("params", ()):
                name = param["key"] if "." in param["key"] else f"{one['name']}:{param['key']}"
                part = f"{key}={one['name']}" if key else f"{what} {one['name']}"
                before = found.get(name)
                if before and before.about["default"] != param["default"]:
                    part += f" (default {param['default']})"
                parts = (*(before.parts if before else ()), part)
                found[name] = Declared(before.about if before else param, parts)
    return found


def explain(
    name: Annotated[
        str,
        typer.Argument(
            metavar="KEY|NAME|KEY=VALUE",
            help="A parameter, an option, the name of a drive, scheme, store, policy, format …, "
            "or the code of a note.",
        ),
    ],
) -> None:
    """Explain a key or a name: meaning, range, default, and the presets that set it.

    For example: `flashatlas explain map.cache_bytes`

    or: `flashatlas explain dftl`
    """
    key, equals, value = name.partition("=")
    if equals:
        _explain_setting(key.strip(), value.strip())
        return
    option = f"--{name.replace('_', '-')}"
    declared, named = keys(), [e for e in entries() if e.name in (name, option)]
    if name in declared:
        _explain_key(name, declared[name])
    for entry in named:
        show_entry(entry)
    words = [o for o in run_options().values() if name in o.choices]
    if name in notes_of.declared():
        _explain_note(notes_of.declared()[name])
        _explain_term(field_words.term(name))
        return
    for choice in words:
        flag = f"--{choice.name.replace('_', '-')}"
        out.print(tables.listing(["", name], [("chosen by", f"{flag} {name}"), (flag, choice.doc)]))
    if name in declared or named or words:
        _explain_term(field_words.term(name))
        return
    word = _explain_word(name, declared)
    parts = _explain_part_of_key(field_words.plain(name), declared)
    if not word and not parts:
        names = [*declared, *(entry.name for entry in entries()), *notes_of.declared()]
        names += [word for option in run_options().values() for word in option.choices]
        raise InputError(
            f"`{name}` is not a key, an option, or the name of a part{_near(name, names)} "
            "(numbers of a "
            "record are in docs/FORMATS.md, words of the field in docs/GLOSSARY.md)"
        )


def _explain_word(name: str, declared: Mapping[str, Declared]) -> bool:
    """Explain a word of the field by FlashAtlas's own name; return ``True`` if it is known."""
    word = field_words.plain(name)
    if word in field_words.CALLED:
        kind, called = field_words.CALLED[word]
        shown = f"`{called}`" if kind == "term" else called
        here = "is" if called == name else f"is called {shown} here:"
        say(f"{escape(name)} {here} a {kind} of {_HOLDERS[kind]}")
        if kind == "key":
            _explain_key(called, declared[called])
        meaning = field_words.MEANING.get(called) or field_words.term(name)
        _explain_term(called if kind == "term" else meaning)
    elif word in field_words.NOT_MODELLED:
        what, has = field_words.NOT_MODELLED[word]
        elsewhere = f"; {has} has it" if has else ""
        say(f"{escape(name)} is not modelled ({what}){elsewhere}; see docs/MODELLED.md")
    elif word in field_words.COMMANDS:
        say(f"{escape(name)} is called `flashatlas {field_words.COMMANDS[word]}` here")
    elif (term := field_words.term(name)) is not None:
        _explain_term(term)
    else:
        return False
    return True


_HOLDERS = {
    "key": "a drive",
    "number": "a run record (docs/FORMATS.md)",
    "term": "the glossary",
}

CLOSE = 0.75
"""Least similarity (:mod:`difflib`) to an unknown word at which a name is suggested."""


def _near(name: str, names: Iterable[str]) -> str:
    """Return a hint that names the most similar name; empty if none is similar enough."""
    spelt = {one.lower(): one for one in names}
    near = difflib.get_close_matches(name.lower(), spelt, n=1, cutoff=CLOSE)
    return f"; did you mean `{spelt[near[0]]}`?" if near else ""


def _explain_term(term: str | None) -> None:
    """Print the meaning of a term of the glossary; nothing for ``None``."""
    if term is not None:
        from flashatlas.report.glossary import TERMS  # noqa: PLC0415

        out.print(tables.listing(["", term], [("what it means", TERMS[term])]))


def _explain_part_of_key(word: str, declared: Mapping[str, Declared]) -> bool:
    """Print the keys that end in a word or have it as a value; return ``True`` if any exist."""
    called = field_words.CALLED.get(word, ("", ""))[1]
    last = [key for key in declared if re.split("[.:]", key)[-1] == word and key != called]
    for key in last:
        _explain_key(key, declared[key])
    values = [
        (f"{key}={one}", about["doc"])
        for key, about in ((key, found.about) for key, found in declared.items())
        for one in about["range"].split(", ")
        if field_words.plain(one) == word and not one.isdigit()
    ]
    if values:
        out.print(tables.listing(["a value of", "what it is"], values))
    return bool(last or values)


def _explain_note(note: Mapping[str, Any]) -> None:
    """Print the text of a note of runs, and its advice."""
    out.print(
        tables.listing(
            ["", note["code"]],
            [
                ("a note of a run", note["text"]),
                ("advice", note["advice"]),
                ("rank", f"{note['rank']} (the smallest is shown first)"),
            ],
        )
    )


def _explain_key(name: str, declared: Declared) -> None:
    about = declared.about
    lines = [
        ("what it is", about["doc"]),
        ("range", about["range"]),
        ("default", about["default"] or "none: it must be given"),
        ("belongs to", ", ".join(declared.parts) or "every drive"),
    ]
    out.print(tables.listing(["", name], lines))
    if set_by := list(_in_presets(name)):
        out.print()
        out.print(tables.listing(["preset", "sets it to"], set_by))


def _in_presets(key: str) -> Iterator[tuple[str, str]]:
    """Yield the presets that set a key, each with the value and its source."""
    section, _, last = key.rpartition(".")
    for drive in registries()["drives"]:
        given: Any = tomllib.loads(drive["toml"])
        for part in section.split(".") if section else ():
            given = given.get(part, {})
        if last in given:
            value = given[last]
            source = value.get("source", "") if isinstance(value, dict) else ""
            if isinstance(value, dict):
                unit, number = next((k, v) for k, v in value.items() if k != "source")
                value = number if unit == "value" else f"{number} {unit}"
            yield drive["name"], f"{value} ({source})" if source else str(value)


def show_entry(entry: Entry) -> None:
    """Print the meaning of an entry, the setting that chooses it, and its parameters."""
    about = entry.about
    lines = [("what it is", f"{entry.what}: {about['summary']}")]
    if entry.key.startswith("--"):
        lines.append(("chosen by", f"{entry.key} {entry.name}"))
    elif entry.key:
        lines.append(("chosen by", f"--set {entry.key}={entry.name}"))
    lines += [(k, about[k]) for k in ("paper", "source", "default", "quirks") if about.get(k)]
    out.print(tables.listing(["", entry.name], lines))
    if about.get("params"):
        out.print()
        show_parameters("its parameters", about["params"])


def show_parameters(title: str, params: list[dict[str, Any]]) -> None:
    """Print a table of parameters with range, default and meaning."""
    rows = [(p["key"], p["range"], p["default"] or "–", p["doc"]) for p in params]
    out.print(tables.listing([title, "range", "default", ""], rows))


def _explain_setting(key: str, value: str) -> None:
    """Explain ``KEY=VALUE``; if the value belongs to another key, refuse it and name that key."""
    declared = keys()
    if key not in declared:
        raise InputError(f"`{key}` is not a key{hint(key, declared)}")
    chosen = [e for e in entries() if e.name == value and e.key]
    right = [e for e in chosen if e.key == key]
    if right:
        show_entry(right[0])
        return
    if chosen:
        meant = chosen[0]
        how = f"{meant.key} {value}" if meant.key.startswith("--") else f"{meant.key}={value}"
        raise InputError(f"{key}={value}: {value} is a {meant.what}: `{how}`")
    _explain_key(key, declared[key])
    chosen_by = [part for part in declared[key].parts[:1] if "=" in part and " " not in part]
    try:
        _core.check_drive("tiny", None, [*chosen_by, f"{key}={value}"])
    except InputError as error:
        # the value may be allowed even if this drive is too small for it
        if error.field == key and error.allowed:
            raise
    say(f"\n{key}={value}")
