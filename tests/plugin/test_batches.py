"""Whole runs with --rag-batch, and runs that are killed at every step of one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_batches import FakeBatches
from tests.plugin.conftest import RunOnce

ROWS = """
    import pytest

    ROWS = [
        {
            "id": f"q{number}",
            "user_input": "How long?",
            "response": f"Pump {number} needs two minutes.",
            "retrieved_contexts": [f"Pump {number} needs two minutes to fill."],
        }
        for number in range(12)
    ]

    @pytest.mark.rag_gate("faithfulness", mean=0.5)
    @pytest.mark.rag_dataset(ROWS, metrics={"faithfulness": 0.5})
    def test_rows(rag_sample, rag_scores):
        pass
"""
OTHERS = """
    import pytest
    from pytest_ragmetrics import assert_faithful

    def test_alone():
        assert_faithful("The valve opens.", ["The valve opens."])

    def test_among_errors():
        with pytest.raises(Exception):
            assert_faithful("The lamp is lit.", ["Herons eat fish."])

    def test_table(rag_evaluate):
        samples = [{"response": "The pump hums.", "retrieved_contexts": ["The pump hums."]}]
        assert rag_evaluate(samples, ["faithfulness"]).rows

    def test_without_a_judge():
        pass
"""
SPECS = {"openai": "openai:gpt-5.4-mini", "anthropic": "anthropic:claude-haiku-4-5"}


@pytest.fixture
def server() -> Iterator[FakeBatches]:
    """Return a running provider of both kinds."""
    with FakeBatches() as running:
        yield running


def environment(server: FakeBatches) -> dict[str, str]:
    """Return the variables that name a provider."""
    keys = {"OPENAI_API_KEY": "sk-fake", "ANTHROPIC_API_KEY": "sk-fake"}
    return {**keys, "OPENAI_BASE_URL": server.openai_url, "ANTHROPIC_BASE_URL": server.anthropic_url}


def test_two_jobs(server: FakeBatches, run_once: RunOnce) -> None:
    """Tests that wait are skipped, their gates too; two waves later all of them run from the cache."""
    server.delay = 60.0
    env = {**environment(server), "RAGMETRICS_JUDGE": SPECS["openai"]}
    first = run_once("--rag-batch=submit", "-rs", env=env, test_a=ROWS, test_b=OTHERS)
    first.result.assert_outcomes(passed=1, skipped=16)
    first.result.stdout.fnmatch_lines(
        [
            "batch openai_batch_0: openai:gpt-5.4-mini, 15 requests, submitted",
            "collect them later with --rag-batch=collect*",
            "SKIPPED*waits for batch rag-*",
        ]
    )
    waiting = run_once("--rag-batch=collect", "-rs", env=env, folder=first.folder, test_a=ROWS, test_b=OTHERS)
    waiting.result.assert_outcomes(passed=1, skipped=16)
    waiting.result.stdout.fnmatch_lines(
        ["batch openai_batch_0: *, 15 requests, in_progress, 0 of 15 done", "SKIPPED*waits for batch openai_batch_0"]
    )
    for _ in range(2):
        server.clock += 60.0
        last = run_once("--rag-batch=collect", env=env, folder=first.folder, test_a=ROWS, test_b=OTHERS)
    last.result.assert_outcomes(passed=17)
    assert [len(batch.requests) for batch in server.batches.values()] == [15, 15]
    assert (server.twice, sum(server.paid_singly.values())) == (0, 0)


@pytest.mark.parametrize("vendor", SPECS)
def test_rows_wait_together(server: FakeBatches, run_once: RunOnce, vendor: str) -> None:
    """All rows are in each wave, however few requests may be in flight."""
    server.slow_polls = 1
    args = ("--rag-batch=wait", f"--rag-judge={SPECS[vendor]}", "--rag-concurrency=1")
    run = run_once(*args, env=environment(server), test_a=ROWS)
    run.result.assert_outcomes(passed=13)
    run.result.stdout.fnmatch_lines(["ragmetrics: 0 of 12 rows done ahead; *_batch_0: in_progress, 0 of 12 done"])
    assert [len(batch.requests) for batch in server.batches.values()] == [12, 12]
    assert (server.twice, sum(server.paid_singly.values())) == (0, 0)


SLOW = """
    import asyncio
    import pytest

    ROWS = [{"id": f"q{number}", "user_input": f"How long, {number}?"} for number in range(4)]

    @pytest.fixture(scope="session")
    def rag_respond():
        async def respond(sample):
            await asyncio.sleep(0.5 * int(sample.id[1:]))
            return {"response": f"Pump {sample.id} hums.", "retrieved_contexts": [f"Pump {sample.id} hums."]}
        return respond

    @pytest.mark.rag_dataset(ROWS, metrics=["faithfulness"])
    def test_rows(rag_sample):
        pass
