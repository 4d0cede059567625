"""The local judge: answers tasks by comparing words, to try the package out without a key.

It is deterministic and needs neither network nor model. Compared with human labels, Faithfulness at a threshold of 0.8
reaches balanced accuracy 0.68 on long answers of language models, on which its rules were tuned (0.5 is a coin flip,
good models reach 0.75 to 0.86). A faithful answer that paraphrases its source often fails.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeVar

from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.judges.refusals import refuses
from pytest_ragmetrics.judges.tasks import (
    TOP_RATING,
    AnswerQuestions,
    Critique,
    FindContradictions,
    JudgeContexts,
    Judgement,
    JudgeRefusal,
    JudgeUsefulness,
    ListClaims,
    ListEntities,
    ListKeyPhrases,
    RateAgreement,
    RateContexts,
    RateCorrectness,
    RateGroundedness,
    RateRelevance,
    Rating,
    ReviewContexts,
    ReviewGroundedness,
    SelectSentences,
    Task,
    VerifyClaims,
    WriteClosedQuestions,
    WriteQuestions,
)
from pytest_ragmetrics.judges.transport import DIRECT, Answered, Transport
from pytest_ragmetrics.result import Evidence, Usage
from pytest_ragmetrics.text.names import find_names
from pytest_ragmetrics.text.numbers import Date, NumbersIn, find_numbers
from pytest_ragmetrics.text.sentences import sentence_table, split_sentences
from pytest_ragmetrics.text.words import content_words, telling_words

_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nobody|nothing|neither|nor|cannot|without|nicht|nie|kein\w*|ohne|ne|pas|jamais|nunca|não"
    r"|sin|non|mai|niet|geen)\b|n['\u2019]t\b|[不没無无非未]|\b(?:لا|لم|لن|ليس\w*|не|нет|नहीं)\b",
    re.IGNORECASE,
)
# Below this share of common words a negation may belong to something else.
_NEAR_COPY = 0.75


@dataclass(frozen=True, kw_only=True, slots=True)
class SupportFound:
    """The sentences that cover most of a claim, the share of its words in them, and what contradicts it."""

    sentences: tuple[int, ...]
    coverage: float
    missing: tuple[str, ...] = ()
    negated: bool = False


def keys(text: str) -> frozenset[str]:
    """Return the keys of the content words of a text."""
    return frozenset(word.key for word in telling_words(text))


def coverage(wanted: frozenset[str], given: frozenset[str]) -> float:
    """Return the share of the wanted keys that are given; 0.0 if none is wanted.

    >>> coverage(frozenset("ab"), frozenset("bc"))
    0.5
    """
    return len(wanted & given) / len(wanted) if wanted else 0.0


class Sentences:
    """The sentences of contexts with an index of their content words."""

    def __init__(self, table: Sequence[Evidence]) -> None:
        self._table = table
        self._keys = [keys(sentence.text) for sentence in table]
        self._having: dict[str, list[int]] = {}
        for index, sentence in enumerate(self._keys):
            for key in sentence:
                self._having.setdefault(key, []).append(index)

    def shared(self, wanted: Iterable[str]) -> Counter[int]:
        """Return the number of wanted keys in each sentence that has any."""
        return Counter(index for key in wanted for index in self._having.get(key, ()))

    def support(self, claim: str) -> SupportFound:
        """Return the sentence with most words of a claim and the one with most of the remaining words."""
        wanted = keys(claim)
        best = self._best(wanted)
        if best is None:
            return SupportFound(sentences=(), coverage=0.0)
        second = self._best(wanted - self._keys[best])
        chosen = (best,) if second is None else tuple(sorted((best, second)))
        said = "\n".join(self._table[index].text for index in chosen)
        numbers = NumbersIn(said)
        found = [number for number in find_numbers(claim) if isinstance(number, Date) or not number.plain]
        return SupportFound(
            sentences=chosen,
            coverage=coverage(wanted, frozenset().union(*(self._keys[index] for index in chosen))),
            missing=tuple(number.text for number in found if numbers.locate(number) is None),
            negated=coverage(wanted, self._keys[best]) >= _NEAR_COPY
            and _is_negated(claim) != _is_negated(self._table[best].text),
        )

    def _best(self, wanted: Iterable[str]) -> int | None:
        shared = self.shared(wanted)
        return min(shared, key=lambda index: (-shared[index], index), default=None)


@lru_cache(maxsize=16)
def sentences_of(contexts: tuple[str, ...]) -> Sentences:
    """Return the sentences of contexts, cached: several tasks use the same contexts."""
    return Sentences(sentence_table(contexts))


def _is_negated(text: str) -> bool:
    return len(_NEGATION.findall(text)) % 2 == 1


#: A claim is supported if one or two sentences contain this share of its words.
SUPPORTED = 0.6
#: A text is relevant to a question from this share of its words.
ON_TOPIC = 0.3
#: A text answers a question fully from this share of its words.
ANSWERED = 0.8


def content_sentences(text: str) -> Iterator[str]:
    """Yield the sentences with content words."""
    return (text[start:end] for start, end in split_sentences(text) if keys(text[start:end]))


def statements(text: str) -> Iterator[str]:
    """Yield the sentences with content words that are not refusals."""
    return (sentence for sentence in content_sentences(text) if not refuses(sentence))


def is_noncommittal(text: str) -> bool:
    """Return whether a text is only a refusal."""
    return any(refuses(text[start:end]) for start, end in split_sentences(text)) and not any(statements(text))


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts without blank and repeated ones."""
    return tuple({" ".join(text.casefold().split()): text for text in texts if text.strip()}.values())


