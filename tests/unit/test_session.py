"""What one process of a run decides about its cassette, its markers and its budget, without running pytest."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_ragmetrics.plugin.budget import SessionBudget
from pytest_ragmetrics.plugin.cassette import NARROWING, PARTS, RunCassette
from pytest_ragmetrics.plugin.markers import function_of, marked_judge, marked_votes
from pytest_ragmetrics.plugin.xdist import FromWorker

ROOT = Path("/project")
TESTPATHS, ARGS = pytest.Config.ArgsSource.TESTPATHS, pytest.Config.ArgsSource.ARGS


def cassette(
    *, source: Any = TESTPATHS, folder: Path = ROOT, file: Path | None = Path("answers.jsonl"), **options: object
) -> RunCassette:
    place = {"rootpath": ROOT, "invocation_params": SimpleNamespace(dir=folder), "args_source": source}
    config = SimpleNamespace(getoption=lambda name, default: options.get(name, default), **place)  # noqa: PLW0108
    return RunCassette(cast("pytest.Config", config), cast("Any", SimpleNamespace(cassette=file)), None)


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ({}, True),
        ({"source": pytest.Config.ArgsSource.INVOCATION_DIR}, True),
        *(({"source": ARGS}, False), ({"folder": ROOT / "tests"}, False), ({"lf": False}, True)),
        *(({name: True}, False) for name in ("lf", "collectonly", "setuponly", "setupplan")),
        *(({name: ["*slow*"]}, False) for name in ("ignore", "ignore_glob")),
    ],
)
def test_a_run_had_all_tests(given: dict[str, Any], whole: bool) -> None:
    assert cassette(**given).had_all_tests() is whole


def test_every_option_that_leaves_tests_out_exists(pytester: pytest.Pytester) -> None:
    """Under another name it would never be found."""
    config = pytester.parseconfig()  # that of this run may be without pytest's cache and its options
    for option in (*NARROWING, *PARTS, "markexpr"):
        config.getoption(option)


@pytest.mark.parametrize(
    ("when", "outcome", "extra", "left_out"),
    [
        *(("call", "passed", {}, 0), ("call", "failed", {}, 0), ("setup", "skipped", {}, 1)),
        *(("call", "skipped", {}, 1), ("collect", "skipped", {}, 1)),
        ("call", "skipped", {"wasxfail": "a reason"}, 0),
        ("setup", "skipped", {"wasxfail": "reason: not run"}, 1),
    ],
)
def test_a_skipped_test_is_left_out(when: str, outcome: str, extra: dict[str, str], left_out: int) -> None:
    run = cassette()
    report: Any = SimpleNamespace(when=when, skipped=outcome == "skipped", **extra)
    run.pytest_runtest_logreport(report)
    assert run.left_out == left_out
    assert run.had_all_tests() is (left_out == 0)


def test_every_worker_counts() -> None:
    workers = {"whole": FromWorker(), "with deselected tests": FromWorker(left_out=2), "crashed": None}
    assert [name for name, worker in workers.items() if cassette().had_all_tests([worker])] == ["whole"]


@pytest.mark.parametrize(
    ("popen", "chdir", "sent"), [(True, None, False), (True, "/elsewhere", True), (False, None, True)]
)
def test_entries_go_where_no_file_is_read(tmp_path: Path, popen: bool, chdir: str | None, sent: bool) -> None:
    file, spec = tmp_path / "answers.jsonl", SimpleNamespace(popen=popen, chdir=chdir)
    file.write_text("", "utf-8")
    assert (cassette(file=file).entries_for(spec) is not None) is sent
    assert cassette(file=None).entries_for(spec) is None
    # A cassette that cannot be sent ends the run.
    file.write_text("moss\n", "utf-8")
    with pytest.raises(pytest.UsageError, match=r"rag_cassette: .*answers\.jsonl:1: not an entry of a cassette: "):
        cassette(file=file).entries_for(SimpleNamespace(popen=False, chdir=None))


def item(name: str, *args: object, **kwargs: object) -> Any:
    hook = SimpleNamespace(pytest_ragmetrics_make_judge=SimpleNamespace(get_hookimpls=list))
    config, parent = SimpleNamespace(rootpath=ROOT, hook=hook), SimpleNamespace(nodeid="test_it.py")
    marked = {name: SimpleNamespace(args=args, kwargs=kwargs)}.get
    return SimpleNamespace(name="test_it", parent=parent, get_closest_marker=marked, config=config)


@pytest.mark.parametrize(
    ("marker", "found"),
    [
        (item(""), (None, None)),
        (item("rag_judge", "openai:gpt-mine"), ("openai:gpt-mine", None)),
        *((item("rag_judge", spec="local"), ("local", None)), (item("rag_votes", 3), (None, 3))),
        (item("rag_votes", k=1), (None, 1)),
    ],
)
def test_markers_say_who_judges_how_often(marker: Any, found: tuple[str | None, int | None]) -> None:
    assert (marked_judge(marker), marked_votes(marker)) == found


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        (item("rag_judge"), r"marker rag_judge\(\): it takes one spec; write @pytest.mark.rag_judge\("),
        (item("rag_judge", "local", "local"), r"marker rag_judge\('local', 'local'\): it takes one spec; write"),
        (item("rag_judge", 3), r"marker rag_judge\(3\): it takes one spec; write"),
        (item("rag_judge", "gpt-5"), r"marker rag_judge\('gpt-5'\): 'gpt-5' is not one of auto, local, openai:"),
        (item("rag_votes"), r"marker rag_votes\(\): it takes one whole number from 1 on; write @pytest.mark.rag_v"),
        (item("rag_votes", 0), r"marker rag_votes\(0\): it takes one whole number from 1 on"),
        (item("rag_votes", "3"), r"marker rag_votes\('3'\): it takes one whole number from 1 on"),
        (item("rag_votes", k=True), r"marker rag_votes\(True\): it takes one whole number from 1 on"),
        (item("rag_votes", 2, 3), r"marker rag_votes\(2, 3\): it takes one whole number from 1 on"),
    ],
)
def test_a_marker_that_cannot_be_used_is_named(marker: Any, said: str) -> None:
    with pytest.raises(pytest.UsageError, match=f"^test_it.py::test_it: {said}"):
        (marked_judge(marker), marked_votes(marker))


def test_the_function_of_a_test() -> None:
    parent = SimpleNamespace(nodeid="test_it.py::TestIt")
    for test in ({"name": "test_one[a]", "originalname": "test_one"}, {"name": "test_one"}):
        given: Any = SimpleNamespace(parent=parent, **test)
        assert function_of(given) == "test_it.py::TestIt::test_one"


@pytest.mark.parametrize(
    ("requests", "when", "before", "after", "said"),
    [
        *((None, "call", "failed", "failed", None), (2, "setup", "passed", "passed", None)),
        *((2, "call", "passed", "skipped", "2 requests"), (1, "setup", "failed", "skipped", "1 request")),
    ],
)
def test_a_dry_run_skips_scored(requests: int | None, when: str, before: str, after: str, said: str | None) -> None:
    budget = SessionBudget(cast("Any", SimpleNamespace(dry_run=True)), workers=None, file=None)
    budget.__dict__["forecast"] = SimpleNamespace(requests_of=lambda _: requests)
    place: dict[str, Any] = {"nodeid": "t", "location": ("t.py", 4, "t"), "longrepr": None}
    report: Any = SimpleNamespace(when=when, failed=before == "failed", outcome=before, **place)
    budget.skip_scored(report)
    assert report.outcome == after
    assert report.longrepr == (said and ("t.py", 5, f"Skipped: dry run: {said}"))
