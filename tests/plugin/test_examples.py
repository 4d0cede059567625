"""The examples run as they are delivered, offline and without a key."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from record_examples import STAND_IN, origin

from pytest_ragmetrics.cache.cassette import Cassette
from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import Run, RunPytest

EXAMPLES = Path(__file__).parents[2] / "conftest_examples"
OUTCOMES = {
    "chat": {"passed": 16, "xfailed": 5},
    "custom_judge": {"passed": 3, "xfailed": 1},
    "golden_set": {"passed": 109, "xfailed": 2},
    "observers": {"passed": 2},
    "openai": {"passed": 4, "xfailed": 1},
    "own_metric": {"passed": 6, "xfailed": 1},
    "quickstart": {"passed": 13, "xfailed": 4},
    "traces": {"passed": 8, "xfailed": 1},
}

WRONG = [
    "Decaffeinated beans roast faster and need a setting of 200 °C at most.",
    (
        "The drum and the drive motor are covered for five years if the roaster is used in a café, a shop or any other "
        "business."
    ),
    "The heating element must be rinsed with water or sprayed with oven cleaner.",
    "You may send the Rondel 2 back within 54 days of delivery, for any reason or for none.",
]


@pytest.fixture
def example(pytester: pytest.Pytester, request: pytest.FixtureRequest) -> Path:
    """Copy an example, without what earlier runs left in it, to where its README says it is."""
    folder: Path = pytester.path / "conftest_examples" / request.param
    shutil.copytree(EXAMPLES / request.param, folder, ignore=shutil.ignore_patterns("__pycache__", ".*", "*.html"))
    return folder


def outcomes_of(result: Run) -> dict[str, int]:
    """Return the outcomes of a run; tests that were not needed count as passed: how many they are is chance."""
    found = result.parseoutcomes()
    spared = sum(int(line.split("[")[1].split("]")[0]) for line in result.outlines if ": not needed: gate-" in line)
    if found.get("skipped") == spared:
        found["passed"] += found.pop("skipped")
    return {name: number for name, number in found.items() if not name.startswith("warning")}


def test_every_example_is_known() -> None:
    assert {path.parent.name for path in EXAMPLES.glob("*/pytest.ini")} == set(OUTCOMES)


def run_as_the_readme_says(pytester: pytest.Pytester, example: Path, *more: str) -> Run:
    """Run the first command of its README, which passes and leaves no file."""
    before = set(example.rglob("*"))
    readme = (example / "README.md").read_text("utf-8")
    command = re.findall(r"^```\n(.*?)^```$", readme, flags=re.DOTALL | re.MULTILINE)[0]
    program, *args = shlex.split(command)
    assert program == "pytest"
    result = Run(pytester.runpytest_inprocess(*args, "-p", "no:cacheprovider", "-rs", *more), pytester.path)
    assert outcomes_of(result) == OUTCOMES[example.name]
    assert result.ret == pytest.ExitCode.OK
    assert {path for path in example.rglob("*") if "__pycache__" not in path.parts} == before
    return result


@pytest.mark.parametrize("example", sorted(OUTCOMES.keys() - {"golden_set"}), indirect=True)
def test_the_command_of_the_readme_passes(pytester: pytest.Pytester, example: Path) -> None:
    run_as_the_readme_says(pytester, example)


@pytest.mark.parametrize("example", ["openai"], indirect=True)
def test_the_cassette_can_be_recorded_anew(
    run: RunPytest, example: Path, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as committed where the stand-in recorded that; where a model did, the first requests are the same."""
    committed = Cassette(example / "judge.jsonl").entries
    assert {entry.host for entry in committed.values()} == {""}
    (example / "judge.jsonl").unlink()
    monkeypatch.chdir(example)
    result = run("--rag-cache=auto")
    result.assert_outcomes(**OUTCOMES["openai"])
    recorded = Cassette(example / "judge.jsonl").entries
    result.shows(f"*judge.jsonl: written, {len(recorded)} answers, {len(recorded)} added, 0 dropped")
    first = {key for key, entry in recorded.items() if entry.task in ("list_claims", "write_questions")}
    assert len(first) >= 3
    assert first <= committed.keys()
    replies, before = ({key: entry.reply for key, entry in all_of.items()} for all_of in (recorded, committed))
    assert origin(example) != STAND_IN or replies == before


