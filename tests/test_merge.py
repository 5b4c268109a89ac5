"""Several traces on one drive, merged by time: ``merge:FILE,key=value;FILE``."""

import json
import shutil
import zipfile
from pathlib import Path

import flashatlas
import pytest
from flashatlas import InputError, Trace
from flashatlas.foreign import job_file, trace_name
from flashatlas.results.result import Result
from flashatlas.running.bundle import bundle
from flashatlas.running.rerun import differences, rerun
from flashatlas.running.unpacking import unpack
from flashatlas.sweep import load
from flashatlas.sweep.archive import _read_by
from flashatlas.sweep.plan import planned

MIB = 1 << 20

US = 1_000_000
"""Picoseconds."""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Write two traces of MQSim's form: nanoseconds, device, sector, sectors, 1 = read."""
    monkeypatch.chdir(tmp_path)
    # three writes and a read, a millisecond apart, up to sector 24
    (tmp_path / "a.log").write_text("0 0 0 8 0\n1000000 0 8 8 0\n2000000 0 16 8 1\n")
    # the trace begins at 5 ns; its second request is 0.5 ms later and ends at sector 108
    (tmp_path / "b.log").write_text("5 0 0 16 0\n500005 0 100 8 1\n")
    return tmp_path


def requests(name: str, **options: str) -> list[tuple[int, str, int, int]]:
    """Return time in microseconds, operation, byte and bytes of each request."""
    table = Trace(name, **{"format": "mqsim", **options}).to_arrow().to_pylist()
    return [(row["time_ps"] // US, row["op"], row["offset"], row["bytes"]) for row in table]


A = [(0, "write", 0, 4096), (1000, "write", 4096, 4096), (2000, "read", 8192, 4096)]


def test_parts_are_merged_by_time_each_in_a_range_of_its_own(here):
    """Part b begins at the next whole MiB after part a, which ends at sector 24: at 1 MiB.

    Both begin at 0; of equal times, the earlier part is first.
    """
    assert requests("merge:a.log;b.log") == [
        A[0],
        (0, "write", MIB, 8192),
        (500, "read", MIB + 100 * 512, 4096),
        *A[1:],
    ]
    assert requests("merge:b.log;a.log")[:2] == [(0, "write", 0, 8192), (0, "write", MIB, 4096)]


def test_a_trace_is_played_several_times_with_the_same_addresses(here):
    """Requests at 0, 1 and 2 ms: their mean distance is 1 ms, so the next pass begins at 3 ms."""
    again = [(at + 3000, *rest) for at, *rest in A]
    assert requests("merge:a.log,times=3") == A + again + [(at + 6000, *r) for at, *r in A]
    # the next pass begins right away, or after a given pause
    assert [one[0] for one in requests("merge:a.log,times=2,gap=0s")] == [
        0, 1000, 2000, 2000, 3000, 4000]  # fmt: skip
    assert [one[0] for one in requests("merge:a.log,times=2,gap=10ms")][3] == 12_000


def test_copies_lie_side_by_side(here):
    """Three copies together, a MiB apart, and behind them the next part."""
    found = requests("merge:a.log,copies=3;b.log")
    assert [one[2] for one in found[:4]] == [0, MIB, 2 * MIB, 3 * MIB]
    assert len(found) == 3 * 3 + 2


def test_ranges_begin_and_end_where_they_are_told_to(here):
    """Sector 100 of b in a range of 64 sectors is sector 36: 100 - 64."""
    found = requests("merge:a.log,at=8MiB;b.log,at=4MiB,space=32KiB")
    assert found[0][2] == 8 * MIB and found[1][2] == 4 * MIB
    assert found[2] == (500, "read", 4 * MIB + 36 * 512, 4096)
    assert Trace("merge:b.log,space=32KiB", format="mqsim").info()["account"]["wrapped"] == 1


def test_a_part_begins_when_it_is_told_to(here):
    found = requests("merge:a.log;b.log,begin=1500us")
    assert [(one[0], one[2] >= MIB) for one in found] == [
        (0, False), (1000, False), (1500, True), (2000, False), (2000, True)]  # fmt: skip
    # as recorded, b begins 5 ns after a, not with it
    rows = Trace("merge:a.log,begin=recorded;b.log,begin=recorded", format="mqsim").to_arrow()
    assert rows["time_ps"].to_pylist()[:2] == [0, 5000]


def test_a_share_of_the_requests_is_the_first_of_each_pass(here):
    """Half of three requests, rounded down, is one; a pass of one request has no mean distance."""
    assert requests("merge:a.log,requests=50%,times=2,gap=1us") == [A[0], (1, *A[0][1:])]
    assert requests("merge:a.log,requests=2") == A[:2]


def test_each_part_may_have_a_format_of_its_own(here):
    (here / "c.csv").write_text("7;512\n9;1024\n")
    # a comma needs no backslash here, because `format` is the last key
    layout = r"format=columns:time=0:us,offset=1:bytes,size=each:512,delimiter=\;"
    rows = Trace(f"merge:a.log,format=mqsim;c.csv,{layout}", assume_op=None)
    with pytest.raises(InputError, match="does not name the operation"):
        flashatlas.run("tiny", trace=rows, mode="open")
    assert [r["offset"] for r in rows.to_arrow().to_pylist()][1] == MIB + 512


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("merge:", "part 1 of `merge:` names no file"),
        ("merge:a.log;;b.log", "part 2 of `merge:a.log;;b.log` names no file"),
        ("merge:a.log,tims=2", "parameter `tims` is not known; did you mean `times`?"),
        ("merge:a.log,times=0", "times"),
        ("merge:a.log,times", "has no value"),
        ("merge:a.log,times=2,times=3", "given twice"),
        ("merge:a.log,space=100", "not a whole number of sectors"),
        ("merge:a.log,space=0", "the range is empty"),
        ("merge:a.log,space=50%", "a share of a drive can be used only in a run"),
        ("merge:a.log,requests=101%", "`101%` is not a share"),
        ("merge:a.log,requests=1%", "no request is left"),
        ("merge:a.log,gap=soon", "gap"),
        ("merge:a.log,begin=5", "begin"),
        ("merge:a.log,format=", "format: has no value"),
        ("merge:a.log,copies=200;b.log,copies=57", "more than 256"),
        ("merge:a.log,device_map=both", "device map"),
        ("merge:merge:a.log", "is a merge itself"),
        (r"merge:a\b.log", "a backslash before `b`"),
        ("merge:a.log;gone.log", "gone.log: No such file"),
        ("merge:b.log,space=512", "a request longer than the range of its part"),
    ],
)
def test_mistakes_are_refused_by_name(here, name, said):
    with pytest.raises(InputError) as error:
        Trace(name, format=None if "format" in name else "mqsim").info()
    assert said in str(error.value)


