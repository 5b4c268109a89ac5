"""Lines of keys in a TOML file: messages name them, but the parser does not report them."""

from __future__ import annotations

import re

_HEADER = re.compile(r"^\s*\[\[?\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def _dotted(text: str) -> str:
    return ".".join(part.strip("\"'") for part in _PART.findall(text))


def line_of(text: str, key: str) -> int | None:
    """Return the line of a key such as ``axes.ftl.victim``, or of its nearest table.

    A key inside a value that spans several lines has the line of the value.
    """
    section = ""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            section = _dotted(header[1])
            found.setdefault(section, number)
        elif match := _KEY.match(line):
            own = _dotted(match[1])
            found.setdefault(f"{section}.{own}" if section else own, number)
    while key:
        if key in found:
            return found[key]
        key = key.rpartition(".")[0]
    return None
