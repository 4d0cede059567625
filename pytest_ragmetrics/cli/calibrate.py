"""`ragmetrics calibrate`: the agreement of a judge's scores with human labels."""

from __future__ import annotations

from pathlib import Path

from click import Choice

from pytest_ragmetrics.cli.cache import session_options
from pytest_ragmetrics.cli.command import (
    FINITE,
    Arguments,
    Checked,
    CommandResult,
    Count,
    Number,
    argument,
    command,
    fitted,
    html_option,
    option,
    output,
    scoring_options,
)
from pytest_ragmetrics.core.errors import ArgumentError
from pytest_ragmetrics.core.files import write_atomically
from pytest_ragmetrics.evaluation.calibration.calibrate import calibrate
from pytest_ragmetrics.evaluation.calibration.marks import marked_verdicts, read_labelled
from pytest_ragmetrics.evaluation.calibration.result import Calibration, CalibrationError, LabelScale
from pytest_ragmetrics.evaluation.calibration.text import calibration_lines, fault_lines, floor_line, mark_lines
from pytest_ragmetrics.evaluation.session import OwnSession
from pytest_ragmetrics.judges.context import changed
from pytest_ragmetrics.metrics.registry import metric_named


def _metric(text: str) -> str:
    metric_named(text)
    return text


@command("calibrate")
@argument(
    "file FILE",
    "labelled answers: .jsonl, .json or .csv with a field label, 1 (good) or 0 (bad); or marks saved from a report",
)
@option("--limit N", Count(1), "take the first N rows")
@option("--label-field NAME", str, "the field of the label", default="label")
@option("--label-scale LOW HIGH", FINITE, "the worst and the best label (default: 0 1)", nargs=2, default=(0.0, 1.0))
@option("--good-from X", FINITE, "the lowest label of a good answer (default: the middle)")
@option("--group-field NAME", str, "groups dependent rows, by source for example (default: group, else cluster)")
@option("--metric NAME", Checked(_metric), "the metric, as ragmetrics metrics names it", required=True)
@scoring_options(seed="of the folds")
@option("--threshold T", FINITE, "the pass mark (default: the suggested one)")
@option(
    "--aim", Choice(("balanced-accuracy", "kappa")), "what a threshold is suggested for", default="balanced-accuracy"
)
@option(
    "--min-kappa X",
    Number(-1, 1),
    "exit with 1 if the lower end of Cohen's kappa is below X, or a row is unscored",
)
@option(
    "--by",
    Choice(("bound", "estimate")),
    "what --min-kappa holds: the lower end of the interval, or the estimate",
    default="bound",
)
@option("--fresh", help="do not use stored replies")
@option("--skip-unscored", help="ignore unscored rows in --min-kappa")
@option(
    "--vacuous",
    Choice(("skip", "count")),
    "answers with nothing to check",
    default="skip",
)
@html_option(help="write a page")
@option("--json FILE", output(), "write figures for Evaluation.corrected_mean()")
@option("--worst N", Count(1), "disagreements to show", default=10)
def run(arguments: Arguments) -> CommandResult:
    """Measure the agreement of a judge with human labels, and suggest a threshold."""
    if (marked := _marked(arguments)) is not None:
        return CommandResult(lines=marked, status=0)
    found = _measured(arguments)
    lines = [*calibration_lines(found, worst=arguments.worst), *arguments.waited(), *_written(arguments, found)]
    faults = []
    if arguments.min_kappa is not None:
        floor, by = arguments.min_kappa, arguments.by
        faults = fault_lines(found, floor, by=by, skip_unscored=arguments.skip_unscored)
        lines += [f"FAILED: {fault}" for fault in faults] or [f"passed: {floor_line(found, floor, by=by)}"]
    return CommandResult(lines=fitted(lines), status=int(bool(faults)))


def _marked(arguments: Arguments) -> list[str] | None:
    """Return the lines on a file that has marks of findings alone, ``None`` for one with answers."""
    answers, marks = read_labelled(arguments.file, base=Path.cwd(), columns=arguments.columns)
    if answers:
        return None
    for name in ("min_kappa", "json", "html"):
        if getattr(arguments, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise CalibrationError(f"{arguments.file} has marks alone, and {flag} takes labels: see ragmetrics label")
    lines = mark_lines(marked_verdicts(marks, arguments.metric))
    if not lines:
        names = ", ".join(sorted({mark.metric for mark in marks}))
        raise CalibrationError(f"{arguments.file} has no mark of {arguments.metric}; it has {names}")
    return lines


def _measured(arguments: Arguments) -> Calibration:
    low, high = arguments.label_scale
    try:
        scale = LabelScale(field=arguments.label_field, low=low, high=high, good_from=arguments.good_from)
    except ValueError as error:
        # It begins with the name of the parameter.
        raise ArgumentError(f"--{str(error).replace('_', '-', 1)}") from error
    if arguments.json is not None and arguments.json.resolve() == arguments.file.resolve():
        raise ArgumentError("--json would replace the labelled answers: name another file")
    names = "judge embedder threshold group_field limit columns seed vacuous fresh"
    given = {name: getattr(arguments, name) for name in names.split()}
    options = {"label_scale": scale, "aim": arguments.aim.replace("-", "_"), "progress": True, **given}
    try:
        with OwnSession(**session_options(arguments, "calibrate")) as session, changed(private=session):
            return calibrate(arguments.metric, arguments.file, **options)
    except (TypeError, ValueError) as error:
        raise CalibrationError(f"{arguments.file}: {error}") from error


def _written(arguments: Arguments, found: Calibration) -> list[str]:
    from pytest_ragmetrics.report.page import render_calibration

    texts = {}
    if arguments.json is not None:
        texts[arguments.json] = found.to_json()
    if arguments.html is not None:
        texts[arguments.html] = render_calibration(found)
    for path, text in texts.items():
        write_atomically(path, text)
    return [f"{path}: written" for path in texts]
