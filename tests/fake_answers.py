"""What the fake server answers: simple rules over the words of a prompt, the same for the same request every time."""

from __future__ import annotations

import array
import base64
import json
import math
import re
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from pytest_ragmetrics.judges import tasks

Body = dict[str, Any]
Blocks = Mapping[str, str]

_BLOCK = re.compile(r"<<<(?P<label>.+?) (?P<mark>[0-9a-f]{12})\n(?P<text>.*?)\n(?P=mark) (?P=label)>>>", re.DOTALL)
_SENTENCE = re.compile(r"[^.!?。\s][^.!?。]*[.!?。]?")
_NUMBERED = re.compile(r"^(?:\[(\d+)\]|(\d+)\.) (.*)$", re.MULTILINE)
_FORM = re.compile(r"form of the JSON object: (\{.*\})")
_SHARED = 0.5
_STARTS = ("What about", "Is it true that", "Can you tell whether", "Why is it that", "Who knows that")


def answer_sensibly(body: Body) -> str:
    """Answer any task of the package by word overlap, any other schema with the smallest value that fits it."""
    schema = _schema(body)
    prompt = next(str(message["content"]) for message in body["messages"] if message["role"] == "user")
    blocks = {found["label"]: found["text"] for found in _BLOCK.finditer(prompt)}
    answer = _ANSWERS.get(_shape(schema))
    if answer is None or not blocks:
        return json.dumps(smallest(schema))
    return json.dumps(answer(blocks, prompt), ensure_ascii=False)


def smallest(schema: Mapping[str, Any]) -> Any:
    """Return the smallest value that fits a strict schema.

    >>> smallest({"type": "array", "items": {"type": "string", "enum": ["yes", "no"]}})
    ['yes']
    """
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: smallest(value) for name, value in schema["properties"].items()}
    if schema["type"] == "array":
        return [smallest(schema["items"])]
    return {"string": "text", "integer": 1, "number": 0.5, "boolean": False}[schema["type"]]


def embed(text: str, dimensions: int, *, as_base64: bool = False) -> list[float] | str:
    """Return a vector of length 1 made of the character trigrams of a text, as numbers or as OpenAI's base64."""
    counts = [0.0] * dimensions
    padded = f"  {text.casefold()} "
    for start in range(len(padded) - 2):
        counts[zlib.crc32(padded[start : start + 3].encode("utf-8", "replace")) % dimensions] += 1.0
    norm = math.sqrt(sum(count * count for count in counts))
    vector = [count / norm for count in counts]
    if not as_base64:
        return vector
    packed = array.array("f", vector)
    if sys.byteorder == "big":
        packed.byteswap()
    return base64.b64encode(packed.tobytes()).decode()


def _schema(body: Body) -> Any:
    """Find the schema where a client puts it: structured output, a forced tool, or the text of the prompt."""
    if "tools" in body:
        return body["tools"][0]["input_schema"]
    if "json_schema" in body.get("response_format", {}):
        return body["response_format"]["json_schema"]["schema"]
    for message in body["messages"]:
        stated = _FORM.search(str(message["content"]))
        if stated is not None:
            return json.loads(stated[1])
    return {"type": "object", "properties": {}}


def _shape(schema: Body) -> str:
    return json.dumps(schema.get("properties", {}), sort_keys=True)


def _numbered(text: str) -> dict[int, str]:
    return {int(bracketed or dotted): line for bracketed, dotted, line in _NUMBERED.findall(text)}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.casefold()))


def _overlap(text: str, source: str) -> float:
    words = _words(text)
    return len(words & _words(source)) / len(words) if words else 0.0


def _list_claims(blocks: Blocks, prompt: str) -> Body:
    return {"claims": [sentence.strip() for sentence in _SENTENCE.findall(blocks["text"])]}


def _verify(blocks: Blocks, prompt: str) -> Body:
    sentences = _numbered(blocks["contexts"])
    return {"verdicts": [_verdict(number, claim, sentences) for number, claim in _numbered(blocks["claims"]).items()]}


def _verdict(number: int, claim: str, sentences: Mapping[int, str]) -> Body:
    best = max(sentences, key=lambda n: _overlap(claim, sentences[n]), default=0)
    if best and _overlap(claim, sentences[best]) >= _SHARED:
        return {"number": number, "reason": "It says so.", "sentences": [best], "verdict": "supported"}
    return {"number": number, "reason": "It does not say so.", "sentences": [], "verdict": "unsupported"}


def _write_questions(blocks: Blocks, prompt: str) -> Body:
    count = int(re.findall(r"exactly (\d+)", prompt)[-1])
    gist = " ".join(blocks["response"].split()[:12]).rstrip(".")
    questions = [f"{_STARTS[index % len(_STARTS)]} {gist}{'?' * (1 + index // len(_STARTS))}" for index in range(count)]
    evasive = "not know" in blocks["response"] or "cannot" in blocks["response"]
    return {"questions": [{"question": question, "noncommittal": evasive} for question in questions]}


def _closed_questions(blocks: Blocks, prompt: str) -> Body:
    return {"questions": [f"Is {phrase} mentioned?" for phrase in _numbered(blocks["phrases"]).values()]}


def _key_phrases(blocks: Blocks, prompt: str) -> Body:
    words = dict.fromkeys(re.findall(r"\w{6,}", re.sub(r"(?m)^(Context \d+|\[\d+\])", "", blocks["contexts"])))
    return {"phrases": list(words)[:6] or ["context"]}


