"""What the rules have in common: sentences that say something, and those that refuse to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_ragmetrics.judges.overlap import keys
from pytest_ragmetrics.judges.rules.refusals import refuses
from pytest_ragmetrics.text.sentences import split_sentences

#: The share of its words that must stand in one or two sentences before a claim counts as supported.
SUPPORTED = 0.6
#: The share of a question's words from which a text is on its topic.
ON_TOPIC = 0.3
#: The share of a question's words from which a text answers it fully.
ANSWERED = 0.8


def telling_sentences(text: str) -> Iterator[str]:
    """Yield the sentences that say something."""
    return (text[start:end] for start, end in split_sentences(text) if keys(text[start:end]))


def committed(text: str) -> Iterator[str]:
    """Yield the sentences that say something and do not refuse to."""
    return (sentence for sentence in telling_sentences(text) if not refuses(sentence))


def is_noncommittal(text: str) -> bool:
    """Tell whether a text does nothing but refuse."""
    return any(refuses(text[start:end]) for start, end in split_sentences(text)) and not any(committed(text))


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that are not blank, those that say the same once."""
    return tuple({" ".join(text.casefold().split()): text for text in texts if text.strip()}.values())
