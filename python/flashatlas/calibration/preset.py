"""The drive file that a calibration writes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flashatlas import _core
from flashatlas._core import InputError, quantity
from flashatlas.inputs.drive import Drive, drive_and_text
from flashatlas.running.api import specification
from flashatlas.sweep.axes import flat
from flashatlas.untrusted import toml_of

CAPACITY = ("drive.logical_pages", "drive.over_provisioning", "drive.capacity")
"""Keys of the exported size, of which a later one replaces an earlier one."""

VALUE = ("value", "source")
"""Keys of a value that is a table; other keys of such a table are units."""


def params_of(drive: str, settings: Sequence[str]) -> dict[str, Any]:
    """Return every parameter of a drive with settings, as records have them.

    Raises:
        InputError: The drive or a setting is bad.

    """
    Drive(drive, settings)  # its errors name the place
    spec = specification(drive, set=settings, workload="uniform:requests=1")
    found: dict[str, Any] = json.loads(_core.planned(json.dumps(spec)))["config"]["params"]
    return found


def preset(
    drive: str,
    settings: Sequence[str],
    found: Mapping[str, Any],
    sources: Mapping[str, str],
    summary: str,
) -> str:
    """Return the text of a drive file: the drive, with its settings and the values that were found.

    Args:
        drive: The drive to begin with.
        settings: Settings of the calibration, as ``key=value``.
        found: The values that were found, by key.
        sources: The source of each of these values.
        summary: What the drive is, in one line.

    """
    name, text, _ = drive_and_text(drive)
    values: dict[str, str] = {}
    if text is None:
        values["drive.base"] = json.dumps(name)
    else:
        for key, value in flat(toml_of(text, name), ends=_UNITS):
            values[key] = _as_written(value)
    given = [setting.partition("=")[::2] for setting in settings]
    for key, value in given:
        _put(values, key.strip(), _sourced(value.strip(), "given to the calibration"))
    for key, value in found.items():
        _put(values, key, _sourced(value, sources[key]))
    values["drive.summary"] = json.dumps(summary, ensure_ascii=False)
    sections: dict[str, list[str]] = {"drive": []}
    for key, written in values.items():
        section, _, own = key.rpartition(".")
        sections.setdefault(section, []).append(f"{own} = {written}")
    blocks = [
        "\n".join([f"[{section}]" if section else "", *sorted(lines, key=_base_first)])
        for section, lines in sorted(sections.items(), key=lambda item: item[0] != "")
        if lines
    ]
    return "\n\n".join(blocks).lstrip() + "\n"


_UNITS = (*VALUE, "ps", "ns", "us", "ms", "s", "b", "k", "m", "g",
          "kib", "mib", "gib", "tib", "kb", "mb", "gb", "tb")  # fmt: skip


def must_be_the_same(path: str | os.PathLike[str], drive: str, settings: Sequence[str]) -> None:
    """Refuse a drive file that is not the drive with these settings.

    Raises:
        InputError: A parameter differs.

    """
    written, wanted = params_of(str(path), ()), params_of(drive, settings)
    for key in written:
        if key != "drive.summary" and written[key] != wanted.get(key):
            raise InputError(
                f"{path}: {key} is {written[key]} in this file and {wanted.get(key)} in the "
                f"calibrated drive: {drive} cannot be written as a file with these settings; "
                "begin with a preset"
            )


def _put(values: dict[str, str], key: str, written: str) -> None:
    if key in CAPACITY:
        for other in CAPACITY:
            values.pop(other, None)
    values[key] = written


def _base_first(line: str) -> tuple[bool, bool]:
    return not line.startswith("base ="), not line.startswith("summary =")


def _as_written(value: Any) -> str:
    """Return a value of a drive file in TOML."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} = {_as_written(own)}" for key, own in value.items())
        return f"{{ {inner} }}"
    return json.dumps(value, ensure_ascii=False)


def _sourced(value: Any, source: str) -> str:
    """Return a value with its source in TOML; a time of many picoseconds in a larger unit."""
    said = json.dumps(source, ensure_ascii=False)
    if isinstance(value, str) and value.endswith("ps") and value[:-2].isdigit():
        count = quantity(value)
        for unit, size in (("ms", 10**9), ("us", 10**6), ("ns", 10**3)):
            if count >= size:
                number = f"{count // size}.{count % size:0{len(str(size)) - 1}d}".rstrip("0")
                return f"{{ {unit} = {number.rstrip('.')}, source = {said} }}"
    return f"{{ value = {_plain(value)}, source = {said} }}"


def _plain(value: Any) -> str:
    """Return a value of a setting in TOML; a text that is a number as a number."""
    if isinstance(value, str):
        if value in ("true", "false"):
            return value
        for kind in (int, float):
            try:
                return json.dumps(kind(value))
            except ValueError:
                pass
    return json.dumps(value, ensure_ascii=False)


def is_drive_file(path: Path) -> bool:
    """Return ``True`` if a path can be the name of a drive file."""
    return path.suffix == ".toml"
