"""Judged metrics in a suite: who judges, who says so, what is asked again, and how many votes make a score."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

import pytest

from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import RunPytest, Scored

#: Two requests a test.
SUITE = """
    import pytest
    from pytest_ragmetrics import assert_faithful
    from texts import SOURCE
    @pytest.mark.parametrize("minutes", ["two", "three"])
    def test_pump(minutes):
        assert_faithful(f"The pump needs {minutes} minutes to fill.", SOURCE, min=0.5)
"""
#: One request.
SHORT = """
    from pytest_ragmetrics import assert_relevant
    def test_short():
        assert_relevant("Does the pump hum?", "The pump hums.", min=0.1)
"""
RECALLED = """
    from pytest_ragmetrics import assert_context_recalled
    def test_short():
        assert_context_recalled("The pump hums.", "The pump hums.")
"""


def test_a_second_run_asks_nothing(run: RunPytest, server: FakeOpenAI, scored: Scored) -> None:
    """Header, summary and every result name the judge; calls, tokens and cost are added up, and paid for once.

    Answers are kept, not outcomes: the same answers fail a threshold that no score can reach.
    """
    args = ("--rag-judge=openai:gpt-5.4-mini", "--rag-json=out.json")
    result = run(*args, test_suite=SUITE)
    result.stdout.fnmatch_lines(
        [
            "ragmetrics: judge openai:gpt-5.4-mini, embedder auto, cache auto",
            "judge calls: 4 made (* tokens, $0.0*), 0 saved by the cache ($0.00)",
            "judged by: openai:gpt-5.4-mini",
        ]
    )
    records = [record for row in scored().values() for record in row["records"]]
    assert {record["judge"] for record in records} == {"openai:gpt-5.4-mini"}
    usages = [record["usage"] for record in records]
    assert [(usage["calls"], usage["cached_calls"]) for usage in usages] == [(2, 0), (2, 0)]
    tokens = sum(usage["prompt_tokens"] + usage["completion_tokens"] for usage in usages)
    assert f"({tokens:,} tokens" in result.stdout.str()
    result = run(*args)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["judge calls: 0 made (0 tokens, *), 4 saved by the cache (*)"])
    run(*args, test_suite=SUITE.replace("min=0.5", "min=1.01")).assert_outcomes(failed=2)
    assert server.calls == 4


def test_the_heuristic_is_called_by_its_name_everywhere(run: RunPytest, no_provider: None, scored: Scored) -> None:
    """The local judge is marked as a heuristic in header, results and summary, and needs no provider."""
    result = run("--rag-judge=local", "--rag-embedder=local", "--rag-json=out.json", test_suite=SUITE)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "ragmetrics: judge local (heuristic), embedder local (heuristic), cache auto",
            "judged by: local (heuristic)",
        ]
    )
    assert [record["judge"] for row in scored().values() for record in row["records"]] == ["local (heuristic)"] * 2


def test_without_a_judge_the_ways_on_are_named(run: RunPytest, no_provider: None) -> None:
    """Where no provider is set up, a judged test fails and says what to do; tests that need no judge run.

    A fixture shows what is missing alone, not under the code that looked for it.
    """
    result = run(
        test_short=SHORT,
        test_fixtures="""
            from pytest_ragmetrics import assert_quoted_spans_aligned
            from texts import SOURCE, TRUE
            def test_judge(rag_judge): ...
            def test_embedder(rag_embedder): ...
            def test_quotes():
                assert_quoted_spans_aligned(TRUE, SOURCE)
        """,
    )
    result.assert_outcomes(passed=1, failed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "E *JudgeNotConfiguredError: this metric needs a judge*_API_KEY*--rag-cassette=FILE*--rag-judge=local*",
            "E *JudgeNotConfiguredError: this metric needs an embedder, *",
            "E *JudgeNotConfiguredError: this metric needs a judge*_API_KEY*--rag-cassette=FILE*--rag-judge=local*",
        ]
    )
    result.stdout.no_fnmatch_line("*specs.py*")


def test_an_explicit_provider_names_its_missing_key(run: RunPytest, no_provider: None) -> None:
    """A judge that was asked for by name and has no key fails with the variable to set."""
    result = run("--rag-judge=openai:gpt-mine", test_short=SHORT)
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


def test_a_hook_that_makes_no_judge_fails_the_test(run: RunPytest, no_provider: None) -> None:
    """A name that no hook makes anything of fails the test that needs the judge with what a spec may be."""
    result = run(
        "--rag-judge=house",
        conftest="def pytest_ragmetrics_make_judge(config, spec): return None",
        test_short=SHORT,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *'house' is not one of auto, local, openai:MODEL, *"])


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


def test_metrics_are_asked_from_anywhere(run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester) -> None:
    """Plain tests, threads and tests of both asynchronous plugins score, and leave nothing open at the end."""
    server.latency = 0.05
    # In development mode asyncio logs each step of a task that takes a tenth of a second, as on a busy machine.
    pytester.makeconftest("""
        import logging, pytest
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        @pytest.fixture
        def anyio_backend(): return 'asyncio'
    """)
    pytester.makepyfile(**{f"test_{plugin}": EVERYWHERE.replace("MARKED", plugin) for plugin in ("asyncio", "anyio")})
    plugins = ["-p", "ragmetrics", "-p", "anyio", "-p", "asyncio", "-o", "asyncio_default_fixture_loop_scope=function"]
    result = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-m", "pytest", "--color=no", *plugins],
        capture_output=True,
        text=True,
        check=False,
        cwd=pytester.path,
    )
    assert "12 passed" in result.stdout
    assert result.stderr == ""
    assert server.duplicates == 0


#: What determines an answer makes a request of its own; what only says how to get it does not.
ASKED_AGAIN = (
    (["--rag-judge=openai:gpt-other"], 1),
    (["-o", "rag_prompts=prompts"], 1),
    (["-o", "rag_cache_salt=mine"], 1),
    (["--rag-cache=refresh"], 1),
    (["--rag-cache-dir=elsewhere"], 1),
    (["--rag-cache=off"], 1),
    (["--rag-cache=replay"], 0),
    (["--rag-timeout=9", "--rag-retries=1", "--rag-concurrency=2", "--rag-json=out.json"], 0),
)


def test_what_is_asked_again(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is who pays, at which address, a part of what is asked; a model of an unknown price costs no zero."""
    folder = pytester.mkdir("prompts")
    own = (files("pytest_ragmetrics") / "prompts" / "rate_relevance.md").read_text("utf-8")
    (folder / "rate_relevance.md").write_text(f"{own}\nBe strict.\n", "utf-8")
    result = run("--rag-judge=openai:gpt-one", test_short=SHORT)
    result.stdout.fnmatch_lines(["judge calls: 1 made (* tokens, price unknown), *"])
    calls = server.calls
    for change, asked in ASKED_AGAIN:
        run("--rag-judge=openai:gpt-one", *change).assert_outcomes(passed=1)
        calls += asked
        assert server.calls == calls, change
    # Who wants other reasons asks for another answer.
    for which in ("all", "negative", "negative"):
        run("--rag-judge=openai:gpt-one", f"--rag-reasons={which}", test_short=RECALLED).assert_outcomes(passed=1)
    assert server.calls == calls + 2
    run("--rag-judge=openai:gpt-one", test_short=SHORT)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    run("--rag-judge=openai:gpt-one").assert_outcomes(passed=1)


