"""What the best of some passages says of a claim, and which of its sentences say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ragmetrics.judges.entailment.passages import Passage, Passages

# Up to so many sentences are all evidence; of a longer passage those are that share words with the claim.
_FEW = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The highest probability that a passage says something of a claim, out of ``tried`` passages.

    ``sentences`` are those that carry it, 0-based; none where it stays under the threshold.
    """

    claim: str
    share: float = 0.0
    sentences: tuple[int, ...] = ()
    tried: int = 0

    @property
    def ok(self) -> bool:
        """Whether the threshold was reached."""
        return bool(self.sentences)


def find_best(
    claim: str, candidates: Sequence[Passage], shares: Sequence[float], *, passages: Passages, threshold: float
) -> Finding:
    """Return what the best passage says: its sentences are those of the smallest one inside it that says it as well."""
    if not candidates:
        return Finding(claim=claim)
    tried = list(zip(candidates, shares, strict=True))
    best, share = max(tried, key=lambda each: each[1])
    if share < threshold:
        return Finding(claim=claim, share=share, tried=len(tried))
    whole = set(best.sentences)
    inside = [each.sentences for each, reached in tried if reached >= threshold and whole.issuperset(each.sentences)]
    smallest = min(inside, key=len)
    carrying = smallest if len(smallest) <= _FEW else passages.sharing(claim, smallest) or smallest
    return Finding(claim=claim, share=share, sentences=carrying, tried=len(tried))
