"""Asking a judge the probes, many at a time."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_ragmetrics import loop
from pytest_ragmetrics.engine import Engine
from pytest_ragmetrics.errors import JudgeError, UnscoredError
from pytest_ragmetrics.judges.judge import JudgeOutageError, JudgeUnavailableError
from pytest_ragmetrics.probes.probe import Probe
from pytest_ragmetrics.progress import Progress
from pytest_ragmetrics.result import Usage

_HALF = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What a judge made of a probe: the answer ``found`` and its reason; ``None`` and why, where there is no answer."""

    probe: Probe
    found: str | None
    reason: str
    usage: Usage

    @property
    def right(self) -> bool:
        """Whether the answer is the expected one."""
        return self.found == self.probe.expected


def ask_probes(engine: Engine, probes: Sequence[Probe]) -> list[Outcome]:
    """Return what the judge of an engine makes of each probe, in their order; closes the engine.

    A terminal shows how far it is.

    Raises ``JudgeNotConfiguredError`` and ``JudgeError`` where it cannot be asked at all.
    """
    progress = Progress("asked", len(probes))
    try:
        return loop.run(_asked(engine, probes, progress))
    finally:
        progress.finish()
        engine.close()


async def _asked(engine: Engine, probes: Sequence[Probe], progress: Progress) -> list[Outcome]:
    async def counted(probe: Probe, *, alone: bool = False) -> Outcome:
        outcome = await _ask(engine, probe, alone=alone)
        progress.advance()
        return outcome

    # One alone finds out whether there is any sense in asking.
    first = [await counted(probe, alone=True) for probe in probes[:1]]
    tasks = [asyncio.ensure_future(counted(probe)) for probe in probes[1:]]
    try:
        return [*first, *await asyncio.gather(*tasks)]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ask(engine: Engine, probe: Probe, *, alone: bool) -> Outcome:
    fatal = (JudgeUnavailableError, JudgeOutageError) if alone else (JudgeUnavailableError,)
    try:
        answered = await engine.judge().ask(probe.task, desk=engine.desk)
    except fatal:
        raise
    except (JudgeError, UnscoredError) as error:
        usage = getattr(error, "usage", None) or Usage()
        return Outcome(probe=probe, found=None, reason=str(error), usage=usage)
    found, reason = _read(probe, answered.answer)
    return Outcome(probe=probe, found=found, reason=reason, usage=answered.usage)


def _read(probe: Probe, answer: Any) -> tuple[str, str]:
    """Return an answer in a word of those that are expected, and its reason."""
    match probe.task.prompt:
        case "list_claims":
            return _listed(probe, answer)
        case "judge_refusal":
            return "refuses" if answer.ok else "answers", answer.reason
        case "rate_relevance":
            return "relevant" if answer.value >= _HALF else "irrelevant", f"rated {answer.step}: {answer.reason}"
    (judgement,) = answer
    return "supported" if judgement.ok else "unsupported", judgement.reason


def _listed(probe: Probe, claims: Sequence[str]) -> tuple[str, str]:
    together = _folded("\n".join(claims))
    missing = [word for word in probe.mentions if _folded(word) not in together]
    reason = f"listed {', '.join(map(repr, claims))}" if claims else "listed nothing"
    if not claims:
        return "no claims", reason
    return f"claims without {', '.join(missing)}" if missing else "claims", reason


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
