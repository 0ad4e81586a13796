"""Calls and their results belong together by ids, which models repeat, forget and invent."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kage.core.content import Text
from kage.core.ids import new_id
from kage.core.messages import AssistantMessage, Message, Outcome, Part, ToolCall, ToolMessage

MAX_ID = 256  # characters of a call's id; what is longer gets a new one


def distinct(reply: AssistantMessage, before: Iterable[Message]) -> AssistantMessage:
    """Give ``reply`` with ids for its calls that no other call of the conversation has.

    Small endpoints count from zero in each reply, or leave the id out; everything after this
    finds a call by its id.
    """
    if not reply.calls:
        return reply
    used = {
        call.id
        for message in before
        if isinstance(message, AssistantMessage)
        for call in message.calls
    }
    return replace(reply, parts=tuple(_own(part, used) for part in reply.parts))


def _own(part: Part, used: set[str]) -> Part:
    if not isinstance(part, ToolCall):
        return part
    if not _usable(part.id) or part.id in used:
        part = replace(part, id=new_id("call"))
    used.add(part.id)
    return part


def _usable(call_id: str) -> bool:
    return 0 < len(call_id) <= MAX_ID and call_id.isascii() and call_id.isprintable()


def mend(messages: Sequence[Message], dropped: list[str]) -> list[Message]:
    """Give every call exactly one result, right after the answer that asked for it.

    Of several calls with one id each takes the next result that stands behind it; their ids are
    told apart. What was amiss is added to ``dropped``.
    """
    waiting = _results(messages)
    used: set[str] = set()
    mended: list[Message] = []
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AssistantMessage):
            mended.append(message)
            continue
        whole = replace(message, parts=tuple(_own(part, used) for part in message.parts))
        mended.append(whole)
        for asked, call in zip(message.calls, whole.calls, strict=True):
            result = _next(waiting[asked.id], place)
            if result is None:
                dropped.append(f"the result of {call.name} was never recorded")
                result = _lost(call)
            mended.append(replace(result, call_id=call.id))
    for rest in waiting.values():
        for _, result in rest:
            dropped.append(f"a result of {result.name} belongs to no call and was left out")
    return mended


_Places = deque[tuple[int, ToolMessage]]


def _results(messages: Sequence[Message]) -> defaultdict[str, _Places]:
    """Collect the results of each id with their places."""
    found: defaultdict[str, _Places] = defaultdict(deque)
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            found[message.call_id].append((place, message))
    return found


def _next(results: _Places, place: int) -> ToolMessage | None:
    """Take the first result that stands behind ``place``."""
    for index, (at, result) in enumerate(results):
        if at > place:
            del results[index]
            return result
    return None


def _lost(call: ToolCall) -> ToolMessage:
    return ToolMessage(
        call_id=call.id,
        name=call.name,
        outcome=Outcome.UNKNOWN,
        content=(Text("kage ended before the result was recorded. It may have run."),),
    )
