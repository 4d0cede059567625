"""A dry run: what a run would ask for, without a request and without a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import RunPytest

SUITE = """
    import pytest
    from pytest_ragmetrics import assert_answer_relevant, assert_faithful, assert_quoted_spans_aligned
    from pytest_ragmetrics.metrics import Faithfulness, Relevance

    CONTEXT = ["The pump hums in May. It is blue."]

    def test_held():
        assert_faithful("The pump hums in May. It is red.", CONTEXT, min=1.0)

    def test_other():
        assert_answer_relevant("Does it hum?", "The pump hums in May.", min=0.99)

    def test_goes_on():
        assert Relevance().score(user_input="Why?", response="Because.") > 1
        assert Relevance().score(user_input="Why not?", response="Because of that.") < 0
        assert False, "it has no real score"

    @pytest.mark.xfail
    def test_expected():
        assert_faithful("The pump is red.", CONTEXT, min=1.0)

    def test_quoted():
        assert_quoted_spans_aligned('It says "the pump is very red".', CONTEXT)

    def test_no_score():
        pass
"""


def files_in(folder: Path) -> set[str]:
    """Return the files of a folder, without what Python and pytest keep."""
    kept = ("__pycache__", ".pytest_cache")
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in found if not any(part in kept for part in path.parts)}


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n2"]], ids=["alone", "xdist"])
def test_what_would_be_asked_is_counted_and_not_asked(
    run: RunPytest, pytester: pytest.Pytester, server: FakeOpenAI, workers: list[str]
) -> None:
    """Requests by metric, tokens and dollars; every test that scores is skipped, whatever came of it."""
    options = ["--rag-dry-run", "-rs", "--rag-json=out.json", "--rag-report=out.html", "--rag-cassette=tape.jsonl"]
    before = files_in(pytester.path) | {"test_it.py"}
    result = run(*workers, *options, test_it=SUITE)
    result.assert_outcomes(passed=1, skipped=5)
    assert result.ret == pytest.ExitCode.OK
    assert server.calls == 0
    assert files_in(pytester.path) == before
    result.stdout.fnmatch_lines(
        [
            "ragmetrics: judge auto, embedder auto, cache auto, dry run: nothing is asked",
            "dry run:",
            "metric                  samples  requests  cached  prompt tokens     cost",
            "(embeddings)                  *         1       0             ??  $0.0000",
            "answer_relevancy              1         1       0            ???  $0.000?",
            "faithfulness                  2         4       0           ????  $0.00??",
            "quoted_spans_alignment        1         0       0              0  $0.0000",
            "relevance                     2         2       0            ???  $0.000?",
            "total                                   8       0           ????  $0.00??",
            "An estimate; no request was made. *",
            "*out.html: not written, this was a dry run",
            "*out.json: not written, this was a dry run",
            "SKIPPED*test_it.py:*: dry run: 2 requests",
        ]
    )


def test_what_is_forecast_is_what_is_asked(run: RunPytest, server: FakeOpenAI) -> None:
    """The same suite, run in earnest, makes as many requests; then a dry run finds them all in the cache."""
    suite = """
        from pytest_ragmetrics import assert_faithful, assert_relevant

        def test_both():
            assert_faithful("The pump hums in May.", ["The pump hums in May."], min=0)
            assert_relevant("Does it hum?", "It hums.", min=0)
            assert_relevant("Does it hum?", "It hums.", min=0)
    """
    forecast = run("--rag-dry-run", test_it=suite)
    run(test_it=suite).assert_outcomes(passed=1)
    forecast.stdout.fnmatch_lines([f"total * {server.calls}       1  *"])
    again = run("--rag-dry-run", "-rs", test_it=suite)
    again.stdout.fnmatch_lines(["total * 0       4              0  $0.0000", "*dry run: 0 requests"])
    assert server.calls == 3


def test_prompt_tokens_are_estimated_in_bytes(run: RunPytest, server: FakeOpenAI) -> None:
    """Four letters make a token; so do somewhat more than one Chinese character."""
    suite = """
        from pytest_ragmetrics.metrics import Relevance

        def test_it():
            Relevance().score(user_input="Does it hum?", response={text!r} * 1000)
    """
    sizes = []
    for text in ("hums", "慢慢来了"):
        lines = run("--rag-dry-run", test_it=suite.format(text=text)).outlines
        sizes.append(int(next(line for line in lines if line.startswith("relevance")).split()[4]))
    assert sizes[1] - sizes[0] == 2000


@pytest.mark.usefixtures("no_provider")
def test_no_key_is_needed(run: RunPytest) -> None:
    """An explicit model has a price whether or not it can be asked; without any judge the price is unknown."""
    suite = """
        from pytest_ragmetrics import assert_answer_relevant, assert_relevant

        def test_it():
            assert_relevant("Does it hum?", "It hums.", min=0.9)
            assert_answer_relevant("Does it hum?", "It hums.")
    """
    known = ["--rag-judge=openai:gpt-4o-mini", "--rag-embedder=openai:text-embedding-3-small"]
    result = run("--rag-dry-run", *known, test_it=suite)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["total *3       0  * $0.000*"])
    result = run("--rag-dry-run", test_it=suite)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["(embeddings) * unknown", "total *3       0  * unknown"])
    result = run("--rag-dry-run", "--rag-judge=no_module:judge", "--rag-embedder=openai:text-embedding-3-small")
    result.stdout.fnmatch_lines(["total *3       0  * $0.0000 + 2 unpriced"])


def test_votes_are_counted_in_full(run: RunPytest, server: FakeOpenAI) -> None:
    """Although an assertion might stop early."""
    suite = """
        from pytest_ragmetrics import assert_relevant

        def test_it():
            assert_relevant("Does it hum?", "It hums.", min=0.5)
    """
    result = run("--rag-dry-run", "--rag-votes=5", test_it=suite)
    result.stdout.fnmatch_lines(["relevance        1         5       0  *"])
    assert server.calls == 0


def test_own_judges_and_embedders_are_not_asked(run: RunPytest, pytester: pytest.Pytester) -> None:
    """Callables, judges of one's own, those of hooks: counted, at a price nobody knows."""
    pytester.makeconftest(
        """
        def fails(*arguments):
            raise RuntimeError("I was asked")

        def pytest_ragmetrics_make_judge(config, spec):
            return fails if spec == "house:judge" else None

        def pytest_ragmetrics_make_embedder(config, spec):
            return fails if spec == "house:embedder" else None
        """
    )
    result = run(
        "--rag-dry-run",
        "--rag-judge=house:judge",
        "--rag-embedder=house:embedder",
        test_it="""
            from conftest import fails
            from pytest_ragmetrics import assert_answer_relevant, assert_relevant
            from pytest_ragmetrics.judges.judge import Judge

            class Mine(Judge):
                name = "mine"

                async def ask(self, task, *, vote=0, transport):
                    fails()

            def test_hooks(rag_judge, rag_embedder):
                assert_answer_relevant("Does it hum?", "It hums.", judge=rag_judge, embedder=rag_embedder)

            def test_callable():
                assert_relevant("Does it hum?", "It hums.", min=1, judge=fails)
                assert_answer_relevant("Why?", "It hums so.", judge=Mine(), embedder=fails)

            def test_local():
                assert_relevant("Does it hum?", "It hums.", min=1, judge="local")
        """,
    )
    result.assert_outcomes(skipped=3)
    result.stdout.fnmatch_lines(["(embeddings)*2       0  *", "relevance*2         1       0  *unknown"])


