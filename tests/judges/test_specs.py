"""Specs of judges and embedders: what each makes, and the errors of those that make none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import pytest

from pytest_ragmetrics.core import running
from pytest_ragmetrics.core.errors import JudgeNotConfiguredError
from pytest_ragmetrics.judges.embedders.embedder import CustomEmbedder
from pytest_ragmetrics.judges.embedders.local import LocalEmbedder, SentenceTransformersEmbedder
from pytest_ragmetrics.judges.embedders.openai import OpenAIEmbedder
from pytest_ragmetrics.judges.embedders.specs import check_embedder_spec, make_embedder
from pytest_ragmetrics.judges.judge import CustomJudge, Judge
from pytest_ragmetrics.judges.local import LocalJudge
from pytest_ragmetrics.judges.panel import Panel
from pytest_ragmetrics.judges.providers.anthropic import AnthropicJudge
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from pytest_ragmetrics.judges.rendering import PromptBook
from pytest_ragmetrics.judges.specs import check_spec, make_judge

OWN = OpenAIJudge("m")
CUSTOM: tuple[tuple[Any, type], ...] = (make_judge, CustomJudge), (make_embedder, CustomEmbedder)


def needy(prompt: str) -> str:
    return prompt


def unready() -> Judge:
    raise JudgeNotConfiguredError("set HOUSE_TOKEN")


@pytest.fixture(autouse=True)
def _house(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a module ``house.judges`` with factories."""
    shelf = type("Shelf", (), {"make": lambda: OWN})
    named = type("Versioned", (), {"name": "large-2", "__call__": needy})
    names = {"make": lambda: OWN, "simple": lambda: str.lower, "Shelf": shelf, "three": lambda: 3, "NUMBER": 3}
    module = ModuleType("house.judges")
    vars(module).update(names, versioned=named, needy=needy, unready=unready)
    monkeypatch.setitem(sys.modules, "house", ModuleType("house"))
    monkeypatch.setitem(sys.modules, "house.judges", module)


@pytest.mark.parametrize(
    ("make", "spec", "kind", "name"),
    [
        (make_judge, " openai:org/model:tag ", OpenAIJudge, "openai:org/model:tag"),
        (make_judge, "anthropic:claude-haiku-5-5", AnthropicJudge, "anthropic:claude-haiku-5-5"),
        (make_judge, "local", LocalJudge, "local (heuristic)"),
        (make_judge, "house.judges:Shelf.make", OpenAIJudge, "openai:m"),
        *((make, "house.judges:simple", kind, "house.judges:simple") for make, kind in CUSTOM),
        *((make, "house.judges:versioned", kind, "house.judges:versioned:large-2") for make, kind in CUSTOM),
        (make_embedder, " local ", LocalEmbedder, "local (heuristic)"),
        (make_embedder, "openai:m", OpenAIEmbedder, "openai:m"),
        (make_embedder, "sentence-transformers:a b/m", SentenceTransformersEmbedder, "sentence-transformers:a b/m"),
        (make_embedder, f"{LocalEmbedder.__module__}:LocalEmbedder", LocalEmbedder, "local (heuristic)"),
    ],
)
def test_a_spec_makes_its_kind(make: Callable[[str], Any], spec: str, kind: type, name: str) -> None:
    made = make(spec)
    assert (type(made), made.name) == (kind, name)


def test_what_a_factory_makes_and_settings_are_passed_on() -> None:
    assert make_judge("house.judges:make") is OWN
    prompts = PromptBook()
    judge = make_judge("openai:m", timeout=7, retries=3, prompts=prompts)
    assert isinstance(judge, OpenAIJudge)
    assert (judge.prompts, judge._connection._timeout, judge._connection._retries) == (prompts, 7, 3)


