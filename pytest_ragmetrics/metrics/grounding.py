"""Whether the words, numbers and names of an answer are in its contexts: no judge, no network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from pytest_ragmetrics.metrics.assertion import assert_metric
from pytest_ragmetrics.metrics.base import Metric, joined
from pytest_ragmetrics.metrics.verdicts import share_of
from pytest_ragmetrics.result import Evidence, MetricResult, Verdict
from pytest_ragmetrics.sample import Sample, as_contexts
from pytest_ragmetrics.text.names import Name, NamesIn, find_names
from pytest_ragmetrics.text.numbers import Date, Number, NumbersIn, find_numbers
from pytest_ragmetrics.text.words import ContentWord, content_words

Piece = TypeVar("Piece")
Places: TypeAlias = "tuple[tuple[int, int], ...] | None"

_MISSING = "stands in no context"


class LexicalGrounding(Metric):
    """Share of the content words of ``response`` found in ``retrieved_contexts``; 0.40 is a sound pass mark.

    A smoke test for answers to a wrong document: on human-labelled answers, 0.4-0.6 % of the faithful ones fall below
    0.40, and 98-100 % of those compared with contexts of another question; most ordinary hallucinations do not.
    Words are compared without function words and by rough stems, in any language; scripts without spaces by pairs of
    characters. Every occurrence counts; each different word has one verdict. No content words: 1.0, vacuous.

    >>> LexicalGrounding().score(response="Otters sleep afloat.", retrieved_contexts="A sea otter can float.").reason
    'Found 1 of 3 content words'
    """

    name = "lexical_grounding"
    noun = "word"
    complaint = "in no context"
    helper = "assert_lexically_grounded"
    requires = ("response", "retrieved_contexts")

    def measure(self, sample: Sample) -> MetricResult:
        """Return the share of content words found."""
        return _share_of_words(self.name, sample.response or "", sample.retrieved_contexts or ())


def assert_lexically_grounded(response: str, contexts: object, *, min: float = 0.4) -> MetricResult:
    """Assert that the share of the response's content words that are found in the contexts is at least ``min``.

    >>> assert_lexically_grounded("Moths fly.", "Moths fly at night.").value
    1.0
    """
    __tracebackhide__ = True
    sample = Sample(response=response, retrieved_contexts=as_contexts(contexts))
    return assert_metric(LexicalGrounding(), sample, min=min)


class LexicalContextRecall(Metric):
    """Share of the content words of ``reference`` found in ``retrieved_contexts``.

    Says without a judge whether retrieval brought what the reference answer is made of; see :class:`LexicalGrounding`.

    >>> LexicalContextRecall().score(reference="Otters float.", retrieved_contexts=["A floating otter.", "Eels."]).value
    1.0
    """

    name = "lexical_context_recall"
    noun = "word"
    complaint = "in no context"
    helper = "assert_lexically_recalled"
    requires = ("reference", "retrieved_contexts")

    def measure(self, sample: Sample) -> MetricResult:
        """Return the share of content words found."""
        return _share_of_words(self.name, sample.reference or "", sample.retrieved_contexts or (), placed=False)


def assert_lexically_recalled(contexts: object, reference: str | Sequence[str], *, min: float) -> MetricResult:
    """Assert that the share of the reference's content words that are found in the contexts is at least ``min``."""
    __tracebackhide__ = True
    sample = Sample(reference=joined(reference), retrieved_contexts=as_contexts(contexts))
    return assert_metric(LexicalContextRecall(), sample, min=min)


class NumbersAligned(Metric):
    """Share of the numbers and dates of ``response`` found in one of ``retrieved_contexts``.

    1,000.5 and 1.000,5, 3 million and 3,000,000, 5 % and five percent, 2021-03-05 and March 5th, 2021 are the same;
    a percent sign or currency must agree where both sides name one; a date may say less than its source, never more.
    Not checked: single words up to ten and ordinals (one of them, the third), list numbers, citation marks such as
    [1]. Results of calculations are not found. No numbers: 1.0, vacuous.

    >>> context = "The bridge opened on 5 March 1998; it is 1,200 m long."
    >>> result = NumbersAligned().score(response="Opened in March 1998, 1250 m long.", retrieved_contexts=context)
    >>> [verdict.text for verdict in result.verdicts if not verdict.ok]
    ['1250']
    """

    name = "numbers_aligned"
    noun = "number"
    complaint = "in no context"
    helper = "assert_numbers_aligned"
    requires = ("response", "retrieved_contexts")

    def measure(self, sample: Sample) -> MetricResult:
        """Return the share of numbers found."""
        contexts = sample.retrieved_contexts or ()
        locators = [NumbersIn(context).locate for context in contexts]
        numbers = [found for found in find_numbers(sample.response or "") if isinstance(found, Date) or not found.plain]
        verdicts = [_verdict(number, _locate(number, locators, contexts)) for number in numbers]
        return _share(self.name, "numbers", verdicts)


