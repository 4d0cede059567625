"""Whether the response is the right answer: in its statements, and in its meaning as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.metrics.cosine import cosines
from pytest_ragmetrics.metrics.f_scores import f1_of_counts
from pytest_ragmetrics.metrics.factual_correctness import verify_against
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.parameters import check_if_empty, check_number
from pytest_ragmetrics.metrics.provided import EmbedderLike, JudgeLike
from pytest_ragmetrics.metrics.together import both, together
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample

_SIDES = ("response", "reference")


class AnswerCorrectness(JudgedMetric):
    """The F1 of the response's statements and its similarity to the reference, 3 to 1 by ``weights``.

    Takes ``response``, ``reference`` and, to resolve pronouns, ``user_input``. A statement of the response is a true
    positive when the reference supports it, else a false positive; one of the reference that the response does not
    support is a false negative; F1 = TP / (TP + (FP + FN) / 2). The similarity is the cosine of both texts, never
    below 0. What has the weight 0 is not asked for. Two rounds of requests: the statements and the vectors, then the
    classes. 0.0 when one of the texts has no statement; ``UnscoredError`` when neither has, unless ``if_empty`` is the
    score then. After Ragas' answer correctness.

    >>> yes = '{"number": 1, "reason": "It says so.", "sentences": [1], "verdict": "supported"}'
    >>> judge = lambda prompt: f'{{"verdicts": [{yes}]}}' if "<<<claims" in prompt else '{"claims": ["Moths fly."]}'
    >>> metric = AnswerCorrectness(judge=judge, embedder="local")
    >>> metric.score(response="Moths fly.", reference="Moths fly.").value
    1.0
    """

    name = "answer_correctness"
    requires: ClassVar[tuple[str, ...]] = ("response", "reference")
    rounds: ClassVar[int] = 2

    def __init__(
        self,
        *,
        weights: Sequence[float] = (0.75, 0.25),
        if_empty: float | None = None,
        judge: JudgeLike | None = None,
        embedder: EmbedderLike | None = None,
    ) -> None:
        super().__init__(judge=judge, embedder=embedder)
        self.weights = _shares(weights)
        self.if_empty = check_if_empty(if_empty, self.scale)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the weighted mean of F1 and similarity."""
        texts = {"response": sample.response or "", "reference": sample.reference or ""}
        of_facts, of_meaning = self.weights
        listed, similarity = await both(self._statements(texts, sample, ask), self._similarity(texts, ask))
        if not of_facts:
            return ask.result(similarity, reason=f"similarity {similarity:.2f}")
        if not all(listed):
            return self._without_statements(listed, ask)
        said, wanted = await together(
            verify_against(claims, side, texts, ask) for side, claims in zip(_SIDES, listed, strict=True)
        )
        found, missing = sum(verdict.ok for verdict in said), sum(not verdict.ok for verdict in wanted)
        f1 = f1_of_counts(found, surplus=len(said) - found, missing=missing)
        reason = f"{found} statements right, {len(said) - found} wrong, {missing} missing"
        if of_meaning:
            reason = f"{reason}; similarity {similarity:.2f}"
        # A statement of the reference that the response has is already counted with those of the response.
        verdicts = [*said, *(verdict for verdict in wanted if not verdict.ok)]
        return ask.result(of_facts * f1 + of_meaning * similarity, reason=reason, verdicts=verdicts)

    async def _statements(self, texts: dict[str, str], sample: Sample, ask: Ask) -> list[tuple[str, ...]]:
        if not self.weights[0]:
            return []
        return await together(ask(ListClaims(text=texts[side], question=sample.user_input)) for side in _SIDES)

    async def _similarity(self, texts: dict[str, str], ask: Ask) -> float:
        if not self.weights[1]:
            return 0.0
        vectors = await ask.embed([texts[side] for side in _SIDES])
        return max(0.0, float(cosines(vectors[:1], vectors[1:])[0, 0]))

    def _without_statements(self, listed: Sequence[Sequence[str]], ask: Ask) -> MetricResult:
        if not any(listed):
            return ask.nothing("neither text has a statement", if_empty=self.if_empty)
        side = next(side for side, claims in zip(_SIDES, listed, strict=True) if not claims)
        return ask.result(0.0, reason=f"the {side} has no statement")


def _shares(weights: object) -> tuple[float, float]:
    """Return two weights as shares of their sum."""
    if isinstance(weights, (str, bytes)) or not isinstance(weights, Sequence) or len(weights) != len(_SIDES):
        msg = f"weights must be two numbers, of the statements and of the similarity, not {weights!r}"
        raise ValueError(msg)
    facts, meaning = (check_number("weights", weight) for weight in weights)
    if not facts + meaning:
        msg = "weights must not both be 0"
        raise ValueError(msg)
    return facts / (facts + meaning), meaning / (facts + meaning)
