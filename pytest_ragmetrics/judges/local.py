"""A judge by rule, for trying everything out without a key: it compares words and understands nothing.

It is deterministic and needs neither network nor model. Faithfulness by it, at a pass mark of 0.8, was held against
human labels: balanced accuracy 0.68 on long answers of language models, the very ones its rules were tuned on (0.5 is
a coin flip, good models reach 0.75 to 0.86). A faithful answer in other words than its source often fails.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.judges.judge import Answered, Desk, Judge
from pytest_ragmetrics.judges.overlap import Sentences, coverage, keys, sentences_of
from pytest_ragmetrics.judges.tasks import (
    TOP_RATING,
    AnswerQuestions,
    Critique,
    JudgeContexts,
    Judgement,
    ListClaims,
    ListKeyPhrases,
    RateCorrectness,
    RateRelevance,
    Rating,
    SelectSentences,
    Task,
    VerifyClaims,
    WriteClosedQuestions,
    WriteQuestions,
)
from pytest_ragmetrics.result import Usage
from pytest_ragmetrics.text.facts.content_words import content_words
from pytest_ragmetrics.text.facts.numbers import NumbersIn, find_numbers
from pytest_ragmetrics.text.sentences import split_sentences

A = TypeVar("A")

#: The share of its words that must stand in one or two sentences before a claim counts as supported.
SUPPORTED = 0.6
# The share of a question's words from which a text is on its topic, and from which it answers it fully.
_ON_TOPIC = 0.3
_ANSWERED = 0.8
_PHRASES = 8
_MENTIONED = "Does the text mention {}?"
_NONCOMMITTAL = re.compile(
    r"\b(?:I|we) (?:do not|don['\u2019]t|cannot|can['\u2019]t|am not able to)"
    r" (?:\w+ )?(?:know|answer|tell|find|say|provide)\b"
    r"|\b(?:unable|impossible) to (?:answer|determine|say)\b|\b(?:not enough|insufficient|no) information\b"
    r"|\bnot (?:mentioned|specified|provided|stated) in the (?:\w+ )?(?:contexts?|passages?|texts?|documents?)\b"
    r"|\bweiß (?:ich|es) nicht\b|\bkeine (?:\w+ )?Informationen\b|\bje ne sais pas\b|\bno lo sé\b"
    r"|不知道|无法回答|没有足够|わかりません|لا أعرف|لا أعلم",
    re.IGNORECASE,
)
_HARM = re.compile(
    r"\b(?:harm|malic|deceiv|exploit|injur|toxic|offen[sd]|danger|hat(?:e|ing|red)|insult|illegal|violen|threat|kill"
    r"|attack|weapon|bomb|poison|steal|fraud|scam|idiot|stupid|murder|suicid|abus)\w*",
    re.IGNORECASE,
)
_FREE_OF = re.compile(r"\b(?:free of|free from|without|no|not|avoids?|harmless)\b", re.IGNORECASE)


class LocalJudge(Judge):
    """Answers every task by comparing words; the same question has the same answer, whatever the vote.

    Raises ``JudgeError`` for a task it has no rule for.

    >>> import asyncio
    >>> from pytest_ragmetrics.judges.judge import DirectDesk
    >>> task = VerifyClaims(claims=("Moths fly at night.",), contexts=("Most moths fly at night.",))
    >>> asyncio.run(LocalJudge().ask(task, desk=DirectDesk())).answer[0].ok
    True
    """

    def __init__(self) -> None:
        self.name = "local (heuristic)"

    async def ask(self, task: Task[A], *, vote: int = 0, desk: Desk) -> Answered[A]:  # noqa: ARG002 - nothing is sent
        """Return the answer to a task; it costs nothing and needs no desk."""
        rule = _RULES.get(type(task))
        if rule is None:
            msg = f"{self.name} has no rule for {task.prompt}; this metric needs a model"
            raise JudgeError(msg)
        return Answered(answer=rule(task), usage=Usage())


def _list_claims(task: ListClaims) -> tuple[str, ...]:
    """Take the sentences for claims, without those that refuse to make one."""
    return _distinct(_committed(task.text))


def _verify_claims(task: VerifyClaims) -> tuple[Judgement, ...]:
    sentences = sentences_of(task.contexts)
    return tuple(_verify(claim, sentences) for claim in task.claims)


def _verify(claim: str, sentences: Sentences) -> Judgement:
    support = sentences.support(claim)
    if not support.sentences:
        return Judgement(ok=False, reason="No sentence shares a word with it.")
    share = f"{support.coverage:.0%} of its words stand in the closest sentences"
    if support.missing:
        return Judgement(ok=False, reason=f"{share}, but not {', '.join(support.missing)}.")
    if support.negated:
        return Judgement(ok=False, reason=f"{share}, but one of the two is negated.")
    ok = support.coverage >= SUPPORTED
    return Judgement(ok=ok, reason=f"{share}.", sentences=support.sentences if ok else ())


def _write_questions(task: WriteQuestions) -> tuple[tuple[str, bool], ...]:
    """Ask for what the sentences that say most are about."""
    noncommittal = _is_noncommittal(task.response)
    about = sorted((_topic(sentence) for sentence in _sentences(task.response)), key=len, reverse=True)
    topics = _distinct([_topic(task.response), *about])
    questions = [f"What about {topic}?" for topic in topics[: task.count]]
    questions += [f"What else about {topics[0] if topics else 'it'} ({n})?" for n in range(task.count - len(questions))]
    return tuple((question, noncommittal) for question in questions)


def _list_key_phrases(task: ListKeyPhrases) -> tuple[str, ...]:
    """Take the words said most often, the earlier of equals."""
    words = [word for context in task.contexts for word in content_words(context)]
    said = Counter(word.key for word in words)
    forms = {word.key: word.text for word in reversed(words)}
    return _distinct(forms[key] for key, _ in said.most_common(_PHRASES))


def _write_closed_questions(task: WriteClosedQuestions) -> tuple[str, ...]:
    return _distinct(_MENTIONED.format(phrase) for phrase in task.phrases)


def _answer_questions(task: AnswerQuestions) -> tuple[Judgement, ...]:
    given, stock = keys(task.text), keys(_MENTIONED)
    shares = [coverage(keys(question) - stock or keys(question), given) for question in task.questions]
    return tuple(
        Judgement(ok=share >= SUPPORTED, reason=f"The text has {share:.0%} of the question's words.")
        for share in shares
    )


def _select_sentences(task: SelectSentences) -> tuple[int, ...]:
    """Choose the sentences with at least half as many of the question's words as the best one."""
    wanted = keys(task.question)
    shared = sentences_of(task.contexts).shared(wanted)
    most = max(shared.values(), default=0)
    if not wanted or most / len(wanted) < _ON_TOPIC:
        return ()
    return tuple(sorted(index for index, count in shared.items() if count * 2 >= most))


