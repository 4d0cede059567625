"""What gates can find and what they can never do, before the rows are scored and where they are decided."""

from __future__ import annotations

from tests.plugin.conftest import ONE, SERIAL, RunPytest

#: Another row fails in each run, and the scores of one metric are graded.
SUITE = """
    import os
    from pytest_ragmetrics import metric
    RUN = int(os.environ.get("RUN", "0"))
    @metric(name="length", scale=(0.0, 10.0))
    def length(response): return len(response) % 10
    def rows(count, **metadata):
        answers = [FALSE if n == RUN else TRUE + "!" * ((n * RUN) % 7) for n in range(count)]
        return [
            {"id": f"r{n}", "answer": answer, "contexts": [SOURCE], "metadata": {k: n % v for k, v in metadata.items()}}
            for n, answer in enumerate(answers)
        ]
    @pytest.mark.rag_gate("quoted_spans_alignment", rate=0.9, min=0.8, confidence=0.95)
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.9, confidence=0.95, stop_when_decided=True)
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.5)
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.0)
    @pytest.mark.rag_gate("quoted_spans_alignment", regression=True)
    @pytest.mark.rag_dataset(rows(20), metrics=["quoted_spans_alignment"])
    def test_bot(rag_sample): pass
    @pytest.mark.rag_gate("length", regression=True)
    @pytest.mark.rag_dataset(rows(20), metrics=[length])
    def test_length(rag_sample): pass
    @pytest.mark.rag_gate("quoted_spans_alignment", regression=True)
    @pytest.mark.rag_dataset(rows(12, cluster=3), metrics=["quoted_spans_alignment"])
    def test_documents(rag_sample): pass
    ASKED = [{"id": f"r{n}", "question": "Why?", "contexts": [SOURCE]} for n in range(20)]
    @pytest.fixture
    def rag_respond(): return lambda sample: TRUE
    @pytest.mark.rag_gate("quoted_spans_alignment", rate=0.9, min=0.0)
    @pytest.mark.rag_gate("quoted_spans_alignment", regression=True)
    @pytest.mark.rag_dataset(ASKED, metrics=["quoted_spans_alignment"], answers=2)
    def test_answers(rag_sample): pass
"""


QUOTED = "quoted_spans_alignment"
EVEN = "with confidence=0.95 even 20 of 20 gives an interval from 0.83; take 36 rows or a bound of 0.83"
ALL = "if nothing had changed, all 3 clusters become worse in 12.5 % of runs (limit 5 %); take 5 clusters"
NEVER = [
    f"{QUOTED} rate=0.9 min=0.8: can never pass: {EVEN}, test_it.py::test_bot",
    f"{QUOTED} mean=0: can never fail: no mean is below 0, test_it.py::test_bot",
    f"{QUOTED} regression: can never fail: {ALL}, test_it.py::test_documents",
    f"{QUOTED} rate=0.9 min=0: can never fail: every score reaches min=0, test_it.py::test_answers",
]


ALONE = "; no earlier runs: 2.5 % of rows taken to change each way"
GUESS = f"{ALONE}; 4 regression gates share 5 %"


def test_a_dry_run_says_what_its_gates_can_find(run: RunPytest) -> None:
    result = run("--rag-dry-run", *ONE, test_it=SUITE)
    result.shows_all(
        *NEVER,
        f"{QUOTED} regression: 20 rows find a loss of 10 points in hardly any run, of 20 points in 1 of 10; for 8 of "
        f"10 at 10 points take 150 rows{GUESS}, test_it.py::test_bot",
        f"length regression: 20 rows find *{GUESS}, test_it.py::test_length",
        f"{QUOTED} regression: 20 rows find a loss of 10 points in 2 of 10 runs, *{GUESS}, test_it.py::test_answers",
    )
    assert sum(": can never " in line or " find a loss " in line for line in result.result.outlines) == 7


def test_a_dry_run_rests_on_earlier_runs(run: RunPytest) -> None:
    for number in range(1, 4):
        run("--rag-history=runs", "--rag-json=run.json", test_it=SUITE, env={"RUN": f"{number}"})
    # Other rows fail in each of three runs, and lengths differ by a little.
    run("--rag-dry-run", "--rag-history=runs", test_it=SUITE).shows_all(
        *NEVER,
        f"{QUOTED} regression: 20 rows find *; 6.2 % of rows changed each way in the last 3 runs; *::test_bot",
        "length regression: 20 rows find *; as scores differed in the last 3 runs; *::test_length",
        f"{QUOTED} regression: 20 rows find *; as scores differed in the last 3 runs; *::test_answers",
    )
    # A baseline knows only what changed since its own.
    run("--rag-dry-run", "--rag-baseline=run.json", "-k", "bot").shows_all(f"{QUOTED} *{ALONE}, *::test_bot")
    run("--rag-baseline=run.json", "--rag-json=next.json", "-k", "bot", env={"RUN": "4"})
    run("--rag-dry-run", "--rag-baseline=next.json", "-k", "bot").shows_all(
        f"{QUOTED} *; 7.5 % of rows changed each way in the run of the baseline, *::test_bot"
    )


def test_a_gate_that_cannot_fail_warns_where_it_passes(run: RunPytest) -> None:
    run("--rag-json=run.json", test_it=SUITE)
    for how in (SERIAL, ONE):
        result = run("-Wdefault", "--rag-baseline=run.json", *how, *([] if how else ["--rag-report=page.html"]))
        result.shows_all(
            "*test_bot?gate-quoted_spans_alignment-mean-0?",
            "*PytestWarning: quoted_spans_alignment: this gate can never fail: no mean is below 0*",
            f"*PytestWarning: * this gate can never fail: {ALL}",
            f"  can never pass: {EVEN}",
        )
        assert sum("this gate can never" in line for line in result.result.outlines) == 3
        # Every warning would be too many: an imported xdist is one, and from Python 3.12 on a fork beside threads.
        strict = run("-Werror:quoted_spans_alignment:pytest.PytestWarning", *how, "-k", "bot")
        strict.shows("quoted_spans_alignment: this gate can never fail: no mean is below 0", "FAILED *-mean-0? - *")
    assert "can never fail: no mean is below 0" in result.text("page.html")
