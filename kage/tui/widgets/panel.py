"""The approval panel: shows one question above the prompt and says which answer was clicked."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static

from kage.tui.widgets import question as words
from kage.tui.widgets.question import Asked
from kage.tui.widgets.rows import RowsView

CHAT_LINES = 7  # what header, prompt and status line keep of the screen


class ApprovalPanel(Vertical, can_focus=True):
    """Draws a question; answers are decided by whoever handles its keys and messages."""

    class Clicked(Message):
        """An answer was clicked; ``pressed_at`` is when the button went down."""

        def __init__(self, action: str, pressed_at: float) -> None:
            super().__init__()
            self.action = action
            self.pressed_at = pressed_at

    class Said(Message):
        """The line for "no, and say what instead" was entered; None: given up."""

        def __init__(self, text: str | None) -> None:
            super().__init__()
            self.text = text

    def __init__(self, keys: dict[str, str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._keys = keys
        self._asked: Asked | None = None
        self._gauge = ""
        self._pressed_at = 0.0
        self._draft = False  # something is written in the prompt
        self.intercept: Callable[[events.Key], bool] | None = None
        self.display = False

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield Static(id="panel-title")
        yield Static(id="panel-banner")
        yield RowsView(id="panel-body", most=1)
        yield Static(id="panel-facts")
        yield Static(id="panel-rule")
        yield Static(id="panel-options")
        yield Static(id="panel-hints")
        yield Static(id="panel-draft")
        yield Input(id="panel-say", placeholder="what to do instead; enter sends, esc goes back")

    def on_mount(self) -> None:
        """Hide the line for answer 5."""
        self._say.display = False

    @property
    def asked(self) -> Asked | None:
        """What is on the screen."""
        return self._asked

    @property
    def _say(self) -> Input:
        return self.query_one("#panel-say", Input)

    @property
    def saying(self) -> bool:
        """Whether the line for answer 5 is open."""
        return bool(self._say.display)

    @property
    def said(self) -> str:
        """What stands in the line for answer 5."""
        return self._say.value

    def show(self, asked: Asked | None, gauge: str) -> None:
        """Show a question, or nothing."""
        same = (
            asked is not None
            and self._asked is not None
            and asked.question.id == self._asked.question.id
        )
        self._asked = asked
        self._gauge = gauge
        if not same:
            self.close_say()
        self.display = asked is not None
        if asked is not None:
            self._draw(asked, keep_place=same)

    def show_gauge(self, gauge: str) -> None:
        """Redraw only how far the quiet period is."""
        self._gauge = gauge
        if self._asked is not None:
            line = words.title(self._asked, gauge, self._width)
            self.query_one("#panel-title", Static).update(line, layout=False)

    def show_draft(self, *, written: bool) -> None:
        """Say that answers go into the draft, or no longer do; in the panel they never do."""
        if self._draft != written:
            self._draft = written
            self._redraw()

    def watch_has_focus(self, has_focus: bool) -> None:
        """With the focus the answers count at once, without it a draft comes first."""
        super().watch_has_focus(has_focus)
        self._redraw()

    def _redraw(self) -> None:
        if self._asked is not None and self.is_mounted:
            self._draw(self._asked, keep_place=True)

    def open_say(self) -> None:
        """Open the line for answer 5 and put the cursor there."""
        self._say.value = ""
        self._say.display = True
        self._say.focus()

    def close_say(self) -> None:
        """Close the line for answer 5."""
        self._say.display = False
        self._say.value = ""

    def scroll_lines(self, lines: int) -> None:
        """Scroll the arguments."""
        self.query_one("#panel-body", RowsView).scroll_relative(y=lines, animate=False)

    def on_resize(self) -> None:
        """Lay the lines out for the new width."""
        self._redraw()

    @property
    def _width(self) -> int:
        return max(8, self.size.width or self.screen.size.width)

    def _draw(self, asked: Asked, *, keep_place: bool) -> None:
        width = self._width
        self.set_class(asked.question.red, "-red")
        height = self.screen.size.height
        small = height < 16
        key = self._keys.get("details", "")
        banner = words.banner(asked.question, width - 4, most=2 if small else 4, key=key)
        rule = words.rule_line(asked, self._keys.get("scope", ""))
        facts = None if small else words.facts(asked.question)
        hints = None if small else words.hints(asked, self._keys)
        options = words.options(asked, width - 4)
        key = self._keys.get("panel_focus", "")
        first = self._draft and key and not self.has_focus and not self.saying
        draft = words.beside_draft(asked, key) if first else None
        for name, content in (
            ("title", words.title(asked, self._gauge, width)),
            ("banner", banner),
            ("facts", facts),
            ("rule", rule),
            ("options", options),
            ("hints", hints),
            ("draft", draft),
        ):
            part = self.query_one(f"#panel-{name}", Static)
            part.display = bool(content)
            if content is not None:
                part.update(content)
        body = self.query_one("#panel-body", RowsView)
        body.show(words.body(asked), keep_place=keep_place)
        fixed = 1 + sum(
            content.plain.count("\n") + 1 + content.cell_length // max(1, width - 4)
            for content in (banner, facts, rule, options, hints, draft)
            if content is not None
        )
        room = max(2, height - CHAT_LINES)
        self.styles.max_height = room
        most = max(1, min(height // 2, room - fixed))
        body.limit(most)
        if hints is not None and body.line_count > most:
            hints = words.hints(asked, self._keys, body.line_count - most)
            self.query_one("#panel-hints", Static).update(hints)

    def on_key(self, event: events.Key) -> None:
        """Hand keys pressed in the panel to the one who decides."""
        if self._say.has_focus:
            if event.key == "escape":
                event.stop()
                self.post_message(self.Said(None))
            return
        if self.intercept is not None and self.intercept(event):
            event.stop()
            event.prevent_default()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Pass on what was said."""
        event.stop()
        self.post_message(self.Said(event.value))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Remember when the button went down: that moment counts, not the release."""
        self._pressed_at = event.time

    def on_click(self, event: events.Click) -> None:
        """Tell which answer was clicked."""
        action = event.style.meta.get("answer")
        if isinstance(action, str):
            event.stop()
            self.post_message(self.Clicked(action, self._pressed_at))
