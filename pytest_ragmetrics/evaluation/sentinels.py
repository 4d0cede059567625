"""Sentinels: stored answers of judges that a run asks for again, to see whether a judge still gives them."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_ragmetrics.core.errors import RagMetricsError
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges.schema import InvalidAnswer
from pytest_ragmetrics.judges.tasks import Judgement, Rating
from pytest_ragmetrics.judges.transports.values import Reply, Request
from pytest_ragmetrics.runs.records import SentinelRecord
from pytest_ragmetrics.runs.wording.figures import counted, named
from pytest_ragmetrics.stats.drift import ALARM, EPOCH, TOLERANCE, drift_evidence
from pytest_ragmetrics.stats.sequential import uniform


@dataclass(kw_only=True, slots=True)
class Asked:
    """What was asked again in one process or in all: by judge, without evidence; how often that failed, and why."""

    judges: dict[str, SentinelRecord] = field(default_factory=dict)
    failed: int = 0
    error: str = ""

    def add(self, other: Asked) -> None:
        """Add what another process asked."""
        for judge, new in other.judges.items():
            self.judges[judge] = self.judges.get(judge, SentinelRecord()) + new
        self.failed += other.failed
        self.error = self.error or other.error


class Sentinels:
    """Draws so many of the stored answers with a verdict that a run uses, each with the same chance, by a ``seed``.

    Further votes on a prompt are left out, as they are meant to vary, and so are answers that this run made.
    """

    def __init__(self, number: int, seed: str) -> None:
        self._number = number
        self._seed = seed
        self._judges: set[str] = set()
        self._made: set[str] = set()
        self._drawn: list[tuple[float, str, Request, Reply]] = []

    def note(self, key: str, request: Request, reply: Reply) -> None:
        """Take the reply to a request into the draw, if it was stored."""
        self._judges.add(_judge(request))
        if not reply.cached:
            self._made.add(key)
        rank = -uniform(self._seed, key)
        is_full = len(self._drawn) >= self._number
        if key in self._made or request.vote or (is_full and (not self._drawn or rank <= self._drawn[0][0])):
            return
        if _verdicts(request, reply) and all(key != other for _, other, *_ in self._drawn):
            (heapq.heapreplace if is_full else heapq.heappush)(self._drawn, (rank, key, request, reply))

    @property
    def drawn(self) -> list[tuple[Request, Reply]]:
        """The requests that were drawn, with their stored replies."""
        return [(request, reply) for _, _, request, reply in self._drawn]

    async def ask(self, send: Callable[[Request], Awaitable[Reply]]) -> Asked:
        """Ask what was drawn again, all at once; what fails is counted apart."""
        found = Asked(judges={judge: SentinelRecord() for judge in self._judges})
        for part in await asyncio.gather(*(_again(send, request, reply) for request, reply in self.drawn)):
            found.add(part)
        return found


async def _again(send: Callable[[Request], Awaitable[Reply]], request: Request, before: Reply) -> Asked:
    try:
        now = await send(request)
    except RagMetricsError as error:
        usage: Usage = getattr(error, "usage", None) or Usage()
        return Asked(judges={_judge(request): SentinelRecord(usage=usage)}, failed=1, error=str(error))
    pairs = [*zip(_verdicts(request, before), new := _verdicts(request, now), strict=False)]
    # Lists of another length have no verdicts on the same items.
    asked = int(len(pairs) == len(new) == len(_verdicts(request, before)))
    changed = sum(_change(*pair) for pair in pairs) / len(pairs) if asked else 0.0
    return Asked(judges={_judge(request): SentinelRecord(asked=asked, changed=changed, usage=now.usage(request))})


def _judge(request: Request) -> str:
    return "" if request.provider is None else request.provider.name


def _verdicts(request: Request, reply: Reply) -> list[Judgement | Rating]:
    """Return the verdicts and ratings in a reply; free texts and chosen sentences are none."""
    try:
        answer = None if request.asked is None else request.read(reply.text)
    except InvalidAnswer:
        return []
    parts: Iterable[Any] = answer if isinstance(answer, tuple) else (answer,)
    return [part for part in parts if isinstance(part, (Judgement, Rating))]


def _change(before: Any, now: Any) -> float:
    if isinstance(before, Rating) and isinstance(now, Rating):
        return abs(before.value - now.value)
    return float((before.ok, before.word) != (now.ok, now.word))


def with_evidence(
    asked: Mapping[str, SentinelRecord], past: Mapping[str, Sequence[tuple[int, float]]] | None
) -> tuple[dict[str, SentinelRecord], list[str], list[str]]:
    """Return what was asked with the evidence of a change, and the lines on it: warnings, and notes.

    ``past`` are the numbers asked and changed in earlier runs by judge, the oldest first, ``None`` where they are not
    kept: then the run is tested alone.
    """
    records, warnings, notes = {}, [], []
    for judge, it in sorted(asked.items()):
        runs = [*(past or {}).get(judge, ()), (it.asked, it.changed)]
        if not it.asked:
            records[judge] = it
            continue
        evidence, count = drift_evidence(runs, epoch=1 if past is None else EPOCH)[-1]
        records[judge] = replace(it, evidence=float(f"{evidence:.6g}"), drifts=evidence >= ALARM)
        text = f"{_share(runs[-1:])} stored answers of {named(judge)} came out otherwise"
        text += f"; over the last {count} runs {_share(runs[-count:])}" if count > 1 else ""
        if evidence >= ALARM:
            warnings.append(
                f"{text}: more than the {TOLERANCE:.0%} in which the same judge may differ, so it has changed; ask all "
                "anew with --rag-cache=refresh, and write the baseline anew"
            )
            continue
        alone = "; this run is tested alone, --rag-history=DIR adds the earlier ones" if past is None else ""
        anew = f"; after {EPOCH} runs the count began anew" if count == 1 < len(runs) else ""
        notes.append(f"sentinels: {text}: no alarm{alone}{anew}")
    return records, warnings, notes


def _share(runs: Sequence[tuple[int, float]]) -> str:
    asked, changed = (sum(column) for column in zip(*runs, strict=True))
    return f"{round(changed, 1):g} of {asked:,}"


def failed_line(asked: Asked) -> str:
    """Return the line on what could not be asked again."""
    return f"sentinels: {counted(asked.failed, 'stored answer')} could not be asked for again: {asked.error}"
