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
from tests.scripted_judge import asked_turns

Body = dict[str, Any]
Blocks = Mapping[str, str]

_BLOCK = re.compile(r"<<<(?P<label>.+?) (?P<mark>[0-9a-f]{12})\n(?P<text>.*?)\n(?P=mark) (?P=label)>>>", re.DOTALL)
_SENTENCE = re.compile(r"[^.!?。\s][^.!?。]*[.!?。]?")
_NUMBERED = re.compile(r"^(\d+)\.? (.*)$", re.MULTILINE)
_FORM = re.compile(r"form of the JSON object: (\{.*\})")
_SHARED = 0.5
_EARLIER = "conversation before the question"
_STARTS = ("What about", "Is it true that", "Can you tell whether", "Why is it that", "Who knows that")


def answer_sensibly(body: Body) -> str:
    """Answer any task of the package by word overlap, any other schema with the smallest value that fits it."""
    schema = _schema(body)
    prompt = next(text_of(message["content"]) for message in body["messages"] if message["role"] == "user")
    blocks = blocks_of(prompt)
    answer = _ANSWERS.get(_shape(schema))
    if answer is None or not blocks:
        return json.dumps(smallest(schema))
    return json.dumps(answer(blocks, prompt), ensure_ascii=False)


def by_words(task: type[tasks.Task[Any]]) -> Callable[[str], Body]:
    """Return what answers a task by the words of its prompt."""
    return lambda prompt: _BY_TASK[task](blocks_of(prompt), prompt)


def blocks_of(prompt: str) -> dict[str, str]:
    """Return the texts that a prompt shows, by their labels."""
    return {found["label"]: found["text"] for found in _BLOCK.finditer(prompt)}


def sentences_of(text: str) -> list[str]:
    return [sentence.strip() for sentence in _SENTENCE.findall(text)]


def text_of(content: Any) -> str:
    """Return the text of a message, which may be in parts."""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


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
    return json.dumps(unbounded(schema).get("properties", {}), sort_keys=True)


def unbounded(schema: Any, name: str = "") -> Any:
    """Return a schema without the bounds that a server gets which is not the provider's own."""
    if not isinstance(schema, dict):
        return schema
    bounds = {"maxLength", "maxItems", "minItems"} | ({"enum"} if name == "number" else set())
    return {key: unbounded(part, key) for key, part in schema.items() if key not in bounds}


def _numbered(text: str) -> dict[int, str]:
    return {int(number): line for number, line in _NUMBERED.findall(text)}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.casefold()))


def overlap(text: str, source: str) -> float:
    words = _words(text)
    return len(words & _words(source)) / len(words) if words else 0.0


def _sentences(blocks: Blocks) -> dict[int, str]:
    return _numbered(blocks["contexts"])


def _relevant(wanted: str, lines: Mapping[int, str]) -> list[int]:
    return [number for number, text in lines.items() if overlap(wanted, text) > 0]


def _verdict(number: int, claim: str, sentences: Mapping[int, str]) -> Body:
    best = max(sentences, key=lambda n: overlap(claim, sentences[n]), default=0)
    if best and overlap(claim, sentences[best]) >= _SHARED:
        return {"number": number, "reason": "It says so.", "sentences": [best], "verdict": "supported"}
    return {"number": number, "reason": "It does not say so.", "sentences": [], "verdict": "unsupported"}


def _write_questions(blocks: Blocks, prompt: str) -> Body:
    count = int(re.findall(r"exactly (\d+)", prompt)[-1])
    gist = " ".join(blocks["response"].split()[:12]).rstrip(".")
    questions = [f"{_STARTS[index % len(_STARTS)]} {gist}{'?' * (1 + index // len(_STARTS))}" for index in range(count)]
    return {"questions": [{"question": question, "noncommittal": _evasive(blocks)} for question in questions]}


def _evasive(blocks: Blocks) -> bool:
    return "not know" in blocks["response"] or "cannot" in blocks["response"]


def _closed_questions(blocks: Blocks, _: str) -> Body:
    words = dict.fromkeys(re.findall(r"\w{6,}", re.sub(r"(?m)^(Context )?\d+", "", blocks["contexts"])))
    phrases = list(words)[:6] or ["context"]
    return {"questions": [{"phrase": phrase, "question": f"Is {phrase} mentioned?"} for phrase in phrases]}


def _answer(number: int, *, yes: bool) -> Body:
    reason, word = ("It says so.", "yes") if yes else ("It does not say so.", "no")
    return {"number": number, "reason": reason, "answer": word}


