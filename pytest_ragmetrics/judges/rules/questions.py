"""Questions are made of the words of a text, and answered by them."""

from __future__ import annotations

from collections import Counter

from pytest_ragmetrics.judges.overlap import coverage, keys
from pytest_ragmetrics.judges.rules.words import SUPPORTED, distinct, is_noncommittal, telling_sentences
from pytest_ragmetrics.judges.tasks import (
    AnswerQuestions,
    Judgement,
    ListKeyPhrases,
    WriteClosedQuestions,
    WriteQuestions,
)
from pytest_ragmetrics.text.facts.content_words import content_words

_PHRASES = 8
_MENTIONED = "Does the text mention {}?"


def write_questions(task: WriteQuestions) -> tuple[tuple[str, bool], ...]:
    """Ask for what the sentences that say most are about."""
    noncommittal = is_noncommittal(task.response)
    about = sorted((_topic(sentence) for sentence in telling_sentences(task.response)), key=len, reverse=True)
    topics = distinct([_topic(task.response), *about])
    questions = [f"What about {topic}?" for topic in topics[: task.count]]
    questions += [f"What else about {topics[0] if topics else 'it'} ({n})?" for n in range(task.count - len(questions))]
    return tuple((question, noncommittal) for question in questions)


def list_key_phrases(task: ListKeyPhrases) -> tuple[str, ...]:
    """Take the words said most often, the earlier of equals."""
    words = [word for context in task.contexts for word in content_words(context)]
    said = Counter(word.key for word in words)
    forms = {word.key: word.text for word in reversed(words)}
    return distinct(forms[key] for key, _ in said.most_common(_PHRASES))


def write_closed_questions(task: WriteClosedQuestions) -> tuple[str, ...]:
    """Ask whether each phrase is mentioned."""
    return distinct(_MENTIONED.format(phrase) for phrase in task.phrases)


def answer_questions(task: AnswerQuestions) -> tuple[Judgement, ...]:
    """Answer yes where the text has most of a question's words."""
    given, stock = keys(task.text), keys(_MENTIONED)
    shares = [coverage(keys(question) - stock or keys(question), given) for question in task.questions]
    return tuple(
        Judgement(ok=share >= SUPPORTED, reason=f"The text has {share:.0%} of the question's words.")
        for share in shares
    )


def _topic(text: str) -> str:
    words = {word.key: word.text for word in content_words(text)}
    return " ".join(words.values()) or " ".join(text.split())
