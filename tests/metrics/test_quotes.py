"""The metric on quoted spans: what counts, what is found, and what the result says."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from pytest_ragmetrics.metrics import QuotedSpansAlignment, quoted_spans_alignment
from pytest_ragmetrics.sample import Sample

REPORT = "The Orchard Bridge was closed in March because its third pillar had moved by four centimetres."
CANAL = "Boats use the old canal instead, and the ferry runs every hour until the bridge opens again."
CONTEXTS = [REPORT, CANAL]


def score(response: str, contexts: object = CONTEXTS, **parameters: Any) -> tuple[float, int]:
    """Return the score of a response and the number of spans that counted."""
    result = QuotedSpansAlignment(**parameters).score(response=response, retrieved_contexts=contexts)
    return result.value, len(result.verdicts)


NO_QUOTES = {
    "contractions": "It's clear the bridge isn't open, and they don't know when it'll be.",
    "curly contractions": "It’s clear the bridge isn’t open, and they don’t know when it’ll be.",
    "possessives": "The engineers' view and the boats' owners' view differ.",
    "decades": "It was built in the '50s and repaired in the '90s by the town.",
    "elisions": "'Tis said that rock 'n' roll was played 'neath it, and 'twas loud.",
    "feet and inches": 'The pillar is 6\' 2" wide and the gap is 46" high at most.',
    "inline code": 'Call `print("the bridge is open now")` to see it.',
    "fenced code": 'Run this:\n\n```python\nstate = "the bridge is open now"\n```\n\nThat is all.',
    "unbalanced mark": 'He began: "the bridge is open now and never finished.',
    "no marks at all": "The bridge was closed in March because a pillar had moved.",
}


@pytest.mark.parametrize("case", NO_QUOTES)
def test_what_is_no_quotation_does_not_count(case: str) -> None:
    """Apostrophes, measures, code and unbalanced marks are no quotations: nothing to check, which is a score of 1."""
    result = QuotedSpansAlignment().score(response=NO_QUOTES[case], retrieved_contexts=CONTEXTS)
    assert result.value == 1.0
    assert result.vacuous
    assert result.verdicts == ()
    assert result.reason == "No quoted spans found in response"


FABRICATED = {
    "plain": ('It says "the bridge was blown up in March" there.', CONTEXTS),
    "apostrophe inside": ("It says \"the bridge's keeper wasn't asked at all\" there.", CONTEXTS),
    "line break inside": ('It says "the bridge was\nblown up in March" there.', CONTEXTS),
    "Chinese": ("报告说：“大桥在四月里完全倒塌了”。", ["大桥在三月关闭，因为第三个桥墩移动了。"]),
    "Japanese": ("報告には「橋は四月に完全に崩れた」とある。", ["橋は三月に閉鎖された。三番目の橋脚が動いたからだ。"]),
    "spliced from two contexts": ('It says "its third pillar had moved and the ferry runs every hour".', CONTEXTS),
    "spliced with an ellipsis": ('It says "its third pillar had moved … the ferry runs every hour".', CONTEXTS),
    "sub-word": ('It says "row fast in the reeds".', ["Lilies grow fast in the reeds."]),
    "sub-word at the end": ('It says "lilies grow fast".', ["Lilies grow faster in the reeds."]),
    "number": ('It says "had moved by five centimetres".', CONTEXTS),
    "negation": ('It says "the ferry never runs every hour".', CONTEXTS),
    "negation in brackets": ('It says "the ferry [never] runs every hour".', CONTEXTS),
}


@pytest.mark.parametrize("case", FABRICATED)
@pytest.mark.parametrize("matching", ["editorial", "verbatim"])
def test_fabricated_quotation_scores_zero(case: str, matching: str) -> None:
    """A quotation that stands in no context is counted and not found, whatever is inside it."""
    response, contexts = FABRICATED[case]
    assert score(response, contexts, matching=matching) == (0.0, 1)


#: What an answer quotes, from which context, and whether that is verbatim.
TRUE = {
    "comma inside": ('It was "closed in March," they say.', REPORT, False),
    "full stop inside": ('It was "closed in March."', REPORT, False),
    "ellipsis": ('"The Orchard Bridge … had moved by four centimetres"', REPORT, False),
    "three dots": ('"The Orchard Bridge ... had moved by four centimetres"', REPORT, False),
    "spaced dots": ('"The Orchard Bridge . . . had moved by four centimetres"', REPORT, False),
    "dots in brackets": ('"The Orchard Bridge [...] had moved by four centimetres"', REPORT, False),
    "ellipsis in brackets": ('"The Orchard Bridge […] had moved by four centimetres"', REPORT, False),
    "dots in parentheses": ('"The Orchard Bridge (...) had moved by four centimetres"', REPORT, False),
    "letter in brackets": ('"[t]he Orchard Bridge was closed"', REPORT, False),
    "words in brackets": ('"[the town bridge] was closed in March"', REPORT, False),
    "sic": ('"the third pillar [sic] had moved"', "There the third pillar had moved.", False),
    "dash": ('"closed—for good—in March"', "It was closed -- for good -- in March.", True),
    "hyphen": ('"a well\u2011known old canal"', "It is a well-known old canal.", True),
    "NFD": (unicodedata.normalize("NFD", '"le café près du pont"'), "C'est le café près du pont.", True),
    "ligatures": ('"the first official find"', "It was the \ufb01rst o\ufb03cial \ufb01nd.", True),
    "soft hyphen": ('"the third pillar moved"', "Then the third pil\u00adlar moved.", True),
    "zero-width space": ('"the third pillar moved"', "Then the third\u200b pillar moved.", True),
    "line-end hyphenation": ('"the third pillar moved"', "Then the third pil-\nlar moved.", True),
    "sharp s": ('"DIE STRASSE WAR GESPERRT"', "Seit März hieß es: die Straße war gesperrt.", True),
    "curly marks": ("“the ferry runs every hour”", CANAL, True),
    "guillemets": ("« the ferry runs every hour »", CANAL, True),
    "inward guillemets": ("»the ferry runs every hour«", CANAL, True),
    "single guillemets": ("‹the ferry runs every hour›", CANAL, True),
    "low marks": ("„the ferry runs every hour“", CANAL, True),
    "low single marks": ("‚the ferry runs every hour‘", CANAL, True),
    "single marks": ("'the ferry runs every hour'", CANAL, True),
    "corner brackets": ("「橋は三月に閉鎖された」と書いてある。", "橋は三月に閉鎖された。", True),
    "full-width marks": ("＂the ferry runs every hour＂", CANAL, True),
    "block quote": ("They write:\n\n> the ferry runs\n> every hour\n\nSo it is.", CANAL, True),
    "entities": ("They write &ldquo;the ferry runs every hour&rdquo; there.", CANAL, True),
    "line break": ('They write "the ferry\nruns every hour" there.', CANAL, True),
}


@pytest.mark.parametrize("case", TRUE)
def test_true_quotation_is_found(case: str) -> None:
    """A quotation that honestly gives what a context says is found, in any convention."""
    response, context, _ = TRUE[case]
    assert score(response, ["Nothing of the kind.", context]) == (1.0, 1)


@pytest.mark.parametrize("case", TRUE)
def test_verbatim_matching_finds_only_what_is_verbatim(case: str) -> None:
    """With matching="verbatim" an editor's changes are not accepted, folding still is."""
    response, context, verbatim = TRUE[case]
    assert score(response, [context], matching="verbatim") == (float(verbatim), 1)


