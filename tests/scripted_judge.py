"""A judge that answers from a script, and what such scripts are made of.

    judge = ScriptedJudge(list_claims=claims("Moths fly."), verify_claims=verdicts([1]))

A task's entry is its answer, or a list of answers used one after the other, the last one for ever. An answer is JSON
data, or a text that is sent as it stands, or an exception that is raised, or a function of the prompt that gives one
of these.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pytest_ragmetrics.judges.judge import PromptedJudge
from pytest_ragmetrics.judges.transports.values import Reply, Request

Answer = Mapping[str, Any] | str | Exception

#: What a script has for a task.
Entry = Answer | list[Answer] | Callable[[str], Answer]

#: How many turns of the loop an answer takes. Three are enough for every metric to ask all that waits for nothing.
TURNS = 20


class ScriptedJudge(PromptedJudge):
    """Answers each task by its script; keeps the requests, and how many had to wait for one another."""

    def __init__(self, **script: Entry) -> None:
        super().__init__(name="scripted", model="scripted")
        self.requests: list[Request] = []
        self.depth = 0
        self._script = script
        self._answered = 0

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks that were asked, in order, repairs included."""
        return [request.task for request in self.requests]

    def prompt(self, task: str) -> str:
        return next(r.messages[1]["content"] for r in reversed(self.requests) if r.task == task)

    async def complete(self, request: Request) -> Reply:
        """Return the next answer to the task, as if it took 10 tokens to ask and 5 to answer."""
        answer = self._answer(request)
        self.requests.append(request)
        # Whatever was answered before this was asked, it may have waited for.
        depth = self._answered + 1
        self.depth = max(self.depth, depth)
        # Whoever does not wait for this asks within these turns, however slow the machine is.
        for _ in range(TURNS):
            await asyncio.sleep(0)
        self._answered = max(self._answered, depth)
        if isinstance(answer, Exception):
            raise answer
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        return Reply(text=text, prompt_tokens=10, completion_tokens=5)

    def _answer(self, request: Request) -> Answer:
        answers = self._script[request.task]
        if callable(answers):
            return answers(request.messages[1]["content"])
        if not isinstance(answers, list):
            return answers
        asked = self.tasks.count(request.task)
        return answers[min(asked, len(answers) - 1)]


class ScriptedEmbedder:
    """Embeds each text as the script says; keeps the texts it was asked for."""

    name = "scripted-vectors"

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self.asked: list[list[str]] = []
        self._vectors = vectors

    def embed(self, texts: list[str]) -> list[Sequence[float]]:
        self.asked.append(texts)
        return [self._vectors[text] for text in texts]


def _listing(key: str) -> Callable[..., dict[str, Any]]:
    return lambda *items: {key: list(items)}


#: Answers that are one list: of claims, entities, or the numbers of sentences.
claims, entities, chosen = _listing("claims"), _listing("entities"), _listing("sentences")


def questions(*texts: str) -> dict[str, Any]:
    return {"questions": [{"phrase": "moths", "question": text} for text in texts]}


def _numbered(key: str, entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Give entries numbers from 1 on, each with a reason of its own."""
    listed = [{"number": n, "reason": f"Reason {n}.", **entry} for n, entry in enumerate(entries, start=1)]
    return {key: listed}


def verdicts(*cited: Sequence[int] | None) -> dict[str, Any]:
    """Answer for each claim with the numbers of the sentences that support it, ``None`` where none does."""
    words = ("unsupported" if sentences is None else "supported" for sentences in cited)
    found = zip(cited, words, strict=True)
    return _numbered("verdicts", ({"sentences": list(sentences or ()), "verdict": word} for sentences, word in found))


def written(*questions: str, evasive: Sequence[int] = ()) -> dict[str, Any]:
    """Answer with these questions, those numbered in ``evasive`` flagged as noncommittal."""
    numbered = enumerate(questions, start=1)
    return {"questions": [{"question": text, "noncommittal": number in evasive} for number, text in numbered]}


def answers(*words: str) -> dict[str, Any]:
    return _numbered("answers", ({"answer": word} for word in words))


def says(word: str, reason: str = "Because.") -> dict[str, Any]:
    return {"reason": reason, "verdict": word}


def rated(step: int, reason: str = "So so.") -> dict[str, Any]:
    return {"reason": reason, "rating": step}


def useful(*cited: Sequence[int]) -> dict[str, Any]:
    """Decide for each context that it is of use by these sentences, or useless if there are none."""
    words = {True: "useful", False: "useless"}
    return _numbered("verdicts", ({"sentences": list(found), "verdict": words[bool(found)]} for found in cited))


def contradicted(*cited: Sequence[int]) -> dict[str, Any]:
    """Decide for each context which of its sentences are contradicted."""
    words = {True: "contradicted", False: "compatible"}
    return _numbered("verdicts", ({"sentences": list(found), "verdict": words[bool(found)]} for found in cited))


def goal(word: str, name: str = "Book a seat.") -> dict[str, Any]:
    return {"goal": name, "reason": "So it is.", "verdict": word}


def topics(**answered: bool) -> dict[str, Any]:
    return {"topics": [{"topic": topic, "answered": flag} for topic, flag in answered.items()]}


def matches(*allowed: int) -> dict[str, Any]:
    """Answer for each topic with the number of an allowed one, 0 for none."""
    return _numbered("matches", ({"allowed": match} for match in allowed))


def told(*facts: tuple[int, str] | tuple[int, str, int]) -> dict[str, Any]:
    """Answer with facts, each its turn, its text and what it replaces, if anything."""
    return {"facts": [{"turn": turn, "fact": text, "replaces": sum(old)} for turn, text, *old in facts]}


def wishes(*listed: tuple[int, str]) -> dict[str, Any]:
    return {"wishes": [{"turn": turn, "wish": text} for turn, text in listed]}


def became(name: str, *decided: tuple[str, Sequence[int]]) -> dict[str, Any]:
    """Answer for each fact or wish with its verdict and the sentences that show it."""
    return _numbered(name, ({"sentences": list(sentences), "verdict": word} for word, sentences in decided))


def asked_turns(prompt: str) -> list[int]:
    """Return the turns of a conversation that a prompt asks about."""
    (listed,) = re.findall(r"of these turns exactly once: ([\d, and]+)\.", prompt)
    return [*map(int, re.findall(r"\d+", listed))]


def taken_up(*words: str, since: int = 1) -> dict[str, Any]:
    """Answer for each turn how it takes up what the user says."""
    entries = enumerate(words, start=since)
    return {"turns": [{"turn": turn, "reason": f"Reason {turn}.", "verdict": word} for turn, word in entries]}


def in_role(*cited: Sequence[int], since: int = 1) -> dict[str, Any]:
    """Answer for each turn that it keeps to the role, unless there are sentences that leave it."""
    words = ("out of role" if sentences else "in role" for sentences in cited)
    listed = taken_up(*words, since=since)["turns"]
    return {"turns": [{**it, "sentences": [*sentences]} for it, sentences in zip(listed, cited, strict=True)]}


def relevant(*words: bool) -> dict[str, Any]:
    return _numbered("verdicts", ({"verdict": "relevant" if word else "irrelevant"} for word in words))
