"""Takes the pictures of the documentation: ``python .tools/picture.py``, with ``chromium`` on the PATH.

They show :mod:`tests.showcase`, a comparison of :mod:`tests.browser`, and a run of pytest. Take them again when these
look different.
"""

from __future__ import annotations

import base64
import html
import os
import re
import shutil
import struct
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from playwright.sync_api import Page, sync_playwright

from pytest_ragmetrics.report.page import render_html
from pytest_ragmetrics.runs.compare import compare_documents
from tests.browser.test_compare import before, now
from tests.showcase import showcase

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "pytest_ragmetrics" / "docs" / "images"
_PIXELS = """async (url) => {
  const image = new Image();
  image.src = url;
  await image.decode();
  const {width, height} = image;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(image, 0, 0);
  let text = "";
  for (const byte of context.getImageData(0, 0, width, height).data) text += String.fromCharCode(byte);
  return [width, height, btoa(text)];
}"""
_TERMINAL = "<pre style='margin:0; padding:16px 20px; background:#1b1e23; color:#d5d9de; font:14px/1.4 monospace'>"
_COLOURS = {1: "font-weight:bold", 31: "color:#ff7b72", 32: "color:#7ee787", 33: "color:#e3b341", 94: "color:#79b8ff"}
_TEST = """\
from pytest_ragmetrics import assert_quoted_spans_aligned


def test_quotations_are_real():
    answer = 'The handbook says "the pump needs nine minutes to fill".'
    contexts = ["Open the valve slowly. The pump needs two minutes to fill."]
    assert_quoted_spans_aligned(answer, contexts, min=0.9)
"""


def main() -> None:
    """Write the pictures."""
    document = showcase()
    failing = next(test for test in document.tests if test.outcome == "failed")
    earlier, later = (
        replace(run, tests=tuple(test for test in run.tests if "hostile" not in test.id)) for run in (before(), now())
    )
    compared = render_html(later, comparison=compare_documents(later, earlier))
    pages = {"page": (render_html(document), failing.id, 640), "compare": (compared, "compare", 560)}
    PICTURES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        # The page of a run loads no pictures.
        empty = browser.new_page()
        for name, (text, place, height) in pages.items():
            file = Path(folder) / f"{name}.html"
            file.write_text(text, "utf-8")
            page = browser.new_page(viewport={"width": 1120, "height": height})
            page.goto(f"{file.as_uri()}#{place}")
            page.wait_for_selector("[data-ready=true]")
            (PICTURES / f"{name}.png").write_bytes(small(empty, page.screenshot()))
        page = browser.new_page(viewport={"width": 800, "height": 300})
        page.set_content(terminal(folder))
        (PICTURES / "terminal.png").write_bytes(small(empty, page.locator("pre").screenshot()))
        browser.close()


def terminal(folder: str) -> str:
    """Return what pytest prints about a failing test, as HTML in its colours."""
    (Path(folder) / "test_handbook.py").write_text(_TEST, "utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "ragmetrics", "--color=yes", "-q", "-rN", "-p", "no:cacheprovider"]
    settings = {**os.environ, "COLUMNS": "88", "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=False)
    shown = re.sub(r"\x1b\[([\d;]*)m", _span, html.escape(f"$ pytest -q\n{done.stdout}", quote=False))
    return f"<body style='margin:0'>{_TERMINAL}{shown.rstrip()}</pre>"


def _span(code: re.Match[str]) -> str:
    numbers = [int(number or 0) for number in code[1].split(";")]
    styles = ";".join(_COLOURS[number] for number in numbers if number in _COLOURS)
    return f"</span><span style='{styles}'>"


def small(page: Page, picture: bytes) -> bytes:
    """Return a PNG in the 256 commonest colours of a picture, a third of its size."""
    url = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    width, height, pixels = page.evaluate(_PIXELS, url)
    rgb = np.frombuffer(base64.b64decode(pixels), np.uint8).reshape(-1, 4)[:, :3].astype(np.int32)
    colours, places, counts = np.unique(rgb, axis=0, return_inverse=True, return_counts=True)
    palette = colours[np.argsort(-counts)[:256]]
    nearest = ((colours[:, None] - palette[None]) ** 2).sum(2).argmin(1).astype(np.uint8)
    rows = nearest[places.reshape(-1)].reshape(height, width)
    lines = np.pad(rows, ((0, 0), (1, 0))).tobytes()
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0),
        b"PLTE": palette.astype(np.uint8).tobytes(),
        b"IDAT": zlib.compress(lines, 9),
        b"IEND": b"",
    }
    chunks = (struct.pack(">I", len(data)) + kind + data + _sum(kind + data) for kind, data in parts.items())
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _sum(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))


if __name__ == "__main__":
    main()
