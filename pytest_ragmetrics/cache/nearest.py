"""The explanation of a cache miss in replay: the nearest recorded request and the difference."""

from __future__ import annotations

import difflib
import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from pytest_ragmetrics.cache.entry import CacheEntry
from pytest_ragmetrics.text.characters import printable, shortened

# A line that more prompts than this share does not distinguish them.
_COMMON = 64
# How many prompts are compared in full, and how much of each.
_CANDIDATES = 16
_COMPARED = 20_000
# The most lines and columns of a difference in a failure message.
_LINES = 40
_WIDTH = 160
# Characters of a long line shown on either side of a change.
_MARGIN = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class NearestRecording:
    """The recorded entry closest to a request; ``similarity`` of the two texts is in [0, 1]."""

    entry: CacheEntry
    similarity: float
    difference: tuple[str, ...]


class Neighbours:
    """Recorded entries of one task, indexed by line, so that few of them are compared in full."""

    def __init__(self, entries: Iterable[CacheEntry]) -> None:
        self._entries = tuple(entries)
        self._texts = ["\n".join(readable(entry.request)) for entry in self._entries]
        self._having: defaultdict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(self._texts):
            for line in set(text.split("\n")):
                self._having[line].append(number)

    def nearest(self, request: Mapping[str, Any]) -> NearestRecording | None:
        """Return the entry nearest to a request; ``None`` if there is no entry."""
        from rapidfuzz.fuzz import ratio

        lines = readable(request)
        text = "\n".join(lines)
        scored = [(ratio(text[:_COMPARED], self._texts[n][:_COMPARED]), -n) for n in self._candidates(text)]
        if not scored:
            return None
        score, number = max(scored)
        entry = self._entries[-number]
        names = (f"recorded {entry.created}", "asked now")
        return NearestRecording(
            entry=entry, similarity=score / 100, difference=difference(readable(entry.request), lines, names)
        )

    def _candidates(self, text: str) -> set[int]:
        shared: Counter[int] = Counter()
        for line in set(text.split("\n")):
            having = self._having.get(line, ())
            if len(having) <= _COMMON:
                shared.update(having)
        closest = heapq.nsmallest(
            _CANDIDATES, range(len(self._texts)), key=lambda number: abs(len(self._texts[number]) - len(text))
        )
        return {number for number, _ in shared.most_common(_CANDIDATES)} | set(closest)


def readable(request: Mapping[str, Any]) -> list[str]:
    """Return a request as lines: task, kind, model and parameters, then the messages.

    >>> readable({"task": "embedding", "kind": "openai", "model": "m", "text": "Water is wet."})
    ['task: embedding', 'kind: openai', 'model: m', 'text:', 'Water is wet.']
    """
    lines = []
    for name, value in request.items():
        if name not in ("messages", "text"):
            lines.append(f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    for message in request.get("messages", ()):
        lines += [f"{message['role']}:", *message["content"].split("\n")]
    if "text" in request:
        lines += ["text:", *request["text"].split("\n")]
    return lines


def difference(old: Sequence[str], new: Sequence[str], names: tuple[str, str]) -> tuple[str, ...]:
    r"""Return the unified diff of two texts, shortened to fit a terminal.

    >>> print(*difference(["task: t", "one"], ["task: t", "two"], ("a", "b")), sep="\n")
    --- a
    +++ b
    @@ -1,2 +1,2 @@
     task: t
    -one
    +two
    """
    lines = list(_shortened(list(difflib.unified_diff(old, new, *names, lineterm="", n=1))))
    if len(lines) > _LINES:
        lines[_LINES:] = [f"... and {len(lines) - _LINES} lines more"]
    return tuple(lines)


def _shortened(lines: list[str]) -> Iterator[str]:
    """Shorten long lines; a line and its replacement to where they differ."""
    at = 0
    while at < len(lines):
        gone = _run(lines, at, "-")
        come = _run(lines, at + gone, "+")
        pairs = [_window(old, new) for old, new in zip(lines[at : at + gone], lines[at + gone :], strict=False)]
        if gone and gone == come:
            yield from (old for old, _ in pairs)
            yield from (new for _, new in pairs)
            at += gone + come
        else:
            yield _line(lines[at])
            at += 1


def _run(lines: Sequence[str], at: int, mark: str) -> int:
    return sum(1 for _ in takewhile(lambda line: line.startswith(mark), lines[at:]))


def _window(old: str, new: str) -> tuple[str, str]:
    before = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old[1:], new[1:], strict=False)))
    rest = min(len(old), len(new)) - 1 - before
    ends = zip(reversed(old), reversed(new), strict=False)
    after = min(rest, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends)))
    return _around(old, before, after), _around(new, before, after)


def _around(line: str, before: int, after: int) -> str:
    """Return a line without most of its first ``before`` and last ``after`` characters, which are unchanged."""
    if len(line) <= _WIDTH:
        return _line(line)
    start = 1 + max(0, before - _MARGIN)
    end = len(line) - max(0, after - _MARGIN)
    middle = f"{'…' if start > 1 else ''}{line[start:end]}{'…' if end < len(line) else ''}"
    return _line(line[0] + middle)


def _line(line: str) -> str:
    return line[:1] + shortened(printable(line[1:]), _WIDTH) if line else line


def explain_miss(request: Mapping[str, Any], nearest: NearestRecording | None) -> str:
    """Return the message for a request that is not recorded."""
    asked = f"{request['task']} ({request.get('kind')}:{request.get('model')})"
    head = f"replaying, and this request was never recorded: {asked}; record it with --rag-cache=auto"
    if nearest is None:
        return f"{head}\nno request of {request['task']} is recorded at all"
    return "\n".join((head, f"the nearest recorded request is {nearest.similarity:.0%} alike:", *nearest.difference))
