"""Put the token of a sign-in on each request to its server. Imports httpx2: import it late."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

import httpx2

from kage.mcp.client.oauth.challenge import Challenge
from kage.mcp.client.oauth.problems import NeedsAuth
from kage.mcp.client.oauth.session import Session

_CALLS = frozenset({"tools/call", "resources/read", "prompts/get"})  # a person is waited for
_OPENING = frozenset({"server/discover", "initialize", "tools/list"})
_TRIES = 3  # an expired token, then two widenings of its scopes


class Bearer(httpx2.Auth):
    """The ``auth`` of one connection's client.

    It opens nothing: where a person has to sign in first, a call waits for them and any other
    request raises ``NeedsAuth``.
    """

    def __init__(self, session: Session, *, eager: bool = False) -> None:
        self._session = session
        self._eager = eager  # not even a first request goes out without a token
        self._listed = False  # the tools were had once: a connection may be up
        own = httpx2.URL(session.key.url)
        self._origin = (own.scheme, own.host, own.port)

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send ``request`` with the token, and again with a better one where there is one."""
        url = request.url
        if (url.scheme, url.host, url.port) != self._origin:
            yield request  # the token is for one origin
            return
        method = _method(request)
        token = await self._session.token()
        if self._eager and not token and not self._session.machine:
            raise NeedsAuth(self._session.key.server, 'its auth is "oauth", and nobody signed in')
        for _ in range(_TRIES):
            if token:
                request.headers["Authorization"] = f"Bearer {token}"
            response = yield request
            challenge = Challenge.of(
                response.status_code,
                response.headers.get("www-authenticate"),
                request.headers.get("mcp-protocol-version", ""),
            )
            if challenge is None:
                self._listed |= method == "tools/list" and response.is_success
                return
            first = method in _OPENING and not self._listed
            call = method in _CALLS
            better = await self._session.recover(challenge, token, call=call, first=first)
            if not better:
                return
            token = better


def _method(request: httpx2.Request) -> str:
    """Give the method of the message a request carries, "" when it carries none."""
    named = request.headers.get("mcp-method")
    if named or request.method != "POST":
        return named or ""
    try:
        message = json.loads(request.content)
    except (ValueError, RecursionError, httpx2.RequestNotRead):
        return ""
    method = message.get("method") if isinstance(message, dict) else None
    return method if isinstance(method, str) else ""
