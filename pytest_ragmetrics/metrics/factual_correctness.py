"""Whether response and reference state the same facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pytest_ragmetrics.judges.tasks import ListClaims, VerifyClaims
from pytest_ragmetrics.metrics.f_scores import f_beta
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.parameters import check_choice, check_if_empty, check_number
from pytest_ragmetrics.metrics.provided import JudgeLike
from pytest_ragmetrics.metrics.support import compared_verdicts, place_in
from pytest_ragmetrics.metrics.together import together
from pytest_ragmetrics.result import MetricResult, Verdict
from pytest_ragmetrics.sample import Sample

Mode = Literal["precision", "recall", "f1"]
#: Which text a mode takes claims from; each is held against the other.
_SIDES = {"precision": ("response",), "recall": ("reference",), "f1": ("response", "reference")}


class FactualCorrectness(JudgedMetric):
    """How far the claims of the response and of the reference bear each other out.

    Takes ``response``, ``reference`` and, to resolve pronouns, ``user_input``. Precision is the share of the
    response's claims that the reference supports, recall the share of the reference's claims that the response
    supports; ``mode="f1"`` is the F-beta of these two, where recall counts ``beta`` times. Two rounds of requests, each
    at the same time: the claims, then whether they hold. A response without claims has an F-beta of 0.0; apart from
    that a text that claims are wanted from and has none raises ``UnscoredError``, unless ``if_empty`` is the score
    then. After Ragas' factual correctness; its two directions are kept apart here.

    >>> yes = '{"number": 1, "reason": "It says so.", "sentences": [1], "verdict": "supported"}'
    >>> judge = lambda prompt: f'{{"verdicts": [{yes}]}}' if "<<<claims" in prompt else '{"claims": ["Moths fly."]}'
    >>> FactualCorrectness(judge=judge).score(response="They fly.", reference="Moths do.").value
    1.0
    """

    name = "factual_correctness"
    requires: ClassVar[tuple[str, ...]] = ("response", "reference")
    rounds: ClassVar[int] = 2

    def __init__(
        self,
        *,
        mode: Mode = "f1",
        beta: float = 1.0,
        if_empty: float | None = None,
        judge: JudgeLike | None = None,
    ) -> None:
        super().__init__(judge=judge)
        self.mode = check_choice("mode", mode, ("precision", "recall", "f1"))
        self.beta = check_number("beta", beta)
        self.if_empty = check_if_empty(if_empty, self.scale)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return precision, recall or the F-beta of both."""
        texts = {"response": sample.response or "", "reference": sample.reference or ""}
        sides = _SIDES[self.mode]
        listed = await together(ask(ListClaims(text=texts[side], question=sample.user_input)) for side in sides)
        claims = dict(zip(sides, listed, strict=True))
        if not claims[sides[-1]]:
            return ask.nothing(f"the {sides[-1]} has no claims", if_empty=self.if_empty)
        if not claims[sides[0]]:
            return ask.result(0.0, reason="the response has no claims")
        judged = await together(verify_against(claims[side], side, texts, ask) for side in sides)
        shares = [sum(verdict.ok for verdict in verdicts) / len(verdicts) for verdicts in judged]
        verdicts = [verdict for side in judged for verdict in side]
        counts = zip(sides, judged, strict=True)
        reason = ", ".join(f"{sum(v.ok for v in found)} of {len(found)} claims of the {side}" for side, found in counts)
        score = shares[0] if len(shares) == 1 else f_beta(shares[0], shares[1], self.beta)
        return ask.result(score, reason=f"{reason} borne out", verdicts=verdicts)


async def verify_against(claims: Sequence[str], side: str, texts: dict[str, str], ask: Ask) -> tuple[Verdict, ...]:
    """Return for each claim of one side, ``response`` or ``reference``, whether the text of the other supports it."""
    other = "reference" if side == "response" else "response"
    judgements = await ask(VerifyClaims(claims=tuple(claims), contexts=(texts[other],)))
    places = [place_in(texts[side], claim) if side == "response" else None for claim in claims]
    return compared_verdicts(claims, judgements, (other, texts[other]), places)
