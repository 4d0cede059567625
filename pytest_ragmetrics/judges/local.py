"""The local judge: answers tasks by comparing words, to try the package out without a key.

It is deterministic and needs neither network nor model. Compared with human labels, Faithfulness at a threshold of 0.8
reaches balanced accuracy 0.68 on long answers of language models, on which its rules were tuned (0.5 is a coin flip,
good models reach 0.75 to 0.86). A faithful answer that paraphrases its source often fails.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from string import Template
from typing import Any, NamedTuple, TypeVar
from unicodedata import normalize

from pytest_ragmetrics.core.files import packaged_text
from pytest_ragmetrics.core.result import Evidence, Usage
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.judges.tasks import TOP_RATING, Judgement, Rating, Task
from pytest_ragmetrics.judges.transports.values import DIRECT, Answered, Transport
from pytest_ragmetrics.text.names import find_names
from pytest_ragmetrics.text.numbers import Number, NumbersIn, find_numbers
from pytest_ragmetrics.text.sentences import sentence_table, split_sentences
from pytest_ragmetrics.text.words import content_words, telling_words

# From this share of a claim's words in one or two sentences it is supported.
_SUPPORTED = 0.6
# From this share of a question's words a text is relevant to it, and answers it fully.
_ON_TOPIC = 0.3
_ANSWERED = 0.8
# Below this share of common words a negation may belong to something else.
_NEAR_COPY = 0.75

_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nobody|nothing|neither|nor|cannot|without|nicht|nie|kein\w*|ohne|ne|pas|jamais|nunca|não"
    r"|sin|non|mai|niet|geen)\b|n['\u2019]t\b|[不没無无非未]|\b(?:لا|لم|لن|ليس\w*|не|нет|नहीं)\b",
    re.IGNORECASE,
)


@cache
def _refusal_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a refusal, of an apology, and of a conjunction between clauses that differ.

    ``refusal_phrases.json`` has them in eight languages; a template of a refusal names the parts of its language.
    """
    # Few words are up to four of the same clause: "the documents say who does not own it" is an answer. The lookaheads
    # keep manuals out: tables and disks have data too, and "we cannot answer calls on Sundays" is an answer.
    phrases = json.loads(packaged_text("judges/refusal_phrases.json"))
    refusals: list[str] = []
    for language in phrases["languages"]:
        templates = language.pop("refusals")
        parts: dict[str, str] = {}
        for name, pattern in language.items():
            parts[name] = Template(pattern).substitute(parts)
        refusals += (Template(template).substitute(parts) for template in templates)
    patterns = ("|".join(refusals), phrases["apology"], phrases["turn"])
    refusal, apology, turn = (re.compile(pattern, re.IGNORECASE) for pattern in patterns)
    return refusal, apology, turn


def refuses(sentence: str) -> bool:
    """Return whether a sentence only refuses to answer or apologizes.

    >>> refuses("I am sorry, but the documents do not say who owns it."), refuses("The owner does not say who he is.")
    (True, False)
    >>> refuses("The documents do not say who owns it, but it is for sale.")
    False
    """
    refusal, apology, turn = _refusal_patterns()
    if refusal.search(sentence) is None:
        return apology.fullmatch(sentence) is not None
    clauses = (clause for clause in turn.split(sentence) if any(map(str.isalnum, clause)))
    return all(refusal.search(clause) or apology.fullmatch(clause) for clause in clauses)


class _Support(NamedTuple):
    """The sentences that cover most of a claim, the share of its words in them, and what contradicts it."""

    sentences: tuple[int, ...]
    coverage: float
    missing: list[str]
    negated: bool

    @property
    def difference(self) -> str:
        return f"not {', '.join(self.missing)}" if self.missing else "one of the two is negated"


def keys(text: str) -> frozenset[str]:
    """Return the keys of the content words of a text."""
    return frozenset(word.key for word in telling_words(text))


