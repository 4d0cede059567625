"""Metrics of the contexts, by a judge: precision, utilization, recall, relevancy and entity recall."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, ClassVar, Literal, TypeAlias

from pytest_ragmetrics.core.result import Evidence, MetricResult, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.metrics.asserting import asserting
from pytest_ragmetrics.metrics.base import joined
from pytest_ragmetrics.metrics.claims import ContextClaimsMetric, Unit
from pytest_ragmetrics.metrics.conversations import asked
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric, together
from pytest_ragmetrics.metrics.parameters import choice, count, declared, share
from pytest_ragmetrics.metrics.retrieval import average_precision
from pytest_ragmetrics.metrics.verdicts import cited_in, evidence_at, judged_verdict, place_in
from pytest_ragmetrics.text.quotes.folding import fold
from pytest_ragmetrics.text.sentences import sentence_table, split_sentences

_NO_SENTENCE = tasks.Judgement(ok=False, reason="It has no sentence.")


class ContextPrecision(JudgedMetric):
    """The average precision of the contexts in their order: 1.0 if all useful ones come first.

    Use it when the right passage is retrieved, but below others. The judge says which contexts help to arrive at the
    reference. The score is the mean, over the useful contexts, of the share of useful ones down to their rank; 0.0 if
    none is useful. After Ragas.

    >>> useful = lambda number: f'{{"number": {number}, "reason": "", "sentences": [{number}], "verdict": "useful"}}'
    >>> judge = lambda prompt: f'{{"verdicts": [{useful(1)}, {useful(2)}]}}'
    >>> metric = ContextPrecision(judge=judge)
    >>> fields = {"user_input": "When do moths fly?", "reference": "At night."}
    >>> metric.score(**fields, retrieved_contexts=["Moths fly at night.", "Night is when moths fly."]).value
    1.0
    """

    name = "context_precision"
    blind_spots = "What was not retrieved."
    noun = "context"
    complaint = "of no use"
    helper = "assert_context_precision"
    aliases: ClassVar[tuple[str, ...]] = (
        "LLMContextPrecisionWithReference",
        "llm_context_precision_with_reference",
        "ContextPrecisionWithReference",
        "ContextualPrecision",
        "contextual_precision",
        "ContextualPrecisionMetric",
    )
    requires = ("user_input", "reference", "retrieved_contexts")
    #: The field that has the answer.
    answer = "reference"

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the average precision of the verdicts in rank order."""
        contexts = sample.retrieved_contexts or ()
        if not contexts:
            return ask.result(0.0, reason="there is no context")
        shown = [index for index, context in enumerate(contexts) if split_sentences(context)]
        judged = dict.fromkeys(range(len(contexts)), _NO_SENTENCE)
        if shown:
            asked_for = tuple(contexts[index] for index in shown)
            answer: str = getattr(sample, self.answer)
            judgements = await ask(tasks.JudgeUsefulness(answer=answer, contexts=asked_for, **asked(sample)))
            judged.update(zip(shown, judgements, strict=True))
        verdicts = [
            judged_verdict(context, judged[index], evidence=cited_in(contexts, shown, judged[index]))
            for index, context in enumerate(contexts)
        ]
        useful = [verdict.ok for verdict in verdicts]
        reason = f"{sum(useful)} of {len(useful)} contexts of use"
        return ask.result(average_precision(useful), reason=reason, verdicts=verdicts)


assert_context_precision = asserting(ContextPrecision, takes=("question", "contexts", "reference"), min=0.7)


class ContextUtilization(ContextPrecision):
    """The average precision of the contexts by their use for the ``response``: it needs no reference.

    Use it when you have no right answers, and want to see whether the passages that the answer uses come first.

    >>> judge = lambda prompt: (
    ...     '{"verdicts": [{"number": 1, "reason": "It does not say.", "sentences": [], "verdict": "useless"}]}'
    ... )
    >>> fields = {"user_input": "When do moths fly?", "response": "At noon."}
    >>> ContextUtilization(judge=judge).score(**fields, retrieved_contexts=["Moths fly at night."]).value
    0.0
    """

    name = "context_utilization"
    blind_spots = "What was not retrieved; whether the response is right: contexts that led to a wrong one are useful."
    helper = "assert_context_utilization"
    aliases = (
        "LLMContextPrecisionWithoutReference",
        "llm_context_precision_without_reference",
        "ContextPrecisionWithoutReference",
    )
    requires = ("user_input", "response", "retrieved_contexts")
    answer = "response"


