"""A judged metric of this package is added in three files: its module, its task and the prompt."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest_ragmetrics

FILES = {
    "metrics/kindness.py": '''
"""Whether a response is kind."""
from pytest_ragmetrics.judges.tasks.kindness import JudgeKindness
from pytest_ragmetrics.metrics.asserting import assert_metric
from pytest_ragmetrics.metrics.judged import JudgedMetric
from pytest_ragmetrics.metrics.verdicts import on_response
from pytest_ragmetrics.core.sample import Sample


class Kindness(JudgedMetric):
    """How kind the response is."""

    name = "kindness"
    aliases = ("warmth",)
    noun = "response"
    complaint = "unkind"
    helper = "assert_kind"

    async def judged(self, sample, ask):
        judgement = await ask(JudgeKindness(response=sample.response))
        return ask.share([on_response(sample.response, ok=judgement.ok, reason=judgement.reason)], "responses kind")


def assert_kind(response, *, min=1.0, judge=None):
    return assert_metric(Kindness(judge=judge), Sample(response=response), min=min)
''',
    "judges/tasks/kindness.py": '''
"""Kindness."""
from dataclasses import dataclass

from pytest_ragmetrics.judges.schema import TEXT, one_of, record
from pytest_ragmetrics.judges.tasks.task import Judgement, Task, decided


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeKindness(Task[Judgement]):
    prompt = "judge_kindness"
    shown = ("response",)
    form = record(reason=TEXT, verdict=one_of("kind", "unkind"))
    response: str

    def by_rule(self):
        return Judgement(ok="please" in self.response, reason="It says please or not.")

    def _parse(self, answer):
        return decided(answer, "kind")
''',
    "judges/prompts/judge_kindness.md": "Is the response kind?\n",
}
USE = """
import re
from pytest_ragmetrics import assert_kind, assert_sample, cli
from pytest_ragmetrics.metrics import metric_named

assert metric_named("warmth") is metric_named("kindness")
seen = []
judge = lambda prompt: seen.append(prompt) or '{"reason": "A warm word.", "verdict": "kind"}'
assert assert_kind("Get well soon!", judge=judge) == 1.0
assert "Is the response kind?" in seen[0]
assert assert_sample({"response": "Wait, please."}, kindness=1.0, judge="local")["kindness"].verdicts[0].ok
try:
    assert_kind("Wait.", judge="local")
except AssertionError as error:
    print(error)
cli.main(["metrics", "--json"])
"""


def test_three_files_make_a_judged_metric(tmp_path: Path) -> None:
    """It is found by name and alias, has its helper and a rule of the local judge, and is described."""
    package = tmp_path / "pytest_ragmetrics"
    # With what is compiled, which takes half a second.
    shutil.copytree(Path(pytest_ragmetrics.__file__).parent, package)
    for path, text in FILES.items():
        (package / path).write_text(text, "utf-8")
    run = subprocess.run([sys.executable, "-c", USE], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stderr == ""
    failure, _, described = run.stdout.partition("\n{")
    assert failure.startswith("kindness 0.00 < 1.00")
    (kindness,) = (each for each in json.loads(f"{{{described}")["metrics"] if each["class"] == "Kindness")
    names = (kindness["name"], kindness["aliases"], kindness["helper"], kindness["asks"])
    assert names == ("kindness", ["warmth"], "assert_kind", ["judge"])
