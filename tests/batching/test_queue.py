"""Requests in batches, against both providers' routes over HTTP: what is paid for, kept, said and asked again."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import BatchPendingError, BudgetExceededError, CacheError, JudgeError
from pytest_ragmetrics.evaluation.engine import Engine
from pytest_ragmetrics.judges.batches.queue import Batching
from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.judges.prices import price
from pytest_ragmetrics.judges.providers.vendor import VENDORS
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transports.budget import Budget, Limits
from pytest_ragmetrics.judges.transports.values import Answered
from tests.fake_answers import answer_sensibly
from tests.fake_batches import DAY, Body, FakeBatches
from tests.fake_openai import Reply

SPECS = {"openai": "openai:gpt-5.4-mini", "anthropic": "anthropic:claude-haiku-4-5"}
TEXTS = tuple(f"Pump {number} hums." for number in range(6))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBatches]:
    with FakeBatches() as running:
        running.name_in(monkeypatch)
        yield running


@pytest.fixture(params=SPECS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    return Run(SPECS[request.param], tmp_path)


#: For what no provider has a part in.
ONE_VENDOR = pytest.mark.parametrize("run", ["openai"], indirect=True)


class Run:
    """Runs that ask for the claims of texts, one after another with one cache folder."""

    def __init__(self, spec: str, folder: Path) -> None:
        self.spec = spec
        self.folder = folder
        self.summary: list[str] = []
        #: The seconds that were to be waited.
        self.pauses: list[float] = []

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(min(seconds, 0.01))

    def __call__(self, mode: Any, texts: Any = TEXTS, *, fallback: bool = False, **options: Any) -> list[Any]:
        batching = Batching(mode=mode, fallback=fallback, pause=self.pause)
        engine = Engine(judge=self.spec, cache_dir=self.folder, batching=batching, **options)
        try:
            judge, queue = engine.judge(), engine.queue
            assert queue is not None
            asked = loop.run(_asked(judge, engine, texts))
            loop.run(queue.post())
            self.summary = queue.summary(engine.cache.holds)
        finally:
            engine.close()
        return asked

    def other(self, thing: str) -> None:
        """Have another account submit texts of the same sizes."""
        Run(self.spec, self.folder / thing)("submit", tuple(text.replace("Pump", thing) for text in TEXTS))

    @property
    def ledger(self) -> list[Path]:
        return sorted((self.folder / "batches").glob("*.json*"))


async def _asked(judge: Judge, engine: Engine, texts: tuple[str, ...]) -> list[Any]:
    asked = (judge.ask(ListClaims(text=text), transport=engine.transport) for text in texts)
    return await asyncio.gather(*asked, return_exceptions=True)


def answered(found: list[Any]) -> int:
    for each in found:
        assert isinstance(each, (Answered, JudgeError, BatchPendingError, BudgetExceededError)), repr(each)
    return sum(isinstance(each, Answered) for each in found)


def sizes(server: FakeBatches) -> list[int]:
    return [len(batch.requests) for batch in server.batches.values()]


def test_wait_answers_in_one_batch_at_half_the_price(server: FakeBatches, run: Run) -> None:
    found = run("wait")
    assert answered(found) == len(TEXTS)
    assert [each.answer for each in found] == [(text,) for text in TEXTS]
    assert (len(server.batches), len(server.paid_singly)) == (1, 0)
    kind, model = run.spec.split(":")
    full = [price(kind, model, it.usage.prompt_tokens, it.usage.completion_tokens) for it in found]
    assert [it.usage.cost for it in found] == [pytest.approx((cost or 0.0) / 2) for cost in full]
    assert run.ledger == []
    # Once stored, nothing is asked again.
    assert (answered(run("wait")), len(server.batches)) == (len(TEXTS), 1)


@ONE_VENDOR
def test_requests_that_trickle_in_are_one_batch(server: FakeBatches, run: Run) -> None:
    """It goes when there has been no further request for a while."""
    engine = Engine(judge=run.spec, cache_dir=run.folder, batching=Batching(mode="wait"))

    async def ask(number: int, text: str) -> object:
        await asyncio.sleep(0.03 * number)
        return await engine.judge().ask(ListClaims(text=text), transport=engine.transport)

    loop.run(loop.gather_or_cancel(ask(number, f"Lamp {number} is lit.") for number in range(10)))
    engine.close()
    assert sizes(server) == [10]


@pytest.fixture
def shared(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "shared").mkdir()
    return {"cache_url": (tmp_path / "shared").as_uri()}


@ONE_VENDOR
def test_a_batch_asks_for_what_no_machine_has(server: FakeBatches, run: Run, tmp_path: Path, shared: Any) -> None:
    """Replies of a batch are shared, and what is shared is not posted."""
    assert answered(run("wait", **shared)) == len(TEXTS)
    run.folder = tmp_path / "next"
    assert answered(run("wait", (*TEXTS, "Wells are deep."), **shared)) == len(TEXTS) + 1
    assert sizes(server) == [len(TEXTS), 1]


@ONE_VENDOR
def test_a_batch_that_came_too_late_is_forgotten(server: FakeBatches, run: Run, tmp_path: Path, shared: Any) -> None:
    """Nobody asks for its replies any more: it is not to be collected, unless one of them is in no cache."""
    server.delay = 60.0
    for name, texts in (("slow", TEXTS), ("slower", (*TEXTS, "Wells are deep."))):
        run.folder = tmp_path / name
        run("submit", texts, **shared)
    run.folder = tmp_path / "fast"
    server.delay = 0.0
    assert answered(run("wait", **shared)) == len(TEXTS)
    server.delay = 60.0
    for name, left in (("slow", 0), ("slower", 1)):
        run.folder = tmp_path / name
        assert answered(run("collect", **shared)) == len(TEXTS)
        assert (len(run.ledger), len(run.summary)) == (left, 2 * left)


def test_submit_and_collect(server: FakeBatches, run: Run) -> None:
    server.delay = 60.0
    assert all("waits for batch rag-" in str(each) for each in run("submit"))
    (name,) = server.batches
    assert any(name in line and "6 requests" in line for line in run.summary)
    for mode in ("collect", "submit", "collect"):
        assert {str(each) for each in run(mode)} == {f"waits for batch {name}"}
    assert "--rag-batch=collect" in run.summary[-1]
    run("submit", (*TEXTS, "Wells are deep."))
    server.clock += 60.0
    assert answered(run("collect", (*TEXTS, "Wells are deep."))) == len(TEXTS) + 1
    assert (sizes(server), server.twice, run.ledger) == ([len(TEXTS), 1], 0, [])


def _invalid_first(body: Body) -> str:
    return "No JSON." if len(body["messages"]) <= 2 else answer_sensibly(body)


@pytest.mark.parametrize("mode", ["wait", "collect"])
def test_chains_are_waves(server: FakeBatches, run: Run, mode: str) -> None:
    """A chain of two, as a repair is, takes two batches, however many there are."""
    server.answer = _invalid_first
    for _ in range(3):
        found = run(mode)
    assert (answered(found), sizes(server), server.twice) == (len(TEXTS), [6, 6], 0)


def _late(body: Body) -> bool:
    return "Pump 2" in json.dumps(body)


CONFUSED = Reply(status=400, error={"message": "The model is confused.", "type": "invalid_request_error"})
OVERLOADED = Reply(status=500, error={"message": "Overloaded.", "type": "server_error"})


def _failing(body: Body) -> str | Reply:
    return CONFUSED if _late(body) else answer_sensibly(body)


def _cut_off(body: Body) -> str | Reply:
    return Reply(text='{"cl', finish="length") if _late(body) else answer_sensibly(body)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"answer": _failing}, "The model is confused."),
        ({"expires": _late}, "expired|in time"),
        ({"answer": _cut_off}, "cut off by its length limit"),
    ],
)
def test_a_line_that_fails_says_why(server: FakeBatches, run: Run, fault: dict[str, Any], reason: str) -> None:
    vars(server).update(fault)
    run("submit")
    server.clock += DAY
    found = run("collect")
    assert answered(found) == 5
    with pytest.raises(JudgeError, match=f"batch .*({reason})"):
        raise found[2]
    server.answer, server.expires = answer_sensibly, lambda _: False
    assert (answered(run("wait")), sizes(server)) == (len(TEXTS), [6, 1])


@pytest.mark.parametrize("fault", [{"answer": _failing}, {"expires": _late}])
def test_fallback_asks_a_failed_line_at_once(server: FakeBatches, run: Run, fault: dict[str, Any]) -> None:
    vars(server).update(fault)
    run("submit")
    server.clock += DAY
    run("submit", TEXTS[:1])
    server.answer = answer_sensibly if "expires" in fault else server.answer
    found = run("collect", fallback=True)
    assert answered(found) == (6 if "expires" in fault else 5)
    assert sum(server.paid_singly.values()) == ("expires" in fault)


@pytest.mark.parametrize(
    ("fault", "reason", "mended"),
    [
        ({"answer": lambda _: OVERLOADED}, "Overloaded.", {"answer": answer_sensibly}),
        ({"rejects": 1}, "The batch is rejected.", {}),
        ({"token_limit": True}, "Enqueued token limit", {"token_limit": False}),
        ({"has_batches": False}, "has no batches; run without --rag-batch", {"has_batches": True}),
    ],
)
def test_a_batch_that_fails_as_a_whole_is_forgotten(
    server: FakeBatches, run: Run, fault: dict[str, Any], reason: str, mended: dict[str, Any]
) -> None:
    """Nothing was paid, so the next run posts it."""
    if "token_limit" in fault:
        run.spec = SPECS["openai"]
    vars(server).update(fault)
    assert all(reason in str(each) for each in run("wait"))
    assert (run.ledger, len(server.paid)) == ([], 0)
    vars(server).update(mended)
    assert answered(run("wait")) == len(TEXTS)


@pytest.mark.parametrize(
    "quirk", [{"empty_error_file": True}, {"cut": 1}, {"polls_fail": 2}, {"early": 2}, {"foreign": False}]
)
def test_quirks(server: FakeBatches, run: Run, quirk: dict[str, Any]) -> None:
    vars(server).update(quirk)
    if run.spec.startswith("anthropic") and "early" in quirk:
        server.early = 0
    assert (answered(run("wait")), len(server.batches), server.twice) == (len(TEXTS), 1, 0)


def test_results_that_stay_cut_off_are_not_lost(server: FakeBatches, run: Run) -> None:
    run("submit")
    server.cut = 3
    assert (answered(run("collect")), answered(run("collect"))) == (0, len(TEXTS))
    assert (len(server.batches), server.twice) == (1, 0)


def _ids(key: str) -> list[object]:
    """Return what may stand in the place of an id."""
    return [None, "nobody", [key], {"id": key}, 10**30, "\ud800"]


def _rests() -> list[Body]:
    """Return what may stand behind an id in the place of a result."""
    strange = [("r", "\ud800"), ([], [1]), (1, 1)]
    bodies: list[object] = [None, [], {"choices": float("nan"), "content": float("nan")}]
    return [
        {},
        *({"response": one, "result": one, "error": error} for one, error in strange),
        *({"response": {"status_code": 200, "body": b}, "result": {"type": "succeeded", "message": b}} for b in bodies),
        {"error": {"param": []}, "result": {"type": [], "error": {"error": {"error": []}}}},
    ]


def _spoilt(key: str, row: Body) -> list[list[str]]:
    """Return lines in the place of one, by which its answer is lost."""
    line = json.dumps(row)
    texts = ["null", "[]", f"[{line}]", "7", '"custom_id"', "{}", "<html>502 Bad Gateway</html>", " "]
    texts += [line[:40], line * 2, "[" * 100_000, "9" * 10_000]
    texts += [json.dumps({**row, "custom_id": wrong}) for wrong in _ids(key)]
    texts += [json.dumps({"custom_id": key, **rest}) for rest in _rests()]
    return [[], *([text] for text in texts)]


def _harmless(key: str, row: Body) -> list[list[str]]:
    """Return lines in the place of one, with which nothing is lost."""
    line, failed = json.dumps(row), json.dumps({"custom_id": key})
    return [[line] * 2, [failed, line], [line, failed], ["", line, "\r"], ["null", line, "[]"]]


def test_a_line_that_is_no_result_is_lost_alone(server: FakeBatches, run: Run) -> None:
    """The others are answered; its request says what is missing, and is the only one that is asked again."""
    lost, kept = len(_spoilt("", {})), len(_harmless("", {}))
    texts = tuple(f"Pump {number:03} hums." for number in range(lost + kept))

    def spoil(row: Body) -> list[str]:
        key, (batch,) = row["custom_id"], server.batches.values()
        asked = json.dumps(dict(batch.requests).get(key))
        kinds = zip([*_spoilt(key, row), *_harmless(key, row)], texts, strict=True)
        return next((kind for kind, text in kinds if text in asked), ["{}"])

    server.spoil = spoil
    run("submit", texts)
    found = run("collect", texts)
    assert [isinstance(each, Answered) for each in found] == [False] * lost + [True] * kept
    assert answered(found) == kept
    assert all(str(error).encode("utf-8").isascii() for error in found[:lost])
    assert re.search("there is no line for it, and the batch is .*; 1[0-9] of its [0-9]+ lines name no", str(found[0]))
    server.spoil = lambda row: [json.dumps(row)]
    assert (answered(run("wait", texts)), sizes(server), run.ledger) == (len(texts), [len(texts), lost], [])


@pytest.mark.parametrize("line", ["null", "{}", '{"custom_id": "nobody"}', "<html>"])
def test_a_batch_of_such_lines_is_not_posted_again_in_the_same_run(server: FakeBatches, run: Run, line: str) -> None:
    server.spoil = lambda _: [line]
    assert (answered(run("wait")), len(server.batches)) == (0, 1)
    server.spoil = lambda row: [json.dumps(row)]
    assert (answered(run("wait")), len(server.batches)) == (len(TEXTS), 2)


@pytest.mark.parametrize("accepted", [True, False])
def test_500_in_place_of_acceptance(server: FakeBatches, run: Run, accepted: bool) -> None:
    """The provider is asked what it has before anything is posted again, where batches of others are as well."""
    run.other("Valve")
    before = server.log.count("create")
    vars(server).update({"fails_after" if accepted else "fails_before": 1})
    assert (answered(run("wait")), len(server.batches), server.twice) == (len(TEXTS), 2, 0)
    assert server.log.count("create") - before == (not accepted)
    # A batch may take a moment to be listed. Anthropic's other batch was found instead.
    assert accepted or (5.0 in run.pauses) is run.spec.startswith("openai")


def test_a_batch_of_others_is_not_taken_for_ours(server: FakeBatches, run: Run) -> None:
    """One of the same size and time is told by its lines; ours is found among them."""
    run.other("Valve")
    server.fails_after = 1
    run("submit")
    server.fails_after = 0
    run.other("Lamp")
    for _ in range(4):
        found = run("collect")
    assert (answered(found), len(server.batches), server.twice) == (len(TEXTS), 3, 0)


def test_an_earlier_batch_is_not_taken_for_ours(server: FakeBatches, run: Run) -> None:
    server.clock -= 600.0
    run.other("Valve")
    server.clock += 600.0
    server.fails_before = 1
    assert (answered(run("wait")), len(server.batches), server.twice) == (len(TEXTS), 2, 0)
    assert 5.0 in run.pauses


#: What the process imports of which each run is a fork: a second a run.
IMPORTED = (__name__, "anthropic.types.beta", "openai.resources.files", "aiohttp", "diskcache", "genai_prices")
STEPS = [
    *(("openai", f"{step}:{when}") for step in ("upload", "create") for when in ("before", "after")),
    *(("anthropic", f"create:{when}") for when in ("before", "after")),
    *((vendor, f"{step}:after") for vendor in VENDORS for step in ("retrieve", "content")),
]


def _wait(environment: dict[str, str], spec: str, folder: Path) -> None:
    os.environ.update(environment)
    Run(spec, folder)("wait")


@pytest.mark.parametrize(("vendor", "step"), random.Random(10).sample(STEPS, 4))
@pytest.mark.slow
def test_killed_at_any_step(server: FakeBatches, tmp_path: Path, vendor: str, step: str) -> None:
    server.answer, server.holds = _invalid_first, step
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*IMPORTED])
    environment = {name: value for name, value in os.environ.items() if name.startswith(("OPENAI", "ANTHROPIC"))}
    process = context.Process(target=_wait, args=(environment, SPECS[vendor], tmp_path))
    process.start()
    assert server.reached.wait(60)
    process.kill()
    process.join()
    server.release()
    # What was sent before it was killed is accepted all the same.
    while step.partition(":")[0] not in server.log:
        time.sleep(0.01)
    assert answered(Run(SPECS[vendor], tmp_path)("wait")) == len(TEXTS)
    assert (sum(server.paid.values()), server.twice, sum(server.paid_singly.values())) == (2 * len(TEXTS), 0, 0)


def test_a_batch_that_is_gone(server: FakeBatches, run: Run) -> None:
    run("submit")
    server.clock += 31 * DAY
    (first, *_) = run("collect")
    assert "is not there: it is of another account or workspace, or too old" in str(first)


def test_what_a_model_refuses_is_left_out_of_the_next_batch(server: FakeBatches, run: Run) -> None:
    server.refuses = frozenset({"temperature"})
    server.answer = _invalid_first
    run("submit")
    for _ in range(3):
        found = run("collect")
    assert (answered(found), sizes(server)) == (len(TEXTS), [6, 6, 6])


@pytest.mark.parametrize("modes", [["wait"], ["submit", "collect"]])
def test_parts_of_a_wave(server: FakeBatches, run: Run, monkeypatch: pytest.MonkeyPatch, modes: list[str]) -> None:
    """Each is a batch of its own, also where it was announced by a name before."""
    kind = VENDORS[run.spec.partition(":")[0]].kind("batches")
    monkeypatch.setattr(kind, "limits", (4, 10**9))
    *_, found = map(run, modes)
    assert (answered(found), sizes(server)) == (len(TEXTS), [4, 2])


def test_budget_is_charged_with_what_it_took(server: FakeBatches, run: Run) -> None:
    budget = Budget(Limits(calls=4))
    found = run("wait", budget=budget)
    assert (answered(found), sizes(server)) == (4, [4])
    assert sum(isinstance(each, BudgetExceededError) for each in found) == 2
    used, usages = budget.used(), [each.usage for each in found if isinstance(each, Answered)]
    assert used.cost == pytest.approx(sum(usage.cost or 0.0 for usage in usages))
    tokens = sum(usage.prompt_tokens + usage.completion_tokens for usage in usages)
    assert (used.tokens, used.calls) == (tokens, 4)
    # What another run posted was charged there.
    run("submit")
    assert (answered(run("collect", budget=budget)), budget.used()) == (len(TEXTS), used)
    budget.close()


@ONE_VENDOR
def test_replies_are_redacted_before_they_are_kept(server: FakeBatches, run: Run) -> None:
    redact = partial(re.sub, "Mara", "Somebody")
    server.answer = lambda _: '{"claims": ["Mara hums."]}'
    server.delay = 60.0
    run("submit", TEXTS[:1], redact=redact)
    server.clock += 60.0
    # While one batch is waited for the others stay.
    run("submit", TEXTS[1:], redact=redact)
    run("collect", TEXTS[:1], redact=redact)
    kept = "".join(file.read_text("utf-8") for file in run.ledger)
    assert ("Somebody hums" in kept, "Mara" in kept) == (True, False)


@ONE_VENDOR
def test_one_run_at_a_time(server: FakeBatches, run: Run) -> None:
    """Two runs with one folder would post the same requests."""
    engine = Engine(judge=run.spec, cache_dir=run.folder, batching=Batching(mode="wait"))
    with pytest.raises(CacheError, match="another run submits or collects the batches"):
        run("wait")
    engine.close()
    assert answered(run("wait")) == len(TEXTS)


@ONE_VENDOR
@pytest.mark.parametrize("damage", ["{", "[]", '{"name": "rag-1"}'])
def test_a_damaged_ledger_is_not_ignored(server: FakeBatches, run: Run, damage: str) -> None:
    run("submit")
    (file,) = run.ledger
    file.write_text(damage, "utf-8")
    with pytest.raises(CacheError, match="says which requests are paid for: restore it, or delete it"):
        run("collect")
    file.unlink()
    assert answered(run("wait")) == len(TEXTS)


@ONE_VENDOR
def test_the_ledger_is_cleared_only_of_what_was_used(server: FakeBatches, run: Run) -> None:
    run("submit")
    assert (answered(run("collect", TEXTS[:2])), len(run.ledger)) == (2, 2)
    assert (answered(run("collect")), run.ledger, len(server.batches), server.twice) == (len(TEXTS), [], 1, 0)
