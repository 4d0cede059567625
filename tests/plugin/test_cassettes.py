"""A cassette has what a run used, to be committed: what gets into it, what leaves it, and who may read it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import MANY, SERIAL, RunOnce, RunPytest

#: One request a test.
SUITE = """
    import os
    import pytest
    from pytest_ragmetrics import assert_relevant
    @pytest.mark.parametrize("thing", os.environ.get("THINGS", "pump valve hose seal").split())
    def test_thing(thing):
        assert_relevant(f"What about the {thing}?", f"The {thing} is blue.", min=0.1)
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


def test_replay_needs_neither_key_nor_judge_nor_folder(
    run: RunPytest, recorded: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, server: FakeOpenAI
) -> None:
    """On a machine without a key, and where no judge is named, the model of the cassette is the one replayed.

    Nothing is left behind there.
    """
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    before = recorded.read_bytes()
    for args in (REPLAYING, ("-o", "rag_cassette=answers.jsonl", "--rag-cache=replay")):
        result = run(*args, "--rag-cache-dir=elsewhere")
        result.assert_outcomes(passed=4)
        result.stdout.fnmatch_lines(
            ["judge calls: 0 made (0 tokens, *), 4 saved by the cache (*)", "judged by: openai:gpt-mine"]
        )
        result.stdout.no_fnmatch_line("*answers.jsonl*")
    assert server.calls == 0
    assert recorded.read_bytes() == before
    assert not (pytester.path / "elsewhere").exists()


@pytest.mark.parametrize("workers", [SERIAL, ["-p", "xdist", "-n1"]])
def test_a_complete_cassette_is_enough_for_auto(
    run: RunPytest, recorded: Path, monkeypatch: pytest.MonkeyPatch, server: FakeOpenAI, workers: list[str]
) -> None:
    """Without a key the judge that ``auto`` means is the one of the cassette, also where nothing says replay."""
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    result = run("-o", "rag_cassette=answers.jsonl", "-o", "rag_judge=auto", *workers)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*4 saved by the cache*", "judged by: openai:gpt-mine"])
    assert server.calls == 0


@pytest.mark.parametrize("option", [["--rag-cassette=answer.jsonl"], ["-o", "rag_cassette=answer.jsonl"]])
def test_replay_names_a_cassette_that_is_not_there(run: RunPytest, recorded: Path, option: list[str]) -> None:
    """Before any test runs; a run that records writes one."""
    result = run(*option, "--rag-cache=replay")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: rag_cassette: */answer.jsonl does not exist, and a replay records nothing: *"])
    run(*option).assert_outcomes(passed=4)


