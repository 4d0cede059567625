"""`ragmetrics doctor`: checks versions, plugin, settings, keys, judge, embedder, caches and cassette of a folder."""

from __future__ import annotations

import os
import platform
import re
import shlex
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.cache.entry import EMBEDDING, CacheReadOnlyError
from pytest_ragmetrics.cache.folder import FOLDER, default_folder
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.cli.command import (
    JUDGES,
    PATH,
    Arguments,
    CommandResult,
    as_json,
    command,
    embedder_option,
    fitted,
    judge_option,
    local_modules,
)
from pytest_ragmetrics.cli.ini_file import find_ini_file
from pytest_ragmetrics.core import files as paths
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import CacheError, RagMetricsError
from pytest_ragmetrics.judges.embedders.embedder import Embedder, cosines
from pytest_ragmetrics.judges.embedders.specs import make_embedder
from pytest_ragmetrics.judges.judge import Judge, PromptedJudge
from pytest_ragmetrics.judges.prices import cheaper_successor
from pytest_ragmetrics.judges.providers.addresses import shown_address, without
from pytest_ragmetrics.judges.providers.connection import ANTHROPIC, OPENAI
from pytest_ragmetrics.judges.providers.parameters import bare
from pytest_ragmetrics.judges.rendering import PromptBook, is_current
from pytest_ragmetrics.judges.schema import extract_json, parse_json, validate
from pytest_ragmetrics.judges.specs import DEFAULT_REASON, make_judge, meant_by, panel_members
from pytest_ragmetrics.judges.tasks import InvalidAnswer, VerifyClaims
from pytest_ragmetrics.judges.transports.values import shown
from pytest_ragmetrics.runs.wording.figures import counted
from pytest_ragmetrics.text.unicode import printable

if TYPE_CHECKING:
    from pytest_ragmetrics.plugin.settings import Option

_OWN = "default: as the settings here say"
PLUGIN = "ragmetrics"
MODULE = "pytest_ragmetrics.plugin"
_OLDEST_PYTEST = (8, 4)
_NAMED_MODULE = re.compile(rf"-p[ =]?{re.escape(MODULE)}\b")
_SWITCHED_OFF = re.compile(rf"-p[ =]?no:{PLUGIN}\b")
_NAMED = re.compile(rf"-p[ =]?{PLUGIN}\b")
_IN_CONFTEST = re.compile(rf"^pytest_plugins\b[^\n]*(?:\n[^\n\]\)]*)*?[\"']{re.escape(MODULE)}[\"']", re.MULTILINE)

_ACCOUNT = re.compile(r"//[^/\s]+@")
_QUERY = re.compile(r"(https?://[^\s?]*\?)[^\s,;)]+")

_TIMEOUT = 30.0
_SHOWN = 120
# How often the shared cache is asked for its latency, and how many of its answers are looked at.
_REQUESTS, _SAMPLE = 5, 100
# In the example of the prompt it is the first claim that is true: a judge that repeats it is wrong twice.
_TASK = VerifyClaims(
    claims=("Every passenger travels free.", "A ticket costs four euros."),
    contexts=("The ferry across the lake takes forty cars.\nA ticket for it costs four euros.",),
)
_TRUTH = [False, True]
# One text each on a ferry, on law, cooking, software, medicine and sport; no two have to do with each other.
_UNRELATED = (
    "The ferry across the lake takes forty cars.",
    "A tenant may end the contract with three months' notice.",
    "Let the dough rest for an hour before you bake it.",
    "The function returns an empty list if no file is found.",
    "Insulin lowers the sugar in the blood.",
    "Their goalkeeper saved two penalties in the final.",
)
_FORMS = {
    "json_schema": "takes the schema of an answer",
    "json_object": "has JSON mode and no schemas, so some replies will have to be asked for again",
    "text": "has neither schemas nor JSON mode, so some replies will have to be asked for again",
}

MOUNTS = Path("/proc/self/mounts")
_NETWORK = re.compile(r"(?:nfs|cifs|smb|9p|afs|ceph|gluster|lustre|fuse\.(?:sshfs|s3fs|gcsfuse))")
_OTHER = "name another with --rag-cache-dir=DIR, or run with --rag-cache=off"


