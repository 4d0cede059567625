"""What a run leaves behind: the records of every scoring, in each file and in the summary."""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_ragmetrics.plugin.gates.merged import merged_gates
from pytest_ragmetrics.report.markdown import escaped
from pytest_ragmetrics.report.page import render_html
from pytest_ragmetrics.runs.merge import merge_documents
from pytest_ragmetrics.runs.records import Document, TestRecord, document_schema
from tests import fake_openai
from tests.documents import document as made_document
from tests.fake_answers import answer_sensibly
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import MANY, Run, RunPytest, unpacked

SUITE = """
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    def score(response): return QuotedSpansAlignment().score(response=response, retrieved_contexts=[SOURCE])
    @pytest.mark.parametrize("number", range(12))
    def test_row(number): assert_quoted_spans_aligned(TRUE if number % 5 else FALSE, [SOURCE, f"page {number}"])
    def test_fails(): assert score(FALSE) >= 0.9
    @pytest.mark.xfail(strict=True, reason="known to be made up")
    def test_expected(): assert_quoted_spans_aligned(FALSE, [SOURCE])
    @pytest.mark.xfail(reason="better than feared", strict=False)
    def test_unexpected(): assert_quoted_spans_aligned(TRUE, [SOURCE])
    def test_measures_twice(): score(TRUE), score(FALSE)
    def test_skips():
        score(TRUE)
        pytest.skip("enough seen")
    @pytest.fixture
    def breaks_after(request):
        yield
        raise RuntimeError("teardown broke")
    def test_teardown(breaks_after): assert score(TRUE) == 1.0
    def test_without_scores(): pass
    def test_fails_before_it_scores(): raise RuntimeError("the bot is down")
"""
#: Where scores come from, and the odd values that metrics and samples may have.
ODD = r"""
    import datetime, decimal, pathlib, threading, numpy
    from pytest_ragmetrics.metrics import Metric, QuotedSpansAlignment
    class Share(Metric):
        name = "share"
        def measure(self, sample):
            found = [Verdict(text="t", ok=numpy.bool_(True), start=numpy.int64(0), end=numpy.int64(1))]
            given = {"vacuous": numpy.bool_(False), "samples": [numpy.float32(0.25)], "verdicts": found}
            return MetricResult(numpy.float64(0.25), metric=self.name, **given)
    class Odd(Metric):
        name = "odd\x00\x1b[31m<name>\ufffe"
        def measure(self, sample):
            return MetricResult(0.5, metric=self.name, reason="\x00", judge="ju\x1b[31mdge")
    @metric
    def silent(response): raise UnscoredError("nothing to judge")
    @metric
    def mood(response): return MetricResult(0.7, metric="mood", samples=[0.4, 1.0])
    class Ratio(float):
        pass
    def test_numpy(): assert_metric(Share(), Sample(response="t"), min=numpy.float64(0.2))
    def test_name(): assert_metric(Odd(), Sample(response="r"), min=0.2)
    def test_unscored(): silent.score(response="r")
    @pytest.mark.rag_gate("mood", mean=0.6)
    @pytest.mark.parametrize("number", range(5))
    def test_mood(number): assert_metric(mood, Sample(response="r"), min=0.5 if number else 0.2)
    def test_parts(subtests):
        for answer in (TRUE, FALSE):
            with subtests.test(answer):
                assert_quoted_spans_aligned(answer, SOURCE)
    @pytest.fixture
    def result():
        results = []
        def work(): results.append(QuotedSpansAlignment().score(response=TRUE, retrieved_contexts=SOURCE))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return results[0]
    def test_fixture(result): assert result >= 0.5
    def test_sample():
        sample = Sample(
            response='lone \ud800 "open the valve slowly" \x00 \x1b[31m',
            retrieved_contexts=["Open the valve\udfff slowly."],
            metadata={1: decimal.Decimal("1.5"), "day": datetime.date(2026, 1, 2), "nan": float("nan"),
                      "path": pathlib.PurePosixPath("a/b"), "ratio": Ratio(0.5), "set": {1}, "none": None},
        )
        assert_metric(QuotedSpansAlignment(), sample, min=0.0)
"""
#: Metrics that ask no judge.
FREE = """
    class Spoken:
        # a message as a framework has it, which JSON has no word for
        type = "ai"
        content = ""
        tool_calls = [{"name": "weather", "args": {"city": "Oslo"}}]
        def __repr__(self): return "Spoken()"
    def test_retrieved(): assert_retrieved([7, 8, 9], [7, 9, 4], k=3, min=0.9)
    def test_graded(): assert_retrieved([7, 8], {7: 3, 8: 1}, metric="ndcg")
    def test_cited():
        assert_citations_valid("Otters float [1]. They dive [3].", ["Otters float.", "Otters <b>dive</b>."])
    def test_called(): assert_tools_called([Spoken()], [{"name": "weather", "args": {"city": "Rome"}}])
    def test_alike(): assert_contexts_alike(["Whales sing."], ["Moths fly."])
    def test_texts():
        assert_text_alike("moth", "moths", min=0.8)
        assert_exact_match("moth", "moths")
"""
PRIVATE = """
    class InvalidAnswerError(ValueError):
        pass
    def test_chained():
        try:
            raise InvalidAnswerError("no answer on Gray")
        except InvalidAnswerError as error:
            raise UnscoredError("nothing on Gray") from error
    def test_asserted():
        print("Gray was here")
        assert_numbers_aligned("Gray waits 7 days.", "Gray waits 8 days.")
    def test_away(): pytest.skip("Gray is away")
    def test_late(): pytest.fail("Gray is late", pytrace=False)
"""
#: Redacts a name, and writes down every record with the process that showed it.
CONFTEST = """
    import json
    def pytest_ragmetrics_redact(text): return text.replace("Gray", "[name]")
    def pytest_ragmetrics_result(item, record):
        with open(item.config.rootpath / "seen.jsonl", "a") as file:
            row = dict(test=item.nodeid, record=record, in_worker=hasattr(item.config, "workerinput"))
            file.write(json.dumps(row) + "\\n")
        record.clear()
"""
#: Observers that fail, each in a folder of its own.
RAISING = {
    "error": ("RuntimeError('the board is down')", "RuntimeError: the board is down"),
    "fail": ("pytest.fail.Exception('no')", "Failed: no"),
    "skip": ("pytest.skip.Exception('later')", "Skipped: later"),
}
#: A passing test.
ONE = """
    def test_it():
        assert_quoted_spans_aligned(TRUE, SOURCE)
"""
BLOCKING = ONE + "    def test_block():\n        open('late', 'w').close()\n"


