"""A judge by rule, for trying everything out without a key: it compares words and understands nothing.

It is deterministic and needs neither network nor model. Faithfulness by it, at a pass mark of 0.8, was held against
human labels: balanced accuracy 0.68 on long answers of language models, the very ones its rules were tuned on (0.5 is
a coin flip, good models reach 0.75 to 0.86). A faithful answer in other words than its source often fails.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeVar

from pytest_ragmetrics.errors import JudgeError
from pytest_ragmetrics.judges.judge import Answered, Judge, Transport
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
# Only a sentence that says nearly the same can be said to say the contrary.
_NEAR_COPY = 0.75


@dataclass(frozen=True, kw_only=True, slots=True)
class SupportFound:
    """The sentences that cover a claim best, how much of its words they cover, and what speaks against them."""

    sentences: tuple[int, ...]
    coverage: float
    missing: tuple[str, ...] = ()
    negated: bool = False


def keys(text: str) -> frozenset[str]:
    """Return what a text is about: the keys of its telling words."""
    return frozenset(word.key for word in telling_words(text))


def coverage(wanted: frozenset[str], given: frozenset[str]) -> float:
    """Return the share of the wanted keys that are given; 0.0 where nothing is wanted.

    >>> coverage(frozenset("ab"), frozenset("bc"))
    0.5
    """
    return len(wanted & given) / len(wanted) if wanted else 0.0


class Sentences:
    """The sentences of some contexts, indexed by their words."""

    def __init__(self, table: Sequence[Evidence]) -> None:
        self._table = table
        self._keys = [keys(sentence.text) for sentence in table]
        self._having: dict[str, list[int]] = {}
        for index, sentence in enumerate(self._keys):
            for key in sentence:
                self._having.setdefault(key, []).append(index)

    def shared(self, wanted: Iterable[str]) -> Counter[int]:
        """Return how many of the wanted keys each sentence has, sentences without any left out."""
        return Counter(index for key in wanted for index in self._having.get(key, ()))

    def support(self, claim: str) -> SupportFound:
        """Return the sentence that covers most of a claim, and the one that covers most of the rest."""
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
        """Return the sentence with most of the wanted keys, the first of equals."""
        shared = self.shared(wanted)
        return min(shared, key=lambda index: (-shared[index], index), default=None)


@lru_cache(maxsize=16)
def sentences_of(contexts: tuple[str, ...]) -> Sentences:
    """Return the sentences of contexts; several tasks ask for the same ones."""
    return Sentences(sentence_table(contexts))


def _is_negated(text: str) -> bool:
    return len(_NEGATION.findall(text)) % 2 == 1


# ruff: noqa: RUF001 - words of other alphabets


# A few words of the same clause: what the sources say about somebody who does not is an answer.
_FEW = r"(?:[^\W\d]+[ '’-]){0,4}?"


def _english() -> Iterator[str]:
    sources = (
        r"(?:contexts?|passages?|texts?|documents?|documentation|sources?(?! code| file| folder)|excerpts?|articles?"
        r"|materials?|(?:provided|given|available) information|information (?:provided|given)|search results)"
    )
    about = r"(?:about|on|regarding|concerning)"
    # Data and details are what tables and disks have or lack, too.
    facts = rf"(?:(?:information|mention|indication)(?! loss)|(?:details?|data) {about})"
    stated = r"(?:mention|specif|provid|stat|giv|cover|found|describ|includ|discuss|address|indicat|sa(?:id|y))\w*"
    # "We cannot answer calls on Sundays", "we cannot say enough" and "we cannot tell them apart" are answers.
    uttered = r"(?:know|answer(?! (?:the )?(?:phone|calls?))|tell(?! \w+ apart)|say(?! enough| no\b)|determine)"
    told = r"(?:say|state|mention|specify|tell|indicate|discuss|address|explain|answer|reveal|disclose)"
    yield r"\b(?:I|we) (?:do not|don['’]t) (?:really |actually )?know\b(?! of any\b)"
    yield (
        r"\b(?:I|we) (?:cannot|can not|can['’]t|could not|couldn['’]t|am not able to|are not able to|am unable to"
        r"|are unable to|was unable to) (?:\w+ )?"
        rf"(?:{uttered}|(?:find|provide|give) {_FEW}(?:answer|{facts}))\b"
    )
    yield rf"\b(?:I|we) (?:do not|don['’]t|did not|didn['’]t) (?:have|find|see) {_FEW}{facts}\b"
    yield rf"\b(?:unable|impossible|not possible) to (?:\w+ )?{uttered}\b"
    yield rf"\b{sources} {_FEW}(?:do not|does not|don['’]t|doesn['’]t|did not|didn['’]t) (?:\w+ )?{told}\b"
    yield (
        rf"\b{sources} {_FEW}(?:do not|does not|don['’]t|doesn['’]t|did not|didn['’]t) (?:\w+ )?"
        rf"(?:contain|include|provide|give|offer|have|hold) {_FEW}{facts}\b"
    )
    yield rf"\b(?:is|are|was|were)(?: not|n['’]t) (?:\w+ )?{stated} (?:\w+ )?(?:in|by) {_FEW}{sources}\b"
    yield r"\b(?:not enough|insufficient) information\b"
    yield rf"\bno (?:\w+ )?answer {_FEW}(?:in|from) {_FEW}{sources}\b"
    yield (
        r"\b(?:there (?:is|was)|(?:contain|hold|have|has|give|provide|include|offer|find"
        rf"|found)s?) no (?:\w+ )?{facts}\b"
    )
    yield (
        rf"\bno (?:\w+ )?(?:(?:information|mention|details?|data|indication) {about}"
        r"|(?:information|mention|details?|indication) (?:is|was|are|were) (?:given|available|provided|found)\b"
        r"(?! (?:to|by|offline)\b))"
    )


def _german() -> Iterator[str]:
    sources = r"(?:dokument|unterlage|text|kontext|quelle|passage|abschnitt|auszüg|artikel|material)\w*"
    told = r"(?:steht|stehen|erwähn\w*|genannt|nenn\w*|angegeben|hervor|gesagt|sag(?:t|en)|aufgeführt|beschrieben)"
    facts = r"(?:angabe|information|hinweis|auskunft|antwort|einzelheit)\w*"
    yield r"\bweiß (?:ich|es|das)\b[^,;.]{0,20}?\bnicht\b|\b(?:ich weiß|wir wissen)\b[^,;.]{0,20}?\bnicht\b"
    yield (
        r"\b(?:kann|können|konnte)\b[^,;.]{0,40}?\b(?:nicht|keine?)\b[^,;.]{0,25}?"
        r"\b(?:(?<!anrufe )beantwort\w*|sagen(?!, dass)|auskunft|antwort\w*|feststellen|angeben)\b"
    )
    yield (
        r"\bl(?:ä|ie)(?:ss|ß)t sich\b[^,;.]{0,40}?\bnicht\b[^,;.]{0,15}?\b(?:beantworten|sagen|feststellen"
        r"|ermitteln)\b"
    )
    yield (
        r"\bkeine (?:\w+ )?(?:angaben?|informationen|hinweise|auskunft|antwort) (?:zu|dazu|darüber|über|in|im"
        r"|enthalten|vor)"
    )
    yield rf"\b{sources}\b[^,;:.]{{0,50}}?\bkeine?\b[^,;:.]{{0,20}}?\b{facts}"
    yield rf"\b{sources}\b[^,;:.]{{0,40}}?\b{told}\b[^,;:.]{{0,20}}?\b(?:nichts?)\b(?! (?:mehr|nur|vor|unter)\b)"
    yield rf"\b{sources}\b[^,;:.]{{0,40}}?\bnichts?\b[^,;:.]{{0,20}}?\b{told}\b"
    yield (
        rf"\b{told}\b[^,;:.]{{0,20}}?\b{sources}\b[^,;:.]{{0,20}}?\bnichts?\b"
        rf"|\b{told}\b[^,;:.]{{0,20}}?\bnichts\b[^,;:.]{{0,10}}?\b(?:im|in) [^,;:.]{{0,10}}?{sources}"
        rf"|\bnichts?\b[^,;:.]{{0,20}}?\b{told}\b[^,;:.]{{0,20}}?\b{sources}"
    )


def _french() -> Iterator[str]:
    sources = r"(?:document|texte|passage|contexte|source|extrait|article)s?"
    told = r"(?:dit|disent|mentionn|indiqu|précis|évoqu|parl|spécifi|figur)\w*"
    facts = r"(?:(?:information|indication|mention|réponse|précision)s?|(?:détail|donnée)s? (?:sur|concernant|à ce))"
    yield rf"\b(?:rien|aucun\w*)\b[^,;:.]{{0,20}}?\b{sources}\b[^,;:.]{{0,15}}?\bne (?:permet|{told})"
    yield r"\bje (?:ne |n['’])(?:le )?sais pas\b|\bnous ne (?:le )?savons pas\b"
    yield (
        r"\b(?:je|nous) ne (?:peux|puis|pouvons|suis|sommes)\b[^,;.]{0,25}?\bpas\b[^,;.]{0,30}?"
        r"\b(?:répondre|dire|préciser|déterminer|en mesure)\b"
    )
    yield (
        r"\bimpossible de (?:répondre|dire|déterminer|savoir)\b|\bil n['’]est pas possible de (?:répondre"
        r"|dire|déterminer)\b"
    )
    yield rf"\b(?:ne|n['’]) ?\w+ (?:\w+ )?(?:aucune?|pas (?:assez |suffisamment )?d['’e]) ?{facts}\b"
    yield (
        rf"\b{sources}\b[^,;:.]{{0,40}}?\b(?:ne |n['’]en |n['’]y |n['’])(?:le |la |les |l['’]|se "
        rf"|s['’])?{told} (?:pas|rien|nulle)\b"
    )
    yield rf"\bn['’](?:est|es|ont|a|était) (?:pas|nulle part) (?:été )?{told}[^,;:.]{{0,30}}?\b{sources}\b"


def _spanish() -> Iterator[str]:
    sources = r"(?:documento|texto|pasaje|contexto|fuente|fragmento|artículo)s?"
    told = r"(?:dice|dicho|mencion|indica|especific|precis|señal|habla|consta)\w*"
    facts = r"(?:información|informaciones|respuestas?|mención|indicación)"
    data = r"(?:datos|detalles?) (?:sobre|acerca|al respecto|suficiente)"
    yield r"\bno (?:lo )?(?:sé|sabemos)\b|\b(?:desconozco|desconocemos)\b"
    yield (
        r"\bno (?:puedo|podemos|puede|es posible)\b[^,;.]{0,25}?\b(?:responde|contesta|deci|determina|sabe)r\w*\b"
        r"(?! que\b)"
    )
    yield (
        rf"\bno \w+ (?:\w+ ){{0,2}}?(?:suficiente )?"
        rf"(?:{data}|{facts} (?:sobre|acerca|al respecto|en |para|de est|suficiente))"
    )
    yield (
        rf"\b{sources}\b[^,;:.]{{0,40}}?\bno \w+ (?:\w+ ){{0,2}}?(?:{facts}|{data})\b|\bninguna? (?:mención|información"
        r"|dato)\b"
    )
    yield rf"\b{sources}\b[^,;:.]{{0,40}}?\bno (?:se |lo |la |nos )?(?:ha sido |está )?{told}"
    yield (
        rf"\bno (?:se |lo |la )?(?:ha sido |está |es )?{told}\b[^,;:.]{{0,30}}?\ben (?:el|la|los"
        rf"|las) (?:\w+ )?{sources}\b"
    )


def _polish() -> Iterator[str]:
    sources = r"(?:dokument|tekst|fragment|kontek[sś]|źród|materia|artyku)\w*"
    told = r"(?:poda[jn]|wspomin|mówi|określ|wymieni|wskazuj|precyz|wynika|wspomnian)\w*"
    facts = r"(?:(?:informacj|odpowiedzi|wzmiank)\w*|dan(?:ych|e) (?:na temat|o|dotyczących)\b)"
    yield r"\bnie wie(?:m|my)\b(?! o żadn)"
    yield (
        r"\bnie (?:mogę|możemy|potrafię|umiem|jestem w stanie|można|da się)\b[^,;.]{0,25}?"
        r"\b(?:odpowiedzieć|powiedzieć|określić|stwierdzić|ustalić)\b"
    )
    yield (
        r"\b(?:brak|nie ma|nie mam|nie zawiera\w*|nie znajd\w*|nie znalaz\w*"
        rf"|nie dostarcza\w*) (?:\w+ ){{0,3}}?{facts}"
    )
    yield rf"\b{sources}\b[^,;:.]{{0,40}}?\bnie (?:jest |został[ao]? )?(?:to |tego )?{told}"
    yield rf"\bnie (?:jest |został[ao]? )?(?:to |tego )?{told}\b[^,;:.]{{0,30}}?\b{sources}"


def _arabic() -> Iterator[str]:
    sources = r"\w{0,3}(?:وثائق|وثيق|مستند|نص|سياق|مصادر|مصدر|مقاطع|مقطع|فقر|مقال)\w*"
    told = r"(?:[تي]?ذكر|[تي]رد|[تي]شير|[تي]حدد|[تي]قول|[تي]وضح|[تي]بين|[تي]نص)\w*"
    few = r"(?:\W+\w+){0,4}?\W+"
    yield r"لا (?:أعرف|أعلم|أدري|نعرف|نعلم)|لست متأكد"
    yield (
        r"(?:لا (?:أستطيع|يمكنني|يمكن|نستطيع)|لا أقدر على|تتعذر|يتعذر)(?:\W+\w+){0,3}?\W+(?:الإجابة|الرد"
        r"|تحديد|الجواب)"
    )
    yield (
        r"(?:لا توجد|لا تتوفر|لا يوجد|لم أجد|ليس لدي|ليست لدي|ليس هناك|لا [تي]حتوي|لا [تي]تضمن"
        r"|لا [تي]وفر)(?:\W+\w+){0,4}?\W+معلومات"
    )
    yield rf"\b(?:لا|لم) {told}{few}{sources}|{sources}{few}(?:لا|لم) {told}"
    yield rf"\bغير (?:مذكور|محدد|وارد)\w*{few}{sources}"


def _chinese() -> Iterator[str]:
    sources = "(?:资料|文档|文件|文本|文中|上下文|材料|原文|段落|文章|信息中|来源|資料|文檔|內容|内容)"
    facts = "(?:信息|资料|答案|内容|資訊|資料)"
    yield "我们?(?:并|也|还)?不(?:太)?(?:知道|清楚)(?!的)|^不(?:知道|清楚)(?!的)"
    yield "(?:无法|不能|無法)\\w{0,15}?(?:回答|确定|判断|得知|答复|確定|判斷)(?!的|\\w{0,6}电话)"
    yield f"没有(?:足够|相关|有关|任何)?的?(?:相关)?{facts}|(?:未|没有|沒有)(?:找到|提供)\\w{{0,12}}?{facts}"
    told = "(?:提到|提及|说明|记载|指出|写明|涉及|给出|說明|記載)"
    yield f"{sources}\\w{{0,10}}?(?:没有|并未|未|沒有|没)\\w{{0,3}}?{told}"


def _japanese() -> Iterator[str]:
    sources = "(?:資料|文書|文章|文脈|本文|テキスト|コンテキスト|記事|情報源|文献|情報)"
    told = "(?:記載|言及|記述|説明|書かれ|述べ|触れ|示され|含まれ|情報)"
    no = "(?:ありません|ございません|いません|おりません|ない|なかった|見つかりません|ませんでした)"
    yield "(?:わか|分か)り(?:ません|かねます)|(?:わから|分から)ない(?![一-龥])|存じません|知りません"
    yield (
        "(?:お答え|回答|判断|お伝え|特定)(?:することが|することは|は)?"
        "(?:でき(?:ません|ない(?![一-龥])|かねます))|答えられません"
    )
    yield f"{sources}[^。]{{0,20}}?{told}[^、。]{{0,6}}?{no}"
    yield "情報が(?:不足|足り(?:ない|ません)|ありません|ない(?![一-龥]))"


_REFUSAL = re.compile(
    "|".join(
        pattern
        for language in (_english, _german, _french, _spanish, _polish, _arabic, _chinese, _japanese)
        for pattern in language()
    ),
    re.IGNORECASE,
)
# What joins two clauses that say different things.
_TURN = re.compile(
    r"\b(?:but|however|although|though|aber|jedoch|sondern|obwohl|mais|cependant|toutefois|bien que|pero|sino|aunque"
    r"|sin embargo|ale|lecz|jednak|chociaż)\b|\b[وف]?لكن\w*|\bبل\b|但是?|不过|而是|が、|[;；؛]",
    re.IGNORECASE,
)
_APOLOGY = re.compile(
    r"\W*(?:(?:I['’]m|I am|we['’]re|we are)? ?(?:very |so )?sorry|my apologies|I apologi[sz]e"
    r"|(?:es )?tut mir (?:sehr )?leid"
    r"|leider nicht|entschuldigung|(?:je suis |nous sommes )?(?:désolée?s?|navrée?s?)"
    r"|lo siento(?: mucho)?|lo sentimos"
    r"|przykro mi|przepraszam|niestety|عذر[اًا]+|آسف|أعتذر|(?:很|非常)?(?:抱歉|对不起|對不起)"
    r"|(?:大変)?申し訳(?:ありません|ございません)|すみません)\W*",
    re.IGNORECASE,
)


def refuses(sentence: str) -> bool:
    """Tell whether a sentence does nothing but refuse to answer, or be sorry.

    >>> refuses("I am sorry, but the documents do not say who owns it."), refuses("The owner does not say who he is.")
    (True, False)
    >>> refuses("The documents do not say who owns it, but it is for sale.")
    False
    """
    if _REFUSAL.search(sentence) is None:
        return _APOLOGY.fullmatch(sentence) is not None
    clauses = (clause for clause in _TURN.split(sentence) if any(map(str.isalnum, clause)))
    return all(_REFUSAL.search(clause) or _APOLOGY.fullmatch(clause) for clause in clauses)


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


def list_claims(task: ListClaims) -> tuple[str, ...]:
    """Take the sentences for claims, without those that refuse to make one."""
    return distinct(committed(task.text))


def verify_claims(task: VerifyClaims) -> tuple[Judgement, ...]:
    """Hold each claim against the sentences that share its words."""
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
    """Choose the sentences with at least half as many of the question's words as the best one."""
    wanted = keys(task.question)
    shared = sentences_of(task.contexts).shared(wanted)
    most = max(shared.values(), default=0)
    if not wanted or most / len(wanted) < ON_TOPIC:
        return ()
    return tuple(sorted(index for index, count in shared.items() if count * 2 >= most))


