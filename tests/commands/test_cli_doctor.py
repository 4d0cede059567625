"""The `ragmetrics doctor` command, against servers, folders and settings that are in order and that are not."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.cache.cassette import Cassette
from pytest_ragmetrics.cache.entry import key_of, new_entry
from pytest_ragmetrics.cache.remote import pack
from pytest_ragmetrics.cache.store import Store
from pytest_ragmetrics.cli import main
from pytest_ragmetrics.cli.cache import folder_findings
from pytest_ragmetrics.cli.command import local_modules
from pytest_ragmetrics.cli.probes.first_request import TASK
from pytest_ragmetrics.judges.prices import cheaper_successor
from pytest_ragmetrics.judges.providers.vendor import OPENAI
from pytest_ragmetrics.judges.rendering import PromptBook, render
from pytest_ragmetrics.judges.tasks import ListClaims
from pytest_ragmetrics.judges.transports.values import Reply
from tests.fake_openai import FakeOpenAI, failing
from tests.fake_openai import Reply as Sent

Call = Callable[..., str]
SUPPORTED = '{"number": 2, "reason": "It says so.", "sentences": [2], "verdict": "supported"}'
UNSUPPORTED = '{"number": 1, "reason": "It costs.", "sentences": [], "verdict": "unsupported"}'
RIGHT = f'{{"verdicts": [{UNSUPPORTED}, {SUPPORTED}]}}'
ROW = {"task": "list_claims", "kind": "openai", "model": "fake", "number": 1}
ENTRY = new_entry(key_of(ROW), ROW, Reply(text="{}"), salt="", redact=None)
INI = "rag_judge = local\nrag_cache_dir = kept\nrag_cassette = judge.jsonl\n"
TOML = 'rag_judge = "local"\nrag_cache_dir = "kept"\nrag_cassette = "judge.jsonl"\n'
MODULE = "pytest_ragmetrics.plugin"
TWICE = f"loads {MODULE} by its module, a second time"
NOT_ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
NO_START = "TO DO  pytest:    it does not start here: "
CANNOT = " (RAGMETRICS_CACHE_URL) cannot be used: "


@pytest.fixture(autouse=True)
def _empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Start in an empty folder, without variables of providers and of this plugin."""
    for variable in list(os.environ):
        if variable.startswith(("OPENAI_", "ANTHROPIC_", "RAGMETRICS_", "PYTEST_")):
            monkeypatch.delenv(variable)
    # Imported by a pytest that runs no tests, it takes all later tests of this process for its initialization.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


