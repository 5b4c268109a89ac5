"""Broken input from others: exit code 2, the place, and what was expected there.

Exit code 1 means that a result differs, so no traceback may end with exit code 1.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flashatlas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ONE_IN, ROOT
from flashatlas import InputError, untrusted
from flashatlas.results.result import Result
from flashatlas.sweep.condition import Condition
from flashatlas.sweep.store import Store

DEEP = "[" * 100_000 + "]" * 100_000
COMMANDS = ("rerun", "report", "table", "diff", "cite", "bundle")

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    flashatlas.run("tiny", workload="uniform:requests=30,size=2KiB").save(tmp_path / "x")
    return tmp_path / "x"


def changed(folder: Path, change: Change) -> None:
    file = folder / "run.json"
    record = json.loads(file.read_text())
    change(record)
    file.write_text(json.dumps(record))


def refused(cli: Any, *arguments: str) -> str:
    """Return the one message about an input that is refused with exit code 2."""
    done = cli(*arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr, (arguments, done)
    assert done.stderr.count("error:") == 1
    return str(done.stderr)


def every(cli: Any, folder: Path) -> set[str]:
    """Return the messages of all commands about a folder that they refuse."""
    arguments = {name: [str(folder)] * (2 if name == "diff" else 1) for name in COMMANDS}
    return {refused(cli, name, *given) for name, given in arguments.items()}


def test_json_that_is_nested_deeply(cli: Any, run: Path) -> None:
    whole = (run / "run.json").read_text()
    (run / "run.json").write_text(DEEP)
    said = (
        f"error: {run}/run.json: damaged: the content is nested too deeply; it must be a "
        f"run record\n"
    )
    assert every(cli, run) == {said}
    (run / "run.json").write_text(whole)
    (run / "made.json").write_text(DEEP)
    assert all(f"{run}/made.json: damaged: the content is nested" in one for one in every(cli, run))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("config.drive", True, "config.drive is true, but must be a text"),
        ("config.precondition", 3, "config.precondition is 3, but must be"),
        ("config.params.ftl.scheme", [], "config.params.ftl.scheme is [], but must be a text or"),
        ("trace.requests", "9", 'trace.requests is "9", but must be a whole number'),
        ("trace.requests", False, "trace.requests is false, but must be a whole number"),
        ("trace.parts", [{"path": "x"}], "trace.parts.0.digest is missing"),
        ("parts", [{"name": "mine"}], "parts.0.digest is missing"),
        ("nand", {"reads": []}, "nand.erases is missing"),
        ("oracle.violations", None, "oracle.violations has the wrong type"),
        ("seed", 2**64, "a number with 20 digits does not fit into 64 bits"),
        ("seed", 1.5, "seed is 1.5, but must be a whole number"),
        ("label", {}, "label is {}, but must be a text"),
    ],
)
def test_a_key_of_a_record_that_is_not_what_it_should_be(
    cli: Any, run: Path, key: str, value: Any, said: str
) -> None:
    def change(record: dict[str, Any]) -> None:
        first, _, rest = key.partition(".")
        inside = record
        if rest:
            inside = record[first]
            if rest.startswith("params."):
                inside, rest = inside["params"], rest.removeprefix("params.")
        inside[rest or first] = value

    changed(run, change)
    found = every(cli, run)
    assert len(found) == 1 and said in found.pop() and f"{run}/run.json" in refused(
        cli, "rerun", str(run)
    )  # fmt: skip


def test_a_part_without_its_kind(cli: Any, run: Path) -> None:
    part = {"name": "a", "distribution": "b", "version": "1", "digest": "sha256:0"}
    changed(run, lambda record: record.update(parts=[part]))
    assert "parts.0.kind is missing" in refused(cli, "rerun", str(run))


def test_what_no_text_and_no_number_is(cli: Any, run: Path) -> None:
    for text, why in (
        ('"\\ud800"', "a character is cut in half"),
        ("NaN", "NaN is not JSON"),
        ("1e999", "1e999 is too large for a number"),
        ("9" * 5000, "a number with 5000 digits does not fit into 64 bits"),
    ):
        whole = json.loads((run / "run.json").read_text())
        whole["version"] = "HERE"
        (run / "run.json").write_text(json.dumps(whole).replace('"HERE"', text))
        assert why in refused(cli, "report", str(run))


def test_a_record_that_was_changed_where_no_type_helps(cli: Any, run: Path) -> None:
    """Only a page uses the content of the untyped parts of a record (`waf_parts`, `series`, …).

    An error about an unchanged record is a bug, with exit code 70.
    """
    changed(run, lambda record: record.update(steadiness={"reasons": [], "rounds": 7}))
    changed(run, lambda record: record["memory_bytes"].update(tables=[1]))
    said = refused(cli, "report", str(run))
    assert f"{run}/run.json: damaged: the file cannot be used as a run record" in said


def test_a_bug_is_no_bad_input(cli: Any, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> None:
        raise KeyError("kind")

    monkeypatch.setattr("flashatlas.cli.again.bibtex", wrong)
    done = cli("cite", str(run))
    assert done.returncode == 70 and "This is a bug of FlashAtlas" in done.stderr
    changed(run, lambda record: record["host"].update(writes=31))
    assert "damaged: the file cannot be used" in refused(cli, "cite", str(run))


def test_a_table_that_is_none(cli: Any, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"x": [1]}), run / "latency.parquet")
    assert "damaged: the file cannot be used as a run record" in refused(cli, "report", str(run))
    (run / "series.parquet").write_bytes(b"PAR1" + bytes(40) + b"PAR1")
    assert "series.parquet: not a readable Parquet file" in refused(cli, "report", str(run))
    # a million equal rows take some hundred bytes, and 8 MB once they are read
    pq.write_table(pa.table({"x": pa.array([7] * 1_000_000)}), run / "series.parquet")
    monkeypatch.setattr(untrusted, "UNPACKED_MAX", 1000)
    monkeypatch.setattr(untrusted, "UNPACKED_TIMES", 1)
    assert "series.parquet: " in (said := refused(cli, "report", str(run)))
    assert "bytes that unpack to" in said


@pytest.fixture
def store(cli: Any, tmp_path: Path) -> Path:
    (tmp_path / "s.toml").write_text(
        'name = "s"\n[run]\ndrive = "tiny"\nworkload = "uniform:requests=20,size=2KiB"\n'
        '[axes]\nftl.victim = ["greedy", "fifo"]\n'
    )
    done = cli("sweep", "s.toml", "--store", "kept", "--jobs", "1", "--quiet")
    assert done.returncode == 0, done.stderr
    return tmp_path / "kept"


@pytest.mark.long
def test_a_store_that_is_damaged(cli: Any, store: Path) -> None:
    note = store / "studies/s.json"
    whole = note.read_text()
    for text, said in (
        (DEEP, "damaged: the content is nested too deeply; it must be the notes on a study"),
        ("[]", "damaged: the content is [], but must be an object"),
        ('{"name": "s"}', "damaged: axes is missing"),
        (
            whole.replace('"key": "', '"key": "../../x'),
            "is not a key of a run: a key has 40 digits",
        ),
    ):
        note.write_text(text)
        for command in (("results", "ls"), ("results", "show"), ("results", "gc"), ("table",)):
            assert f"{note}: {said}".partition(" is not a key")[0].split(": ")[0] in (
                found := refused(cli, *command, str(store))
            )
            assert said in found
    note.write_text(whole)
    rows = next((store / "rows").glob("*.parquet"))
    pq.write_table(pa.table({"x": [1]}), rows)
    assert "the file must have a column `key` of string" in refused(
        cli, "results", "ls", str(store)
    )
    rows.unlink()
    key = next(Store.open(store).all_keys())
    entry = Store.open(store).folder(key) / "entry.json"
    entry.write_text(DEEP)
    assert Store.open(store).entry(key) is None, "the run counts as missing"
    (store / "flashatlas-store.json").write_text(DEEP)
    assert "damaged: the content is nested too deeply" in refused(cli, "results", "ls", str(store))


def test_a_study_that_no_parser_survives(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    head = '[run]\nworkload = "uniform:requests=20,size=2KiB"\n'
    for text, said in (
        (f"x = {DEEP}", "s.toml: the text is nested too deeply; it must be TOML"),
        (
            f'exclude = ["{"not " * 100_000}seed"]\n{head}',
            "the condition has 400004 characters, but can have at",
        ),
        (f'exclude = ["{"not " * 1000}seed"]\n{head}', "nested too deeply"),
        (f'exclude = ["-ftl.victim == 1"]\n{head}', "'greedy' is not a number"),
    ):
        file.write_text(text)
        assert said in refused(cli, "sweep", "s.toml", "--dry-run", "--store", "new")


@pytest.mark.parametrize("text", ["1j < 2", "b'x' == seed", "... in [1]", "(" * 300 + "1"])
def test_a_condition_of_things_that_are_no_values(text: str) -> None:
    with pytest.raises(InputError, match="write names, texts, numbers and lists"):
        Condition(text)


@pytest.mark.parametrize("text", ["-[1] == 1", "- 'a' == 1", "[1] < 2"])
def test_a_condition_without_an_order(text: str) -> None:
    with pytest.raises(InputError, match=r"is not a number|cannot be compared"):
        Condition(text).holds(lambda _: 0)


@pytest.mark.parametrize("ends", ["raise SystemExit(0)", "exit()", "raise GeneratorExit"])
def test_a_plugin_that_ends_the_program_does_not_end_it_well(
    cli: Any, tmp_path: Path, ends: str
) -> None:
    (tmp_path / "p.py").write_text(f"{ends}\n")
    few = ("-w", "uniform:requests=5,size=2KiB", "-q")
    assert f"error: {tmp_path}/p.py: " in refused(
        cli, "run", "--plugin", str(tmp_path / "p.py"), *few
    )
    assert not list(tmp_path.glob("*.json"))


def test_a_policy_that_ends_the_program_is_a_part_that_went_wrong(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "from flashatlas import parts\nclass Ends(parts.Victim):\n"
        '    "It ends the program."\n    name = "ends"\n'
        "    def pick(self, lane):\n        raise SystemExit(0)\n"
    )
    with flashatlas.parts.temporary():
        done = cli(
            *("run", "--plugin", str(tmp_path / "p.py"), "--set", "ftl.victim=ends", "-q"),
            *("--precondition", "fill", "-w", "uniform:requests=2000,size=2KiB"),
        )
    assert done.returncode == 5 and "SystemExit" in done.stderr


def test_records_of_runs_have_their_types(run: Path) -> None:
    """A record that a run wrote is not damaged, even if it has a key of a later version."""
    changed(run, lambda record: record.update(later={"new": 1}))
    assert Result.load(run).violations == 0


def readers() -> Any:
    spec = importlib.util.spec_from_file_location("fuzz_readers", ROOT / "fuzz/readers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_readers"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_readers_survive_what_is_changed_at_random(tmp_path: Path) -> None:
    """Try some inputs of `make fuzz`: the first tries of one seed for each reader."""
    tries = 100 if ONE_IN == 1 else 4
    found = readers().fuzz(lambda _, done: done < tries, 7, tmp_path / "found")
    assert found == []
