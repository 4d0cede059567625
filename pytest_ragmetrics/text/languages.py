"""Guessing what a text is written in, as far as splitting it into sentences needs to know."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

#: How much of a text is looked at.
_GLANCE = 4000

_SCRIPTS = {
    "ja": "\u3041-\u30fa\u31f0-\u31ff\uff66-\uff9f",
    "zh": "\u3400-\u4dbf\u4e00-\u9fff",
    "ko": "\u1100-\u11ff\uac00-\ud7a3",
    "ru": "\u0400-\u052f",
    "el": "\u0370-\u03ff\u1f00-\u1fff",
    "ar": "\u0600-\u06ff\u0750-\u077f",
    "he": "\u0590-\u05ff",
    "hi": "\u0900-\u097f",
    "bn": "\u0980-\u09ff",
    "ta": "\u0b80-\u0bff",
    "te": "\u0c00-\u0c7f",
    "kn": "\u0c80-\u0cff",
    "ml": "\u0d00-\u0d7f",
    "th": "\u0e00-\u0e7f",
    "bo": "\u0f00-\u0fff",
    "my": "\u1000-\u109f",
    "ka": "\u10a0-\u10ff",
    "am": "\u1200-\u137f",
    "km": "\u1780-\u17ff",
    "hy": "\u0530-\u058f",
    "latin": "A-Za-z\u00c0-\u024f",
}
_SCRIPT = re.compile("|".join(f"(?P<{name}>[{letters}])" for name, letters in _SCRIPTS.items()))

# Frequent in one of these languages and rare in the others. A language stands here when the splitter does better
# for knowing it; French is listed apart because it does worse ("M. Dupont" is cut in two) and English rules serve.
_FUNCTION_WORDS = {
    "en": "the of and to is that for was with as are be by this have not or from which on in",
    "de": "der die das und ist nicht von mit sich auf für ein eine dem den des im am wird wurde sind auch",
    "es": "el la los las y de del en es no que se una por para con está fue más como pero sus al su",
    "it": "il la gli che di è della una per con sono nel alla più anche dei le non si",
    "pt": "o a os as e de do da em que se uma por para com não é foi mais como dos das ao seu",
    "pl": "w i na z się nie do jest że to po od przez dla został oraz",
    "cs": "v na se je že do od pro byl jsou jako ve který by při",
    "da": "og det er en af til på med den som ikke for de har et var",
    "fr": "le la les de des est et une dans qui que par pour au sur du pas en il se",
}
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {
    word: tuple(language for language, known in _FUNCTION_WORDS.items() if word in known.split())
    for word in " ".join(_FUNCTION_WORDS.values()).split()
}
_ENGLISH_RULES = frozenset({"fr"})
_WORD = re.compile(r"[^\W\d_]+")


def guess_language(text: str) -> str:
    """Guess the language of a text from its script and its commonest words; ``"en"`` where nothing tells.

    >>> guess_language("今天天气很好。"), guess_language("Das ist nicht der Fall.")
    ('zh', 'de')
    """
    return _guess(text[:_GLANCE])


# Several metrics look at the same sample, and claims are short.
@lru_cache(maxsize=512)
def _guess(text: str) -> str:
    if text.isascii():
        return _guess_latin(text)
    scripts = Counter(match.lastgroup for match in _SCRIPT.finditer(text))
    if scripts["ja"] * 10 > scripts["zh"] > 0:  # Japanese is written in both
        scripts["ja"] += scripts.pop("zh")
    best = max(scripts, key=lambda name: scripts[name], default=None)
    return _guess_latin(text) if best in (None, "latin") else str(best)


def _guess_latin(text: str) -> str:
    hits = dict.fromkeys(_FUNCTION_WORDS, 0)
    for word in _WORD.findall(text.lower()):
        for language in _LANGUAGES_OF.get(word, ()):
            hits[language] += 1
    best = max(hits, key=lambda language: hits[language])
    return "en" if best in _ENGLISH_RULES else best
