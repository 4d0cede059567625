"""A dry run: requests are answered from the cache, else by rule, and what they would take is counted.

The counts come from the transport and from the scorings, and go to the table at the end of the run.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_ragmetrics.cache.transport import CachedTransport
from pytest_ragmetrics.core.codec import dump
from pytest_ragmetrics.core.errors import JudgeError, UnscoredError
from pytest_ragmetrics.core.result import MetricResult, Usage
from pytest_ragmetrics.core.sample import FIGURES, Sample, answer_of
from pytest_ragmetrics.judges.context import Scoring
from pytest_ragmetrics.judges.embedders.local import LocalEmbedder
from pytest_ragmetrics.judges.local import LocalJudge, sentence_claims
from pytest_ragmetrics.judges.prices import estimated_tokens, price, priced_tier
from pytest_ragmetrics.judges.schema import InvalidAnswer
from pytest_ragmetrics.judges.tasks import ListClaims, Task
from pytest_ragmetrics.judges.tasks.conversations import AnswersTask
from pytest_ragmetrics.judges.transports.values import (
    SERVICE_TIER,
    Answered,
    AnyRequest,
    EmbeddingRequest,
    Reply,
    Request,
)
from pytest_ragmetrics.runs.blame import MOST
from pytest_ragmetrics.runs.wording.figures import counted, rough_time, text_table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_HEAD = ("metric", "samples", "requests", "cached", "prompt tokens", "cost")
_EMBEDDINGS = "(embeddings)"
_OTHERS = "(asked by no metric)"
_SENTINELS = "(sentinels)"
ASSUMPTIONS = (
    "An estimate; no request was made. Tokens are a quarter of the bytes in UTF-8.",
    "The local heuristic stands in for the judge: its answers decide which requests follow, and the cost counts them.",
    "The provider's cache is left out: what it serves costs less. A service tier counts as it is asked for.",
    "Votes are counted in full, repairs and retries not at all; what several workers ask alike is counted in each.",
    "Where a row of a data set has no response, its reference or its question stands in for it, and for its contexts.",
    "Several answers to a row count as texts of their own: an application that repeats itself costs less.",
)


def with_stand_in(sample: Sample) -> Sample:
    """Return a sample with what its application would give it: a response, and contexts.

    The response is its own, or else its reference or its question, another text for each of several answers; if it had
    none, and no contexts either, these are those of its reference, or the text used as its response.

    >>> answered = with_stand_in(Sample(user_input="How long?", reference="Two minutes."))
    >>> answered.response, answered.retrieved_contexts
    ('Two minutes.', ('Two minutes.',))
    """
    text = sample.reference or sample.user_input
    if sample.response is not None or text is None:
        return sample
    contexts = sample.retrieved_contexts or sample.reference_contexts or (text,)
    if (answer_of(sample) or 1) > 1:  # another text, which is judged anew
        text = f"Answer {answer_of(sample)}: {text}"
    metadata = {**dict.fromkeys(FIGURES[:3], 0.0), **sample.metadata}
    return replace(sample, response=text, retrieved_contexts=contexts, metadata=metadata)


@dataclass(kw_only=True, slots=True)
class ForecastLine:
    """A line of the table: samples and what scoring them would take; ``unpriced`` requests are not in ``cost``."""

    samples: int = 0
    requests: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def add(self, usage: Usage, *, samples: int = 0) -> None:
        """Add what some samples would take."""
        self.samples += samples
        self.requests += usage.calls
        self.cached += usage.cached_calls
        self.prompt_tokens += usage.prompt_tokens
        self.tokens += usage.prompt_tokens + usage.completion_tokens
        self.cost += usage.cost or 0.0
        self.unpriced += usage.calls if usage.cost is None else 0

    def join(self, other: Mapping[str, Any], sign: int = 1) -> None:
        """Add the numbers of another line, or take them away."""
        for name, number in other.items():
            setattr(self, name, getattr(self, name) + sign * number)

    def cells(self, name: str) -> tuple[str, ...]:
        """Return the line as text."""
        cost = f"${self.cost:.4f}" if self.cost or not self.unpriced else "unknown"
        cost += f" + {self.unpriced} unpriced" if self.unpriced and self.cost else ""
        return (name, *(f"{it:,}" for it in (self.samples, self.requests, self.cached, self.prompt_tokens)), cost)


@dataclass(kw_only=True, slots=True)
class Forecast:
    """What the tests of a process would ask for, by metric; ``limits`` are those of a minute, by kind.

    >>> forecast = Forecast()
    >>> [forecast.asked("a1", Usage(calls=1, prompt_tokens=200)).calls for _ in range(2)]
    [1, 0]
    """

    limits: Mapping[str, float] = field(default_factory=dict)
    lines: defaultdict[str, ForecastLine] = field(default_factory=lambda: defaultdict(ForecastLine))
    #: All that was asked of judges, by metrics or not.
    judged: ForecastLine = field(default_factory=ForecastLine)
    _tests: dict[str, int] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def asked(self, key: str | None, usage: Usage) -> Usage:
        """Count a request to a judge and return what it takes: the second time the cache would answer it."""
        with self._turn:
            if key in self._seen:
                usage = Usage(cached_calls=1, saved=usage.cost)
            elif key is not None:
                self._seen.add(key)
            self.judged.add(usage)
        return usage

    def embedded(self, missing: Mapping[str, str], texts: int, usage: Callable[[Sequence[str]], Usage]) -> None:
        """Count a request to an embedder for those of the missing texts, by key, that were not counted before."""
        with self._turn:
            new = [text for key, text in missing.items() if key not in self._seen]
            self._seen.update(missing)
            self.lines[_EMBEDDINGS].add(usage(new), samples=texts)

    def asked_again(self, drawn: Iterable[tuple[Request, Reply]]) -> None:
        """Count requests whose replies are stored, and which would be made again."""
        for request, stored in drawn:
            usage = replace(stored, cached=False).usage(request)
            self.lines[_SENTINELS].add(replace(usage, calls=1), samples=1)

    def scored(self, test: str | None, scoring: Scoring) -> None:
        """Count what a scoring would take, and make its result decide nothing."""
        usage = scoring.usage
        if isinstance(scoring.outcome, MetricResult):
            scoring.outcome.decides = False
        with self._turn:
            self.lines[scoring.metric].add(usage, samples=1)
            if test is not None:
                self._tests[test] = self._tests.get(test, 0) + usage.calls

    def requests_of(self, test: str) -> int | None:
        """Return how many requests a test would make; ``None`` if it scored nothing."""
        return self._tests.get(test)

    def to_row(self) -> dict[str, Any]:
        """Return it as JSON builtins."""
        return {"judged": asdict(self.judged), "lines": {name: asdict(line) for name, line in self.lines.items()}}

    def add(self, row: Mapping[str, Any]) -> None:
        """Take in what :meth:`to_row` of another process made."""
        self.judged.join(row["judged"])
        for name, line in row["lines"].items():
            self.lines[name].join(line)

    def blame_line(self, rows: int) -> str:
        """Return what blame takes at most for so many scores that become worse."""
        judged = [line for line in self.lines.values() if line.requests + line.cached]
        scores = min(rows, sum(line.samples for line in judged))
        each, total = (self.judged.cost / self.judged.requests if self.judged.requests else 0.0), MOST * scores
        cost = f", about ${each * total:.4f}" if each else ""
        return f"--rag-blame: at most {total:,} judgements more{cost}: {MOST} for each of {scores:,} that become worse"

    def summary(self, *, lost: int = 0) -> list[str]:
        """Return the table and what it rests on; ``lost`` workers crashed, and their counts are missing."""
        crashed = [f"{counted(lost, 'worker')} crashed: requests of tests there are not counted"] if lost else []
        if not self.lines:
            return ["dry run: no test scored anything", *crashed]
        rows = [_HEAD, *(self.lines[name].cells(name) for name in sorted(self.lines))]
        total, others = ForecastLine(), replace(self.judged)
        for name, line in self.lines.items():
            total.join(asdict(line))
            if name not in (_EMBEDDINGS, _SENTINELS):
                others.join({**asdict(line), "samples": 0}, -1)
        if others.requests > 0:
            rows.append(others.cells(_OTHERS))
            total.join(asdict(others))
        rows.append(("total", "", *total.cells("")[2:]))
        table = (line.rstrip() for line in text_table(rows))
        return ["dry run:", *table, *self._time(total), *ASSUMPTIONS, *crashed]

    def _time(self, total: ForecastLine) -> list[str]:
        """Return the line on how long the limits make it take, the longest of them."""
        needed = {"requests": total.requests, "tokens": total.tokens}
        minutes, limit, kind = max(
            ((needed[kind] / it, it, kind) for kind, it in self.limits.items()), default=(0, 0, "")
        )
        return (
            [f"about {rough_time(60 * minutes)} at {counted(round(limit), kind.removesuffix('s'))} a minute"]
            if minutes
            else []
        )


A = TypeVar("A")

# No longer list is tried in an answer.
_LONGEST = 200


class DryRun:
    """The transport of a dry run: answers from the cache, else by rule, and counts what would have been asked.

    Judges and embedders that cost nothing are asked all the same.
    """

    def __init__(self, cache: CachedTransport, forecast: Forecast, *, batched: bool = False) -> None:
        self._cache = cache
        self._batched = batched
        self._forecast = forecast
        self._judge = LocalJudge()
        self._embedder = LocalEmbedder()

    async def send(self, request: AnyRequest) -> Reply:
        """Return the reply that is stored, or else one by rule; raise ``UnscoredError`` where there is no rule."""
        if isinstance(request, EmbeddingRequest):
            return Reply(vectors=self._vectors(request))
        if request.provider is not None and not request.provider.is_paid:
            return await self._cache.send(request)
        key, stored = self._cache.find(request)
        if stored is not None:
            self._forecast.asked(None, stored.usage(request))
            if self._cache.witness is not None and key is not None:
                self._cache.witness(key, request, stored)
            return stored
        task: Any = request.asked
        try:
            try:
                # The local judge's own claims are phrases, several times as many as those of a model.
                is_list = isinstance(task, ListClaims)
                answer = sentence_claims(task.text) if is_list else (await self._judge.ask(task)).answer
            except JudgeError:
                answer = _smallest_answer(task)
        except UnscoredError as error:
            error.usage = self._forecast.asked(key, _usage(request, (), batched=self._batched))
            raise
        usage = self._forecast.asked(key, _usage(request, answer, batched=self._batched))
        return Reply(answered=Answered(answer=answer, usage=usage))

    def _vectors(self, request: EmbeddingRequest) -> npt.NDArray[np.float32]:
        import numpy as np

        keyed, found = self._cache.find_vectors(request)
        missing = {key: text for key, text in keyed.items() if key not in found}

        def usage(texts: Sequence[str]) -> Usage:
            if not texts or (request.provider is not None and not request.provider.is_paid):
                return Usage(cached_calls=1)
            tokens = estimated_tokens(*texts)
            cost = price(request.kind, request.model, tokens, 0, url=request.url)
            return Usage(calls=1, prompt_tokens=tokens, cost=cost)

        self._forecast.embedded(missing, len(request.texts), usage)
        if missing or not keyed:
            return self._embedder.embed(request.texts)
        keys = {text: key for key, text in keyed.items()}
        return np.stack([found[keys[text]] for text in request.texts])


def _usage(request: Request, answer: object, *, batched: bool) -> Usage:
    prompt = estimated_tokens(*request.texts, json.dumps(request.schema))
    completion = estimated_tokens(json.dumps(dump(answer), ensure_ascii=False))
    # No answer says yet which tier it had.
    tier = "batch" if batched else priced_tier(request.parameters.get(SERVICE_TIER))
    cost = price(request.kind, request.model, prompt, completion, tier=tier, url=request.url)
    return Usage(calls=1, prompt_tokens=prompt, completion_tokens=completion, cost=cost)


def _smallest_answer(task: Task[A]) -> A:
    """Return the smallest answer that a task takes, with one item in its lists if it may: no item asks for nothing."""
    turns = task.answers if isinstance(task, AnswersTask) else ()
    for length in (*range(1, _LONGEST), 0):
        # The first choice is often yes, which takes evidence, and the last one no, which takes none.
        for choice in (-1, 0):
            with suppress(InvalidAnswer):
                return task.read(_smallest(task.schema(), length, choice, turns))
    msg = f"dry run: nothing stands in for an answer to {task.prompt}, so what follows from it is not counted"
    raise UnscoredError(msg)


def _smallest(schema: Mapping[str, Any], length: int, choice: int, turns: Sequence[int], number: int = 0) -> Any:
    """Return what fits a schema, with lists of one length; ``number`` is that of the item it is part of.

    The items on ``turns`` of a conversation have the numbers of these.
    """
    if "enum" in schema:
        return schema["enum"][choice]
    kind = schema["type"]
    if kind == "object":
        # An item may point to another list by number, which has one item at least.
        numbers = {name: min(number, 1) for name, part in schema["properties"].items() if part.get("type") == "integer"}
        numbers |= {"number": number, "turn": turns[number - 1] if 0 < number <= len(turns) else min(number, 1)}
        return {
            name: _smallest(part, length, choice, turns, numbers.get(name, number))
            for name, part in schema["properties"].items()
        }
    if kind == "array":
        size = 1 - abs(choice) if number else length
        return [_smallest(schema["items"], length, choice, turns, position) for position in range(1, size + 1)]
    return {"string": f"{number}", "integer": number, "boolean": False}[kind]
