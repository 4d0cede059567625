"""Judged metrics in a suite: who judges, who says so, and from where they may be asked."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import RunPytest, Scored

SUITE = """
    from pytest_ragmetrics import assert_faithful
    from texts import SOURCE
    def test_pump():
        assert_faithful("The pump needs two minutes to fill.", SOURCE, min=0.8)
"""


def test_the_run_says_what_judging_took(run: RunPytest, server: FakeOpenAI, scored: Scored) -> None:
    """Header, summary and every result name the judge; calls, tokens and cost are added up."""
    result = run("--rag-judge=openai:gpt-5.4-mini", "--rag-json=out.json", test_suite=SUITE)
    result.stdout.fnmatch_lines(
        [
            "ragmetrics: judge openai:gpt-5.4-mini, embedder auto, cache auto",
            "faithfulness  1  1.000  1.000        0         0",
            "judge calls: 2 made (* tokens, $0.0*), 0 saved by the cache ($0.0000)",
            "judged by: openai:gpt-5.4-mini",
        ]
    )
    (row,) = scored().values()
    (record,) = row["records"]
    assert record["judge"] == "openai:gpt-5.4-mini"
    usage = record["usage"]
    assert (usage["calls"], usage["cached_calls"]) == (2, 0)
    assert f"({usage['prompt_tokens'] + usage['completion_tokens']} tokens" in result.stdout.str()


def test_an_unknown_price_is_unknown(run: RunPytest, server: FakeOpenAI) -> None:
    """A model without a known price costs an unknown sum, not nothing."""
    result = run("--rag-judge=openai:gpt-mine", test_suite=SUITE)
    result.stdout.fnmatch_lines(["judge calls: 2 made (* tokens, price unknown), *"])


def test_the_heuristic_is_called_by_its_name_everywhere(run: RunPytest, no_provider: None, scored: Scored) -> None:
    """The local judge is marked as a heuristic in header, results and summary, and needs no provider."""
    result = run("--rag-judge=local", "--rag-embedder=local", "--rag-json=out.json", test_suite=SUITE)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "ragmetrics: judge local (heuristic), embedder local (heuristic), cache auto",
            "judged by: local (heuristic)",
        ]
    )
    (row,) = scored().values()
    assert [record["judge"] for record in row["records"]] == ["local (heuristic)"]


def test_without_a_judge_the_ways_on_are_named(run: RunPytest, no_provider: None, scored: Scored) -> None:
    """Where no provider is set up, a judged test fails and says what to do; tests that need no judge run."""
    result = run(
        "--rag-json=out.json",
        test_suite=SUITE,
        test_quotes="""
            from pytest_ragmetrics import assert_quoted_spans_aligned
            from texts import SOURCE, TRUE
            def test_quotes():
                assert_quoted_spans_aligned(TRUE, SOURCE)
        """,
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["E *JudgeNotConfiguredError: this metric needs a judge*_API_KEY*--rag-cassette=FILE*--rag-judge=local*"]
    )
    assert scored()["test_suite.py::test_pump"]["outcome"] == "failed"


@pytest.mark.parametrize("what", ["judge", "embedder"])
def test_who_is_missing_is_told_of_without_the_way_to_it(run: RunPytest, no_provider: None, what: str) -> None:
    """The fixture is where every suite begins: what is missing stands there alone, not under the code that looked."""
    result = run(test_fixture=f"def test_it(rag_{what}): ...")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"E *JudgeNotConfiguredError: this metric needs a* {what}, *"])
    result.stdout.no_fnmatch_line("*specs.py*")


def test_an_explicit_provider_names_its_missing_key(run: RunPytest, no_provider: None) -> None:
    """A judge that was asked for by name and has no key fails with the variable to set."""
    result = run("--rag-judge=openai:gpt-mine", test_suite=SUITE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *openai:gpt-mine needs a key: set OPENAI_API_KEY, or OPENAI_BASE_URL *"])


def test_the_fixtures_hand_out_what_the_run_uses(run: RunPytest, server: FakeOpenAI) -> None:
    """rag_judge, rag_embedder and rag_cache are those of the run: what they do is cached, limited and counted."""
    result = run(
        "--rag-judge=openai:gpt-mine",
        "--rag-embedder=openai:vectors",
        test_fixtures="""
            from pytest_ragmetrics.metrics import AnswerRelevancy, Faithfulness
            from texts import SOURCE
            def test_judge(rag_judge, rag_cache):
                assert rag_judge.name == "openai:gpt-mine"
                for _ in range(2):
                    score = Faithfulness(judge=rag_judge).score(response="Open the valve.", retrieved_contexts=SOURCE)
                    assert score >= 0.8
                assert (rag_cache.judged.calls, rag_cache.judged.cached) == (2, 2)
            def test_embedder(rag_judge, rag_embedder, rag_cache):
                assert rag_embedder.model == "vectors"
                metric = AnswerRelevancy(judge=rag_judge, embedder=rag_embedder)
                assert metric.score(user_input="What about the valve?", response="Open the valve.") > 0.5
                assert rag_cache.embedded.calls == 1
        """,
    )
    result.assert_outcomes(passed=2)
    assert [request.body["model"] for request in server.requests] == ["gpt-mine"] * 3 + ["vectors"]


def test_a_marker_names_the_judge_of_a_test(run: RunPytest, server: FakeOpenAI, scored: Scored) -> None:
    """The marker nearest to a test wins over the command line, in metrics and fixture alike, for that test alone."""
    run(
        "--rag-judge=openai:of-the-run",
        "--rag-json=out.json",
        test_marked="""
            import pytest
            from pytest_ragmetrics import assert_relevant
            def check(rag_judge, name):
                assert rag_judge.name == name
                assert_relevant("Is the pump blue?", "The pump is blue.", min=0.1)
            @pytest.mark.rag_judge("openai:of-the-class")
            class TestMarked:
                def test_class(self, rag_judge):
                    check(rag_judge, "openai:of-the-class")
                @pytest.mark.rag_judge("local")
                def test_own(self, rag_judge):
                    check(rag_judge, "local (heuristic)")
            def test_plain(rag_judge):
                check(rag_judge, "openai:of-the-run")
        """,
    ).assert_outcomes(passed=3)
    assert [request.body["model"] for request in server.requests] == ["of-the-class", "of-the-run"]
    judges = [record["judge"] for row in scored().values() for record in row["records"]]
    assert judges == ["openai:of-the-class", "local (heuristic)", "openai:of-the-run"]


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        (
            "'gpt-5'",
            "'gpt-5' is none of auto, local, openai:MODEL, anthropic:MODEL, nli:MODEL_OR_FOLDER, MODULE:FACTORY",
        ),
        ("", "it takes one spec"),
        ("'local', 'auto'", "it takes one spec"),
        ("3", "it takes one spec"),
    ],
)
def test_a_wrong_marker_is_a_usage_error(run: RunPytest, no_provider: None, marker: str, said: str) -> None:
    """A marker that names no judge ends the run with status 4 before any test, naming the test and the marker."""
    result = run(
        test_wrong=f"""
            import pytest
            def test_first():
                pass
            @pytest.mark.rag_judge({marker})
            def test_it():
                pass
        """
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: test_wrong.py::test_it: marker rag_judge({marker}): {said}; write *"])
    result.stdout.no_fnmatch_line("*passed*")


def test_a_wrong_marker_is_told_by_workers_too(run: RunPytest, no_provider: None) -> None:
    """Under xdist no test runs either, and the message is there in place of an internal error."""
    result = run(
        "-p",
        "xdist",
        "-n2",
        test_wrong="""
            import pytest
            def test_first():
                pass
            @pytest.mark.rag_judge("gpt-5")
            def test_it():
                pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["ERROR: test_wrong.py::test_it: marker rag_judge('gpt-5'): 'gpt-5' is none of *"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_hooks_make_judge_and_embedder(run: RunPytest, no_provider: None, scored: Scored) -> None:
    """A conftest may make the judge and the embedder of any spec, also of names that only it knows."""
    result = run(
        "--rag-judge=house",
        "-o",
        "rag_embedder=house-vectors",
        "--rag-json=out.json",
        conftest="""
            import json

            class Letters:
                def embed(self, texts):
                    return [[float(text.count(letter)) for letter in "aeiou"] for text in texts]

            def pytest_ragmetrics_make_judge(config, spec):
                assert config.getoption("rag_judge") == "house"
                if spec == "house":
                    question = {"question": "Is the pump blue?", "noncommittal": False}
                    return lambda prompt: json.dumps({"questions": [question]})

            def pytest_ragmetrics_make_embedder(config, spec):
                return Letters() if spec == "house-vectors" else None
        """,
        test_hooks="""
            import pytest
            from pytest_ragmetrics import assert_answer_relevant
            def test_it():
                assert_answer_relevant("Is the pump blue?", "Yes, it is blue.", strictness=1, min=0.99)
            @pytest.mark.rag_judge("local")
            def test_left_to_the_plugin(rag_judge):
                assert rag_judge.name == "local (heuristic)"
        """,
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["ragmetrics: judge house, embedder house-vectors, cache auto", "judged by: house, house-vectors"]
    )


def test_a_hook_that_makes_no_judge_is_told_so(run: RunPytest, no_provider: None) -> None:
    """A name that no hook makes anything of fails the test that needs the judge with what a spec may be."""
    result = run(
        "--rag-judge=house",
        conftest="def pytest_ragmetrics_make_judge(config, spec): return None",
        test_suite=SUITE,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *'house' is none of auto, local, openai:MODEL, *"])


EVERYWHERE = """
    import asyncio
    from concurrent.futures import ThreadPoolExecutor
    import pytest
    from pytest_ragmetrics import assert_faithful
    from pytest_ragmetrics.metrics import Faithfulness
    from texts import SOURCE

    def score(n):
        return assert_faithful(f"The pump needs {n} minutes to fill.", SOURCE, min=0.5)

    async def ascore(n):
        scoring = Faithfulness().ascore(response=f"The pump needs {n} minutes.", retrieved_contexts=SOURCE)
        assert await scoring > 0.5

    def test_plain():
        score(1)

    def test_threads():
        with ThreadPoolExecutor(4) as threads:
            assert len(list(threads.map(score, range(4)))) == 4

    def test_a_loop_of_its_own():
        async def both():
            score(2)
            await asyncio.gather(*(ascore(n) for n in range(4)))
        asyncio.run(both())

    @pytest.mark.MARKED
    async def test_async():
        await ascore(3)
        await asyncio.gather(*(ascore(n) for n in range(8)))

    @pytest.mark.MARKED
    async def test_sync_inside_a_running_loop():
        score(4)

    @pytest.mark.MARKED
    async def test_timeout_of_the_test_itself():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(ascore("endless"), 0.01)
        await ascore(5)
"""


@pytest.mark.parametrize(
    ("plugin", "args"),
    [("asyncio", ["-p", "asyncio", "-o", "asyncio_default_fixture_loop_scope=function"]), ("anyio", ["-p", "anyio"])],
)
def test_metrics_are_asked_from_anywhere(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, plugin: str, args: list[str]
) -> None:
    """Plain tests, threads and tests of both asynchronous plugins score, and leave nothing open at the end."""
    server.latency = 0.05
    pytester.makeconftest("import pytest\n@pytest.fixture\ndef anyio_backend(): return 'asyncio'")
    pytester.makepyfile(test_everywhere=EVERYWHERE.replace("MARKED", plugin))
    result = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-m", "pytest", "-p", "ragmetrics", "--color=no", *args],
        capture_output=True,
        text=True,
        check=False,
        cwd=pytester.path,
    )
    assert "6 passed" in result.stdout
    assert result.stderr == ""
    assert server.duplicates == 0
