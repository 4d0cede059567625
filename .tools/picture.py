"""Takes the picture of a page for the README: ``python .tools/picture.py``, with ``chromium`` on the PATH.

It shows a failing test of :mod:`tests.showcase`. Take it again when the page looks different.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from pytest_ragmetrics.report.page import render_html
from tests.showcase import showcase

PICTURE = Path(__file__).parent.parent / ".github" / "page.png"


def main() -> None:
    """Write the picture."""
    document = showcase()
    failing = next(test for test in document.tests if test.outcome == "failed")
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "page.html"
        file.write_text(render_html(document), "utf-8")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"{file.as_uri()}#{failing.id}")
        page.wait_for_selector("[data-ready=true]")
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