@pytest.mark.parametrize(
    ("make", "variables", "name"),
    [
        *((make, {"OPENAI_API_KEY": "sk-1"}, "openai:") for make, _ in CUSTOM),
        *((make, {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "openai:") for make, _ in CUSTOM),
        (make_judge, {"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2"}, "openai:"),
        (make_judge, {"OPENAI_API_KEY": " ", "ANTHROPIC_API_KEY": "sk-2"}, "anthropic:"),
    ],
)
def test_auto_goes_by_the_keys(monkeypatch: pytest.MonkeyPatch, make: Any, variables: Any, name: str) -> None:
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert make("auto").name.startswith(name)


@pytest.mark.parametrize("in_pytest", [False, True])
@pytest.mark.parametrize(
    ("make", "keys", "name"), [(make_judge, ".*ANTHROPIC_API_KEY", "judge"), (make_embedder, "", "embedder")]
)
def test_auto_without_a_key_names_the_three_ways_on(make: Any, keys: str, name: str, *, in_pytest: bool) -> None:
    ways = f'{name}="openai:MODEL", or --{name} .*{name}="local"$'
    with ExitStack() as stack:
        if in_pytest:
            ways = f"--rag-cache=replay.*--rag-cassette.*--rag-{name}=local"
            running.enter(ways)
            stack.callback(running.leave, ways)
        with pytest.raises(JudgeNotConfiguredError, match=f"OPENAI_API_KEY{keys}.*{ways}") as caught:
            make("auto")
    assert ("--rag" in str(caught.value)) is in_pytest


@pytest.mark.parametrize(
    ("make", "spec", "problem"),
    [
        (make_judge, "house.nowhere:make", "ModuleNotFoundError: No module named 'house.nowhere'"),
        (make_judge, "house.judges:nothing", "AttributeError"),
        (make_judge, "gemini:flash", "set OPENAI_BASE_URL=https://generativelanguage.* and write openai:flash"),
        (make_embedder, "mistral:embed", "set OPENAI_BASE_URL=https://api.mistral.ai/v1 .* and write openai:embed"),
        (make_judge, "opnai:judge", r"did you mean openai:judge\?$"),
        (make_judge, "claude:haiku", "write anthropic:haiku"),
        (make_judge, "house.judges:three", "TypeError: a judge is a spec such as"),
        (make_judge, "house.judges:needy", r"TypeError: .*missing 1 required positional argument"),
        (make_judge, "house.judges:NUMBER", "TypeError: 'int' object is not callable"),
        (make_embedder, "house.judges:three", "TypeError: an embedder is a spec such as"),
    ],
)
def test_a_factory_that_makes_nothing(make: Callable[[str], Any], spec: str, problem: str) -> None:
    noun = "judge" if make is make_judge else "embedder"
    with pytest.raises(JudgeNotConfiguredError, match=f"{spec} makes no {noun}: {problem}"):
        make(spec)
    with pytest.raises(JudgeNotConfiguredError, match=r"^set HOUSE_TOKEN$"):
        make("house.judges:unready")


FORMS: dict[Callable[[str], str], str] = {
    check_spec: "is not one of auto, local, openai:MODEL, anthropic:MODEL, .*MODULE:FACTORY, panel:SPEC,SPEC,SPEC$",
    check_embedder_spec: "is not one of auto, local, openai:MODEL, sentence-transformers:FOLDER, MODULE:FACTORY",
}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("ollama:llama3.2:3b", "set OPENAI_BASE_URL=http://localhost:11434/v1 .* and write openai:llama3.2:3b$"),
        ("openai:m?", r"'openai:m\?': '' is no parameter; write openai:m\?max_tokens=800&temperature=0.2; the para"),
        ("openai:m?tier=flex", "'tier' is no parameter; .*the parameters are max_tokens, .*service_tier$"),
        ("openai:m?max_tokens", "'max_tokens' has no value"),
        ("openai:m?max_tokens=7&max_tokens=8", "'max_tokens' is there twice"),
        *((f"openai:m?max_tokens={text}", f"max_tokens is a whole number, not '{text}'") for text in ("many", "1.5")),
        *((f"openai:m?temperature={text}", f"temperature is a number, not '{text}'") for text in ("nan", "")),
        ("openai:m?reasoning_effort=a b", "reasoning_effort is a word, not 'a b'"),
        ("anthropic:m?frequency_penalty=1", "'frequency_penalty' is no parameter; .*temperature, top_p, top_k$"),
        ("openai:m?service_tier=", "service_tier is one of auto, default, flex, priority, fast, not ''"),
        ("openai:m?service_tier=Flex", "service_tier is one of auto, "),
        ("openai:m?service_tier=flex&x=1", "'x' is no parameter"),
        *((f"{spec}?service_tier=flex", "is not one of auto") for spec in ("openai:", "local")),
        ("panel:openai:m,openai:m?service_tier=flex", r"judge 2: openai:m\?service_tier=flex is in the panel twice"),
        # A model that is named as elsewhere is answered with its spec.
        *((name, "; write openai:gpt-4o$") for name in ("gpt-4o", "openai/gpt-4o", "OpenAI:gpt-4o")),
        *((model, f"; write openai:{model}$") for model in ("gpt-5", "o4-mini")),
        *((name, "; write anthropic:claude-x$") for name in ("claude-x", "anthropic/claude-x")),
        *((" OpenAI", "; write openai:MODEL$"), ("anthropic", "; write anthropic:MODEL$")),
    ],
)
def test_a_spec_with_a_fault(spec: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        check_spec(spec)


@pytest.mark.parametrize(
    ("spec", "parameters", "varied"),
    [
        ("openai:m?max_tokens=800&frequency_penalty=0.5", {"max_tokens": 800, "frequency_penalty": 0.5}, True),
        ("openai:org/m:8b?top_k=-1&reasoning_effort=low", {"top_k": -1, "reasoning_effort": "low"}, True),
        ("openai:m?temperature=0.7", {"temperature": 0.7}, False),
        ("openai:m?temperature=0.0", {}, False),
        ("anthropic:m?max_tokens=800", {"max_tokens": 800}, True),
    ],
)
def test_parameters_of_a_spec_are_those_of_its_requests(spec: str, parameters: dict[str, Any], *, varied: bool) -> None:
    made: Any = (make_judge(check_spec(spec)), make_judge(spec.partition("?")[0]))
    judge, plain = made
    assert judge.parameters == {**plain.parameters, **parameters}
    assert (judge.varied, judge.name) == (plain.varied if varied else {}, plain.name)


@pytest.mark.parametrize(
    "problem",
    [
        "max_token is no parameter; write max_tokens",
        "temprature is no parameter; write temperature",
        "messages is set by the judge; leave it out",
        "response_format is set by the judge",
    ],
)
@pytest.mark.parametrize("kind", [OpenAIJudge, AnthropicJudge])
def test_parameters_of_a_judge_are_checked_by_name(kind: Callable[..., Any], problem: str) -> None:
    """A slip would be refused by the server, and left out in silence; those of other servers are sent."""
    with pytest.raises(ValueError, match=problem):
        kind("m", parameters={problem.partition(" ")[0]: 1})
    assert kind("m", parameters={"chat_template_kwargs": {"enable_thinking": False}, "min_tokens": 4}).parameters


@pytest.mark.parametrize(
    ("check", "spec"),
    [
        *((check, spec) for check in FORMS for spec in ("", "openai:", "openai: ", "anthropic:", "a b:c", "m:", ":f")),
        *((check, "m.:f") for check in FORMS),
        *((check_spec, spec) for spec in ("nli:", "nli: ", "1m:f")),
        *((check_embedder_spec, spec) for spec in ("anthropic:claude", "sentence-transformers:", "1a:b")),
    ],
)
def test_what_is_no_spec(check: Callable[[str], str], spec: str) -> None:
    with pytest.raises(ValueError, match=FORMS[check]):
        check(spec)


def test_a_panel_is_made_of_its_judges() -> None:
    spec = check_spec(" panel: openai:m-1 ,nli: a folder,local,house.judges:simple ")
    assert spec == "panel:openai:m-1,nli: a folder,local,house.judges:simple"
    panel: Any = make_judge("panel:openai:m-1?service_tier=flex&max_tokens=80,anthropic:m-2,local", timeout=7)
    assert (type(panel), panel.name) == (Panel, "panel:openai:m-1,anthropic:m-2,local (heuristic)")
    first, second, _ = panel.judges
    assert (type(first), type(second), second._connection._timeout) == (OpenAIJudge, AnthropicJudge, 7)
    assert (first.parameters["service_tier"], first.parameters["max_tokens"]) == ("flex", 80)


@pytest.mark.parametrize(
    ("judges", "problem"),
    [
        ("", "judge 1: nothing cannot be a judge of a panel; name a judge, such as openai:MODEL$"),
        *((judges, "judge 2: nothing cannot") for judges in ("openai:m,", "openai:m, ,local")),
        ("openai:m", "'panel:openai:m' is a panel of one judge: write openai:m, or name two or more"),
        ("openai:m,opnai", "'panel:openai:m,opnai', judge 2: 'opnai' is not one of auto"),
        ("openai:m,auto", "judge 2: auto cannot"),
        ("panel:openai:m,local", "judge 1: a panel cannot"),
        ("openai:m,panel:openai:n,local", "judge 2: a panel cannot"),
        ("openai:m,local, openai:m", "judge 3: openai:m is in the panel twice"),
        ("openai:m,nli:", "judge 2: 'nli:' is not one of"),
    ],
)
def test_what_is_no_panel(judges: str, problem: str) -> None:
    for function in (check_spec, make_judge):
        with pytest.raises(ValueError, match=problem):
            function(f"panel:{judges}")


def test_two_names_of_one_judge_are_no_panel() -> None:
    with pytest.raises(JudgeNotConfiguredError, match=r"openai:m is in it twice"):
        make_judge("panel:openai:m,house.judges:make")
