"""Calibrating a judge: labels, figures, wording, the file and the page."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics import Sample, UnscoredError, evaluate, rag_calibrated
from pytest_ragmetrics.calibration.calibrate import calibrate
from pytest_ragmetrics.calibration.result import (
    Calibration,
    CalibrationError,
    JudgeRates,
    LabelScale,
    group_of,
    read_rates,
)
from pytest_ragmetrics.calibration.text import calibration_lines, fault_lines, floor_line
from pytest_ragmetrics.errors import DatasetError
from pytest_ragmetrics.evaluation import Evaluation, Row
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.report.html import render_calibration
from pytest_ragmetrics.result import MetricResult, Verdict
from pytest_ragmetrics.stats.intervals import Interval

HOSTILE = "<script>alert('x')</script> \u202etxet \x1b[31m \ud83d </style>"


class Written(Metric):
    """A metric whose score stands in the response; there is none where the response is no number."""

    name = "written"
    scale = (0.0, 1.0)

    def measure(self, sample: Sample) -> MetricResult:
        """Return the number in the response."""
        text = sample.response or ""
        verdict = Verdict(text=text, ok=float(text.split()[0]) >= 0.5, reason=HOSTILE)
        return MetricResult(float(text.split()[0]), metric=self.name, verdicts=(verdict,), judge=self.judge_name)

    judge_name: str | None = "house judge"


class Wordy(Written):
    """The same score, with many verdicts."""

    def measure(self, sample: Sample) -> MetricResult:
        """Return the number in the response, and nine times why."""
        result = super().measure(sample)
        return MetricResult(result.value, metric=self.name, verdicts=result.verdicts * 9, judge=None)


class Errors(Written):
    """The same score, of which the lower ones are better."""

    name = "errors"
    better = "lower"


def rows(*pairs: tuple[object, object]) -> list[dict[str, Any]]:
    """Return labelled rows, of score and label."""
    return [{"id": f"r{index}", "response": str(score), "label": label} for index, (score, label) in enumerate(pairs)]


CLEAR = rows((0.9, 1), (0.8, 1), (0.95, 1), (0.2, 0), (0.1, 0), (0.3, 0), (0.85, 0), (0.15, 1))


def many(times: int) -> list[dict[str, Any]]:
    """Return the clear rows so many times, each with its own id."""
    return [{**row, "id": f"{row['id']}-{turn}"} for turn in range(times) for row in CLEAR]


def test_labels_are_read_in_many_forms() -> None:
    """Numbers, numbers as text, and the words for good and bad."""
    scale = LabelScale()
    for written, label in [(1, 1.0), (0.25, 0.25), ("0.5", 0.5), (True, 1.0), ("No", 0.0), (" pass ", 1.0)]:
        assert scale.read(Sample(metadata={"label": written})) == label
    for absent in (None, "", "  "):
        assert scale.read(Sample(metadata={"label": absent})) is None
    assert scale.read(Sample()) is None


@pytest.mark.parametrize("written", [2, -1, "maybe", [1], math.nan, math.inf, "nan", 10**400, {"a": 1}, "x" * 99])
def test_what_is_no_label_is_named(written: object) -> None:
    """The error names file, line and field, and what a label is."""
    with pytest.raises(DatasetError, match=r"^a\.jsonl:3: field 'grade': a label is a number from 0 to 1") as raised:
        LabelScale(field="grade").read(Sample(metadata={"grade": written}), file="a.jsonl", line=3)
    assert len(str(raised.value)) < 200


def test_grades_are_labels_on_their_own_scale() -> None:
    """A grade from 1 to 5 is good from the middle on, unless said otherwise."""
    grades = LabelScale(low=1, high=5)
    strict = replace(grades, good_from=4)
    assert [grades.is_good(label) for label in (0.25, 0.5, 0.75)] == [False, True, True]
    assert [strict.is_good(label) for label in (0.5, 0.75)] == [False, True]
    assert strict.read(Sample(metadata={"label": "4"})) == 0.75


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        ({"low": 1, "high": 1}, "goes from a lower to a higher number, not from 1 to 1"),
        ({"high": math.inf}, "not from 0 to inf"),
        ({"good_from": 0.0}, "good from a label above 0 and up to 1 on, not 0"),
        ({"good_from": 1.5}, "not 1.5"),
    ],
)
def test_a_scale_that_is_none_is_refused(scale: dict[str, float], said: str) -> None:
    """A scale has a length, and some answers on it may be bad."""
    with pytest.raises(ValueError, match=said):
        LabelScale(**scale)  # type: ignore[arg-type]


def test_a_group_is_named_by_the_rows() -> None:
    """By the field that is named, else by group, else by cluster."""
    sample = Sample(metadata={"cluster": 1, "group": ["a"], "source": "b"})
    assert group_of(sample) == "['a']"
    assert group_of(sample, "source") == "'b'"
    assert group_of(sample, "page") is None
    assert group_of(Sample(metadata={"cluster": 1})) == "1"


def test_a_calibration_holds_scores_against_labels() -> None:
    """Counts, figures, judge and the rows that judge and people see differently, the widest apart first."""
    found = calibrate(Written(), [*CLEAR, {"response": "0.5"}], threshold=0.5)
    agreement = found.figures.agreement
    counts = (agreement.passed_good, agreement.failed_good, agreement.failed_bad, agreement.passed_bad)
    assert counts == (3, 1, 3, 1)
    assert agreement.kappa.estimate == pytest.approx(0.5)
    assert (found.metric, found.judge, found.unlabelled, found.unscored) == ("written", "house judge", 1, ())
    assert [row.name for row in found.disagreements()] == ["r6", "r7"]


def test_lower_scores_may_be_the_better_ones() -> None:
    """A metric of errors passes below the threshold, and the disagreements are measured from its good end."""
    data = rows((0.1, 1), (0.2, 1), (0.9, 0), (0.8, 0), (0.05, 0), (0.6, 1))
    found = calibrate(Errors(), data, threshold=0.3)
    assert found.figures.agreement.kappa.estimate == pytest.approx(1 / 3)
    assert [row.name for row in found.disagreements()] == ["r4", "r5"]
    assert "errors 0.05 <= 0.30" in "\n".join(calibration_lines(found))
    assert found.figures.auroc.estimate == pytest.approx(6 / 9)


@pytest.mark.parametrize(
    ("data", "arguments", "error", "said"),
    [
        (
            rows(("a", 1), ("b", 0)),
            {},
            UnscoredError,
            "written: none of 2 labelled rows has a score; the first: .*convert",
        ),
        (
            CLEAR,
            {"label_scale": LabelScale(field="Label")},
            DatasetError,
            "none of 8 rows has a label in the field 'Label'",
        ),
        (
            CLEAR,
            {"group_field": "source"},
            DatasetError,
            "no labelled row has the field 'source', which is to name its",
        ),
        ([*CLEAR, {"response": 5, "label": 1}], {}, DatasetError, "response must be a str"),
        (rows((0.9, 1), (0.1, 1)), {"threshold": 0.5}, ValueError, "people found all 2 answers good"),
    ],
    ids=["no score", "no label", "no group", "broken row", "one kind"],
)
def test_what_cannot_be_calibrated_is_named(
    data: list[dict[str, Any]], arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    """Misspelt fields are not taken for rows without labels, and nothing is made up."""
    with pytest.raises(error, match=said):
        calibrate(Written(), data, **arguments)


def test_groups_make_rows_dependent() -> None:
    """Rows of one source count as less than rows of many."""
    single = calibrate(Written(), many(4), threshold=0.5)
    grouped = calibrate(Written(), [{**row, "group": index % 8} for index, row in enumerate(many(4))], threshold=0.5)
    assert (single.groups, single.grouped) == (32, False)
    assert (grouped.groups, grouped.grouped) == (8, True)
    assert grouped.figures.agreement.kappa.half_width > 1.5 * single.figures.agreement.kappa.half_width


def test_unscored_rows_are_listed_and_in_no_figure() -> None:
    """A row without a score keeps its reason; it is a fault unless it is left out on purpose; ten are listed."""
    odd = [{"id": f"odd-{number}", "response": "none", "label": 1} for number in range(12)]
    found = calibrate(Written(), [*CLEAR, *odd, {"response": "0.5"}], threshold=0.5)
    assert found.figures.agreement == calibrate(Written(), CLEAR, threshold=0.5).figures.agreement
    name, reason = found.unscored[0]
    assert name == "odd-0"
    assert "could not convert string to float" in reason
    text = "\n".join(calibration_lines(found))
    assert "unscored, in no figure: 12 rows" in text
    assert "without a label, not scored: 1 row" in text
    assert "odd-9:" in text
    assert "odd-10:" not in text
    assert "    ... and 2 more" in text
    assert json.loads(found.to_json())["unscored"][0]["name"] == "odd-0"
    assert fault_lines(found, 0.1) == ["12 of 20 labelled rows unscored"]
    assert fault_lines(found, 0.1, skip_unscored=True) == []
    with pytest.raises(AssertionError, match=r"^12 of 20 labelled rows unscored\n"):
        rag_calibrated(Written(), [*CLEAR, *odd], 0.1, threshold=0.5)
    assert rag_calibrated(Written(), [*CLEAR, *odd], 0.1, threshold=0.5, skip_unscored=True).unscored


def test_the_lines_say_all_of_it() -> None:
    """Figures with intervals, counts, suggestion, curve, and the evidence of the worst disagreements."""
    text = "\n".join(calibration_lines(calibrate(Written(), CLEAR, threshold=0.5), worst=1))
    assert text.startswith("written by house judge against 8 human labels: 4 good, 4 bad\n")
    assert "an answer passes at a score >= 0.5, as given:" in text
    assert "kappa               0.50  -0.14..0.79" in text
    assert "people: good      3       1\n          bad       1       3" in text
    assert "suggested threshold: " in text
    assert "disagreements: 2 of 8 rows at 0.5, the widest apart first" in text
    assert "r6: people say bad (label 0), the judge passed it" in text
    assert 'held to be right: "0.85"' in text
    assert text.endswith("  ... and 1 more")
    assert "      ... and 13 more lines" in calibration_lines(calibrate(Wordy(), CLEAR, threshold=0.5))


def test_the_lines_of_a_judge_without_fault() -> None:
    """No disagreement is said as such, and no threshold is suggested where none can be tried."""
    perfect = calibrate(Written(), [row for row in CLEAR if row["id"] not in {"r6", "r7"}], threshold=0.5)
    assert calibration_lines(perfect)[-1] == "no disagreement"
    few = calibrate(Written(), rows((0.9, 1), (0.1, 0)), threshold=0.5)
    assert "no threshold suggested: all good answers are in one group" in "\n".join(calibration_lines(few))
    texts = [
        {"response": "Moss.", "contexts": ["Moss grows."], "label": 1},
        {"response": "Sand.", "contexts": ["Moss."], "label": 0},
    ]
    computed = calibration_lines(calibrate("lexical_grounding", texts * 2))
    assert computed[0].startswith("lexical_grounding by no judge (the metric computes) against 4 human labels")


def test_the_floor_is_told_apart_from_kappa() -> None:
    """The estimate decides, with as many decimals as it takes to see why."""
    found = calibrate(Written(), CLEAR, threshold=0.5)
    assert floor_line(found, 0.5).startswith("kappa 0.50 >= 0.50 (95 % interval ")
    assert fault_lines(found, 0.5) == []
    (fault,) = fault_lines(found, 0.501)
    assert fault.startswith("kappa 0.500 < 0.501 (95 % interval -0.14..0.79, n=8)")


class Page(HTMLParser):
    """A page taken apart; raises ``AssertionError`` when its tags do not match."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in an element."""
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the element that is open, which must be this one."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Take in a text."""
        self.text += data


