"""Claims are sentences, and hold where their words stand."""

from __future__ import annotations

from pytest_ragmetrics.judges.overlap import Sentences, sentences_of
from pytest_ragmetrics.judges.rules.words import SUPPORTED, committed, distinct
from pytest_ragmetrics.judges.tasks import Judgement, ListClaims, VerifyClaims


def list_claims(task: ListClaims) -> tuple[str, ...]:
    """Take the sentences for claims, without those that refuse to make one."""
    return distinct(committed(task.text))


def verify_claims(task: VerifyClaims) -> tuple[Judgement, ...]:
    """Hold each claim against the sentences that share its words."""
    sentences = sentences_of(task.contexts)
    return tuple(_verify(claim, sentences) for claim in task.claims)


def _verify(claim: str, sentences: Sentences) -> Judgement:
    support = sentences.support(claim)
    if not support.sentences:
        return Judgement(ok=False, reason="No sentence shares a word with it.")
    share = f"{support.coverage:.0%} of its words stand in the closest sentences"
    if support.missing:
        return Judgement(ok=False, reason=f"{share}, but not {', '.join(support.missing)}.")
    if support.negated:
        return Judgement(ok=False, reason=f"{share}, but one of the two is negated.")
    ok = support.coverage >= SUPPORTED
    return Judgement(ok=ok, reason=f"{share}.", sentences=support.sentences if ok else ())
