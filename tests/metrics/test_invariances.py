"""What does not change a score: white space, line ends, the Unicode form, the order and the repetition of contexts.

Every metric of the catalogue is held to it with a judge that answers by rule; where one differs, the table says why.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from itertools import product
from typing import Any
from unicodedata import normalize

import pytest

from pytest_ragmetrics import Sample
from pytest_ragmetrics.metrics import Metric
from tests.metrics.catalogue import INPUTS, KINDS, made

FIELDS = ("user_input", "response", "reference", "retrieved_contexts", "reference_contexts")
CONTEXTS = ("retrieved_contexts", "reference_contexts")
Change = Callable[[str], str]


def wrapped(line_end: str) -> Change:
    return lambda text: line_end.join(textwrap.wrap(text, 60, break_long_words=False, break_on_hyphens=False))


#: Changes of a text that a reader does not see.
LAYOUT: Mapping[str, Change] = {
    "blanks behind": lambda text: text + " " * 300,
    "blanks and lines around": lambda text: f" \r\n\t{text} \t\n \n",
    "two spaces": lambda text: text.replace(" ", "  "),
    "lines": wrapped("\n"),
    "lines of Windows": wrapped("\r\n"),
    "indented lines": wrapped(" \n  "),
    "lines of Unicode": wrapped("\u2028"),
    "lines of a mainframe": wrapped("\x85"),
    "thin spaces": lambda text: text.replace(" ", "\u2009"),
    "hard spaces": lambda text: text.replace(" ", "\u00a0"),
    "composed": lambda text: normalize("NFC", text),
    "decomposed": lambda text: normalize("NFD", text),
}
_AS_IT_IS = "it compares the texts character for character"
_BY_RANK = "it counts contexts down to a rank"
_BY_NUMBER = "citations are numbers of contexts"
_RANKED = dict.fromkeys(("context_precision", "context_utilization", "non_llm_context_precision"), _BY_RANK)
#: The metrics whose score may change, and why.
DIFFERENT: Mapping[str, Mapping[str, str]] = {
    "layout": {"exact_match": _AS_IT_IS, "string_presence": _AS_IT_IS},
    "order": {**_RANKED, "citation_recall": _BY_NUMBER, "citation_precision": _BY_NUMBER},
    "repetition": _RANKED,
}
#: Sentences with names, numbers, dates and accents in scripts of several kinds: response, contexts, question.
LANGUAGES = {
    "English": None,
    "German": (
        "Die Brücke bei Köln wurde am 5. März 1998 von Zoë Müller eröffnet. Sie ist 1.200 m lang, also 12 % mehr [1].",
        "Die Brücke bei Köln wurde im März 1998 von Zoë Müller eröffnet. Sie kostete 3 Millionen Euro.",
        "Angela Merkel sagte in Düsseldorf, die Länge von 1.200 m genüge.",
    ),
    "Russian": (
        "Мост возле Йошкар-Олы открыл Алексей Бойко 5 марта 1998 года [1]. Его длина 1200 м, это на 12 % больше.",
        "Мост возле Йошкар-Олы открыл Алексей Бойко в марте 1998 года.",
        "Длина моста 1200 м. Алексей Бойко не жил в Можайске.",
    ),
    "Vietnamese": (
        "Cây cầu gần Huế được Nguyễn Văn Đức khánh thành năm 1998 [1]. Sau đó Trần Thị Hương đến Đà Nẵng.",
        "Cây cầu gần Huế được Nguyễn Văn Đức khánh thành năm 1998.",
        "Trần Thị Hương sống ở Đà Lạt.",
    ),
    "Korean": (
        "오슬로 근처의 다리는 1998년 3월 5일에 김민수가 열었다 [1]. 길이는 1,200 m이다. UNESCO가 칭찬했다.",
        "오슬로 근처의 다리는 1998년 3월에 김민수가 열었다.",
        "길이는 1,200 m이다. UNESCO는 파리에 있다.",
    ),
    "Japanese": (
        "オスロ近くの橋は1998年3月5日に開通した [1]。ガーデンの長さは1,200 mです。",
        "オスロ近くの橋は1998年3月に開通した。",
        "ガーデンの長さは1,200 mです。",
    ),
}


def inputs_in(language: str) -> dict[str, Any]:
    texts = LANGUAGES[language]
    if texts is None:
        return INPUTS
    response, first, second = texts
    contexts = {"retrieved_contexts": [first, second], "reference_contexts": [first]}
    return {**INPUTS, "user_input": second, "response": response, "reference": first, **contexts}


def score(metric: Metric, inputs: Mapping[str, Any]) -> float:
    return metric.score_sample(Sample.from_mapping(inputs)).value


def changed(inputs: Mapping[str, Any], change: Change, *fields: str) -> dict[str, Any]:
    texts = {name: inputs[name] for name in fields}
    new = {name: change(text) if isinstance(text, str) else [*map(change, text)] for name, text in texts.items()}
    return {**inputs, **new}


@cache
def relaid(language: str) -> list[tuple[str, tuple[str, ...], dict[str, Any]]]:
    changes = [*product((("response",), CONTEXTS, ("reference",), FIELDS), LAYOUT)]
    inputs, mine = inputs_in(language), changes[[*LANGUAGES].index(language) :: len(LANGUAGES)]
    found = [(name, fields, changed(inputs, LAYOUT[name], *fields)) for fields, name in mine]
    return [(name, fields, new) for name, fields, new in found if new != inputs]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_layout_and_form_of_a_text(kind: type[Metric]) -> None:
    """Of one field or of all: also where the response is decomposed and the contexts are composed."""
    metric = made(kind)
    differing = []
    for language in [] if kind.name in DIFFERENT["layout"] else LANGUAGES:
        expected = pytest.approx(score(metric, inputs_in(language)), abs=1e-9)
        differing += [(language, *each) for *each, new in relaid(language) if score(metric, new) != expected]
    assert differing == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_order_and_repetition_of_contexts(kind: type[Metric]) -> None:
    """Of those that were retrieved and those of the reference; what is counted twice is divided by twice as much."""
    metric, twice = made(kind), {"retrieved_contexts": INPUTS["retrieved_contexts"] * 2}
    changes = {"order": {name: INPUTS[name][::-1] for name in CONTEXTS}, "repetition": twice}
    for change, texts in changes.items():
        if kind.name not in DIFFERENT[change]:
            assert score(metric, {**INPUTS, **texts}) == pytest.approx(score(metric, INPUTS))


@pytest.mark.parametrize("exceptions", DIFFERENT)
def test_an_exception_is_needed(exceptions: str) -> None:
    texts, found = {**INPUTS, "response": INPUTS["reference"]}, INPUTS["retrieved_contexts"]
    changes = {
        "layout": [changed(texts, change, "response") for change in LAYOUT.values()],
        "order": [{**INPUTS, "retrieved_contexts": order} for order in (found[::-1], [*found[1:], found[0]])],
        "repetition": [{**INPUTS, "retrieved_contexts": found * 2}],
    }
    for kind in (kind for kind in KINDS if kind.name in DIFFERENT[exceptions]):
        usual = score(made(kind), texts if exceptions == "layout" else INPUTS)
        assert any(score(made(kind), new) != usual for new in changes[exceptions]), kind.name


@pytest.mark.parametrize("name", ["names_aligned", "numbers_aligned", "lexical_grounding", "quoted_spans_alignment"])
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_places_are_those_of_the_text_as_it_is(name: str, language: str, form: Any) -> None:
    (kind,) = (kind for kind in KINDS if kind.name == name)
    inputs = changed(inputs_in(language), lambda text: normalize(form, text), *FIELDS)
    for verdict in made(kind).score_sample(Sample.from_mapping(inputs)).verdicts:
        assert inputs["response"][verdict.start : verdict.end] == verdict.text
        assert not re.match(r"[\u0300-\u036f\u3099\u309a]", inputs["response"][verdict.end or 0 :])
        for piece in verdict.evidence:
            assert inputs["retrieved_contexts"][piece.context][piece.start : piece.end] == piece.text
