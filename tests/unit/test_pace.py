"""The pace of requests: no minute has more than its limit, a provider's word counts, and a run that ends waits not."""

from __future__ import annotations

import asyncio
import io
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.core import loop, progress
from pytest_ragmetrics.core.errors import JudgeError
from pytest_ragmetrics.judges.providers.limits import allowances, pause_of
from pytest_ragmetrics.judges.transports.limiter import Limiter
from pytest_ragmetrics.judges.transports.pace import Allowance, Pace
from pytest_ragmetrics.judges.transports.values import ChatMessage, Reply, Request
from tests.virtual_time import virtual_time

MODEL = "openai:mine "


@dataclass
class Counting:
    """A provider that notes when it is asked and for how much."""

    clock: Callable[[], float]
    tokens: int = 0
    asked: list[tuple[float, str, int]] = field(default_factory=list)
    name = "counting"
    is_paid = True
    is_kept = True

    async def complete(self, request: Request) -> Reply:
        self.asked.append((self.clock(), request.task, self.tokens))
        await asyncio.sleep(0.5)
        return Reply(text="{}", prompt_tokens=self.tokens)

    def most_in_a_minute(self) -> tuple[int, int]:
        """Return the most requests and tokens of any 60 seconds."""
        minutes = [[size for time, _, size in self.asked if start <= time < start + 60] for start, _, _ in self.asked]
        return max(map(len, minutes)), max(map(sum, minutes))


def request(provider: Any, number: int = 0, text: str = "x" * 4000) -> Request:
    message = ChatMessage(role="user", content=text)
    given = {"kind": "openai", "model": "mine", "schema": {}, "parameters": {}, "provider": provider}
    return Request(task=f"{number}", messages=(message,), **given)


@pytest.mark.parametrize(
    ("rows", "limits", "tokens", "most"),
    [
        pytest.param(150, (60, None), 0, (60, 0), id="requests"),
        pytest.param(9, (3, None), 0, (3, 0), id="few"),
        pytest.param(40, (None, 10_000), 1200, (8, 9600), id="tokens"),
        pytest.param(8, (None, 10_000), 12_000, (1, 12_000), id="one with more tokens than a minute has"),
        pytest.param(60, (600, 10_000), 600, (16, 9600), id="fewer tokens than expected"),
    ],
)
def test_no_minute_has_more_than_its_limit(rows: int, limits: Any, tokens: int, most: tuple[int, int]) -> None:
    with virtual_time() as clock:
        provider, pace = Counting(clock, tokens), Pace(*limits, clock=clock)
        limiter = Limiter(32, pace=pace)

        async def send() -> None:
            await asyncio.gather(*(limiter.send(request(provider, number)) for number in range(rows)))

        loop.run(send())
    assert provider.most_in_a_minute() <= most
    assert [task for _, task, _ in provider.asked] == [f"{number}" for number in range(rows)]
    # Nothing is left unused but what the network may take.
    at_best = (rows - 1) * max(60 / (limits[0] or 1e9), 60 * tokens / (limits[1] or 1e9))
    assert at_best <= provider.asked[-1][0] <= 1.2 * at_best + 10
    (reason,) = pace.waits
    assert reason in {"the limit of 60 requests a minute", "the limit of 3 requests a minute"} or "tokens" in reason
    assert pace.waits[reason] == pytest.approx(provider.asked[-1][0])


def test_what_costs_nothing_is_not_paced() -> None:
    with virtual_time() as clock:
        provider, pace = Counting(clock), Pace(1, clock=clock)
        provider.is_paid = False
        limiter = Limiter(32, pace=pace)

        async def send() -> None:
            await asyncio.gather(*(limiter.send(request(provider, number)) for number in range(9)))

        loop.run(send())
    assert {time for time, _, _ in provider.asked} == {0.0}


def test_whoever_waits_is_stopped_at_once() -> None:
    """A run that ends lets nobody wait for the next minute, and a test that is cancelled keeps no place."""
    with virtual_time() as clock:
        provider, pace = Counting(clock), Pace(1, clock=clock)
        limiter = Limiter(2, pace=pace)

        async def story() -> None:
            await limiter.send(request(provider))
            first, second, third = (asyncio.ensure_future(limiter.send(request(provider, it))) for it in (1, 2, 3))
            await asyncio.sleep(5)
            assert progress.waiting == "waits for the limit of 1 request a minute"
            first.cancel()
            await asyncio.sleep(2)
            limiter.is_open = False
            for each in (second, third):
                with pytest.raises(JudgeError, match="the run has ended"):
                    await each

        loop.run(story())
        assert (len(provider.asked), progress.waiting) == (1, "")
        assert clock.now < 9


