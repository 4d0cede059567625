"""A pytest plugin that writes each score which Ragas or DeepEval computes to the file THEIR_SCORES, a line each."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

_NESTED = ContextVar("_NESTED", default=False)


def _keep(name: str, score: float) -> None:
    with Path(os.environ["THEIR_SCORES"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps([name, float(score)]) + "\n")


def _kept(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Keep what a metric of Ragas returns, but for one that scores for another."""

    async def ascore(self: Any, *args: Any, **kwargs: Any) -> Any:
        outer = not _NESTED.get()
        token = _NESTED.set(True)
        try:
            score = await method(self, *args, **kwargs)
        finally:
            _NESTED.reset(token)
        if outer:
            _keep(self.name, getattr(score, "value", score))
        return score

    return ascore


def pytest_configure() -> None:
    if os.environ["THEIR_TOOL"] == "deepeval":
        from deepeval.evaluate.execute import e2e

        made = e2e.create_metric_data

        def create(metric: Any) -> Any:
            _keep(metric.__name__, metric.score)
            return made(metric)

        e2e.create_metric_data = create
        return
    from ragas.metrics import base, collections

    for kind, name in ((base.SingleTurnMetric, "single_turn_ascore"), (base.MultiTurnMetric, "multi_turn_ascore")):
        setattr(kind, name, _kept(getattr(kind, name)))
    for each in map(vars(collections).get, collections.__all__):
        if "ascore" in vars(each):
            each.ascore = _kept(each.ascore)


@pytest.fixture
def llm_wrapper() -> Any:
    from langchain_openai import ChatOpenAI
    from ragas.llms import LangchainLLMWrapper

    return LangchainLLMWrapper(ChatOpenAI(model="judge"))
