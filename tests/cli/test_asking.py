"""What a server asks, line by line at a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kage.cli.asking import Terminal, at_terminal
from kage.core.formreading import read_form
from kage.core.requests import Action, FormRequest, RequestReply, ServerRequest, UrlRequest

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your \x1b[2Jname"},
        "age": {"type": "integer", "minimum": 18},
        "mail": {"type": "string", "default": "a@b.example"},
        "size": {"enum": ["s", "m"], "enumNames": ["Small", "Medium"]},
        "pin": {"type": "string"},
    },
    "required": ["name"],
}


class Lines:
    """A terminal with lines typed ahead."""

    def __init__(self, *lines: str) -> None:
        self._lines: Iterator[str] = iter(lines)
        self.prompts: list[str] = []
        self.hidden: list[str] = []

    def read(self, prompt: str) -> str:
        self.prompts.append(prompt)
        try:
            return next(self._lines)
        except StopIteration:
            raise EOFError from None

    def secretly(self, prompt: str) -> str:
        self.hidden.append(prompt)
        return self.read(prompt)


def asked(request: ServerRequest, lines: Lines) -> RequestReply:
    return asyncio.run(Terminal(lines.read, lines.secretly).answer(request))


def form() -> FormRequest:
    return FormRequest(
        id="r1", server="srv", message="Fill\nthis", form=read_form(SCHEMA), warnings=("careful",)
    )


def test_every_field_is_asked_until_it_fits(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines("y", "", "Ada", "seven", "7", "42", "", "medium", "1234", "y")
    reply = asked(form(), lines)
    assert reply == RequestReply(
        action=Action.ACCEPT,
        values={"name": "Ada", "age": 42, "mail": "a@b.example", "size": "m", "pin": "1234"},
    )
    said = capsys.readouterr()
    assert not said.out
    assert "srv asks you" in said.err and "careful" in said.err and "this is needed" in said.err
    assert "at least 18" in said.err
    assert all("\x1b" not in text for text in (said.err, *lines.prompts))
    assert len(lines.hidden) == 1 and "pin" in lines.hidden[0]


@pytest.mark.parametrize(
    ("lines", "action"),
    [
        (("n",), Action.DECLINE),
        (("",), Action.CANCEL),
        ((), Action.CANCEL),
        (("y", "Ada"), Action.CANCEL),
        (("y", "Ada", "20", "", "s", "", "n"), Action.DECLINE),
        (("y", *[""] * 9), Action.CANCEL),
    ],
)
def test_no_and_nothing_are_two_answers(lines: tuple[str, ...], action: Action) -> None:
    assert asked(form(), Lines(*lines)) == RequestReply(action=action)


def test_a_page_is_named_with_its_host_and_never_opened(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = UrlRequest(id="u", server="srv", message="", url="https://a.example/x", host="a.example")
    assert asked(page, Lines("yes")).action is Action.ACCEPT
    said = capsys.readouterr().err
    assert "a.example" in said and "https://a.example/x" in said


def test_without_a_terminal_there_is_nobody() -> None:
    assert at_terminal() is None
