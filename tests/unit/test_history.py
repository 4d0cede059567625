"""What a history keeps of a run, what reading it refuses, and what its trends say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_ragmetrics import metric
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.plugin.cassette import selected_tests
from pytest_ragmetrics.report.files import write_files
from pytest_ragmetrics.report.history import (
    History,
    HistoryError,
    HistoryRun,
    history_of,
    history_run,
    read_history,
    write_history,
)
from pytest_ragmetrics.report.judging import judging_of
from pytest_ragmetrics.report.page import render_history
from pytest_ragmetrics.report.tests_view import build_report_view
from pytest_ragmetrics.report.trends import Trends, build_trends, trend_lines
from pytest_ragmetrics.runs.origin import origin_parts, origin_title
from pytest_ragmetrics.runs.records import Document, render_json
from tests.documents import HOSTILE, document, gate, record, row
from tests.histories import hostile, kept, month, scored
from tests.unit.conftest import Call


def made(*tests: Any, prompts: Path | None = None) -> HistoryRun:
    whole = document(*tests)
    records = [record for test in tests for record in test.records]
    judging = judging_of(whole.run, records, {"faithfulness": ["verify_claims"]}, prompts=prompts)
    private: Any = {"author": "Ana", "message": "Secret.", "settings": {"judge": "/home/ana"}, "notes": ("Secret",)}
    run = replace(whole.run, commit="0123456789abcdef", branch="main", judging=judging, **private)
    return history_run(replace(whole, run=run))


def shown(*runs: HistoryRun) -> Trends:
    return build_trends(History(runs=runs, branch="main"))


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    scores = [record("faithfulness", score, at_least=0.8, sample={"response": "Secret."}) for score in (0.9, 0.7)]
    scores[1] = replace(scores[1], outcome="failed", judge="openai:one", usage=Usage(calls=1, cost=0.25))
    empty = record("faithfulness", 1.0, at_least=None, vacuous=True, outcome="measured")
    run = made(
        row("test_a", scores[0], record("faithfulness", None, outcome="unscored")),
        row("test_b", scores[1], outcome="failed"),
        row("test_c", empty),
        row("test_gate", gate=gate()),
        row("test_skipped", gate=gate(outcome="skipped")),
    )
    files = {write_history(tmp_path / "new", run) for _ in range(2)}
    assert read_history(tmp_path / "new", last=5).runs == (run, run)
    assert len(files) == 2
    assert all(file.name.startswith("20260302T164107Z-") for file in files)
    text = next(iter(files)).read_text("utf-8")
    assert not any(word in text for word in ("Secret", "Ana", "/home"))
    (point,) = run.metrics
    assert (point.mean, point.n, point.failing, point.unscored, point.vacuous) == (0.8, 2, 1, 1, 1)
    assert (point.low or 1) < 0.7
    assert (point.high or 0) > 0.9
    assert (run.run.judging["faithfulness"].judge, point.cost, run.cost) == ("openai:one", 0.25, 0.25)
    assert [found.outcome for found in run.gates.values()] == ["passed"]
    worst, failed, *_ = run.tests
    assert worst.scores == {"faithfulness": (None, "unscored", "")}
    assert failed.scores == {"faithfulness": (0.7, "failed", "≥ 0.80")}


def test_files_of_version_1_are_read(tmp_path: Path) -> None:
    """One that the code of then wrote says what it said then: means of all scores, gates and tests."""
    folder = Path(__file__).parents[1] / "data"
    (tmp_path / "run.json").write_bytes((folder / "history_version_1.json").read_bytes())
    (run,) = read_history(tmp_path, last=5, branch="main").runs
    assert (run.run.selection, run.run.judging["faithfulness"].judge) == ("tests", "openai:gpt-5-mini")
    assert run.tests[0].scores == {"answer_relevancy": (1.0, "measured", ""), "faithfulness": (0.7, "failed", "≥ 0.80")}
    lines = [line.split("  ") for line in trend_lines(shown(run))]
    assert [[cell.strip() for cell in line if cell] for line in lines] == [
        ["1 run on main, 2026-10-01 08:14 0123456+, 5 tests in the last run, $1.00 in all"],
        ["line", "runs", "from", "to", "interval", "needs"],
        ["mean faithfulness", "1", "0.85", "0.85", "0.25..0.97", "0.80 passed"],
        ["share of faithfulness ≥ 0.80, test_share", "1", "0.67", "0.67", "0.20..0.95", "0.90 inconclusive"],
        ["2 tests fail"],
        ["tests/test_assistant.py::test_bot[noise]: since 2026-10-01 08:14 0123456+, failed in 1 of 1 run"],
        ["tests/test_assistant.py::test_bot[pets]: since 2026-10-01 08:14 0123456+, failed in 1 of 1 run"],
    ]


def test_prompts_and_code_are_in_the_fingerprint(tmp_path: Path) -> None:
    scored = row("test_a", record("faithfulness"), record("answer_relevancy"), record("brevity"))
    (tmp_path / "verify_claims.md").write_text("Verify.", "utf-8")
    plain, other = made(scored), made(scored, prompts=tmp_path)
    before, after = ({name: it.prompts for name, it in run.run.judging.items()} for run in (plain, other))
    assert before["faithfulness"].keys() == {"verify_claims"}
    assert before["faithfulness"] != after["faithfulness"]
    assert before["answer_relevancy"] == after["answer_relevancy"] == {}
    definitions = {name: set(it.definition) for name, it in plain.run.judging.items()}
    assert definitions["answer_relevancy"] - definitions["faithfulness"] == {"embedder"}
    assert definitions["brevity"] == definitions["faithfulness"] == {"better", "release", "verdicts"}


def test_the_code_of_a_metric_of_our_own_is_its_definition() -> None:
    functions = [
        lambda response: float(len(response) <= 280),
        lambda response: float(len(response) <= 280),
        lambda response: float(len(response) <= 300),
    ]
    codes = []
    for function in functions:
        with context.changed(private=cast("Any", SimpleNamespace(metrics=[metric(name="short")(function)]))):
            codes.append(made(row("test_a", record("short"))).run.judging["short"].definition["code"])
    assert codes[0] == codes[1] != codes[2]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("z.json", "{", "z.json: left out, not JSON: "),
        ("z.json", "[]", "z.json: left out, not a file of --rag-history"),
        ("z.json", '{"version": 1, "tests": []}', "z.json: left out, not a file of --rag-history"),
        ("z.json", '{"version": 3, "metrics": []}', "z.json: left out, it is of version 3, and this release reads"),
        ("z.json", '{"version": 2, "metrics": []}', "z.json: left out, the document lacks run"),
        ("z.json", '{"version": 1, "metrics": [7]}', "z.json: left out, not a file of --rag-history"),
        ("z.json", '{"a": NaN}', "z.json: left out, not JSON: NaN is not a JSON number"),
        ("notes.md", "# Notes", "notes.md: left out, not a file of --rag-history"),
        (".gitkeep", "", None),
    ],
)
def test_what_is_no_run_is_left_out_by_name(tmp_path: Path, name: str, text: str, said: str | None) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(HistoryError, match=r"no run; pytest --rag-history=\S+ writes one") as caught:
        read_history(tmp_path, last=5)
    assert said is None or said in str(caught.value)
    write_history(tmp_path, kept(1, {"test_a": 0.9}))
    left_out = read_history(tmp_path, last=5).left_out
    assert left_out == () if said is None else left_out[0].startswith(said)


def test_a_run_says_how_each_of_its_metrics_is_judged(tmp_path: Path) -> None:
    write_history(tmp_path, kept(1, {"test_a": 0.9}, judging={}))
    with pytest.raises(HistoryError, match=r"left out, run\.judging lacks faithfulness"):
        read_history(tmp_path, last=5)


def test_a_branch_and_the_last_runs_are_shown(tmp_path: Path) -> None:
    for day in (3, 1, 2):
        write_history(tmp_path, kept(day, {"test_a": 0.9}, branch="fix" if day == 3 else "main"))
    found = read_history(tmp_path, last=5, branch="main")
    assert [run.run.started[8:10] for run in found.runs] == ["01", "02"]
    assert found.left_out == ("1 run of other branches left out; --branch=NAME shows another one",)
    assert [run.run.started[8:10] for run in read_history(tmp_path, last=1, branch="main").runs] == ["02"]
    assert read_history(tmp_path, last=5).branch == "fix"
    (cut,) = [file for file in tmp_path.iterdir() if file.name.startswith("20261003")]
    lines = cut.read_text("utf-8").splitlines()
    cut.write_text(f"{lines[0]}\n", "utf-8")
    assert read_history(tmp_path, last=5, branch="main") == found
    cut.write_text(json.dumps(json.loads("\n".join(lines)), indent=1), "utf-8")
    assert read_history(tmp_path, last=5, branch="main") == found
    assert read_history(tmp_path, last=5).branch == "fix"
    with pytest.raises(HistoryError, match="no run of branch 'none'"):
        read_history(tmp_path, last=5, branch="none")
    with pytest.raises(HistoryError, match=r"absent: .*; give the folder of --rag-history"):
        read_history(tmp_path / "absent", last=5)


def test_a_run_is_the_last_of_the_history_it_is_shown_with(tmp_path: Path) -> None:
    days = {day: kept(day, {"test_a": 0.9 if day < 4 else 0.5}) for day in (1, 2, 3, 4, 5)}
    for day in (1, 2, 3, 5):
        write_history(tmp_path, days[day])
    write_history(tmp_path, kept(2, {"test_a": 0.9}, branch="other"))
    whole = document(row("test_a", scored(0.5, "It is.", outcome="failed"), outcome="failed"))
    fourth = replace(whole.run, started="2026-10-04T08:14:00+00:00", branch="main", commit="04c0ffee0123")
    now = replace(whole, run=fourth)

    def times(run: Document, **options: Any) -> list[str]:
        return [kept.run.started[8:10] for kept in history_of(run, tmp_path, **options).runs]

    assert times(now) == ["01", "02", "03", "04"]
    assert times(now, last=2) == ["03", "04"]
    assert times(now, last=1) == ["04"]
    write_history(tmp_path, days[4])
    assert times(now, last=3) == ["02", "03", "04"]
    fix = replace(now, run=replace(now.run, branch="fix", commit="feed"))
    assert times(fix) == ["01", "02", "03", "04", "04"]
    assert build_trends(history_of(fix, tmp_path)).facts[0] == "5 runs on main, the last on fix"
    assert history_of(now, tmp_path / "absent").runs == (history_run(now),)
    trends = build_trends(history_of(now, tmp_path))
    (name,) = trends.tests
    assert name == now.tests[0].id
    assert trends.tests[name].cells == ("held", "held", "held", "short")
    assert (trends.tests[name].failed, trends.tests[name].since[:10]) == ("failed in 1 of 4 runs", "2026-10-04")


def test_the_view_of_a_run_has_its_history_and_its_place() -> None:
    day = kept(1, {"test_a": 0.9})
    whole = document(row("test_a", scored(0.5, "It is.")), row("test_b", scored(0.9, "It is.")))
    run = replace(whole.run, project="bot", ci="javascript:1", ci_number="7", commit="4f2c91a0")
    whole = replace(whole, run=replace(run, repository="https://github.com/shop/bot", folder="services/chat"))
    view = build_report_view(whole, history=History(runs=(day, history_run(whole)), branch="main"))
    run = view.overview.document.run
    commit = ("commit 4f2c91a", "https://github.com/shop/bot/commit/4f2c91a0")
    assert (origin_title(run), *origin_parts(run)) == ("bot 4f2c91a", commit, ("CI 7", ""))
    cells = {test.name: test.trend and test.trend.cells for test in view.tests}
    assert cells == {"test_a": ("held", "held"), "test_b": ("absent", "held")}
    source = "https://github.com/shop/bot/blob/4f2c91a0/services/chat/tests/test_assistant.py#L12"
    assert {test.source for test in view.tests} == {source}
    plain = build_report_view(document(row("test_a", scored(0.5, "It is."))))
    assert plain.tests[0].trend is None
    assert plain.tests[0].source == origin_title(plain.overview.document.run) == ""


def changed(run: HistoryRun, **fields: Any) -> HistoryRun:
    judging = {name: replace(it, **fields) for name, it in run.run.judging.items()}
    return replace(run, run=replace(run.run, judging=judging))


OLD = changed(kept(1, {"test_a": 0.9}), prompts={"list_claims": "1"}, definition={"code": "1"})
NEW = changed(kept(2, {"test_a": 0.5}), prompts={"list_claims": "1"}, definition={"code": "1"})


@pytest.mark.parametrize(
    ("new", "reasons"),
    [
        (NEW, ()),
        (changed(NEW, judge="openai:two"), ("judge openai:one, then openai:two",)),
        (changed(NEW, judge=""), ("judge openai:one, then none",)),
        (changed(NEW, prompts={"list_claims": "2"}), ("the prompt of list_claims changed",)),
        (changed(NEW, prompts={"verify_claims": "2"}), ()),
        (changed(NEW, definition={"code": "2"}), ("its code changed",)),
        (changed(NEW, definition={"code": "1", "release": "0.2"}), ("release none, then 0.2",)),
        (replace(NEW, run=replace(NEW.run, selection="tests")), ("other tests, all, then tests",)),
    ],
)
def test_what_is_not_comparable_breaks_the_line(new: HistoryRun, reasons: tuple[str, ...]) -> None:
    view = shown(OLD, new)
    (trend,) = view.trends
    assert trend.last.breaks == reasons
    assert len(trend.parts[-1]) == (1 if reasons else 2)
    assert len(trend.lines) == (0 if reasons else 1)
    said = [line for line in trend_lines(view) if line.startswith("new line from 2026-10-02 08:14 02c0ffe: ")]
    assert [line.split(": ", 1)[1] for line in said] == [f"{reason} (mean faithfulness)" for reason in reasons]


def test_partial_runs_are_in_no_line_but_say_what_fails() -> None:
    part, unscored = kept(2, {"test_a": 0.1}, partial="-k a"), kept(3, {"test_a": None})
    view = shown(kept(1, {"test_a": 0.9, "test_b": 0.9}), part, unscored)
    assert [point.value for trend in view.trends for point in trend.points] == [0.9]
    assert [(test.since[:10], test.failed) for test in view.failing] == [("2026-10-02", "failed in 2 of 3 runs")]
    assert shown(part).trends == ()
    assert "no whole run, and so no line" in trend_lines(shown(part))


def test_bounds_stand_on_the_line_of_their_metric() -> None:
    bound = gate(value=0.9, bound=0.8)
    rate = gate(value=0.5, bound=0.6, statistic="rate", min_score=0.8, between=(0.4, 0.7), outcome="inconclusive")
    part = gate(value=0.7, bound=0.75, outcome="failed")
    view = shown(*(kept(day, {"test_a": 0.9}, gates=[bound, rate, part]) for day in (1, 2)))
    assert [(trend.title, trend.last.bound, trend.last.outcome) for trend in view.trends] == [
        ("mean faithfulness", 0.8, "passed"),
        ("share of faithfulness ≥ 0.80, test_gate_1", 0.6, "inconclusive"),
        ("mean faithfulness, test_gate_2", 0.75, "failed"),
    ]
    assert [len(trend.bounds) for trend in view.trends] == [1, 1, 1]
    assert view.trends[1].bands == ["0,0 100,0 100,100 0,100"]
    assert view.trends[1].lines == ["0,66.67 100,66.67"]
    of_time: Any = {"better": "lower", "unit": "s", "percentile": 1.8, "min_score": 2.0}
    late = gate(value=0.96, bound=0.95, statistic="rate", between=None, **of_time)
    trend = shown(*(kept(day, {"test_a": 0.9}, gates=[late]) for day in (1, 2))).trends[1]
    assert (trend.name, trend.share, trend.last.value, trend.last.bound) == (
        "95th percentile of faithfulness",
        *(False, 1.8, 2.0),
    )


@pytest.mark.parametrize(
    ("scores", "since", "failed"),
    [
        ((0.9, 0.5, 0.5), 2, "failed in 2 of 3 runs"),
        ((0.5, 0.9, 0.5), 3, "failed in 2 of 3 runs"),
        ((0.5, 0.5, 0.5), 1, "failed in 3 of 3 runs"),
        ((0.5, "absent", 0.5), 1, "failed in 2 of 2 runs"),
        ((0.5, 0.5, 0.9), None, ""),
        ((0.5, 0.5, "absent"), None, ""),
    ],
)
def test_a_test_fails_since_a_run(scores: tuple[float | str, ...], since: int | None, failed: str) -> None:
    runs = []
    for day, score in enumerate(scores, 1):
        answers = {"test_b": 0.9} | ({} if isinstance(score, str) else {"test_a": (score, f"answer {day}")})
        runs.append(kept(day, cast("Any", answers)))
    view = shown(*runs)
    assert [test.failed for test in view.failing] == ([failed] if since else [])
    assert [test.since[9:10] for test in view.failing] == ([str(since)] if since else [])
    assert view.headline == (f"1 test fails, {1 if since == 3 else 'none'} of them newly" if since else "No test fails")
    # Runs of one minute have one name.
    assert shown(*(replace(run, run=runs[0].run) for run in runs)).headline == view.headline
    two = [kept(day, {"test_a": score, "test_b": score}) for day, score in enumerate((0.9, 0.5), 1)]
    assert shown(*two).headline == "2 tests fail, all newly"
    assert shown(runs[0]).headline == ("1 test fails" if scores[0] == 0.5 else "No test fails")


def failed(run: HistoryRun) -> HistoryRun:
    """Return a run whose tests failed, whatever they scored."""
    return replace(run, tests=tuple(replace(test, outcome="failed") for test in run.tests))


A, B, OTHER = ({"test_a": given} for given in ((0.9, "same"), (0.5, "same"), (0.5, "another")))


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ((kept(1, A), kept(2, B)), "one answer passed and failed faithfulness"),
        ((failed(kept(1, A)), failed(kept(2, B))), "one answer passed and failed faithfulness"),
        ((kept(1, A), kept(2, OTHER)), ""),
        ((kept(1, A), kept(2, B, judge="openai:two")), ""),
        ((kept(1, A), kept(2, {"test_a": (0.95, "same")})), ""),
        ((kept(1, A, commit="abc"), kept(2, OTHER, commit="abc")), "passed and failed at commit abc"),
        ((kept(1, A, commit="abc+"), kept(2, OTHER, commit="abc+")), ""),
        ((kept(1, A, commit=""), kept(2, OTHER, commit="")), ""),
    ],
)  # fmt: skip
def test_flaky_is_what_comes_out_both_ways_unchanged(runs: tuple[HistoryRun, ...], said: str) -> None:
    """One answer under one judge, or one commit without changes; another judge explains another outcome."""
    assert [test.flaky for test in shown(*runs).flaky] == ([said] if said else [])


def test_a_changed_threshold_makes_no_test_flaky() -> None:
    runs = [made(row("test_a", record("faithfulness", 0.85, outcome="passed", at_least=0.8)))]
    runs.append(made(row("test_a", record("faithfulness", 0.85, outcome="failed", at_least=0.9), outcome="failed")))
    runs[1] = replace(runs[1], run=replace(runs[1].run, commit="another"))
    assert shown(*runs).flaky == ()


def test_the_command_prints_a_table_or_writes_a_page(tmp_path: Path, ragmetrics: Call) -> None:
    for run in month().runs:
        write_history(tmp_path / "kept", run)
    status, out, _ = ragmetrics("report", "history", tmp_path / "kept", "--last", 16)
    lines = out.splitlines()
    assert status == 0
    assert lines[0].startswith("16 runs on main, 2026-10-13 08:14 13c0ffe to 2026-10-28")
    assert lines[2].split() == ["mean", "faithfulness", "15", "0.90", "0.88", "0.74..0.91", "-"]
    assert "flaky: tests/test_assistant.py::test_noise: one answer passed and failed faithfulness" in lines
    page = tmp_path / "trend.html"
    written = ragmetrics("report", "history", tmp_path / "kept", "--html", page)
    assert written == (0, f"{page}: written, 28 runs\n", "")
    assert page.read_text("utf-8") == render_history(replace(month(), left_out=()))
    status, _, err = ragmetrics("report", "history", tmp_path)
    assert status == 1
    assert "no run; pytest --rag-history=" in err


def test_the_page_of_a_run_takes_a_history(tmp_path: Path, ragmetrics: Call) -> None:
    file, page, folder = tmp_path / "run.json", tmp_path / "page.html", tmp_path / "kept"
    file.write_text(render_json(document(row("test_a", record()))))
    status, _, err = ragmetrics("report", "html", file, "-o", page, "--history", folder)
    assert status == 2
    assert "kept' is no folder; give the one of --rag-history" in err
    folder.mkdir()
    assert ragmetrics("report", "html", file, "-o", page, "--history", folder)[0] == 0
    assert page.exists()


def test_hostile_texts_are_texts() -> None:
    page = render_history(hostile())
    assert "<script" not in page
    assert "onerror=" not in page.replace("onerror=&#34;", "")
    assert all(name not in page for name in ("<iframe", "<img", '<meta http-equiv="refresh', "\u202e", "\x1b"))
    assert HOSTILE[0] not in page
    assert not any("\x1b" in line for line in trend_lines(build_trends(replace(hostile(), left_out=()))))


def test_a_run_that_scored_nothing_is_not_kept(tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device")

    nothing = write_files(document(row("test_a", outcome="error")), {}, others={tmp_path: fail})
    assert nothing.lines == (f"{tmp_path}: not written, no test scored anything",)
    written = write_files(document(row("test_a", record())), {"json": tmp_path / "a.json"}, others={tmp_path: fail})
    assert written.failed
    assert written.lines == (f"{tmp_path / 'a.json'}: written", f"{tmp_path}: NOT written, No space left on device")


@pytest.mark.parametrize(
    ("given", "options", "ended", "expected"),
    [
        ([], {}, (0, 0), ("", "")),
        (["tests"], {}, (1, 0), ("tests", "")),
        ([], {"markexpr": "rag"}, (0, 4), ("-m 'rag'", "")),
        ([], {"keyword": "pets"}, (0, 4), ("", "-k")),
        ([], {"lf": True, "stepwise": True}, (0, 0), ("", "--lf, --sw")),
        (["tests/test_a.py::test_b"], {}, (0, 0), ("tests/test_a.py::test_b", "single tests were named")),
        ([], {}, (0, 3), ("", "3 deselected")),
        ([], {}, (2, 0), ("", "the run stopped early")),
    ],
)
def test_a_part_is_told_from_a_choice(
    given: Any, options: Any, ended: tuple[int, int], expected: tuple[str, str]
) -> None:
    source = pytest.Config.ArgsSource
    config = SimpleNamespace(
        args_source=source.ARGS if given else source.TESTPATHS,
        args=given or ["somewhere"],
        getoption=lambda name, default=None: options.get(name, default),
        invocation_params=SimpleNamespace(dir=Path("/shop")),
        rootpath=Path("/shop"),
    )
    assert selected_tests(cast("pytest.Config", config), exit_status=ended[0], deselected=ended[1]) == expected
