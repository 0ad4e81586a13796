"""Signing in where only a proxy leads out."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from kage.mcp.client.oauth.guard import Guard
from kage.mcp.client.oauth.problems import Offline, Refused
from kage.mcp.client.oauth.wire import Wire
from tests.certificates import certificate

pytestmark = pytest.mark.anyio
ISSUER = "https://login.invalid/.well-known/oauth-authorization-server"


class Proxy:
    """Leads every tunnel to one server; ``heads`` is what it was asked."""

    def __init__(self, leads_to: int, *, refuses: bool = False) -> None:
        self.heads: list[str] = []
        self.port = 0
        self._leads_to = leads_to
        self._refuses = refuses

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        if self._refuses:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._leads_to)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_pour(reader, back), _pour(there, writer))


class Guests:
    """Serves connections, and sees the end of each before the test ends."""

    def __init__(self, serve: Callable[..., Awaitable[None]]) -> None:
        self._serve = serve
        self._here: set[asyncio.Task[None]] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._here.add(task)
        try:
            await self._serve(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            self._here.discard(task)

    async def gone(self) -> None:
        if self._here:
            await asyncio.wait(self._here, timeout=10)


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _metadata(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, asyncio.IncompleteReadError):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        await writer.drain()


@asynccontextmanager
async def proxied(folder: Path, *, refuses: bool = False) -> AsyncIterator[Proxy]:
    """Run an authorization server that speaks TLS, and the proxy that leads there."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(folder, "login.invalid"))
    metadata = Guests(_metadata)
    issuer = await asyncio.start_server(metadata, "127.0.0.1", 0, ssl=context)
    proxy = Proxy(issuer.sockets[0].getsockname()[1], refuses=refuses)
    tunnels = Guests(proxy.serve)
    server = await asyncio.start_server(tunnels, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        issuer.close()
        await tunnels.gone()
        await metadata.gone()


def guard(proxy: Proxy, *found: str) -> Guard:
    """Give a guard behind ``proxy``; names lead to ``found``, or are not known here."""

    async def resolver(host: str, port: int) -> Sequence[str]:
        if not found:
            raise OSError("no such host")
        return found

    proxies = {"https": f"http://joe:hunter2@127.0.0.1:{proxy.port}"}
    return Guard("https://mcp.invalid/mcp", resolver=resolver, proxies=proxies)


async def test_a_sign_in_takes_the_way_its_server_is_reached_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxied(tmp_path) as proxy:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "stub.pem"))
        async with Wire(guard(proxy)) as wire:
            answer = await wire.send(httpx2.Request("GET", ISSUER))
        assert (answer.status_code, answer.content) == (200, b"{}")
        assert proxy.heads[0].startswith("CONNECT login.invalid:443 ")
        assert "am9lOmh1bnRlcjI=" in proxy.heads[0]


async def test_a_name_that_leads_inside_is_not_asked_of_a_proxy_either(tmp_path: Path) -> None:
    async with proxied(tmp_path) as proxy:
        for request in (ISSUER, "https://10.0.0.5/token", "https://localhost/token"):
            async with Wire(guard(proxy, "10.0.0.5")) as wire:
                with pytest.raises(Refused):
                    await wire.send(httpx2.Request("GET", request))
        assert proxy.heads == []


async def test_a_proxy_that_refuses_is_named_without_its_password(tmp_path: Path) -> None:
    async with proxied(tmp_path, refuses=True) as proxy, Wire(guard(proxy)) as wire:
        with pytest.raises(Offline, match="the proxy refused") as failed:
            await wire.send(httpx2.Request("GET", ISSUER))
        assert "hunter2" not in str(failed.value)
