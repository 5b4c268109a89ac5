"""The report as text: its content, its security policy, and its packed data.

``test_report_browser.py`` tests its looks.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
import re
import time
import zlib
from html.parser import HTMLParser

import pyarrow as pa
import pytest
from flashatlas import InputError, Result, run
from flashatlas.report import explorer, render, sections, vega, write_report
from flashatlas.report.chart import thin
from flashatlas.report.document import asset
from flashatlas.report.latency import cumulate, decades, nines
from flashatlas.report.palette import Runs
from flashatlas.results.rows import ROWS
from report_fakes import blocks, fake

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\u2028<!--"


class Page(HTMLParser):
    """A parser of elements with their attributes, of scripts, and of all other text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif "style" not in self.open[-1:]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))

    def data(self) -> dict:
        return next(json.loads(script) for script in self.scripts if script.startswith("{"))


def page(*results: Result, title: str = "A title", command: str = "flashatlas run") -> Page:
    return Page(render(title, results, command))


def test_nothing_from_a_record_becomes_markup():
    result = fake(HOSTILE, notes=[HOSTILE], params={HOSTILE: HOSTILE, "ftl.victim": HOSTILE})
    result.record["trace"]["path"] = result.record["config"]["drive"] = result.record["version"] = (
        HOSTILE
    )
    result.record["waf_parts"] = {"host": 1.0, HOSTILE: 1.0}
    result.record["memory_bytes"]["tables"][HOSTILE] = 5
    result.record["merges"] = {HOSTILE: {HOSTILE: 3}}
    html = render(HOSTILE, [result, fake("other")], HOSTILE)
    assert "<img" not in html.replace(vega.bundle(), "")
    made = Page(html)
    assert [tag for tag, _ in made.elements if tag == "script"] == ["script"] * 4
    assert not [
        attributes
        for _, attributes in made.elements
        if any(name.startswith("on") for name in attributes)
    ]
    assert made.data()["runs"] == [HOSTILE, "other"]


def test_the_policy_allows_the_three_scripts_and_nothing_from_anywhere():
    made = page(fake("a"), fake("b", seed=2))
    policy = next(
        a["content"] for tag, a in made.elements if a.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    code = [script for script in made.scripts if not script.startswith("{")]
    digests = {
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in code
    }
    assert len(code) == 3
    assert set(rules.pop("script-src").split()) == digests
    assert rules == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "base-uri": "'none'",
        "img-src": "data:",
        "form-action": "'none'",
    }


def test_no_element_refers_to_anything_outside_of_the_file():
    made = page(fake("a"))
    targets = [
        a[name]
        for _, a in made.elements
        for name in ("src", "href", "srcset", "action", "data")
        if name in a
    ]
    assert targets
    assert all(target == "data:," or target.startswith("#") for target in targets)
    ids = {a["id"] for _, a in made.elements if "id" in a}
    assert {target[1:] for target in targets if target.startswith("#")} <= ids
    assert "url(" not in asset("report.css") and "@import" not in asset("report.css")


def test_one_run_has_its_numbers_as_tiles():
    record = fake("only", waf_parts={"cache_evict": 1.0, "gc": 0.25})
    record.record["latency_ns"]["read"] |= {"p99": 1_234_000.0, "mean": 87_000.0}
    text = page(record).text
    assert "Write amplification 1.250 of which 0.250 moved data" in text
    assert "Read p99 1.23 ms mean 87 µs" in text
    assert "Requests a second 50,001 in 2 s" in text


def test_several_runs_have_the_best_of_each_row_marked():
    low, high = (
        fake("low", seed=1, waf_parts={"host": 1.5}),
        fake("high", seed=2, waf_parts={"host": 2.5}),
    )
    html = render("t", [high, low], "c")
    row = re.search(r"<tr><th scope=\"row\">write amplification.*?</tr>", html).group()
    assert re.findall(r"<td( class=\"best\")?>([\d.]+)", row) == [
        ("", "2.500"),
        (' class="best"', "1.500"),
    ]
    assert 'aria-label="lower is better"' in row
    assert "Least write amplification 1.500 low" in Page(html).text


def test_every_row_of_the_summary_has_a_group():
    assert all(row.group for row in ROWS)


def test_an_approximation_stands_once_with_the_runs_that_it_concerns():
    made = page(
        fake("a", notes=["all do", "a and b"]),
        fake("b", notes=["all do", "a and b"]),
        fake("c", notes=["all do"]),
    )
    assert made.text.count("all do") == made.text.count("a and b") == 1
    assert "all do (all runs)" in made.text
    assert "a and b (a, b)" in made.text


