"""Whatever a server offers, the copy for the model is one every endpoint takes."""

from __future__ import annotations

import copy
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kage.providers.projection import Projections, project
from kage.providers.schemas import MAX_DEPTH, MAX_NODES, project_schema
from tests.providers.asking import tool

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
ALLOWED = {
    *("type", "title", "description", "enum", "default", "properties", "required", "items"),
    *("additionalProperties", "anyOf", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems"),
    *("pattern", "format"),
}


def check(schema, depth=0):
    """Fail unless ``schema`` is one every endpoint takes."""
    assert isinstance(schema, dict)
    assert set(schema) <= ALLOWED
    assert depth <= MAX_DEPTH + 4
    assert isinstance(schema.get("type", ""), str)
    for name, part in schema.get("properties", {}).items():
        assert NAME.fullmatch(name)
        check(part, depth + 1)
    for name in schema.get("required", ()):
        assert name in schema["properties"]
    if "required" in schema:
        assert schema["required"]
    if "enum" in schema:
        assert schema["enum"]
    for option in schema.get("anyOf", ()):
        check(option, depth + 1)
    if schema.get("type") == "array":
        assert "items" in schema
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            check(schema[key], depth + 1)


def check_root(schema):
    check(schema)
    assert schema["type"] == "object"
    assert "properties" in schema
    assert "anyOf" not in schema
    json.dumps(schema, allow_nan=False).encode()
    assert '"$ref":' not in json.dumps(schema)


KEYS = st.sampled_from(
    (
        *("type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "$ref", "enum"),
        *("const", "additionalProperties", "description", "title", "default", "pattern", "not"),
        *("format", "minimum", "minLength", "if", "then", "$defs", "definitions", "prefixItems"),
        *("$dynamicRef", "nullable", "patternProperties", "$anchor", "examples", "a", "wo für"),
        *("$schema", ""),
    )
)
REFS = st.sampled_from(
    ["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#a", "#/%24defs/a", "https://x.org/s", "#/"]
)
TYPES = st.sampled_from(["object", "string", "null", "array", "integer", "boolean", "banana"])
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), REFS, TYPES
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=6)),
    max_leaves=40,
)


@settings(max_examples=400, deadline=None)
@given(JSON)
def test_any_json_becomes_an_acceptable_schema(schema):
    before = copy.deepcopy(schema)
    made = project_schema(schema)
    assert repr(schema) == repr(before)  # repr, since NaN is not equal to itself
    schema = schema if isinstance(schema, dict) else {}
    projection = project(tool("x", schema))
    check_root(projection.schema)
    assert made["type"] == "object"


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=80), st.just({"type": "string"}), max_size=6))
def test_renamed_arguments_come_back_by_their_real_names(properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    projection = project(tool("x", schema))
    check_root(projection.schema)
    given_by_model = {name: "v" for name in projection.schema["properties"]}
    assert projection.restore(given_by_model) == {name: "v" for name in properties}


def test_references_of_pydantic_are_inlined():
    schema = {
        "$defs": {
            "Colour": {"enum": ["red", "blue"], "type": "string"},
            "Item": {
                "type": "object",
                "properties": {"colour": {"$ref": "#/$defs/Colour", "description": "its colour"}},
                "required": ["colour"],
            },
        },
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
            "note": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "default": None,
                "title": "N",
            },
        },
        "required": ["items"],
    }
    assert project_schema(schema) == {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "colour": {
                            "enum": ["red", "blue"],
                            "type": "string",
                            "description": "its colour",
                        }
                    },
                    "required": ["colour"],
                },
            },
            "note": {"type": "string", "title": "N"},
        },
        "required": ["items"],
    }


def test_a_recursive_schema_ends():
    node = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    check_root(project_schema(node))
    pair = {
        "$defs": {
            "a": {"properties": {"b": {"$ref": "#/$defs/b"}, "c": {"$ref": "#/$defs/b"}}},
            "b": {"properties": {"a": {"$ref": "#/$defs/a"}, "c": {"$ref": "#/$defs/a"}}},
        },
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}},
    }
    check_root(project_schema(pair))


def test_references_that_multiply_are_cut():
    defs = {
        f"d{n}": {"properties": {k: {"$ref": f"#/$defs/d{n + 1}"} for k in "abcdefgh"}}
        for n in range(12)
    }
    bomb = {"$defs": defs, "type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}}
    made = project_schema(bomb)
    check_root(made)
    assert json.dumps(made).count("properties") <= MAX_NODES


def test_a_very_deep_schema_is_cut():
    schema: dict = {"type": "string"}
    for _ in range(400):
        schema = {"type": "object", "properties": {"a": schema}}
    check_root(project_schema(schema))


def test_alternatives_at_the_root_are_dissolved():
    schema = {
        "type": "object",
        "anyOf": [
            {"properties": {"content": {"type": "string"}}, "required": ["content", "name"]},
            {"properties": {"url": {"type": "string"}}, "required": ["url", "name"]},
        ],
        "properties": {"name": {"type": "string"}},
    }
    made = project_schema(schema)
    check_root(made)
    assert set(made["properties"]) == {"name", "content", "url"}
    assert made["required"] == ["name"]
    assert "content, name; url, name" in made["description"]


def test_a_tagged_union_keeps_every_tag():
    schema = {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}},
            {"type": "object", "properties": {"kind": {"const": "b"}, "x": {"type": "string"}}},
        ]
    }
    made = project_schema(schema)
    check_root(made)
    assert made["properties"]["kind"]["enum"] == ["a", "b"]
    assert len(made["properties"]["x"]["anyOf"]) == 2


def test_all_of_adds_up():
    made = project_schema(
        {
            "allOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {"type": "string"}}, "required": ["b"]},
            ]
        }
    )
    assert made["required"] == ["a", "b"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["string", "null"]}, {"type": "string"}),
        ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, {"type": "integer"}),
        ({"const": 3}, {"enum": [3]}),
        (
            {"type": ["string", "integer"], "minLength": 2},
            {"anyOf": [{"type": "string", "minLength": 2}, {"type": "integer"}]},
        ),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": "string", "pattern": "(?<=a)b"}, {"type": "string"}),
        (True, {}),
        ({"type": "string", "x-odd": 1, "not": {}}, {"type": "string"}),
        ({"$ref": "https://example.org/schema"}, {}),
    ],
)
def test_parts_take_their_plain_form(schema, expected):
    made = project_schema({"type": "object", "properties": {"p": schema}})
    assert made["properties"]["p"] == expected


def test_a_spec_is_projected_once():
    projections = Projections()
    spec = tool()
    assert projections(spec) is projections(spec)
    assert projections(tool()) is not projections(spec)


def test_the_server_is_named_once():
    spec = tool("x", description="[server github] Make.", server="github")
    assert project(spec).description == "[server github] Make."


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=4000))
def test_descriptions_are_short_and_never_empty(text):
    made = project(tool("x", description=text)).description
    assert made
    assert len(made.encode()) <= 2048
