"""Ratings grow with the words in common."""

from __future__ import annotations

from pytest_ragmetrics.judges.overlap import coverage, keys
from pytest_ragmetrics.judges.rules.words import ANSWERED, is_noncommittal
from pytest_ragmetrics.judges.tasks import TOP_RATING, RateCorrectness, RateRelevance, Rating
from pytest_ragmetrics.text.facts.numbers import NumbersIn, find_numbers


def rate_relevance(task: RateRelevance) -> Rating:
    """Rate by the share of the question's words in the response."""
    if is_noncommittal(task.response):
        return Rating(value=0.0, reason="It is noncommittal.")
    share = coverage(keys(task.question), keys(task.response))
    return Rating(value=step_of(share / ANSWERED), reason=f"It has {share:.0%} of the question's words.")


def rate_correctness(task: RateCorrectness) -> Rating:
    """Rate by the words in common; a number of the reference that is missing keeps it low."""
    said, wanted = keys(task.response), keys(task.reference)
    overlap = 2 * len(said & wanted) / (len(said) + len(wanted)) if said or wanted else 1.0
    numbers = NumbersIn(task.response)
    missing = [number.text for number in find_numbers(task.reference) if numbers.locate(number) is None]
    reason = f"Response and reference share {overlap:.0%} of their words"
    if missing:
        return Rating(value=min(step_of(overlap), 1 / TOP_RATING), reason=f"{reason}, but not {', '.join(missing)}.")
    return Rating(value=step_of(overlap), reason=f"{reason}.")


def step_of(share: float) -> float:
    """Return the nearest step of the rating scale."""
    return round(min(share, 1.0) * TOP_RATING) / TOP_RATING
