"""A golden set: the file of its rows, and the rounds in which passages are asked about."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

from pytest_ragmetrics.cache.entry import CacheUnavailableError
from pytest_ragmetrics.cli.generate.documents import Source, SourcePassage, named, pairs, row_id
from pytest_ragmetrics.cli.generate.drafts import Row, Skipped, Writer, same_question
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import (
    ArgumentError,
    BudgetExceededError,
    JudgeError,
    JudgeNotConfiguredError,
    RagMetricsError,
    UnscoredError,
)
from pytest_ragmetrics.core.files import append_line, mended_lines, write_atomically
from pytest_ragmetrics.core.progress import Progress
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.evaluation.engine import Engine
from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.judges.local import LocalJudge
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.judges.transports.values import JudgeUnavailableError, Transport
from pytest_ragmetrics.runs.wording.figures import and_more, counted, readable, usage_text
from pytest_ragmetrics.text.unicode import printable
from pytest_ragmetrics.text.words import word_tokens

# Rows without a place are sorted behind all others.
_LAST = "\U0010ffff"
# How many skipped passages and other files the summary names.
_NAMED = 5
# This number of failed passages in a row ends the run, or the number under way if that is larger.
_MOST_FAILURES = 8
# No request can succeed after these errors.
_FINAL = (JudgeNotConfiguredError, BudgetExceededError, CacheUnavailableError, JudgeUnavailableError)
# The id of a row says which passages it is about, and which of their rows it is.
_ID = re.compile(r"(golden-[0-9a-f]{12})(?:-\d+)?")


class GoldenFile:
    """The JSON lines of a golden set: rows that are there are kept, new ones are appended as they are made.

    A row that a killed run wrote in part is left out. Raises :class:`ArgumentError` for a file that cannot be written,
    and for one without any row of ``ragmetrics generate``, which stays as it is.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()  # a link is followed, not replaced
        if self._path.exists() and not (self._path.is_file() and os.access(self._path, os.W_OK)):
            raise ArgumentError(f"{self._path} is no file that may be written: name another")
        lines = self._read()
        self.rows: list[Row] = []
        self._ids: set[str] = set()
        self._about: dict[str, list[Row]] = {}
        for line in lines:
            self._take(json.loads(line))
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._write(lines)
        except OSError as error:
            raise ArgumentError(f"{self._path} cannot be written: {error.strerror}: {error.filename!r}") from error

    def about(self, source: Source) -> list[Row]:
        """Return the rows about passages, in the order in which they were made; edited rows are among them."""
        return self._about.get(row_id(*(passage.text for passage in source)), [])

    def append(self, row: Row) -> None:
        """Write a row at the end of the file; raises ``OSError``, and the file is as before then.

        Its id gets a number where another row has it.
        """
        ids = chain([row["id"]], (f"{row['id']}-{number}" for number in count(2)))
        row = {**row, "id": next(each for each in ids if each not in self._ids)}
        append_line(self._path, json.dumps(row, ensure_ascii=False, allow_nan=False))
        self._take(row)

    def _take(self, row: Row) -> None:
        self.rows.append(row)
        about = set[str]()
        if isinstance(given := row.get("id"), str):
            self._ids.add(given)
            about |= {found[1]} if (found := _ID.fullmatch(given)) else set()
        contexts = first_turn(row).get("reference_contexts")
        if isinstance(contexts, list) and contexts and all(isinstance(text, str) for text in contexts):
            about.add(row_id(*contexts))
        for each in about:
            self._about.setdefault(each, []).append(row)

    def close(self) -> None:
        """Sort the rows by file and place; remove the file if there are none."""

        def place(row: Row) -> tuple[str, int]:
            metadata = row["metadata"] if _is_ours(row) else {}
            offset = next((metadata[name] for name in ("start", "line") if type(metadata.get(name)) is int), 0)
            return str(metadata.get("file", _LAST)), offset

        # A full disk leaves the rows in the order in which they were made, and the next run sorts them. A file that was
        # replaced meanwhile stays as it is.
        with contextlib.suppress(OSError, ArgumentError):
            if self.rows:
                # Another process may have added rows: they are read again.
                lines = {line: json.loads(line) for line in self._read()}
                self._write(sorted(lines, key=lambda line: place(lines[line])))
            else:
                self._path.unlink(missing_ok=True)

    def _read(self) -> list[str]:
        if not self._path.exists():
            return []
        try:
            text = mended_lines(self._path.read_bytes(), b'{"id": ').decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ArgumentError(f"{self._path} cannot be read, so it is left as it is: {error}") from error
        rows = []
        for number, line in enumerate(text.split("\n"), start=1):
            row = None
            with contextlib.suppress(ValueError, RecursionError):
                row = json.loads(line)
            if isinstance(row, dict):
                rows.append((line.strip("\r"), row))
            elif line.strip():
                wrong = "is no row of a golden set, so the file is left as it is: name another file"
                raise ArgumentError(f"{self._path}:{number}: {wrong}")
        if rows and not any(_is_ours(row) for _, row in rows):
            wrong = "contains no row that `ragmetrics generate` wrote, so it is left as it is: name another file"
            raise ArgumentError(f"{self._path} {wrong}")
        return [line for line, _ in rows]

    def _write(self, lines: Iterable[str]) -> None:
        write_atomically(self._path, "".join(f"{line}\n" for line in lines))