def test_a_fault_is_placed_in_its_file(here):
    (here / "bad.log").write_text("0 0 0 8 0\n5 0 x 8 0\n")
    with pytest.raises(InputError, match=r"^bad\.log:2:5: "):
        Trace("merge:a.log;bad.log", format="mqsim").info()
    (here / "two.log").write_text("0 0 0 8 0\n5 1 0 8 0\n")
    with pytest.raises(InputError, match=r"^two\.log:2:1: a second address space"):
        Trace("merge:a.log;two.log", format="mqsim").info()
    assert len(requests("merge:a.log;two.log,device_map=collapse")) == 5


def run(name: str, **options):
    return flashatlas.run("tiny", trace=name, format="mqsim", mode="open", **options)


def test_a_run_says_each_part_with_its_digest_and_runs_again(here):
    first = run("merge:a.log,times=2;b.log")
    parts = first.record["trace"]["parts"]
    assert [part["path"] for part in parts] == ["a.log", "b.log"]
    assert parts[0]["digest"] == run("a.log").record["trace"]["digest"]
    assert (parts[0]["start_bytes"], parts[0]["bytes"], parts[0]["times"]) == (0, MIB, 2)
    assert (parts[1]["start_bytes"], "bytes" in parts[1]) == (MIB, False)
    assert first.record["trace"]["requests"] == 2 * 3 + 2
    first.save(here / "out" / "run")
    loaded = Result.load(here / "out" / "run")
    assert differences(loaded, rerun(loaded)) == []
    # the settings of the parts belong to the configuration, by which stores distinguish runs
    assert run("merge:a.log,times=3;b.log").record["config_hash"] != first.record["config_hash"]
    (here / "b.log").write_text("6 0 0 16 0\n")
    with pytest.raises(InputError, match=r"b\.log: this is not the file that the run read"):
        rerun(loaded)
    (here / "b.log").unlink()
    with pytest.raises(InputError, match=r"b\.log: there is no such file; the run read the"):
        rerun(loaded)


def test_a_bundle_takes_every_part_along(here, tmp_path_factory):
    (here / "x").mkdir()
    shutil.move(here / "b.log", here / "x" / "a.log")  # two files of one name
    first = run(
        "merge:a.log;x/a.log,times=2",
        precondition="trace:merge:a.log,format=mqsim;x/a.log,format=mqsim",
    )
    made = bundle([first], here / "all.zip")
    names = zipfile.ZipFile(made).namelist()
    packed = sorted(name for name in names if name.startswith("inputs/"))
    assert packed == ["inputs/2-a.log", "inputs/a.log"]
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (folder,) = unpack(made, elsewhere)
    for file in (here / "a.log", here / "x" / "a.log"):
        file.unlink()
    loaded = Result.load(folder)
    assert differences(loaded, rerun(loaded)) == []


