"""Panels in runs of pytest: what several judges make of a suite, and what a second run pays for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.fake_answers import answer_sensibly
from tests.fake_openai import Body, FakeOpenAI, Reply, failing
from tests.plugin.conftest import MANY, SERIAL, Run, RunOnce, RunPytest, Scored
from tests.scripted_judge import claims, rated, verdicts

PANEL = "panel:openai:a,openai:b,openai:c"
TESTS = """
    import pytest
    from pytest_ragmetrics import assert_faithful, assert_relevant

    CONTEXTS = ["The lake is 40 m deep.", "Pike live in the lake."]

    @pytest.mark.parametrize("row", ["alike", "carried", "outvoted"])
    def test_claims(row):
        result = assert_faithful(f"Pike live in it: {row}.", CONTEXTS)
        assert result.judge == "panel:openai:a,openai:b,openai:c"
        assert len(result.disagreements) == (row == "carried")

    def test_rating():
        assert assert_relevant("How deep is it?", "40 m: rated.", min=0.7).value == 0.75
"""
#: Whether a, b and c support the claim of a row.
SUPPORTS = {"alike": "yyy", "carried": "yny", "outvoted": "nyn", "split": "ynf", "outage": "yyf", "alone": "yff"}


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
    said = SUPPORTS[row][number]
    return failing(500) if said == "f" else json.dumps(verdicts([2] if said == "y" else None))


def outcomes(run: Run) -> dict[str, tuple[Any, ...]]:
    """Return outcome, score and disagreements of each test."""
    return {
        name.partition("::")[2]: (test["outcome"], record["score"], record["reason"], record["disagreements"])
        for name, test in run.tests.items()
        for record in test["records"]
    }


@pytest.fixture(scope="module")
def first(run_once: RunOnce, shared_server: FakeOpenAI) -> Run:
    """Run the suite once, with everything that a run writes."""
    shared_server.answer = answer
    written = ("--rag-json=out.json", "--rag-report=out.html", "--rag-cassette=judge.jsonl")
    return run_once(f"--rag-judge={PANEL}", *written, provider=shared_server, test_lake=TESTS)


def test_all_judges_are_asked_what_they_decide(first: Run, shared_server: FakeOpenAI) -> None:
    """The first one alone lists the claims; usage and cost are those of all."""
    first.result.assert_outcomes(passed=3, failed=1)
    asked = [request.body["model"] for request in shared_server.requests[:15]]
    assert {model: asked.count(model) for model in "abc"} == {"a": 7, "b": 4, "c": 4}
    calls = {test["id"]: test["records"][0]["usage"]["calls"] for test in first.tests.values()}
    assert sorted(calls.values()) == [3, 4, 4, 4]


def test_disagreements_are_in_every_output(first: Run) -> None:
    """In the failure, the JSON file and the page, which show who was asked and replied what."""
    carried = (
        'verify_claims, claim 1 "Pike live in the lake: carried.": yes: openai:a, openai:c; no: openai:b (Reason 1.)'
    )
    outvoted = carried.replace("carried", "outvoted").replace("yes", "*").replace("no", "yes").replace("*", "no")
    outvoted = outvoted.replace(" (Reason 1.)", "") + " (Reason 1.)"
    rating = "rate_relevance: rated 0.75 by openai:a, 0.00 by openai:b, 1.00 by openai:c"
    found = outcomes(first)
    assert found["test_claims[alike]"] == ("passed", 1.0, "1 of 1 claims supported", [])
    assert found["test_claims[carried]"] == ("passed", 1.0, "1 of 1 claims supported", [carried])
    assert found["test_claims[outvoted]"] == ("failed", 0.0, "0 of 1 claims supported", [outvoted])
    assert found["test_rating"] == ("passed", 0.75, "So says a.", [rating])
    first.result.stdout.fnmatch_lines([f"E*  judges: {outvoted.replace('[', '[[]')}"])
    page = first.text("out.html")
    assert "the judges are not unanimous" in page
    records = {name.partition("::")[2]: test["records"][0] for name, test in first.tests.items()}
    judges = {name: [exchange["judge"] for exchange in record["exchanges"]] for name, record in records.items()}
    assert judges["test_rating"] == ["openai:a", "openai:b", "openai:c"]
    assert judges["test_claims[alike]"] == []


@pytest.mark.parametrize(("mode", "workers"), [("replay", SERIAL), ("auto", MANY)])
def test_a_second_run_asks_nobody(
    first: Run, run_once: RunOnce, shared_server: FakeOpenAI, tmp_path: Path, workers: list[str], mode: str
) -> None:
    """From the cache or the committed cassette alone, serially and with workers, it finds the same."""
    folder = shutil.copytree(first.folder, tmp_path / "again")
    if mode == "replay":
        shutil.rmtree(folder / ".ragmetrics")
    else:
        (folder / "judge.jsonl").unlink()
    before = shared_server.calls
    options = (f"--rag-judge={PANEL}", f"--rag-cache={mode}", "--rag-json=out.json", "--rag-cassette=judge.jsonl")
    again = run_once(*options, *workers, provider=shared_server, folder=folder)
    again.result.assert_outcomes(passed=3, failed=1)
    assert outcomes(again) == outcomes(first)
    assert shared_server.calls == before


def test_one_judge_alone_is_not_asked_again(
    first: Run, run_once: RunOnce, shared_server: FakeOpenAI, tmp_path: Path
) -> None:
    """Its answers are its own: another panel asks only the new judge, and one of known judges nobody."""
    test = """
        from pytest_ragmetrics import assert_relevant

        def test_rating():
            for judge in ("openai:b", "openai:c", "panel:openai:c,openai:a", "panel:openai:b,openai:d,openai:c"):
                print("RATED", assert_relevant("How deep is it?", "40 m: rated.", min=0, judge=judge).value)
    """
    folder = shutil.copytree(first.folder, tmp_path / "again")
    before = shared_server.calls
    ended = run_once("-s", "test_own.py", provider=shared_server, folder=folder, test_own=test)
    ended.result.assert_outcomes(passed=1)
    rates = [float(line.rpartition("RATED ")[2]) for line in ended.result.outlines if "RATED" in line]
    assert rates == [0.0, 1.0, 0.875, 0.5]
    assert [request.body["model"] for request in shared_server.requests[before:]] == ["d"]


def test_judges_that_fail(run: RunPytest, server: FakeOpenAI) -> None:
    """Two of three decide; a split and a single answer leave the row unscored, with the reason."""
    server.answer = answer
    test = TESTS.replace('["alike", "carried", "outvoted"]', '["outage", "split", "alone"]').replace(
        '(row == "carried")', "1"
    )
    result = run(f"--rag-judge={PANEL}", "--rag-retries=0", test_lake=test)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*UnscoredError: *the judges are split: verify_claims, claim 1 *: yes: openai:a; no: openai:b (Reason 1.)",
            "*UnscoredError: *verify_claims: 1 of 3 judges answered, and 2 must: openai:b: *500*; openai:c: *500*",
        ]
    )


@pytest.mark.parametrize("place", ["variable", "ini", "marker"])
def test_a_panel_can_be_named_wherever_a_judge_can(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """With errors that name the place."""
    for spec, problem in ((PANEL, ""), ("panel:openai:a,opnai", "judge 2: 'opnai' is not one of auto")):
        mark = ""
        if place == "variable":
            monkeypatch.setenv("RAGMETRICS_JUDGE", spec)
        elif place == "ini":
            pytester.makeini(f"[pytest]\nrag_judge = {spec}\n")
        else:
            mark = f"@pytest.mark.rag_judge({spec!r})"
        server.answer = answer
        test = f"""
            import pytest
            from pytest_ragmetrics import assert_relevant

            {mark}
            def test_rating():
                result = assert_relevant("How deep is it?", "40 m: rated.", min=0.7)
                assert result.judge == {spec!r}
        """
        result = run(test_it=test)
        if problem:
            assert problem in result.stdout.str() + result.stderr.str()
            assert result.ret != 0
        else:
            result.assert_outcomes(passed=1)


def test_votes_of_a_panel_are_answers_of_the_panel(run: RunPytest, server: FakeOpenAI, scored: Scored) -> None:
    """Each vote asks every judge anew; the score is the mean of the merged answers."""
    server.answer = answer
    result = run(f"--rag-judge={PANEL}", "--rag-votes=3", "--rag-json=out.json", "-k", "rating", test_lake=TESTS)
    result.assert_outcomes(passed=1, deselected=3)
    asked = [request.body["model"] for request in server.requests]
    assert {model: asked.count(model) for model in "abc"} == {"a": 3, "b": 3, "c": 3}
    (record,) = scored()["test_lake.py::test_rating"]["records"]
    assert record["samples"] == [0.75, 0.75, 0.75]
    assert record["disagreements"] == ["rate_relevance: rated 0.75 by openai:a, 0.00 by openai:b, 1.00 by openai:c"]


def test_the_budget_counts_every_judge(run: RunPytest, server: FakeOpenAI) -> None:
    """A dry run forecasts what the run takes; one call less is too few."""
    result = run(f"--rag-judge={PANEL}", "--rag-dry-run", test_lake=TESTS)
    result.stdout.fnmatch_lines(["faithfulness * 3 * 12 *", "relevance * 1 * 3 *"])
    assert server.calls == 0
    server.answer = answer
    result = run(f"--rag-judge={PANEL}", "--rag-max-calls=14", test_lake=TESTS)
    result.stdout.fnmatch_lines(["*BudgetExceededError*"])
    assert server.calls <= 14


def test_a_hook_makes_judges_of_a_panel(run: RunPytest, server: FakeOpenAI) -> None:
    """One with an ask of its own is counted as it is alone; the others keep their cached answers."""
    conftest = """
        from pytest_ragmetrics.judges.judge import Judge
        from pytest_ragmetrics.judges.tasks import Rating
        from pytest_ragmetrics.judges.transport import DIRECT, Answered
        from pytest_ragmetrics.result import Usage

        class House(Judge):
            name = "house"

            async def ask(self, task, *, vote=0, transport=DIRECT):
                return Answered(answer=Rating(value=1.0, reason="As ever."), usage=Usage(calls=1))

        def pytest_ragmetrics_make_judge(config, spec):
            return House() if spec == "our house" else None
    """
    test = """
        from pytest_ragmetrics import assert_relevant

        def test_rating():
            result = assert_relevant("How deep is it?", "40 m: rated.", min=0.5)
            print("CALLS", result.value, result.usage.calls, result.usage.cached_calls, result.judge)
    """
    server.answer = answer
    for calls in ("3 0", "1 2"):
        result = run("-s", "--rag-judge=panel:openai:a,our house,openai:c", conftest=conftest, test_house=test)
        result.stdout.fnmatch_lines([f"*CALLS 1.0 {calls} panel:openai:a,house,openai:c"])
    result = run("--rag-judge=panel:openai:a,our house,openai:c", "--rag-max-calls=0", "--rag-cache=auto")
    result.stdout.fnmatch_lines(["*BudgetExceededError*"])
    assert server.calls == 2


def test_a_panel_of_a_factory_is_a_panel(run: RunPytest, server: FakeOpenAI) -> None:
    """Its judges are asked over the transport of the run: their answers are stored."""
    factory = """
        from pytest_ragmetrics.judges.openai import OpenAIJudge
        from pytest_ragmetrics.judges.panel import Panel

        def make():
            return Panel([OpenAIJudge("a"), OpenAIJudge("b"), OpenAIJudge("c")])
    """
    server.answer = answer
    for _ in range(2):
        run("--rag-judge=panel_factory:make", "-k", "rating", panel_factory=factory, test_lake=TESTS).assert_outcomes(
            passed=1, deselected=3
        )
    assert server.calls == 3