@dataclass
class Hands:
    """A clock that the test sets."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def said(left: float, *, kind: str = "requests", most: float = 60, seconds: float = 20.0) -> Allowance:
    return Allowance(kind=kind, left=left, most=most, seconds=seconds)


def test_what_a_provider_says_counts() -> None:
    clock = Hands()
    pace = Pace(clock=clock)
    sent = [pace.take(MODEL, 100) for _ in range(4)]
    # Two were sent after the second, whose reply comes last of those that say something.
    pace.hear(MODEL, [said(5)], sent[1])
    pace.hear(MODEL, [said(50)], sent[0])
    for _ in range(3):
        assert pace.wait(MODEL, 100)[0] == 0
        pace.take(MODEL, 100)
    assert pace.wait(MODEL, 100) == (20, "the provider's limit of 60 requests")
    assert pace.wait("openai:other ", 100) == (0, "")
    clock.now += 20
    assert pace.wait(MODEL, 100)[0] == 0
    # All of it is there again.
    marks = [pace.take(MODEL, 100) for _ in range(60)]
    assert pace.wait(MODEL, 100)[0] == 20
    pace.hear(MODEL, [said(59), said(300, kind="tokens", most=1000, seconds=6)], marks[-1])
    assert (pace.wait(MODEL, 300)[0], pace.wait(MODEL, 301)) == (0, (6, "the provider's limit of 1,000 tokens"))
    clock.now += 6
    # More than there ever is does not wait for ever.
    assert pace.wait(MODEL, 5000)[0] == 0


def test_a_pause_is_for_all() -> None:
    clock = Hands()
    pace = Pace(600, clock=clock)
    marks = pace.take(MODEL, 1)
    pace.take(MODEL, 1)
    pace.pause(MODEL, 30)
    pace.pause(MODEL, 5)
    # An answer on its way says nothing of it.
    pace.hear(MODEL, [said(59)], marks)
    assert pace.wait(MODEL, 1) == (30, "the provider's limit")
    clock.now += 31
    assert pace.wait(MODEL, 1)[0] <= 0


def test_processes_share_what_a_minute_has(tmp_path: Path) -> None:
    clock = Hands()
    file = tmp_path / "pace.sqlite"
    with closing(Pace(60, clock=clock, file=file)) as one, closing(Pace(60, clock=clock, file=file)) as other:
        one.take(MODEL, 100)
        assert other.wait(MODEL, 100)[0] == pytest.approx(1.05 - 0.25)
        one.hear(MODEL, [said(0)], other.take(MODEL, 100))
        assert other.wait(MODEL, 100) == (20, "the provider's limit of 60 requests")


def test_what_fails_between_leaves_the_file_to_the_others(tmp_path: Path) -> None:
    file = tmp_path / "pace.sqlite"
    with closing(Pace(60, clock=Hands(), file=file)) as one, closing(Pace(60, clock=Hands(), file=file)) as other:
        one.take(MODEL, 100)
        with pytest.raises(KeyError, match="tokens"):
            one.hear(MODEL, [Allowance(kind="tokens", left=0, most=1, seconds=9)], {})
        assert other.wait(MODEL, 100)[0] == one.wait(MODEL, 100)[0] > 0


def test_without_the_file_each_keeps_its_share_of_the_limits(tmp_path: Path) -> None:
    file = tmp_path / "pace.sqlite"
    file.write_bytes(b"no database" * 100)
    pace = Pace(60, clock=Hands(), file=file, workers=2)
    pace.take(MODEL, 100)
    assert pace.wait(MODEL, 100)[1] == "the limit of 30 requests a minute"
    with closing(sqlite3.connect(file)) as connection, pytest.raises(sqlite3.Error):
        connection.execute("SELECT * FROM pace")


OPENAI = {"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0"}
RESET = "anthropic-ratelimit-tokens-reset"
ANTHROPIC = {"anthropic-ratelimit-tokens-limit": "80000", "anthropic-ratelimit-tokens-remaining": "1000"}
DATE = {"date": "Sat, 28 Nov 2026 00:48:13 GMT"}


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        *(
            ({**OPENAI, "x-ratelimit-reset-requests": text}, [said(0, seconds=seconds)])
            for text, seconds in {"1s": 1, "1m0.5s": 60.5, "17ms": 0.017, "12": 12, "-3": 0}.items()
        ),
        ({**ANTHROPIC, **DATE, RESET: "2026-11-28T00:48:43Z"}, [said(1000, kind="tokens", most=80_000, seconds=30)]),
        # Of a day, without a time, and what is none.
        *(({**OPENAI, "x-ratelimit-reset-requests": text}, []) for text in ("7m12s", "", "soon", "nan", "1e999", "T")),
        ({**ANTHROPIC, **DATE, RESET: "2026-11-28T00:48:43"}, []),
        ({**ANTHROPIC, "date": "today", RESET: "2026-11-28T00:48:43Z"}, []),
        ({**OPENAI, "x-ratelimit-remaining-requests": "-1", "x-ratelimit-reset-requests": "1s"}, []),
        ({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "1s"}, []),
    ],
)
def test_headers_of_limits(headers: dict[str, str], found: list[Allowance]) -> None:
    for each, wanted in zip(allowances(headers), found, strict=True):
        assert (each.kind, each.left, each.most) == (wanted.kind, wanted.left, wanted.most)
        assert each.seconds == pytest.approx(wanted.seconds)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry-after": "20"}, 20), ({"retry-after-ms": "5", "retry-after": "1"}, 0.005), ({"retry-after": "600"}, None)],
)
def test_pauses(headers: dict[str, str], seconds: float | None) -> None:
    assert pause_of(headers) == seconds


def test_a_wait_shows_behind_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "_INTERVAL", 0.0)
    line = progress.Progress("scored", 3)
    progress.waits("waits for the limit")
    line.advance()
    progress.waits("")
    line.advance()
    line.finish()
    progress.waits("waits for nobody")
    progress.waits("")
    shown = screen.getvalue().split("\r")[1:]
    assert [text.rstrip(" ") for text in shown] == [
        "scored 0/3; waits for the limit",
        "scored 1/3; waits for the limit",
        "scored 2/3",
        "scored 2/3\n",
    ]
    assert len(shown[2]) == len(shown[1])
