"""Finding quotations. In the texts of these tests ⟦ and ⟧ enclose what is to be found; they are taken out first."""

from __future__ import annotations

import re
import sys
from unicodedata import category

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ragmetrics.text.quotes.quotations import Quotation, find_quotations
from pytest_ragmetrics.text.words import count_words

#: Opening mark, closing mark, and a pair of another kind to nest inside.
MARKED = [
    *(('"', '"', "'", "'"), ("“", "”", "‘", "’"), ("``", "''", "‘", "’")),  # straight, curly, latex
    *(("``", '"', "‘", "’"), ("''", "''", "“", "”")),  # latex straight, two apostrophes
    *(("<q>", "</q>", "“", "”"), ("<q>", "</q>", "<q>", "</q>"), ("„", "“", "‚", "‘")),  # tag, tag in tag, german
    *(("„", '"', "'", "'"), ("„", "”", "«", "»"), (",,", "''", "“", "”")),  # german typed, polish, two commas
    *((",,", '"', "“", "”"), ("«\u00a0", "\u00a0»", "“", "”")),  # two commas typed, french
    *(("«\u202f", "\u202f»", "“", "”"), ("« ", " »", "“", "”")),  # french narrow, french spaced
    *(("«", "»", "‹", "›"), ("‹", "›", "«", "»"), ("»", "«", "›", "‹")),  # swiss, swiss single, inward
    *(("›", "‹", "»", "«"), ("”", "”", "’", "’"), ("»", "»", "”", "”")),  # inward single, swedish, swedish guillemets
    *(("‟", "”", "‘", "’"), ("❝", "❞", "❛", "❜"), ("″", "″", "‘", "’")),  # high reversed, ornaments, double primes
    *(("＂", "＂", "‘", "’"), ("״", "״", "׳", "׳"), ("「", "」", "『", "』")),  # full width, gershayim, corner
    *(("『", "』", "「", "」"), ("｢", "｣", "『", "』")),  # white corner, half width corner
    *(("﹁", "﹂", "﹃", "﹄"), ("〝", "〞", "「", "」")),  # vertical corner, prime quotes
    *(("〝", "〟", "「", "」"), ("“", '"', "‘", "’")),  # low prime quotes, mixed curly straight
    *(('"', "”", "‘", "’"), ("&quot;", "&quot;", "&lsquo;", "&rsquo;")),  # mixed straight curly, entity
    ("&ldquo;", "&rdquo;", "&#39;", "&#39;"),  # entity curly
    ("&#8222;", "&#8220;", "&#8218;", "&#8216;"),  # entity decimal
    ("&#xAB;", "&#xbb;", "&#x201c;", "&#x201D;"),  # entity hexadecimal
    *(("&laquo;&nbsp;", "&nbsp;&raquo;", "“", "”"), (r"\"", r"\"", "'", "'")),  # entity french, escaped
    *((r"\\\"", r"\\\"", "'", "'"), (r"\u201c", r"\u201d", "'", "'")),  # escaped twice, escaped code points
]
#: Single marks, which apostrophes between other words close.
SINGLE = [
    *(("‘", "’", "“", "”"), ("'", "'", '"', '"'), ("‚", "‘", "»", "«")),  # british, straight single, german single
    ("׳", "׳", "״", "״"),  # geresh
]
CONVENTIONS = [*MARKED, *SINGLE]
#: Plain, dialogue, apostrophes, lines, nested, reopened, unclosed, unopened.
TEMPLATES = [
    "The keeper noted {0}⟦the tide turns at noon⟧{1} in the log.",
    "{0}⟦The tide turns at noon,⟧{1} he noted. {0}⟦It always does so.⟧{1}",
    "It's O'Hara's, he noted ({0}⟦the keepers' tide isn't late⟧{1}), in '87.",
    "First: {0}⟦the tide turned,⟧{1} then\n{0}⟦it ran\nout again⟧{1}; **{0}⟦at last it stopped⟧{1}**!",
    "{0}⟦He said {2}it always turns{3} to her⟧{1} and {0}⟦{2}So it does!{3}⟧{1}.",
    "{0}⟦The tide turned.\n\n{0}It turned again.\n\n{0}It stopped⟧{1}, he noted.",
    "{0}The tide turned.\n\nIt turned {0}⟦at last and stopped⟧{1}, he noted.",
    "It turned{1}, he noted.\n\n{0}⟦It turned at last⟧{1}, he noted.",
]


