"""What the commands have in common: what makes one of a function, the types of options, and how lines are printed."""

from __future__ import annotations

import functools
import inspect
import json
import math
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TextIO

import click

from pytest_ragmetrics.core import files as paths
from pytest_ragmetrics.core.errors import ArgumentError, RagMetricsError
from pytest_ragmetrics.judges.embedders.specs import check_embedder_spec
from pytest_ragmetrics.judges.specs import check_spec, names_module
from pytest_ragmetrics.text.unicode import printable_lines


class Arguments(SimpleNamespace):
    """The values of arguments and options by their names."""

    @functools.cached_property
    def pace(self) -> Any:
        """How fast requests are sent, by ``--rpm`` and ``--tpm``."""
        from pytest_ragmetrics.judges.transports.pace import Pace

        return Pace(self.rpm, self.tpm)

    @functools.cached_property
    def budget(self) -> Any:
        """What requests may take in all, by ``--max-calls``, ``--max-tokens`` and ``--max-cost``; close it."""
        from pytest_ragmetrics.judges.transports.budget import Budget, Limits

        limits = Limits(calls=self.max_calls, tokens=self.max_tokens, cost=self.max_cost)
        return Budget(limits, options="--max-")

    def waited(self) -> list[str]:
        """Return lines on what requests waited for."""
        from pytest_ragmetrics.runs.wording.figures import waited_lines

        return waited_lines(self.pace.waits)


class CommandResult(NamedTuple):
    """The lines to print and the exit status."""

    lines: Sequence[str]
    status: int


Work = Callable[[Arguments], Sequence[str] | CommandResult]
Decorator = Callable[[Work], Work]

#: The judges that a command takes by name.
JUDGES = "auto, local, openai:MODEL, anthropic:MODEL, nli:MODEL_OR_FOLDER, MODULE:FACTORY or panel:SPEC,SPEC,SPEC"
#: Who judges without ``--judge``.
SUITE_JUDGE = "$RAGMETRICS_JUDGE, else rag_judge of pytest.ini, else auto"
# Where the context of click keeps the config of pytest.
_CONFIG = f"{__name__}.config"
# The most digits of a whole number.
_DIGITS = 9
PATH = click.Path(path_type=Path)


def command(name: str, **options: Any) -> Callable[[Work], click.Command]:
    """Return the decorator that makes a command of work, whose docstring is the help.

    The work also gets the options of the group of the command.
    """

    def decorate(work: Work) -> click.Command:
        @functools.wraps(work)
        def run(**values: Any) -> Sequence[str] | CommandResult:
            context = click.get_current_context()
            group = context.parent.params if context.parent else {}
            with local_modules(values.get("judge"), values.get("embedder")):
                try:
                    return work(Arguments(**group, **values))
                except ArgumentError as error:
                    raise click.UsageError(str(error), context) from error

        help = inspect.getdoc(work) or ""
        made: Callable[[Callable[..., object]], click.Command]
        made = click.command(name, help=help, short_help=" ".join(help.split()), **options)
        return made(run)

    return decorate


class Argument(click.Argument):
    """A positional argument with a help text, which click has from 8.5 on."""

    def __init__(self, *declared: Any, help: str, **options: Any) -> None:
        super().__init__(*declared, **options)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return what help says of it."""
        return self.get_usage_pieces(ctx)[0], self.help or ""


def argument(usage: str, help: str, **options: Any) -> Decorator:
    """Return the decorator that adds an argument of a usage such as ``files [FILE]...``, a path if it has no type."""
    name, _, metavar = usage.partition(" ")
    implied = {"nargs": -1 if metavar.endswith("...") else 1, "required": not metavar.startswith("[")}
    options = {"type": PATH, "metavar": metavar or None, **implied, **options}
    return click.argument(name, cls=Argument, help=help, **options)


class Checked(click.ParamType):  # type: ignore[type-arg] # generic in newer versions of click alone
    """What ``parse`` makes of a text; its ``ValueError`` or ``OSError`` becomes the message."""

    name = "text"

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what a text means; a default that is no text remains."""
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except (ValueError, OSError) as error:
            # str() of an OSError has its path, which may be thousands of characters long.
            message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self.fail(message, param, ctx)


