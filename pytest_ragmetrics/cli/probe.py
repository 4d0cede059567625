"""`ragmetrics probe`: what a judge says to questions with known answers, and metrics to planted faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click import Choice

from pytest_ragmetrics.cli.cache import session_options
from pytest_ragmetrics.cli.command import (
    Arguments,
    Checked,
    CommandResult,
    Count,
    Number,
    argument,
    command,
    fitted,
    option,
    output,
    scoring_options,
)
from pytest_ragmetrics.cli.probes.probes import (
    INJECTION,
    KINDS,
    ProbeFigures,
    ask_probes,
    choose,
    figure_lines,
    read_probes,
)
from pytest_ragmetrics.cli.score import bounds_by_metric
from pytest_ragmetrics.core.errors import ArgumentError
from pytest_ragmetrics.core.files import prompt_folder, write_atomically
from pytest_ragmetrics.evaluation.dry_run import Forecast
from pytest_ragmetrics.evaluation.engine import Engine
from pytest_ragmetrics.evaluation.mutants import MUTANT_KINDS
from pytest_ragmetrics.evaluation.mutation import answers_in, drawn, probe_answers
from pytest_ragmetrics.evaluation.runner import bounded_metrics

# Options of the one use and of the other.
_OF_QUESTIONS, _OF_ROWS = ("limit", "min_accuracy", "min_resistance"), ("metrics", "rows", "min", "dry_run")
_ROWS = 20


@command("probe")
@argument(
    "answers [ROWS]...",
    "right answers with their passages, to plant faults into: .jsonl, .csv, .json, also of --rag-json",
)
@option("--metrics NAME,...", Checked(bounds_by_metric), "metrics of ROWS; NAME=BOUND sets the pass mark")
@option("--rows N", Count(1), f"take N random ROWS (default: {_ROWS})")
@option("--min X", Number(0, 1), "exit with 1 if a smaller share of the faults is noticed")
@option("--dry-run", help="forecast the requests of ROWS, and make none")
@option(
    "--kind KIND",
    Choice([*dict.fromkeys((*KINDS, *MUTANT_KINDS))]),
    f"only these questions: {', '.join(KINDS)}; or faults: {', '.join(MUTANT_KINDS)}",
    multiple=True,
)
@option("--limit N", Count(2), "N questions, spread over kinds and languages")
@option("--json FILE", output(), "write figures and answers")
@option("--min-accuracy X", Number(0, 1), "exit with 1 if the accuracy is below X")
@option("--min-resistance X", Number(0, 1), "exit with 1 if the resistance is below X")
@option("--prompts DIR", Checked(lambda text: prompt_folder(text, Path.cwd())), "as the setting rag_prompts")
@scoring_options(seed="of the rows and faults", cache="with ROWS as ragmetrics cache, else nowhere")
def run(arguments: Arguments) -> CommandResult:
    """Report which planted faults metrics notice, or how a judge answers questions with known answers."""
    of_rows = bool(arguments.answers)
    others = _OF_QUESTIONS if of_rows else _OF_ROWS
    if given := [name for name in others if not any(getattr(arguments, name) is it for it in (None, False))]:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ArgumentError(f"{names}: for a probe {'of a judge: leave out' if of_rows else 'with answers: give'} ROWS")
    known = MUTANT_KINDS if of_rows else KINDS
    if unknown := [kind for kind in arguments.kind if kind not in known]:
        raise ArgumentError(
            f"--kind={unknown[0]}: {'with' if of_rows else 'without'} ROWS it is one of {', '.join(known)}"
        )
    return _of_rows(arguments) if of_rows else _of_judge(arguments)


def _of_rows(arguments: Arguments) -> CommandResult:
    """Say which planted faults the metrics notice."""
    if arguments.metrics is None:
        raise ArgumentError("--metrics: name what ROWS are scored by, such as faithfulness=0.8,numbers_aligned")
    answers = [sample for file in arguments.answers for sample in answers_in(file, arguments.columns)]
    samples = drawn(answers, arguments.rows or _ROWS, arguments.seed)
    if not samples:
        raise ArgumentError("no row has a response, or all are conversations: give answers with their passages")
    metrics = bounded_metrics(arguments.metrics, judge=arguments.judge, embedder=arguments.embedder)
    forecast = Forecast(limits=arguments.pace.limits) if arguments.dry_run else None
    table = probe_answers(
        samples,
        metrics,
        kinds=arguments.kind or MUTANT_KINDS,
        seed=arguments.seed,
        forecast=forecast,
        prompts=arguments.prompts,
        **session_options(arguments, "probe"),
    )
    if forecast is not None:
        return CommandResult(lines=fitted(forecast.summary()), status=0)
    _write(arguments.json, table.to_document())
    below, least = [], arguments.min
    if table.share is None:
        below = ["none of these faults has a verdict: see ragmetrics score for the reasons"]
    elif least is not None and table.share < least:
        below = [f"{table.share:.3f} of the planted faults were noticed, below --min={least:g}"]
    return CommandResult(lines=fitted([*table.lines(), *arguments.waited(), *below]), status=int(bool(below)))


def _write(path: Path | None, document: Any) -> None:
    if path is not None:
        write_atomically(path, f"{json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)}\n")


def _of_judge(arguments: Arguments) -> CommandResult:
    """Say how often a judge is right about questions with known answers."""
    if arguments.judge is None:
        raise ArgumentError("--judge: name the judge to examine, or give ROWS with --metrics")
    chosen, besides = choose(read_probes(), arguments.kind, arguments.limit)
    # A floor needs a probe that it applies to.
    kinds = {probe.kind for probe in chosen}
    if arguments.min_resistance is not None and INJECTION not in kinds:
        raise ArgumentError(f"--min-resistance: no {INJECTION} is asked; add --kind={INJECTION}, or raise --limit")
    if arguments.min_accuracy is not None and not kinds - {INJECTION}:
        raise ArgumentError(f"--min-accuracy: nothing but {INJECTION}s is asked; add another --kind")
    given = {name: getattr(arguments, name) for name in ("judge", "cache_dir", "prompts", "concurrency", "pace")}
    engine = Engine(**given)
    name = engine.judge().name
    outcomes = ask_probes(engine, [*chosen, *besides])
    figures = ProbeFigures(judge=name, chosen=outcomes[: len(chosen)], besides=outcomes[len(chosen) :])
    _write(arguments.json, figures.to_document())
    below = list(_below(figures, arguments))
    return CommandResult(lines=[*figure_lines(figures), *arguments.waited(), *below], status=int(bool(below)))


def _below(figures: ProbeFigures, arguments: Arguments) -> Iterator[str]:
    if all(outcome.found is None for outcome in figures.chosen):
        yield "none of these probes was answered"
        return
    floors = (
        ("accuracy", figures.accuracy, figures.lowest_accuracy, arguments.min_accuracy),
        ("resistance", figures.resistance, figures.lowest_resistance, arguments.min_resistance),
    )
    for name, rate, lowest, floor in floors:
        if floor is not None and lowest < floor:
            note = "" if rate.n and rate.right / rate.n == lowest else ", counting what says nothing as wrong"
            yield f"{name} {lowest:.3f} is below --min-{name}={floor:g}{note}"
