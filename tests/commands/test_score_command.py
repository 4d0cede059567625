"""The `ragmetrics score` command, and the files that it reads and writes."""

from __future__ import annotations

import asyncio
import csv
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pytest_ragmetrics import DatasetError, Evaluation, Sample, assert_mean, evaluate, load_scores
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.errors import RagMetricsError
from pytest_ragmetrics.core.locks import written_alone
from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.datasets.reading import read_dataset
from pytest_ragmetrics.datasets.streaming import LoggedRow, stream_rows
from pytest_ragmetrics.evaluation.runner import UNDER_WAY, bounded_metrics
from pytest_ragmetrics.evaluation.score import Journal, score_rows
from pytest_ragmetrics.evaluation.score_files import read_run, read_scores
from pytest_ragmetrics.evaluation.session import OwnSession
from pytest_ragmetrics.judges.context import Scoring
from pytest_ragmetrics.judges.transports.breaker import CircuitBreaker
from pytest_ragmetrics.metrics import QuotedSpansAlignment
from pytest_ragmetrics.runs.records import DocumentError, TestRecord, read_document, record_of, result_of
from tests.commands.conftest import told
from tests.fake_openai import FakeOpenAI, failing
from tests.spans import chat_trace
from tests.unit.conftest import Call

#: Two of the answers quote, one of them wrongly; the last two are the same but for their ids.
ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "How?", "response": 'It says "open the valve".', "contexts": ["Open the valve slowly."]},
    {"question": "Why?", "response": 'It says "the pump is pink".', "contexts": ["The pump needs water.", "No."]},
    *({"id": id, "response": "It rains, größer.", "contexts": ["It rains."], "metadata": {"c": "x"}} for id in "cd"),
]
NAMES = ("id", "question", "response", "contexts", "metadata")
KEY = f"sk-proj-{'0aB1cD2eF3' * 5}"
BOTH = "faithfulness=0.8,quoted_spans_alignment"
JUDGED = ("log.jsonl", "--metrics", BOTH, "--judge", "openai:fake")
PLAIN = ("log.jsonl", "--metrics", "quoted_spans_alignment")
#: Replies of the 18 to nine rows: enough for four rows in whatever order the requests of those under way come.
_PAID = 12
HEAD = json.dumps(dict.fromkeys(("version", "metrics", "judge", "embedder", "votes")))
NO_ROWS = ("[]", '{"records": []}', '{"records": [5]}', '{"records": 5}', '{"records": [{}]}')


