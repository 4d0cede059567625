"""Panels in runs of pytest: what several judges make of a suite, and what a second run pays for."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.fake_answers import answer_sensibly
from tests.fake_openai import Body, FakeOpenAI, Reply
from tests.plugin.conftest import Run, RunPytest
from tests.scripted_judge import claims, rated, verdicts

PANEL = "panel:openai:a,openai:b,openai:c"
TESTS = """
    CONTEXTS = ["The lake is 40 m deep.", "Pike live in the lake."]
    @pytest.mark.parametrize("row", ["alike", "carried", "outvoted"])
    def test_claims(row):
        result = assert_faithful(f"Pike live in it: {row}.", CONTEXTS)
        assert result.judge == "panel:openai:a,openai:b,openai:c"
        assert len(result.disagreements) == (row == "carried")
    def test_rating(): assert assert_relevant("How deep is it?", "40 m: rated.", min=0.7).value == 0.75
"""
#: Whether a, b and c support the claim of a row.
SUPPORTS = {"alike": "yyy", "carried": "yny", "outvoted": "nyn"}


RATED = "rate_relevance: rated 0.75 by openai:a, 0.00 by openai:b, 1.00 by openai:c"


def answer(body: Body) -> str | Reply:
    """Answer as the row that is asked about says, each model in its way."""
    prompt, number = str(body["messages"][-1]["content"]), "abc".find(body["model"])
    if "40 m: rated." in prompt:
        # The last of the panel answers first.
        text = json.dumps(rated((3, 0, 4, 2)["abcd".index(body["model"])], f"So says {body['model']}."))
        return Reply(text=text, latency=0.1 if number == 0 else 0.0)
    row = next((row for row in SUPPORTS if f"{row}." in prompt), None)
    if row is None or number < 0:
        return answer_sensibly(body)
    if "<<<claims" not in prompt:
        return json.dumps(claims(f"Pike live in the lake: {row}."))
    return json.dumps(verdicts([2] if SUPPORTS[row][number] == "y" else None))


def asked(server: FakeOpenAI) -> dict[str, int]:
    return dict(Counter(request.body["model"] for request in server.requests))


SHOWN = ("outcome", "score", "reason", "disagreements")


def shown_of(ran: Run) -> dict[str, list[Any]]:
    """Return what each test shows of its judges."""
    return {name: [test["records"][0][field] for field in SHOWN] for name, test in ran.named.items()}


def test_a_panel_decides_and_is_paid_once(run: RunPytest, server: FakeOpenAI) -> None:
    server.answer = answer
    files = ("--rag-json=out.json", "--rag-report=out.html", "--rag-cassette=judge.jsonl")
    result = run(f"--rag-judge={PANEL}", *files, test_lake=TESTS)
    assert asked(server) == {"a": 7, "b": 4, "c": 4}
    records = {name: test["records"][0] for name, test in result.named.items()}
    # The usage is that of all judges.
    assert sorted(record["usage"]["calls"] for record in records.values()) == [3, 4, 4, 4]
    claim = "verify_claims, claim 1"
    carried = f'{claim} "Pike live in the lake: carried.": yes: openai:a, openai:c; no: openai:b (Reason 1.)'
    outvoted = f'{claim} "Pike live in the lake: outvoted.": no: openai:a, openai:c; yes: openai:b (Reason 1.)'
    found = {
        "test_claims[alike]": ["passed", 1.0, "1 of 1 claims supported", []],
        "test_claims[carried]": ["passed", 1.0, "1 of 1 claims supported", [carried]],
        "test_claims[outvoted]": ["failed", 0.0, "0 of 1 claims supported", [outvoted]],
        "test_rating": ["passed", 0.75, "So says a.", [RATED]],
    }
    assert shown_of(result) == found
    result.shows(f"E*  judges: {outvoted}", passed=3, failed=1)
    judges = {name: [exchange["judge"] for exchange in record["exchanges"]] for name, record in records.items()}
    assert (judges["test_rating"], judges["test_claims[alike]"]) == (["openai:a", "openai:b", "openai:c"], [])
    assert "the judges are not unanimous" in result.text("out.html")
    for mode, without in (("auto", "judge.jsonl"), ("replay", ".ragmetrics")):
        (result.folder / without).rename(result.folder / f"away-{mode}")
        assert shown_of(run(f"--rag-judge={PANEL}", *files, f"--rag-cache={mode}")) == found
    assert server.calls == 15


def test_one_judge_alone_is_not_asked_again(run: RunPytest, server: FakeOpenAI) -> None:
    server.answer = answer
    run(f"--rag-judge={PANEL}", "-k", "rating", test_lake=TESTS)
    test = """
        def test_rating():
            for judge in ("openai:b", "openai:c", "panel:openai:c,openai:a", "panel:openai:b,openai:d,openai:c"):
                print("RATED", assert_relevant("How deep is it?", "40 m: rated.", min=0, judge=judge).value)
    """
    result = run("-s", "test_own.py", test_own=test)
    rates = [float(line.rpartition("RATED ")[2]) for line in result.outlines if "RATED" in line]
    assert rates == [0.0, 1.0, 0.875, 0.5]
    assert asked(server) == dict.fromkeys("abcd", 1)


def test_votes_of_a_panel_are_answers_of_the_panel(run: RunPytest, server: FakeOpenAI) -> None:
    server.answer = answer
    ran = run(f"--rag-judge={PANEL}", "--rag-votes=3", "--rag-json=out.json", "-k", "rating", test_lake=TESTS)
    assert asked(server) == {"a": 3, "b": 3, "c": 3}
    (record,) = ran.named["test_rating"]["records"]
    assert (record["samples"], record["disagreements"]) == ([0.75, 0.75, 0.75], [RATED])


def test_the_budget_counts_every_judge(run: RunPytest, server: FakeOpenAI) -> None:
    result = run(f"--rag-judge={PANEL}", "--rag-dry-run", test_lake=TESTS)
    result.shows("faithfulness * 3 * 12 *", "relevance * 1 * 3 *")
    assert server.calls == 0
    server.answer = answer
    run(f"--rag-judge={PANEL}", "--rag-max-calls=14", test_lake=TESTS).shows("*BudgetExceededError*")
    assert server.calls <= 14


def test_a_hook_makes_judges_of_a_panel(run: RunPytest, server: FakeOpenAI) -> None:
    conftest = """
        from pytest_ragmetrics.judges.judge import Judge
        from pytest_ragmetrics.judges.tasks import Rating
        from pytest_ragmetrics.judges.transports.limiter import DIRECT
        from pytest_ragmetrics.judges.transports.values import Answered
        from pytest_ragmetrics.core.result import Usage
        class House(Judge):
            name = "house"
            async def ask(self, task, *, vote=0, transport=DIRECT):
                return Answered(answer=Rating(value=1.0, reason="As ever."), usage=Usage(calls=1))
        def pytest_ragmetrics_make_judge(config, spec): return House() if spec == "our house" else None
    """
    test = """
        def test_rating():
            result = assert_relevant("How deep is it?", "40 m: rated.", min=0.5)
            print("CALLS", result.value, result.usage.calls, result.usage.cached_calls, result.judge)
    """
    server.answer = answer
    panel = "--rag-judge=panel:openai:a,our house,openai:c"
    for calls in ("3 0", "1 2"):
        run("-s", panel, conftest=conftest, test_house=test).shows(f"*CALLS 1.0 {calls} panel:openai:a,house,openai:c")
    run(panel, "--rag-max-calls=0").shows("*BudgetExceededError*")
    assert server.calls == 2


def test_a_panel_of_a_factory_is_a_panel(run: RunPytest, server: FakeOpenAI) -> None:
    factory = """
        from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
        from pytest_ragmetrics.judges.panel import Panel
        def make(): return Panel([OpenAIJudge("a"), OpenAIJudge("b"), OpenAIJudge("c")])
    """
    server.answer = answer
    for _ in range(2):
        run("--rag-judge=panel_factory:make", "-k", "rating", panel_factory=factory, test_lake=TESTS).assert_outcomes(
            passed=1, deselected=3
        )
    assert server.calls == 3
