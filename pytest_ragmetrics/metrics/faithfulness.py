"""Whether the contexts support what the response says."""

from __future__ import annotations

from typing import ClassVar, Literal

from pytest_ragmetrics.judges.tasks import ListClaims, VerifyClaims
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.parameters import check_choice, check_if_empty
from pytest_ragmetrics.metrics.provided import JudgeLike
from pytest_ragmetrics.metrics.support import Place, place_in, supported_verdicts, unsupported_verdicts
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.text.sentences import sentence_table, split_sentences


class Faithfulness(JudgedMetric):
    """The share of the response's claims that the contexts support.

    Takes ``response``, ``retrieved_contexts`` and, to resolve pronouns, ``user_input``. Two requests in a row: the
    claims of the response; which of them are supported, by which context sentences. With ``unit="sentences"`` the
    sentences of the response are judged instead, in one request. Without contexts every claim is unsupported: 0.0.
    Raises ``UnscoredError`` for a response without claims, such as a refusal, unless ``if_empty`` is its score.
    After Es et al., "RAGAS" (2023).

    >>> judge = lambda prompt: (
    ...     '{"verdicts": [{"number": 1, "reason": "It says so.", "sentences": [1], "verdict": "supported"}]}'
    ... )
    >>> metric = Faithfulness(unit="sentences", judge=judge)
    >>> metric.score(response="Moths fly.", retrieved_contexts=["Moths fly at night."]).reason
    '1 of 1 sentences supported'
    """

    name = "faithfulness"
    aliases: ClassVar[tuple[str, ...]] = ("FaithfulnessMetric",)
    requires: ClassVar[tuple[str, ...]] = ("response", "retrieved_contexts")
    rounds: ClassVar[int] = 2

    def __init__(
        self,
        *,
        unit: Literal["claims", "sentences"] = "claims",
        if_empty: float | None = None,
        judge: JudgeLike | None = None,
    ) -> None:
        super().__init__(judge=judge)
        self.unit = check_choice("unit", unit, ("claims", "sentences"))
        self.if_empty = check_if_empty(if_empty, self.scale)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return supported claims / claims."""
        response, contexts = sample.response or "", tuple(sample.retrieved_contexts or ())
        if self.unit == "sentences":
            sentences = split_sentences(response)
            places: list[Place | None] = [*sentences]
            claims = tuple(response[start:end] for start, end in sentences)
        else:
            claims = await ask(ListClaims(text=response, question=sample.user_input))
            places = [place_in(response, claim) for claim in claims]
        if not claims:
            return ask.nothing(f"the response has no {self.unit}", if_empty=self.if_empty)
        if not sentence_table(contexts):
            return ask.share(unsupported_verdicts(claims, places), f"{self.unit} supported: there is no context")
        judgements = await ask(VerifyClaims(claims=claims, contexts=contexts))
        return ask.share(supported_verdicts(claims, judgements, contexts, places), f"{self.unit} supported")
