"""Conversations on the page and in words: the strip of turns, contexts of earlier turns, the whole."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from pytest_ragmetrics import metric
from pytest_ragmetrics.core.result import Evidence, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.metrics import AspectCritique, Faithfulness, LexicalGrounding, ToolCallF1
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.plugin.recorder import junit_properties
from pytest_ragmetrics.report import tests_view
from pytest_ragmetrics.report.markdown import render_markdown
from pytest_ragmetrics.report.page import render_html
from pytest_ragmetrics.report.sample_view import SampleView, build_sample_views
from pytest_ragmetrics.report.tests_view import build_report_view
from pytest_ragmetrics.runs.records import Record, document_schema, render_json
from pytest_ragmetrics.runs.wording.digest import Failure, digest
from pytest_ragmetrics.runs.wording.failures import explain_row
from pytest_ragmetrics.runs.wording.runs import conversation_costs, last_answers_text
from tests.documents import HOSTILE, document, record, row, usage
from tests.talk import LONG, SHORT, TALK, VALVE, rows, talk, turns, verdicts_of, whole


def views() -> dict[str, tests_view.TestView]:
    return {view.name: view for view in build_report_view(talk()).tests}


def strip(view: tests_view.TestView) -> list[tuple[Any, ...]]:
    """Return of each turn its number, score, where it leads to, and whether it is the one that is shown."""
    scores = [None if turn.record is None else turn.record.score for turn in view.turns]
    goals = [
        turn.anchor and turn.anchor.partition("::")[2] if turn.sample is None else turn.sample for turn in view.turns
    ]
    return [
        (turn.number, score and round(score, 2), goal, turn.current)
        for turn, score, goal in zip(view.turns, scores, goals, strict=True)
    ]


def seen(sample: SampleView) -> dict[str, str]:
    """Return how the contexts of earlier turns look, by their place."""
    return {
        it.label: "".join(
            f"[{piece.looks[0]} {piece.text}]" if piece.marks else piece.text
            for stretch in it.stretches
            for piece in stretch.pieces
        )
        for it in sample.earlier
    }


def test_the_strip_leads_from_each_turn_to_the_others() -> None:
    names = [f"test_row[pump-t{number}]" for number in (1, 2, 3)]
    scores, found = (0.0, 0.67, 1.0), views()
    for here, name in enumerate(names):
        others = [(n + 1, score, None if n == here else names[n], n == here) for n, score in enumerate(scores)]
        rest = [(4, None, None, False), (None, 0.5, "test_row[pump]", False)]
        assert strip(found[name]) == [*others, *rest]
    assert strip(found["test_row[pump]"])[-1] == (None, 0.5, None, True)
    assert strip(found["test_talk"]) == [(1, 0.0, 0, False), (2, 0.67, 1, False), (3, 1.0, 2, False)]
    assert [turn.question for turn in found[names[0]].turns][1:3] == ["And the KX-13, compared?", "ありがとう"]


def test_a_conversation_under_two_parameters_is_two() -> None:
    scored = [it.records[0] for it in rows()[:2]]
    both = [row(f"test_row[{model}-t1-tall-t{n}]", scored[n - 1]) for model in "ab" for n in (1, 2)]
    for view in build_report_view(document(*both)).tests:
        assert [turn.record is not None for turn in view.turns] == [True, True]
        assert all(turn.anchor is None or f"[{view.name[9]}-" in turn.anchor for turn in view.turns)


def test_a_row_that_is_no_turn_has_no_strip() -> None:
    sample = {"response": "Yes.", "metadata": {"messages": TALK, "turn": {"of": "mine"}, "conversation": ["x"]}}
    (view,) = build_report_view(document(row("test_a", record(sample=sample)))).tests
    assert (view.turns, view.samples[0].turn, view.samples[0].spoken) == ((), None, ())


@pytest.mark.parametrize(
    ("start", "kind", "word"),
    [
        ("The KX-13", "found", "found"),
        ("静か", "found", "found earlier, in turn 1"),
        ("The KX-12", "missing", "repeated from turn 1, where no passage has it"),
        ("You bought", "uncounted", "told by the user in turn 1"),
    ],
)
def test_a_verdict_looks_like_its_likes(start: str, kind: str, word: str) -> None:
    (sample,) = views()["test_row[pump-t2]"].samples
    (score,) = sample.scores
    (found,) = (it for it in (*score.findings, *score.others) if it.verdict.text.startswith(start))
    assert (found.kind, found.word, found.turn, found.marked) == (kind, word, "turn2", True)


def test_contexts_of_earlier_turns_are_numbered_turn_by_turn() -> None:
    (sample,) = views()["test_row[pump-t2]"].samples
    place = VALVE.index("静か")
    assert seen(sample) == {
        "turn 1, contexts[0]": SHORT,
        "turn 1, contexts[1]": f"{VALVE[:place]}[evidence {VALVE[place:]}]",
    }
    labels = [place.label for score in sample.scores for it in score.others for place in it.evidence]
    assert labels == [f"contexts[0][0:{len(LONG)}]", f"turn 1, contexts[1][{place}:{len(VALVE)}]"]
    (last,) = views()["test_row[pump-t3]"].samples
    assert [*seen(last)] == [
        *("turn 1, contexts[0]", "turn 1, contexts[1]"),
        *("turn 2, contexts[0]", "turn 2, contexts[1]"),
    ]
    assert views()["test_row[pump-t1]"].samples[0].earlier == ()
    assert {"earlier_contexts", "messages"} & dict(last.rest).keys() == {"messages"}


@pytest.mark.parametrize("piece", [(1, 9), (9, 0), (1, -1), (True, 0)])
def test_evidence_of_an_earlier_turn_that_does_not_fit_marks_nothing(piece: tuple[int, int]) -> None:
    turn, context = piece
    odd = Evidence(context=context, start=0, end=5, text="Other", turn=turn)
    made = replace(record(verdicts=[Verdict(text="x", ok=True, evidence=(odd,))]), sample=turns()[1])
    (sample,) = build_sample_views([made])
    (place,) = sample.scores[0].others[0].evidence
    assert (place.anchor, place.label) == (None, f"turn {turn}, contexts[{context}][0:5]")


@pytest.mark.parametrize(
    "metadata",
    [
        {"messages": "none", "turn": 2, "conversation": "c", "lacking": ()},
        {"messages": [1, 2], "turn": "all", "conversation": "c", "lacking": ()},
        {"messages": TALK, "turn": 2, "conversation": None, "lacking": (), "earlier_contexts": ["abc", 1]},
        {
            "messages": TALK,
            "turn": 2,
            "conversation": "c",
            "lacking": (),
            "earlier_contexts": [[1, "Dry."], [{}, "Wet."]],
        },
        *(
            {
                "messages": [{"role": "user", "content": text}, {"role": "assistant", "content": text}] * 2,
                "turn": turn,
                "conversation": text,
                "lacking": (),
                "earlier_contexts": [[1, text]],
            }
            for text in HOSTILE
            for turn in (2, "all")
        ),
    ],
)
def test_no_metadata_breaks_the_page(metadata: dict[str, Any]) -> None:
    odd = Evidence(context=0, start=0, end=1, text="<", turn=1)
    verdicts = [Verdict(text=HOSTILE[2], ok=False, turn=7, kind="repeated", evidence=(odd,))]
    page = render_html(
        document(row("test_a", record(sample={"response": "So.", "metadata": metadata}, verdicts=verdicts)))
    )
    assert not re.search("<(img|iframe|base|svg onload)", page)


def test_the_whole_conversation_is_read_turn_by_turn() -> None:
    view = views()["test_row[pump]"]
    (sample,) = view.samples
    assert (view.title, sample.question, sample.response, sample.earlier) == ("test_row[pump]", None, None, ())
    said = [(it.turn, it.role, it.beside, it.anchor) for it in sample.spoken]
    assert said == [
        *((1, "user", "", "turn1"), (1, "assistant", "", None), (2, "user", "", "turn2"), (2, "assistant", "", None)),
        *((3, "user", "", "turn3"), (3, "assistant", "calls close(log=1)", None), (4, "user", "", "turn4")),
    ]
    (score,) = sample.scores
    (wrong,) = score.findings
    (place,) = wrong.evidence
    assert (wrong.word, wrong.turn, place.label) == ("not kept", "turn2", "turn 2, assistant")
    marked = [piece.text for part in sample.spoken[3].stretches for piece in part.pieces if piece.marks]
    assert marked == [LONG]
    assert "Bye" in sample.values


def test_single_words_are_listed_in_a_conversation_too() -> None:
    """Words found earlier make no list of verdicts of a metric that judges word by word."""
    words = [Verdict(text=word, ok=word != "noon", start=0, end=1) for word in ("moth", "lamp", "noon")]
    told = Verdict(text="dusk", ok=True, kind="told by the user", reason="told by the user in turn 1")
    made = replace(record("lexical_grounding", 0.6, outcome="failed", verdicts=[*words, told]), sample=turns()[1])
    (sample,) = build_sample_views([made])
    assert (sample.scores[0].words, sample.scores[0].findings) == (("noon",), ())


def test_a_line_on_a_verdict_begins_with_its_turn() -> None:
    *_, second, third = (it.records[0] for it in rows()[:3])
    message = "E   AssertionError: faithfulness 0.67 < 0.90: 1 of 3 claims not supported"
    failure = Failure(test="tests/test_a.py::test_x", line=3, phase="", message=message, records=[second])
    assert digest([failure])[-1] == (
        ' turn 2 "The KX-12 needs ninety minutes." response[40:71]: repeated from turn 1, where no passage has it'
    )
    text = render_markdown(talk())
    assert "1 of 1 claim not supported: turn 1 &#34;The KX-12" in text.replace('"', "&#34;")
    assert explain_row(third.sample)[:2] == ["turn 3", "2 earlier messages, then"]
    assert junit_properties([second, whole(turns()[-1])]) == [
        ("rag.faithfulness", 2 / 3),
        ("rag.faithfulness.turn", 2),
        ("rag.knowledge_retention", 0.5),
    ]


def test_turns_are_in_the_file_of_the_run() -> None:
    text = render_json(talk())
    assert {'"turn": 2}', '"kind": "told by the user"'} <= {*re.findall('"turn": 2}|"kind": "told by the user"', text)}
    assert {"turn"} <= document_schema()["$defs"]["Evidence"]["properties"].keys()


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ([2, 9, 3], "3 conversations: only the last of 2 to 9 answers was scored; "),
        ([4], "1 conversation: only the last of 4 answers was scored; "),
        ([2, 2], "2 conversations: only the last of 2 answers was scored; "),
    ],
)
def test_answers_that_are_left_out_are_counted(answers: list[int], text: str) -> None:
    assert last_answers_text(answers) == f'{text}turns="each" scores all'


@metric
def mine(sample: Sample) -> float:
    return 1.0


@metric
def of_answer(response: str) -> float:
    return 1.0


PUMP = Sample.from_mapping({"id": "pump", "messages": TALK})


@pytest.mark.parametrize(
    ("scored", "sample", "answers"),
    [
        (Faithfulness(judge="local"), PUMP, 3),
        (LexicalGrounding(), PUMP, 3),
        (of_answer, PUMP, 3),
        (LexicalGrounding(), Sample.from_mapping({"messages": TALK[:2]}), 0),
        (LexicalGrounding(), Sample(response="Yes."), 0),
        (LexicalGrounding(), turns()[1], 0),
        (LexicalGrounding(), replace(PUMP, metadata={"messages": 7}), 0),
        # All turns are shown.
        (AspectCritique(name="polite", definition="Is it polite?", judge="local"), PUMP, 0),
        (ToolCallF1(), PUMP, 0),
        (mine, PUMP, 0),
    ],
)
def test_a_metric_of_answers_knows_how_many_a_row_has(scored: Metric, sample: Sample, answers: int) -> None:
    assert scored.answers_of(sample) == answers


def test_conversations_have_their_cost() -> None:
    records = [it for test in rows()[:4] for it in test.records]
    assert conversation_costs(records) == ["1 conversation, 3 turns: $0.014 a conversation, $0.0040 a turn"]
    free = [replace(it, usage=usage(cost=cost)) for it, cost in zip(records, (0.0, None, 0.0), strict=False)]
    plain: list[Record] = [record(usage=usage())]
    assert conversation_costs(free) == conversation_costs(plain) == []
    assert verdicts_of(3) == []


def test_turns_are_shown_in_their_order() -> None:
    """Whichever was scored first; conversations stay as they came."""
    talks = [Sample.from_mapping({"id": name, "messages": TALK}).turns()[:2] for name in ("b", "a")]
    late_first = [turn for first, second in talks for turn in (second, first)]
    views = build_sample_views([record(sample=turn.to_mapping()) for turn in late_first])
    assert [json.loads(view.values)["id"] for view in views] == ["b-t1", "b-t2", "a-t1", "a-t2"]
