"""What an answer took: figures of the sample, dollars of tokens, and the pieces that an answer came in."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from pytest_ragmetrics import (
    Evaluation,
    MetricResult,
    Sample,
    UnscoredError,
    assert_pass_rate,
    evaluate,
    sample_from,
)
from pytest_ragmetrics.core.sample import MEASURED
from pytest_ragmetrics.datasets import read_dataset
from pytest_ragmetrics.judges.prices import bill_of, price
from pytest_ragmetrics.metrics import Cost, FirstToken, Latency, Metric
from pytest_ragmetrics.plugin.rows.jobs import with_answer
from pytest_ragmetrics.plugin.rows.timed import Timed

MINI = "gpt-5.4-mini"


@pytest.mark.parametrize(
    ("metric", "took", "score"),
    [
        (Latency(), {"latency": 1.84}, 1.84),
        (Latency(), {"latency": "1.84"}, 1.84),  # of CSV
        (Latency(), {"completion_time": 2}, 2.0),
        (Latency(), {"latency": 0}, 0.0),
        (FirstToken(name="wait"), {"first_token": 0.3}, 0.3),
        (Cost(), {"cost": 0.0031, "usage": {"prompt_tokens": 9}}, 0.0031),
        (Cost(), {"token_cost": 0.0031}, 0.0031),
        (Latency(), {}, "latency: latency is missing; rag_respond is timed where it answers"),
        (
            FirstToken(name="wait"),
            {},
            "wait: first_token is missing; the answer came whole: let rag_res",
        ),
        (Cost(), {"model": MINI}, 'cost: cost is missing; let rag_respond return {"response": ..., "usage": ...'),
        (Latency(), {"latency": ""}, "latency: latency is missing"),
        *((Latency(), {"latency": bad}, "latency must be a number from 0 on, not") for bad in (-1, "soon", True, [1])),
        *((Cost(), {"cost": bad}, "cost must be a number from 0 on, not") for bad in (math.nan, math.inf)),
    ],
)
def test_a_figure_is_read_or_refused(metric: Any, took: dict[str, Any], score: float | str) -> None:
    if isinstance(score, str):
        with pytest.raises(ValueError, match=re.escape(score)):
            metric.score(**took)
    else:
        result = metric.score(**took)
        assert (result.value, result.reason, result.verdicts) == (score, "given with the answer", ())


class Tokens(BaseModel):
    prompt_tokens: int = 1000
    completion_tokens: int = 100
    prompt_tokens_details: dict[str, int] = {"cached_tokens": 400}


PLAIN = price("openai", MINI, 1000, 100) or 0.0
READ = price("openai", MINI, 1000, 100, cached=400) or 0.0
WITH_CACHE = {"input_tokens": 500, "output_tokens": 100, "cache_read_input_tokens": 300}
WITH_CACHE |= {"cache_creation_input_tokens": 200}
CLAUDE = price("anthropic", "claude-haiku-5-5", 1000, 100, cached=300, written=200) or 0.0


@pytest.mark.parametrize(
    ("usage", "model", "cost"),
    [
        ({"prompt_tokens": 1000, "completion_tokens": 100}, MINI, PLAIN),
        ({"input_tokens": 1000, "output_tokens": 100}, f"openai:{MINI}", PLAIN),
        ({"input_tokens": 1000, "output_tokens": 100, "input_token_details": {"cache_read": 400}}, MINI, READ),
        (Tokens(), MINI, READ),
        ({"usage": Tokens(), "model": MINI}, "another", READ),
        ([{"model": MINI, "input_tokens": 1000, "output_tokens": 100}, Tokens()], MINI, PLAIN + READ),
        (WITH_CACHE, "anthropic:claude-haiku-5-5", CLAUDE),
        ({"prompt_tokens": 5, "cost": 0.25}, None, 0.25),  # OpenRouter's
    ],
)
def test_dollars_of_tokens(usage: Any, model: str | None, cost: float) -> None:
    assert bill_of(usage, model)[0] == pytest.approx(cost) != 0
    assert Cost().score(usage=usage, model=model).value == pytest.approx(cost)


@pytest.mark.parametrize(
    ("usage", "model", "said"),
    [
        ({"prompt_tokens": 5}, "mine-7b", r"^cost: the price of 'mine-7b' is not known; let rag_respond return"),
        ({"prompt_tokens": 5}, None, "^cost: usage has no model; let rag_respond return"),
        ({"total": 5}, MINI, "^cost: usage has no tokens, only 'total'; let rag_respond return"),
        ("many", MINI, "^cost: usage has no tokens, only nothing; "),
        ([], MINI, "^cost: usage has no tokens, only nothing; "),
        ({"prompt_tokens": -5}, MINI, "^cost: prompt_tokens of usage must be a number from 0 on, not -5; "),
        ({"cost": -3}, MINI, "^cost: cost must be a number from 0 on, not -3; "),
    ],
)
def test_a_cost_that_is_not_known_is_no_score(usage: Any, model: str | None, said: str) -> None:
    with pytest.raises(UnscoredError, match=said):
        Cost().score(usage=usage, model=model)


def test_answers_of_models_say_what_they_took() -> None:
    """What crosses processes are builtins: usage of an SDK's type becomes a mapping."""
    said = SimpleNamespace(role="assistant", content="Two minutes.")
    whole = SimpleNamespace(choices=[SimpleNamespace(message=said)], usage=Tokens(), model=MINI)
    message = SimpleNamespace(type="ai", content="Two minutes.", response_metadata={"model_name": MINI})
    message.usage_metadata = {"input_tokens": 1000, "output_tokens": 100, "input_token_details": {"cache_read": 400}}
    for answer in (whole, message, {"response": "Two minutes.", "usage": [Tokens()], "model": MINI}):
        sample = with_answer(Sample(id="q1"), answer)
        assert (sample.response, sample.metadata["model"]) == ("Two minutes.", MINI)
        usage = sample.metadata["usage"]
        assert {type(it) for it in (usage if isinstance(usage, list) else [usage])} == {dict}
        assert Cost().score_sample(sample).value == pytest.approx(READ)
    assert sample_from({"response": "So.", "usage": "little"}).metadata == {"usage": "little"}


