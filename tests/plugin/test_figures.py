"""One run, five outputs: terminal, Markdown, JSON, JUnit and the page give the same figures."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from math import fsum
from urllib.parse import quote

import pytest

from pytest_ragmetrics.report.markdown import escaped
from tests.plugin.conftest import ONE, Run, RunPytest

SUITE = """
    @metric
    def tone(response):
        n = int(response)
        if n == 5:
            raise UnscoredError("no tone")
        usage = Usage(calls=1, prompt_tokens=1000, completion_tokens=n, cost=0.01)
        return MetricResult(n / 10, metric="tone", vacuous=n == 6, judge="house:one", usage=usage)
    @metric
    def fit(response): return 0.5 if response in "028" else 0.9
    @pytest.mark.rag_gate("tone", mean=0.6)
    @pytest.mark.rag_gate("fit", rate=0.9, min=0.4)
    @pytest.mark.parametrize("n", range(10))
    def test_row(n):
        fits = fit.score(response=str(n))
        assert tone.score(response=str(n)) >= 0.2
        assert fits >= 0.7
    @pytest.mark.parametrize("n", range(3))
    def test_some(n):
        if n != 1:
            pytest.skip("nobody answered")
        assert fit.score(response="1") >= 0.7
        assert tone.score(response="4") >= 0.2
    @pytest.mark.xfail(reason="known")
    def test_expected(): assert fit.score(response="8") >= 0.7
    @pytest.fixture
    def breaks():
        yield
        raise RuntimeError("teardown")
    def test_breaks(breaks): assert fit.score(response="1") >= 0.7
    @pytest.mark.rag_gate("fit", rate=0.5, min=0.4, confidence=0.95, stop_when_decided=True)
    @pytest.mark.rag_dataset([{"id": f"r{n}", "response": "1"} for n in range(30)], metrics=[fit])
    def test_set(rag_sample): pass
"""
FILES = ("--rag-json=out.json", "--rag-markdown=out.md", "--rag-report=out.html", "--junitxml=out.xml")


def assert_gates_and_bill(ran: Run) -> None:
    """Check that each gate, and the bill, is the same in all outputs."""
    summary, page, junit = (ran.text(f"out.{kind}") for kind in ("md", "html", "xml"))
    bill = "10,044 tokens, $0.10"
    assert f"judge calls: 10 made ({bill})" in ran.stdout.str()
    assert f"\n10 calls, {bill}" in summary.replace("&#36;", "$")
    assert f"10 calls, {bill}" in page
    gates = {test.id: test.gate for test in ran.document.tests if test.gate is not None}
    assert [gate.outcome for gate in gates.values()] == ["passed", "failed", "passed"]
    for name, gate in gates.items():
        value = gate.value or 0.0
        shown = f"{value:.3f}, needed >= {gate.bound:g}: {gate.outcome} (n {gate.n}"
        assert f" {shown}" in ran.stdout.str()
        assert f" {escaped(shown)}" in summary
        case = junit.partition(f'name="{name.rpartition("::")[2]}"')[2].partition("</testcase>")[0]
        of_case = dict(re.findall(r'name="rag\.\w+\.([\w.]+)" value="([^"]*)"', case))
        assert (float(of_case[gate.statistic]), of_case[f"{gate.statistic}.outcome"]) == (value, gate.outcome)
        start = f'<li class="{gate.outcome}"><h3><a href="#{quote(name, safe="/:")}">'
        item = re.sub(r"<[^>]*>", " ", page.partition(start)[2].partition("</li>")[0])
        assert re.search(rf"\bn {gate.n}\b", item)
        assert (f"{100 * value:.1f}\xa0%" if gate.statistic == "rate" else f"{value:.4f}"[:4]) in item


def test_five_outputs_have_the_same_figures(run: RunPytest) -> None:
    ran = run(*FILES, "--rag-seed=north", test_suite=SUITE)
    document = ran.document
    spared = sum(document.run.not_needed.values())
    assert 0 < spared < 30
    ran.assert_outcomes(passed=39 - spared, failed=6, errors=1, skipped=2 + spared, xfailed=1)
    n = 43 - spared
    mean = (4 * 0.5 + (n - 4) * 0.9) / n
    fit, tone = f"2 tests skipped, {spared} tests not needed", "9 of 10 had something to check, 2 tests skipped"
    records = [record for test in document.tests for record in test.records]
    scores = {name: [it.score for it in records if it.metric == name and not it.vacuous] for name in ("fit", "tone")}
    assert (len(scores["fit"]), len(scores["tone"]), scores["tone"].count(None)) == (n, 10, 1)
    assert fsum(it or 0.0 for it in scores["fit"]) / n == pytest.approx(mean)
    assert document.run.skipped == {"test_suite.py::test_some": 2}
    table = (f"fit *{n}  {mean:.3f}  0.500        4         0", "tone *9  0.422  0.000        2         1")
    ran.shows(*table, f"fit: {fit}", f"tone: {tone}")
    summary = ran.text("out.md")
    assert f"\n| fit | {n} | {mean:.3f} | 0.500 | 4 | 0 |\n| tone | 9 | 0.422 | 0.000 | 2 | 1 |\n" in summary
    assert f"\n- fit: {fit}\n- tone: {tone}\n" in summary
    said = "4 of 43 tests fell short, 1 broke off with an error, 1 could not be scored, 1 of 3 gates failed"
    assert f": {said.replace('43', str(n))}\n" in summary
    listed = ET.fromstring(ran.text("out.xml")).iterfind("testsuite/properties/property")
    properties = {each.attrib["name"]: each.attrib["value"] for each in listed}
    assert properties.pop("rag.cost") == "0.1"
    assert float(properties.pop("rag.fit.mean")) == pytest.approx(mean)
    assert float(properties.pop("rag.tone.mean")) == pytest.approx(3.8 / 9)
    names = ("n", "fell_short", "unscored", "vacuous", "skipped", "not_needed")
    figures = {"fit": (n, 4, 0, 0, 2, spared), "tone": (9, 2, 1, 1, 2, 0)}
    tests = {"error": 1, "failed": 4, "passed": n - 7, "unscored": 1, "xfailed": 1}
    expected = {"rag.calls": 10, "rag.tokens": 10_044} | {f"rag.tests.{name}": number for name, number in tests.items()}
    for metric, of in figures.items():
        expected |= {f"rag.{metric}.{name}": number for name, number in zip(names, of, strict=True)}
    assert properties == {name: str(number) for name, number in expected.items()}
    page = ran.text("out.html")
    cells = [
        [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"</a> <small>needs.*|<td.*?</td>", row_)[2:]]
        for row_ in re.findall(r'<tr role="row">.*?</tr>', page, re.DOTALL)
        if 'data-label="fell short"' in row_
    ]
    assert cells == [
        [f"{n} {fit}", f"{mean:.3f}", "0.50", "4", "0", "0"],
        ["9 2 tests skipped", "0.422", "0.00", "2", "1", "1"],
    ]
    assert_gates_and_bill(ran)


FORGOTTEN = """
    from pytest_ragmetrics.metrics import Faithfulness, LexicalGrounding, RagasScore, ragas_score
    ROW = {"id": "a", "response": "Moss grows.", "contexts": ["Moss grows here."]}
    GIVEN = {"response": "Moss grows.", "retrieved_contexts": ["Moss grows here."]}
    def score(): return LexicalGrounding().score(**GIVEN)
