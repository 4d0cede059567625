"""Sentences that refuse to answer, in eight languages: patterns that the local judge uses."""

# ruff: noqa: RUF001 - words of other alphabets

from __future__ import annotations

import re
from collections.abc import Iterator

# Up to four words of the same clause: "the documents say who does not own it" is an answer.
_FEW = r"(?:[^\W\d]+[ '’-]){0,4}?"


def _english() -> Iterator[str]:
    sources = (
        r"(?:contexts?|passages?|texts?|documents?|documentation|sources?(?! code| file| folder)|excerpts?|articles?"
        r"|materials?|(?:provided|given|available) information|information (?:provided|given)|search results)"
    )
    about = r"(?:about|on|regarding|concerning)"
    # Tables and disks have data and details too.
    facts = rf"(?:(?:information|mention|indication)(?! loss)|(?:details?|data) {about})"
    stated = r"(?:mention|specif|provid|stat|giv|cover|found|describ|includ|discuss|address|indicat|sa(?:id|y))\w*"
    # "We cannot answer calls on Sundays", "we cannot say enough" and "we cannot tell them apart" are answers.
    uttered = r"(?:know|answer(?! (?:the )?(?:phone|calls?))|tell(?! \w+ apart)|say(?! enough| no\b)|determine)"
    verbs = r"(?:say|state|mention|specify|tell|indicate|discuss|address|explain|answer|reveal|disclose)"
    yield r"\b(?:I|we) (?:do not|don['’]t) (?:really |actually )?know\b(?! of any\b)"
    yield (
        r"\b(?:I|we) (?:cannot|can not|can['’]t|could not|couldn['’]t|am not able to|are not able to|am unable to"
        r"|are unable to|was unable to) (?:\w+ )?"
        rf"(?:{uttered}|(?:find|provide|give) {_FEW}(?:answer|{facts}))\b"
    )
    yield rf"\b(?:I|we) (?:do not|don['’]t|did not|didn['’]t) (?:have|find|see) {_FEW}{facts}\b"
    yield rf"\b(?:unable|impossible|not possible) to (?:\w+ )?{uttered}\b"
    yield rf"\b{sources} {_FEW}(?:do not|does not|don['’]t|doesn['’]t|did not|didn['’]t) (?:\w+ )?{verbs}\b"
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
    verbs = r"(?:steht|stehen|erwähn\w*|genannt|nenn\w*|angegeben|hervor|gesagt|sag(?:t|en)|aufgeführt|beschrieben)"
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
    yield rf"\b{sources}\b[^,;:.]{{0,40}}?\b{verbs}\b[^,;:.]{{0,20}}?\b(?:nichts?)\b(?! (?:mehr|nur|vor|unter)\b)"
    yield rf"\b{sources}\b[^,;:.]{{0,40}}?\bnichts?\b[^,;:.]{{0,20}}?\b{verbs}\b"
    yield (
        rf"\b{verbs}\b[^,;:.]{{0,20}}?\b{sources}\b[^,;:.]{{0,20}}?\bnichts?\b"
        rf"|\b{verbs}\b[^,;:.]{{0,20}}?\bnichts\b[^,;:.]{{0,10}}?\b(?:im|in) [^,;:.]{{0,10}}?{sources}"
        rf"|\bnichts?\b[^,;:.]{{0,20}}?\b{verbs}\b[^,;:.]{{0,20}}?\b{sources}"
    )


def _french() -> Iterator[str]:
    sources = r"(?:document|texte|passage|contexte|source|extrait|article)s?"
    verbs = r"(?:dit|disent|mentionn|indiqu|précis|évoqu|parl|spécifi|figur)\w*"
    facts = r"(?:(?:information|indication|mention|réponse|précision)s?|(?:détail|donnée)s? (?:sur|concernant|à ce))"
    yield rf"\b(?:rien|aucun\w*)\b[^,;:.]{{0,20}}?\b{sources}\b[^,;:.]{{0,15}}?\bne (?:permet|{verbs})"
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
        rf"|s['’])?{verbs} (?:pas|rien|nulle)\b"
    )
    yield rf"\bn['’](?:est|es|ont|a|était) (?:pas|nulle part) (?:été )?{verbs}[^,;:.]{{0,30}}?\b{sources}\b"


