"""The frame of a page: one HTML file that needs no network, and its security policy.

Its Content-Security-Policy allows no connection, and runs only the three scripts whose digests it
names: neither a label nor a path in a record can become code.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

from flashatlas.report import vega
from flashatlas.report.html import script_json, text

BASE = ("format.js", "keys.js", "charts.js", "downloads.js", "furniture.js")
"""Parts of every page's script."""


def document(
    title: str,
    kind: str,
    entries: Sequence[tuple[str, str]],
    body: Sequence[str],
    data: Any,
    scripts: Sequence[str],
    versions: Iterable[str],
) -> str:
    """Return a page as HTML text.

    Args:
        title: Its heading.
        kind: The line above the heading.
        entries: Identifiers and titles of its parts.
        body: The parts, as HTML.
        data: The data that its script needs, as JSON values.
        scripts: The parts of its own script, in order.
        versions: The versions of FlashAtlas that made the shown runs.

    """
    theme, libraries, own = asset("theme.js"), vega.bundle(), own_script(tuple(scripts))
    return (
        "\n".join(
            [
                f'<!doctype html>\n<html lang="en"><head><meta '
                f'charset="utf-8">\n{_policy(theme, libraries, own)}',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                '<link rel="icon" href="data:,">',
                '<meta name="color-scheme" content="light dark"><meta name="generator" '
                'content="FlashAtlas">',
                f"<title>{text(title)}</title><style>{asset('report.css')}</style>"
                f"<script>{theme}</script></head><body>",
                f'<a class="skip" href="#main">Skip to the '
                f"content</a>{_header(title, kind)}{_contents(entries)}",
                f'<main id="main" tabindex="-1"><noscript>{_NO_SCRIPT}</noscript>',
                *body,
                f"</main>{_footer(versions)}",
                f'<script type="application/json" id="report-data">{script_json(data)}</script>',
                f"<script>{libraries}</script><script>{own}</script></body></html>\n",
            ]
        )
        .encode("utf-8", "replace")
        .decode("utf-8")
    )


_NO_SCRIPT = (
    '<p class="absent">Charts and the block explorer are drawn by scripts, which are switched '
    "off here. The numbers "
    "below are complete.</p>"
)


@cache
def asset(name: str) -> str:
    """Return a file of the page."""
    return (
        resources.files("flashatlas.report")
        .joinpath("assets", name)
        .read_text(encoding="utf-8")
        .strip()
    )


@cache
def own_script(scripts: tuple[str, ...]) -> str:
    """Return the page's own script: the given parts, one after the other."""
    parts = "\n".join(asset(name) for name in scripts)
    return f'"use strict";\n(() => {{\n{parts}\n}})();'


def _policy(*scripts: str) -> str:
    digests = (
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts
    )
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    # Vega puts style attributes on its drawings; styles cannot reach the network, as nothing may
    # be loaded
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; base-uri 'none'; "
        "img-src data:; form-action 'none'"
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{policy}">'


def _header(title: str, kind: str) -> str:
    themes = "".join(
        f'<button type="button" data-theme-choice="{choice}" aria-pressed="false">{choice}</button>'
        for choice in ("auto", "light", "dark")
    )
    return (
        f'<header><div><p class="kind"><span class="mark" '
        f'aria-hidden="true"></span>FlashAtlas · {kind}</p>'
        f'<h1>{text(title)}</h1></div><div class="themes" role="group" '
        f'aria-label="Colours">{themes}</div></header>'
    )


def _contents(entries: Sequence[tuple[str, str]]) -> str:
    links = "".join(f'<li><a href="#{id}">{text(title)}</a></li>' for id, title in entries)
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def _footer(versions: Iterable[str]) -> str:
    said = ", ".join(sorted(set(versions)))
    return (
        f"<footer><p>Made by FlashAtlas {text(said)}. This file is complete: it loads nothing. "
        "Charts are drawn by Vega-Lite (BSD-3-Clause).</p></footer>"
    )
