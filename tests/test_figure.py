"""Figures and tables of studies: their content, and the notes below them."""

from __future__ import annotations

import itertools
import re

import flashatlas
import pytest
from flashatlas import InputError
from flashatlas.drawing.figure import vega_lite
from flashatlas.drawing.labels import SETTINGS, broken, short
from flashatlas.drawing.points import Asked, points
from flashatlas.results.frame import table_of
from flashatlas.statistics.intervals import estimate
from flashatlas.sweep.summary import write_summary

UNIFORM = "uniform:requests=3000,size=4KiB"
LONGER = "uniform:requests=6000,size=4KiB,read=0.7"
ZIPF = "zipf:requests=3000,size=4KiB,theta=0.9"


def study(values=("greedy", "fifo"), seeds=3, column="ftl.victim", unsteady=(), **more):
    """Return runs over a factor and seeds; the WAF is 1 + the value's index + 0.1 for each seed.

    ``unsteady`` lists (value, seed) of runs that were too short; ``more`` has further columns.
    """
    rows = [
        (
            {column: value, "seed": seed, **more},
            {"waf": 1 + at + 0.1 * seed, "steady": (value, seed) not in unsteady},
        )
        for at, value in enumerate(values)
        for seed in range(1, seeds + 1)
    ]
    return flashatlas.Frame(table_of(rows))


def drawn(runs, **asked):
    wanted = Asked(**{"x": "ftl.victim", "y": "waf", **asked})
    found = points(runs, wanted)
    return found, vega_lite(found, wanted)


def test_a_point_is_the_mean_of_its_seeds_in_short_units():
    rows = [
        ({"timing.t_program": time, "seed": seed}, {"latency_ns.write.mean": 1e6 * seed})
        for time in ("200us", "1ms")
        for seed in (1, 2)
    ]
    runs = flashatlas.Frame(table_of(rows))
    found, spec = drawn(runs, x="timing.t_program", y="latency_ns.write.mean")
    # the shortest time is 200 us: the axis is in microseconds; 1 and 2 ms have the mean 1.5 ms
    assert [(row["x"], row["y"], row["low"], row["high"]) for row in found.rows] == [
        (200, 1.5, 1, 2),
        (1000, 1.5, 1, 2),
    ]
    assert spec["layer"][0]["encoding"]["x"]["title"] == "timing.t_program (µs)"
    assert spec["layer"][0]["encoding"]["y"]["title"] == "write latency, mean (ms)"


@pytest.mark.parametrize("kind", ["line", "point", "bar"])
def test_figures_are_files_of_their_kind(tmp_path, kind):
    runs = study((8192, 16384, 65536), column="map.cache_bytes", unsteady=[(8192, 2)])
    for suffix, begin in {".svg": b"<svg", ".pdf": b"%PDF", ".png": b"\x89PNG"}.items():
        path = flashatlas.figure(
            runs, tmp_path / f"f{suffix}", x="map.cache_bytes", y="waf", by="seed", kind=kind
        )
        assert path.read_bytes().startswith(begin)
    width = float(re.search(r'width="([\d.]+)', (tmp_path / "f.svg").read_text())[1])
    assert 200 < width <= 260, "as wide as a column"


def test_figures_that_cannot_be_drawn_say_why(tmp_path):
    def refused(**changes):
        options = {"x": "ftl.victim", "y": "waf", **changes}
        with pytest.raises(InputError) as caught:
            flashatlas.figure(study(drive="tiny"), options.pop("path", tmp_path / "f.pdf"),
                              **options)  # fmt: skip
        return str(caught.value)

    assert "ends in .pdf, .svg, .png" in refused(path=tmp_path / "f.gif")
    assert "did you mean `waf`" in refused(y="wav")
    assert "`drive` is not a number" in refused(y="drive")
    assert "kind `pie` is not known" in refused(kind="pie")
    assert "log `z` is not known (allowed: x, y, xy, none)" in refused(log="z")
    assert "begins at zero" in refused(kind="bar", log="y")
    assert "`fifoo` is neither a column nor a value" in refused(names={"fifoo": "FIFO"})
    assert "two values of `ftl.victim`" in refused(names={"fifo": "A", "greedy": "A"})
    assert not list(tmp_path.iterdir())