class Check(NamedTuple):
    """The result of one check; ``to_do`` is the remedy, empty if nothing is wrong."""

    topic: str
    text: str
    to_do: str = ""

    def safe(self) -> Check:
        """Return it without keys and passwords."""
        return self._replace(text=_safe(self.text), to_do=_safe(self.to_do))

    def lines(self) -> list[str]:
        """Return the lines to print."""
        head = f"{'TO DO' if self.to_do else 'ok':<7}{self.topic + ':':<11}{self.text}"
        return [head, f"{'':<18}-> {self.to_do}"] if self.to_do else [head]


def _safe(text: str) -> str:
    for vendor in (OPENAI, ANTHROPIC):
        key = os.environ.get(vendor.key_variable, "").strip()
        text = without(text, [key] if key else [])
    return printable(_QUERY.sub(r"\1***", _ACCOUNT.sub("//***@", text)))


class Setting(NamedTuple):
    """The text of a setting, the place where it is set, and the folder that a path in it is relative to."""

    text: str
    place: str
    base: Path


class Project:
    """The folder where pytest is started, the ini file that it finds, if any, and the arguments of the command."""

    def __init__(self, folder: Path, arguments: Arguments) -> None:
        self.folder = folder
        self.arguments = arguments
        self.ini = find_ini_file(folder)
        self.root = folder if self.ini is None else self.ini.path.parent

    def setting(self, field: str) -> Setting | None:
        """Return a setting: as it was given here, else that of the environment, else of the ini file."""
        given = getattr(self.arguments, field, None)
        if given is not None:
            return Setting(str(given), f"--{field}", self.folder)
        return next(self.stated(_option(field)), None)

    def spec(self, field: str) -> Setting:
        """Return the setting of a judge or an embedder, by default ``auto``."""
        return self.setting(field) or Setting("auto", "the default", self.folder)

    def path(self, field: str) -> Path | None:
        """Return the path of a setting, ``None`` if it is not set."""
        found = self.setting(field)
        return None if found is None else paths.a_path(found.text, found.base)

    def is_replaying(self) -> bool:
        """Return whether answers are only replayed."""
        cache = self.setting("cache")
        return cache is not None and cache.text == "replay"

    def is_hooked(self, field: str) -> bool:
        """Return whether a conftest.py seems to implement the hook of a setting, which pytest asks first."""
        hook = _option(field).hook
        files = (place / name for place in {self.folder, self.root} for name in ("conftest.py", "tests/conftest.py"))
        return hook is not None and any(
            file.is_file() and f"def {hook}" in file.read_text("utf-8", "replace") for file in files
        )

    def stated(self, option: Option) -> Iterator[Setting]:
        """Yield the environment variable and the line of the ini file that set an option."""
        variable = option.environment
        if variable and os.environ.get(variable, "").strip():
            yield Setting(os.environ[variable].strip(), variable, self.folder)
        if self.ini is not None and option.in_ini and self.ini.text(option.name):
            yield Setting(self.ini.text(option.name), f"{option.name} in {self.ini.path.name}", self.root)


def _option(field: str) -> Option:
    # Imports pytest, which the other commands do without.
    from pytest_ragmetrics.plugin.settings import OPTIONS

    return next(option for option in OPTIONS if option.field == field)


def version_checks() -> Iterator[Check]:
    """Check the versions of Python, pytest, this package and openai."""
    named = [f"{name} {_version(name)}" for name in ("pytest", "pytest-ragmetrics", "openai")]
    old = tuple(map(int, re.findall(r"\d+", _version("pytest"))[:2])) < _OLDEST_PYTEST
    to_do = 'run: python -m pip install "pytest>=8.4"' if old else ""
    yield Check("versions", ", ".join([f"Python {platform.python_version()}", *named]), to_do)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def plugin_checks(project: Project) -> Iterator[Check]:
    """Check that pytest loads the plugin exactly once."""
    faults = [Check("plugin", *fault) for fault in _plugin_faults(project)]
    yield from faults or [Check("plugin", f"loaded by pytest as {PLUGIN}")]


