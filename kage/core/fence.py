"""The marks around what others say, so that a model can tell it from what the person says."""

from __future__ import annotations

import re

from kage.core.sanitise import clip

OVERHEAD = 130  # characters the marks take, at most
_NAME = 40


def fence(text: str, *, source: str, mark: str) -> str:
    """Put ``text`` between marks nobody can write who does not know ``mark``.

    Args:
        text: What somebody else said.
        source: Who: a server, a file, a page.
        mark: Made after the text was there, or of a secret, so that the text cannot hold it.
    """
    return f"{opening(source, mark)}\n{text}\n{closing(mark)}"


def opening(source: str, mark: str) -> str:
    """Give the line that begins what ``source`` said."""
    name = clip(re.sub(r"[^\w.:@/ -]", "_", source), _NAME)
    return f'<untrusted from="{name}" mark="{mark}">'


def closing(mark: str) -> str:
    """Give the line that ends it."""
    return f'</untrusted mark="{mark}">'
