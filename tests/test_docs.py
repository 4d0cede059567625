"""The README and every page of the documentation: their blocks run, the reference is complete, the lists name all."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from make_reference import COMMAND, PACKAGE, commands, fixtures, hooks
from make_reference import MADE as FILES

import pytest_ragmetrics
from pytest_ragmetrics import cli, metrics
from pytest_ragmetrics.cli.docs import FOLDER, Page, _folded, pages, topic_text
from pytest_ragmetrics.cli.metrics import use_of
from pytest_ragmetrics.core import errors
from pytest_ragmetrics.core.public_names import module_of_names
from pytest_ragmetrics.core.sample import ALIASES, CAMEL_CASE, FIELDS, TALKS
from pytest_ragmetrics.datasets.rows import CONVERSATION, WRAPPERS
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.metrics.registry import built_in_metrics
from pytest_ragmetrics.plugin import MARKERS
from pytest_ragmetrics.plugin.settings import OPTIONS
from tests.fake_openai import FakeOpenAI
from tests.pages import ROOT, Play, blocks_of

README = (ROOT / "README.md").read_text("utf-8")
#: Pages whose blocks are examples of docstrings and signatures.
MADE = tuple(f"reference/{name}" for name in ("options", "pytest", "metrics", "tasks", "api", "json", "commands"))
PAGES = {"README": README, **{page.topic: page.text for page in pages() if page.topic not in MADE}}
_LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as running:
        yield running


@pytest.fixture
def play(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lasting_modules: None,
) -> Play:
    """Return what plays a page."""
    return Play(pytester=pytester, patch=monkeypatch, capsys=capsys)


# The recipes for providers are played by themselves.
@pytest.mark.parametrize("topic", [topic for topic in PAGES if topic != "how-to/providers"])
def test_every_block_of_a_page_runs(topic: str, play: Play, server: FakeOpenAI) -> None:
    variables = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-fake", "HOME": str(play.pytester.path)}
    for name, value in variables.items():
        play.patch.setenv(name, value)
    server.reset()
    text = re.sub(r"^```sh\n.*?^```$", "", PAGES[topic], flags=re.DOTALL | re.MULTILINE) if topic == "README" else None
    play.page(text or PAGES[topic])


def block(code: str, language: str = "console") -> str:
    return f"# Page\n\n```{language}\n{code}\n```\n"


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (block("$ ragmetrics docs secrets\n# Secrets of the sea"), "not printed: # Secrets of the sea"),
        (block("$ ragmetrics docs secrets\nragmetrics: there are none"), "CaptureResult"),
        (block("$ pytest\n1 failed in ..."), "no tests ran"),
        (block("$ sell everything"), "sell is not run"),
        (block("$ pip install pytest-ragmetrics[magic]"), "there is no extra magic"),
        (block("def test_it():\n    assert 0", "python"), "1 failed"),
        (block("assert False", "python"), "1 failed"),
        (block("Select 1", "sql"), "no block of 'sql' is run"),
        (block(">>> 1 + 1\n3", "pycon"), "the session is another one"),
        (block("[", 'toml title="../pytest.toml"'), "is outside of the folder"),
        (block("jobs: []", 'yaml title="ci.yml"'), "ci.yml runs nothing"),
        (block("x = 1", "python").replace("\n```\n", ""), "not closed"),
        (block("def test_it():\n    assert 0", "python") + block("assert 1", "text"), "not printed: assert 1"),
        (block("def test_it():\n    assert 1", "python") + block("assert 1", "text"), "fails nowhere"),
    ],
)
def test_a_page_that_is_wrong_fails(page: str, said: str, play: Play) -> None:
    with pytest.raises(AssertionError, match=re.escape(said)):
        play.page(page)


@pytest.mark.usefixtures("lasting_modules")
def test_the_shell_commands_of_the_readme_run_pytest_as_they_say(pytester: pytest.Pytester) -> None:
    first, second = (block.code.strip() for block in blocks_of(README) if block.language == "sh")
    install, _, job = first.partition(" && ")
    assert install == "python -m pip install ."
    python, *args = shlex.split(job)
    assert (python, *args[:2]) == ("python", "-m", "pytest")
    shutil.copytree(ROOT / args[2], pytester.path / args[2], ignore=shutil.ignore_patterns("__pycache__"))
    result = pytester.runpytest_inprocess(*args[2:], "-p", "no:cacheprovider")
    assert result.ret == 0
    assert (pytester.path / "rag-report.html").stat().st_size > 0
    assert second.endswith("&& python -m pytest -p xdist -n 3 --dist worksteal")


def test_the_readme_is_a_screen_and_a_half() -> None:
    """No line is wider than an editor, but for rows of tables; its price is one of the page of costs."""
    lines = README.splitlines()
    assert len(lines) <= 115
    assert [line for line in lines if len(line) > 130 and not line.startswith("|")] == []
    size, price = re.findall(r"with (.* characters) cost \[\$([\d.]+) per 1,000\]", README)[0]
    costs = (ROOT / "pytest_ragmetrics/docs/how-to/costs.md").read_text("utf-8")
    assert re.search(rf"^\| {size} \| [\d,]+, \d+ \| {price} \|", costs, re.MULTILINE)


@pytest.mark.parametrize("topic", [topic for topic in PAGES if topic != "README"])
def test_prose_is_wrapped_and_stands_in_short_paragraphs(topic: str) -> None:
    prose = re.sub(r"^```.*?^```$", "", PAGES[topic], flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in prose.splitlines() if not line.startswith(("|", "description: "))]
    assert [line for line in lines if len(line) > 130] == []
    paragraphs = re.split(r"\n\s*\n|\n(?=- |\d+\. )", "\n".join(lines))
    assert [text for text in paragraphs if text.strip().count("\n") >= 4 and "---" not in text] == []


@pytest.mark.parametrize(
    "place", ["README.md", *(f"pytest_ragmetrics/docs/{topic}.md" for topic in PAGES if topic != "README")]
)
def test_links_lead_somewhere(place: str) -> None:
    """A relative link names a file; headings of pages are checked where the site is built."""
    file = ROOT / place
    links = [link.partition("#")[0] for link in _LINK.findall(file.read_text("utf-8"))]
    missing = [link for link in links if link and "://" not in link and not (file.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("make", FILES)
def test_what_is_made_of_the_code_is_committed(make: Callable[[], dict[str, str]]) -> None:
    stale = [place for place, text in make().items() if (PACKAGE / place).read_text("utf-8") != text]
    assert not stale, f"write them again: {COMMAND}"


def test_examples_of_the_reference_import_what_they_use() -> None:
    text = "".join(page.text for page in pages() if page.topic in MADE)
    lines = set(re.findall("^>>> (from .* import .*)$", text, re.MULTILINE))
    assert len(lines) > 80
    for line in sorted(lines):
        exec(line, {})
    assert len(re.findall("^```pycon\n>>> from ", text, re.MULTILINE)) > 80


NAMES = {
    "metric": [name for kind in built_in_metrics() for name in (kind.__name__, kind.name, *kind.aliases)],
    "option": [name for it in OPTIONS for name in (it.flag, it.environment, it.name if it.in_ini else None) if name],
    "marker": [line.partition("(")[0] for line in MARKERS],
    "fixture": list(fixtures()),
    "hook": [name for name, _ in hooks()],
    "public name": [*module_of_names(pytest_ragmetrics.__name__), *module_of_names(metrics.__name__)],
    "task": [name for name in vars(tasks) if name[0].isupper() and isinstance(getattr(tasks, name), type)],
    "command": [name for name, _ in commands()],
}


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    listed = {name: command.short_help for name, command in cli.COMMANDS.commands.items()}
    assert listed == {name: cli.load(name).help for name in listed}


@pytest.mark.parametrize("what", NAMES)
def test_every_name_has_an_entry(what: str) -> None:
    assert len(NAMES[what]) >= 4
    known = {_folded(name) for page in pages() for names, _ in page.entries() for name in names}
    assert [name for name in NAMES[what] if _folded(name) not in known] == []


@pytest.mark.parametrize(
    ("topic", "first"),
    [
        ("tutorial", "# Tutorial: from nothing to a calibrated gate"),
        ("how-to/ci", "# Run it in CI"),
        ("CI", "# Run it in CI"),
        ("how-to/ci.md", "# Run it in CI"),
        ("faithfulness", "## Faithfulness"),
        ("ResponseRelevancy", "## AnswerRelevancy"),
        ("recall@k", "## RecallAtK"),
        ("--rag-max-cost", "## `--rag-max-cost`"),
        ("RAGMETRICS_CACHE_SECRET", "## `RAGMETRICS_CACHE_SECRET`"),
        ("rag_max_cost", "## `--rag-max-cost`"),
        ("assert-faithful", "## Faithfulness"),
        ("assert_retrieved", "### `assert_retrieved`"),
        ("Evaluation.mean", "#### `Evaluation.mean`"),
        ("report diff", "## `ragmetrics report diff`"),
        ("Three outcomes", "## Three outcomes"),
        ("../explanation.md#calibration", "## Calibration"),
        ("reference/metrics#faithfulness", "## Faithfulness"),
        ("#azure", "## Azure"),
        ("./how-to/ci", "# Run it in CI"),
        ("@pytest.mark.rag_gate('faithfulness', mean=0.8)", "### `rag_gate`"),
        ("pytest_ragmetrics.assert_faithful(answer)", "## Faithfulness"),
        ("--rag-judge=openai:gpt-6-luna", "## `--rag-judge`"),
        ("rag_cache = replay", "## `--rag-cache`"),
        ("ndcg@10", "## NDCG"),
        ("deepeval", "# Move a suite from DeepEval"),
        ("notebook", "# Notebooks and scripts"),
        ("cassette", "## Cassettes"),
        ("timeout", "## `--rag-timeout`"),
    ],
)
def test_topics(topic: str, first: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["docs", *topic.split(" ")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == first


def test_pages_of_an_archive_are_read(tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "docs"), "zip", FOLDER)
    assert pages(zipfile.Path(archive)) == pages()


def test_an_entry_ends_where_the_next_begins() -> None:
    assert len(re.findall("^#", topic_text("faithfulness"), re.MULTILINE)) == 1
    assert topic_text("rag_judge").count("rag_judge(spec)") == 1
    text = "# T\n\nIt is *short*. More.\n\n## A\n\n```console\n## no heading\n```\n\n### B\n\n## C\n"
    page = Page(topic="t", text=text)
    assert [names[0] for names, _ in page.entries()] == ["A", "B", "C"]
    assert [text.count("#") for _, text in page.entries()] == [7, 3, 2]
    assert (page.title, page.summary) == ("T", "It is *short*.")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], [" "], ["index"], ["how-to"], ["reference/"]])
def test_pages_are_listed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["docs", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    folder = arguments[0] if arguments in (["how-to"], ["reference/"]) else ""
    wanted = [page.topic for page in pages() if page.topic.startswith(folder)]
    assert [line.split(" ")[0] for line in lines[4:]] == wanted
    assert lines[4].startswith(f"{wanted[0]}  ")


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("Balanced Accuracy", "no topic 'Balanced Accuracy': it is mentioned in tutorial, "),
        ("GEval", "no topic 'GEval': 'GEval' is of DeepEval: write SimpleCriteria("),
        ("xyzzyx", "no topic 'xyzzyx': `ragmetrics docs` lists all of them"),
        ("--rag-max-coast", "no topic '--rag-max-coast': did you mean --rag-max-cost"),
    ],
)
def test_what_is_no_topic_leads_to_those_that_are(topic: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["docs", *topic.split(" ")])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_a_page_goes_to_what_there_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    paged: list[str] = []
    monkeypatch.setattr("click.echo_via_pager", paged.append)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    assert cli.main(["docs", "secrets"]) == 0
    assert paged[0].startswith("# Secrets")
    assert capsys.readouterr().out == ""
    assert cli.main(["docs", "faithfulness"]) == 0
    prose = re.sub("^```.*?^```$", "", paged[1], flags=re.DOTALL | re.MULTILINE)
    assert max(map(len, prose.splitlines())) <= 60 < max(map(len, paged[1].splitlines()))
    assert (
        prose.split() == re.sub("^```.*?^```$", "", topic_text("faithfulness"), flags=re.DOTALL | re.MULTILINE).split()
    )
    monkeypatch.setattr("sys.stdout", None)
    assert cli.main(["docs"]) == 0
    sys.stdout.close()


def test_a_terminal_gets_paragraphs_of_its_width_and_code_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    paged: list[str] = []
    monkeypatch.setattr("click.echo_via_pager", paged.append)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "72")
    for page in pages():
        assert cli.main(["docs", page.topic]) == 0
        shown, text = paged.pop(), page.text.strip()
        assert [it.code for it in blocks_of(f"{shown}\n")] == [it.code for it in blocks_of(f"{text}\n")]
        assert re.sub(r"\W", "", shown) == re.sub(r"\W", "", re.sub(r"!\[(.*?)\]\(.*?\)", r"picture \1", text))
        prose = re.sub(r"^```.*?^```$", "", shown, flags=re.DOTALL | re.MULTILINE)
        assert [line for line in prose.split("\n") if len(line) > 72 and " " in line.strip()] == []


def test_each_line_of_the_page_by_symptom_can_be_called() -> None:
    text = PAGES["how-to/which-metric"]
    lines = re.findall(r"^\|.*\| `(assert_\w+\(.*\))` \|$", text, re.MULTILINE)
    assert len(lines) > 30
    for line in lines:
        call = ast.parse(line, mode="eval").body
        assert isinstance(call, ast.Call)
        helper = getattr(pytest_ragmetrics, ast.unparse(call.func))
        inspect.signature(helper).bind(*call.args, **{str(word.arg): word.value for word in call.keywords})
    named = re.findall(r"^\| [^|]+ \| `(\w+)` \| ", text, re.MULTILINE)
    assert set(named) <= {kind.name for kind in built_in_metrics()}


def _texts_of_the_code() -> Iterator[str]:
    """Yield the texts in the package, a blank for what a format string puts in."""
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(it.value) if isinstance(it, ast.Constant) else "\0" for it in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


#: What a heading has of pytest, of a name of a variable, or of the value of a field.
FILLED = {"OPENAI_API_KEY": "\0", "OPENAI_BASE_URL": "\0", "needs a judge": "needs \0 \0"}


def test_messages_of_the_troubleshooting_page_are_those_of_the_code() -> None:
    """Each is printed so, a part between dots in one text, and every class of errors is on the page."""
    page = next(page.text for page in pages() if page.topic == "how-to/troubleshooting")
    code = "\n".join(_texts_of_the_code())
    shown = re.findall("^### `(.+)`$", page, re.MULTILINE)
    assert len(shown) >= 30
    parts = [part.strip() for text in shown[:-2] for part in text.split("...")]
    for name, put in FILLED.items():
        parts = [part.replace(name, put) for part in parts]
    assert [part for part in parts if part.strip(" ,;:") and part not in code] == []
    kinds = [it for it in vars(errors).values() if isinstance(it, type) and issubclass(it, Exception)]
    assert len(kinds) >= 11
    assert [kind.__name__ for kind in kinds if f"`{kind.__name__}`" not in page] == []


def test_every_metric_says_when_to_use_it_and_what_it_cannot_see() -> None:
    uses = {kind.__name__: use_of(kind) for kind in built_in_metrics()}
    assert [name for name, use in uses.items() if not re.fullmatch(r"Use it when [^\n]{15,115}[.\"]", use)] == []
    text = " ".join(next(page.text for page in pages() if page.topic == "reference/metrics").split())
    assert text.count(" Use it when ") == len(set(uses.values())) == len(built_in_metrics())
    assert [kind.__name__ for kind in built_in_metrics() if len(kind.blind_spots) < 20] == []


def test_every_field_of_a_row_is_described() -> None:
    text = next(page.text for page in pages() if page.topic == "reference/rows")
    extra = [name for kind in built_in_metrics() for name in kind.extra_inputs]
    aliases = [alias for names in ALIASES.values() for alias in names]
    every = {*FIELDS, *aliases, *TALKS, *CONVERSATION, *WRAPPERS, *extra, "ground_truths", "additional_metadata"}
    every |= CAMEL_CASE.keys()
    assert [name for name in sorted(every) if f"`{name}`" not in text] == []
