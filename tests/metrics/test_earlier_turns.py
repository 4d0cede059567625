"""What metrics of a turn are shown of its conversation: earlier turns and contexts, the question, and nothing later."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pytest_ragmetrics import evaluate
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.metrics import Correctness, Hallucination, ResponseGroundedness
from tests.scripted_judge import Entry, ScriptedJudge, contradicted, rated

_BLOCK = re.compile(r"<<<(.+?) ([0-9a-f]{12})\n(.*?)\n\2 \1>>>", re.DOTALL)
_SENTENCE = re.compile(r"[^.!?。]+[.!?。]")
OWN, OLD, TOLD, SAID = (
    "Die KX-13 braucht drei Minuten.",
    "弁をゆっくり開く。",
    "Ich habe zwei Pumpen.",
    "KX-12: ninety minutes.",
)
THANKS = "Gern geschehen!"
NOTHING: tuple[list[str] | None, ...] = (None, [])


def asked(question: str) -> dict[str, Any]:
    return {"role": "user", "content": question}


def said(answer: str, contexts: Sequence[str] | None = None, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": answer, **({} if contexts is None else {"contexts": contexts}), **fields}


def blocks_of(prompt: str) -> Mapping[str, str]:
    return {label: text for label, _, text in _BLOCK.findall(prompt)}


class Rater:
    """Rates by the share of the response's sentences that a context is, 0, 1 or 2; thanks are rated 2 after turns."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, ...]] = []

    def __call__(self, prompt: str) -> str:
        blocks = blocks_of(prompt)
        contexts = re.findall(r"^\d+ (.*)$", blocks["contexts"], re.MULTILINE)
        self.shown.append(tuple(contexts))
        sentences = [text.strip() for text in _SENTENCE.findall(blocks["response"]) if text.strip() != THANKS]
        found = sum(sentence in contexts for sentence in sentences)
        if "says nothing else is rated 2" not in prompt:
            sentences = sentences or [THANKS]
        rating = 2 if found == len(sentences) else min(found, 1)
        return json.dumps({"reason": "Looked up.", "rating": rating})


def in_turns(metric: Any, *messages: Any, **row: Any) -> list[MetricResult]:
    table = evaluate([{"id": "pump", "messages": [*messages], **row}], [metric], turns="each", progress=False)
    assert not [said for scored in table.rows for said in scored.unscored.values()]
    return [scored.results[metric.name] for scored in table.rows]


@pytest.mark.parametrize(
    ("answer", "own", "parameters", "value", "rounds"),
    [
        (OWN, [OWN], {}, 1.0, [[OWN]]),
        (f"{OWN} {OLD}", [OWN], {}, 1.0, [[OWN], [OWN, OLD, TOLD, "Und nun?"]]),
        (f"{OWN} {OLD}", [OWN], {"history": "none"}, 0.5, [[OWN]]),
        (f"{OWN} {TOLD}", [OWN], {}, 1.0, [[OWN], [OWN, OLD, TOLD, "Und nun?"]]),
        (f"{OWN} {SAID}", [OWN], {}, 0.5, [[OWN], [OWN, OLD, TOLD, "Und nun?"]]),
        (SAID, [OWN, OLD], {}, 0.0, [[OWN, OLD]]),
        (THANKS, [OWN], {}, 1.0, [[OWN]]),
        *((answer, none, {}, value, [[OLD, TOLD, "Und nun?"]])
          for none in NOTHING for answer, value in ((OLD, 1.0), (SAID, 0.0), (f"{OLD} {SAID}", 0.5), (THANKS, 1.0))),
        (SAID, None, {"history": "none"}, 1.0, []),
        (SAID, [], {"history": "none"}, 1.0, []),
    ],
)  # fmt: skip
def test_a_rating_looks_back_once(
    answer: str, own: list[str] | None, parameters: dict[str, Any], value: float, rounds: list[list[str]]
) -> None:
    """Two requests, two more by earlier contexts where its own bear out less than all, none where there are none."""
    judge = Rater()
    talk = [asked(TOLD), said(f"{OLD} {SAID}", [OLD]), asked("Und nun?"), said(answer, own)]
    first, result = in_turns(ResponseGroundedness(judge=judge, **parameters), *talk)
    assert first.value == 0.5
    assert [[*shown] for shown in judge.shown[2:]] == [shown for shown in rounds for _ in "ab"]
    assert (result.value, result.vacuous) == (value, not rounds)
    looked_back = len(rounds) == 2 if own else bool(rounds)
    assert ("by contexts of earlier turns too" in str(result.reason)) is (looked_back and (value == 1.0 or not own))


def test_the_better_rating_counts() -> None:
    """Also where more contexts make it worse; what both cost is counted."""
    worse: Entry = [rated(2), rated(1), rated(0)]
    judge = ScriptedJudge(rate_groundedness=worse, review_groundedness=worse)
    result = in_turns(
        ResponseGroundedness(judge=judge), asked("A?"), said("A.", ["A."]), asked("B?"), said("B.", ["C."])
    )[1]
    assert (result.value, result.reason, result.usage.calls) == (0.5, "rated 0.50 and 0.50", 4)


@pytest.mark.parametrize("first", NOTHING)
def test_no_contexts_so_far_is_nothing_to_compare_with(first: list[str] | None) -> None:
    """What the user says alone is no context; contexts of a later turn are no evidence."""
    judge = Rater()
    talk = [
        asked("Hallo."),
        said("Hallo.", first),
        asked(TOLD),
        said(TOLD, first),
        asked("?"),
        said(f"{OWN} {TOLD}", [OWN]),
    ]
    results = in_turns(ResponseGroundedness(judge=judge), *talk)
    assert [(result.value, result.vacuous) for result in results] == [(1.0, True), (1.0, True), (0.5, False)]
    assert judge.shown == [(OWN,)] * 2


#: Metrics that show no question unless there are turns before it, with an answer of their judge.
AFTER: dict[type[Any], dict[str, Any]] = {
    Hallucination: {"find_contradictions": contradicted([])},
    ResponseGroundedness: {"rate_groundedness": rated(2), "review_groundedness": rated(2)},
    Correctness: {"rate_correctness": rated(4)},
}
ROW: dict[str, Any] = {"response": "Die zweite.", "retrieved_contexts": [OWN], "reference": "KX-13."}
EARLIER = "1. user: Welche Pumpen gibt es?\n2. assistant: KX-12 und KX-13."


@pytest.mark.parametrize("kind", AFTER, ids=lambda kind: kind.name)
def test_the_second_one_is_read_after_the_turns_before_it(kind: type[Any]) -> None:
    judge, alone = ScriptedJudge(**AFTER[kind]), ScriptedJudge(**AFTER[kind])
    before = [asked("Welche Pumpen gibt es?"), said("KX-12 und KX-13.")]
    kind(judge=judge).score(messages=before, user_input="Welche ist schneller?", **ROW)
    for task in AFTER[kind]:
        blocks = blocks_of(judge.prompt(task))
        assert (blocks["conversation before the question"], blocks["question"]) == (EARLIER, "Welche ist schneller?")
        assert "The question is the next turn of the conversation before it" in judge.prompt(task)
        kind(judge=alone).score(user_input="Welche ist schneller?", **ROW)
        assert blocks_of(alone.prompt(task)).keys() == blocks.keys() - {"conversation before the question", "question"}
        assert "next turn" not in alone.prompt(task)
        assert "rated 2" not in alone.prompt(task)
