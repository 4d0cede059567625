"""Finding quoted spans in their contexts: what is the same wording, and what never is."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from itertools import permutations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.text.quotes.alignment import Matching, Sources, align
from pytest_ragmetrics.text.unicode import is_unspaced, printable

MATCHINGS: tuple[Matching, ...] = ("editorial", "verbatim")
FERRY = "The night ferry left the harbour at ten, and nobody on board expected the storm."
ADULTS = "Adults must not take the drug. Children may take it."


def decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def sections(name: str) -> list[list[list[str]]]:
    """Return the cases of a file: of each section its rows."""
    text = (Path(__file__).parents[1] / "data" / name).read_text("utf-8")
    return [[re.split(r" ?\| ?", row) for row in part.splitlines()] for part in re.split("# .*\n", text)[1:]]


#: Span, context, and the tolerance that the reason must name.
FOUND = {
    "as written": ("nobody on board expected the storm", FERRY, "exact"),
    "from the first word": ("The night ferry left", FERRY, "exact"),
    "inner capital": ("the NIGHT ferry left the Harbour", FERRY, "case"),
    "line break": ("left the harbour\nat ten", FERRY, "layout"),
    "line break in context": ("the mill stood idle", "In June the mill\r\n   stood idle.", "layout"),
    "minus sign": ("fell to \u22127 degrees", "At night it fell to -7 degrees.", "typography"),
    "decomposed context": ("žluťoučký kůň běžel", decomposed("Ten žluťoučký kůň běžel domů."), "typography"),
    "decomposed Hangul": ("강물이 천천히 흐른다", decomposed("봄이면 강물이 천천히 흐른다."), "typography"),
    "soft hyphen": ("the harvest was poor", "That year the har\u00advest was poor.", "typography"),
    "byte order mark": ("first line of it", "\ufefffirst line of it is here.", "exact"),
    "directional marks": ("\u200fשלום לכל אדם\u200f", "אמרו שלום לכל אדם בשער.", "typography"),
    "tatweel": ("السلام على القرية", "كان الســلام على القرية.", "typography"),
    "sharp s in capitals": ("DIE STRASSE WAR LEER", "Um acht war klar: die Straße war leer.", "case"),
    "final sigma": ("ΟΔΥΣΣΕΥΣ ΓΥΡΙΣΕ ΣΠΙΤΙ", "Ο οδυσσευς γυρισε σπιτι χθες.", "case"),
    "dotted capital I": ("istanbul bugün yağmurlu", "İstanbul bugün yağmurlu.", "case"),
    "entity in the context": ("fish & chips for two", "We ordered fish &amp; chips&nbsp;for two.", "found"),
    "numeric entity": ("don&#39;t cross here", "The sign said: don't cross here.", "found"),
    "broken word, CRLF": ("a remarkable discovery", "It was a remark-\r\n  able discovery.", "layout"),
    "compound at a line end": ("a well-known discovery", "It was a well-\nknown discovery.", "layout"),
    "soft hyphen at a line end": ("a remarkable discovery", "It was a remark\u00ad\nable discovery.", "layout"),
    "reopened paragraph": ("We sailed at once.\n\n“Nobody slept.", "“We sailed at once.\n\nNobody slept.”", "layout"),
    "Chinese line break": ("河水在夜里漫过了堤岸", "老人说，河水在夜里\n漫过了堤岸。", "layout"),
    "full-width comma": ("他来了,她走了", "那天他来了，她走了。", "typography"),
    "half-width katakana": ("ﾃﾚﾋﾞを見ていた人", "あの夜テレビを見ていた人は多い。", "typography"),
    "inside Chinese": ("水在夜里漫过", "老人说，河水在夜里漫过了堤岸。", "exact"),
    "after a hyphen": ("known author of plays", "She was a well-known author of plays.", "exact"),
    "apostrophe after it": ("Elizabeth and the captain", "Elizabeth and the captain's ship left.", "exact"),
    "comma added inside": ("the storm passed,", "In the morning the storm passed without harm.", "punctuation"),
    "stop for a comma": ("the storm passed.", "When the storm passed, we left.", "punctuation"),
    "full-width stop": ("暴风雨过去了。", "暴风雨过去了，我们就走。", "punctuation"),
    "leading ellipsis": ("\u2026nobody on board expected", FERRY, "ellipsis"),
    "trailing ellipsis": ("The night ferry left\u2026", FERRY, "ellipsis"),
    "ellipsis": ("The night ferry left \u2026 nobody on board expected", FERRY, "ellipsis"),
    "spaced dots": ("The night ferry left . . . nobody on board", FERRY, "ellipsis"),
    "glyph in brackets": ("The night ferry left [\u2026] nobody on board", FERRY, "ellipsis"),
    "dots in parentheses": ("The night ferry left (...) nobody on board", FERRY, "ellipsis"),
    "Chinese ellipsis": ("河水在昨天夜里……漫过了堤岸", "河水在昨天夜里悄悄地漫过了堤岸。", "ellipsis"),
    "ellipsis with nothing left out": ("left the harbour \u2026 at ten", FERRY, "ellipsis"),
    "short piece beside a long one": ("nobody on board \u2026 storm", FERRY, "ellipsis"),
    "letter in brackets": ("[n]obody on board expected", "Nobody on board expected it.", "bracket"),
    "whole word recapitalised": ("[A] lamp burned all night", "There a lamp burned all night.", "bracket"),
    "sic": ("they was [sic] all asleep", "He wrote that they was all asleep.", "bracket"),
    "removed comma": ("at ten[] and nobody on board", FERRY, "bracket"),
    "note mark": ("left the harbour[3] at ten", FERRY, "bracket"),
    "explained": ("they [the keepers] left at dawn", "In the end they left at dawn.", "bracket"),
    "pronoun replaced": ("[the harbour master] was asleep by then", "It says he was asleep by then.", "bracket"),
    "several words replaced": ("sold [the yard] for little", "They sold the old family yard for little.", "bracket"),
    "two brackets": ("[he] sold [it] for little money", "They sold the yard for little money.", "bracket"),
    "bracket and ellipsis": ("[N]obody in Hull … saw it", "Nobody in Hull saw it.", "ellipsis and bracket"),
    "negation farther off": (
        "We saw that he … left the town",
        "We saw that he was not there. We saw that he, as always, left the town.",
        "ellipsis",
    ),
    "negation before": ("[The men] sat … in the town", "It did not rain. They sat long in the town.", "bracket"),
    "square brackets of the source": ("the text [sic] was kept", "And the text [sic] was kept.", "exact"),
    "raised note mark of the source": ("ferry sank. Nobody saw it", "The ferry³ sank.¹² Nobody⁴ saw it.", "bracket"),
    "first note mark behind a counted word": ("of 40 people on board", "All of 40 people\u00b9 on board.", "bracket"),
    "note mark in a tag": (
        "sank at noon. I",
        'It sank<sup>2</sup> at noon.<sup><a href="#3">[3]</a></sup> I.',
        "bracket",
    ),
    "note mark of the source": ("founded in 1990 by monks", "It was founded in 1990[3] by monks.", "bracket"),
    "note mark that is a link": ("founded by monks", "It was founded[3](https://x.org/#n3) by monks.", "bracket"),
    "note mark in other digits": ("أسسها الرهبان هنا اليوم", "لقد أسسها الرهبان[٣] هنا[٤] اليوم.", "bracket"),
    "capitals of the dotless i": ("SINIR ÇOK UZUNDU", "Orada sınır çok uzundu.", "case"),
    "capitals of the dotted i": ("SIR ALEXANDER DIED", "There Sir Alexander died.", "case"),
    "capital dotless i": ("Iğdır çok uzak", "Oraya ığdır çok uzak.", "case"),
    "capitals without accents": ("Η ΑΘΗΝΑ ΕΙΝΑΙ ΠΟΛΗ", "Ξέρω, η Αθήνα είναι πόλη.", "case"),
    "capitals of the source without accents": ("το προϊόν είναι εδώ", "ΤΟ ΠΡΟΪΟΝ ΕΙΝΑΙ ΕΔΩ ΤΩΡΑ", "case"),
    "Arabic vowel signs": ("كتب الولد رسالة", "يقال: كَتَبَ الوَلَدُ رِسَالَةً طويلة.", "typography"),
    "Arabic vowel signs of the span": ("كَتَبَ الوَلَدُ رِسَالَةً", "يقال: كتب الولد رسالة طويلة.", "typography"),
    "Hebrew points": ("שָׁלוֹם לְכֻלָּם", "אמרו שלום לכלם בשער.", "typography"),
    "Russian letter without dots": ("все еще зеленая елка", "Там всё ещё зелёная ёлка.", "typography"),
    "Russian letter with dots": ("ВСЁ ЕЩЁ зелёная", "Там все еще зеленая елка.", "case and typography"),
    "mark of a source": ("left the harbour【4:0†source】 at ten", FERRY, "bracket"),
    "mark of a source at the end": ("left the harbour at ten【4:0†report.pdf】.", FERRY, "bracket"),
    "number in parentheses at the end": ("left the harbour at ten (3).", FERRY, "bracket"),
    "raised note mark of the span": ("the ferry\u00b9 sank at noon\u00b2", "So the ferry sank at noon.", "bracket"),
    "ornament": ("\U0001f525 the old mill \u2728 is open", "Today the old mill is open.", "punctuation"),
    "currency in front": ("$500 was paid", "In all, $500 was paid.", "exact"),
    "name with signs": ("written in C++", "It was written in C++.", "exact"),
    "link in the source": ("the report shows growth", "Now [the report](https://x.org/r_1) shows growth.", "layout"),
    "tags in the source": ("the old report is here", 'The <b>old</b> <a href="/r">report</a> is<br>here.', "layout"),
    "JSON escapes": ("the mill\\nstood \\u201cidle\\u201d", "The mill stood \u201cidle\u201d.", "layout"),
    "negation of the source": ("nobody on board expected the storm", FERRY, "exact"),
}

#: Span and context; each differs in a word, a number, a negation, a boundary or the order.
NOT_FOUND = {
    "note mark for a stop": ("must not take the drug[1] children may take it", ADULTS),
    "bracket for a stop": ("must not take the drug [and] children may take it", ADULTS),
    "note mark for a stop, Hindi": ("नहीं लेनी चाहिए[1] बच्चे इसे दूध", "बड़ों को दवा नहीं लेनी चाहिए। बच्चे इसे दूध के साथ"),
    "word changed": ("The night ferry left the island", FERRY),
    "word added": ("nobody on board ever expected the storm", FERRY),
    "order changed": ("left the night ferry", FERRY),
    "negation added": ("was not expected by them", "It was expected by them."),
    "negation dropped": ("they did agree to it", "We know they did not agree to it."),
    "negation left out": ("the board did \u2026 approve the merger", "The board did not approve the merger."),
    "negation left out, Chinese": ("他们在会上……同意了这个计划", "他们在会上不同意了这个计划。"),
    "second half of a contraction": ("t do it tomorrow", "I can't do it tomorrow."),
    "contraction cut": ("I think he can", "I think he can't do it."),
    "prefix cut": ("toxic waste was found there", "Only non-toxic waste was found there."),
    "number cut at the point": ("5 million people came", "Some 3.5 million people came."),
    "number cut at the comma": ("000 people came", "Some 12,000 people came."),
    "number cut at a group": ("500 boats were lost", "In all 2\u202f500 boats were lost."),
    "decimal point dropped": ("5 per cent of it", "It was .5 per cent of it."),
    "sign dropped": ("7 degrees at night", "It was \u22127 degrees at night."),
    "sign added": ("was -7 degrees at night", "It was 7 degrees at night."),
    **{
        f"{bracket} in the source": ("the crew was happy", f"There the crew was {bracket} happy.")
        for bracket in ("[not]", "[a]", "[Boat 7]", "[un]")
    },
    "attached in the source": ("they did leave the island", "In May they did[not] leave the island."),
    "power cut off": ("there were about 10", "We think there were about 10\u00b3 of them."),
    "per cent at the end": ("prices rose by 5%", "We saw prices rose by 5 points."),
    "space between words moved": ("he went ina boat to sea", "Then he went in a boat to sea."),
    "words joined": ("she came toa town by train", "Then she came to a town by train."),
    "product of a number dropped": ("so y = 2z for all of them", "It says so y = 2*z for all of them."),
    "product of letters dropped": ("so y = ab for all of them", "It says so y = a*b for all of them."),
    "currency changed": ("\u20ac500 was paid", "In all $500 was paid."),
    "per cent cut off": ("we saw prices rise by 5", "Here we saw prices rise by 5 % at once."),
    "currency cut off": ("500 was paid that day", "In all $500 was paid that day."),
    "currency cut off at the end": ("they had to pay 500", "There they had to pay 500 €."),
    "bound cut off": ("5 of them were left", "At most <5 of them were left."),
    "signs of a name cut off": ("it is written in C", "We know it is written in C++."),
    "other signs of a name": ("it is written in C#", "We know it is written in C++."),
    "grade cut off": ("she was given an A", "In May she was given an A+ for it."),
    "number in parentheses inside": ("they lost (5) boats", "In all they lost boats."),
    "mark of a source for words": ("The night ferry left【4:0†source】 at ten, and nobody", FERRY),
    "Han number cut": ("十人在船上", "那天有三十人在船上。"),
    "sub-word at the start": ("row fast in May", "Reeds grow fast in May."),
    "sub-word at the end": ("Reeds grow fast", "Reeds grow faster in May."),
    "letters without the space": ("the night fer ry", FERRY),
    "space for a hyphen": ("a battle field at dawn", "We crossed a battle-field at dawn."),
    "half of a broken word": ("able discovery was made", "A remark-\nable discovery was made."),
    "sub-word with a soft hyphen": ("able discovery was made", "A remark\u00adable discovery was made."),
    "mark cut off": ("le café e", decomposed("le café é là")),
    "other Russian letter": ("в мои день рождения", "Это было в мой день рождения."),
    "accent of a small letter": ("εκεί που είναι τώρα", "Λένε: εκεί πού είναι τώρα;"),
    "other Arabic letter": ("امل الولد كبير", "قالوا: أمل الولد كبير."),
    "letter with dots, German": ("fur alle schon da", "Das war für alle schön da."),
    "Korean ending": ("강물이 밤새 불어", "어제 강물이 밤새 불어났다."),
    "false piece after an ellipsis": ("The night ferry left \u2026 everybody on board expected", FERRY),
    "ellipsis of tiny pieces": ("night \u2026 ten \u2026 storm", FERRY),
    "short piece far away": ("nobody saw the ferry … sank", f"Nobody saw the ferry. {'It rained. ' * 60}A raft sank."),
    "pieces that overlap": ("the night ferry left the \u2026 ferry left the harbour", FERRY),
    "sub-word beside an ellipsis": ("ight ferry left \u2026 nobody on board", FERRY),
    "ellipsis inside a word": ("the night fer\u2026ry left the harbour", FERRY),
    "negation in brackets": ("nobody is [not] to blame here", "We think nobody is to blame here."),
    "German negation in brackets": ("das Tor war [niemals] offen", "Man sagt, das Tor war offen."),
    "Chinese negation in brackets": ("他们[不曾]在夜里出海", "他们在夜里出海。"),
    "number in brackets": ("lost [500] boats that night", "They lost boats that night."),
    "number for a number": ("lost [twelve] boats that night", "They lost nine boats that night."),
    "bracket over a number": ("lost [some] boats that night", "They lost nine boats that night."),
    "bracket over a negation": ("they did [indeed] sign the paper", "They did not sign the paper."),
    "bracket over too much": ("the keeper [later] left", "The keeper fell ill, was replaced by a cousin, then left."),
    "letter in brackets changes the word": ("the [m]ight ferry left", FERRY),
    "negating letters in brackets": ("an [un]happy crew came home", "It was an happy crew came home."),
    "square dropped": ("an area of forty meters by then", "It had an area of forty meters\u00b2 by then."),
    "square of a number dropped": ("side of 12 feet at least", "It had a side of 12<sup>2</sup> feet\u00b2 at least."),
    "raised digit dropped": ("ten to the 12 of them", "There were ten to the 12\u2079 of them."),
    "power of a function dropped": ("the sin plus the cos is one", "Here the sin\u00b2 plus the cos\u00b2 is one."),
    "power of a bracket dropped": ("it is (a plus b) here", "We think it is (a plus b)\u00b2 here."),
    "inverse dropped": ("the function noon is here", "We say the function noon\u207b\u00b9 is here."),
    "raised number dropped that begins a word": ("the ferry sank there", "Then the ferry\u00b2sank there."),
    "source in the span": (f"{FERRY} It sank.", FERRY),
}


#: What is left out between "The drug is" and "safe for small children", by language: each turns the statement round.
DRUG = {
    "The drug is|safe for small children": (
        "not|not yet|no longer|not at all|by no means|hardly ever|far from|never|neither|without a doctor|allegedly"
        "|in no way|, it is a myth,|anything but|unable to be|, unless diluted,|, except in water,|isn't|can\u2019t be"
        "|denied to be|only rarely|\u274c|\u2260|, in theory,"
    ),
    "Das Mittel ist|sicher für kleine Kinder": (
        "nicht|noch nicht|nicht mehr|keineswegs|kaum|angeblich|, ohne Arzt,|alles andere als|dem Namen nach"
    ),
    "Le remède est|sûr pour les petits enfants": (
        "loin d'être|pas|jamais|prétendument|, sans ordonnance,|, sauf exception,"
    ),
    "El remedio es|seguro para niños pequeños": "no|nunca|apenas|supuestamente|, sin receta,|lejos de ser",
    "Il rimedio è|sicuro per i bambini piccoli": "non|mai|quasi|, senza ricetta,|tutt'altro che|lontano dall'essere",
    "O remédio é|seguro para crianças pequenas": "não|nunca|quase|, sem receita,|longe de ser",
    "Het middel is|veilig voor kleine kinderen": "niet|nooit|nauwelijks|allesbehalve|, zonder recept,",
    "Medlet är alltid|säkert för små barn": "inte|aldrig|knappast|långt ifrån|, utan recept,",
    "Tämä lääke on|turvallinen pienille lapsille": "ei|tuskin|tutkimatta|, ilman reseptiä,",
    "Ez a szer|biztonságos a gyermekek számára": "nem|sem|aligha|állítólag|, vény nélkül,",
    "Ten lek jest|bezpieczny dla małych dzieci": "nie|nigdy|rzekomo|bynajmniej|, bez recepty,",
    "Ten lék podle|bezpečný pro malé děti": "není|nebyl|sotva|údajně|, bez předpisu,",
    "Bu ilaç küçük|çocuklar için çok güvenli": "değil|olmayan|denenmemiş|bilinmeyen|yapılmadan|reçetesiz|gitmiyor",
    "Obat ini selalu|aman untuk anak kecil": "tidak|bukan|belum|jangan|, tanpa resep,",
    "Thuốc này luôn|an toàn cho trẻ nhỏ": "không|chưa|chẳng|đừng",
    "Это лекарство всегда|безопасно для маленьких детей": "не|едва ли|якобы|отнюдь не|, без рецепта,",
    "Ці ліки завжди|безпечні для малих дітей": "не|ледве|нібито|, без рецепта,",
    "Το φάρμακο πάντα|είναι ασφαλές για παιδιά": "δεν|ΔΕΝ|μη|ούτε|σχεδόν|, χωρίς συνταγή,",
    "هذا الدواء دائما|آمن للأطفال الصغار": "لا|لَيْسَ|غير|لم يكن|، دون وصفة،",
    "התרופה הזאת תמיד|בטוחה לילדים קטנים": "לא|לֹא|אינה|כמעט|, בלי מרשם,",
    "این دارو همیشه|برای کودکان ایمن است": "نه|هرگز|نمی\u200cتواند|بدون نسخه",
    "यह दवा हमेशा|छोटे बच्चों के लिए सुरक्षित है": "नहीं|न|बिना पर्ची",
    "এই ওষুধ সব|ছোট শিশুদের জন্য নিরাপদ": "না|নয়|করেনি",
    "இந்த மருந்து எல்லா|சிறு குழந்தைகளுக்கு பாதுகாப்பானது": "இல்லை|செய்யவில்லை|இல்லாமல்",
    "ยานี้เป็นยาที่|ปลอดภัยสำหรับเด็กเล็กทุกคน": "ไม่|มิได้|ห้าม",
    "这种药对五岁以下的|儿童来说是很安全的": "不|没有|绝不|勿给|除了病人以外的",
    "この薬は五歳未満の|子供にとって安全な薬である": "使わない|使いません|使えず|決して|以外の",
    "이 약은 어린|아이들에게 매우 안전하다": "않은|안|못|없는",
}
#: What stands before, in and behind a cut: negations, verbs that deny and hearsay; places, times, appositions,
#: sentences of their own, and words that look like negations; words that count in a gap of any length.
DROPPED, HONEST, REVERSED = sections("ellipses.txt")
LOST = DRUG | {f"{first}|{last}": words for first, words, last in REVERSED}
# Words that count only next to what is kept.
BESIDE = [
    "The drug is |said to be| safe for small children.",
    "The drug |may have| helped the small children.",
    "The drug |might one day| help the small children.",
    "The firms |claim to have| built a safe bridge.",
    "It was |a minority of| the council that agreed to it.",
    "It pays |up to| 40 per cent of the cost of the mill.",
    "It pays |half of| the cost of the old mill.",
    "In May |critics of| the mayor agreed to the sale.",
    "In May |the former| mayor agreed to the sale.",
    "In May |almost| all of the mills were sold.",
    "Der Rat hat |scheinbar| dem Verkauf zugestimmt.",
    "Im Mai hat |eine Minderheit der| Räte dem Verkauf zugestimmt.",
    "En mai |l'ancien| maire a signé la vente.",
    "En mayo |la mitad de| los vecinos firmó la venta.",
    "W maju |prawdopodobnie| sprzedano stary młyn.",
    "В мае |бывший| мэр подписал продажу мельницы.",
]
# A word of one language that means something else in another, first where it negates.
SHARED = [
    ("El consejo |no| aprobó el presupuesto de la ciudad", "O conselho |no ano| aprovou o orçamento da cidade"),
    ("La mujer salió |sin| abrigo en el invierno", "Kvinnan tog |sin| kappa på vintern och gick"),
    ("Il ponte è |mai| stato chiuso per la neve", "Le pont est |en mai| fermé à cause des crues"),
    ("Orașul |nu| a vândut moara și podul", "Staden har |nu| sålt den gamla kvarnen"),
    ("Byen har |kun| solgt den gamle mølle og en bro", "Kaupunki myi |kun| satoi vanhan myllyn ja sillan"),
    ("Die Brücke ist |fast| sicher und das Tor offen", "The boats are |fast| and safe in the harbour"),
    ("Yeni ilaç çocuklar için |pek| güvenli bir çözüm", "The walk up the |pek| and the ridge is open"),
]


@pytest.mark.parametrize("row", BESIDE)
def test_a_hedge_is_missed_beside_what_is_kept(row: str) -> None:
    """What weakens the words behind it may not be left out; within a longer phrase it bears on others."""
    first, words, last = row.split("|")
    verdict = align(f"{first}\u2026{last}", ["It rained.", f"{first}{words}{last}"])
    assert (verdict.ok, "(contexts[1]), which turns the statement round" in str(verdict.reason)) == (False, True)
    far = f"{first}after a nopo rito {words} nopo rito nopo rito{last}"
    assert align(f"{first}\u2026{last}", [far]).ok


@pytest.mark.parametrize(("negating", "harmless"), SHARED)
def test_a_word_of_two_languages_counts_where_the_text_around_is_in_the_one(negating: str, harmless: str) -> None:
    for row, expected in ((negating, False), (harmless, True)):
        first, words, last = row.split("|")
        assert align(f"{first}\u2026{last}", [f"{first}{words}{last}."]).ok is expected, row


@pytest.mark.parametrize(("rows", "is_honest"), [(DROPPED, False), (HONEST, True)], ids=["dropped", "honest"])
def test_what_is_cut_out_of_a_sentence_in_forty_languages(rows: list[list[str]], is_honest: bool) -> None:
    wrong = []
    for first, words, last in rows:
        space = "" if is_unspaced(last[0]) else " "
        context = f"{first}{'' if words[0] in ',،' else space}{words}{space}{last}"
        if align(f"{first} \u2026 {last}", [context]).ok is not is_honest:
            wrong.append(context)
    assert wrong == []


# First a sentence that says something of its own, then one that denies its neighbours.
SENTENCES = [
    ("The dam is safe for us.|The town paid for it.", "Nobody knows who built it.", "That is not true."),
    ("The dam is safe for us.|The town paid for it.", "No boat came for a year.", "This was a lie."),
    ("The dam is safe for us.|The town paid for it.", "It never rained in May.", "Nothing of this happened."),
    ("The dam was built in 1890.|The town paid for it.", "It was not painted.", "He later denied it."),
    ("The dam was built in 1890.|The town paid for it.", "There is no other.", "It was a joke."),
    ("Dammen är säker vid ån.|Rådet ska betala allt.", "Ingen bor där sedan maj.", "Det var en lögn."),
    ("El muelle es seguro.|El consejo lo pagará todo.", "No se ve el mar.", "Es falso."),
    ("The dam is safe for us.|The town paid for it.", "Nobody sat in the sun.", "This is untrue."),
    ("Der Damm ist sicher.|Der Rat will zahlen.", "Niemand hatte ihn erwartet.", "Das stimmt nicht."),
    ("Le pont fut bâti en 1890.|Il porte deux voies.", "Il n'est jamais repeint.", "C'était un mensonge."),
    ("La presa es segura.|El consejo lo pagará todo.", "Nadie vive cerca.", "Eso no es cierto."),
    ("A barragem é segura.|O conselho pagará tudo.", "Ninguém mora perto.", "Isso não é verdade."),
    ("La diga è sicura per noi.|Il consiglio pagherà.", "Nessuno vive vicino.", "Non è vero."),
    ("De dam is veilig voor ons.|De raad betaalt alles.", "Niemand woont er.", "Dat is niet waar."),
    ("Dammen är säker för oss.|Rådet ska betala allt.", "Ingen bor där.", "Det är inte sant."),
    ("Tama jest bezpieczna.|Rada za wszystko zapłaci.", "Nikt tam nie mieszka.", "To nieprawda."),
    ("Плотина безопасна для нас.|Совет заплатит за всё.", "Там никто не живёт.", "Это неправда."),
    ("Baraj halk için güvenli.|Meclis her şeyi ödeyecek.", "Orada kimse oturmuyor.", "Bu doğru değil."),
    ("السد آمن للمدينة كلها.|المجلس سيدفع كل شيء.", "لا يسكن هناك أحد.", "هذا غير صحيح."),
    ("大坝对全城是安全的。|议会同意支付全部费用。", "那里没有人居住。", "这不是真的。"),
    ("ダムは町にとって安全です。|議会はすべてを払う。", "船は来ませんでした。", "それは嘘です。"),
]


@pytest.mark.parametrize(("around", "own", "denying"), SENTENCES)
def test_a_whole_sentence_counts_if_it_denies_its_neighbour(around: str, own: str, denying: str) -> None:
    first, last = around.split("|")
    space = "" if first[-1] == "。" else " "
    for left_out, expected in ((own, True), (denying, False), (space.join((own, denying)), False)):
        verdict = align(f"{first} \u2026 {last}", [space.join((first, left_out, last))])
        assert verdict.ok is expected, verdict.reason


@pytest.mark.parametrize("around", LOST)
def test_negation_is_never_lost_in_a_gap(around: str) -> None:
    first, last = around.split("|")
    space = "" if len(first.split()) == 1 else " "
    filler = space.join(["在那时候" if not space else "nopo rito"] * 30)
    for words in LOST[around].split("|"):
        for mark, left_out in (("\u2026", words), (" [...] ", f"{filler},{space}{words}, {filler}")):
            verdict = align(f"{first}{mark}{last}", [f"{first}{space}{left_out}{space}{last}."])
            assert (verdict.ok, "leaves out" in str(verdict.reason)) == (False, True), (words, verdict.reason)
    assert align(f"{first} \u2026 {last}", [f"{first}{space}{filler}{space}{last}."]).ok


#: A quotation and its contexts; what it leaves out and turns round stands in ⟦⟧, without which it is found.
LEFT_OUT = [
    "They stayed in the town …|They stayed in the town all winter, but did not fish.",
    "… stayed in the town.|They did not fish, and so stayed in the town.",
    "The dam was [...] said that it is safe|The dam was new. It is ⟦not⟧ said that it is safe.",
    "The dam is safe … The town agreed|The dam is safe. That is ⟦not⟧ true. The town agreed to it.",
    "The dam is safe … the town|The dam is safe. It rained. ⟦Hardly⟧ anybody in the town came.",
    "The dam is … safe for now|The dam is, says Prof. Ames, ⟦not⟧ what Dr. Bell calls safe for now.",
    "they [all] left the town|In May they ⟦hardly⟧ left the town.",
    "The dam is safe … The town agreed|The dam is safe. ⟦Nobody⟧ here agrees. The town agreed to it.",
    "The dam is safe … The town paid|The dam is safe. Later all came to the mill. ⟦Few⟧ people agree. The town paid.",
    "The dam is … safe now|The dam is, says Prof. Ames of the town by the sea, ⟦not⟧ what Dr. Bell calls safe now.",
    "the dam is … safe for us|Here the dam is _⟦not⟧_ at all safe for us.",
    "the dam is … safe for us|Here the dam is **⟦ＮＯＴ⟧** safe for us.",
    "the dam is … safe for us|Here the dam is ⟦nev-\ner⟧ safe for us.",
    "der Damm ist … für uns sicher|Aber der Damm ist ⟦n i c h t⟧ für uns sicher.",
    "the dam is … safe for us|Here the dam is ⟦no\u00adt⟧ safe for us.",
    "the dam is … safe for us|Here the dam is \u200b ⟦not⟧ safe for us.",
    "The dam is far … safe|The dam is ⟦far from⟧ safe, we think.",
    "in Paris il n'a … vu le fleuve|Et in Paris il n'a ⟦pas⟧ vu le fleuve.",
    "we saw that he … left the town|We saw that he ⟦never⟧ left the town. We saw that he, too, was not there.",
    # The ends of a quotation: what the ellipsis or the bracket there stands for.
    "… saw the captain leave the ship|⟦Nobody⟧ saw the captain leave the ship.",
    "[…] hat den Dieb am Bahnhof gesehen|Es regnete. ⟦Kaum⟧ jemand hat den Dieb am Bahnhof gesehen.",
    "Köprü kamyonlar için güvenli …|Köprü kamyonlar için güvenli ⟦değil⟧.",
    "… the works will close|⟦Contrary to⟧ what was said, the works will close.",
    "[The crew] saw the captain leave the ship|⟦Nobody⟧ saw the captain leave the ship.",
    # Letters of another form, composed or not; other apostrophes.
    "They did … approve the loan|They did ⟦\U0001d40d\U0001d40e\U0001d413⟧ approve the loan.",
    "The bridge … open to lorries|The bridge ⟦isn\u2032t⟧ open to lorries.",
    "다리는 모든 트럭에게 … 길이라고 했다|" + decomposed("다리는 모든 트럭에게 안전하지 ⟦않은⟧ 길이라고 했다."),
    # Verbs that reverse what follows.
    "The council … the bridge over the river|The council ⟦opposed⟧ the bridge over the river.",
    "Le conseil … la construction du pont|Le conseil s’est ⟦opposé⟧ à la construction du pont.",
    "Valtuusto … uuden sillan rakentamista|Valtuusto ⟦vastusti⟧ uuden sillan rakentamista.",
    "委员会……新桥的建设计划|委员会⟦反对⟧新桥的建设计划",
    # In the chunk beside.
    "… safe for children under five|The drug is ⟦not⟧|safe for children under five.",
    "[…] sicher für Kinder unter fünf|Es ist ⟦keineswegs⟧|ganz sicher für Kinder unter fünf.",
    "… безопасно для детей дома|Это средство ⟦не⟧|безопасно для детей дома.",
    "… Kindern unter fünf Jahren zu geben|Es ist ⟦nie⟧|Kindern unter fünf Jahren zu geben.",
    "safe for children under five …|It is safe for children under five|⟦only with⟧ a doctor.",
    # In chunks that share 20 characters, wherever they are.
    "… safe for children under five|safe for children under five.|So.|⟦Not⟧ safe for children under",
    "… safe for children under five|The drug is ⟦not⟧ safe for|children under five.",
    # In another sentence, clause, paragraph or text.
    "… safe for children under five|The drug is not good.|safe for children under five.",
    "… safe for children under five|It did not rain, and it is|safe for children under five.",
    "… safe for children under five|The drug is not\n\n|safe for children under five.",
    "… safe for children under five|The drug is not|- safe for children under five.",
    "… safe for children under five|Not for sale|Toys are safe for children under five.",
    "… safe for children under five|The drug is not|So.|safe for children under five.",
    "… safe for children under five|Not safe for kids|Safe for children under five.",
]


@pytest.mark.parametrize("row", LEFT_OUT)
def test_what_an_edit_leaves_out_is_named(row: str) -> None:
    span, *marked = row.split("|")
    verdict = align(span, [re.sub("[⟦⟧]", "", text) for text in marked])
    lost = {at: shown for at, text in enumerate(marked) for shown in re.findall("(?s)⟦(.*)⟧", text)}
    assert verdict.ok is not bool(lost), verdict.reason
    for at, shown in lost.items():
        assert f'leaves out "{printable(shown)}" (contexts[{at}])' in str(verdict.reason)


@pytest.mark.parametrize("case", FOUND)
def test_wording_of_the_source_is_found(case: str) -> None:
    span, context, tolerance = FOUND[case]
    verdict = align(span, ["Something else entirely.", context])
    assert verdict.ok, verdict.nearest
    assert tolerance in str(verdict.reason)
    assert (verdict.text, verdict.nearest) == (span, None)
    assert {piece.context for piece in verdict.evidence} == {1}
    assert all(context[piece.start : piece.end] == piece.text for piece in verdict.evidence)
    folding = not any(word in tolerance for word in ("punctuation", "ellipsis", "bracket"))
    assert align(span, [context], matching="verbatim").ok is folding


#: Two sentences without their stops, the stop, and two pieces of them that say the opposite when joined.
JOINED = {
    "en": ("Adults must not take the drug", "Children may take it with milk", ". "),
    "de": ("Erwachsene dürfen das Mittel nicht nehmen", "Kinder dürfen es mit Milch nehmen", "! "),
    "fr": ("Les adultes ne doivent pas prendre le remède", "Les enfants peuvent le prendre", " ! "),
    "el": ("Οι ενήλικες δεν παίρνουν το φάρμακο", "Τα παιδιά μπορούν να το πάρουν", "; "),
    "ar": ("لا يجوز للكبار تناول الدواء", "يجوز للأطفال تناوله مع الحليب", "؟ "),
    "ur": ("بڑوں کو دوا نہیں لینی چاہیے", "بچے اسے دودھ کے ساتھ لے سکتے ہیں", "۔ "),
    "hi": ("बड़ों को दवा नहीं लेनी चाहिए", "बच्चे इसे दूध के साथ ले सकते हैं", "। "),
    "ko": ("어른은 이 약을 먹으면 안 된다", "아이는 우유와 함께 먹어도 된다", ". "),
    "hy": ("Մեծերը չպետք է խմեն դեղը", "Երեխաները կարող են խմել կաթով", "։ "),
    "am": ("አዋቂዎች መድኃኒቱን መውሰድ የለባቸውም", "ልጆች ከወተት ጋር መውሰድ ይችላሉ", "። "),
    "zh": ("发烧的成年人不可以服用这种药", "五岁以下的儿童可以和牛奶一起服用", "。"),
    "ja": ("熱のある大人はこの薬を飲んではいけない", "五歳未満の子供は牛乳と一緒に飲んでもよい", "！"),
    "th": ("ผู้ใหญ่ที่มีไข้ห้ามกินยานี้", "เด็กอายุต่ำกว่าห้าขวบกินกับนมได้", ". "),
    "my": ("လူကြီးများ ဆေးမသောက်ရ", "ကလေးများ နို့နှင့်သောက်နိုင်သည်", "။ "),
    "km": ("មនុស្សធំមានគ្រុនក្តៅមិនត្រូវលេបថ្នាំ", "កុមារអាចលេបជាមួយទឹកដោះគោ", "។"),
}
#: How the two may stand in a source: {0} and {1} with the stop {2}.
BORDERS = {
    "sentences": "{0}{2}{1}{2}",
    "sentences on two lines": "{0}{2}\n{1}{2}",
    "speech": "“{0}{2}” {1}{2}",
    "sentences in parentheses": "So ({0}{2}{1}{2})",
    "sentence in bold type": "**{0}{2}** {1}{2}",
    "sentence with a note": "{0}{2}[3] {1}{2}",
    "paragraphs": "{0}\n\n{1}",
    "paragraphs with other line ends": "{0}\r\n \t\r\n{1}",
    "quoted paragraphs": "> {0}\n>\n> {1}",
    "items": "- {0}\n- {1}",
    "items with bullets": "• {0}\n• {1}",
    "item in an item": "* {0}\n    * {1}",
    "items with pictures": "❌ {0}\n✅ {1}",
    "cells": "| {0} | {1} |\n|---|---|",
    "rows": "| {0} |\n| {1} |",
    "heading": "## {0}\n{1}",
    "heading and paragraph": "## {0}\n\n{1}",
    "closed heading": "## {0} ##\n{1}",
    "underlined heading": "{0}\n====\n{1}",
    "text before a heading": "{0}\n### {1}\n",
    "rule": "{0}\n***\n{1}",
    "line that announces": "{0}:\n{1}",
    "definition": "{0}\n: {1}",
    "heading without marks": "{0}\n{1} {1} {1} {1}",
    "HTML paragraphs": "<p>{0}</p><p>{1}</p>",
    "HTML heading": "<h2>{0}</h2>{1}",
    "HTML items": "<ul><li>{0}<li>{1}</ul>",
    "HTML cells": "<tr><td>{0}</td><td>{1}</td></tr>",
    "HTML definition": "<dl><dt>{0}</dt><dd>{1}</dd></dl>",
    "HTML blocks": "<DIV class='x'>{0}</DIV>{1}",
    "two line breaks": "{0}<br>\n<br>\n{1}",
    "cells with a tab": "{0}\t{1}",
    "cases": "small {0}{2}{1}",
}


def across(first: str, second: str, between: str = " ") -> str:
    """Return the end of a text and the beginning of another, all of them where words have no spaces between them."""
    if is_unspaced(second[0]):
        return f"{first}{between}{second}"
    return f"{' '.join(first.split()[-3:])}{between}{' '.join(second.split()[:3])}"


@pytest.mark.parametrize("border", BORDERS)
def test_sentences_and_blocks_are_not_joined(border: str) -> None:
    for language, (first, second, stop) in JOINED.items():
        text = BORDERS[border].format(first, second, stop)
        context = text.lower() if border == "cases" else text
        span = across(first, second)
        editorial, verbatim = (Sources([context], matching=matching) for matching in MATCHINGS)
        found = [sources.find(each) for sources in (editorial, verbatim) for each in (span, span.lower())]
        assert found == [None] * 4, (language, context)
        # The signs of a heading are no punctuation.
        with_break = editorial.find(across(first, second, "\n"))
        assert with_break or re.search(r"[#=]\n|\n#", context), (language, context)


@pytest.mark.parametrize("border", ["sentences", "items", "cells", "heading and paragraph"])
def test_span_over_sentences_and_blocks_is_found_with_any_mark_there(border: str) -> None:
    for first, second, stop in JOINED.values():
        sources = Sources([BORDERS[border].format(first, second, stop)])
        for mark in (". ", "; ", ", ", " — ", "! ", "… ", ": ", " | ", "\n", ".” ", "\t"):
            assert sources.find(across(first, second, mark)), (first, mark)


@pytest.mark.parametrize("width", [24, 31, 38, 52, 72])
@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\n> ", "\n    ", "<br>\n", "<br/>"])
def test_lines_broken_to_fit_a_page_are_joined(width: int, line_break: str) -> None:
    for language, (first, second, stop) in JOINED.items():
        text = f"{first}{stop}{second}{stop}{first}{stop}"
        if (unspaced := is_unspaced(text[0])) and language not in ("zh", "ja"):
            continue
        lines = [text[at : at + width] for at in range(0, len(text), width)] if unspaced else textwrap.wrap(text, width)
        for matching in MATCHINGS:
            sources = Sources([line_break.join(lines)], matching=matching)
            assert all(map(sources.find, (first, second))), (language, lines)


NO_ENDS = [
    ("Dr Smith met us", "We saw that Dr. Smith met us there."),
    ("the US Army came", "So the U.S. Army came."),
    ("by J R R Tolkien in May", "It was by J. R. R. Tolkien in May."),
    ("Mr and Mrs Jones left", "So Mr. and Mrs. Jones left."),
    ("see No 5 there", "Please see No. 5 there."),
    ("about approx five of them", "It is about approx. five of them."),
    ("eg this case of it", "We saw e.g. this case of it."),
    ("zB Katzen und Hunde", "Tiere, z.B. Katzen und Hunde."),
    ("am 3. Mai kam er", "Man sagt, am 3. Mai kam er nicht zu der Frau."),
    ("M Dupont est là", "Oui, M. Dupont est là."),
    ("г Москва стоит на реке", "Это г. Москва стоит на реке."),
    ("Help he cried at once", "“Help!” he cried at once."),
    ("a value of 3.5 mg", "We saw a value of 3.5 mg."),
    ("über den Fluss nach Haus", "Die alte Fahrt führte über den\nFluss nach Haus und weiter bis zum Wald."),
    ("the drug is safe", "The\tdrug\tis\tsafe."),
    # A note mark or a bracket beside the mark.
    ("must not take the drug.[1] Children may take it", ADULTS),
    ("must not take the drug. [The] children may take it", ADULTS),
]


def test_what_ends_no_sentence_may_be_left_out() -> None:
    assert [span for span, context in NO_ENDS if not align(span, [context]).ok] == []


OPPOSITE, BRACKETED = sections("brackets.txt")


def test_bracket_puts_a_noun_for_a_pronoun_or_another_form_and_never_another_word() -> None:
    """It may explain, be a name or a noun phrase, or change a form; it replaces no verb, adjective or number."""
    assert [span for span, context in OPPOSITE if align(span, [context]).ok] == []
    assert [span for span, context in BRACKETED if not str(align(span, [context]).reason).endswith("bracket")] == []


NOTES = (
    "[1] [1, 2] [^1] [^note] [a] [e] [a][b] [note 1] [citation needed] [clarification needed] [by whom?] [when?] [N 1]"
    " [nb 2] [fn3] [†] [*] [lower-alpha 1] [Anm. 2] [nota 1] [réf. nécessaire] [cita requerida] [прим. 1] [注 1]"
    " [要出典] [來源請求] [출처 필요] <sup>a</sup>"
)


@pytest.mark.parametrize("note", re.findall(r"(?:\[[^]]+\])+|<sup>.*?</sup>", NOTES))
def test_mark_of_a_note_in_the_source_is_overlooked(note: str) -> None:
    context = f"They say the ferry{note} sank at noon.{note} Nobody{note} was on board,{note} it seems."
    assert align("the ferry sank at noon. Nobody was on board, it seems", [context]).ok
    if note[0] == "[":
        assert align("渡船在十点离开了港口", [f"夜里的渡船{note}在十点离开了{note}港口。"]).ok
    assert not align("the ferry sank at noon. Nobody", [context], matching="verbatim").ok


UNITS = (
    "mW MW|Mb MB|Gb/s GB/s|Mbps MBps|mHz MHz|mV MV|mA MA|mPa MPa|mΩ MΩ|mJ MJ|mM mm|nM nm|mS ms|kb kB|mAh MAh|mSv MSv"
)
SPELLINGS = "KG kg|AM am|Pm pm|kw kW|ghz GHz|KB kB|MG mg|mL ml|dB db|Mg mg|KWh kWh|MHZ MHz|TVs TVS|Men men|MPH mph|G g"


def test_case_of_a_unit_counts_where_it_is_another_unit() -> None:
    """Milli is not mega and a bit is no byte; units that people write either way are the same."""
    for pair in (*UNITS.split("|"), *SPELLINGS.split("|")):
        for said, source in permutations(pair.split()):
            for space in ("", " ", "\u00a0"):
                verdict = align(f"it gave 5{space}{said} of it", [f"We know it gave 5{space}{source} of it all."])
                assert verdict.ok is (pair in SPELLINGS.split("|")), (said, source)


@pytest.mark.parametrize("case", NOT_FOUND)
def test_other_wording_is_never_found(case: str) -> None:
    span, context = NOT_FOUND[case]
    for matching in MATCHINGS:
        verdict = align(span, ["Something else entirely.", context], matching=matching)
        assert (verdict.ok, verdict.evidence) == (False, ()), verdict.reason
        assert str(verdict.reason).startswith("not found")


PAGES = (
    "The crew had mapped the eastern shore and were about to",
    "turn north when the ice closed in behind them, so that",
    "they wintered on the island,",
    "with little food and no doctor. Nobody spoke of it.",
)
CHUNKS = (
    "The survey began in spring. The crew had mapped the eastern shore and were about to turn",
    "north when the ice closed in behind them. They wintered on the island.",
    "A different report altogether. It ends with a full stop.",
    "They wintered on the island with little food, and were found in June.",
)


LONG = "were about to turn north when the ice closed in behind them, so that they wintered on the island, with"


@pytest.mark.parametrize(
    ("span", "contexts", "pieces"),
    [
        ("about to turn north when the ice closed", CHUNKS, [(0, "about to turn"), (1, "north when the ice closed")]),
        (
            f"{LONG} little food",
            ("The survey.", *PAGES),
            [(1, "were about to"), (2, PAGES[1]), (3, "they wintered on the island"), (4, "with little food")],
        ),
    ],
)
def test_span_over_chunks_that_adjoin_in_mid_sentence_is_found_with_each(span: str, contexts: Any, pieces: Any) -> None:
    verdict = align(span, contexts)
    *first, last = (f"contexts[{context}]" for context, _ in pieces)
    assert verdict.reason == f"found across adjoining chunks: it runs over {', '.join(first)} and {last}"
    assert [(piece.context, piece.text) for piece in verdict.evidence] == pieces
    assert not align(span, contexts, matching="verbatim").ok


@pytest.mark.parametrize("size", [20, 30, 50])
@pytest.mark.parametrize("language", ["English", "Korean"])
def test_span_over_chunks_is_found_without_the_note_marks_in_them(size: int, language: str) -> None:
    whole = {
        "English": "the crew[3] mapped the eastern shore in 1911[4] and were about[5] to turn north when it froze",
        "Korean": "선원들이[3] 동쪽 해안을 그려 나갔고[4] 얼음이 얼기[5] 전에 북쪽으로 돌려고 했다고 한다",
    }[language]
    chunks = textwrap.wrap(whole, size)
    around = "and the other papers say it " * 6
    found = align(re.sub(r"\[\d\]", "", whole), [around + chunks[0], *chunks[1:-1], f"{chunks[-1]} {around}"])
    assert (found.ok, len(found.evidence)) == (True, len(chunks))


@pytest.mark.parametrize("order", [1, -1])
def test_span_over_chunks_that_overlap_is_found_verbatim_in_any_order(order: int) -> None:
    shore = "mapped the eastern shore and were about to turn"
    chunks = [f"The crew had {shore}", "astern shore and were about to turn north again."]
    verdict = align(f"{shore} north again", chunks[::order], matching="verbatim")
    assert "adjoining chunks" in str(verdict.reason)
    assert {piece.text for piece in verdict.evidence} == {shore, "north again"}


UNCONNECTED = [
    ("It ends with a full stop. They wintered on the island", CHUNKS),
    ("about to turn north when the ice closed", CHUNKS[::-1]),
    ("about to turn north when", (CHUNKS[0], CHUNKS[3], CHUNKS[1])),
    ("and were found in June the survey began", (CHUNKS[3], CHUNKS[0])),
    ("were about to turn \u2026 when the ice closed", CHUNKS),
    ("the board met it was late", ("The board met.", "It was late")),
    ("list of all boats north when the ice", ("Heading\n\nlist of all boats\n\n", CHUNKS[1])),
    ("list of all boats first the ice", ("list of all boats", "# First the ice")),
    ("list of all boats first the ice", ("list of all boats", "First the ice")),
    ("the new dam is safe for now", ("They say the new dam is not", "safe for now, as it seems.")),
    ("the new dam is safe for now", ("They say the new dam is", "not safe for now, as it seems.")),
    ("on the shore was quiet at night", ("Life on the shore was", "shore was quiet at night")),
    ("bout to turn north when the ice", CHUNKS),
    ("about to turn north when the i", CHUNKS),
    ("were about to turn north when the ice closed in behind them, so that they wintered", (PAGES[0], *PAGES[2:])),
    ("about to turn north when the ice closed in behind them, so that they", (PAGES[0], PAGES[2], PAGES[1])),
    ("about to turn north when the ice. they wintered", (PAGES[0], "turn north when the ice.", PAGES[2])),
    ("about to turn south when the ice closed in behind them, so that they wintered", PAGES),
    ("bout to turn north when the ice closed in behind them, so that they wintered", PAGES),
    ("about to turn north when the ice closed in behind them, so that they wint", PAGES),
    ("the the the the the the the", ("the the",) * 3),
    ("na na na na na na na na na na na na na na na na", ("na na na na na na na na na na na na",)),
]


def test_pieces_of_unconnected_contexts_are_not_joined() -> None:
    assert [(span, contexts) for span, contexts in UNCONNECTED if align(span, contexts).ok] == []


@pytest.mark.parametrize("size", [3, 4, 6, 10])
def test_span_over_many_chunks_may_have_a_short_word_at_its_ends(size: int) -> None:
    words = " ".join(PAGES[:3]).split()
    chunks = [" ".join(words[at : at + size]) for at in range(0, len(words), size)]
    spans = [" ".join(words[start:end]) for start in range(10) for end in range(start + 2, len(words) + 1)]
    sources = Sources(chunks)
    assert [span for span in spans if not sources.find(span)] == []


@pytest.mark.parametrize("count", [10, 80])
def test_span_over_two_of_many_chunks_without_spaces_is_found(count: int) -> None:
    quote = "老人说河水在夜里漫过了堤岸所以村子里的人都走到山上去等天亮"
    others = [f"{quote[at % 9 + 15 :][:2]}{at}的话是说过的{quote[at % 14 :][:2]}" for at in range(count)]
    verdict = align(quote, [*others, f"那一天{quote[:17]}", f"{quote[17:]}以后再回来", *others])
    assert [piece.context for piece in verdict.evidence] == [count, count + 1]


def test_chunks_that_repeat_or_cut_words_are_joined() -> None:
    assert align("the the the the the the the", ["the the"] * 9).ok
    chunks = ["It was the first survey of the eastern sho", "first survey of the eastern shore that was of any use."]
    assert align("It was the first survey of the eastern shore that was of any use", chunks, matching="verbatim").ok


def test_span_over_many_chunks_that_overlap_is_found_verbatim() -> None:
    text = " ".join(PAGES)
    chunks = [text[at : at + 80] for at in range(0, len(text) - 30, 50)]
    span = text[text.index("eastern") : text.index(" with little")]
    evidence = align(span, chunks, matching="verbatim").evidence
    assert len(evidence) > 2
    assert "".join(piece.text for piece in evidence).replace(" ", "") == span.rstrip(",").replace(" ", "")


@pytest.mark.parametrize(
    ("span", "context", "text"),
    [
        ("the strasse was", "Then DIE; the STRA\u1e9eE was long.", "the STRA\u1e9eE was"),
        ("ist leer heute", "\u0130st leer heute.", "\u0130st leer heute"),
        ("ffi and fi", "x; \ufb03 and \ufb01.", "\ufb03 and \ufb01"),
        ("caf\u00e9 noir ici", "Un cafe\u0301 noir ici.", "cafe\u0301 noir ici"),
        ("R&D is here", "Our R&amp;D is here.", "R&amp;D is here"),
        ("was bold here", "It <i>was <b>bold</b></i> here.", "was <b>bold</b></i> here"),
        ("it was bold", "It <i>was <b>bold</b></i> here.", "It <i>was <b>bold"),
        ("remarkable find", "A re\u00admark-\nable  find.", "re\u00admark-\nable  find"),
        ("will not hold", "It **will** \u200bnot hold.", "will** \u200bnot hold"),
        ("-7 degrees out", "It was \u22127 degrees out.", "\u22127 degrees out"),
        ("the ferry sank at noon", "They say the ferry sank at noon\u00b9, not later.", "the ferry sank at noon"),
        ("The night ferry \u2026 nobody on board expected", FERRY, "The night ferry|nobody on board expected"),
        ("夜里漫过了堤岸", "\U0001f30a河水在夜里\n漫过了堤岸。", "夜里\n漫过了堤岸"),
    ],
)
def test_evidence_is_a_slice_of_the_original(span: str, context: str, text: str) -> None:
    evidence = align(span, ["First.", context]).evidence
    assert [piece.text for piece in evidence] == text.split("|")
    assert all((it.context, context[it.start : it.end]) == (1, it.text) for it in evidence)


@pytest.mark.parametrize("block", [200, 255, 256, 257, 511, 512, 5000, 70_000])
def test_evidence_is_right_far_into_a_long_context(block: int) -> None:
    before, behind = "Stra\u00dfe \ufb01n \u2026 " * (block // 14) + "-" * (block % 14), "\ufb01n " * 50
    context = f"{before} Der Flu\u00df war tief. {behind}"
    (piece,) = align("DER FLUSS WAR TIEF", [context]).evidence
    assert piece.text == "Der Flu\u00df war tief"
    assert context[piece.start : piece.end] == piece.text


def test_passage_that_needs_least_is_preferred() -> None:
    context = "THE OLD MILL ROAD. On The Old Mill Road it rained; the old mill road is long."
    verdict = align("the old mill road", [context])
    assert (verdict.reason, verdict.evidence[0].start) == ("found, exact", context.rindex("the old mill road"))
    # A note mark on the last word counts where the text must be as it is written.
    assert not align("the old mill", ["They saw the old mill\u00b9, too."], matching="verbatim").ok
    # Without one that is exact: case before typography.
    said = align("the 'old' mill", ["The \u2018old\u2019 mill; THE 'old' MILL."]).reason
    assert said == "found after folding case"


def test_case_is_kept_on_request_and_nothing_else() -> None:
    context = "The Ferry\n left \u2018the\u2019 **harbour**."
    assert align("Ferry left 'the' harbour", [context], casefold=False).ok
    assert not align("ferry left 'the' harbour", [context], casefold=False).ok
    assert align("[f]erry left \u201cthe\u201d harbour", [context], casefold=False).ok


@pytest.mark.parametrize(
    ("span", "context", "matching", "changes"),
    [
        ("河水在夜里漫过了田野和村庄", "老人说，河水在夜里漫过了堤岸和村庄。", "editorial", [("田野", "堤岸")]),
        # What is unlike is no passage, nor are some pieces too few to be like it.
        ("purple elephants sing quietly", FERRY, "editorial", None),
        ("storm qkuyy wk xjy qjxk", FERRY, "editorial", None),
        # Where all words are the same, the sign that differs, or how the word or the number goes on.
        ("rope tar and sails", "We sold rope, tar, and sails.", "verbatim", [("rope tar", "rope, tar,")]),
        ("Dr Ames and Mr Bell", "So Dr. Ames and Mr. Bell met.", "verbatim", [("Dr", "Dr."), ("Mr", "Mr.")]),
        ("was -7 degrees at night", "It was 7 degrees at night.", "editorial", [("-7", "7")]),
        ("500 boats were lost", "In all 2\u202f500 boats were lost.", "editorial", [("500", "2\u202f500")]),
        ("500 was paid that day", "In all $500 was paid that day.", "editorial", [("500", "$500")]),
        ("In May they do", "In May they do n't row.", "editorial", [("do", "do n't")]),
        ("able find was made", "A remark-\nable find was made.", "editorial", [("able", "remark-\nable")]),
        ("十人在船上", "那天有三十人在船上。", "editorial", [("十", "那天有三十")]),
        ("a b \u2026 c d", "A b, c d.", "editorial", [("a b \u2026 c d", "A b, c d.")]),
    ],
)
def test_nearest_passage_tells_what_differs(span: str, context: str, matching: Matching, changes: Any) -> None:
    nearest = align(span, [context], matching=matching).nearest
    assert (nearest and [(it.said, it.source) for it in nearest.changes if it.kind != "same"]) == changes


def test_nearest_passage_of_a_changed_word() -> None:
    context = f"It rained all day. {FERRY} Then it was quiet."
    span = "The ferry left the island at ten, and nobody at all on board expected the storm"
    verdict = align(span, ["No.", context])
    nearest = verdict.nearest
    assert nearest is not None
    assert (verdict.reason, nearest.context, nearest.text) == ("not found in any context", 1, FERRY)
    assert context[nearest.start : nearest.end] == nearest.text
    assert 0.8 < nearest.similarity < 1
    assert [(change.kind, change.said, change.source) for change in nearest.changes] == [
        ("same", "The", "The"),
        ("missing", "", "night"),
        ("same", "ferry left the", "ferry left the"),
        ("replaced", "island", "harbour"),
        ("same", "at ten, and nobody", "at ten, and nobody"),
        ("added", "at all", ""),
        ("same", "on board expected the storm", "on board expected the storm."),
    ]


@pytest.mark.parametrize(
    ("span", "contexts", "reason"),
    [
        *(("any words at all", contexts, "no context") for contexts in ([], "", ["", "  "], ["\n"], ())),
        *((span, [FERRY], "the span is blank") for span in ("", " ", "\n\t\u00a0")),
        ("they did [not] leave the island", ["They did leave the island."], "a bracket may not add a negation"),
        ("a survey began \u2026 found in June", ["A survey began.", "It was found in June."], "in different contexts"),
        ("found in June \u2026 a survey began", ["A survey began, was found in June."], "in another order"),
        ("a b \u2026 c d", ["A b, c d."], "too short"),
        ("the storm I slept", ["They saw the storm.\n\nI slept."], 'ends a sentence or a block: "storm. I"'),
        ("net profits [rose] in May", ["The net profits fell in May."], 'the bracket leaves out "fell" (contexts[0])'),
        ("purple elephants sing quietly", [FERRY], "not found in any context"),
    ],
)
def test_what_is_not_found_says_why(span: str, contexts: object, reason: str) -> None:
    verdict = align(span, contexts)
    assert (verdict.ok, verdict.text) == (False, span)
    assert reason in str(verdict.reason)


@pytest.mark.parametrize(
    ("span", "evidence"), [("!!!", ["!!!"]), (" ?! ", ["?!"]), ("???", []), ("…", []), ("🌞🌞", ["🌞🌞"]), ("[]", [])]
)
def test_span_without_words_must_stand_there_as_it_is(span: str, evidence: list[str]) -> None:
    contexts = ["None?", "Stop!!! It is \U0001f31e\U0001f31e now?! No?!"]
    verdict = align(span, contexts)
    assert (verdict.ok, [piece.text for piece in verdict.evidence]) == (bool(evidence), evidence)
    assert [(it.context, it.start) for it in verdict.evidence] == [(1, contexts[1].index(text)) for text in evidence]


def test_context_may_be_anything_that_holds_text() -> None:
    assert align("the night ferry left", FERRY).ok
    documents = [SimpleNamespace(page_content=text) for text in ("No.", FERRY)]
    assert align("the night ferry left", documents).evidence[0].context == 1
    with pytest.raises(TypeError, match=r"contexts\[1\]"):
        align("the night ferry left", [FERRY, 5])
    with pytest.raises(ValueError, match="matching must be 'editorial' or 'verbatim', not 'loose'"):
        align("the night ferry left", [FERRY], matching=cast("Matching", "loose"))


def test_many_spans_are_found_like_one() -> None:
    words = [f"{a}{b}" for a in ("mal", "ter", "quin", "so", "val", "dre") for b in ("o", "any", "iver", "est", "un")]
    tokens = [words[(i * i * 7 + i // 3) % len(words)] for i in range(3000)]
    spans = [" ".join(tokens[i : i + 5 + i % 4]) for i in range(0, 2900, 34)]
    spans += [f"{span} zebra {span}" for span in spans[::3]]
    text = [" ".join(tokens)]
    assert [it.evidence for it in Sources(text).align(spans)] == [align(span, text).evidence for span in spans]


def test_whether_a_span_is_found_takes_no_nearest_passage(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found where its verdict says so; the nearest passage, which takes most of the time, is not computed."""
    spans = ["left the harbour", "left … at ten", "left the Harbour!", "left no harbour", "nobody … the harbour"]
    for contexts, matching in product(([FERRY], [f"{FERRY} … ?!"], [], [""]), MATCHINGS):
        sources = Sources(contexts, matching=matching)
        verdicts = sources.align([*spans, "…", "?!", "", " "])
        with monkeypatch.context() as patch:
            patch.setattr("pytest_ragmetrics.text.quotes.nearest.find_nearest", None)
            assert [sources.find(it.text) is not None for it in verdicts] == [it.ok for it in verdicts], contexts