@pytest.fixture(scope="module")
def runs(run_once: RunPytest) -> list[Run]:
    """Run everything with two workers and in one process, where warnings are errors."""
    asked = [f"--rag-{kind}=out.{end}" for kind, end in (("json", "json"), ("report", "html"), ("markdown", "md"))]
    asked += ["--junitxml=out.xml", "-o", "junit_family=xunit1", "-rA", "--showlocals"]
    files = {"test_suite": SUITE, "test_odd": ODD, "test_free": FREE, "test_private": PRIVATE, "conftest": CONFTEST}
    for name, (raised, _) in RAISING.items():
        files[f"{name}/conftest"] = f"import pytest\ndef pytest_ragmetrics_result(record):\n    raise {raised}"
        files[f"{name}/test_{name}"] = ONE + "        assert_quoted_spans_aligned(TRUE, SOURCE)\n"
    return [run_once(*how, *asked, **files) for how in (MANY, ["-Werror"])]


def read(run: Run) -> Document:
    """Return a document as a run left it, which must fit the schema to the letter."""
    jsonschema.Draft202012Validator(_strict(document_schema())).validate(json.loads(run.text("out.json")))
    return run.document


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


def test_workers_and_one_process_leave_the_same_files(runs: list[Run]) -> None:
    made: list[tuple[str, str]] = []
    for run in runs:
        run.assert_outcomes(passed=26, failed=16, skipped=2, xfailed=1, xpassed=1, errors=1, warnings=3)
        assert run.stdout.str().count("out.html: written") == 1
        document = read(run)
        assert (document.run.exit_status, document.run.pytest) == (1, pytest.__version__)
        assert document.run.duration >= 0
        tests = [replace(test, duration=0.0) for test in document.tests]
        page = render_html(replace(document, run=made_document().run, tests=timeless(tests)))
        made.append((re.sub(r"0x[0-9a-f]+", "0x", str(tests)), page))  # the locals in messages have their addresses
        assert "<b>dive</b>" not in run.text("out.html")
    assert made[0] == made[1]


