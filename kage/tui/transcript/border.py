"""Text on its way into the transcript: made visible, also where a character's meaning depends on
the portion that comes next.
"""

from __future__ import annotations

from kage.core.sanitise import visible

_JOINER = "\u200d"


class Border:
    """Make streamed text safe to show; the joined output equals ``visible`` of the joined input.

    A carriage return and a joiner wait for the character behind them.
    """

    __slots__ = ("_before", "_held")

    def __init__(self) -> None:
        self._held = ""
        self._before = ""  # the last character given out, as it came

    def feed(self, text: str) -> str:
        """Take a portion and give what can be shown of it already."""
        text = self._held + text
        keep = len(text)
        while keep and text[keep - 1] in ("\r", _JOINER):
            keep -= 1
        text, self._held = text[:keep], text[keep:]
        return self._show(text)

    def finish(self) -> str:
        """Give what was held back; nothing follows."""
        text, self._held = self._held, ""
        return self._show(text)

    def _show(self, text: str) -> str:
        if not text:
            return ""
        before, self._before = self._before, text[-1]
        if text[0] == _JOINER and before:
            return visible(before + text)[len(visible(before)) :]
        return visible(text)