def log(rows: list[dict[str, Any]] = ROWS, name: str = "log.jsonl") -> str:
    Path(name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return name


def many(count: int) -> list[dict[str, Any]]:
    texts = [f"It rains {n} mm." for n in range(count)]
    rest = {"metadata": {"note": f"the key is {KEY}"}}
    return [{"id": f"q{n}", "response": text, "contexts": [text], **rest} for n, text in enumerate(texts)]


@pytest.fixture
def call(tmp_path: Path, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, ragmetrics: Call) -> Call:
    monkeypatch.chdir(tmp_path)
    log()
    return lambda *args, command="score": ragmetrics(command, *args)


def shown(table: Evaluation) -> list[Any]:
    names = [name for name in MetricResult.__slots__ if name not in ("comparison", "decides", "usage", "used")]
    results = [{m: (r.value, [getattr(r, n) for n in names]) for m, r in row.results.items()} for row in table.rows]
    return [table.metrics, table.better, table.scales, results, [dict(row.unscored) for row in table.rows]]


@pytest.mark.parametrize("name", ["scores.jsonl", "scores.parquet"])
def test_scores_are_those_of_an_evaluation(call: Call, server: FakeOpenAI, name: str) -> None:
    status, out, err = call(*JUDGED, "-o", name)
    assert (status, err, server.duplicates) == (0, "", 0)
    assert out.startswith(f"{name}: 4 rows scored\n  faithfulness: mean ")
    assert "quoted_spans_alignment: mean 0.500 over 2 rows, 2 with nothing to check\n" in out
    asked = server.calls
    table = load_scores(name)
    same = evaluate(ROWS, ["faithfulness", "quoted_spans_alignment"], judge="openai:fake", cache_dir=".ragmetrics")
    assert shown(table) == shown(same)
    assert [row.sample for row in table.rows] == [row.sample for row in same.rows]
    assert server.calls == asked
    assert_mean(table, 0.5, metric="quoted_spans_alignment")
    assert sorted(os.listdir()) == [".ragmetrics", "log.jsonl", name]  # noqa: PTH208 - names


def test_parquet_has_flat_columns(call: Call) -> None:
    log([*ROWS, {"id": "e", "response": ["no text"]}])
    assert call(*JUDGED, "-o", "scores.parquet")[0] == 0
    table = pq.read_table("scores.parquet")
    columns = table.to_pydict()
    assert columns["id"] == ["a", None, "c", "d", None]
    assert [columns[f"faithfulness_{name}"][0] for name in ("score", "passed", "judge")] == [1.0, True, "openai:fake"]
    assert [columns[f"quoted_spans_alignment_{name}"][0] for name in ("passed", "cost")] == [None, 0.0]
    assert columns["quoted_spans_alignment_vacuous"] == [False, False, True, True, None]
    assert columns["faithfulness_score"][-1] is None
    said = "log.jsonl:5: field 'response': response must be a str, not list; a list is for the contexts"
    assert columns["faithfulness_unscored"][-1] == said
    assert table.schema.field("faithfulness_unscored").type == pa.string()


def test_answers_that_are_not_scored_are_told(call: Call) -> None:
    """At the end of the summary, not where each answer is scored."""
    said = [{"role": "user", "content": "何分？"}, {"role": "assistant", "content": "2 minutes.", "contexts": ["2."]}]
    rows = [{"id": f"c{n}", "messages": said * n} for n in (1, 2, 4)]
    file, note = log(rows, "talks.jsonl"), "2 conversations: only the last of 2 to 4 answers was scored; "
    scored = (file, "--metrics=numbers_aligned", "--output=scored.jsonl")
    assert call(*scored)[1].splitlines()[-1] == f'{note}turns="each" scores all'
    assert "answers was scored" not in call(*scored, "--turns=each")[1]


def test_traces_are_scored(call: Call, server: FakeOpenAI) -> None:
    """The spans of a trace stand in several lines; one trace has no answer."""
    answers = {"t1": "It rains 3 mm.", "t2": None, "t3": "It rains 5 mm."}
    traces = [chat_trace(id, "Rain?", answer, "It rains 3 mm.") for id, answer in answers.items()]
    spans = [trace["resourceSpans"][0]["scopeSpans"][0]["spans"] for trace in traces]
    pieces = [[spans[n][m]] for m in (1, 0) for n in range(3)]
    log([{"resourceSpans": [{"scopeSpans": [{"spans": piece}]}]} for piece in pieces], "traces.jsonl")
    args = ("traces.jsonl", "--metrics=numbers_aligned=1.0,faithfulness", "--judge=openai:fake", "-o", "scores.jsonl")
    told(call(*args), 0, "scores.jsonl: 3 rows scored")
    table = load_scores("scores.jsonl")
    assert table.scores("numbers_aligned") == [1.0, None, 0.0]
    assert [row.sample.id for row in table.rows] == ["t1", None, "t3"]
    assert table.rows[1].unscored["faithfulness"].startswith("traces.jsonl:2: the trace has no answer: ")


def test_reports_are_made_of_scores(call: Call) -> None:
    """A page, a summary and a comparison take such a file like one of --rag-json; a row fails below its bound."""
    call("log.jsonl", "--metrics", "faithfulness,quoted_spans_alignment=0.5", "--judge=local", "-o", "scores.jsonl")
    assert call("html", "scores.jsonl", command="report")[:2] == (0, "rag-report.html: written, 4 tests\n")
    assert "the pump is pink" in Path("rag-report.html").read_text("utf-8")
    document = read_run(Path("scores.jsonl"))
    assert [test.id for test in document.tests] == [f"log.jsonl[{name}]" for name in ("1-a", "2", "3-c", "4-d")]
    assert document.tests[1].records[0].sample.user_input == "Why?"
    assert [test.outcome for test in document.tests] == ["passed", "failed", "passed", "passed"]
    assert call("diff", "scores.jsonl", "scores.jsonl", command="report")[0] == 0


def test_scores_of_early_versions_are_read(call: Call) -> None:
    log([{**ROWS[0]}, {"response": ["no text"]}])
    call("log.jsonl", "--metrics", "quoted_spans_alignment=0.9,exact_match", "-o", "scores.jsonl")
    early = Path(__file__).parents[1] / "data" / "scores_version_1.jsonl"
    now = list(read_scores(Path("scores.jsonl")))
    # They did not say which code scored.
    bare = [replace(test, records=tuple(replace(it, rule=None) for it in test.records)) for test in now]
    assert list(read_scores(early)) == bare != now


def test_what_is_no_file_of_scores_is_told(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    call(*PLAIN, "-o", "scores.jsonl")
    row = json.loads(Path("scores.jsonl").read_text("utf-8").splitlines()[0])
    Path("none.jsonl").write_text(json.dumps(row | {"records": []}), "utf-8")
    foreign = "row 1 is not one that ragmetrics score wrote: "
    for name, said in (
        ("log.jsonl", f"{foreign}the document lacks"),
        ("none.jsonl", f"{foreign}it has no records"),
        ("scores.csv", r"scores are in files that end in \.jsonl or \.parquet"),
    ):
        with pytest.raises(DocumentError, match=said):
            load_scores(name)
    with pytest.raises(DocumentError, match="not JSON"):
        read_document(Path("scores.jsonl"))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    Path("log.parquet").touch()
    for source, target in (("log.jsonl", "scores.parquet"), ("log.parquet", "scores.jsonl")):
        err = call(source, *PLAIN[1:], "-o", target)[2]
        assert 'Parquet needs pyarrow: pip install "pytest-ragmetrics[parquet]"' in err


@pytest.mark.slow
def test_a_killed_run_is_taken_up(call: Call, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer that came is paid for twice, and no row is missing or there twice; half a line is written anew."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    log(many(30))
    args = (*JUDGED[:3], "--judge", "openai:fake", "--concurrency", "4", "-o", "scores.jsonl")
    server.latency = 0.03
    process = subprocess.Popen([sys.executable, "-m", "pytest_ragmetrics", "score", *args])
    part = Path("scores.jsonl.part")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not part.exists() or part.read_bytes().count(b"\n") <= 5):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    server.latency = 0.0
    before = part.read_bytes().count(b"\n") - 1
    with part.open("ab") as stream:
        stream.write(b'{"file": "log.jso')
    told(call(*args), 0, f"scores.jsonl: 30 rows scored, {before} of them by an earlier run\n")
    assert [row.records[0].sample.id for row in read_scores(Path("scores.jsonl"))] == [f"q{n}" for n in range(30)]
    # What was on its way when it was killed came to nobody, and three times as much may have waited for the store.
    assert server.duplicates <= 16
    assert server.answered - server.duplicates == 60
    assert not part.exists()
    # The row of the journal is that of the log, although its key is masked.
    assert KEY not in Path("scores.jsonl").read_text("utf-8")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda args: (*args, "--votes", "3"), "(votes was None); give the same, or remove it to start over"),
        (lambda args: (*args[:2], "faithfulness", *args[3:]), "is of a run with other options (metrics was {'faithful"),
        (lambda args: (log(ROWS[1:], "other.jsonl"), *args[1:]), "row 1 is not that of the files given now"),
    ],
)
def test_a_journal_of_another_run_is_left_alone(
    call: Call, server: FakeOpenAI, change: Callable[[tuple[str, ...]], tuple[str, ...]], said: str
) -> None:
    args = (*JUDGED, "-o", "scores.jsonl", "--concurrency", "1")
    stop_early(call, server, args)
    before = Path("scores.jsonl.part").read_bytes()
    told(call(*change(args)), 2, said)
    assert Path("scores.jsonl.part").read_bytes() == before