def test_records_and_outcomes(runs: list[Run]) -> None:
    rows = runs[1].named
    outcomes = {name: (row["outcome"], [r["outcome"] for r in row["records"]]) for name, row in rows.items()}
    expected: dict[str, tuple[str, list[str]]] = {
        "test_row[0]": ("failed", ["failed"]),
        "test_row[1]": ("passed", ["passed"]),
        "test_fails": ("failed", ["failed"]),
        "test_expected": ("xfailed", ["failed"]),
        "test_unexpected": ("xpassed", ["passed"]),
        "test_measures_twice": ("passed", ["measured", "measured"]),
        "test_skips": ("skipped", ["measured"]),
        "test_teardown": ("error", ["passed"]),
        "test_fails_before_it_scores": ("failed", []),
        "test_unscored": ("failed", ["unscored"]),
        "test_parts": ("failed", ["passed", "failed"]),
        "test_fixture": ("passed", ["passed"]),
    }
    assert outcomes.items() >= expected.items()
    assert "test_without_scores" not in rows
    assert rows["test_fails"]["records"][0]["threshold"] == {"operator": ">=", "bound": 0.9}
    assert rows["test_fixture"]["records"][0]["threshold"]["bound"] == 0.5
    assert [r["score"] for r in rows["test_measures_twice"]["records"]] == [1.0, 0.0]
    unscored = rows["test_unscored"]["records"][0]
    assert (unscored["score"], unscored["reason"]) == (None, "nothing to judge")
    assert rows["test_expected"]["message"].startswith("known to be made up")
    assert rows["test_skips"]["message"] == "Skipped: enough seen"
    assert "teardown broke" in rows["test_teardown"]["message"]
    assert "the bot is down" in rows["test_fails_before_it_scores"]["message"]
    suite = [row for row in rows.values() if row["file"] == "test_suite.py"]
    assert [row["line"] for row in suite] == sorted(row["line"] for row in suite)


def test_a_record_has_what_the_page_needs(runs: list[Run]) -> None:
    rows = runs[1].named
    record = rows["test_fails"]["records"][0]
    response, context = record["sample"]["response"], record["sample"]["retrieved_contexts"][0]
    (verdict,) = record["verdicts"]
    assert verdict["ok"] is False
    assert response[verdict["start"] : verdict["end"]] == verdict["text"] == "the pump needs nine minutes to fill"
    nearest = verdict["nearest"]
    assert context[nearest["start"] : nearest["end"]] == nearest["text"]
    assert {"kind": "replaced", "said": "nine", "source": "two"} in nearest["changes"]
    metrics = [record["metric"] for record in rows["test_texts"]["records"]]
    assert metrics == ["non_llm_string_similarity", "exact_match"]
    (cited,), (called,) = rows["test_cited"]["records"], rows["test_called"]["records"]
    cites = [(found["text"], found["start"], found["ok"]) for found in cited["verdicts"]]
    assert cites == [("[1]", 13, True), ("[3]", 28, False)]
    assert called["sample"]["metadata"]["reference_tool_calls"] == [{"name": "weather", "args": {"city": "Rome"}}]
    assert called["verdicts"][0]["reason"] == 'city is "Oslo"'


def test_anything_becomes_json(runs: list[Run]) -> None:
    for rows in (run.named for run in runs):
        sample = rows["test_sample"]["records"][0]["sample"]
        assert sample["response"].startswith("lone \ufffd ")
        metadata = {"1": "1.5", "day": "2026-01-02", "nan": "nan", "path": "a/b", "ratio": 0.5, "set": [1]}
        assert sample["metadata"] == {**metadata, "none": None}
        # xdist sends exact builtins alone; a subclass of float would end the worker.
        (record,) = rows["test_numpy"]["records"]
        assert (record["score"], record["samples"], record["threshold"]["bound"]) == (0.25, [0.25], 0.2)
        assert (record["verdicts"][0]["ok"], record["verdicts"][0]["start"]) == (True, 0)


