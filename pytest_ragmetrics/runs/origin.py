"""Where a run comes from: project, branch, commit and CI run, as the CI's variables have it, else git, else nothing.

:func:`origin_of` is what a run records of it, :func:`origin_parts` how reports say it, with links that are safe.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from pytest_ragmetrics.core.credentials import masked
from pytest_ragmetrics.runs.records import RunRecord, TestRecord
from pytest_ragmetrics.text.unicode import printable, shortened

# The first that names the commit or its run is the one that is running, and a field has its first complete template.
# A branch of a pull request comes first, a run before its job: that is the same in all shards.
_PROVIDERS = """
GitHub Actions; Gitea and Forgejo have the same names
    commit={GITHUB_SHA} branch={GITHUB_HEAD_REF} branch={GITHUB_REF_NAME} ci_number={GITHUB_RUN_NUMBER}
    ci={GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}
    repository={GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}

GitLab; Woodpecker has most of these
    commit={CI_COMMIT_SHA} branch={CI_MERGE_REQUEST_SOURCE_BRANCH_NAME} branch={CI_COMMIT_REF_NAME}
    branch={CI_COMMIT_BRANCH} message={CI_COMMIT_TITLE} message={CI_COMMIT_MESSAGE} author={CI_COMMIT_AUTHOR}
    ci={CI_PIPELINE_URL} ci_number={CI_PIPELINE_IID} ci_number={CI_PIPELINE_NUMBER}
    repository={CI_PROJECT_URL} repository={CI_REPO_URL}

Azure Pipelines
    commit={BUILD_SOURCEVERSION} branch={SYSTEM_PULLREQUEST_SOURCEBRANCH} branch={BUILD_SOURCEBRANCH}
    branch={BUILD_SOURCEBRANCHNAME} message={BUILD_SOURCEVERSIONMESSAGE} ci_number={BUILD_BUILDNUMBER}
    ci={SYSTEM_COLLECTIONURI}{SYSTEM_TEAMPROJECT}/_build/results?buildId={BUILD_BUILDID}
    repository={BUILD_REPOSITORY_URI}

Bitbucket Pipelines
    commit={BITBUCKET_COMMIT} branch={BITBUCKET_BRANCH} ci_number={BITBUCKET_BUILD_NUMBER}
    ci={BITBUCKET_GIT_HTTP_ORIGIN}/pipelines/results/{BITBUCKET_BUILD_NUMBER} repository={BITBUCKET_GIT_HTTP_ORIGIN}

Buildkite
    commit={BUILDKITE_COMMIT} branch={BUILDKITE_BRANCH} message={BUILDKITE_MESSAGE} author={BUILDKITE_BUILD_AUTHOR}
    ci={BUILDKITE_BUILD_URL} ci_number={BUILDKITE_BUILD_NUMBER} repository={BUILDKITE_REPO}

CircleCI
    commit={CIRCLE_SHA1} branch={CIRCLE_BRANCH} ci={CIRCLE_BUILD_URL} ci_number={CIRCLE_BUILD_NUM}
    repository={CIRCLE_REPOSITORY_URL}

Travis
    commit={TRAVIS_COMMIT} branch={TRAVIS_PULL_REQUEST_BRANCH} branch={TRAVIS_BRANCH} message={TRAVIS_COMMIT_MESSAGE}
    ci={TRAVIS_BUILD_WEB_URL} ci_number={TRAVIS_BUILD_NUMBER}

AWS CodeBuild
    commit={CODEBUILD_RESOLVED_SOURCE_VERSION} branch={CODEBUILD_WEBHOOK_HEAD_REF} ci={CODEBUILD_BUILD_URL}
    ci_number={CODEBUILD_BUILD_NUMBER} repository={CODEBUILD_SOURCE_REPO_URL}

Jenkins, whose names are the most general
    commit={GIT_COMMIT} branch={CHANGE_BRANCH} branch={GIT_BRANCH} branch={BRANCH_NAME} message={CHANGE_TITLE}
    author={CHANGE_AUTHOR_DISPLAY_NAME} ci={BUILD_URL} ci_number={BUILD_NUMBER} repository={GIT_URL}