@pytest.mark.parametrize("example", ["golden_set"], indirect=True)
def test_the_golden_set_is_as_its_baseline_says(pytester: pytest.Pytester, example: Path) -> None:
    baseline = example / "baseline.json"

    def scores() -> list[tuple[str, list[float]]]:
        tests = json.loads(baseline.read_text("utf-8"))["tests"]
        # Which rows are under way when a gate is decided is chance.
        whole = [test for test in tests if "test_answers_quote" not in test["id"]]
        return [(test["id"], [record["score"] for record in test["records"]]) for test in whole]

    committed = scores()
    result = run_as_the_readme_says(pytester, example, f"--rag-json={baseline}")
    result.shows(
        "gate: token_f1 against the baseline 0.705 -> 0.705, *",
        "gate: mean quoted_spans_alignment 1.000, *decided after 21 of 44 rows (seed golden set), *",
        "against the baseline: 0 better, 0 worse, 2?? the same*",
    )
    assert scores() == committed


BEST = "best = next(iter(Index(sentences).ranked(question)), 0)"


@pytest.mark.parametrize("example", ["golden_set"], indirect=True)
@pytest.mark.parametrize(
    ("before", "after", "outcomes", "said"),
    [
        ("top: int = 3", "top: int = 1", OUTCOMES["golden_set"], "against the baseline: 0 better, 2 worse, *"),
        (BEST, "best = 0", {"passed": 107, "failed": 2, "xfailed": 2}, "gate: token_f1 * 0.705 -> 0.349, *: failed *"),
    ],
)
def test_the_golden_set_shows_what_a_change_does(
    run: RunPytest, example: Path, before: str, after: str, outcomes: object, said: str
) -> None:
    application = (example / "conftest.py").read_text("utf-8")
    assert before in application
    (example / "conftest.py").write_text(application.replace(before, after), encoding="utf-8")
    result = run("-rs", str(example))
    assert outcomes_of(result) == outcomes
    result.shows(said)


@pytest.mark.parametrize("example", ["quickstart"], indirect=True)
def test_the_wrong_answers_of_the_quickstart_fail_for_their_quotations(run: RunPytest, example: Path) -> None:
    result = run(str(example), "-p", "no:randomly", "--runxfail", "--rag-report=out.html")
    result.assert_outcomes(passed=13, failed=4)
    result.shows(
        "ragmetrics: judge local (heuristic), *",
        "*quoted_spans_alignment 0.50 < 0.90: 1 of 2 quoted spans not found*",
        "*within 45 days of delivery*",
        "*must not be rinsed with water*",
        "judged by: local (heuristic)",
    )
    page = result.text("out.html")
    # In the list and in the test.
    marked = set(re.findall(r'<mark class="missing"[^>]*>(.*?)</mark>', page, re.DOTALL))
    texts = sorted(re.sub(r"<[^>]+>", "", text) for text in marked)
    # Single words are those of the answer without quotations that are not in the handbook.
    assert [text for text in texts if " " in text] == WRONG
    assert "You may send the Rondel 2 back within 45 days of delivery" in page


@pytest.mark.parametrize("example", ["chat"], indirect=True)
def test_each_fault_of_the_chat_is_found_in_its_turn(run: RunPytest, example: Path) -> None:
    result = run(str(example), "-p", "no:randomly", "--runxfail")
    result.assert_outcomes(passed=16, failed=5)
    result.shows(
        '*turn 1  not supported: "Students borrow every bike for free."*',
        '*turn 3  repeated from turn 1: "Helmets hang beside the counter."*',
        '*turn 2  not found: "lock the front wheel to any lamp post"*',
        '*turn 2  in no context: "45"*',
        '*contradicted, turn 2: "Fasten the belts of your two children, *',
    )
