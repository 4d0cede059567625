"""A judge by rule, for trying everything out without a key: it compares words and understands nothing.

It is deterministic and needs neither network nor model. Faithfulness by it, at a pass mark of 0.8, was held against
human labels: balanced accuracy 0.68 on long answers of language models, the very ones its rules were tuned on (0.5 is
a coin flip, good models reach 0.75 to 0.86). A faithful answer in other words than its source often fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.judges.judge import Answered, Desk, Judge
from pytest_ragmetrics.judges.rules.claims import list_claims, verify_claims
from pytest_ragmetrics.judges.rules.contexts import (
    find_contradictions,
    judge_contexts,
    judge_usefulness,
    select_sentences,
)
from pytest_ragmetrics.judges.rules.critique import critique, judge_refusal
from pytest_ragmetrics.judges.rules.entities import list_entities
from pytest_ragmetrics.judges.rules.questions import (
    answer_questions,
    list_key_phrases,
    write_closed_questions,
    write_questions,
)
from pytest_ragmetrics.judges.rules.ratings import rate_correctness, rate_relevance
from pytest_ragmetrics.judges.rules.scales import rate_agreement, rate_contexts, rate_groundedness
from pytest_ragmetrics.judges.tasks import (
    AnswerQuestions,
    Critique,
    FindContradictions,
    JudgeContexts,
    JudgeRefusal,
    JudgeUsefulness,
    ListClaims,
    ListEntities,
    ListKeyPhrases,
    RateAgreement,
    RateContexts,
    RateCorrectness,
    RateGroundedness,
    RateRelevance,
    ReviewContexts,
    ReviewGroundedness,
    SelectSentences,
    Task,
    VerifyClaims,
    WriteClosedQuestions,
    WriteQuestions,
)
from pytest_ragmetrics.result import Usage

A = TypeVar("A")


class LocalJudge(Judge):
    """Answers tasks by comparing words; the same question has the same answer, whatever the vote.

    Raises ``JudgeError`` for a task it has no rule for.

    >>> import asyncio
    >>> from pytest_ragmetrics.judges.judge import DirectDesk
    >>> from pytest_ragmetrics.judges.tasks import VerifyClaims
    >>> task = VerifyClaims(claims=("Moths fly at night.",), contexts=("Most moths fly at night.",))
    >>> asyncio.run(LocalJudge().ask(task, desk=DirectDesk())).answer[0].ok
    True
    """

    is_varied = False
    is_paid = False

    def __init__(self) -> None:
        self.name = "local (heuristic)"

    async def ask(self, task: Task[A], *, vote: int = 0, desk: Desk) -> Answered[A]:  # noqa: ARG002 - nothing is sent
        """Return the answer to a task; it costs nothing and needs no desk."""
        rule = _RULES.get(type(task))
        if rule is None:
            msg = f"{self.name} has no rule for {task.prompt}; this metric needs a model"
            raise JudgeError(msg)
        return Answered(answer=rule(task), usage=Usage())


_RULES: Mapping[type[Task[Any]], Callable[[Any], Any]] = {
    ListClaims: list_claims,
    VerifyClaims: verify_claims,
    WriteQuestions: write_questions,
    ListKeyPhrases: list_key_phrases,
    WriteClosedQuestions: write_closed_questions,
    AnswerQuestions: answer_questions,
    SelectSentences: select_sentences,
    Critique: critique,
    RateRelevance: rate_relevance,
    RateCorrectness: rate_correctness,
    JudgeContexts: judge_contexts,
    JudgeUsefulness: judge_usefulness,
    FindContradictions: find_contradictions,
    JudgeRefusal: judge_refusal,
    ListEntities: list_entities,
    RateContexts: rate_contexts,
    ReviewContexts: rate_contexts,
    RateGroundedness: rate_groundedness,
    ReviewGroundedness: rate_groundedness,
    RateAgreement: rate_agreement,
}
