"""The prompt: a draft of any number of lines that nothing but the person throws away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from textual import events
from textual.binding import Binding
from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult

from kage.tui.keymap import Context, Keymap
from kage.tui.widgets.drafts import Pastes, Recall

PLACEHOLDER = "Ask, / for commands, @ for files, ! for a shell line"


class Typist(Protocol):
    """Who is told what the person does with the draft, before the next key is looked at."""

    def submitted(self, text: str, *, queue: bool) -> None:
        """The draft is to be sent; ``queue`` sends it after the run instead of into it."""
        ...

    def pressed(self, action: str) -> None:
        """A key that is an action of somebody else was pressed in the prompt."""
        ...

    def edited(self) -> None:
        """The draft changed."""
        ...


class PromptArea(TextArea):
    """Holds the draft; tells its typist what the person wants to do with it."""

    def __init__(self, keymap: Keymap, *, id: str | None = None) -> None:
        super().__init__(
            id=id,
            compact=True,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder=PLACEHOLDER,
        )
        self.cursor_blink = False  # a blinking cursor is a timer that never stops
        self._keymap = keymap
        self._pastes = Pastes()
        self.recall = Recall()
        self.intercept: Callable[[events.Key], bool] | None = None
        self.on_pasted: Callable[[float], None] | None = None
        self.typist: Typist | None = None
        self.palette_open = False

    @property
    def draft(self) -> str:
        """The draft with every paste in full."""
        return self._pastes.expand(self.text)

    def set_draft(self, text: str) -> None:
        """Replace the draft; the cursor goes to its end."""
        self.text = self._pastes.collapse(text)
        self.move_cursor(self.document.end)

    def add(self, text: str) -> None:
        """Put ``text`` in at the cursor."""
        self.insert(text)

    def put(self, text: str, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Replace what is between two places (line and column); the cursor goes behind it."""
        self.replace(text, start, end, maintain_selection_offset=False)

    def type_in(self, text: str) -> None:
        """Put ``text`` in at the cursor and go on there."""
        self.focus()
        self.insert(text)

    def take(self) -> str:
        """Give the draft and leave it empty."""
        draft = self.draft
        self.text = ""
        self.recall.leave()
        return draft

    async def _on_key(self, event: events.Key) -> None:
        if self.intercept is not None and self.intercept(event):
            event.stop()
            event.prevent_default()
            return
        if self._act(event) or await self._edit_with(event.key):
            event.stop()
            event.prevent_default()
            return
        if event.is_printable:
            self.recall.leave()
        await super()._on_key(event)

    async def _edit_with(self, key: str) -> bool:
        """Run the editing action of ``key`` here and now.

        Left to itself a key without a character travels up to the app and back before it acts,
        and what was typed behind it has long been put in. The keys of the chat are not for here.
        """
        if self._keymap.find(Context.CHAT, key):
            return False
        for binding in TextArea.BINDINGS:
            if isinstance(binding, Binding) and key in binding.key.split(","):
                await self.run_action(binding.action)
                return True
        return False

    def edit(self, edit: Edit) -> EditResult:
        """Do one edit and tell of it."""
        result = super().edit(edit)
        self._tell_edited()
        return result

    def load_text(self, text: str) -> None:
        """Replace the whole text and tell of it."""
        super().load_text(text)
        self._tell_edited()

    def _tell_edited(self) -> None:
        if self.typist is not None:
            self.typist.edited()

    def _tell_pressed(self, action: str) -> bool:
        if self.typist is not None:
            self.typist.pressed(action)
        return True

    def _act(self, event: events.Key) -> bool:
        """Do what the keymap says; False when the key only edits."""
        find = self._keymap.find
        if self.palette_open and (action := find(Context.PALETTE, event.key)):
            return self._tell_pressed(action)
        if not self.text and (action := find(Context.EMPTY, event.key)):
            return self._tell_pressed(action)
        match find(Context.PROMPT, event.key):
            case "send":
                self._send(queue=False)
            case "queue":
                self._send(queue=True)
            case "newline":
                self.add("\n")
            case "history_back":
                return self._go_back()
            case "history_forward":
                return self._go_forward()
            case _:
                return event.key == "backspace" and self._delete_paste()
        return True

    def _send(self, *, queue: bool) -> None:
        if self.draft.strip() and self.typist is not None:
            self.typist.submitted(self.draft, queue=queue)

    def _go_back(self) -> bool:
        if not self.cursor_at_first_line:
            return False
        entry = self.recall.back(self.draft)
        if entry is not None:
            self.set_draft(entry)
        return True

    def _go_forward(self) -> bool:
        if not self.cursor_at_last_line:
            return False
        entry = self.recall.forward()
        if entry is not None:
            self.set_draft(entry)
        return True

    def _delete_paste(self) -> bool:
        """Delete a whole placeholder the cursor stands behind."""
        if not self.selection.is_empty:
            return False
        line, column = self.cursor_location
        mark = self._pastes.mark_before(self.document.get_line(line)[:column])
        if mark:
            self.delete((line, column - len(mark)), (line, column))
        return bool(mark)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        if self.on_pasted is not None:
            self.on_pasted(event.time)
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        self.recall.leave()
        start, end = self.selection
        self.replace(self._pastes.collapse(text), start, end, maintain_selection_offset=False)
