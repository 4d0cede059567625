"""What became better and worse since a committed run: the option, and the assertion over a whole set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_ragmetrics.plugin.report import read_baseline
from tests.plugin.conftest import MANY, RunPytest, unpacked

SUITE = """
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    ANSWERS = {answers}
    @pytest.mark.parametrize("name", sorted(ANSWERS))
    def test_row(name): QuotedSpansAlignment().score(response=ANSWERS[name], retrieved_contexts=[SOURCE])
"""
BEFORE = {"test_suite": SUITE.replace("{answers}", "dict(a=TRUE, b=FALSE, c=TRUE, gone=TRUE)")}
AFTER = {"test_suite": SUITE.replace("{answers}", "dict(a=FALSE, b=TRUE, c=TRUE, new=TRUE)")}
RULES = """
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    ROWS = [{"id": f"q{n}", "answer": "'moths fly at night'", "contexts": ["moths fly at night"]} for n in range(6)]
    @metric
    def brevity(response): return len(response) < 80
    @pytest.mark.rag_gate("brevity", regression=True)
    @pytest.mark.rag_gate("spans", regression=True)
    @pytest.mark.rag_dataset(ROWS, metrics=["brevity", QuotedSpansAlignment(name="spans", min_span_words=3)])
    def test_rules(rag_scores): pass
"""
CHANGED_RULES = RULES.replace("< 80", "< 70").replace("_words=3", "_words=2")


@pytest.fixture
def baseline(run: RunPytest, pytester: pytest.Pytester) -> Path:
    """Return the file that an earlier run left behind."""
    run("--rag-json=baseline.json", **BEFORE).assert_outcomes(passed=4)
    return pytester.path / "baseline.json"


def test_what_changed_is_in_every_output(run: RunPytest) -> None:
    run("--rag-json=baseline.json", **BEFORE, test_rules=RULES).assert_outcomes(passed=10, skipped=2)
    files = ("--rag-report=a.html", "--rag-markdown=a.md", "--rag-json=a.json")
    result = run(*MANY, "--dist=loadscope", "--rag-baseline=baseline.json", *files, **AFTER, test_rules=CHANGED_RULES)
    result.assert_outcomes(passed=12)
    said = "against the baseline: 1 better, 1 worse, 1 the same, 1 new, 1 gone"
    result.shows_all(
        said,
        "  worse: test_suite.py::test_row[[]a[]]: quoted_spans_alignment 1.000 -> 0.000 (-1.000)",
        "  not compared: 6 of brevity: its code changed",
        "  not compared: 6 of spans: its parameters changed",
        "brevity: judged nothing anew, though its code changed: 6 answers are the same in both",
        "spans: judged nothing anew, though its parameters changed: 6 answers are the same in both",
    )
    assert result.stdout.str().count(said) == 1
    assert "1 better, 1 worse" in result.text("a.md")
    assert "Not compared: 6 of brevity: its code changed" in result.text("a.html")
    assert json.loads(result.text("a.json"))["run"]["settings"]["baseline"] == "baseline.json"


def test_the_baseline_may_be_written_anew(
    run: RunPytest, baseline: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run("--rag-baseline=baseline.json", "--rag-json=baseline.json", **AFTER)
    result.shows("against the baseline: 1 better, 1 worse, *", "*baseline.json: written")
    pytester.makeini("[pytest]\nrag_baseline = baseline.json")
    monkeypatch.chdir(pytester.mkdir("sub"))
    run("..").shows("against the baseline: 0 better, 0 worse, 4 the same")
    pytester.makepyfile(test_plain="def test_plain(): pass")
    run("test_plain.py").stdout.no_fnmatch_line("*baseline: *")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON: .*; give a file that --rag-json wrote"),
        ("[]", "not the result of a run: "),
        ('{"version": 99}', "it is of version 99, and this release reads version 1"),
        ('{"version": 1, "run": {}, "tests": []}', "run lacks started"),
    ],
)
def test_a_baseline_that_cannot_be_read_is_named(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "other.json").write_text(content, encoding="utf-8")
    with pytest.raises(pytest.UsageError, match=rf"^--rag-baseline: .*other\.json: {said}"):
        read_baseline(tmp_path / "other.json")


def test_a_baseline_that_cannot_be_read_ends_the_run_before_it_begins(run: RunPytest) -> None:
    run("--rag-baseline=texts.py", *MANY, **AFTER).refused("ERROR: --rag-baseline: *texts.py: not JSON: *")


GOLDEN = """
    ANSWERS = [TRUE, *[{second}] * 5, TRUE]
    def test_golden(request):
        rows = [{{"id": f"q{{n}}", "answer": answer, "contexts": [SOURCE]}} for n, answer in enumerate(ANSWERS)]
        table = evaluate(rows, ["quoted_spans_alignment"])
        assert_mean(table, 0.25)
        if request.config.getoption("--rag-baseline"):
            assert_no_regression(table)
