"""`ragmetrics doctor`: checks versions, plugin, settings, keys, judge, embedder, cache and cassette of a folder.

Each check has a text and, if something is wrong, what to do about it.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_ragmetrics import files as paths
from pytest_ragmetrics import loop
from pytest_ragmetrics.cache import maintenance
from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.cache.entry import CacheError
from pytest_ragmetrics.cache.key import EMBEDDING
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.commands.command import JUDGES, Command, CommandResult, local_modules, take_embedder, take_judge
from pytest_ragmetrics.commands.ini_file import IniFile, find_ini_file
from pytest_ragmetrics.embedders.embedder import Embedder
from pytest_ragmetrics.embedders.specs import make_embedder
from pytest_ragmetrics.errors import RagMetricsError
from pytest_ragmetrics.judges.api import ANTHROPIC, OPENAI
from pytest_ragmetrics.judges.judge import Judge, PromptedJudge
from pytest_ragmetrics.judges.schema import extract_json, parse_json
from pytest_ragmetrics.judges.specs import make_judge
from pytest_ragmetrics.judges.tasks import InvalidAnswer, JudgeRefusal
from pytest_ragmetrics.text.characters import printable, shortened

if TYPE_CHECKING:
    from pytest_ragmetrics.settings import Option

T = TypeVar("T")

# A shorter key would be replaced in ordinary words.
_SHORTEST_KEY = 4
_ACCOUNT = re.compile(r"//[^/\s@]+@")
_QUERY = re.compile(r"(https?://[^\s?]*\?)[^\s,;)]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """The result of one check; ``to_do`` is the remedy, empty if nothing is wrong."""

    topic: str
    text: str
    to_do: str = ""

    def lines(self) -> list[str]:
        """Return the lines to print, without keys and passwords."""
        head = f"{'TO DO' if self.to_do else 'ok':<7}{self.topic + ':':<11}{_safe(self.text)}"
        return [head, f"{'':<18}-> {_safe(self.to_do)}"] if self.to_do else [head]


def _safe(text: str) -> str:
    for vendor in (OPENAI, ANTHROPIC):
        key = os.environ.get(vendor.key_variable, "").strip()
        text = text.replace(key, "***") if len(key) >= _SHORTEST_KEY else text
    return printable(_QUERY.sub(r"\1***", _ACCOUNT.sub("//***@", text)))


PLUGIN = "ragmetrics"
MODULE = "pytest_ragmetrics.plugin"
_GROUP = "pytest11"
_OLDEST_PYTEST = (8, 4)
_NAMED_MODULE = re.compile(rf"-p[ =]?{re.escape(MODULE)}\b")
_SWITCHED_OFF = re.compile(rf"-p[ =]?no:{PLUGIN}\b")
_NAMED = re.compile(rf"-p[ =]?{PLUGIN}\b")
_IN_CONFTEST = re.compile(rf"^pytest_plugins\b[^\n]*(?:\n[^\n\]\)]*)*?[\"']{re.escape(MODULE)}[\"']", re.MULTILINE)


def version_checks() -> Iterator[Check]:
    """Check the versions of Python, pytest, this package and openai."""
    named = [f"{name} {_version(name)}" for name in ("pytest", "pytest-ragmetrics", "openai")]
    old = tuple(map(int, re.findall(r"\d+", _version("pytest"))[:2])) < _OLDEST_PYTEST
    to_do = 'run: python -m pip install "pytest>=8.4"' if old else ""
    yield Check(topic="versions", text=", ".join([f"Python {platform.python_version()}", *named]), to_do=to_do)


def plugin_checks(ini: IniFile | None, folder: Path) -> Iterator[Check]:
    """Check that pytest, started in a folder, loads the plugin exactly once."""
    options = {"addopts": ini.text("addopts") if ini else "", "PYTEST_ADDOPTS": os.environ.get("PYTEST_ADDOPTS", "")}
    faults = [Check(topic="plugin", text=text, to_do=to_do) for text, to_do in _plugin_faults(options, folder)]
    yield from faults or [Check(topic="plugin", text=f"loaded by pytest as {PLUGIN}")]


def _plugin_faults(options: dict[str, str], folder: Path) -> Iterator[tuple[str, str]]:
    twice = "leave it out: pytest finds the plugin by itself, and the other way to load it is -p ragmetrics"
    for place, text in options.items():
        if _SWITCHED_OFF.search(text):
            yield f"{place} switches the plugin off", f"take -p no:{PLUGIN} out of it"
        if _NAMED_MODULE.search(text):
            yield f"{place} loads {MODULE} by its module, a second time", twice
    if MODULE in re.split(r"[,\s]+", os.environ.get("PYTEST_PLUGINS", "")):
        yield f"PYTEST_PLUGINS loads {MODULE} by its module, a second time", twice
    conftest = folder / "conftest.py"
    if conftest.is_file() and _IN_CONFTEST.search(conftest.read_text("utf-8", "replace")):
        yield f"pytest_plugins in {conftest} loads {MODULE} by its module, a second time", twice
    registered = [point for point in metadata.entry_points(group=_GROUP) if MODULE in (point.value, point.module)]
    if not any(point.name == PLUGIN for point in registered):
        yield "the plugin is not installed", 'run: python -m pip install "pytest-ragmetrics"'
    # One distribution may be on the path twice: pytest loads it once.
    if len({(point.dist.name if point.dist else "", point.name) for point in registered}) > 1:
        yield "the plugin is installed twice", "uninstall all of pytest-ragmetrics, and install it once"
    if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD") and not any(map(_NAMED.search, options.values())):
        to_do = f"add -p {PLUGIN} to the addopts of pytest"
        yield "PYTEST_DISABLE_PLUGIN_AUTOLOAD is set, and nothing loads the plugin", to_do


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "(not installed)"


_TIMEOUT = 30.0
_SHOWN = 120
_TASK = JudgeRefusal(question="Who owns the lake?", response="The documents do not say who owns it.")

_FORMS = {
    "json_schema": "takes the schema of an answer",
    "json_object": "has JSON mode and no schemas, so some replies will have to be asked for again",
    "text": "has neither schemas nor JSON mode, so some replies will have to be asked for again",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Spec:
    """The text of a setting and the place where it is set."""

    text: str
    place: str


def key_checks(spec: Spec) -> Iterator[Check]:
    """List the environment variables of the provider of a judge; no key is shown."""
    for vendor in (OPENAI, ANTHROPIC):
        if spec.text == "auto" or spec.text.startswith(f"{vendor.module}:"):
            key = "set" if os.environ.get(vendor.key_variable, "").strip() else "not set"
            url = os.environ.get(vendor.url_variable, "").strip() or "not set"
            yield Check(topic="keys", text=f"{vendor.key_variable} is {key}, {vendor.url_variable} is {url}")


def judge_checks(spec: Spec, *, hooked: bool = False) -> Iterator[Check]:
    """Check with one request that the judge of a spec answers, and in what form.

    A judge that cannot be made is no fault if ``hooked``: a hook of pytest may make it.
    """
    yield _asked("judge", make_judge, _examined, spec, hooked=hooked)


def embedder_checks(spec: Spec, *, hooked: bool = False) -> Iterator[Check]:
    """Check an embedder as :func:`judge_checks` checks a judge."""
    yield _asked("embedder", make_embedder, _measured, spec, hooked=hooked)


def _asked(
    topic: str,
    make: Callable[..., T],
    examine: Callable[[T, Spec], Coroutine[Any, Any, Check]],
    spec: Spec,
    *,
    hooked: bool,
) -> Check:
    name = f"{spec.text} ({spec.place})"
    try:
        made = make(spec.text, timeout=_TIMEOUT, retries=0)
    except (RagMetricsError, ValueError) as error:
        if hooked:
            return Check(topic=topic, text=f"{name} is up to a hook in conftest.py, which only pytest can ask")
        return Check(topic=topic, text=f"{name} does not answer", to_do=str(error))
    try:
        return loop.run(examine(made, spec))
    except RagMetricsError as error:
        return Check(topic=topic, text=f"{name} does not answer", to_do=str(error))


async def _examined(judge: Judge, spec: Spec) -> Check:
    name = f"{judge.name} ({spec.place})"
    if not isinstance(judge, PromptedJudge) or not judge.is_paid:
        return Check(topic="judge", text=f"{name} answers by rule, and measures no application")
    try:
        reply = await judge.complete(judge.request(_TASK))
    finally:
        await judge.aclose()
    try:
        found = extract_json(reply.text)
        _TASK.read(parse_json(found))
    except InvalidAnswer as error:
        return Check(
            topic="judge",
            text=f"{name} answers, but not in the form asked for: {error}; {shortened(reply.text, _SHOWN)!r}",
            to_do="name a model that writes JSON, or switch on structured output in its server",
        )
    from pytest_ragmetrics.judges.openai import OpenAIJudge

    form = _FORMS[judge.terms.form] if isinstance(judge, OpenAIJudge) else "keeps to the form asked for"
    if found != reply.text.strip():
        form = "puts other text around its JSON, which is passed over"
    return Check(topic="judge", text=f"{name} answers and {form}")


async def _measured(embedder: Embedder, spec: Spec) -> Check:
    try:
        vectors = await embedder.aembed(["Who owns the lake?"])
    finally:
        await embedder.aclose()
    return Check(
        topic="embedder", text=f"{embedder.name} ({spec.place}) answers with vectors of {vectors.shape[1]} numbers"
    )


MOUNTS = Path("/proc/self/mounts")
_NETWORK = re.compile(r"(?:nfs|cifs|smb|9p|afs|ceph|gluster|lustre|fuse\.(?:sshfs|s3fs|gcsfuse))")
_OTHER = "name another with --rag-cache-dir=DIR, or run with --rag-cache=off"


def cache_checks(folder: Path, mounts: Path = MOUNTS) -> Iterator[Check]:
    """Check that the folder of the cache can be used; it is not created."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    problem = _problem(folder, there)
    if problem is not None:
        yield Check(topic="cache", text=problem, to_do=_OTHER)
        return
    yield from _network_checks(there, mounts)
    if there != folder:
        yield Check(topic="cache", text=f"{folder} will be made when the first answer is kept")
        return
    try:
        with Store(folder) as store:
            contents = store.contents() if store.exists() else None
    except CacheError as error:
        yield Check(topic="cache", text=str(error), to_do=f"delete the folder, or {_OTHER}")
        return
    what = "empty" if contents is None else f"{contents.entries:,} answers, {contents.size / 1024:,.0f} KiB"
    yield Check(topic="cache", text=f"{folder}: {what}{_owner(folder)}")


