"""Traces from the command line and Python: shown, converted, cut, and refused."""

from __future__ import annotations

import json

import flashatlas
import pytest

SPC = "".join(f"{i % 2},{8 * i},4096,{'wr'[i % 3 == 0]},{i * 0.25:.2f}\n" for i in range(40))
"""Forty requests of 4 KiB in ten seconds, on two units in turn; every third request is a read."""


@pytest.fixture
def spc(tmp_path):
    path = tmp_path / "forty.spc"
    path.write_text(SPC)
    return path


def rows(path, **options):
    return flashatlas.Trace(path, **options).to_arrow().to_pylist()


def test_info_shows_what_there_is(cli, spc):
    shown = cli("trace", "info", str(spc)).stdout
    for words in (
        "spc",
        "40 in 9.8 s",
        "14 (35.0 %)",
        "2: 0 = 0, 1 = 1",
        "burstiness",
        "working set",
        "up to   4.0 KiB",
    ):
        assert words in shown, words
    assert "jump" not in shown and "bad records" not in shown, "no jumps, no bad records"


def test_stats_are_json_with_every_measure(cli, spc):
    stats = json.loads(cli("trace", "stats", str(spc)).stdout)
    assert (stats["requests"], stats["reads"], stats["writes"], stats["devices"]) == (40, 14, 26, 2)
    assert stats["footprint_bytes"] == 40 * 4096 and stats["overwrite_ratio"] == 1.0
    assert sum(stats["intervals"]["requests"]) == 40
    assert stats["sizes"]["write"] == [[4096, 26]]
    assert stats["compacted_bytes"] == 2 << 20, "an extent of each address space"


def test_requests_of_one_instant_carry_times(cli, tmp_path):
    path = tmp_path / "same.csv"
    path.write_text("5,R,0,4096\n5,R,4096,4096\n5,R,8192,4096\n")
    columns = "op=1,offset=2:bytes,size=3:bytes"
    timed = cli("trace", "info", str(path), "--format", f"columns:time=0:us,{columns}").stdout
    assert "3 in 0.0 s" in timed and "it has no times" not in timed
    untimed = cli("trace", "info", str(path), "--format", f"columns:{columns}").stdout
    assert "it has no times" in untimed, "the format names no column of times"


def test_device_maps(spc):
    assert {row["device"] for row in rows(spc)} == {0, 1}
    assert {row["device"] for row in rows(spc, device_map="collapse")} == {0}
    second = rows(spc, device_map="select:1")
    assert (
        len(second) == 20
        and second[0]["offset"] == 4096
        and {row["device"] for row in second} == {0}
    )
    for bad in ("merge", "select:x", "select:"):
        with pytest.raises(flashatlas.InputError, match="select"):
            rows(spc, device_map=bad)


def test_info_says_what_to_do(cli, tmp_path):
    (tmp_path / "phone.spc").write_text(
        "0,0,4096,w,0.000\n0,0,4096,w,0.004\n0,8,4096,w,200000\n1,8,4096,w,200001\n"
    )
    shown = " ".join(cli("trace", "info", "phone.spc").stdout.split())
    for words in (
        "repeats within 5 ms 1",
        "--drop-duplicates 5ms",
        "--time-gap-max",
        "select:N",
        "by +200,000 s at 3:1",
    ):
        assert words in shown, words
    run = flashatlas.run(trace=tmp_path / "phone.spc", fit="wrap")
    assert any(
        "the clock of the trace jumps, first by +200000 s at 3:1" in note["text"]
        for note in run.record["approximations"]
    )