def test_a_table_and_a_harmonic_mean_are_counted_once(run: RunPytest, server: FakeOpenAI) -> None:
    """evaluate() forecasts; a mean of metrics takes what its metrics take, which here share a question."""
    result = run(
        "--rag-dry-run",
        test_it="""
            from pytest_ragmetrics import assert_ragas_score, evaluate

            TEXTS = {"answer": "It hums.", "contexts": ["It hums."], "reference": "It hums."}
            FIELDS = {"question": "Does it hum?", **TEXTS}

            def test_table():
                table = evaluate([{**FIELDS, "question": f"Does it hum {n}?"} for n in range(3)], ["relevance"])
                assert table.mean("relevance") == 17

            def test_mean():
                assert_ragas_score(FIELDS, metrics=["faithfulness", "context_recall"], min=1)
        """,
    )
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(
        ["ragas_score           1         0 *", "relevance             3         3 *", "total * 5       1 *"]
    )
    assert server.calls == 0


def test_a_recording_is_used_and_stays_as_it_is(run: RunPytest, pytester: pytest.Pytester, server: FakeOpenAI) -> None:
    """What the cassette holds is free; a dry run neither adds to it nor drops what it did not use."""
    suite = """
        import pytest
        from pytest_ragmetrics import assert_relevant

        @pytest.mark.parametrize("number", range({count}))
        def test_it(number):
            assert_relevant(f"Does it hum {{number}}?", "It hums.", min=0)
    """
    tape = ["--rag-cassette=tape.jsonl", f"--rag-cache-dir={pytester.path / 'store'}"]
    run(*tape, test_it=suite.format(count=4)).assert_outcomes(passed=4)
    recorded = (pytester.path / "tape.jsonl").read_text("utf-8")
    for mode in ("auto", "off", "refresh"):
        result = run("--rag-dry-run", "--rag-cassette=tape.jsonl", f"--rag-cache={mode}", test_it=suite.format(count=3))
        made, cached = (0, 3) if mode == "auto" else (3, 0)
        result.stdout.fnmatch_lines([f"relevance        3         {made}       {cached}  *"])
    replayed = run("--rag-dry-run", "--rag-cassette=tape.jsonl", "--rag-cache=replay", test_it=suite.format(count=5))
    replayed.assert_outcomes(skipped=5)
    replayed.stdout.fnmatch_lines(["relevance        5         0       4  *"])
    assert (pytester.path / "tape.jsonl").read_text("utf-8") == recorded
    assert server.calls == 4
    assert not (pytester.path / ".ragmetrics").exists()


