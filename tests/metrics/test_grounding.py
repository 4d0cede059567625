"""Words, numbers and names of an answer that are in its contexts, or not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.metrics.base import Metric, is_blank
from pytest_ragmetrics.metrics.grounding import LexicalContextRecall, LexicalGrounding, NamesAligned, NumbersAligned
from pytest_ragmetrics.text.names import NamesIn, find_names
from pytest_ragmetrics.text.numbers import NumbersIn, find_numbers
from pytest_ragmetrics.text.words import content_words, stem
from tests.growth import is_linear

ALIGNED: list[Metric] = [LexicalGrounding(), NumbersAligned(), NamesAligned()]
SOUTHEAST_ASIAN = json.loads((Path(__file__).parents[1] / "data" / "southeast_asian.json").read_text("utf-8"))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=120)


def missing(result: MetricResult) -> list[str]:
    return [verdict.text for verdict in result.verdicts if not verdict.ok]


@pytest.mark.parametrize(
    ("response", "context", "unfound"),
    [
        ("Otters sleep afloat.", "A sea otter can float.", ["sleep", "afloat"]),
        ("The walkers were walking.", "They walked.", ["walkers"]),
        ("Das Haus wurde umgebaut.", "Der Umbau des Hauses.", ["umgebaut"]),
        ("L'hôtel est fermé.", "LES HOTELS SONT FERMES", []),
        ("长城很长", "长城位于北方", []),
        ("黄河很长", "长城位于北方", ["黄河"]),
        ("المكتبة كبيرة", "تقع مكتبة المدينة هنا", ["كبيرة"]),
        ("Это большая книга", "Большую книгу нашли", ["большая", "книга"]),
    ],
)
def test_content_words_are_looked_for_by_their_stems(response: str, context: str, unfound: list[str]) -> None:
    assert missing(LexicalGrounding().score(response=response, retrieved_contexts=context)) == unfound


def test_every_occurrence_counts_and_every_word_has_one_verdict() -> None:
    response = "Moths, moths and lamps."
    result = LexicalGrounding().score(response=response, retrieved_contexts=["Nothing.", "One moth.", "A moth."])
    assert result == pytest.approx(2 / 3)
    assert result.reason == "Found 2 of 3 content words"
    moths, lamps = result.verdicts
    assert (moths.text, moths.start, moths.end, moths.ok) == ("Moths", 0, 5, True)
    assert [(found.context, found.start, found.end, found.text) for found in moths.evidence] == [(1, 4, 8, "moth")]
    assert (lamps.text, lamps.start, lamps.ok, lamps.evidence) == ("lamps", 17, False, ())
    assert lamps.reason == "stands in no context"
    recalled = LexicalContextRecall().score(reference="Moths fear bats.", retrieved_contexts="A bat eats a moth.")
    assert recalled == pytest.approx(2 / 3)
    assert missing(recalled) == ["fear"]
    # The words of a reference have no place in the response.
    assert {(verdict.start, verdict.end) for verdict in recalled.verdicts} == {(None, None)}


@pytest.mark.parametrize("language", SOUTHEAST_ASIAN)
def test_southeast_asian_texts_of_other_subjects_have_nothing_in_common(language: str) -> None:
    """An answer in other words is above the pass mark of 0.40, whatever its spaces; of another subject, far below."""
    rows = SOUTHEAST_ASIAN[language]
    for row in rows:
        answer, others = row["answer"], " ".join(other["context"] for other in rows if other is not row)
        parted = "\u200b".join(answer[at : at + 6] for at in range(0, len(answer), 6))
        for said in (answer, answer.replace(" ", ""), parted):
            assert LexicalGrounding().score(response=said, retrieved_contexts=row["context"]).value > 0.5
            assert LexicalGrounding().score(response=said, retrieved_contexts=others).value < 0.15
            assert LexicalContextRecall().score(reference=said, retrieved_contexts=others).value < 0.15


ONE_NUMBER = [
    *(("1,000.5", "1.000,5"), ("1'000", "1,000"), ("12,34,567", "1234567"), ("1.000", "1000")),
    *(("3 million", "3,000,000"), ("3 \n million", "3,000,000"), ("5  %", "5 percent"), ("3,5 Mrd.", "3.5 billion")),
    *(("10k", "ten thousand"), ("5 %", "five percent"), ("5%", "5 Prozent"), ("$5", "5 dollars")),
    *(("US$2.5 million", "2,500,000 USD"), ("42", "forty-two"), ("206", "two hundred and six")),
    *(("1984", "nineteen eighty-four"), ("3rd", "the third"), ("٤٫٥", "4.5"), ("१२", "12"), ("3万", "30,000")),
    *(("2021-03-05", "March 5th, 2021"), ("5 March 2021", "5. März 2021"), ("2021年3月5日", "05.03.2021")),
    *(("03/05/2021", "5 March 2021"), ("5 de marzo de 2021", "5 mars 2021"), ("2021", "on 5 March 2021")),
    *(("5 March 2021", "In 2021 it began. On 5 March it ended."), ("٥ مارس ٢٠٢١", "5 March 2021"), ("−5", "-5")),
    *(("1.2.10", "1.2.10"), ("03/04/2021", "3 April 2021"), ("03/04/2021", "4 March 2021")),
    *(("2", "boxes 1,2,3 and 5"), ("1995", "1990,1995,2000"), ("12", "a dozen"), ("24", "two dozen")),
    *((".25", "0.25"), ("0.25", "about .25"), ("1/4", "0.25"), ("1/4", "¼"), ("0.5 million", "1/2 million")),
    *(("3/4", "7 3/4"), ("٣/٤", "3/4"), ("4/5", "4 of 5"), ("4", "4/5"), ("9/11", "11 September, day 9")),
    *(("24/7", "24 hours, 7 days"), ("1/512", "0.001953125"), ("5 APR\u0130L 2020", "5 April 2020, 3 May 2021")),
    *(("twenty-s\u0131x", "S\u0130X of 26"), ("3 m\u0131llion", "3,000,000"), ("usd         5", "$5, 5 \u20ac")),
    *(("May 6, 2021", "May 5, 2020 and May 6, 2021"), ("๑,๒๐๐", "มีผู้เข้าชม1200คน"), ("3ล้านคน", "๓,๐๐๐,๐๐๐")),
    *(("ร้อยละ5ในปีนั้น", "5 %"), ("ราคา500บาทต่อ", "๕๐๐ บาท"), ("໓ ລ້ານຄົນ", "3,000,000"), ("5ເປີເຊັນ", "໕%")),
    *(("៣លាននាក់", "3,000,000"), ("៥ភាគរយ", "5 %"), ("၃ သန်းရှိသည်", "3,000,000"), ("၅ရာခိုင်နှုန်း", "5 %")),
]
ANOTHER_NUMBER = [
    *(("$8m", "$5m £8m"), ("$8m", "$5m\t£ 8m"), ("1,000.5", "1,000.6"), ("3 million", "3 billion")),
    *(("5 %", "5 dollars"), ("$5", "€5"), ("five percent", "6 %"), ("-5", "5"), ("42", "4.2"), ("1.5", "15")),
    *(("5 March 2021", "March 2021"), ("5 March 2021", "5 March 2020")),
    *(("5 March 2021", "In 2021 it began. On 6 March it ended."), ("March 2021", "May 2021"), ("1.2.10", "1.2.1")),
    *(("12", "B12"), ("19", "1990"), ("4", "one third"), ("03/04/2021", "4 April 2021"), ("4", "boxes 1,2,3 and 5")),
    *(("25", "about .25"), ("2/4", "1/4 to 3/2"), ("1/4", "4/1, 1/2"), ("4/2", "2"), ("3/2", "0.15")),
    *(("4/5", "4 of 6"), ("0/0", "0.5"), ("twenty-\u017fix", "25"), ("usd         5", "5 \u20ac")),
    *(("INR 5", "5 \u20ac"), ("๓ล้านคน", "3 คน"), ("มี๑๒คน", "มี 13 คน"), ("ราคา500บาทต่อ", "$500")),
    *(("៣លាននាក់", "៣ពាន់នាក់"), ("၁၂ယောက်ရှိသည်", "၁၃ယောက်"), ("໑໒ຄົນ", "13 ຄົນ")),
]


@pytest.mark.parametrize(("pairs", "is_found"), [(ONE_NUMBER, True), (ANOTHER_NUMBER, False)])
def test_one_number_is_found_however_it_is_written(pairs: list[tuple[str, str]], is_found: bool) -> None:
    for said, source in pairs:
        (number,) = find_numbers(said)
        assert (NumbersIn(source).locate(number) is not None) is is_found, (said, source)
        assert is_found or not number.plain, said


TIMES = ["at 14:30", "at 14.30", "at 2:30 pm", "at 2.30 p.m.", "à 14h30", "à 14 h 30", "um 14 Uhr 30", "um 14.30 Uhr"]
TIMES += ["a las 2:30 p. m.", "kl. 14.30", "14時30分", "午後2時30分", "下午2点30分", "오후 2시 30분"]
SAME_NUMBERS = [
    *((said, source) for said in TIMES for source in TIMES),
    *(("from 1914 to 1918", "1914-18"), ("1914–18", "1914 to 1918"), ("1914/18", "1914-1918")),
    *(("2019-20", "2019 to 2020"), ("'14-'18", "1914-1918"), ("1914-18", "1914-18"), ("the summer of '68", "in 1968")),
    *(("2003-04", "April 2003"), ("It is minus 5 degrees", "−5 °C"), ("-5", "minus 5"), ("minus twenty", "-20")),
    *(("negative 7", "-7"), ("minus 12 Grad", "-12"), ("moins 12 degrés", "-12"), ("menos 12 grados", "-12")),
    *(("meno 12 gradi", "-12"), ("минус 12", "-12"), ("负12度", "-12"), ("マイナス12度", "-12"), ("零下12度", "-12")),
    *(("영하 12도", "-12"), ("at least 12", "al menos 12"), ("au moins 12", "12"), ("por lo menos 12", "12")),
    *(("20 minus 5 is 15", "20, 5, 15"), ("2 pm", "14:00"), ("14:00", "2 p.m."), ("14 Uhr", "2 pm"), ("14h", "2 pm")),
    *(("9 am", "09:00"), ("12 am", "0:00"), ("12:30 pm", "12:30"), ("2 o'clock", "2 pm"), ("2:30", "2:30 pm")),
    *(("2.30", "2.30 pm"), ("at 9", "at 9 pm"), ("9 am", "9–11 am"), ("9 pm", "9-11 pm"), ("2 hours", "2h")),
    *(("3時間", "3 hours"), ("16:9", "16 to 9"), ("3:2", "3 to 2"), ("half a million", "500,000")),
    *(("500,000", "half a million"), ("half of a billion", "500 million"), ("two and a half million", "2,500,000")),
    *(("2.5 million", "two and a half million"), ("3 and a half billion", "3.5bn"), ("half a dozen", "6 eggs")),
    *(("12 eggs", "a dozen eggs"), ("half a dozen", "six"), ("2 million", "2 миллиона")),
    *(("eine halbe Million", "500.000"), ("un demi-million", "500 000"), ("medio millón", "500.000")),
    *(("mezzo milione", "500.000"), ("meio milhão", "500.000"), ("een half miljoen", "500.000")),
    *(("полмиллиона", "500 000"), ("the 1990s", "the '90s"), ("the ’90s", "the 1990s"), ("the 90s", "the 1990s")),
    *(("1990s", "the nineties"), ("90er", "1990er"), ("les années 90", "1990s"), ("los años 90", "1990s")),
    *(("gli anni '90", "1990s"), ("90年代", "1990s"), ("90년대", "1990s"), ("в 90-е", "1990s")),
    *(("the 1920s", "the twenties"), ("the '20s", "2020s")),
]
OTHER_NUMBERS = [
    *(("1918-14", "1914-18"), ("1914-19", "1914-18"), ("1914 to 1919", "1914-18"), ("2014-18", "1914-18")),
    *(("minus 5", "5"), ("15", "minus 15"), ("minus 15", "minus 16"), ("-15", "15 minus 3"), ("-15", "al menos 15")),
    *(("-15", "au moins 15"), ("-15", "pelo menos 15"), ("minus five", "five"), ("-15", "plus ou moins 15")),
    *(("14:30", "2:30 am"), ("2:30 am", "2:30 pm"), ("2:30 pm", "2:30 am"), ("2:30 am", "14h30"), ("14:30", "14:31")),
    *(("14:30", "15:30"), ("2 am", "2 pm"), ("2 pm", "2 a.m."), ("14h30", "13 Uhr 30"), ("上午2点30分", "下午2点30分")),
    *(("14 Uhr", "15 Uhr"), ("2 pm", "15:00"), ("02:30", "14:30"), ("14.30", "2.30"), ("$14.30", "14:31")),
    *(("12 am", "12 pm"), ("half a million", "5 million"), ("half a million", "1 million")),
    *(("half a billion", "500,000"), ("two and a half million", "2,000,000"), ("half a dozen", "12")),
    *(("eine halbe Million", "5.000.000"), ("the 1890s", "the '90s"), ("the 1990s", "the '80s")),
    *(("the 1980s", "the nineties"), ("'68", "1986")),
]


@pytest.mark.parametrize(("pairs", "is_found"), [(SAME_NUMBERS, True), (OTHER_NUMBERS, False)])
def test_numbers_that_mean_the_same_are_found(pairs: list[tuple[str, str]], is_found: bool) -> None:
    for said, source in pairs:
        texts = {"response": f"So it was {said}.", "retrieved_contexts": f"It was {source}, it says."}
        result = NumbersAligned().score(**texts)
        assert (result.value == 1.0, result.vacuous) == (is_found, False), (said, source)


FULL_AND_SHORT = [
    *(("Saint Louis", "St. Louis"), ("St Louis", "St. Louis"), ("Mount Everest", "Mt. Everest")),
    *(("Fort Worth", "Ft. Worth"), ("Sankt Gallen", "St. Gallen"), ("Sainte Anne", "Ste Anne")),
    *(("Santo Domingo", "Sto. Domingo"), ("Doctor Anna Ito", "Dr. Anna Ito"), ("Professor Anna Ito", "Prof. Anna Ito")),
    *(("Mister Anna Ito", "Mr. Anna Ito"), ("Captain Nemo", "Capt. Nemo"), ("General Lee", "Gen. Lee")),
    *(("Senator Berg", "Sen. Berg"), ("Main Street", "Main St."), ("Marks & Spencer", "Marks and Spencer")),
    ("Acme Corporation", "Acme Corp."),
]


@pytest.mark.parametrize(("full", "short"), FULL_AND_SHORT)
def test_names_in_full_and_in_short_are_the_same(full: str, short: str) -> None:
    for said, source, value in ((full, short, 1.0), (short, full, 1.0), ("Mount Elbrus", short, 0.0)):
        texts = {"response": f"Then we saw {said} again.", "retrieved_contexts": f"Of {source} it is said."}
        found = NamesAligned().score(**texts)
        assert (found, found.vacuous) == (value, False)


@pytest.mark.parametrize(
    "text",
    [
        *("1. First\n2) Then", "So it is [1], [2, 3].", "See (Passage 1 and 2).", "Vitamin B12", "x_2"),
        *("Step 4: Peel.", "## Step 4. Peel", "Peel it (step 4).", "| Step 4: Peel |", "Schritt 4: Schälen."),
        *("Étape 3 : peler.", "Otter (Quelle 2).", "Selon la source 3, oui.", "Выдры [источник 12]."),
        *("水獺【来源12】。", "Otters 【12†source】.", "Шаг 2. Варить.", "第3步：去皮。", "步骤 3：去皮。"),
        *("ステップ3：皮をむく。", "(3단계)"),
    ],
)
def test_pointers_and_parts_of_names_are_no_numbers(text: str) -> None:
    """List numbers, citation marks, numbered passages and digits inside a name; steps are numbers in a sentence."""
    assert NumbersAligned().score(response=text, retrieved_contexts="None.").vacuous
    assert [number.text for number in find_numbers("It has 4 steps. See step 7. (Steps 1)")] == ["4", "7"]


def test_numbers_are_shown_with_their_place_and_their_evidence() -> None:
    response = "Of the two bridges, one is 1.250 m long and was built in 1921 for 3 million euros."
    result = NumbersAligned().score(response=response, retrieved_contexts=["1,250 m", "Cost: €3,000,000; begun 1920"])
    assert [verdict.text for verdict in result.verdicts] == ["1.250", "1921", "3 million euros"]
    assert missing(result) == ["1921"]
    assert all(response[verdict.start : verdict.end] == verdict.text for verdict in result.verdicts)
    assert [found.text for verdict in result.verdicts for found in verdict.evidence] == ["1,250", "€3,000,000"]
    assert result.reason == "Found 2 of 3 numbers"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Yesterday Marie Curie's notes reached the University of Oslo.", ["Marie Curie's", "University of Oslo"]),
        ("In spring the WHO and NASA met in Rio de Janeiro.", ["WHO", "NASA", "Rio de Janeiro"]),
        ("Then Theresa May met NOT the EU.", ["Theresa May", "EU"]),
        ("Mr. Jones of the U.S. Army uses an iPhone.", ["Jones", "U.S. Army", "iPhone"]),
        ("Reactions differ. Moths fly in May.", []),
        ("Bern is old. People like Bern.", ["Bern", "Bern"]),
        ("Bank of England notes are new.", ["England"]),
        ("## Key Benefits Of Sleep\n1. Take a nap.", []),
        ("I think I'm right: Nobody knows.", []),
        ("Das Haus gehört der Stadt. Es ist nicht von Angela Merkel.", ["Angela Merkel"]),
        ("Die EU und die Kommission sind nicht der Rat.", ["EU"]),
        ("Il vit à Paris avec Jean-Luc Godard.", ["Paris", "Jean-Luc Godard"]),
        ("The boat of Zoe\u0308 Mo\u0308r saw Re\u0301my  Pe\u0301.", ["Zoe\u0308 Mo\u0308r", "Re\u0301my  Pe\u0301"]),
        # Capitals of a sentence, of a heading that runs into the text, of a label.
        ("SAFETY NOTES FOR THE OPERATOR\n\nCall Anna Berg.", ["Anna Berg"]),
        ("DO NOT OPEN THE VALVE OF THE PUMP. Then call Anna Berg.", ["Anna Berg"]),
        ("The Physicist Marie Curie Moved To France In The Spring.", []),
        ("How to Replace the Filter of the Old Pump Station\nThe filter is from Oslo.", ["Oslo"]),
        ("HOW TO REPLACE THE FILTER OF THE OLD STATION\nThe filter is from Oslo.", ["Oslo"]),
        ("WARNING: hot. IMPORTANT! Wait. NASA: go.", ["NASA"]),
        # Names alone, and in capitals.
        (
            "Marie Curie, Albert Einstein, Niels Bohr\nLise Meitner met.",
            ["Curie", "Albert Einstein", "Niels Bohr\nLise Meitner"],
        ),
        ("Marie Curie and Pierre Curie.", ["Curie", "Pierre Curie"]),
        ("It was signed by JOHN SMITH.", ["JOHN SMITH"]),
        ("Members are the UN, NATO, UNESCO and the EU.", ["UN", "NATO", "UNESCO", "EU"]),
        ("He met Prime Minister Theresa May in The Hague.", ["Prime Minister Theresa May", "Hague"]),
        ("Walt Disney’s The Little Mermaid came.", ["Disney’s", "Little Mermaid"]),
        ("李明在Google工作", ["Google"]),
        ("ذهب محمد إلى القاهرة", []),
        ("李明去了北京", []),
    ],
)
def test_names_are_told_by_their_capitals(text: str, names: list[str]) -> None:
    assert [name.text for name in find_names(text)] == names


@pytest.mark.parametrize(
    ("response", "context", "unfound"),
    [
        ("There Marie Curie worked.", "Curie, Marie: physicist", []),
        ("There Pierre Curie worked.", "Curie, Marie: physicist", ["Pierre Curie"]),
        ("It came from Germany.", "The Germans sent it.", []),
        ("We met Americans.", "From America.", []),
        ("It was Paul.", "It was Paula.", ["Paul"]),
        ("It was Obama's idea.", "Barack Obama had it.", []),
        ("It was the WHO.", "The World Health Organization said so.", []),
        ("Then the World Health Organization spoke.", "The WHO spoke.", []),
        ("It was the WHO.", "THE WORLD HEALTH ORGANIZATION SAID SO.", []),
        ("It was the WHO.", "In Geneva The World Health Organization Said So.", []),
        ("It was the WHO.", "THE WORLD OFFERS HEALTH ORGANIZATION.", ["WHO"]),
        ("It was José.", "JOSE SAID SO", []),
        ("Мы были в Москве.", "Москва — столица.", []),
        ("The U.S. agreed.", "The US agreed.", []),
        # Endings of acronyms, what is written in front of and behind names, sentences joined without a space.
        ("Both CEOs met the NGOs.", "The CEO and an NGO met.", []),
        ("The CEO met it.", "CEOs met.", []),
        ("They fly F16s.", "An F16.", []),
        ("They have PCs.", "They have TVs.", ["PCs"]),
        ("We saw EU-wide rules.", "The rules of the EU.", []),
        ("It is called Wide Fields.", "EU-wide fields", []),
        ("A Portugal-based firm: the Al-Qaeda.", "Portugal. Al-Jazeera.", ["Al-Qaeda"]),
        ("See Form 1099-PATR.", "The form 1099-patr.", []),
        ("Les amis d’Émile Zola à l'ONU.", "L'ONU. Émile Zola.", []),
        ("La mer. L'Europe parle de l'Hérault.", "l'Aude, en Europe", ["l'Hérault"]),
        ("È dell'Ariosto.", "È dell'Aretino.", ["dell'Ariosto"]),
        ("Dün Ankara'da ve Diyarbakır’dan NATO'ya geldi.", "Ankara, Diyarbakır, NATO.", []),
        ("Dün İstanbul'da geldi.", "Ankara'da geldi.", ["İstanbul'da"]),
        ("Jechał Peugeot'em.", "Peugeot.", []),
        ("Вчора Мар'яни не було.", "Мар'яна", []),
        ("Then the Quran came to Xian.", "The Qur'an; Xi'an.", []),
        ("We saw O'Neill.", "Neil saw O'Brien.", ["O'Neill"]),
        ("Stars stand for East and West.", "Far-East and West.they are two.", []),
        # Initials, and what they stand for.
        ("It is by J.K Rowling.", "By J. K. Rowling.", []),
        ("It is by JK Rowling.", "By J. K. Rowling.", []),
        ("It is by C.S. Rowling.", "By J. K. Rowling.", ["C.S. Rowling"]),
        ("It goes to the United States Postal Service.", "The U.S. Postal Service.", []),
        ("It goes to the US Postal Service.", "The United States Postal Service.", []),
        ("It goes to the UK Postal Service.", "The United States Postal Service.", ["UK Postal Service"]),
        ("Call the USPS.", "The U.S. Postal Service has it.", []),
        ("Call the USPS.", "The US Postal Service has it.", []),
        ("Call the USPS.", "See www.usps.com for it.", []),
        ("Many RBCs are round.", "Red blood cells are round.", []),
        ("Many QBCs are round.", "Red blood cells are round.", ["QBCs"]),
        ("We met Ned.", "They never eat dinner; new electric doors.", ["Ned"]),
        ("It is the NSA.", "It is not so apparent; in no small amount.", ["NSA"]),
        ("It is the PM.", "It is an old public mill.", ["PM"]),
    ],
)
def test_names_are_found_inflected_shortened_and_abbreviated(response: str, context: str, unfound: list[str]) -> None:
    """All words of a name must stand in one context, in any order, case and inflection, or as its initials."""
    assert missing(NamesAligned().score(response=response, retrieved_contexts=context)) == unfound


#: Sentences with names, with function words around them.
NAMING = (
    "The physicist Marie Curie moved to France in 1891, and the WHO praised her work in Warsaw.",
    "It was built by Zoë Müller near the old harbour of Oslo, which is not far from here.",
    "Le physicien Pierre Curie est allé à Paris avec les amis de la famille.",
    "El puente fue construido por José Núñez en la ciudad de Cádiz.",
    "Die Brücke wurde von Angela Merkel eröffnet und ist nicht von der Stadt Köln.",
    "Мост построил Алексей Бойко, и он не жил в Можайске.",
    "Η γέφυρα άνοιξε από τον Γιώργο Παπαδάκη και δεν ήταν στην Αθήνα.",
)


@pytest.mark.parametrize("text", NAMING)
def test_the_case_of_a_passage_makes_no_names(text: str) -> None:
    known = {name.text for name in find_names(text)}
    cases: list[Callable[[str], str]] = [str.upper, str.lower, str.title, str.capitalize, str]
    for form, case in product(["{}", "{}\n\nIt works.", "# {}", "**{}** {}", "It works. {}"], cases):
        response = form.format(*[case(text[:-1] if form[0] == "#" else text)] * 2)
        assert {name.text for name in find_names(response)} <= known, response
        for context in (text, text.upper(), normalize("NFD", text)):
            assert NamesAligned().score(response=response, retrieved_contexts=context) == 1.0, (response, context)


@pytest.mark.parametrize("unseen", ["\u00ad", "&shy;", "\u200b", "\u2060"])
@pytest.mark.parametrize("text", NAMING)
def test_what_is_not_seen_changes_no_name(text: str, unseen: str) -> None:
    broken = re.sub(r"(?<=[^\W\d_])(?=[^\W\d_])", unseen, text)
    known, found = find_names(text), find_names(broken)
    assert [(name.text, name.keys) for name in known] == [(name.text.replace(unseen, ""), name.keys) for name in found]
    for response, context in ((broken, text), (text, broken)):
        result = NamesAligned().score(response=response, retrieved_contexts=context)
        assert result == 1.0
        for verdict in result.verdicts:
            assert response[verdict.start : verdict.end] == verdict.text
            assert all(context[piece.start : piece.end] == piece.text for piece in verdict.evidence)


@pytest.mark.parametrize("metric", ALIGNED, ids=lambda metric: metric.name)
def test_nothing_to_look_for_is_vacuous(metric: Metric) -> None:
    result = metric.score(response="So it is.", retrieved_contexts=[])
    assert (result.value, result.vacuous, result.verdicts) == (1.0, True, ())
    assert metric.score(response="In 1921 they asked Ada Berg.", retrieved_contexts=[]) == 0.0
    apart = NamesAligned().score(response="There was Ada Berg.", retrieved_contexts=["Ada Lind came.", "Otto Berg."])
    assert missing(apart) == ["Ada Berg"]


@given(TEXTS, TEXTS)
def test_a_text_is_grounded_in_itself(text: str, other: str) -> None:
    if is_blank(text):
        return
    for metric in ALIGNED:
        result = metric.score(response=text, retrieved_contexts=[other, text])
        assert result == 1.0
        for verdict in result.verdicts:
            assert text[verdict.start : verdict.end] == verdict.text
            for found in verdict.evidence:
                assert (other, text)[found.context][found.start : found.end] == found.text


@pytest.mark.growth
@pytest.mark.parametrize(
    "unit",
    [
        *("9", "1,", "1/", "1/2 ", "1 000 ", "3 may ", "two ", "passage 1, ", "step 1", "$", "1-"),
        *("A ", "A. ", "A'", "a-", "Ab of ", "A.", "red ", "中"),
    ],
)
def test_time_grows_with_the_length_alone(unit: str) -> None:
    def score(size: int) -> None:
        text = unit * (size // len(unit))
        for metric in ALIGNED:
            metric.score(response=text, retrieved_contexts=[text])

    assert is_linear(score, short=1_500, long=12_000)


def test_stems_are_short_and_rough() -> None:
    """Short words stay as they are; one, third and ten are said of all sorts of things, twelve and 1 are numbers."""
    assert [stem(word) for word in ("rose", "roses", "is")] == ["rose", "rose", "is"]
    assert [word.text for word in content_words("It is 5 o'clock")] == ["clock"]
    assert find_numbers(f"{'9' * 5000} and a half million")
    found = find_numbers("one, third, ten, twelve, 1")
    assert [number.plain for number in found] == [True, True, True, False, False]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"])
def test_numbers_that_count_lines_are_none_whatever_ends_a_line(end: str) -> None:
    text = end.join(["Steps:", "1. Open it.", "2. Wait 15 minutes.", "12) Close it."])
    assert [(number.text, text[number.start : number.end]) for number in find_numbers(text)] == [("15", "15")]


@pytest.mark.parametrize("space", ["  ", "\u00a0", "\u2009", "\u202f", "\u3000"])
def test_a_name_is_one_with_any_spaces(space: str) -> None:
    text = "We asked the American Cancer Society about it."
    assert [name.text for name in find_names(text.replace(" ", space))] == [f"American{space}Cancer{space}Society"]
    (name,) = find_names("We asked the WAC about it.")
    for there in ("It is the white adder club.", "It is the World Association of the Cranes."):
        assert NamesIn(there.replace(" ", space)).locate(name)
    assert len(find_names("We asked American\tCancer and others.")) == 2
