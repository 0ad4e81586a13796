"""Text that could act on a terminal, or hide, is spelled out."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.core.sanitise import clip, visible

ANY_TEXT = st.text(st.characters())


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_that_acts_or_hides_is_left(text):
    shown = visible(text)
    for char in shown:
        if char in "\n\t":
            continue
        category = unicodedata.category(char)
        assert category not in ("Cc", "Cs", "Zl", "Zp"), hex(ord(char))
    shown.encode()


@given(st.text(st.characters(exclude_categories=())))
def test_showing_twice_is_showing_once(text):
    assert visible(visible(text)) == visible(text)


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
def test_plain_text_stays_as_it_is(text):
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "␛[2J"),
        ("\x07", "␇"),
        ("a\rb", "a␍b"),
        ("a\r\nb", "a\nb"),
        ("\x7f", "␡"),
        ("\x9b31m", "<U+009B>31m"),
        ("\u202e", "<U+202E>"),
        ("\u2066x\u2069", "<U+2066>x<U+2069>"),
        ("a\u200bb", "a<U+200B>b"),
        ("\ufeff", "<U+FEFF>"),
        ("\U000e0041", "<U+E0041>"),
        ("\ud800", "<U+D800>"),
        ("\u2028", "<U+2028>"),
        ("[@click=app.quit]x[/]", "[@click=app.quit]x[/]"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("a\u200db", "a<U+200D>b"),
    ],
)
def test_each_kind_is_shown(text, shown):
    assert visible(text) == shown


def test_a_single_line_has_no_line_ends():
    assert visible("a\n\tb \r\n c", single_line=True) == "a b c"


def test_clipping_shows_that_something_is_missing():
    assert clip("abcdef", 6) == "abcdef"
    assert clip("abcdef", 4) == "abc…"
