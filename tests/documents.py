"""Documents of runs, built by hand: what the pages and files of a run are tested with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from pytest_ragmetrics.core.result import Evidence, Nearest, Usage, Verdict, WordChange
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.judges.context import Exchange
from pytest_ragmetrics.plugin.gates.gate import MarkedGate, gate_among
from pytest_ragmetrics.runs import records as shapes

FILE = "tests/test_assistant.py"

HANDBOOK = (
    (
        "Allotment handbook, section 4. Plots are let for one year from the first of March. The rent is 62 pounds a "
        "year for a full plot and 34 pounds for a half plot, payable before the end of February. A plot that is left "
        "uncultivated for eight weeks in summer may be given to the next person on the waiting list, after one "
        "written warning."
    ),
    (
        "Allotment handbook, section 7. Water is turned on from April to October. Hoses may be used before nine in "
        "the morning and after six in the evening; watering cans may be used at any time. Please do not leave a hose "
        "running while you are away from your plot."
    ),
    (
        "Allotment handbook, section 9. Sheds need the committee's consent. A shed may be at most two metres by one "
        "and a half, and no higher than two metres at the ridge. Greenhouses of the same size are allowed on full "
        "plots only. Concrete foundations are not allowed."
    ),
)

#: What a hostile document, model or test id might hold; each sets ``pwned`` if a page runs it.
HOSTILE = (
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=2</script>",
    '"><img src="/leak.png" onerror="window.pwned=3">',
    "' onfocus='window.pwned=4' autofocus='",
    '<a href="javascript:window.pwned=5">harmless</a>',
    "</title></style></textarea></details><svg onload=window.pwned=6>",
    '<iframe srcdoc="<script>parent.pwned=7</script>"></iframe><base href="/elsewhere/">',
    '<meta http-equiv="refresh" content="0;url=/gone"><link rel="stylesheet" href="/leak.css">',
    "<!-- {{ 7 * 7 }} {% raw %} ]]> -->",
    "&lt;b&gt; &amp;amp; &#x202e;",
    "\x1b[31mred\x1b[0m \x07 \x9b",
    "cv\u202efdp.exe \u2066isolated",
    "nul \0 byte, lone \ud83d half, non \ufffe character, tag \U000e0041",
    "carriage\rreturn and\r\nline end",
)


def document(
    *tests: shapes.TestRecord,
    exit_status: int = 1,
    settings: dict[str, str | float | bool | None] | None = None,
    notes: Sequence[str] = (),
) -> shapes.Document:
    """Return the document of a run of these tests."""
    made: dict[str, Any] = {"started": "2026-03-02T16:41:07+00:00", "duration": 48.3, "exit_status": exit_status}
    made |= {"python": "3.12.4", "pytest": "9.2.0", "ragmetrics": "0.1.0"}
    return shapes.Document(run=shapes.RunRecord(**made, settings=settings or {}, notes=tuple(notes)), tests=tests)


def row(name: str, *records: shapes.Record, file: str = FILE, **fields: Any) -> shapes.TestRecord:
    """Return a test with its records; ``fields`` are those of the test record, by default of one that passed."""
    passed = {"line": 12, "outcome": "passed", "duration": 0.21, "attempts": 1, "message": None, "gate": None}
    given: dict[str, Any] = {"id": f"{file}::{name}", "file": file, "records": records, **passed, **fields}
    return shapes.TestRecord(**given)


def gate(
    metric: str = "faithfulness",
    value: float | None = 0.83,
    *,
    between: tuple[float, float] | None = (0.78, 0.88),
    n: int = 40,
    unscored: int = 0,
    **fields: Any,
) -> shapes.GateRecord:
    """Return what a gate found, by default one on the mean that passed; ``fields`` are others of the record."""
    low, high = between or (None, None)
    usual = {"statistic": "mean", "bound": 0.8, "min_score": None, "better": "higher", "outcome": "passed"}
    found: dict[str, Any] = {"n": n, "unscored": unscored, "total": n + unscored, "low": low, "high": high}
    given = {**usual, **found, "confidence": 0.95 if between else None, **fields}
    return shapes.GateRecord(metric=metric, value=value, **given)


def gate_of(*given: Any, **named: Any) -> MarkedGate:
    """Return the gate of a marker, whatever the metrics of its data set."""
    return gate_among(None, given, named)


def exchange(prompt: str, reply: str | None, *, task: str = "judge_claims", vote: int = 0) -> Exchange:
    return Exchange(task=task, vote=vote, prompt=prompt, reply=reply, cached=False)


def record(
    metric: str = "quoted_spans_alignment",
    score: float | None = 1.0,
    *,
    at_least: float | None = 0.9,
    at_most: float | None = None,
    votes: Sequence[float] = (),
    sample: dict[str, Any] | None = None,
    **fields: Any,
) -> shapes.Record:
    """Return a record; ``at_least`` or ``at_most`` is its threshold, ``fields`` are other fields of the record."""
    threshold: shapes.Threshold | None = None
    if at_most is not None:
        threshold = shapes.Threshold(operator="<=", bound=at_most)
    elif at_least is not None and fields.get("outcome") != "measured":
        threshold = shapes.Threshold(operator=">=", bound=at_least)
    usual = {"outcome": "passed", "reason": None, "vacuous": False, "judge": None, "verdicts": (), "exchanges": ()}
    given: dict[str, Any] = {"metric": metric, "score": score, "threshold": threshold if score is not None else None}
    given |= {"samples": tuple(votes), "sample": Sample(**sample or {}), "usage": Usage(), **usual}
    given |= {name: tuple(at) if isinstance(at, list) else at for name, at in fields.items()}
    return shapes.Record(**{"better": "lower" if at_most is not None else "higher", **given})


def usage(
    calls: int = 2, cached: int = 0, tokens: int = 1460, cost: float | None = 0.0031, saved: float | None = 0.0
) -> Usage:
    return Usage(
        calls=calls, cached_calls=cached, prompt_tokens=tokens, completion_tokens=tokens // 8, cost=cost, saved=saved
    )


def verdict(
    text: str, *, ok: bool, response: str | None = None, evidence: Sequence[Evidence] = (), **fields: Any
) -> Verdict:
    """Return a verdict; its offsets are where its text stands in ``response``, ``fields`` those of the verdict."""
    start = response.index(text) if response is not None else None
    end = None if start is None else start + len(text)
    return Verdict(text=text, ok=ok, start=start, end=end, evidence=tuple(evidence), **fields)


def evidence(text: str, contexts: Sequence[str], index: int) -> Evidence:
    """Return a piece of evidence where its text stands in a context."""
    start = contexts[index].index(text)
    return Evidence(context=index, start=start, end=start + len(text), text=text)


def nearest(
    text: str, contexts: Sequence[str], index: int, similarity: float, changes: Sequence[tuple[str, str, str]] = ()
) -> Nearest:
    """Return the nearest passage; ``changes`` are kind, said and source."""
    start = contexts[index].index(text)
    steps = tuple(WordChange(kind=cast("Any", kind), said=said, source=source) for kind, said, source in changes)
    return Nearest(context=index, start=start, end=start + len(text), text=text, similarity=similarity, changes=steps)


_WORDS = re.findall(
    r"\w+",
    "the committee keeps a list of plots and tenants who water sheds in spring before rent falls due and hedges grow "
    "along every path where members leave tools after work although nobody may park beside the gate on market days",
)


def crowd(size: int, *, contexts: int = 3, length: int = 1500) -> shapes.Document:
    """Return a large run: every eighth test fell short, and every test has contexts of about ``length`` characters."""
    return document(*(_one_of_many(number, contexts, length) for number in range(size)))


def _one_of_many(number: int, contexts: int, length: int) -> shapes.TestRecord:
    passages = [_prose(number * 31 + index * 7, length) for index in range(contexts)]
    quoted = passages[number % contexts][length // 2 : length // 2 + 60].strip()
    false = f"no plot numbered {number} was ever let to anyone"
    failed = number % 8 == 0
    response = f"The minutes say “{quoted}” and also “{false if failed else passages[0][:50]}”, which settles it."
    if failed:
        second = verdict(false, ok=False, response=response, nearest=nearest(passages[0][:44], passages, 0, 0.41))
    else:
        where = [evidence(passages[0][:50], passages, 0)]
        second = verdict(passages[0][:50], ok=True, response=response, evidence=where)
    first = verdict(quoted, ok=True, response=response, evidence=[evidence(quoted, passages, number % contexts)])
    score, outcome, found = (0.5, "failed", 1) if failed else (1.0, "passed", 2)
    asked = {"user_input": f"What do the minutes say about plot {number}?", "response": response}
    sample, reason = {**asked, "retrieved_contexts": passages}, f"Matched {found}/2 quoted spans"
    scored = record(score=score, outcome=outcome, reason=reason, sample=sample, verdicts=[first, second])
    relevancy = record("answer_relevancy", round(0.7 + (number * 37 % 30) / 100, 2), at_least=0.7, sample=asked)
    message = "E       AssertionError: quoted_spans_alignment 0.50 < 0.90" if failed else None
    ended: dict[str, Any] = {"outcome": outcome, "message": message, "duration": (number * 53 % 400) / 100}
    return row(f"test_minutes[plot-{number}]", scored, relevancy, **ended)


def _prose(seed: int, length: int) -> str:
    """Return a text of about that length, the same one for the same seed."""
    words: list[str] = []
    size = 0
    step = seed
    while size < length:
        step = (step * 1103515245 + 12345) % 2**31
        words.append(_WORDS[step % len(_WORDS)])
        size += len(words[-1]) + 1
    return " ".join(words).capitalize() + f" {seed}."


def hostile() -> shapes.Document:
    """Return a run in which every text is hostile, one test and one gate for each."""
    settings: dict[str, str | float | bool | None] = {text: text for text in HOSTILE}
    tests = (*map(_hostile_row, HOSTILE), *map(_hostile_gate, HOSTILE))
    made = document(*tests, settings=settings, notes=HOSTILE)
    link, text = "javascript:window.pwned=9//github.com", HOSTILE[2]
    origin = replace(made.run, project=HOSTILE[0], branch=text, message=HOSTILE[4], author=HOSTILE[11], folder=text)
    whole = replace(origin, ci=link, ci_number=text, repository=link, commit="4f2c91a", selection=text, partial=text)
    judging = {text: shapes.Judging(judge=text, prompts={text: text}, definition={text: text})}
    return replace(made, run=replace(whole, judging=judging, skipped={text: 1}, not_needed={text: 1}, warnings=HOSTILE))


def giant() -> shapes.Document:
    """Return a run in which every text is one line of a megabyte."""
    return document(_hostile_row("one long line: " + "0123456789" * 100_000))


def _hostile_row(text: str) -> shapes.TestRecord:
    contexts = [text, f"before {text} after"]
    sample = dict.fromkeys(("user_input", "reference", "id"), text) | {
        "response": f"{text} {text}",
        "retrieved_contexts": contexts,
        "reference_contexts": [text],
        "retrieved_context_ids": [text, 7],
        "metadata": {text: text, "nested": {text: [text]}},
    }
    near = nearest(text, contexts, 1, 0.5, [("same", text, text), ("replaced", text, text)])
    verdicts = [
        verdict(text, ok=True, response=text, reason=text, evidence=[evidence(text, [text], 0)]),
        verdict(text, ok=False, reason=text, suspicious=True, nearest=near),
        verdict(text, ok=True, evidence=[Evidence(context=9, start=-1, end=10**9, text=text)]),
    ]
    exchanges = [exchange(text, text, task=text[:200]), exchange(text, None)]
    told: dict[str, Any] = {"outcome": "failed", "reason": text, "judge": text[:200], "exchanges": exchanges}
    scored = record(text[:200], 0.5, votes=[0.2, 0.9], sample=sample, verdicts=verdicts, **told)
    return row(f"test_it[{text[:5000]}]", scored, outcome="failed", message=f"E   {text}", file=f"{text[:100]}.py")


def _hostile_gate(text: str) -> shapes.TestRecord:
    ended = {"outcome": "failed", "message": f"E   {text}", "gate": gate(text[:200], outcome="failed")}
    return row(f"test_gate[{text[:5000]}]", file=f"{text[:100]}.py", **ended)
