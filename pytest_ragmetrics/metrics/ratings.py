"""Metrics of one request: the judge rates, or decides on each context."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, ClassVar, Literal, TypeAlias

from pytest_ragmetrics.core.result import MetricResult, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.judges.tasks import Rating, Task
from pytest_ragmetrics.metrics.asserting import asserting
from pytest_ragmetrics.metrics.claims import closest
from pytest_ragmetrics.metrics.conversations import History, asked, asked_after, earlier_texts
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric, together
from pytest_ragmetrics.metrics.parameters import choice, declared
from pytest_ragmetrics.metrics.strings import token_f1
from pytest_ragmetrics.metrics.verdicts import judged_verdict, on_response, whole_context


class DualRating(JudgedMetric):
    """The mean of two ratings, each brought to [0, 1]; without one of them there is no score."""

    noun = "rating"
    complaint = "not the highest"
    may_be_empty: ClassVar[tuple[str, ...]] = ()
    #: The field that is rated.
    rated = "response"

    @abstractmethod
    def tasks(self, sample: Sample) -> tuple[Task[Rating], Task[Rating]]:
        """Return what is asked, in the two ways."""

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the mean of both ratings."""
        return self.mean_of(await together(ask(task) for task in self.tasks(sample)), sample, ask)

    def mean_of(self, ratings: Sequence[Rating], sample: Sample, ask: Ask, *, by: str = "") -> MetricResult:
        """Return the mean of ratings, ``by`` what else than usual they were given."""
        text: str = getattr(sample, self.rated)
        start, end = (0, len(text)) if self.rated == "response" else (None, None)
        verdicts = [
            Verdict(text=text, ok=rating.value == 1, start=start, end=end, reason=rating.reason or None)
            for rating in ratings
        ]
        reason = f"rated {' and '.join(f'{rating.value:.2f}' for rating in ratings)}{by}"
        return ask.result(_mean(ratings), reason=reason, verdicts=verdicts)


class ContextRelevance(DualRating):
    """How far the contexts contain what the question asks for, rated 0, 1 or 2 by two differently worded requests.

    Use it when you want one cheap grade of retrieval, without right answers. The score is the mean of the ratings, each
    divided by 2. After Nvidia's in Ragas, without its special cases.

    >>> judge = lambda prompt: '{"reason": "Half of it.", "rating": 1}'
    >>> ContextRelevance(judge=judge).score(user_input="Who, when?", retrieved_contexts=["In May."]).value
    0.5
    """

    name = "context_relevance"
    blind_spots = "Which context is irrelevant or missing: it is one grade for all."
    helper = "assert_context_relevance"
    aliases = ("nv_context_relevance",)
    requires = ("user_input", "retrieved_contexts")
    rated = "user_input"

    def tasks(self, sample: Sample) -> tuple[Task[Rating], Task[Rating]]:
        """Return both wordings."""
        contexts = tuple(sample.retrieved_contexts or ())
        return tasks.RateContexts(contexts=contexts, **asked(sample)), tasks.ReviewContexts(
            contexts=contexts, **asked(sample)
        )


assert_context_relevance = asserting(ContextRelevance, min=0.5)


