"""A judge and an embedder behind a real server, for one case of each metric from end to end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.judges.embedders.openai import OpenAIEmbedder
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from tests.fake_openai import FakeOpenAI
from tests.metrics.fake_session import outside_sessions


@pytest.fixture
def openai_judge(server: FakeOpenAI) -> Iterator[OpenAIJudge]:
    judge = OpenAIJudge("fake", base_url=server.base_url, api_key="sk-fake", retries=1)
    yield judge
    loop.run(judge.aclose())


@pytest.fixture
def openai_embedder(server: FakeOpenAI) -> Iterator[OpenAIEmbedder]:
    embedder = OpenAIEmbedder("fake", base_url=server.base_url, api_key="sk-fake", retries=1)
    yield embedder
    loop.run(embedder.aclose())


@pytest.fixture(scope="package", autouse=True)
def _alone() -> Iterator[None]:
    """Score outside of the session that runs these tests."""
    with outside_sessions():
        yield
