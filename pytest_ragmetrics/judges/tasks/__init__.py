"""The tasks of a judge.

A task is a frozen value: its inputs, the name of its prompt, the schema of its answer, and how to read that answer.
Claims and contexts are numbered, and answers refer to the numbers; an answer with other numbers is refused.
"""

from __future__ import annotations

from pytest_ragmetrics.judges.schema import InvalidAnswer as InvalidAnswer
from pytest_ragmetrics.judges.tasks.claims import FindContradictions as FindContradictions
from pytest_ragmetrics.judges.tasks.claims import JudgeContexts as JudgeContexts
from pytest_ragmetrics.judges.tasks.claims import JudgeUsefulness as JudgeUsefulness
from pytest_ragmetrics.judges.tasks.claims import ListChosenClaims as ListChosenClaims
from pytest_ragmetrics.judges.tasks.claims import ListClaims as ListClaims
from pytest_ragmetrics.judges.tasks.claims import ListEntities as ListEntities
from pytest_ragmetrics.judges.tasks.claims import SelectSentences as SelectSentences
from pytest_ragmetrics.judges.tasks.claims import VerifyClaims as VerifyClaims
from pytest_ragmetrics.judges.tasks.conversations import JudgeKept as JudgeKept
from pytest_ragmetrics.judges.tasks.conversations import JudgeRole as JudgeRole
from pytest_ragmetrics.judges.tasks.conversations import JudgeTurns as JudgeTurns
from pytest_ragmetrics.judges.tasks.conversations import JudgeWishes as JudgeWishes
from pytest_ragmetrics.judges.tasks.conversations import ListTold as ListTold
from pytest_ragmetrics.judges.tasks.conversations import ListWishes as ListWishes
from pytest_ragmetrics.judges.tasks.questions import AnswerQuestions as AnswerQuestions
from pytest_ragmetrics.judges.tasks.questions import GoldenQuestion as GoldenQuestion
from pytest_ragmetrics.judges.tasks.questions import JudgeGoal as JudgeGoal
from pytest_ragmetrics.judges.tasks.questions import ListTopics as ListTopics
from pytest_ragmetrics.judges.tasks.questions import MatchTopics as MatchTopics
from pytest_ragmetrics.judges.tasks.questions import WriteClosedQuestions as WriteClosedQuestions
from pytest_ragmetrics.judges.tasks.questions import WriteFollowUp as WriteFollowUp
from pytest_ragmetrics.judges.tasks.questions import WriteGoldenQuestion as WriteGoldenQuestion
from pytest_ragmetrics.judges.tasks.questions import WriteQuestions as WriteQuestions
from pytest_ragmetrics.judges.tasks.ratings import TOP_RATING as TOP_RATING
from pytest_ragmetrics.judges.tasks.ratings import Critique as Critique
from pytest_ragmetrics.judges.tasks.ratings import JudgeRefusal as JudgeRefusal
from pytest_ragmetrics.judges.tasks.ratings import RateAgreement as RateAgreement
from pytest_ragmetrics.judges.tasks.ratings import RateByCriteria as RateByCriteria
from pytest_ragmetrics.judges.tasks.ratings import RateByRubric as RateByRubric
from pytest_ragmetrics.judges.tasks.ratings import RateContexts as RateContexts
from pytest_ragmetrics.judges.tasks.ratings import RateCorrectness as RateCorrectness
from pytest_ragmetrics.judges.tasks.ratings import RateGroundedness as RateGroundedness
from pytest_ragmetrics.judges.tasks.ratings import RateRelevance as RateRelevance
from pytest_ragmetrics.judges.tasks.ratings import ReviewContexts as ReviewContexts
from pytest_ragmetrics.judges.tasks.ratings import ReviewGroundedness as ReviewGroundedness
from pytest_ragmetrics.judges.tasks.task import Block as Block
from pytest_ragmetrics.judges.tasks.task import Judgement as Judgement
from pytest_ragmetrics.judges.tasks.task import Rating as Rating
from pytest_ragmetrics.judges.tasks.task import Task as Task
