"""Where a run comes from: of the variables of each CI, of git in all its states, and links that are safe."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.runs import origin
from pytest_ragmetrics.runs.origin import commit_link, commit_of, origin_of, repository_link, source_link, web_link

SHA = "4f2c91a0d7e5b8c3a1f6e2d9c0b7a8f5e4d3c2b1"


@pytest.fixture(autouse=True)
def _no_ci(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [*re.findall(r"\{(\w+)\}", repr(origin._PROVIDERS)), "GITHUB_EVENT_PATH"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ana Ruiz")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ana@shop.example")


def repository(root: Path, message: str = "Chunk at 400 tokens\n\nThe passages were too long.") -> Path:
    root.mkdir()
    (root / "a.txt").write_text("one")
    git(root, "init", "-q", "-b", "trunk")
    git(root, "add", "a.txt")
    git(root, "commit", "-q", "-m", message)
    return root


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True)


GITHUB = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "shop/bot", "GITHUB_RUN_ID": "918"}
GITHUB |= {"GITHUB_RUN_NUMBER": "1832", "GITHUB_SHA": SHA, "GITHUB_REF_NAME": "main"}
ON_GITHUB = ("https://github.com/shop/bot/actions/runs/918", "1832", "https://github.com/shop/bot")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (GITHUB, ("main", "", "", *ON_GITHUB)),
        (GITHUB | {"GITHUB_HEAD_REF": "fix/chunks", "GITHUB_REF_NAME": "12/merge"}, ("fix/chunks", "", "", *ON_GITHUB)),
        ({"CI_COMMIT_SHA": SHA, "CI_COMMIT_REF_NAME": "main", "CI_COMMIT_TITLE": "Chunk",
          "CI_COMMIT_AUTHOR": "Ana Ruiz <ana@shop.example>", "CI_PIPELINE_IID": "3",
          "CI_PIPELINE_URL": "https://git.shop.example/a/bot/-/pipelines/7", "CI_PROJECT_URL": "https://git.shop.example/a/bot"},
         ("main", "Chunk", "Ana Ruiz", "https://git.shop.example/a/bot/-/pipelines/7", "3", "https://git.shop.example/a/bot")),
        ({"BUILD_SOURCEVERSION": SHA, "BUILD_SOURCEBRANCH": "refs/heads/feature/x", "BUILD_SOURCEBRANCHNAME": "x",
          "BUILD_SOURCEVERSIONMESSAGE": "Chunk\nmore", "SYSTEM_COLLECTIONURI": "https://dev.azure.com/shop/",
          "SYSTEM_TEAMPROJECT": "web shop", "BUILD_BUILDID": "55", "BUILD_BUILDNUMBER": "20261122.1",
          "BUILD_REPOSITORY_URI": "https://shop@dev.azure.com/shop/web/_git/bot"},
         ("feature/x", "Chunk", "", "https://dev.azure.com/shop/web%20shop/_build/results?buildId=55", "20261122.1",
          "https://dev.azure.com/shop/web/_git/bot")),
        ({"BITBUCKET_COMMIT": SHA, "BITBUCKET_BRANCH": "main", "BITBUCKET_BUILD_NUMBER": "9",
          "BITBUCKET_GIT_HTTP_ORIGIN": "http://bitbucket.org/shop/bot"},
         ("main", "", "", "http://bitbucket.org/shop/bot/pipelines/results/9", "9", "http://bitbucket.org/shop/bot")),
        ({"BUILDKITE_COMMIT": "HEAD", "BUILDKITE_BRANCH": "main", "BUILDKITE_MESSAGE": "Chunk",
          "BUILDKITE_BUILD_URL": "https://buildkite.com/shop/bot/builds/4", "BUILDKITE_BUILD_NUMBER": "4",
          "BUILDKITE_REPO": "git@github.com:shop/bot.git"},
         ("main", "Chunk", "", "https://buildkite.com/shop/bot/builds/4", "4", "https://github.com/shop/bot")),
        ({"CIRCLE_SHA1": SHA, "CIRCLE_BRANCH": "main", "CIRCLE_BUILD_URL": "https://circleci.com/gh/shop/bot/6",
          "CIRCLE_BUILD_NUM": "6"}, ("main", "", "", "https://circleci.com/gh/shop/bot/6", "6", "")),
        ({"TRAVIS_COMMIT": SHA, "TRAVIS_PULL_REQUEST_BRANCH": "fix", "TRAVIS_BRANCH": "main"},
         ("fix", "", "", "", "", "")),
        ({"GIT_BRANCH": "origin/main", "BUILD_URL": "https://me:pw@ci.shop.example/job/bot/8/", "BUILD_NUMBER": "8",
          "GIT_URL": "https://x:ghp_0123456789012345678901234567890123@git.shop.example/shop/bot.git"},
         ("main", "", "", "https://ci.shop.example/job/bot/8/", "8", "https://git.shop.example/shop/bot")),
        ({"GITHUB_REF_NAME": "main", "BUILD_NUMBER": "8", "GITHUB_SHA": " "}, ("", "", "", "", "", "")),
    ],
)  # fmt: skip
def test_each_ci_knows_the_run(variables: Any, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    found = origin_of(tmp_path)
    fields = ("branch", "message", "author", "ci", "ci_number", "repository")
    assert tuple(found.get(name, "") for name in fields) == expected
    assert found.get("commit", SHA) == SHA
    assert commit_of(tmp_path) == (SHA[:12] if "commit" in found else "no commit")
    assert found["project"] == (expected[-1].rpartition("/")[2] or tmp_path.name)


def test_a_pull_request_of_github_has_its_title(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commit is a merge, whose message is nobody's; another event, or none that can be read, changes nothing."""
    event, root = tmp_path / "event.json", repository(tmp_path / "shop")
    monkeypatch.setenv("GITHUB_SHA", commit_of(root))
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(event))
    said = [{"pull_request": {"title": "Shorter chunks", "user": {"login": "ana"}}}, {"ref": "x"}, [], None]
    for data in said:
        event.unlink(missing_ok=True) if data is None else event.write_text(json.dumps(data))
        found = origin_of(root)["message"], origin_of(root)["author"]
        assert found == (("Shorter chunks", "ana") if data is said[0] else ("Chunk at 400 tokens", "Ana Ruiz"))


