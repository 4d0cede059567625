"""Finding quoted spans in their contexts: what is the same wording, and what never is."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from dataclasses import dataclass
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ragmetrics.text.alignment import Matching, Sources, align

MATCHINGS: tuple[Matching, ...] = ("editorial", "verbatim")
FERRY = "The night ferry left the harbour at ten, and nobody on board expected the storm."


def decomposed(text: str) -> str:
    """Return a text with its accents as characters of their own."""
    return unicodedata.normalize("NFD", text)


#: Span, context, and the tolerance that the reason must name.
FOUND = {
    "as written": ("nobody on board expected the storm", FERRY, "exact"),
    "from the first word": ("The night ferry left", FERRY, "exact"),
    "inner capital": ("the NIGHT ferry left the Harbour", FERRY, "case"),
    "line break": ("left the harbour\nat ten", FERRY, "layout"),
    "line break in context": ("the mill stood idle", "In June the mill\r\n   stood idle.", "layout"),
    "no-break space": ("a third of the\u00a0crop", "It took a third of the crop.", "layout"),
    "curly apostrophe": ("the keeper\u2019s lamp went out", "At dawn the keeper's lamp went out.", "typography"),
    "modifier apostrophe": ("наш комп'ютер не працює", "Сьогодні наш комп\u02bcютер не працює.", "typography"),
    "guillemets inside": ("il cria “terre” deux fois", "Alors il cria «\u00a0terre\u00a0» deux fois.", "typography"),
    "en dash in a range": ("between 1920\u20131925 it closed", "Some time between 1920-1925 it closed.", "typography"),
    "no-break hyphen": ("a well\u2011tended garden", "It was a well-tended garden.", "typography"),
    "minus sign": ("fell to \u22127 degrees", "At night it fell to -7 degrees.", "typography"),
    "ligature": ("a difficult final office", "It was a di\ufb03cult \ufb01nal o\ufb03ce.", "typography"),
    "full width": ("\uff21\uff22\uff23 radio at noon", "Tune to ABC radio at noon.", "typography"),
    "decomposed context": ("žluťoučký kůň běžel", decomposed("Ten žluťoučký kůň běžel domů."), "typography"),
    "decomposed Hangul": ("강물이 천천히 흐른다", decomposed("봄이면 강물이 천천히 흐른다."), "typography"),
    "soft hyphen": ("the harvest was poor", "That year the har\u00advest was poor.", "typography"),
    "zero-width space": ("every single\u200b voter came", "We know every single voter came.", "typography"),
    "byte order mark": ("first line of it", "\ufefffirst line of it is here.", "exact"),
    "directional marks": ("\u200fשלום לכל אדם\u200f", "אמרו שלום לכל אדם בשער.", "typography"),
    "tatweel": ("السلام على القرية", "كان الســلام على القرية.", "typography"),
    "ellipsis glyph": ("and then\u2026 silence fell", "We waited, and then ... silence fell.", "typography"),
    "sharp s in capitals": ("DIE STRASSE WAR LEER", "Um acht war klar: die Straße war leer.", "case"),
    "final sigma": ("ΟΔΥΣΣΕΥΣ ΓΥΡΙΣΕ ΣΠΙΤΙ", "Ο οδυσσευς γυρισε σπιτι χθες.", "case"),
    "dotted capital I": ("istanbul bugün yağmurlu", "İstanbul bugün yağmurlu.", "case"),
    "italics in the context": ("the dam will hold", "Engineers say the dam _will_ hold.", "layout"),
    "emphasis inside a word": ("an unbelievable result", "It was an un*believ*able result.", "layout"),
    "entity in the context": ("fish & chips for two", "We ordered fish &amp; chips&nbsp;for two.", "found"),
    "numeric entity": ("don&#39;t cross here", "The sign said: don't cross here.", "found"),
    "quoted context": ("the bridge was closed", "> By noon the bridge\n> was closed.", "layout"),
    "broken word, CRLF": ("a remarkable discovery", "It was a remark-\r\n  able discovery.", "layout"),
    "compound at a line end": ("a well-known discovery", "It was a well-\nknown discovery.", "layout"),
    "both kinds of hyphen": ("a well-known and remarkable find", "a well-\nknown and remark-\nable find", "layout"),
    "soft hyphen at a line end": ("a remarkable discovery", "It was a remark\u00ad\nable discovery.", "layout"),
    "reopened paragraph": ("We sailed at once.\n\n“Nobody slept.", "“We sailed at once.\n\nNobody slept.”", "layout"),
    "Chinese line break": ("河水在夜里漫过了堤岸", "老人说，河水在夜里\n漫过了堤岸。", "layout"),
    "space beside Latin": ("我们使用Python写程序", "现在我们使用 Python 写程序。", "layout"),
    "full-width comma": ("他来了,她走了", "那天他来了，她走了。", "typography"),
    "half-width katakana": ("ﾃﾚﾋﾞを見ていた人", "あの夜テレビを見ていた人は多い。", "typography"),
    "inside Chinese": ("水在夜里漫过", "老人说，河水在夜里漫过了堤岸。", "exact"),
    "after a hyphen": ("known author of plays", "She was a well-known author of plays.", "exact"),
    "apostrophe after it": ("Elizabeth and the captain", "Elizabeth and the captain's ship left.", "exact"),
    "comma added inside": ("the storm passed,", "In the morning the storm passed without harm.", "punctuation"),
    "stop for a comma": ("the storm passed.", "When the storm passed, we left.", "punctuation"),
    "full-width stop": ("暴风雨过去了。", "暴风雨过去了，我们就走。", "punctuation"),
    "tokenised": ("it doesn't rain, they say", "In May it does n't rain , they say .", "punctuation"),
    "tokenised clitic": ("the pilot's log was lost", "So the pilot 's log was lost .", "punctuation"),
    "French spacing": ("Quelle nuit! dit le pilote", "Quelle nuit ! dit le pilote.", "punctuation"),
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
    "bracket and ellipsis": (
        "[N]obody on board … expected the storm",
        "Nobody on board that night expected the storm.",
        "ellipsis and bracket",
    ),
    "square brackets of the source": ("the text [sic] was kept", "And the text [sic] was kept.", "exact"),
    "raised note mark of the source": (
        "the ferry sank at noon. Nobody was on board",
        "They say the ferry³ sank at noon.¹² Nobody⁴ was on board.",
        "bracket",
    ),
    "first note mark behind a counted word": ("of 40 people on board", "All of 40 people\u00b9 on board.", "bracket"),
    "note mark in a tag": (
        "the ferry sank at noon. Nobody was",
        'The ferry<sup>2</sup> sank at noon.<sup class="n"><a href="#n3">[3]</a></sup> Nobody was.',
        "bracket",
    ),
    "note mark of the source": ("founded in 1990 by monks", "It was founded in 1990[3] by monks.", "bracket"),
    "note mark that is a link": (
        "founded in 1990 by monks",
        "It was founded in 1990[3](https://x.org/#n3) by monks.",
        "bracket",
    ),
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
    "raised note mark of the span": (
        "the ferry\u00b9 sank at noon\u00b2",
        "They say the ferry sank at noon.",
        "bracket",
    ),
    "stops of abbreviations": ("Dr Ames of the US Navy", "Ask Dr. Ames of the U.S. Navy.", "punctuation"),
    "serial comma": ("rope, tar and sails", "They sold rope, tar, and sails.", "punctuation"),
    "no space behind commas": ("in rows of 1, 2, 3, and 5", "Set them in rows of 1,2,3 and 5.", "punctuation"),
    "ornament": ("\U0001f525 the old mill \u2728 is open", "Today the old mill is open.", "punctuation"),
    "comma left out, Japanese": ("山へ行き川で泳いだ", "夏は山へ行き、川で泳いだ。", "punctuation"),
    "percent sign apart": ("rose by 5 % again", "Prices rose by 5% again.", "punctuation"),
    "currency in front": ("$500 was paid", "In all, $500 was paid.", "exact"),
    "name with signs": ("written in C++", "It was written in C++.", "exact"),
    "link in the source": (
        "the report shows growth",
        "Now [the report](https://example.org/r_1) shows growth.",
        "layout",
    ),
    "tags in the source": (
        "the old report shows growth",
        'The <b>old</b> <a href="/r">report</a> shows<br>growth.',
        "layout",
    ),
    "JSON escapes": ("the mill\\nstood \\u201cidle\\u201d", "The mill stood \u201cidle\u201d.", "layout"),
    "negation of the source": ("nobody on board expected the storm", FERRY, "exact"),
}

#: Span and context; each differs in a word, a number, a negation, a boundary or the order.
NOT_FOUND = {
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
    "power dropped": ("about 103 grains of sand", "There were about 10\u00b3 grains of sand."),
    "power cut off": ("there were about 10", "We think there were about 10\u00b3 of them."),
    "fraction merged": ("add 11/2 cups of milk", "Now add 1\u00bd cups of milk."),
    "product read as a number": ("gave 23 as a result", "It gave 2*3 as a result."),
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
    "decimal comma moved": ("a depth of 15 m", "It has a depth of 1,5 m."),
    "decimal comma as a list": ("a depth of 1, 5 m", "It has a depth of 1,5 m."),
    "number in parentheses inside": ("they lost (5) boats", "In all they lost boats."),
    "cross for a tick": ("\u274c the mill is open", "\u2705 the mill is open"),
    "mark of a source for words": ("The night ferry left【4:0†source】 at ten, and nobody", FERRY),
    "Han number cut": ("十人在船上", "那天有三十人在船上。"),
    "sub-word at the start": ("row fast in May", "Reeds grow fast in May."),
    "sub-word at the end": ("Reeds grow fast", "Reeds grow faster in May."),
    "letters without the space": ("the night fer ry", FERRY),
    "hyphen for a space": ("a battle-field at dawn", "We crossed a battle field at dawn."),
    "space for a hyphen": ("a battle field at dawn", "We crossed a battle-field at dawn."),
    "hyphen dropped": ("asked to resign today", "She was asked to re-sign today."),
    "apostrophe dropped": ("were going home soon", "I hope we're going home soon."),
    "half of a broken word": ("able discovery was made", "A remark-\nable discovery was made."),
    "sub-word with a soft hyphen": ("able discovery was made", "A remark\u00adable discovery was made."),
    "mark changed": ("el año de la sequía", "El ano de la sequía."),
    "mark cut off": ("le café e", decomposed("le café é là")),
    "dotless i": ("sinir çok uzundu", "Sınır çok uzundu."),
    "other Russian letter": ("в мои день рождения", "Это было в мой день рождения."),
    "accent of a small letter": ("εκεί που είναι τώρα", "Λένε: εκεί πού είναι τώρα;"),
    "other Arabic letter": ("امل الولد كبير", "قالوا: أمل الولد كبير."),
    "letter with dots, German": ("fur alle schon da", "Das war für alle schön da."),
    "Hindi vowel sign": ("नदी का पान बढ़ गया", "रात में नदी का पानी बढ़ गया।"),
    "Korean ending": ("강물이 밤새 불어", "어제 강물이 밤새 불어났다."),
    "Japanese voicing": ("がわの水かきれい", "かわの水がきれい。"),
    "false piece after an ellipsis": ("The night ferry left \u2026 everybody on board expected", FERRY),
    "ellipsis of tiny pieces": ("night \u2026 ten \u2026 storm", FERRY),
    "short piece far away": (
        "nobody saw the ferry … sank",
        "In fact nobody saw the ferry. " + "It rained on. " * 60 + "A raft sank.",
    ),
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
    "bracket over too much": (
        "the keeper [later] left the island",
        "The keeper fell ill, was replaced by a cousin, then left the island.",
    ),
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
    ("The drug is", "safe for small children"): (
        "not|not yet|no longer|not at all|by no means|hardly ever|far from|never|neither|without a doctor|allegedly"
        "|in no way|, it is a myth,|anything but|unable to be|, unless diluted,|, except in water,|isn't|can\u2019t be"
        "|denied to be|only rarely|nearly|\u274c"
    ),
    (
        "Das Mittel ist",
        "sicher für kleine Kinder",
    ): "nicht|noch nicht|nicht mehr|keineswegs|kaum|angeblich|, ohne Arzt,|alles andere als",
    (
        "Le remède est",
        "sûr pour les petits enfants",
    ): "loin d'être|pas|jamais|prétendument|, sans ordonnance,|, sauf exception,",
    ("El remedio es", "seguro para niños pequeños"): "no|nunca|apenas|supuestamente|, sin receta,|lejos de ser",
    (
        "Il rimedio è",
        "sicuro per i bambini piccoli",
    ): "non|mai|quasi|, senza ricetta,|tutt'altro che|lontano dall'essere",
    ("O remédio é", "seguro para crianças pequenas"): "não|nunca|quase|, sem receita,|longe de ser",
    ("Het middel is", "veilig voor kleine kinderen"): "niet|nooit|nauwelijks|allesbehalve|, zonder recept,",
    ("Medlet är alltid", "säkert för små barn"): "inte|aldrig|knappast|långt ifrån|, utan recept,",
    ("Tämä lääke on", "turvallinen pienille lapsille"): "ei|tuskin|tutkimatta|, ilman reseptiä,",
    ("Ez a szer", "biztonságos a gyermekek számára"): "nem|sem|aligha|állítólag|, vény nélkül,",
    ("Ten lek jest", "bezpieczny dla małych dzieci"): "nie|nigdy|rzekomo|bynajmniej|, bez recepty,",
    ("Ten lék podle", "bezpečný pro malé děti"): "není|nebyl|sotva|údajně|, bez předpisu,",
    ("Bu ilaç küçük", "çocuklar için çok güvenli"): "değil|olmayan|denenmemiş|bilinmeyen|yapılmadan|reçetesiz|gitmiyor",
    ("Obat ini selalu", "aman untuk anak kecil"): "tidak|bukan|belum|jangan|, tanpa resep,",
    ("Thuốc này luôn", "an toàn cho trẻ nhỏ"): "không|chưa|chẳng|đừng",
    ("Это лекарство всегда", "безопасно для маленьких детей"): "не|едва ли|якобы|отнюдь не|, без рецепта,",
    ("Ці ліки завжди", "безпечні для малих дітей"): "не|ледве|нібито|, без рецепта,",
    ("Το φάρμακο πάντα", "είναι ασφαλές για παιδιά"): "δεν|ΔΕΝ|μη|ούτε|σχεδόν|, χωρίς συνταγή,",
    ("هذا الدواء دائما", "آمن للأطفال الصغار"): "لا|لَيْسَ|غير|لم يكن|، دون وصفة،",
    ("התרופה הזאת תמיד", "בטוחה לילדים קטנים"): "לא|לֹא|אינה|כמעט|, בלי מרשם,",
    ("این دارو همیشه", "برای کودکان ایمن است"): "نه|هرگز|نمی\u200cتواند|بدون نسخه",
    ("यह दवा हमेशा", "छोटे बच्चों के लिए सुरक्षित है"): "नहीं|न|बिना पर्ची|केवल",
    ("এই ওষুধ সব", "ছোট শিশুদের জন্য নিরাপদ"): "না|নয়|করেনি",
    ("இந்த மருந்து எல்லா", "சிறு குழந்தைகளுக்கு பாதுகாப்பானது"): "இல்லை|செய்யவில்லை|இல்லாமல்",
    ("ยานี้เป็นยาที่", "ปลอดภัยสำหรับเด็กเล็กทุกคน"): "ไม่|มิ|ห้าม",
    ("这种药对五岁以下的", "儿童来说是很安全的"): "不|没有|绝不|勿给|除了病人以外的",
    ("この薬は五歳未満の", "子供にとって安全な薬である"): "使わない|使いません|使えず|決して|以外の",
    ("이 약은 어린", "아이들에게 매우 안전하다"): "않은|안|못|없는",
}
LOST = [(first, last, words) for (first, last), row in DRUG.items() for words in row.split("|")]
#: Sentences in which the words between bars say that what is around them is not so, or not always.
REVERSED = [
    "The ministry of the north |withdrew| its offer to the miners",
    "The new tunnel |has yet to| open to the traffic",
    "Das alte Gerät |versagte und| misst den Druck im Kessel",
    "Die Bank hat |den Antrag zurückgewiesen und| das Geld gezahlt",
    "Les vieux du village |rares sont ceux qui| savaient lire la lettre",
    "El juez de la ciudad |vetó| la venta del terreno",
    "Il giudice di Roma |vietò| la vendita del terreno",
    "Quel vecchio motore |a malapena| funziona con il freddo",
    "O tribunal da cidade |vetou| a venda do terreno",
    "De rechter in Leiden |verbood| de verkoop van het land",
    "De oude fabriek |stopte met| het maken van papier",
    "Den gamla fabriken |slutade| tillverka papper i mars",
    "Den gamle fabrik |holdt op med at| lave papir i marts",
    "Den nye dommeren |forbød| salget av den jorda",
    "Tänään minä itse |en| allekirjoita sopimusta huomenna",
    "Stara fabryka szkła |przestała| produkować papier w marcu",
    "Soud v Brně |zamítl| prodej toho pozemku",
    "Суд у Києві |скасував| продаж цієї землі",
    "Новый суд города |отменил| продажу этой земли",
    "Το νέο δικαστήριο |ακύρωσε| την πώληση της γης",
    "Şehirdeki yeni mahkeme |iptal etti ve| arazinin satışını duyurdu",
    "A régi gyár |abbahagyta| a papír gyártását",
    "المدرسة الجديدة هنا |تفتقر إلى| معلمين جدد للفيزياء",
    "בית המשפט בעיר |אסר| את מכירת הקרקע",
    "شرکت بزرگ ما |خودداری کرد| از پرداخت مزد کارگران",
    "यह दुकान शहर में |सोमवार को छोड़कर| हर दिन खुलती है",
    "ঢাকার বড় আদালত |বাতিল করে| জমি বিক্রির সেই আদেশ",
    "புதிய நகர நீதிமன்றம் |ரத்து செய்தது| அந்த நிலத்தின் விற்பனையை",
    "โรงเรียนแห่งนี้|ขาด|ครูฟิสิกส์ในปีนี้",
    "Tòa án thành phố |hủy| việc bán mảnh đất đó",
    "Pengadilan kota itu |melarang| penjualan tanah yang luas",
    "그날 밤에 우리는 |아무도| 선장이 배를 떠나는 것을",
    "这座城市的法院|驳回|出售这块土地的请求",
    "Kungen av landet |låtsades| tro på historien om resan",
    "Król tego kraju |udawał, że| wierzy w opowieść podróżnego",
    "Старый король тогда |притворился, что| верит рассказу этого путника",
    "الملك العجوز يومها |تظاهر بأنه| يصدق قصة ذلك المسافر",
    "Nhà vua già |giả vờ| tin câu chuyện của người khách",
    "El vino tinto es |todo menos| barato en esta región",
    "町の裁判所は先月|却下し、|土地の売却の申請を",
    "The drug is |\u2260| safe for small children",
    "Das Mittel ist |dem Namen nach| sicher für kleine Kinder",
    "The drug is |, in theory,| safe for small children",
    "The mayor of Hull |questioned| the claim that the mill is safe",
    "Фірма цього міста |рідко| лагодить міст узимку чи навесні",
    "Фирмата на този град |забрави| да поправи моста тази година",
    "Tvrtka iz ovoga grada |rijetko| popravlja most ljeti ili zimi",
    "Aquesta empresa de Vic |amb prou feines| repara el pont a l'hivern",
    "Firma z tohto mesta |zabudla| opraviť starý most v lete",
    "Podjetje iz tega mesta |pozabilo| popraviti stari most letos poleti",
    "Įmonė iš šio miesto |pamiršo| taisyti seną tiltą šiais metais",
    "Uzņēmums no šīs pilsētas |aizmirsa| labot veco tiltu šogad vasarā",
    "See linna suur firma |unustas| silda sel aastal suvel parandada",
    "Ndërmarrja e këtij qyteti |rrallë| e riparon urën e vjetër",
    "Kampuni ya mji huu |mara chache| hukarabati daraja la zamani",
    "یہ دوا پانچ سال کے |بمشکل| بچوں کے لیے محفوظ ہے",
    "Այս քաղաքի ընկերությունը հաճախ |հազիվ| նորոգում է հին կամուրջը",
    "ამ ქალაქის დიდი კომპანია |იშვიათად| აკეთებს ძველ დიდ ხიდს",
    "이 도시의 회사는 올해 |아직| 다리를 고친다고 발표했다",
    "Công ty của thành phố |quên| sửa cây cầu trong năm nay",
]
LOST += [(first.strip(), last.strip(), words.strip()) for first, words, last in (row.split("|") for row in REVERSED)]


# What is left out may turn the statement round although none of its words is listed.
DOUBTFUL = [
    "The drug is |laughably| safe for small children.",
    "The old mayor has |on a whim| signed the sale of the mill.",
    "The ferry can |once a century| carry 40 cars.",
    "Das Mittel ist |seltenst| sicher für kleine Kinder.",
    "Le vin rouge est |risiblement| bon marché dans cette région.",
    "El vino tinto es |ridículamente| barato en esta región.",
    "Il vino rosso è |asseritamente| buono in questa regione.",
    "Het middel is |lachwekkend| veilig voor kleine kinderen.",
    "Ten most jest |śmiesznie| bezpieczny dla samochodów.",
    "Этот мост будет |смехотворно| безопасен для машин.",
    "Η γέφυρα είναι |γελοία| ασφαλής για όλους.",
    "The firm in Hull |broke its promise that it| had sold the mill.",
    "The firm in Hull |was asked over dinner whether| it had sold the mill.",
    "Der Verein |bildet sich ein, dass er| die Mühle besitzt.",
    "La firme de la ville |rêvait la nuit qu'elle| vendait le moulin.",
    "La empresa de la ciudad |soñaba por la noche que| vendía el molino.",
    "Het bedrijf in de stad |droomde ervan dat het| de molen heeft verkocht.",
    "Firma z tego miasta |śniła w nocy, że| sprzedała stary młyn.",
    "Фирма из этого города |мечтала о том, что| продала старую мельницу.",
    "A cég a városban |azzal dicsekszik, hogy| eladta a régi malmot.",
    "شرکت این شهر |در خواب دید که| آسیاب را فروخت.",
]
HARMLESS = [
    "The old mayor |of the town| signed the sale of the mill.",
    "The town had built 40 |sturdy| mills by the river.",
    "The mayor |quickly| signed the sale of the mill.",
    "The mayor said |that| the sale of the mill was signed.",
    "The old mayor |of the town that year| signed the sale of the mill.",
    "The old mayor was, |he said,| glad of the sale of the mill.",
    "The old mayor |resented it. He| signed the sale of the mill.",
    "The old mayor was in the town on Monday and |signed the| sale of the mill.",
    "It was late |in the year. The| mayor signed the sale of the mill.",
    "Der Verkauf der Mühle |am 4. Mai 1921| ging schnell.",
    "Wielki drewniany most |miejski| zbudowano w 1750 roku.",
    "大磨坊的出售|在昨天的会上|由市长签署。",
    "老いた市長は|町の人々に|水車小屋の売却を語った。",
]


@pytest.mark.parametrize("row", DOUBTFUL)
def test_gap_in_doubt_is_not_found(row: str) -> None:
    """A few words behind an auxiliary, and what governs a clause, are in doubt; the verdict names them and where."""
    first, words, last = row.split("|")
    verdict = align(f"{first}\u2026{last}", ["It rained.", f"{first}{words}{last}"])
    assert not verdict.ok
    assert f'leaves out "{words}" (contexts[1]), which may turn it round' in str(verdict.reason)


@pytest.mark.parametrize("row", HARMLESS)
def test_gap_elsewhere_is_found(row: str) -> None:
    """Other words that no list has may be left out, and a clause or a sentence anywhere."""
    first, words, last = row.split("|")
    verdict = align(f"{first}\u2026{last}", [f"{first}{words}{last}"])
    assert verdict.ok, verdict.reason


@pytest.mark.parametrize(("first", "last", "words"), LOST)
def test_negation_is_never_lost_in_a_gap(first: str, last: str, words: str) -> None:
    """Wherever in a gap of any length a word stands that turns the statement round, the verdict is no, and names it."""
    space = "" if len(first.split()) == 1 else " "
    filler = space.join(["在那时候" if not space else "nopo rito"] * 30)
    for mark, left_out in (
        ("\u2026", words),
        (" [...] ", f"{words}{space}{filler}"),
        (" ... ", f"{filler}{space}{words}"),
        (" \u2026 ", f"{filler},{space}{words}, {filler}"),
    ):
        verdict = align(f"{first}{mark}{last}", [f"{first}{space}{left_out}{space}{last}."])
        assert (verdict.ok, "leaves out" in str(verdict.reason)) == (False, True), verdict.reason
    assert align(f"{first} \u2026 {last}", [f"{first}{space}{filler}{space}{last}."]).ok


@pytest.mark.parametrize(
    ("span", "context", "lost"),
    [
        ("The dam was [...] said that it is safe", "The dam was new. It is not said that it is safe.", "not"),
        ("The dam is safe \u2026 The town agreed", "The dam is safe. That is not true. The town agreed to it.", "not"),
        ("The dam is safe \u2026 the town", "The dam is safe. It rained. Hardly anybody in the town came.", "Hardly"),
        ("The dam is \u2026 safe for now", "The dam is, says Prof. Ames, not what Dr. Bell calls safe for now.", "not"),
        ("they [all] left the town", "In May they hardly left the town.", "hardly"),
        (
            "The dam is safe \u2026 The town agreed",
            "The dam is safe. Nobody here agrees. The town agreed to it.",
            "Nobody",
        ),
        (
            "The dam is safe \u2026 The town agreed",
            "The dam is safe. Much later all of the men came to the mill. Few people agree. The town agreed to it.",
            "Few",
        ),
        (
            "The dam is \u2026 safe for now",
            "The dam is, says Prof. Ames of the old town by the long sea, not at all what Dr. Bell calls safe for now.",
            "not",
        ),
        ("the dam is \u2026 safe for us", "Here the dam is _not_ at all safe for us.", "not"),
        ("the dam is \u2026 safe for us", "Here the dam is **ＮＯＴ** safe for us.", "ＮＯＴ"),
        ("the dam is \u2026 safe for us", "Here the dam is nev-\ner safe for us.", "never"),
        ("der Damm ist \u2026 für uns sicher", "Aber der Damm ist n i c h t für uns sicher.", "nicht"),
        ("the dam is \u2026 safe for us", "Here the dam is no\u00adt safe for us.", "no\u00adt"),
        ("The dam is far \u2026 safe", "The dam is far from safe, we think.", "far from"),
        ("in Paris il n'a \u2026 vu le fleuve", "Et in Paris il n'a pas vu le fleuve.", "pas"),
        (
            "we saw that he \u2026 left the town",
            "We saw that he never left the town. We saw that he, too, was not there.",
            "never",
        ),
        # The ends of a quotation: what the ellipsis or the bracket there stands for.
        ("\u2026 saw the captain leave the ship", "Nobody saw the captain leave the ship.", "Nobody"),
        (
            "[\u2026] hat den Dieb am Bahnhof gesehen",
            "Es regnete. Kaum jemand hat den Dieb am Bahnhof gesehen.",
            "Kaum",
        ),
        (
            "Köprü kamyonlar için güvenli \u2026",
            "Köprü kamyonlar için güvenli değil.",
            "değil",
        ),
        ("\u2026 the works will close", "Contrary to what was said, the works will close.", "Contrary"),
        ("[The crew] saw the captain leave the ship", "Nobody saw the captain leave the ship.", "Nobody"),
        # Letters of another script, of another form, composed or not; other apostrophes.
        ("They did \u2026 approve the loan", "They did n\u043et approve the loan.", "n\u043et"),
        (
            "Они \u2026 одобрили заём для порта",
            "Они нe одобрили заём для порта.",
            "нe",
        ),
        (
            "They did \u2026 approve the loan",
            "They did \U0001d40d\U0001d40e\U0001d413 approve the loan.",
            "\U0001d40d\U0001d40e\U0001d413",
        ),
        ("The bridge \u2026 open to lorries", "The bridge isn\u2032t open to lorries.", "isn\u2032t"),
        (
            "다리는 모든 트럭에게 \u2026 길이라고 했다",
            unicodedata.normalize(
                "NFD",
                "다리는 모든 트럭에게 안전하지 않은 길이라고 했다.",
            ),
            unicodedata.normalize("NFD", "않은"),
        ),
        # Verbs that reverse what follows.
        ("The council \u2026 the bridge over the river", "The council opposed the bridge over the river.", "opposed"),
        (
            "Le conseil \u2026 la construction du pont",
            "Le conseil s’est opposé à la construction du pont.",
            "s’est opposé",
        ),
        ("Valtuusto \u2026 uuden sillan rakentamista", "Valtuusto vastusti uuden sillan rakentamista.", "vastusti"),
        ("委员会……新桥的建设计划", "委员会反对新桥的建设计划", "反对"),
    ],
)
def test_what_an_edit_leaves_out_is_named(span: str, context: str, lost: str) -> None:
    """Sentences, abbreviations and brackets hide no negation; a short sentence that denies its neighbour counts."""
    verdict = align(span, [context])
    assert (verdict.ok, f'leaves out "{lost}"' in str(verdict.reason)) == (False, True), verdict.reason


@pytest.mark.parametrize(
    ("span", "context"),
    [
        (
            "The dam is safe \u2026 The town agreed to pay",
            "The dam is safe. Men who had come by boat did not stay long. The town agreed to pay.",
        ),
        (
            "Le pont est \u2026 pas fini ce soir",
            "Le pont est long et n'est pas fini ce soir.",
        ),
        (
            "We saw that he \u2026 left the town",
            "We saw that he was not there. We saw that he, as always, left the town.",
        ),
        ("\u2026 stayed in the town", "They did not fish, and so stayed in the town."),
        ("They stayed in the town \u2026", "They stayed in the town all winter, but did not fish."),
        ("[The men] stayed \u2026 in the town", "It did not rain. They stayed long in the town."),
        ("ダムは安全です\u2026町は払うと決めました", "ダムは安全です。船は来ないから、そこで町は払うと決めました。"),
        (
            "ダムは安全です\u2026町は払うと決めました",
            "ダムは安全です。船で来た人々は長く町に残りませんでした。町は払うと決めました。",
        ),
    ],
)
def test_negation_that_bears_on_nothing_quoted_may_be_left_out(span: str, context: str) -> None:
    """A sentence of its own, a particle whose partner is quoted, and a place farther off do not count."""
    assert str(align(span, [context]).reason).startswith("found allowing for ellipsis")


@pytest.mark.parametrize("case", FOUND)
def test_wording_of_the_source_is_found(case: str) -> None:
    """A span that differs in what quoting may differ in is found; verbatim matching refuses what an editor changed."""
    span, context, tolerance = FOUND[case]
    verdict = align(span, ["Something else entirely.", context])
    assert verdict.ok, verdict.nearest
    assert tolerance in str(verdict.reason)
    assert (verdict.text, verdict.nearest) == (span, None)
    assert {piece.context for piece in verdict.evidence} == {1}
    assert all(context[piece.start : piece.end] == piece.text for piece in verdict.evidence)
    folding = not any(word in tolerance for word in ("punctuation", "ellipsis", "bracket"))
    assert align(span, [context], matching="verbatim").ok is folding


@pytest.mark.parametrize("case", NOT_FOUND)
def test_other_wording_is_never_found(case: str) -> None:
    """A span that says something else than the source is not found, whatever it shares with it."""
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
        (
            "about to turn north when the ice closed",
            CHUNKS,
            [(0, "about to turn"), (1, "north when the ice closed")],
        ),
        (
            f"{LONG} little food",
            ("The survey.", *PAGES),
            [(1, "were about to"), (2, PAGES[1]), (3, "they wintered on the island"), (4, "with little food")],
        ),
    ],
)
def test_span_over_chunks_that_adjoin_in_mid_sentence_is_found_with_each(
    span: str, contexts: tuple[str, ...], pieces: list[tuple[int, str]]
) -> None:
    """A span may run through whole chunks, as long as each of them stops in mid-sentence and the next follows it."""
    verdict = align(span, contexts)
    assert verdict.ok
    *first, last = (f"contexts[{context}]" for context, _ in pieces)
    assert verdict.reason == f"found across adjoining chunks: it runs over {', '.join(first)} and {last}"
    assert [(piece.context, piece.text) for piece in verdict.evidence] == pieces
    assert not align(span, contexts, matching="verbatim").ok


@pytest.mark.parametrize("size", [20, 30, 50])
@pytest.mark.parametrize("language", ["English", "Korean"])
def test_span_over_chunks_is_found_without_the_note_marks_in_them(size: int, language: str) -> None:
    """Chunks may be shorter than the span, and the marks of notes are in any of them."""
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
    """Two chunks that share enough text are one text, whichever is listed first."""
    chunks = [
        "The crew had mapped the eastern shore and were about to turn",
        "astern shore and were about to turn north again.",
    ]
    verdict = align("mapped the eastern shore and were about to turn north again", chunks[::order], matching="verbatim")
    assert verdict.ok
    assert "adjoining chunks" in str(verdict.reason)
    assert sorted(piece.text for piece in verdict.evidence) == [
        "mapped the eastern shore and were about to turn",
        "north again",
    ]


@pytest.mark.parametrize(
    ("span", "contexts"),
    [
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
    ],
)
def test_pieces_of_unconnected_contexts_are_not_joined(span: str, contexts: tuple[str, ...]) -> None:
    """Contexts are joined only where one stops in mid-sentence and the next follows it, without another word."""
    assert not align(span, contexts).ok


@pytest.mark.parametrize("size", [3, 4, 6, 10])
def test_span_over_many_chunks_may_have_a_short_word_at_its_ends(size: int) -> None:
    """However the words fall, the first and the last chunk may hold no more than *at* or *to* of the span."""
    words = " ".join(PAGES[:3]).split()
    chunks = [" ".join(words[at : at + size]) for at in range(0, len(words), size)]
    spans = [" ".join(words[start:end]) for start in range(10) for end in range(start + 2, len(words) + 1)]
    assert [span for span in spans if not align(span, chunks).ok] == []


@pytest.mark.parametrize("count", [10, 80])
def test_span_over_two_of_many_chunks_without_spaces_is_found(count: int) -> None:
    """However many chunks end or begin with characters of the quotation, the two it runs over are found."""
    quote = "老人说河水在夜里漫过了堤岸所以村子里的人都走到山上去等天亮"
    others = [f"{quote[at % 9 + 15 :][:2]}{at}的话是说过的{quote[at % 14 :][:2]}" for at in range(count)]
    verdict = align(quote, [*others, f"那一天{quote[:17]}", f"{quote[17:]}以后再回来", *others])
    assert [piece.context for piece in verdict.evidence] == [count, count + 1]


def test_chunks_that_repeat_or_cut_words_are_joined() -> None:
    """Chunks that repeat each other follow each other; one may end inside a word that the next has in full."""
    assert align("the the the the the the the", ["the the"] * 9).ok
    chunks = ["It was the first survey of the eastern sho", "first survey of the eastern shore that was of any use."]
    assert align("It was the first survey of the eastern shore that was of any use", chunks, matching="verbatim").ok


def test_span_over_many_chunks_that_overlap_is_found_verbatim() -> None:
    """Chunks cut by a sliding window are one text, wherever the window cut it."""
    text = " ".join(PAGES)
    chunks = [text[at : at + 80] for at in range(0, len(text) - 30, 50)]
    span = text[text.index("eastern") : text.index(" with little")]
    verdict = align(span, chunks, matching="verbatim")
    assert verdict.ok
    assert len(verdict.evidence) > len(("one", "two"))
    assert "".join(piece.text for piece in verdict.evidence).replace(" ", "") == span.rstrip(",").replace(" ", "")


def test_span_that_ends_before_a_raised_note_mark_is_found_without_it() -> None:
    """The mark of a note on the last word is no letter of it, unless the whole text must be as it is written."""
    context = "They say the ferry sank at noon\u00b9, not later."
    verdict = align("the ferry sank at noon", [context])
    assert verdict.ok
    assert [piece.text for piece in verdict.evidence] == ["the ferry sank at noon"]
    assert not align("the ferry sank at noon", [context], matching="verbatim").ok


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
        ("夜里漫过了堤岸", "\U0001f30a河水在夜里\n漫过了堤岸。", "夜里\n漫过了堤岸"),
    ],
)
def test_evidence_is_a_slice_of_the_original(span: str, context: str, text: str) -> None:
    """Evidence has the offsets and the text of the original, however much folding changed its length."""
    (piece,) = align(span, ["First.", context]).evidence
    assert piece.text == text
    assert context[piece.start : piece.end] == text
    assert piece.context == 1


@pytest.mark.parametrize("block", [200, 255, 256, 257, 511, 512, 5000, 70_000])
def test_evidence_is_right_far_into_a_long_context(block: int) -> None:
    """Offsets are right wherever in a long context a passage stands, even one whose folding changes lengths."""
    context = (
        "Stra\u00dfe \ufb01n \u2026 " * (block // 14)
        + "-" * (block % 14)
        + " Der Flu\u00df war tief. "
        + "\ufb01n " * 50
    )
    (piece,) = align("DER FLUSS WAR TIEF", [context]).evidence
    assert piece.text == "Der Flu\u00df war tief"
    assert context[piece.start : piece.end] == piece.text


def test_passage_that_needs_least_is_preferred() -> None:
    """Of several passages that agree, the verdict takes the one closest to what was written."""
    context = "THE OLD MILL ROAD. On The Old Mill Road it rained; the old mill road is long."
    verdict = align("the old mill road", [context])
    assert verdict.reason == "found, exact"
    assert verdict.evidence[0].start == context.rindex("the old mill road")
    # without one that is exact: case before typography
    verdict = align("the 'old' mill", ["The \u2018old\u2019 mill; THE 'old' MILL."])
    assert verdict.reason == "found after folding case"


def test_case_is_kept_on_request_and_nothing_else() -> None:
    """Without case folding a capital matters; white space, glyphs and markup still do not."""
    context = "The Ferry\n left \u2018the\u2019 **harbour**."
    assert align("Ferry left 'the' harbour", [context], casefold=False).ok
    assert not align("ferry left 'the' harbour", [context], casefold=False).ok
    assert align("[f]erry left \u201cthe\u201d harbour", [context], casefold=False).ok


@pytest.mark.parametrize(
    ("span", "context", "changes"),
    [
        (
            "The ferry left the harbour at ten, and nobody at all on board",
            FERRY,
            [("missing", "", "night"), ("added", "at all", "")],
        ),
        ("河水在夜里漫过了田野和村庄", "老人说，河水在夜里漫过了堤岸和村庄。", [("replaced", "田野", "堤岸")]),
        ("purple elephants sing quietly", FERRY, None),
        # some pieces occur, and too few to be like it
        ("storm qkuyy wk xjy qjxk", FERRY, None),
    ],
)
def test_nearest_passage_tells_what_differs(
    span: str, context: str, changes: list[tuple[str, str, str]] | None
) -> None:
    """Words are added, missing or replaced, characters where there are no spaces; what is unlike is no passage."""
    nearest = align(span, [context]).nearest
    found = nearest and [(c.kind, c.said, c.source) for c in nearest.changes if c.kind != "same"]
    assert found == changes


@pytest.mark.parametrize(
    ("span", "context", "matching", "changes"),
    [
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
def test_difference_is_named_where_all_words_are_the_same(
    span: str, context: str, matching: Matching, changes: list[tuple[str, str]]
) -> None:
    """Of a passage with the same words the sign that differs is shown, or how the word or number goes on."""
    nearest = align(span, [context], matching=matching).nearest
    assert nearest is not None
    assert [(change.said, change.source) for change in nearest.changes if change.kind != "same"] == changes


def test_nearest_passage_of_a_changed_word() -> None:
    """What is not found comes with the closest passage in whole words, and the words that differ."""
    context = f"It rained all day. {FERRY} Then it was quiet."
    verdict = align("The night ferry left the island at ten, and nobody on board expected", ["No.", context])
    nearest = verdict.nearest
    assert nearest is not None
    assert verdict.reason == "not found in any context"
    assert nearest.context == 1
    assert nearest.text == "The night ferry left the harbour at ten, and nobody on board expected"
    assert context[nearest.start : nearest.end] == nearest.text
    assert 0.8 < nearest.similarity < 1
    assert [(change.kind, change.said, change.source) for change in nearest.changes] == [
        ("same", "The night ferry left the", "The night ferry left the"),
        ("replaced", "island", "harbour"),
        ("same", "at ten, and nobody on board expected", "at ten, and nobody on board expected"),
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
        ("purple elephants sing quietly", [FERRY], "not found in any context"),
    ],
)
def test_what_is_not_found_says_why(span: str, contexts: object, reason: str) -> None:
    """Blank spans and contexts, forbidden edits and pieces in the wrong place are named; nothing of it is like them."""
    verdict = align(span, contexts)
    assert (verdict.ok, verdict.text) == (False, span)
    assert reason in str(verdict.reason)


def test_ellipsis_has_one_piece_of_evidence_for_each_fragment() -> None:
    """The evidence of an edited span lists its fragments in order."""
    verdict = align("The night ferry \u2026 nobody on board expected the storm", [FERRY])
    assert [piece.text for piece in verdict.evidence] == ["The night ferry", "nobody on board expected the storm"]


@pytest.mark.parametrize(
    ("span", "ok"), [("!!!", True), ("???", False), ("\u2026", False), ("\U0001f31e\U0001f31e", True), ("[]", False)]
)
def test_span_without_words_must_stand_there_as_it_is(span: str, *, ok: bool) -> None:
    """Punctuation and symbols alone are looked for exactly."""
    assert align(span, ["Stop!!! It is \U0001f31e\U0001f31e now."]).ok is ok


def test_context_may_be_anything_that_holds_text() -> None:
    """A bare string is one context, and documents of other libraries are read."""

    @dataclass
    class Document:
        page_content: str

    assert align("the night ferry left", FERRY).ok
    assert align("the night ferry left", [Document("No."), Document(FERRY)]).evidence[0].context == 1
    with pytest.raises(TypeError, match=r"contexts\[1\]"):
        align("the night ferry left", [FERRY, 5])


def test_unknown_matching_is_refused() -> None:
    """A wrong way of matching says which ones there are."""
    with pytest.raises(ValueError, match="matching must be 'editorial' or 'verbatim', not 'loose'"):
        align("the night ferry left", [FERRY], matching=cast("Matching", "loose"))


def test_many_spans_are_found_like_one() -> None:
    """The index that many searches build gives the verdicts that single searches give."""
    words = [f"{a}{b}" for a in ("mal", "ter", "quin", "so", "val", "dre") for b in ("o", "any", "iver", "est", "un")]
    tokens = [words[(i * i * 7 + i // 3) % len(words)] for i in range(3000)]
    spans = [" ".join(tokens[i : i + 5 + i % 4]) for i in range(0, 2900, 17)]
    spans += [f"{span} zebra {span}" for span in spans[::3]]
    together = Sources([" ".join(tokens)]).align(spans)
    alone = [align(span, [" ".join(tokens)]) for span in spans]
    assert [(verdict.ok, verdict.evidence) for verdict in together] == [(one.ok, one.evidence) for one in alone]


@pytest.mark.parametrize(
    "span",
    [
        "left the harbour",
        "left … at ten",
        "left the Harbour!",
        "left no harbour",
        "nobody … the harbour",
        "…",
        "?!",
        "",
        " ",
    ],
)
@pytest.mark.parametrize("contexts", [[FERRY], [f"{FERRY} … ?!"], [], [""]])
@pytest.mark.parametrize("matching", MATCHINGS)
def test_whether_a_span_is_found_takes_no_nearest_passage(
    span: str, contexts: list[str], matching: Matching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found where its verdict says so; the nearest passage, which takes most of the time, is not computed."""
    sources = Sources(contexts, matching=matching)
    ok = sources.align([span])[0].ok
    monkeypatch.setattr("pytest_ragmetrics.text.alignment.find_nearest", None)
    assert sources.has(span) is ok