def _critique(task: Critique) -> Judgement:
    """Look for words of harm where a definition speaks of harm, for anything repeated where it does not."""
    fields: Mapping[str, str] = dict(task.fields)
    text = fields.get("response") or " ".join(fields.values())
    if _HARM.search(task.definition):
        found = _HARM.search(text)
        reason = f"It says {found.group()!r}." if found else "It has no word of harm."
        return Judgement(ok=bool(found) != bool(_FREE_OF.search(task.definition)), reason=reason)
    sentences = list(_sentences(text))
    repeated = len(_distinct(sentences)) < len(sentences)
    return Judgement(ok=not repeated, reason="It repeats itself." if repeated else "It does not repeat itself.")


def _rate_relevance(task: RateRelevance) -> Rating:
    if _is_noncommittal(task.response):
        return Rating(value=0.0, reason="It is noncommittal.")
    share = coverage(keys(task.question), keys(task.response))
    return Rating(value=_step(share / _ANSWERED), reason=f"It has {share:.0%} of the question's words.")


def _rate_correctness(task: RateCorrectness) -> Rating:
    said, wanted = keys(task.response), keys(task.reference)
    overlap = 2 * len(said & wanted) / (len(said) + len(wanted)) if said or wanted else 1.0
    numbers = NumbersIn(task.response)
    missing = [number.text for number in find_numbers(task.reference) if numbers.locate(number) is None]
    reason = f"Response and reference share {overlap:.0%} of their words"
    if missing:
        return Rating(value=min(_step(overlap), 1 / TOP_RATING), reason=f"{reason}, but not {', '.join(missing)}.")
    return Rating(value=_step(overlap), reason=f"{reason}.")


def _judge_contexts(task: JudgeContexts) -> tuple[Judgement, ...]:
    wanted = keys(task.question)
    shares = [coverage(wanted, keys(context)) for context in task.contexts]
    return tuple(
        Judgement(ok=share >= _ON_TOPIC, reason=f"It has {share:.0%} of the question's words.") for share in shares
    )


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences that say something."""
    return (text[start:end] for start, end in split_sentences(text) if keys(text[start:end]))


def _committed(text: str) -> Iterator[str]:
    return (sentence for sentence in _sentences(text) if not _NONCOMMITTAL.search(sentence))


def _is_noncommittal(text: str) -> bool:
    return bool(_NONCOMMITTAL.search(text)) and not any(_committed(text))


def _topic(text: str) -> str:
    words = {word.key: word.text for word in content_words(text)}
    return " ".join(words.values()) or " ".join(text.split())


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple({" ".join(text.casefold().split()): text for text in texts if text.strip()}.values())


def _step(share: float) -> float:
    """Return the nearest step of the rating scale."""
    return round(min(share, 1.0) * TOP_RATING) / TOP_RATING


_RULES: Mapping[type[Task[Any]], Callable[[Any], Any]] = {
    ListClaims: _list_claims,
    VerifyClaims: _verify_claims,
    WriteQuestions: _write_questions,
    ListKeyPhrases: _list_key_phrases,
    WriteClosedQuestions: _write_closed_questions,
    AnswerQuestions: _answer_questions,
    SelectSentences: _select_sentences,
    Critique: _critique,
    RateRelevance: _rate_relevance,
    RateCorrectness: _rate_correctness,
    JudgeContexts: _judge_contexts,
}
