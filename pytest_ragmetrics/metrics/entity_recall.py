"""Whether the contexts name what the reference names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pytest_ragmetrics.judges.tasks import ListEntities
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.parameters import check_if_empty
from pytest_ragmetrics.metrics.provided import JudgeLike
from pytest_ragmetrics.metrics.support import place_in
from pytest_ragmetrics.metrics.together import together
from pytest_ragmetrics.result import Evidence, MetricResult, Verdict
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.text.folding import fold
from pytest_ragmetrics.text.sentences import sentence_table


class ContextEntityRecall(JudgedMetric):
    """The share of the reference's entities that are among those of the contexts.

    Takes ``reference`` and ``retrieved_contexts``. Two requests at the same time, one for the entities of each; case,
    typography and layout do not tell them apart. Without contexts it is 0.0, and nobody is asked. Raises
    ``UnscoredError`` for a reference without entities, unless ``if_empty`` is its score. After Ragas.

    >>> judge = lambda prompt: '{"entities": ["Ada Brandt"]}' if "by" in prompt else '{"entities": ["ADA BRANDT"]}'
    >>> metric = ContextEntityRecall(judge=judge)
    >>> metric.score(reference="Ada Brandt", retrieved_contexts=["ADA BRANDT LEFT."]).value
    1.0
    """

    name = "context_entity_recall"
    requires: ClassVar[tuple[str, ...]] = ("reference", "retrieved_contexts")

    def __init__(self, *, if_empty: float | None = None, judge: JudgeLike | None = None) -> None:
        super().__init__(judge=judge)
        self.if_empty = check_if_empty(if_empty, self.scale)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return entities found / entities of the reference."""
        reference, contexts = (sample.reference or "",), tuple(sample.retrieved_contexts or ())
        if not sentence_table(contexts):
            return ask.result(0.0, reason="there is no context")
        wanted, given = await together(ask(ListEntities(contexts=texts)) for texts in (reference, contexts))
        if not wanted:
            return ask.nothing("the reference has no entities", if_empty=self.if_empty)
        there = {fold(entity): entity for entity in given}
        verdicts = [
            Verdict(text=entity, ok=key in there, evidence=_evidence(there[key], contexts) if key in there else ())
            for key, entity in {fold(entity): entity for entity in wanted}.items()
        ]
        return ask.share(verdicts, "entities of the reference found in the contexts")


def _evidence(entity: str, contexts: Sequence[str]) -> tuple[Evidence, ...]:
    """Return the first place where an entity stands as the judge wrote it, if it does."""
    for index, context in enumerate(contexts):
        place = place_in(context, entity)
        if place:
            return (Evidence(context=index, start=place[0], end=place[1], text=context[slice(*place)]),)
    return ()
