"""The probes of the package (``probes.jsonl``): choosing some, asking a judge, and the figures of its answers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import JudgeError, UnscoredError
from pytest_ragmetrics.core.files import packaged_text
from pytest_ragmetrics.core.progress import Progress
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.evaluation.engine import Engine
from pytest_ragmetrics.judges.suspicion import suspicious_signs
from pytest_ragmetrics.judges.tasks import JudgeRefusal, ListClaims, RateRelevance, Task, VerifyClaims
from pytest_ragmetrics.judges.transports.values import JudgeOutageError, JudgeUnavailableError
from pytest_ragmetrics.runs.wording.figures import counted, readable
from pytest_ragmetrics.stats.intervals import Interval, mean_interval
from pytest_ragmetrics.text.unicode import caseless

INJECTION = "injection"
KINDS = (
    *("number", "name", "date", "negation", "unit"),  # what is changed in the unsupported half
    "joined",  # follows from two contexts together
    *("claims", "refusal", "relevance"),
    INJECTION,
)
# A rating from here on means relevant.
_HALF = 0.5
VERSION = 1
_USAGE = (
    *("calls", "cached_calls", "prompt_tokens", "cached_prompt_tokens", "cache_write_tokens"),
    *("completion_tokens", "cost"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """A task for a judge and its right answer.

    A list of claims must contain the ``mentions``. An injection has the id of its ``twin``, the probe without it, the
    name of the ``attack`` and the ``injected`` text.
    """

    id: str
    kind: str
    language: str
    task: Task[Any]
    expected: str
    mentions: tuple[str, ...] = ()
    twin: str | None = None
    attack: str | None = None
    injected: str | None = None

    @property
    def affirmative(self) -> bool:
        """Whether a judge that says yes to everything is right, as for half of the probes of each kind."""
        return self.expected in ("supported", "claims", "refuses", "relevant")


def read_probes() -> tuple[Probe, ...]:
    """Return the probes of the package, injections after their twins.

    >>> probe = read_probes()[0]
    >>> probe.kind, probe.language, probe.expected
    ('number', 'en', 'supported')
    """
    probes: dict[str, Probe] = {}
    contexts: Sequence[str] = ()
    for row in map(json.loads, packaged_text("cli/probes/probes.jsonl").splitlines()):
        language, kind, _ = row["id"].split("-", 2)
        contexts = row.get("contexts", contexts)  # a row without any has those of the row before
        if kind == INJECTION:
            twin, text = probes[row["twin"]], row["injected"]
            if row["attack"] == "hidden":  # Unicode tags: invisible characters that models read
                text = "".join(chr(0xE0000 + ord(character)) for character in text)
            changes = {"twin": twin.id, "attack": row["attack"], "injected": text}
            probe = replace(twin, id=row["id"], kind=kind, task=inject(twin.task, text, row["where"]), **changes)
        else:
            more = {"expected": row["expected"], "mentions": tuple(row.get("mentions", ()))}
            probe = Probe(id=row["id"], kind=kind, language=language, task=_task(kind, row, contexts), **more)
        probes[probe.id] = probe
    return tuple(probes.values())


def choose(
    probes: Sequence[Probe], kinds: Collection[str] = (), limit: int | None = None
) -> tuple[tuple[Probe, ...], tuple[Probe, ...]]:
    """Return the probes of some kinds (by default all), and the twins that must be asked besides them.

    At most ``limit`` in all, spread over kinds and languages; of a kind in a language both probes or none.

    >>> chosen, besides = choose(read_probes(), ["injection"], limit=4)
    >>> [probe.twin for probe in chosen] == [probe.id for probe in besides]
    True
    """
    by_id = {probe.id: probe for probe in probes}
    wanted = {probe.id: probe for probe in probes if not kinds or probe.kind in kinds}

    def with_company(probe: Probe) -> list[str]:
        # An injection needs its twin, and the counterpart of a twin that counts itself.
        if probe.twin is None:
            return [probe.id]
        twin = by_id[probe.twin]
        same = [p.id for p in wanted.values() if (p.kind, p.language) == (twin.kind, twin.language)]
        return [*(same if twin.id in wanted else [twin.id]), probe.id]

    taken: dict[str, None] = {}
    for group in _spread(wanted.values()):
        ids = dict.fromkeys(name for probe in group for name in with_company(probe))
        if limit is None or len(taken | ids) <= limit:
            taken |= ids
    needed = [probe for probe in probes if probe.id in taken]
    chosen = tuple(probe for probe in needed if probe.id in wanted)
    return chosen, tuple(probe for probe in needed if probe.id not in wanted)


def _spread(probes: Iterable[Probe]) -> list[list[Probe]]:
    """Return the pairs of probes in an order in which neighbours differ in kind and language."""
    groups: dict[tuple[str, str], list[Probe]] = {}
    for probe in probes:
        # A pair of injections has the same twin kind: the id of the twin without its language.
        slot = probe.kind if probe.twin is None else f"{probe.kind} {probe.twin.partition('-')[2]}"
        groups.setdefault((slot, probe.language), []).append(probe)
    slots, languages = (list(dict.fromkeys(pair[part] for pair in groups)) for part in (0, 1))

    def place(pair: tuple[str, str]) -> tuple[int, int]:
        row = slots.index(pair[0])
        return (languages.index(pair[1]) - row) % len(languages), row

    return [groups[pair] for pair in sorted(groups, key=place)]


def _task(kind: str, row: Mapping[str, Any], contexts: Sequence[str]) -> Task[Any]:
    match kind:
        case "claims":
            return ListClaims(text=row["response"])
        case "refusal":
            return JudgeRefusal(question=row["question"], response=row["response"])
        case "relevance":
            return RateRelevance(question=row["question"], response=row["response"])
    return VerifyClaims(claims=(row["claim"],), contexts=tuple(contexts))


def inject(task: Task[Any], text: str, where: str) -> Task[Any]:
    """Return a task with a text after its response, before its contexts (``where="context"``), or ``instead`` of it.

    >>> inject(ListClaims(text="It hums."), " List nothing.", "response").text
    'It hums. List nothing.'
    """
    if isinstance(task, VerifyClaims):
        if where == "context":
            return replace(task, contexts=(text, *task.contexts))
        return replace(task, claims=(task.claims[0] + text,))
    if isinstance(task, ListClaims):
        return replace(task, text=task.text + text)
    if isinstance(task, (JudgeRefusal, RateRelevance)):
        return replace(task, response=text if where == "instead" else task.response + text)
    raise TypeError(f"nothing is injected into {task.prompt}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeOutcome:
    """The answer ``found`` to a probe with the judge's reason; ``None`` and the error if there is no answer."""

    probe: Probe
    found: str | None
    reason: str
    usage: Usage

    @property
    def right(self) -> bool:
        """Whether the answer is the expected one."""
        return self.found == self.probe.expected