assert_context_utilization = asserting(ContextUtilization, takes=("question", "contexts", "response"), min=0.7)


@declared
class ContextRecall(ContextClaimsMetric):
    """The share of the reference's sentences that can be attributed to the contexts.

    Use it when answers are incomplete or refuse, and the passage that was needed may be missing. ``reference`` is a
    text or a list, which is joined; ``user_input`` resolves pronouns. ``unit="claims"`` splits it into claims, in a
    further request. Without contexts: 0.0. :class:`Faithfulness` shares the last request. After Es et al., "RAGAS"
    (2023).

    >>> judge = lambda prompt: (
    ...     '{"verdicts": [{"number": 1, "reason": "It says so.", "sentences": [1], "verdict": "supported"}]}'
    ... )
    >>> ContextRecall(judge=judge).score(reference="Moths fly.", retrieved_contexts=["Moths fly at night."]).value
    1.0
    """

    name = "context_recall"
    blind_spots = "Irrelevant contexts beside the needed ones; what the reference leaves out."
    noun = "statement"
    complaint = "not in the contexts"
    helper = "assert_context_recalled"
    aliases = ("LLMContextRecall", "ContextualRecallMetric", "contextual_recall")
    requires = ("reference", "retrieved_contexts")

    unit: Unit = choice("sentences", Unit)
    if_empty: float | None = share(None)

    def sample_of(self, inputs: dict[str, Any]) -> Sample:
        """Return the sample, the references joined if there are several."""
        if "reference" in inputs:
            inputs = {**inputs, "reference": joined(inputs["reference"])}
        return super().sample_of(inputs)

    async def claims(self, sample: Sample, ask: Ask) -> Sequence[str]:
        """Return the sentences of the reference, or what the judge lists of it."""
        reference, contexts = sample.reference or "", tuple(sample.retrieved_contexts or ())
        if self.unit == "claims" and sentence_table(contexts):
            return await ask(
                tasks.ListClaims(text=reference, **asked(sample)), then=tasks.VerifyClaims(claims=(), contexts=contexts)
            )
        return [reference[start:end] for start, end in split_sentences(reference)]

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return attributed sentences / sentences."""
        texts = await self.claims(sample, ask)
        if not texts and not sentence_table(sample.retrieved_contexts or ()):
            texts = [sample.reference or ""]
        if not texts:
            return ask.nothing(f"the reference has no {self.unit}")
        return await self.share_supported(texts, f"{self.unit} of the reference found in the contexts", sample, ask)


assert_context_recalled = asserting(ContextRecall, takes=("contexts", "references"), optional=("question",), min=0.8)


Agreement: TypeAlias = Literal["bert_score", "jaccard", "jaccard_score"]
#: The indexes of the sentences that one sample chose.
Choice = frozenset[int]


@declared
class ContextRelevancy(JudgedMetric):
    """The share of context sentences needed to answer the question, times how far independent samples agree on them.

    Use it when passages are long, and little of them is about the question. ``strictness`` requests choose sentences,
    or none. Agreement is 1 for one request, else the mean over all pairs of the Jaccard similarity of their sentences
    (``agreement="jaccard"``), or of the symmetric best-match similarity of these by the embedder ("bert_score", never
    below 0); two empty ones agree. After Ragas 0.0 (2023).

    >>> metric = ContextRelevancy(judge=lambda prompt: '{"sentences": [1]}')
    >>> metric.score(user_input="Do moths fly?", retrieved_contexts=["Moths fly. Rain is wet."]).value
    0.5
    """

    name = "context_relevancy"
    blind_spots = "Whether something needed is missing."
    noun = "context sentence"
    complaint = "not needed"
    helper = "assert_context_relevant"
    asks = ("judge", "embedder")
    requires = ("user_input", "retrieved_contexts")
    may_be_empty = ()

    strictness: int = count(1)
    agreement: Agreement = choice("bert_score", Agreement)
    if_empty: float | None = share(None)

    def __post_init__(self) -> None:
        self.draws = self.strictness

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return agreement * overlap."""
        contexts = tuple(sample.retrieved_contexts or ())
        table = sentence_table(contexts)
        if not table:
            return ask.nothing("the contexts have no sentence")
        task = tasks.SelectSentences(contexts=contexts, **asked(sample))
        votes = range(self.strictness)
        choices = [frozenset(chosen) for chosen in await together(ask(task, vote=vote) for vote in votes)]
        overlap = sum(map(len, choices)) / (len(choices) * len(table))
        agreement = await self._agreement(choices, table, ask)
        reason = f"{sum(map(len, choices))} of {len(choices) * len(table)} context sentences needed"
        if len(choices) > 1:
            reason = f"{reason} in {len(choices)} samples, agreement {agreement:.2f}"
        verdicts = []
        for index, sentence in enumerate(table):
            ok = sum(index in choice for choice in choices) * 2 > len(choices)
            verdicts.append(Verdict(text=sentence.text, ok=ok, evidence=(sentence,) if ok else ()))
        return ask.result(agreement * overlap, reason=reason, verdicts=verdicts)

    async def _agreement(self, choices: Sequence[Choice], table: Sequence[Evidence], ask: Ask) -> float:
        pairs = list(combinations(choices, 2))
        differing = [(one, other) for one, other in pairs if one and other and one != other]
        if self.agreement != "bert_score":
            alike = [jaccard(one, other) for one, other in differing]
        else:
            alike = await _best_matches(differing, table, ask)
        # Of two equal choices both agree; one without sentences agrees with no other.
        return (sum(one == other for one, other in pairs) + sum(alike)) / len(pairs) if pairs else 1.0