def test_chunks_are_looked_at_in_their_order() -> None:
    """Of more chunks than a quotation has letters a bounded number is looked at, whatever the hash seed the same."""
    letters = "lefttheharbouratten"
    pieces = [letters[at : at + 4] for at in range(len(letters) - 3)] * 6
    chunks = ["The ferry left the", "harbour at ten, as always.", *(f"{piece}, or {piece}" for piece in pieces)]
    verdict = align("left the harbour at ten", chunks)
    assert [piece.context for piece in verdict.evidence] == [0, 1]


def test_a_span_without_words_is_found_as_it_is() -> None:
    """Signs have no folding: the evidence is the first place where they are."""
    (piece,) = align(" ?! ", ["None.", "What?! No?!"]).evidence
    assert (piece.context, piece.start, piece.end, piece.text) == (1, 4, 6, "?!")
    assert not align("?!", ["What? No!"]).ok


LETTERS = st.text(alphabet="abcdeéßİﬁ\u0301", min_size=1, max_size=4)
SEPARATORS = st.sampled_from(
    [" ", "\n", "  ", "-", "\u2014", ", ", ". ", " \u201c", "\u2019", " **", "&amp;", "\u00ad", "-\n", "\u2026 "]
)
TEXTS = st.lists(st.tuples(LETTERS, SEPARATORS), max_size=30).map(lambda parts: "".join(a + b for a, b in parts))


