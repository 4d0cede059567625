"""The wording of a calibration, for ``ragmetrics calibrate``, failures of ``rag_calibrated`` and the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pytest_ragmetrics.core.result import ThresholdCheck, Verdict
from pytest_ragmetrics.evaluation.calibration.marks import MarkedVerdicts
from pytest_ragmetrics.evaluation.calibration.queue import QueuedRow
from pytest_ragmetrics.evaluation.calibration.result import Calibration, DecidedBy, LabelledRow
from pytest_ragmetrics.runs.records import result_of
from pytest_ragmetrics.runs.wording.failures import check_of, explain, explain_row
from pytest_ragmetrics.runs.wording.figures import (
    SHOWN,
    and_more,
    checked_text,
    counted,
    format_apart,
    format_interval,
    named,
    quoted,
    readable,
)
from pytest_ragmetrics.stats.intervals import Interval
from pytest_ragmetrics.text.unicode import printable

_LABELS_NEEDED = "a very good judge takes about 50 labels to reach 0.6, a good one 100 or more"
_TEXT_LIMIT = 200
# Lines of evidence for one disagreement, and how many verdicts that passed are among them.
_EVIDENCE = 6
_SUPPORTED = 3
_BAR = 20
# The characters of a text that a person reads before labelling an answer.
_READ = 3000


def calibration_lines(calibration: Calibration, *, worst: int = SHOWN) -> list[str]:
    """Return the whole calibration as lines: the figures, the suggestion, the curve, and the worst disagreements."""
    curve = []
    for found in calibration.figures.reliability:
        rate = f"{found.good.estimate:4.0%} ({found.good.low:.0%}..{found.good.high:.0%})"
        bar = "#" * round(found.good.estimate * _BAR)
        curve.append(f"  {found.low:4.2f}..{found.high:4.2f}  {found.n:5}  {rate:<18} {bar}".rstrip())
    return [
        headline(calibration),
        *(f"  {line}" for line in left_out(calibration)),
        f"{threshold_line(calibration)}:",
        *_figures(calibration),
        *suggestion_lines(calibration),
        "score, answers, and how many of them people found good:",
        *curve,
        *disagreement_lines(calibration, worst=worst),
    ]


def headline(calibration: Calibration) -> str:
    """Return one line: the metric, the judge, and the numbers of labels and groups."""
    good = sum(row.good for row in calibration.rows)
    judge = f" by {printable(calibration.judge)}" if calibration.judge else " (no judge)"
    groups = f" in {counted(calibration.groups, 'group')}" if calibration.grouped else ""
    return (
        f"{printable(calibration.metric)}{judge} against "
        f"{counted(len(calibration.rows), 'human label')}{groups}: {good} good, {len(calibration.rows) - good} bad"
    )


def decider(calibration: Calibration) -> str:
    """Return what passes or fails an answer: the judge, or a metric that has none."""
    return "the judge" if calibration.judge else "the metric"


def left_out(calibration: Calibration) -> list[str]:
    """Return the lines about the age of the replies, and about rows that are in no figure."""
    lines = []
    if calibration.reply_days is not None:
        newest, oldest = calibration.reply_days
        age = f"{newest} to {oldest} days" if newest != oldest else counted(oldest, "day")
        lines.append(f"its replies are {age} old" if oldest else "its replies are from today")
    if calibration.unlabelled:
        lines.append(f"without a label, not scored: {counted(calibration.unlabelled, 'row')}")
    if calibration.undrawn:
        lines.append(f"not drawn by chance as the others, in no figure: {counted(calibration.undrawn, 'label')}")
    if calibration.vacuous:
        lines.append(f"{checked_text(len(calibration.rows), calibration.vacuous)}, the others are in no figure")
    if calibration.unscored:
        lines.append(f"unscored, in no figure: {counted(len(calibration.unscored), 'row')}")
        lines += [f"  {named(name)}: {readable(reason)}" for name, reason in calibration.unscored[:SHOWN]]
        lines += and_more(len(calibration.unscored))
    return [*lines, *mark_lines(calibration.marks)]


def mark_lines(marks: Sequence[MarkedVerdicts]) -> list[str]:
    """Return the lines on what readers of reports marked, by judge."""
    lines = []
    for found in marks:
        shares = [
            f"{round(right.estimate * right.n)} of {right.n:,} {what} rightly ({format_interval(right)})"
            for what, right in (("rejected", found.rejected), ("accepted", found.accepted))
            if right is not None
        ]
        shares += [f"{found.unsure:,} unsure"] if found.unsure else []
        judge = printable(found.judge or "no judge")
        lines.append(f"  by {judge}, in {counted(found.tests, 'test')}: {', '.join(shares)}")
    return ["marks of findings, in no figure, as readers chose what they marked:", *lines] if lines else []


def threshold_line(calibration: Calibration) -> str:
    """Return the line about the threshold."""
    figures = calibration.figures
    sign = "<=" if calibration.better == "lower" else ">="
    if figures.is_given or figures.suggestion is None:
        return f"an answer passes at a score {sign} {figures.threshold:g}, as given"
    unit = "groups" if calibration.grouped else "rows"
    return (
        f"an answer passes at a score {sign} about {figures.threshold:g}; cross-validated, each threshold chosen on "
        f"{figures.suggestion.folds - 1} of {figures.suggestion.folds} parts of the {unit} and tried on the other"
    )


def figure_lines(calibration: Calibration) -> tuple[tuple[str, str, Interval], ...]:
    """Return the figures, the most important first: name, meaning in plain words, and interval."""
    found = calibration.figures.agreement
    return (
        ("kappa", "agreement beyond chance", found.kappa),
        ("balanced accuracy", "0.5 is a coin flip", found.balanced_accuracy),
        ("TPR", "of the good answers, passed", found.tpr),
        ("TNR", "of the bad answers, caught", found.tnr),
        ("F1 of the bad", "precision and recall of the bad", found.f1_bad),
        ("AUROC", "a good one scores above a bad one", calibration.figures.auroc),
    )


def suggestion_lines(calibration: Calibration) -> list[str]:
    """Return the lines about the suggested threshold, or why there is none."""
    found = calibration.figures.suggestion
    if found is None:
        return [f"no threshold suggested: {calibration.figures.no_suggestion}"]
    aim = "balanced accuracy" if found.aim == "balanced_accuracy" else "kappa"
    lines = [f"suggested threshold: {found.threshold:g}, the highest {aim}"]
    if calibration.figures.is_given:
        kappa, accuracy = (
            f"{interval.estimate:.2f} ({interval.low:.2f}..{interval.high:.2f})"
            for interval in (found.agreement.kappa, found.agreement.balanced_accuracy)
        )
        lines.append(f"  cross-validated: kappa {kappa}, balanced accuracy {accuracy}")
    return lines


def floor_line(calibration: Calibration, min_kappa: float, *, by: DecidedBy = "bound") -> str:
    """Return the line that compares the lower end of kappa's interval, or its estimate, with a floor."""
    kappa = calibration.figures.agreement.kappa
    value = kappa.low if by == "bound" else kappa.estimate
    operator = ">=" if value >= min_kappa else "<"
    found, floor = format_apart(value, min_kappa)
    if by == "estimate":
        return f"kappa {found} {operator} {floor} ({format_interval(kappa)}, n={kappa.n})"
    hint = f"; {_LABELS_NEEDED}" if value < min_kappa <= kappa.estimate else ""
    figures = f"kappa {kappa.estimate:.2f} ({format_interval(kappa)}, n={kappa.n})"
    return f"{figures}: the lower end of its interval {found} {operator} {floor}{hint}"


