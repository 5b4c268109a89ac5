"""The calibration of a drive: what it reads and refuses, and whether it finds hidden values."""

from __future__ import annotations

import itertools
import json
import math
from types import SimpleNamespace

import calibrated_drives
import flashatlas
import numpy as np
import published_curves
import pyarrow as pa
import pytest
from conftest import ONE_IN
from flashatlas import InputError
from flashatlas.calibration import fit, logs, quantities, ranges
from flashatlas.calibration.calibrate import calibrate
from flashatlas.calibration.measured import measurements
from flashatlas.calibration.preset import must_be_the_same, preset
from flashatlas.calibration.space import clipped, parameters
from flashatlas.calibration.trials import Trial
from flashatlas.sweep.store import Store

JOB = "[one]\nfilename=/dev/sdx\nrw=randread\nbs=4k\niodepth=1\nnumber_ios=100\n"


def direction(ios=10, **more):
    times = {"mean": 2.0, "percentile": {"50.000000": 1, "99.000000": 5}}
    return {"total_ios": ios, "bw_bytes": 4096 * ios, "iops": ios, "clat_ns": times} | more


def output(**more):
    job = {"jobname": "one", "error": 0, "read": direction(), "write": direction(0)} | more
    return {"jobs": [job]}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.fio").write_text(JOB)
    (tmp_path / "one.json").write_text(json.dumps(output()))
    return tmp_path


def test_the_numbers_of_each_job_and_direction_are_read(files):
    twice = output()["jobs"][0]
    content = {"jobs": [twice, {**twice, "read": direction(0), "write": direction(3)}]}
    (files / "one.json").write_text(json.dumps(content))
    found = quantities.of_output(quantities.read_output(files / "one.json"), "one.fio")
    assert {one.name: one.value for one in found} == {
        "one.fio, one (1), read: bandwidth": 40960,
        "one.fio, one (1), read: requests a second": 10,
        "one.fio, one (1), read: mean latency": 2,
        "one.fio, one (1), read: p50 latency": 1,
        "one.fio, one (1), read: p99 latency": 5,
        "one.fio, one (2), write: bandwidth": 12288,
        "one.fio, one (2), write: requests a second": 3,
        "one.fio, one (2), write: mean latency": 2,
        "one.fio, one (2), write: p50 latency": 1,
        "one.fio, one (2), write: p99 latency": 5,
    }


def test_latencies_of_fsync_are_read_and_missing_percentiles_left_out():
    sync = {"total_ios": 4, "lat_ns": {"mean": 7.5}}
    found = quantities.of_output(output(sync=sync), "x")
    assert [(one.what, one.value) for one in found if "fsync" in one.group] == [
        ("mean latency", 7.5)
    ]


BAD_OUTPUT = {
    "no JSON": ("fio: bad", "one.json:1:1: damaged: Expecting value; the content must be the out"),
    "no jobs": ("{}", "one.json: there is no list `jobs`; the content must be the output of fio"),
    "a list": ("[1]", "one.json: there is no list `jobs`"),
    "fio 2": (
        json.dumps(output(read={"total_ios": 1, "bw_bytes": 1, "iops": 1})),
        "one.json: damaged: jobs.0.read.clat_ns is missing",
    ),
    "a text": (
        json.dumps(output(read=direction(iops="many"))),
        'one.json: damaged: jobs.0.read.iops is "many", but must be a number',
    ),
    "a failed job": (
        json.dumps(output(error=5)),
        "one.json: jobs.0.error is 5: the job `one` failed",
    ),
}


@pytest.mark.parametrize(("text", "said"), BAD_OUTPUT.values(), ids=BAD_OUTPUT)
def test_a_bad_output_of_fio_is_refused_with_its_place(files, text, said):
    (files / "one.json").write_text(text)
    with pytest.raises(InputError) as caught:
        measurements(["one.fio=one.json"], [])
    assert said in str(caught.value)


