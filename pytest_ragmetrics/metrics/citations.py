"""Whether the citations of a response point to contexts that exist; needs no judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from pytest_ragmetrics.judges.schema import listed
from pytest_ragmetrics.judges.tasks import VerifyClaims
from pytest_ragmetrics.metrics.base import Metric, check_flag, check_if_empty
from pytest_ragmetrics.metrics.claims import missing_from
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric, JudgeLike, together
from pytest_ragmetrics.result import Evidence, MetricResult, Verdict
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.text.citations import Citation, CitedSentence, cited_sentences, find_citations
from pytest_ragmetrics.text.sentences import sentence_table

#: Contexts by number, counted from 1 as citations do.
Cited = tuple[int, ...]


class CitationMetric(JudgedMetric):
    """A metric over the sentences of a response and the contexts that they cite by number."""

    requires: ClassVar[tuple[str, ...]] = ("response", "retrieved_contexts")

    def __init__(self, *, if_empty: float | None = None, judge: JudgeLike | None = None) -> None:
        super().__init__(judge=judge)
        self.if_empty = check_if_empty(if_empty, self.scale)


class CitationRecall(CitationMetric):
    """The share of the response's sentences that the contexts they cite support together.

    Takes ``response``, with citations such as [1], and ``retrieved_contexts``, counted from 1. One request for each
    sentence that cites, all at the same time; a sentence that cites nothing, or a context that does not exist, is not
    supported, and nobody is asked. The citation recall of ALCE (Gao et al., 2023).

    >>> judge = lambda prompt: (
    ...     '{"verdicts": [{"number": 1, "reason": "It says so.", "sentences": [1], "verdict": "supported"}]}'
    ... )
    >>> metric = CitationRecall(judge=judge)
    >>> metric.score(response="Moths fly [1]. They sing.", retrieved_contexts=["Moths fly at night."]).value
    0.5
    """

    name = "citation_recall"
    rounds: ClassVar[int] = 1

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return sentences supported by what they cite / sentences."""
        contexts = sample.retrieved_contexts or ()
        sentences = _sentences(sample)
        if not sentences:
            return ask.nothing("the response has no sentences", if_empty=self.if_empty)
        checks = await together(_checked(sentence, sentence.numbers, contexts, ask) for sentence in sentences)
        verdicts = [
            _verdict(sentence, check, text=sentence.text) for sentence, check in zip(sentences, checks, strict=True)
        ]
        return ask.share(verdicts, "sentences supported by what they cite")


