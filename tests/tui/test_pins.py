"""Definitions that changed: told by a card, shown when asked for, decided by one key each."""

from __future__ import annotations

from kage.core.commands import AnswerPin, AskPins
from kage.core.events import DefinitionSettled, DefinitionsHeld, ServerChanged
from kage.core.pins import INSTRUCTIONS, Cause, Difference, HeldChange, Piece, PinAnswer
from tests.tui.driving import Driven, driven, run
from tests.tui.fake_host import FakeHost, server

EVIL = "P\u200bays\x1b[2J [b]all[/b]"


def change(name: str = "pay", **more: object) -> HeldChange:
    shown = Difference(
        part="description",
        pieces=(Piece("same", "It "), Piece("old", "pays"), Piece("new", EVIL)),
        notes=("U+200B ZERO WIDTH SPACE inserted",),
    )
    given: dict[str, object] = {"cause": Cause.CHANGED, "since": "2026-11-12T08:00:00Z"} | more
    return HeldChange(
        server="bank",
        origin="user",
        name=name,
        digest=f"d-{name}",
        differences=(shown,),
        **given,  # type: ignore[arg-type]  # by name
    )


def answers(it: Driven) -> list[tuple[str, PinAnswer]]:
    return [(c.change.name, c.answer) for c in it.host.sent if isinstance(c, AnswerPin)]


async def ready(it: Driven) -> None:
    await it.until(lambda: it.app.hearing.pinning.sheet is not None, "the sheet is there")
    await it.until(lambda: it.app.hearing.pinning.sheet.ready, "keys count")


def test_a_card_tells_and_nothing_opens_by_itself() -> None:
    async def body() -> None:
        async with driven() as it:
            await it.publish(DefinitionsHeld(changes=(change(), change(INSTRUCTIONS))))
            text = it.screen_text()
            assert "bank changed what it says of pay, its instructions" in text
            assert "U+200B ZERO WIDTH SPACE inserted" in text
            assert "/mcp pins bank" in text
            assert it.app.screen is it.app.chat
            await it.publish(DefinitionsHeld(changes=(change(passed=True),)))
            assert 'pin = "warn"' in it.screen_text()

    run(body)


def test_the_difference_is_spelled_out_and_only_its_own_keys_answer() -> None:
    async def body() -> None:
        async with driven() as it:
            changes = (change(), change("look", cause=Cause.RENAMED, was="see"), change("third"))
            await it.publish(DefinitionsHeld(changes=changes, asked=True))
            await ready(it)
            text = it.screen_text()
            for words in ("pay changed since 2026-11-12", "- It pays", "1 of 3", "ZERO WIDTH"):
                assert words in text
            assert "+ It P<U+200B>ays␛[2J [b]all[/b]" in text
            await it.press("y", "space", "a", "down", "pagedown")
            assert answers(it) == []
            await it.press("tab")
            assert "look looks like see under another name" in it.screen_text()
            await it.press("1")
            assert answers(it) == [("look", PinAnswer.ACCEPT)]
            await it.press("shift+tab", "3")
            assert answers(it)[1][1] is PinAnswer.REFUSE
            await it.press("4")
            assert answers(it)[2][1] is PinAnswer.DISABLE
            assert {name for name, _ in answers(it)} == {"pay", "look", "third"}
            assert it.app.screen is it.app.chat
            settled = DefinitionSettled(server="bank", name="look", answer=PinAnswer.ACCEPT)
            await it.publish(settled)
            assert "look of bank is accepted as it is now" in it.remark

    run(body)


def test_enter_and_escape_accept_nothing() -> None:
    async def body() -> None:
        async with driven() as it:
            await it.publish(DefinitionsHeld(changes=(change(), change("look")), asked=True))
            await ready(it)
            await it.press("enter", "enter")
            assert it.app.screen is it.app.chat
            await it.publish(DefinitionsHeld(changes=(change(),), asked=True))
            await ready(it)
            await it.press("escape")
            assert it.app.screen is it.app.chat
            assert answers(it) == []

    run(body)


def test_both_ways_to_ask_are_heard() -> None:
    async def body() -> None:
        github = server("github", held=("pay: changed",))
        async with driven(FakeHost(servers=(github,))) as it:
            await it.publish(ServerChanged(status=github, previous=None))
            await it.type("/mcp pins\n")
            assert AskPins() in it.host.sent
            await it.type("/mcp pins github\n")
            assert AskPins(name="github") in it.host.sent
            await it.press("ctrl+g")
            await it.until(lambda: "held: pay: changed" in it.screen_text())
            await it.press("p")
            await it.until(lambda: sum(isinstance(c, AskPins) for c in it.host.sent) == 3)

    run(body)
