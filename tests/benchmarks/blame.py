"""Which part is blamed for scores that became worse: planted faults, and an unchanged application.

    python -m tests.benchmarks.blame [--rows FILE.jsonl] [--faults 400] [--seed 0] [--flips 0.1]

``--rows`` are answers to questions over passages (``id``, ``response``, ``contexts``); a few texts of ours stand in.
The judge is scripted and honest: a claim is supported where the sentence that bears it out stands in the passages it is
shown, and claims in other words are known. It errs where a fault says so, or by chance.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.evaluation.blame import blame_worse
from pytest_ragmetrics.evaluation.runner import BoundedMetric, Job, Runner
from pytest_ragmetrics.evaluation.session import OwnSession
from pytest_ragmetrics.judges.judge import PromptedJudge
from pytest_ragmetrics.judges.tasks import VerifyClaims
from pytest_ragmetrics.judges.tasks.task import ListTexts
from pytest_ragmetrics.judges.transports.values import Reply, Request
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.claims import Faithfulness
from pytest_ragmetrics.metrics.contexts import ContextRecall
from pytest_ragmetrics.metrics.grounding import LexicalContextRecall
from pytest_ragmetrics.metrics.strings import ExactMatch
from pytest_ragmetrics.runs.blame import MOST, Blame
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.records import Document, TestRecord, Threshold, bare_record, is_met
from pytest_ragmetrics.text.sentences import split_sentences
from pytest_ragmetrics.text.words import content_words
from tests.documents import HANDBOOK, document, row

BOUND = 0.9
_SHORTEST = 25  # characters of a sentence that stands in one passage alone
_CLAIMS = range(2, 9)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [text[start:end] for start, end in split_sentences(text)]


def folded(text: str) -> str:
    """Return a text without what is layout."""
    return " ".join(text.split()).casefold()


class HonestJudge(PromptedJudge):
    """Finds a claim supported where what bears it out stands in the passages; ``lies`` says which replies are wrong."""

    def __init__(self, flips: float = 0.0, seed: int = 0, *, by_claim: bool = False) -> None:
        super().__init__(name="honest", model="honest")
        #: The sentence that bears out each claim, "" where none does.
        self.facts: dict[str, str] = {}
        #: Passages and claims of which the first reply is wrong.
        self.lies: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
        self.calls = 0
        self._flips = flips
        self._seed = seed
        self._by_claim = by_claim

    async def complete(self, request: Request) -> Reply:
        """Return the claims of a text, which are its sentences, or whether passages bear them out."""
        self.calls += 1
        task: Any = request.asked
        if isinstance(task, ListTexts):
            return Reply(text=json.dumps({"claims": sentences(getattr(task, "text"))}))  # noqa: B009 - of one kind
        assert isinstance(task, VerifyClaims)
        shown = folded(" ".join(task.contexts))
        found = [(fact := folded(self.facts[claim])) != "" and fact in shown for claim in task.claims]
        draw = random.Random(f"{self._seed} {request.vote} {task.claims} {task.contexts}")
        if self._by_claim:
            found = [ok != (draw.random() < self._flips) for ok in found]
        elif draw.random() < self._flips or (request.vote == 0 and (task.contexts, task.claims) in self.lies):
            found = [False, *found[1:]] if all(found) else [True] * len(found)
        verdicts = [
            {"number": number, "reason": "So.", "sentences": [1] if ok else [], "verdict": _WORDS[ok]}
            for number, ok in enumerate(found, start=1)
        ]
        return Reply(text=json.dumps({"verdicts": verdicts}))


_WORDS = ("unsupported", "supported")


@dataclass(frozen=True)
class Base:
    """An answer with the sentences of passages that bear its claims out, and a passage for each."""

    id: str
    passages: tuple[str, ...]
    claims: tuple[str, ...]
    facts: tuple[str, ...]

    @property
    def carrying(self) -> list[int]:
        """The places of the passages that bear a claim out."""
        found = (folded(passage) for passage in self.passages)
        return [at for at, text in enumerate(found) if any(folded(fact) in text for fact in self.facts)]


def bases(rows: Sequence[Mapping[str, Any]]) -> list[Base]:
    """Return rows of which each sentence of the answer is borne out by a sentence of one passage."""
    found = []
    for given in rows:
        passages = tuple(dict.fromkeys(given["contexts"]))
        known = {text: None for passage in passages for text in sentences(passage) if len(text) >= _SHORTEST}
        claims = tuple(dict.fromkeys(it for it in sentences(given["response"]) if len(it) >= _SHORTEST))
        if len(passages) > 1 and len(claims) in _CLAIMS and known and given.get("label", 1) == 1:
            facts = tuple(max(known, key=lambda text: _shared(text, claim)) for claim in claims)
            made = Base(str(given["id"]), passages, claims, facts)
            # What is said in other words is to be split as it was put together.
            judge = HonestJudge()
            texts = (" ".join(claims), reworded(made, judge), altered(made, judge))
            is_split = all({*sentences(it)} <= {*claims, *judge.facts} for it in texts)
            found += [made] if is_split and 0 < len(made.carrying) < len(passages) else []
    return found


def _shared(text: str, claim: str) -> float:
    these, those = ({word.key for word in content_words(it)} for it in (text, claim))
    return len(these & those) / (len(these) + 1)


def ours() -> list[dict[str, Any]]:
    """Return rows of texts of ours: two sentences each."""
    pairs = [[text for text in sentences(it) if len(text) >= _SHORTEST] for it in HANDBOOK]
    found = [(at, first, second) for at, texts in enumerate(pairs) for first in texts for second in texts]
    return [
        {"id": f"r{number}", "response": f"{first} {second}", "contexts": list(HANDBOOK)}
        for number, (_, first, second) in enumerate(found)
        if first < second
    ]


def ours_of_five() -> list[dict[str, Any]]:
    """Return rows of texts of ours: five sentences of two passages each."""
    *shown, _ = ([text for text in sentences(it) if len(text) >= _SHORTEST] for it in HANDBOOK)
    chosen = combinations([text for texts in shown for text in texts], 5)
    return [{"id": f"f{at}", "response": " ".join(it), "contexts": [*HANDBOOK]} for at, it in enumerate(chosen)]


# How texts are changed. Each takes the judge, which learns what new claims are about.


def reworded(base: Base, judge: HonestJudge) -> str:
    """Return the answer in other words, of which the judge knows what they say."""
    made = [f"In short, {claim[:1].lower()}{claim[1:]}" for claim in base.claims]
    judge.facts.update(zip(made, base.facts, strict=True))
    return " ".join(made)


def altered(base: Base, judge: HonestJudge) -> str:
    """Return the answer with a claim that no passage bears out."""
    claim = base.claims[0]
    words = claim.rstrip(".!?").split()
    number = re.sub(r"\d", lambda found: str((int(found[0]) + 3) % 10), claim, count=1)
    made = number if number != claim else f"{' '.join(words[: len(words) // 2 + 1])} was never so in 1734."
    judge.facts[made] = ""
    return " ".join([made, *base.claims[1:]])


def gone(base: Base) -> tuple[str, ...]:
    """Return the passages without those that bear the first claim out."""
    return tuple(it for it in base.passages if folded(base.facts[0]) not in folded(it))


LAYOUTS: dict[str, Callable[[tuple[str, ...]], tuple[str, ...]]] = {
    "re-spaced": lambda passages: tuple(re.sub(r"([,.;]) ", "\\1\n  ", it) for it in passages),
    "merged": lambda passages: (" ".join(passages),),
    "prefixed": lambda passages: tuple(f"[source: doc{at}.pdf] {it}" for at, it in enumerate(passages)),
    "reordered": lambda passages: tuple(reversed(passages)),
    "as before": lambda passages: passages,
}


@dataclass
class Fault:
    """A row before and now, by which metric, and the part that is to blame."""

    kind: str
    part: str
    before: Sample
    now: Sample
    metric: Metric
    should_refuse: bool = False


@dataclass
class Planted:
    """Faults of every kind, as many as are asked for."""

    judge: HonestJudge
    faults: list[Fault] = field(default_factory=list)
    notes: int = 0

    def of(self, base: Base, draw: random.Random) -> Iterator[Fault]:
        """Yield a fault of each kind that a row can have."""
        judge, answer = self.judge, " ".join(base.claims)
        judge.facts.update(zip(base.claims, base.facts, strict=True))
        metric = Faithfulness(judge=judge)
        said, other = altered(base, judge), reworded(base, judge)
        left = gone(base)

        def fault(kind: str, part: str, response: str, passages: Sequence[str], **more: Any) -> Fault:
            # No two share a request.
            self.notes += 1
            note = f"This is note {self.notes}."
            passages, all_passages = (*passages, note), (*base.passages, note)
            before = Sample(id=base.id, user_input=f"Why {base.id}?", response=answer, retrieved_contexts=all_passages)
            now = replace(before, response=response, retrieved_contexts=tuple(passages))
            given = {"metric": metric, **more}
            return Fault(kind, part, before, now, **given)

        name = draw.choice([*LAYOUTS])
        layout = LAYOUTS[name](base.passages)
        yield fault("passages gone, old answer", "retriever", answer, left)
        yield fault("passages gone, other words", "retriever", other, left)
        yield fault("passages gone, invented", "retriever", said, left, should_refuse=True)
        yield fault(f"altered, passages {name}", "generator", said, layout)
        spare = [at for at in range(len(base.passages)) if at not in base.carrying]
        kept = tuple(it for at, it in enumerate(base.passages) if at != spare[0])
        yield fault("altered, another passage gone", "generator", said, kept)
        for words, response in (("other words", other), ("the same words", answer)):
            name = draw.choice([it for it in LAYOUTS if response is other or it != "as before"])
            found = fault(f"the judge errs, {words}, passages {name}", "judge", response, LAYOUTS[name](base.passages))
            judge.lies.add((tuple(found.now.retrieved_contexts or ()), tuple(sentences(response))))
            yield found
        facts = " ".join(dict.fromkeys(base.facts))
        for kind, part, response, passages, single in (
            ("no passages seen: altered", "generator", said, layout, ExactMatch()),
            ("no passages seen: gone", "retriever", "It is not said.", left, ExactMatch()),
            ("retrieval: gone", "retriever", answer, left, LexicalContextRecall()),
            ("retrieval: gone, judged", "retriever", answer, left, ContextRecall(judge=judge)),
        ):
            found = fault(kind, part, response, passages, metric=single)
            reference = answer if isinstance(single, ExactMatch) else facts
            judge.facts.update({text: text for text in sentences(facts)})
            yield replace(
                found, before=replace(found.before, reference=reference), now=replace(found.now, reference=reference)
            )


def scored(samples: Sequence[tuple[str, Sample, Metric]], session: OwnSession) -> list[TestRecord]:
    """Return a test for each sample, held against the bound."""
    made: list[TestRecord] = []

    def take(name: str, metric: Metric, done: Any) -> None:
        kept = done.scores[metric.name].scorings[-1]
        record = bare_record(kept)
        threshold = Threshold(operator=">=", bound=BOUND)
        passes = is_met(record.score or 0.0, threshold)
        record = replace(record, threshold=threshold, outcome="passed" if passes else "failed")
        made.append(row(name, record, outcome="passed" if passes else "failed"))

    async def run() -> None:
        runner = Runner(session)
        for name, sample, metric in samples:
            job = Job(sample=sample, metrics=(BoundedMetric(metric=metric),), test=name)
            take(name, metric, await runner.score(job))
        runner.close()

    loop.run(run())
    return made


def blamed(faults: Sequence[Fault], judge: HonestJudge, *, rows: int = 10_000) -> tuple[list[Blame | None], int]:
    """Return what is blamed for each fault, ``None`` where nothing became worse, and the most requests of one."""
    with TemporaryDirectory() as folder, OwnSession(folder, 8) as session:
        names = [f"test_bot[{number}]" for number in range(len(faults))]
        sides = [
            scored([(name, getattr(it, side), it.metric) for name, it in zip(names, faults, strict=True)], session)  # type: ignore[arg-type]
            for side in ("before", "now")
        ]
        before, now = (document(*tests) for tests in sides)
        return judged(before, now, {it.metric.name: it.metric for it in faults}, session, rows=rows)


def judged(
    before: Document, now: Document, metrics: Mapping[str, Metric], session: Any, *, rows: int
) -> tuple[list[Blame | None], int]:
    """Return what is blamed for the tests of a run, and the most requests that one of them took."""
    found: dict[int, Blame] = {}
    comparison = compare_documents(now, before)
    asking = blame_worse(comparison, session, found, way=lambda record: (metrics[record.metric], None), rows=rows)
    loop.run(asking)
    blames = [found.get(id(test.records[0])) for test in now.tests]
    return blames, max((it.usage.calls for it in blames if it is not None), default=0)


def planted(rows: Sequence[Base], number: int, seed: int) -> tuple[list[Fault], HonestJudge]:
    """Return so many faults, of all kinds alike, each in a row of its own."""
    draw, judge = random.Random(seed), HonestJudge(seed=seed)
    found = Planted(judge)
    while len(found.faults) < number:
        base = draw.choice(rows)
        found.faults += found.of(base, draw)
    return [replace(it, before=replace(it.before, id=f"{at}"), now=replace(it.now, id=f"{at}"))
            for at, it in enumerate(found.faults[:number])], judge  # fmt: skip


def unchanged(
    rows: Sequence[Base],
    number: int,
    seed: int,
    flips: float,
    *,
    same: float = 0.5,
    by_claim: bool = False,
    moved: bool = False,
) -> tuple[int, int]:
    """Return how many rows of an unchanged application became worse, and for how many retriever or generator is blamed.

    Nine of ten answers are right in both runs; a share of them has the ``same`` words, the others have other words. The
    judge errs in so many of its replies, or about so many claims (``by_claim``). Passages may have ``moved``.
    """
    draw, judge = random.Random(seed), HonestJudge(flips, seed, by_claim=by_claim)
    made = []
    for at in range(number):
        base = replace(draw.choice(rows), id=f"u{at}")
        judge.facts.update(zip(base.claims, base.facts, strict=True))
        answer, other = " ".join(base.claims), reworded(base, judge)
        if draw.random() < 0.1:
            answer = other = altered(base, judge)
            other = f"{other} {base.claims[1]}" if draw.random() >= same else other
        elif draw.random() < same:
            other = answer
        question = f"Why {at}?"  # part of what is asked, so that no two rows share a draw
        passages = (*base.passages, question)
        before = Sample(id=base.id, user_input=question, response=answer, retrieved_contexts=passages)
        shown = passages[::-1] if moved else passages
        now = replace(before, response=other, retrieved_contexts=shown)
        made.append(Fault("unchanged", "judge", before, now, Faithfulness(judge=judge)))
    found, _ = blamed(made, judge)
    wrong = sum(it is not None and it.part in ("retriever", "generator", "interplay") for it in found)
    return sum(it is not None for it in found), wrong


def main() -> None:
    """Print how many planted faults are blamed right, by kind, and how many rows of an unchanged application are."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--faults", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--flips", type=float, default=0.1)
    given = parser.parse_args()
    texts = [json.loads(line) for line in given.rows.open(encoding="utf-8")] if given.rows else ours()
    rows = bases(texts)
    faults, judge = planted(rows, given.faults, given.seed)
    found, most = blamed(faults, judge)
    totals, right = Counter[str](), Counter[str]()
    for fault, blame in zip(faults, found, strict=True):
        if blame is None:  # its score did not fall below the bound
            continue
        totals[fault.kind] += 1
        is_right = (blame.part, blame.should_refuse) == (fault.part, fault.should_refuse)
        right[fault.kind] += is_right
    for kind, total in sorted(totals.items()):
        print(f"{right[kind]:4} of {total:3}  {kind}")
    good, worse = sum(right.values()), sum(totals.values())
    print(f"{good} of {worse} that became worse are right ({good / worse:.1%}), {most} requests at most (bound {MOST})")
    five = [it for it in rows if len(it.claims) == 5] if given.rows else bases(ours_of_five())
    cases = [(1.0, "replies", False), (0.5, "replies", False), (0.0, "replies", False), (0.0, "replies", True)]
    for same, unit, moved in [*cases, (0.0, "claims", False), (0.0, "claims", True)]:
        of = five if unit == "claims" else rows
        how: dict[str, Any] = {"same": same, "by_claim": of is five, "moved": moved}
        fell, wrong = unchanged(of, given.faults, given.seed, given.flips, **how)
        what = f"unchanged, {given.flips:.0%} of {unit} flip, {same:.0%} the same words{', passages moved' * moved}"
        print(f"{what}: {fell} worse, blamed {wrong / given.faults:.1%} of {given.faults}")


if __name__ == "__main__":
    main()
