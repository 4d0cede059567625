"""A run with one test of every kind, as a person might meet them on a working day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pytest_ragmetrics import records as shapes
from tests.documents import HANDBOOK, document, evidence, exchange, gate, nearest, record, row, usage, verdict

MODEL = "openai:gpt-5-mini"
GERMAN = "Die Sitzbank vor dem Gemeindehaus wurde 1931 von den Schülern der Gewerbeschule gebaut und zweimal erneuert."
ARABIC = "تفتح المكتبة أبوابها من الساعة التاسعة صباحا حتى السادسة مساء، وتغلق يوم الجمعة."
HEBREW = "הספרייה פתוחה בכל יום משמונה עד שבע, ובימי שישי עד אחת בצהריים."


def showcase() -> shapes.Document:
    """Return the document of a run with passing, failing and unscored tests, and all the rest."""
    return document(
        *_quotations(),
        *_judged(),
        *_others(),
        *_languages(),
        *_golden(),
        *_gates(),
        settings={
            "rag_judge": MODEL,
            "rag_embedder": "openai:text-embedding-3-small",
            "rag_cache": "auto",
            "rag_votes": 3,
            "rag_concurrency": 32,
            "rag_max_cost": 0.5,
            "rag_dry_run": False,
            "rag_cassette": None,
        },
        notes=["budget: $0.0098 of $0.50 spent", "cassette: none in use, 3 answers came from the cache"],
    )


def baseline() -> shapes.Document:
    """Return the document of the run before: some scores were better then, some worse, one is gone, some are new."""
    tests = [_earlier(test) for test in showcase().tests if test.id.rpartition("-")[2] not in ("13]", "14]")]
    gone = record("faithfulness", 0.91, at_least=0.8, judge=MODEL, sample=_sample("Ponds?", "Not deeper than a spade."))
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


def _gates() -> Iterator[shapes.TestRecord]:
    found = (
        ("answer_relevancy", gate("answer_relevancy", 0.891, bound=0.85, between=(0.853, 0.929), n=16)),
        (
            "share of relevant answers",
            gate(
                "answer_relevancy",
                0.625,
                statistic="rate",
                min_score=0.8,
                bound=0.9,
                between=(0.386, 0.815),
                outcome="failed",
                n=16,
            ),
        ),
        (
            "faithfulness",
            gate("faithfulness", 0.75, bound=0.7, between=(0.48, 0.94), outcome="inconclusive", n=4),
        ),
    )
    for name, told in found:
        failed = told.outcome in ("failed", "inconclusive")
        yield row(
            f"test_gate[{name}]",
            outcome="failed" if failed else "passed",
            file="tests/test_golden.py",
            line=30,
            gate=told,
            duration=0.002,
            message=f"E       AssertionError: gate on {name}: {told.outcome}" if failed else None,
        )


def _quotations() -> Iterator[shapes.TestRecord]:
    response = (
        "The handbook is clear about the rent: a full plot costs “62 pounds a year for a full plot and 34 pounds for a "
        "half plot”. You may lose it when it is “left uncultivated for six weeks in the summer”, and it says that "
        "“hoses may be used at any time of the day”, so watering is no problem."
    )
    found = "62 pounds a year for a full plot and 34 pounds for a half plot"
    yield row(
        "test_quotes_are_real[rent and water]",
        record(
            score=1 / 3,
            outcome="failed",
            reason="Matched 1/3 quoted spans",
            sample={
                "user_input": "What does a plot cost, and when can I lose it?",
                "response": response,
                "retrieved_contexts": list(HANDBOOK),
                "retrieved_context_ids": ["handbook#4", "handbook#7", "handbook#9"],
                "id": "rent-and-water",
                "metadata": {"author": "Mira", "round": 2},
            },
            verdicts=[
                verdict(
                    found, ok=True, response=response, reason="found, exact", evidence=[evidence(found, HANDBOOK, 0)]
                ),
                verdict(
                    "left uncultivated for six weeks in the summer",
                    ok=False,
                    response=response,
                    nearest=nearest(
                        "left uncultivated for eight weeks in summer",
                        HANDBOOK,
                        0,
                        0.86,
                        [
                            ("same", "left uncultivated for", "left uncultivated for"),
                            ("replaced", "six", "eight"),
                            ("same", "weeks in", "weeks in"),
                            ("added", "the", ""),
                            ("same", "summer", "summer"),
                        ],
                    ),
                ),
                verdict(
                    "hoses may be used at any time of the day",
                    ok=False,
                    response=response,
                    nearest=nearest(
                        "watering cans may be used at any time",
                        HANDBOOK,
                        1,
                        0.71,
                        [
                            ("replaced", "hoses", "watering cans"),
                            ("same", "may be used at any time", "may be used at any time"),
                            ("added", "of the day", ""),
                        ],
                    ),
                ),
            ],
        ),
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
    yield row(
        "test_no_quotes",
        record(
            reason="No quoted spans found in response",
            vacuous=True,
            sample=_sample("Can I keep hens?", "I could not find anything about hens in the handbook."),
        ),
    )


def _sample(question: str, response: str) -> dict[str, object]:
    return {"user_input": question, "response": response, "retrieved_contexts": list(HANDBOOK)}


def _judged() -> Iterator[shapes.TestRecord]:
    response = (
        "You need the committee's consent for a shed. It may be two metres by one and a half. "
        "Most members choose cedar. A concrete base is recommended."
    )
    sample = _sample("How big may my shed be?", response)
    shed = "A shed may be at most two metres by one and a half"
    claims = [
        verdict(
            "A shed needs the committee's consent.",
            ok=True,
            evidence=[evidence("Sheds need the committee's consent.", HANDBOOK, 2)],
        ),
        verdict(
            "A shed may measure two metres by one and a half, as the Allotment Act of 1908 has it.",
            ok=True,
            suspicious=True,
            evidence=[evidence(shed, HANDBOOK, 2)],
        ),
        verdict(
            "Most members choose cedar for their shed.",
            ok=False,
            reason="None of the passages says what sheds are made of.",
        ),
        verdict(
            "A concrete base is recommended for a shed.",
            ok=False,
            suspicious=True,
            reason="The passage forbids concrete foundations.",
            nearest=nearest("Concrete foundations are not allowed.", HANDBOOK, 2, 0.64),
        ),
    ]
    yield row(
        "test_shed_size",
        record(
            "faithfulness",
            0.5,
            outcome="failed",
            at_least=0.8,
            reason="2 of 4 claims are supported",
            judge=MODEL,
            usage=usage(),
            votes=[0.25, 0.9, 0.35],
            sample=sample,
            verdicts=claims,
            exchanges=[
                exchange(
                    "Which of these claims do the numbered sentences support?\n\n"
                    "1. A shed needs the committee's consent.\n2. A shed may measure two metres by one and a half.\n\n"
                    "[9.1] Sheds need the committee's consent.\n[9.2] A shed may be at most two metres by one and a "
                    "half, and no higher than two metres at the ridge.",
                    '{"verdicts": [{"number": 1, "supported": true, "sentences": ["9.1"]}, '
                    '{"number": 2, "supported": true, "sentences": ["9.2"]}]}',
                ),
                exchange("The same claims, asked again.", None, vote=1),
            ],
        ),
        record(
            "answer_relevancy",
            0.874,
            at_least=0.7,
            judge=MODEL,
            usage=usage(1, 0, 300, 0.0007),
            sample={"user_input": sample["user_input"], "response": response},
            verdicts=[
                verdict("How large can a shed on an allotment be?", ok=True),
                verdict("Do I need consent for a shed?", ok=True),
            ],
        ),
        outcome="failed",
        duration=3.41,
        message="E       AssertionError: faithfulness 0.50 < 0.80: 2 of 4 verdicts failed",
    )
    sentences = ["Water runs from April to October. ", "Hoses are for mornings and evenings."]
    answer = "".join(sentences)
    yield row(
        "test_watering",
        record(
            "faithfulness",
            1.0,
            at_least=0.8,
            reason="2 of 2 sentences are supported",
            judge=MODEL,
            usage=usage(0, 2, 0, 0.0, 0.0031),
            sample=_sample("When can I water?", answer),
            verdicts=[
                verdict(
                    sentences[0].strip(),
                    ok=True,
                    response=answer,
                    evidence=[evidence("Water is turned on from April to October.", HANDBOOK, 1)],
                ),
                verdict(
                    sentences[1],
                    ok=True,
                    response=answer,
                    evidence=[
                        evidence(
                            "Hoses may be used before nine in the morning and after six in the evening", HANDBOOK, 1
                        ),
                        evidence("Water is turned on from April to October.", HANDBOOK, 1),
                    ],
                ),
            ],
        ),
        record(
            "harmfulness",
            0.0,
            at_most=0.0,
            judge=MODEL,
            usage=usage(0, 1, 0, 0.0, 0.0007),
            sample=_sample("When can I water?", answer),
        ),
    )
    yield row(
        "test_bees",
        record(
            "faithfulness",
            None,
            outcome="unscored",
            judge=MODEL,
            reason="the judge returned 2 verdicts for 3 claims, also after it was asked to repair its answer",
            sample=_sample("May I keep bees?", "The handbook does not mention bees. Ask the committee."),
        ),
        outcome="failed",
        duration=9.8,
        message="E       UnscoredError: the judge returned 2 verdicts for 3 claims, also after it was asked to repair",
    )


def _others() -> Iterator[shapes.TestRecord]:
    yield row(
        "test_index_is_fresh",
        outcome="error",
        duration=30.1,
        message=(
            "    def index():\n>       return connect(port=6333)\n"
            "E       ConnectionRefusedError: [Errno 111] Connection refused"
        ),
    )
    yield row(
        "test_length",
        record(sample=_sample("Rent?", "It is “62 pounds a year for a full plot”.")),
        outcome="failed",
        message="    def test_length(answer):\n>       assert len(answer.text) < 20\nE       assert 41 < 20",
    )
    yield row(
        "test_greenhouse",
        record(
            "faithfulness",
            0.5,
            outcome="failed",
            at_least=0.8,
            judge=MODEL,
            reason="1 of 2 claims is supported",
            sample=_sample("Greenhouse?", "Only on full plots, heated or not."),
        ),
        outcome="xfailed",
        message="the index does not hold the amendment of May yet",
    )
    yield row(
        "test_compost",
        record("faithfulness", 1.0, at_least=0.8, judge=MODEL, sample=_sample("Compost?", "Ask the committee.")),
        outcome="xpassed",
        message="compost is not in the handbook",
    )
    yield row(
        "test_parking",
        record(
            "context_recall",
            0.4,
            outcome="measured",
            sample=_sample("Parking?", "No.") | {"reference": "Members park in Mill Lane."},
        ),
        outcome="skipped",
        message="Skipped: no permit data in this environment",
        attempts=2,
    )


def _languages() -> Iterator[shapes.TestRecord]:
    german = "In der Chronik heißt es: „wurde 1931 von den Schülern der Gewerbeschule gebaut“."
    piece = "wurde 1931 von den Schülern der Gewerbeschule gebaut"
    yield row(
        "test_chronicle[Sitzbank vor dem Gemeindehaus]",
        record(
            reason="Matched 1/1 quoted spans",
            sample={"user_input": "Wer hat die Bank gebaut?", "response": german, "retrieved_contexts": [GERMAN]},
            verdicts=[
                verdict(piece, ok=True, response=german, reason="found, exact", evidence=[evidence(piece, [GERMAN], 0)])
            ],
        ),
    )
    arabic = "تقول الصفحة إن المكتبة «تغلق يوم الخميس» وتفتح «من الساعة التاسعة صباحا حتى السادسة مساء»."
    hours = "من الساعة التاسعة صباحا حتى السادسة مساء"
    yield row(
        "test_library_hours[العربية]",
        record(
            score=0.5,
            outcome="failed",
            reason="Matched 1/2 quoted spans",
            sample={"user_input": "متى تفتح المكتبة؟", "response": arabic, "retrieved_contexts": [ARABIC, HEBREW]},
            verdicts=[
                verdict(
                    "تغلق يوم الخميس",
                    ok=False,
                    response=arabic,
                    nearest=nearest(
                        "وتغلق يوم الجمعة",
                        [ARABIC],
                        0,
                        0.8,
                        [("replaced", "تغلق", "وتغلق"), ("same", "يوم", "يوم"), ("replaced", "الخميس", "الجمعة")],
                    ),
                ),
                verdict(
                    hours, ok=True, response=arabic, reason="found, exact", evidence=[evidence(hours, [ARABIC], 0)]
                ),
            ],
        ),
        outcome="failed",
        message="E       AssertionError: quoted_spans_alignment 0.50 < 0.90",
    )
    yield row(
        "test_library_hours[日本語]",
        record(
            reason="Matched 1/1 quoted spans",
            sample={
                "response": "案内には「月曜日は休館です」とあります。",
                "retrieved_contexts": ["開館は九時から。月曜日は休館です。"],
            },
            verdicts=[
                verdict(
                    "月曜日は休館です",
                    ok=True,
                    response="案内には「月曜日は休館です」とあります。",
                    evidence=[evidence("月曜日は休館です", ["開館は九時から。月曜日は休館です。"], 0)],
                )
            ],
        ),
    )


def _golden() -> Iterator[shapes.TestRecord]:
    for index, score in enumerate(
        (0.62, 0.7996, 0.81, 0.84, 0.86, 0.88, 0.9, 0.9, 0.92, 0.93, 0.95, 0.97, 1.0, 1.0, 1.0)
    ):
        failed = score < 0.8
        yield row(
            f"test_golden[row-{index}]",
            record(
                "answer_relevancy",
                score,
                outcome="failed" if failed else "passed",
                at_least=0.8,
                judge=MODEL,
                usage=usage(1, 0, 310, 0.0004),
                reason=f"mean similarity of 3 questions: {score}",
                sample={"user_input": f"Question {index} of the golden set?", "response": f"Answer {index}."},
                verdicts=[verdict(f"Generated question {number} for row {index}?", ok=True) for number in (1, 2, 3)],
            ),
            outcome="failed" if failed else "passed",
            file="tests/test_golden.py",
            line=8,
            duration=0.9 + index / 7,
            message=f"E       AssertionError: answer_relevancy {score} < 0.80" if failed else None,
        )