def test_repeats_and_pauses(tmp_path):
    path = tmp_path / "phone.spc"
    path.write_text(
        "0,0,4096,w,0.000\n0,0,4096,w,0.004\n0,0,4096,w,0.010\n"
        "0,8,4096,w,100000000\n0,16,4096,w,100000001\n"
    )
    with pytest.raises(flashatlas.InputError, match=r"phone.spc:4:12: .*`time_gap_max`"):
        rows(path)
    times = [row["time_ps"] / 1e12 for row in rows(path, time_gap_max="2s", drop_duplicates="5ms")]
    assert times == [0.0, 0.01, 2.01, 3.01]
    done = flashatlas.Trace(path, time_gap_max="2s", drop_duplicates="5ms").convert(
        tmp_path / "clean.fatr"
    )
    assert (
        done["records"],
        done["account"]["duplicates_dropped"],
        done["account"]["gaps_cut"],
    ) == (4, 1, 1)
    run = flashatlas.run(
        trace=flashatlas.Trace(path, time_gap_max="2s", drop_duplicates="5ms"), mode="open"
    )
    assert (run.record["trace"]["duplicates_dropped"], run.record["trace"]["gaps_cut"]) == (1, 1)
    notes = " ".join(note["text"] for note in run.record["approximations"])
    assert (
        "1 records that repeated the previous record within 5ms were dropped" in notes
        and "pauses were cut to 2s" in notes
    )


@pytest.mark.parametrize(
    "name", ["copy.fatr", "copy.csv", "copy.spc.gz", "copy.mqsim.zst", "copy.fatr.xz"]
)
def test_a_copy_has_the_same_requests(cli, tmp_path, spc, name):
    done = cli("trace", "convert", str(spc), name)
    assert done.returncode == 0 and "40 requests" in done.stdout, done.stderr
    # a trace in MQSim's format looks like two other formats
    given = "mqsim" if "mqsim" in name else None
    assert rows(tmp_path / name, format=given) == rows(spc)


def test_what_a_format_cannot_hold_is_refused_or_counted(cli, tmp_path, spc):
    refused = cli("trace", "convert", str(spc), "copy.load")
    assert refused.returncode == 2 and "record 2: " in refused.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["forty.spc"], "nothing half-written"
    lossy = cli("trace", "convert", str(spc), "copy.load", "--lossy")
    assert lossy.returncode == 0 and "devices dropped: 20" in lossy.stdout
    assert len(rows(tmp_path / "copy.load")) == 20
    unnamed = cli("trace", "convert", str(spc), "copy.xyz")
    assert unnamed.returncode == 2 and ".fatr (atlas)" in unnamed.stderr


def test_slices(cli, tmp_path, spc):
    whole = rows(spc)
    cli("trace", "convert", str(spc), "all.fatr")
    for source in (str(spc), "all.fatr"):
        done = cli(
            "trace",
            "slice",
            source,
            "part.csv",
            "--from",
            "2s",
            "--to",
            "4s",
            "--skip",
            "1",
            "--count",
            "5",
        )
        assert done.returncode == 0, done.stderr
        part = rows(tmp_path / "part.csv")
        assert [row["offset"] for row in part] == [row["offset"] for row in whole[9:14]], source
        assert part[0]["time_ps"] == 0 and part[1]["time_ps"] == 250_000_000_000
    nothing = cli("trace", "slice", str(spc), "none.csv", "--from", "1h")
    assert (
        nothing.returncode == 2
        and "holds no request" in nothing.stderr
        and not (tmp_path / "none.csv").exists()
    )
    wrong = cli("trace", "slice", str(spc), "none.csv", "--from", "5")
    assert wrong.returncode == 2 and "has no unit" in wrong.stderr


