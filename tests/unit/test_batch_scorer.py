"""Scores of batches, and what the actors of a cluster share; on a cluster itself they are tested in tests/ray."""

from __future__ import annotations

import pickle
import re
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pyarrow as pa
import pytest

import pytest_ragmetrics.evaluation.ray as on_ray
from pytest_ragmetrics import RagMetricsError, evaluate, scorer
from pytest_ragmetrics.core.errors import BudgetExceededError, JudgeError
from pytest_ragmetrics.judges.transports import pace
from pytest_ragmetrics.judges.transports.budget import BudgetUse, Limits
from tests.fake_openai import FakeOpenAI, failing
from tests.unit.conftest import Call

ROWS: list[dict[str, Any]] = [
    {"id": "a", "response": 'It says "open the valve slowly".', "contexts": ["Open the valve slowly."]},
    {"id": "b", "response": 'It says "the pump is pink".', "contexts": ["No."]},
    {"id": "c", "response": "It rains.", "contexts": None},
    {"id": "d", "response": None, "contexts": None},
]
QUOTED = {"quoted_spans_alignment": 0.9}


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.Table.from_pylist, pa.RecordBatch.from_pylist])
def test_a_batch_gets_flat_columns(kind: Any) -> None:
    score = pickle.loads(pickle.dumps(scorer(QUOTED)))
    assert {score}  # pandas has functions as keys
    batch = score(score(kind(ROWS)))
    assert type(batch) is type(kind(ROWS))
    assert len(getattr(batch, "column_names", batch.columns)) == 10
    rows = batch.to_dict("records") if kind is pd.DataFrame else batch.to_pylist()
    assert list(rows[0]) == [
        *("id", "response", "contexts"),
        *(f"quoted_spans_alignment_{name}" for name in ("score", "passed", "reason", "judge", "cost", "vacuous")),
        "quoted_spans_alignment_unscored",
    ]
    assert [row["id"] for row in rows] == ["a", "b", "c", "d"]
    scored = [[row[f"quoted_spans_alignment_{name}"] for name in ("score", "passed", "vacuous")] for row in rows]
    assert scored[:2] == [[1.0, True, False], [0.0, False, False]]
    assert not any(map(pd.notna, scored[3][:2]))
    assert "has no field to score" in rows[3]["quoted_spans_alignment_unscored"]


def test_an_empty_batch_has_the_same_types() -> None:
    """Dask takes them from it."""
    score = scorer(["faithfulness", "quoted_spans_alignment"], judge="local")
    frame = pd.DataFrame(ROWS)
    assert score(frame.head(0)).dtypes.to_dict() == score(frame).dtypes.to_dict()


def test_batches_have_one_cache_and_raise_nothing(tmp_path: Path, server: FakeOpenAI) -> None:
    batch = pa.Table.from_pylist(ROWS[:2])
    first, second = (scorer(["faithfulness"], judge="openai:fake", cache_dir=tmp_path) for _ in range(2))
    assert first(batch) != batch
    asked = server.calls
    assert second(batch)["faithfulness_judge"].to_pylist() == ["openai:fake"] * 2
    assert server.calls == asked > 0
    server.answer = lambda _: failing(401, code="invalid_api_key")
    reasons = scorer(["faithfulness"], judge="openai:other")(batch)["faithfulness_unscored"].to_pylist()
    assert all("the key was refused" in reason for reason in reasons)


