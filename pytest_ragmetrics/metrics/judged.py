"""JudgedMetric, the base of metrics that ask a judge or an embedder, and Ask, the access of one judgement to both."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from inspect import CORO_CREATED, getcoroutinestate, signature
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, cast
from unicodedata import normalize

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import JudgeError, RagMetricsError, UnscoredError
from pytest_ragmetrics.core.result import MetricResult, Usage, Verdict
from pytest_ragmetrics.core.sample import Sample, turn_of
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.context import Exchange, ScoringLog, Session
from pytest_ragmetrics.judges.embedders.embedder import Embedder, Embeds, as_embedder, cosines
from pytest_ragmetrics.judges.embedders.specs import check_embedder_spec, make_embedder
from pytest_ragmetrics.judges.judge import AnsweringJudge, Completes, Judge, PromptedJudge, as_judge
from pytest_ragmetrics.judges.specs import check_spec, make_judge
from pytest_ragmetrics.judges.suspicion import suspicious_signs
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.judges.tasks.task import ListTexts
from pytest_ragmetrics.judges.transports.limiter import DIRECT
from pytest_ragmetrics.judges.transports.values import AnyRequest, Reply, Request, Transport, UnreadableReplyError
from pytest_ragmetrics.metrics.base import Metric, is_blank
from pytest_ragmetrics.metrics.conversations import conversation, earlier_texts, numbered_turns, untrusted_turns
from pytest_ragmetrics.metrics.parameters import Named, called, declared
from pytest_ragmetrics.metrics.votes import Vote, VotePlan, collect_votes, vote_plan
from pytest_ragmetrics.runs.wording.figures import describe_uncounted
from pytest_ragmetrics.text.unicode import shortened

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Self

A = TypeVar("A")
B = TypeVar("B")

# Characters of a text in an error.
_SHOWN = 60


async def together(answers: Iterable[Awaitable[A]]) -> list[A]:
    """Await all answers at the same time and return them in order.

    If some cannot be had, the first error is raised when all others are there: what is paid for is kept and counted.

    >>> import asyncio
    >>> async def twice(number: int) -> int:
    ...     return 2 * number
    >>> asyncio.run(together([twice(1), twice(2)]))
    [2, 4]
    """
    there: list[A] = []
    for outcome in await asyncio.gather(*answers, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
        there.append(outcome)
    return there


async def both(one: Awaitable[A], other: Awaitable[B]) -> tuple[A, B]:
    """Await two things of different kinds like :func:`together`."""
    first, second = await together(cast("tuple[Awaitable[Any], ...]", (one, other)))
    return first, second


#: What may be given as a judge: one, its spec (``openai:gpt-5-mini``), or what can be made into one.
JudgeLike: TypeAlias = Judge | str | Completes | Callable[[str], str | Awaitable[str]]
#: What may be given as an embedder.
EmbedderLike: TypeAlias = Embedder | str | Embeds | Callable[[list[str]], Any]


class _Closes(Protocol):
    async def aclose(self) -> None: ...


P = TypeVar("P", bound=_Closes)


class Lazy(Generic[P]):
    """A judge or an embedder: a given one, one made of its spec when it is first needed, or that of the session."""

    def __init__(
        self, given: P | str | None, *, make: Callable[[str], P], of_session: Callable[[Session, P | str | None], P]
    ) -> None:
        self._given = given
        self._make = make
        self._of_session = of_session
        self._made: P | None = None

    def get(self) -> P:
        """Return it, on the background loop; raise ``JudgeNotConfiguredError`` where there is none."""
        session = context.current().session
        if session is not None:
            return self._of_session(session, self._given)
        if self._given is not None and not isinstance(self._given, str):
            return self._given
        if self._made is not None:
            return self._made
        made = self._made = self._make(self._given or "auto")

        async def close() -> None:
            self._made = None
            await made.aclose()

        loop.on_stop(close)
        return made


def lazy_judge(judge: JudgeLike | None) -> Lazy[Judge]:
    """Return the source of the judge that a metric was given; raise ``ValueError`` or ``TypeError`` otherwise."""
    given = _checked(judge, check_spec, as_judge)
    return Lazy(given, make=make_judge, of_session=_judge_of)


def lazy_embedder(embedder: EmbedderLike | None) -> Lazy[Embedder]:
    """Return the source of the embedder that a metric was given; raises like :func:`lazy_judge`."""
    given = _checked(embedder, check_embedder_spec, as_embedder)
    return Lazy(given, make=make_embedder, of_session=_embedder_of)


# Functions of a module can be pickled, and with them metrics.
def _judge_of(session: Session, given: Judge | str | None) -> Judge:
    return session.judge(given or context.current().judge)


def _embedder_of(session: Session, given: Embedder | str | None) -> Embedder:
    return session.embedder(given)


def _checked(given: object, check: Callable[[str], str], adapt: Callable[[object], P]) -> P | str | None:
    if isinstance(given, str):
        return check(given)
    return None if given is None else adapt(given)


if TYPE_CHECKING:

    @declared
    class _Asking(Named):
        """The parameters of metrics that ask, of which their own attributes say another type."""

        _given_judge: JudgeLike | None = called(alias="judge", default=None, of=None)
        _given_embedder: EmbedderLike | None = called(alias="embedder", default=None, of=None)

else:
    _Asking = object


class JudgedMetric(Metric, _Asking):
    """A metric that asks a judge; subclasses implement ``judged``.

    ``judged`` asks with ``await ask(task)``, a task of ``pytest_ragmetrics.judges.tasks`` whose answer is checked and
    typed, and several at once with ``asyncio.gather``; ``await ask.embed(texts)`` are vectors. It ends in
    ``ask.result(...)`` or ``ask.share(verdicts, ...)``, which add judge and cost. Each vote calls ``judged`` anew, so
    keep nothing in the metric.

    ``judge`` and ``embedder`` default to the session's; without a session, to those that the environment has a key for.

    >>> from pytest_ragmetrics.judges.tasks import RateRelevance
    >>> class Sympathy(JudgedMetric):
    ...     name = "sympathy"
    ...
    ...     async def judged(self, sample, ask):
    ...         rating = await ask(RateRelevance(question="Is it kind?", response=sample.response))
    ...         return ask.result(rating.value, reason=rating.reason)
    >>> judge = lambda prompt: '{"reason": "Warm words.", "rating": 4}'
    >>> Sympathy(judge=judge).score(response="Get well soon!").value
    1.0
    """

    asks: ClassVar[tuple[str, ...]] = ("judge",)
    rounds = 1
    #: The score of a sample with nothing to judge; ``None`` where it has none.
    if_empty: float | None = None
    #: How many independent answers to one task a single judgement asks for: ``ask(task, vote=n)`` up to n = draws - 1.
    draws: int = 1

    def __init__(
        self, *, name: str | None = None, judge: JudgeLike | None = None, embedder: EmbedderLike | None = None
    ) -> None:
        super().__init__(name=name)
        self._judge = lazy_judge(judge)
        self._embedder = lazy_embedder(embedder)

    def asking(self, *, judge: JudgeLike | None = None, embedder: EmbedderLike | None = None) -> Self:
        """Return a copy of this metric with another judge, embedder or both."""
        other = copy(self)
        if judge is not None:
            other._judge = lazy_judge(judge)  # noqa: SLF001 - one of this class
        if embedder is not None:
            other._embedder = lazy_embedder(embedder)  # noqa: SLF001 - as above
        return other

    def judge_here(self) -> Judge | None:
        """Return the judge that it asks here, on the background loop; ``None`` if it asks an embedder alone.

        Raises ``JudgeNotConfiguredError`` where there is none.
        """
        return self._judge.get() if "judge" in self.asks else None

    @abstractmethod
    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the score of a sample whose required fields are there; raise ``UnscoredError`` if it has none."""

    def untrusted_texts(self, sample: Sample) -> Iterator[tuple[str, str]]:
        """Yield by field what the judge is shown and others wrote, who may mean to deceive it; references are ours."""
        ends = (sample.user_input or "", sample.response or "")
        yield from zip(("user_input", "response"), ends, strict=True)
        if sample.metadata.get("messages") is not None:
            yield from (("messages", text) for text in untrusted_turns(conversation(sample)) if text not in ends)
            earlier = earlier_texts(sample, getattr(self, "history", "none"))
            yield from (("earlier_contexts", it.text) for it in earlier if it.origin == "contexts")
        for field in ("retrieved_contexts", "reference_contexts"):
            # A context without a word is a slip of the splitter, no attempt at anything.
            yield from ((field, text) for text in getattr(sample, field) or () if any(map(str.isalnum, text)))

    def measure(self, sample: Sample) -> MetricResult:
        """Score a sample on the background loop, and wait."""
        return loop.run(self._measured(sample, vote_plan(self)))

    async def ameasure(self, sample: Sample) -> MetricResult:
        """Score a sample on the background loop, from any loop."""
        return await loop.arun(self._measured(sample, vote_plan(self)))

    async def _measured(self, sample: Sample, plan: VotePlan) -> MetricResult:
        if plan.votes == 1:
            return await self._judged(sample, self._ask(sample, vote=context.current().vote))

        async def vote(number: int) -> Vote:
            ask = self._ask(sample, vote=number)
            try:
                outcome: MetricResult | UnscoredError = await self._judged(sample, ask)
            except UnscoredError as error:
                outcome = error
            return Vote(outcome=outcome, is_varied=ask.is_varied)

        return await collect_votes(vote, plan, self.scale)

    def _ask(self, sample: Sample, *, vote: int = 0) -> Ask:
        found = (f"{field} {sign}" for field, text in self.untrusted_texts(sample) for sign in _signs(text))
        return Ask(self, signs=tuple(dict.fromkeys(found)), vote=vote, in_turn=turn_of(sample) is not None)

    async def _judged(self, sample: Sample, ask: Ask) -> MetricResult:
        try:
            result = await self.judged(sample, ask)
        except JudgeError as error:
            raise UnscoredError(f"{self.name}: {error}", usage=ask.usage + (error.usage or Usage())) from error
        except UnscoredError as error:
            error.usage = ask.usage if error.usage is None else ask.usage + error.usage
            raise
        ask._check_awaited()  # noqa: SLF001 - of this module
        return result