def _plugin_faults(project: Project) -> Iterator[tuple[str, str]]:
    addopts = project.ini.text("addopts") if project.ini else ""
    options = {"addopts": addopts, "PYTEST_ADDOPTS": os.environ.get("PYTEST_ADDOPTS", "")}
    twice = "leave it out: pytest finds the plugin by itself, and the other way to load it is -p ragmetrics"
    for place, text in options.items():
        if _SWITCHED_OFF.search(text):
            yield f"{place} switches the plugin off", f"take -p no:{PLUGIN} out of it"
        if _NAMED_MODULE.search(text):
            yield f"{place} loads {MODULE} by its module, a second time", twice
    if MODULE in re.split(r"[,\s]+", os.environ.get("PYTEST_PLUGINS", "")):
        yield f"PYTEST_PLUGINS loads {MODULE} by its module, a second time", twice
    conftest = project.folder / "conftest.py"
    if conftest.is_file() and _IN_CONFTEST.search(conftest.read_text("utf-8", "replace")):
        yield f"pytest_plugins in {conftest} loads {MODULE} by its module, a second time", twice
    registered = [point for point in metadata.entry_points(group="pytest11") if MODULE in (point.value, point.module)]
    if not any(point.name == PLUGIN for point in registered):
        yield "the plugin is not installed", 'run: python -m pip install "pytest-ragmetrics"'
    # One distribution may be on the path twice: pytest loads it once.
    if len({(point.dist.name if point.dist else "", point.name) for point in registered}) > 1:
        yield "the plugin is installed twice", "uninstall all of pytest-ragmetrics, and install it once"
    if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD") and not any(map(_NAMED.search, options.values())):
        to_do = f"add -p {PLUGIN} to the addopts of pytest"
        yield "PYTEST_DISABLE_PLUGIN_AUTOLOAD is set, and nothing loads the plugin", to_do


def settings_checks(project: Project) -> Iterator[Check]:
    """Check the settings in the ini file and the environment: unknown names and values that cannot be parsed."""
    from difflib import get_close_matches

    from pytest_ragmetrics.plugin.settings import OPTIONS

    known = [option.name for option in OPTIONS if option.in_ini]
    own = [key for key in project.ini.values if key.startswith("rag_")] if project.ini else []
    faults = []
    for key in own:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"write {near[0]}, or take it out" if near else "take it out; `pytest --help` lists them all"
            faults.append(Check("settings", f"{key} is no setting of this plugin", hint))
    for option in OPTIONS:
        for setting in project.stated(option):
            wrong = _error(option, setting)
            if wrong and not project.is_hooked(option.field):
                faults.append(Check("settings", f"{setting.place} is not usable", wrong))
    if faults:
        yield from faults
    elif project.ini is None:
        yield Check("settings", "no file with settings of pytest; `ragmetrics init` writes one")
    else:
        yield Check("settings", f"{project.ini.path}: {', '.join(own) or 'nothing of this plugin'}")


def _error(option: Option, setting: Setting) -> str:
    try:
        option.parse(setting.text, setting.base)
    except ValueError as error:
        return str(error)
    return ""


def provider_checks(project: Project) -> Iterator[Check]:
    """List the variables of the providers, and ask the judge, and the embedder if one is named, one request each.

    What the judge is asked has a known answer; the texts to embed have nothing in common, and one is there twice. One
    that cannot be made is no fault if a hook of pytest may make it. No key is shown.
    """
    judge, embedder = project.spec("judge"), project.spec("embedder")
    judges = _members(judge)
    for vendor in (OPENAI, ANTHROPIC):
        if any(each.text == "auto" or each.text.startswith(f"{vendor.module}:") for each in judges):
            key = "set" if os.environ.get(vendor.key_variable, "").strip() else "not set"
            url = shown_address(os.environ.get(vendor.url_variable, "").strip()) or "not set"
            yield Check("keys", f"{vendor.key_variable} is {key}, {vendor.url_variable} is {url}")
    if project.is_replaying() and project.arguments.judge is None:
        yield Check("judge", f"{judge.text} is not asked: answers are replayed")
        return
    for each in judges:
        yield _asked(project, "judge", each, make_judge, partial(_examined, spec=each.text))
        yield from price_checks(each.text)
    if embedder.text != "auto":
        yield _asked(project, "embedder", embedder, make_embedder, _measured)


