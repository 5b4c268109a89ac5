"""The report in a real browser: its drawings, its keyboard, and its silence on the network."""

from __future__ import annotations

import itertools
import json
import re
from importlib import resources
from pathlib import Path

import pytest
from conftest import ONE_IN
from flashatlas.report import render, write_report
from report_fakes import fake

COMMAND = "flashatlas compare --case 'a:ftl.victim=fifo' --out \"two words\""
HOSTILE = "</script><img src=x onerror=window.hacked=1>"


def several() -> list:
    return [
        fake("greedy", seed=1),
        fake(
            HOSTILE,
            seed=2,
            params={"ftl.victim": "fifo"},
            notes=["only here"],
            areas=("hot", "cold"),
        ),
        fake("cost-benefit", seed=3, waf_parts={"cache_evict": 1.0, "gc": 2.0888}),
        fake("untimed", seed=4, timed=False),
        fake("old", seed=5, tables=False),
    ]


def study() -> list:
    """Return fifty-four runs: three victims, three caches, two stores, three seeds."""
    axes = itertools.product(
        ("greedy", "fifo", "random"), (8192, 32768, 131072), ("dftl", "tpftl"), (1, 2, 3)
    )
    runs = [
        fake(
            f"{victim} {cache} {store} {seed}",
            seed=seed,
            params={"ftl.victim": victim, "map.cache_bytes": cache, "map.store": store},
            tables=False,
        )
        for victim, cache, store, seed in axes
    ]
    for run in runs:
        if run.label.startswith("fifo 8192"):
            run.record.update(steady=False, steadiness={"reasons": [], "erased_pages": 0})
    return runs


