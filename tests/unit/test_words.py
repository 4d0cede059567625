"""Counting words in scripts with and without spaces."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.text.words import WordsIn, content_words, count_words, ends_word

#: Words are white-space tokens with a letter or digit, and pairs of characters where there are no spaces.
WORDS = [
    # Marks and signs between spaces are no words, however many there are.
    *(("", 0), (" \n\t", 0), ("Herons wade at dawn", 4), ("the heron -- a grey one -- waits ...", 6)),
    *(("it's a well-known 2.5-kilo pike", 5), ("elle\u00a0attend\u202fl’aube", 3), ("[…] (…) — * _", 0)),
    ("снег и лёд", 3),
    # Half of the characters are counted, rounded down.
    *(("鳥", 0), ("青鷺", 1), ("青鷺が立つ", 2), ("アオサギがいる", 3), ("นกกระสา", 3), ("ນົກຍາງ", 3), ("ខ្យង", 2)),
    ("ငှက်", 2),
    # What a token has outside the scripts without spaces makes it a word, its other characters are halved.
    *(("青鷺 heron 青鷺", 3), ("heron青鷺", 2), ("青heron鷺 waits", 3), ("青 鷺", 1), ("2024年11月", 2)),
]


def test_words_are_counted_in_every_script() -> None:
    assert [(text, count_words(text)) for text, _ in WORDS] == WORDS


#: Korean words with the particles that may follow them, and with ends that only look like particles.
PARTICLES = {
    "보일러": ["를", "가", "는", "와", "로", "의", "에서는", "까지도", "라고", "", "."],
    "사실": ["을", "이", "은", "과", "로", "로는", "이라고", "만의", "”이라고"],
    "바뀐다": ["고", "는", "라고는", "면서"],
}
NO_PARTICLES = {"사": "과", "보일러": "을", "사실": "는데", "서울": "역", "나": "무는", "바뀌": "지"}


def test_a_korean_word_ends_before_its_particle() -> None:
    pairs = [(word, end) for word, ends in PARTICLES.items() for end in ends]
    assert [pair for pair in pairs if not ends_word(f"{''.join(pair)} 그", len(pair[0]))] == []
    assert [word for word, end in NO_PARTICLES.items() if ends_word(f"{word}{end} 그", len(word))] == []


@given(st.text(alphabet="ab9 -’.\n\té"), st.text(alphabet="ab9 -’.\n\té"))
def test_words_of_two_texts_add_up(first: str, second: str) -> None:
    assert count_words(f"\n {first}\u00a0 ") == count_words(first)
    assert count_words(f"{first} {second}") == count_words(first) + count_words(second)


def test_words_are_found_in_any_form_of_them() -> None:
    for text in permutations(("carpenters", "car", "carp", "carpets")):
        known = WordsIn(" ".join(text))
        found = [word.text for word in content_words("car cars care carpeting card cat caravans") if word in known]
        assert found == ["car", "cars", "care", "carpeting", "card"]
