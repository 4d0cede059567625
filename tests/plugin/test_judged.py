"""Judged metrics in a suite: who judges, who says so, what is asked again, and how many votes make a score."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

import pytest

from tests.fake_answers import answer_sensibly
from tests.fake_openai import Body, FakeOpenAI, Reply, silent
from tests.plugin.conftest import MANY, RunPytest, write_files

#: Two requests a test.
SUITE = """
    @pytest.mark.parametrize("minutes", ["two", "three"])
    def test_pump(minutes): assert_faithful(f"The pump needs {minutes} minutes to fill.", SOURCE, min=0.5)
"""
#: One request.
SHORT = """
    def test_short(): assert_relevant("Does the pump hum?", "The pump hums.", min=0.1)
"""


def test_a_second_run_asks_nothing(run: RunPytest, server: FakeOpenAI) -> None:
    args = ("--rag-judge=openai:gpt-5.4-mini", "--rag-json=out.json")
    result = run(*args, test_suite=SUITE)
    records = [record for row in result.tests.values() for record in row["records"]]
    assert {record["judge"] for record in records} == {"openai:gpt-5.4-mini"}
    usages = [record["usage"] for record in records]
    assert [(usage["calls"], usage["cached_calls"]) for usage in usages] == [(2, 0), (2, 0)]
    tokens = sum(usage["prompt_tokens"] + usage["completion_tokens"] for usage in usages)
    result.shows(
        "ragmetrics: judge openai:gpt-5.4-mini, embedder auto, cache auto",
        f"judge calls: 4 made ({tokens:,} tokens, $0.0*), 0 saved by the cache ($0.00)",
        "judged by: openai:gpt-5.4-mini",
    )
    run(*args).shows("judge calls: 0 made (0 tokens, *), 4 saved by the cache (*)", passed=2)
    run(*args, test_suite=SUITE.replace("min=0.5", "min=1.01")).assert_outcomes(failed=2)
    result = run(*args, "--rag-cache=replay", test_suite=SUITE.replace('"three"', '"seven"'))
    result.assert_outcomes(passed=1, failed=1)
    changed = ["E *-The pump needs three minutes to fill.", "E *+The pump needs seven minutes to fill."]
    result.shows("E *CacheMissError: *never recorded: list_claims (openai:*", *changed)
    assert server.calls == 4


def test_without_a_judge_the_ways_on_are_named(run: RunPytest) -> None:
    test = """
        def test_judge(rag_judge): ...
        def test_embedder(rag_embedder): ...
        def test_quotes(): assert_quoted_spans_aligned(TRUE, SOURCE)
    """
    result = run(test_short=SHORT, test_fixtures=test)
    result.assert_outcomes(passed=1, failed=1, errors=2)
    missing = "*JudgeNotConfiguredError: this metric needs a judge*_API_KEY*--rag-cassette=FILE*--rag-judge=local*"
    embedder = "*JudgeNotConfiguredError: this metric needs an embedder, *"
    result.shows(missing, embedder, missing)
    result.stdout.no_fnmatch_line("*specs.py*")


def test_the_fixtures_hand_out_what_the_run_uses(run: RunPytest, server: FakeOpenAI) -> None:
    test = """
        from pytest_ragmetrics.metrics import AnswerRelevancy, Faithfulness
        def test_judge(rag_judge, rag_cache):
            for _ in range(2):
                score = Faithfulness(judge=rag_judge).score(response="Open the valve.", retrieved_contexts=SOURCE)
                assert score >= 0.8
            assert (rag_cache.judged.calls, rag_cache.judged.cached) == (2, 2)
        def test_embedder(rag_judge, rag_embedder, rag_cache):
            metric = AnswerRelevancy(judge=rag_judge, embedder=rag_embedder)
            assert metric.score(user_input="What about the valve?", response="Open the valve.") > 0.5
            assert rag_cache.embedded.calls == 1
    """
    run("--rag-judge=openai:gpt-mine", "--rag-embedder=openai:vectors", test_fixtures=test).assert_outcomes(passed=2)
    assert [request.body["model"] for request in server.requests] == ["gpt-mine"] * 3 + ["vectors"]


def test_a_marker_names_the_judge_of_a_test(run: RunPytest, server: FakeOpenAI) -> None:
    test = """
        def check(rag_judge, name):
            assert rag_judge.name == name
            assert_relevant("Is the pump blue?", "The pump is blue.", min=0.1)
        @pytest.mark.rag_judge("openai:of-the-class")
        class TestMarked:
            def test_class(self, rag_judge): check(rag_judge, "openai:of-the-class")
            @pytest.mark.rag_judge("local")
            def test_own(self, rag_judge): check(rag_judge, "local (heuristic)")
        def test_plain(rag_judge): check(rag_judge, "openai:of-the-run")
    """
    ran = run("--rag-judge=openai:of-the-run", "--rag-json=out.json", test_marked=test)
    ran.assert_outcomes(passed=3)
    assert [request.body["model"] for request in server.requests] == ["of-the-class", "of-the-run"]
    judges = [record["judge"] for row in ran.tests.values() for record in row["records"]]
    assert judges == ["openai:of-the-class", "local (heuristic)", "openai:of-the-run"]


def test_hooks_make_judge_and_embedder(run: RunPytest) -> None:
    conftest = """
        import json
        class Letters:
            def embed(self, texts): return [[float(text.count(letter)) for letter in "aeiou"] for text in texts]
        def pytest_ragmetrics_make_judge(config, spec):
            assert config.getoption("rag_judge") == "house"
            if spec == "house":
                question = {"question": "Is the pump blue?", "noncommittal": False}
                return lambda prompt: json.dumps({"questions": [question]})
        def pytest_ragmetrics_make_embedder(config, spec): return Letters() if spec == "house-vectors" else None
    """
    test = """
        def test_it(): assert_answer_relevant("Is the pump blue?", "Yes, it is blue.", strictness=1, min=0.99)
        @pytest.mark.rag_judge("local")
        def test_left_to_the_plugin(rag_judge): assert rag_judge.name == "local (heuristic)"
        def test_of_no_hook(): assert_relevant("Is the pump blue?", "Yes.", min=0, judge="home")
    """
    options = ("--rag-judge=house", "-o", "rag_embedder=house-vectors")
    result = run(*options, conftest=conftest, test_hooks=test)
    result.assert_outcomes(passed=2, failed=1)
    header = "ragmetrics: judge house, embedder house-vectors, cache auto"
    problem = "E *'home' is not one of auto, local, openai:MODEL, *"
    result.shows(header, problem, "judged by: house, house-vectors")


EVERYWHERE = """
    import asyncio
    from concurrent.futures import ThreadPoolExecutor
    from pytest_ragmetrics.metrics import Faithfulness
    def score(n): return assert_faithful(f"The pump needs {n} minutes to fill.", SOURCE, min=0.5)
    async def ascore(n):
        scoring = Faithfulness().ascore(response=f"The pump needs {n} minutes.", retrieved_contexts=SOURCE)
        assert await scoring > 0.5
