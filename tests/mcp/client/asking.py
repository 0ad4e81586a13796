"""A person, a model and a receipt book for tests of what servers ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from kage.core.errors import KageError
from kage.core.messages import AssistantMessage, Part, Stop
from kage.core.requests import Action, Handed, RequestReply, SampleRequest, ServerRequest
from kage.core.usage import Usage

Answer = Callable[[ServerRequest], RequestReply | None]


def accepts(**values: Any) -> Answer:
    """Always accept; of a form its defaults and ``values``."""

    def answer(request: ServerRequest) -> RequestReply:
        form = getattr(request, "form", None)
        held = {**form.initial(), **values} if form is not None else {}
        known = {field.name for field in form.fields} if form is not None else set()
        fitting = {key: value for key, value in held.items() if key in known}
        return RequestReply(action=Action.ACCEPT, values=fitting)

    return answer


def says(action: Action) -> Answer:
    """Always say the same without any values."""
    return lambda request: RequestReply(action=action)


class FakePerson:
    """Answers as told; None leaves the question open."""

    def __init__(self, answer: Answer) -> None:
        self.script = answer
        self.asked: list[ServerRequest] = []
        self.open = 0
        self.withdrawn = 0
        self.done: list[str] = []

    async def answer(self, request: ServerRequest) -> RequestReply:
        self.asked.append(request)
        reply = self.script(request)
        if reply is not None:
            return reply
        self.open += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise
        finally:
            self.open -= 1
        raise AssertionError

    def completed(self, server: str, request_id: str) -> None:
        self.done.append(request_id)


class FakeSampler:
    """Answers with the given parts and remembers what it was asked."""

    def __init__(self, *parts: Part, fails: KageError | None = None) -> None:
        self.parts = parts
        self.fails = fails
        self.requests: list[SampleRequest] = []
        self.model = "fake:one"

    async def sample(self, request: SampleRequest) -> AssistantMessage:
        self.requests.append(request)
        if self.fails is not None:
            raise self.fails
        return AssistantMessage(
            parts=self.parts, model=self.model, stop=Stop.END, usage=Usage(input=100, output=50)
        )


class Book:
    """Keeps what was handed out."""

    def __init__(self) -> None:
        self.handed_out: list[Handed] = []

    async def handed(self, answer: Handed) -> None:
        self.handed_out.append(answer)
