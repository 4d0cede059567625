"""The `ragmetrics init` command, in projects of every kind, and pytest on what it wrote."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ragmetrics.cli import main
from pytest_ragmetrics.core.files import packaged_text
from pytest_ragmetrics.metrics.registry import built_in_metrics
from tests.plugin.conftest import RunPytest

Call = Callable[..., str]

INI = "[pytest]\n; our own\naddopts = -ra\n    --strict-markers\nmarkers =\n    slow: takes long\n"
PYPROJECT = '[project]\nname = "shop"  # ours\nversion = "1"\n'
TABLE = f'{PYPROJECT}\n[tool.pytest.ini_options] # tests\naddopts = ["-ra"]\n\n[tool.other]\nx = [ 1,2 ]\n'
PROJECTS: dict[str, dict[str, str]] = {
    "nothing": {},
    "pytest.ini": {"pytest.ini": INI},
    "hidden": {".pytest.ini": INI},
    "windows": {"pytest.ini": INI.replace("\n", "\r\n")},
    "head alone": {"pytest.ini": "[pytest]"},
    "tox.ini": {"tox.ini": f"[tox]\nenvlist = py\n\n{INI}\n[flake8]\nmax-line-length = 100\n"},
    "setup.cfg": {"setup.cfg": f"[metadata]\nname = shop\n\n{INI.replace('[pytest]', '[tool:pytest]')}"},
    "pyproject.toml": {"pyproject.toml": TABLE},
    "pyproject.toml without": {"pyproject.toml": PYPROJECT},
    "pyproject.toml without an end": {"pyproject.toml": PYPROJECT.rstrip()},
    "tox.ini without": {"tox.ini": "[tox]\nenvlist = py\n"},
    "both": {"pytest.ini": INI, "pyproject.toml": TABLE},
}
if pytest.version_tuple >= (9,):  # the first that reads settings of its own in TOML
    for name, head in (("pytest.toml", "[pytest]"), (".pytest.toml", "[pytest]"), ("pyproject.toml", "[tool.pytest]")):
        PROJECTS[f"native {name}"] = {name: f'{head}\naddopts = ["-ra"]\n'}


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the command; returns everything printed."""

    def run(*arguments: str, status: int = 0) -> str:
        assert main(["init", *arguments]) == status
        return "".join(capsys.readouterr())

    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", PROJECTS)
def test_projects_of_every_kind(pytester: pytest.Pytester, run: RunPytest, call: Call, kind: str) -> None:
    pytester.mkdir("tests")
    for name, text in PROJECTS[kind].items():
        (pytester.path / name).write_bytes(text.encode())
    before = contents(pytester.path)
    call()
    after = contents(pytester.path)
    for name, content in before.items():
        lines = iter(after[name].splitlines())
        assert all(line in lines for line in content.splitlines())
    assert (pytester.path / "tests" / "test_rag_example.py").is_file()
    (changed,) = (name for name in after if b"rag_cassette" in after[name])
    if kind == "windows":
        ends = after["pytest.ini"]
        assert ends.count(b"\r\n") == ends.count(b"\n") > INI.count("\n")
    assert "nothing to write" in call()
    assert contents(pytester.path) == after
    run("--strict-config").shows(f"configfile: {changed}*", passed=1)


def test_a_dry_run(pytester: pytest.Pytester, call: Call) -> None:
    out = call("--dry-run")
    assert "write  test_rag_example.py: a new example test" in out
    assert "write  pytest.ini: new settings\n" in out
    assert "| rag_cassette = rag_judge.jsonl" in out
    assert out.endswith("nothing was written\n")
    assert not contents(pytester.path)


