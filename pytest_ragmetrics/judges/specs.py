"""Specs of judges (``--rag-judge``): checks their text and makes the judge.

A run whose options name a judge checks the text at its start, so that nothing is imported here that asks one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_ragmetrics.core import running
from pytest_ragmetrics.core.errors import JudgeNotConfiguredError, RagMetricsError
from pytest_ragmetrics.judges.providers.vendor import VENDORS, bare, parameters_of, vendor_of

if TYPE_CHECKING:
    from pytest_ragmetrics.judges.judge import Judge
    from pytest_ragmetrics.judges.rendering import PromptBook

T = TypeVar("T")
# Where servers that are often named in place of a module take the requests of OpenAI's API.
_ADDRESSES = {
    **dict.fromkeys(("gemini", "google"), "https://generativelanguage.googleapis.com/v1beta/openai/"),
    "vertex": "https://LOCATION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/LOCATION/endpoints/openapi",
    "azure": "https://RESOURCE.openai.azure.com/openai/v1/",
    "bedrock": "https://bedrock-mantle.REGION.api.aws/v1",
    "mistral": "https://api.mistral.ai/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "litellm": "http://localhost:4000",
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
    **dict.fromkeys(("lmstudio", "lm_studio"), "http://localhost:1234/v1"),
    **dict.fromkeys(("llamacpp", "llama_cpp"), "http://localhost:8080/v1"),
}

#: What the spec of a panel begins with.
PANEL = "panel:"
_KINDS = (*(f"{name}:" for name in VENDORS), "nli:")

_FACTORY = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def is_factory(spec: str) -> bool:
    """Return whether a spec has the form of a factory's.

    >>> is_factory("house.models:Judge.strict"), is_factory("house judge")
    (True, False)
    """
    return _FACTORY.fullmatch(spec) is not None


def names_module(spec: str) -> bool:
    """Tell whether the spec of a judge, of one in a panel or of an embedder is a ``MODULE:FACTORY``.

    >>> names_module("panel:openai:gpt-5.4-mini,house:judge"), names_module("openai:o3")
    (True, False)
    """
    each = (text.strip() for text in spec.removeprefix(PANEL).split(","))
    return any(is_factory(one) and not one.startswith(_KINDS) for one in each)


def made_by(spec: str, read: Callable[[Any], T], *, noun: str) -> T:
    """Return ``read(factory())``; raise ``JudgeNotConfiguredError`` naming the ``noun`` if either fails."""
    module, _, factory = spec.partition(":")
    try:
        return read(attrgetter(factory)(import_module(module))())
    except RagMetricsError:
        raise
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
        if isinstance(error, (AttributeError, ModuleNotFoundError)):
            fault = provider_advice(spec) or fault
        raise JudgeNotConfiguredError(f"{spec} makes no {noun}: {fault}") from error


def provider_advice(spec: str) -> str | None:
    """Return what to write for a spec with the name of a provider or of a model of one, ``None`` for another."""
    spec = spec.strip()
    if spec.lower() in VENDORS:
        return f"write {spec.lower()}:MODEL"
    for name, vendor in VENDORS.items():
        if found := re.fullmatch(rf"(?i:(?:{name}[:/])?({vendor.models}))", spec):
            return f"write {name}:{found[1]}"
    provider, _, model = spec.partition(":")
    if provider.lower() == "claude" and model:
        return f"write anthropic:{model}"
    if model and (url := _ADDRESSES.get(provider.lower())):
        return f"set OPENAI_BASE_URL={url} and OPENAI_API_KEY to its key, and write openai:{model}"
    from difflib import get_close_matches  # not at start-up

    near = get_close_matches(provider.lower(), VENDORS, 1, cutoff=0.8) if model else []
    return f"did you mean {near[0]}:{model}?" if near else None


#: Why ``auto`` stands for its models: a test compares them with the price list. Dearer models judge better; what a
#: suite needs is told by ``ragmetrics calibrate``.
DEFAULT_REASON = "no newer model of the provider costs less"

_PROVIDED = re.compile(rf"(?:{'|'.join(VENDORS)}):[^\s?]+|nli:\s*\S.*")


def check_spec(spec: str) -> str:
    """Return the spec of a judge without outer white space; raise ``ValueError`` for another text.

    >>> check_spec("openai:gpt-5.4-mini"), check_spec("openai:qwen3:8b?max_tokens=800&temperature=0.2")
    ('openai:gpt-5.4-mini', 'openai:qwen3:8b?max_tokens=800&temperature=0.2')
    """
    spec = spec.strip()
    if vendor_of(spec) and "?" in spec:
        parameters_of(spec)
        check_spec(spec.partition("?")[0])
        return spec
    if members := panel_members(spec):
        return f"{PANEL}{','.join(members)}"
    if spec in ("auto", "local") or _PROVIDED.fullmatch(spec):
        return spec
    if not spec.startswith(_KINDS) and is_factory(spec):
        return spec
    models = ", ".join(f"{name}:MODEL" for name in VENDORS)
    forms = f"auto, local, {models}, nli:MODEL_OR_FOLDER, MODULE:FACTORY, panel:SPEC,SPEC,SPEC"
    raise ValueError(no_spec(spec, forms, provider_advice(spec)))


def no_spec(spec: str, forms: str, advice: str | None) -> str:
    """Return the message for a text that is no spec, in which a key in its place is masked."""
    from pytest_ragmetrics.core.credentials import masked  # not at start-up

    return masked(f"{spec!r} is not one of {forms}" + (f"; {advice}" if advice else ""))


def panel_members(spec: str, check: Callable[[str], str] = check_spec) -> list[str]:
    """Return the specs of the judges of a panel, each through ``check``; none if the spec is that of one judge.

    Raises ``ValueError`` naming the place of a spec that is none, of another panel, of ``auto`` and of a repeated one.

    >>> panel_members("panel: openai:gpt-5.4-mini, anthropic:claude-haiku-5-5, local")
    ['openai:gpt-5.4-mini', 'anthropic:claude-haiku-5-5', 'local']
    """
    if not spec.startswith(PANEL):
        return []
    texts = [text.strip() for text in spec.removeprefix(PANEL).split(",")]
    members: list[str] = []
    for number, text in enumerate(texts, start=1):
        place = f"{spec!r}, judge {number}"
        if text.startswith(PANEL) or text in ("", "auto"):
            what = "nothing" if not text else "a panel" if text != "auto" else "auto"
            raise ValueError(f"{place}: {what} cannot be a judge of a panel; name a judge, such as openai:MODEL")
        try:
            member = check(text)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error
        if any(bare(member) == bare(other) for other in members):
            msg = f"{place}: {member} is in the panel twice, and its answers would count twice; name another judge"
            raise ValueError(msg)
        members.append(member)
    if len(members) == 1:
        msg = f"{spec!r} is a panel of one judge: write {members[0]}, or name two or more, separated by commas"
        raise ValueError(msg)
    return members


def make_judge(spec: str, *, timeout: float = 60, retries: int = 5, prompts: PromptBook | None = None) -> Judge:
    """Return the judge of a spec.

    Raises ``ValueError`` for another text, and ``JudgeNotConfiguredError`` if ``auto`` finds no key or a factory makes
    no judge. A missing key of an explicit spec is an error of the first request: replaying needs none.
    """
    spec = check_spec(spec)
    if members := panel_members(spec):
        from pytest_ragmetrics.judges.panel import Panel

        return Panel(make_judge(member, timeout=timeout, retries=retries, prompts=prompts) for member in members)
    spec = meant_by(spec)
    provider, _, model = spec.partition(":")
    if vendor := VENDORS.get(provider):
        from pytest_ragmetrics.judges.providers.connection import STEADY, VARIED

        given = parameters_of(spec) if "?" in spec else {}
        options: dict[str, Any] = {"timeout": timeout, "retries": retries, "prompts": prompts}
        made = vendor.kind("judge")(model.partition("?")[0], parameters={**STEADY, **given}, **options)
        made.varied = {} if "temperature" in given else dict(VARIED)
        judge: Judge = made
        return judge
    if provider == "nli":
        from pytest_ragmetrics.judges.nli import NliJudge

        return NliJudge(model.strip())
    if provider == "local":
        from pytest_ragmetrics.judges.local import LocalJudge

        return LocalJudge()
    from pytest_ragmetrics.judges.judge import as_judge

    return made_by(spec, lambda made: as_judge(made, name=spec, prompts=prompts), noun="judge")


def meant_by(spec: str, noun: str = "judge") -> str:
    """Return the spec that ``auto`` stands for in this environment, another one as it is.

    Raises ``JudgeNotConfiguredError`` where no provider of such a ``noun`` is set up.
    """
    if spec != "auto":
        return spec
    vendors = [vendor for vendor in VENDORS.values() if noun in vendor.auto]
    for vendor in vendors:
        if vendor.is_set_up:
            return vendor.auto[noun]
    *others, last = (variable for vendor in vendors for variable in vendor.variables)
    ways = (
        f'name one with {noun}="openai:MODEL", or --{noun} of a command; or use the heuristic {noun}="local"'
        if running.innermost() is None
        else "replay what was recorded (--rag-cache=replay with --rag-cassette=FILE); or use the built-in heuristic "
        f"(--rag-{noun}=local)"
    )
    raise JudgeNotConfiguredError(
        f"this metric needs {'an' if noun[0] in 'aeiou' else 'a'} {noun}, and none is configured. Three ways on: "
        f"set {', '.join(others)} or {last}; {ways}"
    )
