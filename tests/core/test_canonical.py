"""The canonical form: one spelling, and a clear refusal of what JSON cannot carry."""

from __future__ import annotations

import json
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.core.canonical import MAX_DEPTH, NotCanonical, canonical, digest

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_the_canonical_form_is_json_that_means_the_same(value):
    assert json.loads(canonical(value)) == value


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_the_order_of_keys_does_not_matter(value):
    turned = dict(reversed(value.items()))
    assert canonical(turned) == canonical(value)
    assert digest(turned) == digest(value)


@given(JSON, JSON)
def test_different_values_have_different_forms(one, other):
    if canonical(one) == canonical(other):
        assert json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ({"a": float("nan")}, "nan"),
        ({"a": [float("inf")]}, "inf"),
        ({"a": -float("inf")}, "inf"),
        ({"a": "\ud800"}, "surrogate"),
        ({"\udfff": 1}, "surrogate"),
        ({"a": {1: 2}}, "no string"),
        ({"a": b"x"}, "bytes"),
        ({"a": {1, 2}}, "set"),
        ({"a": 10**5000}, "integer"),
        ({"a": -(10**5000)}, "integer"),
    ],
)
def test_what_json_cannot_carry_is_refused_with_its_path(value, word):
    with pytest.raises(NotCanonical, match=word) as caught:
        canonical(value)
    assert "arguments" in str(caught.value)


def test_nesting_is_limited_before_the_recursion_limit_is():
    deep: object = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    canonical(deep)
    with pytest.raises(NotCanonical, match="nested"):
        canonical([deep])
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(NotCanonical, match="nested"):
        canonical(deep)


def test_a_read_only_mapping_is_written_like_a_dict():
    frozen = MappingProxyType({"b": MappingProxyType({"x": 1}), "a": (1, 2)})
    assert canonical(frozen) == b'{"a":[1,2],"b":{"x":1}}'
