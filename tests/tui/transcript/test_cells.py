"""Widths and wrapping."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kage.tui.transcript.cells import chop, clip, clip_middle, expand_tabs, graphemes, width
from kage.tui.transcript.line import Span, logical
from kage.tui.transcript.wrap import fold, wrap

_FAMILY = "👩‍👩‍👧"
_GLYPHS = [_FAMILY, "👍🏽", "🇩🇪", "1️⃣", "é", "한", "語", "。", "x", " ", "ß", "（", "👨🏿‍🚀"]
_MIXED = st.lists(st.sampled_from(_GLYPHS), max_size=60).map("".join)


def test_a_joined_emoji_is_one_glyph_of_two_cells() -> None:
    assert graphemes(_FAMILY) == [(_FAMILY, 2)]
    assert graphemes("🇩🇪🇫🇷") == [("🇩🇪", 2), ("🇫🇷", 2)]
    assert graphemes("👍🏽") == [("👍🏽", 2)]


def test_combining_marks_take_no_cell_and_stay_with_their_letter() -> None:
    assert width("e\u0301a\u0308") == 2
    assert chop("e\u0301" * 5, 2, 2) == ["e\u0301" * 2, "e\u0301" * 2, "e\u0301"]


def test_cjk_breaks_between_characters_and_keeps_closing_punctuation_on_its_row() -> None:
    rows = [line.text for line in wrap((Span("日本語のテキスト、です。"),), 6)]
    assert all(width(row) <= 6 + 2 for row in rows)
    assert not any(row[0] in "、。" for row in rows)
    assert "".join(rows) == "日本語のテキスト、です。"


@given(_MIXED, st.integers(1, 30))
def test_no_row_is_wider_than_the_room_unless_one_glyph_is(text: str, room: int) -> None:
    for line in wrap((Span(text),), room):
        assert width(line.text) <= room or len(graphemes(line.text)) == 1
    for line in fold((Span(text),), room):
        assert width(line.text) <= room or len(graphemes(line.text)) == 1


@given(_MIXED, st.integers(1, 30))
def test_no_glyph_is_cut(text: str, room: int) -> None:
    whole = [glyph for glyph, _ in graphemes(text)]
    parts = [glyph for line in fold((Span(text),), room) for glyph, _ in graphemes(line.text)]
    assert parts == whole


@given(st.lists(st.tuples(st.text("ab cé語 ", max_size=12), st.sampled_from(["", "strong"]))))
def test_wrapping_keeps_the_text_and_its_styles(parts: list[tuple[str, str]]) -> None:
    spans = [Span(text, role) for text, role in parts if text]
    lines = wrap(spans, 7)
    text = "".join(span.text for span in spans)
    assert logical(lines).split() == text.split()
    for role in ("", "strong"):
        before = "".join(s.text for s in spans if s.role == role).replace(" ", "")
        after = "".join(s.text for line in lines for s in line.spans if s.role == role)
        assert after.replace(" ", "") == before


@given(st.text(max_size=80), st.integers(0, 40))
def test_clipping_fits(text: str, cells: int) -> None:
    clean = text.replace("\n", " ")
    assert width(clip(clean, cells)) <= cells
    assert width(clip_middle(clean, cells)) <= cells


def test_widths_are_those_of_the_library_that_writes_to_the_terminal() -> None:
    for glyph in _GLYPHS:
        assert width(glyph) == cell_len(glyph)


def test_tabs_stop_by_cells() -> None:
    assert expand_tabs("a\tb") == "a   b"
    assert expand_tabs("語\tb") == "語  b"
    assert expand_tabs("\t\tx") == " " * 8 + "x"