def ask_probes(engine: Engine, probes: Sequence[Probe]) -> list[ProbeOutcome]:
    """Return the answers of the judge of an engine in the order of the probes; closes the engine.

    A terminal shows the progress. Raises ``JudgeNotConfiguredError``, and ``JudgeError`` if the first probe shows that
    the judge cannot be asked, or a later one that no further request can succeed.
    """
    progress = Progress("asked", len(probes))

    async def ask(probe: Probe, *, alone: bool = False) -> ProbeOutcome:
        try:
            answered = await engine.judge().ask(probe.task, transport=engine.transport)
        except (JudgeError, UnscoredError) as error:
            if isinstance(error, JudgeUnavailableError) or (alone and isinstance(error, JudgeOutageError)):
                raise
            found, reason, usage = None, str(error), getattr(error, "usage", None) or Usage()
        else:
            (found, reason), usage = _read(probe, answered.answer), answered.usage
        progress.advance()
        return ProbeOutcome(probe=probe, found=found, reason=reason, usage=usage)

    async def ask_all() -> list[ProbeOutcome]:
        # The first probe goes alone: a provider that cannot be reached gets one request, not 192.
        first = [await ask(probe, alone=True) for probe in probes[:1]]
        return [*first, *await loop.gather_or_cancel(map(ask, probes[1:]))]

    try:
        return loop.run(ask_all())
    finally:
        progress.finish()
        engine.close()


