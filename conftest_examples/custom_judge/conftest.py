"""A judge of one's own: a function from prompt to answer, and the hook that makes it known under a name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

RESPONSE = re.compile(r"<<<response (?P<mark>\w+)\n(?P<text>.*?)\n(?P=mark) response>>>", re.DOTALL)
PROMISE = re.compile(r"\b(?:will|shall) refund\b|\bmoney back\b", re.IGNORECASE)


def house_judge(prompt: str) -> str:
    """Return the answer to a prompt: one JSON object of the form that the end of the prompt asks for.

    Your model is called here. This stand-in needs none: it knows a single question, whether a response promises
    money, and decides it by two phrases.
    """
    found = RESPONSE.search(prompt)
    promise = PROMISE.search(found["text"]) if found else None
    if promise is None:
        return json.dumps({"reason": "It promises no money.", "verdict": "no"})
    return json.dumps({"reason": f"It says {promise.group()!r}.", "verdict": "yes"})


def pytest_ragmetrics_make_judge(spec: str) -> Callable[[str], str] | None:
    """Return the judge that ``rag_judge = house`` asks for; every other spec is left to the plugin."""
    return house_judge if spec == "house" else None


@pytest.fixture(scope="session")
def replies() -> dict[str, str]:
    """Return what the assistant of a hotel answered; in your own suite, your application is asked here."""
    return {
        "The shower was cold.": "We are sorry. The caretaker is on his way, and reception has a warm one to lend you.",
        "The lift was out of order.": "We apologise for the stairs. The lift has been running again since noon.",
        "The room was loud.": "How unpleasant! Of course we will refund the night in full.",
    }
