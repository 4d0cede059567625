"""The steps of short scales by the words in common."""

from __future__ import annotations

from pytest_ragmetrics.judges.overlap import coverage, keys
from pytest_ragmetrics.judges.rules.claims import verify_claims
from pytest_ragmetrics.judges.rules.words import ANSWERED, ON_TOPIC, committed
from pytest_ragmetrics.judges.tasks import RateAgreement, RateContexts, RateGroundedness, Rating, VerifyClaims
from pytest_ragmetrics.text.facts.numbers import NumbersIn, find_numbers


def rate_contexts(task: RateContexts) -> Rating:
    """Rate by the share of the question's words in the contexts."""
    share = coverage(keys(task.question), keys("\n".join(task.contexts)))
    return Rating(value=_middling(share), reason=f"They have {share:.0%} of the question's words.")


def rate_groundedness(task: RateGroundedness) -> Rating:
    """Rate by whether all, some or none of the response's sentences are supported."""
    sentences = tuple(committed(task.response))
    judgements = verify_claims(VerifyClaims(claims=sentences, contexts=task.contexts))
    met = sum(judgement.ok for judgement in judgements)
    value = 0.5 if 0 < met < len(sentences) else float(met > 0)
    return Rating(value=value, reason=f"{met} of {len(sentences)} sentences have their words there.")


def rate_agreement(task: RateAgreement) -> Rating:
    """Rate by the share of the second answer's words in the first, which must have its numbers too."""
    share = coverage(keys(task.second), keys(task.first))
    numbers = NumbersIn(task.first)
    missing = [number.text for number in find_numbers(task.second) if numbers.locate(number) is None]
    reason = f"The first has {share:.0%} of the second's words"
    if missing:
        return Rating(value=min(0.5, _middling(share)), reason=f"{reason}, but not {', '.join(missing)}.")
    return Rating(value=_middling(share), reason=f"{reason}.")


def _middling(share: float) -> float:
    """Return the step of a scale of three."""
    return 1.0 if share >= ANSWERED else 0.5 if share >= ON_TOPIC else 0.0
