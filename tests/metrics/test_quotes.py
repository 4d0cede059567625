"""The metric on quoted spans: what counts, what is found, and what the result says."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.metrics import QuotedSpansAlignment, quoted_spans_alignment
from pytest_ragmetrics.metrics.quotes import assert_quoted_spans_aligned

REPORT = "The Orchard Bridge was closed in March because its third pillar had moved by four centimetres."
CANAL = "Boats use the old canal instead, and the ferry runs every hour until the bridge opens again."
CONTEXTS = [REPORT, CANAL]
SHORT = 'The "so-called" canal, the "old canal instead" and "the lost canal of Orchard".'
FERRY = '"The Ferry\n runs  every hour"'
ASKED = "Is it true that “nobody looks after the bridge”?"
INVENTED = '"nobody looks after the bridge"'
TITLE = '"The Bridge of Orchard Street"'


def score(response: str, contexts: object = CONTEXTS, **parameters: Any) -> tuple[float, int]:
    result = QuotedSpansAlignment(**parameters).score(response=response, retrieved_contexts=contexts)
    return result.value, len(result.verdicts)


@pytest.mark.parametrize(
    "response",
    [
        "It's clear the bridge isn't open, and the boats' owners' view differs since the '90s.",
        'The pillar is 6\' 2" wide; call `print("the bridge is open now")`, and he "never finished.',
        "The bridge was closed in March because a pillar had moved.",
    ],
)
def test_what_is_no_quotation_does_not_count(response: str) -> None:
    result = QuotedSpansAlignment().score(response=response, retrieved_contexts=CONTEXTS)
    assert (result.value, result.vacuous, result.verdicts) == (1.0, True, ())
    assert result.reason == "No quoted spans found in response"
    asked = QuotedSpansAlignment(require_quotes=True).score(response=response, retrieved_contexts=CONTEXTS)
    assert (asked.vacuous, "require_quotes" in str(asked.reason)) == (False, True)


@pytest.mark.parametrize(
    ("response", "contexts", "editorial", "verbatim"),
    [
        # fabricated: a word, two contexts, part of a word, a number, a negation
        ("It says \"the bridge's keeper wasn't\nasked at all\" there.", CONTEXTS, 0, 0),
        ('It says "its third pillar had moved and the ferry runs every hour".', CONTEXTS, 0, 0),
        ('It says "had moved by five centimetres".', CONTEXTS, 0, 0),
        ('It says "the ferry [never] runs every hour".', CONTEXTS, 0, 0),
        # what an editor may change
        ('It was "closed in March," they say.', CONTEXTS, 1, 0),
        ('"The Orchard Bridge [...] had moved by four centimetres"', CONTEXTS, 1, 0),
        # typography and layout, in marks of any convention
        (unicodedata.normalize("NFD", '"le café près du pont"'), "C'est le café près du pont.", 1, 1),
        ("« the third pillar moved »", "Then the third pil-\nlar moved.", 1, 1),
        ("「橋は三月に閉鎖された」と書いてある。", "橋は三月に閉鎖された。", 1, 1),
        ("They write:\n\n> the ferry runs\n> every hour\n\nSo it is.", CONTEXTS, 1, 1),
        ("They write &ldquo;the ferry runs every hour&rdquo; there.", CONTEXTS, 1, 1),
    ],
)
def test_quotation_is_found_as_matching_allows(response: str, contexts: object, editorial: int, verbatim: int) -> None:
    """A true quotation is found in any convention, an editor's changes only by editorial matching, no false one."""
    assert score(response, contexts) == (editorial, 1)
    assert score(response, contexts, matching="verbatim") == (verbatim, 1)


def test_result_says_which_span_failed_and_where_the_others_stand() -> None:
    response = 'They write "the ferry runs every hour" and "closed in May because its third pillar had moved".'
    result = QuotedSpansAlignment().score(response=response, retrieved_contexts=CONTEXTS)
    assert (result.value, result.reason, result.metric) == (0.5, "Matched 1/2 quoted spans", "quoted_spans_alignment")
    found, missed = result.verdicts
    assert (found.ok, missed.ok) == (True, False)
    for verdict in result.verdicts:
        assert response[verdict.start : verdict.end] == verdict.text
    assert [(piece.context, piece.text) for piece in found.evidence] == [(1, "the ferry runs every hour")]
    assert missed.nearest is not None
    assert missed.nearest.text == "closed in March because its third pillar had moved"
    assert [(c.said, c.source) for c in missed.nearest.changes if c.kind == "replaced"] == [("May", "March")]


