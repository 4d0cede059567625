"""`ragmetrics doctor`: checks versions, plugin, settings, keys, judge, embedder, caches and cassette of a folder."""

from __future__ import annotations

import os
import platform
import re
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import aclosing, suppress
from difflib import get_close_matches
from functools import partial
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.cache.entry import EMBEDDING, CacheReadOnlyError
from pytest_ragmetrics.cache.folder import FOLDER
from pytest_ragmetrics.cache.remote import backend_of, check_cache_url, is_sound, is_written, shown_url
from pytest_ragmetrics.cli.cache import folder_findings
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
    option,
)
from pytest_ragmetrics.cli.probes.first_request import examined, measured
from pytest_ragmetrics.core import files as paths
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import CacheError, RagMetricsError
from pytest_ragmetrics.judges.embedders.specs import make_embedder
from pytest_ragmetrics.judges.prices import cheaper_successor
from pytest_ragmetrics.judges.providers.addresses import shown_address, without
from pytest_ragmetrics.judges.providers.vendor import VENDORS, bare
from pytest_ragmetrics.judges.rendering import PromptBook, is_current
from pytest_ragmetrics.judges.specs import DEFAULT_REASON, make_judge, meant_by, panel_members
from pytest_ragmetrics.plugin.config import read_config
from pytest_ragmetrics.plugin.settings import OPTIONS, Given, given_to, is_hooked, option_of, parsed
from pytest_ragmetrics.runs.wording.figures import counted
from pytest_ragmetrics.text.unicode import printable

PLUGIN = "ragmetrics"
MODULE = "pytest_ragmetrics.plugin"
_OWN = "default: the settings here"
_OLDEST_PYTEST = (8, 4)
_ACCOUNT = re.compile(r"//[^/\s]+@")
_QUERY = re.compile(r"(https?://[^\s?]*\?)[^\s,;)]+")
_TIMEOUT = 30.0
_Examine = Callable[[Any], Coroutine[Any, Any, tuple[str, str]]]
# How often the shared cache is asked for its latency, and how many of its answers are looked at.
_REQUESTS, _SAMPLE = 5, 100
# Where the text of a check begins.
_INDENT = 18


class Check(NamedTuple):
    """The result of one check; ``to_do`` is the remedy, empty if nothing is wrong."""

    topic: str
    text: str
    to_do: str = ""


def _safe(text: str) -> str:
    """Return a text without keys and passwords."""
    keys = (os.environ.get(vendor.key_variable, "").strip() for vendor in VENDORS.values())
    return printable(_QUERY.sub(r"\1***", _ACCOUNT.sub("//***@", without(text, list(filter(None, keys))))))


class Project:
    """What pytest reads in the current folder, and the arguments of the command, which come before its settings."""

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments
        self.config, self.values, self.problem = read_config()
        cache = self.given("cache")
        #: Whether answers are only replayed.
        self.replays = cache is not None and cache.text == "replay"
        judge = self.spec("judge").text
        #: The judges of a panel, or the one judge.
        self.judges = [judge]
        with suppress(ValueError):
            self.judges = panel_members(judge) or [judge]

    def given(self, field: str) -> Given | None:
        """Return what was given for a setting, ``None`` if nothing was."""
        text = getattr(self.arguments, field, None)
        if text is not None:
            return Given("", f"--{field}", str(text), Path.cwd())
        return next(given_to(option_of(field), self.config), None)

    def spec(self, field: str) -> Given:
        """Return the setting of a judge or an embedder, by default ``auto``."""
        return self.given(field) or Given("", "the default", "auto", Path.cwd())

    def path(self, field: str) -> Path | None:
        """Return the path of a setting, ``None`` if it is not set."""
        found = self.given(field)
        return None if found is None else paths.a_path(found.text, found.base)

    def place(self, given: Given) -> str:
        """Return where a setting was given."""
        file = self.config.inipath
        return f"{given.name} in {file.name}" if given.kind == "ini option " and file is not None else given.name


