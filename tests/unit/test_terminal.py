"""What the commands print in a terminal, and for programs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ragmetrics.cache.entry import key_of, new_entry
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.cli import main
from pytest_ragmetrics.cli.metrics import metric_table
from pytest_ragmetrics.judges.transports.values import Reply
from pytest_ragmetrics.metrics.registry import built_in_metrics
from pytest_ragmetrics.report.history import write_history
from pytest_ragmetrics.runs.records import render_json
from pytest_ragmetrics.runs.wording.figures import text_table
from tests.histories import month
from tests.showcase import baseline, showcase

Call = Callable[..., tuple[int, list[str]]]
ROWS = [("name", "n", "said"), ("faithfulness", "12,345,678.9", "supported by the contexts"), ("x", "-", "y")]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (None, ["faithfulness  12,345,678.9  supported by the contexts", "x                        -  y"]),
        (40, ["faithfulness  12,345,678.9  supported b…", "x                        -  y"]),
        (34, ["faithful…  12,345,678.9  supporte…", "x                     -  y"]),
        # What is a number is not cut, and a text not beyond recognition.
        (10, ["faithfu…  12,345,678.9  support…", "x                    -  y"]),
    ],
)
def test_the_widest_texts_of_a_table_are_cut(width: int | None, lines: list[str]) -> None:
    found = text_table(ROWS, width=width, left=1)
    assert [re.sub(r" +(?=y$)", "  ", line) for line in found[1:]] == lines
    assert len(set(map(len, found))) == 1


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call a command, in a terminal of so many columns or with its output in a pipe; return its status and lines."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")  # as in the tests of the doctor

    def run(*arguments: str, columns: int | None = None) -> tuple[int, list[str]]:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: columns is not None)
        monkeypatch.setenv("COLUMNS", str(columns))
        status = main(arguments)
        return status, capsys.readouterr().out.splitlines()

    return run


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name, run in (("old.json", baseline()), ("new.json", showcase())):
        (folder / name).write_text(render_json(run), "utf-8")
    for kept in month().runs:
        write_history(folder / "history", kept)
    with Store(folder / "cache") as store:
        request = {"task": "list_claims", "kind": "openai", "model": "m" * 70, "number": 1}
        store.put_many([new_entry(key_of(request), request, Reply(text="{}"), salt="", redact=None)])
    contexts = ["Open the valve slowly. The pump needs two minutes to fill."]
    answers = ["The warranty covers broken hoses.", "Open the valve slowly."] * 8
    rows = [{"id": f"a row with a name of some words {n}", "response": text} for n, text in enumerate(answers)]
    labelled = [{**row, "contexts": contexts, "label": n % 2} for n, row in enumerate(rows)]
    (folder / "labels.jsonl").write_text("\n".join(map(json.dumps, labelled)), "utf-8")
    return folder


COMMANDS = ("metrics", "doctor --judge=local", "report diff old.json new.json", "report history history")
OTHERS = ("cache --dir=cache stats", "calibrate labels.jsonl --metric=faithfulness --judge=local")


@pytest.mark.parametrize("command", [*COMMANDS, *OTHERS])
def test_lines_fit_the_terminal(project: Path, call: Call, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(project)
    status, whole = call(*command.split())
    assert max(map(len, whole)) > 72
    again, fitted = call(*command.split(), columns=72)
    # A path is no words, and is not parted.
    assert [line for line in fitted if len(line) > 72 and max(map(len, line.split())) < 50] == []
    assert again == status
    if "metrics" != command and "history" not in command:  # of their tables texts are cut, which have numbers
        numbers = [re.findall(r"(?<![\w/.])\d[\d.,]*(?![\w/])", "\n".join(lines)) for lines in (whole, fitted)]
        assert numbers[0] == numbers[1]


def test_a_check_of_doctor_goes_on_below_its_text(project: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    lines = call("doctor", "--judge=local", columns=60)[1]
    assert {line[:18].strip() == "" for line in lines[:-1]} == {True, False}
    assert {line[:2] for line in lines[:-1]} == {"ok", "  "}


def test_metrics_for_programs(call: Call) -> None:
    assert call("metrics")[1] == metric_table()
    assert "`" not in "".join(metric_table())
    status, lines = call("metrics", "--json", columns=40)
    found = json.loads("\n".join(lines))
    assert (status, found["version"], set(found)) == (0, 1, {"version", "metrics"})
    assert [each["name"] for each in found["metrics"]] == [kind.name for kind in built_in_metrics()]
    by_name = {each.pop("name"): each for each in found["metrics"]}
    hits = by_name["hit_rate"]
    assert hits.pop("summary").startswith("1.0 if any relevant id")
    assert hits.pop("blind_spots").startswith("Further relevant ids")
    assert hits.pop("use") == "Use it when one right passage is enough to answer."
    ids = ["retrieved_context_ids", "reference_context_ids"]
    plain = {"class": "HitRate", "takes": [], "asks": [], "rounds": 0, "scale": [0.0, 1.0], "better": "higher"}
    names = {"aliases": ["hit_rate@k", "hit_at_k", "hit@k"], "helper": "assert_retrieved"}
    assert hits == {**plain, **names, "needs": ids, "arguments": ["retrieved_ids", "reference_ids"]}
    assert by_name["answer_relevancy"]["asks"] == ["judge", "embedder"]
    assert by_name["noise_sensitivity"]["better"] == "lower"
    assert "reference_tool_calls" in by_name["tool_call_f1"]["takes"]


def test_doctor_for_programs(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-mine")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:pass@127.0.0.1:9/v1")
    for judge, wanted in (("openai:sk-secret-of-mine", 1), ("local", 0)):
        status, said = call("doctor", f"--judge={judge}")
        again, lines = call("doctor", f"--judge={judge}", "--json", columns=40)
        found = json.loads("\n".join(lines))
        assert (status, again, set(found)) == (wanted, wanted, {"version", "ok", "checks"})
        assert (found["version"], found["ok"]) == (1, not wanted)
        assert all(set(check) == {"ok", "topic", "text", "to_do"} for check in found["checks"])
        assert all(check["ok"] is not bool(check["to_do"]) for check in found["checks"])
        assert [check["topic"] for check in found["checks"] if not check["ok"]] == ["judge"] * wanted
        texts = [text for check in found["checks"] for text in (check["text"], check["to_do"]) if text]
        assert [text for text in texts if not any(line.endswith(text) for line in said)] == []
        assert not re.search("secret|pass@", "\n".join(lines))
