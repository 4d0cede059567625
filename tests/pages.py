"""Plays a page of the documentation: its files are written, its tests and commands are run, in the order of the page.

What stands behind the backticks says what a block is:

- ``python``: a test module; without a test a ``conftest.py`` where it has fixtures or hooks, else a script, in which
  ``await`` may stand anywhere. With ``title="app/bot.py"`` it is that file, as are blocks of other languages.
- ``text`` behind it: lines that its failing test prints; the module is deleted then.
- ``console``: commands behind ``$``, each with lines that it prints; a line ``...`` stands for any. A command whose
  lines say "1 failed" or begin with "ragmetrics: " exits with 1, another one with 0.
- ``ini``, ``toml``, ``json``, ``jsonl``, ``yaml``, ``groovy``: files; of ``yaml`` and ``groovy`` the lines that start
  pytest or ragmetrics are run too.
- ``pycon``: a session; those of the reference are examples of docstrings, which have their own test.
- ``py``: how something is called, in the reference.

Judge and embedder are those of a server on this machine (:mod:`tests.fake_openai`), whatever address a page names.
"""

from __future__ import annotations

import doctest
import json
import re
import runpy
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_ragmetrics.cli import main

ROOT = Path(__file__).parent.parent
_BLOCK = re.compile(r'^```(\w*)(?: title="([^"\n]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_ASSIGNED = re.compile(r"(\w+)=(.*)", re.DOTALL)
_COMMAND = re.compile(r"^(?:\w+=\S+ +)*(?:pytest|ragmetrics|python -m pytest(?:_ragmetrics)?)(?= |$).*", re.MULTILINE)
#: Programs that a page may name and that are not run here.
_ELSEWHERE = frozenset(
    {"pip", "uv", "git", "gh", "ollama", "vllm", "llama-server", "lms", "litellm", "docker", "aws", "az", "gcloud"}
    | {"source"}
)
#: The addresses and keys of the server here, which no page replaces.
_PROVIDER = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A block of code: its language, the file that it is, and its text."""

    language: str
    title: str
    code: str


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of a page; raise where one does not end in the column in which it begins."""
    found = [Block(language=language, title=title, code=code) for language, title, code in _BLOCK.findall(text)]
    assert len(re.findall(r"^ *```", text, re.MULTILINE)) == 2 * len(found), "a block is indented or not closed"
    return found


@dataclass(kw_only=True, slots=True)
class Play:
    """One page that is played in the folder of a ``pytester``."""

    pytester: pytest.Pytester
    patch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    #: Modules whose tests have not been run.
    waiting: dict[str, int] = field(default_factory=dict)
    _number: int = 0
    _last: str = ""

    def page(self, text: str) -> None:
        """Play all blocks, then run what no command of the page has run."""
        self.pytester.syspathinsert()
        for block in blocks_of(text):
            self._block(block)
        if self.waiting:
            self._run_waiting()

    def _block(self, block: Block) -> None:
        by_language: Mapping[str, Callable[[Block], None]] = {
            "python": self._python,
            "text": self._text,
            "console": self._console,
            "pycon": _session,
            **dict.fromkeys(("ini", "toml", "json", "jsonl", "csv", "md"), self._file),
            **dict.fromkeys(("yaml", "groovy"), self._pipeline),
        }
        assert block.language in by_language, f"no block of {block.language!r} is run"
        by_language[block.language](block)

    def _file(self, block: Block) -> None:
        if block.language in ("json", "jsonl"):
            for text in [block.code] if block.language == "json" else block.code.splitlines():
                json.loads(text)
        if not block.title:
            return
        file = self.pytester.path / block.title
        assert file.resolve().is_relative_to(self.pytester.path.resolve()), f"{block.title} is outside of the folder"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.code, "utf-8")
        # A module of this name that another test imported is another one.
        if block.language == "python":
            self.patch.delitem(sys.modules, file.stem, raising=False)

    def _python(self, block: Block) -> None:
        self._number += 1
        code, name = block.code, block.title
        if not name and "def test_" not in code and ("def pytest_" in code or "@pytest.fixture" in code):
            name = "conftest.py"
        elif not name:
            name = f"test_block_{self._number}.py"
            code = code if "def test_" in code else _script(code)
        compile(code, name, "exec")
        self._file(Block(language="python", title=name, code=code))
        if re.match(r"(.*/)?test_[^/]*$", name):
            self.waiting[name] = len(re.findall(r"^(?:async )?def test_", code, re.MULTILINE))
        self._last = name

    def _text(self, block: Block) -> None:
        self.waiting.pop(self._last)
        result = self._pytest([self._last])
        assert result.ret == pytest.ExitCode.TESTS_FAILED, f"{self._last} fails nowhere: {result.stdout.str()}"
        shown = [re.sub(r"^E\s*(AssertionError: )?", "", line).strip() for line in result.outlines]
        _compare(shown, block.code)
        (self.pytester.path / self._last).unlink()

    def _run_waiting(self) -> None:
        expected = sum(self.waiting.values())
        result = self._pytest(list(self.waiting))
        self.waiting.clear()
        outcomes = result.parseoutcomes()
        # A gate waits for a baseline.
        assert outcomes.pop("skipped", 0) == result.stdout.str().count("against the baseline: skipped")
        assert set(outcomes) == {"passed"}, result.stdout.str()
        assert outcomes["passed"] >= expected, "a test was not run"

    def _console(self, block: Block) -> None:
        assert block.code.startswith("$ "), "a console begins with a command"
        for part in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
            command, _, shown = part.replace("\\\n", "").partition("\n")
            self._command(command, shown)

    def _pipeline(self, block: Block) -> None:
        self._file(block)
        if block.language == "yaml":
            text = "\n".join(_texts(yaml.safe_load(block.code)))
        else:
            text = "\n".join(re.findall(r"\bsh\(?\s*['\"]+(.*?)['\"]+\)?$", block.code, re.MULTILINE))
        commands = _COMMAND.findall(text)
        assert commands or not block.title, f"{block.title} runs nothing"
        self.patch.setenv("GITHUB_STEP_SUMMARY", str(self.pytester.path / "summary.md"))
        for command in commands:
            self._command(re.sub(r"\$\{\{.*?\}\}|\$\{?\w+\}?", "1", command), "")

    def _command(self, command: str, shown: str) -> None:
        words = shlex.split(command)
        while words and (assigned := _ASSIGNED.fullmatch(words[0])):
            self._set(*assigned.groups())
            words.pop(0)
        status = 1 if re.search(r"\b[1-9]\d* (?:failed|changed, \d+ gone)|^ragmetrics: ", shown, re.MULTILINE) else 0
        if words[:2] == ["python", "-m"]:
            words = [{"pytest_ragmetrics": "ragmetrics"}.get(words[2], words[2]), *words[3:]]
        program, *args = words
        if program == "export":
            for text in args:
                self._set(*text.split("=", 1))
        elif program == "pytest":
            self.waiting.clear()
            result = self._pytest(args)
            assert result.ret == status, result.stdout.str() + result.stderr.str()
            _compare([line.strip() for line in result.outlines], shown)
        elif program == "ragmetrics":
            self._ragmetrics(args, shown, status)
        elif program == "python":
            runpy.run_path(str(self.pytester.path / args[0]), run_name="__main__")
            _compare(self._said(), shown)
        else:
            assert program in _ELSEWHERE | {"venv"}, f"{program} is not run"
            _check_extras(args)

    def _ragmetrics(self, args: list[str], shown: str, status: int) -> None:
        self.capsys.readouterr()
        with self.patch.context() as patch:
            patch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")  # set for this suite, and a finding of the doctor's
            patch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")
            assert main(args) == status, self.capsys.readouterr()
        _compare(self._said(), shown)

    def _said(self) -> list[str]:
        out, err = self.capsys.readouterr()
        return [line.strip() for line in (out + err).splitlines()]

    def _set(self, name: str, value: str) -> None:
        if name not in _PROVIDER:
            self.patch.setenv(name, value)

    def _pytest(self, args: list[str]) -> pytest.RunResult:
        return self.pytester.runpytest_inprocess("-p", "ragmetrics", *args)


