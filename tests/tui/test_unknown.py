"""A call whose outcome is unknown offers check, retry and leave; no stray key starts any."""

from __future__ import annotations

from kage.core import events as ev
from kage.core.commands import RepeatCall
from kage.core.content import Text
from kage.core.messages import AssistantMessage, Outcome, Stop, ToolMessage
from kage.tui.screens.unknown import UnknownScreen
from tests.tui.driving import Driven, driven, run
from tests.tui.fake_host import FakeHost, call

REASON = "The server 'bank' went away. Find out with a tool that only reads before you try again."


async def lost(it: Driven, **arguments: object) -> None:
    """Let a call end with nobody knowing how."""
    made = call("bank__pay", **arguments)
    messages = (
        AssistantMessage(parts=(made,), model="test:model", stop=Stop.TOOLS),
        ToolMessage(
            call_id=made.id, name=made.name, outcome=Outcome.UNKNOWN, content=(Text(REASON),)
        ),
    )
    it.host.said = messages
    await it.publish(*(ev.MessageAppended(message=message) for message in messages))


async def opened(it: Driven) -> None:
    await it.press("f2")
    await it.until(lambda: "bank · pay" in it.screen_text(), "the list is filled")
    await it.press("enter")
    await it.until(lambda: isinstance(it.app.screen, UnknownScreen), "the call is shown")


def test_the_row_says_what_can_be_done_and_stray_keys_do_nothing() -> None:
    async def main() -> None:
        async with driven(FakeHost()) as it:
            await lost(it, to="ann", amount=5)
            text = it.screen_text()
            assert "outcome unknown" in text and "f2: check, retry or leave it" in text
            await it.type("crl")
            assert it.draft == "crl" and it.host.sent == []
            await opened(it)
            await it.press("x", "y", "1", "enter", "space")
            assert isinstance(it.app.screen, UnknownScreen) and it.host.sent == []
            text = it.screen_text()
            assert '"amount": 5' in text and "c check · r retry · l leave" in text
            await it.press("l")
            assert not isinstance(it.app.screen, UnknownScreen)
            assert it.draft == "crl" and it.host.sent == []

    run(main)


def test_retry_asks_for_the_same_call_and_check_writes_a_prompt() -> None:
    async def main() -> None:
        async with driven(FakeHost()) as it:
            await lost(it, to="ann")
            await opened(it)
            await it.press("r")
            assert it.host.sent == [RepeatCall(call_id="c1")]
            await opened(it)
            await it.press("c")
            assert len(it.host.sent) == 1  # the prompt is the person's to send
            assert "bank__pay" in it.draft and "do not make the call again" in it.draft

    run(main)


def test_a_call_that_held_a_secret_offers_no_retry_and_strange_words_stay_words() -> None:
    async def main() -> None:
        async with driven(FakeHost()) as it:
            await lost(it, to="\x1b[2J[bold]x\u202e", key="[redacted:TOKEN]")
            await opened(it)
            text = it.screen_text()
            assert "held a secret" in text and "r retry" not in text and "\x1b" not in text
            await it.press("r")
            assert isinstance(it.app.screen, UnknownScreen) and it.host.sent == []

    run(main)


def test_with_nothing_unknown_there_is_nothing_to_choose() -> None:
    async def main() -> None:
        async with driven(FakeHost()) as it:
            await it.type("/unknown\n")
            await it.until(lambda: "it is known how it ended" in it.screen_text(), "it says so")

    run(main)
