"""A cassette has what a run used, to be committed: what gets into it, what leaves it, and who may read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import MANY, RunOnce, RunPytest

#: One request a test; a test that is told to breaks after it.
SUITE = """
    import os
    import pytest
    from pytest_ragmetrics import assert_relevant
    @pytest.mark.parametrize("thing", os.environ.get("THINGS", "pump valve hose seal").split())
    def test_thing(thing):
        assert_relevant(f"What about the {thing}?", f"The {thing} is blue.", min=0.1)
        assert thing != os.environ.get("BROKEN")
"""
RECORDING = ("-o", "rag_cassette=answers.jsonl", "--rag-judge=openai:gpt-mine")
REPLAYING = (*RECORDING, "--rag-cache=replay")


@pytest.fixture(scope="module")
def recording(run_once: RunOnce, shared_server: FakeOpenAI) -> bytes:
    """Record a suite of four tests, and return the cassette."""
    run = run_once(*RECORDING, provider=shared_server, test_suite=SUITE)
    run.result.assert_outcomes(passed=4)
    run.result.stdout.fnmatch_lines(["*answers.jsonl: written, 4 answers, 4 added, 0 dropped"])
    assert shared_server.calls == 4
    return (run.folder / "answers.jsonl").read_bytes()


@pytest.fixture
def recorded(run: RunPytest, recording: bytes, server: FakeOpenAI, pytester: pytest.Pytester) -> Path:
    """Write the recorded cassette next to its suite, and return it."""
    pytester.makepyfile(test_suite=SUITE)
    cassette = pytester.path / "answers.jsonl"
    cassette.write_bytes(recording)
    return cassette


def things_in(cassette: Path) -> list[str]:
    """Return the things that a cassette has answers about, in the order of the alphabet."""
    asked = [
        row["request"]["messages"][1]["content"] for row in map(json.loads, cassette.read_text("utf-8").splitlines())
    ]
    return sorted(text.split(" is blue.")[0].split("The ")[-1] for text in asked)


def test_replay_needs_neither_key_nor_folder(
    run: RunPytest, recorded: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, server: FakeOpenAI
) -> None:
    """A cassette alone is enough to replay, on a machine without a key, and nothing is left behind there."""
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    before = recorded.read_bytes()
    result = run(*REPLAYING, "--rag-cache-dir=elsewhere")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["judge calls: 0 made (0 tokens, *), 4 saved by the cache (*)"])
    result.stdout.no_fnmatch_line("*answers.jsonl*")
    assert server.calls == 0
    assert recorded.read_bytes() == before
    assert not (pytester.path / "elsewhere").exists()


def test_replay_needs_no_judge_either(run: RunPytest, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key, and without a word on the judge, the model of the cassette is the one that is replayed."""
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    result = run("-o", f"rag_cassette={recorded}", "--rag-cache=replay")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["judged by: openai:gpt-mine"])


def test_the_controller_writes_what_one_process_would(run: RunPytest, recorded: Path) -> None:
    """With two workers the file is the same byte for byte, made of what each of them used."""
    recorded.unlink()
    run(*RECORDING).assert_outcomes(passed=4)
    serial = recorded.read_bytes()
    recorded.unlink()
    result = run(*RECORDING, *MANY)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*answers.jsonl: written, 4 answers, 4 added, 0 dropped"])
    assert recorded.read_bytes() == serial


