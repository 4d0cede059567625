"""Several judges that answer as one (``panel:SPEC,SPEC,SPEC``): verdicts by majority, ratings by the median."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, TypeVar

from pytest_ragmetrics.core.errors import JudgeError, JudgeNotConfiguredError, UnscoredError
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.judges.tasks.conversations import AnswersTask, ListSaid
from pytest_ragmetrics.judges.tasks.task import ListTexts
from pytest_ragmetrics.judges.transports.limiter import DIRECT
from pytest_ragmetrics.judges.transports.values import Answered, JudgeOutageError, JudgeUnavailableError, Transport
from pytest_ragmetrics.text.unicode import shortened

A = TypeVar("A")

#: How many judges must answer what they judge.
LEAST = 2
# Ratings further apart than this part of their scale, but for rounding, are a disagreement.
_FAR = 0.5 + 1e-9
_SHOWN = 80
# What a judge writes: no two write it alike.
_WRITING = (ListTexts, ListSaid, tasks.ListTopics, tasks.WriteQuestions, tasks.WriteGoldenQuestion)
# The field whose texts a task is about, each judged by itself where there are several.
_SUBJECTS = {"claims": "claim", "questions": "question", "topics": "topic", "contexts": "context", "context": "context"}
_SUBJECTS |= {"facts": "fact", "wishes": "wish"}


class Panel(Judge):
    """Two judges or more that answer each task; a verdict is that of the majority, a rating the median.

    A verdict is what more than half of those who answer say, with the sentences that these cite and the reason of the
    first of them; of an even number of ratings the median is the mean of the middle two. Judges that fail leave the
    decision to the others. Raises ``UnscoredError`` where the judges are split, and where fewer than two answer; and
    ``JudgeNotConfiguredError`` for a panel of one, a panel in a panel, and two judges of one name.
    ``Answered.disagreements`` lists verdicts that are not unanimous, ratings more than half of the scale apart, and
    judges that gave no answer.

    What a judge writes itself cannot be merged, because no two list the same claims: claims, entities,
    questions and topics, and what is said of each in the same answer, are those of the first judge that answers, in
    the order of the panel, and all judges decide about them. (Where nothing is left to decide, as in the recall of
    entities, that judge alone is asked.) Each judge is asked as it would be alone, so that its
    answers are stored, counted and paid as its own; each of several votes is an answer of the whole panel.

    >>> import asyncio
    >>> from pytest_ragmetrics.judges.judge import CustomJudge
    >>> from pytest_ragmetrics.judges.tasks import Critique
    >>> says = lambda word: lambda prompt: f'{{"reason": "So it is.", "verdict": "{word}"}}'
    >>> panel = Panel([CustomJudge(says(word), name=name) for name, word in (("a", "yes"), ("b", "no"), ("c", "yes"))])
    >>> answered = asyncio.run(panel.ask(Critique(definition="Is it kind?", fields=(("response", "Thanks."),))))
    >>> answered.answer.ok, answered.disagreements
    (True, ('critique: yes: a, c; no: b (So it is.)',))
    """

    def __init__(self, judges: Iterable[Judge]) -> None:
        self.judges = tuple(judges)
        names = [judge.name for judge in self.judges]
        self.name = f"panel:{','.join(names)}"
        if len(names) < LEAST or any(isinstance(judge, Panel) for judge in self.judges):
            raise JudgeNotConfiguredError(f"{self.name}: a panel has two judges or more, and no other panel among them")
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            msg = f"{self.name}: {twice[0]} is in it twice, and its answers would count twice; name another judge"
            raise JudgeNotConfiguredError(msg)
        self.is_varied = any(judge.is_varied for judge in self.judges)
        self.is_paid = any(judge.is_paid for judge in self.judges)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    async def ask(self, task: tasks.Task[A], *, vote: int = 0, transport: Transport = DIRECT) -> Answered[A]:
        """Return the merged answer, with the usage of all judges."""
        writing = isinstance(task, _WRITING)
        answers: dict[str, A] = {}
        failures: dict[str, JudgeError | UnscoredError] = {}
        usage = Usage()
        for group in [[judge] for judge in self.judges] if writing else [[*self.judges]]:
            asked = (judge.ask(task, vote=vote, transport=transport) for judge in group)
            # What is paid for is kept, also where another judge fails.
            for judge, outcome in zip(group, await asyncio.gather(*asked, return_exceptions=True), strict=True):
                if isinstance(outcome, (JudgeError, UnscoredError)):
                    failures[judge.name] = outcome
                elif isinstance(outcome, BaseException):
                    # A budget that is spent or an answer that was never recorded is no opinion of a judge.
                    raise outcome
                else:
                    answers[judge.name] = outcome.answer
                usage += outcome.usage or Usage()
            if writing and answers:
                break
        needed = 1 if writing else LEAST
        if len(answers) < needed:
            # A run stops asking where too few can answer.
            out = [error for error in failures.values() if isinstance(error, (JudgeUnavailableError, JudgeOutageError))]
            kind = type(out[-1]) if len(self.judges) - len(out) < needed else UnscoredError
            count = f"{len(self.judges) - len(failures)} of {len(self.judges)} judges answered, and {needed} must"
            faults = "; ".join(f"{name}: {error}" for name, error in failures.items())
            raise kind(f"{task.prompt}: {count}: {faults}", usage=usage)
        merging = _Merging(task)
        merging.disagreements += [f"{task.prompt}: no answer of {name} ({error})" for name, error in failures.items()]
        answer = next(iter(answers.values())) if writing else merging.merged(answers)
        if merging.ties:
            raise UnscoredError(f"the judges are split: {'; '.join(merging.ties)}", usage=usage)
        return Answered(answer=answer, usage=usage, disagreements=tuple(merging.disagreements))

    async def aclose(self) -> None:
        """Close all judges."""
        for judge in self.judges:
            await judge.aclose()


class _Merging:
    """Merges the answers to one task, by the name of the judge; notes who disagrees, and ties."""

    def __init__(self, task: tasks.Task[Any]) -> None:
        self._task = task
        self.disagreements: list[str] = []
        self.ties: list[str] = []

    def merged(self, answers: Mapping[str, Any]) -> Any:
        """Return the merged answer; what it is in a tie means nothing."""
        task, first = self._task, next(iter(answers.values()))
        if isinstance(task, tasks.SelectSentences):
            last = max((index + 1 for chosen in answers.values() for index in chosen), default=0)
            return tuple(index for index in range(last) if self._is_chosen(index, answers))
        if isinstance(task, tasks.MatchTopics):
            numbers = range(len(task.topics))
            return tuple(self._match(number, {n: found[number] for n, found in answers.items()}) for number in numbers)
        if isinstance(first, tasks.Rating):
            return self._median(answers)
        if isinstance(first, tasks.Judgement):
            return self._judgement(answers, self._subject())
        if isinstance(first, tuple) and all(isinstance(item, tasks.Judgement) for item in first):
            items = ({name: found[number] for name, found in answers.items()} for number in range(len(first)))
            return tuple(self._judgement(item, self._subject(number)) for number, item in enumerate(items))
        if isinstance(first, tuple) and isinstance(first[-1], tasks.Judgement):
            # A goal that each judge may have put in its own words, and whether it was reached.
            verdicts = {name: verdict for name, (_, verdict) in answers.items()}
            judgement = self._judgement(verdicts, self._subject())
            return next(goal for goal, verdict in answers.values() if verdict.ok == judgement.ok), judgement
        msg = f"{task.prompt}: a panel cannot merge answers of the type {type(first).__name__}; ask one judge"
        raise UnscoredError(msg)

    def _subject(self, number: int | None = None) -> str:
        """Return what a verdict is about: the task, and the piece of it that is judged."""
        if number is not None and isinstance(self._task, AnswersTask):
            return f"{self._task.prompt}, turn {self._task.answers[number]}"
        name = next((name for name in _SUBJECTS if hasattr(self._task, name)), "")
        texts: Any = getattr(self._task, name, ())
        if number is not None:
            # A task of the user's own may have more verdicts than texts.
            text = f' "{shortened(str(texts[number]), _SHOWN)}"' if number < len(texts) else ""
            return f"{self._task.prompt}, {_SUBJECTS.get(name, 'item')} {number + 1}{text}"
        return f'{self._task.prompt}, "{shortened(texts, _SHOWN)}"' if isinstance(texts, str) else self._task.prompt

    def _majority(self, verdicts: Mapping[str, tasks.Judgement], subject: str) -> Sequence[str]:
        """Return who is in the majority, the first of the panel first; in a tie it is anyone."""
        sides: dict[str, list[str]] = {"yes": [], "no": []}
        for name, verdict in verdicts.items():
            sides["yes" if verdict.ok else "no"].append(name)
        larger, smaller = sorted(sides, key=lambda word: -len(sides[word]))
        if not sides[smaller]:
            return sides[larger]
        is_tie = len(sides[larger]) == len(sides[smaller])
        against = [f"{name}{f' ({reason})' if (reason := verdicts[name].reason) else ''}" for name in sides[smaller]]
        line = f"{subject}: {larger}: {', '.join(sides[larger])}; {smaller}: {', '.join(against)}"
        (self.ties if is_tie else self.disagreements).append(line)
        return sides[larger]

    def _judgement(self, verdicts: Mapping[str, tasks.Judgement], subject: str) -> tasks.Judgement:
        agreed = [verdicts[name] for name in self._majority(verdicts, subject)]
        # Of several verdicts on the same side the one with most votes.
        word = Counter(verdict.word for verdict in agreed).most_common(1)[0][0]
        agreed = [verdict for verdict in agreed if verdict.word == word]
        sentences = sorted({number for verdict in agreed for number in verdict.sentences})
        return replace(agreed[0], sentences=tuple(sentences))

    def _is_chosen(self, index: int, answers: Mapping[str, Sequence[int]]) -> bool:
        verdicts = {name: tasks.Judgement(ok=index in chosen, reason="") for name, chosen in answers.items()}
        return verdicts[self._majority(verdicts, f"{self._task.prompt}, sentence {index + 1}")[0]].ok

    def _match(self, number: int, matches: Mapping[str, int | None]) -> int | None:
        """Return the allowed topic of a topic: most votes decide which, once the majority says that there is one."""
        verdicts = {name: tasks.Judgement(ok=match is not None, reason="") for name, match in matches.items()}
        agreed = (matches[name] for name in self._majority(verdicts, self._subject(number)))
        return Counter(agreed).most_common(1)[0][0]

    def _median(self, ratings: Mapping[str, tasks.Rating]) -> tasks.Rating:
        ordered = sorted(ratings.values(), key=lambda rating: rating.value)
        if ordered[-1].value - ordered[0].value > _FAR:
            listed = ", ".join(f"{rating.value:.2f} by {name}" for name, rating in ratings.items())
            self.disagreements.append(f"{self._subject()}: rated {listed}")
        low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
        if low.value == high.value:
            return low
        reason = f"between the middle ratings, steps {low.step} and {high.step}: {low.reason}"
        return tasks.Rating(value=fmean((low.value, high.value)), reason=reason, step=(low.step + high.step) // 2)
