"""A run with one test of every kind, as a person might meet them on a working day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pytest_ragmetrics.core.result import Verdict
from pytest_ragmetrics.runs import records as shapes
from tests.documents import HANDBOOK, document, evidence, exchange, gate, nearest, record, row, usage, verdict

MODEL = "openai:gpt-5-mini"
GERMAN = "Die Sitzbank vor dem Gemeindehaus wurde 1931 von den Schülern der Gewerbeschule gebaut und zweimal erneuert."
ARABIC = "تفتح المكتبة أبوابها من الساعة التاسعة صباحا حتى السادسة مساء، وتغلق يوم الجمعة."
HEBREW = "הספרייה פתוחה בכל יום משמונה עד שבע, ובימי שישי עד אחת בצהריים."
SETTINGS: dict[str, str | float | bool | None] = {
    "rag_judge": MODEL, "rag_embedder": "openai:text-embedding-3-small", "rag_cache": "auto", "rag_votes": 3,
    "rag_concurrency": 32, "rag_max_cost": 0.5, "rag_dry_run": False, "rag_cassette": None,
}  # fmt: skip
NOTES = ["budget: $0.0098 of $0.50 spent", "cassette: none in use, 3 answers came from the cache"]


def showcase() -> shapes.Document:
    """Return the document of a run with passing, failing and unscored tests, and all the rest."""
    tests = (*_quotations(), *_judged(), *_others(), *_languages(), *_golden(), *_gates())
    return document(*tests, settings=SETTINGS, notes=NOTES)


def baseline() -> shapes.Document:
    """Return the document of the run before: some scores were better then, some worse, one is gone, some are new."""
    tests = [_earlier(test) for test in showcase().tests if test.id.rpartition("-")[2] not in ("13]", "14]")]
    gone = _faithfulness(0.91, "Ponds?", "Not deeper than a spade.")
    return document(*tests, row("test_ponds", gone), exit_status=0)


def _earlier(test: shapes.TestRecord) -> shapes.TestRecord:
    then = {
        ("test_shed_size", "faithfulness"): 0.9,
        ("test_bees", "faithfulness"): 0.85,
        ("test_golden[row-0]", "answer_relevancy"): 0.84,
        ("test_golden[row-4]", "answer_relevancy"): 0.71,
        ("test_golden[row-5]", "answer_relevancy"): 0.85,
    }
    name = test.id.partition("::")[2]
    records = (replace(scored, score=then.get((name, scored.metric), scored.score)) for scored in test.records)
    return replace(test, records=tuple(records))


def _sample(question: str, response: str, **more: object) -> dict[str, Any]:
    return {"user_input": question, "response": response, "retrieved_contexts": list(HANDBOOK), **more}


def _faithfulness(score: float | None, question: str, response: str, **settings: Any) -> shapes.Record:
    sample = _sample(question, response)
    return record("faithfulness", score, **{"at_least": 0.8, "judge": MODEL, "sample": sample, **settings})


def _quoted(text: str, response: str, contexts: list[str]) -> Verdict:
    where = [evidence(text, contexts, 0)]
    return verdict(text, ok=True, response=response, reason="found, exact", evidence=where)


def _quotations() -> Iterator[shapes.TestRecord]:
    response = (
        "The handbook is clear about the rent: a full plot costs “62 pounds a year for a full plot and 34 pounds for a "
        "half plot”. You may lose it when it is “left uncultivated for six weeks in the summer”, and it says that "
        "“hoses may be used at any time of the day”, so watering is no problem."
    )
    weeks = [
        ("same", "left uncultivated for", "left uncultivated for"), ("replaced", "six", "eight"),
        ("same", "weeks in", "weeks in"), ("added", "the", ""), ("same", "summer", "summer"),
    ]  # fmt: skip
    hoses = [
        ("replaced", "hoses", "watering cans"), ("same", "may be used at any time", "may be used at any time"),
        ("added", "of the day", ""),
    ]  # fmt: skip
    eight = nearest("left uncultivated for eight weeks in summer", HANDBOOK, 0, 0.86, weeks)
    cans = nearest("watering cans may be used at any time", HANDBOOK, 1, 0.71, hoses)
    verdicts = [
        _quoted("62 pounds a year for a full plot and 34 pounds for a half plot", response, list(HANDBOOK)),
        verdict("left uncultivated for six weeks in the summer", ok=False, response=response, nearest=eight),
        verdict("hoses may be used at any time of the day", ok=False, response=response, nearest=cans),
    ]
    given = {"retrieved_context_ids": ["handbook#4", "handbook#7", "handbook#9"], "id": "rent-and-water"}
    question, metadata = "What does a plot cost, and when can I lose it?", {"author": "Mira", "round": 2}
    sample = _sample(question, response, **given, metadata=metadata)
    reason = "Matched 1/3 quoted spans"
    yield row(
        "test_quotes_are_real[rent and water]",
        record(score=1 / 3, outcome="failed", reason=reason, sample=sample, verdicts=verdicts),
        outcome="failed",
        message=(
            "def test_quotes_are_real(answer):\n"
            ">       assert_quoted_spans_aligned(answer.text, answer.contexts, min=0.9)\n"
            "E       AssertionError: quoted_spans_alignment 0.33 < 0.90: 2 of 3 quoted spans not found\n"
            'E         not found: "left uncultivated for six weeks in the summer" (response[143:188])\n'
            "\ntests/test_assistant.py:12: AssertionError"
        ),
        duration=0.012,
    )
    sample = _sample("Can I keep hens?", "I could not find anything about hens in the handbook.")
    yield row("test_no_quotes", record(reason="No quoted spans found in response", vacuous=True, sample=sample))


def _judged() -> Iterator[shapes.TestRecord]:
    question, response = "How big may my shed be?", (
        "You need the committee's consent for a shed. It may be two metres by one and a half. "
        "Most members choose cedar. A concrete base is recommended."
    )  # fmt: skip
    consent = evidence("Sheds need the committee's consent.", HANDBOOK, 2)
    shed = evidence("A shed may be at most two metres by one and a half", HANDBOOK, 2)
    size = "A shed may measure two metres by one and a half, as the Allotment Act of 1908 has it."
    cedar = "None of the passages says what sheds are made of."
    concrete = "The passage forbids concrete foundations."
    near = nearest("Concrete foundations are not allowed.", HANDBOOK, 2, 0.64)
    claims = [
        verdict("A shed needs the committee's consent.", ok=True, evidence=[consent]),
        verdict(size, ok=True, suspicious=True, evidence=[shed]),
        verdict("Most members choose cedar for their shed.", ok=False, reason=cedar),
        verdict("A concrete base is recommended for a shed.", ok=False, suspicious=True, reason=concrete, nearest=near),
    ]
    asked = exchange(
        "Which of these claims do the numbered sentences support?\n\n"
        "1. A shed needs the committee's consent.\n2. A shed may measure two metres by one and a half.\n\n"
        "[9.1] Sheds need the committee's consent.\n[9.2] A shed may be at most two metres by one and a "
        "half, and no higher than two metres at the ridge.",
        '{"verdicts": [{"number": 1, "supported": true, "sentences": ["9.1"]}, '
        '{"number": 2, "supported": true, "sentences": ["9.2"]}]}',
    )
    generated = ("How large can a shed on an allotment be?", "Do I need consent for a shed?")
    yield row(
        "test_shed_size",
        _faithfulness(
            0.5, question, response, outcome="failed", reason="2 of 4 claims are supported", usage=usage(),
            votes=[0.25, 0.9, 0.35], verdicts=claims,
            exchanges=[asked, exchange("The same claims, asked again.", None, vote=1)],
        ),
        record(
            "answer_relevancy", 0.874, at_least=0.7, judge=MODEL, usage=usage(1, 0, 300, 0.0007),
            sample={"user_input": question, "response": response},
            verdicts=[verdict(question, ok=True) for question in generated],
        ),
        outcome="failed",
        duration=3.41,
        message="E       AssertionError: faithfulness 0.50 < 0.80: 2 of 4 verdicts failed",
    )  # fmt: skip
    question, sentences = (
        "When can I water?",
        ["Water runs from April to October.", "Hoses are for mornings and evenings."],
    )
    response = " ".join(sentences)
    april = evidence("Water is turned on from April to October.", HANDBOOK, 1)
    six = evidence("Hoses may be used before nine in the morning and after six in the evening", HANDBOOK, 1)
    yield row(
        "test_watering",
        _faithfulness(
            1.0, question, response, reason="2 of 2 sentences are supported", usage=usage(0, 2, 0, 0.0, 0.0031),
            verdicts=[
                verdict(sentences[0], ok=True, response=response, evidence=[april]),
                verdict(sentences[1], ok=True, response=response, evidence=[six, april]),
            ],
        ),
        record(
            "harmfulness", 0.0, at_most=0.0, judge=MODEL, usage=usage(0, 1, 0, 0.0, 0.0007),
            sample=_sample(question, response),
        ),
    )  # fmt: skip
    reason = "the judge returned 2 verdicts for 3 claims, also after it was asked to repair its answer"
    bees = "The handbook does not mention bees. Ask the committee."
    yield row(
        "test_bees",
        _faithfulness(None, "May I keep bees?", bees, outcome="unscored", reason=reason),
        outcome="failed",
        duration=9.8,
        message="E       UnscoredError: the judge returned 2 verdicts for 3 claims, also after it was asked to repair",
    )


def _others() -> Iterator[shapes.TestRecord]:
    refused = (
        "    def index():\n>       return connect(port=6333)\n"
        "E       ConnectionRefusedError: [Errno 111] Connection refused"
    )
    yield row("test_index_is_fresh", outcome="error", duration=30.1, message=refused)
    message = "    def test_length(answer):\n>       assert len(answer.text) < 20\nE       assert 41 < 20"
    quoted = record(sample=_sample("Rent?", "It is “62 pounds a year for a full plot”."))
    yield row("test_length", quoted, outcome="failed", message=message)
    reason, response = "1 of 2 claims is supported", "Only on full plots, heated or not."
    half = _faithfulness(0.5, "Greenhouse?", response, outcome="failed", reason=reason)
    yield row("test_greenhouse", half, outcome="xfailed", message="the index does not hold the amendment of May yet")
    compost = _faithfulness(1.0, "Compost?", "Ask the committee.")
    yield row("test_compost", compost, outcome="xpassed", message="compost is not in the handbook")
    sample = _sample("Parking?", "No.", reference="Members park in Mill Lane.")
    recall = record("context_recall", 0.4, outcome="measured", sample=sample)
    message = "Skipped: no permit data in this environment"
    yield row("test_parking", recall, outcome="skipped", message=message, attempts=2)


def _languages() -> Iterator[shapes.TestRecord]:
    response = "In der Chronik heißt es: „wurde 1931 von den Schülern der Gewerbeschule gebaut“."
    verdicts = [_quoted("wurde 1931 von den Schülern der Gewerbeschule gebaut", response, [GERMAN])]
    sample = {"user_input": "Wer hat die Bank gebaut?", "response": response, "retrieved_contexts": [GERMAN]}
    scored = record(reason="Matched 1/1 quoted spans", sample=sample, verdicts=verdicts)
    yield row("test_chronicle[Sitzbank vor dem Gemeindehaus]", scored)
    response = "تقول الصفحة إن المكتبة «تغلق يوم الخميس» وتفتح «من الساعة التاسعة صباحا حتى السادسة مساء»."
    steps = [("replaced", "تغلق", "وتغلق"), ("same", "يوم", "يوم"), ("replaced", "الخميس", "الجمعة")]
    friday = nearest("وتغلق يوم الجمعة", [ARABIC], 0, 0.8, steps)
    verdicts = [
        verdict("تغلق يوم الخميس", ok=False, response=response, nearest=friday),
        _quoted("من الساعة التاسعة صباحا حتى السادسة مساء", response, [ARABIC]),
    ]
    sample = {"user_input": "متى تفتح المكتبة؟", "response": response, "retrieved_contexts": [ARABIC, HEBREW]}
    half = record(score=0.5, outcome="failed", reason="Matched 1/2 quoted spans", sample=sample, verdicts=verdicts)
    message = "E       AssertionError: quoted_spans_alignment 0.50 < 0.90"
    yield row("test_library_hours[العربية]", half, outcome="failed", message=message)
    response, contexts = "案内には「月曜日は休館です」とあります。", ["開館は九時から。月曜日は休館です。"]
    sample = {"response": response, "retrieved_contexts": contexts}
    where = evidence("月曜日は休館です", contexts, 0)
    verdicts = [verdict("月曜日は休館です", ok=True, response=response, evidence=[where])]
    scored = record(reason="Matched 1/1 quoted spans", sample=sample, verdicts=verdicts)
    yield row("test_library_hours[日本語]", scored)


def _golden() -> Iterator[shapes.TestRecord]:
    scores = (0.62, 0.7996, 0.81, 0.84, 0.86, 0.88, 0.9, 0.9, 0.92, 0.93, 0.95, 0.97, 1.0, 1.0, 1.0)
    for index, score in enumerate(scores):
        failed = score < 0.8
        sample = {"user_input": f"Question {index} of the golden set?", "response": f"Answer {index}."}
        verdicts = [verdict(f"Generated question {number} for row {index}?", ok=True) for number in (1, 2, 3)]
        outcome: dict[str, Any] = {"outcome": "failed" if failed else "passed"}
        judged: dict[str, Any] = {
            "judge": MODEL,
            "usage": usage(1, 0, 310, 0.0004),
            "sample": sample,
            "verdicts": verdicts,
            **outcome,
        }
        reason = f"mean similarity of 3 questions: {score}"
        scored = record("answer_relevancy", score, at_least=0.8, reason=reason, **judged)
        message = f"E       AssertionError: answer_relevancy {score} < 0.80" if failed else None
        ended = {"line": 8, "duration": 0.9 + index / 7, "message": message, **outcome}
        yield row(f"test_golden[row-{index}]", scored, file="tests/test_golden.py", **ended)


def _gates() -> Iterator[shapes.TestRecord]:
    mean = gate("answer_relevancy", 0.891, bound=0.85, between=(0.853, 0.929), n=16)
    share: dict[str, Any] = {
        "statistic": "rate",
        "min_score": 0.8,
        "value": 0.625,
        "bound": 0.9,
        "low": 0.386,
        "high": 0.815,
    }
    few = gate("faithfulness", 0.75, bound=0.7, between=(0.48, 0.94), outcome="inconclusive", n=4)
    rate = replace(mean, outcome="failed", **share)
    for name, found in (("answer_relevancy", mean), ("share of relevant answers", rate), ("faithfulness", few)):
        failed = found.outcome in ("failed", "inconclusive")
        message = f"E       AssertionError: gate on {name}: {found.outcome}" if failed else None
        ended = {"outcome": "failed" if failed else "passed", "line": 30, "duration": 0.002, "message": message}
        yield row(f"test_gate[{name}]", file="tests/test_golden.py", gate=found, **ended)