def judge_contexts(task: JudgeContexts) -> tuple[Judgement, ...]:
    """Take contexts with enough of the question's words for relevant."""
    wanted = keys(task.question)
    shares = [coverage(wanted, keys(context)) for context in task.contexts]
    return tuple(
        Judgement(ok=share >= ON_TOPIC, reason=f"It has {share:.0%} of the question's words.") for share in shares
    )


def judge_usefulness(task: JudgeUsefulness) -> Judgement:
    """Take a context for useful that has enough of the words which the answer adds to the question."""
    asked, answered = keys(task.question), keys(task.answer)
    wanted = answered - asked or answered or asked
    shared = sentences_of((task.context,)).shared(wanted)
    share = coverage(wanted, keys(task.context))
    ok = bool(shared) and share >= ON_TOPIC
    return Judgement(
        ok=ok, reason=f"It has {share:.0%} of the answer's words.", sentences=tuple(sorted(shared)) if ok else ()
    )


def find_contradictions(task: FindContradictions) -> tuple[Judgement, ...]:
    """Take a context for contradicted that says nearly the same with another number, or negated."""
    said = tuple(committed(task.response))
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
    """Look for words of harm where a definition speaks of harm, for anything repeated where it does not."""
    fields: Mapping[str, str] = dict(task.fields)
    text = fields.get("response") or " ".join(fields.values())
    if _HARM.search(task.definition):
        found = _HARM.search(text)
        reason = f"It says {found.group()!r}." if found else "It has no word of harm."
        return Judgement(ok=bool(found) != bool(_FREE_OF.search(task.definition)), reason=reason)
    sentences = list(telling_sentences(text))
    repeated = len(distinct(sentences)) < len(sentences)
    return Judgement(ok=not repeated, reason="It repeats itself." if repeated else "It does not repeat itself.")