"""
PLAIN = """
    def test_plain(): score(1)
    def test_threads():
        with ThreadPoolExecutor(4) as threads:
            assert len(list(threads.map(score, range(4)))) == 4
    def test_a_loop_of_its_own():
        async def both():
            score(2)
            await asyncio.gather(*(ascore(n) for n in range(4)))
        asyncio.run(both())
"""
MARKED = """
    @pytest.mark.MARKED
    async def test_async():
        await ascore(3)
        await asyncio.gather(*(ascore(n) for n in range(8)))
    @pytest.mark.MARKED
    async def test_sync_inside_a_running_loop(): score(4)
    @pytest.mark.MARKED
    async def test_timeout_of_the_test_itself():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(ascore("endless"), 0.01)
        await ascore(5)
"""


@pytest.mark.slow
def test_metrics_are_asked_from_anywhere(run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester) -> None:
    server.latency = 0.05
    # In development mode asyncio logs each step of a task that takes a tenth of a second, as on a busy machine.
    conftest = """
        import logging, pytest
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        @pytest.fixture
        def anyio_backend(): return 'asyncio'
    """
    suites = {f"test_{of}": EVERYWHERE + MARKED.replace("MARKED", of) for of in ("asyncio", "anyio")}
    write_files(pytester.path, conftest=conftest, test_plain=EVERYWHERE + PLAIN, **suites)
    plugins = ["-p", "ragmetrics", "-p", "anyio", "-p", "asyncio", "-o", "asyncio_default_fixture_loop_scope=function"]
    command = [sys.executable, "-X", "dev", "-W", "error", "-m", "pytest", "--color=no", *plugins]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=pytester.path)
    assert "9 passed" in result.stdout
    assert (result.stderr, server.duplicates) == ("", 0)


#: What determines an answer makes a request of its own; what only says how to get it does not.
ASKED_AGAIN = (
    (["--rag-judge=openai:gpt-other"], 1),
    (["-o", "rag_prompts=prompts"], 1),
    (["-o", "rag_cache_salt=mine"], 1),
    (["--rag-reasons=negative"], 1),
    (["--rag-cache=refresh"], 1),
    (["--rag-cache-dir=elsewhere"], 1),
    (["--rag-cache=off"], 1),
    (["--rag-cache=replay"], 0),
    (["--rag-timeout=9", "--rag-retries=1", "--rag-concurrency=2", "--rag-json=out.json"], 0),
)


def test_what_is_asked_again(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = """
        def test_short(): assert_context_recalled("The pump hums.", "The pump hums.")
    """
    own = (files("pytest_ragmetrics") / "judges" / "prompts" / "verify_claims.md").read_text("utf-8")
    (pytester.mkdir("prompts") / "verify_claims.md").write_text(f"{own}\nBe strict.\n", "utf-8")
    run("--rag-judge=openai:gpt-one", test_short=test).shows("judge calls: 1 made (* tokens, price unknown), *")
    calls = server.calls
    for change, asked in ASKED_AGAIN:
        run("--rag-judge=openai:gpt-one", *change).assert_outcomes(passed=1)
        calls += asked
        assert server.calls == calls, change
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    run("--rag-judge=openai:gpt-one").assert_outcomes(passed=1)


CROWD = """
    import asyncio, time
    from concurrent.futures import ThreadPoolExecutor
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
        assert_relevant(f"Is pump {member} blue?", f"Pump {member} is blue.", min=0.1)
