"""The question about an entry: everything is shown, no key on its way answers it."""

from __future__ import annotations

from kage.core.commands import AnswerTrust, AskTrust
from kage.core.events import TrustRequested, TrustSettled
from kage.core.trust import Change, Identity, Standing, TrustAnswer, TrustQuestion
from tests.tui.driving import Driven, driven, run

LONG = "x" * 12_000 + "END"


def question(name: str = "team", *, origin: str = "/repo", **rest: object) -> TrustQuestion:
    seen = {"transport": "stdio", "command": "sh -c 'a\x1b[2J [b]c[/b]  \t'", "env TOKEN": "${T}"}
    identity = Identity(name=name, origin=origin, entry_hash="h" * 64, seen=seen)
    given: dict[str, object] = {"standing": Standing.NEW, "variables": (("T", False),)} | rest
    return TrustQuestion(identity=identity, place="/repo/.mcp.json:3", **given)  # type: ignore[arg-type]  # by name


def answers(it: Driven) -> list[tuple[str, TrustAnswer]]:
    return [(c.name, c.answer) for c in it.host.sent if isinstance(c, AnswerTrust)]


async def ready(it: Driven) -> None:
    await it.until(
        lambda: it.app.hearing.trusting.sheet is not None, "the question is on the screen"
    )
    await it.until(
        lambda: it.app.hearing.trusting.sheet and it.app.hearing.trusting.sheet.ready, "keys count"
    )


def test_it_shows_everything_as_it_is_written_and_answers_only_to_one_key() -> None:
    async def body() -> None:
        async with driven() as it:
            await it.publish(TrustRequested(question=question()))
            await ready(it)
            text = it.screen_text()
            for words in ("/repo/.mcp.json:3", "sh -c 'a␛[2J [b]c[/b]  ␉'", "${T}", "T (not set)"):
                assert words in text
            await it.press("y", "t", "space", "a", "s", "tab")
            assert answers(it) == []
            await it.press("1")
            assert answers(it) == [("team", TrustAnswer.TRUST)]
            assert it.app.screen is it.app.chat
            await it.publish(TrustSettled(name="team", answer=TrustAnswer.TRUST))
            assert "team is trusted from now on" in it.remark

    run(body)


def test_enter_and_escape_through_every_question_trust_nothing() -> None:
    async def body() -> None:
        async with driven() as it:
            names = ("a", "b", "c")
            await it.publish(*(TrustRequested(question=question(name)) for name in names))
            for key, name in zip(("enter", "escape", "2"), names, strict=True):
                await ready(it)
                await it.press(key)
                assert answers(it)[-1] == (name, TrustAnswer.LATER)
            assert it.app.screen is it.app.chat

    run(body)


def test_keys_on_their_way_go_into_the_draft() -> None:
    async def body() -> None:
        async with driven(quiet=30.0) as it:
            await it.publish(TrustRequested(question=question()))
            await it.until(lambda: it.app.hearing.trusting.sheet is not None)
            await it.press("1", "3", "enter")
            assert answers(it) == []
            assert it.app.chat.prompt.text == "13"

    run(body)


def test_nobody_is_disturbed_in_the_middle_of_a_draft_until_they_ask() -> None:
    async def body() -> None:
        async with driven() as it:
            await it.type("hello")
            await it.publish(TrustRequested(question=question()))
            assert it.app.hearing.trusting.sheet is None
            await it.publish(TrustRequested(question=question(), asked=True))
            await ready(it)
            await it.press("3")
            assert answers(it) == [("team", TrustAnswer.NEVER)]
            assert it.draft == "hello"

    run(body)


def test_a_changed_entry_shows_the_difference_to_its_end() -> None:
    async def body() -> None:
        async with driven(size=(100, 30)) as it:
            changes = (Change(part="command", old="old thing", new=LONG),)
            changed = question(standing=Standing.CHANGED, changes=changes)
            await it.publish(TrustRequested(question=changed))
            await ready(it)
            assert "- old thing" in it.screen_text()
            for _ in range(12):
                await it.press("pagedown")
            assert "END" in it.screen_text() or "${T}" in it.screen_text()

    run(body)


def test_an_entry_that_changes_while_its_question_is_shown_is_asked_about_as_it_is_then() -> None:
    async def body() -> None:
        async with driven() as it:
            await it.publish(TrustRequested(question=question()))
            await ready(it)
            await it.publish(TrustRequested(question=question(variables=(("LATER", True),))))
            await it.press("escape")
            await it.until(lambda: "LATER (set)" in it.screen_text(), "the entry as it is now")

    run(body)


def test_ones_own_held_entry_is_trusted_or_left_held_but_never_given_up() -> None:
    async def body() -> None:
        async with driven() as it:
            await it.publish(
                TrustRequested(question=question(origin="user", standing=Standing.HELD))
            )
            await ready(it)
            assert "never" not in it.screen_text()
            await it.press("3")
            assert answers(it) == []
            await it.press("1")
            assert answers(it) == [("team", TrustAnswer.TRUST)]

    run(body)


def test_the_command_asks_for_one_or_for_all() -> None:
    async def body() -> None:
        async with driven() as it:
            await it.type("/mcp trust\n")
            assert AskTrust() in it.host.sent

    run(body)
