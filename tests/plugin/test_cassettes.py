"""A cassette has what a run used, to be committed: what gets into it, what leaves it, and who may read it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import MANY, ONE, RunPytest, write_files

#: One request a test.
SUITE = """
    import os
    @pytest.mark.parametrize("thing", os.environ.get("THINGS", "pump valve hose seal").split())
    def test_thing(thing): assert_relevant(f"What about the {thing}?", f"The {thing} is blue.", min=0.1)
"""
RECORDING = ("-o", "rag_cassette=answers.jsonl", "--rag-judge=openai:gpt-mine")
REPLAYING = (*RECORDING, "--rag-cache=replay")


@pytest.fixture(scope="module")
def recording(run_once: RunPytest, shared_server: FakeOpenAI) -> bytes:
    """Return a recorded cassette of four tests."""
    ran = run_once(*RECORDING, provider=shared_server, test_suite=SUITE)
    ran.shows("*answers.jsonl: written, 4 answers, 4 added, 0 dropped", passed=4)
    return ran.text("answers.jsonl").encode()


@pytest.fixture
def recorded(recording: bytes, run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester) -> Path:
    """Write the recorded cassette next to its suite, and return it."""
    write_files(pytester.path, test_suite=SUITE)
    (cassette := pytester.path / "answers.jsonl").write_bytes(recording)
    return cassette


@pytest.fixture
def keyless(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the recorded cassette on a machine without a key."""
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    return recorded


def rows_of(cassette: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in cassette.read_text("utf-8").splitlines()]


def things_in(cassette: Path) -> list[str]:
    """Return the things that a cassette has answers about, in the order of its lines."""
    asked = [row["request"]["messages"][1]["content"] for row in rows_of(cassette)]
    return [text.split(" is blue.")[0].split("The ")[-1] for text in asked]


@pytest.mark.parametrize("judge", [REPLAYING[2:], ["--rag-cache=replay"], ["-o", "rag_judge=auto"]])
def test_a_complete_cassette_is_enough(run: RunPytest, keyless: Path, server: FakeOpenAI, judge: list[str]) -> None:
    before = keyless.read_bytes()
    result = run("-o", "rag_cassette=answers.jsonl", *judge, "--rag-cache-dir=elsewhere")
    result.shows("judge calls: 0 made (0 tokens, *), 4 saved by the cache (*)", "judged by: openai:gpt-mine", passed=4)
    if "--rag-cache=replay" in judge:
        result.stdout.no_fnmatch_line("*answers.jsonl*")
    assert (server.calls, keyless.read_bytes()) == (0, before)
    assert not (result.folder / "elsewhere").exists()


def test_auto_without_a_key_asks_nobody_for_what_a_cassette_lacks(run: RunPytest, keyless: Path) -> None:
    result = run("-o", "rag_cassette=answers.jsonl", env={"THINGS": "pump wheel"})
    result.shows("E*openai:gpt-mine needs a key: set OPENAI_API_KEY*", passed=1, failed=1)


@pytest.mark.parametrize("option", [["--rag-cassette=answer.jsonl"], ["-o", "rag_cassette=answer.jsonl"]])
def test_replay_names_a_cassette_that_is_not_there(run: RunPytest, recorded: Path, option: list[str]) -> None:
    said = "ERROR: rag_cassette: */answer.jsonl does not exist, and a replay records nothing: *"
    run(*option, "--rag-cache=replay").refused(said)
    run(*option).assert_outcomes(passed=4)


@pytest.mark.parametrize(
    ("args", "other"),
    [
        (["--rag-cassette-keep"], "pass"),
        (["-k", "not hose"], "pass"),
        (["--ignore=elsewhere"], "pass"),
        ([], "assert 0"),
        ([], "pytest.skip('no')"),
    ],
)
def test_a_partial_run_only_adds(run: RunPytest, recorded: Path, args: list[str], other: str) -> None:
    things = {"THINGS": "pump lamp hose" if "not hose" in args else "pump lamp"}
    result = run(*RECORDING, *args, env=things, test_other=f"def test_other(): {other}")
    result.shows("*answers.jsonl: written, 5 answers, 1 added, 0 dropped")
    assert sorted(things_in(recorded)) == ["hose", "lamp", "pump", "seal", "valve"]


