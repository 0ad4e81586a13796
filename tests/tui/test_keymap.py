"""One table of keys, and what ``[keys]`` may do to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.tui.keymap import ACTIONS, Context, Keymap, canonical_key, display, rebindable


def test_every_action_has_a_name_of_its_own_a_key_and_a_description() -> None:
    names = [action.id for action in ACTIONS]
    assert len(set(names)) == len(names)
    assert all(action.keys and action.help for action in ACTIONS)


def test_no_two_actions_of_one_context_share_a_key() -> None:
    for context in Context:
        keys = [key for action in ACTIONS if action.context is context for key in action.keys]
        assert len(set(keys)) == len(keys), context


def test_a_key_can_be_given_to_another_action() -> None:
    keymap = Keymap({"ctrl+g": "help"})
    assert keymap.find(Context.CHAT, "ctrl+g") == "help"
    assert keymap.keys("servers") == ()
    assert keymap.notices == ()


def test_an_action_can_get_a_further_key() -> None:
    keymap = Keymap({"Ctrl+S": "servers"})
    assert keymap.keys("servers") == ("ctrl+g", "ctrl+s")


def test_a_key_can_be_taken_away() -> None:
    keymap = Keymap({"ctrl+l": "none"})
    assert keymap.keys("models") == ()
    assert keymap.notices == ()


@pytest.mark.parametrize(
    ("key", "action"),
    [("ctrl+c", "help"), ("ctrl+q", "none"), ("escape", "help"), ("y", "scope"), ("1", "details")],
)
def test_quit_interrupt_and_the_answers_keep_their_keys(key: str, action: str) -> None:
    keymap = Keymap({key: action})
    assert len(keymap.notices) == 1
    assert keymap.find(Context.PANEL, "y") == "yes"
    assert keymap.find(Context.CHAT, "escape") == "interrupt"


@pytest.mark.parametrize("action", ["quit", "interrupt", "yes", "no", "all_yes", "cancel"])
def test_a_fixed_action_takes_no_further_key(action: str) -> None:
    keymap = Keymap({"f5": action})
    assert "cannot be bound" in keymap.notices[0]


def test_a_key_that_types_cannot_be_an_action_of_the_prompt() -> None:
    assert "lost for typing" in Keymap({"q": "servers"}).notices[0]
    assert "lost for typing" in Keymap({"?": "send"}).notices[0]


def test_a_misspelt_action_is_told_with_the_nearest_name() -> None:
    assert 'did you mean "models"' in Keymap({"ctrl+y": "modls"}).notices[0]


def test_a_key_that_does_not_exist_is_told() -> None:
    assert "no key" in Keymap({"ctrl+nothing_at_all": "help"}).notices[0]


@given(st.dictionaries(st.text(max_size=12), st.sampled_from([*rebindable(), "none", "x"])))
def test_no_table_breaks_the_keymap(changes: dict[str, str]) -> None:
    keymap = Keymap(changes)
    assert keymap.find(Context.EVERYWHERE, "ctrl+q") == "quit"
    assert keymap.find(Context.EVERYWHERE, "ctrl+c") == "cancel"
    for key, action in (("1", "yes"), ("5", "no_say"), ("escape", "no")):
        assert keymap.find(Context.PANEL, key) == action


@pytest.mark.parametrize(
    ("raw", "key", "shown"),
    [("?", "question_mark", "?"), ("Ctrl+G", "ctrl+g", "ctrl+g"), ("escape", "escape", "esc"),
     ("shift+ctrl+a", "ctrl+shift+a", "ctrl+shift+a"), ("A", "A", "A"), ("/", "slash", "/")],
)  # fmt: skip
def test_keys_are_spelled_as_events_name_them(raw: str, key: str, shown: str) -> None:
    assert canonical_key(raw) == key
    assert display(key) == shown