@given(context=TEXTS, start=st.integers(0, 60), length=st.integers(1, 60))
def test_what_is_found_stands_there(context: str, start: int, length: int) -> None:
    """Whatever slice of a text is asked for, a verdict never has evidence that is not a slice of the context."""
    span = context[start : start + length]
    for matching in MATCHINGS:
        verdict = align(span, [context], matching=matching)
        for piece in verdict.evidence:
            assert context[piece.start : piece.end] == piece.text
        if verdict.nearest:
            assert context[verdict.nearest.start : verdict.nearest.end] == verdict.nearest.text
            assert 0 <= verdict.nearest.similarity <= 1
            assert any(change.kind != "same" for change in verdict.nearest.changes)


@given(words=st.lists(st.sampled_from(FERRY.split()), min_size=3, max_size=8), place=st.integers(0, 7))
@settings(max_examples=20, deadline=None)
def test_a_foreign_word_is_never_found(words: list[str], place: int) -> None:
    """A span with one word that is nowhere in the source is not found."""
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
    """Any run of words of the source is found verbatim however it is spaced, capitalised and emphasised."""
    words = FERRY.split()[start : start + length]
    span = "".join(word + space for word, space in zip(words, spaces, strict=False)).strip()
    span = f"**{span}**" if bold else span
    verdict = align(span.upper() if upper else span, [FERRY], matching="verbatim")
    assert verdict.ok
    assert verdict.evidence[0].text.split() == " ".join(words).rstrip(",.").split()


