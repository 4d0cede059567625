"""An answer is paid for once: what a run asks again, and what it does not."""

from __future__ import annotations

import sys
from importlib.resources import files

import pytest

from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import RunPytest

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
#: A judge with a sampling parameter that the environment says.
FACTORY = """
    import os
    from pytest_ragmetrics.judges.openai import OpenAIJudge
    def judge():
        return OpenAIJudge("gpt-mine", parameters={"top_p": float(os.environ.get("TOP_P", "1"))})
"""


def test_a_second_run_asks_nothing(run: RunPytest, server: FakeOpenAI) -> None:
    """A run that asks what was asked before makes no request, and says what that saved."""
    run(test_suite=SUITE).assert_outcomes(passed=2)
    assert server.calls == 4
    result = run()
    result.assert_outcomes(passed=2)
    assert server.calls == 4
    result.stdout.fnmatch_lines(["judge calls: 0 made (0 tokens, *), 4 saved by the cache (*)"])


def test_a_changed_threshold_asks_nothing(run: RunPytest, server: FakeOpenAI) -> None:
    """Answers are kept, not outcomes: the same answers fail a threshold that no score can reach."""
    run(test_suite=SUITE).assert_outcomes(passed=2)
    run(test_suite=SUITE.replace("min=0.5", "min=1.01")).assert_outcomes(failed=2)
    assert server.calls == 4


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        (["--rag-judge=openai:gpt-other"], 1),
        (["-o", "rag_prompts=prompts"], 1),
        (["-o", "rag_cache_salt=mine"], 1),
        (["--rag-cache=refresh"], 1),
        (["--rag-cache-dir=elsewhere"], 1),
        (["--rag-cache=off"], 1),
        (["--rag-cache=replay"], 0),
        (["--rag-timeout=9", "--rag-retries=1", "--rag-concurrency=2", "--rag-json=out.json"], 0),
    ],
)
def test_what_is_asked_again(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, change: list[str], asked: int
) -> None:
    """What determines an answer makes a request of its own; what only says how to get it does not."""
    folder = pytester.mkdir("prompts")
    own = (files("pytest_ragmetrics") / "prompts" / "rate_relevance.md").read_text("utf-8")
    (folder / "rate_relevance.md").write_text(f"{own}\nBe strict.\n", "utf-8")
    run("--rag-judge=openai:gpt-one", test_short=SHORT).assert_outcomes(passed=1)
    run("--rag-judge=openai:gpt-one", *change).assert_outcomes(passed=1)
    assert server.calls == 1 + asked


def test_another_sampling_parameter_is_another_request(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge of MODULE:FACTORY that samples differently does not get the answers of the one before."""
    pytester.makepyfile(mine=FACTORY)
    for top_p in ("0.5", "0.5", "0.9"):
        monkeypatch.setenv("TOP_P", top_p)
        monkeypatch.delitem(sys.modules, "mine", raising=False)
        run("--rag-judge=mine:judge", test_short=SHORT).assert_outcomes(passed=1)
    assert [request.body["top_p"] for request in server.requests] == [0.5, 0.9]


def test_another_key_is_the_same_request(run: RunPytest, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who pays, and at which address, is no part of what is asked."""
    run(test_short=SHORT).assert_outcomes(passed=1)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    run().assert_outcomes(passed=1)
    assert server.calls == 1


def test_further_votes_are_further_requests(run: RunPytest, server: FakeOpenAI) -> None:
    """More votes on a question keep the first and ask for the others."""
    suite = """
        from pytest_ragmetrics import assert_aspect
        def test_it():
            assert_aspect({"response": "It hums."}, "kind", definition="Is it kind?", strictness=%d)
    """
    calls = []
    for votes in (1, 3, 3):
        run(test_votes=suite % votes).assert_outcomes(passed=1)
        calls.append(server.calls)
    assert calls == [1, 3, 3]


def test_many_ask_at_once_and_one_pays(run: RunPytest, server: FakeOpenAI) -> None:
    """Two metrics, eight coroutines, four threads and four workers that ask the same at once make one request."""
    server.latency = 0.5
    result = run(
        "-p",
        "xdist",
        "-n4",
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

            @pytest.mark.parametrize("member", range(4))
            def test_it(member, tmp_path_factory):
                meeting_point = tmp_path_factory.getbasetemp().parent
                (meeting_point / f"{member}.here").touch()
                while len(list(meeting_point.glob("*.here"))) < 4:
                    time.sleep(0.01)
                with ThreadPoolExecutor(4) as threads:
                    jobs = [threads.submit(asyncio.run, crowd()) for _ in range(4)]
                assert {score.value for job in jobs for score in job.result()} == {1.0}
        """,
    )
    result.assert_outcomes(passed=4)
    assert server.calls == 1
    result.stdout.fnmatch_lines(["judge calls: 1 made (*), 255 saved by the cache (*)"])


def test_a_cache_that_cannot_be_used_is_one_warning(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester
) -> None:
    """Where nothing can be kept on disk the run says so once, is green, and still asks nothing twice."""
    (pytester.path / "blocked").touch()
    result = run("-W", "default", "--rag-cache-dir=blocked", test_suite=SUITE, test_again=SUITE)
    result.assert_outcomes(passed=4, warnings=1)
    result.stdout.fnmatch_lines(["*blocked: the cache cannot be used: *; this run goes on without a local cache"])
    assert server.calls == 4


def test_a_broken_cache_is_an_error_in_replay(run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester) -> None:
    """Replaying from a database that is none fails the tests that need it, naming the folder."""
    (pytester.mkdir("broken") / "cache.db").write_bytes(b"no database" * 100)
    result = run("--rag-cache-dir=broken", "--rag-cache=replay", test_suite=SUITE)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["E *CacheUnavailableError: *broken: the cache cannot be used: *"])
    assert server.calls == 0


def test_replay_shows_what_changed_in_a_prompt(run: RunPytest, server: FakeOpenAI) -> None:
    """A request that was never recorded fails its test with the word that differs from the nearest recorded one."""
    run(test_suite=SUITE).assert_outcomes(passed=2)
    result = run("--rag-cache=replay", test_suite=SUITE.replace('["two", "three"]', '["two", "seven"]'))
    result.assert_outcomes(passed=1, failed=1)
    assert server.calls == 4
    result.stdout.fnmatch_lines(
        [
            "E *CacheMissError: *never recorded: list_claims (openai:gpt-5.4-mini); record it with --rag-cache=auto",
            "E *-The pump needs three minutes to fill.",
            "E *+The pump needs seven minutes to fill.",
        ]
    )