@pytest.mark.parametrize(
    ("response", "contexts", "parameters", "value", "counted"),
    [
        # in scripts without spaces two characters are a word
        (SHORT, CONTEXTS, {}, 0.5, 2),
        (SHORT, CONTEXTS, {"min_span_words": 4}, 0.0, 1),
        (SHORT, CONTEXTS, {"min_span_words": 1}, 1 / 3, 3),
        ("说“大桥关闭了”", ["大桥开了"], {"min_span_words": 2}, 0.0, 1),
        ("说“大桥关闭了”", ["大桥开了"], {}, 1.0, 0),
        # white space is folded with or without case
        (FERRY, CONTEXTS, {}, 1.0, 1),
        (FERRY, CONTEXTS, {"casefold": False}, 0.0, 1),
        (FERRY.replace("The F", "the f"), CONTEXTS, {"casefold": False}, 1.0, 1),
        (FERRY, [], {}, 0.0, 1),
        (FERRY, CONTEXTS, {"require_quotes": True}, 1.0, 1),
        ("It was closed.", CONTEXTS, {"require_quotes": True}, 0.0, 0),
    ],
)
def test_what_counts_and_how(response: str, contexts: Any, parameters: Any, value: float, counted: int) -> None:
    assert score(response, contexts, **parameters) == (value, counted)


@pytest.mark.parametrize(
    ("response", "question", "parameters", "kinds", "value"),
    [
        (f"You say {INVENTED}.", ASKED, {}, ["quotes the question"], None),
        (f"You say {INVENTED}.", None, {}, ["not found"], 0.0),
        (f"You say {INVENTED}.", ASKED, {"require_quotes": True}, ["quotes the question"], 0.0),
        (f'You say {INVENTED}, but "the ferry runs".', ASKED, {}, ["quotes the question", "found"], 1.0),
        (f'You say {INVENTED}, and "the ferry sinks".', ASKED, {}, ["quotes the question", "not found"], 0.0),
        # What a context has is found, whoever says it too; the matching is that of contexts.
        ('It says "the ferry runs".', "Why write 'the ferry runs'?", {"allowed": ["The ferry runs."]}, ["found"], 1.0),
        ('You ask "why is it so," too', "Why is it so?", {}, ["quotes the question"], None),
        ('You ask "why is it so," too', "Why is it so?", {"matching": "verbatim"}, ["not found"], 0.0),
        ('You ask "Why is It"', "Why is it so?", {"casefold": False}, ["not found"], 0.0),
        # Pieces of two texts are in neither.
        (f"You say {INVENTED}.", "nobody looks", {"allowed": ["after the bridge"]}, ["not found"], 0.0),
        ('"cannot answer this" or "cannot answer"', "", {"allowed": "I cannot answer this."}, ["allowed"], None),
        ('"cannot answer this" it is', "", {"allowed": ["No.", "I cannot answer this."]}, ["allowed"], None),
        (f'He read {TITLE}; "the ferry runs".', "", {}, ["not found", "found"], 0.5),
        (f'He read {TITLE}; "the ferry runs".', "", {"titles": "skip"}, ["looks like a title", "found"], 1.0),
        (f"He read {TITLE}.", "", {"titles": "skip"}, ["looks like a title"], None),
        (f"He read {TITLE}.", "the bridge of Orchard Street", {"titles": "skip"}, ["quotes the question"], None),
        ('"The Orchard Bridge" and "the lost ferry"', "", {"titles": "skip"}, ["found", "not found"], 0.5),
        ("您说“没有人检查过这座大桥”。", "为什么没有人检查过这座大桥?", {}, ["quotes the question"], None),
        # What the answer says that a source says counts, whoever asked for it.
        (f"The report says {INVENTED}.", ASKED, {}, ["not found"], 0.0),
        (f"The report does not say {INVENTED}.", ASKED, {}, ["quotes the question"], None),
        (f"The report says {INVENTED}.", ASKED, {"allowed": ["nobody looks after the bridge"]}, ["allowed"], None),
        ('He said "I Never Closed It".', "", {"titles": "skip"}, ["not found"], 0.0),
    ],
)  # fmt: skip
def test_what_quotes_no_source_is_of_a_kind_of_its_own(
    response: str, question: str | None, parameters: dict[str, Any], kinds: list[str], value: float | None
) -> None:
    """A span of the question, of an allowed text, or a title on request is in no count; none left is vacuous."""
    metric = QuotedSpansAlignment(**parameters)
    result = metric.score(user_input=question, response=response, retrieved_contexts=CONTEXTS)
    assert [verdict.kind for verdict in result.verdicts] == kinds
    assert (result.value, result.vacuous) == ((1.0, True) if value is None else (value, False))
    assert [verdict.ok for verdict in result.verdicts] == [kind != "not found" for kind in kinds]
    assert all(verdict.nearest is None for verdict in result.verdicts if not verdict.counts)
    assert ("; not counted: 1 " in str(result.reason)) == (not all(verdict.counts for verdict in result.verdicts))


