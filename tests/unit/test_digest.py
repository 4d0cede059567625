"""The lines of the digest."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pytest_ragmetrics.core.result import Nearest, Verdict
from pytest_ragmetrics.runs.records import Record
from pytest_ragmetrics.runs.wording.digest import Failure, digest
from pytest_ragmetrics.text.unicode import printable
from tests.documents import HOSTILE, nearest, record

LONG = "The pump needs " + "very " * 100 + "long."


def failure(message: str, *records: Record, test: str = "tests/test_a.py::test_x", **fields: Any) -> Failure:
    return Failure(**{"test": test, "line": 3, "phase": "", "message": message, "records": records, **fields})


def low(*verdicts: Verdict, score: float = 0.5, **fields: Any) -> Record:
    fields |= {"verdicts": verdicts, "noun": "claim", "complaint": "not supported"}
    return record("faithfulness", score, outcome="failed", **fields)


def bad(text: str, **fields: Any) -> Verdict:
    return Verdict(text=text, ok=False, **fields)


SHORT = "E   AssertionError: faithfulness 0.50 < 0.90: 1 of 1 claim not supported\n\ntests/test_a.py:9: AssertionError"
NEAR = Nearest(context=2, start=1, end=7, text="moths.", similarity=0.5)
WORDS = nearest("It hums at noon", ["It hums at noon"], 0, 0.7, [("replaced", "dawn", "noon"), ("missing", "", "at")])
ONE = "1/1 not supported"


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (bad("Bats fly."), '"Bats fly."'),
        (bad("Bats fly.", start=4, end=13), '"Bats fly." response[4:13]'),
        (bad("Bats fly.", reason="no passage says so"), '"Bats fly.": no passage says so'),
        (bad("Bats fly.", reason="it is not supported"), '"Bats fly."'),
        (bad("Bats fly.", suspicious=True, nearest=NEAR), '"Bats fly." suspicious contexts[2][1:7]'),
        (bad("At dawn.", nearest=WORDS, reason="a word"), '"At dawn." contexts[0]: dawn -> noon, -at'),
        (bad("Bats fly.", reason=LONG), f'"Bats fly.": {LONG[:38]}'),
    ],
)
def test_a_piece_takes_a_line(verdict: Verdict, said: str) -> None:
    file, head, line = digest([failure(SHORT, low(verdict))])
    assert (file, head) == ("tests/test_a.py", f"9 test_x faithfulness 0.50 < 0.90: {ONE}")
    assert line == f" {said}" or (verdict.reason == LONG and line.startswith(f" {said}") and len(line) < 130)


def test_what_is_beyond_ten_pieces_is_counted() -> None:
    some = low(*(bad(f"Claim {n}.") for n in range(12)), disagreements=["a: yes, b: no"])
    assert digest([failure(SHORT, some)])[-3:] == [' "Claim 9."', " ... and 2 more", " judges: a: yes, b: no"]


FALSE = "E   assert False"
LISTS = "E   assert [1] == [2]\nE     \nE     At index 0 diff: 1 != 2\nE    +  where [1] = f()"
AWAY = "relevance unscored: the judge is away: set OPENAI_API_KEY"
UNSCORED = record("relevance", None, outcome="unscored", reason="the judge is away: set OPENAI_API_KEY")
DEEP = """>   f()

tests/test_a.py:8:
_ _ _ _
src/bot.py:7:
_ _ _ _
/lib/python3.12/site-packages/x.py:3:
E   KeyError: 'a'

src/deep.py:2: KeyError""".replace(":\n", ": \n")
CAUSED = """E   ValueError: b

src/a.py:2: ValueError

The above exception was the direct cause of the following exception:

E   RuntimeError: c

