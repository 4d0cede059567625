"""Scoring on Ray: a real cluster of two processors on this machine, and a real server as judge."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.data import DataContext

import pytest_ragmetrics.evaluation.ray as on_ray
from pytest_ragmetrics import evaluate, metric
from pytest_ragmetrics.cli import main
from pytest_ragmetrics.judges.transports.budget import Limits
from tests.fake_openai import FakeOpenAI, failing, rate_limited

FAITHFUL = {"faithfulness": 0.8, "quoted_spans_alignment": None}


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        patch.setenv("OPENAI_API_KEY", "sk-fake")
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        DataContext.get_current().enable_progress_bars = False
        yield server
        ray.shutdown()


@pytest.fixture(autouse=True)
def _fresh(server: FakeOpenAI) -> None:
    server.reset()


def rows(number: int, *, different: int | None = None) -> list[dict[str, Any]]:
    texts = [f'It rains {n % (different or number)} mm. It says "the rain is over".' for n in range(number)]
    return [{"id": f"q{n}", "response": text, "contexts": [text[:15], "No."]} for n, text in enumerate(texts)]


def scored(given: list[dict[str, Any]], folder: Path, metrics: Any = None, **options: Any) -> dict[str, dict[str, Any]]:
    dataset = ray.data.from_items(given, override_num_blocks=8)
    chosen = FAITHFUL if metrics is None else metrics
    options = {"judge": "openai:fake", "concurrency": 8, "cache_dir": folder, **options}
    found = on_ray.score(dataset, chosen, **options).take_all()
    assert sorted(row["id"] for row in found) == sorted(row["id"] for row in given)
    return {row["id"]: row for row in found}


def test_scores_are_those_of_one_process(server: FakeOpenAI, tmp_path: Path) -> None:
    server.latency = 0.01
    given = rows(300, different=60)
    found = scored(given, tmp_path)
    assert server.duplicates == 0
    assert 1 < server.in_flight_max <= 8
    calls = server.calls
    table = evaluate(given, list(FAITHFUL), judge="openai:fake", cache_dir=tmp_path)
    assert server.calls == calls
    for row in table.rows:
        flat = found[row.sample.id or ""]
        assert flat["response"] == row.sample.response
        for name, bound in FAITHFUL.items():
            result = row.results[name]
            passed = None if bound is None else result.value >= bound
            wanted = {"score": result.value, "reason": result.reason, "judge": result.judge}
            wanted |= {"passed": passed, "unscored": None}
            assert {field: flat[f"{name}_{field}"] for field in wanted} == wanted


def test_all_actors_have_one_budget(server: FakeOpenAI, tmp_path: Path) -> None:
    found = scored(rows(120), tmp_path, budget=Limits(calls=50))
    assert 40 <= server.calls <= 50
    unscored = [row["faithfulness_unscored"] for row in found.values() if row["faithfulness_score"] is None]
    assert len(unscored) >= 95
    assert all("budget calls=50 is reached" in reason for reason in unscored)
    assert all(row["quoted_spans_alignment_score"] is not None for row in found.values())


def test_a_killed_actor_loses_nothing(server: FakeOpenAI, tmp_path: Path) -> None:
    """Its rows are scored by another, and what was answered is not asked again."""
    server.latency = 0.05
    killed: list[int] = []

    def kill() -> None:
        while server.answered < 60:
            time.sleep(0.01)
        killed.append(workers()[0])
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    found = scored(rows(200), tmp_path)
    assert len(killed) == 1
    assert all(row["faithfulness_score"] is not None for row in found.values())
    # What it had in flight came to nobody: a share of four requests.
    assert server.duplicates <= 16
    assert server.answered - server.duplicates == 400


def workers() -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            continue
        if name.startswith(b"ray::MapWorker(MapBatches(ScoringActor))") and raylet_is_ours(parent):
            found.append(int(folder.name))
    return found


def raylet_is_ours(parent: int) -> bool:
    session = ray._private.worker._global_node.get_session_dir_path()
    return session.encode() in Path(f"/proc/{parent}/cmdline").read_bytes()


def test_a_row_that_kills_its_worker_is_left_out(server: FakeOpenAI, tmp_path: Path) -> None:
    """Ray would try again without end; the other rows of its batch are scored."""
    attempts = tmp_path / "attempts"

    @metric
    def survival(response: str) -> float:
        if "rains 7 mm" in response:
            with attempts.open("a") as stream:
                stream.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return 1.0

    found = scored(rows(24), tmp_path, [survival], actors=1)
    assert found["q7"]["survival_unscored"] == "not scored: it was being scored when 2 workers were killed"
    assert [row["id"] for row in found.values() if row["survival_score"] is None] == ["q7"]
    assert len(attempts.read_text()) == 3


def test_a_storm_of_429_passes(server: FakeOpenAI, tmp_path: Path) -> None:
    refused: Counter[str] = Counter()
    answer = server.answer

    def refuse(body: dict[str, Any]) -> Any:
        # Counted by request: of every other one of all, two actors in step would always get the same.
        refused[str(body)] += 1
        return rate_limited(0.02) if refused[str(body)] == 1 else answer(body)

    server.answer = refuse
    found = scored(rows(100), tmp_path)
    assert all(row["faithfulness_score"] is not None for row in found.values())
    assert server.answered == 200
    assert server.calls == 400


def test_a_provider_is_given_up_for_all_actors(server: FakeOpenAI, tmp_path: Path) -> None:
    server.answer = lambda _: failing(401, code="invalid_api_key")
    found = scored(rows(300), tmp_path)
    assert all("the key was refused" in row["faithfulness_unscored"] for row in found.values())
    assert server.calls <= 8


def test_an_error_in_a_row_is_that_of_the_row(server: FakeOpenAI, tmp_path: Path) -> None:
    @metric
    def kindness(response: str) -> float:
        return 1 / (len(response) - 3)

    numbers = count()
    given = [{"id": f"{next(numbers)}", "response": text, "x": 1} for text in ("Yes", "Maybe", None)]
    found = scored(given, tmp_path, [kindness])
    assert "ZeroDivisionError" in found["0"]["kindness_unscored"]
    assert found["1"]["kindness_score"] == 0.5
    assert "has no field to score" in found["2"]["kindness_unscored"]


def test_it_is_refused_at_once() -> None:
    dataset = ray.data.from_items(rows(2))
    with pytest.raises(ValueError, match="concurrency=1 is less than one request for each of 2 actors"):
        on_ray.score(dataset, ["faithfulness"], concurrency=1, actors=2)
    with pytest.raises(ValueError, match="there is no metric 'kindness'"):
        on_ray.score(dataset, ["kindness"])


def test_the_command_scores_on_a_cluster(
    server: FakeOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "".join(f"{json.dumps(row)}\n" for row in rows(1200, different=40))
    Path("log.jsonl").write_text(f"{text}{{bad\n", "utf-8")
    args = ["score", "log.jsonl", "--metrics", "faithfulness=0.8,quoted_spans_alignment", "--judge", "openai:fake"]
    assert main([*args, "-o", "one.jsonl"]) == 0
    calls = server.calls
    ray.shutdown()
    assert main([*args, "-o", "ray.jsonl", "--on", "ray"]) == 0, capsys.readouterr()
    assert server.calls == calls
    one, other = (Path(name).read_text("utf-8").splitlines() for name in ("one.jsonl", "ray.jsonl"))
    assert list(map(plain, one)) == list(map(plain, other))
    assert "1,201 rows scored" in capsys.readouterr().out


def plain(line: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(line)
    for record in row["records"]:
        del record["usage"]
    return row