def judge_refusal(task: JudgeRefusal) -> Judgement:
    """Take a response for a refusal that has the usual words of one, and nothing else."""
    ok = is_noncommittal(task.response)
    return Judgement(ok=ok, reason="It only refuses." if ok else "It says something.")


def list_entities(task: ListEntities) -> tuple[str, ...]:
    """Take the names, the dates, and the numbers that are said of nothing in particular left out."""
    text = "\n\n".join(task.contexts)
    numbers = (number.text for number in find_numbers(text) if isinstance(number, Date) or not number.plain)
    return distinct([*(name.text for name in find_names(text)), *numbers])


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


def rate_relevance(task: RateRelevance) -> Rating:
    """Rate by the share of the question's words in the response."""
    if is_noncommittal(task.response):
        return Rating(value=0.0, reason="It is noncommittal.")
    share = coverage(keys(task.question), keys(task.response))
    return Rating(value=step_of(share / ANSWERED), reason=f"It has {share:.0%} of the question's words.")


def rate_correctness(task: RateCorrectness) -> Rating:
    """Rate by the words in common; a number of the reference that is missing keeps it low."""
    said, wanted = keys(task.response), keys(task.reference)
    overlap = 2 * len(said & wanted) / (len(said) + len(wanted)) if said or wanted else 1.0
    numbers = NumbersIn(task.response)
    missing = [number.text for number in find_numbers(task.reference) if numbers.locate(number) is None]
    reason = f"Response and reference share {overlap:.0%} of their words"
    if missing:
        return Rating(value=min(step_of(overlap), 1 / TOP_RATING), reason=f"{reason}, but not {', '.join(missing)}.")
    return Rating(value=step_of(overlap), reason=f"{reason}.")


