"""Tools of servers are listed while they are few, named and searched when they are many."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.agent.deferral import MAX_LOADED, Deferral, Mode, index
from kage.agent.mcp_status import McpStatus, active
from kage.agent.mcp_tools import McpTools
from kage.core.content import as_text
from kage.core.errors import ToolError
from kage.core.events import Event, Noticed
from kage.core.messages import AssistantMessage, Stop, ToolCall
from kage.core.servers import Fault, ServerState, ServerStatus, Stage
from kage.core.tools import Invocation, Risk, ServerTool, Tool, ToolResult, ToolSpec
from kage.providers.base import ModelInfo

MODEL = ModelInfo(id="x:y", name="y", window=200_000)


@dataclass
class Held:
    spec: ToolSpec

    async def run(self, call: Invocation) -> ToolResult:
        raise AssertionError("nobody calls it")


def tool(name: str, description: str = "", *, schema: Mapping[str, Any] | None = None) -> Tool:
    server, _, original = name.partition("__")
    place = ServerTool(
        server=server, origin="user", original=original, entry_hash="", pin="", connection=""
    )
    return Held(
        ToolSpec(
            name=name,
            description=description,
            schema=schema or {"type": "object"},
            risk=Risk.EXEC,
            server=place if original else None,
        )
    )


def tools(*made: Tool) -> Mapping[str, Tool]:
    return MappingProxyType({one.spec.name: one for one in made})


def many(count: int) -> Mapping[str, Tool]:
    return tools(tool("read"), *(tool(f"srv__tool_{number}") for number in range(count)))


def names(deferral: Deferral, held: Mapping[str, Tool], model: ModelInfo = MODEL) -> list[str]:
    return [spec.name for spec in deferral.offer(held, model).specs]


def called(*wanted: str) -> AssistantMessage:
    calls = tuple(ToolCall(id=name, name=name, arguments={}) for name in wanted)
    return AssistantMessage(parts=calls, model="x:y", stop=Stop.TOOLS)


@pytest.mark.parametrize(
    ("mode", "count", "deferred"),
    [("auto", 40, 0), ("auto", 41, 41), ("always", 1, 1), ("never", 500, 0), ("always", 0, 0)],
)
def test_the_count_decides_and_the_setting_outranks_it(
    mode: Mode, count: int, deferred: int
) -> None:
    told: list[Event] = []
    deferral = Deferral(mode, told.append)
    offer = deferral.offer(many(count), MODEL)
    assert offer.deferred == deferred
    assert len(offer.specs) == count + 1 - deferred
    assert len(Deferral(mode, told.append).unlisted(many(count), MODEL)) == deferred
    assert bool(offer.index) == bool(deferred) == bool(told)


def test_definitions_past_a_share_of_the_window_are_deferred_per_model() -> None:
    large = {"type": "object", "properties": {"a": {"description": "x" * 8_000}}}
    held = tools(tool("read"), tool("srv__big", schema=large))
    told: list[Event] = []
    deferral = Deferral("auto", told.append)
    small = ModelInfo(id="x:small", name="small", window=32_000)
    assert names(deferral, held, small) == ["read"]
    assert names(deferral, held) == ["read", "srv__big"]
    unknown = ModelInfo(id="x:unknown", name="unknown")
    assert names(deferral, held, unknown) == ["read", "srv__big"]
    few = tools(tool("read", schema=large), tool("srv__small"))
    assert names(deferral, few, small) == ["read", "srv__small"]  # kage's own do not count
    (notice,) = told
    assert isinstance(notice, Noticed) and "32,000" in notice.what


def test_the_person_without_a_model_has_every_tool() -> None:
    offline = ModelInfo(id="offline", name="no model")
    assert len(names(Deferral("auto", lambda _: None), many(100), offline)) == 101


def test_found_tools_join_the_end_in_the_order_they_were_found() -> None:
    held = many(60)
    deferral = Deferral("auto", lambda _: None)
    before = names(deferral, held)
    deferral.load(["srv__tool_9", "srv__tool_3", "srv__gone"])
    first = names(deferral, held)
    deferral.load(["srv__tool_3", "srv__tool_1"])
    second = names(deferral, held)
    assert first == [*before, "srv__tool_9", "srv__tool_3"]
    assert second == [*first, "srv__tool_1"]
    assert deferral.unlisted(held, MODEL) == held.keys() - set(second)
    deferral.load(f"srv__tool_{number}" for number in range(MAX_LOADED + 50))
    assert len(names(deferral, held)) <= MAX_LOADED + 1


def test_what_the_conversation_called_is_loaded_and_another_one_starts_anew() -> None:
    held = many(60)
    deferral = Deferral("auto", lambda _: None)
    talk = [called("srv__tool_5")]
    deferral.follow(talk)
    assert names(deferral, held) == ["read", "srv__tool_5"]
    talk.append(called("srv__tool_2", "read"))
    deferral.follow(talk)
    assert names(deferral, held) == ["read", "srv__tool_5", "srv__tool_2"]
    deferral.follow([called("srv__tool_7")])
    assert names(deferral, held) == ["read", "srv__tool_7"]


def test_it_is_told_once_until_it_ends() -> None:
    told: list[Event] = []
    deferral = Deferral("auto", told.append)
    for count in (60, 61, 3, 60):
        deferral.offer(many(count), MODEL)
    assert len(told) == 2


@given(
    st.lists(
        st.tuples(st.from_regex(r"[a-z0-9]{1,32}", fullmatch=True), st.integers(1, 60)),
        unique_by=lambda item: item[0],
        max_size=40,
    ),
    st.integers(0, 3_000),
)
def test_the_index_keeps_to_its_room(servers: list[tuple[str, int]], room: int) -> None:
    held = [f"{server}__t{number}" for server, count in servers for number in range(count)]
    text = index(held, room=room)
    assert len(text) <= room + 30
    full = index(held, room=1_000_000)
    for server, count in servers:
        assert f"{server} ({count}): " in full and f"t{count - 1}" in full


# ---- mcp_tools


def run(one: McpTools | McpStatus, **arguments: Any) -> str:
    invocation = Invocation(
        call_id="c", arguments=arguments, workspace=Path(), roots=(), scratch=Path()
    )
    return as_text(asyncio.run(one.run(invocation)).content)


SHELF = tools(
    tool("read", "not of a server"),
    tool("files__readFile", "[server files] Give the text of a file."),
    tool("files__write_file", "[server files] Put text into a file."),
    tool(
        "github__create_issue", "[server github] Open an issue.", schema={"type": "object", "k": 1}
    ),
    tool("github__list_issues", "[server github] Issues of a repository, newest first."),
    tool("weather__forecast", "[server weather] Rain and sun for a city."),
)


def search(query: str, server: str = "") -> tuple[list[str], str]:
    found: list[str] = []
    finder = McpTools(lambda: SHELF, found.extend)
    text = run(finder, query=query, **({"server": server} if server else {}))
    return found, text


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("read file", "files__readFile"),
        ("create an issue", "github__create_issue"),
        ("will there be rain", "weather__forecast"),
        ("FORECAST", "weather__forecast"),
        ("github__list_issues", "github__list_issues"),
    ],
)
def test_a_search_finds_by_name_and_by_words_and_loads(query: str, first: str) -> None:
    found, text = search(query)
    assert found[0] == first
    assert text.startswith(first) and "arguments: {" in text


def test_exact_names_come_alone_and_in_their_order() -> None:
    found, text = search("weather__forecast, github__create_issue")
    assert found == ["weather__forecast", "github__create_issue"]
    assert '"k":1' in text


def test_a_server_narrows_the_search_and_an_unknown_one_is_named() -> None:
    assert search("file issue", "files")[0] and all(
        name.startswith("files__") for name in search("file issue", "files")[0]
    )
    with pytest.raises(ToolError, match="githup") as caught:
        search("issue", "githup")
    assert "github" in caught.value.fix


def test_what_nothing_fits_says_so_and_loads_nothing() -> None:
    found, text = search("quantum chromodynamics")
    assert not found and "Try other words" in text


def test_without_a_query_names_are_listed_and_nothing_is_loaded() -> None:
    found, text = search("")
    assert not found
    assert text.splitlines()[0] == "files__readFile: Give the text of a file."
    assert "not of a server" not in text
    assert len(search("", "github")[1].splitlines()) == 2


def test_long_definitions_are_cut_in_the_answer() -> None:
    large = {"type": "object", "description": "y" * 50_000}
    held = tools(*(tool(f"srv__same_{n}", "word " * 2_000, schema=large) for n in range(30)))
    text = run(McpTools(lambda: held, lambda names: None), query="same word")
    assert len(text) < 80_000 and "cut; the tool's definition has it whole" in text


# ---- mcp_status


def status(**more: Any) -> ServerStatus:
    return ServerStatus(
        **{"name": "files", "origin": "user", "state": ServerState.CONNECTED, "since": 0.0, **more}
    )


def test_the_state_is_told_with_its_reason_and_nothing_secret() -> None:
    fault = Fault(stage=Stage.HANDSHAKE, what="it ended", why="exit code 3", stderr=("key=abc",))
    statuses = (
        status(tools=3, protocol="2025-06-18", command="run --key abc"),
        status(name="down", state=ServerState.FAILED, fault=fault, command="run --key abc"),
    )
    told = run(McpStatus(lambda: statuses))
    assert "files: connected for" in told and "3 tools" in told and "2025-06-18" in told
    assert "down: failed" in told and "handshake: it ended: exit code 3" in told
    assert "abc" not in told
    assert "down" not in run(McpStatus(lambda: statuses), server="files")
    with pytest.raises(ToolError, match="gone"):
        run(McpStatus(lambda: statuses), server="gone")


def test_they_are_there_while_any_server_is() -> None:
    assert not active(())
    assert not active((status(state=ServerState.DISABLED),))
    assert active((status(state=ServerState.FAILED),))