def hostile() -> Calibration:
    """Return a calibration of rows that try to be more than text."""
    data = [{**row, "id": f"{row['id']} {HOSTILE}", "response": f"{row['response']} {HOSTILE}"} for row in CLEAR]
    odd = {"id": HOSTILE, "response": HOSTILE, "label": 0}
    return calibrate(Written(), [*data, odd], threshold=0.5)


def test_the_page_is_well_formed_and_runs_nothing() -> None:
    """Hostile texts are shown as text, there is no script, and the policy allows but the one style."""
    html = render_calibration(hostile())
    page = Page(html)
    assert "script" not in {tag for tag, _ in page.tags}
    assert "<script>alert" in page.text
    assert not any(name.startswith("on") or name in {"style", "src", "href"} for _, all_ in page.tags for name in all_)
    policies = [all_["content"] for _, all_ in page.tags if all_.get("http-equiv") == "Content-Security-Policy"]
    assert [str(policy).startswith("default-src 'none'; style-src 'sha256-") for policy in policies] == [True]
    assert "unsafe" not in str(policies)
    assert html == render_calibration(hostile())
    for text in (html, "\n".join(calibration_lines(hostile()))):
        text.encode("utf-8")
        assert "\u202e" not in text
        assert "\x1b" not in text


def test_the_page_shows_what_the_terminal_shows() -> None:
    """Headline, figures, counts and disagreements stand on the page, cut where they are many."""
    page = Page(render_calibration(calibrate(Written(), CLEAR, threshold=0.5), worst=1))
    for said in ("written by house judge", "-0.14–0.79", "People say good", "Disagreements: 2", "and 1 more"):
        assert said in page.text