@pytest.mark.parametrize("workers", [[], ONE])
def test_a_gate_that_is_skipped_leaves_no_test_out(run: RunPytest, recorded: Path, workers: list[str]) -> None:
    """A first regression gate has no baseline; it asks no judge, so replies that are not used are of no test."""
    gated = """
        QUOTED = ["quoted_spans_alignment"]
        @pytest.mark.rag_gate("quoted_spans_alignment", regression=True)
        @pytest.mark.rag_dataset([{"response": "'It is blue.'", "contexts": ["It is blue."]}], metrics=QUOTED)
        def test_row(rag_sample): pass
    """
    result = run(*RECORDING, *workers, env={"THINGS": "pump lamp"}, test_gated=gated)
    result.shows("*answers.jsonl: written, 2 answers, 1 added, 3 dropped", passed=3, skipped=1)
    assert sorted(things_in(recorded)) == ["lamp", "pump"]


def test_an_unresolved_merge_is_named(run: RunPytest, recorded: Path) -> None:
    recorded.write_text("<<<<<<< HEAD\n" + recorded.read_text("utf-8"), "utf-8")
    before = recorded.read_bytes()
    result = run(*RECORDING)
    result.shows("E *answers.jsonl:1: a merge was left unresolved*", "*answers.jsonl: NOT written, *", failed=4)
    assert recorded.read_bytes() == before


@pytest.mark.parametrize("workers", [[], ONE])
def test_a_cassette_that_cannot_be_written_fails_the_run(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, workers: list[str]
) -> None:
    """Its folder becomes a file while the tests run; the next run would ask for all of it again."""
    (pytester.path / "kept").mkdir()
    suite = """
        from pathlib import Path
        from pytest_ragmetrics import assert_faithful
        def test_pump():
            assert_faithful("The pump is blue.", ["The pump is blue."])
            Path("kept").rmdir()
            Path("kept").write_text("")
    """
    result = run("--rag-cassette=kept/answers.jsonl", "--rag-judge=openai:gpt-mine", *workers, test_moved=suite)
    result.shows("*kept/answers.jsonl: NOT written, * directory", passed=1)
    assert result.result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_key_is_never_written(run: RunPytest, recorded: Path) -> None:
    key = "sk-proj-" + "0123456789abcdefghij"
    leak = f"def test_leak(): assert_relevant('Which key is it?', 'The key is {key}.', min=0.1)"
    result = run(*RECORDING, test_secret=leak)
    result.shows(
        "*answers.jsonl: unchanged, 4 answers, 0 added, 0 dropped",
        "test_secret.py::test_leak: the rate_relevance answer * was not recorded, it seems to hold an API key (*)",
        passed=5,
    )
    assert key not in recorded.read_text("utf-8")
    assert key not in result.stdout.str()


REDACTING = "def pytest_ragmetrics_redact(text): return text.replace('Ada Brandt', '[name]')"
PRIVATE = "def test_passes(): assert_relevant('Who is it?', 'Who is it? It is Ada Brandt.', min=0.1)"
FAILING = "def test_fails(): assert_faithful('The potter was Ada Brandt.', ['Ada Brandt fired clay.'], min=1.5)"


