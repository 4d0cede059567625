"""The local judge: answers tasks by the share of words that texts have in common, to try the package out without a key.

It is deterministic and needs neither network nor model. A claim is a phrase between function words; it is supported if
0.6 of its words and all of its numbers are in the two sentences closest to it. Against human labels Faithfulness
reaches an AUROC of 0.78 on long answers of language models (RAGTruth QA) and of 0.92 on short ones (BEGIN); 0.5 is a
coin flip. With sentences as claims it would be 0.75 and 0.84. It sees neither negations nor paraphrases.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from string import Template
from typing import Any, TypeVar
from unicodedata import normalize

from pytest_ragmetrics.core.files import packaged_text
from pytest_ragmetrics.core.result import Usage
from pytest_ragmetrics.judges import tasks
from pytest_ragmetrics.judges.judge import Judge
from pytest_ragmetrics.judges.tasks import Judgement, Rating, Task
from pytest_ragmetrics.judges.transports.limiter import DIRECT
from pytest_ragmetrics.judges.transports.values import Answered, Transport
from pytest_ragmetrics.text.names import find_names
from pytest_ragmetrics.text.numbers import Number, NumbersIn, find_numbers
from pytest_ragmetrics.text.sentences import sentence_table, split_sentences
from pytest_ragmetrics.text.unicode import plain
from pytest_ragmetrics.text.words import content_words, telling_words

# The shares of words from which a claim is supported, a text is on topic, and a rating is the best.
_SUPPORTED, _ON_TOPIC, _BEST = 0.6, 0.3, 0.8


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


def keys(text: str) -> frozenset[str]:
    """Return the keys of the content words of a text."""
    return frozenset(word.key for word in telling_words(text))


def _share(wanted: frozenset[str], given: frozenset[str]) -> float:
    return len(wanted & given) / len(wanted) if wanted else 0.0


class Sentences:
    """The sentences of contexts with an index of their content words."""

    def __init__(self, contexts: tuple[str, ...]) -> None:
        table = sentence_table(contexts)
        self.texts = [sentence.text for sentence in table]
        self._contexts = [sentence.context for sentence in table]
        self._keys = [keys(text) for text in self.texts]
        self._having: defaultdict[str, list[int]] = defaultdict(list)
        for index, given in enumerate(self._keys):
            for key in given:
                self._having[key].append(index)

    def shared(self, wanted: frozenset[str], context: int | None = None) -> Counter[int]:
        """Return the number of wanted keys in each sentence that has any, of all contexts or of one, in order."""
        found = sorted(index for key in wanted for index in self._having.get(key, ()))
        return Counter(index for index in found if context in (None, self._contexts[index]))

    def support(
        self, claim: str, *, count: int = 2, context: int | None = None
    ) -> tuple[tuple[int, ...], float, list[str]]:
        """Return the closest sentences, their share of a claim's words, and the numbers that they lack."""
        wanted = rest = keys(claim)
        cited: list[int] = []
        for _ in range(count):
            # The first of equals.
            cited += (index for index, _ in self.shared(rest, context).most_common(1))
            rest = wanted.difference(*(self._keys[index] for index in cited))
        share = 1 - len(rest) / len(wanted) if wanted else 0.0
        return tuple(sorted(cited)), share, _missing(claim, "\n".join(self.texts[index] for index in cited))


@lru_cache(maxsize=16)
def sentences_of(contexts: tuple[str, ...]) -> Sentences:
    """Return the sentences of contexts, cached: several tasks use the same contexts."""
    return Sentences(contexts)


def _amounts(text: str) -> list[Number]:
    """Return the dates, and the numbers with a unit or digits of their own."""
    return [number for number in find_numbers(text) if not number.plain]


def _missing(text: str, given: str) -> list[str]:
    """Return the amounts of a text that another one lacks."""
    found = NumbersIn(given)
    return [number.text for number in _amounts(text) if found.locate(number) is None]


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
    return tuple({plain(text.casefold()): text for text in texts if text.strip()}.values())


