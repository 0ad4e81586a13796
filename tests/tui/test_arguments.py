"""The argument view shows every byte a person is asked about, and nothing can pretend."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kage.core.sanitise import visible
from kage.tui.widgets.arguments import FOLD_CHARS, GUTTER, argument_rows, diff_rows, is_foldable
from kage.tui.widgets.rows import Row, Rows, fold, row


def _text(rows: Rows) -> list[str]:
    return ["".join(span.text for span in item.spans) for item in rows]


def _kinds(item: Row) -> set[str]:
    return {span.kind for span in item.spans}


def test_names_and_values_stand_in_columns() -> None:
    assert _text(argument_rows({"path": "a.py", "pattern": "x"}, unfolded=False)) == [
        "path     a.py",
        "pattern  x",
    ]


def test_a_long_value_is_folded_with_its_length_and_unfolds_whole() -> None:
    value = "word " * 10_000
    folded = "\n".join(_text(argument_rows({"text": value}, unfolded=False)))
    assert f"folded: {len(value):,} characters" in folded
    assert len(folded) < 2 * FOLD_CHARS
    assert value in "\n".join(_text(argument_rows({"text": value}, unfolded=True)))
    assert is_foldable({"text": value})


def test_a_further_line_of_a_value_cannot_look_like_an_argument() -> None:
    rows = _text(argument_rows({"a": "x\ncommand  rm -rf /"}, unfolded=False))
    assert rows[1].strip().startswith(GUTTER.strip())


def test_control_and_bidi_characters_are_spelled_out() -> None:
    text = "\n".join(_text(argument_rows({"a\x1b[2J": "\x1b[31m\u202e\x00"}, unfolded=True)))
    assert visible(text) == text
    assert "␛" in text
    assert "<U+202E>" in text


def test_a_text_that_reads_like_another_value_is_quoted() -> None:
    rows = _text(argument_rows({"a": "true", "b": True, "c": "", "d": " x "}, unfolded=False))
    assert rows == ['a  "true"', "b  true", 'c  ""', 'd  " x "']


def test_no_arguments_are_said_to_be_none() -> None:
    assert _text(argument_rows({}, unfolded=False)) == ["no arguments"]


def test_a_diff_is_coloured_by_line() -> None:
    rows = diff_rows("--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same")
    kinds = [_kinds(item) for item in rows]
    assert kinds == [{"muted"}, {"muted"}, {"hunk"}, {"removed"}, {"added"}, {""}]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.text(max_size=10), _JSON, max_size=5), st.integers(2, 100))
def test_every_argument_folds_to_any_width_and_is_safe(
    arguments: dict[str, Any], width: int
) -> None:
    rows = argument_rows(arguments, unfolded=True)
    for line in fold(rows, width):
        text = "".join(span.text for span in line)
        assert cell_len(text) <= max(2, width)
        assert visible(text) == text
        assert "\n" not in text


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x2FFF), max_size=300))
def test_folding_loses_nothing(text: str) -> None:
    safe = visible(text, single_line=True)
    joined = "".join(span.text for line in fold((row(safe),), 7) for span in line)
    assert joined == safe


@given(st.lists(st.text(alphabet="abc語", min_size=1, max_size=9), min_size=1, max_size=20))
def test_words_stay_whole_where_they_fit_a_line(words: list[str]) -> None:
    text = " ".join(words)
    lines = ["".join(span.text for span in line) for line in fold((row(text, words=True),), 20)]
    assert "".join(lines) == text
    assert [word for line in lines for word in line.split()] == words


def test_a_word_longer_than_the_line_is_cut_where_the_line_ends() -> None:
    lines = ["".join(span.text for span in line) for line in fold((row("x" * 25, words=True),), 10)]
    assert lines == ["x" * 10, "x" * 10, "x" * 5]
