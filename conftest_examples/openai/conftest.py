"""The application under test: an assistant of a ferry company, and the fixture that builds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

TIMETABLE = (
    "The ferry to Heron Island leaves the town pier at 8:15, 11:00 and 16:30 from April to October. "
    "In winter only the boat at 11:00 runs. The crossing takes forty minutes."
)
TICKETS = (
    "A return ticket to Heron Island costs 14 euros. Children under six travel free. "
    "Tickets are sold on board, and the crew takes cards and cash."
)
LUGGAGE = "Bicycles travel on the open deck for 3 euros. Dogs travel free if they are kept on a lead."


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the assistant said, and the passages it had in front of it."""

    text: str
    contexts: tuple[str, ...]


class Assistant:
    """Repeats recorded answers; yours retrieves passages and asks a model."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self._answers = answers

    def ask(self, question: str) -> Answer:
        """Return the answer to a question; raise ``KeyError`` for one that was not recorded."""
        return self._answers[question]


@pytest.fixture(scope="session")
def bot() -> Assistant:
    """Return the assistant under test; in your own suite, your application stands here."""
    return Assistant(
        {
            "When does the ferry to Heron Island leave in winter?": Answer(
                text="In winter only the boat at 11:00 runs. The crossing takes forty minutes.",
                contexts=(TIMETABLE, TICKETS),
            ),
            "What does a return ticket to Heron Island cost?": Answer(
                text="A return ticket to Heron Island costs 14 euros. Tickets are sold on board, for cash or by card.",
                contexts=(TICKETS, TIMETABLE),
            ),
            "May I take my dog on the ferry?": Answer(
                text="Dogs travel free if they are kept on a lead. Muzzles can be borrowed from the captain.",
                contexts=(LUGGAGE,),
            ),
        }
    )