def test_redaction_reaches_everything_that_is_kept(run: RunPytest, server: FakeOpenAI) -> None:
    """The hook is in the conftest.py of a folder, which pytest loads after its start."""
    suite = {"private/conftest": REDACTING, "private/test_a": PRIVATE, "private/test_b": FAILING}
    ran = run(*RECORDING, "--rag-json=out.json", "--rag-report=out.html", **suite)
    ran.assert_outcomes(passed=1, failed=1)
    assert "Ada Brandt" in str([request.body for request in server.requests])
    files = [path for path in ran.folder.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    kept = {path.name: path.read_bytes() for path in files}
    assert [name for name, content in kept.items() if b"Ada Brandt" in content] == []
    assert all(b"[name]" in kept[name] for name in ("answers.jsonl", "cache.db", "out.json", "out.html"))
    before = server.calls
    run(*REPLAYING).assert_outcomes(passed=1, failed=1)
    assert server.calls == before


def test_workers_do_to_a_cassette_what_one_process_does(run: RunPytest, recorded: Path, server: FakeOpenAI) -> None:
    forged, *edited, unused = rows_of(recorded)
    things = {"THINGS": " ".join([*things_in(recorded)[:3], "lamp"])}
    forged |= {"request": unused["request"], "redacted": True}
    for row in edited:
        row["reply"]["text"] = row["reply"]["text"].replace("By the words they share.", "So it is.")
    before = "".join(f"{json.dumps(row)}\n" for row in (forged, *edited, unused))
    named = f"*answers.jsonl: edited replies used: 2 ({edited[0]['key'][:8]}, {edited[1]['key'][:8]})"
    suite = {"conftest": REDACTING, "test_private": PRIVATE}
    written = set()
    for workers in (MANY, []):
        recorded.write_text(before, "utf-8")
        ran = run(*RECORDING, *workers, env=things, **suite)
        ran.shows("*answers.jsonl: written, 5 answers, 2 added, 1 dropped", named, passed=5)
        assert server.calls == 3
        written.add(recorded.read_text("utf-8"))
    assert len(written) == 1
    assert "Ada Brandt" not in written.pop()
    run(*REPLAYING, "--rag-cache-dir=elsewhere", env=things).shows(named, passed=5)


def test_workers_that_refresh_a_part_record_what_they_asked(run: RunPytest, recorded: Path, server: FakeOpenAI) -> None:
    recorded.write_text(recorded.read_text("utf-8").replace("By the words they share.", "It was so once."), "utf-8")
    result = run(*RECORDING, "--rag-cache=refresh", "-k", "not lamp", *ONE, env={"THINGS": "pump hose lamp"})
    result.shows("*answers.jsonl: written, 4 answers, 0 added, 0 dropped", passed=2)
    assert server.calls == 2
    assert recorded.read_text("utf-8").count("It was so once.") == 2


@pytest.mark.slow
def test_a_worker_that_dies_at_its_end_takes_nothing_along(run: RunPytest, keyless: Path) -> None:
    """What the worker used is unknown: nothing is dropped that it may have used."""
    before = keyless.read_bytes()
    dies = """
        import os, pytest
        @pytest.hookimpl(tryfirst=True)
        def pytest_sessionfinish(session):
            if hasattr(session.config, "workerinput") and session.config.workerinput["workerid"] == "gw0":
                os._exit(1)
    """
    options = ("-o", "rag_cassette=answers.jsonl", "-o", "rag_judge=auto", *MANY, "--max-worker-restart=0")
    run(*options, env={"THINGS": "pump valve"}, conftest=dies).assert_outcomes(passed=2)
    assert keyless.read_bytes() == before


WRITTEN = Path(__file__).parent.parent / "data" / "cache_version_1"
VERSION_1 = {
    # The name of a judge is part of what was asked.
    "jj": """
        def make():
            def judge(prompt): raise AssertionError("a reply was recorded")
            return judge
    """,
    "test_moths": """
        def test_moths():
            text = "Moths fly at night and sleep by day."
            assert assert_faithful(text, [text], min=0.8).usage.cached_calls == 2
    """,
}


@pytest.mark.parametrize(
    ("file", "to", "option"),
    [
        ("cache.db", "kept/cache.db", "--rag-cache-dir=kept"),
        ("judge.jsonl", "judge.jsonl", "--rag-cassette=judge.jsonl"),
    ],
)
def test_a_file_of_version_1_is_replayed(
    run: RunPytest, pytester: pytest.Pytester, file: str, to: str, option: str
) -> None:
    """Both replies of the test are found under the keys that were computed then, in a cache and in a cassette."""
    (pytester.path / to).parent.mkdir(exist_ok=True)
    shutil.copy(WRITTEN / file, pytester.path / to)
    run("--rag-judge=jj:make", "--rag-cache=replay", option, **VERSION_1).assert_outcomes(passed=1)
