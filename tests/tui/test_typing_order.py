"""Keys that arrive in one burst act in the order they were typed."""

from __future__ import annotations

import asyncio

from textual import events

from kage.core.commands import SetMode, SubmitPrompt
from kage.core.content import as_text
from kage.core.gate import Mode
from tests.tui.driving import Driven, driven
from tests.waiting import until


def burst(app: Driven, *keys: str) -> None:
    """Post every key before the app can handle the first, as a fast terminal does."""
    for key in keys:
        character = key if len(key) == 1 else {"enter": "\r", "space": " "}.get(key)
        app.app.post_message(events.Key(key, character))


def prompts(app: Driven) -> list[str]:
    return [as_text(sent.content) for sent in app.host.sent if isinstance(sent, SubmitPrompt)]


def test_editing_keys_of_a_burst_act_where_they_were_typed() -> None:
    async def work() -> None:
        async with driven() as app:
            burst(app, "/", "backspace", *"abx", "backspace", "left", "left", *"12", "end", *"cd")
            await until(lambda: app.draft == "12abcd", what=app.draft)

    asyncio.run(work())


def test_what_is_typed_after_enter_is_the_next_draft() -> None:
    async def work() -> None:
        async with driven() as app:
            burst(app, *"one", "enter", *"two")
            await until(lambda: app.draft == "two")
            assert prompts(app) == ["one"]

    asyncio.run(work())


def test_a_command_typed_and_sent_in_one_burst_is_that_command() -> None:
    async def work() -> None:
        async with driven() as app:
            burst(app, *"/permission", "space", *"deny", "enter", *"next")
            await until(lambda: app.draft == "next")
            assert [sent for sent in app.host.sent if isinstance(sent, SetMode)] == [
                SetMode(mode=Mode.DENY)
            ]
            assert app.draft == "next"

    asyncio.run(work())


def test_a_slash_taken_back_leaves_an_ordinary_prompt() -> None:
    async def work() -> None:
        async with driven() as app:
            burst(app, "/", "backspace", *"hello", "enter")
            await until(lambda: prompts(app))
            assert prompts(app) == ["hello"]

    asyncio.run(work())
