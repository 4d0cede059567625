"""What became of a text, word by word."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ragmetrics.report.text_changes import Text, folded, text_change, versions
from pytest_ragmetrics.text import diff as differences
from pytest_ragmetrics.text.diff import word_changes, words_of

LONG = "The tide turned at noon and the boats came in. " * 40


def shown(before: str, after: str) -> str:
    """Return both texts as one: [-removed-], [+added+]."""
    return "".join(
        step.said
        if step.kind == "same"
        else (f"[-{step.source.strip()}-]" if step.source else "") + (f"[+{step.said.strip()}+]" if step.said else "")
        for step in word_changes(before, after)
    )


CHANGED = {
    ("It rains.", "It rains."): "It rains.",
    ("within 30 days.", "within 14 days."): "within [-30-][+14+]days.",
    ("It costs 3.50 euros", "It costs 3.60 euros"): "It costs [-3.50-][+3.60+]euros",
    ("at 10:30 today", "at 10:45 today"): "at [-10:30-][+10:45+]today",
    ("She can't go", "She can go"): "She [-can't-][+can+]go",
    # A sentence comes and goes as one, wherever the words at its ends stand as well.
    ("It rains. It ends.", "It rains. It snows. It ends."): "It rains. [+It snows.+]It ends.",
    ("We may ask. Then go.", "We can ask. Wait. Then go."): "We [-may-][+can+]ask. [+Wait.+]Then go.",
    ("We may leave", "We can leave. More is here"): "We [-may-][+can+]leave[+. More is here+]",
    ("We may stay.", "We can stay. They too."): "We [-may-][+can+]stay. [+They too.+]",
    ("the cat", "the dog and the cat"): "[+the dog and+]the cat",
    # A short word that both happen to have does not cut a change into pieces.
    ("paid by the tenant", "owed to the landlord"): "[-paid by the tenant-][+owed to the landlord+]",
    ("der Hund bellt laut.", "die Katze bellt laut."): "[-der Hund-][+die Katze+]bellt laut.",
    ("猫は庭にいます。", "犬は庭にいます。"): "[-猫-][+犬+]は庭にいます。",
    ("租金每月三百元。", "租金每月五百元。"): "租金每月[-三-][+五+]百元。",
    ("हिन्दी में लिखा है।", "हिन्दी में पढ़ा है।"): "हिन्दी में [-लिखा-][+पढ़ा+]है।",
    ("المكتبة مفتوحة اليوم", "المكتبة مغلقة اليوم"): "المكتبة [-مفتوحة-][+مغلقة+]اليوم",
    ("הספרייה פתוחה היום", "הספרייה סגורה היום"): "הספרייה [-פתוחה-][+סגורה+]היום",
    ("Библиотека открыта сегодня", "Библиотека закрыта сегодня"): "Библиотека [-открыта-][+закрыта+]сегодня",
    ("도서관은 오늘 엽니다", "도서관은 내일 엽니다"): "도서관은 [-오늘-][+내일+]엽니다",
    ("", "It rains."): "[+It rains.+]",
    ("It rains.", ""): "[-It rains.-]",
}


def test_the_words_that_changed_are_told_from_those_that_did_not() -> None:
    assert {texts: shown(*texts) for texts in CHANGED} == CHANGED


FAMILY, FLAG, SUN = "\U0001f468\u200d\U0001f469\u200d\U0001f467 ", "\U0001f1e9\U0001f1ea", "\u2600\ufe0f"
SIGNS = [["e\u0301te\u0301 ", "doux"], ["ที่", "นี่"], ["(", "हिन्दी", ")"], [FAMILY, FLAG, SUN]]


def test_what_is_seen_as_one_sign_is_not_cut() -> None:
    assert [words_of("".join(tokens)).tokens for tokens in SIGNS] == SIGNS


@example(".a", ". a")
@given(st.text(alphabet="ab .\n東\u0301é", max_size=40), st.text(alphabet="ab .\n東\u0301é", max_size=40))
def test_the_steps_are_both_texts(before: str, after: str) -> None:
    steps = word_changes(before, after)
    assert "".join(step.source for step in steps) == before
    assert "".join(step.said for step in steps) == after
    kinds = {("same", True, True), ("added", False, True), ("missing", True, False), ("replaced", True, True)}
    assert {(step.kind, bool(step.source), bool(step.said)) for step in steps} <= kinds
    # White space alone is no difference.
    assert all("".join(step.source.split()) == "".join(step.said.split()) for step in steps if step.kind == "same")
    assert not any(one.kind == two.kind == "same" for one, two in pairwise(steps))


def test_very_long_texts_are_one_change_between_what_both_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a table of all words would be too large, none is made; what both begin and end with is found."""
    monkeypatch.setattr(differences, "_MOST_CELLS", 8)
    assert shown("It rains in May. We stay.", "It snows in May. We stay.") == "It [-rains-][+snows+]in May. We stay."
    assert shown("It rains in May. We stay.", "It snows in May. I stay.") == (
        "It [-rains in May. We-][+snows in May. I+]stay."
    )