def test_the_judged_example_works(run: RunPytest, pytester: pytest.Pytester, call: Call) -> None:
    """With the marks of the comment taken away, it runs with any judge."""
    call(str(pytester.path))
    example = pytester.path / "test_rag_example.py"
    text, _, gated = example.read_text("utf-8").partition("\n\n# A data set ")
    assert (
        "50 rows find a loss of 10 points in 4 of 10 runs, of 20 points in 9 of 10; for 8 of 10 at 10 points" in gated
    )
    head, _, judged = text.partition("# from ")
    lines = [line.removeprefix("#").removeprefix(" ") for line in f"# from {judged}".splitlines()]
    example.write_text(head + "\n".join(lines).replace("     ", "    ") + "\n", encoding="utf-8")
    run("--rag-judge=local").assert_outcomes(passed=2)


def test_the_gate_of_the_example_is_over_the_data_set_that_is_there(
    run: RunPytest, pytester: pytest.Pytester, call: Call
) -> None:
    rows = [json.dumps({"question": f"Is it {n}?", "answer": "It is.", "contexts": ["It is."]}) for n in range(4)]
    pytester.mkdir("tests")
    # Neither a cassette nor a broken file is a data set.
    for name, text in (("a.jsonl", '{"key": 1}'), ("b.csv", "\0"), ("asked.jsonl", "\n".join(rows))):
        (pytester.path / name).write_text(text, encoding="utf-8")
    call(str(pytester.path))
    example = pytester.path / "tests" / "test_rag_example.py"
    _, _, gated = example.read_text("utf-8").partition("# import pytest")
    told = " ".join(gated.replace("\n#", "").split())
    assert "4 rows: it can never pass: 4 rows, and 5 are the least that a regression gate compares" in told
    code, _, _ = gated.partition("#\n# 4 rows")
    example.write_text("import pytest\n" + re.sub("^# ?", "", code, flags=re.MULTILINE), encoding="utf-8")
    run("tests").assert_outcomes(passed=4, skipped=1)


@pytest.mark.parametrize("paths", ["../other nowhere checks", "checks tests"])
def test_tests_are_put_where_pytest_looks(run: RunPytest, pytester: pytest.Pytester, call: Call, paths: str) -> None:
    settings = pytester.path / "pytest.ini"
    settings.write_text(f"[pytest]\ntestpaths = {pytester.path.parent} {paths}\n", encoding="utf-8")
    for name in ("tests", "checks"):
        pytester.mkdir(name)
    call()
    assert "rag_cassette = checks/rag_judge.jsonl" in settings.read_text("utf-8")
    run("checks").assert_outcomes(passed=1)


def test_what_is_there_stays(pytester: pytest.Pytester, call: Call) -> None:
    example, settings = pytester.path / "test_rag_example.py", pytester.path / "pytest.ini"
    example.symlink_to(pytester.path / "gone")
    assert "leave  test_rag_example.py: there already" in call("--dry-run")
    example.unlink()
    example.write_text("def test_ours(): ...\n", encoding="utf-8")
    assert "leave  test_rag_example.py: there already" in call()
    assert example.read_text("utf-8") == "def test_ours(): ...\n"
    assert "rag_cassette" in settings.read_text("utf-8")
    example.unlink()
    settings.write_text("[pytest]\nrag_judge = local\n", encoding="utf-8")
    assert "leave  pytest.ini: has settings of this plugin already" in call()
    assert settings.read_text("utf-8") == "[pytest]\nrag_judge = local\n"
    assert example.exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", ""),
        ("pyproject.toml", "tool = {other = 1}\n"),
        ("pyproject.toml", '[tool]\npytest.ini_options = {addopts = "-ra"}\n'),
        ("pyproject.toml", '[tool]\nx = """\n[tool.pytest.ini_options]\n"""\n[tool.pytest]\nini_options.a = ""\n'),
    ],
)
def test_what_cannot_be_changed_for_sure_is_left_to_the_user(
    pytester: pytest.Pytester, call: Call, name: str, text: str
) -> None:
    (pytester.path / name).write_text(text, encoding="utf-8")
    out = call()
    assert f"leave  {name}: add these lines below [" in out
    assert "rag_cassette = " in out
    assert (pytester.path / name).read_text("utf-8") == text


