"""`ragmetrics init`: writes an example test and its settings into a project; existing files are only added to."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from click import option

from pytest_ragmetrics.cli.command import PATH, Arguments, Checked, argument, command
from pytest_ragmetrics.cli.ini_file import IniFile, IniFileError, find_ini_file, read_ini_file
from pytest_ragmetrics.core.files import packaged_text, write_atomically
from pytest_ragmetrics.judges.specs import DEFAULT_OPENAI

EXAMPLE = "test_rag_example.py"
_CASSETTE = "rag_judge.jsonl"
_COMMENTS = (
    "# The judge is chosen by key (OPENAI_API_KEY ...) unless it is named here:",
    "# rag_judge = {judge}",
    "# Answers of the judge are recorded here; commit the file, and replay it with: pytest --rag-cache=replay",
)
_KEY = "rag_cassette"
#: Where coding agents look for skills: in a folder of each, which is called like it.
_SKILLS, _SKILL = ".agents/skills", "pytest-ragmetrics/SKILL.md"
# For --skill without a path.
_HERE = "."


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
    if not path.is_dir():
        raise ValueError(f"{text!r} is not a folder: name that of your project")
    return path


@command("init")
@argument(
    "folder",
    type=Checked(_folder),
    required=False,
    default=Path(),
    metavar="[FOLDER]",
    help="of the project (default: here)",
)
@option(
    "--skill",
    type=PATH,
    is_flag=False,
    flag_value=_HERE,
    metavar="[PATH]",
    help="write a skill for coding agents, to a *.md file or a folder of skills (default: .*/skills, else "
    ".agents/skills) too",
)
@option("--dry-run", is_flag=True, help="only say what would be written")
def run(arguments: Arguments) -> list[str]:
    """Write an example test and the settings for it; what is there already is left as it is."""
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
    example = steps[0].path
    last = f"written; try it: python -m pytest {example}"
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

    ``skill`` is the file or the folder of skills for coding agents. Raises :class:`IniFileError` for settings of pytest
    that cannot be read.
    """
    ini = find_ini_file(folder.resolve())
    # The folder of the tests: the first existing one of testpaths, else ``tests``, else the project.
    stated = ini.text("testpaths").split() if ini is not None and ini.path.parent == folder.resolve() else []
    inside = (folder / name for name in (*stated, "tests") if ".." not in Path(name).parts)
    tests = next((path for path in inside if path.is_dir() and path.is_relative_to(folder)), folder)
    example = _new(tests / EXAMPLE, "a new example test", "cli/example_test.txt")
    steps = example, _settings(folder, tests / _CASSETTE, ini)
    if skill is None:
        return steps
    return *steps, _new(_skill_file(folder, skill), "a skill for coding agents", "docs/SKILL.md")


def _new(path: Path, what: str, source: str) -> Step:
    if path.exists() or path.is_symlink():
        return Step(path=path, what="there already")
    return Step(path=path, what=what, text=packaged_text(source))


def _settings(folder: Path, cassette: Path, ini: IniFile | None) -> Step:
    here = folder.resolve()
    if ini is not None and any(key.startswith("rag_") for key in ini.values):
        return Step(path=_as_given(ini.path, folder), what="has settings of this plugin already")
    if ini is None and not (folder / "pyproject.toml").is_file():
        lines = _lines(cassette.relative_to(folder).as_posix(), toml=False)
        text = "\n".join(["[pytest]", *lines, ""])
        return Step(path=folder / "pytest.ini", what="new settings", text=text, lines=lines)
    is_new = ini is None
    ini = ini or IniFile(path=here / "pyproject.toml", section="tool.pytest.ini_options")
    lines = _lines((here / cassette.relative_to(folder)).relative_to(ini.path.parent).as_posix(), toml=ini.is_toml)
    path = _as_given(ini.path, folder)
    # Settings of a larger project, or behind a link, are not changed.
    after = None if ini.path.parent != here or path.is_symlink() else _with_lines(ini, lines, at_the_end=is_new)
    if after is None:
        return Step(path=path, what=f"add these lines below [{ini.section}] yourself", lines=lines)
    if is_new:
        return Step(path=path, what="settings added at the end", text=after, lines=(f"[{ini.section}]", *lines))
    return Step(path=path, what="settings added", text=after, lines=lines)


def _with_lines(ini: IniFile, lines: Sequence[str], *, at_the_end: bool) -> str | None:
    """Return the text of a file with lines in its section; ``None`` if that changes other settings."""
    before = ini.path.read_bytes().decode("utf-8")  # not read_text(), which changes line ends
    if at_the_end:
        end = "\r\n" if "\r\n" in before else "\n"
        after = before + ("" if before.endswith(end) else end) + end.join(["", f"[{ini.section}]", *lines, ""])
    else:
        pattern = rf"^\[{re.escape(ini.section)}\][ \t]*(?:[#;][^\r\n]*)?(?P<end>\r?\n|\Z)"
        heads = list(re.finditer(pattern, before, re.MULTILINE))
        if len(heads) != 1:
            return None
        (head,) = heads
        end = head["end"] or "\n"
        added = "".join(f"{line}{end}" for line in lines)
        after = before[: head.end()] + ("" if head["end"] else end) + added + before[head.end() :]
    try:
        old, new = read_ini_file(ini.path, before), read_ini_file(ini.path, after)
    except IniFileError:
        return None
    values = {} if old is None else dict(old.values)
    is_same = new is not None and {**new.values} == {**values, _KEY: new.values.get(_KEY)}
    return after if is_same else None


def _lines(cassette: str, *, toml: bool) -> tuple[str, ...]:
    quote = '"' if toml else ""
    comments = [comment.format(judge=f"{quote}{DEFAULT_OPENAI}{quote}") for comment in _COMMENTS]
    return (*comments, f"{_KEY} = {quote}{cassette}{quote}")


def _as_given(path: Path, folder: Path) -> Path:
    return folder / path.name if path.parent == folder.resolve() else path
