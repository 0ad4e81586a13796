"""The person of a conformance run: fills in forms, signs in, and lends servers a model."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from kage.core.commands import LoginServer
from kage.core.content import Text
from kage.core.errors import KageError
from kage.core.events import Event, LoginRequested, ServerChanged
from kage.core.forms import Field, Kind
from kage.core.messages import AssistantMessage, Stop
from kage.core.requests import Action, FormRequest, RequestReply, SampleRequest, ServerRequest
from kage.core.servers import ServerState
from kage.core.usage import Usage
from kage.mcp.client.manager import Manager

MAX_SIGN_INS = 3  # a person's patience with one server
_PAGE_WAIT = 20.0  # seconds for one page

_SOMETHING: dict[Kind, Any] = {Kind.FLAG: True, Kind.TEXT: "x", Kind.NUMBER: 1.0, Kind.INTEGER: 1}


class Obliging:
    """Implements ``core.requests.Person``: agrees to everything, changes nothing filled in."""

    async def answer(self, request: ServerRequest) -> RequestReply:
        """Accept; a form goes back as it is shown, with something in what is still needed."""
        if not isinstance(request, FormRequest):
            return RequestReply(action=Action.ACCEPT)
        values = dict(request.form.initial())
        for field in request.form.fields:
            if field.required and values.get(field.name) is None:
                values[field.name] = _something(field)
        return RequestReply(action=Action.ACCEPT, values=values)

    def completed(self, server: str, request_id: str) -> None:
        """Take note of nothing."""


class Echo:
    """Implements ``core.requests.Sampler`` without any model."""

    model = "conformance:echo"

    async def sample(self, request: SampleRequest) -> AssistantMessage:
        """Answer with one sentence."""
        return AssistantMessage(
            parts=(Text(text="This is an answer."),),
            model=self.model,
            stop=Stop.END,
            usage=Usage(input=1, output=1),
        )


class Visitor:
    """Signs in whenever a server asks for it, the way a person with a browser does."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.gave_up = asyncio.Event()  # signing in failed, or was asked for too often
        self._say = say
        self._asked = asyncio.Event()
        self._pages: set[asyncio.Task[None]] = set()

    def heard(self, event: Event) -> None:
        """Take note of what kage tells."""
        match event:
            case ServerChanged(status=status) if status.state is ServerState.NEEDS_AUTH:
                self._asked.set()
            case LoginRequested():
                page = asyncio.create_task(self._visit(event.url))
                self._pages.add(page)
                page.add_done_callback(self._pages.discard)

    async def stay(self, manager: Manager, server: str) -> None:
        """Sign in as often as it takes; ends when that does not help."""
        for _ in range(MAX_SIGN_INS):
            await self._asked.wait()
            self._asked.clear()
            try:
                await manager.sign_in(LoginServer(name=server))
            except KageError as error:
                self._say(f"signing in failed: {error.what}: {error.why}")
                break
        self.gave_up.set()

    async def _visit(self, url: str) -> None:
        status = await asyncio.to_thread(visit, url)
        self._say(f"the page of the sign-in ended with {status}")


def visit(url: str) -> str:
    """Open a page as a browser does, redirects and all; give how it ended."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_PAGE_WAIT) as page:
            page.read()
            return str(page.status)
    except urllib.error.HTTPError as error:
        with error:
            return str(error.code)
    except OSError as error:
        return f"{type(error).__name__}: {error}"


def _something(field: Field) -> object:
    if field.choices:
        first = field.choices[0].value
        return [first] if field.kind is Kind.MANY else first
    return _SOMETHING.get(field.kind, [])
