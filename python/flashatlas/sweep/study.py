"""Definition of a study: the settings that its runs share, and the axes in which they differ."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flashatlas._core import InputError
from flashatlas.foreign import TRACES
from flashatlas.inputs.drive import Settings, setting_list
from flashatlas.names import hint
from flashatlas.results.paths import with_files
from flashatlas.running.run_options import run_options
from flashatlas.sweep.axes import AXIS, Axis, axis, flat, settings_of
from flashatlas.sweep.condition import Condition
from flashatlas.sweep.lines import line_of
from flashatlas.sweep.objectives import Search, search_of
from flashatlas.untrusted import text_of, toml_of

PARTS = ("name", "title", "store", "run", "set", "axes", "zip", "exclude", "search")
"""Keys that a study file may have."""

STORE = "flashatlas-results"
"""The default store of a study."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Pattern of study names. They become names of files."""


class StudyError(InputError):
    """Bad input of a study, with its place; it names keys of the file instead of options."""


@dataclass(frozen=True)
class Study:
    """A study as it was defined; :mod:`flashatlas.sweep.plan` makes its runs."""

    axes: tuple[tuple[Axis, ...], ...]
    """The axes: each alone, or several that advance together (zipped)."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of :func:`flashatlas.run` that all runs share, except ``set``."""
    settings: tuple[str, ...] = ()
    """Parameters that all runs share, as ``key=value``."""
    exclude: tuple[Condition, ...] = ()
    """Conditions on runs that are left out."""
    name: str = "study"
    title: str = ""
    store: Path = Path(STORE)
    search: Search | None = None
    """The search over the combinations; ``None`` if all are carried out."""
    source: Path | None = None
    """The study's file."""
    text: str = field(default="", repr=False)

    @property
    def axis_names(self) -> list[str]:
        """The names of all axes, in their order."""
        return [one.name for group in self.axes for one in group]

    @property
    def axis_list(self) -> list[Axis]:
        """All axes, in their order."""
        return [one for group in self.axes for one in group]

    def at(self, key: str) -> str:
        """Return ``FILE:LINE: `` of a key in the study file; empty for a study without a file."""
        if self.source is None:
            return ""
        line = line_of(self.text, key)
        return f"{self.source}:{line}: " if line else f"{self.source}: "


def defined(
    axes: Mapping[str, Any],
    *,
    zip: Iterable[Mapping[str, Any]] = (),
    exclude: Iterable[str] = (),
    set: Settings = (),
    name: str = "study",
    title: str = "",
    store: str | os.PathLike[str] = STORE,
    search: Mapping[str, Any] | None = None,
    **options: Any,
) -> Study:
    """Return a study from its parts: the arguments of :class:`flashatlas.Study`."""
    groups: list[tuple[Axis, ...]] = [(axis(key, value),) for key, value in flat(axes)]
    groups += [_zipped(number, table) for number, table in enumerate(zip, 1)]
    study = Study(
        axes=tuple(groups),
        options=options,
        settings=tuple(setting_list(set)),
        exclude=tuple(Condition(text, "exclude") for text in exclude),
        name=name,
        title=title,
        store=Path(store),
        search=None if search is None else search_of(search),
    )
    _check(study)
    return study


def _zipped(number: int, table: Mapping[str, Any]) -> tuple[Axis, ...]:
    """Return axes that advance together: the first values of all, the second ones, and so on."""
    if not isinstance(table, Mapping):
        raise InputError(f"zip {number}: {table!r} is not a table of axes")
    group = tuple(axis(key, value) for key, value in flat(table))
    lengths = {one.name: len(one.values) for one in group}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} has {count}" for name, count in lengths.items())
        raise InputError(f"zip {number}: its axes must have the same number of values: {said}")
    if not group:
        raise InputError(f"zip {number}: the table has no axes")
    if any(one.when for one in group):
        raise InputError(f"zip {number}: a zipped axis cannot have `when`: use `exclude`")
    return group


