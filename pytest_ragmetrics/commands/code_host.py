"""The comments of one pull request: what GitHub's and GitLab's REST APIs have in common, by the standard library."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pytest_ragmetrics.errors import RagMetricsError
from pytest_ragmetrics.text.characters import printable, shortened

_TIMEOUT = 30.0
_ATTEMPTS = 4
# The longest wait before a further attempt, whatever Retry-After says.
_LONGEST_WAIT = 30.0
# Pages of 100 comments.
_PAGES = 200
_SAID = 200


class CommentError(RagMetricsError):
    """A comment cannot be posted: the environment or the API says why."""


class NotAllowedError(CommentError):
    """The token may not write, as that of a pull request from a fork."""


class _NoRedirects(HTTPRedirectHandler):
    """Urllib sends the headers, and with them the token, to wherever a reply redirects."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Reply(NamedTuple):
    data: Any
    more: bool


class _Comment(NamedTuple):
    id: int
    body: str
    login: str | None
    bot: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class PullRequest:
    """A pull request (merge request) and how its comments are asked for.

    ``comments`` is the path that lists and creates them, ``comment`` the path before the id of one; ``update`` the
    method that changes one; ``author`` and ``login`` the fields that hold who wrote one. ``token_variable`` names
    where the token is from.
    """

    name: str
    api: str
    comments: str
    comment: str
    update: str
    author: str
    login: str
    token_variable: str
    token: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    def keep_one(self, marker: str, body: str) -> str:
        """Make a text the only comment of ours with the marker; return what was done.

        Raises ``NotAllowedError`` if the token may not write, ``CommentError`` for all else.
        """
        # The token of a workflow may not ask who it is: then ours are those of bots.
        user = self._send("GET", "/user", absent=(HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)).data
        login = user.get(self.login) if isinstance(user, dict) else None
        own = self._own(marker, login)
        made = None
        if not own:
            made = self._read(self._send("POST", self.comments, body).data)
            # Another job may have found none at the same time, or a POST that was sent again succeeded twice: the
            # oldest comment stays, with the text of the job that looked last.
            own = {**self._own(marker, made.login), made.id: made}
        kept, *duplicates = sorted(own)
        same = made is not None and kept == made.id
        changed = not same and own[kept].body.replace("\r\n", "\n").strip() != body.strip()
        if changed:
            self._send(self.update, f"{self.comment}/{kept}", body)
        for each in duplicates:
            self._send("DELETE", f"{self.comment}/{each}", absent=(HTTPStatus.NOT_FOUND,))
        return f"{self.name}: comment {'created' if same else 'updated' if changed else 'unchanged'}"

    def _own(self, marker: str, login: str | None) -> dict[int, _Comment]:
        """Return the comments by id that start with the marker, which anybody can write, and are ours."""
        found: dict[int, _Comment] = {}
        for page in range(1, _PAGES + 1):
            data, more = self._send("GET", f"{self.comments}?per_page=100&page={page}")
            for each in map(self._read, data if isinstance(data, list) else [data]):
                if each.body.startswith(marker) and (each.bot if login is None else each.login == login):
                    found[each.id] = each
            if not more:
                break
        return found

    def _read(self, data: Any) -> _Comment:
        try:
            author = data[self.author] or {}
            return _Comment(int(data["id"]), str(data["body"]), author.get(self.login), author.get("type") == "Bot")
        except (AttributeError, KeyError, TypeError, ValueError):
            raise CommentError(f"{self.name}: the reply is no comment; is {self.api} the API?") from None

    def _send(self, method: str, path: str, body: str | None = None, *, absent: Collection[int] = ()) -> _Reply:
        """Return the reply to a request, without data for a status in ``absent``; what may pass is tried again."""
        data = None if body is None else json.dumps({"body": body}).encode()
        headers = {"Content-Type": "application/json", **self.headers}
        asked = f"{method} {path.partition('?')[0]}"
        for attempt in range(1, _ATTEMPTS + 1):
            request = Request(self.api + path, data=data, method=method, headers=headers)  # noqa: S310 - http or https
            wait = 2.0 ** (attempt - 1)
            try:
                with build_opener(_NoRedirects).open(request, timeout=_TIMEOUT) as reply:
                    more = 'rel="next"' in (reply.headers.get("Link") or "")
                    return _Reply(json.loads(reply.read() or b"null"), more)
            except HTTPError as error:
                with error:
                    problem = self._refusal(asked, error)
                    if not _may_pass(error):
                        if error.code in absent:
                            return _Reply(None, more=False)
                        raise problem from None
                    after = error.headers.get("Retry-After", "")
                    wait = min(float(after), _LONGEST_WAIT) if after.isascii() and after.isdigit() else wait
            except (OSError, HTTPException) as error:
                problem = CommentError(self._clean(f"{self.name}: {asked}: {error}"))
            except ValueError:
                raise CommentError(f"{self.name}: {asked}: the reply is not JSON; is {self.api} the API?") from None
            if attempt < _ATTEMPTS:
                time.sleep(wait)
        raise problem from None

    def _refusal(self, asked: str, error: HTTPError) -> CommentError:
        try:
            said = json.loads(error.read()).get("message")
        except (ValueError, AttributeError, OSError, HTTPException):
            said = None
        what = self._clean(f"{self.name}: {asked}: status {error.code}, {said or error.reason}")
        token = f"the token of {self.token_variable}"
        if error.code == HTTPStatus.FORBIDDEN and not _may_pass(error):
            why = "as in pull requests from forks; elsewhere give the job permission to write pull requests"
            return NotAllowedError(f"{what} ({token} may not comment, {why})")
        advice = {401: f" ({token} is not valid)", 404: f" (it does not exist, or {token} may not read it)"}
        return CommentError(what + advice.get(error.code, ""))

    def _clean(self, text: str) -> str:
        return shortened(printable(text).replace(self.token, "***"), len(self.name) + _SAID)


def _may_pass(error: HTTPError) -> bool:
    """Tell whether a request may succeed later; GitHub refuses what is beyond its limits with status 403."""
    limited = error.headers.get("Retry-After") or error.headers.get("X-RateLimit-Remaining") == "0"
    limits = error.code == HTTPStatus.TOO_MANY_REQUESTS or (error.code == HTTPStatus.FORBIDDEN and limited)
    return bool(limits) or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
