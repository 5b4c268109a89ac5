"""A result that somebody edited is not the same result, whatever its digest says."""

from __future__ import annotations

import copy
import json
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import flashatlas
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from flashatlas.results.result import Result
from flashatlas.running.rerun import differences, edited, rerun

NO_RESULT = ("build", "version", "config_hash", "random_streams", "sweep")
"""Parts of a record that are no results: they describe the program and the configuration."""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Return a run with times, tables and notes, read from its folder."""
    folder = tmp_path_factory.mktemp("run")
    flashatlas.run("tiny", workload="uniform:requests=3000,size=2KiB,read=0.3").save(folder)
    return Result.load(folder)


@pytest.fixture(scope="module")
def again(result: Result) -> Result:
    return rerun(result)


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each number in a record."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(inner, (*path, key))
    elif isinstance(value, int | float):
        yield path


def changed(result: Result, path: tuple[Any, ...]) -> Result:
    """Return a result with another number at a path, and with the old digest."""
    record = copy.deepcopy(result.record)
    inner = record
    for key in path[:-1]:
        inner = inner[key]
    old = inner[path[-1]]
    inner[path[-1]] = not old if isinstance(old, bool) else old + 1
    return replace(result, record=record)


def test_every_number_of_a_record_is_compared(result: Result, again: Result) -> None:
    assert differences(result, again) == []
    paths = [path for path in numbers(result.record) if path[0] not in NO_RESULT]
    kinds = {path[0] for path in paths}
    assert {"waf", "latency_ns", "nand", "wear", "approximations", "config"} <= kinds
    for path in paths:
        found = differences(changed(result, path), again)
        # a difference within a list, such as the notes, names the key of the list
        name = ".".join(str(key) for key in path[: 1 if path[0] == "approximations" else None])
        named = [line for line in found if name.startswith(line.split(":")[0])]
        assert len(found) == len(named) == 1, (path, found)


def test_every_table_is_compared(result: Result, again: Result) -> None:
    assert set(result.tables) >= {"series", "latency", "wear"}
    for name, table in result.tables.items():
        at = next(i for i, f in enumerate(table.schema) if pa.types.is_integer(f.type))
        other = table.set_column(at, table.schema.field(at), pc.add(table.column(at), 1))
        falsified = replace(result, tables={**result.tables, name: other})
        assert differences(falsified, again) == [f"table {name}: differs"]
        assert edited(falsified) is not None
        without = {key: one for key, one in result.tables.items() if key != name}
        found = differences(replace(result, tables=without), again)
        assert found == [f"table {name}: missing before"]


def test_a_digest_that_does_not_fit_is_said(result: Result, again: Result) -> None:
    assert edited(result) is None
    said = edited(changed(result, ("waf",)))
    assert said is not None and said.startswith("the record was changed after its run")
    # in another build, the rule of the digest may have changed
    other = changed(result, ("waf",))
    other.record["build"]["sources"] = "sha256:0"
    elsewhere = edited(other)
    assert elsewhere is not None and "or its version computed digests by another rule" in elsewhere
    # without its tables, a digest cannot be made again, but the numbers are still compared
    bare = replace(result, tables={})
    assert edited(bare) is None and differences(bare, again) == []
    found = differences(changed(bare, ("waf",)), again)
    assert [line.split(":")[0] for line in found] == ["waf"]
    # in the same build, a digest alone makes a difference
    record = {**result.record, "results_digest": "sha256:0"}
    (line,) = differences(replace(result, record=record), again)
    assert line.startswith("results_digest: 'sha256:0' before, ")


def test_a_falsified_bundle_is_another_result(cli: Any, result: Result, tmp_path: Path) -> None:
    """Every byte that the host wrote was programmed at least once, so a WAF of 0.5 is false."""
    result.save(tmp_path / "x")
    cli("bundle", "x", "-o", "x.zip")
    assert cli("rerun", "x.zip", "--check", "-q").returncode == 0
    target = tmp_path / "false.zip"
    with zipfile.ZipFile(tmp_path / "x.zip") as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "run.json":
                content = json.dumps({**json.loads(content), "waf": 0.5}).encode()
            new.writestr(name, content)
    with zipfile.ZipFile(target) as archive:
        archive.extractall(tmp_path / "false")
    for path in ("false.zip", "false"):
        found = cli("rerun", path, "--check", "-q")
        assert found.returncode == 1
        assert f"waf: 0.5 before, {result.waf!r} now" in found.stdout
        assert "the record was changed after its run" in found.stdout


def test_a_falsified_comparison_is_another_result(cli: Any, tmp_path: Path) -> None:
    cli("compare", "-d", "tiny", "-w", "uniform:requests=100", "--vary", "ftl.victim=greedy,fifo",
        "--out", "x", "-q")  # fmt: skip
    assert cli("rerun", "x", "--check", "-q").returncode == 0
    file = tmp_path / "x/compare.json"
    content = json.loads(file.read_text())
    content["runs"][1]["host"]["writes"] = 7
    file.write_text(json.dumps(content))
    found = cli("rerun", "x", "--check", "-q")
    assert found.returncode == 1
    assert "compare.json: runs.1.host.writes: 7 there, 100 in 02" in found.stdout
    del content["runs"][1]["trace"]
    file.write_text(json.dumps(content))
    found = cli("rerun", "x/compare.json", "--check", "-q")
    assert found.returncode == 2 and "x/compare.json: damaged: runs.1 must be" in found.stderr
