"""A sample with its verdicts: numbers, marks, and where they lead."""

from __future__ import annotations

from dataclasses import replace

from pytest_ragmetrics.report.page.exhibits import SampleView, build_sample_views
from pytest_ragmetrics.result import Evidence, Verdict
from tests.documents import HANDBOOK, evidence, nearest, record, verdict

RESPONSE = "It says “Hoses may be used” and “sheds need nothing”."
SAMPLE = {"response": RESPONSE, "retrieved_contexts": list(HANDBOOK)}
FOUND = verdict("Hoses may be used", ok=True, response=RESPONSE, evidence=[evidence("Hoses may be used", HANDBOOK, 1)])
NEAR = nearest(
    "Sheds need the committee's consent",
    HANDBOOK,
    2,
    0.7,
    [("same", "sheds need", "Sheds need"), ("replaced", "nothing", "the committee's consent")],
)
MISSING = verdict("sheds need nothing", ok=False, response=RESPONSE, nearest=NEAR)


def laid_out(*verdicts: Verdict, **sample: object) -> SampleView:
    """Return the only exhibit of one failing record with these verdicts."""
    (exhibit,) = build_sample_views([record(score=0.5, outcome="failed", sample=SAMPLE | sample, verdicts=verdicts)])
    return exhibit


def test_marks_of_the_response_lead_to_evidence_or_the_nearest_passage() -> None:
    """Number n in the response is verdict n, and its goal is a mark that exists in a context."""
    exhibit = laid_out(FOUND, MISSING)
    assert exhibit.response is not None
    assert [(s.text, s.mark.number, s.mark.kind) for s in exhibit.response if s.mark] == [
        ("Hoses may be used", 1, "found"),
        ("sheds need nothing", 2, "missing"),
    ]
    assert exhibit.contexts is not None
    anchors = {m.anchor for context in exhibit.contexts for s in context.segments for m in s.opens}
    assert set(exhibit.goals.values()) == anchors == {"e1.0", "n2"}
    assert exhibit.marked == {1, 2}


def test_findings_list_what_is_wrong_first() -> None:
    """The numbers stay those of the verdicts."""
    (scored,) = laid_out(FOUND, MISSING).scored
    assert [(finding.number, finding.word) for finding in scored.findings] == [(2, "not found"), (1, "found")]


def test_places_are_written_as_in_failure_texts() -> None:
    """A reader finds ``contexts[i][start:end]`` again."""
    exhibit = laid_out(FOUND)
    (place,) = exhibit.findings[0].evidence
    start = HANDBOOK[1].index("Hoses")
    assert place.label == f"contexts[1][{start}:{start + 17}]"
    assert exhibit.contexts is not None
    assert exhibit.contexts[1].label == "contexts[1]"


def test_what_a_fault_rests_on_counts_against_it() -> None:
    """A sentence that the response contradicts is no evidence for anything."""
    contradicted = verdict("Hoses", ok=False, evidence=[evidence("Hoses may be used", HANDBOOK, 1)])
    exhibit = laid_out(contradicted, FOUND)
    context = (exhibit.contexts or ())[1]
    assert (context.evidence, context.against) == ((2,), (1,))
    assert [mark.kind for segment in context.segments for mark in segment.opens] == ["against", "evidence"]
    assert exhibit.goals == {1: "e1.0", 2: "e2.0"}


def test_contexts_that_matter_are_open() -> None:
    """What nothing points to is closed, unless nothing points anywhere and the score is bad."""
    marked = laid_out(FOUND, MISSING).contexts or ()
    assert [(context.opened, context.evidence, context.nearest) for context in marked] == [
        (False, (), ()),
        (True, (1,), ()),
        (True, (), (2,)),
    ]
    assert all(context.opened for context in laid_out(verdict("x", ok=False)).contexts or ())
    (passed,) = build_sample_views([record(sample=SAMPLE)])
    assert not any(context.opened for context in passed.contexts or ())


def test_a_range_that_does_not_read_as_it_says_is_listed_only() -> None:
    """A mark in the wrong place would be a lie: out of range, another text, or no such context."""
    wrong: list[Evidence] = [
        Evidence(context=0, start=0, end=5, text="Hoses"),
        Evidence(context=9, start=0, end=5, text="Hoses"),
        Evidence(context=1, start=-5, end=10**6, text="Hoses"),
    ]
    exhibit = laid_out(verdict("Hoses", ok=True, evidence=wrong))
    assert [(place.anchor, place.text) for place in exhibit.findings[0].evidence] == [(None, "Hoses")] * 3
    assert exhibit.goals == {1: None}
    assert not any(s.mark for context in exhibit.contexts or () for s in context.segments)


def test_evidence_may_stand_in_the_reference_contexts() -> None:
    """The field in which the range reads as it says is the one that is meant."""
    exhibit = laid_out(
        verdict("x", ok=True, evidence=[Evidence(context=0, start=0, end=7, text="Nothing")]),
        reference_contexts=["Nothing else."],
    )
    assert exhibit.findings[0].evidence[0].label == "reference_contexts[0][0:7]"
    assert exhibit.reference_contexts is not None
    assert exhibit.reference_contexts[0].evidence == (1,)


