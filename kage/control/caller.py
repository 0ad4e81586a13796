"""Another shell's end of the control socket: find running kages, ask one, watch one."""

from __future__ import annotations

import contextlib
import socket
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kage.control import protocol
from kage.core.errors import KageError

_PATIENCE = 5.0  # seconds to connect, and to be answered
RESTART_TIME = 600.0  # seconds; a restart takes as long as the server's own timeout


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """One kage that answered."""

    pid: int
    workspace: Path
    servers: tuple[dict[str, Any], ...]  # as ``core.servers.described`` gives them
    socket: Path


def running(runtime: Path) -> tuple[Running, ...]:
    """Find every kage that answers, oldest process first; sockets of dead ones are removed."""
    found = []
    for path in sorted(runtime.glob("kage-*.sock"), key=lambda path: protocol.pid_of(path) or 0):
        if protocol.pid_of(path) is None:
            continue
        try:
            if not stat.S_ISSOCK(path.lstat().st_mode):
                continue
            with contextlib.closing(_Line(path)) as line:
                found.append(_running(path, line.ask("status")))
        except ConnectionRefusedError:  # nobody listens any more
            with contextlib.suppress(OSError):
                path.unlink()
        except (OSError, KageError):  # it is just going, or hangs: not one to talk to
            continue
    return tuple(found)


def restart(kage: Running, name: str, *, fresh: bool) -> None:
    """Have ``kage`` restart a server and wait for the outcome.

    Raises:
        KageError: it did not work out; the kage says why.
    """
    with _line(kage) as line:
        line.ask("restart", {"name": name, "fresh": fresh}, patience=RESTART_TIME)


def watch(kage: Running) -> Iterator[Running | dict[str, Any]]:
    """Give the state of ``kage`` now, then each change (``server``, ``previous``), until it ends.

    Raises:
        KageError: it cannot be reached.
    """
    with _line(kage) as line:
        yield _running(kage.socket, line.ask("watch"))
        line.wait_for_ever()
        for message in line.rest():
            if message.get("method") == "changed" and isinstance(message.get("params"), dict):
                yield message["params"]


@contextlib.contextmanager
def _line(kage: Running) -> Iterator[_Line]:
    try:
        line = _Line(kage.socket)
    except OSError as error:
        reason = error.strerror or str(error)
        raise KageError(f"The kage with pid {kage.pid} does not answer", why=reason) from None
    with contextlib.closing(line):
        yield line


def _running(path: Path, answer: Mapping[str, Any]) -> Running:
    pid, workspace, servers = (answer.get(key) for key in ("pid", "workspace", "servers"))
    if not isinstance(pid, int) or not isinstance(workspace, str) or not isinstance(servers, list):
        raise KageError("A running kage answered in a way this one does not understand")
    return Running(
        pid=pid,
        workspace=Path(workspace),
        servers=tuple(server for server in servers if isinstance(server, dict)),
        socket=path,
    )


class _Line:
    """One connection; raises OSError when it cannot be made."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.settimeout(_PATIENCE)
            with protocol.reachable(path) as short:
                self._socket.connect(short)
        except OSError:
            self._socket.close()
            raise
        self._file = self._socket.makefile("rb")

    def ask(
        self, method: str, params: Mapping[str, Any] | None = None, *, patience: float = _PATIENCE
    ) -> dict[str, Any]:
        """Send one request and give its result.

        Raises:
            KageError: it failed, or no answer came.
        """
        self._socket.settimeout(patience)
        try:
            self._socket.sendall(protocol.line({"id": 1, "method": method, "params": params or {}}))
            for message in self.rest():
                if message.get("id") == 1:
                    return _result(message)
        except TimeoutError:
            raise KageError(f"The running kage did not answer within {patience:g} s") from None
        except OSError as error:
            raise KageError("The running kage hung up", why=error.strerror or "") from None
        raise KageError("The running kage ended before it answered")

    def wait_for_ever(self) -> None:
        """Let messages come when they come."""
        self._socket.settimeout(None)

    def rest(self) -> Iterator[dict[str, Any]]:
        """Give every message that comes, until the other end hangs up."""
        while raw := self._file.readline(protocol.MAX_LINE):
            try:
                message = protocol.parse(raw)
            except ValueError:
                return
            yield message

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._socket.close()


def _result(message: Mapping[str, Any]) -> dict[str, Any]:
    error = message.get("error")
    if isinstance(error, dict):
        data = error.get("data")
        told = data if isinstance(data, dict) else {"what": error.get("message", "It failed")}
        raise KageError(
            str(told.get("what", "")), why=str(told.get("why", "")), fix=str(told.get("fix", ""))
        )
    result = message.get("result")
    return result if isinstance(result, dict) else {}