def test_parameters_that_differ_stand_apart_from_those_shared():
    results = [
        fake("a", params={"ftl.d": 5}),
        fake("b", params={"ftl.victim": "fifo", "timing.t_erase": "3500us"}),
    ]
    html = render("t", results, "c")
    differing, shared = html.split('id="parameters-title"')[1].split("<details>")[:2]
    assert re.findall(r"<code>([\w.]+)</code>", differing) == [
        "ftl.d",
        "ftl.victim",
        "timing.t_erase",
    ]
    assert "<td>–</td><td>3500us</td>" in differing
    assert "<code>timing.t_read</code></th><td>60us</td>" in shared


@pytest.mark.parametrize(
    ("value", "shown"),
    [("60us", "60us"), (True, "true"), (720_896, "720,896"), (0.75, "0.75")],
)
def test_parameters_are_shown_as_files_have_them(value, shown):
    assert sections.parameter(value) == shown


def test_wrong_data_is_the_first_thing_said():
    made = page(fake("a", violations=1), fake("b"))
    assert "1 units held wrong data" in made.text
    assert "a: page 7 held <b>old</b> data" in made.text
    assert "All data was right" not in made.text
    assert "All data was right. 8,000 mapping units" in page(fake("a"), fake("b")).text


@pytest.mark.parametrize("timed", [True, False])
def test_a_run_without_tables_is_told_and_no_error(timed):
    made = page(fake("old", timed=timed, tables=False))
    assert set(made.data()["charts"]) <= {
        "waf",
        "memory",
        "percentiles-read",
        "percentiles-write",
        "utilisation",
    }
    assert "Over time: no run has a time series." in made.text
    assert "Block explorer: no run has a table of blocks." in made.text
    if not timed:
        assert (
            "Latency: the runs were untimed" in made.text
            and "Utilisation: the runs were untimed" in made.text
        )


def test_a_record_with_next_to_nothing_gives_a_report():
    record = {
        "config": {"drive": "x", "params": {}},
        "trace": {"path": "t"},
        "oracle": {"violations": 0},
    }
    assert "the host wrote nothing" in page(Result({**record, "approximations": []})).text


def test_untimed_runs_are_shown_by_request_and_left_out_beside_timed_ones():
    alone = page(fake("u", timed=False)).data()["charts"]["flash-time"]["data"]["waf"]
    assert alone["x"][:2] == [1, 1667]
    both = page(fake("t"), fake("u", timed=False, seed=2))
    assert set(both.data()["charts"]["flash-time"]["data"]["waf"]["run"]) == {0}
    assert "for lack of a series with times: u." in both.text


def test_runs_of_one_name_are_told_apart():
    assert Runs([fake("a"), fake("a"), fake("a (2)"), fake("a")]).names == [
        "a",
        "a (2)",
        "a (2) (2)",
        "a (3)",
    ]


def test_looks_of_runs_repeat_late():
    runs = Runs([fake(f"run {i}") for i in range(40)])
    looks = runs.encoding("color", "strokeDash", "shape")
    ranges = [looks[channel]["scale"]["range"] for channel in ("color", "strokeDash", "shape")]
    assert len({(color, tuple(dash)) for color, dash in zip(*ranges[:2], strict=True)}) == 40
    assert len(set(zip(ranges[0], ranges[2], strict=True))) == 40


def test_numbers_that_json_does_not_have_become_null():
    result = fake("a")
    result.record["waf_parts"] = {"host": float("nan"), "gc": float("inf")}
    assert page(result).data()["charts"]["waf"]["data"]["parts"]["value"] == [None, None]


def test_a_report_without_runs_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="at least one run"):
        write_report(tmp_path / "r.html", "t", [], "c")
    assert not (tmp_path / "r.html").exists()


def test_a_real_run_has_every_chart(tmp_path):
    result = run(
        "tiny",
        workload="hotcold:requests=30000,size=2KiB,read=0.3,flush_every=50",
        precondition="steady",
    )
    made = Page(write_report(tmp_path / "r.html", "t", [result], "c").read_text(encoding="utf-8"))
    charts = {
        "waf",
        "cdf-read",
        "percentiles-read",
        "cdf-flush",
        "throughput",
        "latency-time",
        "flash-time",
        "load-time",
    }
    assert charts | {"wear", "utilisation", "memory"} <= set(made.data()["charts"])
    assert len(made.data()["explorer"]) == 1


# thinning


