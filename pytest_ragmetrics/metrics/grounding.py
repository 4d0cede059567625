"""Whether the words, numbers and names of an answer are in its contexts: no judge, no network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import ClassVar, TypeAlias, TypeVar

from pytest_ragmetrics.core.result import Evidence, MetricResult, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.metrics.asserting import asserting
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.conversations import Earlier, History, earlier_texts, seen_earlier
from pytest_ragmetrics.metrics.parameters import choice, declared
from pytest_ragmetrics.metrics.verdicts import evidence_at, share_of
from pytest_ragmetrics.runs.wording.figures import describe_uncounted, noun_for
from pytest_ragmetrics.text.citations import find_citations
from pytest_ragmetrics.text.names import Name, NamesIn, find_names
from pytest_ragmetrics.text.numbers import Number, NumbersIn, find_numbers
from pytest_ragmetrics.text.words import ContentWord, content_words

Piece = TypeVar("Piece", Number, Name)
Known = TypeVar("Known", NumbersIn, NamesIn)
Places: TypeAlias = "tuple[tuple[int, int], ...] | None"
# Characters of a text that is looked into once for all turns of a conversation.
_SHORT = 1000


class GroundingMetric(Metric):
    """A metric of what a text has in common with the contexts, by rules."""

    complaint = "in no context"
    requires: ClassVar[tuple[str, ...]] = ("response", "retrieved_contexts")


@declared
class LexicalGrounding(GroundingMetric):
    """Share of the content words of ``response`` found in ``retrieved_contexts``; 0.40 is a sound pass mark.

    Use it when you want a free smoke test for answers to a wrong document. Of human-labelled answers 0.4-0.6 % of the
    faithful ones are below 0.40, and 98-100 % of those compared with contexts of another question. Function words are
    left out and rough stems compared, in any language: Han and kana by pairs of characters, Thai, Lao, Khmer and
    Burmese by runs of four or five. Every occurrence counts. ``history`` is as in :class:`Faithfulness`. No content
    words: 1.0, vacuous.

    >>> LexicalGrounding().score(response="Otters sleep afloat.", retrieved_contexts="A sea otter can float.").reason
    'Found 1 of 3 content words'
    """

    name = "lexical_grounding"
    blind_spots = (
        "Most hallucinations: 93 to 100 % of those in human-labelled answers stay above 0.40, as do wrong statements "
        "in the words of the contexts."
    )
    noun = "word"
    helper = "assert_lexically_grounded"

    history: History = choice("contexts", History)

    def measure(self, sample: Sample) -> MetricResult:
        """Return the share of content words found."""

        def earlier() -> list[Earlier]:
            return [it for it in earlier_texts(sample, self.history) if it.origin != "assistant"]

        return _share_of_words(self.name, sample.response or "", sample.retrieved_contexts or (), earlier)


assert_lexically_grounded = asserting(LexicalGrounding, min=0.4, example='"Moths fly.", "Moths fly at night."')


class LexicalContextRecall(GroundingMetric):
    """Share of the content words of ``reference`` found in ``retrieved_contexts``.

    Use it when you want to know, without a judge, whether retrieval found what the right answer is made of. Words are
    those of :class:`LexicalGrounding`.

    >>> LexicalContextRecall().score(reference="Otters float.", retrieved_contexts=["A floating otter.", "Eels."]).value
    1.0
    """

    name = "lexical_context_recall"
    blind_spots = "Meaning: paraphrases and translations count as missing, a word in another sense as found."
    noun = "word"
    helper = "assert_lexically_recalled"
    requires = ("reference", "retrieved_contexts")

    def measure(self, sample: Sample) -> MetricResult:
        """Return the share of content words found."""
        return _share_of_words(self.name, sample.reference or "", sample.retrieved_contexts or (), placed=False)


assert_lexically_recalled = asserting(LexicalContextRecall, takes=("contexts", "references"))


@declared
class NumbersAligned(GroundingMetric):
    """Share of the numbers and dates of ``response`` found in one of ``retrieved_contexts``.

    Use it when a wrong price, date or dose does harm. Equal are 1,000.5 and 1.000,5, half a million and 500,000, 5 %
    and five percent, 1/4 and 0.25, minus 5 and -5, 14:30 and 2.30 p.m., 2021-03-05 and March 5th, 2021, 1914-18 and
    1914 to 1918, the 1990s and the '90s. A percent sign or currency must agree where both sides have one; a date may
    say less than its source, never more. Not checked: single words up to ten and ordinals (one of them, the third),
    list numbers, citations such as [1]. Results of calculations are not found. ``history`` is as in
    :class:`Faithfulness`. No numbers: 1.0, vacuous.

    >>> context = "The bridge opened on 5 March 1998; it is 1,200 m long."
    >>> result = NumbersAligned().score(response="Opened in March 1998, 1250 m long.", retrieved_contexts=context)
    >>> [verdict.text for verdict in result.verdicts if not verdict.ok]
    ['1250']
    """

    name = "numbers_aligned"
    blind_spots = "What a number is said of: the number of another event is found as well."
    noun = "number"
    helper = "assert_numbers_aligned"
    looks_back_for = ("retrieved_contexts",)

    history: History = choice("contexts", History)

    def measure(self, sample: Sample) -> MetricResult:
        """Return the share of numbers found."""
        response = sample.response or ""
        cited = {at for citation in find_citations(response) for at in range(citation.start, citation.end)}
        found = (number for number in find_numbers(response) if number.start not in cited)
        numbers = [number for number in found if not number.plain]
        return _share_of_pieces(self, numbers, lambda text: _numbers_in(text).locate, sample, self.history)


assert_numbers_aligned = asserting(NumbersAligned, min=1.0)


@declared
class NamesAligned(GroundingMetric):
    """Share of the proper names of ``response`` all of whose words are found in one of ``retrieved_contexts``.

    Use it when answers may name people, places or products that no passage names. Names are acronyms and words with
    capitals inside a sentence (Marie Curie) or inside a word; they may be inflected, shorter than in the source, or
    abbreviated (WHO, St. for Saint). Not checked: the first word of a sentence, months, headings, sentences in capitals
    or title case; in German, where nouns have capitals, names of one word; scripts without capitals. ``history`` is as
    in :class:`Faithfulness`. No names: 1.0, vacuous.

    >>> context = "The physicist Marie Curie moved to France in 1891."
    >>> result = NamesAligned().score(response="In France, Curie met Pierre Loti.", retrieved_contexts=context)
    >>> [verdict.text for verdict in result.verdicts if not verdict.ok]
    ['Pierre Loti']
    """

    name = "names_aligned"
    blind_spots = "What is said of a name, and who it is: another person of the same name is found as well."
    noun = "name"
    helper = "assert_names_aligned"
    looks_back_for = ("retrieved_contexts",)

    history: History = choice("contexts", History)

    def measure(self, sample: Sample) -> MetricResult:
        """Return the share of names found."""
        names = find_names(sample.response or "")
        return _share_of_pieces(self, names, lambda text: _names_in(text).locate, sample, self.history)


assert_names_aligned = asserting(NamesAligned, min=1.0)


def _share_of_words(
    metric: str,
    text: str,
    contexts: Sequence[str],
    older: Callable[[], Sequence[Earlier]] = tuple,
    *,
    placed: bool = True,
) -> MetricResult:
    """Return the share of occurrences found, with a verdict for each different word where it first occurs."""
    words = list(content_words(text, longer=1))
    wanted = Counter(word.key for word in words)
    found: dict[str, Evidence] = {}
    for index, context in enumerate(contexts):
        for word in content_words(context, longer=1):
            if word.key in wanted and word.key not in found:
                found[word.key] = evidence_at(index, context, word.start, word.end)
    pieces: dict[str, Evidence] = {}
    earlier = older() if len(found) < len(wanted) else ()
    for index, source in enumerate(earlier):
        for word in content_words(source.text, longer=1):
            if word.key in wanted and word.key not in found:
                pieces.setdefault(word.key, evidence_at(index, source.text, word.start, word.end))
    firsts = {word.key: word for word in reversed(words)}
    evidence = {key: (found[key],) if key in found else () for key in firsts}
    verdicts = {key: _verdict(word, evidence[key], placed=placed) for key, word in firsts.items()}
    verdicts |= {key: seen_earlier(verdicts[key], earlier, [piece]) for key, piece in pieces.items()}
    counted = {key for key, verdict in verdicts.items() if verdict.counts}
    total = sum(wanted[key] for key in counted)
    if not total:
        return _nothing(metric, "content words")
    hits = sum(wanted[key] for key in counted if verdicts[key].ok)
    reason = f"Found {hits} of {total} content words{describe_uncounted(verdicts.values())}"
    in_order = sorted(verdicts.items(), key=lambda item: firsts[item[0]].start)
    return MetricResult(hits / total, metric=metric, reason=reason, verdicts=[verdict for _, verdict in in_order])


def _share_of_pieces(
    metric: Metric,
    pieces: Sequence[Piece],
    look_up: Callable[[str], Callable[[Piece], Places]],
    sample: Sample,
    history: History,
) -> MetricResult:
    """Return the share of pieces found, each with the evidence from the first context, or earlier text, that has it."""
    contexts, look_up = sample.retrieved_contexts or (), cache(look_up)
    verdicts = [_verdict(piece, _evidence(piece, contexts, look_up)) for piece in pieces]
    earlier = () if all(verdict.ok for verdict in verdicts) else earlier_texts(sample, history)
    texts = [it.text for it in earlier]
    for index, piece in enumerate(pieces):
        evidence = () if verdicts[index].ok else _evidence(piece, texts, look_up)
        verdicts[index] = seen_earlier(verdicts[index], earlier, evidence) if evidence else verdicts[index]
    counted = noun_for(2, metric.noun)
    return share_of(metric.name, verdicts, counted, before="Found ") if verdicts else _nothing(metric.name, counted)


def _evidence(
    piece: Piece, texts: Sequence[str], look_up: Callable[[str], Callable[[Piece], Places]]
) -> tuple[Evidence, ...]:
    """Return where the first of some texts that has a piece has it."""
    found = ((index, text, look_up(text)(piece)) for index, text in enumerate(texts))
    index, text, places = next((it for it in found if it[2]), (0, "", ()))
    return tuple(evidence_at(index, text, *place) for place in places or ())


def _kept(known_in: Callable[[str], Known]) -> Callable[[str], Known]:
    """Return a function that keeps what is known of short texts: every turn of a conversation looks into older ones.

    It takes a hundred times the memory of the text.
    """
    kept = lru_cache(maxsize=1024)(known_in)
    return lambda text: kept(text) if len(text) <= _SHORT else known_in(text)


_numbers_in, _names_in = _kept(NumbersIn), _kept(NamesIn)


def _verdict(piece: ContentWord | Number | Name, evidence: tuple[Evidence, ...], *, placed: bool = True) -> Verdict:
    return Verdict(
        text=piece.text,
        ok=bool(evidence),
        start=piece.start if placed else None,
        end=piece.end if placed else None,
        reason=None if evidence else "stands in no context",
        evidence=evidence,
    )


def _nothing(metric: str, counted: str) -> MetricResult:
    return MetricResult(1.0, metric=metric, reason=f"No {counted} to look for", vacuous=True)
