"""Sentinels: which answers are drawn and compared, what earlier runs count, and what is said."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.evaluation.sentinels import Sentinels, with_evidence
from pytest_ragmetrics.judges.judge import CustomJudge
from pytest_ragmetrics.judges.rendering import PromptBook, prompt_digest
from pytest_ragmetrics.judges.tasks import Critique, JudgeContexts, ListClaims, RateRelevance, Task
from pytest_ragmetrics.judges.transports.values import Reply
from pytest_ragmetrics.report.history import past_sentinels, write_history
from pytest_ragmetrics.runs.records import Judging, SentinelRecord
from tests.histories import kept

JUDGE = CustomJudge(lambda _: "", name="custom:me")
CONTEXTS = JudgeContexts(question="Why?", contexts=("One.", "Two.", "Three.", "Four."))


YES = '{"reason": "So.", "verdict": "yes"}'


def verdicts(*words: str) -> str:
    return json.dumps({"verdicts": [{"number": n, "reason": "", "verdict": it} for n, it in enumerate(words, start=1)]})


def rating(number: int) -> str:
    return json.dumps({"reason": "So.", "rating": number})


@pytest.mark.parametrize(
    ("task", "before", "now", "found"),
    [
        (CONTEXTS, verdicts(*["relevant"] * 4), verdicts("relevant", *["irrelevant"] * 3), (1, 0.75)),
        (RateRelevance(question="Why?", response="So."), rating(4), rating(1), (1, 0.75)),
        (Critique(definition="Kind?", fields=()), YES, YES.replace("So", "Thus"), (1, 0)),
        (ListClaims(text="One."), '{"claims": ["One."]}', '{"claims": ["Two."]}', (0, 0)),
        (CONTEXTS, "no reply of today's version", verdicts(*["relevant"] * 4), (0, 0)),
    ],
)  # fmt: skip
def test_verdicts_are_compared(task: Task[Any], before: str, now: str, found: tuple[int, float]) -> None:
    drawn = Sentinels(20, "seed")
    drawn.note("key", JUDGE.request(task), Reply(text=before, cached=True))

    async def again(_: object) -> Reply:
        return Reply(text=now)

    (record,) = asyncio.run(drawn.ask(again)).judges.values()
    assert (record.asked, record.changed) == found


def test_stored_first_answers_are_drawn_once_and_anew() -> None:
    task, seen = RateRelevance(question="Why?", response="So."), []
    for seed in ("one", "two"):
        drawn = Sentinels(3, seed)
        for key in [*map(str, range(50)), *map(str, range(50))]:
            drawn.note(key, JUDGE.request(task), Reply(text=rating(4), prompt_tokens=int(key), cached=True))
        drawn.note("vote", JUDGE.request(task, vote=1), Reply(text=rating(4), cached=True))
        seen.append({reply.prompt_tokens for _, reply in drawn.drawn})
    assert [len(it) for it in seen] == [3, 3]
    assert seen[0] != seen[1]
    made = Sentinels(3, "one")
    for cached in (False, True):
        made.note("new", JUDGE.request(task), Reply(text=rating(4), cached=cached))
    assert made.drawn == []


def test_earlier_runs_count_until_something_began_anew(tmp_path: Path) -> None:
    book = PromptBook()
    now, then = ({"verify_claims": digest} for digest in (prompt_digest("verify_claims", book), "0" * 12))

    def write(day: int, counts: dict[str, tuple[int, float]], *, prompts: dict[str, str] = now, **fields: Any) -> None:
        sentinels = {judge: SentinelRecord(asked=asked, changed=it) for judge, (asked, it) in counts.items()}
        judging = {"faithfulness": Judging(judge="a", prompts=prompts, definition={})}
        write_history(tmp_path, kept(day, {}, sentinels=sentinels, judging=judging, **fields))

    write(1, {"a": (20, 9.0)}, prompts=then)
    write(2, {"a": (20, 1.0), "b": (10, 2.0)})
    write(3, {"b": (0, 0.0)})
    write(4, {"a": (0, 0.0)}, partial="1 deselected", branch="fix")
    write(5, {"a": (20, 3.5), "b": (10, 0.0)})
    (tmp_path / "99.json").write_text("no run")
    assert past_sentinels(tmp_path, book) == {"a": [(20, 1.0), (20, 3.5)], "b": [(10, 0.0)]}
    assert past_sentinels(tmp_path / "none", book) == {}


def test_the_lines_have_the_figures() -> None:
    asked = SentinelRecord(asked=20, changed=7.0, usage=Usage(calls=20))
    past = {"a": [(20, 24 / 5)] * 5}
    found = {"a": asked, "b": replace(asked, changed=0.25), "c": SentinelRecord()}
    records, (warning,), notes = with_evidence(found, past)
    said = "7 of 20 stored answers of a came out otherwise; over the last 6 runs 31 of 120: more than"
    assert warning.startswith(said)
    assert notes == ["sentinels: 0.2 of 20 stored answers of b came out otherwise: no alarm"]
    assert (records["a"].drifts, records["b"].drifts, records["c"]) == (True, False, SentinelRecord())
    assert records["a"].usage == Usage(calls=20)
    _, _, (line,) = with_evidence({"a": replace(asked, changed=0.0)}, {"a": [(20, 9.0)] * 200})
    assert line.endswith(
        "0 of 20 stored answers of a came out otherwise: no alarm; after 200 runs the count began anew"
    )
