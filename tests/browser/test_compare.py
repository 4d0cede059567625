"""The comparison of tests with their counterparts in the baseline, in a browser."""

from __future__ import annotations

from typing import Any

from pytest_ragmetrics.runs.records import Document, TestRecord
from tests.browser.conftest import OpenReport, complaints, page_of
from tests.documents import HOSTILE, document, evidence, record, row, verdict

RENT, WATER, SHEDS = "The rent is 62 pounds a year.", "Water is turned on in April.", "Sheds need consent."


def answered(
    name: str, score: float, answer: str, contexts: list[str], *, claims: tuple[tuple[str, bool], ...] = ()
) -> TestRecord:
    """Return a test with one score; a claim that is ok has the first context as evidence."""
    first = evidence(contexts[0], contexts, 0)
    verdicts = [
        verdict(text, ok=ok, evidence=[first] if ok else (), reason=None if ok else text) for text, ok in claims
    ]
    sample = {"id": name, "user_input": f"What of {name}?", "response": answer, "retrieved_contexts": contexts}
    outcome = "passed" if score >= 0.9 else "failed"
    scored = record("faithfulness", score, sample=sample, outcome=outcome, noun="claim", verdicts=verdicts)
    return row(f"test_bot[{name}]", scored, outcome=outcome)


def before() -> Document:
    claims = (("The rent is 62 pounds", True),)
    return document(
        answered("rent", 1.0, "The rent is 62 pounds, due in February.", [RENT, WATER], claims=claims),
        answered("water", 0.5, "Water runs in April.", [WATER]),
        answered("sheds", 0.95, "Sheds need consent.", [SHEDS]),
        answered("pond", 1.0, "A pond is no deeper than a spade.", [SHEDS]),
        answered("same", 1.0, "As ever.", [RENT]),
        *(answered(f"hostile {n}", 1.0, f"{text} then", [text, WATER]) for n, text in enumerate(HOSTILE)),
    )


def now() -> Document:
    claims = (("The rent is 72 pounds", False),)
    return document(
        answered("rent", 0.5, "The rent is 72 pounds, due in February.", [WATER, SHEDS], claims=claims),
        answered("water", 1.0, "Water runs from April on.", [WATER]),
        answered("sheds", 0.92, "Sheds need consent.", [SHEDS]),
        answered("hedge", 1.0, "Hedges are trimmed in June.", [RENT]),
        answered("same", 1.0, "As ever.", [RENT]),
        *(answered(f"hostile {n}", 0.9, f"{text} now", [WATER, text]) for n, text in enumerate(HOSTILE)),
    )


def chips(report: Any) -> dict[str, int]:
    texts = report.page.locator("#chips label:visible").all_inner_texts()
    return {name: int(count) for name, _, count in (text.rpartition(" ") for text in texts)}


def test_a_change_is_read_word_by_word(open_report: OpenReport, axe: Any) -> None:
    report = open_report(now, "#compare", baseline=before, color_scheme="dark", bypass_csp=True)
    page, hostile = report.page, len(HOSTILE)
    counts = {"Changed": 3 + hostile, "Worse": 2 + hostile, "Better": 1, "Other passages": 1 + hostile}
    assert chips(report) == counts | {"Same answer, other score": 1, "New": 1, "Gone": 1}
    assert report.shown()[:2] == ["test_bot[rent]", "test_bot[water]"]
    pane = report.showing("rent")
    assert [pane.locator(tag).first.inner_text() for tag in ("del", "ins")] == ["62", "72"]
    ranks = [cells.split("\t") for cells in pane.locator(".ranks tbody tr").all_inner_texts()]
    assert [[*at, text.split()[0]] for *at, text in ranks] == [
        ["1", "–", "lost"],
        ["2", "1", "Water"],
        ["–", "2", "new"],
    ]
    assert "carried claim 1" in ranks[0][2]
    (scores,) = (line.split("\t") for line in pane.locator(".scores tbody tr").all_inner_texts())
    assert scores == ["faithfulness", "1.00", "0.50", "≥ 0.90", "newly fails"]
    assert complaints(axe, page) == []
    pane.locator("h2").focus()
    page.keyboard.press("d")
    page.locator("#test .switch, #test .findings").first.wait_for()
    assert page.evaluate("document.activeElement.tagName") == "H2"
    assert page.url.endswith("#tests/tests/test_assistant.py::test_bot%5Brent%5D?change=changed")
    page.keyboard.press("d")
    pane.locator(".compared").wait_for()
    page.keyboard.press("j")
    report.showing("water")
    for name, count in chips(report).items():
        page.locator("#chips label:visible", has_text=name).first.click()
        assert len(report.ids()) == count, name
        assert page.locator("#chips input:checked").evaluate("chip => chip.parentElement.textContent").startswith(name)
    report.showing("pond")
    assert page.locator("#to-diff").is_hidden()
    assert pane.locator(".tag, .copies").count() == 0


def test_on_a_phone_nothing_overflows(open_report: OpenReport, axe: Any) -> None:
    report = open_report(now, "#compare", baseline=before, viewport={"width": 390, "height": 844}, bypass_csp=True)
    page = report.page
    for number, text in enumerate(HOSTILE):
        page.evaluate(f"location.hash = '#compare/tests/test_assistant.py::test_bot[hostile {number}]'")
        pane = report.showing(f"hostile {number}]")
        report.unfold()
        assert pane.locator("ins", has_text="now").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") == 390, text
    assert complaints(axe, page) == []
    page.go_back()
    assert page.locator("#test :is(script, img, iframe, a[href^='javascript'])").count() == 0


def test_without_a_change_there_is_no_view() -> None:
    assert ['href="#compare"' in page_of(now, baseline) for baseline in (None, now, before)] == [False, False, True]
    assert '<span id="compare"' not in page_of(now)
