"""Verdicts that several metrics build alike: on claims with the sentences cited for them, on whole texts, and shares.

It imports no judge, so that metrics without one can use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from pytest_ragmetrics.core.result import Evidence, MetricResult, Verdict
from pytest_ragmetrics.runs.wording.figures import describe_uncounted
from pytest_ragmetrics.text.names import Name, NamesIn, find_names
from pytest_ragmetrics.text.numbers import Number, NumbersIn, find_numbers
from pytest_ragmetrics.text.sentences import likely_languages, sentence_table
from pytest_ragmetrics.text.words import WordsIn, content_words

if TYPE_CHECKING:
    from pytest_ragmetrics.judges.tasks import Judgement

# The share of a claim's words that is hardly one, that is enough, also as a share of what the best sentence has, and
# the number of words from which shares say something.
_HARDLY, _MUCH, _FEWEST = 0.2, 0.6, 3
# The share of what the best sentence has that is too little for sentences that lack a number or a name as well.
_BEHIND = 0.7
#: A part of a claim that no other words stand for.
Fact = Number | Name
#: Offsets in the response.
Place = tuple[int, int]

_CLOSING = re.compile(r"\W+$")
_NO_LETTER = re.compile(r"\W")


def share_of(metric: str, verdicts: Sequence[Verdict], counted: str, *, before: str = "") -> MetricResult:
    """Return the share of the verdicts that are ok; the reason is ``before``, "1 of 2" and what was ``counted``.

    >>> share_of("numbers_aligned", [Verdict(text="7", ok=True)], "numbers", before="Found ").reason
    'Found 1 of 1 numbers'
    """
    of_all = [verdict for verdict in verdicts if verdict.counts]
    met = sum(verdict.ok for verdict in of_all)
    reason = f"{before}{met} of {len(of_all)} {counted}{describe_uncounted(verdicts)}"
    value = met / len(of_all) if of_all else 1.0
    return MetricResult(value, metric=metric, reason=reason, verdicts=verdicts, vacuous=not of_all)


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
    # Mostly all contexts were shown.
    return tuple(
        piece if (index := shown[piece.context]) == piece.context else replace(piece, context=index) for piece in pieces
    )


class EvidenceCheck:
    """Tells whether the sentences cited for claims bear them out, as far as words can tell.

    They do not when they lack a number or a name that the claim has and the ``question`` has not, or share hardly a
    content word with it: less than 0.2 of its words and numbers, or less than 0.6 and also less than 0.6 of what one
    sentence of the ``contexts`` shares. Words of claims with fewer than three, or in another language than the contexts
    as far as that can be told, are not compared. A number or a name that stands elsewhere in the contexts is lacking
    only where the cited sentences have another number in its place, or another name and 0.6 of the words, or less than
    0.7 of the words that one sentence of the contexts shares: a claim often sums up more than is cited for it.

    The limits were measured on sentences of answers that people labelled faithful (RAGTruth QA, BEGIN). With the single
    context sentence that has most of their text 2.9 % of 2,237 are marked, with the one to three that have it 2.5 %,
    1.6 % for words alone. With a sentence of another document 98 % are marked, with any other one of their own contexts
    89 %; where a number is replaced all or, by one of the contexts, 91 %, and 72 % where a name is replaced by another
    one of the contexts.

    >>> contexts = ["The ferry leaves at nine. A ticket costs two euros."]
    >>> check = EvidenceCheck(contexts)
    >>> [check.shares_hardly_a_word("Two euros are paid for a ticket.", [said]) for said in contexts[0].split(". ")]
    [True, False]
    """

    def __init__(self, contexts: Sequence[str], question: str | None = None) -> None:
        self._contexts = contexts
        self._question = question
        #: What is known of the texts that were cited, alone or with others.
        self._cited: dict[str, _Known] = {}

    def is_suspicious(self, claim: str, cited: Sequence[str]) -> bool:
        """Tell whether sentences were cited for a claim that do not bear it out."""
        return bool(cited) and (any(self.missing(claim, cited)) or self.shares_hardly_a_word(claim, cited))

    def missing(self, claim: str, cited: Sequence[str]) -> Iterator[str]:
        """Yield the numbers and names of a claim that the cited sentences should have, and the question has not."""
        lacking = _lacking(claim, self._known_in([*cited, self._question] if self._question else cited))
        yield from (fact.text for fact in lacking if self._is_due(fact, claim, cited))

    def _is_due(self, fact: Fact, claim: str, cited: Sequence[str]) -> bool:
        """Tell whether the cited sentences should have a number or a name: where only others do, they need not."""
        if not self._known.has(fact):
            return True
        words = _words_of(claim)
        shared = words.shared_with(self._known_in(cited))
        if shared < _BEHIND * self._most_shared(words):
            return True
        said = _Known(claim)
        if isinstance(fact, Name):
            return shared >= _MUCH * len(words) and not all(map(said.has, _names_of("\n".join(cited))))
        return not all(map(said.has, _numbers_of("\n".join(cited))))

    def shares_hardly_a_word(self, claim: str, cited: Sequence[str]) -> bool:
        """Tell whether a claim has hardly a word in common with the cited sentences, or far more with another one."""
        words = _words_of(claim)
        if len(words) < _FEWEST or {*likely_languages(claim)}.isdisjoint(likely_languages(self._text)):
            return False
        share = words.shared_with(self._known_in(cited)) / len(words)
        if share < _HARDLY or share >= _MUCH:
            return share < _HARDLY
        return share < _MUCH * self._most_shared(words) / len(words)

    def _most_shared(self, words: _ClaimWords) -> int:
        """Return how many words of a claim are in the sentence of the contexts that has most of them."""
        return max(map(words.shared_with, self._sentences), default=0)

    def _known_in(self, cited: Sequence[str]) -> _Known:
        text = "\n".join(cited)
        if text not in self._cited:
            self._cited[text] = _Known(text)
        return self._cited[text]

    @cached_property
    def _text(self) -> str:
        return "\n".join(self._contexts)

    @cached_property
    def _known(self) -> _Known:
        return _Known(self._text)

    @cached_property
    def _sentences(self) -> list[_Known]:
        return [_Known(sentence.text) for sentence in sentence_table(self._contexts)]


class _Known:
    """The words, numbers and names of a text."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def words(self) -> WordsIn:
        return WordsIn(self._text)

    @cached_property
    def _numbers(self) -> NumbersIn:
        return NumbersIn(self._text)

    @cached_property
    def _names(self) -> NamesIn:
        return NamesIn(self._text)

    def has(self, fact: Fact) -> bool:
        """Tell whether a number, a date or a name stands there."""
        return (self._names.locate(fact) if isinstance(fact, Name) else self._numbers.locate(fact)) is not None


