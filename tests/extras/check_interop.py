"""Results of other libraries, and other systems that results go to, with the real packages; run by name.

pip install --group interop && python -m pytest tests/extras/check_interop.py
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics import sample_from
from pytest_ragmetrics.metrics import Faithfulness
from tests.fake_server import FakeServer, Recorded, Response

EXAMPLE = Path(__file__).parents[2] / "conftest_examples" / "observers"
# Modules that a test imports are forgotten after it, and this one cannot be imported twice.
MLFLOW: Any = import_module("mlflow")
CONTEXTS = ("Basil wilts when it is cold.", "Ivy climbs walls.")


def langchain_results() -> Iterator[Any]:
    document: Any = import_module("langchain_core.documents").Document
    messages: Any = import_module("langchain_core.messages")
    runnables: Any = import_module("langchain_core.runnables")
    documents = [document(page_content=text, id=f"d{number}") for number, text in enumerate(CONTEXTS)]
    yield {"query": "What climbs?", "result": "Ivy.", "source_documents": documents}
    yield {"input": "What climbs?", "context": documents, "answer": messages.AIMessage("Ivy.")}
    yield {"question": "What climbs?", "documents": documents, "generation": "Ivy."}
    yield {"retrieve": {"question": "What climbs?", "context": documents}, "generate": {"answer": "Ivy."}}
    chain = runnables.RunnablePassthrough.assign(context=lambda _: documents).assign(answer=lambda _: "Ivy.")
    yield chain.invoke({"question": "What climbs?"})


def llama_index_results() -> Iterator[Any]:
    core: Any = import_module("llama_index.core")
    schema: Any = import_module("llama_index.core.schema")
    responses: Any = import_module("llama_index.core.base.response.schema")
    chat: Any = import_module("llama_index.core.chat_engine.types")
    texts = [schema.TextNode(text=text, id_=f"d{number}") for number, text in enumerate(CONTEXTS)]
    nodes = [schema.NodeWithScore(node=text, score=0.5) for text in texts]
    yield responses.Response(response="Ivy.", source_nodes=nodes)
    yield chat.AgentChatResponse(response="Ivy.", source_nodes=nodes)
    synthesizer = core.get_response_synthesizer(llm=core.llms.MockLLM(max_tokens=4), response_mode="compact")
    asked = synthesizer.synthesize("What climbs?", nodes=nodes)
    asked.response = "Ivy."
    yield asked


def haystack_results() -> Iterator[Any]:
    haystack: Any = import_module("haystack")
    dataclasses: Any = import_module("haystack.dataclasses")
    documents = [haystack.Document(content=text, id=f"d{number}") for number, text in enumerate(CONTEXTS)]
    question = {"prompt_builder": {"query": "What climbs?"}}
    said = dataclasses.ChatMessage.from_assistant("Ivy.")
    yield {"retriever": {"documents": documents}, "llm": {"replies": ["Ivy."]}, **question}
    yield {"retriever": {"documents": documents}, "llm": {"replies": [said]}, **question}
    builder: Any = import_module("haystack.components.builders").AnswerBuilder()
    pipeline = haystack.Pipeline()
    pipeline.add_component("answers", builder)
    yield pipeline.run({"answers": {"query": "What climbs?", "replies": ["Ivy."], "documents": documents}})
    yield builder.run(query="What climbs?", replies=["Ivy."], documents=documents)["answers"][0]


@pytest.mark.parametrize("results", [langchain_results, llama_index_results, haystack_results])
def test_what_applications_return_is_a_sample(results: Any) -> None:
    for result in results():
        sample = sample_from(result, question="What climbs?")
        assert (sample.user_input, sample.response) == ("What climbs?", "Ivy."), result
        assert sample.retrieved_contexts == CONTEXTS
        assert sample.retrieved_context_ids == ("d0", "d1")
        assert Faithfulness(judge="local").score_sample(sample) >= 0


def test_messages_of_chat_models_are_responses() -> None:
    langchain: Any = import_module("langchain_core.messages")
    llama: Any = import_module("llama_index.core.llms")
    haystack: Any = import_module("haystack.dataclasses")
    completions: Any = import_module("openai.types.chat")
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Ivy."}}
    head = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    for result in (
        langchain.AIMessage("Ivy."),
        langchain.AIMessage([{"type": "text", "text": "Ivy."}]),
        llama.ChatResponse(message=llama.ChatMessage(role="assistant", content="Ivy.")),
        haystack.ChatMessage.from_assistant("Ivy."),
        completions.ChatCompletion.model_validate({**head, "choices": [choice]}),
    ):
        assert sample_from(result).response == "Ivy.", result
    talk = {"messages": [langchain.HumanMessage("What climbs?"), langchain.AIMessage("Ivy.")]}
    assert (sample_from(talk).user_input, sample_from(talk).response) == ("What climbs?", "Ivy.")


@pytest.fixture
def example(pytester: pytest.Pytester) -> Path:
    folder: Path = pytester.path / "observers"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return folder


def observed(pytester: pytest.Pytester, example: Path, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess(str(example), "-p", "ragmetrics", "-p", "no:cacheprovider", *arguments)


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n2"]], ids=["alone", "xdist"])
def test_scores_arrive_in_mlflow(
    pytester: pytest.Pytester, example: Path, monkeypatch: pytest.MonkeyPatch, workers: list[str]
) -> None:
    store = (pytester.path / "store").as_uri()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    result = observed(pytester, example, *workers)
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line("*mlflow_observer: *")
    client = MLFLOW.MlflowClient(tracking_uri=store)
    # A store of files locks nothing: workers that begin together may make two experiments of one name.
    experiments = [found.experiment_id for found in client.search_experiments() if found.name == "pytest-ragmetrics"]
    runs = client.search_runs(experiments)
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert len(runs) == (2 if workers else 1)
    steps = [step for run in runs for step in client.get_metric_history(run.info.run_id, "quoted_spans_alignment")]
    assert [step.value for step in steps] == [1.0, 1.0]
    assert {run.data.metrics["unscored"] for run in runs} == {0.0}
    written = [Path(run.info.artifact_uri.removeprefix("file://")) / "records.json" for run in runs]
    records = [record for file in written for record in json.loads(file.read_text("utf-8"))["records"]]
    assert sorted(record["test"].partition("[")[2] for record in records) == ["sun]", "water]"]


class LangSmith(FakeServer):
    """Takes what the SDK sends."""

    project = str(uuid.uuid4())

    async def respond(self, request: Recorded) -> Response:
        row: dict[str, Any] = {}
        if request.method == "POST" and request.path.partition("?")[0] == "/sessions":
            row = {"id": self.project, "start_time": "2030-01-01T00:00:00+00:00", "name": request.body.get("name")}
            row |= {"reference_dataset_id": None, "tenant_id": str(uuid.uuid4())}
        return Response(raw=json.dumps(row).encode())

    def sent(self, path: str) -> list[dict[str, Any]]:
        return [it.body for it in self.requests if it.method == "POST" and it.path.partition("?")[0] == path]


@pytest.fixture
def langsmith(monkeypatch: pytest.MonkeyPatch) -> Iterator[LangSmith]:
    with LangSmith() as server:
        monkeypatch.setenv("LANGSMITH_ENDPOINT", server.root_url)
        monkeypatch.setenv("LANGSMITH_API_KEY", "made up")
        yield server


def test_scores_arrive_in_langsmith(pytester: pytest.Pytester, example: Path, langsmith: LangSmith) -> None:
    result = observed(pytester, example)
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line("*warning*")
    runs = {run["id"]: run for run in langsmith.sent("/runs")}
    feedback = langsmith.sent("/feedback")
    assert sorted(run["name"].partition("[")[2] for run in runs.values()) == ["sun]", "water]"]
    outputs = [run["outputs"]["response"] for run in runs.values()]
    assert all("handbook" in text or "shade" in text for text in outputs)
    scores = [(row["key"], row["score"], row["value"]) for row in feedback]
    assert scores == [("quoted_spans_alignment", 1.0, "passed")] * 2
    assert {row["run_id"] for row in feedback} == set(runs)
    assert {row["session_id"] for row in feedback} == {langsmith.project}


@pytest.mark.parametrize("variable", ["MLFLOW_TRACKING_URI", "LANGSMITH_ENDPOINT"])
def test_a_server_that_is_gone_fails_no_test(
    pytester: pytest.Pytester, example: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("LANGSMITH_API_KEY" if variable.startswith("LANG") else variable, "made up")
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    result = observed(pytester, example)
    result.assert_outcomes(passed=2, warnings=1)
    result.stdout.fnmatch_lines(["*_observer: pytest_ragmetrics_result raised *"])
