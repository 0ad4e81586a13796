"""Waits grow, stay bounded, and follow what the endpoint asks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kage.core.errors import AuthFailed, Overloaded, ProviderError, Unreachable
from kage.providers.errors import NoConnection
from kage.providers.retry import ATTEMPTS, LONGEST, PATIENCE, delay


@given(st.integers(1, ATTEMPTS - 1))
def test_waits_grow_and_stay_bounded(attempt):
    for error in (Overloaded("x"), Unreachable("x")):
        seconds = delay(error, attempt)
        assert seconds is not None
        assert 0.7 * 2 ** (attempt - 1) <= seconds <= LONGEST * 1.25


@given(st.floats(0, PATIENCE))
def test_what_the_endpoint_asks_for_is_honoured(seconds):
    assert delay(Overloaded("x", retry_after=seconds), 1) == seconds


def test_an_endpoint_that_asks_for_too_much_is_reported_instead():
    assert delay(Overloaded("x", retry_after=PATIENCE + 1), 1) is None


def test_what_cannot_get_better_is_not_tried_again():
    for error in (ProviderError("x"), AuthFailed("x")):
        assert delay(error, 1) is None


def test_a_network_that_is_down_gets_two_more_tries_and_this_machine_none():
    def gone(local):
        return NoConnection("x", why="", fix="", provider="", local=local)

    assert [delay(gone(False), n) is None for n in (1, 2, 3)] == [False, False, True]
    assert delay(gone(True), 1) is None
