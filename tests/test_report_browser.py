"""The report in a real browser. Skipped, saying so, where Chromium or Playwright is missing."""

from __future__ import annotations

import shutil

import flashatlas
import pytest
from flashatlas.report import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed (Debian: apt install chromium)")
playwright = pytest.importorskip("playwright.sync_api")

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def until(page, condition: str) -> None:
    """Wait until an expression is true. Asked from outside: the page's own policy forbids evaluating text."""
    for _ in range(300):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never came true: {condition}")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as starter:
        browser = starter.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A report of one run, and one of three."""
    folder = tmp_path_factory.mktemp("report")
    cases = [{"label": policy, "set": {"ftl.victim": policy}} for policy in ("greedy", "fifo", "random")]
    workload = "hotcold:requests=30000,size=2KiB,read=0.3,flush_every=100"
    results = flashatlas.compare(cases, workload=workload, precondition="fill")
    return {
        "one": write_report(folder / "one.html", "One run", results[:1]),
        "three": write_report(folder / "three.html", "Three runs", results),
    }


class Opened:
    """A page with what it complained of and asked for."""

    def __init__(self, browser, path, width=1200, scheme="light", media="screen"):
        self.page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        self.page.emulate_media(media=media, color_scheme=scheme)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        until(self.page, "document.documentElement.dataset.ready === 'yes'")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.page.close()


@pytest.mark.parametrize("name", ["one", "three"])
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (360, "dark")])
def test_it_opens_without_complaint_and_every_chart_has_marks(browser, reports, name, width, scheme):
    with Opened(browser, reports[name], width, scheme) as opened:
        assert opened.complaints == []
        own = [url for url in opened.requests if not url.startswith("data:")]
        assert own == [reports[name].as_uri()], "nothing but the page itself"
        # marks: paths, rectangles and symbols in the groups that Vega draws marks into
        script = """[...document.querySelectorAll('.chart')].map(c => [c.id,
            c.querySelectorAll('[class*=role-mark] path, [class*=role-mark] rect').length])"""
        counts = dict(opened.page.evaluate(script))
        expected = {"waf", "cdf-read", "cdf-write", "cdf-flush", "time-rate", "time-latency_read", "time-latency_write"}
        expected |= {"time-latency_flush", "time-background", "wear", "utilisation", "memory"}
        assert set(counts) == {f"chart-{key}" for key in expected}
        assert all(count > 0 for count in counts.values()), counts
        wide = opened.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{wide} pixels beyond the window"


def test_a_tooltip_has_the_exact_value(browser, reports):
    with Opened(browser, reports["three"]) as opened:
        bar = opened.page.locator("#chart-waf [class*=role-mark] path").first
        bar.hover()
        opened.page.wait_for_selector("#vg-tooltip-element.visible")
        text = opened.page.inner_text("#vg-tooltip-element")
        assert "amplification" in text and any(run in text for run in ("greedy", "fifo", "random"))


def picture(page) -> str:
    return page.evaluate("document.getElementById('x-blocks').toDataURL()")


def test_the_explorer_moves_through_time_and_blocks(browser, reports):
    with Opened(browser, reports["three"]) as opened:
        page = opened.page
        at_end, said = picture(page), page.inner_text("#x-sum")
        page.focus("#x-time")
        page.keyboard.press("Home")
        assert picture(page) != at_end and page.inner_text("#x-sum") != said
        assert page.get_attribute("#x-time", "aria-valuetext") == page.inner_text("#x-at")
        at_start = picture(page)
        for colour in ("erases", "role"):
            page.check(f"input[value={colour}]")
            assert picture(page) != at_start
        page.focus("#x-blocks")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert page.inner_text("#x-cell").startswith("Block 1: ")
        page.select_option("#x-run", "1")
        until(page, "document.documentElement.dataset.explorer === '1'")
        page.click("#x-play")
        first = page.inner_text("#x-at")
        until(page, f"document.getElementById('x-at').textContent !== {first!r}")
        assert opened.complaints == []


def test_what_the_explorer_shows_is_what_the_table_holds(browser, tmp_path):
    result = flashatlas.run(workload="uniform:requests=3000,size=2KiB", precondition="fill")
    rows = result.to_arrow("blocks").to_pylist()
    last = [row for row in rows if row["frame"] == rows[-1]["frame"]]
    with Opened(browser, write_report(tmp_path / "r.html", "x", [result])) as opened:
        page = opened.page
        page.focus("#x-blocks")
        for cell in range(40):
            page.keyboard.press("ArrowRight")
            row = last[cell]
            said = page.inner_text("#x-cell")
            assert said.startswith(f"Block {cell}: {row['role']}, "), said
            share = float(said.split(", ")[1].split()[0])
            assert abs(share - 100 * row["valid"]) <= 0.3, "values are kept to one part in 250"


def test_light_and_dark_and_print(browser, reports):
    ground = "getComputedStyle(document.body).backgroundColor"
    with Opened(browser, reports["one"], scheme="dark") as opened:
        page = opened.page
        dark = page.evaluate(ground)
        page.click("#theme")
        light = page.evaluate(ground)
        assert (dark, light) == ("rgb(20, 23, 28)", "rgb(255, 255, 255)")
        page.wait_for_timeout(500)
        assert page.locator(".chart svg").count() == page.locator(".chart").count() and opened.complaints == []
    with Opened(browser, reports["one"], media="print") as opened:
        assert opened.page.is_hidden("nav") and opened.page.is_visible("#chart-waf svg")
        assert len(opened.page.pdf()) > 10_000


def test_everything_has_a_name_and_contrast(browser, reports):
    """What a program can check of WCAG 2: names of controls and regions, order of headings, contrast of text."""
    script = """() => {
      const luminance = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map(Number).map(v => v / 255)
          .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126*r + 0.7152*g + 0.0722*b; };
      const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
          if (!/, 0\\)$|transparent/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
      const poor = [];
      const texts = 'p, li, th, td, dt, dd, a, summary, button, figcaption, h1, h2, h3, label, text';
      for (const e of document.querySelectorAll(texts)) {
        if (!e.textContent.trim() || !e.getClientRects().length) continue;
        const style = getComputedStyle(e), ink = e.tagName === 'text' ? style.fill : style.color;
        const [a, b] = [luminance(ink), luminance(ground(e))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(e.tagName + ': ' + e.textContent.slice(0, 30) + ' ' + ink);
      }
      const controls = 'button, select, input, canvas, [role=img], [role=region], nav, section';
      const unnamed = [...document.querySelectorAll(controls)]
        .filter(e => !(e.ariaLabel || e.getAttribute('aria-labelledby') || e.textContent.trim() || e.closest('label')))
        .map(e => e.outerHTML.slice(0, 80));
      const levels = [...document.querySelectorAll('h1, h2, h3')].map(e => Number(e.tagName[1]));
      const jumps = levels.filter((l, i) => i && l > levels[i - 1] + 1).length;
      return { poor, unnamed, jumps, h1: levels.filter(l => l === 1).length, lang: document.documentElement.lang,
        main: document.querySelectorAll('main').length };
    }"""
    for scheme in ("light", "dark"):
        with Opened(browser, reports["three"], scheme=scheme) as opened:
            found = opened.page.evaluate(script)
            assert found == {"poor": [], "unnamed": [], "jumps": 0, "h1": 1, "lang": "en", "main": 1}, scheme
