"""A failure says how much in its first line and where in the rest."""

from __future__ import annotations

import pytest

from pytest_ragmetrics.core.result import (
    ChangeKind,
    MetricResult,
    Nearest,
    Operator,
    ThresholdCheck,
    Verdict,
    VerdictKind,
    WordChange,
)
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.runs.wording.failures import explain, explain_comparison, explain_row, headline, shortcoming

UNCOUNTED: list[VerdictKind] = ["quotes the question", "looks like a title", "allowed", "quotes the question"]


def held(bound: float, *, operator: Operator = ">=", outcome: bool = False) -> ThresholdCheck:
    return ThresholdCheck(operator=operator, bound=bound, held=outcome)


def quotes(*verdicts: Verdict, value: float = 0.0) -> MetricResult:
    return MetricResult(value, metric="quotes", verdicts=verdicts, noun="quoted span", complaint="not found")


def about(noun: str) -> MetricResult:
    verdicts = [Verdict(text="a", ok=True), Verdict(text="b", ok=False)]
    return MetricResult(0.5, metric="mine", verdicts=verdicts, noun=noun, complaint="left out")


def missing(text: str, similarity: float, *changes: WordChange) -> Verdict:
    nearest = Nearest(context=2, start=10, end=30, text="as the source says", similarity=similarity, changes=changes)
    return Verdict(text=text, ok=False, start=3, end=9, nearest=nearest)


@pytest.mark.parametrize(
    ("result", "bound", "line"),
    [
        (quotes(Verdict(text="a", ok=True), missing("b", 0.8), value=0.5), 0.9, "0.50 < 0.90: 1 of 2 quoted spans not"),
        (quotes(missing("a", 0.8), *(Verdict(text="b", ok=True, kind=kind) for kind in UNCOUNTED)), 0.9,
         "1 of 1 quoted span not found; not counted: 2 quote the question, 1 is allowed, 1 looks like a title"),
        (about("part of the question"), 0.9, "0.50 < 0.90: 1 of 2 parts of the question left out"),
        (about("index|indices"), 0.9, "0.50 < 0.90: 1 of 2 indices left out"),
        (quotes(value=0.8996), 0.9, "quotes 0.8996 < 0.9000"),
        (MetricResult(0.3, metric="m"), 0.1 + 0.2, "m 0.3 < 0.30000000000000004"),
        # A metric that gives no verdicts is summed up by its reason, made printable.
        (MetricResult(0.1, metric="m", reason="too\nlong\x1b"), 0.5, "m 0.10 < 0.50: too long"),
    ],
)  # fmt: skip
def test_the_first_line_has_metric_score_threshold_and_counts(result: MetricResult, bound: float, line: str) -> None:
    assert line in headline(result, held(bound))


@pytest.mark.parametrize(
    ("operator", "outcome", "shown"),
    [(">=", False, "<"), (">", False, "<="), ("<=", False, ">"), ("<", False, ">="), ("==", False, "!=")]
    + [(operator, True, operator) for operator in ("<", "<=", ">", ">=", "==")],
)
def test_the_operator_shown_is_the_one_that_is_true(operator: Operator, outcome: bool, shown: str) -> None:
    assert headline(MetricResult(0.5, metric="m"), held(0.5, operator=operator, outcome=outcome)).split()[2] == shown


STEPS: list[tuple[ChangeKind, str, str]] = [
    *(("same", "as the", "as the"), ("replaced", "sauce said", "source says"), ("added", "never", "")),
    ("missing", "", "not"),
]
CHANGES = [WordChange(kind=kind, said=said, source=source) for kind, said, source in STEPS]
YEARS = [
    Verdict(text="1931", ok=False, reason="stands in no context"),
    Verdict(text="1932", ok=False, reason="stands in no context, but 1933 does"),
    Verdict(text="t", ok=False, reason="r", suspicious=True),
]


