"""Options and ini keys in a run, the files they make, and what loading the plugin costs."""

from __future__ import annotations

import sys

import pytest

from pytest_ragmetrics.plugin.settings import OPTIONS
from tests.plugin.conftest import ONE, RunPytest, write_files

TEST = "def test_it(): assert_quoted_spans_aligned(TRUE, SOURCE)"


def test_help_lists_every_option_and_ini_key(run: RunPytest) -> None:
    flags = [f"  {option.flag}*" for option in OPTIONS if option.flag]
    keys = [f"  {option.name} ({option.kind}):*" for option in OPTIONS if option.in_ini]
    run("--help").shows("RAG answer quality (pytest-ragmetrics):", *flags, *keys)
    wrong = "ERROR: --rag-report: 'page.pdf' is not a [*].html file: name one, *"
    run("--rag-report", "page.pdf", test_it=TEST).refused(wrong)


def test_markers_and_fixtures_are_listed(run: RunPytest) -> None:
    run("--markers").shows("@pytest.mark.rag_judge(spec): the judge of this test*")
    fixtures = run("--fixtures").stdout
    for name in ("rag_judge", "rag_embedder", "rag_cache"):
        fixtures.fnmatch_lines([f"{name} -- *", "    Return the *"])


@pytest.mark.parametrize("args", [["--rag-report"], ["test_it.py::test_it", "--rag-report"], ["--rag-report", "-q"]])
def test_the_report_has_a_default_name(run: RunPytest, args: list[str]) -> None:
    result = run(*args, test_it=TEST)
    result.shows(f"{result.folder / 'rag-report.html'}: written", passed=1)
    result.stdout.fnmatch_lines(["=* RAG metrics =*", "metric *"], consecutive=True)
    assert "open the valve slowly" in result.text("rag-report.html")
    hint = "name one, such as rag-report.html; --rag-report without a file goes behind the test paths"
    run("--rag-report", ".").refused(f"ERROR: --rag-report: '.' is not a *.html file: {hint}")


@pytest.mark.parametrize("args", [["--co"], ["-k", "nothing"], ["test_other.py"]])
def test_a_report_is_never_replaced_by_an_empty_one(run: RunPytest, pytester: pytest.Pytester, args: list[str]) -> None:
    files = [pytester.path / "page.html", pytester.path / "out.json"]
    for file in files:
        file.write_text("the last one")
    run("--rag-report=page.html", "--rag-json=out.json", *args, test_it=TEST, test_other="def test_other(): assert 0")
    assert {file.read_text() for file in files} == {"the last one"}


def test_the_plugin_is_called_ragmetrics(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    pytester.runpytest_subprocess("-pragmetrics", "--help").stdout.fnmatch_lines(["*--rag-report*"])


def test_without_the_plugin_its_helpers_still_assert(pytester: pytest.Pytester) -> None:
    write_files(pytester.path, test_it=TEST)
    pytester.runpytest_inprocess("-p", "no:ragmetrics", "-p", "no:cacheprovider").assert_outcomes(passed=1)


#: What a suite that does not use the plugin loads of it.
LIGHT = {"core", "core.files", "core.public_names", "core.running", "plugin"}
LIGHT |= {f"plugin.{name}" for name in ("budget", "cassette", "digest", "gates", "gates.plugin", "hookspec", "xdist")}
LIGHT |= {f"plugin.{name}" for name in ("markers", "observers", "recorder", "report", "rows", "rows.plugin", "session")}
LIGHT |= {"plugin.sentinels", "plugin.settings"}
#: What checks the options of one that names judge and embedder.
CHECKS = {"core.errors", "judges", "judges.specs", "judges.providers", "judges.providers.vendor"}
CHECKS |= {"judges.embedders", "judges.embedders.specs"}


@pytest.mark.parametrize(
    ("options", "loaded"),
    [((), LIGHT), (("--rag-judge=openai:m", "--rag-embedder=openai:m", "--rag-cassette=judge.jsonl"), LIGHT | CHECKS)],
    ids=["without options", "with a judge"],
)
def test_start_up_imports_nothing_heavy(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], loaded: set[str]
) -> None:
    heavy = {"openai", "numpy", "diskcache", "jinja2", "rapidfuzz", "sentencex", "pydantic", "filelock", "genai_prices"}
    # pdb, which pytest imports, imports asyncio from Python 3.14 on.
    heavy |= {"click", "sqlite3"} | ({"asyncio"} if sys.version_info < (3, 14) else set())
    # Without the folders of other runs, for which more is loaded to see whether they live.
    monkeypatch.setenv("TMPDIR", str(pytester.mkdir("temporary")))
    conftest = f"""
        import sys
        def pytest_unconfigure():
            print("HEAVY", sorted({heavy!r} & set(sys.modules)))
            print("OURS", *[name for name in sys.modules if name.startswith("pytest_ragmetrics.")])
    """
    pytester.makepyfile(test_plain="def test_plain(): pass", conftest=conftest)
    result = pytester.run(sys.executable, "-m", "pytest", "-p", "ragmetrics", "-s", *options)
    result.stdout.fnmatch_lines(["*HEAVY [[]]"])
    result.stdout.no_fnmatch_line("*RAG*")
    (ours,) = (line for line in result.outlines if line.startswith("OURS"))
    assert {name.removeprefix("pytest_ragmetrics.") for name in ours.split()[1:]} <= loaded


def test_options_that_pytest_did_not_read_are_named(run: RunPytest, pytester: pytest.Pytester) -> None:
    """Those in the folders from the tests up to the rootdir are named."""
    root = pytester.path
    for file, text in {
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = ''\nrag_owners = ['answer = @ana', 'run = @ben']\n",
        "setup.cfg": "[tool:pytest]\nrag_reasons = negative\n",
        "shop/tests/pytest.ini": "[pytest]\nrag_judge = local\n  rag_seed=1\n# rag_votes = 3\nrag_unknown = 1\n",
        "shop/tests/test_it.py": "def test_it(): pass\n",
        "shop/pyproject.toml": "[tool.pytest.ini_options]\n'rag_cassette' = 'a'\n",
        "shop/tox.ini": "[pytest]\naddopts =\n",
        "other/pytest.ini": "[pytest]\nrag_judge = local\n",
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text, "utf-8")
    result = run(*ONE, ".")
    said = f"not read, pytest took its options from {root / 'pyproject.toml'}"
    unread = ("setup.cfg: rag_reasons", "shop/pyproject.toml: rag_cassette", "shop/tests/pytest.ini: rag_judge, *")
    result.stdout.fnmatch_lines([f"{root / name} {said}" for name in unread], consecutive=True)
    assert result.stdout.str().count(" not read, ") == 3