def _check(study: Study) -> None:
    """Refuse a study with invalid, repeated or unknown names."""
    if not NAME.fullmatch(study.name):
        raise InputError(
            f"name `{study.name}`: the name may have only letters, digits, `.`, `_` and `-`"
        )
    names = study.axis_names
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{name}: an axis of this name is given twice")
    options = run_options()
    for key in study.options:
        if key not in options and key not in ("drive", "layers"):
            near = hint(key, [*options, "drive", "layers", "set"])
            raise InputError(f"run.{key}: there is no such option of a run{near}")
    held = {setting.partition("=")[0].strip() for setting in study.settings} | {*study.options}
    for one in study.axis_list:
        given = {key for value in one.values for key in one.given(value)} | {one.name}
        for key in sorted(given & held):
            if key == one.name or not one.variants:
                raise InputError(f"{key}: the key is both an axis and a setting of all runs")
        if (
            not one.variants
            and "." not in one.name
            and one.name not in (*options, "drive", "layers")
        ):
            near = hint(one.name, [*options, "drive", "layers"])
            raise InputError(
                f"{one.name}: this is neither an option of a run nor a key of a "
                f"drive{near}; an axis with another "
                "name needs variants"
            )


def load(path: str | os.PathLike[str]) -> Study:
    """Read a study file; paths in it are relative to its folder, except ``store``.

    Raises:
        InputError: The file cannot be read; the message has file and line.

    """
    file = Path(path)
    try:
        text = text_of(file, "a study")
    except FileNotFoundError as error:
        raise InputError(f"{file}: {error.strerror}") from error
    content = toml_of(text, file)
    for key in content:
        if key not in PARTS:
            raise InputError(
                f"{file}:{line_of(text, key) or 1}: {key}: there is no such part of a "
                f"study{hint(key, PARTS)} "
                f"(allowed: {', '.join(PARTS)})"
            )
    try:
        made = _of_content(content, file)
    except InputError as error:
        message = str(error)
        key = message.partition(":")[0].strip()
        line = next((n for n in (line_of(text, k) for k in _places(key)) if n), 1)
        raise StudyError(f"{file}:{line}: {message}") from error
    return replace(made, source=file, text=text)


def _places(key: str) -> list[str]:
    """Return the places where a key may stand in a study file, the likeliest first."""
    if key.startswith("search"):
        return [key, "search"]
    return [f"axes.{key}", f"set.{key}", f"run.{key}", f"zip.{key}", key]


def _of_content(content: Mapping[str, Any], file: Path) -> Study:
    for key, kind in (("run", Mapping), ("set", Mapping), ("axes", Mapping), ("search", Mapping),
                      ("zip", list), ("exclude", list), ("name", str), ("title", str),
                      ("store", str)):  # fmt: skip
        if key in content and not isinstance(content[key], kind):
            expected = {Mapping: "a table", list: "a list", str: "a text"}[kind]
            raise InputError(f"{key}: {content[key]!r} must be {expected}")
    shared = {key: _placed(key, value, file) for key, value in content.get("run", {}).items()}
    name = content.get("name", file.stem)
    return defined(
        {key: _axis_placed(key, value, file) for key, value in flat(content.get("axes", {}))},
        zip=[
            {key: _axis_placed(key, value, file) for key, value in flat(table)}
            for table in content.get("zip", ())
        ],
        exclude=content.get("exclude", ()),
        set=settings_of(content.get("set", {})),
        name=name,
        title=content.get("title", name),
        store=content.get("store", STORE),
        search=content.get("search"),
        **shared,
    )


def _placed(key: str, value: Any, file: Path) -> Any:
    """Return a value of an option; a path in it is relative to the folder of the study."""
    if not isinstance(value, str):
        return value
    option = run_options().get(key)

    def placed(path: str) -> str:
        return os.path.relpath(file.parent / path)

    if key == "trace":
        kind, colon, path = value.partition(":")
        if colon and kind in TRACES:
            return f"{kind}:{placed(path)}"
        return with_files(value, placed)
    if (option is not None and option.kind == "file") or (
        key == "drive" and value.endswith(".toml")
    ):
        return placed(value)
    kind, colon, path = value.partition(":")
    if option is not None and colon and f"{kind}:FILE" in option.choices:
        return f"{kind}:{with_files(path, placed) if kind == 'trace' else placed(path)}"
    return value


def _axis_placed(key: str, value: Any, file: Path) -> Any:
    """Return an axis whose paths are relative to the folder of the study."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_placed(key, one, file) for one in value]
    if not isinstance(value, Mapping) or not any(own in AXIS for own in value):
        return value
    made = dict(value)
    if isinstance(made.get("values"), list):
        made["values"] = [_placed(key, one, file) for one in made["values"]]
    if isinstance(made.get("variants"), Mapping):
        made["variants"] = {
            name: {own: _placed(own, one, file) for own, one in settings_of(table).items()}
            for name, table in made["variants"].items()
            if isinstance(table, Mapping)
        } or made["variants"]  # fmt: skip
    return made