BAD_LOG = {
    "10, 20": "one_bw.1.log:1: `10, 20` is not an entry of a log of fio; an entry begins with",
    "10, 20, 0, 0\n20, x, 0, 0": "one_bw.1.log:2: `20, x, 0, 0` is not an entry",
    "10, 20, 7, 0": "one_bw.1.log:1: `10, 20, 7, 0` is not an entry",
    "10, -1, 0, 0": "one_bw.1.log:1: `10, -1, 0, 0` is not an entry",
    "20, 1, 0, 0\n10, 1, 0, 0": "one_bw.1.log:2: the time 10 ms is before the previous entry",
    "": "one_bw.1.log: the log has no entry above 0; give a bandwidth log of fio",
    "10, 0, 0, 0": "one_bw.1.log: the log has no entry above 0",
}


@pytest.mark.parametrize(("text", "said"), BAD_LOG.items(), ids=map(repr, BAD_LOG))
def test_a_bad_log_is_refused_with_its_line(files, text, said):
    (files / "one_bw.1.log").write_text(text)
    with pytest.raises(InputError) as caught:
        measurements(["one.fio=one_bw.1.log"], [])
    assert said in str(caught.value)


ONE = "one.fio=one.json"
BAD_GIVEN = {
    "nothing": ([], [], "there is no measurement: give --measured JOB.fio=RESULT"),
    "no result": (["one.fio"], [], "--measured `one.fio`: write JOB.fio=RESULT"),
    "no job": (["no.fio=one.json"], [], "there is no job file no.fio"),
    "no file": (["one.fio=no.json"], [], "no.json: there is no such file; give the output of fio"),
    "no log": (["one.fio=a_bw.1.log"], [], "a_bw.1.log: there is no such file; give a bandwidth"),
    "a name": (["one.fio=one.txt"], [], "the name of one.txt must be one of fio's JSON output"),
    "twice": ([ONE, ONE], [], "one.fio has an output of fio already"),
    "other job": ([ONE], ["two.fio=fill"], "two.fio is not a job file of --measured (these are"),
    "two states": ([ONE], ["fill", "none"], "--precondition `none`: all jobs have one already"),
}


@pytest.mark.parametrize(("given", "begin", "said"), BAD_GIVEN.values(), ids=BAD_GIVEN)
def test_bad_measurements_are_refused(files, given, begin, said):
    with pytest.raises(InputError) as caught:
        measurements(given, begin)
    assert said in str(caught.value)


def test_a_precondition_is_for_all_job_files_or_for_one(files):
    (files / "two.fio").write_text(JOB)
    given = measurements([ONE, "two.fio=one.json"], ["fill", "two.fio=none"])
    assert [one.precondition for one in given] == ["fill", "none"]


BAD_VARY = {
    "nothing": ([], "there is no parameter to find: give --vary KEY=FROM..TO"),
    "no values": (["a.b"], "--vary `a.b`: write KEY=FROM..TO"),
    "twice": (["a.b=1..2", "a.b=1..3"], "--vary `a.b=1..3`: a.b is given twice"),
    "from 0": (["a.b=0..3"], "begin above 0, not at 0; write a.b=0..3:lin for equal steps"),
    "empty": (["a.b=3..1"], "--vary a.b: the range from 3 to 1 is empty"),
    "scale": (["a.b=1..3:cube"], "--vary a.b: `cube` is not a scale of a range"),
    "units": (["a.b=1us..3kib"], "one is a time, the other a size"),
    "one": (["a.b=3"], "--vary a.b: a single value leaves nothing to find; use --set"),
}


@pytest.mark.parametrize(("given", "said"), BAD_VARY.values(), ids=BAD_VARY)
def test_bad_ranges_are_refused(given, said):
    with pytest.raises(InputError) as caught:
        parameters(given)
    assert said in str(caught.value)


def test_ranges_have_equal_ratios_or_steps_and_lists_their_order():
    times, steps, counts, names = parameters(
        ["a.b=10us..20us", "a.c=0us..1us:lin", "a.d=1,2,4", "a.e=greedy,fifo"]
    )
    assert times.values[0] == "10000000ps" and len(times.values) == 70  # ln 2 / ln 1.01 = 69.7
    assert len(steps.values) == 101 and steps.values[50] == "500000ps"
    assert [one.is_fine for one in (times, steps, counts, names)] == [True, True, False, False]
    assert times.nearest("15us") == 41  # ln 1.5 / ln 1.01 = 40.7
    assert counts.nearest(3) == 1 and names.nearest("fifo") == 1
    assert times.word(0) == "10 µs" and times.word(0.5) == "10.1 µs"
    assert clipped([times, counts], (99.0, -1.0)) == (69, 0)