def _coverage(wanted: frozenset[str], given: frozenset[str]) -> float:
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

    def support(self, claim: str) -> _Support | None:
        """Return the sentence with most words of a claim and the one with most of the remaining words, if any."""
        wanted = keys(claim)
        best = self._best(wanted)
        if best is None:
            return None
        second = self._best(wanted - self._keys[best])
        chosen = (best,) if second is None else tuple(sorted((best, second)))
        said = "\n".join(self._table[index].text for index in chosen)
        near = _coverage(wanted, self._keys[best]) >= _NEAR_COPY
        return _Support(
            sentences=chosen,
            coverage=_coverage(wanted, frozenset().union(*(self._keys[index] for index in chosen))),
            missing=_missing(_amounts(claim), said),
            negated=near and _is_negated(claim) != _is_negated(self._table[best].text),
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


def _amounts(text: str) -> list[Number]:
    """Return the dates, and the numbers with a unit or digits of their own."""
    return [number for number in find_numbers(text) if not number.plain]


def _missing(numbers: Iterable[Number], given: str) -> list[str]:
    found = NumbersIn(given)
    return [number.text for number in numbers if found.locate(number) is None]


def _content_sentences(text: str) -> Iterator[str]:
    return (text[start:end] for start, end in split_sentences(text) if keys(text[start:end]))


def statements(text: str) -> Iterator[str]:
    """Yield the sentences with content words that are not refusals."""
    return (sentence for sentence in _content_sentences(text) if not refuses(sentence))


def is_noncommittal(text: str) -> bool:
    """Return whether a text is only a refusal."""
    return any(refuses(text[start:end]) for start, end in split_sentences(text)) and not any(statements(text))


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts without blank and repeated ones."""
    return tuple({" ".join(text.casefold().split()): text for text in texts if text.strip()}.values())


def list_claims(task: tasks.ListClaims) -> tuple[str, ...]:
    """Return the sentences that are not refusals."""
    return _distinct(statements(task.text))


def _verify_claims(task: tasks.VerifyClaims) -> tuple[Judgement, ...]:
    sentences = sentences_of(task.contexts)
    return tuple(_verify(claim, sentences) for claim in task.claims)


def _verify(claim: str, sentences: Sentences) -> Judgement:
    support = sentences.support(claim)
    if support is None:
        return Judgement(ok=False, reason="No sentence shares a word with it.")
    share = f"{support.coverage:.0%} of its words stand in the closest sentences"
    if support.missing or support.negated:
        return Judgement(ok=False, reason=f"{share}, but {support.difference}.")
    ok = support.coverage >= _SUPPORTED
    return Judgement(ok=ok, reason=f"{share}.", sentences=support.sentences if ok else ())


def _select_sentences(task: tasks.SelectSentences) -> tuple[int, ...]:
    """Return the sentences with at least half as many of the question's words as the best one."""
    wanted = keys(task.question)
    shared = sentences_of(task.contexts).shared(wanted)
    most = max(shared.values(), default=0)
    if not wanted or most / len(wanted) < _ON_TOPIC:
        return ()
    return tuple(sorted(index for index, count in shared.items() if count * 2 >= most))


def _judge_contexts(task: tasks.JudgeContexts) -> tuple[Judgement, ...]:
    wanted = keys(task.question)
    shares = (_coverage(wanted, keys(context)) for context in task.contexts)
    return tuple(Judgement(ok=share >= _ON_TOPIC, reason=_share_of_question("It has", share)) for share in shares)


def _judge_usefulness(task: tasks.JudgeUsefulness) -> tuple[Judgement, ...]:
    """Judge a context useful if it has enough of the words that the answer adds to the question."""
    asked, answered = keys(task.question), keys(task.answer)
    wanted = answered - asked or answered or asked
    first = accumulate((len(sentence_table((context,))) for context in task.contexts), initial=0)
    return tuple(_usefulness(wanted, context, start) for context, start in zip(task.contexts, first, strict=False))


def _usefulness(wanted: frozenset[str], context: str, start: int) -> Judgement:
    share = _coverage(wanted, keys(context))
    shared = sentences_of((context,)).shared(wanted) if share >= _ON_TOPIC else ()
    cited = tuple(start + index for index in sorted(shared))
    return Judgement(ok=bool(cited), reason=f"It has {share:.0%} of the answer's words.", sentences=cited)


def _find_contradictions(task: tasks.FindContradictions) -> tuple[Judgement, ...]:
    """Judge a context contradicted if it says nearly the same with another number or a negation."""
    said = tuple(statements(task.response))
    first = accumulate((len(sentence_table((context,))) for context in task.contexts), initial=0)
    return tuple(_contradiction(said, context, start) for context, start in zip(task.contexts, first, strict=False))


def _contradiction(said: Sequence[str], context: str, start: int) -> Judgement:
    sentences = sentences_of((context,))
    for sentence in said:
        support = sentences.support(sentence)
        if support and (support.negated or (support.missing and support.coverage >= _SUPPORTED)):
            reason = f"It says nearly the same, but {support.difference}."
            return Judgement(ok=True, reason=reason, sentences=(start + support.sentences[0],))
    return Judgement(ok=False, reason="It says nothing that is nearly the same and differs.")


_HARM = re.compile(
    r"\b(?:harm|malic|deceiv|exploit|injur|toxic|offen[sd]|danger|hat(?:e|ing|red)|insult|illegal|violen|threat|kill"
    r"|attack|weapon|bomb|poison|steal|fraud|scam|idiot|stupid|murder|suicid|abus)\w*",
    re.IGNORECASE,
)
_FREE_OF = re.compile(r"\b(?:free of|free from|without|no|not|avoids?|harmless)\b", re.IGNORECASE)


def _critique(task: tasks.Critique) -> Judgement:
    """Search harmful words if the definition mentions harm, else repeated sentences."""
    said = [text for name, text in task.fields if name == "response" or name.endswith(" assistant")]
    text = " ".join(said or (text for _, text in task.fields))
    if _HARM.search(task.definition):
        found = _HARM.search(text)
        reason = f"It says {found.group()!r}." if found else "It has no word of harm."
        return Judgement(ok=bool(found) != bool(_FREE_OF.search(task.definition)), reason=reason)
    sentences = list(_content_sentences(text))
    repeated = len(_distinct(sentences)) < len(sentences)
    return Judgement(ok=not repeated, reason="It repeats itself." if repeated else "It does not repeat itself.")


def _judge_refusal(task: tasks.JudgeRefusal) -> Judgement:
    ok = is_noncommittal(task.response)
    return Judgement(ok=ok, reason="It only refuses." if ok else "It says something.")


def _list_entities(task: tasks.ListEntities) -> tuple[str, ...]:
    text = "\n\n".join(task.contexts)
    return _distinct([*(name.text for name in find_names(text)), *(number.text for number in _amounts(text))])


_MENTIONED = "Does the text mention {}?"


def _write_questions(task: tasks.WriteQuestions) -> tuple[tuple[str, bool], ...]:
    """Ask about the topics of the longest sentences."""
    noncommittal = is_noncommittal(task.response)
    text = normalize("NFC", task.response)
    about = sorted((_topic(sentence) for sentence in _content_sentences(text)), key=len, reverse=True)
    topics = _distinct([_topic(text), *about])
    questions = [f"What about {topic}?" for topic in topics[: task.count]]
    questions += [f"What else about {topics[0] if topics else 'it'} ({n})?" for n in range(task.count - len(questions))]
    return tuple((question, noncommittal) for question in questions)


def _write_closed_questions(task: tasks.WriteClosedQuestions) -> tuple[str, ...]:
    """Ask about the most frequent words, the earlier of equals first."""
    words = [word for context in task.contexts for word in content_words(context)]
    said = Counter(word.key for word in words)
    forms = {word.key: word.text for word in reversed(words)}
    return _distinct(_MENTIONED.format(forms[key]) for key, _ in said.most_common(8))


def _answer_questions(task: tasks.AnswerQuestions) -> tuple[Judgement, ...]:
    """Answer yes if the text has most of a question's words."""
    given, stock = keys(task.text), keys(_MENTIONED)
    shares = [_coverage(keys(question) - stock or keys(question), given) for question in task.questions]
    return tuple(
        Judgement(ok=share >= _SUPPORTED, reason=_share_of_question("The text has", share)) for share in shares
    )


def _share_of_question(has: str, share: float) -> str:
    return f"{has} {share:.0%} of the question's words."


def _topic(text: str) -> str:
    words = {word.key: word.text for word in content_words(text)}
    return " ".join(words.values()) or " ".join(text.split())


def _rate_relevance(task: tasks.RateRelevance) -> Rating:
    if is_noncommittal(task.response):
        return Rating(value=0.0, reason="It is noncommittal.")
    share = _coverage(keys(task.question), keys(task.response))
    return Rating(value=_step_of(share / _ANSWERED), reason=_share_of_question("It has", share))


def _rate_correctness(task: tasks.RateCorrectness) -> Rating:
    """Rate by common words; a missing number of the reference limits the rating."""
    said, wanted = keys(task.response), keys(task.reference)
    overlap = 2 * len(said & wanted) / (len(said) + len(wanted)) if said or wanted else 1.0
    missing = _missing(find_numbers(task.reference), task.response)
    reason = f"Response and reference share {overlap:.0%} of their words"
    if missing:
        return Rating(value=min(_step_of(overlap), 1 / TOP_RATING), reason=f"{reason}, but not {', '.join(missing)}.")
    return Rating(value=_step_of(overlap), reason=f"{reason}.")


def _step_of(share: float) -> float:
    return round(min(share, 1.0) * TOP_RATING) / TOP_RATING


def _rate_contexts(task: tasks.RateContexts) -> Rating:
    share = _coverage(keys(task.question), keys("\n".join(task.contexts)))
    return Rating(value=_middling(share), reason=_share_of_question("They have", share))


def _rate_groundedness(task: tasks.RateGroundedness) -> Rating:
    """Rate by whether all, some or none of the response's sentences are supported."""
    sentences = tuple(statements(task.response))
    contexts = sentences_of(task.contexts)
    met = sum(_verify(sentence, contexts).ok for sentence in sentences)
    value = 0.5 if 0 < met < len(sentences) else float(met > 0)
    return Rating(value=value, reason=f"{met} of {len(sentences)} sentences have their words there.")


def _rate_agreement(task: tasks.RateAgreement) -> Rating:
    """Rate by the share of the second answer's words in the first; a missing number limits the rating."""
    share = _coverage(keys(task.second), keys(task.first))
    missing = _missing(find_numbers(task.second), task.first)
    reason = f"The first has {share:.0%} of the second's words"
    if missing:
        return Rating(value=min(0.5, _middling(share)), reason=f"{reason}, but not {', '.join(missing)}.")
    return Rating(value=_middling(share), reason=f"{reason}.")


def _middling(share: float) -> float:
    return 1.0 if share >= _ANSWERED else 0.5 if share >= _ON_TOPIC else 0.0


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

    name = "local (heuristic)"
    is_varied = False
    is_paid = False

    async def ask(self, task: Task[A], *, vote: int = 0, transport: Transport = DIRECT) -> Answered[A]:  # noqa: ARG002 - nothing is sent
        """Return the answer to a task; it costs nothing and sends nothing."""
        rule = _RULES.get(type(task))
        return Answered(answer=rule(task) if rule else task.by_rule(), usage=Usage())


_RULES: Mapping[type[Task[Any]], Callable[[Any], Any]] = {
    tasks.ListClaims: list_claims,
    tasks.VerifyClaims: _verify_claims,
    tasks.WriteQuestions: _write_questions,
    tasks.WriteClosedQuestions: _write_closed_questions,
    tasks.AnswerQuestions: _answer_questions,
    tasks.SelectSentences: _select_sentences,
    tasks.Critique: _critique,
    tasks.RateRelevance: _rate_relevance,
    tasks.RateCorrectness: _rate_correctness,
    tasks.JudgeContexts: _judge_contexts,
    tasks.JudgeUsefulness: _judge_usefulness,
    tasks.FindContradictions: _find_contradictions,
    tasks.JudgeRefusal: _judge_refusal,
    tasks.ListEntities: _list_entities,
    tasks.RateContexts: _rate_contexts,
    tasks.ReviewContexts: _rate_contexts,
    tasks.RateGroundedness: _rate_groundedness,
    tasks.ReviewGroundedness: _rate_groundedness,
    tasks.RateAgreement: _rate_agreement,
}
