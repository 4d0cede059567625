"""The summary in Markdown: short, the worst first, harmless."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.report.comment import render_comment
from pytest_ragmetrics.report.files import STEP_SUMMARY_LIMIT
from pytest_ragmetrics.report.markdown import escaped, render_markdown
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.records import Document, GateRecord, RegressionRecord
from pytest_ragmetrics.runs.records import TestRecord as Row
from pytest_ragmetrics.runs.wording.runs import gate_line
from tests.documents import crowd, document, gate, giant, hostile, record, row, usage, verdict
from tests.showcase import showcase

GATE = gate(value=0.83, bound=0.85, between=None, n=40, unscored=2, outcome="failed")
DROP = RegressionRecord(
    alpha=0.05, before=0.9, after=0.83, changed=8, p=0.01, adjusted_p=0.02, smallest=0.16, worse=7, better=1
)
RATE = {"statistic": "rate", "min_score": 0.8, "unscored": 0}
MEAN = "mean faithfulness 0.830, needed >= 0.85:"
DROPPED = "against the baseline 0.900 -> 0.830, needed no proven drop:"
WORSE = "7 of 40 rows got worse, 1 better;"
SO = "if nothing had changed, so large a drop"
ONE_OF = f"{WORSE} {SO} in one of the metrics comes in 2 % of runs (limit 5 %))"

NO_BASELINE = "no baseline has its scores yet: --rag-json=FILE writes one, and --rag-baseline=FILE compares with it"


def gated(found: GateRecord, name: str = "test_gate") -> Row:
    return row(name, outcome="failed" if found.outcome == "failed" else "passed", gate=found)


def failing(name: str, score: float | None, reason: str | None = None) -> Row:
    outcome = "unscored" if score is None else "failed"
    scored = record("faithfulness", score, outcome=outcome, reason=reason, judge="openai:one", usage=usage())
    return row(name, scored, outcome="failed")


def test_what_went_wrong_is_told_in_a_line() -> None:
    pieces = [verdict("Moths hum.", ok=False), verdict("Moths fly.", ok=True)]
    scored = record("faithfulness", 0.5, outcome="failed", reason="1 of 2 claims supported", verdicts=pieces)
    scored = replace(scored, noun="claim", complaint="not supported")
    text = render_markdown(document(row("test_it", scored, outcome="failed")))
    assert 'faithfulness 0.50, needed ≥ 0.90: 1 of 2 claims not supported: "Moths hum."' in text
    message = "def test():\n>   boom()\nE   RuntimeError: the bot is down\nE   more"
    text = render_markdown(document(row("test_broken", outcome="error", message=message)))
    place = "`tests/test_assistant.py::test_broken` (`tests/test_assistant.py:12`)"
    assert f"{place}: RuntimeError: the bot is down\n" in text


def test_it_starts_with_how_the_run_came_out() -> None:
    rows = failing("test_near", 0.88), failing("test_far", 0.2, "1 of 5 claims supported")
    unscored = failing("test_none", None, "faithfulness: the provider failed")
    lines = render_markdown(document(*rows, unscored, row("test_fine", record("faithfulness", 1.0)))).splitlines()
    assert lines[0] == "## RAG metrics: 2 of 4 tests fell short, 1 could not be scored"
    assert "| faithfulness | 3 | 0.693 | 0.200 | 2 | 1 |" in lines
    place = "(`tests/test_assistant.py:12`)"
    assert [line for line in lines if line.startswith("- ")] == [
        f"- `tests/test_assistant.py::test_far` {place}: faithfulness 0.20, needed ≥ 0.90: 1 of 5 claims supported",
        f"- `tests/test_assistant.py::test_near` {place}: faithfulness 0.88, needed ≥ 0.90",
        f"- `tests/test_assistant.py::test_none` {place}: faithfulness unscored: faithfulness: the provider failed",
    ]
    assert "6 calls, 4,926 tokens, &#36;0.0093  " in lines
    assert "judged by openai&#58;one  " in lines


def test_the_head_says_where_the_run_comes_from() -> None:
    made = document(row("test_a", record()))
    repository, ci = "https://git.example/a(b", "https://git.example/a(b/actions/runs/7"
    said: dict[str, Any] = {"commit": "4f2c91a0d7e5+", "message": "Chunk [x](javascript:1)", "author": "@ana"}
    origin = replace(made.run, project="bot", branch="main", **said)
    known = replace(origin, repository=repository, ci=ci, ci_number="1832")
    lines = render_markdown(replace(made, run=known)).splitlines()
    assert lines[0] == "## RAG metrics of bot: The test passed"
    chunk = 'ommit 4f2c91a+ "Chunk &#91;x&#93;(javascript&#58;1)" by &#64;&#8203;ana'
    page = "https://git.example/a%28b"
    assert lines[2] == f"Branch main, [c{chunk}]({page}/commit/4f2c91a0d7e5), [CI 1832]({page}/actions/runs/7)"
    lines = render_markdown(replace(made, run=replace(origin, branch="", ci="javascript:1"))).splitlines()
    assert lines[2] == f"C{chunk}"
    assert "javascript:" not in render_comment(replace(made, run=replace(origin, ci="javascript:1", ci_number="7")))


def test_gates_stand_before_the_tests() -> None:
    fine = replace(GATE, outcome="passed", value=0.9, unscored=0)
    text = render_markdown(document(gated(fine, "test_fine"), gated(GATE), row("test_a", record())))
    needed = "needed &#62;= 0.85"
    assert [line for line in text.splitlines() if line.startswith("- ")] == [
        f"- mean faithfulness 0.830, {needed}: failed (n 40, 2 unscored) `tests/test_assistant.py::test_gate`",
        f"- mean faithfulness 0.900, {needed}: passed (n 40) `tests/test_assistant.py::test_fine`",
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, f"{MEAN} failed (n 40, 2 unscored)"),
        ({"value": 0.84996}, "mean faithfulness 0.84996, needed >= 0.85: failed (n 40, 2 unscored)"),
        ({"better": "lower"}, "mean faithfulness 0.830, needed <= 0.85: failed (n 40, 2 unscored)"),
        (RATE, "share of faithfulness >= 0.8 0.830, needed >= 0.85: failed (n 40)"),
        (RATE | {"better": "lower"}, "share of faithfulness <= 0.8 0.830, needed >= 0.85: failed (n 40)"),
        ({"confidence": 0.95, "low": 0.8, "high": 0.9, "outcome": "inconclusive", "unscored": 0},
         f"{MEAN} inconclusive: too few rows to tell (n 40, 95% interval 0.800 to 0.900)"),
        ({"value": None, "outcome": "skipped", "n": 4, "unscored": 0, "vacuous": 29, "total": 40},
         "mean faithfulness, needed >= 0.85: skipped (not all of 40 tests of the set ran)"),
        ({"regression": DROP, "unscored": 0}, f"faithfulness {DROPPED} failed (n 40; {ONE_OF}"),
        ({"regression": replace(DROP, new=3, gone=1), "better": "lower", "vacuous": 2},
         (f"faithfulness (lower is better) {DROPPED} failed "
          f"(n 40, 2 unscored, 3 new, 1 gone, 2 with nothing to check; {ONE_OF}")),
        ({"regression": replace(DROP, adjusted_p=1.0), "outcome": "passed", "unscored": 0, "counts_vacuous": True},
         (f"faithfulness {DROPPED} passed (n 40, vacuous scores count; {WORSE} in one of the metrics that proves "
          "nothing; 40 rows like these show a drop of 0.16 or more in at least 8 of 10 runs, 110 rows one of 0.1)")),
        ({"regression": replace(DROP, p=0.25, adjusted_p=1.0, smallest=None), "outcome": "passed", "unscored": 0},
         (f"faithfulness {DROPPED} passed (n 40; {WORSE} {SO} comes in 25 % of runs (limit 5 %); "
          "40 rows like these can hardly show a drop)")),
        ({"regression": replace(DROP, worse=0, better=0, adjusted_p=0.01), "unscored": 0},
         f"faithfulness {DROPPED} failed (n 40; 8 of 40 rows changed; {SO} comes in 1 % of runs (limit 5 %))"),
        ({"regression": replace(DROP, rejudged="judged 1 answer of the baseline anew"), "unscored": 0},
         f"faithfulness {DROPPED} failed (n 40; {ONE_OF[:-1]}; judged anew: see the notes)"),
        ({"regression": replace(DROP, rejudged="not judged anew: the budget is used up"), "unscored": 0},
         f"faithfulness {DROPPED} failed (n 40; {ONE_OF[:-1]}; not judged anew: see the notes)"),
        ({"regression": replace(DROP, doubts=("3 rows compared",)), "outcome": "inconclusive", "n": 3, "unscored": 0},
         f"faithfulness {DROPPED} inconclusive: 3 rows compared (n 3)"),
        ({"regression": replace(DROP, silence="39 of 40 had nothing to check"), "n": 1, "unscored": 0, "vacuous": 39},
         f"faithfulness {DROPPED} failed (n 1; 39 of 40 had nothing to check)"),
        ({"vacuous": 39, "vacuous_before": 0, "n": 1, "unscored": 0, "outcome": "passed"},
         f"{MEAN} passed (n 1, 39 of 40 had nothing to check; the baseline had 0)"),
        ({"regression": RegressionRecord(alpha=0.05), "value": None, "n": 0},
         "faithfulness against the baseline: failed (nothing compared, 2 unscored)"),
        ({"regression": RegressionRecord(alpha=0.05), "value": None, "outcome": "skipped", "n": 38, "vacuous": 2},
         f"faithfulness against the baseline: skipped ({NO_BASELINE})"),
        ({"regression": RegressionRecord(alpha=0.05), "value": None, "outcome": "skipped", "n": 37, "unscored": 0},
         "faithfulness against the baseline: skipped (not all of 42 tests of the set ran)"),
    ],
)  # fmt: skip
def test_a_gate_is_told_in_one_line(changes: Any, said: str) -> None:
    assert gate_line(replace(GATE, **changes)) == said


def test_what_changed_since_the_baseline_stands_in_it() -> None:
    old = document(failing("test_a", 0.9), row("test_b", record("relevancy", 0.5, judge="openai:two")))
    new = document(failing("test_a", 0.2), row("test_b", record("relevancy", 0.5, judge="openai:one")))
    text = render_markdown(new, comparison=compare_documents(new, old))
    assert "### Against the baseline\n\n0 better, 1 worse\n" in text
    assert "- worse: tests/test_assistant.py&#58;&#58;test_a: faithfulness 0.900 -&#62; 0.200" in text
    assert "- not compared: 1 of relevancy: judged by openai&#58;one now, by openai&#58;two in the baseline" in text
    assert "baseline" not in render_markdown(new)


@pytest.mark.parametrize("size", [0, 1, 30, 400])
def test_it_is_short_whatever_the_size(size: int) -> None:
    base = crowd(size, contexts=1, length=100)
    metrics = [row(f"test_m{n}", record(f"metric_{n}", 0.5, outcome="failed"), outcome="failed") for n in range(size)]
    gates = [gated(GATE, f"test_g{n}") for n in range(size)]
    whole = document(*base.tests, *metrics, *gates, notes=[f"note {n}" for n in range(size)])
    old = document(*(row(f"test_m{n}", record(f"metric_{n}", 0.9)) for n in range(size)))
    text = render_markdown(whole, comparison=compare_documents(whole, old))
    assert len(text.splitlines()) <= 60
    assert len(text) < 30_000


@pytest.mark.parametrize("make", [hostile, giant, showcase])
def test_foreign_text_does_nothing(make: Callable[[], Document]) -> None:
    made = make()
    whole = replace(made, run=replace(made.run, notes=("::error::pwned", "##[error]pwned", "\x1b[31m \u202e")))
    text = render_markdown(whole, comparison=compare_documents(whole, whole))
    assert len(text.encode()) < STEP_SUMMARY_LIMIT / 10
    outside = re.sub(r"`[^`\n]*`", "", text)
    assert not re.search(r"[<\[\]*@\\$~]|://|www\.|javascript:\S", outside)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    assert "##[" not in text
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    starts = ("## RAG", "Branch ", "### ", "- ", "| ", "|---")
    assert all(line.startswith(starts) or line.endswith("  ") for line in text.splitlines() if line and line[0] != "0")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_escaped_text_is_inert(text: str) -> None:
    found = escaped(text)
    assert "\n" not in found
    assert not re.search(r"[<>\[\]*`|~\\@$]|:\S|(?:^|\s)_|_(?:\s|$)", found)
    assert re.fullmatch(r"(?:[^#&]|&#[0-9]+;)*", found)
    plain = "Die Kühlung läuft, 2,5 h: snake_case (laut Handbuch)!"
    assert escaped(plain) == plain