def fault_lines(
    calibration: Calibration, min_kappa: float | None, *, by: DecidedBy = "bound", skip_unscored: bool = False
) -> list[str]:
    """Return the lines that say why a calibration is not good enough, none if it is."""
    lines = []
    if calibration.unscored and not skip_unscored:
        total = len(calibration.unscored) + len(calibration.rows) + calibration.vacuous
        lines.append(f"{len(calibration.unscored)} of {counted(total, 'labelled row')} unscored")
    kappa = calibration.figures.agreement.kappa
    if min_kappa is not None and (kappa.low if by == "bound" else kappa.estimate) < min_kappa:
        lines.append(floor_line(calibration, min_kappa, by=by))
    return lines


def disagreement_lines(calibration: Calibration, *, worst: int) -> list[str]:
    """Return the lines of the worst disagreements with the judge's evidence."""
    found = calibration.disagreements()
    if not found:
        return ["no disagreement"]
    of_all = f"{len(found)} of {counted(len(calibration.rows), 'row')} at {calibration.figures.threshold:g}"
    lines = [f"disagreements: {of_all}, the widest apart first"]
    for row in found[:worst]:
        lines.append(f"  {disagreement_line(calibration, row)}")
        lines += [f"    {line}" for line in evidence_lines(calibration, row)]
    return lines + and_more(len(found), shown=worst)


