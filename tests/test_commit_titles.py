"""Titles of commits are judged as CONTRIBUTING says."""

from __future__ import annotations

import pytest
from commit_titles import fault


@pytest.mark.parametrize(
    ("title", "good"),
    [
        ("ftl: keep the room of a lane", True),
        ("docs: say `make demo` takes two minutes", True),
        ("map-stores: write changed pages in order", True),
        ("Keep the room of a lane", False),
        ("ftl, nand: keep the room of a lane", False),
        ("ftl: Keep the room of a lane", False),
        ("ftl: keep the room of a lane.", False),
        ("ftl: keep the room of a lane " + "x" * 44, False),
    ],
)
def test_a_title_is_an_area_and_an_imperative(title, good):
    assert (fault(title) is None) == good
