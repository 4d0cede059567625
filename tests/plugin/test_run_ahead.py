"""The rows of all tests are answered and scored at once, ahead of their tests, and each test gets its own."""

from __future__ import annotations

import pytest

from tests.fake_answers import answer_sensibly
from tests.fake_openai import FakeOpenAI, failing, out_of_quota
from tests.plugin.conftest import RunPytest

JUDGED = ("--rag-judge=openai:gpt-mine",)
GOLDEN = """
    ROWS = [{"id": f"r{n}", "question": f"Is pool {n} blue?", "answer": f"Pool {n}."} for n in range(8)]
    @pytest.mark.rag_dataset(ROWS, metrics=["relevance"])
    def test_golden(rag_sample, rag_scores): assert rag_scores["relevance"] > 0
"""
#: Rows without a response, and an application that notes what it is asked.
ASKING = """
    import asyncio, pathlib
    ROWS = [{"id": f"r{n}", "question": f"Is pool {n} blue?", "reference": "Yes."} for n in range(6)]
    def note(sample):
        with pathlib.Path(__file__).with_suffix(".asked").open("a") as file:
            file.write(f"{sample.id}\\n")
    FIXTURE
    @pytest.mark.rag_dataset(ROWS, metrics=["relevance"])
    def test_golden(rag_sample, rag_scores):
        assert rag_sample.response == f"Pool {rag_sample.id} is blue."
        assert (rag_sample.reference, rag_sample.user_input[:7]) == ("Yes.", "Is pool")
        assert rag_scores["relevance"] > 0
"""
SYNC = """
    @pytest.fixture
    def rag_respond():
        def respond(sample):
            note(sample)
            return f"Pool {sample.id} is blue."
        return respond
"""
ASYNC = """
    @pytest.fixture(scope="session")
    def rag_respond():
        async def respond(sample):
            note(sample)
            await asyncio.sleep(0)
            return {"answer": f"Pool {sample.id} is blue.", "contexts": ["Pools."]}
        return respond
"""
CLOSING = """
    @pytest.fixture(scope="SCOPE")
    def rag_respond():
        from dataclasses import replace
        is_open = [True]
        def respond(sample):
            assert is_open, "asked after it was closed"
            note(sample)
            return replace(sample, response=f"Pool {sample.id} is blue.")
        yield respond
        is_open.clear()
"""


def asking(fixture: str) -> str:
    """Return the suite with an application."""
    return ASKING.replace("    FIXTURE\n", fixture.lstrip("\n"))


#: A response or an exception for each row; the last is as it should be.
FAILING = """
    @pytest.fixture
    def rag_respond():
        DEF respond(sample):
            if sample.id == "r0":
                raise KeyError("lost")
            if sample.id == "r1":
                raise SystemExit(3)
            if sample.id == "r4":
                pytest.skip("no answer today")
            others = {"r2": None, "r3": {"contexts": []}, "r5": {"answer": 4}}
            return others.get(sample.id, f"Pool {sample.id} is blue.")
        return respond
"""
CONCURRENT = """
    @pytest.fixture(scope="session")
    def rag_respond():
        waiting = []
        async def respond(sample):
            waiting.append(sample)
            for _ in range(2000):
                if len(waiting) == 6:
                    return f"Pool {sample.id} is blue."
                await asyncio.sleep(0.01)
            raise TimeoutError("alone")
        return respond
"""
THREADS = """
    @pytest.fixture(scope="session")
    def rag_respond():
        import threading
        barrier, inside, most = threading.Barrier(3), [], [0]
        def respond(sample):
            inside.append(sample)
            most[0] = max(most[0], len(inside))
            barrier.wait(60)
            inside.remove(sample)
            return f"Pool {sample.id} is blue."
        yield respond
        assert most == [3]
"""
#: The last row is answered only when the test of the one before it has ended.
WAITING = """
    import threading
    ENDED = {name: threading.Event() for name in ("r0", "r1", "r2")}
    ROWS = [{"id": name, "question": f"Is pool {name} blue?"} for name in ENDED]
    @pytest.fixture(scope="module")
    def rag_respond():
        def respond(sample):
            assert sample.id != "r2" or ENDED["r1"].wait(60), "the test before it waits too"
            return f"Pool {sample.id} is blue."
        return respond
    @pytest.mark.rag_dataset(ROWS, metrics=["relevance"])
    def test_golden(rag_sample, rag_scores): ENDED[rag_sample.id].set()
"""
PARAMETER = """
    @pytest.fixture(params=["moss", "fern"])
    def rag_respond(request): return lambda sample: f"{request.param} {sample.id}"
    @pytest.mark.rag_dataset([{"id": "a", "question": "Is it?"}, {"id": "b", "question": "Is it?"}])
    def test_it(rag_sample, rag_respond, request):
        assert rag_sample.response == f"{request.node.callspec.params['rag_respond']} {rag_sample.id}"
"""
NONE = """
    ROWS = [{"id": "r0", "contexts": ["Moss."], "reference": "Moss."}]
    @pytest.mark.rag_dataset(ROWS, metrics=["lexical_context_recall", "relevance"])
    def test_it(rag_scores): pass
    @pytest.mark.rag_dataset(ROWS, metrics=["lexical_context_recall"])
    def test_retrieved(rag_scores): assert rag_scores["lexical_context_recall"] == 1
    @pytest.mark.rag_dataset([{"id": "r0", "question": "Is it?", "answr": "No."}], metrics=["relevance"])
    def test_misspelt(rag_scores): pass
    TALK = [{"role": "user", "content": "Is it blue?"}, {"role": "assistant", "content": "It is."}]
    @pytest.mark.rag_dataset([{"id": "r0", "user_input": TALK}], metrics=["coherence"])
    def test_talk(rag_scores): assert rag_scores["coherence"] >= 0
"""
PASSING = {
    "test_async": asking(ASYNC),
    "test_function": asking(CLOSING.replace("SCOPE", "function")),
    "test_module": asking(CLOSING.replace("SCOPE", "module")),
    "test_concurrent": asking(CONCURRENT),
    "test_threads": asking(THREADS),
}
WRONG = {
    "test_raising": asking(FAILING.replace("DEF", "def")).replace("range(6)", "range(7)"),
    "test_araising": asking(FAILING.replace("DEF", "async def")).replace("range(6)", "range(7)"),
    "test_no_function": asking("    @pytest.fixture\n    def rag_respond(): return 'blue'\n"),
    "test_none": NONE,
}


