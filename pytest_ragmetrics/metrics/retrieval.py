"""Metrics of retrieval that ask no judge: rankings of ids, and contexts compared as strings."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import ClassVar, Literal, TypeAlias

from pytest_ragmetrics.core.result import Evidence, MetricResult, Nearest, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.metrics.asserting import assert_metric, asserting
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.parameters import called, check_choice, check_number, choice, count, declared, share
from pytest_ragmetrics.metrics.strings import Measure, likeness
from pytest_ragmetrics.metrics.verdicts import share_of, whole_context

Id: TypeAlias = "str | int"

# The exponential gain of a grade from 1,024 on overflows a float.
_MOST = 100


@declared
class RankingMetric(Metric):
    """A metric over the ids retrieved, best first, and the ids of the passages that are relevant.

    Takes ``retrieved_context_ids`` (may be empty) and ``reference_context_ids``. Ids are compared as given, so 7 is not
    "7"; of an id that comes twice the first rank counts. ``k`` cuts the ranking; ``None`` takes all of it.
    """

    helper = "assert_retrieved"
    noun = "reference id"
    complaint = "missed"
    requires: ClassVar[tuple[str, ...]] = ("retrieved_context_ids", "reference_context_ids")
    may_be_empty: ClassVar[tuple[str, ...]] = ("retrieved_context_ids",)

    k: int | None = count(None)

    def _top(self, ids: Sequence[Id]) -> list[Id]:
        return list(dict.fromkeys(ids))[: self.k]

    def _verdicts(self, top: Sequence[Id], relevant: Mapping[Id, None], sample: Sample) -> list[Verdict]:
        ranks = {found: rank for rank, found in enumerate(top, start=1)}
        below = dict.fromkeys(sample.retrieved_context_ids or (), f"below the top {len(top)}")
        slip, passages = _slip(top, relevant), _passages(sample)
        return [
            Verdict(
                text=str(wanted),
                ok=wanted in ranks,
                reason=f"rank {ranks[wanted]}" if wanted in ranks else below.get(wanted, f"not retrieved{slip}"),
                evidence=passages.get(wanted, ()) if wanted in ranks else (),
            )
            for wanted in relevant
        ]


class HitMetric(RankingMetric):
    """What the metrics share that score a ranking by which of its ids are relevant."""

    def measure(self, sample: Sample) -> MetricResult:
        """Return the score of the ranking, with a verdict on each reference id."""
        relevant = dict.fromkeys(sample.reference_context_ids or ())
        top = self._top(sample.retrieved_context_ids or ())
        hits = [found in relevant for found in top]
        reason = f"{sum(hits)} of {len(relevant)} reference ids among {len(top)} retrieved"
        verdicts = self._verdicts(top, relevant, sample)
        return MetricResult(self._value(hits, len(relevant)), metric=self.name, reason=reason, verdicts=verdicts)

    @abstractmethod
    def _value(self, hits: Sequence[bool], relevant: int, /) -> float:
        """Return the score by which of the ids at the top are relevant, and the number of relevant ids."""


class PrecisionAtK(HitMetric):
    """The share of the ids in the top ``k`` that are relevant: hits / ids that are actually there, at most ``k``.

    Use it when the retriever returns too many irrelevant passages. Other tools divide by ``k`` even if fewer were
    retrieved. Nothing retrieved: 0.0.

    >>> PrecisionAtK(k=3).score(retrieved_context_ids=["a", "b"], reference_context_ids=["a", "c"]).value
    0.5
    """

    name = "precision_at_k"
    blind_spots = "Relevant passages without a label, which count as irrelevant; the order within the top k."
    noun = "retrieved id"
    complaint = "not relevant"
    aliases: ClassVar[tuple[str, ...]] = ("precision@k",)

    def _value(self, hits: Sequence[bool], _relevant: int, /) -> float:
        return sum(hits) / len(hits) if hits else 0.0

    def _verdicts(self, top: Sequence[Id], relevant: Mapping[Id, None], sample: Sample) -> list[Verdict]:
        slip, passages = _slip(top, relevant), _passages(sample)
        return [
            Verdict(
                text=str(found),
                ok=found in relevant,
                reason=f"rank {rank}" if found in relevant else f"rank {rank}, not among the reference ids{slip}",
                evidence=passages.get(found, ()) if found in relevant else (),
            )
            for rank, found in enumerate(top, start=1)
        ]


class RecallAtK(HitMetric):
    """The share of the relevant ids that are in the top ``k``: hits / relevant ids.

    Use it when the retriever misses passages that are needed.

    >>> RecallAtK(k=3).score(retrieved_context_ids=["a", "b"], reference_context_ids=["a", "c"]).verdicts[0].reason
    'rank 1'
    """

    name = "recall_at_k"
    blind_spots = "Irrelevant passages beside the relevant ones, and the order within the top k."
    aliases = ("recall@k",)

    def _value(self, hits: Sequence[bool], relevant: int, /) -> float:
        return sum(hits) / relevant


class HitRate(HitMetric):
    """1.0 if any relevant id is in the top ``k``, else 0.0; over a table, the share of questions with a hit.

    Use it when one right passage is enough to answer.

    >>> HitRate(k=1).score(retrieved_context_ids=["a", "b"], reference_context_ids=["b"]).value
    0.0
    """

    name = "hit_rate"
    blind_spots = "Further relevant ids after the first, and its rank within the top k."
    aliases = ("hit_rate@k", "hit_at_k", "hit@k")

    def _value(self, hits: Sequence[bool], _relevant: int, /) -> float:
        return float(any(hits))


# Its verdicts are on the ids retrieved, as those of precision.
class MRR(PrecisionAtK):
    """1 / rank of the first relevant id, 0.0 without one; the mean over a table is the mean reciprocal rank.

    Use it when the first right passage counts, and comes too late.

    >>> MRR().score(retrieved_context_ids=["a", "b", "c"], reference_context_ids=["b", "c"]).value
    0.5
    """

    name = "mrr"
    blind_spots = "Relevant ids after the first."
    aliases = ("mrr@k", "reciprocal_rank", "mean_reciprocal_rank")

    def _value(self, hits: Sequence[bool], _relevant: int, /) -> float:
        return 1 / (hits.index(True) + 1) if any(hits) else 0.0

    def measure(self, sample: Sample) -> MetricResult:
        """Return the reciprocal rank; the verdicts go down to the first hit."""
        result = super().measure(sample)
        rank = next((rank for rank, verdict in enumerate(result.verdicts, start=1) if verdict.ok), None)
        reason = f"first hit at rank {rank}" if rank else f"no hit among {len(result.verdicts)} retrieved"
        return result.replaced(reason=reason, verdicts=result.verdicts[:rank])


class MAP(HitMetric):
    """Average precision: the sum of the precision at each hit in the top ``k`` / relevant ids.

    Use it when several passages are relevant, and all should come early. The mean over a table is the mean average
    precision (Buckley and Voorhees, 2000).

    >>> MAP().score(retrieved_context_ids=["a", "b", "c", "d"], reference_context_ids=["a", "d"]).value
    0.75
    """

    name = "map"
    blind_spots = "Relevant passages without a label, which count as irrelevant; grades of relevance."
    aliases = ("map@k", "average_precision", "mean_average_precision")

    def _value(self, hits: Sequence[bool], relevant: int, /) -> float:
        return average_precision(hits, relevant)


@declared
class NDCG(RankingMetric):
    """Normalised discounted cumulative gain: sum of gain / log2(rank + 1) over the top ``k``, over that of the ideal.

    Use it when some passages are more relevant than others, and the best should come first. A relevant id has the gain
    1. ``score(relevance={"a": 3, "b": 1}, ...)``, or ``metadata["relevance"]``, maps ids to grades from 0 to 100 and
    replaces ``reference_context_ids``; the id 7 is also looked up as "7". ``gain="exponential"`` is 2**grade - 1. The
    ideal has the best ``k`` of all grades (Järvelin and Kekäläinen, 2002).

    >>> ranking = ["a", "b", "c"]
    >>> round(NDCG().score(retrieved_context_ids=ranking, reference_context_ids=["a", "c"]).value, 3)
    0.92
    >>> round(NDCG(k=2).score(retrieved_context_ids=ranking, relevance={"b": 3, "a": 1}).value, 3)
    0.797
    """

    name = "ndcg"
    blind_spots = "Relevant passages without a label, which count as irrelevant."
    aliases = ("ndcg@k", "ndcg_at_k")
    extra_inputs = ("relevance",)

    gain: Literal["linear", "exponential"] = choice("linear", Literal["linear", "exponential"])

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` naming what is missing; grades replace reference ids."""
        grades = sample.metadata.get("relevance")
        if grades is not None:
            if not isinstance(grades, Mapping):
                raise TypeError(f"relevance must be a mapping of ids to grades, not {type(grades).__name__}")
            for key, grade in grades.items():
                check_number(f"relevance[{key!r}]", grade, most=_MOST)
            if not any(grades.values()):
                raise ValueError("relevance has no grade above 0: no id is relevant")
            sample = replace(sample, reference_context_ids=list(grades))
        super().require(sample)

    def measure(self, sample: Sample) -> MetricResult:
        """Return the normalised gain."""
        grades: Mapping[Id, float] = sample.metadata.get("relevance") or {}
        if grades:
            ids = [found if found in grades else str(found) for found in sample.retrieved_context_ids or ()]
            sample = replace(sample, retrieved_context_ids=ids)
        grades = grades or dict.fromkeys(sample.reference_context_ids or (), 1)
        top = self._top(sample.retrieved_context_ids or ())
        gains = [self._gain(grades.get(found, 0)) for found in top]
        ideal = sorted(map(self._gain, grades.values()), reverse=True)[: self.k]
        wanted = dict.fromkeys(key for key, grade in grades.items() if grade > 0)
        return MetricResult(
            # Grades that are not whole numbers may round to slightly above the ideal.
            min(_discounted(gains) / _discounted(ideal), 1.0),
            metric=self.name,
            reason=f"{sum(gain > 0 for gain in gains)} of {len(wanted)} relevant ids among {len(top)} retrieved",
            verdicts=self._verdicts(top, wanted, sample),
        )

    def _gain(self, grade: float) -> float:
        # 2**grade - 1 rounds to 0.0 for a grade below 1e-16; its limit there is grade * ln 2.
        return float(grade) if self.gain == "linear" else 2.0**grade - 1 or grade * math.log(2)