"""
HELD = {
    "assert score() >= 0.5": 0,
    "assert 0.5 < score()": 0,
    "assert score() >= score()": 0,
    "assert min(score(), score()) > 0.5": 0,
    "assert_mean([score(), score()], 0.5)": 0,
    "assert evaluate([ROW], 'lexical_grounding').mean('lexical_grounding') > 0.5": 0,
    "assert_lexically_grounded('Moss grows.', ['Moss grows here.'])": 0,
    "assert_sample(ROW, lexical_grounding=0.5)": 0,
    "assert ragas_score([score(), Faithfulness(judge='local').score(**GIVEN)]) > 0.5": 0,
    "assert RagasScore(metrics=[LexicalGrounding(), Faithfulness(judge='local')]).score(**GIVEN) > 0.5": 0,
    "score()": 1,
    "score(); assert score() > 0.5": 1,
    "RagasScore(metrics=[LexicalGrounding(), Faithfulness(judge='local')]).score(**GIVEN)": 1,
    "print(score())": 1,
    "score(); pytest.fail('another reason')": 0,
}
ROWS = {
    "@pytest.mark.rag_dataset([ROW], metrics=['lexical_grounding', 'numbers_aligned'])": 2,
    "@pytest.mark.rag_dataset([ROW], metrics={'lexical_grounding': 0.5, 'numbers_aligned': None})": 1,
    "@pytest.mark.rag_gate('lexical_grounding', mean=0.5)\n"
    "@pytest.mark.rag_dataset([ROW], metrics=['lexical_grounding'])": 0,
}


def test_scores_that_were_compared_with_nothing_are_counted(run: RunPytest) -> None:
    files = {f"test_{n}": f"    def test_it():\n        {body}\n" for n, body in enumerate(HELD)}
    files |= {
        f"test_row_{n}": "".join(f"    {line}\n" for line in [*mark.split("\n"), "def test_it(rag_sample): pass"])
        for n, mark in enumerate(ROWS)
    }
    result = run(*FILES, *ONE, **{name: FORGOTTEN + text for name, text in files.items()})
    expected = [*HELD.values(), *ROWS.values()]
    records = [(test, record) for test in result.document.tests for record in test.records]
    unused = (test for test, record in records if record.outcome == "measured" and not record.used)
    found = Counter(test.file for test in unused if test.outcome == "passed")
    del found["test_row_2.py"]  # which has a gate
    assert [found[f"{name}.py"] for name in files] == expected
    scores = sum(record.score is not None for _, record in records)
    line = f"{sum(expected)} of {scores} scores were checked by no assertion or gate: "
    line += "lexical_grounding, ragas_score, numbers_aligned"
    assert line in result.outlines
    assert line in result.text("out.md")
    assert line in result.text("out.html")
