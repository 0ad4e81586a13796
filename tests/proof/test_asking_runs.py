"""What a server asks during a whole run: on the screen, without one, and what is left on disk."""

from __future__ import annotations

import json

import pytest

from kage.core.messages import ToolMessage
from kage.permissions.decisions.log import verify
from tests.llm import ScriptedModel, call, say
from tests.llm.script import Request, Turn
from tests.proof.house import House, server
from tests.proof.test_screen_runs import _chat, _in, _results
from tests.tui.driving import Driven

SECRET = "hunter2-hunter2"
ERAS = pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
FORM = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "password": {"type": "string"}},
    "required": ["name"],
}
PARAMS = {"message": "Who are you?", "requestedSchema": FORM}
HELLO = {"messages": [{"role": "user", "content": {"type": "text", "text": "Say hello"}}]}


def _told(request: Request) -> Turn:
    return say(f"It said: {request.last_result}")


def _ready(kage: Driven) -> bool:
    sheet = kage.app.hearing.inquiries.sheet
    return sheet is not None and sheet.ready


@ERAS
def test_without_a_screen_nothing_is_declared_and_a_question_is_declined_aloud(
    house: House, era: str
) -> None:
    seen = house.home / "seen"
    house.write(server("srv", "elicit", "--revisions", era, "--record", seen))
    with ScriptedModel([call("srv__ask", params=PARAMS), _told]) as model:
        house.use(model)
        ended = house.kage("-p", "ask", "--allow", "srv__ask")
    assert (ended.code, ended.out) == (0, 'It said: {"action": "decline"}\n')
    assert len(ended.lines("question", "declined", "nobody is here")) == 1, ended.err
    assert '"elicitation":' not in seen.read_text() and '"sampling":' not in seen.read_text()


@ERAS
def test_on_the_screen_the_form_is_answered_and_secrets_stay_off_the_disk(
    house: House, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    house.write(server("srv", "elicit", "--revisions", era))

    async def test() -> None:
        async with _chat(house) as kage:
            await kage.type("ask\n")
            await kage.until(lambda: kage.panel_open, "the question")
            await kage.guard_over()
            await kage.press("1")
            await kage.until(lambda: _ready(kage), "the form")
            assert "srv asks you" in kage.screen_text()
            await kage.type("Ada")
            await kage.press("tab")
            await kage.type(SECRET)
            await kage.press("ctrl+s")
            await kage.until(lambda: "It said" in kage.transcript, "the reply")
            (result,) = _results(kage)
            assert isinstance(result, ToolMessage)
            assert "Ada" in str(result.content) and SECRET not in str(result.content)

    with ScriptedModel([call("srv__ask", params=PARAMS), _told]) as model:
        house.use(model)
        _in(house, monkeypatch, test)
    handed = [record for record in house.records() if record["kind"] == "handed"]
    assert any(record["keys"] == ["name", "password"] for record in handed)
    assert verify(house.data / "decisions") == []
    for path in house.home.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


def test_a_server_that_may_asks_the_model_of_the_session_with_the_persons_eyes_on_both(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write(server("srv", "elicit", "--revisions", "2025-11-25", allow_sampling="true"))
    params = {"maxTokens": 50, **HELLO}
    asks = call("srv__ask", method="sampling/createMessage", params=params)

    async def test() -> None:
        async with _chat(house) as kage:
            await kage.type("ask\n")
            await kage.until(lambda: kage.panel_open, "the question")
            await kage.guard_over()
            await kage.press("1")
            for words in ("wants to ask the model", "is to get this answer"):
                await kage.until(lambda: _ready(kage), "a form")
                assert words in kage.screen_text()
                await kage.press("ctrl+s")
            await kage.until(lambda: "It said" in kage.transcript, "the reply")

    with ScriptedModel([asks, say("hello from the model"), _told]) as model:
        house.use(model)
        _in(house, monkeypatch, test)
        assert model.requests[1].last_text == "Say hello"
        assert "hello from the model" in json.dumps(model.requests[2].last_result)
        assert not model.requests[1].tools