def test_the_file_gives_the_rates_back(tmp_path: Path) -> None:
    """What was written is read again; it holds names and no texts, and is UTF-8 whatever the names are."""
    found = hostile()
    file = tmp_path / "calibration.json"
    file.write_text(found.to_json(), encoding="utf-8")
    assert read_rates(file) == found.rates
    data = json.loads(file.read_text("utf-8"))
    assert data["rows"] == {"scored": 8, "unscored": 1, "unlabelled": 0, "groups": 8}
    assert set(data["disagreements"][0]) == {"name", "label", "score"}


RATE = {"low": 0.3, "estimate": 0.4, "high": 1, "confidence": 0.95, "n": 3}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "not a calibration of version 1"),
        ({"version": 2}, "not a calibration of version 1"),
        ({"threshold": "high"}, 'threshold must be a valid number, not "high"'),
        ({"threshold": True}, "threshold must be a valid number, not true"),
        ({"better": "up"}, "better must be 'higher' or 'lower', not \"up\""),
        ({"metric": 5}, "metric must be a valid string, not 5"),
        ({"agreement": []}, r"agreement must be an object, not \[\]"),
        ({"agreement": {"tpr": RATE}}, "agreement lacks tnr"),
        ({"agreement": {"tpr": RATE | {"n": 1.5}, "tnr": RATE}}, r"agreement\.tpr\.n must be a valid integer, not 1.5"),
        ({"agreement": {"tpr": RATE, "tnr": {**RATE, "high": 2}}}, r"agreement\.tnr is not the interval of a rate"),
    ],
)
def test_a_file_that_is_no_calibration_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    """The error names the file and the field."""
    file = tmp_path / "c.json"
    data = json.loads(calibrate(Written(), CLEAR, threshold=0.5).to_json())
    file.write_text(json.dumps({**data, **change}), encoding="utf-8")
    with pytest.raises(CalibrationError, match=said) as raised:
        read_rates(file)
    assert str(file) in str(raised.value)


