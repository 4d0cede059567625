"""How large and how quick the page of a large run is.

``python tests/benchmarks/page.py [TESTS]`` (10,000 unless told) makes the page of that many tests, each with two scores
and three contexts of 1,500 characters, opens it in Chromium and prints: the time to make it, its size, the time until
its first rows can be read, until every text can be searched, and the slowest of three filters.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from pytest_ragmetrics.report.page import render_html
from tests.documents import crowd

_ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu"]
_PATIENCE = 120_000
_FILTER = """([search, outcome]) => {
  document.getElementById("search").value = search;
  document.getElementById("outcome").value = outcome;
  const began = performance.now();
  document.getElementById("toolbar").requestSubmit();
  document.body.getBoundingClientRect();
  return performance.now() - began;
}"""


def measure(page: Page, file: Path) -> None:
    began = time.perf_counter()
    page.goto(f"{file.as_uri()}#tests")
    page.locator("html[data-ready=true]").wait_for(state="attached", timeout=_PATIENCE)
    print(f"first view            {time.perf_counter() - began:.2f} s, {page.locator('#list .row').count()} rows")
    began = time.perf_counter()
    page.locator("#search").fill("minutes 1234")
    expect(page.locator("#count")).to_have_text(re.compile(r"of .*tests$"), timeout=_PATIENCE)
    print(f"all texts read        {time.perf_counter() - began:.2f} s, once, while the page can be used")
    filters = [("zebra", ""), ("committee 77", ""), ("", "failed")]
    slowest = max(page.evaluate(_FILTER, list(each)) for each in filters)
    print(f"slowest filter        {slowest:.0f} ms")


def main(size: int) -> None:
    run = crowd(size)
    began = time.process_time()
    text = render_html(run)
    print(f"made in               {time.process_time() - began:.1f} s of processor time")
    print(f"size                  {len(text.encode()) / 1e6:.1f} MB, {size:,} tests")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        file.write_text(text, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=_ARGUMENTS)
        measure(browser.new_page(viewport={"width": 1440, "height": 900}), file)
        browser.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