def disagreement_line(calibration: Calibration, row: LabelledRow) -> str:
    """Return the line with the name of a row, its label, and the verdict of the judge."""
    label = "good" if row.good else "bad"
    verdict = "passed" if calibration.passes(row) else "failed"
    return f"{named(row.name)}: people say {label} (label {row.label:g}), {decider(calibration)} {verdict} it"


def evidence_lines(calibration: Calibration, row: LabelledRow) -> list[str]:
    """Return the response and the evidence of the judge for its score."""
    passed = calibration.passes(row)
    bound = ThresholdCheck(
        operator="<=" if calibration.better == "lower" else ">=", bound=calibration.figures.threshold, held=passed
    )
    lines = explain(row.result, bound)
    if passed:
        lines[1:] = _support_lines(row.result.verdicts[:_SUPPORTED])
    if len(lines) > _EVIDENCE:
        lines = [*lines[:_EVIDENCE], f"  ... and {counted(len(lines) - _EVIDENCE, 'more line')}"]
    response = row.sample.response
    return [*([f"response: {quoted(response, _TEXT_LIMIT)}"] if response else []), *lines]


def _support_lines(verdicts: Iterable[Verdict]) -> Iterator[str]:
    for verdict in (verdict for verdict in verdicts if verdict.ok and verdict.counts):
        yield f"  held to be right: {quoted(verdict.text, _TEXT_LIMIT)}"
        for evidence in verdict.evidence[:1]:
            place = f"contexts[{evidence.context}][{evidence.start}:{evidence.end}]"
            yield f"    by: {quoted(evidence.text, _TEXT_LIMIT)} ({place})"


def queued_lines(row: QueuedRow) -> list[str]:
    """Return the lines that show an answer to label: what was asked and answered, and what the judge says of it."""
    record = row.record
    supported = list(_support_lines(record.verdicts))
    shown = supported[: 2 * SHOWN]
    rest = [f"  ... and {counted(len(supported) - len(shown), 'more line')}"] if supported[len(shown) :] else []
    return [*explain_row(record.sample, longest=_READ), *explain(result_of(record), check_of(record)), *shown, *rest]


def _figures(calibration: Calibration) -> Iterator[str]:
    lines = figure_lines(calibration)
    found = calibration.figures.agreement
    width = max(len(name) for name, *_ in lines)
    yield f"  {'':{width}}         {found.kappa.confidence * 100:g} % interval"
    for name, meaning, interval in lines:
        ends = f"{interval.low:.2f}..{interval.high:.2f}"
        yield f"  {name:{width}}  {interval.estimate:5.2f}  {ends:<12}  {meaning}"
    good, bad = (found.passed_good, found.failed_good), (found.passed_bad, found.failed_bad)
    width = max(len("passed"), *(len(f"{count:,}") for count in good + bad))
    yield f"  {f'{decider(calibration)}:':<12} {'passed':>{width}}  {'failed':>{width}}"
    yield "  people: good " + "  ".join(f"{count:>{width},}" for count in good)
    yield "          bad  " + "  ".join(f"{count:>{width},}" for count in bad)
