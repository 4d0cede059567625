"""A sample with its verdicts as the page shows it: numbers, highlights and where they lead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.report.sample_view import (
    Highlight,
    HighlightKind,
    NearMiss,
    SampleView,
    Scale,
    build_sample_views,
    build_votes_view,
    cut,
    fits,
    fold,
)
from pytest_ragmetrics.result import Evidence, Verdict
from tests.documents import HANDBOOK, evidence, nearest, record, verdict

KINDS: tuple[HighlightKind, ...] = ("missing", "found", "against", "evidence", "nearest")
RANGES = st.integers(-3, 30)
HIGHLIGHTS = st.lists(
    st.builds(Highlight, start=RANGES, end=RANGES, kind=st.sampled_from(KINDS), number=st.integers(1, 9)), max_size=8
)
RESPONSE = "It says “Hoses may be used” and “sheds need nothing”."
SAMPLE = {"response": RESPONSE, "retrieved_contexts": list(HANDBOOK)}
FOUND = verdict("Hoses may be used", ok=True, response=RESPONSE, evidence=[evidence("Hoses may be used", HANDBOOK, 1)])
STEPS = [("same", "sheds need", "Sheds need"), ("replaced", "nothing", "the committee's consent")]
NEAR = nearest("Sheds need the committee's consent", HANDBOOK, 2, 0.7, STEPS)
MISSING = verdict("sheds need nothing", ok=False, response=RESPONSE, nearest=NEAR)


def mark(start: int, end: int, kind: HighlightKind = "found", number: int = 1) -> Highlight:
    """Return a highlight."""
    return Highlight(start=start, end=end, kind=kind, number=number)


def sample_of(*verdicts: Verdict, **sample: object) -> SampleView:
    """Return the only sample of one failing record with these verdicts."""
    (view,) = build_sample_views([record(score=0.5, outcome="failed", sample=SAMPLE | sample, verdicts=verdicts)])
    return view


def near_miss(found: Verdict, **sample: object) -> NearMiss:
    """Return the near miss of a verdict."""
    miss = sample_of(found, **sample).scores[0].verdicts[0].near_miss
    assert miss is not None
    return miss


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=25), HIGHLIGHTS)
def test_pieces_make_up_the_text_under_all_their_highlights(text: str, marks: list[Highlight]) -> None:
    """Nothing is lost, doubled or moved; each fitting highlight covers its range, and opens and closes once."""
    pieces, offset = cut(text, marks), 0
    fitting = sorted(repr(m) for m in marks if fits(m.start, m.end, text))
    assert "".join(piece.text for piece in pieces) == text
    assert sorted(repr(m) for piece in pieces for m in piece.opens) == fitting
    assert sorted(repr(m) for piece in pieces for m in piece.closes) == fitting
    for piece in pieces:
        for index in range(offset, offset + len(piece.text)):
            covering = [m for m in marks if fits(m.start, m.end, text) and m.start <= index < m.end]
            assert sorted(map(repr, piece.marks)) == sorted(map(repr, covering))
        offset += len(piece.text)


def test_what_is_wrong_shows_over_what_is_right() -> None:
    """Where a missing span lies in a found one, the reader sees the missing one."""
    pieces = cut("abcdef", [mark(0, 6), mark(2, 4, "missing", 2)])
    assert [(p.text, p.mark and p.mark.kind) for p in pieces] == [("ab", "found"), ("cd", "missing"), ("ef", "found")]


@given(st.integers(0, 12_000), st.integers(0, 9_000), st.integers(1, 4_000))
def test_folding_keeps_the_text(length: int, start: int, size: int) -> None:
    """Folding hides, it does not remove."""
    text = ("some words and " * 900)[:length]
    assert "".join(piece.text for piece in fold(cut(text, [mark(start, start + size)]))) == text


WORDS = "word " * 1000


@pytest.mark.parametrize(
    ("text", "highlights", "pieces"),
    [
        # Next to a highlight words stay whole, and a stretch that would hide little is shown.
        (
            f"{WORDS}HERE {WORDS}", [mark(5000, 5004)],
            [(4805, True), (195, False), (4, False), (200, False), (4801, True)],
        ),
        ("x" * 500 + "HERE" + "y" * 500, [mark(500, 504)], [(500, False), (4, False), (500, False)]),
        ("x" * 2300, [], [(2300, False)]),
        ("x" * 5000, [], [(2000, False), (3000, True)]),
        ("x" * 9000, [mark(0, 9000)], [(1500, False), (7000, True), (500, False)]),
    ],
    ids=["around a highlight", "short", "short without", "long without", "a long highlight"],
)  # fmt: skip
def test_long_stretches_are_folded(text: str, highlights: list[Highlight], pieces: list[tuple[int, bool]]) -> None:
    """What is next to a highlight stays in sight, of a text without any the beginning."""
    found = fold(cut(text, highlights))
    assert [(len(piece.text), piece.folded) for piece in found] == pieces
    assert [len(piece.opens) for piece in found].count(1) == [len(piece.closes) for piece in found].count(1)
    assert all(piece.marks for piece in found) == (len(highlights) == 1 and highlights[0].start == 0)


def test_marks_of_the_response_lead_to_evidence_or_the_nearest_passage() -> None:
    """Number n in the response is verdict n, and its goal is a mark in a context, which leads back to it."""
    view = sample_of(FOUND, MISSING)
    assert view.marked_as == {"found", "missing"}
    assert [
        (s.text, s.mark.number, s.mark.kind, s.mark.anchor, s.mark.link) for s in view.response or () if s.mark
    ] == [
        ("Hoses may be used", 1, "found", "m1", "v1"),
        ("sheds need nothing", 2, "missing", "m2", "v2"),
    ]
    goals = [s.mark.goal for s in view.response or () if s.mark]
    ((title, contexts),) = view.sources
    assert title == "Contexts"
    marks = [m for context in contexts for s in context.segments for m in s.opens]
    assert [(m.anchor, m.link) for m in marks] == [("e1.0", "m1"), ("n2", "m2")]
    assert goals == ["e1.0", "n2"]


def test_verdicts_that_are_not_ok_come_first_with_their_places() -> None:
    """The numbers stay; a reader finds ``contexts[i][start:end]`` of the failure text again."""
    wrong, right = sample_of(FOUND, MISSING).scores[0].verdicts
    assert [(wrong.number, wrong.word), (right.number, right.word)] == [(2, "not found"), (1, "found")]
    start = HANDBOOK[1].index("Hoses")
    assert [place.label for place in right.evidence] == [f"contexts[1][{start}:{start + 17}]"]


@pytest.mark.parametrize(
    ("found", "look", "word", "reason"),
    [
        ({"ok": True, "kind": "found", "reason": "found"}, "found", "found", None),
        (
            {"ok": False, "kind": "not found", "reason": "not found; looks like a title"},
            "missing",
            "not found; l",
            None,
        ),
        ({"ok": True, "kind": "quotes the question"}, "uncounted", "quotes the question", None),
        (
            {"ok": True, "kind": "allowed", "reason": "allowed: it is in allowed[0]"},
            "uncounted",
            "allowed: it is",
            None,
        ),
        ({"ok": True, "kind": "looks like a title", "reason": "so it is"}, "uncounted", "looks like a ti", "so it is"),
    ],
)
def test_the_kind_of_a_quoted_span_is_said_in_words(
    found: dict[str, Any], look: str, word: str, reason: str | None
) -> None:
    """A span that is not counted is neither a find nor a fault, in the response and among the verdicts."""
    view = sample_of(verdict("Hoses may be used", response=RESPONSE, **found))
    (shown,) = view.scores[0].verdicts
    assert ([*view.marked_as], shown.kind, shown.reason) == ([look], look, reason)
    assert shown.word.startswith(word)


def test_what_a_fault_rests_on_counts_against_it() -> None:
    """A sentence that the response contradicts is no evidence for anything."""
    contradicted = verdict("Hoses", ok=False, evidence=[evidence("Hoses may be used", HANDBOOK, 1)])
    context = sample_of(contradicted, FOUND).sources[0][1][1]
    assert context.verdicts == {"evidence": [2], "against": [1], "nearest": []}
    assert [m.kind for segment in context.segments for m in segment.opens] == ["against", "evidence"]


def test_contexts_that_matter_are_open() -> None:
    """A context nothing points to is closed, unless nothing points anywhere and the score is bad."""
    assert [context.opened for context in sample_of(FOUND, MISSING).sources[0][1]] == [False, True, True]
    assert [context.opened for context in sample_of(verdict("x", ok=False)).sources[0][1]] == [True, True, True]
    (passed,) = build_sample_views([record(sample=SAMPLE)])
    assert [context.opened for context in passed.sources[0][1]] == [False, False, False]


def test_a_range_that_does_not_read_as_it_says_is_listed_only() -> None:
    """A mark in the wrong place would be wrong: out of range, another text, no such context, not in the response."""
    ranges = [(0, 0, 5), (9, 0, 5), (1, -5, 10**6)]
    wrong = [Evidence(context=context, start=start, end=end, text="Hoses") for context, start, end in ranges]
    view = sample_of(verdict("Hoses", ok=True, evidence=wrong), Verdict(text="x", ok=False, start=5, end=10_000))
    assert [place.anchor for place in view.scores[0].verdicts[1].evidence] == [None] * 3
    assert not view.marked_as
    assert not any(s.mark for context in view.sources[0][1] for s in context.segments)


def test_evidence_may_be_in_the_reference_contexts() -> None:
    """The field in which the range reads as it says is the one that is meant."""
    piece = Evidence(context=0, start=0, end=7, text="Nothing")
    view = sample_of(verdict("x", ok=True, evidence=[piece]), reference_contexts=["Nothing else."])
    assert view.scores[0].verdicts[0].evidence[0].label == "reference_contexts[0][0:7]"
    title, (context,) = view.sources[1]
    assert (title, context.label, context.verdicts["evidence"]) == ("Reference contexts", "reference_contexts[0]", [1])


def test_records_on_the_same_sample_are_shown_together() -> None:
    """One response, numbers that run on, and all fields that any of the records knows; another sample is apart."""
    again = {"response": RESPONSE, "user_input": "Why?"}
    other = record("answer_relevancy", sample=again, verdicts=[verdict("Why not?", ok=True)])
    (view,) = build_sample_views([record(sample=SAMPLE, verdicts=[FOUND, MISSING]), other])
    assert (view.question, len(view.sources)) == ("Why?", 1)
    assert [found.number for found in view.scores[1].verdicts] == [3]
    elsewhere = record(sample={"response": RESPONSE, "retrieved_contexts": ["Another."]})
    records = [record(sample=SAMPLE), elsewhere, record(sample={"response": "x"}), record(), record()]
    assert len(build_sample_views(records)) == 5


def test_a_near_miss_spells_out_both_texts() -> None:
    """Each side reads as a sentence, and what differs is told apart."""
    miss = near_miss(MISSING)
    assert "".join(word for word, _ in miss.said) == "sheds need nothing"
    assert "".join(word for word, _ in miss.source) == "Sheds need the committee's consent"
    assert [word for word, differs in miss.source if differs] == ["the committee's consent"]
    assert miss.similarity == "70%"


@pytest.mark.parametrize(
    ("text", "source", "steps", "said", "read"),
    [
        # Scripts without spaces get none; words that were folded are one space apart.
        (
            "火曜日は休館です: Straße! (zu)", "曜日は休館です。Straße, zu",
            [
                ("added", "火", ""), ("same", "曜日は休館です", "曜日は休館です"),
                ("replaced", "strasse", "strasse"), ("same", "zu", "zu"),
            ],
            "火曜日は休館です strasse zu", "曜日は休館です strasse zu",
        ),
        # Punctuation stays.
        ("(a, c).", "Water", [("same", "a", "a"), ("missing", "", "b"), ("same", "c", "c")], "(a, c).", "a b c"),
    ],
    ids=["folded", "punctuation"],
)  # fmt: skip
def test_a_near_miss_keeps_what_is_between_the_words(
    text: str, source: str, steps: list[tuple[str, str, str]], said: str, read: str
) -> None:
    """As far as it is known."""
    miss = near_miss(
        verdict(text, ok=False, nearest=nearest(source, [source], 0, 0.9, steps)), retrieved_contexts=[source]
    )
    assert ("".join(word for word, _ in miss.said), "".join(word for word, _ in miss.source)) == (said, read)


def test_a_reason_that_says_it_better_replaces_the_word() -> None:
    """Nobody is told twice that a span was found allowing for ellipsis."""
    reasons = "found allowing for ellipsis", "found " * 50
    first, second = sample_of(*(replace(FOUND, reason=reason) for reason in reasons)).scores[0].verdicts
    assert (first.word, first.reason) == (reasons[0], None)
    assert (second.word, second.reason) == ("found", reasons[1])


def test_verdicts_about_no_text_are_not_found_or_missing() -> None:
    """A generated question is ok or not; there is no text to find it in."""
    verdicts = sample_of(verdict("Why?", ok=True), verdict("What?", ok=False)).scores[0].verdicts
    assert [found.word for found in verdicts] == ["not ok", "ok"]


def test_scores_carry_their_labels() -> None:
    """Vacuous, suspicious, votes that disagree, a heuristic judge."""
    odd = [verdict("x", ok=True, suspicious=True)]
    judge = "local (heuristic)"
    loose = record(score=0.8, at_least=0.7, vacuous=True, judge=judge, votes=[1.0, 0.6], sample=SAMPLE, verdicts=odd)
    assert build_sample_views([loose])[0].scores[0].labels == (
        "vacuous: scored 0.80",
        "1 suspicious verdict",
        "flaky: the votes lie on both sides of the threshold",
        "scored by a heuristic",
    )
    assert build_sample_views([record(votes=[0.95, 1.0])])[0].scores[0].labels == ()


@pytest.mark.parametrize(
    ("claim", "question", "told"),
    [
        ("Hoses may be used in 1908.", None, "suspicious: the evidence lacks 1908"),
        ("Hoses may be used in 1908.", "In 1908?", "suspicious: the evidence does not bear it out"),
        ("Dogs sleep beside the pond.", None, "suspicious: the evidence shares too few words with it"),
    ],
)
def test_suspicion_says_what_to_check(claim: str, question: str | None, told: str) -> None:
    """The numbers and names that the evidence and the question lack, or that it has other words."""
    cited = [evidence("Hoses may be used", HANDBOOK, 1)]
    view = sample_of(verdict(claim, ok=True, suspicious=True, evidence=cited), user_input=question)
    assert view.scores[0].verdicts[0].suspicion == told


def test_ids_and_metadata_are_text() -> None:
    """The ids of contexts are beside these, unless there are more of them."""
    metadata = {"round": 2, "tags": ["x"], "who": "Mira", "none": None}
    view = sample_of(id="s1", retrieved_context_ids=["a", 2], reference_context_ids=["b", 3], metadata=metadata)
    assert view.rest == (
        ("id", "s1"),
        ("reference_context_ids", "b, 3"),
        ("none", ""),
        ("round", "2"),
        ("tags", '["x"]'),
        ("who", "Mira"),
    )
    assert [context.source for context in view.sources[0][1]] == ["a", "2", None]


def test_votes_say_on_which_side_they_are() -> None:
    """In the order they were cast; one vote is the score itself, and without a threshold none falls short."""
    votes = build_votes_view(record(score=0.25, outcome="failed", at_least=0.8, votes=[0.25, 0.9, 0.35]))
    assert votes is not None
    assert (votes.votes, votes.bound) == (((0.25, True), (0.9, False), (0.35, True)), 0.8)
    assert votes.text == "3 votes: 0.25, 0.90, 0.35; 2 of 3 fell short"
    votes = build_votes_view(record(score=3.0, outcome="measured", votes=[1.0, 3.0]))
    assert votes is not None
    assert (votes.votes, votes.scale, votes.text) == (
        ((1.0, False), (3.0, False)),
        Scale(low=0, high=3),
        "2 votes: 1.00, 3.00",
    )
    assert build_votes_view(record(votes=[1.0])) is None


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_every_value_is_on_its_scale(values: list[float]) -> None:
    """However far apart they are, nothing is drawn outside of the picture."""
    scale = Scale.around(values)
    assert all(0 <= scale.place(value) <= 1 for value in values)