def test_points_of_runs_that_were_not_steady_are_hollow_and_said():
    found, spec = drawn(study(unsteady=[("fifo", 2), ("fifo", 3)]))
    assert [row["unsteady"] for row in found.rows] == [0, 2]
    said = "Hollow: 2 of 6 runs were not steady, and would give other numbers if they were longer."
    assert said in found.notes
    assert said in " ".join(spec["title"]["text"])
    full, hollow = spec["layer"][-2:]
    assert {"filter": "datum.unsteady === 0"} in full["transform"] and full["mark"]["filled"]
    assert hollow["transform"] == [{"filter": "datum.unsteady > 0"}]
    assert hollow["mark"]["fill"] == "white"
    assert not any("Hollow" in note for note in drawn(study())[0].notes)


def test_a_hollow_mark_is_in_the_picture(tmp_path):
    def white_marks(runs):
        path = flashatlas.figure(runs, tmp_path / "f.svg", x="ftl.victim", y="waf", kind="point")
        symbols = re.findall(r'<path aria-label="[^"]*ftl.victim[^>]*>|<path [^>]*>',
                             path.read_text())  # fmt: skip
        return sum('fill="white"' in one and "stroke=" in one for one in symbols)

    assert white_marks(study()) == 0
    assert white_marks(study(unsteady=[("fifo", 1)])) == 1


def test_below_five_seeds_there_is_the_range_and_their_number():
    found, _ = drawn(study(seeds=3), bars="interval")
    # 1.1, 1.2, 1.3
    low, mean, high = (found.rows[0][key] for key in ("low", "y", "high"))
    assert (low, mean, high) == pytest.approx((1.1, 1.2, 1.3))
    assert found.notes == [
        "Mean of 3 runs; bars from the least to the largest: an interval needs 5 runs."
    ]
    found, _ = drawn(study(seeds=5), bars="interval")
    # 1.1 to 1.5: deviation sqrt(0.1 / 4), times t of four degrees (2.7764) over the root of five
    half = 2.776445 * (0.1 / 4) ** 0.5 / 5**0.5
    assert found.rows[0]["high"] - found.rows[0]["y"] == pytest.approx(half, rel=1e-6)
    assert found.notes == ["Mean of 5 runs; bars: interval of 95 % of the mean."]


def test_no_bar_reaches_below_zero_where_no_value_does():
    # mean 2.4, deviation about 4.3, t 2.776: the interval begins at about -2.9
    values = [0.1, 0.2, 0.5, 1.2, 10.0]
    one = estimate(values)
    assert one.low < 0 and one.ends == (0.0, one.high)
    below = estimate([-1.0, *values])
    assert below.ends == (below.low, below.high), "numbers that may be negative are not cut"
    assert estimate(values[:3]).ends == (0.1, 0.5)


def test_an_interval_over_more_than_seeds_is_refused():
    with pytest.raises(InputError, match=r"the runs of a point differ in ftl\.victim as well"):
        drawn(study(), x="seed", bars="interval")


def test_generators_and_paths_have_short_names_that_tell_them_apart():
    assert short([UNIFORM, ZIPF, LONGER]) == {
        UNIFORM: "uniform requests=3000",
        ZIPF: "zipf",
        LONGER: "uniform requests=6000 read=0.7",
    }
    assert short(["x/a.csv", "y/a.csv", "x/b.csv"]) == {
        "x/a.csv": "x/a.csv", "y/a.csv": "y/a.csv", "x/b.csv": "b.csv"
    }  # fmt: skip
    assert short(["merge:a.csv,times=2;b.csv", "greedy"]) == {
        "merge:a.csv,times=2;b.csv": "merge:a.csv,times=2;b.csv", "greedy": "greedy"
    }  # fmt: skip
    assert broken("uniform requests=6000 read=0.7", 14) == "uniform\nrequests=6000\nread=0.7"


def test_values_that_are_alike_when_short_are_not_one_point():
    found, _ = drawn(study(("x/a.csv", "y/a.csv"), column="trace"), x="trace")
    assert [row["x"] for row in found.rows] == ["x/a.csv", "y/a.csv"]
    # with six digits, these two values would look the same
    found, _ = drawn(study((10000001, 10000002), column="n"), x="n", kind="bar")
    assert [row["x"] for row in found.rows] == ["10000001", "10000002"]


