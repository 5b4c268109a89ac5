"""Runs as a table, and figures made of the table."""

from __future__ import annotations

import csv
import json

import flashatlas
import polars
import pyarrow.parquet as pq
import pytest
from flashatlas import InputError
from flashatlas.results.frame import table_of
from flashatlas.sweep.summary import write_summary

WRITES = "uniform:requests=3000,size=2KiB"


@pytest.fixture(scope="module")
def runs() -> list[flashatlas.Result]:
    """Return runs of two policies, two times of a program, two seeds."""
    cases = [
        {
            "label": f"{victim} {time} {seed}",
            "set": {"ftl.victim": victim, "timing.t_program": time},
            "seed": seed,
        }
        for victim in ("greedy", "random")
        for time in ("200us", "1ms")
        for seed in (1, 2)
    ]
    return flashatlas.compare(cases, workload=WRITES, precondition="fill")


def test_factors_are_what_differs(runs):
    frame = flashatlas.frame(runs)
    assert frame.factors == ["seed", "ftl.victim", "timing.t_program"]
    assert frame.column("timing.t_program") == [200_000, 200_000, 1e6, 1e6] * 2
    assert frame.unit("timing.t_program") == "ns" and frame.unit("cache.bytes") == "bytes"
    assert flashatlas.frame(runs[:1]).factors == []


def test_every_number_of_a_record_is_a_column(runs):
    frame, record = flashatlas.frame(runs), runs[3].record
    row = frame.rows()[3]
    assert row["waf"] == record["waf"] and row["label"] == runs[3].label
    assert row["latency_ns.write.p99_9"] == record["latency_ns"]["write"]["p99_9"]
    assert row["nand.programs.gc"] == record["nand"]["programs"]["gc"]
    assert row["steady"] is record["steady"]
    for name, unit in {
        "latency_ns.write.p99": "ns",
        "latency_ns.write.count": "requests",
        "nand.programs.gc": "pages",
        "nand.erases.gc": "blocks",
        "iops": "1/s",
        "bandwidth_bytes_per_s": "bytes/s",
        "memory_bytes.map_dram": "bytes",
        "wear.mean": "erases",
        "utilisation.dies.mean": "share",
        "map.hit_ratio": "share",
        "host.reads": "",
    }.items():
        assert frame.unit(name) == unit, name


def test_frames_go_where_people_work(runs):
    frame = flashatlas.frame(runs)
    assert frame.to_pandas()["waf"].tolist() == frame.to_polars()["waf"].to_list()
    assert polars.DataFrame(frame).shape == (8, frame.table.num_columns)
    # as documented: polars makes a column of records, which unnests to the same table
    records = polars.from_arrow(frame)
    assert records.struct.unnest().equals(polars.from_arrow(frame.table))
    shown = frame._repr_html_()
    assert "<th>timing.t_program (ns)</th>" in shown and "8 runs" in shown
    with pytest.raises(flashatlas.InputError, match=r"`ftl.victm` is not a column .*`ftl.victim`"):
        frame.column("ftl.victm")


def test_what_one_run_lacks_is_null():
    results = [flashatlas.run(workload=WRITES), flashatlas.run(workload=WRITES, mode="untimed")]
    frame = flashatlas.frame(results)
    assert frame.column("iops")[1] is None and frame.column("iops")[0] > 0
    assert "mode" in frame.factors


def test_tables_of_a_run_say_whose_they_are(runs, tmp_path):
    runs[0].save(tmp_path)
    schema = pq.read_schema(tmp_path / "series.parquet")
    assert schema.metadata[b"flashatlas.run"] == b"greedy 200us 1"
    digest = json.loads((tmp_path / "run.json").read_text())["results_digest"]
    assert schema.metadata[b"flashatlas.results_digest"].decode() == digest
    assert schema.field("write_p99_ns").metadata == {b"unit": b"ns"}
    assert schema.field("write_bytes").metadata == {b"unit": b"bytes"}


def test_the_commands_read_folders(cli, tmp_path):
    made = cli(
        *("compare", "-w", WRITES, "--vary", "ftl.victim=greedy,fifo", "--out", "x", "-q"),
    )
    assert made.returncode == 0
    assert cli("figure", "x", "--x", "ftl.victim", "--y", "iops", "-o", "f.svg").returncode == 0
    assert (tmp_path / "f.svg").read_text().startswith("<svg")
    rows = list(csv.DictReader(cli("table", "x").stdout.splitlines()))
    assert [row["ftl.victim"] for row in rows] == ["greedy", "fifo"]
    assert cli("table", "x", "-o", "x.jsonl").returncode == 0
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert [str(line["waf"]) for line in lines] == [row["waf"] for row in rows]
    assert "a table ends in" in cli("table", "x", "-o", "x.xls").stderr


def test_a_number_that_is_called_like_a_parameter_has_a_column_of_its_own():
    table = table_of([({"map.lines": 8}, {"waf": 1.0}), ({}, {"map.lines": 3, "waf": 2.0})])
    assert table["map.lines"].to_pylist() == [8, None]
    assert table["map.lines.found"].to_pylist() == [None, 3]


def of_seeds(victims=("greedy", "fifo")):
    """Return runs with three seeds of each policy; their write amplifications are 0.1 apart."""
    rows = [
        ({"ftl.victim": victim, "seed": seed}, {"waf": base + 0.1 * seed})
        for victim, base in zip(victims, (1.0, 2.0), strict=True)
        for seed in (1, 2, 3)
    ]
    return flashatlas.Frame(table_of(rows))


def test_a_table_of_means_is_latex_or_csv(tmp_path):
    runs = of_seeds(("a_b & c", "50 %"))
    text = write_summary(tmp_path / "t.tex", runs, ["waf"]).read_text()
    # 1.1, 1.2 and 1.3: three are too few for an interval
    assert r"a\_b \& c & 1.2 (1.1--1.3, n = 3) \\" in text and r"50 \% & 2.2" in text
    assert text.count(r"\\") == 3 and r"victim policy & Write amplification \\" in text
    rows = write_summary(tmp_path / "t.csv", runs, ["waf"]).read_text().splitlines()
    numbers = ",".join(f"waf.{end}" for end in ("mean", "low", "high", "least", "most"))
    assert rows[0] == f"ftl.victim,runs,unsteady,worn_out,{numbers}"
    name, count, unsteady, worn_out, mean, low, high, least, most = rows[1].split(",")
    assert (name, count, unsteady, worn_out) == ("a_b & c", "3", "0", "0")
    assert (low, high) == ("", "")
    assert [float(x) for x in (least, mean, most)] == pytest.approx([1.1, 1.2, 1.3])
    with pytest.raises(InputError, match=r"ends in \.tex, \.csv"):
        write_summary(tmp_path / "t.doc", runs, ["waf"])
