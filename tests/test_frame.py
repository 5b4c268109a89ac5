"""Runs as a table, and figures made of it."""

from __future__ import annotations

import csv
import json
import re

import flashatlas
import polars
import pyarrow.parquet as pq
import pytest
from flashatlas import InputError
from flashatlas.figure import vega_lite
from flashatlas.frame import table_of
from flashatlas.sweep.summary import write_summary

WRITES = "uniform:requests=3000,size=2KiB"


@pytest.fixture(scope="module")
def runs() -> list[flashatlas.Result]:
    """Two policies, two times of a program, two seeds."""
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
    shown = frame._repr_html_()
    assert "<th>timing.t_program (ns)</th>" in shown and "8 runs" in shown
    with pytest.raises(flashatlas.InputError, match=r"`ftl.victm` is no column .*`ftl.victim`"):
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


def points(specification):
    return [(v["x"], v["y"], v.get("by")) for v in specification["data"]["values"]]


def test_a_figure_holds_every_run(runs):
    frame = flashatlas.frame(runs)
    drawn = vega_lite(
        frame, "timing.t_program", "latency_ns.write.mean", "ftl.victim", None, 241, "line", None
    )
    means = [row["latency_ns.write.mean"] / 1e6 for row in frame.rows()]
    # the shortest time is 200 us: the axis is in microseconds
    times = [200, 200, 1000, 1000] * 2
    assert points(drawn) == list(zip(times, means, ["greedy"] * 4 + ["random"] * 4, strict=True))
    assert drawn["layer"][0]["encoding"]["x"]["title"] == "timing.t_program (µs)"
    assert drawn["layer"][0]["encoding"]["y"]["title"] == "write latency, mean (ms)"


@pytest.mark.parametrize("kind", ["line", "point", "bar"])
def test_figures_are_files_of_their_kind(runs, tmp_path, kind):
    for suffix, begin in {".svg": b"<svg", ".pdf": b"%PDF", ".png": b"\x89PNG"}.items():
        path = flashatlas.figure(
            runs, tmp_path / f"f{suffix}", x="timing.t_program", y="waf", by="ftl.victim", kind=kind
        )
        assert path.read_bytes().startswith(begin)
    width = float(re.search(r'width="([\d.]+)', (tmp_path / "f.svg").read_text())[1])
    assert 200 < width <= 260, "as wide as a column"


def test_figures_that_cannot_be_drawn_say_why(runs, tmp_path):
    def refused(**changes):
        options = {"x": "timing.t_program", "y": "waf", **changes}
        with pytest.raises(flashatlas.InputError) as caught:
            flashatlas.figure(runs, options.pop("path", tmp_path / "f.pdf"), **options)
        return str(caught.value)

    assert "ends in .pdf, .svg, .png" in refused(path=tmp_path / "f.gif")
    assert "did you mean `waf`" in refused(y="wav")
    assert "`drive` is no number" in refused(y="drive")
    assert "kind `pie` is not known" in refused(kind="pie")
    assert not list(tmp_path.iterdir())


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
    rows = [
        ({"ftl.victim": victim, "seed": seed}, {"waf": base + 0.1 * seed})
        for victim, base in zip(victims, (1.0, 2.0), strict=True)
        for seed in (1, 2, 3)
    ]
    return flashatlas.Frame(table_of(rows))


def test_bars_are_intervals_of_means_where_they_are_asked_for():
    drawn = vega_lite(of_seeds(), "ftl.victim", "waf", None, None, 241, "point", None, "interval")
    greedy, _ = drawn["data"]["values"]
    # three values 0.1 apart: their mean, and 4.3027 (t of 2 degrees) times 0.1 over the root of 3
    assert greedy["y"] == pytest.approx(1.2)
    assert greedy["high"] - greedy["y"] == pytest.approx(4.302653 * 0.1 / 3**0.5, rel=1e-6)
    assert drawn["layer"][-1]["encoding"]["y2"] == {"field": "high"}


def test_an_interval_over_more_than_seeds_is_refused():
    with pytest.raises(InputError, match=r"the runs of a point differ in ftl\.victim as well"):
        vega_lite(of_seeds(), "seed", "waf", None, None, 241, "point", None, "interval")


def test_a_table_of_means_is_latex_or_csv(tmp_path):
    runs = of_seeds(("a_b & c", "50 %"))
    text = write_summary(tmp_path / "t.tex", runs, ["waf"]).read_text()
    assert r"a\_b \& c & 1.2 $\pm$ 0.2484 \\" in text and r"50 \% & 2.2" in text
    assert text.count(r"\\") == 3 and r"ftl.victim & Write amplification \\" in text
    rows = write_summary(tmp_path / "t.csv", runs, ["waf"]).read_text().splitlines()
    assert rows[0] == "ftl.victim,runs,waf.mean,waf.low,waf.high"
    name, count, mean, low, high = rows[1].split(",")
    assert (name, count) == ("a_b & c", "3")
    assert float(high) - float(mean) == pytest.approx(float(mean) - float(low))
    with pytest.raises(InputError, match=r"ends in \.tex, \.csv"):
        write_summary(tmp_path / "t.doc", runs, ["waf"])
