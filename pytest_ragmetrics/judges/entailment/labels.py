"""What the classes of an entailment model are called, and what its numbers say."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_ragmetrics.errors import JudgeNotConfiguredError

_ENTAILMENT = frozenset(
    {"entailment", "entail", "entails", "entailed", "consistent", "faithful", "factual", "grounded"}
    | {"support", "supports", "supported", "attributable"}
)
_CONTRADICTION = frozenset({"contradiction", "contradict", "contradicts", "contradicted", "contradictory"}) | {
    "refute",
    "refutes",
    "refuted",
}
#: What is neither: what a class is called that only says that the other one does not apply is among them.
_OTHER = frozenset(
    {"neutral", "nei", "not_enough_info", "unknown", "unrelated", "none"}
    | {"inconsistent", "hallucinated", "hallucination", "unfaithful", "unsupported", "unattributable", "ungrounded"}
    | {f"{no}_{word}" for no in ("not", "non", "no") for word in _ENTAILMENT}
)
_UNNAMED = re.compile(r"label_\d+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Entailment:
    """What a model says of one pair: two probabilities; ``contradiction`` is ``None`` for one that cannot tell."""

    entailment: float
    contradiction: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Labels:
    """Which of a model's classes say what, by index; ``contradiction`` is ``None`` for a model without that class.

    ``inverted`` is set for a model with one class whose probability speaks against entailment.
    """

    count: int
    entailment: int
    contradiction: int | None = None
    inverted: bool = False

    def read(self, logits: Sequence[float]) -> Entailment:
        """Return what the model's numbers for one pair say; raise ``ValueError`` for others than it can have.

        >>> Labels(count=3, entailment=2, contradiction=0).read([0.0, 0.0, math.log(2)])
        Entailment(entailment=0.5, contradiction=0.25)
        """
        if len(logits) != self.count or not all(map(math.isfinite, logits)):
            msg = f"{self.count} finite numbers a pair are wanted, not {list(logits)[:8]}"
            raise ValueError(msg)
        if self.count == 1:
            share = _sigmoid(-logits[0] if self.inverted else logits[0])
            return Entailment(entailment=share)
        highest = max(logits)
        weights = [math.exp(logit - highest) for logit in logits]
        shares = [weight / sum(weights) for weight in weights]
        against = None if self.contradiction is None else shares[self.contradiction]
        return Entailment(entailment=shares[self.entailment], contradiction=against)


def read_labels(names: Sequence[str], *, model: str) -> Labels:
    """Return what the classes of a model mean by their names, in the order of its numbers.

    Names are read in any order, case and spelling (``not-entailment``, ``SUPPORTS``). A single class, however it is
    called unless for the contrary, is the probability of entailment. Of two that have no names (``LABEL_0``,
    ``LABEL_1``) the second is taken for it, as models that tell consistent from hallucinated answers have it. Raises
    ``JudgeNotConfiguredError`` that lists the names where they say nothing.

    >>> read_labels(["contradiction", "entailment", "neutral"], model="tiny")
    Labels(count=3, entailment=1, contradiction=0, inverted=False)
    """
    plain = [re.sub(r"[\W_]+", "_", name.casefold()).strip("_") for name in names]
    if len(plain) == 1:
        return Labels(count=1, entailment=0, inverted=plain[0] in _OTHER | _CONTRADICTION)
    if len(plain) == 2 and all(map(_UNNAMED.fullmatch, plain)):  # noqa: PLR2004 - consistent and hallucinated
        return Labels(count=2, entailment=1)
    entailing = [index for index, name in enumerate(plain) if name in _ENTAILMENT]
    opposing = [index for index, name in enumerate(plain) if name in _CONTRADICTION]
    known = len(entailing) + len(opposing) + sum(name in _OTHER for name in plain)
    if len(entailing) != 1 or len(opposing) > 1 or known < len(plain):
        listed = ", ".join(map(repr, names)) or "none"
        msg = (
            f"{model} has the labels {listed}, which do not say what entailment is; "
            'name them in its order, as in NliJudge(model, labels=("entailment", "neutral", "contradiction"))'
        )
        raise JudgeNotConfiguredError(msg)
    return Labels(count=len(plain), entailment=entailing[0], contradiction=opposing[0] if opposing else None)


def class_names(named: Mapping[int, str], count: int) -> list[str]:
    """Return what so many classes are called, in the order of their numbers; one without a name by its number.

    >>> class_names({1: "entailment"}, 2)
    ['LABEL_0', 'entailment']
    """
    return [named.get(index, f"LABEL_{index}") for index in range(count)]


def _sigmoid(logit: float) -> float:
    # Each form overflows on the side of the other.
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))