def test_result_says_which_span_failed_and_where_the_others_stand() -> None:
    """Verdicts have offsets in the response, evidence in the context, and the nearest passage of what failed."""
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


def test_short_spans_do_not_count() -> None:
    """Spans of fewer words than min_span_words are left out, in scripts without spaces by two characters a word."""
    response = 'The "so-called" canal, the "old canal instead" and "the lost canal of Orchard".'
    assert score(response) == (0.5, 2)
    assert score(response, min_span_words=4) == (0.0, 1)
    assert score(response, min_span_words=1) == (1 / 3, 3)
    assert score("说“大桥关闭了”", ["大桥开了"], min_span_words=2) == (0.0, 1)
    assert score("说“大桥关闭了”", ["大桥开了"]) == (1.0, 0)


def test_case_is_kept_on_request_and_white_space_still_folded() -> None:
    """casefold=False makes a capital matter, and nothing else."""
    assert score('"the ferry\n runs  every hour"', casefold=False) == (1.0, 1)
    assert score('"The Ferry runs every hour"', casefold=False) == (0.0, 1)
    assert score('"The Ferry runs every hour"') == (1.0, 1)


def test_missing_quotes_fail_on_request() -> None:
    """With require_quotes a response without a quotation scores 0.0, is not vacuous, and the reason says why."""
    result = QuotedSpansAlignment(require_quotes=True).score(response="It was closed.", retrieved_contexts=CONTEXTS)
    assert (result.value, result.vacuous) == (0.0, False)
    assert "require_quotes" in str(result.reason)
    assert score('"the ferry runs every hour"', require_quotes=True) == (1.0, 1)


