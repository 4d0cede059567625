"""A dry run: what a run would ask for, without a request and without a trace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import MANY, ONE, RunPytest

SUITE = """
    from pytest_ragmetrics.metrics import Faithfulness, Relevance
    CONTEXT = ["The pump hums in May. It is blue."]
    def test_held(): assert_faithful("The pump hums in May. It is red.", CONTEXT, min=1.0)
    def test_other(): assert_answer_relevant("Does it hum?", "The pump hums in May.", min=0.99)
    def test_goes_on():
        assert Relevance().score(user_input="Why?", response="Because.") > 1
        assert Relevance().score(user_input="Why not?", response="Because of that.") < 0
        assert False, "it has no real score"
    @pytest.mark.xfail
    def test_expected(): assert_faithful("The pump is red.", CONTEXT, min=1.0)
    def test_quoted(): assert_quoted_spans_aligned('It says "the pump is very red".', CONTEXT)
    def test_no_score(): pass
"""


def files_in(folder: Path) -> set[str]:
    kept = ("__pycache__", ".pytest_cache")
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in found if not any(part in kept for part in path.parts)}


#: Rows without a response are scored as if their reference, or their question, were it; contexts are stood in for too.
ROWS = """
    GIVEN = {"retrieved_contexts": ["It hums."]}
    ROWS = [Sample(user_input=f"Does it hum {n}?", reference=f"It hums {n}.", **GIVEN) for n in range(4)]
    QUESTIONS = [
        {"question": "Does it hum?"},
        {"question": "Does it rattle?", "reference": "It rattles."},
        {"question": "Does it leak?", "reference": "It leaks.", "reference_contexts": ["It leaks at night."]},
    ]
    @pytest.fixture
    def rag_respond(): raise RuntimeError("asked")
    @pytest.mark.rag_dataset(ROWS, metrics=["faithfulness", "relevance"])
    @pytest.mark.rag_gate("faithfulness", mean=0.85)
    def test_row(rag_sample, rag_scores): assert rag_scores["faithfulness"] >= 2
    @pytest.mark.rag_dataset(QUESTIONS, metrics=["faithfulness"])
    def test_question(rag_scores): assert rag_scores["faithfulness"] >= 0.8
    def test_table():
        fields = {"answer": "It hums.", "contexts": ["It hums."], "reference": "It hums."}
        table = evaluate([{**fields, "question": f"Does it hum {n}?"} for n in range(3)], ["relevance"])
        assert table.mean("relevance") == 17
