"""From the first frame to a host that is up; what is typed meanwhile is kept."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any

from textual import events

from kage.core.commands import Command, SubmitPrompt
from kage.core.content import as_text
from kage.tui.controllers.approvals import Approvals
from kage.tui.controllers.link import HostLink
from kage.tui.controllers.prompts import Prompts
from kage.tui.controllers.typing import Typing
from kage.tui.screens.chat import ChatScreen
from kage.tui.status import Status

_DRAWING = 0.5  # seconds the host waits at most for what was typed before it to be drawn


class Startup:
    """Connects the keys and starts the host, once.

    Args:
        chat: The screen.
        status: Filled from the host.
        link: Starts the host.
        prompts: Told what is typed.
        approvals: See keys before the prompt and the panel use them.
        guard: Reports what goes wrong inside it.
        post: Puts an event back on the app's queue.
        later: Runs something on that queue.
    """

    def __init__(
        self,
        *,
        chat: ChatScreen,
        status: Status,
        link: HostLink,
        prompts: Prompts,
        approvals: Approvals,
        guard: Callable[[str], AbstractContextManager[None]],
        post: Callable[[events.Event], object],
        later: Callable[[Callable[[], object]], object],
    ) -> None:
        self._chat = chat
        self._status = status
        self._link = link
        self._prompts = prompts
        self._approvals = approvals
        self._guard = guard
        self._post = post
        self._later = later
        self._typed: list[events.Event] | None = []  # None: there is a prompt to type into

    def keep(self, event: events.Event) -> bool:
        """Keep what is typed before there is a prompt; False when there is one."""
        if self._typed is None or not isinstance(event, events.Key | events.Paste):
            return False
        self._typed.append(event)
        return True

    def begin(self) -> Coroutine[Any, Any, None]:
        """Make the prompt usable, now that it is on the screen; gives what starts the host."""
        self._connect()
        typed, self._typed = self._typed or [], None
        for event in typed:
            self._post(event)
        return self._start()

    def _connect(self) -> None:
        prompt, panel = self._chat.prompt, self._chat.panel
        prompt.intercept = lambda event: self._ask_approvals(event, in_panel=False)
        panel.intercept = lambda event: self._ask_approvals(event, in_panel=True)
        prompt.on_pasted = self._approvals.pasted
        prompt.typist = Typing(chat=self._chat, prompts=self._prompts, guard=self._guard)

    def _ask_approvals(self, event: events.Key, *, in_panel: bool) -> bool:
        taken = True  # a key whose handling failed answers nothing and types nothing
        with self._guard("answering"):
            taken = self._approvals.key(event, in_panel=in_panel)
        return taken

    async def _start(self) -> None:
        await self._drawn()
        up = await self._link.start()
        host, status = self._link.host, self._status
        status.ready = True
        self._chat.show_early(self._link.early_prompts)
        if not up or host is None:
            for command in self._link.recall_early():
                self._chat.restore_draft(_text(command))
            self._chat.status_changed()
            return
        status.workspace, status.mode = host.workspace, host.mode
        status.model = status.model or host.model
        status.servers.update({server.name: server for server in host.servers()})
        self._chat.status_changed()
        with self._guard("reading earlier prompts"):
            self._chat.prompt.recall.load(await host.history())
            status.recent = await host.sessions()
        self._chat.status_changed()

    async def _drawn(self) -> None:
        """Wait until what was typed so far is on the screen: loading the host slows the rest."""
        drawn = asyncio.Event()
        prompt = self._chat.prompt  # keys reach it through the app's queue, then its own
        self._later(lambda: prompt.call_later(lambda: prompt.call_after_refresh(drawn.set)))
        with contextlib.suppress(TimeoutError):  # a screen may be over it that redraws nothing
            async with asyncio.timeout(_DRAWING):
                await drawn.wait()


def _text(command: Command) -> str:
    return as_text(command.content) if isinstance(command, SubmitPrompt) else ""
