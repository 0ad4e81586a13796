"""The servers screen says how much a server offers, and how the model comes by it."""

from __future__ import annotations

import dataclasses

from kage.core.servers import ServerState
from tests.tui.driving import driven, run
from tests.tui.fake_host import FakeHost, fault, server, tool


def test_a_server_is_shown_with_the_number_of_its_prompts_and_resources() -> None:
    async def test() -> None:
        memo = dataclasses.replace(server("memo"), prompts=1, resources=1_200)
        async with driven(FakeHost(servers=(memo, server("plain")))) as it:
            await it.press("ctrl+g")
            await it.until(lambda: "1 prompt, 1,200 resources" in it.screen_text(), "the counts")
            assert "template" not in it.screen_text()

    run(test)


def test_tools_the_model_has_to_search_for_are_counted() -> None:
    async def test() -> None:
        tools = tuple(tool(f"tool_{number}", server="big") for number in range(5))
        host = FakeHost(servers=(server("big"),), tools=tools)
        host.deferred = frozenset(spec.name for spec in tools[:3])
        async with driven(host) as it:
            await it.press("ctrl+g")
            await it.until(lambda: "5 tools, 3 of them found by search" in it.screen_text(), "it")

    run(test)


def test_what_needs_a_person_is_marked_first_and_its_reason_leads() -> None:
    async def test() -> None:
        down = fault(what="no such program", fix="Install it")
        servers = [server(f"server-{number}") for number in range(19)]
        servers[15] = server("broken", ServerState.FAILED, fault=down, tools=0)
        async with driven(FakeHost(servers=tuple(servers)), size=(80, 24)) as it:
            await it.press("ctrl+g")
            await it.until(lambda: "Install it" in it.screen_text(), "it")
            text = it.screen_text()
            assert "18 connected · 1 failed" in text
            assert text.index("Install it") < text.index("command   ")

    run(test)
