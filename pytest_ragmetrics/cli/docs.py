"""`ragmetrics docs`: shows the pages of `pytest_ragmetrics/docs`, and the entries of the reference by name."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_ragmetrics.cli.command import Arguments, argument, command, fitted, terminal_width
from pytest_ragmetrics.core.errors import ArgumentError
from pytest_ragmetrics.core.other_tools import equivalent_of, written_instead
from pytest_ragmetrics.runs.wording.figures import text_table
from pytest_ragmetrics.text.unicode import printable_lines

if TYPE_CHECKING:
    from importlib.abc import Traversable

FOLDER = Path(__file__).parents[1] / "docs"
#: The order of the topics; those in no folder of this list come last.
_FOLDERS = ("tutorial", "how-to/", "explanation", "reference/")
_HEADING = re.compile(r"^(#{2,4}) (.+)$", re.MULTILINE)
_FENCED = re.compile(r"^(`{3,}).*?^\1`*$", re.MULTILINE | re.DOTALL)
#: The line of an entry with the other names it is found by.
_ALSO = re.compile(r"\n\nAlso: (.+)")
#: The helper in the signatures of an entry.
_HELPER = re.compile(r"^```py\n(?:(?!```).*\n)*?(assert_\w+)\(", re.MULTILINE)
#: Topics that list pages, and what the topics of those begin with.
_LISTS = {**dict.fromkeys(("", "-h", "--help", "index"), ""), "how-to": "how-to/", "reference": "reference/"}
#: What a name may have around it where it is used: a way to a page, a decorator, a value or arguments, an ending.
_AROUND = re.compile(r"^(?:[./]*/|@)|(?<=.)[=(].*$|\.md$", re.DOTALL)
#: What a topic may leave out: how names of the plugin and pages on moving begin, and the last letter of a plural.
_LEFT_OUT = re.compile(r"^(?:--)?(?:rag|from)[-_ ]|s$", re.IGNORECASE)
#: How many pages with a word are named.
_MENTIONED = 4
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_PICTURE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r" *([-*>|]|\d+\.) ")
#: The end of a line whose paragraph goes on: what follows is no blank line, item, heading, row or quotation.
_WITHIN = re.compile(r"(?<=[^\n|]) *\n *(?![-*#|>] |\||\d+\. |\n|$)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page: its topic, which is its path without ``.md``, and its text in Markdown."""

    topic: str
    text: str

    @property
    def names(self) -> tuple[str, str]:
        """The topic, and its last part."""
        return self.topic, self.topic.rpartition("/")[2]

    @property
    def title(self) -> str:
        """The first heading."""
        return next((line[2:] for line in self.text.splitlines() if line.startswith("# ")), self.topic)

    @property
    def summary(self) -> str:
        """The first sentence below the title, without links."""
        below = f"\n{self.text}".partition("\n# ")[2].partition("\n\n")[2]
        paragraphs = (part.strip() for part in below.split("\n\n"))
        first = _LINK.sub(r"\1", " ".join(next(filter(None, paragraphs), "").split()))
        return re.split(r"(?<=[\w)`*][.!?]) (?=[A-Z`*])", first)[0].rstrip(":")

    def entries(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the sections below the headings, each with the names it is found by."""
        # A line of code may look like a heading.
        masked = _FENCED.sub(lambda block: "." * len(block[0]), self.text)
        found = list(_HEADING.finditer(masked))
        for number, heading in enumerate(found):
            after = (other.start() for other in found[number + 1 :] if len(other[1]) <= len(heading[1]))
            text = self.text[heading.start() : next(after, None)].rstrip()
            also = _ALSO.match(text, heading.end() - heading.start())
            named = heading[2] if also is None else f"{heading[2]} {also[1]}"
            title = heading[2].replace("`", "")
            yield (title, title.removeprefix("ragmetrics "), *_CODE.findall(named), *_HELPER.findall(text)[:1]), text


def pages(folder: Traversable | None = None) -> tuple[Page, ...]:
    """Return all pages, in the order in which they are listed; by default those of this package, also in an archive.

    >>> "tutorial" in [page.topic for page in pages()]
    True
    """

    def order(page: Page) -> tuple[int, str]:
        known = (number for number, start in enumerate(_FOLDERS) if page.topic.startswith(start))
        return next(known, len(_FOLDERS)), page.topic

    texts = _texts(folder or files("pytest_ragmetrics") / "docs")
    found = (Page(topic=topic, text=_COMMENT.sub("", text)) for topic, text in texts)
    return tuple(sorted((page for page in found if page.topic != "index"), key=order))


def _texts(folder: Traversable, place: str = "") -> Iterator[tuple[str, str]]:
    for file in folder.iterdir():
        if file.is_dir():
            yield from _texts(file, f"{place}{file.name}/")
        elif file.name.endswith(".md"):
            yield f"{place}{file.name.removesuffix('.md')}", file.read_text("utf-8")


def topic_text(topic: str) -> str:
    """Return the page of a topic, else the entries of a name; raise ``ArgumentError`` that lists the nearest ones.

    >>> topic_text("--rag-max-cost").splitlines()[0]
    '## `--rag-max-cost`'
    """
    every = pages()
    place, _, anchor = (_AROUND.sub("", part.strip()) for part in topic.strip().partition("#"))
    if anchor:
        # An anchor may stand alone, or behind an unknown place.
        beside = [page for page in every if _folded(place) in map(_folded, page.names)]
        found = _found(anchor, beside or every, _folded)[1]
    else:
        last = re.sub(r"@\d+$", "@k", place.rpartition(".")[2])
        asked = ((topic, _folded), (place, _folded), (last, _folded), (last, _shortened))
        found = next(filter(None, (part for name, fold in asked for part in _found(name, every, fold))), [])
    if found:
        return "\n\n".join(found)
    names: dict[str, str] = {_folded(page.topic): page.topic for page in every}
    for name in (name for page in every for known, _ in page.entries() for name in known):
        names.setdefault(_folded(name), name)
    near = [names[name] for name in get_close_matches(_folded(topic)[:60], names, 3, cutoff=0.75)]
    often = {page.topic: page.text.casefold().count(topic.casefold()) for page in every}
    mentioned = [name for name in sorted(often, key=often.__getitem__, reverse=True) if often[name]][:_MENTIONED]
    hint = f"did you mean {' or '.join(near)}?" if near else "`ragmetrics docs` lists all of them"
    if mentioned:
        hint = f"it is mentioned in {', '.join(mentioned)}" + (f"; {hint}" if near else "")
    theirs = written_instead("names").get(topic)
    hint = f"write {theirs}" if theirs else equivalent_of(topic) or hint
    raise ArgumentError(f"there is no topic {topic!r}: {hint}")


def _found(name: str, every: Sequence[Page], fold: Callable[[str], str]) -> tuple[list[str], list[str]]:
    """Return the first page of a name, and all entries that it heads, else those that have it as another name."""
    wanted = fold(name)
    if not wanted:
        return [], []
    texts = [page.text.strip() for page in every if wanted in map(fold, page.names)]
    found = [(known, text) for page in every for known, text in page.entries() if wanted in map(fold, known)]
    headed = [text for known, text in found if wanted in map(fold, known[:2])]
    return texts[:1], headed or [text for _, text in found]


def _folded(name: str) -> str:
    """Return a name without the differences in which options, ini keys, classes and metrics are written."""
    return re.sub(r"[-_` ]", "", name).casefold()


def _shortened(name: str) -> str:
    return _folded(_LEFT_OUT.sub("", name))


def _wrapped(text: str) -> list[str]:
    """Return the lines of a page for this terminal: paragraphs are wrapped, and code is as it is."""
    lines: list[str] = []
    end = 0
    for block in (*_FENCED.finditer(text), None):
        prose = _PICTURE.sub(r"[picture: \1]", text[end : block.start() if block else None])
        for line in _WITHIN.sub(" ", prose).split("\n"):
            lines += fitted([line], hanging=2 if _ITEM.match(line) else 0)
        if block:
            lines[-1:] = block[0].split("\n")
            end = block.end() + 1
    return lines


def _listing(start: str) -> Iterator[str]:
    yield "usage: ragmetrics docs [TOPIC]"
    yield "TOPIC is a page of this list, or the name of a metric, option, marker, fixture, hook, command or function."
    yield ""
    rows = [(page.topic, page.summary.replace("`", "")) for page in pages() if page.topic.startswith(start)]
    table = text_table([("topic", "what it says"), *rows], width=terminal_width(), left=2)
    yield from map(str.rstrip, table)


# Options of pytest are topics: the command has no options of its own.
@command("docs", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@argument("topic [TOPIC]...", "a page, or a name: of a metric, an option, a hook", type=click.UNPROCESSED)
def run(arguments: Arguments) -> Sequence[str]:
    """Show the documentation: a page, or the entry of a metric, an option or another name."""
    topic = " ".join(arguments.topic)
    start = _LISTS.get(topic.strip(" /"))
    text = topic_text(topic) if start is None else None
    if not sys.stdout.isatty():
        return text.splitlines() if text else list(_listing(start or ""))
    lines = _wrapped(text) if text else list(_listing(start or ""))
    click.echo_via_pager(printable_lines("\n".join(lines)))
    return ()
