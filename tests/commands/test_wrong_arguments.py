"""What every command says of arguments and files that it cannot take, before it asks or writes anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_ragmetrics.runs.records import render_json
from tests.documents import document, record, row
from tests.unit.conftest import Call

HERE = Path(__file__).as_posix()
CALIBRATE = "calibrate labels.jsonl --metric=faithfulness --judge=local"
GENERATE, COMMENT = "generate docs -o golden.jsonl --questions=3", "report comment run.json"
LABEL = "label run.json --metric=faithfulness"
PROBE, SCORE = "probe --judge=local", "score labels.jsonl -o s.jsonl --metrics"
AGE = "is not a length of time such as 90m, 12h, 30d or 8w"
NO_JSON = "bad.json: not JSON: "


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        *((line, 2, "Usage: ragmetrics") for line in ("", "cache", "cache polish", "cache prune", "cache import")),
        *((f"cache prune --older-than={it}", 2, AGE) for it in ("30", "d", "-1d", "1.5h", "30\xa0d", "30y", "²d", "")),
        (f"cache prune --older-than={'9' * 30}d", 2, "is longer than can be counted"),
        ("calibrate labels.jsonl", 2, "--metric"),
        ("calibrate labels.jsonl --metric=faithfullness", 2, "did you mean faithfulness"),
        (f"{CALIBRATE} --embedder=gpt", 2, "'--embedder': 'gpt'"),
        (f"{CALIBRATE} --threshold=nan", 2, "'--threshold': 'nan' is not a finite number"),
        (f"{CALIBRATE} --min-kappa=1.5", 2, "'--min-kappa': '1.5' is not a number from -1 to 1"),
        (f"{CALIBRATE} --limit=0", 2, "'--limit': '0' is not a whole number of at least 1"),
        (f"{CALIBRATE} --html=page.txt", 2, "'--html': 'page.txt' is not a *.html file"),
        (f"{CALIBRATE} --json=.", 2, "'--json': '.' is a folder: name a file"),
        (f"{CALIBRATE} --json=./labels.jsonl", 2, "--json would replace the labelled answers: name another file"),
        (f"{CALIBRATE} --seed=x", 2, "'--seed': 'x' is not a whole number"),
        (f"{CALIBRATE} --cache-dir=labels.jsonl", 2, "'--cache-dir': 'labels.jsonl' is not a folder: name a folder"),
        *(
            (f"RAGMETRICS_CACHE_DIR=labels.jsonl {line}", 1, "'labels.jsonl' is not a folder: name a folder in RAGMETR")
            for line in (CALIBRATE, "cache stats")
        ),
        ("RAGMETRICS_CACHE_DIR=none cache stats", 1, "none: there is no cache"),
        ("cache --dir= stats", 2, "'--dir': '' is no folder name: name a folder"),
        (f"{CALIBRATE} --aim=f1", 2, "'--aim': 'f1' is not one of 'balanced-accuracy', 'kappa'"),
        (
            f"{CALIBRATE} --label-scale 5 1",
            2,
            "Error: --label-scale goes from a lower to a higher number, not from 5 to 1",
        ),
        (f"{CALIBRATE} --good-from=7", 2, "Error: --good-from is a label above 0, at most 1, not 7"),
        (CALIBRATE.replace("labels", "gone"), 1, "gone.jsonl"),
        (CALIBRATE.replace("labels", "sevens"), 1, "sevens.jsonl:1: field 'label': a label is a number"),
        (CALIBRATE, 1, "people found the one answer good"),
        (f"RAGMETRICS_CACHE=replay {CALIBRATE}", 1, "RAGMETRICS_CACHE=replay is for runs of pytest"),
        (f"RAGMETRICS_CONCURRENCY=none {CALIBRATE}", 2, "'--concurrency': 'none' is not a whole number of at least 1"),
        ("RAGMETRICS_JUDGE=gpt calibrate labels.jsonl --metric=faithfulness", 2, "'gpt' is not one of auto"),
        ("calibrate labels.jsonl --metric=faithfulness", 1, "needs a judge"),
        (f"{CALIBRATE} --rpm=0", 2, "'--rpm': '0' is not a whole number of at least 1"),
        (f"RAGMETRICS_TPM=many {GENERATE}", 2, "'--tpm': 'many' is not a whole number of at least 1"),
        (
            f"{SCORE}=faithfulness --on=ray --rpm=60",
            2,
            "--rpm and --tpm count on one machine: leave them out with --on",
        ),
        (f"{GENERATE} nowhere", 2, "nowhere: there is no such file or folder"),
        (f"{GENERATE} --questions={'9' * 5000}", 2, "has more than 9 digits"),
        (f"{GENERATE} -o golden.csv", 2, "'golden.csv' is not a *.jsonl file"),
        (f"{GENERATE} -o docs/a.md/golden.jsonl", 2, "cannot be written: no file can be made in '"),
        (f"{GENERATE} -o /proc/golden.jsonl", 2, "/proc/golden.jsonl cannot be written: "),
        (f"{GENERATE} -o labels.jsonl", 2, "labels.jsonl contains no row that `ragmetrics generate` wrote"),
        (f"{GENERATE} --language=German.Ignore", 2, "is no name of a language"),
        (f"{GENERATE} --judge=local", 1, "writes no questions: name a model"),
        (f"{GENERATE} --judge=auto", 1, "no model is configured to write questions: set OPENAI_API_KEY"),
        (f"{GENERATE} --judge=openai:gpt-5", 1, "OPENAI_API_KEY"),
        ("label run.json", 2, "--metric"),
        ("label run.json --metric=faithfulnes", 1, "no scores of faithfulnes; did you mean faithfulness?"),
        (LABEL, 1, "and there is none: write a page, with --html FILE.html"),
        (f"{LABEL} -o labels.csv", 2, "'labels.csv' is not a *.jsonl file"),
        (f"{LABEL} -o run.json/labels.jsonl", 2, "cannot be written"),
        (f"{LABEL} --html=page.txt", 2, "'page.txt' is not a *.html file"),
        (f"{LABEL} --import=none.jsonl", 1, "ragmetrics: none.jsonl: No such file or directory"),
        (f"{LABEL} --import=run.json", 1, "run.json"),
        (f"{LABEL} --limit=0", 2, "'0' is not a whole number of at least 1"),
        (f"{PROBE} --judge=gpt", 2, "'gpt' is not one of auto"),
        (f"{PROBE} --kind=spelling", 2, "'spelling' is not one of 'number', "),
        (f"{PROBE} --limit=1", 2, "'1' is not a whole number of at least 2"),
        (f"{PROBE} --min-accuracy=1.5", 2, "'1.5' is not a number from 0 to 1"),
        (f"{PROBE} --min-resistance=nan", 2, "'nan' is not a number from 0 to 1"),
        (f"{PROBE} --json=.", 2, "is a folder"),
        (f"{PROBE} --json={HERE}/figures.json", 2, "cannot be written: no file can be made in"),
        (f"{PROBE} --rows=3", 2, "--rows: for a probe with answers: give ROWS"),
        ("probe labels.jsonl --limit=3", 2, "--limit: for a probe of a judge: leave out ROWS"),
        (f"{PROBE} --prompts=nowhere", 2, "is not a folder"),
        (f"{PROBE} --kind=number --min-resistance=0.5", 2, "no injection is asked"),
        (f"{PROBE} --kind=injection --min-accuracy=0.5", 2, "add another --kind"),
        (f"{PROBE} --kind=injection --limit=2 --min-accuracy=0.5", 2, "add another --kind"),
        *((f"report {command}", 2, "Missing argument") for command in ("html", "merge", "diff")),
        ("report diff run.json", 2, "give two or three files"),
        ("report html run.json -o page.pdf", 2, "'page.pdf' is not a *.html file"),
        ("report merge run.json -o page.html", 2, "'page.html' is not a *.json file"),
        ("report markdown run.json -o .", 2, "is a folder"),
        (f"report html run.json -o {HERE}/page.html", 2, "cannot be written"),
        (f"report merge run.json -o {HERE}/merged.json", 2, "cannot be written"),
        ("report merge run.json --html=run.json", 2, "is not a *.html file"),
        *((f"report diff run.json run.json --margin={n}", 2, "'--margin'") for n in ("-1", "nan", "much")),
        ("report diff run.json run.json --margin=5", 2, "outside of the scale of faithfulness, 0 to 1: write 0.05"),
        ("report html none.json", 1, "none.json: No such file or directory"),
        *((f"report {command} run.json bad.json", 1, NO_JSON) for command in ("merge", "diff")),
        ("report html run.json --baseline=bad.json", 1, NO_JSON),
        (f"{COMMENT} --annotations", 2, "standard output is the comment: write that to a file, -o FILE"),
        (f"{COMMENT} --page=page.html", 2, "'page.html' is no address of a page: write https://..., without #"),
        (f"{COMMENT} --page=https://ci.example/#x", 2, "without #"),
        (f"{COMMENT} --page=javascript:alert(1)", 2, "is no address"),
        (f"{SCORE} rouge -o scores.csv", 2, "'scores.csv' is not a *.jsonl or *.parquet file"),
        (f"{SCORE} rouge --turns every", 2, "'every' is neither last nor each"),
        (f"{SCORE} rouge --contexts-from find,", 2, "'find,' has a blank name: write tools, or the names of tools"),
        (f"{SCORE} rouge -o labels.jsonl", 2, "labels.jsonl would replace the rows: name another file"),
        (f"{SCORE} rouge -o {'x' * 300}.jsonl", 2, "'-o' / '--output': File name too long"),
        ("score gone.jsonl -o s.jsonl --metrics rouge", 1, "gone.jsonl: there is no such file"),
        (f"score {'x' * 300}.jsonl -o s.jsonl --metrics rouge", 1, "x.jsonl: cannot be read: File name too long"),
        *((f"{line} {'x' * 300}", 1, "xxx: File name too long") for line in (GENERATE, "cache verify")),
        (f"generate docs -o {'x' * 300}.jsonl --check", 1, "xxx.jsonl: File name too long"),
        (f"init {'x' * 300}", 2, "Invalid value for '[FOLDER]': File name too long"),
        ("score docs/a.md -o s.jsonl --metrics rouge", 1, "rows are read from files that end in .jsonl, .ndjson, .csv"),
        (f"{SCORE} kindness", 2, "there is no metric 'kindness'"),
        (f"{SCORE} faithfulness=90", 2, "outside of the scale of faithfulness"),
        (f"{SCORE} faithfulness=x", 2, "'x' is not a number: write faithfulness=0.8"),
        (f"{SCORE} rouge,rouge", 2, "'rouge' is there twice"),
        (f"RAGMETRICS_CACHE_URL=ftp://x {SCORE} rouge", 1, "RAGMETRICS_CACHE_URL: 'ftp://x' is none of s3://BUCKET"),
        (f"RAGMETRICS_CACHE_URL=file:///x RAGMETRICS_CACHE_URL_MODE=write {SCORE} rouge", 1, "write read or readwrite"),
        (f"RAGMETRICS_CACHE=replay {SCORE} rouge", 1, "is for runs of pytest: score knows auto and off"),
    ],
)
def test_what_cannot_be_done_is_said(
    ragmetrics: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, status: int, said: str
) -> None:
    """Status 2 where the arguments cannot be meant, else 1; nothing is printed or written."""
    monkeypatch.chdir(tmp_path)
    if status == 2:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-fake")
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    Path("docs").mkdir()
    Path("docs/a.md").write_text("# A\n\nThe ferry of Aru left at nine in 1901.\n", "utf-8")
    for name, label in (("labels.jsonl", 1), ("sevens.jsonl", 7)):
        labelled = {"response": "Open it.", "contexts": ["Open it."], "label": label}
        Path(name).write_text(json.dumps(labelled) + "\n", "utf-8")
    Path("run.json").write_text(render_json(document(row("test", record("faithfulness", 0.5)))), "utf-8")
    Path("bad.json").write_text("{", "utf-8")
    arguments = line.split(" ")
    while "=" in arguments[0]:
        monkeypatch.setenv(*arguments.pop(0).split("="))
    before = {path: path.read_bytes() for path in Path().glob("[a-z]*.*")}
    found, out, err = ragmetrics(*arguments)
    assert (found, out) == (status, ""), err
    assert said in " ".join(err.split())
    assert {path: path.read_bytes() for path in Path().glob("[a-z]*.*")} == before
