"""What metrics of a turn are shown of its conversation: earlier turns and contexts, the question, and nothing later."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_ragmetrics import Sample, evaluate, metrics
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.metrics import (
    CitationPrecision,
    CitationRecall,
    CitationValidity,
    Correctness,
    Hallucination,
    NumbersAligned,
    ResponseGroundedness,
)
from pytest_ragmetrics.metrics.conversations import Numbering
from tests.fake_answers import answer_sensibly
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


def sensibly(prompt: str) -> str:
    return answer_sensibly({"messages": [{"role": "user", "content": prompt}]})


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
    first, last = Sample(metadata={"messages": talk}).turns()
    metric = ResponseGroundedness(judge=judge, **parameters)
    assert metric.score_sample(first).value == 0.5
    result = metric.score_sample(last)
    assert [[*shown] for shown in judge.shown[2:]] == [shown for shown in rounds for _ in "ab"]
    assert (result.value, result.vacuous) == (value, not rounds)
    looked_back = len(rounds) == 2 if own else bool(rounds)
    assert ("by contexts of earlier turns too" in str(result.reason)) is (looked_back and (value == 1.0 or not own))


def test_the_better_rating_counts() -> None:
    """Also where more contexts make it worse; what both cost is counted."""
    worse: Entry = [rated(2), rated(1), rated(0)]
    judge = ScriptedJudge(rate_groundedness=worse, review_groundedness=worse)
    talk = [asked("A?"), said("A.", ["A."]), asked("B?"), said("B.", ["C."])]
    metric = ResponseGroundedness(judge=judge)
    _, result = [metric.score_sample(turn) for turn in Sample(metadata={"messages": talk}).turns()]
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


A, B, C = "Die KX-12 braucht zwei Minuten.", "弁をゆっくり開く。", "The KX-13 needs three minutes."
BOTH: tuple[Numbering, ...] = ("turn", "conversation")


def cited(answer: str, own: list[str] | None, **fields: Any) -> list[dict[str, Any]]:
    """Return three turns, of which the first has the contexts A and B, the second B again."""
    return [
        *(asked("Wie lange?"), said(f"{A[:-1]} [1].", [A, B])),
        *(asked("そして？"), said(f"{B} [1]", [B, "Oil it."])),
        *(asked("And the other one?"), said(answer, own, **fields)),
    ]


@pytest.mark.parametrize(
    ("answer", "own", "fields", "by_turn", "by_conversation"),
    [
        ("It says [1].", [C], {}, [(0, None)], [(0, 1)]),
        ("It says [2].", [C], {}, "there is no context 2, there is 1", [(1, 1)]),
        ("It says [3].", [C], {}, "there is no context 3, there is 1", [(1, 2)]),
        ("It says [4].", [C], {}, "there is no context 4, there is 1", [(0, None)]),
        ("It says [5].", [C], {}, "there is no context 5, there is 1", "there is no context 5, there are 4"),
        # What is retrieved again keeps its number, in its place among the contexts of the turn.
        ("It says [2, 4].", [B, C], {}, "there is no context 4, there are 2", [(0, None), (1, None)]),
        ("It says [kb-7].", [C], {"retrieved_context_ids": ["kb-7"]}, [(0, None)], [(0, None)]),
        ("It says [b.pdf].", [C, B], {"retrieved_context_ids": ["c.pdf", "b.pdf"]}, [(1, None)], [(1, None)]),
        ("It says [kb-1].", [C], {"retrieved_context_ids": ["kb-7"]}, *["no id in retrieved_context_ids is kb-1"] * 2),
        ("It says [1].", None, {}, None, [(0, 1)]),
        ("It says [9].", None, {}, None, "there is no context 9, there are 3"),
        (THANKS, None, {}, None, None),
    ],
)  # fmt: skip
def test_numbers_of_the_turn_or_of_the_conversation(
    answer: str, own: list[str] | None, fields: dict[str, Any], by_turn: Any, by_conversation: Any
) -> None:
    """Each citation with the place and the turn of its evidence, or what is wrong; ``None`` where nothing counts."""
    for numbering, expected in zip(BOTH, (by_turn, by_conversation), strict=True):
        for metric in (
            CitationValidity(numbering=numbering),
            CitationValidity(numbering=numbering, require_citations=True),
        ):
            result = in_turns(metric, *cited(answer, own, **fields))[-1]
            assert result.vacuous is (expected is None)
            if expected is None:
                continue
            (verdict,) = result.verdicts
            found = [(piece.context, piece.turn) for piece in verdict.evidence]
            assert (verdict.reason or found) == expected
            assert result.value == float(verdict.ok)
            if own is not None and not fields:
                alone = metric.score_sample(Sample.from_mapping({"messages": cited(answer, own, **fields)}))
                assert [replace(it, turn=3) for it in alone.verdicts] == [verdict]
    assert CitationValidity(numbering="conversation").score(response="A [1].", retrieved_contexts=["A."]).value == 1.0


@pytest.mark.parametrize(
    ("answer", "own", "values", "places"),
    [
        (f"{C} [1]", [C], (1.0, 0.0), []),
        (f"{C} [4]", [C], (0.0, 1.0), [(0, None)]),
        (f"{A} [1] {B} [2]", [C], (0.0, 1.0), [(0, 1), (1, 1)]),
        (f"{A} [1] {C} [3]", [B, C], (0.0, 0.5), [(0, 1)]),
        (f"{A} [1] {C} [4]", [B, C], (0.0, 1.0), [(0, 1), (1, None)]),
        (f"{A} [1]", None, (None, 1.0), [(0, 1)]),
        (THANKS, None, (None, None), []),
    ],
)
@pytest.mark.parametrize("kind", [CitationRecall, CitationPrecision])
def test_what_is_cited_of_earlier_turns_is_verified(
    kind: Any,
    answer: str,
    own: list[str] | None,
    values: tuple[float | None, ...],
    places: list[tuple[int, int | None]],
) -> None:
    for numbering, value in zip(BOTH, values, strict=True):
        result = in_turns(kind(numbering=numbering, judge="local"), *cited(answer, own))[-1]
        assert (None if result.vacuous else result.value) == value
        if numbering == "conversation":
            assert [(it.context, it.turn) for verdict in result.verdicts for it in verdict.evidence] == places


def test_a_context_that_two_turns_have_has_its_place_in_the_first() -> None:
    """And one behind it the place that it has in its own turn."""
    talk = [
        asked("1?"),
        said("A.", [A]),
        asked("2?"),
        said("B.", ["", A, "Nr. 7."]),
        asked("3?"),
        said("It is 7.", ["No."]),
    ]
    result = in_turns(NumbersAligned(), *talk)[-1]
    assert [(it.context, it.turn, it.text) for verdict in result.verdicts for it in verdict.evidence] == [(2, 2, "7")]


@pytest.mark.parametrize("kind", [CitationValidity, CitationRecall, CitationPrecision])
def test_no_other_numbering(kind: Any) -> None:
    with pytest.raises(ValueError, match="numbering must be 'turn' or 'conversation', not 'each'"):
        kind(numbering="each")


#: Texts of which each is in one turn alone.
THREE: list[Any] = [
    *(asked("Erste Frage?"), said("Erste Antwort.", ["Erster Fund. Ein Zusatz."], reference="Erste Lösung.")),
    *(asked("二番目の質問？"), said("二番目の答え。", ["二番目の文。", "Zweiter Fund."], reference="Zweite Lösung.")),
    *(asked("Third question?"), said("Third answer.", ["Third find."], reference="Third solution.")),
]
BEFORE = [
    "1. user: Erste Frage?",
    "2. assistant: Erste Antwort.",
    "3. user: 二番目の質問？",
    "4. assistant: 二番目の答え。",
]
OF_CONTEXTS = (
    *(metrics.ContextPrecision, metrics.ContextUtilization, metrics.ContextRecall, metrics.ContextRelevancy),
    *(metrics.ContextRelevance, metrics.ContextPrecisionProportion, metrics.ContextEntityRecall, metrics.Hallucination),
)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("kind", OF_CONTEXTS, ids=lambda kind: kind.name)
def test_contexts_are_judged_in_their_turn_alone(kind: Any, number: int) -> None:
    """By the turns before the question; what other turns retrieved or were to say, and all that is later, is unseen."""
    shown: list[str] = []

    def judge(prompt: str) -> str:
        shown.append(prompt)
        return sensibly(prompt)

    turns = Sample(id="pump", metadata={"messages": THREE}).turns()
    of_references: dict[str, Any] = (
        {"reference_contexts": turns[number - 1].reference} if kind is metrics.ContextEntityRecall else {}
    )
    kind(judge=judge).score_sample(replace(turns[number - 1], **of_references))
    own = [text for context in turns[number - 1].retrieved_contexts or () for text in _SENTENCE.findall(context)]
    unseen = [
        text
        for turn in turns
        for text in (*(turn.retrieved_contexts or ()), turn.reference)
        if turn.metadata["turn"] != number
    ]
    later = [message["content"] for message in THREE[2 * number :]]
    assert shown
    for prompt in shown:
        blocks = blocks_of(prompt)
        assert not [text for text in (*unseen, *later) if str(text) in prompt]
        if "question" in blocks:
            assert blocks.get("conversation before the question", "").splitlines() == BEFORE[: 2 * number - 2]
        if kind is not metrics.ContextEntityRecall:
            assert re.findall(r"^\d+ (.*)$", blocks["contexts"], re.MULTILINE) == [text.strip() for text in own]


@pytest.mark.parametrize("found", NOTHING)
@pytest.mark.parametrize("kind", [metrics.NoiseSensitivity, *OF_CONTEXTS])
def test_a_turn_that_retrieved_nothing(kind: Any, found: list[str] | None) -> None:
    """It is vacuous for metrics that take no empty list; for the others an empty one is a retrieval that failed."""
    last = said("Dritte Antwort.", found, reference="Third find.", reference_contexts=["Third find."])
    *_, result = in_turns(kind(judge=sensibly), *THREE[4:], asked("Und nun?"), last)
    assert result.usage.calls == 0
    is_scored = found == [] and "retrieved_contexts" in kind.may_be_empty
    assert (result.value, result.vacuous) == ((0.0, False) if is_scored else (kind().best, True))
    assert is_scored or result.reason == "no contexts in this turn"
