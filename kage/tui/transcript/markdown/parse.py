"""Parse one chunk of markdown into nodes.

HTML is text here. What entities and percent signs decode to is made visible again after the
parse, since a control character can come in that way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping, Sequence
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from kage.core.sanitise import visible
from kage.tui.transcript.line import Span
from kage.tui.transcript.markdown.nodes import (
    Align,
    Code,
    Heading,
    Inline,
    Items,
    Node,
    Paragraph,
    Quote,
    Rule,
    Table,
)

_URL = re.compile(r"https?://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]}]")
_SAFE = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_WORDS = {"strong_open": "strong", "em_open": "em", "s_open": "strike"}
References = MutableMapping[str, Any]  # markdown-it's own record per label


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "maxNesting": 40}).enable(
        ["table", "strikethrough"]
    ).disable(["html_block", "html_inline"])  # fmt: skip


def parse(text: str, references: References | None = None) -> tuple[Node, ...]:
    """Parse ``text``; link references it defines are added to ``references`` and used from it."""
    env: dict[str, Any] = {"references": {} if references is None else references}  # theirs
    tokens = iter(_parser().parse(text, env))
    return tuple(_nodes(tokens, ""))


def _nodes(tokens: Iterator[Token], close: str) -> Iterator[Node]:
    """Give the nodes up to the token of type ``close``."""
    for token in tokens:
        match token.type:
            case kind if kind == close:
                return
            case "paragraph_open":
                yield Paragraph(_inline(next(tokens)))
                next(tokens)
            case "heading_open":
                yield Heading(int(token.tag[1]), _inline(next(tokens)))
                next(tokens)
            case "fence" | "code_block":
                text = visible(token.content)
                yield Code(text.removesuffix("\n"), visible(token.info, single_line=True))
            case "blockquote_open":
                yield Quote(tuple(_nodes(tokens, "blockquote_close")))
            case "bullet_list_open" | "ordered_list_open":
                yield _items(token, tokens)
            case "table_open":
                yield _table(tokens)
            case "hr":
                yield Rule()
            case _:
                pass


def _items(opening: Token, tokens: Iterator[Token]) -> Items:
    close = opening.type.replace("open", "close")
    items: list[tuple[Node, ...]] = []
    tight = True
    for token in tokens:
        if token.type == close:
            break
        inner: list[Token] = []
        for part in tokens:
            if part.type == "list_item_close" and part.level == token.level:
                break
            inner.append(part)
        tight = tight and not any(
            part.type == "paragraph_open" and part.level == token.level + 1 and not part.hidden
            for part in inner
        )
        items.append(tuple(_nodes(iter(inner), "")))
    start = opening.attrGet("start")
    ordered = opening.type.startswith("ordered")
    first = int(start) if start is not None else 1
    return Items(tuple(items), first if ordered else None, tight, opening.markup)


def _table(tokens: Iterator[Token]) -> Table:
    aligns: list[Align] = []
    lines: list[list[Inline]] = []
    for token in tokens:
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            lines.append([])
        elif token.type in ("th_open", "td_open"):
            if token.type == "th_open":
                aligns.append(_align(token))
            lines[-1].append(_inline(next(tokens)))
    rows = tuple(tuple(row[: len(aligns)]) + ((),) * (len(aligns) - len(row)) for row in lines[1:])
    return Table(tuple(aligns), tuple(lines[0]) if lines else (), rows)


def _align(token: Token) -> Align:
    style = str(token.attrGet("style") or "")
    return "right" if "right" in style else "center" if "center" in style else "left"


def _inline(token: Token) -> Inline:
    return tuple(inline(token.children or []))


def inline(tokens: Sequence[Token]) -> list[Span]:
    """Turn inline tokens into spans; a hard break is a newline, a link's address follows it."""
    out: list[Span] = []
    words: list[str] = []
    links: list[tuple[str, int]] = []  # address, where its text starts in ``out``
    for token in tokens:
        role = ".".join(words)
        link = links[-1][0] if links else ""
        match token.type:
            case "text" | "text_special" | "html_inline":
                _text(visible(token.content).replace("\t", " "), role, link, out)
            case "code_inline":
                text = visible(token.content).replace("\t", " ")
                out.append(Span(text, f"{role}.code" if role else "code", link))
            case "softbreak":
                out.append(Span(" ", role, link))
            case "hardbreak":
                out.append(Span("\n", role, link))
            case "strong_open" | "em_open" | "s_open":
                words.append(_WORDS[token.type])
            case "strong_close" | "em_close" | "s_close":
                words.pop()
            case "link_open":
                links.append((visible(str(token.attrGet("href") or "")), len(out)))
                words.append("link")
            case "link_close":
                words.pop()
                _end_link(*links.pop(), out)
            case "image":
                _image(token, role, out)
            case _:
                pass
    return [span for span in out if span.text]


def _text(text: str, role: str, link: str, out: list[Span]) -> None:
    """Add text, with bare web addresses in it made links."""
    if link or "://" not in text:
        out.append(Span(text.replace("\n", " "), role, _openable(link)))
        return
    at = 0
    for match in _URL.finditer(text):
        if match.start() > at:
            out.append(Span(text[at : match.start()], role))
        out.append(Span(match[0], f"{role}.link" if role else "link", match[0]))
        at = match.end()
    if at < len(text):
        out.append(Span(text[at:], role))


def _end_link(href: str, start: int, out: list[Span]) -> None:
    """Say where a link leads, unless its text says so already."""
    shown = "".join(span.text for span in out[start:])
    out[start:] = [span._replace(link=_openable(href)) for span in out[start:]]
    if href and href not in (shown, f"mailto:{shown}"):
        out.append(Span(f" ({href})" if shown else href, "url", _openable(href)))


def _image(token: Token, role: str, out: list[Span]) -> None:
    source = visible(str(token.attrGet("src") or ""))
    name = visible(token.content, single_line=True)
    out.append(Span(f"[image{': ' + name if name else ''}]", f"{role}.link" if role else "link"))
    if source:
        out.append(Span(f" ({source})", "url", _openable(source)))


def _openable(address: str) -> str:
    return address if _SAFE.match(address) else ""
