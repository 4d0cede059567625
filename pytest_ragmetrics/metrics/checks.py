"""Plain facts of a response, without a judge: texts that it contains or does not, valid JSON, and no secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any

from pytest_ragmetrics.core.credentials import find_credentials, shown_of
from pytest_ragmetrics.core.errors import UnscoredError, optional
from pytest_ragmetrics.core.lazy import lazily
from pytest_ragmetrics.core.messages import opened
from pytest_ragmetrics.core.result import MetricResult, Verdict
from pytest_ragmetrics.core.sample import Sample
from pytest_ragmetrics.metrics.asserting import asserting
from pytest_ragmetrics.metrics.base import Metric
from pytest_ragmetrics.metrics.parameters import check_texts, declared, parameter
from pytest_ragmetrics.metrics.verdicts import on_response, share_of
from pytest_ragmetrics.runs.wording.figures import counted, quoted, readable
from pytest_ragmetrics.text import unicode
from pytest_ragmetrics.text.quotes.alignment import Sources
from pytest_ragmetrics.text.words import stands_alone

_FIELDS = ("must_contain", "must_not_contain")
# Signs beside a number, which a text without them need not name: 30 is in "$30" and in "30 %".
_SIGNS = dict.fromkeys(map(ord, f"$%\u2030\u00b0{unicode.CURRENCIES}{unicode.PERCENTS}"), " ")
_OPENING = lazily(r"^[ \t]*(`{3,}|~{3,})[^`\n]*\n", re.MULTILINE)
# What a response is shown of that has another shape than its schema says.
_MOST_FAULTS, _LONGEST_FAULT = 100, 300


@declared
class Contains(Metric):
    """The share of the required texts that the response contains, and of the forbidden ones that it does not.

    Use it when you know key facts of a right answer: a number, a name, the wording of a warning; or what it may never
    say. ``must_contain`` and ``must_not_contain`` of a row are a text or a list; a list in ``must_contain`` requires
    one of its texts. ``all``, ``any`` (one is enough) and ``none`` are for every row. Equal texts count once.

    Case, quotation marks, dashes, white space, full width, markup and hyphens at line ends are ignored. A text begins
    and ends with a word or a number: 12 is not in 112, 1.12 or -12, but in "$12" and "12 %"; scripts without spaces
    have no such boundary. ``reason`` has the nearest text to a missing one. ``ValueError`` without texts; an empty list
    scores 1.0, vacuous.

    >>> metric = Contains(all=["two minutes", ["valve", "tap"]], none=["as an AI"])
    >>> result = metric.score(response="Open the valve and wait three minutes.")
    >>> result.value, result.verdicts[0].reason
    (0.6666666666666666, 'missing; the nearest is "three minutes."')
    """

    name = "contains"
    blind_spots = 'What is said of a text: "not two minutes" contains it; the same fact in other words.'
    noun = "text"
    complaint = "missing or not allowed"
    helper = "assert_contains"
    extra_inputs = _FIELDS

    all: Sequence[str | Sequence[str]] = parameter((), partial(check_texts, name="all", nested=True))
    any: Sequence[str] = parameter((), partial(check_texts, name="any"))
    none: Sequence[str] = parameter((), partial(check_texts, name="none"))

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` without a response or a text to look for, ``TypeError`` for what is no text."""
        super().require(sample)
        self._wanted(sample)

    def measure(self, sample: Sample) -> MetricResult:
        """Return the share of the conditions that are met."""
        wanted, banned = self._wanted(sample)
        if not wanted and not banned:
            reason = f"{' and '.join(name for name in _FIELDS if name in sample.metadata)} is empty"
            return MetricResult(1.0, metric=self.name, reason=reason, vacuous=True)
        search = _Search(sample.response or "")
        verdicts = [*map(search.wanted, wanted), *(search.banned(text) for (text,) in banned)]
        return share_of(self.name, verdicts, "texts as they should be")

    def _wanted(self, sample: Sample) -> tuple[Sequence[tuple[str, ...]], Sequence[tuple[str, ...]]]:
        """Return the conditions, those that must be met and those that must not."""
        given = {name: value for name in _FIELDS if (value := sample.metadata.get(name)) is not None}
        rows = [check_texts(given.get(name, ()), name=name, nested=name == "must_contain") for name in _FIELDS]
        own: Any = self
        either = [tuple(text for (text,) in own.any)] if own.any else []
        wanted, banned = dict.fromkeys((*own.all, *either, *rows[0])), dict.fromkeys((*own.none, *rows[1]))
        if not wanted and not banned and not given:
            msg = f"{self.name}: must_contain is missing; give the row must_contain or must_not_contain, [] where "
            raise ValueError(f"{msg}nothing is to be checked, or the metric all=, any= or none=")
        return [*wanted], [*banned]


