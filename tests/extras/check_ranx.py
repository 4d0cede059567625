"""Every retrieval metric against ranx; run by name where it is installed.

python -m pip install ranx && python -m pytest tests/extras/check_ranx.py
"""

from __future__ import annotations

import random
from importlib import import_module
from typing import Any

import pytest

from pytest_ragmetrics.metrics import MAP, MRR, NDCG, HitRate, PrecisionAtK, RecallAtK
from pytest_ragmetrics.metrics.retrieval import RankingMetric

# Numba's, where ranx compiles its metrics.
pytestmark = pytest.mark.filterwarnings("ignore:.*unsafe cast from")

#: Theirs by name, and ours. Where fewer than k were retrieved ranx divides the hits by k, and ours by what is there.
PAIRS: tuple[tuple[str, type[RankingMetric], dict[str, Any]], ...] = (
    ("recall", RecallAtK, {}),
    ("hit_rate", HitRate, {}),
    ("mrr", MRR, {}),
    ("map", MAP, {}),
    ("ndcg", NDCG, {}),
    ("ndcg_burges", NDCG, {"gain": "exponential"}),
    ("precision", PrecisionAtK, {}),
)
each_metric = pytest.mark.parametrize(("name", "kind", "parameters"), PAIRS, ids=[name for name, _, _ in PAIRS])
#: Rankings and grades made by hand: all, none, the last one, too few, more than there are.
HAND_MADE: tuple[tuple[list[str], dict[str, int]], ...] = (
    (["a", "b", "c"], {"a": 1, "b": 1, "c": 1}),
    (["a", "b", "c"], {"d": 1}),
    (["a", "b", "c"], {"c": 1}),
    (["a"], {"a": 1, "b": 1, "c": 1, "d": 1}),
    (["a", "b", "c", "d", "e", "f"], {"f": 3, "a": 1}),
    (["d", "c", "b", "a"], {"a": 3, "b": 2, "c": 1}),
)


def made_up(seed: int) -> tuple[list[str], dict[str, int]]:
    dice = random.Random(seed)
    ids = [f"d{number}" for number in range(dice.randint(1, 15))]
    ranking = dice.sample(ids, dice.randint(1, len(ids)))
    return ranking, {one: dice.randint(1, 3) for one in dice.sample(ids, dice.randint(1, len(ids)))}


def theirs(name: str, ranking: list[str], grades: dict[str, int], k: int | None) -> float:
    """Return what ranx makes of a ranking, which it wants as scores."""
    ranx = import_module("ranx")
    scores = {one: float(len(ranking) - rank) for rank, one in enumerate(ranking)}
    run, qrels = ranx.Run({"q": scores}), ranx.Qrels({"q": grades})
    return float(ranx.evaluate(qrels, run, name if k is None else f"{name}@{k}"))


def ours(kind: type[RankingMetric], ranking: list[str], grades: dict[str, int], **parameters: Any) -> float:
    """Return the score of the same ranking here; grades are for the one metric that knows any."""
    given: dict[str, Any] = {"relevance": grades} if kind is NDCG else {"reference_context_ids": list(grades)}
    return kind(**parameters).score(retrieved_context_ids=ranking, **given).value


@each_metric
@pytest.mark.parametrize("k", [None, 1, 3, 5, 20])
def test_a_ranking_scores_as_it_does_there(
    name: str, kind: type[RankingMetric], parameters: dict[str, Any], k: int | None
) -> None:
    for ranking, grades in (*HAND_MADE, *map(made_up, range(60))):
        expected = theirs(name, ranking, grades, k)
        if kind is PrecisionAtK and k is not None:
            expected *= k / min(k, len(ranking))
        assert ours(kind, ranking, grades, k=k, **parameters) == pytest.approx(expected), (ranking, grades)


@each_metric
def test_a_repeated_id_counts_at_its_first_rank(
    name: str, kind: type[RankingMetric], parameters: dict[str, Any]
) -> None:
    """There a run cannot hold one twice; here it may, and scores as it would without."""
    for seed in range(60):
        ranking, grades = made_up(seed)
        dice = random.Random(seed)
        repeated = list(ranking)
        for one in dice.sample(ranking, dice.randint(1, len(ranking))):
            repeated.insert(dice.randint(ranking.index(one) + 1, len(repeated)), one)
        first = list(dict.fromkeys(repeated))
        assert ours(kind, repeated, grades, **parameters) == pytest.approx(theirs(name, first, grades, None))


@each_metric
def test_nothing_retrieved_scores_nothing(name: str, kind: type[RankingMetric], parameters: dict[str, Any]) -> None:
    """There an empty ranking cannot be told from one without hits, which scores 0.0."""
    assert theirs(name, ["other"], {"a": 1}, None) == 0.0
    assert ours(kind, [], {"a": 1}, **parameters) == 0.0
