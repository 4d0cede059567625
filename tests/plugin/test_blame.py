"""``--rag-blame``: which part of an application made scores worse, told at the end of a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pytest_ragmetrics.cli import main
from pytest_ragmetrics.runs.wording.runs import paid_usages
from tests.fake_openai import Body, FakeOpenAI
from tests.plugin.conftest import HOW, RunPytest

#: Four rows of an application whose texts the environment changes; the judge errs about one.
SUITE = """
    import os
    import pytest
    from pytest_ragmetrics.metrics import Faithfulness
    ROWS = [{"id": f"q{n}", "question": f"What is moss {n}?", "reference": f"Moss {n} is green."} for n in range(4)]
    @pytest.fixture(scope="session")
    def rag_respond():
        def respond(sample):
            n, changes = sample.id[1:], bool(os.environ.get("CHANGES"))
            kept = [f"Moss {n} is green.", "Ferns are tall."]
            kept = kept[1:] if changes and n == "0" else kept
            said = {"1": "Moss 1 is blue.", "2": "Truly, moss 2 is green."}.get(n) if changes else None
            return {"response": said or f"Moss {n} is green.", "retrieved_contexts": kept}
        return respond
    @pytest.mark.rag_judge("openai:strict")
    @pytest.mark.rag_dataset(ROWS, metrics={Faithfulness(unit="sentences"): 0.8})
    def test_golden(rag_sample): pass
    def test_last(): pass
"""
LINE = "3 worse: 1 retriever, 1 generator, 1 judge"


def verified(body: Body, *, errs: bool) -> str:
    """Find a claim supported that stands in the contexts, unless it errs about the one in other words."""
    prompt = body["messages"][-1]["content"]
    sentences, claims = (re.findall(rf"^\d+{sign} (.+)$", prompt, re.MULTILINE) for sign in ("", r"\."))
    found = []
    for number, claim in enumerate(claims, start=1):
        is_lie = errs and claim.startswith("Truly")
        fact = claim.removeprefix("Truly, ").casefold()
        cited = [] if is_lie else [at for at, it in enumerate(sentences, start=1) if it.casefold() == fact]
        word = "supported" if cited else "unsupported"
        found.append({"number": number, "reason": "So.", "sentences": cited, "verdict": word})
    return json.dumps({"verdicts": found})


@HOW
def test_a_run_says_which_part_made_scores_worse(
    how: list[str],
    run: RunPytest,
    server: FakeOpenAI,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []

    def answer(body: Body) -> str:
        # The first request about the answer in other words is the one of its test.
        is_again = any("Truly" in it for it in told)
        told.append(str(body["messages"]))
        return verified(body, errs=not is_again)

    server.answer = answer
    run("--rag-json=main.json", test_it=SUITE).assert_outcomes(passed=5)
    forecast = run(*how, "--rag-baseline=main.json", "--rag-blame", "--rag-dry-run", "--rag-blame-rows=3")
    forecast.shows("--rag-blame: at most 12 judgements more: 4 for each of 3 that become worse", skipped=4, passed=1)
    before = server.calls
    against = (*how, "--rag-baseline=main.json", "--rag-blame", "--rag-json=out.json", "--rag-markdown=out.md")
    result = run(*against, "--rag-report=out.html", env={"CHANGES": "1"})
    result.shows(f"*{LINE}", passed=2, failed=3)
    blames = {
        test.id[-3:-1]: blame
        for test in result.document.tests
        for it in test.records
        if (blame := it.blame) is not None
    }
    assert {name: it.part for name, it in blames.items()} == {"q0": "retriever", "q1": "generator", "q2": "judge"}
    assert max(it.usage.calls for it in blames.values()) <= 4
    assert sum(it.calls for it in paid_usages(result.document)) == server.calls - before
    assert LINE in Path("out.md").read_text("utf-8")
    asked = server.calls
    again = run(*against, env={"CHANGES": "1"})
    assert server.calls == asked
    again.shows(f"*{LINE}", passed=2, failed=3)
    # From the files alone nobody knows the arguments of the metric.
    assert main(["report", "diff", "main.json", "out.json", "--blame"]) == 0
    assert "3 worse: 3 unknown\n" in capsys.readouterr().out
    assert server.calls == asked


#: An answer that stays, and of which the judge says once only that the passages, which change, support it.
LUCKY = """
    import os
    from pytest_ragmetrics.metrics import Faithfulness
    KEPT = ["Ferns are tall.", *([] if os.environ.get("CHANGES") else ["Moss is damp."])]
    ROW = {"response": "Moss is blue.", "contexts": KEPT}
    def test_a(): assert_sample(ROW, {Faithfulness(unit="sentences"): 0.8})
