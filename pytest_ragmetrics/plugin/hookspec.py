"""The hooks this plugin calls; implement them in a conftest.py or in a plugin of your own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ragmetrics.judges.embedders.embedder import Embedder
    from pytest_ragmetrics.judges.judge import Judge
    from pytest_ragmetrics.metrics.base import Metric


@pytest.hookspec(firstresult=True)
def pytest_ragmetrics_make_judge(config: pytest.Config, spec: str) -> Judge | Any | None:
    """Return the judge for a spec, or ``None`` to leave it to others.

    It may be a ``Judge``, an object with ``async complete(messages, schema) -> str``, or a callable ``str -> str``.
    """


@pytest.hookspec(firstresult=True)
def pytest_ragmetrics_make_embedder(config: pytest.Config, spec: str) -> Embedder | Any | None:
    """Return the embedder for a spec, or ``None`` to leave it to others; it needs ``embed(texts) -> array (n, d)``."""


@pytest.hookspec
def pytest_ragmetrics_register_metrics() -> Sequence[Metric | type[Metric]] | None:
    """Return metrics, or their classes, to be known by their names."""


@pytest.hookspec(firstresult=True)
def pytest_ragmetrics_redact(text: str) -> str | None:
    """Return the text without what must not be stored or reported, or ``None`` to leave it to others."""


@pytest.hookspec
def pytest_ragmetrics_result(item: pytest.Item, record: Mapping[str, Any]) -> None:
    """Observe a record, to send results to another system.

    It is called for each record after the last attempt of its test, in the process of the test (a worker, under xdist).
    ``record`` is a copy, a dict of JSON builtins as in ``--rag-json``. Gates have no records. An observer that raises
    causes one warning that names it.
    """