def test_auto_without_a_key_asks_nobody_for_what_a_cassette_lacks(
    run: RunPytest, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the model of the cassette, and the key that it needs."""
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("THINGS", "pump wheel")
    result = run("-o", "rag_cassette=answers.jsonl")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E*openai:gpt-mine needs a key: set OPENAI_API_KEY*"])


def test_the_controller_writes_what_one_process_would(run: RunPytest, recorded: Path) -> None:
    """With two workers the file is the same byte for byte, made of what each of them used."""
    recorded.unlink()
    result = run(*RECORDING, *MANY)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*answers.jsonl: written, 4 answers, 4 added, 0 dropped"])
    shared = recorded.read_bytes()
    recorded.unlink()
    run(*RECORDING).assert_outcomes(passed=4)
    assert recorded.read_bytes() == shared


@pytest.mark.parametrize("how", [SERIAL, ["-p", "xdist", "-n1"]])
def test_a_full_run_drops_what_nothing_used(
    run: RunPytest, recorded: Path, monkeypatch: pytest.MonkeyPatch, how: list[str]
) -> None:
    """After all tests passed, answers that none of them asked for leave the cassette."""
    monkeypatch.setenv("THINGS", "pump hose lamp")
    result = run(*RECORDING, *how)
    result.stdout.fnmatch_lines(["*answers.jsonl: written, 3 answers, 1 added, 2 dropped"])
    assert things_in(recorded) == ["hose", "lamp", "pump"]


@pytest.mark.parametrize(
    ("args", "other"),
    [
        (["--rag-cassette-keep"], "pass"),
        (["-k", "not hose"], "pass"),
        ([], "assert 0"),
        ([], "pytest.skip('not here')"),
    ],
    ids=["option", "deselected", "failed", "skipped"],
)
def test_a_partial_run_only_adds(
    run: RunPytest, recorded: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], other: str
) -> None:
    """A run drops nothing that did not have every test, that failed, or that has the option."""
    monkeypatch.setenv("THINGS", "pump lamp hose" if "-k" in args else "pump lamp")
    result = run(*RECORDING, *args, test_other=f"import pytest\ndef test_other(): {other}")
    result.stdout.fnmatch_lines(["*answers.jsonl: written, 5 answers, 1 added, 0 dropped"])
    assert things_in(recorded) == ["hose", "lamp", "pump", "seal", "valve"]


def test_an_unresolved_merge_is_named(run: RunPytest, recorded: Path) -> None:
    """A cassette that cannot be read fails the tests that need it, with file and line, and is not overwritten."""
    recorded.write_text("<<<<<<< HEAD\n" + recorded.read_text("utf-8"), "utf-8")
    before = recorded.read_bytes()
    result = run(*RECORDING)
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(["E *answers.jsonl:1: a merge was left unresolved*", "*answers.jsonl: NOT written, *"])
    assert recorded.read_bytes() == before


@pytest.mark.parametrize("workers", [SERIAL, MANY], ids=["one process", "workers"])
def test_an_entry_of_another_request_is_replaced(
    run: RunPytest, recorded: Path, server: FakeOpenAI, workers: list[str]
) -> None:
    """Also where workers refused it: the next run finds the answer, and an edited reply is not named as used."""
    first, second, *others = map(json.loads, recorded.read_text("utf-8").splitlines())
    forged = {**first, "request": second["request"], "redacted": True}
    recorded.write_text("".join(f"{json.dumps(row)}\n" for row in (forged, second, *others)), "utf-8")
    result = run(*RECORDING, *workers)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*answers.jsonl: written, 4 answers, 0 added, 0 dropped"])
    result.stdout.no_fnmatch_line("*edited replies*")
    assert json.loads(recorded.read_text("utf-8").splitlines()[0])["request"] == first["request"]
    run(*REPLAYING, "--rag-cache-dir=elsewhere").assert_outcomes(passed=4)
    assert server.calls == 1


@pytest.mark.parametrize(
    ("args", "exists"), [(REPLAYING, 4), (RECORDING, 4), ((*REPLAYING, *MANY), 4), ((*RECORDING, *MANY), 5)]
)
def test_an_edited_reply_is_named_in_the_summary(
    run: RunPytest,
    recorded: Path,
    server: FakeOpenAI,
    monkeypatch: pytest.MonkeyPatch,
    args: tuple[str, ...],
    exists: int,
) -> None:
    """Where it is used, by whichever process; the file that a run writes on names it in the next run too."""
    lines = recorded.read_text("utf-8").splitlines()
    first, second = (json.loads(line)["key"][:8] for line in lines[:2])
    lines[:2] = [line.replace("By the words they share.", "So it is.") for line in lines[:2]]
    recorded.write_text("\n".join([*lines, ""]), "utf-8")
    monkeypatch.setenv("THINGS", "pump valve hose seal" + " lamp" * (exists - 4))
    for _ in range(2):
        result = run(*args)
        result.assert_outcomes(passed=exists)
        edited = f"*answers.jsonl: edited replies used: 2 ({first}, {second})"
        result.stdout.fnmatch_lines([edited])
    assert server.calls == exists - 4
    recorded.write_text(re.sub('"digest": "[0-9a-f]*", ', "", recorded.read_text("utf-8")), "utf-8")
    run(*args).stdout.no_fnmatch_line("*edited replies*")


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
    """What the hook takes out of a text is in no file that a run leaves behind; what is judged is the text.

    The hook may be in the conftest.py of a folder, which pytest loads after its start.
    """
    pytester.makepyfile(**{f"{folder}{name}": text for name, text in REDACTION.items()})
    run(*RECORDING, "--rag-json=out.json", "--rag-report=out.html", *args).assert_outcomes(passed=1, failed=1)
    assert "Ada Brandt" in str([request.body for request in server.requests])
    files = [path for path in pytester.path.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    kept = {path.name: path.read_bytes() for path in files}
    assert [name for name, content in kept.items() if b"Ada Brandt" in content] == []
    assert all(b"[name]" in kept[name] for name in ("answers.jsonl", "cache.db", "out.json", "out.html"))
    before = server.calls
    run(*REPLAYING).assert_outcomes(passed=1, failed=1)
    assert server.calls == before


def test_workers_that_refresh_a_part_record_what_they_asked(
    run: RunPytest, recorded: Path, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer is asked for anew, once in the whole run, and replaces the old one; what was not run stays."""
    monkeypatch.setenv("THINGS", "pump hose seal lamp")
    before = recorded.read_text("utf-8")
    recorded.write_text(before.replace("By the words they share.", "It was so once."), "utf-8")
    result = run(*RECORDING, "--rag-cache=refresh", "-k", "not lamp", *MANY)
    result.assert_outcomes(passed=3)
    assert server.calls == 3
    result.stdout.fnmatch_lines(["*answers.jsonl: written, 4 answers, 0 added, 0 dropped"])
    assert recorded.read_text("utf-8").count("It was so once.") == 1


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


WRITTEN = Path(__file__).parent.parent / "data" / "cache_version_1"
VERSION_1 = {
    # The name of a judge is part of what was asked.
    "jj": """
        def make():
            def judge(prompt):
                raise AssertionError("a reply was recorded")
            return judge
    """,
    "test_moths": """
        from pytest_ragmetrics import assert_faithful
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
