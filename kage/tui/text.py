"""Turn words of strangers into something Textual draws and never parses."""

from __future__ import annotations

from pathlib import Path

from textual.content import Content

from kage.core.sanitise import clip, visible

MUTED = "dim"  # readable in truecolor and ANSI themes alike


def shown(text: str, limit: int = 200) -> str:
    """Give untrusted ``text`` as one safe line of at most ``limit`` characters."""
    # cut first: a hostile text can be megabytes, and a risky character grows to at most 9
    return clip(visible(text[: limit * 4], single_line=True), limit)


def block(text: str, style: str = "") -> Content:
    """Give untrusted ``text``, line breaks kept, as content that is never parsed as markup."""
    safe = visible(text).replace("\t", "    ")
    return Content.styled(safe, style) if style else Content(safe)


def home_short(path: Path) -> str:
    """Spell ``path`` with ``~`` for the home folder, safe to show."""
    try:
        relative = path.relative_to(Path.home())
    except (ValueError, RuntimeError):  # elsewhere, or no home is known
        return shown(str(path), 400)
    return "~" if relative == Path() else shown(f"~/{relative}", 400)


def of_server(server: str, what: str) -> str:
    """Say what happened to a server without its name, which stands in front of it already."""
    for start in (f"The server {server} ", f"{server}: ", f"{server} "):
        if what.startswith(start):
            return what[len(start) :]
    first = what.split(" ", 1)[0]
    return what[:1].lower() + what[1:] if first[1:].islower() else what


def elide_start(text: str, width: int) -> str:
    """Keep the end of ``text`` when it is longer than ``width``: paths differ at the end."""
    if width <= 1:
        return text[:0]
    return text if len(text) <= width else "…" + text[-(width - 1) :]


def duration(seconds: float) -> str:
    """Spell a time span the way a row has room for: ``31 ms``, ``4 s``, ``2 m 05 s``."""
    if seconds < 1:
        return f"{max(0, seconds) * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} m"


def ago(seconds: float) -> str:
    """Spell how long ago something was, in words a list has room for."""
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        count = int(seconds // size)
        if count >= 1:
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"
