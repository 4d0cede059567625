"""The examples run as they are delivered, offline and without a key."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from pytest_ragmetrics.cache.cassette import Cassette
from tests.fake_openai import FakeOpenAI

EXAMPLES = Path(__file__).parents[2] / "conftest_examples"
OUTCOMES = {
    "custom_judge": {"passed": 3, "xfailed": 1},
    "openai": {"passed": 4, "xfailed": 1},
    "quickstart": {"passed": 13, "xfailed": 4},
}


@pytest.fixture
def example(pytester: pytest.Pytester, request: pytest.FixtureRequest) -> Path:
    """Copy an example, without what earlier runs left in it, to where its README says it is."""
    folder: Path = pytester.path / "conftest_examples" / request.param
    shutil.copytree(EXAMPLES / request.param, folder, ignore=shutil.ignore_patterns("__pycache__", ".*", "*.html"))
    return folder


def test_every_example_is_known() -> None:
    """An example that no test runs would go stale."""
    assert {path.parent.name for path in EXAMPLES.glob("*/pytest.ini")} == set(OUTCOMES)


@pytest.mark.parametrize("example", sorted(OUTCOMES), indirect=True)
def test_the_command_of_the_readme_passes(pytester: pytest.Pytester, example: Path, no_provider: None) -> None:
    """The first command of its README runs the example without a provider; nothing is left in its folder."""
    before = set(example.rglob("*"))
    readme = (example / "README.md").read_text("utf-8")
    command = re.findall(r"^```\n(.*?)^```$", readme, flags=re.DOTALL | re.MULTILINE)[0]
    program, *args = shlex.split(command)
    assert program == "pytest"
    result = pytester.runpytest_inprocess(*args, "-p", "no:cacheprovider")
    result.assert_outcomes(**OUTCOMES[example.name])
    assert result.ret == pytest.ExitCode.OK
    assert {path for path in example.rglob("*") if "__pycache__" not in path.parts} == before


@pytest.mark.parametrize("example", ["openai"], indirect=True)
def test_the_cassette_is_all_that_is_asked(pytester: pytest.Pytester, example: Path, server: FakeOpenAI) -> None:
    """Replaying makes no request although a provider is there; the summary says what that saved."""
    result = pytester.runpytest_inprocess("-p", "ragmetrics", str(example))
    result.assert_outcomes(**OUTCOMES["openai"])
    result.stdout.fnmatch_lines(["judge calls: 0 made (0 tokens, *), 8 saved by the cache (*)"])
    assert server.calls == 0


@pytest.mark.parametrize("example", ["openai"], indirect=True)
def test_the_cassette_can_be_recorded_anew(
    pytester: pytest.Pytester, example: Path, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recording in the folder of the example makes the cassette that is committed; see tests/record_examples.py."""
    committed = Cassette(example / "judge.jsonl").entries
    (example / "judge.jsonl").unlink()
    monkeypatch.chdir(example)
    result = pytester.runpytest_inprocess("-p", "ragmetrics", "--rag-cache=auto")
    result.assert_outcomes(**OUTCOMES["openai"])
    result.stdout.fnmatch_lines([f"*judge.jsonl: written, {len(committed)} answers, {len(committed)} added, 0 dropped"])
    recorded = Cassette(example / "judge.jsonl").entries
    assert {key: entry.reply for key, entry in recorded.items()} == {
        key: entry.reply for key, entry in committed.items()
    }


@pytest.mark.parametrize("example", ["custom_judge"], indirect=True)
def test_the_judge_of_the_hook_gives_its_reason(pytester: pytest.Pytester, example: Path, no_provider: None) -> None:
    """The failure that the example expects shows what the judge said, and the run names that judge."""
    result = pytester.runpytest_inprocess("-p", "ragmetrics", str(example), "--runxfail")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "ragmetrics: judge house, *",
            "E *promise 1.00 > 0.00: *",
            "E *reason: It says 'will refund'.",
            "judged by: house",
        ]
    )
