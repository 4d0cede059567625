"""A ``gh`` that keeps the comments of one pull request in a file beside it, for the commands of the action."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TypedDict

import jq

URL = "https://github.com/acme/bot-app/pull/7#issuecomment-"


class Comment(TypedDict):
    """A comment, and whether the token's user wrote it."""

    body: str
    mine: bool


def install(folder: Path, comments: list[Comment], refusal: str = "") -> None:
    """Make ``folder/bin/gh``. ``refusal`` is the command that fails, ``pr`` or ``api``, and what it says then."""
    program = folder / "bin" / "gh"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!{sys.executable}\n{Path(__file__).read_text('utf-8')}", "utf-8")
    program.chmod(0o755)
    kept = {"comments": comments, "changes": [], "refusal": refusal}
    (program.parent / "gh.json").write_text(json.dumps(kept), "utf-8")


def state(folder: Path) -> tuple[list[str], list[str]]:
    """Return the bodies that stand there, and the requests that changed them."""
    kept = json.loads((folder / "bin" / "gh.json").read_text("utf-8"))
    return [each["body"] for each in kept["comments"]], kept["changes"]


def main(command: str, *arguments: str) -> None:
    """Do what ``gh pr view`` and ``gh api`` do; what the action does not call is an error."""
    if (os.environ["GH_REPO"], os.environ["GH_TOKEN"]) != ("acme/bot", "t0ken"):
        sys.exit("another repository or token")
    file = Path(__file__).with_name("gh.json")
    kept = json.loads(file.read_text("utf-8"))
    refused, _, said = kept["refusal"].partition(" ")
    if command == refused:
        sys.exit(said)
    if command == "pr":
        view, number, json_option, fields, jq_option, query = arguments
        if (view, number, json_option, fields, jq_option) != ("view", "7", "--json", "comments", "--jq"):
            sys.exit(f"not called so: {arguments}")
        _view(kept["comments"], query)
        return
    silent, *method, path, field_option, field = arguments
    name, _, source = field.partition("=@")
    if (command, silent, field_option, name) != ("api", "--silent", "--field", "body"):
        sys.exit(f"not called so: {arguments}")
    changed = f"{'PATCH' if method == ['--method', 'PATCH'] else 'POST'} {path.removeprefix('repos/{owner}/{repo}/')}"
    body = Path(source).read_bytes().decode()
    verb, _, place = changed.rpartition("/")
    if changed == "POST issues/7/comments":
        kept["comments"].append({"body": body, "mine": True})
    elif verb == "PATCH issues/comments":
        kept["comments"][int(place) - 1]["body"] = body
    else:
        sys.exit(f"gh: Not Found (HTTP 404): {changed}")
    kept["changes"].append(changed)
    file.write_text(json.dumps(kept), "utf-8")


def _view(comments: list[Comment], query: str) -> None:
    """Print what a query finds, by jq, whose language that of ``gh --jq`` is."""
    found = [
        {"body": each["body"], "viewerDidAuthor": each["mine"], "url": f"{URL}{number}"}
        for number, each in enumerate(comments, start=1)
    ]
    for value in jq.compile(query).input_value({"comments": found}):
        print(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