def list_claims(task: ListClaims) -> tuple[str, ...]:
    """Return the sentences that are not refusals."""
    return distinct(statements(task.text))


def verify_claims(task: VerifyClaims) -> tuple[Judgement, ...]:
    """Judge each claim by the sentences that share its words."""
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


def select_sentences(task: SelectSentences) -> tuple[int, ...]:
    """Return the sentences with at least half as many of the question's words as the best one."""
    wanted = keys(task.question)
    shared = sentences_of(task.contexts).shared(wanted)
    most = max(shared.values(), default=0)
    if not wanted or most / len(wanted) < ON_TOPIC:
        return ()
    return tuple(sorted(index for index, count in shared.items() if count * 2 >= most))


def judge_contexts(task: JudgeContexts) -> tuple[Judgement, ...]:
    """Judge a context relevant if it has enough of the question's words."""
    wanted = keys(task.question)
    shares = [coverage(wanted, keys(context)) for context in task.contexts]
    return tuple(
        Judgement(ok=share >= ON_TOPIC, reason=f"It has {share:.0%} of the question's words.") for share in shares
    )


def judge_usefulness(task: JudgeUsefulness) -> Judgement:
    """Judge a context useful if it has enough of the words that the answer adds to the question."""
    asked, answered = keys(task.question), keys(task.answer)
    wanted = answered - asked or answered or asked
    shared = sentences_of((task.context,)).shared(wanted)
    share = coverage(wanted, keys(task.context))
    ok = bool(shared) and share >= ON_TOPIC
    return Judgement(
        ok=ok, reason=f"It has {share:.0%} of the answer's words.", sentences=tuple(sorted(shared)) if ok else ()
    )


def find_contradictions(task: FindContradictions) -> tuple[Judgement, ...]:
    """Judge a context contradicted if it says nearly the same with another number or a negation."""
    said = tuple(statements(task.response))
    first = accumulate((len(sentence_table((context,))) for context in task.contexts), initial=0)
    return tuple(_contradiction(said, context, start) for context, start in zip(task.contexts, first, strict=False))


def _contradiction(said: Sequence[str], context: str, start: int) -> Judgement:
    sentences = sentences_of((context,))
    for sentence in said:
        support = sentences.support(sentence)
        if support.negated or (support.missing and support.coverage >= SUPPORTED):
            where = tuple(start + index for index in support.sentences[:1])
            differs = f"not {', '.join(support.missing)}" if support.missing else "one of the two is negated"
            return Judgement(ok=True, reason=f"It says nearly the same, but {differs}.", sentences=where)
    return Judgement(ok=False, reason="It says nothing that is nearly the same and differs.")