def test_a_file_that_is_no_json_is_named(tmp_path: Path) -> None:
    """Missing files, other texts, numbers that are none and deep nesting are said as such."""
    with pytest.raises(CalibrationError, match=r"gone\.json: No such file"):
        read_rates(tmp_path / "gone.json")
    for text in ("{", "[1]", '{"threshold": NaN}', "[" * 100_000, "\u00ff"):
        file = tmp_path / "odd.json"
        file.write_bytes(text.encode("latin-1"))
        with pytest.raises(CalibrationError, match=r"odd\.json: not a"):
            read_rates(file)


def table(scores: Sequence[float | None], **metadata: list[Any]) -> Evaluation:
    """Return a table of scores whose samples have metadata."""
    made = []
    for index, score in enumerate(scores):
        sample = Sample(metadata={name: value[index] for name, value in metadata.items() if value[index] is not None})
        result = None if score is None else MetricResult(score, metric="written", judge="house judge")
        made.append(Row(sample=sample, results={"written": result} if result is not None else {}))
    return Evaluation(metrics=("written",), rows=tuple(made))


def test_a_mean_is_corrected_by_a_calibration(tmp_path: Path) -> None:
    """By the value, by its rates, and by the file, alike."""
    calibration = calibrate(Written(), many(10), threshold=0.5)
    run = table([0.9] * 60 + [0.1] * 40)
    file = tmp_path / "c.json"
    file.write_text(calibration.to_json(), encoding="utf-8")
    found = run.corrected_mean("written", calibration=calibration)
    assert found.estimate == pytest.approx((0.6 + 0.75 - 1) / (0.75 + 0.75 - 1))
    assert found == run.corrected_mean("written", calibration=file)
    assert found == run.corrected_mean("written", calibration=calibration.rates, threshold=0.5)


