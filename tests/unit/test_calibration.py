"""Calibrating a judge: labels, figures, wording, the file and the page."""

from __future__ import annotations

import contextlib
import html
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics import Sample, UnscoredError, evaluate, rag_calibrated
from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.core.result import MetricResult, Verdict
from pytest_ragmetrics.evaluation.calibration.calibrate import calibrate
from pytest_ragmetrics.evaluation.calibration.result import (
    Calibration,
    CalibrationError,
    JudgeRates,
    LabelScale,
    group_of,
    read_rates,
)
from pytest_ragmetrics.evaluation.calibration.text import calibration_lines, fault_lines, floor_line
from pytest_ragmetrics.evaluation.table import Evaluation, Row
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.ratings import Correctness
from pytest_ragmetrics.report.page import render_calibration
from pytest_ragmetrics.stats.corrected import prediction_powered_mean
from pytest_ragmetrics.stats.intervals import Interval, mean_interval

HOSTILE = "<script>alert('x')</script> \u202etxet \x1b[31m \ud83d </style>"


class Written(Metric):
    """A metric whose score is written in the response; there is none where the response is no number."""

    name = "written"
    noun = "grade"
    scale = (0.0, 1.0)
    times = 1

    def measure(self, sample: Sample) -> MetricResult:
        text = sample.response or ""
        score = float(text.split()[0])
        verdicts = (Verdict(text=text, ok=score >= 0.5, reason=HOSTILE),) * self.times
        return MetricResult(score, metric=self.name, verdicts=verdicts, judge="house judge")


class Errors(Written):
    """The same score, of which the lower ones are better."""

    name = "errors"
    better = "lower"


def rows(*pairs: tuple[object, object]) -> list[dict[str, Any]]:
    return [{"id": f"r{index}", "response": str(score), "label": label} for index, (score, label) in enumerate(pairs)]


CLEAR = rows((0.9, 1), (0.8, 1), (0.95, 1), (0.2, 0), (0.1, 0), (0.3, 0), (0.85, 0), (0.15, 1))


def many(times: int) -> list[dict[str, Any]]:
    return [{**row, "id": f"{row['id']}-{turn}"} for turn in range(times) for row in CLEAR]


GRADES = LabelScale(low=1, high=5)


@pytest.mark.parametrize(
    ("scale", "written", "label"),
    [
        *((LabelScale(), *row) for row in ((1, 1), (0.25, 0.25), ("0.5", 0.5), (True, 1), ("No", 0), (" pass ", 1))),
        *((LabelScale(), absent, None) for absent in (None, "", "  ")),
        *((GRADES, *row) for row in (("4", 0.75), (1, 0), (False, 0))),
    ],
)
def test_labels_are_read_in_many_forms(scale: LabelScale, written: object, label: float | None) -> None:
    assert scale.read(Sample(metadata={"label": written})) == label


@pytest.mark.parametrize("written", [2, -1, "maybe", [1], math.nan, math.inf, "nan", 10**400, {"a": 1}, "x" * 99])
def test_what_is_no_label_is_named(written: object) -> None:
    with pytest.raises(DatasetError, match=r"^a\.jsonl:3: field 'grade': a label is a number from 0 to 1") as raised:
        LabelScale(field="grade").read(Sample(metadata={"grade": written}), file="a.jsonl", line=3)
    assert len(str(raised.value)) < 200


