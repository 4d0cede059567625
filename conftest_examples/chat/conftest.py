"""The application under test, the chat of a cargo bike hire, and a scripted judge, so that the example needs no key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from pytest_ragmetrics import Sample

Message = Mapping[str, Any]

PRICES = "A cargo bike costs 9 euros for four hours and 25 euros for a whole day."
BATTERY = "A full battery lasts 60 kilometres. Charging takes four hours at any household socket."


class Chat:
    """Repeats recorded answers; yours retrieves passages and asks a model."""

    def __init__(self, answers: Mapping[str, Message]) -> None:
        self._answers = answers

    def reply(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the next message of a conversation, with the passages behind it as its ``contexts``."""
        return {"role": "assistant", **self._answers[messages[-1]["content"]]}


@pytest.fixture(scope="session")
def chat() -> Chat:
    """Return the chat under test; in your own suite, your application stands here."""
    return Chat(
        {
            "I need a bike for 45 kilometres. What is it a day?": {
                "content": "A cargo bike costs 25 euros for a whole day.",
                "contexts": [PRICES],
            },
            "Does the battery last?": {
                "content": "Yes, a full battery lasts 60 kilometres. You need a bike for 45 kilometres.",
                "contexts": [BATTERY],
            },
            "And the price once more?": {"content": "A cargo bike costs 25 euros for a whole day."},
            "Thanks, bye!": {"content": "Have a good ride!"},
        }
    )


@pytest.fixture(scope="session")
def rag_respond(chat: Chat) -> Callable[[Sample], dict[str, Any]]:
    """Answer the turns of rows that have questions alone, in order; each has the answers before it in its messages."""

    def respond(sample: Sample) -> dict[str, Any]:
        answer = chat.reply(sample.metadata["messages"])
        return {"response": answer["content"], "contexts": answer.get("contexts")}

    return respond


BLOCK = re.compile(r"<<<(?P<name>.+?) (?P<mark>\w+)\n(?P<text>.*?)\n(?P=mark) (?P=name)>>>", re.DOTALL)
LINE = re.compile(r"^(\d+)\.? (.*)$", re.MULTILINE)
POLITE = {"Have a good ride!", "You are welcome!", "Gern geschehen!", "Of course!", "Done!"}


def scripted(prompt: str) -> str:
    """Return the reply to a prompt, as a model would: claims are sentences, and words tell what supports them.

    Of what users say it knows one fact, and the answer that contradicts it.
    """
    blocks = {found["name"]: found["text"] for found in BLOCK.finditer(prompt)}
    if "claims" in blocks:
        sentences, claims = LINE.findall(blocks["contexts"]), LINE.findall(blocks["claims"])
        return json.dumps({"verdicts": [verdict(int(number), claim, sentences) for number, claim in claims]})
    if "text" in blocks:
        claims = re.findall(r"\S[^.!?]*[.!?]”?", blocks["text"])
        return json.dumps({"claims": [claim for claim in claims if claim not in POLITE]})
    if "facts" not in blocks:
        told = [{"turn": 1, "fact": "The user has no children.", "replaces": 0}] if "no children" in prompt else []
        return json.dumps({"facts": told})
    wrong = [int(n) for n, sentence in LINE.findall(blocks["conversation"]) if "your two children" in sentence]
    kept = {"reason": "The user has no children.", "sentences": wrong, "verdict": "contradicted" if wrong else "kept"}
    return json.dumps({"facts": [{"number": 1, **kept}]})


def verdict(number: int, claim: str, sentences: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return whether a sentence has most words of a claim and all of its figures."""
    words = set(re.findall(r"\w+", claim.casefold()))
    for n, sentence in sentences:
        missing = words - set(re.findall(r"\w+", sentence.casefold()))
        if len(missing) <= len(words) / 3 and not any(map(str.isdigit, missing)):
            return {"number": number, "reason": "It says so.", "sentences": [int(n)], "verdict": "supported"}
    return {"number": number, "reason": "No sentence says so.", "sentences": [], "verdict": "unsupported"}


def pytest_ragmetrics_make_judge(spec: str) -> Callable[[str], str] | None:
    """Return the judge that ``rag_judge = scripted`` asks for; in your own suite, ``rag_judge = openai:MODEL``."""
    return scripted if spec == "scripted" else None
