"""The view model of the page: the list of tests, and a sample with its verdicts, highlights and where they lead."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.core.result import Evidence, Verdict
from pytest_ragmetrics.report import sample_view, tests_view
from pytest_ragmetrics.report.figures import Axis
from pytest_ragmetrics.report.highlights import Highlight, Stretch
from pytest_ragmetrics.report.page import environment
from pytest_ragmetrics.report.sample_view import SampleView, VerdictView, build_sample_views
from pytest_ragmetrics.report.tests_view import build_report_view
from pytest_ragmetrics.runs import records as shapes
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.wording.runs import gate_line
from tests.documents import FILE, HANDBOOK, document, evidence, gate, nearest, record, row, verdict

FAILED = record(score=0.4, outcome="failed", reason="Matched 2/5 quoted spans")


def only(test: shapes.TestRecord) -> tests_view.TestView:
    (view,) = build_report_view(document(test)).tests
    return view


def test_the_worst_test_comes_first() -> None:
    tests = [
        *(row("passed", record(score=0.95)), row("skipped", outcome="skipped"), row("error", outcome="error")),
        *(row("close", record(score=0.89, outcome="failed"), outcome="failed"), row("edge", record(score=0.9))),
        row("high", record(score=0.9, outcome="failed", at_most=0.1), outcome="failed"),
        row("far", record(score=0.3, outcome="failed"), outcome="failed"),
        row("unscored", record(score=None, outcome="unscored", reason="no claims"), outcome="failed"),
        *(row("xpassed", record(), outcome="xpassed"), row("xfailed", FAILED, outcome="xfailed")),
        row("measured", record(score=0.1, outcome="measured")),
    ]
    order = "high far close error unscored xpassed xfailed edge passed measured skipped"
    assert [test.name for test in build_report_view(document(*tests)).tests] == order.split()
    # What newly fails comes before what failed before.
    far, near = (record(score=score, outcome="failed") for score in (0.1, 0.8))
    now = document(row("test_far", far, outcome="failed"), row("test_near", near, outcome="failed"))
    before = document(row("test_far", far, outcome="failed"), row("test_near", record()))
    views = build_report_view(now, compare_documents(now, before)).tests
    assert [test.name for test in views] == ["test_near", "test_far"]


def test_links_are_the_ids_of_the_tests() -> None:
    alone = only(row("TestBot::test_refund[annual plan]"))
    assert (alone.anchor, alone.name) == (f"{FILE}::{alone.name}", "TestBot::test_refund[annual plan]")
    among = build_report_view(document(row("test_b"), row(alone.name), row(alone.name))).tests
    assert [test.anchor for test in among] == [f"{FILE}::test_b", alone.anchor, f"{alone.anchor} (2)"]
    assert len({test.key for test in among}) == 3


def test_a_test_is_marked_with_what_its_scores_are() -> None:
    flaky = record(score=0.9, votes=[0.5, 0.9, 0.95])
    odd = record(verdicts=[verdict("a", ok=True, suspicious=True)])
    test = only(row("test_a", flaky, odd, record(vacuous=True)))
    assert test.flags == ("flaky", "suspicious", "vacuous")
    assert only(row("test_a", record(votes=[0.9, 0.95]))).flags == ()


TRACEBACK = "    def test_a():\n>       assert x\nE       assert 41 < 20\nE        +  where\n\na.py:3: AssertionError"
WORSE = record("recall", 0.1, outcome="failed", reason="1 of 10 sentences")
UNREASONED = record(score=0.5, outcome="failed", verdicts=[verdict("a", ok=True), verdict("b", ok=False)])


@pytest.mark.parametrize(
    ("test", "why", "explained"),
    [
        (row("t", record(), FAILED, WORSE, outcome="failed"), "1 of 10 sentences", False),
        (row("t", UNREASONED, outcome="failed"), "1 of 2 not ok", False),
        (row("t", FAILED, outcome="failed", message=TRACEBACK), "Matched 2/5 quoted spans", False),
        (row("t", record(), outcome="failed", message=TRACEBACK), "assert 41 < 20", True),
        (row("t", FAILED, outcome="xfailed", message="not indexed yet"), "not indexed yet", True),
        *((row("t", record()), "", True), (row("t", outcome="error", message="\n \n"), "", True)),
        (row("t", gate=gate(), outcome="failed", message="E   no"), gate_line(gate()), True),
    ],
    ids=["worst score", "no reason", "score before pytest", "pytest", "xfail", "passed", "blank", "gate"],
)
def test_a_test_says_why(test: shapes.TestRecord, why: str, *, explained: bool) -> None:
    assert (only(test).why, only(test).explained) == (why, explained)


def test_a_row_leads_with_a_score_that_says_something() -> None:
    vacuous, other = record("quotations", 1.0, vacuous=True), record("faithfulness", 0.95)
    baseline = document(row("test_a", vacuous, record("faithfulness", 0.5, outcome="failed")))
    comparison = compare_documents(document(row("test_a", vacuous, other)), baseline)
    (view,) = build_report_view(comparison.document, comparison).tests
    assert [it.metric for it in view.records] == ["faithfulness", "quotations"]
    macros: Any = environment().get_template("test.html.jinja").module
    assert 'faithfulness</bdi> <span class="change">was 0.50' in macros.row(view)
    same = record("faithfulness", 0.92)
    # A score that was expected to fall short is not red, and says so.
    assert re.findall(r'class="v[^"]*"', macros.row(only(row("t", FAILED, outcome="xfailed")))) == ['class="v"']
    assert "<span>failed as expected</span>" in macros.row(only(row("t", FAILED, outcome="xfailed")))
    assert 'class="v failed"' in macros.row(only(row("t", FAILED, outcome="failed")))
    # A score that failed takes room for what it needs.
    three = [record(name, 0.4, outcome="failed") for name in "abc"]
    failing, passing = (only(row("t", *three, outcome=outcome)) for outcome in ("failed", "passed"))
    assert [macros.row(test).count("</bdi> <span") for test in (failing, passing)] == [2, 3]
    assert "<b>+1</b>" in macros.row(failing)
    earlier, both = (document(row("test_a", same, record("relevancy", score))) for score in (0.91, 0.99))
    (view,) = build_report_view(both, compare_documents(both, earlier)).tests
    assert '<bdi>relevancy</bdi> <span>✓ 0.99</span> <span class="change">was 0.91' in macros.row(view)


RESPONSE = "It says “Hoses may be used” and “sheds need nothing”."
SAMPLE = {"response": RESPONSE, "retrieved_contexts": list(HANDBOOK)}
FOUND = verdict("Hoses may be used", ok=True, response=RESPONSE, evidence=[evidence("Hoses may be used", HANDBOOK, 1)])
STEPS = [("same", "sheds need", "Sheds need"), ("replaced", "nothing", "the committee's consent")]
NEAR = nearest("Sheds need the committee's consent", HANDBOOK, 2, 0.7, STEPS)
MISSING = verdict("sheds need nothing", ok=False, response=RESPONSE, nearest=NEAR)


def sample_of(*verdicts: Verdict, outcome: str = "failed", judge: str | None = None, **sample: object) -> SampleView:
    made = record(score=0.5, outcome=outcome, sample=SAMPLE | sample, verdicts=verdicts, judge=judge)
    (view,) = build_sample_views([made])
    return view


def marks_of(stretches: Sequence[Stretch] | None) -> list[tuple[str, Highlight]]:
    pieces = [piece for stretch in stretches or () for piece in stretch.pieces]
    return [(piece.text, mark) for piece in pieces for mark in piece.closes]


def verdicts_of(view: SampleView, score: int = 0) -> tuple[VerdictView, ...]:
    return view.scores[score].findings + view.scores[score].others


def test_marks_of_the_response_lead_to_their_verdicts_and_those_of_contexts_back() -> None:
    view = sample_of(FOUND, MISSING)
    hoses, sheds = ("Hoses may be used", "0.2", "found", "m0.2"), ("sheds need nothing", "0.1", "missing", "m0.1")
    marked = marks_of(view.response)
    assert [(text, m.verdict, m.kind, m.anchor) for text, m in marked] == [hoses, sheds]
    assert [m.link for _, m in marked] == ["v0.2", "v0.1"]
    ((title, contexts),) = view.sources
    assert title == "Contexts"
    marks = [mark for context in contexts for _, mark in marks_of(context.stretches)]
    assert [(m.anchor, m.link, m.kind) for m in marks] == [("e0.2.0", "m0.2", "evidence"), ("n0.1", "m0.1", "nearest")]
    score = view.scores[0]
    assert [word for word, differs in score.findings[0].source if differs] == ["the committee's consent"]
    assert [(it.number, it.word) for it in (*score.findings, *score.others)] == [(1, "not found"), (2, "found")]
    start = HANDBOOK[1].index("Hoses")
    assert [place.label for place in score.others[0].evidence] == [f"contexts[1][{start}:{start + 17}]"]


def test_only_a_score_that_fell_short_has_certain_faults() -> None:
    for outcome, kind in (("failed", "missing"), ("passed", "missed"), ("measured", "missed")):
        assert verdicts_of(sample_of(MISSING, outcome=outcome))[0].kind == kind


NOWHERE = "stands in no context"
WORDS = [verdict(word, ok=False, response=RESPONSE, reason=NOWHERE) for word in ("says", "Hoses", "used")]


@pytest.mark.parametrize(
    ("verdicts", "judge", "words"),
    [
        (WORDS, None, ("says", "Hoses", "used")),
        ([*WORDS, verdict("sheds", ok=True, evidence=FOUND.evidence)], None, ("says", "Hoses", "used")),
        ([*WORDS, verdict("月曜", ok=False, reason=NOWHERE)], None, ("says", "Hoses", "used", "月曜")),
        ([*WORDS, WORDS[0]], None, ("says", "Hoses", "used")),
        # A judge's verdict can be wrong, and a claim, another reason or a near miss has more to say than its words.
        (WORDS, "openai:gpt-5-mini", ()),
        ([*WORDS, replace(MISSING, reason=None, nearest=None)], None, ()),
        ([*WORDS, verdict("need", ok=False, reason="another")], None, ()),
        ([*WORDS, verdict("月曜日は休館です", ok=False), verdict("開館は九時から", ok=False)], None, ()),
        ([*WORDS, replace(WORDS[0], nearest=NEAR)], None, ()),
        ([*WORDS, replace(WORDS[0], kind="looks like a title")], None, ()),
        ([*WORDS, replace(FOUND, kind="found", text="Hoses")], None, ()),
        *((WORDS[:2], None, ()), ([], None, ())),
    ],
)
def test_a_word_by_word_metric_lists_words(verdicts: list[Verdict], judge: str | None, words: tuple[str, ...]) -> None:
    view = sample_of(*verdicts, judge=judge)
    assert view.scores[0].words == words
    assert bool(verdicts_of(view)) == (not words and bool(verdicts))
    if words:
        marked = {(text, m.kind, m.number) for text, m in marks_of(view.response)}
        assert marked == {(word, "missing", None) for word in ("says", "Hoses", "used")}


@pytest.mark.parametrize(
    ("response", "missing", "shown"),
    [
        ("Short.", None, [("Short.", None)]),
        ("word " * 60, None, [("word " * 31 + "word", None), (" …", None)]),
        ("word " * 60 + "false", "false", [("… ", None), ("word " * 9, None), ("false", "missing")]),
        (
            "word false " + "word " * 60,
            "false",
            [("word ", None), ("false", "missing"), (" " + "word " * 28 + "word", None), (" …", None)],
        ),
    ],
)
def test_the_list_shows_the_first_fault(response: str, missing: str | None, shown: list[Any]) -> None:
    verdicts = [verdict(missing, ok=False, response=response)] if missing else []
    found = sample_view.preview_of(sample_of(*verdicts, response=response))
    assert [(text[:160], look) for text, look in found] == shown


@pytest.mark.parametrize(
    ("found", "look", "word", "reason"),
    [
        ({"ok": True, "kind": "found", "reason": "found"}, "found", "found", None),
        ({"ok": False, "kind": "not found", "reason": "not found; so"}, "missing", "not found; so", None),
        ({"ok": True, "kind": "quotes the question"}, "uncounted", "quotes the question", None),
        ({"ok": True, "kind": "allowed", "reason": "allowed: it is so"}, "uncounted", "allowed: it is so", None),
        ({"ok": True, "kind": "looks like a title", "reason": "so it is"}, "uncounted", "looks like a ti", "so it is"),
    ],
)
def test_the_kind_of_a_span_is_said_in_words(found: dict[str, Any], look: str, word: str, reason: str | None) -> None:
    view = sample_of(verdict("Hoses may be used", response=RESPONSE, **found))
    (shown,) = verdicts_of(view)
    assert ([mark.kind for _, mark in marks_of(view.response)], shown.kind, shown.reason) == ([look], look, reason)
    assert shown.word.startswith(word)


def test_contexts_that_matter_are_open() -> None:
    views = [sample_of(FOUND, MISSING), sample_of(verdict("x", ok=False)), sample_of(outcome="passed")]
    opened = [[context.opened for context in view.sources[0][1]] for view in views]
    assert opened == [[False, False, True], [True, True, True], [False, False, False]]
    # What a fault rests on counts against it.
    contradicted = verdict("Hoses", ok=False, evidence=[evidence("Hoses may be used", HANDBOOK, 1)])
    context = sample_of(contradicted, FOUND).sources[0][1][1]
    assert context.touched == (0,)
    assert sorted(mark.kind for _, mark in marks_of(context.stretches)) == ["against", "evidence"]


def test_a_range_that_does_not_read_as_it_says_is_listed_only() -> None:
    ranges = [(0, 0, 5), (9, 0, 5), (1, -5, 10**6)]
    wrong = [Evidence(context=context, start=start, end=end, text="Hoses") for context, start, end in ranges]
    view = sample_of(verdict("Hoses", ok=True, evidence=wrong), Verdict(text="x", ok=False, start=5, end=10_000))
    assert [place.anchor for place in view.scores[0].others[0].evidence] == [None] * 3
    assert not marks_of(view.response)
    assert not any(marks_of(context.stretches) for context in view.sources[0][1])


def test_evidence_may_be_in_the_reference_contexts() -> None:
    piece = Evidence(context=0, start=0, end=7, text="Nothing")
    view = sample_of(verdict("x", ok=True, evidence=[piece]), reference_contexts=["Nothing else."])
    assert verdicts_of(view)[0].evidence[0].label == "reference_contexts[0][0:7]"
    title, (context,) = view.sources[1]
    assert (title, context.field) == ("Reference contexts", context.label.partition("[")[0])
    assert [mark.kind for _, mark in marks_of(context.stretches)] == ["evidence"]


def test_records_on_the_same_sample_are_shown_together() -> None:
    again = {"response": RESPONSE, "user_input": "Why?"}
    other = record("answer_relevancy", sample=again, verdicts=[verdict("Why not?", ok=True)])
    failed = record(score=0.5, outcome="failed", sample=SAMPLE, verdicts=[FOUND, MISSING])
    (view,) = build_sample_views([other, failed])
    assert (view.question, len(view.sources)) == ("Why?", 1)
    numbers = {score.record.metric: score.number for score in view.scores}
    assert list(numbers.items()) == [("quoted_spans_alignment", 0), ("answer_relevancy", 1)]
    assert [found.id for found in verdicts_of(view, 1)] == ["1.1"]
    elsewhere = record(sample={"response": RESPONSE, "retrieved_contexts": ["Another."]})
    records = [record(sample=SAMPLE), elsewhere, record(sample={"response": "x"}), record(), record()]
    assert len(build_sample_views(records)) == 5


CONSENT = "Sheds need the committee's consent"
CLOSED = "曜日は休館です"
FOLDED = [("added", "火", ""), ("same", CLOSED, CLOSED), ("replaced", "strasse", "strasse"), ("same", "zu", "zu")]


@pytest.mark.parametrize(
    ("text", "source", "steps", "said", "read"),
    [
        ("sheds need nothing", CONSENT, STEPS, "sheds need nothing", CONSENT),
        # Scripts without spaces get none; words that were folded are one space apart.
        (
            f"火{CLOSED}: Straße! (zu)",
            f"{CLOSED}。Straße, zu",
            FOLDED,
            f"火{CLOSED} strasse zu",
            f"{CLOSED} strasse zu",
        ),
        # Punctuation stays.
        ("(a, c).", "Water", [("same", "a", "a"), ("missing", "", "b"), ("same", "c", "c")], "(a, c).", "a b c"),
    ],
    ids=["apart", "folded", "punctuation"],
)
def test_a_near_miss_keeps_what_is_between(text: str, source: str, steps: Any, said: str, read: str) -> None:
    found = verdict(text, ok=False, nearest=nearest(source, [source], 0, 0.9, steps))
    (miss,) = verdicts_of(sample_of(found, retrieved_contexts=[source]))
    assert ("".join(word for word, _ in miss.said), "".join(word for word, _ in miss.source)) == (said, read)


def test_a_reason_that_says_it_better_replaces_the_word() -> None:
    reasons = "found allowing for ellipsis", "found " * 50
    first, second = verdicts_of(sample_of(*(replace(FOUND, reason=reason) for reason in reasons)))
    assert (first.word, first.reason) == (reasons[0], None)
    assert (second.word, second.reason) == ("found", reasons[1])
    # Those about no text are ok or not.
    verdicts = verdicts_of(sample_of(verdict("Why so?", ok=True), verdict("What so?", ok=False)))
    assert [found.word for found in verdicts] == ["not ok", "ok"]


def test_scores_carry_their_labels() -> None:
    odd, judge = [verdict("x", ok=True, suspicious=True)], "local (heuristic)"
    loose = record(score=0.8, at_least=0.7, vacuous=True, judge=judge, votes=[1.0, 0.6], sample=SAMPLE, verdicts=odd)
    votes = "flaky: the votes lie on both sides of the threshold"
    labels = ["vacuous: scored 0.80", "1 suspicious verdict", votes, "scored by a heuristic"]
    assert list(sample_view.labels_of(loose)) == labels
    assert list(sample_view.labels_of(record(votes=[0.95, 1.0]))) == []


@pytest.mark.parametrize(
    ("claim", "question", "told"),
    [
        ("Hoses may be used in 1908.", None, "suspicious: the evidence lacks 1908"),
        ("Hoses may be used in 1908.", "In 1908?", "suspicious: the evidence does not bear it out"),
        ("Dogs sleep beside the pond.", None, "suspicious: the evidence shares too few words with it"),
    ],
)
def test_suspicion_says_what_to_check(claim: str, question: str | None, told: str) -> None:
    cited = [evidence("Hoses may be used", HANDBOOK, 1)]
    view = sample_of(verdict(claim, ok=True, suspicious=True, evidence=cited), user_input=question)
    assert verdicts_of(view)[0].suspicion == told


def test_ids_and_metadata_are_text() -> None:
    metadata = {"round": 2, "tags": ["x"], "who": "Mira", "none": None}
    ids: dict[str, Any] = {"id": "s1", "retrieved_context_ids": ["a", 2], "reference_context_ids": ["b", 3]}
    view = sample_of(**ids, metadata=metadata)
    texts = {"none": "", "round": "2", "tags": '["x"]', "who": "Mira"}
    assert view.rest == (("id", "s1"), ("reference_context_ids", "b, 3"), *texts.items())
    assert [context.source for context in view.sources[0][1]] == ["a", "2", None]
    assert json.loads(view.values) == {**ids, "metadata": metadata}


def test_votes_say_on_which_side_they_are() -> None:
    several = record(score=0.25, outcome="failed", at_least=0.8, votes=[0.25, 0.9, 0.35])
    assert sample_view.votes_text(several) == "3 votes: 0.25, 0.90, 0.35; 2 of 3 fell short"
    measured = record(score=3.0, outcome="measured", votes=[1.0, 3.0])
    assert sample_view.votes_text(measured) == "2 votes: 1.00, 3.00"
    macros: Any = environment().get_template("test.html.jinja").module
    pattern = 'class="(short|held)"|class="threshold" d="M([0-9.]+)'
    drawn = [re.findall(pattern, macros.votes_of(it, it.threshold)) for it in (several, measured)]
    assert drawn == [[("", "96.0"), ("short", ""), ("held", ""), ("short", "")], [("held", "")] * 2]
    (view,) = build_sample_views([record(votes=[1.0])])
    assert "votes" not in macros.score_of(view.scores[0], None)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_every_value_is_on_its_scale(values: list[float]) -> None:
    axis = Axis.whole(values)
    assert all(0 <= axis.share(value) <= 1 for value in values)