class _Search:
    """Looks for texts in a response, as words of it."""

    def __init__(self, response: str) -> None:
        self._response = response
        self._sources: dict[str, Sources] = {}

    def wanted(self, texts: tuple[str, ...]) -> Verdict:
        """Return a verdict that is good if one of the texts is there."""
        for text in texts:
            if place := self._place(text):
                return self._at(place, text, ok=True, reason="found")
        nearest = next((near for text in texts if (near := self._nearest(text))), "")
        return Verdict(
            text=" or ".join(texts), ok=False, reason=f"missing{nearest and f'; the nearest is {quoted(nearest)}'}"
        )

    def banned(self, text: str) -> Verdict:
        """Return a verdict that is good if the text is not there."""
        if place := self._place(text):
            return self._at(place, text, ok=False, reason="it must not be there")
        return Verdict(text=text, ok=True, reason="not there")

    def _at(self, place: tuple[int, int], text: str, *, ok: bool, reason: str) -> Verdict:
        start, end = place
        said = self._response[start:end]
        note = "" if said == text else f", asked for as {quoted(text)}"
        return Verdict(text=said, ok=ok, start=start, end=end, reason=f"{reason}{note}")

    def _place(self, text: str) -> tuple[int, int] | None:
        subject = self._subject(text)
        if found := self._of(subject).find(text):
            return found.evidence[0].start, found.evidence[0].end
        # That search gives up after some hundred places inside other words, in which short texts are. Case may tell
        # units apart: mW, MW.
        flags = 0 if any(map(str.isdigit, text)) else re.IGNORECASE
        places = (it.span() for it in re.finditer(re.escape(text), subject, flags))
        return next((place for place in places if stands_alone(subject, *place)), None)

    def _nearest(self, text: str) -> str:
        near = self._of(self._subject(text)).align([text])[0].nearest
        return self._response[near.start : near.end] if near else ""

    def _subject(self, text: str) -> str:
        """Return the response, without the signs beside numbers for a text that names none."""
        return self._response.translate(_SIGNS) if text.translate(_SIGNS) == text else self._response

    def _of(self, subject: str) -> Sources:
        if subject not in self._sources:
            self._sources[subject] = Sources([subject], matching="verbatim")
        return self._sources[subject]


assert_contains = asserting(Contains, min=1.0, example='"Open the valve and wait.", all=["valve"], none=["as an AI"]')


def _schema(given: object, *, name: str) -> Mapping[str, Any] | bool | None:
    """Return a JSON schema, that of a model of pydantic too; raise ``TypeError`` for anything else."""
    made = getattr(given, "model_json_schema", None)
    found = made() if callable(made) else opened(given)
    if found is not None and not isinstance(found, (Mapping, bool)):
        raise TypeError(f"{name} must be a JSON schema or a model of pydantic, not {type(given).__name__}")
    return found