def stop_early(call: Call, server: FakeOpenAI, args: tuple[str, ...]) -> str:
    log(many(9))
    server.reset()
    answer = server.answer
    server.answer = lambda body: answer(body) if server.calls < _PAID else failing(401, code="invalid_api_key")
    status, _, err = call(*args)
    server.reset()
    assert status == 1
    return err


def test_rows_that_a_failing_judge_left_unscored_are_asked_again(call: Call, server: FakeOpenAI) -> None:
    """They are not in the way of other options either, as nothing of them was paid for."""
    log(many(9))
    args = (*JUDGED, "-o", "scores.jsonl", "--concurrency", "2")
    server.answer = lambda _: failing(400, "No.")
    told(call(*args), 1, "scores.jsonl.part has")
    assert Path("scores.jsonl.part").read_text("utf-8").count("\n") > 1
    server.reset()
    assert "unscored" not in told(call(*args, "--votes", "1"), 0, "scores.jsonl: 9 rows scored\n")


@pytest.mark.parametrize("scored", [0, 3])
def test_rows_without_a_score_are_asked_again_only_at_the_end(call: Call, scored: int) -> None:
    """Those before a row with all its scores have a reason that is their own."""
    rows = [{"id": f"{n}", "contexts": ["It rains."]} for n in range(6)]
    rows[scored]["response"] = "It rains."
    log(rows)
    args = ("log.jsonl", "--metrics", "lexical_grounding", "-o")
    assert call(*args, "once.jsonl")[0] == 0
    once = Path("once.jsonl").read_text("utf-8")
    settings = {"metrics": {"lexical_grounding": None}, "judge": None, "embedder": None, "votes": None}
    journal = Journal(Path("scores.jsonl"), ["lexical_grounding"], settings)
    for line in once.splitlines():
        journal.add(json.loads(line))
    told(call(*args, "scores.jsonl"), 0, f"6 rows scored, {scored + 1} of them by an earlier run")
    assert Path("scores.jsonl").read_text("utf-8") == once


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "remove it to start over") for text in ("[]\n", "5\n", '{"a": 1}\n')),
        *((f"{HEAD}\n{line}\n", "scores.jsonl.part: the line behind row 0 is no row") for line in NO_ROWS),
    ],
)
def test_a_file_that_is_no_journal_is_left_alone(call: Call, text: str, said: str) -> None:
    """It is somebody else's, although it has no rows, or something else changed it."""
    part = Path("scores.jsonl.part")
    part.write_text(text, "utf-8")
    told(call(*PLAIN, "-o", "scores.jsonl"), 2, said)
    assert part.read_text("utf-8") == text


