"""One question with a known answer for a judge, and unrelated texts for an embedder, as `ragmetrics doctor` asks."""

from __future__ import annotations

import shlex
from contextlib import aclosing, suppress

from pytest_ragmetrics.judges.embedders.embedder import Embedder, cosines
from pytest_ragmetrics.judges.judge import Judge, PromptedJudge
from pytest_ragmetrics.judges.providers.openai import OpenAIJudge
from pytest_ragmetrics.judges.schema import extract_object, validate
from pytest_ragmetrics.judges.tasks import InvalidAnswer, VerifyClaims
from pytest_ragmetrics.judges.transports.values import shown

# In the example of the prompt it is the first claim that is true: a judge that repeats it is wrong twice.
TASK = VerifyClaims(
    claims=("Every passenger travels free.", "A ticket costs four euros."),
    contexts=("The ferry across the lake takes forty cars.\nA ticket for it costs four euros.",),
)
_TRUTH = [False, True]
# One text each on a ferry, on law, cooking, software, medicine and sport; no two have to do with each other.
_UNRELATED = (
    "The ferry across the lake takes forty cars.",
    "A tenant may end the contract with three months' notice.",
    "Let the dough rest for an hour before you bake it.",
    "The function returns an empty list if no file is found.",
    "Insulin lowers the sugar in the blood.",
    "Their goalkeeper saved two penalties in the final.",
)
_FORMS = {
    "json_schema": "takes the schema of an answer",
    "json_object": "has JSON mode and no schemas, so some replies will have to be asked for again",
    "text": "has neither schemas nor JSON mode, so some replies will have to be asked for again",
}


async def examined(judge: Judge, *, spec: str) -> tuple[str, str]:
    """Return what is found out about a judge, and the remedy."""
    if not isinstance(judge, PromptedJudge) or not judge.is_paid:
        return "answers by rule, and measures no application", ""
    async with aclosing(judge):
        reply = await judge.complete(judge.request(TASK))
    try:
        found, value = extract_object(reply.text)
        answer = validate(value, TASK.schema())
    except InvalidAnswer as error:
        to_do = "name a model that writes JSON, or switch on structured output in its server"
        return f"answers, but not in the form asked for: {error}; {shown(reply.text)}", to_do
    form = _FORMS[judge.terms.form] if isinstance(judge, OpenAIJudge) else "keeps to the form asked for"
    if found != reply.text.strip():
        form = "puts other text around its JSON, which is passed over"
    with suppress(InvalidAnswer):
        if [verdict.ok for verdict in TASK.read(answer)] == _TRUTH:
            return f"answers and {form}; it tells a true statement from a false one", ""
    measure = f"`ragmetrics probe --judge {shlex.quote(spec)}` measures it"
    text = f"answers and {form}; it does not tell a true statement from a false one: {shown(reply.text)}"
    return text, f"it is too small to judge: name a larger model; {measure}"


async def measured(embedder: Embedder) -> tuple[str, str]:
    """Return where unrelated and identical texts lie, and no remedy."""
    async with aclosing(embedder):
        vectors = await embedder.aembed([*_UNRELATED, _UNRELATED[0]])
    # Plus 0: what rounds to -0.00 is shown as 0.00.
    *rows, again = cosines(vectors, vectors).round(2) + 0
    apart = [row[column] for number, row in enumerate(rows) for column in range(number)]
    lie = f"unrelated texts lie at {min(apart):.2f} to {max(apart):.2f}, identical ones at {again[0]:.2f}"
    bound = "a min= of answer_relevancy or semantic_similarity belongs to this embedder"
    return f"answers with vectors of {vectors.shape[1]} numbers; {lie}: {bound}", ""
