"""What servers ask a person, on the screen: forms, pages, and what typing on does to them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kage.core import events as ev
from kage.core.commands import AnswerRequest, SetLogLevel
from kage.core.formreading import read_form
from kage.core.requests import Action, FormRequest, Purpose, UrlRequest
from tests.tui.driving import Driven, driven, run
from tests.tui.fake_host import FakeHost, server

EVIL = "[bold]x[/bold] [@click=app.exit]y[/] \x1b[2J\x1b]0;t\x07\u202e[/"
EVERY_KIND: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "description": "as on the badge"},
        "mail": {"type": "string", "format": "email", "default": "ada@example.com"},
        "age": {"type": "integer", "minimum": 18, "maximum": 120},
        "share": {"type": "number", "default": 0.5},
        "news": {"type": "boolean", "default": True},
        "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"]},
        "tags": {
            "type": "array",
            "items": {"anyOf": [{"const": "a", "title": "Alpha"}, {"const": "b", "title": "Beta"}]},
            "default": ["b"],
        },
        "more": {"type": "object", "properties": {}},
    },
    "required": ["name", "size"],
}


def asked(schema: dict[str, Any], id: str = "r1", **changes: Any) -> ev.RequestReceived:
    made = {"server": "weather", "message": "Please fill this in", "form": read_form(schema)}
    return ev.RequestReceived(request=FormRequest(id=id, **{**made, **changes}))


def replies(it: Driven) -> list[tuple[str, Action, dict[str, Any]]]:
    return [
        (c.request_id, c.reply.action, dict(c.reply.values))
        for c in it.host.commands(AnswerRequest)
    ]


def _answerable(it: Driven) -> bool:
    sheet = it.app.hearing.inquiries.sheet
    return sheet is None or sheet.ready


async def opened(it: Driven, event: Any) -> None:
    await it.publish(event)
    await it.until(
        lambda: it.app.hearing.inquiries.sheet is not None and it.app.hearing.inquiries.sheet.ready,
        "it is ready",
    )


def test_a_form_with_every_kind_of_field_is_filled_in_by_keys_on_a_small_screen() -> None:
    async def main() -> None:
        async with driven(size=(80, 24)) as it:
            await opened(it, asked(EVERY_KIND))
            text = it.screen_text()
            assert "weather asks you" in text
            assert "Please fill this in" in text and "Your name" in text and "needed" in text
            await it.press("ctrl+s")  # nothing is sent while something is missing
            assert not replies(it)
            assert "this is needed" in it.screen_text()
            await it.type("Ada")
            await it.press("tab", "tab")
            await it.type("17")
            await it.press("ctrl+s")
            assert "at least 18" in it.screen_text() and not replies(it)
            await it.press("backspace", "backspace", *"42")  # the cursor is where it is wrong
            await it.press("tab", "shift+tab", "tab", "tab", "tab")
            await it.press("down", "enter")  # Medium
            await it.press("tab", "up", "space")  # Alpha, beside Beta
            await it.press("tab")
            await it.type('{"deep": [1]}')
            await it.press("ctrl+s")
            assert replies(it) == [
                (
                    "r1",
                    Action.ACCEPT,
                    {
                        "name": "Ada", "mail": "ada@example.com", "age": 42, "share": 0.5,
                        "news": True, "size": "m", "tags": ["a", "b"], "more": {"deep": [1]},
                    },
                )
            ]  # fmt: skip
            assert it.app.hearing.inquiries.sheet is None and it.app.free

    run(main)


def test_decline_and_close_are_two_answers_and_the_next_question_follows() -> None:
    async def main() -> None:
        async with driven() as it:
            form = {"type": "object", "properties": {"a": {"type": "string"}}}
            await it.publish(asked(form, "r1"), asked(form, "r2", server="other"))
            await opened(it, asked(form, "r3"))
            assert "2 more questions wait" in it.screen_text()
            await it.press("ctrl+n")
            await it.until(
                lambda: it.app.hearing.inquiries.sheet and it.app.hearing.inquiries.sheet.ready
            )
            assert "other asks you" in it.screen_text()
            await it.press("escape")
            await it.until(
                lambda: it.app.hearing.inquiries.sheet and it.app.hearing.inquiries.sheet.ready
            )
            await it.press("ctrl+c")
            assert replies(it) == [
                ("r1", Action.DECLINE, {}),
                ("r2", Action.CANCEL, {}),
                ("r3", Action.CANCEL, {}),
            ]

    run(main)


def test_what_is_typed_while_a_form_pops_up_goes_into_the_draft_and_answers_nothing() -> None:
    async def main() -> None:
        async with driven(quiet=30.0) as it:
            await it.type("half a ")
            await it.publish(asked({"type": "object", "properties": {}}))
            await it.until(lambda: it.app.hearing.inquiries.sheet is not None)
            await it.press(*"word", "enter", "ctrl+s", "ctrl+n", "escape")
            assert it.draft == "half a word"
            assert not replies(it) and it.app.hearing.inquiries.sheet is not None

    run(main)


def test_a_question_that_is_withdrawn_takes_its_form_away() -> None:
    async def main() -> None:
        async with driven() as it:
            await opened(it, asked(EVERY_KIND))
            await it.publish(ev.RequestSettled(request_id="r1"))
            assert it.app.free and not replies(it)
            assert "no longer waits" in it.remark

    run(main)


def test_one_question_withdrawn_after_the_other_leaves_no_form_behind() -> None:
    async def main() -> None:
        async with driven() as it:
            form = {"type": "object", "properties": {"a": {"type": "string"}}}
            await it.publish(asked(form, "r2", server="other"))
            await opened(it, asked(form, "r1"))
            await it.publish(ev.RequestSettled(request_id="r2"))
            await it.until(lambda: "weather asks you" in it.screen_text(), "the next form")
            await it.publish(ev.RequestSettled(request_id="r1"))
            await it.until(lambda: it.app.free, "the chat is in view")
            await opened(it, asked(form, "r3", server="third"))
            assert "third asks you" in it.screen_text()

    run(main)


def test_a_form_waits_while_another_screen_is_open() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.press("f1")
            await it.publish(asked(EVERY_KIND))
            assert it.app.hearing.inquiries.sheet is None
            await it.press("escape")
            await it.until(lambda: it.app.hearing.inquiries.sheet is not None, "the form comes up")
            assert "weather asks you" in it.screen_text()

    run(main)


def test_secret_looking_fields_are_hidden_and_named() -> None:
    async def main() -> None:
        async with driven() as it:
            schema = {"type": "object", "properties": {"apiToken": {"type": "string"}}}
            await opened(it, asked(schema, warnings=("a form may not ask for secrets",)))
            await it.type("hunter2hunter2")
            text = it.screen_text()
            assert "looks like a secret" in text and "may not ask for secrets" in text
            assert "hunter2" not in text

    run(main)


def test_words_of_a_hostile_form_are_data_and_an_unedited_default_stays_as_it_was() -> None:
    async def main() -> None:
        schema = {
            "type": "object",
            "title": EVIL,
            "properties": {
                EVIL: {"type": "string", "title": EVIL, "description": EVIL, "default": EVIL},
                "b": {"type": "string", "enum": [EVIL, "b"], "enumNames": [EVIL, EVIL * 9]},
            },
        }
        async with driven(size=(60, 20)) as it:
            await opened(it, asked(schema, server=EVIL, message=EVIL * 50))
            assert "\x1b[2J" not in it.screen_text() and "\u202e" not in it.screen_text()
            await it.press("ctrl+s")
            assert replies(it) == [("r1", Action.ACCEPT, {EVIL: EVIL})]

    run(main)


def test_prompt_and_answer_of_a_sampling_are_shown_and_can_be_edited() -> None:
    async def main() -> None:
        async with driven() as it:
            schema = {
                "type": "object",
                "properties": {"text": {"type": "string", "default": "Say hello"}},
            }
            await opened(it, asked(schema, purpose=Purpose.PROMPT))
            assert "wants to ask the model" in it.screen_text()
            await it.type("!")
            await it.press("ctrl+s")
            assert replies(it)[0][2] == {"text": "Say hello!"}

    run(main)


def test_a_page_shows_its_whole_address_and_is_opened_only_by_a_key() -> None:
    async def main() -> None:
        url = "https://xn--pple-43d.com/login?next=" + "a" * 150
        request = UrlRequest(
            id="u1", server="weather", message="Log in", url=url, host="xn--pple-43d.com",
            warnings=("its name is written in another alphabet",),
        )  # fmt: skip
        async with driven() as it:
            await opened(it, ev.RequestReceived(request=request))
            text = it.screen_text()
            assert "xn--pple-43d.com" in text and "Log in" in text
            assert "".join(text.split()).count("a" * 40) >= 2  # folded, not cut
            assert "another alphabet" in text
            await it.press("c")
            assert it.app.clipboard == url
            await it.press("y")
            assert replies(it) == [("u1", Action.ACCEPT, {})]
            await it.publish(ev.RequestCompleted(server="weather", request_id="u1"))
            assert "arrived" in it.remark

    run(main)


def test_the_log_level_of_a_server_is_chosen_by_command() -> None:
    async def main() -> None:
        async with driven(FakeHost(servers=(server("weather"),))) as it:
            await it.type("/mcp log weather debug\n")
            await it.type("/mcp log weather off\n")
            assert it.host.commands(SetLogLevel) == [
                SetLogLevel(name="weather", level="debug"),
                SetLogLevel(name="weather", level=""),
            ]
            await it.type("/mcp log weather loud\n")
            assert "no log level" in it.remark
            await it.press("ctrl+c")
            await it.type("/mcp restart weather debug\n")
            assert "takes one name" in it.remark

    run(main)


@pytest.mark.parametrize("size", [(12, 4), (30, 8), (200, 60)])
def test_a_form_fits_every_size_and_every_field_can_be_reached(size: tuple[int, int]) -> None:
    async def main() -> None:
        async with driven(size=size) as it:
            await opened(it, asked(EVERY_KIND, message="line\n" * 40, warnings=("careful",)))
            for _ in EVERY_KIND["properties"]:
                await it.press("tab")
            await it.press("shift+tab", "pagedown", "pageup")
            await it.pilot.resize_terminal(80, 24)
            await it.settle()
            await it.press("ctrl+s")
            assert not replies(it)
            await it.press("escape")
            assert replies(it) == [("r1", Action.CANCEL, {})]

    run(main)


FACTS = ("for its tool ask, which runs now", "fake:one answers", "so far 3 requests")
WARNING = "a server may not ask for passwords, keys or tokens in a form: it reads what you type"


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 16)])
def test_every_warning_fact_and_key_of_a_sheet_stands_on_the_screen(size: tuple[int, int]) -> None:
    link = UrlRequest(
        id="u1", server="weather", message="Log in", url="http://a.example/" + "b" * 6_000,
        host="a.example", facts=FACTS, warnings=(WARNING, "it is not encrypted (http)"),
    )  # fmt: skip

    async def main() -> None:
        async with driven(size=size) as it:
            await it.publish(ev.RequestReceived(request=link))
            await opened(it, asked(EVERY_KIND, id="r2", facts=FACTS, warnings=(WARNING, "careful")))
            for more in (("I agree", "1 more question waits"), ("ctrl+s send", "careful")):
                text = " ".join(it.screen_text().split())
                for words in (WARNING, *FACTS, *more):
                    assert words in text, (words, text)
                await it.press("pagedown", "pageup", "escape")
                await it.until(partial(_answerable, it))

    run(main)


def test_the_chat_stays_in_view_above_a_sheet() -> None:
    async def main() -> None:
        async with driven() as it:
            before = it.screen_text().splitlines()[0]
            await opened(it, asked({"type": "object", "properties": {"a": {"type": "string"}}}))
            assert before.strip() and it.screen_text().splitlines()[0] == before

    run(main)
