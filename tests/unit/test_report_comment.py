"""`ragmetrics report comment`, against a server that keeps comments as GitHub and GitLab do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from pytest_ragmetrics.cli import main
from pytest_ragmetrics.records import Document, render_json
from pytest_ragmetrics.report.comment import COMMENT_LIMIT, MARKER, annotation_lines, render_comment
from pytest_ragmetrics.report.markdown import render_markdown
from pytest_ragmetrics.run_comparison import compare_documents
from tests.documents import HOSTILE, document, gate, hostile, record, row, usage
from tests.unit.conftest import Call

TOKEN = "ghs_0123456789abcdefghijABCDEFGHIJ012345"
ACTION = Path(__file__).parents[2] / ".github" / "actions" / "ragmetrics"


class CodeHost(ThreadingHTTPServer):
    """A server with the comments of one pull request.

    ``login`` is who the token belongs to, who may not ask that where it is ``None``. ``failures`` are the statuses of
    the next replies to a method, with headers; ``race`` is called before a comment is made.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: dict[int, dict[str, Any]] = {}
        self.login: str | None = None
        self.page_size = 100
        self.asked: list[str] = []
        self.failures: dict[str, list[tuple[int, dict[str, str]]]] = {}
        self.race: Callable[[], object] = lambda: None
        self.numbers = iter(range(1, 10_000))

    def add(self, body: str, login: str = "github-actions[bot]", kind: str = "Bot") -> dict[str, Any]:
        """Keep a comment and return it."""
        number = next(self.numbers)
        author = {"login": login, "username": login, "type": kind}
        self.comments[number] = {"id": number, "body": body, "user": author, "author": author}
        return self.comments[number]

    @property
    def bodies(self) -> list[str]:
        """The texts that stand there."""
        return [each["body"] for each in self.comments.values()]

    @property
    def changes(self) -> list[str]:
        """The requests that were no GET."""
        return [each for each in self.asked if not each.startswith("GET")]


