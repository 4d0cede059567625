"""A judge of the prompts of Ragas, of DeepEval and of ours, by one rule: the words that two texts share."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.fake_answers import answer_sensibly, blocks_of, overlap, sentences_of, text_of

Body = dict[str, Any]

_WHY = "By the words they share."
_RAGAS = "Now perform the same with the following input\ninput: "


def judge(body: Body) -> str:
    """Answer a request of any of the three."""
    prompt = text_of(body["messages"][-1]["content"])
    if _RAGAS in prompt:
        given, _ = json.JSONDecoder().raw_decode(prompt.rpartition(_RAGAS)[2])
        return json.dumps(_to_ragas(given, prompt))
    if "<<<" not in prompt:
        return json.dumps(_to_deepeval(_parts(prompt), prompt))
    shown = blocks_of(prompt)
    if {"response", "reference"} <= set(shown) and '"rating"' in json.dumps(body):
        return json.dumps({"reason": _WHY, "rating": rated(shown["response"], shown["reference"])})
    return answer_sensibly(body)


def said(claim: str, source: str) -> bool:
    """Whether one sentence has half of the words of a claim."""
    return any(overlap(claim, sentence) >= 0.5 for sentence in sentences_of(source))


def rated(answer: str, wanted: str) -> int:
    """Return 0 to 10: how many of the words wanted are in an answer."""
    return round(10 * overlap(wanted, answer))


def _to_ragas(given: Mapping[str, Any], prompt: str) -> Body:
    """Answer by the fields of the input; prompts of one input differ in the form that they ask for."""
    for fields, answer in _RAGAS_ANSWERS.items():
        *names, form = fields.split()
        if set(names) <= set(given) and f'"{form}"' in prompt:
            return answer(given)
    raise ValueError(f"no answer to {sorted(given)}")


def _marked(name: str, texts: Iterable[str], source: str) -> list[Body]:
    return [{"statement": text, "reason": _WHY, name: int(said(text, source))} for text in texts]


def _outcome(given: Mapping[str, Any]) -> Body:
    lines = given["workflow"].strip().splitlines()
    return {"user_goal": lines[0], "end_state": lines[-1]}


def _about(topic: str, allowed: Iterable[str]) -> bool:
    return any(name[:4].lower() in topic.lower() for name in allowed)


#: The fields of an input and the form of the answer, the special before the general.
_RAGAS_ANSWERS: Mapping[str, Callable[[Mapping[str, Any]], Body]] = {
    "context statements verdict": lambda it: {"statements": _marked("verdict", it["statements"], it["context"])},
    "context answer classifications": lambda it: {
        "classifications": _marked("attributed", sentences_of(it["answer"]), it["context"])
    },
    "context answer verdict": lambda it: {"reason": _WHY, "verdict": int(overlap(it["question"], it["context"]) > 0)},
    "question answer statements": lambda it: {"statements": sentences_of(it["answer"])},
    "response claims": lambda it: {"claims": sentences_of(it["response"])},
    "response noncommittal": lambda it: {"question": f"What about {it['response'].rstrip('.')}?", "noncommittal": 0},
    "workflow user_goal": _outcome,
    "desired_outcome verdict": lambda it: {
        "reason": _WHY,
        "verdict": str(int(overlap(it["desired_outcome"], it["arrived_outcome"]) > 0)),
    },
    "reference_topics classifications": lambda it: {
        "classifications": [_about(topic, it["reference_topics"]) for topic in it["topics"]]
    },
    "topic refused_to_answer": lambda it: {"refused_to_answer": "cannot" in it["user_input"]},
    "user_input topics": lambda it: {
        "topics": [line.partition(": ")[2] for line in it["user_input"].splitlines() if line.startswith("Human: ")]
    },
    "user_input verdict": lambda _: {"reason": "Nothing speaks against it.", "verdict": 1},
}


def _parts(prompt: str) -> dict[str, str]:
    """Return the data at the end of a prompt of DeepEval, by their headings in lower case."""
    parts: dict[str, str] = {}
    heading = ""
    for line in prompt.splitlines():
        name = line.strip().lower()
        if name.endswith(":") and len(name) < 40:
            heading = name.partition("(")[0].rstrip(": ")
            parts[heading] = ""
        elif heading:
            parts[heading] += f"{line}\n"
    return {name: text.strip() for name, text in parts.items()}


def _listed(text: str) -> list[Any]:
    """Return the entries of a list as Python or JSON writes it, else sentences."""
    try:
        found = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return sentences_of(text)
    return found if isinstance(found, list) else [found]


def _turns(text: str, role: str) -> list[str]:
    return [turn["content"] for turn in _listed(text) if turn["role"] == role]


def _yes(*, true: bool, other: str = "no") -> Body:
    return {"verdict": "yes" if true else other, "reason": _WHY}


def _verdicts(texts: Iterable[str], holds: Callable[[str], bool], other: str = "no") -> Body:
    return {"verdicts": [{"statement": text, **_yes(true=holds(text), other=other)} for text in texts]}


def _supported(it: Mapping[str, str]) -> Body:
    """Judge claims; one that the contexts do not mention contradicts nothing, which their prompt calls borderline."""
    source = it.get("retrieval contexts") or it["reference context"]
    return _verdicts(_listed(it["claims"]), lambda claim: said(claim, source), "borderline")


def _to_deepeval(parts: Mapping[str, str], prompt: str) -> Body:
    for fields, answer in _DEEPEVAL_ANSWERS.items():
        *names, form = fields.split("/")
        if set(names) <= set(parts) and f'"{form}"' in prompt:
            return answer(parts)
    return {"reason": _WHY}


_DEEPEVAL_ANSWERS: Mapping[str, Callable[[Mapping[str, str]], Body]] = {
    "ai output/claims": lambda it: {"claims": sentences_of(it["ai output"])},
    "assistant output/claims": lambda it: {"claims": sentences_of(it["assistant output"])},
    "text/truths": lambda it: {"truths": sentences_of(it["text"])},
    "reference context/truths": lambda it: {"truths": sentences_of(it["reference context"])},
    "text/statements": lambda it: {"statements": sentences_of(it["text"])},
    "claims/retrieval contexts/verdicts": _supported,
    "claims/reference context/verdicts": _supported,
    "input/statements/verdicts": lambda it: _verdicts(
        _listed(it["statements"]), lambda text: overlap(text, it["input"]) > 0
    ),
    "input/expected output/retrieval context/verdicts": lambda it: _verdicts(
        _listed(it["retrieval context"]), lambda text: overlap(it["input"], text) > 0
    ),
    "expected output/retrieval context/verdict": lambda it: _verdicts(
        sentences_of(it["expected output"]), lambda text: said(text, it["retrieval context"])
    ),
    "input/context/verdicts": lambda it: _verdicts(
        sentences_of(it["context"]), lambda text: overlap(it["input"], text) > 0
    ),
    "actual output/expected output/score": lambda it: {
        "reason": _WHY,
        "score": rated(it["actual output"], it["expected output"]),
    },
    "chatbot role/messages/verdicts": lambda _: {"verdicts": []},
    "messages/verdict": lambda it: _yes(true="cannot" not in _turns(it["messages"], "assistant")[-1]),
    "previous turns/latest user message/data": lambda it: {"data": {"said": it["latest user message"]}},
    "llm message/previous knowledge/verdict": lambda it: _yes(true="?" in it["llm message"]),
    "turns/user intention/verdict": lambda it: _yes(
        true=any(overlap(it["user intention"], text) > 0 for text in _turns(it["turns"], "assistant"))
    ),
    "turns/intentions": lambda it: {"intentions": _turns(it["turns"], "user")},
}
