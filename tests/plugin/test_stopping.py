"""Sets that are asked until their gates are decided: how many rows, in which order, with workers as in one process."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from tests.plugin.conftest import MANY, ONE, RunPytest

SUITE = """
    import os, time
    ROWS = [{"id": f"r{n}", "user_input": "?", "cluster": f"c{n // 3}" if n < 30 else None} for n in range(60)]
    BROKEN = [*ROWS[:20], {"id": "odd", "answer": 3}, *ROWS[21:]]
    @metric
    def hum(response): return float(response)
    @metric
    def hum_two(response): return float(response)
    @pytest.fixture(scope="session")
    def rag_respond():
        def respond(sample):
            with open("asked.txt", "a") as file:
                file.write(sample.id + "\\n")
            if sample.id in os.environ.get("LOST", "").split():
                raise KeyError(sample.id)
            return "1"
        return respond
    @pytest.mark.rag_gate("hum", rate=0.7, min=0.5, confidence=0.95, stop_when_decided=True)
    @pytest.mark.rag_gate("hum", mean=0.6, confidence=0.9, stop_when_decided=True)
    @pytest.mark.rag_dataset(ROWS, metrics=[hum, hum_two])
    def test_marked(rag_sample):
        if os.environ.get("BREAK") and rag_sample.id == os.environ["BREAK"]:
            time.sleep(1)  # xdist fails where it sends to a worker that ends
            os._exit(3)
    @pytest.mark.rag_gate("hum", mean=0.7)
    @pytest.mark.rag_dataset(BROKEN, metrics=[hum])
    def test_plain(rag_sample): pass
    @pytest.mark.rag_gate("hum", mean=0.7, stop_when_decided=False)
    @pytest.mark.rag_dataset(ROWS[:20], metrics=[hum])
    def test_whole(rag_sample): pass
    @pytest.mark.rag_gate("hum", mean=0.7, confidence=0.95, stop_when_decided=True)
    @pytest.mark.rag_gate("hum", regression=True)
    @pytest.mark.rag_dataset(ROWS[:20], metrics=[hum])
    def test_with_another(rag_sample): pass
"""
#: The tenth row, which decides, is slow, and the next block waits for it.
LATE = """
    import time
    ROWS = [{"id": f"r{n}", "user_input": "?"} for n in range(40)]
    @metric
    def hum(response): return float(response)
    @pytest.fixture(scope="session")
    def rag_respond(request):
        tests = [item for item in request.session.items if item.nodeid.startswith("test_late.py::test_golden[r")]
        order = [item.callspec.params["rag_sample"].row.sample.id for item in tests]
        def respond(sample):
            place = order.index(sample.id)
            if place >= 10:
                raise KeyError(place)
            time.sleep(0.5 if place == 9 else 0.0)
            return "1"
        return respond
    @pytest.mark.rag_gate("hum", mean=0.5, confidence=0.95, stop_when_decided=True)
    @pytest.mark.rag_dataset(ROWS, metrics=[hum])
    def test_golden(rag_sample): pass