def test_no_label_is_printed_over_another(tmp_path):
    runs = study((UNIFORM, ZIPF, LONGER), column="workload")
    path = flashatlas.figure(runs, tmp_path / "f.svg", x="workload", y="waf")
    labels = re.findall(r"<tspan[^>]*>([^<]*)</tspan>|<text[^>]*>([^<]+)</text>", path.read_text())
    shown = {a or b for a, b in labels}
    assert {"uniform", "requests=3000", "requests=6000", "read=0.7", "zipf"} <= shown
    width = float(re.search(r'width="([\d.]+)', path.read_text())[1])
    assert width <= 260, "no label reaches beyond the column"


def test_columns_and_values_are_called_as_the_reader_wants():
    found, spec = drawn(
        study((UNIFORM, ZIPF), column="workload"),
        x="workload",
        names={"workload": "load", "zipf": "hot", UNIFORM: "even", "waf": "WA"},
    )
    assert [row["x"] for row in found.rows] == ["even", "hot"]
    axes = spec["layer"][0]["encoding"]
    assert axes["x"]["title"] == "load" and axes["y"]["title"] == "WA"


def test_settings_that_have_a_name_are_settings(cli):
    for key in SETTINGS:
        assert cli("explain", key).returncode == 0, key


def test_numbers_stand_upward_and_words_as_the_study_has_them():
    found, spec = drawn(study((65536, 8192), column="map.cache_bytes"), x="seed",
                        by="map.cache_bytes")  # fmt: skip
    assert found.by.order == ["8 KiB", "64 KiB"]
    assert spec["layer"][-1]["encoding"]["stroke"]["legend"]["title"] == "map cache"
    found, _ = drawn(study(("random", "greedy", "fifo")), x="seed", by="ftl.victim")
    assert found.by.order == ["random", "greedy", "fifo"]


@pytest.mark.parametrize(
    ("values", "log", "scale"),
    [
        ((8192, 65536), None, "log"),  # eight times
        ((8192, 16384), None, None),
        ((8192, 16384), "x", "log"),
        ((8192, 65536), "none", None),
    ],
)
def test_an_axis_is_logarithmic_where_it_is_wide_or_asked_for(values, log, scale):
    runs = study(values, column="map.cache_bytes")
    _, spec = drawn(runs, x="map.cache_bytes", log=log)
    assert spec["layer"][0]["encoding"]["x"]["scale"].get("type") == scale
    assert spec["layer"][0]["encoding"]["y"]["scale"].get("type") is None


def test_a_log_axis_without_a_place_for_a_value_is_refused():
    with pytest.raises(InputError, match="a value is 0"):
        drawn(study((0, 8192), column="map.cache_bytes"), x="map.cache_bytes", log="x")


def test_a_panel_without_data_says_so_and_what_is_left_out_is_said(tmp_path):
    rows = [
        ({"trace": trace, "ftl.victim": v}, {"waf": 1.0} | ({"iops": 5.0} if trace == "a" else {}))
        for trace in ("a", "b")
        for v in ("greedy", "fifo")
    ]
    runs = flashatlas.Frame(table_of(rows))
    found, _ = drawn(runs, y="iops", panel="trace")
    assert found.panel.order == ["a", "b"]
    assert found.notes == ["Not drawn: 2 of 4 runs have no iops."]
    path = flashatlas.figure(runs, tmp_path / "f.svg", x="ftl.victim", y="iops", panel="trace")
    assert path.read_text().count("no run here has this number") == 1