def step_of(share: float) -> float:
    """Return the nearest step of the rating scale."""
    return round(min(share, 1.0) * TOP_RATING) / TOP_RATING


def rate_contexts(task: RateContexts) -> Rating:
    """Rate by the share of the question's words in the contexts."""
    share = coverage(keys(task.question), keys("\n".join(task.contexts)))
    return Rating(value=_middling(share), reason=f"They have {share:.0%} of the question's words.")


def rate_groundedness(task: RateGroundedness) -> Rating:
    """Rate by whether all, some or none of the response's sentences are supported."""
    sentences = tuple(committed(task.response))
    judgements = verify_claims(VerifyClaims(claims=sentences, contexts=task.contexts))
    met = sum(judgement.ok for judgement in judgements)
    value = 0.5 if 0 < met < len(sentences) else float(met > 0)
    return Rating(value=value, reason=f"{met} of {len(sentences)} sentences have their words there.")


def rate_agreement(task: RateAgreement) -> Rating:
    """Rate by the share of the second answer's words in the first, which must have its numbers too."""
    share = coverage(keys(task.second), keys(task.first))
    numbers = NumbersIn(task.first)
    missing = [number.text for number in find_numbers(task.second) if numbers.locate(number) is None]
    reason = f"The first has {share:.0%} of the second's words"
    if missing:
        return Rating(value=min(0.5, _middling(share)), reason=f"{reason}, but not {', '.join(missing)}.")
    return Rating(value=_middling(share), reason=f"{reason}.")


