"""What a run may ask for: counted exactly, shared by processes, and never silently wrong."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.core.errors import BudgetExceededError, JudgeError, JudgeNotConfiguredError, UnscoredError
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.evaluation.engine import Engine
from pytest_ragmetrics.judges.embedders.embedder import CustomEmbedder
from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.judges.local import LocalJudge
from pytest_ragmetrics.judges.prices import price
from pytest_ragmetrics.judges.tasks import RateRelevance, Task
from pytest_ragmetrics.judges.transports.budget import (
    Budget,
    Budgeted,
    BudgetUse,
    Limits,
    UnpricedError,
    budget_line,
    budget_of,
    format_use,
)
from pytest_ragmetrics.judges.transports.limiter import DIRECT, Providers
from pytest_ragmetrics.judges.transports.values import Answered, Transport
from tests.scripted_judge import ScriptedJudge, rated

Make = Callable[..., Budget]
TASK = RateRelevance(question="Does it hum?", response="It hums.")


def spend(budget: Budget, *, prompt: int = 10, model: str = "mine", kind: str = "custom") -> None:
    with budget.request(f"{kind}:{model}", kind=kind, model=model) as receipt:
        receipt.took(prompt, 5, cost=price(kind, model, prompt, 5))


def answer(judge: Judge, engine: Engine) -> float:
    return asyncio.run(judge.ask(TASK, transport=engine.transport)).answer.value


def until_refused(budget: Budget) -> str:
    try:
        while True:
            spend(budget)
    except BudgetExceededError as error:
        return str(error)


@pytest.fixture
def make() -> Iterator[Make]:
    with ExitStack() as stack:
        yield lambda *limits: stack.enter_context(closing(Budget(*limits)))


def test_calls_never_pass_their_limit(make: Make) -> None:
    budget = make(Limits(calls=10))
    with ThreadPoolExecutor(8) as threads:
        refused = [*threads.map(until_refused, [budget] * 8)]
    assert budget.used() == BudgetUse(calls=10, tokens=150, unpriced=10, refused=8)
    # A call that is reserved may not be charged yet.
    assert re.match(r"--rag-max-calls=10 is reached \(10 of 10 calls, \d+ tokens used\): ", refused[-1])


@pytest.mark.parametrize(
    ("limits", "made", "name"),
    [
        (Limits(tokens=30), 2, "--rag-max-tokens=30"),
        (Limits(calls=9, tokens=31), 3, "--rag-max-tokens=31"),
        (Limits(calls=0), 0, "--rag-max-calls=0"),
        (Limits(cost=0.0), 0, "--rag-max-cost=0.0"),
        (Limits(calls=2, tokens=30), 2, "--rag-max-calls=2 and --rag-max-tokens=30"),
    ],
)
def test_the_error_names_what_is_reached(limits: Limits, made: int, name: str, make: Make) -> None:
    """Tokens and dollars stop the run once they are reached; what was in flight may go over it."""
    budget = make(limits)
    for _ in range(made):
        spend(budget, kind="openai", model="gpt-4o-mini")
    with pytest.raises(BudgetExceededError, match=f"^{re.escape(name)} is reached"):
        spend(budget, kind="openai", model="gpt-4o-mini")


def test_dollars_are_counted(make: Make) -> None:
    budget = make(Limits(cost=0.001))
    spend(budget, kind="openai", model="gpt-4o-mini", prompt=10_000)
    assert budget.used().cost > 0.001
    with pytest.raises(BudgetExceededError, match=r"--rag-max-cost=0\.001 is reached \(1 calls, .* of \$0\.001 used\)"):
        spend(budget, kind="openai", model="gpt-4o-mini")
    with pytest.raises(UnpricedError, match=r"^custom:mine has no known price, .* use --rag-max-tokens"):
        spend(budget)


#: Makes requests until one is refused, and is killed.
SPEND_ALL = """
import os, signal, sys
from pathlib import Path
from pytest_ragmetrics.core.errors import BudgetExceededError
from pytest_ragmetrics.judges.transports.budget import Budget, Limits
budget = Budget(Limits(calls=50), Path(sys.argv[1]))
try:
    while True:
        with budget.request("custom:mine", kind="custom", model="mine") as receipt:
            receipt.took(10, 5)
