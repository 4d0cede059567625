"""Whole runs with --rag-batch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fake_batches import FakeBatches
from tests.plugin.conftest import RunPytest

ROWS = """
    SOURCE = "Pump {} needs two minutes to fill."
    ROWS = [{"id": f"q{n}", "user_input": "How long?", "response": f"Pump {n} needs two minutes.",
             "retrieved_contexts": [SOURCE.format(n)]} for n in range(12)]
    @pytest.mark.rag_gate("faithfulness", mean=0.5)
    @pytest.mark.rag_dataset(ROWS, metrics={"faithfulness": 0.5})
    def test_rows(rag_sample, rag_scores): pass
"""
OTHERS = """
    def test_alone(): assert_faithful("The valve opens.", ["The valve opens."])
    def test_among_errors():
        with pytest.raises(Exception):
            assert_faithful("The lamp is lit.", ["Herons eat fish."])
    def test_table(rag_evaluate):
        samples = [{"response": "The pump hums.", "retrieved_contexts": ["The pump hums."]}]
        assert rag_evaluate(samples, ["faithfulness"]).rows
    def test_without_a_judge(): pass
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBatches]:
    """Return a running provider, which the environment names to every run inside the test."""
    with FakeBatches() as running:
        running.name_in(monkeypatch)
        monkeypatch.setenv("RAGMETRICS_JUDGE", "openai:gpt-5.4-mini")
        yield running
    assert (running.twice, sum(running.paid_singly.values())) == (0, 0)


def sizes(server: FakeBatches) -> list[int]:
    return [len(batch.requests) for batch in server.batches.values()]


def test_two_jobs(server: FakeBatches, run: RunPytest) -> None:
    """Tests that wait are skipped, and so are their gates; after two waves all tests run from the cache."""
    server.delay = 60.0
    result = run("--rag-batch=submit", "-rs", test_a=ROWS, test_b=OTHERS)
    result.assert_outcomes(passed=1, skipped=16)
    posted = "batch openai_batch_0: openai:gpt-5.4-mini, 15 requests, submitted"
    result.shows(posted, "collect them later with --rag-batch=collect*", "SKIPPED*waits for batch rag-*")
    state = "batch openai_batch_0: *, 15 requests, in_progress, 0 of 15 done"
    waiting = run("--rag-batch=collect", "-rs")
    waiting.shows(state, "SKIPPED*waits for batch openai_batch_0", passed=1, skipped=16)
    for _ in range(2):
        server.clock += 60.0
        last = run("--rag-batch=collect")
    last.assert_outcomes(passed=17)
    assert sizes(server) == [15, 15]


def test_a_gate_waits_for_the_answers_of_the_baseline(server: FakeBatches, run: RunPytest) -> None:
    rows = ROWS.replace("mean=0.5", "regression=True")
    run("--rag-batch=wait", "--rag-json=main.json", test_a=rows).assert_outcomes(passed=12, skipped=1)
    now, other = rows.replace("needs two minutes.", "hums."), "--rag-judge=openai:gpt-5.4-nano"
    run("--rag-batch=wait", other, test_a=now).assert_outcomes(passed=12, skipped=1)
    against = (other, "--rag-baseline=main.json")
    run("--rag-batch=submit", "-rs", *against).shows("SKIPPED*waits for batch rag-*", passed=12, skipped=1)
    run("--rag-batch=wait", *against).assert_outcomes(passed=13)
    assert sizes(server) == [12] * 6


def test_rows_wait_together(server: FakeBatches, run: RunPytest) -> None:
    server.slow_polls = 1
    result = run("--rag-batch=wait", "--rag-concurrency=1", test_a=ROWS)
    result.shows("ragmetrics: 0 of 12 rows done ahead; *_batch_0: in_progress, 0 of 12 done", passed=13)
    assert sizes(server) == [12, 12]


def test_an_application_is_waited_for(server: FakeBatches, run: RunPytest) -> None:
    slow = """
        import asyncio
        @pytest.fixture(scope="session")
        def rag_respond():
            async def respond(sample):
                await asyncio.sleep(0.25 * int(sample.id))
                return {"response": f"Pump {sample.id} hums.", "retrieved_contexts": [f"Pump {sample.id} hums."]}
            return respond
        @pytest.mark.rag_dataset([{"id": n, "user_input": "How long?"} for n in "0123"], metrics=["faithfulness"])
        def test_rows(rag_sample): pass
    """
    run("--rag-batch=wait", test_a=slow).assert_outcomes(passed=4)
    assert sizes(server) == [4, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rag-batch=later"], "--rag-batch: 'later' is not one of wait, submit, collect"),
        (["--rag-batch=wait", "-p", "xdist", "-n2"], "*each worker would post its own batches*run without -n"),
        (["--rag-batch=submit", "--rag-cache=off"], "*in the cache, which --rag-cache=off does not read"),
        (["--rag-batch=submit", "--rag-cache=refresh"], "*which --rag-cache=refresh does not read"),
    ],
)
def test_options_that_cannot_be(run: RunPytest, options: list[str], message: str) -> None:
    run(*options).refused(f"ERROR: {message}")


def test_a_refused_batch_ends_the_run(server: FakeBatches, run: RunPytest) -> None:
    server.has_batches = False
    result = run("--rag-batch=submit", test_a=ROWS)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert any("has no batches; run without --rag-batch" in line for line in result.errlines)


def test_a_dry_run_knows_the_price(server: FakeBatches, run: RunPytest) -> None:
    costs = []
    for args in ([], ["--rag-batch=submit"]):
        result = run("--rag-dry-run", *args, test_a=ROWS)
        (line,) = [line for line in result.outlines if line.startswith("total")]
        costs.append(float(line.rpartition("$")[2]))
    assert costs[1] == pytest.approx(costs[0] / 2, abs=0.0001)
    assert sizes(server) == []
