"""What a person types becomes exactly one call, or an error that says where it is wrong."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kage.providers.callsyntax import (
    CallSyntaxError,
    nearest,
    parse_arguments,
    parse_call,
    tool_name,
    usage,
)
from tests.providers.asking import tool

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "extra": {"type": "object"},
        "mode": {"enum": ["fast", "slow", 3]},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"type": ["integer", "string"]},
        "any": {},
    },
    "required": ["path", "limit"],
    "additionalProperties": False,
}
TOOLS = {
    name: tool(name, SCHEMA if name == "fs__read" else {"type": "object"})
    for name in ("fs__read", "github__create_issue", "ls")
}


def parsed(text: str) -> dict:
    spec, arguments = parse_call(text, TOOLS)
    assert spec.name == "fs__read"
    return arguments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("path=a limit=3", {"path": "a", "limit": 3}),
        ("a 3", {"path": "a", "limit": 3}),
        ("limit=3 a", {"path": "a", "limit": 3}),
        ("'a b' -3", {"path": "a b", "limit": -3}),
        ('path="a=b" limit=3', {"path": "a=b", "limit": 3}),
        ("path=a=b limit=3", {"path": "a=b", "limit": 3}),
        ("path= limit=0", {"path": "", "limit": 0}),
        ("a 3 ratio=2", {"path": "a", "limit": 3, "ratio": 2}),
        ("a 3 ratio=2.5e1", {"path": "a", "limit": 3, "ratio": 25.0}),
        ("a 3 deep=yes", {"path": "a", "limit": 3, "deep": True}),
        ("a 3 deep=False", {"path": "a", "limit": 3, "deep": False}),
        ("a 3 tags=x tags=y", {"path": "a", "limit": 3, "tags": ["x", "y"]}),
        ("""a 3 tags='["x"]'""", {"path": "a", "limit": 3, "tags": ["x"]}),
        ("a 3 sizes=4 sizes=5", {"path": "a", "limit": 3, "sizes": [4, 5]}),
        ("""a 3 extra:='{"b": [1]}'""", {"path": "a", "limit": 3, "extra": {"b": [1]}}),
        ("""a 3 extra='{"b": 1}'""", {"path": "a", "limit": 3, "extra": {"b": 1}}),
        ("a 3 mode=fast", {"path": "a", "limit": 3, "mode": "fast"}),
        ("a 3 mode=3", {"path": "a", "limit": 3, "mode": 3}),
        ("a 3 maybe=7", {"path": "a", "limit": 3, "maybe": 7}),
        ("a 3 maybe:=null", {"path": "a", "limit": 3, "maybe": None}),
        ("a 3 either=7", {"path": "a", "limit": 3, "either": "7"}),
        ("a 3 any=true", {"path": "a", "limit": 3, "any": "true"}),
        ("a 3 any:=true", {"path": "a", "limit": 3, "any": True}),
        ('{"path": "it\'s", "x": 1}', {"path": "it's", "x": 1}),
        ('\n{"path":\n "a"}', {"path": "a"}),
    ],
)
def test_a_line_becomes_arguments_of_the_right_types(text, expected):
    assert parsed(f"fs__read {text}") == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fs__read a", ["needs limit", "Usage: fs__read path=STRING limit=INTEGER"]),
        ("fs__read", ["needs path and limit"]),
        ("fs__read a many", ["limit must be a whole number, not 'many'"]),
        ("fs__read a 3.5", ["limit must be a whole number"]),
        ("fs__read a 3 b", ["no place for 'b'"]),
        ("fs__read a 3 pth=b", ["no argument 'pth'", "Did you mean path?"]),
        ("fs__read a 3 limit=4 limit=5", ["limit", "given twice"]),
        ("fs__read a 3 deep=maybe", ["true or false"]),
        ("fs__read a 3 ratio=nan", ["a number"]),
        ("fs__read a 3 extra:={b}", ["extra", "no JSON", "character 2"]),
        ("fs__read a 3 mode=warp", ["one of: fast, slow, 3"]),
        ("fs__read 'a 3", ["open quote"]),
        ('fs__read {"path": }', ["no JSON object", "character 10"]),
        ("fs__read {" + '"a":{' * 5000, ["JSON"]),
        ("fs__raed a 3", ["no tool 'fs__raed'", "fs__read"]),
        ("create_issue a=b", ["github__create_issue"]),
    ],
)
def test_a_mistake_is_named_with_its_word_and_what_is_expected(text, words):
    with pytest.raises(CallSyntaxError) as caught:
        parse_call(text, TOOLS)
    for word in words:
        assert word in str(caught.value)


def test_the_long_form_of_a_name_is_taken():
    assert tool_name("mcp__fs__read", TOOLS) == "fs__read"
    assert parse_call("mcp__ls", TOOLS)[0].name == "ls"
    assert tool_name("mcp__nothing", TOOLS) is None


def test_the_form_with_colons_is_taken():
    assert tool_name("mcp:fs:read", TOOLS) == "fs__read"
    assert parse_call("mcp:github:create_issue", TOOLS)[0].name == "github__create_issue"
    assert tool_name("mcp:fs:nothing", TOOLS) is None


def test_a_tool_without_named_arguments_takes_any():
    assert parse_call("ls a=1 b:=2", TOOLS)[1] == {"a": "1", "b": 2}


def test_a_lone_optional_argument_needs_no_name():
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "all": {}}}
    assert parse_arguments(["src"], schema) == {"path": "src"}


def test_a_word_with_an_equals_sign_can_be_a_value():
    schema = {"properties": {"command": {"type": "string"}}, "required": ["command"]}
    assert parse_arguments(["FOO=1 make"], schema) == {"command": "FOO=1 make"}
    assert parse_arguments(["--jobs=4"], schema) == {"command": "--jobs=4"}


def test_references_in_a_schema_are_followed():
    schema = {
        "$defs": {"n": {"type": "integer"}},
        "properties": {"a": {"$ref": "#/$defs/n"}},
        "required": ["a"],
    }
    assert parse_arguments(["5"], schema) == {"a": 5}


def test_usage_names_every_required_argument_first():
    assert usage(TOOLS["fs__read"]).startswith("fs__read path=STRING limit=INTEGER [ratio=NUMBER]")


def test_the_nearest_names_are_found_by_their_last_part_too():
    assert "github__create_issue" in nearest("create_isue", TOOLS)
    assert nearest("zzzz", TOOLS) == []


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_any_json_object_comes_through_whole(arguments):
    line = "fs__read " + json.dumps(arguments)
    assert parse_call(line, TOOLS)[1] == json.loads(json.dumps(arguments))


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_any_json_value_comes_through_with_colon_equals(value):
    text = json.dumps(value)
    line = f"fs__read a 3 any:={shlex.quote(text)}"
    assert parsed(line)["any"] == json.loads(text)


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_text_comes_through_quoted(text):
    assert parsed(f"fs__read path={shlex.quote(text)} limit=3")["path"] == text


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab =:'\"{}[]\\\n\t,1.-pathlimit")))
def test_any_line_is_a_call_or_a_syntax_error(text):
    try:
        _, arguments = parse_call(f"fs__read {text}", TOOLS)
    except CallSyntaxError as error:
        assert error.what
    else:
        assert isinstance(arguments, dict)
