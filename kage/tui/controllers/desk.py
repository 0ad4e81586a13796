"""The approval panel on the chat screen, as the approvals use it."""

from __future__ import annotations

from collections.abc import Callable

from kage.core.gate import Question
from kage.tui.screens.chat import ChatScreen
from kage.tui.status import Status
from kage.tui.widgets.question import Asked


class PanelDesk:
    """Implements ``approvals.Desk``.

    Args:
        chat: The screen with the panel and the prompt.
        status: Gets the number of open questions.
        details: Shows the whole of a call.
    """

    def __init__(
        self, chat: ChatScreen, *, status: Status, details: Callable[[Question], None]
    ) -> None:
        self._chat = chat
        self._status = status
        self._details = details
        self._shown = ""  # the question on the screen

    @property
    def draft_empty(self) -> bool:
        """Whether nothing is written in the prompt."""
        return not self._chat.prompt.text

    @property
    def palette_open(self) -> bool:
        """Whether the list over the prompt takes keys."""
        return bool(self._chat.palette.display)

    def show_question(self, asked: Asked | None, gauge: str) -> None:
        """Show a question in the panel, or hide the panel; focus stays with the draft."""
        chat, panel = self._chat, self._chat.panel
        self._status.waiting = asked.of - asked.number + 1 if asked is not None else 0
        chat.status_changed()
        name = asked.question.id if asked is not None else ""
        if name == self._shown:
            panel.show(asked, gauge)
            return
        unsaid = panel.said if panel.saying else ""
        had_focus = panel.has_focus_within
        self._shown = name
        panel.show(asked, gauge)
        if had_focus:
            chat.prompt.focus()
        if unsaid:  # withdrawn while the person was writing: nothing written is lost
            chat.prompt.add(unsaid)
        if asked is not None:
            chat.call_after_refresh(self._painted, name)

    def _painted(self, name: str) -> None:
        if name == self._shown and self._chat.is_current:
            self._chat.painted()

    def show_gauge(self, gauge: str) -> None:
        """Redraw how far the quiet period is."""
        self._chat.panel.show_gauge(gauge)

    def open_say(self) -> None:
        """Open the line for "no, and say what instead"."""
        self._chat.panel.open_say()

    def close_say(self) -> None:
        """Close that line; what it held is on its way."""
        self._chat.panel.close_say()

    def focus_panel(self) -> None:
        """Move the focus into the panel."""
        self._chat.panel.close_say()
        self._chat.panel.focus()

    def focus_draft(self) -> None:
        """Move the focus into the prompt."""
        self._chat.prompt.focus()

    def type_into_draft(self, text: str) -> None:
        """Put text into the draft and the focus behind it."""
        self._chat.prompt.type_in(text)

    def scroll_question(self, lines: int) -> None:
        """Scroll the arguments."""
        self._chat.panel.scroll_lines(lines)

    def show_details(self, question: Question) -> None:
        """Show the whole call on the full screen."""
        self._details(question)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call back once after ``seconds``."""
        self._chat.set_timer(seconds, call)
