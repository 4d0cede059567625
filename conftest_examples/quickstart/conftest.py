"""The application under test, an assistant that answers questions about a handbook, and the fixtures that build it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Document:
    """A page of the handbook, in the shape in which many retrievers hand out their documents."""

    id: str
    page_content: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the assistant said, and the documents it had in front of it."""

    text: str
    contexts: Sequence[Document]


class Assistant:
    """Repeats recorded answers, so that the example needs no model; yours retrieves and generates them."""

    def __init__(self, recorded: Mapping[str, Answer]) -> None:
        self._recorded = recorded

    def ask(self, question: str) -> Answer:
        """Return the answer to a question; raise ``KeyError`` for one that was not recorded."""
        return self._recorded[question]


@pytest.fixture(scope="session")
def handbook() -> dict[str, Document]:
    """Return the pages of the handbook by id, which is the name of the file without its ending."""
    pages = (HERE / "handbook").glob("*.md")
    return {page.stem: Document(id=page.stem, page_content=page.read_text(encoding="utf-8")) for page in pages}


@pytest.fixture(scope="session")
def bot(handbook: dict[str, Document]) -> Assistant:
    """Return the assistant under test; in your own suite, your application stands here."""
    rows = json.loads((HERE / "answers.json").read_text(encoding="utf-8"))
    return Assistant(
        {
            row["question"]: Answer(text=row["answer"], contexts=[handbook[page] for page in row["retrieved"]])
            for row in rows
        }
    )
