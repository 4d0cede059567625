"""The `ragmetrics cache` command."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

import pytest

import pytest_ragmetrics
from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.cache.entry import CacheEntry, key_of, new_entry
from pytest_ragmetrics.cache.folder import default_folder
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.cli.cache import read_age
from pytest_ragmetrics.judges.transports.values import Reply
from tests.commands.conftest import told
from tests.unit.conftest import Call

NOW = datetime.now(timezone.utc).isoformat(timespec="seconds")
OLD = "2020-02-01T00:00:00+00:00"


def entry(number: int, text: str = "{}", *, created: str = NOW) -> CacheEntry:
    """Return an entry whose request differs from others by a number, which is also that of its model."""
    row = {"task": "list_claims", "model": f"judge-{number}", "number": number}
    reply = Reply(text=text, prompt_tokens=1000)
    return replace(new_entry(key_of(row), row, reply, salt="", redact=None), created=created)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Store(tmp_path / "cache") as store:
        store.put_many([entry(1, created=OLD), entry(2)])
    return tmp_path / "cache"


@pytest.fixture
def call(folder: Path, ragmetrics: Call) -> Call:
    def run(command: str, *arguments: str | Path, on: Path = folder) -> tuple[int, str, str]:
        return ragmetrics("cache", "--dir", on, command, *arguments)

    return run


def entries(folder: Path) -> dict[str, CacheEntry]:
    with Store(folder) as store:
        return {kept.key: kept for kept in store}


def test_stats_counts_what_is_there(call: Call, folder: Path) -> None:
    status, out, err = call("stats")
    assert (status, err) == (0, "")
    assert re.match(rf"{folder}: 2 entries, [1-9]\d* KiB\nmade 2020-02-01 to 2", out), out
    assert "2,000 prompt and 0 completion tokens" in out
    assert out.endswith("  list_claims  judge-1  1\n  list_claims  judge-2  1\n")


def test_verify_finds_and_drops_what_is_unsound(call: Call, folder: Path) -> None:
    assert call("verify") == (0, f"{folder}: 2 entries, all sound\n", "")
    with closing(sqlite3.connect(folder / "cache.db")) as connection, connection:
        connection.execute("UPDATE Cache SET mode = 4, value = x'80' WHERE key = ?", (entry(1).key,))
    status, out, err = call("verify")
    assert (status, out, f"{entry(1).key}: it asks to be unpickled" in err) == (1, "", True)
    assert call("stats")[0] == 1
    status, out, err = call("verify", "--remove")
    assert (status, err, "removed 1 entry" in out) == (0, "", True)
    assert (call("verify")[0], *entries(folder)) == (0, entry(2).key)


def test_prune_drops_the_old(call: Call, folder: Path) -> None:
    assert call("prune", "--older-than", "99999w") == (0, f"{folder}: dropped 0 entries, kept 2\n", "")
    assert call("prune", "--older-than", "30d") == (0, f"{folder}: dropped 1 entry, kept 1\n", "")
    assert set(entries(folder)) == {entry(2).key}


@pytest.mark.parametrize(("age", "hours"), [("90m", 1.5), ("12h", 12), ("30d", 720), ("2w", 336)])
def test_ages_are_read(age: str, hours: float) -> None:
    assert read_age(age).total_seconds() == hours * 3600


def test_what_is_exported_can_be_imported(call: Call, folder: Path, tmp_path: Path) -> None:
    """A cache moves to another machine as a cassette, which replaces the file; clearing says how much is dropped."""
    file = tmp_path / "all.jsonl"
    Cassette(file).save({entry(9).key: entry(9)}, complete=True)
    assert call("export", file) == (0, f"{file}: 2 entries\n", "")
    assert call("import", file, on=tmp_path / "other") == (0, f"{file}: took 2 of 2 entries\n", "")
    assert call("import", file, on=tmp_path / "other") == (0, f"{file}: took 0 of 2 entries\n", "")
    assert entries(tmp_path / "other") == entries(folder)
    assert call("clear") == (0, f"{folder}: dropped 2 entries\n", "")
    assert entries(folder) == {}


def test_export_refuses_secrets(call: Call, folder: Path, tmp_path: Path) -> None:
    secret, file = "sk-proj-" + "a1B2" * 8, tmp_path / "all.jsonl"
    with Store(folder) as store:
        # Of an earlier version, which masked no reply.
        store.put(replace(entry(3), reply={"text": f'{{"claims": ["{secret}"]}}', "calls": 1}))
    said = f"the list_claims answer {entry(3).key[:8]} was not recorded"
    assert secret not in told(call("export", file), 1, said) + file.read_text()
    assert len(Cassette(file).entries) == 2


def test_import_keeps_what_was_made_last(call: Call, folder: Path, tmp_path: Path) -> None:
    newer = entry(1, "newer", created="2030-01-01T00:00:00+00:00")
    older = entry(2, "older", created=OLD)
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    Cassette(files[0]).save({newer.key: newer, older.key: older}, complete=True)
    Cassette(files[1]).save({entry(1).key: entry(1, "between", created="2025-01-01T00:00:00+00:00")}, complete=True)
    status, out, _ = call("import", *files)
    assert (status, out) == (0, f"{files[0]}: took 1 of 2 entries\n{files[1]}: took 0 of 1 entry\n")
    assert entries(folder)[newer.key] == newer
    assert entries(folder)[older.key].answer().text == "{}"


@pytest.mark.parametrize("command", ["import", "verify"])
def test_a_cassette_that_cannot_be_read_is_named(call: Call, tmp_path: Path, command: str) -> None:
    (tmp_path / "c.jsonl").write_text("\nno JSON\n")
    status, out, err = call(command, tmp_path / "c.jsonl")
    assert (status, out) == (1, "")
    assert err.startswith(f"ragmetrics: {tmp_path / 'c.jsonl'}:2: ")
    assert "there is no such cassette" in call(command, tmp_path / "none.jsonl")[2]


@pytest.mark.parametrize(
    "command", [("stats",), ("verify",), ("clear",), ("prune", "--older-than=1d"), ("export", "f")]
)
def test_a_missing_cache_is_an_error_and_stays_missing(call: Call, tmp_path: Path, command: tuple[str, ...]) -> None:
    status, out, err = call(*command, on=tmp_path / "tpyo")
    assert (status, out, err) == (1, "", f"ragmetrics: {tmp_path / 'tpyo'}: there is no cache\n")
    assert not (tmp_path / "tpyo").exists()


def test_a_damaged_cache_can_be_tended(call: Call, folder: Path) -> None:
    """It is reported and stays until it is mended; clearing drops what was moved aside too."""
    file, broken = folder / "cache.db", b"no database" * 1000
    said = f"ragmetrics: {file}: file is not a database; "
    file.write_bytes(broken)
    status, out, err = call("verify")
    assert (status, out, err.startswith(f"{said}`ragmetrics cache verify --remo")) == (1, "", True)
    status, out, err = call("verify", "--remove")
    assert (status, out) == (0, f"{folder}: 0 entries, all sound\n")
    assert err.startswith(f"{said}it is moved to cache.db.broken-1")
    assert "cache.db.broken-1 was moved aside" in call("stats")[1]
    file.write_bytes(broken)
    status, out, err = call("clear")
    assert (status, out, "cache.db.broken-2" in err) == (0, f"{folder}: dropped 0 entries\n", True)
    assert not list(folder.glob("*broken*"))


def test_a_cassette_is_verified(call: Call, tmp_path: Path) -> None:
    """Every line that is unsound is named, those behind it too; an edit stays named where it is taken over."""
    file, other = tmp_path / "c.jsonl", tmp_path / "other"
    Cassette(file).save({each.key: each for each in (entry(1), entry(2), entry(3))}, complete=True)
    assert call("verify", file) == (0, f"{file}: 3 entries, all sound\n", "")
    first, second, third = file.read_text().splitlines()
    file.write_text("\n".join([first.replace("judge-", "judge-9"), second, third.replace("1000", "NaN"), ""]))
    status, out, err = call("verify", file)
    places = [line.partition(" ")[0] for line in err.removeprefix("ragmetrics: ").splitlines()]
    assert (status, out, places) == (1, "", [f"{file}:1:", f"{file}:3:", f"{file}:"])
    edited = second.replace('"text": "{}"', '"text": "[]"')
    file.write_text(f"{first}\n{edited}\n{third}\n")
    assert f"{file}:2: entry " in call("verify", file)[2]
    assert call("import", file, on=other)[0] == call("export", tmp_path / "d.jsonl", on=other)[0] == 0
    for verified in (call("verify", file), call("verify", tmp_path / "d.jsonl"), call("verify", on=other)):
        assert "its reply is not that of its digest" in verified[2]
    bare = re.sub('"digest": "[0-9a-f]*", ', "", f"{edited}\n{third}")
    file.write_text(f"{first}\n{bare}\n")
    unseen = "; 2 without a digest: of these an edited reply is not seen"
    assert call("verify", file) == (0, f"{file}: 3 entries, all sound{unseen}\n", "")


def test_a_row_of_another_request_is_unsound(call: Call, folder: Path, tmp_path: Path) -> None:
    """Verifying finds it, and no cassette is made of it; what verifying cannot see of redacted ones, it says."""
    with Store(folder) as store:
        store.put(replace(entry(1), key=entry(2).key))
    said = f"{entry(2).key}: its key is not that of its request"
    told(call("verify"), 1, said)
    told(call("export", tmp_path / "c.jsonl"), 1, said, f"{tmp_path / 'c.jsonl'}: NOT written")
    assert not (tmp_path / "c.jsonl").exists()
    assert "removed 1 entry" in call("verify", "--remove")[1]
    with Store(folder) as store:
        store.put(replace(entry(1), key=entry(2).key, redacted=True))
    unseen = "; 1 redacted, which are checked where they are used"
    assert call("verify") == (0, f"{folder}: 2 entries, all sound{unseen}\n", "")


def test_the_folder_is_found_from_below(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = folder.parent / "project"
    (project / ".ragmetrics").mkdir(parents=True)
    (project / "tests" / "deep").mkdir(parents=True)
    monkeypatch.chdir(project / "tests" / "deep")
    assert default_folder() == project / ".ragmetrics"
    monkeypatch.setenv("RAGMETRICS_CACHE_DIR", str(folder))
    assert default_folder() == folder


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs pipes that break and a disk that is full")
@pytest.mark.parametrize("full", [True, False])
def test_output_that_cannot_be_written(folder: Path, full: bool) -> None:
    """A full disk is named once; a reader that goes away, as in `ragmetrics metrics | head -1`, is not; status 1."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "pytest_ragmetrics", "cache", "--dir", str(folder), "stats"]
    try:
        with Path("/dev/full").open("wb") as disk:
            out = disk if full else write
            ran = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write)
    reported = "ragmetrics: standard output: [Errno 28] No space left on device\n" if full else ""
    assert (ran.returncode, ran.stderr) == (1, reported)


def test_it_is_a_command_of_its_own(folder: Path) -> None:
    """Started as a process it prints, ends with the status, and imports neither pytest nor a provider."""
    script = """
import sys
from pytest_ragmetrics.cli import main
status = main(sys.argv[1:])
heavy = {"pytest", "openai", "numpy", "jinja2"} & set(sys.modules)
sys.exit(status if not heavy else str(heavy))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(pytest_ragmetrics.__file__).parent.parent)}
    command = [sys.executable, "-W", "error", "-c", script, "cache", "--dir", str(folder), "stats"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 entries" in done.stdout


def test_its_version_is_that_of_the_package(ragmetrics: Call) -> None:
    status, said, _ = ragmetrics("--version")
    assert (status, said.split()[-1]) == (0, pytest_ragmetrics.__version__)
    assert version("pytest-ragmetrics") == pytest_ragmetrics.__version__
