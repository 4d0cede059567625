"""Files that are read and written: strict JSON, atomic writing, and the paths that options take."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from pytest_ragmetrics.core.running import innermost

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
#: The beginning of the names of temporary folders that the processes of a run share.
RUN_FOLDERS = "pytest-ragmetrics-run-"
#: The files in which pytest may find its options.
CONFIGURATIONS = "pytest.toml .pytest.toml pytest.ini .pytest.ini pyproject.toml tox.ini setup.cfg"
#: The megabytes of a file of data that are read unless an option says otherwise.
MAX_FILE = 500


def read_json(file: Path) -> Any:
    """Return the content of a JSON file, in UTF-8 with or without a byte order mark.

    Raises ``OSError`` if it cannot be read, and ``ValueError`` if it is not JSON; NaN and infinity are not.
    """
    try:
        return json.loads(file.read_bytes().decode("utf-8-sig"), parse_constant=refuse_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def largest() -> int:
    """Return how many bytes are read of one file of data, or of one line where lines are read one by one."""
    settings = getattr(innermost(), "settings", None)
    given = os.environ.get("RAGMETRICS_MAX_FILE", "").strip()
    return 10**6 * (settings.max_file if settings else int(given) if given.isdecimal() else MAX_FILE)


def _too_large(what: str) -> OSError:
    to_do = "raise --rag-max-file, or RAGMETRICS_MAX_FILE outside of pytest"
    return OSError(errno.EFBIG, f"{what} more than {largest() // 10**6} MB: {to_do}")


def read_data(file: Path, *, packed: bool = False) -> bytes:
    """Return the content of a file of data, unpacked by gzip where it is ``packed``.

    Raises ``OSError``, also for a device or a pipe, which may have no end, and one of more than :func:`largest`.
    """
    import gzip  # not at start-up

    if file.exists() and not (file.is_file() or file.is_dir()):
        raise OSError(errno.EINVAL, "it is a device or a pipe: name a file")
    parts, size, most = [], 0, largest()
    with gzip.open(file) if packed else file.open("rb") as stream:
        while part := stream.read(2**20):
            parts.append(part)
            size += len(part)
            if size > most:
                raise _too_large("it has")
    return b"".join(parts)


def lines_of(stream: Any) -> Iterator[Any]:
    """Yield the lines of a stream; raise ``OSError`` for one of more than :func:`largest`."""
    most = largest()
    while line := stream.readline(most + 1):
        if len(line) > most:
            raise _too_large("it has a line of")
        yield line


def refuse_constant(name: str) -> NoReturn:
    """Raise ``ValueError`` for NaN or infinity, which JSON does not have."""
    raise ValueError(f"{name} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        name = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the name {name!r} is there twice in one object")
    return found


#: Readers of JSON differ in which of two equal names counts, and in what NaN is: this one takes neither.
STRICT_JSON = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=refuse_constant)
_STREAMS = (Path("/dev"), Path("/dev/fd"))


def packaged_text(place: str) -> str:
    """Return the text of a file of this package, named by its path in it."""
    from importlib.resources import files  # not at start-up

    return files("pytest_ragmetrics").joinpath(place).read_text("utf-8")


def write_atomically(file: Path, text: str) -> None:
    """Write a file as UTF-8 so that readers see the old content or the new, never a part; raises ``OSError``.

    Missing folders are created. A replaced file keeps its mode, a new one gets the user's default. Devices and pipes
    are written to directly.
    """
    # /dev/stdout is a regular file when the output is redirected to one; it must not be replaced.
    if file.parent in _STREAMS or (file.exists() and not (file.is_file() or file.is_dir())):
        with file.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        return
    with writing_atomically(file) as part, part.open("x", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def append_line(file: Path, line: str) -> None:
    """Write a line at the end of a file, where a kill leaves it; raises ``OSError``, and the file is as before then."""
    size = file.stat().st_size if file.exists() else 0
    try:
        with file.open("ab") as stream:
            stream.write(f"{line}\n".encode())
    except OSError:
        with suppress(OSError):
            os.truncate(file, size)
        raise


def mended_lines(data: bytes, beginning: bytes) -> bytes:
    """Return JSON lines without a last one of which a killed process wrote a part; a whole one gets its line end.

    What does not begin as the lines of the file do, with ``beginning``, is left for its reader to refuse.
    """
    last = data.rpartition(b"\n")[2]
    try:
        json.loads(last)
    except (ValueError, RecursionError):
        return data[: len(data) - len(last)] if beginning.startswith(last[: len(beginning)]) else data
    return data + b"\n"


# Open files that are left for modules, the files of tests, and reports.
_SPARE_FILES = 64
# The lock files of the cache that are held at once, and those for each request in flight.
_LOCKS, _LOCKS_EACH = 256, 4


def affordable(requests: int) -> int:
    """Return how many requests in flight the limit of open files allows, at most this many; warns of fewer, once."""
    if not find_spec("resource"):
        return requests
    import resource

    from pytest_ragmetrics.core.errors import warn_once  # not at start-up

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    with suppress(OSError):
        free = limit - _SPARE_FILES - len(os.listdir("/dev/fd"))  # noqa: PTH208 - names alone
        most = max(1, free // (1 + _LOCKS_EACH), free - _LOCKS)
        if limit >= 0 and most < requests:
            warn_once(
                f"{most} requests are in flight at once, not {requests}: this process may have {limit} files open; "
                "raise that with ulimit -n, or lower --rag-concurrency"
            )
            return most
    return requests


@contextmanager
def writing_atomically(file: Path) -> Iterator[Path]:
    """Yield the path to write instead of a file, which replaces it at the end of the block; raises ``OSError``.

    After an error the file is as it was.
    """
    from secrets import token_hex  # not at start-up

    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{token_hex(8)}.part")
    try:
        yield part
        if file.exists():
            part.chmod(stat.S_IMODE(file.stat().st_mode))
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


#: The environment variable with the step summary of GitHub Actions, a file to append to.
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def absolute(path: Path) -> Path:
    """Return the absolute path; links are kept: writing replaces a link, reading follows it."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links


