"""The quiet period, key by key."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kage.tui.widgets.guard import LONGEST, QUIET, Guard


def test_nothing_answers_before_the_question_is_painted() -> None:
    guard = Guard()
    assert not guard.accepts(1_000.0)


def test_a_key_counts_after_the_quiet_period() -> None:
    guard = Guard()
    guard.show(10.0)
    assert not guard.accepts(10.0 + QUIET - 0.01)
    assert guard.accepts(10.0 + QUIET)


def test_a_key_pressed_before_the_painting_never_counts() -> None:
    guard = Guard()
    guard.show(10.0)
    assert not guard.accepts(9.0)


def test_a_swallowed_key_restarts_the_quiet_period() -> None:
    guard = Guard()
    guard.show(10.0)
    guard.swallow(10.3)
    assert not guard.accepts(10.5)
    assert guard.accepts(10.3 + QUIET)


def test_the_guard_ends_after_two_seconds_however_much_is_typed() -> None:
    guard = Guard()
    guard.show(10.0)
    for tenth in range(25):
        guard.swallow(10.0 + tenth / 10)
    assert guard.accepts(10.0 + LONGEST)


def test_a_quiet_period_longer_than_the_longest_holds_for_all_of_it() -> None:
    guard = Guard(60.0)
    guard.show(10.0)
    assert not guard.accepts(10.0 + 59.0)
    assert guard.accepts(10.0 + 60.0)


def test_a_hidden_question_takes_no_answer() -> None:
    guard = Guard()
    guard.show(10.0)
    guard.hide()
    assert not guard.accepts(99.0)


@given(st.lists(st.floats(0, 5), max_size=20), st.floats(0, 10))
def test_no_answer_within_the_quiet_period_of_the_painting(keys: list[float], at: float) -> None:
    guard = Guard()
    guard.show(0.0)
    for key in sorted(keys):
        guard.swallow(key)
    if at < QUIET:
        assert not guard.accepts(at)
    if at >= LONGEST:
        assert guard.accepts(at)
    assert (guard.gauge(at) == "▮▮▮▮") == guard.accepts(at)
