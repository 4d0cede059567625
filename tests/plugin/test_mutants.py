"""Tests of rows on mutants of their answers: which faults a suite notices, and that nothing else of the run changes."""

from __future__ import annotations

import json

import pytest

from pytest_ragmetrics.evaluation.mutation import MutationTable
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import MANY, SERIAL, RunPytest

ROWS = """
    def row(name, text, **more):
        return {"id": name, "question": "What is known?", "answer": text, "contexts": [text]} | more

    ROWS = [
        row("pump", "The pump of the plant needs 20 minutes to fill."),
        row("roof", "The glass roof is cleaned by the crew. It weighs 900 kilograms."),
    ]
"""
APPLICATION = """
    import pathlib
    import pytest

    NOTED = pathlib.Path(__file__).with_name("noted.txt")

    def note(text):
        with NOTED.open("a") as file:
            file.write(f"{text}\\n")

    @pytest.fixture(scope="session")
    def rag_respond():
        note("begun")
        def respond(sample):
            note(f"asked {sample.id}")
            return {"response": sample.metadata["known"], "retrieved_contexts": [sample.metadata["known"]]}
        yield respond
        note("ended")

    def pytest_exception_interact(node):
        note(f"debugged {node.name}")

    def pytest_ragmetrics_redact(text):
        return text.replace("glass", "***")
"""
SUITE = (
    ROWS
    + """
    WRONG = row("wrong", "The tower has 90 steps of dark stone.", contexts=["The tower has 80 steps of dark stone."])
    NONE = row("none", "I cannot answer this.")
    ASKED = [{"id": it["id"], "question": it["question"], "known": it["answer"]} for it in ROWS]
    TALK = {"id": "talk", "messages": [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "No."}]}

    @pytest.mark.rag_gate("lexical_grounding", mean=0.99)
    @pytest.mark.rag_dataset(ROWS, metrics=["lexical_grounding"])
    def test_gated(rag_sample):
        pass

    @pytest.mark.rag_dataset([*ROWS, WRONG, NONE, TALK], metrics={"numbers_aligned": 1.0})
    def test_numbers(rag_sample):
        pass

    class TestAnswered:
        @pytest.fixture
        def words(self, rag_sample):
            return rag_sample.response.split()

        @pytest.mark.rag_dataset(ASKED)
        @pytest.mark.parametrize("mode", ["strict", "lax"])
        def test_words(self, words, mode):
            assert "not" not in words or mode == "lax"
            if "sorry," in words:
                raise ValueError("no words")

    @pytest.mark.rag_dataset(ROWS[:1])
    @pytest.mark.xfail(strict=True)
    def test_known_to_fail(rag_sample):
        assert not rag_sample.response

    def test_last():
        pass
    """
)


@pytest.mark.parametrize("how", [SERIAL, MANY], ids=["alone", "xdist"])
def test_which_faults_a_suite_notices(run: RunPytest, how: list[str]) -> None:
    """The tests, their files and what the next run repeats are those of a run without mutants."""
    files = ("--rag-json=out.json", "--rag-report=out.html", "--junitxml=out.xml")
    result = run("--rag-mutate=number,negation,refusal", *files, *how, conftest=APPLICATION, test_suite=SUITE)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    # One of two rows is enough to move a gate.
    result.shows(
        "2 rows, 5 mutants; how many were noticed, of how many with a verdict:",
        "kind      made  test_words  test_gated  test_numbers  any",
        "number       2         0/2         0/2           2/2  2/2",
        "negation     1         1/1         0/1           0/1  1/1",
        "refusal      2           -         2/2           0/2  2/2",
        "no verdict: 4 mutants, ValueError: no words",
        "not mutated: 2 tests, failed or skipped with the answer as it is",
        "not mutated: 1 test, no such fault can be planted",
        "not mutated: 1 test, of conversations",
        passed=11,
        failed=2,
        xfailed=1,
    )
    assert "not noticed" not in str(result.stdout)
    noted = result.text("noted.txt").split("\n")
    # An application is not asked again, and its fixture lives until the mutants have run.
    assert sorted(line for line in noted if "asked" in line) == ["asked pump"] * 2 + ["asked roof"] * 2
    assert not [line for line in noted if "mutant" in line]
    assert noted.count("begun") == noted.count("ended") <= (1 if how == SERIAL else 2)
    assert "<p>5 of 5 planted faults noticed</p>" in result.text("out.html")
    document = json.loads(result.text("out.json"))
    made = [(it["kind"], it["verdicts"]) for it in document["run"].pop("mutants")]
    assert [kind for kind, _ in made].count("number") == 2
    # Files of shards have whole names, which differ.
    verdicts = {"test_suite.py::test_gated": False, "test_suite.py::test_numbers": False}
    assert ("negation", {**verdicts, "test_suite.py::TestAnswered::test_words": True}) in made
    assert "<bdi>test_numbers</bdi>" in result.text("out.html")
    assert "mutant" not in json.dumps(document)
    for file in ("out.xml", ".pytest_cache/v/cache/lastfailed"):
        assert "mutant" not in result.text(file)
    assert len(result.tests) == 8


UNBOUND = """
    @pytest.mark.rag_dataset(ROWS, metrics=["numbers_aligned"])
    def test_unbound(rag_sample):
        pass
"""


