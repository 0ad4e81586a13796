"""Markdown as it streams in."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kage.core.sanitise import visible
from kage.tui.transcript.border import Border
from kage.tui.transcript.markdown.splitter import (
    BLOCK_LIMIT,
    FENCE_LINES,
    LINE_LIMIT,
    Kind,
    Splitter,
)
from kage.tui.transcript.model import TranscriptModel
from tests.tui.transcript.drawing import texts

_LINES = [
    "", "", "word", "two words", "# head", "## **b** head", "- item", "- ", "  more", "    deep",
    "  - nested", "1. one", "2. two", "10) ten", "```", "```py", "   ```", "~~~", "x = [1]", "> q",
    ">", "| a | b |", "|---|--:|", "| 1 | 2 |", "---", "***", "===", "\tcode", "[r]: http://x.y",
    "see [r] and [t][r]", "<div>", "<!-- c", "a  ", "\\", "`c` *e* **s** ~~d~~", "- ```", "-", "*",
    "   - - x", "![i](u)", "https://a.b/c.", "&#x202e;&amp;", "語のテキスト", "1.", "+ plus",
    "* star",
]  # fmt: skip
# an item without text can begin a list or underline a heading, and a line after a definition can
# be its title: only a whole parse can tell
_RARE = ("-", "*", "1.", ">", "[r]: http://x.y")
_USUAL = [line for line in _LINES if line.strip() not in _RARE]
_TEXT = st.lists(st.sampled_from(_LINES), max_size=25).map("\n".join)


def _pieces(text: str, cuts: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in itertools.pairwise(edges)]


@settings(max_examples=300, deadline=None)
@given(_TEXT, st.lists(st.integers(0, 10_000), max_size=20))
def test_streaming_in_any_portions_gives_the_lines_of_the_whole(text: str, cuts: list[int]) -> None:
    whole = TranscriptModel()
    whole.add_reply("r", text, "m")
    streamed = TranscriptModel()
    streamed.begin_reply("r", "m")
    for portion in _pieces(text, cuts):
        streamed.stream_text("r", portion)
        streamed.blocks[0].pieces()  # somebody looks while it streams
    streamed.end_reply("r", stop="end")
    for width in (80, 31):
        assert texts(streamed, width) == texts(whole, width)
    assert streamed.source("r") == whole.source("r") == visible(text)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(_USUAL), max_size=25).map("\n".join))
@example("- a\n\n  b\n\nc")
@example("para\n- a\n- b\n\n1. x")
def test_chunks_parsed_one_by_one_say_what_the_whole_says(text: str) -> None:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable(["html_block", "html_inline"])
    splitter = Splitter()
    chunks = splitter.feed(text) + splitter.finish()
    env: dict[str, object] = {}
    expected = _leaves(parser.parse(text, env))
    got: list[tuple[str, str]] = []
    for chunk in chunks:
        if chunk.kind is Kind.FENCE:
            got.append(("code", chunk.text.strip("\n")))
        else:
            got += _leaves(parser.parse(chunk.text, {"references": env.get("references", {})}))
    assert _joined(got) == _joined(expected)


def _leaves(tokens: Sequence[object]) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for token in tokens:
        if token.type == "inline":  # type: ignore[attr-defined]
            out.append(("text", token.content))  # type: ignore[attr-defined]
        elif token.type in ("fence", "code_block"):  # type: ignore[attr-defined]
            out.append(("code", token.content.strip("\n")))  # type: ignore[attr-defined]
        elif token.type in ("hr", "heading_open", "blockquote_open"):  # type: ignore[attr-defined]
            out.append((token.type, ""))  # type: ignore[attr-defined]
    return out


def _joined(leaves: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Code that stands in two chunks is one block; blank lines between do not matter."""
    out: list[tuple[str, str]] = []
    for kind, text in leaves:
        if kind == "code" and out and out[-1][0] == "code":
            out[-1] = ("code", "\n".join(part for part in (out[-1][1], text) if part.strip()))
        else:
            out.append((kind, text))
    return out


@given(st.text("a\r\n\u200d👩👧\u202e\ufe0f\x1b", max_size=30), st.lists(st.integers(0, 99)))
def test_sanitising_does_not_depend_on_the_portions(text: str, cuts: list[int]) -> None:
    border = Border()
    shown = "".join(border.feed(part) for part in _pieces(text, cuts)) + border.finish()
    assert shown == visible(text)


def test_a_paragraph_is_frozen_by_the_blank_line_and_a_list_item_by_the_next() -> None:
    splitter = Splitter()
    assert [chunk.text for chunk in splitter.feed("one\ntwo\n\n")] == ["one\ntwo"]
    assert splitter.feed("- a\n  more\n") == []
    assert [chunk.text for chunk in splitter.feed("- b\n")] == ["- a\n  more"]


def test_an_open_fence_gives_chunks_of_complete_lines() -> None:
    splitter = Splitter()
    chunks = splitter.feed("```py\n" + "x = 1\n" * (FENCE_LINES * 3 + 5))
    assert [len(chunk.text.split("\n")) for chunk in chunks] == [FENCE_LINES] * 3
    assert len(splitter.tail()[0].text.split("\n")) == 5


def test_a_line_without_end_is_cut_and_nothing_of_it_is_lost() -> None:
    splitter = Splitter()
    chunks = splitter.feed("ab " * 9_000) + splitter.finish()
    assert "".join(chunk.text for chunk in chunks) == "ab " * 9_000
    assert max(len(chunk.text) for chunk in chunks) <= LINE_LIMIT
    assert all(chunk.glued for chunk in chunks[1:])


def test_the_open_chunk_never_grows_past_its_limit_whatever_the_block() -> None:
    row = "| cell | other |\n"
    for text in ("word\n" * 9_000, "> q\n" * 9_000, "| a | b |\n|---|---|\n" + row * 9_000,
                 "- a\n" + "  b\n" * 9_000, "- a\n" + "  - n\n" * 9_000,
                 "1. x\n   ```py\n" + "   y = 1\n" * 9_000, "    code\n" * 9_000):  # fmt: skip
        splitter = Splitter()
        splitter.feed(text)
        assert sum(len(chunk.text) for chunk in splitter.tail()) < 2 * BLOCK_LIMIT, text[:20]


def test_a_long_table_goes_on_with_its_header() -> None:
    splitter = Splitter()
    text = "| name | n |\n|---|---|\n" + "| cell | 1 |\n" * 4_000
    chunks = splitter.feed(text) + splitter.finish()
    assert len(chunks) > 1
    assert all(chunk.text.startswith("| name | n |\n|---|---|\n") for chunk in chunks)
    assert sum(chunk.text.count("| cell | 1 |") for chunk in chunks) == 4_000


def test_a_long_fence_in_an_item_goes_on_as_a_fence() -> None:
    splitter = Splitter()
    text = "- see\n  ```py\n" + "  x = 1\n" * 2_000 + "  ```\n- next\n"
    chunks = splitter.feed(text) + splitter.finish()
    assert [chunk.margin for chunk in chunks][1:-1] == [2] * (len(chunks) - 2)
    assert all(chunk.text.startswith("```py\nx = 1") for chunk in chunks[1:-1])


def test_a_last_line_that_could_become_anything_is_not_shown_yet() -> None:
    splitter = Splitter()
    splitter.feed("word\n-")
    assert [chunk.text for chunk in splitter.tail()] == ["word"]
    splitter.feed("- x")
    assert splitter.tail()[-1].text == "word\n-- x"
