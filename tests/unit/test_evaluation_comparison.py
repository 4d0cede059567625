"""Two runs compared row by row: paired by id, and every row that is left out is listed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.table import Evaluation, Row, compared_records
from pytest_ragmetrics.runs.compare import PlacedRecord, key_of, sample_key
from pytest_ragmetrics.runs.tables import EarlierRun, compare_metric
from pytest_ragmetrics.runs.wording.comparisons import MetricComparison
from pytest_ragmetrics.stats.paired import paired_difference
from tests.tables import table

Scores = Mapping[str, float | None]
Column = list[PlacedRecord]
BEFORE = {"a": 0.5, "b": 1.0, "c": 0.75, "d": None, "e": 0.25, "gone": 1.0}
AFTER = {"e": 0.5, "d": 0.5, "c": 0.75, "b": 0.25, "a": None, "new": 0.0}


def column(scores: Scores, better: Any = "higher", judge: str | None = None, again: Scores | None = None) -> Column:
    rows = [*table(scores, judge=judge, better=better).rows, *table(again or {}, judge=judge).rows]
    both = Evaluation(metrics=("faithfulness",), rows=tuple(rows), better={"faithfulness": better})
    return compared_records(both, unique=False)["faithfulness"]


def compared(here: Column, there: Column) -> MetricComparison:
    return compare_metric("faithfulness", here, EarlierRun(records={"faithfulness": there}))


SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.none() | st.floats(0, 1))


@given(here=SCORES, there=SCORES)
def test_every_row_is_paired_or_listed(here: dict[str, float | None], there: dict[str, float | None]) -> None:
    """Rows are paired by id; one that is unscored in both runs is listed twice, any other once."""
    found = compared(column(here), column(there))
    changes = (*found.regressed, *found.improved, *found.unchanged)
    assert sorted(row.id for row in changes) == [row.id for row in found.rows]
    unscored = {*found.unscored_here, *found.unscored_there}
    places = [*(row.id for row in changes), *unscored, *found.only_here, *found.only_there]
    assert sorted(places) == sorted({*here, *there})
    assert all((row.before, row.after) == (there[row.id], here[row.id]) for row in found.rows)


def test_changes_are_sorted_by_their_size() -> None:
    before, after = dict.fromkeys("abcde", 0.5), {"a": 0.4, "b": 0.9, "c": 0.1, "d": 0.5, "e": 0.5 + 1e-12}
    found = compared(column(after), column(before))
    assert [[row.id for row in rows] for rows in (found.regressed, found.improved)] == [["c", "a"], ["b"]]
    assert [row.id for row in found.unchanged] == ["d", "e"]
    turned = compared(column(after, better="lower"), column(before, better="lower"))
    assert [[row.id for row in rows] for rows in (turned.regressed, turned.improved)] == [["b"], ["c", "a"]]


@pytest.mark.parametrize(
    ("here", "there", "message"),
    [
        (column(AFTER, judge="local (heuristic)"), column(BEFORE, judge="small"), "'local .* before of 'small'"),
        (column(AFTER), column(BEFORE, better="lower"), "higher scores are better here, lower ones there"),
        (column(AFTER), column(BEFORE, again={"b": 0.5, "gone": 0.5}), "'b' has several different scores in one run"),
    ],
)
def test_what_cannot_be_compared_is_an_error(here: Column, there: Column, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compared(here, there)
    assert compared(here, column({"elsewhere": 1.0}, judge="other")).rows == ()
    assert compared(here, column(BEFORE)).judges == (("local (heuristic)",) if "local" in message else ())


def test_samples_without_an_id_are_known_by_their_question_or_content() -> None:
    assert sample_key({"id": " ", "user_input": "Why?"}) == "Why?"
    first, second = sample_key({"response": "Moss."}), sample_key({"response": "Fern."})
    assert first != second
    assert first == sample_key({"response": "Moss."})
    assert key_of(Sample(response="Moss.")) == first
    assert key_of(Sample(id="", user_input="Why?", response="So.")) == "Why?"
    assert sample_key({"metadata": {"when": object, "\ud800": 1}}).startswith("row-")


def test_tables_are_compared_metric_by_metric() -> None:
    here = Evaluation(metrics=("faithfulness", "relevance"), rows=table(AFTER).rows)
    there = Evaluation(metrics=("faithfulness", "coherence"), rows=table(BEFORE).rows)
    found = here.compare(there, confidence=0.9)
    rows, before = compared_records(here)["faithfulness"], EarlierRun(records=compared_records(there))
    assert found["faithfulness"] == compare_metric("faithfulness", rows, before, confidence=0.9)
    assert (found.only_here, found.only_there) == (("relevance",), ("coherence",))
    assert str(found).endswith("only evaluated here: relevance\nonly evaluated there: coherence")
    with pytest.raises(KeyError, match="'relevance' was not compared; there are faithfulness"):
        found["relevance"]


@pytest.mark.parametrize(
    ("sample", "said"), [(Sample(id="q1"), "id 'q1'"), (Sample(user_input="Why?"), r"content 'Why\?'")]
)
def test_two_rows_of_one_key_are_an_error(sample: Sample, said: str) -> None:
    twice = Evaluation(metrics=("faithfulness",), rows=(Row(sample=sample), Row(sample=sample)))
    for here, there in ((twice, table({"q1": 1.0})), (table({"q1": 1.0}), twice)):
        with pytest.raises(ValueError, match=f"two rows have the {said}; give each sample its own id"):
            here.compare(there)


def test_rows_of_a_cluster_count_as_dependent() -> None:
    before = dict.fromkeys("abcdef", 0.5)
    after = dict(zip("abcdef", (0.6, 0.6, 0.4, 0.4, 0.7, 0.7), strict=True))
    clustered = table(after, clusters="xxyyzz").compare(table(before))["faithfulness"].difference
    assert clustered == paired_difference([*before.values()], [*after.values()], clusters="xxyyzz")


def test_a_comparison_prints_all_of_it() -> None:
    assert str(table(AFTER).compare(table(BEFORE))) == (
        "faithfulness 0.67 -> 0.50: -0.167 (95 % interval -0.80..+0.68, n=3)\n"
        "  judge: openai:small\n"
        "  regressed: 1\n"
        "    -0.75  1.00 -> 0.25  b\n"
        "  improved: 1\n"
        "    +0.25  0.25 -> 0.50  e\n"
        "  unchanged: 1\n"
        "  only here: 1 (new)\n"
        "  only there: 1 (gone)\n"
        "  unscored here: 1 (a)\n"
        "  unscored there: 1 (d)"
    )


def test_a_long_comparison_is_cut_short_and_safe_to_print() -> None:
    names = [f"q{number:02}" for number in range(30)]
    new = {f"new{number}\x1b[2J": 1.0 for number in range(12)}
    here = table({**dict.fromkeys(names[:15], 0.0), **new}, better="lower")
    there = table(dict.fromkeys(names, 1.0), better="lower")
    lines = str(here.compare(there)).splitlines()
    assert lines[0].startswith("faithfulness (lower is better) 1.00 -> 0.00: -1.000 (95 % interval -1.00..-0.56, n=15)")
    assert lines[2:4] == ["  regressed: 0", "  improved: 15"]
    assert "    ... and 5 more" in lines
    assert "  only here: 12 (new0[2J, new1[2J," in "\n".join(lines)
    assert lines[-1].endswith("q24 and 5 more)")