def test_a_distribution_is_drawn_with_its_tail():
    shares = {"p50": 1e5, "p90": 2e5, "p99": 1e6, "p99_9": 2e7, "max": 3e7, "mean": 1.5e5}
    rows = [
        (
            {"ftl.victim": victim, "seed": seed},
            {f"latency_ns.read.{key}": value * seed for key, value in shares.items()}
            | {"steady": victim == "greedy"},
        )
        for victim in ("greedy", "fifo")
        for seed in (1, 3)
    ]
    rows.append(({"ftl.victim": "greedy", "seed": 5}, {"steady": True}))
    runs = flashatlas.Frame(table_of(rows))
    found, spec = drawn(runs, x="percentile", y="latency_ns.read", by="ftl.victim", kind="line")
    greedy = [row for row in found.rows if row["by"] == "greedy"]
    # the runs of seeds 1 and 3 have once and three times the values, so the mean is twice the
    # values; the axis is in units of 1 µs
    assert [(row["x"], row["y"]) for row in greedy] == [
        ("50 %", 200), ("90 %", 400), ("99 %", 2000), ("99.9 %", 40_000), ("all", 60_000)
    ]  # fmt: skip
    assert found.notes[1:] == [
        "Hollow: 2 of 4 runs were not steady, and would give other numbers if they were longer.",
        "Not drawn: 1 of 5 runs has no latency_ns.read.",
    ]
    axes = spec["layer"][0]["encoding"]
    assert spec["layer"][0]["mark"]["type"] == "line"
    assert axes["x"]["title"] == "requests done" and axes["y"]["title"] == "read latency (µs)"
    # from 100 µs to 90 ms is 900 times
    assert axes["y"]["scale"] == {"type": "log"}
    with pytest.raises(InputError, match=r"`waf` has no percentiles .*there are latency_ns\.read"):
        drawn(runs, x="percentile", y="waf")


def test_a_part_of_a_study_is_a_figure_only_where_it_is_asked_for(tmp_path):
    part = flashatlas.Frame(study().table, asked=54)
    with pytest.raises(
        InputError, match="6 of 54 runs are done: readers would take these runs for the whole study"
    ) as caught:
        flashatlas.figure(part, tmp_path / "f.svg", x="ftl.victim", y="waf")
    assert caught.value.field == "allow_incomplete" and not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="6 of 54"):
        flashatlas.significance(part, "waf", "ftl.victim")
    path = flashatlas.figure(part, tmp_path / "f.svg", x="ftl.victim", y="waf",
                             allow_incomplete=True)  # fmt: skip
    assert "Incomplete: 6 of 54 runs are done." in path.read_text()


def test_a_run_that_failed_is_missing_in_a_figure_and_stands_in_a_table():
    table = study().table.append_column("failure", [[None] * 5 + ["worn out"]])
    runs = flashatlas.Frame(table, asked=6)
    assert runs.incomplete() == "5 of 6 runs are done (1 failed)"
    with pytest.raises(InputError):
        runs.must_be_whole(allowed=False)
    runs.must_be_whole(allowed=False, with_failures=True)


def test_a_table_for_a_paper_has_a_factor_across_and_marks_what_is_unsteady(tmp_path):
    rows = [
        ({"ftl.victim": v, "map.cache_bytes": c, "seed": s}, {"waf": 1.5, "steady": c > 8192})
        for v in ("greedy", "fifo")
        for c in (65536, 8192)
        for s in (1, 2)
    ]
    runs = flashatlas.Frame(table_of(rows), asked=9)
    text = write_summary(tmp_path / "t.tex", runs, ["waf"], "map.cache_bytes").read_text()
    assert text.splitlines()[1:] == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r" & \multicolumn{2}{c}{Write amplification} \\",
        r"\cmidrule(lr){2-3}",
        r"victim policy & 8.0 KiB & 64.0 KiB \\",
        r"\midrule",
        r"greedy & 1.5$^{\circ}$ & 1.5 \\",
        r"fifo & 1.5$^{\circ}$ & 1.5 \\",
        r"\bottomrule",
        r"\multicolumn{3}{l}{\footnotesize $^{\circ}$ 4 of 8 runs were not steady, and would give "
        r"other numbers if they were longer.} \\",
        r"\multicolumn{3}{l}{\footnotesize Incomplete: 8 of 9 runs are done.} \\",
        r"\end{tabular}",
    ]
    with pytest.raises(
        InputError, match=r"`drive` is not a factor .*ftl\.victim, " r"map\.cache_bytes"
    ):
        write_summary(tmp_path / "t.tex", runs, ["waf"], "drive")
    with pytest.raises(InputError, match="across"):
        write_summary(tmp_path / "t.csv", runs, ["waf"], "ftl.victim")


