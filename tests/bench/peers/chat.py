"""The plainest chat app Textual allows: a log, an input, an echo."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Input, RichLog


class Chat(App[None]):
    """Says back what is typed."""

    def compose(self) -> ComposeResult:
        yield RichLog()
        yield Input()

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.query_one(RichLog).write(event.value)
        event.input.clear()


if __name__ == "__main__":
    Chat().run()