def exists(path: Path) -> bool:
    """Return whether a path exists; raises ``OSError`` for one in a folder that cannot be entered."""
    # pathlib's raises as well up to Python 3.13, and says from 3.14 on that such a path does not exist.
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    return True


def a_path(text: str, base: Path) -> Path:
    """Return the absolute path that a text names, from a folder on."""
    return absolute(base / Path(text.strip()).expanduser())


def a_folder(text: str, base: Path) -> Path:
    """Return the path of a folder, existing or not."""
    path = a_path(text, base)
    if not text.strip() or (path.exists() and not path.is_dir()):
        raise ValueError(f"{text!r} is {'not a folder' if text.strip() else 'no folder name'}: name a folder")
    return path


def prompt_folder(text: str, base: Path) -> Path:
    """Return the path of an existing folder, in which each text but a README is the prompt of a task."""
    path = a_path(text, base)
    if not (exists(path) and path.is_dir()):
        raise ValueError(f"{text.strip()!r} is not a folder: name one with TASK.md files")
    from difflib import get_close_matches  # not at start-up
    from importlib.resources import files

    tasks = [prompt.name for prompt in (files("pytest_ragmetrics") / "judges" / "prompts").iterdir()]
    for file in sorted(path.iterdir()):
        if file.suffix.lower() in (".md", ".txt") and file.name not in tasks and file.stem.lower() != "readme":
            near = get_close_matches(f"{file.stem.lower()}.md", tasks, 1)
            hint = f"did you mean {near[0]}?" if near else "see ragmetrics docs tasks"
            raise ValueError(f"{file} is the prompt of no task; {hint}")
    return path


def html_file(text: str, base: Path) -> Path:
    """Return the path of a page to write."""
    if not text.endswith(".html"):
        msg = f"{text!r} is not a *.html file: name one, such as rag-report.html"
        raise ValueError(f"{msg}; --rag-report without a file goes behind the test paths")
    return writable_file(text, base)


def markdown_file(text: str, base: Path) -> Path:
    """Return the path of a table to write; ``auto`` is the step summary of GitHub Actions."""
    if text.strip() != "auto":
        return writable_file(text, base)
    named = os.environ.get(STEP_SUMMARY, "").strip()
    if not named:
        raise ValueError(f"'auto' is the step summary of GitHub Actions, and {STEP_SUMMARY} is not set: name a file")
    return writable_file(named, base)


def writable_folder(text: str, base: Path) -> Path:
    """Return the path of a folder in which files can be made, existing or not."""
    path = a_folder(text, base)
    there = next(parent for parent in (path, *path.parents) if exists(parent))
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise ValueError(f"{text!r} cannot be written: no folder can be made in {str(there)!r}")
    return path


def existing_file(text: str, base: Path) -> Path:
    """Return the path of an existing file."""
    path = a_file(text, base)
    if not path.exists():
        raise ValueError(f"{text.strip()!r} does not exist: write it first, with --rag-json={text.strip()}")
    return lasting_file(text, base)


def writable_file(text: str, base: Path) -> Path:
    """Return the path of a file that can be written."""
    path = a_file(text, base)
    if path.suffix == ".py":
        raise ValueError(f"{text.strip()!r} is a file of Python: name one to write, and test paths without the option")
    if path.exists() and not path.is_file():
        return path  # a device or a pipe
    folder = next(parent for parent in path.parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(f"{text!r} cannot be written: no file can be made in {str(folder)!r}")
    return path


def lasting_file(text: str, base: Path) -> Path:
    """Return the path of a file that is read and written: no device, which may be read without end, and no pipe."""
    path = a_file(text, base)
    if path.exists() and not path.is_file():
        raise ValueError(f"{text.strip()!r} is a device or a pipe: name a file")
    return path


def a_file(text: str, base: Path) -> Path:
    """Return the path of a file, existing or not."""
    path = a_path(text, base)
    if not text.strip() or (exists(path) and path.is_dir()):
        raise ValueError(f"{text!r} is {'a folder' if text.strip() else 'no file name'}: name a file")
    return path


def portable(value: str | Path, root: Path) -> str:
    """Return a path, or a spec such as ``KIND:FOLDER``, as it reads on every machine.

    A path inside the root is relative to it, of a path outside only the name remains, any other text is unchanged.

    >>> portable(Path("/home/me/shop/tests/judge.jsonl"), Path("/home/me/shop")), portable("openai:gpt-5", Path("/"))
    ('tests/judge.jsonl', 'openai:gpt-5')
    """
    if isinstance(value, str):
        kind, colon, rest = value.partition(":")
        return f"{kind}:{portable(Path(rest), root)}" if colon and Path(rest).is_absolute() else value
    return value.relative_to(root).as_posix() if value.is_relative_to(root) else value.name
