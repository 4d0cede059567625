"""A quotation is a source's where the words beside it say so, and not where who asks says it, or it is denied."""

from __future__ import annotations

import pytest

from pytest_ragmetrics.text.attributions import is_attributed
from pytest_ragmetrics.text.quotations import find_quotations


@pytest.mark.parametrize(
    "text",
    [
        'The handbook says "the pump needs nine minutes".',
        'The manual states that "the pump needs nine minutes".',
        'As you asked, the handbook says: "the pump needs nine minutes".',
        'On page 4 the report says on page 5: "the pump needs nine minutes".',
        'The document says the following: "the pump needs nine minutes".',
        'The label reads "the pump needs nine minutes".',
        'Yes. The source mentions "the pump needs nine minutes".',
        'The engineers say "the pump needs nine minutes".',
        'The author wrote: "the pump needs nine minutes".',
        'According to the handbook, "the pump needs nine minutes".',
        'According to passage 2: "the pump needs nine minutes".',
        '"The pump needs nine minutes," says the handbook.',
        '"The pump needs nine minutes", the handbook states.',
        '"the pump needs nine minutes", according to the manual.',
        'No, the handbook says "the pump needs nine minutes".',
        "Im Handbuch steht: „Die Pumpe braucht neun Minuten“.",
        "Im Handbuch heißt es: „Die Pumpe braucht neun Minuten“.",
        "Im Handbuch heißt es, dass „die Pumpe neun Minuten braucht“.",
        "Laut Handbuch „braucht die Pumpe neun Minuten“.",
        "Das Handbuch sagt, „die Pumpe braucht neun Minuten“.",
        "Selon le manuel, « la pompe a besoin de neuf minutes ».",
        "Le manuel dit que « la pompe a besoin de neuf minutes ».",
        "Según el manual, «la bomba necesita nueve minutos».",
        "El manual dice que «la bomba necesita nueve minutos».",
        "Secondo il manuale «la pompa richiede nove minuti».",
        "Nel manuale si legge «la pompa richiede nove minuti».",
        "O manual diz “a bomba precisa de nove minutos”.",
        "Volgens de handleiding “heeft de pomp negen minuten nodig”.",
        "Instrukcja mówi „pompa potrzebuje dziewięciu minut”.",
        "Handboken säger ”pumpen behöver nio minuter”.",
        "В руководстве сказано: «насосу нужно девять минут».",
        "Согласно руководству, «насосу нужно девять минут».",
        "Σύμφωνα με το εγχειρίδιο, «η αντλία θέλει εννέα λεπτά».",
        "手册说：“水泵需要九分钟”。",
        "手册中写道“水泵需要九分钟”。",
        "根据手册，“水泵需要九分钟”。",
        "説明書には「ポンプは九分かかる」と書いてある。",
        '매뉴얼에 "펌프는 구 분이 걸린다"라고 적혀 있다.',
        "يقول الدليل «المضخة تحتاج تسع دقائق».",
        'במדריך כתוב "המשאבה צריכה תשע דקות".',
        'मैनुअल में लिखा है "पंप को नौ मिनट चाहिए"।',
        'Kılavuz "pompa dokuz dakika ister" diyor.',
        'The handbook puts it this way: "the pump needs nine minutes".',
        'The first source makes clear that "the pump needs nine minutes".',
        'From the handbook: "the pump needs nine minutes".',
        'According to section 4 of the second manual, "the pump needs nine minutes".',
        '"The pump needs nine minutes" according to the manual.',
        'Document [2] makes clear that "the pump needs nine minutes".',
        'You asked. It says "the pump needs nine minutes".',
        'No, "the pump needs nine minutes," says the handbook.',
        'Dr. Smith confirms "the pump needs nine minutes".',
    ],
)
def test_quotation_of_a_source_is_told_by_the_words_beside_it(text: str) -> None:
    """A word of saying or "according to" before it, or behind it and a comma, in each language."""
    assert [is_attributed(text, quotation) for quotation in find_quotations(text)] == [True]


@pytest.mark.parametrize(
    "text",
    [
        'You say "the pump needs nine minutes".',
        'You asked "does the pump need nine minutes".',
        'Your question says "the pump needs nine minutes".',
        'The question, which says "the pump needs nine minutes", is odd.',
        'The handbook does not say "the pump needs nine minutes".',
        'No passage states "the pump needs nine minutes".',
        'None of the passages says that "the pump needs nine minutes".',
        'The handbook doesn\'t say "the pump needs nine minutes".',
        'The handbook doesn’t say "the pump needs nine minutes".',
        'I cannot say whether the handbook states "the pump needs nine minutes".',
        'The answer to the question "how does the pump fill" is no.',
        'The passage says that the answer to the question "how does the pump fill" is no.',
        '"The pump needs nine minutes," you say.',
        'According to your question, "the pump needs nine minutes".',
        'The user writes: "the pump needs nine minutes".',
        'He reads "the turn of the screw".',
        'The answer to "how does the pump fill" is this.',
        'As for "how does the pump fill", the handbook says nothing.',
        "Im Handbuch steht nicht „die Pumpe braucht neun Minuten“.",
        "In Ihrer Frage steht „die Pumpe braucht neun Minuten“.",
        "Sie schreiben „die Pumpe braucht neun Minuten“.",
        "Le manuel ne dit pas « la pompe a besoin de neuf minutes ».",
        "Vous dites « la pompe a besoin de neuf minutes ».",
        "Votre question dit « la pompe a besoin de neuf minutes ».",
        "El manual no dice «la bomba necesita nueve minutos».",
        "Tu pregunta dice «la bomba necesita nueve minutos».",
        "La tua domanda dice «la pompa richiede nove minuti».",
        "Вы пишете «насосу нужно девять минут».",
        "В вашем вопросе сказано «насосу нужно девять минут».",
        "В руководстве не сказано, что «насосу нужно девять минут».",
        "您说“水泵需要九分钟”。",
        "手册没有说“水泵需要九分钟”。",
        "ご質問には「ポンプは九分かかる」と書いてある。",
        "説明書には「ポンプは九分かかる」と書いていない。",
        '매뉴얼에 "펌프는 구 분이 걸린다"라고 적혀 있지 않다.',
        '질문에 "펌프는 구 분이 걸린다"라고 적혀 있다.',
        'The claim "the pump needs nine minutes" is wrong.',
        'The reports "the pump needs nine minutes" are wrong.',
        "la legge “la pompa richiede nove minuti”.",
        'The handbook fails to say "the pump needs nine minutes".',
        'Based on the given passages, the answer to the question "how does the pump fill": slowly.',
        'You state that the handbook says "the pump needs nine minutes".',
        'Nothing in the handbook says "the pump needs nine minutes".',
    ],
)
def test_words_of_who_asks_and_denied_words_are_no_quotation_of_a_source(text: str) -> None:
    """The user, the question, a negation, a doubt, a noun that looks like a verb, a sentence about a quotation."""
    assert [is_attributed(text, quotation) for quotation in find_quotations(text)] == [False]
