"""Scoring a table: rows in order, each for itself, with one judge and one cache for all of them."""

from __future__ import annotations

import asyncio
import io
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pytest_ragmetrics import Evaluation, aevaluate, assert_no_regression, evaluate
from pytest_ragmetrics.cache.entry import CacheUnavailableError
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import BudgetExceededError, CacheMissError, JudgeError, JudgeNotConfiguredError
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.running import enter, leave
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges.transports.values import JudgeUnavailableError
from pytest_ragmetrics.metrics import Faithfulness, NumbersAligned, Relevance
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from tests.asking import MemoryTransport
from tests.fake_answers import answer_sensibly
from tests.fake_openai import FakeOpenAI, Reply, failing, filtered, out_of_quota, rate_limited
from tests.metrics.fake_session import FakeSession, outside_sessions
from tests.scripted_judge import ScriptedJudge, rated

#: Three rows with a perfect, a middling and a poor answer, by the words they share.
ROWS = [
    {"id": "a", "question": "Do moths fly at night?", "answer": "Moths fly at night."},
    {"id": "b", "question": "Where do herons nest?", "answer": "Herons swim."},
    {"id": "c", "question": "Why is ivy green?", "answer": "Ponds freeze."},
]


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """Evaluate outside of the session that runs these tests, each test with a loop of its own."""
    with outside_sessions():
        yield
    loop.stop()


class Length(Metric):
    name = "length"
    scale = (0.0, 100.0)
    better = "lower"

    def measure(self, sample: Sample) -> MetricResult:
        text = sample.response or ""
        if "," in text:
            raise ZeroDivisionError("no commas, please")
        # A number where a result is asked for, as a mistake.
        return 0.5 if "swim" in text else MetricResult(len(text) / 100, metric=self.name)  # type: ignore[return-value]


class Slow(JudgedMetric):
    name = "slow"

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        number = int(sample.response or "0")
        await asyncio.sleep((10 - number) / 1000)
        return ask.result(number / 10, reason=f"number {number}")


def numbered(count: int) -> list[dict[str, str]]:
    return [{"id": str(n), "question": f"Is {n} a number?", "answer": f"{n} is one."} for n in range(count)]


def test_rows_come_in_the_order_of_the_samples() -> None:
    rows: list[Any] = [{"response": str(number)} for number in range(9)]
    rows[4] = Sample(response="4")
    table = evaluate(iter(rows), [Slow(), Length()])
    assert [row.sample.response for row in table.rows] == [str(number) for number in range(9)]
    assert table.scores("slow") == [number / 10 for number in range(9)]
    assert table.rows[3].results["slow"].reason == "number 3"
    assert table.better == {"slow": "higher", "length": "lower"}
    assert table.scales == {"slow": (0.0, 1.0), "length": (0.0, 100.0)}


def test_metrics_go_by_name_and_get_the_judge_and_the_embedder() -> None:
    rows = [{**row, "contexts": ["Moths."]} for row in ROWS]
    table = evaluate(rows, ["relevance", "lexical_grounding", "ResponseRelevancy"], judge="local", embedder="local")
    assert table.metrics == ("relevance", "lexical_grounding", "answer_relevancy")
    assert all(set(row.results) == set(table.metrics) for row in table.rows)
    assert table.rows[0].results["relevance"].judge == "local (heuristic)"
    empty = evaluate([], "relevance", judge="local")
    assert (empty.metrics, empty.rows, empty.scales) == (("relevance",), (), {"relevance": (0.0, 1.0)})


def test_an_error_in_a_row_leaves_the_others_scored() -> None:
    judge = ScriptedJudge(rate_relevance=lambda prompt: "no" if "moths" in prompt else rated(2))
    rows = [*ROWS, {"id": "d", "answer": "One, two."}, {"id": "e", "question": "Well?"}]
    table = evaluate(rows, [Length(), Relevance(judge=judge)], concurrency=1)
    assert table.scores("relevance") == [None, 0.5, 0.5, None, None]
    assert [score is None for score in table.scores("length")] == [False, True, False, True, True]
    assert "it replied 'no'" in table.rows[0].unscored["relevance"]
    assert table.rows[1].unscored["length"] == "length: TypeError: length.measure() returned float, not a MetricResult"
    assert table.rows[3].unscored["length"] == "length: ZeroDivisionError: no commas, please"
    assert table.rows[3].unscored["relevance"].startswith("relevance: user_input is missing; ")


