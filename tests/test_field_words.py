"""Words of the field that FlashAtlas replaces by others or does not model: it explains them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import flashatlas
from flashatlas.cli import explain, field_words
from flashatlas.report.glossary import TERMS
from flashatlas.results.frame import leaves

DOCS = Path(__file__).parents[1] / "docs"


def test_what_is_called_otherwise_is_there() -> None:
    run = flashatlas.run("tiny", workload="uniform:requests=2000,size=2KiB,read=0.5")
    keys, numbers = explain.keys(), dict(leaves("", run.record))
    for word, (kind, called) in field_words.CALLED.items():
        holders = {"key": keys, "number": numbers, "term": TERMS}[kind]
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
    assert "plc is not modelled" in cli("explain", "plc").stdout
    assert "mlc`?" not in cli("explain", "plc").stdout
    assert "ftl.slc" in cli("explain", "turbowrite").stdout
    assert "FEMU has it" in cli("explain", "ZNS").stdout
    refused = cli("simulate", "-d", "tiny")
    assert refused.returncode == 2
    assert "`simulate` is called `run` here" in refused.stderr
    assert cli("explain", "retentoin").returncode == 2


def test_a_number_is_explained_by_its_meaning(cli: Any) -> None:
    for called, term in field_words.MEANING.items():
        assert ("number", called) in field_words.CALLED.values() and term in TERMS
    assert {c for kind, c in field_words.CALLED.values() if kind == "number"} == {
        *field_words.MEANING
    }
    assert "bytes of all pages programmed over" in cli("explain", "waf").stdout
    assert "99 of 100 requests" in cli("explain", "p99").stdout


def test_every_term_of_the_glossary_is_explained(cli: Any) -> None:
    for name, meaning in TERMS.items():
        found = cli("explain", name)
        assert found.returncode == 0, name
        assert " ".join(meaning.split()[:3]) in found.stdout, name
    assert "The dies and planes" in cli("explain", "lanes").stdout


def test_every_value_of_a_key_is_explained(cli: Any) -> None:
    keys = {
        key: found.about["range"].split(", ")
        for key, found in explain.keys().items()
        if found.about["range"] not in ("text", "true, false")
    }
    words = {value for values in keys.values() for value in values if value.isalpha()}
    assert {"dual", "paced", "slc", "lru"} <= words
    for word in words:
        assert cli("explain", word).returncode == 0, word
    assert "ftl.gc_mode=dual" in cli("explain", "dual").stdout


def test_words_of_the_tables_are_explained(cli: Any) -> None:
    for word in ("numbers are steady", "not-steady", "unsteady"):
        assert "would stay as they are" in cli("explain", word).stdout, word
    assert "what it is" in cli("explain", "streams").stdout


def test_a_word_that_is_like_nothing_is_not_taken_for_a_slip(cli: Any) -> None:
    for word in ("lamp", "dim", "trip", "umbrella", "not-sure"):
        found = cli("explain", word)
        assert found.returncode == 2 and "did you mean" not in found.stderr, word
    for slip, meant in {"greddy": "greedy", "map.cache_byte": "map.cache_bytes"}.items():
        assert f"did you mean `{meant}`" in cli("explain", slip).stderr, slip
