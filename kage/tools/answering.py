"""The other side of a worker process: read the request, answer it. Imports next to nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable

from kage.core.errors import ToolError

DONE, FAILED = b"+", b"-"  # first byte of an answer: a result, or words for the model


def answer(work: Callable[[bytes], bytes]) -> None:
    """Answer the request on stdin with what ``work`` makes of it, or with its ToolError."""
    request = sys.stdin.buffer.read()
    try:
        result = DONE + work(request)
    except ToolError as error:
        result = FAILED + str(error).encode("utf-8", "replace")
    sys.stdout.buffer.write(result)
    sys.stdout.buffer.flush()
