"""What a whole run may ask for: counted in a file that all its processes share and that outlives each of them.

The limits come from ``--rag-max-calls``, ``--rag-max-tokens`` and ``--rag-max-cost``.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.core import database
from pytest_ragmetrics.core.errors import BudgetExceededError, JudgeError, JudgeNotConfiguredError, UnscoredError
from pytest_ragmetrics.core.locks import SharedFolder
from pytest_ragmetrics.core.loop import in_child
from pytest_ragmetrics.judges.prices import estimated_tokens, price
from pytest_ragmetrics.judges.transports.values import AnyRequest, Reply, Transport

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How many requests and tokens a run may take and what they may cost in US dollars; ``None`` is no limit."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None

    def share(self, parts: int) -> Limits:
        """Return one of so many equal parts, rounded down.

        >>> Limits(calls=10).share(4)
        Limits(calls=2, tokens=None, cost=None)
        """
        calls, tokens = (None if limit is None else limit // parts for limit in (self.calls, self.tokens))
        return Limits(calls=calls, tokens=tokens, cost=None if self.cost is None else self.cost / parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetUse:
    """What was used so far; ``unpriced`` requests are not in ``cost``, and ``refused`` ones were not made."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    refused: int = 0

    def __add__(self, other: BudgetUse) -> BudgetUse:
        return BudgetUse(**{name: number + getattr(other, name) for name, number in asdict(self).items()})


_COUNTED = tuple(field.name for field in fields(BudgetUse))
_SCHEMA = f"CREATE TABLE IF NOT EXISTS used (id INTEGER PRIMARY KEY, {', '.join(_COUNTED)})"
_START = "INSERT OR IGNORE INTO used VALUES (1, 0, 0, 0.0, 0, 0)"
# One statement is one transaction: two processes never count the same call.
_RESERVE = """UPDATE used SET calls = calls + 1 WHERE (:calls IS NULL OR calls < :calls)
    AND (:tokens IS NULL OR tokens < :tokens) AND (:cost IS NULL OR cost < :cost)"""
_ADD = f"UPDATE used SET {', '.join(f'{name} = {name} + :{name}' for name in _COUNTED)}"  # noqa: S608 - the names above
_READ = f"SELECT {', '.join(_COUNTED)} FROM used"  # noqa: S608 - the names above


class UnpricedError(BudgetExceededError):
    """A budget in dollars cannot be kept, because the price of a model is unknown."""


@dataclass(slots=True)
class Receipt:
    """What a request took, noted when its reply is there."""

    calls: int = 1
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None

    def took(
        self, prompt_tokens: int, completion_tokens: int = 0, *, cost: float | None = None, calls: int = 1
    ) -> None:
        """Note the tokens of prompt and reply, what they cost, ``None`` where no price is known, and the calls.

        ``calls`` is how many it was in truth, 0 if it came from a cache.
        """
        self.calls, self.prompt_tokens, self.completion_tokens = calls, prompt_tokens, completion_tokens
        self.cost = cost


class Budget:
    """The limits of a run and what it used of them, in ``file`` for all processes that have it, else for this one.

    A request is counted before it is made, so calls never pass their limit, however many ask at once; tokens and
    dollars are known afterwards, so they pass it by no more than what was in flight. A process that is killed leaves
    what it used in the file. The retries of an SDK are part of their request; what one that failed took is unknown,
    so it is a call without tokens. ``options`` is how the options that set the limits begin. Close it after use.

    >>> budget = Budget(Limits(calls=1))
    >>> with budget.request("mine", kind="custom", model="mine") as receipt:
    ...     receipt.took(100, 20)
    >>> budget.used().tokens
    120
    >>> with budget.request("mine", kind="custom", model="mine") as receipt:
    ...     receipt.took(100, 20)
    Traceback (most recent call last):
    pytest_ragmetrics.BudgetExceededError: --rag-max-calls=1 is reached (1 of 1 calls, 120 tokens used): \
nothing more is asked, and the answers paid for are kept
    >>> budget.close()
    """

    def __init__(self, limits: Limits, file: Path | None = None, *, options: str = "--rag-max-") -> None:
        self.limits = limits
        self.options = options
        self.file = file
        self._folder: SharedFolder | None = None
        self._turn = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        # A connection to memory goes on in the child with what was counted before.
        own = {} if file is None else {"_connection": lambda: None, "_folder": lambda: None}
        in_child(self, _turn=threading.Lock, **own)

    @classmethod
    def shared(cls, limits: Limits) -> Self:
        """Return a budget in a file that other processes can open too; closing this one removes it."""
        folder = SharedFolder()
        budget = cls(limits, folder.path / "budget.sqlite")
        budget._folder = folder
        # There before anybody looks for it.
        budget.used()
        return budget

    @contextmanager
    def request(self, name: str, *, kind: str, model: str, url: str | None = None) -> Iterator[Receipt]:
        """Reserve a call, and charge what its receipt says in the end.

        Raises ``BudgetExceededError`` if there is nothing left or the count cannot be kept, and ``UnpricedError``
        where the price of the model is unknown and dollars are what is limited.
        """
        if self.limits.cost is not None and price(kind, model, 1, 1, url=url) is None:
            options = self.options
            raise UnpricedError(
                f"{name} has no known price, so {options}cost cannot be kept: use {options}tokens or {options}calls"
            )
        self._reserve()
        receipt = Receipt()
        try:
            yield receipt
        except JudgeNotConfiguredError:
            receipt.calls = 0
            raise
        finally:
            tokens = receipt.prompt_tokens + receipt.completion_tokens
            unpriced = int(receipt.cost is None and tokens > 0)
            self._add(calls=receipt.calls - 1, tokens=tokens, cost=receipt.cost or 0.0, unpriced=unpriced)

    def settle(self, *, tokens: int, cost: float) -> None:
        """Charge so much more, or with numbers below 0 less, than was charged for a request before."""
        self._add(tokens=tokens, cost=cost)

    def own_row(self) -> dict[str, float] | None:
        """Return what this process used as JSON builtins, where no other can see it."""
        return asdict(self.used()) if self.file is None else None

    def used(self) -> BudgetUse:
        """Return what all processes used so far."""
        return BudgetUse(**dict(zip(_COUNTED, self._do(_READ)[1], strict=True)))

    def close(self) -> None:
        """Close the file."""
        with self._turn:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()
            if self._folder is not None:
                self._folder.close()
                self._folder = None

    # Both are overridden where another process counts.
    def _reserve(self) -> None:
        changed, _ = self._do(_RESERVE, asdict(self.limits))
        if not changed:
            self._add(refused=1)
            raise BudgetExceededError(reached(self.limits, self.used(), self.options))

    def _add(self, **counts: Any) -> None:
        self._do(_ADD, asdict(BudgetUse(**counts)))

    def _do(self, statement: str, values: Any = ()) -> tuple[int, Any]:
        """Return how many rows a statement changed, and the row that it read."""
        with self._turn:
            try:
                if self._connection is None:
                    self._connection = database.opened(self.file, _SCHEMA, _START)
                done = self._connection.execute(statement, values)
                # Read inside the lock: another thread's execution of the same statement resets a cursor.
                return done.rowcount, done.fetchone()
            except (sqlite3.Error, OSError) as error:
                msg = f"the budget of this run cannot be counted ({error}), so nothing more is asked"
                raise BudgetExceededError(msg) from error


