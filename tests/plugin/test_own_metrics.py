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
from tests.plugin.conftest import SERIAL, RunPytest, Scored

METRICS = """
    from pytest_ragmetrics import MetricResult, Verdict, metric
    from pytest_ragmetrics.judges.tasks import AnswerQuestions
    from pytest_ragmetrics.metrics import Metric, Relevance, SimpleCriteria

    @metric
    def brevity(response):
        return min(1.0, 10 / len(response))

    @metric(better="lower", scale=(0, 10))
    def shouts(response):
        return response.count("!")

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

        def measure(self, sample):
            return MetricResult("!" not in sample.response, metric=self.name)
"""
HOOK = """
    from own import Calm, answered, brevity, helpful, shouts
    def pytest_ragmetrics_register_metrics():
        return [brevity, shouts, answered, helpful, Calm]
"""
SUITE = """
    import pytest
    from pytest_ragmetrics import assert_ragas_score, assert_sample, evaluate
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
    def test_explained():
        assert_sample(ROWS[1], brevity=0.9, shouts=0, answered=0.1)
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

    def run_own(*args: str, conftest: str = HOOK, **files: str) -> pytest.RunResult:
        return run(*args, conftest=conftest, **files)

    return run_own


def assert_known(result: pytest.RunResult, tests: dict[str, dict[str, Any]]) -> None:
    """Check that the suite knows the metrics everywhere, and every report has them with threshold and verdicts."""
    result.stdout.fnmatch_lines(
        [
            "E *AssertionError: 2 of 3 metrics fell short: brevity 0.71 < 0.90, shouts 1.00 > 0.00",
            "E *shouts 1.00 > 0.00",
            *("answered *", "brevity *", "calm *"),
            "judge calls: 14 made *",
        ]
    )
    assert sum(line.endswith(" shouts 1.00 > 0.00") for line in result.outlines if "fell short" not in line) == 1
    assert "pytest_ragmetrics/evaluation/assert_sample.py" not in str(result.stdout)
    records = {record["metric"]: record for record in tests["test_suite.py::test_golden[r1]"]["records"]}
    assert records.keys() == {"brevity", "shouts", "calm", "answered"}
    assert records["brevity"]["threshold"] == {"operator": ">=", "bound": 0.5}
    assert records["shouts"]["better"] == "lower"
    assert [verdict["text"] for verdict in records["answered"]["verdicts"]] == ["Is moss green?", "Is it soft?"]
    gates = {name.partition("::")[2]: test["gate"] for name, test in tests.items() if test["gate"]}
    decided = {name: (gate["metric"], gate["outcome"]) for name, gate in gates.items() if "golden" in name}
    assert decided == {
        "test_golden[gate-calm-mean-0.3]": ("calm", "passed"),
        "test_golden[gate-shouts-rate-0.5-max-1]": ("shouts", "passed"),
    }
    sampled = {r["metric"]: r["threshold"] for r in tests["test_suite.py::test_names"]["records"] if r["threshold"]}
    assert sampled["shouts"] == {"operator": "<=", "bound": 1.0}
    assert sampled["answered"] == {"operator": ">=", "bound": 0.5}
    # Of a metric that is made of others the parts have records of what they cost; the whole adds nothing to the sum.
    parts = [record for name, test in tests.items() if "test_parts" in name for record in test["records"]]
    calls = sorted((record["metric"], record["usage"]["calls"]) for record in parts)
    assert calls == [*[("helpful", 0)] * 4, *[("relevance", 1)] * 4, *[("simple_criteria", 1)] * 4]


def test_they_are_known_everywhere(own: RunPytest, server: FakeOpenAI, scored: Scored) -> None:
    """The marker, gates, tables and assertions take their names."""
    result = own(*JUDGED, test_suite=SUITE)
    result.assert_outcomes(passed=11, failed=1)
    assert server.calls == 14
    assert_known(result, scored())


def test_a_dry_run_asks_nothing(own: RunPytest, server: FakeOpenAI) -> None:
    """Requests of one's own metrics are forecast, and nothing is held against them."""
    result = own("--rag-dry-run", *JUDGED, test_suite=SUITE)
    assert result.ret == pytest.ExitCode.OK
    assert server.calls == 0
    result.stdout.fnmatch_lines(["answered *"])


def test_a_name_may_be_taken_over(own: RunPytest) -> None:
    """A metric of one's own may stand for one of the package, under all of its names."""
    own(
        conftest="""
            from pytest_ragmetrics import metric
            @metric(name="faithfulness")
            def strict(response):
                return response == "Moss."
            def pytest_ragmetrics_register_metrics():
                return [strict]
        """,
        test_it="""
            import pytest
            from pytest_ragmetrics import assert_sample
            @pytest.mark.rag_dataset([{"answer": "Moss."}], metrics=["Faithfulness"])
            def test_it(rag_sample, rag_scores):
                assert rag_scores["faithfulness"] == 1.0
                assert_sample(rag_sample, Faithfulness=1.0)
        """,
    ).assert_outcomes(passed=1)