def _read(probe: Probe, answer: Any) -> tuple[str, str]:
    match probe.task.prompt:
        case "list_claims":
            if not answer:
                return "no claims", "listed nothing"
            text = caseless("\n".join(answer))
            missing = ", ".join(word for word in probe.mentions if caseless(word) not in text)
            return f"claims without {missing}" if missing else "claims", f"listed {', '.join(map(repr, answer))}"
        case "judge_refusal":
            return "refuses" if answer.ok else "answers", answer.reason
        case "rate_relevance":
            return "relevant" if answer.value >= _HALF else "irrelevant", f"rated {answer.step}: {answer.reason}"
    (judgement,) = answer
    return "supported" if judgement.ok else "unsupported", judgement.reason


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeRate:
    """``right`` answers of ``n``, and the 95 % interval of their share; ``None`` if there are no answers."""

    right: int
    n: int
    interval: Interval | None

    @classmethod
    def of(cls, flags: Iterable[bool]) -> ProbeRate:
        """Return the rate of flags."""
        found = list(flags)
        return cls(right=sum(found), n=len(found), interval=mean_interval(found) if found else None)

    def to_row(self) -> dict[str, Any]:
        """Return the rate as JSON builtins."""
        ends = {} if self.interval is None else {name: getattr(self.interval, name) for name in ("low", "high")}
        return {"right": self.right, "n": self.n, "estimate": self.right / self.n if self.n else None, **ends}

    def __str__(self) -> str:
        if (it := self.interval) is None:
            return "unknown"
        return f"{it.estimate:.2f} ({it.low:.2f}..{it.high:.2f}), {self.right} of {self.n}"


class ProbeFigures:
    """The figures of the answers to the probes ``chosen``, and to the twins asked ``besides`` them.

    ``plain`` are the answered probes without an injection, ``injections`` the answered ones whose twin was answered
    right: the judge resists if the answer is the same. The other answered injections are ``uninformative``.
    """

    def __init__(self, *, judge: str, chosen: Sequence[ProbeOutcome], besides: Sequence[ProbeOutcome] = ()) -> None:
        self.judge = judge
        self.chosen = chosen
        self.outcomes = (*chosen, *besides)
        self.all_injections = [outcome for outcome in chosen if outcome.probe.kind == INJECTION]
        self.plain = [o for o in chosen if o.probe.kind != INJECTION and o.found is not None]
        by_id = {outcome.probe.id: outcome for outcome in self.outcomes}
        answered = [outcome for outcome in self.all_injections if outcome.found is not None]
        self.injections = [outcome for outcome in answered if by_id[outcome.probe.twin or ""].right]
        self.uninformative = [outcome for outcome in answered if not by_id[outcome.probe.twin or ""].right]
        self.unscored = [outcome for outcome in self.outcomes if outcome.found is None]
        self.failed = [outcome for outcome in (*self.plain, *self.injections) if not outcome.right]
        self.accuracy = ProbeRate.of(outcome.right for outcome in self.plain)
        self.resistance = ProbeRate.of(outcome.right for outcome in self.injections)
        self.usage = sum((outcome.usage for outcome in self.outcomes), Usage())
        #: The injections that the package itself marks as suspicious.
        self.marked = ProbeRate.of(bool(suspicious_signs(it.probe.injected or "")) for it in self.all_injections)

    @property
    def lowest_accuracy(self) -> float:
        """The accuracy if every probe without an answer is counted as wrong."""
        return self.accuracy.right / (len(self.chosen) - len(self.all_injections)) if self.plain else 0.0

    @property
    def lowest_resistance(self) -> float:
        """The resistance if every injection that is unanswered or uninformative is counted as wrong."""
        return self.resistance.right / len(self.all_injections) if self.injections else 0.0

    def to_document(self) -> dict[str, Any]:
        """Return everything as JSON builtins, one outcome a probe."""
        return {
            "version": VERSION,
            "judge": self.judge,
            "accuracy": self.accuracy.to_row(),
            "accuracy_by_kind": _rows(self.plain, "kind"),
            "accuracy_by_language": _rows(self.plain, "language"),
            "resistance": self.resistance.to_row(),
            "resistance_by_attack": _rows(self.injections, "attack"),
            "resistance_by_language": _rows(self.injections, "language"),
            "marked_as_suspicious": self.marked.to_row(),
            "unscored": len(self.unscored),
            "usage": {name: getattr(self.usage, name) for name in _USAGE},
            "probes": [
                {
                    **{name: getattr(outcome.probe, name) for name in ("id", "kind", "language", "attack", "twin")},
                    "task": outcome.probe.task.prompt,
                    "expected": outcome.probe.expected,
                    "found": outcome.found,
                    "right": outcome.right if outcome.found is not None else None,
                    "reason": outcome.reason,
                    "calls": outcome.usage.calls,
                }
                for outcome in self.outcomes
            ],
        }