def _answers(blocks: Blocks, prompt: str) -> Body:
    said = {True: ("It says so.", "yes"), False: ("It does not say so.", "no")}
    answers = []
    for number, question in _numbered(blocks["questions"]).items():
        reason, word = said[_overlap(question, blocks["text"]) > 0]
        answers.append({"number": number, "reason": reason, "answer": word})
    return {"answers": answers}


def _select(blocks: Blocks, prompt: str) -> Body:
    sentences = _numbered(blocks["contexts"])
    return {"sentences": [number for number, text in sentences.items() if _overlap(blocks["question"], text) > 0]}


def _judge_contexts(blocks: Blocks, prompt: str) -> Body:
    parts = re.split(r"(?m)^Context (\d+)$", blocks["contexts"])[1:]
    verdicts = []
    for number, text in zip(parts[::2], parts[1::2], strict=True):
        word = "relevant" if _overlap(blocks["question"], text) > 0 else "irrelevant"
        verdicts.append({"number": int(number), "reason": f"It is {word}.", "verdict": word})
    return {"verdicts": verdicts}


def _judge_usefulness(blocks: Blocks, prompt: str) -> Body:
    sentences = [number for number, text in _numbered(blocks["contexts"]).items() if _overlap(blocks["answer"], text)]
    word = "useful" if sentences else "useless"
    return {"reason": f"It is {word}.", "sentences": sentences, "verdict": word}


def _contradictions(blocks: Blocks, prompt: str) -> Body:
    numbers = re.findall(r"(?m)^Context (\d+)$", blocks["contexts"])
    reason = "Both can be true."
    return {
        "verdicts": [{"number": int(n), "reason": reason, "sentences": [], "verdict": "compatible"} for n in numbers]
    }


def _entities(blocks: Blocks, prompt: str) -> Body:
    text = " ".join(_numbered(blocks["contexts"]).values())
    return {"entities": list(dict.fromkeys(re.findall(r"\b[A-Z]\w+", text)))}


def _refusal(blocks: Blocks, prompt: str) -> Body:
    evasive = "not know" in blocks["response"] or "cannot" in blocks["response"]
    return {"reason": "By its words.", "verdict": "refuses" if evasive else "answers"}


def _rate_of_three(blocks: Blocks, prompt: str) -> Body:
    source, text = list(blocks.values())[:2]
    return {"reason": "By the words they share.", "rating": round(2 * _overlap(text, source))}


def _agreement(blocks: Blocks, prompt: str) -> Body:
    share = _overlap(blocks["second answer"], blocks["first answer"])
    return {"reason": "By the words they share.", "rating": 2 * round(2 * share)}


def _goal(blocks: Blocks, prompt: str) -> Body:
    lines = list(_numbered(blocks["conversation"]).values())
    wanted = blocks.get("goal", lines[0])
    word = "reached" if _overlap(wanted, lines[-1]) > 0 else "missed"
    return {"goal": wanted, "reason": "By the words they share.", "verdict": word}


def _topics(blocks: Blocks, prompt: str) -> Body:
    lines = list(_numbered(blocks["conversation"]).values())
    asked = [(line, after) for line, after in zip(lines, [*lines[1:], ""], strict=True) if line.startswith("user:")]
    return {"topics": [{"topic": line[6:], "answered": "cannot" not in after} for line, after in asked]}


def _matches(blocks: Blocks, prompt: str) -> Body:
    allowed = _numbered(blocks["allowed topics"])
    found = []
    for number, topic in _numbered(blocks["topics"]).items():
        match = next((n for n, text in allowed.items() if _overlap(text, topic) > 0), 0)
        found.append({"number": number, "reason": "By the words they share.", "allowed": match})
    return {"matches": found}


def _rate(blocks: Blocks, prompt: str) -> Body:
    first, second = list(blocks.values())[:2]
    return {"reason": "By the words they share.", "rating": round(4 * _overlap(first, second))}


def _critique(blocks: Blocks, prompt: str) -> Body:
    return {"reason": "Nothing speaks against it.", "verdict": "yes"}


def _golden_question(blocks: Blocks, prompt: str) -> Body:
    sentences = _numbered(blocks["contexts"])
    number = max(sentences, key=lambda n: len(_words(sentences[n])))
    answer = sentences[number]
    question = f"What about {answer[: len(answer) // 2].strip()}?"
    return {"askable": True, "question": question, "sentences": [number], "answer": answer}


_ANSWERS: Mapping[str, Callable[[Blocks, str], Body]] = {
    _shape(task.form): answer
    for task, answer in (
        (tasks.ListClaims, _list_claims),
        (tasks.VerifyClaims, _verify),
        (tasks.WriteQuestions, _write_questions),
        (tasks.ListKeyPhrases, _key_phrases),
        (tasks.WriteClosedQuestions, _closed_questions),
        (tasks.AnswerQuestions, _answers),
        (tasks.SelectSentences, _select),
        (tasks.Critique, _critique),
        (tasks.RateRelevance, _rate),
        (tasks.JudgeContexts, _judge_contexts),
        (tasks.JudgeUsefulness, _judge_usefulness),
        (tasks.JudgeGoal, _goal),
        (tasks.ListTopics, _topics),
        (tasks.MatchTopics, _matches),
        (tasks.FindContradictions, _contradictions),
        (tasks.JudgeRefusal, _refusal),
        (tasks.ListEntities, _entities),
        (tasks.RateContexts, _rate_of_three),
        (tasks.RateAgreement, _agreement),
        (tasks.WriteGoldenQuestion, _golden_question),
    )
}