def test_runs_of_a_study_and_of_a_comparison_differ_in_merges(here):
    (here / "study.toml").write_text(
        'name = "m"\n[run]\ndrive = "tiny"\nformat = "mqsim"\n'
        '[axes]\ntrace = ["merge:a.log,times=2;b.log", "merge:a.log,times=3;b.log", "a.log"]\n'
    )
    (here / "below").mkdir()
    plan = planned(load(here / "study.toml"))
    assert len({run.key for run in plan.runs}) == 3, "three different runs"
    read = {file.name for _, file in _read_by(plan)}
    assert read == {"a.log", "b.log"}
    case = {"label": "x", "trace": "merge:a.log;gone.log"}
    with pytest.raises(InputError, match=r"gone\.log: there is no such file"):
        flashatlas.compare([case, {"label": "y", "trace": "a.log"}], format="mqsim")
    both = flashatlas.compare(
        [{"label": "x", "trace": "merge:a.log;b.log"}, {"label": "y", "trace": "a.log"}],
        format="mqsim",
    )
    assert [one.record["trace"]["requests"] for one in both] == [5, 3]


def test_steady_passes_and_packing_work_on_a_merge(here):
    """Packed extents of 4 KiB: 3 of a, and 4 of b, as sectors 100 to 107 lie in two extents."""
    packed = run("merge:a.log;b.log,at=1GiB", fit="compact", extent="4KiB")
    assert packed.record["trace"]["extent_bytes"] == 4096
    assert packed.violations == 0
    assert run("merge:a.log;b.log", until="steady").record["settling"]


TRACE_FLOW = "IO_Flow_Parameter_Set_Trace_Based"


def workload(here: Path, *flows: dict[str, str]) -> str:
    """Write a scenario of flows that play traces; return its name."""
    leaves = ["".join(f"<{k}>{v}</{k}>" for k, v in flow.items()) for flow in flows]
    scene = "".join(f"<{TRACE_FLOW}>{one}</{TRACE_FLOW}>" for one in leaves)
    (here / "workload.xml").write_text(
        f"<MQSim_IO_Scenarios><IO_Scenario>{scene}</IO_Scenario></MQSim_IO_Scenarios>"
    )
    return "mqsim:workload.xml"


def flow(path: str, percentage: int, times: int, unit: str) -> dict[str, str]:
    return {
        "Priority_Class": "HIGH", "File_Path": path, "Percentage_To_Be_Executed": str(percentage),
        "Relay_Count": str(times), "Time_Unit": unit}  # fmt: skip


def test_a_trace_flow_of_mqsim_is_played_as_it_says(here):
    """Half of four requests, ten times, in picoseconds.

    The first two are at 100 and 1,100 ps: 1,000 ps apart. A pass begins with the last request of
    the one before (MQSim's time_offset), so request 2n + 1 is 1,000 (n + 1) ps after the first.
    """
    (here / "seq.trace").write_text("100 0 0 8 1\n1100 0 8 8 0\n5000 0 16 8 1\n9000 0 24 8 0\n")
    name = workload(here, flow("seq.trace", 50, 10, "PICOSECOND"))
    rows = Trace(trace_name(name).replace("space=100.000000%,", "").replace("at=0.000000%,", ""))
    found = [(r["time_ps"], r["op"], r["offset"]) for r in rows.to_arrow().to_pylist()]
    assert found == [
        (1000 * (n + k), ("read", "write")[k], 4096 * k) for n in range(10) for k in (0, 1)
    ]
    result = flashatlas.run("tiny", trace=name, mode="open")
    assert result.record["trace"]["requests"] == 20


def test_flows_of_mqsim_share_the_drive(here):
    """Two flows: each has half of the drive; addresses beyond it are taken modulo its size."""
    (here / "far.trace").write_text(f"0 0 {1 << 40} 8 0\n")
    (here / "near.trace").write_text("3 0 8 8 0\n")
    name = workload(
        here, flow("far.trace", 100, 1, "NANOSECOND"), flow("near.trace", 100, 1, "MICROSECOND")
    )
    result = flashatlas.run("tiny", trace=name, mode="open")
    layout = json.loads(flashatlas._core.check_drive("tiny", None, []))
    half = layout["exported_bytes"] // 2 // 512 * 512
    first, second = result.record["trace"]["parts"]
    assert (first["start_bytes"], first["bytes"]) == (0, half)
    assert (second["start_bytes"], second["bytes"]) == (half, half)
    assert any(note["code"] == "wrapped-in-range" for note in result.record["approximations"])


def test_a_scenario_that_plays_traces_is_no_job(here):
    name = workload(here, flow("a.log", 100, 1, "NANOSECOND"))
    with pytest.raises(
        InputError, match=r"so it is not a job: `flashatlas run --trace " r"mqsim:workload\.xml`"
    ):
        job_file(name)