def test_thinning_keeps_peaks_ends_and_gaps():
    values = [5.0] * 100
    values[37], values[62] = 99.0, -3.0
    values[80:100] = [None] * 20
    kept = thin(values, 10)
    assert {0, 37, 62, 80, 99} <= set(kept)
    assert kept == sorted(kept) and len(kept) <= 12
    assert thin([1.0, None, 3.0], 10) == [0, 1, 2]


def test_a_distribution_counts_what_is_done_within_a_time():
    assert cumulate([40, 10, 20], [1, 2, 1], 100) == ([10, 10, 20, 40], [0.0, 0.5, 0.75, 1.0])
    assert cumulate([7], [3], 100) == ([7, 7], [0.0, 1.0])
    xs, ys = cumulate(list(range(1, 100_001)), [1] * 100_000, 200)
    assert 50 < len(xs) < 320
    assert all(y == x / 100_000 for x, y in zip(xs[1:], ys[1:], strict=True)), (
        "every kept point is exact"
    )
    # from one point to the next, the rest of the distribution falls by at most 2 / 200 of
    # ln(100,000) = 0.115, which is 0.05 decades
    steps = [(1 - a) / (1 - b) for a, b in itertools.pairwise(ys[:-1])]
    assert max(steps[:-20]) <= 10**0.06, "so that the tail has as many points as the body"
    assert ys[-2] >= 0.9999


def test_the_tail_of_a_distribution_has_room_on_its_axis():
    assert nines(0.5 / 20_000) == [1.0, 0.5, 0.1, 0.01, 0.001, 0.0001]


def test_logarithmic_axes_have_few_round_values():
    assert decades(5, 4_000_000) == [10, 100, 1_000, 10_000, 100_000, 1_000_000]
    assert decades(30, 250) == [50, 100, 200]


# the explorer


def unpack(packed: explorer.Packed, cells: int) -> tuple[list[int], list[float], list[str]]:
    """Return valid percents, erases and roles of all frames, decoded in a naive way."""
    raw = zlib.decompress(base64.b64decode(packed.planes))
    size = len(raw) // 4
    planes = []
    for k in range(4):
        plane = list(raw[k * size : (k + 1) * size])
        for i in range(cells, size):
            plane[i] = (plane[i] + plane[i - cells]) % 256
        planes.append(plane)
    valid, low, high, role = planes
    erases = [(a + 256 * b) / packed.erase_scale for a, b in zip(low, high, strict=True)]
    return valid, erases, [packed.roles[code] for code in role]


def small_blocks(**columns) -> pa.Table:
    rows = {
        "frame": [0, 0, 0, 1, 1, 1],
        "time_ns": [0, 0, 0, 50, 50, 50],
        "cell": [0, 1, 2, 0, 1, 2],
        "blocks": [4, 4, 1, 4, 4, 1],
        "valid": [1.0, 0.5, 0.0, 0.996, 0.25, 1.0],
        "erases": [0.0, 300.25, 7.0, 1.0, 299.0, 7.0],
        "role": ["closed", "open", "free", "bad", "data", "free"],
    }
    return pa.table({**rows, **columns})


def test_blocks_come_out_of_the_pack_as_they_went_in():
    packed = explorer.pack(small_blocks(), 10_000)
    assert (packed.times, packed.timed, packed.blocks, packed.every) == (
        [0, 50],
        True,
        [[4, 2], [1, 1]],
        1,
    )
    assert packed.roles == ["free", "open", "closed", "bad", "data"]
    assert unpack(packed, 3) == (
        [100, 50, 0, 100, 25, 100],
        [0.0, 300.25, 7.0, 1.0, 299.0, 7.0],
        ["closed", "open", "free", "bad", "data", "free"],
    )


def test_erases_beyond_what_two_bytes_hold_are_scaled():
    packed = explorer.pack(small_blocks(erases=[0.0, 655_350.0, 7.0, 1.0, 299.0, 7.0]), 10_000)
    assert packed.erase_scale == pytest.approx(0.1)
    assert unpack(packed, 3)[1][1] == pytest.approx(655_350.0)


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"cell": [0, 1, 2, 0, 1, 3]}, "`cell` is not the same in every frame"),
        ({"blocks": [4, 4, 1, 4, 5, 1]}, "`blocks` is not the same in every frame"),
        ({"frame": [0, 0, 0, 0, 1, 1]}, "6 rows are not"),
    ],
)
def test_a_table_of_other_than_whole_frames_is_told(columns, why):
    with pytest.raises(explorer.Unfit, match=why):
        explorer.pack(small_blocks(**columns), 10_000)
    result = fake("a")
    result.tables["blocks"] = small_blocks(**columns)
    assert why.replace("`", "") in page(result).text.replace("`", "")


