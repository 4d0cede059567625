"""Telling what a quotation is by its form and the words beside it: the words of a source, or a title or a name."""

from __future__ import annotations

import re
from functools import partial

from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.quotes.quotations import Quotation
from pytest_ragmetrics.text.sentences import split_sentences
from pytest_ragmetrics.text.words import fold_word, is_function_word, word_list, word_tokens

_words = partial(word_list, "kind_words.txt")
# How far from a quotation is looked: characters, and words before it to one like "according".
_NEAR, _FARTHEST = 64, 6
_BESIDE = f"{unicode.WHITE_SPACE}*_"
# A comma ends a clause where three words follow: "As you asked, the book says", but not "It does not say, that".
_CLAUSE = re.compile(
    rf"[.!?;{unicode.ELLIPSIS}](?=\s)|[{unicode.STOPS}{unicode.SEMICOLONS}{unicode.BULLET}]|\n(?=[\n#>*\d-])"
    rf"|[,{unicode.COMMAS}](?=(?:\s+\w+){{3}})|{unicode.COMMAS[0]}(?=\w{{3}})"
)
# Words of a title by its capitals, and of one by the word of a work beside it.
_LONGEST, _LONGEST_NAMED = 14, 10
_STOPS = tuple(f".;:{unicode.STOPS}")
_WORD = re.compile(rf"[^\W_]+(?:['{unicode.RIGHT_SINGLE}.&-][^\W_]+)*")
_LAST_WORD = re.compile(rf"[^\s([:;,.'{unicode.RIGHT_SINGLE}{unicode.ELLIPSIS}{unicode.PAUSES}-]+$")
_FIRST_WORD = re.compile(r"^[^\s)\].,;!?]+")


def is_attributed(text: str, quotation: Quotation) -> bool:
    """Tell whether a colon or a word of saying is right before a quotation, or such a word right behind it.

    It is not attributed where the same clause names who asks or the question, or has a negation.

    >>> from pytest_ragmetrics.text.quotes.quotations import find_quotations
    >>> text = 'The handbook says "it is shut". You say "it is open". It does not say "it is open".'
    >>> [is_attributed(text, quotation) for quotation in find_quotations(text)]
    [True, False, False]
    """
    before, after = _beside(text, quotation)
    words = _tokens(_CLAUSE.split(before)[-1])
    says, according = _words("says"), _words("according")
    # "The book says that the", but not "the book says the answer to".
    telling = [word for word in words if word in says or not (is_function_word(word) or word.isdigit())]
    is_said = not says.isdisjoint(telling[-1:]) or not according.isdisjoint(words[-_FARTHEST:])
    if not is_said and not before.endswith((":", unicode.COLONS)):
        following = _tokens(_CLAUSE.split(after.lstrip(f",{unicode.COMMAS} "))[0])
        if (says | according).isdisjoint(following[:1]):
            return False
        words += following
    return _words("others").isdisjoint(words)


def looks_like_title(text: str, quotation: Quotation) -> bool:
    """Tell whether a quotation looks like the title of a work or like a name, and not like a passage.

    It is short, begins with no small letter and the word of a work is beside it; or it is in title case in the letters
    of English and is not attributed.

    >>> from pytest_ragmetrics.text.quotes.quotations import find_quotations
    >>> text = 'In "The Turn of the Screw" and the song "Nur ein Wort von dir" it says "The Door Was Open".'
    >>> [looks_like_title(text, quotation) for quotation in find_quotations(text)]
    [True, True, False]
    """
    span = quotation.text.rstrip(" ,")
    # A block quote has no closing mark.
    if not quotation.marks[1] or quotation.words > _LONGEST or "; " in span or len(split_sentences(span)) > 1:
        return False
    if quotation.words <= _LONGEST_NAMED and not span.endswith(_STOPS) and _is_named(text, quotation):
        return True
    return _is_in_title_case(span) and not is_attributed(text, quotation)


def _is_named(text: str, quotation: Quotation) -> bool:
    """Tell whether the word of a work is right before or behind a quotation, inflected or not."""
    if next(filter(str.isalpha, quotation.text), "").islower():
        return False
    before, after = _beside(text, quotation)
    unspaced = tuple(_words("unspaced works"))
    if before.endswith(unspaced) or after.startswith(unspaced):
        return True
    # 『…』 is the mark of titles, where it is not what somebody says.
    if quotation.marks[0] == unicode.LEFT_WHITE_CORNER:
        return not is_attributed(text, quotation)
    folded = map(fold_word, [*_LAST_WORD.findall(before), *_FIRST_WORD.findall(after)])
    return any(word[:end] in _words("works") for word in folded for end in range(len(word) - 3, len(word) + 1))


def _is_in_title_case(span: str) -> bool:
    words, small = _WORD.findall(span), _words("small")
    if words[0].islower() or span.isupper() or not "".join(filter(str.isalpha, span)).isascii():
        return False
    # A name has two capitals.
    return sum(word[0].isupper() for word in words) > 1 and all(not w.islower() or fold_word(w) in small for w in words)


def _beside(text: str, quotation: Quotation) -> tuple[str, str]:
    """Return what is before and behind a quotation, without its marks."""
    before = text[max(quotation.start - _NEAR, 0) : quotation.start].rstrip().removesuffix(quotation.marks[0])
    after = text[quotation.end : quotation.end + _NEAR].lstrip().removeprefix(quotation.marks[1])
    return before.rstrip(_BESIDE), after.lstrip(_BESIDE)


def _tokens(text: str) -> list[str]:
    return [fold_word(token) for token in word_tokens(text)]
