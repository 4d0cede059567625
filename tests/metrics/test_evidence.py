"""Sentences cited for a claim that have hardly a word of it are noticed, in any language; true ones are not."""

from __future__ import annotations

import pytest

from pytest_ragmetrics.metrics import ContextRecall, FactualCorrectness, Faithfulness, NoiseSensitivity
from pytest_ragmetrics.metrics.judged import JudgedMetric
from pytest_ragmetrics.metrics.verdicts import EvidenceCheck
from tests.growth import is_linear
from tests.scripted_judge import Answer, ScriptedJudge, claims, verdicts

#: By language the sentences of a document, each before what is claimed because of it in other words and forms.
TEXTS = """
# en
The bridge was closed in March because a pillar had moved.
The movement of a pillar led to the closing of the bridge.
Volunteers water the young trees every evening in summer.
In summer, young trees are watered by volunteers.
Members pay sixty pounds a year for a plot.
A plot costs each member sixty pounds yearly.
Dogs must be kept on a lead in the garden.
Owners keep their dog on a lead inside the gardens.
The museum opens at nine and closes at six.
The opening time of the museum is nine o'clock.
Bees collect nectar from flowers and make honey.
Honey is made by bees out of the nectar of flowers.
# de
Die Brücke wurde im März gesperrt, weil sich ein Pfeiler bewegt hatte.
Die Bewegung eines Pfeilers führte zur Sperrung der Brücke.
Freiwillige gießen die jungen Bäume im Sommer jeden Abend.
Im Sommer werden junge Bäume abends von Freiwilligen gegossen.
Mitglieder zahlen sechzig Euro im Jahr für ein Beet.
Ein Beet kostet jedes Mitglied jährlich sechzig Euro.
Hunde müssen im Garten an der Leine geführt werden.
In den Gärten gilt für jeden Hund Leinenpflicht.
Das Museum öffnet um neun und schließt um sechs.
Die Öffnungszeit des Museums beginnt um neun Uhr.
Bienen sammeln Nektar von Blüten und machen Honig.
Honig entsteht aus dem Blütennektar, den Bienen sammeln.
# fr
Le pont a été fermé en mars parce qu'un pilier avait bougé.
Le mouvement d'un pilier a entraîné la fermeture du pont.
Des bénévoles arrosent les jeunes arbres chaque soir en été.
En été, les jeunes arbres sont arrosés par des bénévoles.
Les membres paient soixante euros par an pour une parcelle.
Une parcelle coûte soixante euros par an à chaque membre.
Les chiens doivent être tenus en laisse dans le jardin.
Dans les jardins, chaque chien reste en laisse.
Le musée ouvre à neuf heures et ferme à six heures.
L'ouverture du musée est à neuf heures.
Les abeilles récoltent le nectar des fleurs et font du miel.
Le miel est fait par l'abeille avec le nectar d'une fleur.
# es
El puente se cerró en marzo porque un pilar se había movido.
El movimiento de un pilar llevó al cierre del puente.
Los voluntarios riegan los árboles jóvenes cada tarde en verano.
En verano los árboles jóvenes son regados por voluntarios.
Los socios pagan sesenta euros al año por una parcela.
Una parcela cuesta sesenta euros anuales a cada socio.
Los perros deben ir con correa en el jardín.
En los jardines todo perro lleva correa.
El museo abre a las nueve y cierra a las seis.
La apertura del museo es a las nueve.
Las abejas recogen néctar de las flores y hacen miel.
La miel la hace la abeja con néctar de flor.
# pl
Most zamknięto w marcu, ponieważ przesunął się filar.
Przesunięcie filaru doprowadziło do zamknięcia mostu.
Wolontariusze podlewają młode drzewa każdego wieczoru latem.
Latem młodych drzew pilnują i podlewają je wolontariusze.
Członkowie płacą sześćdziesiąt złotych rocznie za działkę.
Działka kosztuje członka sześćdziesiąt złotych na rok.
Psy w ogrodzie muszą być na smyczy.
W ogrodach każdego psa trzyma się na smyczy.
Muzeum otwiera się o dziewiątej i zamyka o szóstej.
Otwarcie muzeum następuje o godzinie dziewiątej.
Pszczoły zbierają nektar z kwiatów i robią miód.
Miód powstaje z nektaru kwiatowego, który zbiera pszczoła.
# ru
Мост закрыли в марте, потому что опора сместилась.
Смещение опоры привело к закрытию моста.
Добровольцы поливают молодые деревья каждый вечер летом.
Летом молодых деревьев много, и добровольцы их поливают.
Члены платят шестьдесят рублей в год за участок.
Участок стоит каждому члену шестьдесят рублей.
Собаки в саду должны быть на поводке.
В садах собаку держат на поводке.
Музей открывается в девять и закрывается в шесть.
Открытие музея — в девять часов.
Пчёлы собирают нектар с цветов и делают мёд.
Мёд делают из нектара цветка, который собрала пчела.
# tr
Köprü, bir ayağı kaydığı için martta kapatıldı.
Köprünün kapatılmasına ayağın kayması yol açtı.
Gönüllüler yazın her akşam genç ağaçları sular.
Genç ağaçlar yazın gönüllüler tarafından sulanır.
Üyeler bir parsel için yılda altmış lira öder.
Bir parselin yıllık bedeli üyelere altmış liradır.
Köpekler bahçede tasmalı olmalıdır.
Bahçelerde köpeklere tasma takılır.
Müze dokuzda açılır ve altıda kapanır.
Müzenin açılış saati dokuzdur.
Arılar çiçeklerden nektar toplar ve bal yapar.
Bal, arıların çiçekten topladığı nektardan yapılır.
# fi
Silta suljettiin maaliskuussa, koska pilari oli siirtynyt.
Pilarin siirtyminen johti sillan sulkemiseen.
Vapaaehtoiset kastelevat nuoria puita joka ilta kesällä.
Kesällä vapaaehtoisten kastelemat nuoret puut voivat hyvin.
Jäsenet maksavat kuusikymmentä euroa vuodessa palstasta.
Palsta maksaa jäsenelle kuusikymmentä euroa vuodessa.
Koirat on pidettävä puutarhassa hihnassa.
Puutarhoissa koiraa pidetään hihnassa.
Museo avataan yhdeksältä ja suljetaan kuudelta.
Museon avaamisaika on yhdeksän.
Mehiläiset keräävät mettä kukista ja tekevät hunajaa.
Hunajan tekee mehiläinen kukan medestä.
# ar
أغلق الجسر في مارس لأن أحد الأعمدة تحرك.
أدت حركة أحد أعمدة الجسر إلى إغلاقه.
يسقي المتطوعون الأشجار الصغيرة كل مساء في الصيف.
في الصيف تسقى الأشجار الصغيرة من قبل متطوعين.
يدفع الأعضاء ستين دينارا في السنة مقابل قطعة أرض.
تكلف قطعة الأرض العضو ستين دينارا سنويا.
يجب ربط الكلاب بمقود في الحديقة.
في الحدائق يربط كل كلب بمقود.
يفتح المتحف في التاسعة ويغلق في السادسة.
موعد فتح المتحف هو التاسعة.
يجمع النحل الرحيق من الأزهار ويصنع العسل.
العسل يصنعه النحل من رحيق الأزهار.
# he
הגשר נסגר במרץ כי עמוד זז ממקומו.
תזוזת העמוד הביאה לסגירת הגשר.
מתנדבים משקים את העצים הצעירים בכל ערב בקיץ.
בקיץ העצים הצעירים מושקים על ידי מתנדבים.
חברים משלמים שישים שקלים בשנה עבור חלקה.
חלקה עולה לחבר שישים שקלים לשנה.
כלבים חייבים להיות קשורים ברצועה בגן.
בגנים מחזיקים כלב ברצועה.
המוזיאון נפתח בתשע ונסגר בשש.
שעת הפתיחה של המוזיאון היא תשע.
דבורים אוספות צוף מפרחים ומכינות דבש.
הדבש נעשה בידי הדבורים מצוף הפרחים.
# hi
पुल मार्च में बंद किया गया क्योंकि एक खंभा खिसक गया था।
खंभे के खिसकने से पुल बंद हुआ।
स्वयंसेवक गर्मियों में हर शाम छोटे पेड़ों को पानी देते हैं।
गर्मी में छोटे पेड़ों को स्वयंसेवकों से पानी मिलता है।
सदस्य एक भूखंड के लिए साल में साठ रुपये देते हैं।
भूखंड का सालाना शुल्क सदस्यों के लिए साठ रुपये है।
बगीचे में कुत्तों को पट्टे पर रखना ज़रूरी है।
कुत्ता बगीचे में पट्टे पर रहे।
संग्रहालय नौ बजे खुलता है और छह बजे बंद होता है।
संग्रहालय के खुलने का समय नौ बजे है।
मधुमक्खियाँ फूलों से रस लेकर शहद बनाती हैं।
शहद मधुमक्खी फूल के रस से बनाती है।
# ko
기둥이 움직여서 다리는 3월에 폐쇄되었다.
다리의 폐쇄는 기둥의 움직임 때문이다.
자원봉사자들은 여름마다 저녁에 어린 나무에 물을 준다.
여름 저녁에 어린 나무들은 자원봉사자가 물을 준다.
회원은 텃밭에 일 년에 육십 달러를 낸다.
텃밭은 회원에게 해마다 육십 달러가 든다.
개는 정원에서 목줄을 해야 한다.
정원에 온 개에게는 목줄이 필요하다.
박물관은 아홉 시에 열고 여섯 시에 닫는다.
박물관이 여는 시간은 아홉 시이다.
벌은 꽃에서 꿀을 모아 저장한다.
꿀은 벌이 꽃에서 모은 것이다.
# ja
柱が動いたため、橋は三月に閉鎖された。
橋の閉鎖は柱の動きが原因だった。
夏にはボランティアが毎晩若い木に水をやる。
若い木は夏にボランティアから水をもらう。
会員は区画に年間六十ドルを払う。
区画の料金は会員一人につき年間六十ドルだ。
庭では犬をリードにつながなければならない。
犬は庭でリードが必要だ。
博物館は九時に開き、六時に閉まる。
博物館の開館時間は九時である。
ミツバチは花から蜜を集めて蜂蜜を作る。
蜂蜜は花の蜜からミツバチが作る。
# zh
由于一根桥墩移动，大桥在三月关闭。
桥墩的移动导致大桥被关闭。
志愿者夏天每天傍晚给小树浇水。
夏天小树由志愿者浇水。
会员每年为一块地支付六十元。
一块地每年要会员花六十元。
花园里的狗必须拴绳。
狗在花园中要拴绳子。
博物馆九点开门，六点关门。
博物馆的开门时间是九点。
蜜蜂从花中采集花蜜并酿造蜂蜜。
蜂蜜是蜜蜂用花蜜酿成的。
# th
สะพานถูกปิดในเดือนมีนาคมเพราะเสาเคลื่อน
การเคลื่อนของเสาทำให้สะพานต้องปิด
อาสาสมัครรดน้ำต้นไม้เล็กทุกเย็นในฤดูร้อน
ในฤดูร้อนต้นไม้เล็กได้รับการรดน้ำจากอาสาสมัคร
สมาชิกจ่ายหกสิบบาทต่อปีสำหรับแปลงหนึ่ง
แปลงหนึ่งมีค่าใช้จ่ายหกสิบบาทต่อสมาชิก
สุนัขต้องใส่สายจูงในสวน
ในสวนต้องจูงสุนัขด้วยสายจูง
พิพิธภัณฑ์เปิดเก้าโมงและปิดหกโมง
เวลาเปิดของพิพิธภัณฑ์คือเก้าโมง
ผึ้งเก็บน้ำหวานจากดอกไม้และทำน้ำผึ้ง
น้ำผึ้งทำโดยผึ้งจากน้ำหวานของดอกไม้
"""
DOCUMENTS = {
    language: [*zip(lines[::2], lines[1::2], strict=True)]
    for language, *lines in (part.strip().split("\n") for part in TEXTS.split("# ")[1:])
}


