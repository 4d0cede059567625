"""Runs against a real model, far too small to judge: what is asked, kept, refused and said, never what is scored.

Run by `.ci/real`, which installs what it takes; not collected with the other tests.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.fake_openai import Body, FakeOpenAI, Reply
from tests.real.serving import LlamaServer, Run, asking, ended, llama_server, run, start, write

SERIAL = "--rag-concurrency=1"
#: Eight rows, of which two have an answer that is wrong.
TABLE = """
    import pytest

    TABLE = [
        ("How deep is the harbour?", "It is nine metres deep.", "The harbour is nine metres deep."),
        ("Who repaired the organ?", "Ida Lund repaired it.", "The organ was repaired by Ida Lund."),
        ("May dogs enter the park?", "No, dogs may not.", "Dogs are not allowed in the park."),
        ("When does the ferry leave?", "Copper conducts heat.", "The ferry leaves at seven."),
        ("What do the bees feed on?", "They feed on clover.", "The bees of the island feed on clover."),
        ("How heavy is the bell?", "About two tons.", "The bell weighs about two tons."),
        ("Where is the salt mined?", "It is mined in Norway.", "The salt is mined in the Alps."),
        ("Why was the race stopped?", "Because of fog.", "The race was stopped because of fog."),
    ]
    ROWS = [
        {"id": f"row{n}", "question": question, "answer": answer, "contexts": [context]}
        for n, (question, answer, context) in enumerate(TABLE)
    ]
"""
#: The model's ratings are those of the example; that no sentence is needed it may say, and the answer is kept.
JUDGED = f"""{TABLE}
    from pytest_ragmetrics import assert_faithful

    @pytest.mark.rag_dataset(ROWS, metrics=["relevance", "response_groundedness", "context_relevancy"])
    def test_rows(rag_scores):
        assert rag_scores["relevance"] >= 0.5

    def test_faithful():
        assert_faithful("The bell weighs two tons.", ["It is old. The bell weighs two tons."], min=0.8)
"""
#: One short request a row, whose answer is kept.
SHORT = f"""{TABLE}
    import os
    ROWS = [{{**row, "id": f"{{row['id']}}-{{n}}", "contexts": [f"{{n}} m. {{row['contexts'][0]}}"]}}
            for n in range(int(os.environ.get("TIMES", 1))) for row in ROWS]

    @pytest.mark.rag_dataset(ROWS, metrics=["context_relevancy"])
    def test_rows(rag_scores):
        assert rag_scores["context_relevancy"] >= 0
"""
#: The metrics that ask the tasks whose answers have free texts.
METRICS = {
    "rate_relevance": "relevance",
    "rate_groundedness": "response_groundedness",
    "review_groundedness": "response_groundedness",
    "list_claims": "faithfulness",
    "verify_claims": "faithfulness",
}
REPEATED = "repeats the example of the prompt"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    with llama_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@dataclass(kw_only=True)
class Relay:
    """Passes requests on to a server one by one, and keeps them with what was replied."""

    server: LlamaServer
    exchanges: list[tuple[Body, dict[str, Any]]] = field(default_factory=list)

    def __call__(self, body: Body) -> Reply:
        headers = {"content-type": "application/json"}
        asked = urllib.request.Request(f"{self.server.url}/chat/completions", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(asked, timeout=300) as answered:
                raw, status = answered.read(), answered.status
        except urllib.error.HTTPError as error:
            with error:
                raw, status = error.read(), error.code
        self.exchanges.append((body, json.loads(raw)))
        return Reply(raw=raw, status=status)


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A run that recorded: where, what it says, and every request with its reply."""

    folder: Path
    run: Run
    exchanges: list[tuple[Body, dict[str, Any]]]


