"""What a command is, and the readers of arguments that several commands have."""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeVar

from pytest_ragmetrics.core import files as paths
from pytest_ragmetrics.datasets.rows import NO_COLUMNS, Columns
from pytest_ragmetrics.judges.embedders.specs import check_embedder_spec
from pytest_ragmetrics.judges.specs import check_spec, names_module
from pytest_ragmetrics.text.unicode import printable_lines


class CommandResult(NamedTuple):
    """The lines to print and the exit status."""

    lines: Sequence[str]
    status: int


Work = Callable[[argparse.Namespace], Sequence[str] | CommandResult]


class Command(NamedTuple):
    """One command: its name, its arguments, and the function that returns the lines to print."""

    name: str
    help: str
    run: Work | None = None
    configure: Callable[[argparse.ArgumentParser], object] = lambda _: None
    commands: tuple[Command, ...] = ()


T = TypeVar("T")

#: The judges that a command takes by name.
JUDGES = "auto, local, openai:MODEL, anthropic:MODEL, nli:MODEL_OR_FOLDER, MODULE:FACTORY or panel:SPEC,SPEC,SPEC"
# The longest whole number that is taken.
_DIGITS = 9


def checked(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return a reader of arguments whose ``ValueError`` or ``OSError`` becomes the message of argparse."""

    def read(text: str) -> T:
        try:
            return parse(text)
        except (ValueError, OSError) as error:
            # The path of an OSError may be thousands of characters long.
            said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise argparse.ArgumentTypeError(said) from error

    return read


def output(ending: str = "") -> Callable[[str], Path]:
    """Return the reader of a path to write, which must have an ending and a folder that can be written."""

    def read(text: str) -> Path:
        if not text.endswith(ending):
            raise ValueError(f"{text!r} is not a *{ending} file")
        paths.writable_file(text, Path.cwd())
        return Path(text).expanduser()

    return checked(read)


def count(least: int = 1) -> Callable[[str], int]:
    """Return the reader of a whole number that is at least ``least``."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text) >= least):
            raise ValueError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return checked(read)


def number(low: float = -math.inf, high: float = math.inf) -> Callable[[str], float]:
    """Return the reader of a finite number from ``low`` to ``high``."""
    ends = f" from {low:g} to {high:g}" if high < math.inf else f" of at least {low:g}" if low > -math.inf else ""

    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not (math.isfinite(found) and low <= found <= high):
            raise ValueError(f"{text!r} is not a number{ends}")
        return found

    return checked(read)


def take_judge(parser: argparse.ArgumentParser, *, help: str = JUDGES, **options: Any) -> None:
    """Add the option ``--judge``."""
    parser.add_argument("--judge", type=checked(check_spec), metavar="SPEC", help=help, **options)


def take_embedder(parser: argparse.ArgumentParser, *, help: str, **options: Any) -> None:
    """Add the option ``--embedder``."""
    parser.add_argument("--embedder", type=checked(check_embedder_spec), metavar="SPEC", help=help, **options)


def take_run(
    parser: argparse.ArgumentParser, *, requests: str, cache: str, seed: str | None, concurrency: str | int = 32
) -> None:
    """Add the options of a command that asks a judge much: ``--concurrency``, ``--cache-dir`` and ``--seed``."""
    parser.add_argument("--concurrency", type=count(), default=concurrency, metavar="N", help=requests)
    parser.add_argument("--cache-dir", type=Path, metavar="DIR", help=f"where answers are kept (default: {cache})")
    if seed is not None:
        parser.add_argument("--seed", type=int, default=0, metavar="N", help=f"{seed} (default: 0)")


def take_scoring(parser: argparse.ArgumentParser, *, seed: str | None = None) -> None:
    """Add the options of a command that scores answers, by default what the variables of a test suite say."""
    take_judge(parser, default=_environment("JUDGE"), help=f"{JUDGES} (default: $RAGMETRICS_JUDGE, else auto)")
    embedder = "of metrics that need one (default: $RAGMETRICS_EMBEDDER, else auto)"
    take_embedder(parser, default=_environment("EMBEDDER"), help=embedder)
    take_run(
        parser,
        requests="requests in flight (default: $RAGMETRICS_CONCURRENCY, else 32)",
        cache="as ragmetrics cache has it; RAGMETRICS_CACHE=off keeps none",
        seed=seed,
        concurrency=_environment("CONCURRENCY") or "32",
    )
    named = "the columns of the rows that stand for fields, such as question=query,contexts=passages"
    parser.add_argument(
        "--columns", type=checked(Columns.of), default=NO_COLUMNS, metavar="FIELD=COLUMN,...", help=named
    )


def _environment(variable: str) -> str | None:
    # argparse reads a default that is a text as it reads an argument.
    return os.environ.get(f"RAGMETRICS_{variable}", "").strip() or None


def terminal_width() -> int | None:
    """Return how many characters a line of the terminal has, ``None`` where output goes into a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fitted(lines: Sequence[str]) -> list[str]:
    """Return lines that fit the terminal: what is longer goes on below, further to the right than it began."""
    width = terminal_width() or sys.maxsize
    return [part for line in lines for part in ([line] if len(line) <= width else _wrapped(line, width))]


def _wrapped(line: str, width: int) -> list[str]:
    margin = " " * (len(line) - len(line.lstrip()) + 2)
    limit = max(width, 2 * len(margin))
    return textwrap.wrap(line, limit, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)


def as_json(**fields: Any) -> list[str]:
    """Return the lines of a JSON object for programs; ``version`` grows when a field changes its meaning or goes."""
    return json.dumps({"version": 1, **fields}, indent=2).splitlines()


def write(stream: TextIO, text: str) -> None:
    """Write a text without what steers a terminal; characters that the encoding of the stream lacks are escaped."""
    encoding = stream.encoding or "utf-8"
    stream.write(printable_lines(text).encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


@contextmanager
def local_modules(*specs: str | None) -> Iterator[None]:
    """Make the modules of the current folder importable if one of some specs is a ``MODULE:FACTORY``.

    They come behind all others: a file in a folder of somebody else's must not replace an installed package.
    """
    if not any(spec is not None and names_module(spec) for spec in specs):
        yield
        return
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)


def with_local_modules(work: Work) -> Work:
    """Return work with the :func:`local_modules` of its arguments ``judge`` and ``embedder``."""

    @functools.wraps(work)
    def run(arguments: argparse.Namespace) -> Sequence[str] | CommandResult:
        with local_modules(getattr(arguments, "judge", None), getattr(arguments, "embedder", None)):
            return work(arguments)

    return run