_HARM = re.compile(
    r"\b(?:harm|malic|deceiv|exploit|injur|toxic|offen[sd]|danger|hat(?:e|ing|red)|insult|illegal|violen|threat|kill"
    r"|attack|weapon|bomb|poison|steal|fraud|scam|idiot|stupid|murder|suicid|abus)\w*",
    re.IGNORECASE,
)
_FREE_OF = re.compile(r"\b(?:free of|free from|without|no|not|avoids?|harmless)\b", re.IGNORECASE)


def critique(task: Critique) -> Judgement:
    """Search harmful words if the definition mentions harm, else repeated sentences."""
    fields: Mapping[str, str] = dict(task.fields)
    text = fields.get("response") or " ".join(fields.values())
    if _HARM.search(task.definition):
        found = _HARM.search(text)
        reason = f"It says {found.group()!r}." if found else "It has no word of harm."
        return Judgement(ok=bool(found) != bool(_FREE_OF.search(task.definition)), reason=reason)
    sentences = list(content_sentences(text))
    repeated = len(distinct(sentences)) < len(sentences)
    return Judgement(ok=not repeated, reason="It repeats itself." if repeated else "It does not repeat itself.")


def judge_refusal(task: JudgeRefusal) -> Judgement:
    """Judge a response a refusal if it consists of the usual words of one."""
    ok = is_noncommittal(task.response)
    return Judgement(ok=ok, reason="It only refuses." if ok else "It says something.")


def list_entities(task: ListEntities) -> tuple[str, ...]:
    """Return names, dates, and numbers with a unit or digits of their own."""
    text = "\n\n".join(task.contexts)
    numbers = (number.text for number in find_numbers(text) if isinstance(number, Date) or not number.plain)
    return distinct([*(name.text for name in find_names(text)), *numbers])


_PHRASES = 8
_MENTIONED = "Does the text mention {}?"


def write_questions(task: WriteQuestions) -> tuple[tuple[str, bool], ...]:
    """Ask about the topics of the longest sentences."""
    noncommittal = is_noncommittal(task.response)
    about = sorted((_topic(sentence) for sentence in content_sentences(task.response)), key=len, reverse=True)
    topics = distinct([_topic(task.response), *about])
    questions = [f"What about {topic}?" for topic in topics[: task.count]]
    questions += [f"What else about {topics[0] if topics else 'it'} ({n})?" for n in range(task.count - len(questions))]
    return tuple((question, noncommittal) for question in questions)


def list_key_phrases(task: ListKeyPhrases) -> tuple[str, ...]:
    """Return the most frequent words, the earlier of equals first."""
    words = [word for context in task.contexts for word in content_words(context)]
    said = Counter(word.key for word in words)
    forms = {word.key: word.text for word in reversed(words)}
    return distinct(forms[key] for key, _ in said.most_common(_PHRASES))


def write_closed_questions(task: WriteClosedQuestions) -> tuple[str, ...]:
    """Ask whether each phrase is mentioned."""
    return distinct(_MENTIONED.format(phrase) for phrase in task.phrases)


def answer_questions(task: AnswerQuestions) -> tuple[Judgement, ...]:
    """Answer yes if the text has most of a question's words."""
    given, stock = keys(task.text), keys(_MENTIONED)
    shares = [coverage(keys(question) - stock or keys(question), given) for question in task.questions]
    return tuple(
        Judgement(ok=share >= SUPPORTED, reason=f"The text has {share:.0%} of the question's words.")
        for share in shares
    )


def _topic(text: str) -> str:
    words = {word.key: word.text for word in content_words(text)}
    return " ".join(words.values()) or " ".join(text.split())


def rate_relevance(task: RateRelevance) -> Rating:
    """Rate by the share of the question's words in the response."""
    if is_noncommittal(task.response):
        return Rating(value=0.0, reason="It is noncommittal.")
    share = coverage(keys(task.question), keys(task.response))
    return Rating(value=step_of(share / ANSWERED), reason=f"It has {share:.0%} of the question's words.")