def test_junit_has_each_score_once(runs: list[Run]) -> None:
    for run in runs:
        cases = ET.parse(run.folder / "out.xml").iter("testcase")
        found = {case.get("name"): [(p.get("name"), p.get("value")) for p in case.iter("property")] for case in cases}
        name = "rag.quoted_spans_alignment"
        assert found["test_row[0]"] == found["test_fails"] == [(name, "0.0")]
        assert found["test_measures_twice"] == [(name, "1.0"), (name, "0.0")]
        assert found["test_without_scores"] == found["test_fails_before_it_scores"] == []
        assert found["test_name"] == [("rag.odd[31m<name>", "0.5")]


def test_the_summary_has_a_line_per_metric(runs: list[Run]) -> None:
    for run in runs:
        run.shows(
            *("*= RAG metrics =*", "metric * n *mean *min *failing *unscored"),
            "odd[[]31m<name>* 1 *0.500 *0.500 *0 *0",
            "quoted_spans_alignment * 29 *0.759 *0.000 *6 *0",
            "gate: mean mood 0.700, needed >= 0.6: passed (n 5), test_odd.py::test_mood[[]gate-mood-mean-0.6[]]",
            "judged by: ju[[]31mdge",
            "flaky: 4 tests whose votes disagree: *test_mood[[]1[]], *[[]2[]], *[[]3[]] and 1 more",
            "*out.html: written",
        )
        run.shows("silent * 0 * - * - * 0 * 1")
        assert not re.search(r"(od|ju)\S*\x1b", run.stdout.str())


def test_failures_say_what_is_missing(runs: list[Run]) -> None:
    for run in runs:
        headlines = ("*recall_at_k 0.67 < 0.90: 1 of 3 *", "*citation_validity 0.50 < 1.00: 1 of 2 *")
        run.shows_all(*headlines, "*exact_match 0.00 < 1.00*")
        text = run.text("out.md")
        told = f"{run.folder.name}: 14 of 42 tests fell short, 1 broke off with an error, 1 could not be"
        assert text.startswith(f"## RAG metrics of {escaped(told)}")
        assert "- `test_suite.py::test_row[0]` (`test_suite.py:4`): quoted_spans_alignment 0.00, needed ≥ 0.90" in text


def test_what_the_hook_redacts_is_in_no_output(runs: list[Run]) -> None:
    for run in runs:
        run.shows_all(
            "FAILED test_private.py::test_chained - pytest_ragmetrics.UnscoredError*",
            "FAILED test_private.py::test_asserted - AssertionError: numbers_aligned 0.*",
            "FAILED test_private.py::test_late - Failed: [[]name] is late",
            "SKIPPED [[]1] test_private.py:*: [[]name] is away",
            "*InvalidAnswerError: no answer on [[]name]",
            "E*UnscoredError: nothing on [[]name]",
        )
        files = ("out.json", "out.xml", "out.html", "out.md", "seen.jsonl")
        assert "[name]" in unpacked(run.text("out.html"))
        assert not [text for text in (run.stdout.str(), *map(run.text, files)) if "Gray" in unpacked(text)]


def test_observers_see_each_record_once_as_the_report_has_it(runs: list[Run]) -> None:
    for run, in_worker in zip(runs, (True, False), strict=True):
        rows = sorted(map(json.loads, run.text("seen.jsonl").splitlines()), key=lambda row: str(row["test"]))
        written = [record for name in sorted(run.tests) for record in run.tests[name]["records"]]
        assert [row["record"] for row in rows] == written
        assert {row["in_worker"] for row in rows} == {in_worker}


def test_an_observer_that_raises_is_named_once(runs: list[Run]) -> None:
    for run in runs:
        for name, (_, said) in RAISING.items():
            run.shows(f"*{name}?conftest.py: pytest_ragmetrics_result raised {said}")
        assert run.stdout.str().count("pytest_ragmetrics_result raised") == 3