def test_a_metric_of_ones_own_may_wait_for_another() -> None:
    together = threading.Barrier(2)

    class Both(Metric):
        name = "both"

        def measure(self, sample: Sample) -> MetricResult:
            together.wait(10)
            inner = Relevance(judge="local").score_sample(sample)
            return MetricResult(inner.value / 2, metric=self.name)

    class Meets(JudgedMetric):
        name = "meets"

        async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
            await asyncio.to_thread(together.wait, 10)
            return ask.result(1.0, reason=None)

    table = evaluate(ROWS[:1], [Both(), Meets()])
    assert (table.scores("both"), table.scores("meets")) == ([0.5], [1.0])


YES = {"response": "Yes."}


#: A message as LangChain has it, and a call without its await.
MESSAGE = type("AIMessage", (), {"content": "Yes.", "type": "ai"})()
UNAWAITED = asyncio.sleep(0)
UNAWAITED.close()


@pytest.mark.parametrize(
    ("samples", "metrics", "problem"),
    [
        (ROWS, ["faithfullness"], "there is no metric 'faithfullness': did you mean faithfulness"),
        (ROWS, ["faithfulness", Faithfulness()], "two metrics of one name: faithfulness"),
        (ROWS, [], "give at least one metric"),
        ([YES, {"response": 3}], [Length()], r"samples\[1\]: response must be a str, not int"),
        (["Yes."], [Length()], r"samples\[0\]: a row is a Sample or a mapping, not str"),
        ([{"answer": 3}], [Length()], r"samples\[0\]: field 'answer': response must be a str, not int"),
        ([{"answr": "Yes."}], [Length()], r"samples\[0\]: has no field to score, only 'answr'; did you write 'ans"),
        ([{"answer": MESSAGE}], [Length()], "must be a str, not AIMessage; give its text, the .content"),
        (
            [{"answer": "Yes.", "contexts": [{"txt": "a"}]}],
            [Length()],
            r"contexts\[0\] is of type dict, with the keys 'txt': give a str, ",
        ),
        (UNAWAITED, [Length()], "samples must be a list of samples or rows, not a coroutine: await it first"),
        ([{"answer": UNAWAITED}], [Length()], "response must be a str, not coroutine; await it first"),
        ([{"contexts": UNAWAITED}], [Length()], "a document or a list of them, not coroutine; await it first"),
        ([{"contexts": [UNAWAITED]}], [Length()], r"retrieved_contexts\[0\] is .*; await it first"),
        (YES, [Length()], "samples must be a list of samples or rows, not one dict"),
        # Bounds would be dropped, and a class is no metric.
        ([YES], {"numbers_aligned": 0.8}, r"not a mapping: .*table\.failures\(.*rag_dataset\(\.\.\., metrics=\{"),
        ([YES], [NumbersAligned], r"is the class of a metric: write NumbersAligned\(\)"),
        ([YES], NumbersAligned, r"is the class of a metric: write NumbersAligned\(\)"),
        ([YES], [len], "is no metric: give one, or its name"),
        ([YES], [None], "is no metric: give one, or its name"),
    ],
)
def test_wrong_arguments_are_named_before_anything_is_scored(samples: Any, metrics: Any, problem: str) -> None:
    with pytest.raises(ValueError if samples is ROWS else TypeError, match=problem):
        evaluate(samples, metrics, judge="local")


def test_a_loop_may_be_running(server: FakeOpenAI) -> None:
    server.latency = 0.03
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.002)
            ticks += 1

    async def main() -> list[Evaluation]:
        ticking = asyncio.ensure_future(tick())
        try:
            tables = await asyncio.gather(aevaluate(ROWS, ["relevance"]), aevaluate(ROWS[:1], ["relevance"]))
            return [*tables, evaluate(ROWS[:1], ["relevance"])]
        finally:
            ticking.cancel()

    whole, part, blocked = (table.scores("relevance") for table in asyncio.run(main()))
    assert len(whole) == 3
    assert whole[:1] == part == blocked
    assert ticks >= 5