@pytest.mark.parametrize(
    ("pieces", "answer"),
    [
        (["Two ", None, "", "minutes."], {"response": "Two minutes."}),
        ([{"contexts": ["So."]}, "Two.", {"cost": 0.1}], {"response": "Two.", "contexts": ["So."], "cost": 0.1}),
        (["Two.", {"answer": "2."}], {"answer": "2."}),
        (["Two.", Sample(retrieved_contexts=["So."])], {"response": "Two.", "retrieved_contexts": ["So."]}),
        ([Sample(response="2.", metadata={"cost": 1})], {"response": "2.", "metadata": {"cost": 1}}),
        ([None, ""], {"response": ""}),
        ([], {}),
    ],
)
def test_pieces_of_an_answer(pieces: Sequence[Any], answer: dict[str, Any]) -> None:
    timed = Timed()
    for piece in pieces:
        timed.take(piece)
    timed.end()
    assert timed.answer == answer
    has_text = any(it and type(it) is str for it in pieces)
    assert [*timed.took] == ["latency", *(["first_token"] if has_text else [])]
    assert timed.took.get("first_token", 0.0) <= timed.took["latency"]


def test_what_is_no_piece_of_an_answer() -> None:
    timed = Timed()
    timed.take(7)
    with pytest.raises(UnscoredError, match=r"^rag_respond yielded an object of type int; it must yield texts, and "):
        assert timed.answer


def test_what_was_measured_says_so_until_it_is_stored() -> None:
    row = Sample(id="q1", metadata={"latency": 9.0, "lang": "en"})
    took = {"latency": 1.5, "first_token": 0.2}
    sample = with_answer(row, {"response": "Two.", "first_token": 0.1}, took)
    assert sample.metadata == {"latency": 1.5, "lang": "en", "first_token": 0.1, MEASURED: ["latency"]}
    reasons = [metric.score_sample(sample).reason for metric in (Latency(), Latency(name="wait"), FirstToken())]
    assert reasons == ["measured around rag_respond"] * 2 + ["given with the answer"]
    (stored,) = read_dataset([sample.to_mapping()], base=Path())
    assert stored.sample is not None
    assert stored.sample.metadata == {"latency": 1.5, "lang": "en", "first_token": 0.1}


def test_each_turn_has_its_own() -> None:
    """What the whole conversation took is not what one answer took; a category of it stays."""
    talk: list[dict[str, Any]] = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "No."}] * 2
    talk[1] = {**talk[1], "latency": 0.5}
    first, last = Sample(metadata={"messages": talk, "latency": 3.0, "cost": "low"}).turns()
    assert (first.metadata["latency"], first.metadata["cost"]) == (0.5, "low")
    assert "latency" not in last.metadata


def test_a_unit_belongs_to_the_metric_and_not_to_its_name() -> None:
    class Effort(Metric):
        name = "cost"
        better = "lower"

        def measure(self, sample: Sample) -> MetricResult:
            return MetricResult(0.5, metric=self.name)

    class Took(Effort):
        name = "took"
        score_unit = "ms"
        scale = (0.0, math.inf)

    def table(more: float) -> Evaluation:
        rows = [
            Sample(id=f"r{n}", response="Two.", metadata={"latency": more + n * (1 + more) / 1e3}) for n in range(5)
        ]
        return evaluate(rows, metrics=[Effort(), Took(), Latency()])

    assert re.search(r"mean of 5 rows +0\.50 +0\.50 ms +0\.0020 s", str(table(0)))
    compared = table(0.003).compare(table(0)).metrics
    # With one scale from 0 to 1 for all, five rows would say next to nothing.
    assert compared["latency"].difference is not None
    assert compared["latency"].difference.interval.half_width < 0.001
    assert "0.0020 s -> 0.0050 s" in str(compared["latency"])
    held = assert_pass_rate(table(0), min_rate=0.6, max_score=0.0021, metric="latency")
    assert (held.percentile, held.unit) == (0.002, "s")


def test_a_table_has_units() -> None:
    rows = [{"id": f"q{n}", "response": "Two.", "latency": n / 2, "cost": n / 1000} for n in range(1, 4)]
    table = evaluate([*rows, {"id": "lost", "response": "Two."}], ["latency", "cost"], progress=False)
    assert isinstance(table, Evaluation)
    assert (table.mean("latency", skip_unscored=True), table.stats()["cost"].unscored) == (1.0, 1)
    assert str(table).splitlines()[-5].split() == ["q3", "1.50", "s", "$0.0030"]
    assert [row.sample.id for row in table.worst(2)] == ["lost", "q3"]