@pytest.mark.parametrize("language", DOCUMENTS)
def test_other_sentences_than_those_that_support_a_claim_are_noticed(language: str) -> None:
    """Inflected, compounded, in another order or script: no claim is marked for its own sentence."""
    pairs = DOCUMENTS[language]
    check = EvidenceCheck([sentence for sentence, _ in pairs])
    marked = [[check.shares_hardly_a_word(claim, [cited]) for cited, _ in pairs] for _, claim in pairs]
    assert not any(row[index] for index, row in enumerate(marked))
    # A claim in which no word tells the language, or that of another, is not compared.
    assert sum(map(sum, marked)) >= 25
    assert not any(check.shares_hardly_a_word(claim, [sentence for sentence, _ in pairs]) for _, claim in pairs)


SPOKEN = ("en", "de", "es", "fr", "ru", "ja", "ar", "zh")


@pytest.mark.parametrize("found", SPOKEN)
def test_claims_in_another_language_are_not_compared(found: str) -> None:
    """An answer in the language of the user says what contexts in another one say without a word of them."""
    check = EvidenceCheck([sentence for sentence, _ in DOCUMENTS[found]])
    for answered in SPOKEN:
        pairs = zip(DOCUMENTS[answered], DOCUMENTS[found], strict=True)
        assert not any(check.shares_hardly_a_word(claim, [sentence]) for (_, claim), (sentence, _) in pairs), answered


