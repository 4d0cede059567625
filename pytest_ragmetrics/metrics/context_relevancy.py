"""How much of the contexts is needed to answer the question, and how sure the judge is of that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import combinations
from typing import ClassVar, Literal

from pytest_ragmetrics.judges.tasks import SelectSentences
from pytest_ragmetrics.metrics.cosine import cosines
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.parameters import check_choice, check_count, check_if_empty
from pytest_ragmetrics.metrics.provided import EmbedderLike, JudgeLike
from pytest_ragmetrics.result import Evidence, MetricResult, Verdict
from pytest_ragmetrics.sample import Sample
from pytest_ragmetrics.text.sentences import sentence_table

Agreement = Literal["bert_score", "jaccard", "jaccard_score"]
#: The indexes of the sentences that one sample chose.
Choice = frozenset[int]


class ContextRelevancy(JudgedMetric):
    """The share of context sentences needed to answer the question, times how far independent samples agree on them.

    Takes ``user_input`` and ``retrieved_contexts``. ``strictness`` requests at the same time, each for the numbers of
    the sentences needed, which may be none. Overlap is the mean share chosen. Agreement is 1 for one sample, else the
    mean over all pairs of the Jaccard similarity of what they chose (``agreement="jaccard"``) or of the symmetric
    best-match similarity of these sentences by the embedder ("bert_score", never below 0); two samples that chose
    nothing agree. After the self-consistent context relevancy of Ragas 0.0 (2023).

    >>> metric = ContextRelevancy(judge=lambda prompt: '{"sentences": [1]}')
    >>> metric.score(user_input="Do moths fly?", retrieved_contexts=["Moths fly. Rain is wet."]).value
    0.5
    """

    name = "context_relevancy"
    requires: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts")
    may_be_empty: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        *,
        strictness: int = 1,
        agreement: Agreement = "bert_score",
        if_empty: float | None = None,
        judge: JudgeLike | None = None,
        embedder: EmbedderLike | None = None,
    ) -> None:
        super().__init__(judge=judge, embedder=embedder)
        self.strictness = self.draws = check_count("strictness", strictness)
        self.agreement = check_choice("agreement", agreement, ("bert_score", "jaccard", "jaccard_score"))
        self.if_empty = check_if_empty(if_empty, self.scale)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return agreement * overlap."""
        contexts = tuple(sample.retrieved_contexts or ())
        table = sentence_table(contexts)
        if not table:
            return ask.nothing("the contexts have no sentence", if_empty=self.if_empty)
        task = SelectSentences(question=sample.user_input or "", contexts=contexts)
        votes = range(self.strictness)
        choices = [frozenset(chosen) for chosen in await asyncio.gather(*(ask(task, vote=vote) for vote in votes))]
        overlap = sum(map(len, choices)) / (len(choices) * len(table))
        agreement = await self._agreement(choices, table, ask)
        reason = f"{sum(map(len, choices))} of {len(choices) * len(table)} context sentences needed"
        if len(choices) > 1:
            reason = f"{reason} in {len(choices)} samples, agreement {agreement:.2f}"
        return ask.result(agreement * overlap, reason=reason, verdicts=_verdicts(choices, table))

    async def _agreement(self, choices: Sequence[Choice], table: Sequence[Evidence], ask: Ask) -> float:
        pairs = list(combinations(choices, 2))
        differing = [pair for pair in pairs if pair[0] != pair[1]]
        if not differing:
            return 1.0
        if self.agreement != "bert_score":
            alike = [jaccard(*pair) for pair in differing]
        else:
            alike = await _best_matches(differing, table, ask)
        return (len(pairs) - len(differing) + sum(alike)) / len(pairs)


def jaccard(one: Choice, other: Choice) -> float:
    """Return the share of the sentences chosen by either that both chose; 1.0 when neither chose any.

    >>> jaccard(frozenset({1, 2}), frozenset({2, 3, 4}))
    0.25
    """
    return len(one & other) / len(one | other) if one | other else 1.0


async def _best_matches(pairs: Sequence[tuple[Choice, Choice]], table: Sequence[Evidence], ask: Ask) -> list[float]:
    """Return for each pair how alike each sentence of one is to the best of the other, averaged both ways."""
    chosen = sorted({index for pair in pairs if all(pair) for choice in pair for index in choice})
    if not chosen:
        return [0.0] * len(pairs)
    vectors = await ask.embed([table[index].text for index in chosen])
    likeness = cosines(vectors, vectors).clip(min=0.0)
    row = {index: number for number, index in enumerate(chosen)}
    means = []
    for one, other in pairs:
        if not (one and other):
            means.append(0.0)
            continue
        block = likeness[[row[index] for index in sorted(one)]][:, [row[index] for index in sorted(other)]]
        means.append(float(block.max(axis=1).mean() + block.max(axis=0).mean()) / 2)
    return means


def _verdicts(choices: Sequence[Choice], table: Sequence[Evidence]) -> list[Verdict]:
    """Return one verdict a context sentence: whether most of the samples need it."""
    verdicts = []
    for index, sentence in enumerate(table):
        ok = sum(index in choice for choice in choices) * 2 > len(choices)
        verdicts.append(Verdict(text=sentence.text, ok=ok, evidence=(sentence,) if ok else ()))
    return verdicts
