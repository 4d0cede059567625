"""Records the cassette and the baseline of the examples anew, without a provider: ``python -m tests.record_examples``.

To be run whenever a prompt, a text of an example or the form of records has changed; their tests say when that is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fake_openai import FakeOpenAI

EXAMPLES = Path(__file__).parent.parent / "conftest_examples"
_OFFLINE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def record(folder: Path) -> int:
    """Ask the fake provider everything that the suite in a folder asks; return the exit status of pytest."""
    with FakeOpenAI() as server, tempfile.TemporaryDirectory() as cache:
        command = ["-m", "pytest", "-p", "ragmetrics", "-p", "no:cacheprovider", "--rag-cache=refresh"]
        return subprocess.run(
            [sys.executable, *command, f"--rag-cache-dir={cache}"],
            check=False,
            cwd=folder,
            env={**os.environ, **_OFFLINE, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-fake"},
        ).returncode


def record_baseline(folder: Path) -> int:
    """Write the baseline of the suite in a folder, whatever the old one is; return the exit status of pytest."""
    command = ["-m", "pytest", "-p", "ragmetrics", "-p", "no:cacheprovider", "--rag-json=baseline.json"]
    return subprocess.run(
        [sys.executable, *command, "-o", "rag_baseline="], check=False, cwd=folder, env={**os.environ, **_OFFLINE}
    ).returncode


if __name__ == "__main__":
    sys.exit(record(EXAMPLES / "openai") or record_baseline(EXAMPLES / "golden_set"))
