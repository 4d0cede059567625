"""The list of tests in its two forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from pytest_ragmetrics.comparison import compare_documents
from pytest_ragmetrics.report.html import render_html
from pytest_ragmetrics.report.page.entries import list_entries
from pytest_ragmetrics.report.page.listing import Listing, list_tests
from tests.documents import crowd, record, row
from tests.growth import is_linear
from tests.showcase import baseline, showcase
from tests.unit.test_elements import unpacked


def listed(size: int, **settings: int) -> Listing:
    """Return the list of a run of that many tests."""
    return list_tests(list_entries(crowd(size, **settings).tests))


def index_of(listing: Listing) -> list[dict[str, Any]]:
    """Return the rows that the script reads."""
    return cast("list[dict[str, Any]]", unpacked(listing.index))


def texts(node: object) -> Iterator[str]:
    """Yield the texts from outside in what was packed."""
    if isinstance(node, list) and len(node) == 1:
        yield node[0]
    elif isinstance(node, list):
        for child in node[2]:
            yield from texts(child)


def test_every_row_knows_where_its_body_is() -> None:
    """The body at a row's place is that of its test."""
    listing = listed(90)
    chunks = [cast("list[object]", unpacked(chunk)) for chunk in listing.chunks]
    assert 1 < len(chunks) < 10
    for line in index_of(listing):
        chunk, place = line["body"]
        number = line["name"].removeprefix("test_minutes[plot-").removesuffix("]")
        assert any(f"about plot {number}?" in text for text in texts(chunks[chunk][place]))


def test_a_row_has_what_it_is_sorted_and_filtered_by() -> None:
    """Scores, marks, duration, cost."""
    rows = {line["name"]: line for line in index_of(list_tests(list_entries(showcase().tests)))}
    shed = rows["test_shed_size"]
    assert shed["scores"] == [["faithfulness", 0.5, "failed"], ["answer_relevancy", 0.874, "passed"]]
    assert shed["marks"] == ["flaky", "suspicious"]
    assert (shed["duration"], shed["cost"], shed["file"]) == (3.41, 0.0038, "tests/test_assistant.py")


def test_without_scripts_the_worst_are_there_in_full() -> None:
    """As many as fit, then a line each, in the order of the list."""
    listing = listed(600)
    assert 100 < len(listing.full) < 500
    assert len(listing.full) + len(listing.brief) == 600
    ids = [line["id"] for line in index_of(listing)]
    assert [test.attributes["id"] for test in listing.full] + [entry.anchor for entry in listing.brief] == ids


def test_contexts_stand_in_a_body_once() -> None:
    """Several scores of one answer share its contexts."""
    context = "a context of its own, longer than its preview. " * 4
    sample = {"response": "r", "retrieved_contexts": [context]}
    listing = list_tests(list_entries([row("test_a", *(record(metric, sample=sample) for metric in "abc"))]))
    (body,) = cast("list[object]", unpacked(listing.chunks[0]))
    assert list(texts(body)).count(context) == 1


def test_the_page_of_a_large_run_stays_small() -> None:
    """Ten thousand tests with three long contexts each are to be mailed around: 40 MB at the most."""
    small, large = (len(render_html(crowd(size))) for size in (600, 900))
    # What stands there in full for readers without scripts is a part that does not grow.
    assert small + (large - small) / 300 * 9_400 < 40_000_000


def test_time_grows_with_the_number_of_tests() -> None:
    """Twice the tests take twice the time."""
    assert is_linear(lambda size: listed(size, length=50), short=30, long=150)


def test_a_page_with_a_baseline_is_the_same_every_time() -> None:
    """Nothing of a set's order gets in."""
    pages = [render_html(run, comparison=compare_documents(run, baseline())) for run in (showcase(), showcase())]
    assert pages[0] == pages[1]