@declared
class ResponseGroundedness(DualRating):
    """How far the contexts support the response, rated 0, 1 or 2 by two differently worded requests.

    Use it when :class:`Faithfulness` costs too much, and one grade of the whole answer is enough. The score is the mean
    of the ratings, each divided by 2. After earlier turns the judge also sees ``user_input``. A turn below 1.0, or
    without contexts, is rated again with earlier contexts and what the user says; the better mean counts.
    ``history="none"`` takes its own contexts alone. After Nvidia's in Ragas, without its special cases.

    >>> judge = lambda prompt: '{"reason": "All of it.", "rating": 2}'
    >>> metric = ResponseGroundedness(judge=judge)
    >>> metric.score(response="Moths fly.", retrieved_contexts=["Moths fly at night."]).value
    1.0
    """

    name = "response_groundedness"
    blind_spots = "Which claim is unsupported: it is one grade of three steps."
    helper = "assert_grounded"
    aliases = ("nv_response_groundedness",)
    requires = ("response", "retrieved_contexts")
    looks_back_for = ("retrieved_contexts",)

    history: History = choice("contexts", History)

    def tasks(self, sample: Sample) -> tuple[Task[Rating], Task[Rating]]:
        """Return both wordings."""
        given: dict[str, Any] = {"contexts": tuple(sample.retrieved_contexts or ()), **asked_after(sample)}
        response = sample.response or ""
        return tasks.RateGroundedness(response=response, **given), tasks.ReviewGroundedness(response=response, **given)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the mean of both ratings, by earlier contexts as well where its own bear out less than all."""
        own = tuple(sample.retrieved_contexts or ())
        found = [await together(ask(task) for task in self.tasks(sample))] if own else []
        texts = [it for it in earlier_texts(sample, self.history) if it.origin != "assistant"]
        is_less = not found or _mean(found[0]) < 1
        if is_less and any(it.origin == "contexts" for it in texts):
            more = (it.text for it in closest(texts, [sample.response or ""]))
            wider = self.tasks(replace(sample, retrieved_contexts=(*own, *more)))
            found.append(await together(ask(task) for task in wider))
        if not found:
            return ask.nothing("no contexts in this turn or before it")
        best = max(found, key=_mean)
        by_own = own and best is found[0]
        return self.mean_of(best, sample, ask, by="" if by_own else " by contexts of earlier turns too")


assert_grounded = asserting(ResponseGroundedness, min=0.75)


class AnswerAccuracy(DualRating):
    """How far response and reference agree as answers to the question, rated 0, 2 or 4 in both orders.

    Use it when you have right answers and want one cheap grade. The score is the mean of the ratings, divided by 4.
    After Nvidia's in Ragas.

    >>> judge = lambda prompt: '{"reason": "A part of it.", "rating": 2}'
    >>> AnswerAccuracy(judge=judge).score(user_input="When?", response="In May.", reference="In May 1903.").value
    0.5
    """

    name = "answer_accuracy"
    blind_spots = "Which part is wrong: it is one grade of three steps; errors of the reference."
    helper = "assert_answer_accurate"
    aliases = ("nv_accuracy",)
    requires = ("user_input", "response", "reference")

    def tasks(self, sample: Sample) -> tuple[Task[Rating], Task[Rating]]:
        """Return the question with the answers in both orders."""
        response, reference = sample.response or "", sample.reference or ""
        return (
            tasks.RateAgreement(first=response, second=reference, **asked(sample)),
            tasks.RateAgreement(first=reference, second=response, **asked(sample)),
        )


assert_answer_accurate = asserting(AnswerAccuracy, min=0.5)


# The middle of a scale of five steps.
_PASSABLE = 0.5
Method: TypeAlias = Literal["judge", "token_f1"]


class Relevance(JudgedMetric):
    """How well the response addresses the question, on a scale of five steps brought to [0, 1].

    Use it when answers evade the question, and you want one request and no embedder.

    >>> judge = lambda prompt: '{"reason": "It answers half of it.", "rating": 2}'
    >>> Relevance(judge=judge).score(user_input="Who and when?", response="Ada.").value
    0.5
    """

    name = "relevance"
    blind_spots = "Whether the answer is true or supported; which part is off the question."
    noun = "response"
    complaint = "hardly relevant"
    helper = "assert_relevant"
    requires = ("user_input", "response")

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the rating."""
        task = tasks.RateRelevance(response=sample.response or "", **asked(sample))
        return _rated(sample, await ask(task), ask)


assert_relevant = asserting(Relevance)


@declared
class Correctness(JudgedMetric):
    """How far the response says what the reference says, on a scale of five steps brought to [0, 1].

    Use it when you have right answers and want one request, or none. After earlier turns the judge also sees
    ``user_input``. ``method="token_f1"`` asks no judge: it is :class:`TokenF1`.

    >>> Correctness(method="token_f1").score(response="In May 1903.", reference="May 1903").value
    0.8
    """

    name = "correctness"
    blind_spots = "Which part is wrong: it is one grade; errors of the reference."
    noun = "response"
    complaint = "hardly correct"
    helper = "assert_correct"
    requires = ("response", "reference")

    method: Method = choice("judge", Method)

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` naming a text that is missing, or blank where a judge would be asked."""
        if self.method == "judge" or sample.response is None or sample.reference is None:
            super().require(sample)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the rating, or the F1."""
        response, reference = sample.response or "", sample.reference or ""
        if self.method == "token_f1":
            return token_f1(response, reference, metric=self.name)
        task = tasks.RateCorrectness(response=response, reference=reference, **asked_after(sample))
        return _rated(sample, await ask(task), ask)


assert_correct = asserting(Correctness, example='"in May 1903", "May 1903", min=0.8, method="token_f1"', shows=0.8)


class ContextPrecisionProportion(JudgedMetric):
    """The share of the contexts that help to answer the question, in any order.

    Use it when retrieval returns passages beside the point, and their order does not matter.

    >>> judge = lambda prompt: '{"verdicts": [{"number": 1, "reason": "On topic.", "verdict": "relevant"}]}'
    >>> metric = ContextPrecisionProportion(judge=judge)
    >>> metric.score(user_input="Do moths fly?", retrieved_contexts=["Moths fly at night."]).value
    1.0
    """

    name = "context_precision_proportion"
    blind_spots = "The order of the contexts, and what was not retrieved."
    noun = "context"
    complaint = "not relevant"
    helper = "assert_contexts_precise"
    requires = ("user_input", "retrieved_contexts")
    may_be_empty = ()

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return relevant contexts / contexts."""
        contexts = tuple(sample.retrieved_contexts or ())
        judgements = await ask(tasks.JudgeContexts(contexts=contexts, **asked(sample)))
        verdicts = [
            judged_verdict(text, judgement, evidence=[whole_context(index, text)])
            for index, (text, judgement) in enumerate(zip(contexts, judgements, strict=True))
        ]
        return ask.share(verdicts, "contexts relevant")


assert_contexts_precise = asserting(ContextPrecisionProportion)


def _mean(ratings: Sequence[Rating]) -> float:
    return fmean(rating.value for rating in ratings)


def _rated(sample: Sample, rating: Rating, ask: Ask) -> MetricResult:
    verdict = on_response(sample.response, ok=rating.value >= _PASSABLE, reason=rating.reason)
    return ask.result(rating.value, reason=rating.reason or None, verdicts=[verdict])