def _judge_contexts(blocks: Blocks, _: str) -> Body:
    verdicts = []
    for number, text in _contexts(blocks):
        word = "relevant" if overlap(blocks["question"], text) > 0 else "irrelevant"
        verdicts.append({"number": number, "reason": f"It is {word}.", "verdict": word})
    return {"verdicts": verdicts}


def _contexts(blocks: Blocks) -> list[tuple[int, str]]:
    parts = re.split(r"(?m)^Context (\d+)$", blocks["contexts"])[1:]
    return [(int(number), text) for number, text in zip(parts[::2], parts[1::2], strict=True)]


def _judge_usefulness(blocks: Blocks, _: str) -> Body:
    verdicts = []
    for context, text in _contexts(blocks):
        sentences = [number for number, line in _numbered(text).items() if overlap(blocks["answer"], line)]
        word = "useful" if sentences else "useless"
        verdicts.append({"number": context, "reason": f"It is {word}.", "sentences": sentences, "verdict": word})
    return {"verdicts": verdicts}


def _contradictions(blocks: Blocks, _: str) -> Body:
    verdict = {"reason": "Both can be true.", "sentences": [], "verdict": "compatible"}
    numbers = re.findall(r"(?m)^Context (\d+)$", blocks["contexts"])
    return {"verdicts": [{"number": int(number), **verdict} for number in numbers]}


def _rated(rating: float) -> Body:
    return {"reason": "By the words they share.", "rating": rating}


def _overlap_of(blocks: Blocks, *, reverse: bool = False) -> float:
    first, second = list(blocks.values())[:2]
    return overlap(second, first) if reverse else overlap(first, second)


def _goal(blocks: Blocks, _: str) -> Body:
    lines = list(_numbered(blocks["conversation"]).values())
    wanted = blocks.get("goal", lines[0])
    word = "reached" if overlap(wanted, lines[-1]) > 0 else "missed"
    return {"goal": wanted, "reason": "By the words they share.", "verdict": word}


def _topics(blocks: Blocks, _: str) -> Body:
    lines = list(_numbered(blocks["conversation"]).values())
    asked = [(line, after) for line, after in zip(lines, [*lines[1:], ""], strict=True) if line.startswith("user:")]
    return {"topics": [{"topic": line[6:], "answered": "cannot" not in after} for line, after in asked]}


def _match(number: int, topic: str, allowed: Mapping[int, str]) -> Body:
    match = next((n for n, text in allowed.items() if overlap(text, topic) > 0), 0)
    return {"number": number, "reason": "By the words they share.", "allowed": match}


def _spoken(blocks: Blocks) -> list[tuple[int, str, int, str]]:
    """Return the sentences of a conversation: their turn, who says them, their number and their text."""
    found, turn, speaker = [], 0, ""
    for line in blocks["conversation"].splitlines():
        if heading := re.fullmatch(r"Turn (\d+) (\w+)", line):
            turn, speaker = int(heading[1]), heading[2]
        else:
            number, _, text = line.partition(" ")
            found.append((turn, speaker, int(number), text))
    return found


def _told(blocks: Blocks, _: str) -> Body:
    said = [(turn, text) for turn, _, _, text in _spoken(blocks)]
    facts = [(turn, text) for turn, text in said if not text.endswith(("?", "？"))] or said
    return {"facts": [{"turn": turn, "fact": text, "replaces": 0} for turn, text in facts]}


def _wishes(blocks: Blocks, _: str) -> Body:
    asked = [(turn, text) for turn, _, _, text in _spoken(blocks) if text.endswith(("?", "？"))]
    return {"wishes": [{"turn": turn, "wish": text} for turn, text in asked]}


def _became(name: str, usual: str, shown: str, is_shown: Callable[[str, str], bool]) -> Callable[[Blocks, str], Body]:
    """Return what answers that a thing told is ``shown`` by the first answer after it that is so, else ``usual``."""

    def answer(blocks: Blocks, _: str) -> Body:
        entries = []
        for number, line in _numbered(blocks[name]).items():
            since, text = re.findall(r"turns? (\d+).*?: (.*)", line)[0]
            after = [(n, it) for turn, who, n, it in _spoken(blocks) if who == "assistant" and turn >= int(since)]
            found = [n for n, it in after if is_shown(text, it)][:1]
            reason, word = "By the words they share.", shown if found else usual
            entries.append({"number": number, "reason": reason, "sentences": found, "verdict": word})
        return {name: entries}

    return answer


def _turns(blocks: Blocks, prompt: str) -> list[tuple[int, str]]:
    """Return the turns of a conversation that are judged, with what the assistant says in them."""
    parts = re.split(r"(?m)^Turn (\d+) assistant$", blocks["conversation"])[1:]
    said = {int(turn): text for turn, text in zip(parts[::2], parts[1::2], strict=True)}
    return [(turn, said.get(turn, "")) for turn in asked_turns(prompt)]


