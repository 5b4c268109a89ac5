"""Traces from tables of Arrow and Parquet, and from standard input; and reuse."""

from __future__ import annotations

import json
import subprocess
import sys

import flashatlas
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

SPEC = "columns:time=when:iso,op=op,offset=lba:sectors,size=len:bytes,delimiter=tab,header=1"

TABLE = pa.table(
    {
        "when": pa.array([1_700_000_000_000_000, 1_700_000_000_250_000], pa.timestamp("us")),
        "op": pa.array(["W", "R"]).dictionary_encode(),
        "lba": pa.array([8, 16], pa.uint64()),
        "len": pa.array([4096, 512], pa.int32()),
        "path": pa.array([["a"], ["b", "c"]]),
    }
)
"""Two requests, a quarter of a second apart, and a column that no specification can name."""

ROWS = [
    {"time_ps": 0, "op": "write", "offset": 4096, "bytes": 4096, "fua": 0, "device": 0},
    {"time_ps": 25 * 10**10, "op": "read", "offset": 8192, "bytes": 512, "fua": 0, "device": 0},
]


def rows(source, **options):
    return flashatlas.Trace(source, **options).to_arrow().to_pylist()


def written(table, path):
    """Write the table to a file, in the format of its name."""
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    elif path.suffix == ".feather":
        pa.feather.write_feather(table, str(path))
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
    return path


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrows"])
def test_files_of_tables_hold_the_same_requests(name, tmp_path):
    path = written(TABLE, tmp_path / name)
    assert rows(path, format=SPEC) == ROWS
    with pytest.raises(flashatlas.InputError) as caught:
        rows(path)
    assert f"`{SPEC}`" in str(caught.value), "the guess is this specification"


def test_tables_in_memory_hold_the_same_requests():
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(1))
    for source in (TABLE, reader, pl.from_arrow(TABLE.drop(["path"]))):
        trace = flashatlas.Trace(source, format=SPEC)
        # a run reads a trace more than once
        assert trace.info()["requests"] == 2 and trace.to_arrow().to_pylist() == ROWS
    with pytest.raises(flashatlas.InputError, match="a trace is a path, an Arrow table"):
        flashatlas.Trace(7)


def test_many_rows_come_in_many_pieces():
    count = 100_000
    table = pa.table({"lba": pa.array(range(count)), "len": pa.array([1] * count)})
    trace = flashatlas.Trace(
        # a table has names of columns: header and delimiter are not needed
        table,
        format="columns:offset=lba:sectors,size=len:sectors",
    )
    found = trace.to_arrow()
    assert found.num_rows == count
    assert found["offset"].to_pylist() == [512 * lba for lba in range(count)]


def test_faults_of_tables_name_the_row(tmp_path):
    table = TABLE.set_column(2, "lba", pa.array([8, None], pa.uint64()))
    with pytest.raises(
        flashatlas.InputError, match="3:30: an empty field; the reader expects an offset"
    ):
        rows(table, format=SPEC)
    damaged = tmp_path / "t.parquet"
    damaged.write_bytes(b"PAR1" + b"\0" * 100)
    with pytest.raises(flashatlas.InputError, match=r"t\.parquet: the table cannot be read"):
        rows(damaged)


def test_a_run_of_a_table_says_that_nobody_kept_it(tmp_path):
    first, second = (
        flashatlas.run("tiny", trace=flashatlas.Trace(TABLE, format=SPEC)) for _ in range(2)
    )
    assert first.record == second.record and first.record["trace"]["path"].startswith("table:")
    first.save(tmp_path / "run")
    with pytest.raises(flashatlas.InputError, match=r"came from a table .*, which was not kept"):
        flashatlas.rerun(flashatlas.Result.load(tmp_path / "run"))


def test_a_run_of_parquet_runs_again_and_packs(tmp_path):
    trace = flashatlas.Trace(written(TABLE, tmp_path / "t.parquet"), format=SPEC)
    flashatlas.run("tiny", trace=trace).save(tmp_path / "run")
    result = flashatlas.Result.load(tmp_path / "run")
    assert flashatlas.rerun(result).record == result.record
    flashatlas.bundle([result], tmp_path / "all.zip")
    written(TABLE.slice(0, 1), tmp_path / "t.parquet")
    with pytest.raises(flashatlas.InputError, match="this is not the file that the run read"):
        flashatlas.bundle([result], tmp_path / "all.zip")


def test_standard_input_is_read_as_often_as_a_run_needs(tmp_path):
    text = "".join(f"0,{8 * i},4096,w,{i}\n" for i in range(50))
    command = [sys.executable, "-m", "flashatlas", "run", "-d", "tiny", "--trace", "-"]
    done = subprocess.run(
        [*command, "--fit", "compact", "--json", "-", "--quiet", "--out", str(tmp_path / "run")],
        input=text, capture_output=True, text=True, check=True,
    )  # fmt: skip
    trace = json.loads(done.stdout)["trace"]
    assert (trace["path"], trace["requests"], trace["format"]) == ("-", 50, "spc")
    with pytest.raises(flashatlas.InputError, match="came from standard input"):
        flashatlas.rerun(flashatlas.Result.load(tmp_path / "run"))


def test_traces_stand_side_by_side(cli, tmp_path):
    for name, count in (("a.spc", 3), ("b.spc", 5)):
        (tmp_path / name).write_text("".join(f"0,{8 * i},4096,w,{i}\n" for i in range(count)))
    paths = [str(tmp_path / name) for name in ("a.spc", "b.spc")]
    shown = cli("trace", "info", *paths).stdout
    head, *lines = shown.splitlines()
    assert head.split() == ["a.spc", "b.spc"]
    assert any(line.split()[:2] == ["requests", "3"] and " 5 in 4.0 s" in line for line in lines)
    assert [
        found["requests"]
        for found in json.loads(cli("trace", "info", *paths, "--json", "-").stdout)
    ] == [3, 5]


def test_reuse_says_which_cache_holds_the_map(cli, tmp_path):
    # two map pages in turn, ten times: a cache of one page always misses, a cache of two holds both
    path = tmp_path / "turn.spc"
    path.write_text("".join(f"0,{8192 * (i % 2)},4096,w,{i}\n" for i in range(20)))
    found = json.loads(cli("trace", "reuse", str(path), "--json", "-").stdout)
    assert found["map_pages"]["curve"] == [[1, 1.0], [2, 0.1]]
    assert found["entries"] == 1024 and found["map_entries"]["distinct"] == 2
    assert found["updates"]["intervals"] == [[2, 1.0]]
    shown = cli("trace", "reuse", str(path)).stdout
    assert "8.0 KiB" in shown and "10.0 %" in shown and "95.0 % within 2" in shown
    one = json.loads(cli("trace", "reuse", str(path), "--map-page", "8KiB", "--json", "-").stdout)
    assert one["map_pages"]["curve"] == [[1, 0.05]], "2,048 entries: one map page for both"