#: Letters, marks and signs of all kinds; a fixed set, as building that of all characters takes hypothesis seconds.
ANYTHING = st.text(
    alphabet="aZéßİﬁ½²漢がक्षم9\u0301\u200b\u00ad\x00\x1e\ud800😀 \n\t\"'“…[].,-–*_`>&;<#\\()", max_size=60
)


@given(span=ANYTHING, context=ANYTHING, extra=ANYTHING)
def test_no_text_breaks_it(span: str, context: str, extra: str) -> None:
    """Any characters at all are aligned without an error."""
    for text in (span, extra + context + extra):
        assert align(text, [context, extra]).text == text


@pytest.mark.parametrize(
    ("span", "contexts", "lost"),
    [
        ("… safe for children under five", ["The drug is not", "safe for children under five."], "not"),
        ("[…] sicher für Kinder unter fünf", ["Es ist keineswegs", "ganz sicher für Kinder unter fünf."], "keineswegs"),
        ("… безопасно для детей дома", ["Это средство не", "безопасно для детей дома."], "не"),
        ("… Kindern unter fünf Jahren zu geben", ["Es ist nie", "Kindern unter fünf Jahren zu geben."], "nie"),
        ("safe for children under five …", ["It is safe for children under five", "only with a doctor."], "only"),
        # Chunks that share 20 characters, wherever they are.
        (
            "… safe for children under five",
            ["safe for children under five.", "So.", "Not safe for children under"],
            "Not",
        ),
        ("… safe for children under five", ["The drug is not safe for", "children under five."], "not"),
        # Another sentence, clause, paragraph or text.
        ("… safe for children under five", ["The drug is not good.", "safe for children under five."], None),
        ("… safe for children under five", ["It did not rain, and it is", "safe for children under five."], None),
        ("… safe for children under five", ["The drug is not\n\n", "safe for children under five."], None),
        ("… safe for children under five", ["The drug is not", "- safe for children under five."], None),
        ("… safe for children under five", ["Not for sale", "Toys are safe for children under five."], None),
        ("… safe for children under five", ["The drug is not", "So.", "safe for children under five."], None),
        ("… safe for children under five", ["Not safe for kids", "Safe for children under five."], None),
    ],
)
def test_an_ellipsis_at_an_edge_is_looked_behind_in_the_chunk_beside(
    span: str, contexts: list[str], lost: str | None
) -> None:
    """What turns the clause round may be at the end of the chunk before, or the beginning of the next."""
    verdict = align(span, contexts)
    where = next((at for at, text in enumerate(contexts) if lost and lost in text), None)
    assert verdict.ok is (lost is None), verdict.reason
    assert lost is None or f'leaves out "{lost}" (contexts[{where}])' in str(verdict.reason)
