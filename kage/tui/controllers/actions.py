"""What the keys of the chat do."""

from __future__ import annotations

import time
from typing import Protocol

from kage.core.commands import Interrupt
from kage.tui.controllers.approvals import Approvals
from kage.tui.controllers.sheets import Sheets, Stage
from kage.tui.screens.chat import ChatScreen
from kage.tui.status import Status

ARMED = 2.0  # seconds in which a second ctrl+c quits


class Door(Stage, Protocol):
    """What the actions need of the app."""

    approvals: Approvals

    def leave(self) -> None:
        """Close everything and leave."""
        ...

    def close_sheet(self) -> bool:
        """Close the screen over the chat; False when there is none."""
        ...

    def copy_to_clipboard(self, text: str) -> None:
        """Put text on the clipboard."""
        ...


class Actions:
    """Does actions by their name in the keymap."""

    def __init__(self, *, stage: Door, chat: ChatScreen, status: Status, sheets: Sheets) -> None:
        self._stage = stage
        self._chat = chat
        self._status = status
        self._sheets = sheets
        self._armed_at = -ARMED
        self._unfolded = False

    def do(self, action: str, argument: str = "") -> None:
        """Do what an action of the chat or a command says."""
        view = self._chat.transcript
        match action:
            case "quit":
                self._stage.leave()
            case "cancel":
                self._cancel()
            case "interrupt":
                self._interrupt()
            case "servers" | "server_log":
                self._sheets.servers(argument, log=action == "server_log")
            case "models":
                self._sheets.models()
            case "sessions":
                self._sheets.sessions()
            case "undo":
                self._sheets.undo()
            case "unknown":
                self._sheets.unknown()
            case "help" | "keys":
                self._sheets.help()
            case "page_up":
                view.scroll_page_up(animate=False)
            case "page_down":
                view.scroll_page_down(animate=False)
            case "top":
                view.scroll_home(animate=False)
            case "follow":
                view.follow()
            case "fold":
                self._chat.fold_last_call()
            case "fold_all":
                self._unfolded = not self._unfolded
                self._chat.fold_all(unfolded=self._unfolded)

    def _cancel(self) -> None:
        """Close what is open, else clear the draft, else interrupt, else arm quit."""
        chat, stage = self._chat, self._stage
        if stage.close_sheet():
            return
        selected = chat.get_selected_text() or chat.prompt.selected_text
        if selected:
            stage.copy_to_clipboard(selected)
            chat.clear_selection()
        elif chat.panel.saying:
            stage.approvals.say(None)
        elif chat.prompt.text:
            chat.prompt.recall.add(chat.prompt.take())
        elif self._status.running or stage.approvals.waiting or chat.prompts_wait:
            self._interrupt()
        elif chat.remark_line.topic == "armed" and time.monotonic() - self._armed_at < ARMED:
            stage.leave()
        else:
            self._armed_at = time.monotonic()
            chat.remark("ctrl+c again quits", topic="armed")
            chat.set_timer(ARMED, lambda: chat.drop_remark("armed"))

    def _interrupt(self) -> None:
        if self._status.running or self._stage.approvals.waiting or self._chat.prompts_wait:
            self._stage.send(Interrupt())
            self._chat.remark("interrupting …", topic="interrupt")