def test_fixtures_that_score_are_excused_too(run: RunPytest, server: FakeOpenAI) -> None:
    """A setup that fails for want of a real score skips its test; one that scores nothing fails as ever."""
    result = run(
        "--rag-dry-run",
        test_it="""
            import pytest
            from pytest_ragmetrics.metrics import Relevance

            @pytest.fixture
            def score():
                result = Relevance().score(user_input="Does it hum?", response="It hums.")
                assert float(result) > 7
                return result

            @pytest.fixture
            def broken():
                raise RuntimeError("broken")

            def test_score(score):
                pass

            def test_broken(broken):
                pass
        """,
    )
    result.assert_outcomes(skipped=1, errors=1)
    assert server.calls == 0


def test_embeddings_that_are_kept_are_free(run: RunPytest, server: FakeOpenAI) -> None:
    """Vectors come from the cache where all are there; a text is embedded once."""
    suite = """
        from pytest_ragmetrics import assert_semantically_similar

        def test_it():
            assert_semantically_similar("It hums.", "It {what}.", min=0)
            assert_semantically_similar("It hums.", "It {what}.", min=0)
    """
    run(test_it=suite.format(what="hums")).assert_outcomes(passed=1)
    calls = server.calls
    for what, made in (("hums", 0), ("sings", 1)):
        result = run("--rag-dry-run", test_it=suite.format(what=what))
        result.stdout.fnmatch_lines([f"(embeddings)               4         {made}       {2 - made}  *"])
    assert server.calls == calls


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n2"]], ids=["alone", "xdist"])
def test_a_data_set_is_forecast_without_its_application(run: RunPytest, server: FakeOpenAI, workers: list[str]) -> None:
    """A row without a response is scored as if its reference, or its question, were it; a gate has nothing to hold."""
    result = run(
        "--rag-dry-run",
        *workers,
        test_it="""
            import pytest
            from pytest_ragmetrics import Sample

            ROWS = [
                Sample(user_input=f"Does it hum {n}?", reference=f"It hums {n}.", retrieved_contexts=["It hums."])
                for n in range(4)
            ]

            @pytest.fixture
            def rag_respond():
                raise RuntimeError("asked")

            @pytest.mark.rag_dataset(ROWS, metrics=["faithfulness", "relevance"])
            @pytest.mark.rag_gate("faithfulness", mean=0.85)
            def test_row(rag_sample, rag_scores):
                assert rag_scores["faithfulness"] >= 2
        """,
    )
    result.assert_outcomes(skipped=5)
    result.stdout.fnmatch_lines(["faithfulness * 4 * 8 *", "relevance * 4 * 4 *", "total * 12 *"])
    assert server.calls == 0


def test_contexts_that_only_the_application_knows_are_stood_in_for(run: RunPytest, server: FakeOpenAI) -> None:
    """A row of questions alone costs what asking about its answer costs, not nothing."""
    result = run(
        "--rag-dry-run",
        test_it="""
            import pytest

            ROWS = [
                {"question": "Does it hum?"},
                {"question": "Does it rattle?", "reference": "It rattles."},
                {"question": "Does it leak?", "reference": "It leaks.", "reference_contexts": ["It leaks at night."]},
            ]

            @pytest.mark.rag_dataset(ROWS, metrics=["faithfulness"])
            def test_row(rag_scores):
                assert rag_scores["faithfulness"] >= 0.8
        """,
    )
    result.assert_outcomes(skipped=3)
    result.stdout.fnmatch_lines(["faithfulness * 3 * 6 *"])
    assert server.calls == 0


def test_a_suite_that_scores_nothing_has_nothing_to_forecast(run: RunPytest) -> None:
    """And its tests run as ever."""
    result = run("--rag-dry-run", test_it="def test_it(): pass\ndef test_fails(): assert 1 == 2")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["dry run: no test scored anything"])


def test_properties_of_junit_are_left_out(run: RunPytest, pytester: pytest.Pytester, server: FakeOpenAI) -> None:
    """A score that is none stands in no file."""
    run("--rag-dry-run", "--junitxml=junit.xml", test_it=SUITE)
    assert "rag." not in (pytester.path / "junit.xml").read_text("utf-8")
    assert server.calls == 0


def test_a_crashed_worker_is_missed(run: RunPytest, server: FakeOpenAI) -> None:
    """What its tests would have asked for nobody knows, and the forecast says so."""
    crash = SUITE + "\n    def test_zcrash():\n        import os\n        os._exit(3)\n"
    result = run("-p", "xdist", "-n1", "--rag-dry-run", test_it=crash)
    result.stdout.fnmatch_lines(["1 worker(s) crashed: *"])
    assert server.calls == 0


def test_the_run_is_not_mistaken_for_a_real_one(run: RunPytest, server: FakeOpenAI) -> None:
    """With a limit on the budget nothing is counted against it."""
    result = run("--rag-dry-run", "--rag-max-calls=0", test_it=SUITE)
    result.assert_outcomes(passed=1, skipped=5)
    result.stdout.no_fnmatch_line("budget:*")
    assert server.calls == 0
