"""Drafts of a golden set: a judge writes a question about a passage, and the draft is checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from pytest_ragmetrics.errors import UnscoredError
from pytest_ragmetrics.generate.documents import SourcePassage, row_id
from pytest_ragmetrics.judges.suspicion import suspicious_signs
from pytest_ragmetrics.judges.tasks import GoldenQuestion, Task, VerifyClaims, WriteGoldenQuestion
from pytest_ragmetrics.metrics.verdicts import missing_from
from pytest_ragmetrics.text.characters import printable
from pytest_ragmetrics.text.sentences import sentence_table
from pytest_ragmetrics.text.words import telling_words, word_tokens

#: A row of a data set.
Row = Mapping[str, Any]

# Percent of similarity from which two questions are the same, and two words spellings of one.
_ALIKE = 80
# Letters and digits that a passage needs to be asked about.
_SHORTEST = 20
# The longest passage that is asked about (characters); only given passages can be longer.
_LONGEST_GIVEN = 8000


def same_question(question: str, others: Iterable[str]) -> str | None:
    """Return the first of the others that asks the same in nearly the same words, ``None`` if there is none.

    Questions that begin with another word (when, where) or differ in a name or a number are different ones.

    >>> others = ["How deep is the lake Aru?", "When was it dug in 1887?"]
    >>> same_question("How deep is lake Aru?", others), same_question("How deep is the lake Oro?", others)
    ('How deep is the lake Aru?', None)
    """
    return next((other for other in others if _is_same(question, other)), None)


def _is_same(one: str, other: str) -> bool:
    from rapidfuzz import fuzz

    def has_spellings(words: frozenset[str], others: frozenset[str]) -> bool:
        return all(any(fuzz.ratio(word, other) >= _ALIKE for other in others) for word in words)

    (words, keys, numbers), (other_words, other_keys, other_numbers) = _read(one), _read(other)
    if words[:1] != other_words[:1] or numbers != other_numbers:
        return False
    mine, theirs = keys - other_keys, other_keys - keys
    alike = has_spellings(mine, theirs) and has_spellings(theirs, mine)
    return words == other_words or (alike and fuzz.ratio(" ".join(words), " ".join(other_words)) >= _ALIKE)


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
    fault = _unfit(passage)
    if fault is not None:
        return Skipped(passage.id, *fault)
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
    places = {"file": passage.file, "start": passage.start, "end": passage.end, "line": passage.line}
    heading = {"heading": passage.heading} if passage.heading else {}
    return {
        "id": row_id(passage.text),
        "user_input": question,
        "reference": answer,
        "reference_contexts": [passage.text],
        "reference_context_ids": [passage.id],
        "metadata": {
            **{name: value for name, value in places.items() if value is not None},
            **heading,
            "judge": judge,
            "support": support,
        },
    }


def _unfit(passage: SourcePassage) -> tuple[str, str] | None:
    """Return why a passage is not asked about: reason and detail."""
    if len(passage.text) > _LONGEST_GIVEN:
        return f"longer than {_LONGEST_GIVEN:,} characters", ""
    if sum(map(str.isalnum, passage.text)) < _SHORTEST:
        return "too short", ""
    signs = dict.fromkeys((*suspicious_signs(passage.text), *suspicious_signs(passage.heading)))
    return ("suspicious", ", ".join(signs)) if signs else None


def _fault(passage: SourcePassage, written: GoldenQuestion, language: str | None) -> tuple[str, str] | None:
    """Return reason and detail of a fault that is found without a judge."""
    signs = [sign for text in (written.question, written.answer) for sign in suspicious_signs(text)]
    if signs:
        return "suspicious question", signs[0]
    answer = printable(written.answer)
    if set(word_tokens(answer)) <= set(word_tokens(printable(written.question))):
        return "the question contains its answer", written.question
    facts = missing_from(answer, [passage.text])
    missing = [fact for fact in facts if language is None or any(map(str.isdigit, fact))]
    return ("the answer has a number or name that the passage lacks", ", ".join(missing)) if missing else None
