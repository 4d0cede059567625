"""The tasks of a judge.

A task is a frozen value: its inputs, the name of its prompt, the schema of its answer, and how to read that answer.
Claims and contexts are numbered, and answers refer to the numbers; an answer with other numbers is refused.
"""

from __future__ import annotations

from pytest_ragmetrics.judges.schema import InvalidAnswer
from pytest_ragmetrics.judges.tasks.agents import JudgeGoal, ListTopics, MatchTopics
from pytest_ragmetrics.judges.tasks.claims import ListClaims, ListEntities, VerifyClaims
from pytest_ragmetrics.judges.tasks.contexts import FindContradictions, JudgeContexts, JudgeUsefulness, SelectSentences
from pytest_ragmetrics.judges.tasks.golden import GoldenQuestion, WriteGoldenQuestion
from pytest_ragmetrics.judges.tasks.questions import (
    AnswerQuestions,
    ListKeyPhrases,
    WriteClosedQuestions,
    WriteQuestions,
)
from pytest_ragmetrics.judges.tasks.ratings import TOP_RATING as TOP_RATING
from pytest_ragmetrics.judges.tasks.ratings import (
    Critique,
    JudgeRefusal,
    RateAgreement,
    RateByCriteria,
    RateByRubric,
    RateContexts,
    RateCorrectness,
    RateGroundedness,
    RateRelevance,
    ReviewContexts,
    ReviewGroundedness,
)
from pytest_ragmetrics.judges.tasks.task import Block, Judgement, Rating, Task

__all__ = [
    "AnswerQuestions",
    "Block",
    "Critique",
    "FindContradictions",
    "GoldenQuestion",
    "InvalidAnswer",
    "JudgeContexts",
    "JudgeGoal",
    "JudgeRefusal",
    "JudgeUsefulness",
    "Judgement",
    "ListClaims",
    "ListEntities",
    "ListKeyPhrases",
    "ListTopics",
    "MatchTopics",
    "RateAgreement",
    "RateByCriteria",
    "RateByRubric",
    "RateContexts",
    "RateCorrectness",
    "RateGroundedness",
    "RateRelevance",
    "Rating",
    "ReviewContexts",
    "ReviewGroundedness",
    "SelectSentences",
    "Task",
    "VerifyClaims",
    "WriteClosedQuestions",
    "WriteGoldenQuestion",
    "WriteQuestions",
]
