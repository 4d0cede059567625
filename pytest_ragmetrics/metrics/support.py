"""From a judge's judgements to verdicts with evidence, and what speaks against that evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_ragmetrics.judges.tasks import Judgement
from pytest_ragmetrics.result import Evidence, Verdict
from pytest_ragmetrics.text.facts.names import NamesIn, find_names
from pytest_ragmetrics.text.facts.numbers import Number, NumbersIn, find_numbers
from pytest_ragmetrics.text.sentences import sentence_table

#: Offsets in the response.
Place = tuple[int, int]

_CLOSING = re.compile(r"\W+$")


def supported_verdicts(
    texts: Sequence[str],
    judgements: Sequence[Judgement],
    contexts: Sequence[str],
    places: Sequence[Place | None] | None = None,
) -> tuple[Verdict, ...]:
    """Return one verdict a text, with the context sentences that support it and its place in the response, if any.

    A verdict is suspicious when its text has a number or a name that none of these sentences has.
    """
    table = sentence_table(contexts)
    return tuple(
        _verdict(text, judgement, [table[index] for index in judgement.sentences], place)
        for text, judgement, place in zip(texts, judgements, places or [None] * len(texts), strict=True)
    )


def unsupported_verdicts(texts: Sequence[str], places: Sequence[Place | None] | None = None) -> tuple[Verdict, ...]:
    """Return the verdicts where there is no context that could support anything."""
    nothing = Judgement(ok=False, reason="there is no context")
    return supported_verdicts(texts, [nothing] * len(texts), (), places)


def compared_verdicts(
    texts: Sequence[str],
    judgements: Sequence[Judgement],
    source: tuple[str, str],
    places: Sequence[Place | None] | None = None,
) -> tuple[Verdict, ...]:
    """Return one verdict a text that was held against another ``(name, text)``, which its reason quotes.

    Evidence is a place in the contexts, and that other text is none of them.

    >>> yes = Judgement(ok=True, reason="It says so.", sentences=(0,))
    >>> compared_verdicts(["Moths fly."], [yes], ("reference", "Moths fly at night."))[0].reason
    'It says so. (reference: "Moths fly at night.")'
    """
    name, text = source
    return tuple(
        replace(verdict, evidence=(), reason=_with_quotation(verdict, name))
        for verdict in supported_verdicts(texts, judgements, (text,), places)
    )


def place_in(response: str, text: str) -> Place | None:
    """Return where a text stands in the response word for word, its closing mark aside.

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
    # One and third are said of all sorts of things, and need not stand in the source.
    numbers = [number for number in find_numbers(claim) if not (isinstance(number, Number) and number.plain)]
    if numbers:
        there = NumbersIn(together)
        yield from (number.text for number in numbers if there.locate(number) is None)
    names = find_names(claim)
    if names:
        known = NamesIn(together)
        yield from (name.text for name in names if known.locate(name) is None)


def _with_quotation(verdict: Verdict, name: str) -> str | None:
    if not verdict.evidence:
        return verdict.reason
    quoted = " ".join(piece.text for piece in verdict.evidence)
    return f'{verdict.reason or ""} ({name}: "{quoted}")'.strip()


def _verdict(text: str, judgement: Judgement, cited: Sequence[Evidence], place: Place | None) -> Verdict:
    start, end = place or (None, None)
    return Verdict(
        text=text,
        ok=judgement.ok,
        start=start,
        end=end,
        reason=judgement.reason or None,
        suspicious=judgement.ok and any(missing_from(text, [sentence.text for sentence in cited])),
        evidence=tuple(cited) if judgement.ok else (),
    )