APPLICATIONS = (*JUDGED, "-rA", "-o", "rag_respond_threads=3")


def test_the_application_answers_each_row_once(run: RunPytest, server: FakeOpenAI) -> None:
    result = run(*APPLICATIONS, **PASSING, test_waiting=WAITING, test_parameter=PARAMETER)
    result.assert_outcomes(passed=5 * 6 + 3 + 4)
    for name in ("test_async", "test_function", "test_module"):
        assert sorted(result.text(f"{name}.asked").split()) == [f"r{n}" for n in range(6)]


def test_an_application_that_fails_fails_its_row(run: RunPytest, server: FakeOpenAI) -> None:
    result = run(*APPLICATIONS, **WRONG)
    result.assert_outcomes(passed=2 + 2, errors=2 * 5 + 6 + 2, skipped=2)
    for name in ("test_raising", "test_araising"):
        result.shows_all(f"PASSED {name}.py::test_golden[[]r6[]]", f"SKIPPED *{name}.py:*: no answer today")
    for said in ("'r0': rag_respond raised KeyError: 'lost'", "'r1': rag_respond raised SystemExit: 3"):
        pattern = f"E *UnscoredError: row {said}"
        result.shows(pattern, pattern)
    head = "*ERROR at setup of test_golden*"
    for pattern in (
        "row 'r2': rag_respond returned None; it must return a text, *",
        "row 'r3': rag_respond returned no response; write *",
        "row 'r5': rag_respond returned a mapping that is no sample: *",
    ):
        # The whole text of the failure: no frame of this package above it.
        result.shows(head, pattern, head, pattern)
        assert f"E   pytest_ragmetrics.UnscoredError: {pattern[:20]}" not in result.stdout.str()
    result.shows_all(
        "rag_respond must return a function from Sample to response, not str",
        "row 'r0' has no response; did you write 'answr' for response[?]*",
        "row 'r0' has no response, *: override the fixture rag_respond to return a function, async or not, *",
    )


