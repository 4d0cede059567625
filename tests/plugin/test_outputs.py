"""What a run leaves behind: true files or the old ones, and a clear word about each."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_ragmetrics.records import Document, TestRecord, document_schema, read_document
from pytest_ragmetrics.report.html import render_html
from pytest_ragmetrics.report.merge import merge_documents
from tests.fake_openai import FakeOpenAI

RunPytest = Callable[..., pytest.RunResult]

SUITE = """
    import pytest
    from pytest_ragmetrics import assert_quoted_spans_aligned
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    from texts import SOURCE, TRUE, FALSE

    @pytest.mark.parametrize("number", range(12))
    def test_row(number):
        assert_quoted_spans_aligned(TRUE if number % 5 else FALSE, [SOURCE, f"page {number}"])

    @pytest.mark.xfail(reason="known")
    def test_expected():
        assert_quoted_spans_aligned(FALSE, SOURCE)

    def test_measures():
        QuotedSpansAlignment().score(response=TRUE, retrieved_contexts=[SOURCE])
        pytest.skip("enough")

    def test_breaks():
        raise RuntimeError("the bot is down")
"""
ONE = """
    from pytest_ragmetrics import assert_quoted_spans_aligned
    from texts import SOURCE, TRUE, FALSE
    def test_it():
        assert_quoted_spans_aligned(TRUE, SOURCE)
"""
JUDGED = """
    import pytest
    from pytest_ragmetrics import assert_faithful
    from pytest_ragmetrics.metrics import Faithfulness
    from texts import SOURCE

    def test_fine():
        assert_faithful("The pump needs two minutes to fill.", SOURCE, min=0.8)

    def test_wrong():
        assert_faithful("The crane lifts nine tons of gravel.", SOURCE, min=0.8)

    def test_measured():
        Faithfulness().score(response="The crane lifts nine tons of gravel.", retrieved_contexts=[SOURCE])
"""


def read(folder: Path, name: str = "out.json") -> Document:
    """Return a document as a run left it, which must fit the schema to the letter."""
    file = folder / name
    jsonschema.validate(json.loads(file.read_text("utf-8")), _strict(document_schema()))
    return read_document(file)


def _strict(schema: Any) -> Any:
    """Return a schema that allows no field that it does not know."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if "properties" in schema else {}
    return {**closed, **{name: _strict(value) for name, value in schema.items()}}


def timeless(tests: Sequence[TestRecord]) -> tuple[TestRecord, ...]:
    """Return tests without what no two runs have in common."""
    return tuple(replace(test, duration=0.0, message=None) for test in tests)


def test_runs_of_every_kind_fit_the_schema(run: RunPytest, pytester: pytest.Pytester) -> None:
    """Passing, failing, expected, skipped and broken tests, with workers and without, make documents of one form."""
    runs = []
    for args in ([], ["-p", "xdist", "-n3"], ["-p", "randomly"], ["-p", "rerunfailures", "--reruns=1"]):
        run("--rag-json=out.json", *args, test_suite=SUITE)
        runs.append(read(pytester.path))
    assert {row.outcome for row in runs[0].tests} == {"passed", "failed", "xfailed", "skipped"}
    one, *others = [[replace(test, attempts=1) for test in timeless(made.tests)] for made in runs]
    assert all(other == one for other in others)


def test_shards_merge_into_the_document_of_one_run(run: RunPytest, pytester: pytest.Pytester) -> None:
    """Split into jobs and put together again, a run has the same rows, and these make the same page."""
    run("--rag-json=whole.json", test_suite=SUITE)
    for number, which in enumerate(["test_row and 1", "test_row and not 1", "not test_row"]):
        run(f"--rag-json=shard{number}.json", "-k", which, "-p", "xdist", "-n2", test_suite=SUITE)
    whole = read(pytester.path, "whole.json")
    merged = merge_documents([read(pytester.path, f"shard{number}.json") for number in (2, 0, 1)])
    assert timeless(merged.tests) == timeless(whole.tests)
    pages = (render_html(replace(whole, tests=timeless(made.tests))) for made in (merged, whole))
    assert len(set(pages)) == 1


