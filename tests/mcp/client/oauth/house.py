"""What the tests of signing in share: a stub, a place for tokens, a person and a browser."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from kage.config.schema import OAuthSpec, ServerSpec
from kage.core.redact import Redactor
from kage.mcp.client.oauth.logins import Logins, Page, Target
from kage.mcp.client.oauth.records import Key, Record
from kage.mcp.client.oauth.session import Need
from kage.mcp.client.oauth.vault import Vault
from tests.stubs.oauth import OAuthStub

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
ECHO = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo"}}
ADMIN = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "admin"}}


class Kage:
    """One kage's sign-ins; several may share a folder."""

    def __init__(self, folder: Path, stub: OAuthStub, *, waits: float = 0.0, **oauth: Any) -> None:
        self.notices: list[str] = []
        self.needed: list[Need] = []
        self.pages: list[Page] = []
        self.redactor = Redactor()
        self.spec = ServerSpec(
            name="remote", transport="http", url=stub.url, oauth=OAuthSpec(**oauth)
        )
        self.vault = Vault(folder, redactor=self.redactor, notice=self.notices.append)
        self.logins = Logins(
            self.vault,
            environ={},
            redactor=self.redactor,
            waits=waits,
            needed=self.needed.append,
        )

    @property
    def key(self) -> Key:
        return Key(server=self.spec.name, origin=self.spec.origin, url=self.spec.url)

    @property
    def record(self) -> Record:
        found = self.vault.load(self.key)
        assert found is not None
        return found

    def target(self) -> Target:
        return Target(spec=self.spec, url=self.spec.url, headers={})

    async def login(self, **how: Any) -> Record:
        """Sign in the way a person with a browser does."""
        return await self.logins.login(self.target(), self.browse, timeout=20, **how)

    async def browse(self, page: Page) -> None:
        self.pages.append(page)
        await asyncio.to_thread(visit, page.url)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx2.AsyncClient]:
        """Give a client with the sign-in on it, as a transport makes one."""
        auth = self.logins.auth(self.spec, self.spec.url)
        async with httpx2.AsyncClient(auth=auth, trust_env=False, timeout=20) as client:
            yield client

    async def post(self, message: dict[str, Any]) -> httpx2.Response:
        async with self.client() as client:
            return await client.post(self.spec.url, json=message)


def visit(url: str) -> tuple[int, str]:
    """Open a page as a browser does, redirects and all; give status and text."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=20) as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
