"""A row of a golden set: a question about a passage, its answer, and the sentences that support it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_ragmetrics.judges.schema import FLAG, NUMBER, TEXT, InvalidAnswer, Schema, list_of, record
from pytest_ragmetrics.judges.tasks.task import Block, Task, indexes, show_contexts
from pytest_ragmetrics.text.sentences import sentence_table


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldenQuestion:
    """A question with its answer; ``sentences`` are 0-based indexes into the sentence table of the passage."""

    question: str
    answer: str
    sentences: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteGoldenQuestion(Task[GoldenQuestion | None]):
    """Write a question that a passage answers, with its answer and the supporting sentences; ``None`` without one.

    ``heading`` are the headings above the passage; ``language`` is by default that of the passage.
    """

    prompt: ClassVar[str] = "write_golden_question"
    form: ClassVar[Schema] = record(askable=FLAG, question=TEXT, sentences=list_of(NUMBER), answer=TEXT)
    passage: str
    heading: str = ""
    language: str | None = None

    def blocks(self) -> tuple[Block, ...]:
        """Show the passage, and the headings above it if there are any."""
        above = (Block(label="heading", text=self.heading),) if self.heading else ()
        return (show_contexts((self.passage,)), *above)

    def fill(self) -> Mapping[str, str]:
        """Say in which language to write."""
        return {"language": self.language or "their language"}

    def _parse(self, answer: Mapping[str, Any]) -> GoldenQuestion | None:
        if not answer["askable"]:
            return None
        # A sentence may be cited twice.
        last = len(sentence_table((self.passage,)))
        sentences = indexes(dict.fromkeys(answer["sentences"]), last, "the answer")
        question, reply = answer["question"].strip(), answer["answer"].strip()
        for name, text in (("question", question), ("answer", reply)):
            if not any(map(str.isalnum, text)):
                msg = f"{name} is blank, but askable is true"
                raise InvalidAnswer(msg)
        if not sentences:
            msg = "no sentence that states the answer is named"
            raise InvalidAnswer(msg)
        return GoldenQuestion(question=question, answer=reply, sentences=tuple(sorted(sentences)))