def assert_numbers_aligned(response: str, contexts: object, *, min: float = 1.0) -> MetricResult:
    """Assert that the share of the response's numbers and dates that are found in a context is at least ``min``."""
    __tracebackhide__ = True
    return assert_metric(NumbersAligned(), Sample(response=response, retrieved_contexts=as_contexts(contexts)), min=min)


class NamesAligned(Metric):
    """Share of the proper names of ``response`` all of whose words are found in one of ``retrieved_contexts``.

    Names are recognised by capitals inside a sentence (Marie Curie) or inside a word and by acronyms; a name may be
    inflected, shorter than in its source, or abbreviated (WHO). Not checked: the first word of a sentence, months,
    headings; in German, where nouns have capitals too, a name of one word. Scripts without capitals show no names. No
    names: 1.0, vacuous.

    >>> context = "The physicist Marie Curie moved to France in 1891."
    >>> result = NamesAligned().score(response="In France, Curie met Pierre Loti.", retrieved_contexts=context)
    >>> [verdict.text for verdict in result.verdicts if not verdict.ok]
    ['Pierre Loti']
    """

    name = "names_aligned"
    noun = "name"
    complaint = "in no context"
    helper = "assert_names_aligned"
    requires = ("response", "retrieved_contexts")

    def measure(self, sample: Sample) -> MetricResult:
        """Return the share of names found."""
        contexts = sample.retrieved_contexts or ()
        locators = [NamesIn(context).locate for context in contexts]
        names = find_names(sample.response or "")
        return _share(self.name, "names", [_verdict(name, _locate(name, locators, contexts)) for name in names])


def assert_names_aligned(response: str, contexts: object, *, min: float = 1.0) -> MetricResult:
    """Assert that the share of the response's proper names that are found in a context is at least ``min``."""
    __tracebackhide__ = True
    return assert_metric(NamesAligned(), Sample(response=response, retrieved_contexts=as_contexts(contexts)), min=min)


def _share_of_words(metric: str, text: str, contexts: Sequence[str], *, placed: bool = True) -> MetricResult:
    """Return the share of occurrences found, with a verdict for each different word where it first occurs."""
    words = list(content_words(text))
    wanted = Counter(word.key for word in words)
    found: dict[str, Evidence] = {}
    for index, context in enumerate(contexts):
        for word in content_words(context):
            if word.key in wanted and word.key not in found:
                found[word.key] = _evidence(index, word.start, word.end, context)
    firsts = {word.key: word for word in reversed(words)}
    verdicts = [
        _verdict(word, (found[key],) if key in found else (), placed=placed)
        for key, word in sorted(firsts.items(), key=lambda item: item[1].start)
    ]
    if not words:
        return _nothing(metric, "content words")
    hits = sum(wanted[key] for key in found)
    reason = f"Found {hits} of {len(words)} content words"
    return MetricResult(hits / len(words), metric=metric, reason=reason, verdicts=verdicts)


def _locate(
    piece: Piece, locators: Iterable[Callable[[Piece], Places]], contexts: Sequence[str]
) -> tuple[Evidence, ...]:
    """Return the evidence from the first context that has the piece."""
    for index, (locate, context) in enumerate(zip(locators, contexts, strict=True)):
        places = locate(piece)
        if places:
            return tuple(_evidence(index, start, end, context) for start, end in places)
    return ()


def _evidence(index: int, start: int, end: int, context: str) -> Evidence:
    return Evidence(context=index, start=start, end=end, text=context[start:end])


def _verdict(
    piece: ContentWord | Number | Date | Name, evidence: tuple[Evidence, ...], *, placed: bool = True
) -> Verdict:
    return Verdict(
        text=piece.text,
        ok=bool(evidence),
        start=piece.start if placed else None,
        end=piece.end if placed else None,
        reason=None if evidence else _MISSING,
        evidence=evidence,
    )


def _share(metric: str, what: str, verdicts: Sequence[Verdict]) -> MetricResult:
    return share_of(metric, verdicts, what, before="Found ") if verdicts else _nothing(metric, what)


def _nothing(metric: str, what: str) -> MetricResult:
    return MetricResult(1.0, metric=metric, reason=f"No {what} to look for", vacuous=True)