def cassette_checks(file: Path, spec: str, *, needed: bool) -> Iterator[Check]:
    """Check that a cassette can be read and has answers of the judge of a spec; it must exist if ``needed``."""
    if not file.exists() and not needed:
        yield Check(topic="cassette", text=f"{file} will be recorded by the first run that asks a judge")
        return
    if not file.exists():
        yield Check(
            topic="cassette",
            text=f"{file} does not exist",
            to_do="run pytest once with a key to record it, and commit it",
        )
        return
    try:
        entries = Cassette(file).entries.values()
    except CacheError as error:
        to_do = "take the file as it was committed, or delete that line: it is recorded again"
        yield Check(topic="cassette", text=str(error), to_do=to_do)
        return
    judged = [entry for entry in entries if entry.task != EMBEDDING]
    models = ((entry.request["kind"], entry.request["model"]) for entry in judged)
    counts = Counter(model if kind == "custom" else f"{kind}:{model}" for kind, model in models)
    listed = ", ".join(f"{count:,} answers of {model}" for model, count in sorted(counts.items()))
    text = f"{file}: {listed or 'no answers'}, {len(entries) - len(judged):,} vectors"
    named = spec not in ("auto", "local") and bool(counts) and spec not in counts
    to_do = f"replay with the judge that was recorded, or run pytest without --rag-cache=replay to record {spec}"
    yield Check(topic="cassette", text=text, to_do=to_do if named else "")