GATED = """
    import pytest
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    from texts import SOURCE, TRUE, FALSE

    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.85)
    @pytest.mark.rag_gate("quoted_spans_alignment", rate=0.5, min=0.9, confidence=0.9)
    @pytest.mark.parametrize("number", range(9))
    def test_row(number):
        QuotedSpansAlignment().score(response=TRUE if number % 4 else FALSE, retrieved_contexts=[SOURCE])
"""


def test_gates_are_decided_when_shards_are_merged(run: RunPytest, pytester: pytest.Pytester) -> None:
    """No shard has a whole set; together they decide its gates as one run does, and end as badly."""
    run("--rag-json=whole.json", test_suite=GATED)
    for number, which in enumerate(["0 or 1 or 2 or 3", "4 or 5 or 6 or 7 or 8"]):
        run(f"--rag-json=shard{number}.json", "-k", which, test_suite=GATED)
    whole, *shards = (read(pytester.path, f"{name}.json") for name in ("whole", "shard0", "shard1"))
    assert {row.gate.outcome for shard in shards for row in shard.tests if row.gate} <= {"skipped"}
    for order in (shards, shards[::-1]):
        merged = merge_documents(order)
        assert timeless(merged.tests) == timeless(whole.tests)
        assert [row.message for row in merged.tests] == [row.message for row in whole.tests]
        assert merged.run.exit_status == whole.run.exit_status == 1
    part = merge_documents([shards[0], replace(shards[1], tests=shards[1].tests[:-3])])
    assert {row.gate.outcome for row in part.tests if row.gate} == {"skipped"}


