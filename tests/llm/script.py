"""What a scripted model can do in a turn, and what it remembers of a request."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_ids = itertools.count(1)
_MARKS = re.compile(r'<untrusted from="[^"]*" mark="\w+">\n?|\n?</untrusted mark="\w+">')


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Text, sent in chunks."""

    text: str
    chunk: int
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Think:
    """Reasoning; ``redacted`` makes it an opaque block."""

    text: str
    signature: str
    redacted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call whose arguments travel as ``arguments``, in chunks."""

    id: str
    name: str
    arguments: str
    chunk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """An HTTP error instead of a stream."""

    status: int
    message: str
    kind: str
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection is cut here."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence for a while."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Silence until the event is set (or the server stops)."""

    event: threading.Event


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes put into the stream as they are."""

    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamError:
    """An error object inside a stream that had begun well."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Another stop reason than the one that fits, in the words of the wire."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What the reply reports as its usage."""

    input: int
    output: int
    cache_read: int
    cache_write: int


Piece = Say | Think | Call | Fail | Drop | Pause | Hold | Raw | StreamError | Stop | Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as it arrived."""

    wire: str  # "anthropic", "openai" or "" (GET)
    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Mapping[str, Any]
    size: int = 0  # bytes of the body
    number: int = 0  # counts model requests from 1
    peer: int = 0  # the client's port: the same for one connection

    @property
    def system(self) -> str:
        """The system prompt."""
        if self.wire == "anthropic":
            return _text(self.body.get("system", ""))
        return "".join(
            _text(m["content"]) for m in self.messages if m["role"] in ("system", "developer")
        )

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """The messages in the form of the wire."""
        found: Sequence[Mapping[str, Any]] = self.body.get("messages", [])
        return found

    @property
    def tools(self) -> Mapping[str, Mapping[str, Any]]:
        """Tool definitions by name, in the form of the wire."""
        found = self.body.get("tools", [])
        return {t.get("function", t)["name"]: t for t in found}

    @property
    def results(self) -> Sequence[str]:
        """The text of every tool result in the conversation, without the marks around it."""
        found: list[str] = []
        for message in self.messages:
            if message["role"] == "tool":
                found.append(_text(message["content"]))
            elif isinstance(message["content"], list):
                found += [
                    _text(block.get("content", ""))
                    for block in message["content"]
                    if block["type"] == "tool_result"
                ]
        return [_MARKS.sub("", text) for text in found]

    @property
    def last_result(self) -> str:
        """The text of the newest tool result, "" when there is none."""
        return self.results[-1] if self.results else ""

    @property
    def last_text(self) -> str:
        """The text of the newest message."""
        return _text(self.messages[-1]["content"]) if self.messages else ""


Turn = Piece | Sequence["Turn"] | Callable[[Request], "Turn"]


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


def say(text: str, *, chunk: int = 8, delay: float = 0.0) -> Piece:
    """Say ``text`` in chunks of ``chunk`` characters, ``delay`` seconds apart."""
    return Say(text=text, chunk=chunk, delay=delay)


def thinking(text: str = "", *, signature: str = "sig-of-thought", redacted: str = "") -> Piece:
    """Think aloud, or send an encrypted thought."""
    return Think(text=text, signature=signature, redacted=redacted)


def call(name: str, /, **arguments: Any) -> Piece:
    """Call a tool with keyword arguments."""
    return call_with(name, arguments)


def call_with(
    name: str, arguments: Mapping[str, Any], *, call_id: str = "", chunk: int = 7
) -> Piece:
    """Call a tool with any arguments, and an id of your own."""
    return Call(
        id=call_id or f"call_{next(_ids)}",
        name=name,
        arguments=json.dumps(arguments, ensure_ascii=False),
        chunk=chunk,
    )


def call_broken(name: str, text: str, *, call_id: str = "") -> Piece:
    """Call a tool with arguments that are no JSON."""
    return Call(id=call_id or f"call_{next(_ids)}", name=name, arguments=text, chunk=7)


def fail(
    status: int,
    message: str = "",
    *,
    kind: str = "",
    retry_after: float | str | None = None,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Piece:
    """Answer with an HTTP error in the shape of the wire, or with ``body`` as it is."""
    named = dict(headers or {})
    if retry_after is not None:
        named["retry-after"] = str(retry_after)
    return Fail(
        status=status,
        message=message or f"scripted {status}",
        kind=kind or _KINDS.get(status, "api_error"),
        headers=named,
        body=body,
    )


_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def too_long() -> Piece:
    """Say that the conversation no longer fits, as the vendors do."""
    return fail(400, "prompt is too long: 213000 tokens > 200000 maximum")


def drop(after: str = "") -> Piece | Sequence[Piece]:
    """Cut the connection; ``after`` is said first."""
    return Drop() if not after else (say(after), Drop())


def pause(seconds: float) -> Piece:
    """Be silent for ``seconds``."""
    return Pause(seconds)


def hold(event: threading.Event) -> Piece:
    """Be silent until ``event`` is set."""
    return Hold(event)


def raw(data: bytes | str) -> Piece:
    """Put ``data`` into the stream as it is."""
    return Raw(data.encode() if isinstance(data, str) else data)


def stream_error(kind: str = "overloaded_error", message: str = "Overloaded") -> Piece:
    """Send an error object in the middle of the stream."""
    return StreamError(kind=kind, message=message)


def stop(reason: str) -> Piece:
    """End with ``reason``, spelled as the wire spells it."""
    return Stop(reason)


def usage(*, input: int = 10, output: int = 5, cache_read: int = 0, cache_write: int = 0) -> Piece:
    """Report these tokens."""
    return Tokens(input=input, output=output, cache_read=cache_read, cache_write=cache_write)


def flatten(turn: Turn, request: Request) -> list[Piece]:
    """Ask callables and give the pieces of one turn."""
    if callable(turn):
        return flatten(turn(request), request)
    if isinstance(turn, Sequence):
        return [piece for part in turn for piece in flatten(part, request)]
    return [turn]


@dataclass(slots=True)
class Script:
    """Turns in order; ``then`` answers when they are used up."""

    turns: Sequence[Turn]
    then: Turn | None = None
    used: int = field(default=0)

    def next(self, request: Request) -> list[Piece]:
        """Give the pieces of the next turn."""
        if self.used < len(self.turns):
            turn = self.turns[self.used]
        elif self.then is not None:
            turn = self.then
        else:
            turn = fail(418, f"the script has only {len(self.turns)} turns", kind="script_error")
        self.used += 1
        return flatten(turn, request)