"""


def test_a_former_score_that_was_luck_blames_the_judge(run: RunPytest, server: FakeOpenAI) -> None:
    verdict = {"number": 1, "reason": "So.", "sentences": [1], "verdict": "supported"}
    no_verdict = {**verdict, "sentences": [], "verdict": "unsupported"}
    server.answer = lambda _: json.dumps({"verdicts": [no_verdict if server.calls else verdict]})
    run("--rag-json=main.json", test_it=LUCKY).assert_outcomes(passed=1)
    changed, against = {"CHANGES": "1"}, ("--rag-baseline=main.json", "--rag-blame", "--rag-cassette=told.jsonl")
    run("--rag-cassette=told.jsonl", env=changed).assert_outcomes(failed=1)
    # No answer of a test is stored, those that the blame takes are the first; where warnings are errors, too.
    result = run(*against, "-W", "error", "--rag-cache-dir=main.json/cache", env=changed)
    result.shows("*1 worse: 1 judge", failed=1)
    result.shows(
        "warning: *main.json/cache: the cache cannot be used: *; this run goes on without a local cache", failed=1
    )


#: A judge that warns whenever it is asked.
WARNING = """
    import warnings
    class Judge:
        name = "warning"
        async def complete(self, messages, schema):
            warnings.warn("this judge is slow")
            return '{"reason": "So.", "verdict": "%s"}' % ("no" if "blue" in str(messages) else "yes")
"""
WARNED = """
    import os
    import pytest
    SAID = "Moss is blue." if os.environ.get("CHANGES") else "Moss is green."
    ROWS = [{"id": f"q{n}", "question": f"What is {n}?", "response": SAID} for n in range(3)]
    @pytest.mark.rag_dataset(ROWS, metrics={"coherence": 0.8})
    def test_a(rag_sample): pass
"""


def test_a_warning_of_a_judge_is_told_once(run: RunPytest) -> None:
    judge = ("--rag-judge=warning_of_blame:Judge", "-W", "default")
    run(*judge, "--rag-json=main.json", warning_of_blame=WARNING, test_it=WARNED).assert_outcomes(passed=3, warnings=1)
    result = run(*judge, "--rag-baseline=main.json", "--rag-blame", "--rag-cache=off", env={"CHANGES": "1"})
    result.shows("*3 worse: *", failed=3, warnings=1)
    assert str(result.stdout).count("warning: this judge is slow") == 1


def test_without_texts_it_says_what_to_give(run: RunPytest, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="import pytest_ragmetrics as rag\ndef test_a(): rag.assert_exact_match('a', 'a')")
    run("--rag-blame", "--rag-history=past").shows("blame: no texts to compare with: give --rag-baseline=FILE, *")
    run("--rag-blame", "--rag-batch=wait").refused("*--rag-blame: what it asks follows from the scores: *")


#: A metric that a judge is not asked about, whose answer changes in what is redacted.
SECRET = """
    import os
    from pytest_ragmetrics import assert_faithful
    SAID = "Moss is blue." if os.environ.get("CHANGES") else "Moss is green."
    def test_a(): assert_faithful(SAID, ["Moss is green."], judge="local")
    def test_b(): pass
"""
HIDES = "import re\ndef pytest_ragmetrics_redact(text): return re.sub('green|blue', 'so', text)"


def test_what_cannot_be_told_blames_nobody(run: RunPytest) -> None:
    run("--rag-json=main.json", test_secret=SECRET, conftest=HIDES).assert_outcomes(passed=2)
    against = ("--rag-baseline=main.json", "--rag-blame")
    result = run(*against, env={"CHANGES": "1"})
    result.shows(
        "  1 worse: 1 unknown", "    unknown, 1: what pytest_ragmetrics_redact takes out may be *", failed=1, passed=1
    )
    stopped = run(*against, "-x", env={"CHANGES": "1"})
    stopped.shows("blame: nothing was asked, as the run ended early (-x, --maxfail or an interrupt)", failed=1)