def test_a_pack_too_long_leaves_out_frames():
    table = blocks(__import__("random").Random(3), 64, 500, True)
    whole = explorer.pack(table, 10**9)
    short = explorer.pack(table, len(whole.planes) // 3)
    assert whole.every == 1 and len(whole.times) == 64
    assert len(short.planes) <= len(whole.planes) // 3
    assert short.every in (4, 8) and short.times == whole.times[:: short.every]
    assert unpack(short, 500)[0] == [
        v for f in range(0, 64, short.every) for v in unpack(whole, 500)[0][500 * f : 500 * f + 500]
    ]


# the libraries


def test_the_libraries_are_made_once_and_a_damaged_copy_is_made_again(tmp_path, monkeypatch):
    made = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(
        vega.charts.library(),
        "javascript_bundle",
        lambda snippet: made.append(snippet) or "a='</script><!--'",
    )
    fresh = vega.bundle.__wrapped__
    first = fresh()
    assert fresh() == first and len(made) == 1
    assert "</script" not in first and "<!--" not in first
    (kept,) = (tmp_path / "flashatlas").iterdir()
    kept.write_text(kept.read_text() + "alert(1)")
    assert fresh() == first and len(made) == 2
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept))  # a file: nothing can be kept there
    assert fresh() == first and len(made) == 3


@pytest.mark.long
def test_ten_full_runs_stay_small(capsys):
    results = [
        fake(f"run {i}", seed=i, rows=512, frames=64, cells=4096, dies=64) for i in range(1, 11)
    ]
    vega.bundle()
    begin = time.monotonic()
    html = render("Ten runs", results, "flashatlas compare")
    elapsed = time.monotonic() - begin
    with capsys.disabled():
        print(f"\nreport of ten runs: {len(html.encode()) / 1e6:.2f} MB in {elapsed:.2f} s")
    assert len(html.encode()) < 3_000_000


# colours

MACHADO = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}
"""Matrices of seen colours: Machado, Oliveira, Fernandes, IEEE TVCG 15 (2009), severity 1."""


def colours(mode: int) -> dict[str, tuple[float, float, float]]:
    """Return the linear colours of the style sheet; mode 0 is light, 1 dark."""
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", asset("report.css"))
    linear = [
        x / 255 / 12.92 if x <= 10 else ((x / 255 + 0.055) / 1.055) ** 2.4 for x in range(256)
    ]
    return {
        name: tuple(linear[int(hexes[mode][i : i + 2], 16)] for i in (1, 3, 5))
        for name, *hexes in pairs
    }


def contrast(a: tuple[float, float, float], b: tuple[float, float, float]) -> float:
    low, high = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (a, b))
    return (high + 0.05) / (low + 0.05)


def oklab(rgb: tuple[float, float, float]) -> tuple[float, float, float]:
    r, g, b = (min(max(x, 0), 1) for x in rgb)
    k = 0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b
    m = 0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b
    s = 0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b
    k, m, s = (x ** (1 / 3) for x in (k, m, s))
    return (
        0.2104542553 * k + 0.7936177850 * m - 0.0040720468 * s,
        1.9779984951 * k - 2.4285922050 * m + 0.4505937099 * s,
        0.0259040371 * k + 0.7827717662 * m - 0.8086757660 * s,
    )


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_colours_stand_out_from_the_page(mode):
    found = colours(mode)
    for name, colour in found.items():
        least = 4.5 if name in ("ink", "ink-2", "accent", "good", "bad") else 3.0
        if name in ("ink", "ink-2", "accent", "good", "bad") or re.match(
            r"run-|cause-|table-", name
        ):
            assert contrast(colour, found["paper"]) >= least, name
    for text, shade in (
        ("ink", "shade"),
        ("ink-2", "shade"),
        ("good", "good-shade"),
        ("bad", "bad-shade"),
    ):
        assert contrast(found[text], found[shade]) >= 4.5, text


@pytest.mark.parametrize("sight", MACHADO)
@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_runs_differ_in_colour_for_all_eyes(mode, sight):
    found = colours(mode)
    seen = {
        i: oklab(
            tuple(
                sum(a * b for a, b in zip(row, found[f"run-{i}"], strict=True))
                for row in MACHADO[sight]
            )
        )
        for i in range(8)
    }
    distances = {(i, j): math.dist(seen[i], seen[j]) for i, j in itertools.combinations(seen, 2)}
    assert min(distances.values()) >= 0.055, min(distances, key=distances.get)
