"""Definitions that changed, as lines for a terminal or a log: words that went and came, marked."""

from __future__ import annotations

from collections.abc import Iterator

from kage.core.pins import Difference, HeldChange
from kage.core.sanitise import clip, exact, visible

_MARKS = {"same": ("", ""), "old": ("[-", "-]"), "new": ("{+", "+}")}  # as `git diff --word-diff`
MAX_PIECE = 4_000  # characters of one run of text
MAX_LINES = 200  # of one definition


def headline(change: HeldChange) -> str:
    """Say in one line what is held and why; safe to show."""
    return f"{exact(change.label)}: {visible(change.why, single_line=True)}"


def lines(change: HeldChange) -> list[str]:
    """Give the difference line by line; safe to show."""
    found = [line for part in change.differences for line in difference_lines(part)]
    if len(found) > MAX_LINES:
        return [*found[:MAX_LINES], f"… and {len(found) - MAX_LINES} more lines"]
    return found


def difference_lines(part: Difference) -> Iterator[str]:
    """Give one part of a difference; safe to show."""
    name = clip(exact(part.part), 300)
    text = "".join(
        f"{start}{clip(exact(piece.text), MAX_PIECE)}{end}"
        for piece in part.pieces
        for start, end in [_MARKS[piece.kind]]
    )
    yield f"{name}: {text}" if text else name
    for note in part.notes:
        yield f"  ! {note}"
