"""A path means the place it really names."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kage.core.locations import is_inside, resolve


def test_links_are_followed_also_in_the_middle(tmp_path):
    inside, outside = tmp_path / "ws", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    assert resolve(inside, "link/new/file") == outside.resolve() / "new" / "file"
    assert not is_inside(resolve(inside, "link/x"), (inside.resolve(),))


def test_dots_home_and_the_empty_path(tmp_path, own_home):
    assert resolve(tmp_path, "a/../b") == tmp_path.resolve() / "b"
    assert resolve(tmp_path, "") == tmp_path.resolve()
    assert resolve(tmp_path, "~/x") == own_home.resolve() / "x"
    assert resolve(tmp_path, "/etc/../x") == Path("/x")


def test_a_sibling_with_the_same_beginning_is_outside(tmp_path):
    assert not is_inside(tmp_path / "ws-evil" / "x", (tmp_path / "ws",))
    assert is_inside(tmp_path / "ws", (tmp_path / "ws",))


def test_a_loop_of_links_does_not_raise(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert resolve(tmp_path, "a/x").is_absolute()


@given(st.text(st.characters(exclude_categories=())) | st.just("~\ud800") | st.just("~\0"))
def test_no_text_makes_it_raise(text):
    assert resolve(Path("/tmp"), text).is_absolute()
    assert resolve(Path("/tmp"), f"~{text}").is_absolute()