"""


def test_many_ask_at_once_and_one_pays(run: RunPytest, server: FakeOpenAI) -> None:
    """Two metrics, eight coroutines, four threads and two workers that ask the same at once make one request."""
    pumps: set[str] = set()

    def answer(body: Body) -> str | Reply:
        question = str(body["messages"])
        if "Is pump" in question and question not in pumps:
            pumps.add(question)
            return silent()
        return Reply(text=answer_sensibly(body), latency=0.3)

    server.answer = answer
    result = run(*MANY, "--rag-timeout=2", "--rag-json=out.json", test_crowd=CROWD)
    result.shows("judge calls: 3 made (*), 127 saved by the cache (*)", passed=2)
    assert (server.answered, server.calls) == (3, 5)
    (said,) = (line for line in result.outlines if "5 requests sent, 2 given up after their time-out" in line)
    assert said in result.document.run.notes


def test_a_cache_that_cannot_be_used_is_one_warning(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester
) -> None:
    (pytester.path / "blocked").touch()
    result = run("-W", "default", "--rag-cache-dir=blocked/cache", test_suite=SUITE, test_again=SUITE)
    result.shows(
        "*blocked/cache: the cache cannot be used: *; this run goes on without a local cache", passed=4, warnings=1
    )
    assert server.calls == 4


VOTES = """
    from pytest_ragmetrics.metrics import Relevance
    def test_option(): assert_relevant("Does it hum?", "It hums.", min=0.1)
    @pytest.mark.rag_votes(1)
    def test_marker(): assert_relevant("Does it hum?", "It hums, one.", min=0.1)
    @pytest.mark.rag_votes(1)
    def test_argument(): assert_relevant("Does it hum?", "It hums, five.", min=1.0, votes=5)
    def test_plain(): assert Relevance().score(user_input="Does it hum?", response="It hums, plainly.") >= 0.1
    @pytest.mark.parametrize("votes", [None, 2])
    def test_table(votes):
        rows = [{"question": "Does it hum?", "answer": f"It hums {votes}."}]
        evaluate(rows, ["relevance"], votes=votes)
"""


HIGHEST = '{"reason": "Because.", "rating": 4}'


def test_the_argument_wins_over_the_marker_and_that_over_the_option(run: RunPytest, server: FakeOpenAI) -> None:
    server.answer = lambda _: HIGHEST
    ran = run("--strict-markers", "--rag-votes=3", "--rag-json=out.json", test_it=VOTES)
    votes = {name: len(row["records"][0]["samples"]) for name, row in ran.named.items()}
    tables = {"test_table[None]": 3, "test_table[2]": 2}
    assert votes == {"test_option": 1, "test_marker": 0, "test_argument": 5, "test_plain": 3, **tables}
    assert server.calls == 15


def test_votes_are_kept_one_by_one(run: RunPytest, server: FakeOpenAI) -> None:
    server.answer = lambda _: HIGHEST
    suite = SHORT.replace("min=0.1", "min=1.0")
    calls = []
    for votes in (1, 3, 3, 2):
        run(f"--rag-votes={votes}", test_it=suite).assert_outcomes(passed=1)
        calls.append(server.calls)
    assert calls == [1, 3, 3, 3]
    assert [request.body["temperature"] for request in server.requests] == [0, 1, 1]
