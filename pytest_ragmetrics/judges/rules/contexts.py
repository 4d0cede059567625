"""Contexts serve a question whose words they have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from pytest_ragmetrics.judges.overlap import coverage, keys, sentences_of
from pytest_ragmetrics.judges.rules.words import ON_TOPIC, SUPPORTED, committed
from pytest_ragmetrics.judges.tasks import (
    FindContradictions,
    JudgeContexts,
    Judgement,
    JudgeUsefulness,
    SelectSentences,
)
from pytest_ragmetrics.text.sentences import sentence_table


def select_sentences(task: SelectSentences) -> tuple[int, ...]:
    """Choose the sentences with at least half as many of the question's words as the best one."""
    wanted = keys(task.question)
    shared = sentences_of(task.contexts).shared(wanted)
    most = max(shared.values(), default=0)
    if not wanted or most / len(wanted) < ON_TOPIC:
        return ()
    return tuple(sorted(index for index, count in shared.items() if count * 2 >= most))


def judge_contexts(task: JudgeContexts) -> tuple[Judgement, ...]:
    """Take contexts with enough of the question's words for relevant."""
    wanted = keys(task.question)
    shares = [coverage(wanted, keys(context)) for context in task.contexts]
    return tuple(
        Judgement(ok=share >= ON_TOPIC, reason=f"It has {share:.0%} of the question's words.") for share in shares
    )


def judge_usefulness(task: JudgeUsefulness) -> Judgement:
    """Take a context for useful that has enough of the words which the answer adds to the question."""
    asked, answered = keys(task.question), keys(task.answer)
    wanted = answered - asked or answered or asked
    shared = sentences_of((task.context,)).shared(wanted)
    share = coverage(wanted, keys(task.context))
    ok = bool(shared) and share >= ON_TOPIC
    return Judgement(
        ok=ok, reason=f"It has {share:.0%} of the answer's words.", sentences=tuple(sorted(shared)) if ok else ()
    )


def find_contradictions(task: FindContradictions) -> tuple[Judgement, ...]:
    """Take a context for contradicted that says nearly the same with another number, or negated."""
    said = tuple(committed(task.response))
    first = accumulate((len(sentence_table((context,))) for context in task.contexts), initial=0)
    return tuple(_contradiction(said, context, start) for context, start in zip(task.contexts, first, strict=False))


def _contradiction(said: Sequence[str], context: str, start: int) -> Judgement:
    sentences = sentences_of((context,))
    for sentence in said:
        support = sentences.support(sentence)
        if support.negated or (support.missing and support.coverage >= SUPPORTED):
            where = tuple(start + index for index in support.sentences[:1])
            differs = f"not {', '.join(support.missing)}" if support.missing else "one of the two is negated"
            return Judgement(ok=True, reason=f"It says nearly the same, but {differs}.", sentences=where)
    return Judgement(ok=False, reason="It says nothing that is nearly the same and differs.")