class _ClaimWords:
    """The different words and numbers of a claim, each of which may be asked for several times."""

    def __init__(self, claim: str) -> None:
        self._numbers = _numbers_of(claim)
        places = {at for number in self._numbers for at in range(number.start, number.end)}
        self._words = list({word.key: word for word in content_words(claim) if word.start not in places}.values())

    def __len__(self) -> int:
        return len(self._words) + len(self._numbers)

    def shared_with(self, known: _Known) -> int:
        """Count those that a text has too."""
        return sum(word in known.words for word in self._words) + sum(map(known.has, self._numbers))


def on_claim(
    text: str,
    *,
    ok: bool,
    reason: str,
    evidence: Sequence[Evidence],
    check: EvidenceCheck | None = None,
    place: Place | None = None,
) -> Verdict:
    """Return a verdict on a claim; suspicious if the check says that the evidence does not bear it out."""
    start, end = place or (None, None)
    return Verdict(
        text=text,
        ok=ok,
        start=start,
        end=end,
        reason=reason.strip() or None,
        suspicious=check is not None and check.is_suspicious(text, [piece.text for piece in evidence]),
        evidence=tuple(evidence),
    )


def supported_verdicts(
    texts: Sequence[str],
    judgements: Sequence[Judgement],
    contexts: Sequence[str],
    places: Sequence[Place | None] | None = None,
    *,
    question: str | None = None,
) -> tuple[Verdict, ...]:
    """Return one verdict a text, with the context sentences that support it and its place in the response, if any."""
    table, check = sentence_table(contexts), _check_of(tuple(contexts), question)
    return tuple(
        on_claim(
            text,
            ok=judgement.ok,
            reason=judgement.reason,
            evidence=[table[index] for index in judgement.sentences] if judgement.ok else (),
            check=check,
            place=place,
        )
        for text, judgement, place in zip(texts, judgements, places or [None] * len(texts), strict=True)
    )


# Several metrics look at the same sample; what is known of a text takes far more memory than the text.
_check_of = lru_cache(maxsize=32)(EvidenceCheck)
# The facts of a claim are looked for in several places; claims are short.
_words_of = lru_cache(maxsize=128)(_ClaimWords)
_names_of = lru_cache(maxsize=128)(find_names)


def place_in(response: str, text: str) -> Place | None:
    """Return the offsets of a text in the response, word for word except for its closing mark.

    >>> place_in("Moths fly at night, as far as we know.", "Moths fly at night.")
    (0, 18)
    """
    for form in (text, _CLOSING.sub("", text)):
        at = response.find(form) if form else -1
        while at >= 0:
            end = at + len(form)
            if not (_is_in_word(response[at - 1 : at]) or _is_in_word(response[end : end + 1])):
                return at, end
            # A text behind a letter begins no word.
            gap = _NO_LETTER.search(response, at)
            at = -1 if gap is None else response.find(form, gap.end())
    return None


def _is_in_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def missing_from(claim: str, sentences: Sequence[str]) -> Iterator[str]:
    """Yield the numbers and names of a claim that none of the sentences has.

    >>> list(missing_from("In 1903 the prize went to Marie Curie.", ["Curie shared it in 1911."]))
    ['1903', 'Marie Curie']
    """
    return (fact.text for fact in _lacking(claim, _Known("\n".join(sentences))))


def _lacking(claim: str, known: _Known) -> list[Fact]:
    facts: tuple[Fact, ...] = (*_numbers_of(claim), *_names_of(claim))
    return [fact for fact in facts if not known.has(fact)]


def _numbers_of(claim: str) -> list[Number]:
    """Return the numbers and dates of a claim, without "one" and "third", which texts without numbers have too."""
    return [number for number in find_numbers(claim) if not number.plain]