def _finite(text: str) -> float:
    with suppress(ValueError):
        if math.isfinite(found := float(text)):
            return found
    raise ValueError(f"{text!r} is not a finite number")


def _whole(text: str) -> int:
    with suppress(ValueError):
        return int(text)
    raise ValueError(f"{text!r} is not a whole number")


FINITE = Checked(_finite)
WHOLE = Checked(_whole)
A_FOLDER = Checked(lambda text: paths.a_folder(text, Path.cwd()))


def _outside(value: Any, what: str, kind: Any) -> str:
    ends = f"of at least {kind.min:g}" if kind.max is None else f"from {kind.min:g} to {kind.max:g}"
    return f"{value!r} is not {what} {ends}"


class Number(click.FloatRange):
    """A number in a range, which is finite."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of a text."""
        try:
            return float(super().convert(FINITE.convert(value, param, ctx), param, ctx))
        except click.BadParameter:
            self.fail(_outside(value, "a number", self), param, ctx)


class Count(click.IntRange):
    """A whole number in a range, of which the upper end is beyond all that is counted here."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number of a text."""
        if len(str(value)) > _DIGITS:
            self.fail(f"{value!r:.40} has more than {_DIGITS} digits", param, ctx)
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            self.fail(_outside(value, "a whole number", self), param, ctx)


def output(ending: str = "") -> Checked:
    """Return the type of a path to write, which must have an ending and a folder that can be written."""

    def read(text: str) -> Path:
        if not text.endswith(ending):
            raise ValueError(f"{text!r} is not a *{ending} file")
        paths.writable_file(text, Path.cwd())
        return Path(text).expanduser()

    return Checked(read)


def option(usage: str, kind: Any = None, help: str = "", *, name: str | None = None, **more: Any) -> Decorator:
    """Return the decorator that adds an option of a usage such as ``-o, --output FILE``, without a type a flag.

    Its help ends with the default, if that is a value and the text says nothing of it.
    """
    flags = [word.rstrip(",") for word in usage.split() if word.startswith("-")]
    metavar = " ".join(word for word in usage.split() if not word.startswith("-")) or None
    if more.get("default", "") != "" and "default" not in help:
        help = f"{help} (default: {more['default']})"
    # With is_flag=False an option takes no value that begins with a dash.
    takes = {"is_flag": True} if kind is None else {"type": kind, "metavar": metavar}
    return click.option(*flags, *([name] if name else []), help=help, **takes, **more)


html_option = functools.partial(option, "--html FILE.html", output(".html"))


def together(*options: Decorator) -> Decorator:
    """Return the decorator that adds several options in their order."""
    return lambda work: functools.reduce(lambda made, option: option(made), reversed(options), work)


def judge_option(*, help: str = JUDGES, **options: Any) -> Decorator:
    """Return the option ``--judge``."""
    return option("--judge SPEC", Checked(check_spec), help, **options)


def embedder_option(*, help: str, **options: Any) -> Decorator:
    """Return the option ``--embedder``."""
    return option("--embedder SPEC", Checked(check_embedder_spec), help, **options)


def stated(field: str, default: str | None = None) -> Callable[[], Any]:
    """Return what reads a setting of a test suite: its variable, else the file that pytest takes its options from."""
    return lambda: os.environ.get(f"RAGMETRICS_{field.upper()}", "").strip() or _in_file(field) or default