def test_verdicts_with_offsets_that_do_not_fit_are_not_marked() -> None:
    """They stand in the list."""
    exhibit = laid_out(replace(verdict("x", ok=False), start=5, end=10_000))
    assert exhibit.marked == frozenset()
    assert len(exhibit.findings) == 1


def test_records_on_the_same_sample_are_shown_together() -> None:
    """One response, numbers that run on, and all fields that any of the records knows."""
    other = record(
        "answer_relevancy", sample={"response": RESPONSE, "user_input": "Why?"}, verdicts=[verdict("Why not?", ok=True)]
    )
    (exhibit,) = build_sample_views([record(sample=SAMPLE, verdicts=[FOUND, MISSING]), other])
    assert exhibit.question == "Why?"
    assert exhibit.contexts is not None
    assert [finding.number for finding in exhibit.scored[1].findings] == [3]


def test_records_on_different_samples_are_shown_apart() -> None:
    """Another response, or the same one to other contexts."""
    elsewhere = record(sample={"response": RESPONSE, "retrieved_contexts": ["Another."]})
    assert (
        len(
            build_sample_views([record(sample=SAMPLE), elsewhere, record(sample={"response": "x"}), record(), record()])
        )
        == 5
    )


def test_a_near_miss_spells_out_both_texts() -> None:
    """Each side reads as a sentence, and what differs is told apart."""
    miss = laid_out(MISSING).findings[0].near_miss
    assert miss is not None
    assert "".join(word.text for word in miss.said) == "sheds need nothing"
    assert "".join(word.text for word in miss.source) == "Sheds need the committee's consent"
    assert [word.text for word in miss.source if word.differs] == ["the committee's consent"]
    assert miss.similarity == "70%"


def test_a_near_miss_keeps_what_stands_between_the_words() -> None:
    """Scripts without spaces get none, punctuation stays, and words that were folded stand one space apart."""
    source = ["月曜日は休館です。Straße, zu"]
    steps = [
        ("added", "火", ""),
        ("same", "曜日は休館です", "曜日は休館です"),
        ("replaced", "strasse", "strasse"),
        ("same", "zu", "zu"),
    ]
    miss = (
        laid_out(
            verdict(
                "火曜日は休館です: Straße! (zu)",
                ok=False,
                nearest=nearest("曜日は休館です。Straße, zu", source, 0, 0.9, steps),
            ),
            retrieved_contexts=source,
        )
        .findings[0]
        .near_miss
    )
    assert miss is not None
    assert "".join(word.text for word in miss.said) == "火曜日は休館です strasse zu"
    assert "".join(word.text for word in miss.source) == "曜日は休館です strasse zu"
    steps = [("same", "a", "a"), ("missing", "", "b"), ("same", "c", "c")]
    miss = (
        laid_out(verdict("(a, c).", ok=False, nearest=nearest("Water", HANDBOOK, 1, 0.1, steps))).findings[0].near_miss
    )
    assert miss is not None
    assert "".join(word.text for word in miss.said) == "(a, c)."
    assert "".join(word.text for word in miss.source) == "a b c"


def test_a_reason_that_says_it_better_replaces_the_word() -> None:
    """Nobody is told twice that a span was found allowing for ellipsis."""
    short, long = (replace(FOUND, reason=reason) for reason in ("found allowing for ellipsis", "found " * 50))
    first, second = laid_out(short, long).findings
    assert (first.word, first.reason) == ("found allowing for ellipsis", None)
    assert (second.word, second.reason) == ("found", "found " * 50)


def test_scores_carry_their_labels() -> None:
    """Vacuous, suspicious, votes that disagree, a heuristic judge."""
    loose = record(
        score=0.8,
        at_least=0.7,
        vacuous=True,
        judge="local (heuristic)",
        votes=[1.0, 0.6],
        sample=SAMPLE,
        verdicts=[verdict("x", ok=True, suspicious=True)],
    )
    labels = build_sample_views([loose])[0].scored[0].labels
    assert labels == (
        "vacuous: there was nothing to check",
        "1 suspicious verdict",
        "flaky: the votes lie on both sides of the threshold",
        "scored by a heuristic",
    )
    assert build_sample_views([record(votes=[0.95, 1.0])])[0].scored[0].labels == ()


def test_verdicts_about_no_text_are_not_found_or_missing() -> None:
    """A generated question is ok or not; it stands nowhere."""
    exhibit = laid_out(verdict("Why?", ok=True), verdict("What?", ok=False))
    assert [finding.word for finding in exhibit.findings] == ["not ok", "ok"]


def test_the_small_print() -> None:
    """Metadata and the ids that stand beside no context, as text."""
    metadata = {"round": 2, "tags": ["x"], "who": "Mira"}
    exhibit = laid_out(id="s1", retrieved_context_ids=["a", 2], reference_context_ids=["b", 3], metadata=metadata)
    assert exhibit.rest == (
        ("id", "s1"),
        ("reference_context_ids", "b, 3"),
        ("round", "2"),
        ("tags", '["x"]'),
        ("who", "Mira"),
    )
    assert exhibit.contexts is not None
    assert [context.source for context in exhibit.contexts] == ["a", "2", None]