def test_a_full_disk_is_told_and_one_process_writes(call: Call) -> None:
    """The error names the file, and another run may write it at once; a second one is refused until then."""
    with written_alone(Path("scores.jsonl"), ValueError()):
        told(call(*PLAIN, "-o", "scores.jsonl"), 2, "another ragmetrics score is writing it")
    assert not Path("scores.jsonl.part").exists()
    Path("scores.jsonl.part").symlink_to("/dev/full")
    with pytest.raises(RagMetricsError, match=r"scores.jsonl.part cannot be written: No space"):
        Journal(Path("scores.jsonl"), [], {}).add({"records": []})


def test_a_judge_that_gives_up_ends_the_run(call: Call, server: FakeOpenAI) -> None:
    args = (*JUDGED, "-o", "scores.jsonl", "--concurrency", "1")
    err = stop_early(call, server, args)
    assert re.search(r"the key was refused[\s\S]*jsonl.part has [4-6] rows: the same command goes on from", err), err
    assert not Path("scores.jsonl").exists()
    assert "unscored" not in told(call(*args), 0)
    assert len(load_scores("scores.jsonl").rows) == 9
    assert server.answered + _PAID == 18


def test_a_budget_leaves_rows_with_its_reason(call: Call, server: FakeOpenAI) -> None:
    log(many(6))
    found = call(*JUDGED, "-o", "scores.jsonl", "--max-calls", "5", "--concurrency", "2")
    told(found, 1, "budget: 5 of 5 calls")
    assert server.calls == 5
    rows = load_scores("scores.jsonl").rows
    assert sum("--max-calls=5 is reached" in row.unscored.get("faithfulness", "") for row in rows) >= 3
    assert all("quoted_spans_alignment" in row.results for row in rows)
    assert call(*JUDGED, "-o", "scores.jsonl")[0] == 0
    assert server.calls == 12
    assert not any(row.unscored for row in load_scores("scores.jsonl").rows)
    found = call(*JUDGED, "-o", "scores.jsonl", "--max-cost", "1", "--cache-dir", "fresh")
    told(found, 1, "has no known price, so --max-cost cannot be kept: use --max-tokens")


def as_csv(name: str) -> None:
    with gzip.open(name, "wt", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, NAMES)
        writer.writeheader()
        writer.writerows({k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()} for row in ROWS)


WRITERS: dict[str, Callable[[str], object]] = {
    "rows.jsonl": lambda name: log(name=name),
    "rows.csv.gz": as_csv,
    "rows.json": lambda name: Path(name).write_text(json.dumps(ROWS), "utf-8"),
    "rows.parquet": lambda name: pq.write_table(pa.Table.from_pylist([dict.fromkeys(NAMES) | it for it in ROWS]), name),
}


@pytest.mark.parametrize("name", WRITERS)
def test_files_have_the_rows_of_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    WRITERS[name](name)
    rows = list(stream_rows([Path(name), Path(name)], limit=7))
    assert [(row.file, row.number) for row in rows] == [(name, n) for n in (1, 2, 3, 4, 1, 2, 3)]
    assert (rows[1].line, rows[4].line) == {".json": (1, 1), ".gz": (3, 2)}.get(Path(name).suffix, (2, 1))
    wanted = [row.sample for row in read_dataset(ROWS, base=Path()) if row.sample]
    for row, sample, given in zip(rows, wanted, ["a", None, "c", "d"], strict=False):
        assert (row.error, row.sample) == (None, replace(sample, id=given))