def price_checks(spec: str) -> Iterator[Check]:
    """Say why ``auto`` chose a model, and which newer one of the same provider costs less; neither is a fault."""
    try:
        kind, _, model = bare(meant_by(spec)).partition(":")
    except RagMetricsError:
        return
    successor = cheaper_successor(kind, model)
    if successor is not None:
        name, times = successor
        yield Check("price", f"{kind}:{model} costs {times:.1f} times as much as {kind}:{name}, which is newer")
    elif spec == "auto":
        yield Check("price", f"auto is {kind}:{model}: {DEFAULT_REASON}")


def _members(judge: Setting) -> list[Setting]:
    """Return the judges of a panel, each as a setting of its own; one that is no panel as it is."""
    try:
        return [judge._replace(text=spec) for spec in panel_members(judge.text)] or [judge]
    except ValueError:
        return [judge]


def _asked(
    project: Project,
    field: str,
    setting: Setting,
    make: Callable[..., Any],
    examine: Callable[[Any, str], Coroutine[Any, Any, tuple[str, str]]],
) -> Check:
    spec, place, _ = setting
    name = f"{spec} ({place})"
    try:
        made = make(spec, timeout=_TIMEOUT, retries=0)
    except (RagMetricsError, ValueError) as error:
        if project.is_hooked(field):
            return Check(field, f"{name} is up to a hook in conftest.py, which only pytest can ask")
        return Check(field, f"{name} does not answer", str(error))
    try:
        return Check(field, *loop.run(examine(made, f"{made.name} ({place})")))
    except RagMetricsError as error:
        return Check(field, f"{name} does not answer", str(error))


async def _examined(judge: Judge, name: str, *, spec: str) -> tuple[str, str]:
    if not isinstance(judge, PromptedJudge) or not judge.is_paid:
        return f"{name} answers by rule, and measures no application", ""
    try:
        reply = await judge.complete(judge.request(_TASK))
    finally:
        await judge.aclose()
    try:
        found = extract_json(reply.text)
        answer = validate(parse_json(found), _TASK.schema())
    except InvalidAnswer as error:
        return (
            f"{name} answers, but not in the form asked for: {error}; {shown(reply.text)}",
            "name a model that writes JSON, or switch on structured output in its server",
        )
    from pytest_ragmetrics.judges.providers.openai import OpenAIJudge

    form = _FORMS[judge.terms.form] if isinstance(judge, OpenAIJudge) else "keeps to the form asked for"
    if found != reply.text.strip():
        form = "puts other text around its JSON, which is passed over"
    told: list[bool] = []
    with suppress(InvalidAnswer):
        told = [verdict.ok for verdict in _TASK.read(answer)]
    if told == _TRUTH:
        return f"{name} answers and {form}; it tells a true statement from a false one", ""
    return (
        f"{name} answers and {form}; it does not tell a true statement from a false one: {shown(reply.text)}",
        f"it is too small to judge: name a larger model; `ragmetrics probe --judge {shlex.quote(spec)}` measures it",
    )


async def _measured(embedder: Embedder, name: str) -> tuple[str, str]:
    try:
        vectors = await embedder.aembed([*_UNRELATED, _UNRELATED[0]])
    finally:
        await embedder.aclose()
    answers = f"{name} answers with vectors of {vectors.shape[1]} numbers"
    # Plus 0: what rounds to -0.00 is shown as 0.00.
    *rows, again = cosines(vectors, vectors).round(2) + 0
    apart = [row[column] for number, row in enumerate(rows) for column in range(number)]
    lie = f"unrelated texts lie at {min(apart):.2f} to {max(apart):.2f}, identical ones at {again[0]:.2f}"
    return f"{answers}; {lie}: a min= of answer_relevancy or semantic_similarity belongs to this embedder", ""