def _is_ours(row: Row) -> bool:
    metadata, first = row.get("metadata"), first_turn(row)
    return (
        all(isinstance(value, str) for value in (row.get("id"), question_of(row), first.get("reference")))
        and isinstance(metadata, dict)
        and {"file", "judge", "support"} <= set(metadata)
    )


def turns_of(row: Row) -> list[Row]:
    """Return what has the reference and its contexts: the messages of a conversation, or else the row itself."""
    messages = row.get("messages")
    messages = [it for it in messages if isinstance(it, dict)] if isinstance(messages, list) else []
    return messages or [row]


def first_turn(row: Row) -> Row:
    """Return the first message of a conversation, or else the row itself."""
    return turns_of(row)[0]


def question_of(row: Row) -> Any:
    """Return the question of a row, of a conversation the first."""
    first = first_turn(row)
    return first.get("user_input", first.get("content"))


def support_of(row: Row) -> list[str]:
    """Return the sentences that state the answer of a row, none if its metadata does not have them."""
    metadata = row.get("metadata")
    support = metadata.get("support") if isinstance(metadata, dict) else None
    return [it for it in support if isinstance(it, str) and it.strip()] if isinstance(support, list) else []


def _asked(row: Row) -> str:
    """Return the question of a row, of a conversation what the user says in it."""
    contents = [
        turn.get("user_input", turn.get("content")) for turn in turns_of(row) if turn.get("role") != "assistant"
    ]
    return " ".join(text for text in contents if isinstance(text, str))


def _facts(row: Row) -> Iterator[tuple[str, ...]]:
    """Yield what two rows share that ask, in other words, for the same answer from the same sentence."""
    for answer in (turn.get("reference") for turn in turns_of(row)):
        if isinstance(answer, str):
            yield from ((text, *word_tokens(answer)) for text in support_of(row))


def writer(engine: Engine, spec: str) -> Judge:
    """Return the judge of a spec; raise ``JudgeNotConfiguredError`` if there is none, ``JudgeError`` for ``local``."""
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


def spread(documents: Sequence[Sequence[SourcePassage]], *, seed: int, hops: int = 1) -> Iterator[Source | Skipped]:
    """Yield all passages, or pairs for two ``hops``, in the order to ask about them.

    It is one of each document in turn, chosen by ``seed``. Passages added to a document or removed from it do not
    change the order of the others. A repeated text is skipped.
    """

    def rank(source: Source) -> bytes:
        texts = "\0".join(f"{passage.id}\0{passage.text}" for passage in source)
        return hashlib.sha256(f"{seed}\0{texts}".encode()).digest()

    first: dict[tuple[str, ...], Source] = {}
    singles: list[list[Source]] = [[(passage,) for passage in passages] for passages in documents]
    sources = singles if hops == 1 else pairs(documents)
    queues = [sorted(queue, key=rank) for queue in sources if queue]
    queues.sort(key=lambda queue: rank(queue[0]))
    for turn in range(max(map(len, queues), default=0)):
        for source in (queue[turn] for queue in queues if turn < len(queue)):
            known = first.setdefault(tuple(passage.text for passage in source), source)
            yield source if known == source else Skipped(named(source), "the same text as another", named(known))