def test_empty_contexts_are_legal() -> None:
    """A quotation from no context at all is not found; a sample is scored like its fields."""
    assert score('"the ferry runs every hour"', []) == (0.0, 1)
    sample = Sample(response='"the ferry runs every hour"', retrieved_contexts=CONTEXTS)
    assert QuotedSpansAlignment().score_sample(sample).value == 1.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"min_span_words": 0}, "min_span_words must be a whole number from 1 on, not 0"),
        ({"min_span_words": 2.5}, "min_span_words .* not 2.5"),
        ({"min_span_words": True}, "min_span_words .* not True"),
        ({"matching": "loose"}, "matching must be 'editorial' or 'verbatim', not 'loose'"),
        ({"casefold": "no"}, "casefold must be True or False, not 'no'"),
        ({"require_quotes": None}, "require_quotes must be True or False, not None"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    """A wrong value is an error that names the parameter and what to write."""
    with pytest.raises(ValueError, match=message):
        QuotedSpansAlignment(**parameters)


def test_parameters_are_keyword_only() -> None:
    """No parameter can be given by position."""
    build: Any = QuotedSpansAlignment
    with pytest.raises(TypeError, match="positional"):
        build(*[True])


def test_function_scores_lists_together() -> None:
    """The function counts the spans of all answers, in curly marks too, and returns three floats."""
    answers = [
        "“the ferry runs every hour” and “it never runs on Sundays”",
        "It's closed, and nobody's there.",
        'He wrote "closed in March because".',
    ]
    result = quoted_spans_alignment(answers, [CONTEXTS, [], REPORT])
    assert result == {"citation_alignment_quoted_spans": 2 / 3, "matched": 2.0, "total": 3.0}
    assert {type(value) for value in result.values()} == {float}


def test_function_takes_its_options() -> None:
    """min_len and casefold do for it what they do for the metric; without quotations it gives 0.0 of 0.0."""
    nothing = {"citation_alignment_quoted_spans": 0.0, "matched": 0.0, "total": 0.0}
    assert quoted_spans_alignment(["It's closed."], [CONTEXTS]) == quoted_spans_alignment([], []) == nothing
    answers, sources = ['"The Ferry runs" every hour, on the "old canal".'], [CONTEXTS]
    assert quoted_spans_alignment(answers, sources)["total"] == 1.0
    assert quoted_spans_alignment(answers, sources, min_len=2)["total"] == 2.0
    assert quoted_spans_alignment(answers, sources, casefold=False)["matched"] == 0.0


def test_function_refuses_lists_that_do_not_match() -> None:
    """Lists of different lengths, or a bare string for a list, are errors that say so."""
    with pytest.raises(ValueError, match="same length, not 2 and 1"):
        quoted_spans_alignment(["a", "b"], [[]])
    with pytest.raises(TypeError, match="answers must be a list"):
        quoted_spans_alignment("a", [[]])
    answers: Any = ["a", None]
    with pytest.raises(TypeError, match=r"answers\[1\] must be a str, not NoneType"):
        quoted_spans_alignment(answers, [[], []])
    with pytest.raises(ValueError, match="min_len must be"):
        quoted_spans_alignment([], [], min_len=0)