def test_git_says_it_where_no_ci_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "shop")
    git(root, "remote", "add", "origin", "https://ci:s3cret@github.com/team/bot.git")
    clean = origin_of(root)
    assert clean.pop("commit") == (sha := (root / ".git/refs/heads/trunk").read_text().strip())
    told = {"branch": "trunk", "message": "Chunk at 400 tokens", "author": "Ana Ruiz"}
    assert clean == {"project": "bot", **told, "repository": "https://github.com/team/bot"}
    (root / "new.txt").write_text("not tracked")
    assert origin_of(root)["commit"] == sha
    (part := root / "services" / "chat").mkdir(parents=True)
    assert (origin_of(part)["folder"], origin_of(part)["project"]) == ("services/chat", "chat")
    (part / "pyproject.toml").write_text('[project]\nname = "tenant-bot"')
    assert (origin_of(part)["project"], origin_of(part, title="Night run")["project"]) == ("tenant-bot", "Night run")
    (part / "pyproject.toml").write_text("[project")
    assert origin_of(part)["project"] == "chat"
    (root / "a.txt").write_text("two")
    assert origin_of(root)["commit"] == f"{sha}+"
    git(root, "checkout", "-q", "--detach")
    assert "branch" not in origin_of(root)
    assert origin_of(root)["message"] == "Chunk at 400 tokens"
    monkeypatch.setenv("GITHUB_SHA", SHA)
    monkeypatch.setenv("GITHUB_REF_NAME", "release")
    found = origin_of(root)
    assert (found["branch"], found["commit"], found.get("message")) == ("release", f"{SHA}+", None)


def test_a_shallow_clone_and_an_empty_repository(tmp_path: Path) -> None:
    origin = repository(tmp_path / "shop")
    git(tmp_path, "clone", "-q", "--depth=1", origin.as_uri(), str(tmp_path / "shallow"))
    found = origin_of(tmp_path / "shallow")
    assert (found["message"], found["branch"]) == ("Chunk at 400 tokens", "trunk")
    assert found["commit"][:12] == commit_of(origin)
    assert "repository" not in found
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    assert origin_of(tmp_path / "empty") == origin_of(tmp_path / "nowhere" / "empty") == {"project": "empty"}