def version_checks() -> Iterator[Check]:
    """Check the versions of Python, pytest, this package and openai."""
    installed = dict.fromkeys(("pytest", "pytest-ragmetrics", "openai"), "(not installed)")
    for name in installed:
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    old = tuple(map(int, re.findall(r"\d+", installed["pytest"])[:2])) < _OLDEST_PYTEST
    named = ", ".join(f"{name} {version}" for name, version in installed.items())
    to_do = 'run: python -m pip install "pytest>=8.4"' if old else ""
    yield Check("versions", f"Python {platform.python_version()}, {named}", to_do)


def plugin_checks(project: Project) -> Iterator[Check]:
    """Check that pytest starts, and loads the plugin exactly once."""
    faults = [Check("plugin", *fault) for fault in _plugin_faults(project)]
    if not faults and project.problem:
        to_do = "mend it first: what follows leaves out what pytest did not read"
        faults = [Check("pytest", f"it does not start here: {project.problem}", to_do)]
    yield from faults or [Check("plugin", f"loaded by pytest as {PLUGIN}")]


def _plugin_faults(project: Project) -> Iterator[tuple[str, str]]:
    given, manager = os.environ.get("PYTEST_ADDOPTS", ""), project.config.pluginmanager
    options = {"addopts": " ".join(project.config.getini("addopts")), "PYTEST_ADDOPTS": given}
    named = {place: re.findall(r"(?<!\S)-p\s*(\S+)", text) for place, text in options.items()}
    named["PYTEST_PLUGINS"] = re.split(r"[,\s]+", os.environ.get("PYTEST_PLUGINS", ""))
    for plugin in manager.get_plugins():
        names = re.findall(r"[\w.]+", str(getattr(plugin, "pytest_plugins", "")))
        named[f"pytest_plugins in {getattr(plugin, '__file__', plugin)}"] = names
    for place, names in named.items():
        if f"no:{PLUGIN}" in names and manager.is_blocked(PLUGIN):
            yield f"{place} switches the plugin off", f"take -p no:{PLUGIN} out of it"
        if MODULE in names and MODULE in project.problem:
            to_do = "leave it out: pytest finds the plugin by itself, and the other way to load it is -p ragmetrics"
            yield f"{place} loads {MODULE} by its module, a second time", to_do
    registered = [point for point in metadata.entry_points(group="pytest11") if MODULE in (point.value, point.module)]
    if not any(point.name == PLUGIN for point in registered):
        yield "the plugin is not installed", 'run: python -m pip install "pytest-ragmetrics"'
    # pytest loads a distribution once that is on the path twice.
    if len({(point.dist.name if point.dist else "", point.name) for point in registered}) > 1:
        yield "the plugin is installed twice", "uninstall all of pytest-ragmetrics, and install it once"
    variable = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
    cause = f"{variable} is set" if os.environ.get(variable) else "--disable-plugin-autoload is given"
    is_loaded = any(getattr(plugin, "__name__", "") == MODULE for plugin in manager.get_plugins())
    if registered and not (is_loaded or project.problem or manager.is_blocked(PLUGIN)):
        yield f"{cause}, and nothing loads the plugin", f"add -p {PLUGIN} to the addopts of pytest"


def settings_checks(project: Project) -> Iterator[Check]:
    """Check the settings in the ini file and the environment: unknown names and values that cannot be parsed."""
    known = [setting.name for setting in OPTIONS if setting.in_ini]
    own = [key for key in project.values if key.startswith("rag_")]
    faults = []
    for key in sorted(set(own) - set(known)):
        near = get_close_matches(key, known, n=1)
        hint = f"write {near[0]}, or take it out" if near else "take it out; `pytest --help` lists them all"
        faults.append(Check("settings", f"{key} is no setting of this plugin", hint))
    for setting in OPTIONS:
        for given in given_to(setting, project.config):
            try:
                parsed(setting, given.text, given.base, project.config)
            except ValueError as error:
                faults.append(Check("settings", f"{project.place(given)} is not usable", str(error)))
    state = f"{project.config.inipath or 'addopts'}: {', '.join(own) or 'nothing of this plugin'}"
    missing = "no file with settings of pytest; `ragmetrics init` writes one"
    yield from faults or [Check("settings", state if project.values else missing)]


