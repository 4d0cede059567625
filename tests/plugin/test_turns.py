"""Conversations in a suite: what the summary says of answers that were not scored, and what turns cost."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tests.fake_openai import FakeOpenAI
from tests.plugin.conftest import MANY, SERIAL, RunPytest

NOTE = '*conversation*only the last of*turns="each" scores all*'
#: Three conversations of 2, 3 and 9 answers, one of a single answer, and a row that is none.
ROWS = """
    def talk(answers, says="Open the valve slowly."):
        said = {"role": "assistant", "content": says, "contexts": ["Open the valve slowly."]}
        return [{"role": "user", "content": "Wie öffne ich es?"}, said] * answers
    ROWS = [{"id": f"c{n}", "messages": talk(n)} for n in (2, 3, 9, 1)]
    ROWS += [{"id": "plain", "question": "How?", "answer": "Slowly.", "contexts": ["Slowly."]}]
"""
SUITE = (
    ROWS
    + """
    @metric
    def reads_all(sample): return len(sample.metadata.get("messages", "ab")) > 1
    @pytest.mark.rag_dataset(ROWS, metrics=METRICS, **TURNS)
    def test_row(rag_sample): ...
    @pytest.mark.rag_dataset(ROWS, metrics=METRICS, **TURNS)
    def test_again(rag_sample): ...
"""
)


def suite(metrics: str, turns: str = "last") -> str:
    return SUITE.replace("METRICS", metrics).replace("**TURNS", f"turns={turns!r}")


@pytest.mark.parametrize("how", [SERIAL, MANY], ids=["one process", "workers"])
def test_answers_that_were_not_scored_are_told_once(run: RunPytest, how: list[str]) -> None:
    """Two metrics of answers in two tests score the same rows; the note is in the summary and in the files."""
    files = ("--rag-json=out.json", "--rag-markdown=out.md")
    ran = run(*how, *files, test_suite=suite("['lexical_grounding', 'numbers_aligned', reads_all]"))
    note = '3 conversations: only the last of 2 to 9 answers was scored; turns="each" scores all'
    ran.shows("*RAG metrics*", note, passed=10)
    assert ran.stdout.str().count("was scored") == 1
    assert ran.document.run.notes == (note,)
    assert "only the last of 2 to 9 answers was scored" in ran.text("out.md")


@pytest.mark.parametrize(
    "given", [suite("['lexical_grounding']", "each"), suite("[reads_all]")], ids=["each", "all shown"]
)
def test_where_all_answers_were_scored_or_shown_nothing_is_told(run: RunPytest, given: str) -> None:
    ran = run("--junitxml=out.xml", test_suite=given)
    assert ran.ret == 0
    ran.stdout.no_fnmatch_line(NOTE)
    properties = [it.attrib for it in ET.fromstring(ran.text("out.xml")).iter("property")]
    found = [int(it["value"]) for it in properties if it["name"] == "rag.lexical_grounding.turn"]
    assert sorted(found) == (sorted([*range(1, 3), *range(1, 4), *range(1, 10), 1] * 2) if "each" in given else [])


def test_a_dry_run_scores_no_answer(run: RunPytest) -> None:
    run("--rag-dry-run", test_suite=suite("['lexical_grounding']")).stdout.no_fnmatch_line(NOTE)


def test_turns_have_their_cost_and_their_lines(run: RunPytest, server: FakeOpenAI) -> None:
    """One line on cost, and only where there is one; a failure names the turn in the digest too."""
    test = (
        ROWS
        + """
    ROWS = [{"id": "pump", "messages": talk(1) + talk(1, "The pump hums at noon.")}]
    @pytest.mark.rag_dataset(ROWS, metrics={"faithfulness": 0.9}, turns="each")
    def test_row(rag_sample): ...
    """
    )
    args = ("--rag-judge=openai:gpt-5.4-mini", "--rag-json=out.json", "--rag-report=out.html")
    ran = run(*args, test_suite=test)
    ran.shows("judge calls: * made *", "1 conversation, 2 turns: $0.0* a conversation, $0.0* a turn")
    verdicts = [it for row in ran.tests.values() for record in row["records"] for it in record["verdicts"]]
    assert {it["turn"] for it in verdicts} == {1, 2}
    again = run(*args, "--rag-digest", test_suite=test)
    again.stdout.no_fnmatch_line("* a turn")
    again.shows('*turn 2 "The pump hums at noon*')
