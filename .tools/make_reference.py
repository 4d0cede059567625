"""Writes the reference, the lists of topics and the stubs from the code: ``python .tools/make_reference.py``.

They are committed, so that type checkers, the site, GitHub and ``ragmetrics docs`` read files; ``tests/test_docs.py``
compares them with what this module makes. What they say is in docstrings, signatures, defaults and help texts.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import json
import os
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import click
import yaml
from stubs import other_names, stubs

import pytest_ragmetrics
from pytest_ragmetrics import cli, metrics, plugin
from pytest_ragmetrics.cli.command import JUDGES, Argument
from pytest_ragmetrics.cli.docs import Page, pages
from pytest_ragmetrics.cli.metrics import SENTENCE_END, metrics_json
from pytest_ragmetrics.core.public_names import module_of_names
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.metrics import JudgedMetric, Metric
from pytest_ragmetrics.metrics.registry import built_in_metrics, helper_of
from pytest_ragmetrics.plugin import hookspec
from pytest_ragmetrics.plugin.settings import OPTIONS, Option
from pytest_ragmetrics.runs import records

PACKAGE = Path(pytest_ragmetrics.__file__).parent
COMMAND = "python .tools/make_reference.py"
_MADE = "<!-- Made from the code by `python .tools/make_reference.py`. -->"
_PUBLIC = (pytest_ragmetrics.__name__, metrics.__name__)
_ROLE = re.compile(r":\w+:`(?:[^`<]*<)?~?([^`>]+)>?`")
#: One sample with three contexts of 600 characters, for the cost of each metric.
_CONTEXTS, _SIZE = 3, 600
_CHARACTERS_A_TOKEN = 4
#: What a docstring says of its errors; the page has their names.
_RAISES = re.compile(r"Raises\s(?:as .+?|.*?``\w+Error``.*?)\.(?=\s|$)", re.DOTALL)
#: Methods that only this package calls.
_INTERNAL = {"sample_of", "is_of", "answers_of", "require_fields", "vacuous_score", "untrusted_texts", "is_shared_by"}
_INTERNAL |= {"complete", "messages", "judge_here", "require", "better_of"}
_INTERNAL |= {"blocks", "note", "fill", "schema", "entries", "by_rule", "explained"}


def markdown(docstring: str | None) -> str:
    """Return a docstring as Markdown: its roles and literals as code, its examples as blocks of ``pycon``."""
    paragraphs = (docstring or "").strip().split("\n\n")
    return "\n\n".join(
        f"```pycon\n{part.strip()}\n```" if part.lstrip().startswith(">>>") else _prose(part) for part in paragraphs
    )


def described(of: Any) -> str:
    """Return the docstring of an object as Markdown; the first example begins with the imports that all of it need."""
    docstring = inspect.getdoc(of) or ""
    # What the package exports is around the function of the module.
    defined: Any = of.fget if isinstance(of, property) else inspect.unwrap(of)
    module = sys.modules[defined.__module__]
    code = "".join(example.source for example in doctest.DocTestParser().get_examples(docstring))
    imports = "".join(f">>> {line}\n" for line in _imports(ast.parse(code), module))
    named = _RAISES.sub(_named_errors, _ROLE.sub(_as_code, docstring))
    return markdown(named).replace("```pycon\n", f"```pycon\n{imports}", 1)


def _named_errors(sentence: re.Match[str]) -> str:
    errors = dict.fromkeys(re.findall(r"``\w+Error``", sentence[0]))
    return f"Raises {', '.join(errors)}." if errors else sentence[0]


def _as_code(role: re.Match[str]) -> str:
    return f"``{role[1].rpartition('.')[2] if '~' in role[0] else role[1]}``"


def _imports(tree: ast.AST, module: ModuleType) -> list[str]:
    """Return the statements for what an example takes from the module of its docstring."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    bound |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    places: dict[str, set[str]] = {}
    for name in {node.id for node in names} - bound:
        if name in vars(module):
            public = (place for place in _PUBLIC if name in module_of_names(place))
            # On Python 3.13 a path is from pathlib._local.
            own = (getattr(vars(module)[name], "__module__", None) or module.__name__).split("._")[0]
            own = tasks.__name__ if own.startswith(tasks.__name__) else own
            places.setdefault(next(public, own), set()).add(name)
    return [f"from {place} import {', '.join(sorted(found))}" for place, found in sorted(places.items())]