"""


def test_what_would_be_asked_is_counted_and_not_asked(
    run: RunPytest, pytester: pytest.Pytester, server: FakeOpenAI
) -> None:
    files = ["--rag-json=out.json", "--rag-report=out.html", "--rag-cassette=tape.jsonl", "--junitxml=junit.xml"]
    before = files_in(pytester.path) | {"test_it.py", "test_rows.py", "junit.xml"}
    result = run(*MANY, "--rag-dry-run", "--rag-max-calls=0", "-rs", *files, test_it=SUITE, test_rows=ROWS)
    result.assert_outcomes(passed=1, skipped=5 + 4 + 1 + 3 + 1)
    assert (result.ret, server.calls) == (pytest.ExitCode.OK, 0)
    assert files_in(pytester.path) == before
    properties = re.findall(r'name="rag\.([^"]*)', result.text("junit.xml"))
    assert all(name.startswith("faithfulness.mean") for name in properties), "there is a score beside the gate"
    result.stdout.no_fnmatch_line("budget:*")
    result.shows(
        "ragmetrics: * dry run: nothing is asked",
        "dry run:",
        "metric                  samples  requests  cached  prompt tokens     cost",
        "(embeddings)                  *         1       0             ??  $0.0000",
        "answer_relevancy              1         1       0            ???  $0.000?",
        "faithfulness                  9        18       0          ?,???  $0.0???",
        "quoted_spans_alignment        1         0       0              0  $0.0000",
        "relevance                     9         9       0          ?,???  $0.00??",
        "total                                  29       0         ??,???  $0.0???",
        "An estimate; no request was made. *",
        "*out.html: not written, this was a dry run",
        "*out.json: not written, this was a dry run",
        "SKIPPED*test_it.py:*: dry run: 2 requests",
    )


@pytest.mark.parametrize(
    ("limits", "line"),
    [
        (["--rag-rpm=1"], "about 8 minutes at 1 request a minute"),
        (["--rag-rpm=2", "--rag-tpm=100"], "about ?? minutes at 100 tokens a minute"),
        (["--rag-rpm=60", "--rag-batch=submit"], None),
    ],
)
def test_how_long_the_limits_of_a_minute_make_it(run: RunPytest, limits: list[str], line: str | None) -> None:
    result = run("--rag-dry-run", *limits, test_it=SUITE)
    result.stdout.no_fnmatch_line("about *") if line is None else result.shows(line)


def test_what_is_forecast_is_what_is_asked(run: RunPytest, server: FakeOpenAI) -> None:
    suite = """
        def test_all():
            assert_faithful("The pump hums in May.", ["The pump hums in May."], min=0)
            assert_relevant("Does it hum?", "It hums.", min=0)
            assert_relevant("Does it hum?", "It hums.", min=0)
            assert_semantically_similar("It hums.", "It {what}.", min=0)
            assert_semantically_similar("It hums.", "It {what}.", min=0)
    """
    hums, sings = suite.format(what="hums"), suite.format(what="sings")
    forecast = run("--rag-dry-run", test_it=hums)
    run(test_it=hums).assert_outcomes(passed=1)
    calls = server.calls
    forecast.shows("(embeddings)               4         1       1  *", f"total * {calls}       2  *")
    for text, made in ((hums, 0), (sings, 1)):
        again = run("--rag-dry-run", "-rs", test_it=text)
        again.shows(f"(embeddings)               4         {made}       {2 - made}  *")
        again.shows(f"total * {made}       {6 - made}  *", "*dry run: 0 requests")
    assert server.calls == calls == 4


def test_no_key_is_needed(run: RunPytest) -> None:
    """Votes are counted in full, although an assertion may stop early."""
    suite = """
        def test_it():
            assert_relevant("Does it hum?", "It hums.", min=0.9)
            assert_answer_relevant("Does it hum?", "It hums.")
    """
    known = ["--rag-judge=openai:gpt-4o-mini", "--rag-embedder=openai:text-embedding-3-small"]
    result = run("--rag-dry-run", "--rag-votes=5", *known, test_it=suite)
    result.shows("relevance *1         5       0  *", "total *11       4  * $0.00??", skipped=1)
    run("--rag-dry-run", test_it=suite).shows("(embeddings) * unknown", "total *3       0  * unknown", skipped=1)
    result = run("--rag-dry-run", "--rag-judge=no_module:judge", "--rag-embedder=openai:text-embedding-3-small")
    result.shows("total *3       0  * $0.0000 + 2 unpriced")


def test_own_judges_and_embedders_are_not_asked(run: RunPytest) -> None:
    conftest = """
        def fails(*arguments): raise RuntimeError("I was asked")
        def pytest_ragmetrics_make_judge(config, spec): return fails if spec == "house:judge" else None
        def pytest_ragmetrics_make_embedder(config, spec): return fails if spec == "house:embedder" else None
    """
    suite = """
        from conftest import fails
        from pytest_ragmetrics.judges.judge import Judge
        class Mine(Judge):
            name = "mine"
            async def ask(self, task, *, vote=0, transport): fails()
        def test_hooks(rag_judge, rag_embedder):
            assert_answer_relevant("Does it hum?", "It hums.", judge=rag_judge, embedder=rag_embedder)
        def test_callable():
            assert_relevant("Does it hum?", "It hums.", min=1, judge=fails)
            assert_answer_relevant("Why?", "It hums so.", judge=Mine(), embedder=fails)
        def test_local(): assert_relevant("Does it hum?", "It hums.", min=1, judge="local")
    """
    own = ("--rag-judge=house:judge", "--rag-embedder=house:embedder")
    result = run("--rag-dry-run", *own, conftest=conftest, test_it=suite)
    result.shows("(embeddings)*2       0  *", "relevance*2         1       0  *unknown", skipped=3)


def test_a_recording_is_used_and_stays_as_it_is(run: RunPytest, server: FakeOpenAI) -> None:
    suite = """
        @pytest.mark.parametrize("number", range({count}))
        def test_it(number): assert_relevant(f"Does it hum {{number}}?", "It hums.", min=0)
    """
    ran = run("--rag-cassette=tape.jsonl", "--rag-cache-dir=store", test_it=suite.format(count=4))
    recorded = ran.text("tape.jsonl")
    modes = {"auto": "3         0       3", "off": "3         3       0", "refresh": "3         3       0"}
    for mode, counted in {**modes, "replay": "5         0       4"}.items():
        dry = ("--rag-dry-run", "--rag-cassette=tape.jsonl", f"--rag-cache={mode}")
        run(*dry, test_it=suite.format(count=counted[0])).shows(f"relevance        {counted}  *")
    assert (server.calls, ran.text("tape.jsonl")) == (4, recorded)
    assert not (ran.folder / ".ragmetrics").exists()


def test_fixtures_that_score_are_excused_too(run: RunPytest, server: FakeOpenAI) -> None:
    suite = """
        from pytest_ragmetrics.metrics import Relevance
        @pytest.fixture
        def score(): assert Relevance().score(user_input="Does it hum?", response="It hums.") > 7
        @pytest.fixture
        def broken(): raise RuntimeError("broken")
        def test_score(score): pass
        def test_broken(broken): pass
        def test_fails(): assert 1 == 2
    """
    run("--rag-dry-run", test_it=suite).assert_outcomes(skipped=1, errors=1, failed=1)
    assert server.calls == 0
    result = run("--rag-dry-run", "-k", "broken or fails", test_it=suite)
    result.shows("dry run: no test scored anything", failed=1, errors=1)


@pytest.mark.usefixtures("server")
@pytest.mark.slow
def test_a_crashed_worker_is_missed(run: RunPytest) -> None:
    crash = "def test_crash():\n    import os, time\n    time.sleep(1)\n    os._exit(3)\n"
    run(*ONE, "--max-worker-restart=0", "--rag-dry-run", test_it=crash).shows("1 worker crashed: *")
