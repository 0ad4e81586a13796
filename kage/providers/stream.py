"""What both wire formats do the same way with a stream: read an event, see it end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from kage.core.errors import ProviderError, Unreachable
from kage.providers.errors import Target
from kage.providers.history import whole

MAX_CALLS = 256  # of one reply
MAX_TOKENS = 10**12  # a count beyond this is no count
MAX_NAME = 256  # characters of the name of a called tool
GRACE = 0.25  # seconds an endpoint has to close a finished stream


class Joiner:
    """Makes text of pieces whole: an emoji can be cut in two, and half of one is no text."""

    def __init__(self) -> None:
        self._half = ""

    def __call__(self, piece: str) -> str:
        """Give what can be shown; half a character waits for its other half."""
        text = self._half + piece
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._half, text = text[-1], text[:-1]
        return whole(text)

    def rest(self) -> str:
        """Give what is left at the end."""
        text, self._half = whole(self._half), ""
        return text


def tool_name(name: object) -> str:
    """Give the name of a called tool as text that can be kept; an endless one is cut."""
    return whole(name)[:MAX_NAME] if isinstance(name, str) else ""


def read_event(target: Target, data: str) -> dict[str, Any]:
    """Read the JSON of one event; what is no object is an error of the endpoint.

    Raises:
        Unreachable: the stream carries garbage.
    """
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if isinstance(event, list) and event:  # Gemini wraps its errors so
        event = event[0]
    if not isinstance(event, dict):
        raise Unreachable(
            f"{target.provider} sent something that is no model reply",
            why=target.clean(data[:200]),
            fix="Send the prompt again; check its base_url if this goes on.",
            provider=target.provider,
        )
    return event


async def drain(events: AsyncIterator[str]) -> None:
    """Read what little follows the end of a reply, so that the connection can be used again."""
    with suppress(ProviderError, TimeoutError):
        async with asyncio.timeout(GRACE):
            async for _ in events:
                pass


def too_many(target: Target) -> ProviderError:
    """Say that a reply asks for more calls than a person could judge."""
    return ProviderError(
        f"The reply of {target.provider} asks for more than {MAX_CALLS} calls",
        fix="Send the prompt again, or choose another model with /model or --model.",
        provider=target.provider,
    )


def broke_off(target: Target) -> Unreachable:
    """Say that the stream ended before the reply did."""
    return Unreachable(
        f"The reply of {target.provider} broke off",
        why="the connection ended before the reply did",
        fix="Send the prompt again.",
        provider=target.provider,
    )
