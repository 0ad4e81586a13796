"""Big pastes behind short placeholders, and the prompts one can go back to."""

from __future__ import annotations

import re

BIG_LINES = 8
BIG_CHARS = 1_000
_MARK = re.compile(r"\[paste #(\d+): [^\]\n]*\]")


class Pastes:
    """Keeps what was pasted; the draft holds ``[paste #1: 120 lines, 4,567 characters]``."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def collapse(self, text: str) -> str:
        """Give a placeholder for a big text, or the text itself."""
        lines = text.count("\n") + 1
        if lines <= BIG_LINES and len(text) <= BIG_CHARS:
            return text
        size = f"{len(text):,} characters"
        words = f"{lines:,} lines, {size}" if lines > 1 else size
        mark = f"[paste #{len(self._texts) + 1}: {words}]"
        self._texts[mark] = text
        return mark

    def expand(self, draft: str) -> str:
        """Put every pasted text back in the place of its placeholder."""
        return _MARK.sub(lambda match: self._texts.get(match[0], match[0]), draft)

    def mark_before(self, line: str) -> str:
        """Give the placeholder ``line`` ends with, "" when it ends with none."""
        marks = [match for match in _MARK.finditer(line) if match.end() == len(line)]
        return marks[0][0] if marks and marks[0][0] in self._texts else ""


class Recall:
    """Earlier prompts, and the draft that was left when going back to them."""

    def __init__(self) -> None:
        self._entries: list[str] = []
        self._place: int | None = None
        self._draft = ""

    def load(self, entries: tuple[str, ...]) -> None:
        """Put older prompts, oldest first, in front of those sent meanwhile."""
        self._entries = [*entries, *self._entries]
        if self._place is not None:
            self._place += len(entries)

    def add(self, entry: str) -> None:
        """Remember a prompt that was sent."""
        if entry and (not self._entries or self._entries[-1] != entry):
            self._entries.append(entry)
        self.leave()

    def leave(self) -> None:
        """Stop looking at earlier prompts: what is shown is the draft now."""
        self._place = None

    def back(self, draft: str) -> str | None:
        """Give the prompt before, None at the oldest."""
        place = len(self._entries) if self._place is None else self._place
        if place == 0:
            return None
        if self._place is None:
            self._draft = draft
        self._place = place - 1
        return self._entries[self._place]

    def forward(self) -> str | None:
        """Give the prompt after, the draft at the end, None when nothing was recalled."""
        if self._place is None:
            return None
        self._place += 1
        if self._place >= len(self._entries):
            self._place = None
            return self._draft
        return self._entries[self._place]
