"""Options, ini keys and their errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ragmetrics.settings import OPTIONS

README = Path(__file__).parents[2] / "README.md"

RunPytest = Callable[..., pytest.RunResult]

TEST = """
    from pytest_ragmetrics import assert_quoted_spans_aligned
    from texts import SOURCE, TRUE
    def test_it():
        assert_quoted_spans_aligned(TRUE, SOURCE)
"""


def test_help_lists_every_option_and_ini_key(run: RunPytest) -> None:
    """--help shows the options in a group of their own and the ini keys, each with a line on what it does."""
    flags = [f"  {option.flag}*" for option in OPTIONS if option.flag]
    keys = [f"  {option.name} (string):*" for option in OPTIONS if option.in_ini]
    run("--help").stdout.fnmatch_lines(["RAG answer quality (pytest-ragmetrics):", *flags, *keys])


def test_markers_and_fixtures_are_listed(run: RunPytest) -> None:
    """--markers and --fixtures show ours, each with a line on what it does."""
    run("--markers").stdout.fnmatch_lines(["@pytest.mark.rag_judge(spec): the judge of this test*"])
    fixtures = run("--fixtures").stdout
    for name in ("rag_judge", "rag_embedder", "rag_cache"):
        fixtures.fnmatch_lines([f"{name} -- *", "    Return the *"])


def test_the_readme_lists_every_setting() -> None:
    """The table of settings in the README has every option, variable and key, in the order they are defined."""
    table = "".join(line for line in README.read_text("utf-8").splitlines() if line.startswith("| "))
    for option in OPTIONS:
        names = [option.flag, option.environment, option.name if option.in_ini else None]
        assert all(name in table for name in names if name), option.field


def test_the_report_has_a_default_name(run: RunPytest, pytester: pytest.Pytester) -> None:
    """--rag-report alone writes rag-report.html where pytest was started, and says so."""
    result = run("--rag-report", test_it=TEST)
    assert "open the valve slowly" in (pytester.path / "rag-report.html").read_text("utf-8")
    result.stdout.fnmatch_lines([f"{pytester.path / 'rag-report.html'}: written"])


def test_ini_paths_start_at_the_rootdir(
    run: RunPytest, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path in the ini means the same wherever pytest is started; one on the command line starts there."""
    pytester.makeini("[pytest]\nrag_report = reports/page.html\nrag_json = reports/all.json")
    folder = pytester.mkdir("sub")
    pytester.makepyfile(**{"sub/test_it": TEST})
    monkeypatch.chdir(folder)
    run("--rag-json=mine.json").assert_outcomes(passed=1)
    assert (pytester.path / "reports/page.html").is_file()
    assert (folder / "mine.json").is_file()
    assert not (pytester.path / "reports/all.json").exists()


