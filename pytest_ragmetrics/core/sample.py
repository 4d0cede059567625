"""The values a metric scores: a question, its answer and contexts, and the conversation that they belong to.

They are read from what other tools and libraries write under other names.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from numbers import Integral
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeGuard, get_args

from pytest_ragmetrics.core.messages import ROLES, Message, first_of, is_spoken, kind_of, opened, read_items

if TYPE_CHECKING:
    from typing_extensions import Self

#: Names of the fields in other tools; a field's own name takes precedence.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "user_input": ("question", "input", "query"),
    "response": ("answer", "actual_output"),
    "retrieved_contexts": ("contexts", "retrieval_context", "context"),
    "reference": ("ground_truth", "expected_output", "expected_outcome"),
    "reference_contexts": ("relevant_contexts", "ground_truth_context"),
}

#: Names that other tools have for the messages: DeepEval's, and those of the turns before the question.
TALKS = ("turns", "chat_history", "conversation_history", "history", "conversation")
_SNAKE_CASE = (
    *("actual_output", "expected_output", "expected_outcome", "retrieval_context", "tools_called", "expected_tools"),
    *("additional_metadata", "source_file", "chatbot_role", "completion_time", "token_cost"),
)
#: What an answer took, in the metadata: seconds, seconds to its first text, dollars, and the tokens they follow from.
FIGURES = ("latency", "first_token", "cost", "usage")
#: The names of those among them that were measured around ``rag_respond``, in the metadata.
MEASURED = "rag_measured"
#: Names in the files of DeepEval's runs, and elsewhere.
CAMEL_CASE = {re.sub("_(.)", lambda found: found.group(1).upper(), name): name for name in _SNAKE_CASE}


def row_of_theirs(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a row with the names in :data:`CAMEL_CASE` as elsewhere, and what Ragas has in ``eval_sample``.

    >>> row_of_theirs({"eval_sample": {"user_input": "Why?"}, "actualOutput": "So."})
    {'actual_output': 'So.', 'user_input': 'Why?'}
    """
    values = dict(row)
    if isinstance(values.get("eval_sample"), Mapping):
        values = {**values.pop("eval_sample"), **values}
    camel = [] if CAMEL_CASE.keys().isdisjoint(row) else [name for name in row if name in CAMEL_CASE]
    return {**{CAMEL_CASE[name]: values.pop(name) for name in camel}, **values} if camel else values


