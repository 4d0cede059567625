"""One run, five outputs: terminal, Markdown, JSON, JUnit and the page give the same figures."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass
from math import fsum
from typing import Any
from urllib.parse import quote

import pytest

from pytest_ragmetrics.records import Document, read_document
from pytest_ragmetrics.report.markdown import escaped
from tests.plugin.conftest import Run, RunOnce

SUITE = """
    import pytest
    from pytest_ragmetrics import MetricResult, UnscoredError
    from pytest_ragmetrics.metrics import Metric
    from pytest_ragmetrics.result import Usage

    class Tone(Metric):
        name = "tone"
        def measure(self, sample):
            n = int(sample.response)
            if n == 5:
                raise UnscoredError("no tone")
            usage = Usage(calls=1, prompt_tokens=1000, completion_tokens=n, cost=0.01)
            return MetricResult(n / 10, metric=self.name, vacuous=n == 6, judge="house:one", usage=usage)

    class Fit(Metric):
        name = "fit"
        def measure(self, sample):
            return MetricResult(0.5 if sample.response in "028" else 0.9, metric=self.name)

    @pytest.mark.rag_gate("tone", mean=0.6)
    @pytest.mark.rag_gate("fit", rate=0.9, min=0.4)
    @pytest.mark.parametrize("n", range(10))
    def test_row(n):
        fit = Fit().score(response=str(n))
        tone = Tone().score(response=str(n))
        assert tone >= 0.2
        assert fit >= 0.7

    @pytest.mark.parametrize("n", range(3))
    def test_some(n):
        if n != 1:
            pytest.skip("nobody answered")
        assert Fit().score(response="1") >= 0.7
        assert Tone().score(response="4") >= 0.2

    @pytest.mark.xfail(reason="known")
    def test_expected():
        assert Fit().score(response="8") >= 0.7

    @pytest.fixture
    def breaks():
        yield
        raise RuntimeError("teardown")

    def test_breaks(breaks):
        assert Fit().score(response="1") >= 0.7

    @pytest.mark.rag_gate("fit", rate=0.5, min=0.4, confidence=0.95, stop_when_decided=True)
    @pytest.mark.rag_dataset([{"id": f"r{n}", "response": "1"} for n in range(30)], metrics=[Fit()])
    def test_set(rag_sample):
        pass
"""
METRICS = ("fit", "tone")


@pytest.fixture(scope="module")
def run(run_once: RunOnce) -> Run:
    """Run the suite once, with every output."""
    files = ["--rag-json=out.json", "--rag-markdown=out.md", "--rag-report=out.html", "--junitxml=out.xml"]
    return run_once(*files, "--rag-seed=north", test_suite=SUITE)


@dataclass(frozen=True)
class Figures:
    """The figures of one metric."""

    n: int
    mean: str
    fell_short: int
    unscored: int
    vacuous: int = 0
    skipped: int = 0
    not_needed: int = 0


def beside(text: str, n: int) -> dict[str, int]:
    """Return what a line says of scores and tests that are not in a mean."""
    found = {}
    for name, pattern in {"vacuous": "of @ had", "skipped": "@ tests? skipped", "not_needed": "@ tests? not n"}.items():
        match = re.search(pattern.replace("@", r"(\d+)"), text)
        found[name] = int(match[1]) - (n if name == "vacuous" else 0) if match else 0
    return found


def of_json(document: Document) -> dict[str, Figures]:
    """Return the figures by what the records themselves say."""
    found = {}
    for metric in METRICS:
        records = [record for test in document.tests for record in test.records if record.metric == metric]
        scores = [record.score for record in records if record.score is not None and not record.vacuous]
        functions = {test.id.partition("[")[0] for test in document.tests for it in test.records if it.metric == metric}
        found[metric] = Figures(
            n=len(scores),
            mean=f"{fsum(scores) / len(scores):.3f}",
            fell_short=sum(
                record.score is not None and record.threshold is not None and record.score < record.threshold.bound
                for record in records
            ),
            unscored=sum(record.score is None for record in records),
            vacuous=sum(record.vacuous for record in records),
            skipped=sum(document.run.skipped.get(function, 0) for function in functions),
            not_needed=sum(document.run.not_needed.get(function, 0) for function in functions),
        )
    return found


def of_lines(text: str, row: str, line: str) -> dict[str, Figures]:
    """Return the figures of a table in text, whose rows have a form, and of the lines below it."""
    found = {}
    for metric in METRICS:
        [(n, mean, failing, unscored)] = re.findall(row.format(metric), text, re.MULTILINE)
        said = re.findall(line.format(metric), text, re.MULTILINE)
        found[metric] = Figures(
            n=int(n),
            mean=mean,
            fell_short=int(failing),
            unscored=int(unscored),
            **beside(said[0] if said else "", int(n)),
        )
    return found


def of_junit(text: str) -> tuple[dict[str, Figures], dict[str, str]]:
    """Return the figures of the suite's properties, and all of these."""
    suite = ET.fromstring(text).find("testsuite")
    listed = [] if suite is None else suite.iterfind("properties/property")
    properties = {each.attrib["name"]: each.attrib["value"] for each in listed}
    found = {}
    for metric in METRICS:
        start = f"rag.{metric}."
        own = {name.removeprefix(start): value for name, value in properties.items() if name.startswith(start)}
        counts: Any = {name: int(value) for name, value in own.items() if name != "mean"}
        found[metric] = Figures(mean=f"{float(own['mean']):.3f}", **counts)
    return found, properties


