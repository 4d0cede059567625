"""Every code block of the README is run, and shows what it says it shows."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

import pytest_ragmetrics
from pytest_ragmetrics.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)
PYTHON = [code for language, code in BLOCKS if language == "python"]
#: The example that is meant to fail, with the text that follows it.
FAILING = next(code for code in PYTHON if "nine minutes" in code)
SAID = next(code for language, code in BLOCKS if language == "text")


@pytest.fixture(scope="module", autouse=True)
def _lasting_modules() -> None:
    """Import what a run inside a test imports, and would forget while the package still knows functions of it."""
    for module in ("numpy", "diskcache", "pytest_ragmetrics.engine"):
        import_module(module)
    for name in dir(pytest_ragmetrics):
        getattr(pytest_ragmetrics, name)


def test_every_kind_of_block_is_known() -> None:
    """A block in a language that no test here runs would go unchecked."""
    assert {language for language, _ in BLOCKS} == {"sh", "python", "text", "console"}
    assert len(README.splitlines()) <= 300


@pytest.mark.parametrize("code", [code for code in PYTHON if code != FAILING])
def test_python_blocks_run(pytester: pytest.Pytester, code: str) -> None:
    """A block with tests passes as a test module; a block without any runs as a script."""
    if "def pytest_" in code:
        pytester.makeconftest(code)
        code = "def test_with_this_conftest():\n    pass\n"
    module = code if "def test_" in code else f"def test_script():\n{re.sub('^', '    ', code, flags=re.MULTILINE)}"
    pytester.makepyfile(test_block=module)
    result = pytester.runpytest_inprocess("-p", "ragmetrics", "--rag-judge=local", "--rag-embedder=local")
    outcomes = result.parseoutcomes()
    assert set(outcomes) == {"passed"}
    assert outcomes["passed"] >= module.count("def test_")


def test_the_failing_example_fails_as_shown(pytester: pytest.Pytester) -> None:
    """The failure printed in the README is the one that pytest prints."""
    pytester.makepyfile(test_block=FAILING)
    result = pytester.runpytest_inprocess("-p", "ragmetrics")
    result.assert_outcomes(failed=1)
    shown = [re.sub(r"^E\s*(AssertionError: )?", "", line).strip() for line in result.outlines]
    wanted = [line.strip() for line in SAID.splitlines()]
    assert [line for line in shown if line in wanted] == wanted


def test_the_shell_commands_run_pytest_as_they_say(pytester: pytest.Pytester) -> None:
    """The first command makes a report of the example that it names; the second runs this very suite."""
    first, second = (code.strip() for language, code in BLOCKS if language == "sh")
    install, _, job = first.partition(" && ")
    assert install == "python -m pip install ."
    python, *args = shlex.split(job)
    assert (python, *args[:2]) == ("python", "-m", "pytest")
    example = args[2]
    copy_tree(ROOT / example, pytester.path / example)
    result = pytester.runpytest_inprocess(*args[2:], "-p", "no:cacheprovider")
    assert result.ret == 0
    assert (pytester.path / "rag-report.html").stat().st_size > 0
    assert second.endswith("&& python -m pytest -p xdist -n 2")


def copy_tree(source: Path, target: Path) -> None:
    """Copy the files of an example, without what running it left behind."""
    for path in source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())


def test_console_blocks_work(pytester: pytest.Pytester) -> None:
    """The command after each prompt runs with the options it shows."""
    pytester.makepyfile(test_block=next(code for code in PYTHON if "test_the_whole_set" in code))
    for line in "".join(code for language, code in BLOCKS if language == "console").splitlines():
        prompt, program, *args = shlex.split(line)
        assert prompt == "$"
        if program == "pytest":
            assert pytester.runpytest_inprocess("-p", "ragmetrics", *args).ret == pytest.ExitCode.OK
        else:
            assert program == "ragmetrics"
            assert main(args) == 0
    assert {"quality.html", "quality.json", "summary.md", "all.html"} <= {path.name for path in Path.cwd().iterdir()}
