"""The `ragmetrics calibrate` command."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.evaluation.calibration.result import read_rates
from tests.commands.conftest import told
from tests.fake_openai import FakeOpenAI
from tests.unit.conftest import Call

MANUAL = "Open the valve slowly. The pump needs two minutes to fill. Never run the pump dry."
ANSWERS = (
    ("Open the valve slowly.", 1),
    ("The pump needs two minutes to fill.", 1),
    ("Never run the pump dry.", 1),
    ("Open the valve slowly, and never run the pump dry.", 1),
    ("The warranty covers broken hoses for eleven years.", 0),
    ("Paint the casing with blue enamel every spring.", 0),
    ("Call the dealer in Rotterdam about spare filters.", 0),
    ("The pump needs two minutes to fill its second golden tank.", 0),
)
ROWS = [
    {"id": f"q{turn}-{index}", "question": "How?", "response": text, "contexts": [MANUAL], "label": label}
    | {"group": f"manual {turn}"}
    for turn in range(3)
    for index, (text, label) in enumerate(ANSWERS)
]
LOCAL = ("labels.jsonl", "--metric", "faithfulness", "--judge", "local")


def write(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ragmetrics: Call) -> Call:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "labels.jsonl", ROWS)
    return partial(ragmetrics, "calibrate")


def test_it_says_how_far_a_judge_agrees(call: Call, tmp_path: Path) -> None:
    said = "faithfulness by local (heuristic) against 24 human labels in 3 groups: 12 good, 12 bad\nan answer passes"
    figures = ("kappa", "balanced accuracy", "TPR", "TNR", "F1 of the bad", "AUROC", "suggested threshold")
    assert told(call(*LOCAL, "--threshold", "0.9"), 0, *figures).startswith(f"{said} at a score >= 0.9, as given:\n")
    # The local judge computes, and its answers are not kept.
    assert not (tmp_path / ".ragmetrics" / "cache.db").exists()
    out = call(*LOCAL, "--seed", "7", "--limit", "16")[1]
    assert "against 16 human labels in 2 groups" in out
    assert "cross-validated, each threshold chosen on 1 of 2 parts of the groups" in out


def test_stored_replies_have_an_age_and_fresh_ones_are_asked(call: Call, named_server: FakeOpenAI) -> None:
    asked = ("labels.jsonl", "--metric", "relevance", "--judge", "openai:m", "--threshold", "0.5")
    for options, requests in (((), 24), ((), 24), (("--fresh",), 48)):
        told(call(*asked, *options), 0, "  its replies are from today\n")
        assert len({str(request.body) for request in named_server.requests}) == len(ANSWERS)
        assert len(named_server.requests) == requests * len(ANSWERS) // 24


def test_a_seed_chooses_folds(call: Call) -> None:
    texts = ["moss " * (number % 37) + "sand " * (36 - number % 37) for number in range(60)]
    rows = [{"response": text, "contexts": ["moss"], "label": n * n % 11 % 2} for n, text in enumerate(texts)]
    write(Path("noisy.jsonl"), rows)
    command = ("noisy.jsonl", "--metric", "lexical_grounding", "--seed")
    assert call(*command, "1") == call(*command, "1") != call(*command, "2")


def test_unscored_rows_do_not_pass_a_floor(call: Call) -> None:
    """Kappa below --min-kappa is status 1; so is a row without a score, unless --skip-unscored leaves it out."""
    assert call(*LOCAL, "--threshold=0.05", "--min-kappa=-1")[1].splitlines()[-1].startswith("passed: kappa")
    out = told(call(*LOCAL, "--threshold=0.05", "--min-kappa=1"), 1)
    assert re.match("FAILED: kappa .* the lower end of its interval", out.splitlines()[-1])
    estimate = call(*LOCAL, "--threshold=0.05", "--min-kappa=1", "--by=estimate")[1].splitlines()[-1]
    assert re.fullmatch(r"FAILED: kappa \S+ < 1\.00 \(95 % interval .*\)", estimate)
    write(Path("labels.jsonl"), [*ROWS, {"id": "empty", "response": "...", "contexts": [MANUAL], "label": 1}])
    unscored = "unscored, in no figure: 1 row\n    empty: faithfulness: "
    told(call(*LOCAL, "--min-kappa=-1"), 1, unscored, "FAILED: 1 of 25 labelled rows unscored")
    assert call(*LOCAL, "--min-kappa=-1", "--skip-unscored")[0] == 0
    assert call(*LOCAL)[0] == 0
    numbers = [{"response": f"{n} carp.", "contexts": ["9 carp."], "label": int(n == "9")} for n in ("9", "8", "No")]
    write(Path("carp.jsonl"), numbers)
    command = ("carp.jsonl", "--metric", "numbers_aligned", "--threshold=0.5")
    assert "  2 of 3 had something to check" in call(*command)[1]
    assert "against 3 human labels" in call(*command, "--vacuous=count")[1]


def test_files_are_written_whole(call: Call, tmp_path: Path) -> None:
    found = call(*LOCAL, "--threshold=0.5", "--html", "deep/page.html", "--json", "deep/figures.json")
    told(found, 0, "deep/figures.json: written\ndeep/page.html: written\n")
    assert (tmp_path / "deep/page.html").read_text("utf-8").startswith("<!doctype html>")
    assert read_rates(tmp_path / "deep/figures.json").judge == "local (heuristic)"
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["figures.json", "page.html"]


def test_labels_may_be_grades_in_a_table(call: Call, tmp_path: Path) -> None:
    lines = ["response,contexts,grade,source"]
    lines += [f'"{text}","{MANUAL}",{5 if label else 2},s{index % 4}' for index, (text, label) in enumerate(ANSWERS)]
    (tmp_path / "grades.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    more = ("--label-field=grade", "--label-scale", "1", "5", "--good-from", "4", "--group-field", "source")
    found = call("grades.csv", *LOCAL[1:], *more, "--threshold=0.5")
    told(found, 0, "against 8 human labels in 4 groups: 4 good, 4 bad")


JUDGE = """
def interrupted():
    raise KeyboardInterrupt