def log_text(parts, window=10):
    """Return a bandwidth log; each part has milliseconds and KiB per second."""
    lines, now = [], 0
    for length, rate in parts:
        for _ in range(length // window):
            now += window
            lines.append(f"{now}, {rate}, 1, 0, 0")
    return "\n".join(lines)


def test_levels_of_a_bandwidth_log_end_where_the_speed_falls(tmp_path):
    path = tmp_path / "fill_bw.1.log"
    # 2 s with 4 GiB/s, 4 s with 1 GiB/s, 8 s with 256 MiB/s
    path.write_text(log_text([(2000, 4 << 20), (4000, 1 << 20), (8000, 1 << 18)]))
    curve = logs.read_log(path).curves["write"]
    assert curve.end == pytest.approx(14 << 30)
    found = logs.breaks("bandwidth", curve)
    assert found == pytest.approx([8 << 30, 12 << 30], rel=0.01)
    parts = logs.quantities("bandwidth", "x", curve, [8 << 30, 12 << 30], curve.end)
    assert [round(one.value / 2**28) for one in parts] == [16] * 4 + [4] * 4 + [1] * 4
    assert logs.nearest_break(8 << 30, [9 << 30, 12 << 30]) == 9 << 30
    assert logs.nearest_break(8 << 30, [1 << 30]) is None


def test_nothing_was_written_in_windows_that_a_log_leaves_out(tmp_path):
    path = tmp_path / "fill_bw.1.log"
    path.write_text("\n".join(f"{10 * n}, 1024, 1, 0, 0" for n in range(1, 101) if n % 10 < 5))
    curve = logs.read_log(path).curves["write"]
    assert curve.end == pytest.approx(50 * 1024 * 1024 * 0.01)


def test_a_log_of_single_requests_counts_their_bytes(tmp_path):
    path = tmp_path / "fill_bw.1.log"
    path.write_text("\n".join(f"{n // 4}, 999, 1, 131072, 0" for n in range(4000)))
    curve = logs.read_log(path).curves["write"]
    assert curve.end == 4000 * 131072
    assert 1 / curve.mean(0, curve.end) == pytest.approx(4000 * 131072 / 0.999)
    assert logs.breaks("bandwidth", curve) == []


def test_the_levels_of_a_latency_log_are_means_over_time(tmp_path):
    path = tmp_path / "x_clat.1.log"
    path.write_text("\n".join(f"{10 * n}, {100 if n <= 50 else 900}, 0, 0" for n in range(1, 101)))
    log = logs.read_log(path)
    assert log.kind == "latency" and log.curves["read"].end == pytest.approx(1.0)
    (at,) = logs.breaks("latency", log.curves["read"])
    assert at == pytest.approx(0.5, abs=0.011)
    parts = logs.quantities("latency", "x", log.curves["read"], [0.5], 1.0)
    assert [one.value for one in parts] == pytest.approx([100] * 4 + [900] * 4)


def test_a_simulated_curve_is_the_measured_one_if_the_drive_is_the_same():
    series = pa.table(
        {
            "width_ns": [10**9, 10**9],
            "write_bytes": [4 << 20, 1 << 20],
            "write_requests": [4, 1],
            "write_mean_ns": [100.0, 400.0],
        }
    )
    curve = logs.simulated("bandwidth", "write", series)
    assert 1 / curve.mean(0, 4 << 20) == pytest.approx(4 << 20)
    assert 1 / curve.mean(4 << 20, 5 << 20) == pytest.approx(1 << 20)
    # beyond its end, a curve goes on as it ended
    assert 1 / curve.mean(6 << 20, 7 << 20) == pytest.approx(1 << 20)
    late = logs.simulated("latency", "write", series)
    assert late.mean(0, 1) == 100 and late.mean(0, 2) == pytest.approx(160)
    assert logs.simulated("latency", "read", series) is None


class Linear:
    """Trials whose residuals are linear in the parameters: slopes, truth and noise are known."""

    def __init__(self, slopes, truth, noise=0.0, misfit=0.0):
        self.space = parameters([f"a.p{n}=1.0..1000.0" for n in range(slopes.shape[1])])
        names = [f"job {n}" for n in range(slopes.shape[0])]
        self.quantities = [quantities.Quantity(one, "x", "", 1.0) for one in names]
        self.tried, self._slopes, self._truth = {}, slopes, np.array(truth)
        self._noise, self._misfit = noise, np.array(misfit)

    def carry_out(self, points, seed=None):
        draw = np.random.default_rng(0 if seed is None else seed)
        more = self._misfit + self._noise * draw.normal(size=len(self.quantities))
        made = [Trial(p, self._slopes @ (np.array(p) - self._truth) + more) for p in points]
        if seed is None:
            self.tried |= {trial.point: trial for trial in made}
        return made


def fitted(slopes, truth, **more):
    trials = Linear(np.array(slopes), truth, **more)
    found = fit.begun(trials, (350,) * len(truth), 400, 1)
    fit.search(found, [2, 3, 4, 5])
    return found, ranges.found(found)


def test_least_squares_find_the_truth_and_ranges_hold_it():
    slopes = [[0.01, 0.0], [0.0, 0.005], [0.004, -0.004], [0.002, 0.001]]
    found, (first, second) = fitted(slopes, (120, 500))
    assert found.best.point == (120, 500)
    # 4 of chance, noise of 1 %: the sum of squares of the slopes is 120 a value for the first one
    # with the second one adjusted, (0.01² + 0.004² + 0.002² - 0.014²/42) / 0.01²
    assert first.low == pytest.approx(120 - math.sqrt(4 / 1.19), abs=1)
    assert first.high == pytest.approx(120 + math.sqrt(4 / 1.19), abs=1)
    assert second.low < 500 < second.high and second.is_told and not ranges.pairs(found)


def test_parameters_that_only_count_together_are_not_told_apart():
    slopes = [[0.01, 0.01], [0.005, 0.005], [0.0, 0.0001]]
    found, (first, second) = fitted(slopes, (300, 400))
    assert first.high - first.low > 150 and second.high - second.low > 150
    (pair,) = ranges.pairs(found)
    assert (pair.first, pair.second) == (0, 1) and pair.correlation < -0.99


def test_a_parameter_without_influence_is_not_told():
    _, (first, second) = fitted([[0.01, 0.0], [0.02, 0.0]], (300, 400))
    assert first.is_told and not second.is_limited


def test_noise_widens_a_range():
    slopes = [[0.01], [0.01], [0.02]]
    (quiet,) = fitted(slopes, (300,))[1]
    found, (noisy,) = fitted(slopes, (300,), noise=0.05)
    assert noisy.high - noisy.low > 2 * (quiet.high - quiet.low)
    # the measured number has as much noise as the simulated one
    assert found.weights == pytest.approx(1 / np.sqrt(0.01**2 + 2 * found.noise**2))


def test_what_no_value_explains_widens_a_range():
    slopes = [[0.001], [0.001], [0.002]]
    (quiet,) = fitted(slopes, (300,))[1]
    # at right angles to the slopes, so the best value stays; 50 squares for 2 spare groups
    found, (wide,) = fitted(slopes, (300,), misfit=[0.05, -0.05, 0.0])
    assert found.best.point == (300,)
    assert (wide.high - wide.low) / (quiet.high - quiet.low) == pytest.approx(5, rel=0.15)


def test_a_drive_file_holds_base_settings_and_values(tmp_path):
    text = preset(
        "tiny", ["timing.t_erase=1ms", "ftl.gc_parallel=false"],
        {"timing.t_read": "41025000ps", "ftl.victim": "fifo", "host.queue_depth": 7},
        {"timing.t_read": 'a "b"', "ftl.victim": "c", "host.queue_depth": "d"}, "small",
    )  # fmt: skip
    path = tmp_path / "p.toml"
    path.write_text(text)
    assert 't_read = { us = 41.025, source = "a \\"b\\"" }' in text
    same = ["timing.t_erase=1ms", "ftl.gc_parallel=false", "timing.t_read=41.025us",
            "ftl.victim=fifo", "host.queue_depth=7"]  # fmt: skip
    must_be_the_same(path, "tiny", same)
    with pytest.raises(InputError, match=r"timing.t_read is 41025ns in this file and 40us"):
        must_be_the_same(path, "tiny", [*same, "timing.t_read=40us"])


def test_a_drive_file_builds_on_a_drive_file(tmp_path):
    base, made = tmp_path / "base.toml", tmp_path / "made.toml"
    base.write_text(
        '[drive]\nbase = "tiny"\nlogical_pages = 500\n[timing]\nt_read = { us = 50, source = "x" }'
    )
    made.write_text(
        preset(
            str(base), [], {"drive.over_provisioning": 0.5}, {"drive.over_provisioning": "y"}, ""
        )
    )
    must_be_the_same(made, str(base), ["drive.over_provisioning=0.5"])
    assert "logical_pages" not in made.read_text()
    assert 't_read = { us = 50, source = "x" }' in made.read_text()


DRIVE = ["timing.t_read=30us", "drive.ways=2"]
SPACE = ["timing.t_read=10us..100us", "drive.ways=1,2"]


def measured_one(folder):
    result = flashatlas.run("tiny", set=DRIVE, job=folder / "one.fio", precondition="fill", seed=9)
    content = flashatlas.fio_json.to_fio_json(result.record, result.jobs)
    (folder / "one.json").write_text(json.dumps(content))


def test_a_calibration_is_a_study_that_goes_on_and_repeats_itself(files):
    measured_one(files)
    given = measurements([ONE], ["fill"])

    def once(**more):
        own = {"drive": "tiny", "count": 40, "store": files / "store", "name": "own", **more}
        return calibrate(given, parameters(SPACE), **own)

    with pytest.MonkeyPatch.context() as patched:
        short = itertools.count()
        patched.setattr(
            "flashatlas.calibration.trials.time",
            SimpleNamespace(monotonic=lambda: float(next(short))),
        )
        cut = once(seconds=3)
    assert cut.cut == "the time was up" and cut.found[0].range is None
    assert cut.found[0].range_text() == "not determined"
    first = once()
    note = Store.open(files / "store").study("own")
    assert note["calibration"]["best"] == first.values
    count = len(list(Store.open(files / "store").all_keys()))
    assert len(note["runs"]) == count > 20
    again = once()
    assert again.to_json() == first.to_json()
    assert len(list(Store.open(files / "store").all_keys())) == count


def test_logs_alone_tell_the_time_of_a_program(files):
    (files / "one.fio").write_text(JOB.replace("randread", "write").replace("100", "300"))
    hidden = flashatlas.run("tiny", set=["timing.t_program=400us"], job=files / "one.fio", seed=9)
    rows = hidden.to_arrow("series").to_pylist()
    ends = [round((row["start_ns"] + row["width_ns"]) / 1e6) for row in rows]
    # a row has a millisecond: KiB per second are bytes * 1000 / 1024
    speeds = [round(row["write_bytes"] * 1000 / 1024) for row in rows]
    delays = [round(row["write_mean_ns"] or 0) for row in rows]
    assert [row["width_ns"] for row in rows[:-1]] == [10**6] * (len(rows) - 1)
    for name, values in (("x_bw.1.log", speeds), ("x_clat.1.log", delays)):
        lines = [f"{at}, {value}, 1, 0, 0" for at, value in zip(ends, values, strict=True) if value]
        (files / name).write_text("\n".join(lines))
    given = measurements(["one.fio=x_bw.1.log", "one.fio=x_clat.1.log"], [])
    space = parameters(["timing.t_program=100us..2ms"])
    found = calibrate(given, space, drive="tiny", count=60, store=files / "store")
    (one,) = found.found
    assert one.range.is_told and one.range.low <= space[0].nearest("400us") + 1
    assert one.range.high >= space[0].nearest("400us") - 1
    assert {row.quantity.what for row in found.residuals} == {"bandwidth", "latency"}


def test_names_and_few_values_are_tried_one_by_one(files):
    measured_one(files)
    space = parameters(["timing.t_read=15us,30us,60us", "ftl.victim=greedy,fifo"])
    own = {"drive": "tiny", "count": 30, "store": files / "store"}
    read, victim = calibrate(measurements([ONE], ["fill"]), space, **own).found
    assert read.value == "30us" and read.range.is_told and read.range_text() == "30 µs"
    assert not victim.range.is_limited and victim.range_text() == "any of greedy or fifo"


def test_other_jobs_than_fio_ran_are_refused(files):
    measured_one(files)
    (files / "one.fio").write_text(JOB.replace("[one]", "[two]"))
    given = measurements([ONE], ["fill"])
    with pytest.raises(InputError, match=r"one.fio: its jobs are two, but fio measured one: give"):
        calibrate(given, parameters(SPACE), drive="tiny", store=files / "store")


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        ("timing.t_raed=1us..2us", "tiny has no such parameter; did you mean `timing.t_read`?"),
        ("drive.blocks=1..2", "the drive to begin with cannot run the measured jobs: "),
    ],
)
def test_a_key_that_the_drive_lacks_is_refused(files, vary, said):
    with pytest.raises(InputError) as caught:
        calibrate(measurements([ONE], ["fill"]), parameters([vary]), drive="tiny", store="store")
    assert said in str(caught.value)


