"""Data sets in a suite: one test per row, with its sample and its scores."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.fake_openai import FakeOpenAI, truncated

RunPytest = Callable[..., pytest.RunResult]
Scored = Callable[[], dict[str, dict[str, Any]]]

LOCAL = ("--rag-judge=local", "--rag-embedder=local")
JUDGED = ("--rag-judge=openai:gpt-mine",)
GOLDEN = """
    import pytest
    @pytest.mark.rag_dataset("golden.jsonl", metrics=["faithfulness"])
    def test_golden(rag_sample, rag_scores):
        assert rag_sample.response
        assert rag_scores["faithfulness"] >= 0.8
"""


@pytest.fixture
def golden(pytester: pytest.Pytester) -> Callable[..., None]:
    """Write rows to ``golden.jsonl``; a number stands for as many sound ones."""

    def write(rows: int | list[dict[str, Any]]) -> None:
        made = [row(number) for number in range(rows)] if isinstance(rows, int) else rows
        (pytester.path / "golden.jsonl").write_text("".join(json.dumps(each) + "\n" for each in made), "utf-8")

    return write


def row(number: int, **changed: Any) -> dict[str, Any]:
    """Return a row whose response is borne out by its context."""
    text = f"Basin {number} holds nine carp."
    return {"id": f"r{number}", "question": f"What of basin {number}?", "answer": text, "contexts": [text], **changed}


def test_each_row_is_a_test(run: RunPytest, server: FakeOpenAI, golden: Callable[..., None], scored: Scored) -> None:
    """The tests are named by the rows, each has the scores of its own row, and every request was made once."""
    golden(5)
    result = run(*JUDGED, "-v", "--rag-json=out.json", test_it=GOLDEN)
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines([f"test_it.py::test_golden[[]r{number}[]] PASSED*" for number in range(5)])
    assert server.calls == 10
    for number, test in enumerate(scored().values()):
        (record,) = test["records"]
        assert record["sample"]["response"] == f"Basin {number} holds nine carp."
        assert record["threshold"] == {"operator": ">=", "bound": 0.8}
        assert record["usage"]["calls"] == 2


def test_methods_classes_and_other_parameters(run: RunPytest, no_provider: None, golden: Callable[..., None]) -> None:
    """The marker works on functions, methods and classes, beside other parameters, and the nearest one counts."""
    golden(2)
    run(
        *LOCAL,
        test_it="""
            import pytest
            @pytest.mark.rag_dataset("golden.jsonl")
            class TestBoth:
                def test_all(self, rag_sample):
                    assert rag_sample.id in ("r0", "r1")
                @pytest.mark.parametrize("depth", [1, 2, 3])
                @pytest.mark.rag_dataset("golden.jsonl", metrics="numbers_aligned", limit=1)
                def test_first(self, depth, rag_sample, rag_scores):
                    assert (rag_sample.id, list(rag_scores)) == ("r0", ["numbers_aligned"])
        """,
    ).assert_outcomes(passed=5)


def test_rows_may_be_a_list_and_chosen(run: RunPytest, no_provider: None) -> None:
    """A list of rows or samples is a data set too; where= and limit= choose among its rows."""
    run(
        *LOCAL,
        test_it="""
            import pytest
            from pytest_ragmetrics import Sample
            ROWS = [Sample(id=str(n), response="Moss.", metadata={"even": n % 2 == 0}) for n in range(9)]
            @pytest.mark.rag_dataset(ROWS, where=lambda sample: sample.metadata["even"], limit=3)
            def test_it(rag_sample):
                assert rag_sample.id in ("0", "2", "4")
        """,
    ).assert_outcomes(passed=3)


def test_a_file_is_read_once(run: RunPytest, no_provider: None, golden: Callable[..., None]) -> None:
    """Two tests on one file share what was read."""
    golden(2)
    run(
        *LOCAL,
        conftest="""
            import pathlib
            import pytest
            @pytest.hookimpl(trylast=True)
            def pytest_generate_tests(metafunc):
                pathlib.Path("golden.jsonl").unlink(missing_ok=True)
        """,
        test_it="""
            import pytest
            @pytest.mark.rag_dataset("golden.jsonl")
            def test_one(rag_sample):
                pass
            @pytest.mark.rag_dataset("golden.jsonl")
            def test_two(rag_sample):
                pass
        """,
    ).assert_outcomes(passed=4)


def test_a_broken_row_fails_alone(run: RunPytest, no_provider: None, golden: Callable[..., None]) -> None:
    """The test of a row that is no sample names row, file and line; the others run."""
    golden([row(0), row(1, answer=4), row(2)])
    result = run(*LOCAL, test_it=GOLDEN)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["*ERROR at setup of test_golden[[]r1[]]*", "golden.jsonl:2: field 'answer': row r1: *"]
    )


def test_an_unscored_metric_fails_who_looks_at_it(
    run: RunPytest, server: FakeOpenAI, golden: Callable[..., None]
) -> None:
    """One row's metric without a score fails the test that needs it; the test of the same row that does not, passes."""
    golden([row(0), row(1, contexts=None)])
    result = run(
        *JUDGED,
        "--rag-json=out.json",
        test_it="""
            import pytest
            @pytest.mark.rag_dataset("golden.jsonl", metrics=["faithfulness", "relevance"])
            @pytest.mark.parametrize("metric", ["faithfulness", "relevance"])
            def test_golden(rag_scores, metric):
                assert metric in rag_scores and len(rag_scores) == 2
                assert rag_scores[metric] >= 0
        """,
    )
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        ["E *UnscoredError: row 'r1' (golden.jsonl:2): faithfulness: retrieved_contexts is missing; *"]
    )


