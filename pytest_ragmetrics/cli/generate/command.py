"""`ragmetrics generate`: a first golden set out of documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_ragmetrics.cli.command import (
    Arguments,
    Checked,
    CommandResult,
    Count,
    argument,
    command,
    judge_option,
    option,
    output,
    run_options,
)
from pytest_ragmetrics.core.errors import RagMetricsError

if TYPE_CHECKING:
    from pytest_ragmetrics.cli.generate.golden_set import GoldenFile

_LANGUAGE = re.compile(r"[^\W\d_][\w() -]{0,39}")


def _language(text: str) -> str | None:
    if text.strip() == "auto":
        return None
    if not _LANGUAGE.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is no name of a language, such as German or de")
    return text.strip()


@command("generate")
@argument("docs DOCS...", "text files, folders of them, or a .jsonl file of passages")
@option("-o, --output FILE.jsonl", output(".jsonl"), "the set; rows that are there are kept and count", required=True)
@option("--questions N", Count(1), "how many rows it is to have", required=True)
@judge_option(default="auto", help="the model: auto, openai:MODEL, anthropic:MODEL or MODULE:FACTORY (default: auto)")
@option("--language NAME", Checked(_language), "such as German (default: auto, the documents')")
@run_options(
    requests="requests at a time (default: 32)",
    cache="as for `ragmetrics cache`",
    seed="which passages are asked about",
)
@option("--max-calls N", Count(1), "ask the judge at most so often")
def run(arguments: Arguments) -> CommandResult:
    """Write a first golden set: questions about documents, with answers and the passages that support them."""
    from pytest_ragmetrics.cache.folder import default_folder
    from pytest_ragmetrics.cli.generate.documents import find_documents, read_passages
    from pytest_ragmetrics.cli.generate.golden_set import GoldenFile, GoldenSet, spread, writer
    from pytest_ragmetrics.core import loop
    from pytest_ragmetrics.evaluation.engine import Engine
    from pytest_ragmetrics.judges.transports.budget import Budget, Limits

    found, others = find_documents(arguments.docs, output=arguments.output)
    documents = [read_passages(path, name) for name, path in found.items()]
    budget = Budget(Limits(calls=arguments.max_calls), options="--max-")
    cache = arguments.cache_dir or default_folder()
    engine = Engine(judge=arguments.judge, cache_dir=cache, concurrency=arguments.concurrency, budget=budget)
    try:
        golden = GoldenSet(
            judge=writer(engine, arguments.judge),
            file=GoldenFile(arguments.output),
            transport=engine.transport,
            questions=arguments.questions,
            width=arguments.concurrency,
            language=arguments.language,
        )
        try:
            loop.run(golden.fill(spread(documents, seed=arguments.seed)))
        except KeyboardInterrupt:
            golden.stopped = RagMetricsError("interrupted")
        finally:
            # On the thread of the loop: a request in flight may append a row after Ctrl-C.
            loop.run(_closed(golden.file))
    finally:
        engine.close()
        budget.close()
    if golden.stopped is not None and not golden.usage.calls + golden.usage.cached_calls:
        raise golden.stopped
    is_short = len(golden.file.rows) < arguments.questions
    return CommandResult(lines=golden.summary(arguments.output, others), status=int(is_short))


async def _closed(file: GoldenFile) -> None:
    file.close()
