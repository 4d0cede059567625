"""How far noise in the contexts makes the response wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from pytest_ragmetrics.judges.schema import listed
from pytest_ragmetrics.judges.tasks import Judgement, ListClaims, VerifyClaims
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.parameters import check_choice, check_if_empty
from pytest_ragmetrics.metrics.provided import JudgeLike
from pytest_ragmetrics.metrics.support import Place, missing_from, place_in
from pytest_ragmetrics.metrics.together import both, together
from pytest_ragmetrics.result import Direction, MetricResult, Verdict
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.text.sentences import sentence_table

Mode = Literal["relevant", "irrelevant"]


class NoiseSensitivity(JudgedMetric):
    """The share of the response's claims that are wrong because of what stands in the contexts; lower is better.

    Takes ``response``, ``reference``, ``retrieved_contexts`` and, to resolve pronouns, ``user_input``. A context is
    relevant when it supports a claim of the reference. In ``mode="relevant"`` a claim counts that a relevant context
    supports and the reference does not; in ``mode="irrelevant"`` one that only irrelevant contexts support and the
    reference does not. Two rounds of requests, each at the same time: the claims of both texts; those of the response
    against the reference, and both against each context. Raises ``UnscoredError`` when one of the texts has no claim,
    unless ``if_empty`` is the score then. After RAGChecker (Ru et al., 2024), as in Ragas.

    >>> yes = '{"number": 1, "reason": "It says so.", "sentences": [1], "verdict": "supported"}'
    >>> judge = lambda prompt: f'{{"verdicts": [{yes}]}}' if "<<<claims" in prompt else '{"claims": ["Moths fly."]}'
    >>> fields = {"response": "They fly.", "reference": "Moths do.", "retrieved_contexts": ["Moths fly."]}
    >>> NoiseSensitivity(judge=judge).score(**fields).value
    0.0
    """

    name = "noise_sensitivity"
    requires: ClassVar[tuple[str, ...]] = ("response", "reference", "retrieved_contexts")
    may_be_empty: ClassVar[tuple[str, ...]] = ()
    better: ClassVar[Direction] = "lower"
    rounds: ClassVar[int] = 2

    def __init__(
        self, *, mode: Mode = "relevant", if_empty: float | None = None, judge: JudgeLike | None = None
    ) -> None:
        super().__init__(judge=judge)
        self.mode = check_choice("mode", mode, ("relevant", "irrelevant"))
        self.if_empty = check_if_empty(if_empty, self.scale)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return claims wrong by noise / claims."""
        response, reference = sample.response or "", sample.reference or ""
        said, wanted = await together(
            ask(ListClaims(text=text, question=sample.user_input)) for text in (response, reference)
        )
        if not (said and wanted):
            blank = "response" if wanted else "reference"
            return ask.nothing(f"the {blank} has no claims", if_empty=self.if_empty)
        correct, sources = await both(
            ask(VerifyClaims(claims=said, contexts=(reference,))),
            together(_source(context, said, wanted, ask) for context in sample.retrieved_contexts or ()),
        )
        verdicts = [
            self._verdict(number, claim, correct[number], sources, place_in(response, claim))
            for number, claim in enumerate(said)
        ]
        noisy = sum(not verdict.ok for verdict in verdicts)
        reason = f"{noisy} of {len(said)} claims wrong as {self.mode} contexts have them"
        return ask.result(noisy / len(said), reason=reason, verdicts=verdicts)

    def _verdict(
        self, number: int, claim: str, correct: Judgement, sources: Sequence[_Source], place: Place | None
    ) -> Verdict:
        having = {index: source for index, source in enumerate(sources, start=1) if source.said[number].ok}
        noisy = is_noise(self.mode, correct=correct.ok, relevant=[source.is_relevant for source in having.values()])
        evidence = [
            replace(sentence_table((source.text,))[sentence], context=index - 1)
            for index, source in having.items()
            for sentence in source.said[number].sentences
        ]
        start, end = place or (None, None)
        blamed = f"{_named(list(having))} it, the reference does not. " if noisy else ""
        return Verdict(
            text=claim,
            ok=not noisy,
            start=start,
            end=end,
            reason=f"{blamed}{correct.reason}".strip() or None,
            suspicious=bool(evidence) and any(missing_from(claim, [sentence.text for sentence in evidence])),
            evidence=tuple(evidence),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Source:
    """What one context supports: which claims of the response, and whether any of the reference."""

    text: str
    said: Sequence[Judgement]
    is_relevant: bool


def is_noise(mode: Mode, *, correct: bool, relevant: Sequence[bool]) -> bool:
    """Tell whether a claim counts: ``correct`` by the reference, ``relevant`` or not are the contexts that have it.

    >>> is_noise("irrelevant", correct=False, relevant=[False]), is_noise("irrelevant", correct=False, relevant=[])
    (True, False)
    """
    return not correct and bool(relevant) and any(relevant) == (mode == "relevant")


def _named(numbers: Sequence[int]) -> str:
    return f"contexts {listed(numbers)} have" if len(numbers) > 1 else f"context {numbers[0]} has"


async def _source(context: str, said: tuple[str, ...], wanted: tuple[str, ...], ask: Ask) -> _Source:
    if not sentence_table((context,)):
        nothing = Judgement(ok=False, reason="")
        return _Source(text=context, said=[nothing] * len(said), is_relevant=False)
    of_said, of_wanted = await together(
        ask(VerifyClaims(claims=claims, contexts=(context,))) for claims in (said, wanted)
    )
    return _Source(text=context, said=of_said, is_relevant=any(judgement.ok for judgement in of_wanted))
