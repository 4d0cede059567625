"""Regression gates whose judge, prompt or code is not that of the baseline: both sides are judged by today's."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from pytest_ragmetrics.cli import main
from pytest_ragmetrics.runs.records import read_document
from pytest_ragmetrics.runs.wording.runs import paid_usages
from tests.fake_openai import Body, FakeOpenAI, Reply
from tests.plugin.conftest import ONE, SERIAL, RunPytest

#: Eight rows of an application that answers as the environment says, scored by metrics of its name.
SUITE = """
    import os
    from pytest_ragmetrics.metrics import Relevance
    ROWS = [{"id": f"q{n}", "question": f"What is moss {n}?"} for n in range(8)]
    @pytest.fixture(scope="session")
    def rag_respond():
        old = os.environ.get("SAME", "").split()
        return lambda sample: f"{'Old moss' if sample.id in old else os.environ['ANSWER']} {sample.id}"
    @pytest.mark.rag_gate("relevance", regression=True)
    @pytest.mark.rag_dataset(ROWS, metrics=["relevance"])
    def test_golden(rag_sample): pass
"""
OWN = """
    import json
    from pytest_ragmetrics import metric
    @metric
    def points(response): return 1.0 if "Bad" not in response else 0.0
"""
REGISTER = "\n    def pytest_ragmetrics_register_metrics(): return [points]"
STRICTER = OWN.replace("1.0 if", "0.5 if")
OF_OWN = SUITE.replace("relevance", "points")
MARKED = SUITE.replace("    @pytest.mark.rag_d", '    @pytest.mark.rag_judge("openai:strict")\n    @pytest.mark.rag_d')
#: Scored in the body of the test, by the judge of the run or another one.
INSIDE = SUITE.replace(', metrics=["relevance"]', "").replace(": pass", ": Relevance().score_sample(rag_sample)")
OTHERS = INSIDE.replace("Relevance()", 'Relevance(judge="openai:strict")')
#: A metric that no other process can make.
LOCAL = """
    from pytest_ragmetrics import MetricResult
    from pytest_ragmetrics.metrics import Metric
    def made():
        class Points(Metric):
            name = "points"
            def measure(self, sample): return MetricResult(0.5, metric=self.name)
        return Points()