#: Two sentences and one with a number, and what is claimed because of the first two.
COUNTED = """
# en
The ferry to the island leaves every morning.
The crossing takes 40 minutes.
The ferry to the island has {} cabins.
The ferry to the island leaves every morning and takes 40 minutes.
# de
Die Fähre zur Insel fährt jeden Morgen ab.
Die Überfahrt dauert 40 Minuten.
Die Fähre zur Insel hat {} Kabinen.
Die Fähre zur Insel fährt jeden Morgen ab und braucht 40 Minuten.
# es
El ferry a la isla sale cada mañana.
La travesía dura 40 minutos.
El ferry a la isla tiene {} camarotes.
El ferry a la isla sale cada mañana y tarda 40 minutos.
# ru
Паром на остров отходит каждое утро.
Переправа длится 40 минут.
Паром на остров имеет {} кают.
Паром на остров отходит каждое утро и идёт 40 минут.
# tr
Adaya giden feribot her sabah kalkar.
Geçiş 40 dakika sürer.
Adaya giden feribotun {} kamarası var.
Adaya giden feribot her sabah kalkar ve 40 dakikada varır.
# ar
تغادر العبارة إلى الجزيرة كل صباح.
يستغرق العبور 40 دقيقة.
في العبارة إلى الجزيرة {} مقصورة.
تغادر العبارة إلى الجزيرة كل صباح وتصل بعد 40 دقيقة.
# hi
द्वीप की नाव हर सुबह निकलती है।
यात्रा में 40 मिनट लगते हैं।
द्वीप की नाव में {} कमरे हैं।
द्वीप की नाव हर सुबह निकलती है और 40 मिनट में पहुँचती है।
# ko
섬으로 가는 배는 매일 아침 출발한다.
항해는 40 분 걸린다.
섬으로 가는 배에는 선실이 {} 개 있다.
섬으로 가는 배는 매일 아침 출발하고 40 분 걸린다.
# ja
島へのフェリーは毎朝出発する。
航海は40分かかる。
島へのフェリーには{}の客室がある。
島へのフェリーは毎朝出発し、40分かかる。
# zh
去岛上的渡轮每天早上出发。
航程需要40分钟。
去岛上的渡轮有{}个客舱。
去岛上的渡轮每天早上出发，需要40分钟。
"""