def test_allowed_texts_are_searched_without_their_nearest_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    monkeypatch.setattr("pytest_ragmetrics.text.quotes.nearest.find_nearest", lambda text, *_: searched.append(text))
    metric = QuotedSpansAlignment(allowed=["nobody looks", "after the bridge", "the ferry sinks"])
    result = metric.score(response=f'{INVENTED} and "the ferry sinks"', retrieved_contexts=CONTEXTS)
    assert [verdict.kind for verdict in result.verdicts] == ["not found", "allowed"]
    assert searched == ["nobody looks after the bridge", "the ferry sinks"]


def test_title_that_counts_is_labelled() -> None:
    response = f'He read {TITLE}, where "the ferry sinks at once".'
    title, other = QuotedSpansAlignment().score(response=response, retrieved_contexts=CONTEXTS).verdicts
    assert title.reason == f"{other.reason}; looks like a title" == "not found in any context; looks like a title"


TURNS = [
    {"role": "user", "content": "They say nobody looks after the bridge."},
    {"role": "assistant", "content": "The pillar has sunk into the mud."},
    {"role": "user", "content": [{"type": "text", "text": "Is that so?"}]},
]


@pytest.mark.parametrize("row", [{"user_input": TURNS}, {"user_input": "Is that so?", "messages": TURNS}])
def test_all_that_the_user_says_is_the_question(row: dict[str, Any]) -> None:
    response = f'You say {INVENTED} and "Is that so?", and "the pillar has sunk".'
    given = {**row, "response": response, "retrieved_contexts": CONTEXTS}
    metric = QuotedSpansAlignment()
    for result in (metric.score(**given), metric.score_sample(Sample.from_mapping(given))):
        assert [verdict.kind for verdict in result.verdicts] == [*["quotes the question"] * 2, "repeated"]
    failed = "0.00 < 0.90: 1 of 1 quoted span not found; not counted: 2 quote the question"
    with pytest.raises(AssertionError, match=failed):
        assert_quoted_spans_aligned(response, CONTEXTS, question=TURNS)


ANSWERS = [
    "“the ferry runs every hour” and “it never runs on Sundays”",
    "It's closed, and nobody's there.",
    'He wrote "closed in March because".',
]


@pytest.mark.parametrize(
    ("answers", "sources", "options", "matched", "total"),
    [
        (ANSWERS, [CONTEXTS, [], REPORT], {}, 2.0, 3.0),
        (["It's closed."], [CONTEXTS], {}, 0.0, 0.0),
        ([], [], {}, 0.0, 0.0),
        (['"The Ferry runs" and "old canal".'], [CONTEXTS], {}, 1.0, 1.0),
        (['"The Ferry runs" and "old canal".'], [CONTEXTS], {"min_len": 2}, 2.0, 2.0),
        (['"The Ferry runs" and "old canal".'], [CONTEXTS], {"casefold": False}, 0.0, 1.0),
    ],
)
def test_function_scores_lists_together(answers: Any, sources: Any, options: Any, matched: float, total: float) -> None:
    result = quoted_spans_alignment(answers, sources, **options)
    share = matched / total if total else 0.0
    assert result == {"citation_alignment_quoted_spans": share, "matched": matched, "total": total}
    assert {type(value) for value in result.values()} == {float}


@pytest.mark.parametrize(
    ("answers", "sources", "options", "error", "said"),
    [
        (["a", "b"], [[]], {}, ValueError, "same length, not 2 and 1"),
        ("a", [[]], {}, TypeError, "answers must be a list"),
        (["a", None], [[], []], {}, TypeError, r"answers\[1\] must be a str, not NoneType"),
        ([], [], {"min_len": 0}, ValueError, "min_len must be"),
    ],
)
def test_what_the_function_refuses(answers: Any, sources: Any, options: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        quoted_spans_alignment(answers, sources, **options)
