"""`ragmetrics report comment`, and the action that posts what it writes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_ragmetrics.report.comment import COMMENT_LIMIT, annotation_lines, render_comment
from pytest_ragmetrics.report.markdown import render_markdown
from pytest_ragmetrics.runs.compare import compare_documents
from pytest_ragmetrics.runs.records import Document, render_json
from tests import fake_gh
from tests.documents import HOSTILE, document, gate, hostile, record, row, usage
from tests.unit.conftest import Call

ACTION = Path(__file__).parents[2] / ".github" / "actions" / "ragmetrics"
#: The first line of a comment on a run without a title.
MARKER = render_comment(document()).partition("\n")[0]
REFERENCES = "@octocat @acme/team #12 acme/bot#12 GH-12 gh-3 !45 &6 user@example.com /close"
TEXT = f"{MARKER}\nümlaut, `code` and $(exit 9)\n\n@-file"


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ragmetrics: Call) -> Call:
    monkeypatch.chdir(tmp_path)
    Path("new.json").write_text(render_json(run(0.2)), encoding="utf-8")
    Path("old.json").write_text(render_json(run(0.9)), encoding="utf-8")
    return lambda *options: ragmetrics("report", "comment", "new.json", *options)


def run(score: float, name: str = "test_a[(x)]") -> Document:
    outcome: Any = "passed" if score > 0.5 else "failed"
    return document(row(name, record("faithfulness", score, outcome=outcome), outcome=outcome))


def test_the_comment_is_printed_or_written(call: Call) -> None:
    page = "https://ci.example/page.html"
    comparison = compare_documents(run(0.2), run(0.9))
    body = render_comment(run(0.2), comparison=comparison, page=page)
    options = ["--baseline=old.json", f"--page={page}"]
    assert call(*options) == (0, body, "")
    assert call(*options, "-o", "comment.md") == (0, "comment.md: written\n", "")
    assert Path("comment.md").read_text("utf-8") == body
    assert body == f"{MARKER}\n{render_markdown(run(0.2), comparison=comparison, page=page)}"
    assert body.count(f"({page}#tests/test_assistant.py::test_a%5B%28x%29%5D)") == 2
    assert "- [worse: tests/test_assistant.py" in body


def test_annotations_stand_beside_a_file(call: Call) -> None:
    place = "file=tests/test_assistant.py,line=12,title=tests/test_assistant.py%3A%3Atest_a[(x)]"
    note = f"::error {place}::faithfulness 0.20, needed ≥ 0.90\ncomment.md: written\n"
    assert call("--annotations", "--output=comment.md") == (0, note, "")
    assert Path("comment.md").read_text("utf-8") == render_comment(run(0.2))


@pytest.mark.parametrize(
    "title", ["retrieval", "Antworten -->", "<b>@you</b>\n/close", "検索" * 500, "\ud83d", *HOSTILE]
)
def test_each_title_has_a_marker_of_its_own(title: str) -> None:
    """It is one line of one HTML comment, the same for later runs; no marker begins with that of another title."""
    first, later = (replace(made, run=replace(made.run, project=title)) for made in (run(0.2), run(0.9)))
    marker = render_comment(first).partition("\n")[0]
    assert re.fullmatch(r"<!-- [\w: -]+[a-z0-9] -->", marker, re.ASCII)
    assert render_comment(later).startswith(f"{marker}\n")
    others = {render_comment(replace(first, run=replace(first.run, project=f"{title}{end}"))) for end in ("2", " ")}
    assert not any(other.startswith((marker, MARKER)) for other in others)


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
    long = []
    for number, each in enumerate(rows):
        scored = replace(each.records[0], metric=f"{letter * 300}{number}", reason=letter * 900, usage=usage())
        texts: Any = {"id": letter * 300 + each.id, "file": letter * 290, "message": letter * 900}
        long.append(replace(each, **texts, records=(scored,)))
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
    made = document(*(run(0.1, f"test_{n}").tests[0] for n in range(9)), notes=["a note"])
    whole = f"{MARKER}\n{render_markdown(made)}"
    monkeypatch.setattr("pytest_ragmetrics.report.comment.COMMENT_LIMIT", len(whole))
    assert render_comment(made) == whole
    monkeypatch.setattr("pytest_ragmetrics.report.comment.COMMENT_LIMIT", len(whole) - 1)
    cut = render_comment(made)
    assert "more lines\n\na note" in cut
    assert len(cut) < len(whole)


def test_ten_annotations_at_most() -> None:
    rows = [run(n / 40, f"test_{n}").tests[0] for n in range(19, -1, -1)]
    found = list(annotation_lines(document(*rows, replace(rows[0], id="g", line=None, gate=gate(outcome="failed")))))
    assert len(found) == 10
    assert "test_0::" in found[1]
    assert found[0].startswith("::error file=tests/test_assistant.py,title=g::mean faithfulness 0.830, needed")
    assert not list(annotation_lines(document(run(0.9).tests[0])))
    assert len(list(annotation_lines(hostile()))) <= 10


@pytest.fixture(name="steps")
def steps_of_the_action() -> dict[str, dict[str, Any]]:
    read = yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))["runs"]["steps"]
    return {step["name"]: step for step in read}


def test_the_action_takes_inputs_as_variables(steps: dict[str, dict[str, Any]]) -> None:
    """No input is part of a script; no Python sees the token."""
    text = (ACTION / "action.yml").read_text("utf-8")
    scripts = {name: step for name, step in steps.items() if "run" in step}
    assert not any("${{" in step["run"] for step in scripts.values())
    assert [name for name, step in scripts.items() if "token" in str(step["env"])] == ["Comment"]
    assert "python" not in steps["Comment"]["run"]
    readme = (ACTION / "README.md").read_text("utf-8")
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    job = yaml.safe_load(example)["jobs"]["test"]
    assert job["permissions"] == {"contents": "read", "pull-requests": "write"}
    declared = yaml.safe_load(text)["inputs"]
    assert set(job["steps"][-1]["with"]) <= set(declared)
    assert set(re.findall(r"inputs\.(\w+)", text)) == set(declared)


def run_step(step: dict[str, Any], **variables: str) -> subprocess.CompletedProcess[str]:
    assert set(step["env"]) == set(variables)
    first = os.pathsep.join([str(Path.cwd() / "bin"), str(Path(sys.executable).parent)])
    path = {"PATH": f"{first}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ACTION.parents[2])}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(command, env={**os.environ, **path, **variables}, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("baseline", ["", "old.json"])
def test_the_action_writes_the_comment(call: Call, steps: dict[str, dict[str, Any]], baseline: str) -> None:
    page = "https://ci.example/a b'$(exit 9)"
    variables = {"BASELINE": baseline, "COMMENT": "the comment.md", "PAGE": page}
    if not baseline:
        assert run_step(steps["Write the comment"], **variables, JSON="none.json").returncode == 0
        assert not Path("the comment.md").exists()
    done = run_step(steps["Write the comment"], **variables, JSON="new.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert "::error file=" in done.stdout
    body = Path("the comment.md").read_text("utf-8")
    assert body.count("https://ci.example/a%20b%27$%28exit%209%29#tests") == (2 if baseline else 1)
    assert ("Against the baseline" in body) == bool(baseline)


def post(
    steps: dict[str, dict[str, Any]], comments: list[fake_gh.Comment], *, token: str = "t0ken", refusal: str = ""
) -> tuple[subprocess.CompletedProcess[str], list[str], list[str]]:
    """Run the step that posts the text; return how it ended, the bodies that stand there then, and what was changed."""
    fake_gh.install(Path.cwd(), comments, refusal)
    Path("the comment.md").write_bytes(TEXT.encode())
    variables = {"COMMENT": "the comment.md", "GH_REPO": "acme/bot", "GH_TOKEN": token, "NUMBER": "7"}
    return run_step(steps["Comment"], **variables), *fake_gh.state(Path.cwd())


OTHERS: list[fake_gh.Comment] = [
    {"body": f"{MARKER}\npasted", "mine": False},
    {"body": f"see\n{MARKER}", "mine": True},
    {"body": f"> {MARKER}", "mine": True},
    {"body": "<!-- pytest-ragmetrics: report comment 0123456789ab -->\nof another job", "mine": True},
    {"body": "", "mine": True},
    {"body": "thanks", "mine": False},
]
OURS: fake_gh.Comment = {"body": f"{MARKER}\nold", "mine": True}


@pytest.mark.parametrize(
    ("comments", "changes"),
    [
        ([], ["POST issues/7/comments"]),
        (OTHERS, ["POST issues/7/comments"]),
        ([OURS], ["PATCH issues/comments/1"]),
        ([*OTHERS, OURS, *OTHERS], ["PATCH issues/comments/7"]),
        ([{"body": f"{MARKER}\r\nedited", "mine": True}], ["PATCH issues/comments/1"]),
        ([*(OTHERS * 40), OURS], ["PATCH issues/comments/241"]),
        ([OURS, OTHERS[0], OURS], ["PATCH issues/comments/1", "PATCH issues/comments/3"]),
    ],
)
def test_the_action_keeps_one_comment(
    call: Call, steps: dict[str, dict[str, Any]], comments: list[fake_gh.Comment], changes: list[str]
) -> None:
    done, bodies, changed = post(steps, comments)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert changed == changes
    replaced = [each["mine"] and each["body"].startswith(MARKER) for each in comments]
    kept = [TEXT if ours else each["body"] for each, ours in zip(comments, replaced, strict=True)]
    assert bodies == kept + [TEXT] * (not any(replaced))


REFUSALS = [
    ("api", "gh: Resource not accessible by integration (HTTP 403)", 0),
    ("api", "gh: Must have admin rights to Repository. (HTTP 403)", 0),
    ("api", "gh: You have exceeded a secondary rate limit. Please wait. (HTTP 403)", 1),
    ("api", "gh: Server Error (HTTP 502)", 1),
    ("pr", "GraphQL: Resource not accessible by integration (repository.pullRequest)", 0),
    ("pr", "GraphQL: API rate limit exceeded for installation ID 1.", 1),
    ("pr", "HTTP 401: Bad credentials (https://api.github.com/graphql)", 1),
    ("pr", "GraphQL: Could not resolve to a PullRequest with the number of 7. (repository.pullRequest)", 1),
]


@pytest.mark.parametrize(
    ("comments", "refused", "said", "status"),
    # A comment that stands there is another request, but is not known where none can be read.
    [([], *row) for row in REFUSALS] + [([OURS], *row) for row in REFUSALS if row[0] == "api"],
)
def test_the_action_goes_on_where_the_token_may_not_comment(
    call: Call, steps: dict[str, dict[str, Any]], comments: list[fake_gh.Comment], refused: str, said: str, status: int
) -> None:
    done, bodies, changed = post(steps, comments, refusal=f"{refused} {said}")
    assert (done.returncode, bodies, changed) == (status, [each["body"] for each in comments], [])
    shown, *warning = done.stdout.splitlines()
    assert shown == said
    assert [line.startswith("::warning::not posted: ") for line in warning] == [True] * (status == 0)


def test_the_action_goes_on_without_a_token_or_a_file(call: Call, steps: dict[str, dict[str, Any]]) -> None:
    """The secrets of a repository are empty in pull requests from forks; a run without scores has no comment."""
    done, bodies, _ = post(steps, [], token="")
    assert (done.returncode, bodies) == (0, [])
    assert "::warning::not posted: " in done.stdout
    variables = {"COMMENT": "none.md", "GH_REPO": "acme/bot", "GH_TOKEN": "t0ken", "NUMBER": "7"}
    done = run_step(steps["Comment"], **variables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