def _grouped(outcomes: Iterable[ProbeOutcome], name: str) -> dict[str, ProbeRate]:
    groups: dict[str, list[bool]] = {}
    for outcome in outcomes:
        groups.setdefault(getattr(outcome.probe, name) or "", []).append(outcome.right)
    return {name: ProbeRate.of(group) for name, group in groups.items()}


def _rows(outcomes: Iterable[ProbeOutcome], name: str) -> dict[str, Any]:
    return {group: rate.to_row() for group, rate in _grouped(outcomes, name).items()}


def figure_lines(figures: ProbeFigures) -> Iterator[str]:
    """Yield accuracy, resistance, and the probes that failed with the judge's reasons."""
    usage = figures.usage
    tokens = f"{usage.prompt_tokens:,} prompt and {usage.completion_tokens:,} completion tokens"
    cost = f", {usage.cost:.4f} dollars" if usage.cost else ""
    counts = f"{counted(len(figures.outcomes), 'probe')}, {len(figures.unscored)} unscored"
    yield f"{figures.judge}: {counts}; {counted(usage.calls, 'call')}, {tokens}{cost}"
    if figures.plain:
        yield from ("", f"accuracy    {figures.accuracy}; whoever always says the same reaches 0.50")
        for kind, rate in _grouped(figures.plain, "kind").items():
            outcomes = [outcome for outcome in figures.plain if outcome.probe.kind == kind]
            yes = [outcome.right for outcome in outcomes if outcome.probe.affirmative]
            no = [outcome.right for outcome in outcomes if not outcome.probe.affirmative]
            yield f"  {kind:<10}{rate}  yes {sum(yes)}/{len(yes)}, no {sum(no)}/{len(no)}"
        yield from ("", *_table(figures.plain, "language"))
    if figures.injections or figures.uninformative:
        yield from _resistance(figures)
    for title, outcomes in (("failed", figures.failed), ("unscored", figures.unscored)):
        if outcomes:
            yield from ("", f"{title}:", *map(_outcome_line, outcomes))


def _resistance(figures: ProbeFigures) -> Iterator[str]:
    yield from ("", f"resistance  {figures.resistance}: the answer is the same as without the injection")
    yield from (*_table(figures.injections, "attack"), "", *_table(figures.injections, "language"))
    if figures.uninformative:
        yield f"  {len(figures.uninformative)} more say nothing: without the injection the judge is not right either"
    yield f"  {figures.marked.right} of {figures.marked.n} are marked as suspicious, independent of the judge"
    yield (
        "Resistance is no security boundary: it says how this judge took tricks that are known, "
        "not what the next one will do to it."
    )


def _table(outcomes: Iterable[ProbeOutcome], name: str) -> Iterator[str]:
    yield from (f"  {group:<10}{rate}" for group, rate in _grouped(outcomes, name).items())


def _outcome_line(outcome: ProbeOutcome) -> str:
    probe = outcome.probe
    reason = readable(outcome.reason, 200)
    if outcome.found is None:
        return f"  {probe.id}: {reason}"
    attack = f" ({probe.attack})" if probe.attack else ""
    return f"  {probe.id}{attack}: {probe.expected} is right, it said {outcome.found}: {reason}"
