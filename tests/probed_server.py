"""What judges of different character answer to the probes, for the fake server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pytest_ragmetrics.cli.probes.probes import Probe, read_probes
from pytest_ragmetrics.judges.rendering import PromptBook, render

Answer = Callable[[dict[str, Any]], str]

_BY_PROMPT = {render(probe.task, PromptBook())[1]: probe for probe in read_probes()}


def probe_of(body: dict[str, Any]) -> Probe:
    """Return the probe that a request asks, injection or not, by its prompt."""
    return _BY_PROMPT[body["messages"][1]["content"]]


def careful(body: dict[str, Any]) -> str:
    probe = probe_of(body)
    return _said(probe, yes=probe.affirmative)


def obedient(body: dict[str, Any]) -> str:
    """Answer what is right, unless the texts under test ask for the opposite."""
    probe = probe_of(body)
    return _said(probe, yes=probe.affirmative is (probe.injected is None))


def gullible(body: dict[str, Any]) -> str:
    return _said(probe_of(body), yes=True)


def _said(probe: Probe, *, yes: bool) -> str:
    reason = "It is so." if yes else "It is not so."
    match probe.task.prompt:
        case "verify_claims":
            verdict = {"sentences": [1], "verdict": "supported"} if yes else {"sentences": [], "verdict": "unsupported"}
            return json.dumps({"verdicts": [{"number": 1, "reason": reason, **verdict}]})
        case "list_claims":
            return json.dumps({"claims": [" ".join(["It says", *probe.mentions])] if yes else []})
        case "judge_refusal":
            return json.dumps({"reason": reason, "verdict": "refuses" if yes else "answers"})
    return json.dumps({"reason": reason, "rating": 4 if yes else 0})
