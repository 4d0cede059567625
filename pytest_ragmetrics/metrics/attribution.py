"""Whether the contexts that a response cites support its sentences: citation recall and precision of ALCE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from pytest_ragmetrics.core.result import Evidence, MetricResult, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges.schema import listed
from pytest_ragmetrics.judges.tasks import VerifyClaims
from pytest_ragmetrics.metrics.asserting import asserting
from pytest_ragmetrics.metrics.conversations import Numbering, looked_back_for, numbered_contexts
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric, together
from pytest_ragmetrics.metrics.parameters import choice, declared, share
from pytest_ragmetrics.metrics.verdicts import EvidenceCheck, cited_in, on_claim
from pytest_ragmetrics.text.citations import CitedSentence, cited_sentences
from pytest_ragmetrics.text.sentences import sentence_table

#: Contexts by number, counted from 1 as citations do.
Cited = tuple[int, ...]
_BARE = "no contexts in this turn, and nothing is cited"


@declared
class CitationMetric(JudgedMetric):
    """A metric over the sentences of a response and the contexts that they cite, by number or by their ids."""

    requires: ClassVar[tuple[str, ...]] = ("response", "retrieved_contexts")

    numbering: Numbering = choice("turn", Numbering)
    if_empty: float | None = share(None)

    def __post_init__(self) -> None:
        vars(self)["looks_back_for"] = looked_back_for(self.numbering)

    def cited(self, sample: Sample) -> tuple[list[CitedSentence], tuple[Evidence, ...]]:
        """Return the sentences of the response that say something, and the contexts in the order of their numbers.

        A turn without contexts need not cite any: it has no sentences where it does not.
        """
        contexts, ids = numbered_contexts(sample, self.numbering)
        sentences = [it for it in cited_sentences(sample.response or "", ids) if any(map(str.isalnum, it.text))]
        is_bare = sample.retrieved_contexts is None and not any(it.numbers or it.names for it in sentences)
        return [] if is_bare else sentences, contexts


class CitationRecall(CitationMetric):
    """The share of the response's sentences that the contexts they cite support together.

    Use it when sentences lack a citation, or cite a passage that does not support them. Citations and ``numbering`` are
    as in :class:`CitationValidity`. Each citing sentence is a request; one that cites nothing, or a missing context, is
    unsupported without one. After ALCE (Gao et al., 2023).

    >>> judge = lambda prompt: (
    ...     '{"verdicts": [{"number": 1, "reason": "It says so.", "sentences": [1], "verdict": "supported"}]}'
    ... )
    >>> metric = CitationRecall(judge=judge)
    >>> metric.score(response="Moths fly [1]. They sing.", retrieved_contexts=["Moths fly at night."]).value
    0.5
    """

    name = "citation_recall"
    blind_spots = "Superfluous citations, which lower CitationPrecision; whether the cited context is true."
    noun = "sentence"
    complaint = "not supported by the contexts cited"
    helper = "assert_citations_recalled"

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return sentences supported by what they cite / sentences."""
        sentences, contexts = self.cited(sample)
        if not sentences:
            return ask.nothing("the response has no sentences" if sample.retrieved_contexts is not None else _BARE)
        texts = [context.text for context in contexts]
        verdicts = await together(_checked(sentence, sentence.numbers, texts, ask) for sentence in sentences)
        return ask.share(_placed(verdicts, contexts), "sentences supported by what they cite")


assert_citations_recalled = asserting(
    CitationRecall, min=0.8, example='"Moths fly at night [1].", ["Moths fly at night."], judge="local"'
)


