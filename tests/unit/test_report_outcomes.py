"""What became of each test since the baseline, and why."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from pytest_ragmetrics.core.result import Evidence, Nearest, Verdict, WordChange
from pytest_ragmetrics.report.outcomes import CAUSES, TEST_KINDS, gone_tests, paired_tests
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.records import TestRecord
from tests.documents import document, evidence, gate, record, row, verdict

SAMPLE = {"id": "q1", "user_input": "When?", "response": "On Monday.", "retrieved_contexts": ["Monday.", "Paint."]}
CLAIM = Verdict(text="It is on Monday.", ok=False, reason="stands nowhere")
FOUND = Verdict(text="Monday", ok=True, evidence=(Evidence(context=0, start=0, end=6, text="Monday"),))
OTHER_WORD = WordChange(kind="replaced", said="Sunday", source="Monday")
NEAR = Nearest(context=0, start=0, end=6, text="Monday", similarity=0.8, changes=(OTHER_WORD,))
ALTERED = Verdict(text="Sunday", ok=False, kind="not found", nearest=NEAR)


def scored(score: float | None = 0.5, *, verdicts: Any = (), votes: Any = (), **fields: Any) -> TestRecord:
    """Return a test with one score; ``fields`` are those of its sample, its threshold or its judge."""
    own = {"at_least": fields.pop("at_least", 0.8), "judge": fields.pop("judge", None), "reason": "why"}
    outcome = "unscored" if score is None else "passed" if score >= own["at_least"] else "failed"
    sample = SAMPLE | fields
    kept = record("faithfulness", score, votes=votes, sample=sample, outcome=outcome, verdicts=tuple(verdicts), **own)
    return row("test_bot[q1]", kept, outcome="passed" if outcome == "passed" else "failed")


def became(now: TestRecord, before: TestRecord | None) -> tuple[str, str | None, str]:
    this, baseline = document(now), document(*([] if before is None else [before]))
    (pair,) = paired_tests(this, compare_documents(this, baseline))
    assert pair.before == before
    return pair.kind, pair.cause, pair.detail


Facts: TypeAlias = tuple[tuple[str, str, str], ...]

HELD, SHORT, NONE, BORNE_OUT = scored(1.0), scored(0.5), scored(None), scored(1.0, verdicts=[FOUND])
OTHER: dict[str, Any] = {"response": "On Sunday."}
SKIPPED = row("test_bot[q1]", outcome="skipped")


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        *((HELD, HELD, ("passes as before", None, "")), (HELD, SHORT, ("fixed", None, ""))),
        *((HELD, NONE, ("fixed", None, "")), (HELD, None, ("passes, new", None, ""))),
        *((HELD, SKIPPED, ("passes, new", None, "")), (SKIPPED, HELD, ("skipped", None, ""))),
        *((SHORT, SHORT, ("fails as before", None, "")), (NONE, HELD, ("no score", "run", "why"))),
        *((NONE, NONE, ("no score", "run", "why")), (SHORT, HELD, ("newly fails", "judge", ""))),
        (SHORT, NONE, ("newly fails", "judge", "")),
        (scored(votes=(0.5, 0.9), **OTHER), HELD, ("newly fails", "judge", "")),
        (scored(0.9, at_least=0.95), scored(0.9), ("newly fails", "bound", "")),
        (scored(verdicts=[ALTERED], **OTHER), HELD, ("newly fails", "altered", "Sunday")),
        (scored(verdicts=[CLAIM], retrieved_contexts=["Paint."]), BORNE_OUT, ("newly fails", "retrieval", "Monday")),
        # What is no longer retrieved was no evidence.
        (scored(verdicts=[CLAIM], retrieved_contexts=["Monday."]), BORNE_OUT, ("newly fails", "answer", CLAIM.text)),
        (scored(verdicts=[CLAIM], **OTHER), HELD, ("newly fails", "answer", "It is on Monday.")),
        (scored(verdicts=[CLAIM]), None, ("fails, new", "answer", "It is on Monday.")),
        (row("test_bot[q1]", outcome="error"), HELD, ("newly fails", "error", "")),
    ],
)
def test_a_test_has_one_kind_and_one_cause(now: TestRecord, before: TestRecord | None, expected: Any) -> None:
    assert became(now, before) == expected
    assert expected[0] in TEST_KINDS
    assert expected[1] in {None, *CAUSES}


def test_without_a_baseline_tests_fail_or_pass() -> None:
    run = document(HELD, scored(verdicts=[ALTERED]), NONE, SKIPPED, row("test_gate", gate=gate()))
    found = [(pair.kind, pair.cause) for pair in paired_tests(run)]
    assert found == [("passes", None), ("fails", "altered"), ("no score", "run"), ("skipped", None)]


def test_moved_and_gone_tests_are_found() -> None:
    moved = replace(SHORT, id="tests/test_other.py::test_bot[q1]", file="tests/test_other.py")
    plain = row("test_plain", outcome="failed")
    baseline = document(HELD, plain, plain, row("test_gone"), row("test_gate", gate=gate()))
    now = document(moved, plain)
    comparison = compare_documents(now, baseline)
    pairs = [(pair.before and pair.before.id, pair.kind) for pair in paired_tests(now, comparison)]
    assert pairs == [(HELD.id, "newly fails"), (plain.id, "fails as before")]
    assert [test.id for test in gone_tests(comparison)] == [plain.id, "tests/test_assistant.py::test_gone"]
    # So are those whose scores are not compared: another judge or question makes no new test of one that moved.
    moved = replace(scored(judge="b"), id="tests/test_other.py::test_bot[q1]", file="tests/test_other.py")
    assert became(moved, scored(1.0, judge="a")) == ("newly fails", "judge", "")
    asks = scored(user_input="Where?", verdicts=[CLAIM])
    assert became(asks, HELD) == ("newly fails", "answer", CLAIM.text)
    (one,) = HELD.records
    both = replace(HELD, records=(one, replace(one, metric="correctness")))
    split = document(row("test_apart[q1]", replace(one, metric="correctness")), HELD)
    found = paired_tests(split, compare_documents(split, document(both)))
    assert [pair.before and pair.before.id for pair in found] == [None, HELD.id]
    twice = [scored(1.0, id="q1"), scored(0.5, id="q2")]
    now, before = document(*twice[::-1]), document(*twice)
    assert [pair.before for pair in paired_tests(now, compare_documents(now, before))] == twice[::-1]


FILLS = "The pump fills in two minutes."
#: Passages, the sentence of each that bore out a claim, and the claims; languages with and without spaces.
ENGLISH: Facts = (
    (f"{FILLS} It weighs nine kilos.", FILLS, "It fills in two minutes."),
    ("Made in Graz. The pump runs on 230 volts.", "The pump runs on 230 volts.", "The pump needs 230 volts."),
    ("The filter is changed each May. Use gloves.", "The filter is changed each May.", "The filter is changed in May."),
)
JAPANESE: Facts = (
    ("湯の温度は六十八度に達する。海が見える。", "湯の温度は六十八度に達する。", "湯の温度は六十八度である。"),
    ("宿は古い。夕食は午後六時に用意される。", "夕食は午後六時に用意される。", "夕食は午後六時に出る。"),
    ("最終の送迎は午後五時に出発する。", "最終の送迎は午後五時に出発する。", "最後の送迎は午後五時に出る。"),
)
WRONG = {ENGLISH: "The pump fills in twenty minutes.", JAPANESE: "湯の温度は八十六度である。"}
#: What a new splitter, loader or prompt makes of the same passages.
LAYOUTS: dict[str, Callable[[list[str]], list[str]]] = {
    "as they were": lambda passages: passages,
    "spaces": lambda passages: [text.replace(" ", "\u00a0\n ") for text in passages],
    "merged": lambda passages: ["\n\n".join(passages)],
    "prefixed": lambda passages: [f"[source: doc{n}] {text}" for n, text in enumerate(passages)],
    "titled": lambda passages: [f"# Chapter {n}\n\n{text} (page {n})" for n, text in enumerate(passages)],
    "reordered": lambda passages: passages[::-1],
    "upper case": lambda passages: [text.upper() for text in passages],
    "sentences": lambda passages: [part for text in passages for part in re.split(r"(?<=[.。])", text) if part],
    "chunks": lambda passages: chunks(passages, 40),
    "chunks that overlap": lambda passages: chunks(passages, 40, step=20),
    "chunks in any order": lambda passages: chunks(passages, 20)[::-1],
    "chunks with prefixes": lambda passages: [f"[{n}] {text}" for n, text in enumerate(chunks(passages, 20)[::-1])],
    "chunks with suffixes": lambda passages: [f"{text} (p. {n})" for n, text in enumerate(chunks(passages, 20)[::-1])],
    "HTML": lambda passages: [f"<p>{re.sub('([.。]) ?', r'<i>.</i></p><p>', text)}</p>" for text in passages],
    "Markdown": lambda passages: ["- " + re.sub(r"(\w+)([.。])", r"**\1**\2\n- ", text) for text in passages],
    "wide letters": lambda passages: [unicodedata.normalize("NFD", text) for text in passages],
    "JSON": lambda passages: [json.dumps({"id": 7, "text": text}, ensure_ascii=False) for text in passages],
    "other ones beside": lambda passages: ["Moths fly at night.", *passages],
}


def chunks(passages: Sequence[str], size: int, *, step: int | None = None) -> list[str]:
    text = " ".join(passages)
    return [text[at : at + size] for at in range(0, len(text), step or size)]


def judged(facts: Facts, claims: Mapping[str, bool], passages: Sequence[str], **fields: Any) -> TestRecord:
    """Return a test whose answer is these claims; those that hold have the sentence of their fact as evidence."""
    cited = {claim: (text, sentence) for text, sentence, claim in facts if text in passages}
    verdicts = []
    for claim, ok in claims.items():
        text, sentence = cited.get(claim, ("", ""))
        borne_out = [evidence(sentence, passages, passages.index(text))] if ok and text else ()
        verdicts.append(verdict(claim, ok=ok, evidence=borne_out))
    score = sum(claims.values()) / len(claims)
    answer = fields.pop("answer", " ".join(claims))
    made = scored(score, verdicts=verdicts, response=answer, retrieved_contexts=[*passages])
    (kept,) = made.records
    return replace(made, records=(replace(kept, judge="openai:m", **fields),))


@pytest.mark.parametrize("facts", [ENGLISH, JAPANESE], ids=["English", "Japanese"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_passage_is_lost_where_its_sentence_is(facts: Facts, layout: str) -> None:
    laid, passages, claims = LAYOUTS[layout], [text for text, _, _ in facts], [claim for _, _, claim in facts]
    sentence, wrong = facts[0][1], WRONG[facts]
    before = judged(facts, dict.fromkeys(claims, True), passages)
    there, without = laid(passages), laid(passages[1:])
    # It is still there: the answer is wrong, or the judge about the same one.
    assert became(judged(facts, {wrong: False, claims[1]: True}, there), before)[1:] == ("answer", wrong)
    assert became(judged(facts, {claims[0]: False, claims[1]: True, claims[2]: True}, there), before)[1] == "judge"
    # It is gone: the claim is made as before, or another one about it.
    for claim in (claims[0], wrong):
        now = judged(facts, {claim: False, claims[1]: True}, without)
        assert became(now, before)[1:] == ("retrieval", sentence)
    # It is gone, with the claim that it bore out: what is wrong is another one.
    one_less = laid(passages[:2])
    assert became(judged(facts, {wrong: False, claims[1]: True}, one_less), before)[1:] == ("answer", wrong)
    # A metric of the passages names those that are there.
    for metric, cause in (("context_precision", "retrieval"), ("faithfulness", "answer")):
        then = judged(facts, dict.fromkeys(claims, True), passages, metric=metric, answer="One.")
        now = judged(facts, {"Moths fly at night.": False}, one_less, metric=metric, answer="Two.")
        assert became(now, then)[1] == cause


@pytest.mark.parametrize(
    ("passages", "claims", "expected"),
    [
        # Its sentence stands in another passage, or nearly does.
        (["Data. The pump runs on 230 volts."], {"The pump needs 110 volts.": False}, "answer"),
        (["Data. The pump runs on 400 volts."], {"The pump needs 230 volts.": False}, "retrieval"),
        (["The pump runs on"], {"The pump needs 230 volts.": False}, "retrieval"),
        # Another one bears out its claim.
        (["A voltage of 230."], {"The pump needs 230 volts.": True, "It fills in ten minutes.": False}, "answer"),
        # What is wrong has nothing to do with it, and nothing that was evidence is left.
        ([], {"The pump needs 230 volts.": True, "A blue car.": False}, "answer"),
        (None, {"A blue car.": False}, "retrieval"),
    ],
)
def test_a_fault_needs_the_lost_passage(passages: list[str] | None, claims: dict[str, bool], expected: str) -> None:
    texts = [text for text, _, _ in ENGLISH]
    before = judged(ENGLISH, {claim: True for _, _, claim in ENGLISH}, texts)
    kept = [] if passages is None else [texts[0], *passages, texts[2]]
    assert became(judged(ENGLISH, claims, kept), before)[1] == expected


WHOLE = "# Pump\n\nIt fills in two minutes. It weighs nine kilos."


@pytest.mark.parametrize(
    ("text", "shown", "cause"),
    [
        (WHOLE, ["It fills in two minutes.", "It weighs nine kilos."], "answer"),
        *((WHOLE, ["It weighs nine kilos."], "retrieval"), ("1962", ["Since 1962."], "answer")),
        ("1962", ["Of 19621 pumps."], "retrieval"),
    ],
)
def test_a_whole_passage_as_evidence_may_be_cut_or_lose_its_heading(text: str, shown: list[str], cause: str) -> None:
    before = scored(
        1.0, verdicts=[verdict("It.", ok=True, evidence=[evidence(text, [text], 0)])], retrieved_contexts=[text]
    )
    now = scored(verdicts=[verdict("It.", ok=False)], retrieved_contexts=shown, **OTHER)
    assert became(now, before)[1] == cause
