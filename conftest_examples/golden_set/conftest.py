"""The application under test: a small search over passages, and an assistant that quotes the best sentence."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics import Sample

HERE = Path(__file__).parent
Respond = Callable[[Sample], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A piece of the knowledge base."""

    id: str
    text: str


class Index:
    """Ranks texts by the words they share with a question, rare words first (BM25)."""

    def __init__(self, texts: Sequence[str], *, saturation: float = 1.2, length: float = 0.75) -> None:
        self._counts = [Counter(words(text)) for text in texts]
        mean = sum(counts.total() for counts in self._counts) / len(texts)
        self._norms = [saturation * (1 - length + length * counts.total() / mean) for counts in self._counts]
        self._saturation = saturation
        holding = Counter(word for counts in self._counts for word in counts)
        self._weights = {word: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for word, n in holding.items()}

    def ranked(self, question: str) -> list[int]:
        """Return the numbers of the texts that share a word with the question, best first."""
        wanted = dict.fromkeys(words(question))
        scores = [self._score(number, wanted) for number in range(len(self._counts))]
        return sorted((number for number, score in enumerate(scores) if score), key=lambda number: -scores[number])

    def _score(self, number: int, wanted: dict[str, None]) -> float:
        counts = self._counts[number]
        return sum(
            self._weights[word] * counts[word] * (1 + self._saturation) / (counts[word] + self._norms[number])
            for word in wanted
            if word in counts
        )


class Assistant:
    """Answers with the sentence of the best passage that fits best; yours asks a model."""

    def __init__(self, passages: Sequence[Passage], *, top: int = 3) -> None:
        self._passages = passages
        self._index = Index([passage.text for passage in passages])
        self._top = top

    def answer(self, question: str) -> dict[str, Any]:
        """Return the response with the passages behind it and their ids, best first."""
        found = [self._passages[number] for number in self._index.ranked(question)[: self._top]]
        if not found:
            return {"response": "I do not know.", "retrieved_contexts": [], "retrieved_context_ids": []}
        sentences = re.split(r"(?<=[.!?])\s+", found[0].text)
        best = next(iter(Index(sentences).ranked(question)), 0)
        return {
            "response": f"“{sentences[best]}”",
            "retrieved_contexts": [passage.text for passage in found],
            "retrieved_context_ids": [passage.id for passage in found],
        }


def words(text: str) -> list[str]:
    """Return the words of a text without their case."""
    return re.findall(r"\w+", text.casefold())


@pytest.fixture(scope="session")
def assistant() -> Assistant:
    """Return the assistant; in your own suite, return your application."""
    lines = (HERE / "passages.jsonl").read_text(encoding="utf-8").splitlines()
    return Assistant([Passage(**json.loads(line)) for line in lines])


@pytest.fixture(scope="session")
def rag_respond(assistant: Assistant) -> Respond:
    """Answer the rows that have no response; it may be ``async def``, and is called for many rows at a time."""

    def respond(sample: Sample) -> dict[str, Any]:
        return assistant.answer(sample.user_input or "")

    return respond