def of_page(text: str, metric: str) -> Figures:
    """Return the figures in the cells of a metric."""
    rows = re.findall(r'<tr role="row">.*?</tr>', text, re.DOTALL)
    [row] = [row for row in rows if f"<bdi>{metric}</bdi>" in row and 'data-label="fell short"' in row]
    listed = re.findall(r'data-label="([^"]+)">(.*?)</td>', row, re.DOTALL)
    cells = {label: re.sub(r"<[^>]*>|,", "", cell).split() for label, cell in listed}
    counts = beside(" ".join(cells["n"]), 0)
    return Figures(
        n=int(cells["n"][0]),
        mean=cells["mean"][0],
        fell_short=int(cells["fell short"][0]),
        unscored=int(cells["unscored"][0]),
        **{**counts, "vacuous": int(cells["nothing to check"][0])},
    )


def test_five_outputs_have_the_same_figures_of_each_metric(run: Run) -> None:
    """How many scores count, their mean, how many fell short, and what is left out of it."""
    document = read_document(run.folder / "out.json")
    expected = of_json(document)
    assert expected["tone"] == Figures(n=9, mean="0.422", fell_short=2, unscored=1, vacuous=1, skipped=2)
    assert (expected["fit"].fell_short, expected["fit"].skipped) == (4, 2)
    assert 0 < expected["fit"].not_needed < 30
    summary = run.result.stdout.str().partition("= RAG metrics =")[2]
    terminal = of_lines(summary, r"^{} +(\d+) +([\d.]+) +[\d.]+ +(\d+) +(\d+)$", r"^{}: (.*)$")
    assert terminal == expected
    markdown = run.text("out.md")
    assert (
        of_lines(markdown, r"^\| {} \| (\d+) \| ([\d.]+) \| [\d.]+ \| (\d+) \| (\d+) \|$", r"^- {}: (.*)$") == expected
    )
    assert of_junit(run.text("out.xml"))[0] == expected
    assert {metric: of_page(run.text("out.html"), metric) for metric in METRICS} == expected


def test_five_outputs_count_the_same_tests_and_bill(run: Run) -> None:
    """By outcome, gates apart; calls, tokens and cost; each gate with its value."""
    document = read_document(run.folder / "out.json")
    tests = [test for test in document.tests if test.gate is None]
    gates = [test.gate for test in document.tests if test.gate is not None]
    outcomes = Counter(test.outcome for test in tests)
    lost = sum(
        test.outcome == "failed" and all(it.outcome != "failed" or not it.asserted for it in test.records)
        for test in tests
    )
    decided = Counter(gate.outcome for gate in gates)
    failed = decided["failed"]
    run.result.assert_outcomes(
        failed=outcomes["failed"] + failed,
        passed=outcomes["passed"] + outcomes["error"] + decided["passed"],
        errors=outcomes["error"],
        xfailed=outcomes["xfailed"],
        skipped=sum(document.run.skipped.values()) + sum(document.run.not_needed.values()),
    )
    properties = of_junit(run.text("out.xml"))[1]
    assert {name: properties[f"rag.tests.{name}"] for name in ("failed", "unscored", "error", "xfailed", "passed")} == {
        "failed": str(outcomes["failed"] - lost),
        "unscored": str(lost),
        "error": str(outcomes["error"]),
        "xfailed": str(outcomes["xfailed"]),
        "passed": str(outcomes["passed"]),
    }
    said = f"{outcomes['failed'] - lost} of {len(tests)} tests fell short, {outcomes['error']} broke off with an error"
    assert f": {said}, {lost} could not be scored, {failed} of {len(gates)} gates failed\n" in run.text("out.md")
    usages = [record.usage for test in document.tests for record in test.records]
    calls, tokens = sum(it.calls for it in usages), sum(it.prompt_tokens + it.completion_tokens for it in usages)
    cost = sum(it.cost or 0.0 for it in usages)
    bill = f"{tokens:,} tokens, ${cost:.2f}"
    assert (calls, properties["rag.calls"], properties["rag.tokens"]) == (10, str(calls), str(tokens))
    assert float(properties["rag.cost"]) == pytest.approx(cost)
    assert f"judge calls: {calls} made ({bill})" in run.result.stdout.str()
    assert f"\n{calls} calls, {bill}" in run.text("out.md").replace("&#36;", "$")
    assert f"{calls} calls, {bill}" in run.text("out.html")


