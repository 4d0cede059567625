"""Judge and embedder of a dry run: they answer from the cache, else by rule, and count what they would have asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_ragmetrics.cache.desk import CachingDesk
from pytest_ragmetrics.dry_run.forecast import Forecast
from pytest_ragmetrics.embedders.embedder import Embedder
from pytest_ragmetrics.embedders.local import LocalEmbedder
from pytest_ragmetrics.errors import JudgeError, JudgeNotConfiguredError, UnscoredError
from pytest_ragmetrics.judges.custom import CustomJudge
from pytest_ragmetrics.judges.judge import Answered, Desk, Fetch, Judge, Kept, PromptedJudge, Reply, Request
from pytest_ragmetrics.judges.local import LocalJudge
from pytest_ragmetrics.judges.prices import estimated_tokens, price
from pytest_ragmetrics.judges.schema import InvalidAnswer
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.result import Usage

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

A = TypeVar("A")

# How many items a list of an answer may have to have.
_LONGEST = 200


class Rehearsal:
    """Replaces those who would be asked; who costs nothing is asked all the same."""

    def __init__(self, desk: CachingDesk, forecast: Forecast) -> None:
        self._desk = desk
        self._forecast = forecast

    def judge(self, judge: Judge | None, spec: str) -> Judge:
        """Return the stand-in of a judge, or of a spec that none could be made of."""
        if judge is not None and (not judge.is_paid or isinstance(judge, RehearsedJudge)):
            return judge
        return RehearsedJudge(judge, spec=spec, desk=self._desk, forecast=self._forecast)

    def judge_of(self, make: Callable[[], Judge], spec: str) -> Judge:
        """Return the stand-in of a judge yet to be made, which may lack a key."""
        try:
            return self.judge(make(), spec)
        except JudgeNotConfiguredError:
            return self.judge(None, spec)

    def embedder(self, embedder: Embedder | None, spec: str) -> Embedder:
        """Return the stand-in of an embedder, or of a spec that none could be made of."""
        if isinstance(embedder, (LocalEmbedder, RehearsedEmbedder)):
            return embedder
        return RehearsedEmbedder(embedder, spec=spec, desk=self._desk, forecast=self._forecast)

    def embedder_of(self, make: Callable[[], Embedder], spec: str) -> Embedder:
        """Return the stand-in of an embedder yet to be made."""
        try:
            return self.embedder(make(), spec)
        except JudgeNotConfiguredError:
            return self.embedder(None, spec)


class RehearsedJudge(Judge):
    """Stands in for a judge, which is never asked; ``spec`` names one that could not even be made."""

    def __init__(self, judge: Judge | None, *, spec: str, desk: CachingDesk, forecast: Forecast) -> None:
        self.name = spec if judge is None else judge.name
        self.is_varied = judge is None or judge.is_varied
        # Who makes no prompts of its own is taken to be asked with those of the package.
        self._prompted = judge if isinstance(judge, PromptedJudge) else CustomJudge(_never, name=self.name)
        self._desk = desk
        self._forecast = forecast
        self._local = LocalJudge()

    async def ask(self, task: Task[A], *, vote: int = 0, desk: Desk) -> Answered[A]:
        """Return the answer that is kept, or else one by rule; raise ``UnscoredError`` where there is no rule."""
        request = self._prompted.request(task, vote=vote)
        key = None
        if self._prompted.is_lasting:
            key, kept = await self._desk.find(request)
            if kept is not None:
                answered = await self._prompted.ask(task, vote=vote, desk=_Found(kept))
                return Answered(answer=answered.answer, usage=self._forecast.asked(None, answered.usage))
        try:
            answer = await self._stand_in(task, desk)
        except UnscoredError as error:
            error.usage = self._forecast.asked(key, self._usage(request, ()))
            raise
        return Answered(answer=answer, usage=self._forecast.asked(key, self._usage(request, answer)))

    async def _stand_in(self, task: Task[A], desk: Desk) -> A:
        try:
            return (await self._local.ask(task, desk=desk)).answer
        except JudgeError:
            return _smallest_answer(task)

    async def aclose(self) -> None:
        """Close the judge that was not asked."""
        await self._prompted.aclose()

    def _usage(self, request: Request, answer: object) -> Usage:
        form = json.dumps(request.schema)
        prompt = estimated_tokens(*(message["content"] for message in request.messages), form)
        completion = estimated_tokens(json.dumps(answer, default=_plain, ensure_ascii=False))
        cost = price(request.kind, request.model, prompt, completion)
        return Usage(calls=1, prompt_tokens=prompt, completion_tokens=completion, cost=cost)


class RehearsedEmbedder(Embedder):
    """Stands in for an embedder, which is never asked; ``spec`` names one that could not even be made."""

    is_kept = False

    def __init__(self, embedder: Embedder | None, *, spec: str, desk: CachingDesk, forecast: Forecast) -> None:
        self.name = spec if embedder is None else embedder.name
        self.kind = "custom" if embedder is None else embedder.kind
        self.model = spec if embedder is None else embedder.model
        self.is_paid = embedder is None or embedder.is_paid
        self._embedder = embedder
        self._desk = desk
        self._forecast = forecast
        self._local = LocalEmbedder()

    async def aembed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors that are kept, or if one is missing vectors by rule."""
        import numpy as np

        asked = self if self._embedder is None else self._embedder
        keyed, found = await self._desk.find_vectors(asked, texts)
        self._forecast.embedded({key: text for key, text in keyed.items() if key not in found}, len(texts), self._usage)
        if keyed and len(found) == len(keyed):
            keys = {text: key for key, text in keyed.items()}
            return np.stack([found[keys[text]] for text in texts])
        return self._local.embed(texts)

    async def aclose(self) -> None:
        """Close the embedder that was not asked."""
        if self._embedder is not None:
            await self._embedder.aclose()

    def _usage(self, texts: Sequence[str]) -> Usage:
        """Return what one request for texts would take."""
        if not texts or not self.is_paid:
            return Usage(cached_calls=1)
        tokens = estimated_tokens(*texts)
        return Usage(calls=1, prompt_tokens=tokens, cost=price(self.kind, self.model, tokens, 0))


