"""Addresses of servers and proxies with the account in them, which no error, log or report may show."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import TypeVar
from urllib.parse import quote, unquote, urlsplit

from pytest_ragmetrics.core.codec import with_texts

T = TypeVar("T")
_PRIVATE = (".localhost", ".local", ".internal", ".lan")

# The account before the host. A colon that no port follows begins a password that should have been quoted.
_ACCOUNT = re.compile(r"^(\w[\w+.-]*://)?([^/?#]*@|[^/?#:@]*:(?!\d*(?:[/?#]|$)).*@)", re.DOTALL)
# A shorter one is no password; one that is not long may be an ordinary word, and is replaced where it stands alone.
_SHORTEST, _LONG = 4, 8


def split_account(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return an address without its account, and user and password, if it has one.

    >>> split_account("http://joe:p%40ss@host/v1"), split_account("http://host/@v1")
    (('http://host/v1', ('joe', 'p@ss')), ('http://host/@v1', None))
    """
    found = _ACCOUNT.match(url)
    if found is None:
        return url, None
    user, _, password = found[2][:-1].partition(":")
    return (found[1] or "") + url[found.end() :], (unquote(user), unquote(password))


def shown_address(url: str) -> str:
    """Return an address as messages show it: without account and query.

    >>> shown_address("http://joe:p@ss@host/v1?token=1"), shown_address("joe:pass@host")
    ('http://***@host/v1', '***@host')
    """
    return _ACCOUNT.sub(lambda found: f"{found[1] or ''}***@", url).partition("?")[0]


def is_private(url: str) -> bool:
    """Tell whether a server is one of this machine or of a network that is not public.

    >>> [is_private(f"http://{host}:8080/v1") for host in ("127.0.0.1", "ollama", "[::1]", "llm.example")]
    [True, True, True, False]
    """
    host = ""
    # A wrong address has an error of its own, when it is asked.
    with suppress(ValueError):
        host = urlsplit(url).hostname or ""
        return not ip_address(host).is_global
    return host != "" and ("." not in host or host.endswith(_PRIVATE))


def is_here(url: str) -> bool:
    """Tell whether a server is one of this machine.

    >>> [is_here(f"http://{host}:8080/v1") for host in ("localhost", "127.0.0.1", "[::1]", "ollama", "10.0.0.7")]
    [True, True, True, False, False]
    """
    host = ""
    with suppress(ValueError):
        host = urlsplit(url).hostname or ""
        return ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def secrets_of(urls: Iterable[str]) -> list[str]:
    """Return the texts in which the passwords of addresses may come back, the longest first."""
    texts: set[str] = set()
    for url in urls:
        _, account = split_account(url)
        if account is not None:
            user, password = account
            raw = _ACCOUNT.match(url)[2][:-1].partition(":")[2]  # type: ignore[index] # it has an account
            texts |= {password, raw, quote(password), quote(password, safe="")}
            # A header has them so.
            texts |= {b64encode(f"{user}:{each}".encode()).decode("ascii") for each in (password, raw)}
    return sorted((text for text in texts if len(text) >= _SHORTEST), key=len, reverse=True)


def without(value: T, secrets: Sequence[str]) -> T:
    """Return JSON builtins with ``***`` for each of the secrets in their values, of short ones as words of their own.

    >>> without({"sent": ["Basic am9lOnBhc3M=", 7]}, ["am9lOnBhc3M="])
    {'sent': ['Basic ***', 7]}
    """

    def cleaned(text: str) -> str:
        for secret in secrets:
            alone = "" if len(secret) >= _LONG else r"(?<!\w){}(?!\w)"
            text = re.sub(alone.format(re.escape(secret)), "***", text) if alone else text.replace(secret, "***")
        return text

    return with_texts(value, cleaned)  # type: ignore[no-any-return] # of the same type