def test_chunks_are_looked_at_in_their_order() -> None:
    """Of more chunks than a quotation has letters a bounded number is looked at, whatever the hash seed the same."""
    letters = "lefttheharbouratten"
    pieces = [letters[at : at + 4] for at in range(len(letters) - 3)] * 6
    chunks = ["The ferry left the", "harbour at ten, as always.", *(f"{piece}, or {piece}" for piece in pieces)]
    verdict = align("left the harbour at ten", chunks)
    assert [piece.context for piece in verdict.evidence] == [0, 1]


LETTERS = st.text(alphabet="abcdeéßİﬁ\u0301", min_size=1, max_size=4)
SEPARATORS = st.sampled_from([" ", "\n", "  ", "-", "—", ", ", ". ", " “", "’", " **", "&amp;", "\u00ad", "-\n", "… "])
TEXTS = st.lists(st.tuples(LETTERS, SEPARATORS), max_size=30).map(lambda parts: "".join(a + b for a, b in parts))


@given(context=TEXTS, start=st.integers(0, 60), length=st.integers(1, 60))
def test_what_is_found_stands_there(context: str, start: int, length: int) -> None:
    span = context[start : start + length]
    for matching in MATCHINGS:
        verdict = align(span, [context], matching=matching)
        for piece in (*verdict.evidence, verdict.nearest):
            assert piece is None or context[piece.start : piece.end] == piece.text
        if verdict.nearest:
            assert 0 <= verdict.nearest.similarity <= 1
            assert any(change.kind != "same" for change in verdict.nearest.changes)


