"""Judges that answer in a way of their own, asked within the budget of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pytest_ragmetrics.errors import UnscoredError
from pytest_ragmetrics.judges.judge import Answered, Desk, Judge
from pytest_ragmetrics.judges.prices import estimated_tokens
from pytest_ragmetrics.judges.tasks import Task

if TYPE_CHECKING:
    from pytest_ragmetrics.budget import Budget, Receipt
    from pytest_ragmetrics.result import Usage

A = TypeVar("A")


class MeteredJudge(Judge):
    """A judge that knows of no budget, each of whose answers is a call, or as many as its usage says.

    Whether an answer will be found in a cache is known only afterwards: none is asked for once the budget is reached.
    Tokens that the usage leaves out are estimated from the texts of the task.
    """

    def __init__(self, judge: Judge, budget: Budget) -> None:
        self.name = judge.name
        self.is_varied = judge.is_varied
        self._judge = judge
        self._budget = budget

    async def ask(self, task: Task[A], *, vote: int = 0, desk: Desk) -> Answered[A]:
        """Return what the judge answers; raise ``BudgetExceededError`` instead of asking it where nothing is left."""
        with self._budget.request(self.name, kind="custom", model=self.name) as receipt:
            try:
                answered = await self._judge.ask(task, vote=vote, desk=desk)
            except UnscoredError as error:
                _tell(receipt, error.usage, task)
                raise
            _tell(receipt, answered.usage, task)
        return answered

    async def aclose(self) -> None:
        """Close the judge."""
        await self._judge.aclose()


def _tell(receipt: Receipt, usage: Usage | None, task: Task[Any]) -> None:
    """Tell a receipt what an answer took, or the vain attempt at one; without a usage it stays a call."""
    if usage is None:
        return
    if usage.cached_calls and not usage.calls:
        receipt.took(0, calls=0)
        return
    prompt = usage.prompt_tokens or estimated_tokens(*(block.text for block in task.blocks()))
    receipt.took(prompt, usage.completion_tokens, calls=max(usage.calls, 1))
