"""The JavaScript of Vega, Vega-Lite and Vega-Embed, in one piece.

The Python package ``vl-convert-python`` puts the pieces together, which takes some seconds. The
result is kept in the user's cache. The file's name has the version of the package, and its first
line has a digest that is checked.
"""

from __future__ import annotations

import contextlib
import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

from flashatlas.drawing import charts
from flashatlas.files import cache_folder, write_whole

SNIPPET = "window.vegaEmbed = vegaEmbed;"

NOTICE = (
    "/* Vega, Vega-Lite, Vega-Embed, Vega-Tooltip, Vega-Themes: BSD-3-Clause, (c) University of "
    "Washington Interactive Data Lab and contributors. With d3 (ISC, (c) Mike Bostock) and "
    "topojson (ISC). Put together by vl-convert. */\n"
)


@cache
def bundle() -> str:
    """Return a script that sets ``window.vegaEmbed`` and can stand in a ``script`` element."""
    charts.library()
    path = cache_folder() / f"vega-{version('vl-convert-python')}.js"
    kept = _kept(path)
    if kept is not None:
        return kept
    made = NOTICE + charts.library().javascript_bundle(SNIPPET)
    # two character sequences would end or change the element; in JavaScript strings, their escapes
    # have the same meaning
    made = made.replace("\r", "").replace("</script", "<\\/script").replace("<!--", "<\\!--")
    with contextlib.suppress(
        Exception
    ):  # a cache that cannot be written costs time, and nothing else
        write_whole(path, f"//{_digest(made)}\n{made}")
    return made


def _kept(path: Path) -> str | None:
    try:
        first, _, body = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return body if first == f"//{_digest(body)}" else None


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
