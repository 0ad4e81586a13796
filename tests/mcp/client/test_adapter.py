"""Definitions become tools of kage: judged one by one, pinned, capped, always exec risk."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.config.schema import ServerSpec
from kage.core.content import Image, Text
from kage.core.messages import Outcome
from kage.core.servers import Stage
from kage.core.tools import Claims, Risk, SubjectKind, ToolResult
from kage.mcp.client.calling.adapter import MAX_DESCRIPTION, ServerToolAdapter, adapt, cap
from kage.mcp.client.calling.definitions import entry_hash, judge, left_out
from kage.mcp.client.calling.results import tool_result
from kage.mcp.client.faults import ended, exited, first_cause, reason

SPEC = ServerSpec(name="files", command="files", args=("-v",))
GOOD: dict[str, Any] = {
    "name": "read_file",
    "title": "Read",
    "description": "Reads a file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    "annotations": {"readOnlyHint": True, "destructiveHint": "no"},
}


class Line:
    """A connection that remembers what was called."""

    id = "c1"

    def __init__(self) -> None:
        self.called: list[tuple[str, Any]] = []

    async def call_tool(
        self, tool: str, arguments: Any, *, progress: Any, output_schema: Any = None
    ) -> ToolResult:
        self.called.append((tool, arguments))
        return ToolResult(content=(Text("done"),))


def make(*entries: Any, spec: ServerSpec = SPEC) -> tuple[ServerToolAdapter, ...]:
    return adapt(spec, judge(entries), Line(), entry="e1", servers=[spec.name])


def test_a_tool_keeps_what_the_server_said_and_where_it_comes_from() -> None:
    [tool] = make(GOOD)
    spec = tool.spec
    assert spec.name == "files__read_file"
    assert spec.description == "[server files] Reads a file."
    assert spec.schema == GOOD["inputSchema"]
    assert spec.subject.kind is SubjectKind.ARGUMENTS
    assert spec.server is not None
    assert (spec.server.original, spec.server.entry_hash, spec.server.connection) == (
        "read_file",
        "e1",
        "c1",
    )
    assert spec.server.claims == Claims(read_only=True)


@given(st.fixed_dictionaries({}, optional={"readOnlyHint": st.booleans(), "x": st.text()}))
def test_every_tool_is_exec_risk_whatever_it_claims(annotations: dict[str, Any]) -> None:
    [tool] = make({**GOOD, "annotations": annotations})
    assert tool.spec.risk is Risk.EXEC


def test_a_long_description_is_capped() -> None:
    [tool] = make({**GOOD, "description": "é" * 5000})
    assert len(tool.spec.description.encode()) <= MAX_DESCRIPTION
    assert tool.spec.description.startswith("[server files] é")
    assert "[cut" in tool.spec.description


@given(st.text(), st.integers(min_value=40, max_value=200))
def test_a_capped_text_never_exceeds_its_bytes(text: str, limit: int) -> None:
    assert len(cap(text, limit).encode("utf-8", "replace")) <= limit


def test_filters_hide_tools_without_renaming_others() -> None:
    entries = [{**GOOD, "name": name} for name in ("read", "read.all", "write", "read_all")]
    every = {tool.spec.name for tool in make(*entries)}
    spec = dataclasses.replace(SPEC, enabled_tools=("read*",), disabled_tools=("read_all",))
    some = {tool.spec.name for tool in make(*entries, spec=spec)}
    assert some < every
    assert len(some) == 2


@pytest.mark.parametrize("key", ["title", "description", "inputSchema", "outputSchema"])
def test_the_pin_changes_with_each_part_of_the_definition(key: str) -> None:
    [before] = judge([GOOD]).tools
    changed = {**GOOD, key: {"type": "object", "x": 1} if key.endswith("Schema") else "other"}
    [after] = judge([changed]).tools
    assert before.pin != after.pin


def test_the_pin_does_not_depend_on_order_or_on_what_is_not_the_definition() -> None:
    [before] = judge([GOOD]).tools
    [after] = judge([{**dict(reversed(GOOD.items())), "_meta": {"a": 1}, "icons": []}]).tools
    assert before.pin == after.pin


@given(st.lists(st.recursive(st.none() | st.text() | st.integers(), st.lists, max_leaves=3)))
def test_entries_that_are_no_tools_cost_only_themselves(odd: list[Any]) -> None:
    listing = judge([*odd, GOOD])
    assert [tool.name for tool in listing.tools] == ["read_file"]
    assert len(listing.dropped) == len(odd)


def test_a_name_listed_twice_is_one_tool() -> None:
    listing = judge([GOOD, {**GOOD, "description": "another"}])
    assert [tool.description for tool in listing.tools] == ["Reads a file."]
    assert listing.dropped == ("read_file: the name is listed twice",)


def test_a_control_character_in_a_dropped_name_is_spelled_out() -> None:
    [note] = judge([{"name": "\x1b[2Jx"}]).dropped
    assert "\x1b" not in note


def test_a_huge_definition_is_dropped() -> None:
    listing = judge([{**GOOD, "description": "x" * 300_000}, {**GOOD, "name": "n" * 600}])
    assert listing.tools == ()
    assert len(listing.dropped) == 2


def test_the_entry_hash_follows_what_would_be_started() -> None:
    def digest(spec: ServerSpec = SPEC, argv: tuple[str, ...] = ("a",), exe: str = "/a") -> str:
        return entry_hash(spec, argv, exe, Path("/w"))

    first = digest()
    others = {
        digest(argv=("a", "b")),
        digest(exe="/b"),
        digest(dataclasses.replace(SPEC, env={"A": "${B}"})),
        digest(dataclasses.replace(SPEC, env_pass=("A",))),
        entry_hash(SPEC, ("a",), "/a", Path("/other")),
    }
    assert first not in others
    assert len(others) == 5
    assert first == digest(dataclasses.replace(SPEC, timeout=1.0, disabled=True))
    assert digest(argv=("\udc80",)) != first


def test_content_and_structured_result_stand_side_by_side() -> None:
    raw = {
        "content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}],
        "structuredContent": {"a": 1},
    }
    result = tool_result(raw, server="s", tool="t", output_schema={"type": "object"})
    assert result.content == (Image(data="AA==", mime="image/png"),)
    assert result.structured == {"a": 1}


@given(
    st.dictionaries(
        st.sampled_from(["content", "structuredContent", "isError", "resultType"]),
        st.none() | st.text() | st.lists(st.dictionaries(st.text(), st.text())),
    )
)
def test_no_result_makes_the_reader_fail(raw: dict[str, Any]) -> None:
    result = tool_result(raw, server="s", tool="t", output_schema={"type": "object"})
    assert result.outcome in (Outcome.OK, Outcome.TOOL_ERROR)


def test_the_first_real_cause_is_found_in_nested_groups() -> None:
    inner = ExceptionGroup("g", [ExceptionGroup("h", [ValueError("the cause\nmore")])])
    assert isinstance(first_cause(inner), ValueError)
    assert reason(inner) == "the cause"
    assert reason(RuntimeError()) == "it gave no reason"
    assert (ended(3), ended(-9), ended(None)) == ("exit code 3", "signal SIGKILL", "no exit code")


def test_output_kage_does_not_hold_is_pointed_at() -> None:
    fault = exited("s", Stage.HANDSHAKE, ["npx", "-y", "x"], code=1, stderr=(), piped=False)
    assert fault.why == "see its output above"
    assert "npx -y x" in fault.fix


def test_what_becomes_of_results_goes_with_the_tool() -> None:
    spec = dataclasses.replace(SPEC, max_output_tokens=7, output={"text": "artifact"})
    [tool] = make(GOOD, spec=spec)
    assert tool.spec.handling.max_output_tokens == 7
    assert tool.spec.handling.output == {"text": "artifact"}


def test_a_cut_description_keeps_its_full_text_for_screens() -> None:
    long = "word " * 1_000
    short, cut = make(GOOD, {**GOOD, "name": "long", "description": long})
    assert short.spec.full_description == ""
    assert cut.spec.full_description == long
    assert len(cut.spec.description.encode()) <= MAX_DESCRIPTION


@pytest.mark.parametrize(("most", "kept", "told"), [(0, 5, 0), (5, 5, 0), (9, 5, 0), (2, 2, 1)])
def test_the_most_tools_counts_what_the_globs_leave(most: int, kept: int, told: int) -> None:
    spec = dataclasses.replace(SPEC, max_tools=most, disabled_tools=("t0",))
    listing = judge([{**GOOD, "name": f"t{number}"} for number in range(6)])
    tools = adapt(spec, listing, Line(), entry="e", servers=["files"])
    assert len(tools) == kept
    notes = left_out(listing, spec)
    assert len(notes) == told
    assert not notes or ("3 tools" in notes[0] and "max_tools" in notes[0])
