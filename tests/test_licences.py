"""The code in the native module may be distributed, and its licences go with it."""

from __future__ import annotations

import re
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "packaging"))
import licences

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ALLOWED = set(tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))["licenses"]["allow"])


def acceptable(expression: str) -> bool:
    """Return `True` if an SPDX expression offers a choice that is allowed."""
    tokens = re.findall(r"\(|\)|\bAND\b|\bOR\b|/|[\w.+-]+(?: WITH [\w.-]+)?", expression)
    names = {"AND": "and", "OR": "or", "/": "or", "(": "(", ")": ")"}
    return bool(eval(" ".join(names.get(token, str(token in ALLOWED)) for token in tokens)))


@pytest.fixture(scope="module")
def packages():
    return licences.linked(licences.metadata())


def test_every_linked_crate_has_an_allowed_licence(packages):
    assert len(packages) > 30, "the crates that are linked were not found"
    assert [p["name"] for p in packages if not acceptable(p["license"] or "")] == []


def test_expressions_are_read_as_spdx():
    assert acceptable("MIT OR LGPL-2.1-or-later") and acceptable("(MIT OR GPL-3.0) AND Unicode-3.0")
    assert not acceptable("MIT AND GPL-3.0") and not acceptable("GPL-2.0") and acceptable("MIT/X")
    assert acceptable("Apache-2.0 WITH LLVM-exception") and not acceptable(
        "GPL WITH LLVM-exception"
    )


def test_the_texts_of_libraries_in_c_go_along(packages):
    document = licences.document(packages)
    for name, words in (("zstd-sys", "Meta Platforms"), ("liblzma-sys", "liblzma")):
        assert name in document and words in document, name
    assert "GNU GENERAL PUBLIC LICENSE" not in document, "no crate is taken under it"
    assert not [p["name"] for p in packages if f"\n{p['name']} {p['version']}: " not in document]
