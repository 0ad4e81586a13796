"""Turn HTML into Markdown in a process of its own, or into plain text when that is too much."""

from __future__ import annotations

import json
import re
from typing import Any

from kage.tools.answering import answer

DEADLINE = 6.0  # CPU seconds for Markdown; after that the page becomes plain text
MAX_MEMORY = 1 << 30  # bytes of address space
_NOISE = ("script", "style", "noscript", "template", "svg", "iframe", "object", "head")
_SILENT = ("script", "style", "noscript", "template", "svg")
_BREAKS = frozenset(
    (
        *("p", "div", "br", "li", "tr", "table", "ul", "ol", "pre", "section", "article"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "header", "footer", "title"),
    )
)

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


class _TooLong(Exception):
    """The conversion used up its time."""


def request(source: str, base: str) -> bytes:
    """Make the request for ``main``."""
    return json.dumps({"source": source, "base": base}).encode()


def main() -> None:
    """Answer one request from stdin."""
    answer(lambda data: convert(**json.loads(data)).encode("utf-8", "replace"))


def convert(source: str, base: str) -> str:
    """Give Markdown within the limits, else the text alone."""
    import signal

    _limit_memory()
    signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, DEADLINE)
    try:
        return to_markdown(source, base)
    except Exception:  # whatever hostile HTML does to the parser: the text is still there
        return to_text(source)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _stop(*_: object) -> None:
    raise _TooLong


def _limit_memory() -> None:
    import contextlib
    import resource

    with contextlib.suppress(OSError, ValueError):  # macOS refuses it
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


def to_markdown(source: str, base: str) -> str:
    """Convert with markdownify; links become absolute, scripts and styles are left out.

    Raises:
        RecursionError: the page is nested too deep.
    """
    from urllib.parse import urljoin

    from bs4 import BeautifulSoup
    from markdownify import ATX, MarkdownConverter

    soup: Any = BeautifulSoup(source, "html.parser")  # Any: its tree has no useful types
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    for tag in soup.find_all(_NOISE):
        tag.decompose()
    for tag in soup.find_all("a", href=True):
        tag["href"] = urljoin(base, tag["href"])
    for tag in soup.find_all("img"):
        if str(tag.get("src", "")).startswith("data:"):
            tag.decompose()
        elif tag.get("src"):
            tag["src"] = urljoin(base, tag["src"])
    text = MarkdownConverter(heading_style=ATX, bullets="-").convert_soup(soup)
    body = _tidy(text)
    return f"# {title}\n\n{body}" if title and not body.startswith("# ") else body


def _tidy(text: str) -> str:
    lines = [line.rstrip() for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def to_text(source: str) -> str:
    """Give the text between the tags; linear in the size of ``source``, whatever is in it."""
    import html  # its table of names is large

    lowered = source.translate(_LOWER)  # lower() changes the length of some letters
    out: list[str] = []
    at = 0
    while at < len(source):
        start = source.find("<", at)
        if start < 0:
            out.append(source[at:])
            break
        out.append(source[at:start])
        at, mark = _skip_tag(source, lowered, start)
        out.append(mark)
    return _tidy(html.unescape("".join(out)))


def _skip_tag(source: str, lowered: str, start: int) -> tuple[int, str]:
    """Give the place behind the tag or comment at ``start``, and what stands for it."""
    if source.startswith("<!--", start):
        return _behind(source, "-->", start + 4), ""
    name = _name(lowered, start + 1)
    if not name and source[start + 1 : start + 2] not in ("/", "!", "?"):
        return start + 1, "<"  # a plain "less than"
    if name in _SILENT:
        start = _find(lowered, f"</{name}", start)
    mark = "\n" if (name or _name(lowered, start + 2)) in _BREAKS else ""
    return _behind(source, ">", start), mark


def _name(lowered: str, at: int) -> str:
    end = at
    while end < len(lowered) and end - at < 12 and lowered[end].isalnum():
        end += 1
    return lowered[at:end]


def _find(text: str, wanted: str, at: int) -> int:
    found = text.find(wanted, at)
    return len(text) if found < 0 else found


def _behind(text: str, wanted: str, at: int) -> int:
    return min(_find(text, wanted, at) + len(wanted), len(text))