@pytest.mark.parametrize(
    ("name", "content", "errors"),
    [
        ("a.jsonl", b'{"response": "x"}\n\n[1]\n{"answer": 4}', {3: "a row is an object", 4: "field 'answer'"}),
        ("a.jsonl", b'{"x": 1}', {1: "has no field to score"}),
        ("a.jsonl", b'{"response": "\xff"}\n{"response": "x"}', {1: "byte 0xff is not UTF-8"}),
        ("a.csv", b"response,id\nx,1\n\xff,2\nz\n", {3: "a byte is not UTF-8", 4: "has 1 cell, the header 2"}),
        ("a.csv", b'\xef\xbb\xbfresponse;contexts\n"a\nb";"[""c"", 1]"\n', {2: "retrieved_contexts"}),
    ],
)  # fmt: skip
def test_a_broken_row_is_one_row(tmp_path: Path, name: str, content: bytes, errors: dict[int, str]) -> None:
    (tmp_path / name).write_bytes(content)
    rows = list(stream_rows([tmp_path / name]))
    assert [row.line for row in rows if row.error] == list(errors)
    for row in rows:
        assert (row.sample is None) == (row.error is not None)
        assert row.error is None or re.search(f"{name}:{row.line}: .*{errors[row.line or 0]}", row.error)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", b"", "there are no rows"),
        ("a.jsonl", b'[{"response": "x"}]', "contains a JSON list: name it .json"),
        ("a.jsonl", b'{\n"response": "x"}', "contains an object over several lines"),
        ("a.jsonl", "ö".encode("utf-16"), "is UTF-16"),
        ("a.jsonl", gzip.compress(b"{}", mtime=0), "let its name end in .gz"),
        ("a.csv.gz", b"response\nx", "cannot be read"),
        ("a.csv", b"x\n1\n", "is no header with names of fields"),
        ("a.parquet", b"PAR1", "cannot be read as Parquet"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=f"{name}.*{said}"):
        list(stream_rows([tmp_path / name]))


class FirstIsSlow(QuotedSpansAlignment):
    async def ameasure(self, sample: Sample) -> MetricResult:
        if sample.id == "0":
            for _ in range(2000):
                await asyncio.sleep(0)
        return self.measure(sample)


def test_rows_are_taken_in_order_and_few_at_a_time() -> None:
    """A slow row holds the later ones back, of which a bounded number is read meanwhile."""
    read = 0
    taken: list[tuple[str, int]] = []

    def rows() -> Iterator[LoggedRow]:
        nonlocal read
        for read in range(1, 501):
            sample = Sample(id=f"{read - 1}", response="It rains.", retrieved_contexts=["It rains."])
            yield LoggedRow(file="x", number=read, line=read, sample=sample)

    def take(row: TestRecord) -> None:
        taken.append((row.id, read))

    with OwnSession(None, 1) as session:
        metrics = bounded_metrics([FirstIsSlow()])
        scoring = score_rows(rows(), metrics, session, votes=None, take=take, breaker=CircuitBreaker(1), gives_up=True)
        loop.run(scoring)
    assert [name for name, _ in taken] == [f"x[{number}-{number - 1}]" for number in range(1, 501)]
    # One more is read, and waits for a place.
    assert taken[0][1] == 16 * UNDER_WAY + 1


@pytest.mark.parametrize(("samples", "votes"), [((0.0, 1.0), 2), ((), 1)])
def test_a_result_comes_back_from_its_record(samples: tuple[float, ...], votes: int) -> None:
    given = MetricResult(0.5, metric="fit", samples=samples, votes=votes, vacuous=True, reason="half", scale=(0.0, 1.0))
    found = result_of(record_of(Scoring(metric="fit", sample=Sample(), outcome=given)))
    assert found.__getnewargs_ex__() == given.__getnewargs_ex__()


def test_a_budget_ends_the_search_for_blame(call: Call, server: FakeOpenAI) -> None:
    for name, said in (("old", "It rains."), ("new", "The pump is pink.")):
        log([{"id": "a", "question": "What?", "response": said, "contexts": ["It rains."]}], f"{name}.jsonl")
        scored = (f"{name}.jsonl", "-o", f"{name}-scores.jsonl", "--metrics=faithfulness")
        assert call(*scored, "--judge=openai:gpt-5.4-mini")[0] == 0
    asked, files = server.calls, ("old-scores.jsonl", "new-scores.jsonl")
    blame = ("diff", *files, "--blame", "--judge=openai:gpt-5.4-mini")
    told(
        call(*blame, "--max-cost=0", command="report"), 0, "1 worse: 1 unknown\n", "unknown: --max-cost=0.0 is reached"
    )
    assert server.calls == asked
    told(call(*blame, command="report"), 0, "1 worse: 1 generator\n")
    assert asked < server.calls <= asked + 4
