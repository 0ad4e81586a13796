"""Pastes behind placeholders, and going back to earlier prompts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kage.tui.widgets.drafts import Pastes, Recall


def test_a_small_paste_stays_as_it_is() -> None:
    assert Pastes().collapse("two\nlines") == "two\nlines"


def test_a_big_paste_becomes_a_placeholder_and_comes_back_whole() -> None:
    pastes = Pastes()
    text = "line\n" * 120
    mark = pastes.collapse(text)
    assert mark == "[paste #1: 121 lines, 600 characters]"
    assert pastes.expand(f"see {mark} please") == f"see {text} please"


def test_a_placeholder_nobody_pasted_is_text() -> None:
    assert Pastes().expand("[paste #7: 9 lines]") == "[paste #7: 9 lines]"


def test_the_placeholder_before_the_cursor_is_found() -> None:
    pastes = Pastes()
    mark = pastes.collapse("x" * 2000)
    assert pastes.mark_before(f"look: {mark}") == mark
    assert pastes.mark_before(f"{mark} more") == ""


@given(st.text(min_size=1001, max_size=1500), st.text(max_size=20))
def test_every_paste_expands_to_itself(text: str, around: str) -> None:
    pastes = Pastes()
    assert pastes.expand(f"{around}{pastes.collapse(text)}{around}") == f"{around}{text}{around}"


def test_going_back_and_forth_returns_to_the_draft() -> None:
    recall = Recall()
    recall.load(("one", "two"))
    assert recall.back("draft") == "two"
    assert recall.back("two") == "one"
    assert recall.back("one") is None
    assert recall.forward() == "two"
    assert recall.forward() == "draft"
    assert recall.forward() is None


def test_older_prompts_that_come_late_stand_before_the_new_ones() -> None:
    recall = Recall()
    recall.add("new")
    assert recall.back("draft") == "new"
    recall.load(("old",))
    assert recall.back("new") == "old"
    assert recall.forward() == "new"
    assert recall.forward() == "draft"