def rate_correctness(task: RateCorrectness) -> Rating:
    """Rate by common words; a missing number of the reference limits the rating."""
    said, wanted = keys(task.response), keys(task.reference)
    overlap = 2 * len(said & wanted) / (len(said) + len(wanted)) if said or wanted else 1.0
    missing = _missing_numbers(task.reference, task.response)
    reason = f"Response and reference share {overlap:.0%} of their words"
    if missing:
        return Rating(value=min(step_of(overlap), 1 / TOP_RATING), reason=f"{reason}, but not {', '.join(missing)}.")
    return Rating(value=step_of(overlap), reason=f"{reason}.")


def _missing_numbers(wanted: str, given: str) -> list[str]:
    numbers = NumbersIn(given)
    return [number.text for number in find_numbers(wanted) if numbers.locate(number) is None]


def step_of(share: float) -> float:
    """Return the nearest step of the rating scale."""
    return round(min(share, 1.0) * TOP_RATING) / TOP_RATING


def rate_contexts(task: RateContexts) -> Rating:
    """Rate by the share of the question's words in the contexts."""
    share = coverage(keys(task.question), keys("\n".join(task.contexts)))
    return Rating(value=_middling(share), reason=f"They have {share:.0%} of the question's words.")


def rate_groundedness(task: RateGroundedness) -> Rating:
    """Rate by whether all, some or none of the response's sentences are supported."""
    sentences = tuple(statements(task.response))
    judgements = verify_claims(VerifyClaims(claims=sentences, contexts=task.contexts))
    met = sum(judgement.ok for judgement in judgements)
    value = 0.5 if 0 < met < len(sentences) else float(met > 0)
    return Rating(value=value, reason=f"{met} of {len(sentences)} sentences have their words there.")


def rate_agreement(task: RateAgreement) -> Rating:
    """Rate by the share of the second answer's words in the first; a missing number limits the rating."""
    share = coverage(keys(task.second), keys(task.first))
    missing = _missing_numbers(task.second, task.first)
    reason = f"The first has {share:.0%} of the second's words"
    if missing:
        return Rating(value=min(0.5, _middling(share)), reason=f"{reason}, but not {', '.join(missing)}.")
    return Rating(value=_middling(share), reason=f"{reason}.")


def _middling(share: float) -> float:
    return 1.0 if share >= ANSWERED else 0.5 if share >= ON_TOPIC else 0.0


A = TypeVar("A")


class LocalJudge(Judge):
    """Answers tasks by comparing words; votes do not differ.

    Raises ``JudgeError`` for a task it has no rule for.

    >>> import asyncio
    >>> from pytest_ragmetrics.judges.tasks import VerifyClaims
    >>> task = VerifyClaims(claims=("Moths fly at night.",), contexts=("Most moths fly at night.",))
    >>> asyncio.run(LocalJudge().ask(task)).answer[0].ok
    True
    """

    is_varied = False
    is_paid = False

    def __init__(self) -> None:
        self.name = "local (heuristic)"

    async def ask(self, task: Task[A], *, vote: int = 0, transport: Transport = DIRECT) -> Answered[A]:  # noqa: ARG002 - nothing is sent
        """Return the answer to a task; it costs nothing and sends nothing."""
        rule = _RULES.get(type(task))
        return Answered(answer=rule(task) if rule else task.by_rule(), usage=Usage())


_RULES: Mapping[type[Task[Any]], Callable[[Any], Any]] = {
    ListClaims: list_claims,
    VerifyClaims: verify_claims,
    WriteQuestions: write_questions,
    ListKeyPhrases: list_key_phrases,
    WriteClosedQuestions: write_closed_questions,
    AnswerQuestions: answer_questions,
    SelectSentences: select_sentences,
    Critique: critique,
    RateRelevance: rate_relevance,
    RateCorrectness: rate_correctness,
    JudgeContexts: judge_contexts,
    JudgeUsefulness: judge_usefulness,
    FindContradictions: find_contradictions,
    JudgeRefusal: judge_refusal,
    ListEntities: list_entities,
    RateContexts: rate_contexts,
    ReviewContexts: rate_contexts,
    RateGroundedness: rate_groundedness,
    ReviewGroundedness: rate_groundedness,
    RateAgreement: rate_agreement,
}
