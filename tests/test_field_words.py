"""Words that an engineer knows and the command line does not: it says what they are here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import flashatlas
from flashatlas import field_words
from flashatlas.cli import explain
from flashatlas.frame import leaves

DOCS = Path(__file__).parents[1] / "docs"


def test_what_is_called_otherwise_is_there() -> None:
    run = flashatlas.run("tiny", workload="uniform:requests=2000,size=2KiB,read=0.5")
    keys, numbers = explain.keys(), dict(leaves("", run.record))
    for word, (kind, called) in field_words.CALLED.items():
        holders = keys if kind == "key" else numbers
        assert any(one == called or one.startswith(f"{called}.") for one in holders), word
        assert field_words.plain(word) == word


def test_what_is_not_modelled_is_no_name_and_stands_on_its_page() -> None:
    names = set(explain.keys()) | {entry.name for entry in explain.entries()}
    page = (DOCS / "MODELLED.md").read_text()
    for word, (what, _) in field_words.NOT_MODELLED.items():
        assert word not in names, f"{word} is modelled now"
        assert word not in field_words.CALLED
        assert what in page, word


def test_a_word_of_the_field_is_answered_before_spelling(cli: Any) -> None:
    assert "ftl.low_water" in cli("explain", "gc_threshold").stdout
    assert "qlc is not modelled" in cli("explain", "qlc").stdout
    assert "mlc`?" not in cli("explain", "qlc").stdout
    assert "FEMU has it" in cli("explain", "ZNS").stdout
    refused = cli("simulate", "-d", "tiny")
    assert refused.returncode == 2
    assert "`simulate` is called `run` here" in refused.stderr
    assert cli("explain", "retentoin").returncode == 2
