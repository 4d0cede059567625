"""--rag-digest: failures for a reader that pays by the token."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.plugin.conftest import MANY, Run, RunOnce
from tests.showcase import showcase

#: The failing tests of the showcase, as a person writes them.
SUITE = {
    "replayed": """
        from types import SimpleNamespace
        from pytest_ragmetrics import UnscoredError
        from pytest_ragmetrics.metrics import Metric, metric_named
        from pytest_ragmetrics.records import result_of
        from tests.showcase import showcase

        RECORDS = [record for test in showcase().tests for record in test.records]

        def ask(question):
            sample = next(record.sample for record in RECORDS if record.sample.user_input == question)
            return SimpleNamespace(text=sample.response, contexts=list(sample.retrieved_contexts))

        def scored_as(name):
            def measure(self, sample):
                found = next(it for it in RECORDS if it.metric == name and it.sample.response == sample.response)
                if found.score is None:
                    raise UnscoredError(found.reason)
                return result_of(found)

            known = metric_named(name)
            words = {"measure": measure, "name": name, "noun": known.noun, "complaint": known.complaint}
            return type("Replayed", (Metric,), words)()
    """,
    "conftest": """
        from replayed import scored_as

        RELEVANCY = scored_as("answer_relevancy")

        def pytest_ragmetrics_register_metrics():
            return [RELEVANCY]
    """,
    "test_assistant": """
        import pytest
        from pytest_ragmetrics import Sample, assert_metric
        from replayed import ask, scored_as


        @pytest.mark.parametrize("topic", ["rent and water"])
        def test_quotes_are_real(topic):
            question = "What does a plot cost, and when can I lose it?"
            answer = ask(question)
            sample = Sample(user_input=question, response=answer.text, retrieved_contexts=answer.contexts)
            assert_metric(scored_as("quoted_spans_alignment"), sample, min=0.9)


        def test_shed_size():
            question = "How big may my shed be?"
            answer = ask(question)
            sample = Sample(user_input=question, response=answer.text, retrieved_contexts=answer.contexts)
            assert_metric(scored_as("answer_relevancy"), sample, min=0.7)
            assert_metric(scored_as("faithfulness"), sample, min=0.8)


        def test_bees():
            question = "May I keep bees?"
            answer = ask(question)
            sample = Sample(user_input=question, response=answer.text, retrieved_contexts=answer.contexts)
            assert_metric(scored_as("faithfulness"), sample, min=0.8)


        def connect(port):
            raise ConnectionRefusedError(111, "Connection refused")


        @pytest.fixture
        def index():
            return connect(port=6333)


        def test_index_is_fresh(index):
            assert index.age < 60


        def test_length():
            answer = ask("Rent?")
            score = scored_as("quoted_spans_alignment").score(response=answer.text, retrieved_contexts=answer.contexts)
            assert score >= 0.9
            assert len(answer.text) < 20


        @pytest.mark.parametrize("question", ["متى تفتح المكتبة؟"], ids=["arabic"])
        def test_library_hours(question):
            answer = ask(question)
            score = scored_as("quoted_spans_alignment").score(response=answer.text, retrieved_contexts=answer.contexts)
            assert score >= 0.9
    """,
    "test_golden": """
        import pytest
        from tests.documents import HANDBOOK

        ROWS = [
            {"id": f"row-{n}", "question": f"Question {n} of the golden set?", "answer": f"Answer {n}.",
             "contexts": HANDBOOK}
            for n in range(15)
        ]


        @pytest.mark.rag_gate("answer_relevancy", rate=0.9, min=0.8)
        @pytest.mark.rag_dataset(ROWS, metrics={"answer_relevancy": 0.8})
        def test_golden(rag_scores):
            assert rag_scores
    """,
}
QUIET = ("-q", "-p", "no:cacheprovider")
DIGEST = """\
test_assistant.py
12 test_quotes_are_real[rent and water] quoted_spans_alignment 0.33 < 0.90: 2/3 not found
 "hoses may be used at any time of the day" response[216:256] contexts[1]: hoses -> watering cans, +of the day
 "left uncultivated for six weeks in the summer" response[150:195] contexts[0]: six -> eight, +the
20 test_shed_size faithfulness 0.50 < 0.80: 2/4 not supported
 "Most members choose cedar for their shed.": None of the passages says what sheds are made of.
 "A concrete base is recommended for a shed." suspicious contexts[2][224:261]: The passage forbids concrete foundations.
27 test_bees faithfulness unscored: the judge returned 2 verdicts for 3 claims, also after it was asked to repair its \
answer
36 test_index_is_fresh setup ConnectionRefusedError: [Errno 111] Connection refused at line 31
47 test_length assert 41 < 20
54 test_library_hours[arabic] quoted_spans_alignment 0.50 < 0.90: 1/2 not found
 "تغلق يوم الخميس" response[24:39] contexts[0]: تغلق -> وتغلق, الخميس -> الجمعة
test_golden.py
12 test_golden[gate-answer_relevancy-rate-0.9-min-0.8] answer_relevancy pass rate 0.87 < 0.90 (13 of 15 scores >= \
0.8): failed
[row-0] answer_relevancy 0.62 < 0.80: mean similarity of 3 questions: 0.62
[row-1] answer_relevancy 0.7996 < 0.8000: mean similarity of 3 questions: 0.7996"""


@pytest.fixture(scope="module")
def run_showcase(run_once: RunOnce) -> RunOnce:
    """Run the suite of the showcase with some options."""
    root = str(Path(__file__).parents[2])

    def run(*args: str) -> Run:
        return run_once(*QUIET, *args, env={"PYTHONPATH": root, "COLUMNS": "80", "CI": ""}, **SUITE)

    return run


@pytest.fixture(scope="module")
def digest(run_showcase: RunOnce) -> str:
    """Return what a run with the option says of its failures."""
    return _failures(run_showcase("--rag-digest"))


def _failures(run: Run) -> str:
    """Return the output on failures: behind the progress, without the summary of the metrics and the last line."""
    run.result.assert_outcomes(failed=8, errors=1, passed=13)
    _, _, rest = "\n".join(run.result.outlines).partition("[100%]\n")
    sections, _, end = rest.partition("================================= RAG metrics")
    _, _, names = end.partition("short test summary info")
    return sections.strip() + names.rpartition("\n")[0]


def test_each_failure_takes_a_few_lines(digest: str) -> None:
    """A line for a test and its score, one for each piece with its place and what to look at; errors with places."""
    assert digest == DIGEST


def test_a_fifth_of_the_tokens_has_the_same_pieces(run_showcase: RunOnce, digest: str) -> None:
    """The digest has every piece that pytest's own text has, in a fifth of its tokens."""
    full = _failures(run_showcase())
    assert tokens(digest) <= 0.2 * tokens(full)
    wrong = [it.text for test in showcase().tests for record in test.records for it in record.verdicts if not it.ok]
    assert [text for text in wrong if text in full] == wrong
    assert [text for text in wrong if text in digest] == wrong


def test_workers_change_nothing(run_showcase: RunOnce, digest: str) -> None:
    """With xdist, and where other options leave the tracebacks out, the digest is the same."""
    many = _failures(run_showcase("--rag-digest", "--tb=line", *MANY))
    assert many == digest


def tokens(text: str) -> int:
    """Return the number of tokens of o200k where its vocabulary is installed; else of words and signs."""
    if find_spec("quicktok") is None:
        return len(re.findall(r"\w+|[^\w\s]", text))
    return len(import_module("quicktok").get_encoding("o200k_base").encode(text))
