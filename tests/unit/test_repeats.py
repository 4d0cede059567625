"""Replies that repeat: when a judge told nothing apart, and where a run says so."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from html import unescape
from typing import Any

import pytest

from pytest_ragmetrics.core.result import MetricResult
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges.context import Exchange, Scoring
from pytest_ragmetrics.judges.schema import TEXT, one_of, record
from pytest_ragmetrics.judges.tasks import Task
from pytest_ragmetrics.report.markdown import render_markdown
from pytest_ragmetrics.report.page import render_html
from pytest_ragmetrics.runs.merge import merge_documents
from pytest_ragmetrics.runs.records import Document
from pytest_ragmetrics.runs.wording.repeats import RepeatedReplies, replies_of
from tests.documents import HOSTILE, document, row

JUDGE = "openai:smollm2-135m"
SAME = '{"reason": "The year is given.", "rating": 2}'
ENDING = "; where these rows differ, it tells nothing apart (try ragmetrics probe)"


def scoring(*asked: tuple[str, str | None], task: str = "rate_relevance", judge: str = JUDGE) -> Scoring:
    outcome = MetricResult(1.0, metric="m")
    exchanges = (Exchange(task=task, vote=0, prompt=it, reply=reply, cached=False, judge=judge) for it, reply in asked)
    return Scoring(metric="m", sample=Sample(response="Yes."), outcome=outcome, exchanges=tuple(exchanges))


def warnings_of(scorings: Iterable[Scoring], redact: Callable[[str], str] | None = None) -> tuple[str, ...]:
    """Return the warnings of a run of these scorings, sent from process to process as JSON."""
    found = RepeatedReplies()
    for each in scorings:
        found.add(json.loads(json.dumps(list(replies_of(each, redact)))))
    return found.warnings()


def rows(same: int, others: int = 0, reply: str = SAME, **asked: str) -> list[Scoring]:
    """Return the scorings of rows of which some got the same reply, and the others each one of its own."""
    own = [SAME.replace("year", f"{number}th year") for number in range(others)]
    return [scoring((f"prompt {n}", text), **asked) for n, text in enumerate([*[reply] * same, *own])]


def test_how_a_reply_is_set_is_no_difference() -> None:
    replies = [json.dumps(json.loads(SAME), indent=indent) for indent in (None, 0, 1, 2, 4)]
    (said,) = warnings_of(scoring((f"prompt {n}", reply)) for n, reply in enumerate(replies))
    assert said.startswith("5 of 5 answers to rate_relevance")


@pytest.mark.parametrize(
    ("same", "others", "share"),
    [(4, 0, ""), (5, 0, "5 of 5"), (7, 1, "7 of 8"), (5, 5, "5 of 10"), (5, 6, ""), (5, 15, ""), (4, 4, "")],
)
def test_five_rows_and_half_of_all_make_a_warning(same: int, others: int, share: str) -> None:
    line = f"{share} answers to rate_relevance of {JUDGE} are the same text: '{SAME}'{ENDING}"
    assert warnings_of(rows(same, others)) == ((line,) if share else ())


def test_a_prompt_that_is_asked_again_is_the_same_row() -> None:
    assert not warnings_of([scoring(("prompt", SAME), ("prompt", SAME))] * 9 + rows(3))
    lost = [scoring((f"lost {n}", None)) for n in range(6)]
    assert warnings_of(rows(5) + lost[:5])[0].startswith("5 of 10 answers")
    assert not warnings_of(rows(5) + lost)
    # A second vote with another reply is no other row.
    assert warnings_of(rows(5) + [scoring((f"prompt {n}", f'"{n}"')) for n in range(5)])[0].startswith("5 of 5 ")


VERIFIED = '{"verdicts": [{"number": 1, "reason": "%s", "sentences": %s, "verdict": "supported"}]}'


@dataclass(frozen=True)
class Grade(Task[str]):
    prompt = "repeats_grade"
    form = record(why=TEXT, grade=one_of("good", "bad"))

    def _parse(self, answer: Any) -> str:
        return str(answer["grade"])


@pytest.mark.parametrize(
    ("task", "reply", "counts"),
    [
        *(("select_sentences", '{"sentences": []}', False), ("list_claims", '{"claims": []}', False)),
        *(("list_claims", "", False), ("list_claims", ' {"claims": ["", " "]}', False)),
        ("critique", '{"reason": "", "verdict": "yes"}', False),
        ("critique", '```json\n{"reason": "", "verdict": "yes"}\n```', False),
        ("critique", '{"reason": "It is kind.", "verdict": "yes"}', True),
        ("verify_claims", VERIFIED % ("", "[1]"), False),
        # No word of this task.
        *(("verify_claims", VERIFIED % ("yes", "[]"), True), ("list_entities", '{"entities": ["Paris"]}', True)),
        (Grade.prompt, '{"why": "", "grade": "good"}', False),
        (Grade.prompt, '{"why": "So.", "grade": "good"}', True),
        ("list_claims", "I cannot help with that.", True),
    ],
)
def test_a_reply_without_free_text_does_not_count(task: str, reply: str, counts: bool) -> None:
    """Honest judges repeat numbers and enumerated words, and nothing else."""
    assert bool(warnings_of(rows(9, reply=reply, task=task))) is counts


def test_a_reply_may_be_nested_as_deep_as_the_parser_bears() -> None:
    depths = (100, 300, 900, 970, 990, 5000, 100_000)
    found = [warnings_of(rows(5, reply=f'{{"claims": {"[" * depth}{"]" * depth}}}')) for depth in depths]
    assert found[0] == ()


def test_several_tasks_make_one_warning() -> None:
    other = rows(5, 2, task="critique", judge="openai:other")
    many = rows(8, task="list_claims", reply='{"claims": ["It says so."]}')
    contexts = [*rows(5, task="rate_contexts"), *rows(5, task="review_contexts")]
    few = [*rows(4, task="judge_refusal"), *rows(5, 9, judge="openai:good")]
    found = warnings_of([*rows(6), *many, *other, *contexts, *few])
    likewise = "6 of 6 to rate_relevance, 5 of 5 to rate_contexts, 5 of 5 to review_contexts and 1 more"
    said = f"8 of 8 answers to list_claims of {JUDGE} are the same text (likewise {likewise}): "
    assert found == (f"""{said}'{{"claims": ["It says so."]}}'{ENDING}""",)
    (panel,) = warnings_of(rows(6) + other)
    assert "(likewise 5 of 7 to critique of openai:other): " in panel


def test_the_text_is_short_printable_and_redacted() -> None:
    long = '{"reason": "\x1b[31m\u202eAda said\nso. sk-proj-0123456789abcdefghij", "rating": 2}' + " " * 900 + "."
    (shown,) = warnings_of(rows(5, reply=long), lambda text: text.replace("Ada", "[name]"))
    assert """are the same text: '{"reason": "[31m[name] said so. ***", "rating": 2}'""" in shown
    assert not warnings_of([scoring((f"{n}", f'"{n} Ada"')) for n in range(9)], lambda text: "[all]")
    (cut,) = warnings_of(rows(5, reply=f'{{"claims": ["{"It is so. " * 500}"]}}'))
    assert len(cut) < 250


def warned(*texts: str) -> Document:
    made = document(row("test_a"), notes=["a note"])
    return replace(made, run=replace(made.run, warnings=texts))


def test_page_and_markdown_show_the_warning() -> None:
    (text,) = warnings_of(rows(5, reply=f'{{"reason": "{HOSTILE[0]}", "rating": 2}}'))
    assert HOSTILE[0] in text
    paragraphs = re.findall('<p class="warning">(.*?)</p>', render_html(warned(text)), re.DOTALL)
    assert text in [unescape(re.sub("<[^>]*>", "", markup)) for markup in paragraphs]
    markdown = render_markdown(warned(text))
    assert '\'{"reason": "&#60;script&#62;window.pwned=1&#60;/script&#62;"' in markdown
    assert markdown.index("are the same text") < markdown.index("a note")
    assert "same text" not in render_html(warned()) + render_markdown(warned())
    # Shards unite theirs; that files hold them is shown by the hostile document of the schema's tests.
    assert merge_documents([warned(text), warned(), warned(text, "other")]).run.warnings == (text, "other")