def test_a_failing_judge_leaves_a_row_unscored(
    run: RunPytest, server: FakeOpenAI, golden: Callable[..., None], scored: Scored
) -> None:
    """What the judge could not answer is an unscored record of that row, and no other row is touched."""
    golden(3)
    server.script(truncated())
    result = run(*JUDGED, "--rag-concurrency=1", "--rag-json=out.json", test_it=GOLDEN)
    result.assert_outcomes(passed=2, failed=1)
    outcomes = [test["records"][0]["outcome"] for test in scored().values()]
    assert outcomes == ["unscored", "passed", "passed"]


def test_a_metric_that_was_not_asked_for(run: RunPytest, no_provider: None, golden: Callable[..., None]) -> None:
    """Looking up another metric says which there are, and what to write."""
    golden(1)
    result = run(
        *LOCAL,
        test_it="""
            import pytest
            @pytest.mark.rag_dataset("golden.jsonl", metrics=["NumbersAligned"])
            def test_it(rag_scores):
                assert rag_scores["numbers_aligned"] is rag_scores["NumbersAligned"]
                assert "faithfulness" not in rag_scores
                rag_scores["faithfulness"]
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E *'faithfulness' was not scored: there are numbers_aligned; write *metrics=[[]'fai*"]
    )


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("", "it takes one source, not 0; write @pytest.mark.rag_dataset*"),
        ("'golden.jsonl', 'other.jsonl'", "it takes one source, not 2*"),
        ("'golden.jsonl', metric='x'", "it knows no metric; write *"),
        ("'golden.jsonl', metrics=['faithfulnes']", "there is no metric 'faithfulnes': did you mean faithfulness*"),
        ("'golden.jsonl', metrics=3", "metrics=3 are no metrics; write *"),
        ("'golden.jsonl', metrics=['faithfulness', 'Faithfulness']", "two metrics of one name: faithfulness"),
        ("'nowhere.jsonl'", "*nowhere.jsonl*"),
        ("'golden.jsonl', limit=0", "*limit is 0*"),
    ],
)
def test_a_wrong_marker_is_a_usage_error(
    run: RunPytest, no_provider: None, golden: Callable[..., None], marker: str, said: str
) -> None:
    """A marker that cannot be used ends the run with status 4 before any test, and names the test."""
    golden(1)
    result = run(
        *LOCAL,
        test_wrong=f"""
            import pytest
            def test_first():
                pass
            @pytest.mark.rag_dataset({marker})
            def test_it(rag_sample):
                pass
        """,
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: test_wrong.py::test_it: marker rag_dataset: {said}"])
    result.stdout.no_fnmatch_line("*passed*")


def test_a_test_that_takes_no_row(run: RunPytest, no_provider: None, golden: Callable[..., None]) -> None:
    """A marker above a test that does not ask for its row is an error that says what to write."""
    golden(1)
    result = run(
        *LOCAL,
        test_wrong="""
            import pytest
            @pytest.mark.rag_dataset("golden.jsonl")
            def test_it():
                pass
        """,
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *test_it: marker rag_dataset: *; write def test_it(rag_sample, rag_scores)"])


def test_two_data_sets_on_one_test(run: RunPytest, no_provider: None, golden: Callable[..., None]) -> None:
    """A second marker on one function would be lost without a word, so it ends the run; a class may have another."""
    golden(1)
    suite = """
        import pytest
        {}
        class TestBoth:
            @pytest.mark.rag_dataset("golden.jsonl")
            {}
            def test_it(self, rag_sample):
                pass
    """
    other = '@pytest.mark.rag_dataset([{"id": "other", "question": "Why?"}])'
    run(*LOCAL, test_it=suite.format(other, "")).assert_outcomes(passed=1)
    result = run(*LOCAL, test_it=suite.format("", other))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *::test_it: marker rag_dataset: a test is made of one data set; *"])


def test_a_method_of_unittest_gets_no_rows(run: RunPytest, no_provider: None) -> None:
    """Pytest makes no tests of parameters there: the marker ends the run instead of meaning nothing."""
    result = run(
        test_wrong="""
            import pytest, unittest
            class TestIt(unittest.TestCase):
                @pytest.mark.rag_dataset([{"id": "q1", "question": "Why?"}])
                def test_it(self):
                    pass
        """,
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: test_wrong.py::TestIt::test_it: marker rag_dataset: it means nothing on *"])


@pytest.mark.parametrize(
    "marker", ['rag_gate("faithfulness", mean=0.5)', 'rag_dataset([{"id": "q1", "question": "Why?"}])']
)
def test_a_marker_that_a_hook_adds_comes_too_late(run: RunPytest, no_provider: None, marker: str) -> None:
    """No test per row and no gate can be made any more, which is said."""
    hook = f"""
        import pytest
        def pytest_collection_modifyitems(items):
            items[0].add_marker(pytest.mark.{marker})
    """
    result = run(conftest=hook, test_it="def test_it(): pass")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    name = marker.partition("(")[0]
    result.stderr.fnmatch_lines([f"ERROR: test_it.py::test_it: marker {name}: *, nor where a hook adds it: write it *"])


def test_a_row_without_a_marker(run: RunPytest, no_provider: None) -> None:
    """A test that asks for a row and has no marker is told to get one."""
    result = run(test_wrong="def test_it(rag_scores): pass")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["rag_sample is of a test per row; write @pytest.mark.rag_dataset(*"])


def test_the_judge_of_the_marker(run: RunPytest, server: FakeOpenAI, golden: Callable[..., None]) -> None:
    """Rows are judged ahead by the judge of their own tests, not by that of the test that runs."""
    golden(2)
    run(
        *JUDGED,
        test_it="""
            import pytest
            @pytest.mark.rag_dataset("golden.jsonl", metrics=["relevance"])
            def test_run(rag_scores):
                assert rag_scores["relevance"].judge == "openai:gpt-mine"
            @pytest.mark.rag_judge("openai:gpt-other")
            @pytest.mark.rag_dataset("golden.jsonl", metrics=["relevance"])
            def test_marked(rag_scores):
                assert rag_scores["relevance"].judge == "openai:gpt-other"
        """,
    ).assert_outcomes(passed=4)
    assert server.calls == 4


def test_a_table_in_one_test(run: RunPytest, server: FakeOpenAI, golden: Callable[..., None], scored: Scored) -> None:
    """rag_evaluate scores a file next to the test, or rows, with the judge of the run; a broken row is unscored."""
    golden([row(0), row(1, answer=4), row(2)])
    run(
        *JUDGED,
        "--rag-json=out.json",
        test_it="""
            import pytest
            from pytest_ragmetrics import UnscoredError
            def test_file(rag_evaluate):
                table = rag_evaluate("golden.jsonl", ["relevance"])
                assert [row.sample.id for row in table.rows] == ["r0", "r1", "r2"]
                assert table.scores("relevance")[1] is None
                assert "golden.jsonl:2" in table.rows[1].unscored["relevance"]
            def test_rows(rag_evaluate):
                rows = ({"question": "Is it blue?", "answer": f"Blue {n}."} for n in range(4))
                assert rag_evaluate(rows, "relevance", limit=2).stats()["relevance"].n == 2
        """,
    ).assert_outcomes(passed=2)
    assert server.calls == 4
    assert [len(test["records"]) for test in scored().values()] == [2, 2]


def test_rows_are_listed_without_being_scored(run: RunPytest, server: FakeOpenAI, golden: Callable[..., None]) -> None:
    """--collect-only names the rows and asks nobody."""
    golden(3)
    result = run(*JUDGED, "--collect-only", "-q", test_it=GOLDEN)
    result.stdout.fnmatch_lines([f"test_it.py::test_golden[[]r{number}[]]" for number in range(3)])
    assert server.calls == 0


@pytest.mark.usefixtures("no_provider")
def test_the_lowest_score_is_recorded_with_its_threshold(run: RunPytest, scored: Scored) -> None:
    """0.0 is a score like any other: the record says what it was held against, and that it fell short."""
    run(
        "--rag-json=out.json",
        test_it="""
            import pytest
            ROWS = [{"id": "bad", "answer": "Blue pumps.", "contexts": ["Valves."]}]
            @pytest.mark.rag_dataset(ROWS, metrics=["lexical_grounding"])
            def test_it(rag_sample, rag_scores):
                assert rag_scores["lexical_grounding"] >= 0.1
        """,
    ).assert_outcomes(failed=1)
    (record,) = scored()["test_it.py::test_it[bad]"]["records"]
    assert (record["score"], record["outcome"]) == (0.0, "failed")
    assert record["threshold"] == {"operator": ">=", "bound": 0.1}
