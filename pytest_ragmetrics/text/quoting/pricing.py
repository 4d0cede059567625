"""What each reading of a quotation mark costs: opening a quotation, closing one, or neither.

Most marks are ambiguous: a straight mark opens and closes, an apostrophe looks like a closing single mark,
guillemets point outwards in one language and inwards in the next. The neighbours of a mark make some readings
cheap and others dear; ``pairing`` then takes the cheapest reading of the whole.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from pytest_ragmetrics.text.quoting.marks import (
    CLOSING_TAG,
    INNER_SPACES,
    LATEX_CLOSING,
    LATEX_OPENING,
    LATEX_SINGLE,
    LEFT_ANGLE,
    LEFT_SINGLE,
    LOW_SINGLE,
    OPENING_TAG,
    RIGHT_ANGLE,
    RIGHT_SINGLE,
    SINGLE,
    STRAIGHT,
    Mark,
    Place,
)
from pytest_ragmetrics.text.scripts import is_unspaced

#: The price of what cannot be, and of leaving alone what can only be a quotation mark.
NEVER = 100_000
STRAY = 100

#: What elision leaves of a word, and the years of a decade.
_ELIDED = re.compile(
    r"(?:[Tt](?:is|was|were|ill|would|isn|wasn|il|ween)|[Cc](?:os|uz|oz)|em|bout|neath|gainst|fraid|nuff|nough|nother|n|ere"
    r"|ed|ad|ave|aven|ow|ome|ouses?|orses?|ead|ear|eard|eart|ell|elp|alf|igh|imself|erself|usband|undred|appen|oo|e"
    r"|s|t|d|m|ll|re|ve|nt|nen|nem|ner|[0-9]{2}(?:er|s)?)(?![^\W_])"
)
#: The same for what may also be a word that begins a quotation.
_PERHAPS_ELIDED = re.compile(
    r"(?:Em|[Cc]ause|till|[Rr]ound|kay|un|im|er|is|as|at|and|old|ard|ill|all|ope|our|ot|ne)(?![^\W_])"
)
#: Letters that an elision leaves at the end of a word: goin', an', o', th', ol', wi'.
_ELIDING = frozenset("nohliNOHLI")
_SIBILANTS = frozenset("sxzSXZ")
#: Words that do not follow a possessive: "the boys' and" closes, "the boys' tea" need not.
_NOT_OWNED = re.compile(
    r"\s+(?:and|or|but|is|was|are|were|has|had|said|says|he|she|it|they|we|i|you|in|of|on|at|by|to|for|from|with|that"
    r"|which|who|when|while|as|if|because|then|than|not|the|a|an|cried|asked|replied|answered)(?![^\W_])",
    re.IGNORECASE,
)


class Prices(NamedTuple):
    """What it costs to read a mark as opening a quotation, as closing one, and as neither."""

    opening: int
    closing: int
    stray: int = STRAY


class Guillemets(Enum):
    """Which way the guillemets of a text point."""

    OUTWARD = "«»"
    INWARD = "»«"
    ALIKE = "»»"


_ONLY_OPENS = (Prices(0, NEVER),) * 6
_ONLY_CLOSES = (Prices(NEVER, 0),) * 6
_LEFT_GUILLEMET = (Prices(0, NEVER), Prices(70, 10), Prices(10, 110), Prices(20, 30), Prices(0, 110), Prices(50, 10))
_RIGHT_GUILLEMET = (Prices(10, 70), Prices(NEVER, 0), Prices(110, 10), Prices(30, 20), Prices(20, 50), Prices(110, 0))
#: By glyph, in the order of ``Place``: OPENS, CLOSES, LOOSE, TIGHT, LEANS_OPEN, LEANS_CLOSED.
_PRICES: dict[str, tuple[Prices, ...]] = {
    STRAIGHT: (
        Prices(0, NEVER),
        Prices(NEVER, 0),
        Prices(30, 30, 60),
        Prices(50, 50, 35),
        Prices(10, 50, 90),
        Prices(50, 10, 90),
    ),
    LATEX_CLOSING: (
        Prices(10, NEVER, 80),
        Prices(NEVER, 0, 80),
        Prices(60, 10, 60),
        Prices(60, 10, 60),
        Prices(10, 50, 60),
        Prices(50, 0, 80),
    ),
    LEFT_SINGLE: (
        Prices(0, 80, 80),
        Prices(80, 0, 60),
        Prices(20, 40, 60),
        Prices(10, 30, 60),
        Prices(0, 60, 80),
        Prices(50, 10, 60),
    ),
    "“": (Prices(0, 80), Prices(60, 0), Prices(10, 30), Prices(10, 20), Prices(0, 60), Prices(50, 10)),
    "”": (Prices(10, 60), Prices(NEVER, 0), Prices(60, 10), Prices(60, 10), Prices(40, 30), Prices(NEVER, 0)),
    LOW_SINGLE: (Prices(0, NEVER), *(Prices(30, NEVER, 20),) * 5),
    # An unpaired one is a letter of an Arabic name, or of code that was not closed.
    LATEX_SINGLE: (Prices(0, NEVER, 15),) * 6,
    **dict.fromkeys(("«", LEFT_ANGLE), _LEFT_GUILLEMET),
    **dict.fromkeys(("»", RIGHT_ANGLE), _RIGHT_GUILLEMET),
    **dict.fromkeys(("„", LATEX_OPENING, "「", "『", "〝", OPENING_TAG), _ONLY_OPENS),
    **dict.fromkeys(("」", "』", "〞", CLOSING_TAG), _ONLY_CLOSES),
}
_EITHER_WAY = Prices(10, 10)
#: Inside a text without spaces nothing but counting tells what a mark is.
_UNSPACED = {STRAIGHT: Prices(30, 30, 80), SINGLE: Prices(30, 20, 40), RIGHT_SINGLE: Prices(60, 20, 40)}
_APOSTROPHE = Prices(60, 60, 0)


def price(mark: Mark, text: str, guillemets: Guillemets) -> Prices:
    """Return what each reading of a mark costs where it stands."""
    place = mark.place(text)
    if mark.glyph in (SINGLE, RIGHT_SINGLE):
        return _price_apostrophe(mark, text, place)
    if mark.glyph in ("«", "»", LEFT_ANGLE, RIGHT_ANGLE):
        return _price_guillemet(mark, text, place, guillemets)
    if mark.glyph == STRAIGHT and place is Place.TIGHT and _stands_unspaced(mark):
        return _UNSPACED[STRAIGHT]
    prices = _PRICES[mark.glyph][place]
    if mark.glyph in (LEFT_SINGLE, LATEX_SINGLE) and prices.opening == 0 and _ELIDED.match(text, mark.end):
        # The apostrophe of an elision, turned round by an editor that knows no better.
        return Prices(50, NEVER, 10)
    if mark.before.isdigit() and mark.glyph in (STRAIGHT, LATEX_CLOSING, "”"):
        # Inches and seconds, unless a quotation that ends in a number needs its mark.
        return Prices(NEVER, max(prices.closing, 15), 5)
    return prices


def _price_guillemet(mark: Mark, text: str, place: Place, guillemets: Guillemets) -> Prices:
    left = mark.glyph in ("«", LEFT_ANGLE)
    if (mark.after if left else mark.before) in INNER_SPACES:
        return _PRICES[mark.glyph][Place.OPENS if left else Place.CLOSES]
    spaced = mark.before.isspace() and mark.after.isspace()
    if not spaced and place is not Place.TIGHT:
        return _PRICES[mark.glyph][place]
    if guillemets is Guillemets.ALIKE:
        return _EITHER_WAY
    opens = left == (guillemets is Guillemets.OUTWARD)
    if not spaced:
        return _PRICES["«" if opens else "»"][place]
    # What is quoted begins with a capital more often than what goes on behind it.
    capital = mark.later(text).isupper()
    return Prices(10 if capital else 30, 110) if opens else Prices(110, 30 if capital else 10)


def _price_apostrophe(mark: Mark, text: str, place: Place) -> Prices:
    if place is Place.LOOSE or (place is Place.LEANS_OPEN and mark.after.isspace()):
        # Tokenised text: what stands before the space tells a closing mark from a possessive.
        return Prices(50, 40, 10) if mark.earlier(text).isalnum() else Prices(30, 0, 60)
    if place in (Place.OPENS, Place.LEANS_OPEN):
        return _price_leading_apostrophe(mark, text)
    if place is not Place.TIGHT:
        return _price_trailing_apostrophe(mark, text)
    if _stands_unspaced(mark):
        return _UNSPACED[mark.glyph]
    return _APOSTROPHE if mark.before.isalnum() else Prices(30 if mark.glyph == SINGLE else 60, 10, 40)


def _price_leading_apostrophe(mark: Mark, text: str) -> Prices:
    if _ELIDED.match(text, mark.end):
        return Prices(60, NEVER, 0)
    if _PERHAPS_ELIDED.match(text, mark.end):
        return Prices(30, NEVER, 15)
    # Elisions are rare at the beginning of a sentence.
    capital = not mark.after.islower()
    if mark.glyph == SINGLE:
        return Prices(10, NEVER, 70 if capital else 40)
    return Prices(30, NEVER, 30 if capital else 10)


def _price_trailing_apostrophe(mark: Mark, text: str) -> Prices:
    before = mark.before
    if not before.isalnum():
        return Prices(NEVER, 0, 90)
    if before.isdigit():
        return Prices(NEVER, 15, 5)
    if before.isascii() and not text[mark.left - 1 : mark.left].isalnum():
        # A prime: f'(x), or the point A'.
        return Prices(NEVER, 60, 0) if mark.after == "(" else Prices(NEVER, 10, 15)
    if not mark.after.isspace() or mark.after == "\n":
        return Prices(NEVER, 10, 30 if before in _SIBILANTS or before in _ELIDING else 40)
    if before in _SIBILANTS:
        return Prices(NEVER, 5, 40) if _NOT_OWNED.match(text, mark.end) else Prices(NEVER, 30, 10)
    return Prices(NEVER, 20, 15) if before in _ELIDING else Prices(NEVER, 5, 40)


def _stands_unspaced(mark: Mark) -> bool:
    return _runs_on(mark.before) or _runs_on(mark.after)


def _runs_on(character: str) -> bool:
    # Korean has spaces, but none between a closing mark and the particle that follows it.
    return is_unspaced(character) or "\uac00" <= character <= "\ud7a3"