def test_a_log_that_ends_in_thanks_is_judged_as_a_whole(run: RunPytest, server: FakeOpenAI) -> None:
    """Without an application; metrics of answers have none to score, and an application answers it for all of them."""
    suite = """
        SAID = {"user": "Ja?", "assistant": "はい。", "User": "Danke, tschüss!"}
        LOG = [{"role": who.lower(), "content": text} for who, text in SAID.items()]
        def of(*metrics):
            return pytest.mark.rag_dataset([{"id": "log", "messages": LOG}], metrics=[*metrics])
        @of("harmlessness", "coherence")
        def test_whole(rag_scores): assert [*map(float, rag_scores.values())] == [1.0, 1.0]
        @of("harmlessness", "relevance")
        def test_both(rag_scores): assert rag_scores["harmlessness"] == 1.0
        @of("relevance", "answer_relevancy")
        def test_answers(rag_sample): pass
        class TestAnswered:
            @pytest.fixture
            def rag_respond(self): return lambda sample: "Bitte!"
            @of("harmlessness", "relevance")
            def test_all(self, rag_sample, rag_scores): assert (rag_sample.response, len(rag_scores)) == ("Bitte!", 2)
    """
    result = run(*JUDGED, "--rag-json=out.json", test_it=suite)
    result.assert_outcomes(passed=2, failed=1, errors=1)
    result.shows_all(
        "*relevance: response is missing; *, and the conversation does not end in a text of the assistant",
        "row 'log' has no response, and no application answers it: *",
    )
    scored = {name.partition("::")[2]: [it["metric"] for it in test["records"]] for name, test in result.tests.items()}
    assert scored["test_both[log]"] == ["harmlessness", "relevance"]


def test_all_rows_are_judged_at_once(run: RunPytest, server: FakeOpenAI) -> None:
    server.waves = [16]
    more = """
    def test_between(): pass
    @pytest.mark.rag_dataset([{**row, "contexts": []} for row in ROWS[:2]], metrics=["relevance", "lexical_grounding"])
    def test_last(rag_sample): pass
"""
    files = {"test_it": GOLDEN + more, "test_more": GOLDEN.replace("Is pool", "Is the pool")}
    result = run(*JUDGED, "--rag-concurrency=16", "--rag-json=out.json", **files)
    result.assert_outcomes(passed=8 + 3 + 8)
    assert (server.calls, server.in_flight_max) == (16, 16)
    result.stdout.no_fnmatch_line("*rows done*")
    records = {name: test["records"] for name, test in result.tests.items() if test["records"]}
    assert {name: [r["metric"] for r in found] for name, found in records.items()} == {
        **{f"{file}.py::test_golden[r{n}]": ["relevance"] for file in files for n in range(8)},
        **{f"test_it.py::test_last[r{n}]": ["relevance", "lexical_grounding"] for n in range(2)},
    }
    assert sum(r["usage"]["calls"] for found in records.values() for r in found) == 16
    assert {r["outcome"] for found in records.values() for r in found} == {"passed", "measured"}


def test_metrics_of_a_row_verify_their_claims_together(run: RunPytest, server: FakeOpenAI) -> None:
    suite = GOLDEN.replace('"relevance"', '"faithfulness", "context_recall"', 1).replace('["relevance"] > 0', "")
    suite = suite.replace('"answer":', '"contexts": ["Pools are blue."], "reference": "Blue.", "answer":')
    run(*JUDGED, test_it=suite).assert_outcomes(passed=8)
    assert server.calls == 16


def test_concurrency_is_bounded_and_only_what_is_selected_is_judged(run: RunPytest, server: FakeOpenAI) -> None:
    server.latency = 0.05
    run(*JUDGED, "--rag-concurrency=3", "-k", "not r7", test_it=GOLDEN).assert_outcomes(passed=7, deselected=1)
    assert (server.calls, server.in_flight_max) == (7, 3)


def test_a_rerun_takes_what_there_is(run: RunPytest, server: FakeOpenAI) -> None:
    """A row without a score is judged anew, and its response is kept."""
    useless = iter(("moss", "moss"))
    server.answer = lambda body: ("pool" in str(body) and next(useless, None)) or answer_sensibly(body)
    suite = """
        @pytest.mark.rag_dataset([{"id": "it", "question": "Is it blue?", "answer": "Blue."}], metrics=["relevance"])
        def test_scored(rag_scores, request):
            assert rag_scores["relevance"].comparison is None
            assert rag_scores["relevance"] > 0
            assert request.node.execution_count == 3
    """
    options = (*JUDGED, "-p", "rerunfailures", "--reruns=2", "--rag-json=out.json")
    result = run(*options, test_scored=suite, test_unscored=asking(SYNC).replace("range(6)", "range(1)"))
    assert result.parseoutcomes() == {"passed": 2, "rerun": 3}
    assert result.text("test_unscored.asked").split() == ["r0"]
    assert server.calls == 1 + 3
    assert [record["usage"]["calls"] for record in result.named["test_scored[it]"]["records"]] == [1]


