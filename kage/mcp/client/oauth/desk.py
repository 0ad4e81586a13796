"""Sign-ins a person asked for while kage runs: shown by event, ended by page, paste or cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, assert_never

from kage.config.schema import ServerSpec
from kage.core.commands import AnswerLogin, CancelLogin, LoginServer, LogoutServer, SignInCommand
from kage.core.errors import UsageError
from kage.core.events import LoginRequested, LoginSettled, Noticed, Publish
from kage.core.levels import Level
from kage.core.servers import Fault, ServerState
from kage.mcp.client import faults
from kage.mcp.client.oauth.logins import Logins, Page, Target
from kage.mcp.client.oauth.problems import NeedsAuth, Refused
from kage.mcp.client.oauth.session import Need, Want


class Visited(Protocol):
    """A server, as far as signing in to it goes."""

    @property
    def spec(self) -> ServerSpec:
        """Its entry."""
        ...

    @property
    def state(self) -> ServerState:
        """How it is doing."""
        ...

    @property
    def connection(self) -> object | None:
        """The connection that serves, None when there is none."""
        ...

    def sign_in(self, fault: Fault | None) -> None:
        """Say that a person has to sign in for it to go on; None: that they need not any more."""
        ...

    def sign_out(self, fault: Fault) -> None:
        """End a connection that was made with a sign-in that is gone."""
        ...


class Desk:
    """At most one sign-in per server at a time.

    Args:
        server: Finds a server by name; raises UsageError.
        retry: Starts a server that waits for a sign-in.
    """

    def __init__(
        self,
        logins: Logins,
        publish: Publish,
        *,
        workspace: Path,
        server: Callable[[str], Visited],
        retry: Callable[[str], None],
    ) -> None:
        self._logins = logins
        self._publish = publish
        self._workspace = workspace
        self._server = server
        self._retry = retry
        self._running: dict[str, asyncio.Task[None]] = {}
        self._pages: dict[str, Page] = {}
        logins.needed = self._needed

    async def handle(self, command: SignInCommand) -> None:
        """Do what a person asked for and wait for the end of it.

        Raises:
            UsageError: it cannot be done.
            SignInFailed: signing in did not work; says why.
        """
        name = command.name
        match command:
            case LoginServer():
                await self._login(name)
            case AnswerLogin():
                self._answer(name, command.address)
            case CancelLogin():
                if (task := self._running.get(name)) is not None:
                    task.cancel()
            case LogoutServer():
                await self._logout(name)
            case _:
                assert_never(command)

    async def stop(self) -> None:
        """Give up every sign-in under way."""
        tasks = tuple(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _login(self, name: str) -> None:
        server = self._server(name)
        if server.state is ServerState.UNTRUSTED:
            raise UsageError(f"{name} is not trusted yet", fix=f"First: /mcp trust {name}")
        target = self._logins.target(server.spec, self._workspace)
        if name in self._running:  # asked again: the page is shown again
            if name in self._pages:
                self._request(self._pages[name])
            return
        task = asyncio.create_task(self._sign_in(target), name=f"sign in {name}")
        self._running[name] = task
        signed_in = False
        try:
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()
                signed_in = True
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            self._running.pop(name, None)
            self._pages.pop(name, None)
            self._publish(LoginSettled(server=name, ok=signed_in))
        if signed_in:
            self._go_on(name)

    def _go_on(self, name: str) -> None:
        """Let a server use its new sign-in; one that serves has it with its next request."""
        server = self._server(name)
        if server.connection is None:
            self._retry(name)
        else:
            server.sign_in(None)

    def _answer(self, name: str, address: str) -> None:
        page = self._pages.get(name)
        if page is None:
            raise UsageError(f"No sign-in at {name} is under way", fix=f"/mcp login {name}")
        try:
            page.paste(address)
        except Refused as refused:
            what = f"That is not the answer of the sign-in at {name}"
            raise UsageError(what, why=str(refused)) from None

    async def _logout(self, name: str) -> None:
        server = self._server(name)
        gone = await self._logins.logout(name)
        if gone:  # a session at the server would go on without the token that opened it
            server.sign_out(faults.to_fault(NeedsAuth(name, "you signed out")))
        what = f"Signed out of {name}" if gone else f"Nobody was signed in to {name}"
        self._publish(Noticed(level=Level.INFO, what=what))

    async def _sign_in(self, target: Target) -> None:
        await self._logins.login(target, self._show)

    async def _show(self, page: Page) -> None:
        self._pages[page.server] = page
        self._request(page)

    def _request(self, page: Page) -> None:
        self._publish(LoginRequested(server=page.server, url=page.url, host=page.host))

    def _needed(self, need: Need) -> None:
        """Tell that a request met a refusal only a person can mend, or that it waits no more."""
        error = NeedsAuth(need.server, need.reason)
        try:
            server = self._server(need.server)
        except UsageError:
            return  # removed meanwhile
        match need.want:
            case Want.WAITING:
                server.sign_in(faults.to_fault(error))
            case Want.OVER:
                server.sign_in(None)
            case Want.MISSED:
                notice = Noticed(level=Level.WARNING, what=error.what, why=error.why, fix=error.fix)
                self._publish(notice)
            case _:
                assert_never(need.want)
