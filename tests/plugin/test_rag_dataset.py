"""Data sets in a suite: one test per row, with its sample and its scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fake_answers import answer_sensibly
from tests.fake_openai import FakeOpenAI, truncated
from tests.plugin.conftest import MANY, Run, RunPytest
from tests.spans import chat_trace

JUDGED = ("--rag-judge=openai:gpt-mine", "--rag-json=out.json")
GOLDEN = """
    @pytest.mark.rag_dataset("golden.jsonl", metrics=["faithfulness"])
    def test_golden(rag_sample, rag_scores):
        assert rag_sample.response
        assert rag_scores["faithfulness"] >= 0.8
"""
#: Rows whose response is borne out by its context; one has no contexts, and one is broken.
ROWS: list[dict[str, Any]] = [
    {"id": f"r{n}", "question": f"What of basin {n}?", "answer": f"Basin {n} has nine carp.", "contexts": [text]}
    for n in range(5)
    for text in (f"Basin {n} has nine carp.",)
]
ROWS[3]["contexts"] = None
ROWS[4]["answer"] = 4
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
#: Writes the data set, and takes it away once the first test has read it.
CONFTEST = f"""
    import pathlib, pytest
    FILE = pathlib.Path(__file__).with_name("golden.jsonl")
    FILE.write_text({LINES!r}, "utf-8")
    @pytest.hookimpl(trylast=True)
    def pytest_generate_tests(metafunc):
        if metafunc.definition.name == "test_two":
            FILE.unlink()
    def pytest_runtestloop(): FILE.write_text({LINES!r}, "utf-8")
"""
SUITE = """
    EVEN = [Sample(id=str(n), response="Moss.", metadata={"even": n % 2 == 0}) for n in range(9)]
    BAD = [{"id": "bad", "answer": "Blue pumps.", "contexts": ["Valves."]}]
    @pytest.mark.rag_dataset("golden.jsonl", metrics=["faithfulness", "relevance"], limit=4)
    @pytest.mark.parametrize("metric", ["faithfulness", "relevance"])
    def test_one(rag_scores, metric):
        assert metric in rag_scores and len(rag_scores) == 2
        assert rag_scores[metric] >= 0.5
    @pytest.mark.rag_dataset("golden.jsonl", limit=4)
    def test_two(rag_sample): assert rag_sample.response
    @pytest.mark.rag_dataset("golden.jsonl", limit=4)
    class TestBoth:
        def test_all(self, rag_sample): assert rag_sample.id in ("r0", "r1", "r2", "r3")
        @pytest.mark.parametrize("depth", [1, 2, 3])
        @pytest.mark.rag_dataset(BAD, metrics="numbers_aligned")
        def test_nearest(self, depth, rag_sample, rag_scores):
            assert (rag_sample.id, list(rag_scores)) == ("bad", ["numbers_aligned"])
    @pytest.mark.rag_dataset(EVEN, where=lambda sample: sample.metadata["even"], limit=3)
    def test_chosen(rag_sample): assert rag_sample.id in ("0", "2", "4")
    @pytest.mark.rag_dataset(BAD, metrics=["lexical_grounding"])
    def test_lowest(rag_sample, rag_scores): assert rag_scores["lexical_grounding"] >= 0.1
    @pytest.mark.rag_dataset(BAD, metrics=["NumbersAligned"])
    def test_unknown(rag_scores):
        assert rag_scores["numbers_aligned"] is rag_scores["NumbersAligned"]
        assert "faithfulness" not in rag_scores
        rag_scores["faithfulness"]
    def test_unmarked(rag_scores): pass
"""
BROKEN = """
    @pytest.mark.rag_dataset("golden.jsonl", metrics=["relevance"], where={"id": ["r0", "r4"]})
    def test_broken(rag_sample, rag_scores): assert rag_scores["relevance"].judge == "openai:gpt-mine"
    @pytest.mark.rag_judge("openai:gpt-other")
    @pytest.mark.rag_dataset("golden.jsonl", metrics=["relevance"], limit=1)
    def test_marked(rag_scores): assert rag_scores["relevance"].judge == "openai:gpt-other"
    def test_file(rag_evaluate):
        table = rag_evaluate("golden.jsonl", ["relevance"], where={"id": ["r0", "r4"]})
        assert [row.sample.id for row in table.rows] == ["r0", "r4"]
        assert table.scores("relevance")[1] is None
        assert "golden.jsonl:5" in table.rows[1].unscored["relevance"]
    def test_rows(rag_evaluate):
        rows = ({"question": "Is it blue?", "answer": f"Blue {n}."} for n in range(4))
        assert rag_evaluate(rows, "relevance", limit=2).stats()["relevance"].n == 2