@declared
class ValidJSON(Metric):
    """1.0 if the response is valid JSON that fits its schema, else 0.0.

    Use it when a program reads the answer. The JSON may be the whole response or in a fence (three backticks) with text
    around it, without NaN and Infinity. ``schema``, a JSON schema or a pydantic model, is for every row; a row's
    ``json_schema`` replaces it. Schemas need the extra ``[json]``; references are not fetched. Each fault is a verdict
    with its path: ``$.items[0].price``. ``ValueError`` for an invalid schema.

    >>> schema = {"properties": {"price": {"type": "number"}}, "required": ["unit"]}
    >>> result = ValidJSON(schema=schema).score(response='{"price": "12"}')
    >>> [(verdict.text, verdict.reason) for verdict in result.verdicts]
    [('$', "'unit' is a required property"), ('$.price', "'12' is not of type 'number'")]
    """

    name = "valid_json"
    blind_spots = "Whether the values are right."
    noun = "place"
    complaint = "not as it should be"
    helper = "assert_json"
    extra_inputs = ("json_schema",)

    schema: Mapping[str, Any] | bool | type | None = parameter(None, partial(_schema, name="schema"))

    def require(self, sample: Sample) -> None:
        """Raise ``ValueError`` without a response, ``TypeError`` for a ``json_schema`` that is none."""
        super().require(sample)
        _schema(sample.metadata.get("json_schema"), name="json_schema")

    def measure(self, sample: Sample) -> MetricResult:
        """Return whether the response is valid."""
        response, own = sample.response or "", sample.metadata.get("json_schema")
        schema = self.schema if own is None else _schema(own, name="json_schema")
        try:
            value = _value_in(response)
        except ValueError as error:
            verdict = on_response(response, ok=False, reason=f"no JSON: {error}")
            return MetricResult(0.0, metric=self.name, reason=verdict.reason, verdicts=[verdict])
        verdicts = [] if schema is None else [*self._faults(value, schema)]
        if not verdicts:
            verdicts = [
                on_response(response, ok=True, reason=f"valid JSON{'' if schema is None else ' by its schema'}")
            ]
            return MetricResult(1.0, metric=self.name, reason=verdicts[0].reason, verdicts=verdicts)
        reason = f"valid JSON, {counted(len(verdicts), 'place')} not as the schema says"
        return MetricResult(0.0, metric=self.name, reason=reason, verdicts=verdicts)

    def _faults(self, value: object, schema: object) -> Iterator[Verdict]:
        validators = optional("jsonschema.validators", f"{self.name} with a schema", "json")
        kind = validators.validator_for(schema, default=validators.Draft202012Validator)
        try:
            kind.check_schema(schema)
            # Without a registry it would fetch what the schema refers to.
            found = kind(schema, registry=import_module("jsonschema_specifications").REGISTRY).iter_errors(value)
            faults = sorted((it.json_path, it.message) for it in islice(found, _MOST_FAULTS))
        except validators.exceptions.SchemaError as error:
            raise ValueError(f"{self.name}: the schema is invalid: {readable(error.message, _LONGEST_FAULT)}") from None
        except import_module("referencing.exceptions").Unresolvable as error:
            raise ValueError(f"{self.name}: the schema refers to {error.ref!r}, which is not in it") from None
        except RecursionError:
            raise UnscoredError(f"{self.name}: the response or its schema is nested too deep to be compared") from None
        return (Verdict(text=path, ok=False, reason=readable(text, _LONGEST_FAULT)) for path, text in faults)


def _value_in(response: str) -> object:
    """Return the value of a response that is JSON, or has it in a fence; raise ``ValueError`` saying what is wrong."""
    text, opening = response, _OPENING.search(response)
    if opening is not None:
        closing = re.compile(rf"^[ \t]*{opening[1]}[`~]*[ \t\r]*$", re.MULTILINE).search(response, opening.end())
        end = len(response) if closing is None else closing.start()
        if closing is not None and _OPENING.search(response, closing.end()):
            raise ValueError("there are several fences; give one")
        text = response[opening.end() : end]
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no value of JSON")


assert_json = asserting(
    ValidJSON, takes=("response",), min=1.0, example="""'{"price": 12}', schema={"required": ["price"]}"""
)


class NoSecrets(Metric):
    """1.0 if the response has no text that looks like a key, else 0.0.

    Use it when passages, prompts or tools may contain keys. It finds API keys of OpenAI, Anthropic, Google, AWS and
    others, tokens of GitHub, GitLab, Slack and package indexes, bearer and JSON web tokens, private keys, and the
    values of OPENAI_API_KEY and ANTHROPIC_API_KEY. No output has more of a secret than its first characters.

    >>> (verdict,) = NoSecrets().score(response="Use sk-proj-0123456789abcdefghij here.").verdicts
    >>> verdict.text, verdict.reason
    ('sk-pro...', 'an API key of 28 characters at [4:32], in line 1')
    """

    name = "no_secrets"
    blind_spots = "Passwords and keys without a form of their own; personal data, for which an aspect can ask a judge."
    noun = "secret"
    complaint = "in the response"
    helper = "assert_no_secrets"

    def measure(self, sample: Sample) -> MetricResult:
        """Return whether there is none."""
        response = sample.response or ""
        verdicts = []
        for kind, start, end in find_credentials(response):
            place = f"at [{start}:{end}], in line {response.count(chr(10), 0, start) + 1}"
            # Without its offsets: it is no piece of the response, and whoever cut that out would show the secret.
            masked = shown_of(response[start:end])
            verdicts.append(Verdict(text=masked, ok=False, reason=f"{kind} of {end - start} characters {place}"))
        reason = f"{counted(len(verdicts), 'text')} that look like keys" if verdicts else "no text looks like a key"
        return MetricResult(not verdicts, metric=self.name, reason=reason, verdicts=verdicts)


assert_no_secrets = asserting(NoSecrets, min=1.0, example='"Ask the administrator for a key."')