STUDY = """
[run]
drive = "tiny"
workload = "uniform:requests=200,size=4KiB"
[axes]
ftl.victim = ["greedy", "fifo"]
seed = [1, 2]
"""


def test_every_command_refuses_a_part_of_a_study(cli, tmp_path):
    (tmp_path / "part.toml").write_text(STUDY)
    assert cli("sweep", "part.toml", "--store", "st", "--shard", "1/2", "-q").returncode == 0
    commands = {
        ("figure", "st:part", "--x", "ftl.victim", "-o", "f.svg"): "f.svg",
        ("table", "st:part", "-o", "t.csv"): "t.csv",
        ("results", "show", "st:part", "-o", "s.tex"): "s.tex",
        ("results", "export", "st:part", "-o", "e.csv"): "e.csv",
        ("report", "st:part", "-o", "r.html"): "r.html",
    }
    for command, file in commands.items():
        refused = cli(*command)
        assert refused.returncode == 2, command
        assert "2 of 4 runs are done" in refused.stderr and "--allow-incomplete" in refused.stderr
        assert not (tmp_path / file).exists()
        taken = cli(*command, "--allow-incomplete")
        assert taken.returncode == 0 and (tmp_path / file).is_file(), taken.stderr
        # 200 requests cause no collection: no run is steady, and each output says so
        said = taken.stdout + taken.stderr + (tmp_path / file).read_text()
        assert "2 of 4" in said and "not steady" in said, command
    assert "2 of 4 runs are done" in cli("results", "show", "st:part").stdout
    refused = cli("significance", "st:part", "--of", "waf", "--between", "ftl.victim")
    assert refused.returncode == 2 and "2 of 4 runs are done" in refused.stderr
    assert cli("report", "x", "--allow-incomplete").returncode == 2


def labels_of(svg: str) -> list[list[str]]:
    """Return the labels of each axis, with its title as the last."""
    axes = re.findall(r"role-axis-label.*?</g></g>", svg, re.DOTALL)
    return [re.findall(r"<text[^>]*>([^<]*)</text>", axis) for axis in axes]


@pytest.mark.parametrize("values", [
    (0.1,), (0.5,), (0.07,), (7,), (1048577,), (0.07, 0.15, 0.28), (0.125, 0.5), (0.1, 0.1001),
    (1048576, 1048577), (1, 2, 4, 8, 16), (0.03, 3),
])  # fmt: skip
@pytest.mark.parametrize("log", ["x", "none"])
def test_ticks_across_say_the_values_that_they_stand_at(tmp_path, values, log):
    """Vega rounds to the step between ticks: a lone 0.1 was labelled 0, and a lone 0.5 was 1."""
    runs = study(values, seeds=1, column="drive.over_provisioning")
    path = flashatlas.figure(
        runs, tmp_path / "f.svg", x="drive.over_provisioning", y="waf", log=log, columns=2
    )
    across, _ = labels_of(path.read_text())
    assert [float(label.replace(",", "")) for label in across[:-1]] == list(values)


@pytest.mark.parametrize("value", [1.5, 2.5, 0.0004, 1.25, 2500000.5])
@pytest.mark.parametrize("kind", ["line", "bar"])
def test_ticks_upward_say_where_they_stand(tmp_path, value, kind):
    """All runs have the same number, and the label beside the mark is that number."""
    runs = flashatlas.Frame(
        table_of([({"ftl.victim": v}, {"waf": value}) for v in ("greedy", "fifo")])
    )
    path = flashatlas.figure(runs, tmp_path / "f.svg", x="ftl.victim", y="waf", kind=kind)
    _, upward = labels_of(path.read_text())
    found = [float(label.replace(",", "")) for label in upward[:-1]]
    if kind == "line":
        assert found == [value]
    else:  # bars have a scale from zero: its ticks are equally far apart
        steps = {round((b - a) / value, 9) for a, b in itertools.pairwise(found)}
        assert found[0] == 0 and len(steps) == 1


def test_large_numbers_that_are_words_have_all_their_digits():
    for values in [(1048577,), (1048577, 2048)]:
        found, _ = drawn(study(values, column="requests"), x="requests", kind="bar")
        assert set(found.x.order) == {f"{value} requests" for value in values}