def test_many_ask_at_once_and_one_pays(run: RunPytest, server: FakeOpenAI) -> None:
    """Two metrics, eight coroutines, four threads and two workers that ask the same at once make one request."""
    server.latency = 0.3
    result = run(
        "-p",
        "xdist",
        "-n2",
        test_crowd="""
            import asyncio
            import pathlib
            import time
            from concurrent.futures import ThreadPoolExecutor
            import pytest
            from pytest_ragmetrics.judges.tasks import RateRelevance
            from pytest_ragmetrics.metrics.judged import JudgedMetric

            class First(JudgedMetric):
                name = "first"
                async def judged(self, sample, ask):
                    rating = await ask(RateRelevance(question=sample.user_input, response=sample.response))
                    return ask.result(rating.value, reason=rating.reason)

            class Second(First):
                name = "second"

            async def crowd():
                metrics = [metric() for metric in (First, Second) for _ in range(8)]
                asked = {"user_input": "Humming?", "response": "Humming."}
                return await asyncio.gather(*(metric.ascore(**asked) for metric in metrics))

            @pytest.mark.parametrize("member", range(2))
            def test_it(member, tmp_path_factory):
                meeting_point = tmp_path_factory.getbasetemp().parent
                (meeting_point / f"{member}.here").touch()
                while len(list(meeting_point.glob("*.here"))) < 2:
                    time.sleep(0.01)
                with ThreadPoolExecutor(4) as threads:
                    jobs = [threads.submit(asyncio.run, crowd()) for _ in range(4)]
                assert {score.value for job in jobs for score in job.result()} == {1.0}
        """,
    )
    result.assert_outcomes(passed=2)
    assert server.calls == 1
    result.stdout.fnmatch_lines(["judge calls: 1 made (*), 127 saved by the cache (*)"])


