"""First lines and phrases stay within the goals of CONTRIBUTING; the script finds what it must."""

from __future__ import annotations

import pytest
from plain_english import default_paths, look, opening, texts, with_two_meanings


def test_the_tree_is_within_its_goals():
    findings, counts = look(default_paths())
    lines = [finding for finding in findings if finding.rule in ("opening", "no verb")]
    phrases = [finding for finding in findings if finding.rule == "phrase"]
    assert counts["first lines"] > 8_000 and counts["words"] > 200_000
    assert len(lines) < counts["first lines"] * 0.02, "\n".join(map(str, lines))
    assert len(phrases) < counts["words"] * 6 / 10_000, "\n".join(map(str, phrases))
    assert counts["pale"] <= counts["first lines"] * 0.02


def test_no_text_has_words_with_two_meanings():
    paths = texts()
    findings = with_two_meanings(paths)
    assert len(paths) > 1_000
    assert not findings, "\n".join(map(str, findings))


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("All drives fail at once.", [1]),
        ("At once it ends.", [1]),
        ("    /// They are read at\n    /// once.\n//! And at\n//! once.", [1, 3]),
        ('"they go at \\\n once, and at\nonce"', [1, 2]),
        ("# at\n# once", [1]),
        ("at_once(); // `at once` is a rule; so it is not at one time, and that once", []),
    ],
)
def test_words_with_two_meanings_are_found_over_ends_of_lines(tmp_path, text, places):
    path = tmp_path / "a.rs"
    path.write_text(text, encoding="utf-8")
    assert [found.line for found in with_two_meanings([path])] == places


@pytest.mark.parametrize(
    ("text", "kind", "rule"),
    [
        ("What a unit holds.", "", "opening"),
        ("Whether the block is free.", "fn", "opening"),
        ("The free blocks of a lane.", "fn", "no verb"),
        ("Take a block.", "fn", "no verb"),
        ("Bytes of a unit.", "fn", "no verb"),
        ("Bytes of a unit.", "", None),
        ("Returns the free blocks of a lane.", "fn", None),
        ("A page that is read twice is counted once.", "test", None),
    ],
)
def test_a_first_line_is_judged_by_its_first_word(text, kind, rule):
    assert opening(text, kind) == rule


def test_phrases_are_found_in_what_people_read_and_not_in_code(tmp_path):
    source = tmp_path / "a.rs"
    source.write_text(
        "/// Returns the pages, at most so many.\n"
        "///\n"
        "/// It is like that of the drive.\n"
        'fn a() { let so_many = "so many"; }\n',
        encoding="utf-8",
    )
    document = tmp_path / "a.md"
    document.write_text("Those of it.\n\n```text\nso many\n```\n", encoding="utf-8")
    findings, counts = look([source, document])
    assert [(one.path.name, one.line) for one in findings] == [
        ("a.rs", 1),
        ("a.rs", 3),
        ("a.md", 1),
    ]
    assert counts["first lines"] == 1