"""


def test_each_row_is_a_test(run: RunPytest, server: FakeOpenAI) -> None:
    result = run(*JUDGED, "-v", "-rA", conftest=CONFTEST, test_broken=BROKEN, test_suite=SUITE)
    result.assert_outcomes(passed=24, failed=4, errors=2)
    result.shows_all(
        *(f"test_suite.py::test_two[[]r{number}[]] PASSED*" for number in range(4)),
        "test_suite.py::TestBoth::test_nearest[[]bad-2[]] PASSED*",
        "test_suite.py::test_chosen[[]4[]] PASSED*",
        "*ERROR at setup of test_broken[[]r4[]]*",
        "golden.jsonl:5: field 'answer': row r4: *",
        "E *UnscoredError: row 'r3' (golden.jsonl:4): faithfulness: retrieved_contexts is missing; *",
        "FAILED test_suite.py::test_one[[]r3-relevance[]] - 1 of 2 metrics unscored",
        "FAILED test_suite.py::test_one[[]r3-faithfulness[]]*",
        "E *'faithfulness' was not scored: there are numbers_aligned; write *metrics=[[]'fai*",
        "rag_sample and rag_scores are of a test per row; write @pytest.mark.rag_dataset(*",
    )
    assert sum(line.startswith("faithfulness unscored: row 'r3'") for line in result.outlines) == 1
    # Three rows of faithfulness in two requests, five of relevance, two of a table, one by another model.
    assert server.calls == 3 * 2 + 4 + 2 + 1
    tests = result.named
    for number in range(3):
        faithful, relevant = tests[f"test_one[r{number}-faithfulness]"]["records"]
        assert faithful["sample"]["response"] == f"Basin {number} has nine carp."
        assert faithful["threshold"] == {"operator": ">=", "bound": 0.5}
        assert (faithful["usage"]["calls"] + faithful["usage"]["cached_calls"], relevant["threshold"]) == (2, None)
    # A score of 0 is a score like any other.
    (record,) = tests["test_lowest[bad]"]["records"]
    assert (record["score"], record["outcome"]) == (0.0, "failed")
    assert record["threshold"] == {"operator": ">=", "bound": 0.1}
    assert [len(tests[name]["records"]) for name in ("test_file", "test_rows")] == [1, 2]


def test_traces_are_rows(run: RunPytest, server: FakeOpenAI) -> None:
    traces = [chat_trace(row["id"], row["question"], row["answer"], row["answer"]) for row in ROWS[:2]]
    lines = [*traces, chat_trace("r2", "What of basin 2?", None, "Basin 2 has nine carp.")]
    Path("golden.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    ran = run(*JUDGED, "-rA", test_it=GOLDEN)
    ran.assert_outcomes(passed=2, errors=1)
    ran.shows_all(
        "*golden.jsonl:3: row r2: the trace has no answer: no span of a model*",
        "PASSED test_it.py::test_golden[[]r0[]]",
    )
    (record,) = ran.named["test_golden[r1]"]["records"]
    assert record["sample"]["retrieved_context_ids"] == ["p1"]


def test_a_failing_judge_leaves_a_row_unscored(run: RunPytest, server: FakeOpenAI) -> None:
    cut = str(ROWS[0]["answer"])
    server.answer = lambda body: truncated() if cut in str(body["messages"]) else answer_sensibly(body)
    suite = GOLDEN.replace('"golden.jsonl"', repr(ROWS[:3]))
    ran = run(*JUDGED, "--rag-concurrency=1", test_it=suite)
    outcomes = [test["records"][0]["outcome"] for test in ran.tests.values()]
    assert outcomes == ["unscored", "passed", "passed"]


#: Markers that cannot be used, above a function with a row, and what is said of each.
WRONG = {
    "rag_dataset()": 'it takes one source, not 0; write @pytest.mark.rag_dataset("golden.jsonl"*',
    "rag_dataset('golden.jsonl', 'other.jsonl')": "it takes one source, not 2*",
    "rag_dataset('golden.jsonl', metric='x')": "it knows no metric; write *",
    "rag_dataset('golden.jsonl', metrics=['faithfulnes'])": "there is no metric 'faithfulnes': did you mean faith*",
    "rag_dataset('golden.jsonl', metrics=3)": "metrics=3 are no metrics; write *",
    "rag_dataset('golden.jsonl', metrics=['faithfulness', 'Faithfulness'])": "two metrics of one name: faithfulness; *",
    "rag_dataset('golden.jsonl', metrics=['aspect_critique'])": "aspect_critique: definition is blank*",
    "rag_dataset('nowhere.jsonl')": "nowhere.jsonl: there is no such file; *",
    "rag_dataset([])": "there are no rows: give at least one",
    "rag_dataset('golden.jsonl', limit=0)": "*limit is 0*",
    "rag_dataset('golden.jsonl', metrics={'faithfulness': 90})": "*=90 is outside of the scale *, 0 to 1: write 0.9,*",
    "rag_dataset('golden.jsonl', metrics={'faithfulness': True})": "faithfulness must be a number, not True",
    "rag_dataset('golden.jsonl', metrics={'faithfulness': '0.8'})": "faithfulness must be a number, not '0.8'",
    "rag_dataset('golden.jsonl', metrics={'noise_sensitivity': -1})": "noise_sensitivity=-1 is outside of the scale *",
    "rag_dataset('golden.jsonl', metrics={'faithfulness': float('nan')})": "faithfulness must be a finite number, *",
    "rag_dataset('golden.jsonl', metrics={'faithful': 0.8})": "there is no metric 'faithful': did you mean faith*",
    "rag_gate('numbers_alined', mean=0.5)": "'numbers_alined' is not scored, *: did you mean 'numbers_aligned'[?]",
    "rag_gate('relevance', mean=0.5)": "'relevance' is not scored, * lists numbers_aligned: write metrics=*",
    "rag_gate('numbers_aligned', mean=50)": "mean=50 is outside of the scale of numbers_aligned, 0 to 1: write 0.5,*",
    "rag_gate('numbers_aligned')": "give one of mean= and rate=; write *",
    "rag_gate('faithfulness', mena=0.5)": "it knows no mena; write *",
    "rag_judge('gpt-5')": "'gpt-5' is not one of auto, local, *; write openai:gpt-5",
    "rag_votes(0)": "it takes one whole number from 1 on; write @pytest.mark.rag_votes(3)",
}
WRONG_SUITE = """
ROWS = [{"id": name, "answer": "Moss.", "contexts": ["Moss."]} for name in ("q1", "q2")]
GOLDEN = pytest.mark.rag_dataset(ROWS, metrics=["numbers_aligned"])
@GOLDEN
def test_no_row(): pass
@pytest.mark.rag_dataset("golden.jsonl")
@GOLDEN
def test_both(rag_sample): pass
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.rag_gate("faithfulness", mean=0.5))])
def test_late(n): pass
""" + "".join(
    f"@pytest.mark.{marker}\n{'' if 'dataset' in marker else '@GOLDEN'}\ndef test_{number}(rag_sample): pass\n"
    for number, marker in enumerate(WRONG)
)
#: Markers that cannot be used in other places: each of them fails its class, or its test.
ELSEWHERE = """
import unittest
class TestGrouped:
    @pytest.mark.rag_dataset("nowhere.jsonl")
    @pytest.mark.rag_gate("faithfulness", mean=0.5)
    def test_it(self, rag_sample): pass