_RANKINGS: Mapping[str, type[RankingMetric]] = {
    "recall": RecallAtK,
    "precision": PrecisionAtK,
    **{kind.name: kind for kind in (HitRate, MRR, MAP, NDCG)},
}


def assert_retrieved(
    retrieved_ids: Sequence[str | int],
    reference_ids: Sequence[str | int] | Mapping[str | int, float],
    *,
    metric: Literal["recall", "precision", "hit_rate", "mrr", "map", "ndcg"] = "recall",
    k: int | None = 5,
    min: float = 0.8,
) -> MetricResult:
    """Assert that a metric of the ids retrieved, best first, is at least ``min`` for the top ``k`` of them.

    For ndcg, ``reference_ids`` may map ids to grades. The formulas are those of PrecisionAtK, RecallAtK, HitRate, MRR,
    MAP and NDCG.

    >>> assert_retrieved(["a", "b", "c"], ["a", "c"], k=3).value
    1.0
    """
    __tracebackhide__ = True
    kind = _RANKINGS[check_choice("metric", metric, tuple(_RANKINGS))]
    if isinstance(retrieved_ids, (AbstractSet, Mapping)):
        raise TypeError(f"retrieved_ids must be a list, best first, not {type(retrieved_ids).__name__}")
    if not isinstance(reference_ids, Mapping):
        sample = Sample(retrieved_context_ids=retrieved_ids, reference_context_ids=reference_ids)
    elif kind is NDCG:
        sample = Sample(retrieved_context_ids=retrieved_ids, metadata={"relevance": reference_ids})
    else:
        raise TypeError(f"reference_ids with grades are for metric='ndcg', not {metric!r}: give a list of ids")
    return assert_metric(kind(k=k), sample, min=min)


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _slip(top: Sequence[Id], relevant: Mapping[Id, None]) -> str:
    """Return a hint where no id is found because the ids of one side are numbers and those of the other are texts."""
    alike = set(map(str, top)).intersection(map(str, relevant))
    if not alike or not relevant.keys().isdisjoint(top):
        return ""
    return f"; ids are compared as given, and {min(alike)} is not {min(alike)!r}"