"""


def test_a_run_is_held_against_the_file_of_an_earlier_one(run: RunPytest) -> None:
    run("--rag-json=main.json", test_it=GOLDEN.format(second="TRUE")).assert_outcomes(passed=1)
    run("--rag-baseline=main.json").assert_outcomes(passed=1)
    result = run("--rag-baseline=main.json", test_it=GOLDEN.format(second="FALSE"))
    result.shows("E*AssertionError: quoted_spans_alignment 1.00 -> 0.29: 5 of 7 rows got worse, *", "E*regressed: 5")
    result.stdout.no_fnmatch_line("*suites.py*")  # no frame of the package


def test_the_answers_of_a_baseline_are_redacted(run: RunPytest, baseline: Path) -> None:
    baseline.write_text(baseline.read_text("utf-8").replace('"response": "', '"response": "SECRET '), "utf-8")
    hook = "def pytest_ragmetrics_redact(text):\n    return text.replace('SECRET', '[name]')"
    page = unpacked(run("--rag-baseline=baseline.json", "--rag-report=a.html", conftest=hook, **AFTER).text("a.html"))
    assert ("[name]" in page, "SECRET" in page) == (True, False)


#: A metric of one's own, a judge with a model that the environment names, and gates over six rows.
GATED = """
    @pytest.fixture(scope="session")
    def rag_respond(): return lambda sample: {"response": "Moss grows.", "contexts": ["Moss grows."]}
    @pytest.mark.rag_gate("length", regression=True)
    @pytest.mark.rag_gate("relevance", regression=True)
    @pytest.mark.rag_dataset([{"id": f"q{n}", "question": f"What is {n}?"} for n in range(6)],
                             metrics=["length", "relevance"])
    def test_golden(rag_sample): pass
    @pytest.mark.rag_gate("relevance", regression=True, inconclusive="pass")
    @pytest.mark.rag_dataset([{"id": f"p{n}", "question": f"What is {n}?"} for n in range(6)], metrics=["relevance"])
    def test_lenient(rag_sample): pass
"""
OWN = """
    from pytest_ragmetrics import MetricResult
    from pytest_ragmetrics.metrics import Metric
    class Length(Metric):
        name = "length"
        scale = (0.0, 4.0)
        def measure(self, sample): return MetricResult(2.0, metric=self.name)
    def pytest_ragmetrics_register_metrics(): return [Length]
"""
HOUSE = """
    import os
    class House:
        async def complete(self, messages, schema):
            with open("asked.txt", "a") as file:
                file.write("x")
            return '{"reason": "So.", "rating": 4}'
    def make():
        made = House()
        if "MODEL" in os.environ:
            made.name = os.environ["MODEL"]
        return made
"""
JUDGE = "--rag-judge=house:make"


def test_a_changed_prompt_or_metric_is_named(run: RunPytest, pytester: pytest.Pytester) -> None:
    first = run(JUDGE, "--rag-json=main.json", test_gated=GATED, conftest=OWN, house=HOUSE)
    first.assert_outcomes(passed=12, skipped=3)
    against = (JUDGE, "--rag-baseline=main.json")
    run(*against).assert_outcomes(passed=15)
    (pytester.mkdir("prompts") / "rate_relevance.md").write_text("Rate it from 0 to 4. {}", "utf-8")
    result = run(*against, "-o", "rag_prompts=prompts", "--rag-report=out.html")
    result.assert_outcomes(passed=15)
    why = "the prompt of rate_relevance changed"
    result.shows(
        "gate: relevance against the baseline *: passed (n 6; * judged anew: see the notes), *",
        "against the baseline: 0 better, 0 worse, 6 the same",
        f"  not compared: 12 of relevance: {why}",
        f"relevance: judged nothing anew, though {why}: 6 answers are the same in both",
    )
    assert f"Not compared: 12 of relevance: {why}" in result.text("out.html")
    result = run(*against, conftest=OWN.replace("MetricResult(2.0", "MetricResult(1.0 + 1.0"))
    result.shows("length: judged nothing anew, though its code changed: 6 answers are the same in both", passed=15)


@pytest.mark.parametrize(
    ("part", "body", "said"),
    [
        (["-k", "q1 or q2"], "pass", "2 of 6 tests of the set were scored"),
        (["-x"], "assert rag_sample.id != 'q1'", "the run stopped early"),
    ],
)
def test_a_baseline_of_a_part_decides_nothing(run: RunPytest, part: list[str], body: str, said: str) -> None:
    suite = {"conftest": OWN, "house": HOUSE}
    run(JUDGE, "--rag-json=part.json", *part, **suite, test_gated=GATED.replace("pass\n    @", f"{body}\n    @", 1))
    result = run(JUDGE, "--rag-baseline=part.json", "-v", "-k", "golden", test_gated=GATED)
    result.assert_outcomes(passed=6, failed=2, deselected=7)
    result.shows(
        f"length 2.00 -> 2.00: inconclusive: the baseline is not whole ({said})*",
        "  mean change +0.000, 95 % interval -*, sign flips p=1.000",
    )


def test_the_name_of_a_judge_of_ones_own_is_a_part_of_what_it_is_asked(run: RunPytest) -> None:
    """Without a name, replies are known by the factory alone."""
    files = {"test_gated": GATED, "conftest": OWN, "house": HOUSE}
    for model, name, number in (
        (None, "house:make", 6), ("small", "house:make:small", 12), ("large", "house:make:large", 18),
        ("small", "house:make:small", 18), (None, "house:make", 18),
    ):  # fmt: skip
        ran = run(JUDGE, "--rag-json=out.json", env={"MODEL": model} if model else None, **files)
        records = [it for test in ran.tests.values() for it in test["records"] if it["metric"] == "relevance"]
        assert {it["judge"] for it in records} == {name}
        assert len(ran.text("asked.txt")) == number