"""


def test_an_application_is_waited_for(server: FakeBatches, run_once: RunOnce) -> None:
    """A row that is being answered may still lead to requests."""
    run = run_once("--rag-batch=wait", f"--rag-judge={SPECS['openai']}", env=environment(server), test_a=SLOW)
    run.result.assert_outcomes(passed=4)
    assert [len(batch.requests) for batch in server.batches.values()] == [4, 4]


STEPS = {
    "openai": ("upload:before", "upload:after", "create:before", "create:after", "retrieve:after", "content:after"),
    "anthropic": ("create:before", "create:after", "retrieve:after", "content:after"),
}


@pytest.mark.parametrize(("vendor", "step"), [(vendor, step) for vendor, steps in STEPS.items() for step in steps])
def test_killed_at_every_step(server: FakeBatches, tmp_path: Path, vendor: str, step: str) -> None:
    """A run that is killed there is finished by the next, and each request is paid once."""
    (tmp_path / "test_a.py").write_text(ROWS.replace("\n    ", "\n"), "utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "ragmetrics", f"--rag-judge={SPECS[vendor]}", "--rag-batch=wait"]
    options = {"cwd": tmp_path, "env": {**os.environ, **environment(server)}, "stdout": subprocess.DEVNULL}
    server.holds = step
    process = subprocess.Popen(command, **options)  # type: ignore[call-overload]
    assert server.reached.wait(60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    server.release()
    assert subprocess.run(command, check=False, timeout=120, **options).returncode == 0  # type: ignore[call-overload]
    assert sum(server.paid.values()) == 24
    assert (server.twice, sum(server.paid_singly.values())) == (0, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rag-batch=later"], "--rag-batch: 'later' is not one of wait, submit, collect"),
        (["--rag-batch=wait", "-p", "xdist", "-n2"], "*each worker would post its own batches*run without -n"),
        (
            ["--rag-batch=submit", "--rag-cache=off"],
            "*in the cache, which --rag-cache=off does not read",
        ),
        (["--rag-batch=submit", "--rag-cache=refresh"], "*which --rag-cache=refresh does not read"),
    ],
)
def test_options_that_cannot_be(pytester: pytest.Pytester, options: list[str], message: str) -> None:
    """They end the run before a test, and say what to write instead."""
    result = pytester.runpytest_inprocess("-p", "ragmetrics", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_a_refused_batch_ends_the_run(server: FakeBatches, run_once: RunOnce) -> None:
    """A run that submits nothing has not passed."""
    server.has_batches = False
    args = ("--rag-batch=submit", f"--rag-judge={SPECS['openai']}")
    run = run_once(*args, env=environment(server), test_a=ROWS)
    assert run.result.ret == pytest.ExitCode.USAGE_ERROR
    assert any("has no batches; run without --rag-batch" in line for line in run.result.errlines)


def test_a_dry_run_knows_the_price(run_once: RunOnce) -> None:
    """It forecasts half the cost, and posts nothing."""
    costs = []
    for args in ([], ["--rag-batch=submit"]):
        run = run_once("--rag-dry-run", f"--rag-judge={SPECS['openai']}", *args, test_a=ROWS)
        (line,) = [line for line in run.result.outlines if line.startswith("total")]
        costs.append(float(line.rpartition("$")[2]))
    assert costs[1] == pytest.approx(costs[0] / 2, abs=0.0001)