def _turn(number: int, verdict: str, **cited: list[int]) -> Body:
    return {"turn": number, "reason": "By its words.", **cited, "verdict": verdict}


def _golden_question(blocks: Blocks, _: str) -> Body:
    """Ask about the longest sentence that was not asked about; in a conversation in words that no text has."""
    sentences, asked = _sentences(blocks), blocks.get("questions already written", "") + blocks.get(_EARLIER, "")
    questions = {n: f"What about {text[: len(text) // 2].strip()}?" for n, text in sentences.items()}
    left = [n for n, question in questions.items() if question not in asked]
    if not left:
        return {"askable": False, "question": "", "sentences": [], "answer": ""}
    number = max(left, key=lambda n: len(_words(sentences[n])))
    question = "Or so?" if _EARLIER in blocks else questions[number]
    return {"askable": True, "question": question, "sentences": [number], "answer": sentences[number]}


_BY_TASK: Mapping[type[tasks.Task[Any]], Callable[[Blocks, str], Body]] = {
    tasks.ListClaims: lambda b, _: {"claims": sentences_of(b["text"])},
    tasks.VerifyClaims: lambda b, _: {
        "verdicts": [_verdict(number, claim, _sentences(b)) for number, claim in _numbered(b["claims"]).items()]
    },
    tasks.WriteQuestions: _write_questions,
    tasks.WriteClosedQuestions: _closed_questions,
    tasks.AnswerQuestions: lambda b, _: {
        "answers": [_answer(n, yes=overlap(said, b["text"]) > 0) for n, said in _numbered(b["questions"]).items()]
    },
    tasks.SelectSentences: lambda b, _: {
        "sentences": _relevant(b["question"], _sentences(b)) or _relevant(b.get(_EARLIER, ""), _sentences(b))
    },
    tasks.Critique: lambda _, __: {"reason": "Nothing speaks against it.", "verdict": "yes"},
    tasks.RateRelevance: lambda b, _: _rated(round(4 * _overlap_of(b))),
    tasks.JudgeContexts: _judge_contexts,
    tasks.JudgeUsefulness: _judge_usefulness,
    tasks.JudgeGoal: _goal,
    tasks.ListTopics: _topics,
    tasks.MatchTopics: lambda b, _: {
        "matches": [_match(n, topic, _numbered(b["allowed topics"])) for n, topic in _numbered(b["topics"]).items()]
    },
    tasks.ListTold: _told,
    tasks.ListWishes: _wishes,
    tasks.JudgeKept: _became("facts", "kept", "asked again", lambda it, by: "?" in by and overlap(by, it) >= _SHARED),
    tasks.JudgeWishes: _became("wishes", "unmet", "met", lambda wish, by: overlap(wish, by) > 0),
    tasks.JudgeTurns: lambda b, p: {
        "turns": [_turn(n, "evades" if "cannot" in said else "answers") for n, said in _turns(b, p)]
    },
    tasks.JudgeRole: lambda b, p: {"turns": [_turn(n, "in role", sentences=[]) for n, _ in _turns(b, p)]},
    tasks.FindContradictions: _contradictions,
    tasks.JudgeRefusal: lambda b, _: {"reason": "By its words.", "verdict": "refuses" if _evasive(b) else "answers"},
    tasks.ListEntities: lambda b, _: {
        "entities": list(dict.fromkeys(re.findall(r"\b[A-Z]\w+", " ".join(_sentences(b).values()))))
    },
    tasks.RateContexts: lambda b, _: _rated(round(2 * _overlap_of(b, reverse=True))),
    tasks.RateAgreement: lambda b, _: _rated(2 * round(2 * overlap(b["second answer"], b["first answer"]))),
    tasks.WriteGoldenQuestion: _golden_question,
}
_ANSWERS = {_shape(task.form): answer for task, answer in _BY_TASK.items()}


def _verdicts(blocks: Blocks, prompt: str) -> Body:
    """Answer one of the tasks that share a form, which their texts tell apart."""
    task = next(task for name, task in _BY_TEXT.items() if name in blocks)
    return _BY_TASK[task](blocks, prompt)


_BY_TEXT: Mapping[str, type[tasks.Task[Any]]] = {
    "claims": tasks.VerifyClaims,
    "answer": tasks.JudgeUsefulness,
    "response": tasks.FindContradictions,
}

_ANSWERS[_shape(tasks.VerifyClaims.envelope or {})] = _verdicts