@dataclass(kw_only=True)
class GoldenSet:
    """Makes the missing rows of a golden set, ``width`` at a time, with a line of progress in a terminal.

    All passages are asked about once before any of them is asked about again, at most ``per_passage`` times. No more
    passages are under way than rows are missing, so that no unneeded row is paid for. A failure of one passage skips
    it; a failure that all passages have in common ends the run, and is the reason why it ``stopped``.
    """

    file: GoldenFile
    judge: Judge
    transport: Transport
    questions: int
    width: int
    language: str | None = None
    per_passage: int = 1
    follow_ups: bool = False

    def __post_init__(self) -> None:
        self.usage = Usage()
        self.stopped: RagMetricsError | None = None
        self._questions = [asked for row in self.file.rows if isinstance(asked := question_of(row), str)]
        self._facts = {fact: question_of(row) for row in self.file.rows for fact in _facts(row)}
        self._old = len(self.file.rows)
        # Those of passages that have no row, and those of passages that have some and give no other.
        self._skipped: list[Skipped] = []
        self._exhausted: list[Skipped] = []
        self._is_capped = False
        self._failures = 0
        self._progress = Progress("rows", self.questions, done=self._old)
        self._writer = Writer(ask=self._ask, name=self.judge.name, language=self.language, follow_ups=self.follow_ups)

    async def fill(self, sources: Iterable[Source | Skipped]) -> None:
        """Ask about passages until there are enough rows, no passages, or a reason to stop."""
        try:
            for number in range(self.per_passage):
                sources = await self._round(iter(sources), number)
                if self.stopped is not None:
                    break
            self._is_capped = bool(sources)
        finally:
            self._progress.finish()

    async def _round(self, sources: Iterator[Source | Skipped], rows: int) -> list[Source]:
        """Ask about the passages that have so many rows; return those that may give another, in their order."""
        waiting, again = enumerate(sources), dict[int, Source]()
        workers = min(self.width, self.questions - len(self.file.rows))

        async def work() -> None:
            nonlocal workers
            while self.stopped is None and workers <= self.questions - len(self.file.rows):
                place, source = next(waiting, (0, None))
                if source is None:
                    break
                if isinstance(source, Skipped):
                    self._skip(source)
                elif len(self.file.about(source)) > rows or await self._make(source):
                    again[place] = source
            workers -= 1

        await loop.gather_or_cancel([work() for _ in range(workers)])
        return [again[place] for place in sorted(again)]

    async def _make(self, source: Source) -> bool:
        """Add a row about passages; return whether there is one now."""
        about = self.file.about(source)
        try:
            made = await self._writer.draft(source, [_asked(row) for row in about])
            if not isinstance(made, Skipped):
                made = self._new(made, source)
            if not isinstance(made, Skipped):
                return self._keep(made)
            self._skip(made, again=bool(about))
        except _FINAL as error:
            self.stopped = self.stopped or error
        except JudgeError as error:
            self._skip(Skipped(named(source), "the judge failed", str(error)), again=bool(about))
            self._failures += 1
            if self._failures >= max(self.width, _MOST_FAILURES):
                self.stopped = self.stopped or error
        return False

    def _new(self, row: Row, source: Source) -> Row | Skipped:
        """Return a row, or that there is one like it."""
        if (same := same_question(question_of(row), self._questions)) is not None:
            return Skipped(named(source), "the same question as another", same)
        if doubles := [self._facts[fact] for fact in _facts(row) if fact in self._facts]:
            return Skipped(named(source), "the same answer from the same sentence as another", str(doubles[0]))
        return row

    def _keep(self, row: Row) -> bool:
        try:
            self.file.append(row)
        except OSError as error:
            self.stopped = self.stopped or RagMetricsError(f"no row can be written: {error}")
        else:
            self._questions.append(question_of(row))
            self._facts |= dict.fromkeys(_facts(row), question_of(row))
            self._advance(1)
        return self.stopped is None

    def _skip(self, passage: Skipped, *, again: bool = False) -> None:
        (self._exhausted if again else self._skipped).append(passage)
        self._advance(0)

    def _advance(self, rows: int) -> None:
        skipped = len(self._skipped)
        self._progress.advance(rows, note=f", {counted(skipped, 'passage')} skipped" if skipped else "")

    async def _ask(self, task: Task[Any]) -> Any:
        try:
            answered = await self.judge.ask(task, transport=self.transport)
        except UnscoredError as error:
            self.usage += error.usage or Usage()
            raise
        self._failures = 0
        self.usage += answered.usage
        return answered.answer

    def summary(self, file: Path, passed_over: Sequence[str]) -> list[str]:
        """Return the lines that end the command: rows, skipped passages with the reasons, usage of the judge."""
        rows, skipped = len(self.file.rows), self._skipped
        lines = [f"{file}: {counted(rows, 'row')}, {rows - self._old} of them new"]
        if self.stopped is not None:
            # The message names the option of pytest; this command has another.
            reason = printable(str(self.stopped)).replace("--rag-max-calls", "--max-calls")
            reason = reason.partition(": nothing more is asked")[0]
            lines.append(f"stopped: {reason}; the rows so far are kept, and the same command goes on")
        elif rows < self.questions:
            more = " or a larger --per-passage" if self._is_capped else ""
            lines.append(f"{self.questions} were asked for, and every passage was tried: give more documents{more}")
        if rows > self._old:
            lines.append("written by a model: read every row before you rely on it")
        if self._exhausted:
            lines.append(
                f"no further question on {counted(len(self._exhausted), 'passage')}: {_reasons(self._exhausted)}"
            )
        if skipped:
            lines.append(f"skipped {counted(len(skipped), 'passage')}: {_reasons(skipped)}")
            for skip in skipped[:_NAMED]:
                detail = f": {readable(skip.detail)}" if skip.detail else ""
                lines.append(f"  {printable(skip.passage)}: {skip.reason}{detail}")
            lines += and_more(len(skipped), shown=_NAMED)
        if passed_over:
            names = ", ".join(printable(name) for name in passed_over[:_NAMED])
            more = f" and {len(passed_over) - _NAMED} more" if len(passed_over) > _NAMED else ""
            lines.append(f"no text, passed over: {names}{more}")
        if self.usage.calls + self.usage.cached_calls:
            lines.append(f"judge: {usage_text(self.usage)}")
        return lines


def _reasons(skipped: Iterable[Skipped]) -> str:
    reasons = Counter(skip.reason for skip in skipped)
    return "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
