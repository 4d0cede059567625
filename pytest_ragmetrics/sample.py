"""What is scored: one question, its answer and the passages behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral
from typing import Any

from pytest_ragmetrics.messages import Message, read_messages

#: How other tools call the same fields; a field's own name always wins.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "user_input": ("question", "input"),
    "response": ("answer", "actual_output"),
    "retrieved_contexts": ("contexts", "retrieval_context", "context"),
    "reference": ("ground_truth", "expected_output"),
}

_DOCUMENT_TEXT = ("page_content", "get_content", "text", "content")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One row to score; every field is optional, a metric says which ones it needs.

    Contexts may be strings or documents of other libraries (anything with ``page_content``,
    ``get_content()``, ``text`` or ``content``); they are kept as a tuple of strings. A bare string
    is one context. Raises ``TypeError`` naming the field that has the wrong type.

    >>> Sample(response="Yes.", retrieved_contexts="Only one passage.").retrieved_contexts
    ('Only one passage.',)
    """

    user_input: str | None = None
    response: str | None = None
    retrieved_contexts: Sequence[str] | None = None
    reference: str | None = None
    reference_contexts: Sequence[str] | None = None
    retrieved_context_ids: Sequence[str | int] | None = None
    reference_context_ids: Sequence[str | int] | None = None
    id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in ("user_input", "response", "reference", "id"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                msg = f"{name} must be a str, not {type(value).__name__}"
                raise TypeError(msg)
        for name in ("retrieved_contexts", "reference_contexts"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_contexts(getattr(self, name), name=name))
        for name in ("retrieved_context_ids", "reference_context_ids"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _as_ids(getattr(self, name), name))
        if not isinstance(self.metadata, Mapping):
            msg = f"metadata must be a mapping, not {type(self.metadata).__name__}"
            raise TypeError(msg)

    @classmethod
    def from_mapping(cls, row: Mapping[str, Any]) -> Sample:
        """Build a sample from a row of another tool; unknown keys go into ``metadata``.

        Takes the names of this class and the aliases question/input, answer/actual_output,
        contexts/context/retrieval_context and ground_truth/expected_output. In a row with a ``retrieval_context``,
        as DeepEval writes it, ``context`` is the ideal one: ``reference_contexts``.
        A conversation given as ``user_input``, as Ragas does, goes into ``metadata["messages"]``, and what the user
        said last is the ``user_input``.
        Raises ``TypeError`` when a field has the wrong type, ``ValueError`` for calls of tools that cannot be read.

        >>> Sample.from_mapping({"question": "Why?", "answer": "Because."}).response
        'Because.'
        """
        rest = dict(row)
        if "retrieval_context" in rest and "context" in rest and rest.get("reference_contexts") is None:
            rest["reference_contexts"] = rest.pop("context")
        values: dict[str, Any] = {f.name: rest.pop(f.name) for f in fields(cls) if f.name in rest}
        for name, aliases in ALIASES.items():
            for alias in aliases:
                if alias in rest and values.get(name) is None:
                    values[name] = rest.pop(alias)
        if isinstance(values.get("user_input"), (list, tuple)):
            rest["messages"] = values["user_input"]
            values["user_input"] = _last_said(read_messages(rest["messages"], name="user_input"))
        values["metadata"] = {**rest, **(values.get("metadata") or {})}
        return cls(**values)

    def to_mapping(self) -> dict[str, Any]:
        """Return the fields that are set, as JSON builtins apart from what ``metadata`` holds.

        >>> Sample(response="Yes.").to_mapping()
        {'response': 'Yes.'}
        """
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {
            name: list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
            for name, value in values
            if value is not None and value != {}
        }


def _last_said(messages: Sequence[Message]) -> str | None:
    return next((message.text for message in reversed(messages) if message.role == "user"), None)


def as_contexts(value: object, *, name: str = "contexts") -> tuple[str, ...]:
    """Return the texts of one context or of several; raise ``TypeError`` naming what is no text.

    >>> as_contexts("One passage.")
    ('One passage.',)
    >>> as_contexts(["One.", "Two."])
    ('One.', 'Two.')
    """
    if isinstance(value, (list, tuple)) and set(map(type, value)) == {str}:
        # What files hold, at the speed that tables of them need.
        return tuple(value)
    single = _document_text(value)
    if single is not None:
        return (single,)
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        msg = f"{name} must be a text, a document or a list of them, not {type(value).__name__}"
        raise TypeError(msg)
    texts = []
    for index, item in enumerate(value):
        text = _document_text(item)
        if text is None:
            msg = (
                f"{name}[{index}] is {_describe(item)}: give a str, or an object whose page_content, "
                f"get_content(), text or content is a str"
            )
            raise TypeError(msg)
        texts.append(text)
    return tuple(texts)


def _document_text(value: object) -> str | None:
    if isinstance(value, str):
        # A subclass of str (a lazy translation, markup) must not reach the records as such.
        return str(value)
    for name in _DOCUMENT_TEXT:
        text = getattr(value, name, None)
        if name == "get_content" and callable(text):
            text = text()
        if isinstance(text, str):
            return str(text)
    return None


def _describe(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def _as_ids(value: object, name: str) -> tuple[str | int, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        msg = f"{name} must be a list of ids, not {type(value).__name__}"
        raise TypeError(msg)
    ids = tuple(value)
    for index, item in enumerate(ids):
        if not isinstance(item, (str, Integral)):
            msg = f"{name}[{index}] is {_describe(item)}: give a str or an int"
            raise TypeError(msg)
    # Those of numpy, which an index of vectors returns, must not reach the records as such.
    return tuple(str(item) if isinstance(item, str) else int(item) for item in ids)
