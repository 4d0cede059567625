"""A golden set: a judge writes a question about a passage, the draft is checked, and rows are kept in a file."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pytest_ragmetrics.cache.entry import CacheUnavailableError
from pytest_ragmetrics.cli.generate.documents import SourcePassage, row_id
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
from pytest_ragmetrics.judges.suspicion import suspicious_signs
from pytest_ragmetrics.judges.tasks import GoldenQuestion, Task, VerifyClaims, WriteGoldenQuestion
from pytest_ragmetrics.judges.transports.values import JudgeUnavailableError, Transport
from pytest_ragmetrics.metrics.verdicts import missing_from
from pytest_ragmetrics.runs.wording.figures import and_more, counted, readable, usage_text
from pytest_ragmetrics.text.sentences import sentence_table
from pytest_ragmetrics.text.unicode import printable
from pytest_ragmetrics.text.words import telling_words, word_tokens

Row = Mapping[str, Any]

# Percent of similarity from which two questions are the same, and two words spellings of one.
_ALIKE = 80
# Passages with fewer letters and digits are skipped.
_SHORTEST = 20
# Passages with more characters are skipped; only given passages can be longer.
_LONGEST_GIVEN = 8000


def same_question(question: str, others: Iterable[str]) -> str | None:
    """Return the first of the others that asks the same in nearly the same words, ``None`` if there is none.

    Questions that begin with another word (when, where) or differ in a name or a number are different ones.

    >>> others = ["How deep is the lake Aru?", "When was it dug in 1887?"]
    >>> same_question("How deep is lake Aru?", others), same_question("How deep is the lake Oro?", others)
    ('How deep is the lake Aru?', None)
    """
    from rapidfuzz import fuzz

    def has_spellings(words: frozenset[str], others: frozenset[str]) -> bool:
        return all(any(fuzz.ratio(word, other) >= _ALIKE for other in others) for word in words)

    def is_same(other: str) -> bool:
        other_words, other_keys, other_numbers = _read(other)
        if words[:1] != other_words[:1] or numbers != other_numbers:
            return False
        mine, theirs = keys - other_keys, other_keys - keys
        alike = has_spellings(mine, theirs) and has_spellings(theirs, mine)
        return words == other_words or (alike and fuzz.ratio(" ".join(words), " ".join(other_words)) >= _ALIKE)

    words, keys, numbers = _read(question)
    return next(filter(is_same, others), None)


@cache  # each question is compared with every later one
def _read(question: str) -> tuple[tuple[str, ...], frozenset[str], frozenset[str]]:
    """Return the words of a question, the keys of its telling words, and those of numbers among them."""
    keys = frozenset(word.key for word in telling_words(question))
    return tuple(word_tokens(question)), keys, frozenset(key for key in keys if any(map(str.isdigit, key)))


class Skipped(NamedTuple):
    """A passage without a row: the ``reason`` is a short text shared by many, ``detail`` is about this passage."""

    passage: str
    reason: str
    detail: str = ""


async def drafted(
    passage: SourcePassage, ask: Callable[[Task[Any]], Awaitable[Any]], *, judge: str, language: str | None = None
) -> Row | Skipped:
    """Return a row with a question about a passage, or why there is none.

    ``ask`` returns the answer of the judge of that name to a task; what it raises is raised, except ``UnscoredError``.
    The answer must follow from the sentences that the judge named: a second request shows it only these. Numbers and
    names of the answer must be in the passage; in another ``language`` names may be spelled otherwise, so that only
    numbers count.
    """
    signs = dict.fromkeys((*suspicious_signs(passage.text), *suspicious_signs(passage.heading)))
    if len(passage.text) > _LONGEST_GIVEN:
        return Skipped(passage.id, f"longer than {_LONGEST_GIVEN:,} characters")
    if sum(map(str.isalnum, passage.text)) < _SHORTEST:
        return Skipped(passage.id, "too short")
    if signs:
        return Skipped(passage.id, "suspicious", ", ".join(signs))
    try:
        task = WriteGoldenQuestion(passage=passage.text, heading=printable(passage.heading) or None, language=language)
        written = await ask(task)
        if written is None:
            return Skipped(passage.id, "nothing worth asking about")
        question, answer = printable(written.question), printable(written.answer)
        table = sentence_table((passage.text,))
        support = [table[index].text for index in written.sentences]
        fault = _fault(passage, written, language)
        if fault is None:
            (judgement,) = await ask(VerifyClaims(claims=(answer,), contexts=tuple(support)))
            if not judgement.ok:
                fault = "the answer does not follow from the sentences named for it", judgement.reason
    except UnscoredError as error:
        fault = "no usable answer of the judge", str(error)
    if fault is not None:
        return Skipped(passage.id, *fault)
    places = {name: getattr(passage, name) for name in ("file", "start", "end", "line")}
    places = {
        name: value for name, value in (places | {"heading": passage.heading or None}).items() if value is not None
    }
    return {
        "id": row_id(passage.text),
        "user_input": question,
        "reference": answer,
        "reference_contexts": [passage.text],
        "reference_context_ids": [passage.id],
        "metadata": {**places, "judge": judge, "support": support},
    }


def _fault(passage: SourcePassage, written: GoldenQuestion, language: str | None) -> tuple[str, str] | None:
    for sign in (*suspicious_signs(written.question), *suspicious_signs(written.answer)):
        return "suspicious question", sign
    answer = printable(written.answer)
    if set(word_tokens(answer)) <= set(word_tokens(printable(written.question))):
        return "the question contains its answer", written.question
    missing = [it for it in missing_from(answer, [passage.text]) if language is None or any(map(str.isdigit, it))]
    return ("the answer has a number or name that the passage lacks", ", ".join(missing)) if missing else None


# Rows without a place are sorted behind all others.
_LAST = "\U0010ffff"
# How many skipped passages and other files the summary names.
_NAMED = 5
# This number of failed passages in a row ends the run, or the number under way if that is larger.
_MOST_FAILURES = 8
# No request can succeed after these errors.
_FINAL = (JudgeNotConfiguredError, BudgetExceededError, CacheUnavailableError, JudgeUnavailableError)


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
        self.rows: list[Row] = [json.loads(line) for line in lines]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._write(lines)
        except OSError as error:
            raise ArgumentError(f"{self._path} cannot be written: {error.strerror}: {error.filename!r}") from error

    @property
    def passages(self) -> set[str]:
        """The ids of the rows, and of the passages of edited rows."""
        ids = {row["id"] for row in self.rows if isinstance(row.get("id"), str)}
        contexts = (row.get("reference_contexts") for row in self.rows)
        texts = (context[0] for context in contexts if isinstance(context, list) and len(context) == 1)
        return ids | {row_id(text) for text in texts if isinstance(text, str)}

    def append(self, row: Row) -> None:
        """Write a row at the end of the file; raises ``OSError``, and the file is as before then."""
        append_line(self._path, json.dumps(row, ensure_ascii=False, allow_nan=False))
        self.rows.append(row)

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
    metadata = row.get("metadata")
    return (
        all(isinstance(row.get(name), str) for name in ("id", "user_input", "reference"))
        and isinstance(metadata, dict)
        and {"file", "judge", "support"} <= set(metadata)
    )


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


def spread(documents: Iterable[Sequence[SourcePassage]], *, seed: int) -> Iterator[SourcePassage | Skipped]:
    """Yield all passages in the order to ask about them: one of each document in turn, chosen by ``seed``.

    Passages added to a document or removed from it do not change the order of the others. A repeated text is skipped.
    """

    def rank(passage: SourcePassage) -> bytes:
        return hashlib.sha256(f"{seed}\0{passage.id}\0{passage.text}".encode()).digest()

    first: dict[str, str] = {}
    queues = [sorted(passages, key=rank) for passages in documents if passages]
    queues.sort(key=lambda queue: rank(queue[0]))
    for turn in range(max(map(len, queues), default=0)):
        for passage in (queue[turn] for queue in queues if turn < len(queue)):
            known = first.setdefault(passage.text, passage.id)
            if known == passage.id:
                yield passage
            else:
                yield Skipped(passage.id, "the same text as another", known)


@dataclass(kw_only=True)
class GoldenSet:
    """Makes the missing rows of a golden set, ``width`` at a time, with a line of progress in a terminal.

    No more passages are under way than rows are missing, so that no unneeded row is paid for. A failure of one passage
    skips it; a failure that all passages have in common ends the run, and is the reason why it ``stopped``.
    """

    file: GoldenFile
    judge: Judge
    transport: Transport
    questions: int
    width: int
    language: str | None = None

    def __post_init__(self) -> None:
        self.usage = Usage()
        self.stopped: RagMetricsError | None = None
        self._questions = [row["user_input"] for row in self.file.rows if isinstance(row.get("user_input"), str)]
        self._old = len(self.file.rows)
        self._skipped: list[Skipped] = []
        self._failures = 0
        self._progress = Progress("rows", self.questions, done=self._old)

    async def fill(self, passages: Iterable[SourcePassage | Skipped]) -> None:
        """Ask about passages until there are enough rows, no passages, or a reason to stop."""
        known = self.file.passages
        waiting = (each for each in passages if isinstance(each, Skipped) or row_id(each.text) not in known)
        workers = min(self.width, self.questions - self._old)

        async def work() -> None:
            nonlocal workers
            while self.stopped is None and workers <= self.questions - len(self.file.rows):
                if (passage := next(waiting, None)) is None:
                    break
                if isinstance(passage, Skipped):
                    self._skip(passage)
                else:
                    await self._make(passage)
            workers -= 1

        try:
            await loop.gather_or_cancel([work() for _ in range(workers)])
        finally:
            self._progress.finish()

    async def _make(self, passage: SourcePassage) -> None:
        try:
            made = await drafted(passage, self._ask, judge=self.judge.name, language=self.language)
            if isinstance(made, Skipped):
                self._skip(made)
            elif (same := same_question(made["user_input"], self._questions)) is not None:
                self._skip(Skipped(passage.id, "the same question as another", same))
            else:
                self._keep(made)
        except _FINAL as error:
            self.stopped = self.stopped or error
        except JudgeError as error:
            self._skip(Skipped(passage.id, "the judge failed", str(error)))
            self._failures += 1
            if self._failures >= max(self.width, _MOST_FAILURES):
                self.stopped = self.stopped or error

    def _keep(self, row: Row) -> None:
        try:
            self.file.append(row)
        except OSError as error:
            self.stopped = self.stopped or RagMetricsError(f"no row can be written: {error}")
        else:
            self._questions.append(row["user_input"])
            self._advance(1)

    def _skip(self, passage: Skipped) -> None:
        self._skipped.append(passage)
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
            lines.append(f"{self.questions} were asked for, and every passage was tried: give more documents")
        if rows > self._old:
            lines.append("written by a model: read every row before you rely on it")
        if skipped:
            reasons = Counter(skip.reason for skip in skipped)
            counts = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
            lines.append(f"skipped {counted(len(skipped), 'passage')}: {counts}")
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