@pytest.mark.parametrize(("name", "text"), [("pytest.ini", INI), ("pyproject.toml", TABLE)])
def test_files_of_other_projects_are_not_changed(pytester: pytest.Pytester, call: Call, name: str, text: str) -> None:
    """What is changed through a link may be another's; settings in a part would hide those of the whole project."""
    settings, real = pytester.path / name, pytester.mkdir("elsewhere") / "real"
    real.write_text(text.replace("[tool.pytest.ini_options]", "[tool.more]"), encoding="utf-8")
    before = real.read_bytes()
    settings.symlink_to(real)
    assert "add these lines" in call()
    assert (settings.is_symlink(), real.read_bytes()) == (True, before)
    settings.unlink()
    settings.write_text(text, encoding="utf-8")
    part = pytester.mkdir("part")
    out = call("part")
    assert f"leave  {settings}: add these lines below [" in out
    assert "rag_cassette = part/rag_judge.jsonl" in out.replace('"', "")
    assert set(contents(part)) == {"test_rag_example.py"}
    assert settings.read_text("utf-8") == text


def test_wrong_projects_stop_it(pytester: pytest.Pytester, call: Call) -> None:
    with pytest.raises(SystemExit, match="2"):
        call(f"nowhere{os.sep}at all")
    for name, text in (("pyproject.toml", "[tool\n"), ("pytest.ini", "[pytest]\n[pytest]\naddopts = -q\n")):
        (pytester.path / name).write_text(text, encoding="utf-8")
        assert f"ragmetrics: {pytester.path / name}:" in call(status=1)
        assert set(contents(pytester.path)) == {name}
        (pytester.path / name).unlink()


SKILL = packaged_text("docs/SKILL.md")


@pytest.mark.parametrize(
    ("there", "arguments", "place"),
    [
        ("", "--skill", ".agents/skills/pytest-ragmetrics/SKILL.md"),
        (".house/skills/other", "--skill", ".house/skills/pytest-ragmetrics/SKILL.md"),
        ("", "--skill=.house/skills", ".house/skills/pytest-ragmetrics/SKILL.md"),
        ("", "--skill docs/rag.md", "docs/rag.md"),
    ],
)
def test_a_skill_for_coding_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call, there: str, arguments: str, place: str
) -> None:
    (tmp_path / there).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path)
    assert f"write  {place}: a skill for coding agents" in call(*arguments.split(), "--dry-run")
    assert not (tmp_path / place).exists()
    assert "ragmetrics init --skill" not in call(*arguments.split())
    assert (tmp_path / place).read_text("utf-8") == SKILL
    assert f"leave  {place}: there already" in call(*arguments.split())


@pytest.mark.parametrize(("answer", "written"), [("y", True), ("YES", True), ("", False), ("n", False), (None, False)])
def test_a_person_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call, answer: str | None, *, written: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call().endswith("for coding agents: ragmetrics init --skill\n")
    screen = io.StringIO("" if answer is None else f"{answer}\n")
    monkeypatch.setattr(sys, "stdin", screen)
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "Write a skill for coding agents to .agents/skills/pytest-ragmetrics/SKILL.md? [y/N] " in call()
    assert (tmp_path / ".agents/skills/pytest-ragmetrics/SKILL.md").exists() is written
    assert ("Write a skill" in call()) is not written


def test_the_skill_is_short_and_names_what_there_is() -> None:
    head = SKILL.split("---\n")[1]
    assert re.fullmatch(r"name: pytest-ragmetrics\ndescription: [^\n]{100,1000}\n", head)
    assert len(SKILL.splitlines()) < 150
    names = set(re.findall(r"`(\w+)`", SKILL))
    known = {kind.name for kind in built_in_metrics()}
    assert {name for name in names - known if "_" in name} == {"rag_respond"}
    assert len(names & known) >= 8
