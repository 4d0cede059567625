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

    Use it when answers must show good will. Takes ``response``; one request.

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
        response = sample.response or ""
        judgement = await ask(JudgeKindness(response=response))
        verdict = on_response(response, ok=judgement.ok or not self.is_strict, reason=judgement.reason)
        return ask.share([verdict], "responses kind")


assert_kind = asserting(Kindness, min=1.0, example='"Wait, please.", judge="local"')
'''
TASK = '''
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
    "tests/metrics/test_kindness.py": """
import pytest

from pytest_ragmetrics import assert_kind, assert_sample
from pytest_ragmetrics.judges.tasks import JudgeKindness
from pytest_ragmetrics.metrics import Kindness, metric_named


def test_kindness() -> None:
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


if __name__ == "__main__":
    test_kindness()
""",
}
#: The tests that look at every metric, task and public name.
TESTS = ["tests/metrics", "tests/judges", "tests/test_docs.py"]
TESTS += [f"tests/unit/test_{name}.py" for name in ("layers", "rendering", "dry_run", "local_judge")]
CHOSEN = "kindness or Kindness or catalogue or assertions or layers or public or committed or name or every"
#: The first thing that the command of CONTRIBUTING, `.tools/make_reference.py`, does.
WRITE_STUBS = """
from stubs import stubs
for place, text in stubs().items():
    with open(f"pytest_ragmetrics/{place}", "w", encoding="utf-8") as file:
        file.write(text)
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository with the four files and the stubs made of them."""
    folder = tmp_path_factory.mktemp("checkout")
    for part in ("pytest_ragmetrics", ".tools", "tests", "conftest_examples"):
        # With what is compiled, which takes half a second.
        shutil.copytree(ROOT / part, folder / part)
    for part in ("pyproject.toml", "README.md", "CHANGELOG.md", ".zensical.yml"):
        shutil.copy(ROOT / part, folder / part)
    for path, text in FILES.items():
        (folder / path).write_text(text.lstrip("\n"), "utf-8")
    run(folder, "-c", WRITE_STUBS)
    return folder


def run(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{folder / '.tools'}"}
    command = [sys.executable, *arguments]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout + ran.stderr
    return ran.stdout


def test_four_files_make_a_judged_metric(checkout: Path) -> None:
    run(checkout, "tests/metrics/test_kindness.py")
    stub = (checkout / "pytest_ragmetrics/__init__.pyi").read_text("utf-8")
    shown = "response: str, *, min: float = 1.0, is_strict: bool = True, votes: int | None = None"
    assert f"# pytest_ragmetrics.metrics.kindness\ndef assert_kind(\n    {shown}" in stub
    assert "    kindness: float\n" in (checkout / "pytest_ragmetrics/core/typed.py").read_text("utf-8")


@pytest.mark.slow
def test_all_lists_and_tests_of_metrics_have_it(checkout: Path) -> None:
    """Only the four files and what the command makes of them differ; the tests that look at every metric pass."""
    run(checkout, ".tools/make_reference.py")
    package = Path(pytest_ragmetrics.__file__).parent
    made = [path for path in package.rglob("*") if path.suffix in (".py", ".pyi", ".md", ".txt", ".toml", ".json")]
    names = [str(path.relative_to(package)) for path in made]
    copy = checkout / "pytest_ragmetrics"
    differ = {name for name in names if (copy / name).read_bytes() != (package / name).read_bytes()}
    pages = {f"docs/reference/{name}.md" for name in ("metrics", "tasks")}
    assert differ == {"__init__.pyi", "metrics/__init__.pyi", "core/typed.py", "judges/tasks/__init__.py", *pages}
    described = json.loads(run(checkout, "-m", "pytest_ragmetrics", "metrics", "--json"))["metrics"]
    (kindness,) = (each for each in described if each["class"] == "Kindness")
    shown = (kindness["name"], kindness["aliases"], kindness["helper"], kindness["asks"])
    assert shown == ("kindness", ["warmth"], "assert_kind", ["judge"])
    run(checkout, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", f"not new_metric and ({CHOSEN})", *TESTS)
