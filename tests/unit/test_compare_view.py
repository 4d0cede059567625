"""One test against its counterpart in the baseline, as the page shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_ragmetrics.core.result import Evidence, Verdict
from pytest_ragmetrics.report.compare_view import (
    CompareView,
    PassageChange,
    SampleChange,
    build_compare_view,
    build_gone_view,
    count_chips,
    verdicts_change,
)
from pytest_ragmetrics.report.outcomes import gone_tests, paired_tests
from pytest_ragmetrics.report.page import environment
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.records import Judging, Record
from pytest_ragmetrics.runs.records import TestRecord as OneTest
from tests.documents import HOSTILE, document, evidence, record, row, verdict

PASSAGES = ("The rent is 62 pounds a year.", "Hoses may be used in the morning.", "Sheds need consent.")
SAMPLE: dict[str, Any] = {"id": "q1", "user_input": "What is the rent?", "response": "The rent is 62 pounds a year."}
SAMPLE["retrieved_contexts"] = PASSAGES
CLAIM = "The rent is 62 pounds a year"
MACROS: Any = environment().get_template("compare.html.jinja").module


def carried(text: str, context: int, *, ok: bool = True) -> Verdict:
    """Return a claim with all of a passage as evidence."""
    piece = evidence(PASSAGES[context], PASSAGES, context)
    return verdict(text, ok=ok, evidence=[piece] if ok else (), reason=None if ok else "stands nowhere")


def scored(
    score: float | None = 1.0, *, metric: str = "faithfulness", verdicts: Sequence[Verdict] = (), **fields: Any
) -> Record:
    """Return a record; ``fields`` are those of its sample, except for those of records."""
    own: dict[str, Any] = {
        name: fields.pop(name) for name in ("at_least", "judge", "votes", "vacuous", "noun") if name in fields
    }
    bound = own.setdefault("at_least", 0.8)
    short = bound is not None and score is not None and score < bound
    outcome = "unscored" if score is None else "failed" if short else "measured" if bound is None else "passed"
    own = {"noun": "claim", "verdicts": [*verdicts]} | own
    return record(metric, score, sample=SAMPLE | fields, outcome=outcome, **own)


def toxic(score: float) -> Record:
    return record("toxicity", score, at_most=0.5, sample=SAMPLE)


def one(*records: Record, name: str = "test_bot[q1]") -> OneTest:
    wrong = any(it.outcome in ("failed", "unscored") for it in records)
    return row(name, *records, outcome="failed" if wrong else "passed")


def view_of(
    now: OneTest, before: OneTest | None, judging: Sequence[dict[str, Judging]] = ({}, {})
) -> CompareView | None:
    runs = [document(*([] if it is None else [it])) for it in (now, before)]
    new, old = (replace(it, run=replace(it.run, judging=found)) for it, found in zip(runs, judging, strict=True))
    comparison = compare_documents(new, old)
    (pair,) = paired_tests(new, comparison)
    return build_compare_view(pair, comparison)


def samples_of(now: OneTest, before: OneTest, *judging: dict[str, Judging]) -> tuple[SampleChange, ...]:
    view = view_of(now, before, judging or ({}, {}))
    return view.samples if view else ()


def score_of(before: Record | None, now: Record | None) -> tuple[str, ...]:
    """Return what the page shows of a score then and now, one of which may be missing: the cells and their look."""
    runs = [document(*([] if it is None else [one(it)])) for it in (now, before)]
    (change,) = {id(pair): pair for pair in compare_documents(*runs).pairs.values()}.values()
    ((tone, row),) = re.findall(r'<tr class="(\w+)">(.*?)</tr>', MACROS.scores_of([change]))
    cells = re.findall("<td[^>]*>(?:<small>[^<]*</small>)?(.*?)</td>", row)
    return (*(re.sub("<[^>]*>", "", cell) for cell in cells), tone)


def sample_of(now: OneTest, before: OneTest) -> SampleChange:
    (sample,) = samples_of(now, before)
    return sample


OK = scored(metric="correctness")
LESS: dict[str, Any] = {"retrieved_contexts": PASSAGES[1:]}
OTHER: dict[str, Any] = {"response": "The rent is 72 pounds a year."}


@pytest.mark.parametrize(
    ("now", "before", "chips"),
    [
        (one(scored()), one(scored()), None),
        (one(scored()), None, ("new",)),
        (one(scored(0.5)), one(scored()), ("changed", "worse", "rescored")),
        (one(scored()), one(scored(0.5)), ("changed", "better", "rescored")),
        (one(scored(0.5, **LESS)), one(scored()), ("changed", "worse", "passages")),
        (one(scored(0.5, **OTHER)), one(scored()), ("changed", "worse")),
        (one(scored(**OTHER)), one(scored()), ("changed",)),
        (one(scored(retrieved_contexts=PASSAGES[::-1])), one(scored()), ("changed", "passages")),
        (one(scored(None)), one(scored()), ("changed", "worse", "rescored")),
        (one(scored(None)), one(scored(None)), None),
        (one(scored(0.9, votes=(0.7, 1.0))), one(scored(0.9)), ("flips",)),
        (one(scored(0.9, votes=(0.7, 1.0))), None, ("new", "flips")),
        # The same score, held against another threshold.
        (one(scored(0.9, at_least=0.95)), one(scored(0.9)), ("changed", "worse")),
        (one(scored()), one(scored(at_least=None)), ("changed",)),
        # Judges that differ give scores that cannot be compared, and nothing to check says nothing.
        (one(scored(0.9, judge="b")), one(scored(0.95, judge="a")), None),
        (one(scored(1.0, vacuous=True, **OTHER)), one(scored(0.9)), ("changed",)),
        # What is good about a metric of lower scores.
        (one(toxic(0.3)), one(toxic(0.1)), ("changed", "worse", "rescored")),
        # One metric became worse, one better; one was added.
        (one(scored(0.9), OK), one(scored(), replace(OK, score=0.9)), ("changed", "worse", "better", "rescored")),
        (one(scored(), OK), one(scored()), ("changed",)),
    ],
)
def test_what_became_of_a_test_is_told_in_chips(now: OneTest, before: OneTest | None, chips: Any) -> None:
    view = view_of(now, before)
    assert (view and view.chips) == chips
    assert bool(view and view.samples) == ("changed" in (chips or ()))


def test_chips_are_counted_in_tests() -> None:
    nows, befores = (
        [one(scored(score, id=name), name=f"test_{name}") for name, score in scores.items()]
        for scores in ({"a": 0.5, "b": 0.6, "c": 1.0}, {"a": 1.0, "b": 1.0, "z": 0.5})
    )
    comparison = compare_documents(document(*nows), document(*befores))
    views = [build_compare_view(pair, comparison) for pair in paired_tests(comparison.document, comparison)]
    views += [build_gone_view(test, comparison) for test in gone_tests(comparison)]
    counts = {chip: count for chip, _, count in count_chips(views)}
    assert list(counts.items()) == [("changed", 2), ("worse", 2), ("rescored", 2), ("new", 1), ("gone", 1)]
    assert max(view.size for view in views if view) == (0.5, 0.0)
    (gone,) = views[-1].samples if views[-1] else ()
    assert gone.answer is not None
    assert (gone.answer.title, gone.answer.pieces[0].text) == ("of the baseline", SAMPLE["response"])
    assert [(it.metric, it.new) for it in gone.pairs] == [("faithfulness", None)]
    assert [rank[:2] for rank in ranks(gone.passages)] == [(1, None), (2, None), (3, None)]


def ranks(changes: Sequence[PassageChange]) -> list[tuple[int | None, int | None, str]]:
    return [(it.then, it.now, it.state) for it in changes]


A, B, C = PASSAGES
EDITED = "Hoses may be used in the evening."


@pytest.mark.parametrize(
    ("before", "now", "expected", "title"),
    [
        ((A, B), (A, B), [], "the same 2 as before"),
        ((A, B, C), (B, C), [(1, None, "lost"), (2, 1, "kept"), (3, 2, "kept")], "1 lost"),
        ((B, C), (A, B, C), [(None, 1, "new"), (1, 2, "kept"), (2, 3, "kept")], "1 new"),
        ((A, B, C), (A, C, B), [(1, 1, "kept"), (3, 2, "moved"), (2, 3, "kept")], "1 moved"),
        ((A, B), (A, EDITED), [(1, 1, "kept"), (2, 2, "edited")], "1 edited"),
        ((A,), (C,), [(1, None, "lost"), (None, 1, "new")], "1 lost, 1 new"),
        ((A, A), (A,), [(1, 1, "kept"), (2, None, "lost")], "1 lost"),
        ((A,), (), [(1, None, "lost")], "1 lost"),
        ((), (), [], ""),
    ],
)
def test_passages_are_shown_with_their_ranks(before: Any, now: tuple[str, ...], expected: Any, title: str) -> None:
    found = sample_of(one(scored(0.5, retrieved_contexts=now)), one(scored(retrieved_contexts=before)))
    assert (ranks(found.passages), found.passages_title) == (expected, title)
    assert {it.state for it in found.passages if it.pieces} <= {"lost", "edited"}
    assert ["".join(piece.text for piece in it.pieces) for it in found.passages if it.state == "lost"] == [
        before[it.then - 1] for it in found.passages if it.state == "lost" and it.then
    ]


def test_passages_are_known_by_their_ids() -> None:
    """An id names a passage, and tells that a text with few of the words of before is an edition of it."""
    ids: dict[str, Any] = {"retrieved_context_ids": ("s4", "s7")}
    now = scored(0.5, retrieved_contexts=(B, "The rent is due in May."), retrieved_context_ids=("s7", "s4"))
    found = sample_of(one(now), one(scored(retrieved_contexts=(A, B), **ids)))
    assert ranks(found.passages) == [(2, 1, "moved"), (1, 2, "edited")]
    assert [passage.name for passage in found.passages] == ["s7", "s4"]


def test_a_lost_passage_says_which_claims_it_carried() -> None:
    """By the numbers of the claims beside it, or how many claims, where none of them changed."""
    claims = [carried("Hoses are fine in the morning", 1), carried(CLAIM, 0), carried("It is paid yearly", 0)]
    then = one(scored(verdicts=claims))
    now = [carried("It is paid yearly", 0, ok=False), carried(CLAIM, 0, ok=False), replace(claims[0], evidence=())]
    found = sample_of(one(scored(0.3, verdicts=now, **LESS)), then)
    assert found.passages[0].carried == "claims 1, 2"
    assert [it.number for it in found.verdicts[0].rows] == [1, 2, 3]
    more = [carried(f"It is rent number {number} of the year", 0) for number in range(4)]
    later = one(scored(0.3, verdicts=[*now, *(replace(it, evidence=()) for it in more)], **LESS))
    found = sample_of(later, one(scored(verdicts=[*claims, *more])))
    assert (found.passages[0].carried, len(found.verdicts[0].rows)) == ("claims 1, 2 and 4 as before", 2)
    found = sample_of(one(scored(1.0, verdicts=[replace(it, evidence=()) for it in claims], **LESS)), then)
    assert (found.verdicts, found.passages[0].carried) == ((), "2 claims")
    # A metric whose claims are as before takes no numbers; what was not ok then carried nothing.
    same = [verdict("Sheds need the consent of the committee", ok=True), replace(carried(CLAIM, 0), ok=False)]
    later = one(scored(metric="other", verdicts=same, **LESS), scored(0.3, verdicts=now, **LESS))
    found = sample_of(later, one(scored(metric="other", verdicts=same), scored(verdicts=claims)))
    assert (found.passages[0].carried, found.verdicts[0].changed[0].number) == ("claims 1, 2", 1)
    # Evidence that is not in the passage, and words of word-level metrics, say nothing.
    astray = replace(claims[1], evidence=(Evidence(context=0, start=0, end=4, text="Shed"),))
    word = verdict("rent", ok=True, evidence=[Evidence(context=0, start=4, end=8, text="rent")])
    found = sample_of(one(scored(0.3, **LESS)), one(scored(verdicts=[astray]), scored(metric="words", verdicts=[word])))
    assert found.passages[0].carried == ""


def test_claims_are_paired_by_what_they_say() -> None:
    """What is no longer ok comes first, then what is new and not ok; what did not change is apart."""
    good, bad = (
        [CLAIM, "Sheds need the consent of the committee", "Water is free"],
        ["Nobody may fish", "Hoses may be used"],
    )
    before = [*(verdict(text, ok=True) for text in good), *(verdict(text, ok=False) for text in bad)]
    now = [
        *(verdict(text, ok=True) for text in ("Water is free", "Hoses may be used")),
        verdict("The rent is 72 pounds a year", ok=False, reason="another number"),
        *(verdict(text, ok=False, reason="nowhere") for text in ("Dogs are welcome at any time", "Nobody may fish")),
        verdict("a title", ok=True, kind="looks like a title"),
    ]
    change = verdicts_change(scored(verdicts=before), scored(verdicts=now))
    rows, kept = (
        [(it.number, it.old and it.old.ok, it.new and it.new.ok) for it in part]
        for part in (change.changed, change.kept)
    )
    assert rows == [(1, True, False), (2, None, False), (3, False, True), (4, True, None)]
    assert kept == [(5, True, True), (6, False, False)]
    reasons = re.findall('<p class="small" dir="auto">(.*?)</p>', MACROS.verdicts_of(change))
    assert reasons == ["another number", "nowhere"]
    pieces = [[(it.kind, it.text) for it in row.pieces if it.kind != "same"] for row in change.changed]
    assert pieces[0] == [("removed", "62"), ("added", "72")]
    assert [[kind for kind, _ in pieces[at]] for at in (1, 3)] == [["added"], ["removed"]]


def test_single_words_are_listed_in_a_line() -> None:
    then = [verdict("rent", ok=True), verdict("pond", ok=False), verdict("gate", ok=False)]
    now = [verdict("rent", ok=False), verdict("shed", ok=False), verdict("gate", ok=False)]
    before, after = (replace(scored(verdicts=side), complaint="in no context") for side in (then, now))
    lines = verdicts_change(before, after).lines
    assert lines == (("newly in no context", "rent, shed"), ("no longer in no context", "pond"))
    many = [verdict(f"w{number}", ok=False) for number in range(40)]
    assert verdicts_change(scored(), scored(verdicts=many)).lines[0][1].endswith("w29 and 10 more")


VACUOUS: dict[str, Any] = {"score": 1.0, "vacuous": True}


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({}, {}, ("1.00", "1.00", "passes, both", "same")),
        ({}, {"score": 0.5}, ("1.00", "0.50", "newly fails", "bad")),
        ({"score": 0.5}, {}, ("0.50", "1.00", "fixed", "good")),
        ({"score": 0.5}, {"score": 0.4}, ("0.50", "0.40", "fails, both", "same")),
        (VACUOUS, VACUOUS, ("\u2013", "\u2013", "nothing to check, both", "same")),
        (VACUOUS, {}, ("\u2013", "1.00", "passes, nothing to check then", "same")),
        (VACUOUS, {"score": 0.5}, ("\u2013", "0.50", "fails, nothing to check then", "bad")),
        ({}, VACUOUS, ("1.00", "\u2013", "nothing to check now", "same")),
        ({}, {"score": None}, ("1.00", "\u2013", "no score now", "open")),
        ({"score": None}, {}, ("\u2013", "1.00", "passes, no score then", "same")),
        ({"score": None}, {"score": None}, ("\u2013", "\u2013", "no score, both", "open")),
        ({"judge": "a"}, {"score": 0.5, "judge": "b"}, ("1.00", "0.50", "newly fails, not compared", "bad")),
        ({"noun": "claim"}, {"noun": "rating"}, ("1.00", "1.00", "passes, both, not compared", "same")),
        ({"at_least": None}, {"at_least": None}, ("1.00", "1.00", "as before", "same")),
        ({"at_least": None}, {}, ("1.00", "1.00", "passes", "same")),
        ({"at_least": None}, {"score": 0.5}, ("1.00", "0.50", "fails", "same")),
        ({"at_least": None}, {"at_least": None, "score": 0.25}, ("1.00", "0.25", "0.75 worse", "same")),
        ({}, {"at_least": None, "score": 0.25}, ("1.00", "0.25", "0.75 worse, not asserted now", "same")),
        (None, {}, ("\u2013", "1.00", "new", "same")),
        (None, {"score": 0.5}, ("\u2013", "0.50", "fails, new", "bad")),
        ({}, None, ("1.00", "\u2013", "not scored now", "same")),
    ],
)
def test_a_score_is_told_in_words(before: dict[str, Any] | None, now: dict[str, Any] | None, expected: Any) -> None:
    both = (None if fields is None else scored(**{"metric": "correctness", **fields}) for fields in (before, now))
    shown = score_of(*both)
    assert (*shown[:2], *shown[3:]) == expected


def test_thresholds_that_differ_are_both_named() -> None:
    for then, now, said in (
        (0.8, 0.8, "≥ 0.80"),
        (0.7, 0.8, "≥ 0.80, was ≥ 0.70"),
        (0.8, None, "≥ 0.80"),
        (None, None, ""),
    ):
        assert score_of(scored(at_least=then), scored(at_least=now))[2] == said


def test_what_else_may_have_changed_a_score_is_named() -> None:
    one_judge = [{"faithfulness": Judging(judge="one", prompts={"verify": it}, definition={})} for it in ("a1", "b2")]
    then, now = scored(judge="one"), scored(0.5, judge="one", **OTHER)
    other = scored(metric="correctness", noun="rating", **OTHER)
    for after, before, judging, said in (
        (now, then, [], ("same question", "same judge")),
        (now, then, one_judge[:1] * 2, ("same question", "same judge and prompts")),
        (now, then, one_judge, ("same question", "faithfulness: the prompt of verify changed")),
        (replace(now, judge="two"), then, [], ("same question", "judged by two now, by one in the baseline")),
        (scored(0.5, user_input="Why?"), scored(), [], ("another question",)),
        (other, OK, [], ("same question", "it is another metric in the baseline")),
    ):
        assert samples_of(one(after), one(before), *judging)[0].facts == said


def test_records_of_one_sample_are_one_comparison() -> None:
    """Metrics that take different fields of a sample share it; another answer is another sample."""
    free: dict[str, Any] = {"metric": "correctness", "retrieved_contexts": None}
    now = one(scored(0.5), scored(**free), scored(response="Ask the office."))
    before = one(scored(), scored(0.9, **free), scored(response="Ask the committee."))
    metrics = [[it.metric for it in sample.pairs] for sample in samples_of(now, before)]
    assert metrics == [["faithfulness", "correctness"], ["faithfulness"]]
    # A metric in place of another one; another question in place of a question.
    other = sample_of(one(scored(metric="correctness", **OTHER)), one(scored()))
    assert [(it.old is None, it.new is None) for it in other.pairs] == [(True, False), (False, True)]
    assert len(samples_of(one(scored(metric="correctness", user_input="Why?")), one(scored()))) == 2


def test_texts_from_outside_are_escaped() -> None:
    for text in HOSTILE:
        sides = []
        for score in (0.5, 1.0):
            own = f"{text} {score}"
            sample: dict[str, Any] = {"user_input": own, "response": own, "retrieved_contexts": (own,)}
            claims = [verdict(f"{text} is a claim of some length {score}", ok=score == 1, reason=text)]
            sides.append(one(scored(score, metric=text[:50], verdicts=claims, judge=own, **sample)))
        markup = str(MACROS.compared(view_of(sides[0], sides[1])))
        assert "is a claim of some length" in markup
        assert [bad for bad in ("<script", "<img", "<svg", "\0", "\u202e") if bad in markup] == []