def is_conversation_row(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is one of DeepEval's conversations: turns or what is to come of them, and no question."""
    is_talk = "turns" in row or ("scenario" in row and "expected_outcome" in row)
    return is_talk and all(row.get(name) is None for name in ("user_input", *ALIASES["user_input"]))


def is_deepeval_row(row: Mapping[str, Any]) -> bool:
    """Tell whether a row is as DeepEval writes it, its ``context`` the ideal one."""
    return "retrieval_context" in row or ("source_file" in row and "input" in row) or is_conversation_row(row)


def _take_talk(row: dict[str, Any]) -> None:
    """Move the first list that a row has under another name of ``messages`` there."""
    for name in TALKS:
        talk = opened(row[name]) if name in row else None
        if is_conversation(talk) and talk:
            del row[name]
            row["messages"] = [*talk]
            return


_DOCUMENT_TEXT = ("page_content", "get_content", "text", "content")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One row to score; every field is optional, and a metric names those it needs.

    Contexts are texts, or documents of other libraries: objects with ``page_content``, ``get_content()``, ``text`` or
    ``content``, or mappings with such a key; a bare string is one context. A ``response`` of names and values, or a
    list of them, is kept as JSON text; a message, a whole row and a list of texts are no response.

    A conversation is a list of messages (or its JSON text) as ``user_input`` or in ``metadata["messages"]``, where it
    is kept. Unless given, ``user_input`` is then the user's last message, ``response`` the assistant's text that ends
    it, and ``retrieved_contexts`` those on the messages of the last turn; they may also be a list for each answer.
    Raises ``TypeError`` naming the field that has the wrong type.

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

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Return a sample to initialise; raise ``TypeError`` naming the field that an unknown one stands for."""
        unknown = given.keys() - _FIELDS if cls is Sample else ()
        for name in unknown:
            meant = meant_field(name)
            hint = f"did you mean {meant}=?" if meant else f"it takes {', '.join(FIELDS)}; put others into metadata="
            raise TypeError(f"Sample takes no {name}=; {hint}")
        return object.__new__(cls)

    if not TYPE_CHECKING:  # to mypy every name would be an attribute

        def __getattr__(self, name: str) -> Any:
            """Raise ``AttributeError`` saying where its texts are, or which field is meant."""
            meant = None if hasattr(str, name) or name.startswith("_") else meant_field(name)
            hint = f"did you mean sample.{meant}?" if meant else "its texts are sample.user_input and sample.response"
            raise AttributeError(f"a Sample has no attribute {name!r}; {hint}")

    def __post_init__(self) -> None:
        if not isinstance(self.metadata, Mapping):
            raise TypeError(f"metadata must be a mapping, not {type(self.metadata).__name__}")
        is_turn = turn_of(self) is not None  # which has its fields, and would read all messages before it once more
        if not is_turn:
            self._take_conversation()
        object.__setattr__(self, "response", _as_text(self.response))
        for name in ("user_input", "response", "reference", "id"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                whole = "; assert_sample(row, ...) takes a whole row" if isinstance(value, Mapping) else ""
                texts = "; a list is for the contexts" if isinstance(value, (list, tuple)) else ""
                raise TypeError(f"{name} must be a str, not {type(value).__name__}{advice(value)}{whole}{texts}")
        if not is_turn:
            self._take_contexts()
        for name in ("retrieved_contexts", "reference_contexts"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_contexts(getattr(self, name), name=name))
        for name in ("retrieved_context_ids", "reference_context_ids"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _as_ids(getattr(self, name), name))

    def _take_conversation(self) -> None:
        """Move a conversation into the metadata; its last question and the answer to it fill fields that are not set.

        A question that is not the last one of the messages came after them: the answer to it is not among them.
        """
        asked: Any = self.user_input
        if isinstance(asked, str) and asked.lstrip().startswith("["):
            asked = found if is_spoken(found := opened(asked)) else asked
        if (asked is None or isinstance(asked, str)) and "messages" not in self.metadata:
            return  # fast, for tables of a million rows
        name = "user_input" if is_conversation(asked) else "messages"
        given = asked if name == "user_input" else opened(self.metadata.get("messages"))
        if not is_conversation(given):
            return
        object.__setattr__(self, "metadata", {**self.metadata, "messages": [*given]})
        try:
            messages = [message for message, _ in read_items(given, name=name)]
        except (TypeError, ValueError):
            if name == "user_input":
                raise
            # Metadata: a metric that takes them says what is wrong, and the other rows of a table are scored.
            return
        if name == "user_input":
            object.__setattr__(self, "user_input", None)
        last = next((message.text for message in reversed(messages) if message.role == "user"), None)
        if self.user_input is None:
            object.__setattr__(self, "user_input", last)
        is_last = (self.user_input or "").strip() == (last or "").strip()
        ends_in_answer = bool(messages) and messages[-1].role == "assistant" and messages[-1].text.strip()
        if self.response is None and ends_in_answer and is_last:
            object.__setattr__(self, "response", messages[-1].text)

    def _take_contexts(self) -> None:
        """Take the contexts of a conversation: those of each answer apart, and the ones on the messages at its end."""
        given: Any = self.retrieved_contexts
        if self.metadata.get("messages") is None:
            return
        if isinstance(given, (list, tuple)) and given and all(isinstance(each, (list, tuple)) for each in given):
            name = "retrieved_contexts"
            lists = [as_contexts(each, name=f"{name}[{index}]") for index, each in enumerate(given)]
            answers = sum(turn.answer is not None for turn in read_turns(self))
            if len(lists) != answers:
                msg = f"{name} has {len(lists)} lists, the conversation {answers} answers: give one for each answer"
                raise ValueError(msg)
            object.__setattr__(self, "metadata", {**self.metadata, "contexts_by_answer": lists})
            object.__setattr__(self, name, lists[-1])
        elif given is None:
            try:
                last = read_turns(self)[-1:]
            except (TypeError, ValueError):
                return  # As above: a metric says what is wrong with them.
            object.__setattr__(self, "retrieved_contexts", last[0].contexts() if last else None)

    def turns(self, *, contexts_from: ContextsFrom = None) -> tuple[Sample, ...]:
        """Return a sample for each turn of a conversation that is answered; of any other sample, itself.

        A turn is what the user says, and all that the assistant says, calls and receives until the user speaks again;
        its answer is the last text in it. ``retrieved_contexts`` are those on its messages, else its list where the
        sample has one for each answer, else with ``contexts_from="tools"``, or a list of tools, their results; those of
        the whole sample, and its ``reference``, belong to the last turn if no message has one. Other fields come from
        the messages of the turn.

        ``metadata`` has the ``messages`` up to the answer, the id of the ``conversation``, the ``turn``,
        ``earlier_contexts`` as pairs of turn and text, and ``lacking``, the fields that only other turns have; turns
        are one ``cluster`` by default. Raises ``TypeError`` naming the turn for a field of the wrong type, and
        ``ValueError`` for other ``contexts_from``.

        >>> talk = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": "No.", "contexts": ["Dry."]}]
        >>> more = [{"role": "user", "content": "Snow?"}, {"role": "assistant", "content": "Yes."}]
        >>> [turn.retrieved_contexts for turn in Sample(metadata={"messages": talk + more}).turns()]
        [('Dry.',), None]
        """
        check_turns("each", contexts_from)
        if self.metadata.get("messages") is None or turn_of(self) is not None:
            return (self,)
        turns = read_turns(self)
        answered = [turn for turn in turns if turn.answer is not None]
        if not answered:
            return (self,)
        values = {turn.number: turn.fields(contexts_from) for turn in turns}
        for turn, contexts in zip(answered, self.metadata.get("contexts_by_answer", ()), strict=False):
            values[turn.number].setdefault("retrieved_contexts", contexts)
        of_answers = [values[turn.number] for turn in answered]
        own = {name: getattr(self, name) for name in _OF_A_TURN}
        if any("reference" in given for given in of_answers):
            del own["reference"]
        if answered[-1] is not turns[-1] and self.retrieved_contexts == turns[-1].contexts():
            del own["retrieved_contexts"]  # They were retrieved after the last answer.
        of_answers[-1].update({**own, **of_answers[-1]})
        there = {name for given in of_answers for name, value in given.items() if value}
        name, samples, earlier = self.id or _name_of(turns), list[Sample](), dict[str, tuple[int, str]]()
        for turn in turns:
            # An opening of the assistant has no question.
            fields = {"user_input": turn.question, **{name: values[turn.number].get(name) for name in _OF_A_TURN}}
            if turn.answer is not None:
                may_lack = there if turn is answered[-1] else fields
                placed = {
                    "messages": self._until(turn),
                    "conversation": name,
                    "turn": turn.number,
                    "earlier_contexts": tuple(earlier.values()),
                    "lacking": [name for name, value in fields.items() if not value and name in may_lack],
                }
                samples.append(self._of_turn(turn, fields, placed))
            for text in fields["retrieved_contexts"] or ():
                earlier.setdefault(text, (turn.number, text))
        return tuple(samples)

    def _of_turn(self, turn: Turn, fields: Mapping[str, Any], placed: Mapping[str, Any]) -> Sample:
        name, message = placed["conversation"], turn.said[turn.answer or 0].message
        # What all answers took together is not what one of them took; a text may be a category.
        all_took = {name for name in FIGURES if not isinstance(self.metadata.get(name), str)}
        item = turn.said[turn.answer or 0].item
        took = {name: item[name] for name in FIGURES if name in item} if isinstance(item, Mapping) else {}
        metadata = {**{name: value for name, value in self.metadata.items() if name not in all_took}, **took, **placed}
        metadata.pop("contexts_by_answer", None)
        if metadata.get("cluster") is None:
            metadata["cluster"] = name
        given = {**fields, "id": f"{name}-t{turn.number}", "metadata": metadata}
        try:
            return Sample(response=message.text, **given)
        except TypeError as error:
            raise TypeError(f"turn {turn.number}: {error}") from None

    def _until(self, turn: Turn) -> list[Any]:
        """Return the messages up to the answer of a turn, in which what the user says is one message."""
        items = [*self.metadata["messages"]]
        asked = [said for said in turn.said if said.message.role == "user"]
        end = turn.said[turn.answer or 0].place
        kept = items if end is None else items[: end + 1]
        first = asked[0].place if asked else None
        if len(asked) == 1 or first is None:
            return kept
        attached = [{"type": kind} for said in asked for kind in said.message.attachments]
        text = [{"type": "text", "text": turn.question}, *attached] if attached else turn.question
        behind = [] if asked[-1].place is None else kept[asked[-1].place + 1 :]
        return [*kept[:first], {"role": "user", "content": text}, *behind]

    @classmethod
    def from_mapping(cls, row: Mapping[str, Any]) -> Sample:
        """Build a sample from a row of another tool; unknown keys go into ``metadata``.

        ``ragmetrics docs rows`` lists the names of fields and their aliases. In a row of DeepEval (with a
        ``retrieval_context``, with ``input`` and ``source_file``, or with ``turns`` and no question) ``context`` is
        ``reference_contexts``. Raises ``TypeError`` for a field of the wrong type, ``ValueError`` for calls of tools
        that cannot be read.

        >>> Sample.from_mapping({"question": "Why?", "answer": "Because."}).response
        'Because.'
        """
        if not isinstance(row, Mapping):
            from pytest_ragmetrics.core.other_tools import class_of_theirs

            instead = "; write sample_from(it)" if class_of_theirs(row) else advice(row)
            instead = "; give one row, or score a list of them by evaluate()" if is_conversation(row) else instead
            raise TypeError(f"a row is a mapping of fields, not {type(row).__name__}{instead}")
        rest = row_of_theirs(row)
        if is_deepeval_row(rest) and "context" in rest and rest.get("reference_contexts") is None:
            rest["reference_contexts"] = rest.pop("context")
        if rest.get("messages") is None:
            _take_talk(rest)
        values: dict[str, Any] = {f.name: rest.pop(f.name) for f in fields(cls) if f.name in rest}
        for name, aliases in ALIASES.items():
            for alias in aliases:
                if alias in rest and values.get(name) is None:
                    values[name] = rest.pop(alias)
        values["metadata"] = {**rest, **(values.get("metadata") or {})}
        return cls(**values)

    def to_mapping(self) -> dict[str, Any]:
        """Return the fields that are set, as JSON builtins apart from the values in ``metadata``.

        >>> Sample(response="Yes.").to_mapping()
        {'response': 'Yes.'}
        """
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {
            name: list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
            for name, value in values
            if value is not None and value != {}
        }


#: The names of the fields of a sample.
FIELDS = tuple(f.name for f in fields(Sample))
_FIELDS = frozenset(FIELDS)
#: The fields with content by their names and aliases.
_CONTENT = {name: name for name in FIELDS[:-2]} | {it: name for name, names in ALIASES.items() for it in names}


def _as_text(response: Any) -> Any:
    """Return the JSON text of a structured answer, anything else as it is."""
    if response is None or isinstance(response, str) or not is_structured(response):
        return response
    try:
        return json.dumps(response, ensure_ascii=False, allow_nan=False, default=_json_value)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"response is no value of JSON: {error}") from None


def _json_value(value: Any) -> Any:
    """Return a mapping or what is of numpy as JSON has it, anything else as its text."""
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)


def is_structured(value: object) -> bool:
    """Tell whether a value is an answer of names and values, or a list of some: no message, whole row or contexts.

    >>> is_structured({"price": 12}), is_structured([1, 2]), is_structured(["Moths fly."])
    (True, True, False)
    >>> is_structured({"role": "assistant", "content": "So."}), is_structured({"question": "Why?", "answer": "So."})
    (False, False)
    """
    items = value if isinstance(value, (list, tuple)) else [value]
    for item in items:
        if not isinstance(item, (Mapping, list, tuple, str, int, float)) and item is not None:
            return False
        if isinstance(item, Mapping) and "content" in item and ("role" in item or kind_of(item) in ROLES):
            return False
    if isinstance(value, Mapping):
        meant = {_CONTENT[name] for name in value if name in _CONTENT}
        # A row has two of them at least.
        return "response" not in value and len(meant) <= 1
    return isinstance(value, (list, tuple)) and any(_document_text(item) is None for item in value)


def meant_field(name: str, *others: str) -> str | None:
    """Return the field of a sample, or which of ``others``, a name means by its use in other tools or its spelling.

    >>> meant_field("contexts"), meant_field("answr"), meant_field("cluster")
    ('retrieved_contexts', 'response', None)
    """
    from difflib import get_close_matches

    meant = {name: name for name in (*FIELDS, *others)}
    meant.update((alias, field) for field, aliases in ALIASES.items() for alias in aliases)
    if name in meant:
        return meant[name]
    snake = re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", name[:40]).lower()
    about = _ABOUT.findall(snake)
    found = [] if about else [field for field, looks in _LOOKS.items() if re.search(looks, snake)]
    if found:
        return "reference_contexts" if {"retrieved_contexts", "reference"} <= {*found} else found[0]
    near = get_close_matches(snake, [known for known in meant if _ABOUT.findall(known) == about], 1, cutoff=0.75)
    return meant[near[0]] if near else None


#: Patterns in the names of columns by the field that they mean, the strongest first.
_LOOKS = {
    "retrieved_contexts": "context|ctx|passage|chunk|doc|snippet|paragraph|evidence|node",
    "reference": "reference|gold|true|truth|expected|target|ideal|correct|(?<![a-z])ref(?![a-z])",
    "response": "answer|response|output|completion|predict|reply|generat|result",
    "user_input": "question|query|prompt|input|utterance",
}
#: Words in the names of columns that are about a field.
_ABOUT = re.compile(
    "(?<![a-z])(?:(?:u?id|uuid|type|kind|count|number|num|n|length|len|token|score|grade|rating|rank|index|date|time|url|"
    "link|path|file|title|name|lang|language|category|topic|version|embedding|hash|label|size|content|author)s?|"
    "is|has|quality|similarity|accuracy|precision|recall|relevanc[ey]|correctness|latency|cost|status|difficulty)"
    "(?![a-z])"
)


def written_for(name: str, metadata: Mapping[str, Any]) -> str:
    """Return the question whether a name in the metadata was written for a field; nothing where none seems to be.

    >>> written_for("response", {"lang": "en", "answr": "So."})  # doctest: +ELLIPSIS
    "; did you write 'answr' for response? In a data set columns={'response': 'answr'} says so, in a command ..."
    """
    written = ((key, value) for key, value in metadata.items() if key != "earlier_contexts")
    texts = (str(key) for key, value in written if isinstance(value, (str, list, tuple)))
    hint = fields_written([key for key in texts if meant_field(key) == name][:1])
    return f"; {hint}" if hint else ""


def fields_written(names: Iterable[str]) -> str:
    """Return the question which names of columns were written for fields, "" where none seems to be."""
    meant = {found: name for name in islice(names, 50) if (found := meant_field(name)) not in (None, name)}
    pairs = ", ".join(f"{name!r} for {found}" for found, name in meant.items())
    if not meant:
        return ""
    given = quote(",".join(f"{found}={name}" for found, name in meant.items()))
    return f"did you write {pairs}? In a data set columns={meant!r} says so, in a command --columns {given}"


def is_conversation(value: Any) -> TypeGuard[Collection[Any]]:
    """Tell whether a value is a list, such as one of messages; a message of a library may be iterable too."""
    return isinstance(value, Collection) and not isinstance(value, (str, bytes, Mapping))


def as_contexts(value: object, *, name: str = "contexts") -> tuple[str, ...]:
    """Return the texts of one context or of several; raise ``TypeError`` naming what is no text.

    >>> as_contexts("One passage.")
    ('One passage.',)
    >>> as_contexts(["One.", "Two."])
    ('One.', 'Two.')
    """
    if isinstance(value, (list, tuple)) and set(map(type, value)) == {str}:
        # Rows of files: without a look at every text, for tables of a million.
        return tuple(value)
    single = _document_text(value)
    if single is not None:
        return (single,)
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        msg = f"{name} must be a text, a document or a list of them, not {type(value).__name__}{advice(value)}"
        raise TypeError(msg)
    texts = []
    for index, item in enumerate(value):
        text = _document_text(item)
        if text is None:
            keys, to_do = (advice(item), "") if isinstance(item, Mapping) else ("", advice(item))
            raise TypeError(
                f"{name}[{index}] is {_describe(item)}{keys}: give a str, or an object or a mapping whose "
                f"page_content, text or content is a str{to_do}"
            )
        texts.append(text)
    return tuple(texts)


def _document_text(value: object) -> str | None:
    if isinstance(value, str):
        # A subclass of str (a lazy translation, markup) must not reach the records as such.
        return str(value)
    for name in _DOCUMENT_TEXT:
        text = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if name == "get_content" and callable(text):
            text = text()
        if isinstance(text, str):
            return str(text)
    return None


def advice(value: object) -> str:
    """Return what to write instead of a value that is no text, where that can be told."""
    if isinstance(value, Awaitable):
        return "; await it first"
    if isinstance(value, Mapping) and value:
        return f", with the keys {', '.join(map(repr, islice(value, 8)))}"[:200]
    if isinstance(first_of(value, "content"), str):
        return "; give its text, the .content"
    return "; give its text" if kind_of(value) in ROLES else ""


def _describe(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def _as_ids(value: object, name: str) -> tuple[str | int, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a list of ids, not {type(value).__name__}")
    ids = tuple(value)
    for index, item in enumerate(ids):
        if not isinstance(item, (str, Integral)):
            raise TypeError(f"{name}[{index}] is {_describe(item)}: give a str or an int")
    # Numbers of numpy, which an index of vectors returns, must not reach the records as such.
    return tuple(str(item) if isinstance(item, str) else int(item) for item in ids)


#: Which answers of a conversation are scored.
Turns: TypeAlias = Literal["last", "each"]
#: Whose results are contexts: those of no tool, of all, or of those named.
ContextsFrom: TypeAlias = "Literal['tools'] | Sequence[str] | None"

_CONTEXTS = ("retrieved_contexts", *ALIASES["retrieved_contexts"])
#: The fields that turns of a conversation have each for themselves.
_OF_A_TURN = FIELDS[2:-2]


class Spoken(NamedTuple):
    """A message, what it is read from, and the place of that among the messages of its sample.

    Both are ``None`` for the question and the response of the sample.
    """

    message: Message
    item: Any = None
    place: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """What the user says, and what the assistant says, calls and is returned until the user speaks again.

    Turns are numbered from 1; an opening of the assistant is one without a question.
    """

    number: int
    said: tuple[Spoken, ...]

    @property
    def question(self) -> str | None:
        """What the user says, consecutive messages parted by a blank line; ``None`` where nobody asks."""
        texts = [said.message.text for said in self.said if said.message.role == "user"]
        return "\n\n".join(texts) if texts else None

    @property
    def answer(self) -> int | None:
        """The place of the answer among the messages: the last text of the assistant, ``None`` where there is none.

        A blank message is the answer of an assistant that says and calls nothing else.
        """
        of_assistant = [(n, said.message) for n, said in enumerate(self.said) if said.message.role == "assistant"]
        texts = [n for n, message in of_assistant if message.text.strip()]
        is_silent = not any(message.tool_calls or message.attachments for _, message in of_assistant)
        return texts[-1] if texts else of_assistant[-1][0] if of_assistant and is_silent else None

    def contexts(self, tools: ContextsFrom = None) -> tuple[str, ...] | None:
        """Return the contexts on its messages, else what ``tools`` returned, without doubles; ``None`` for neither.

        A ``context`` beside contexts of another name is the ideal one.
        """
        named = [(said.place, *given) for said in self.said if (given := _contexts_on(said.item))]
        is_clear = any(name != "context" for _, name, _ in named)
        found = [(f"{place}].{name}", value) for place, name, value in named if name != "context" or not is_clear]
        if not found:
            results = [said for said in self.said if tools and said.message.role == "tool"]
            taken = [said for said in results if tools == "tools" or said.message.tool in (tools or ())]
            found = [(f"{said.place}]", _as_documents(said.message.text)) for said in taken]
        texts = (text for place, value in found for text in as_contexts(value, name=f"messages[{place}"))
        return tuple(dict.fromkeys(texts)) if found else None

    def fields(self, tools: ContextsFrom = None) -> dict[str, Any]:
        """Return the fields that its messages have: the contexts, and those on the message of the answer, or beside it.

        A reference, say, may stand beside the question.
        """
        answer = self.said[self.answer or 0]
        cases = [_case_of(said.item) for said in (answer, *self.said)]
        found = {"retrieved_contexts": self.contexts(tools)}
        for name in _OF_A_TURN[1:]:
            values = (first_of(case, name, *ALIASES.get(name, ())) for case in cases)
            found[name] = next((value for value in values if value is not None), None)
        return {name: value for name, value in found.items() if value is not None}


def _case_of(item: Any) -> Any:
    """Return the test case that an older turn of DeepEval's contains, any other message as it is."""
    return first_of(item, "llm_test_case") or item


def _contexts_on(item: Any) -> tuple[str, Any] | None:
    """Return the name and the value of the contexts on a message; a ``context`` may be something else."""
    case = _case_of(item)
    named = next(((name, it) for name in _CONTEXTS if (it := first_of(case, name)) is not None), None)
    if named is not None and named[0] == "context":
        try:
            as_contexts(named[1])
        except TypeError:
            return None
    return named


def _as_documents(text: str) -> Any:
    """Return the texts or documents in the JSON list that a tool returned, any other text as it is.

    Results of Gemini's tools are objects, with the list as their only value.
    """
    listed = opened(text)
    if isinstance(listed, Mapping) and len(listed) == 1:
        (listed,) = listed.values()
    try:
        return as_contexts(listed) if isinstance(listed, list) else text
    except TypeError:
        return text


def check_turns(turns: object, contexts_from: object) -> None:
    """Raise ``ValueError`` for what does not say which turns of a conversation are scored, with which contexts."""
    if turns not in get_args(Turns):
        raise ValueError(f'turns must be "last" or "each", not {turns!r:.80}')
    is_named = isinstance(contexts_from, (list, tuple)) and all(isinstance(tool, str) for tool in contexts_from)
    if not (is_named or contexts_from in (None, "tools")):
        raise ValueError(f'contexts_from must be "tools" or a list of names of tools, not {contexts_from!r:.80}')


def turn_of(sample: Sample) -> int | str | None:
    """Return the number of the turn that a sample is, "all" for a whole conversation beside its turns, else ``None``.

    A row may have a ``turn`` of its own, which says nothing of this.
    """
    return sample.metadata.get("turn") if {"conversation", "lacking"} <= sample.metadata.keys() else None


def answer_of(sample: Sample) -> int | None:
    """Return which of several answers to its row a sample has, from 1 on; ``None`` where the row has one.

    All answers of a row have its ``id``. A row may have an ``answer`` of its own, which is no number from 1 on.

    >>> answer_of(Sample(id="q7", metadata={"answer": 2})), answer_of(Sample(id="q7"))
    (2, None)
    """
    number = sample.metadata.get("answer")
    return number if type(number) is int and number >= 1 else None


def in_turns(
    sample: Sample,
    turns: Turns,
    *,
    contexts_from: ContextsFrom = None,
    whole: bool = False,
    taken: Counter[str] | None = None,
) -> tuple[Sample, ...]:
    """Return the samples that are scored of one: itself, or each of its turns, and then with ``whole`` itself too.

    A conversation with a name that is ``taken`` gets a number.

    Where the last answer is scored alone, ``contexts_from`` says where its contexts come from. The whole conversation
    has the ``turn`` "all" in its metadata: only metrics of conversations score it. Raises as :meth:`Sample.turns`, and
    ``ValueError`` for other ``turns``.
    """
    check_turns(turns, contexts_from)
    if turns == "last":
        if contexts_from is None or sample.retrieved_contexts is not None or "messages" not in sample.metadata:
            return (sample,)
        # Those of the last turn, whether it is answered or not.
        last = read_turns(sample)[-1:]
        return (replace(sample, retrieved_contexts=last[0].contexts(contexts_from)) if last else sample,)
    found = sample.turns(contexts_from=contexts_from)
    if found[0] is sample:
        return found
    names = {name: found[0].metadata[name] for name in ("cluster", "conversation")}
    name = names["conversation"]
    if taken is not None:
        taken[name] += 1
        if taken[name] > 1:
            again = replace(sample, id=f"{name}-{taken[name]}")
            return in_turns(again, turns, contexts_from=contexts_from, whole=whole, taken=taken)
    metadata = {**sample.metadata, **names, "turn": "all", "lacking": ()}
    return (*found, replace(sample, id=name, metadata=metadata)) if whole else found


def _name_of(turns: Sequence[Turn]) -> str:
    """Return a name for a conversation without an id, of what the user says in it: answers may be others next time."""
    texts = "\n".join(turn.question or "" for turn in turns)
    return f"talk-{hashlib.sha256(texts.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def read_spoken(sample: Sample) -> list[Spoken]:
    """Return what was said and called, in order: the messages of a sample, its question and its response.

    Those two are added where they are not the last ones of the messages. A question comes after the messages, or
    before them where no user speaks and tools are called: then they lead from the question to the response. Raises as
    :func:`~pytest_ragmetrics.core.messages.read_messages`.
    """
    given = sample.metadata.get("messages")
    items: Any = [] if given is None else opened(given)
    spoken = [Spoken(message, items[index], index) for message, index in read_items(items)]
    question, answer = (sample.user_input or "").strip(), (sample.response or "").strip()
    asked = [said.message.text.strip() for said in spoken if said.message.role == "user" and said.message.text.strip()]
    if question and question not in asked[-1:]:
        leads_on = not asked and any(said.message.tool_calls or said.message.role == "tool" for said in spoken)
        instructions = sum(said.message.role == "system" for said in spoken)
        added = Spoken(Message(role="user", text=sample.user_input or ""))
        spoken.insert(instructions if leads_on else len(spoken), added)
    last = spoken[-1].message if spoken else Message(role="user")
    if answer and not (last.role == "assistant" and last.text.strip() == answer):
        spoken.append(Spoken(Message(role="assistant", text=sample.response or "")))
    return spoken


def read_turns(sample: Sample) -> tuple[Turn, ...]:
    """Return the turns of a sample, as :func:`read_spoken` finds what was said; instructions are in none.

    >>> talk = [{"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Rain?"}]
    >>> [(turn.number, turn.question) for turn in read_turns(Sample(response="No.", metadata={"messages": talk}))]
    [(1, None), (2, 'Rain?')]
    """
    turns: list[list[Spoken]] = []
    for said in read_spoken(sample):
        if said.message.role == "system":
            continue
        if not turns or (said.message.role == "user" and turns[-1][-1].message.role != "user"):
            turns.append([])
        turns[-1].append(said)
    return tuple(Turn(number=number, said=tuple(said)) for number, said in enumerate(turns, start=1))
