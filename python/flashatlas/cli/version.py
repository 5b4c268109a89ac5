"""The text of ``flashatlas --version``."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version as installed

from flashatlas import _core


def version() -> str:
    """Return three lines: the version, the build, and the versions of Python and pyarrow."""
    how = json.loads(_core.build())
    commit = f", commit {how['commit'][:12]}{how['commit'][40:]}" if how["commit"] else ""
    return (
        f"flashatlas {how['version']}{commit}\n"
        f"sources {how['sources'][:19]}, {how['profile']} build for {how['target']}\n"
        f"Python {platform.python_version()}, pyarrow {installed('pyarrow')}\n"
    )