def test_a_folder_of_a_model_in_the_ini_starts_at_the_rootdir(
    run: RunPytest, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found from wherever pytest is started; what is no folder there is a name."""
    folder = pytester.mkdir("tiny")
    pytester.makeini("[pytest]\nrag_judge = nli:tiny")
    monkeypatch.chdir(pytester.mkdir("sub"))
    run("--rag-cache=off", test_it=TEST).stdout.fnmatch_lines([f"ragmetrics: judge nli:{folder}, *"])
    run("--rag-judge=nli:tiny", test_it=TEST).stdout.fnmatch_lines(["ragmetrics: judge nli:tiny, *"])


def test_an_empty_override_switches_the_ini_off(run: RunPytest, pytester: pytest.Pytester) -> None:
    """-o rag_report= turns off what the ini turned on."""
    pytester.makeini("[pytest]\nrag_report = page.html")
    run("-o", "rag_report=", test_it=TEST).assert_outcomes(passed=1)
    assert not (pytester.path / "page.html").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["--rag-report", "test_it.py"],
            "--rag-report: 'test_it.py' is not a [*].html file: write --rag-report=FILE.html*",
        ),
        (["--rag-report="], "--rag-report: '' is not a [*].html file*"),
        (["--rag-json="], "--rag-json: '' is no file name: name a file"),
        (["--rag-cache=sometimes"], "--rag-cache: 'sometimes' is none of auto, replay, refresh, off"),
        (["--rag-judge=gpt-5"], "--rag-judge: 'gpt-5' is none of auto, local, openai:MODEL, *"),
        (["--rag-judge=nli:"], "--rag-judge: 'nli:' is none of auto, local, openai:MODEL, *nli:MODEL_OR_FOLDER, *"),
        (["--rag-concurrency=0"], "--rag-concurrency: '0' is not a whole number of at least 1"),
        (["--rag-timeout=soon"], "--rag-timeout: 'soon' is not a number of at least 0.001"),
        (["-o", "rag_prompts=nowhere"], "ini option rag_prompts: 'nowhere' is not a folder*"),
        (["--rag-report=folder.html"], "--rag-report: 'folder.html' is a folder: name a file"),
        (
            ["--rag-json=texts.py/out.json"],
            "--rag-json: 'texts.py/out.json' cannot be written: no file can be made in *",
        ),
        (["-o", "rag_report=page.pdf"], "ini option rag_report: 'page.pdf' is not a [*].html file*"),
    ],
)
def test_a_wrong_value_is_a_usage_error(run: RunPytest, pytester: pytest.Pytester, args: list[str], said: str) -> None:
    """A wrong value ends the run with status 4 before any test, naming the option and what to write instead."""
    (pytester.path / "folder.html").mkdir()
    result = run(*args, test_it=TEST)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}"])
    result.stdout.no_fnmatch_line("*passed*")


@pytest.mark.parametrize("args", [["--co"], ["-k", "nothing"], ["test_other.py"]])
def test_a_report_is_never_replaced_by_an_empty_one(run: RunPytest, pytester: pytest.Pytester, args: list[str]) -> None:
    """A run that scored nothing leaves the last report as it is."""
    page = pytester.path / "page.html"
    page.write_text("the last one")
    run("--rag-report=page.html", *args, test_it=TEST, test_other="def test_other(): assert 0")
    assert page.read_text() == "the last one"


def test_a_report_that_cannot_be_written_harms_nothing_else(run: RunPytest, pytester: pytest.Pytester) -> None:
    """A file that turns out to be unwritable at the end is told of; the tests' outcome and the other file stand."""
    result = run(
        "--rag-report=blocked/page.html",
        "--rag-json=out.json",
        test_it=TEST + "\n    def test_block():\n        open('blocked', 'w').close()\n",
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*page.html: NOT written, *", "*out.json: written"])


def test_no_parts_are_left_behind(run: RunPytest, pytester: pytest.Pytester) -> None:
    """Files appear whole, readable by others as any file, with no temporary file beside them."""
    run("--rag-report=out/page.html", "--rag-json=out/all.json", test_it=TEST)
    assert sorted(path.name for path in (pytester.path / "out").iterdir()) == ["all.json", "page.html"]
    ordinary = pytester.path / "ordinary"
    ordinary.touch()
    assert (pytester.path / "out/page.html").stat().st_mode == ordinary.stat().st_mode


@pytest.mark.parametrize("autoload", ["on", "off"])
@pytest.mark.parametrize("args", [["-pragmetrics"], ["-p", "ragmetrics"]])
def test_the_plugin_is_called_ragmetrics(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, autoload: str, args: list[str]
) -> None:
    """-p ragmetrics loads the plugin, with plugin autoloading on and off."""
    if autoload == "off":
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    else:
        monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    result = pytester.runpytest_subprocess(*args, "--help")
    result.stdout.fnmatch_lines(["*--rag-report*"])


def test_without_the_plugin_its_helpers_still_assert(pytester: pytest.Pytester, run: RunPytest) -> None:
    """-p no:ragmetrics switches the plugin off; the helpers are ordinary functions."""
    del run
    pytester.makepyfile(test_it=TEST)
    result = pytester.runpytest_subprocess("-p", "no:ragmetrics", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)


def test_start_up_imports_nothing_heavy(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Collecting a suite that does not use the plugin loads none of the libraries behind the metrics."""
    heavy = {"openai", "numpy", "diskcache", "jinja2", "rapidfuzz", "sentencex", "pydantic", "filelock", "genai_prices"}
    # Other plugins import what they like.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_plain="def test_plain(): pass")
    pytester.makeconftest(
        f"""
        import sys
        def pytest_unconfigure():
            print("LOADED", sorted({heavy!r} & set(sys.modules)), "pytest_ragmetrics.plugin" in sys.modules)
        """
    )
    for args in (["--co"], []):
        result = pytester.run(sys.executable, "-m", "pytest", "-p", "ragmetrics", "-s", *args)
        result.stdout.fnmatch_lines(["*LOADED [[]] True"])


def test_one_folder_may_hold_the_report_of_a_read_only_suite(run: RunPytest, tmp_path: Path) -> None:
    """An absolute path outside the rootdir is as good as any."""
    run(f"--rag-report={tmp_path / 'elsewhere' / 'page.html'}", test_it=TEST).assert_outcomes(passed=1)
    assert (tmp_path / "elsewhere/page.html").is_file()
