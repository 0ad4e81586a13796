"""Which colours kage starts with."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from textual.theme import BUILTIN_THEMES

from kage.tui.text import shown

DARK = "ansi-dark"  # the terminal's own 16 colours: right on whatever background it has
LIGHT = "ansi-light"
_LIGHT_GROUNDS = ("7", "15")  # COLORFGBG, "foreground;background"


def choose(wanted: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Give (theme, notice): the wanted theme, or the terminal's own colours when unsure."""
    fallback = LIGHT if environ.get("COLORFGBG", "").split(";")[-1] in _LIGHT_GROUNDS else DARK
    if not wanted:
        return fallback, ""
    if wanted in BUILTIN_THEMES:
        return wanted, ""
    near = difflib.get_close_matches(wanted, BUILTIN_THEMES, 1)
    hint = f'did you mean "{near[0]}"?' if near else f"there are: {', '.join(BUILTIN_THEMES)}"
    return fallback, f'theme = "{shown(wanted, 40)}" is no theme kage has; {hint}'
