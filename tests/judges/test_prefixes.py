"""Requests over the same contexts share the provider's prompt cache; no write is paid for that nobody reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from pytest_ragmetrics import evaluate
from pytest_ragmetrics.core import loop
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.judges.providers.anthropic import AnthropicJudge
from pytest_ragmetrics.judges.providers.connection import ApiJudge
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from pytest_ragmetrics.judges.schema import InvalidAnswer
from pytest_ragmetrics.judges.tasks import JudgeUsefulness, ListClaims, Task, VerifyClaims
from pytest_ragmetrics.judges.transports.limiter import Limiter
from pytest_ragmetrics.judges.transports.prefixes import Prefixes
from pytest_ragmetrics.judges.transports.values import Reply, Request
from tests.asking import KINDS, use
from tests.every_task import EVERY_TASK
from tests.fake_openai import FakeOpenAI
from tests.fake_prompt_cache import PromptCache
from tests.virtual_time import virtual_time

LONG = tuple(f"Record {part} of it. " + f"The wheel of mill {part} turns nine times a minute. " * 60 for part in "ab")
CLAIMS = [VerifyClaims(claims=(f"The wheel turns {number} times.",), contexts=LONG) for number in range(4)]
USE = JudgeUsefulness(question="How often does it turn?", answer="Nine times.", contexts=LONG)


def direct(server: FakeOpenAI, model: str, kind: str = "openai", **options: Any) -> ApiJudge[Any]:
    """Return a judge for whom the server is the provider itself."""
    url = server.base_url if kind == "openai" else server.root_url
    made: Any = type("Direct", (KINDS[kind],), {"vendor": replace(KINDS[kind].vendor, url=url)})
    judge: ApiJudge[Any] = made(model, api_key="sk-fake", **options)
    return judge


MODELS = {"implicit": "gpt-5.6-luna", "explicit": "claude-haiku-5-5", "automatic": "gpt-5.4-mini"}
SHORT = VerifyClaims(claims=("It turns.",), contexts=("The wheel turns.",))
LISTED = ListClaims(text="The wheel turns.")


@dataclass(kw_only=True)
class Asked:
    """A request ``at`` a time, whose answer takes ``seconds`` and which may lead to one over the same contexts."""

    task: Task[Any]
    at: float = 0.0
    seconds: float = 1.0
    then: Task[Any] | None = None
    fails: bool = False
    vote: int = 0


def sent(width: int, asked: Sequence[Asked], judge: ApiJudge[Any] | None = None) -> list[tuple[int, float, int]]:
    """Return each request in the order of sending: its number, when it was sent, and how many marks it had."""
    judge = judge or OpenAIJudge("gpt-5.6-luna", api_key="sk-fake")
    order: list[tuple[int, float, int]] = []
    made = (judge.request(each.task, vote=each.vote) for each in asked)
    requests = [replace(each, then=asked[n].then, url=str(n)) for n, each in enumerate(made)]

    class Slow:
        async def send(self, request: Any) -> Reply:
            each = asked[number := int(request.url)]
            order.append((number, asyncio.get_running_loop().time(), len(request.marks())))
            await asyncio.sleep(each.seconds)
            if each.fails:
                raise RuntimeError("no answer")
            return Reply(text="{}")

    async def run() -> None:
        limiter = Limiter(width, Slow())
        link = Prefixes(limiter, clock=asyncio.get_running_loop().time)

        async def ask(each: Asked, request: Request) -> Reply:
            await asyncio.sleep(each.at)
            return await link.send(request)

        await asyncio.gather(*map(ask, asked, requests), return_exceptions=True)
        assert all(known.until or known.due for known in link._known.values())
        assert not any(known.expected or known.writing for known in link._known.values())

    with virtual_time():
        loop.run(run())
    return order


def ask(*tasks: Task[Any]) -> list[Asked]:
    return [Asked(task=task) for task in tasks]


LEADS = Asked(task=LISTED, then=VerifyClaims(claims=(), contexts=LONG))


AT, ELSEWHERE = partial(Asked, task=USE), replace(USE, contexts=LONG[::-1])
FIRST, FAILED = partial(Asked, task=CLAIMS[0]), Asked(task=CLAIMS[0], fails=True)
LATE = Asked(task=SHORT, at=0.5)
#: How many places there are, what is asked, and of each request its number, when it was sent, and its marks.
SENT: dict[str, tuple[int, Sequence[Asked], list[tuple[int, float, int]]]] = {
    "alone": (9, ask(USE), [(0, 0, 0)]),
    "the others wait for the first": (9, ask(*CLAIMS[:3]), [(0, 0, 1), (1, 1, 1), (2, 1, 1)]),
    "who has no place reads": (1, ask(*CLAIMS[:3]), [(0, 0, 1), (1, 1, 1), (2, 2, 1)]),
    "others take the places meanwhile": (
        2,
        [FIRST(seconds=3), *ask(CLAIMS[1], SHORT), LATE, LATE],
        [(0, 0, 1), (2, 0, 0), (3, 1, 0), (4, 2, 0), (1, 3, 1)],
    ),
    "written for what is led to": (3, [LEADS] * 3 + ask(USE), [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 1, 1)]),
    "the same about other contexts": (1, ask(USE, ELSEWHERE), [(0, 0, 0), (1, 1, 0)]),
    "leads to what is too short": (9, [Asked(task=LISTED, then=SHORT), *ask(SHORT)], [(0, 0, 0), (1, 0, 0)]),
    "too short to be cached": (1, ask(SHORT, SHORT), [(0, 0, 0), (1, 1, 0)]),
    "known to come": (9, [AT(), replace(LEADS, seconds=2), FIRST(at=2)], [(0, 0, 1), (1, 0, 0), (2, 2, 1)]),
    "as long as the first takes": (9, [LEADS, AT(seconds=5), *ask(CLAIMS[1])], [(0, 0, 0), (1, 0, 1), (2, 5, 1)]),
    "written while what leads to a reader is under way": (
        9,
        [replace(LEADS, seconds=3), AT(at=0.5, seconds=2), FIRST(at=3.5)],
        [(0, 0, 0), (1, 0.5, 1), (2, 3.5, 1)],
    ),
    "what was led to came alone": (9, [LEADS, FIRST(at=1.5)], [(0, 0, 0), (1, 1.5, 0)]),
    "what was led to never came": (9, [LEADS, AT(at=2.1)], [(0, 0, 0), (1, 2.1, 0)]),
    "nobody waits for one that writes nothing": (
        9,
        [AT(seconds=2), FIRST(at=1), Asked(task=CLAIMS[1], at=1)],
        [(0, 0, 0), (1, 1, 1), (2, 2, 1)],
    ),
    "one that failed has written nothing": (1, [FAILED, *ask(*CLAIMS[1:3])], [(0, 0, 1), (1, 1, 1), (2, 2, 1)]),
    "and no other one is known": (1, [FAILED, *ask(CLAIMS[1])], [(0, 0, 1), (1, 1, 0)]),
    "forgotten after four minutes": (
        1,
        [*ask(*CLAIMS[:2]), AT(at=240), AT(at=500)],
        [(0, 0, 1), (1, 1, 1), (2, 240, 1), (3, 500, 0)],
    ),
    "votes share all": (1, [AT(vote=vote) for vote in range(3)], [(0, 0, 2), (1, 1, 2), (2, 2, 2)]),
}


@pytest.mark.parametrize(("width", "asked", "expected"), SENT.values(), ids=SENT)
def test_what_is_marked_and_when_it_is_sent(width: int, asked: Sequence[Asked], expected: list[Any]) -> None:
    assert sent(width, asked) == expected


@pytest.mark.parametrize(
    ("model", "tokens", "marks"),
    [
        *(("gpt-5.6-luna", 700, 0), ("gpt-5.6-luna", 1300, 1), ("gpt-5.4-mini", 1300, 1)),
        *(("claude-haiku-5-5", 500, 1), ("claude-opus-5", 500, 1), ("claude-sonnet-4-6", 1600, 0)),
        *(("claude-sonnet-5", tokens, marks) for tokens, marks in ((700, 0), (1300, 1))),
        *(("claude-haiku-4-5-20251001", tokens, marks) for tokens, marks in ((3500, 0), (5200, 1))),
    ],
)
def test_the_least_that_a_model_caches(model: str, tokens: int, marks: int) -> None:
    kind = "anthropic" if model.startswith("claude") else "openai"
    contexts = ("The wheel of a mill turns nine times a minute. " * (tokens * 4 // 47),)
    tasks = [VerifyClaims(claims=(f"It turns {number} times.",), contexts=contexts) for number in range(2)]
    assert [found for _, _, found in sent(1, ask(*tasks), KINDS[kind](model, api_key="sk-fake"))] == [marks, marks]


def test_other_servers_are_left_alone(server: FakeOpenAI) -> None:
    judge = OpenAIJudge("gpt-5.6-luna", base_url=server.base_url, api_key="sk-fake")
    assert sent(1, ask(*CLAIMS), judge) == [(number, number, 0) for number in range(4)]
    assert "prompt_cache_options" not in bodies(server, judge, judge.request(USE))[0]


def bodies(server: FakeOpenAI, judge: ApiJudge[Any], *requests: Request) -> list[dict[str, Any]]:
    """Send requests one after the other; return what the server got."""
    server.requests.clear()
    use(judge, *map(judge.complete, requests))
    return [request.body for request in server.requests]


def marked(judge: ApiJudge[Any], task: Task[Any]) -> Request:
    """Return a request that is to be cached up to the end of its contexts."""
    request = judge.request(task)
    end = request.messages[1]["content"].index("contexts>>>") + len("contexts>>>")
    return replace(request, marks=lambda: (end,))


@pytest.mark.parametrize("task", [CLAIMS[0], USE], ids=["claims", "use"])
def test_a_breakpoint_stands_behind_the_contexts(server: FakeOpenAI, task: Task[Any]) -> None:
    judge = direct(server, "gpt-5.6-luna")
    body, lone = bodies(server, judge, marked(judge, task), judge.request(task))
    assert body["prompt_cache_options"] == lone["prompt_cache_options"] == {"mode": "explicit"}
    first, rest = body["messages"][1]["content"]
    assert (first["prompt_cache_breakpoint"], "prompt_cache_breakpoint" in rest) == ({"mode": "explicit"}, False)
    assert first["text"].endswith("contexts>>>")
    assert first["text"] + rest["text"] == lone["messages"][1]["content"]
    assert body["response_format"]["json_schema"]["name"] == "answer"
    assert body["response_format"]["json_schema"]["schema"] == task.envelope
    assert lone["response_format"]["json_schema"]["name"] == task.prompt
    assert json.loads(json.dumps(judge.wire(judge.request(task)))) == lone


def test_the_other_ways_to_a_cache(server: FakeOpenAI) -> None:
    old = direct(server, "gpt-5.4-mini")
    body, other, lone = bodies(server, old, marked(old, USE), marked(old, CLAIMS[0]), old.request(USE))
    assert 0 < len(body["prompt_cache_key"]) <= 64
    assert other["prompt_cache_key"] == body["prompt_cache_key"]
    assert other["response_format"] == body["response_format"]
    assert not {"prompt_cache_options", "prompt_cache_key"} & lone.keys()
    assert isinstance(body["messages"][1]["content"], str)
    claude = direct(server, "claude-haiku-5-5", "anthropic")
    body, lone = bodies(server, claude, marked(claude, USE), claude.request(USE))
    assert [part.get("cache_control") for part in body["messages"][0]["content"]] == [{"type": "ephemeral"}, None]
    assert (body["tools"][0]["name"], lone["tools"][0]["name"]) == ("answer", "judge_usefulness")
    assert isinstance(lone["messages"][0]["content"], str)


@pytest.mark.parametrize(
    ("rule", "refused"),
    [("implicit", "prompt_cache_options"), ("automatic", "prompt_cache_key"), ("explicit", "cache_control")],
)
def test_what_a_model_refuses_is_left_out(server: FakeOpenAI, rule: str, refused: str) -> None:
    judge = direct(server, MODELS[rule], "anthropic" if rule == "explicit" else "openai")
    server.refuses = frozenset({refused})
    found = bodies(server, judge, marked(judge, USE), marked(judge, USE))
    assert [refused in str(body) for body in found] == [True, False, False]
    assert judge.cached_from is None


#: The rest of one long sentence, as every sentence of a context takes time to judge.
TURNS = ", the wheel of the mill turns" * 28
ROWS = [
    Sample(
        user_input=f"How often does the wheel of mill {number} turn?",
        response=f"The wheel of mill {number} turns nine times a minute. It stands still in August.",
        reference=f"The wheel of mill {number} turns nine times.",
        retrieved_contexts=[f"Record {number}.{part}. The wheel of mill {number} turns{TURNS}" for part in range(13)],
    )
    for number in range(8)
]
FIVE = ("faithfulness", "answer_relevancy", "context_precision", "context_recall", "answer_correctness")


def billed(
    rule: Any, rows: Sequence[Sample], metrics: Sequence[str], *, width: int, caching: bool = True, **cache: Any
) -> tuple[PromptCache, float]:
    """Return the cache of a provider after all rows were scored, and how many seconds that took."""
    made, least = (AnthropicJudge, 512) if rule == "explicit" else (OpenAIJudge, 1024)
    with virtual_time() as clock:
        kept = PromptCache(rule=rule, least=least, latency=0.1, clock=clock, **cache)

        async def complete(judge: ApiJudge[Any], request: Request) -> Reply:
            reply = kept(judge._body(request, judge.terms))
            await asyncio.sleep(reply.latency)
            return Reply(text=str(reply.text), prompt_tokens=1, completion_tokens=1)

        own = {} if caching else {"cached_from": None}
        judge: ApiJudge[Any] = type("Virtual", (made,), {"complete": complete, **own})(MODELS[rule], api_key="sk-fake")
        table = evaluate(rows, metrics, judge=judge, embedder="local", concurrency=width, progress=False)
        assert [row.unscored for row in table.rows if row.unscored] == []
        return kept, clock.now


@pytest.mark.parametrize(
    ("rule", "width", "most"),
    [("implicit", 6, 0.51), ("explicit", 24, 0.57), ("explicit", 2, 0.57), ("automatic", 6, 0.57)],
)
def test_the_bill_of_a_table(rule: str, width: int, most: float) -> None:
    """It falls by what can be read, and by what is asked together, and the table takes no longer."""
    apart = [billed(rule, ROWS, some, width=width, caching=False) for some in (FIVE[:3] + FIVE[4:], FIVE[3:4])]
    before, seconds = billed(rule, ROWS, FIVE, width=width, caching=False)
    after, seconds_after = billed(rule, ROWS, FIVE, width=width)
    assert before.bill < 0.73 * sum(kept.bill for kept, _ in apart)
    assert after.bill < most * sum(kept.bill for kept, _ in apart)
    assert after.bill < 0.82 * before.bill
    assert seconds_after <= 1.001 * seconds


@pytest.mark.parametrize(
    ("rule", "metrics"),
    [("implicit", FIVE[:1]), ("explicit", FIVE[2:4]), ("automatic", (FIVE[0], FIVE[2], "hallucination"))],
)
def test_no_bill_rises(rule: str, metrics: Sequence[str]) -> None:
    for contexts, width, votes in ((1, 9, 1), (4, 1, 1), (13, 3, 1), (13, 2, 3)):
        rows = [replace(row, retrieved_contexts=(row.retrieved_contexts or ())[:contexts]) for row in ROWS[:3]]
        with context.changed(votes=votes):
            (before, _), (after, _) = (billed(rule, rows, metrics, width=width, caching=each) for each in (False, True))
        assert after.bill <= before.bill * 1.001, (contexts, width, votes)


def test_tasks_that_share_a_form() -> None:
    sharing = [task for task in EVERY_TASK if task.envelope]
    assert {task.prompt for task in sharing} == {"verify_claims", "judge_usefulness", "find_contradictions"}
    for task in sharing:
        own, shared = (form["properties"]["verdicts"]["items"] for form in (task.schema(), task.envelope or {}))
        assert [*own["properties"]] == [*shared["properties"]]
        assert {*own["properties"]["verdict"]["enum"]} <= {*shared["properties"]["verdict"]["enum"]}
    verdict = {"number": 1, "reason": "It is said.", "sentences": [1], "verdict": "useful"}
    with pytest.raises(InvalidAnswer, match="verdict of verdicts, item 1 must be one of supported, unsupported"):
        CLAIMS[0].read({"verdicts": [verdict]})
