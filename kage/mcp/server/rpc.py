"""JSON-RPC 2.0 as MCP uses it: what a line means, and how answers are written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard

from kage.mcp.server.wire import early_id

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_VERSION = -32022  # 2026-07-28

MAX_ID = 1024  # characters; an id is kept and sent back
Id = str | int  # messages are tuples: made twice as fast as dataclasses, at import eight times
NO_PARAMS: Mapping[str, Any] = {}  # JSON


class Invalid(Exception):
    """The message or its parameters are refused with a protocol error."""

    def __init__(self, code: int, message: str, *, data: Any = None) -> None:  # JSON
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Request(NamedTuple):
    """A request that wants an answer."""

    id: Id
    method: str
    params: Mapping[str, Any]  # JSON


class Notification(NamedTuple):
    """A message nobody answers."""

    method: str
    params: Mapping[str, Any]  # JSON


class Answer(NamedTuple):
    """The peer's answer to a request of ours: ``result`` is None when it was an error."""

    id: Id
    result: Mapping[str, Any] | None  # JSON


class Malformed(NamedTuple):
    """A line that is no message; ``reply`` is the error to send."""

    reply: bytes


Message = Request | Notification | Answer | Malformed


def _no_constant(word: str) -> Any:  # json wants a value, but there is none
    raise ValueError(f"{word} is no JSON")


_decode = json.JSONDecoder(parse_constant=_no_constant).decode
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def parse(line: bytes | bytearray) -> Message:
    """Say what ``line`` means; never raises. A bytearray is emptied: no message is held twice."""
    start = line[:4096]
    try:
        message = _decode(_text(line))
    except UnicodeDecodeError:
        return _unreadable(start, "the message is not UTF-8")
    except RecursionError:
        return _unreadable(start, "the message is nested too deeply")
    except ValueError:
        return _unreadable(start, "the message is no valid JSON")
    if type(message) is not dict:
        what = "JSON-RPC batches are" if isinstance(message, list) else "A bare value is"
        return Malformed(error(None, INVALID_REQUEST, f"{what} not supported: send one object"))
    return _classify(message)


def _text(line: bytes | bytearray) -> str:
    text = line.decode()
    if isinstance(line, bytearray):
        line.clear()
    return text


def is_id(value: Any) -> TypeGuard[Id]:  # JSON
    """Say whether ``value`` can be an id or a progress token here."""
    if type(value) is int:
        return -(1 << 63) <= value < 1 << 64
    return isinstance(value, str) and len(value) <= MAX_ID


def _classify(message: dict[str, Any]) -> Message:
    method = message.get("method")
    if "id" not in message:
        if not isinstance(method, str):
            return Malformed(error(None, INVALID_REQUEST, "the message has no method"))
        params = message.get("params")
        return Notification(method, params if isinstance(params, dict) else NO_PARAMS)
    id_ = message["id"]
    legal = is_id(id_)
    if method is None and ("result" in message or "error" in message):
        result = message.get("result")
        return Answer(id_ if legal else "", result if isinstance(result, dict) else None)
    if not legal:
        return Malformed(error(None, INVALID_REQUEST, "the id must be text or a whole number"))
    if message.get("jsonrpc") != "2.0":
        return Malformed(error(id_, INVALID_REQUEST, 'jsonrpc must be "2.0"'))
    if not isinstance(method, str):
        return Malformed(error(id_, INVALID_REQUEST, "the method must be text"))
    params = message.get("params")
    if params is None:
        params = NO_PARAMS
    elif type(params) is not dict:
        return Malformed(error(id_, INVALID_PARAMS, "params must be an object"))
    return Request(id_, method, params)


def _unreadable(start: bytes | bytearray, what: str) -> Malformed:
    return Malformed(raw_error(early_id(start) or b"null", PARSE_ERROR, what))


def encode(value: Any) -> bytes:  # JSON
    """Write ``value``; half surrogate pairs, which UTF-8 cannot carry, become U+FFFD."""
    text = _encode(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def encode_id(id_: Id) -> bytes:
    """Write the id of an answer."""
    return b"%d" % id_ if type(id_) is int else encode(id_)


def result(id_: Id, body: bytes) -> bytes:
    """Make the line of an answer from its encoded ``body``."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (encode_id(id_), body)


def error(id_: Id | None, code: int, message: str, *, data: Any = None) -> bytes:  # data: JSON
    """Make the line of an error; ``id_`` is None when it could not be read."""
    return raw_error(b"null" if id_ is None else encode_id(id_), code, message, data=data)


def raw_error(id_: bytes, code: int, message: str, *, data: Any = None) -> bytes:  # data: JSON
    """Make the line of an error to an id that is encoded already."""
    body: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        body["data"] = data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (id_, encode(body))


def request(id_: Id, method: str, params: Mapping[str, Any]) -> bytes:  # JSON
    """Make the line of a request to the peer."""
    return encode({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}) + b"\n"


def notification(method: str, params: Mapping[str, Any]) -> bytes:  # JSON
    """Make the line of a notification."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params}) + b"\n"