"""
_TIME_LIMIT = 5.0
_LENGTH = 200
_HASH = re.compile(r"[0-9a-fA-F]{7,64}")


def commit_of(root: Path) -> str:
    """Return the beginning of the commit that is tested, the same text for all folders that are in no repository."""
    return (_variables().get("commit") or _git(root, "rev-parse", "HEAD"))[:12] or "no commit"


def origin_of(root: Path, *, title: str = "", redact: Callable[[str], str] = str) -> dict[str, str]:
    """Return what a run records of where it comes from: fields of a ``RunRecord``, those that nothing knows left out.

    ``root`` is the folder of the project. ``commit`` ends in "+" where tracked files were changed since; ``branch`` is
    "" where none is checked out. ``message`` is the first line of the commit, of a pull request on GitHub its title;
    ``folder`` is where in the repository the project is. ``title`` replaces the name of the project. Texts are passed
    through ``redact``, what looks like a key is masked, and links have no user and no password. No command of git is
    waited for longer than 5 seconds.
    """
    found, git = _variables(), partial(_git, root)
    lines = git("rev-parse", "--show-prefix", "HEAD", "--abbrev-ref", "HEAD").split("\n")
    if len(lines) > 1:
        folder, commit, branch = lines
        found = {"commit": commit, "branch": branch if branch != "HEAD" else "", "folder": folder.strip("/")} | found
        if _HASH.fullmatch(found["commit"]) and not {"message", "author"} <= found.keys():
            texts = git("rev-list", "-1", "--encoding=UTF-8", "--format=%an%n%s", found["commit"]).split("\n")
            found = dict(zip(("author", "message"), texts[1:3], strict=False)) | found
        found.setdefault("repository", git("ls-remote", "--get-url"))
        if git("status", "--porcelain", "--untracked-files=no", "--", "."):
            found["commit"] += "+"
    found["repository"] = repository_link(found.get("repository", ""))
    found["ci"] = web_link(found.get("ci", ""))
    found["project"] = title or _project_name(root, found)
    shown = {name: shortened(printable(masked(redact(printable(text)))), _LENGTH) for name, text in found.items()}
    return {name: text for name, text in shown.items() if text}


def _variables() -> dict[str, str]:
    known = {name: text.strip() for name, text in os.environ.items() if text.strip()}
    for provider in _PROVIDERS.split("\n\n"):
        found: dict[str, str] = {}
        for field, template in re.findall(r"(\w+)=(\S+)", provider):
            with suppress(KeyError):
                found.setdefault(field, template.format_map(known))
        if found.get("commit") == "HEAD":
            del found["commit"]  # Buildkite, where a build was started without a commit
        if not {"commit", "ci"} & found.keys():
            continue
        # The commit of a pull request on GitHub is a merge that nobody wrote.
        with suppress(OSError, ValueError, LookupError, TypeError):
            request: Any = json.loads(Path(known["GITHUB_EVENT_PATH"]).read_text("utf-8"))["pull_request"]
            texts = {"message": request["title"], "author": request["user"]["login"]}
            found |= {name: text for name, text in texts.items() if isinstance(text, str)}
        cut = {"branch": r"\A(?:refs/(?:heads|tags)/|origin/)", "message": r"(?s)\n.*", "author": r"(?s) <.*"}
        return {name: re.sub(cut[name], "", text) if name in cut else text for name, text in found.items()}
    return {}


def _git(root: Path, *arguments: str) -> str:
    """Return what git says of a folder without the last line end, "" where it cannot, or is slow."""
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603 - a fixed command
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_TIME_LIMIT, check=False
        )
        return done.stdout.decode("utf-8", "replace").rstrip("\n") if done.returncode == 0 else ""
    return ""


def _project_name(root: Path, found: Mapping[str, str]) -> str:
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")  # which pytest needs
    with suppress(OSError, ValueError, LookupError, TypeError):
        name = toml.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["name"]
        if isinstance(name, str) and name.strip():
            return name.strip()
    repository = "" if found.get("folder") else found.get("repository", "")
    return repository.rpartition("/")[2] or root.name


def web_link(text: str) -> str:
    """Return an address of the web without user and password, "" for any other text.

    >>> web_link("https://me:secret@ci.example/runs?id=7"), web_link("javascript:alert(1)")
    ('https://ci.example/runs?id=7', '')
    """
    try:
        parts = urlsplit(text.strip())
        host = parts.netloc.rpartition("@")[2]
        if parts.scheme not in ("http", "https") or not re.fullmatch(r"[\w.\[\]-]+(?::[0-9]+)?", host, re.ASCII):
            return ""
    except ValueError:
        return ""
    kept = (
        quote(part, safe="/:@!$&*+,;=%~?()'[]", errors="replace") for part in (parts.path, parts.query, parts.fragment)
    )
    return urlunsplit((parts.scheme, host, *kept))


def repository_link(remote: str) -> str:
    """Return the page of a repository by the address of its remote, "" for one that is not in the web.

    >>> repository_link("git@git.example:shop/bot.git"), repository_link("https://me:secret@git.example/shop/bot.git")
    ('https://git.example/shop/bot', 'https://git.example/shop/bot')
    """
    remote = remote.strip()
    ssh = re.fullmatch(r"(?:git\+)?(?:ssh|git)://(?:[^@/\s]*@)?([\w.-]+)(?::[0-9]+)?/(.+)", remote)
    ssh = ssh or re.fullmatch(r"(?:[^@/\s:]+@([\w.-]+)|([\w-]+\.[\w.-]+)):(?!//)(.+)", remote)
    if ssh:
        host, path = next(filter(None, ssh.groups()[:-1])), ssh.groups()[-1].lstrip("/")
        azure = re.fullmatch(r"v3/([^/]+/[^/]+)/([^/]+)", path) if host == "ssh.dev.azure.com" else None
        remote = f"https://dev.azure.com/{azure[1]}/_git/{azure[2]}" if azure else f"https://{host}/{path}"
    return web_link(remote.partition("?")[0].partition("#")[0]).rstrip("/").removesuffix(".git")


def short_commit(commit: str) -> str:
    """Return a commit as people name it, with its "+".

    >>> short_commit("4f2c91a0d7e5+"), short_commit("")
    ('4f2c91a+', '')
    """
    return commit[:7] + ("+" if commit.endswith("+") else "")


# What a host is known by, its name or the form of the link to its CI run; its pages of a commit, and of a line.
_HOSTS: Sequence[tuple[str, str, str]] = (
    (r"//[^/]*gitlab|/-/", "/-/commit/{commit}", "/-/blob/{commit}/{file}#L{line}"),
    (r"//[^/]*bitbucket\.org", "/commits/{commit}", "/src/{commit}/{file}#lines-{line}"),
    (r"//[^/]*(?:dev\.azure|visualstudio)\.com", "/commit/{commit}", "?path=/{file}&version=GC{commit}&line={line}"),
    (r"//[^/]*(?:codeberg|gitea|forgejo)", "/commit/{commit}", "/src/commit/{commit}/{file}#L{line}"),
    (r"//[^/]*github|/actions/runs/", "/commit/{commit}", "/blob/{commit}/{file}#L{line}"),
)


def commit_link(repository: str, commit: str, *, ci: str = "") -> str:
    """Return the address of a commit, "" where its host is not known; ``ci`` is the link to its run."""
    return _on_host(0, repository, commit, ci)


def source_link(repository: str, commit: str, file: str, line: int, *, ci: str = "") -> str:
    """Return the address of a line in a file of a commit, "" where the host is not known.

    >>> source_link("https://github.com/shop/bot", "4f2c91a+", "tests/test_bot.py", 41)
    'https://github.com/shop/bot/blob/4f2c91a/tests/test_bot.py#L41'
    """
    return _on_host(1, repository, commit, ci, file=quote(file, errors="replace"), line=line)


def _on_host(form: int, repository: str, commit: str, ci: str, **values: str | int) -> str:
    name, page, forms = commit.removesuffix("+"), *_host(repository, ci)
    return page + forms[form].format(commit=name, **values) if page and _HASH.fullmatch(name) else ""


# A report has a link for each test.
@lru_cache(maxsize=16)
def _host(repository: str, ci: str) -> tuple[str, Sequence[str]]:
    page = web_link(repository)
    name = f"//{urlsplit(page).netloc} {ci}"
    return next(((page, forms) for known, *forms in _HOSTS if page and re.search(known, name)), ("", ()))


def origin_title(run: RunRecord) -> str:
    """Return project, branch and commit of a run, as far as they are known."""
    return " ".join(filter(None, (run.project, run.branch, short_commit(run.commit))))


def ci_name(run: RunRecord) -> str:
    """Return what the run of the CI is called, "" where it is not known."""
    return f"CI {run.ci_number}".strip() if web_link(run.ci) or run.ci_number else ""


def started_text(run: RunRecord) -> str:
    """Return when a run started, in UTC."""
    return run.started.replace("T", " ").replace("+00:00", " UTC").replace("Z", " UTC")


def origin_parts(run: RunRecord) -> Iterator[tuple[str, str]]:
    """Yield where a run comes from in words, each with its address or "", without its project and what is unknown."""
    if run.branch:
        yield f"branch {run.branch}", ""
    if commit := short_commit(run.commit):
        message = f' "{shortened(run.message, 72)}"' if run.message else ""
        author = f" by {run.author}" if run.author else ""
        yield f"commit {commit}{message}{author}", commit_link(run.repository, run.commit, ci=run.ci)
    if name := ci_name(run):
        yield name, web_link(run.ci)


def place_link(run: RunRecord, test: TestRecord) -> str:
    """Return the address of a test's line in the repository at the commit that ran, "" where that is not known."""
    file = f"{run.folder}/{test.file}" if run.folder else test.file
    return "" if test.line is None else source_link(run.repository, run.commit, file, test.line, ci=run.ci)