except BudgetExceededError:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_share_a_file(tmp_path: Path, make: Make) -> None:
    budget = make(Limits(calls=50), tmp_path / "budget")
    assert budget.used() == BudgetUse()
    command = [sys.executable, "-c", SPEND_ALL, str(tmp_path / "budget")]
    workers = [subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) for _ in range(2)]
    assert [worker.wait() for worker in workers] == [-9] * 2
    assert (budget.used().calls, budget.used().tokens) == (50, 750)


def test_a_request_that_was_never_sent_is_not_counted(make: Make) -> None:
    """Without a key nothing leaves the machine; what fails on its way may have been paid for."""
    budget = make(Limits(calls=1))
    for error, calls in ((JudgeNotConfiguredError, 0), (JudgeError, 1)):
        with pytest.raises(error), budget.request("a:b", kind="a", model="b"):
            raise error
        assert budget.used().calls == calls


def test_a_count_that_cannot_be_kept_stops_the_run(tmp_path: Path, make: Make) -> None:
    (tmp_path / "budget").write_text("No database, but longer than a header of one has to be. " * 20)
    budget = make(Limits(calls=9), tmp_path / "budget")
    with pytest.raises(BudgetExceededError, match=r"cannot be counted .* so nothing more is asked"):
        spend(budget)
    # Python 3.13 and later warn of a connection that nobody closed, once it is collected.
    gc.collect(1)


def test_a_worker_without_the_file_has_its_part(tmp_path: Path) -> None:
    """On another machine there is no file; the parts together are no more than the whole."""
    with ExitStack() as stack:
        whole = stack.enter_context(closing(budget_of(11, 100, 0.5, file=None, workers=None)))
        assert whole.file is not None
        near = stack.enter_context(closing(budget_of(11, 100, 0.5, file=str(whole.file), workers=4)))
        far = stack.enter_context(closing(budget_of(11, 100, 0.5, file=str(tmp_path / "elsewhere"), workers=4)))
        assert (near.file, near.own_row()) == (whole.file, None)
        assert (far.file, far.limits) == (None, Limits(calls=2, tokens=25, cost=0.125))
        spend(near, kind="openai", model="gpt-4o-mini")
        spend(far, kind="openai", model="gpt-4o-mini")
        row = far.own_row()
        assert row is not None
        assert budget_line(whole, [row]).startswith("budget: 2 of 11 calls, 30 of 100 tokens, $0.0000 of $0.5 used")
        folder = whole.file.parent
        assert folder.is_dir()
    assert not folder.exists()


def test_the_summary_says_what_was_refused(make: Make) -> None:
    budget = make(Limits(calls=1))
    assert budget_line(budget) == "budget: 0 of 1 calls, 0 tokens used"
    until_refused(budget)
    assert budget_line(budget) == "budget: 1 of 1 calls, 15 tokens used; reached, 1 request was not made"
    assert format_use(Limits(tokens=9), BudgetUse(calls=1, tokens=3, cost=0.25)) == "1 calls, 3 of 9 tokens, $0.2500"


def test_a_judge_asks_the_budget_before_each_request(make: Make) -> None:
    """A repair is a request; what no provider counted is estimated."""
    judge, budget = ScriptedJudge(rate_relevance=["nothing", rated(4)]), make(Limits(calls=3))
    engine = Engine(cache="off", budget=budget)
    assert engine.judge(judge) is judge
    answer(judge, engine)
    assert budget.used() == BudgetUse(calls=2, tokens=30, unpriced=2)
    judge = ScriptedJudge(rate_relevance="nothing")
    with pytest.raises(BudgetExceededError):
        answer(judge, engine)
    assert len(judge.requests) == 1
    engine.close()