def _prose(text: str) -> str:
    text = _ROLE.sub(_as_code, text)
    code = re.split(r"``(.+?)``", text, flags=re.DOTALL)
    # Outside of code, brackets and asterisks would be links, notes and emphasis.
    plain = (part.replace("](", "]\\(").replace("[^", "\\[^").replace("**", "\\*\\*") for part in code[::2])
    spans = (f"`{' '.join(part.split())}`" for part in code[1::2])
    return "".join(part for pair in zip(plain, [*spans, ""], strict=True) for part in pair)


def _entry(level: int, heading: str, *parts: str | None, also: Iterable[str] = ()) -> str:
    # `ragmetrics docs` finds a name in any case and with any separators.
    others = {re.sub(r"\W|_", "", name).casefold(): name for name in reversed([heading, *also])}
    names = _code(*(name for name in reversed(others.values()) if name != heading))
    return "\n\n".join(filter(None, [f"{'#' * level} {heading}", names and f"Also: {names}", *parts]))


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = (f"| {head} | {' '.join(text.split()).replace('|', chr(92) + '|')} |" for head, text in rows if text)
    return "\n".join(["| | |", "|---|---|", *lines])


def _page(title: str, summary: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", f"{_MADE}\n{summary}", *parts]) + "\n"


def _code(*words: object) -> str:
    return ", ".join(f"`{word}`" for word in words)


def signature(of: Any, *, name: str, method: bool = False) -> str:
    """Return how a function or a class is called, with one parameter a line where it is long."""
    found = inspect.signature(of)
    parameters = list(found.parameters.values())[1 if method else 0 :]
    plain = [it.replace(annotation=_annotation(it.annotation)) for it in parameters]
    returned = _annotation(found.return_annotation) if inspect.isroutine(of) else found.empty
    texts = _parameter_texts(plain)
    arrow = "" if returned is found.empty else f" -> {returned}"
    return f"```py\n{_call(name, texts)}{arrow}\n```"


def _call(name: str, texts: Sequence[str]) -> str:
    line = f"{name}({', '.join(texts)})"
    return line if len(line) <= 90 else f"{name}(\n" + "".join(f"    {text},\n" for text in texts) + ")"


def _annotation(annotation: Any) -> Any:
    if annotation is inspect.Parameter.empty:
        return annotation
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _parameter_texts(parameters: list[inspect.Parameter]) -> list[str]:
    texts: list[str] = []
    before: object = None
    for number, it in enumerate(parameters):
        starred = "*" if it.kind is it.VAR_POSITIONAL else "**" if it.kind is it.VAR_KEYWORD else ""
        if it.kind is it.KEYWORD_ONLY and before not in (it.KEYWORD_ONLY, it.VAR_POSITIONAL):
            texts.append("*")
        before = it.kind
        text = f"{starred}{it.name}" + ("" if it.annotation is it.empty else f": {it.annotation}")
        equals = "=" if it.annotation is it.empty else " = "
        texts.append(text if it.default is it.empty else f"{text}{equals}{_default(it.default)}")
        if it.kind is it.POSITIONAL_ONLY and all(other.kind is not it.kind for other in parameters[number + 1 :]):
            texts.append("/")
    return texts


def _default(value: object) -> str:
    text = repr(value)
    return "..." if " at 0x" in text else text


# Options, markers, fixtures and hooks.


def options_page() -> str:
    """Return the page of all settings."""
    return _page(
        "Options and settings",
        "Every setting by option, environment variable and ini key.",
        "Names in capitals are environment variables. In the ini (`[pytest]` in `pytest.ini`, or "
        "`[tool.pytest.ini_options]` in\n`pyproject.toml`) `--rag-max-cost` is `rag_max_cost`. Precedence: "
        "argument of the call, marker, command line, environment,\nini, default. Paths are relative to the "
        "current folder, in the ini to the rootdir. `ragmetrics doctor` shows the settings in force.",
        *(_option(option) for option in OPTIONS),
    )


def _option(option: Option) -> str:
    takes = option.extra.get("metavar", "")
    given = takes and (f"[={takes}]" if option.extra.get("nargs") == "?" else f"={takes}")
    places = (option.flag, option.environment, option.name if option.in_ini else None)
    name, *others = (place for place in places if place)
    only = "" if option.in_ini or not option.flag else " Not in the ini."
    default = f"; default {_code(option.default)}" if option.default and "default" not in option.help else ""
    return _entry(
        2, _code(name), option.help, f"`{option.flag}{given}`{default}.{only}" if given else only.strip(), also=others
    )


def pytest_page() -> str:
    """Return the page of the markers, fixtures and hooks."""
    markers: dict[str, list[str]] = {}
    for line in plugin.MARKERS:
        markers.setdefault(line.partition("(")[0], []).append(line)
    return _page(
        "Markers, fixtures and hooks",
        "What the plugin adds to pytest besides its options.",
        "`-p ragmetrics` loads the plugin if autoloading is off, `-p no:ragmetrics` disables it (its hooks in a "
        "`conftest.py` then need\n`@pytest.hookimpl(optionalhook=True)`). It has no autouse fixture, and sends data "
        "only to the judge, the embedder and a shared\ncache that you name.",
        "## Markers",
        *(_entry(3, _code(name), *(_marker(line) for line in lines)) for name, lines in markers.items()),
        "## Fixtures",
        *(_entry(3, _code(name), markdown(text)) for name, text in fixtures().items()),
        "## Hooks",
        *(_entry(3, _code(name), signature(hook, name=name), described(hook)) for name, hook in hooks()),
    )


def _marker(line: str) -> str:
    usage, _, text = line.rpartition("): ")
    return f"`{usage})`: {text}"


def fixtures() -> dict[str, str]:
    """Return the docstring of each fixture by its name."""
    found = {}
    for node in ast.parse(Path(plugin.__file__).read_text("utf-8")).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.fixture":
                named = {word.arg: ast.literal_eval(word.value) for word in decorator.keywords}
                found[named["name"]] = ast.get_docstring(node) or ""
    return found


def hooks() -> list[tuple[str, Any]]:
    """Return the hooks by name."""
    return [(name, hook) for name, hook in vars(hookspec).items() if name.startswith("pytest_ragmetrics_")]


# Metrics and tasks.


def metrics_page() -> str:
    """Return the page of all metrics."""
    return _page(
        "Metrics",
        "Each metric: when to use it, its formula, inputs, cost, parameters and what it cannot see.",
        "A metric is used by its name in `metrics=[...]`, `assert_sample(row, NAME=bound)` and the markers, by its "
        "helper in a test, or as a\nclass of `pytest_ragmetrics.metrics`: `Faithfulness().score(response=..., "
        "retrieved_contexts=[...])`. The name is the class's in\nsmall letters: `context_recall` of `ContextRecall`.",
        "- Scores are from 0 to 1 and higher is better, unless the entry says otherwise. A score with nothing to check "
        "is `vacuous`: means,\n  rates and gates leave it out.\n"
        "- Every metric takes `name=`, every judged one `judge=` and `embedder=`. A helper takes the parameters of "
        "its\n  metric, and a judged one `votes=`.\n"
        f"- `asks` is the cost of a sample with {_CONTEXTS} contexts of {_SIZE} characters without a cache: requests "
        f"to the judge, and\n  prompt tokens of {_CHARACTERS_A_TOKEN} characters. Metrics without it ask no model.\n"
        "- `if_empty` is the score of a sample with no claim, entity, question or topic to judge. By default it is "
        "unscored:\n  `UnscoredError`.\n"
        "- `ragas_score` (`assert_ragas_score`) is the harmonic mean of several metrics.",
        *(_metric(kind) for kind in built_in_metrics()),
    )


@lru_cache(maxsize=1)
def asked() -> dict[str, list[str]]:
    """Return by name whom each metric asks."""
    return {each["name"]: each["asks"] for each in json.loads("\n".join(metrics_json()))["metrics"]}


def _metric(kind: type[Metric]) -> str:
    helper = helper_of(kind)
    is_made = "__signature__" in vars(helper)
    also = [kind.name, *other_names(kind), *vars(kind).get("aliases", ())]
    first, use, rest = _parts(kind)
    # An aspect of the table of aspects.
    if (parent := kind.__base__) in built_in_metrics() and ">>>" not in (kind.__doc__ or ""):
        rows = [row for row in _facts(kind) if row not in _facts(parent)]
        shared = f"Otherwise as `{parent.__name__}`."
        return _entry(2, kind.__name__, first, use, _listed_facts(rows), shared, also=also)
    note = described(helper).partition("\n\n")[2].partition("Parameters and errors")[0].strip() if is_made else None
    return _entry(
        2, kind.__name__, first, use, _calls(kind, helper), _listed_facts(_facts(kind)), rest, note, also=also
    )


def _parts(kind: type[Metric]) -> tuple[str, str, str]:
    """Return what a metric is, when to use it, and the rest of its docstring."""
    first, _, rest = described(kind).partition("\n\n")
    use = SENTENCE_END.split(rest, maxsplit=1)[0]
    begun, _, others = rest[len(use) :].strip().partition("\n\n")
    begun = begun if begun.startswith("```") else textwrap.fill(begun, 120, break_long_words=False)
    return first, use, "\n\n".join(filter(None, [begun, others]))


def _calls(kind: type[Metric], helper: Any) -> str:
    """Return how the class and the helper are called; the helper has the parameters of the class too."""
    own = [it for it in inspect.signature(kind).parameters.values() if it.name not in ("name", "judge", "embedder")]
    others = {"votes", "judge", "embedder", *(it.name for it in own)}
    taken = [
        it
        for it in inspect.signature(helper).parameters.values()
        if it.name not in others or it.kind is not it.KEYWORD_ONLY
    ]
    texts = (_parameter_texts([it.replace(annotation=it.empty) for it in each]) for each in (own, taken))
    made, asserted = map(_call, (kind.__name__, helper.__name__), texts)
    fields = ", ".join(f"{name}=..." for name in kind.requires) or "..."
    more = f"  # takes {', '.join(kind.extra_inputs)}" if kind.extra_inputs else ""
    return f"```py\n{made}\nscore({fields}){more}\n{asserted}\n```"


def _listed_facts(facts: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- {head}: {text}" for head, text in facts if text)


def _facts(kind: type[Metric]) -> list[tuple[str, str]]:
    usual = kind.scale == (0.0, 1.0) and (kind.better == "higher" or "lower is better" in (kind.__doc__ or ""))
    return [
        ("asks", _asks(kind)),
        ("score", "" if usual else f"{kind.scale[0]:g} to {kind.scale[1]:g}, {kind.better} is better"),
        ("cannot see", kind.blind_spots),
    ]


def _asks(kind: type[Metric]) -> str:
    if not issubclass(kind, JudgedMetric):
        return ""
    if kind not in costs():
        return "an embedder"
    calls, tokens = costs()[kind]
    requests = "1 request" if calls == 1 else f"{calls} requests{_rounds(kind.rounds)}"
    embedder = ", an embedder" if "embedder" in asked()[kind.name] else ""
    return f"{requests}, {tokens:,} tokens{embedder}"


def _rounds(rounds: int) -> str:
    return "" if rounds == 1 else f", {rounds} rounds"


@lru_cache(maxsize=1)
def costs() -> dict[type[Metric], tuple[int, int]]:
    """Return the requests and the prompt tokens, to the nearest hundred, of each metric that asks a judge."""
    from tests.benchmarks.tokens import Meter, asked_of, judged

    meter = Meter(lambda text: len(text) // _CHARACTERS_A_TOKEN)
    found: dict[type[Metric], tuple[int, int]] = {}
    for metric in judged():
        asking = metric.asking(judge=meter, embedder="local")
        usage = asking.score_sample(asked_of([metric], 1, _CONTEXTS, _SIZE)).usage
        found[type(metric)] = usage.calls, round(usage.prompt_tokens, -2)
    return found


def tasks_page() -> str:
    """Return the page of the tasks of a judge."""
    kinds = [kind for kind in _classes(tasks) if issubclass(kind, Task) and kind is not Task]
    others = [kind for kind in _classes(tasks) if not issubclass(kind, Task)]
    return _page(
        "Tasks of a judge",
        "What a metric of your own can ask a judge with `await ask(task)`, and what each task returns.",
        "Tasks are imported from `pytest_ragmetrics.judges.tasks`. An answer that does not fit (unknown items, "
        "sentences that do not exist)\nis requested again; then the sample is unscored. The prompt of `ListClaims` is "
        "`list_claims.md` in the folder of the ini key\n`rag_prompts`, else that of this package; `$name` in it is one "
        "of the task's places.",
        "## Tasks",
        *(_task(kind) for kind in kinds),
        "## Values",
        *(_class(kind, level=3) for kind in [*others, Task]),
    )


def _classes(module: ModuleType) -> list[type[Any]]:
    return [value for name, value in vars(module).items() if isinstance(value, type) and not name.startswith("_")]


def _task(kind: type[Task[Any]]) -> str:
    base = next(base for cls in kind.__mro__ for base in getattr(cls, "__orig_bases__", ()) if get_args(base))
    answer = get_args(base)[0]
    returned = re.sub(r"pytest_ragmetrics\.[\w.]+\.", "", answer.__name__ if type(answer) is type else str(answer))
    call = signature(kind, name=kind.__name__).replace("\n```", f" -> {returned}\n```", 1)
    places = f"Places: {_code(*kind.filled)}." if kind.filled else None
    return _entry(3, _code(kind.__name__), described(kind), call, places)


# Public names and commands.


def api_page() -> str:
    """Return the page of the public names."""
    own = {name: getattr(pytest_ragmetrics, name) for name in module_of_names(pytest_ragmetrics.__name__)}
    listed = {name for kind in built_in_metrics() for name in (kind.__name__, *other_names(kind))}
    more = {name: getattr(metrics, name) for name in module_of_names(metrics.__name__) if name not in listed}
    helpers = {name: value for name, value in own.items() if name.startswith("assert_")}
    of_metrics = {name for name, value in helpers.items() if "__signature__" in vars(value)}
    errors = {name: value for name, value in own.items() if isinstance(value, type) and issubclass(value, Exception)}
    others = {name: value for name, value in own.items() if name not in {*helpers, *errors}}
    return _page(
        "Public names",
        "Every function and class to import from `pytest_ragmetrics` and `pytest_ragmetrics.metrics`.",
        "The classes of the single metrics, and the assertion helper of each, are in [Metrics](metrics.md).",
        "A failing assertion raises `AssertionError` with the figures and the worst rows. `UnscoredError`: there is no "
        "score, or\nnothing to check; `skip_unscored=True` leaves such rows out. `ValueError` and `TypeError` name the "
        "parameter or field that is\nwrong, before any request. `help(NAME)` says when each error is raised.",
        "## Assertions",
        *(_name(name, value) for name, value in sorted(helpers.items()) if name not in of_metrics),
        "## Errors",
        "[Troubleshooting](../how-to/troubleshooting.md) has their messages.",
        *(_class(value, level=3) for value in errors.values()),
        "## Values and functions",
        *(_name(name, value) for name, value in others.items()),
        "## In `pytest_ragmetrics.metrics`",
        *(_name(name, value) for name, value in more.items()),
    )


def _name(name: str, value: Any) -> str:
    if isinstance(value, type):
        return _class(value, level=3)
    if callable(value):
        return _entry(3, _code(name), signature(value, name=name), described(value))
    return _entry(3, _code(name), f"`{value}`")


def _class(kind: Any, *, level: int) -> str:
    title = kind.__name__
    call = None if issubclass(kind, Exception) else signature(kind, name=title)
    parts = [call, described(kind)]
    if is_dataclass(kind):
        listed = "".join(f"\n    {it.name}: {it.type}" for it in fields(kind))
        parts[0] = f"```py\n{title}:{listed}\n```"
    methods = {
        name: value.__func__ if isinstance(value, classmethod) else value
        for name, value in vars(kind).items()
        if (not name.startswith("_") or name == "__call__")
        and name not in _INTERNAL
        and not any(hasattr(base, name) for base in kind.__mro__[1:] if base.__module__.startswith("pytest_"))
        and (inspect.isfunction(value) or isinstance(value, (classmethod, property)))
    }
    for name, value in methods.items():
        text = described(value)
        shown = f"`{title}.{name}`"
        how = None if isinstance(value, property) else signature(value, name=name, method=True)
        parts.append(_entry(level + 1, shown, how, text))
    return _entry(level, _code(title), *parts)


def json_page() -> str:
    """Return the page of the values in the files of ``--rag-json``."""
    kinds = [kind for kind in _classes(records) if kind.__module__ == records.__name__ and is_dataclass(kind)]
    return _page(
        "JSON of a run",
        "Every field of the files of `--rag-json`, and of the record that `pytest_ragmetrics_result` receives.",
        "A file is a `Document`; a `record` of the hook is a `Record` in JSON builtins. `Verdict`, `Evidence`, "
        "`Nearest` and `Usage`\nare among the [public names](api.md). `ragmetrics report schema` prints the schema.",
        *(_class(kind, level=2) for kind in reversed(kinds)),
    )


def commands_page() -> str:
    """Return the page of the commands; what several take is described once."""
    every = Counter(row for _, command in commands() for row in _rows(command))
    common = {row for row, number in every.items() if number > 1}
    return _page(
        "Commands",
        "The commands of `ragmetrics`, which is also `python -m pytest_ragmetrics`.",
        "A command exits with 0, with 1 after an error or a failed check, with 2 for wrong arguments, and with 130 "
        "after Ctrl-C.\n`-o` is also `--output`. Several commands take these:",
        _table(row for row in every if row in common),
        *(_command(name, command, common) for name, command in commands()),
    )


def commands(of: click.Group = cli.COMMANDS, before: str = "ragmetrics") -> Iterator[tuple[str, click.Command]]:
    """Yield the commands with those that they contain, each after its name."""
    for name, listed in of.commands.items():
        command = cli.load(name) if of is cli.COMMANDS else listed
        yield f"{before} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{before} {name}")


def _rows(command: click.Command) -> list[tuple[str, str]]:
    """Return the arguments and options of a command with their texts."""
    taken = (it for it in command.params if isinstance(it, Argument | click.Option))
    return [(_argument(it), (it.help or "").replace(JUDGES, "as `--rag-judge`")) for it in taken]


def _command(name: str, command: click.Command, common: set[tuple[str, str]]) -> str:
    rows = [row for row in _rows(command) if row not in common]
    shared = ", ".join(f"{row[0].partition(' ')[0].rstrip('`,')}`" for row in _rows(command) if row in common)
    table, takes = _table(rows) if rows else None, f"{'Also takes' if rows else 'Takes'} {shared}." if shared else None
    return _entry(2, _code(name), command.help, table, takes)


def _argument(param: Argument | click.Option) -> str:
    choices = param.type.choices if isinstance(param.type, click.Choice) else ()
    value = (param.metavar or "|".join(choices) or str(param.name).upper()).replace("|", "\\|")
    if isinstance(param, Argument):
        return _code(value)
    return _code(*(name if param.is_flag else f"{name} {value}" for name in param.opts if name != "--output"))


# Lists of topics.

_INTRODUCTION = """\
**pytest-ragmetrics** tests the answer quality of a RAG application (retrieval-augmented generation: a model answers
from retrieved passages) in your pytest suite. A failure shows which quotation, claim or passage is wrong:

![The terminal: a quotation that is not found, the nearest passage, and the word that differs](images/terminal.png)

Begin with the [tutorial](tutorial.md). `ragmetrics docs` shows these pages in the terminal, and `ragmetrics docs NAME`
the entry of a metric, an option, a marker, a fixture, a hook, a command or a function.
"""
SITE = Path(__file__).parent.parent / ".zensical.yml"


def index_page(every: Iterable[Page]) -> str:
    """Return the first page of the site: every page by section."""
    return f"# pytest-ragmetrics\n\n{_MADE}\n{_INTRODUCTION}\n{_listed(every, '- [{it.title}]({it.topic}.md)')}"


def llms_text(every: Iterable[Page]) -> str:
    """Return the list of the pages for language models."""
    summary = "> A pytest plugin that tests the answer quality of RAG applications, with the evidence in the failure."
    return f"# pytest-ragmetrics\n\n{summary}\n\n{_listed(every, '- [{it.title}]({it.topic}.md): {it.summary}')}"


def _listed(every: Iterable[Page], form: str) -> str:
    """Return the pages in the sections of the site; a page that is in none of them is an error."""
    unlisted = {f"{it.topic}.md": f"{form.format(it=it)}\n" for it in every}
    sections = (each for each in yaml.safe_load(SITE.read_text("utf-8"))["nav"] if isinstance(each, dict))
    listed = {title: [unlisted.pop(file) for file in files] for it in sections for title, files in it.items()}
    assert not unlisted, f"name {', '.join(unlisted)} in the nav of {SITE.name}"
    return "\n".join(f"## {title}\n\n{''.join(lines)}" for title, lines in listed.items())


def reference() -> dict[str, str]:
    """Return every page that is made of the code alone, by its path in the package."""
    return {
        "docs/reference/options.md": options_page(),
        "docs/reference/pytest.md": pytest_page(),
        "docs/reference/metrics.md": metrics_page(),
        "docs/reference/tasks.md": tasks_page(),
        "docs/reference/api.md": api_page(),
        "docs/reference/json.md": json_page(),
        "docs/reference/commands.md": commands_page(),
    }


def lists() -> dict[str, str]:
    """Return the lists of all pages that are there, by their paths."""
    every = pages()
    return {"docs/index.md": index_page(every), "docs/llms.txt": llms_text(every)}


#: What is made: the stubs before the pages, which list what the stubs have.
MADE = (stubs, reference, lists)


def main() -> None:
    """Write all of them."""
    for make in MADE:
        stale = {place: text for place, text in make().items() if (PACKAGE / place).read_text("utf-8") != text}
        for place, text in stale.items():
            (PACKAGE / place).write_text(text, "utf-8")
        if stale and make is stubs:
            # The package has read them when it was imported.
            os.execv(sys.executable, [sys.executable, *sys.argv])


if __name__ == "__main__":
    main()