def _problem(folder: Path, there: Path) -> str | None:
    """Return why a folder cannot be written, or ``None``; ``there`` is the part of it that exists."""
    if not there.is_dir():
        return f"{folder}: {there} is not a folder"
    try:
        # Access rights do not show a read-only file system.
        with tempfile.TemporaryFile(dir=there):
            return None
    except OSError as error:
        return f"{folder} cannot be written{_owner(there)}: {error.strerror}"


def _owner(folder: Path) -> str:
    """Return a remark about a folder of another account."""
    is_own = not hasattr(os, "geteuid") or folder.stat().st_uid == os.geteuid()
    return "" if is_own else " (it belongs to another account)"


def _network_checks(there: Path, mounts: Path) -> Iterator[Check]:
    """Warn of a folder on a network file system, by the list of mounts."""
    try:
        rows = [line.split() for line in mounts.read_text("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return
    points = [(Path(point.replace("\\040", " ")), kind) for _, point, kind, *_ in rows]
    here = there.resolve()
    below = [(len(point.parts), kind) for point, kind in points if here.is_relative_to(point)]
    kind = max(below, default=(0, ""))[1]
    if _NETWORK.match(kind):
        yield Check(
            topic="cache",
            text=f"{there} is on a network file system ({kind}), where SQLite is not safe",
            to_do="name a folder of this machine with --rag-cache-dir=DIR, and share answers as a cassette",
        )


_PREFIX = "rag_"


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """The folder where pytest is started, and the ini file that it finds, if any."""

    folder: Path
    ini: IniFile | None

    @property
    def root(self) -> Path:
        """The folder that paths in the ini file are relative to."""
        return self.folder if self.ini is None else self.ini.path.parent

    def spec(self, field: str, given: str | None) -> Spec:
        """Return a setting: as it was given here, else that of the environment, else of the ini file, else auto."""
        option = _option(field)
        found = ((given or "", f"--{field}"), *((text, place) for place, text, _ in self._stated(option)))
        text, place = next(((text.strip(), place) for text, place in found if text.strip()), ("auto", "the default"))
        return Spec(text=text, place=place)

    def path(self, field: str, given: Path | None) -> Path | None:
        """Return the path of a setting, from the same places as :meth:`spec`; ``None`` if it is not set."""
        if given is not None:
            return given.absolute()
        stated = self._stated(_option(field))
        return next((paths.a_path(text, base) for _, text, base in stated), None)

    def cache_dir(self, given: Path | None) -> Path:
        """Return the folder of the cache."""
        chosen = self.path("cache_dir", given)
        if chosen is not None:
            return chosen
        return self.root / maintenance.FOLDER if self.ini else maintenance.default_folder()

    def is_replaying(self) -> bool:
        """Return whether answers are only replayed."""
        return self.spec("cache", None).text == "replay"

    def is_hooked(self, field: str) -> bool:
        """Return whether a conftest.py seems to implement the hook of a setting, which pytest asks first."""
        hook = _option(field).hook
        files = (place / name for place in {self.folder, self.root} for name in ("conftest.py", "tests/conftest.py"))
        return hook is not None and any(
            file.is_file() and f"def {hook}" in file.read_text("utf-8", "replace") for file in files
        )

    def checks(self) -> Iterator[Check]:
        """Check the settings in the ini file and the environment: unknown names and values that cannot be parsed."""
        from difflib import get_close_matches

        # Imports pytest, which the other commands do without.
        from pytest_ragmetrics.settings import OPTIONS

        known = {option.name: option for option in OPTIONS if option.in_ini}
        own = [key for key in self.ini.values if key.startswith(_PREFIX)] if self.ini else []
        faults = []
        for key in (key for key in own if key not in known):
            near = get_close_matches(key, known, n=1)
            hint = f"write {near[0]}, or take it out" if near else "take it out; `pytest --help` lists them all"
            faults.append(Check(topic="settings", text=f"{key} is no setting of this plugin", to_do=hint))
        for option in OPTIONS:
            faults += [
                fault for place, text, base in self._stated(option) if (fault := self._fault(option, text, place, base))
            ]
        if faults:
            yield from faults
        elif self.ini is None:
            yield Check(topic="settings", text="no file with settings of pytest; `ragmetrics init` writes one")
        else:
            yield Check(topic="settings", text=f"{self.ini.path}: {', '.join(own) or 'nothing of this plugin'}")

    def _stated(self, option: Option) -> Iterator[tuple[str, str, Path]]:
        """Yield each place that sets an option, without the command line: its name, the text, the base of paths."""
        variable = option.environment
        if variable and os.environ.get(variable, "").strip():
            yield variable, os.environ[variable], self.folder
        if self.ini is not None and option.in_ini and self.ini.text(option.name):
            yield f"{option.name} in {self.ini.path.name}", self.ini.text(option.name), self.root

    def _fault(self, option: Option, text: str, place: str, base: Path) -> Check | None:
        try:
            option.parse(text, base)
        except ValueError as error:
            if self.is_hooked(option.field):
                return None
            return Check(topic="settings", text=f"{place} is not usable", to_do=str(error))
        return None


def _option(field: str) -> Option:
    from pytest_ragmetrics.settings import OPTIONS

    return next(option for option in OPTIONS if option.field == field)


@local_modules()
def _examine(arguments: argparse.Namespace) -> CommandResult:
    project = Project(folder=Path.cwd(), ini=find_ini_file(Path.cwd()))
    checks = list(_checks(arguments, project))
    open_ = sum(bool(check.to_do) for check in checks)
    last = "all well" if not open_ else f"{open_} {'thing' if open_ == 1 else 'things'} to do"
    return CommandResult(lines=[*(line for check in checks for line in check.lines()), last], status=int(open_ > 0))


def _checks(arguments: argparse.Namespace, project: Project) -> Iterator[Check]:
    yield from version_checks()
    yield from plugin_checks(project.ini, project.folder)
    yield from project.checks()
    yield from _provider_checks(arguments, project)
    yield from cache_checks(project.cache_dir(arguments.dir))
    cassette = project.path("cassette", arguments.cassette)
    if cassette is not None:
        needed = arguments.cassette is not None or project.is_replaying()
        yield from cassette_checks(cassette, project.spec("judge", arguments.judge).text, needed=needed)


def _provider_checks(arguments: argparse.Namespace, project: Project) -> Iterator[Check]:
    judge, embedder = project.spec("judge", arguments.judge), project.spec("embedder", arguments.embedder)
    yield from key_checks(judge)
    if project.is_replaying() and arguments.judge is None:
        yield Check(topic="judge", text=f"{judge.text} is not asked: answers are replayed")
        return
    yield from judge_checks(judge, hooked=project.is_hooked("judge"))
    if embedder.text != "auto":
        yield from embedder_checks(embedder, hooked=project.is_hooked("embedder"))


def _configure(parser: argparse.ArgumentParser) -> None:
    own = "default: as the settings here say"
    take_judge(parser, help=f"{JUDGES} ({own})")
    take_embedder(parser, help=f"asked too if one is named ({own})")
    parser.add_argument("--cassette", type=Path, metavar="FILE", help=f"the recorded answers ({own})")
    parser.add_argument("--dir", type=Path, metavar="DIR", help=f"the folder of the cache ({own})")


DOCTOR = Command(
    name="doctor",
    help="Look for what keeps a judge from being asked, with one request; exit with status 1 if there is something.",
    configure=_configure,
    run=_examine,
)
