"""Every recipe for a provider is played against a server that speaks its dialect, at the path that the recipe names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module

import pytest

from pytest_ragmetrics.cli.docs import topic_text
from pytest_ragmetrics.judges.providers.vendor import ANTHROPIC, OPENAI
from tests.fake_dialects import DIALECTS, DialectServer
from tests.pages import Block, Play

#: The tests that each page begins with and its recipes, by their names; of other sections there is no dialect.
RECIPES = {
    section.partition("\n")[0]: (start, section)
    for topic in ("how-to/providers", "how-to/local-models")
    for start, *sections in [re.split(r"^## ", topic_text(topic), flags=re.MULTILINE)]
    for section in sections
    if topic == "how-to/providers" or section.partition("\n")[0].lower() in DIALECTS
}
#: The dialects of each recipe, in the order in which it speaks them.
SPOKEN = {name: [name.lower()] for name in RECIPES}
SPOKEN["Bedrock"].append("claude on bedrock")

#: What stands for libraries of credentials: tokens of which a server takes three requests each.
_TOKENS = """
_count = 0
def token():
    global _count
    _count += 1
    return f"token-{(_count - 1) // 4}-0123456789"
"""
LIBRARIES = {
    "tokens": _TOKENS,
    "azure/identity": """
        import tokens
        class DefaultAzureCredential: ...
        def get_bearer_token_provider(credential, scope):
            assert scope == "https://ai.azure.com/.default"
            return tokens.token
        """,
    "google/auth/__init__": """
        import tokens
        class Credentials:
            valid = False
            def refresh(self, request):
                self.token = tokens.token()
        def default(scopes):
            assert scopes == ["https://www.googleapis.com/auth/cloud-platform"]
            return Credentials(), "my-project"
        """,
    "google/auth/transport/__init__": "",
    "google/auth/transport/requests": "class Request: ...",
}


@dataclass(kw_only=True)
class Recipe(Play):
    """A recipe whose addresses lead to a server here, which begins to speak the dialect of an address with it."""

    server: DialectServer
    spoken: list[str]

    def here(self, address: str) -> str:
        """Return the address of the server, at the path of another one; speak as that one does."""
        for name, dialect in DIALECTS.items():
            if re.fullmatch(f"{dialect.host}{dialect.base}/?", address):
                self.server.speak(name)
                self.spoken.append(name)
                return f"{self.server.root_url}{dialect.base}"
        raise AssertionError(f"no dialect has the address {address}")

    def _set(self, name: str, value: str) -> None:
        if name.endswith("_API_KEY"):
            self.server.key = value
        self.patch.setenv(name, self.here(value) if name.endswith("_BASE_URL") else value)

    def _file(self, block: Block) -> None:
        code = re.sub(r'(?<=^ADDRESS = ")[^"]+', lambda found: self.here(found[0]), block.code, flags=re.MULTILINE)
        Play._file(self, replace(block, code=code))

    def _pytest(self, args: list[str]) -> pytest.RunResult:
        return Play._pytest(self, [*args, "--rag-cache=off"])


@pytest.fixture(scope="module", autouse=True)
def _lasting(lasting_modules: None) -> None:
    """Claude is asked as well."""
    import_module("anthropic")


@pytest.fixture(scope="module")
def server() -> Iterator[DialectServer]:
    """Return the server of all recipes, in the place of both vendors' own."""
    urls = {vendor: vendor.url for vendor in (OPENAI, ANTHROPIC)}
    with DialectServer() as running:
        for vendor, url in urls.items():
            object.__setattr__(vendor, "url", re.sub(r"https://[^/]+", running.root_url, url))
        yield running
    for vendor, url in urls.items():
        object.__setattr__(vendor, "url", url)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_works(
    name: str,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    server: DialectServer,
) -> None:
    pytester.makepyfile(**LIBRARIES)
    start, section = RECIPES[name]
    direct = [spoken for spoken in SPOKEN[name] if spoken in ("openai", "anthropic")]
    for spoken in direct:
        server.speak(spoken)
    recipe = Recipe(pytester=pytester, patch=monkeypatch, capsys=capsys, server=server, spoken=direct)
    recipe.page(f"{start}## {section}")
    assert list(dict.fromkeys(recipe.spoken)) == SPOKEN[name]
    assert any(request.status == 200 for request in server.requests)
    said = "".join(capsys.readouterr())
    keys = {value.removeprefix("Bearer ") for r in server.requests for value in r.headers.values() if "-01" in value}
    assert not [key for key in {*keys, server.key} if key and len(key) > 8 and key in said]


def test_every_dialect_has_a_recipe() -> None:
    assert sorted(name for names in SPOKEN.values() for name in names) == sorted(DIALECTS)
    tables = "".join(dict.fromkeys(start for start, _ in RECIPES.values()))
    assert re.findall(r"^\| \[([\w. ]+)\]", tables, re.MULTILINE) == list(SPOKEN)
