"""A drive file that is made of another program's description."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from flashatlas._core import InputError

Read = TypeVar("Read", int, float)


@dataclass
class DriveFile:
    """Keys with their values and sources, and the settings that have no counterpart.

    Args:
        of: The program and its file: ``MQSim's ssdconfig.xml``.

    """

    of: str
    lines: dict[str, tuple[str, str]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

    def set(self, key: str, value: str | int | float | bool, source: str) -> None:
        """Give a key a value that came from ``source``."""
        self.lines[key] = json.dumps(value), source

    def leave(self, names: Iterable[str]) -> None:
        """Add settings that have no counterpart."""
        self.left += names

    def text(self) -> str:
        """Return the drive file as TOML."""
        without = f"; without {', '.join(self.left)}" if self.left else ""
        sections: dict[str, list[str]] = {
            "drive": [f"summary = {json.dumps(f'from {self.of}{without}', ensure_ascii=False)}"]
        }
        for key, (value, source) in self.lines.items():
            section, _, name = key.rpartition(".")
            sections.setdefault(section, []).append(f"{name} = {value}  # {source}")
        blocks = ["\n".join([f"[{name}]", *lines]) for name, lines in sections.items()]
        return "\n\n".join(blocks) + "\n"


def content_of(kind: str, path: str) -> str:
    """Return the text of a file that a description names.

    Raises:
        InputError: The file cannot be read.

    """
    if not path:
        raise InputError(f"{kind}: no file is named; write {kind}:FILE")
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}") from error


def number(
    place: str, name: str, text: str, *, least: float = 0, read: Callable[[str], Read]
) -> Read:
    """Return a number of a description.

    Raises:
        InputError: The text is not a number, or is below ``least``.

    """
    try:
        value = read(text.strip())
    except ValueError:
        value = None
    if value is None or not value >= least:
        raise InputError(
            f"{place}: {name} = {text.strip()!r} is not a number of at least {least:g}"
        )
    return value
