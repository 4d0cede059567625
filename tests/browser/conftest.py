"""A real Chromium for the tests in this folder; without one they fail and say how to get it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from pytest_ragmetrics.report.page import render_html
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.records import Document
from tests.documents import crowd

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_HOW = (
    "These tests need Chromium and the Python package playwright: install both (apt-get install chromium, or "
    "python -m playwright install chromium; pip install playwright) and have `chromium` on the PATH or its path in "
    "the environment variable CHROMIUM."
)
_HOW_AXE = (
    "These tests need axe-core, which the Python package axe-playwright-python carries: pip install --group browser"
)
#: Milliseconds to wait for what will come: long enough for a machine that does ten other things.
_TIMEOUT = 120_000

#: Makes a document; its page is rendered once.
Make = Callable[[], Document]


@lru_cache
def page_of(make: Make, baseline: Make | None = None) -> str:
    """Return the page of a document, the same for all tests of a process."""
    document = make()
    return render_html(document, comparison=baseline and compare_documents(document, baseline()))


@lru_cache
def large() -> Document:
    """Return a run of 13 pages, the last with ten rows, and too many tests for readers without scripts."""
    return crowd(1_210, contexts=1, length=120)


@dataclass(kw_only=True)
class Report:
    """An opened page, and all it did that it should not have done."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(_TIMEOUT)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("popup", lambda popup: self.complaints.append(f"window {popup.url}"))
        self.page.on("dialog", self._refuse)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _refuse(self, dialog: Any) -> None:
        self.complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def go(self, url: str = "") -> None:
        """Open an address, or this one again, and wait until the page says that it is ready."""
        if url:
            self.page.goto(url)
        else:
            self.page.reload()
        self.page.locator("html[data-ready=true]").wait_for(state="attached")

    def shown(self) -> list[str]:
        """Return the names of the tests in the list, in order."""
        return [name.partition("::")[2] for name in self.ids()]

    def ids(self) -> list[str]:
        """Return the ids of the tests in the list, in order."""
        links = self.page.locator("#list .row").evaluate_all("links => links.map((link) => link.getAttribute('href'))")
        return [unquote(link.partition("?")[0]).partition("/")[2] for link in links]

    def row(self, name: str) -> Any:
        """Return the row of the first test whose id holds this text."""
        return self.page.locator("#list .row").nth(next(n for n, it in enumerate(self.ids()) if name in it))

    def opened(self, name: str) -> Any:
        """Open a test of the list with the mouse and return what the pane shows of it."""
        self.row(name).click()
        return self.showing(name)

    def showing(self, name: str) -> Any:
        """Wait until the pane shows a test, and return the pane."""
        self.page.locator("#test .id", has_text=name).wait_for()
        return self.page.locator("#test")

    def unfold(self) -> None:
        """Unfold everything in the open test, whichever metric it belongs to."""
        self.page.evaluate(
            "document.querySelectorAll('#test details').forEach((element) => { element.open = true; })\n"
            "document.querySelectorAll('#test .unclamp button').forEach((element) => element.click())"
        )


OpenReport = Callable[..., Report]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a process."""
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium")
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        pytest.fail(_HOW)
    if executable is None or not Path(executable).exists():
        pytest.fail(_HOW)
    expect.set_options(timeout=_TIMEOUT)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=list(_ARGUMENTS), timeout=_TIMEOUT)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def new_page(browser: Browser) -> Callable[..., Page]:
    """Open a tab; tabs with the same settings share a context, whose caches make the second one cheap."""
    contexts: dict[str, BrowserContext] = {}

    def opened(**settings: Any) -> Page:
        settings.setdefault("viewport", {"width": 1440, "height": 900})
        key = json.dumps(settings, sort_keys=True)
        if key not in contexts:
            contexts[key] = browser.new_context(**settings)
        return contexts[key].new_page()

    return opened


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Write a page to a file, once, and return its address."""
    folder = tmp_path_factory.mktemp("pages")

    @lru_cache
    def save(page: str) -> str:
        file = folder / f"{len(list(folder.iterdir()))}.html"
        file.write_text(page, encoding="utf-8")
        return file.as_uri()

    return save


@pytest.fixture
def open_page(new_page: Callable[..., Page], saved: Callable[[str], str]) -> Iterator[OpenReport]:
    """Open the text of a page; one that complains, asks for something or runs a text fails the test."""
    reports = []

    def opened(text: str, fragment: str = "", **settings: Any) -> Report:
        report = Report(page=new_page(**settings))
        reports.append(report)
        if settings.get("java_script_enabled", True) and "dataset.ready" in text:
            report.go(f"{saved(text)}{fragment}")
        else:
            report.page.goto(f"{saved(text)}{fragment}")
        return report

    yield opened
    for report in reports:
        pwned = report.page.evaluate("window.pwned")
        report.page.evaluate("localStorage.clear()")
        report.page.close()
        assert (report.complaints, pwned) == ([], None)
        assert all(url.startswith(("file:", "blob:")) for url in report.requests)


@pytest.fixture
def open_report(open_page: OpenReport) -> OpenReport:
    """Open the tests of a document, which is given by what makes it."""

    def opened(make: Make, fragment: str = "#tests", *, baseline: Make | None = None, **settings: Any) -> Report:
        return open_page(page_of(make, baseline), fragment, **settings)

    return opened


@pytest.fixture(scope="session")
def axe() -> Any:
    """Return the checker; without it the tests fail and say how to get it."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        pytest.fail(_HOW_AXE)
    return Axe()


def check_views(axe: Any, page: Any, *views: tuple[Any, int]) -> None:
    """Fail where a page is wider than the screen or axe complains, in each of these colour schemes and widths."""
    for scheme, width in views:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert complaints(axe, page) == [], scheme


def complaints(axe: Any, page: Any) -> list[str]:
    """Return what violates a rule of WCAG 2.2 A or AA, or a best practice, with the elements that do.

    The policy of the page keeps the checker out: it is opened with ``bypass_csp=True``.
    """
    results = axe.run(page, options={"resultTypes": ["violations"]})
    return [
        f"{violation['id']}: {node['html'][:120]} {node['failureSummary']}"
        for violation in results.response["violations"]
        for node in violation["nodes"]
    ]