class CitationPrecision(CitationMetric):
    """The share of the response's citations that are of use for the sentence they stand behind.

    Takes ``response``, with citations such as [1], and ``retrieved_contexts``, counted from 1. All that a sentence
    cites must support it together; then a citation is precise when it supports the sentence alone, or when the others
    do not without it. Two rounds of requests, each at the same time: the sentences with all that they cite, then, where
    they cite several, each citation alone and all without it. Raises ``UnscoredError`` for a response without
    citations, unless ``if_empty`` is its score. The citation precision of ALCE (Gao et al., 2023).

    >>> judge = lambda prompt: (
    ...     '{"verdicts": [{"number": 1, "reason": "It says so.", "sentences": [1], "verdict": "supported"}]}'
    ... )
    >>> metric = CitationPrecision(judge=judge)
    >>> metric.score(response="Moths fly [1]. They sing [2].", retrieved_contexts=["Moths fly at night."]).value
    0.5
    """

    name = "citation_precision"
    rounds: ClassVar[int] = 2

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return precise citations / citations."""
        sentences = [sentence for sentence in _sentences(sample) if sentence.numbers]
        if not sentences:
            return ask.nothing("the response has no citations", if_empty=self.if_empty)
        judged = await together(_precise(sentence, sample.retrieved_contexts or (), ask) for sentence in sentences)
        return ask.share([verdict for verdicts in judged for verdict in verdicts], "citations of use")


@dataclass(frozen=True, kw_only=True, slots=True)
class _CitationCheck:
    """Whether some contexts support a sentence, and by what."""

    ok: bool
    reason: str
    evidence: tuple[Evidence, ...] = ()


async def _precise(sentence: CitedSentence, contexts: Sequence[str], ask: Ask) -> list[Verdict]:
    """Return a verdict for each citation of a sentence."""
    cited = sentence.numbers
    joint = await _checked(sentence, cited, contexts, ask)
    if not joint.ok or len(cited) == 1:
        return [_verdict(sentence, joint, text=_marked(number, sentence)) for number in cited]
    # What is left without one of two is the other one alone: each part is asked about once.
    parts = dict.fromkeys([*((number,) for number in cited), *(_without(number, cited) for number in cited)])
    checks = dict(zip(parts, await together(_checked(sentence, part, contexts, ask) for part in parts), strict=True))
    verdicts = []
    for number in cited:
        alone, rest = checks[(number,)], checks[_without(number, cited)]
        reason = "the others support the sentence without it, and it does not alone"
        if not alone.ok and rest.ok:
            verdicts.append(_verdict(sentence, _CitationCheck(ok=False, reason=reason), text=_marked(number, sentence)))
            continue
        of_all = tuple(piece for piece in joint.evidence if piece.context == number - 1)
        check = alone if alone.ok else replace(joint, evidence=of_all)
        verdicts.append(_verdict(sentence, check, text=_marked(number, sentence)))
    return verdicts


async def _checked(sentence: CitedSentence, numbers: Cited, contexts: Sequence[str], ask: Ask) -> _CitationCheck:
    """Return whether the contexts of these numbers, together, support a sentence."""
    if not numbers:
        return _CitationCheck(ok=False, reason="it cites nothing")
    unknown = [number for number in numbers if not 1 <= number <= len(contexts)]
    if unknown:
        return _CitationCheck(ok=False, reason=f"there is no context {listed(unknown)}")
    cited = tuple(contexts[number - 1] for number in sorted(numbers))
    table = sentence_table(cited)
    if not table:
        return _CitationCheck(ok=False, reason="what it cites is blank")
    (judgement,) = await ask(VerifyClaims(claims=(sentence.text,), contexts=cited))
    places = sorted(numbers)
    pieces = [table[index] for index in judgement.sentences] if judgement.ok else []
    evidence = tuple(replace(piece, context=places[piece.context] - 1) for piece in pieces)
    return _CitationCheck(ok=judgement.ok, reason=judgement.reason, evidence=evidence)


def _sentences(sample: Sample) -> list[CitedSentence]:
    """Return the sentences of the response that say something."""
    return [sentence for sentence in cited_sentences(sample.response or "") if any(map(str.isalnum, sentence.text))]


def _without(number: int, cited: Cited) -> Cited:
    return tuple(other for other in cited if other != number)


def _marked(number: int, sentence: CitedSentence) -> str:
    return f"[{number}] {sentence.text}"


def _verdict(sentence: CitedSentence, check: _CitationCheck, *, text: str) -> Verdict:
    pieces = [piece.text for piece in check.evidence]
    return Verdict(
        text=text,
        ok=check.ok,
        start=sentence.start,
        end=sentence.end,
        reason=check.reason or None,
        suspicious=bool(pieces) and any(missing_from(sentence.text, pieces)),
        evidence=check.evidence,
    )


# How much of a cited context is shown as evidence, and of how many: which one it is, not what supports the sentence.
_OPENING = 80
_SHOWN = 10


class CitationValidity(Metric):
    """The share of the citations in ``response`` that point to contexts that exist, counted from 1.

    A mark counts once, and is valid when all its numbers are: [1], [1, 2], [2-3], [^1], [1](url), ¹; see
    :func:`~pytest_ragmetrics.text.citations.find_citations` for all forms, and for what is no citation. Whether the
    contexts support what is said is not looked at. A response without citations scores 1.0 and is ``vacuous``, or 0.0
    with ``require_citations=True``.

    >>> result = CitationValidity().score(
    ...     response="Otters float [1]. They dive for crabs [3].", retrieved_contexts=["Otters float.", "Crabs dig."]
    ... )
    >>> result.value, result.verdicts[1].reason
    (0.5, 'there is no context 3, there are 2')
    """

    name = "citation_validity"
    requires: ClassVar[tuple[str, ...]] = ("response", "retrieved_contexts")

    def __init__(self, *, require_citations: bool = False) -> None:
        self.require_citations = check_flag("require_citations", require_citations)

    def measure(self, sample: Sample) -> MetricResult:
        """Return the share of valid citations."""
        response, contexts = sample.response or "", sample.retrieved_contexts or ()
        verdicts = [_citation_validity_verdict(citation, response, contexts) for citation in find_citations(response)]
        if not verdicts:
            reason = "No citations found in response"
            if self.require_citations:
                return MetricResult(0.0, metric=self.name, reason=f"{reason}, and require_citations asks for one")
            return MetricResult(1.0, metric=self.name, reason=reason, vacuous=True)
        valid = sum(verdict.ok for verdict in verdicts)
        reason = f"{valid} of {len(verdicts)} citations point to a context"
        return MetricResult(valid / len(verdicts), metric=self.name, reason=reason, verdicts=verdicts)


def _citation_validity_verdict(citation: Citation, response: str, contexts: Sequence[str]) -> Verdict:
    cited = [number for number in citation.numbers if 0 < number <= len(contexts)]
    wrong = [str(number) for number in citation.numbers if not 0 < number <= len(contexts)]
    there = f"there {'is' if len(contexts) == 1 else 'are'} {len(contexts) or 'none'}"
    return Verdict(
        text=response[citation.start : citation.end],
        ok=not wrong,
        start=citation.start,
        end=citation.end,
        reason=f"there is no context {', '.join(wrong)}, {there}" if wrong else None,
        evidence=tuple(_opening(number - 1, contexts[number - 1]) for number in cited[:_SHOWN]),
    )


def _opening(index: int, context: str) -> Evidence:
    text = context[:_OPENING]
    return Evidence(context=index, start=0, end=len(text), text=text)
