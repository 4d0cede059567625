"""The view model of the overview: the news, causes, gates and metrics, and the groups of the metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.report.figures import Axis, GateView, build_distribution, gate_open
from pytest_ragmetrics.report.groups import metadata_of
from pytest_ragmetrics.report.outcomes import CAUSES, owners_of
from pytest_ragmetrics.report.overview import OverviewView
from pytest_ragmetrics.report.page import environment, render_html
from pytest_ragmetrics.report.tests_view import build_report_view
from pytest_ragmetrics.report.trends import build_trends
from pytest_ragmetrics.runs import records as shapes
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.merge import merge_documents
from pytest_ragmetrics.runs.wording.runs import gate_title
from tests.documents import FILE, HOSTILE, document, evidence, gate, record, row, usage, verdict
from tests.histories import month

FAILED = record(score=0.4, outcome="failed", reason="Matched 2/5 quoted spans")
UNSCORED = record(score=None, outcome="unscored", reason="no claims")


def overview_of(*tests: shapes.TestRecord, **fields: Any) -> OverviewView:
    return build_report_view(document(*tests, **fields)).overview


def asked(name: str, score: float | None, *, answer: str = "Yes.", passages: Sequence[str] = (), **more: Any) -> Any:
    outcome: Any = "unscored" if score is None else "passed" if score >= 0.8 else "failed"
    sample = {"id": name, "response": answer, "retrieved_contexts": [*passages], "metadata": more}
    sample["user_input"] = f"What of {name.partition('-')[0]}?"
    scored = record("faithfulness", score, at_least=0.8, outcome=outcome, sample=sample)
    return row(f"test_bot[{name}]", scored, outcome="passed" if outcome == "passed" else "failed")


def compared(before: Sequence[Any], after: Sequence[Any], **settings: str) -> OverviewView:
    now = document(*after, settings={**settings})
    return build_report_view(now, compare_documents(now, document(*before))).overview


GOOD = [asked("a", 0.9), asked("b", 0.9)]
HELD, FELL = row("test_gate", gate=gate()), row("test_gate", gate=gate(value=0.6, outcome="failed"), outcome="failed")
THE_GATE = "the gate on mean faithfulness"
RATE = gate(value=0.6, statistic="rate", min_score=0.8, outcome="failed")


@pytest.mark.parametrize(
    ("before", "after", "news", "title"),
    [
        (GOOD, [*GOOD], "Nothing got worse: all 2 that passed before pass", "✓ nothing got worse"),
        (GOOD, [asked("a", 0.1), asked("b", 0.9)], "1 test newly fails", "✗ 1 test newly fails"),
        (GOOD, [asked("a", 0.1), asked("b", 0.1)], "2 tests newly fail", "✗ 2 tests newly fail"),
        ([*GOOD, HELD], [asked("a", 0.1), asked("b", 0.1), FELL],
         "2 tests newly fail, and the gate on mean faithfulness no longer holds", "✗ 2 tests newly fail"),
        ([*GOOD, HELD], [*GOOD, FELL], f"{THE_GATE} no longer holds", f"✗ {THE_GATE} no longer holds"),
        (GOOD, [*GOOD, FELL], "the new gate on mean faithfulness does not hold", None),
        ([*GOOD, FELL], [*GOOD, FELL], "Nothing got worse: all 2 that passed before pass", None),
        ([FELL], [FELL], f"Nothing got worse: {THE_GATE} does not hold, as before", None),
        ([asked("a", 0.1), asked("b", 0.1), asked("c", 0.9)], [asked("a", 0.9), asked("b", 0.1), asked("c", 0.9)],
         "Nothing got worse: 1 is fixed, 1 fails as before", None),
        (GOOD, [*GOOD, asked("c", 0.1)], "1 new test fails", "✗ 1 new test fails"),
        (GOOD, [asked("a", None), asked("b", 0.9)], "1 test has no score", "✗ 1 test has no score"),
        # Without a baseline the news is how the tests came out.
        (None, GOOD, "All 2 tests passed", "✓ 2 tests passed"),
        (None, [asked("a", 0.1), asked("b", 0.9)], "1 of 2 tests fell short", "✗ 1 of 2 tests fails"),
        (None, [*GOOD, FELL], f"All 2 tests passed, and {THE_GATE} does not hold", None),
        (None, [*GOOD, HELD], "All 2 tests passed", None),
        (None, [*GOOD, FELL, row("test_rate", gate=RATE)],
         "All 2 tests passed, and the gates on mean faithfulness and share of faithfulness ≥ 0.80 do not hold", None),
        (None, [*GOOD, FELL, replace(FELL, id="x")], "All 2 tests passed, and 2 gates do not hold", None),
        (None, [], "No test was recorded", "✓ 0 tests passed"),
    ],
)  # fmt: skip
def test_the_worst_news_comes_in_a_sentence(before: Any, after: Any, news: str, title: str | None) -> None:
    view = overview_of(*after) if before is None else compared(before, after)
    assert view.news == news[:1].upper() + news[1:]
    assert title is None or view.title == title
    assert before is not None or view.carriers == ()


def test_a_run_that_stopped_early_says_so() -> None:
    view = overview_of(*GOOD, exit_status=2)
    assert "interrupted" in view.warnings[0]
    assert overview_of(*GOOD).warnings == ()


def test_the_counts_add_up_to_the_tests() -> None:
    before = [*GOOD, asked("c", 0.1), asked("d", 0.1), asked("e", 0.9)]
    after = [asked("a", 0.1), asked("b", 0.9), asked("c", 0.1), asked("d", 0.9), asked("e", None), asked("f", 0.1)]
    view = compared([*before, HELD], [*after, row("test_skipped", outcome="skipped"), HELD])
    kinds = ["newly fails", "fails, new", "fails as before", "no score", "fixed", "passes as before", "skipped"]
    assert list(view.counts) == [(kind, 1) for kind in kinds]


def lost(name: str, **more: Any) -> tuple[Any, Any]:
    """Return a row whose evidence was retrieved before and is not now."""
    text = f"Of {name} nobody knows."
    before = asked(name, 0.9, passages=[text], **more)
    verdicts = (verdict("x", ok=True, evidence=[evidence(text, [text], 0)]),)
    before = replace(before, records=(replace(before.records[0], verdicts=verdicts),))
    return before, asked(name, 0.1, passages=["Another."], **more)


def test_causes_come_with_examples_groups_and_owners() -> None:
    pairs = [lost(name, topic="pets") for name in ("l-0", "l-1", "m-0")]
    pairs += [(asked(f"k{n}", 0.9, topic="rent"), asked(f"k{n}", 0.9, topic="rent")) for n in range(9)]
    pairs += [(asked("v", 0.9), asked("v", 0.1, answer="No.", owner="@bo"))]
    pairs += [(asked(name, 0.9), asked(name, None)) for name in "uw"]
    before, after = zip(*pairs, strict=True)
    view = compared(before, after, owners="retrieval = @ana\nanswer = @raj")
    assert [(CAUSES[cause.cause], cause.number, cause.owner) for cause in view.causes] == [
        ("A passage is no longer retrieved", 3, "@ana"),
        ("The answer is not supported", 1, "@bo"),
        ("There is no score", 2, ""),
    ]
    first = view.causes[0]
    shown = [(anchor, question) for anchor, question, _ in first.examples]
    assert shown == [(f"{FILE}::test_bot[{name}-0]", f"What of {name}?") for name in "lm"]
    assert first.examples[0][2] == "Of l-0 nobody knows."
    assert first.group is not None
    assert (first.group.number, dict(first.group.query)) == (3, {"cause": "retrieval", "by": "topic", "in": "pets"})
    (carrier,) = view.carriers
    assert carrier.row
    assert (carrier.number, carrier.row.name, carrier.row.before, carrier.row.value) == (3, "pets", 1.0, 0.0)
    assert dict(carrier.query) == {"kind": "newly fails", "by": "topic", "in": "pets"}


@pytest.mark.parametrize("line", ["retrieval", "retrieval =", "nobody = @ana", "= @ana"])
def test_an_owner_belongs_to_a_cause(line: str) -> None:
    with pytest.raises(ValueError, match="is not CAUSE = OWNER with one of the causes error, run, "):
        owners_of(f"answer = @raj\n\n{line}")
    view = compared([asked("a", 0.9)], [asked("a", 0.1)], owners=line)
    assert [cause.owner for cause in view.causes] == [""]


def grouped(then: Mapping[str, Sequence[float]], now: Mapping[str, Sequence[float]]) -> OverviewView:
    def side(of: Mapping[str, Sequence[float]]) -> list[Any]:
        return [asked(f"{topic}{n}", it, topic=topic) for topic, scores in of.items() for n, it in enumerate(scores)]

    return compared(side(then), side(now))


def test_groups_come_worst_first_with_what_changed() -> None:
    then = {"pets": [0.9] * 20, "rent": [0.9] * 20, "noise": [0.9] * 10 + [0.1] * 10}
    view = grouped(then, {"pets": [0.1] * 15 + [0.9] * 5, "rent": [0.1] + [0.9] * 19, "noise": [0.9] * 20})
    (grouping,) = view.groupings
    share, mean = grouping.tables
    assert (grouping.key, share.label, mean.label) == ("topic", "tests that pass", "mean faithfulness")
    assert [(row.name, row.n, row.value, row.change, row.standing, row.failing) for row in share.rows] == [
        ("pets", 20, 0.25, "\u221275.0", "worse", 15),
        ("rent", 20, 0.95, "\u22125.0", "", 1),
        ("noise", 20, 1.0, "+50.0", "better", 0),
    ]
    assert (mean.rows[0].name, mean.rows[0].change) == ("pets", "\u22120.60")
    assert mean.rows[0].value == pytest.approx(0.3)
    row = share.rows[0]
    assert row.low is not None
    assert row.high is not None
    assert row.low < row.value < row.high
    assert (row.before, share.axis.place(1.0)) == (1.0, 100.0)


def test_a_key_that_does_not_group_has_no_table() -> None:
    tests = [asked(f"q{n}", 0.1 if n < 5 else 0.9, number=n, one="same", even=n % 2, odd=n < 5) for n in range(20)]
    assert [grouping.key for grouping in overview_of(*tests).groupings] == ["odd", "even"]
    assert sorted(overview_of(*tests).groupings[0].groups) == ["no", "yes"]
    assert overview_of(*GOOD).groupings == ()


def test_of_many_groups_the_worst_are_shown() -> None:
    tests = [asked(f"{n}-{i}", 0.1 if n == 30 else 0.9, topic=f"t{n}") for n in range(40) for i in range(2)]
    table = overview_of(*tests).groupings[0].tables[0]
    assert (table.rows[0].name, len(table.rows), table.more) == ("t30", 15, 25)


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([0.617, 0.711, 0.755], (0.6, 0.8)),
        ([0.9, 0.98], (0.88, 1.0)),
        ([0.0, 1.0], (0.0, 1.0)),
        ([0.85], (0.84, 0.86)),
        ([-0.07, 0.0], (-0.08, 0.02)),
        ([3.2, 4.7], (3.0, 5.0)),
        ([], (0.0, 1.0)),
        ([-1e308, 1e308], (-1e308, 1e308)),
    ],
)
def test_an_axis_spans_where_the_values_are(values: list[float], ends: tuple[float, float]) -> None:
    axis = Axis.around(values)
    assert "-" not in "".join(axis.ends(share=False))  # a minus sign
    assert (axis.low, axis.high) == ends
    assert all(0 <= axis.place(value) <= 100 for value in values)


LOW = gate("noise", 0.1, bound=0.2, between=None, better="lower")
DROP = shapes.RegressionRecord(
    alpha=0.05, before=0.9, after=0.83, changed=9, p=0.02, adjusted_p=0.02, smallest=0.16, new=3, worse=8, better=1
)
OPEN = gate(value=0.815, outcome="inconclusive")
MISSED = gate(value=0.7, between=None, outcome="failed", unscored=2)


@pytest.mark.parametrize(
    ("found", "before", "shown"),
    [
        (gate(), None, ("0.830", "", "")),
        (gate(value=0.79996, outcome="failed"), gate(), ("0.79996", "−0.03", "")),
        (replace(OPEN, more=140), gate(), ("0.815", "−0.02", "140 more rows would settle it")),
        (OPEN, None, ("0.815", "", "more rows would settle it")),
        (replace(MISSED, value=0.9), None, ("0.900", "", "2 of its rows have no score")),
        (MISSED, None, ("0.700", "", "")),
        (RATE, replace(RATE, value=0.75, outcome="passed"), ("60.0\u00a0%", "−15.0 points", "")),
        (RATE, replace(RATE, outcome="passed"), ("60.0\u00a0%", "±0 points", "")),
        (gate(value=None, between=None, outcome="skipped"), gate(), ("–", "", "")),
        (replace(gate(value=-0.07), regression=DROP), gate(), ("−0.070 (0.900 → 0.830)", "", "")),
    ],
)
def test_a_gate_then_and_now(found: shapes.GateRecord, before: shapes.GateRecord | None, shown: Any) -> None:
    view = GateView(gate=found, before=before)
    shown_now = (view.value, view.change, gate_open(found))
    assert tuple(text.replace("\u2212", "−") for text in shown_now) == shown
    assert view.newly == (before is not None and found.outcome in ("failed", "inconclusive"))


def test_a_gate_says_what_it_is_over() -> None:
    macros: Any = environment().get_template("overview.html.jinja").module
    part = replace(gate(n=2, unscored=1), total=9)
    assert "<small>n 2, 1 unscored, of 9 tests</small>" in macros.gates(overview_of(row("test_gate", gate=part)))
    assert "<small>n 40</small>" in macros.gates(overview_of(row("test_gate", gate=gate())))
    sure = [replace(gate(), confidence=share) for share in (0.9, 0.9, 0.95)]
    for found, told in ((sure[:2], "now, 90 % interval, "), (sure, "now, interval, "), ([gate(between=None)], "now, ")):
        shown = macros.gates(overview_of(*(row(f"test_{n}", gate=it) for n, it in enumerate(found))))
        assert f'</span> {told}<span aria-hidden="true">│' in shown
    # The limit of a test that drew a line is said once.
    drops = (DROP, "(limit 5 %)</small>"), (replace(DROP, p=None, silence="one judge"), "one judge, alpha 0.05</small>")
    for drop, end in drops:
        assert end in macros.gates(overview_of(row("test_gate", gate=replace(gate(value=-0.07), regression=drop))))


def test_gates_of_one_name_are_told_apart_by_their_test() -> None:
    found = gate(value=0.6, outcome="failed")
    after = [
        row("test_faq[gate-faithfulness-mean-0.8]", gate=gate()),
        row("test_bot[gate-faithfulness-mean-0.8]", gate=found, outcome="failed"),
        row("test_bot[gate-noise-mean-0.2]", gate=LOW),
    ]
    view = compared([row("test_bot[gate-faithfulness-mean-0.7]", gate=gate(value=0.8, bound=0.7))], after)
    assert [(gate_title(gate.gate), gate.where, gate.anchor) for gate in view.gates] == [
        ("mean faithfulness", "test_bot", f"{FILE}::test_bot[gate-faithfulness-mean-0.8]"),
        ("mean faithfulness", "test_faq", f"{FILE}::test_faq[gate-faithfulness-mean-0.8]"),
        ("mean noise", "", f"{FILE}::test_bot[gate-noise-mean-0.2]"),
    ]
    assert [gate.former for gate in view.gates] == [0.8, None, None]


def test_a_gate_that_was_skipped_before_does_not_newly_fail() -> None:
    skipped, failed = gate(value=None, between=None, outcome="skipped"), gate(value=0.6, outcome="failed")
    name = "test_bot[gate-faithfulness-mean-0.8]"
    (found,) = compared([row(name, gate=skipped, outcome="skipped")], [row(name, gate=failed, outcome="failed")]).gates
    assert (found.before, found.newly) == (None, False)


def test_gates_of_tests_of_one_id_are_linked_by_their_number() -> None:
    view = overview_of(*(row("test_bot[gate-noise-mean-0.2]", gate=LOW) for _ in range(2)))
    link = f"{FILE}::test_bot[gate-noise-mean-0.2]"
    assert [gate.anchor for gate in view.gates] == [link, f"{link} (2)"]


def test_a_metric_in_a_line() -> None:
    failed = row("test_a", record(score=0.5, outcome="failed", at_least=0.8), outcome="failed")
    unscored = row("test_c", UNSCORED, outcome="failed")
    (line,) = overview_of(failed, row("test_b", record(score=1.0, at_least=0.7)), unscored).metrics
    assert (line.tally.n, line.tally.mean, line.worst, line.tally.failing, line.tally.unscored) == (2, 0.75, 0.5, 1, 1)
    assert [threshold.bound for threshold in line.thresholds] == [0.7, 0.8]
    (line,) = overview_of(row("test_a", UNSCORED, outcome="failed")).metrics
    assert (line.tally.mean, line.worst, line.distribution) == (None, None, None)
    low, high = record("h", 0.1, at_most=0.5), record("h", 0.9, at_most=0.5, outcome="failed")
    assert overview_of(row("test_a", low), row("test_b", high)).metrics[0].worst == 0.9


def test_a_metric_leaves_out_what_had_nothing_to_check() -> None:
    failed, fine = record(score=0.4, outcome="failed"), record(score=0.9)
    vacuous = [record(score=score, vacuous=True) for score in (1.0, 1.0, 0.0)]
    silent_rows = [row(f"test_v{number}", each) for number, each in enumerate(vacuous)]
    without = overview_of(row("test_a", failed), row("test_b", fine))
    with_all = overview_of(row("test_a", failed), *silent_rows, row("test_b", fine))
    (shown,), (plain,) = with_all.metrics, without.metrics
    assert (shown.distribution, shown.tally.mean, shown.worst) == (plain.distribution, plain.tally.mean, plain.worst)
    assert (shown.tally.n, shown.tally.vacuous, plain.tally.vacuous) == (2, 3, 0)
    facts = dict(with_all.facts)
    assert (facts["Scored"], facts["Nothing to check"]) == ("2 scores of 1 metric in 2 tests", "3 scores")
    (silent,) = overview_of(row("test_v", *vacuous)).metrics
    assert (silent.distribution, silent.tally.mean, silent.worst, silent.tally.n) == (None, None, None, 0)


def test_metrics_with_failures_come_first() -> None:
    others = record("c", None, outcome="unscored"), record("d", 0.1, outcome="failed")
    view = overview_of(row("test_a", record("b"), record("a"), *others))
    assert [line.tally.metric for line in view.metrics] == ["d", "c", "a", "b"]


def test_a_cluster_that_another_key_names_is_not_said_twice() -> None:
    for metadata, shown in (
        ({"conversation": "c"}, {"conversation": "c"}),
        ({"page": "d"}, {"page": "d", "cluster": "c"}),
    ):
        test = row("test_a", record(sample={"metadata": {**metadata, "cluster": "c", "lines": ()}}))
        assert metadata_of(test) == shown


def test_the_ends_of_a_histogram_have_the_unit() -> None:
    macros: Any = environment().get_template("pictures.html.jinja").module
    measured = record("latency", 2.4, unit="s", outcome="measured", scale=None)
    for scored, ends in ((measured, "<span>0 s</span><span>2.5 s</span>"), (record(), "<span>0</span><span>1</span>")):
        (line,) = overview_of(row("test_a", scored)).metrics
        assert ends in macros.histogram(line)


def test_the_text_of_a_distribution_says_what_it_shows() -> None:
    picture = build_distribution([(0.2, True), (0.9, False), (0.92, True), (0.7, False)], [0.8, 0.7])
    assert picture is not None
    assert picture.text == "4 scores between 0.20 and 0.92, mean 0.680, threshold 0.70 and 0.80, 2 fell short"
    bins = {index: counts for index, counts in enumerate(picture.bins) if any(counts)}
    assert bins == {4: (1, 0), 14: (0, 1), 18: (1, 1)}


def test_a_score_on_an_edge_belongs_to_the_bin_above() -> None:
    """0.3 is right of a threshold of 0.3, although binary fractions are what they are."""
    picture = build_distribution([(step / 20, False) for step in range(20)], [0.3])
    assert picture is not None
    assert picture.bins == ((0, 1),) * 20


def test_the_facts_of_a_run() -> None:
    verdicts = [verdict("a", ok=True), verdict("b", ok=True)]
    cheap = record(judge="openai:m", usage=usage(2, 0, 800, 0.01), verdicts=verdicts)
    dear = record(usage=usage(1, 3, 80, 0.02, 0.05))
    tests = row("test_a", cheap, duration=9), row("test_b", dear), row("test_gate", gate=gate())
    view = overview_of(*tests, settings={"b": True, "a": None, "c": 0.5}, notes=["stopped at the budget"])
    facts = dict(view.facts)
    assert facts["Started"] == "2026-03-02 16:41:07 UTC"
    assert facts["Exit status"] == "1 (tests failed)"
    assert (view.judges, view.verdicts) == (("openai:m",), "2 verdicts on 1 score")
    macros: Any = environment().get_template("overview.html.jinja").module
    judge, rest = macros.judge(view), macros.run(view)
    assert "3 calls, 990 tokens, $0.03; 3 saved by the cache, $0.05 (" in judge
    assert " · 48.3\u00a0s (" in judge
    assert re.findall("<bdi>(.*?)</bdi>", rest) == ["a", "not set", "b", "yes", "c", "0.5"]
    assert '<li dir="auto">stopped at the budget</li>' in rest
    assert "not by a model" not in judge
    heuristic = overview_of(row("t", record(judge="local (heuristic)")))
    assert "Scored by local (heuristic), not by a model" in macros.judge(heuristic)


def run(*scores: float | None, judge: str = "m") -> shapes.Document:
    return document(*(row(f"test_{index}", record("a", score, judge=judge)) for index, score in enumerate(scores)))


def test_what_cannot_be_compared_is_named() -> None:
    now = run(0.5)
    view = build_report_view(now, compare_documents(now, run(*[0.5] * 103))).overview
    assert (view.gone[0], len(view.gone)) == (f"{FILE}::test_1", 102)
    macros: Any = environment().get_template("overview.html.jinja").module
    assert "test_100</bdi></li><li>and 2 more</li>" in macros.causes_of(view)
    now = run(0.5, judge="large")
    view = build_report_view(now, compare_documents(now, run(0.9, judge="small"))).overview
    assert "Not compared: 1 of a: judged by large now, by small in the baseline" in macros.since(view)


def test_mutants_are_counted_by_kind_and_survivors_are_named(tmp_path: Path) -> None:
    """A kind of a later version has a row too; without mutants there is no section."""
    found = [
        shapes.MutantRecord(kind="quotation", text=HOSTILE[0], verdicts={"test_a": False, "test_b": None}),
        shapes.MutantRecord(kind="number", text="r", verdicts={"test_a": True, "test_b": False}),
        shapes.MutantRecord(kind="later", text="r", verdicts={"test_a": None}),
    ]
    run = document(row("test_a", record()))
    made = replace(run, run=replace(run.run, mutants=tuple(found)))
    (tmp_path / "run.json").write_text(shapes.render_json(made), "utf-8")
    assert shapes.read_document(tmp_path / "run.json") == made
    assert merge_documents([made, made]).run.mutants == (*found, *found)
    page = render_html(made)
    section = page.partition('id="mutants"')[2].partition("</section>")[0]
    cells = [" ".join(re.sub("<[^<>]*>", " ", line).split()) for line in section.split("\n") if "rowheader" in line]
    assert cells == ["number 1 1 of 1 0 of 1 1 of 1", "quotation 1 0 of 1 – 0 of 1", "later 1 – – –"]
    assert "1 of 2 planted faults noticed" in section
    assert "1 not noticed; what would notice: quoted_spans_alignment, or faithfulness</summary>" in section
    assert "&lt;script&gt;" in section
    assert 'id="mutants"' not in render_html(run)


def test_a_metric_says_how_its_mean_changed() -> None:
    after = run(0.4, 0.8)
    (line,) = build_report_view(after, compare_documents(after, run(0.9, 0.5))).overview.metrics
    assert line.change == "0.100 worse over 2 scores"
    (line,) = build_report_view(after, compare_documents(after, run(0.4, 0.8001))).overview.metrics
    assert line.change == ""
    # Seconds differ in every run: from a tenth on they are a change.
    for seconds, change in ((1.025, ""), (1.5, "0.500 s worse over 1 score")):
        old, now = (
            document(row("test_0", record("latency", it, at_least=None, better="lower", unit="s")))
            for it in (1.0, seconds)
        )
        (line,) = build_report_view(now, compare_documents(now, old)).overview.metrics
        assert line.change == change


def test_a_line_says_since_which_run_it_does_not_hold() -> None:
    trends = build_trends(month()).trends
    (share,) = (trend for trend in trends if trend.share)
    assert share.crossed == "2026-10-25 08:14 25c0ffe"
    *others, part = share.parts
    part = (*part[:-2], *(replace(point, outcome="inconclusive") for point in part[-2:]))
    assert replace(share, parts=(*others, part)).crossed == share.crossed
    assert {trend.crossed for trend in trends if not trend.share} == {""}


def test_what_is_to_be_looked_at_leads_to_its_tests() -> None:
    odd = record(verdicts=[verdict("a", ok=True, suspicious=True)])
    view = build_report_view(document(row("test_a", record(votes=[0.5, 0.95])), row("test_b", odd), row("test_c", odd)))
    marks = [(text.partition(" ")[0], dict(query)) for text, query in view.overview.marks]
    assert marks == [("1", {"mark": "flaky"}), ("2", {"mark": "suspicious"})]
