"""The small validator agrees with jsonschema on the part of JSON Schema that it knows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from kage.mcp.server.validate import compile_schema, problems_of
from kage.tools import builtin

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 12)
    | st.sampled_from([1.0, 2.5, 1e300])
    | st.text("ab", max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "minimum": st.integers(-3, 5),
        "maximum": st.integers(0, 9),
        "exclusiveMinimum": st.integers(-3, 5),
        "minLength": st.integers(0, 3),
        "maxLength": st.integers(0, 3),
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "enum": st.lists(st.text("ab", max_size=2) | st.none(), min_size=1, max_size=3),
    },
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: (
        st.fixed_dictionaries(
            {"type": st.just("object")},
            optional={
                "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
                "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
                "additionalProperties": st.booleans() | inner,
            },
        )
        | st.fixed_dictionaries({"type": st.just("array"), "items": inner})
    ),
    max_leaves=5,
)


@given(schema=SCHEMAS, value=VALUES)
def test_it_agrees_with_jsonschema(schema: dict[str, Any], value: Any) -> None:
    expected = Draft202012Validator(schema).is_valid(value)
    problems = problems_of(compile_schema(schema), value)
    assert (not problems) == expected, problems


def test_every_built_in_schema_is_understood() -> None:
    names = [name for name in builtin.NAMES if name != "bash"]
    for tool in builtin.create(spawner=None, names=names, environ={}):
        compile_schema(tool.spec.schema)


@pytest.mark.parametrize("keyword", ["anyOf", "$ref", "pattern", "if", "patternProperties"])
def test_a_keyword_it_cannot_check_is_refused_instead_of_ignored(keyword: str) -> None:
    with pytest.raises(ValueError, match="not supported"):
        compile_schema({"type": "object", "properties": {"a": {keyword: {}}}})


def test_problems_are_told_in_words() -> None:
    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1},
            "mode": {"enum": ["a", "b"]},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    check = compile_schema(schema)
    assert problems_of(check, {"limit": 0, "mode": "c", "pth": 1}) == [
        "path is missing",
        "limit must be at least 1, not 0",
        'mode must be one of "a", "b", not the text "c"',
        'there is no argument "pth" (known: path, limit, mode)',
    ]
    assert problems_of(check, {"path": True}) == ["path must be text, not true"]
    assert len(problems_of(check, {f"x{n}": 1 for n in range(1000)})) <= 21
