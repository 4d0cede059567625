"""What making a golden set says at its end."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pytest_ragmetrics.cache.entry import CacheUnavailableError
from pytest_ragmetrics.engine import Engine
from pytest_ragmetrics.errors import (
    BudgetExceededError,
    JudgeError,
    JudgeNotConfiguredError,
    RagMetricsError,
    UnscoredError,
)
from pytest_ragmetrics.explain.phrases import counted
from pytest_ragmetrics.generate.documents import SourcePassage
from pytest_ragmetrics.generate.drafting import AskedQuestions, GoldenDraft, Skipped, drafted
from pytest_ragmetrics.generate.golden_file import GoldenFile
from pytest_ragmetrics.judges.judge import Judge, JudgeUnavailableError, Transport
from pytest_ragmetrics.judges.local import LocalJudge
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.progress import Progress
from pytest_ragmetrics.result import Usage
from pytest_ragmetrics.text.characters import printable, shortened

A = TypeVar("A")

_SHOWN = 300
# How many passages in a row a judge may fail at, if no more are asked about at a time.
_PATIENCE = 8
# After these no further request can succeed.
_FINAL = (JudgeNotConfiguredError, BudgetExceededError, CacheUnavailableError, JudgeUnavailableError)


@dataclass(kw_only=True, slots=True)
class GoldenTally:
    """What came of a golden set so far; ``stopped`` says why no more was asked, where it was not done."""

    new: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    stopped: RagMetricsError | None = None


def writer(engine: Engine, spec: str) -> Judge:
    """Return the judge of a spec; raise ``JudgeNotConfiguredError`` for none, ``JudgeError`` for the local one.

    What a test run can do without a model, to replay or to compare words, writes no questions.
    """
    try:
        judge = engine.judge()
    except JudgeNotConfiguredError:
        if spec != "auto":
            raise
        msg = "no model is configured to write questions: set OPENAI_API_KEY, OPENAI_BASE_URL or ANTHROPIC_API_KEY"
        raise JudgeNotConfiguredError(msg) from None
    if isinstance(judge, LocalJudge):
        msg = f"{judge.name} compares words and writes no questions: name a model, such as --judge=openai:MODEL"
        raise JudgeError(msg)
    return judge


def spread(documents: Iterable[Sequence[SourcePassage]], *, seed: int) -> Iterator[SourcePassage | Skipped]:
    """Yield all passages in the order to ask about them: one of each document in turn, chosen by ``seed``.

    What a document gains or loses does not change the order of the rest. A text that occurs again is skipped.
    """

    def rank(passage: SourcePassage) -> bytes:
        return hashlib.sha256(f"{seed}\0{passage.id}\0{passage.text}".encode()).digest()

    first: dict[str, str] = {}
    queues = [sorted(passages, key=rank) for passages in documents if passages]
    queues.sort(key=lambda queue: rank(queue[0]))
    for turn in range(max(map(len, queues), default=0)):
        for queue in queues:
            if turn >= len(queue):
                continue
            passage = queue[turn]
            known = first.setdefault(passage.row_id, passage.id)
            if known == passage.id:
                yield passage
            else:
                yield Skipped(passage=passage.id, reason="the same text as another", detail=known)


class GoldenSet:
    """Makes the rows of a golden set that are not there yet, several at a time.

    No more passages are asked about than rows are missing, so that nothing is paid for that is not needed. What fails
    for one passage skips it; after what would fail for all of them nothing more is asked. A terminal shows how far it
    is.
    """

    def __init__(
        self,
        file: GoldenFile,
        judge: Judge,
        desk: Transport,
        *,
        questions: int,
        width: int,
        language: str | None = None,
    ) -> None:
        self.tally = GoldenTally()
        self._file = file
        self._judge = judge
        self._desk = desk
        self._wanted = questions
        self._width = width
        self._language = language
        self._asked = AskedQuestions(row["user_input"] for row in file.rows if isinstance(row.get("user_input"), str))
        self._failures = 0
        self._progress = Progress("rows", questions, done=len(file.rows))

    async def fill(self, passages: Iterable[SourcePassage | Skipped]) -> None:
        """Ask about passages until there are enough rows, no passages, or a reason to stop."""
        waiting = self._to_do(passages)
        under_way: set[asyncio.Task[None]] = set()
        try:
            while True:
                self._start(waiting, under_way)
                if not under_way:
                    return
                ready, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.gather(*ready)
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
            self._progress.finish()

    def _to_do(self, passages: Iterable[SourcePassage | Skipped]) -> Iterator[SourcePassage | Skipped]:
        """Yield the passages without a row; those whose row somebody deleted are skipped."""
        there = self._file.row_ids
        deleted = self._file.ledger.ids - there
        for passage in passages:
            if isinstance(passage, Skipped):
                yield passage
            elif passage.row_id in deleted:
                detail = f"{self._file.ledger.name} remembers it"
                yield Skipped(passage=passage.id, reason="deleted from the file before", detail=detail)
            elif passage.row_id not in there:
                yield passage

    def _start(self, waiting: Iterator[SourcePassage | Skipped], under_way: set[asyncio.Task[None]]) -> None:
        """Start on as many passages as there are rows missing and places free."""
        while self.tally.stopped is None and len(under_way) < min(self._width, self._wanted - len(self._file.rows)):
            passage = next(waiting, None)
            if passage is None:
                return
            if isinstance(passage, Skipped):
                self._skip(passage)
            else:
                under_way.add(asyncio.ensure_future(self._take(passage)))

    async def _take(self, passage: SourcePassage) -> None:
        try:
            made = await drafted(passage, self._ask, language=self._language)
        except _FINAL as error:
            self.tally.stopped = self.tally.stopped or error
            return
        except JudgeError as error:
            self._failed(passage, error)
            return
        skipped = self._kept(made) if isinstance(made, GoldenDraft) else made
        if skipped is not None:
            self._skip(skipped)

    def _skip(self, skipped: Skipped) -> None:
        self.tally.skipped.append(skipped)
        self._advance(0)

    def _advance(self, rows: int) -> None:
        skipped = len(self.tally.skipped)
        self._progress.advance(rows, note=f", {counted(skipped, 'passage')} skipped" if skipped else "")

    def _kept(self, draft: GoldenDraft) -> Skipped | None:
        """Write a row, unless one asks the same."""
        same = self._asked.same(draft.question)
        if same is not None:
            detail = shortened(printable(same), _SHOWN)
            return Skipped(passage=draft.passage.id, reason="the same question as another", detail=detail)
        try:
            self._file.append(draft.row(self._judge.name))
        except OSError as error:
            self.tally.stopped = self.tally.stopped or RagMetricsError(f"no row can be written: {error}")
            return None
        self._asked.add(draft.question)
        self.tally.new += 1
        self._advance(1)
        return None

    def _failed(self, passage: SourcePassage, error: JudgeError) -> None:
        """Pass over what the judge refused, and give up on one that answers nothing."""
        detail = shortened(printable(str(error)), _SHOWN)
        self._skip(Skipped(passage=passage.id, reason="the judge failed", detail=detail))
        self._failures += 1
        if self._failures >= max(self._width, _PATIENCE):
            self.tally.stopped = self.tally.stopped or error

    async def _ask(self, task: Task[A]) -> A:
        try:
            answered = await self._judge.ask(task, desk=self._desk)
        except UnscoredError as error:
            self.tally.usage += error.usage or Usage()
            raise
        self._failures = 0
        self.tally.usage += answered.usage
        return answered.answer


_NAMED = 5


def summary(tally: GoldenTally, *, file: Path, rows: int, wanted: int, passed_over: Sequence[str]) -> list[str]:
    """Return the lines: rows, what was left out and why, and what it cost."""
    lines = [f"{file}: {counted(rows, 'row')}, {tally.new} of them new"]
    if tally.stopped is not None:
        lines.append(f"stopped: {_stop(tally.stopped)}; the rows so far are kept, and the same command goes on")
    elif rows < wanted:
        lines.append(f"{wanted} were asked for, and every passage was tried: give more documents")
    if tally.new:
        lines.append("written by a model: read every row before you rely on it")
    return [*lines, *_skipped(tally.skipped), *_passed_over(passed_over), *_bill(tally.usage)]


def _stop(error: Exception) -> str:
    # The budget is that of a test run, where its option has another name.
    return printable(str(error)).replace("--rag-max-calls", "--max-calls").partition(": nothing more is asked")[0]


def _skipped(skipped: Sequence[Skipped]) -> list[str]:
    if not skipped:
        return []
    reasons = Counter(skip.reason for skip in skipped)
    told = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    lines = [f"skipped {counted(len(skipped), 'passage')}: {told}"]
    for skip in skipped[:_NAMED]:
        detail = f": {skip.detail}" if skip.detail else ""
        lines.append(f"  {printable(skip.passage)}: {skip.reason}{printable(detail)}")
    if len(skipped) > _NAMED:
        lines.append(f"  and {len(skipped) - _NAMED} more")
    return lines


def _passed_over(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(printable(name) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return [f"no text, passed over: {shown}{more}"]


def _bill(usage: Usage) -> list[str]:
    if not usage.calls + usage.cached_calls:
        return []
    tokens = usage.prompt_tokens + usage.completion_tokens
    made = f"{usage.calls} made ({tokens} tokens, {_money(usage.cost)})"
    return [f"judge calls: {made}, {usage.cached_calls} saved by the cache ({_money(usage.saved)})"]


def _money(amount: float | None) -> str:
    return "price unknown" if amount is None else f"${amount:.4f}"