def test_a_full_run_drops_what_nothing_used(run: RunPytest, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After all tests passed, answers that none of them asked for leave the cassette."""
    monkeypatch.setenv("THINGS", "pump hose lamp")
    result = run(*RECORDING)
    result.stdout.fnmatch_lines(["*answers.jsonl: written, 3 answers, 1 added, 2 dropped"])
    assert things_in(recorded) == ["hose", "lamp", "pump"]


def test_what_is_as_it_should_be_is_left_alone(run: RunPytest, recorded: Path) -> None:
    """A run that used what the cassette holds, and nothing else, does not touch it."""
    before = recorded.stat().st_mtime_ns
    run(*RECORDING).stdout.fnmatch_lines(["*answers.jsonl: unchanged, 4 answers, 0 added, 0 dropped"])
    assert recorded.stat().st_mtime_ns == before


@pytest.mark.parametrize("args", [["--rag-cassette-keep"], ["-k", "pump or lamp"], ["-k", "pump or lamp", *MANY]])
def test_a_partial_run_only_adds(
    run: RunPytest, recorded: Path, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    """A run that was not asked for every test drops nothing, nor does one that was told to keep."""
    monkeypatch.setenv("THINGS", "pump lamp hose" if "-k" in args else "pump lamp")
    result = run(*RECORDING, *args)
    result.stdout.fnmatch_lines(["*answers.jsonl: written, 5 answers, 1 added, 0 dropped"])
    assert things_in(recorded) == ["hose", "lamp", "pump", "seal", "valve"]


def test_a_run_that_failed_only_adds(run: RunPytest, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure nobody knows what the rest would have asked."""
    monkeypatch.setenv("THINGS", "lamp")
    monkeypatch.setenv("BROKEN", "lamp")
    run(*RECORDING).assert_outcomes(failed=1)
    assert things_in(recorded) == ["hose", "lamp", "pump", "seal", "valve"]


def test_a_run_with_skipped_tests_only_adds(
    run: RunPytest, recorded: Path, monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester
) -> None:
    """What a test that was skipped here would have asked is still needed where it is not."""
    monkeypatch.setenv("THINGS", "pump lamp")
    run(*RECORDING, test_other="import pytest\ndef test_other(): pytest.skip('not here')").assert_outcomes(
        passed=2, skipped=1
    )
    assert things_in(recorded) == ["hose", "lamp", "pump", "seal", "valve"]
    (pytester.path / "test_other.py").unlink()
    run(*RECORDING, "-p", "xdist", "-n1").assert_outcomes(passed=2)
    assert things_in(recorded) == ["lamp", "pump"]


def test_two_branches_merge_as_text(
    run: RunPytest, recorded: Path, monkeypatch: pytest.MonkeyPatch, server: FakeOpenAI
) -> None:
    """The lines of both sides, one after the other, replay what either recorded; the next full run tidies up."""
    monkeypatch.setenv("THINGS", "pump lamp")
    ours = recorded.read_text("utf-8")
    recorded.unlink()
    run(*RECORDING, "--rag-cache-dir=theirs").assert_outcomes(passed=2)
    recorded.write_text(recorded.read_text("utf-8") + ours, "utf-8")
    monkeypatch.setenv("THINGS", "lamp pump valve hose seal")
    calls = server.calls
    run(*REPLAYING, "--rag-cache-dir=nowhere").assert_outcomes(passed=5)
    run(*RECORDING, "--rag-cache-dir=nowhere").assert_outcomes(passed=5)
    assert server.calls == calls
    lines = recorded.read_text("utf-8").splitlines()
    assert lines == sorted(lines)
    assert things_in(recorded) == ["hose", "lamp", "pump", "seal", "valve"]


def test_an_unresolved_merge_is_named(run: RunPytest, recorded: Path) -> None:
    """A cassette that cannot be read fails the tests that need it, with file and line, and is not overwritten."""
    recorded.write_text("<<<<<<< HEAD\n" + recorded.read_text("utf-8"), "utf-8")
    before = recorded.read_bytes()
    result = run(*RECORDING)
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(["E *answers.jsonl:1: a merge was left unresolved*", "*answers.jsonl: NOT written, *"])
    assert recorded.read_bytes() == before


def test_a_key_is_never_written(run: RunPytest, recorded: Path) -> None:
    """An answer about a text with a key in it is used but not recorded, and the summary names the test."""
    key = "sk-proj-" + "0123456789abcdefghij"
    result = run(
        *RECORDING,
        test_secret=f"""
            from pytest_ragmetrics import assert_relevant
            def test_leak():
                assert_relevant("Which key is it?", "The key is {key}.", min=0.1)
        """,
    )
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(
        [
            "*answers.jsonl: unchanged, 4 answers, 0 added, 0 dropped",
            "test_secret.py::test_leak: the rate_relevance answer * was not recorded, it seems to hold an API key (*)",
        ]
    )
    assert key not in recorded.read_text("utf-8")
    assert key not in result.stdout.str()


REDACTION = {
    "conftest": """
        def pytest_ragmetrics_redact(text):
            return text.replace("Ada Brandt", "[name]")
    """,
    "test_private": """
        from pytest_ragmetrics import assert_faithful, assert_relevant
        def test_passes():
            assert_relevant("Who is it?", "Who is it? It is Ada Brandt.", min=0.1)
        def test_fails():
            assert_faithful("The potter was Ada Brandt.", ["Ada Brandt fired clay."], min=1.5)
    """,
}


@pytest.mark.parametrize(("args", "folder"), [([], "private/"), (["-p", "xdist", "-n1"], "")])
def test_redaction_reaches_everything_that_is_kept(
    run: RunPytest, server: FakeOpenAI, pytester: pytest.Pytester, args: list[str], folder: str
) -> None:
    """What the hook takes out of a text stands in no file that a run leaves behind; what is judged is the text.

    The hook may be in the conftest.py of a folder, which pytest loads after its start.
    """
    pytester.makepyfile(**{f"{folder}{name}": text for name, text in REDACTION.items()})
    run(*RECORDING, "--rag-json=out.json", "--rag-report=out.html", *args).assert_outcomes(passed=1, failed=1)
    assert "Ada Brandt" in str([request.body for request in server.requests])
    files = [path for path in pytester.path.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    kept = {path.name: path.read_bytes() for path in files}
    assert {"answers.jsonl", "cache.db", "out.json", "out.html"} <= kept.keys()
    assert [name for name, content in kept.items() if b"Ada Brandt" in content] == []
    assert all(b"[name]" in kept[name] for name in ("answers.jsonl", "cache.db", "out.json", "out.html"))
    before = server.calls
    run(*REPLAYING).assert_outcomes(passed=1, failed=1)
    assert server.calls == before


def test_refreshing_with_workers_records_what_they_asked(run: RunPytest, recorded: Path, server: FakeOpenAI) -> None:
    """Every answer is asked for anew, once in the whole run, and stands in the cassette in place of the old one."""
    before = recorded.read_text("utf-8")
    recorded.write_text(before.replace("By the words they share.", "It was so once."), "utf-8")
    result = run(*RECORDING, "--rag-cache=refresh", *MANY)
    result.assert_outcomes(passed=4)
    assert server.calls == 4
    result.stdout.fnmatch_lines(["*answers.jsonl: written, 4 answers, 0 added, 0 dropped"])
    assert "It was so once." not in recorded.read_text("utf-8")


def test_a_worker_that_dies_at_its_end_takes_nothing_along(
    run: RunPytest, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tests passed, but what a worker used died with it: nothing is dropped that it may have used."""
    monkeypatch.setenv("THINGS", "pump valve")
    result = run(
        *RECORDING,
        *MANY,
        conftest="""
            import os
            import pytest
            @pytest.hookimpl(tryfirst=True)
            def pytest_sessionfinish(session):
                if hasattr(session.config, "workerinput") and session.config.workerinput["workerid"] == "gw0":
                    os._exit(1)
        """,
    )
    result.assert_outcomes(passed=2)
    assert things_in(recorded) == ["hose", "pump", "seal", "valve"]
