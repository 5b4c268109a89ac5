"""A scheme with a bug on purpose, for controls: its mount drops blocks that have a torn page."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from flashatlas import parts
from test_parts import PAGE, compiled

SCAN = "if (spare.state != FA_ERASED) written = i + 1;"
DROPS = """
            if (spare.state == FA_TORN)
                for (uint32_t j = block * ftl->shape.pages; j < page; j++)
                    if (ftl->p2l[j] != NONE) map(ftl, ftl->p2l[j], NONE);"""
CHANGES = {
    SCAN: SCAN + DROPS,
    '"page-c"': '"page-torn"',
    "ftl.page_c_low_water": "ftl.page_torn_low_water",
    '"page", "1.0"': '"torn", "1.0"',
}

DRIVE = "mast-4gb"
SETTINGS = ("ftl.scheme=page-torn", "drive.blocks=600", "drive.logical_pages=32000")


@cache
def library() -> Path:
    """Compile the scheme and return its library; each server loads it again."""
    source = PAGE
    for right, other in CHANGES.items():
        assert source.count(right) == 1, right
        source = source.replace(right, other)
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    return compiled(Path(folder), source, "torn.c")


def load() -> None:
    """Register the scheme in the process of these tests."""
    parts.load(library())