def _in_file(field: str) -> Any:
    """Return a setting of the suite in this folder, and say where it is from; raise ``RagMetricsError``.

    pytest, which takes 0.3 s, is asked only where one of its files has a setting of this plugin; no conftest.py is run.
    """
    context = click.get_current_context()
    # `report diff` without --blame and `generate --check` ask no judge.
    if context.params.get("blame") is False or context.params.get("check"):
        return None
    read = context.find_root().meta
    if _CONFIG not in read:
        files = (folder / name for folder in (Path.cwd(), *Path.cwd().parents) for name in paths.CONFIGURATIONS.split())
        texts = (file.read_text("utf-8", "replace") for file in files if os.access(file, os.R_OK) and file.is_file())
        read[_CONFIG] = None
        if any(re.search(r"\brag[_-]", text) for text in texts):
            from pytest_ragmetrics.plugin.config import read_config

            read[_CONFIG] = read_config("--noconftest").config
    if (config := read[_CONFIG]) is None:
        return None
    from pytest_ragmetrics.plugin.settings import given_to, option_of, parsed

    option = option_of(field)
    if (given := next(given_to(option, config), None)) is None:
        return None
    is_variable = not given.kind and given.name in os.environ.get("PYTEST_ADDOPTS", "")
    place = "PYTEST_ADDOPTS" if is_variable else config.inipath
    try:
        value = parsed(option, given.text, given.base, config)
    except ValueError as error:
        raise RagMetricsError(f"{given.name} in {place}: {error}; or set {option.environment}") from error
    if field not in read:
        write(sys.stderr, f"ragmetrics: {given.name} is from {place}\n")
    read[field] = value
    return value


def run_options(*, cache: str, seed: str | None) -> Decorator:
    """Return the options of a command that asks a judge much: ``--concurrency``, ``--rpm``, ``--tpm``, and so on."""
    requests = "requests in flight (default: $RAGMETRICS_CONCURRENCY, else 32)"
    minute = "a minute to judge and embedder (default: $RAGMETRICS_{}, else as fast as they answer)"
    return together(
        option("--concurrency N", Count(1), requests, default=stated("concurrency", "32")),
        option("--rpm N", Count(1), f"requests {minute.format('RPM')}", default=stated("rpm")),
        option("--tpm N", Count(1), f"tokens {minute.format('TPM')}", default=stated("tpm")),
        option("--cache-dir DIR", A_FOLDER, f"where replies are kept (default: {cache})"),
        *([] if seed is None else [option("--seed N", WHOLE, seed, default=0)]),
    )


def asking_options(
    *, seed: str | None = None, cache: str = "as ragmetrics cache; RAGMETRICS_CACHE=off for none"
) -> Decorator:
    """Return the options of a command that asks judges, by default what the variables of a test suite say."""
    embedder = "of metrics that need one (default: $RAGMETRICS_EMBEDDER, else auto)"
    return together(
        judge_option(
            default=stated("judge"),
            help=f"{JUDGES} (default: {SUITE_JUDGE})",
        ),
        embedder_option(default=stated("embedder"), help=embedder),
        run_options(cache=cache, seed=seed),
    )


def budget_options(*, then: str = "") -> Decorator:
    """Return the options that limit what a command spends; ``then`` says what else happens where they end it."""
    return together(
        option("--max-calls N", Count(1), f"stop after N requests{then}"),
        option("--max-tokens N", Count(1), "stop after N tokens"),
        option("--max-cost USD", Number(0), "stop after USD dollars"),
    )


def scoring_options(**given: Any) -> Decorator:
    """Return the options of a command that scores rows: those of one that asks judges, and what columns stand for."""

    def columns(text: str) -> Any:
        from pytest_ragmetrics.datasets.rows import NO_COLUMNS, Columns

        return Columns.of(text) if text else NO_COLUMNS

    named = "columns for fields, such as question=query,contexts=passages"
    return together(asking_options(**given), option("--columns FIELD=COLUMN,...", Checked(columns), named, default=""))


def terminal_width() -> int | None:
    """Return how many characters a line of the terminal has, ``None`` where output goes into a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fitted(lines: Sequence[str], *, hanging: int = 2) -> list[str]:
    """Return lines that fit the terminal: what is longer goes on below, so far to the right of where it began."""
    width, found = terminal_width() or sys.maxsize, list[str]()
    for line in lines:
        margin = " " * (len(line) - len(line.lstrip()) + hanging)
        wrapper = textwrap.TextWrapper(max(width, 2 * len(margin)), subsequent_indent=margin)
        wrapper.break_long_words = wrapper.break_on_hyphens = False
        found += [line] if len(line) <= width else wrapper.wrap(line)
    return found


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
    sys.path.append(here := str(Path.cwd()))
    try:
        yield
    finally:
        sys.path.remove(here)
