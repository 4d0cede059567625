"""The markers ``rag_judge`` and ``rag_votes`` of a test, read and checked."""

from __future__ import annotations

import pytest

from pytest_ragmetrics.settings import judge_spec


def marked_judge(item: pytest.Item) -> str | None:
    """Return the spec of a test's ``rag_judge`` marker, if it has one; raise ``pytest.UsageError`` if it is none."""
    given = _given(item, "rag_judge")
    if given is None:
        return None
    if len(given) != 1 or not isinstance(given[0], str):
        problem = "it takes one spec"
    else:
        try:
            return judge_spec(given[0], item.config)
        except ValueError as error:
            problem = str(error)
    raise _wrong(item, "rag_judge", given, f'{problem}; write @pytest.mark.rag_judge("openai:MODEL")')


def marked_votes(item: pytest.Item) -> int | None:
    """Return the number of a test's ``rag_votes`` marker, if it has one; raise ``pytest.UsageError`` if it is none."""
    given = _given(item, "rag_votes")
    if given is None:
        return None
    if len(given) == 1 and type(given[0]) is int and given[0] >= 1:
        return given[0]
    raise _wrong(item, "rag_votes", given, "it takes one whole number from 1 on; write @pytest.mark.rag_votes(3)")


def _given(item: pytest.Item, name: str) -> tuple[object, ...] | None:
    marker = item.get_closest_marker(name)
    return None if marker is None else (*marker.args, *marker.kwargs.values())


def _wrong(item: pytest.Item, name: str, given: tuple[object, ...], problem: str) -> pytest.UsageError:
    return pytest.UsageError(f"{item.nodeid}: marker {name}({', '.join(map(repr, given))}): {problem}")
