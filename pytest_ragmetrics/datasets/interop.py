"""From what chains, query engines, pipelines and chat models return to a sample; none of the libraries is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from pytest_ragmetrics.core.messages import first_of, read_messages
from pytest_ragmetrics.core.sample import ALIASES, Sample, advice, is_structured
from pytest_ragmetrics.datasets.rows import sample_of, values_of

#: What the fields of a sample are called in results, besides their aliases; a name of the sample or an alias wins.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "response": ("result", "generation", "output", "replies"),
    "retrieved_contexts": ("source_documents", "source_nodes", "documents"),
}
#: What components of a pipeline name their outputs; a mapping without them may be a response of names and values.
_OUTPUTS = frozenset(("replies", "documents", "answers"))
_ACCEPTED = (
    "give a text, a mapping, a Sample, or what a chain of LangChain, a query engine of LlamaIndex or a pipeline of "
    "Haystack returned"
)


def sample_from(result: Any, *, question: str | None = None) -> Sample:
    """Return the sample in what an application returned; ``question`` is used where the result has none.

    It reads the forms that ``rag_respond`` may return (``ragmetrics docs rows``), and rows of Ragas and DeepEval.
    Raises ``TypeError`` for anything else, ``ValueError`` for a mapping without a field to score.

    >>> sample_from({"query": "Why?", "result": "So.", "source_documents": ["It is so."]}).retrieved_contexts
    ('It is so.',)
    """
    if isinstance(result, Sample):
        sample = result
    elif isinstance(result, str):
        sample = Sample(response=str(result))
    else:
        values = result if isinstance(result, Mapping) else None if isinstance(result, type) else _values(result)
        if values is None:
            raise TypeError(f"{type(result).__name__} is no result of an application{advice(result)}: {_ACCEPTED}")
        sample = _of_mapping(values)
    return sample if question is None or sample.user_input is not None else replace(sample, user_input=question)


def _values(result: Any) -> Mapping[str, Any] | None:
    """Return the fields of an object by name; ``None`` where it has none of the known shapes."""
    if hasattr(result, "source_nodes"):
        return {"response": getattr(result, "response", None), "source_nodes": result.source_nodes}
    if hasattr(result, "data") and hasattr(result, "documents"):
        return {"query": getattr(result, "query", None), "response": result.data, "documents": result.documents}
    if hasattr(result, "choices"):
        choices = list(result.choices)
        return {"response": choices[0].message, **_billed(result)} if choices else None
    message = getattr(result, "message", result)
    if getattr(message, "role", getattr(message, "type", None)) in ("assistant", "ai"):
        return {"response": message, **_billed(message)}
    return values_of(result)


def _billed(result: object) -> dict[str, Any]:
    """Return what a model counted of its own answer, and its name."""
    model = first_of(result, "model") or first_of(first_of(result, "response_metadata"), "model_name", "model")
    return {"usage": first_of(result, "usage", "usage_metadata"), "model": model if isinstance(model, str) else None}


def _of_mapping(result: Mapping[str, Any]) -> Sample:
    row: dict[Any, Any] = dict(_merged(result))
    strange = next((key for key in row if not isinstance(key, str)), None)
    if strange is not None:
        raise TypeError(f"the names in a mapping must be texts, not {strange!r:.60}")
    for name, others in _NAMES.items():
        if any(row.get(known) is not None for known in (name, *ALIASES[name])):
            continue
        found = [other for other in others if row.get(other) is not None]
        if found:
            row[name] = row.pop(found[0])
    for name in ("response", *ALIASES["response"]):
        if row.get(name) is not None:
            row[name] = _response(row[name])
    if row.get("retrieved_context_ids") is None:
        contexts = next(
            (row[name] for name in ("retrieved_contexts", *ALIASES["retrieved_contexts"]) if name in row), ()
        )
        row["retrieved_context_ids"] = _ids(contexts)
    if (usage := row.get("usage")) is not None:
        # What crosses processes and files are builtins.
        row["usage"] = [values_of(it) or it for it in usage] if isinstance(usage, list) else values_of(usage) or usage
    given = row.get("id")
    return sample_of(row, id=str(given) if isinstance(given, (str, int)) else None)


def _merged(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the outputs of a pipeline's components together, later ones over earlier; any other mapping as it is."""
    parts = list(result.values())
    if not parts or not all(isinstance(part, Mapping) for part in parts):
        return result
    together = {name: value for part in parts for name, value in part.items()}
    if "response" in result and together.keys().isdisjoint(_OUTPUTS):
        return result
    answers = together.pop("answers", None)
    if isinstance(answers, (list, tuple)) and answers:
        values = _values(answers[0]) or {}
        together.update({name: value for name, value in values.items() if value is not None})
    return together


def _response(value: Any) -> Any:
    """Return the text of a response: itself, that of a message, or of the first of several; or names and values."""
    first = value[0] if isinstance(value, (list, tuple)) and value else value
    for name in ("text", "content"):
        text = first if isinstance(first, str) else getattr(first, name, None)
        if isinstance(text, str):
            # A subclass of str must not reach the records as such.
            return str.__str__(text)
    try:
        text = "\n".join(message.text for message in read_messages([first]) if message.role == "assistant")
    except (TypeError, ValueError):
        text = ""
    if not text and is_structured(value):
        return value
    if not text:
        raise TypeError(f"response must be a text or a message, not {type(first).__name__}")
    return text


def _ids(documents: Any) -> Sequence[str | int] | None:
    """Return the ids of documents, ``None`` unless each of them has one."""
    if not isinstance(documents, (list, tuple)):
        return None
    known: list[str | int] = []
    for document in documents:
        is_mapping = isinstance(document, Mapping)
        found = (document.get(name) if is_mapping else getattr(document, name, None) for name in ("node_id", "id"))
        known += islice((given for given in found if isinstance(given, (str, int)) and given != ""), 1)
    return known if known and len(known) == len(documents) else None
