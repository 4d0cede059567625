"""An index of a long byte string, for when very many others are looked for in it."""

from __future__ import annotations

import sys

#: Length in bytes of the pieces that are indexed: those that an unsigned 64-bit number holds.
GRAM = 8
# Stretches of a needle that are tried before giving up.
_STRETCHES = 8
_MOST_SIGHTINGS = 256


class GramIndex:
    """Where the pieces of a byte string stand, taken side by side.

    Wherever a needle stands, any GRAM positions of it in a row include one that an indexed piece begins at. So the
    pieces of the needle at these positions tell all its places, unless one of them occurs too often.

    >>> GramIndex(b"thequickbrownfoxjumpsover").find(b"ickbrownfoxjumps", 0, 25)
    5
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        grams = memoryview(text)[: len(text) // GRAM * GRAM].cast("Q").tolist()
        numbers = range(len(grams))
        self._last: dict[int, int] = dict(zip(grams, numbers, strict=True))
        self._first: dict[int, int] = dict(zip(reversed(grams), reversed(numbers), strict=True))

    def find(self, needle: bytes, start: int, end: int) -> int | None:
        """Return the first position of a needle in ``text[start:end]``, -1 for none, ``None`` for "cannot tell".

        The needle must be at least ``2 * GRAM`` bytes long.
        """
        for stretch in range(0, min(len(needle) - 2 * GRAM + 1, _STRETCHES * GRAM), GRAM):
            places = self._places(needle, stretch)
            if places is not None:
                inside = (place for place in sorted(places) if start <= place <= end - len(needle))
                return next((place for place in inside if self._text.startswith(needle, place)), -1)
        return None

    def sightings(self, needle: bytes) -> list[int]:
        """Return where a needle would start, judging by each of its pieces that is indexed."""
        found: list[int] = []
        for offset in range(len(needle) - GRAM + 1):
            gram = _number(needle, offset)
            first = self._first.get(gram)
            if first is not None:
                found += {first * GRAM - offset, self._last[gram] * GRAM - offset}
            if len(found) >= _MOST_SIGHTINGS:
                break
        return found

    def _places(self, needle: bytes, stretch: int) -> list[int] | None:
        """Return where a needle may start, judging by one stretch; ``None`` when a piece of it occurs repeatedly."""
        places = []
        for offset in range(stretch, stretch + GRAM):
            gram = _number(needle, offset)
            first = self._first.get(gram)
            if first is None:
                continue
            if first != self._last[gram]:
                return None
            places.append(first * GRAM - offset)
        return places


def _number(text: bytes, offset: int) -> int:
    return int.from_bytes(text[offset : offset + GRAM], sys.byteorder)