def _passages(sample: Sample) -> dict[Id, tuple[Evidence, ...]]:
    """Return the passages by id, where the sample has one for each id."""
    ids, contexts = sample.retrieved_context_ids or (), sample.retrieved_contexts or ()
    if len(ids) != len(contexts):
        return {}
    # From the last: of an id that comes twice the first passage counts.
    return {ids[index]: (whole_context(index, contexts[index]),) for index in reversed(range(len(ids)))}


def average_precision(useful: Sequence[bool], relevant: int | None = None) -> float:
    """Return the sum over the useful items of the share of useful ones down to their rank / ``relevant``.

    ``relevant`` is the number of useful items unless given; 0.0 without a useful item.

    >>> average_precision([False, True, True])
    0.5833333333333333
    """
    ranks = [rank for rank, is_useful in enumerate(useful, start=1) if is_useful]
    return sum(hits / rank for hits, rank in enumerate(ranks, start=1)) / (relevant or len(ranks)) if ranks else 0.0


class IDBasedContextPrecision(PrecisionAtK):
    """The share of the different ids retrieved that are relevant; nothing retrieved: 0.0.

    Use it when you move from Ragas: it is :class:`PrecisionAtK` without k.

    >>> IDBasedContextPrecision().score(retrieved_context_ids=[1, 2, 3, 3], reference_context_ids=[3, 4]).reason
    '1 of 2 reference ids among 3 retrieved'
    """

    name = "id_based_context_precision"
    blind_spots = "Relevant passages without a label, which count as irrelevant; the order."

    def __init__(self, *, name: str | None = None) -> None:
        super().__init__(name=name)