class _Found:
    """A desk that has one answer."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    async def obtain(self, request: Request, fetch: Fetch) -> Kept:  # noqa: ARG002 - nothing is fetched
        """Return the answer."""
        return Kept(reply=self._reply, cached=True)


def _smallest_answer(task: Task[A]) -> A:
    """Return an answer as small as the task takes it, which lists something if it may: nothing follows from nothing."""
    for length in (*range(1, _LONGEST), 0):
        # The first choice is often yes, which takes evidence, and the last one no, which takes none.
        for choice in (-1, 0):
            with suppress(InvalidAnswer):
                return task.read(_smallest(task.schema(), length, choice))
    msg = f"dry run: nothing stands in for an answer to {task.prompt}, so what follows from it is not counted"
    raise UnscoredError(msg)


def _smallest(schema: Mapping[str, Any], length: int, choice: int, number: int = 0) -> Any:
    """Return what fits a schema, with lists of one length; ``number`` is that of the item it is part of."""
    if "enum" in schema:
        return schema["enum"][choice]
    kind = schema["type"]
    if kind == "object":
        # An item may point to another list by number, which has one item at least.
        numbers = {name: min(number, 1) for name, part in schema["properties"].items() if part.get("type") == "integer"}
        numbers["number"] = number
        return {
            name: _smallest(part, length, choice, numbers.get(name, number))
            for name, part in schema["properties"].items()
        }
    if kind == "array":
        size = 1 - abs(choice) if number else length
        return [_smallest(schema["items"], length, choice, position) for position in range(1, size + 1)]
    return {"string": f"{number}", "integer": number, "boolean": False}[kind]


def _plain(value: object) -> object:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def _never(prompt: str) -> str:
    del prompt
    msg = "a dry run asks nobody"
    raise JudgeError(msg)
