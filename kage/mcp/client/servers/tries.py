"""In which era, and by which HTTP transport, a server is tried, and what is learned from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from kage.mcp.client.connections.connection import Connection
from kage.mcp.client.faults import StartFailed
from kage.mcp.client.servers.eras import Eras
from kage.mcp.client.servers.journal import Journal
from kage.mcp.client.servers.recipe import Recipe


class Attempt(Protocol):
    """Opens one connection."""

    async def __call__(self, *, legacy: bool, sse: bool) -> Connection:
        """Open it, or raise StartFailed."""
        ...


class Tries:
    """One start of one server.

    A server that dies of the question for its era is started again without it; an address that
    does not speak streamable HTTP is asked for the older transport. Both are remembered.
    """

    def __init__(self, recipe: Recipe, eras: Eras, journal: Journal, attempt: Attempt) -> None:
        self._spec = recipe.spec
        self._entry = recipe.entry
        self._eras = eras
        self._journal = journal
        self._attempt = attempt

    async def run(self) -> Connection:
        """Give an open connection.

        Raises:
            StartFailed: there is none to be had.
        """
        if self._spec.transport == "sse":
            return await self._attempt(legacy=True, sse=True)
        if self._may_fall_back and self._eras.knows_sse(self._entry):
            try:
                return await self._attempt(legacy=True, sse=True)
            except StartFailed as error:
                if error.needs_auth or not error.hopeless:
                    raise
                self._eras.forget_sse(self._entry)  # it may speak the newer one by now
        known = self._spec.protocol == "auto" and self._eras.known(self._entry) == "legacy"
        try:
            return await self._attempt(legacy=known or self._spec.protocol == "legacy", sse=False)
        except StartFailed as error:
            if known:
                self._eras.forget(self._entry)  # it may speak another era by now
            if error.try_sse:
                return await self._older(error)
            if not error.on_probe or self._spec.protocol != "auto":
                raise
        self._journal.trace("it ended on the question for its era; started again without")
        connection = await self._attempt(legacy=True, sse=False)
        self._eras.remember(self._entry, "legacy")
        return connection

    @property
    def _may_fall_back(self) -> bool:
        modern_only = self._spec.protocol not in ("auto", "legacy")
        return self._spec.transport == "http" and self._spec.sse_fallback and not modern_only

    async def _older(self, first: StartFailed) -> Connection:
        """Ask for the older HTTP transport, where the entry allows it."""
        if not self._may_fall_back:
            fix = (
                'If it speaks the older SSE transport, set transport = "sse" or '
                f"sse_fallback = true for [mcp.servers.{self._spec.name}]; else check url"
            )
            raise _again(first, fix=fix) from None
        self._journal.trace("it refused streamable HTTP; asked for the older SSE transport")
        try:
            connection = await self._attempt(legacy=True, sse=True)
        except StartFailed as second:
            if second.needs_auth:
                raise
            if not second.hopeless:  # it may have been going to: the next try tells
                why = f"{second.fault.why}; before that it refused the newer transport"
                raise _again(second, why=f"{why}: {first.fault.why}") from None
            why = f"{first.fault.why}; it does not speak the older SSE transport either"
            raise _again(first, why=why) from None
        self._eras.remember_sse(self._entry)
        return connection


def _again(error: StartFailed, *, why: str = "", fix: str = "") -> StartFailed:
    """Give the same failure with more to say."""
    fault = replace(error.fault, why=why or error.fault.why, fix=fix or error.fault.fix)
    return StartFailed(fault, hopeless=error.hopeless)