@pytest.mark.parametrize("texts", COUNTED.strip("# \n").split("\n# "))
def test_a_number_that_stands_elsewhere_is_lacking_where_another_one_is_cited(texts: str) -> None:
    """A claim may sum up more than is cited for it; a number in the place of another, or of no sentence, is noticed."""
    leaves, takes, has, both = texts.split("\n")[1:]
    check = EvidenceCheck([leaves + " " + takes, has.format(12)])
    assert not check.is_suspicious(both, [leaves])
    assert not check.is_suspicious(both, [leaves, takes])
    assert not check.is_suspicious(has.format(12), [has.format(12)])
    for claim, cited in (
        (has.format(40), [has.format(12)]),
        (has.format(77), [has.format(12)]),
        (both.replace("40", "41"), [leaves, takes]),
        (both, [has.format(12)]),
    ):
        assert check.is_suspicious(claim, cited)


@pytest.mark.parametrize(
    ("built", "owned"),
    [
        ("The bridge was built by {} in the old harbour.", "The mill belongs to {}."),
        ("Die Brücke wurde von {} im alten Hafen gebaut.", "Die Mühle gehört {}."),
        ("El puente fue construido por {} en el puerto viejo.", "El molino pertenece a {}."),
        ("Most zbudowała {} w starym porcie.", "Młyn dostała {}."),
        ("Köprüyü eski limanda {} yaptı.", "Değirmenin sahibi {} oldu."),
    ],
)
def test_a_name_that_stands_elsewhere_is_lacking_in_the_place_of_another(built: str, owned: str) -> None:
    """And where no sentence has it; not where it is one more than the cited sentences have."""
    weber, lind, braun = "Karl Weber", "Anna Lind", "Otto Braun"
    check = EvidenceCheck([built.format(weber), owned.format(lind)])
    marked = [check.is_suspicious(built.format(name), [built.format(weber)]) for name in (weber, lind, braun)]
    assert marked == [False, True, True]
    assert not check.is_suspicious(f"{built.format(weber)[:-1]}, {lind}.", [built.format(weber)])


FERRY = "The ferry leaves at nine. A return ticket costs 1,200 crowns. Bicycles travel free on the ferry."


