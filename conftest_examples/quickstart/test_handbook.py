"""Whatever an answer quotes, counts or claims must stand in the pages that the assistant was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ragmetrics import (
    assert_faithful,
    assert_lexically_grounded,
    assert_numbers_aligned,
    assert_quoted_spans_aligned,
)
from pytest_ragmetrics.metrics import QuotedSpansAlignment

if TYPE_CHECKING:
    from .conftest import Assistant


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("How do I keep the roaster quiet?", id="curly-against-straight"),
        pytest.param("How do I make a warranty claim?", id="ellipsis"),
        pytest.param("Which part may I touch during a roast?", id="bracketed-change"),
        pytest.param("Where do I keep green beans?", id="comma-inside-the-marks"),
        pytest.param("When is the coffee ready to drink?", id="two-pages"),
        pytest.param("The overheat switch has tripped. What now?", id="block-quote"),
        pytest.param("Nehmen Sie ein defektes Gerät zurück?", id="german"),
        pytest.param("Le colis a voyagé par grand froid. Puis-je brancher l’appareil ?", id="french"),
    ],
)
def test_quotations_stand_in_the_handbook(bot: Assistant, question: str) -> None:
    """Quotations are found whatever their marks, and with the changes that honest quoting allows."""
    answer = bot.ask(question)
    assert_quoted_spans_aligned(answer.text, answer.contexts, min=0.9)


def test_a_plain_assert_does_as_well(bot: Assistant) -> None:
    """The score is a float: compare it, and a failure still shows the quotations that were not found."""
    answer = bot.ask("How long is the warranty?")
    result = QuotedSpansAlignment().score(response=answer.text, retrieved_contexts=answer.contexts)
    assert result >= 0.9


def test_an_answer_without_quotations_has_nothing_to_check(bot: Assistant) -> None:
    """Such an answer passes, and its result says that there was nothing to check."""
    answer = bot.ask("Can I use an extension lead?")
    result = assert_quoted_spans_aligned(answer.text, answer.contexts, min=0.9)
    assert result.vacuous


def test_numbers_stand_in_the_handbook(bot: Assistant) -> None:
    """Every number and every date in the answer is one that the pages give."""
    answer = bot.ask("How long is the warranty?")
    assert_numbers_aligned(answer.text, answer.contexts)


def test_an_answer_in_its_own_words_keeps_to_the_handbook(bot: Assistant) -> None:
    """Where nothing is quoted, the words that carry the meaning are still to come from the pages."""
    answer = bot.ask("Can I use an extension lead?")
    assert_lexically_grounded(answer.text, answer.contexts, min=0.6)


def test_claims_are_supported(bot: Assistant) -> None:
    """A judge reads the claims of the answer against the pages: here the built-in heuristic that pytest.ini names."""
    answer = bot.ask("When is the coffee ready to drink?")
    assert_faithful(answer.text, answer.contexts, min=0.8)


# The assistant gets these four wrong. They are expected to fail, so that the example passes and the report
# still explains them; in your own suite they would simply be failures.


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="the handbook says 45 days, the answer 54")
def test_return_period(bot: Assistant) -> None:
    """One number is changed; the other quotation in the answer is right."""
    answer = bot.ask("How long do I have to send the roaster back?")
    assert_quoted_spans_aligned(answer.text, answer.contexts, min=0.9)


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="the handbook has no such sentence")
def test_decaffeinated_beans(bot: Assistant) -> None:
    """The sentence is invented."""
    answer = bot.ask("How do I roast decaffeinated beans?")
    assert_quoted_spans_aligned(answer.text, answer.contexts, min=0.9)


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="the handbook says must not, the answer must")
def test_heating_element(bot: Assistant) -> None:
    """One word is dropped, and with it the sense."""
    answer = bot.ask("How do I clean the heating element?")
    assert_quoted_spans_aligned(answer.text, answer.contexts, min=0.9)


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="half of one sentence is joined to half of another")
def test_warranty_in_a_cafe(bot: Assistant) -> None:
    """Both halves stand in the handbook, the sentence made of them does not."""
    answer = bot.ask("Does the warranty hold in a café?")
    result = QuotedSpansAlignment().score(response=answer.text, retrieved_contexts=answer.contexts)
    assert result >= 0.9
