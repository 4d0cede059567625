"""What a provider bills for prompts by the rules of its cache, for the fake server and for judges without one.

The schema is the first part of a prompt. Beginnings are kept from a number of tokens on, as the model has it: up to the
breakpoints, as far as the one before them goes, or any beginning where the rule is ``automatic``, in steps of 128. A
beginning can be read once the answer to the request that wrote it has ``begun``, a share of its latency. A token has
four characters.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.fake_answers import answer_sensibly, text_of
from tests.fake_openai import Body, Reply

#: The price of a token that was read, and of one that was written, as shares of that of an ordinary one.
READ, WRITTEN = 0.1, 1.25


@dataclass(kw_only=True)
class PromptCache:
    """Answers sensibly, with the usage of a provider; ``implicit`` rules mark the end of the prompt by themselves."""

    rule: Literal["implicit", "explicit", "automatic"] = "explicit"
    least: int = 1024
    latency: float = 0.05
    begun: float = 1.0
    clock: Callable[[], float] = time.monotonic
    kept: dict[str, float] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("prompt", "read", "written"), 0))

    def __call__(self, body: Body) -> Reply:
        text, ends = _flat(body, implicit=self.rule == "implicit")
        read, written = self._automatic(text) if self.rule == "automatic" else self._marked(text, ends)
        prompt = len(text) // 4
        for name, count in (("prompt", prompt), ("read", read), ("written", written)):
            self.totals[name] += count
        return Reply(text=answer_sensibly(body), usage=(prompt, 10), cached=read, written=written, latency=self.latency)

    @property
    def bill(self) -> float:
        """What all prompts cost, in ordinary tokens."""
        read, written = self.totals["read"], self.totals["written"]
        return self.totals["prompt"] - read - written + READ * read + WRITTEN * written

    def _marked(self, text: str, ends: list[int]) -> tuple[int, int]:
        now = self.clock()
        long = [end for end in sorted(ends) if end // 4 >= self.least]
        read = max((end for end in long if text[:end] in self.kept and self.kept[text[:end]] <= now), default=0)
        for end in long:
            self.kept.setdefault(text[:end], now + self.begun * self.latency)
        return read // 4, (max(long, default=0) - read) // 4

    def _automatic(self, text: str) -> tuple[int, int]:
        now = self.clock()
        common = [_common(text, other) for other, ready in self.kept.items() if ready <= now]
        self.kept.setdefault(text, now + self.begun * self.latency)
        read = max(common, default=0) // 4 // 128 * 128
        return (read if read >= self.least else 0), 0


def _common(one: str, other: str) -> int:
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if one[least:middle] == other[least:middle] else (least, middle - 1)
    return least


def _flat(body: Body, *, implicit: bool) -> tuple[str, list[int]]:
    """Return all that is sent as one text, and where its breakpoints are."""
    form = json.dumps([body["model"], body.get("response_format"), body.get("tools")], sort_keys=True)
    text, ends = f"{form}{body.get('system', '')}", []
    for message in body["messages"]:
        content: Any = message["content"]
        for part in [{"text": content}] if isinstance(content, str) else content:
            text += text_of([part])
            if "prompt_cache_breakpoint" in part or "cache_control" in part:
                ends.append(len(text))
    if implicit and "prompt_cache_options" not in body:
        ends.append(len(text))
    return text, ends
