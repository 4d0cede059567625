"""A scorer by rule, where the weights of an entailment model would be too much: it compares words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_ragmetrics.judges.nli import Pair


class WordScorer:
    """Entailed is what has all its words in the premise, contradicted what has all but a "not"; ``seen`` is asked."""

    def __init__(self, *, labels: Sequence[str] = ("contradiction", "entailment", "neutral")) -> None:
        self.labels = labels
        self.seen: list[list[Pair]] = []

    def logits(self, pairs: Sequence[Pair]) -> Sequence[Sequence[float]]:
        self.seen.append(list(pairs))
        return [self._logits(premise, hypothesis) for premise, hypothesis in pairs]

    def _logits(self, premise: str, hypothesis: str) -> list[float]:
        said, claimed = set(_words(premise)), set(_words(hypothesis))
        applies = "neutral"
        if claimed - {"not"} <= said - {"not"}:
            applies = "entailment" if ("not" in claimed) == ("not" in said) else "contradiction"
        return [4.0 if label == applies else 0.0 for label in self.labels]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