def test_the_settings_of_a_run_stand_in_it(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Judge, cache and cassette are named as on any machine; no key, no folder outside of the project."""
    monkeypatch.setenv("RAGMETRICS_CACHE_DIR", str(tmp_path / "elsewhere"))
    args = ["--rag-judge=openai:gpt-5.4-mini", "--rag-json=out.json", "--rag-concurrency=7"]
    run(*args, "--rag-cassette=tapes/judge.jsonl", "-o", "rag_cache_salt=secret", test_suite=JUDGED)
    document = read(pytester.path)
    settings = document.run.settings
    told = {name: settings[name] for name in ("judge", "cache", "cassette", "concurrency", "baseline", "votes")}
    assert told == {
        "judge": "openai:gpt-5.4-mini",
        "cache": "auto",
        "cassette": "tapes/judge.jsonl",
        "concurrency": 7,
        "baseline": None,
        "votes": 1,
    }
    assert any(note.startswith("tapes/judge.jsonl: written, ") for note in document.run.notes)
    said = str(document.run)
    assert not any(secret in said for secret in ("secret", "sk-fake", str(pytester.path), str(tmp_path)))
    run(*args, f"--rag-cassette={tmp_path / 'out' / 'side.jsonl'}", test_suite=JUDGED)
    said = str(read(pytester.path).run)
    assert "side.jsonl: written" in said
    assert str(tmp_path) not in said


def test_what_was_asked_is_kept_of_what_went_wrong(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester
) -> None:
    """A failure keeps the questions to the judge and its replies, cached or not; a success and a measurement do not."""
    for cached in (False, True):
        run("--rag-judge=openai:gpt-5.4-mini", "--rag-json=out.json", test_suite=JUDGED)
        rows = {row.id.partition("::")[2]: row.records[0] for row in read(pytester.path).tests}
        assert rows["test_fine"].exchanges == rows["test_measured"].exchanges == ()
        asked = rows["test_wrong"].exchanges
        assert [(found.task, found.vote) for found in asked] == [("list_claims", 0), ("verify_claims", 0)]
        # The test that measures the same answer may have come first.
        assert all(found.cached for found in asked) or not cached
        assert all("The crane lifts nine tons of gravel." in found.prompt for found in asked)
        assert all(isinstance(json.loads(found.reply or ""), dict) for found in asked)
        assert "You judge texts" not in str(asked)


def test_what_could_not_be_used_is_kept(run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester) -> None:
    """An unscored record keeps the reply that did not fit, or none where the provider failed; texts are redacted."""
    suite = """
        from pytest_ragmetrics import assert_faithful
        from texts import SOURCE
        def test_it():
            assert_faithful("The pump of Mrs Gray needs two minutes to fill.", SOURCE, min=0.8)
    """
    hook = "def pytest_ragmetrics_redact(text): return text.replace('Mrs Gray', '[name]')"
    server.script("Mrs Gray says no.", "Mrs Gray says no again.")
    run("--rag-judge=openai:gpt-5.4-mini", "--rag-json=out.json", test_suite=suite, conftest=hook)
    (row,) = read(pytester.path).tests
    (exchange,) = row.records[0].exchanges
    assert (exchange.task, exchange.reply, exchange.cached) == ("list_claims", "[name] says no again.", False)
    assert "pump of [name] needs" in exchange.prompt
    run("--rag-judge=openai:gpt-5.4-mini", "--rag-cache=replay", "--rag-json=out.json", test_suite=suite)
    (row,) = read(pytester.path).tests
    assert [found.reply for found in row.records[0].exchanges] == [None]


def test_a_summary_in_markdown_is_written(run: RunPytest, pytester: pytest.Pytester) -> None:
    """--rag-markdown replaces a file by a short summary."""
    for _ in range(2):
        run("--rag-markdown=sub/summary.md", test_suite=SUITE).stdout.fnmatch_lines(["*summary.md: written"])
    text = (pytester.path / "sub/summary.md").read_text("utf-8")
    assert text.startswith("## RAG metrics: 4 of 15 tests fell short")
    assert text.count("## RAG metrics") == 1
    assert "- `test_suite.py::test_row[0]` (`test_suite.py:6`): quoted_spans_alignment 0.00, needed ≥ 0.90" in text
    assert "- `test_suite.py::test_breaks` (`test_suite.py:18`): RuntimeError: the bot is down" in text


@pytest.mark.parametrize("cause", ["error", "None"])
@pytest.mark.parametrize("style", ["long", "short"])
def test_a_failure_with_a_cause_is_told_by_itself(
    run: RunPytest, pytester: pytest.Pytester, cause: str, style: str
) -> None:
    """Neither the cause that was named nor what was being handled stands for the error that ended the test."""
    suite = f"""
        from pytest_ragmetrics import assert_numbers_aligned

        def test_scored():
            assert_numbers_aligned("It takes 2 minutes.", "It takes 2 minutes.")

        def test_it():
            try:
                raise KeyError("inner")
            except KeyError as error:
                raise ValueError("outer"){" from error" if cause == "error" else ""}
    """
    run(f"--tb={style}", "--rag-markdown=summary.md", test_it=suite).assert_outcomes(passed=1, failed=1)
    (told,) = (line for line in (pytester.path / "summary.md").read_text("utf-8").splitlines() if "::test_it`" in line)
    assert told.endswith(": ValueError: outer")


@pytest.mark.parametrize("argument", ["auto", "summary.md"])
def test_the_step_summary_is_added_to(
    run: RunPytest, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, argument: str
) -> None:
    """What other steps of the job wrote stays, however the file is named."""
    summary = pytester.path / "summary.md"
    summary.write_text("Built.", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    for _ in range(2):
        run(f"--rag-markdown={argument}", test_it=ONE).assert_outcomes(passed=1)
    text = summary.read_text("utf-8")
    assert text.startswith("Built.\n## RAG metrics")
    assert text.count("## RAG metrics") == 2


def test_a_full_step_summary_is_not_lost(
    run: RunPytest, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GitHub drops a summary of more than 1 MiB as a whole: nothing is added to one that is nearly full."""
    summary = pytester.path / "summary.md"
    summary.write_text("x" * (1024 * 1024 - 10), encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    result = run("--rag-markdown=auto", test_it=ONE)
    result.stdout.fnmatch_lines(["*summary.md: NOT written, the step summary would be larger than the 1 MiB *"])
    assert summary.stat().st_size == 1024 * 1024 - 10


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--rag-markdown=auto"], "--rag-markdown: 'auto' is *, and GITHUB_STEP_SUMMARY is not set: name a file"),
        (["--rag-markdown="], "--rag-markdown: '' is no file name: name a file"),
        (["--rag-json", "test_it.py"], "--rag-json: 'test_it.py' is a file of Python: name one to write*"),
        (["--rag-markdown=test_it.py"], "--rag-markdown: 'test_it.py' is a file of Python: *"),
    ],
)
def test_a_file_that_cannot_be_meant_is_a_usage_error(
    run: RunPytest, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, args: list[str], said: str
) -> None:
    """No test is run, and no test file is replaced."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    result = run(*args, test_it=ONE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}"])
    assert "assert_quoted_spans_aligned" in (pytester.path / "test_it.py").read_text("utf-8")


def test_junit_takes_any_name(run: RunPytest, pytester: pytest.Pytester) -> None:
    """A metric whose name holds what XML cannot is a property all the same, and the file is well-formed."""
    suite = """
        from pytest_ragmetrics import MetricResult, Sample, assert_metric
        from pytest_ragmetrics.metrics import Metric
        class Odd(Metric):
            name = "odd\\x00\\x1b<name>\\ufffe"
            def measure(self, sample):
                return MetricResult(0.5, metric=self.name, reason="\\x00")
        def test_it():
            assert_metric(Odd(), Sample(response="r"), min=0.2)
    """
    for args in ([], ["-p", "xdist", "-n1"]):
        run("--junitxml=out.xml", "-o", "junit_family=xunit1", *args, test_odd=suite).assert_outcomes(passed=1)
        properties = ET.parse(pytester.path / "out.xml").iter("property")  # noqa: S314 - written just now
        assert [(found.get("name"), found.get("value")) for found in properties] == [("rag.odd<name>", "0.5")]


@pytest.mark.parametrize("args", [[], ["-p", "xdist", "-n2"], ["-p", "rerunfailures", "--reruns=2"]])
def test_junit_has_each_score_once(run: RunPytest, pytester: pytest.Pytester, args: list[str]) -> None:
    """Neither workers nor repetitions double a property."""
    run("--junitxml=out.xml", "-o", "junit_family=xunit1", *args, test_suite=SUITE)
    cases = ET.parse(pytester.path / "out.xml").iter("testcase")  # noqa: S314 - written just now
    found = {str(case.get("name")): [p.get("value") for p in case.iter("property")] for case in cases}
    assert found["test_row[0]"] == ["0.0"]
    assert found["test_row[1]"] == found["test_measures"] == ["1.0"]
    assert found["test_breaks"] == []


class TestTrouble:
    """A run in trouble leaves the old report or a true one, says what happened, and never breaks down."""

    @pytest.fixture(autouse=True)
    def _old_files(self, pytester: pytest.Pytester) -> None:
        for name in ("out.json", "out.html"):
            (pytester.path / name).write_text("the old one", encoding="utf-8")

    def test_without_a_terminal_the_files_are_written(self, run: RunPytest, pytester: pytest.Pytester) -> None:
        """-p no:terminal takes the summary away, not the files."""
        result = run("-p", "no:terminal", "--rag-json=out.json", test_it=ONE)
        assert (result.ret, result.outlines) == (0, [])
        assert len(read(pytester.path).tests) == 1

    @pytest.mark.parametrize("how", [["-p", "no:terminal"], []], ids=["mute", "exit"])
    def test_without_a_summary_trouble_is_told_all_the_same(self, run: RunPytest, how: list[str]) -> None:
        """What could not be written is said on standard error; so it is where a test ends the run by a status."""
        suite = ONE + "    def test_block():\n        open('late', 'w').close()\n"
        if not how:
            suite += "    def test_end():\n        import pytest\n        pytest.exit('enough', returncode=7)\n"
        result = run(*how, "--rag-json=late/out.json", test_it=suite)
        assert result.ret == (pytest.ExitCode.TESTS_FAILED if how else 7)
        result.stderr.fnmatch_lines(["ragmetrics: *out.json: NOT written, *"])

    def test_trouble_is_told_once(self, run: RunPytest) -> None:
        """In the summary, where there is one."""
        result = run(
            "--rag-json=late/out.json", test_it=ONE + "    def test_block():\n        open('late', 'w').close()\n"
        )
        result.stdout.fnmatch_lines(["*out.json: NOT written, *"])
        result.stderr.no_fnmatch_line("*NOT written*")

    def test_collecting_writes_nothing(self, run: RunPytest, pytester: pytest.Pytester) -> None:
        """--co leaves every file as it was."""
        assert run("--co", "--rag-json=out.json", "--rag-report=out.html", test_it=ONE).ret == 0
        assert {(pytester.path / name).read_text() for name in ("out.json", "out.html")} == {"the old one"}

    @pytest.mark.parametrize("where", ["test", "fixture", "teardown"])
    def test_an_interrupted_run_tells_what_it_found(
        self, run: RunPytest, pytester: pytest.Pytester, where: str
    ) -> None:
        """Ctrl-C keeps what was scored and says in the file that the run was interrupted; half a test is no result."""
        suite = f"""
            import pytest
            from pytest_ragmetrics import assert_quoted_spans_aligned
            from texts import SOURCE, TRUE
            def interrupt(place):
                if place == {where!r}:
                    raise KeyboardInterrupt
            @pytest.fixture
            def bot():
                interrupt("fixture")
                yield
                interrupt("teardown")
            def test_a():
                assert_quoted_spans_aligned(TRUE, SOURCE)
            def test_b(bot):
                assert_quoted_spans_aligned(TRUE, SOURCE)
                interrupt("test")
            def test_c():
                assert_quoted_spans_aligned(TRUE, SOURCE)
        """
        pytester.makepyfile(test_stop=suite)
        result = pytester.runpytest_subprocess("-p", "ragmetrics", "--rag-json=out.json", "--rag-report=out.html")
        assert result.ret == pytest.ExitCode.INTERRUPTED
        result.stdout.no_fnmatch_line("*INTERNALERROR*")
        document = read(pytester.path)
        assert document.run.exit_status == 2
        expected = ["test_stop.py::test_a", *(["test_stop.py::test_b"] if where == "teardown" else [])]
        assert [row.id for row in document.tests] == expected
        assert "test_stop.py::test_a" in (pytester.path / "out.html").read_text("utf-8")

    def test_a_crashed_worker_is_no_end(self, run: RunPytest, pytester: pytest.Pytester) -> None:
        """The files say which test ended its worker, and hold all the others."""
        suite = """
            import os, signal
            import pytest
            from pytest_ragmetrics import assert_quoted_spans_aligned
            from texts import SOURCE, TRUE
            @pytest.mark.parametrize("number", range(6))
            def test_row(number):
                assert_quoted_spans_aligned(TRUE, SOURCE)
                if number == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
        """
        args = ["-p", "xdist", "-n2", "--max-worker-restart=2"]
        result = run("--rag-json=out.json", "--rag-markdown=out.md", *args, test_crash=suite)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        outcomes = {row.id: row.outcome for row in read(pytester.path).tests}
        assert [name for name, outcome in outcomes.items() if outcome != "passed"] == ["test_crash.py::test_row[3]"]
        assert "test_crash.py::test_row[3]" in (pytester.path / "out.md").read_text("utf-8")

    def test_a_full_disk_leaves_the_old_files(self, pytester: pytest.Pytester, run: RunPytest) -> None:
        """Where writing fails in the middle, the old file stays, no part lies about, and the run does not pass."""
        pytester.makepyfile(
            test_it=ONE.replace("SOURCE)", "[SOURCE, 'and so on ' * 5000])"),
            conftest="""
                import resource
                def pytest_runtest_teardown():
                    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
            """,
        )
        args = ["--rag-json=out.json", "--rag-report=out.html", "-p", "no:cacheprovider"]
        result = pytester.runpytest_subprocess("-p", "ragmetrics", *args)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.fnmatch_lines(
            ["*out.html: NOT written, File too large", "*out.json: NOT written, File too large"]
        )
        result.stdout.no_fnmatch_line("*INTERNALERROR*")
        assert {(pytester.path / name).read_text() for name in ("out.json", "out.html")} == {"the old one"}
        assert not list(pytester.path.glob(".*.part"))

    def test_a_device_is_written_to_and_not_replaced(self, run: RunPytest) -> None:
        """/dev/full says that there is no room left, and is there afterwards; the run does not pass."""
        result = run("--rag-json=/dev/full", test_it=ONE)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.fnmatch_lines(["/dev/full: NOT written, No space left on device"])
        assert Path("/dev/full").is_char_device()

    def test_a_run_that_failed_keeps_its_status(self, run: RunPytest, pytester: pytest.Pytester) -> None:
        """A file that cannot be written does not cover up how the tests ended."""
        pytester.makepyfile(test_it=ONE + "    def test_stop():\n        raise KeyboardInterrupt\n")
        result = pytester.runpytest_subprocess("-p", "ragmetrics", "--rag-json=/dev/full")
        assert result.ret == pytest.ExitCode.INTERRUPTED
        result.stdout.fnmatch_lines(["/dev/full: NOT written, No space left on device"])


def test_the_summary_is_complete(run: RunPytest, server: FakeOpenAI) -> None:
    """Table, costs, judge, files: one after the other."""
    args = ["--rag-judge=openai:gpt-5.4-mini", "--rag-json=out.json", "--rag-markdown=out.md"]
    result = run(*args, test_suite=JUDGED)
    result.stdout.fnmatch_lines(
        [
            "*= RAG metrics =*",
            "metric * n * mean * min * failing * unscored",
            "faithfulness * 3 * 1 * 0",
            "judge calls: 4 made (* tokens, $*), 2 saved by the cache ($*)",
            "judged by: openai:gpt-5.4-mini",
            "*out.json: written",
            "*out.md: written",
        ]
    )


def test_gates_and_wavering_votes_are_told(run: RunPytest) -> None:
    """The summary has a line on each gate, and names the tests that other votes would have decided otherwise."""
    suite = """
        import pytest
        from pytest_ragmetrics import MetricResult, Sample, assert_metric
        from pytest_ragmetrics.metrics import Metric
        class Mood(Metric):
            name = "mood"
            def measure(self, sample):
                return MetricResult(0.7, metric=self.name, samples=[0.4, 1.0])
        @pytest.mark.rag_gate("mood", mean=0.6)
        @pytest.mark.parametrize("number", range(5))
        def test_row(number):
            assert_metric(Mood(), Sample(response="r"), min=0.5 if number else 0.2)
    """
    result = run(test_mood=suite)
    result.stdout.fnmatch_lines(
        [
            "mood * 5 * 0.700 * 0.700 * 0 * 0",
            "gate: mean mood 0.700, needed >= 0.6: passed (n 5), test_mood.py::test_row[[]gate-mood-mean-0.6[]]",
            "flaky: 4 tests whose votes disagree: test_mood.py::test_row[[]1[]], *[[]2[]], *[[]3[]] and 1 more",
        ]
    )


def test_names_cannot_steer_the_terminal(run: RunPytest) -> None:
    """Controls in the name of a metric or a judge do not reach the terminal."""
    result = run(
        test_odd="""
            from pytest_ragmetrics import MetricResult, Sample, assert_metric
            from pytest_ragmetrics.metrics import Metric
            class Odd(Metric):
                name = "od\\x1b[31md"
                def measure(self, sample):
                    return MetricResult(0.5, metric=self.name, judge="ju\\x1b[31mdge")
            def test_it():
                assert_metric(Odd(), Sample(response="r"), min=0.2)
        """
    )
    result.stdout.fnmatch_lines(["od[[]31md *", "judged by: ju[[]31mdge"])
    assert not re.search(r"od\x1b", result.stdout.str())