@pytest.mark.parametrize(
    ("claim", "cited", "question", "suspicious"),
    [
        ("Bicycles travel free on the ferry.", 2, None, False),
        ("Bicycles travel free on the ferry.", 0, None, True),  # one word of four, and another sentence has all
        ("The ferry departs early.", 0, None, False),  # one of three, and no sentence has more
        ("Nobody inspected the rusty pillar.", 0, None, True),
        ("The ferry leaves with free bicycles.", 0, None, False),  # two of four, and another sentence has three
        ("Prices rise.", 0, None, False),  # two words
        ("The price is 1200 crowns.", 1, None, False),  # a number is the same however it is written
        ("A ticket for the Orla ferry costs 1200 crowns.", 1, None, True),  # a name
        ("A ticket for the Orla ferry costs 1200 crowns.", 1, "What does the Orla ferry cost?", False),
        ("A ticket for the Orla ferry costs 1300 crowns.", 1, "What does the Orla ferry cost?", True),
        ("Step 2: A return ticket costs 1200 crowns.", 1, None, False),  # the number of a step
        ("A return ticket costs 1/2 of 1200 crowns.", 1, None, True),
        ("", 0, None, False),
    ],
)
def test_words_numbers_and_names_are_looked_up(claim: str, cited: int, question: str | None, suspicious: bool) -> None:
    """Too small a share of the words is suspicious, also when another sentence has far more of them."""
    sentences = [f"{sentence}." for sentence in FERRY.rstrip(".").split(". ")]
    check = EvidenceCheck([FERRY], question)
    assert check.is_suspicious(claim, [sentences[cited]]) is suspicious
    assert not check.is_suspicious(claim, [])
    assert check.shares_hardly_a_word(claim, sentences) is (claim.startswith("Nobody"))


@pytest.mark.parametrize(("fish", "suspicious"), [("fish, bread and salt", True), ("fish and bread", False)])
def test_a_name_that_stands_elsewhere_is_lacking_where_much_else_is(fish: str, suspicious: bool) -> None:
    """Five words of eight are enough without a name, and too few with one that another sentence has with all eight."""
    claim, cited = f"The old ferry Orla brings mail, {fish}.", "The old ferry brings mail and bread."
    check = EvidenceCheck([cited, claim])
    assert check.is_suspicious(claim, [cited]) is suspicious
    assert not check.shares_hardly_a_word(claim, [cited])
    # A number is one word, however many it is written with.
    lost = "500,000,000 € vanished."
    assert not EvidenceCheck([lost]).shares_hardly_a_word("Losses ran to five hundred million euros.", [lost])


@pytest.mark.parametrize("metric", [Faithfulness, FactualCorrectness, NoiseSensitivity, ContextRecall])
def test_name_of_the_question_need_not_be_cited(metric: type[JudgedMetric]) -> None:
    """A claim is written out with the question; the sentences cited for it need not repeat that."""
    said, long = "The ferry of Orla is long.", "It is a long ferry"

    def verified(prompt: str) -> Answer:
        return verdicts(*[[1] if long in prompt else None] * (1 + ("\n2. " in prompt)))

    for question, suspicious in ((None, True), ("How long is the ferry of Orla?", False)):
        judge = ScriptedJudge(list_claims=claims(said), verify_claims=verified)
        fields = {"response": said, "retrieved_contexts": [long], "user_input": question}
        result = metric(judge=judge).score(**fields, reference=long if metric is FactualCorrectness else said)
        assert result.verdicts[0].suspicious is suspicious


@pytest.mark.growth
def test_looking_words_up_is_linear() -> None:
    """Contexts of ten times the size take ten times as long."""

    def work(size: int) -> None:
        check = EvidenceCheck(["The old ferry leaves at nine for the northern island. " * size])
        check.shares_hardly_a_word("The rusty pillar of the ferry moved.", ["The old ferry leaves at nine."])

    assert is_linear(work, short=100, long=1000)


@pytest.mark.parametrize(("cited", "suspicious"), [(1, True), (3, False)])
def test_judge_that_cites_another_sentence_is_noticed(cited: int, suspicious: bool) -> None:
    """The metric marks the verdict; its score stays what the judge decided."""
    judge = ScriptedJudge(list_claims=claims("A bicycle is taken for free."), verify_claims=verdicts([cited]))
    result = Faithfulness(judge=judge).score(response="Bicycles are free.", retrieved_contexts=[FERRY])
    assert (result, result.verdicts[0].suspicious) == (1.0, suspicious)