class OwnJudge(Judge):
    """Answers by itself, without a request to show."""

    name = "own"

    def __init__(self, usage: Usage | None = None, *, is_decided: bool = True) -> None:
        self.usage, self.is_decided, self.asked, self.closed = usage, is_decided, 0, False

    async def ask(self, task: Task[Any], *, vote: int = 0, transport: Transport = DIRECT) -> Answered[Any]:
        self.asked += 1
        if self.usage is None or not self.is_decided:
            raise UnscoredError("own: no usable answer", usage=self.usage)
        return Answered(answer=task.read({"reason": "It hums.", "rating": 4}), usage=self.usage)

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("usage", "asked", "spent"),
    [
        (Usage(calls=1, prompt_tokens=7, completion_tokens=3), 2, BudgetUse(calls=2, tokens=20, unpriced=2)),
        (Usage(), 2, BudgetUse(calls=2, tokens=10, unpriced=2)),
        (Usage(calls=3, prompt_tokens=30), 1, BudgetUse(calls=3, tokens=30, unpriced=1)),
    ],
)
def test_a_judge_with_an_ask_of_its_own_is_counted(usage: Usage, asked: int, spent: BudgetUse, make: Make) -> None:
    """A call each time, or as many as it says; tokens that it does not tell are estimated; its cache is free."""
    judge, budget = OwnJudge(usage), make(Limits(calls=2))
    engine = Engine(cache="off", budget=budget)
    shell, cached = engine.judge(judge), engine.judge(OwnJudge(Usage(cached_calls=1)))
    assert (shell.name, shell.is_varied, shell.is_paid) == ("own", True, True)
    for _ in range(3):
        answer(cached, engine)
    assert budget.used() == BudgetUse()
    for _ in range(asked):
        assert answer(shell, engine) == 1.0
    with pytest.raises(BudgetExceededError, match=r"^--rag-max-calls=2 is reached"):
        answer(shell, engine)
    assert budget.used() == replace(spent, refused=1)
    assert judge.asked == asked


@pytest.mark.parametrize(
    ("usage", "spent"),
    [
        (Usage(calls=2, prompt_tokens=14, completion_tokens=6), BudgetUse(calls=2, tokens=20, unpriced=1)),
        (None, BudgetUse(calls=1)),
    ],
)
def test_what_such_a_judge_spends_in_vain_is_counted(usage: Usage | None, spent: BudgetUse, make: Make) -> None:
    budget = make(Limits(calls=9))
    engine = Engine(cache="off", budget=budget)
    with pytest.raises(UnscoredError, match="own: no usable answer"):
        answer(engine.judge(OwnJudge(usage, is_decided=False)), engine)
    assert budget.used() == spent


def test_who_costs_nothing_and_who_counts_already_are_asked_as_they_are(make: Make) -> None:
    engine = Engine(judge="local", cache="off", budget=make(Limits(calls=0)))
    assert isinstance(engine.judge(), LocalJudge)
    own = OwnJudge()
    shell = engine.judge(own)
    assert engine.judge(shell) is shell
    asyncio.run(shell.aclose())
    assert own.closed
    engine.close()


def test_embedders_ask_the_budget_too(make: Make) -> None:
    budget = make(Limits(calls=1))
    chain = Budgeted(Providers(), budget)
    embedder = CustomEmbedder(lambda texts: [[1.0, 2.0] for _ in texts], name="mine")
    request = embedder.request(["It hums."])
    asyncio.run(chain.send(request))
    assert budget.used() == BudgetUse(calls=1, tokens=2, unpriced=1)
    with pytest.raises(BudgetExceededError):
        asyncio.run(chain.send(request))
    embedder.is_paid = False
    assert asyncio.run(chain.send(request)).vectors is not None