def test_the_command_writes_a_drive_that_runs(files, cli):
    measured_one(files)
    args = ("calibrate", "-m", ONE, "-d", "tiny", "--precondition", "fill", "--vary", SPACE[0],
            "--trials", "40", "--to", "found.toml", "--json", "found.json", "-q")  # fmt: skip
    code, text, _ = cli(*args, "--set", "drive.ways=2")
    assert code == 0
    assert "timing.t_read" in text and "Root mean square deviation" in text
    content = json.loads((files / "found.json").read_text())
    (found,) = content["parameters"]
    assert found["told"] and found["key"] == "timing.t_read"
    result = flashatlas.run(files / "found.toml", job=files / "one.fio", precondition="fill")
    ours = quantities.of_output(
        flashatlas.fio_json.to_fio_json(result.record, result.jobs), "one.fio"
    )
    assert [one.value for one in ours] == pytest.approx(
        [one["simulated"] for one in content["residuals"]]
    )
    assert all(abs(one["ratio"] - 1) < 0.05 for one in content["residuals"])


def test_the_command_refuses_another_ending(cli):
    code, _, error = cli("calibrate", "--to", "found.json")
    assert code == 2 and "--to found.json: the name of a drive file ends in .toml" in error


SEEDS = range(calibrated_drives.COUNT) if ONE_IN == 1 else ()


