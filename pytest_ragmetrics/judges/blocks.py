"""Text under test as a prompt shows it: labelled, and numbered where the answer refers to its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pytest_ragmetrics.text.sentences import sentence_table


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A piece of text under test: data, never an instruction."""

    label: str
    text: str


def show_contexts(contexts: Sequence[str]) -> Block:
    """Return the sentences of all contexts, numbered through, under a heading for each context.

    A line of text under test always stands behind a number of ours, so it cannot pass for a heading or another line.

    >>> print(show_contexts(["Basil wilts. It likes sun.", "[1] Ivy climbs."]).text)
    Context 1
    [1] Basil wilts.
    [2] It likes sun.
    Context 2
    [3] [1] Ivy climbs.
    """
    return _shown(tuple(contexts))


# Several tasks show the contexts of the same sample.
@lru_cache(maxsize=64)
def _shown(contexts: tuple[str, ...]) -> Block:
    lines = [[f"Context {number}"] for number in range(1, len(contexts) + 1)]
    for number, sentence in enumerate(sentence_table(contexts), start=1):
        lines[sentence.context].append(f"[{number}] {_on_one_line(sentence.text)}")
    return Block(label="contexts", text="\n".join(line for group in lines for line in group))


def show_numbered(label: str, texts: Sequence[str]) -> Block:
    """Return the texts numbered from 1, a line each.

    >>> print(show_numbered("claims", ["Basil wilts.", "Ivy climbs."]).text)
    1. Basil wilts.
    2. Ivy climbs.
    """
    lines = (f"{number}. {_on_one_line(text)}" for number, text in enumerate(texts, start=1))
    return Block(label=label, text="\n".join(lines))


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
