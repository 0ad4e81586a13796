"""What stands where the conversation will be: model, folder, mode, servers, recent sessions."""

from __future__ import annotations

import time
from dataclasses import dataclass

from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget

from kage.core.servers import ServerState, ServerStatus
from kage.tui.status import Status
from kage.tui.text import MUTED, ago, home_short, of_server, shown

NAMES = 11  # cells of the left column
RECENT = 3
OFFLINE = "offline"
CONNECT = (
    "To connect one: set ANTHROPIC_API_KEY or OPENAI_API_KEY, start a local server (Ollama, "
    "llama.cpp, LM Studio), or add [providers.<name>] to config.toml.",
    "Until then call any tool by hand:  read path=README.md",
)


@dataclass(frozen=True, slots=True)
class _Line:
    """One entry: a name in the left column, and what is wrapped beside it."""

    name: str
    text: Content


class Welcome(Widget):
    """Draws the empty screen."""

    def __init__(self, status: Status, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._status = status

    def render(self) -> RenderResult:
        """Draw what is known by now."""
        status = self._status
        entries = [
            *_model(status),
            _Line("folder", Content(home_short(status.workspace))),
            _Line("mode", Content(_MODES[status.mode.value])),
            *_servers(tuple(status.servers.values())),
            *_recent(status),
        ]
        room = max(10, self.size.width - NAMES)
        lines = [Content(), Content.styled("kage", "bold $accent"), Content()]
        lines += [line for entry in entries for line in _laid_out(entry, room)]
        for notice in status.notices:
            lines += [Content(), Content.styled(f"! {shown(notice, 600)}", "$warning")]
        return Content("\n").join(lines)


_MODES = {
    "default": "default: what only reads here runs, everything else asks you",
    "ask": "ask: every call asks you",
    "deny": "deny: what would ask is refused",
}


def _laid_out(entry: _Line, room: int) -> list[Content]:
    names = (entry.name, *("" for _ in range(100)))
    return [
        Content.assemble((name.ljust(NAMES), MUTED), line)
        for name, line in zip(names, entry.text.wrap(room), strict=False)
    ]


def _model(status: Status) -> list[_Line]:
    if not status.model:
        return [_Line("model", Content.styled("being chosen …", MUTED))]
    reason = f"  {shown(status.model_reason, 120)}" if status.model_reason else ""
    lines = [_Line("model", Content.assemble(shown(status.model, 80), (reason, MUTED)))]
    if status.model.partition(":")[0] == OFFLINE:
        lines += [_Line("", Content.styled(text, MUTED)) for text in CONNECT]
    return lines


def _servers(servers: tuple[ServerStatus, ...]) -> list[_Line]:
    if not servers:
        hint = "none yet; `kage mcp add` or `kage mcp import` in a shell adds some"
        return [_Line("servers", Content.styled(hint, MUTED))]
    lines = [_server(server) for server in servers[:8]]
    if len(servers) > 8:
        lines.append(Content.styled(f"and {len(servers) - 8} more, see /mcp", MUTED))
    return [_Line("" if index else "servers", line) for index, line in enumerate(lines)]


def _server(server: ServerStatus) -> Content:
    name = shown(server.name, 32)
    match server.state:
        case ServerState.CONNECTED | ServerState.DRAINING:
            return Content.assemble(
                name, (f"  {server.tools} tool{'s' * (server.tools != 1)}", MUTED)
            )
        case ServerState.FAILED:
            fault = server.fault
            what = shown(of_server(server.name, fault.what), 100) if fault else "failed"
            return Content.assemble((f"{name}  ", "bold $error"), (what, "$error"))
        case state:
            return Content.styled(f"{name}  {state.value.replace('_', ' ')}", MUTED)


def _recent(status: Status) -> list[_Line]:
    recent = [info for info in status.recent if info.id != status.session_id and info.messages]
    now = time.time()
    return [
        _Line(
            "" if index else "recent",
            Content.assemble(
                shown(info.title, 60) or "untitled",
                (f"  {ago(now - info.changed)}", MUTED),
                ("" if index else "   /resume", MUTED),
            ),
        )
        for index, info in enumerate(recent[:RECENT])
    ]
