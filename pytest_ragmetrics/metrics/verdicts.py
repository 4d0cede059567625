"""Verdicts that several metrics build alike: on claims with the sentences cited for them, on whole texts, and shares.

It imports no judge, so that metrics without one can use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ragmetrics.result import Evidence, MetricResult, Verdict
from pytest_ragmetrics.text.names import NamesIn, find_names
from pytest_ragmetrics.text.numbers import Number, NumbersIn, find_numbers
from pytest_ragmetrics.text.sentences import sentence_table

if TYPE_CHECKING:
    from pytest_ragmetrics.judges.tasks import Judgement

#: Offsets in the response.
Place = tuple[int, int]

_CLOSING = re.compile(r"\W+$")


def share_of(metric: str, verdicts: Sequence[Verdict], counted: str, *, before: str = "") -> MetricResult:
    """Return the share of the verdicts that are ok; the reason is ``before``, "1 of 2" and what was ``counted``.

    >>> share_of("numbers_aligned", [Verdict(text="7", ok=True)], "numbers", before="Found ").reason
    'Found 1 of 1 numbers'
    """
    met = sum(verdict.ok for verdict in verdicts)
    reason = f"{before}{met} of {len(verdicts)} {counted}"
    return MetricResult(met / len(verdicts), metric=metric, reason=reason, verdicts=verdicts)


def on_response(response: str | None, *, ok: bool, reason: str, evidence: Sequence[Evidence] = ()) -> Verdict:
    """Return a verdict on the response as a whole."""
    text = response or ""
    return Verdict(text=text, ok=ok, start=0, end=len(text), reason=reason or None, evidence=tuple(evidence))


def judged_verdict(text: str, judgement: Judgement, *, evidence: Sequence[Evidence] = ()) -> Verdict:
    """Return what the judge decided on a text; the evidence counts for a good verdict only."""
    shown = tuple(evidence) if judgement.ok else ()
    return Verdict(text=text, ok=judgement.ok, reason=judgement.reason or None, evidence=shown)


def evidence_at(index: int, context: str, start: int, end: int) -> Evidence:
    """Return a part of a context as evidence."""
    return Evidence(context=index, start=start, end=end, text=context[start:end])


def whole_context(index: int, text: str) -> Evidence:
    """Return a context as evidence, all of it."""
    return evidence_at(index, text, 0, len(text))


def cited_in(contexts: Sequence[str], shown: Sequence[int], judgement: Judgement) -> tuple[Evidence, ...]:
    """Return the sentences that a judgement cites, where the judge was shown some of the contexts, by their indexes."""
    table = sentence_table([contexts[index] for index in shown])
    pieces = [table[number] for number in judgement.sentences]
    return tuple(replace(piece, context=shown[piece.context]) for piece in pieces)


def on_claim(text: str, *, ok: bool, reason: str, evidence: Sequence[Evidence], place: Place | None = None) -> Verdict:
    """Return a verdict on a claim; suspicious if the claim has a number or a name that none of the evidence has."""
    start, end = place or (None, None)
    return Verdict(
        text=text,
        ok=ok,
        start=start,
        end=end,
        reason=reason.strip() or None,
        suspicious=bool(evidence) and any(missing_from(text, [piece.text for piece in evidence])),
        evidence=tuple(evidence),
    )


def supported_verdicts(
    texts: Sequence[str],
    judgements: Sequence[Judgement],
    contexts: Sequence[str],
    places: Sequence[Place | None] | None = None,
) -> tuple[Verdict, ...]:
    """Return one verdict a text, with the context sentences that support it and its place in the response, if any."""
    table = sentence_table(contexts)
    return tuple(
        on_claim(
            text,
            ok=judgement.ok,
            reason=judgement.reason,
            evidence=[table[index] for index in judgement.sentences] if judgement.ok else (),
            place=place,
        )
        for text, judgement, place in zip(texts, judgements, places or [None] * len(texts), strict=True)
    )


def place_in(response: str, text: str) -> Place | None:
    """Return the offsets of a text in the response, word for word except for its closing mark.

    >>> place_in("Moths fly at night, as far as we know.", "Moths fly at night.")
    (0, 18)
    """
    for form in (text, _CLOSING.sub("", text)):
        found = re.search(rf"(?<!\w){re.escape(form)}(?!\w)", response) if form else None
        if found:
            return found.span()
    return None


def missing_from(claim: str, sentences: Sequence[str]) -> Iterator[str]:
    """Yield the numbers and names of a claim that none of the sentences has.

    >>> list(missing_from("In 1903 the prize went to Marie Curie.", ["Curie shared it in 1911."]))
    ['1903', 'Marie Curie']
    """
    together = "\n".join(sentences)
    # "One" and "third" are said of all sorts of things, and need not be in the source.
    numbers = [number for number in find_numbers(claim) if not (isinstance(number, Number) and number.plain)]
    if numbers:
        there = NumbersIn(together)
        yield from (number.text for number in numbers if there.locate(number) is None)
    names = find_names(claim)
    if names:
        known = NamesIn(together)
        yield from (name.text for name in names if known.locate(name) is None)
