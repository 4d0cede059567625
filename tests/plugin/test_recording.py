"""Recording the example by its provider: forecast, budget, resumption, and nothing written that a stand-in said."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import record_examples
from record_examples import EXAMPLES, STAND_IN, RecordingError, main, origin, record_real

from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.judges.providers.vendor import OPENAI
from tests.fake_answers import answer_sensibly
from tests.fake_openai import FakeOpenAI, failing

#: A tool of those who develop this package.
pytestmark = pytest.mark.slow

KEY = "sk-of-an-owner-0123456789"


def reworded(body: dict[str, Any]) -> str:
    """Answer as another model would."""
    return answer_sensibly(body).replace('": "It ', '": "The text ').replace("{", "{ ", 1)


@pytest.fixture(scope="module")
def _running() -> Iterator[FakeOpenAI]:
    """Run a server in the place of the provider, at the provider's own address."""
    own = OPENAI.url
    with FakeOpenAI() as running:
        object.__setattr__(OPENAI, "url", running.base_url)
        yield running
        object.__setattr__(OPENAI, "url", own)


@pytest.fixture
def provider(_running: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> FakeOpenAI:
    """Return the provider, whose key is in the environment."""
    _running.reset()
    _running.key, _running.answer = KEY, reworded
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("CI", raising=False)
    return _running


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """Return a copy of the example."""
    folder = tmp_path / "openai"
    shutil.copytree(EXAMPLES / "openai", folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return folder


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """Return a folder of labelled answers, and of another file."""
    folder = tmp_path / "answers"
    folder.mkdir()
    for name in ("ragtruth_qa.dev.jsonl", "ansrel_alce.dev.jsonl", "notes.jsonl"):
        rows = (
            {"id": f"{name}-{n // 2}", "question": f"How deep is lake {n}?", "group": str(n), "label": n % 2,
             "response": f"Lake {n} is deep." if n % 2 else "Ask me anything else, please.",
             "contexts": [f"Lake {n} is deep. Pike live in it."]}
            for n in range(4)
        )  # fmt: skip
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_recording_is_forecast_first(
    provider: FakeOpenAI, example: Path, answers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = content(example)
    assert main(["--real", f"--answers={answers}"], folder=example, work=tmp_path / "work") == 0
    said = capsys.readouterr().out
    lines = {line.split()[0]: line.split() for line in said.partition("dry run:")[2].splitlines() if line.strip()}
    # Two tests and 4 answers have claims, which are listed and verified; the "lakes" are rated.
    assert lines["relevance"][1:3] == ["5", "5"]
    assert int(lines["faithfulness"][1]) == 7
    assert lines["total"][-1].startswith("$0.0")
    assert "add --max-cost=DOLLARS" in said
    assert (provider.calls, content(example)) == (0, before)


def test_a_recording_that_failed_goes_on(
    provider: FakeOpenAI, example: Path, answers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--real", f"--answers={answers}", "--limit=4", "--max-cost=0.5"]
    first = iter(range(8))
    provider.answer = lambda body: failing(400, "No.") if next(first, None) is None else reworded(body)
    before = content(example)
    assert main(arguments, folder=example, work=tmp_path / "work") == 1
    assert "is as it was; what is paid for is in " in capsys.readouterr().out
    asked = provider.answered
    assert (asked >= 8, content(example)) == (True, before)
    provider.answer = reworded
    assert main(arguments, folder=example, work=tmp_path / "work") == 0
    assert (provider.answered > asked, provider.duplicates) == (True, 0)
    assert origin(example) == "openai:gpt-5.4-mini"
    readme = (example / "README.md").read_text("utf-8")
    assert "The replies in `judge.jsonl` are those of `openai:gpt-5.4-mini`, recorded on 20" in readme
    assert "| ragtruth_qa | `faithfulness` | 4 | 1.00 (" in readme
    assert "| ansrel_alce | `relevance` | 4 | " in readme
    assert "fake provider" not in readme
    recorded = Cassette(example / "judge.jsonl").entries
    texts = [entry.reply["text"] for entry in recorded.values() if "text" in entry.reply]
    assert len(texts) == 8
    assert all(text.startswith("{ ") for text in texts)
    assert KEY not in b"".join(content(example).values()).decode()
    calls = provider.calls
    assert record_examples._run(example, "-q") == 0
    assert provider.calls == calls


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"OPENAI_BASE_URL": "http://me:s3cret@127.0.0.1:9/v1"}, "http://***@127.0.0.1:9/v1 would stand in for OpenAI"),
        ({"OPENAI_API_KEY": " "}, "set OPENAI_API_KEY to a key of OpenAI"),
        ({"CI": "true"}, "no step of CI"),
    ],
)
def test_where_no_provider_would_be_asked_nothing_is(
    provider: FakeOpenAI, example: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], said: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    before, work = content(example), example.parent / "work"
    with pytest.raises(RecordingError) as refused:
        record_real(example, answers=None, limit=None, max_cost=1.0, work=work)
    assert said in str(refused.value)
    assert (provider.calls, content(example), work.exists()) == (0, before, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--max-cost=1"], "all 8 replies are as the stand-in words them"),
        (["--answers=nowhere"], "ragtruth*.jsonl, begin*.jsonl"),
    ],
)
def test_what_cannot_be_recorded_changes_nothing(
    provider: FakeOpenAI, example: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    provider.answer = answer_sensibly
    before = content(example)
    assert main(["--real", *arguments], folder=example, work=example.parent / "work") == 2
    assert said in capsys.readouterr().err
    assert content(example) == before


def test_the_stand_in_replaces_no_recording_of_a_model(
    example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[Path] = []

    def recorded(folder: Path) -> int:
        ran.append(folder)
        return 0

    for name in ("record", "record_baseline"):
        monkeypatch.setattr(record_examples, name, recorded)
    monkeypatch.setattr(record_examples, "EXAMPLES", example.parent)
    before = (example / "README.md").read_text("utf-8")
    assert origin(example) == STAND_IN
    assert (main([]), len(ran)) == (0, 2)
    (example / "README.md").write_text(before.replace("judge.jsonl: stand-in", "judge.jsonl: openai:m"), "utf-8")
    assert (main([]), len(ran)) == (2, 2)
    assert "a recording of openai:m, which was paid for: --stand-in replaces it" in capsys.readouterr().err
    assert (main(["--stand-in"]), len(ran)) == (0, 4)
    assert (example / "README.md").read_text("utf-8") == before
