"""Replies that repeat: a judge that gives different rows the same text tells nothing apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import blake2b

from pytest_ragmetrics.core.codec import encodable
from pytest_ragmetrics.core.credentials import masked
from pytest_ragmetrics.judges.context import Scoring
from pytest_ragmetrics.judges.schema import InvalidAnswer, extract_object, listed
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.runs.wording.figures import named, readable

#: How many rows must have got the same text, how many characters of it are shown, and how many further tasks.
_FEWEST, _LENGTH, _LISTED = 5, 60, 3
# Making all of a long text printable takes longer than all else here.
_BEGINNING = 4 * _LENGTH
_DIGEST = 8


#: Judge and task, digests of the prompt and of the reply, and the text to show of the reply.
RowReply = tuple[str, str, str, str, str]


def replies_of(scoring: Scoring, redact: Callable[[str], str] | None = None) -> Iterator[RowReply]:
    """Yield what a judge was asked for a scoring and replied, as a report carries it: texts are exact and redacted.

    There is no text to show of a reply without free text, such as ``{"sentences": []}``: honest judges repeat those.
    """
    for exchange in scoring.exchanges:
        reply, text = exchange.reply or "", ""
        try:
            _, answer = extract_object(reply)
            is_free = any(text.strip() and text not in _words(exchange.task) for text in _texts(answer))
        except InvalidAnswer:
            is_free = bool(reply.strip())
        if is_free:
            plain = encodable(reply)
            text = readable(masked(plain if redact is None else encodable(redact(plain)))[:_BEGINNING], _LENGTH)
        prompt, plain = (
            blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()
            for text in (exchange.prompt, "".join(reply.split()))  # white space is no difference
        )
        yield encodable(exchange.judge or ""), encodable(exchange.task), prompt, plain, text


def _texts(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, (list, dict)):
            waiting += part.values() if isinstance(part, dict) else part


@cache
def _words(task: str) -> frozenset[str]:
    """Return the words of a list in the answers to a task, which may be one of the user's own."""
    kinds: list[type] = [Task]
    for kind in kinds:
        kinds += kind.__subclasses__()
    forms = [getattr(kind, "form", None) for kind in kinds if getattr(kind, "prompt", None) == task]
    return frozenset(word for form in forms for word in _enumerated(form))


def _enumerated(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from (word for word in schema.get("enum", ()) if isinstance(word, str))
        for part in schema.values():
            yield from _enumerated(part)


class RepeatedReplies:
    """Tells in how many rows, told apart by their prompts, the same text was the reply to one task of one judge."""

    def __init__(self) -> None:
        # Digests of prompts, by judge and task, and by judge, task and reply.
        self._prompts: dict[tuple[str, str], set[str]] = {}
        self._replied: dict[tuple[str, str, str], set[str]] = {}
        self._texts: dict[str, str] = {}

    def add(self, replies: Iterable[RowReply]) -> None:
        """Add replies; the same prompt asked again is the same row."""
        for judge, task, prompt, reply, text in replies:
            self._prompts.setdefault((judge, task), set()).add(prompt)
            if text:
                self._replied.setdefault((judge, task, reply), set()).add(prompt)
                self._texts[reply] = text

    def warnings(self) -> tuple[str, ...]:
        """Return one line if five rows or more, and half of those that a task was asked of, got the same text."""
        found = []
        for (judge, task, reply), prompts in self._replied.items():
            rows, total = len(prompts), len(self._prompts[judge, task])
            if rows >= _FEWEST and 2 * rows >= total:
                found.append((-rows, f"{rows:,} of {total:,}", named(task), named(judge), self._texts[reply]))
        if not found:
            return ()
        (_, share, task, judge, text), *others = sorted(found)
        more = listed([f"{n} to {of}{'' if by == judge else f' of {by}'}" for _, n, of, by, _ in others], _LISTED)
        likewise = f" (likewise {more})" if others else ""
        what = f"{share} answers to {task} of {judge} are the same text{likewise}: '{text}'"
        return (f"{what}; where these rows differ, it tells nothing apart (try ragmetrics probe)",)
