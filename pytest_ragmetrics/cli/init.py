"""`ragmetrics init`: writes an example test and its settings into a project; existing files are only added to."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import Any

from pytest_ragmetrics.cli.command import PATH, Arguments, Checked, argument, command, option
from pytest_ragmetrics.core.errors import DatasetError
from pytest_ragmetrics.core.files import exists, packaged_text, write_atomically
from pytest_ragmetrics.datasets.reading import read_dataset
from pytest_ragmetrics.judges.providers.vendor import OPENAI
from pytest_ragmetrics.plugin.config import SettingsFileError, read_config
from pytest_ragmetrics.plugin.gates.gate import ALPHA
from pytest_ragmetrics.runs.records import Gate
from pytest_ragmetrics.runs.wording.figures import counted
from pytest_ragmetrics.runs.wording.power import changes_text, finds_text, limit_text
from pytest_ragmetrics.stats.power import Plan

EXAMPLE = "test_rag_example.py"
_CASSETTE = "rag_judge.jsonl"
_COMMENTS = (
    "# Without a name the judge is chosen by key (OPENAI_API_KEY ...):",
    "# rag_judge = {judge}",
    "# Commit this file: pytest --rag-cache=replay takes replies from it.",
)
_KEY = "rag_cassette"
# The tables with settings of pytest, where they are not called [pytest].
_SECTIONS = {"setup.cfg": ("tool:pytest",), "pyproject.toml": ("tool.pytest.ini_options", "tool.pytest")}
#: Coding agents look for skills here, each in a folder of its own name.
_SKILLS, _SKILL = ".agents/skills", "pytest-ragmetrics/SKILL.md"
# For --skill without a path.
_HERE = "."
# A data set is looked for among so many files, and has so many rows where there is none.
_DATASETS, _MOST_FILES, _ROWS, _WIDTH = {".jsonl", ".ndjson", ".csv"}, 20, 50, 119


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A file to write; without a ``text`` it is left as it is."""

    path: Path
    what: str
    text: str | None = None
    #: The settings, for the user to add or to see.
    lines: tuple[str, ...] = ()


def _folder(text: str) -> Path:
    path = Path(text)
    if not (exists(path) and path.is_dir()):
        raise ValueError(f"{text!r} is not a folder: name that of your project")
    return path


@command("init")
@argument("folder [FOLDER]", "of the project (default: here)", type=Checked(_folder), default=Path())
@option(
    "--skill [PATH]",
    PATH,
    f"also write a skill for coding agents: a *.md file or a folder (default: .*/skills, else {_SKILLS})",
    is_flag=False,
    flag_value=_HERE,
)
@option("--dry-run", help="print what would be written")
def run(arguments: Arguments) -> list[str]:
    """Write an example test and its settings; existing files are only added to."""
    skill = arguments.skill or (None if arguments.dry_run else _wanted_skill(arguments.folder))
    steps = plan(arguments.folder, skill=skill)
    report = []
    for step in steps:
        report.append(f"{'leave' if step.text is None else 'write':<7}{step.path}: {step.what}")
        report += [f"       | {line}" for line in step.lines]
    pending = [step for step in steps if step.text is not None]
    if arguments.dry_run or not pending:
        return [*report, "nothing was written" if pending else "nothing to write"]
    for step in pending:
        write_atomically(step.path, step.text or "")
    last = f"written; try it: python -m pytest {steps[0].path}"
    return [*report, last, *([] if skill else ["for coding agents: ragmetrics init --skill"])]


def _wanted_skill(folder: Path) -> Path | None:
    """Return where a skill for coding agents is to be written, as a person at the terminal answers."""
    path = _skill_file(folder, Path(_HERE))
    if path.exists() or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    sys.stdout.write(f"Write a skill for coding agents to {path}? [y/N] ")
    sys.stdout.flush()
    return Path(_HERE) if sys.stdin.readline().strip().lower() in ("y", "yes") else None


def _skill_file(folder: Path, given: Path) -> Path:
    """Return the file of the skill: one that is named, or that of its name in a folder of skills."""
    if str(given) == _HERE:
        given = next((path for path in sorted(folder.glob(".*/skills")) if path.is_dir()), folder / _SKILLS)
    return given if given.suffix == ".md" else given / _SKILL


def plan(folder: Path, *, skill: Path | None = None) -> tuple[Step, ...]:
    """Return what `ragmetrics init` would write into a folder, the example first; nothing is written.

    ``skill`` is the file or the folder of skills for coding agents. Raises :class:`SettingsFileError` for settings of
    pytest that cannot be read.
    """
    here = folder.resolve()
    found = read_config("--noconftest", str(here))
    file = found.config.inipath
    # The folder of the tests: the first existing one of testpaths, else ``tests``, else the project.
    stated = found.config.getini("testpaths") if file is not None and file.parent == here and not found.problem else []
    inside = (folder / name for name in (*stated, "tests") if ".." not in Path(name).parts)
    tests = next((path for path in inside if path.is_dir() and path.is_relative_to(folder)), folder)
    example = _new(tests / EXAMPLE, "a new example test", "cli/example_test.txt")
    if example.text is not None:
        example = replace(example, text=_with_gate(example.text, tests, folder))
    # pytest takes any pyproject.toml for its file where it finds no other.
    has_settings = file is not None and (file.name != "pyproject.toml" or bool(found.values))
    settings = _settings(folder, tests / _CASSETTE, file if has_settings else None, found.values)
    skills = [] if skill is None else [_new(_skill_file(folder, skill), "a skill for coding agents", "docs/SKILL.md")]
    return example, settings, *skills