class TestCase(unittest.TestCase):
    @pytest.mark.rag_gate("faithfulness", mean=0.5)
    def test_it(self): pass
@pytest.mark.rag_dataset([{"id": "q1", "question": "Why?"}])
def test_fine(rag_sample): pass
@pytest.mark.rag_dataset([{"id": "q1", "question": "Why?"}])
def test_hooked(rag_sample): pass
"""
HOOK = """
import pytest
def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == "test_hooked[q1]":
            item.add_marker(pytest.mark.rag_gate("faithfulness", mean=0.5))
            item.add_marker(pytest.mark.rag_votes(0))
"""
ON = "--continue-on-collection-errors"
WRONG_FILES = {"conftest": HOOK, "test_wrong": WRONG_SUITE, "test_elsewhere": ELSEWHERE}


def assert_named(result: Run) -> None:
    """Check that each wrong marker is named once, by its function with what to write, and is an error of its module."""
    result.shows_all(
        "*ERROR collecting test_wrong.py*",
        "test_wrong.py::test_no_row: *; write def test_no_row(rag_sample, rag_scores)",
        "test_wrong.py::test_both: marker rag_dataset: a test is made of one data set; *",
        "test_wrong.py::test_late: marker rag_gate: it is added too late, by a hook or pytest.param: write it *",
        *(f"test_wrong.py::test_{n}: marker {m.partition('(')[0]}*: {WRONG[m]}" for n, m in enumerate(WRONG)),
        "test_elsewhere.py::TestCase::test_it: marker rag_gate: it means nothing on a method of unittest.TestCase*",
    )
    assert sum(line.startswith("test_wrong.py::") for line in result.outlines) == len(WRONG) + 3
    assert str(result.stdout).count("it means nothing on") == 1
    assert str(result.stdout).count("TestGrouped::test_it: marker") == 1


def test_a_wrong_marker_fails_its_own_module(run: RunPytest) -> None:
    result = run(ON, **WRONG_FILES, test_sound="def test_sound(): pass")
    assert_named(result)
    result.assert_outcomes(passed=2, errors=4)


#: Rows held to declared bounds, in tests that do with the scores what they like; ``far`` misses both bounds.
HELD = """
    @metric(better="lower")
    def clutter(response): return len(response) / 100
    LONG = "It has 9 carp, 7 frogs, " + "and more " * 4
    ROWS = [
        {"id": "near", "question": "What?", "answer": "It has 9 carp.", "contexts": ["It has 9 carp."]},
        {"id": "far", "question": "What?", "answer": LONG, "contexts": ["It has 9 carp."] * 6 + ["x" * 2000]},
        {"id": "lost", "question": "What?", "answer": "It has 9 carp."},
    ]
    held = pytest.mark.rag_dataset([{**row, "reference": "It has 9 carp."} for row in ROWS],
        metrics={"NumbersAligned": 0.8, clutter: 0.2, "token_f1": None})
    @held
    def test_nothing(rag_sample): pass
    @held
    def test_first(rag_sample, rag_scores): assert rag_sample.id == "nowhere"
    @held
    def test_lenient(rag_scores, rag_sample):
        assert rag_sample.id == "lost" or rag_scores["numbers_aligned"] >= 0.1
    @held
    def test_strict(rag_scores, rag_sample): assert rag_scores["clutter"] <= 0.1
    @held
    @pytest.mark.xfail
    def test_expected(rag_sample): pass
    @held
    def test_skipped(rag_sample): pytest.skip("not today")
    @pytest.mark.usefixtures("rag_sample")
    class TestGrouped:
        @held
        @pytest.mark.parametrize("n", [1])
        def test_many(self, n): pass
