"""What a person asked of a server and has not heard the end of: told once when it is done."""

from __future__ import annotations

from collections.abc import Callable

from kage.core.commands import Command, EnableServer, LoginServer, RestartServer
from kage.core.servers import ServerState, ServerStatus
from kage.tui.text import shown


class ServerWishes:
    """Follows restarts, starts and stops from the wish to their end.

    Failures are told elsewhere (by the server's card or the error of the command), so that here
    they only end the waiting.

    Args:
        say: Shows a passing line; "" takes it away.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._open: dict[str, tuple[str, int | None]] = {}  # what, and the process it had

    def asked(self, command: Command, servers: dict[str, ServerStatus]) -> None:
        """A command goes to the engine; only those for servers matter here."""
        match command:
            case RestartServer(name=name):
                verb = "restart"
            case EnableServer(name=name, enabled=enabled):
                verb = "enable" if enabled else "disable"
            case LoginServer(name=name):
                self._say(f"asking where to sign in to {shown(name, 40)} …")
                return
            case _:
                return
        server = servers.get(name)
        if server is None or _is_so_already(verb, server.state):
            if server is not None:
                self._say(f"{shown(name, 40)} is {server.state.value.replace('_', ' ')} already")
            return
        self._open[name] = (verb, server.pid)
        self._say(f"{_DOING[verb]} {shown(name, 40)} …")

    def changed(self, server: ServerStatus) -> None:
        """A server is in another state: its wish may have come true, or failed."""
        verb, pid = self._open.get(server.name, ("", None))
        if not verb:
            return
        name = shown(server.name, 40)
        tools = f"{server.tools} tool{'s' * (server.tools != 1)}"
        match verb, server.state:
            case "restart", ServerState.CONNECTED if server.pid != pid:
                self._end(server.name, f"{name} is restarted: {tools}")
            case "enable", ServerState.CONNECTED:
                self._end(server.name, f"{name} is up: {tools}")
            case "disable", ServerState.DISABLED:
                self._end(server.name, f"{name} is disabled for this session")
            case _, ServerState.FAILED | ServerState.NEEDS_AUTH | ServerState.UNTRUSTED:
                self._end(server.name, "")

    def failed(self) -> None:
        """A command failed, and a card says so: nothing is awaited of a server any more."""
        if self._open:
            self._open.clear()
            self._say("")

    def _end(self, name: str, words: str) -> None:
        del self._open[name]
        self._say(words)


_DOING = {"restart": "restarting", "enable": "starting", "disable": "stopping"}


def _is_so_already(verb: str, state: ServerState) -> bool:
    up = (ServerState.CONNECTED, ServerState.CONNECTING, ServerState.DRAINING)
    return (verb == "enable" and state in up) or (
        verb == "disable" and state is ServerState.DISABLED
    )
