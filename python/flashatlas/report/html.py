"""Pieces of HTML. Texts from a record or a command line go through :func:`text`."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any


def text(value: object) -> str:
    """Return a value as escaped text, for an element or a quoted attribute."""
    return html.escape(str(value), quote=True)


def scroll(label: str, inner: str) -> str:
    """Return a part that scrolls sideways, also by keyboard; the page itself never scrolls so."""
    return f'<div class="scroll" role="group" tabindex="0" aria-label="{text(label)}">{inner}</div>'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a list of names and values; the values are HTML."""
    return (
        '<dl class="facts">'
        + "".join(f"<div><dt>{text(k)}</dt><dd>{v}</dd></div>" for k, v in pairs)
        + "</dl>"
    )


def table(
    label: str, head: Sequence[str], bodies: Iterable[tuple[str, Sequence[str]]], css: str = ""
) -> str:
    """Return a table that scrolls sideways by itself.

    Args:
        label: Name for a screen reader.
        head: Cells of the heading, as HTML.
        bodies: Groups of rows: a heading (HTML, may be empty) and the rows (HTML, with their
            ``tr``).
        css: Further classes.

    """
    columns = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    groups = []
    for heading, rows in bodies:
        over = (
            f'<tr class="group"><th scope="rowgroup" '
            f'colspan="{len(head)}"><span>{heading}</span></th></tr>'
        )
        groups.append(f"<tbody>{over if heading else ''}{''.join(rows)}</tbody>")
    inner = f'<table class="{css}"><thead><tr>{columns}</tr></thead>{"".join(groups)}</table>'
    return scroll(label, inner)


def table_rows(cells: Iterable[Sequence[str]]) -> list[str]:
    """Return rows of a table from texts; the first text of each row is its heading."""
    return [
        f"<tr><th "
        f'scope="row">{text(first)}</th>{"".join(f"<td>{text(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in cells
    ]


def section(id: str, title: str, *inner: str) -> str:
    """Return a part of a page with a heading."""
    heading = f'<h2 id="{id}-title">{text(title)}</h2>'
    return f'<section id="{id}" aria-labelledby="{id}-title">{heading}{"".join(inner)}</section>'


def script_json(value: Any) -> str:
    """Return JSON that can stand in a ``script`` element.

    No markup in the JSON can end the element or open a comment.
    """
    body = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        body = body.replace(char, f"\\u{ord(char):04x}")
    # lone surrogates can come out of JSON escapes in a record, and have no UTF-8 form
    return body.encode("utf-8", "replace").decode("utf-8")


def _finite(value: Any) -> Any:
    """Return a value without the numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value