class CitationPrecision(CitationMetric):
    """The share of the response's citations that are of use for their sentence.

    Use it when answers cite more passages than support them. All citations of a sentence must support it together; then
    one is precise if it supports the sentence alone, or if the others do not without it. The second round judges each
    of several alone, and all without it. ``numbering`` is as in :class:`CitationValidity`. After ALCE (Gao et al.,
    2023).

    >>> judge = lambda prompt: (
    ...     '{"verdicts": [{"number": 1, "reason": "It says so.", "sentences": [1], "verdict": "supported"}]}'
    ... )
    >>> metric = CitationPrecision(judge=judge)
    >>> metric.score(response="Moths fly [1]. They sing [2].", retrieved_contexts=["Moths fly at night."]).value
    0.5
    """

    name = "citation_precision"
    blind_spots = "Sentences without a citation, which lower CitationRecall; whether the cited context is true."
    noun = "citation"
    complaint = "of no use"
    helper = "assert_citations_precise"
    rounds = 2

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return precise citations / citations."""
        said, contexts = self.cited(sample)
        sentences = [sentence for sentence in said if sentence.numbers or sentence.names]
        if not sentences:
            return ask.nothing("the response has no citations")
        texts = [context.text for context in contexts]
        judged = await together(_precise(sentence, texts, ask) for sentence in sentences)
        return ask.share(_placed([it for verdicts in judged for it in verdicts], contexts), "citations of use")


assert_citations_precise = asserting(CitationPrecision, min=0.8)


async def _precise(sentence: CitedSentence, contexts: Sequence[str], ask: Ask) -> list[Verdict]:
    cited = sentence.numbers
    joint = await _checked(sentence, cited, contexts, ask)
    if not joint.ok or len(cited) == 1:
        return [replace(joint, text=f"[{source}] {sentence.text}") for source in (*cited, *sentence.names)]
    # What is left without one of two is the other one alone: each part is asked about once.
    parts = dict.fromkeys([*((number,) for number in cited), *(_without(number, cited) for number in cited)])
    checks = dict(zip(parts, await together(_checked(sentence, part, contexts, ask) for part in parts), strict=True))
    verdicts = []
    for number in cited:
        check = checks[(number,)]
        if not check.ok and checks[_without(number, cited)].ok:
            reason = "the others support the sentence without it, and it does not alone"
            check = _verdict(sentence, ok=False, reason=reason)
        elif not check.ok:
            own = tuple(piece for piece in joint.evidence if piece.context == number - 1)
            check = _verdict(
                sentence, ok=True, reason=joint.reason or "", evidence=own, contexts=contexts[number - 1 :][:1]
            )
        verdicts.append(replace(check, text=f"[{number}] {sentence.text}"))
    return verdicts


async def _checked(sentence: CitedSentence, numbers: Cited, contexts: Sequence[str], ask: Ask) -> Verdict:
    if sentence.names:
        return _verdict(sentence, ok=False, reason=f"no id in retrieved_context_ids is {listed(sentence.names)}")
    if not numbers:
        return _verdict(sentence, ok=False, reason="it cites nothing")
    unknown = [number for number in numbers if not 1 <= number <= len(contexts)]
    if unknown:
        return _verdict(sentence, ok=False, reason=f"there is no context {listed(unknown)}")
    indexes = [number - 1 for number in sorted(numbers)]
    cited = tuple(contexts[index] for index in indexes)
    if not sentence_table(cited):
        return _verdict(sentence, ok=False, reason="what it cites is blank")
    (judgement,) = await ask(VerifyClaims(claims=(sentence.text,), contexts=cited))
    evidence = cited_in(contexts, indexes, judgement) if judgement.ok else ()
    return _verdict(sentence, ok=judgement.ok, reason=judgement.reason, evidence=evidence, contexts=cited)


def _placed(verdicts: Sequence[Verdict], contexts: Sequence[Evidence]) -> list[Verdict]:
    """Return verdicts with the evidence at its place in its turn, where that was the number of a context."""
    by_verdict = [[(piece, contexts[piece.context]) for piece in verdict.evidence] for verdict in verdicts]
    placed = [tuple(replace(it, context=at.context, turn=at.turn) for it, at in pieces) for pieces in by_verdict]
    return [replace(verdict, evidence=pieces) for verdict, pieces in zip(verdicts, placed, strict=True)]


def _without(number: int, cited: Cited) -> Cited:
    return tuple(other for other in cited if other != number)


def _verdict(
    sentence: CitedSentence, *, ok: bool, reason: str, evidence: Sequence[Evidence] = (), contexts: Sequence[str] = ()
) -> Verdict:
    check, place = EvidenceCheck(contexts), (sentence.start, sentence.end)
    return on_claim(sentence.text, ok=ok, reason=reason, evidence=evidence, check=check, place=place)