class IDBasedContextRecall(RecallAtK):
    """The share of the relevant ids that were retrieved.

    Use it when you move from Ragas: it is :class:`RecallAtK` without k.

    >>> IDBasedContextRecall().score(retrieved_context_ids=[1, 2, 3], reference_context_ids=[3, 4]).value
    0.5
    """

    name = "id_based_context_recall"
    blind_spots = "Irrelevant passages beside the relevant ones, and the order."

    def __init__(self, *, name: str | None = None) -> None:
        super().__init__(name=name)


@declared
class LikeContexts(Metric):
    """A metric over ``retrieved_contexts`` (may be empty) and ``reference_contexts``, compared two by two.

    Two passages are the same if their likeness is at least ``threshold``; ``measure`` is levenshtein, indel, hamming,
    jaro or jaro_winkler, brought to [0, 1] by the length of the texts.
    """

    helper = "assert_contexts_alike"

    requires: ClassVar[tuple[str, ...]] = ("retrieved_contexts", "reference_contexts")

    threshold: float = share(0.5)
    alike_by: Measure = called(alias="measure", default="levenshtein", of=Measure)

    def _nearest(self, text: str, others: Sequence[str]) -> tuple[int, float]:
        """Return the index of the one most alike to a text, the first of equal ones, and how much."""
        compare = likeness(self.alike_by)
        return max(((index, compare(text, other)) for index, other in enumerate(others)), key=lambda pair: pair[1])


class NonLLMContextPrecision(LikeContexts):
    """The average precision of the contexts, where those alike to a reference context are relevant.

    Use it when your passages have no ids, and you want their order checked without a judge. The mean, over the relevant
    ones, of the share of relevant contexts down to their rank; 0.0 without any.

    >>> NonLLMContextPrecision().score(
    ...     retrieved_contexts=["Whales sing.", "Moths fly at night"], reference_contexts=["Moths fly at night."]
    ... ).value
    0.5
    """

    name = "non_llm_context_precision"
    blind_spots = "Meaning: paraphrases are not alike, and a changed number or negation hardly makes texts differ."
    noun = "context"
    complaint = "unlike the reference"
    aliases = ("NonLLMContextPrecisionWithReference", "non_llm_context_precision_with_reference")

    def measure(self, sample: Sample) -> MetricResult:
        """Return the average precision."""
        verdicts = []
        for index, context in enumerate(sample.retrieved_contexts or ()):
            best, score = self._nearest(context, sample.reference_contexts or ())
            evidence = (whole_context(index, context),) if score >= self.threshold else ()
            reason = f"{score:.0%} alike to reference_contexts[{best}], the nearest"
            verdicts.append(Verdict(text=context, ok=bool(evidence), reason=reason, evidence=evidence))
        alike = [verdict.ok for verdict in verdicts]
        reason = f"{sum(alike)} of {len(alike)} contexts alike to one of the reference"
        return MetricResult(average_precision(alike), metric=self.name, reason=reason, verdicts=verdicts)


class NonLLMContextRecall(LikeContexts):
    """The share of the reference contexts to which one of the contexts is alike; the nearest is shown for the others.

    Use it when your passages have no ids, and you want to know without a judge which ones are missing.

    >>> NonLLMContextRecall().score(
    ...     retrieved_contexts=["Moths fly at night"], reference_contexts=["Moths fly at night.", "Whales sing."]
    ... ).value
    0.5
    """

    name = "non_llm_context_recall"
    blind_spots = "Meaning: paraphrases are not alike, and a changed number or negation hardly makes texts differ."
    noun = "reference context"
    complaint = "not retrieved"

    def measure(self, sample: Sample) -> MetricResult:
        """Return the share found."""
        contexts = sample.retrieved_contexts or ()
        verdicts = [self._verdict(reference, contexts) for reference in sample.reference_contexts or ()]
        return share_of(self.name, verdicts, "reference contexts retrieved")

    def _verdict(self, reference: str, contexts: Sequence[str]) -> Verdict:
        if not contexts:
            return Verdict(text=reference, ok=False, reason="nothing was retrieved")
        best, score = self._nearest(reference, contexts)
        text = contexts[best]
        if score >= self.threshold:
            evidence = (whole_context(best, text),)
            return Verdict(text=reference, ok=True, reason=f"{score:.0%} alike", evidence=evidence)
        nearest = Nearest(context=best, start=0, end=len(text), text=text, similarity=score)
        reason = f"no context is {self.threshold:.0%} alike"
        return Verdict(text=reference, ok=False, reason=reason, nearest=nearest)


assert_contexts_alike = asserting(
    NonLLMContextRecall,
    NonLLMContextPrecision,
    called=("recall", "precision"),
    min=0.8,
    example='["Whales sing.", "Moths fly at night"], ["Moths fly at night."]',
)


#: What Ragas calls it.
NonLLMContextPrecisionWithReference = NonLLMContextPrecision
