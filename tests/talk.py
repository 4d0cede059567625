"""A run of a conversation: a test for each turn, one for the whole, and one that scores all turns by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_ragmetrics.core.result import Evidence, Verdict
from pytest_ragmetrics.core.sample import Sample, in_turns
from pytest_ragmetrics.runs.records import Document, Record, TestRecord
from tests.documents import document, nearest, record, row, usage, verdict

SHORT, VALVE, LONG = (
    "The KX-12 needs two minutes.",
    "Ventil langsam öffnen。静かに開けます。",
    "The KX-13 needs three minutes.",
)
TALK: list[Any] = [
    {"role": "user", "content": "I bought my pump in 1999. How long does the KX-12 need?"},
    {"role": "assistant", "content": "The KX-12 needs ninety minutes.", "contexts": [SHORT, VALVE]},
    {"role": "user", "content": "And the KX-13, compared?"},
    {
        "role": "assistant",
        "content": f"{LONG} 静かに開けます。 The KX-12 needs ninety minutes. You bought it in 1999.",
        "contexts": [LONG, "Ask the maker."],
    },
    {"role": "user", "content": "ありがとう"},
    {"role": "assistant", "content": "Gern geschehen!", "tool_calls": [{"name": "close", "arguments": {"log": 1}}]},
    {"role": "user", "content": "Bye"},
]
WRONG = [("same", "The KX-12 needs", "The KX-12 needs"), ("replaced", "ninety", "two"), ("same", "minutes", "minutes")]


def turns() -> tuple[Sample, ...]:
    return in_turns(Sample.from_mapping({"id": "pump", "messages": TALK}), "each", whole=True)


def verdicts_of(turn: int) -> list[Verdict]:
    """Return what is found of the claims of a turn: one of each kind in the second."""
    sample = turns()[turn - 1]
    said, contexts = sample.response or "", sample.retrieved_contexts or ()
    if turn == 1:
        return [verdict(said, ok=False, response=said, turn=1, nearest=nearest(SHORT, contexts, 0, 0.8, WRONG))]
    if turn != 2:
        return []
    place = VALVE.index("静か")
    earlier = Evidence(context=1, start=place, end=len(VALVE), text="静かに開けます。", turn=1)
    own = Evidence(context=0, start=0, end=len(LONG), text=LONG)
    kinds: dict[str, dict[str, Any]] = {
        LONG: {"ok": True, "evidence": [own]},
        "静かに開けます。": {
            "ok": True,
            "evidence": [earlier],
            "kind": "found earlier",
            "reason": "found earlier, in turn 1",
        },
        "The KX-12 needs ninety minutes.": {
            "ok": False,
            "kind": "repeated",
            "reason": "repeated from turn 1, where no passage has it",
        },
        "You bought it in 1999.": {"ok": True, "kind": "told by the user", "reason": "told by the user in turn 1"},
    }
    return [verdict(text, response=said, turn=2, **fields) for text, fields in kinds.items()]


def faithful(sample: Sample, score: float, verdicts: Sequence[Verdict], **fields: Any) -> Record:
    outcome = "passed" if score >= 0.9 else "failed"
    words: dict[str, Any] = {"noun": "claim", "complaint": "not supported", "usage": usage(cost=0.004)}
    made = record("faithfulness", score, outcome=outcome, verdicts=verdicts, **words, **fields)
    return replace(made, sample=sample)


def whole(sample: Sample) -> Record:
    shown = Evidence(context=1, start=0, end=len(LONG), text=LONG, turn=2)
    facts = [
        Verdict(text="The user has a pump of 1999.", ok=True, turn=1, reason="kept"),
        Verdict(text="The user compares two pumps.", ok=False, turn=2, reason="It does not.", evidence=(shown,)),
    ]
    words: dict[str, Any] = {"noun": "fact", "complaint": "not kept", "outcome": "failed", "usage": usage(cost=0.002)}
    return replace(record("knowledge_retention", 0.5, verdicts=facts, **words), sample=sample)


def rows() -> list[TestRecord]:
    *each, all_of_it = turns()
    scored = [
        faithful(sample, score, verdicts_of(number), vacuous=number == 3)
        for number, (sample, score) in enumerate(zip(each, (0.0, 2 / 3, 1.0), strict=True), start=1)
    ]
    each_turn = [
        row(f"test_row[pump-t{number}]", it, outcome="failed" if it.outcome == "failed" else "passed")
        for number, it in enumerate(scored, start=1)
    ]
    return [
        *each_turn,
        row("test_row[pump]", whole(all_of_it), outcome="failed"),
        row("test_talk", *scored, outcome="failed"),
    ]


def talk() -> Document:
    return document(*rows())