def provider_checks(project: Project) -> Iterator[Check]:
    """List the variables of the providers, and ask the judge, and the embedder if one is named, one request each.

    What the judge is asked has a known answer; the texts to embed have nothing in common, and one is there twice. One
    that cannot be made is no fault if a hook of pytest may make it. No key is shown.
    """
    judge, embedder = project.spec("judge"), project.spec("embedder")
    for name, vendor in VENDORS.items():
        if any(spec == "auto" or spec.startswith(f"{name}:") for spec in project.judges):
            key = "set" if os.environ.get(vendor.key_variable, "").strip() else "not set"
            url = shown_address(os.environ.get(vendor.url_variable, "").strip()) or "not set"
            yield Check("keys", f"{vendor.key_variable} is {key}, {vendor.url_variable} is {url}")
    if project.replays and project.arguments.judge is None:
        yield Check("judge", f"{judge.text} is not asked: answers are replayed")
        return
    for spec in project.judges:
        yield _asked(project, "judge", judge._replace(text=spec), make_judge, partial(examined, spec=spec))
        # Why auto chose a model, and which newer one of the same provider costs less; neither is a fault.
        with suppress(RagMetricsError):
            kind, _, model = bare(meant_by(spec)).partition(":")
            if successor := cheaper_successor(kind, model):
                dearer = f"costs {successor[1]:.1f} times as much as {kind}:{successor[0]}, which is newer"
                yield Check("price", f"{kind}:{model} {dearer}")
            elif spec == "auto":
                yield Check("price", f"auto is {kind}:{model}: {DEFAULT_REASON}")
    if embedder.text != "auto":
        yield _asked(project, "embedder", embedder, make_embedder, measured)


def _asked(project: Project, field: str, given: Given, make: Callable[..., Any], examine: _Examine) -> Check:
    name, place = given.text, f"({project.place(given)})"
    try:
        try:
            with local_modules(name):
                made = make(name, timeout=_TIMEOUT, retries=0)
        except (RagMetricsError, ValueError):
            if is_hooked(option_of(field), project.config):
                return Check(field, f"{name} {place} is up to a hook in conftest.py, which only pytest can ask")
            raise
        text, to_do = loop.run(examine(made))
    except (RagMetricsError, ValueError) as error:
        return Check(field, f"{name} {place} does not answer", str(error))
    return Check(field, f"{made.name} {place} {text}", to_do)


def shared_checks(project: Project) -> Iterator[Check]:
    """Check that the shared cache answers, may be written as its mode says, and holds answers that can be read."""
    given, mode = project.given("cache_url"), project.given("cache_url_mode")
    if given is None:
        return
    try:
        url = check_cache_url(given.text)
    except ValueError:
        return  # settings_checks() reports it
    secret = os.environ.get("RAGMETRICS_CACHE_SECRET", "").strip()
    writes = is_written(url, "read" if mode is not None and mode.text == "read" else "readwrite")
    name = f"{shown_url(url)} ({project.place(given)})"
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
    looked = f"{counted(seen, 'answer')} looked at"
    looked = f"{refused:,} of {looked} are refused" if refused else looked
    to_do = "set the same RAGMETRICS_CACHE_SECRET wherever it is written"
    rest = "; what is refused is asked for anew and replaced" if refused else ", or set rag_cache_url_mode = read"
    yield Check("shared", f"{text}; {looked}", to_do + rest if refused or (writes and not secret) else "")
    if project.path("cassette") is not None:
        yield Check("shared", "it is not used, as there is a cassette")


async def _tried(url: str, secret: str, *, writes: bool) -> tuple[float, int, int]:
    """Return seconds a request, how many answers were looked at, and how many of them are refused."""
    key, times = os.urandom(32).hex(), []
    async with aclosing(backend_of(url)) as backend:
        for _ in range(_REQUESTS):
            start = time.perf_counter()
            await backend.get((key,))
            times.append(time.perf_counter() - start)
        if writes:
            await backend.probe()
        parcels = await backend.get(await backend.sample(_SAMPLE))
    refused = sum(not is_sound(name, parcel, secret) for name, parcel in parcels.items())
    return median(times), len(parcels), refused


