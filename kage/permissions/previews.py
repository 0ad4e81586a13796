"""The preview in a question: made while nobody waits for it longer than a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kage.core.errors import KageError
from kage.core.sanitise import clip

WAIT = 10.0  # seconds; the question does not wait longer for a diff

Preview = Callable[[], Awaitable[str]]


async def previewed(preview: Preview | None) -> str:
    """Give the preview, or why there is none; "" where none is made."""
    if preview is None:
        return ""
    try:
        async with asyncio.timeout(WAIT):
            return await preview()
    except TimeoutError:
        return "(there is no preview: making it took too long)"
    except (KageError, OSError) as error:
        return f"(there is no preview: {clip(str(error), 500)})"