class Handler(BaseHTTPRequestHandler):
    """Answers as the REST APIs of GitHub and GitLab."""

    server: CodeHost

    def answer(self) -> None:
        """Answer any method."""
        address = urlsplit(self.path)
        self.server.asked.append(f"{self.command} {address.path}")
        sent = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        waiting = self.server.failures.get(self.command, [])
        allowed = TOKEN in (self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN") or "")
        if waiting:
            status, headers = waiting.pop(0)
            self.reply(status, {"message": f"Resource not accessible by {TOKEN}"}, headers)
        elif not allowed:
            self.reply(401, {"message": "Bad credentials"})
        elif address.path == "/user":
            login = self.server.login
            self.reply(200 if login else 403, {"login": login, "username": login})
        elif address.path.endswith(("/issues/7/comments", "/merge_requests/7/notes")):
            self.all_comments(sent, int(parse_qs(address.query).get("page", ["1"])[0]))
        else:
            self.one_comment(sent, int(address.path.rpartition("/")[2]))

    def all_comments(self, sent: dict[str, str], page: int) -> None:
        """List a page of comments, or make one."""
        if self.command == "POST":
            self.server.race()
            login = self.server.login
            made = self.server.add(sent["body"], login, "User") if login else self.server.add(sent["body"])
            self.reply(201, made)
            return
        start, end = (page - 1) * self.server.page_size, page * self.server.page_size
        more = {"Link": '<http://elsewhere.invalid/>; rel="next"'} if end < len(self.server.comments) else {}
        self.reply(200, list(self.server.comments.values())[start:end], more)

    def one_comment(self, sent: dict[str, str], number: int) -> None:
        """Change or remove a comment."""
        if number not in self.server.comments:
            self.reply(404, {"message": "Not Found"})
        elif self.command == "DELETE":
            del self.server.comments[number]
            self.reply(204, None)
        else:
            self.server.comments[number]["body"] = sent["body"]
            self.reply(200, self.server.comments[number])

    def reply(self, status: int, data: object, headers: dict[str, str] | None = None) -> None:
        """Send JSON."""
        content = b"" if data is None else json.dumps(data).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer  # noqa: N815 - as http.server calls them

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def host() -> Iterator[CodeHost]:
    """Run the server."""
    with CodeHost() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def call(tmp_path: Path, host: CodeHost, monkeypatch: pytest.MonkeyPatch, ragmetrics: Call) -> Call:
    """Call the command on two runs, in the environment of a job of either host; no output may hold the token."""
    (tmp_path / "event.json").write_text('{"pull_request": {"number": 7}}', encoding="utf-8")
    api = f"http://127.0.0.1:{host.server_port}"
    variables = {
        "GITHUB_REPOSITORY": "acme/bot",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_REF": "",
        "GITHUB_API_URL": api,
        "GITHUB_TOKEN": TOKEN,
        "CI_API_V4_URL": api,
        "CI_PROJECT_ID": "12",
        "CI_MERGE_REQUEST_IID": "7",
        "GITLAB_TOKEN": TOKEN,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    Path("new.json").write_text(render_json(run(0.2)), encoding="utf-8")
    Path("old.json").write_text(render_json(run(0.9)), encoding="utf-8")

    def run_command(*options: str) -> tuple[int, str, str]:
        status, out, err = ragmetrics("report", "comment", "new.json", *options)
        assert TOKEN not in out + err
        return status, out, err

    return run_command


def run(score: float, name: str = "test_a[(x)]") -> Document:
    """Return a run of one test."""
    outcome: Any = "passed" if score > 0.5 else "failed"
    return document(row(name, record("faithfulness", score, outcome=outcome), outcome=outcome))


@pytest.mark.parametrize(
    ("option", "name", "update"),
    [
        ("--github", "pull request 7 of acme/bot", "PATCH /repos/acme/bot/issues/comments/2"),
        ("--gitlab", "merge request 7 of project 12", "PUT /projects/12/merge_requests/7/notes/2"),
    ],
)
@pytest.mark.parametrize("login", [None, "helper"])
def test_there_is_one_comment(
    call: Call, host: CodeHost, *, option: str, name: str, update: str, login: str | None
) -> None:
    """It is made once and changed after; what others wrote stays, even with the marker."""
    host.login = login
    host.add(f"{MARKER} mine", "mallory", "User")
    assert call(option) == (0, f"{name}: comment created\n", "")
    assert call(option) == (0, f"{name}: comment unchanged\n", "")
    host.add("thanks", login or "dependabot[bot]")
    assert [each.partition(" ")[0] for each in host.changes] == ["POST"]
    assert call(option, "--baseline=old.json", "--page=https://ci.example/page.html") == (
        *(0, f"{name}: comment updated\n", ""),
    )
    assert host.changes[1:] == [update]
    assert (host.bodies[0], host.bodies[2]) == (f"{MARKER} mine", "thanks")
    new, old = run(0.2), run(0.9)
    page = "https://ci.example/page.html"
    assert host.bodies[1] == render_comment(new, comparison=compare_documents(new, old), page=page)
    link = f"({page}#tests/test_assistant.py::test_a%5B%28x%29%5D)"
    assert host.bodies[1].count(link) == 2
    assert "- [worse: tests/test_assistant.py" in host.bodies[1]


def test_comments_of_all_pages_are_looked_at(call: Call, host: CodeHost) -> None:
    """The comment is found behind hundreds of others."""
    host.page_size = 3
    for number in range(7):
        host.add(f"comment {number}", "reader", "User")
    host.add(f"{MARKER}\nold")
    assert call("--github")[1].endswith("comment updated\n")
    assert len(host.comments) == 8
    assert host.asked.count("GET /repos/acme/bot/issues/7/comments") == 3


def test_two_jobs_leave_one_comment(call: Call, host: CodeHost) -> None:
    """The job that finds an older comment after making its own removes that, and puts its text into the older one."""
    host.race = lambda: host.add(f"{MARKER}\nof the other job")
    assert call("--github") == (0, "pull request 7 of acme/bot: comment updated\n", "")
    assert host.bodies == [render_comment(run(0.2))]
    assert list(host.comments) == [1]
    host.comments.clear()
    host.failures = {"DELETE": [(404, {})]}
    assert call("--github") == (0, "pull request 7 of acme/bot: comment updated\n", "")
    host.comments.clear()
    host.race = lambda: None
    host.failures = {"POST": [(502, {"Retry-After": "0"})]}
    threads = [threading.Thread(target=main, args=(["report", "comment", "new.json", "--github"],)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert host.bodies == [render_comment(run(0.2))]


@pytest.mark.parametrize(
    ("method", "failure", "status", "said"),
    [
        ("POST", (403, {}), 3, "not posted: pull request 7 of acme/bot: POST /repos/acme/bot/issues/7/comments: "),
        ("POST", (403, {}), 3, "status 403, Resource not accessible by *** (the token of GITHUB_TOKEN may not comment"),
        ("GET", (401, {}), 1, "status 401, Resource not accessible by *** (the token of GITHUB_TOKEN is not valid)"),
        ("POST", (404, {}), 1, "(it does not exist, or the token of GITHUB_TOKEN may not read it)"),
        ("POST", (422, {}), 1, "status 422"),
        ("POST", (307, {"Location": "/elsewhere"}), 1, "status 307"),
        ("GET", (301, {"Location": "http://127.0.0.1:9/elsewhere"}), 1, "status 301"),
    ],
)
def test_refusals_are_told(call: Call, host: CodeHost, method: str, failure: Any, *, status: int, said: str) -> None:
    """What cannot pass is not tried again and told with the status of the API; no redirect is followed."""
    host.failures = {method: [failure]}
    found, out, err = call("--github")
    assert found == status
    assert said in (out if status == 3 else err)
    assert "elsewhere" not in "".join(host.asked)
    assert len(host.asked) == (3 if method == "POST" else 1)
    assert not host.comments


@pytest.mark.parametrize("failure", [(500, {}), (503, {}), (429, {}), (403, {"X-RateLimit-Remaining": "0"})])
def test_what_may_pass_is_tried_again(call: Call, host: CodeHost, failure: tuple[int, dict[str, str]]) -> None:
    """Failures of the server and limits are waited for as long as Retry-After says, four attempts in all."""
    kind = (failure[0], {"Retry-After": "0", **failure[1]})
    host.failures = {"GET": [kind] * 3, "POST": [kind] * 3}
    assert call("--github")[:2] == (0, "pull request 7 of acme/bot: comment created\n")
    host.failures = {"PATCH": [kind] * 9}
    status, out, err = call("--github", "--page=https://ci.example/")
    assert (status, out) == (1, "")
    assert f"PATCH /repos/acme/bot/issues/comments/1: status {failure[0]}" in err
    assert len(host.failures["PATCH"]) == 5


@pytest.mark.parametrize(
    ("option", "name", "value", "said"),
    [
        ("--github", "GITHUB_REPOSITORY", "", "GITHUB_REPOSITORY is not set: it is OWNER/NAME"),
        ("--github", "GITHUB_REPOSITORY", "a/b/../c", "GITHUB_REPOSITORY is not OWNER/NAME"),
        ("--github", "GITHUB_TOKEN", " ", "GITHUB_TOKEN is not set: pass the step env: GITHUB_TOKEN: ${{ github.token"),
        ("--github", "GITHUB_TOKEN", f"{TOKEN}\nX: y", "GITHUB_TOKEN is not one word of ASCII characters"),
        ("--github", "GITHUB_EVENT_PATH", "", "neither GITHUB_EVENT_PATH nor GITHUB_REF (refs/pull/NUMBER/merge) name"),
        ("--github", "GITHUB_EVENT_PATH", "new.json", "neither GITHUB_EVENT_PATH nor GITHUB_REF"),
        ("--github", "GITHUB_EVENT_PATH", "none.json", "GITHUB_EVENT_PATH=none.json cannot be read"),
        ("--github", "GITHUB_API_URL", "file:///etc", "GITHUB_API_URL is not the address of an API, https://..."),
        ("--gitlab", "CI_API_V4_URL", "", "CI_API_V4_URL is not set"),
        ("--gitlab", "CI_PROJECT_ID", "", "CI_PROJECT_ID is not set: it is a number"),
        ("--gitlab", "CI_MERGE_REQUEST_IID", "", "CI_MERGE_REQUEST_IID is not set: it is a number; only pipelines of"),
        ("--gitlab", "GITLAB_TOKEN", "", "GITLAB_TOKEN is not set: a project access token with the scope api"),
    ],
)
def test_what_the_environment_lacks_is_named(
    call: Call, host: CodeHost, monkeypatch: pytest.MonkeyPatch, *, option: str, name: str, value: str, said: str
) -> None:
    """The message names the variable, and nothing is asked."""
    monkeypatch.setenv(name, value)
    status, out, err = call(option)
    assert (status, out, host.asked) == (1, "", [])
    assert said in err


def test_the_number_is_also_read_from_the_ref(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workflow on a pull request has it in GITHUB_REF, too; without a number in the event that counts."""
    monkeypatch.delenv("GITHUB_EVENT_PATH")
    monkeypatch.setenv("GITHUB_REF", "refs/pull/7/merge")
    assert call("--github")[1] == "pull request 7 of acme/bot: comment created\n"


def test_a_server_that_is_no_api_is_an_error(call: Call, host: CodeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other JSON than comments is told with the address."""
    host.comments[1] = {"id": "one"}
    assert "the reply is no comment; is http://127.0.0.1:" in call("--github")[2]


def test_a_dry_run_prints_and_asks_nothing(call: Call, host: CodeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs no environment; annotations come first."""
    monkeypatch.delenv("GITHUB_TOKEN")
    status, out, _ = call("--github", "--dry-run", "--annotations")
    assert (status, host.asked) == (0, [])
    note = (
        "::error file=tests/test_assistant.py,line=12,title=tests/test_assistant.py%3A%3Atest_a[(x)]::"
        "faithfulness 0.20, needed ≥ 0.90"
    )
    assert out == f"{note}\n{render_comment(run(0.2))}"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "one of the arguments --github --gitlab is required"),
        (["--github", "--gitlab"], "not allowed with"),
        (["--gitlab", "--annotations"], "only GitHub Actions reads workflow commands"),
        (["--github", "--page=page.html"], "'page.html' is no address of a page: write https://..., without #"),
        (["--github", "--page=https://ci.example/#x"], "without #"),
        (["--github", "--page=javascript:alert(1)"], "is no address"),
    ],
)
def test_wrong_options_are_refused(call: Call, options: list[str], said: str) -> None:
    """The message says what to write."""
    status, _, err = call(*options)
    assert status == 2
    assert said in err


REFERENCES = "@octocat @acme/team #12 acme/bot#12 GH-12 gh-3 !45 &6 user@example.com /close"


@pytest.mark.parametrize("text", [*HOSTILE, REFERENCES, "/close", MARKER, "a | b | c\n| d |", "](http://x) [y]("])
def test_foreign_texts_do_nothing(text: str) -> None:
    """No text mentions somebody, refers to something, leaves its row, its link or its line, or forges the marker."""
    failed = record("faithfulness", 0.1, outcome="failed", reason=text)
    made = document(row(f"test[{text}]", failed, outcome="failed", file=text), row(text, gate=gate(text)), notes=[text])
    old = document(row(f"test[{text}]", record("faithfulness", 0.9), file=text))
    comparison = compare_documents(made, old)
    body = render_comment(made, comparison=comparison, page="https://ci.example/p")
    assert body.count("<") == 1
    assert body.startswith(MARKER)
    plain = re.sub(r"&#([0-9]+);", lambda found: chr(int(found[1])), re.sub(r"`[^`\n]*`", "", body))
    assert not re.search(r"[@#]\w|[!&][0-9]|\bgh-[0-9]", re.sub(r"\(https://ci.example\S*\)", "", plain), re.IGNORECASE)
    assert not re.search(r"^\s*/|##\[|^\s*::", body, re.MULTILINE)
    summary = re.sub(r"`[^`\n]*`", "", body).replace(" ", "")
    assert summary.count("](") == summary.count("](https://ci.example/p#") == summary.count("[") <= 3
    tables = [line for line in body.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in tables} == {7}
    for line in annotation_lines(made):
        properties, _, said = line.removeprefix("::error ").partition("::")
        assert line.startswith("::error file=") or not text.strip()
        assert properties.count(",") == 2
        assert not re.search(r"%(?!25|3A|2C)|[\r\n]", properties + said)


@pytest.mark.parametrize("letter", ["x", "@", "😀", "|"])
def test_a_long_comment_is_cut_at_a_row(letter: str) -> None:
    """Whatever the texts, the limit of the API holds, whole rows and the cost remain, and how much is cut is said."""
    rows = [run(0.1, f"test_{n}").tests[0] for n in range(60)]
    long = [
        replace(
            each,
            id=letter * 300 + each.id,
            file=letter * 290,
            message=letter * 900,
            records=(replace(each.records[0], metric=f"{letter * 300}{number}", reason=letter * 900, usage=usage()),),
        )
        for number, each in enumerate(rows)
    ]
    made = document(*long)
    old = document(*(replace(each, records=(replace(each.records[0], score=0.9),), outcome="passed") for each in long))
    comparison, page = compare_documents(made, old), "https://ci.example/p"
    body = render_comment(made, comparison=comparison, page=page)
    whole = render_markdown(made, comparison=comparison, page=page, changes=20)
    assert len(body.encode("utf-16-le")) // 2 <= COMMENT_LIMIT
    cut = re.search(r"\n\nand ([0-9]+) more lines(\n\n.*tokens.*  \n)$", body, re.DOTALL)
    assert (cut is None) == (letter not in "@|")
    if cut is None:
        assert body == f"{MARKER}\n{whole}"
        return
    kept = body[len(MARKER) + 1 : cut.start()]
    assert whole.startswith(f"{kept}\n")
    assert whole.endswith(cut[2])
    left_out = whole[len(kept) : len(whole) - len(cut[2])]
    assert left_out.count("\n") == int(cut[1]) > 1
    assert len(body) + len(left_out.split("\n")[1]) > COMMENT_LIMIT


def test_the_limit_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comment of just the limit is whole; with one character less it is cut, and within the limit."""
    made = document(*(run(0.1, f"test_{n}").tests[0] for n in range(9)), notes=["a note"])
    whole = f"{MARKER}\n{render_markdown(made)}"
    monkeypatch.setattr("pytest_ragmetrics.report.comment.COMMENT_LIMIT", len(whole))
    assert render_comment(made) == whole
    monkeypatch.setattr("pytest_ragmetrics.report.comment.COMMENT_LIMIT", len(whole) - 1)
    cut = render_comment(made)
    assert "more lines\n\na note" in cut
    assert len(cut) < len(whole)


def test_ten_annotations_at_most() -> None:
    """The worst come first, gates too, and a test without a line has none."""
    rows = [run(n / 40, f"test_{n}").tests[0] for n in range(19, -1, -1)]
    found = list(annotation_lines(document(*rows, replace(rows[0], id="g", line=None, gate=gate(outcome="failed")))))
    assert len(found) == 10
    assert "test_0::" in found[1]
    assert found[0].startswith("::error file=tests/test_assistant.py,title=g::mean faithfulness 0.830, needed")
    assert not list(annotation_lines(document(run(0.9).tests[0])))
    assert len(list(annotation_lines(hostile()))) <= 10


@pytest.fixture(name="steps")
def steps_of_the_action() -> list[dict[str, Any]]:
    """Return the steps of the action as GitHub reads them."""
    read: list[dict[str, Any]] = yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))["runs"]["steps"]
    return read


def test_the_action_is_pinned_and_takes_inputs_as_variables(steps: list[dict[str, Any]]) -> None:
    """Other actions are named by a commit with its version; no input is part of a script; pytest sees no token."""
    text = (ACTION / "action.yml").read_text("utf-8")
    for line in re.findall(r"uses: .*", text):
        assert re.fullmatch(r"uses: actions/[a-z-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+", line)
    scripts = [step for step in steps if "run" in step]
    assert not any("${{" in step["run"] for step in scripts)
    assert ["GITHUB_TOKEN" in step["env"] for step in scripts] == [False, True]
    readme = (ACTION / "README.md").read_text("utf-8")
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    job = yaml.safe_load(example)["jobs"]["test"]
    assert job["permissions"] == {"contents": "read", "pull-requests": "write"}
    declared = yaml.safe_load(text)["inputs"]
    assert set(job["steps"][-1]["with"]) <= set(declared)
    assert set(re.findall(r"inputs\.(\w+)", text)) == set(declared)


@pytest.mark.parametrize(
    ("failures", "baseline", "status"),
    [({}, "", 0), ({"POST": [(403, {})]}, "old.json", 0), ({"POST": [(404, {})]}, "", 1)],
)
def test_the_action_comments(
    call: Call, host: CodeHost, steps: list[dict[str, Any]], *, failures: Any, baseline: str, status: int
) -> None:
    """The script posts what the run wrote; a fork does not fail it, another error does."""
    host.failures = failures
    page = "https://ci.example/a b'$(exit 9)"
    env = {**os.environ, "JSON": "new.json", "BASELINE": baseline, "PAGE": page, "PYTHONPATH": str(ACTION.parents[2])}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps[-1]["run"]]
    done = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert ("::error file=" in done.stdout) == (status == 0)
    assert [each.count("https://ci.example/a%20b%27$%28exit%209%29#tests") for each in host.bodies] == [1] * (
        not failures
    )