@pytest.mark.parametrize("script", [None, "#!/bin/sh\nexit 128", "#!/bin/sh\nexec sleep 30"])
def test_git_may_be_absent_broken_or_slow(script: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    if script is not None:
        (tmp_path / "bin" / "git").write_text(script)
        (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "bin"), *(["/bin"] if script else [])]))
    monkeypatch.setattr(origin, "_TIME_LIMIT", 0.2)
    began = time.monotonic()
    assert origin_of(tmp_path) == {"project": tmp_path.name}
    assert commit_of(tmp_path) == "no commit"
    assert time.monotonic() - began < 0.9  # five commands that wait would take 1.0


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("a\x1b[31mred \u202etxet", "a[31mred txet"),
        ("key sk-proj-0123456789abcdefghij", "key ***"),
        ("for ACME only", "for [name] only"),
        ("Kürzere Abschnitte für 東京", "Kürzere Abschnitte für 東京"),
        ("word " * 200, None),
    ],
)
def test_a_message_is_a_text_that_was_redacted(message: str, expected: str | None, tmp_path: Path) -> None:
    root = repository(tmp_path / "shop", message)
    found = origin_of(root, redact=lambda text: text.replace("ACME", "[name]"))["message"]
    assert len(found) <= 200
    assert expected is None or found.split() == expected.split()


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ("https://github.com/shop/bot.git", "https://github.com/shop/bot"),
        ("https://oauth2:glpat-x@gitlab.com/a/b/bot.git/", "https://gitlab.com/a/b/bot"),
        ("http://git.local:3000/shop/bot", "http://git.local:3000/shop/bot"),
        ("https://git.example/bot?token=abc", "https://git.example/bot"),
        ("git@github.com:shop/bot.git", "https://github.com/shop/bot"),
        ("ssh://git@git.example:2222/shop/bot.git", "https://git.example/shop/bot"),
        ("git+ssh://git.example/shop/bot", "https://git.example/shop/bot"),
        ("git.example:shop/bot.git", "https://git.example/shop/bot"),
        ("git@intranet:/srv/bot.git", "https://intranet/srv/bot"),
        ("git@ssh.dev.azure.com:v3/shop/web/bot", "https://dev.azure.com/shop/web/_git/bot"),
        ("/srv/git/bot.git", ""),
        ("file:///srv/git/bot.git", ""),
        ("../bot", ""),
        ("C:\\git\\bot", ""),
        ("origin", ""),
        ("", ""),
        ("javascript://github.com/%0aalert(1)", ""),
        ("https://[::1", ""),
        ('https://git.example/"><script>', "https://git.example/%22%3E%3Cscript%3E"),
    ],
)
def test_a_remote_is_a_page_without_its_password(remote: str, expected: str) -> None:
    assert repository_link(remote) == expected


def test_only_addresses_of_the_web_are_links() -> None:
    for text in (
        "javascript:alert(1)",
        "data:text/html,x",
        "https://a b.example/",
        "//host/x",
        "https://",
        "ftp://a/b",
    ):
        assert (text, web_link(text)) == (text, "")
    assert web_link("") == ""


HERE, THERE = "https://git.shop.example/a/b", "tests/t%20%231.py"


@pytest.mark.parametrize(
    ("page", "ci", "expected"),
    [
        ("https://github.com/a/b", "", ("/commit/4f2c91a", f"/blob/4f2c91a/{THERE}#L7")),
        (HERE, f"{HERE}/actions/runs/1", ("/commit/4f2c91a", f"/blob/4f2c91a/{THERE}#L7")),
        ("https://gitlab.com/a/b", "", ("/-/commit/4f2c91a", f"/-/blob/4f2c91a/{THERE}#L7")),
        (HERE, f"{HERE}/-/pipelines/1", ("/-/commit/4f2c91a", f"/-/blob/4f2c91a/{THERE}#L7")),
        ("https://bitbucket.org/a/b", "", ("/commits/4f2c91a", f"/src/4f2c91a/{THERE}#lines-7")),
        ("https://dev.azure.com/a/_git/b", "", ("/commit/4f2c91a", f"?path=/{THERE}&version=GC4f2c91a&line=7")),
        ("https://codeberg.org/a/b", "", ("/commit/4f2c91a", f"/src/commit/4f2c91a/{THERE}#L7")),
        (HERE, "", None),
        ("javascript:alert(1)//github.com", "", None),
        ("", "", None),
    ],
)
def test_links_lead_to_the_commit_and_the_line(page: str, ci: str, expected: tuple[str, str] | None) -> None:
    found = commit_link(page, "4f2c91a+", ci=ci), source_link(page, "4f2c91a+", "tests/t #1.py", 7, ci=ci)
    assert found == (("", "") if expected is None else tuple(page + path for path in expected))
    assert commit_link(page, "no commit", ci=ci) == ""
