"""How close the response is to a reference answer."""

from __future__ import annotations

from typing import ClassVar

from pytest_ragmetrics.metrics.cosine import cosines
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.parameters import check_number
from pytest_ragmetrics.metrics.provided import EmbedderLike
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample


class SemanticSimilarity(JudgedMetric):
    """The cosine similarity of ``response`` and ``reference``, by the embedder alone: no judge is asked.

    In [-1, 1]. With ``threshold``, from 0 to 1, the score is 1.0 when the similarity reaches it, else 0.0. After the
    semantic answer similarity of Risch et al. (2021).

    >>> metric = SemanticSimilarity(embedder="local")
    >>> metric.score(response="Moths fly at night.", reference="Moths fly at night.").value
    1.0
    """

    name = "semantic_similarity"
    aliases: ClassVar[tuple[str, ...]] = ("answer_similarity", "AnswerSimilarity")
    requires: ClassVar[tuple[str, ...]] = ("response", "reference")
    scale: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def __init__(self, *, threshold: float | None = None, embedder: EmbedderLike | None = None) -> None:
        super().__init__(embedder=embedder)
        self.threshold = None if threshold is None else check_number("threshold", threshold, most=1)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the cosine similarity, or whether it reaches the threshold."""
        vectors = await ask.embed([sample.response or "", sample.reference or ""])
        similarity = float(cosines(vectors[:1], vectors[1:])[0, 0])
        if self.threshold is None:
            return ask.result(similarity, reason=f"cosine similarity {similarity:.2f}")
        met = similarity >= self.threshold
        sign = "≥" if met else "<"
        return ask.result(float(met), reason=f"cosine similarity {similarity:.2f} {sign} {self.threshold:g}")