class Budgeted:
    """Reserves a call of the budget for each paid request, and charges its tokens."""

    def __init__(self, following: Transport, budget: Budget) -> None:
        self._following = following
        self._budget = budget

    async def send(self, request: AnyRequest) -> Reply:
        """Return the reply; raise ``BudgetExceededError`` instead of asking where nothing is left."""
        provider = request.provider
        if provider is None or not provider.is_paid:
            return await self._following.send(request)
        kind, model, url = request.kind, request.model, request.url
        with self._budget.request(provider.name, kind=kind, model=model, url=url) as receipt:
            try:
                reply = await self._following.send(request)
            except (UnscoredError, JudgeError) as error:
                # A reply that was cut short, or a judge with an ask of its own, may say what it cost.
                usage = error.usage
                if usage is not None:
                    calls = usage.calls or int(not usage.cached_calls)
                    # A judge with an ask of its own may leave its cost out, which is 0 then.
                    cost = usage.cost or price(kind, model, usage.prompt_tokens, 0, url=url)
                    receipt.took(usage.prompt_tokens, usage.completion_tokens, cost=cost, calls=calls)
                raise
            # A provider that counts no tokens takes some all the same; a reply from its own cache took none.
            prompt = reply.prompt_tokens or (estimated_tokens(*request.texts) if reply.calls else 0)
            completion = reply.completion_tokens or estimated_tokens(reply.text)
            cost = replace(reply, prompt_tokens=prompt, completion_tokens=completion).cost(request)
            receipt.took(prompt, completion, cost=cost, calls=reply.calls)
        return reply


def reached(limits: Limits, used: BudgetUse, options: str) -> str:
    """Return in words which limits are reached; ``options`` is how their names begin."""
    names = " and ".join(
        f"{options}{name}={limit}"
        for name, limit in asdict(limits).items()
        if limit is not None and getattr(used, name) >= limit
    )
    use = format_use(limits, used)
    return f"{names} is reached ({use} used): nothing more is asked, and the answers paid for are kept"


def budget_of(
    calls: int | None, tokens: int | None, cost: float | None, *, file: str | None, workers: int | None
) -> Budget:
    """Return the budget of this process of a run: one of ``workers``, or with ``None`` the one that reports.

    A worker counts in the ``file`` of the run. One on another machine, which has no such file, may use its equal
    part of the limits.
    """
    limits = Limits(calls=calls, tokens=tokens, cost=cost)
    if workers is None:
        return Budget.shared(limits)
    if file is not None and Path(file).is_file():
        return Budget(limits, Path(file))
    return Budget(limits.share(workers))


def budget_line(budget: Budget, others: Iterable[Mapping[str, Any]] = ()) -> str:
    """Return the line about a budget at the end of a run; ``others`` are the rows of workers that counted alone."""
    used = sum((BudgetUse(**row) for row in others), start=budget.used())
    refused = f"{used.refused} {'request was' if used.refused == 1 else 'requests were'} not made"
    state = f"; reached, {refused}" if used.refused else ""
    return f"budget: {format_use(budget.limits, used)} used{state}"


def format_use(limits: Limits, used: BudgetUse) -> str:
    """Return in words what was used of which limit.

    >>> format_use(Limits(calls=10), BudgetUse(calls=3, tokens=600))
    '3 of 10 calls, 600 tokens'
    """
    parts = [
        f"{used.calls}{_of(limits.calls)} calls",
        f"{used.tokens}{_of(limits.tokens)} tokens",
        f"${used.cost:.4f}" + ("" if limits.cost is None else f" of ${limits.cost:g}"),
    ]
    return ", ".join(parts[:2] if limits.cost is None and (used.unpriced or not used.cost) else parts)


def _of(limit: int | None) -> str:
    return "" if limit is None else f" of {limit}"
