"""The `ragmetrics calibrate` command."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.evaluation.calibration.result import read_rates
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


def labelled(folder: Path, name: str = "labels.jsonl", *, times: int = 3, **more: Any) -> Path:
    """Write answers with labels, from several sources, and return the file."""
    rows = [
        {"id": f"q{turn}-{index}", "question": "How?", "response": text, "contexts": [MANUAL], "label": label}
        | {"group": f"manual {turn}"}
        | more
        for turn in range(times)
        for index, (text, label) in enumerate(ANSWERS)
    ]
    file = folder / name
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return file


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ragmetrics: Call) -> Call:
    """Call the command in a fresh folder with labelled answers; return its status and what it wrote."""
    monkeypatch.chdir(tmp_path)
    labelled(tmp_path)
    return partial(ragmetrics, "calibrate")


LOCAL = ("labels.jsonl", "--metric", "faithfulness", "--judge", "local")


def test_it_says_how_far_a_judge_agrees(call: Call, tmp_path: Path) -> None:
    """Figures, suggestion and disagreements are printed, the local judge as the heuristic that it is."""
    status, out, err = call(*LOCAL, "--threshold", "0.9")
    assert (status, err) == (0, "")
    assert out.startswith(
        "faithfulness by local (heuristic) against 24 human labels in 3 groups: 12 good, 12 bad\n"
        "an answer passes at a score >= 0.9, as given:\n"
    )
    for figure in ("kappa", "balanced accuracy", "TPR", "TNR", "F1 of the bad", "AUROC", "suggested threshold"):
        assert f"{figure} " in out or f"{figure}:" in out
    # The local judge computes, and its answers are not kept.
    assert not (tmp_path / ".ragmetrics" / "cache.db").exists()
    out = call(*LOCAL, "--seed", "7", "--limit", "16")[1]
    assert "against 16 human labels in 2 groups" in out
    assert "cross-validated, each threshold chosen on 1 of 2 parts of the groups" in out


def test_a_seed_chooses_folds(call: Call) -> None:
    """The same one twice says the same."""
    rows = (
        {"response": "moss " * (n % 37) + "sand " * (36 - n % 37), "contexts": ["moss"], "label": n * n % 11 % 2}
        for n in range(60)
    )
    Path("noisy.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    command = ("noisy.jsonl", "--metric", "lexical_grounding", "--seed")
    assert call(*command, "1") == call(*command, "1") != call(*command, "2")


def test_unscored_rows_do_not_pass_a_floor(call: Call) -> None:
    """Kappa below --min-kappa is status 1; so is a row without a score, unless --skip-unscored leaves it out."""
    assert call(*LOCAL, "--threshold=0.05", "--min-kappa=-1")[1].splitlines()[-1].startswith("passed: kappa")
    status, out, _ = call(*LOCAL, "--threshold=0.05", "--min-kappa=1")
    assert status == 1
    assert re.match("FAILED: kappa .* the lower end of its interval", out.splitlines()[-1])
    estimate = call(*LOCAL, "--threshold=0.05", "--min-kappa=1", "--by=estimate")[1].splitlines()[-1]
    assert re.fullmatch(r"FAILED: kappa \S+ < 1\.00 \(95 % interval .*\)", estimate)
    with Path("labels.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"id": "empty", "response": "...", "contexts": [MANUAL], "label": 1}) + "\n")
    status, out, _ = call(*LOCAL, "--min-kappa=-1")
    assert status == 1
    assert "unscored, in no figure: 1 row\n    empty: faithfulness: " in out
    assert "FAILED: 1 of 25 labelled rows unscored" in out
    assert call(*LOCAL, "--min-kappa=-1", "--skip-unscored")[0] == 0
    assert call(*LOCAL)[0] == 0
    numbers = [{"response": f"{n} carp.", "contexts": ["9 carp."], "label": int(n == "9")} for n in ("9", "8", "No")]
    Path("carp.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in numbers), encoding="utf-8")
    command = ("carp.jsonl", "--metric", "numbers_aligned", "--threshold=0.5")
    assert "  2 of 3 had something to check" in call(*command)[1]
    assert "against 3 human labels" in call(*command, "--vacuous=count")[1]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("labels.jsonl",), "--metric"),
        (("labels.jsonl", "--metric", "faithfullness"), "did you mean faithfulness"),
        ((*LOCAL, "--embedder", "gpt"), "'--embedder': 'gpt'"),
        ((*LOCAL, "--threshold", "nan"), "'--threshold': 'nan' is not a finite number"),
        ((*LOCAL, "--min-kappa", "1.5"), "'--min-kappa': 1.5 is not in the range -1<=x<=1"),
        ((*LOCAL, "--limit", "0"), "'--limit': 0 is not in the range x>=1"),
        ((*LOCAL, "--html", "page.txt"), "'--html': 'page.txt' is not a *.html file"),
        ((*LOCAL, "--json", "."), "'--json': '.' is a folder: name a file"),
        ((*LOCAL, "--json", "./labels.jsonl"), "--json would replace the labelled answers: name another file"),
        ((*LOCAL, "--aim", "f1"), "'--aim': 'f1' is not one of 'balanced-accuracy', 'kappa'"),
        ((*LOCAL, "--label-scale", "5", "1"), "from a lower to a higher number, not from 5 to 1"),
        ((*LOCAL, "--good-from", "7"), "good from a label above 0 and up to 1 on, not 7"),
    ],
)
def test_wrong_arguments_are_status_2(call: Call, args: tuple[str, ...], said: str) -> None:
    """What is wrong is said before anything is scored."""
    status, out, err = call(*args)
    assert (status, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "labels.jsonl"),
        ('{"response": "Yes.", "contexts": [], "label": 7}\n', "labels.jsonl:1: field 'label': a label is a number"),
        ('{"response": "Open it.", "contexts": ["Open it."], "label": 1}\n', "people found all 1 answers good"),
    ],
)
def test_a_broken_file_is_status_1(call: Call, text: str | None, said: str) -> None:
    """File, line and field are named, and no figure is printed."""
    file = Path("labels.jsonl")
    file.unlink()
    if text is not None:
        file.write_text(text, encoding="utf-8")
    status, out, err = call(*LOCAL, "--threshold", "0.5")
    assert (status, out) == (1, "")
    assert err.startswith("ragmetrics: ")
    assert said in err


def test_files_are_written_whole(call: Call, tmp_path: Path) -> None:
    """A page and a file of figures, in folders that are made."""
    status, out, _ = call(*LOCAL, "--threshold=0.5", "--html", "deep/page.html", "--json", "deep/figures.json")
    assert status == 0
    assert out.endswith("deep/figures.json: written\ndeep/page.html: written\n")
    assert (tmp_path / "deep/page.html").read_text("utf-8").startswith("<!doctype html>")
    assert read_rates(tmp_path / "deep/figures.json").judge == "local (heuristic)"
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["figures.json", "page.html"]


def test_labels_may_be_grades_in_a_table(call: Call, tmp_path: Path) -> None:
    """CSV with grades from 1 to 5 in a column of any name, grouped by another."""
    lines = ["response,contexts,grade,source"]
    lines += [f'"{text}","{MANUAL}",{5 if label else 2},s{index % 4}' for index, (text, label) in enumerate(ANSWERS)]
    (tmp_path / "grades.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    more = ("--label-field=grade", "--label-scale", "1", "5", "--good-from", "4", "--group-field", "source")
    status, out, err = call("grades.csv", *LOCAL[1:], *more, "--threshold=0.5")
    assert (status, err) == (0, "")
    assert "against 8 human labels in 4 groups: 4 good, 4 bad" in out


def test_the_environment_is_that_of_the_plugin(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """RAGMETRICS_JUDGE names the judge unless --judge does; a mode that it lacks is an error."""
    monkeypatch.setenv("RAGMETRICS_JUDGE", "local")
    assert "by local (heuristic)" in call(*LOCAL[:3], "--threshold=0.5")[1]
    monkeypatch.setenv("RAGMETRICS_CACHE", "replay")
    status, _, err = call(*LOCAL[:3])
    assert (status, "RAGMETRICS_CACHE=replay is for runs of pytest" in err) == (1, True)
    monkeypatch.delenv("RAGMETRICS_CACHE")
    monkeypatch.setenv("RAGMETRICS_CONCURRENCY", "none")
    status, _, err = call(*LOCAL[:3])
    assert (status, "'--concurrency': 'none' is not a valid integer range" in err) == (2, True)
    monkeypatch.setenv("RAGMETRICS_JUDGE", "gpt")
    assert call(*LOCAL[:3])[0] == 2
    monkeypatch.delenv("RAGMETRICS_JUDGE")
    monkeypatch.delenv("RAGMETRICS_CONCURRENCY")
    status, out, err = call(*LOCAL[:3])
    assert (status, out, "needs a judge" in err) == (1, "", True)


JUDGE = """
import json
import re


def make():
    return Counting()


def interrupted():
    raise KeyboardInterrupt


class Counting:
    name = "counting"

    async def complete(self, messages, schema):
        with open("asked.txt", "a") as file:
            file.write("asked\\n")
        text = str(messages)
        wrong = "eleven years" in text or "blue enamel" in text
        return json.dumps({"verdict": "no" if wrong else "yes", "reason": "so it seems"})
"""


def test_each_answer_is_paid_once(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge of one's own is found in the folder; its answers are kept where the environment says."""
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


def test_an_interrupt_is_one_line(call: Call, tmp_path: Path) -> None:
    """Ctrl-C ends the command without a traceback."""
    (tmp_path / "calibrated_house.py").write_text(JUDGE, encoding="utf-8")
    found = call("labels.jsonl", "--metric=relevance", "--judge=calibrated_house:interrupted")
    assert found == (130, "", "\nragmetrics: interrupted\n")
