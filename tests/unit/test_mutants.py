"""Mutants of answers: each has one fault, and what would leave the answer right is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.datasets.rows import NO_COLUMNS
from pytest_ragmetrics.evaluation.mutants import MUTANT_KINDS, Mutant, mutants_of
from pytest_ragmetrics.evaluation.mutation import (
    NOTICED_BY,
    Judged,
    MutationTable,
    answers_in,
    describe,
    drawn,
    killed,
    probe_answers,
)
from pytest_ragmetrics.evaluation.runner import BoundedMetric, bounded_metrics
from pytest_ragmetrics.metrics.registry import metric_named
from pytest_ragmetrics.runs.records import render_json
from tests.documents import document, record, row

PUMP = "The pump of the Marlow plant needs 20 minutes to fill."
CLOCK = "The clock of the old tower was built by Anna Berger on 4 May 1871."
OTHER = Sample(user_input="Where do walruses sleep?", retrieved_contexts=["Walruses sleep on drifting ice floes."])


def mutated(response: str, kind: str, *, passages: str | None = None, question: str = "How is it?") -> list[Mutant]:
    sample = Sample(id="r", user_input=question, response=response, retrieved_contexts=[passages or response])
    return [*mutants_of(sample, [kind], others=[OTHER], seed=3)]


@pytest.mark.parametrize(
    ("kind", "response", "before", "after"),
    [
        ("unit", PUMP, "minutes", "days"),
        ("unit", "A litre of the green paint costs €12 in every shop.", "€", "£"),
        ("unit", "Die Pumpe der alten Anlage braucht 20 Minuten und ist danach bereit.", "Minuten", "Tage"),
        ("negation", "The valve is opened slowly by the operator.", "is", "is not"),
        ("negation", "Das Ventil der Anlage ist aus Messing und hält viele Jahre.", "", ""),
        ("negation", "Das Ventil der Anlage ist aus reinem Messing gefertigt.", "ist", "ist nicht"),
        ("citation", "The valve is opened slowly by the operator [1].", "[1]", "[99]"),
        ("citation", "The valve is opened slowly by the operator.", "", " [99]"),
        ("refusal", PUMP, PUMP, "I am sorry, but I cannot answer this question."),
        ("passages", PUMP, "", ""),
    ],
)
def test_what_is_changed(kind: str, response: str, before: str, after: str) -> None:
    found = mutated(response, kind)
    assert [(it.before, it.after) for it in found] == (
        [(before, after)] if before or after or kind == "passages" else []
    )
    for it in found:
        assert it.sample.id == f"r-{kind}"
        assert it.sample != it.original


@pytest.mark.parametrize("kind", ["number", "date", "name"])
def test_a_changed_fact_stands_nowhere(kind: str) -> None:
    """Nothing else of the answer changes, and what is there now stands in neither the passage nor the question."""
    text = f"{PUMP} {CLOCK}"
    (found,) = mutated(text, kind)
    assert found.before != found.after
    changed = re.search(rf"\S*{re.escape(found.after)}\S*", (found.sample.response or "")[found.start :])
    assert changed is not None
    assert changed[0] not in text.split()
    assert found.sample.response == text[: found.start] + found.after + text[found.start + len(found.before) :]


@pytest.mark.parametrize(
    ("kind", "response", "passages", "question"),
    [
        ("number", "1. Open the valve slowly.\n2. Fill the pump tank.", None, "How?"),  # list numbers
        ("number", "Passage 3 says that the valve opens slowly.", None, "How?"),
        ("number", "The pump needs 20 minutes to fill.", "The pump needs a while until full.", "How?"),  # it was wrong
        ("number", "The pump needs 20-30 minutes to fill.", None, "How?"),  # the other end would be right
        ("unit", "It takes 20 minutes to fill the pump.", "It takes 20 minutes or 20 days to fill the pump.", "How?"),
        ("name", PUMP, None, "What of the Marlow plant?"),
        ("name", 'Fans of the film call it "The Marlow Story" in jest.', None, "How?"),  # a title
        ("negation", "Is the valve opened slowly by operators?", None, "How?"),
        ("negation", "The valve is opened by hand or by a motor.", None, "How?"),
        ("negation", "The valve is never opened by the operator.", None, "How?"),
        ("negation", "Some operators say the valve is opened slowly.", None, "How?"),
        ("half", f"{PUMP} {PUMP}", None, "How?"),
        ("half", PUMP, None, "How?"),
        ("truncated", "Open the valve slowly now.", None, "How?"),
        ("refusal", "The valve opens slowly. The documents do not say who built it.", None, "How?"),
        ("quotation", "Насос заполняется двадцать минут после включения.", None, "Как?"),  # no words in the language
        ("sentence", "I cannot answer this question.", PUMP, "How?"),
    ],
)
def test_what_would_be_right_is_refused(kind: str, response: str, passages: str | None, question: str) -> None:
    assert mutated(response, kind, passages=passages, question=question) == []


@pytest.mark.parametrize("kind", ["half", "truncated"])
def test_what_is_dropped_is_missing(kind: str) -> None:
    text = f"{PUMP} {CLOCK} Visitors climb ninety narrow wooden stairs before they reach the bronze bell chamber."
    (found,) = mutated(text, kind)
    assert found.sample.response == (text[: found.start] + text[found.start + len(found.before) :]).strip()
    assert (found.after, len(found.before) > 20) == ("", True)


def test_swapped_passages_share_no_word_with_the_question() -> None:
    """The row keeps its answer; without other passages there is no such mutant."""
    (found,) = mutated(PUMP, "passages")
    assert found.sample.retrieved_contexts == OTHER.retrieved_contexts
    assert found.sample.response == PUMP
    assert mutated(PUMP, "passages", question="Do walruses sleep?") == []
    assert [*mutants_of(Sample(response=PUMP), ["passages"], others=[OTHER])] == []
    assert [*mutants_of(Sample(response=PUMP), ["citation"])] == []


def test_the_seed_and_the_row_decide() -> None:
    """Other kinds and rows change nothing."""
    sample = Sample(id="r", response=f"{PUMP} {CLOCK}", retrieved_contexts=[f"{PUMP} {CLOCK}"])
    everything = [*mutants_of(sample, others=[OTHER], seed=1)]
    assert everything == [*mutants_of(sample, others=[OTHER], seed=1)]
    assert [it for it in everything if it.kind == "sentence"] == [*mutants_of(sample, ["sentence"], seed=1)]
    assert len({it.after for seed in range(9) for it in mutants_of(sample, ["sentence"], seed=seed)}) > 1
    assert NOTICED_BY.keys() == set(MUTANT_KINDS)
    assert all(map(metric_named, {name for names in NOTICED_BY.values() for name in names}))


@pytest.mark.parametrize(
    ("bound", "original", "mutant", "expected"),
    [
        (0.8, 1.0, 0.7, True),
        (0.8, 1.0, 0.9, False),
        (0.8, 0.7, 0.1, None),  # the row fails as it is
        (None, 1.0, 0.9, True),
        (None, 0.5, 0.5, False),
        (None, 0.0, 0.0, None),  # it cannot become worse
        (None, None, 0.5, None),
        (0.8, 1.0, None, None),
    ],
)
@pytest.mark.parametrize("name", ["numbers_aligned", "hallucination"])
def test_what_kills(
    name: str, bound: float | None, original: float | None, mutant: float | None, expected: bool | None
) -> None:
    (metric,) = bounded_metrics([name])
    lower = metric.metric.better == "lower"
    if bound is not None:
        metric = BoundedMetric.of(metric.metric, round(1 - bound, 6) if lower else bound, name=name)

    def result(score: float | None) -> MetricResult | None:
        return None if score is None else MetricResult(round(1 - score, 6) if lower else score, metric=name)

    assert killed(metric, result(original), result(mutant)) is expected


@pytest.mark.parametrize(
    ("verdicts", "fails", "expected"),
    [
        ((True, False), False, True),
        ((False, None), False, False),
        ((None,), False, None),
        ((False, None), True, None),  # the other test of the row is red, if not by a score
        ((True, None), True, True),
    ],
)
def test_what_survives(verdicts: Sequence[bool | None], fails: bool, expected: bool | None) -> None:
    found = dict(zip("ab", verdicts, strict=False))
    assert Judged(kind="number", text="r", verdicts=found, fails=fails).killed is expected


def table_rows(texts: Sequence[str]) -> list[Sample]:
    return [Sample(id=f"r{n}", user_input="Why?", response=it, retrieved_contexts=[it]) for n, it in enumerate(texts)]


def test_the_table_names_survivors_and_what_notices_them() -> None:
    """What the metrics of the command do not see is listed with its place."""
    table = probe_answers(
        table_rows([PUMP, CLOCK]), bounded_metrics(["numbers_aligned"]), kinds=["number", "unit", "date"]
    )
    lines = [*table.lines()]
    assert table.counts()["number"]["any"] == (1, 1)
    assert table.share is not None
    assert "  unit; what would notice: faithfulness" in lines
    assert "    r0 at 38: Marlow plant needs 20 [minutes -> days] to fill." in lines
    assert table.to_document()["kinds"]["unit"]["numbers_aligned"] == {"killed": 0, "judged": 1}
    both = probe_answers(table_rows([PUMP]), bounded_metrics(["numbers_aligned", "names_aligned"]), kinds=["half"])
    assert (both.share, next(iter(both.lines()))) == (
        None,
        "1 row, 0 mutants; how many were noticed, of how many with a verdict:",
    )


def test_another_hour_is_an_hour() -> None:
    """One that the passage has is none."""
    (found,) = mutated("The workshop of the yard opens its doors at 14:00 on weekdays.", "number")
    assert (found.before, 1 <= int(found.after) <= 12) == ("14", True)


@pytest.mark.parametrize(
    ("measured", "advice"),
    [
        ([{}], "numbers_aligned, or faithfulness"),
        ([{"numbers_aligned": False}], "a bound for numbers_aligned, or faithfulness"),
        ([{"numbers_aligned": False, "faithfulness": True}], "a bound for numbers_aligned"),
        ([{"numbers_aligned": True, "faithfulness": True}, {"faithfulness": True}], "numbers_aligned"),
        ([{"numbers_aligned": True, "faithfulness": True}], "a higher bound, or a stronger judge"),
    ],
)
def test_what_would_notice(measured: Sequence[Mapping[str, bool]], advice: str) -> None:
    """Of the metrics that notice a kind: those that a survivor lacks, and those that only lack a bound."""
    judged = [Judged(kind="number", text="r", verdicts={"a": False}, measured=each) for each in measured]
    assert MutationTable(judged, judges=["a"], kinds=["number"], rows=1, seed=0).advice("number") == advice


LONG = "The pump\nfills. The valve is shut."


@pytest.mark.parametrize(
    ("text", "start", "before", "after", "said"),
    [
        ("The valve (old) is shut [1].", 11, "old", "new", "at 11: The valve ([old -> new]) is shut [1]."),
        ("The valve is shut.", 17, "", " [99]", "at 17: The valve is shut [added: [99]]."),
        (LONG, len(LONG), "", " It rusts.", "at 34: fills. The valve is shut. [added: It rusts.]"),
        (LONG, 0, "The pump\nfills. ", "", "at 0: [removed: The pump fills.] The valve is shut."),
        (LONG, 15, " The valve is shut.", "", "at 15: The pump fills. [removed: The valve is shut.]"),
    ],
)
def test_what_is_left_says_where_it_is(text: str, start: int, before: str, after: str, said: str) -> None:
    sample = Sample(id="r", response=text)
    mutant = Mutant(kind="half", original=sample, sample=sample, start=start, before=before, after=after)
    assert describe(mutant) == f"r {said}"
    (swapped,) = mutated(PUMP, "passages")
    assert describe(swapped) == "r: the passages became those of another row"


def test_answers_of_a_file(tmp_path: Path) -> None:
    """Each answer of a run once; rows without a response and conversations are left out."""
    file, talk = tmp_path / "rows.json", [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "No."}]
    rows = [{"id": "a", "response": "No."}, {"id": "b"}, {"id": "c", "messages": talk}, {"id": "d", "response": "Yes."}]
    file.write_text(json.dumps(rows), encoding="utf-8")
    samples = answers_in(file, NO_COLUMNS)
    assert [it.id for it in samples] == ["a", "d"]
    assert (len(drawn(samples, 1, 0)), drawn(samples, 9, 0)) == (1, samples)
    records = [record(name, sample={"id": "a", "response": "No."}) for name in ("mrr", "map")]
    file.write_text(render_json(document(row("t", *records))), encoding="utf-8")
    assert answers_in(file, NO_COLUMNS) == samples[:1]