"""


#: What becomes of the rows near, far and lost in each test.
HELD_OUTCOMES = {
    "test_nothing[{}]": ("passed", "failed", "failed"),
    "test_first[{}]": ("failed", "failed", "failed"),
    "test_lenient[{}]": ("passed", "failed", "failed"),
    "test_strict[{}]": ("failed", "failed", "failed"),
    "test_expected[{}]": ("xpassed", "xfailed", "xfailed"),
    "test_skipped[{}]": ("skipped", "skipped", "skipped"),
    "TestGrouped::test_many[{}-1]": ("passed", "failed", "failed"),
}


def assert_held(ran: Run) -> None:
    """Check that rows fail below bounds or without a score, and records say so, whatever the test itself asserts."""
    tests = ran.tests
    for test, outcomes in HELD_OUTCOMES.items():
        strict = {"near": 0.1, "far": 0.2} if "strict" in test else {"near": 0.2, "far": 0.2}
        for row, outcome in zip(("near", "far", "lost"), outcomes, strict=True):
            found = tests[f"test_held.py::{test.format(row)}"]
            assert found["outcome"] == outcome, (test, row)
            records = {record["metric"]: record for record in found["records"]}
            bounds = {name: record["threshold"] and record["threshold"]["bound"] for name, record in records.items()}
            states = {name: record["outcome"] for name, record in records.items()}
            if row == "lost":
                assert (states["numbers_aligned"], states["token_f1"]) == ("unscored", "measured")
            else:
                assert bounds == {"numbers_aligned": 0.8, "clutter": strict[row], "token_f1": None}
                assert states["numbers_aligned"] == ("passed" if row == "near" else "failed")
                assert states["clutter"] == ("passed" if row == "near" and strict[row] == 0.2 else "failed")


def test_each_row_is_held_to_its_bounds(run: RunPytest) -> None:
    result = run("-rA", "--rag-json=out.json", test_held=HELD)
    tests, output = result.tests, result.outlines
    assert_held(result)
    result.shows_all(
        "2 of 3 metrics fell short: numbers_aligned 0.50 < 0.80, clutter 0.60 > 0.20",
        "numbers_aligned 0.50 < 0.80: 1 of 2 numbers in no context",
        "*- RAG row 'far' -*",
        'question: "What[?]"',
        'answer: "It has 9 carp, 7 frogs, and more and more *"',
        'reference: "It has 9 carp."',
        'contexts[[]4[]]: "It has 9 carp."',
        "... and 2 more contexts",
        "1 of 3 metrics unscored",
        "numbers_aligned unscored: row 'lost': numbers_aligned: retrieved_contexts is missing; *",
        "FAILED test_held.py::test_nothing[[]far[]] - 2 of 3 metrics fell short: *",
    )
    failed = [name for name, test in tests.items() if test["outcome"] == "failed"]
    assert sum("RAG row " in line for line in output) == len(failed)
    assert "hidden" not in str(result.stdout)
    assert max(map(len, output)) < 800
    assert sum(line.startswith("numbers_aligned 0.50 < 0.80") for line in output) == str(failed).count("[far")
    assert sum(line.startswith("numbers_aligned unscored: row 'lost'") for line in output) == str(failed).count("[lost")
    table = next(line.split() for line in output if line.startswith("numbers_aligned  "))
    assert (table[1], table[-2:]) == ("14", ["7", "7"])


def test_workers_hold_rows_and_name_markers_as_one_process_does(run_once: RunPytest) -> None:
    ran = run_once(*MANY, ON, "--rag-json=out.json", test_held=HELD, **WRONG_FILES)
    assert_held(ran)
    assert_named(ran)
    # Markers that a hook added are errors of their test.
    ran.shows(
        "*ERROR at setup of test_hooked[[]q1[]]*",
        "test_elsewhere.py::test_hooked: marker rag_gate: it is added too late, by a hook or *",
        "test_elsewhere.py::test_hooked: marker rag_votes(0): it takes one whole number from 1 on; *",
    )
    assert ran.ret == pytest.ExitCode.TESTS_FAILED


def test_the_row_that_a_failure_shows_is_redacted(run: RunPytest) -> None:
    hook = "def pytest_ragmetrics_redact(text):\n    return text.replace('carp', '[fish]')"
    suite = HELD.replace("def test_nothing", "def test_secret").partition("    @held\n    def test_first")[0]
    result = run(conftest=hook, test_it=suite)
    result.shows('answer: "It has 9 [[]fish[]], 7 frogs, *', 'contexts[[]0[]]: "It has 9 [[]fish[]]."')
    assert "carp" not in str(result.stdout)


def test_rows_are_listed_without_being_scored(run: RunPytest, server: FakeOpenAI) -> None:
    result = run(*JUDGED, "--collect-only", "-q", test_it=GOLDEN.replace('"golden.jsonl"', repr(ROWS[:3])))
    result.shows(*(f"test_it.py::test_golden[[]r{number}[]]" for number in range(3)))
    assert server.calls == 0


OWN_COLUMNS = """
{columns}
@pytest.mark.rag_dataset("own.csv", metrics={{"lexical_grounding": 1.0}}{given})
def test_row(rag_sample): assert rag_sample.user_input == "How long?"
def test_tables(rag_evaluate):
    tables = [rag_evaluate("own.csv", ["lexical_grounding"]{given}), evaluate("own.csv", "lexical_grounding"{given})]
    assert [table.scores("lexical_grounding") for table in tables] == [[1.0], [1.0]]
