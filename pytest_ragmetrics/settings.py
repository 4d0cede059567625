"""Options, ini keys and environment variables, read once into one frozen value.

Precedence: command line > environment > ini > default. A relative path given in the ini file starts at the rootdir,
any other at the folder pytest was started in.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from pytest_ragmetrics import files as paths

DEFAULT_REPORT = "rag-report.html"
CACHE_FOLDER = ".ragmetrics"


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Everything a run was asked for."""

    judge: str
    embedder: str
    cache: Literal["auto", "replay", "refresh", "off"]
    cache_dir: Path
    cache_salt: str
    cassette: Path | None
    cassette_keep: bool
    concurrency: int
    timeout: float
    retries: int
    votes: int
    max_calls: int | None
    max_tokens: int | None
    max_cost: float | None
    dry_run: bool
    respond_threads: int
    prompts: Path | None
    report: Path | None
    json: Path | None
    markdown: Path | None
    baseline: Path | None

    def files(self) -> dict[str, Path]:
        """Return the files to write, by the name of their renderer."""
        files = (("report", self.report), ("json", self.json), ("markdown", self.markdown))
        return {name: path for name, path in files if path is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One setting: where it may be given, how its text is parsed, and its default.

    ``extra`` goes to argparse as it is. The ini key is ``rag_`` and the field. ``hook`` is the hook that may accept a
    text which ``parse`` refuses: if a plugin implements it, any text is valid.
    """

    field: str
    help: str
    parse: Callable[[str, Path], object]
    default: object = None
    flag: str | None = None
    environment: str | None = None
    extra: tuple[tuple[str, Any], ...] = ()
    in_ini: bool = True
    hook: str | None = None

    @property
    def name(self) -> str:
        """The ini key; also the name under which pytest keeps the command line's value."""
        return f"rag_{self.field}"


def add_options(parser: pytest.Parser) -> None:
    """Register every option and ini key."""
    group = parser.getgroup("ragmetrics", "RAG answer quality (pytest-ragmetrics)")
    for option in OPTIONS:
        if option.flag is not None:
            group.addoption(option.flag, dest=option.name, default=None, help=option.help, **dict(option.extra))
        if option.in_ini:
            parser.addini(
                option.name, help=option.help + (f" Same as {option.flag}." if option.flag else ""), default=""
            )


def read_settings(config: pytest.Config) -> Settings:
    """Read and check every setting; raise ``pytest.UsageError`` naming the one that is wrong."""
    return Settings(**{option.field: _read(option, config) for option in OPTIONS})


def judge_spec(text: str, config: pytest.Config) -> str:
    """Return the spec of a judge; raise ``ValueError`` for a text that neither the plugin nor a hook knows."""
    option = next(option for option in OPTIONS if option.field == "judge")
    return str(_parsed(option, text, config.rootpath, config))


def _read(option: Option, config: pytest.Config) -> Any:
    given = next(_given(option, config), None)
    if given is None:
        return config.rootpath / option.default if isinstance(option.default, Path) else option.default
    name, text, base = given
    try:
        return _parsed(option, text, base, config)
    except ValueError as error:
        msg = f"{name}: {error}"
        raise pytest.UsageError(msg) from error


def _parsed(option: Option, text: str, base: Path, config: pytest.Config) -> Any:
    try:
        return option.parse(text, base)
    except ValueError:
        if option.hook and text.strip() and getattr(config.hook, option.hook).get_hookimpls():
            return text.strip()
        raise


def _given(option: Option, config: pytest.Config) -> Iterator[tuple[str, str, Path]]:
    """Yield where the option was given, the strongest first, with its text and what relative paths start at."""
    invoked_from = config.invocation_params.dir
    if option.flag is not None and config.getoption(option.name) is not None:
        yield option.flag, config.getoption(option.name), invoked_from
    if option.environment and os.environ.get(option.environment, "").strip():
        yield f"environment variable {option.environment}", os.environ[option.environment], invoked_from
    if option.in_ini and config.getini(option.name).strip():
        yield f"ini option {option.name}", config.getini(option.name), config.rootpath


def _text(text: str, base: Path) -> str:
    del base
    return text.strip()


def _embedder_spec(text: str, base: Path) -> str:
    from pytest_ragmetrics.embedders.specs import check_embedder_spec

    del base
    return check_embedder_spec(text)


def _spec(text: str, base: Path) -> str:
    from pytest_ragmetrics.judges.specs import check_spec

    spec = check_spec(text)
    folder = base / spec.removeprefix("nli:").strip()
    return f"nli:{folder}" if spec.startswith("nli:") and folder.is_dir() else spec


def _mode(text: str, base: Path) -> str:
    del base
    modes = ("auto", "replay", "refresh", "off")
    if text.strip() not in modes:
        msg = f"{text.strip()!r} is none of {', '.join(modes)}"
        raise ValueError(msg)
    return text.strip()


def _number(kind: type[int | float], least: float) -> Callable[[str, Path], float]:
    def parse(text: str, base: Path) -> float:
        del base
        try:
            number = kind(text)
        except ValueError:
            number = kind(-1)
        if not (math.isfinite(number) and number >= least):
            what = "a whole number" if kind is int else "a number"
            msg = f"{text.strip()!r} is not {what} of at least {least:g}"
            raise ValueError(msg)
        return number

    return parse


def _flag(text: str, base: Path) -> bool:
    del text, base
    return True


OPTIONS = (
    Option(
        field="judge",
        flag="--rag-judge",
        environment="RAGMETRICS_JUDGE",
        parse=_spec,
        hook="pytest_ragmetrics_make_judge",
        default="auto",
        extra=(("metavar", "SPEC"),),
        help="Who judges: auto (default), local, openai:MODEL, anthropic:MODEL, nli:MODEL_OR_FOLDER, MODULE:FACTORY.",
    ),
    Option(
        field="embedder",
        flag="--rag-embedder",
        environment="RAGMETRICS_EMBEDDER",
        parse=_embedder_spec,
        hook="pytest_ragmetrics_make_embedder",
        default="auto",
        extra=(("metavar", "SPEC"),),
        help="Who embeds: auto, local, openai:MODEL, sentence-transformers:FOLDER or MODULE:FACTORY (default: auto).",
    ),
    Option(
        field="cache",
        flag="--rag-cache",
        environment="RAGMETRICS_CACHE",
        parse=_mode,
        default="auto",
        extra=(("metavar", "MODE"),),
        help="auto: ask what was never asked; replay: never ask; refresh: ask anew; off: keep nothing (default: auto).",
    ),
    Option(
        field="cache_dir",
        flag="--rag-cache-dir",
        environment="RAGMETRICS_CACHE_DIR",
        parse=paths.a_path,
        default=Path(CACHE_FOLDER),
        extra=(("metavar", "DIR"),),
        help=f"Folder of the local cache (default: {CACHE_FOLDER} in the rootdir).",
    ),
    Option(
        field="cassette",
        flag="--rag-cassette",
        parse=paths.a_file,
        extra=(("metavar", "FILE"),),
        help="Recorded answers to read first and to commit: one JSON object a line.",
    ),
    Option(
        field="cassette_keep",
        flag="--rag-cassette-keep",
        parse=_flag,
        default=False,
        extra=(("action", "store_const"), ("const", "yes")),
        in_ini=False,
        help="Keep what a full run did not use in the cassette.",
    ),
    Option(
        field="concurrency",
        flag="--rag-concurrency",
        environment="RAGMETRICS_CONCURRENCY",
        parse=_number(int, 1),
        default=32,
        extra=(("metavar", "N"),),
        help="How many requests may be in flight (default: 32).",
    ),
    Option(
        field="timeout",
        flag="--rag-timeout",
        parse=_number(float, 0.001),
        default=60.0,
        extra=(("metavar", "SECONDS"),),
        help="How long one attempt at a request may take (default: 60).",
    ),
    Option(
        field="retries",
        flag="--rag-retries",
        parse=_number(int, 0),
        default=5,
        extra=(("metavar", "N"),),
        help="How often a request that failed in passing is tried again (default: 5).",
    ),
    Option(
        field="votes",
        flag="--rag-votes",
        parse=_number(int, 1),
        default=1,
        extra=(("metavar", "K"),),
        help="How many independent judgements make a score, which is their mean (default: 1).",
    ),
    Option(
        field="max_calls",
        flag="--rag-max-calls",
        parse=_number(int, 0),
        extra=(("metavar", "N"),),
        help="How many requests the whole run may make, over all workers.",
    ),
    Option(
        field="max_tokens",
        flag="--rag-max-tokens",
        parse=_number(int, 0),
        extra=(("metavar", "N"),),
        help="After how many tokens, of prompts and answers, the run stops asking.",
    ),
    Option(
        field="max_cost",
        flag="--rag-max-cost",
        parse=_number(float, 0),
        extra=(("metavar", "DOLLARS"),),
        help="After how many US dollars the run stops asking.",
    ),
    Option(
        field="dry_run",
        flag="--rag-dry-run",
        parse=_flag,
        default=False,
        extra=(("action", "store_const"), ("const", "yes")),
        in_ini=False,
        help="Forecast requests, tokens and cost, and make no request; tests that score are skipped.",
    ),
    Option(
        field="respond_threads",
        parse=_number(int, 1),
        default=4,
        help="How many calls of a rag_respond that is not async are made at once (default: 4).",
    ),
    Option(
        field="prompts",
        parse=paths.prompt_folder,
        help="Folder of TASK.md files that replace the prompts of their tasks.",
    ),
    Option(
        field="cache_salt",
        parse=_text,
        default="",
        help="Any text; caches with different salts share no answers.",
    ),
    Option(
        field="report",
        flag="--rag-report",
        parse=paths.html_file,
        extra=(("metavar", "FILE.html"), ("nargs", "?"), ("const", DEFAULT_REPORT)),
        help=f"Write one self-contained HTML page with every score and its evidence (default: {DEFAULT_REPORT}).",
    ),
    Option(
        field="json",
        flag="--rag-json",
        parse=paths.writable_file,
        extra=(("metavar", "FILE"),),
        help="Write every score and its evidence as JSON.",
    ),
    Option(
        field="markdown",
        flag="--rag-markdown",
        parse=paths.markdown_file,
        extra=(("metavar", "FILE"),),
        help="Write a short summary in Markdown; auto: add it to the step summary of GitHub Actions.",
    ),
    Option(
        field="baseline",
        flag="--rag-baseline",
        parse=paths.existing_file,
        extra=(("metavar", "FILE"),),
        help="Show what changed since the run that wrote this file with --rag-json; assert_not_worse takes it as well.",
    ),
)
