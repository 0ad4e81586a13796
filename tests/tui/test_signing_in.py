"""Signing in from the screen: the page is shown, opened only by a key, and an answer is taken."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual import events

from kage.core import events as ev
from kage.core.commands import AnswerLogin, CancelLogin, LoginServer, LogoutServer
from kage.core.servers import Fault, ServerState, ServerStatus, Stage
from kage.tui.screens.login import LoginScreen
from tests.tui.driving import Driven, driven
from tests.tui.fake_host import FakeHost
from tests.waiting import until

PAGE = ev.LoginRequested(
    server="remote",
    url="https://xn--pple-43d.example/authorize?state=abc",
    host="xn--pple-43d.example",
)
FAULT = Fault(stage=Stage.HANDSHAKE, what="The server remote wants you to sign in", fix="Sign in")
NEEDY = ServerStatus(
    name="remote",
    origin="user",
    state=ServerState.NEEDS_AUTH,
    since=0.0,
    transport="http",
    command="https://example/mcp",
    fault=FAULT,
)


async def needy(it: Driven) -> None:
    await it.publish(ev.ServerChanged(status=NEEDY, previous=None))


async def shown(it: Driven) -> LoginScreen:
    await it.publish(PAGE)
    await until(lambda: isinstance(it.app.screen, LoginScreen))
    screen = it.app.screen
    assert isinstance(screen, LoginScreen)
    await until(lambda: screen.ready)
    await it.settle()
    return screen


def test_a_key_in_the_servers_screen_signs_in() -> None:
    async def main() -> None:
        async with driven(FakeHost(servers=(NEEDY,))) as it:
            await needy(it)
            await it.press("ctrl+g", "l")
            assert it.host.sent[-1] == LoginServer(name="remote")
            await shown(it)
            await it.publish(ev.LoginSettled(server="remote", ok=True))
            await until(lambda: not isinstance(it.app.screen, LoginScreen))
            assert "signed in to remote" in it.remark
            assert CancelLogin(name="remote") not in it.host.sent

    asyncio.run(main())


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/mcp login remote", LoginServer(name="remote")),
        ("/mcp logout remote", LogoutServer(name="remote")),
    ],
)
def test_commands_sign_in_and_out(line: str, command: object) -> None:
    async def main() -> None:
        async with driven(FakeHost(servers=(NEEDY,))) as it:
            await needy(it)
            await it.type(line)
            await it.press("enter")
            assert it.host.sent[-1] == command

    asyncio.run(main())


def test_the_page_is_shown_in_full_and_opened_only_by_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.new\nmv {opened}.new {opened}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))

    async def main() -> None:
        async with driven() as it:
            await shown(it)
            text = it.screen_text()
            assert PAGE.host in text and PAGE.url in text
            assert not opened.exists()
            await it.press("o")
            await until(opened.exists)
            assert opened.read_text() == PAGE.url

    asyncio.run(main())


def test_what_is_pasted_goes_to_the_sign_in() -> None:
    async def main() -> None:
        async with driven() as it:
            screen = await shown(it)
            screen.post_message(events.Paste("http://127.0.0.1:1/callback?code=x&state=abc\n"))
            await it.settle()
            assert it.host.sent[-1] == AnswerLogin(
                name="remote", address="http://127.0.0.1:1/callback?code=x&state=abc"
            )
            await it.press("p", "o", "c", "enter")  # typed into the field, keys of the sheet too
            assert it.host.sent[-1] == AnswerLogin(name="remote", address="oc")

    asyncio.run(main())


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
def test_closing_the_sheet_gives_the_sign_in_up(key: str) -> None:
    async def main() -> None:
        async with driven() as it:
            await shown(it)
            await it.press(key)
            assert it.host.sent[-1] == CancelLogin(name="remote")
            await it.publish(ev.LoginSettled(server="remote", ok=False))
            assert "given up" in it.remark

    asyncio.run(main())


def test_a_second_page_takes_the_place_of_the_first() -> None:
    async def main() -> None:
        async with driven() as it:
            screen = await shown(it)
            await it.publish(ev.LoginRequested(server="remote", url="https://b.example/", host="b"))
            assert it.app.screen is screen
            assert "https://b.example/" in it.screen_text()

    asyncio.run(main())
