"""Calls past the SDK's dispatcher: sent once, stamped like the SDK's, and never left waiting."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from anyio import ClosedResourceError

from kage.mcp.client.wire.direct import Direct
from kage.mcp.client.wire.exchange import Exchange
from tests.mcp.client.harness import bench, recorded, run, spec
from tests.stubs.base import META, MODERN


def learned(direct: Direct, meta: dict[str, Any]) -> None:
    from mcp_types import JSONRPCRequest

    direct.learn(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list", params={"_meta": meta}))


def quiet(test: Callable[[], Any]) -> None:
    """Run ``test`` and insist that the loop has nothing to complain about."""
    complaints: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
        await test()
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(main())
    assert complaints == []


def test_what_the_sdk_stamps_goes_along_and_the_answer_ends_the_wait() -> None:
    async def main() -> None:
        sent: list[Any] = []

        async def send(item: Any) -> None:
            sent.append(item.message)

        direct = Direct(send)
        assert not direct.ready
        learned(direct, {"version": "x"})
        exchange = Exchange()
        call = asyncio.create_task(direct.call({"name": "t", "arguments": {"a": 1}}, exchange))
        while not sent:
            await asyncio.sleep(0)
        assert sent[0].params == {"name": "t", "arguments": {"a": 1}, "_meta": {"version": "x"}}
        exchange.result = {"content": []}
        assert direct.answered(exchange)
        await call

    quiet(main)


def test_cancelling_tells_the_server_under_the_id_of_the_call() -> None:
    async def main() -> None:
        sent: list[Any] = []

        async def send(item: Any) -> None:
            sent.append(item.message)

        direct = Direct(send)
        learned(direct, {})
        call = asyncio.create_task(direct.call({"name": "t"}, Exchange()))
        while not sent:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert sent[1].method == "notifications/cancelled"
        assert sent[1].params["requestId"] == sent[0].id

    quiet(main)


@pytest.mark.parametrize("while_writing", [False, True])
def test_a_connection_that_closes_ends_the_call_without_a_word_on_stderr(
    while_writing: bool,
) -> None:
    async def main() -> None:
        from mcp import MCPError

        writing = asyncio.Event()
        closed = asyncio.Event()

        async def send(item: Any) -> None:
            writing.set()
            if while_writing:
                await closed.wait()
                raise ClosedResourceError

        direct = Direct(send)
        learned(direct, {})
        call = asyncio.create_task(direct.call({"name": "t"}, Exchange()))
        await writing.wait()
        await asyncio.sleep(0)
        direct.close()
        closed.set()
        with pytest.raises(MCPError, match="Connection closed"):
            await call
        with pytest.raises(MCPError, match="Connection closed"):
            await direct.call({"name": "t"}, Exchange())

    quiet(main)


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_a_call_over_stdio_needs_no_dispatcher_of_the_sdk(tmp_path: Path, revision: str) -> None:
    log = tmp_path / "seen.jsonl"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", "--revisions", revision, "--record", log))
            live = b.manager._fleet.get("echo").connection
            assert live is not None and live._talk is not None

            async def refuse(*_: object, **__: object) -> None:
                raise AssertionError("the SDK was asked")

            live._talk._client.session.send_request = refuse  # type: ignore[method-assign]
            result = await b.call("echo__echo", {"text": "hi"})
            assert result.outcome.value == "ok"

    run(main)
    (call,) = recorded(log, "tools/call")
    stamped = META + "protocolVersion" in call["params"]["_meta"]
    assert stamped == (revision == MODERN)