def test_the_limits_of_a_minute_are_kept(server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scorer keeps them where it is sent to; a minute is short here."""
    monkeypatch.setattr(pace, "_MINUTE", 0.1)
    server.latency = 0.05
    score = pickle.loads(pickle.dumps(scorer(["relevance"], judge="openai:fake", rpm=1)))
    rows = [{**row, "question": "What?"} for row in ROWS[:3]]
    score(pd.DataFrame(rows))
    evaluate(rows, "relevance", judge="openai:other", rpm=1, tpm=10_000, progress=False)
    assert (server.calls, server.in_flight_max) == (6, 1)
    for call in (partial(scorer, QUOTED), partial(evaluate, rows, "exact_match")):
        with pytest.raises(ValueError, match="tpm must be a whole number from 1 on"):
            call(tpm=0)


def test_what_is_no_batch_is_refused() -> None:
    with pytest.raises(TypeError, match="a batch is a pandas frame or an Arrow table, not list"):
        scorer(QUOTED)(ROWS)
    for metrics, said in (["kindness"], "no metric"), (["exact_match"] * 2, "two metrics"), ([], "at least one metric"):
        with pytest.raises(ValueError, match=said):
            scorer(metrics)


def test_ray_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ragmetrics: Call) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    needed = 'scoring on Ray needs ray: pip install "pytest-ragmetrics[ray]"'
    with pytest.raises(RagMetricsError, match=re.escape(needed)):
        on_ray.score(cast("Any", object()), QUOTED, cache_dir=tmp_path)
    (tmp_path / "log.jsonl").write_text('{"response": "x"}\n', encoding="utf-8")
    args = ["score", tmp_path / "log.jsonl", "--metrics", "exact_match", "-o", tmp_path / "s.jsonl", "--on"]
    for name, expected, said in (("ray", 1, needed), ("spark", 2, "'spark' is neither ray nor ray=ADDRESS")):
        status, _, err = ragmetrics(*args, name)
        assert (status, said in err) == (expected, True), err


@pytest.mark.parametrize(
    ("limits", "each", "most"),
    [
        (Limits(calls=100), BudgetUse(tokens=50, cost=0.01), 100),
        (Limits(calls=1), BudgetUse(), 1),
        (Limits(tokens=5000), BudgetUse(tokens=50), 104),
        (Limits(cost=1.0), BudgetUse(cost=0.01), 104),
        (Limits(calls=1000, cost=1.0), BudgetUse(cost=0.01), 104),
    ],
)
def test_portions_keep_to_a_budget(limits: Limits, each: BudgetUse, most: int) -> None:
    """Two actors that settle a portion when they ask for the next pass a limit by no more than two small portions."""
    shared = on_ray.Coordinator(limits, 2, "--max-")
    granted, spent = [], [BudgetUse(), BudgetUse()]
    for turn in range(2000):
        number, refusal = shared.portion(asdict(spent[turn % 2]))
        spent[turn % 2] = BudgetUse(tokens=number * each.tokens, cost=number * each.cost)
        granted.append(number)
        if not number:
            break
    assert "is reached (" in refusal
    assert refusal.endswith("used): nothing more is asked, and the answers paid for are kept")
    assert most - 4 <= sum(granted) <= most
    assert max(granted) == (16 if most > 1 else 1)


def test_a_coordinator_knows_who_was_killed_and_who_gave_up() -> None:
    """Rows begun and not ended were being scored when a worker was killed; providers are asked again later."""
    now = 1000.0
    shared = on_ray.Coordinator(Limits(), 2, "--max-", clock=lambda: now)
    refused = {("openai", "fake"): JudgeError("the key was refused")}
    assert shared.begin("a") == (0, {})
    assert shared.begin("b") == (0, {})
    shared.end("b", refused, {"tokens": 3})
    assert shared.begin("a") == (1, refused)
    assert shared.begin("a") == (2, refused)
    shared.end("a", {}, {"tokens": 4})
    now += 61
    assert shared.begin("a") == (0, {})
    assert shared.used() == BudgetUse(tokens=7)


def test_the_requests_of_all_actors_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each asks the coordinator for its portions, before it makes a request."""
    shared = on_ray.Coordinator(Limits(calls=3), 2, "budget ")
    here = SimpleNamespace(portion=SimpleNamespace(remote=shared.portion))
    errors = SimpleNamespace(RayError=ConnectionError)
    monkeypatch.setattr(on_ray, "_ray", lambda: SimpleNamespace(get=lambda answer: answer, exceptions=errors))
    one, other = (on_ray.SharedBudget(Limits(calls=3), here, "budget ") for _ in range(2))
    for actor in (one, other, one):
        with actor.request("mine", kind="custom", model="mine"):
            pass
    with (
        pytest.raises(BudgetExceededError, match="budget calls=3 is reached"),
        other.request("mine", kind="custom", model="mine"),
    ):
        pass
    assert other.spent()["refused"] == 1
