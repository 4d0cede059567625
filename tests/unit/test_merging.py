"""Several runs as one."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.runs.merge import merge_documents
from pytest_ragmetrics.runs.records import Document, Judging, SentinelRecord, position
from pytest_ragmetrics.runs.wording.served import joined, served_warnings
from tests.documents import crowd, document, record, row
from tests.showcase import showcase


def run(*tests: Any, started: str = "2026-03-02T16:41:07Z", **changes: Any) -> Document:
    made = document(*tests)
    return replace(made, run=replace(made.run, started=started, **changes))


def shards(whole: Document, number: int, chance: random.Random) -> list[Document]:
    """Return a run dealt out to several, each with its tests in an order of its own."""
    dealt: list[list[Any]] = [[] for _ in range(number)]
    for test in whole.tests:
        chance.choice(dealt).append(test)
    return [run(*chance.sample(some, len(some))) for some in dealt]


@given(st.integers(1, 5), st.integers())
def test_shards_make_the_document_of_the_whole_run(number: int, seed: int) -> None:
    chance = random.Random(seed)
    whole = crowd(20, contexts=1, length=80)
    whole = replace(whole, tests=tuple(sorted(whole.tests, key=position)))
    parts = shards(whole, number, chance)
    merged = merge_documents(parts)
    assert tuple(sorted(merged.tests, key=position)) == whole.tests
    if number > 1:
        assert merged.tests == whole.tests
        assert merge_documents(parts[::-1]) == merged


def test_one_run_is_itself_and_none_is_an_error() -> None:
    assert merge_documents([showcase()]) == showcase()
    with pytest.raises(ValueError, match="there is nothing to merge"):
        merge_documents([])


def test_of_a_test_in_two_files_the_later_run_counts() -> None:
    fell = row("test_a", record(score=0.1, outcome="failed"), outcome="failed")
    first = run(fell, row("test_b", record(score=1.0)), started="2026-03-02T10:00Z")
    again = run(row("test_a", record(score=0.95)), row("test_b", record(score=1.0)), started="2026-03-02T11:00Z")
    told = "2 tests were run more than once, and the run that started last counts; 1 of them came out differently"
    for parts in ([first, again], [again, first]):
        merged = merge_documents(parts)
        assert [test.outcome for test in merged.tests] == ["passed", "passed"]
        assert merged.run.notes == ("merged from 2 runs", f"{told} before")


def test_the_run_is_that_of_all_together() -> None:
    asked: dict[str, Any] = {"judge": "openai:one", "votes": 1}
    note = "cassette.jsonl: unchanged"
    one = run(exit_status=0, duration=2.5, python="3.12.1", settings=asked, notes=(note,))
    asked = {**asked, "judge": "openai:two", "new": True}
    other = run(started="2026-03-01T00:00:00Z", duration=1.0, settings=asked, notes=(note, "budget spent"))
    other = replace(other, run=replace(other.run, exit_status=0, python="3.11.9", ragmetrics="0.2.0"))
    merged = merge_documents([one, other]).run
    assert (merged.started, merged.duration, merged.exit_status) == ("2026-03-01T00:00:00Z", 3.5, 0)
    assert (merged.python, merged.pytest, merged.ragmetrics) == ("3.11.9, 3.12.1", "9.2.0", "0.1.0, 0.2.0")
    assert merged.settings == {"judge": "openai:one, openai:two", "votes": 1, "new": "None, True"}
    differ = "the runs differ in their version of pytest-ragmetrics: 0.1.0, 0.2.0"
    judges = "the runs differ in their judge: openai:one, openai:two"
    assert merged.notes == ("merged from 2 runs", note, "budget spent", differ, judges)


def test_where_shards_come_from_is_what_they_share() -> None:
    one = Judging(judge="openai:one", prompts={"verify_claims": "1f"}, definition={"release": "1.0"})
    more = replace(one, prompts={"list_claims": "3d"})
    other = replace(one, judge="openai:two")
    left_out: dict[str, Any] = {"skipped": {"test_a": 2, "test_b": 1}, "not_needed": {"test_a": 7}}
    same: dict[str, Any] = {"project": "bot", "branch": "main", "ci": "https://ci.example/7", "selection": "tests"}
    shard = run(commit="4f2c91a0d7e5", judging={"faithfulness": one, "relevance": one}, **same, **left_out)
    judging = {"faithfulness": more, "relevance": other}
    rest = run(commit="4f2c91a0d7e5+", judging=judging, partial="1 deselected", **same, **left_out)
    merged = merge_documents([shard, rest]).run
    assert (merged.skipped, merged.not_needed) == ({"test_a": 4, "test_b": 2}, {"test_a": 14})
    assert {name: getattr(merged, name) for name in same} == same
    assert (merged.commit, merged.partial, merged.notes) == ("4f2c91a0d7e5+", "1 deselected", ("merged from 2 runs",))
    assert merged.judging == {"faithfulness": replace(one, prompts={"verify_claims": "1f", "list_claims": "3d"})}
    later = run(commit="9be07d2", **{**same, "branch": "fix"})
    merged = merge_documents([shard, later, run()]).run
    assert (merged.commit, merged.branch, merged.project) == ("", "", "")
    assert merged.notes[1:] == ("the runs differ in their commit: 4f2c91a, 9be07d2, unknown",)


@pytest.mark.parametrize(
    ("statuses", "together"),
    [([0, 0], 0), ([0, 1], 1), ([5, 0], 0), ([5, 5], 5), ([1, 2], 2), ([2, 4], 4), ([4, 3], 3), ([3, 77], 77)],
)
def test_the_worst_exit_status_is_that_of_the_whole(statuses: list[int], together: int) -> None:
    for order in (statuses, statuses[::-1]):
        assert merge_documents([run(exit_status=status) for status in order]).run.exit_status == together


def test_a_metric_by_several_judges_is_named() -> None:
    parts = [run(row(f"test_{name}", record("faithfulness", judge=name))) for name in ("one", "two")]
    notes = merge_documents(parts).run.notes
    assert notes[1:] == ("faithfulness was scored by different judges: one, two",)


def test_models_of_shards_are_counted_together() -> None:
    old, new = ({"openai:m": {model: 20}} for model in ("m-1 fp_1", "m-2"))
    found: list[Document] = []
    for served in (old, new, joined([old, new])):
        judging = {"relevance": Judging(judge="openai:m", prompts={}, definition={}, served=served)}
        warnings = ("the same text", *served_warnings(served))
        sentinels = {"openai:m": SentinelRecord(asked=20, changed=1.5, evidence=float(len(found)), drifts=not found)}
        shard = run(judging=judging, sentinels=sentinels)
        found.append(replace(shard, run=replace(shard.run, warnings=warnings)))
    merged = merge_documents(found).run
    assert merged.judging["relevance"].served == {"openai:m": {"m-1 fp_1": 40, "m-2": 40}}
    text = "the judge openai:m answered as 2 models: m-1 (40 replies) and m-2 (40 replies); "
    assert [warning.partition(text)[1] or warning for warning in merged.warnings] == ["the same text", text]
    assert merged.sentinels == {"openai:m": SentinelRecord(asked=60, changed=4.5, evidence=2.0, drifts=True)}


def test_ids_are_ordered_as_people_count() -> None:
    names = ["test_a[7]", "test_a[07]", "test_a[10]", "test_a[9]", "test_a[" + "9" * 5000 + "]"]
    parts = [run(row(name)) for name in names]
    merged = [test.id.partition("::")[2] for test in merge_documents(parts).tests]
    assert merged == [names[1], names[0], names[3], names[2], names[4]]
    assert merge_documents(parts[::-1]).tests == merge_documents(parts).tests
