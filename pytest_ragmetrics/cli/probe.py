"""`ragmetrics probe`: the accuracy of a judge on questions with known answers, and its resistance to injections."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from click import Choice

from pytest_ragmetrics.cli.command import (
    PATH,
    Arguments,
    Checked,
    CommandResult,
    Count,
    Number,
    command,
    judge_option,
    option,
    output,
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
from pytest_ragmetrics.core.errors import ArgumentError
from pytest_ragmetrics.core.files import prompt_folder, write_atomically
from pytest_ragmetrics.evaluation.engine import Engine


@command("probe")
@judge_option(required=True)
@option("--kind KIND", Choice(KINDS), f"only {', '.join(KINDS)}", multiple=True)
@option("--limit N", Count(2), "ask at most so many, spread over kinds and languages")
@option("--json FILE", output(), "write figures and answers as JSON")
@option("--min-accuracy X", Number(0, 1), "exit with status 1 if the accuracy is below X")
@option("--min-resistance X", Number(0, 1), "exit with status 1 if the resistance is below X")
@option("--prompts DIR", Checked(lambda text: prompt_folder(text, Path.cwd())), "as the setting rag_prompts")
@option("--cache-dir DIR", PATH, "keep the answers there (default: nowhere)")
def run(arguments: Arguments) -> CommandResult:
    """Ask a judge questions whose answers are known: how often it is right, and what deceives it."""
    chosen, besides = choose(read_probes(), arguments.kind, arguments.limit)
    # A floor needs a probe that it applies to.
    kinds = {probe.kind for probe in chosen}
    if arguments.min_resistance is not None and INJECTION not in kinds:
        raise ArgumentError(f"--min-resistance: no {INJECTION} is asked; add --kind={INJECTION}, or raise --limit")
    if arguments.min_accuracy is not None and not kinds - {INJECTION}:
        raise ArgumentError(f"--min-accuracy: nothing but {INJECTION}s is asked; add another --kind")
    engine = Engine(judge=arguments.judge, cache_dir=arguments.cache_dir, prompts=arguments.prompts)
    name = engine.judge().name
    outcomes = ask_probes(engine, [*chosen, *besides])
    figures = ProbeFigures(judge=name, chosen=outcomes[: len(chosen)], besides=outcomes[len(chosen) :])
    if arguments.json is not None:
        text = json.dumps(figures.to_document(), ensure_ascii=False, allow_nan=False, indent=1)
        write_atomically(arguments.json, f"{text}\n")
    below = list(_below(figures, arguments))
    return CommandResult(lines=[*figure_lines(figures), *below], status=int(bool(below)))


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