def _with_gate(text: str, tests: Path, folder: Path) -> str:
    """Return the example with a gate over the first data set of the project, and what its rows can find."""
    name, rows = "golden.jsonl", _ROWS
    every = (file for place in (tests, folder) for file in sorted(place.iterdir()))
    files = (file for file in every if file.suffix in _DATASETS and re.fullmatch(r"[\w. -]+", file.name))
    for file in islice(files, _MOST_FILES):
        with suppress(DatasetError, OSError):
            found = read_dataset(file.name, base=file.parent)
            if all(row.sample is not None and row.sample.user_input for row in found):
                name, rows = Path(os.path.relpath(file, tests)).as_posix(), len(found)
                break
    limit = limit_text(Gate(metric="", statistic="regression", bound=0.0), rows, alpha=ALPHA)
    what = f"{counted(rows, 'row')}: it {limit}" if limit else finds_text(Plan(), rows)
    power = fill(f"{what} ({changes_text(Plan())}).", _WIDTH, initial_indent="# ", subsequent_indent="# ")
    return text.replace("{dataset}", name).replace("{power}", power)


def _new(path: Path, what: str, source: str) -> Step:
    if path.exists() or path.is_symlink():
        return Step(path=path, what="there already")
    return Step(path=path, what=what, text=packaged_text(source))


def _settings(folder: Path, cassette: Path, file: Path | None, values: Mapping[str, Any]) -> Step:
    here = folder.resolve()
    target = file or here / "pyproject.toml"
    path = folder / target.name if target.parent == here else target
    if any(key.startswith("rag_") for key in values):
        return Step(path=path, what="has settings of this plugin already")
    if file is None and not target.is_file():
        lines = _lines(cassette.relative_to(folder).as_posix(), toml=False)
        text = "\n".join(["[pytest]", *lines, ""])
        return Step(path=folder / "pytest.ini", what="new settings", text=text, lines=lines)
    relative = (here / cassette.relative_to(folder)).relative_to(target.parent)
    lines = _lines(relative.as_posix(), toml=target.suffix == ".toml")
    before = target.read_bytes().decode("utf-8")  # not read_text(), which changes line ends
    sections = _SECTIONS.get(target.name, ("pytest",))
    section = next((name for name in sections if f"[{name}]" in before), sections[0])
    after = _with_lines(before, section, lines, at_the_end=file is None)
    # Settings of a larger project, or behind a link, are not changed.
    if target.parent != here or path.is_symlink() or not after or not _keeps(values, target.name, after):
        return Step(path=path, what=f"add these lines below [{section}] yourself", lines=lines)
    if file is None:
        return Step(path=path, what="settings added at the end", text=after, lines=(f"[{section}]", *lines))
    return Step(path=path, what="settings added", text=after, lines=lines)


def _with_lines(before: str, section: str, lines: Sequence[str], *, at_the_end: bool) -> str:
    """Return a text with lines in its section, which is new ``at_the_end``; empty if it is not there once."""
    if at_the_end:
        end = "\r\n" if "\r\n" in before else "\n"
        return before + ("" if before.endswith(end) else end) + end.join(["", f"[{section}]", *lines, ""])
    pattern = rf"^\[{re.escape(section)}\][ \t]*(?:[#;][^\r\n]*)?(?P<end>\r?\n|\Z)"
    heads = list(re.finditer(pattern, before, re.MULTILINE))
    if len(heads) != 1:
        return ""
    (head,) = heads
    end = head["end"] or "\n"
    added = "".join(f"{line}{end}" for line in lines)
    return before[: head.end()] + ("" if head["end"] else end) + added + before[head.end() :]


def _keeps(values: Mapping[str, Any], name: str, text: str) -> bool:
    """Return whether pytest reads all settings in a file of a name as before, with the cassette."""
    with TemporaryDirectory() as place:
        (Path(place) / name).write_bytes(text.encode())
        try:
            after = read_config("--noconftest", place).values
        except SettingsFileError:
            return False
    return after == {**values, _KEY: after.get(_KEY)}


def _lines(cassette: str, *, toml: bool) -> tuple[str, ...]:
    quote = '"' if toml else ""
    comments = [comment.format(judge=f"{quote}{OPENAI.auto['judge']}{quote}") for comment in _COMMENTS]
    return (*comments, f"{_KEY} = {quote}{cassette}{quote}")
