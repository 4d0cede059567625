"""Scales of one's own: a description for each step, or a criterion for a number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pytest_ragmetrics.judges.tasks import RateByCriteria, RateByRubric
from pytest_ragmetrics.metrics.any_fields import AnyFieldsMetric, fields_of
from pytest_ragmetrics.metrics.judged import Ask
from pytest_ragmetrics.metrics.parameters import check_count
from pytest_ragmetrics.metrics.provided import JudgeLike
from pytest_ragmetrics.result import MetricResult, Verdict
from pytest_ragmetrics.sample import Sample

#: The fewest and the most steps that a judge is asked to tell apart.
FEWEST_STEPS, MOST_STEPS = 2, 100
# On any scale, the upper half.
_PASSABLE = 0.5


class Rubric(AnyFieldsMetric):
    """The step of your own scale that fits a sample best, the lowest as 0.0 and the highest as 1.0.

    Takes any of ``user_input``, ``response``, ``retrieved_contexts``, ``reference`` and ``reference_contexts``.
    ``steps`` describes each step, from the worst, number 1, to the best: a list, or a mapping by number. One request.
    The step itself stands in ``reason``. ``name`` tells several rubrics apart. After the rubric scores of Ragas.

    >>> judge = lambda prompt: '{"reason": "It says please.", "rating": 2}'
    >>> metric = Rubric(steps=["Rude.", "Polite.", "Warm."], judge=judge)
    >>> result = metric.score(response="Please wait.")
    >>> result.value, result.reason
    (0.5, 'step 2 of 3: It says please.')
    """

    name = "rubric"
    aliases: ClassVar[tuple[str, ...]] = ("RubricsScore", "rubrics_score")

    def __init__(
        self,
        *,
        steps: Sequence[str] | Mapping[int, str] | Mapping[str, str] = (),
        name: str | None = None,
        judge: JudgeLike | None = None,
    ) -> None:
        super().__init__(name=name, judge=judge)
        self.steps = _steps(steps, self.name)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the step, brought to [0, 1]."""
        rating = await ask(RateByRubric(steps=self.steps, fields=fields_of(sample)))
        verdict = Verdict(text=self.steps[rating.step - 1], ok=rating.value >= _PASSABLE, reason=rating.reason or None)
        reason = f"step {rating.step} of {len(self.steps)}: {rating.reason}"
        return ask.result(rating.value, reason=reason, verdicts=[verdict])


class SimpleCriteria(AnyFieldsMetric):
    """A whole number from 0 to ``highest`` that a judge gives a sample by your ``definition``, divided by ``highest``.

    Takes any of ``user_input``, ``response``, ``retrieved_contexts``, ``reference`` and ``reference_contexts``. One
    request. The number itself stands in ``reason``. ``name`` tells several criteria apart. After the simple criteria of
    Ragas, whose score is the number.

    >>> judge = lambda prompt: '{"reason": "Two of four seasons.", "rating": 2}'
    >>> metric = SimpleCriteria(definition="How many seasons are named?", highest=4, judge=judge)
    >>> result = metric.score(response="Spring and autumn.")
    >>> result.value, result.reason
    (0.5, '2 of 4: Two of four seasons.')
    """

    name = "simple_criteria"
    aliases: ClassVar[tuple[str, ...]] = ("SimpleCriteriaScore", "simple_criteria_score")

    def __init__(
        self, *, definition: str = "", highest: int = 5, name: str | None = None, judge: JudgeLike | None = None
    ) -> None:
        super().__init__(name=name, judge=judge)
        self.definition = definition
        self.highest = check_count("highest", highest)
        if not definition.strip():
            msg = f"{self.name}: definition is blank; say what the numbers from 0 to {highest} mean"
            raise ValueError(msg)
        if highest > MOST_STEPS:
            msg = f"{self.name}: highest must be at most {MOST_STEPS}, not {highest}"
            raise ValueError(msg)

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return the number, divided by the highest."""
        task = RateByCriteria(definition=self.definition, highest=self.highest, fields=fields_of(sample))
        rating = await ask(task)
        verdict = Verdict(text=self.definition, ok=rating.value >= _PASSABLE, reason=rating.reason or None)
        reason = f"{rating.step} of {self.highest}: {rating.reason}"
        return ask.result(rating.value, reason=reason, verdicts=[verdict])


def _steps(given: object, name: str) -> tuple[str, ...]:
    """Return the descriptions of the steps in order."""
    if isinstance(given, Mapping):
        by_number = {_number(key): text for key, text in given.items()}
        if sorted(by_number, key=str) != sorted(range(1, len(given) + 1), key=str):
            msg = f"{name}: steps must be numbered from 1 on without a gap, not {', '.join(map(str, given))}"
            raise ValueError(msg)
        given = [by_number[number] for number in range(1, len(given) + 1)]
    if isinstance(given, str) or not isinstance(given, Sequence) or not FEWEST_STEPS <= len(given) <= MOST_STEPS:
        msg = f"{name}: steps must be at least two descriptions, from the worst step to the best, not {given!r}"
        raise ValueError(msg)
    blank = [number for number, text in enumerate(given, start=1) if not isinstance(text, str) or not text.strip()]
    if blank:
        msg = f"{name}: step {blank[0]} has no description"
        raise ValueError(msg)
    return tuple(given)


def _number(key: object) -> int | None:
    """Return the number of a step, which other tools call ``score1_description``."""
    found = re.search(r"\d+", str(key))
    return int(found.group()) if found else None
