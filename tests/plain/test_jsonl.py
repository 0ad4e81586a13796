"""Every event is one line of JSON any parser reads, whatever models and servers put into it."""

from __future__ import annotations

import json
from typing import NoReturn

import pytest

from kage.core.events import ToolProgressed, ToolQueued
from kage.core.messages import ToolCall
from kage.plain.jsonl import to_line


def _refuse(word: str) -> NoReturn:
    raise AssertionError(f"{word} is no JSON")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_json_does_not_have_become_text(number: float) -> None:
    call = ToolCall(id="c1", name="t", arguments={"a": [number], "b": {"c": number}})
    line = to_line(ToolQueued(call=call, spec=None))
    data = json.loads(line, parse_constant=_refuse)
    assert data["call"]["arguments"] == {"a": [str(number)], "b": {"c": str(number)}}
    report = ToolProgressed(call_id="c1", progress=number, total=None, message="")
    assert json.loads(to_line(report), parse_constant=_refuse)["progress"] == str(number)


def test_a_line_stays_one_line_and_is_always_utf_8() -> None:
    call = ToolCall(id="c1", name="a\nb\u2028", arguments={"x": "\ud800\r\n\x1b[2J"})
    line = to_line(ToolQueued(call=call, spec=None))
    assert line.splitlines()[0].startswith('{"type": "tool_queued"')
    assert "\n" not in line
    line.encode()


def test_no_character_a_terminal_obeys_stands_in_a_line() -> None:
    arguments = {"a": "\x1b[2J\x9b2J\x7f\x85"}
    line = to_line(ToolQueued(call=ToolCall(id="c1", name="t", arguments=arguments), spec=None))
    assert not any(ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in line)
    assert json.loads(line)["call"]["arguments"] == arguments
