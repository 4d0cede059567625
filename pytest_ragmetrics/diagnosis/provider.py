"""Whether the judge and the embedder can be asked: one request each, without retries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_ragmetrics import loop
from pytest_ragmetrics.diagnosis.sign import Sign
from pytest_ragmetrics.embedders.embedder import Embedder
from pytest_ragmetrics.embedders.specs import make_embedder
from pytest_ragmetrics.errors import RagMetricsError
from pytest_ragmetrics.judges.connection import ANTHROPIC, OPENAI, Vendor
from pytest_ragmetrics.judges.judge import Judge, PromptedJudge
from pytest_ragmetrics.judges.replies import extract_json, parse_json
from pytest_ragmetrics.judges.specs import make_judge
from pytest_ragmetrics.judges.tasks import InvalidAnswer, JudgeRefusal
from pytest_ragmetrics.text.printable import shortened

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
    """A judge or an embedder as it is chosen, and where."""

    text: str
    place: str


def key_signs(spec: Spec) -> Iterator[Sign]:
    """Yield which variables of the environment are set for the provider of a judge; no key is shown."""
    for vendor in (OPENAI, ANTHROPIC):
        if spec.text == "auto" or spec.text.startswith(f"{vendor.module}:"):
            yield Sign(topic="keys", text=f"{_key(vendor)}, {_url(vendor)}")


def judge_signs(spec: Spec, *, hooked: bool = False) -> Iterator[Sign]:
    """Yield whether the judge of a spec answers, and in what form; makes one request.

    What cannot be made here is no fault where it is ``hooked``: a hook of pytest may make it.
    """
    try:
        judge = make_judge(spec.text, timeout=_TIMEOUT, retries=0)
    except (RagMetricsError, ValueError) as error:
        yield _unmade("judge", spec, error, hooked=hooked)
        return
    try:
        yield loop.run(_examined(judge, spec))
    except RagMetricsError as error:
        yield _unmade("judge", spec, error)


def embedder_signs(spec: Spec, *, hooked: bool = False) -> Iterator[Sign]:
    """Yield of an embedder what :func:`judge_signs` yields of a judge."""
    try:
        embedder = make_embedder(spec.text, timeout=_TIMEOUT, retries=0)
    except (RagMetricsError, ValueError) as error:
        yield _unmade("embedder", spec, error, hooked=hooked)
        return
    try:
        yield loop.run(_measured(embedder, spec))
    except RagMetricsError as error:
        yield _unmade("embedder", spec, error)


def _unmade(topic: str, spec: Spec, error: Exception, *, hooked: bool = False) -> Sign:
    name = f"{spec.text} ({spec.place})"
    if hooked:
        return Sign(topic=topic, text=f"{name} is up to a hook in conftest.py, which only pytest can ask")
    return Sign(topic=topic, text=f"{name} does not answer", to_do=str(error))


async def _examined(judge: Judge, spec: Spec) -> Sign:
    name = f"{judge.name} ({spec.place})"
    if not isinstance(judge, PromptedJudge):
        return Sign(topic="judge", text=f"{name} answers by rule, and measures no application")
    try:
        reply = await judge.complete(judge.request(_TASK))
    finally:
        await judge.aclose()
    try:
        found = extract_json(reply.text)
        _TASK.read(parse_json(found))
    except InvalidAnswer as error:
        return Sign(
            topic="judge",
            text=f"{name} answers, but not in the form asked for: {error}; {shortened(reply.text, _SHOWN)!r}",
            to_do="name a model that writes JSON, or switch on structured output in its server",
        )
    return Sign(topic="judge", text=f"{name} answers and {_form(judge, wrapped=found != reply.text.strip())}")


def _form(judge: PromptedJudge, *, wrapped: bool) -> str:
    from pytest_ragmetrics.judges.openai import OpenAIJudge

    if wrapped:
        return "puts other text around its JSON, which is passed over"
    return _FORMS[judge.terms.form] if isinstance(judge, OpenAIJudge) else "keeps to the form asked for"


async def _measured(embedder: Embedder, spec: Spec) -> Sign:
    try:
        vectors = await embedder.aembed(["Who owns the lake?"])
    finally:
        await embedder.aclose()
    return Sign(
        topic="embedder", text=f"{embedder.name} ({spec.place}) answers with vectors of {vectors.shape[1]} numbers"
    )


def _key(vendor: Vendor) -> str:
    return f"{vendor.key_variable} is {'set' if os.environ.get(vendor.key_variable, '').strip() else 'not set'}"


def _url(vendor: Vendor) -> str:
    return f"{vendor.url_variable} is {os.environ.get(vendor.url_variable, '').strip() or 'not set'}"
