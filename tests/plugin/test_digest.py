"""--rag-digest: failures for a reader that pays by the token."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tests.plugin.conftest import ONE, RunPytest

#: A suite whose tests fail in each way: pieces of an answer, no score, an error in a fixture, an assert, rows, a gate.
SUITE = {
    "test_assistant": """
        from pytest_ragmetrics.metrics import Metric, QuotedSpansAlignment
        from tests.documents import HANDBOOK
        ANSWER = (
            "A full plot costs “62 pounds a year for a full plot and 34 pounds for a half plot”. You may lose it when "
            "it is “left uncultivated for six weeks in the summer”, and “hoses may be used at any time of the day”."
        )
        class Mood(Metric):
            name = "mood"
            def measure(self, sample):
                raise UnscoredError("the judge returned 2 verdicts for 3 claims")
        @pytest.mark.parametrize("topic", ["rent and water"])
        def test_quotes_are_real(topic):
            question = "What does a plot cost, and when can I lose it?"
            assert_quoted_spans_aligned(ANSWER, HANDBOOK, question=question, min=0.9)
        def test_bees():
            assert_metric(Mood(), Sample(user_input="May I keep bees?", response="Ask the committee."), min=0.8)
        def connect(port):
            raise ConnectionRefusedError(111, "Connection refused")
        @pytest.fixture
        def index():
            return connect(port=6333)
        def test_index_is_fresh(index):
            assert index.age < 60
        def test_length():
            answer = "It is “62 pounds a year for a full plot”."
            assert QuotedSpansAlignment().score(response=answer, retrieved_contexts=HANDBOOK) >= 0.9
            assert len(answer) < 20
        @pytest.mark.parametrize("text", ["تقول الصفحة إن المكتبة «تغلق يوم الخميس»."], ids=["arabic"])
        def test_library_hours(text):
            page = "تفتح المكتبة أبوابها من الساعة التاسعة صباحا حتى السادسة مساء، وتغلق يوم الجمعة."
            assert QuotedSpansAlignment().score(response=text, retrieved_contexts=[page]) >= 0.9
    """,
    "test_golden": """
        from tests.documents import HANDBOOK
        ROWS = [
            {"id": f"row-{n}", "question": f"Question {n}?", "contexts": HANDBOOK, "answer": f"Its rule: “{said}”."}
            for n, said in enumerate(["no dogs in spring", "no cats in autumn", *["no higher than two metres"] * 13])
        ]
        @pytest.mark.rag_gate("quoted_spans_alignment", rate=0.9, min=0.8)
        @pytest.mark.rag_dataset(ROWS, metrics={"quoted_spans_alignment": 0.8})
        def test_golden(rag_scores):
            assert rag_scores
    """,
}
QUIET = ("-q", "--disable-warnings", "-p", "no:cacheprovider")
DIGEST = """\
test_assistant.py
15 test_quotes_are_real[rent and water] quoted_spans_alignment 0.33 < 0.90: 2/3 not found
 "hoses may be used at any time of the day" response[165:205] contexts[1]: at any time of the day -> before \
nine in the morning
 "left uncultivated for six weeks in the summer" response[112:157] contexts[0]: six -> eight, +the
17 test_bees mood unscored: the judge returned 2 verdicts for 3 claims
22 test_index_is_fresh setup ConnectionRefusedError: [Errno 111] Connection refused at line 19
28 test_length AssertionError: assert 41 < 20
32 test_library_hours[arabic] quoted_spans_alignment 0.00 < 0.90: 1/1 not found
 "تغلق يوم الخميس" response[24:39] contexts[0]: تغلق -> وتغلق, الخميس -> الجمعة.
test_golden.py
7 test_golden[gate-quoted_spans_alignment-rate-0.9-min-0.8] quoted_spans_alignment pass rate 0.87 < 0.90 (13 of 15 \
scores >= 0.8): failed
[row-0] quoted_spans_alignment 0.00 < 0.80: 1/1 not found
 "no dogs in spring" response[11:28]: not found in any context
[row-1] quoted_spans_alignment 0.00 < 0.80: 1/1 not found
 "no cats in autumn" response[11:28]: not found in any context"""


def failures(run: RunPytest, *args: str) -> str:
    """Run the suite with some options; return what stands between the progress and the summary of the metrics."""
    result = run(*QUIET, *args, env={"PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "80"}, **SUITE)
    result.assert_outcomes(failed=7, errors=1, passed=13)
    _, _, rest = "\n".join(result.outlines).partition("[100%]\n")
    sections, _, end = rest.partition("================================= RAG metrics")
    _, _, names = end.partition("short test summary info")
    return sections.strip() + names.rpartition("\n")[0]


def test_each_failure_takes_a_few_lines(run: RunPytest) -> None:
    """The digest has every piece that pytest's own text has, in a fifth of its tokens."""
    assert failures(run, "--rag-digest") == DIGEST
    full = failures(run)
    assert tokens(DIGEST) <= 0.2 * tokens(full)
    wrong = re.findall(r'^ "(.*?)"', DIGEST, re.MULTILINE)
    assert len(wrong) == 5
    assert [text for text in wrong if text in full] == wrong


def test_workers_change_nothing(run: RunPytest) -> None:
    assert failures(run, "--rag-digest", "--tb=short", *ONE) == DIGEST
    without = {"15 test_q": "12 test_q", "17 test_b": "16 test_b", "22 test_i": "23 test_i", "28 test_l": "25 test_l"}
    expected = DIGEST.replace(" at line 19", "").replace("32 test_library", "29 test_library")
    for line, of_test in without.items():
        expected = expected.replace(line, of_test)
    for style in ("no", "native"):
        assert failures(run, "--rag-digest", f"--tb={style}") == expected


def tokens(text: str) -> int:
    """Return the number of tokens of o200k where its vocabulary is installed; else of words and signs."""
    if find_spec("quicktok") is None:
        return len(re.findall(r"\w+|[^\w\s]", text))
    return len(import_module("quicktok").get_encoding("o200k_base").encode(text))
