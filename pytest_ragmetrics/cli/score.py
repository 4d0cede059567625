"""`ragmetrics score`: the scores of logged answers, of any number, into a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from pytest_ragmetrics.cli.cache import session_options
from pytest_ragmetrics.cli.command import (
    Arguments,
    Checked,
    CommandResult,
    Count,
    argument,
    budget_options,
    command,
    fitted,
    option,
    output,
    scoring_options,
)
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import ArgumentError, RagMetricsError
from pytest_ragmetrics.core.locks import written_alone
from pytest_ragmetrics.core.progress import Progress
from pytest_ragmetrics.core.sample import Turns
from pytest_ragmetrics.datasets.streaming import LoggedRow, logged_in_turns, stream_rows
from pytest_ragmetrics.evaluation.runner import BoundedMetric, bounded_metrics, rows_of
from pytest_ragmetrics.evaluation.score import Journal, score_rows
from pytest_ragmetrics.evaluation.score_files import ENDINGS, check_output, row_data
from pytest_ragmetrics.evaluation.session import OwnSession
from pytest_ragmetrics.judges.transports.breaker import CircuitBreaker
from pytest_ragmetrics.judges.transports.budget import Budget, BudgetUse, Limits, budget_line
from pytest_ragmetrics.runs.wording.figures import counted
from pytest_ragmetrics.runs.wording.runs import last_answers_text


def bounds_by_metric(text: str) -> dict[str, float | None]:
    """Return the names of metrics, with the bounds that rows are held to."""
    found: dict[str, float | None] = {}
    for part in text.split(","):
        name, is_bounded, bound = map(str.strip, part.partition("="))
        if name in found:
            raise ValueError(f"{name!r} is there twice: name each metric once")
        try:
            found[name] = float(bound) if is_bounded else None
        except ValueError as error:
            raise ValueError(f"{bound!r} is not a number: write {name}=0.8") from error
    metrics = [each.metric.name for each in bounded_metrics(found)]
    return dict(zip(metrics, found.values(), strict=True))


def _turns(text: str) -> str:
    if text not in get_args(Turns):
        raise ValueError(f"{text!r} is neither last nor each")
    return text


def _tools(text: str) -> str | list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValueError(f"{text!r} has a blank name: write tools, or the names of tools with commas between them")
    return text if text == "tools" else names


def _cluster(text: str) -> str:
    if text != "ray" and not text.startswith("ray="):
        raise ValueError(f"{text!r} is neither ray nor ray=ADDRESS")
    return text


def _output(text: str) -> Path:
    if not text.endswith(ENDINGS):
        raise ValueError(f"{text!r} is not a *.jsonl or *.parquet file")
    written: Path = output().parse(text)
    return written


@command("score")
@argument("rows ROWS...", "logged answers: .jsonl, .csv (also .gz), .parquet, or .json, which is read whole")
@option(
    "--metrics NAME,...",
    Checked(bounds_by_metric),
    "names of ragmetrics metrics; NAME=BOUND sets the pass mark",
    required=True,
)
@option(
    "-o, --output OUT",
    Checked(_output),
    "the scores, .jsonl or .parquet; an interrupted run resumes from OUT.part",
    required=True,
)
@scoring_options()
@option("--votes K", Count(1), "judgements per score (default: 1)")
@option("--limit N", Count(1), "take the first N rows")
@option("--turns last|each", Checked(_turns), "score the last answer of a conversation (default), or each")
@option(
    "--contexts-from TOOL,...",
    Checked(_tools),
    "take results of these tools, or of all (tools), as contexts of turns without any",
)
@option("--on ray[=ADDRESS]", Checked(_cluster), "score on a Ray cluster, or on all processors here")
@budget_options(then=": the other rows are unscored, and the command exits with 1")
def run(arguments: Arguments) -> CommandResult:
    """Score any number of logged answers into a file, for load_scores() and ragmetrics report."""
    check_output(arguments.output)
    if arguments.on is not None and (arguments.rpm or arguments.tpm):
        raise ArgumentError("--rpm and --tpm count on one machine: leave them out with --on, or lower --concurrency")
    if arguments.output.exists() and any(arguments.output.samefile(file) for file in arguments.rows if file.exists()):
        raise ArgumentError(f"{arguments.output} would replace the rows: name another file")
    metrics = bounded_metrics(arguments.metrics)
    given = stream_rows(arguments.rows, limit=arguments.limit, columns=arguments.columns)
    whole = any(each.metric.of_conversation for each in metrics)
    turns = logged_in_turns(given, arguments.turns or "last", contexts_from=arguments.contexts_from, whole=whole)
    rows = rows_of(turns, metrics)
    answers: list[int] = []
    budget = arguments.budget
    # What the scores depend on.
    settings = {name: getattr(arguments, name) for name in ("metrics", "judge", "embedder", "votes")}
    settings |= {"columns": arguments.columns.fields} if arguments.columns.fields else {}
    settings |= {name: it for name in ("turns", "contexts_from") if (it := getattr(arguments, name))}
    written = "another ragmetrics score is writing it; wait for it, or name another"
    try:
        with written_alone(arguments.output, ArgumentError(f"{arguments.output}: {written}")):
            journal = Journal(arguments.output, list(arguments.metrics), settings)
            used = _fill(journal, journal.take_up(_counting(rows, metrics, answers)), arguments, budget)
            journal.finish()
        refused = budget.used().refused + used.refused
        lines = [
            *_summary(journal, arguments.output, budget, used),
            *arguments.waited(),
            *([last_answers_text(answers)] if answers else []),
        ]
        return CommandResult(lines=fitted(lines), status=int(refused > 0))
    finally:
        budget.close()


def _counting(rows: Iterable[LoggedRow], metrics: Sequence[BoundedMetric], answers: list[int]) -> Iterator[LoggedRow]:
    """Yield the rows, and add to ``answers`` how many a conversation has of which only the last is scored."""
    for row in rows:
        sample = row.sample
        number = 0 if sample is None else max(each.metric.answers_of(sample) for each in metrics)
        answers += [number] if number else []
        yield row


def _fill(journal: Journal, rows: Iterator[LoggedRow], arguments: Arguments, budget: Budget) -> BudgetUse:
    """Score the rows that are left, and return what other processes spent; an error that ends it names the journal."""
    shown = Progress("scored", None, done=journal.rows)

    def take(row: Mapping[str, Any]) -> None:
        journal.add(row)
        shown.advance(note=journal.note())

    metrics = bounded_metrics(arguments.metrics, judge=arguments.judge, embedder=arguments.embedder)
    options = session_options(arguments, "score")
    try:
        if arguments.on is not None:
            from pytest_ragmetrics.evaluation.ray import score_rows_on_ray

            on_ray = {name: options[name] for name in ("concurrency", "cache_dir")} | {"votes": arguments.votes}
            address = arguments.on.removeprefix("ray").removeprefix("=") or None
            return score_rows_on_ray(rows, metrics, take, address=address, limits=budget.limits, **on_ray)
        with OwnSession(budget=budget, **options) as session:
            breaker = CircuitBreaker(arguments.concurrency)
            scoring = {"votes": arguments.votes, "breaker": breaker, "gives_up": True}
            loop.run(score_rows(rows, metrics, session, take=lambda row: take(row_data(row)), **scoring))
        return BudgetUse()
    except RagMetricsError as error:
        if journal.rows:
            again = f"{journal.path} has {counted(journal.rows, 'row')}: the same command goes on from there"
            raise RagMetricsError(f"{error}\n{again}") from error
        raise
    finally:
        shown.finish()


def _summary(journal: Journal, output: Path, budget: Budget, used: BudgetUse) -> Sequence[str]:
    earlier = f", {journal.earlier:,} of them by an earlier run" if journal.earlier else ""
    usage = journal.usage
    saved = f", {usage.cached_calls:,} answered from the cache" if usage.cached_calls else ""
    judged = f"{counted(usage.calls, 'judge call')}{saved}" if usage.calls or usage.cached_calls else "no judge calls"
    return [
        f"{output}: {counted(journal.rows, 'row')} scored{earlier}",
        *(tally.line(metric) for metric, tally in journal.tallies.items()),
        f"  {judged}",
        *([f"  {budget_line(budget, [asdict(used)])}"] if budget.limits != Limits() else []),
    ]
