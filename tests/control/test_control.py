"""The control socket alone: what it answers, and what a bad caller costs."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import socket
import stat
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kage.control import protocol
from kage.control.caller import Running, restart, running, watch
from kage.control.listener import MAX_CALLERS, Listener
from kage.core.errors import KageError, ServerError
from kage.core.events import Event, ServerChanged
from kage.core.servers import Fault, ServerState, ServerStatus, Stage


def looped(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """Run an async test on a loop of its own."""

    @functools.wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class Host:
    """A host with servers, and nothing else."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.states = [status("one", ServerState.CONNECTED), status("two", ServerState.FAILED)]
        self.restarted: list[tuple[str, bool]] = []
        self.listeners: list[Callable[[Event], None]] = []

    def servers(self) -> tuple[ServerStatus, ...]:
        return tuple(self.states)

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    async def restart_server(self, name: str, *, fresh: bool) -> None:
        if name == "two":
            raise ServerError("two is broken", server=name, stage="spawn", why="exit 1", fix="Fix")
        self.restarted.append((name, fresh))


def status(name: str, state: ServerState, why: str = "") -> ServerStatus:
    fault = Fault(stage=Stage.SPAWN, what="gone", why=why) if state is ServerState.FAILED else None
    return ServerStatus(name=name, origin="user", state=state, since=time.monotonic(), fault=fault)


@asynccontextmanager
async def listening(
    tmp_path: Path, redact: Callable[[str], str] = str
) -> AsyncIterator[tuple[Host, Path]]:
    troubles: list[str] = []
    runtime = tmp_path / "run" / "kage"
    (tmp_path / "run").mkdir(mode=0o700, exist_ok=True)
    host = Host(tmp_path)
    listener = Listener(runtime, redact=redact, trouble=troubles.append)
    await listener.start(host)
    try:
        yield host, runtime
    finally:
        await listener.close()
    assert troubles == []
    assert list(runtime.iterdir()) == []


async def only(runtime: Path) -> Running:
    found = await asyncio.to_thread(running, runtime)
    assert len(found) == 1
    return found[0]


@looped
async def test_a_running_kage_tells_its_servers(tmp_path: Path) -> None:
    async with listening(tmp_path) as (_, runtime):
        kage = await only(runtime)
        assert (kage.pid, kage.workspace) == (os.getpid(), tmp_path)
        assert [(s["name"], s["state"], s["status"]) for s in kage.servers] == [
            ("one", "connected", "running"),
            ("two", "failed", "idle"),
        ]
        assert kage.servers[1]["fault"]["stage"] == "spawn"


@looped
async def test_only_the_owner_can_open_the_socket(tmp_path: Path) -> None:
    async with listening(tmp_path) as (_, runtime):
        path = protocol.socket_path(runtime, os.getpid())
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(runtime.stat().st_mode) == 0o700


@looped
async def test_a_restart_is_waited_for_and_its_failure_is_told(tmp_path: Path) -> None:
    async with listening(tmp_path) as (host, runtime):
        kage = await only(runtime)
        await asyncio.to_thread(restart, kage, "one", fresh=True)
        assert host.restarted == [("one", True)]
        with pytest.raises(KageError) as told:
            await asyncio.to_thread(restart, kage, "two", fresh=False)
        assert (told.value.what, told.value.why, told.value.fix) == (
            "two is broken",
            "exit 1",
            "Fix",
        )


@looped
async def test_a_watcher_sees_the_state_and_then_each_change(tmp_path: Path) -> None:
    async with listening(tmp_path, lambda text: text.replace("hunter2", "[redacted]")) as (
        host,
        runtime,
    ):
        seen: list[Any] = []

        def look() -> None:
            for item in watch(kage):
                seen.append(item)
                if len(seen) == 3:
                    return

        kage = await only(runtime)
        looking = asyncio.create_task(asyncio.to_thread(look))
        while not host.listeners:
            await asyncio.sleep(0.01)
        for state in (ServerState.CONNECTING, ServerState.FAILED):
            event = ServerChanged(
                status=status("one", state, why="key hunter2"), previous=ServerState.CONNECTED
            )
            host.listeners[0](event)
        await asyncio.wait_for(looking, 20)
        assert isinstance(seen[0], Running)
        assert [item["server"]["state"] for item in seen[1:]] == ["connecting", "failed"]
        assert seen[2]["previous"] == "connected"
        assert seen[2]["server"]["fault"]["why"] == "key [redacted]"
        while host.listeners:  # a watcher that left is forgotten
            await asyncio.sleep(0.01)


BAD: dict[str, bytes] = {
    "no JSON": b"hello\n",
    "no object": b"[1]\n",
    "unknown method": b'{"id": 1, "method": "stop"}\n',
    "no name": b'{"id": 1, "method": "restart", "params": {"name": 7}}\n',
    "params no object": b'{"id": 1, "method": "restart", "params": []}\n',
    "too deep": b"[" * 100_000 + b"\n",
    "bad bytes": b"\xff\xfe\n",
    "method no text": b'{"id": 1, "method": {"a": 1}}\n',
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD.keys())
@looped
async def test_a_bad_request_is_answered_with_an_error(tmp_path: Path, raw: bytes) -> None:
    async with listening(tmp_path) as (_, runtime):
        reader, writer = await asyncio.open_unix_connection(
            protocol.socket_path(runtime, os.getpid())
        )
        writer.write(raw)
        answer = json.loads(await asyncio.wait_for(reader.readline(), 20))
        assert answer["error"]["code"] in (-32700, -32601, -32602)
        writer.write(b'{"id": "x", "method": "status"}\n')
        assert json.loads(await asyncio.wait_for(reader.readline(), 20))["id"] == "x"
        writer.close()


@looped
async def test_endless_lines_silence_and_many_callers_cost_nobody_else_anything(
    tmp_path: Path,
) -> None:
    async with listening(tmp_path) as (_, runtime):
        path = protocol.socket_path(runtime, os.getpid())
        _, endless = await asyncio.open_unix_connection(path)
        with pytest.raises(ConnectionError):
            while True:
                endless.write(b"x" * (1 << 20))
                await asyncio.wait_for(endless.drain(), 20)
        silent = [await asyncio.open_unix_connection(path) for _ in range(MAX_CALLERS + 5)]
        await asyncio.wait_for(silent[-1][0].read(), 20)  # too many: hung up on
        for _, writer in silent:
            writer.close()
        while not await asyncio.to_thread(running, runtime):
            await asyncio.sleep(0.01)


def test_a_socket_nobody_listens_on_is_taken_away(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    path = protocol.socket_path(tmp_path, 4_000_000)
    with protocol.reachable(path) as short:
        left.bind(short)
    left.close()
    (tmp_path / "kage-1.sock").write_text("no socket")
    (tmp_path / "kage-x.sock").write_text("no pid")
    assert running(tmp_path) == ()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["kage-1.sock", "kage-x.sock"]


@looped
async def test_a_kage_that_cannot_have_a_socket_says_so_and_goes_on(tmp_path: Path) -> None:
    troubles: list[str] = []
    (tmp_path / "file").write_text("")
    listener = Listener(tmp_path / "file" / "kage", redact=str, trouble=troubles.append)
    await listener.start(Host(tmp_path))
    await listener.close()
    assert len(troubles) == 1
