"""What the prompt tells while it is typed into, at once and in the order of the keys.

Messages would do it too, but a key that comes right behind another one overtakes them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from kage.tui.controllers.prompts import Prompts
from kage.tui.screens.chat import ChatScreen


class Typing:
    """The ``Typist`` of the chat's prompt.

    Args:
        chat: The screen with the prompt.
        prompts: Knows what a draft means.
        guard: Reports what goes wrong inside it.
    """

    def __init__(
        self,
        *,
        chat: ChatScreen,
        prompts: Prompts,
        guard: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        self._chat = chat
        self._prompts = prompts
        self._guard = guard

    def submitted(self, text: str, *, queue: bool) -> None:
        """The draft is to be sent."""
        self._chat.drop_remark("command", "armed", "server")
        with self._guard("sending"):
            self._prompts.submitted(text, queue=queue)

    def pressed(self, action: str) -> None:
        """A key of the palette, or of the empty prompt, was pressed."""
        with self._guard("doing that"):
            self._prompts.pressed(action)

    def edited(self) -> None:
        """The draft changed."""
        self._chat.drop_remark("command", "chosen", "tools", "armed")
        self._chat.panel.show_draft(written=bool(self._chat.prompt.text))
        with self._guard("completing"):
            self._prompts.changed()
