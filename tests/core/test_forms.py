"""Forms out of schemas of strangers: what becomes a field, what fits, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.core.formreading import BadForm, looks_secret, read_form
from kage.core.forms import Field, Kind


def one(schema: dict[str, Any], *, required: bool = False) -> Field:
    form = read_form({"properties": {"x": schema}, "required": ["x"] if required else []})
    return form.fields[0]


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, Kind.TEXT),
        ({"type": ["string", "null"]}, Kind.TEXT),
        ({"type": "integer"}, Kind.INTEGER),
        ({"type": "number"}, Kind.NUMBER),
        ({"type": "boolean"}, Kind.FLAG),
        ({"type": "string", "enum": ["a"]}, Kind.ONE),
        ({"enum": [1, None]}, Kind.ONE),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, Kind.ONE),
        ({"type": "array", "items": {"type": "string", "enum": ["a"]}}, Kind.MANY),
        ({"type": "array", "items": {"anyOf": [{"const": "a"}]}}, Kind.MANY),
        ({"type": "array", "items": {"oneOf": [{"const": "a"}]}}, Kind.MANY),
        ({"type": "array", "items": {"type": "string"}}, Kind.JSON),
        ({"type": "object", "properties": {"y": {}}}, Kind.JSON),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, Kind.JSON),
        ({"$ref": "#/$defs/x"}, Kind.JSON),
        ({}, Kind.JSON),
        (True, Kind.JSON),
    ],
)
def test_each_schema_is_filled_in_its_own_way(schema: Any, kind: Kind) -> None:
    assert one(schema).kind is kind


def test_titles_of_choices_come_from_every_spelling_of_them() -> None:
    old = one({"enum": ["a", "b"], "enumNames": ["Alpha", "Beta"]})
    new = one({"oneOf": [{"const": "a", "title": "Alpha"}, {"const": "b"}]})
    assert [choice.label for choice in old.choices] == ["Alpha", "Beta"]
    assert [choice.label for choice in new.choices] == ["Alpha", "b"]
    short = one({"enum": ["a", "b"], "enumNames": ["only one"]})
    assert [choice.label for choice in short.choices] == ["a", "b"]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "format": "email"}, "a@b.example", "a@b@c"),
        ({"type": "string", "format": "uri"}, "https://a.example/x?y", "just words"),
        ({"type": "string", "format": "date"}, "2024-02-29", "2023-02-29"),
        ({"type": "string", "format": "date-time"}, "2024-02-29T10:00:00.5Z", "2024-02-29 10:00"),
        ({"type": "string", "minLength": 2, "maxLength": 3}, "ab", "abcd"),
        ({"type": "integer", "minimum": 1}, 1, 0),
        ({"type": "integer"}, 10**400, 1.5),
        ({"type": "number", "exclusiveMaximum": 1}, 0.99, 1),
        ({"type": "boolean"}, False, 0),
        ({"enum": [1, "1"]}, 1, True),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1}, ["a"], ["a", "b"]),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1}, ["b"], ["c"]),
        ({"type": "object"}, {"any": [1]}, [1]),
    ],
)
def test_an_answer_is_held_to_its_schema(schema: dict[str, Any], good: Any, bad: Any) -> None:
    field = one(schema)
    assert field.complaint(good) == ""
    assert field.complaint(bad)
    assert field.complaint(None) == ""
    assert one(schema, required=True).complaint(None)


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        ({"type": "integer"}, " 42 ", 42),
        ({"type": "integer"}, "42.0", 42),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "boolean"}, "Yes", True),
        ({"enum": ["a", 2]}, "2", 2),
        ({"enum": ["a"], "enumNames": ["The A"]}, "the a", "a"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "a, b", ["a", "b"]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "string"}, "  kept  ", "  kept  "),
        ({"type": "string"}, "", None),
    ],
)
def test_what_is_typed_becomes_a_value(schema: dict[str, Any], typed: str, value: Any) -> None:
    assert one(schema).read(typed) == value


@pytest.mark.parametrize(
    ("schema", "typed"),
    [
        ({"type": "integer"}, "many"),
        ({"type": "integer"}, "1.5"),
        ({"type": "integer"}, "9" * 5000),
        ({"type": "number"}, "nan"),
        ({"type": "number"}, "1e999"),
        ({"type": "boolean"}, "perhaps"),
        ({"enum": ["a"]}, "b"),
        ({"type": "object"}, "{"),
        ({"type": "object"}, "[" * 100_000),
    ],
)
def test_what_is_no_value_says_so(schema: dict[str, Any], typed: str) -> None:
    with pytest.raises(ValueError):
        one(schema).read(typed)


def test_a_default_that_does_not_fit_is_left_out_and_noted() -> None:
    form = read_form({"properties": {"n": {"type": "integer", "default": "many"}}})
    assert form.initial() == {} and len(form.notes) == 1


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {"type": "string"},
        {"properties": []},
        {"properties": {str(n): {} for n in range(101)}},
        {"properties": {"x": {"enum": list(range(501))}}},
        {"properties": {"x" * 201: {}}},
        {"properties": {"x": {"description": "y" * 100_000}}},
        {"properties": {}, "required": ["x"]},
    ],
)
def test_what_no_person_could_fill_in_is_refused(schema: Any) -> None:
    with pytest.raises(BadForm):
        read_form(schema)


@pytest.mark.parametrize(
    "name", ["password", "apiKey", "API-KEY", "accessToken", "pin", "client_secret", "card number"]
)
def test_names_of_secrets_are_noticed(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", ["monkey", "keyboard", "spinning", "shopping", "compass", "name"])
def test_ordinary_names_are_not(name: str) -> None:
    assert not looks_secret(name)


_WORDS = st.sampled_from(
    [
        "type", "enum", "const", "oneOf", "anyOf", "items", "title", "default", "minimum",
        "minLength", "format", "enumNames", "required", "properties", "string", "integer", "array",
    ]
)  # fmt: skip
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), _JSON, max_size=4), _JSON)
def test_any_schema_makes_a_form_or_a_reason_and_any_answer_a_verdict(
    properties: dict[str, Any], answer: Any
) -> None:
    try:
        form = read_form({"type": "object", "properties": properties})
    except BadForm as error:
        assert str(error)
        return
    assert not form.complaints(form.initial()) or any(f.required for f in form.fields)
    for field in form.fields:
        field.complaint(answer)
        text = field.write(field.default)
        assert isinstance(text, str)
        if field.default is not None and field.kind in (Kind.INTEGER, Kind.FLAG):
            assert field.read(text) == field.default
    json.dumps(form.initial(), default=str)