def test_five_outputs_have_the_same_gates(run: Run) -> None:
    """Each with its value, the scores behind it, and how it came out."""
    document = read_document(run.folder / "out.json")
    gates = {test.id: test.gate for test in document.tests if test.gate is not None}
    assert [gate.outcome for gate in gates.values()] == ["passed", "failed", "passed"]
    page, junit = run.text("out.html"), run.text("out.xml")
    for name, gate in gates.items():
        value = gate.value or 0.0
        shown = f"{value:.3f}, needed >= {gate.bound:g}: {gate.outcome} (n {gate.n}"
        assert f" {shown}" in run.result.stdout.str()
        assert f" {escaped(shown)}" in run.text("out.md")
        case = junit.partition(f'name="{name.rpartition("::")[2]}"')[2].partition("</testcase>")[0]
        said = dict(re.findall(r'name="rag\.\w+\.([\w.]+)" value="([^"]*)"', case))
        assert (float(said[gate.statistic]), said[f"{gate.statistic}.outcome"]) == (value, gate.outcome)
        start = f'<li class="{gate.outcome}"><h3><a href="#{quote(name, safe="/:")}">'
        item = re.sub(r"<[^>]*>", " ", page.partition(start)[2].partition("</li>")[0])
        assert re.search(rf"\b{gate.n} (of \d+ scored|scores)", item)
        assert (f"{100 * value:.1f}\xa0%" if gate.statistic == "rate" else f"{value:.4f}"[:4]) in item


FORGOTTEN = """
    import pytest
    from pytest_ragmetrics import assert_lexically_grounded, assert_mean, assert_sample, evaluate
    from pytest_ragmetrics.metrics import Faithfulness, LexicalGrounding, RagasScore, ragas_score

    ROW = {"id": "a", "response": "Moss grows.", "contexts": ["Moss grows here."]}
    GIVEN = {"response": "Moss grows.", "retrieved_contexts": ["Moss grows here."]}

    def score():
        return LexicalGrounding().score(**GIVEN)

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


@pytest.mark.parametrize("arguments", [[], ["-p", "xdist", "-n1"]])
def test_scores_that_were_compared_with_nothing_are_counted(run_once: RunOnce, arguments: list[str]) -> None:
    """Not those of a table, a set, another score or a gate, and not those of a test that failed."""
    files = {f"test_{n}": f"    def test_it():\n        {body}\n" for n, body in enumerate(HELD)}
    files |= {
        f"test_row_{n}": "".join(f"    {line}\n" for line in [*mark.split("\n"), "def test_it(rag_sample): pass"])
        for n, mark in enumerate(ROWS)
    }
    outputs = ("--rag-json=out.json", "--rag-markdown=out.md", "--rag-report=out.html")
    ran = run_once(*outputs, *arguments, **{name: FORGOTTEN + text for name, text in files.items()})
    expected = [*HELD.values(), *ROWS.values()]
    document = read_document(ran.folder / "out.json")
    found = Counter(
        test.file
        for test in document.tests
        for record in test.records
        if test.outcome == "passed" and record.outcome == "measured" and not record.used
    )
    del found["test_row_2.py"]  # which has a gate
    assert [found[f"{name}.py"] for name in files] == expected
    scores = sum(record.score is not None for test in document.tests for record in test.records)
    line = f"{sum(expected)} of {scores} scores were compared with nothing"
    ran.result.stdout.fnmatch_lines([line])
    assert line in ran.text("out.md")
    assert line in ran.text("out.html")