def test_the_second_time_is_paid_for(server: FakeOpenAI, tmp_path: Path) -> None:
    rows = [{**row, "contexts": ["Moths."]} for row in ROWS]
    tables = [evaluate(rows, ["relevance", "answer_relevancy"], cache_dir=tmp_path / "c") for _ in range(2)]
    assert tables[0].scores("answer_relevancy") == tables[1].scores("answer_relevancy")
    assert [sum(result.usage.calls for row in t.rows for result in row.results.values()) for t in tables] == [6, 0]
    before = server.calls
    evaluate(rows, ["relevance"])
    assert server.calls == before + 3


def test_the_session_around_it_is_used(server: FakeOpenAI) -> None:
    transport = MemoryTransport()
    running = FakeSession(judge=ScriptedJudge(rate_relevance=rated(4)), transport=transport)
    with running.running():
        assert evaluate(ROWS, ["relevance"]).scores("relevance") == [1.0] * 3
    assert len(transport.kept) == 3
    assert {scoring.sample.id for scoring in running.scorings} == {"a", "b", "c"}

    late = FakeSession()

    class Enters(JudgedMetric):
        name = "enters"

        async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
            enter(late)
            result = await Relevance().ascore_sample(sample)
            return ask.result(result.value, reason=None)

    try:
        assert not evaluate(ROWS[:1], [Enters()]).rows[0].unscored
    finally:
        leave(late)
    assert late.scorings == []


def test_without_a_judge_nothing_is_scored() -> None:
    with pytest.raises(JudgeNotConfiguredError, match='judge="local"'):
        evaluate(ROWS, [Length(), "relevance"])


@pytest.mark.parametrize("kind", [BudgetExceededError, CacheUnavailableError, CacheMissError])
def test_what_ends_a_run_ends_the_evaluation(kind: type[Exception]) -> None:
    refusal = kind("no more")

    def answer(prompt: str) -> dict[str, Any]:
        if "moths" in prompt:
            return rated(4)
        raise refusal

    with FakeSession(judge=ScriptedJudge(rate_relevance=answer)).running():
        if kind is CacheMissError:
            table = evaluate(ROWS, ["relevance"])
            assert table.scores("relevance") == [1.0, None, None]
            assert table.rows[1].unscored == {"relevance": "no more"}
        else:
            with pytest.raises(kind, match="no more"):
                evaluate(ROWS, ["relevance"])


@pytest.mark.parametrize(
    ("reply", "says"),
    [(out_of_quota(), "no credit left"), (failing(401, "Wrong.", code="invalid_api_key"), "check OPENAI_API_KEY")],
)
def test_a_judge_without_credit_is_asked_no_more(server: FakeOpenAI, tmp_path: Path, reply: Reply, says: str) -> None:
    answered = iter(range(6))
    server.answer = lambda body: answer_sensibly(body) if next(answered, None) is not None else reply
    with pytest.raises(JudgeUnavailableError, match=rf"{says}.*; stopped after \d+ of 30 scores"):
        evaluate(numbered(30), ["relevance"], cache_dir=tmp_path / "cache", concurrency=2)
    assert server.calls <= 6 + 2 * 2
    server.answer = answer_sensibly
    before = server.calls
    evaluate(numbered(30), ["relevance"], cache_dir=tmp_path / "cache")
    assert server.calls == before + 24


@pytest.mark.parametrize("reply", [rate_limited(), failing(503)])
def test_a_judge_that_is_out_of_order_is_given_up(server: FakeOpenAI, reply: Reply) -> None:
    """After as many failures as requests in flight, so that not every row is tried for minutes."""
    server.answer = lambda body: reply
    with pytest.raises(JudgeError, match=r"the judge gave no score of [34]; the first failed with: openai:"):
        evaluate(numbered(300), ["relevance"], concurrency=3)
    # Six attempts each, of those whose failures were counted and of those that came in their place.
    assert server.calls <= 6 * 6


@pytest.mark.parametrize("refusal", [failing(400, "Bad request."), filtered()])
def test_a_judge_that_refuses_rows_is_not_given_up(server: FakeOpenAI, refusal: Reply) -> None:
    server.answer = lambda body: answer_sensibly(body) if "moths" in str(body) else refusal
    table = evaluate([*numbered(9), ROWS[0]], ["relevance"], concurrency=2)
    assert table.scores("relevance") == [None] * 9 + [1.0]
    assert re.search("Bad request|content filter", table.rows[5].unscored["relevance"])
    with pytest.raises(JudgeError, match=r"gave no score of 9; the first failed with: openai:"):
        evaluate(numbered(9), ["relevance"], concurrency=2)


