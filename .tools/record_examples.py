"""Records the cassette and the baseline of the examples anew.

    python .tools/record_examples.py                    with a stand-in for the provider, at no cost
    python .tools/record_examples.py --real             what a recording by the model itself would cost
    python .tools/record_examples.py --real --max-cost=2.50 --answers=FOLDER

The first is to be run whenever a prompt, a text of an example or the form of records has changed; their tests say when
that is. The others take a key of the provider in the environment, and are for people: nothing in CI runs them. A
recording that was stopped goes on where it was, for its replies are stored in ``build/recording``. With a folder of
labelled answers the judge is compared with the labels as well. What it writes is to be committed: the cassette, and the
part of the README of the example that says where its replies come from and how well the judge agreed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.cache.entry import EMBEDDING, CacheEntry
from pytest_ragmetrics.core.files import write_atomically
from pytest_ragmetrics.judges.providers.addresses import shown_address
from pytest_ragmetrics.judges.providers.vendor import VENDORS
from tests.fake_answers import answer_sensibly
from tests.fake_openai import FakeOpenAI

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "conftest_examples"
WORK = ROOT / "build" / "recording"
_OFFLINE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
_PYTEST = ("-p", "ragmetrics", "-p", "no:cacheprovider")

#: What the metric of labelled answers is, by the beginning of the name of their file.
METRICS = {
    "ragtruth": "faithfulness",
    "begin": "faithfulness",
    "ansrel": "relevance",
    "ctxrel": "context_relevance",
}
_CALIBRATION = """
import json
from pathlib import Path

import pytest

from pytest_ragmetrics import rag_calibrated

FILES = {files}


@pytest.mark.parametrize("name", FILES)
def test_calibration(name):
    metric, file = FILES[name]
    lines = Path(file).read_text("utf-8").splitlines()[:{limit}]
    # Public sets have an ID more than once.
    rows = [{{**json.loads(line), "id": f"{{name}}:{{number}}"}} for number, line in enumerate(lines, start=1)]
    found = rag_calibrated(metric, rows, -1, by="estimate", skip_unscored=True)
    Path(__file__).with_name(f"{{name}}.json").write_text(found.to_json(), "utf-8")
