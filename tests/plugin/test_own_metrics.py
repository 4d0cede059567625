"""Metrics of a suite's own: registered by a hook, and known by name wherever metrics are named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.metrics import Metric
from pytest_ragmetrics.metrics.registry import registered_metrics
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import HOW, ONE, Run, RunPytest

METRICS = """
    from pytest_ragmetrics import MetricResult, Verdict, metric
    from pytest_ragmetrics.judges.tasks import AnswerQuestions
    from pytest_ragmetrics.metrics import Metric, Relevance, SimpleCriteria
    @metric
    def brevity(response): return min(1.0, 10 / len(response))
    @metric(better="lower", scale=(0, 10))
    def shouts(response): return response.count("!")
    @metric
    async def answered(response, ask):
        questions = ("Is moss green?", "Is it soft?")
        judged = await ask(AnswerQuestions(text=response, questions=questions))
        return [Verdict(text=q, ok=j.ok, reason=j.reason) for q, j in zip(questions, judged)]
    @metric
    def helpful(sample):
        parts = [Relevance(), SimpleCriteria(definition="Is it calm?", highest=4)]
        scores = [part.score_sample(sample) for part in parts]
        return MetricResult(min(scores), metric="helpful", usage=scores[0].usage + scores[1].usage)
    class Calm(Metric):
        name = "calm"
        aliases = ("quiet",)
        def measure(self, sample): return MetricResult("!" not in sample.response, metric=self.name)
"""
HOOK = """
    from own import Calm, answered, brevity, helpful, shouts
    def pytest_ragmetrics_register_metrics(): return [brevity, shouts, answered, helpful, Calm]
"""
SUITE = """
    from own import answered
    ROWS = [{"id": f"r{n}", "answer": "Moss is green" + "!" * n} for n in range(3)]
    @pytest.mark.rag_gate("Calm", mean=0.3)
    @pytest.mark.rag_gate("shouts", rate=0.5, max=1)
    @pytest.mark.rag_dataset(ROWS, metrics=["brevity", "shouts", "quiet", "answered"])
    def test_golden(rag_sample, rag_scores):
        assert rag_scores["brevity"] >= 0.5
        assert rag_scores["quiet"] == rag_scores["Calm"] == (rag_sample.id == "r0")
        assert rag_scores["answered"].judge == "openai:gpt-mine"
    def test_names():
        table = evaluate(ROWS, ["brevity", "shouts"])
        assert table.scores("shouts") == [0.0, 1.0, 2.0]
        assert_sample(ROWS[1], brevity=0.5, shouts=1, answered=0.5)
        assert_ragas_score(ROWS[0], metrics=["brevity", "calm"], min=0.5)
    def test_explained(): assert_sample(ROWS[1], brevity=0.9, shouts=0, answered=0.1)
    @pytest.mark.rag_votes(3)
    @pytest.mark.rag_judge("openai:gpt-other")
    def test_votes():
        result = answered.score(response="Moss is soft.")
        assert (len(result.samples), result.judge) == (3, "openai:gpt-other")
    POOLS = [{"id": f"r{n}", "question": f"Is pool {n} blue?", "answer": f"Pool {n} is."} for n in range(4)]
    @pytest.mark.rag_dataset(POOLS, metrics=["helpful"])
    def test_parts(rag_scores):
        usage = rag_scores["helpful"].usage
        assert usage.calls + usage.cached_calls == 2
"""
JUDGED = ("--rag-judge=openai:gpt-mine", "--rag-json=out.json")


@pytest.fixture
def own(pytester: pytest.Pytester, run: RunPytest) -> RunPytest:
    """Run with the metrics in a module and the hook in the conftest.py."""
    pytester.makepyfile(own=METRICS)

    def run_own(*args: str, conftest: str = HOOK, **files: str) -> Run:
        return run(*args, conftest=conftest, **files)

    return run_own


#: Metrics beside their tests; the second module has another one of the same name, and imports one.
BESIDE = """
    from pytest_ragmetrics.metrics import Metric, NumbersAligned
    {more}
    @metric
    def terseness(response): return min(1.0, {length} / len(response))
    class Calm(Metric):
        name = "calmness"
        def measure(self, sample): return MetricResult("!" not in sample.response, metric=self.name)
    ROWS = [{{"id": "a", "answer": "Moss is green!", "contexts": ["Moss."]}}]
    @pytest.mark.rag_gate("terseness", mean=0.1)
    @pytest.mark.rag_dataset(ROWS, metrics={{"terseness": 0.1, "Calm": 0.0, "{other}": 1}})
    def test_rows(rag_scores):
        assert rag_scores["terseness"].value == {length} / 14
        assert rag_scores["Calm"] == 0.0
    def test_sample():
        assert assert_sample(ROWS[0], terseness=0.1, calmness=0.0)["terseness"].value == {length} / 14
    def test_table(): assert evaluate(ROWS, ["terseness"]).scores("terseness") == [{length} / 14]
