"""The explanation of a cache miss in replay: the nearest recorded request and the difference."""

from __future__ import annotations

import difflib
import heapq
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from pytest_ragmetrics.cache.entry import CacheEntry
from pytest_ragmetrics.text.unicode import printable, shortened

# How many prompts are compared in full, and how much of each.
_CANDIDATES = 16
_COMPARED = 20_000
# The most lines and columns of a difference in a failure message.
_LINES = 40
_WIDTH = 160
# Characters of a long line shown on either side of a change.
_MARGIN = 40


class Neighbours:
    """Recorded entries of one task."""

    def __init__(self, entries: Iterable[CacheEntry]) -> None:
        texts = ((entry, "\n".join(readable(entry.request))) for entry in entries)
        self._entries = [(entry, text, frozenset(text.split("\n"))) for entry, text in texts]

    def explain_miss(self, request: Mapping[str, Any]) -> str:
        """Return the message for a request that is not recorded: how it differs from the nearest one of its task."""
        from rapidfuzz.fuzz import ratio

        task, text = request["task"], "\n".join(readable(request))
        head = f"replaying, and this request was never recorded: {task} ({request.get('kind')}:{request.get('model')})"
        head += "; record it with --rag-cache=auto"
        if not self._entries:
            return f"{head}\nno request of {task} is recorded at all"
        lines = set(text.split("\n"))
        # Those with the most lines in common, of these the ones of a like length, are compared in full.
        closest = heapq.nsmallest(
            _CANDIDATES, self._entries, key=lambda each: (-len(lines & each[2]), abs(len(each[1]) - len(text)))
        )
        scores = [ratio(text[:_COMPARED], other[:_COMPARED]) for _, other, _ in closest]
        entry, other, _ = closest[scores.index(max(scores))]
        changed = difference(other.split("\n"), text.split("\n"), (f"recorded {entry.created}", "asked now"))
        return "\n".join((head, f"the nearest recorded request is {max(scores) / 100:.0%} alike:", *changed))


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


def difference(old: Sequence[str], new: Sequence[str], names: tuple[str, str]) -> list[str]:
    r"""Return the unified diff of two texts, shortened to fit a terminal.

    >>> print(*difference(["task: t", "one"], ["task: t", "two"], ("a", "b")), sep="\n")
    --- a
    +++ b
    @@ -1,2 +1,2 @@
     task: t
    -one
    +two
    """
    lines = list(difflib.unified_diff(old, new, *names, lineterm="", n=1))
    at = 0
    while at < len(lines):
        gone = list(takewhile(lambda line: line.startswith("-"), lines[at:]))
        come = list(takewhile(lambda line: line.startswith("+"), lines[at + len(gone) :]))
        if gone and len(gone) == len(come):
            # A line and its replacement show the part that differs.
            pairs = [_around_change(*pair) for pair in zip(gone, come, strict=True)]
            lines[at : at + 2 * len(gone)] = [line for side in zip(*pairs, strict=True) for line in side]
            at += 2 * len(gone)
        else:
            lines[at] = _shown(lines[at])
            at += 1
    return lines if len(lines) <= _LINES + 1 else [*lines[:_LINES], f"... and {len(lines) - _LINES} lines more"]


def _around_change(old: str, new: str) -> tuple[str, str]:
    from rapidfuzz.distance import Postfix, Prefix

    before = Prefix.similarity(old[1:], new[1:])
    after = min(Postfix.similarity(old, new), min(len(old), len(new)) - 1 - before)
    return _shown(old, before, after), _shown(new, before, after)


def _shown(line: str, before: int = 0, after: int = 0) -> str:
    """Return a line to print; of a long one not all of the ``before`` and ``after`` characters that are unchanged."""
    if len(line) > _WIDTH:
        start, end = 1 + max(0, before - _MARGIN), len(line) - max(0, after - _MARGIN)
        line = f"{line[0]}{'…' if start > 1 else ''}{line[start:end]}{'…' if end < len(line) else ''}"
    return line[:1] + shortened(printable(line[1:]), _WIDTH)