def _script(code: str) -> str:
    indented = textwrap.indent(code, "    ")
    if not re.search(r"^(?:\w+ = )?await ", code, re.MULTILINE):
        return f"def test_script():\n{indented}"
    return f"import asyncio\n\nasync def script():\n{indented}\ndef test_script():\n    asyncio.run(script())\n"


def _session(block: Block) -> None:
    test = doctest.DocTestParser().get_doctest(block.code, {}, "page", None, None)
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0, (
        "the session is another one"
    )


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in what YAML says."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _compare(said: list[str], shown: str) -> None:
    """Assert that the lines that a page shows are among those that were printed, in this order."""
    lines = (" ".join(line.split()) for line in said)
    for wanted in filter(None, (" ".join(line.split()) for line in shown.splitlines())):
        if wanted == "...":
            continue
        pattern = re.compile(".*".join(map(re.escape, wanted.split("..."))))
        assert any(pattern.fullmatch(line) for line in lines), f"not printed: {wanted}\n" + "\n".join(said)


def _check_extras(args: list[str]) -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    for extra in re.findall(r"pytest-ragmetrics\[([\w,-]+)\]", " ".join(args)):
        for name in extra.split(","):
            assert re.search(rf"^{name} = \[", project, re.MULTILINE), f"there is no extra {name}"
