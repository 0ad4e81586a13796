"""What was approved is what is sent, once."""

from __future__ import annotations

import copy
import json
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from kage.core.canonical import digest
from kage.core.gate import Seals
from kage.permissions.seal import SealBook

VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.text(max_size=5), VALUE, max_size=4)


def binds_once_and_edited_never(arguments):
    book = SealBook()
    book.open("c", "t", digest(arguments), "d1")
    edited = copy.deepcopy(arguments)
    edited["\0edited"] = 1
    assert book.bind("c", "t", edited) is None
    assert book.bind("c", "t", json.loads(json.dumps(arguments))) == "d1"
    assert book.bind("c", "t", arguments) is None


@settings(max_examples=500, deadline=None)
@given(ARGUMENTS)
def test_the_same_arguments_bind_once_and_edited_ones_never(arguments):
    binds_once_and_edited_never(arguments)


def anything(dice, depth):
    """Make a JSON value of any kind."""
    kind = dice.randrange(8 if depth else 6)
    match kind:
        case 0:
            return dice.choice([None, True, False])
        case 1:
            return dice.randrange(-(2**70), 2**70)
        case 2:
            return dice.choice([0, 1, -1, 0.0, -0.0, 1.0, 1e300, 5e-324])
        case 3:
            return dice.uniform(-1e6, 1e6)
        case 4 | 5:
            return words(dice)
        case 6:
            return [anything(dice, depth - 1) for _ in range(dice.randrange(4))]
    return {words(dice): anything(dice, depth - 1) for _ in range(dice.randrange(4))}


def words(dice):
    """Make a text of any characters but halves of pairs."""
    planes = ((0, 0x80), (0x80, 0xD800), (0xE000, 0x110000))
    return "".join(chr(dice.randrange(*dice.choice(planes))) for _ in range(dice.randrange(9)))


def test_ten_thousand_random_arguments_bind_once_and_edited_ones_never():
    dice = random.Random(20_260_728)
    for _ in range(10_000):
        binds_once_and_edited_never(
            {words(dice): anything(dice, 3) for _ in range(dice.randrange(5))}
        )


@given(ARGUMENTS, ARGUMENTS)
def test_arguments_that_differ_need_a_decision_of_their_own(shown, sent):
    book = SealBook()
    book.open("c", "t", digest(shown), "d1")
    bound = book.bind("c", "t", sent)
    assert (bound == "d1") == (digest(shown) == digest(sent))


def test_another_tool_or_connection_does_not_use_it():
    book = SealBook()
    book.open("c", "t", digest({}), "d1")
    assert book.bind("c", "u", {}) is None
    assert book.bind("d", "t", {}) is None
    assert book.bind("c", "t", {}) == "d1"


def test_two_identical_calls_in_parallel_need_two_decisions():
    book: Seals = SealBook()
    assert isinstance(book, SealBook)
    book.open("c", "t", digest({"a": 1}), "d1")
    book.open("c", "t", digest({"a": 1}), "d2")
    assert {book.bind("c", "t", {"a": 1}), book.bind("c", "t", {"a": 1})} == {"d1", "d2"}
    assert book.bind("c", "t", {"a": 1}) is None


def test_a_closed_decision_binds_nothing():
    book = SealBook()
    book.open("c", "t", digest({}), "d1")
    assert book.close("d1")
    assert not book.close("d1")
    assert book.bind("c", "t", {}) is None
    assert len(book) == 0


def test_absent_arguments_are_the_empty_object():
    book = SealBook()
    book.open("c", "t", digest({}), "d1")
    assert book.bind("c", "t", None) == "d1"


def test_arguments_without_a_canonical_form_bind_nothing():
    book = SealBook()
    book.open("c", "t", digest({}), "d1")
    assert book.bind("c", "t", {"a": float("nan")}) is None
    assert book.bind("c", "t", {"a": "\ud800"}) is None


def test_one_and_one_point_nought_are_not_the_same_bytes():
    book = SealBook()
    book.open("c", "t", digest({"a": 1}), "d1")
    assert book.bind("c", "t", {"a": 1.0}) is None
    assert book.bind("c", "t", {"a": True}) is None


def test_many_decisions_close_in_any_order():
    book = SealBook()
    names = [f"d{number}" for number in range(200)]
    for name in names:
        book.open("c", "t", digest({"n": len(name)}), name)
    random.Random(1).shuffle(names)
    for name in names:
        assert book.close(name)
    assert len(book) == 0