def cache_checks(folder: Path, mounts: Path = MOUNTS) -> Iterator[Check]:
    """Check that the folder of the cache can be used; it is not created."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir():
        yield Check("cache", f"{folder}: {there} is not a folder", _OTHER)
        return
    is_own = not hasattr(os, "geteuid") or there.stat().st_uid == os.geteuid()
    owner = "" if is_own else " (it belongs to another account)"
    try:
        # Access rights do not show a read-only file system.
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        yield Check("cache", f"{folder} cannot be written{owner}: {error.strerror}", _OTHER)
        return
    kind = _file_system(there, mounts)
    if _NETWORK.match(kind):
        yield Check(
            "cache",
            f"{there} is on a network file system ({kind}), where SQLite is not safe",
            "name a folder of this machine with --rag-cache-dir=DIR, and share answers as a cassette",
        )
    if there != folder:
        yield Check("cache", f"{folder} will be made when the first answer is kept")
        return
    try:
        with Store(folder) as store:
            problem = store.damage()
            contents = store.contents() if store.exists() and problem is None else None
        if problem is not None:
            yield Check("cache", f"{store.database}: {problem}", "the next run moves it aside, and asks all anew")
            return
    except CacheError as error:
        yield Check("cache", str(error), f"delete the folder, or {_OTHER}")
        return
    what = "empty" if contents is None else f"{contents.entries:,} answers, {contents.size / 1024:,.0f} KiB"
    yield Check("cache", f"{folder}: {what}{owner}")


def _file_system(folder: Path, mounts: Path) -> str:
    """Return the kind of the file system that a folder is on, by the list of mounts, which only Linux has."""
    try:
        rows = [line.split() for line in mounts.read_text("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return ""
    points = [(Path(point.replace("\\040", " ")), kind) for _, point, kind, *_ in rows]
    here = folder.resolve()
    return max(((len(point.parts), kind) for point, kind in points if here.is_relative_to(point)), default=(0, ""))[1]


def shared_checks(project: Project) -> Iterator[Check]:
    """Check that the shared cache answers, may be written as its mode says, and holds answers that can be read."""
    from pytest_ragmetrics.cache.remote import check_cache_url, is_written, shown_url

    setting = project.setting("cache_url")
    if setting is None:
        return
    try:
        url = check_cache_url(setting.text)
    except ValueError:
        return  # said of the settings
    mode, secret = project.setting("cache_url_mode"), os.environ.get("RAGMETRICS_CACHE_SECRET", "").strip()
    writes = is_written(url, "read" if mode is not None and mode.text == "read" else "readwrite")
    name = f"{shown_url(url)} ({setting.place})"
    try:
        latency, seen, refused = loop.run(_tried(url, secret, writes=writes))
    except CacheReadOnlyError as error:
        yield Check("shared", f"{name} cannot be written: {error}", "allow it, or set rag_cache_url_mode = read")
        return
    except CacheError as error:
        to_do = "check the address, the credentials in the environment and the way there; until then runs go on locally"
        yield Check("shared", f"{name} cannot be used: {error}", to_do)
        return
    signed = "set" if secret else "not set, so that whoever can write there decides what tests read"
    text = f"{name}: {'readwrite' if writes else 'read'}, {latency * 1000:.1f} ms a request, secret {signed}"
    damaged = f"; {refused:,} of {seen:,} answers looked at are refused" if refused else f"; {seen:,} answers looked at"
    to_do = "set the same RAGMETRICS_CACHE_SECRET wherever it is written"
    rest = "; what is refused is asked for anew and replaced" if refused else ", or set rag_cache_url_mode = read"
    yield Check("shared", text + damaged, to_do + rest if refused or (writes and not secret) else "")
    if project.path("cassette") is not None:
        yield Check("shared", "it is not used, as there is a cassette")


async def _tried(url: str, secret: str, *, writes: bool) -> tuple[float, int, int]:
    """Return seconds a request, how many answers were looked at, and how many of them are refused."""
    from pytest_ragmetrics.cache.remote import backend_of, is_sound

    backend, key = backend_of(url), os.urandom(32).hex()
    times = []
    try:
        for _ in range(_REQUESTS):
            start = time.perf_counter()
            await backend.get((key,))
            times.append(time.perf_counter() - start)
        if writes:
            await backend.lease(key, key, _TIMEOUT)
            await backend.release(key, key)
        parcels = await backend.get(await backend.sample(_SAMPLE))
    finally:
        await backend.aclose()
    refused = sum(not is_sound(name, parcel, secret) for name, parcel in parcels.items())
    return sorted(times)[_REQUESTS // 2], len(parcels), refused


def cassette_checks(project: Project) -> Iterator[Check]:
    """Check that the cassette can be read and has answers of the judge; if named or replayed it must exist."""
    file, judges = project.path("cassette"), [bare(judge.text) for judge in _members(project.spec("judge"))]
    if file is None:
        return
    if not file.exists():
        if project.arguments.cassette is None and not project.is_replaying():
            yield Check("cassette", f"{file} will be recorded by the first run that asks a judge")
        else:
            to_do = "run pytest once with a key to record it, and commit it"
            yield Check("cassette", f"{file} does not exist", to_do)
        return
    try:
        entries = [*Cassette(file).entries.values()]
    except CacheError as error:
        to_do = "take the file as it was committed, or delete that line: it is recorded again"
        yield Check("cassette", str(error), to_do)
        return
    judged = [entry for entry in entries if entry.task != EMBEDDING]
    models = ((entry.request["kind"], entry.request["model"]) for entry in judged)
    counts = Counter(model if kind == "custom" else f"{kind}:{model}" for kind, model in models)
    listed = ", ".join(f"{count:,} answers of {model}" for model, count in sorted(counts.items()))
    missing = [spec for spec in judges if spec not in ("auto", "local") and counts and spec not in counts]
    record = ", ".join(missing)
    to_do = f"replay with the judge that was recorded, or run pytest without --rag-cache=replay to record {record}"
    text = f"{file}: {listed or 'no answers'}, {len(entries) - len(judged):,} vectors"
    yield Check("cassette", text, to_do if missing else "")
    prompts = PromptBook(folder=project.path("prompts"))
    # Of a redacted one a word of the prompt may be missing.
    sent = [
        (entry.task, [message["content"] for message in entry.request.get("messages", ())])
        for entry in judged
        if not entry.redacted
    ]
    old = Counter(task for task, texts in sent if texts and not is_current(task, texts, prompts))
    if old:
        count = f"{old.total():,} of {len(judged):,} answers"
        text = f"{file}: {count} are of other prompts than those of this version ({', '.join(sorted(old))})"
        yield Check("cassette", text, "record them anew: run pytest with a key and without --rag-cache=replay")


@command("doctor")
@judge_option(help=f"{JUDGES} ({_OWN})")
@embedder_option(help=f"asked too if one is named ({_OWN})")
@click.option("--cassette", type=PATH, metavar="FILE", help=f"the recorded answers ({_OWN})")
@click.option("--dir", "cache_dir", type=PATH, metavar="DIR", help=f"the folder of the cache ({_OWN})")
@click.option(
    "--json", is_flag=True, help="print JSON for programs: version, ok, and checks with topic, ok, text and to_do"
)
def run(arguments: Arguments) -> CommandResult:
    """Look for what keeps a judge from judging, with one request; exit with status 1 if there is something."""
    project = Project(Path.cwd(), arguments)
    with local_modules(project.spec("judge").text, project.spec("embedder").text):
        return _examined_project(project)


def _examined_project(project: Project) -> CommandResult:
    cache = project.path("cache_dir")
    checks = [
        *version_checks(),
        *plugin_checks(project),
        *settings_checks(project),
        *provider_checks(project),
        *cache_checks(cache or (project.root / FOLDER if project.ini else default_folder())),
        *shared_checks(project),
        *cassette_checks(project),
    ]
    checks = [check.safe() for check in checks]
    open_ = sum(bool(check.to_do) for check in checks)
    if project.arguments.json:
        rows = [{"ok": not check.to_do, **check._asdict()} for check in checks]
        return CommandResult(lines=as_json(ok=not open_, checks=rows), status=int(open_ > 0))
    last = "all well" if not open_ else f"{counted(open_, 'thing')} to do"
    lines = fitted([line for check in checks for line in check.lines()])
    return CommandResult(lines=[*lines, last], status=int(open_ > 0))