def test_an_observer_is_called_after_teardown_and_may_end_the_run(run: RunPytest) -> None:
    conftest = """
        import pytest
        @pytest.fixture(autouse=True)
        def bot():
            yield
            print("torn down")
        def pytest_ragmetrics_result(record):
            print("SAW", record["metric"])
            pytest.exit("enough", returncode=7)
    """
    result = run("-s", test_it=ONE, conftest=conftest)
    result.shows("*torn down", "SAW quoted_spans_alignment")
    assert result.ret == 7
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_reruns_start_over(run: RunPytest) -> None:
    flaky = """
        answers = [FALSE, TRUE]
        def test_it(): assert_quoted_spans_aligned(answers.pop(0), SOURCE)
    """
    options = ("-p", "rerunfailures", "--reruns=2", "--rag-json=out.json", "--junitxml=out.xml")
    result = run(*options, conftest=CONFTEST, test_flaky=flaky)
    result.shows("quoted_spans_alignment * 1 *1.000 *1.000 *0 *0", passed=1)
    (row,) = result.tests.values()
    assert (row["outcome"], row["attempts"], [r["score"] for r in row["records"]]) == ("passed", 2, [1.0])
    cases = ET.fromstring(result.text("out.xml")).iter("testcase")
    assert [[found.get("value") for found in case.iter("property")] for case in cases] == [["0.0"], ["1.0"]]
    (seen,) = result.text("seen.jsonl").splitlines()
    assert json.loads(seen)["record"]["outcome"] == "passed"


GATED = """
    from pytest_ragmetrics.metrics import QuotedSpansAlignment
    @pytest.mark.rag_gate("quoted_spans_alignment", mean=0.85)
    @pytest.mark.rag_gate("quoted_spans_alignment", rate=0.5, min=0.9, confidence=0.9)
    @pytest.mark.parametrize("number", range(9))
    def test_set(number):
        QuotedSpansAlignment().score(response=TRUE if number % 4 else FALSE, retrieved_contexts=[SOURCE])
"""


def test_shards_merge_into_the_document_of_one_run(run: RunPytest) -> None:
    numbers = "1 or 2 or 3"
    parts = (
        (),
        ("-p", "randomly", "-p", "rerunfailures", "--reruns=1"),
        ("-k", f"row and ({numbers}) or set and ({numbers})"),
        ("-k", f"not ({numbers})"),
    )
    ran = (run("--rag-json=out.json", *part, test_suite=SUITE, test_gated=GATED) for part in parts)
    whole, mixed, *shards = map(read, ran)
    assert timeless([replace(test, attempts=1) for test in mixed.tests]) == timeless(whole.tests)
    assert {row.gate.outcome for shard in shards for row in shard.tests if row.gate} == {"skipped"}
    for order in (shards, shards[::-1]):
        merged = merge_documents(order, decide=merged_gates)
        assert timeless(merged.tests) == timeless(whole.tests)
        assert [row.message for row in merged.tests if row.gate] == [row.message for row in whole.tests if row.gate]
        assert merged.run.exit_status == whole.run.exit_status == 1
        assert len({render_html(replace(whole, tests=timeless(made.tests))) for made in (merged, whole)}) == 1
    rest = tuple(row for row in shards[1].tests if not row.id.endswith("test_set[8]"))
    part = merge_documents([shards[0], replace(shards[1], tests=rest)], decide=merged_gates)
    assert {row.gate.outcome for row in part.tests if row.gate} == {"skipped"}


JUDGED = """
    from pytest_ragmetrics.metrics import Faithfulness
    def test_fine(): assert_faithful("The pump needs two minutes to fill.", SOURCE, min=0.8)
    def test_wrong(): assert_faithful("The crane lifts nine tons of gravel.", SOURCE, min=0.8)
    def test_measured():
        Faithfulness().score(response="The crane lifts nine tons of gravel.", retrieved_contexts=[SOURCE])
"""


