"""Drafts of golden rows: a judge writes a question about passages, and what it wrote is checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from pytest_ragmetrics.cli.generate.documents import Source, SourcePassage, named, row_id
from pytest_ragmetrics.core.errors import UnscoredError
from pytest_ragmetrics.judges.suspicion import suspicious_signs
from pytest_ragmetrics.judges.tasks import (
    GoldenQuestion,
    SelectSentences,
    Task,
    VerifyClaims,
    WriteFollowUp,
    WriteGoldenQuestion,
)
from pytest_ragmetrics.metrics.verdicts import missing_from
from pytest_ragmetrics.text.sentences import sentence_table
from pytest_ragmetrics.text.unicode import printable
from pytest_ragmetrics.text.words import telling_words, word_tokens

Row = Mapping[str, Any]
Ask = Callable[[Task[Any]], Awaitable[Any]]

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
    """Passages without a row: the ``reason`` is a short text shared by many, ``detail`` is about these passages."""

    passage: str
    reason: str
    detail: str = ""


class _DraftError(Exception):
    """Why there is no row: the reason and the detail."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Writer:
    """Drafts rows about passages with a judge of a ``name``; ``ask`` returns its answer to a task.

    ``language`` is by default that of the passages; with ``follow_ups`` a row is a conversation of two questions.
    """

    ask: Ask
    name: str
    language: str | None = None
    follow_ups: bool = False

    async def draft(self, source: Source, written: Sequence[str] = ()) -> Row | Skipped:
        """Return a row about passages, or why there is none; ``written`` are the questions about them that there are.

        What ``ask`` raises is raised, except ``UnscoredError``. The answer must follow from the sentences that the
        judge named: a second request shows it only these. Numbers and names of the answer must be in the passages; in
        another language names may be spelled otherwise, so that only numbers count. Neither of two passages may bear
        out the answer alone, and a second question must be unanswerable without the first.
        """
        try:
            _check_passages(source)
            turns = [await self._first(source, written)]
            if self.follow_ups:
                turns.append(await self._second(source, turns[0]))
        except _DraftError as fault:
            return Skipped(named(source), *fault.args)
        except UnscoredError as error:
            return Skipped(named(source), "no usable answer of the judge", str(error))
        return self._row(source, turns)

    async def _first(self, source: Source, written: Sequence[str]) -> GoldenQuestion:
        texts = tuple(passage.text for passage in source)
        task = WriteGoldenQuestion(
            passage=texts[0] if len(texts) == 1 else texts,
            heading=_headings(source),
            language=self.language,
            written=tuple(filter(None, map(printable, written))) or None,
        )
        draft = await self._checked(task)
        if len(source) > 1 and len({sentence_table(texts)[index].context for index in draft.sentences}) == 1:
            raise _DraftError("one of two passages answers it", draft.question)
        await self._follows(draft, task)
        for passage in source if len(source) > 1 else ():
            if (await self._verify(draft.answer, (passage.text,))).ok:
                raise _DraftError("one of two passages answers it", f"{passage.id}: {draft.question}")
        return draft

    async def _second(self, source: Source, first: GoldenQuestion) -> GoldenQuestion:
        ((text, heading),) = ((passage.text, _headings(source)) for passage in source)
        turns = f"user: {first.question}", f"assistant: {first.answer}"
        task = WriteFollowUp(passage=text, heading=heading, language=self.language, earlier=turns)
        draft = await self._checked(task)
        await self._follows(draft, task)
        for earlier, answerable, reason in (
            (turns, True, "the contexts do not answer the second question"),
            (None, False, "the second question stands without the first"),
        ):
            selected = await self.ask(SelectSentences(question=draft.question, contexts=(text,), earlier=earlier))
            if bool(selected) is not answerable:
                raise _DraftError(reason, draft.question)
        return draft

    async def _checked(self, task: WriteGoldenQuestion) -> GoldenQuestion:
        """Return what the judge wrote, whose faults need no further request."""
        written = await self.ask(task)
        if written is None:
            raise _DraftError("nothing worth asking about")
        for sign in (*suspicious_signs(written.question), *suspicious_signs(written.answer)):
            raise _DraftError("suspicious question", sign)
        question, answer = printable(written.question), printable(written.answer)
        if set(word_tokens(answer)) <= set(word_tokens(question)):
            raise _DraftError("the question contains its answer", written.question)
        parts = missing_from(answer, task.passages)
        if missing := [it for it in parts if self.language is None or any(map(str.isdigit, it))]:
            raise _DraftError("the answer has a number or name that the passage lacks", ", ".join(missing))
        return GoldenQuestion(question=question, answer=answer, sentences=written.sentences)

    async def _follows(self, draft: GoldenQuestion, task: WriteGoldenQuestion) -> None:
        judgement = await self._verify(draft.answer, tuple(_support(draft, task.passages)))
        if not judgement.ok:
            raise _DraftError("the answer does not follow from the sentences named for it", judgement.reason)

    async def _verify(self, answer: str, contexts: tuple[str, ...]) -> Any:
        (judgement,) = await self.ask(VerifyClaims(claims=(answer,), contexts=contexts))
        return judgement

    def _row(self, source: Source, turns: Sequence[GoldenQuestion]) -> Row:
        texts = [passage.text for passage in source]
        contexts: Row = {"reference_contexts": texts, "reference_context_ids": [passage.id for passage in source]}
        first, *second = map(_place, source)
        support = dict.fromkeys(text for draft in turns for text in _support(draft, texts))
        metadata = {**first, **({"second": second[0]} if second else {}), "judge": self.name, "support": [*support]}
        asked = [{"user_input": draft.question, "reference": draft.answer, **contexts} for draft in turns]
        if self.follow_ups:
            spoken = [{"role": "user", "content": turn.pop("user_input"), **turn} for turn in asked]
            asked = [{"messages": spoken}]
        return {"id": row_id(*texts), **asked[0], "metadata": metadata}


def _check_passages(source: Source) -> None:
    for passage in source:
        signs = dict.fromkeys((*suspicious_signs(passage.text), *suspicious_signs(passage.heading)))
        if len(passage.text) > _LONGEST_GIVEN:
            raise _DraftError(f"longer than {_LONGEST_GIVEN:,} characters")
        if sum(map(str.isalnum, passage.text)) < _SHORTEST:
            raise _DraftError("too short")
        if signs:
            raise _DraftError("suspicious", ", ".join(signs))


def _headings(source: Source) -> str | None:
    return " | ".join(filter(None, dict.fromkeys(printable(passage.heading) for passage in source))) or None


def _support(draft: GoldenQuestion, texts: Sequence[str]) -> list[str]:
    table = sentence_table(texts)
    return [table[index].text for index in draft.sentences]


def _place(passage: SourcePassage) -> dict[str, Any]:
    places = {name: getattr(passage, name) for name in ("file", "start", "end", "line")}
    places["heading"] = passage.heading or None
    return {name: value for name, value in places.items() if value is not None}
