"""Draw a model without a screen, for tests."""

from __future__ import annotations

from kage.tui.transcript.line import Line
from kage.tui.transcript.model import TranscriptModel
from kage.tui.transcript.pieces import margin


def lines(model: TranscriptModel, width: int = 80) -> list[Line]:
    """Give every row of the model."""
    out: list[Line] = []
    for block in model.blocks:
        for piece in block.pieces():
            made = piece.lines(width)
            out += [Line(())] * (piece.gap if made else 0)
            out += made
    return out


def texts(model: TranscriptModel, width: int = 80) -> list[str]:
    """Give every row as text, with what stands at the right behind a bar."""
    out: list[str] = []
    for line in lines(model, width):
        right = "".join(span.text for span in line.right)
        out.append(f"{line.text.rstrip()} | {right.strip()}" if right else line.text.rstrip())
    return out


def reply(text: str, width: int = 80) -> list[str]:
    """Give the rows of a finished reply, without its header and margin."""
    model = TranscriptModel()
    model.add_reply("r", text, "m")
    return [row[margin(width) :] for row in texts(model, width)[2:]]
