"""A sheet over the foot of the chat that came unasked: keys on their way never answer it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.screen import ModalScreen
from textual.style import Style
from textual.widgets import Static

from kage.core.requests import RequestReply
from kage.tui.keymap import Context, Keymap
from kage.tui.text import MUTED
from kage.tui.widgets.guard import Guard

_STEP = 0.1  # seconds between two looks at the guard


@dataclass(frozen=True, slots=True, kw_only=True)
class Unasked:
    """How a sheet behaves that nobody opened by hand.

    Attributes:
        quiet: Seconds without a key before anything counts; 0 when the person opened it.
        spill: Takes what was typed before that, which was meant for the draft.
    """

    quiet: float = 0.0
    spill: Callable[[str], None] = lambda text: None


class AskingScreen(ModalScreen[RequestReply | None]):
    """Gives the person's reply; None when it was closed without one."""

    AUTO_FOCUS = None
    CONTEXT: Context

    def __init__(self, keymap: Keymap, unasked: Unasked | None = None) -> None:
        super().__init__()
        self._keymap = keymap
        self._unasked = unasked or Unasked()
        self._guard = Guard(self._unasked.quiet)
        self._awake = False
        self._pressed_at = 0.0
        self.on_shown: Callable[[], None] = lambda: None
        self.forsaken = False  # nobody waits for the answer any more

    @property
    def ready(self) -> bool:
        """Whether keys count."""
        return self._awake

    def act(self, action: str) -> None:
        """Do what a key of this sheet means."""
        raise NotImplementedError

    def show_waiting(self, count: int) -> None:
        """Say how many questions wait behind this one."""
        for line in self.query(".form-more").results(Static):
            words = "1 more question waits" if count == 1 else f"{count} more questions wait"
            text = words if count else ""
            line.display = bool(text)
            line.update(Content.styled(text, MUTED))
        self.fit()

    def fit(self) -> None:
        """Give the middle what room head and foot leave, so that no key and no warning is cut."""
        for sheet in self.query(".form-sheet"):
            rest = self.size.height - 1  # the line above the sheet
            for part in sheet.children:
                if part.has_class("form-title"):
                    part.styles.max_height = max(2, self.size.height * 2 // 3)
                if part.display and not part.has_class("form-scroll"):
                    rest -= part.outer_size.height
            for middle in sheet.query(".form-scroll"):
                middle.styles.max_height = max(2, rest)

    def scroll_middle(self, step: int) -> None:
        """Scroll what stands between head and foot, up for -1."""
        for middle in self.query(".form-scroll"):
            middle.scroll_relative(y=5 * step, animate=False)

    def wake(self) -> None:
        """The quiet period is over: put the cursor where typing goes."""

    def on_mount(self) -> None:
        """Begin the quiet period once the sheet is on the screen."""
        self.on_shown()
        self.call_after_refresh(self._painted)

    def on_resize(self, event: events.Resize) -> None:
        """Share the room anew, once the parts have their new sizes."""
        self.call_after_refresh(self.fit)

    def on_screen_resume(self) -> None:
        """Begin it again: another screen was over this one."""
        if self.forsaken:
            self.dismiss(None)
            return
        if self._awake:
            self._guard.show(time.monotonic())
            self._awake = False
            self.call_after_refresh(self._painted)

    def on_key(self, event: events.Key) -> None:
        """Let keys count once the guard has run; before that they go where they were meant to."""
        if not self._guard.accepts(event.time):
            event.stop()
            event.prevent_default()
            self._guard.swallow(event.time)
            if event.is_printable and event.character:
                self._unasked.spill(event.character)
            return
        action = self._keymap.find(self.CONTEXT, event.key)
        if action is not None:
            event.stop()
            event.prevent_default()
            self.act(action)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Remember when the button went down: that moment counts."""
        self._pressed_at = event.time

    def on_click(self, event: events.Click) -> None:
        """Do what was clicked."""
        action = event.style.meta.get("act")
        if isinstance(action, str) and self._guard.accepts(self._pressed_at):
            event.stop()
            self.act(action)

    def keys_line(self, *named: tuple[str, str]) -> Content:
        """Draw what can be done: (action, words) with their keys, each one clickable."""
        parts = [
            Content.assemble((key, "bold $accent"), f" {words}").stylize(
                Style.from_meta({"act": action})
            )
            for action, words in named
            if (key := self._keymap.key(action))
        ]
        return Content.styled(" · ", MUTED).join(parts)

    def _painted(self) -> None:
        self.fit()
        self._guard.show(time.monotonic())
        self._watch()

    def _watch(self) -> None:
        rest = self._guard.remaining(time.monotonic())
        if rest > 0:
            self.set_timer(min(rest + 0.01, _STEP), self._watch)
        elif not self._awake and self.is_attached:
            self._awake = True
            self.wake()


def banner(title: str, facts: tuple[str, ...], warnings: tuple[str, ...]) -> Static:
    """Draw the head of a sheet; all texts are already safe to show."""
    lines = [Content.styled(title, "bold $accent")]
    lines += [Content.styled(f"⚠ {text}", "bold $warning") for text in warnings]
    lines += [Content.styled(text, MUTED) for text in facts]
    return Static(Content("\n").join(lines), classes="form-title")
