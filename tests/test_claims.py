"""Every number on the page of claims and on the papers' pages was printed by a run."""

import re
from pathlib import Path

import claims
import pytest

PAPERS = claims.experiments()
COMMANDS = ("flashatlas ", "FLASHATLAS_TRACES", "$ ")


def test_the_page_is_what_was_kept():
    assert claims.PAGE.read_text() == claims.page(), "make claims writes it anew"


@pytest.mark.parametrize(("folder", "found"), PAPERS, ids=lambda x: getattr(x, "name", ""))
def test_every_published_number_has_a_claim(folder: Path, found):
    experiment = claims.tomllib.loads((folder / "experiment.toml").read_text())
    said = " ".join(f"{claim['says']} {claim['published']}" for claim in found.get("claim", []))
    numbers = {float(n) for n in re.findall(r"\d+(?:\.\d+)?", said)}
    numbers |= {n / 100 for n in numbers} | {n * 1024 for n in numbers}

    def of(value):
        if isinstance(value, dict):
            return [n for each in value.values() for n in of(each)]
        if isinstance(value, list):
            return [n for each in value for n in of(each)]
        return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []

    assert {abs(n) for n in of(experiment.get("published", {}))} <= numbers | ALSO.get(
        folder.name, set()
    )
    assert {claim["verdict"] for claim in found.get("claim", [])} <= set(claims.VERDICTS)
    assert all(claim["reason"] for claim in found.get("claim", []))


@pytest.mark.parametrize(("folder", "found"), PAPERS, ids=lambda x: getattr(x, "name", ""))
def test_what_was_chosen_or_built_so_is_not_reproduced(folder: Path, found):
    """By the page's own definitions, a number that was set, assumed or chosen is no evidence."""
    words = ("because the paper says", "chosen", "is built to", "assumed", "It costs")
    for claim in found.get("claim", []):
        if claim["verdict"] == "reproduced":
            assert claim["ours"], claim["says"]
            assert not [word for word in words if word in claim["reason"]], claim["says"]


ALSO = {"1-mast": {2.0}}
"""Published numbers that are no results: the margin of error that the paper names."""


def _rows(folder: Path) -> dict[str, set[str]]:
    """Return the heads and rows of each table, with single blanks."""
    return {
        table["title"]: {" ".join(" ".join(row).split()) for row in [table["head"], *table["rows"]]}
        for table in claims.results(folder)["listings"]
    }


@pytest.mark.parametrize(("folder", "found"), PAPERS, ids=lambda x: getattr(x, "name", ""))
def test_what_was_kept_is_of_this_experiment(folder: Path, found):
    kept = claims.results(folder)
    assert kept["command"] == found["command"]
    assert kept["experiment"] == claims.configuration(folder), "make claims runs it again"


@pytest.mark.parametrize(("folder", "found"), PAPERS, ids=lambda x: getattr(x, "name", ""))
def test_the_tables_of_a_page_are_those_that_were_kept(folder: Path, found):
    tables = _rows(folder)
    every = set().union(*tables.values())
    text = (folder / "README.md").read_text()
    for block in re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        before, rows = "", every
        for line in block.splitlines():
            words = " ".join(line.split())
            titled = [] if before else [title for title in tables if line.startswith(title)]
            # a table with a title has rows of its kept table; any other table has rows of any kept
            # table
            rows = tables[max(titled, key=len)] if titled else rows if words else every
            before = line
            if re.search(r"\d", words) and not titled and not words.startswith(COMMANDS):
                assert words in rows, f"{folder.name}: `{words}` is no row of results.json"


def test_what_is_not_there_is_said():
    kept = {"listings": [{"title": "T", "head": ["", "a"], "rows": [["x", "1"], ["y", "2"]]}]}
    assert claims.select(kept, ["T", "x", "a"]) == "1"
    assert claims.select(kept, ["T", "y", 1]) == "2"
    assert claims.select(kept, ["T", "a"]) == "1, 2"
    for selector, says in (
        (["U", "x", "a"], "no table `U`: there are 'T'"),
        (["T", "z", "a"], "has 0 rows"),
        (["T", "x", "b"], "has no column `b`"),
    ):
        with pytest.raises(LookupError, match=re.escape(says)):
            claims.select(kept, selector)
