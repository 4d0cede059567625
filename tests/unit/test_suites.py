"""A whole set compared with a threshold or an earlier run: outcomes, messages, and the files of earlier runs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_ragmetrics import assert_mean, assert_no_regression, assert_not_worse, assert_pass_rate
from pytest_ragmetrics.core.errors import RagMetricsError, UnscoredError
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.assert_sets import read_baseline
from pytest_ragmetrics.evaluation.table import Evaluation, Row, compared_records
from pytest_ragmetrics.judges.context import Scoring
from pytest_ragmetrics.runs.records import DocumentError, Record, record_of, render_json
from pytest_ragmetrics.stats.intervals import mean_interval
from tests import documents
from tests.metrics.fake_session import FakeSession
from tests.tables import table

SCORES = [0.9, 0.8, 1.0, 0.7, 0.85] * 4
HALF = table([0.5] * 5)


def failure(assertion: Callable[..., object], *args: Any, **arguments: Any) -> list[str]:
    with pytest.raises(AssertionError) as raised:
        assertion(*args, **arguments)
    return str(raised.value).splitlines()


def test_a_mean_is_compared_with_a_bound() -> None:
    evaluation = table(SCORES)
    found = assert_mean(evaluation, min=0.85)
    assert found.value == pytest.approx(0.85)
    assert (found.metric, found.n, found.interval) == ("faithfulness", 20, None)
    assert assert_mean(evaluation, 0.8).outcome == "passed"
    assert assert_mean(evaluation, max=0.85).better == "lower"
    assert assert_mean([MetricResult(1.0, metric="recall")], 0.5).metric == "recall"
    assert assert_mean([1.0], 0.5, metric="mine").metric == "mine"
    assert all(result.comparison is None for row in evaluation.rows for result in row.results.values())
    lines = failure(assert_mean, table([0.9, 0.5, 0.25, 0.8]), 0.85)
    assert lines[0] == "faithfulness mean 0.61 < 0.85 (n=4): failed"
    assert lines[1:] == ["  0.25  q2: reason 2", "  0.50  q1: reason 1", "  0.80  q3: reason 3"]
    lines = failure(assert_mean, table(index / 20 for index in range(20)), max=0.2)
    assert lines[:2] == ["faithfulness mean 0.47 > 0.20 (n=20): failed", "  0.95  q19: reason 19"]
    assert lines[-2:] == ["  0.50  q10: reason 10", "  ... and 5 more"]


def test_with_a_confidence_the_end_of_the_interval_decides() -> None:
    interval = mean_interval(SCORES)
    assert assert_mean(table(SCORES), interval.low - 0.001, confidence=0.95).interval == interval
    failed = failure(assert_mean, table(SCORES), interval.high + 0.001, confidence=0.95)
    assert failed[0] == "faithfulness mean 0.85 < 0.90 (95 % interval 0.70..0.900, n=20): failed"
    assert failed[1].startswith("  0.70  q3")
    for scores, bound, first, second in (
        (SCORES, 0.85, "0.85 >= 0.85 (95 % interval 0.70..0.90, n=20)", "the mean is too close to the bound, or the"),
        ([1.0] * 10, 0.9, "1.00 >= 0.90 (95 % interval 0.69..1.00, n=10)", "or the rows too few, to tell how many"),
        ([1.0] * 20, 0.9, "1.00 >= 0.90 (95 % interval 0.83..1.00, n=20)", "about 16 more rows would settle it if "),
    ):
        lines = failure(assert_mean, scores, bound, confidence=0.95)
        assert lines[0] == f"score mean {first}: inconclusive: too few rows to tell"
        assert second in lines[1]


def test_what_is_inconclusive_may_pass() -> None:
    few = [1.0] * 17 + [0.0] * 3
    assert assert_mean(few, 0.9, confidence=0.95, inconclusive="pass").outcome == "inconclusive"
    assert assert_pass_rate(few, 0.5, 0.9, confidence=0.95, inconclusive="pass").outcome == "inconclusive"
    assert assert_not_worse(table(few), table(few), margin=0.1, inconclusive="pass")["faithfulness"].unchanged
    assert failure(assert_mean, few, 0.98, confidence=0.95, inconclusive="pass")[0].endswith("failed")
    worse = table([0.0] * 20)
    assert failure(assert_not_worse, worse, table(few), margin=0.1, inconclusive="pass")[0].endswith("failed")


def test_samples_of_a_cluster_count_as_dependent() -> None:
    scores = [1.0, 1.0, 1.0, 1.0, 0.2, 0.2, 0.2, 0.2, 0.8, 0.8, 0.8, 0.8]
    clusters = ["a"] * 4 + ["b"] * 4 + [{"deep": 1}] * 4
    named = assert_mean(table(scores, clusters=clusters), 0.0, confidence=0.9).interval
    expected = mean_interval(scores, confidence=0.9, clusters=[1] * 4 + [2] * 4 + [3] * 4)
    assert named == assert_mean(scores, 0.0, confidence=0.9, clusters="aaaabbbbcccc").interval == expected
    alone = assert_mean(table(scores, clusters=clusters), 0.0, confidence=0.9, clusters=range(12)).interval
    assert alone == mean_interval(scores, confidence=0.9, clusters=range(12))
    rate = assert_pass_rate(table(scores, clusters=clusters), 0.5, 0.0, confidence=0.9).interval
    flags = [float(score >= 0.5) for score in scores]
    assert rate == mean_interval(flags, confidence=0.9, clusters=list(map(str, clusters)))
    # Those of unscored rows are left out with them.
    with_gap = assert_mean([0.5, None, 1.0, 0.6], 0.0, confidence=0.9, clusters="aabb", skip_unscored=True)
    assert with_gap.interval == mean_interval([0.5, 1.0, 0.6], confidence=0.9, clusters="abb")
    assert (with_gap.n, with_gap.unscored) == (3, 1)
    with pytest.raises(ValueError, match="2 clusters for 3 results"):
        assert_mean([0.5, 0.6, 0.7], 0.5, clusters="ab")


def answers(*scores: list[float], vacuous: tuple[float, ...] = ()) -> Evaluation:
    """Return a table of several answers to each of some rows, with their scores."""
    rows = []
    for row, of_row in enumerate(scores):
        for number, score in enumerate(of_row, start=1):
            sample = Sample(id=f"q{row}", response=f"{number}", metadata={"answer": number})
            rows.append(Row(sample=sample, results={"m": MetricResult(score, metric="m", vacuous=score in vacuous)}))
    return Evaluation(metrics=("m",), rows=tuple(rows), better={"m": "higher"})


def test_answers_to_a_row_count_together() -> None:
    given = answers([0.9, 0.9, 0.9], [0.9, 0.2, 0.1], [0.9, 0.9, 0.4], [1.0, 1.0, 1.0])
    flags = [1, 1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1]
    found = assert_pass_rate(given, 0.8, 0.5, confidence=0.9, inconclusive="pass")
    assert found.interval == mean_interval(flags, confidence=0.9, clusters=list("aaabbbcccddd"))
    every = assert_pass_rate(given, 0.8, 0.5, confidence=0.9, inconclusive="pass", all_pass=True)
    assert (every.n, every.reached, every.interval) == (4, 2, mean_interval([1, 0, 0, 1], confidence=0.9))
    first, *worst = failure(assert_pass_rate, given, 0.8, 0.6, all_pass=True)
    assert first == "m pass rate 0.50 < 0.60 (2 of 4 rows with every score >= 0.8): failed"
    assert worst == ["  0.10  q1, 2 of 3 answers", "  0.40  q2, 1 of 3 answers"]
    first, together, *worst = failure(assert_mean, given, 0.9)
    assert (first, together) == (
        "m mean 0.76 < 0.90 (n=12): failed",
        "  12 answers to 4 rows: those to a row count together",
    )
    assert worst == ["  0.10  q1, 2 of 3 answers", "  0.40  q2, 1 of 3 answers"]
    many = answers(*[[0.9, 0.8]] * 18, *[[0.5, 0.1]] * 6)
    assert re.fullmatch(
        r"  about \d+ more answers would settle it if.*", failure(assert_mean, many, 0.6, confidence=0.95)[2]
    )
    # Where lower scores are good the highest decides; scores that are no answers are rows of their own.
    assert assert_pass_rate(given, max_score=0.9, min_rate=0.7, all_pass=True).reached == 3
    assert assert_pass_rate([0.9, 0.9, 0.1], 0.8, 0.6, all_pass=True).n == 3
    # A row without anything to check is left out; another is judged by the answers that had something.
    silent = answers([1.0, 0.9], [1.0, 1.0], [0.3, 0.9], vacuous=(1.0,))
    found = assert_pass_rate(silent, 0.8, 0.5, all_pass=True)
    assert (found.n, found.vacuous, found.reached) == (2, 1, 1)
    assert assert_pass_rate(silent, 0.8, 0.5, all_pass=True, vacuous="count").n == 3


def test_answers_to_a_row_are_no_two_rows() -> None:
    given = answers(*[[0.9, 0.2, 0.8]] * 6)
    (row, *_) = assert_no_regression(given, given).metrics["m"].rows
    assert (row.id, row.change) == ("q0", 0.0)
    with pytest.raises(ValueError, match=r"two rows have the id 'q0'.*or several answers .*\{\"answer\": 2\}"):
        assert_no_regression(replace(given, rows=(*given.rows, given.rows[0])), given)


def test_a_pass_rate_is_compared_with_a_bound() -> None:
    found = assert_pass_rate(table(SCORES), min_score=0.8, min_rate=0.8)
    assert (found.value, found.reached, found.n) == (0.8, 16, 20)
    assert assert_pass_rate(SCORES, max_score=0.8, min_rate=0.4).reached == 8
    first = "faithfulness pass rate 0.50 < 0.75 (2 of 4 scores >= 0.8): failed"
    worst = ["  0.25  q2: reason 2", "  0.50  q1: reason 1"]
    assert failure(assert_pass_rate, table([0.9, 0.5, 0.25, 0.8]), 0.8, 0.75) == [first, *worst]
    # A row that fails is not shown with the very number that it should have.
    first = "score pass rate 0.50 < 0.75 (1 of 2 scores <= 0.8): failed"
    failed = failure(assert_pass_rate, [0.80001, 0.1], max_score=0.8, min_rate=0.75)
    assert failed == [first, "  0.80001  results[0]"]
    first, second = failure(assert_pass_rate, SCORES, 0.8, 0.7, confidence=0.95)[:2]
    assert first.startswith("score pass rate 0.80 >= 0.70 (95 % interval 0.56..0.94, 16 of 20 scores >= 0.8): inconcl")
    assert second == "  about 128 more rows would settle it if they are like these"
    assert assert_pass_rate(SCORES, 0.8, 0.56, confidence=0.95).interval == mean_interval([1.0] * 16 + [0.0] * 4)


def test_scores_are_taken_in_any_form_of_one_metric() -> None:
    scores = [0.9, 1.0, 1.0, 0.5]
    forms: list[Any] = [[0.9, 1, True, np.float32(0.5)], np.array(scores), iter(scores), table(scores).rows]
    forms.append([MetricResult(value, metric="recall") for value in scores])
    assert [assert_mean(form, 0.85).value for form in forms] == pytest.approx([0.85] * 5)
    both = {"a": MetricResult(0.2, metric="a"), "b": MetricResult(0.9, metric="b")}
    rows = (Row(sample=Sample(id="q"), results=both),)
    evaluation = Evaluation(metrics=("a", "b"), rows=rows)
    assert {assert_mean(given, 0.9, metric="b").metric for given in (evaluation, rows)} == {"b"}
    for results in (evaluation, rows, list(both.values())):
        with pytest.raises(ValueError, match="results are of several metrics, a, b: say which with metric="):
            assert_mean(results, 0.5)
    with pytest.raises(KeyError, match="'c' was not evaluated; there are a, b"):
        assert_mean(evaluation, 0.5, metric="c")
    with pytest.raises(UnscoredError, match="c: 1 of 1 row is unscored"):
        assert_mean(rows, 0.5, metric="c")


def test_rows_without_a_score_are_named() -> None:
    gaps = table([0.9, None, 0.8, None])
    first = "faithfulness: 2 of 4 rows are unscored; skip_unscored=True leaves them out"
    for assertion in (partial(assert_mean, gaps, 0.5), partial(assert_pass_rate, gaps, 0.5, 0.5)):
        with pytest.raises(UnscoredError) as raised:
            assertion()
        assert str(raised.value).splitlines() == [first, "  q1: no claims", "  q3: no claims"]
        assert assertion(skip_unscored=True).unscored == 2
    assert "  left out: 2 unscored rows" in failure(assert_mean, gaps, 0.9, skip_unscored=True)
    refused: list[float | UnscoredError] = [0.5, UnscoredError("the judge refused")]
    with pytest.raises(UnscoredError, match=r"(?s)1 of 2 rows is unscored.*results\[1\]: the judge refused"):
        assert_mean(refused, 0.5)
    with pytest.raises(UnscoredError, match=r"\.\.\. and 3 more"):
        assert_mean([0.5, *[None] * 13], 0.5)
    for nothing in ([], [None], table([]), table([None])):
        with pytest.raises(UnscoredError, match=r"there are no rows|1 of 1 row is unscored"):
            assert_mean(nothing, 0.0, skip_unscored=True)


@pytest.mark.parametrize(
    ("assertion", "arguments", "error", "message"),
    [
        (assert_mean, {}, ValueError, "give min= or max=, the one bound"),
        (assert_mean, {"min": 0.5, "max": 0.6}, ValueError, "give min= or max=, the one bound"),
        (assert_mean, {"min": float("nan")}, ValueError, "min must be a finite number"),
        (assert_mean, {"min": True}, TypeError, "min must be a number, not True"),
        (assert_mean, {"min": "0.9"}, TypeError, "min must be a number, not '0.9'"),
        (assert_mean, {"min": 90}, ValueError, "min=90 is outside of the scale of faithfulness, 0 to 1: write 0.9,"),
        (assert_mean, {"max": -0.1}, ValueError, "max=-0.1 is outside of the scale of faithfulness, 0 to 1: write a n"),
        (assert_pass_rate, {"min_score": 80, "min_rate": 0.9}, ValueError, "min_score=80 is outside .* write 0.8,"),
        (assert_pass_rate, {"max_score": 20, "min_rate": 0.9}, ValueError, "max_score=20 is outside .* write 0.2,"),
        (assert_not_worse, {"margin": 5}, ValueError, "margin=5 is outside of the scale of .*, 0 to 1: write 0.05"),
        (assert_mean, {"min": 0.5, "confidence": 95}, ValueError, "confidence must be a number between 0 and 1"),
        (assert_mean, {"min": 0.5, "inconclusive": "pass"}, ValueError, "inconclusive='pass' goes with a confidence="),
        (assert_mean, {"min": 0.5, "confidence": 0.9, "inconclusive": "skip"}, ValueError, "'pass', not 'skip'"),
        (assert_pass_rate, {"min_score": 0.5}, ValueError, "min_rate must be a share between 0 and 1"),
        (assert_pass_rate, {"min_score": 0.5, "min_rate": 95}, ValueError, "min_rate must be a share"),
        (assert_pass_rate, {"min_rate": 0.5}, ValueError, "give min_score= or max_score="),
        (assert_not_worse, {"margin": -0.02}, ValueError, r"margin must not be negative.*write 0.02, not -0.02"),
        (assert_not_worse, {"confidence": 1.0}, ValueError, "confidence must be"),
        (assert_no_regression, {"alpha": 5}, ValueError, "alpha must be a number between 0 and 1, such as 0.05, not 5"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(
    assertion: Callable[..., object], arguments: Mapping[str, Any], error: type[Exception], message: str
) -> None:
    baseline = {"baseline": table([0.5])} if assertion in (assert_not_worse, assert_no_regression) else {}
    for results in (table([0.5]), table([0.5]).rows):
        with pytest.raises(error, match=message):
            assertion(results, **baseline, **arguments)


def test_a_bound_is_on_the_scale_that_is_known() -> None:
    rows = table([30.0, 40.0]).rows
    assert assert_mean(rows, 20).value == 35.0
    assert assert_mean([0.0, 1.0], max=2).value == 0.5
    own = Evaluation(metrics=("faithfulness",), rows=rows, scales={"faithfulness": (0.0, 50.0)})
    assert assert_mean(own, 20).value == 35.0
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: assert_mean(own, 60), "min=60 is outside of the scale of .*, 0 to 50: write a number on it"),
        (lambda: assert_mean([0.5], 60, metric="faithfulness"), "min=60 is outside .*, 0 to 1: write 0.6"),
        (lambda: own.failures(60), "the bound of faithfulness=60 is outside of the scale of faithfulness"),
        (lambda: own.failures({"faithfulness": True}), "the bound of faithfulness must be a number, not True"),
        (lambda: own.corrected_mean("faithfulness", tpr=0.9, tnr=0.9, threshold=60), "threshold=60 is outside of the"),
    ]
    for call, message in refused:
        with pytest.raises((TypeError, ValueError), match=message):
            call()


@pytest.mark.parametrize(
    ("results", "message"),
    [
        *(("0.5", "not str"), (0.5, "not float")),
        (["0.5"], r"results\[0\] is of type str; give a score, a row of an Evaluation, or None"),
        ([*table([0.5]).rows, 0.5], "partly rows and partly scores"),
        ([0.5, float("inf")], r"results\[1\] is inf, not a finite number; give None"),
    ],
)
def test_what_are_no_scores_is_refused(results: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        assert_mean(results, 0.5)


def test_intervals_end_at_the_scale() -> None:
    found = assert_mean([4.0, 5.0, 5.0, 4.5, 4.0, 5.0], 4.0, confidence=0.9)
    assert found.interval == mean_interval([4.0, 5.0, 5.0, 4.5, 4.0, 5.0], confidence=0.9, bounds=None)
    negative = assert_mean([-0.5, 0.5, 0.25], -1.0, confidence=0.9).interval
    assert negative == mean_interval([-0.5, 0.5, 0.25], confidence=0.9, bounds=(-1.0, 1.0))
    scaled = replace(table([5.0, 5.0]), scales={"faithfulness": (1.0, 5.0)})
    interval = assert_mean(scaled, 1.0, confidence=0.9).interval
    assert interval == mean_interval([5.0, 5.0], confidence=0.9, bounds=(1.0, 5.0))


def test_in_a_dry_run_nothing_fails() -> None:
    """Its scores are placeholders."""
    evaluation, before = table([0.1] * 9), table([0.9] * 9)
    for row in evaluation.rows:
        row.results["faithfulness"].decides = False
    assert assert_mean(evaluation, 0.9).outcome == "failed"
    assert assert_pass_rate([row.results["faithfulness"] for row in evaluation.rows], 0.9, 0.9).outcome == "failed"
    assert assert_not_worse(evaluation, before)["faithfulness"].regressed
    assert assert_no_regression(evaluation, before).drops["faithfulness"].shown


def test_what_is_not_worse_passes() -> None:
    better = table(min(1.0, score + 0.3) for score in [0.4, 0.5, 0.6] * 30)
    assert not assert_not_worse(better, table([0.4, 0.5, 0.6] * 30))["faithfulness"].regressed
    assert assert_not_worse(table([0.5] * 72), table([0.5] * 72), margin=0.05)["faithfulness"].unchanged
    lines = failure(assert_not_worse, table([0.5] * 71), table([0.5] * 71), margin=0.05)
    assert lines[1].endswith("it is at most 0.051 worse; this margin takes 72 rows or more, even where none changes")
    advice = "; without a margin only a proven gain passes: give margin=, or use assert_no_regression"
    assert failure(assert_not_worse, HALF, HALF)[1].endswith(advice)


def test_a_loss_of_one_group_is_found() -> None:
    languages = [{"language": "de"}] * 10 + [{}] * 20
    before = table([1.0] * 24 + [0.0] * 6, metadata=languages)
    after = table([0.0] * 7 + [1.0] * 23, metadata=languages)
    assert not assert_no_regression(after, before).drops["faithfulness"].by_group
    first, *_ = failure(assert_no_regression, after, before, by="language")
    assert "; language=de: 7 of 10 rows got worse, 0 better; if nothing had changed, so large a drop in one of" in first
    with pytest.raises(ValueError, match="by='tongue': no row has this field in its metadata; there are language"):
        assert_no_regression(after, before, by="tongue")


def test_worse_fails_with_the_comparison() -> None:
    worse = table(score - 0.2 - 0.02 * (index % 2) for index, score in enumerate(SCORES * 3))
    first, *rest = failure(assert_not_worse, worse, table(SCORES * 3), margin=0.02)
    compared, *lines = str(worse.compare(table(SCORES * 3))).splitlines()
    assert (first, rest) == (f"{compared}, margin 0.02: failed", lines)


def test_what_may_be_worse_is_inconclusive() -> None:
    before = table([0.5, 1.0] * 100)
    changed = table(([0.5, 1.0] * 100)[index] - (0.4 if index % 20 == 0 else 0.0) for index in range(200))
    lines = failure(assert_not_worse, changed, before, margin=0.03)
    assert lines[0].endswith("margin 0.03: inconclusive: too few rows to tell")
    told = re.fullmatch(r"  about \d+ more rows would settle it .*; with 95 % .* it is at most (.*) worse", lines[1])
    assert told
    assert_not_worse(changed, before, margin=float(told[1]))


def test_worse_is_higher_where_lower_is_better() -> None:
    scores = [0.1, 0.2, 0.3, 0.15] * 10
    lower, higher = (table([score + change for score in scores], better="lower") for change in (0.0, 0.5))
    lines = failure(assert_not_worse, higher, lower, margin=0.1)
    assert lines[0].startswith("faithfulness (lower is better) 0.19 -> 0.69: +0.500")
    assert assert_not_worse(lower, higher)["faithfulness"].improved
    assert assert_no_regression(lower, higher)["faithfulness"].improved
    first = failure(assert_no_regression, higher, lower)[0]
    assert first.startswith("faithfulness (lower is better) 0.19 -> 0.69: 40 of 40 rows got worse, 0 better; if no")


def test_a_regression_fails_only_where_it_is_proven() -> None:
    before = table([1.0] * 10)
    lines = failure(assert_no_regression, table([0.0] * 5 + [1.0] * 5), before)
    chance = "if nothing had changed, so large a drop comes in 3.12 % of runs (limit 5 %)"
    assert lines[0] == f"faithfulness 1.00 -> 0.50: 5 of 10 rows got worse, 0 better; {chance}"
    assert "    -1.00  1.00 -> 0.00  q0" in lines
    found = assert_no_regression(table([0.0] * 4 + [1.0] * 6), before)
    assert found.drops["faithfulness"].p == 0.0625
    told = "10 rows like these show a drop of 0.7 or more in at least 8 of 10 runs, 140 rows one of 0.1"
    assert str(found).splitlines()[0].endswith(f"comes in 6.25 % of runs (limit 5 %); {told}")
    assert not assert_no_regression(table([0.0] * 6 + [1.0] * 4), before, alpha=0.01).drops["faithfulness"].shown
    wide = replace(table([3.0] * 50), scales={"faithfulness": (1.0, 5.0)})
    assert "50 rows like these show a drop of 0.64 or more" in str(assert_no_regression(wide, wide))
    few = assert_no_regression(table([1.0, 0.0, 0.0, 1.0, 0.5]), table([0.0, 1.0, 0.5, 1.0, 1.0]))
    assert "5 rows like these can hardly show a drop" in str(few)
    # Six rows of one document are one.
    dropped, earlier = [0.0] * 6, [1.0] * 6
    assert failure(assert_no_regression, table(dropped), table(earlier))
    whole = assert_no_regression(table(dropped, clusters="aaaaaa"), table(earlier, clusters="aaaaaa"))
    assert (whole.drops["faithfulness"].changed, whole.drops["faithfulness"].p) == (1, 0.5)


EXTRA = Evaluation(metrics=("faithfulness", "extra"), rows=HALF.rows)


def test_all_metrics_are_compared_unless_one_is_named() -> None:
    found = assert_no_regression(EXTRA, HALF)
    assert (list(found.metrics), found.only_here) == (["faithfulness"], ("extra",))
    assert assert_no_regression(EXTRA, HALF, metrics="faithfulness").only_here == ()
    assert assert_no_regression(HALF.rows, HALF).metrics.keys() == {"faithfulness"}


@pytest.mark.parametrize(
    ("results", "metrics", "message"),
    [
        (EXTRA, "extra", "the baseline has no scores of extra; it has faithfulness"),
        (EXTRA, ["none"], "'none' was not evaluated"),
        (table([0.5], judge="other"), None, "of 'other', those before of 'openai:small'"),
        ([0.5], None, "single scores do not say which samples they belong to"),
        (0.5, None, "results must be an Evaluation or its rows"),
        (table([]), None, r"(?s)no row has a score in both.*only there: 5 .q0.*ids that stay the same"),
    ],
)
def test_nothing_to_compare_is_an_error(results: Any, metrics: Any, message: str) -> None:
    with pytest.raises((KeyError, TypeError, ValueError), match=message):
        assert_no_regression(results, HALF, metrics=metrics)


def test_a_row_that_lost_its_score_is_named() -> None:
    before, after = table([0.5, 0.6, None, *[0.5] * 5]), table([0.5, None, None, *[0.5] * 5])
    with pytest.raises(UnscoredError) as raised:
        assert_no_regression(after, before)
    first = "faithfulness: 1 of 8 rows is unscored; skip_unscored=True leaves them out"
    assert str(raised.value).splitlines() == [first, "  q1: no claims"]
    found = assert_no_regression(after, before, skip_unscored=True)["faithfulness"]
    assert (found.unscored_here, found.unscored_there) == (("q1", "q2"), ("q2",))


def test_the_baseline_may_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    HALF.to_json(file)
    running = FakeSession()
    running.baseline = file
    with running.running():
        assert assert_no_regression(HALF) == assert_no_regression(HALF, str(file)) == assert_no_regression(HALF, HALF)
    with FakeSession().running(), pytest.raises(ValueError, match="give baseline=, or run pytest with --rag-baseline="):
        assert_no_regression(HALF)
    with pytest.raises(ValueError, match="there is no baseline"):
        assert_no_regression(HALF)
    for unreadable in (tmp_path / "none.json", tmp_path):
        with pytest.raises(RagMetricsError, match=unreadable.name):
            assert_no_regression(HALF, unreadable)


def record(name: str, score: float | None, *, metric: str = "harmfulness") -> Record:
    outcome = UnscoredError("no") if score is None else MetricResult(score, metric=metric, judge="openai:small")
    return record_of(Scoring(metric=metric, sample=Sample(id=name), outcome=outcome, better="lower"))


def harms(scores: Mapping[str, float]) -> Evaluation:
    harm = {name: MetricResult(score, metric="harmfulness", judge="openai:small") for name, score in scores.items()}
    rows = tuple(Row(sample=Sample(id=name), results={"harmfulness": it}) for name, it in harm.items())
    return Evaluation(metrics=("harmfulness",), rows=rows, better={"harmfulness": "lower"})


def run_file(folder: Path, *tests: list[Record]) -> Path:
    document = documents.document(*(documents.row(f"test_{number}", *records) for number, records in enumerate(tests)))
    file = folder / "run.json"
    file.write_text(render_json(document), encoding="utf-8")
    return file


def test_the_file_of_a_run_is_read(tmp_path: Path) -> None:
    first = [record("q1", 0.5), record("q2", None), record("q3", 0.5)]
    tests = (first, [record("q1", 1.0, metric="coherence"), record("q1", 0.5), record("q3", 0.75)])
    found = read_baseline(run_file(tmp_path, *tests))
    scores = {metric: [(it.key, it.record.score) for it in rows] for metric, rows in found.records.items()}
    harmful = [("q1", 0.5), ("q2", None), ("q3", 0.5), ("q1", 0.5), ("q3", 0.75)]
    assert scores == {"harmfulness": harmful, "coherence": [("q1", 1.0)]}
    with pytest.raises(ValueError, match="harmfulness: 'q3' has several different scores in one run"):
        assert_no_regression(harms({"q1": 0.5, "q3": 0.5}), tmp_path / "run.json")
    assert_no_regression(harms({"q1": 0.5}), tmp_path / "run.json", inconclusive="pass")


def test_the_file_of_a_table_is_read(tmp_path: Path) -> None:
    asked = replace(harms({"q1": 0.25}).rows[0], sample=Sample(user_input="Why?"))
    refused = Row(sample=Sample(id="q2"), unscored={"harmfulness": "refused"})
    file = tmp_path / "table.json"
    evaluation = replace(harms({}), rows=(asked, refused))
    evaluation.to_json(file)
    assert read_baseline(str(file)).records == compared_records(evaluation)
    file.write_text('\ufeff{"metrics": ["a"], "rows": [{"sample": {"id": "q"}, "scores": {"a": 1}}]}', encoding="utf-8")
    (placed,) = read_baseline(file).records["a"]
    assert (placed.name, placed.record.score, placed.record.judge, placed.record.better) == ("q", 1.0, None, "higher")


def rated_by(noun: str) -> Evaluation:
    result = MetricResult(1.0, metric="correctness", noun=noun)
    rows = (Row(sample=Sample(id=f"q{number}"), results={"correctness": result}) for number in range(9))
    return Evaluation(metrics=("correctness",), rows=tuple(rows))


@pytest.mark.parametrize("kind", ["run", "table", "table of before"])
@pytest.mark.parametrize("noun", ["judgement", "response"])
def test_an_aspect_in_a_file_is_not_compared_with_the_rating_of_its_name(tmp_path: Path, kind: str, noun: str) -> None:
    before = rated_by(noun)
    if kind == "run":
        made = [(row.sample, row.results["correctness"]) for row in before.rows]
        scorings = [Scoring(metric="correctness", sample=it, outcome=found, better="higher") for it, found in made]
        file = run_file(tmp_path, [record_of(scoring) for scoring in scorings])
    else:
        file = tmp_path / "table.json"
        written = json.loads(before.to_json())
        file.write_text(json.dumps({**written, "nouns": written["nouns"] if kind == "table" else {}}), "utf-8")
    if noun == "response" and kind != "table of before":
        assert_no_regression(rated_by("response"), file)
    else:
        with pytest.raises(ValueError, match=r"correctness: its verdicts are on the response here, .* two metrics"):
            assert_no_regression(rated_by("response"), file)


def test_a_file_is_read_once_and_again_when_it_changed(tmp_path: Path) -> None:
    file = run_file(tmp_path, [record("q1", 0.5)])
    first = read_baseline(file)
    assert read_baseline(file) is first
    run_file(tmp_path, [record("q1", 0.75)])
    os.utime(file, ns=(1, 1))
    assert read_baseline(file).records["harmfulness"][0].record.score == 0.75


TABLE: dict[str, Any] = {"metrics": ["a"], "rows": [{"sample": {"id": "q"}, "scores": {"a": 1.0}}]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *(("{", "not JSON: .* line 1 column 2"), ('{"rows": NaN}', "not JSON: NaN is not a JSON number")),
        ("[" * 100_000, "not JSON"),
        ("\xff\xfe", "neither the result of a run nor a table|not JSON"),
        ("[1]", "neither the result of a run nor a table; give a file that --rag-json or Evaluation.to_json wrote"),
        *(('{"tests": []}', "it has no version"), ('{"version": 99, "tests": []}', "version 99")),
        (json.dumps({**TABLE, "rows": 1}), "rows must be a valid array, not 1"),
        (json.dumps({**TABLE, "better": {"a": "up"}}), "better.a must be 'higher' or 'lower', not \"up\""),
        (json.dumps({**TABLE, "rows": [{"scores": {}}]}), r"rows\[0\] lacks sample"),
        # As pydantic says it.
        (json.dumps({**TABLE, "rows": [{"sample": {}, "scores": {"a": 10**400}}]}), "a must be a (finite|valid) numb"),
    ],
)
def test_a_broken_file_is_named_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "broken.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DocumentError, match=message) as raised:
        read_baseline(file)
    assert str(raised.value).startswith(f"{file}: ")


LITTLE = "rows of the baseline can be compared, fewer than 80 %"


@pytest.mark.parametrize(
    ("here", "score", "there", "partial_run", "said"),
    [
        *((10, 0.0, 10, "", ""), (200, 0.0, 10, "", ""), (8, 0.0, 10, "", "")),
        (10, 1.0, 200, "", f"10 of the 200 {LITTLE}"),
        (4, 1.0, 4, "", "4 rows are compared, and 5 are the least"),
        (200, 0.0, 11, "-k", "the baseline is not whole (-k)"),
    ],
)
def test_a_small_part_of_a_baseline_decides_nothing(
    here: int, score: float, there: int, partial_run: str, said: str, tmp_path: Path
) -> None:
    tests = [documents.row(f"test_it[{n}]", record(f"q{n}", 0.0)) for n in range(there)]
    # Those of other functions are not missed.
    before = documents.document(*tests, *(documents.row(f"test_other[{n}]", record(f"o{n}", 0.0)) for n in range(30)))
    file = tmp_path / "main.json"
    file.write_text(render_json(replace(before, run=replace(before.run, partial=partial_run))), "utf-8")
    table = harms({f"q{n}": score for n in range(here)})
    for check in (assert_no_regression, partial(assert_not_worse, margin=0.8)):
        assert check(table, file, inconclusive="pass")["harmfulness"].doubts == ((said,) if said else ())
        if said:
            first, second, *_ = failure(check, table, file)
            assert first.endswith(f": inconclusive: {said}")
            assert second.startswith("  write the baseline anew (--rag-json=FILE)")
        else:
            check(table, file)


def test_a_table_that_falls_silent_fails() -> None:
    before = table([1.0] * 40)
    quiet = {"faithfulness": MetricResult(1.0, metric="faithfulness", judge="openai:small", vacuous=True)}
    after = replace(before, rows=(*before.rows[:6], *(replace(it, results=quiet) for it in before.rows[6:])))
    said = "faithfulness 1.00 -> 1.00: 34 of 40 had nothing to check; the baseline had 0"
    assert failure(assert_no_regression, after, before)[0] == said
    assert assert_no_regression(before, after).drops["faithfulness"].silence == ""
