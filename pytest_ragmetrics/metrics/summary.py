"""SummaryScore: how many questions about the contexts a summary answers, and how much shorter it is."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ragmetrics.judges.tasks import AnswerQuestions, ListKeyPhrases, WriteClosedQuestions
from pytest_ragmetrics.metrics.assertion import assert_metric
from pytest_ragmetrics.metrics.base import check_flag, check_if_empty, check_number
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric, JudgeLike
from pytest_ragmetrics.metrics.verdicts import judged_verdict
from pytest_ragmetrics.result import MetricResult
from pytest_ragmetrics.sample import Sample, as_contexts


class SummaryScore(JudgedMetric):
    """The share of questions about the contexts that a summary answers, and how much shorter it is.

    Takes ``response``, the summary, and ``reference_contexts``, what it sums up. Three requests in a row: the key
    phrases of the contexts; closed questions about them that the contexts answer with yes; which of these the summary
    answers with yes. The first two depend on the contexts alone. Score = answered * (1 - coeff) + conciseness *
    coeff, where conciseness = 1 - min(len(summary), len(contexts)) / (len(contexts) + 1e-10) in characters, the
    contexts joined by line breaks; with ``length_penalty=False`` the share alone. Raises ``UnscoredError`` when there
    is nothing to ask about, unless ``if_empty`` is the score then. After Ragas' summarization score.

    >>> judge = lambda prompt: (
    ...     '{"answers": [{"number": 1, "reason": "It does.", "answer": "yes"}]}' if "<<<questions" in prompt
    ...     else '{"questions": ["Do moths fly?"]}' if "<<<phrases" in prompt
    ...     else '{"phrases": ["moths"]}'
    ... )
    >>> metric = SummaryScore(length_penalty=False, judge=judge)
    >>> metric.score(response="Moths fly.", reference_contexts=["Moths fly at night."]).value
    1.0
    """

    name = "summary_score"
    noun = "question"
    complaint = "not answered by the summary"
    helper = "assert_summarizes"
    aliases = ("SummarizationScore", "summarization_score")
    requires = ("response", "reference_contexts")
    rounds = 3

    def __init__(
        self,
        *,
        length_penalty: bool = True,
        coeff: float = 0.5,
        if_empty: float | None = None,
        judge: JudgeLike | None = None,
    ) -> None:
        super().__init__(judge=judge)
        self.length_penalty = check_flag("length_penalty", length_penalty)
        self.coeff = check_number("coeff", coeff, most=1)
        self.if_empty = check_if_empty(if_empty, self.scale)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the share of questions answered, weighed against the length."""
        summary, contexts = sample.response or "", tuple(sample.reference_contexts or ())
        phrases = await ask(ListKeyPhrases(contexts=contexts))
        questions = await ask(WriteClosedQuestions(contexts=contexts, phrases=phrases)) if phrases else ()
        if not questions:
            return ask.nothing("there is nothing to ask about the contexts", if_empty=self.if_empty)
        answers = await ask(AnswerQuestions(text=summary, questions=questions))
        verdicts = [judged_verdict(*pair) for pair in zip(questions, answers, strict=True)]
        counted = "questions answered by the summary"
        if not self.length_penalty:
            return ask.share(verdicts, counted)
        answered = sum(verdict.ok for verdict in verdicts)
        concise = conciseness(summary, contexts)
        score = answered / len(verdicts) * (1 - self.coeff) + concise * self.coeff
        reason = f"{answered} of {len(verdicts)} {counted}, conciseness {concise:.2f}"
        return ask.result(score, reason=reason, verdicts=verdicts)


def assert_summarizes(
    response: str,
    contexts: object,
    *,
    min: float = 0.5,
    length_penalty: bool = True,
    coeff: float = 0.5,
    if_empty: float | None = None,
    votes: int | None = None,
    judge: JudgeLike | None = None,
) -> MetricResult:
    """Assert that the response, as a summary of the contexts, scores at least ``min``.

    Parameters and errors are those of :class:`~pytest_ragmetrics.metrics.SummaryScore`.
    """
    __tracebackhide__ = True
    metric = SummaryScore(length_penalty=length_penalty, coeff=coeff, if_empty=if_empty, judge=judge)
    sample = Sample(response=response, reference_contexts=as_contexts(contexts))
    return assert_metric(metric, sample, min=min, votes=votes)


def conciseness(summary: str, contexts: Sequence[str]) -> float:
    """Return by how much a summary is shorter than what it sums up, 0.0 when it is not.

    >>> round(conciseness("Moths fly.", ["Moths fly at night.", "So do bats."]), 6)
    0.677419
    """
    whole = len("\n".join(contexts))
    return 1 - min(len(summary), whole) / (whole + 1e-10)


#: What Ragas calls it.
SummarizationScore = SummaryScore