def test_hidden_values_are_found(tmp_path):
    made = calibrated_drives.calibrated(tmp_path, 1, names=["reads"], count=2, trials=150)
    assert made.found.deviation < 0.05
    assert all(row.is_right for row in made.rows())
    assert any(row.error is not None for row in made.rows())


@pytest.mark.parametrize("seed", SEEDS)
def test_nine_of_ten_ranges_have_the_hidden_value(tmp_path, seed):
    made = calibrated_drives.calibrated(tmp_path, seed, names=list(calibrated_drives.JOBS))
    rows = made.rows()
    assert made.found.deviation < 0.1
    assert sum(row.is_right for row in rows) >= len(rows) - 1


@pytest.mark.parametrize("name", published_curves.CURVES)
def test_a_published_curve_becomes_a_log_with_its_levels(tmp_path, name):
    curve = published_curves.CURVES[name]
    path = tmp_path / "fill_bw.1.log"
    path.write_text(published_curves.log_text(curve))
    found = logs.read_log(path).curves["write"]
    (at,) = logs.breaks("bandwidth", found)
    assert at / found.end == pytest.approx(curve.cache / curve.gigabytes, abs=0.006)
    assert 1 / found.mean(0, at * 0.9) == pytest.approx(curve.fast * 1e9, rel=0.01)
    assert 1 / found.mean(at * 1.1, found.end) == pytest.approx(curve.slow * 1e9, rel=0.01)


@pytest.mark.parametrize("name", ["980-pro-static"] if ONE_IN == 1 else [])
def test_a_drive_with_a_static_cache_has_the_curve_of_a_980_pro(tmp_path, name):
    assert published_curves.calibrated(tmp_path, name).deviation < 0.03