def cassette_checks(project: Project) -> Iterator[Check]:
    """Check that the cassette can be read and has answers of the judge; if named or replayed it must exist."""
    file = project.path("cassette")
    if file is None:
        return
    try:
        entries = [*Cassette(file).entries.values()]
    except CacheError as error:
        to_do = "take the file as it was committed, or delete that line: it is recorded again"
        yield Check("cassette", str(error), to_do)
        return
    if not file.exists():
        if project.replays or project.arguments.cassette is not None:
            yield Check("cassette", f"{file} does not exist", "run pytest once with a key to record it, and commit it")
        else:
            yield Check("cassette", f"{file} will be recorded by the first run that asks a judge")
        return
    judged = [entry for entry in entries if entry.task != EMBEDDING]
    models = ((entry.request["kind"], entry.request["model"]) for entry in judged)
    counts = Counter(model if kind == "custom" else f"{kind}:{model}" for kind, model in models)
    listed = ", ".join(f"{counted(count, 'answer')} of {model}" for model, count in sorted(counts.items()))
    judges = map(bare, project.judges)
    missing = ", ".join(spec for spec in judges if spec not in ("auto", "local") and counts and spec not in counts)
    to_do = f"replay with the judge that was recorded, or run pytest without --rag-cache=replay to record {missing}"
    text = f"{file}: {listed or 'no answers'}, {counted(len(entries) - len(judged), 'vector')}"
    yield Check("cassette", text, to_do if missing else "")
    prompts = PromptBook(folder=project.path("prompts"))
    old: Counter[str] = Counter()
    for entry in judged:
        texts = [message["content"] for message in entry.request.get("messages", ())]
        # A redacted request may lack words of the prompt.
        old[entry.task] += bool(texts and not entry.redacted and not is_current(entry.task, texts, prompts))
    if old.total():
        count, tasks = f"{old.total():,} of {counted(len(judged), 'answer')}", ", ".join(sorted(+old))
        text = f"{file}: {count} are of other prompts than those of this version ({tasks})"
        yield Check("cassette", text, "record them anew: run pytest with a key and without --rag-cache=replay")


@command("doctor")
@judge_option(help=f"{JUDGES} ({_OWN})")
@embedder_option(help=f"checked if named ({_OWN})")
@option("--cassette FILE", PATH, f"the recorded answers ({_OWN})")
@option("--dir DIR", PATH, f"the folder of the cache ({_OWN})", name="cache_dir")
@option("--json", help="print JSON: version, ok, and checks with topic, ok, text and to_do")
def run(arguments: Arguments) -> CommandResult:
    """Check keys, settings, judge and caches, with one request; exit with 1 if something is wrong."""
    project = Project(arguments)
    folder = project.path("cache_dir") or project.config.rootpath / FOLDER
    found = [
        *version_checks(),
        *plugin_checks(project),
        *settings_checks(project),
        *provider_checks(project),
        *(Check("cache", *finding) for finding in folder_findings(folder)),
        *shared_checks(project),
        *cassette_checks(project),
    ]
    checks = [Check(check.topic, _safe(check.text), _safe(check.to_do)) for check in found]
    open_ = sum(bool(check.to_do) for check in checks)
    if arguments.json:
        rows = [{"ok": not check.to_do, **check._asdict()} for check in checks]
        return CommandResult(lines=as_json(ok=not open_, checks=rows), status=int(open_ > 0))
    lines = []
    for topic, text, to_do in checks:
        lines += fitted([f"{'TO DO' if to_do else 'ok':<7}{topic + ':':<11}{text}"], hanging=_INDENT)
        lines += fitted([f"{'':<{_INDENT}}-> {to_do}"], hanging=3) if to_do else []
    last = f"{counted(open_, 'thing')} to do" if open_ else "all well"
    return CommandResult(lines=[*lines, last], status=int(open_ > 0))