def _instead_of(given: object) -> str:
    """Return what was given for a task, and what to write."""
    if isinstance(given, type) and issubclass(given, Task):
        fields = ", ".join(f"{name}=..." for name, it in signature(given).parameters.items() if it.default is it.empty)
        return f"its class: write ask({given.__name__}({fields}))"
    question = repr(shortened(given, _SHOWN)) if isinstance(given, str) else "'...'"
    one = f'Critique(definition={question}, fields=(("response", response),))'
    return f"{type(given).__name__}: write await ask({one}), a task of pytest_ragmetrics.judges.tasks, and take its ok"


class Ask:
    """One judgement's access to judge and embedder: ``await ask(task)`` is the answer, ``ask.result(...)`` the end."""

    def __init__(self, metric: JudgedMetric, *, signs: Sequence[str], vote: int, in_turn: bool = False) -> None:
        here = context.current()
        self._metric = metric
        self._signs = signs
        self._in_turn = in_turn
        self.usage = Usage()
        #: Whether a judge was asked that may answer the same otherwise.
        self.is_varied = False
        self._vote = vote
        self._asked: dict[str, None] = {}
        self._disagreements: list[tuple[str, ...]] = []
        self._answers: list[Coroutine[Any, Any, Any]] = []
        self._log = here.log or ScoringLog()
        self._transport = DIRECT if here.session is None else here.session.transport
        # Votes end where they decide, at another number for each metric.
        once = here.session is not None and here.session.asks_once
        self._is_shared = once and here.wanted_votes() == 1
        self._same_claims = here.vote > 0

    @cached_property
    def _judge(self) -> Judge:
        return self._metric._judge.get()  # noqa: SLF001 - of this module

    @cached_property
    def _embedder(self) -> Embedder:
        return self._metric._embedder.get()  # noqa: SLF001 - of this module

    def __call__(self, task: Task[A], *, vote: int = 0, then: Task[Any] | None = None) -> Coroutine[Any, Any, A]:
        """Return the judge's answer to a task, awaitable; ``vote`` numbers independent answers to the same task.

        ``then`` is the task that follows; the provider can cache its contexts. Raises ``TypeError`` for what is no
        task.
        """
        __tracebackhide__ = True
        if not isinstance(task, Task):
            raise TypeError(f"{self._metric.name}: ask() takes a task, not {_instead_of(task)}")
        answer = self._answer(task, vote, then)
        self._answers.append(answer)
        return answer

    def _check_awaited(self) -> None:
        """Raise ``TypeError`` where an answer was never awaited: a coroutine is true, and would be a score of 1.0."""
        forgotten = [answer for answer in self._answers if getcoroutinestate(answer) == CORO_CREATED]
        for answer in forgotten:
            answer.close()
        if forgotten:
            raise TypeError(f"{self._metric.name}: ask(...) is not awaited: write await ask(...)")

    async def _answer(self, task: Task[A], vote: int, then: Task[Any] | None) -> A:
        draws = self._metric.draws
        if self._vote and not 0 <= vote < draws:
            # It would be the answer that another judgement asks for: each has the numbers of its draws.
            msg = f"{self._metric.name} asks for vote {vote} of a task: its class must say so with draws = {vote + 1}"
            raise ValueError(msg)
        vote += 0 if self._same_claims and isinstance(task, ListTexts) else self._vote * draws
        judge = self._judge
        self.is_varied = self.is_varied or judge.is_varied
        self._asked[judge.name] = None
        try:
            answered = await judge.ask(task, vote=vote, transport=_Logged(self._transport, self._log, vote, then))
        except (UnscoredError, JudgeError) as error:
            # Not all errors end the judgement, which has used it all the same.
            spent, error.usage = error.usage or Usage(), None
            self._spend(spent)
            raise
        self._spend(answered.usage)
        self._disagreements.append(answered.disagreements)
        return answered.answer

    def _spend(self, usage: Usage) -> None:
        self._log.usage += usage
        self.usage += usage

    def is_shared_by(self, other: JudgedMetric) -> bool:
        """Tell whether what another metric asks here too is asked once, as both have the same judge."""
        judge = self._judge
        is_kept = self._is_shared and isinstance(judge, PromptedJudge) and judge.is_kept
        return is_kept and judge is other._judge.get()  # noqa: SLF001 - of this module

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors of texts, shape (n, d)."""
        import numpy as np

        embedder = self._embedder
        self._asked[embedder.name] = None
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        transport = self._transport if embedder.is_kept else DIRECT
        request = embedder.request([normalize("NFC", text) for text in texts])
        reply = await transport.send(request)
        self._spend(reply.usage(request))
        return np.zeros((0, 0), dtype=np.float32) if reply.vectors is None else reply.vectors

    async def cosines(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the cosine similarity of each text to each, shape (n, n).

        Raises ``UnscoredError`` naming a text whose vector is all zeros: it has no direction.
        """
        vectors = await self.embed(texts)
        zeros = [text for text, vector in zip(texts, vectors, strict=True) if not vector.any()]
        if zeros:
            what = f"a vector of zeros for {shortened(zeros[0], _SHOWN)!r}; it has no cosine similarity"
            raise UnscoredError(f"{self._metric.name}: {self._embedder.name} returned {what}")
        return cosines(vectors, vectors)

    def result(
        self, value: float, *, reason: str | None, verdicts: Sequence[Verdict] = (), vacuous: bool = False
    ) -> MetricResult:
        """Return a result with the judge and the cost."""
        if self._signs:
            verdicts = [replace(verdict, suspicious=True) for verdict in verdicts]
            reason = f"{reason or ''} (suspicious: {'; '.join(self._signs)})".strip()
        return MetricResult(
            value,
            metric=self._metric.name,
            reason=reason,
            verdicts=verdicts,
            vacuous=vacuous,
            judge=", ".join(self._asked) or None,
            usage=self.usage,
            # The order in which they were answered is chance.
            disagreements=[text for texts in sorted(self._disagreements) for text in texts],
        )

    def share(self, verdicts: Sequence[Verdict], counted: str, *, of_ok: bool = True) -> MetricResult:
        """Return the share of the verdicts that are ok, or are not, saying how many ``counted``: "claims supported"."""
        of_all = [verdict for verdict in verdicts if verdict.counts]
        met = sum(verdict.ok is of_ok for verdict in of_all)
        reason = f"{met} of {len(of_all)} {counted}{describe_uncounted(verdicts)}"
        value = met / len(of_all) if of_all else float(of_ok)
        return self.result(value, reason=reason, verdicts=verdicts, vacuous=not of_all)

    def nothing(self, reason: str) -> MetricResult:
        """Return ``if_empty`` as a vacuous score; raise :class:`UnscoredError` if there is none, except in a turn."""
        if_empty = self._metric.if_empty
        if_empty = self._metric.best if if_empty is None and self._in_turn else if_empty
        if if_empty is None:
            raise UnscoredError(f"{self._metric.name}: {reason}; if_empty= gives such samples a value")
        return self.result(if_empty, reason=reason, vacuous=True)


