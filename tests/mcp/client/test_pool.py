"""The pool of HTTP connections: used again where they are well, closed where they are not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from kage.mcp.client.transport import pool as module
from kage.mcp.client.transport.pool import Network, Pool
from tests.waiting import until

GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class House:
    """A bare HTTP server; ``served`` holds how many requests each connection brought."""

    def __init__(self) -> None:
        self.served: list[int] = []
        self.open: set[asyncio.StreamWriter] = set()
        self.gate = asyncio.Event()
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.add(writer)
        number = len(self.served)
        self.served.append(0)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.served[number] += 1
                path = head.split(b" ")[1].decode()
                if path == "/wait":
                    await self.gate.wait()
                if path == "/half":
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
                    continue
                writer.write(GOOD)
                if path == "/bye":
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open.discard(writer)
            writer.close()


@asynccontextmanager
async def house() -> AsyncIterator[tuple[House, Network]]:
    made = House()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    network = Network(verify=False, proxy=None)
    try:
        yield made, network
    finally:
        made.gate.set()
        await network.aclose()
        await until(lambda: not made.open, what="every connection is closed")
        server.close()


async def asked(network: Network, url: str) -> bytes:
    response = await network.handle_async_request(httpx2.Request("GET", url))
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    try:
        return b"".join([piece async for piece in response.stream])
    finally:
        await response.aclose()


def idle(network: Network) -> int:
    pool: Any = network._pool
    assert isinstance(pool, Pool)
    return sum(map(len, pool._idle.values()))


def test_requests_one_after_the_other_share_a_connection_and_those_at_once_do_not() -> None:
    async def main() -> None:
        async with house() as (server, network):
            for _ in range(5):
                assert await asked(network, server.url) == b"ok"
            assert server.served == [5]
            waiting = [asyncio.create_task(asked(network, server.url + "/wait")) for _ in range(4)]
            await until(lambda: len(server.served) == 4, what="four connections")
            server.gate.set()
            assert await asyncio.gather(*waiting) == [b"ok"] * 4
            assert idle(network) == 4

    asyncio.run(main())


def test_a_connection_the_server_closed_is_not_used_again() -> None:
    async def main() -> None:
        async with house() as (server, network):
            assert await asked(network, server.url + "/bye") == b"ok"
            await until(lambda: not server.open, what="the server closed it")
            assert await asked(network, server.url) == b"ok"
            assert server.served == [1, 1]

    asyncio.run(main())


def test_a_request_that_is_given_up_and_a_body_read_by_half_cost_their_connection() -> None:
    async def main() -> None:
        async with house() as (server, network):
            task = asyncio.create_task(asked(network, server.url + "/wait"))
            await until(lambda: server.served == [1], what="it is asked")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            request = httpx2.Request("GET", server.url + "/half")
            response = await network.handle_async_request(request)
            await response.aclose()
            await response.aclose()
            assert idle(network) == 0
            server.gate.set()
            assert await asked(network, server.url) == b"ok"
            assert server.served == [1, 1, 1]

    asyncio.run(main())


def test_what_cannot_be_connected_leaves_nothing_behind() -> None:
    async def main() -> None:
        async with house() as (_, network):
            with pytest.raises(httpx2.ConnectError):
                await asked(network, "http://127.0.0.1:1/")
            pool: Any = network._pool
            assert not pool._all and not idle(network)

    asyncio.run(main())


def test_idle_connections_are_few_and_not_kept_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IDLE", 2)

    async def main() -> None:
        async with house() as (server, network):
            waiting = [asyncio.create_task(asked(network, server.url + "/wait")) for _ in range(4)]
            await until(lambda: len(server.served) == 4, what="four connections")
            server.gate.set()
            await asyncio.gather(*waiting)
            assert idle(network) == 2
            await until(lambda: len(server.open) == 2, what="the others are closed")
            monkeypatch.setattr(module, "_EXPIRY", -1.0)
            assert await asked(network, server.url) == b"ok"
            assert idle(network) == 0

    asyncio.run(main())