@pytest.mark.parametrize(
    ("result", "lines"),
    [
        (quotes(missing("as the sauce said", 0.75, *CHANGES)),
         ['  not found: "as the sauce said" (response[3:9])',
          '    nearest: "as the source says" (contexts[2][10:30], 75% alike)',
          '    differs: "sauce said" where the source has "source says"; adds "never"; leaves out "not"']),
        # A reason that says what the line above says already is left out.
        (MetricResult(0, metric="numbers_aligned", verdicts=YEARS, complaint="in no context"),
         ['  in no context: "1931"', '  in no context: "1932"', "    reason: stands in no context, but 1933 does",
          '  in no context: "t"', "    suspicious: the evidence does not bear it out", "    reason: r"]),
    ],
)  # fmt: skip
def test_a_verdict_shows_text_place_nearest_and_difference(result: MetricResult, lines: list[str]) -> None:
    assert explain(result, held(0.9))[1:] == lines


def test_a_row_of_a_set_says_what_is_wrong_with_it() -> None:
    result = quotes(missing("nearly so", 0.8), missing("far from it", 0.2), Verdict(text="so", ok=True))
    assert shortcoming(result) == '2 of 3 quoted spans not found: "far from it"'
    assert shortcoming(MetricResult(0.3, metric="m", reason="hardly alike")) == "hardly alike"
    assert shortcoming(MetricResult(0.3, metric="m")) == ""


def test_the_worst_come_first_and_ten_are_shown() -> None:
    lines = explain(quotes(*(missing(f"quote number {n}", n / 100) for n in range(12, 0, -1))), held(0.9))
    shown = [line for line in lines if line.startswith("  not found")]
    assert [line.split('"')[1] for line in shown] == [f"quote number {n}" for n in range(1, 11)]
    assert lines[-1] == "  ... and 2 more"


def test_long_and_hostile_texts_stay_short_and_harmless() -> None:
    changes = [WordChange(kind="added", said=f"w{n}", source="") for n in range(100)]
    lines = explain(quotes(missing("\x1b[2J" + "x" * 1_000_000, 0.5, *changes)), held(0.9))
    assert all(len(line) < 500 and "\x1b" not in line for line in lines)
    assert lines[-1].endswith('"w5"; and 94 more')


def test_comparisons_are_explained_from_both_sides() -> None:
    result = MetricResult(0.5, metric="m")
    assert not result >= 0.9
    assert explain_comparison(">=", result, 0.9) == ["m 0.50 < 0.90"]
    assert not 0.9 <= result
    assert explain_comparison("<=", 0.9, result) == ["m 0.50 < 0.90"]
    assert result != 0.9
    assert explain_comparison("==", 0.9, result) is None, "nothing was noted for an inequality"
    others = (">=", 0.5, 0.9), ("<", result, MetricResult(0.4, metric="m")), ("in", result, [0.4])
    assert [explain_comparison(*other) for other in others] == [None] * 3


TURNS = [{"role": role, "content": f"{role} {n}"} for n in range(3) for role in ("user", "assistant")]
CALL = {"role": "assistant", "tool_calls": [{"function": {"name": "weather", "arguments": "{}"}}]}


@pytest.mark.parametrize(
    ("sample", "lines"),
    [
        (Sample(), []),
        (Sample(user_input="Why?", response="So.", reference="Thus.", retrieved_contexts=[]),
         ['question: "Why?"', 'answer: "So."', 'reference: "Thus."', "contexts: none"]),
        (Sample(retrieved_contexts=[f"c{n}" for n in range(7)]),
         [*(f'contexts[{n}]: "c{n}"' for n in range(5)), "... and 2 more contexts"]),
        (Sample(response="a\n b", metadata={"messages": "two"}), ['answer: "a b"']),
        (Sample(metadata={"messages": TURNS[:2]}, reference="Thus."),
         ['user: "user 0"', 'assistant: "assistant 0"', 'reference: "Thus."']),
        (Sample(metadata={"messages": TURNS[:1]}, response="So."), ['user: "user 0"', 'answer: "So."']),
        (Sample(user_input="user 2", metadata={"messages": [*TURNS, CALL]}),
         ["3 earlier messages, then", 'assistant: "assistant 1"', 'user: "user 2"', 'assistant: "assistant 2"',
          'assistant calls weather: ""']),
    ],
)  # fmt: skip
def test_a_row_is_shown_with_what_was_asked_and_answered(sample: Sample, lines: list[str]) -> None:
    assert explain_row(sample) == lines


def test_a_long_row_is_shortened() -> None:
    long = Sample(user_input="q" * 9000, response="a" * 9000, retrieved_contexts=["c" * 9000] * 99)
    assert sum(map(len, explain_row(long))) < 3000
