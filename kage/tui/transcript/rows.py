"""What a tool call, a group of reads and a card say, as rows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kage.core.sanitise import visible
from kage.tui.transcript.cells import clip, clip_middle, width
from kage.tui.transcript.line import Line, Span

State = Literal[
    "waiting", "running", "ok", "tool_error", "refused", "never_sent", "unknown", "interrupted"
]
Level = Literal["info", "warning", "error"]

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_GLYPHS = {
    "waiting": "▸", "running": "•", "ok": "✓", "tool_error": "✗", "refused": "⊘",
    "never_sent": "○", "unknown": "?", "interrupted": "■",
}  # fmt: skip
_WORDS = {
    "waiting": "waiting", "running": "", "ok": "", "tool_error": "failed", "refused": "refused",
    "never_sent": "never sent", "unknown": "outcome unknown", "interrupted": "interrupted",
}  # fmt: skip
_READERS = {"read": ("read", "file", "files"), "grep": ("", "search", "searches"),
            "find": ("", "find", "finds"), "ls": ("", "listing", "listings")}  # fmt: skip
_LEVELS = {"info": "·", "warning": "!", "error": "✗"}
_BAR = 10  # cells of a progress bar


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """One tool call as the transcript shows it; texts need not be sanitised."""

    label: str  # "filesystem · read_file"
    detail: str = ""  # the arguments in a few words
    state: State = "waiting"
    started: float | None = None  # monotonic seconds, while it waits or runs
    seconds: float | None = None  # once it is over
    progress: float | None = None
    total: float | None = None
    message: str = ""  # beside the progress; of a failure the reason
    fix: str = ""  # of a failure: what to do now
    summary: str = ""  # "18 matches"
    body: str = ""  # the full result
    diff: str = ""  # unified diff
    tail: str = ""  # live output so far
    effect: str = ""  # what it did to files
    alarm: bool = False  # it should not have
    undone: bool = False  # and that was taken back
    reading: bool | None = None  # only looks; None: so if it is a built-in that does
    sent: tuple[str, ...] = ()  # what scanners saw in the call
    came: tuple[str, ...] = ()  # and in its result

    @property
    def over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state not in ("waiting", "running")

    @property
    def failed(self) -> bool:
        """Whether it ended in any other way than well."""
        return self.over and self.state != "ok"

    @property
    def says_why(self) -> bool:
        """Whether the row itself holds the whole reason: an interrupt can leave hundreds behind."""
        return self.state == "never_sent" and self.summary == "interrupted"

    @property
    def folds(self) -> bool:
        """Whether it may join its neighbours in one row."""
        reads = self.reading if self.reading is not None else self.label in _READERS
        return reads and self.state == "ok" and not (self.sent or self.came or self.effect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A failure or a notice; texts need not be sanitised."""

    level: Level = "info"
    title: str
    why: str = ""
    lines: tuple[str, ...] = ()  # quoted as they came: a server's last stderr lines
    fix: str = ""


def duration(seconds: float) -> str:
    """Write a time in a few characters: ``31 ms``, ``4.2 s``, ``3 min 05 s``."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{round(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def tool_line(row: ToolRow, room: int, *, marker: str = "", frame: int | None = None) -> Line:
    """Give the one row of a call at ``room`` cells.

    Args:
        row: The call.
        room: Cells.
        marker: Its fold marker, "" when there is nothing to unfold.
        frame: Number of the spinner's picture; None draws a still one.
    """
    glyph = _GLYPHS[row.state]
    if row.state == "running" and frame is not None:
        glyph = SPINNER[frame % len(SPINNER)]
    right = _right(row, room)
    left = [Span(f"{glyph} ", f"state.{row.state}")]
    spare = room - 2 - (sum(width(span.text) for span in right) + 2 if right else 0)
    label = clip(visible(row.label, single_line=True), max(4, spare))
    left.append(Span(label, "tool"))
    spare -= width(label) + (2 if marker else 0)
    detail = visible(row.detail, single_line=True)
    if detail and spare > 5:
        left += [Span("  "), Span(clip_middle(detail, spare - 2), "detail")]
    if marker and spare >= 0:
        left.append(Span(f" {marker}", "marker"))
    return Line(tuple(left), right=tuple(right))


def _right(row: ToolRow, room: int) -> list[Span]:
    """Give what stands at the right: progress or summary, state word, time."""
    parts: list[Span] = []
    if row.state == "running":
        parts += _progress(row, room)
    elif row.summary and room >= 30:
        summary = visible(row.summary, single_line=True)
        parts.append(Span(clip(summary, room // 3), "summary"))
    if word := _WORDS[row.state]:
        parts.append(Span(word, f"state.{row.state}"))
    if (clock := _clock(row)) and room >= 24:
        parts.append(Span(clock.rjust(7), "time"))
    spaced: list[Span] = []
    for part in parts:
        if spaced:
            spaced.append(Span("  "))
        spaced.append(part)
    return spaced


def _clock(row: ToolRow) -> str:
    if not row.over and row.started is not None:
        seconds = max(0, int(time.monotonic() - row.started))  # whole seconds: it moves once a one
        return f"{seconds} s" if seconds < 60 else duration(seconds)
    if row.seconds is None or row.state == "never_sent":
        return ""
    return duration(row.seconds)


def _progress(row: ToolRow, room: int) -> list[Span]:
    parts: list[Span] = []
    if row.message and room >= 50:
        message = visible(row.message, single_line=True)
        parts.append(Span(clip(message, room // 3), "detail"))
    if row.progress is not None and room >= 40:
        if row.total and row.total > 0:
            share = min(1.0, max(0.0, row.progress / row.total))
            full = round(share * _BAR)
            parts.append(Span("▰" * full + "▱" * (_BAR - full), "progress"))
            parts.append(Span(f"{int(share * 100):3d} %", "time"))
        else:
            parts.append(Span(f"{row.progress:g}", "time"))
    return parts


def group_line(rows: Sequence[ToolRow], room: int, *, marker: str) -> Line:
    """Give the row that stands for several finished reads."""
    counts = Counter(row.label for row in rows)
    parts: list[str] = []
    for label, count in counts.items():
        verb, one, many = _READERS.get(label, ("", "", ""))
        if one:
            parts.append(f"{verb} {count} {one if count == 1 else many}".strip())
        else:
            parts.append(f"{visible(label, single_line=True)} × {count}")
    seconds = sum(row.seconds or 0 for row in rows)
    right = (Span(duration(seconds).rjust(7), "time"),) if room >= 24 else ()
    text = clip(", ".join(parts), max(4, room - 2 - 2 - (9 if right else 0)))
    return Line(
        (Span("✓ ", "state.ok"), Span(text, "tool"), Span(f" {marker}", "marker")), right=right
    )


def card_head(card: Card, room: int) -> list[Span]:
    """Give a card's title with its mark."""
    title = visible(card.title, single_line=True)
    return [
        Span(f"{_LEVELS[card.level]} ", f"card.{card.level}"),
        Span(title, f"card.{card.level}"),
    ]
