"""What both ends of the control socket agree on: where it is, and its lines.

JSON-RPC 2.0, one message a line, over a Unix socket that only its owner may open. Requests:
``status`` (one answer), ``watch`` (the same answer, then a ``changed`` notification per change
of a server until the caller hangs up) and ``restart`` with ``name`` and ``fresh``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

MAX_LINE = 4 << 20  # bytes; a status with thousands of servers and long faults stays below
_LONGEST = 100  # bytes of a path a Unix socket takes on every system
_NAME = re.compile(r"kage-([1-9][0-9]*)\.sock")

FAILED = -32000  # the request was understood and did not work out
NOT_FOUND = -32601
BAD_PARAMS = -32602
PARSE_ERROR = -32700


def socket_path(runtime: Path, pid: int) -> Path:
    """Give the socket of the kage whose process is ``pid``."""
    return runtime / f"kage-{pid}.sock"


def pid_of(socket: Path) -> int | None:
    """Give the process a socket's name tells, None for any other file."""
    found = _NAME.fullmatch(socket.name)
    return int(found[1]) if found else None


@contextlib.contextmanager
def reachable(socket: Path) -> Iterator[str]:
    """Give a spelling of ``socket`` that is short enough to bind or connect to."""
    if len(os.fsencode(socket)) <= _LONGEST or not os.path.isdir("/proc/self/fd"):
        yield str(socket)
        return
    folder = os.open(socket.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{socket.name}"
    finally:
        os.close(folder)


def line(message: Mapping[str, Any]) -> bytes:
    """Write one message, newline included."""
    text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def parse(raw: bytes) -> dict[str, Any]:
    """Read one message.

    Raises:
        ValueError: it is no JSON object.
    """
    try:
        message = json.loads(raw)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(message, dict):
        raise ValueError("it is no JSON object")
    return message