@pytest.fixture(scope="module")
def recording(server: LlamaServer, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Record the rows and the assertion."""
    folder, relay = tmp_path_factory.mktemp("recording"), Relay(server=server)
    write(folder, test_rows=JUDGED)
    with FakeOpenAI(answer=relay) as between:
        found = run(folder, between.base_url, SERIAL, "--rag-cassette=answers.jsonl")
    return Recording(folder=folder, run=found, exchanges=relay.exchanges)


def said(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for name, part in value.items() if name in {"reason", "claims"} for text in said(part)]
    return [value] if isinstance(value, str) else [text for part in value for text in said(part)]


def is_echo(body: Body, answer: dict[str, Any]) -> bool:
    *_, example = (line for line in body["messages"][1]["content"].splitlines() if line.startswith("{"))
    try:
        found = said(json.loads(answer["choices"][0]["message"]["content"]))
    except ValueError:
        return False
    return bool(found) and {*found} <= {*said(json.loads(example))}


def test_no_reply_that_repeats_the_example_is_scored(recording: Recording) -> None:
    last = {
        (body["response_format"]["json_schema"]["name"], body["messages"][1]["content"]): (body, answer)
        for body, answer in recording.exchanges
    }
    echoes = [names for names, (body, answer) in last.items() if is_echo(body, answer)]
    # It is what this model does, on any machine.
    assert echoes
    for task, prompt in echoes:
        (record,) = (
            record
            for (_, metric), record in recording.run.records.items()
            if metric == METRICS[task] and record["sample"]["response"] in prompt
        )
        assert (record["score"], record["outcome"]) == (None, "unscored")
        assert REPEATED in record["reason"]
    texts = Counter((names[0], answer["choices"][0]["message"]["content"]) for names, (_, answer) in last.items())
    most = max(count for (task, _), count in texts.items() if task in METRICS)
    assert most < 5 or "are the same text" in recording.run.out


def test_a_recording_replays_without_a_network(recording: Recording, tmp_path: Path) -> None:
    cassette = recording.folder / "answers.jsonl"
    before = cassette.read_bytes()
    # Rows without a score have no answer that could be kept.
    kept = sum(record["score"] is not None for record in recording.run.records.values())
    assert kept >= 8
    write(tmp_path, test_rows=JUDGED)
    alone = ["unshare", "-rn"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        # Where that is not permitted, nothing listens at the address at least.
        alone = []
    replay = run(tmp_path, "http://127.0.0.1:9/v1", f"--rag-cassette={cassette}", "--rag-cache=replay", before=alone)
    assert "judge calls: 0 made (0 tokens" in replay.out
    assert replay.outcomes == recording.run.outcomes
    assert cassette.read_bytes() == before


def test_a_server_that_is_killed_costs_what_it_had_not_answered(tmp_path: Path) -> None:
    write(tmp_path, test_rows=SHORT)
    with llama_server(tmp_path) as server:
        process = start(tmp_path, server.url, SERIAL, "--rag-retries=1")
        while server.begun < 4:
            assert process.poll() is None
            time.sleep(0.02)
        server.kill()
        first = ended(process, tmp_path)
    lost = [record for record in first.records.values() if record["score"] is None]
    assert 4 <= len(lost) <= 5
    assert all("cannot be reached" in record["reason"] for record in lost)
    with llama_server(tmp_path, port=server.port) as again:
        second = run(tmp_path, again.url, SERIAL)
    assert all(record["score"] is not None for record in second.records.values())
    assert again.begun == len(lost)


def test_a_prompt_that_is_too_long_is_refused_once(tmp_path: Path) -> None:
    long = 'ROWS = [{**ROWS[0], "contexts": ["The harbour is nine metres deep. " * 200]}, *ROWS[1:4]]\n    @pytest.mark'
    write(tmp_path, test_rows=SHORT.replace("@pytest.mark", long))
    with llama_server(tmp_path, context=1024) as server:
        found = run(tmp_path, server.url, SERIAL)
        begun = server.begun
    refused, *others = found.records.values()
    assert refused["score"] is None
    assert "rejected with status 400 (request (" in refused["reason"]
    assert "exceeds the available context size (1024 tokens)" in refused["reason"]
    assert all(record["score"] is not None for record in others)
    assert (len(others), begun) == (3, 4)


def doctor(folder: Path, url: str, *specs: str) -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-m", "pytest_ragmetrics", "doctor", "--json", *specs]
    found = subprocess.run(command, cwd=folder, env=asking(url), capture_output=True, text=True, check=False)
    checks = json.loads(found.stdout)["checks"]
    assert found.returncode == (not all(check["ok"] for check in checks))
    return {check["topic"]: check for check in checks}


def test_doctor_asks_the_judge(server: LlamaServer, tmp_path: Path) -> None:
    text = doctor(tmp_path, server.url, "--judge=openai:smollm2")["judge"]["text"]
    assert "answers and takes the schema of an answer" in text
    assert "a true statement from a false one" in text
    gone = doctor(tmp_path, "http://127.0.0.1:9/v1", "--judge=openai:smollm2")["judge"]
    assert not gone["ok"]
    assert "cannot be reached" in gone["to_do"]


def test_one_slot_loses_no_row(server: LlamaServer, tmp_path: Path) -> None:
    """Where all at once wait longer than a time-out each is answered all the same, and what was given up is counted."""
    write(tmp_path, test_rows=SHORT)
    prompt = {"role": "user", "content": "The ferry leaves at seven, and the harbour is nine metres deep. " * 20}
    began = time.monotonic()
    Relay(server=server)({"messages": [prompt], "max_tokens": 25})
    # Four take longer than this, one alone does not.
    timeout = 2 * (time.monotonic() - began)
    found = run(tmp_path, server.url, "--rag-concurrency=32", f"--rag-timeout={timeout:.1f}", TIMES="2")
    assert [record["reason"] for record in found.records.values() if record["score"] is None] == []
    assert len(found.records) == 16
    (note,) = (note for note in found.written["run"]["notes"] if "given up" in note)
    assert note in found.out
    sent, given_up = map(int, re.findall(r"\d+", note)[:2])
    assert (sent - given_up, given_up > 0) == (16, True)
    assert "--rag-concurrency" in note


def test_one_sentence_ends(server: LlamaServer, tmp_path: Path) -> None:
    """What nothing bounds this model writes without an end."""
    test = """
        from pytest_ragmetrics import assert_faithful

        def test_faithful():
            assert_faithful(
                "The pump needs two minutes to fill.",
                ["Open the valve slowly. The pump needs two minutes to fill."],
                question="How long does the pump need?",
                min=0.8,
            )
    """
    write(tmp_path, test_one=test)
    began = time.monotonic()
    found = run(tmp_path, server.url, SERIAL)
    assert time.monotonic() - began < 60
    assert "no answer within" not in found.out


def test_embeddings_are_asked_of_a_server_of_their_own(tmp_path: Path) -> None:
    test = f"""{TABLE}
    ROWS = [{{"id": f"row{{n}}", "answer": row[1], "reference": row[2]}} for n, row in enumerate(TABLE)]

    @pytest.mark.rag_dataset(ROWS, metrics=["semantic_similarity"])
    def test_rows(rag_scores):
        assert rag_scores["semantic_similarity"] > 0
    """
    write(tmp_path, test_rows=test)
    with llama_server(tmp_path, context=2048, embeds=True) as server:
        found = run(tmp_path, server.url, "--rag-embedder=openai:smollm2")
        checks = doctor(tmp_path, server.url, "--judge=local", "--embedder=openai:smollm2")
    assert [record["outcome"] for record in found.records.values()] == ["passed"] * 8
    assert sum(record["usage"]["embedding_tokens"] for record in found.records.values()) > 0
    assert checks["embedder"]["ok"]
    assert "vectors of 576 numbers; unrelated texts lie at" in checks["embedder"]["text"]
