"""Votes as dots and in words."""

from __future__ import annotations

from pytest_ragmetrics.report.page.votes import count_votes, votes_view
from tests.documents import record


def test_votes_stand_where_they_are_and_say_which_side() -> None:
    """A dot for each, in the order they were cast."""
    votes = count_votes(record(score=0.25, outcome="failed", at_least=0.8, votes=[0.25, 0.9, 0.35]))
    assert votes is not None
    assert votes.dots == ((30.0, True), (108.0, False), (42.0, True))
    assert votes.bound == 96.0
    assert votes.text == "3 votes: 0.25, 0.90, 0.35; 2 of 3 fell short"


def test_one_vote_is_no_vote() -> None:
    """It is the score itself."""
    assert count_votes(record(votes=[1.0])) is None
    assert count_votes(record()) is None


def test_without_a_threshold_no_vote_falls_short() -> None:
    """And there is no line to fall short of; votes outside of 0 to 1 stretch the line."""
    votes = count_votes(record(score=3.0, outcome="measured", at_least=None, votes=[1.0, 3.0]))
    assert votes is not None
    assert (votes.dots, votes.bound, votes.text) == (((40.0, False), (120.0, False)), None, "2 votes: 1.00, 3.00")
    assert "threshold" not in str(votes_view(votes))


def test_votes_as_far_apart_as_can_be_stand_at_the_ends() -> None:
    """Their distance is no number of its own."""
    votes = count_votes(record(at_least=0.0, votes=[1e308, -1e308]))
    assert votes is not None
    assert votes.dots == ((120.0, False), (0.0, True))
    assert votes.bound == 60.0