def test_a_judged_run_says_who_was_asked_what(run: RunPytest, server: FakeOpenAI, tmp_path: Path) -> None:
    """No key and no folder outside of the project is shown; a failure keeps its requests and replies."""
    env = {"RAGMETRICS_CACHE_DIR": str(tmp_path / "elsewhere"), "RAGMETRICS_CACHE_SECRET": "signing-secret"}
    env["RAGMETRICS_CACHE_URL"] = f"file://{tmp_path}/shared-secret"
    args = ["--rag-judge=openai:gpt-5.4-mini", "--rag-json=out.json", "--rag-markdown=out.md", "--rag-concurrency=7"]
    for cached, cassette in ((False, "tapes/judge.jsonl"), (True, f"{tmp_path / 'out' / 'side.jsonl'}")):
        ran = run(*args, f"--rag-cassette={cassette}", "-o", "rag_cache_salt=secret", env=env, test_suite=JUDGED)
        ran.shows(
            "faithfulness * 3 * 1 * 0",
            f"judge calls: {'0 made (0 tokens' if cached else '4 made (* tokens'}, $*), * saved by the cache ($*)",
            *("judged by: openai:gpt-5.4-mini", "*out.json: written", "*out.md: written"),
        )
        document = read(ran)
        rows = {row.id.partition("::")[2]: row.records[0] for row in document.tests}
        assert rows["test_fine"].exchanges == rows["test_measured"].exchanges == ()
        asked = rows["test_wrong"].exchanges
        assert [(found.task, found.vote) for found in asked] == [("list_claims", 0), ("verify_claims", 0)]
        # The test that measures the same answer may have come first.
        assert all(found.cached for found in asked) or not cached
        assert all("The crane lifts nine tons of gravel." in found.prompt for found in asked)
        assert all(isinstance(json.loads(found.reply or ""), dict) for found in asked)
        assert "You judge texts" not in str(asked)
        shown = str(document.run)
        assert not any(secret in shown for secret in ("secret", "sk-fake", str(ran.folder), str(tmp_path)))
        named = "side.jsonl" if cached else "tapes/judge.jsonl"
        assert any(note.startswith(f"{named}: written, ") for note in document.run.notes)
        wanted = {"judge": "openai:gpt-5.4-mini", "cache": "auto", "concurrency": 7, "baseline": None, "votes": 1}
        assert document.run.settings.items() >= {**wanted, "cassette": named}.items()


def test_the_bill_names_the_cache_of_the_provider_and_the_embedder(run: RunPytest, server: FakeOpenAI) -> None:
    suite = """
        def test_fine(): assert_faithful("The pump needs two minutes to fill.", SOURCE, min=0.8)
        def test_alike():
            assert_semantically_similar("The pump needs two minutes.", "The pump needs two minutes!", min=0.5)
    """
    server.answer = lambda body: fake_openai.Reply(text=answer_sensibly(body), usage=(1000, 10), cached=580)
    specs = ("--rag-judge=openai:gpt-5.4-mini", "--rag-embedder=openai:text-embedding-3-small")
    args = (*specs, "--rag-json=out.json", "--rag-report=out.html", "--rag-markdown=out.md", "--rag-max-cost=1")
    result = run(*args, test_suite=suite)
    share = "58 % of prompt tokens from the provider's cache"
    # (420 * 0.75 + 580 * 0.075 + 10 * 4.5) / 1e6 a request, two of them; 13 tokens of 54 letters at 0.02
    result.shows(
        f"judge calls: 2 made (2,020 tokens, {share}, 13 tokens embedded, $0.00081), *",
        "budget: 3 calls, 2033 tokens, $0.0008 of $1 used",
    )
    for file in ("out.md", "out.html"):
        shown = html.unescape(result.text(file)).replace("\\", "")
        assert f"2 calls, 2,020 tokens, {share}, 13 tokens embedded, $0.00081" in shown
    usages = [test.records[0].usage for test in read(result).tests]
    assert [(usage.cached_prompt_tokens, usage.embedding_tokens) for usage in usages] == [(1160, 0), (0, 13)]
    assert [usage.cost for usage in usages] == pytest.approx([0.000807, 13 * 0.02e-6])
    run(*args, "-k", "alike").stdout.no_fnmatch_line("judge calls*")
    run(*args, "-k", "alike", "--rag-cache=refresh").shows("embedder: 13 tokens embedded ($0.00000026)")


