"""Records the cassette of the examples anew, from the fake provider: ``python -m tests.record_examples``.

To be run whenever a prompt or a text of an example has changed; its tests say when that is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fake_openai import FakeOpenAI

EXAMPLE = Path(__file__).parent.parent / "conftest_examples" / "openai"


def record(folder: Path) -> int:
    """Ask the fake provider everything that the suite in a folder asks; return the exit status of pytest."""
    with FakeOpenAI() as server, tempfile.TemporaryDirectory() as cache:
        command = ["-m", "pytest", "-p", "ragmetrics", "-p", "no:cacheprovider", "--rag-cache=refresh"]
        return subprocess.run(
            [sys.executable, *command, f"--rag-cache-dir={cache}"],
            check=False,
            cwd=folder,
            env={
                **os.environ,
                "OPENAI_BASE_URL": server.base_url,
                "OPENAI_API_KEY": "sk-fake",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        ).returncode


if __name__ == "__main__":
    sys.exit(record(EXAMPLE))
