"""Options, ini keys and environment variables, read once into one value that does not change.

Precedence: command line > environment > ini > default. A relative path given in the ini file starts at the rootdir,
any other at the folder pytest was started in.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from pytest_ragmetrics.core import files as paths

DEFAULT_REPORT = "rag-report.html"
CACHE_FOLDER = ".ragmetrics"
HISTORY = "history:"


class Option:
    """How one setting may be given: on the command line, in an environment variable, in the ini file.

    ``parse`` reads its text, with the folder at which relative paths start. ``hook`` is the hook that may accept a text
    which ``parse`` refuses: if a plugin implements it, any text is valid. ``lines`` are those of a list in its ini key.
    ``extra`` goes to argparse as it is. Its flag, variable and ini key are named after its ``field`` of
    :class:`Settings`.
    """

    def __init__(
        self,
        parse: Callable[[str, Path], object],
        default: object,
        help_: str,
        *,
        flag: bool = True,
        environment: bool = False,
        in_ini: bool = True,
        lines: bool = False,
        hook: str | None = None,
        **extra: Any,
    ) -> None:
        self.parse = parse
        self.default = default
        self.help = help_
        self.in_ini = in_ini
        self.kind: Literal["linelist", "string"] = "linelist" if lines else "string"
        self.hook = hook
        self.extra = extra
        self._has_flag = flag
        self._has_variable = environment

    def __set_name__(self, _: type, name: str) -> None:
        self.field = name
        #: The ini key; also the name under which pytest keeps the command line's value.
        self.name = f"rag_{name}"
        self.flag = f"--rag-{name.replace('_', '-')}" if self._has_flag else None
        self.environment = f"RAGMETRICS_{name.upper()}" if self._has_variable else None


def _text(text: str, _base: Path) -> str:
    return text.strip()


def _embedder_spec(text: str, _base: Path) -> str:
    from pytest_ragmetrics.judges.embedders.specs import check_embedder_spec

    return check_embedder_spec(text)


def _cache_url(text: str, _base: Path) -> str:
    from pytest_ragmetrics.cache.remote import check_cache_url

    return check_cache_url(text)


def _spec(text: str, base: Path) -> str:
    from pytest_ragmetrics.judges.specs import PANEL, check_spec, panel_members

    spec = check_spec(text)
    if members := panel_members(spec):
        return f"{PANEL}{','.join(_spec(member, base) for member in members)}"
    folder = base / spec.removeprefix("nli:").strip()
    return f"nli:{folder}" if spec.startswith("nli:") and folder.is_dir() else spec


def _one_of(*words: str) -> Callable[[str, Path], str]:
    def parse(text: str, _base: Path) -> str:
        if text.strip() not in words:
            raise ValueError(f"{text.strip()!r} is not one of {', '.join(words)}")
        return text.strip()

    return parse


def baseline_of(text: str, base: Path) -> Path | str:
    """Return a file, or the text that names the last runs of a history."""
    if not text.strip().startswith(HISTORY):
        return paths.existing_file(text, base)
    try:
        last_runs(text.strip())
    except ValueError:
        msg = "write history:5 for the last 5 runs in the folder of --rag-history, history:5@BRANCH for one branch"
        raise ValueError(f"{text.strip()!r}: {msg}, ./{text.strip()} for a file of that name") from None
    return text.strip()


def last_runs(text: str) -> tuple[int, str]:
    """Return how many runs of a history are the baseline, and of which branch ("" for the main one).

    >>> last_runs("history:5"), last_runs("history:10@release/2.0")
    ((5, ''), (10, 'release/2.0'))
    """
    number, _, branch = text.removeprefix(HISTORY).partition("@")
    if not re.fullmatch(r"[1-9]\d{0,3}", number) or text.endswith("@"):
        raise ValueError(text)
    return int(number), branch.strip()


def _owners(text: str, _base: Path) -> str:
    from pytest_ragmetrics.report.outcomes import owners_of

    return "\n".join(f"{cause} = {owner}" for cause, owner in owners_of(text).items())


def _columns(text: str, _base: Path) -> str:
    from pytest_ragmetrics.datasets.rows import Columns

    Columns.of(text)
    return text


def _number(kind: type[int | float], least: float) -> Callable[[str, Path], float]:
    def parse(text: str, _base: Path) -> float:
        try:
            number = kind(text)
        except ValueError:
            number = kind(-1)
        if not (math.isfinite(number) and number >= least):
            what = "a whole number" if kind is int else "a number"
            raise ValueError(f"{text.strip()!r} is not {what} of at least {least:g}")
        return number

    return parse


def _share(such: float, *, open_: bool = False) -> Callable[[str, Path], float]:
    """Return what reads a number between 0 and 1, without these two where it is ``open_``."""

    def parse(text: str, _base: Path) -> float:
        with suppress(ValueError):
            if 0.0 <= (share := float(text)) <= 1.0 and not (open_ and share in (0.0, 1.0)):
                return share
        raise ValueError(f"{text.strip()!r} is not a number between 0 and 1, such as {such}")

    return parse


def _kinds(text: str, _base: Path) -> tuple[str, ...]:
    """Return the kinds of mutants that a text names, all of them for one without any."""
    from difflib import get_close_matches

    from pytest_ragmetrics.evaluation.mutants import MUTANT_KINDS

    kinds = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for kind in kinds:
        if kind not in MUTANT_KINDS:
            near = get_close_matches(kind, MUTANT_KINDS, 1)
            right = (
                f"did you mean {near[0]!r}?"
                if near
                else f"write some of {','.join(MUTANT_KINDS)}; paths of tests stand before"
            )
            raise ValueError(f"{kind!r} is no kind of mutant: {right}")
    return kinds or MUTANT_KINDS


_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}


def _truth(text: str, _base: Path) -> bool:
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError(f"{text.strip()!r} is neither true nor false")
    return word in _TRUE


# An instance of Settings has a value where the class has the option.
_setting: Callable[..., Any] = Option


def _switch(help_: str, *, in_ini: bool = False) -> Any:
    return _setting(_truth, default=False, help_=help_, in_ini=in_ini, action="store_const", const="yes")


class Settings:
    """Everything a run was asked for; each field says where it may be given.

    No dataclass: making one of so many fields takes longer than the rest of the start.
    """

    judge: str = _setting(
        _spec,
        "auto",
        "Who judges: auto, local, openai:MODEL, anthropic:MODEL, nli:MODEL_OR_FOLDER, MODULE:FACTORY or "
        "panel:SPEC,SPEC,SPEC (default: auto).",
        environment=True,
        hook="pytest_ragmetrics_make_judge",
        metavar="SPEC",
    )
    embedder: str = _setting(
        _embedder_spec,
        "auto",
        "Who embeds: auto, local, openai:MODEL, sentence-transformers:FOLDER or MODULE:FACTORY (default: auto).",
        environment=True,
        hook="pytest_ragmetrics_make_embedder",
        metavar="SPEC",
    )
    cache: Literal["auto", "replay", "refresh", "off"] = _setting(
        _one_of("auto", "replay", "refresh", "off"),
        "auto",
        "auto: request what is not stored; replay: request nothing; refresh: request all; off: store nothing (default: "
        "auto).",
        environment=True,
        metavar="MODE",
    )
    cache_dir: Path = _setting(
        paths.a_folder,
        Path(CACHE_FOLDER),
        f"Folder of the local cache (default: {CACHE_FOLDER} in the rootdir).",
        environment=True,
        metavar="DIR",
    )
    cache_url: str | None = _setting(
        _cache_url,
        None,
        "Shared cache of a team, behind the local one: s3://BUCKET/FOLDER, gs://, az://, file:///FOLDER, https:// "
        "(read only), redis:// or rediss://. Not used with a cassette. RAGMETRICS_CACHE_SECRET signs its replies.",
        environment=True,
        metavar="URL",
    )
    cache_url_mode: Literal["read", "readwrite"] = _setting(
        _one_of("read", "readwrite"),
        "readwrite",
        "readwrite: read the shared cache and add replies to it; read: add none, as for pull requests of forks "
        "(default: readwrite).",
        environment=True,
        metavar="MODE",
    )
    cache_secret: str = _setting(
        _text, "", "Signs the replies in the shared cache.", flag=False, environment=True, in_ini=False
    )
    cassette: Path | None = _setting(
        paths.lasting_file,
        None,
        "Recorded replies to commit, which are read first: one JSON object a line.",
        metavar="FILE",
    )
    cassette_keep: bool = _switch("Keep cassette entries that a full run did not use.")
    concurrency: int = _setting(
        _number(int, 1),
        32,
        "Requests in flight (default: 32; 4 at first to your own server).",
        environment=True,
        metavar="N",
    )
    max_file: int = _setting(
        _number(int, 1),
        paths.MAX_FILE,
        "Largest data set in megabytes, unpacked (default: 500).",
        environment=True,
        metavar="MB",
    )
    timeout: float = _setting(
        _number(float, 0.001), 60.0, "Seconds that one attempt at a request may take (default: 60).", metavar="SECONDS"
    )
    retries: int = _setting(_number(int, 0), 5, "How often a temporary failure is retried (default: 5).", metavar="N")
    votes: int = _setting(
        _number(int, 1),
        1,
        "Independent judgements per score, which is their mean (default: 1).",
        metavar="K",
    )
    max_calls: int | None = _setting(
        _number(int, 0), None, "Stop after so many requests, over all workers.", metavar="N"
    )
    max_tokens: int | None = _setting(
        _number(int, 0), None, "Stop after so many tokens of prompts and replies, over all workers.", metavar="N"
    )
    max_cost: float | None = _setting(
        _number(float, 0), None, "Stop after so many US dollars, over all workers.", metavar="USD"
    )
    rpm: int | None = _setting(
        _number(int, 1),
        None,
        "Requests a minute to judge and embedder, over all workers; not those of rag_respond (default: as fast as they "
        "answer).",
        environment=True,
        metavar="N",
    )
    tpm: int | None = _setting(
        _number(int, 1),
        None,
        "Tokens a minute to judge and embedder, of prompts and replies, over all workers (default: as fast as they "
        "answer).",
        environment=True,
        metavar="N",
    )
    batch: Literal["wait", "submit", "collect"] | None = _setting(
        _one_of("wait", "submit", "collect"),
        None,
        "Batches at half the price, answered within a day. wait: wait for them; submit: post them and skip the tests "
        "that need them; collect: run the tests on what is answered, and post what follows.",
        environment=True,
        metavar="MODE",
    )
    batch_fallback: bool = _switch("Send what failed or expired in a batch at once, at the full price.", in_ini=True)
    sentinels: int = _setting(
        _number(int, 0),
        0,
        "Stored replies to request again, to notice a changed judge, such as 20 (default: 0).",
        metavar="N",
    )
    dry_run: bool = _switch(
        "Forecast requests, tokens, cost and power of gates without any request; tests that score are skipped."
    )
    mutate: tuple[str, ...] | None = _setting(
        _kinds,
        None,
        "Run the tests of rows again on mutants of their answers, with one planted fault each, and say which faults no "
        "test notices: of these kinds, such as number,negation (without KIND: all). They count in no gate or metric.",
        in_ini=False,
        metavar="KIND,...",
        nargs="?",
        const="",
    )
    mutate_rows: int = _setting(
        _number(int, 1),
        20,
        "Rows of each data set that --rag-mutate takes; --rag-seed draws others (default: 20).",
        metavar="N",
    )
    mutate_min: float | None = _setting(
        _share(0.8), None, "Fail the run if a smaller share of the mutants of --rag-mutate is noticed.", metavar="SHARE"
    )
    answers: int = _setting(
        _number(int, 1),
        1,
        "Answers of rag_respond to each row without a response, each a test (default: 1).",
        metavar="K",
    )
    respond_threads: int = _setting(
        _number(int, 1),
        4,
        "Parallel calls of a rag_respond that is not async (default: 4).",
        flag=False,
    )
    prompts: Path | None = _setting(
        paths.prompt_folder, None, "Folder of TASK.md files that replace the prompts of their tasks.", flag=False
    )
    reasons: Literal["all", "negative"] = _setting(
        _one_of("all", "negative"),
        "all",
        "Verdicts on claims and contexts that get a reason: all, or negative, which saves tokens (default: all).",
        environment=True,
        metavar="WHICH",
    )
    cache_salt: str = _setting(_text, "", "Any text; different salts share no replies.", flag=False)
    report: Path | None = _setting(
        paths.html_file,
        None,
        f"Write an HTML page with every score and its evidence (without FILE.html: {DEFAULT_REPORT}).",
        metavar="FILE.html",
        nargs="?",
        const=DEFAULT_REPORT,
    )
    report_title: str = _setting(
        _text,
        "",
        "Name of the project in reports (default: from pyproject.toml, else the folder).",
        metavar="TITLE",
    )
    owners: str = _setting(
        _owners,
        "",
        "Owners of causes, named on the page: lines of CAUSE = OWNER, such as retrieval = @ana.",
        flag=False,
        lines=True,
    )
    columns: str = _setting(
        _columns,
        "",
        "Columns of data sets without columns=: lines of FIELD = COLUMN, such as question = query.",
        flag=False,
        lines=True,
    )
    json: Path | None = _setting(
        paths.writable_file, None, "Write every score and its evidence as JSON.", metavar="FILE"
    )
    markdown: Path | None = _setting(
        paths.markdown_file,
        None,
        "Write a summary in Markdown; auto: to the step summary of GitHub Actions.",
        metavar="FILE",
    )
    baseline: Path | str | None = _setting(
        baseline_of,
        None,
        "Earlier run to compare with, a file of --rag-json. history:5 compares gates and assertions with the last 5 "
        "runs of main in --rag-history, history:5@BRANCH with those of a branch.",
        metavar="FILE|history:N",
    )
    blame: bool = _switch(
        "Say of scores that became worse since the baseline whether retriever, generator or judge made them so: score "
        "the old answer on the new passages and the other way round, with at most 4 judgements for each.",
        in_ini=True,
    )
    blame_rows: int = _setting(
        _number(int, 1),
        50,
        "Most scores that --rag-blame looks at, the largest change first (default: 50).",
        metavar="N",
    )
    alpha: float = _setting(
        _share(0.05, open_=True),
        0.05,
        "Probability that any regression gate of a run fails without a change (default: 0.05).",
        metavar="SHARE",
    )
    history: Path | None = _setting(
        paths.writable_folder,
        None,
        "Folder to add a small JSON file of this run to, for `ragmetrics report history DIR`.",
        environment=True,
        metavar="DIR",
    )
    clusters: Literal["passages", "named"] = _setting(
        _one_of("passages", "named"),
        "passages",
        "Dependent rows in comparisons of runs. passages: rows that share a passage or a metadata cluster; named: the "
        "latter alone (default: passages).",
        metavar="RULE",
    )
    digest: bool = _switch("Show failures in a few short lines each, for coding agents.")
    stop_when_decided: bool = _switch(
        "Score rows in random order, until all gates over a data set are decided.", in_ini=True
    )
    seed: str = _setting(
        _text,
        "",
        "Any text: it draws the order of --rag-stop-when-decided (default: the commit; with a cassette constant) and "
        "the rows of --rag-mutate (default: 0).",
        environment=True,
        metavar="TEXT",
    )

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def files(self) -> dict[str, Path]:
        """Return the files to write, by the name of their renderer."""
        files = (("report", self.report), ("json", self.json), ("markdown", self.markdown))
        return {name: path for name, path in files if path is not None}


OPTIONS = tuple(option for option in vars(Settings).values() if isinstance(option, Option))


def add_options(parser: pytest.Parser) -> None:
    """Register every option and ini key."""
    group = parser.getgroup("ragmetrics", "RAG answer quality (pytest-ragmetrics)")
    for option in OPTIONS:
        if option.flag is not None:
            group.addoption(option.flag, dest=option.name, default=None, help=option.help, **option.extra)
        if option.in_ini:
            switch = ": true or false" if option.parse is _truth else ""
            same = " and $".join(filter(None, (option.flag, option.environment)))
            help_ = f"{option.help} Same as {same}{switch}." if same else option.help
            parser.addini(option.name, help=help_, type=option.kind, default="")


def read_settings(config: pytest.Config) -> Settings:
    """Read and check every setting; raise ``pytest.UsageError`` naming the one that is wrong."""
    settings = Settings(**{option.field: _read(option, config) for option in OPTIONS})
    if isinstance(settings.baseline, str) and settings.history is None:
        msg = f"--rag-baseline: {settings.baseline} reads the folder of --rag-history: give --rag-history=DIR too"
        raise pytest.UsageError(msg)
    file = settings.cassette
    if settings.cache == "replay" and file is not None and not (file.exists() or hasattr(config, "workerinput")):
        msg = f"rag_cassette: {file} does not exist, and a replay records nothing: record it without rag_cache = replay"
        raise pytest.UsageError(msg)
    return settings


def unread_options(config: pytest.Config, tests: Iterable[str]) -> Iterator[str]:
    """Yield a line on each file between the rootdir and a test whose options pytest did not read: it reads one."""
    known = {option.name for option in OPTIONS if option.in_ini}
    files = {Path(test.partition("::")[0]) for test in tests}
    folders = {config.rootpath / folder for file in files for folder in file.parents}
    for file in sorted(folder / name for folder in folders for name in paths.CONFIGURATIONS.split()):
        text = ""
        with suppress(OSError):
            text = "" if file == config.inipath else file.read_text("utf-8", "replace")
        if names := sorted(known.intersection(re.findall(r"""^\s*["']?(rag_\w+)["']?\s*=""", text, re.MULTILINE))):
            yield f"{file}: {', '.join(names)} not read, pytest took its options from {config.inipath or 'no file'}"


def option_of(field: str) -> Option:
    """Return the option of a field of :class:`Settings`."""
    return next(option for option in OPTIONS if option.field == field)


def _read(option: Option, config: pytest.Config) -> Any:
    given = next(given_to(option, config), None)
    if given is None:
        return config.rootpath / option.default if isinstance(option.default, Path) else option.default
    try:
        return parsed(option, given.text, given.base, config)
    except ValueError as error:
        raise pytest.UsageError(f"{given.kind}{given.name}: {error}") from error


def parsed(option: Option, text: str, base: Path, config: pytest.Config) -> Any:
    """Return the value of a text; raise ``ValueError`` for one that neither the option nor its hook knows."""
    try:
        return option.parse(text, base)
    except OSError as error:
        raise ValueError(f"{text.strip()!r}: {error.strerror}") from error
    except ValueError:
        if text.strip() and is_hooked(option, config):
            return text.strip()
        raise


def is_hooked(option: Option, config: pytest.Config) -> bool:
    """Return whether a plugin or a conftest.py implements the hook of an option."""
    caller = getattr(config.hook, option.hook, None) if option.hook else None
    return caller is not None and bool(caller.get_hookimpls())


class Given(NamedTuple):
    """The text of an option, its name in a kind of place, and the folder at which relative paths start."""

    kind: Literal["", "environment variable ", "ini option "]
    name: str
    text: str
    base: Path


def given_to(option: Option, config: pytest.Config) -> Iterator[Given]:
    """Yield where an option was given, the strongest first."""
    invoked_from = config.invocation_params.dir
    if option.flag is not None and config.getoption(option.name, None) is not None:
        yield Given("", option.flag, config.getoption(option.name), invoked_from)
    if option.environment and os.environ.get(option.environment, "").strip():
        yield Given("environment variable ", option.environment, os.environ[option.environment], invoked_from)
    if option.in_ini and (text := ini_text(option, config)).strip():
        yield Given("ini option ", option.name, text, config.rootpath)


def ini_text(option: Option, config: pytest.Config) -> str:
    """Return what the ini file says, the lines of one that has them."""
    given: object = config.getini(option.name)
    return "\n".join(map(str, given)) if isinstance(given, list) else str(given)