"""


BOTH = {
    "other": METRICS,
    "test_a": BESIDE.format(length=7, other="figures", more='figures = NumbersAligned(name="figures")'),
    "test_b": BESIDE.format(length=14, other="shouts", more="from other import shouts as noise"),
}


def test_they_are_known_everywhere(own: RunPytest, server: FakeOpenAI) -> None:
    result = own(*JUDGED, *ONE, **BOTH, test_suite=SUITE)
    result.assert_outcomes(passed=19, failed=1)
    assert server.calls == 14
    short = "E *AssertionError: 2 of 3 metrics fell short: brevity 0.71 < 0.90, shouts 1.00 > 0.00"
    result.shows(short, "E *shouts 1.00 > 0.00", "answered *", "brevity *", "calm *", "judge calls: 14 made *")
    assert sum(line.endswith(" shouts 1.00 > 0.00") for line in result.outlines if "fell short" not in line) == 1
    assert "pytest_ragmetrics/evaluation/assert_sample.py" not in str(result.stdout)
    tests = result.named
    records = {record["metric"]: record for record in tests["test_golden[r1]"]["records"]}
    assert records["brevity"]["threshold"] == {"operator": ">=", "bound": 0.5}
    assert records["shouts"]["better"] == "lower"
    assert [verdict["text"] for verdict in records["answered"]["verdicts"]] == ["Is moss green?", "Is it soft?"]
    decided = {name: (it["metric"], it["outcome"]) for name, it in result.gates.items() if "golden" in name}
    assert decided == {
        "test_golden[gate-calm-mean-0.3]": ("calm", "passed"),
        "test_golden[gate-shouts-rate-0.5-max-1]": ("shouts", "passed"),
    }
    sampled = {r["metric"]: r["threshold"] for r in tests["test_names"]["records"] if r["threshold"]}
    assert sampled["shouts"] == {"operator": "<=", "bound": 1.0}
    assert sampled["answered"] == {"operator": ">=", "bound": 0.5}
    # Of a metric that is made of others the parts have records of what they cost; the whole adds nothing to the sum.
    parts = [record for name, test in tests.items() if "test_parts" in name for record in test["records"]]
    calls = sorted((record["metric"], record["usage"]["calls"]) for record in parts)
    assert calls == [*[("helpful", 0)] * 4, *[("relevance", 1)] * 4, *[("simple_criteria", 1)] * 4]


def test_they_are_known_in_the_module_that_has_them(run: RunPytest) -> None:
    elsewhere = """
        def test_elsewhere():
            with pytest.raises(ValueError, match="there is no metric 'terseness'"):
                assert_sample({"answer": "Moss is green."}, terseness=0.1)
    """
    run(**BOTH, test_c=elsewhere).assert_outcomes(passed=9)


def test_a_dry_run_asks_nothing(own: RunPytest, server: FakeOpenAI) -> None:
    result = own("--rag-dry-run", *JUDGED, test_suite=SUITE)
    assert (result.ret, server.calls) == (pytest.ExitCode.OK, 0)
    result.shows("answered *")


def test_a_name_may_be_taken_over(own: RunPytest) -> None:
    hook = """
        from pytest_ragmetrics import metric
        @metric(name="faithfulness")
        def strict(response): return response == "Moss."
        def pytest_ragmetrics_register_metrics(): return [strict]
    """
    suite = """
        @pytest.mark.rag_dataset([{"answer": "Moss."}], metrics=["Faithfulness"])
        def test_it(rag_sample, rag_scores):
            assert rag_scores["faithfulness"] == 1.0
            assert_sample(rag_sample, Faithfulness=1.0)
    """
    own(conftest=hook, test_it=suite).assert_outcomes(passed=1)


def test_folders_may_register_their_own(own: RunPytest) -> None:
    hook = "def pytest_ragmetrics_register_metrics(): return "
    suite = """
        @pytest.mark.rag_dataset([{"answer": "Moss."}], metrics=["calm"])
        def test_it(rag_sample, rag_scores): assert rag_scores["calm"] == 1
    """
    deep = {"deep/conftest": f"from own import Calm\n{hook}(Calm,)", "deep/test_deep": suite}
    own(conftest=f"{hook}None", **deep).assert_outcomes(passed=1)


class Calm(Metric):
    """A metric that is complete."""

    name = "calm"

    def measure(self, sample: Sample) -> MetricResult:
        """Return the score."""
        return MetricResult(1.0, metric=self.name)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (3, "returned 3; return a list of metrics"),
        (Calm, "returned <class '.*Calm'>; return a list of metrics"),
        (["calm"], "returned 'calm', which is no metric and no class of metrics$"),
        ([len], "returned .*, which is no metric and no class of metrics; write @metric above it"),
        ([Metric], "returned .*, which cannot score; implement measure\\(\\) or judged\\(\\)"),
        ([type("Odd", (Calm,), {"name": " "})], "returned .*, which has no name; give the class a name"),
        ([Calm(), Calm()], "returned 'calm', which is also a metric of conftest.py; rename one of them"),
    ],
)
def test_what_is_no_metric(returned: object, said: str) -> None:
    hooks: list[Any] = [SimpleNamespace(plugin_name="conftest.py", function=lambda: returned)]
    with pytest.raises(ValueError, match=f"^conftest.py: pytest_ragmetrics_register_metrics {said}"):
        registered_metrics(hooks)


#: Names a metric in both markers.
MARKED = """
    @pytest.mark.rag_gate("calm", mean=0)
    @pytest.mark.rag_dataset([{}], metrics=["calm"])
    def test_it(rag_sample): pass
    def test_other(): pass
"""


@HOW
def test_what_is_no_metric_ends_the_run(own: RunPytest, how: list[str]) -> None:
    result = own(*how, conftest="def pytest_ragmetrics_register_metrics(): return [1 / 0]", test_it=MARKED)
    assert result.ret == (pytest.ExitCode.TESTS_FAILED if how else pytest.ExitCode.USAGE_ERROR)
    said = "*ERROR: *conftest.py: pytest_ragmetrics_register_metrics raised ZeroDivisionError: division by zero"
    (result.stdout if how else result.stderr).fnmatch_lines([said])
    assert "passed" not in str(result.stdout)


def test_an_unknown_name_comes_with_similar_ones(own: RunPytest) -> None:
    result = own(test_it=MARKED.replace('metrics=["calm"]', 'metrics=["brevty"]'))
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.shows("*there is no metric 'brevty': did you mean brevity?")