INTERRUPTED = """
import sys
from pytest_ragmetrics import evaluate

rows = [{"question": f"Is {n} a number?", "answer": f"{n} is one."} for n in range(12)]
evaluate(rows, ["relevance"], cache_dir=sys.argv[1], concurrency=4)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
@pytest.mark.slow
def test_an_interrupt_keeps_what_is_paid_for(server: FakeOpenAI, tmp_path: Path) -> None:
    server.latency = 0.25
    begun = threading.Event()

    def answer(body: dict[str, Any]) -> str:
        if server.calls >= 4:
            begun.set()
        return answer_sensibly(body)

    server.answer = answer
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "cache")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert begun.wait(60)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in said
    assert server.answered == server.calls < 12
    with Store(tmp_path / "cache") as store:
        assert store.count() == server.calls


@pytest.mark.parametrize(("terminal", "wanted"), [(True, True), (True, False), (False, True), (None, True)])
def test_progress_shows_in_a_terminal(monkeypatch: pytest.MonkeyPatch, *, terminal: bool | None, wanted: bool) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", None if terminal is None else screen)
    assert len(evaluate(ROWS, ["relevance"], judge="local", progress=wanted).rows) == 3
    shown = screen.getvalue()
    assert bool(shown) is (bool(terminal) and wanted)
    assert not shown or (shown.endswith("\rscored 3/3\n") and shown.count("\n") == 1)


def test_progress_may_be_a_function() -> None:
    seen: list[tuple[int, int]] = []
    table = evaluate(ROWS, ["relevance", Length()], judge="local", progress=lambda *counts: seen.append(counts))
    assert seen == [(done, 6) for done in range(1, 7)]
    assert all(0 <= (stats.duration or -1) < 60 for stats in table.stats().values())


class WaitsForLong(Metric):
    name = "waits_for_long"

    def measure(self, sample: Sample) -> MetricResult:
        return MetricResult(1.0, metric=self.name)

    async def ameasure(self, sample: Sample) -> MetricResult:
        await asyncio.sleep(600 if sample.id == "0" else 0)
        return self.measure(sample)


def test_what_ends_a_table_ends_it_at_once() -> None:
    rows = [Sample(id=f"{n}", response="It rains.") for n in range(3)]
    with pytest.raises(ZeroDivisionError):
        evaluate(rows, [WaitsForLong()], progress=lambda *_: 1 // 0)


@pytest.mark.parametrize("progress", ["yes", 1, None, asyncio.sleep])
def test_another_progress_is_refused(progress: Any) -> None:
    with pytest.raises(TypeError, match="progress must be True, False or a function of two counts, without async, not"):
        evaluate(ROWS, [Length()], progress=progress)


def test_data_frames_are_rows() -> None:
    frame = pd.DataFrame([{"id": 7, "answer": "Yes.", "note": None}, {"id": 8, "answer": None, "note": 0.5}])
    table = evaluate(frame, [Length()])
    assert [row.sample for row in table.rows] == [
        Sample(id="7", response="Yes."),
        Sample(id="8", metadata={"note": 0.5}),
    ]
    assert "response is missing" in table.rows[1].unscored["length"]


def test_a_table_that_went_through_a_file_is_scored_alike(tmp_path: Path) -> None:
    rows = [{"question": "Why?", "answer": "So.", "contexts": ["[1] a", "b"], "messages": [{"role": "user"}]}]
    table = evaluate(rows, [Length()])
    table.to_pandas().to_csv(tmp_path / "rows.csv", index=False)
    (again,) = evaluate(pd.read_csv(tmp_path / "rows.csv"), [Length()]).rows
    assert again.sample.retrieved_contexts == ("[1] a", "b")
    assert again.sample.metadata["messages"] == [{"role": "user"}]


def test_an_assertion_names_a_table_that_was_not_awaited() -> None:
    one: Any = UNAWAITED
    with pytest.raises(TypeError, match="await it first"):
        assert_no_regression(one)
