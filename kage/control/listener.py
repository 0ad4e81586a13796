"""The running kage's end of the control socket: answers status, watch and restart.

Whoever may open the socket is the person (mode 0600 in a folder of mode 0700), so nothing here
asks; it can only show and restart what the person configured.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from kage.control import protocol
from kage.core.errors import KageError
from kage.core.events import Event, ServerChanged
from kage.core.servers import ServerStatus, described

MAX_CALLERS = 32
_BEHIND = 1 << 20  # bytes a caller may be behind before it is cut off
_PATIENCE = 10.0  # seconds a caller may take to read one answer


class Watched(Protocol):
    """What the listener needs of ``agent.host.Host``."""

    @property
    def workspace(self) -> Path:
        """The folder the conversation is about."""
        ...

    def servers(self) -> tuple[ServerStatus, ...]:
        """Give every configured server."""
        ...

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``listener`` with each event; the result ends it."""
        ...

    async def restart_server(self, name: str, *, fresh: bool) -> None:
        """Restart a server make-before-break; raises KageError."""
        ...


class Listener:
    """Serves one socket; a caller that misbehaves costs only its own connection.

    Args:
        runtime: The folder of the sockets; made if it is missing.
        redact: Takes secrets out of what is told.
        trouble: Told, once, when there can be no socket.
    """

    def __init__(
        self, runtime: Path, *, redact: Callable[[str], str], trouble: Callable[[str], None]
    ) -> None:
        self._path = protocol.socket_path(runtime, os.getpid())
        self._redact = redact
        self._trouble = trouble
        self._server: asyncio.Server | None = None
        self._callers: set[asyncio.Task[None]] = set()

    async def start(self, host: Watched) -> None:
        """Open the socket; where that fails, kage goes on without it."""
        self._host = host
        try:
            _own_folder(self._path.parent)
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()  # of an earlier process with the same number
            self._server = await asyncio.start_unix_server(
                self._accept, sock=_bound(self._path), limit=protocol.MAX_LINE
            )
        except OSError as error:
            self._trouble(f"{self._path}: {error.strerror or error}")

    async def close(self) -> None:
        """Hang up and take the socket away."""
        if self._server is None:
            return
        self._server.close()
        for task in self._callers:
            task.cancel()
        if self._callers:
            await asyncio.wait(self._callers, timeout=1)
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._callers) >= MAX_CALLERS:
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._callers.add(task)
        task.add_done_callback(self._callers.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        caller = _Caller(self._host, writer, self._redact)
        try:
            while raw := await reader.readline():
                await caller.take(raw)
        except (OSError, ValueError):  # it hung up, or sent a line without end
            pass
        finally:
            caller.leave()
            writer.close()


class _Caller:
    """One connection to the socket."""

    def __init__(
        self, host: Watched, writer: asyncio.StreamWriter, redact: Callable[[str], str]
    ) -> None:
        self._host = host
        self._writer = writer
        self._redact = redact
        self._unsubscribe: Callable[[], None] | None = None

    async def take(self, raw: bytes) -> None:
        """Answer one line."""
        try:
            message = protocol.parse(raw)
        except ValueError as error:
            await self._send({"id": None, "error": _error(protocol.PARSE_ERROR, str(error))})
            return
        if "id" not in message:
            return
        try:
            answer = {"result": await self._answer(message)}
        except _Unknown as error:
            answer = {"error": _error(error.code, str(error))}
        except KageError as error:
            fields = {"what": error.what, "why": error.why, "fix": error.fix}
            answer = {"error": {**_error(protocol.FAILED, str(error)), "data": fields}}
        await self._send({"id": message["id"], **answer})
        if message.get("method") == "watch" and self._unsubscribe is None:
            self._unsubscribe = self._host.subscribe(self._tell)

    def leave(self) -> None:
        """Hear of no more events."""
        if self._unsubscribe is not None:
            self._unsubscribe()

    async def _answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        match message.get("method"):
            case "status" | "watch":
                return {
                    "pid": os.getpid(),
                    "workspace": str(self._host.workspace),
                    "servers": [
                        described(status, now=time.monotonic()) for status in self._host.servers()
                    ],
                }
            case "restart":
                params = message.get("params")
                name = params.get("name") if isinstance(params, dict) else None
                if not isinstance(params, dict) or not isinstance(name, str):
                    raise _Unknown(protocol.BAD_PARAMS, "restart needs a name")
                await self._host.restart_server(name, fresh=params.get("fresh") is True)
                return {"restarted": name}
            case method:
                raise _Unknown(protocol.NOT_FOUND, f"there is no method {str(method)[:100]!r}")

    def _tell(self, event: Event) -> None:
        if not isinstance(event, ServerChanged):
            return
        transport = self._writer.transport
        if transport.get_write_buffer_size() > _BEHIND:
            transport.abort()  # it does not read; a watcher may call again
            return
        params = {
            "server": described(event.status, now=time.monotonic()),
            "previous": event.previous.value if event.previous is not None else None,
        }
        self._write({"method": "changed", "params": params})

    async def _send(self, message: Mapping[str, Any]) -> None:
        self._write(message)
        async with asyncio.timeout(_PATIENCE):
            await self._writer.drain()

    def _write(self, message: Mapping[str, Any]) -> None:
        self._writer.write(self._redact(protocol.line(message).decode()).encode())


class _Unknown(Exception):
    """The request names nothing there is."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def _error(code: int, text: str) -> dict[str, Any]:
    return {"code": code, "message": text}


def _bound(path: Path) -> socket.socket:
    """Bind ``path`` so that nobody else can open it, not even for a moment."""
    found = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        with protocol.reachable(path) as short:
            found.bind(short)
    except OSError:
        found.close()
        raise
    finally:
        os.umask(before)
    return found


def _own_folder(folder: Path) -> None:
    """Make ``folder`` the person's alone.

    Raises:
        OSError: it belongs to somebody else.
    """
    for place in (folder.parent, folder):
        place.mkdir(mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(1, "the folder is not yours", str(folder))
    if found.st_mode & 0o077:
        os.chmod(folder, 0o700)