"""
STAND_IN = "stand-in"
_ORIGIN = re.compile(r"<!-- judge\.jsonl: (.*?) -->\n.*?<!-- end -->", re.DOTALL)
_OF_STAND_IN = """\
The replies in `judge.jsonl` come from the fake provider of this repository's tests, which compares the words of two
texts, and not from the model that they name. Record them again before you draw conclusions from a score."""


class RecordingError(Exception):
    """Nothing is recorded; the message says what to do instead."""


def origin(folder: Path) -> str:
    """Return who the README of an example says its replies are of: a judge, or the stand-in."""
    found = _ORIGIN.search((folder / "README.md").read_text("utf-8"))
    if found is None:
        raise RecordingError(f"{folder / 'README.md'} has no part <!-- judge.jsonl: ... --> to <!-- end -->")
    return found[1]


def _write_origin(folder: Path, by: str, text: str) -> None:
    file = folder / "README.md"
    part = f"<!-- judge.jsonl: {by} -->\n{text}\n<!-- end -->"
    write_atomically(file, _ORIGIN.sub(lambda _: part, file.read_text("utf-8")))


def record(folder: Path) -> int:
    """Ask the fake provider everything that the suite in a folder asks; return the exit status of pytest."""
    with FakeOpenAI() as server, tempfile.TemporaryDirectory() as cache:
        status = subprocess.run(
            [sys.executable, "-m", "pytest", *_PYTEST, "--rag-cache=refresh", f"--rag-cache-dir={cache}"],
            check=False,
            cwd=folder,
            env={**os.environ, **_OFFLINE, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-fake"},
        ).returncode
    cassette = Cassette(folder / "judge.jsonl")
    # Its port is another one each time, and the README says whose replies they are.
    cassette.save({key: replace(entry, host="") for key, entry in cassette.entries.items()}, complete=True)
    return status


def record_baseline(folder: Path) -> int:
    """Write the baseline of the suite in a folder, whatever the old one is; return the exit status of pytest."""
    command = ["-m", "pytest", *_PYTEST, "--rag-json=baseline.json", "-o", "rag_baseline="]
    return subprocess.run(
        [sys.executable, *command], check=False, cwd=folder, env={**os.environ, **_OFFLINE}
    ).returncode


def record_real(folder: Path, *, answers: Path | None, limit: int | None, max_cost: float | None, work: Path) -> int:
    """Forecast what the provider takes for the suite in a folder and for labelled answers; with a budget ask it.

    Returns the exit status of pytest. The example is changed only at the end, and only by replies of the provider.
    Raises :class:`RecordingError` otherwise.
    """
    _check_provider(folder)
    files = {} if answers is None else _labelled(answers)
    project, cache = work / "project", f"--rag-cache-dir={work / 'cache'}"
    _make_project(project, folder, files, limit)
    asking = ("--rag-cache=auto", cache, "-o", "rag_cassette=")
    if max_cost is None:
        status = _run(project, *asking, "--rag-dry-run", "-q")
        print("nothing was asked, and nothing is changed; to record: add --max-cost=DOLLARS")
        return status
    if status := _run(project, *asking, f"--rag-max-cost={max_cost}"):
        print(f"{folder} is as it was; what is paid for is in {work / 'cache'}: the same command goes on from there")
        return status
    calibrated = {name: json.loads((project / "calibration" / f"{name}.json").read_bytes()) for name in files}
    shutil.rmtree(project / "calibration")
    # Every reply is stored by now: this makes the cassette of them.
    if status := _run(project, "--rag-cache=auto", cache, "-q"):
        return status
    recorded = project / "judge.jsonl"
    judge = _check_replies(Cassette(recorded).entries)
    shutil.copyfile(recorded, folder / "judge.jsonl")
    _write_origin(folder, judge, _of_judge(judge, calibrated))
    print(f"{folder}: judge.jsonl and README.md are written; look at both, run the tests, and commit them")
    return 0


def _check_provider(folder: Path) -> None:
    """Raise ``RecordingError`` where a provider would not be asked itself, or nobody watches what it costs."""
    if os.environ.get("CI"):
        raise RecordingError("a recording costs money, and is no step of CI: run it by hand")
    settings = (folder / "pytest.ini").read_text("utf-8")
    for vendor in VENDORS.values():
        if f"= {vendor.name}:" not in settings:
            continue
        if url := os.environ.get(vendor.url_variable, "").strip():
            raise RecordingError(f"{shown_address(url)} would stand in for {vendor.label}: unset {vendor.url_variable}")
        if not os.environ.get(vendor.key_variable, "").strip():
            raise RecordingError(f"set {vendor.key_variable} to a key of {vendor.label}")


def _labelled(answers: Path) -> dict[str, tuple[str, str]]:
    """Return the metric and the path of each file of labelled answers in a folder, by its name."""
    found = {
        file.name.partition(".")[0]: (metric, str(file.resolve()))
        for file in sorted(answers.glob("*.jsonl"))
        for start, metric in METRICS.items()
        if file.name.startswith(start)
    }
    if not found:
        names = ", ".join(f"{start}*.jsonl" for start in METRICS)
        raise RecordingError(f"{answers} has no file of labelled answers: it may have {names}")
    return found


def _make_project(project: Path, folder: Path, files: Mapping[str, tuple[str, str]], limit: int | None) -> None:
    shutil.rmtree(project, ignore_errors=True)
    # The cassette of the stand-in would answer.
    shutil.copytree(folder, project, ignore=shutil.ignore_patterns("__pycache__", ".*", "*.html", "judge.jsonl"))
    (project / "calibration").mkdir()
    if files:
        code = _CALIBRATION.format(files=json.dumps(files, indent=4), limit=limit)
        (project / "calibration" / "test_calibration.py").write_text(code, "utf-8")


def _run(project: Path, *options: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _OFFLINE.items():
            patch.setenv(name, value)
        patch.chdir(project)
        status = int(pytest.main([*_PYTEST, "--import-mode=importlib", *options, str(project)]))
    # The next project has modules of the same names.
    for name in [name for name, module in sys.modules.items() if _is_in(project, module)]:
        del sys.modules[name]
    return status


def _is_in(project: Path, module: object) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).is_relative_to(project)


def _check_replies(entries: Mapping[str, CacheEntry]) -> str:
    """Return the judge that made replies; raise ``RecordingError`` if another server did, or the stand-in."""
    hosts = {entry.host for entry in entries.values()} - {""}
    if hosts:
        raise RecordingError(f"replies were made by {', '.join(sorted(hosts))}: delete {WORK} and record anew")
    judged = [entry for entry in entries.values() if entry.task != EMBEDDING]
    if all(map(_is_of_stand_in, judged)):
        raise RecordingError(f"all {len(judged)} replies are as the stand-in words them: who answers at that address?")
    return "{kind}:{model}".format(**judged[0].request)


def _is_of_stand_in(entry: CacheEntry) -> bool:
    asked = {"messages": entry.request["messages"], "tools": [{"input_schema": entry.request["schema"]}]}
    return bool(answer_sensibly(asked) == entry.reply["text"])


def _of_judge(judge: str, calibrated: Mapping[str, Any]) -> str:
    """Return the text on a recording: whose replies they are, since when, and how the judge agreed with people."""
    day = datetime.now(timezone.utc).date()
    lines = [f"The replies in `judge.jsonl` are those of `{judge}`, recorded on {day}."]
    if calibrated:
        head = ("labelled answers", "metric", "scored", "kappa", "balanced accuracy", "TPR", "TNR", "AUROC")
        lines += ["", "Against labels of people it reached, with 95 % intervals:", ""]
        lines += [f"| {' | '.join(cells)} |" for cells in (head, ("---",) * len(head))]
        lines += [f"| {' | '.join(_cells(name, found))} |" for name, found in calibrated.items()]
    return "\n".join(lines)


def _cells(name: str, found: Mapping[str, Any]) -> Sequence[str]:
    agreement = found["agreement"]
    figures = (*(agreement[figure] for figure in ("kappa", "balanced_accuracy", "tpr", "tnr")), found["auroc"])
    shown = ("-" if it is None else f"{it['estimate']:.2f} ({it['low']:.2f}..{it['high']:.2f})" for it in figures)
    return (name, f"`{found['metric']}`", str(found["rows"]["scored"]), *shown)


def _stand_in(*, anew: bool) -> int:
    """Record with the stand-in, over a recording of a model only if it is to be replaced."""
    folder = EXAMPLES / "openai"
    if (by := origin(folder)) != STAND_IN:
        if not anew:
            raise RecordingError(f"judge.jsonl is a recording of {by}, which was paid for: --stand-in replaces it")
        _write_origin(folder, STAND_IN, _OF_STAND_IN)
    return record(folder) or record_baseline(EXAMPLES / "golden_set")


def main(arguments: Sequence[str] | None = None, *, folder: Path = EXAMPLES / "openai", work: Path = WORK) -> int:
    """Record what the arguments say; return an exit status."""
    parser = argparse.ArgumentParser(prog="python .tools/record_examples.py", description=__doc__.partition("\n")[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--real", action="store_true", help="ask the provider; without --max-cost only forecast it")
    which.add_argument("--stand-in", action="store_true", help="replace a recording of a model by one of the stand-in")
    parser.add_argument("--max-cost", type=float, metavar="DOLLARS", help="the budget of a real recording")
    names = ", ".join(f"{start}*.jsonl" for start in METRICS)
    parser.add_argument("--answers", type=Path, metavar="FOLDER", help=f"labelled answers: {names}")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N labelled answers of each file")
    given = parser.parse_args(arguments)
    try:
        if not given.real:
            return _stand_in(anew=given.stand_in)
        return record_real(folder, answers=given.answers, limit=given.limit, max_cost=given.max_cost, work=work)
    except RecordingError as error:
        print(f"not recorded: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