def _spanish() -> Iterator[str]:
    sources = r"(?:documento|texto|pasaje|contexto|fuente|fragmento|artículo)s?"
    verbs = r"(?:dice|dicho|mencion|indica|especific|precis|señal|habla|consta)\w*"
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
    yield rf"\b{sources}\b[^,;:.]{{0,40}}?\bno (?:se |lo |la |nos )?(?:ha sido |está )?{verbs}"
    yield (
        rf"\bno (?:se |lo |la )?(?:ha sido |está |es )?{verbs}\b[^,;:.]{{0,30}}?\ben (?:el|la|los"
        rf"|las) (?:\w+ )?{sources}\b"
    )


def _polish() -> Iterator[str]:
    sources = r"(?:dokument|tekst|fragment|kontek[sś]|źród|materia|artyku)\w*"
    verbs = r"(?:poda[jn]|wspomin|mówi|określ|wymieni|wskazuj|precyz|wynika|wspomnian)\w*"
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
    yield rf"\b{sources}\b[^,;:.]{{0,40}}?\bnie (?:jest |został[ao]? )?(?:to |tego )?{verbs}"
    yield rf"\bnie (?:jest |został[ao]? )?(?:to |tego )?{verbs}\b[^,;:.]{{0,30}}?\b{sources}"


def _arabic() -> Iterator[str]:
    sources = r"\w{0,3}(?:وثائق|وثيق|مستند|نص|سياق|مصادر|مصدر|مقاطع|مقطع|فقر|مقال)\w*"
    verbs = r"(?:[تي]?ذكر|[تي]رد|[تي]شير|[تي]حدد|[تي]قول|[تي]وضح|[تي]بين|[تي]نص)\w*"
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
    yield rf"\b(?:لا|لم) {verbs}{few}{sources}|{sources}{few}(?:لا|لم) {verbs}"
    yield rf"\bغير (?:مذكور|محدد|وارد)\w*{few}{sources}"


def _chinese() -> Iterator[str]:
    sources = "(?:资料|文档|文件|文本|文中|上下文|材料|原文|段落|文章|信息中|来源|資料|文檔|內容|内容)"
    facts = "(?:信息|资料|答案|内容|資訊|資料)"
    yield "我们?(?:并|也|还)?不(?:太)?(?:知道|清楚)(?!的)|^不(?:知道|清楚)(?!的)"
    yield "(?:无法|不能|無法)\\w{0,15}?(?:回答|确定|判断|得知|答复|確定|判斷)(?!的|\\w{0,6}电话)"
    yield f"没有(?:足够|相关|有关|任何)?的?(?:相关)?{facts}|(?:未|没有|沒有)(?:找到|提供)\\w{{0,12}}?{facts}"
    verbs = "(?:提到|提及|说明|记载|指出|写明|涉及|给出|說明|記載)"
    yield f"{sources}\\w{{0,10}}?(?:没有|并未|未|沒有|没)\\w{{0,3}}?{verbs}"


def _japanese() -> Iterator[str]:
    sources = "(?:資料|文書|文章|文脈|本文|テキスト|コンテキスト|記事|情報源|文献|情報)"
    verbs = "(?:記載|言及|記述|説明|書かれ|述べ|触れ|示され|含まれ|情報)"
    no = "(?:ありません|ございません|いません|おりません|ない|なかった|見つかりません|ませんでした)"
    yield "(?:わか|分か)り(?:ません|かねます)|(?:わから|分から)ない(?![一-龥])|存じません|知りません"
    yield (
        "(?:お答え|回答|判断|お伝え|特定)(?:することが|することは|は)?"
        "(?:でき(?:ません|ない(?![一-龥])|かねます))|答えられません"
    )
    yield f"{sources}[^。]{{0,20}}?{verbs}[^、。]{{0,6}}?{no}"
    yield "情報が(?:不足|足り(?:ない|ません)|ありません|ない(?![一-龥]))"


_REFUSAL = re.compile(
    "|".join(
        pattern
        for language in (_english, _german, _french, _spanish, _polish, _arabic, _chinese, _japanese)
        for pattern in language()
    ),
    re.IGNORECASE,
)
# Conjunctions between clauses with different statements.
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
    """Return whether a sentence only refuses to answer or apologizes.

    >>> refuses("I am sorry, but the documents do not say who owns it."), refuses("The owner does not say who he is.")
    (True, False)
    >>> refuses("The documents do not say who owns it, but it is for sale.")
    False
    """
    if _REFUSAL.search(sentence) is None:
        return _APOLOGY.fullmatch(sentence) is not None
    clauses = (clause for clause in _TURN.split(sentence) if any(map(str.isalnum, clause)))
    return all(_REFUSAL.search(clause) or _APOLOGY.fullmatch(clause) for clause in clauses)
