"""The app: wires the controllers to the screen and holds the last line against surprises."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.screen import Screen

from kage.core.commands import Command
from kage.core.errors import KageError
from kage.core.levels import Level
from kage.tui import theme as themes
from kage.tui.controllers.actions import Actions
from kage.tui.controllers.approvals import Approvals
from kage.tui.controllers.desk import PanelDesk
from kage.tui.controllers.link import HostLink
from kage.tui.controllers.prompts import Prompts
from kage.tui.controllers.sheets import Sheets
from kage.tui.controllers.stage import Backstage
from kage.tui.controllers.startup import Startup
from kage.tui.driver import KageDriver
from kage.tui.keymap import ACTIONS, Context, Keymap
from kage.tui.screens.chat import ChatScreen
from kage.tui.status import Status
from kage.tui.transcript.model import TranscriptModel
from kage.tui.widgets.guard import QUIET
from kage.tui.widgets.palette import Palette
from kage.tui.widgets.panel import ApprovalPanel

if TYPE_CHECKING:
    from kage.agent.host import Host
    from kage.core.events import Event
    from kage.tui.controllers.hearing import Hearing

STYLES = ("chat", "prompt", "panel", "rows", "sheets", "form")

log = logging.getLogger("kage.tui")


class KageApp(App[int], inherit_bindings=False):
    """The terminal UI over one host.

    Args:
        make_host: Makes the engine; called after the first frame.
        prepare: Imports what ``make_host`` needs, on a thread.
        keys: The ``[keys]`` table.
        theme: A theme's name, "" for the terminal's own colours.
        workspace: The folder shown until the host is up.
        quiet: Seconds of the approval panel's quiet period.
    """

    CSS_PATH: ClassVar[list[str]] = [f"styles/{name}.tcss" for name in STYLES]  # type: ignore[assignment]  # App declares the union, a list is one of it
    ENABLE_COMMAND_PALETTE = False
    TITLE = "kage"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(action.keys), f"press('{action.id}')", show=False, priority=True)
        for action in ACTIONS
        if action.context is Context.EVERYWHERE
    ]

    def __init__(
        self,
        make_host: Callable[[], Host],
        *,
        keys: Mapping[str, str],
        theme: str,
        workspace: Path | None = None,
        quiet: float = QUIET,
        prepare: Callable[[], object] | None = None,
    ) -> None:
        wanted, problem = themes.choose(theme, os.environ)
        self.set_reactive(App.theme, wanted)  # set later, it has all styles parsed a second time
        super().__init__()
        self.keymap = Keymap(keys)
        told = (*self.keymap.notices, *filter(None, [problem]))
        self.status = Status(workspace=workspace or Path.cwd(), notices=told)
        self.transcript = TranscriptModel()
        self.chat = ChatScreen(keymap=self.keymap, status=self.status, model=self.transcript)
        self.link = HostLink(
            make_host, deliver=self._deliver, later=self.call_later, guard=self.guarded,
            prepare=prepare,
        )  # fmt: skip
        self.sheets = Sheets(
            stage=self, keymap=self.keymap, status=self.status, remark=self.chat.remark,
            write=self._spill,
        )  # fmt: skip
        desk = PanelDesk(self.chat, status=self.status, details=self.sheets.details)
        self.approvals = Approvals(keymap=self.keymap, desk=desk, send=self.link.send, quiet=quiet)
        self._backstage = Backstage(
            stage=self, keymap=self.keymap, quiet=quiet, remark=self.chat.remark,
            spill=self._spill,
        )  # fmt: skip
        self._hearing: Hearing | None = None
        self.actions = Actions(stage=self, chat=self.chat, status=self.status, sheets=self.sheets)
        self.prompts = Prompts(chat=self.chat, status=self.status, stage=self, act=self.actions.do)
        self._startup = Startup(
            chat=self.chat, status=self.status, link=self.link, prompts=self.prompts,
            approvals=self.approvals, guard=self.guarded, post=self.post_message,
            later=self.call_later,
        )  # fmt: skip
        self.crashed: Exception | None = None
        self._leaving = False
        self._background: set[asyncio.Task[None]] = set()

    # start and end

    def get_driver_class(self) -> type[Driver]:
        """Draw on stdout, since stderr belongs to the app log."""
        return KageDriver

    def get_default_screen(self) -> Screen[None]:
        """Start with the chat."""
        return self.chat

    def on_mount(self) -> None:
        """Connect the parts, and begin once the first frame is on the screen."""
        self.chat.painted = self._chat_is_back
        self.chat.call_after_refresh(lambda: self.in_background(self._startup.begin()))

    async def on_event(self, event: events.Event) -> None:
        """Keep what is typed before there is a prompt to type into."""
        if not self._startup.keep(event):
            await super().on_event(event)

    def _spill(self, text: str) -> None:
        self.chat.prompt.type_in(text)

    @property
    def hearing(self) -> Hearing:
        """What hears the engine; the first frame does without."""
        if self._hearing is None:
            from kage.tui.controllers.hearing import Hearing

            self._hearing = Hearing(
                self._backstage, model=self.transcript, status=self.status,
                approvals=self.approvals, surface=self.chat, guard=self.guarded,
                busy=lambda: bool(self.approvals.waiting or self.chat.prompt.text),
            )  # fmt: skip
        return self._hearing

    def _chat_is_back(self) -> None:
        self.approvals.reappear()
        if self._hearing is not None:
            self.call_later(self._hearing.surface)

    @property
    def free(self) -> bool:
        """Whether nothing lies over the chat."""
        return self.screen is self.chat

    @property
    def host(self) -> Host | None:
        """The host, once it is up."""
        return self.link.host

    async def action_press(self, action: str) -> None:
        """Do what a key does that counts on every screen."""
        with self.guarded("doing that"):
            self.actions.do(action)

    def leave(self) -> None:
        """Close the servers, then leave; asked for again, leave at once."""
        if self._leaving:
            self.exit(0)
            return
        self._leaving = True
        again = self.keymap.key("quit")
        self.chat.remark(f"closing …; {again} again gives the terminal back", topic="quit")

        async def close() -> None:
            await self.link.close()
            self.exit(0)

        self.in_background(close())

    def stop_for(self, signal_number: int) -> None:
        """Leave because of a signal or a lost terminal (a hangup); ``run`` closes what is left."""
        self.exit(128 + signal_number, return_code=128 + signal_number)

    # surprises

    @contextlib.contextmanager
    def guarded(self, doing: str) -> Iterator[None]:
        """Report whatever goes wrong inside as a card, and go on."""
        try:
            yield
        except KageError as error:
            log.warning("while %s: %s", doing, error)
            self.hearing.folder.card(Level.ERROR, error.what, error.why, error.fix)
        except Exception:  # the boundary between handlers and the screen: it reports
            log.exception("while %s", doing)
            self.hearing.folder.card(
                Level.ERROR, f"Something in kage went wrong while {doing}", "",
                "The app log has the details. You can go on.",
            )  # fmt: skip

    def _handle_exception(self, error: Exception) -> None:
        """Leave without a traceback; ``run`` tells of it in one line."""
        log.error("the screen failed", exc_info=error)
        self._return_code = 1
        self.crashed = self.crashed or error
        if self._exception is None:  # what tests raise again
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()

    def panic(self, *renderables: object) -> None:
        """Leave: reading the terminal failed."""
        log.error("the terminal cannot be read any more")
        self.stop_for(signal.SIGHUP)

    # commands in, events out

    def send(self, command: Command) -> None:
        """Hand a command to the engine, now or once it is up."""
        self.hearing.folder.asked(command)
        self.link.send(command)
        if self.link.host is None:
            self.chat.show_early(self.link.early_prompts)

    def _deliver(self, batch: list[Event]) -> None:
        from kage.core.events import ServerChanged, ToolsSwapped

        self.hearing.hear(batch)
        if any(isinstance(event, ServerChanged | ToolsSwapped) for event in batch):
            self._refresh_servers()
            self.prompts.outdated()
        if self.approvals.waiting and self.screen is not self.chat:
            self.notify("A tool call waits for your answer in the chat", markup=False)

    def _refresh_servers(self) -> None:
        refresh = getattr(self.screen, "refresh_servers", None)
        if refresh is not None:
            line = self.chat.remark_line
            refresh(line.plain if line.topic == "server" else "")

    def close_sheet(self) -> bool:
        """Close the screen over the chat; False when there is none."""
        if self.screen is self.chat:
            return False
        self.screen.dismiss(None)
        return True

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` beside everything else."""

        async def guarded() -> None:
            with self.guarded("working in the background"):
                await work

        # no worker of Textual's: one that is cancelled before it began warns on the terminal
        task = asyncio.create_task(guarded())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def on_unmount(self) -> None:
        """Let go of what still runs beside the app; the host is closed by ``run``."""
        for task in self._background:
            task.cancel()

    # messages of the widgets

    def on_chat_screen_act(self, message: ChatScreen.Act) -> None:
        """A key of the chat was pressed."""
        with self.guarded("doing that"):
            self.actions.do(message.action)

    def on_servers_screen_wanted(self, message: Any) -> None:  # Any: its module is not loaded yet
        """Something is to be done to a server."""
        self.sheets.server(message.verb, message.name)
        self._refresh_servers()

    def on_palette_clicked(self, message: Palette.Clicked) -> None:
        """An entry of the palette was clicked."""
        self.prompts.clicked(message.index)

    def on_approval_panel_clicked(self, message: ApprovalPanel.Clicked) -> None:
        """An answer was clicked."""
        with self.guarded("answering"):
            self.approvals.click(message.action, message.pressed_at)

    def on_approval_panel_said(self, message: ApprovalPanel.Said) -> None:
        """Answer 5 was written."""
        with self.guarded("answering"):
            self.approvals.say(message.text)

    def on_app_focus(self) -> None:
        """The terminal got the focus: what brought it never answers."""
        self.approvals.reappear()
        self.chat.call_after_refresh(self.chat.settle_focus)