@given(words=st.lists(st.sampled_from(FERRY.split()), min_size=3, max_size=8), place=st.integers(0, 7))
def test_a_foreign_word_is_never_found(words: list[str], place: int) -> None:
    words.insert(place % len(words), "zebra")
    assert not align(" ".join(words), [FERRY]).ok


@given(
    start=st.integers(0, 8),
    length=st.integers(3, 7),
    spaces=st.lists(st.sampled_from([" ", "\n", "\u00a0", "  ", " \u200b"]), min_size=8, max_size=8),
    upper=st.booleans(),
    bold=st.booleans(),
)
def test_layout_and_case_never_matter(start: int, length: int, spaces: list[str], *, upper: bool, bold: bool) -> None:
    words = FERRY.split()[start : start + length]
    span = "".join(word + space for word, space in zip(words, spaces, strict=False)).strip()
    span = f"**{span}**" if bold else span
    (piece,) = align(span.upper() if upper else span, [FERRY], matching="verbatim").evidence
    assert piece.text.split() == " ".join(words).rstrip(",.").split()


#: Letters, marks and signs of all kinds; a fixed set, as building that of all characters takes hypothesis seconds.
ANYTHING = st.text(
    alphabet="aZéßİﬁ½²漢がक्षم9\u0301\u200b\u00ad\x00\x1e\ud800😀 \n\t\"'“…[].,-–*_`>&;<#\\()", max_size=60
)


@given(span=ANYTHING, context=ANYTHING, extra=ANYTHING)
def test_no_text_breaks_it(span: str, context: str, extra: str) -> None:
    for text in (span, extra + context + extra):
        assert align(text, [context, extra]).text == text
