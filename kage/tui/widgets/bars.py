"""The two lines that always tell how things stand: the header and the status line."""

from __future__ import annotations

from rich.cells import cell_len
from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget

from kage.core.gate import Mode
from kage.core.servers import ServerState, ServerStatus
from kage.tui.status import BROKEN, Status, settled
from kage.tui.text import MUTED, duration, elide_start, home_short, shown
from kage.tui.transcript.cells import clip

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Header(Widget):
    """Workspace, title and servers on one line."""

    def __init__(self, status: Status, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._status = status

    def render(self) -> RenderResult:
        """Draw the line for the current width."""
        width = self.size.width
        servers = server_line(self._status.shown_servers(), max(0, width * 3 // 5))
        room = max(0, width - servers.cell_length - 3)
        return spread(_place(self._status, room), servers, width)


def _place(status: Status, room: int) -> Content:
    if room < 12:
        return Content.styled(" kage", "bold $accent")
    folder = home_short(status.workspace)
    title = shown(status.title, 200)
    folder = elide_start(folder, max(4, min(len(folder), room - 8)))
    rest = room - cell_len(folder) - 9
    if title and rest >= 8:
        title = clip(title, rest)
        return Content.assemble((" kage", "bold $accent"), f"  {folder}", (f" · {title}", MUTED))
    return Content.assemble((" kage", "bold $accent"), f"  {folder}")


def server_line(servers: tuple[ServerStatus, ...], room: int) -> Content:
    """Name each server with its tools, ``…`` while it starts and ``!`` when it failed.

    Too many for ``room`` become a count; those that need a look are still named.
    """
    if not servers:
        return Content.styled("no servers ", MUTED)
    done, known = settled(servers)
    counter = f"{known - done} starting  " if done < known else ""
    whole = Content.assemble((counter, MUTED), _join(servers), " ")
    if whole.cell_length <= room:
        return whole
    broken = tuple(server for server in servers if server.state in BROKEN)
    tools = sum(server.tools for server in servers)
    count = f"{len(servers)} servers · {tools} tools"
    named = Content.assemble((counter, MUTED), f"{count} · ", _join(broken), " ")
    if broken and named.cell_length <= room:
        return named
    mark = ("" if not broken else f" · {len(broken)} !", "bold $error")
    short = Content.assemble((counter, MUTED), count, mark, " ")
    return short if short.cell_length <= room else Content.assemble(f"{len(servers)}", mark, " ")


def _join(servers: tuple[ServerStatus, ...]) -> Content:
    return Content.styled(" · ", MUTED).join(map(_server, servers))


def _server(server: ServerStatus) -> Content:
    name = shown(server.name, 32)
    match server.state:
        case ServerState.CONNECTED | ServerState.DRAINING:
            return Content.assemble(name, (f" {server.tools}", MUTED))
        case ServerState.CONNECTING:
            return Content.styled(f"{name} …", MUTED)
        case ServerState.FAILED | ServerState.NEEDS_AUTH | ServerState.UNTRUSTED:
            return Content.styled(f"{name} !", "bold $error")
        case ServerState.IDLE | ServerState.STOPPED | ServerState.DISABLED:
            return Content.styled(f"{name} –", MUTED)


class StatusBar(Widget):
    """Model, context, cost and mode; what the run is doing; the keys worth knowing."""

    def __init__(self, status: Status, hints: tuple[str, ...], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._status = status
        self._hints = hints

    def render(self) -> RenderResult:
        """Draw the line for the current width; hints that have no room are left out."""
        width = self.size.width
        left = self._left()
        room = width - left.cell_length - 2
        status = self._status
        if status.waiting or status.running:
            return spread(left, self._busy(), width)
        for count in range(len(self._hints), 0, -1):
            hints = Content.styled(f"{'   '.join(self._hints[:count])} ", MUTED)
            if hints.cell_length <= room:
                return spread(left, hints, width)
        return spread(left, Content(), width)

    def _left(self) -> Content:
        status = self._status
        model = shown(status.model, 60).partition(":")[2] or shown(status.model, 60)
        parts = [Content(model or ("choosing a model…" if not status.ready else "no model"))]
        if status.context is not None:
            full = status.context >= 0.8
            parts.append(Content.styled(f"context {_share(status)}", "$warning" if full else ""))
        elif status.tokens:
            parts.append(Content(f"{status.tokens:,} tokens"))
        if status.cost is not None:
            parts.append(Content(f"${status.cost:.2f}"))
        usual = status.mode is Mode.DEFAULT
        parts.append(Content.styled(f"mode {status.mode.value}", "" if usual else "bold $warning"))
        return Content.assemble(" ", Content.styled(" · ", MUTED).join(parts))

    def _busy(self) -> Content:
        status = self._status
        if status.waiting:
            one = "a call waits" if status.waiting == 1 else f"{status.waiting} calls wait"
            return Content.styled(f"{one} for your answer ", "bold $warning")
        frame = FRAMES[int(status.elapsed * 4) % len(FRAMES)]
        what = shown(status.activity, 40) or "working"
        line = f"{frame} {what} · {duration(max(1.0, status.elapsed))} · "
        return Content.assemble((line, "$accent"), ("esc interrupts ", MUTED))


def _share(status: Status) -> str:
    """Spell how full the window is; something in it is never nothing."""
    share = status.context or 0.0
    return "<1%" if status.tokens and share < 0.005 else f"{share:.0%}"


def spread(left: Content, right: Content, width: int) -> Content:
    """Put ``left`` and ``right`` at the ends of a line; the right end wins when it is tight."""
    if width <= 0:
        return Content()
    room = width - right.cell_length
    if room < 1:
        return right.truncate(width)
    return Content.assemble(left.truncate(room, pad=True), right)
