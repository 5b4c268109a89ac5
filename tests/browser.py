"""Fixtures of the tests that look at pages in a real browser.

They need Chromium (found on the path) and the package `playwright`; without them these tests are
skipped, with the reason.
"""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import pytest
from drawn import LEFT, drawn

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

PROOFS = {"test_report_browser": "report-page", "test_study_page": "study-page"}
"""The proof of ``drawn.py`` that each module belongs to."""

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # the browser would draw a page of its own for each tab, which takes a third of a test's time
    "--disable-features=WebUIOmniboxPopup",
]


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="the package `playwright` is not installed"
    )
    if CHROMIUM is None:
        pytest.skip("no chromium, chromium-browser or google-chrome on the path")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


class Pages:
    """Opener of pages; a line on a console or a request to the network is a complaint."""

    def __init__(self, browser) -> None:
        self._browser, self._contexts = browser, []
        self.complaints: list[str] = []

    def open(self, file: Path, *, width: int = 1280, before=None, **options):
        """Return the page once it is drawn; ``before`` is called with the still empty page."""
        complaints = self.complaints
        context = self._browser.new_context(viewport={"width": width, "height": 800}, **options)
        self._contexts.append(context)
        page = context.new_page()
        if before:
            before(page)
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: complaints.append(request.url) if request.url != address else None,
        )
        address = file.as_uri()
        page.goto(address)
        page.wait_for_selector("html[data-charts=drawn]", timeout=60_000)
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def opened(browser):
    """Yield a function that opens a page; its console and its requests must stay empty."""
    pages = Pages(browser)
    yield pages.open
    pages.close()
    assert pages.complaints == []


@pytest.fixture
def used(request):
    """Return ``opened`` for a test that uses a page; ``drawn.py`` draws these tests."""
    if PROOFS[request.module.__name__] not in drawn():
        pytest.skip(LEFT)
    return request.getfixturevalue("opened")


@pytest.fixture(scope="module")
def pages_to_look_at(browser):
    pages = Pages(browser)
    yield pages, functools.cache(pages.open)
    pages.close()


@pytest.fixture
def looked_at(pages_to_look_at):
    """Yield a function that opens a page once for all tests, which change nothing in the page."""
    pages, opened = pages_to_look_at
    yield opened
    assert pages.complaints == []