def test_a_cache_that_cannot_be_used_is_one_warning(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester
) -> None:
    """Where nothing can be kept on disk the run says so once, is green, and still asks nothing twice."""
    (pytester.path / "blocked").touch()
    result = run("-W", "default", "--rag-cache-dir=blocked", test_suite=SUITE, test_again=SUITE)
    result.assert_outcomes(passed=4, warnings=1)
    result.stdout.fnmatch_lines(["*blocked: the cache cannot be used: *; this run goes on without a local cache"])
    assert server.calls == 4


def test_replay_shows_what_changed_in_a_prompt(run: RunPytest, server: FakeOpenAI) -> None:
    """A request that was never recorded fails its test with the word that differs from the nearest recorded one."""
    run(test_suite=SUITE).assert_outcomes(passed=2)
    result = run("--rag-cache=replay", test_suite=SUITE.replace('["two", "three"]', '["two", "seven"]'))
    result.assert_outcomes(passed=1, failed=1)
    assert server.calls == 4
    result.stdout.fnmatch_lines(
        [
            "E *CacheMissError: *never recorded: list_claims (openai:*); record it with --rag-cache=auto",
            "E *-The pump needs three minutes to fill.",
            "E *+The pump needs seven minutes to fill.",
        ]
    )


VOTES = """
    import pytest
    from pytest_ragmetrics import assert_relevant
    from pytest_ragmetrics.metrics import Relevance

    def test_option():
        assert_relevant("Does it hum?", "It hums.", min=0.1)

    @pytest.mark.rag_votes(1)
    def test_marker():
        assert_relevant("Does it hum?", "It hums, one.", min=0.1)

    @pytest.mark.rag_votes(1)
    def test_argument():
        assert_relevant("Does it hum?", "It hums, five.", min=1.0, votes=5)

    def test_plain():
        assert Relevance().score(user_input="Does it hum?", response="It hums, plainly.") >= 0.1
"""


def rating(step: int) -> str:
    """Return a reply that rates with this step."""
    return f'{{"reason": "Because.", "rating": {step}}}'


def test_the_argument_wins_over_the_marker_and_that_over_the_option(
    run: RunPytest, server: FakeOpenAI, scored: Scored
) -> None:
    """Each test has the number of votes of whoever is nearest to it, and asks for no more than it takes."""
    server.answer = lambda _: rating(4)
    run("--strict-markers", "--rag-votes=3", "--rag-json=out.json", test_it=VOTES).assert_outcomes(passed=4)
    votes = {name.partition("::")[2]: len(row["records"][0]["samples"]) for name, row in scored().items()}
    assert votes == {"test_option": 1, "test_marker": 0, "test_argument": 5, "test_plain": 3}
    assert server.calls == 10


def test_votes_are_kept_one_by_one(run: RunPytest, server: FakeOpenAI) -> None:
    """A second run with more votes pays for the further ones only."""
    server.answer = lambda _: rating(4)
    suite = VOTES[: VOTES.index("@pytest")].replace("min=0.1", "min=1.0")
    calls = []
    for votes in (1, 3, 3, 2):
        run(f"--rag-votes={votes}", test_it=suite).assert_outcomes(passed=1)
        calls.append(server.calls)
    assert calls == [1, 3, 3, 3]
    assert [request.body["temperature"] for request in server.requests] == [0, 1, 1]


def test_a_table_is_voted_on(run: RunPytest, server: FakeOpenAI) -> None:
    """evaluate() takes as many votes as its argument says, else as the run."""
    server.answer = lambda _: rating(4)
    run(
        "--rag-votes=2",
        test_it="""
            from pytest_ragmetrics import evaluate

            def test_table():
                rows = [{"question": "Does it hum?", "answer": f"It hums {n}."} for n in range(2)]
                for table, votes in ((evaluate(rows, ["relevance"]), 2), (evaluate(rows, ["relevance"], votes=3), 3)):
                    assert [len(row.results["relevance"].samples) for row in table.rows] == [votes, votes]
        """,
    ).assert_outcomes(passed=1)
    assert server.calls == 6