def test_a_trace_that_does_not_say_what_it_does(cli, tmp_path):
    (tmp_path / "P9.lis").write_text("".join(f"{100 * i} 1 0 {i}\n" for i in range(20)))
    shown = cli("trace", "info", "P9.lis").stdout
    assert "! it has no times" in shown and "! its requests name no operation" in shown
    assert "does not say" not in cli("trace", "info", "P9.lis", "--assume-op", "write").stdout
    base = ("run", "--trace", "P9.lis", "--quiet")
    refused = cli(*base)
    assert refused.returncode == 2 and "--assume-op" in refused.stderr
    open_loop = cli(*base, "--assume-op", "write", "--mode", "open")
    assert open_loop.returncode == 2 and "carries no times" in open_loop.stderr
    record = json.loads(cli(*base, "--assume-op", "write", "--json", "-").stdout)
    assert record["host"]["writes"] == 20
    assert any(
        "all requests were read as writes" in note["text"] for note in record["approximations"]
    )


def test_any_delimited_text_by_its_columns(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("when|what|where|len\n10|W|4096|8\n30|R|8192|16\n")
    spec = "columns:time=when:us,op=what,offset=where:bytes,size=len:sectors,delimiter=|,header=1"
    first, second = rows(path, format=spec)
    assert (first["op"], first["offset"], first["bytes"], second["time_ps"]) == (
        "write",
        4096,
        4096,
        20_000_000,
    )
    assert second == {
        "time_ps": 20_000_000,
        "op": "read",
        "offset": 8192,
        "bytes": 8192,
        "fua": 0,
        "device": 0,
    }


def test_batches_are_the_whole_in_pieces(spc):
    pieces = list(flashatlas.Trace(spc).batches(7))
    assert [piece.num_rows for piece in pieces] == [7, 7, 7, 7, 7, 5]
    assert [row for piece in pieces for row in piece.to_pylist()] == rows(spc)
    assert flashatlas.Trace(spc).to_arrow(limit=9).num_rows == 9


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--drop-duplicates", "5"], "drop-duplicates: `5`: `5` has no unit"),
        (["--time-gap-max", "0s"], "must be above 0"),
        (["--assume-op", "erase"], "assume-op: `erase` is not known (allowed: read, write, trim)"),
        (["--assume-op", "read"], "already names the operation of each record"),
        (["--device-map", "colapse"], "did you mean `collapse`?"),
        (["--format", "colums:time=0:us"], "did you mean `columns`?"),
        (["--format", "msr"], "forty.spc:1:1: "),
    ],
)
def test_mistaken_options_are_named(cli, spc, options, expected):
    done = cli("run", "--trace", str(spc), *options)
    assert done.returncode == 2 and expected in " ".join(done.stderr.split()), done.stderr


def test_a_slice_of_cut_pauses_is_the_same_by_index_and_from_the_start(tmp_path):
    # after a pause of 1000 s, which is cut to 1 s, requests are a millisecond apart. From request
    # 65,536 on, which begins the second block of the compact format, they are a second apart:
    # request i is at 66.534 + (i - 65,535) s, which is 2000 s at i = 67,468.466
    def at(i: int) -> int:
        return 10_000 * (1_000_000 * (i > 0) + min(i, 65_535) + 1000 * max(i - 65_535, 0))

    path = tmp_path / "long.csv"
    path.write_text("".join(f"{at(i)},host,0,Write,{4096 * i},4096,0\n" for i in range(70_000)))
    flashatlas.Trace(path).convert(tmp_path / "long.fatr")
    for name in ("long.csv", "long.fatr"):
        trace = flashatlas.Trace(tmp_path / name, time_gap_max="1s")
        trace.convert(tmp_path / "part.csv", start="2000s")
        assert [row["offset"] // 4096 for row in rows(tmp_path / "part.csv")] == list(
            range(67_469, 70_000)
        ), name


def test_times_that_a_column_cannot_hold_are_an_error(tmp_path):
    # 127 days; 2^63 ps are 106.75 days
    path = tmp_path / "far.csv"
    path.write_text("0,host,0,Write,4096,4096,0\n110000000000000,host,0,Write,8192,4096,0\n")
    with pytest.raises(
        flashatlas.InputError, match=r"far.csv: a request is 127 days .* " r"ends after 106 days"
    ):
        flashatlas.Trace(path).to_arrow()
