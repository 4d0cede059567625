"""Two runs held against each other: what became of each score and of each test since the baseline, and why."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.core.result import Evidence, Nearest, Verdict, WordChange
from pytest_ragmetrics.report.outcomes import CAUSES, TEST_KINDS, gone_tests, paired_tests
from pytest_ragmetrics.runs.compare import Kind, RunComparison, compare_documents
from pytest_ragmetrics.runs.records import Document, Record, TestRecord
from pytest_ragmetrics.runs.wording.comparisons import change_line, change_lines, change_text, metric_change_lines
from tests.documents import document, evidence, gate, record, row, verdict


def scored(score: float | None, metric: str = "faithfulness", *, sample: str | None = None, **more: Any) -> Record:
    outcome = "unscored" if score is None else "passed"
    return record(metric, score, outcome=outcome, sample={"id": sample} if sample else {}, **more)


def run(**tests: Record | list[Record]) -> Document:
    return document(*(row(name, *(it if isinstance(it, list) else [it])) for name, it in tests.items()))


def kinds(comparison: RunComparison) -> dict[str, Kind]:
    return {change.id.partition("::")[2]: change.kind for change in comparison.changes}


def test_every_score_is_better_worse_or_the_same() -> None:
    old = run(test_a=scored(0.5), test_b=scored(0.9), test_c=scored(0.7), test_d=scored(0.8))
    new = run(test_a=scored(0.9), test_b=scored(0.4), test_c=scored(0.7), test_d=scored(0.6))
    found = compare_documents(new, old)
    assert kinds(found) == {"test_b": "worse", "test_d": "worse", "test_c": "same", "test_a": "better"}
    assert [change.id.partition("::")[2] for change in found.changes] == ["test_b", "test_d", "test_a", "test_c"]
    assert [round(change.change or 0, 6) for change in found.changes] == [-0.5, -0.2, 0.4, 0.0]
    assert found.counts["worse"] == 2
    assert [change.id for change in found.of("better")] == ["tests/test_assistant.py::test_a"]
    # Where lower is better, less is.
    found = compare_documents(run(test_a=scored(0.1, at_most=0.5)), run(test_a=scored(0.4, at_most=0.5)))
    (change,) = found.changes
    assert (change.kind, change.better) == ("better", "lower")
    assert change.change == pytest.approx(0.3)
    assert found.metrics[0].change == pytest.approx(0.3)


def test_what_has_no_counterpart_or_no_score_is_told_apart() -> None:
    old = run(test_gone=scored(0.5), test_lost=scored(0.5), test_found=scored(None), test_never=scored(None))
    new = run(test_new=scored(0.5), test_lost=scored(None), test_found=scored(0.6), test_never=scored(None))
    found = compare_documents(new, old)
    expected = {"test_lost": "unscored", "test_never": "same", "test_found": "scored again", "test_new": "new"}
    assert kinds(found) == {**expected, "test_gone": "gone"}
    assert [change.change for change in found.changes] == [None] * 5
    assert (found.metrics[0].pairs, found.metrics[0].before) == (0, None)


SILENT = scored(1.0, vacuous=True)


@pytest.mark.parametrize(
    ("before", "after", "kind", "said", "line"),
    [
        (SILENT, scored(0.2), "nothing to check", "had nothing to check", "nothing to check -> 0.200"),
        (scored(0.2), SILENT, "nothing to check", "nothing to check now, was 0.20", "0.200 -> nothing to check"),
        (SILENT, SILENT, "same", "as in the baseline", "faithfulness nothing to check -> nothing to check"),
        (SILENT, scored(0.0, vacuous=True), "same", "as in the baseline", "nothing to check -> nothing to check"),
        (SILENT, scored(None), "unscored", "was nothing to check", "faithfulness nothing to check -> unscored"),
        (scored(None), SILENT, "scored again", "was unscored", "faithfulness unscored -> nothing to check"),
    ],
)
def test_nothing_to_check_is_no_score(before: Record, after: Record, kind: Kind, said: str, line: str) -> None:
    old, new = run(test_a=before, test_b=scored(0.4)), run(test_a=after, test_b=scored(0.5))
    found = compare_documents(new, old)
    (change,) = (each for each in found.changes if each.id.endswith("test_a"))
    assert (change.kind, change.change, change_text(change)) == (kind, None, said)
    assert line in change_line(change)
    assert found.counts["worse"] == 0
    assert metric_change_lines(found) == ["faithfulness: mean 0.400 -> 0.500 over 1"]
    counted = "1 better, 0 worse, 1 with nothing to check in one of the runs"
    assert (change_lines(found)[0] == f"against the baseline: {counted}") == (kind == "nothing to check")


def test_scores_of_different_judges_are_never_compared() -> None:
    old = run(test_a=scored(0.9, judge="openai:one"), test_b=scored(0.5, judge="openai:one"), test_c=scored(0.2))
    new = run(test_a=scored(0.1, judge="openai:two"), test_b=scored(0.6, judge="openai:one"), test_c=scored(0.2))
    found = compare_documents(new, old)
    assert kinds(found) == {"test_c": "same", "test_b": "better"}
    (foreign,) = found.incomparable
    assert (foreign.metric, foreign.pairs) == ("faithfulness", 1)
    assert found.metrics[0].pairs == 2
    line = "  not compared: 1 of faithfulness: judged by openai:two now, by openai:one in the baseline"
    assert line in change_lines(found)


@pytest.mark.parametrize(
    ("metric", "before", "after", "compared"),
    [
        # Contexts not contradicted, and later those that are.
        ("hallucination", {"better": "higher"}, {"better": "lower"}, False),
        ("hallucination", {"better": "lower"}, {"better": "lower"}, True),
        # The aspect, and later the rating.
        ("correctness", {"noun": "judgement"}, {"noun": "response"}, False),
        ("correctness", {"noun": "verdict"}, {"noun": "response"}, False),
        ("correctness", {"noun": "judgement"}, {"noun": "judgement"}, True),
        # A word of another release.
        ("faithfulness", {"noun": "statement"}, {"noun": "claim"}, True),
    ],
)
def test_another_metric_of_the_same_name_is_not_compared(
    metric: str, before: dict[str, Any], after: dict[str, Any], *, compared: bool
) -> None:
    old, new = (
        run(test_a=scored(score, metric, **more), test_b=scored(None, metric, **more))
        for score, more in ((0.9, before), (0.4, after))
    )
    found = compare_documents(new, old)
    assert ("test_a" in kinds(found)) is compared
    assert kinds(found)["test_b"] == "same"
    line = f"  not compared: 1 of {metric}: it is another metric in the baseline"
    assert (line in change_lines(found)) is not compared


def test_scores_are_paired_in_order_and_samples_by_their_ids() -> None:
    old = run(test_a=[scored(0.1), scored(0.2)])
    new = run(test_a=[scored(0.1), scored(0.3), scored(0.4)])
    found = compare_documents(new, old)
    assert [(c.number, c.kind) for c in found.changes] == [(1, "better"), (0, "same"), (2, "new")]
    old = run(test_all=[scored(0.1, sample="q1"), scored(0.2, sample="q2")])
    new = run(test_all=[scored(0.9, sample="q0"), scored(0.1, sample="q1"), scored(0.2, sample="q2")])
    changes = compare_documents(new, old).changes
    assert {it.new and it.new.name: it.kind for it in changes} == {"q0": "new", "q1": "same", "q2": "same"}
    one = run(test_all=scored(0.1, sample="q1"))
    (renamed,) = compare_documents(run(test_every=[scored(0.3, sample="q1")]), one).changes
    assert (renamed.kind, renamed.old and renamed.old.test) == ("better", "tests/test_assistant.py::test_all")
    moved = document(row("test_all", scored(0.1, sample="q1"), file="tests/test_moved.py"))
    assert [change.kind for change in compare_documents(moved, one).changes] == ["same"]
    # Two tests of one sample whose file moves are each paired with themselves.
    both = run(test_one=scored(0.1, sample="q1"), test_two=scored(0.9, sample="q1"))
    rows = [row(name, scored(s, sample="q1"), file="moved.py") for name, s in (("test_two", 0.9), ("test_one", 0.1))]
    assert [change.kind for change in compare_documents(document(*rows), both).changes] == ["same", "same"]
    # Samples of different ids are other things, though the test is the same; an id that is new changes nothing.
    for earlier, expected in ((scored(0.9, sample="q1"), ["new", "gone"]), (scored(0.9), ["worse"])):
        found = compare_documents(run(test_a=scored(0.1, sample="q2")), run(test_a=earlier))
        assert [change.kind for change in found.changes] == expected


def test_samples_are_found_again_by_their_questions() -> None:
    """Unless both have ids, or one of the runs has several different scores of the question."""

    def asked(name: str | None, *scores: float) -> list[Record]:
        sample = {"user_input": "How?", **({"id": name} if name else {})}
        return [record("faithfulness", score, outcome="passed", sample=sample) for score in scores]

    def found(new: list[Record], old: list[Record]) -> tuple[list[Kind], list[str]]:
        compared = compare_documents(run(test_new=new), run(test_old=old))
        return [change.kind for change in compared.changes], [it.why for it in compared.incomparable]

    assert found(asked("q1", 0.1), asked(None, 0.9)) == (["worse"], [])
    assert found(asked("q1", 0.1), asked("q2", 0.9)) == (["new", "gone"], [])
    several = ["a sample has several different scores in one run"]
    assert found(asked("q1", 0.1), asked(None, 0.9, 0.2)) == (["gone"], several)


def test_the_means_are_those_of_the_pairs() -> None:
    old = run(test_a=scored(0.5), test_b=scored(0.7), test_gone=scored(0.0))
    new = run(test_a=scored(0.6), test_b=scored(0.8), test_new=scored(0.0))
    (metric,) = compare_documents(new, old).metrics
    assert metric.pairs == 2
    assert [metric.before, metric.after, metric.change] == pytest.approx([0.6, 0.7, 0.1])
    assert metric_change_lines(compare_documents(new, old)) == ["faithfulness: mean 0.600 -> 0.700 over 2"]


def test_each_mean_has_the_unit_of_its_own_metric() -> None:
    def ran(seconds: float, score: float) -> Document:
        took = record("latency", seconds, at_least=None, unit="s", better="lower", sample={"id": "q1"})
        return run(test_a=scored(score), test_b=took)

    lines = ["faithfulness: mean 0.400 -> 0.500 over 1", "latency: mean 1.400 s -> 1.450 s over 1"]
    assert metric_change_lines(compare_documents(ran(1.45, 0.5), ran(1.4, 0.4))) == lines


def test_the_lines_name_the_worst_and_count_the_rest() -> None:
    old = run(**{f"test_{n}": scored(0.9) for n in range(5)}, test_ok=scored(0.2), test_lost=scored(1.0))
    new = run(**{f"test_{n}": scored(n / 10) for n in range(5)}, test_ok=scored(0.3), test_lost=scored(None))
    assert change_lines(compare_documents(new, old), shown=2) == [
        "against the baseline: 1 better, 5 worse, 1 no longer scored",
        "  unscored: tests/test_assistant.py::test_lost: faithfulness 1.000 -> unscored",
        "  worse: tests/test_assistant.py::test_0: faithfulness 0.900 -> 0.000 (-0.900)",
        "  ... and 4 more",
    ]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["q1", "q2", None]), st.floats(0, 1)), max_size=12))
def test_a_run_against_itself_has_not_changed(found: list[tuple[str, str | None, float]]) -> None:
    tests: dict[str, list[Record]] = {}
    for name, sample, score in found:
        tests.setdefault(f"test_{name}", []).append(scored(score, sample=sample))
    this = run(**tests)
    assert all(change.kind == "same" for change in compare_documents(this, this).changes)
    assert len(compare_documents(this, this).changes) == len(found)
    half = run(**{name: records[: len(records) // 2] for name, records in tests.items()})
    there, back = compare_documents(this, half), compare_documents(half, this)
    assert there.counts["new"] == back.counts["gone"]
    assert there.counts["better"] == back.counts["worse"]


def test_the_order_of_the_tests_is_of_no_account() -> None:
    old = run(**{f"test_{n}": scored(0.5) for n in range(9)})
    new = run(**{f"test_{n}": scored(n / 10) for n in range(4, 13)})
    shuffled = replace(new, tests=tuple(random.Random(7).sample(new.tests, 9)))
    assert compare_documents(shuffled, old).changes == compare_documents(new, old).changes


SAMPLE = {"id": "q1", "user_input": "When?", "response": "On Monday.", "retrieved_contexts": ["Monday.", "Paint."]}
CLAIM = Verdict(text="It is on Monday.", ok=False, reason="stands nowhere")
FOUND = Verdict(text="Monday", ok=True, evidence=(Evidence(context=0, start=0, end=6, text="Monday"),))
OTHER_WORD = WordChange(kind="replaced", said="Sunday", source="Monday")
NEAR = Nearest(context=0, start=0, end=6, text="Monday", similarity=0.8, changes=(OTHER_WORD,))
ALTERED = Verdict(text="Sunday", ok=False, kind="not found", nearest=NEAR)


def answered(score: float | None = 0.5, *, verdicts: Any = (), votes: Any = (), **fields: Any) -> TestRecord:
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

HELD, SHORT, NONE, BORNE_OUT = answered(1.0), answered(0.5), answered(None), answered(1.0, verdicts=[FOUND])
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
        (answered(votes=(0.5, 0.9), **OTHER), HELD, ("newly fails", "judge", "")),
        (answered(0.9, at_least=0.95), answered(0.9), ("newly fails", "bound", "")),
        (answered(verdicts=[ALTERED], **OTHER), HELD, ("newly fails", "altered", "Sunday")),
        (answered(verdicts=[CLAIM], retrieved_contexts=["Paint."]), BORNE_OUT, ("newly fails", "retrieval", "Monday")),
        # What is no longer retrieved was no evidence.
        (answered(verdicts=[CLAIM], retrieved_contexts=["Monday."]), BORNE_OUT, ("newly fails", "answer", CLAIM.text)),
        (answered(verdicts=[CLAIM], **OTHER), HELD, ("newly fails", "answer", "It is on Monday.")),
        (answered(verdicts=[CLAIM]), None, ("fails, new", "answer", "It is on Monday.")),
        (row("test_bot[q1]", outcome="error"), HELD, ("newly fails", "error", "")),
    ],
)
def test_a_test_has_one_kind_and_one_cause(now: TestRecord, before: TestRecord | None, expected: Any) -> None:
    assert became(now, before) == expected
    assert expected[0] in TEST_KINDS
    assert expected[1] in {None, *CAUSES}


def test_without_a_baseline_tests_fail_or_pass() -> None:
    run = document(HELD, answered(verdicts=[ALTERED]), NONE, SKIPPED, row("test_gate", gate=gate()))
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
    moved = replace(answered(judge="b"), id="tests/test_other.py::test_bot[q1]", file="tests/test_other.py")
    assert became(moved, answered(1.0, judge="a")) == ("newly fails", "judge", "")
    asks = answered(user_input="Where?", verdicts=[CLAIM])
    assert became(asks, HELD) == ("newly fails", "answer", CLAIM.text)
    (one,) = HELD.records
    both = replace(HELD, records=(one, replace(one, metric="correctness")))
    split = document(row("test_apart[q1]", replace(one, metric="correctness")), HELD)
    found = paired_tests(split, compare_documents(split, document(both)))
    assert [pair.before and pair.before.id for pair in found] == [None, HELD.id]
    twice = [answered(1.0, id="q1"), answered(0.5, id="q2")]
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
    made = answered(score, verdicts=verdicts, response=answer, retrieved_contexts=[*passages])
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
    before = answered(
        1.0, verdicts=[verdict("It.", ok=True, evidence=[evidence(text, [text], 0)])], retrieved_contexts=[text]
    )
    now = answered(verdicts=[verdict("It.", ok=False)], retrieved_contexts=shown, **OTHER)
    assert became(now, before)[1] == cause
