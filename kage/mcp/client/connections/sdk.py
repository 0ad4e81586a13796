"""Load the MCP SDK when it is first needed, beside the running loop, and keep it quiet."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging

# it logs a traceback for each bad message, on the terminal; its HTTP library logs headers
_LOGGERS = ("client", "mcp", "httpx2", "httpcore2")


class Sdk:
    """The SDK's import, shared by all servers: half a second that must not stop the loop."""

    def __init__(self) -> None:
        self._loading: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Return once ``mcp`` can be imported without delay."""
        if self._loading is None:
            _silence()
            self._loading = asyncio.create_task(
                asyncio.to_thread(_load),
                name="import of the MCP SDK",
            )
        # shielded: one server that is stopped meanwhile takes nothing from the others
        await asyncio.shield(self._loading)


def _load() -> None:
    importlib.import_module("kage.mcp.client.transport.pumps")
    importlib.import_module("kage.mcp.client.transport.guard")
    importlib.import_module("kage.mcp.client.transport.mail")
    gc.freeze()  # its 200,000 objects never go; a full collection would stop the screen for them


def _silence() -> None:
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
        logger.propagate = False