"""
ASKED = ("--rag-seed=north", "--rag-json=out.json", "-rs", "-v")


def test_no_further_row_is_asked(run: RunPytest, run_once: RunPytest) -> None:
    asked_all = (*ASKED, "--rag-stop-when-decided")
    alone = run(*asked_all, test_suite=SUITE)
    many = run_once(*MANY, *asked_all, test_suite=SUITE, test_late=LATE)
    for ran, passed_late, skipped_late in ((alone, 0, 0), (many, 11, 30)):
        found = ran.gates
        marked = found["test_marked[gate-hum-rate-0.7-min-0.5-confidence-0.95]"]
        mean = found["test_marked[gate-hum-mean-0.6-confidence-0.9]"]
        plain = found["test_plain[gate-hum-mean-0.7]"]
        assert {gate["outcome"] for gate in (marked, mean, plain)} == {"passed"}
        for gate, metrics in ((marked, 2), (plain, 1)):
            stop = gate["stop"]
            assert (stop["seed"], gate["total"]) == ("north", 60)
            assert gate["n"] <= stop["decided_after"] < 40
            # To the end of the block that decided it: ten rows, then eight each; the broken row fails in any case.
            end = 10 + 8 * math.ceil((stop["decided_after"] - 10) / 8)
            assert stop["asked"] == end + (gate is plain)
            assert stop["spared"] == 60 - stop["asked"]
            assert stop["judgements"] == stop["spared"] * metrics
        assert mean["stop"]["decided_after"] <= marked["stop"]["decided_after"]
        assert plain["confidence"] == 0.95
        spared = marked["stop"]["spared"] + plain["stop"]["spared"]
        passed = 2 * 60 + 2 * 20 - spared - 1 + 5 + passed_late
        ran.assert_outcomes(passed=passed, skipped=spared + 1 + skipped_late, errors=1)
        asked = Counter(ran.text("asked.txt").split())
        assert sum(asked.values()) == 2 * 20 + 60 - marked["stop"]["spared"] + 59 - plain["stop"]["spared"]
        after = marked["stop"]["decided_after"]
        spared, all_gates = marked["stop"]["spared"], "all 2 gates of the set were decided"
        ran.shows(
            f"gate: *decided after {after} of 60 rows (seed north), {spared} not needed, *",
            f"SKIPPED [[]{spared}[]] test_suite.py:*: not needed: {all_gates} after {after} of 60 rows",
            f"SKIPPED [[]{plain['stop']['spared']}[]] *: not needed: gate-hum-mean-0.7 was decided after *",
        )  # fmt: skip
        # A gate that says so needs all rows, and so does a regression gate beside one that would stop.
        assert found["test_whole[gate-hum-mean-0.7]"]["stop"] is None
        exact = found["test_with_another[gate-hum-mean-0.7-confidence-0.95]"]
        assert (exact["n"], exact["outcome"], exact["low"]) == (20, "passed", None)
        assert exact["stop"] == {"seed": None, "decided_after": None, "asked": 20, "spared": 0, "judgements": 0}
        assert all(asked[f"r{n}"] >= 2 for n in range(20))
    assert {**many.gates, **alone.gates} == many.gates


def test_a_part_of_the_set_stops_nothing(run: RunPytest) -> None:
    result = run(*ASKED, "-k", "test_marked and r", "--deselect=test_suite.py::test_marked[r59]", test_suite=SUITE)
    result.assert_outcomes(passed=59, skipped=2, deselected=105)
    lines = [line for line in result.outlines if "::test_marked[r" in line]
    assert [line.split("[")[1].split("]")[0] for line in lines] == [f"r{n}" for n in range(59)]
    assert {gate["outcome"] for gate in result.gates.values()} == {"skipped"}


@pytest.mark.slow
def test_a_row_that_was_lost_leaves_the_gate_open(run: RunPytest) -> None:
    only = "test_suite.py::test_marked"
    order = run("--rag-seed=north", "--collect-only", "-q", only, test_suite=SUITE).outlines
    found = run(*ONE, *ASKED, only, env={"BREAK": order[12].split("[")[1].strip("]")}).gates.values()
    assert [(gate["outcome"], gate["stop"]["decided_after"]) for gate in found] == [("inconclusive", None)] * 2
    assert all(0.0 < gate["low"] < gate["bound"] < gate["high"] for gate in found)


def test_a_replay_asks_the_same_rows(run: RunPytest) -> None:
    only = ("--rag-cassette=tape.jsonl", "test_suite.py::test_marked")
    listed = run("--collect-only", "-q", *only, test_suite=SUITE).outlines[:60]
    order = [line.split("[")[1].strip("]") for line in listed]
    stops = [gate["stop"] for gate in run(*only, "--rag-json=out.json").gates.values()]
    assert {stop["seed"] for stop in stops} == {"cassette"}
    (asked,) = {stop["asked"] for stop in stops}
    run(*only, env={"LOST": " ".join(order[asked:])}).assert_outcomes(passed=asked + 2, skipped=60 - asked)


def test_a_dry_run_forecasts_all_rows(run: RunPytest) -> None:
    result = run("--rag-dry-run", "-rs", "test_suite.py::test_marked", test_suite=SUITE)
    result.stdout.no_fnmatch_line("*not needed*")
    result.assert_outcomes(skipped=62)


def test_a_gate_that_cannot_stop_is_an_error(run: RunPytest) -> None:
    suite = """
        @pytest.mark.rag_gate("faithfulness", mean=0.8, confidence=0.9, stop_when_decided=True)
        def test_rowless(): pass
        @pytest.mark.rag_gate("token_f1", mean=0.8, confidence=0.9, stop_when_decided=True)
        @pytest.mark.rag_gate("token_f1", mean=0.8, confidence=0.9)
        @pytest.mark.rag_dataset([{"response": "a", "reference": "a"}], metrics=["token_f1"])
        def test_twice(rag_sample): pass
    """
    rowless = "*needs rows that are scored ahead of their tests; write @pytest.mark.rag_dataset(*"
    twice = "*two gates 'gate-token_f1-mean-0.8-confidence-0.9' differ in stop_when_decided= alone*"
    run(test_suite=suite).shows(rowless, twice)