assert_context_relevant = asserting(ContextRelevancy)


def jaccard(one: Choice, other: Choice) -> float:
    """Return the share of the sentences chosen by either that both chose; 1.0 when neither chose any.

    >>> jaccard(frozenset({1, 2}), frozenset({2, 3, 4}))
    0.25
    """
    return len(one & other) / len(one | other) if one | other else 1.0


async def _best_matches(pairs: Sequence[tuple[Choice, Choice]], table: Sequence[Evidence], ask: Ask) -> list[float]:
    """Return for each pair how alike each sentence is to the best of the other side, averaged both ways."""
    if not pairs:
        return []
    chosen = sorted(frozenset().union(*(one | other for one, other in pairs)))
    likeness = (await ask.cosines([table[index].text for index in chosen])).clip(min=0.0)
    row = {index: number for number, index in enumerate(chosen)}
    means = []
    for pair in pairs:
        rows, columns = ([row[index] for index in sorted(choice)] for choice in pair)
        block = likeness[rows][:, columns]
        means.append(float(block.max(axis=1).mean() + block.max(axis=0).mean()) / 2)
    return means


@declared
class ContextEntityRecall(JudgedMetric):
    """The share of the reference's entities that are among those of the contexts.

    Use it when the passages may lack the people, places or products that the right answer names. Case, typography and
    layout are ignored. Without contexts: 0.0. After Ragas.

    >>> judge = lambda prompt: '{"entities": ["Ada Brandt"]}' if "by" in prompt else '{"entities": ["ADA BRANDT"]}'
    >>> metric = ContextEntityRecall(judge=judge)
    >>> metric.score(reference="Ada Brandt", retrieved_contexts=["ADA BRANDT LEFT."]).value
    1.0
    """

    name = "context_entity_recall"
    blind_spots = "What is said of the entities: contexts that name all and say something else score 1.0."
    noun = "name"
    complaint = "not in the contexts"
    helper = "assert_entities_recalled"
    requires = ("reference", "retrieved_contexts")

    if_empty: float | None = share(None)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return entities found / entities of the reference."""
        reference, contexts = (sample.reference or "",), tuple(sample.retrieved_contexts or ())
        if not sentence_table(contexts):
            return ask.result(0.0, reason="there is no context")
        wanted, given = await together(ask(tasks.ListEntities(contexts=texts)) for texts in (reference, contexts))
        if not wanted:
            return ask.nothing("the reference has no entities")
        there = {fold(entity): entity for entity in given}
        verdicts = [
            Verdict(text=entity, ok=key in there, evidence=_evidence(there[key], contexts) if key in there else ())
            for key, entity in {fold(entity): entity for entity in wanted}.items()
        ]
        return ask.share(verdicts, "entities of the reference found in the contexts")


assert_entities_recalled = asserting(
    ContextEntityRecall,
    takes=("contexts", "reference"),
    min=0.8,
    example='"The harbour of Lindow silted up.", "It was Lindow.", judge="local"',
)


def _evidence(entity: str, contexts: Sequence[str]) -> tuple[Evidence, ...]:
    """Return the first place of an entity as the judge wrote it, if there is one."""
    places = ((index, place_in(context, entity)) for index, context in enumerate(contexts))
    return next(((evidence_at(index, contexts[index], *place),) for index, place in places if place), ())
