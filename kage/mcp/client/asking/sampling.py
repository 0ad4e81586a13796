"""Sampling: a server asks the model of the session, and the person sees prompt and answer first."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kage.config.schema import ServerSpec
from kage.core.content import Text
from kage.core.errors import KageError
from kage.core.forms import Field, Form, Kind
from kage.core.ids import new_id
from kage.core.messages import (
    AssistantMessage,
    Message,
    Part,
    Stop,
    ToolCall,
    UserMessage,
)
from kage.core.requests import (
    Action,
    FormRequest,
    Person,
    Purpose,
    RequestReply,
    Sampler,
    SampleRequest,
)
from kage.core.sanitise import clip
from kage.mcp.client.asking.conversing import describe, read_sample
from kage.mcp.client.asking.requests import INVALID, REJECTED, Unanswerable

_STOPS = {
    Stop.END: "endTurn",
    Stop.TOOLS: "toolUse",
    Stop.LENGTH: "maxTokens",
}


@dataclass(slots=True)
class Spent:
    """What one server used of its budget in this session."""

    requests: int = 0
    tokens: int = 0  # read and written


class Sampling:
    """Answers ``sampling/createMessage`` for one connection.

    Args:
        spent: What the server used so far; outlives the connection.
    """

    def __init__(
        self,
        spec: ServerSpec,
        *,
        person: Person | None,
        sampler: Sampler | None,
        redact: Callable[[str], str],
        spent: Spent,
    ) -> None:
        self.spec = spec
        self._person = person
        self._sampler = sampler
        self._redact = redact
        self._spent = spent

    @property
    def declared(self) -> str:
        """What is declared: "", "text" or "tools"."""
        if self._person is None or self._sampler is None or not self.spec.allow_sampling:
            return ""
        return "tools" if self.spec.allow_sampling == "tools" else "text"

    async def answer(self, params: Mapping[str, Any], *, tool: str) -> dict[str, Any]:
        """Give a ``CreateMessageResult`` the person let through, prompt and answer.

        Raises:
            Unanswerable: sampling is off, the budget is spent, the person said no, or no model
                answered.
        """
        if self._person is None or self._sampler is None or not self.declared:
            raise Unanswerable("sampling is off; the person can set allow_sampling for this server")
        tools = self.declared == "tools"
        if not tools and (params.get("tools") or params.get("toolChoice")):
            raise Unanswerable('tools in sampling are off (allow_sampling = "tools")', code=INVALID)
        if not self._sampler.model:
            raise Unanswerable("no model is connected", code=-32603)
        self._check_budget()
        request = read_sample(params, self._redact)
        self._spent.requests += 1
        request = await self._approved(self._person, request, params, tool)
        try:
            message = await self._sampler.sample(request)
        except KageError as error:
            why = clip(self._redact(error.what), 300)
            raise Unanswerable(f"the model could not answer: {why}", code=-32603) from None
        usage = message.usage
        self._spent.tokens += usage.input + usage.output
        if message.stop in (Stop.FAILED, Stop.INTERRUPTED, Stop.REFUSED):
            raise Unanswerable("the model gave no answer", code=-32603)
        message = await self._handed_over(self._person, message, tool)
        return _result(message, tools=bool(request.tools))

    def _check_budget(self) -> None:
        spec, spent = self.spec, self._spent
        if spec.sampling_requests and spent.requests >= spec.sampling_requests:
            raise Unanswerable(
                f"this server has asked the model {spent.requests} times in this session, which is "
                "its limit (sampling_requests)",
                code=REJECTED,
            )
        if spec.sampling_budget and spent.tokens >= spec.sampling_budget:
            raise Unanswerable(
                f"this server has used {spent.tokens:,} tokens in this session, which is its limit "
                "(sampling_budget)",
                code=REJECTED,
            )

    def _most_tokens(self, wanted: int) -> int:
        spec = self.spec
        limits = [wanted]
        limits += [spec.sampling_max_tokens] if spec.sampling_max_tokens else []
        limits += [spec.sampling_budget - self._spent.tokens] if spec.sampling_budget else []
        return max(1, min(limits))

    async def _approved(
        self, person: Person, request: SampleRequest, params: Mapping[str, Any], tool: str
    ) -> SampleRequest:
        most = self._most_tokens(request.max_tokens)
        fields, put_back = _prompt_fields(request)
        tokens = Field(
            name="max_tokens", title="longest answer, in tokens", kind=Kind.INTEGER,
            required=True, minimum=1, maximum=most, default=most,
        )  # fmt: skip
        assert self._sampler is not None
        facts = (
            *describe(params, request, model=self._sampler.model, tool=tool),
            f"so far {self._spent.requests - 1} requests and {self._spent.tokens:,} tokens",
        )
        reply = await self._ask(person, Purpose.PROMPT, Form(fields=(*fields, tokens)), facts, tool)
        if reply.action is not Action.ACCEPT:
            raise Unanswerable("the person declined the request to the model", code=REJECTED)
        kept = put_back(reply.values)
        return replace(kept, max_tokens=int(reply.values.get("max_tokens") or most))

    async def _handed_over(
        self, person: Person, message: AssistantMessage, tool: str
    ) -> AssistantMessage:
        fields: list[Field] = []
        for number, part in enumerate(message.parts):
            if isinstance(part, Text) and part.text:
                fields.append(_text(f"answer {number + 1}", part.text, ""))
            elif isinstance(part, ToolCall):
                title = f"call of its tool {clip(part.name, 64)}"
                fields.append(
                    Field(
                        name=f"call {number + 1}", title=title, kind=Kind.JSON, shape=("object",),
                        required=True, multiline=True, default=dict(part.arguments),
                    )
                )  # fmt: skip
        usage = message.usage
        facts = (
            f"{message.model} answered",
            f"{usage.input:,} tokens read, {usage.output:,} written",
        )
        reply = await self._ask(person, Purpose.ANSWER, Form(fields=tuple(fields)), facts, tool)
        if reply.action is not Action.ACCEPT:
            raise Unanswerable("the person kept the model's answer back", code=REJECTED)
        parts: list[Part] = []
        for number, part in enumerate(message.parts):
            if isinstance(part, Text):
                parts.append(Text(str(reply.values.get(f"answer {number + 1}") or "")))
            elif isinstance(part, ToolCall):
                arguments = reply.values.get(f"call {number + 1}")
                parts.append(replace(part, arguments=arguments if arguments is not None else {}))
        return replace(message, parts=tuple(parts))

    async def _ask(
        self, person: Person, purpose: Purpose, form: Form, facts: Sequence[str], tool: str
    ) -> RequestReply:
        request = FormRequest(
            id=new_id("r"),
            server=self.spec.name,
            message="",
            form=form,
            purpose=purpose,
            call=tool,
            facts=tuple(facts),
        )
        reply = await person.answer(request)
        if reply.action is Action.ACCEPT and form.complaints(reply.values):
            raise Unanswerable("the answer does not fit the form", code=REJECTED)
        return reply


def _text(name: str, text: str, title: str) -> Field:
    return Field(name=name, title=title, kind=Kind.TEXT, multiline=True, default=text)


def _prompt_fields(
    request: SampleRequest,
) -> tuple[tuple[Field, ...], Callable[[Mapping[str, Any]], SampleRequest]]:
    """Give the texts of a request as fields, and what puts edited ones back in their places."""
    fields = [_text("system", request.system, "system prompt")] if request.system else []
    for number, message in enumerate(request.messages, 1):
        for index, text in _texts(message):
            who = "user" if isinstance(message, UserMessage) else "assistant"
            fields.append(_text(f"{number}.{index}", text, f"message {number}, {who}"))
    return tuple(fields), functools.partial(_put_back, request)


def _put_back(request: SampleRequest, values: Mapping[str, Any]) -> SampleRequest:
    messages: list[Message] = []
    for number, message in enumerate(request.messages, 1):
        new = {index: str(values.get(f"{number}.{index}") or "") for index, _ in _texts(message)}
        match message:
            case UserMessage():
                content = tuple(
                    Text(new[index]) if index in new else part
                    for index, part in enumerate(message.content)
                    if new.get(index, "kept")
                )
                messages += [replace(message, content=content)] if content else []
            case AssistantMessage():
                parts = tuple(
                    Text(new[index]) if index in new else part
                    for index, part in enumerate(message.parts)
                    if new.get(index, "kept")
                )
                messages += [replace(message, parts=parts)] if parts else []
            case _:
                messages.append(message)
    if not messages:
        raise Unanswerable("nothing was left of the request", code=REJECTED)
    system = str(values.get("system") or "") if request.system else ""
    return replace(request, messages=tuple(messages), system=system)


def _texts(message: Message) -> list[tuple[int, str]]:
    match message:
        case UserMessage(content=held):
            return [(i, part.text) for i, part in enumerate(held) if isinstance(part, Text)]
        case AssistantMessage(parts=pieces):
            return [(i, part.text) for i, part in enumerate(pieces) if isinstance(part, Text)]
        case _:
            return []


def _result(message: AssistantMessage, *, tools: bool) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, Text) and part.text:
            blocks.append({"type": "text", "text": part.text})
        elif isinstance(part, ToolCall) and tools:
            made = json.loads(json.dumps(dict(part.arguments)))
            blocks.append({"type": "tool_use", "id": part.id, "name": part.name, "input": made})
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    content: object = blocks if tools and blocks else {"type": "text", "text": text}
    return {
        "role": "assistant",
        "content": content,
        "model": message.model,
        "stopReason": _STOPS.get(message.stop, "endTurn"),
    }
