"""Turns one line of a server's stdout into messages; never raises, whatever the line holds.

An answer the SDK would refuse becomes a JSON-RPC error for the call it answers, so that the call
fails at once instead of waiting for its timeout. Imports the SDK's types: import it late.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import ErrorData, JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter
from pydantic_core import from_json

from kage.core.sanitise import clip
from kage.mcp.client.transport.framing import EDGE, TooLong

INVALID_ANSWER = -32010  # kage's own codes, in the band JSON-RPC leaves to implementations
ANSWER_TOO_LONG = -32011
MAX_DEPTH = 150  # nothing deeper is passed on, so that whatever walks a message may recurse
TOO_DEEP = "[nested too deeply]"  # stands in place of what was
LONG = 1 << 18  # bytes from which on an answer is read without the SDK's check of each value
MAX_BATCH = 1000  # messages taken from one array
STRAY_CLIP = 2000  # characters of a stray line that are kept

_KEY = re.compile(r'\s*"((?:[^"\\]|\\.){0,100})"\s*:\s*', re.DOTALL)
_NEXT = re.compile(r"\s*,")
_LAST_ID = re.compile(
    rb'(?<!\\)"id"\s*:\s*(-?\d{1,20}|"(?:[^"\\]|\\.){0,1000}")'
    rb'(?:\s*,\s*"jsonrpc"\s*:\s*"[^"]*")?\s*\}\s*$'
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK = b" \t\r\0"
_BOM = b"\xef\xbb\xbf"
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Stray:
    """A line, or part of one, that is no message; ``text`` is clipped and not yet sanitised."""

    text: str


@dataclass(frozen=True, slots=True)
class Fatal:
    """Nobody can tell which call the line belongs to: the connection has to end."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What can be told about a message from its edges."""

    id: int | str | None
    answer: bool  # has a result or an error
    request: bool  # has a method


def parse(line: bytes) -> Iterator[SessionMessage | Stray]:
    """Give the messages of a line; blank lines give nothing, an array gives its elements."""
    line = line.strip(_BLANK).removeprefix(_BOM).lstrip(_BLANK)
    if not line:
        return
    if line[:1] not in b"{[":
        yield _stray(line)
        return
    message = _strictly(line) if len(line) < LONG else _quickly(line) or _strictly(line)
    message = message or _strictly(line.decode("utf-8", "replace"))
    if message is not None and not _may_be_deep(line):
        yield message
    else:
        yield from _leniently(line)


def parse_too_long(line: TooLong, limit: int) -> SessionMessage | Stray | Fatal | None:
    """Say what becomes of a line over ``limit`` bytes; None: wait for its end.

    An answer whose id stands in the line's first bytes fails at once, else at its end.
    """
    text = line.head.lstrip(_BLANK).removeprefix(_BOM).lstrip(_BLANK)
    size = f"{line.size / (1 << 20):.0f} MiB"
    if not re.match(rb'\[\s*\{|\{\s*"', text):
        return _stray(text) if line.ended else None
    early = read_envelope(text)
    if not line.ended:
        return _too_long(early.id, limit) if early.answer and early.id is not None else None
    if early.request:
        return Stray(f"[a message of {size} was left out: {clip(_text(text), 200)}]")
    if early.answer and early.id is not None:
        return None  # told when the limit was crossed
    late = read_envelope(text, line.tail)
    if late.answer and late.id is not None:
        return _too_long(late.id, limit)
    return Fatal(f"it sent a line of {size} (max_message_bytes is {limit}) with no readable id")


def read_envelope(head: bytes, tail: bytes = b"") -> Envelope:
    """Read the outermost keys from the first bytes of a message, the id also from its last."""
    keys: dict[str, Any] = {}  # JSON values
    text = head.decode("utf-8", "replace")
    start = re.match(r"\s*\{", text)
    position = start.end() if start else len(text)
    while match := _KEY.match(text, position):
        keys[match[1]] = None
        try:
            value, position = _DECODER.raw_decode(text, match.end())
        except (ValueError, RecursionError):  # cut off, or it is what is too deep
            break
        if position < len(text):  # else a number may go on
            keys[match[1]] = value
        comma = _NEXT.match(text, position)
        if comma is None:
            break
        position = comma.end()
    found = _as_id(keys.get("id"))
    answer = "result" in keys or "error" in keys
    if found is None and answer and (last := _LAST_ID.search(tail)):
        found = _as_id(_loads(last[1]))
    return Envelope(id=found, answer=answer, request="method" in keys)


def answer_error(request_id: int | str, text: str, code: int = INVALID_ANSWER) -> SessionMessage:
    """Make the error that ends the call ``request_id`` in place of the server's answer."""
    error = ErrorData(code=code, message=text)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


def _strictly(line: bytes | str) -> SessionMessage | None:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:  # pydantic's ValidationError is one
        return None


