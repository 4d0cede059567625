"""Reading the paths that settings name: each function takes a text and the folder where a relative path starts.

All raise ``ValueError`` for a text that cannot be used, saying what to write instead.
"""

from __future__ import annotations

import os
from pathlib import Path

#: Names the file that GitHub Actions shows beside a job; it is added to, never replaced.
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def a_path(text: str, base: Path) -> Path:
    """Return the path."""
    # abspath and not resolve(): a link is to be replaced or followed by whoever opens it, not here.
    return Path(os.path.abspath(base / Path(text.strip()).expanduser()))  # noqa: PTH100 - as above


def prompt_folder(text: str, base: Path) -> Path:
    """Return the path of a folder, which must be there."""
    path = a_path(text, base)
    if not path.is_dir():
        msg = f"{text.strip()!r} is not a folder: name one that holds TASK.md files"
        raise ValueError(msg)
    return path


def html_file(text: str, base: Path) -> Path:
    """Return the path of a page to write."""
    if not text.endswith(".html"):
        msg = f"{text!r} is not a *.html file: write --rag-report=FILE.html, or --rag-report after the test paths"
        raise ValueError(msg)
    return writable_file(text, base)


def markdown_file(text: str, base: Path) -> Path:
    """Return the path of a table to write; ``auto`` is the step summary of GitHub Actions."""
    if text.strip() != "auto":
        return writable_file(text, base)
    named = os.environ.get(STEP_SUMMARY, "").strip()
    if not named:
        msg = f"'auto' is the step summary of GitHub Actions, and {STEP_SUMMARY} is not set: name a file"
        raise ValueError(msg)
    return writable_file(named, base)


def existing_file(text: str, base: Path) -> Path:
    """Return the path of a file to read, which must be there."""
    path = a_file(text, base)
    if not path.exists():
        msg = f"{text.strip()!r} does not exist: write it first, with --rag-json={text.strip()}"
        raise ValueError(msg)
    return path


def writable_file(text: str, base: Path) -> Path:
    """Return the path of a file to write, where one can be made."""
    path = a_file(text, base)
    if path.suffix == ".py":
        msg = f"{text.strip()!r} is a file of Python: name one to write, and test paths without the option"
        raise ValueError(msg)
    if path.exists() and not path.is_file():
        return path  # a device or a pipe, in a folder where nothing may be made
    folder = next(parent for parent in path.parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        msg = f"{text!r} cannot be written: no file can be made in {str(folder)!r}"
        raise ValueError(msg)
    return path


def a_file(text: str, base: Path) -> Path:
    """Return the path of a file, which need not be there."""
    path = a_path(text, base)
    if not text.strip() or path.is_dir():
        msg = f"{text!r} is {'a folder' if text.strip() else 'no file name'}: name a file"
        raise ValueError(msg)
    return path


def portable(value: str | Path, root: Path) -> str:
    """Return a path, or a spec such as ``KIND:FOLDER``, as it reads on every machine.

    A path inside the root starts there, of one outside only the name is left; any other text stays as it is.

    >>> portable(Path("/home/me/shop/tests/judge.jsonl"), Path("/home/me/shop")), portable("openai:gpt-5", Path("/"))
    ('tests/judge.jsonl', 'openai:gpt-5')
    """
    if isinstance(value, str):
        kind, colon, rest = value.partition(":")
        return f"{kind}:{portable(Path(rest), root)}" if colon and Path(rest).is_absolute() else value
    return value.relative_to(root).as_posix() if value.is_relative_to(root) else value.name
