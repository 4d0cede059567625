"""`ragmetrics report comment`: the options, and the pull request that the environment of a CI job names."""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from pytest_ragmetrics.commands.command import CommandResult, checked
from pytest_ragmetrics.errors import ArgumentError

if TYPE_CHECKING:
    from pytest_ragmetrics.commands.code_host import PullRequest
    from pytest_ragmetrics.records import Document
    from pytest_ragmetrics.run_comparison import RunComparison

#: The exit status where the token may not write, as in pull requests from forks.
NOT_ALLOWED = 3

_GITHUB_API = "https://api.github.com"


def take_comment(parser: argparse.ArgumentParser) -> None:
    """Add the options of the comment beside the files."""
    host = parser.add_mutually_exclusive_group(required=True)
    for name, variables in {
        "github": "GITHUB_REPOSITORY, GITHUB_EVENT_PATH or GITHUB_REF, GITHUB_TOKEN and, if set, GITHUB_API_URL",
        "gitlab": "CI_API_V4_URL, CI_PROJECT_ID, CI_MERGE_REQUEST_IID and GITLAB_TOKEN (scope api)",
    }.items():
        host.add_argument(f"--{name}", dest="host", action="store_const", const=name, help=f"reads {variables}")
    parser.add_argument("--page", type=checked(_page), metavar="URL", help="where the page is: tests link to it")
    parser.add_argument(
        "--annotations", action="store_true", help="also print workflow commands of GitHub at the 10 worst tests"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the comment instead of posting it")


def comment(arguments: argparse.Namespace, document: Document, comparison: RunComparison | None) -> CommandResult:
    """Post or print the comment on a run."""
    from pytest_ragmetrics.commands.code_host import NotAllowedError
    from pytest_ragmetrics.report.comment import MARKER, annotation_lines, render_comment

    if arguments.annotations and arguments.host != "github":
        raise ArgumentError("--annotations: only GitHub Actions reads workflow commands: leave it out with --gitlab")
    lines = list(annotation_lines(document)) if arguments.annotations else []
    body = render_comment(document, comparison=comparison, page=arguments.page)
    if arguments.dry_run:
        return CommandResult(lines=[*lines, *body.splitlines()], status=0)
    request = _of_github() if arguments.host == "github" else _of_gitlab()
    try:
        return CommandResult(lines=[*lines, request.keep_one(MARKER, body)], status=0)
    except NotAllowedError as error:
        return CommandResult(lines=[*lines, f"not posted: {error}"], status=NOT_ALLOWED)


def _page(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.fragment:
        raise ValueError(f"{text!r} is no address of a page: write https://..., without #")
    # Parentheses, brackets and blanks would end the link in Markdown, a bar the row of a table.
    return quote(text, safe=":/?@!$&*+,;=%~")


def _of_github() -> PullRequest:
    from pytest_ragmetrics.commands.code_host import CommentError, PullRequest

    repository = _variable("GITHUB_REPOSITORY", r"[\w.-]+/[\w.-]+", "OWNER/NAME")
    number = _number_of_pull_request()
    if number is None:
        raise CommentError(
            "neither GITHUB_EVENT_PATH nor GITHUB_REF (refs/pull/NUMBER/merge) names a pull request: "
            "run the command on the event pull_request"
        )
    token = _token("GITHUB_TOKEN", "pass the step env: GITHUB_TOKEN: ${{ github.token }}")
    return PullRequest(
        name=f"pull request {number} of {repository}",
        api=_api("GITHUB_API_URL", _GITHUB_API),
        comments=f"/repos/{repository}/issues/{number}/comments",
        comment=f"/repos/{repository}/issues/comments",
        update="PATCH",
        author="user",
        login="login",
        token_variable="GITHUB_TOKEN",  # noqa: S106 - a name
        token=token,
        headers={
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )


def _of_gitlab() -> PullRequest:
    from pytest_ragmetrics.commands.code_host import PullRequest

    api = _api("CI_API_V4_URL")
    project = _variable("CI_PROJECT_ID", r"[0-9]+", "a number")
    number = _variable("CI_MERGE_REQUEST_IID", r"[0-9]+", "a number; only pipelines of merge requests have one")
    token = _token("GITLAB_TOKEN", "a project access token with the scope api; CI_JOB_TOKEN may not comment")
    notes = f"/projects/{project}/merge_requests/{number}/notes"
    return PullRequest(
        name=f"merge request {number} of project {project}",
        api=api,
        comments=notes,
        comment=notes,
        update="PUT",
        author="author",
        login="username",
        token_variable="GITLAB_TOKEN",  # noqa: S106 - a name
        token=token,
        headers={"PRIVATE-TOKEN": token},
    )


def _number_of_pull_request() -> int | None:
    """Return the number in the event that started the workflow, else in the name of the ref."""
    from pytest_ragmetrics.commands.code_host import CommentError

    file = os.environ.get("GITHUB_EVENT_PATH", "").strip()
    if file:
        try:
            event: Any = json.loads(Path(file).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise CommentError(f"GITHUB_EVENT_PATH={file} cannot be read: {error}") from error
        found = event.get("pull_request") if isinstance(event, dict) else None
        number = found.get("number") if isinstance(found, dict) else None
        if isinstance(number, int):
            return number
    ref = re.fullmatch(r"refs/pull/([0-9]+)/(?:merge|head)", os.environ.get("GITHUB_REF", "").strip())
    return int(ref[1]) if ref else None


def _variable(name: str, pattern: str, what: str, *, hint: str = "") -> str:
    """Return the value of a variable; raise ``CommentError`` if it is missing or not what it should be."""
    from pytest_ragmetrics.commands.code_host import CommentError

    value = os.environ.get(name, "").strip()
    if not value:
        raise CommentError(f"{name} is not set: {hint or f'it is {what}'}")
    if not re.fullmatch(pattern, value):
        # The value may be a secret.
        raise CommentError(f"{name} is not {what}")
    return value


def _token(name: str, hint: str) -> str:
    # A line break in a header would be refused by an error that shows the header.
    return _variable(name, r"[!-~]+", "one word of ASCII characters", hint=hint)


def _api(name: str, default: str = "") -> str:
    if default and not os.environ.get(name, "").strip():
        return default
    return _variable(name, r"https?://[^\s?#@]+", "the address of an API, https://...").rstrip("/")