def test_survivors_and_a_share_that_is_too_small(run: RunPytest) -> None:
    """What nothing notices is listed, redacted; the run fails for it alone if it is to."""
    suite = SUITE.partition("class TestAnswered")[0].replace("WRONG, ", "") + UNBOUND
    options = ("--rag-mutate=unit,negation", "-k", "numbers and not talk")
    result = run(*options, "--rag-mutate-rows=5", conftest=APPLICATION, test_suite=suite)
    assert result.ret == pytest.ExitCode.OK
    result.shows(
        "not noticed (2):",
        "  unit; what would notice: faithfulness",
        "    pump at 31: the plant needs 20 [[]minutes -> days[]] to fill.",
        "    roof at 15: The *** roof [[]is -> is not[]] cleaned by the crew.*",
    )
    few = run("--rag-mutate=number", "-k", "unbound", "--rag-mutate-rows=1", "--rag-mutate-min=0.5")
    few.shows(
        "  number; what would notice: a bound for numbers_aligned, or faithfulness",
        "0.000 of the mutants were noticed, below --rag-mutate-min=0.5",
    )
    assert few.ret == pytest.ExitCode.TESTS_FAILED
    none = run("--rag-mutate=name", "--rag-mutate-min=0.5", "-k", "numbers and not talk")
    none.shows("--rag-mutate-min=0.5: no mutant has a verdict")
    assert none.ret == pytest.ExitCode.TESTS_FAILED


JUDGED = (
    ROWS
    + """
    @pytest.mark.rag_dataset(ROWS, metrics={"response_groundedness": 0.5})
    def test_judged(rag_sample):
        pass
    """
)


def test_a_judge_is_forecast_asked_once_and_held_to_the_budget(run: RunPytest, server: FakeOpenAI) -> None:
    asking = ("--rag-judge=openai:m", "--rag-mutate=number,negation")
    dry = run(*asking, "--rag-dry-run", "--rag-mutate-min=1", test_suite=JUDGED)
    dry.shows("response_groundedness *2 *4 *", "response_groundedness (mutants) *3 *6 *", "3 mutants of 2 rows: their*")
    assert (dry.ret, server.requests) == (pytest.ExitCode.OK, [])
    result = run(*asking, "--rag-max-calls=6", "--rag-json=out.json")
    result.shows(
        "judge calls: 4 made*", "no verdict: * mutants, *--rag-max-calls=6*", "mutants: judge calls: 2 made*", passed=2
    )
    assert len(server.requests) == 6
    assert sum(record.usage.calls for test in result.document.tests for record in test.records) == 4
    run(*asking).shows("mutants: judge calls: 4 made*, 2 saved*")
    run(*asking, "--rag-sentinels=50").shows(
        "sentinels: * of 4 stored answers*", "mutants: judge calls: 0 made*, 6 saved*"
    )
    assert len(server.requests) == 14


@pytest.mark.parametrize(
    ("options", "suite", "said"),
    [
        ((), "def test_plain(): pass", "no test with the marker rag_dataset has run: --rag-mutate changes *"),
        (("-x",), SUITE.replace("[*ROWS, WRONG, ", "[WRONG, *ROWS, "), "not mutated: 2 tests, the run ended before"),
    ],
)
def test_what_is_said_without_mutants(run: RunPytest, options: tuple[str, ...], suite: str, said: str) -> None:
    run("--rag-mutate", *options, conftest=APPLICATION, test_suite=suite).shows("* RAG mutants *", said)


@pytest.mark.parametrize("functions", [["a.py::T::test_x", "a.py::U::test_x"], ["a.py::test_x", "b.py::test_y"]])
def test_functions_of_one_name_are_told_apart(functions: list[str]) -> None:
    names = MutationTable([], judges=functions, kinds=[], rows=1, seed=0).names
    assert [*names.values()] in ([*functions, "any"], ["test_x", "test_y", "any"])


def test_a_long_name_is_whole_but_in_the_terminal() -> None:
    function = f"a.py::test_{'answers_' * 9}are_found"
    table = MutationTable([], judges=[function], kinds=["number"], rows=1, seed=0)
    assert f"a.py::{table.names[function]}" == function
    _, head, *_ = table.lines()
    assert head.split() == ["kind", "made", "test_answers_an", "…", "_found", "any"]


ANSWERS = (
    ROWS
    + """
    ASKED = [{"id": it["id"], "question": it["question"], "known": it["answer"]} for it in ROWS]
    @pytest.mark.rag_dataset(ASKED, answers=2)
    def test_it(rag_sample):
        with open("seen.txt", "a") as file:
            file.write("test ")
"""
)


def test_of_several_answers_the_first_is_mutated(run: RunPytest) -> None:
    result = run("--rag-mutate=number", conftest=APPLICATION, test_suite=ANSWERS)
    result.shows("number *2 *0/2 *0/2", passed=4)
    assert result.text("seen.txt").split() == ["test"] * 6


INTERRUPTED = (
    ROWS
    + """
    SEEN = []
    @pytest.mark.rag_dataset(ROWS)
    def test_seen(rag_sample):
        SEEN.append(rag_sample.response)
        if len(SEEN) == 4:
            raise KeyboardInterrupt
"""
)


def test_an_interrupt_leaves_what_ran(run: RunPytest) -> None:
    result = run("--rag-mutate=number,refusal", interrupted=True, test_suite=INTERRUPTED)
    result.shows("number *1 *0/1 *", "not mutated: 2 tests, the run ended before", passed=2)
    assert result.ret == pytest.ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--rag-mutate=numbr", "'numbr' is no kind of mutant: did you mean 'number'?"),
        ("--rag-mutate=test_suite.py", "'test_suite.py' is no kind of mutant: write some of number,date,*"),
        ("--rag-mutate-min=80", "'80' is not a number between 0 and 1, such as 0.8"),
        ("--rag-mutate-rows=0", "'0' is not a whole number of at least 1"),
    ],
)
def test_what_is_refused(run: RunPytest, option: str, said: str) -> None:
    run(option).refused(f"ERROR: {option.partition('=')[0]}: {said}")
