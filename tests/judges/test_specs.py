"""From the text of a setting to a judge, or to words that say what is missing."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from pytest_ragmetrics.errors import JudgeNotConfiguredError
from pytest_ragmetrics.judges.anthropic import AnthropicJudge
from pytest_ragmetrics.judges.judge import CustomJudge, Judge
from pytest_ragmetrics.judges.openai import OpenAIJudge
from pytest_ragmetrics.judges.rendering import PromptBook
from pytest_ragmetrics.judges.specs import check_spec, make_judge


def install(monkeypatch: pytest.MonkeyPatch, **names: Any) -> None:
    """Make a module ``house.judges`` with these names."""
    module = ModuleType("house.judges")
    vars(module).update(names)
    monkeypatch.setitem(sys.modules, "house", ModuleType("house"))
    monkeypatch.setitem(sys.modules, "house.judges", module)


@pytest.mark.parametrize(
    ("spec", "kind", "name"),
    [
        ("openai:gpt-5.4-mini", OpenAIJudge, "openai:gpt-5.4-mini"),
        (" openai:org/model:tag ", OpenAIJudge, "openai:org/model:tag"),
        ("anthropic:claude-haiku-5-5", AnthropicJudge, "anthropic:claude-haiku-5-5"),
    ],
)
def test_providers(spec: str, kind: type[Judge], name: str) -> None:
    """A provider and its model make a judge, for which no key is needed before it is asked."""
    judge = make_judge(spec)
    assert type(judge) is kind
    assert judge.name == name


def test_the_settings_reach_the_judge() -> None:
    """Timeout, retries and prompts are handed on."""
    prompts = PromptBook()
    judge = make_judge("openai:m", timeout=7, retries=3, prompts=prompts)
    assert isinstance(judge, OpenAIJudge)
    assert judge.prompts is prompts
    assert (judge._connection._timeout, judge._connection._retries) == (7, 3)


def test_local() -> None:
    """The built-in heuristic says in its name what it is."""
    assert make_judge("local").name == "local (heuristic)"


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"OPENAI_API_KEY": "sk-1"}, "openai:"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "openai:"),
        ({"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2"}, "openai:"),
        ({"OPENAI_API_KEY": " ", "ANTHROPIC_API_KEY": "sk-2"}, "anthropic:"),
        ({"ANTHROPIC_API_KEY": "sk-2"}, "anthropic:"),
    ],
)
def test_auto_goes_by_the_keys(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], name: str) -> None:
    """OpenAI where its key or address is set, Anthropic where only its key is."""
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert make_judge("auto").name.startswith(name)


def test_auto_without_a_key_names_the_three_ways_on() -> None:
    """No heuristic stands in for a model in silence: the error says how to go on."""
    with pytest.raises(JudgeNotConfiguredError) as failed:
        make_judge("auto")
    for way in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "--rag-cache=replay", "--rag-cassette", "--rag-judge=local"):
        assert way in str(failed.value)


def test_a_factory_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the factory returns is asked: a judge as it is, anything else under the name of the spec."""
    own = OpenAIJudge("m")
    install(monkeypatch, make=lambda: own, simple=lambda: str.lower, Shelf=type("Shelf", (), {"make": lambda: own}))
    assert make_judge("house.judges:make") is own
    assert make_judge("house.judges:Shelf.make") is own
    judge = make_judge("house.judges:simple")
    assert isinstance(judge, CustomJudge)
    assert judge.name == "house.judges:simple"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("house.nowhere:make", "ModuleNotFoundError: No module named 'house.nowhere'"),
        ("house.judges:nothing", "AttributeError"),
        ("house.judges:three", "TypeError: a judge is an object with complete"),
        ("house.judges:needy", r"TypeError: .*missing 1 required positional argument"),
        ("house.judges:NUMBER", "TypeError: 'int' object is not callable"),
    ],
)
def test_a_factory_that_makes_no_judge(monkeypatch: pytest.MonkeyPatch, spec: str, problem: str) -> None:
    """The error names the spec and what went wrong with it."""

    def needy(prompt: str) -> str:
        return prompt

    install(monkeypatch, three=lambda: 3, needy=needy, NUMBER=3)
    with pytest.raises(JudgeNotConfiguredError, match=f"{spec} makes no judge: {problem}"):
        make_judge(spec)


def test_what_a_factory_says_for_itself_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A factory that knows what is missing says it in its own words."""

    def make() -> Judge:
        msg = "set HOUSE_TOKEN"
        raise JudgeNotConfiguredError(msg)

    install(monkeypatch, make=make)
    with pytest.raises(JudgeNotConfiguredError, match=r"^set HOUSE_TOKEN$"):
        make_judge("house.judges:make")


SLIPS = ("", "gpt-5.4-mini", "openai", "openai:", "openai: ", "anthropic:", "nli:", "nli: ")


@pytest.mark.parametrize("spec", [*SLIPS, "a b:c", "m:", ":f", "m.:f", "1m:f"])
def test_what_is_no_spec(spec: str) -> None:
    """Anything else is refused before a test runs, with the forms that there are."""
    forms = "is none of auto, local, openai:MODEL, anthropic:MODEL, nli:MODEL_OR_FOLDER, MODULE:FACTORY"
    with pytest.raises(ValueError, match=forms):
        check_spec(spec)