def test_a_judge_without_credit_is_not_asked_for_every_row(run: RunPytest, server: FakeOpenAI) -> None:
    server.answer = lambda _: out_of_quota()
    reruns = ("-p", "rerunfailures", "--reruns=2")
    result = run(*JUDGED, *reruns, "--rag-concurrency=1", test_it=GOLDEN)
    assert result.parseoutcomes()["failed"] == 8
    assert server.calls <= 3


def test_stopping_early_calls_off_the_rest(run: RunPytest, server: FakeOpenAI) -> None:
    server.latency = 0.05
    suite = GOLDEN.replace("range(8)", "range(40)").replace("> 0", "> 9")
    run(*JUDGED, "--rag-concurrency=2", "-x", test_it=suite).assert_outcomes(failed=1)
    paid = server.calls
    assert paid < 40
    server.latency = 0
    run(*JUDGED, test_it=suite.replace("> 9", "> 0")).assert_outcomes(passed=40)
    assert server.calls == 40


def test_a_terminal_sees_how_far_it_is(run: RunPytest, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]) -> None:
    server.latency = 0.4
    terminal = """
        def pytest_sessionstart(session):
            reporter = session.config.pluginmanager.getplugin("terminalreporter")
            reporter.isatty = type(reporter.isatty)(True)
    """
    run(*JUDGED, test_it=GOLDEN, conftest=terminal)
    text = capsys.readouterr().out
    assert "\rragmetrics: 0 of 8 rows done ahead" in text
    assert all(line.count("rows done ahead") == line.count("\r") or "done" not in line for line in text.split("\n"))
    assert "8 passed" in text


def test_an_outage_in_the_middle_is_not_waited_for_row_by_row(run: RunPytest, server: FakeOpenAI) -> None:
    answered = iter(range(6))
    server.answer = lambda body: answer_sensibly(body) if next(answered, None) is not None else failing(500)
    options = (*JUDGED, "--rag-concurrency=3", "--rag-retries=1")
    result = run(*options, test_it=GOLDEN.replace("range(8)", "range(20)"))
    said = "E * relevance: not asked any more, as 3 requests in a row *; the last: openai:gpt-mine: *"
    result.shows(said, passed=6, failed=14)
    # Two attempts each, of those that were counted and of those that were on their way.
    assert server.calls <= 6 + 2 * (3 + 3)
    server.answer = answer_sensibly
    run(*options).assert_outcomes(passed=20)
    assert (server.answered, server.duplicates) == (20, 0)


def test_what_is_kept_is_scored_while_the_judge_is_away(run: RunPytest, server: FakeOpenAI) -> None:
    run(*JUDGED, test_it=GOLDEN).assert_outcomes(passed=8)
    server.answer = lambda _: out_of_quota()
    longer = GOLDEN.replace("range(8)]", "[*range(20, 26), *range(8), *range(30, 36)]]")
    run(*JUDGED, "--rag-concurrency=2", test_it=longer).assert_outcomes(passed=8, failed=12)


def test_repetitions_are_tests_of_their_own(run: RunPytest, server: FakeOpenAI) -> None:
    gated = GOLDEN.replace("    def", '    @pytest.mark.rag_gate("relevance", mean=0.1)\n    def')
    result = run(*JUDGED, "-p", "pytest_repeat", "--count=2", test_it=gated)
    result.shows("gate: mean relevance * passed (n 16), *", passed=17)
    assert (server.answered, server.duplicates) == (8, 0)


def test_subtests_and_coroutines_have_scores(run: RunPytest, server: FakeOpenAI) -> None:
    suite = """
        import asyncio
        ROWS = [{"id": "r1", "question": "Is it blue?", "answer": "Blue."}]
        @pytest.mark.rag_dataset(ROWS, metrics=["relevance"])
        def test_parts(rag_scores, subtests):
            for bound in (0, 9):
                with subtests.test(bound=bound):
                    assert rag_scores["relevance"] > bound
        @pytest.mark.rag_dataset(ROWS, metrics=["relevance"])
        @pytest.mark.asyncio
        async def test_coroutine(rag_scores):
            await asyncio.sleep(0)
            assert rag_scores["relevance"] > 0
    """
    options = ("-p", "asyncio", "-o", "asyncio_default_fixture_loop_scope=function", "--rag-json=out.json")
    tests = run(*JUDGED, *options, test_it=suite).named
    found = {name: (test["outcome"], len(test["records"])) for name, test in tests.items()}
    assert found == {"test_parts[r1]": ("failed", 1), "test_coroutine[r1]": ("passed", 1)}
    assert server.calls == 1