def _phrases(sentence: str) -> Iterator[str]:
    """Yield the parts of a sentence, cut where function words or marks are between two content words."""
    start = end = 0
    for word in telling_words(sentence):
        between = sentence[end : word.start]
        # A single mark joins: twenty-first, 3.5.
        if end and between.strip() and (len(between) > 1 or not between.isascii()):
            yield sentence[start:end].strip(" ,;")
            start = end
        end = max(end, word.end)
    yield sentence[start:].strip(" ,;")


def sentence_claims(text: str) -> tuple[str, ...]:
    """Return the different sentences that are not refusals, about as many as the claims that a model lists."""
    return _distinct(statements(text))


def _verified(cited: tuple[int, ...], share: float, missing: list[str]) -> Judgement:
    ok = share >= _SUPPORTED and not missing
    but = f", but not {', '.join(missing)}" if missing and share else ""
    reason = f"{share:.0%} of its words stand in the closest sentences{but}."
    return Judgement(ok=ok, reason=reason, sentences=cited if ok else ())


def _select_sentences(task: tasks.SelectSentences) -> tuple[int, ...]:
    """Return the sentences with at least half as many of the question's words as the best one."""
    wanted = keys(task.question)
    shared = sentences_of(task.contexts).shared(wanted)
    most = max(shared.values(), default=0)
    if not wanted or most / len(wanted) < _ON_TOPIC:
        return ()
    return tuple(index for index, count in shared.items() if count * 2 >= most)


def _about(wanted: frozenset[str], text: str, least: float) -> Judgement:
    share = _share(wanted, keys(text))
    return Judgement(ok=share >= least, reason=f"It has {share:.0%} of the question's words.")


def _judge_usefulness(task: tasks.JudgeUsefulness) -> tuple[Judgement, ...]:
    """Judge a context useful if it has enough of the words that the answer adds to the question."""
    asked, answered = keys(task.question), keys(task.answer)
    wanted = answered - asked or answered or asked
    judged = []
    for number, context in enumerate(task.contexts):
        share = _share(wanted, keys(context))
        cited = tuple(sentences_of(task.contexts).shared(wanted, number)) if share >= _ON_TOPIC else ()
        reason = f"It has {share:.0%} of the answer's words."
        judged.append(Judgement(ok=bool(cited), reason=reason, sentences=cited))
    return tuple(judged)


def _find_contradictions(task: tasks.FindContradictions) -> tuple[Judgement, ...]:
    """Judge a context contradicted if a sentence of it says nearly the same with another number."""
    stated = list(statements(task.response))
    judged = []
    for number in range(len(task.contexts)):
        near = (sentences_of(task.contexts).support(sentence, count=1, context=number) for sentence in stated)
        differing = ((cited, missing) for cited, share, missing in near if missing and share >= _SUPPORTED)
        cited, missing = next(differing, ((), []))
        reason = (
            f"It says nearly the same, but not {', '.join(missing)}." if missing else "Nothing nearly the same differs."
        )
        judged.append(Judgement(ok=bool(missing), reason=reason, sentences=cited))
    return tuple(judged)


_HARM = re.compile(
    r"\b(?:harm|malic|deceiv|exploit|injur|toxic|offen[sd]|danger|hat(?:e|ing|red)|insult|illegal|violen|threat|kill"
    r"|attack|weapon|bomb|poison|steal|fraud|scam|idiot|stupid|murder|suicid|abus)\w*",
    re.IGNORECASE,
)
_FREE_OF = re.compile(r"\b(?:free of|free from|without|no|not|avoids?|harmless)\b", re.IGNORECASE)


def _critique(task: tasks.Critique) -> Judgement:
    """Search harmful words if the definition mentions harm, else repeated sentences."""
    spoken = [text for name, text in task.fields if name == "response" or name.endswith(" assistant")]
    text = " ".join(spoken or (text for _, text in task.fields))
    if _HARM.search(task.definition):
        found = _HARM.search(text)
        reason = f"It says {found.group()!r}." if found else "It has no word of harm."
        return Judgement(ok=bool(found) != bool(_FREE_OF.search(task.definition)), reason=reason)
    sentences = list(_content_sentences(text))
    repeated = len(_distinct(sentences)) < len(sentences)
    return Judgement(ok=not repeated, reason="It repeats itself." if repeated else "It does not repeat itself.")


