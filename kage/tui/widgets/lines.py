"""The thin lines above the prompt: prompts that wait, and one passing remark."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from kage.core.levels import Level
from kage.tui.text import MUTED, shown

MOST = 4


class Queue(Static):
    """Prompts that join the next turn, and prompts that start the next run."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.display = False

    def show(self, steering: tuple[str, ...], queued: tuple[str, ...], early: int = 0) -> None:
        """Show what waits; ``early`` prompts wait for the engine to be up."""
        lines = [_line("joins the next turn", text) for text in steering]
        lines += [_line("after this run", text) for text in queued]
        if early:
            one = "your prompt is" if early == 1 else f"{early} prompts are"
            lines.append(Content.styled(f"⧗ {one} sent as soon as kage is ready", MUTED))
        if len(lines) > MOST:
            more = Content.styled(f"… and {len(lines) - MOST + 1} more", MUTED)
            lines = [*lines[: MOST - 1], more]
        self.display = bool(lines)
        self.update(Content("\n").join(lines))


def _line(when: str, text: str) -> Content:
    return Content.assemble((f"⧗ {when}  ", MUTED), shown(text, 200))


class Remark(Static):
    """One line that goes away by itself: with the next key, or when it no longer holds."""

    _STYLES = {Level.INFO: MUTED, Level.WARNING: "$warning", Level.ERROR: "$error"}  # noqa: RUF012

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.display = False
        self._topic = ""

    @property
    def topic(self) -> str:
        """What the line is about, "" while there is none."""
        return self._topic

    @property
    def plain(self) -> str:
        """The words on the line."""
        return str(self.content) if self._topic else ""

    def say(self, text: str, *, level: Level = Level.INFO, topic: str = "remark") -> None:
        """Show ``text`` (not yet safe) until the next one or ``drop``."""
        self._topic = topic
        self.update(Content.styled(shown(text, 400), self._STYLES[level]))
        self.display = True

    def drop(self, *topics: str) -> None:
        """Take the line away; with ``topics`` only when it is about one of them."""
        if self._topic and (not topics or self._topic in topics):
            self._topic = ""
            self.display = False