def test_what_could_not_be_used_is_kept(run: RunPytest, server: FakeOpenAI) -> None:
    suite = """
        def test_it(): assert_faithful("The pump of Mrs Gray needs two minutes to fill.", SOURCE, min=0.8)
    """
    server.script("Mrs Gray says no.", "Mrs Gray says no again.")
    judged = ("--rag-judge=openai:gpt-5.4-mini", "--rag-json=out.json")
    (row,) = read(run(*judged, test_suite=suite, conftest=CONFTEST)).tests
    (exchange,) = row.records[0].exchanges
    assert (exchange.task, exchange.reply, exchange.cached) == ("list_claims", "Mrs [name] says no again.", False)
    assert "pump of Mrs [name] needs" in exchange.prompt
    (row,) = read(run(*judged, "--rag-cache=replay")).tests
    assert [found.reply for found in row.records[0].exchanges] == [None]


@pytest.mark.parametrize("style", ["long", "short"])
def test_a_failure_is_named_without_its_cause(run: RunPytest, style: str) -> None:
    suite = """
        @pytest.mark.parametrize("caused", [False, True])
        def test_it(caused):
            try:
                raise KeyError("inner")
            except KeyError as error:
                if caused:
                    raise ValueError("outer") from error
                raise ValueError("outer")
    """
    ran = run(f"--tb={style}", "--rag-markdown=summary.md", test_it=suite, test_one=ONE)
    ran.assert_outcomes(passed=1, failed=2)
    lines = ran.text("summary.md").splitlines()
    assert [line.endswith(": ValueError: outer") for line in lines if "test_it.py::" in line] == [True, True]


def test_pytest_inside_a_test_keeps_to_itself(run: RunPytest) -> None:
    outer = """
        INNER = "import pytest_ragmetrics as it\\ndef test(): it.assert_quoted_spans_aligned('no quotes', 'x')"
        def test_it(pytester):
            pytester.makepyfile(INNER)
            pytester.runpytest_inprocess("-p", "ragmetrics").assert_outcomes(passed=1)
            assert_quoted_spans_aligned(TRUE, SOURCE)
    """
    (row,) = run("--rag-json=out.json", "-p", "pytester", test_outer=outer).tests.values()
    assert (row["outcome"], [record["vacuous"] for record in row["records"]]) == ("passed", [False])


OVER_LINES = """
    import re
    def pytest_ragmetrics_redact(text): return re.sub(r"Gray.*fell", "[gone] fell", text, flags=re.DOTALL)
"""
#: Another plugin represents failures; its parts cannot be changed.
FROZEN = """
    import dataclasses, pytest
    def pytest_ragmetrics_redact(text): return text.replace("Gray", "[gone]")
    @dataclasses.dataclass(frozen=True)
    class Told:
        text: str
        def toterminal(self, writer): writer.line(self.text)
        def __str__(self): return self.text
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(item, call):
        report = pytest.TestReport.from_item_and_call(item, call)
        if report.failed:
            report.longrepr = Told("Gray fell")
        return report
"""


@pytest.mark.parametrize("hook", [OVER_LINES, FROZEN], ids=["over lines", "another plugin"])
def test_what_no_part_of_a_failure_has_by_itself_is_redacted(run: RunPytest, hook: str) -> None:
    result = run(conftest=hook, test_it='def test_it():\n    raise ValueError("Gray\\nonce\\nfell")')
    result.shows("*[[]gone] fell*", failed=1)
    assert "Gray" not in result.stdout.str()


