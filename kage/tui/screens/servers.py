"""The servers: how each one is doing and why, its tools and what it wrote to stderr."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from rich.cells import set_cell_size
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from kage.core.sanitise import visible
from kage.core.servers import ServerState, ServerStatus, deprecation
from kage.core.tools import ToolSpec
from kage.tui.controllers.servers import exit_words
from kage.tui.keymap import Context, Keymap
from kage.tui.text import MUTED, ago, of_server, shown
from kage.tui.widgets.rows import Row, Rows, RowsView, Span, row

_COLOURS = {
    ServerState.CONNECTED: "$success",
    ServerState.DRAINING: "$success",
    ServerState.CONNECTING: "$warning",
    ServerState.FAILED: "bold $error",
    ServerState.NEEDS_AUTH: "bold $warning",
    ServerState.UNTRUSTED: "bold $warning",
}
_NEEDY = (ServerState.FAILED, ServerState.NEEDS_AUTH, ServerState.UNTRUSTED)
_TOOL_TEXT = 200_000  # characters of descriptions on one screen, shared by the tools
_LEAST_TEXT = 300  # characters of one, however many there are
_COLUMNS = (14, 11, 6, 11, 6)  # name, state, transport, protocol, tools


class Marks(Protocol):
    """What is remembered of tools."""

    def broken_claim(self, spec: ToolSpec) -> str:
        """Say what is known against the word of a tool, "" for nothing."""
        ...


class ServerSource(Protocol):
    """Where the screen gets what it shows; ``Host`` is one."""

    def servers(self) -> tuple[ServerStatus, ...]:
        """Give every server."""
        ...

    def server_log(self, name: str) -> tuple[str, ...]:
        """Give the last stderr lines of a server."""
        ...

    def tools(self) -> tuple[ToolSpec, ...]:
        """Give the tools of all servers."""
        ...

    def unlisted(self) -> frozenset[str]:
        """Give the tools requests only name, until the model finds them by search."""
        ...

    @property
    def undo(self) -> Marks:
        """Give what is known against the word of tools."""
        ...


class ServersScreen(ModalScreen[None]):
    """A row per server and, below, what there is to know about the marked one."""

    AUTO_FOCUS = "OptionList"

    class Wanted(Message):
        """Something is to be done to a server: ``restart``, ``enable`` or ``disable``."""

        def __init__(self, verb: str, name: str) -> None:
            super().__init__()
            self.verb = verb
            self.name = name

    def __init__(
        self, source: ServerSource, keymap: Keymap, *, name: str = "", log: bool = False
    ) -> None:
        super().__init__()
        self._source = source
        self._keymap = keymap
        self._wanted_name = name
        self._log = log
        self._servers: tuple[ServerStatus, ...] = ()

    def compose(self) -> ComposeResult:
        """Make the parts."""
        keys = self._keymap
        hints = " · ".join(
            f"{keys.key(action)} {text}"
            for action, text in (
                ("server_restart", "restart"),
                ("server_enable", "enable"),
                ("server_disable", "disable"),
                ("server_login", "sign in"),
                ("server_trust", "trust"),
                ("server_pins", "changes"),
                ("server_view", "tools or log"),
                ("close", "back"),
            )
            if keys.key(action)
        )
        with Vertical(classes="sheet"):
            yield Static(Content.styled("Servers", "bold $accent"), classes="sheet-title")
            yield Static(_heading(), id="servers-heading")
            yield OptionList(id="servers-list")
            yield RowsView(id="servers-detail")
            yield Static(Content.styled(hints, MUTED), classes="sheet-note")

    def on_mount(self) -> None:
        """Fill in the servers."""
        self.refresh_servers()

    def refresh_servers(self, remark: str = "") -> None:
        """Read everything again; the marked server stays marked.

        Args:
            remark: What is being done to a server, or was just done.
        """
        options = self.query_one(OptionList)
        name = self._wanted_name or (self._marked.name if self._marked is not None else "")
        self._wanted_name = ""
        self._servers = self._source.servers()
        head, said = ("Servers", "bold $accent"), shown(remark) or _tally(self._servers)
        title = Content.assemble(head, f"   {said}")
        self.query_one(".sheet-title", Static).update(title)
        lines = [Option(_line(server)) for server in self._servers]
        if len(lines) == options.option_count:
            for index, option in enumerate(lines):
                options.replace_option_prompt_at_index(index, option.prompt)
        else:
            options.clear_options()
            options.add_options(lines)
        names = [server.name for server in self._servers]
        if self._servers:
            marked = options.highlighted if options.highlighted is not None else self._first()
            options.highlighted = names.index(name) if name in names else marked
        self._show_detail(keep_place=True)

    def _first(self) -> int:
        """Give the first server that needs a person, else the first of all."""
        states = [server.state for server in self._servers]
        return next((place for place, state in enumerate(states) if state in _NEEDY), 0)

    @property
    def _marked(self) -> ServerStatus | None:
        index = self.query_one(OptionList).highlighted
        return self._servers[index] if index is not None and index < len(self._servers) else None

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show the marked server."""
        event.stop()
        self._show_detail()

    def on_key(self, event: events.Key) -> None:
        """Do what the keymap says to the marked server."""
        action = self._keymap.find(Context.SERVERS, event.key, event.character)
        if action is None:
            listed = self._keymap.find(Context.LIST, event.key)
            if listed == "close":
                event.stop()
                self.dismiss(None)
            elif listed in ("list_page_up", "list_page_down"):
                event.stop()
                event.prevent_default()
                view = self.query_one(RowsView)
                step = max(1, view.size.height - 1)
                view.scroll_relative(y=step if listed == "list_page_down" else -step, animate=False)
            return
        event.stop()
        event.prevent_default()
        marked = self._marked
        if action == "server_view":
            self._log = not self._log
            self._show_detail()
        elif marked is not None:
            self.post_message(self.Wanted(action.removeprefix("server_"), marked.name))

    def _show_detail(self, *, keep_place: bool = False) -> None:
        view = self.query_one(RowsView)
        marked = self._marked
        if marked is None:
            view.show((row(Span(NONE, "muted"), words=True),))
            return
        rows = [*_facts(marked), row("")]
        rows += self._log_rows(marked) if self._log else self._tool_rows(marked)
        view.show(tuple(rows), keep_place=keep_place)

    def _log_rows(self, server: ServerStatus) -> Rows:
        lines = self._source.server_log(server.name)
        if not lines:
            return (row(Span("nothing on stderr", "muted")),)
        head = row(Span(f"stderr, the last {len(lines)} lines, newest first", "strong"))
        return (head, *(row(visible(line, single_line=False)) for line in reversed(lines)))

    def _tool_rows(self, server: ServerStatus) -> Rows:
        from kage.permissions.scanners import definition_flags, instruction_flags

        tools = [
            tool
            for tool in self._source.tools()
            if tool.server is not None and tool.server.server == server.name
        ]
        unlisted = self._source.unlisted()
        searched = sum(tool.name in unlisted for tool in tools)
        rows = [
            row(Span(f"{len(tools)} tool{'s' * (len(tools) != 1)}", "strong"), _found(searched))
        ]
        rows += [row(Span(f"held: {shown(held, 400)}", "warning")) for held in server.held]
        rows += _flagged("in its instructions: ", instruction_flags(server.instructions))
        each = max(_LEAST_TEXT, _TOOL_TEXT // max(1, len(tools)))
        for tool in tools:
            assert tool.server is not None
            name = shown(tool.server.original, 60)
            said = shown(tool.full_description or tool.description, each)
            rows.append(row(Span(name, "key"), f"  {said}", hang="    ", words=True))
            rows += _flagged("", definition_flags(tool))
            if mark := self._source.undo.broken_claim(tool):
                rows.append(row(Span(f"    ⚠ {shown(mark, 300)}", "warning"), words=True))
        rows += [
            row(Span(f"left out: {shown(reason, 400)}", "warning")) for reason in server.dropped
        ]
        return tuple(rows)


NONE = "No server is configured. In a shell:  kage mcp add NAME -- COMMAND   or   kage mcp import"


def _tally(servers: Sequence[ServerStatus]) -> str:
    """Count the servers by state, "" for a few that are all seen at once."""
    states = Counter(server.state.value.replace("_", " ") for server in servers)
    return " · ".join(f"{count} {state}" for state, count in states.items()) if servers[9:] else ""


def _flagged(where: str, flags: Iterable[object]) -> list[Row]:
    """Say what scanners saw, a row each."""
    return [
        row(Span(f"    ⚠ {where}{shown(str(flag), 300)}", "warning"), hang="      ", words=True)
        for flag in flags
    ]


def _found(count: int) -> str:
    """Say how many tools the model has to search for, "" for none."""
    return f", {count:,} of them found by search (mcp_tools)" if count else ""


def _heading() -> Content:
    names = ("name", "state", "via", "protocol", "tools", "command")
    cells = [set_cell_size(name, size) for name, size in zip(names, _COLUMNS, strict=False)]
    return Content.styled("  ".join([*cells, names[-1]]), MUTED)


def _line(server: ServerStatus) -> Content:
    texts = (
        (shown(server.name, 32), "bold"),
        (server.state.value.replace("_", " "), _COLOURS.get(server.state, MUTED)),
        (server.transport, MUTED),
        (shown(server.protocol, 12), MUTED),
        (str(server.tools) if server.tools else "", ""),
    )
    cells = [
        Content.styled(set_cell_size(text, size), style)
        for (text, style), size in zip(texts, _COLUMNS, strict=True)
    ]
    fault = of_server(server.name, server.fault.what) if server.fault is not None else ""
    tail = Content.styled(shown(fault or server.command, 300), "$error" if fault else MUTED)
    return Content("  ").join([*cells, tail])


def _facts(server: ServerStatus) -> list[Row]:
    facts = [
        ("command", server.command),
        ("from", server.origin),
        ("transport", _transport(server)),
        ("version", server.version),
        ("process", str(server.pid) if server.pid is not None else ""),
        ("offers", _beside_tools(server)),
        ("since", ago(max(0.0, time.monotonic() - server.since))),
    ]
    rows = [
        row(Span(name.ljust(10), "muted"), shown(text, 1000), hang=" " * 10, words=True)
        for name, text in facts
        if text
    ]
    if server.stray_lines:
        stray = f"{server.stray_lines} lines on stdout were no protocol"
        rows.append(row(Span(stray, "warning")))
    fault = _fault(server)
    return [*fault, row(""), *rows] if fault else rows


def _transport(server: ServerStatus) -> str:
    """Say what speaks against how it is reached, "" for nothing."""
    advice = deprecation(server.transport)
    return f"{server.transport} is deprecated: {advice}" if advice else ""


def _beside_tools(server: ServerStatus) -> str:
    """Count what it offers beside tools, "" for nothing."""
    counts = {
        "prompt": server.prompts, "resource": server.resources, "template": server.templates,
    }  # fmt: skip
    return ", ".join(
        f"{count:,} {word}{'s' * (count != 1)}" for word, count in counts.items() if count
    )


def _fault(server: ServerStatus) -> list[Row]:
    fault = server.fault
    if fault is None:
        return []
    ended = exit_words(fault.exit_code)
    where = f"stage: {fault.stage.value}"
    if ended and ended not in fault.what:
        where += f", {ended}"
    rows = [
        row(
            Span(shown(fault.what, 1000), "error"),
            Span(f"  ({where})", "muted"),
            hang="  ",
            words=True,
        )
    ]
    rows += [row(line, hang="  ", words=True) for line in visible(fault.why).split("\n") if line]
    if fault.fix:
        rows.append(row(Span(shown(fault.fix, 1000), "good"), hang="  ", words=True))
    return rows