class Counting:
    name = "counting"
    async def complete(self, messages, schema):
        with open("asked.txt", "a") as file:
            file.write("asked\\n")
        wrong = "eleven years" in str(messages) or "blue enamel" in str(messages)
        return '{"reason": "So it seems.", "verdict": "%s"}' % ("no" if wrong else "yes")
make = Counting
"""


def test_each_answer_is_paid_once(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "calibrated_house.py").write_text(JUDGE, encoding="utf-8")
    monkeypatch.setenv("RAGMETRICS_CACHE_DIR", str(tmp_path / "cache"))
    command = ("labels.jsonl", "--metric=coherence", "--judge=calibrated_house:make", "--threshold=0.5")
    first = call(*command)
    assert first == call(*command)
    assert (first[0], first[2]) == (0, "")
    assert "by calibrated_house:make:counting against 24 human labels" in first[1]
    asked = tmp_path / "asked.txt"
    assert len(asked.read_text("utf-8").splitlines()) == len(ANSWERS)
    monkeypatch.setenv("RAGMETRICS_CACHE", "off")
    assert call(*command) == first
    assert len(asked.read_text("utf-8").splitlines()) > len(ANSWERS)
    # Another machine of the team has the shared cache alone.
    asked.unlink()
    monkeypatch.delenv("RAGMETRICS_CACHE")
    (tmp_path / "shared").mkdir()
    monkeypatch.setenv("RAGMETRICS_CACHE_URL", (tmp_path / "shared").as_uri())
    for machine in ("one", "two"):
        monkeypatch.setenv("RAGMETRICS_CACHE_DIR", str(tmp_path / machine))
        assert call(*command)[:2] == first[:2]
        assert len(asked.read_text("utf-8").splitlines()) == len(ANSWERS)


def test_an_interrupt_is_one_line(call: Call, tmp_path: Path) -> None:
    (tmp_path / "calibrated_house.py").write_text(JUDGE, encoding="utf-8")
    found = call("labels.jsonl", "--metric=relevance", "--judge=calibrated_house:interrupted")
    assert found == (130, "", "\nragmetrics: interrupted\n")


def test_a_command_takes_the_settings_of_the_suite(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named_server: FakeOpenAI, ragmetrics: Call
) -> None:
    """An option and a variable count before the file, whose paths begin at its folder; conftest.py is not run."""
    (tmp_path / "conftest.py").write_text("raise SystemExit('it runs')", "utf-8")
    ini = tmp_path / "pytest.ini"
    shared = (tmp_path / "shared").as_uri()
    (tmp_path / "shared").mkdir()
    ini.write_text(f"[pytest]\nrag_judge = openai:m\nrag_cache_dir = kept\nrag_cache_url = {shared}\n", "utf-8")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    asked = ("../labels.jsonl", "--metric=relevance", "--threshold=0.5")
    names = ("rag_judge", "rag_cache_dir", "rag_cache_url")
    said = [f"ragmetrics: {name} is from {ini}\n" for name in names]
    told(call(*asked), 0, "relevance by openai:m", *said)
    assert (tmp_path / "kept" / "cache.db").exists()
    assert named_server.calls == len(ANSWERS)
    told(call(*asked, "--cache-dir=other"), 0, "relevance by openai:m")
    assert named_server.calls == len(ANSWERS)
    local = ("../labels.jsonl", "--metric=faithfulness", "--threshold=0.5")
    assert said[0] not in told(call(*local, "--judge=local"), 0, "faithfulness by local (heuristic)")
    ini.write_text("[pytest]\nrag_judge = gpt\n", "utf-8")
    told(call(*local), 1, f"rag_judge in {ini}: 'gpt' is not one of auto", "or set RAGMETRICS_JUDGE")
    # What asks no judge does not read it.
    told(ragmetrics("report", "diff", "a.json", "b.json"), 1, "ragmetrics: a.json: ")
    told(ragmetrics("generate", "../labels.jsonl", "-o", "a.jsonl", "--check"), 2, "a.jsonl is no file")
    monkeypatch.setenv("RAGMETRICS_JUDGE", "local")
    assert told(call(*local), 0, "faithfulness by local (heuristic)").count("is from") == 0
    ini.write_text("[pytest]\naddopts = -p ragmetrics --rag-judge=local --no-such\n", "utf-8")
    monkeypatch.delenv("RAGMETRICS_JUDGE")
    told(call(*local), 0, "faithfulness by local (heuristic)", f"ragmetrics: --rag-judge is from {ini}\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--rag-rpm=x")
    told(call(*local), 1, "--rag-rpm in PYTEST_ADDOPTS: 'x' is not a whole number", "or set RAGMETRICS_RPM")