@pytest.mark.rag_dataset([{{"answer": "a", "contexts": ["b"]}}])
def test_of_our_names(rag_sample): assert (rag_sample.response, rag_sample.user_input) == ("a", None)
"""
COLUMNS = '{"question": "Ask", "response": "Said", "contexts": "passages"}'


@pytest.mark.parametrize(
    ("columns", "ini", "said"),
    [
        (COLUMNS, "", ""),
        ("", "question = Ask\n    contexts = passages\n    response = Said", ""),
        ("", "question = Ask, contexts = passages, response = Said, reference = nowhere", ""),
        ("", "qestion = Ask", "ERROR: ini option rag_columns: columns: 'qestion=Ask' is not FIELD=COLUMN *"),
        (COLUMNS.replace("Ask", "ask"), "", "*marker rag_dataset: own.csv: columns names 'ask', which no row has; *"),
    ],
)
def test_columns_of_other_names(run: RunPytest, pytester: pytest.Pytester, columns: str, ini: str, said: str) -> None:
    pytester.makeini(f"[pytest]\nrag_columns = {ini}")
    (pytester.path / "own.csv").write_text('Ask,Said,passages\nHow long?,Two minutes.,"[""Two minutes.""]"\n', "utf-8")
    given = ", columns=COLUMNS" if columns else ""
    result = run(test_it=OWN_COLUMNS.format(columns=f"COLUMNS = {columns or None}", given=given))
    if said:
        (result.stderr if said.startswith("ERROR") else result.stdout).fnmatch_lines([said])
    else:
        result.assert_outcomes(passed=3)