def test_the_step_summary_is_added_to(run: RunPytest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """GitHub drops a summary of more than 1 MiB as a whole: nothing is added to one that is nearly full."""
    summary = tmp_path / "summary.md"
    summary.write_text("Built.", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    for argument in ("auto", str(summary)):
        run(f"--rag-markdown={argument}", test_it=ONE).assert_outcomes(passed=1)
    text = summary.read_text("utf-8")
    assert text.startswith("Built.\n## RAG metrics")
    assert text.count("## RAG metrics") == 2
    summary.write_text("x" * (1024 * 1024 - 10), encoding="utf-8")
    run("--rag-markdown=auto").shows("*summary.md: NOT written, the step summary would be larger than the 1 MiB *")
    assert summary.stat().st_size == 1024 * 1024 - 10


#: Leaves files of an earlier run.
OLD = """
    import pathlib
    for name in ("out.json", "out.html"):
        pathlib.Path(name).write_text("the old one")
"""
LIMIT = """
    import resource
    def pytest_runtest_teardown(): resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
"""


class TestTrouble:
    """A run in trouble leaves the old report or a true one, says what happened, and never breaks down."""

    def test_a_run_without_a_terminal_writes_its_files(self, run: RunPytest) -> None:
        files = ("--rag-json=late/out.json", "--rag-report=out.html")
        result = run("-p", "no:terminal", *files, test_it=BLOCKING, conftest=OLD)
        assert (result.ret, result.outlines) == (pytest.ExitCode.TESTS_FAILED, [])
        result.stderr.fnmatch_lines(["ragmetrics: *out.json: NOT written, *"])
        assert "open the valve slowly" in result.text("out.html")

    def test_a_run_that_a_test_ends_reports_files_on_standard_error(self, run: RunPytest) -> None:
        suite = BLOCKING + "    def test_end():\n        import pytest\n        pytest.exit('enough', returncode=7)\n"
        result = run("--rag-json=late/out.json", test_it=suite)
        assert result.ret == 7
        result.stderr.fnmatch_lines(["ragmetrics: *out.json: NOT written, *"])

    def test_a_file_that_cannot_be_written_harms_nothing_else(self, run: RunPytest) -> None:
        """/dev/full says that there is no room left, and is there afterwards."""
        files = ("--rag-report=late/page.html", "--rag-json=out.json", "--rag-markdown=/dev/full")
        result = run(*files, test_it=BLOCKING)
        said = ["/dev/full: NOT written, No space left on device", "*page.html: NOT written, *", "*out.json: written"]
        result.shows_all(*said, passed=2)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stderr.no_fnmatch_line("*NOT written*")
        assert Path("/dev/full").is_char_device()

    @pytest.mark.parametrize("where", ["test", "fixture", "teardown"])
    def test_an_interrupted_run_tells_what_it_found(self, run: RunPytest, where: str) -> None:
        stop = f"""
            from test_it import test_it as score
            def interrupt(place):
                if place == {where!r}:
                    raise KeyboardInterrupt
            @pytest.fixture
            def bot():
                interrupt("fixture")
                yield
                interrupt("teardown")
            def test_a(): score()
            def test_b(bot):
                score()
                interrupt("test")
            def test_c(): score()
        """
        files = ("--rag-json=out.json", "--rag-report=out.html", "--rag-markdown=/dev/full")
        result = run("test_stop.py", *files, interrupted=True, test_stop=stop, test_it=ONE, conftest=OLD)
        assert result.ret == pytest.ExitCode.INTERRUPTED
        result.stdout.no_fnmatch_line("*INTERNALERROR*")
        result.shows("/dev/full: NOT written, No space left on device")
        document = read(result)
        assert document.run.exit_status == 2
        done = ["test_a", "test_b"] if where == "teardown" else ["test_a"]
        assert [row.id for row in document.tests] == [f"test_stop.py::{name}" for name in done]
        assert "test_stop.py::test_a" in result.text("out.html")

    def test_a_full_disk_leaves_the_old_files(self, run_once: RunPytest) -> None:
        suite = ONE.replace("SOURCE)", "[SOURCE, 'and so on ' * 5000])")
        files = ("--rag-json=out.json", "--rag-report=out.html")
        result = run_once(*files, "-p", "no:cacheprovider", test_it=suite, conftest=OLD + LIMIT)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.shows("*out.html: NOT written, File too large", "*out.json: NOT written, File too large")
        result.stdout.no_fnmatch_line("*INTERNALERROR*")
        assert {result.text(name) for name in ("out.json", "out.html")} == {"the old one"}
        assert not list(result.folder.glob(".*.part"))
