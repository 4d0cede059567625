"""Answers that repeat the example of their prompt: a model too small to judge gives them, whatever it is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pytest_ragmetrics.judges.rendering import parted
from pytest_ragmetrics.judges.schema import InvalidAnswer, json_objects
from pytest_ragmetrics.text.words import word_tokens

_REPEATED = "the answer repeats the example of the prompt"
_TOO_SMALL = "the model is too small for this task, see ragmetrics probe"
_OPENED = re.compile(r"^<<<(.*) (\d+)$", re.MULTILINE)
_DIGEST = re.compile(r"\d{12}")
# The reason of a supported claim in our prompts: it alone fits any text, so that good models write it too.
_OF_ALL = frozenset(("it says so", "supported"))
# An example that is no JSON, as with <0-4> for a number, shows its texts so.
_SHOWN = re.compile(r'"(\w+)"\s*:\s*"((?:[^"\\\n]|\\.)*)"')
# The last letters and digits of a text, and in how many of its last characters they are.
_END, _TAIL = 4, 16


def own_part(answer: object, schema: Mapping[str, Any], prompt: str, filled: Iterable[str] = ()) -> object:
    """Return what an answer says besides the example of its prompt; raise :class:`InvalidAnswer` if that is nothing.

    The example is every JSON object in the instruction, also in a prompt of a user's own, but not in what the author of
    a test ``filled`` in. An answer or an entry of a list repeats it if all its free texts are in it, and none is in the
    texts under test. An answer without a free text repeats nothing: ``{"sentences": []}`` is the right answer for most
    texts. Pieces of an example pass ("Lund" of "port of Lund"): they are names that a text may well have.

    >>> from pytest_ragmetrics.judges.rendering import PromptBook, render
    >>> from pytest_ragmetrics.judges.tasks import ListClaims
    >>> task = ListClaims(text="Moths fly.")
    >>> own_part({"claims": ["Ada Brandt was from Oslo.", "Moths fly."]}, task.form, render(task, PromptBook())[1])
    {'claims': ['Moths fly.']}
    """
    texts, instruction = parted(prompt)
    for text in filled:
        # Any other value stands in the sentences around the example.
        instruction = instruction.replace(text, " ") if "{" in text else instruction
    names = _free_fields(json.dumps(schema))
    written = tuple(_texts(answer, names))
    if not written or not isinstance(answer, dict):
        return answer
    digests = {*_DIGEST.findall("\n".join(written))}
    opened = _OPENED.findall(texts) if digests else ()
    if any(digest in digests and f"\n{digest} {label}>>>" in texts for label, digest in opened):
        raise InvalidAnswer("the answer repeats a delimiter of the texts")
    example = _examples(instruction, names)
    if example.ends.isdisjoint(map(_end, written)):
        # Nearly always, and all else takes longer.
        return answer
    forms = [field.get("items") for field in schema.get("properties", {}).values() if isinstance(field, Mapping)]
    is_numbered = any("number" in form.get("properties", ()) for form in forms if isinstance(form, Mapping))
    if _repeats(answer, names, example, texts) or (is_numbered and _begins(written, example, texts)):
        raise InvalidAnswer(_REPEATED, advice=_TOO_SMALL)
    if is_numbered:
        # No verdict on a numbered item may be left out.
        return answer
    return {
        name: [each for each in part if not _repeats({name: each}, names, example, texts)]
        if isinstance(part, list)
        else part
        for name, part in answer.items()
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Examples:
    """The free texts of each example in an instruction, all of them, and how they end."""

    texts: tuple[tuple[str, ...], ...]
    known: frozenset[str]
    ends: frozenset[str]


@lru_cache(maxsize=64)
def _examples(instruction: str, names: frozenset[str]) -> _Examples:
    found = [tuple(_texts(value, names)) for value in json_objects(instruction).values()]
    shown = [text for name, text in _SHOWN.findall(instruction) if name in names and text.strip()]
    folded = tuple(tuple(map(_folded, texts)) for texts in found if texts)
    known = frozenset().union(*folded, map(_folded, shown))
    return _Examples(texts=folded, known=known, ends=frozenset(map(_end, known)))


def _repeats(part: object, names: frozenset[str], example: _Examples, texts: str) -> bool:
    written = _texts(part, names)
    is_known = bool(written) and example.known.issuperset(map(_folded, written))
    return is_known and not _OF_ALL.issuperset(map(_folded, _texts(part, None))) and _is_foreign(written, texts)


def _is_foreign(written: Iterable[str], texts: str) -> bool:
    """Tell whether no text stands in the texts under test, in which words may have no spaces around them."""
    return not any(_folded(text) in _folded_whole(texts) for text in written)


def _begins(written: tuple[str, ...], example: _Examples, texts: str) -> bool:
    folded = tuple(map(_folded, written))
    begun = [each for each in example.texts if folded[: len(each)] == each and not _OF_ALL.issuperset(each)]
    return any(_is_foreign(each, texts) for each in begun)


@lru_cache(maxsize=128)
def _free_fields(schema: str) -> frozenset[str]:
    """Return the names of the fields with texts that are not enumerated."""
    return _named_texts(json.loads(schema))


def _named_texts(schema: object, name: str = "") -> frozenset[str]:
    if not isinstance(schema, Mapping):
        return frozenset()
    fields = schema.get("properties", {})
    below = [_named_texts(schema.get("items"), name), *(_named_texts(form, field) for field, form in fields.items())]
    is_free = schema.get("type") == "string" and "enum" not in schema
    return frozenset([name] if is_free else []).union(*below)


def _texts(value: object, names: frozenset[str] | None, name: str = "") -> list[str]:
    """Return the texts in fields of these names, or in all."""
    found: list[str] = []
    listed = value if isinstance(value, list) else [value]
    parts: Iterable[tuple[str, object]] = value.items() if isinstance(value, dict) else ((name, it) for it in listed)
    for field, part in parts:
        if isinstance(part, str):
            if (names is None or field in names) and part.strip():
                found.append(part)
        elif isinstance(part, (dict, list)):
            found += _texts(part, names, field)
    return found


def _end(text: str) -> str:
    return "".join(filter(str.isalnum, text[-_TAIL:].casefold()))[-_END:]


def _folded(text: str) -> str:
    return " ".join(word_tokens(text)) or text.strip()


# For each entry of an answer the texts are the same.
_folded_whole = lru_cache(maxsize=4)(_folded)
