"""The probes that come with the package, and what answers to them say."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from pytest_ragmetrics.cli.probes import probes
from pytest_ragmetrics.cli.probes.probes import INJECTION, KINDS, Probe, ProbeFigures, ProbeOutcome, choose, inject
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges.rendering import PromptBook, render
from pytest_ragmetrics.judges.suspicion import suspicious_signs
from pytest_ragmetrics.judges.tasks import Critique, JudgeRefusal, ListClaims, VerifyClaims

PROBES = probes.read_probes()
BY_ID = {probe.id: probe for probe in PROBES}


def outcome(probe: Probe, found: str | None = None) -> ProbeOutcome:
    return ProbeOutcome(probe=probe, found=found or probe.expected, reason="Because.", usage=Usage(calls=1))


def test_there_are_enough_of_them() -> None:
    assert len(BY_ID) == len(PROBES) >= 60
    assert dict.fromkeys(probe.kind for probe in PROBES) == dict.fromkeys(KINDS)
    assert len({probe.language for probe in PROBES}) == 8
    for kind in KINDS:
        of_kind = [probe for probe in PROBES if probe.kind == kind]
        assert len({probe.language for probe in of_kind}) == 8
        assert sum(probe.affirmative for probe in of_kind) * 2 == len(of_kind) > 0
    attacks = Counter(probe.attack for probe in PROBES if probe.attack)
    assert (len(attacks), min(attacks.values()) >= 5) == (7, True)


def test_each_injection_is_its_twin_with_a_text_more() -> None:
    for probe in PROBES:
        if probe.twin is None:
            assert probe.attack is probe.injected is None
            continue
        twin = BY_ID[probe.twin]
        assert twin.twin is None
        assert (twin.language, twin.expected, type(twin.task)) == (probe.language, probe.expected, type(probe.task))
        assert _letters(probe.injected or "") in _letters(render(probe.task, PromptBook())[1]), probe.id


def _letters(text: str) -> str:
    """Return the words and the hidden characters of a text, without numbers: sentences are given some."""
    return re.sub(r"\d|[^\w\U000e0000-\U000e007f]", "", text)


def test_plain_texts_are_no_attempt_to_deceive() -> None:
    plain = [probe for probe in PROBES if probe.injected is None]
    assert not [probe.id for probe in plain for block in probe.task.blocks() if suspicious_signs(block.text)]
    marked = ProbeFigures(judge="j", chosen=[outcome(probe) for probe in PROBES]).marked
    assert marked.right == marked.n > 0


def test_a_limit_spreads_over_kinds_and_languages() -> None:
    chosen, besides = choose(PROBES, limit=24)
    assert len(chosen) + len(besides) <= 24
    assert len({probe.language for probe in chosen}) == 8
    count = Counter(probe.affirmative for probe in chosen if probe.kind != INJECTION)
    assert count[True] == count[False]
    assert choose(PROBES) == (PROBES, ())
    chosen, besides = choose(PROBES, ["injection"])
    assert {probe.kind for probe in chosen} == {INJECTION}
    assert {probe.id for probe in besides} == {probe.twin for probe in chosen}


def test_tasks_take_injections_where_their_texts_stand() -> None:
    claim = VerifyClaims(claims=("It hums.",), contexts=("It sings.",))
    assert inject(claim, " Yes!", "response") == replace(claim, claims=("It hums. Yes!",))
    assert inject(claim, "Yes!", "context") == replace(claim, contexts=("Yes!", "It sings."))
    assert inject(ListClaims(text="It hums."), " Yes!", "response") == ListClaims(text="It hums. Yes!")
    refusal = JudgeRefusal(question="?", response="No.")
    assert inject(refusal, ":", "instead") == replace(refusal, response=":")
    with pytest.raises(TypeError, match="critique"):
        inject(Critique(definition="Is it so?", fields=()), "yes", "response")


def test_only_answers_that_are_right_without_the_injection_say_something() -> None:
    chosen, besides = choose(PROBES, ["injection"], limit=6)
    twins = [outcome(besides[0]), outcome(besides[1], "nonsense"), replace(outcome(besides[2]), found=None)]
    figures = ProbeFigures(judge="j", chosen=[outcome(probe) for probe in chosen], besides=twins)
    assert (figures.resistance.right, figures.resistance.n, len(figures.unscored)) == (1, 1, 1)
    assert [len(figures.uninformative), figures.lowest_resistance] == pytest.approx([2, 1 / 3])
    assert any("2 more say nothing" in line for line in probes.figure_lines(figures))


def test_what_has_no_answer_is_neither_right_nor_wrong() -> None:
    right, also, wrong, unscored = choose(PROBES, ["number"], limit=4)[0]
    nothing = replace(outcome(unscored), found=None)
    figures = ProbeFigures(judge="j", chosen=[outcome(right), outcome(also), outcome(wrong, "?"), nothing])
    assert (figures.accuracy.right, figures.accuracy.n) == (2, 3)
    assert figures.lowest_accuracy == 0.5
    lines = list(probes.figure_lines(figures))
    assert "unscored:" in lines
    assert not any("resistance" in line.lower() for line in lines)
    figures = ProbeFigures(judge="j", chosen=[nothing])
    assert figures.accuracy.to_row() == {"right": 0, "n": 0, "estimate": None}
    assert figures.lowest_accuracy == 0.0
    assert not any(line.startswith("accuracy") for line in probes.figure_lines(figures))
