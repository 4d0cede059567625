"""Processes forked inside a test: a child asks on its own connections, and the parent goes on as before."""

from __future__ import annotations

import os

import pytest

from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import RunPytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")]

SUITE = """
    import gc, os
    from concurrent.futures import ThreadPoolExecutor
    from pytest_ragmetrics.metrics import Faithfulness, SemanticSimilarity
    METRIC = Faithfulness()
    OWN = Faithfulness(judge="openai:given")
    SIMILARITY = SemanticSimilarity(embedder="openai:vectors")
    def fields(text):
        return {"user_input": "?", "response": f"Ivy climbs on {text}.", "retrieved_contexts": ["Ivy climbs."]}
    def scored(text, metric=METRIC): return metric.score(**fields(text)).value
    def child(work):
        pid = os.fork()
        if not pid:
            status = 9
            try:
                status = int(work() != 1.0)
            finally:
                os._exit(status)
        return pid
    def ended(pids): return [os.waitpid(pid, 0)[1] for pid in pids]
    def test_before_first_use():
        assert ended([child(lambda: scored("a wall"))]) == [0]
        assert scored("a fence") == 1.0
    def test_after_first_use_several_at_once():
        assert scored("a tree") == 1.0
        pids = [child(lambda: scored(f"house {number}")) for number in range(2)]
        assert scored("a hedge") == 1.0
        assert ended(pids) == [0] * 2
        assert scored("a gate") == 1.0
    def test_a_child_of_a_child():
        def work():
            first = child(lambda: scored("a shed"))
            return scored("a barn") if ended([first]) == [0] else 0.0
        assert ended([child(work)]) == [0]
    def test_in_the_middle_of_requests():
        with ThreadPoolExecutor(4) as threads:
            under_way = [threads.submit(scored, f"pole {number}") for number in range(4)]
            pids = [child(lambda: scored(f"mast {number}")) for number in range(2)]
            assert [each.result() for each in under_way] == [1.0] * 4
        assert ended(pids) == [0] * 2
    def test_a_judge_and_an_embedder_that_were_given():
        assert scored("a roof", OWN) == 1.0
        same = {"response": "Ivy.", "reference": "Ivy."}
        assert SIMILARITY.score(**same).value == pytest.approx(1.0)
        other = {"response": "Oak.", "reference": "Oak."}
        work = [lambda: scored("a tile", OWN), lambda: round(SIMILARITY.score(**other).value, 6)]
        assert ended(map(child, work)) == [0, 0]
        assert scored("a brick", OWN) == 1.0
        assert SIMILARITY.score(response="Elm.", reference="Elm.").value == pytest.approx(1.0)
    def test_a_table():
        def table(*texts):
            rows = evaluate([fields(text) for text in texts], [METRIC]).rows
            return float(all(row.results["faithfulness"].value == 1.0 for row in rows))
        assert table("rope", "wire") == 1.0
        assert ended([child(lambda: table("hemp", "cord", "string"))]) == [0]
        assert table("line", "chain") == 1.0
    def test_a_child_that_ends_as_a_script():
        assert scored("a post") == 1.0
        pid = os.fork()
        if not pid:
            try:
                assert scored("a pile") == 1.0
                gc.collect()
                # As the end of a script does, connections and loops are finalised.
                import atexit
                atexit._run_exitfuncs()
                gc.collect()
            except BaseException:
                os._exit(9)
            os._exit(0)
        assert ended([pid]) == [0]
        assert scored("a rail") == 1.0
"""


def test_children_and_parent_score_and_each_request_is_made_once(
    run_once: RunPytest, shared_server: FakeOpenAI
) -> None:
    run = run_once(
        "-p", "no:randomly", "--rag-timeout=60", "--rag-max-calls=500", provider=shared_server, test_suite=SUITE
    )
    run.assert_outcomes(passed=7)
    asked = 2 * (2 + 5 + 2 + 6 + 3 + 7 + 3) + 3
    assert (shared_server.calls, shared_server.answered, shared_server.duplicates) == (asked, asked, 0)
    run.shows(f"budget: {asked} of 500 calls, *")
