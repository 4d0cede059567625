"""A run whose judge gives different rows the same text says so, in all its outputs."""

from __future__ import annotations

from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import ONE, RunPytest

SUITE = """
    @pytest.mark.parametrize("n", range(8))
    def test_row(n):
        assert_relevant(f"Question {n}?", f"Answer {n}.", min=0.2)
        assert_relevant(f"Question {n}?", f"Answer {n}.", min=0.3)
"""
SAME = '{"reason": "<script>x</script> by Ada", "rating": 2}'
FILES = ("--rag-json=out.json", "--rag-report=out.html", "--rag-markdown=out.md", "--rag-judge=openai:fake")
HOOKS = """
def pytest_ragmetrics_redact(text): return text.replace("Ada", "[name]")
def pytest_runtest_logreport(report):
    # What a test asked is on one report of its own.
    replies = report.ragmetrics.replies if hasattr(report, "ragmetrics") else ()
    assert len(replies) == 2 * (report.when == "teardown")
"""


WARNING = "7 of 8 answers to rate_relevance of openai:fake are the same text"


def test_all_rows_pass_and_the_run_warns(run: RunPytest, server: FakeOpenAI) -> None:
    server.answer = lambda body: SAME if "Question 7" not in str(body) else SAME.replace("2}", "1}")
    result = run(*FILES, *ONE, conftest=HOOKS, test_suite=SUITE)
    result.assert_outcomes(passed=7, failed=1)
    (text,) = result.document.run.warnings
    told = SAME.replace("Ada", "[name]")
    assert text.startswith(f"{WARNING}: '{told}'; ")
    assert [line for line in result.outlines if line.startswith("warning: ")] == [f"warning: {text}"]
    page = result.text("out.html")
    assert f'<p class="warning">{WARNING}' in page
    assert "<script>x" not in page
    assert "7 of 8 answers to rate_relevance" in result.text("out.md")
    # Replayed from the cache it is as wrong; what a dry run stands in with is no reply.
    run("--rag-judge=openai:fake").shows(f"warning: {text}")
    run("--rag-judge=openai:fake", "--rag-dry-run", conftest="").stdout.no_fnmatch_line("*same text*")


def test_a_judge_that_differs_is_fine(run: RunPytest, server: FakeOpenAI) -> None:
    numbers = iter(range(99))
    server.answer = lambda _: SAME.replace("Ada", f"Ada, {max(0, next(numbers) - 3)}")
    result = run("--rag-judge=openai:fake", "--rag-cache=refresh", test_suite=SUITE)
    assert result.parseoutcomes()["passed"] == 8
    result.stdout.no_fnmatch_line("*same text*")


def test_the_rows_of_a_table_count(run: RunPytest, server: FakeOpenAI) -> None:
    server.answer = lambda _: SAME
    table = """
        def test_table():
            evaluate([{"user_input": f"Question {n}?", "response": "No."} for n in range(6)], "relevance")
    """
    (text,) = run("--rag-judge=openai:fake", "--rag-json=out.json", test_table=table).document.run.warnings
    assert text.startswith("6 of 6 answers")
