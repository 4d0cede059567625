"""Answers that repeat the example of their prompt: a model too small to judge gives them, whatever it is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pytest_ragmetrics.judges.rendering import parted
from pytest_ragmetrics.judges.schema import InvalidAnswer, json_objects

_REPEATED = "the answer repeats the example of the prompt"
_TOO_SMALL = "the model is too small for this task, see ragmetrics probe"
_OPENED = re.compile(r"^<<<.* (\d+)$", re.MULTILINE)
_DIGEST = re.compile(r"\d{12}")
# The one reason in our prompts that fits any text, so that good models write it too.
_OF_ALL = "it says so"
_WORD = re.compile(r"\w+")
_STOPS = " \n\t.,;!?…。\"'"


def own_part(answer: object, schema: Mapping[str, Any], prompt: str) -> object:
    """Return what an answer says besides the example of its prompt; raise :class:`InvalidAnswer` if that is nothing.

    The example is every JSON object in the instruction, also in a prompt of a user's own. An answer or an entry of a
    list repeats it if all its free texts are in it, and none is in the texts under test; where a judge lists texts, a
    piece of the instruction is no better (SmolLM2 makes "Lund" of the example's "port of Lund"), but a reason may quote
    it. An answer without a free text repeats nothing: ``{"sentences": []}`` is the right answer for most texts.

    >>> from pytest_ragmetrics.judges.rendering import PromptBook, render
    >>> from pytest_ragmetrics.judges.tasks import ListClaims
    >>> task = ListClaims(text="Moths fly.")
    >>> own_part({"claims": ["Ada Brandt was from Oslo.", "Moths fly."]}, task.form, render(task, PromptBook())[1])
    {'claims': ['Moths fly.']}
    """
    texts, instruction = parted(prompt)
    names = _free_fields(schema)
    said = tuple(_free_texts(answer, names))
    digests = {digest for text in said for digest in _DIGEST.findall(text)}
    if digests and not digests.isdisjoint(_OPENED.findall(texts)):
        raise InvalidAnswer("the answer repeats a delimiter of the texts")
    example = _examples(instruction, names)
    is_list = "reason" not in names
    if not is_list and example.ends.isdisjoint(map(_end, said)):
        # Nearly always, and all else takes longer.
        return answer

    def repeats(part: object) -> bool:
        folded = [_folded(text) for text in _free_texts(part, names)]
        is_known = all(text in example.known or (is_list and f" {text} " in example.around) for text in folded)
        return bool(folded) and is_known and is_foreign(folded)

    def is_foreign(folded: Sequence[str]) -> bool:
        words = f" {_folded(texts)} "
        return {*folded} != {_OF_ALL} and not any(f" {text} " in words for text in folded)

    # Of the verdicts on numbered items none may be left out.
    begin = [(tuple(map(_folded, said[: len(each)])), each) for each in example.texts if _is_numbered(schema)]
    if repeats(answer) or any(folded == each and is_foreign(folded) for folded, each in begin):
        raise InvalidAnswer(_REPEATED, advice=_TOO_SMALL)
    if not isinstance(answer, dict) or _is_numbered(schema):
        return answer
    return {
        name: [item for item in value if not repeats({name: item})] if isinstance(value, list) else value
        for name, value in answer.items()
    }


def _is_numbered(schema: Mapping[str, Any]) -> bool:
    lists = [field["items"] for field in schema["properties"].values() if "items" in field]
    return any("number" in items.get("properties", ()) for items in lists)


def _free_fields(schema: Mapping[str, Any], name: str = "") -> frozenset[str]:
    """Return the names of the fields with texts that are not enumerated."""
    if "items" in schema:
        return _free_fields(schema["items"], name)
    if "properties" in schema:
        return frozenset().union(*(_free_fields(field, name) for name, field in schema["properties"].items()))
    return frozenset([name] if schema["type"] == "string" and "enum" not in schema else [])


def _free_texts(value: object, names: frozenset[str], name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for field, part in value.items():
            yield from _free_texts(part, names, field)
    elif isinstance(value, list):
        for part in value:
            yield from _free_texts(part, names, name)
    elif isinstance(value, str) and name in names and value.strip():
        yield value


@dataclass(frozen=True, kw_only=True, slots=True)
class _Examples:
    """The free texts of each example in an instruction, all of them, how they end, and the instruction around them."""

    texts: tuple[tuple[str, ...], ...]
    known: frozenset[str]
    ends: frozenset[str]
    around: str


@lru_cache(maxsize=64)
def _examples(instruction: str, names: frozenset[str]) -> _Examples:
    found = [tuple(_free_texts(value, names)) for value in json_objects(instruction).values()]
    folded = tuple(tuple(map(_folded, texts)) for texts in found if texts)
    ends = frozenset(_end(text) for texts in found for text in texts)
    return _Examples(texts=folded, known=frozenset().union(*folded), ends=ends, around=f" {_folded(instruction)} ")


def _end(text: str) -> str:
    return text.rstrip(_STOPS)[-4:].casefold()


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold())) or text.strip()