"""
REDACTS = OWN + REGISTER + "\n    def pytest_ragmetrics_redact(text): return text.replace('moss', 'fern')"
STRICT, BASELINE = "--rag-judge=openai:strict", "--rag-baseline=main.json"
LENIENT = "--rag-judge=openai:lenient"
OLD, NEW, BAD = ({"ANSWER": f"{word} moss"} for word in ("Old", "New", "Bad"))
ANOTHER = "openai:lenient answers as m-2 fp now, as m-1 fp in the baseline"
CALLS = "8 calls, 2,160 tokens, cost unknown"


def rated(body: Body) -> str:
    """Rate a plain answer 4, or 2 as the strict judge and by a strict prompt; one that is bad gets 0."""
    said = str(body["messages"])
    good = 2 if body["model"] == "strict" or "Be strict" in said else 4
    return json.dumps({"reason": "So.", "rating": 0 if "Bad moss" in said else good})


@pytest.fixture(autouse=True)
def _baseline(run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester) -> None:
    """Leave a run that the lenient judge, and lenient code, scored."""
    server.answer = rated
    (pytester.mkdir("prompts") / "rate_relevance.md").write_text("Be strict. {}", "utf-8")
    files = {"conftest": OWN + REGISTER, "test_it": SUITE, "test_own": OF_OWN}
    first = run(LENIENT, "--rag-json=main.json", env=OLD, **files)
    first.assert_outcomes(passed=16, skipped=2)


def test_a_new_judge_judges_the_answers_of_the_baseline_too(run: RunPytest, server: FakeOpenAI) -> None:
    judged = f"relevance: judged 8 answers of the baseline anew with openai:strict, because the * {CALLS}"
    same = "relevance: judged nothing anew, though the judge changed: 8 answers are the same in both"
    for how, now, outcome, calls, said in (
        (SERIAL, NEW, "passed", 16, judged),
        (SERIAL, BAD, "failed", 16, "relevance 0.50 -> 0.00: 8 of 8 rows got worse, 0 better; *"),
        (SERIAL, OLD, "passed", 8, same),
        (ONE, NEW, "passed", 16, judged),
    ):
        against = (STRICT, BASELINE, f"--rag-cache-dir={now['ANSWER']}{len(how)}", "--rag-json=out.json", "test_it.py")
        before = server.calls
        result = run(*how, *against, env=now)
        result.shows(said)
        (gate,) = result.gates.values()
        assert (gate["outcome"], server.calls - before) == (outcome, calls)
        assert sum(it.calls for it in paid_usages(result.document)) == calls
        assert [test.records for test in result.document.tests if test.gate] == [()]
        (again,) = run(*against, env=now).gates.values()
        assert (again["outcome"], again["value"], server.calls - before) == (outcome, gate["value"], calls)


def test_what_changed_is_judged_anew(run: RunPytest, server: FakeOpenAI) -> None:
    prompt = "because the prompt of rate_relevance changed: 8 calls, *"
    for options, files, said in (
        (["test_it.py", "-o", "rag_prompts=prompts"], {}, f"relevance: judged * with openai:lenient, {prompt}"),
        (["test_it.py"], {"test_it": MARKED}, f"relevance: judged * with openai:strict, because * {CALLS}"),
        (["test_own.py"], {"conftest": STRICTER + REGISTER},
         "points: judged 8 answers of the baseline anew, because its code changed"),
    ):  # fmt: skip
        run(LENIENT, *options, BASELINE, env=NEW, **files).shows(said, passed=9)
        run(LENIENT, *options, BASELINE, env=BAD).assert_outcomes(passed=8, failed=1)
    assert server.duplicates == 0


def test_a_gate_is_inconclusive_where_nobody_can_judge(run: RunPytest, pytester: pytest.Pytester) -> None:
    for options, files, said in (
        ([STRICT, "--rag-max-calls=12", "test_it.py"], {}, "--rag-max-calls=12 is reached (12 of 12 calls, * used): *"),
        ([STRICT, "test_it.py"], {"test_it": OTHERS.replace("strict", "other")},
         "openai:strict would judge here, and other judges have in the tests*"),
        ([LENIENT, "test_own.py"], {"test_own": LOCAL + OF_OWN.replace('["points"]', "[made()]"), "conftest": ""},
         "the code or the arguments of points are not known to its gate: make it in *"),
    ):  # fmt: skip
        result = run(*options, BASELINE, "--rag-json=out.json", env=NEW, **files)
        result.shows(f"gate: *: inconclusive: *; not judged anew: {said}", passed=8, failed=1)
        (gate,) = result.gates.values()
        assert gate["outcome"] == "inconclusive"
        if "--rag-max-calls=12" in options:
            assert sum(it.calls for it in paid_usages(result.document)) == 12
    file = pytester.path / "main.json"
    file.write_text(re.sub('"response": "[^"]*"', '"response": null', file.read_text("utf-8")), "utf-8")
    result = run(STRICT, BASELINE, "test_it.py", env=NEW, test_it=SUITE)
    result.shows("*not judged anew: the baseline has no texts: give a file that --rag-json wrote*", passed=8, failed=1)


def test_replies_of_a_cassette_decide_in_replay(run: RunPytest) -> None:
    cassette = (STRICT, "--rag-cassette=tape.jsonl", "test_it.py")
    run(*cassette, env=NEW).assert_outcomes(passed=8, skipped=1)
    replay = (*cassette, "--rag-cache=replay", BASELINE)
    run(*replay, env=NEW).shows("gate: *: inconclusive: *; not judged anew: *", passed=8, failed=1)
    run(*cassette, BASELINE, env=NEW).assert_outcomes(passed=9)
    run(*replay, env=NEW).assert_outcomes(passed=9)


def test_where_texts_are_redacted_the_judge_sees_the_same_of_both_sides(run: RunPytest, server: FakeOpenAI) -> None:
    run(LENIENT, "--rag-json=main.json", env=OLD, conftest=REDACTS)
    result = run(STRICT, BASELINE, "test_it.py", env=NEW)
    result.shows("relevance: judged 8 answers of the baseline and 8 of this run anew *", passed=9)
    assert sum("Old fern" in str(each.body["messages"]) for each in server.requests) == 8


def test_shards_that_are_merged_judge_nothing_anew(run: RunPytest, pytester: pytest.Pytester) -> None:
    for name, rows in (("a", "q0 or q1 or q2 or q3"), ("b", "q4 or q5 or q6 or q7")):
        run(STRICT, f"--rag-json={name}.json", "test_it.py", "-k", rows, env=NEW)
    files = [str(pytester.path / f"{name}.json") for name in ("a", "b", "main", "out")]
    assert main(["report", "merge", *files[:2], "--baseline", files[2], "-o", files[3]]) == 1
    (gate,) = (test.gate for test in read_document(Path(files[3])).tests if test.gate)
    assert gate.outcome == "inconclusive"
    assert gate.regression is not None
    assert gate.regression.doubts[-1].endswith(
        "not judged anew: report merge asks no judge, a run of the whole set does"
    )


def test_a_drop_by_a_judge_that_changed_under_its_name_is_looked_at_again(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester
) -> None:
    def answering(model: str, good: int) -> None:
        def answer(body: Body) -> Reply:
            rating = 0 if "Bad moss" in str(body["messages"]) else good
            return Reply(text=json.dumps({"reason": "So.", "rating": rating}), served=(model, "fp"))

        server.answer = answer

    answering("m-1", 4)
    run(LENIENT, "--rag-json=main.json", "--rag-cache-dir=m-1", "test_it.py", env=OLD).shows(passed=8, skipped=1)
    answering("m-2", 2)
    for now, outcome, said in (
        (NEW, "passed", f"relevance: judged 8 answers of the baseline and 8 of this run anew *, because {ANOTHER}: *"),
        (BAD, "failed", "relevance 0.50 -> 0.00: 8 of 8 rows got worse, *"),
        (OLD, "passed", "gate: relevance against the baseline 1.000 -> 1.000, *: passed (n 8; 0 of 8 rows got worse*"),
    ):
        asked, cache = server.calls, pytester.path / now["ANSWER"]
        shutil.copytree(pytester.path / "m-1", cache)
        result = run(LENIENT, BASELINE, f"--rag-cache-dir={cache}", "--rag-json=out.json", "test_it.py", env=now)
        result.shows(said)
        (gate,) = result.gates.values()
        assert (gate["outcome"], server.calls - asked) == (outcome, 0 if now is OLD else 16)


def test_sentinels_that_give_an_alarm_have_a_drop_looked_at_again(run: RunPytest, server: FakeOpenAI) -> None:
    server.answer = lambda _: json.dumps({"reason": "So.", "rating": 0})
    options = (LENIENT, BASELINE, "--rag-sentinels=8", "test_it.py")
    text = "judged 5 answers of the baseline and 5 of this run anew with openai:lenient, because the sentinels of "
    said = f"relevance: {text}openai:lenient gave an alarm; 3 answers are the same in both: 5 calls, *"
    run(*options, env={**NEW, "SAME": "q0 q1 q2"}).shows(said, passed=9)