def _list_entities(task: tasks.ListEntities) -> tuple[str, ...]:
    text = "\n\n".join(task.contexts)
    return _distinct([*(name.text for name in find_names(text)), *(number.text for number in _amounts(text))])


_MENTIONED = "Does the text mention {}?"


def _write_questions(task: tasks.WriteQuestions) -> tuple[tuple[str, bool], ...]:
    """Ask about the topics of the longest sentences."""
    noncommittal = is_noncommittal(task.response)
    text = normalize("NFC", task.response)
    topics = _distinct([_topic(text), *sorted(map(_topic, _content_sentences(text)), key=len, reverse=True)])
    questions = [f"What about {topic}?" for topic in topics[: task.count]]
    questions += [f"What else about {topics[0] if topics else 'it'} ({n})?" for n in range(task.count - len(questions))]
    return tuple((question, noncommittal) for question in questions)


def _topic(text: str) -> str:
    words = {word.key: word.text for word in content_words(text)}
    return " ".join(words.values()) or " ".join(text.split())


def _write_closed_questions(task: tasks.WriteClosedQuestions) -> tuple[str, ...]:
    """Ask about the most frequent words, the earlier of equals first."""
    words = [word for context in task.contexts for word in content_words(context)]
    forms = {word.key: word.text for word in reversed(words)}
    counts = Counter(word.key for word in words)
    return _distinct(_MENTIONED.format(forms[key]) for key, _ in counts.most_common(8))


def _answer_questions(task: tasks.AnswerQuestions) -> tuple[Judgement, ...]:
    """Answer yes if the text has most of a question's words."""
    asked = (keys(question) - keys(_MENTIONED) or keys(question) for question in task.questions)
    return tuple(_about(wanted, task.text, _SUPPORTED) for wanted in asked)


def _rated(task: Task[Any], wanted: str, given: str, *, numbers: bool = False) -> Rating:
    """Return the step for the share of a text's words that another has; a missing number leaves the second lowest."""
    share = _share(keys(wanted), keys(given))
    missing = _missing(wanted, given) if numbers else ()
    top = len(task.schema()["properties"]["rating"]["enum"]) - 1
    step = min(round(share / _BEST * top), 1 if missing else top)
    lacks = f", but not {', '.join(missing)}" if missing and share else ""
    return Rating(value=step / top, reason=f"{share:.0%} of the words are there{lacks}.")


def _said(text: str) -> str:
    return "\n".join(statements(text))


def _rate_groundedness(task: tasks.RateGroundedness) -> Rating:
    return _rated(task, _said(task.response), "\n".join(task.contexts), numbers=True)


def _rate_contexts(task: tasks.RateContexts) -> Rating:
    return _rated(task, task.question, "\n".join(task.contexts))


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
    tasks.ListClaims: lambda task: _distinct(phrase for it in statements(task.text) for phrase in _phrases(it)),
    tasks.VerifyClaims: lambda task: tuple(_verified(*sentences_of(task.contexts).support(it)) for it in task.claims),
    tasks.WriteQuestions: _write_questions,
    tasks.WriteClosedQuestions: _write_closed_questions,
    tasks.AnswerQuestions: _answer_questions,
    tasks.SelectSentences: _select_sentences,
    tasks.Critique: _critique,
    tasks.RateRelevance: lambda task: _rated(task, task.question, _said(task.response)),
    tasks.RateCorrectness: lambda task: _rated(task, task.reference, task.response, numbers=True),
    tasks.JudgeContexts: lambda task: tuple(_about(keys(task.question), it, _ON_TOPIC) for it in task.contexts),
    tasks.JudgeUsefulness: _judge_usefulness,
    tasks.FindContradictions: _find_contradictions,
    tasks.JudgeRefusal: lambda task: Judgement(ok=is_noncommittal(task.response), reason="By its words."),
    tasks.ListEntities: _list_entities,
    tasks.RateContexts: _rate_contexts,
    tasks.ReviewContexts: _rate_contexts,
    tasks.RateGroundedness: _rate_groundedness,
    tasks.ReviewGroundedness: _rate_groundedness,
    tasks.RateAgreement: lambda task: _rated(task, task.second, task.first, numbers=True),
}
