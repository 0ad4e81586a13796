"""The height index."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kage.tui.transcript.heights import Heights

_EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 9), st.just(0)),
        st.tuples(st.just("set"), st.integers(0, 9), st.integers(0, 99)),
        st.tuples(st.just("pop"), st.just(0), st.just(0)),
    ),
    max_size=120,
)


@given(st.lists(st.integers(0, 9), max_size=40), _EDITS)
def test_it_agrees_with_plain_sums_whatever_is_done(
    start: list[int], edits: list[tuple[str, int, int]]
) -> None:
    heights, plain = Heights(start), list(start)
    for kind, value, place in edits:
        if kind == "append":
            heights.append(value)
            plain.append(value)
        elif plain and kind == "set":
            heights.set(place % len(plain), value)
            plain[place % len(plain)] = value
        elif plain and kind == "pop":
            assert heights.pop() == plain.pop()
    assert heights.total == sum(plain)
    assert [heights.before(at) for at in range(len(plain) + 1)] == [
        sum(plain[:at]) for at in range(len(plain) + 1)
    ]
    rows = [(at, row) for at, size in enumerate(plain) for row in range(size)]
    assert [heights.find(row) for row in range(len(rows))] == rows
    assert heights.find(len(rows) + 3)[0] == len(plain)