def test_a_grade_is_good_from_the_middle_on() -> None:
    assert [GRADES.is_good(label) for label in (0.25, 0.5, 0.75)] == [False, True, True]
    assert [replace(GRADES, good_from=4).is_good(label) for label in (0.5, 0.75)] == [False, True]


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        ({"low": 1, "high": 1}, "goes from a lower to a higher number, not from 1 to 1"),
        ({"high": math.inf}, "not from 0 to inf"),
        ({"good_from": 0.0}, "good_from is a label above 0, at most 1, not 0"),
        ({"good_from": 1.5}, "not 1.5"),
    ],
)
def test_a_scale_has_a_length_and_bad_labels(scale: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        LabelScale(**scale)


def test_a_group_is_named_by_the_rows() -> None:
    sample = Sample(metadata={"cluster": 1, "group": ["a"], "source": "b"})
    found = [group_of(sample), group_of(sample, "source"), group_of(sample, "page")]
    assert [*found, group_of(Sample(metadata={"cluster": 1}))] == ["['a']", "'b'", None, "1"]


def test_a_calibration_compares_scores_with_labels() -> None:
    found = calibrate(Written(), [*CLEAR, {"response": "0.5"}], threshold=0.5)
    agreement = found.figures.agreement
    counts = (agreement.passed_good, agreement.failed_good, agreement.failed_bad, agreement.passed_bad)
    assert counts == (3, 1, 3, 1)
    assert agreement.kappa.estimate == pytest.approx(0.5)
    assert (found.metric, found.judge, found.unlabelled, found.unscored) == ("written", "house judge", 1, ())
    assert [row.name for row in found.disagreements()] == ["r6", "r7"]


def test_lower_scores_may_be_the_better_ones() -> None:
    data = rows((0.1, 1), (0.2, 1), (0.9, 0), (0.8, 0), (0.6, 1), (0.05, 0))
    found = calibrate(Errors(), data, threshold=0.3)
    assert found.figures.agreement.kappa.estimate == pytest.approx(1 / 3)
    assert [row.name for row in found.disagreements()] == ["r5", "r4"]
    assert "errors 0.05 <= 0.30" in "\n".join(calibration_lines(found))
    assert found.figures.auroc.estimate == pytest.approx(6 / 9)


@pytest.mark.parametrize(
    ("data", "arguments", "error", "said"),
    [
        (rows(("a", 1), ("b", 0)), {}, UnscoredError, "written: no labelled row of 2 has a score; the first: .*c"),
        (CLEAR, {"label_scale": LabelScale(field="Label")}, DatasetError, "no row of 8 has a label in the field 'L"),
        (CLEAR, {"group_field": "source"}, DatasetError, "no labelled row has the field 'source', which is to name"),
        ([*CLEAR, {"response": 5, "label": 1}], {}, DatasetError, "response must be a str"),
        (CLEAR, {"threshold": 50}, ValueError, "threshold=50 is outside of the scale of written, 0 to 1: write 0.5,"),
        (CLEAR, {"threshold": True}, TypeError, "threshold must be a number, not True"),
        (rows((0.9, 1), (0.1, 1)), {"threshold": 0.5}, ValueError, "people found all 2 answers good"),
    ],
)
def test_what_cannot_be_calibrated_is_named(data: Any, arguments: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        calibrate(Written(), data, **arguments)


def test_groups_make_rows_dependent() -> None:
    apart = [{**row, "group": index % 8} for index, row in enumerate(many(4))]
    single, grouped = (calibrate(Written(), rows, threshold=0.5) for rows in (many(4), apart))
    assert [(it.groups, it.grouped) for it in (single, grouped)] == [(32, False), (8, True)]
    assert grouped.figures.agreement.kappa.half_width > 1.5 * single.figures.agreement.kappa.half_width


def test_answers_with_nothing_to_check_are_in_no_figure() -> None:
    rows = [{**row, "contexts": ["9 carp."], "response": f"{9 if row['label'] else 8} carp."} for row in CLEAR]
    silent = [{"id": f"s{number}", "response": "Carp.", "contexts": [], "label": number % 2} for number in range(6)]
    found = calibrate("numbers_aligned", [*rows, *silent], threshold=0.5)
    assert found.figures == calibrate("numbers_aligned", rows, threshold=0.5).figures
    assert (len(found.rows), found.vacuous) == (len(rows), 6)
    assert "  8 of 14 had something to check, the others are in no figure" in calibration_lines(found)
    assert json.loads(found.to_json())["rows"]["vacuous"] == 6
    counting = rag_calibrated("numbers_aligned", [*rows, *silent], 0.1, threshold=0.5, vacuous="count", by="estimate")
    assert (len(counting.rows), counting.vacuous) == (len(rows) + 6, 0)
    assert counting.figures.agreement.kappa.estimate < found.figures.agreement.kappa.estimate
    with pytest.raises(UnscoredError, match="numbers_aligned: 0 of 6 had something to check"):
        calibrate("numbers_aligned", silent, threshold=0.5)
    with pytest.raises(ValueError, match="vacuous must be"):
        calibrate("numbers_aligned", silent, threshold=0.5, vacuous="drop")  # type: ignore[arg-type]


def test_unscored_rows_are_listed_and_in_no_figure() -> None:
    odd = [{"id": f"odd-{number}", "response": "none", "label": 1} for number in range(12)]
    found = calibrate(Written(), [*CLEAR, *odd, {"response": "0.5"}], threshold=0.5)
    assert found.figures.agreement == calibrate(Written(), CLEAR, threshold=0.5).figures.agreement
    assert re.match(r"\('odd-0', .*could not convert string to float", repr(found.unscored[0]))
    text = "\n".join(calibration_lines(found))
    assert "without a label, not scored: 1 row\n  unscored, in no figure: 12 rows" in text
    assert re.search(r"odd-9:.*\n    \.\.\. and 2 more", text)
    assert json.loads(found.to_json())["unscored"][0]["name"] == "odd-0"
    assert fault_lines(found, -0.5) == ["12 of 20 labelled rows unscored"]
    assert fault_lines(found, 0.1, by="estimate", skip_unscored=True) == []
    with pytest.raises(AssertionError, match=r"^12 of 20 labelled rows unscored\n"):
        rag_calibrated(Written(), [*CLEAR, *odd], 0.1, threshold=0.5)
    assert rag_calibrated(Written(), [*CLEAR, *odd], 0.1, threshold=0.5, by="estimate", skip_unscored=True).unscored


def test_the_lines_say_all_of_it() -> None:
    text = "\n".join(calibration_lines(calibrate(Written(), CLEAR, threshold=0.5), worst=1))
    assert text.startswith("written by house judge against 8 human labels: 4 good, 4 bad\n")
    for said in (
        "an answer passes at a score >= 0.5, as given:",
        "kappa               0.50  -0.30..0.84",
        "people: good      3       1\n          bad       1       3",
        "suggested threshold: ",
        "disagreements: 2 of 8 rows at 0.5, the widest apart first",
        "r6: people say bad (label 0), the judge passed it",
        'held to be right: "0.85"',
    ):
        assert said in text
    assert text.endswith("  ... and 1 more")
    wordy = Written()
    wordy.times = 9
    assert "      ... and 13 more lines" in calibration_lines(calibrate(wordy, CLEAR, threshold=0.5))
    perfect = calibrate(Written(), [row for row in CLEAR if row["id"] not in {"r6", "r7"}], threshold=0.5)
    assert calibration_lines(perfect)[-1] == "no disagreement"
    few = calibrate(Written(), rows((0.9, 1), (0.1, 0)), threshold=0.5)
    assert "no threshold suggested: " in "\n".join(calibration_lines(few))


def test_the_floor_is_compared_with_the_lower_end_of_kappa() -> None:
    found = calibrate(Written(), CLEAR, threshold=0.5)
    said = "kappa 0.50 (95 % interval -0.30..0.84, n=8): the lower end of its interval -0.30 < 0.50; a very good judge "
    assert fault_lines(found, 0.5) == [f"{said}takes about 50 labels to reach 0.6, a good one 100 or more"]
    assert fault_lines(found, 0.6)[0].endswith("-0.30 < 0.60")
    assert floor_line(found, 0.5, by="estimate").startswith("kappa 0.50 >= 0.50 (95 % interval ")
    assert (fault_lines(found, -0.4), fault_lines(found, 0.5, by="estimate")) == ([], [])
    (fault,) = fault_lines(found, 0.501, by="estimate")
    assert fault.startswith("kappa 0.500 < 0.501 (95 % interval -0.30..0.84, n=8)")
    # Few labels prove little.
    pair = [{"response": "0.9", "label": 1}, {"response": "0.1", "label": 0}]
    few = [calibrate(Written(), pair * labels, threshold=0.5) for labels in (1, 2, 10, 12)]
    assert [bool(fault_lines(it, 0.6)) for it in few] == [True, True, True, False]


def hostile() -> Calibration:
    data = [{**row, "id": f"{row['id']} {HOSTILE}", "response": f"{row['response']} {HOSTILE}"} for row in CLEAR]
    odd = {"id": HOSTILE, "response": HOSTILE, "label": 0}
    return calibrate(Written(), [*data, odd], threshold=0.5)


TAG = re.compile(r"<([a-z]\w*)([^<>]*)>")


def test_the_page_is_well_formed_and_runs_nothing() -> None:
    page = render_calibration(hostile())
    opened = [name for name, _ in TAG.findall(page) if name != "meta"]
    assert Counter(opened) == Counter(re.findall(r"</(\w+)>", page))
    assert "script" not in opened
    assert "<script>alert" in html.unescape(TAG.sub("", page))
    assert not any(re.search(r"\s(on\w+|style|src|href)=", attributes) for _, attributes in TAG.findall(page))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy"\s+content="([^"]*)"', page)
    assert html.unescape(policy).startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert page == render_calibration(hostile())
    for text in (page, "\n".join(calibration_lines(hostile()))):
        text.encode("utf-8")
        assert not {"\u202e", "\x1b"} & set(text)
    page = render_calibration(calibrate(Written(), CLEAR, threshold=0.5), worst=1)
    text = html.unescape(re.sub("<[^<>]*>", "", page))
    for said in ("written by house judge", "score ≥ 0.5, as", "−0.30 to 0.84", "kappa 0.25 (−0.47 to"):
        assert said in text
    for said in ("The judge passed", "People say good", "Disagreements: 2", "and 1 more"):
        assert said in text


def test_the_file_gives_the_rates_back(tmp_path: Path) -> None:
    found, file = hostile(), tmp_path / "calibration.json"
    file.write_text(found.to_json(), encoding="utf-8")
    assert read_rates(file) == found.rates
    data = json.loads(file.read_text("utf-8"))
    assert data["rows"] == {"scored": 8, "unscored": 1, "vacuous": 0, "unlabelled": 0, "groups": 8}
    assert set(data["disagreements"][0]) == {"name", "label", "score"}


def filed() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(calibrate(Written(), CLEAR, threshold=0.5).to_json())
    return found


RATE = {"low": 0.3, "estimate": 0.4, "high": 1, "confidence": 0.95, "n": 3}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "not a calibration of version 1"),
        ({"version": 2}, "not a calibration of version 1"),
        ({"threshold": "high"}, 'threshold must be a valid number, not "high"'),
        ({"better": "up"}, "better must be 'higher' or 'lower', not \"up\""),
        ({"agreement": {"tpr": RATE}}, "lacks tnr"),
        ({"agreement": {"tpr": RATE, "tnr": {**RATE, "high": 2}}}, r"tnr is not the interval of a rate"),
    ],
)
def test_a_file_that_is_no_calibration_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    file = tmp_path / "c.json"
    file.write_text(json.dumps(filed() | change), encoding="utf-8")
    with pytest.raises(CalibrationError, match=said) as raised:
        read_rates(file)
    assert str(file) in str(raised.value)


@pytest.mark.parametrize(
    "text", [None, b"{", b"[1]", b'{"threshold": NaN}', b"[" * 100_000, b"\xff"], ids=lambda text: str(text)[:9]
)
def test_a_file_that_is_no_json_is_named(tmp_path: Path, text: bytes | None) -> None:
    file = tmp_path / "odd.json"
    if text:
        file.write_bytes(text)
    with pytest.raises(CalibrationError, match=r"odd\.json: not a" if text else r"odd\.json: No such file"):
        read_rates(file)


def table(scores: Sequence[float | None], **metadata: list[Any]) -> Evaluation:
    made = []
    for index, score in enumerate(scores):
        sample = Sample(metadata={name: value[index] for name, value in metadata.items() if value[index] is not None})
        results = {} if score is None else {"written": MetricResult(score, metric="written", judge="house judge")}
        made.append(Row(sample=sample, results=results))
    return Evaluation(metrics=("written",), rows=tuple(made))


def test_a_mean_is_corrected_by_a_calibration(tmp_path: Path) -> None:
    calibration = calibrate(Written(), many(10), threshold=0.5)
    run = table([0.9] * 60 + [0.1] * 40)
    file = tmp_path / "c.json"
    file.write_text(calibration.to_json(), encoding="utf-8")
    found = run.corrected_mean("written", calibration=calibration)
    assert found.estimate == pytest.approx((0.6 + 0.75 - 1) / (0.75 + 0.75 - 1))
    assert found == run.corrected_mean("written", calibration=file)
    assert found == run.corrected_mean("written", calibration=calibration.rates, threshold=0.5)
    certain: dict[str, Any] = {"tpr": 0.9, "tnr": 0.7, "threshold": 0.5}
    found = run.corrected_mean("written", **certain)
    assert found.estimate == pytest.approx(0.3 / 0.6)
    clustered = table([0.9] * 60 + [0.1] * 40, cluster=[index // 10 for index in range(100)])
    assert clustered.corrected_mean("written", **certain).half_width > 1.2 * found.half_width


def test_a_mean_is_corrected_by_labels_in_the_table() -> None:
    labels = [*[1, 0, 1, 0, 1, 1, 1, 0] * 4, *[None] * 64]
    scores = [*[0.9, 0.2, 0.8, 0.3, 1.0, 0.7, 0.4, 0.1] * 4, *[0.9, 0.3] * 32]
    run = table(scores, label=labels)
    assert run.corrected_mean("written") == prediction_powered_mean(scores, labels)
    passed = [float(score >= 0.5) for score in scores]
    assert run.corrected_mean("written", threshold=0.5) == prediction_powered_mean(passed, labels)
    lower = replace(run, better={"written": "lower"}, scales={"written": (0.0, 1.0)})
    assert lower.corrected_mean("written") == mean_interval([label for label in labels if label is not None])


RATE_90 = Interval(estimate=0.9, low=0.8, high=0.95, confidence=0.95, n=50)
RATES = JudgeRates(metric="written", judge="house judge", better="higher", threshold=0.5, tpr=RATE_90, tnr=RATE_90)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "nothing is known of the judge's errors: give calibration="),
        *((known, "give tpr=, tnr= and the threshold=") for known in ({"tpr": 0.9}, {"tpr": 0.9, "tnr": 0.9})),
        ({"calibration": RATES, "tpr": 0.9}, "give calibration=, or tpr= and tnr=, not both"),
        ({"calibration": RATES, "threshold": 0.6}, "is one at the threshold 0.5, not 0.6"),
        ({"calibration": replace(RATES, metric="other")}, r"is one of other \(higher is better\), not of written"),
        ({"calibration": replace(RATES, judge="gpt")}, "is one of gpt, and house judge scored this table"),
        ({"calibration": RATES, "confidence": 0.9}, "has intervals of 95 %: ask for that confidence"),
        ({"tpr": 0.9, "tnr": 0.9, "threshold": 0.5, "confidence": 95}, "confidence must be a number between 0 and 1"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        table([0.9, 0.1]).corrected_mean("written", **given)


@pytest.mark.parametrize(("noun", "fits"), [(None, False), ("judgement", False), ("response", True)])
def test_a_calibration_of_the_metric_that_had_the_name_before_is_refused(tmp_path: Path, noun: Any, fits: bool) -> None:
    """The aspect ``correctness`` is another metric than the rating of that name; a file of before has no noun."""
    data = filed() | {"metric": "correctness", "noun": noun}
    file = tmp_path / "c.json"
    file.write_text(json.dumps({name: value for name, value in data.items() if value is not None}), encoding="utf-8")
    rated = MetricResult(0.9, metric="correctness", judge="house judge", noun=Correctness.noun)
    run = Evaluation(metrics=("correctness",), rows=(Row(sample=Sample(), results={"correctness": rated}),))
    with contextlib.nullcontext() if fits else pytest.raises(ValueError, match="which was called correctness before"):
        run.corrected_mean("correctness", calibration=file)


def test_a_table_with_unscored_rows_is_corrected_only_on_purpose() -> None:
    run = table([0.9, 0.1, None])
    with pytest.raises(UnscoredError, match=r"1 of 3 rows is unscored; skip_unscored=True leaves them out"):
        run.corrected_mean("written", calibration=RATES)
    assert run.corrected_mean("written", calibration=RATES, skip_unscored=True).n == 2
    with pytest.raises(UnscoredError, match="1 of 1 row is unscored"):
        table([None]).corrected_mean("written", calibration=RATES, skip_unscored=True)
    with pytest.raises(KeyError, match="'other' was not evaluated"):
        run.corrected_mean("other")


def test_a_judge_that_disagrees_fails_with_the_figures() -> None:
    found = rag_calibrated(Written(), many(5), min_kappa=0.15, threshold=0.5)
    run = evaluate([{"response": "0.9"}, {"response": "0.2"}] * 20, Written(), progress=False)
    assert run.corrected_mean("written", calibration=found).estimate == pytest.approx(0.5)
    with pytest.raises(
        AssertionError, match=r"(?s)^kappa 0\.50 .* -0\.30 < 0\.60\nwritten by house.* r6: people say bad"
    ):
        rag_calibrated(Written(), CLEAR, 0.6, threshold=0.5)
    with pytest.raises(AssertionError, match=r"^kappa 0\.50 < 0\.60 "):
        rag_calibrated(Written(), CLEAR, 0.6, threshold=0.5, by="estimate")
    with pytest.raises(ValueError, match="by must be 'bound' or 'estimate', not 'low'"):
        rag_calibrated(Written(), CLEAR, 0.6, threshold=0.5, by="low")  # type: ignore[arg-type]


@pytest.mark.parametrize("floor", [2, -1.5, True, "0.6", None, math.nan])
def test_a_floor_is_a_number_from_minus_1_to_1(floor: Any) -> None:
    with pytest.raises(ValueError, match="min_kappa must be a number from -1 to 1, not"):
        rag_calibrated(Written(), CLEAR, floor)