@dataclass(frozen=True, slots=True)
class _Logged:
    """Logs the prompt and the reply of what is sent."""

    following: Transport
    log: ScoringLog
    vote: int
    then: Task[Any] | None

    async def send(self, request: AnyRequest) -> Reply:
        if self.then is not None and isinstance(request, Request):
            request = replace(request, then=self.then)
        try:
            reply = await self.following.send(request)
        except RagMetricsError as error:
            self._note(request, error.reply if isinstance(error, UnreadableReplyError) else None)
            raise
        self._note(request, reply)
        return reply

    def _note(self, request: AnyRequest, reply: Reply | None) -> None:
        # A judge with an ask of its own makes no prompt that could be shown.
        if isinstance(request, Request) and not isinstance(request.provider, AnsweringJudge):
            exchange = Exchange(
                task=request.task,
                vote=self.vote,
                prompt=request.messages[-1]["content"],
                reply=None if reply is None else reply.text,
                cached=reply is not None and reply.cached,
                judge=None if request.provider is None else request.provider.name,
            )
            self.log.exchanges.append(exchange)
            if reply is not None and reply.served:
                self.log.served[exchange.judge or "", reply.served] += 1


# Several metrics look at the same sample, and a context may be long.
_signs = lru_cache(maxsize=256)(suspicious_signs)
_FIELDS = ("user_input", "response", "retrieved_contexts", "reference", "reference_contexts")