def test_a_mean_is_corrected_by_rates() -> None:
    """By numbers that are known for certain, with clusters in the table."""
    run = table([0.9] * 80 + [0.1] * 20)
    found = run.corrected_mean("written", tpr=0.9, tnr=0.7, threshold=0.5)
    assert found.estimate == pytest.approx(0.5 / 0.6)
    groups = [index // 10 for index in range(100)]
    wider = table([0.9] * 80 + [0.1] * 20, cluster=groups).corrected_mean("written", tpr=0.9, tnr=0.7, threshold=0.5)
    assert wider.half_width > 1.2 * found.half_width


def test_a_mean_is_corrected_by_labels_in_the_table() -> None:
    """A part that people labelled corrects the mean of all: of the scores, or of those that pass."""
    labels = [1, 0, 1, *[None] * 7]
    run = table([0.9, 0.8, 0.7, 0.6, 0.9, 0.2, 0.1, 1.0, 0.5, 0.4], label=labels)
    assert run.corrected_mean("written").estimate == pytest.approx(0.61 - (2.4 - 2) / 3)
    assert run.corrected_mean("written", threshold=0.5).estimate == pytest.approx(0.7 - (3 - 2) / 3)
    lower = replace(run, better={"written": "lower"}, scales={"written": (0.0, 1.0)})
    assert lower.corrected_mean("written").estimate == pytest.approx(0.39 - (0.6 - 2) / 3)


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
    """Nothing known, too much given, or a calibration of something else."""
    with pytest.raises(ValueError, match=said):
        table([0.9, 0.1]).corrected_mean("written", **given)


def test_a_table_with_unscored_rows_is_corrected_only_on_purpose() -> None:
    """As for a mean, skip_unscored=True leaves them out."""
    run = table([0.9, 0.1, None])
    with pytest.raises(UnscoredError, match=r"1 of 3 rows are unscored; skip_unscored=True leaves them out"):
        run.corrected_mean("written", calibration=RATES)
    assert run.corrected_mean("written", calibration=RATES, skip_unscored=True).n == 2
    with pytest.raises(UnscoredError, match=r"none of 1 rows has a score"):
        table([None]).corrected_mean("written", calibration=RATES, skip_unscored=True)
    with pytest.raises(KeyError, match="'other' was not evaluated"):
        run.corrected_mean("other")


def test_a_judge_that_disagrees_fails_with_the_figures() -> None:
    """With the floor and the worst disagreements; one that agrees passes, and its calibration corrects a table."""
    found = rag_calibrated(Written(), many(5), min_kappa=0.4, threshold=0.5)
    run = evaluate([{"response": "0.9"}, {"response": "0.2"}] * 20, Written(), progress=False)
    assert run.corrected_mean("written", calibration=found).estimate == pytest.approx(0.5)
    with pytest.raises(AssertionError) as raised:
        rag_calibrated(Written(), CLEAR, 0.6, threshold=0.5)
    text = str(raised.value)
    assert text.startswith("kappa 0.50 < 0.60 (95 % interval -0.14..0.79, n=8)\nwritten by house judge against 8")
    assert "r6: people say bad (label 0), the judge passed it" in text


@pytest.mark.parametrize("floor", [2, -1.5, True, "0.6", None, math.nan])
def test_a_floor_that_is_none_is_refused(floor: Any) -> None:
    """Kappa is between -1 and 1."""
    with pytest.raises(ValueError, match=r"min_kappa must be a number between -1 and 1, such as 0\.6, not"):
        rag_calibrated(Written(), CLEAR, floor)