def test_folders_may_register_their_own(own: RunPytest, pytester: pytest.Pytester) -> None:
    """A conftest.py that is loaded late is asked as well, and nothing is asked of a hook that returns nothing."""
    folder = pytester.mkdir("deep")
    (folder / "conftest.py").write_text(
        "from own import Calm\ndef pytest_ragmetrics_register_metrics():\n    return (Calm,)"
    )
    (folder / "test_deep.py").write_text(
        "import pytest\n@pytest.mark.rag_dataset([{'answer': 'Moss.'}], metrics=['calm'])\n"
        "def test_it(rag_sample, rag_scores):\n    assert rag_scores['calm'] == 1\n"
    )
    own(conftest="def pytest_ragmetrics_register_metrics():\n    return None").assert_outcomes(passed=1)


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
    """The error names who returned it, and what to return."""
    hooks: list[Any] = [SimpleNamespace(plugin_name="conftest.py", function=lambda: returned)]
    with pytest.raises(ValueError, match=f"^conftest.py: pytest_ragmetrics_register_metrics {said}"):
        registered_metrics(hooks)


#: Names a metric in both markers.
MARKED = """
    import pytest
    @pytest.mark.rag_gate("calm", mean=0)
    @pytest.mark.rag_dataset([{}], metrics=["calm"])
    def test_it(rag_sample):
        pass
    def test_other():
        pass
"""


@pytest.mark.parametrize("how", [SERIAL, ["-p", "xdist", "-n1"]], ids=["one process", "workers"])
def test_what_is_no_metric_ends_the_run(own: RunPytest, how: list[str]) -> None:
    """No test runs, and the controller shows what a worker says."""
    result = own(*how, conftest="def pytest_ragmetrics_register_metrics():\n    return [1 / 0]", test_it=MARKED)
    assert result.ret == (pytest.ExitCode.TESTS_FAILED if how else pytest.ExitCode.USAGE_ERROR)
    said = "*ERROR: *conftest.py: pytest_ragmetrics_register_metrics raised ZeroDivisionError: division by zero"
    (result.stdout if how else result.stderr).fnmatch_lines([said])
    assert "passed" not in str(result.stdout)


def test_an_unknown_name_comes_with_similar_ones(own: RunPytest) -> None:
    """The metrics of the suite are among the names that are offered."""
    result = own(test_it=MARKED.replace('metrics=["calm"]', 'metrics=["brevty"]'))
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*there is no metric 'brevty': did you mean brevity?"])


#: Metrics beside their tests; the second module has another one of the same name, and imports one.
BESIDE = """
    import pytest
    from pytest_ragmetrics import assert_sample, evaluate, metric
    from pytest_ragmetrics import MetricResult
    from pytest_ragmetrics.metrics import Metric, NumbersAligned
    {more}

    @metric
    def terseness(response):
        return min(1.0, {length} / len(response))

    class Calm(Metric):
        name = "calmness"

        def measure(self, sample):
            return MetricResult("!" not in sample.response, metric=self.name)

    ROWS = [{{"id": "a", "answer": "Moss is green!", "contexts": ["Moss."]}}]

    @pytest.mark.rag_gate("terseness", mean=0.1)
    @pytest.mark.rag_dataset(ROWS, metrics={{"terseness": 0.1, "Calm": 0.0, "{other}": 1}})
    def test_rows(rag_scores):
        assert rag_scores["terseness"].value == {length} / 14
        assert rag_scores["Calm"] == 0.0

    def test_sample():
        assert assert_sample(ROWS[0], terseness=0.1, calmness=0.0)["terseness"].value == {length} / 14

    def test_table():
        assert evaluate(ROWS, ["terseness"]).scores("terseness") == [{length} / 14]
"""


BOTH = {
    "other": METRICS,
    "test_a": BESIDE.format(length=7, other="figures", more='figures = NumbersAligned(name="figures")'),
    "test_b": BESIDE.format(length=14, other="shouts", more="from other import shouts as noise"),
}


def test_they_are_known_in_the_module_that_has_them(run: RunPytest) -> None:
    """Without a hook: each test has those of its module, and none has those of another."""
    elsewhere = """
        import pytest
        from pytest_ragmetrics import assert_sample

        def test_elsewhere():
            with pytest.raises(ValueError, match="there is no metric 'terseness'"):
                assert_sample({"answer": "Moss is green."}, terseness=0.1)
    """
    run(**BOTH, test_c=elsewhere).assert_outcomes(passed=9)


def test_workers_know_them_as_one_process_does(own: RunPytest, server: FakeOpenAI, scored: Scored) -> None:
    """Those of the hook and those of a module; the controller reports them."""
    result = own(*JUDGED, "-p", "xdist", "-n1", **BOTH, test_suite=SUITE)
    result.assert_outcomes(passed=19, failed=1)
    assert server.calls == 14
    assert_known(result, scored())