class AnyFieldsMetric(JudgedMetric):
    """A metric that shows a judge all the texts of a sample.

    Of a conversation it shows every turn. It needs a response, or a conversation in which the assistant says something,
    whoever speaks last. A subclass that judges other fields alone names them: ``requires = ("user_input",)``.
    """

    sees_all_turns = True

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` when the sample has nothing to judge, or no response where that is judged."""
        if not fields_of(sample):
            raise ValueError(f"{self.name}: all fields are missing or blank; it needs one of {', '.join(_FIELDS)}")
        needed = dict.fromkeys(self.requires)
        if sample.response is not None:
            needed["response"] = None
        elif any(turn.role == "assistant" and not is_blank(turn.text) for turn in conversation(sample)):
            needed.pop("response", None)
        try:
            self.require_fields(sample, [*needed])
        except ValueError as error:
            if sample.response is not None or "response" not in needed:
                raise
            msg = f"{error}; to judge other fields alone, name them in a subclass: requires = ('user_input',)"
            raise ValueError(msg) from None


def fields_of(sample: Sample) -> tuple[tuple[str, str], ...]:
    """Return the fields that hold text, contexts numbered one by one; of a conversation all turns are fields.

    >>> fields_of(Sample(response="Moths fly.", retrieved_contexts=["Moths fly at night.", " "]))
    (('response', 'Moths fly.'), ('retrieved_contexts 1', 'Moths fly at night.'))
    """
    fields = [*numbered_turns(sample)]
    for name in _FIELDS[2:] if fields else _FIELDS:
        value = getattr(sample, name) or ()
        if isinstance(value, str):
            fields.append((name, value))
        else:
            fields += [(f"{name} {number}", text) for number, text in enumerate(value, start=1)]
    return tuple((name, text) for name, text in fields if not is_blank(text))
