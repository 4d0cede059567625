"""Refusals and answers are distinguished in the languages of the probes."""

from __future__ import annotations

import pytest

from pytest_ragmetrics.cli.probes.probes import read_probes
from pytest_ragmetrics.judges.local import is_noncommittal, refuses, statements
from pytest_ragmetrics.judges.tasks import JudgeRefusal
from tests.growth import is_linear

# The usual words of a refusal, with or without an apology.
REFUSALS = [
    "I'm sorry, but I can't answer that based on the provided context.",
    "The provided passages do not contain any information about the price.",
    "Unfortunately, this is not mentioned in the documents.",
    "There is no information about opening hours in the given text.",
    *("I don't have enough information to answer this question.", "Unable to answer based on given passages."),
    *("Leider kann ich diese Frage nicht beantworten.", "Die Dokumente enthalten keine Angaben zum Preis."),
    *("Das wird im Text nicht erwähnt.", "Ich weiß es leider nicht.", "Aus den Unterlagen geht das nicht hervor."),
    *("Dazu liegen mir keine Informationen vor.", "Je ne sais pas.", "Le texte ne mentionne pas le prix."),
    "Cette information n'est pas précisée dans les documents.",
    "Les documents ne contiennent aucune information sur ce sujet.",
    *("Je ne peux malheureusement pas répondre à cette question.", "Rien dans les documents ne permet de répondre."),
    *("No lo sé.", "No puedo responder a esta pregunta con los documentos disponibles."),
    *("El texto no menciona el precio.", "No hay información sobre el horario en los documentos."),
    *("Los documentos no contienen esa información.", "Nie wiem.", "Nie mogę odpowiedzieć na to pytanie."),
    *("W dokumentach brak informacji na ten temat.", "Tekst nie wspomina o cenie."),
    *("Nie zostało to podane w dokumentach.", "لا أعرف.", "لا يمكنني الإجابة على هذا السؤال."),
    *("لا توجد معلومات عن السعر في النص.", "لم يذكر النص السعر.", "الوثائق لا تحتوي على معلومات حول ذلك."),
    *("我不知道。", "无法根据提供的资料回答这个问题。", "文档中未提及价格。", "没有足够的信息来回答。"),
    *("上下文没有提供相关信息。", "わかりません。", "提供された情報からはお答えできません。"),
    *("文書には価格についての記述がありません。", "その質問には回答できません。", "情報が不足しています。"),
    *("I'm sorry. I don't know.", "Es tut mir leid. Dazu steht nichts im Text.", "申し訳ありません。わかりません。"),
]
# A negation, a document or an apology makes no refusal, nor does one beside which something is said.
DENIALS = [
    *("We cannot provide refunds after 30 days.", "No information is shared with third parties."),
    *("The contract does not include VAT.", "The documents are not stored in the cellar."),
    "The owner does not say who he is, but the mill is in Denholm.",
    *("Passengers do not have to show the document.", "The text is not printed in colour."),
    *("You cannot find parking there on Sundays.", "The documents do not need a stamp."),
    *("Im Dokument steht, dass Rauchen nicht erlaubt ist.", "Das Dokument enthält keine Makros."),
    *("Der Text ist nicht farbig gedruckt.", "Man kann die Pumpe nicht ohne Wasser starten."),
    *("Es gibt keine Angaben ohne Gewähr.", "Die Tür lässt sich nicht öffnen."),
    *("Der Antrag ist nicht im Dokument zu stellen, sondern online.", "Le document n'est pas remboursable."),
    *("Le texte précise que l'entrée n'est pas gratuite.", "Il ne faut pas démarrer la pompe à sec."),
    *("La loi ne dit pas autre chose : la porte reste ouverte.", "El documento no se devuelve."),
    *("El texto dice que la entrada no es gratuita.", "No puede entrar sin permiso."),
    *("No hay datos personales en la tarjeta.", "Dokument nie podlega zwrotowi."),
    *("W dokumencie napisano, że wstęp nie jest bezpłatny.", "Nie można uruchomić pompy bez wody."),
    *("لا يمكن تشغيل المضخة بدون ماء.", "يذكر النص أن الدخول ليس مجانيا.", "لا تستخدم الوثيقة مرتين."),
    *("他不知道门开着。", "没有足够的水，泵不能启动。", "文件没有盖章。", "泵无法在干燥状态下启动。"),
    *("資料に書かれているとおり、喫煙はできない。", "ポンプは水なしでは起動できません。"),
    *("この文書に印鑑は必要ありません。", "The documents do not say who owns it, but a foundation runs it."),
    "Das steht nicht im Text, aber eine Stiftung betreibt sie.",
    *("The mill is in Denholm, but its age is not mentioned in the documents.", "Sorry, the mill is closed."),
    *("I don't know who owns it. A foundation runs it.", "", "..."),
]
# Manuals and support: tables and disks lack data, agents do not answer calls, a clause behind a semicolon may answer.
MANUALS = [
    *("The API returns no data when the queue is empty.", "If the response has no data, retry after 5 seconds."),
    *("There is no information loss in a lossless codec.", "FLAC is a lossless format: there is no data loss."),
    *("The table has no details column.", "The error means that the file contains no data."),
    *("I am unable to say enough good things about the team.", "It is impossible to say no to her."),
    *("I cannot say enough good things about the hotel.", "We don't know of any open issues with version 3."),
    "The article does not address children; it is meant for adults.",
    "The context manager does not provide any data to the block.",
    "The search results do not include deleted files.",
    "The document does not include the appendix data by default.",
    *("Ticket closed: we are unable to answer calls on Sundays.", "Our agents cannot answer the phone after 6 pm."),
    *("We can't tell customers apart by name, so quote your ticket number.", "We do not have data centers in Asia."),
    *("We don't have any details to show on the free plan.", "No data is available offline."),
    *("No data are provided to third parties.", "No information is available to third parties."),
    *("No details were provided to the press by the court.", "The article is not covered by warranty."),
    *("The articles are not included in the sale.", "The materials are not provided by the landlord."),
    *("Materials are not included.", "The information provided does not include tax."),
    *("The source does not hold any data between restarts.", "Sources do not have data until the first sync."),
    *("The stairs are not described in the source code.", "The stylesheet is not found in the source folder."),
    "The document does not state a price; it costs 5 euros.",
    *("Der SupportFound kann am Sonntag keine Anrufe beantworten.", "Man kann nicht sagen, dass der Motor laut ist."),
    *("Wir wissen, dass der Zug nicht fährt.", "Ich weiß, dass die Pumpe nicht startet."),
    *("Il ne contient aucune donnée personnelle.", "Le fichier n'a aucune donnée."),
    *("Le disque ne contient pas de données.", "On ne peut pas dire que la pompe soit bruyante."),
    *("El archivo no tiene datos para exportar.", "El sistema no guarda datos en el disco."),
    *("La tarjeta no contiene datos para el viaje.", "No tiene datos en itinerancia.", "No puede decir que no."),
    *("El artículo no incluye datos.", "Nie ma danych osobowych na karcie."),
    *("Brak danych oznacza, że czujnik jest odłączony.", "Nie wiemy o żadnych usterkach."),
    *("我不知道的路，他都知道。", "他们不能回答电话。", "周日无法回答客户的电话。", "无法确定的值用null表示。"),
    *("情報がない場合は空欄にします。", "わからない単語は辞書で調べます。", "特定できない場合は番号で検索します。"),
]


def test_refusals_and_answers_differ() -> None:
    assert [text for text in REFUSALS if not is_noncommittal(text)] == []
    assert [text for text in (*DENIALS, *MANUALS) if is_noncommittal(text)] == []


def test_what_is_said_beside_a_refusal_is_kept() -> None:
    text = "The mill is old. The documents do not say who owns it. Ask in Denholm."
    assert list(statements(text)) == ["The mill is old.", "Ask in Denholm."]


def test_the_refusals_of_the_probes() -> None:
    asked = [(probe, probe.task) for probe in read_probes()]
    refused = [(probe, task) for probe, task in asked if isinstance(task, JudgeRefusal) and probe.kind == "refusal"]
    right = [is_noncommittal(task.response) == (probe.expected == "refuses") for probe, task in refused]
    assert right == [True] * 16


@pytest.mark.growth
@pytest.mark.parametrize("piece", ["documents do not ", "dokument steht ", "資料記載", "لا تذكر ", "a'", "a"])
def test_the_time_is_linear(piece: str) -> None:
    assert is_linear(lambda size: refuses(piece * (size // len(piece))), short=3_000, long=24_000)