def _middling(share: float) -> float:
    """Return the step of a scale of three."""
    return 1.0 if share >= ANSWERED else 0.5 if share >= ON_TOPIC else 0.0


A = TypeVar("A")


class LocalJudge(Judge):
    """Answers tasks by comparing words; the same question has the same answer, whatever the vote.

    Raises ``JudgeError`` for a task it has no rule for.

    >>> import asyncio
    >>> from pytest_ragmetrics.judges.judge import DirectTransport
    >>> from pytest_ragmetrics.judges.tasks import VerifyClaims
    >>> task = VerifyClaims(claims=("Moths fly at night.",), contexts=("Most moths fly at night.",))
    >>> asyncio.run(LocalJudge().ask(task, desk=DirectTransport())).answer[0].ok
    True
    """

    is_varied = False
    is_paid = False

    def __init__(self) -> None:
        self.name = "local (heuristic)"

    async def ask(self, task: Task[A], *, vote: int = 0, desk: Transport) -> Answered[A]:  # noqa: ARG002 - nothing is sent
        """Return the answer to a task; it costs nothing and needs no desk."""
        rule = _RULES.get(type(task))
        try:
            return Answered(answer=rule(task) if rule else task.by_rule(), usage=Usage())
        except NotImplementedError:
            msg = f"{self.name} has no rule for {task.prompt}; this metric needs a model"
            raise JudgeError(msg) from None


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
