"""The C headers are generated from the Rust side, and agree with it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEADERS = {
    "crates/plugin": "python/flashatlas/include/flashatlas_plugin.h",
    "crates/capi": "crates/capi/include/flashatlas.h",
}
SOURCES = {"crates/plugin": ["src/abi.rs"], "crates/capi": ["src/abi.rs", "src/calls.rs"]}


@pytest.mark.parametrize("of", HEADERS)
def test_no_header_was_left_behind_or_written_by_hand(of):
    above, sep, last = (ROOT / HEADERS[of]).read_text().rpartition("\n/* Digest of ")
    assert sep, "a header ends with a digest"
    made = hashlib.sha256()
    for name in (*SOURCES[of], "cbindgen.toml"):
        made.update((ROOT / of / name).read_bytes())
    made.update(above.encode())
    kept = last.removesuffix(" */\n").split()[-1]
    assert kept == made.hexdigest(), "`make header` makes it anew"
