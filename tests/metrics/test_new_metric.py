"""A judged metric of this package is a class, a task, a prompt and a test: the lists of them are made of these."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_ragmetrics
from tests.pages import ROOT

CLASS = '''
"""Whether a response is kind."""

from __future__ import annotations

from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges.tasks.kindness import JudgeKindness
from pytest_ragmetrics.metrics.asserting import asserting
from pytest_ragmetrics.metrics.judged import Ask, JudgedMetric
from pytest_ragmetrics.metrics.parameters import declared
from pytest_ragmetrics.metrics.verdicts import on_response


@declared
class Kindness(JudgedMetric):
    """1.0 if the response is kind, else 0.0.

    Takes ``response``; one request.

    >>> Kindness(judge="local").score(response="Wait, please.").value
    1.0
    """

    name = "kindness"
    aliases = ("warmth",)
    blind_spots = "Irony, and whether a kind answer is right."
    noun = "response"
    complaint = "unkind"
    helper = "assert_kind"

    is_strict: bool = True

    async def judged(self, sample: Sample, ask: Ask) -> MetricResult:
        """Return whether it is."""
        response = sample.response or ""
        judgement = await ask(JudgeKindness(response=response))
        verdict = on_response(response, ok=judgement.ok or not self.is_strict, reason=judgement.reason)
        return ask.share([verdict], "responses kind")


assert_kind = asserting(Kindness, min=1.0, example='"Wait, please.", judge="local"')
'''
TASK = '''
"""The task of Kindness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_ragmetrics.judges.schema import TEXT, one_of, record
from pytest_ragmetrics.judges.tasks.task import Judgement, Task, decided


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeKindness(Task[Judgement]):
    """Decide whether a response is kind."""

    prompt = "judge_kindness"
    shown = ("response",)
    form = record(reason=TEXT, verdict=one_of("kind", "unkind"))
    response: str

    def by_rule(self) -> Judgement:
        """Look for a word."""
        return Judgement(ok="please" in self.response, reason="It says please or not.")

    def _parse(self, answer: Mapping[str, Any]) -> Judgement:
        return decided(answer, "kind")
'''
FILES = {
    "pytest_ragmetrics/metrics/kindness.py": CLASS,
    "pytest_ragmetrics/judges/tasks/kindness.py": TASK,
    "pytest_ragmetrics/judges/prompts/judge_kindness.md": """
Decide whether the response is kind.

"kind": it shows good will. "unkind": it shows none.
"reason": one short sentence in the language of the text, written before you decide.

Example: response "Do come in, it is cold outside."
{"reason":"It thinks of the guest.","verdict":"kind"}
""",
    "tests/metrics/test_kindness.py": '''
"""Kindness."""

import pytest

from pytest_ragmetrics import assert_kind, assert_sample
from pytest_ragmetrics.judges.tasks import JudgeKindness
from pytest_ragmetrics.metrics import Kindness, metric_named


def test_kindness() -> None:
    """By a judge and by the rule of the local one, by name, alias, class and helper."""
    seen: list[str] = []
    judge = lambda prompt: seen.append(prompt) or '{"reason": "A warm word.", "verdict": "kind"}'
    assert assert_kind("Get well soon!", judge=judge, is_strict=True) == 1.0
    assert "Decide whether the response is kind." in seen[0]
    assert metric_named("warmth") is metric_named("kindness") is Kindness
    assert JudgeKindness(response="Wait, please.").by_rule().ok
    assert assert_sample({"response": "Wait, please."}, kindness=1.0, judge="local")["kindness"].verdicts[0].ok
    with pytest.raises(AssertionError, match="^kindness 0.00 < 1.00: 1 of 1 response unkind"):
        assert_kind("Wait.", judge="local")
    with pytest.raises(ValueError, match="is_strict must be True or False"):
        Kindness(is_strict="no")
''',
}
#: The tests that look at every metric, task and public name.
TESTS = ["tests/metrics", "tests/judges", "tests/test_docs.py"]
TESTS += [f"tests/unit/test_{name}.py" for name in ("layers", "rendering", "dry_run", "local_judge")]
CHOSEN = "kindness or Kindness or registry or assertions or layers or public or committed or name or every"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository with the four files, after the command that CONTRIBUTING names."""
    folder = tmp_path_factory.mktemp("checkout")
    for part in ("pytest_ragmetrics", ".tools", "tests", "conftest_examples"):
        # With what is compiled, which takes half a second.
        shutil.copytree(ROOT / part, folder / part)
    for part in ("pyproject.toml", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / part, folder / part)
    for path, text in FILES.items():
        (folder / path).write_text(text.lstrip("\n"), "utf-8")
    assert run(folder, ".tools/make_reference.py").stderr == ""
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the copy."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_four_files_make_a_judged_metric(checkout: Path) -> None:
    """Only these and what is made of them differ; the tests that look at every metric pass."""
    package = Path(pytest_ragmetrics.__file__).parent
    made = [path for path in package.rglob("*") if path.suffix in (".py", ".pyi", ".md", ".txt", ".toml", ".json")]
    differ = {
        str(path.relative_to(package))
        for path in made
        if (checkout / "pytest_ragmetrics" / path.relative_to(package)).read_bytes() != path.read_bytes()
    }
    pages = {f"docs/reference/{name}.md" for name in ("api", "metrics", "tasks")}
    assert differ == {"__init__.pyi", "metrics/__init__.pyi", "core/typed.py", "judges/tasks/__init__.py", *pages}
    tested = run(
        checkout, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", f"not new_metric and ({CHOSEN})", *TESTS
    )
    assert tested.returncode == 0, tested.stdout
    described = json.loads(run(checkout, "-m", "pytest_ragmetrics", "metrics", "--json").stdout)["metrics"]
    (kindness,) = (each for each in described if each["class"] == "Kindness")
    names = (kindness["name"], kindness["aliases"], kindness["helper"], kindness["asks"])
    assert names == ("kindness", ["warmth"], "assert_kind", ["judge"])


def test_its_types_are_known(checkout: Path) -> None:
    """To type checkers, by the stubs."""
    stub = (checkout / "pytest_ragmetrics/__init__.pyi").read_text("utf-8")
    shown = "response: str, *, min: float = 1.0, is_strict: bool = True, votes: int | None = None"
    assert f"# pytest_ragmetrics.metrics.kindness\ndef assert_kind(\n    {shown}" in stub
    assert "    kindness: float\n" in (checkout / "pytest_ragmetrics/core/typed.py").read_text("utf-8")
