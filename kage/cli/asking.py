"""Put what a server asks to the person at the terminal, line by line."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import sys
import threading
from collections.abc import Callable
from typing import Any, assert_never

from kage.core.forms import Field, Kind
from kage.core.requests import (
    Action,
    FormRequest,
    Person,
    Purpose,
    RequestReply,
    ServerRequest,
    UrlRequest,
)
from kage.core.sanitise import clip, visible

_TRIES = 5  # of one field
_SHOWN = 40  # choices that are listed


class Hushed(Exception):
    """The person pressed ctrl+d, or the terminal is gone."""


class Terminal:
    """Implements ``core.requests.Person`` over stdin and stderr.

    Args:
        read: Reads one line after a prompt; the second reads one that is not shown.
    """

    def __init__(
        self, read: Callable[[str], str] = input, hidden: Callable[[str], str] = getpass.getpass
    ) -> None:
        self._read = read
        self._hidden = hidden
        self._one = asyncio.Lock()

    async def answer(self, request: ServerRequest) -> RequestReply:
        """Ask; one question at a time."""
        async with self._one:
            try:
                match request:
                    case FormRequest():
                        return await self._form(request)
                    case UrlRequest():
                        return await self._page(request)
                    case _:
                        assert_never(request)
            except Hushed:
                return RequestReply(action=Action.CANCEL)

    def completed(self, server: str, request_id: str) -> None:
        """Tell that what the person did in the browser reached the server."""
        _say(f"{server} says that what you did in the browser arrived")

    async def _form(self, request: FormRequest) -> RequestReply:
        _say(f"{request.server} {_TITLES[request.purpose]}")
        self._around(request)
        for note in request.form.notes:
            _say(f"  ({note})")
        if not await self._agreed("Answer it? [y]es, [n]o, enter to leave it: "):
            return RequestReply(action=Action.DECLINE)
        values: dict[str, Any] = {}
        for field in request.form.fields:
            value = await self._field(field)
            if value is not None:
                values[field.name] = value
        if not await self._agreed("Send it? [y]es, [n]o, enter to leave it: "):
            return RequestReply(action=Action.DECLINE)
        return RequestReply(action=Action.ACCEPT, values=values)

    async def _page(self, request: UrlRequest) -> RequestReply:
        _say(f"{request.server} wants you to open a page")
        self._around(request)
        _say(f"  host:    {request.host}")
        _say(f"  address: {request.url}")
        agreed = await self._agreed("Open it yourself. Agree? [y]es, [n]o, enter to leave it: ")
        return RequestReply(action=Action.ACCEPT if agreed else Action.DECLINE)

    def _around(self, request: ServerRequest) -> None:
        if request.message:
            _say("  " + request.message.replace("\n", "\n  "))
        for fact in request.facts:
            _say(f"  ({fact})")
        for warning in request.warnings:
            _say(f"  ! {warning}")

    async def _agreed(self, prompt: str) -> bool:
        """Ask for yes or no; anything else leaves the question.

        Raises:
            Hushed: it was left.
        """
        word = (await self._line(prompt)).strip().casefold()
        if word in ("y", "yes"):
            return True
        if word in ("n", "no"):
            return False
        raise Hushed

    async def _field(self, field: Field) -> Any:  # any JSON value
        if field.description:
            _say(f"  {clip(field.description, 400)}")
        for choice in field.choices[:_SHOWN]:
            _say(f"    {choice.label}")
        before = field.write(field.default)
        if field.kind is Kind.TEXT and field.multiline and before:
            _say("    " + before.replace("\n", "\n    "))
        facts = [word for word, so in (("needed", field.required), ("hidden", field.secret)) if so]
        facts += [f"enter keeps {clip(before, 60)}"] if before else []
        beside = f" ({', '.join(facts)})" if facts else ""
        prompt = f"{field.label}{beside}: "
        for _ in range(_TRIES):
            typed = await self._line(prompt, hidden=field.secret)
            try:
                value = field.read(typed) if typed else field.default
            except ValueError as error:
                _say(f"  ✗ {error}")
                continue
            problem = field.complaint(value)
            if not problem:
                return value
            _say(f"  ✗ {problem}")
        raise Hushed

    async def _line(self, prompt: str, *, hidden: bool = False) -> str:
        """Read on a thread of its own: no process waits for a line that never comes."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[str | None] = loop.create_future()
        read = self._hidden if hidden else self._read

        def settle(line: str | None) -> None:
            if not waiting.done():
                waiting.set_result(line)

        def work() -> None:
            line: str | None = None
            try:
                line = read(visible(prompt, single_line=True) + " ")
            except (EOFError, OSError, KeyboardInterrupt, ValueError):
                line = None
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, line)

        threading.Thread(target=work, name="terminal", daemon=True).start()
        line = await waiting
        if line is None:
            raise Hushed
        return line


_TITLES = {
    Purpose.ELICITATION: "asks you:",
    Purpose.PROMPT: "wants to ask the model:",
    Purpose.ANSWER: "is to get this answer of the model:",
}


def at_terminal() -> Person | None:
    """Give the person at the terminal; None when there is none to ask."""
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return Terminal(_prompted)


def _prompted(prompt: str) -> str:
    """Read a line with the prompt on stderr; stdout is for the result."""
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


def _say(text: str) -> None:
    print(visible(text), file=sys.stderr, flush=True)
