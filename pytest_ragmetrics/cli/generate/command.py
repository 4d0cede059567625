"""`ragmetrics generate`: a first golden set out of documents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ragmetrics.cli.command import (
    SUITE_JUDGE,
    Arguments,
    Checked,
    CommandResult,
    Count,
    argument,
    budget_options,
    command,
    judge_option,
    option,
    run_options,
    stated,
)
from pytest_ragmetrics.core import files as paths
from pytest_ragmetrics.core.errors import ArgumentError, RagMetricsError

if TYPE_CHECKING:
    from pytest_ragmetrics.cli.generate.golden_set import GoldenFile

_LANGUAGE = re.compile(r"[^\W\d_][\w() -]{0,39}")


def _language(text: str) -> str | None:
    if text.strip() == "auto":
        return None
    if not _LANGUAGE.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is no name of a language, such as German or de")
    return text.strip()


def _set(text: str) -> Path:
    if not text.endswith(".jsonl"):
        raise ValueError(f"{text!r} is not a *.jsonl file")
    return Path(text).expanduser()


@command("generate")
@argument("docs DOCS...", "text files, folders of them, or a .jsonl file of passages")
@option("-o, --output FILE.jsonl", Checked(_set), "the set; existing rows are kept and counted", required=True)
@option("--questions N", Count(1), "rows of the finished set")
@judge_option(default=stated("judge", "auto"), help=f"the model, as for --rag-judge (default: {SUITE_JUDGE})")
@option("--language NAME", Checked(_language), "of the questions (default: auto, the documents')")
@run_options(cache="as ragmetrics cache", seed="random passages")
@budget_options()
@option("--per-passage N", Count(1), "questions per passage; each gets one first", default=5)
@option("--hops N", Count(1, 2), "2 for questions that take two passages together", default=1)
@option("--follow-ups", help="write conversations whose second question depends on the first")
@option("--check", help="only check rows against the documents; exit with 1 if some changed or are gone")
@option("--fix", help="with --check, update the places of moved passages")
def run(arguments: Arguments) -> CommandResult:
    """Write a first golden set: questions about documents, with answers and the passages that support them."""
    if arguments.fix and not arguments.check:
        raise ArgumentError("--fix belongs to --check: write both")
    if arguments.check:
        return _check(arguments)
    if arguments.questions is None:
        raise ArgumentError("--questions is missing: give the number of rows to write, or --check to check those of -o")
    if arguments.follow_ups and arguments.hops > 1:
        raise ArgumentError("--follow-ups and --hops=2 exclude each other: make two runs with the same file")
    try:
        paths.writable_file(str(arguments.output), Path.cwd())
    except ValueError as error:
        raise ArgumentError(str(error)) from error
    return _generate(arguments)


def _check(arguments: Arguments) -> CommandResult:
    from pytest_ragmetrics.cli.generate.documents import find_documents
    from pytest_ragmetrics.cli.generate.stale import check

    if arguments.questions is not None:
        raise ArgumentError("--check asks nothing: leave out --questions")
    if not (paths.exists(arguments.output) and arguments.output.is_file()):
        raise ArgumentError(f"{arguments.output} is no file: write the set first, with --questions")
    found, _ = find_documents(arguments.docs, output=arguments.output)
    lines, holds = check(arguments.output, found, fix=arguments.fix)
    return CommandResult(lines=lines, status=int(not holds))


def _generate(arguments: Arguments) -> CommandResult:
    from pytest_ragmetrics.cli.cache import session_options
    from pytest_ragmetrics.cli.generate.documents import find_documents, read_passages
    from pytest_ragmetrics.cli.generate.golden_set import GoldenFile, GoldenSet, spread, writer
    from pytest_ragmetrics.core import loop
    from pytest_ragmetrics.evaluation.engine import Engine

    found, others = find_documents(arguments.docs, output=arguments.output)
    documents = [read_passages(path, name) for name, path in found.items()]
    engine = Engine(judge=arguments.judge, budget=arguments.budget, **session_options(arguments, "generate"))
    try:
        golden = GoldenSet(
            judge=writer(engine, arguments.judge),
            file=GoldenFile(arguments.output),
            transport=engine.transport,
            questions=arguments.questions,
            width=arguments.concurrency,
            language=arguments.language,
            per_passage=arguments.per_passage,
            follow_ups=arguments.follow_ups,
        )
        try:
            loop.run(golden.fill(spread(documents, seed=arguments.seed, hops=arguments.hops)))
        except KeyboardInterrupt:
            golden.stopped = RagMetricsError("interrupted")
        finally:
            # On the thread of the loop: a request in flight may append a row after Ctrl-C.
            loop.run(_closed(golden.file))
    finally:
        engine.close()
        arguments.budget.close()
    if golden.stopped is not None and not golden.usage.calls + golden.usage.cached_calls:
        raise golden.stopped
    is_short = len(golden.file.rows) < arguments.questions
    lines = [*golden.summary(arguments.output, others), *arguments.waited()]
    return CommandResult(lines=lines, status=int(is_short))


async def _closed(file: GoldenFile) -> None:
    file.close()