@pytest.fixture
def server(named_server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> FakeOpenAI:
    named_server.key = "sk-right"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-right")
    return named_server


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the command, check its status, that each text is in its output and no key; return the output."""

    def run(expected: int, said: Sequence[str], *arguments: str) -> str:
        status = main(["doctor", *arguments])
        out, err = capsys.readouterr()
        assert (status, err) == (expected, ""), out
        assert [text for text in said if text not in out] == []
        assert "sk-" not in out
        return out

    return run


def test_all_is_well(server: FakeOpenAI, call: Call) -> None:
    said = (
        f"OPENAI_API_KEY is set, OPENAI_BASE_URL is {server.base_url}",
        "openai:fake (--judge) answers and takes the schema of an answer; it tells a true statement from a false one\n",
        "plugin:    loaded by pytest as ragmetrics",
    )
    assert call(0, said, "--judge=openai:fake").endswith("all well\n")
    assert server.calls == 1
    assert not list(Path.cwd().iterdir())


def test_a_cheaper_successor_is_named(server: FakeOpenAI, call: Call) -> None:
    """It is no fault to ask an older model; of ``auto`` the reason is given."""
    name, times = cheaper_successor("openai", "gpt-5.4-mini") or ("", 0)
    said = f"price:     openai:gpt-5.4-mini costs {times:.1f} times as much as openai:{name}, which is newer\n"
    assert call(0, [said], "--judge=openai:gpt-5.4-mini?service_tier=flex").endswith("all well\n")
    call(0, [f"price:     auto is {OPENAI.auto['judge']}: no newer model of the provider costs less\n"])
    assert "price" not in call(0, [], "--judge=panel:openai:fake,local")
    assert server.calls == 3


def test_each_judge_of_a_panel_is_asked(server: FakeOpenAI, call: Call) -> None:
    Cassette(Path("judge.jsonl")).save({ENTRY.key: ENTRY}, complete=True)
    said = (
        *(f"openai:{model} (--judge) answers and takes the schema of an answer" for model in ("fake", "newer")),
        "local (heuristic) (--judge) answers by rule",
        "to record openai:newer\n",
    )
    call(1, said, "--judge=panel:openai:fake,local,openai:newer", "--cassette=judge.jsonl")
    assert server.calls == 2


@pytest.mark.parametrize(
    ("refuses", "said"),
    [
        ({"json_schema"}, "has JSON mode and no schemas"),
        ({"json_schema", "json_object"}, "has neither schemas nor JSON mode"),
        ({"temperature"}, "takes the schema"),
    ],
)
def test_the_form_of_output_is_named(server: FakeOpenAI, call: Call, refuses: set[str], said: str) -> None:
    """It is the one that was negotiated; JSON inside of prose will do, prose alone will not."""
    server.refuses = frozenset(refuses)
    call(0, [said], "--judge=openai:fake")
    server.script(f"Sure! {RIGHT}")
    call(0, ["puts other text around its JSON"], "--judge=openai:fake")


TOO_SMALL = [
    "TO DO  judge:     openai:fake (--judge) answers and takes the schema of an answer; it does not tell a true stat",
    "-> it is too small to judge: name a larger model; `ragmetrics probe --judge openai:fake` measures it\n",
]
HOUSE = f"""
def judge():
    return lambda prompt: {RIGHT!r}
def _once(vector):
    def embed(texts, asked=[]):
        assert not asked and len(texts) > len(set(texts)) > 5
        asked += texts
        return [vector(sorted({{*texts}}).index(text), len({{*texts}})) for text in texts]
    return lambda: embed
flat = _once(lambda place, _: [1, place / 20])
across = _once(lambda place, size: [0] * place + [1] + [-1e-5] * (size - place - 1))
nought = _once(lambda place, _: [0, 0])
"""
# What the prompt of the task has for an example.
ECHO = (
    '{"verdicts":[{"number":1,"reason":"It says so.","sentences":[1],"verdict":"supported"},'
    '{"number":2,"reason":"No year is given.","sentences":[],"verdict":"unsupported"}]}'
)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (ECHO, TOO_SMALL),
        (RIGHT.replace('[], "verdict": "unsupported"', '[1], "verdict": "supported"'), TOO_SMALL),
        (RIGHT.replace('[2], "verdict": "supported"', '[], "verdict": "unsupported"'), TOO_SMALL),
        # It fits the schema, and names no sentence, one that is not there, or one claim twice.
        *((RIGHT.replace(*new), TOO_SMALL) for new in (("[2]", "[]"), ("[2]", "[9]"), ('"number": 2', '"number": 1'))),
        ('{"verdicts": []}', TOO_SMALL),
        ("Sure! I think that it refuses.", ["I think that it refuses"]),
        (failing(401), ["-> openai:fake: the key was refused; check OPENAI_API_KEY"]),
        (failing(404, "No such model."), ["knows no model fake (No such model.); check its name and OPENAI_BASE_"]),
        (failing(503), ["the server failed with status 503"]),
        (failing(400, "The key sk-right is odd."), ["The key *** is odd."]),
    ],
)
def test_a_judge_that_cannot_judge(server: FakeOpenAI, call: Call, reply: Sent | str, said: list[str]) -> None:
    assert ECHO in render(TASK, PromptBook())[1]
    server.script(reply)
    assert call(1, said, "--judge=openai:fake").endswith("1 thing to do\n")
    assert server.calls == 1


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ("", 1, ["ANTHROPIC_API_KEY is not set", "auto (the default) does not answer", "Three ways on"]),
        ("--judge=openai:fake", 1, ["needs a key: set OPENAI_API_KEY"]),
        ("--judge=local", 0, ["local (heuristic) (--judge) answers by rule, and measures no application"]),
        ("--judge=lodge:judge", 0, ["keeps to the form asked for"]),
        ("--judge=nowhere:make", 1, ["nowhere:make makes no judge"]),
        ("--judge=local --embedder=nowhere:make", 1, ["nowhere:make makes no embedder"]),
        # Each embedder has a place of its own for unrelated texts; all of it is one call.
        ("--judge=local --embedder=local", 0, ["512 numbers; unrelated texts lie at -0.", "at 1.00: a min= of "]),
        ("--judge=local --embedder=lodge:flat", 0, ["2 numbers; unrelated texts lie at 0.97 to 1.00, identical ones"]),
        ("--judge=local --embedder=lodge:across", 0, ["6 numbers; unrelated texts lie at 0.00 to 0.00, identical"]),
        ("--judge=local --embedder=lodge:nought", 1, ["-> a vector of zeros has no cosine similarity"]),
    ],
)
def test_without_a_provider(call: Call, arguments: str, status: int, said: Sequence[str]) -> None:
    Path("lodge.py").write_text(HOUSE, encoding="utf-8")
    assert ("keys:" in call(status, said, *arguments.split())) is ("_API_KEY" in said[0])


def test_a_server_that_is_gone(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeOpenAI() as gone:
        url = gone.base_url.replace("//", "//me:secret@") + "/key-secret?pass=secret"
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("OPENAI_API_KEY", "key-secret")
    assert "secret" not in call(1, ["//***@127.0.0.1", "cannot be reached"], "--judge=openai:fake")


def test_an_embedder_is_asked_where_one_is_named(server: FakeOpenAI, call: Call) -> None:
    args = ("--judge=local", "--embedder=openai:vectors")
    lie = "unrelated texts lie at 0.40 to 0.65, identical ones at 1.00"
    said = f"openai:vectors (--embedder) answers with vectors of 64 numbers; {lie}: a min= of answer_relevancy or "
    call(0, [f"{said}semantic_similarity belongs to this embedder\n"], *args)
    assert server.calls == 1
    server.script(failing(404, "No such model."))
    call(1, ["knows no model vectors"], *args)


def test_a_folder_that_cannot_be_written(call: Call, tmp_path: Path) -> None:
    """Answers could not be stored there, or not read, as those of another account; a file is no folder."""
    Path("file").write_text("", encoding="utf-8")
    call(1, ["file is not a folder"], "--judge=local", "--dir=file/cache")
    said = ["x cannot be written: File name too long", "x: File name too long"]
    call(1, said, "--judge=local", f"--dir={'x' * 300}", f"--cassette={'x' * 300}")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if getattr(os, "geteuid", lambda: 1)() == 0:
        closed = Path("/proc/self")  # where not even root can make a file
    call(1, ["cannot be written", "--rag-cache-dir=DIR"], "--judge=local", f"--dir={closed / 'cache'}")
    theirs = Path("/")
    if getattr(os, "geteuid", lambda: 1)() == 0:
        theirs = tmp_path / "theirs"
        theirs.mkdir()
        os.chown(theirs, 12345, -1)
    call(int(theirs == Path("/")), ["it belongs to another account"], "--judge=local", f"--dir={theirs}")


def test_the_cache_is_described(call: Call) -> None:
    with Store(Path("kept")) as store:
        store.put(ENTRY)
    call(0, ["kept: 1 answer,"], "--judge=local", "--dir=kept")
    Path("bad").mkdir()
    call(0, ["bad: empty"], "--judge=local", "--dir=bad")
    Path("bad/cache.db").write_text("no database, for sure" * 100, encoding="utf-8")
    call(1, ["not a database", "the next run moves it aside"], "--judge=local", "--dir=bad")


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "ext4", None])
def test_network_file_systems(tmp_path: Path, kind: str | None) -> None:
    """The mount that the folder is on decides, not one above it; only Linux has a list of mounts."""
    mounts = tmp_path / "mounts"
    if kind is not None:
        mounts.write_text(f"root / nfs rw\n\nhere {tmp_path.resolve()} {kind} rw 0 0\n", encoding="utf-8")
    found = list(folder_findings(tmp_path / "cache", mounts))
    said = f"{tmp_path} is on a network file system ({kind}), where SQLite is not safe"
    warned = [text for text, to_do in found if to_do and "network file system" in text]
    assert warned == ([said] if kind in ("nfs4", "cifs") else [])


def test_the_shared_cache_is_tried(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv("RAGMETRICS_CACHE_URL", shared.as_uri())
    said = [f"{shared.as_uri()} (RAGMETRICS_CACHE_URL): readwrite, ", " ms a request, secret not set, ", "; 0 answers"]
    to_do = "-> set the same RAGMETRICS_CACHE_SECRET wherever it is written, or set rag_cache_url_mode = read"
    call(1, [*said, "whoever can write there decides what tests read", to_do], "--judge=local")
    for name, value in (("RAGMETRICS_CACHE_SECRET", "ours"), ("RAGMETRICS_CACHE_URL_MODE", "read")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert call(0, [], "--judge=local").endswith("all well\n")
    assert [path.name for path in shared.rglob("*") if path.is_file()] == ["probe"]
    for key, parcel in ((ENTRY.key, pack(ENTRY, "ours")), (f"{1:064x}", pack(ENTRY)[:-1])):
        file = shared / "v1" / "answers" / key[:2] / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(parcel)
    monkeypatch.setenv("RAGMETRICS_CACHE_URL_MODE", "read")
    call(1, [": read, ", "1 of 2 answers looked at are refused", "replaced"], "--judge=local")
    monkeypatch.setenv("RAGMETRICS_CACHE_SECRET", "theirs")
    Path("pytest.ini").write_text("[pytest]\nrag_cassette = none.jsonl\n", encoding="utf-8")
    said = ["secret set; 2 of 2 answers", "it is not used, as there is a cassette"]
    assert "theirs" not in call(1, said, "--judge=local")


def test_cassettes(server: FakeOpenAI, call: Call) -> None:
    Cassette(Path("judge.jsonl")).save({ENTRY.key: ENTRY}, complete=True)
    text = "judge.jsonl: 1 answer of openai:fake, 0 vectors"
    call(0, [text], "--judge=local", "--cassette=judge.jsonl")
    call(0, [text], "--judge=openai:fake", "--cassette=judge.jsonl")
    call(1, [text, "to record openai:newer"], "--judge=openai:newer", "--cassette=judge.jsonl")
    call(1, ["nothing.jsonl does not exist"], "--judge=local", "--cassette=nothing.jsonl")
    system, user = render(ListClaims(text="Moths fly."), PromptBook())
    asked = {said: {**ROW, "messages": [{"content": system}, {"content": said}]} for said in (user, f"{user[:-9]} ")}
    recorded = [new_entry(key_of(row), row, Reply(text="{}"), salt="", redact=None) for row in asked.values()]
    # In a redacted one a word of the prompt may be missing.
    clean = {**asked[user], "vote": 1}
    recorded.append(new_entry(key_of(clean), clean, Reply(text="{}"), salt="", redact=lambda text: text[5:]))
    Cassette(Path("old.jsonl")).save({entry.key: entry for entry in recorded}, complete=True)
    old = "old.jsonl: 1 of 3 answers are of other prompts than those of this version (list_claims)"
    call(1, [old, "record them anew"], "--judge=local", "--cassette=old.jsonl")
    with Path("judge.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"key": \n')
    said = ("judge.jsonl:2: not an entry of a cassette", "delete that line")
    call(1, said, "--judge=local", "--cassette=judge.jsonl")
    # A replay asks nothing, and the cassette must be there.
    Path("pytest.ini").write_text("[pytest]\nrag_cache = replay\nrag_cassette = replayed.jsonl\n", encoding="utf-8")
    call(1, ["auto is not asked: answers are replayed", "replayed.jsonl does not exist"])
    Cassette(Path("replayed.jsonl")).save({ENTRY.key: ENTRY}, complete=True)
    before = server.calls
    call(0, ())
    assert server.calls == before


@pytest.mark.parametrize(
    ("name", "text"), [("pyproject.toml", f"[tool.pytest.ini_options]\n{TOML}"), ("setup.cfg", f"[tool:pytest]\n{INI}")]
)
def test_settings_of_the_folder_count(call: Call, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")
    Path("below").mkdir()
    root = Path.cwd()
    monkeypatch.chdir("below")
    made = (f"{root / 'kept'} will be made", f"{root / 'judge.jsonl'} will be recorded")
    call(0, [f"local (heuristic) (rag_judge in {name})", *made])
    monkeypatch.setenv("RAGMETRICS_JUDGE", "local")
    call(0, ["local (heuristic) (RAGMETRICS_JUDGE)"])


def test_wrong_settings(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("pytest.ini").write_text("[pytest]\nrag_jugde = local\nrag_xyz = 1\nrag_votes = many\n", encoding="utf-8")
    said = (
        "write rag_judge, or take it out",
        "rag_xyz is no setting of this plugin",
        "'many' is not a whole number of at least 1",
        "RAGMETRICS_CONCURRENCY is not usable",
        f"{Path.cwd() / '.ragmetrics'} will be made when the first answer is kept",
    )
    Path("below").mkdir()
    with monkeypatch.context() as patch:
        patch.setenv("RAGMETRICS_CONCURRENCY", "0")
        patch.chdir("below")
        assert call(1, said, "--judge=local").endswith("4 things to do\n")
    # The hook of a conftest.py may know judges that the plugin does not.
    Path("pytest.ini").write_text("[pytest]\nrag_judge = our judge\n", encoding="utf-8")
    call(1, ["is not usable"], "--judge=local")
    call(1, ["our judge (rag_judge in pytest.ini) does not answer"])
    Path("tests").mkdir()
    Path("tests/conftest.py").write_text("def pytest_ragmetrics_make_judge(config, spec): ...\n", encoding="utf-8")
    call(0, ["our judge (rag_judge in pytest.ini) is up to a hook in conftest.py"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"rag_judge = local\n", "pytest.ini:1: no section header defined"),
        (b"[pytest]\n\xff", "pytest.ini: "),
        (b"[pytest]\naddopts = '", "pytest.ini: "),
    ],
)
def test_a_file_of_settings_that_cannot_be_read(capsys: pytest.CaptureFixture[str], content: bytes, said: str) -> None:
    Path("pytest.ini").write_bytes(content)
    assert main(["doctor"]) == 1
    assert said in capsys.readouterr().err


def write(files: Mapping[str, str]) -> None:
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")


def adding(options: str) -> dict[str, str]:
    return {"pyproject.toml": f'[tool.pytest.ini_options]\naddopts = "-ra {options}"\n'}


@pytest.mark.parametrize(
    ("files", "variables", "said"),
    [
        ({}, {"RAGMETRICS_CACHE_URL": "file:///nowhere/at/all"}, ["shared:    file:///nowhere/at/all (RAGM", CANNOT]),
        ({}, {"RAGMETRICS_CACHE_URL": "redis://me:hidden@127.0.0.1:1/0?password=hidden"}, ["redis://127.0.0.1:1/0 "]),
        ({}, {"RAGMETRICS_CACHE_URL": "ftp://me:hidden@host"}, ["'ftp://host' is none of s3://"]),
        # The plugin may be loaded twice, or not at all.
        (adding(f"-p {MODULE}"), {}, [f"addopts {TWICE}"]),
        (adding("-q -p no:ragmetrics"), {}, ["addopts switches the plugin off"]),
        ({}, {"PYTEST_PLUGINS": f"pytester,{MODULE}"}, [f"PYTEST_PLUGINS {TWICE}"]),
        ({"conftest.py": f'pytest_plugins = [\n    "{MODULE}",\n]\n'}, {}, ["pytest_plugins in ", TWICE]),
        ({}, NOT_ALONE, ["add -p ragmetrics to the addopts"]),
        (adding("--disable-plugin-autoload"), {}, ["--disable-plugin-autoload is given, and nothing loads"]),
        (adding(f"-p {MODULE}"), NOT_ALONE, []),
        ({}, {**NOT_ALONE, "PYTEST_ADDOPTS": "-p ragmetrics"}, []),
        # A pytest that does not start.
        ({"conftest.py": "raise RuntimeError('no\\nwork')"}, {}, ["RuntimeError: no work (from {here}/conftest.py)"]),
        ({"tests/conftest.py": "import sys\nsys.exit(3)"}, {}, ["SystemExit: 3 (from {here}/tests/conftest.py)"]),
        ({"conftest.py": "def ("}, {}, [NO_START, "SyntaxError: invalid syntax"]),
        ({"tox.ini": "[pytest]\naddopts = --nowhere -s"}, {}, ["arguments: --nowhere inifile: {here}/tox.ini"]),
        ({"pytest.ini": "[pytest]\naddopts = -p nowhere"}, {}, [NO_START, 'Error importing plugin "nowhere"']),
        ({"setup.cfg": "[tool:pytest]\nminversion = 99"}, {}, ["{here}/setup.cfg: 'minversion' requires pytest-99"]),
    ],
)
def test_one_fault_is_told(call: Call, monkeypatch: pytest.MonkeyPatch, files: Any, variables: Any, said: Any) -> None:
    """It is told in a line, without a password; the rest is checked with the settings that were read."""
    Path("tests").mkdir()
    write(files)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    out = call(int(bool(said)), [text.format(here=Path.cwd()) for text in said], "--judge=local")
    assert out.endswith("1 thing to do\n" if said else "all well\n")
    assert not re.search("hidden|Traceback", out)


def test_what_pytest_itself_would_do(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options in addopts come first, xdist starts no worker, no test is run, nothing is printed and no file written."""
    here = Path("é 試験")
    here.mkdir()
    monkeypatch.chdir(here)
    addopts = "-p like_cov -s -n 2 --rag-judge=local --junitxml=junit.xml -p no:cacheprovider -W error"
    # pytest-cov erases its data here, unless it is switched off.
    erasing = "early_config.known_args_namespace.no_cov or open('erased', 'w')"
    texts = {
        "like_cov.py": f"def pytest_load_initial_conftests(early_config): {erasing}",
        "pytest.ini": f"[pytest]\npythonpath = .\naddopts = {addopts}\nrag_judge = openai:gone\n",
        "conftest.py": "import os\nos.chdir('/')\nprint('imported')\ndef pytest_configure(): print('configured')\n",
        "test_all.py": "open('collected', 'w')\n",
    }
    write(texts)
    path, streams = list(sys.path), (sys.stdout, sys.stderr)
    out = call(0, ["judge:     local (heuristic) (--rag-judge) answers by rule", f"settings:  {Path.cwd()}"])
    assert not re.search("imported|configured", out)
    assert {file.name for file in Path.cwd().iterdir()} == set(texts)
    assert (path, streams) == (sys.path, (sys.stdout, sys.stderr))


def _distribution(site: Path, name: str, points: str = "") -> None:
    info = site / f"{name}-7.4.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 7.4\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(points, encoding="utf-8")


def test_an_installation_that_is_there_twice(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A distribution that registers the same module is a second one; a package without metadata is never loaded."""
    _distribution(tmp_path / "site", "renamed", "[pytest11]\nrenamed = pytest_ragmetrics.plugin\n")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path / "site")
        call(1, ["the plugin is installed twice"], "--judge=local")
    _distribution(tmp_path / "old", "pytest")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "old"), *(p for p in sys.path if "site-packages" not in p)])
    said = ("pytest 7.4, pytest-ragmetrics (not installed)", 'pip install "pytest>=8.4"')
    call(1, ["the plugin is not installed", *said], "--judge=local")


@pytest.mark.parametrize(
    ("specs", "is_found"),
    [
        ((None, "auto"), False),
        (("openai:o3", "sentence-transformers:models"), False),
        (("panel:local,anthropic:claude", "local"), False),
        (("house:judge", None), True),
        (("panel: openai:o3, house.models:judge", None), True),
        (("auto", "house:embedder"), True),
    ],
)
def test_the_modules_of_the_current_folder(specs: tuple[str | None, ...], is_found: bool) -> None:
    """They can be imported only where one is asked for, and come behind every installed one."""
    before = list(sys.path)
    with local_modules(*specs):
        assert sys.path == [*before, str(Path.cwd())] if is_found else sys.path == before
    assert sys.path == before