def unmarked(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a text without ⟦ and ⟧, and the offsets of what they enclosed."""
    plain, spans, start = "", [], 0
    for character in text:
        if character == "⟦":
            start = len(plain)
        elif character == "⟧":
            spans.append((start, len(plain)))
        else:
            plain += character
    return plain, spans


def assert_found(*texts: str, least: int = 1) -> None:
    """Check that the quotations of at least so many words are those that are marked, in every text."""
    wrong = []
    for marked in texts:
        text, spans = unmarked(marked)
        found = [quotation for quotation in find_quotations(text) if quotation.words >= least]
        if [(it.start, it.end, it.text) for it in found] != [(start, end, text[start:end]) for start, end in spans]:
            wrong.append((ascii(marked), [(it.start, it.end, it.text) for it in found]))
    assert wrong == []


def test_a_quotation_says_what_and_where_it_is() -> None:
    found = Quotation(text="la marée monte", start=11, end=25, marks=("«", "»"), words=3)
    assert find_quotations("He wrote « la marée monte » twice.") == [found]
    assert find_quotations("> the tide rises")[0].marks == (">", "")
    assert find_quotations("&ldquo;the tide&rdquo;")[0].marks == ("&ldquo;", "&rdquo;")
    assert find_quotations(r"said \"the tide\" twice")[0].marks == (r"\"", r"\"")


def test_every_convention_is_read() -> None:
    assert_found(*(template.format(*marks) for marks in CONVENTIONS for template in TEMPLATES))


#: What a rule is about, and texts that it holds for; without ⟦ they have no quotation.
RULES = {
    "a text without quotations has none": ["", " ", "\n\n", "No mark at all.", "a > b & c", "`", "''", '""', "«»"],
    "apostrophes are not quotations": [
        "The Joneses' dog and the Smiths' cat aren't the neighbours' only worry.",
        "Give 'em the '98 figures, not the '97 ones; 'twas the clerks' error.",
        "'Tis true that Charles' house is Ann's, but Moses' laws aren't ours.",
        "Ye're goin' home t'morrow, an' I'm stayin' wi' th' lads' mother.",
        "Thus 'ouses and 'orses was all the cabbies' talk.",
        "Rock 'n' roll isn't dead; it's sleepin' in the singers' van in the '90s' dust.",
        "It’s the ’90s again: rock ’n’ roll, the boys’ toys and ’em all.",
        "‘Tis the season of the ‘90s; give ‘em the users’ guide.",
        "L'homme d'aujourd'hui n'est qu'un roseau ; c'est l’avis d’Étienne.",
        "Dell'arte, all'opera, un po' di tutto e nient'altro.",
        "Hans' Auto, Max' Haus und Felix' Hund; ich hab' kein' Zeit, 's ist spät.",
        "'s Avonds is 't koud in 's-Hertogenbosch, zo'n auto's en foto's.",
        "The boys ' tea is ready , they 're late and it is n't hot .",
    ],
    "measures years and primes are not quotations": [
        'They measured 5\'10" and 6\' 2" and 5\' 11½"; the door is 80" x 36".',
        "It is at 54° 20' 31\" N and 10° 8' 22\" E, 3' deep and 12\" wide.",
        "f'(x) = g'(x) and y'' + y' = 0; A'B' is parallel to AB.",
        "| mast | length |\n|---|---|\n| fore | 41' 8\" |\n| main | 52' 3\" |",
        'A 27" screen costs more than a 24" one, and "⟦the 32" ones are dear⟧", he says.',
        '"⟦The 12" pipe is far too wide,⟧" said the plumber, and 10" is not.',
        'Beside the 18" hatch stands "⟦keep it shut at sea⟧", beside the 20" one nothing.',
        "On the masters' list '⟦a hatch of 18\" by 20\"⟧' comes first, doesn't it?",
        *('"⟦We wed in 1999⟧" and "⟦parted in 2005⟧" are his words.', "“⟦The 18” hatch leaks⟧” stands in the log."),
        "The class of '06 said '⟦never say never again⟧' in '07.",
    ],
    # An opening mark that begins no elision and a closing one that ends no possessive make a quotation.
    "straight single marks quote where they cannot be apostrophes": [
        "The guide calls it '⟦a matter of taste⟧' in one place.",
        "She said '⟦I can't believe it's butter⟧' and '⟦I won't be back⟧'.",
        "'⟦Where's the cat?⟧' asked Tom. '⟦In the Smiths' garden,⟧' said Ann.",
        "'⟦Twenty years' experience is needed,⟧' the notice said.",
        "He used the words '⟦fast⟧', '⟦cheap⟧' and '⟦good⟧', but not '⟦all three at once⟧'.",
        "According to the owners' manual, '⟦do not open the users' panel⟧', which isn't new.",
        "'⟦Is this the way?⟧' he asked; '⟦round the bend?⟧'",
        "Selon lui, '⟦l'heure d'hier n'est plus⟧', rien d'autre.",
        "'⟦Er sei's gewesen⟧', sagte Hans' Mutter, '⟦und sonst keiner⟧'.",
    ],
    "a backtick opens what an apostrophe closes": [
        "The log says `⟦the tide isn't late⟧', and then `⟦it turned⟧'; **`⟦at last⟧'**.",
        "`⟦Don't go there,⟧' she said, `⟦it's the keepers' boat.⟧'",
        "``⟦He said `it always turns' to her⟧'' and (`⟦so they say⟧').",
        "`tis the boys' tea, `'twas the girls' day, and `⟦it never was⟧'.",
        "the `code` and the `⟦tide⟧' and the `code's` end",
        "`⟦the tide of 1912⟧' is there and\n`⟦the ebb of 1913⟧'; the log is\n`⟦lost⟧'.",
    ],
    "a backtick that opens nothing": [
        *("`Abd al-Malik and the others' sons ruled.", "`Ali said that the people's house is the rulers' house."),
        *("The `users table is large, and the others' rows are few.", "Hawai`i and the islands' people aren't far."),
        *("Don`t do it, it`s the boys' best idea.", "SELECT `name`, `age` FROM `users` WHERE `zip` != '';"),
        *("The angle is 40\u00b0 26` 46'' N.", "List<Q> and Map<Q> are generic, and List<Q> is the shorter."),
    ],
    # The one glyph that is both closes only where that explains the other marks.
    "a closing mark is told from an apostrophe": [
        "‘⟦It’s the sailors’ boat,⟧’ said he, ‘⟦and the sailors’ oars.⟧’",
        *("‘⟦The dogs’ dinner?⟧’ ‘⟦Whose?⟧’ ‘⟦The dogs’.⟧’", "‘⟦I’m goin’ ’ome,⟧’ said he, ‘⟦to the lads’ place.⟧’"),
        "‘⟦Tis the season for the lads’ pranks,⟧’ he said.",
        "She noted ‘⟦D’Arcy’s mate won’t take the pilots’ word⟧’ twice.",
        "‘⟦She called it “the boys’ own war” in ’42,⟧’ he wrote.",
        "‘⟦Der Wächter fand dich⟧’, sagte er. ‘⟦Er weckte den Vater.⟧’",
        "“⟦It ain’t the lads’ fault,⟧” says ’e. “⟦’Tis the masters’ own.⟧”",
        "’⟦Tidvattnet vänder vid tolv,⟧’ sade Lars’ bror.",
        "Nils’ dagbok nämner ”⟦det stigande vattnet⟧” två gånger.",
    ],
    "marks are read with and without spaces round them": [
        'It says "⟦the tide turns⟧"—"⟦it always does⟧"/"⟦so they say⟧".',
        *('She said--"⟦The tide turns at noon⟧"--and left.', '"⟦But the tide--⟧" "⟦--turns at noon?⟧"'),
        '"⟦...the tide turns...⟧" and "⟦… it does …⟧" and "⟦[T]he tide⟧" and "⟦(so to speak)⟧"',
        *('He asked:"⟦Does it turn?⟧"("⟦It does⟧")', "The title=\"⟦The tide⟧\" and x='⟦the ebb and flow⟧'."),
        '"⟦The tide turns⟧"[1], "⟦it always does⟧"² and "⟦so they say⟧"(Moe 2001).',
        '"⟦The tide turns!⟧"she said."⟦It does!⟧"',
        'the "⟦tide rule⟧"\'s end, the “⟦tide rule⟧”’s end and the „⟦Tidenregel⟧“-Ende',
        *("l'\"⟦âge d'or du port⟧\", l’“⟦âge d'or⟧” et l'«⟦âge d'or⟧»", '"⟦The tide turns⟧""⟦it does⟧"'),
        *('“⟦the tide turns⟧" and "⟦it does⟧”', '他说"⟦潮水中午才会转向⟧"然后又说"⟦明天再来看看⟧"就走了。'),
        *("他说'⟦潮水中午才会转向⟧'就走了。", "그는 \"⟦조수는 정오에 바뀐다⟧\"라고, 또 '⟦늘 그렇다⟧'라고 말했다."),
        *('เขาพูดว่า "⟦น้ำขึ้นตอนเที่ยง⟧" แล้วก็ไป', 'הוא אמר "⟦הגאות בצהריים⟧" והלך; צה"ל וארה"ב לא הגיבו.'),
    ],
    "tokenised text is read": [
        '" ⟦The tide turns ,⟧ " he wrote , " ⟦it always does .⟧ "',
        "`` ⟦The tide turns ,⟧ '' he wrote , `` ⟦it always does .⟧ ''",
        "“ ⟦It ’s the boys ’ tide ,⟧ ” he wrote .\n“ ⟦Do n’t\nask .⟧\n” She left .",
        "‘ ⟦It ’s the boys ’ tide ,⟧ ’ he wrote .",
        "' ⟦It 's the boys ' tide ,⟧ ' he wrote , ' ⟦and it is n't late .⟧ '",
        *("» ⟦Guten Tag⟧ « , sagte er , » ⟦wie geht es ?⟧ «", "» ⟦God dag⟧ » , sade han , » ⟦hur mår du ?⟧ »"),
        "« ⟦Bonjour⟧ » , dit-il , « ⟦comment allez-vous ?⟧ »",
    ],
    "a mark without a partner swallows nothing": [
        *('It reads "call me at five. Then "⟦do not call⟧" again.', 'It says "⟦the first part⟧" and "the second part.'),
        'It says the first part" and "⟦the second part⟧".',
        "He left. “The tide turns. “⟦It always does,⟧” she said.",
        "Le premier, dit-il. « Le deuxième. « ⟦Le troisième⟧ » enfin.",
        *("Le premier », dit-il. « ⟦Le deuxième⟧ » et voilà.", "Le premier », dit-il. « Le deuxième."),
        *("»Der erste. »⟦Der zweite⟧« und Schluss.", "「最初の部分。「⟦二番目の部分⟧」と言った。"),
        *('"⟦The tide⟧" turned" late "⟦at night⟧"', "‘The tide turned late.\n\nHe wrote ‘⟦the tide turned⟧’."),
        '1. "The tide turns\n2. "⟦It always does⟧"',
        '| "the open cell | "⟦the next cell⟧" |\n| "⟦a third cell⟧" | it\'s 5" |',
        "A lone \" mark and a lone ' mark.",
    ],
    "a quotation goes on where the next paragraph begins with its mark": [
        "“⟦The tide turns.\n\n“It always does,⟧” she said. “⟦Always.⟧”",
        "“⟦The tide turns.\n\n“‘At noon,’ he says.\n\n“And so it does.⟧”",
        "“⟦The tide turns.\n  “It always does,⟧” she said.",
        *("'⟦The tide turns.\n\n'It's the boys' boat,⟧' she said.", "«⟦La marea cambia.\n\n»Siempre es así⟧», dijo."),
        *("« ⟦La marée tourne.\n\n« Toujours⟧ », dit-il.", "“The tide turns.\n\nIt always does,” she said."),
        "“The tide turns.\n\n- “⟦It always does,⟧” she said.",
    ],
    "only the outermost quotation is returned": [
        *("“⟦He wrote “never, ever, again” to me,⟧” she said.", '"⟦He wrote "never, ever, again" to me⟧" she said.'),
        *("\"⟦He wrote “never again” to 'us'⟧\" she said.", "“⟦The keeper—he said ‘it turns at noon—and left.⟧”"),
        "”⟦Hon sade ’aldrig mer’ och gick⟧”, sade han.",
        "``⟦He wrote `never again'⟧'', she said, ``⟦or `not ever'⟧''.",
        "„⟦Er schrieb »nie ›ganz‹ wieder« an mich⟧“, sagte sie.",
        *("«⟦Она сказала „никогда больше“ и ушла⟧», — сказал он.", "„⟦Azt mondta, »soha többé«, és elment⟧” – mondta."),
        *("„⟦Ze zei ‚nooit meer’ en vertrok⟧”, zei hij.", "他写道：“⟦他说‘再也不会’就走了⟧”。"),
        "彼は「⟦彼女は『もう二度と』と言った⟧」と書いた。",
    ],
    "marks of one kind close each other": [
        *('“⟦a b⟧" c', '"⟦a b⟧” c', '„⟦a b⟧" c', "``⟦a b⟧” c", "‘⟦a b⟧' c", "“⟦a 'b c'⟧” d"),
        *("“a b« c", "「a b』 c", "«a b” c", "``a b ''' c", "``⟦a b'⟧'' c", "“⟦‘a’⟧”", "“⟦‘“‘a’”’⟧”"),
        *("&#0034;⟦a b⟧&quot; c", r"\u00ab⟦a b⟧\u00bb c", "‛⟦a b⟧❜ c", 'he: **"⟦a b⟧"**, so'),
        *("it's l’aube O‘Hara 10'000", "'''", "a, b ` c ``` d", r"&amp; &eacute; &#65; \n \u00e9"),
        f"{'„x ‚x «x ‹x ``x 「x 『x 〝x ' * 30}\n\nHe wrote “⟦so it is⟧”.",
    ],
    "an excerpt may begin and end inside speech": [
        *("so war es«, sagte er. »⟦Komm herein,⟧« rief sie. »Ich", "so war es«, sagte er, »und nun"),
        *("so war es.« Er ging hinaus. »Und nun", "und nie mehr‹, sagte er, ›auch nicht"),
        *("so war es.“ Er ging. „⟦Komm herein,⟧“ rief sie. „Ich", "c'était ainsi » , dit-il . « Je"),
        '晩は"と言いました。\n\n"⟦今晩は、ごめんなさい⟧"と言う。',
        "c'était ainsi\u00a0», dit-il. «\u00a0⟦Venez donc,⟧\u00a0» dit-elle. «\u00a0Je",
        "it was so,” he said. “⟦Come in,⟧” she called. “I shall",
        *('it was so," he said. "⟦Come in,⟧" she called. "I shall', 'it was so," he said, "and now'),
        "det var så,” sade han. ”⟦Kom in,⟧” ropade hon. ”Jag",
        "是这样的。”他走了出去。她说：“⟦请进来吧。⟧”又说：“我",
        '是这样的。"他走了出去。她说："⟦请进来吧。⟧"他说："⟦好的好的。⟧"又说："我',
        "そうだった」と言った。「⟦入ってください⟧」と呼んだ。「私は",
        # The last mark opens what is cut off, and the first closes it.
        *("sagte« und ging. »⟦Ich komme⟧«, sagte sie. Dann »", "«, sagte er. »⟦Ich komme⟧«, sagte sie. Dann »\n"),
        *("ja‹ z ›⟦Ich komme⟧‹ z ›", "»⟦Wir gehen jetzt⟧ « z »⟦Ich komme⟧«"),
        "oui\u202f», dit-il. «\u202f⟦Je viens⟧\u202f» et «",
        *('", she said. "⟦I am here⟧", he said. Then "', "home', she said. '⟦I am here⟧', he said. Then '"),
        *("hem”, sade han. ”⟦Jag kommer⟧”, sade hon. Sedan ”", "回家”他说。她说“⟦我在这里⟧”他又说“"),
        "”他说。她说“⟦我在这里⟧”他说“",
    ],
    "hebrew marks": [
        "צה״ל וארה״ב חתמו; מנכ״לית ודו״חות רו״ח הוגשו בתשפ״ד לפי סעיף ל״ב, בשנת ה׳תשפ״ה.",
        "ג׳ירפה וצ'ק בכיתה ג׳ ברח׳ הרצל, עמ' 5, פרופ׳ לוי וגב׳ כהן, ר׳ עקיבא.",
        *('״⟦צה״ל הודיע על כך⟧״, כתב ה״⟦ארץ של אתמול⟧״ וב"⟦מעריב⟧".', "צה״ל אמר ה״⟦מומחה הגדול⟧״ כי רו״ח."),
        *("הוא כתב '⟦גר ברח' ירושלים⟧' כאן.", "הוא כתב ׳⟦איש לא בדק⟧׳ ברח׳ הרצל; לפי ה׳⟦מומחה הגדול⟧׳."),
    ],
    "what follows a single mark": [
        "उसने कहा '⟦किसी ने नहीं देखा⟧'। ‘⟦वह गया⟧’॥ और '⟦कोई⟧'?",
        "قال '⟦لم يفحص أحد⟧'، ثم ‘⟦ذهب⟧’؛ هل قال '⟦نعم⟧'؟ وقال ب'⟦البيت⟧'.",
        "اس نے کہا '⟦کسی نے نہیں دیکھا⟧'۔ እሱ '⟦ማንም አላየውም⟧'። նա '⟦ոչ ոք⟧'։",
        "see '⟦a b⟧'⟩ and '⟦c f⟧'】 or '⟦g h⟧'… and ⟨'⟦so on⟧'⟩",
        "그는 '⟦모두 떠났다⟧'는, ‘⟦정말 그런가⟧’라고, “⟦그것은 사실⟧”을 말했다.",
        "'⟦Eski kazan patladı⟧'da geçer, '⟦Yeni kazan⟧'nın ve Ankara'da.",
        "அவள் '⟦அலை மாறும்⟧'என்று; দু'জন লোক ক'টা বই হ'ল, ন'টা ফুল।",
    ],
    # Inward and alike are read where that leaves fewer marks alone than outward.
    "the whole text tells which way guillemets point": [
        *("« ⟦a⟧ » b « ⟦c⟧ »", "» ⟦A⟧ « , b » ⟦C⟧ «", "a » , b. « ⟦C⟧ » d", "a » , b. « C", "» ⟦A⟧ » , b » ⟦C⟧ »"),
        *("»⟦A⟧« b »⟦C⟧«", "»⟦A⟧» b »⟦C⟧»", "«⟦A⟧» b «⟦C⟧»", "»⟦A‹b›⟧«", "他写道»⟦没有人⟧«就走了。"),
    ],
    "title marks are not quotations": ["《潮汐的故事》是一本书。", "〈潮汐〉和《海》"],
    "code and markup are not quotations": [
        '`x = "a b c"` is code, "⟦this is not⟧", and `it\'s` isn\'t.',
        'Use ``a `tick` "in code" b`` or ``x = \'\'``, "⟦not this⟧".',
        '```python\nprint("not this")\n```\n"⟦But this⟧"\n~~~\n"not this"\n~~~~\n"⟦and this⟧"',
        *('- ```\n  "not this"\n  ```\n- "⟦but this⟧"', 'Run: ```sh\necho "not this"\n```\nIt prints "⟦but this⟧".'),
        '"⟦Before⟧"\n```\n"never closed"',
        '>>> print("not this")\nIt prints "⟦but this⟧".',
        '<a href="x y" title="not this">"⟦but this⟧"</a> <!-- "not this" -->',
        '<code>print("not this")</code> and <pre>"nor this"</pre> "⟦but this⟧"',
        '<p>"⟦This⟧"</p><p>"⟦and this⟧"</p> if a < b "⟦and a > b⟧"',
        '[log](https://example.org/l "not this") and ["⟦but this⟧"](<u> \'nor this\').',
        '![alt](a.png "not this") "⟦but this⟧"\n\n[1]: https://example.org "nor this"',
        *('[1]: He wrote "⟦this in a note⟧".', '**"⟦This⟧"**, _“⟦this⟧”_, *‘⟦this⟧’* and "⟦**this** _here_⟧"'),
        "Use `cp a b' `, `it's c d` and \"⟦that⟧\"; but `⟦so it is⟧', he said, `⟦now.⟧'",
        'He wrote <q cite="a > b">⟦the tide\nturned⟧</q>, if p <q> r, "⟦and so⟧".',
        '## "⟦The tide⟧" explained\n* **Time**: "⟦at noon⟧"\n* it\'s late',
    ],
    # Keys and values of JSON are not quoted; what a value quotes with escaped marks is.
    "the marks of json are not quotations": [
        '{"answer": "The log says \\"⟦the tide turns⟧\\" twice.", "source": "the log book"}',
        '{"answer": "First \\"⟦this one⟧\\".\\n\\nThen \\u201c⟦that one⟧\\u201d."}',
        *('["the tide turns", "it always does"]', '"The log says \\"⟦the tide turns⟧\\" twice."'),
        '"⟦The tide turns.⟧"',
        'It returned {"name": "the old boat", "crew": ["the first mate"]}, which "⟦is right⟧".',
        'What begins as {"⟦name⟧": [} and goes wrong "⟦is not JSON⟧".',
    ],
    # From its first word to its last without the attribution; in marks of its own, what they enclose.
    "a block quote is a quotation": [
        "The log says:\n\n> ⟦The tide turns\n> at noon.⟧\n\nSo it does.",
        "> ⟦The tide turns\n>\n> at noon.⟧\n> — The Harbour Master",
        *('> "⟦The tide turns.⟧"\n> -- The Harbour Master', "> *“⟦The tide turns.⟧”* — The Harbour Master"),
        *("> “⟦The tide turns.\n>\n> “At noon.⟧”", '> ⟦He wrote "the tide turns" and left.⟧'),
        *("> ⟦“The tide turns.” “It does.”⟧", '> ⟦The tide turns.⟧\n> — Moe, "⟦On Tides⟧"', "> ⟦- one\n> - two⟧"),
        '> [!NOTE]\n> The log has "⟦the tide turns⟧" in it.',
        'He wrote "⟦one⟧".\n> ⟦two⟧\nThen "⟦three⟧".\n\n> ⟦four⟧\n\n> ⟦five⟧',
        *("- The log:\n  > ⟦The tide turns.⟧\n- He wrote “⟦so it does⟧”.", "> > ⟦nested⟧", ">\n> \n"),
        "> ```\n> code\n> ```",
    ],
}
CLOSED = """
He wrote ‘⟦50 men were lost there⟧’. | He wrote '⟦50 men were lost there⟧'.
'⟦50 men were lost⟧', he wrote. | The report says ‘⟦90 percent of the staff left⟧’ and more.
It says '⟦20 of them came back⟧' today. | ‘⟦80s music only tonight⟧’
1. ‘⟦50 men of the ’90s crew were lost in 1942⟧’ | It says '⟦20 of them lost their boats⟧'.
Scrive ‘⟦e la barca tornò al porto⟧’. | Scrive '⟦e la barca tornò al porto⟧'.
Escreve '⟦e o barco voltou⟧' e pronto. | Metinde '⟦ve tekne limana döndü⟧' yazıyor.
Metinde ‘⟦ve tekne limana döndü⟧’ yazıyor. | Píše '⟦s radostí se vrátili⟧' a dost.
It says '⟦d is the distance in metres⟧'. | It says '⟦re is a prefix of many verbs⟧'.
Es steht '⟦er kam nie zurück⟧' da. | It says ‘⟦n is the number of trials⟧’.
It says '⟦em is a unit of type⟧' there. | It says '⟦ad hoc groups were formed⟧' too.
The notice says '⟦have your ticket ready at the gate⟧'.
Hij schrijft '⟦t is een mooie dag⟧' in het boek. | In '63 he wrote '⟦we are closed now⟧' to all.
Tell 'em '⟦we are closed now⟧' in the '90s.
"""
APOSTROPHES = """
the ’90s were the best of times, the dogs’ owners said
the '90s were the best of times, the dogs' owners said | In the ‘90s the players’ union grew.
In the '60s and '70s, students' and teachers' unions grew. | 'Tis the boys' favourite.
Rock 'n' roll was king in the '50s, the critics' choice. | Tell 'em it is the dogs' dinner.
Ho un po' di '68 in me. | Hij kwam 's avonds en 's morgens, de jongens' fiets.
Dit is 'n huis, die kinders' skool. | Ze hebben 'r gezien, Hans' moeder.
Born in '45, she left in '63 with her parents' help. | Das war in den '80ern Hans' Wagen.
goin' home, '45 in hand, nothin' more
It 's late , he said , and the boys ' tea is cold . They 've gone to the ' old ' house , there 's nobody ' here .
"""
EMPTY = """
title: ''; labels: '⟦x⟧' | title: '' / labels: '⟦one two three⟧' / more: ''
key: '', other: '', third: '⟦one two three⟧', last: '' | field: '' other '⟦one two⟧' and '' last
Pass '' twice: '' and ''. | write title: '' (none) or labels: '' here, then it's done
title: "", labels: "⟦one two three⟧" | “” and “⟦one two three⟧” | ‘’ and ‘⟦one two three⟧’
«» and «⟦one two three⟧» | f('', '⟦a⟧') | ''⟦one two three⟧'' and '' | ``⟦one two three⟧'' and ''
"""
LABELS = """
**Note:** | **Note**: | __Note:__ | *Tip:* | ⚠️ | 💡 Tip: | 📝 **Note**: | **⚠️ Warning:** | :warning: | [!NOTE]
**Warning** | **Important!** | **Pro tip:** | **Zu beachten:** | **Hinweis** | **Remarque :** | **Nota** | **注意**
**注意：** | **참고** | **Внимание!** | **Примечание:** | **Uwaga:** | **Let op:** | **ملاحظة:**
"""
STARTS = "... | [The] | [1] | § 5 | Note that | *Close* | 50 | **The pump** and | **Never** open | **Noteworthy** is"


def texts(rows: str) -> list[str]:
    return re.split(r" \| |\n", rows.strip())


BLOCKS = [
    *("> **Warning**\n> the valve must be closed", "> [!TIP]- Folded\n> the valve must be closed"),
    '> **Note:** it has "⟦the valve must⟧" in it',
    *(f"> ⟦{start} the valve must be closed.⟧" for start in texts(STARTS)),
    *("> ⟦**DO NOT OPEN THE VALVE**⟧", "<blockquote>⟦the valve must be closed⟧</blockquote>"),
    'It says:\n<blockquote cite="x y">\n<p>⟦the valve</p>\n\n<p>must be closed⟧</p>\n</blockquote>\nSo "⟦it is⟧".',
    "<blockquote>⟦the valve must be closed⟧\n— Moe</blockquote>",
    "<BLOCKQUOTE>“⟦the valve must be closed⟧”</BLOCKQUOTE>",
    "<blockquote>⟦the <blockquote>valve</blockquote> closed⟧</blockquote>",
    "<blockquote>**Note:** the valve must be closed</blockquote>",
    "> ⟦one two three⟧\n\n<blockquote>⟦four five six⟧</blockquote>\n\n> ⟦seven⟧",
    "<blockquote>the valve must be closed",
    "`<blockquote>the valve</blockquote>` and\n\n```\n<blockquote>the valve</blockquote>\n```",
]

RULES |= {
    "single marks before what may be an elision": [*texts(CLOSED), *texts(APOSTROPHES)],
    "empty pairs": [
        "&quot;&quot;",
        *texts(EMPTY),
        "title: ''\nlabels: ''",
        "title: ''\n- labels: ''\n- name: '⟦one two three⟧'",
    ],
    "remarks set as block quotes": [f"> {label} the valve must be closed first." for label in texts(LABELS)],
    "block quotes, also in HTML": BLOCKS,
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_holds(rule: str) -> None:
    assert_found(*RULES[rule])


#: Invisible characters, one after the other: all that are ignorable or of category Cf, entities and escapes for some.
INVISIBLE = [
    "".join(chr(code) for code in range(0x80, sys.maxunicode) if category(chr(code)) == "Cf"),
    "\u034f\u115f\u1160\u180b\u180d\u3164\ufe00\ufe0f\uffa0\U000e0100\U000e01ef",
    *("\u202a", "\u2067\u200f", "&rlm;", "&#8234;", "&#x2066;&shy;", "&ZeroWidthSpace;", r"\u200e"),
]


@pytest.mark.parametrize("invisible", INVISIBLE, ids=ascii)
def test_invisible_characters_hide_no_mark(invisible: str) -> None:
    assert_found(
        *(
            invisible.join(["He wrote ", start, opening, "⟦the tide ", "turns at noon⟧", closing, end, " He left."])
            for opening, closing, *_ in CONVENTIONS
            for start, end in (("", "."), ("**", "**, so"), ("(", ")"))
        )
    )


def test_every_invisible_character_is_known() -> None:
    known = [*INVISIBLE[0], *INVISIBLE[1]]
    assert_found(*(f'He wrote {each}"⟦the tide turns⟧{each}"{each}.' for each in known))


QUOTED_WORDS = ["tide", "no", "keeper", "turns", "at", "noon,", "keepers'", "isn't", "they're,", "boys',", "it'd"]
HARD = st.sampled_from(" \n\n\"\"''“”‘’«»„`>&;\\{}[]()<*_.,-a1é「」潮")
TEXTS = st.text(st.one_of(HARD, st.characters()), max_size=120)


@example(">\r0")
@example(">\xa0")
@example("> a\n>\u3000b\u2003")
@given(TEXTS)
def test_a_quotation_is_a_trimmed_slice_of_its_text(text: str) -> None:
    end = 0
    for quotation in find_quotations(text):
        assert end <= quotation.start < quotation.end <= len(text)
        assert text[quotation.start : quotation.end] == quotation.text == quotation.text.strip()
        assert quotation.words == count_words(quotation.text)
        end = quotation.end


@given(
    st.lists(
        st.tuples(
            st.sampled_from(MARKED),
            st.lists(st.sampled_from(QUOTED_WORDS), min_size=1, max_size=6),
            st.lists(st.sampled_from(QUOTED_WORDS[:5]), min_size=1, max_size=4),
        ),
        max_size=5,
    )
)
def test_what_is_put_into_marks_is_found(parts: list[tuple[tuple[str, ...], list[str], list[str]]]) -> None:
    text = ""
    for convention, quoted, between in parts:
        opening, closing, *_ = convention
        text += f"{' '.join(between)} {opening}⟦{' '.join(quoted)}⟧{closing} {' '.join(between)}.\n\n"
    assert_found(text)
