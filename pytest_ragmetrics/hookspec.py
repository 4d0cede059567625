"""The hooks this plugin calls; implement them in a conftest.py or in a plugin of your own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_ragmetrics.embedders.embedder import Embedder
    from pytest_ragmetrics.judges.judge import Judge


@pytest.hookspec(firstresult=True)
def pytest_ragmetrics_make_judge(config: pytest.Config, spec: str) -> Judge | Any | None:
    """Return the judge for a spec, or ``None`` to leave it to others.

    It may be a ``Judge``, an object with ``async complete(messages, schema) -> str``, or a callable ``str -> str``.
    """


@pytest.hookspec(firstresult=True)
def pytest_ragmetrics_make_embedder(config: pytest.Config, spec: str) -> Embedder | Any | None:
    """Return the embedder for a spec, or ``None`` to leave it to others; it needs ``embed(texts) -> array (n, d)``."""


@pytest.hookspec(firstresult=True)
def pytest_ragmetrics_redact(text: str) -> str | None:
    """Return the text without what must not be stored or reported, or ``None`` to leave it to others."""