def _quickly(line: bytes) -> SessionMessage | None:
    """Read a plain answer without the SDK's look at each of its values, which costs most.

    Anything out of the ordinary gives None.
    """
    try:
        value = from_json(line)
    except ValueError:
        return None
    match value:
        case {
            "jsonrpc": "2.0",
            "id": int() | str() as request_id,
            "result": dict() as result,
            **more,
        }:
            if not more and not isinstance(request_id, bool):
                answer = JSONRPCResponse.model_construct(
                    jsonrpc="2.0", id=request_id, result=result
                )
                return SessionMessage(answer)
    return None


def _may_be_deep(line: bytes) -> bool:
    """Say whether brackets nest deeper than allowed, those inside of texts included.

    Each round takes out the innermost pairs, which is far quicker than walking the message.
    """
    if line.count(b"[") + line.count(b"{") <= MAX_DEPTH:
        return False
    brackets = line.translate(None, _NO_BRACKETS)
    for _ in range(MAX_DEPTH // 2):  # a round can take out two levels
        fewer = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(fewer) == len(brackets):
            return False
        brackets = fewer
    return True


def _leniently(line: bytes) -> Iterator[SessionMessage | Stray]:
    """Take what the SDK's parser refused: half surrogates, arrays, broken and deep answers."""
    try:
        text = line.decode("utf-8", "replace")
        value = _mend(json.loads(_cut_deep(text) if _may_be_deep(line) else text))
    except (ValueError, RecursionError) as error:
        envelope = read_envelope(line[:EDGE], line[-EDGE:])
        if envelope.answer and not envelope.request and envelope.id is not None:
            deep = isinstance(error, RecursionError)
            why = "is nested too deeply" if deep else "is no valid JSON"
            yield answer_error(envelope.id, f"The server's answer {why}")
        else:
            yield _stray(line)
        return
    if isinstance(value, list):
        yield Stray(f"[an array of {len(value)} messages: {clip(_text(line), 200)}]")
        for item in value[:MAX_BATCH]:
            yield _one(item)
    else:
        yield _one(value)


def _one(value: Any) -> SessionMessage | Stray:  # any JSON value
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
    except ValueError:
        pass
    if isinstance(value, dict) and "method" not in value:
        request_id = _as_id(value.get("id"))
        if request_id is not None and ("result" in value or "error" in value):
            return answer_error(request_id, _broken(value))
    return Stray(clip(json.dumps(value, ensure_ascii=False), STRAY_CLIP))


def _broken(value: dict[str, Any]) -> str:
    """Say what is wrong with an answer; an error's own text is kept."""
    if "error" in value:
        error = value["error"]
        text = error.get("message") if isinstance(error, dict) else error
        words = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        return f"The server answered with a malformed error: {clip(words, 1000)}"
    result = value["result"]
    if not isinstance(result, dict):
        kind = {type(None): "null", list: "an array", str: "text", bool: "true or false"}
        what = kind.get(type(result), "a number")
        return f"The server's answer breaks the protocol: its result is {what}, not an object"
    return f"The server's answer breaks the protocol: jsonrpc is {value.get('jsonrpc')!r:.50}"


def _cut_deep(text: str) -> str:
    """Put a note in place of what is nested too deeply, without any recursion.

    The rest of the message stays: in a list of tools, a tool that is too deep may not cost the
    others; who reads the part meets a text where it expects something else.
    """
    kept: list[str] = []
    depth = start = 0  # start: of what is kept next
    for match in _BRACKET.finditer(text):
        token = match[0]
        if token in "[{":
            depth += 1
            if depth == MAX_DEPTH + 1:
                kept += text[start : match.start()], json.dumps(TOO_DEEP)
        elif token in "]}":
            if depth == MAX_DEPTH + 1:
                start = match.end()
            depth -= 1
    if depth > MAX_DEPTH:
        return text  # it never comes back up: no JSON anyway
    return "".join((*kept, text[start:]))


def _mend(value: Any) -> Any:  # any JSON value
    """Replace half surrogates, which nothing later could write."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_mend(item) for item in value]
    if isinstance(value, dict):
        return {_mend(key): _mend(item) for key, item in value.items()}
    return value


def _as_id(value: object) -> int | str | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _too_long(request_id: int | str, limit: int) -> SessionMessage:
    size = f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit} bytes"
    text = f"The server's answer is longer than {size} (max_message_bytes)"
    return answer_error(request_id, text, ANSWER_TOO_LONG)


def _loads(data: bytes) -> object:
    try:
        value: object = json.loads(data)
    except ValueError:
        return None
    return value


def _stray(line: bytes) -> Stray:
    return Stray(clip(_text(line[: 4 * STRAY_CLIP]), STRAY_CLIP))


def _text(line: bytes) -> str:
    return line[: 4 * STRAY_CLIP].decode("utf-8", "replace")