@pytest.mark.parametrize(
    ("before", "now", "title", "rewritten"),
    [
        ("It rains.", "It rains.", "as before", False),
        ("It rains on Monday and on Tuesday.", "It rains on Monday.", "3 words removed", False),
        ("It rains today.", "It rains today, all day.", "2 words added", False),
        ("It rains today.", "It snows today.", "1 word added, 1 removed", False),
        ("It rains today.", "It rains today!", "only signs differ", False),
        ("It rains today.", "It  rains\ntoday.", "only spaces differ", False),
        ("猫は庭にいます。", "犬は庭にいます。", "1 word added, 1 removed", False),
        ("It rains on Monday.", "Nobody may fish here now.", "rewritten, 5 words added, 4 removed", True),
    ],
)
def test_a_change_is_counted_in_words(before: str, now: str, title: str, rewritten: bool) -> None:
    change = text_change(before, now)
    assert (change.title, change.rewritten) == (title, rewritten)


def test_what_is_far_from_a_change_is_folded() -> None:
    before = f"{LONG}It costs 3 euros. {LONG}"
    change = text_change(before, before.replace("3 euros", "4 euros"))
    assert [piece.folded for piece in change.pieces] == [True, *[False] * 6, True]
    assert [piece.kind for piece in change.pieces if piece.kind != "same"] == ["removed", "added"]
    kept = "".join(piece.text for piece in change.pieces if piece.kind != "removed")
    assert kept.split() == before.replace("3 e", "4 e").split()
    in_sight = [piece.text for piece in change.pieces if len(piece.text) > 1 and not piece.folded]
    assert all(text.strip() and len(text) < 300 for text in in_sight)
    assert folded([]) == ()
    assert [piece.folded for piece in text_change("", "word " * 2000).pieces] == [False, True, False]


@pytest.mark.parametrize(
    ("olds", "news", "expected"),
    [
        # By text, whatever the ids; then by id where the texts are a little alike; then by near text.
        ([("It rains today.", "1")], [("It rains  today.", "2")], {0: 0}),
        ([("one two three", "1"), ("five six", "2")], [("five six", "1"), ("one two three", "2")], {0: 1, 1: 0}),
        ([("one two three four five", "1")], [("one two nine ten eleven", "1")], {0: 0}),
        ([("one two three four five", "1")], [("one two nine ten eleven", "2")], {}),
        ([("one two three four five", "1")], [("six seven nine ten eleven", "1")], {}),
        ([("one two three four five", None)], [("zero", None), ("one two three four six", None)], {1: 0}),
        ([("a b c d e", None), ("a b c d e f", None)], [("a b c d e g", None), ("a b c d e f g", None)], {1: 1, 0: 0}),
        ([("same", None), ("same", None)], [("same", None)], {0: 0}),
        ([], [("one", None)], {}),
    ],
)
def test_versions_of_a_text_are_found(olds: Any, news: list[tuple[str, str | None]], expected: dict[int, int]) -> None:
    assert versions([Text(*old) for old in olds], [Text(*new) for new in news]) == expected


def test_very_many_texts_are_paired_by_what_they_say() -> None:
    """Near ones among hundreds are not looked for: that takes as long as the product of their numbers."""
    olds = [Text(f"plot {number} is let to a tenant of the row") for number in range(60)]
    news = [Text(f"plot {number} is let to a tenant of the road") for number in range(60)]
    assert versions(olds, [*news, olds[7]]) == {60: 7}
    assert versions(olds[:3], news[:3]) == {0: 0, 1: 1, 2: 2}
