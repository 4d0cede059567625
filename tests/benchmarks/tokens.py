"""Tokens and dollars of each judged metric, at two sizes: ``python -m tests.benchmarks.tokens [METRIC ...]``.

Each is asked about one sample, with 3 contexts of 600 characters and with 8 of 2,000; the last rows are of the five
metrics of :mod:`tests.benchmarks.judged` and of five that other tools have too. Nothing is sent: a request is counted
as it would be, its schema included, and answered by the rules of the fake server, with reasons of nine words. Dollars
are those of 1,000 samples with the model that ``auto`` stands for: all requests by themselves, those of 20 samples, 16
in flight, with the provider's prompt cache (by the rules of :mod:`tests.fake_prompt_cache`), in a batch, and with
``--rag-reasons=negative``. Vectors are not counted.

Tokens are o200k's where ``quicktok-v1`` is installed, which brings the vocabulary along; else a quarter of characters.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

from pytest_ragmetrics import evaluate
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from pytest_ragmetrics.judges.providers.vendor import OPENAI
from pytest_ragmetrics.judges.rendering import PromptBook, Reasons
from pytest_ragmetrics.metrics import SemanticSimilarity
from pytest_ragmetrics.metrics.judged import JudgedMetric
from pytest_ragmetrics.metrics.registry import built_in_metrics, metric_named
from tests.benchmarks.judged import METRICS, sample
from tests.fake_answers import answer_sensibly, text_of
from tests.fake_prompt_cache import PromptCache

Count = Callable[[str], int]

SIZES = ((3, 600), (8, 2000))
COMMON = ("faithfulness", "answer_relevancy", "context_recall", "context_precision", "answer_correctness")
PARAMETERS: dict[str, dict[str, Any]] = {
    "aspect_critique": {"definition": "Does the response name its sources?"},
    "rubric": {"steps": ["It is wrong.", "It is right in part.", "It is right."]},
    "simple_criteria": {"definition": "How exact is the response?"},
    "criteria_met": {"criteria": "The response names its sources."},
}
REASON = "The passage states this fact in its second paragraph."
#: Verdicts on numbered items that are negative; the others have no reason where only negative ones have.
NEGATIVE = frozenset({"unsupported", "irrelevant", "useless", "contradicted", "no", "evades", "misses", "out of role"})
_CITED = 3
_SAMPLES, _IN_FLIGHT, _LATENCY = 20, 16, 0.2
# Of each message, and of the answer that follows.
_FRAME, _START = 4, 3


class Meter(OpenAIJudge):
    """The judge of ``auto``, whose requests are counted and answered here.

    ``tier`` is the one they are billed in, ``cache`` what the provider keeps of prompts.
    """

    def __init__(
        self, count: Count, *, reasons: Reasons = "all", tier: str = "default", cache: PromptCache | None = None
    ) -> None:
        model = OPENAI.auto["judge"].partition(":")[2]
        super().__init__(model, api_key="sk-none", prompts=PromptBook(reasons=reasons))
        self._count, self._tier, self._cache = count, tier, cache

    async def _send(self, wire: Any, request: Any, terms: Any) -> dict[str, Any]:
        body = self._body(request, terms)
        answer = _written(json.loads(answer_sensibly(body)), terse=self.prompts.reasons == "negative")
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        schema = json.dumps(body["response_format"], separators=(",", ":"))
        said = sum(self._count(text_of(message["content"])) + _FRAME for message in body["messages"])
        prompt = said + _START + self._count(schema)
        usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": self._count(text)}
        if self._cache is not None:
            reply = self._cache(body)
            await asyncio.sleep(self._cache.latency)
            # The fake counts characters.
            share = prompt / (reply.usage or (prompt, 0))[0]
            read, written = round(reply.cached * share), round(reply.written * share)
            usage["prompt_tokens_details"] = {"cached_tokens": read, "cache_write_tokens": written}
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        return {"choices": [choice], "usage": usage, "service_tier": self._tier}


def _written(answer: Any, *, terse: bool) -> Any:
    """Return an answer as a model words it: with reasons, and with three sentences cited at most."""
    if isinstance(answer, list):
        return [_written(item, terse=terse) for item in answer]
    if not isinstance(answer, dict):
        return answer
    answer = {name: _written(value, terse=terse) for name, value in answer.items()}
    if "reason" in answer:
        bare = terse and {"number", "turn"} & answer.keys() and not NEGATIVE & set(map(str, answer.values()))
        answer["reason"] = "" if bare else REASON
    if "number" in answer and "sentences" in answer:
        answer["sentences"] = answer["sentences"][:_CITED]
    return answer


def counter() -> tuple[str, Count]:
    if find_spec("quicktok") is None:
        return "characters / 4", lambda text: -(-len(text) // 4)
    encoding = import_module("quicktok").get_encoding("o200k_base")
    return "o200k", lambda text: len(encoding.encode(text))


def asked_of(metrics: Sequence[JudgedMetric], number: int, contexts: int, size: int) -> Sample:
    """Return a sample that metrics are asked about: with what most samples have, and what one takes besides."""
    row = sample(number, contexts=contexts, size=size)
    if len(metrics) > 1:
        return row
    (metric,) = metrics
    response = row.response or ""
    if metric.of_conversation or metric.name in ("agent_goal_accuracy", "topic_adherence"):
        turns = [{"role": "user", "content": row.user_input}, {"role": "assistant", "content": response}]
        return Sample(metadata={"messages": turns, "reference_topics": ["mills"], "role": "A guide to mills."})
    if metric.name.startswith("citation"):
        response = response.replace(".", " [1][2].")
    # What they are asked about as a whole is all that a sample has.
    golden = row.reference_contexts if "reference_contexts" in metric.requires else None
    return replace(row, response=response, reference_contexts=golden)


def named(*names: str) -> list[JudgedMetric]:
    kinds: list[Any] = [metric_named(name) for name in names]
    return [kind(**PARAMETERS.get(kind.name, {})) for kind in kinds]


def judged() -> list[JudgedMetric]:
    """Return all metrics that ask a judge; one of the catalogue asks the embedder alone."""
    kinds = [kind for kind in built_in_metrics() if issubclass(kind, JudgedMetric)]
    return named(*(kind.name for kind in kinds if kind is not SemanticSimilarity))


def usage_of(metrics: Sequence[JudgedMetric], rows: Sequence[Sample], judge: Meter) -> Usage:
    """Return what the metrics cost, asked together about samples: what several ask for is asked once."""
    with TemporaryDirectory() as folder:
        asking = [metric.asking(judge=judge, embedder="local") for metric in metrics]
        table = evaluate(rows, asking, cache_dir=folder, concurrency=_IN_FLIGHT, progress=False)
    if unscored := [row.unscored for row in table.rows if row.unscored]:
        sys.exit(f"no score: {unscored[0]}")
    return sum((result.usage for row in table.rows for result in row.results.values()), Usage())


def line(metrics: Sequence[JudgedMetric], contexts: int, size: int, count: Count) -> str:
    """Return the row of a table; dollars are those of 1,000 samples."""
    rows = [asked_of(metrics, number, contexts, size) for number in range(1, _SAMPLES + 1)]
    usage, batched, terse = (
        usage_of(metrics, rows[:1], judge)
        for judge in (Meter(count), Meter(count, tier="batch"), Meter(count, reasons="negative"))
    )
    cached = usage_of(metrics, rows, Meter(count, cache=PromptCache(latency=_LATENCY)))
    tokens = f"{usage.calls:8} {usage.prompt_tokens:8,} {usage.completion_tokens:10,}"
    costs = (usage.cost or 0, (cached.cost or 0) / len(rows), batched.cost or 0, terse.cost or 0)
    dollars = " ".join(f"{1000 * cost:8.2f}" for cost in costs)
    return f"  {metrics[0].name if len(metrics) == 1 else 'five together':29} {tokens} {dollars}"


def main() -> None:
    vocabulary, count = counter()
    wanted = sys.argv[1:]
    for contexts, size in SIZES:
        model = OPENAI.auto["judge"]
        print(f"{contexts} contexts of {size:,} characters, tokens: {vocabulary}; {model}, $ per 1,000 samples")
        print(f"  {'metric':29} requests   prompt completion   singly   cached    batch negative")
        for metric in named(*wanted) or judged():
            print(line([metric], contexts, size, count), flush=True)
        for names in () if wanted else (METRICS, COMMON):
            print(line(named(*names), contexts, size, count))
            print(f"    {', '.join(names)}", flush=True)


if __name__ == "__main__":
    main()