tests/test_a.py:4: RuntimeError"""


@pytest.mark.parametrize(
    ("message", "records", "lines"),
    [
        # The scores of several metrics, and one without a score.
        (
            "E   AssertionError: 2 of 3 metrics fell short: faithfulness 0.50 < 0.90, harm 0.40 > 0.10, 1 unscored",
            [low(), record("harm", 0.4, outcome="failed", at_most=0.1, reason="loud"), UNSCORED, record()],
            ["3 test_x faithfulness 0.50 < 0.90", " harm 0.40 > 0.10: loud", f" {AWAY}"],
        ),
        # An error behind a score that fell short, and places that it passed.
        (DEEP, [low()], ["8 test_x faithfulness 0.50 < 0.90", " KeyError: 'a' at src/bot.py:7, src/deep.py:2"]),
        # The explanation is in a section: the assertion itself says nothing.
        (
            f"{FALSE}\n\ntests/test_a.py:8: AssertionError",
            [low()],
            ["8 test_x faithfulness 0.50 < 0.90", " assert False"],
        ),
        # A text of pytest's own, and one in lines.
        (LISTS, [], ["3 test_x assert [1] == [2]", " At index 0 diff: 1 != 2"]),
        ("[XPASS(strict)] known", [record()], ["3 test_x [XPASS(strict)] known"]),
        ("", [], ["3 test_x failed"]),
        # A cause.
        (CAUSED, [], ["4 test_x RuntimeError: c at src/a.py:2", " from ValueError: b"]),
    ],
)
def test_other_errors_have_their_text_and_places(message: str, records: list[Record], lines: list[str]) -> None:
    """Scores that fell short come first; an error that is not theirs follows with its places in the user's code."""
    assert digest([failure(message, *records)]) == ["tests/test_a.py", *lines]


def test_what_was_said_is_not_said_again() -> None:
    """Under each file are its tests by line; a long text that was there before names the test that has it."""
    said = "E   pytest_ragmetrics.UnscoredError: the judge is away: set OPENAI_API_KEY"
    other = "tests/test_b.py::test_y[1]"
    failures = [
        failure(said, UNSCORED, test=other),
        failure(said, UNSCORED, line=9, test="tests/test_a.py::test_z", phase="setup"),
        failure(said, UNSCORED),
        failure("E   assert 0", test=other, phase="teardown"),
        failure("E   assert 0", test="tests/test_b.py", phase="collect"),
    ]
    assert digest(failures) == [
        "tests/test_a.py",
        f"3 test_x {AWAY}",
        "9 test_z setup as test_x",
        "tests/test_b.py",
        "3 collect assert 0",
        "3 test_y[1] as tests/test_a.py::test_x",
        "[1] teardown assert 0",
    ]


def test_a_gate_leaves_out_the_rows_that_failed_themselves() -> None:
    gate = "faithfulness mean 0.30 < 0.80 (n=2): failed\n  0.10  valve: 1 of 2 claims\n  0.50  pump: 2 of 9 claims"
    failures = [
        failure(gate, test="tests/test_a.py::test_x[gate-faithfulness]"),
        failure(SHORT, low(), test="tests/test_a.py::test_x[valve]"),
    ]
    assert digest(failures) == [
        "tests/test_a.py",
        "3 test_x[gate-faithfulness] faithfulness mean 0.30 < 0.80 (n=2): failed",
        " 0.50 pump: 2 of 9 claims",
        "[valve] faithfulness 0.50 < 0.90",
    ]


def test_no_text_makes_a_line_of_its_own() -> None:
    breaks = ("a\n9 test_y passed", "b\x0b\x0c\x1c\x85c\u2028\u2029d\r9 test_y", "E   x\ntests/test_a.py:1: y")
    for text in (*HOSTILE, *breaks):
        near = Nearest(context=0, start=0, end=1, text=text, similarity=0.5, changes=WORDS.changes)
        fell = low(bad(text, reason=text, nearest=near), disagreements=[text])
        said = "E   " + text.replace("\n", "\nE   ")
        found = digest([failure(said, fell, test=f"tests/test_a.py::test_x[{before}{text}]") for before in "ab"])
        assert [printable(line) for line in found] == [line.strip() for line in found]
        tests = [line for line in found if not line.startswith(" ")]
        assert [re.sub(r"\[.*", "[", line) for line in tests] == ["tests/test_a.py", "3 test_x[", "["]