def grid() -> list:
    """Return six runs: three victims, two caches."""
    return [
        fake(f"{victim} {cache}", params={"ftl.victim": victim, "map.cache_bytes": cache})
        for victim, cache in itertools.product(("greedy", "fifo", "random"), (8192, 32768))
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    """Write a report of one run, and a report of several runs."""
    folder = tmp_path_factory.mktemp("reports")
    sets = {
        "one": [fake("only", rows=512, areas=("hot", "cold"))],
        "several": several(),
        "study": study(),
        "grid": grid(),
    }
    return {
        name: write_report(folder / f"{name}.html", f"Report of {name}", results, COMMAND)
        for name, results in sets.items()
    }


@pytest.fixture
def view(used, files):
    """Return a function that opens a report by its name."""

    def view(name: str = "several", **options):
        return used(files[name], **options)

    return view


@pytest.fixture
def seen(looked_at, files):
    """Return a function that opens a report by its name, for tests that change nothing in it."""
    return lambda name="several": looked_at(files[name])


def overflow(page) -> list[str]:
    """Return the elements that reach beyond the page, except in parts that scroll by themselves."""
    return page.evaluate(
        """() => [...document.body.querySelectorAll("*")].filter((e) =>
            e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5
            && !e.closest(".scroll, nav, .skip, svg, #tooltip"))
             .map((e) => e.outerHTML.slice(0, 90))"""
    )


@pytest.mark.parametrize("name", ["one", "several"])
def test_every_chart_has_marks_and_no_message_appears(seen, name):
    page = seen(name)
    marks = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll(".plot")].map((plot) => [
            plot.dataset.chart,
            plot.querySelectorAll("svg .role-mark > path, svg .role-mark > text").length]))"""
    )
    assert len(marks) >= 15
    assert {"log-blocks", "data-blocks", "areas"} <= set(marks)
    assert {chart: count for chart, count in marks.items() if count < 1} == {}
    lines = page.eval_on_selector_all(
        ".plot svg .mark-line path", "paths => paths.map(p => p.getAttribute('d').length)"
    )
    assert len(lines) > 15 and min(lines) > 8
    assert not page.query_selector_all(".plot:not(:has(svg))")
    assert page.evaluate("window.hacked") is None


def test_colours_come_from_the_style_sheet(view):
    page = view("one", color_scheme="light")
    line = ".plot[data-chart=throughput] .mark-line path"
    light = page.eval_on_selector(line, "e => getComputedStyle(e).stroke")
    page.click("[data-theme-choice=dark]")
    dark = page.eval_on_selector(line, "e => getComputedStyle(e).stroke")
    assert (light, dark) == ("rgb(31, 98, 201)", "rgb(79, 174, 255)")


def test_runs_are_told_apart_by_dash_and_shape_too(seen):
    page = seen()
    lines = ".plot[data-chart=percentiles-read] .mark-line path"
    dashes = page.eval_on_selector_all(
        lines, "paths => paths.map(p => p.getAttribute('stroke-dasharray'))"
    )
    shapes = page.eval_on_selector_all(
        ".plot[data-chart=percentiles-read] .mark-symbol path",
        "paths => paths.map(p => p.getAttribute('d'))",
    )
    assert len(dashes) == 4 == len(set(dashes)) == len(set(shapes))


def test_tooltips_have_exact_values_and_units(view):
    page = view()
    bars = page.query_selector_all(".plot[data-chart=waf] .mark-rect path")
    texts = []
    for bar in bars:
        bar.hover(force=True)
        page.wait_for_selector("#tooltip.visible")
        texts.append(page.inner_text("#tooltip"))
    assert any(re.search(r"cost-benefit[\s\S]*collection[\s\S]*2\.089", text) for text in texts), (
        texts
    )
    page.query_selector(".plot[data-chart=cdf-read]").hover(position={"x": 300, "y": 120})
    page.wait_for_selector("#tooltip.visible")
    assert re.search(
        r"within\s+[\d.]+ (ns|µs|ms|s)\s+of all reads\s+[\d.]+ %", page.inner_text("#tooltip")
    )


def test_the_table_behind_each_chart_opens_by_keyboard(view):
    page = view()
    summaries = page.query_selector_all("details.data > summary")
    assert len(summaries) == len(page.query_selector_all(".plot"))
    for summary in summaries:
        summary.focus()
        page.keyboard.press("Enter")
    page.wait_for_timeout(200)
    counts = page.eval_on_selector_all(
        "details.data",
        "all => all.map(d => [d.dataset.chart, d.querySelectorAll('tbody tr').length])",
    )
    assert {chart: count for chart, count in counts if count == 0} == {}
    waf = page.inner_text("details[data-chart=waf]")
    assert re.search(r"cost-benefit\s+collection\s+2\.089", waf)
    assert "</script><img" in waf
    assert overflow(page) == []


def test_the_slider_moves_the_map_and_the_words(view):
    page = view("one")
    picture = "e => e.toDataURL()"
    first, words = page.eval_on_selector("#ex-map", picture), page.inner_text("#ex-live")
    assert re.search(
        r"of 798 blocks [\d,]+ free, [\d,]+ data, [\d,]+ log; [\d.]+ % of the slots are valid",
        words,
    )
    counts = [
        int(count.replace(",", "")) for count in re.findall(r"([\d,]+) (?:free|data|log)", words)
    ]
    assert sum(counts) == 798
    page.focus("#ex-frame")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    assert page.input_value("#ex-frame") == "4"
    assert page.get_attribute("#ex-frame", "aria-valuetext") == "156.3 ms, picture 5 of 8"
    assert page.eval_on_selector("#ex-map", picture) != first
    assert page.inner_text("#ex-live") != words
    by_valid = page.eval_on_selector("#ex-map", picture)
    page.select_option("#ex-by", "role")
    assert page.eval_on_selector("#ex-map", picture) != by_valid
    assert re.findall(r"\w+", page.inner_text("#ex-legend")) == ["free", "data", "log"]


def test_the_map_is_walked_by_keyboard_and_pointer(view):
    page = view("one")
    page.focus("#ex-map")
    assert page.inner_text("#ex-cell").startswith("Blocks 0 to 3: ")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#ex-cell").startswith("Blocks 4 to 7: ")
    page.keyboard.press("ArrowDown")
    below = int(re.match(r"Blocks ([\d,]+)", page.inner_text("#ex-cell")).group(1).replace(",", ""))
    assert below > 40 and (below - 4) % 4 == 0
    page.keyboard.press("End")
    assert re.match(
        r"Blocks 796 to 797: \w+, \d+ % valid, [\d.]+ erases in the mean",
        page.inner_text("#ex-cell"),
    )
    page.hover("#ex-map", position={"x": 2, "y": 2})
    assert page.inner_text("#ex-cell").startswith("Blocks 0 to 3: ")


def test_playing_stops_at_the_end_and_is_quiet_meanwhile(view):
    page = view("one")
    page.focus("#ex-play")
    page.keyboard.press("Enter")
    assert (page.inner_text("#ex-play"), page.get_attribute("#ex-live", "aria-live")) == (
        "Pause",
        "off",
    )
    page.wait_for_selector("#ex-play[aria-pressed=false]", timeout=10_000)
    assert (page.input_value("#ex-frame"), page.get_attribute("#ex-live", "aria-live")) == (
        "7",
        "polite",
    )


def test_another_run_is_explored_by_choice(view):
    page = view()
    before = page.inner_text("#ex-live")
    page.select_option("#ex-run", label="untimed")
    page.wait_for_selector("#ex-live:has-text('untimed')")
    assert "request 31,250,000" in page.inner_text("#ex-live") and "untimed" not in before


def test_a_browser_that_cannot_unpack_is_told_so(view):
    page = view("one", before=lambda p: p.add_init_script("delete window.DecompressionStream"))
    assert "lacks DecompressionStream" in page.inner_text("#ex-fallback")
    assert not page.is_visible("#ex-map")


def test_the_command_is_copied_as_it_was(view):
    page = view("one", permissions=["clipboard-read", "clipboard-write"])
    page.click("#copy")
    page.wait_for_selector("#copied:has-text('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == COMMAND


def test_the_first_key_leads_to_the_content(view):
    page = view("one")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize("name", ["one", "several", "study"])
def test_a_phone_of_360_pixels_scrolls_only_downwards(view, name):
    page = view(name, width=360, is_mobile=True, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert overflow(page) == []
    widths = page.eval_on_selector_all(
        ".plot svg", "all => all.map(s => s.getBoundingClientRect().width)"
    )
    assert min(widths) > 250 and max(widths) <= 360


def test_the_first_column_stays_on_a_phone(view):
    page = view(width=360)
    moved = page.evaluate(
        """() => { const box = document.querySelector("#summary .scroll"); box.scrollLeft = 150;
            const cell = box.querySelector("tbody tr:not(.group) th");
            const left = (element) => element.getBoundingClientRect().left;
            return [box.scrollLeft, left(cell) - left(box)]; }"""
    )
    assert moved == [150, 0]


def test_charts_are_drawn_anew_for_another_width(view):
    page = view("one")
    page.set_viewport_size({"width": 700, "height": 800})
    page.wait_for_selector("html[data-charts=drawing]")
    page.wait_for_selector("html[data-charts=drawn]", timeout=60_000)
    assert overflow(page) == []
    box, svg = (
        page.eval_on_selector(
            f".plot[data-chart=waf]{part}", "e => e.getBoundingClientRect().width"
        )
        for part in ("", " svg")
    )
    assert box - 30 < svg <= box


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_systems_colours_are_followed_until_others_are_chosen(view, scheme):
    page = view("one", color_scheme=scheme)
    ground = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}
    shown = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(shown) == ground[scheme]
    before = page.eval_on_selector("#ex-map", "e => e.toDataURL()")
    other = {"light": "dark", "dark": "light"}[scheme]
    page.click(f"[data-theme-choice={other}]")
    assert page.evaluate(shown) == ground[other]
    assert page.get_attribute(f"[data-theme-choice={other}]", "aria-pressed") == "true"
    assert page.eval_on_selector("#ex-map", "e => e.toDataURL()") != before
    page.click("[data-theme-choice=auto]")
    assert page.evaluate(shown) == ground[scheme]


def test_paper_is_white_and_has_all_charts(view, tmp_path):
    page = view(color_scheme="dark")
    charts = len(page.query_selector_all(".plot"))
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 700, "height": 1000})
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.is_visible("nav") and not page.is_visible("#copy")
    sizes = page.eval_on_selector_all(
        ".plot svg",
        "all => all.map(s => s.getBoundingClientRect()).map(r => [r.width, r.height, r.right])",
    )
    assert len(sizes) == charts
    assert all(width > 100 and height > 20 and right <= 700 for width, height, right in sizes)
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert (tmp_path / "report.pdf").stat().st_size > 50_000


def axe() -> str:
    try:
        return (
            resources.files("axe_playwright_python")
            .joinpath("axe.min.js")
            .read_text(encoding="utf-8")
        )
    except ModuleNotFoundError:
        pytest.skip("the package `axe-playwright-python` is not installed")


AXE = [("one", "light"), ("one", "dark"), ("several", "light"), ("several", "dark"),
       ("study", "light"), ("study", "dark")]  # fmt: skip


@pytest.mark.parametrize(("name", "scheme"), AXE if ONE_IN == 1 else AXE[1::3])
def test_axe_finds_nothing_against_the_guidelines(view, name, scheme):
    page = view(name, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
    for summary in page.query_selector_all(
        "[data-chart=waf] > summary, [data-chart=factor-erases] > summary, "
        "#parameters details > summary"
    ):
        summary.click()
    page.wait_for_selector("details.data table")
    page.evaluate(axe())
    found = page.evaluate("axe.run({exclude: ['.plot > div']}, {resultTypes: ['violations']})")
    broken = [
        (v["id"], v["help"], [node["html"][:120] for node in v["nodes"][:3]])
        for v in found["violations"]
    ]
    assert broken == []
    assert len(found["passes"]) > 20


def test_headings_and_landmarks_are_in_order(seen):
    page = seen("one")
    levels = page.eval_on_selector_all(
        "h1, h2, h3, h4", "all => all.map(h => Number(h.tagName[1]))"
    )
    assert levels.count(1) == 1 and levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert [len(page.query_selector_all(mark)) for mark in ("header", "nav", "main", "footer")] == [
        1,
        1,
        1,
        1,
    ]
    labels = page.eval_on_selector_all(
        ".plot", "all => all.map(p => [p.getAttribute('role'), p.ariaLabel])"
    )
    assert [
        (role, label)
        for role, label in labels
        if role != "img" or not re.search(r"\w{4}.*\d", label)
    ] == []
    hidden = page.eval_on_selector_all(".plot > div", "all => all.map(d => d.ariaHidden)")
    assert len(hidden) == len(labels) and set(hidden) == {"true"}, (
        "the picture itself is not read out"
    )


def test_without_scripts_the_numbers_are_there(browser, files):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(files["several"].as_uri())
    assert "switched off" in page.inner_text("noscript")
    assert "1.650" in page.inner_text("#summary")
    context.close()


def test_the_same_input_gives_the_same_report():
    assert render("t", several(), "c") == render("t", several(), "c")


def test_marks_of_a_study_with_runs_that_were_not_steady_are_hollow(seen):
    page = seen("study")
    held = json.loads(page.locator("#report-data").text_content())
    name = "factor-write-amplification"
    found = held["charts"][name]["data"][name]["unsteady"]
    hollow = page.locator(
        "#figure-factor-write-amplification svg .mark-symbol path[fill='var(--paper)']"
    )
    # one victim of one size in two stores, with three seeds each
    assert hollow.count() == 2 and sorted(found)[-3:] == [0, 3, 3]
    said = "Hollow: with a run that was not steady (6 of 54)"
    assert said in page.locator("#factors .lead").inner_text()


def test_a_study_is_drawn_over_its_factors(seen):
    page = seen("study")
    assert (
        page.locator("#factors .lead").inner_text().startswith("54 runs. Across: map.cache_bytes")
    )
    panels = page.locator('.plot[data-chart="factor-write-amplification"] .role-title-text')
    assert [title for title in panels.all_text_contents() if ":" in title] == [
        "map.store: dftl",
        "map.store: tpftl",
    ]
    assert page.locator("table.sortable tbody tr").count() == 54, "no run is left out"


def test_a_heading_sorts_the_runs(view):
    page = view("study")
    head = page.locator("table.sortable th", has_text="map.cache_bytes")
    place = head.evaluate("head => head.cellIndex") + 1
    column = page.locator(f"table.sortable tbody tr :nth-child({place})")
    for direction, first in (("ascending", "8.0 KiB"), ("descending", "128.0 KiB")):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == direction
        assert column.first.inner_text() == first


def test_figures_and_their_data_can_be_kept(view, tmp_path):
    page = view("several")
    for kind, begins in (("svg", b"<svg"), ("png", b"\x89PNG"), ("csv", b"Run,")):
        with page.expect_download() as started:
            page.locator(f'#figure-waf [data-get="{kind}"]').click()
        path = tmp_path / started.value.suggested_filename
        started.value.save_as(path)
        content = path.read_bytes()
        assert path.name == f"waf.{kind}" and content.startswith(begins)
        assert b"var(--" not in content, "colours of their own, outside the page"


def test_the_key_hides_a_run_and_shows_it_again(view):
    page = view("several")
    lines = page.locator('.plot[data-chart="throughput"] .mark-line path')
    drawn = lines.count()
    button = page.locator("button.run").first
    for pressed, count in (("false", drawn - 2), ("true", drawn)):
        page.evaluate("document.documentElement.dataset.charts = ''")
        button.click()
        page.wait_for_selector("html[data-charts=drawn]")
        assert button.get_attribute("aria-pressed") == pressed and lines.count() == count


def test_the_key_of_two_factors_hides_their_values(view):
    page = view("grid")
    lines = page.locator('.plot[data-chart="throughput"] .mark-line path')
    drawn = lines.count()
    buttons = page.locator("#latency button.run")
    assert buttons.all_inner_texts() == ["greedy", "fifo", "random", "8 KiB", "32 KiB"]

    def click(at: int) -> None:
        page.evaluate("document.documentElement.dataset.charts = ''")
        buttons.nth(at).click()
        page.wait_for_selector("html[data-charts=drawn]")

    click(0)  # of six runs, two have this victim, three have that cache, and one has both
    assert lines.count() == drawn * 4 / 6
    click(3)
    assert lines.count() == drawn * 2 / 6
    assert [b.get_attribute("aria-pressed") for b in buttons.all()] == [
        "false",
        "true",
        "true",
        "false",
        "true",
    ]
    buttons.nth(4).click()  # refused: no run would be left
    assert buttons.nth(4).get_attribute("aria-pressed") == "true"


def test_every_report_prints_below_three_megabytes(seen):
    for name in ("one", "several", "study"):
        assert len(seen(name).pdf()) < 3e6, name
